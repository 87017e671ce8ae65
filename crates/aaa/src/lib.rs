//! Authentication and accounting.
#![forbid(unsafe_code)]

mod config;
mod message;
mod secret;
mod users;

pub use config::{ClientConfig, Nas, ServerConfig};
pub use message::{
    AccessAccept, AccessReject, AccessRequest, AccountingKind, AccountingRecord, Authentic,
    Credentials, Line, Outcome, PortType, RejectReason, TerminateCause, Traffic, Unavailable,
};
pub use secret::Secret;
