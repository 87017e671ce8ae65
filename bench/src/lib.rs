//! What the packet path costs, and what RADIUS costs, measured.
//!
//! **What lives here:** the bench (`make bench`), whose parts are modules, and what they share: frames and what has to
//! become of them (`frames`), how they go round through queues (`circulation`), where sessions are (`layout`), a data plane
//! between two rings (`world`), real prefixes (`routes`). `examples/instructions` counts the instructions of each way through the graph, for `make check`.
//! **Who may call it:** nobody else.
//!
//! ```
//! use bench::report::{Entry, Samples};
//!
//! let cycles = Samples(vec![61.0, 60.0, 64.0]);
//! let entry = Entry::new("up-cycles", "uplink", "cycles", &cycles).at_most(65.0);
//! assert_eq!(entry.met, Some(true));
//! ```
#![forbid(unsafe_code)]
#![allow(missing_docs)] // a program's parts

pub mod acl;
pub mod admission;
pub mod changes;
pub mod circulation;
pub mod downlink;
pub mod drops;
pub mod fib;
pub mod flows;
pub mod frames;
pub mod full;
pub mod handover;
pub mod huge;
pub mod kernel;
pub mod latency;
pub mod layout;
pub mod meters;
pub mod pipeline;
pub mod plot;
pub mod policies;
pub mod published;
pub mod queues;
#[cfg(feature = "control-plane")]
pub mod radius;
pub mod report;
pub mod routes;
pub mod rules;
#[cfg(feature = "control-plane")]
pub mod setups;
pub mod swap;
pub mod testpmd;
pub mod whole;
pub mod workers;
pub mod world;

use anyhow::{Context, Result};

/// Binds the calling thread to a core.
pub fn pin(core: usize) -> Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(core)?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
        .with_context(|| format!("core {core}"))
}
