//! The history: what happened to subscribers and to the system, kept for a configured time.
//!
//! [`Event`]s are put together into blocks. A block is written into the store in the same batch as the change that it tells
//! of, under a number that counts up; when that batch is on the disk it is handed to the history's own thread, and the store
//! forgets it when the history has it on the disk. So the history says of a session what the store says of it, whatever
//! dies in between, and a block that comes again is known by its number ([`Outbox`]). Nobody who dials in waits for the
//! history's disk, and when it cannot be written sessions come and go nevertheless; what then waits is bounded.
//!
//! The directory `history` beside the store holds segments of some MiB, named by the number of their first block. A
//! segment is a sequence of frames like the store's log, one for each block:
//!
//! ```text
//! header   "sluicehist" · version (u16) · salt (u64) · CRC32C of all that (u32)
//! frame    block (u64) · payload length (u32) · CRC32C of these two (u32) · CRC32C of the payload (u32) · payload
//! payload  events: length (u16) · event
//! filter   a frame of number 2^64-1: a Bloom filter of whom and what the segment's events name
//! trailer  filter's place (u64) · first and last time (u32 each) · first and last block (u64 each) · events (u32) ·
//!          lengths of IPv6 prefixes (u128, a bit for each) · CRC32C of all that (u32)
//! ```
//!
//! Filter and trailer are there once a segment is full. The last segment has none: it is read when the history is opened,
//! and what a crash cut short at its end is cut off; the store still has it. Damage elsewhere costs the events behind it
//! in that segment, and is told.

mod event;
mod filter;
mod log;
mod outbox;
mod queries;
mod rows;
mod search;
mod segment;
mod subject;
mod thread;

pub use event::{Address, Event, Families, Kind, Step, Subscriber, What, events};
pub use log::{Bounds, Log, Opened, Reader, Status};
pub(crate) use outbox::{BLOCK_PREFIX, Outbox};
pub(crate) use queries::HistoryQueries;
pub use search::{Held, Query, Until};
pub use subject::Subject;
pub(crate) use thread::HistoryThread;

#[cfg(test)]
mod tests;
