//! Blocks that were allocated once and are free again.

use std::collections::{BTreeMap, HashMap};

/// Numbers of blocks, the longest free first. Each can also be taken out of turn.
#[derive(Debug, Default)]
pub(super) struct Returned {
    by_age: BTreeMap<u64, u64>,
    ages: HashMap<u64, u64>,
    next: u64,
}

impl Returned {
    pub fn push(&mut self, number: u64) {
        self.by_age.insert(self.next, number);
        self.ages.insert(number, self.next);
        self.next += 1;
    }

    pub fn pop(&mut self) -> Option<u64> {
        let (_, number) = self.by_age.pop_first()?;
        self.ages.remove(&number);
        Some(number)
    }

    pub fn remove(&mut self, number: u64) {
        if let Some(age) = self.ages.remove(&number) {
            self.by_age.remove(&age);
        }
    }
}
