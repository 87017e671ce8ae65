//! Finds sessions by something that they have.

use core::hash::{BuildHasher, Hash};
use std::collections::BTreeSet;

/// Hash of what a session is found by, and the session's index.
pub(crate) type Found = (u32, u32);

/// Indexes of sessions by the hash of what they are found by. Whoever looks for a session compares what the session itself has, so that
/// this is in memory once. It is a tree and no hash table because all sessions may have the same, such as one user name.
#[derive(Default)]
pub(super) struct Finder {
    found: BTreeSet<Found>,
    hasher: foldhash::fast::RandomState,
}

impl Finder {
    /// Place of a session that is found by `what`.
    pub fn place(&self, what: impl Hash, index: u32) -> Found {
        (self.hasher.hash_one(what) as u32, index)
    }

    /// Adds a session; whether it was not there.
    pub fn insert(&mut self, what: impl Hash, index: u32) -> bool {
        self.found.insert(self.place(what, index))
    }

    /// Removes a session; whether it was there.
    pub fn remove(&mut self, what: impl Hash, index: u32) -> bool {
        self.found.remove(&self.place(what, index))
    }

    /// Sessions that may have this, and perhaps others, in the order of their indexes.
    pub fn of(&self, what: impl Hash) -> impl Iterator<Item = u32> {
        let (first, last) = (self.place(&what, 0), self.place(&what, u32::MAX));
        self.found.range(first..=last).map(|(_, index)| *index)
    }

    /// Every place.
    pub fn iter(&self) -> impl Iterator<Item = Found> {
        self.found.iter().copied()
    }

    /// Forgets all sessions.
    pub fn clear(&mut self) {
        self.found.clear();
    }
}
