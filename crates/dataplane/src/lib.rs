//! The packet path: a graph of nodes over tables, run to completion by a worker.
#![forbid(unsafe_code)]

mod api;
mod controller;
mod counters;
mod drops;
mod message;
mod punt;
mod worker;

pub use api::*;
pub use controller::Controller;
pub use drops::DropReason;
pub use worker::{Error, Worker, channel};
