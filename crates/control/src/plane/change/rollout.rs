//! Carries out what a change of the configuration touches of sessions in portions, so that nothing waits for very many of them.
//!
//! A walk through the session table brings each touched session into line with the configuration in force. Sessions that come while it
//! lasts begin with that configuration. If the control plane is killed meanwhile, its next run does the same when it starts.

use super::touched::Touched;
use crate::plane::rules::ADJUST_WINDOW;
use crate::plane::{ControlPlane, Now};
use core::time::Duration;
use session::Command;

/// Pause between two portions, in which others are served.
const PAUSE: Duration = Duration::from_millis(1);
/// Work of a portion, in sessions that are looked at and stay as they are.
const PORTION: usize = 1024;
/// Work on a session whose link gets other settings, and on one that gets another policy or ends.
const LINK: usize = 4;
const POLICY: usize = 16;
const END: usize = 16;

/// Walk through the sessions after a change.
#[derive(Default)]
pub(in crate::plane) struct Rollout {
    touched: Touched,
    /// Place of the next session to look at; `None` if all were.
    next: Option<u32>,
    /// When the next ones are.
    at: Duration,
}

impl Rollout {
    /// Whether it may still end sessions that have lost their place.
    pub fn displaces(&self) -> bool {
        self.next.is_some() && !self.touched.places.is_empty()
    }
}

impl ControlPlane {
    /// Begins to carry out what a change touches. What another change has left to do is done as well.
    pub(in crate::plane) fn roll_out(&mut self, now: Now, touched: Touched) {
        if touched.is_nothing() {
            return;
        }
        if self.rollout.next.is_none() {
            self.rollout.touched = Touched::default();
        }
        self.rollout.touched.add(touched);
        self.rollout.next = Some(0);
        self.roll_out_more(now);
    }

    /// Time at which [`ControlPlane::roll_out_more`] has more to do.
    pub(in crate::plane) fn rollout_at(&self) -> Option<Duration> {
        self.rollout.next.map(|_| self.rollout.at)
    }

    /// Carries out the next portion. It waits for user planes that have many policies to answer, unless sessions may have to end.
    pub(in crate::plane) fn roll_out_more(&mut self, now: Now) {
        let mut rollout = std::mem::take(&mut self.rollout);
        rollout.at = now.at + PAUSE;
        if let Some(from) = rollout.next
            && (self.adjusting.len() < ADJUST_WINDOW || rollout.touched.may_end())
        {
            rollout.next = self.roll_out_from(now, from, &rollout.touched);
        }
        self.rollout = rollout;
        self.adjust_more(now);
    }

    /// Carries out a portion from a place on. Returns the place of the next one.
    fn roll_out_from(&mut self, now: Now, from: u32, touched: &Touched) -> Option<u32> {
        let portion = self.sessions.from(from).map(|(index, _)| index);
        let portion: Vec<u32> = portion.take(PORTION).collect();
        let mut work = 0;
        for &index in &portion {
            work += self.roll_out_to(now, index, touched);
            if work >= PORTION {
                return Some(index + 1);
            }
        }
        None
    }

    /// Brings a session into line with the configuration. Returns how much work that was.
    fn roll_out_to(&mut self, now: Now, index: u32, touched: &Touched) -> usize {
        // the end of another one may have ended it
        let Some(entry) = self.sessions.get(index).filter(|entry| !entry.is_closing()) else {
            return 1;
        };
        let view = self.view();
        if touched.displaces(&self.topology, entry)
            || touched.may_end() && !entry.is_ending() && view.is_user_gone(entry)
        {
            self.end_for_configuration(now, index);
            return END;
        }
        let (seid, segment) = (entry.seid, entry.segment);
        let has_link = touched.link_of(entry);
        let has_policy = touched.has_policies() && touched.policy_of(view, entry);
        let has_policy = has_policy && self.policy_differs(index);
        if has_policy {
            self.adjusting.push_back(seid);
        }
        if has_link {
            let settings = self.access(segment).session.clone();
            self.drive(now, index, Command::Configure(settings));
            self.sessions.arm(index);
        }
        1 + if has_policy { POLICY } else { 0 } + if has_link { LINK } else { 0 }
    }
}
