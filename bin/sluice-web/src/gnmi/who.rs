//! Who calls: the holder of a token in `authorization`, or a user with `username` and `password`.

use super::{LONG_PATIENCE, in_time};
use crate::access::{self, Caller, Means, Peer};
use crate::api::Site;
use crate::lease::Lease;
use crate::problem::Problem;
use crate::role::Role;
use crate::scope::Scope;
use crate::sign_in::by_password;
use crate::sign_ins::Holder;
use crate::tokens::Token;
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use config::Secret;
use northbound::{PATIENCE_FOR_A_COMMIT, time};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tonic::Status;

/// Path of a Set.
const SET: &str = "/gnmi.gNMI/Set";
/// Path of a Subscribe.
const SUBSCRIBE: &str = "/gnmi.gNMI/Subscribe";

/// Whoever has presented a token or a password.
#[derive(Clone, Debug)]
pub struct Known {
    /// Name, role, and by what the caller is known.
    pub caller: Caller,
    peer: IpAddr,
    /// Time of the connection.
    pub lease: Lease,
    credential: Credential,
}

#[derive(Clone, Debug)]
enum Credential {
    Token(Token),
    Password(Holder),
}

impl Known {
    /// Whoever makes a call.
    ///
    /// # Errors
    /// The call did not pass [`authenticate`].
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        let known = request.extensions().get::<Known>().cloned();
        known.ok_or_else(|| Status::internal("the call was not authenticated"))
    }

    /// Admits one more request within the limits of the address.
    ///
    /// # Errors
    /// The limit is reached.
    pub fn admit(&self, site: &Site) -> Result<(), Status> {
        let admitted = site.limits.admit(self.peer, Instant::now());
        Ok(admitted.map_err(Problem::from)?)
    }

    /// Itself, if its scope and role are enough for the call with this path. A request to change something is large: it is not read in vain.
    fn calls(self, path: &str) -> Result<Self, Problem> {
        self.caller.has(Scope::Gnmi)?;
        if path == SET {
            self.caller.needs(Role::Configure)?;
        }
        Ok(self)
    }

    /// Whether the token or the user is still what it was.
    pub fn is_in_force(&self, site: &Site) -> bool {
        match &self.credential {
            Credential::Token(token) => {
                let there = site.tokens.look(|tokens| tokens.contains(token));
                there && token.is_in_force(time::now())
            }
            Credential::Password(holder) => site.users.look(|users| holder.is_same(users)),
        }
    }
}

/// Passes on calls of callers that are known, within the limits of their address.
pub async fn authenticate(
    State(site): State<Arc<Site>>,
    Extension(Peer(peer)): Extension<Peer>,
    Extension(lease): Extension<Lease>,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = access::admit(&site, peer, &request);
    let known = match admitted {
        Ok(()) => know(&site, peer, lease, request.headers()).await,
        Err(problem) => Err(problem),
    };
    match known.and_then(|known| known.calls(request.uri().path())) {
        Ok(known) => {
            known.lease.renew();
            request.extensions_mut().insert(known);
            serve(request, next).await
        }
        Err(problem) => answer(Status::from(problem)),
    }
}

/// Serves a call, in its time if it is no subscription: a client that does not send its request would keep it for ever.
async fn serve(request: Request, next: Next) -> Response {
    let patience = match request.uri().path() {
        SUBSCRIBE => return next.run(request).await,
        SET => LONG_PATIENCE + PATIENCE_FOR_A_COMMIT,
        _ => LONG_PATIENCE,
    };
    let served = in_time(patience, async { Ok(next.run(request).await) }).await;
    served.unwrap_or_else(answer)
}

/// An error as the answer of a call.
fn answer(status: Status) -> Response {
    status.into_http::<axum::body::Body>().into_response()
}

async fn know(
    site: &Arc<Site>,
    peer: IpAddr,
    lease: Lease,
    headers: &HeaderMap,
) -> Result<Known, Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (caller, credential) = match (access::bearer(headers), text("username"), text("password")) {
        (Some(token), _, _) => with_token(site, peer, token)?,
        (None, Some(user), Some(password)) => with_password(site, peer, user, password).await?,
        _ => {
            return Err(Problem::unauthorized(
                "A token or a password is missing: send `authorization: Bearer TOKEN`, with a token that `sluice-web token add` \
                 printed, or `username` and `password`.",
            ));
        }
    };
    Ok(Known {
        caller,
        peer,
        lease,
        credential,
    })
}

fn with_token(site: &Site, peer: IpAddr, presented: &str) -> Result<(Caller, Credential), Problem> {
    let token = access::token_in_force(site, peer, presented)?;
    Ok((Caller::from(&token), Credential::Token(token)))
}

async fn with_password(
    site: &Arc<Site>,
    peer: IpAddr,
    user: &str,
    password: &str,
) -> Result<(Caller, Credential), Problem> {
    let failed = || Problem::unauthorized("The password cannot be read.");
    let password: Secret = serde_json::from_value(password.into()).map_err(|_| failed())?;
    let (checking, user) = (site.clone(), user.to_owned());
    let checked = tokio::spawn(async move { by_password(&checking, peer, &user, &password).await });
    let holder = checked.await.map_err(|_| failed())??;
    let caller = Caller {
        name: holder.name().to_owned(),
        role: holder.role(),
        scopes: Vec::new(),
        expires: None,
        means: Means::SignIn,
    };
    Ok((caller, Credential::Password(holder)))
}
