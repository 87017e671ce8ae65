//! The HTTP interface: what each path answers.

use crate::access::{self, Caller, Peer};
use crate::audience::Audience;
use crate::changes::MAX_DOCUMENT;
use crate::destinations::Destinations;
use crate::gateway::{ACTIONS, Gateway, Page};
use crate::limits::Limits;
use crate::links::Link;
use crate::lists::List;
use crate::passwords::Passwords;
use crate::problem::Problem;
use crate::query::{Arguments, Query};
use crate::questions::QUESTIONS;
use crate::role::Role;
use crate::scope::Scope;
use crate::secrets::hexadecimal;
use crate::sign_in::{self, ME, SIGN_IN, SIGN_OUT};
use crate::sign_ins::SignIns;
use crate::tokens::Token;
use crate::users::User;
use crate::{
    changes, completions, destinations, feed, live, metrics, openapi, pages, questions, records,
    test_aaa, trace,
};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Query as Parameters, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use northbound::PATIENCE_FOR_A_COMMIT;
use northbound::catalogue::{self, Action, Argument, DESTINATIONS, TABLES, Table, Takes};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a request may take. A history of years takes its time, and a change of the configuration more.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a request's body, in octets.
pub const BODY: usize = 16 * 1024;
/// The same of a question about a line, which has the lines above it with it: 20,000 of them.
const DRAFT: usize = 1024 * 1024;
/// Headers of every answer that has no others of these. What is no page is neither run nor embedded by a browser.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "private, no-cache"),
];

/// What requests are answered from.
#[derive(Debug)]
pub struct Site {
    /// The control plane.
    pub gateway: Gateway,
    /// Tokens in force.
    pub tokens: List<Token>,
    /// Users who sign in with a password.
    pub users: List<User>,
    /// One-time links.
    pub links: List<Link>,
    /// Room for checks of passwords.
    pub passwords: Passwords,
    /// Sign-ins in force.
    pub sign_ins: SignIns,
    /// Limits of each address.
    pub limits: Limits,
    /// Names by which clients call this server.
    pub audience: Audience,
    /// Room for clients that watch.
    pub watchers: Arc<Semaphore>,
    /// The control plane, for events as they happen.
    pub feed: Gateway,
    /// Room for clients that follow the events.
    pub followers: Arc<Semaphore>,
    /// Room for clients that are given records.
    pub exporters: Arc<Semaphore>,
    /// Room for clients that trace.
    pub tracers: Arc<Semaphore>,
    /// Where events are sent to.
    pub destinations: Destinations,
}

/// Role that a table needs.
pub fn role(table: &Table) -> Role {
    match table.subscribers {
        true => Role::Support,
        false => Role::View,
    }
}

/// Role that an action needs: one that commits a change is a change of the configuration.
pub fn role_of(action: &Action) -> Role {
    match commits(action) {
        true => Role::Configure,
        false => Role::Operate,
    }
}

/// Scope that an action needs.
pub fn scope_of(action: &Action) -> Scope {
    match commits(action) {
        true => Scope::Configuration,
        false => Scope::Actions,
    }
}

/// Scope that a question needs: whoever changes the configuration has to read it.
pub fn scope_of_question(question: &Action) -> Scope {
    match question.name == catalogue::SHOW_CONFIGURATION.name {
        true => Scope::Configuration,
        false => Scope::Tables,
    }
}

fn commits(action: &Action) -> bool {
    let mut calls = catalogue::COMMIT.calls.iter();
    calls.any(|call| action.calls.contains(call))
}

/// Commits wait for user planes, and a copy of the history for its disk.
fn takes_long(action: &Action) -> bool {
    commits(action) || action.name == catalogue::BACKUP_HISTORY.name
}

/// Path of checks of a change.
pub const CHECK: &str = "/api/v1/configuration/check";
/// Path of commits.
pub const COMMIT: &str = "/api/v1/configuration/commit";
/// Path of confirmations.
pub const CONFIRM: &str = "/api/v1/configuration/confirm";

/// Path of a table.
pub fn path(table: &Table) -> String {
    format!("/api/v1/{}", table.name.replace(' ', "/"))
}

/// Path of an action.
pub fn action_path(action: &Action) -> String {
    format!("/api/v1/actions/{}", action.name.replace(' ', "-"))
}

/// Every path, behind the checks that all requests pass. Pages and sign-ins are for everybody, the others for those who are known.
pub fn router(site: Arc<Site>) -> Router {
    let documents = DefaultBodyLimit::max(MAX_DOCUMENT);
    let known = Router::new()
        .route("/metrics", get(read_metrics))
        .route("/api/v1/openapi.json", get(describe))
        .route(live::PATH, get(live::top))
        .route(feed::PATH, get(feed::events))
        .route(records::PATH, get(records::export))
        .route(trace::PATH, get(trace::messages))
        .route(trace::FILE, get(trace::file))
        .route(&path(&DESTINATIONS), get(destinations::list))
        .route("/api/v1/{*table}", get(read_table))
        .route("/api/v1/actions/{action}", post(act))
        .route(test_aaa::PATH, post(test_aaa::test))
        .route(CHECK, post(changes::check).layer(documents))
        .route(COMMIT, post(changes::commit).layer(documents))
        .route(CONFIRM, post(changes::confirm))
        .route(
            completions::PATH,
            post(completions::complete).layer(DefaultBodyLimit::max(DRAFT)),
        )
        .route(ME, get(sign_in::me))
        .route(SIGN_OUT, post(sign_in::sign_out))
        .method_not_allowed_fallback(no_such_method)
        .route_layer(from_fn_with_state(site.clone(), access::authenticate));
    Router::new()
        .route(SIGN_IN, post(sign_in::sign_in))
        .method_not_allowed_fallback(no_such_method)
        .merge(known)
        .fallback(page)
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

/// Passes on requests to a name of this server, within the limits. Each answer has [`HEADERS`].
async fn guard(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match access::admit(&site, peer, &request) {
        Err(problem) => access::refuse(request, problem).await.into_response(),
        Ok(()) => {
            let path = request.uri().path();
            let mut long = ACTIONS.iter().filter(|action| takes_long(action));
            let takes_long =
                matches!(path, CHECK | COMMIT) || long.any(|action| path == action_path(action));
            let patience = match takes_long {
                true => PATIENCE + PATIENCE_FOR_A_COMMIT,
                false => PATIENCE,
            };
            timeout(patience, next.run(request))
                .await
                .unwrap_or_else(|_| too_late())
        }
    };
    for (name, value) in HEADERS {
        let header = response.headers_mut().entry(name);
        header.or_insert(HeaderValue::from_static(value));
    }
    response
}

/// A file of the web manager.
async fn page(request: Request) -> Result<Response, Problem> {
    let Some(page) = pages::find(request.uri().path()) else {
        return Err(access::refuse(request, nothing_there()).await);
    };
    match *request.method() {
        Method::GET | Method::HEAD => Ok(page.answer(request.headers())),
        _ => Err(no_such_method(request).await),
    }
}

fn too_late() -> Response {
    let detail = "The control plane takes too long: ask for less, such as a shorter time with `since`. What was ordered may be done \
                  yet: look before it is ordered again.";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, detail).into_response()
}

fn nothing_there() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "There is nothing at this path: /api/v1/openapi.json describes every path.",
    )
}

async fn no_such_method(request: Request) -> Problem {
    let problem = Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This path does not have this method: /api/v1/openapi.json describes every path.",
    );
    access::refuse(request, problem).await
}

async fn read_metrics(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.may(Scope::Metrics, Role::View)?;
    let text = metrics::read(&site).await;
    Ok(([(CONTENT_TYPE, metrics::MEDIA_TYPE)], text).into_response())
}

async fn describe(
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.needs(Role::View)?;
    Ok(answer(&headers, openapi::document().to_string().into()))
}

async fn read_table(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let named = |table: &&&Table| path(table) == uri.path();
    let Some(table) = TABLES.iter().find(named) else {
        return ask(&site, &caller, &uri, &headers).await;
    };
    caller.may(Scope::Tables, role(table))?;
    if table.subscribers {
        // who looks at subscribers can be told afterwards
        tracing::info!(
            who = caller.name,
            table = table.name,
            "subscribers are looked at"
        );
    }
    let query = Query::read(table, parameters(&uri)?).map_err(Problem::bad_request)?;
    let page = site.gateway.page(table, &query).await;
    let page = page.map_err(|status| site.gateway.problem(&status))?;
    told(&headers, &page)
}

/// A page of a table, as the client has asked for it.
///
/// # Errors
/// It is no JSON.
pub fn told(headers: &HeaderMap, page: &Page) -> Result<Response, Problem> {
    let body = serde_json::to_vec(page)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(answer(headers, body.into()))
}

/// Answers a question about one thing.
async fn ask(
    site: &Site,
    caller: &Caller,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let named = |question: &&&Action| questions::path(question) == uri.path();
    let Some(question) = QUESTIONS.iter().find(named) else {
        return Err(nothing_there());
    };
    caller.may(scope_of_question(question), Role::Support)?;
    let arguments = Arguments::read(question.arguments, parameters(uri)?, &[]);
    let arguments = arguments.map_err(Problem::bad_request)?;
    // who looks at subscribers can be told afterwards
    tracing::info!(who = caller.name, question = question.name, %arguments, "a question");
    let told = site.gateway.ask(question, &arguments).await;
    let told = told.map_err(|status| site.gateway.problem(&status))?;
    Ok(answer(headers, told.to_string().into()))
}

/// Names and values in a URL.
///
/// # Errors
/// They cannot be read.
pub fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let parameters = Parameters::try_from_uri(uri);
    let Parameters(parameters) =
        parameters.map_err(|error| Problem::bad_request(error.body_text()))?;
    Ok(parameters)
}

async fn act(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let named = |action: &&&Action| action_path(action) == uri.path();
    let Some(action) = ACTIONS.iter().find(named) else {
        return Err(nothing_there());
    };
    caller.may(scope_of(action), role_of(action))?;
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let given = read_body(action.arguments, &body).map_err(Problem::bad_request)?;
    let arguments = Arguments::read(action.arguments, given, &[]);
    let arguments = arguments.map_err(Problem::bad_request)?;
    let acted = site.gateway.act(action, &arguments, &caller.name).await;
    let result = acted
        .as_ref()
        .map_or_else(|status| status.message(), |_| "done");
    // who did what, to whom, and what came of it
    tracing::info!(who = caller.name, action = action.name, %arguments, result, "an action");
    match acted.map_err(|status| site.gateway.problem(&status))? {
        Some(told) => Ok(done(&told)),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// The arguments of an action: an object, each member of the type that the description says. A text in place of true or false could mean
/// either.
fn read_body(declared: &[Argument], body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let object: serde_json::Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| format!("The body is no JSON object ({error})."))?;
    let text = |(name, value): (String, Value)| {
        let argument = declared.iter().find(|argument| argument.name == name);
        let expected = match (argument.map(|argument| argument.takes), &value) {
            // nobody knows it: that is said where all names are read
            (None, _) => return Ok((name, String::new())),
            (Some(Takes::Nothing), Value::Bool(_))
            | (Some(Takes::Number(..)), Value::Number(_)) => {
                return Ok((name, value.to_string()));
            }
            (Some(Takes::Nothing), _) => "true or false",
            (Some(Takes::Number(..)), _) => "a number",
            (Some(_), Value::String(text)) => return Ok((name, text.clone())),
            (Some(_), _) => "a text",
        };
        Err(format!("`{name}` is {value}: expected {expected}"))
    };
    object.into_iter().map(text).collect()
}

/// What came of an order.
pub fn done(told: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], told.to_string()).into_response()
}

/// JSON, or that it is what the client has already.
fn answer(headers: &HeaderMap, body: Bytes) -> Response {
    let tag = tag(&body);
    match is_known(headers, &tag) {
        true => (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response(),
        false => {
            let head = [(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)];
            (head, body).into_response()
        }
    }
}

/// Entity tag of a body (RFC 9110, section 8.8.3).
fn tag(body: &[u8]) -> String {
    format!("\"{}\"", hexadecimal(&Sha256::digest(body)[..16]))
}

/// Whether a client says that it has what this entity tag stands for (RFC 9110, section 13.1.2).
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|known| known.to_str().ok());
    known.any(|known| {
        let mut tags = known.split(',').map(str::trim);
        tags.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn what_a_client_has_is_not_sent_again() {
        let body = Bytes::from_static(b"{}");
        let first = answer(&HeaderMap::new(), body.clone());
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        for known in [&*tag, &format!("W/{tag}"), &format!("\"x\", {tag}"), "*"] {
            let again = answer(&headers(IF_NONE_MATCH, known), body.clone());
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(again.headers()[ETAG], tag);
        }
        let other = answer(&headers(IF_NONE_MATCH, &tag), Bytes::from_static(b"[]"));
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[test]
    fn tables_of_subscribers_need_more_than_to_view() {
        let needs = |name| role(TABLES.iter().find(|table| table.name == name).unwrap());
        for name in ["sessions", "subscribers", "lines", "events", "protection"] {
            assert_eq!(needs(name), Role::Support, "{name}");
        }
        assert_eq!(needs("ports"), Role::View);
    }

    #[test]
    fn a_member_of_a_body_is_of_its_type() {
        let read = |text: &str| read_body(catalogue::CLEAR_SESSIONS.arguments, text.as_bytes());
        let read_right = read(r#"{"user": "home7", "s-tag": 100, "stop": false}"#).unwrap();
        let right = [("s-tag", "100"), ("stop", "false"), ("user", "home7")];
        assert_eq!(
            read_right,
            right.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for (wrong, expected) in [
            // it would have been taken for true
            (r#"{"stop": ""}"#, "true or false"),
            (r#"{"stop": 0}"#, "true or false"),
            (r#"{"expect": "3"}"#, "a number"),
            (r#"{"user": 7}"#, "a text"),
            (r#"{"user": null}"#, "a text"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.ends_with(&format!("expected {expected}")), "{said}");
        }
    }
}
