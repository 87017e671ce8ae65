//! The local API: what the `sluice` command asks the two daemons over a Unix socket.
//!
//! One JSON object a line each way: a [`Request`], then its [`Response`]. `sluice-cp` answers for sessions and the
//! control plane's counters, `sluice-up` for ports and the packet path's. Nothing listens on the network.
//! The daemons call [`serve()`], the command line calls [`call`].
//!
//! ```
//! use northbound::{Request, Response};
//!
//! let line = serde_json::to_string(&Request::ShowSession { id: "1f".into() }).unwrap();
//! assert_eq!(line, r#"{"request":"show-session","id":"1f"}"#);
//! let refusal: Response = serde_json::from_str(r#"{"response":"error","message":"no session 1f"}"#).unwrap();
//! assert_eq!(refusal, Response::Error { message: "no session 1f".into() });
//! ```
#![forbid(unsafe_code)]

mod client;
mod ledger;
mod messages;
mod serve;
pub mod supervisor;

pub use client::{CallError, call};
pub use ledger::{Account, Differences, Fault, Finding, Kind, Ledger};
pub use messages::{
    DropCounter, Port, Request, Response, Session, SessionState, Traffic, UserPlane, UserPlanePort,
    UserPlaneState,
};
pub use serve::{Call, serve};

/// Where `sluice-cp` listens unless its configuration says otherwise.
pub const CP_SOCKET: &str = "/run/sluice/cp.sock";
/// Where `sluice-up` listens unless its configuration says otherwise.
pub const UP_SOCKET: &str = "/run/sluice/up.sock";

/// The longest request line that a daemon reads, in octets.
const MAX_REQUEST: usize = 64 * 1024;
