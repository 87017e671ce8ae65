//! Deadlines of eight octets, and a random number generator for values that need not be secret.
use core::time::Duration;

/// Point in time in nanoseconds, or never. It is half the size of `Option<Duration>`, and a session has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// No point in time.
    pub const NEVER: Deadline = Deadline(u64::MAX);

    /// The time `delay` after `now`; [`Deadline::NEVER`] if that is more than five centuries ahead.
    pub fn after(now: Duration, delay: Duration) -> Self {
        Deadline(nanoseconds(now.saturating_add(delay)))
    }

    /// Whether the deadline has passed.
    pub fn is_due(self, now: Duration) -> bool {
        self != Self::NEVER && u128::from(self.0) <= now.as_nanos()
    }

    /// Whether the deadline has passed. Clears it then.
    pub fn take_if_due(&mut self, now: Duration) -> bool {
        let due = self.is_due(now);
        if due {
            *self = Self::NEVER;
        }
        due
    }

    /// The time; `None`: never.
    pub fn get(self) -> Option<Duration> {
        (self != Self::NEVER).then(|| Duration::from_nanos(self.0))
    }
}

/// In nanoseconds. The range is five centuries.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// SplitMix64: eight octets of state. Not for secrets by itself; see [`crate::auth`] for challenges.
#[derive(Clone, Copy)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn nonzero_u32(&mut self) -> u32 {
        (self.next() >> 32) as u32 | 1
    }

    pub(crate) fn nonzero_u64(&mut self) -> u64 {
        self.next() | 1
    }

    /// A duration between `low` and `high`.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let share = (self.next() >> 40) as f64 / (1u64 << 24) as f64;
        low + high.saturating_sub(low).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_due_once() {
        let second = Duration::from_secs(1);
        let mut at = Deadline::after(second, second);
        assert_eq!(at.get(), Some(2 * second));
        assert!(!at.take_if_due(second));
        assert!(at.take_if_due(2 * second));
        assert!(!at.take_if_due(3 * second));
        assert_eq!(Deadline::after(second, Duration::MAX / 2).get(), None);
        assert!(Deadline::after(second, second) < Deadline::NEVER);
    }

    #[test]
    fn jitter_stays_in_its_range() {
        let mut rng = Rng(7);
        let (low, high) = (Duration::from_secs(27), Duration::from_secs(33));
        let drawn: Vec<_> = (0..1000).map(|_| rng.between(low, high)).collect();
        assert!(drawn.iter().all(|d| (low..=high).contains(d)));
        assert!(
            drawn
                .iter()
                .max()
                .unwrap()
                .abs_diff(*drawn.iter().min().unwrap())
                > Duration::from_secs(5)
        );
    }
}
