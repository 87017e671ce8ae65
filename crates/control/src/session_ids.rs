//! The PPPoE session ids of one access segment.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::pfcp::Lanes;

/// Time before a released id is allocated again, so that late frames of its last session match no session.
const QUARANTINE: Duration = Duration::from_secs(60);

/// Allocator of the session ids 1 to 65,534 of one access segment (RFC 2516 §4 reserves 0 and 0xffff), lane by lane.
///
/// Of a lane it allocates ids that were never used first, then the id that was released first, after its quarantine.
#[derive(Default)]
pub struct SessionIdAllocator {
    /// Lanes of which ids were allocated.
    lanes: BTreeMap<u8, LaneIds>,
}

/// Ids of a lane, which differ in their high octets.
#[derive(Default)]
struct LaneIds {
    /// Ids up to this one were allocated at least once.
    used_up_to: Option<u16>,
    freed: VecDeque<(u16, Duration)>,
}

impl LaneIds {
    /// First id of a lane after this one, or the first of all.
    fn after(lane: u8, id: Option<u16>) -> Option<u16> {
        let first = if lane == 0 { 256 } else { u16::from(lane) };
        let next = id.map_or(Some(first), |id| id.checked_add(256));
        next.filter(|id| *id <= SessionIdAllocator::LAST)
    }

    /// Ids of a lane after this one, in their order.
    fn all_after(lane: u8, id: Option<u16>) -> impl Iterator<Item = u16> {
        std::iter::successors(Self::after(lane, id), move |id| {
            Self::after(lane, Some(*id))
        })
    }

    fn allocate(&mut self, lane: u8, now: Duration) -> Option<u16> {
        if let Some(fresh) = Self::after(lane, self.used_up_to) {
            self.used_up_to = Some(fresh);
            return Some(fresh);
        }
        let has_rested = |freed: &mut (u16, Duration)| now >= freed.1 + QUARANTINE;
        self.freed.pop_front_if(has_rested).map(|(id, _)| id)
    }

    /// Whether [`LaneIds::allocate`] has an id.
    fn has_free(&self, lane: u8, now: Duration) -> bool {
        let mut freed = self.freed.front().into_iter();
        Self::after(lane, self.used_up_to).is_some()
            || freed.any(|(_, freed_at)| now >= *freed_at + QUARANTINE)
    }

    /// Marks an id as allocated. Those before it that were never used are free.
    fn reserve(&mut self, lane: u8, id: u16) {
        if self.used_up_to < Some(id) {
            let unused = Self::all_after(lane, self.used_up_to).take_while(|unused| *unused < id);
            self.freed.extend(unused.map(|id| (id, Duration::ZERO)));
            self.used_up_to = Some(id);
        }
        self.freed.retain(|(freed, _)| *freed != id);
    }

    fn allocated(&self, lane: u8) -> impl Iterator<Item = u16> {
        let freed: BTreeSet<u16> = self.freed.iter().map(|(id, _)| *id).collect();
        let used = Self::all_after(lane, None).take_while(|id| Some(*id) <= self.used_up_to);
        used.filter(move |id| !freed.contains(id))
    }
}

impl SessionIdAllocator {
    /// Largest id that is allocated.
    pub const LAST: u16 = 0xfffe;

    /// Creates an allocator in which the ids of `allocated` are in use, as after a restart.
    pub fn with_allocated(allocated: impl IntoIterator<Item = u16>) -> Self {
        let mut ids = SessionIdAllocator::default();
        let allocated: BTreeSet<u16> = allocated.into_iter().collect();
        allocated.into_iter().for_each(|id| ids.reserve(id));
        ids
    }

    /// Allocates an id of a lane, or of another one if every id of the lane is in use or in quarantine; `None` when that is so of
    /// every lane.
    pub fn allocate(&mut self, lane: u8, now: Duration) -> Option<u16> {
        let others = (0..=u8::MAX).filter(|other| *other != lane);
        let mut lanes = std::iter::once(lane).chain(others);
        lanes.find_map(|lane| self.lanes.entry(lane).or_default().allocate(lane, now))
    }

    /// Whether [`SessionIdAllocator::allocate`] has an id.
    pub fn has_free(&self, now: Duration) -> bool {
        let has_free = |lane| match self.lanes.get(&lane) {
            Some(ids) => ids.has_free(lane, now),
            None => true,
        };
        (0..=u8::MAX).any(has_free)
    }

    /// Releases an id.
    pub fn release(&mut self, id: u16, now: Duration) {
        let ids = self.lanes.entry(Lanes::of(id)).or_default();
        debug_assert!(id != 0 && Some(id) <= ids.used_up_to);
        ids.freed.push_back((id, now));
    }

    /// The ids that are in use.
    pub fn allocated(&self) -> impl Iterator<Item = u16> {
        let lanes = self.lanes.iter();
        lanes.flat_map(|(lane, ids)| ids.allocated(*lane))
    }

    /// Marks an id as allocated that a session has although the allocator does not know it.
    pub fn reserve(&mut self, id: u16) {
        let lane = Lanes::of(id);
        self.lanes.entry(lane).or_default().reserve(lane, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_quarantined_and_none_is_allocated_twice() {
        let mut ids = SessionIdAllocator::default();
        let t = Duration::from_secs(1000);
        let all: BTreeSet<u16> = std::iter::from_fn(|| ids.allocate(9, t)).collect();
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (65_534, Some(&1), Some(&0xfffe))
        );
        assert_eq!(ids.allocated().count(), 65_534);
        assert!(!ids.has_free(t + QUARANTINE), "none was released");
        ids.release(7, t);
        assert!(!ids.has_free(t) && ids.has_free(t + QUARANTINE));
        ids.release(9, t + QUARANTINE / 2);
        assert_eq!(
            ids.allocate(7, t + QUARANTINE / 2),
            None,
            "7 is in quarantine"
        );
        assert_eq!(ids.allocate(7, t + QUARANTINE), Some(7));
        assert_eq!(ids.allocate(7, t + QUARANTINE), None, "9 is in quarantine");
        assert_eq!(ids.allocated().count(), 65_533);
    }

    #[test]
    fn an_id_is_of_the_wanted_lane_as_long_as_that_has_one() {
        let mut ids = SessionIdAllocator::default();
        let t = Duration::from_secs(1000);
        for (lane, most) in [(0, 255), (3, 256), (255, 255)] {
            let of_lane: Vec<u16> = (0..most).filter_map(|_| ids.allocate(lane, t)).collect();
            assert!(of_lane.iter().all(|id| Lanes::of(*id) == lane));
            let other = ids.allocate(lane, t).expect("other lanes have ids");
            assert_ne!(Lanes::of(other), lane);
        }
        ids.release(259, t);
        assert_eq!(ids.allocate(3, t + QUARANTINE), Some(259));
    }

    #[test]
    fn a_restored_allocator_allocates_only_free_ids() {
        let mut ids = SessionIdAllocator::with_allocated([3, 5, 3 + 2 * 256]);
        assert!(ids.allocated().eq([3, 3 + 2 * 256, 5]));
        let mut next = |lane| ids.allocate(lane, QUARANTINE);
        assert_eq!(next(6), Some(6));
        assert_eq!(next(5), Some(5 + 256));
        assert_eq!(next(3), Some(3 + 3 * 256), "fresh ids first");
        let others: BTreeSet<u16> = std::iter::from_fn(|| next(3)).collect();
        assert_eq!(others.len(), 65_534 - 6);
        assert!(others.contains(&(3 + 256)) && !others.contains(&5));
    }
}
