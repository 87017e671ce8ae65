//! Sessions that an administrator ends by a filter: at a pace that user planes and AAA keep up with.
//!
//! The sessions are those that matched when it began. Who connects again meanwhile has another session, which stays.

use super::pace::Pace;
use super::{ControlPlane, Now};
use crate::topology::Seid;
use core::time::Duration;
use northbound::{ClearSessionsResponse, Refusal, SessionClear};
use session::Cause;
use std::collections::VecDeque;

/// How many of the latest are remembered.
const REMEMBERED: usize = 16;

/// The clears that are remembered, the last one first. At most that one is under way.
#[derive(Default)]
pub(super) struct Clears {
    latest: VecDeque<Clear>,
}

/// A clear.
struct Clear {
    /// Sessions that are to end, the next one first.
    left: VecDeque<Seid>,
    pace: Pace,
    /// The row that operators see. Its remaining time is computed when it is shown.
    row: SessionClear,
}

impl Clear {
    fn is_under_way(&self) -> bool {
        !self.left.is_empty()
    }

    fn row(&self) -> SessionClear {
        let left = self.left.len() as u64;
        SessionClear {
            remaining_seconds: self
                .is_under_way()
                .then(|| left.div_ceil(self.pace.rate.into())),
            ..self.row.clone()
        }
    }
}

impl Clears {
    fn under_way(&mut self) -> Option<&mut Clear> {
        self.latest.front_mut().filter(|clear| clear.is_under_way())
    }

    /// Time of the next session's end.
    pub fn next_at(&self) -> Option<Duration> {
        let last = self.latest.front().filter(|clear| clear.is_under_way());
        last.and_then(|clear| clear.pace.next_at)
    }

    /// The rows that operators see.
    pub fn rows(&self) -> Vec<SessionClear> {
        self.latest.iter().map(Clear::row).collect()
    }

    /// Begins to end sessions.
    ///
    /// # Errors
    /// An earlier clear is under way.
    pub fn begin(
        &mut self,
        now: Now,
        ids: Vec<u64>,
        row: SessionClear,
    ) -> Result<ClearSessionsResponse, Refusal> {
        if let Some(clear) = self.under_way() {
            let (left, by) = (clear.left.len(), &clear.row.by);
            return Err(Refusal::Busy(format!(
                "{left} sessions are still to end for {by}: wait until `show session-clears` says that it is done, or stop it"
            )));
        }
        let (sessions, rate) = (ids.len() as u64, row.rate);
        tracing::info!(
            by = row.by,
            filter = row.filter,
            sessions,
            rate,
            "an administrator ends sessions"
        );
        self.latest.truncate(REMEMBERED - 1);
        self.latest.push_front(Clear {
            left: ids.into_iter().map(Seid).collect(),
            pace: Pace::from(now.at, rate),
            row: SessionClear {
                at: now.unix.into(),
                sessions,
                ..row
            },
        });
        Ok(ClearSessionsResponse { sessions, rate })
    }

    /// Ends no more sessions.
    ///
    /// # Errors
    /// No clear is under way.
    pub fn stop(&mut self, by: String) -> Result<ClearSessionsResponse, Refusal> {
        let Some(clear) = self.under_way() else {
            let nothing =
                "no `clear sessions` is under way: `show session-clears` shows the latest";
            return Err(Refusal::NotFound(nothing.into()));
        };
        let sessions = clear.left.len() as u64;
        tracing::info!(by, sessions, "an administrator ends no more sessions");
        clear.left = VecDeque::new();
        clear.row.stopped_by = by;
        Ok(ClearSessionsResponse {
            sessions,
            rate: clear.row.rate,
        })
    }
}

impl ControlPlane {
    /// Ends the sessions that are due.
    pub(super) fn end_cleared(&mut self, now: Now) {
        let due = self.clears.under_way().map(|clear| clear.pace.due(now.at));
        for _ in 0..due.unwrap_or(0) {
            self.end_next_cleared(now);
        }
    }

    fn end_next_cleared(&mut self, now: Now) {
        let Some(clear) = self.clears.under_way() else {
            return;
        };
        let Some(seid) = clear.left.pop_front() else {
            return;
        };
        let index = self.sessions.find(seid);
        let index = index.filter(|index| !self.sessions[*index].is_ending());
        let count = match index {
            Some(_) => &mut clear.row.ended,
            None => &mut clear.row.gone,
        };
        *count += 1;
        if clear.left.is_empty() {
            let (ended, gone) = (clear.row.ended, clear.row.gone);
            tracing::info!(
                by = clear.row.by,
                ended,
                gone,
                "the sessions that an administrator ends have ended"
            );
        }
        let by = clear.row.by.clone();
        if let Some(index) = index {
            self.entry(index).under_way.ended_by = Some(by.into());
            self.end(now, index, Cause::AdminReset);
        }
    }
}
