//! The management interface of a user plane (TR-459's Mi), by gRPC: both sides of it.
//!
//! The service and its messages are in `proto/sluice/mi/v1`; what is generated from them is here. A user plane calls
//! [`serve()`], takes each [`Call`] from a bounded queue, and puts documents in force by [`Configured`], which keeps the last
//! one on the disk. A control plane has a [`Client`] for each user plane, the lab a [`blocking::Client`].
//!
//! ```
//! let document = mi::Document::new(7, r#"{"ports": {}}"#.into());
//! assert_eq!(document.verify(), Ok(()));
//! let in_force = document.in_force(1_700_000_000);
//! assert!(in_force.is(&document).unwrap(), "nothing is to be done");
//! assert!(!in_force.is(&mi::Document::new(8, "{}".into())).unwrap(), "it is newer");
//! in_force.is(&mi::Document::new(6, "{}".into())).unwrap_err();
//! ```
#![forbid(unsafe_code)]

pub mod blocking;
mod client;
mod configured;
mod document;
mod kept;
mod network;
mod sample;
mod serve;
mod session;

/// What `protoc` and tonic made of `proto/sluice/mi/v1`.
mod generated {
    tonic::include_proto!("sluice.mi.v1");
}

pub use client::{Client, Endpoint, is_absent, is_busy, reason};
pub use configured::{Begun, Configured, Written};
pub use document::MAX_TEXT;
pub use generated::*;
pub use kept::{Keep, Kept, KeptError};
pub use network::NetworkError;
pub use sample::{Sampling, Shown};
pub use serve::{Answer, Call, Request, Response, serve};
pub use session::SessionPlace;
