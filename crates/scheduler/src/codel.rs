//! CoDel (RFC 8289): drops packets of a queue in which they have waited for too long for a while.

/// Delays that a queue may have, in the unit of the stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delays {
    /// Delay that is acceptable as long as it lasts (§4.4).
    pub target: u32,
    /// Time in which senders can react (§4.3): a round trip.
    pub interval: u32,
}

/// State of a queue (§5.3). Stamps wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoDel {
    /// When the delay will have been above the target for an interval; 0 if it is not above it.
    above_until: u32,
    /// When the next packet is dropped.
    next: u32,
    /// Packets dropped since dropping began, and when it had begun the last time.
    count: u16,
    last_count: u16,
}

/// Stamps count so long after each other that one can be told from another.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl CoDel {
    /// Whether the packet at the head of the queue, which has waited for so long, is dropped. `is_short`: what waits behind it is no more than
    /// a packet.
    #[inline]
    pub fn drops(&mut self, delays: Delays, waited: u32, now: u32, is_short: bool) -> bool {
        // 0 says that dropping is over
        let now = now | 1;
        if waited < delays.target || is_short {
            self.above_until = 0;
        } else if self.above_until == 0 {
            self.above_until = now.wrapping_add(delays.interval) | 1;
        }
        let is_above = self.above_until != 0 && !is_before(now, self.above_until);
        if !is_above {
            self.stop();
            return false;
        }
        if self.count == 0 {
            self.start(delays, now);
            return true;
        }
        let is_due = !is_before(now, self.next);
        if is_due {
            self.count = self.count.saturating_add(1);
            self.next = self.next.wrapping_add(self.pause(delays));
        }
        is_due
    }

    /// Dropping begins; soon after it has ended the last time, not much slower than then (§5.4).
    #[cold]
    fn start(&mut self, delays: Delays, now: u32) {
        // the next drop was up to an interval ahead when dropping ended
        let since = now.wrapping_sub(self.next.wrapping_sub(delays.interval));
        let recent = since < delays.interval.saturating_mul(17);
        self.count = match self.last_count {
            before @ 3.. if recent => before - 2,
            _ => 1,
        };
        self.next = now.wrapping_add(self.pause(delays));
    }

    fn stop(&mut self) {
        if self.count != 0 {
            (self.last_count, self.count) = (self.count, 0);
        }
    }

    /// Time until the next drop: the interval by the square root of the drops (§5.1).
    fn pause(&self, delays: Delays) -> u32 {
        (f64::from(delays.interval) / f64::from(self.count.max(1)).sqrt()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYS: Delays = Delays {
        target: 5_000,
        interval: 100_000,
    };

    /// Drops of a queue whose packets have all waited for so long, one each millisecond, from a time on.
    fn drops(codel: &mut CoDel, waited: u32, from: u32, ms: u32) -> Vec<u32> {
        let times = (0..ms).map(|n| from.wrapping_add(n * 1000));
        times
            .filter(|now| codel.drops(DELAYS, waited, *now, false))
            .map(|now| now.wrapping_sub(from) / 1000)
            .collect()
    }

    #[test]
    fn short_delays_are_left_alone_and_long_ones_only_for_an_interval() {
        for from in [0, 77, u32::MAX - 50_000] {
            let mut codel = CoDel::default();
            assert!(drops(&mut codel, 4_999, from, 1000).is_empty());
            assert!(drops(&mut codel, 5_000, from.wrapping_add(1_000_000), 100).is_empty());
            assert!(drops(&mut codel, 4_999, from.wrapping_add(1_100_000), 1).is_empty());
            let later = from.wrapping_add(1_101_000);
            assert!(drops(&mut codel, 5_000, later, 100).is_empty());
        }
    }

    #[test]
    fn drops_come_faster_the_longer_the_delay_lasts() {
        let mut codel = CoDel::default();
        let times = drops(&mut codel, 20_000, u32::MAX - 200_000, 1000);
        let wanted = [100, 200, 271, 329, 379, 423, 464];
        for (at, wanted) in times.iter().zip(wanted) {
            assert!(at.abs_diff(wanted) <= 2, "{times:?}");
        }
        assert!(times.len() > 14, "{times:?}");
    }

    #[test]
    fn dropping_goes_on_where_it_has_ended_shortly_before() {
        let mut codel = CoDel::default();
        let first = drops(&mut codel, 20_000, 1, 2000).len();
        assert!(drops(&mut codel, 1_000, 2_000_001, 10).is_empty());
        let again = drops(&mut codel, 20_000, 2_010_001, 500).len();
        let mut fresh = CoDel::default();
        let from_new = drops(&mut fresh, 20_000, 2_010_001, 500).len();
        assert!(
            first > 30 && again > 2 * from_new,
            "{first} {again} {from_new}"
        );
    }

    #[test]
    fn dropping_of_long_ago_is_forgotten() {
        let from_new = drops(&mut CoDel::default(), 20_000, 1, 500).len();
        // whether or not its stamps look as if they were to come
        for pause in [1 << 21, 1 << 30, 3 << 30] {
            let mut codel = CoDel::default();
            assert!(drops(&mut codel, 20_000, 1, 2000).len() > 30);
            assert!(drops(&mut codel, 1_000, 2_000_001, 10).is_empty());
            let again = drops(&mut codel, 20_000, 2_010_001 + pause, 500).len();
            assert_eq!(again, from_new, "{pause}");
        }
    }

    #[test]
    fn the_last_packet_of_a_queue_is_never_dropped() {
        let mut codel = CoDel::default();
        assert!((0..1000).all(|n| !codel.drops(DELAYS, 50_000, n * 1000, true)));
    }
}
