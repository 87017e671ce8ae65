//! The control plane: sessions, addresses, user planes, AAA and the store.
//!
//! [`ControlPlane`] is the whole of it without I/O: datagrams, calls and a time go in, datagrams, records and answers come out.
//! [`runtime`] is its edge to sockets, disk and clock, which `sluice-cp` runs; a test or a simulator takes its place.
//!
//! A session lives in one slab, has one timer in one wheel, and is found by what identifies it:
//! its index is in its SEID (see [`topology`]).
//!
//! ```
//! use control::topology::Seid;
//!
//! let seid = Seid::new(1_700_000_000_000, 5);
//! assert_eq!((seid.generation(), seid.index()), (1_700_000_000_000, 5));
//! ```
#![forbid(unsafe_code)]

// the tests' world, which unit tests use too, knows this crate by its name
#[cfg(test)]
extern crate self as control;

mod aaa_clients;
mod accounting;
mod acls;
pub mod addresses;
pub mod alarms;
mod assigned;
mod authorization;
mod back_offs;
pub mod configuration;
pub mod counters;
mod entry;
mod evaluate;
mod fallback;
mod figures;
mod filter_sets;
mod finder;
mod floods;
mod generations;
pub mod history;
mod jitter;
mod journal;
mod lags;
mod lanes;
mod live;
pub mod management;
mod mappings;
mod names;
mod next_pools;
pub mod plane;
pub mod pool;
mod radius_sockets;
mod radius_streams;
mod rare;
mod records;
mod relay;
mod remembered;
pub mod runtime;
pub mod session_ids;
mod sessions;
mod shared;
mod split_aggregates;
pub mod store;
mod subscribers;
mod teids;
pub mod topology;
mod trace;
mod trends;
mod user_planes;
mod users;
mod waits;
pub mod wheel;
mod without_effect;
// `tests/behaviour` uses more of it
#[cfg(test)]
#[allow(dead_code)]
#[path = "../tests/behaviour/world/mod.rs"]
mod world;

pub use aaa::dictionary::Dictionary;
pub use configuration::SetLevel;
pub use mappings::read_dictionaries;
pub use plane::{
    ControlPlane, Input, Now, Output, RadiusBinding, RadiusConnection, RadiusServer, RadiusServers,
    RadiusSocket, RadiusTls, Restored,
};
use std::sync::Arc;

/// Finds what cannot be served of a configuration beyond what [`config::check`] finds: pools that cannot be cut, more than
/// there are numbers for, mappings of attributes that no dictionary has. Nothing is started.
///
/// # Errors
/// Everything that is wrong.
pub fn check(
    start: &config::start::ControlPlane,
    dictionary: &Arc<Dictionary>,
    configuration: &config::Configuration,
) -> Result<(), Vec<config::Fault>> {
    plane::faults(start, dictionary, configuration)?;
    let topology = topology::Topology::new(configuration, topology::Numbers::new());
    addresses::Addresses::new(configuration, &topology).map(drop)
}
