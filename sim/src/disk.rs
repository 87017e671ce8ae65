//! The store's disk: what was written is safe some time later, and what was not yet is lost with the control plane.

use control::store::Record;
use core::time::Duration;
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};

/// A disk with what is on it, and what is on its way there.
#[derive(Default)]
pub struct Disk {
    /// What a control plane that starts now would find.
    pub live: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Batches that are not acknowledged, in their order.
    pending: VecDeque<Vec<Record>>,
    /// How many of them the sync under way covers.
    syncing: usize,
    acknowledged: u64,
    /// It does not answer.
    pub stalled: bool,
}

impl Disk {
    /// Takes a batch.
    pub fn write(&mut self, records: Vec<Record>) {
        self.pending.push_back(records);
    }

    /// Begins a sync if there is something to sync and none under way; how long it takes.
    pub fn sync(&mut self, random: &mut StdRng) -> Option<Duration> {
        if self.syncing > 0 || self.pending.is_empty() || self.stalled {
            return None;
        }
        self.syncing = self.pending.len();
        let micros = match random.random_range(0..100) {
            0 => random.random_range(10_000..500_000),
            _ => random.random_range(100..3_000),
        };
        Some(Duration::from_micros(micros))
    }

    /// The sync is over: the number of the last batch that is safe. `None` while the disk does not answer.
    pub fn synced(&mut self) -> Option<u64> {
        if self.stalled {
            self.syncing = 0;
            return None;
        }
        for _ in 0..std::mem::take(&mut self.syncing) {
            self.keep_one();
            self.acknowledged += 1;
        }
        Some(self.acknowledged)
    }

    fn keep_one(&mut self) {
        for Record { key, value } in self.pending.pop_front().into_iter().flatten() {
            match value {
                Some(value) => drop(self.live.insert(key, value)),
                None => drop(self.live.remove(&key)),
            }
        }
    }

    /// The writer dies. Of what was being synced, some of the first batches may have made it.
    pub fn crash(&mut self, random: &mut StdRng) {
        for _ in 0..random.random_range(0..=self.syncing) {
            self.keep_one();
        }
        self.pending.clear();
        (self.syncing, self.acknowledged) = (0, 0);
    }
}
