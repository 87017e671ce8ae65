//! Hierarchical scheduler of a port (HQoS): which packet leaves next, and when.
//!
//! A tree: the port, under it aggregates (an access node, a VLAN of many homes), under these other aggregates or subscribers, and under each
//! subscriber up to eight classes ([`CLASSES`]). Each level has a rate that it does not exceed. What is there for a level is shared by weight among those of its
//! children that have packets, and what one does not use another has. Below its committed rate, and for packets of a strict class, a
//! subscriber comes before the others. What waits in a class for too long is dropped or marked, by one of several ways ([`Management`]).
//!
//! The scheduler has neither clock nor packets of its own: the caller says the time, in ticks that never go back, and what a packet is
//! ([`Packet`], [`Chain`]). The user plane's workers call it between bursts; tests and simulations, on a clock of their own.
//! `docs/decisions/0043-queues.md` says why it is as it is.
//!
//! ```
//! use scheduler::*;
//! use std::collections::VecDeque;
//!
//! struct Frame(u32, u32);
//! impl Packet for Frame {
//!     fn octets(&self) -> u32 { self.0 }
//!     fn stamp(&self) -> u32 { self.1 }
//!     fn set_stamp(&mut self, stamp: u32) { self.1 = stamp }
//! }
//!
//! let hz = 1_000_000_000;
//! let mut scheduler = Scheduler::<VecDeque<Frame>>::new(Settings { hz, rate: None, most_packets: 1000, key: 7 });
//! let profile = scheduler.add_profile(&QueueProfile::default());
//! let home = scheduler.add(PORT, &SubscriberSettings {
//!     profile,
//!     rate: Some(policy::Rate::kbps(8_000)),
//!     committed: None,
//!     weight: 1,
//!     header: 0,
//! });
//! // 8 Mbit/s are an octet each microsecond: the second packet waits for 1,000 of them
//! for _ in 0..3 {
//!     let _ = scheduler.enqueue(home, 0, Frame(1000, 0), 5_000_000);
//! }
//! let mut left = Vec::new();
//! scheduler.dequeue(5_000_000, 64, &mut |_, frame: Frame| left.push(frame.0), &mut |_, _| ());
//! assert_eq!(left.len(), 2, "one at once, and one that makes up for a millisecond without packets");
//! assert_eq!(scheduler.waiting(), 1);
//! let at = scheduler.deadline().unwrap();
//! scheduler.dequeue(at, 64, &mut |_, frame: Frame| left.push(frame.0), &mut |_, _| ());
//! assert_eq!(left.len(), 3);
//! ```
#![forbid(unsafe_code)]

mod blocks;
mod calendar;
mod child;
mod choice;
mod codel;
mod dual;
mod flows;
mod lines;
mod measure;
mod node;
mod packet;
mod profile;
mod queue;
mod room;
mod schedule;
mod shared;
mod sub_queues;
mod subscriber;
mod tree;
mod turns;
mod wait;

pub use measure::{ASK_AT, AggregateState, LEAST_WAIT, Limit, Waiting};
pub use node::{AggregateIndex, AggregateSettings, PORT};
pub use packet::{Chain, Ecn, Packet};
pub use profile::{CLASSES, Discipline, Management, QueueProfile, QueueSettings};
pub use queue::{State, WAITS};
pub use schedule::{Dropped, Refused};
pub use shared::SharedRate;
pub use subscriber::{ProfileIndex, SubscriberIndex, SubscriberSettings};
pub use tree::{Scheduler, Settings};
