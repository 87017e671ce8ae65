//! Token buckets for punted packets.
use crate::api::PuntRate;

/// How fast a bucket fills, in ticks of the TSC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Ticks for one packet.
    interval: u64,
    /// Ticks for as many packets as may come at once.
    burst: u64,
}

impl Rate {
    /// `hz` ticks are a second.
    pub fn new(rate: PuntRate, hz: u64) -> Self {
        let interval = hz / rate.per_second.max(1) as u64;
        Rate {
            interval,
            burst: interval * rate.burst.max(1) as u64,
        }
    }
}

/// A bucket in one word: when it will be full again (the "theoretical arrival time" of ITU-T I.371's GCRA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket(u64);

impl Bucket {
    pub const FULL: Bucket = Bucket(0);

    /// Takes a token if there is one.
    #[inline]
    pub fn take(&mut self, now: u64, rate: Rate) -> bool {
        let full = self.0.max(now) + rate.interval;
        let take = full - now <= rate.burst;
        if take {
            self.0 = full;
        }
        take
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rate = Rate::new(
            PuntRate {
                per_second: 10,
                burst: 5,
            },
            1000,
        );
        let mut bucket = Bucket::FULL;
        assert_eq!((0..20).filter(|_| bucket.take(7, rate)).count(), 5);
        assert_eq!(
            (0..1000).filter(|now| bucket.take(7 + now, rate)).count(),
            9
        );
        assert_eq!((0..20).filter(|_| bucket.take(1_000_000, rate)).count(), 5);
    }
}
