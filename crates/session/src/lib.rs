//! Subscriber state machines, sans-IO: PPPoE discovery without state, and PPP sessions (LCP, PAP, CHAP, IPCP, IPV6CP,
//! router advertisements, keepalive) as plain structs. `control` is the caller; nothing here knows sockets, RADIUS or
//! PFCP, and time and randomness come in from outside.
//!
//! A PADI or PADR goes to [`discovery::Discovery`], which keeps nothing. An admitted PADR makes a [`Session`]. From then
//! on its owner
//!
//! 1. gives it every [`Input`] by [`Session::handle`], and calls [`Session::on_timeout`] at [`Session::poll_at`];
//! 2. after each of these calls takes [`Session::poll_output`] until it is empty, and does what it says, in that order.
//!
//! For each family there is first `Output::Install`, which `Input::Installed` answers when rules and store are ready,
//! then `Output::Up`; whatever was asked for by `Install` is taken back by `Output::Down` before `Output::Closed`. A peer
//! that starts PPP over (RFC 1661 §4.3) leads to `Down` for its families, a new `Authenticate`, and `Install` again,
//! without a `Closed` between.
//!
//! ```
//! use session::{Cause, Input, Output, Phase, Random, Session, SessionConfig};
//! use std::{sync::Arc, time::Duration};
//!
//! let random = Random { magic: 7, chap_challenge: [1; 16], chap_id: 1, interface_id: 1, seed: 42 };
//! let now = Duration::from_secs(100);
//! let mut session = Session::new(Arc::new(SessionConfig::default()), None, random, now);
//! // It asks for an MRU of 1492, CHAP with MD5, and its magic number.
//! let Some(Output::Ppp(frame)) = session.poll_output() else { panic!() };
//! assert_eq!(
//!     session::ladder::describe_ppp(&frame),
//!     "LCP Configure-Request id=1 MRU=1492 Auth=CHAP-MD5 Magic=0x00000007"
//! );
//! // Nobody answers: it asks again after three seconds.
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
