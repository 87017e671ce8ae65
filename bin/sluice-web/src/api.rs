//! The HTTP interface: who is let in, and what each path answers.

use crate::audience::Audience;
use crate::gateway::{ACTIONS, Gateway};
use crate::limits::{LOCKED, Limits, Refused};
use crate::problem::Problem;
use crate::query::{Arguments, Query};
use crate::questions::QUESTIONS;
use crate::tokens::{Role, Tokens, hexadecimal};
use crate::{changes, live, metrics, openapi, questions};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Query as Parameters, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use northbound::catalogue::{Action, TABLES, Table};
use northbound::{MAX_DOCUMENT, PATIENCE_FOR_A_COMMIT, time};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a request may take. A history of years takes its time, and a change of the configuration more.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a request's body, in octets.
pub const BODY: usize = 16 * 1024;
/// Headers of every answer. Nothing that this server sends is a page: a browser runs and embeds none of it.
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
    pub tokens: Tokens,
    /// Limits of each address.
    pub limits: Limits,
    /// Names by which clients call this server.
    pub audience: Audience,
    /// Room for clients that watch.
    pub watchers: Arc<Semaphore>,
}

/// Address at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Whoever has presented a token.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Name of the token.
    pub name: String,
    role: Role,
}

impl Caller {
    /// Whether the token's role, or one before it, is this one.
    ///
    /// # Errors
    /// It is not; the sentence says which token is needed.
    pub fn needs(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let (own, needed) = (self.role.word(), role.word());
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            format!(
                "This needs the role {needed}, and the token `{}` has the role {own}: make a token with `sluice-web token add NAME \
                 --role {needed}`.",
                self.name
            ),
        ))
    }
}

/// Role that a table needs.
pub fn role(table: &Table) -> Role {
    match table.subscribers {
        true => Role::Support,
        false => Role::View,
    }
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

/// Every path, behind the checks that all requests pass.
pub fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/metrics", get(read_metrics))
        .route("/api/v1/openapi.json", get(describe))
        .route(live::PATH, get(live::top))
        .route("/api/v1/{*table}", get(read_table))
        .route("/api/v1/actions/{action}", post(act))
        .route(
            CHECK,
            post(changes::check).layer(DefaultBodyLimit::max(MAX_DOCUMENT)),
        )
        .route(
            COMMIT,
            post(changes::commit).layer(DefaultBodyLimit::max(MAX_DOCUMENT)),
        )
        .route(CONFIRM, post(changes::confirm))
        .layer(DefaultBodyLimit::max(BODY))
        .fallback(nothing_there)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

/// Passes on requests to a name of this server, within the limits, with a token in force. Each answer has [`HEADERS`].
async fn guard(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match admit(&site, peer, &request) {
        Err(problem) => problem.into_response(),
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            let patience = match request.uri().path() {
                CHECK | COMMIT => PATIENCE + PATIENCE_FOR_A_COMMIT,
                _ => PATIENCE,
            };
            timeout(patience, next.run(request))
                .await
                .unwrap_or_else(|_| too_late())
        }
    };
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

fn admit(site: &Site, peer: IpAddr, request: &Request) -> Result<Caller, Problem> {
    site.limits
        .admit(peer, Instant::now())
        .map_err(Problem::from)?;
    // The host is in the URI (HTTP/2, RFC 9113, section 8.3.1) or in the header (RFC 9112, section 3.2). Each that is there counts.
    let header = request.headers().get_all(HOST).iter();
    let mut hosts = header.map(|host| host.to_str().unwrap_or_default());
    let authority = request.uri().authority().map(|a| a.as_str());
    let named = authority.is_some() || request.headers().contains_key(HOST);
    let right = hosts.all(|host| site.audience.has(host))
        && authority.is_none_or(|authority| site.audience.has(authority));
    if !named || !right {
        return Err(Problem::bad_request(
            "This server is not called by the name in the request's Host: call it by one of `hosts` in its start file, or add the \
             name there.",
        ));
    }
    let Some(token) = bearer(request.headers()) else {
        return Err(Problem::unauthorized(
            "A token is missing: send `Authorization: Bearer TOKEN`, with a token that `sluice-web token add` printed.",
        ));
    };
    match site.tokens.find(token, time::now()) {
        Some((name, role)) => {
            site.limits.right_token(peer);
            Ok(Caller { name, role })
        }
        None => {
            if site.limits.wrong_token(peer, Instant::now()) {
                tracing::warn!(%peer, "too many wrong tokens: the address is locked out");
            }
            Err(Problem::unauthorized(
                "The token is not in force: it is wrong, has expired, or was revoked. `sluice-web token list` shows those in force.",
            ))
        }
    }
}

/// The token of a request (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (seconds, detail) = match refused {
            Refused::LockedOut => (
                LOCKED.as_secs(),
                "Too many wrong tokens came from this address: wait five minutes, and use a right one.",
            ),
            _ => (
                1,
                "Too many requests come from this address: ask less often.",
            ),
        };
        Problem::later(StatusCode::TOO_MANY_REQUESTS, seconds, detail)
    }
}

fn too_late() -> Response {
    let detail = "The control plane takes too long: ask for less, such as a shorter time with `since`. What was ordered may be done \
                  yet: look before it is ordered again.";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, detail).into_response()
}

async fn nothing_there() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "There is nothing at this path: /api/v1/openapi.json describes every path.",
    )
}

async fn no_such_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This path does not have this method: /api/v1/openapi.json describes every path.",
    )
}

async fn read_metrics(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.needs(Role::View)?;
    let text = metrics::read(&site.gateway, &site.limits).await;
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
    caller.needs(role(table))?;
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
    let body = serde_json::to_vec(&page)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(answer(&headers, body.into()))
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
        return Err(nothing_there().await);
    };
    caller.needs(Role::Support)?;
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
        return Err(nothing_there().await);
    };
    caller.needs(Role::Operate)?;
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let given = read_body(&body).map_err(Problem::bad_request)?;
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

/// The arguments of an action: an object of texts, numbers, and true or false.
fn read_body(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let object: serde_json::Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| format!("The body is no JSON object ({error})."))?;
    let text = |(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        _ => Err(format!(
            "`{name}`: expected a text, a number, or true or false"
        )),
    };
    object.into_iter().map(text).collect()
}

/// What came of an order.
pub fn done(told: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], told.to_string()).into_response()
}

/// JSON, or that it is what the client has already (RFC 9110, section 13.1.2).
fn answer(headers: &HeaderMap, body: Bytes) -> Response {
    let tag = format!("\"{}\"", hexadecimal(&Sha256::digest(&body)[..16]));
    let known = headers.get_all(IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|known| known.to_str().ok());
    let known = known.any(|known| {
        let mut tags = known.split(',').map(str::trim);
        tags.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    });
    match known {
        true => (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response(),
        false => {
            let head = [(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)];
            (head, body).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_token_stands_behind_bearer() {
        let token = |value| bearer(&headers(AUTHORIZATION, value)).map(str::to_owned);
        assert_eq!(token("Bearer abc"), Some("abc".into()));
        assert_eq!(token("bearer  abc "), Some("abc".into()));
        for other in ["Basic abc", "Bearer", "abc"] {
            assert_eq!(token(other), None, "{other}");
        }
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
        let caller = Caller {
            name: "scraper".into(),
            role: Role::View,
        };
        assert!(caller.needs(Role::View).is_ok() && caller.needs(Role::Support).is_err());
    }
}
