//! Sans-IO state machines of subscribers: stateless PPPoE discovery, and PPP sessions (LCP, PAP, CHAP, IPCP, IPV6CP, Router
//! Advertisements, keepalive) as plain structs. The caller is `control`. This crate uses no sockets, RADIUS or PFCP; the caller supplies
//! time and random values.
//!
//! A PADI or PADR goes to [`discovery::Discovery`], which keeps no state. An accepted PADR makes a [`Session`]. From then on its owner
//!
//! 1. passes every [`Input`] to [`Session::handle`], and calls [`Session::on_timeout`] at [`Session::poll_at`];
//! 2. after each of these calls polls [`Session::poll_output`] until it is empty, and carries out the outputs in order.
//!
//! For each address family, `Output::Install` comes first. The owner answers it with `Input::Installed` when the rules are installed and
//! stored. Then `Output::Up` follows. `Output::Down` revokes an `Install` before `Output::Closed`. A peer that restarts PPP (RFC 1661
//! §4.3) causes `Down` for its families, a new `Authenticate`, and `Install` again, without a `Closed` in between.
//!
//! ```
//! use session::{Cause, Input, Output, Phase, Random, Session, SessionConfig};
//! use std::{sync::Arc, time::Duration};
//!
//! let random = Random { magic: 7, chap_challenge: [1; 16], chap_id: 1, interface_id: 1, seed: 42 };
//! let now = Duration::from_secs(100);
//! let mut session = Session::new(Arc::new(SessionConfig::default()), None, random, now);
//! // It requests an MRU of 1492, CHAP with MD5, and its magic number.
//! let Some(Output::Ppp(frame)) = session.poll_output() else { panic!() };
//! assert_eq!(
//!     session::ladder::describe_ppp(&frame),
//!     "LCP Configure-Request id=1 MRU=1492 Auth=CHAP-MD5 Magic=0x00000007"
//! );
//! // Without an answer it retransmits after three seconds.
//! assert_eq!(session.poll_at(), Some(now + Duration::from_secs(3)));
//! session.on_timeout(now + Duration::from_secs(3));
//! assert_eq!(session.poll_output(), Some(Output::Ppp(frame)));
//!
//! session.handle(now + Duration::from_secs(4), Input::Padt).unwrap();
//! assert_eq!(session.poll_output(), Some(Output::Closed(Cause::UserRequest)));
//! assert_eq!(session.phase(), Phase::Closed);
//! ```
#![forbid(unsafe_code)]

mod auth;
mod automaton;
pub mod discovery;
pub mod frames;
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
