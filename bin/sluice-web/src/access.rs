//! Who is let in: to a name of this server, within the limits of an address, with a token or a sign-in.

use crate::api::{BODY, Site};
use crate::audience::Audience;
use crate::cookie;
use crate::limits::{LOCKED, Refused};
use crate::problem::Problem;
use crate::role::Role;
use crate::scope::{self, Scope};
use crate::tokens::{self, Token};
use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use northbound::time;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Time limit for the body of a request that is refused.
const UNWANTED: Duration = Duration::from_secs(1);
/// Time from one look to the next whether an answer that goes on may go on.
const LOOK: Duration = Duration::from_secs(5);
/// What a browser says of where a request comes from (Fetch Metadata).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Address at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// By what a caller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A token in `Authorization`.
    Token,
    /// A sign-in, whose secret is in the cookie.
    SignIn,
}

/// Whoever has presented a token, or is signed in.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Name of the token or user.
    pub name: String,
    /// What the caller may do.
    pub role: Role,
    /// What the token may be used for; none: everything that the role allows. A sign-in has none.
    pub scopes: Vec<Scope>,
    /// When the token or sign-in expires, in seconds since 1970; `None`: never.
    pub expires: Option<u64>,
    /// By what the caller is known.
    pub means: Means,
}

impl From<&Token> for Caller {
    fn from(token: &Token) -> Self {
        Caller {
            name: token.name.clone(),
            role: token.role,
            scopes: token.scopes.clone(),
            expires: token.expires,
            means: Means::Token,
        }
    }
}

impl Caller {
    /// Whether the caller may do something in a scope that needs a role.
    ///
    /// # Errors
    /// The scope or the role is missing; the sentence says which.
    pub fn may(&self, scope: Scope, role: Role) -> Result<(), Problem> {
        self.has(scope)?;
        self.needs(role)
    }

    /// Whether the token may be used for this.
    ///
    /// # Errors
    /// It may not; the sentence says which scope is missing.
    pub fn has(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.is_empty() || self.scopes.contains(&scope) {
            return Ok(());
        }
        let (name, own, needed) = (&self.name, scope::words(&self.scopes), scope.word());
        Err(Problem::out_of_scope(
            scope,
            format!(
                "This needs the scope {needed}, and the token `{name}` may be used for {own} only: make a token with `sluice-web token add \
                 NAME --role ROLE --scope {needed}`."
            ),
        ))
    }

    /// Whether the caller's role, or one before it, is this one.
    ///
    /// # Errors
    /// It is not; the sentence says what is needed.
    pub fn needs(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let (name, own, needed) = (&self.name, self.role.word(), role.word());
        let detail = match self.means {
            Means::Token => format!(
                "This needs the role {needed}, and the token `{name}` has the role {own}: make a token with `sluice-web token add NAME \
                 --role {needed}`."
            ),
            Means::SignIn => format!(
                "This needs the role {needed}, and `{name}` is signed in with the role {own}: sign in as a user with that role. \
                 `sluice-web user list` lists them."
            ),
        };
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }
}

/// Admits a request within the limits of its address, to a name of this server.
///
/// # Errors
/// A limit is reached, or the request is for another name.
pub fn admit(site: &Site, peer: IpAddr, request: &Request) -> Result<(), Problem> {
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
    Ok(())
}

/// Passes on requests of callers that are known.
pub async fn authenticate(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let presented = Presented::of(headers);
    let caller = match &presented {
        Some(Presented::Token(token)) => {
            token_in_force(&site, peer, token).map(|t| Caller::from(&t))
        }
        Some(Presented::Cookie(secret)) => by_cookie(&site, secret, &request),
        None => Err(Problem::unauthorized(
            "A token or a sign-in is missing: send `Authorization: Bearer TOKEN`, with a token that `sluice-web token add` printed, or \
             sign in.",
        )),
    };
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            let response = next.run(request).await;
            match (response.extensions().get(), presented) {
                (Some(Lasting), Some(presented)) => {
                    let over = presented.ends(site);
                    response.map(|body| Body::from_stream(body.into_data_stream().take_until(over)))
                }
                _ => response,
            }
        }
        Err(problem) => refuse(request, problem).await.into_response(),
    }
}

/// Mark of an answer that goes on: it ends when what was presented is in force no more.
#[derive(Clone, Copy, Debug)]
pub struct Lasting;

/// What a request presents.
enum Presented {
    Token(String),
    Cookie(String),
}

impl Presented {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let token = bearer(headers).map(|token| Presented::Token(token.to_owned()));
        token.or_else(|| Some(Presented::Cookie(cookie::presented(headers)?.to_owned())))
    }

    fn is_in_force(&self, site: &Site) -> bool {
        let now = time::now();
        match self {
            Presented::Token(token) => site
                .tokens
                .look(|all| tokens::find(all, token, now).is_some()),
            Presented::Cookie(secret) => site.sign_ins.find(secret, &site.users, now).is_some(),
        }
    }

    /// Waits until it has expired, or was revoked or changed.
    async fn ends(self, site: Arc<Site>) {
        while self.is_in_force(&site) {
            sleep(LOOK).await;
        }
    }
}

/// Refuses a request, whose small body is read all the same: curl reports an HTTP/2 error if the answer comes before the end of the body.
pub async fn refuse(request: Request, problem: Problem) -> Problem {
    // its content does not matter, nor whether it comes
    let _ = timeout(UNWANTED, to_bytes(request.into_body(), BODY)).await;
    problem
}

/// The token that is presented.
///
/// # Errors
/// It is not in force.
pub fn token_in_force(site: &Site, peer: IpAddr, presented: &str) -> Result<Token, Problem> {
    let find = |tokens: &[Token]| tokens::find(tokens, presented, time::now()).cloned();
    if let Some(token) = site.tokens.look(find) {
        site.limits.right_token(peer);
        return Ok(token);
    }
    site.limits.may_guess(peer, Instant::now())?;
    if site.limits.wrong_token(peer, Instant::now()) {
        tracing::warn!(%peer, "too many wrong tokens: the address is locked out");
    }
    Err(Problem::unauthorized(
        "The token is not in force: it is wrong, has expired, or was revoked. `sluice-web token list` shows those in force.",
    ))
}

/// A cookie that is not in force does not count as a wrong token: browsers go on to send it after their sign-in has ended, and
/// pages that ask every few seconds would lock their address out. Nobody guesses its 256 bits.
fn by_cookie(site: &Site, secret: &str, request: &Request) -> Result<Caller, Problem> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && !is_own_page(request.headers(), &site.audience) {
        return Err(not_own_page());
    }
    let sign_in = site.sign_ins.find(secret, &site.users, time::now());
    let sign_in = sign_in.ok_or_else(|| {
        Problem::unauthorized(
            "The sign-in has ended: it has expired, the user was changed or removed, or the server was restarted. Sign in again.",
        )
    })?;
    Ok(Caller {
        name: sign_in.holder.name().to_owned(),
        role: sign_in.holder.role(),
        scopes: Vec::new(),
        expires: Some(sign_in.expires),
        means: Means::SignIn,
    })
}

/// Refuses what a page of another origin has a browser send (CSRF). Programs that are no browsers send no `Origin`.
///
/// # Errors
/// It is such a request.
pub fn refuse_other_pages(headers: &HeaderMap, audience: &Audience) -> Result<(), Problem> {
    let browser = headers.contains_key(ORIGIN) || headers.contains_key(SEC_FETCH_SITE);
    match browser && !is_own_page(headers, audience) {
        true => Err(not_own_page()),
        false => Ok(()),
    }
}

/// Whether a browser says that one of this server's pages makes the request. Every browser sends `Origin` (RFC 6454) with what may
/// change something, and newer ones say whether the port is the same, too.
fn is_own_page(headers: &HeaderMap, audience: &Audience) -> bool {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = text(ORIGIN).and_then(|origin| origin.strip_prefix("https://"));
    let same = text(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin");
    same && host.is_some_and(|host| audience.has(host))
}

fn not_own_page() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "This request does not come from a page of this server, or its `Origin` does not say so: use the page at one of `hosts`, or \
         send a token in `Authorization`.",
    )
}

/// The token of a request (RFC 6750, section 2.1).
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let (seconds, detail) = match refused {
            Refused::LockedOut => (
                LOCKED.as_secs(),
                "Too many wrong tokens or passwords came from this address: wait five minutes, and use a right one.",
            ),
            _ => (
                1,
                "Too many requests come from this address: ask less often.",
            ),
        };
        Problem::later(StatusCode::TOO_MANY_REQUESTS, seconds, detail)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Headers of a request.
    pub fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        pairs.collect()
    }

    #[test]
    fn a_token_stands_behind_bearer() {
        let token = |value| bearer(&headers(&[(AUTHORIZATION, value)])).map(str::to_owned);
        assert_eq!(token("Bearer abc"), Some("abc".into()));
        assert_eq!(token("bearer  abc "), Some("abc".into()));
        for other in ["Basic abc", "Bearer", "abc"] {
            assert_eq!(token(other), None, "{other}");
        }
    }

    #[test]
    fn a_page_is_own_at_https_and_a_host_of_the_server() {
        let audience = Audience::new(&["gw.example.net".into(), "[::1]".into()]);
        let own = |pairs: &[_]| is_own_page(&headers(pairs), &audience);
        for origin in [
            "https://gw.example.net",
            "https://gw.example.net:8443",
            "https://[::1]:8443",
        ] {
            assert!(own(&[(ORIGIN, origin)]), "{origin}");
            assert!(own(&[(ORIGIN, origin), (SEC_FETCH_SITE, "same-origin")]));
            for site in ["same-site", "cross-site", "none", ""] {
                assert!(!own(&[(ORIGIN, origin), (SEC_FETCH_SITE, site)]), "{site}");
            }
        }
        for origin in [
            "http://gw.example.net",
            "https://gw.example.net.evil.example",
            "https://evil.example",
            "https://gw.example.net@evil.example",
            "https://gw.example.net:8443/",
            "gw.example.net",
            "null",
            "",
        ] {
            assert!(!own(&[(ORIGIN, origin)]), "{origin}");
        }
        assert!(!own(&[]) && !own(&[(SEC_FETCH_SITE, "same-origin")]));
    }

    #[test]
    fn a_sign_in_is_refused_from_other_pages_and_taken_from_programs() {
        let audience = Audience::new(&["gw.example.net".into()]);
        let refused = |pairs: &[_]| refuse_other_pages(&headers(pairs), &audience).is_err();
        assert!(!refused(&[]));
        assert!(!refused(&[(ORIGIN, "https://gw.example.net")]));
        assert!(refused(&[(ORIGIN, "https://evil.example")]));
        assert!(refused(&[(SEC_FETCH_SITE, "cross-site")]));
    }

    #[test]
    fn a_role_is_enough_for_those_before_it() {
        for (means, says) in [
            (Means::Token, "token add NAME --role support"),
            (Means::SignIn, "`noc` is signed in with the role view"),
        ] {
            let caller = Caller {
                name: "noc".into(),
                role: Role::View,
                scopes: Vec::new(),
                expires: None,
                means,
            };
            assert!(caller.needs(Role::View).is_ok());
            let refused = format!("{:?}", caller.needs(Role::Support).unwrap_err());
            assert!(refused.contains(says), "{refused}");
        }
    }
}
