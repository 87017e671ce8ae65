//! Pace at which sessions end, so many in a second.

use core::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Sessions to end, so many in a second.
pub(super) struct Pace {
    /// Number of sessions to end per second; 0 for none.
    pub rate: u32,
    /// Time of the next session's end; `None` if no session is to end, or all were ended.
    pub next_at: Option<Duration>,
}

impl Pace {
    /// The first session ends now.
    pub fn from(now: Duration, rate: u32) -> Self {
        Pace {
            rate,
            next_at: (rate > 0).then_some(now),
        }
    }

    /// Number of sessions to end now. It sets the time of the next one. After a delay it catches up by at most one second's number.
    pub fn due(&mut self, now: Duration) -> u32 {
        let Some(at) = self.next_at.filter(|at| *at <= now && self.rate > 0) else {
            return 0;
        };
        let interval = SECOND / self.rate;
        let due = (now - at).as_nanos() / interval.as_nanos() + 1;
        let due = due.min(self.rate.into()) as u32;
        self.next_at = Some((at + interval * due).max(now));
        due
    }
}
