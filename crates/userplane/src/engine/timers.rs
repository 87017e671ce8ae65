//! Timers of sessions: one heap for all kinds. A session has at most one of each kind, and a timer that is not its session's any more is void.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Engine, Now, Session};
use crate::table::Seid;

/// Below this number of timers nobody looks for void ones.
pub(super) const FEW: usize = 1024;

impl<T> Session<T> {
    /// Times of its next usage report, idle check and check for life.
    pub(super) fn timers(&self) -> [Option<Duration>; 3] {
        [self.report_at, self.idleness.look_at(), self.watch.check_at]
    }

    /// Whether the session has a timer for this time.
    pub(super) fn is_armed(&self, at: Duration) -> bool {
        self.timers().contains(&Some(at))
    }
}

impl<T: Copy> Engine<T> {
    pub(super) fn arm_timer(&mut self, at: Duration, seid: Seid) {
        if self.timers.len() >= self.clean_timers_at {
            self.drop_void_timers();
        }
        self.timers.push(Reverse((at, seid)));
    }

    /// Drops the timers of sessions that have ended or have others now. They would be found void when they are due, but sessions that come
    /// and go leave many behind until then.
    fn drop_void_timers(&mut self) {
        let table = &self.table;
        self.timers.retain(|Reverse((at, seid))| {
            let session = table.resolve(*seid);
            session.is_some_and(|session| session.is_armed(*at))
        });
        self.clean_timers_at = (2 * self.timers.len()).max(FEW);
        self.timers.shrink_to(self.clean_timers_at);
    }

    /// Handles everything that is due.
    pub fn on_timeout(&mut self, now: Now) {
        self.end_hold(now);
        self.end_telling(now);
        self.pack_due(now.monotonic);
        while let Some(Reverse((at, seid))) = self.timers.peek().copied()
            && at <= now.monotonic
        {
            self.timers.pop();
            // A timer is not removed when it becomes void; it is found void here.
            let session = self.table.resolve(seid);
            let due = session.map(|session| session.timers().map(|timer| timer == Some(at)));
            let [report, look, check] = due.unwrap_or_default();
            if report {
                self.report_due(now, seid, at);
            }
            if look {
                self.look_due(now, seid);
            }
            if check {
                self.check_due(now, seid);
            }
        }
    }
}
