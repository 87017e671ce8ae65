//! Which worker has which session.

/// One worker's share of the sessions. A session belongs to the worker that its index names by its last bits, which are those
/// of its PPPoE session id too: both ways a packet says by itself whose it is.
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

    /// The worker of a session with this index or PPPoE session id.
    #[inline(always)]
    pub fn of(self, number: u32) -> u16 {
        number as u16 & self.mask
    }

    /// Is the session this worker's?
    #[inline(always)]
    pub fn has(self, number: u32) -> bool {
        self.of(number) == self.own
    }

    /// The place of an index or id among those of its worker.
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
