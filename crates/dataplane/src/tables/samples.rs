//! Sessions of which copies of packets are shown to the control thread. Only their own packets come here.
use crate::api::{MAX_SAMPLED, PortIndex, PuntRate, SampleRate, SessionIndex};
use crate::police::{Bucket, Rate};
use crate::punt::PuntKind;
use dpdk::{BURST, Mbuf, Pool};

/// Copies of one session at once: they come from the buffers, and wait in the ring, of what subscribers and the control plane
/// tell each other.
const AT_ONCE: u32 = 32;

/// Which sessions are sampled, and the copies that wait to be shown.
pub(crate) struct Samples {
    /// For copies.
    pool: Pool,
    sessions: Vec<Sampled>,
    taken: Vec<Mbuf>,
}

pub(crate) struct Sampled {
    index: SessionIndex,
    rate: SampleRate,
    /// Packets since the last one of which a copy was wanted.
    since: u32,
    bucket: Bucket,
}

impl Samples {
    pub fn new(pool: Pool) -> Self {
        Samples {
            pool,
            sessions: Vec::with_capacity(MAX_SAMPLED),
            taken: Vec::with_capacity(BURST),
        }
    }

    /// Begins to sample a session, or changes how much; false if there is no room for it.
    pub fn begin(&mut self, index: SessionIndex, rate: SampleRate) -> bool {
        self.end(index);
        let room = self.sessions.len() < MAX_SAMPLED;
        if room {
            self.sessions.push(Sampled {
                index,
                rate,
                since: 0,
                bucket: Bucket::FULL,
            });
        }
        room
    }

    /// Does not sample a session any more.
    pub fn end(&mut self, index: SessionIndex) {
        self.sessions.retain(|sampled| sampled.index != index);
    }

    /// Takes out what is known of a session that moves to another worker.
    pub fn release(&mut self, index: SessionIndex) -> Option<Sampled> {
        let at = self
            .sessions
            .iter()
            .position(|sampled| sampled.index == index)?;
        Some(self.sessions.swap_remove(at))
    }

    /// Goes on with a session that has come from another worker. Returns whether there is room.
    pub fn adopt(&mut self, index: SessionIndex, sampled: Sampled) -> bool {
        let room = self.sessions.len() < MAX_SAMPLED;
        if room {
            self.sessions.push(Sampled { index, ..sampled });
        }
        room
    }

    /// Takes a copy of a packet's first octets, if it is the one in so many, and there have not been too many.
    pub fn take(
        &mut self,
        index: SessionIndex,
        kind: PuntKind,
        port: PortIndex,
        octets: &[u8],
        now: u64,
        second: u64,
    ) {
        let mut sessions = self.sessions.iter_mut();
        let wanted = sessions.find(|sampled| sampled.index == index);
        if !wanted.is_some_and(|sampled| sampled.wants(now, second)) || self.taken.len() >= BURST {
            return;
        }
        if let Some(mut copy) = self.pool.packet(octets) {
            copy.set_meta(crate::punt::pack(kind, port));
            self.taken.push(copy);
        }
    }

    /// The copies that wait to be shown, if there are any.
    #[inline]
    pub fn taken(&mut self) -> Option<&mut Vec<Mbuf>> {
        (!self.taken.is_empty()).then_some(&mut self.taken)
    }
}

impl Sampled {
    fn wants(&mut self, now: u64, second: u64) -> bool {
        self.since += 1;
        if self.since < self.rate.one_in {
            return false;
        }
        self.since = 0;
        let per_second = self.rate.per_second;
        let rate = PuntRate {
            per_second,
            burst: per_second.min(AT_ONCE),
        };
        self.bucket.take(now, Rate::new(rate, second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_and_no_more_than_that_in_a_second() {
        let mut sampled = Sampled {
            index: SessionIndex(7),
            rate: SampleRate {
                one_in: 10,
                per_second: 5,
            },
            since: 0,
            bucket: Bucket::FULL,
        };
        let mut count =
            |packets: u32, now| (0..packets).filter(|_| sampled.wants(now, 1000)).count();
        assert_eq!([count(9, 0), count(1, 0), count(20, 0)], [0, 1, 2]);
        assert_eq!(count(1000, 0), 2, "five are enough");
        assert_eq!(count(1000, 2000), 5);
        // However many are wanted in a second, they do not come at once.
        sampled.rate = SampleRate {
            one_in: 1,
            per_second: 1000,
        };
        sampled.bucket = Bucket::FULL;
        let mut count =
            |packets: u32, now| (0..packets).filter(|_| sampled.wants(now, 1000)).count();
        assert_eq!(count(1000, 3000), 32);
        assert_eq!(count(1000, 3010), 10);
    }
}
