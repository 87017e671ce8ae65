//! Sessions of which the hits of each rule are counted. Only their own packets come here.
use crate::api::{MAX_WATCHED, SessionIndex};
use crate::compiled::{CompiledPolicy, Matched, RuleHits};
use policy::Direction;
use std::sync::Arc;

/// A direction of a session.
type Way = (SessionIndex, Direction);

/// Counters of the sessions that are watched. The controller has them as well, so that none is freed here.
pub(crate) struct Watches(Vec<(Way, Arc<RuleHits>)>);

impl Watches {
    /// No session is watched.
    pub fn new() -> Self {
        Watches(Vec::with_capacity(2 * MAX_WATCHED))
    }

    /// Sets where hits are counted; `None`: nowhere. Whether they are counted now: not if there is no room.
    pub fn set(&mut self, way: Way, hits: Option<Arc<RuleHits>>) -> bool {
        self.0.retain(|(watched, _)| *watched != way);
        let has_room = self.0.len() < 2 * MAX_WATCHED;
        let hits = hits.filter(|_| has_room);
        let is_watched = hits.is_some();
        self.0.extend(hits.map(|hits| (way, hits)));
        is_watched
    }

    /// Takes the counters of a direction of a session out.
    pub fn take(&mut self, way: Way) -> Option<Arc<RuleHits>> {
        let at = self.0.iter().position(|(watched, _)| *watched == way)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Counts a packet of so many octets. Not while the control thread does not know yet that the policy is another one.
    #[cold]
    #[inline(never)]
    pub fn count(&self, way: Way, policy: &CompiledPolicy, matched: Matched, octets: usize) {
        let mut watches = self.0.iter();
        let watched = watches
            .find(|(watched, hits)| *watched == way && hits.compilation() == policy.compilation());
        if let Some((_, hits)) = watched {
            hits.count(matched, octets);
        }
    }
}
