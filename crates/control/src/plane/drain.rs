//! Drained user planes: they take no new sessions, and their sessions end at the configured rate.
//!
//! Each drained user plane has a timer for its next session's end, and a position in the session table that only moves forward,
//! because no new session begins. While the user plane does not answer, no session ends, because its subscriber could not be
//! notified.

use super::change::{effect, sessions};
use super::pace::Pace;
use super::{ControlPlane, Effect, Now};
use crate::entry::Entry;
use crate::topology::UserPlaneId;
use config::Configuration;
use config::model::AdminState;
use core::time::Duration;
use session::Cause;
use std::collections::BTreeMap;

/// Interval of checks of a user plane that does not answer.
const LOOK: Duration = Duration::from_secs(1);

/// Drained user planes.
pub(super) type Drains = BTreeMap<UserPlaneId, Drain>;

/// Drain of a user plane.
pub(super) struct Drain {
    began: Duration,
    /// Number of its sessions when the drain began.
    before: u64,
    pace: Pace,
    /// Position in the session table of the search for it.
    index: u32,
    /// The user plane does not answer.
    waits: bool,
}

impl ControlPlane {
    /// Whether a user plane is drained and takes no new sessions.
    pub(super) fn is_drained(&self, plane: UserPlaneId) -> bool {
        self.drains.contains_key(&plane)
    }

    /// Starts, changes and stops drains as configured.
    pub(super) fn follow_drains(&mut self, now: Now) {
        let planes: Vec<(UserPlaneId, Option<u32>)> = self
            .topology
            .user_planes()
            .map(|(id, plane)| (id, rate(&self.configuration, &plane.node_id)))
            .collect();
        for (id, rate) in planes {
            let name = &self.topology.user_plane(id).node_id;
            match (rate, self.drains.get_mut(&id)) {
                (Some(rate), Some(drain)) if drain.pace.rate != rate => {
                    tracing::info!(user_plane = %name, rate, "the drain rate of a user plane changes");
                    let told = drain.pace.rate > 0 && drain.pace.next_at.is_none();
                    drain.pace.rate = rate;
                    drain.pace.next_at = (rate > 0 && !told).then_some(now.at);
                }
                (Some(_), Some(_)) | (None, None) => {}
                (Some(rate), None) => {
                    let left = self.sessions.on_user_plane(id);
                    tracing::info!(user_plane = %name, sessions = left, rate, "user plane is drained: it takes no new sessions");
                    let drain = Drain {
                        began: now.at,
                        before: left,
                        pace: Pace::from(now.at, rate),
                        index: 0,
                        waits: false,
                    };
                    self.drains.insert(id, drain);
                }
                (None, Some(_)) => {
                    if self.configuration.user_planes.contains_key(name) {
                        tracing::info!(user_plane = %name, "user plane takes new sessions again");
                    }
                    self.drains.remove(&id);
                }
            }
        }
        let topology = &self.topology;
        self.drains.retain(|id, _| topology.has_user_plane(*id));
    }

    /// Time of the next session's end.
    pub(super) fn drain_at(&self) -> Option<Duration> {
        self.drains
            .values()
            .filter_map(|drain| drain.pace.next_at)
            .min()
    }

    /// Ends the sessions that are due.
    pub(super) fn end_drained(&mut self, now: Now) {
        let due = |(id, drain): (&UserPlaneId, &Drain)| {
            drain
                .pace
                .next_at
                .is_some_and(|at| at <= now.at)
                .then_some(*id)
        };
        let planes: Vec<UserPlaneId> = self.drains.iter().filter_map(due).collect();
        for plane in planes {
            let answers = self.user_planes.is_answering(plane);
            let Some(drain) = self.drains.get_mut(&plane) else {
                continue;
            };
            drain.waits = !answers;
            if !answers {
                drain.pace.next_at = Some(now.at + LOOK);
                continue;
            }
            for _ in 0..drain.pace.due(now.at) {
                self.end_next(now, plane);
            }
        }
    }

    fn end_next(&mut self, now: Now, plane: UserPlaneId) {
        let Some(from) = self.drains.get(&plane).map(|drain| drain.index) else {
            return;
        };
        let mut left = self.sessions.from(from);
        let found = left
            .find(|(_, entry)| stays(entry, plane))
            .map(|(index, _)| index);
        drop(left);
        if let Some(drain) = self.drains.get_mut(&plane) {
            match found {
                Some(index) => drain.index = index + 1,
                None => drain.pace.next_at = None,
            }
        }
        if let Some(index) = found {
            self.end(now, index, Cause::AdminReboot);
        }
    }

    /// Notes that the last session of a drained user plane has ended.
    pub(super) fn note_drained(&self, plane: UserPlaneId) {
        if self.sessions.on_user_plane(plane) == 0 && self.is_drained(plane) {
            let name = &self.topology.user_plane(plane).node_id;
            tracing::info!(user_plane = %name, "user plane is drained: no session is left");
        }
    }

    /// Progress of a user plane's drain.
    pub(super) fn drain_row(&self, now: Now, plane: UserPlaneId) -> Option<northbound::Drain> {
        let drain = self.drains.get(&plane)?;
        let ends = drain.pace.rate > 0 && !drain.waits;
        let untold = || {
            let left = self.sessions.from(drain.index);
            left.filter(|(_, entry)| stays(entry, plane)).count() as u64
        };
        Some(northbound::Drain {
            sessions_before: drain.before,
            since_seconds: now.at.saturating_sub(drain.began).as_secs(),
            rate: drain.pace.rate,
            remaining_seconds: ends.then(|| untold().div_ceil(drain.pace.rate.into())),
            waits: drain.waits,
        })
    }

    /// Drains that a changed configuration starts or stops.
    pub(super) fn changed_drains(&self, new: &Configuration) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (id, plane) in self.topology.user_planes() {
            let name = &plane.node_id;
            let (before, after) = (rate(&self.configuration, name), rate(new, name));
            if before == after || !new.user_planes.contains_key(name) {
                continue;
            }
            let count = self.sessions.on_user_plane(id);
            let (ends, text) = match (before, after) {
                (_, Some(rate @ 1..)) if count > 0 => {
                    let seconds = count.div_ceil(rate.into());
                    let what = sessions(count);
                    let text = format!(
                        "user plane {name} takes no new sessions and ends its {what}: {rate} a second, in about {seconds} s"
                    );
                    (true, text)
                }
                (None, Some(_)) => {
                    let what = sessions(count);
                    let text = format!("user plane {name} takes no new sessions; its {what} stay");
                    (false, text)
                }
                (Some(_), Some(_)) => {
                    let text = format!("user plane {name} ends no more sessions");
                    (false, text)
                }
                (_, None) => (false, format!("user plane {name} takes new sessions again")),
            };
            effects.push(effect(if ends { count } else { 0 }, ends, text));
        }
        effects
    }
}

/// Whether a session is on this user plane and is not ending.
fn stays(entry: &Entry, plane: UserPlaneId) -> bool {
    entry.user_plane == plane && !entry.is_ending()
}

/// Configured number of sessions to end per second on a drained user plane; `None` if it is not drained.
fn rate(configuration: &Configuration, user_plane: &str) -> Option<u32> {
    let plane = configuration.user_planes.get(user_plane)?;
    match plane.admin_state {
        AdminState::Unlocked => None,
        AdminState::ShuttingDown => Some(plane.end_sessions.into()),
    }
}
