//! Resource audit as the local API requests it. Associated user planes are audited over PFCP first, because only they know their
//! sessions. The other resources are compared at the end.

use super::kinds;
use crate::plane::{ControlPlane, Now};
use crate::topology::{Seid, UserPlaneId};
use crate::user_planes::Request;
use northbound::{Ledger, Refusal, Response};
use std::collections::{BTreeSet, HashSet};

/// Running resource audit.
pub(in crate::plane) struct Check {
    ticket: u64,
    repair: bool,
    /// User planes whose PFCP audit is not finished.
    audits: BTreeSet<UserPlaneId>,
    /// Sessions that PFCP audits named, and their differences. A restarted audit names them again.
    named: BTreeSet<Seid>,
    wrong: BTreeSet<Seid>,
    unknown_sessions: BTreeSet<Seid>,
}

impl ControlPlane {
    /// Starts a resource audit. A running one is cancelled: its caller has gone, or asks twice.
    pub(in crate::plane) fn begin_check(&mut self, now: Now, ticket: u64, repair: bool) {
        let planes = self.topology.user_planes().map(|(plane, _)| plane);
        let planes: Vec<UserPlaneId> = planes.filter(|p| self.is_auditable(*p)).collect();
        let check = Check {
            ticket,
            repair,
            audits: planes.iter().copied().collect(),
            named: BTreeSet::new(),
            wrong: BTreeSet::new(),
            unknown_sessions: BTreeSet::new(),
        };
        if let Some(other) = self.check.replace(Box::new(check)) {
            let message = "another resource audit was requested meanwhile".into();
            self.answer(other.ticket, Err(Refusal::Busy(message)));
        }
        for plane in planes {
            self.audit_again(now, plane);
        }
        self.conclude_check(now);
    }

    /// Notes the result of an audit block. Differences of a session with a pending change do not count.
    pub(in crate::plane) fn note_audited(
        &mut self,
        plane: UserPlaneId,
        named: &[Seid],
        wrong: &[Seid],
        unknown_sessions: &[Seid],
    ) {
        if !self
            .check
            .as_ref()
            .is_some_and(|c| c.audits.contains(&plane))
        {
            return;
        }
        let changing: HashSet<Seid> = self
            .user_planes
            .requests()
            .filter_map(|(_, request)| match request {
                Request::Modify(seid, _) | Request::Delete(seid) => Some(*seid),
                _ => None,
            })
            .collect();
        let settled = |seid: &Seid| {
            let entry = self.sessions.find(*seid).map(|index| &self.sessions[index]);
            entry.is_some_and(|entry| !entry.is_closing() && !changing.contains(seid))
        };
        let wrong: Vec<Seid> = wrong.iter().copied().filter(settled).collect();
        let unknown = |seid: &Seid| self.sessions.find(*seid).is_none();
        let unknown_sessions: Vec<Seid> =
            unknown_sessions.iter().copied().filter(unknown).collect();
        if let Some(check) = &mut self.check {
            check.named.extend(named);
            check.wrong.extend(wrong);
            check.unknown_sessions.extend(unknown_sessions);
        }
    }

    /// Notes that the audit of a user plane is finished or has failed.
    pub(in crate::plane) fn audit_over(&mut self, now: Now, plane: UserPlaneId) {
        if let Some(check) = &mut self.check {
            check.audits.remove(&plane);
            self.conclude_check(now);
        }
        self.renew_policies(now, plane);
    }

    fn conclude_check(&mut self, now: Now) {
        let Some(check) = self.check.take_if(|check| check.audits.is_empty()) else {
            return;
        };
        let audits = self.compare_audited(&check);
        let mut ledger = self.checked_ledger(now, check.repair);
        ledger.accounts.extend(audits.accounts);
        ledger.findings.extend(audits.findings);
        let ticket = check.ticket;
        self.answer(ticket, Ok(Response::Ledger { ledger }));
    }

    /// Differences that PFCP audits found. An audit always corrects them, also without `--repair`.
    fn compare_audited(&self, check: &Check) -> Ledger {
        let right = check.named.difference(&check.wrong).copied();
        let owned = |seid: &Seid| (*seid, *seid);
        let mut found = Ledger::of(&self.start.node_id);
        let booked = right.chain(check.unknown_sessions.iter().copied());
        let named = || check.named.iter().map(owned);
        found.compare(&kinds::RULES, booked, named(), Seid::to_string);
        let mut after = Ledger::of(&self.start.node_id);
        let booked = check.named.iter().copied();
        after.compare(&kinds::RULES, booked, named(), Seid::to_string);
        after.after_repair_of(found)
    }
}
