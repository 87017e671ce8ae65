//! The PPPoE session ids of one access segment.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

/// Time before a released id is allocated again, so that late frames of its last session match no session.
const QUARANTINE: Duration = Duration::from_secs(60);

/// Allocator of the session ids 1 to 65,534 of one access segment (RFC 2516 §4 reserves 0 and 0xffff).
///
/// It allocates ids that were never used first, then the id that was released first, after its quarantine.
#[derive(Default)]
pub struct SessionIdAllocator {
    /// Ids up to this one were allocated at least once.
    used_up_to: u16,
    freed: VecDeque<(u16, Duration)>,
}

impl SessionIdAllocator {
    /// Largest id that is allocated.
    pub const LAST: u16 = 0xfffe;

    /// Creates an allocator in which the ids of `allocated` are in use, as after a restart.
    pub fn with_allocated(allocated: impl IntoIterator<Item = u16>) -> Self {
        let allocated: BTreeSet<u16> = allocated.into_iter().collect();
        let used_up_to = allocated.last().copied().unwrap_or(0);
        let freed = (1..used_up_to)
            .filter(|id| !allocated.contains(id))
            .map(|id| (id, Duration::ZERO))
            .collect();
        SessionIdAllocator { used_up_to, freed }
    }

    /// Allocates an id; `None` when every id is in use or in quarantine.
    pub fn allocate(&mut self, now: Duration) -> Option<u16> {
        if self.used_up_to < Self::LAST {
            self.used_up_to += 1;
            return Some(self.used_up_to);
        }
        let (_, freed_at) = self.freed.front()?;
        if now < *freed_at + QUARANTINE {
            return None;
        }
        self.freed.pop_front().map(|(id, _)| id)
    }

    /// Releases an id.
    pub fn release(&mut self, id: u16, now: Duration) {
        debug_assert!(id != 0 && id <= self.used_up_to);
        self.freed.push_back((id, now));
    }

    /// The ids that are in use.
    pub fn allocated(&self) -> impl Iterator<Item = u16> {
        let freed: BTreeSet<u16> = self.freed.iter().map(|(id, _)| *id).collect();
        (1..=self.used_up_to).filter(move |id| !freed.contains(id))
    }

    /// Marks an id as allocated that a session has although the allocator does not know it.
    pub fn reserve(&mut self, id: u16) {
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
    fn ids_are_quarantined_and_none_is_allocated_twice() {
        let mut ids = SessionIdAllocator::default();
        let t = Duration::from_secs(1000);
        let all: BTreeSet<u16> = std::iter::from_fn(|| ids.allocate(t)).collect();
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (65_534, Some(&1), Some(&0xfffe))
        );
        assert_eq!(ids.allocated().count(), 65_534);
        ids.release(7, t);
        ids.release(9, t + QUARANTINE / 2);
        assert_eq!(ids.allocate(t + QUARANTINE / 2), None, "7 is in quarantine");
        assert_eq!(ids.allocate(t + QUARANTINE), Some(7));
        assert_eq!(ids.allocate(t + QUARANTINE), None, "9 is in quarantine");
        assert_eq!(ids.allocated().count(), 65_533);
    }

    #[test]
    fn a_restored_allocator_allocates_only_free_ids() {
        let mut ids = SessionIdAllocator::with_allocated([3, 5]);
        assert!(ids.allocated().eq([3, 5]));
        assert_eq!(ids.allocate(QUARANTINE), Some(6), "fresh ids first");
        ids.used_up_to = SessionIdAllocator::LAST;
        let others: Vec<u16> = std::iter::from_fn(|| ids.allocate(QUARANTINE)).collect();
        assert_eq!(others, [1, 2, 4]);
    }
}
