//! Subscriber state machines, sans-IO: PPPoE discovery without state, and PPP sessions (LCP, PAP, CHAP, IPCP, IPV6CP,
//! router advertisements, keepalive) as plain structs.
mod auth;
mod automaton;
pub mod discovery;
mod ipcp;
mod ipv6cp;
mod keepalive;
pub mod ladder;
mod layer;
mod lcp;
mod router;
mod session;
mod snapshot;
mod time;
mod types;

pub use lcp::AuthProtocol;
pub use session::Session;
pub use snapshot::Snapshot;
pub use types::*;
