//! What the store's thread does with what it is given, without the thread: a simulation does the same on its own clock.

use super::{Disk, Record, Store, StoreError};

/// A batch grows to about this size before it is synced, if more waits.
const FULL_BATCH: usize = 1 << 20;

/// What the writer says: every submission up to and including this number is on the disk, or why no more is for now. What
/// was taken waits then, and is tried again.
pub type Acknowledgement = Result<u64, StoreError>;

/// Makes one batch of the store of the submissions that have queued up.
pub struct Writer<D: Disk> {
    store: Store<D>,
    /// The last submission that was taken; they count from 1.
    taken: u64,
}

impl<D: Disk> Writer<D> {
    /// Of a store to which nothing was submitted.
    pub fn new(store: Store<D>) -> Self {
        Writer { store, taken: 0 }
    }

    /// Takes the next submission into the batch.
    pub fn take(&mut self, records: &[Record]) {
        records.iter().for_each(|record| self.store.append(record));
        self.taken += 1;
    }

    /// Whether the batch is to be written before more is taken.
    pub fn is_full(&self) -> bool {
        self.store.pending() >= FULL_BATCH
    }

    /// Writes the batch, and waits until it is on the disk.
    pub fn write(&mut self) -> Acknowledgement {
        self.store.sync().map(|()| self.taken)
    }

    /// Whether [`tend`](Self::tend) has something to do.
    pub fn wants_tending(&self) -> bool {
        self.store.wants_tending()
    }

    /// A slice of whatever the store has to do besides.
    pub fn tend(&mut self) -> Result<(), StoreError> {
        self.store.tend()
    }

    /// Whether [`idle`](Self::idle) has something to do.
    pub fn wants_seal(&self) -> bool {
        self.store.wants_seal()
    }

    /// Nothing has come for a while: seals the log, unless it is being rewritten.
    pub fn idle(&mut self) -> Result<(), StoreError> {
        match self.store.wants_tending() {
            true => Ok(()),
            false => self.store.seal(),
        }
    }
}
