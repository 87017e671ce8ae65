//! History: events of subscribers and of the system, kept for a configured time.
//!
//! [`Event`]s are collected in blocks with increasing numbers. A block is stored in the same batch as the change that it reports. When
//! that batch is on disk, the block goes to the history's thread; when the history has it on disk, the store deletes it. So the history
//! agrees with the store, whatever crashes, and a repeated block is recognised by its number ([`Outbox`]). New sessions do not wait for
//! the history's disk. If it cannot be written, sessions continue to begin and end, and the size of waiting events is limited.
//!
//! The directory `history` beside the store has an SQLite database, `events.db`:
//!
//! ```text
//! event     id: number of its block (48 bits) and its place in it (16 bits) · record: the event, and bindings that it does not contain itself
//! segment   blocks whose keys stand together and which leave together: first and last block, events, first and last time, and the lengths
//!           of prefixes that occur as pairs of family and length
//! key       segment · key ([`keys::Key`], or that of a sum: [`sums`]) · event
//! progress  number of the last block · number of the last one whose events are in `trouble`, and time of the first one of these
//! trouble   hour · group of lines · how many sessions ended, failed and were refused
//! ```
//!
//! and one of figures over time, `figures.db`:
//!
//! ```text
//! series    name of the figure · of what · unit
//! figure    step (10 or 300 s) · series · time · mean and highest value in that time
//! ```
//!
//! A new second of events changes keys of the last segment alone, so it costs the same however long the history is. A question looks for its
//! keys in each segment of the time that it asks about, and events that are only counted are not read: sums say of which kind they are.

mod backup;
mod bindings;
mod candidates;
mod database;
mod earlier;
mod event;
mod figures;
mod follow;
mod keys;
mod lines;
mod outbox;
mod planes;
mod queries;
mod rows;
mod search;
mod sqlite;
mod subject;
mod sums;
mod thread;
mod trouble;

pub use bindings::parse_prefix;
pub use database::{Bounds, Database, Reader, Status};
pub use event::{Event, Kind, Step, Subscriber, Traffic, What, events};
pub(crate) use figures::SAMPLE;
pub use figures::{Figure, FigureQuery, Figures, Measure, Sample, Series};
pub(crate) use outbox::{BLOCK_PREFIX, Outbox};
pub(crate) use queries::HistoryQueries;
pub(crate) use rows::others as other_bindings;
pub use search::{EFFORT, Extent, Held, Query, Until};
pub use subject::Subject;
pub(crate) use thread::HistoryThread;

#[cfg(test)]
mod tests;
