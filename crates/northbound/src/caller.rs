//! Who calls: the user at the other end of the Unix socket, as the kernel says, and what that user may do.

use crate::catalogue::{Access, access_of};
use futures_util::future::BoxFuture;
use nix::unistd::{Gid, Uid, User, getegid, geteuid, getgrouplist};
use std::ffi::CString;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Status};
use tower::{Layer, Service};

/// Metadata of a request: the person for whom a process acts.
const ON_BEHALF_OF: &str = "sluice-on-behalf-of";
/// Maximum length of a person's name, in octets.
const NAME: usize = 64;

/// A request of a process that acts for a person. Whoever may call at all may say so: it is written beside the process's own user.
pub fn on_behalf_of<T>(person: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if let Ok(person) = person.parse() {
        request.metadata_mut().insert(ON_BEHALF_OF, person);
    }
    request
}

fn is_name(text: &str) -> bool {
    (1..=NAME).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_graphic())
}

/// The user whose process has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user id that it had when it connected.
    pub uid: u32,
    /// The group id that it had then.
    pub gid: u32,
}

impl Caller {
    /// Who made this request; `None` if it did not come by a Unix socket.
    pub fn of<T>(request: &Request<T>) -> Option<Self> {
        request.extensions().get().and_then(Caller::connected)
    }

    fn connected(connection: &UdsConnectInfo) -> Option<Self> {
        let peer = connection.peer_cred?;
        let (uid, gid) = (peer.uid(), peer.gid());
        Some(Caller { uid, gid })
    }

    /// Who made this request, as people know it: the name of the user, or `PERSON (USER)` if the user's process names the person
    /// for whom it acts ([`on_behalf_of`]).
    pub async fn name_in<T>(request: &Request<T>) -> String {
        let user = Caller::name_of(Caller::of(request)).await;
        let person = request.metadata().get(ON_BEHALF_OF);
        let person = person.and_then(|person| person.to_str().ok());
        match person.filter(|person| is_name(person)) {
            Some(person) => format!("{person} ({user})"),
            None => user,
        }
    }

    /// The name of [`Caller::of`], `uid 1234` if the system has none for the user, and `unknown` if there was no caller. A
    /// directory service may take its time to say.
    pub async fn name_of(caller: Option<Self>) -> String {
        let Some(Caller { uid, .. }) = caller else {
            return "unknown".into();
        };
        let named = tokio::task::spawn_blocking(move || User::from_uid(Uid::from_raw(uid))).await;
        let named = named.ok().and_then(Result::ok).flatten();
        named.map_or_else(|| format!("uid {uid}"), |user| user.name)
    }

    /// Whether this caller has the access that is needed.
    ///
    /// # Errors
    /// PERMISSION_DENIED if it has not.
    pub(crate) async fn permit(caller: Option<Self>, needed: Access) -> Result<(), Status> {
        let may = match (needed, caller) {
            (Access::Read, _) => true,
            (Access::Change, None) => false,
            (Access::Change, Some(caller)) => caller.may_change().await,
        };
        may.then_some(()).ok_or_else(|| {
            let why =
                "only root and the members of the daemon's group may do this; others may only read";
            Status::permission_denied(why)
        })
    }

    /// Root, the daemon's user, or a member of the daemon's group.
    async fn may_change(self) -> bool {
        let (uid, daemon) = (Uid::from_raw(self.uid), getegid());
        if uid.is_root() || uid == geteuid() || self.gid == daemon.as_raw() {
            return true;
        }
        let member = tokio::task::spawn_blocking(move || is_member(uid, daemon)).await;
        member.unwrap_or_default()
    }
}

/// Whether a user is in a group. A directory service may take its time to say.
fn is_member(uid: Uid, group: Gid) -> bool {
    let Ok(Some(user)) = User::from_uid(uid) else {
        return false;
    };
    let groups = CString::new(user.name).map(|name| getgrouplist(&name, user.gid));
    matches!(groups, Ok(Ok(groups)) if groups.contains(&group))
}

/// Lets callers through to the services, each to what the catalogue says of the method that is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate;

impl<S> Layer<S> for Gate {
    type Service = Guarded<S>;

    fn layer(&self, services: S) -> Guarded<S> {
        Guarded(services)
    }
}

/// Services behind the [`Gate`].
#[derive(Clone, Debug)]
pub(crate) struct Guarded<S>(S);

impl<S, B> Service<http::Request<B>> for Guarded<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let needed = access_of(request.uri().path());
        let caller = request.extensions().get().and_then(Caller::connected);
        // the one that is ready goes, and a clone of it stays
        let clone = self.0.clone();
        let mut services = std::mem::replace(&mut self.0, clone);
        Box::pin(async move {
            match Caller::permit(caller, needed).await {
                Ok(()) => services.call(request).await,
                Err(status) => Ok(status.into_http()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn permitted(caller: Option<Caller>, needed: Access) -> bool {
        Caller::permit(caller, needed).await.is_ok()
    }

    #[tokio::test]
    async fn everybody_may_read_and_the_daemons_group_may_change() {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let (stranger, others) = (uid + 4_000_000, gid + 4_000_000);
        let callers = [
            (
                Some(Caller {
                    uid: 0,
                    gid: others,
                }),
                true,
            ),
            (Some(Caller { uid, gid: others }), true),
            (Some(Caller { uid: stranger, gid }), true),
            (
                Some(Caller {
                    uid: stranger,
                    gid: others,
                }),
                false,
            ),
            (None, false),
        ];
        for (caller, may_change) in callers {
            assert!(permitted(caller, Access::Read).await, "{caller:?}");
            let changes = permitted(caller, Access::Change).await;
            assert_eq!(changes, may_change, "{caller:?}");
        }
    }

    #[tokio::test]
    async fn a_person_stands_beside_the_user() {
        let name = async |person: &str| Caller::name_in(&on_behalf_of(person, ())).await;
        assert_eq!(name("noc").await, "noc (unknown)");
        for other in ["", "a b", "line\nbreak", &"x".repeat(NAME + 1)] {
            assert_eq!(name(other).await, "unknown", "{other}");
        }
    }

    #[test]
    fn root_is_in_its_own_group_and_in_no_strange_one() {
        let root = Uid::from_raw(0);
        assert!(is_member(root, Gid::from_raw(0)));
        assert!(!is_member(root, Gid::from_raw(4_000_000)));
        assert!(!is_member(Uid::from_raw(4_000_000), Gid::from_raw(0)));
    }
}
