//! Authentication, authorization and accounting: a RADIUS client and dynamic authorization server, and local users.
//!
//! The [`Client`] is sans-IO. The control plane passes it requests, received datagrams and the time, and carries out the outputs
//! of [`Client::poll_output`]. The client has ordered or balanced servers for authentication and for accounting. It retransmits
//! (RFC 5080 §2.2.1), skips servers that do not answer, and delivers accounting records until a server has acknowledged them. It limits the
//! number of open requests, and ignores replies that do not prove their origin. [`Users`] answers the same [`AccessRequest`] with
//! the same [`Outcome`] from a file; it leaves the comparison of a password with a hash to its caller. [`dictionary`] knows vendors'
//! attributes, and [`mapping`] says what they mean. [`DynamicAuthorization`] takes the requests of servers that change or end a
//! session. None of them does I/O, and no `Debug` output contains a password or secret.
//!
//! ```
//! use core::time::Duration;
//! use aaa::{AccessRequest, Client, ClientConfig, Credentials, NasPort, Nas, Outcome, Output, Secret, ServerConfig};
//! use wire::radius::{Code, Kind, Packet, verify_access_request};
//!
//! let server = "192.0.2.9:1812".parse().unwrap();
//! let mut config = ClientConfig::new(Nas { identifier: "bng1".into(), ..Nas::default() });
//! config.authentication.push(ServerConfig::new(server, Secret::new("testing123")));
//! let mut client = Client::new(config, [0x5e; 32]); // the seed: from the operating system, never twice the same
//!
//! let now = Duration::ZERO;
//! let credentials = Credentials::Pap { password: Secret::new("wonderland") };
//! let (username, acct_session_id) = (b"alice".to_vec(), "bng1-1".to_owned());
//! let (nas_port, state, sent_name) = (NasPort::default(), Vec::new(), None);
//! client.authenticate(now, 1, AccessRequest { username, sent_name, credentials, acct_session_id, nas_port, state });
//! let Some(Output::Transmit { socket, to, bytes }) = client.poll_output() else { panic!("nothing to send") };
//! assert_eq!(to, server);
//!
//! // What the server does:
//! let request = verify_access_request(&bytes, b"testing123").unwrap();
//! let mut accept = Packet::new(Code::ACCESS_ACCEPT, request.identifier, [0; 16]);
//! accept.push(Kind::SESSION_TIMEOUT, 3600);
//! let reply = accept.emit_response(&request.authenticator, b"testing123").unwrap();
//!
//! client.handle(now, socket, server, &reply);
//! let Some(Output::Done { token: 1, outcome: Outcome::Accept(accept) }) = client.poll_output() else { panic!() };
//! assert_eq!(accept.session_timeout, Some(Duration::from_secs(3600)));
//! ```
#![forbid(unsafe_code)]

mod accounting;
mod attributes;
mod authentication;
mod client;
mod config;
pub mod dictionary;
mod dynamic;
mod families;
mod filter_rules;
pub mod mapping;
mod message;
mod probe;
mod random;
mod reconfigure;
mod requests;
mod route;
mod secret;
mod selection;
mod server;
mod standard;
mod streams;
mod users;
mod window;

pub use accounting::Delivery;
pub use client::{Client, Counters, Output};
pub use config::{ClientConfig, Nas, NotEnforced, Selection, ServerConfig, Transport};
pub use dynamic::{
    DynamicAuthorization, DynamicClient, DynamicConfig, DynamicCounters, DynamicOutcome,
    DynamicRequest, ErrorCause, Received, RequestKey, Requested, SessionIds,
};
pub use families::FamilyCounters;
pub use message::{
    AccessAccept, AccessReject, AccessRequest, AccountingKind, AccountingRecord, Announcement,
    Authentic, Credentials, FamilyTraffic, FamilyUsage, MOST_DELEGATED, MOST_LINKS, NasPort,
    Outcome, PortType, RejectReason, TerminateCause, Traffic, Unavailable,
};
pub use probe::ProbeStatus;
pub use route::{FramedRoute, NoRoute};
pub use secret::Secret;
pub use server::{ServerStatus, Slot};
pub use standard::{InAccept, InChange, STANDARD, Sent, Standard, standard};
pub use streams::{Connection, Role};
pub use users::{Password, User, Users, Verdict};
