//! The PPPoE session ids of one access segment.

use crate::entry::LineIds;
use crate::lanes::LaneChoice;
use core::hash::BuildHasher;
use core::time::Duration;
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use wire::eth::{MacAddr, Tags};
use wire::pfcp::Lanes;

/// Time before a released id is allocated again, so that late frames of its last session match no session.
const QUARANTINE: Duration = Duration::from_secs(60);

/// Ids of one home that are in quarantine at the same time. A home that begins and ends sessions all the time gets its own ids again:
/// its late frames concern nobody else.
const OWN: usize = 8;

/// Entries of a lane's list, which has 256 ids, before those are taken out that say nothing any more.
const MOST_ENTRIES: usize = 1024;

/// A home that has sessions of the segment, by both VLAN ids, or else by VLAN id and circuit and remote id, or else by VLAN id and MAC
/// address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Home(u64);

impl Home {
    /// Nobody: an id that is not known to have had an owner.
    pub const NOBODY: Home = Home(0);

    /// The home that sends with these tags from this address, on the line of these ids if they are trusted.
    pub(crate) fn of(tags: &Tags, mac: MacAddr, line: &LineIds) -> Self {
        let outer = tags.outer.map_or(0, |tag| u64::from(tag.vid) + 1);
        let MacAddr([a, b, c, d, e, f]) = mac;
        let whose = match tags.inner {
            Some(tag) => u64::from(tag.vid) + 1,
            // Two lines with the same hash have one home's few resting ids between them, and nothing worse.
            None if line.is_known() => 1 << 62 | FixedState::default().hash_one(line) >> 16,
            None => 1 << 63 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
        };
        Home(outer << 48 | whose)
    }
}

/// Allocator of the session ids 1 to 65,534 of one access segment (RFC 2516 §4 reserves 0 and 0xffff), lane by lane.
///
/// Of a lane it allocates ids that were never used first, then the id that was released first, after its quarantine. A home that has
/// [`OWN`] ids in quarantine gets one of these, so that it cannot use up the segment's.
#[derive(Default)]
pub struct SessionIdAllocator {
    /// Lanes of which ids were allocated.
    lanes: BTreeMap<u8, LaneIds>,
    /// When each free id was released.
    freed: HashMap<u16, Duration>,
    /// Ids in quarantine of each home, at most [`OWN`], in the order of their release.
    own: HashMap<Home, Vec<u16>>,
}

/// Ids of a lane, which differ in their high octets.
#[derive(Default)]
struct LaneIds {
    /// Ids up to this one were allocated at least once.
    used_up_to: Option<u16>,
    /// Released ids in the order of their release. The first one is free; others may have been allocated since to the home that had them.
    freed: VecDeque<Freed>,
}

#[derive(Clone, Copy)]
struct Freed {
    id: u16,
    at: Duration,
    /// Whose it was last.
    home: Home,
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

    /// The next id that was never used.
    fn fresh(&mut self, lane: u8) -> Option<u16> {
        let fresh = Self::after(lane, self.used_up_to)?;
        self.used_up_to = Some(fresh);
        Some(fresh)
    }

    /// The id that was released first, if its quarantine is over.
    fn rested(&self, now: Duration) -> Option<Freed> {
        let first = self.freed.front().copied();
        first.filter(|freed| now >= freed.at + QUARANTINE)
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

    /// Allocates an id of the best lane that has one: an id of a lane may be in use or in quarantine. `None` when every id is, and of the
    /// home itself none is in quarantine.
    pub fn allocate(&mut self, choice: &LaneChoice, home: Home, now: Duration) -> Option<u16> {
        if self.own.get(&home).is_some_and(|own| own.len() >= OWN) {
            return self.allocate_own(choice, home);
        }
        let found = choice.all().find_map(|lane| self.allocate_of(lane, now));
        found.or_else(|| self.allocate_own(choice, home))
    }

    fn allocate_of(&mut self, lane: u8, now: Duration) -> Option<u16> {
        let ids = self.lanes.entry(lane).or_default();
        if let Some(fresh) = ids.fresh(lane) {
            return Some(fresh);
        }
        let Freed { id, home, .. } = ids.rested(now)?;
        self.take(id, home);
        Some(id)
    }

    /// Of the home's ids in quarantine the one of the best lane, and of these the one that has been there for longest.
    fn allocate_own(&mut self, choice: &LaneChoice, home: Home) -> Option<u16> {
        let own = self.own.get(&home)?.iter().copied();
        let id = own.min_by_key(|id| choice.rank(Lanes::of(*id)))?;
        self.take(id, home);
        Some(id)
    }

    /// Marks a free id as allocated, which `home` had last.
    fn take(&mut self, id: u16, home: Home) {
        self.freed.remove(&id);
        if let Some(own) = self.own.get_mut(&home) {
            own.retain(|other| *other != id);
            if own.is_empty() {
                self.own.remove(&home);
            }
        }
        self.tidy(Lanes::of(id));
    }

    /// Takes entries from the front of a lane's list whose ids were allocated meanwhile.
    fn tidy(&mut self, lane: u8) {
        let ids = self.lanes.entry(lane).or_default();
        while let Some(Freed { id, at, .. }) = ids.freed.front()
            && self.freed.get(id) != Some(at)
        {
            ids.freed.pop_front();
        }
    }

    /// Whether [`SessionIdAllocator::allocate`] has an id for a home.
    pub fn has_free(&self, home: impl FnOnce() -> Home, now: Duration) -> bool {
        let has_free = |lane| match self.lanes.get(&lane) {
            Some(ids) => {
                LaneIds::after(lane, ids.used_up_to).is_some() || ids.rested(now).is_some()
            }
            None => true,
        };
        (0..=u8::MAX).any(has_free) || self.own.contains_key(&home())
    }

    /// Releases an id that a home had.
    pub fn release(&mut self, id: u16, home: Home, now: Duration) {
        let lane = Lanes::of(id);
        let ids = self.lanes.entry(lane).or_default();
        debug_assert!(id != 0 && Some(id) <= ids.used_up_to);
        ids.freed.push_back(Freed { id, at: now, home });
        self.freed.insert(id, now);
        // Entries of ids that were allocated meanwhile may stand behind one that nobody needs.
        if ids.freed.len() > MOST_ENTRIES {
            let freed = &self.freed;
            ids.freed
                .retain(|entry| freed.get(&entry.id) == Some(&entry.at));
        }
        // A home with several sessions may release more than are counted.
        if home != Home::NOBODY
            && let own = self.own.entry(home).or_default()
            && own.len() < OWN
        {
            own.push(id);
        }
        self.tidy(lane);
    }

    /// The ids that are in use.
    pub fn allocated(&self) -> impl Iterator<Item = u16> {
        let lanes = self.lanes.iter();
        let used = lanes.flat_map(|(lane, ids)| {
            let all = LaneIds::all_after(*lane, None);
            all.take_while(|id| Some(*id) <= ids.used_up_to)
        });
        used.filter(|id| !self.freed.contains_key(id))
    }

    /// Marks an id as allocated that a session has although the allocator does not know it.
    pub fn reserve(&mut self, id: u16) {
        let lane = Lanes::of(id);
        let ids = self.lanes.entry(lane).or_default();
        if ids.used_up_to < Some(id) {
            let unused = LaneIds::all_after(lane, ids.used_up_to).take_while(|unused| *unused < id);
            for id in unused {
                let (at, home) = (Duration::ZERO, Home::NOBODY);
                ids.freed.push_back(Freed { id, at, home });
                self.freed.insert(id, at);
            }
            ids.used_up_to = Some(id);
        }
        let freed = ids.freed.iter().find(|freed| freed.id == id);
        let home = freed.map_or(Home::NOBODY, |freed| freed.home);
        self.take(id, home);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOBODY: Home = Home::NOBODY;

    fn of(lane: u8) -> LaneChoice {
        LaneChoice::new(Lanes::even(4), lane)
    }

    #[test]
    fn ids_are_quarantined_and_none_is_allocated_twice() {
        let mut ids = SessionIdAllocator::default();
        let t = Duration::from_secs(1000);
        let all: BTreeSet<u16> = std::iter::from_fn(|| ids.allocate(&of(9), NOBODY, t)).collect();
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (65_534, Some(&1), Some(&0xfffe))
        );
        assert_eq!(ids.allocated().count(), 65_534);
        assert!(
            !ids.has_free(|| NOBODY, t + QUARANTINE),
            "none was released"
        );
        ids.release(7, NOBODY, t);
        assert!(!ids.has_free(|| NOBODY, t) && ids.has_free(|| NOBODY, t + QUARANTINE));
        ids.release(9, NOBODY, t + QUARANTINE / 2);
        assert_eq!(
            ids.allocate(&of(7), NOBODY, t + QUARANTINE / 2),
            None,
            "7 is in quarantine"
        );
        assert_eq!(ids.allocate(&of(7), NOBODY, t + QUARANTINE), Some(7));
        assert_eq!(
            ids.allocate(&of(7), NOBODY, t + QUARANTINE),
            None,
            "9 is in quarantine"
        );
        assert_eq!(ids.allocated().count(), 65_533);
    }

    #[test]
    fn an_id_is_of_the_wanted_lane_as_long_as_that_has_one() {
        let mut ids = SessionIdAllocator::default();
        let t = Duration::from_secs(1000);
        for (lane, most) in [(0, 255), (3, 256), (255, 255)] {
            let of_lane: Vec<u16> = (0..most)
                .filter_map(|_| ids.allocate(&of(lane), NOBODY, t))
                .collect();
            assert!(of_lane.iter().all(|id| Lanes::of(*id) == lane));
            let other = ids
                .allocate(&of(lane), NOBODY, t)
                .expect("other lanes have ids");
            assert_ne!(Lanes::of(other), lane);
            assert_eq!(Lanes::of(other) % 16, lane % 16, "the same family");
        }
        ids.release(259, NOBODY, t);
        assert_eq!(ids.allocate(&of(3), NOBODY, t + QUARANTINE), Some(259));
    }

    #[test]
    fn a_restored_allocator_allocates_only_free_ids() {
        let mut ids = SessionIdAllocator::with_allocated([3, 5, 3 + 2 * 256]);
        assert!(ids.allocated().eq([3, 3 + 2 * 256, 5]));
        let mut next = |lane| ids.allocate(&of(lane), NOBODY, QUARANTINE);
        assert_eq!(next(6), Some(6));
        assert_eq!(next(5), Some(5 + 256));
        assert_eq!(next(3), Some(3 + 3 * 256), "fresh ids first");
        let others: BTreeSet<u16> = std::iter::from_fn(|| next(3)).collect();
        assert_eq!(others.len(), 65_534 - 6);
        assert!(others.contains(&(3 + 256)) && !others.contains(&5));
    }

    #[test]
    fn a_home_that_comes_and_goes_for_ever_uses_up_a_few_ids() {
        let mut ids = SessionIdAllocator::default();
        let (home, other) = (Home(7), Home(8));
        // Of each lane an id rests first that nobody needs.
        for lane in 0..=u8::MAX {
            let id = ids
                .allocate(&of(lane), other, Duration::ZERO)
                .expect("an id");
            ids.release(id, NOBODY, Duration::ZERO);
        }
        let mut all = BTreeSet::new();
        for n in 0..100_000 {
            let now = Duration::from_micros(500 * n);
            let id = ids.allocate(&of(n as u8), home, now).expect("an id");
            all.insert(id);
            ids.release(id, home, now);
        }
        assert_eq!(all.len(), OWN);
        assert!(
            ids.lanes
                .values()
                .all(|lane| lane.freed.len() <= MOST_ENTRIES)
        );
        let now = Duration::from_secs(50);
        let others: BTreeSet<u16> =
            std::iter::from_fn(|| ids.allocate(&of(1), other, now)).collect();
        assert_eq!(others.len(), 65_534 - OWN - 256, "the others rest");
        assert!(others.is_disjoint(&all) && !ids.has_free(|| other, now));
        assert!(ids.has_free(|| home, now) && ids.allocate(&of(1), home, now).is_some());
    }

    #[test]
    fn a_home_is_two_vlan_ids_or_else_trusted_ids_or_else_its_mac_address() {
        let [mac, other] = [1, 2].map(|n| MacAddr([2, 0, 0, 0, 0, n]));
        let ids = |circuit: &[u8]| LineIds {
            circuit_id: Some(circuit.into()),
            remote_id: None,
        };
        let (none, one, two) = (LineIds::default(), ids(b"1"), ids(b"2"));
        let qinq = Tags::qinq(100, 7);
        assert_eq!(Home::of(&qinq, mac, &one), Home::of(&qinq, other, &two));
        let shared = Tags::single(100);
        assert_eq!(Home::of(&shared, mac, &one), Home::of(&shared, other, &one));
        assert_ne!(Home::of(&shared, mac, &one), Home::of(&shared, mac, &two));
        assert_ne!(
            Home::of(&shared, mac, &one),
            Home::of(&Tags::single(101), mac, &one)
        );
        assert_ne!(
            Home::of(&shared, mac, &none),
            Home::of(&shared, other, &none)
        );
    }

    #[test]
    fn an_own_id_is_of_the_wanted_lane_if_there_is_one() {
        let mut ids = SessionIdAllocator::default();
        let (home, now) = (Home(7), Duration::from_secs(1));
        let had: Vec<u16> = (1..=OWN as u8)
            .map(|lane| ids.allocate(&of(lane), home, now).unwrap())
            .collect();
        had.iter().for_each(|id| ids.release(*id, home, now));
        assert_eq!(ids.allocate(&of(5), home, now), Some(5));
        assert_eq!(
            ids.allocate(&of(6), home, now),
            Some(6 + 256),
            "fewer than eight rest"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Against a plain list of what is in use.
        #[test]
        fn no_id_has_two_owners_and_strangers_wait_for_the_quarantine(
            steps in prop::collection::vec((0u64..4, any::<bool>(), 0u64..30), 1..400)
        ) {
            let mut ids = SessionIdAllocator::default();
            let (mut used, mut rests) = (Vec::new(), HashMap::new());
            let mut now = Duration::from_secs(1);
            // all but a few ids are somebody's for ever
            let first: Vec<u16> = (0..65_500u32).filter_map(|n| ids.allocate(&of(n as u8), Home(99), now)).collect();
            for (home, comes, seconds) in steps {
                now += Duration::from_secs(seconds);
                let home = Home(home + 1);
                if comes {
                    let has = ids.has_free(|| home, now);
                    let id = ids.allocate(&of(0), home, now);
                    prop_assert_eq!(has, id.is_some());
                    if let Some(id) = id {
                        prop_assert!(!used.contains(&(id, home)) && !first.contains(&id));
                        prop_assert!(used.iter().all(|(other, _)| *other != id));
                        if let Some((at, of)) = rests.get(&id) {
                            prop_assert!(*of == home || now >= *at + QUARANTINE);
                        }
                        used.push((id, home));
                    }
                } else if let Some(at) = used.iter().position(|(_, of)| *of == home) {
                    let (id, _) = used.remove(at);
                    ids.release(id, home, now);
                    rests.insert(id, (now, home));
                }
            }
            prop_assert_eq!(ids.allocated().count(), first.len() + used.len());
        }
    }
}
