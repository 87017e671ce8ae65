//! Which worker has which session. Both ways a packet says by itself whose it is: up by the lane of its PPPoE session id, or by its outer VLAN
//! if this was moved, and down by the index of its session.

use wire::pfcp::Lanes;

/// The worker of each outer VLAN of an access port that was moved; [`BY_LANE`] for all others.
pub(crate) type Owners = [u8; 4096];

/// The lanes of PPPoE session ids name the workers of a VLAN's sessions.
pub(crate) const BY_LANE: u8 = u8::MAX;

/// No VLAN was moved.
pub(crate) static NO_OWNERS: Owners = [BY_LANE; 4096];

/// A worker's share of the PPPoE session ids: the lane of an id, its low octet, names the worker.
pub(crate) struct Ids {
    pub own: u16,
    /// How many lanes a worker has at most.
    pub most: u32,
    lanes: [Lane; 256],
}

#[derive(Clone, Copy)]
struct Lane {
    worker: u8,
    /// How many lanes before it are its worker's.
    rank: u8,
}

impl Ids {
    /// The share of worker `own`.
    pub fn new(own: u16, Lanes(workers): &Lanes) -> Self {
        let lane = |lane: usize| {
            let worker = workers[lane];
            let before = workers[..lane].iter().filter(|w| **w == worker);
            let rank = before.count() as u8;
            Lane { worker, rank }
        };
        let lanes_of = |own: u8| workers.iter().filter(|worker| **worker == own).count();
        Ids {
            own,
            most: workers
                .iter()
                .map(|worker| lanes_of(*worker))
                .max()
                .unwrap_or(0) as u32,
            lanes: core::array::from_fn(lane),
        }
    }

    #[inline(always)]
    fn lane(&self, id: u16) -> Lane {
        self.lanes[usize::from(Lanes::of(id))]
    }

    /// The worker of an id.
    #[inline(always)]
    pub fn of(&self, id: u16) -> u16 {
        self.lane(id).worker.into()
    }

    /// The worker of an id in a VLAN of a port where these VLANs were moved.
    #[inline(always)]
    pub fn worker(&self, owners: &Owners, vid: u16, id: u16) -> u16 {
        match owners[usize::from(vid) & 0xfff] {
            BY_LANE => self.of(id),
            worker => worker.into(),
        }
    }

    /// How many workers have lanes.
    pub fn workers(&self) -> u16 {
        let most = self.lanes.iter().map(|lane| lane.worker).max();
        u16::from(most.unwrap_or(0)) + 1
    }

    /// Is the id's lane this worker's?
    #[inline(always)]
    pub fn has(&self, id: u16) -> bool {
        self.of(id) == self.own
    }

    /// The place of an id among those of its lane's worker that have the same high octet: below [`Ids::most`].
    #[inline(always)]
    pub fn place(&self, id: u16) -> u32 {
        self.lane(id).rank.into()
    }
}

/// One worker's share of the session indexes, whose last bits name the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shard {
    /// The worker.
    pub own: u16,
    /// The last bits, which name a worker, as a mask, and how many they are: each packet needs both.
    mask: u16,
    bits: u32,
}

impl Shard {
    /// That of worker `own` among `workers`, a power of two.
    pub fn new(own: u16, workers: u16) -> Self {
        Shard {
            own,
            mask: workers - 1,
            bits: workers.trailing_zeros(),
        }
    }

    /// How many workers there are.
    pub fn workers(self) -> u16 {
        1 << self.bits
    }

    /// The worker of an index.
    #[inline(always)]
    pub fn of(self, number: u32) -> u16 {
        number as u16 & self.mask
    }

    /// Is the session this worker's?
    #[inline(always)]
    pub fn has(self, number: u32) -> bool {
        self.of(number) == self.own
    }

    /// The place of an index among those of its worker.
    #[inline(always)]
    pub fn place(self, number: u32) -> u32 {
        number >> self.bits
    }

    /// How many of the indexes below `limit` are this worker's.
    pub fn places(self, limit: u32) -> u32 {
        let before = (1 << self.bits) - 1 - self.own as u32;
        (limit + before) >> self.bits
    }

    /// The index that has this place here.
    pub fn number(self, place: u32) -> u32 {
        place << self.bits | self.own as u32
    }

    /// The next worker's, if there is one.
    pub fn next(self) -> Option<Shard> {
        let own = self.own + 1;
        (own < self.workers()).then_some(Shard { own, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_id_has_one_worker_and_a_place_of_its_own_there() {
        let mut uneven = Lanes::even(4);
        uneven.0[..40].fill(3);
        for lanes in [Lanes::even(1), Lanes::even(2), Lanes::even(16), uneven] {
            for own in 0..16 {
                let ids = Ids::new(own, &lanes);
                let held: Vec<u16> = (0..=u16::MAX).filter(|id| ids.has(*id)).collect();
                let here = held.len() as u32 / 256;
                assert!(here <= ids.most);
                assert!(held.iter().all(|id| u16::from(lanes.worker(*id)) == own));
                let places = held.iter().map(|id| ids.place(*id));
                assert!(places.eq((0..256).flat_map(|_| 0..here)));
            }
        }
    }

    #[test]
    fn each_number_has_one_worker_and_a_place_there() {
        for workers in [1, 2, 16] {
            let all = || (0..workers).map(|own| Shard::new(own, workers));
            for number in 0..1000 {
                let owners: Vec<_> = all().filter(|shard| shard.has(number)).collect();
                assert_eq!(owners.len(), 1);
                assert_eq!(owners[0].own, owners[0].of(number));
                assert_eq!(owners[0].number(owners[0].place(number)), number);
            }
            for limit in [0, 1, 15, 16, 17, 100] {
                let held = |shard: Shard| (0..limit).filter(|n| shard.has(*n)).count() as u32;
                assert!(all().all(|shard| shard.places(limit) == held(shard)));
            }
            let chain = std::iter::successors(Some(Shard::new(0, workers)), |s| s.next());
            assert!(chain.eq(all()));
        }
    }
}
