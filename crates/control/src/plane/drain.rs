//! User planes that are drained: they take no new sessions, and those that they have are ended at the wanted rate.
//!
//! One clock for each user plane says when its next session ends; which one that is, a place in the table of sessions says,
//! which only moves forward: nobody dials in meanwhile. While the user plane does not answer nothing ends, because its
//! subscribers could not be told.

use super::change::{Change, effect, sessions};
use super::{ControlPlane, Now};
use crate::topology::UserPlaneId;
use config::Configuration;
use config::model::AdminState;
use core::time::Duration;
use session::{Cause, Phase};
use std::collections::BTreeMap;

/// How often a user plane that does not answer is looked at.
const LOOK: Duration = Duration::from_secs(1);
const SECOND: Duration = Duration::from_secs(1);

/// The user planes that are drained.
pub(super) type Drains = BTreeMap<UserPlaneId, Drain>;

/// A user plane that is drained.
pub(super) struct Drain {
    began: Duration,
    /// Its sessions then.
    before: u64,
    /// How many are ended in a second; 0: none.
    rate: u32,
    /// When the next one is ended; `None`: none is, or all have been told.
    next_at: Option<Duration>,
    /// Where in the table of sessions it is looked for.
    place: usize,
    /// The user plane does not answer.
    waits: bool,
}

impl Drain {
    /// How many sessions are to end by now, and when the next one does. A delay is made up for by no more than a second's
    /// worth.
    fn due(&mut self, now: Duration) -> u32 {
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

impl ControlPlane {
    /// Whether a user plane takes no new sessions.
    pub(super) fn is_drained(&self, plane: UserPlaneId) -> bool {
        self.drains.contains_key(&plane)
    }

    /// What is drained, and how fast, is what the configuration says.
    pub(super) fn follow_drains(&mut self, now: Now) {
        let planes: Vec<(UserPlaneId, Option<u32>)> = self
            .topology
            .user_planes()
            .map(|(id, plane)| (id, rate(&self.configuration, &plane.node_id)))
            .collect();
        for (id, rate) in planes {
            let name = &self.topology.user_plane(id).node_id;
            match (rate, self.drains.get_mut(&id)) {
                (Some(rate), Some(drain)) if drain.rate != rate => {
                    tracing::info!(user_plane = %name, rate, "the drain rate of a user plane changes");
                    let told = drain.rate > 0 && drain.next_at.is_none();
                    drain.rate = rate;
                    drain.next_at = (rate > 0 && !told).then_some(now.at);
                }
                (Some(_), Some(_)) | (None, None) => {}
                (Some(rate), None) => {
                    let left = self.count_on(id);
                    tracing::info!(user_plane = %name, sessions = left, rate, "user plane is drained: it takes no new sessions");
                    let drain = Drain {
                        began: now.at,
                        before: left,
                        rate,
                        next_at: (rate > 0).then_some(now.at),
                        place: 0,
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

    /// When the next session is ended.
    pub(super) fn drain_at(&self) -> Option<Duration> {
        self.drains.values().filter_map(|drain| drain.next_at).min()
    }

    /// Ends as many sessions as it is time for.
    pub(super) fn end_drained(&mut self, now: Now) {
        let due = |(id, drain): (&UserPlaneId, &Drain)| {
            drain.next_at.is_some_and(|at| at <= now.at).then_some(*id)
        };
        let planes: Vec<UserPlaneId> = self.drains.iter().filter_map(due).collect();
        for plane in planes {
            let answers = self.user_planes.is_answering(plane);
            let Some(drain) = self.drains.get_mut(&plane) else {
                continue;
            };
            drain.waits = !answers;
            if !answers {
                drain.next_at = Some(now.at + LOOK);
                continue;
            }
            for _ in 0..drain.due(now.at) {
                self.end_next(now, plane);
            }
        }
    }

    fn end_next(&mut self, now: Now, plane: UserPlaneId) {
        let Some(from) = self.drains.get(&plane).map(|drain| drain.place) else {
            return;
        };
        let found = (from..self.sessions.capacity())
            .find(|place| self.sessions.contains(*place) && self.stays(*place as u32, plane));
        if let Some(drain) = self.drains.get_mut(&plane) {
            match found {
                Some(place) => drain.place = place + 1,
                None => drain.next_at = None,
            }
        }
        if let Some(place) = found {
            self.end(now, place as u32, Cause::AdminReboot);
        }
    }

    /// Whether a session is one of this user plane's, and nobody has said goodbye yet.
    fn stays(&self, index: u32, plane: UserPlaneId) -> bool {
        let entry = &self.sessions[index as usize];
        let phase = entry.link.as_ref().map(|link| link.phase());
        let leaves = matches!(phase, Some(Phase::Terminate | Phase::Closed));
        !entry.is_closing() && !leaves && self.plane_of(index) == plane
    }

    /// A session of this user plane is no more.
    pub(super) fn count_off(&mut self, plane: UserPlaneId) {
        let left = self.counts.entry(plane).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
        self.counts.remove(&plane);
        if self.is_drained(plane) {
            let name = &self.topology.user_plane(plane).node_id;
            tracing::info!(user_plane = %name, "user plane is drained: no session is left");
        }
    }

    /// How far a user plane is drained.
    pub(super) fn drain_row(&self, now: Now, plane: UserPlaneId) -> Option<northbound::Drain> {
        let drain = self.drains.get(&plane)?;
        let ends = drain.rate > 0 && !drain.waits;
        let untold = || {
            let places = drain.place..self.sessions.capacity();
            let there = places.filter(|place| self.sessions.contains(*place));
            there
                .filter(|place| self.stays(*place as u32, plane))
                .count() as u64
        };
        Some(northbound::Drain {
            sessions_before: drain.before,
            since_seconds: now.at.saturating_sub(drain.began).as_secs(),
            rate: drain.rate,
            remaining_seconds: ends.then(|| untold().div_ceil(drain.rate.into())),
            waits: drain.waits,
        })
    }

    /// What a changed configuration drains, or no longer.
    pub(super) fn find_drained(&self, new: &Configuration, change: &mut Change) {
        for (id, plane) in self.topology.user_planes() {
            let name = &plane.node_id;
            let (before, after) = (rate(&self.configuration, name), rate(new, name));
            if before == after || !new.user_planes.contains_key(name) {
                continue;
            }
            let count = self.count_on(id);
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
            change
                .effects
                .push(effect(if ends { count } else { 0 }, ends, text));
        }
    }
}

/// How many sessions are ended in a second on a user plane that is drained; `None`: it is not.
fn rate(configuration: &Configuration, user_plane: &str) -> Option<u32> {
    let plane = configuration.user_planes.get(user_plane)?;
    match plane.admin_state {
        AdminState::Unlocked => None,
        AdminState::ShuttingDown => Some(plane.end_sessions.into()),
    }
}
