//! Resource audit of the engine: compares places, tunnels, prefixes and timers with their sessions.

use std::collections::BTreeSet;
use std::time::Duration;

use dataplane::{InstanceIndex, SessionEntry, SessionIndex};
use northbound::{Differences, Ledger};

use super::{Engine, Operation, Output, Session, WorkerCommand};
use crate::announcement::Announcement;
use crate::compile::CompiledSession;
use crate::ledger::{Name, kinds};
use crate::table::Seid;

/// What the worker's table should have for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// No entry.
    Nothing,
    /// This entry.
    Entry(&'a SessionEntry),
    /// Unknown while a change is under way.
    Unsettled,
}

impl<T: Copy> Engine<T> {
    /// Compares the engine's resources with the sessions. Open reports are those in `open`, the tokens that PFCP has.
    pub fn compare(&self, ledger: &mut Ledger, open: &BTreeSet<u64>) {
        self.compare_places(ledger);
        self.compare_teids(ledger);
        self.compare_defaults(ledger);
        self.compare_nets(ledger);
        self.compare_timers(ledger);
        self.compare_reports(ledger, open);
    }

    /// Repairs what [`Engine::compare`] finds.
    pub fn repair(&mut self, open: &BTreeSet<u64>) {
        let scratch = &mut Ledger::default();
        let places = self.compare_places(scratch);
        places
            .without_owner
            .into_iter()
            .for_each(|index| self.table.free_place(index));
        places
            .missing
            .into_iter()
            .for_each(|(index, _)| self.table.claim_place(index));
        let teids = self.compare_teids(scratch);
        for (teid, owner) in teids.without_owner {
            self.table.release_teid(teid, owner);
        }
        for ((teid, owner), _) in teids.missing {
            self.table.claim_teid(teid, owner);
        }
        let defaults = self.compare_defaults(scratch);
        for index in defaults.without_owner {
            self.defaults.remove(&index);
        }
        for (index, _) in defaults.missing {
            if let Some(CompiledSession::Default { port, .. }) =
                self.table.get(index).map(|s| &s.compiled)
            {
                self.defaults.insert(index, *port);
            }
        }
        self.repair_nets();
        for (timer, _) in self.compare_timers(scratch).missing {
            self.timers.push(std::cmp::Reverse(timer));
        }
        for (token, _) in self.compare_reports(scratch, open).missing {
            self.reported(token, None);
        }
    }

    /// What the worker's table should have at an index.
    pub fn expected(&self, index: SessionIndex) -> Expected<'_> {
        let Some(session) = self.table.get(index) else {
            return Expected::Nothing;
        };
        match (&session.compiled, &session.operation) {
            (CompiledSession::Default { .. }, _) => Expected::Nothing,
            (
                CompiledSession::Subscriber { entry, .. },
                Operation::None | Operation::Report | Operation::Look,
            ) => Expected::Entry(entry),
            _ => Expected::Unsettled,
        }
    }

    /// Sessions at every `step`-th index from `from` to before `end`.
    pub fn names(
        &self,
        from: SessionIndex,
        end: SessionIndex,
        step: u16,
    ) -> impl Iterator<Item = (SessionIndex, Name)> {
        let places = from.0..end.0.min(self.table.places());
        let sessions = places.step_by(step.into()).map(SessionIndex);
        sessions.filter_map(|index| Some((index, name(self.table.get(index)?))))
    }

    /// Session at an index; 0 if there is none.
    pub fn name(&self, index: SessionIndex) -> Name {
        self.table.get(index).map_or(Name(0), name)
    }

    /// Sends the worker the expected state of an index again. The usage so far is kept.
    pub fn tell_again(&mut self, index: SessionIndex) {
        match self.expected(index) {
            Expected::Entry(entry) => {
                let entry = entry.clone();
                // The answer shows whether it counts from 0 again.
                self.worker(WorkerCommand::Read(index));
                self.worker(WorkerCommand::Set(entry));
            }
            Expected::Nothing => self.worker(WorkerCommand::Remove(index)),
            Expected::Unsettled => {}
        }
    }

    fn staying(&self) -> impl Iterator<Item = (SessionIndex, &Session<T>)> {
        self.table
            .iter()
            .filter(|(_, session)| !session.is_leaving())
    }

    fn is_default(&self, index: SessionIndex) -> bool {
        let session = self.table.get(index);
        session.is_some_and(|session| session.compiled.is_default())
    }

    fn compare_places(&self, ledger: &mut Ledger) -> Differences<SessionIndex, Name> {
        let subscriber = |index: &SessionIndex| !self.is_default(*index);
        // the second place of a session that has moved is part of the session
        let moved: BTreeSet<SessionIndex> = self.table.moved().map(|(_, place)| place).collect();
        let booked = self.table.taken_places();
        let booked = booked.filter(|place| subscriber(place) && !moved.contains(place));
        let owned = self
            .table
            .iter()
            .map(|(index, session)| (index, name(session)));
        let owned = owned.filter(|(index, _)| subscriber(index));
        ledger.compare(&kinds::PLACE, booked, owned, |index| index.0.to_string())
    }

    fn compare_teids(&self, ledger: &mut Ledger) -> Differences<(u32, Seid), Name> {
        let subscriber = |owner: Seid| !self.is_default(owner.index);
        let owned = self.staying().filter_map(|(index, session)| {
            let teid = session.compiled.tunnel().downlink?.teid;
            Some(((teid, self.table.seid(index)?), name(session)))
        });
        let owned = owned.filter(|((_, owner), _)| subscriber(*owner));
        let booked = self.table.teids().filter(|(_, owner)| subscriber(*owner));
        ledger.compare(&kinds::TEID, booked, owned, |(teid, _)| {
            format!("{teid:#x}")
        })
    }

    fn compare_defaults(&self, ledger: &mut Ledger) -> Differences<SessionIndex, Name> {
        let owned = self.staying().filter(|(_, s)| s.compiled.is_default());
        let owned = owned.map(|(index, session)| (index, name(session)));
        let booked = self.defaults.keys().copied();
        ledger.compare(&kinds::DEFAULT, booked, owned, |index| index.0.to_string())
    }

    /// Compares the prefixes with the sessions that announce them.
    fn compare_nets(
        &self,
        ledger: &mut Ledger,
    ) -> Differences<((InstanceIndex, Announcement), usize), Name> {
        let nets = self.nets.iter();
        let booked = nets.flat_map(|(net, users)| (0..*users).map(move |n| (*net, n)));
        let of_sessions = self.staying().flat_map(|(_, session)| {
            let nets = session.compiled.nets().iter();
            nets.map(move |net| (*net, name(session)))
        });
        // Prefixes held for a control plane that returned and has not announced them again.
        let held = self.held.values().flatten().map(|net| (*net, Name(0)));
        let mut seen = std::collections::BTreeMap::new();
        let owned = of_sessions.chain(held).map(|(net, owner)| {
            let count = seen.entry(net).or_insert(0);
            *count += 1;
            ((net, *count - 1), owner)
        });
        let owned: Vec<_> = owned.collect();
        ledger.compare(&kinds::NET, booked, owned, |((_, net), _)| net.to_string())
    }

    fn repair_nets(&mut self) {
        let found = self.compare_nets(&mut Ledger::default());
        for (net, _) in found.without_owner {
            let users = self.nets.entry(net).or_insert(1);
            *users -= 1;
            if *users == 0 {
                self.nets.remove(&net);
                self.outputs.push_back(Output::RemoveNet(net.0, net.1));
            }
        }
        for ((net, _), _) in found.missing {
            let users = self.nets.entry(net).or_insert(0);
            *users += 1;
            if *users == 1 {
                self.outputs.push_back(Output::AddNet(net.0, net.1));
            }
        }
    }

    /// Void timers are not compared: they are found void when they are due.
    fn compare_timers(&self, ledger: &mut Ledger) -> Differences<(Duration, Seid), Name> {
        let is_due = |seid: Seid, at| {
            let session = self.table.resolve(seid);
            session.is_some_and(|session| session.is_armed(at))
        };
        let armed = self.timers.iter().map(|reversed| reversed.0);
        let booked: BTreeSet<_> = armed.filter(|(at, seid)| is_due(*seid, *at)).collect();
        let owned = self.table.iter().flat_map(|(index, session)| {
            let times: BTreeSet<Duration> = session.timers().into_iter().flatten().collect();
            let seid = self.table.seid(index);
            let timers = times.into_iter().zip(seid.into_iter().cycle());
            timers.map(move |timer| (timer, name(session)))
        });
        ledger.compare(&kinds::TIMER, booked, owned, |(_, seid)| {
            seid.index.0.to_string()
        })
    }

    fn compare_reports(&self, ledger: &mut Ledger, open: &BTreeSet<u64>) -> Differences<u64, Name> {
        let in_flight = self
            .table
            .iter()
            .filter(|(_, session)| session.unacknowledged.in_flight > 0);
        let owned = in_flight
            .filter_map(|(index, session)| Some((self.table.seid(index)?.to_u64(), name(session))));
        let owned: Vec<_> = owned.collect();
        // Reports of sessions that have gone have no owner and are ignored.
        let booked = owned.iter().map(|(token, _)| *token);
        let booked: Vec<u64> = booked.filter(|token| open.contains(token)).collect();
        ledger.compare(&kinds::REPORT, booked, owned, |token| format!("{token:#x}"))
    }
}

fn name<T>(session: &Session<T>) -> Name {
    Name(session.cp_seid)
}
