//! How long octets take at a rate: in ticks of a clock, and parts of them. An octet at 100 Gbit/s takes a fifth of a tick.
use crate::Rate;

/// Times are counted in parts of 2^-4 ticks: those of a packet of 40 octets at 100 Gbit/s are right to 0.4 %, and a machine that has been
/// up for ten years has not used up 64 bits of them.
pub const PARTS: u32 = 4;
/// The time of an octet is in parts of 2^-20 ticks: at 1 Tbit/s it is right to 0.005 %.
const FRACTION: u32 = 20;

/// A point in time, or a time, in parts of ticks.
#[inline(always)]
pub const fn parts(ticks: u64) -> u64 {
    ticks << PARTS
}

/// The tick in which a point in time is over.
pub const fn ticks(parts: u64) -> u64 {
    (parts >> PARTS) + 1
}

/// How long an octet takes at a rate. Without a rate it takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace(u64);

impl Pace {
    /// No rate.
    pub const NONE: Pace = Pace(0);

    /// That of a rate; `hz` ticks are a second.
    pub fn new(rate: Option<Rate>, hz: u64) -> Self {
        let Some(rate) = rate else {
            return Pace::default();
        };
        // u128: a slow rate's ticks with their fraction are more than 64 bits before they are divided.
        let ticks = ((u128::from(hz) * 8) << FRACTION) / (u128::from(rate.get()) * 1000);
        Pace((ticks as u64).max(1))
    }

    /// Whether there is a rate.
    #[inline(always)]
    pub fn is_limited(self) -> bool {
        self.0 != 0
    }

    /// What is left of a time that was counted at another rate, at this one.
    pub fn rescaled(self, left: u64, former: Pace) -> u64 {
        if former.0 == 0 {
            return 0;
        }
        let left = u128::from(left) * u128::from(self.0) / u128::from(former.0);
        left.min(u128::from(u64::MAX >> 1)) as u64
    }

    /// The rate that is kept, in bits a second; `hz` ticks are a second. `None`: there is no rate.
    pub fn bits_per_second(self, hz: u64) -> Option<u64> {
        let octets = (u128::from(hz) << FRACTION).checked_div(self.0.into())?;
        u64::try_from(octets * 8).ok()
    }

    /// How many octets take a time, which is in parts of ticks, rounded. 0: there is no rate.
    pub fn octets(self, time: u64) -> u64 {
        let time = u128::from(time) << (FRACTION - PARTS);
        let octets = (time + u128::from(self.0 / 2)).checked_div(self.0.into());
        octets.map_or(0, |octets| octets as u64)
    }

    /// Time of so many octets, in parts of ticks.
    #[inline(always)]
    pub fn time(self, octets: u32) -> u64 {
        (u64::from(octets) * self.0) >> (FRACTION - PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 2_600_000_000;

    #[test]
    fn octets_take_as_long_as_their_bits() {
        for kbps in [1, 64, 1_000, 1_000_000, 100_000_000] {
            let pace = Pace::new(Some(Rate::kbps(kbps)), HZ);
            // 1,250 octets are 10,000 bits
            let (time, wanted) = (pace.time(1250), parts(HZ) * 10 / kbps);
            assert!(time.abs_diff(wanted) <= wanted / 1000 + 1, "{kbps}: {time}");
        }
        assert!(!Pace::NONE.is_limited() && Pace::NONE.time(9000) == 0);
    }

    #[test]
    fn the_rate_that_is_kept_is_close_to_the_one_that_was_asked_for() {
        for kbps in [1, 64, 20_000, 1_000_000, 100_000_000] {
            let pace = Pace::new(Some(Rate::kbps(kbps)), HZ);
            let (kept, wanted) = (pace.bits_per_second(HZ).unwrap(), kbps * 1000);
            assert!(kept.abs_diff(wanted) <= wanted / 100_000 + 1, "{kept}");
            assert_eq!(pace.octets(pace.time(150_000)), 150_000);
        }
        assert_eq!(Pace::NONE.bits_per_second(HZ), None);
        assert_eq!(Pace::NONE.octets(7), 0);
    }

    #[test]
    fn what_is_left_of_a_time_is_as_many_octets_at_another_rate() {
        let of = |kbps| Pace::new(Some(Rate::kbps(kbps)), HZ);
        let left = of(1_000).rescaled(of(64).time(1500), of(64));
        assert!(left.abs_diff(of(1_000).time(1500)) <= 1);
        assert_eq!(Pace::NONE.rescaled(7, of(64)), 0);
        assert_eq!(of(64).rescaled(7, Pace::NONE), 0);
    }
}
