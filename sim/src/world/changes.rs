//! The operator's changes of the configuration, committed as `control` commits them.

use super::scene::document;
use super::{Event, World};
use crate::plan::{CHANGES, Fault, Part};
use crate::user_plane::MISSING_DEVICE;
use control::configuration::{Adoption, LAST_WORDS, LOOK_AGAIN, adopt};
use core::time::Duration;
use std::collections::BTreeSet;

/// How long the operator waits before they try again.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a change may be refused although no device is missing.
const MOST_REFUSALS: u32 = 60;

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commit {
    Done,
    /// It has to be tried again: nobody can do it now, or a device is missing now.
    Later,
    /// A user plane is against it.
    Refused,
}

/// Room for every home, whatever else the configuration says.
const ROOM: [&str; 4] = [
    "set limits sessions 1000",
    "set limits half-open 1000",
    "set ipv4-pools more prefix 100.65.0.0/16",
    "set ipv6-pools more prefix 2001:db8:200::/40",
];

impl World<'_> {
    /// A change of the plan is made, or taken back.
    pub(super) fn reconfigure(&mut self, number: usize, breaks: bool) {
        let mut changes = self.changes.clone();
        let again = match breaks {
            true if self.over.contains(&number) => return, // nobody wants it any more
            true => {
                changes.insert(number);
                Event::Break(number)
            }
            false => {
                self.over.insert(number);
                changes.remove(&number);
                Event::Mend(number)
            }
        };
        let commit = self.commit(&changes, false);
        if commit == Commit::Done {
            self.changes = changes;
            return;
        }
        if commit == Commit::Refused {
            self.count_refusal(number);
        }
        self.later(PATIENCE, again);
    }

    fn count_refusal(&mut self, number: usize) {
        let refusals = self.refusals.entry(number).or_default();
        *refusals += 1;
        if *refusals > MOST_REFUSALS {
            let fault = self.plan.faults[number].1.clone();
            self.wrong(format!("{fault:?} is refused again and again"));
        }
    }

    /// What the operator wanted and does not have, at the end of the calm.
    pub(crate) fn unfinished_changes(&self) -> Option<String> {
        let left: Vec<_> = self.changes.iter().collect();
        let left = left.into_iter().map(|n| &self.plan.faults[*n].1);
        let left: Vec<&Fault> = left.collect();
        if !left.is_empty() {
            return Some(format!("not taken back: {left:?}"));
        }
        (!self.has_room).then(|| "room for everybody is not in force".into())
    }

    /// There is to be room for everybody; those who did not get everything dial in anew.
    pub(super) fn make_room(&mut self) {
        if self.commit(&self.changes.clone(), true) != Commit::Done {
            return self.later(PATIENCE, Event::MakeRoom);
        }
        self.has_room = true;
        for home in 0..self.houses.len() {
            if !self.houses[home].has_all() {
                self.houses[home].home.hang_up(self.now);
                self.drain_home(home);
            }
        }
    }

    /// Commits the first configuration with these changes.
    fn commit(&mut self, changes: &BTreeSet<usize>, room: bool) -> Commit {
        let busy = self.letting_go.is_some() || self.is_stopped(Part::Control);
        let candidate = match self.candidate(changes, room) {
            Ok(candidate) => candidate,
            Err(faults) => {
                self.wrong(format!("{faults:?}"));
                return Commit::Done;
            }
        };
        if busy || self.control.is_none() {
            return Commit::Later;
        }
        if candidate.tree == self.configuration.tree {
            return Commit::Done;
        }
        let faults = self.validate(&candidate.configuration);
        if !faults.is_empty() {
            self.say(|| format!("a user plane refuses a change: {faults:?}"));
            self.summary.refused += 1;
            return match faults.iter().all(|fault| fault == MISSING_DEVICE) {
                true => Commit::Later,
                false => Commit::Refused,
            };
        }
        self.adopt(candidate);
        Commit::Done
    }

    fn candidate(
        &self,
        changes: &BTreeSet<usize>,
        room: bool,
    ) -> Result<config::Checked, Vec<config::Fault>> {
        let mut tree = document(&self.plan).tree;
        let changed = changes
            .iter()
            .filter_map(|number| match self.plan.faults[*number].1 {
                Fault::Change(change) => Some(CHANGES[change]),
                _ => None,
            });
        let more = room.then_some(&ROOM[..]);
        for line in changed.chain(more).flatten() {
            let edit = config::Edit::parse(line).expect("a line that can be read");
            let _ = edit.apply(&mut tree); // another one may have been faster
        }
        config::check::check(&tree)
    }

    /// No user plane is against it, so that it has to come into force.
    fn adopt(&mut self, candidate: config::Checked) {
        let moment = self.moment(Part::Control);
        let Some(control) = &mut self.control else {
            return;
        };
        let adoption = Adoption {
            configuration: candidate.configuration.clone(),
            version: self.version + 1,
            by: "operator".into(),
            comment: String::new(),
            back: false,
            end_sessions: true,
        };
        if let Err(why) = adopt(moment, control, adoption) {
            return self.wrong(format!("a change is refused: {why:?}"));
        }
        self.configuration = candidate;
        self.version += 1;
        self.summary.changes += 1;
        self.drain_control();
        self.letting_go = Some(self.now + LAST_WORDS);
        self.let_go(self.control_life);
    }

    /// User planes are told when the sessions that end have ended there, or soon.
    pub(super) fn let_go(&mut self, life: u32) {
        let (Some(until), Some(control)) = (self.letting_go, &mut self.control) else {
            return;
        };
        if life != self.control_life {
            return;
        }
        if control.is_retiring() && self.now < until || self.is_stopped(Part::Control) {
            return self.later(LOOK_AGAIN, Event::LetGo(life));
        }
        self.letting_go = None;
        self.manage();
    }
}
