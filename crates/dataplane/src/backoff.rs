//! When a worker that has little to do sleeps, and how long.
//!
//! What arrives meanwhile waits in the queues of its ports. So that none of it is lost when a port goes from nothing to its full
//! rate, a sleep, late as it may end, is over before a queue is full: `(sleep + LATE) * rate <= descriptors`. A port that comes
//! too fast for any sleep is polled all the time.
use core::time::Duration;

/// Packets a second of a port whose driver does not say how fast it is, as that of a TAP, a veth or a ring in memory. The kernel
/// makes these packets, and takes 1,900 cycles for one that it forwards (`kernel-veth` in docs/performance.md): about 1.4
/// million a second by a core. This is what seven such cores bring into one queue.
pub const ASSUMED_RATE: u64 = 10_000_000;

/// How much later than asked for the system wakes a thread, as a rule.
const LATE: Duration = Duration::from_micros(20);
/// A shorter sleep costs more than it saves.
const SHORTEST: Duration = Duration::from_micros(10);
/// Of 5,000 packets a second none makes a worker work. In the median each waits for half of a sleep and of what it is late: for 40 us
/// of the 60 us that it may take.
const LONGEST: Duration = Duration::from_micros(60);
/// Where every queue wakes the worker: commands and injected packets wait so long, which do not.
const WOKEN: Duration = Duration::from_millis(1);

/// Where packets wait while the worker sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// How many may.
    pub room: u32,
    /// How many come in a second at most, if that is known.
    pub rate: Option<u64>,
}

/// The longest sleep by which nothing is lost in any of these, and that is over in time for what is to be done then; `None`: there is
/// none.
pub(crate) fn longest(
    all: impl Iterator<Item = Waiting>,
    until: Option<Duration>,
) -> Option<Duration> {
    let fills = all.map(|Waiting { room, rate }| {
        let rate = rate.unwrap_or(ASSUMED_RATE).max(1);
        Duration::from_nanos(u64::from(room) * 1_000_000_000 / rate)
    });
    let bound = match fills.min() {
        Some(first) => first.saturating_sub(LATE).min(LONGEST),
        None => WOKEN,
    };
    let sleep = until.map_or(bound, |until| bound.min(until.saturating_sub(LATE)));
    (sleep >= SHORTEST).then_some(sleep)
}

/// Whether there is little to do.
#[derive(Default)]
pub(crate) struct Backoff {
    empty: u32,
}

impl Backoff {
    /// Empty rounds before the first sleep.
    const SPIN: u32 = 256;
    /// So many packets in a round are load.
    const BUSY: usize = 16;

    /// Whether the worker may sleep after a round with so much work. A few packets neither wake it up nor put it to sleep: homes
    /// that send ten packets a second are idle.
    pub fn is_idle(&mut self, work: usize) -> bool {
        if work >= Self::BUSY {
            self.empty = 0;
        } else if work == 0 {
            self.empty = self.empty.saturating_add(1);
        }
        self.empty >= Self::SPIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_sleeps_after_idleness_and_never_under_load() {
        let mut backoff = Backoff::default();
        assert!((1..256).all(|_| !backoff.is_idle(0)));
        assert!(backoff.is_idle(0) && backoff.is_idle(1));
        assert!(!backoff.is_idle(16) && !backoff.is_idle(0));
    }

    /// Packets of 64 octets and what lies between them on the wire.
    fn line_rate(gigabits: u64) -> u64 {
        gigabits * 1_000_000_000 / 672
    }

    #[test]
    fn no_queue_is_full_before_a_sleep_is_over() {
        let rates = [1, 10, 25, 40, 100, 400].map(|gigabits| Some(line_rate(gigabits)));
        for rate in rates.into_iter().chain([None]) {
            for room in [64, 256, 512, 1024, 2048, 4096, 16384] {
                let Some(sleep) = longest([Waiting { room, rate }].into_iter(), None) else {
                    continue;
                };
                let most = (sleep + LATE).as_secs_f64() * rate.unwrap_or(ASSUMED_RATE) as f64;
                assert!(most <= f64::from(room), "{room} at {rate:?}: {sleep:?}");
                assert!(sleep >= SHORTEST && (sleep + LATE) / 2 <= Duration::from_micros(40));
            }
        }
    }

    #[test]
    fn the_fastest_port_decides_and_may_forbid_sleeping() {
        let port = |gigabits| Waiting {
            room: 1024,
            rate: Some(line_rate(gigabits)),
        };
        let unknown = Waiting {
            room: 1024,
            rate: None,
        };
        let until = |all: &[Waiting], until| {
            longest(all.iter().copied(), until).map(|sleep| sleep.as_micros())
        };
        let of = |all: &[Waiting]| until(all, None);
        assert_eq!(of(&[unknown]), Some(60));
        assert_eq!(of(&[port(1)]), Some(60));
        assert_eq!(of(&[unknown, port(1), port(10)]), Some(48));
        assert_eq!(of(&[port(10), port(100)]), None);
        assert_eq!(of(&[]), Some(1000));
        // a packet that may leave at a time is not left waiting
        let at = |micros| Some(Duration::from_micros(micros));
        assert_eq!(until(&[], at(500)), Some(480));
        assert_eq!(until(&[port(10)], at(500)), Some(48));
        assert_eq!(until(&[port(10)], at(50)), Some(30));
        assert_eq!(until(&[unknown], at(25)), None);
        assert_eq!(until(&[], at(0)), None);
    }
}
