//! The PPPoE session ids of one access segment.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

/// How long a freed id is left alone while others are there, so that a late frame of its last owner meets nobody.
const REST: Duration = Duration::from_secs(60);

/// The ids 1 to 65,535 of an access segment (RFC 2516 §4: 0 and 0xffff are not given out).
///
/// Ids that were never used go first; then the one that was freed first, once it has rested.
#[derive(Default)]
pub struct Bank {
    /// Ids up to this one were given out at least once.
    used_up_to: u16,
    freed: VecDeque<(u16, Duration)>,
}

impl Bank {
    /// The largest id that is given out.
    pub const LAST: u16 = 0xfffe;

    /// A bank in which `taken` are in use, as after a restart.
    pub fn with_taken(taken: impl IntoIterator<Item = u16>) -> Self {
        let taken: BTreeSet<u16> = taken.into_iter().collect();
        let used_up_to = taken.last().copied().unwrap_or(0);
        let freed = (1..used_up_to)
            .filter(|id| !taken.contains(id))
            .map(|id| (id, Duration::ZERO))
            .collect();
        Bank { used_up_to, freed }
    }

    /// Takes an id; `None` when all are in use or resting.
    pub fn take(&mut self, now: Duration) -> Option<u16> {
        if self.used_up_to < Self::LAST {
            self.used_up_to += 1;
            return Some(self.used_up_to);
        }
        let (_, freed_at) = self.freed.front()?;
        if now < *freed_at + REST {
            return None;
        }
        self.freed.pop_front().map(|(id, _)| id)
    }

    /// Gives an id back.
    pub fn free(&mut self, id: u16, now: Duration) {
        debug_assert!(id != 0 && id <= self.used_up_to);
        self.freed.push_back((id, now));
    }

    /// The ids that are in use.
    pub fn taken(&self) -> impl Iterator<Item = u16> {
        let freed: BTreeSet<u16> = self.freed.iter().map(|(id, _)| *id).collect();
        (1..=self.used_up_to).filter(move |id| !freed.contains(id))
    }

    /// Takes one certain id, which a session has although it is not taken.
    pub fn claim(&mut self, id: u16) {
        let unused = self.used_up_to + 1..id;
        self.freed.extend(unused.map(|id| (id, Duration::ZERO)));
        self.used_up_to = self.used_up_to.max(id);
        self.freed.retain(|(freed, _)| *freed != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rest_and_none_is_given_twice() {
        let mut bank = Bank::default();
        let t = Duration::from_secs(1000);
        let all: BTreeSet<u16> = std::iter::from_fn(|| bank.take(t)).collect();
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (65_534, Some(&1), Some(&0xfffe))
        );
        assert_eq!(bank.taken().count(), 65_534);
        bank.free(7, t);
        bank.free(9, t + REST / 2);
        assert_eq!(bank.take(t + REST / 2), None, "7 rests");
        assert_eq!(bank.take(t + REST), Some(7));
        assert_eq!(bank.take(t + REST), None, "9 rests");
        assert_eq!(bank.taken().count(), 65_533);
    }

    #[test]
    fn a_restored_bank_gives_out_what_nobody_has() {
        let mut bank = Bank::with_taken([3, 5]);
        assert!(bank.taken().eq([3, 5]));
        assert_eq!(bank.take(REST), Some(6), "fresh ids first");
        bank.used_up_to = Bank::LAST;
        let rest: Vec<u16> = std::iter::from_fn(|| bank.take(REST)).collect();
        assert_eq!(rest, [1, 2, 4]);
    }
}
