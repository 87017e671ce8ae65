//! The whole gateway in one process, on a clock of its own, driven by one random number generator.
//!
//! **What lives here.** [`run`] puts together the control plane, two user planes around a model of their workers, RADIUS
//! servers, a disk and fifty emulated homes, lets homes come and go for five minutes while datagrams are lost and parts
//! die, and checks after every step what must always be true. Then faults stop, everybody has to get online, and leave; and
//! nothing may be left. Hours of this take minutes. The same seed does exactly the same again, with a log of what happened.
//!
//! | module | what it is |
//! |---|---|
//! | `world` | the parts, the links between them, the clock; the operator, and the management interface |
//! | `plan` | what a seed stands for: sizes, faults |
//! | `check`, `holdings` | the invariants; which session holds what |
//! | `access_network` | the access network: homes, and what subscribers do |
//! | `takeovers` | fixed addresses that change hands |
//! | [`outage`] | many homes: RADIUS servers in trouble, overload, storms, and planes killed at every instant |
//! | [`cost`] | what the control plane's work takes |
//! | `internet` | the host that stands for the internet |
//! | `traffic` | what sessions carried, against what accounting says |
//! | `user_plane`, `worker` | a user plane: the real engine, a modelled packet path |
//! | `server`, `radius_checker` | RADIUS servers; checks of the accounting records that they got |
//! | `history_checker` | checks of the events in the history |
//! | `forgery` | PFCP messages of liars and strangers |
//! | `disk` | the store's disk |
//! | `describe` | datagrams in words, for the log |
//!
//! **Who may call it.** Tests, and a person with a seed: `make sim SEEDS=7-7 TRACE=1`.
//!
//! ```
//! let summary = sim::run(1, None).unwrap();
//! assert!(summary.online > 0 && summary.replies > 0);
//! ```
#![forbid(unsafe_code)]

mod access_network;
mod check;
pub mod cost;
mod describe;
mod disk;
mod forgery;
mod history_checker;
mod holdings;
mod internet;
mod later;
pub mod outage;
mod plan;
mod radius_checker;
mod server;
mod takeovers;
mod traffic;
mod user_plane;
mod worker;
mod world;

pub use world::{Log, Summary};

/// Runs a seed from its beginning to its end.
///
/// # Errors
/// What was found wrong, and when.
pub fn run(seed: u64, log: Option<Log<'_>>) -> Result<Summary, String> {
    world::World::new(seed, log).run()
}

/// Whether a seed stands for less room than homes.
pub fn is_crowded(seed: u64) -> bool {
    world::World::new(seed, None).plan.is_crowded()
}
