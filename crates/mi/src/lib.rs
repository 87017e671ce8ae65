//! The management interface of a user plane (TR-459's Mi), by gRPC: both sides of it.
//!
//! The service and its messages are in `proto/sluice/mi/v1`; what is generated from them is here. A user plane calls
//! [`serve()`] and takes each [`Call`] from a bounded queue; the command line has a [`blocking::Client`].
#![forbid(unsafe_code)]

pub mod blocking;
mod serve;

/// What `protoc` and tonic made of `proto/sluice/mi/v1`.
mod generated {
    tonic::include_proto!("sluice.mi.v1");
}

pub use generated::*;
pub use serve::{Answer, Call, Request, Response, serve};
