//! Sans-IO state machines of subscribers: stateless PPPoE discovery, and PPP sessions (LCP, PAP, CHAP, MS-CHAPv2, IPCP, IPV6CP, Router
//! Advertisements, DHCPv6, keepalive) as plain structs. The caller is `control`. This crate uses no sockets, RADIUS or PFCP; the
//! caller supplies time and random values.
//!
//! A PADI or PADR goes to [`discovery::Discovery`], which keeps no state. An accepted PADR makes a [`Link`]. From then on its owner
//!
//! 1. passes every frame to [`Link::on_frame`] and every [`Command`] to [`Link::command`], and calls [`Link::on_timeout`] at
//!    [`Link::poll_at`];
//! 2. after each of these calls polls [`Link::poll_output`] until it is empty, and carries out the outputs in order.
//!
//! For each address family, `Output::Install` comes first. The owner answers it with `Command::Installed` when the rules are installed
//! and stored. Then `Output::Up` follows. `Output::Down` revokes an `Install` before `Output::Closed`. A peer that restarts PPP (RFC 1661
//! §4.3) causes `Down` for its families, a new `Authenticate`, and `Install` again, without a `Closed` in between.
//!
//! ```
//! use policy::Access;
//! use session::{Cause, Command, Link, Output, Phase, Random, SessionConfig, Watch};
//! use std::{sync::Arc, time::Duration};
//!
//! let random = Random { magic: 7, chap_challenge: [1; 16], chap_id: 1, interface_id: 1, seed: 42 };
//! let now = Duration::from_secs(100);
//! let mut link = Link::new(Access::Pppoe(9), Arc::new(SessionConfig::default()), None, random, now);
//! // It requests an MRU of 1492, CHAP with MD5, and its magic number.
//! let Some(Output::Frame(frame)) = link.poll_output() else { panic!() };
//! let (pppoe, ppp) = frame.payload.split_at(6);
//! assert_eq!((frame.ethertype, &pppoe[2..4]), (0x8864, &[0, 9][..]));
//! assert_eq!(
//!     session::ladder::describe_ppp(ppp),
//!     "LCP Configure-Request id=1 MRU=1492 Auth=CHAP-MD5 Magic=0x00000007"
//! );
//! // Without an answer it retransmits after three seconds.
//! assert_eq!(link.poll_at(), Some(now + Duration::from_secs(3)));
//! link.on_timeout(now + Duration::from_secs(3), Watch::Link);
//! assert_eq!(link.poll_output(), Some(Output::Frame(frame)));
//!
//! // The subscriber sends a PADT.
//! link.on_frame(now + Duration::from_secs(4), 0x8863, &[0x11, 0xa7, 0, 9, 0, 0]).unwrap();
//! assert_eq!(link.poll_output(), Some(Output::Closed(Cause::UserRequest)));
//! assert_eq!(link.status().phase, Phase::Closed);
//! ```
#![forbid(unsafe_code)]

mod auth;
mod automaton;
mod dhcpv6;
pub mod discovery;
mod duid;
mod ipcp;
mod ipv6cp;
mod keepalive;
pub mod ladder;
mod layer;
mod lcp;
mod link;
mod reconfigure;
mod router;
mod session;
mod snapshot;
mod time;
mod types;

pub use dhcpv6::MOST_DELEGATED;
pub use duid::Duid;
pub use lcp::AuthProtocol;
pub use link::Link;
pub use reconfigure::ReconfigureKey;
pub use snapshot::{Passed, Snapshot};
pub use time::Deadline;
pub use types::*;
