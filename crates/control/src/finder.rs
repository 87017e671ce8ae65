//! Finds sessions and subscribers by something that they have.

use core::hash::{BuildHasher, Hash};
use std::collections::BTreeSet;

/// Hash of what something is found by, and its index.
pub(crate) type Found = (u32, u32);

/// Indexes by the hash of what is looked for. Whoever looks compares what the session or subscriber itself has, so that this is in memory
/// once. It is a tree and no hash table because all sessions may have the same, such as one user name.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    found: BTreeSet<Found>,
    hasher: foldhash::fast::RandomState,
}

impl Finder {
    /// Place of an index that is found by `what`.
    pub fn place(&self, what: impl Hash, index: u32) -> Found {
        (self.hasher.hash_one(what) as u32, index)
    }

    /// Adds an index; whether it was not there.
    pub fn insert(&mut self, what: impl Hash, index: u32) -> bool {
        self.found.insert(self.place(what, index))
    }

    /// Removes an index; whether it was there.
    pub fn remove(&mut self, what: impl Hash, index: u32) -> bool {
        self.found.remove(&self.place(what, index))
    }

    /// Indexes of all that have this, and perhaps of others, in their order.
    pub fn of(&self, what: impl Hash) -> impl Iterator<Item = u32> {
        let (first, last) = (self.place(&what, 0), self.place(&what, u32::MAX));
        self.found.range(first..=last).map(|(_, index)| *index)
    }

    /// Every place.
    pub fn iter(&self) -> impl Iterator<Item = Found> {
        self.found.iter().copied()
    }

    /// Forgets all indexes.
    pub fn clear(&mut self) {
        self.found.clear();
    }
}
