//! What is remembered of subscribers beyond their sessions, in memory and in the store.

use crate::entry::LineIds;
use crate::journal::Journal;
use crate::store::Record as StoreRecord;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Value that is remembered.
pub(crate) trait Remember {
    /// Prefix of its keys in the store.
    const PREFIX: &'static [u8];

    /// Time in seconds since 1970. The oldest value gives way first.
    fn since(&self) -> u32;

    /// Encodes it for the store.
    fn to_bytes(&self) -> Vec<u8>;
}

/// Values by encoded key. The store has the same ones.
#[derive(Debug)]
pub(crate) struct Remembered<T> {
    by_key: BTreeMap<Arc<[u8]>, T>,
    by_age: BTreeSet<(u32, Arc<[u8]>)>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Remembered {
            by_key: BTreeMap::new(),
            by_age: BTreeSet::new(),
        }
    }
}

impl<T: Remember> Remembered<T> {
    /// Values from the store.
    pub fn resume(stored: Vec<(Arc<[u8]>, T)>) -> Self {
        let by_age = stored.iter();
        Remembered {
            by_age: by_age.map(|(k, v)| (v.since(), k.clone())).collect(),
            by_key: stored.into_iter().collect(),
        }
    }

    pub fn get(&self, key: &[u8]) -> Option<&T> {
        self.by_key.get(key)
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The oldest value, with its key.
    pub fn oldest(&self) -> Option<(&Arc<[u8]>, &T)> {
        let (_, key) = self.by_age.first()?;
        Some((key, &self.by_key[key]))
    }

    #[cfg(test)]
    pub fn keys(&self) -> Vec<Vec<u8>> {
        assert_eq!(self.by_age.len(), self.by_key.len());
        self.by_key.keys().map(|key| store_key::<T>(key)).collect()
    }

    /// Keeps a value in place of an earlier one with its key. If there are `most`, the oldest ones give way; then it returns true.
    pub fn put(&mut self, key: Arc<[u8]>, value: T, most: usize, journal: &mut Journal) -> bool {
        self.forget(&key);
        let is_full = self.by_key.len() >= most;
        while self.by_key.len() >= most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_key.remove(&oldest);
            journal.add(StoreRecord::delete(store_key::<T>(&oldest)));
        }
        journal.add(StoreRecord::put(store_key::<T>(&key), value.to_bytes()));
        self.by_age.insert((value.since(), key.clone()));
        self.by_key.insert(key, value);
        is_full
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &[u8], journal: &mut Journal) {
        if self.forget(key) {
            journal.add(StoreRecord::delete(store_key::<T>(key)));
        }
    }

    fn forget(&mut self, key: &[u8]) -> bool {
        let Some((key, value)) = self.by_key.remove_entry(key) else {
            return false;
        };
        self.by_age.remove(&(value.since(), key))
    }
}

/// Access line in the key of a value. Names, because numbers of ports change.
#[derive(Debug, Serialize)]
pub(crate) struct KeyLine<'a> {
    pub user_plane: &'a str,
    pub port: &'a str,
    /// Outer and inner VLAN id.
    pub vlans: (Option<u16>, Option<u16>),
    pub ids: &'a LineIds,
}

/// Encodes the key of a value, so that it differs from every other one.
pub(crate) fn encode_key(key: &impl Serialize) -> Arc<[u8]> {
    let octets = postcard::to_stdvec(key);
    octets
        .expect("a key has a size that serde can state")
        .into()
}

fn store_key<T: Remember>(key: &[u8]) -> Vec<u8> {
    [T::PREFIX, key].concat()
}
