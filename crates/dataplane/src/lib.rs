//! The packet path: a graph of nodes over tables, run to completion by a worker.
//!
//! **What lives here:** [`Worker`], which owns queues of ports and tables and forwards; [`Controller`], through which one control
//! thread programs the workers and exchanges packets with them; the graph (`graph.rs`, to be read first), its nodes (`nodes/`, a
//! file each) and tables (`tables/`). No lock, no allocation and no system call is made for a packet.
//! **Who may call it:** `userplane`.
//!
//! Every packet in is a packet out, a packet punted to the control thread, or a drop with a name ([`DropReason`]).
//!
//! Ports come and go while it works ([`Controller::add_port`], [`Controller::remove_port`]); a core port may have
//! subinterfaces ([`Subinterface`]).
//!
//! Each session belongs to one of the workers. What another one receives for it is handed over, in its order.
//!
//! ```no_run
//! use dataplane::*;
//! use std::sync::atomic::AtomicBool;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let eal = dpdk::Eal::start(&dpdk::EalOptions::default())?;
//! let pool = eal.pool("packets", 16384)?;
//! let (mut controller, workers) = channel(&eal, pool, Config::default())?;
//!
//! static STOP: AtomicBool = AtomicBool::new(false);
//! for worker in workers {
//!     std::thread::Builder::new().name("worker".into()).spawn(move || worker.run(&STOP))?;
//! }
//!
//! let open = |devargs, role| -> Result<PortConfig, dpdk::Error> {
//!     let port = eal.open_port(devargs, pool, &dpdk::PortOptions::default())?;
//!     Ok(PortConfig { port, mac: None, role })
//! };
//! let segments = vec![Segment { id: 0, vlans: vec![100..=199] }];
//! controller.add_port(PortIndex(0), open("net_af_xdp0,iface=acc0", Role::Access { segments })?)?;
//! let core = Role::Core { instance: InstanceIndex(0) };
//! controller.add_port(PortIndex(1), open("net_af_xdp1,iface=core0", core)?)?;
//!
//! let next_hop = Adjacency { port: PortIndex(1), mac: Some("02:00:00:00:00:01".parse()?) };
//! controller.set_adjacency(AdjacencyIndex(0), next_hop)?;
//! controller.set_route(InstanceIndex(0), "0.0.0.0/0".parse()?, Destination::Adjacency(AdjacencyIndex(0)))?;
//! loop {
//!     while let Some(event) = controller.poll_event() {
//!         println!("{event:?}");
//!     }
//!     controller.recv_punts(64, |punt| println!("{:?} on {:?}", punt.kind, punt.port));
//!     if controller.arm() {
//!         // sleep until controller.wakeup() is readable
//!     }
//! }
//! # }
//! ```
#![forbid(unsafe_code)]

mod api;
mod backoff;
mod build;
mod chain;
mod commands;
mod compiled;
mod controller;
mod counters;
mod drops;
mod edges;
mod egress;
mod graph;
mod handoff;
mod inspect;
mod message;
mod moves;
mod nodes;
mod police;
mod ports;
mod protection;
mod punt;
mod queues;
mod relocation;
mod routes;
mod shard;
#[cfg(feature = "stages")]
pub mod stages;
mod tables;
mod worker;

pub use api::*;
pub use backoff::ASSUMED_RATE;
pub use build::{Error, channel};
pub use chain::{FrameChain, WaitingFrame};
pub use compiled::{
    CompiledPolicy, Hits, MOST_CLASSES, PolicerKind, PolicerOwner, PolicerSettings, PolicyClass,
    PolicyCompiler, PolicyRules, RuleHits, SessionPolicer,
};
pub use controller::Controller;
pub use drops::DropReason;
pub use edges::{Edge, Node};
pub use inspect::{Held, Part, Piece, first_routes, host_routes};
pub use police::{Colour, Kept, Meter, MeterSettings};
pub use policy::{Overhead, PacketSettings, Rate};
pub use protection::{CIRCUIT, HoldDown, Level, Levels, Offence, Untrusted};
pub use punt::{NextHop, PuntClass, PuntKind, PuntLimits, Shown, Subject};
pub use queues::{PartState, PortPart, QueueRules, QueueState};
pub use relocation::{MOST_MOVED, Relocation};
pub use scheduler::{
    ASK_AT, AggregateState, Discipline, Limit, Management, QueueProfile, QueueSettings, WAITS,
    Waiting,
};
pub use tables::classes::ClassCounts;
pub use tables::fib;
pub use tables::groups::MAX_MEMBERS;
pub use worker::Worker;
