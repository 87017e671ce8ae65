//! Who calls: the user at the other end of the Unix socket, as the kernel says.

use nix::unistd::{Uid, User};
use tonic::Request;
use tonic::transport::server::UdsConnectInfo;

/// The user whose process has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user id that it had when it connected.
    pub uid: u32,
}

impl Caller {
    /// Who made this request; `None` if it did not come by a Unix socket.
    pub fn of<T>(request: &Request<T>) -> Option<Self> {
        let connection = request.extensions().get::<UdsConnectInfo>()?;
        let uid = connection.peer_cred?.uid();
        Some(Caller { uid })
    }

    /// The name of [`Caller::of`], `uid 1234` if the system has none for the user, and `unknown` if there was no caller. A
    /// directory service may take its time to say.
    pub async fn name_of(caller: Option<Self>) -> String {
        let Some(Caller { uid }) = caller else {
            return "unknown".into();
        };
        let named = tokio::task::spawn_blocking(move || User::from_uid(Uid::from_raw(uid))).await;
        let named = named.ok().and_then(Result::ok).flatten();
        named.map_or_else(|| format!("uid {uid}"), |user| user.name)
    }
}
