//! When whose turn it is to send.

use core::time::Duration;

/// Gives each of many senders one turn per interval, spread evenly over it.
///
/// ```
/// use core::time::Duration;
///
/// let mut pace = cpe::Pace::new(4, Duration::from_millis(100), Duration::ZERO);
/// assert_eq!(pace.due(Duration::from_millis(30)).collect::<Vec<_>>(), [0, 1]);
/// assert_eq!(pace.due(Duration::from_millis(110)).collect::<Vec<_>>(), [2, 3, 0]);
/// ```
#[derive(Clone, Debug)]
pub struct Pace {
    senders: u32,
    interval: Duration,
    start: Duration,
    /// Turns given since `start`.
    given: u64,
}

impl Pace {
    /// The first turn is due at `now`.
    pub fn new(senders: u32, interval: Duration, now: Duration) -> Self {
        Pace {
            senders: senders.max(1),
            interval,
            start: now,
            given: 0,
        }
    }

    /// The senders whose turn has come. After a pause of more than an interval nobody gets more than one turn:
    /// what was missed is not made up for.
    pub fn due(&mut self, now: Duration) -> impl Iterator<Item = u32> + use<> {
        let senders = u64::from(self.senders);
        let elapsed = now.saturating_sub(self.start).as_nanos();
        let interval = self.interval.as_nanos().max(1);
        let turns = (elapsed * u128::from(senders) / interval) as u64 + 1;
        let from = self.given.max(turns.saturating_sub(senders));
        self.given = turns.max(from);
        (from..self.given).map(move |turn| (turn % senders) as u32)
    }

    /// Begins anew after a pause, as if nobody had had a turn.
    pub fn restart(&mut self, now: Duration) {
        (self.start, self.given) = (now, 0);
    }

    /// When the next turn is due.
    pub fn next_at(&self) -> Duration {
        let ahead = self.interval.as_nanos() * u128::from(self.given) / u128::from(self.senders);
        self.start + Duration::from_nanos(u64::try_from(ahead).unwrap_or(u64::MAX))
    }
}

/// Permits so many things a second, one after the other: what was not used in time is lost, but for a little.
///
/// ```
/// use core::time::Duration;
///
/// let mut rate = cpe::Rate::new(100.0, Duration::ZERO);
/// assert!(rate.take(Duration::ZERO));
/// assert!(!rate.take(Duration::from_millis(9)));
/// assert!(rate.take(Duration::from_millis(10)));
/// assert_eq!(rate.next_at(), Duration::from_millis(20));
/// ```
#[derive(Clone, Debug)]
pub struct Rate {
    pause: Duration,
    next: Duration,
}

/// What a [`Rate`] makes up for after a pause: more than a busy thread is late.
const CATCH_UP: Duration = Duration::from_millis(20);

impl Rate {
    /// `per_second` things from `now` on; the first is permitted at once. Not more than 10^9, and at least one in a day.
    pub fn new(per_second: f64, now: Duration) -> Self {
        let pause = (1.0 / per_second).clamp(1e-9, 86_400.0);
        Rate {
            pause: Duration::from_secs_f64(pause),
            next: now,
        }
    }

    /// Whether one more is permitted at `now`; it counts as done then.
    pub fn take(&mut self, now: Duration) -> bool {
        if self.next > now {
            return false;
        }
        self.next = self.next.max(now.saturating_sub(CATCH_UP)) + self.pause;
        true
    }

    /// When the next one is permitted.
    pub fn next_at(&self) -> Duration {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_gets_the_same_number_of_turns_however_often_one_looks() {
        for step_us in [700u64, 5_000, 33_000] {
            let mut pace = Pace::new(7, Duration::from_millis(90), Duration::from_secs(5));
            let mut turns = [0u32; 7];
            let mut now = Duration::from_secs(5);
            while now < Duration::from_secs(14) {
                pace.due(now).for_each(|sender| turns[sender as usize] += 1);
                now += Duration::from_micros(step_us);
            }
            assert!(
                turns.iter().all(|t| (99..=101).contains(t)),
                "{step_us}: {turns:?}"
            );
        }
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut pace = Pace::new(3, Duration::from_millis(100), Duration::ZERO);
        assert_eq!(pace.due(Duration::from_secs(10)).count(), 3);
        assert_eq!(pace.due(Duration::from_secs(10)).count(), 0);
        assert!(pace.next_at() > Duration::from_secs(10));
        assert!(pace.next_at() <= Duration::from_secs(10) + Duration::from_millis(34));
    }

    #[test]
    fn a_rate_is_kept_however_often_one_looks_and_not_made_up_for_after_a_pause() {
        for step_us in [100, 1_700, 15_000] {
            let (mut rate, mut now, mut done) =
                (Rate::new(700.0, Duration::ZERO), Duration::ZERO, 0);
            while now < Duration::from_secs(3) {
                while rate.take(now) {
                    done += 1;
                }
                now += Duration::from_micros(step_us);
            }
            assert!((2080..=2101).contains(&done), "{step_us}: {done}");
            now += Duration::from_secs(9);
            let burst = (0..10_000).take_while(|_| rate.take(now)).count();
            assert!(burst <= 15, "{burst}");
        }
    }

    #[test]
    fn after_a_pause_turns_are_spread_again() {
        let mut pace = Pace::new(100, Duration::from_millis(100), Duration::ZERO);
        assert_eq!(pace.due(Duration::from_millis(1)).count(), 2);
        pace.restart(Duration::from_secs(9));
        assert_eq!(pace.due(Duration::from_secs(9)).collect::<Vec<_>>(), [0]);
        assert_eq!(pace.next_at(), Duration::from_millis(9001));
    }
}
