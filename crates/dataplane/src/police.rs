//! Token buckets: of packets for what is punted, of octets for what a session's policy permits. Meters of three colours (`police/meter.rs`).
use crate::api::PuntRate;
use core::time::Duration;
use policy::Rate as BitRate;
use policy::pace::{Pace, parts};

mod meter;
mod settings;

pub use meter::{Colour, Meter};
pub(crate) use meter::{MeterRates, Tokens};
pub use settings::MeterSettings;

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

/// A rate and a burst as a policer keeps them: rounded to the clock of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The rate.
    pub bits_per_second: u64,
    /// Octets that may come at once.
    pub burst: u64,
}

/// A bucket in one word, in ticks or parts of them: when it will be full again (the "theoretical arrival time" of ITU-T I.371's GCRA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(u64);

impl Bucket {
    pub const FULL: Bucket = Bucket(0);

    /// Takes a token if there is one.
    #[inline]
    pub fn take(&mut self, now: u64, rate: Rate) -> bool {
        self.spend(now, rate.interval, rate.burst)
    }

    /// Takes tokens that come in a time `cost`, if they are there; all tokens come in a time `burst`.
    #[inline(always)]
    fn spend(&mut self, now: u64, cost: u64, burst: u64) -> bool {
        // Never emptier than empty: the rate may have been a slower one before.
        self.0 = self.0.clamp(now, now + burst);
        let full = self.0 + cost;
        let enough = full - now <= burst;
        if enough {
            self.0 = full;
        }
        enough
    }
}

/// A single-rate policer of octets. Without a limit everything passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policer {
    bucket: Bucket,
    /// How fast tokens come.
    pace: Pace,
    /// Time in which all tokens come.
    burst: u64,
}

/// A burst is as long as this at the rate, and never smaller than [`LEAST_BURST`].
const BURST: Duration = Duration::from_millis(100);
/// Octets that may always come at once: ten packets of Ethernet's size.
const LEAST_BURST: u32 = 15_000;

impl Policer {
    /// `hz` ticks are a second.
    pub fn new(rate: Option<BitRate>, hz: u64) -> Self {
        if rate.is_none() {
            return Policer::default();
        }
        let pace = Pace::new(rate, hz);
        let burst = hz / 1000 * BURST.as_millis() as u64;
        Policer {
            bucket: Bucket::FULL,
            pace,
            burst: pace.time(LEAST_BURST).max(parts(burst)),
        }
    }

    /// The rate and the burst that it keeps; `hz` is that of [`Policer::new`]. `None`: there is no limit.
    pub fn kept(&self, hz: u64) -> Option<Kept> {
        Some(Kept {
            bits_per_second: self.pace.bits_per_second(hz)?,
            burst: self.pace.octets(self.burst),
        })
    }

    /// Whether there is a packet that it denies.
    pub fn has_limit(&self) -> bool {
        self.pace.is_limited()
    }

    /// The same rate with the tokens of another policer. Without a limit it keeps them for one that comes later.
    pub fn with_tokens_of(self, other: Policer) -> Self {
        Policer {
            bucket: other.bucket,
            ..self
        }
    }

    /// When it has all its tokens, in parts of ticks.
    pub fn full_at(&self) -> u64 {
        self.bucket.0
    }

    /// Takes tokens, so that it does not have all of them before a time in parts of ticks.
    pub fn empty_until(&mut self, full_at: u64) {
        self.bucket.0 = self.bucket.0.max(full_at);
    }

    /// Whether a packet of so many octets is within the rate. One that is not takes no tokens.
    #[inline(always)]
    pub fn permits(&mut self, octets: usize, now: u64) -> bool {
        let cost = self.pace.time(octets as u32);
        self.bucket.spend(parts(now), cost, self.burst)
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

    const HZ: u64 = 2_600_000_000;

    /// Octets that pass in a time, when packets of this size come at twice the rate.
    fn passed(policer: &mut Policer, kbps: u64, octets: usize, from: u64, time: Duration) -> u64 {
        let ticks = HZ as u128 * time.as_nanos() / 1_000_000_000;
        let interval = (octets as u128 * 8 * HZ as u128 / (2 * kbps as u128 * 1000)).max(1);
        let packets = (0..ticks / interval).map(|n| from + (n * interval) as u64);
        packets.filter(|now| policer.permits(octets, *now)).count() as u64 * octets as u64
    }

    #[test]
    fn a_rate_passes_exactly_after_its_burst() {
        for (kbps, octets, seconds) in [
            (64, 40, 600),
            (1_000, 1500, 60),
            (50_000, 1500, 10),
            (10_000_000, 1500, 1),
            (100_000_000, 40, 1),
        ] {
            let mut policer = Policer::new(Some(BitRate::kbps(kbps)), HZ);
            let burst = (kbps * 1000 / 8 / 10).max(LEAST_BURST.into());
            let all = passed(
                &mut policer,
                kbps,
                octets,
                1 << 40,
                Duration::from_secs(seconds),
            );
            let wanted = kbps * 1000 / 8 * seconds + burst;
            let error = all.abs_diff(wanted) as f64 / wanted as f64;
            assert!(error < 0.0025, "{kbps} kbit/s: {all} octets, not {wanted}");
        }
    }

    #[test]
    fn what_is_kept_is_the_rate_and_its_burst() {
        for (kbps, burst) in [
            (64, 15_000),
            (50_000, 625_000),
            (100_000_000, 1_250_000_000),
        ] {
            let kept = Policer::new(Some(BitRate::kbps(kbps)), HZ)
                .kept(HZ)
                .unwrap();
            let is_near = |kept: u64, wanted: u64| kept.abs_diff(wanted) <= wanted / 100_000 + 1;
            assert!(is_near(kept.bits_per_second, kbps * 1000), "{kept:?}");
            assert!(is_near(kept.burst, burst), "{kept:?}");
        }
        assert_eq!(Policer::new(None, HZ).kept(HZ), None);
    }

    #[test]
    fn a_packet_that_is_denied_takes_no_tokens() {
        let mut policer = Policer::new(Some(BitRate::kbps(64)), HZ);
        assert!(policer.permits(14_000, 9) && !policer.permits(1500, 9));
        assert!((0..1000).all(|_| !policer.permits(1500, 9)));
        assert!(policer.permits(1000, 9));
    }

    #[test]
    fn without_a_limit_everything_passes() {
        let mut policer = Policer::new(None, HZ);
        assert!((0..1000).all(|_| policer.permits(65_535, 7)));
    }

    #[test]
    fn a_change_of_rate_begins_with_no_more_than_a_burst_and_no_later_than_one() {
        let mut slow = Policer::new(Some(BitRate::kbps(64)), HZ);
        assert!(slow.permits(15_000, 5));
        let mut fast = Policer::new(Some(BitRate::kbps(1_000_000)), HZ).with_tokens_of(slow);
        assert!(!fast.permits(1500, 6), "no tokens are made of nothing");
        assert!(fast.permits(1500, 6 + HZ / 10));
        let mut slow = Policer::new(Some(BitRate::kbps(64)), HZ).with_tokens_of(fast);
        let at_once = (0..100).filter(|_| slow.permits(1500, 7 + HZ / 10)).count();
        assert!(at_once <= 10, "{at_once}");
    }
}
