//! People sign in and out. Programs present tokens instead.

use crate::access::{Caller, Means, Peer, refuse_other_pages};
use crate::api::{Site, done};
use crate::cookie;
use crate::links;
use crate::problem::Problem;
use crate::query::given;
use crate::role::Role;
use crate::scope::Scope;
use crate::sign_ins::Holder;
use crate::users::User;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use config::Secret;
use northbound::time;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::spawn_blocking;

/// Path of sign-ins.
pub const SIGN_IN: &str = "/api/v1/sign-in";
/// Path of sign-outs.
pub const SIGN_OUT: &str = "/api/v1/sign-out";
/// Path of who the caller is.
pub const ME: &str = "/api/v1/me";

/// Body of a sign-in: `user` and `password`, or `link`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default, deserialize_with = "given")]
    user: Option<String>,
    #[serde(default, deserialize_with = "given")]
    password: Option<Secret>,
    #[serde(default, deserialize_with = "given")]
    link: Option<Secret>,
}

/// With what somebody signs in.
enum Credentials {
    Password { user: String, password: Secret },
    Link(Secret),
}

impl Credentials {
    fn read(body: &[u8]) -> Result<Self, Problem> {
        // serde's own sentence could have a password in it
        let wrong = || {
            let detail =
                r#"Expected `{"user": NAME, "password": PASSWORD}` or `{"link": SECRET}`."#;
            Problem::bad_request(detail)
        };
        let body: Body = serde_json::from_slice(body).map_err(|_| wrong())?;
        match (body.user, body.password, body.link) {
            (Some(user), Some(password), None) => Ok(Credentials::Password { user, password }),
            (None, None, Some(link)) => Ok(Credentials::Link(link)),
            _ => Err(wrong()),
        }
    }
}

/// Signs in, and has the browser keep the sign-in's cookie.
///
/// # Errors
/// The password or link is wrong, too many sign in, or a page of another server sends the request.
pub async fn sign_in(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    refuse_other_pages(&headers, &site.audience)?;
    let credentials = Credentials::read(&body)?;
    let checking = site.clone();
    // a client that goes away meanwhile is counted as well
    let checked = tokio::spawn(async move {
        match credentials {
            Credentials::Password { user, password } => {
                by_password(&checking, peer, &user, &password).await
            }
            Credentials::Link(link) => by_link(&checking, peer, link).await,
        }
    });
    let holder = checked.await.unwrap_or_else(|_| Err(failed()))?;
    // a browser keeps one sign-in
    if let Some(before) = cookie::presented(&headers) {
        site.sign_ins.end(before);
    }
    let (name, role) = (holder.name().to_owned(), holder.role());
    let (secret, expires) = site.sign_ins.begin(holder, time::now());
    let told = described(&name, role, &[], Some(expires));
    Ok(with_cookie(done(&told), cookie::set(&secret)))
}

/// Checks a password. A client that goes away meanwhile has to be counted as well: this runs as a task of its own.
///
/// # Errors
/// It is wrong, its address is locked out, or too many sign in.
pub async fn by_password(
    site: &Site,
    peer: IpAddr,
    name: &str,
    password: &Secret,
) -> Result<Holder, Problem> {
    // it lasts until a wrong password is counted, so that the next one is not checked before that
    let turn = site.passwords.turn().await?;
    // those that were tried while this one waited may have locked the address out
    site.limits.may_guess(peer, Instant::now())?;
    let named = |users: &[User]| users.iter().find(|u| u.name == name).cloned();
    let user = site.users.look(named);
    let right = turn.verify(user.as_ref(), password).await;
    match user {
        Some(user) if right => {
            tracing::info!(who = user.name, role = user.role.word(), %peer, "signs in");
            Ok(Holder::User(user))
        }
        user => {
            match user {
                Some(user) => tracing::warn!(who = user.name, %peer, "a wrong password"),
                // the name is not logged: people also type their password there
                None => tracing::warn!(%peer, "a password of an unknown user"),
            }
            if site.limits.wrong_password(peer, Instant::now()) {
                tracing::warn!(%peer, "too many wrong passwords: the address is locked out");
            }
            Err(Problem::unauthorized(
                "The user or the password is wrong. `sluice-web user list` lists the users, and `sluice-web user password NAME` sets \
                 another password.",
            ))
        }
    }
}

async fn by_link(site: &Site, peer: IpAddr, secret: Secret) -> Result<Holder, Problem> {
    let now = time::now();
    let known = |links: &[links::Link]| links::find(links, secret.reveal(), now).is_some();
    // the file is changed for one that is in force only: wrong ones cost nothing
    let taken = match site.links.look(known) {
        false => Ok(None),
        true => {
            let file = site.links.file().clone();
            let taken = spawn_blocking(move || links::take(&file, secret.reveal(), now)).await;
            taken.unwrap_or_else(|error| Err(error.to_string()))
        }
    };
    match taken {
        Ok(Some(link)) => {
            tracing::info!(who = link.name, role = link.role.word(), %peer, "a link is used");
            Ok(Holder::Link(link))
        }
        Ok(None) => {
            tracing::warn!(%peer, "a wrong link");
            site.limits.wrong_link();
            Err(Problem::unauthorized(
                "The link is not in force: it was used, has expired, or is wrong. Make another with `sluice-web link --role ROLE`.",
            ))
        }
        Err(error) => {
            tracing::error!(error, "a link cannot be used");
            Err(failed())
        }
    }
}

fn failed() -> Problem {
    let detail = "The sign-in cannot be checked: the log of sluice-web says why.";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

/// Ends the sign-in, and has the browser forget its cookie.
///
/// # Errors
/// The caller is not signed in, but has a token.
pub async fn sign_out(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    // what it has does not matter, but it is read before the answer
    _: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let secret = cookie::presented(&headers).filter(|_| caller.means == Means::SignIn);
    let Some(secret) = secret else {
        return Err(Problem::bad_request(
            "A token has no sign-in to end: `sluice-web token revoke NAME` makes it useless.",
        ));
    };
    site.sign_ins.end(secret);
    tracing::info!(who = caller.name, %peer, "signs out");
    let done = StatusCode::NO_CONTENT.into_response();
    Ok(with_cookie(done, cookie::clear()))
}

/// Tells who the caller is.
pub async fn me(Extension(caller): Extension<Caller>) -> Response {
    done(&described(
        &caller.name,
        caller.role,
        &caller.scopes,
        caller.expires,
    ))
}

fn described(name: &str, role: Role, scopes: &[Scope], expires: Option<u64>) -> Value {
    let expires = expires.map(|at| time::moment(at).replacen(' ', "T", 1));
    json!({"name": name, "role": role.word(), "scopes": scopes, "expires": expires})
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    response
        .headers_mut()
        .extend(cookie.map(|c| (SET_COOKIE, c)));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_a_password_or_a_link() {
        let read = |text: &str| Credentials::read(text.as_bytes());
        let password = read(r#"{"user": "alice", "password": "hunter2"}"#);
        assert!(matches!(password, Ok(Credentials::Password { user, .. }) if user == "alice"));
        assert!(matches!(
            read(r#"{"link": "abc"}"#),
            Ok(Credentials::Link(_))
        ));
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"user": "alice"}"#,
            r#"{"password": "hunter2"}"#,
            r#"{"user": "alice", "password": "hunter2", "link": "abc"}"#,
            r#"{"user": "alice", "password": 42424242}"#,
            r#"{"user": "alice", "hunter2": ""}"#,
            r#"{"user": "alice", "password": "hunter2", "link": null}"#,
        ] {
            let said = format!("{:?}", read(wrong).err().expect(wrong));
            assert!(said.contains("Expected"), "{said}");
            assert!(!said.contains("hunter2") && !said.contains("42"), "{said}");
        }
    }

    #[test]
    fn a_time_is_as_rfc_3339_writes_it() {
        let told = described(
            "alice",
            Role::Operate,
            &[Scope::Tables],
            Some(1_795_331_700),
        );
        let expected = json!({"name": "alice", "role": "operate", "scopes": ["tables"], "expires": "2026-11-22T07:15:00Z"});
        assert_eq!(told, expected);
        let noc = described("noc", Role::View, &[], None);
        assert_eq!(noc["expires"], Value::Null);
        assert_eq!(noc["scopes"], json!([]));
    }
}
