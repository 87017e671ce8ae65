//! Work of the store's thread, without the thread. A simulation does the same with its own clock.

use super::{Disk, Record, Store, StoreError};

/// Size in octets above which a batch is synced before more is added.
const FULL_BATCH: usize = 1 << 20;

/// Result of a write: every submission up to this number is on the disk, or the reason why no more can be written at present.
/// What was taken waits then, and is tried again.
pub type Acknowledgement = Result<u64, StoreError>;

/// Combines queued submissions into batches of the store.
pub struct Writer<D: Disk> {
    store: Store<D>,
    /// Number of the last submission taken, from 1.
    taken: u64,
}

impl<D: Disk> Writer<D> {
    /// Creates a writer for a store without submissions.
    pub fn new(store: Store<D>) -> Self {
        Writer { store, taken: 0 }
    }

    /// Adds the next submission to the batch.
    pub fn take(&mut self, records: &[Record]) {
        records.iter().for_each(|record| self.store.append(record));
        self.taken += 1;
    }

    /// Whether the batch has to be written before more is added.
    pub fn is_full(&self) -> bool {
        self.store.pending() >= FULL_BATCH
    }

    /// Writes the batch and waits until it is on the disk.
    pub fn write(&mut self) -> Acknowledgement {
        self.store.sync().map(|()| self.taken)
    }

    /// Whether [`tend`](Self::tend) has work to do.
    pub fn wants_tending(&self) -> bool {
        self.store.wants_tending()
    }

    /// Does a slice of the store's other work.
    pub fn tend(&mut self) -> Result<(), StoreError> {
        self.store.tend()
    }

    /// Whether [`idle`](Self::idle) has work to do.
    pub fn wants_seal(&self) -> bool {
        self.store.wants_seal()
    }

    /// Handles idle time: seals the log, unless it is being rewritten.
    pub fn idle(&mut self) -> Result<(), StoreError> {
        match self.store.wants_tending() {
            true => Ok(()),
            false => self.store.seal(),
        }
    }
}
