//! History: events of subscribers and of the system, kept for a configured time.
//!
//! [`Event`]s are collected in blocks with increasing numbers. A block is stored in the same batch as the change that it reports. When
//! that batch is on disk, the block goes to the history's thread; when the history has it on disk, the store deletes it. So the history
//! agrees with the store, whatever crashes, and a repeated block is recognised by its number ([`Outbox`]). New sessions do not wait for
//! the history's disk. If it cannot be written, sessions continue to begin and end, and the size of waiting events is limited.
//!
//! The directory `history` beside the store has segments of some MiB, named by the number of their first block. A segment is a sequence
//! of frames like the store's log, one for each block:
//!
//! ```text
//! header   "sluicehist" · version (u16) · salt (u64) · CRC32C of all that (u32)
//! frame    block (u64) · payload length (u32) · CRC32C of these two (u32) · CRC32C of the payload (u32) · payload
//! payload  events: length (u16) · event · bindings that the event does not contain itself; none for most events
//! filter   a frame of number 2^64-2: a Bloom filter of the keys of the segment's events; earlier versions wrote one of number
//!          2^64-1, without the access lines
//! trailer  filter's offset (u64) · first and last time (u32 each) · first and last block (u64 each) · events (u32) ·
//!          lengths of IPv6 prefixes (u128, a bit for each) · CRC32C of all that (u32)
//! ```
//!
//! A full segment has a filter and a trailer. The last segment has none: it is read when the history is opened, and an incomplete block at
//! its end is removed, which the store still has. Damage elsewhere loses the later events of that segment, and is reported.

mod bindings;
mod event;
mod filter;
mod lines;
mod log;
mod outbox;
mod queries;
mod rows;
mod search;
mod segment;
mod subject;
mod thread;

pub use bindings::parse_prefix;
pub use event::{Event, Kind, Step, Subscriber, What, events};
pub use log::{Bounds, Log, Opened, Reader, Status};
pub(crate) use outbox::{BLOCK_PREFIX, Outbox};
pub(crate) use queries::HistoryQueries;
pub(crate) use rows::others as other_bindings;
pub use search::{Held, Query, Until};
pub use subject::Subject;
pub(crate) use thread::HistoryThread;

#[cfg(test)]
mod tests;
