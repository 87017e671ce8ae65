//! How long received frames wait until the control plane's loop reads them. Whatever keeps the loop shows here, from any side.

use core::time::Duration;

/// A wait that is counted as long.
const LONG: Duration = Duration::from_millis(5);
/// The longest wait is that of the present minute and of the one before.
const MINUTE: Duration = Duration::from_secs(60);

/// Waits of frames.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Begin of the present minute.
    begun: Duration,
    now: Duration,
    before: Duration,
    long: u64,
}

impl Waits {
    /// A frame was read that had waited for this long.
    pub fn add(&mut self, at: Duration, waited: Duration) {
        self.turn(at);
        self.now = self.now.max(waited);
        self.long += u64::from(waited > LONG);
    }

    /// What is told of them.
    pub fn told(&mut self, at: Duration) -> northbound::Waits {
        self.turn(at);
        let longest = self.now.max(self.before).as_micros();
        northbound::Waits {
            longest_microseconds: u64::try_from(longest).unwrap_or(u64::MAX),
            long: self.long,
        }
    }

    fn turn(&mut self, at: Duration) {
        let passed = at.saturating_sub(self.begun);
        if passed >= MINUTE {
            self.before = match passed < 2 * MINUTE {
                true => self.now,
                false => Duration::ZERO,
            };
            (self.begun, self.now) = (at, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_told_for_one_to_two_minutes_and_long_ones_are_counted() {
        let second = Duration::from_secs;
        let mut waits = Waits::default();
        waits.add(second(10), Duration::from_millis(7));
        waits.add(second(20), Duration::from_millis(5));
        let told = |waits: &mut Waits, at| {
            let told = waits.told(second(at));
            (told.longest_microseconds, told.long)
        };
        assert_eq!(told(&mut waits, 59), (7000, 1));
        waits.add(second(60), Duration::from_micros(30));
        assert_eq!(told(&mut waits, 119), (7000, 1));
        assert_eq!(told(&mut waits, 120), (30, 1));
        assert_eq!(told(&mut waits, 300), (0, 1));
    }
}
