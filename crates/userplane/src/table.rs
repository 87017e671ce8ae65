//! Table of PFCP sessions: places, SEIDs and tunnels.

use std::collections::{HashMap, HashSet, VecDeque};

use dataplane::SessionIndex;
use pfcp::bng::ReleasedTunnels;
use wire::pfcp::Lanes;

/// SEID: a place with the generation of its session. No SEID is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seid {
    /// The place, which is also the session's index in the dataplane.
    pub index: SessionIndex,
    generation: u32,
}

impl Seid {
    /// Value in PFCP; never 0.
    pub fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index.0)
    }

    /// SEID from its value in PFCP.
    pub fn from_u64(seid: u64) -> Self {
        Self {
            index: SessionIndex(seid as u32),
            generation: (seid >> 32) as u32,
        }
    }
}

/// Minimum number of other releases before a place is used again, while unused places are left.
const REST: usize = 256;

#[derive(Debug)]
struct Slot<S> {
    generation: u32,
    session: Option<S>,
}

/// Places of one worker's sessions: those that divided by the number of workers leave the worker's.
#[derive(Debug)]
struct Share {
    free: VecDeque<u32>,
    fresh: u32,
}

/// Sessions by place, with the owner of each tunnel.
#[derive(Debug)]
pub struct Table<S> {
    slots: Vec<Slot<S>>,
    /// For each worker: free places, the longest-rested first, and the first place that was never used.
    shares: Vec<Share>,
    lanes: Lanes,
    /// Places of sessions that have moved to another worker: their sessions have them beside those of their SEIDs.
    moved: HashMap<SessionIndex, SessionIndex>,
    capacity: u32,
    first_generation: u32,
    teids: HashMap<u32, Seid>,
    released: ReleasedTunnels,
    used: usize,
}

impl<S> Table<S> {
    /// Creates a table of at most `capacity` sessions, shared by this many workers. Any one worker may have all of them, so each
    /// has `capacity` places. `seed` is random, so that SEIDs differ from those of an earlier run.
    pub fn new(capacity: u32, workers: u16, seed: u32) -> Self {
        let share = |fresh| Share {
            free: VecDeque::new(),
            fresh,
        };
        Self {
            // A session is large: the table never moves, and takes memory only as it fills.
            slots: Vec::with_capacity(capacity as usize),
            shares: (0..workers.into()).map(share).collect(),
            lanes: Lanes::even(workers),
            moved: HashMap::new(),
            capacity,
            first_generation: seed.max(1),
            teids: HashMap::new(),
            released: ReleasedTunnels::default(),
            used: 0,
        }
    }

    /// Number of workers that share the places.
    fn workers(&self) -> u32 {
        self.shares.len() as u32
    }

    /// The share that a place belongs to.
    fn share(&self, place: u32) -> &Share {
        &self.shares[(place % self.workers()) as usize]
    }

    fn share_mut(&mut self, place: u32) -> &mut Share {
        let worker = place % self.workers();
        &mut self.shares[worker as usize]
    }

    /// Worker of a PPPoE session id, unless its VLAN was moved.
    pub fn worker_of(&self, id: u16) -> u16 {
        self.lanes.worker(id).into()
    }

    /// Place for the next session of a worker; `None` if the table is full.
    pub fn vacancy(&self, worker: u16) -> Option<SessionIndex> {
        let next = self.vacant(worker);
        next.filter(|_| self.used < self.capacity as usize)
    }

    /// The next place of a worker.
    fn vacant(&self, worker: u16) -> Option<SessionIndex> {
        let share = &self.shares[usize::from(worker)];
        let most = self.capacity * self.workers();
        let fresh = Some(share.fresh).filter(|fresh| *fresh < most);
        let rested = share.free.front().copied();
        let next = if share.free.len() > REST {
            rested
        } else {
            fresh.or(rested)
        };
        next.map(SessionIndex)
    }

    /// Takes the place of [`Table::vacant`].
    fn take(&mut self, index: SessionIndex) {
        let workers = self.workers();
        let share = self.share_mut(index.0);
        match index.0 == share.fresh {
            true => share.fresh += workers,
            false => drop(share.free.pop_front()),
        }
        let generation = self.first_generation;
        while self.slots.len() <= index.0 as usize {
            self.slots.push(Slot {
                generation,
                session: None,
            });
        }
    }

    /// Gives a session a place of another worker, or that of its SEID if this is the worker's. Each worker has places for all sessions, so
    /// one is left.
    pub fn relocate(&mut self, index: SessionIndex, worker: u16) -> Option<SessionIndex> {
        let is_own = index.0 % self.workers() == u32::from(worker);
        let place = match is_own {
            true => index,
            false => self.vacant(worker)?,
        };
        self.leave_moved(index);
        if !is_own {
            self.take(place);
            self.moved.insert(index, place);
        }
        Some(place)
    }

    /// Frees the place that a session has beside its own.
    fn leave_moved(&mut self, index: SessionIndex) {
        if let Some(place) = self.moved.remove(&index) {
            self.share_mut(place.0).free.push_back(place.0);
        }
    }

    /// The worker that has a session.
    pub fn worker_at(&self, index: SessionIndex) -> u16 {
        let place = self.moved.get(&index).unwrap_or(&index);
        (place.0 % self.workers()) as u16
    }

    /// Whether a session has another place than that of its SEID.
    pub fn has_moved(&self, index: SessionIndex) -> bool {
        self.moved.contains_key(&index)
    }

    /// Sessions that have moved, with their places.
    pub fn moved(&self) -> impl Iterator<Item = (SessionIndex, SessionIndex)> {
        self.moved.iter().map(|(index, place)| (*index, *place))
    }

    /// Puts a session into the place of [`Table::vacancy`].
    pub fn insert(&mut self, worker: u16, session: S) -> Option<Seid> {
        let index = self.vacancy(worker)?;
        self.take(index);
        let slot = &mut self.slots[index.0 as usize];
        slot.session = Some(session);
        self.used += 1;
        Some(Seid {
            index,
            generation: slot.generation,
        })
    }

    /// Removes the session of a place. Its tunnel must have been released before.
    pub fn remove(&mut self, index: SessionIndex) -> Option<S> {
        let slot = self.slots.get_mut(index.0 as usize)?;
        let session = slot.session.take()?;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        self.used -= 1;
        self.leave_moved(index);
        self.share_mut(index.0).free.push_back(index.0);
        Some(session)
    }

    /// Session with this SEID.
    pub fn resolve(&self, seid: Seid) -> Option<&S> {
        let slot = self.slots.get(seid.index.0 as usize)?;
        slot.session
            .as_ref()
            .filter(|_| slot.generation == seid.generation)
    }

    /// Session in this place, of any generation.
    pub fn get(&self, index: SessionIndex) -> Option<&S> {
        self.slots.get(index.0 as usize)?.session.as_ref()
    }

    /// Session in this place, of any generation.
    pub fn get_mut(&mut self, index: SessionIndex) -> Option<&mut S> {
        self.slots.get_mut(index.0 as usize)?.session.as_mut()
    }

    /// SEID of the session in this place.
    pub fn seid(&self, index: SessionIndex) -> Option<Seid> {
        let slot = self.slots.get(index.0 as usize)?;
        slot.session.as_ref().map(|_| Seid {
            index,
            generation: slot.generation,
        })
    }

    /// All sessions.
    pub fn iter(&self) -> impl Iterator<Item = (SessionIndex, &S)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(i, slot)| Some((SessionIndex(i as u32), slot.session.as_ref()?)))
    }

    /// All sessions, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.slots
            .iter_mut()
            .filter_map(|slot| slot.session.as_mut())
    }

    /// Number of places up to the last one that was ever used.
    pub fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Places that are not free.
    pub fn taken_places(&self) -> impl Iterator<Item = SessionIndex> {
        let free = self.shares.iter().flat_map(|share| &share.free);
        let free: HashSet<u32> = free.copied().collect();
        let taken = |place: &u32| *place < self.share(*place).fresh;
        let places = (0..self.places()).filter(taken);
        let places = places.filter(move |place| !free.contains(place));
        places.map(SessionIndex)
    }

    /// Frees a place that has no session.
    pub fn free_place(&mut self, index: SessionIndex) {
        let free = &self.share(index.0).free;
        let is_moved = self.moved.values().any(|place| *place == index);
        if self.get(index).is_none() && !is_moved && !free.contains(&index.0) {
            self.share_mut(index.0).free.push_back(index.0);
        }
    }

    /// Free places of worker 0, for tests that break them.
    #[cfg(test)]
    pub fn free_places(&mut self) -> &mut VecDeque<u32> {
        &mut self.shares[0].free
    }

    /// Removes a place from the free ones because it has a session.
    pub fn claim_place(&mut self, index: SessionIndex) {
        let free = &mut self.share_mut(index.0).free;
        free.retain(|free| *free != index.0);
    }

    /// All tunnels with their owners.
    pub fn teids(&self) -> impl Iterator<Item = (u32, Seid)> {
        self.teids.iter().map(|(teid, owner)| (*teid, *owner))
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Owner of a tunnel.
    pub fn by_teid(&self, teid: u32) -> Option<Seid> {
        self.teids.get(&teid).copied()
    }

    /// Whether the tunnel belonged to a session that has ended.
    pub fn was_released(&self, teid: u32) -> bool {
        self.released.contains(teid)
    }

    /// Claims a tunnel for a session; `false` if another session has it.
    pub fn claim_teid(&mut self, teid: u32, owner: Seid) -> bool {
        *self.teids.entry(teid).or_insert(owner) == owner
    }

    /// Releases a session's tunnel.
    pub fn release_teid(&mut self, teid: u32, owner: Seid) {
        if self.teids.get(&teid) == Some(&owner) {
            self.teids.remove(&teid);
            self.released.remember(teid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_used_twice_and_places_rest() {
        let mut table = Table::new(2, 1, 7);
        let a = table.insert(0, 'a').unwrap();
        assert_ne!(a.to_u64(), 0);
        assert_eq!(Seid::from_u64(a.to_u64()), a);
        table.remove(a.index);
        assert_eq!(table.resolve(a), None);
        // A place that was never used comes before one that rests.
        let b = table.insert(0, 'b').unwrap();
        assert_ne!(b.index, a.index);
        let c = table.insert(0, 'c').unwrap();
        assert_eq!(c.index, a.index);
        assert_ne!(c.to_u64(), a.to_u64());
        assert_eq!((table.resolve(a), table.resolve(c)), (None, Some(&'c')));
        assert_eq!(table.insert(0, 'd'), None);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_place_is_one_of_its_workers_which_may_have_all() {
        let mut table = Table::new(5, 4, 7);
        let ids = [6, 2, 9, 10, 14];
        let seids = ids.map(|id| table.insert(table.worker_of(id), id).unwrap());
        for (seid, id) in seids.iter().zip(ids) {
            assert_eq!(seid.index.0 % 4, u32::from(id % 4));
            assert_eq!(table.resolve(*seid), Some(&id));
        }
        assert_eq!((table.insert(3, 3), table.len()), (None, 5));
        let taken = |table: &Table<u16>| table.taken_places().map(|i| i.0).collect::<Vec<_>>();
        assert_eq!(taken(&table), [1, 2, 6, 10, 14]);
        table.remove(seids[1].index);
        assert_eq!(taken(&table), [1, 2, 10, 14]);
        let again = table.insert(3, 7).unwrap();
        assert_eq!((again.index.0, taken(&table)), (3, vec![1, 2, 3, 10, 14]));
    }

    #[test]
    fn a_session_that_moves_keeps_its_place_and_has_another_one() {
        let mut table = Table::new(3, 4, 7);
        let seids = [0, 0, 1].map(|worker| table.insert(worker, worker).unwrap());
        let index = seids[0].index;
        let place = table.relocate(index, 1).unwrap();
        assert_eq!((place.0 % 4, table.worker_at(index)), (1, 1));
        assert_ne!(place, seids[2].index);
        assert!(table.moved().eq([(index, place)]));
        let taken = |table: &Table<u16>| table.taken_places().count();
        assert_eq!((taken(&table), table.len()), (4, 3));
        // the audit takes it for nobody's
        table.free_place(place);
        assert_eq!(taken(&table), 4);
        // to a third worker, and back
        assert_eq!(table.relocate(index, 3).unwrap().0 % 4, 3);
        assert_eq!(taken(&table), 4);
        assert_eq!(table.relocate(index, 0), Some(index));
        assert_eq!((taken(&table), table.worker_at(index)), (3, 0));
        // all sessions may be at one worker, and the place goes with the session
        for seid in &seids {
            table.relocate(seid.index, 2).unwrap();
        }
        assert_eq!(taken(&table), 6);
        table.remove(index);
        assert_eq!(taken(&table), 4);
        assert_eq!(table.resolve(seids[1]), Some(&0));
    }

    #[test]
    fn a_tunnel_has_one_owner() {
        let mut table = Table::new(2, 1, 7);
        let (a, b) = (table.insert(0, 'a').unwrap(), table.insert(0, 'b').unwrap());
        assert!(table.claim_teid(1, a) && table.claim_teid(1, a));
        assert!(!table.claim_teid(1, b));
        table.release_teid(1, b);
        assert_eq!(table.by_teid(1), Some(a));
        table.release_teid(1, a);
        assert!(table.claim_teid(1, b));
    }
}
