//! The local API: what people on its machine ask and tell a daemon, by gRPC over a Unix socket.
//!
//! The services and their messages are in `proto/sluice/v1`; what is generated from them is here. A daemon calls
//! [`serve()`] and takes each [`Call`] from a bounded queue; the command line has a [`Client`]. Nothing listens on the
//! network. The user plane's service is that of the management interface (`crates/mi`), which uses the same parts.
//!
//! ```
//! let session = northbound::Session {
//!     id: "18bcff4aa4100000".into(),
//!     state: northbound::SessionState::Online.into(),
//!     ..Default::default()
//! };
//! let shown = serde_json::to_value(&session).unwrap();
//! assert_eq!(shown["state"], "online");
//! assert_eq!(shown["ipv4"], serde_json::Value::Null);
//! ```
#![forbid(unsafe_code)]

mod caller;
mod calls;
pub mod catalogue;
mod clears;
mod client;
mod configuration;
mod connection;
mod details;
mod drain;
mod event_kinds;
mod explain;
mod history;
mod ledger;
mod listen;
mod live;
mod process;
mod rows;
mod serve;
mod session_filter;
pub mod supervisor;
mod tables;
pub mod telling;
pub mod time;
pub mod units;
mod words;

/// What `protoc` and tonic made of `proto/sluice/v1`.
mod generated {
    tonic::include_proto!("sluice.v1");
}

pub use caller::{Caller, on_behalf_of};
pub use calls::{Asked, Calls, Refusal, other_answer};
pub use client::Client;
pub use configuration::{
    ConfigurationCall, ConfigurationClient, ConfigurationLock, ConfigurationRequest,
    ConfigurationResponse, MAX_DOCUMENT, PATIENCE_FOR_A_COMMIT,
};
pub use connection::{CallError, Connection, PATIENCE_FOR_A_CHECK, channel};
pub use details::{RATE_DOWN, SessionDetails};
pub use drain::DrainOrder;
pub use explain::Explanation;
pub use generated::*;
pub use history::{Followed, HistoryCall, HistoryClient, MOST_COUNTED, Matching};
pub use ledger::{Differences, Kind};
pub use listen::{Bounded, MAX_CONNECTIONS, UnixSocket, bounded, server};
pub use live::{
    LiveCall, LiveClient, LiveRequest, LiveResponse, States, TRACE_SAMPLES, TRACE_SECONDS, Traced,
    Tracing,
};
pub use rows::{DaemonRow, LineRow, QueueRow, SubscriberRow, WorkerRow};
pub use serve::{
    Answer, CLEAR_RATE, Call, MOST_CLEAR_RATE, MOST_COMMENT, MOST_CONFIRM, MOST_WATCH_SECONDS,
    PAGE, Password, QUEUE_WAITS, Request, Response, UserPlaneTable, check_watch_seconds, serve,
};
pub use tables::TablesClient;
pub use words::{shown_word, word};

/// Name of the rules that a subscriber has from RADIUS alone, as people see it: that of the attribute (RFC 4849).
pub const FILTER_RULES: &str = "NAS-Filter-Rule";

/// Where `sluice-cp` listens unless its configuration says otherwise.
pub const CP_SOCKET: &str = "/run/sluice/cp.sock";
