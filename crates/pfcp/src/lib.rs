//! PFCP for both planes, without I/O.
//!
//! [`Node`] is one PFCP entity, of either plane: associations, heartbeats, retransmission, answers that are given again.
//! [`bng`] is what a gateway's planes say to each other through it: sessions as rules, and rules decoded again.
//!
//! The control plane's and the user plane's loops are the only callers. They pass datagrams and time in, and take
//! [`Output`]s out until there are none.
//!
//! ```
//! use core::time::Duration;
//! use pfcp::{Config, Event, Node, Output, Role};
//! use core::net::SocketAddr;
//! use wire::pfcp::NodeId;
//!
//! let cp_at: SocketAddr = "192.0.2.1:8805".parse().unwrap();
//! let up_at: SocketAddr = "192.0.2.2:8805".parse().unwrap();
//! let now = Duration::ZERO;
//! let mut cp = Node::new(Config::new(Role::Control, NodeId::Fqdn("cp".into()), 1));
//! let mut up = Node::new(Config::new(Role::User, NodeId::Fqdn("up".into()), 1));
//! cp.add_peer(now, up_at);
//! up.add_peer(now, cp_at);
//! cp.on_timeout(now);
//! while !cp.is_associated(up_at) {
//!     while let Some(output) = cp.poll_output() {
//!         if let Output::Transmit { bytes, .. } = output {
//!             up.handle_datagram(now, cp_at, &bytes);
//!         }
//!     }
//!     // the control plane is asked whether it said so, before the user plane believes it
//!     while let Some(output) = up.poll_output() {
//!         if let Output::Transmit { bytes, .. } = output {
//!             cp.handle_datagram(now, up_at, &bytes);
//!         }
//!     }
//! }
//! assert!(matches!(cp.poll_output(), Some(Output::Event(Event::AssociationUp { .. }))));
//! ```
#![forbid(unsafe_code)]

pub mod bng;
mod node;

pub use node::{
    Config, Counters, Doubt, DownReason, Event, FailReason, Features, Node, Output, PeerInfo,
    RequestError, RequestId, Role,
};
