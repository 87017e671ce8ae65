//! Establishment, modification and deletion of sessions.

use std::collections::VecDeque;
use std::net::SocketAddr;

use dataplane::{PortIndex, SessionEntry, SessionIndex};
use pfcp::bng::{Rejection, RuleSet, Usage};
use tracing::{debug, warn};
use wire::pfcp::{
    Cause, ModificationFlags, SessionDeletionResponse, SessionEstablishmentResponse,
    SessionModificationRequest, SessionModificationResponse, UsageReport, UsageReportTrigger, ie,
};

use super::departed::Last;
use super::idle::Idleness;
use super::keepalive::Watch;
use super::{
    After, Asked, Engine, Establishment, MAX_DEFAULT_SESSIONS, Modification, Now, Operation, Rules,
    Session, Unacknowledged, Wanted, WorkerCommand, cause, offending, own_seid, rejection,
    session_seid,
};
use crate::compile::CompiledSession;
use crate::table::Seid;

impl<T: Copy> Engine<T> {
    pub(super) fn establish(&mut self, now: Now, to: T, peer: SocketAddr, request: Establishment) {
        let cp_seid = request.cp_f_seid.seid;
        if let Err(rejection) = self.try_establish(now, to, peer, request) {
            self.refuse_establishment(to, cp_seid, None, &rejection);
        }
    }

    fn try_establish(
        &mut self,
        now: Now,
        to: T,
        peer: SocketAddr,
        request: Establishment,
    ) -> Result<(), Rejection> {
        if self.worker_behind {
            self.counters.congested += 1;
            return Err(cause(Cause::ENTITY_IN_CONGESTION));
        }
        let cp_seid = request.cp_f_seid.seid;
        let compile = || {
            let rules = RuleSet::establish(request)?;
            let first = SessionIndex::default();
            let compiled = self.config.layout.compile(first, &rules.decode()?)?;
            Ok((rules, compiled))
        };
        // Rules are checked first: wrong rules get their own cause even when the table is full.
        let compiled = compile();
        let (rules, compiled) = compiled.inspect_err(|_| self.counters.rules_refused += 1)?;
        let worker = match &compiled {
            CompiledSession::Subscriber { entry, .. } => self.worker_of(entry),
            CompiledSession::Default { .. } => 0,
        };
        let session = Session {
            peer,
            cp_seid,
            rules: Rules::new(rules),
            compiled,
            meter: None,
            counters: Usage::default(),
            carried_over: None,
            unacknowledged: Unacknowledged::default(),
            report_at: None,
            idleness: Idleness::default(),
            watch: Watch::default(),
            operation: Operation::None,
            waiting: VecDeque::new(),
            audited: self.peers.get(&peer).map_or(0, |peer| peer.audit),
        };
        // Prefixes that both the old and the new session announce stay announced throughout.
        let nets = session.compiled.nets().to_vec();
        let is_default = session.compiled.is_default();
        self.change_nets(is_default, &[], &nets);
        let before = self.in_tunnel_of(&session);
        let placed = self.place(now, to, peer, worker, session);
        self.change_nets(is_default, &nets, &[]);
        if let Err(rejection) = placed {
            // A control plane that does not know the session that stays learns which one it is, and deletes it with its counters.
            self.refuse_establishment(to, cp_seid, before, &rejection);
        }
        Ok(())
    }

    /// Puts a session into the table, in place of a session that it replaces, and starts it.
    fn place(
        &mut self,
        now: Now,
        to: T,
        peer: SocketAddr,
        worker: u16,
        session: Session<T>,
    ) -> Result<(), Rejection> {
        let cp_seid = session.cp_seid;
        // A subscriber's session that is replaced keeps its place until the worker has let go of it. Where there is no room for the new
        // one it stays, with its counters.
        if !session.compiled.is_default() {
            self.check_room(&session)?;
        }
        self.displace_orphan(&session);
        self.check_room(&session)?;
        let teid = session.compiled.tunnel().downlink.map(|tunnel| tunnel.teid);
        if teid.is_some_and(|teid| self.table.by_teid(teid).is_some()) {
            self.counters.teid_taken += 1;
            return Err(offending(ie::F_TEID));
        }
        let seid = self
            .table
            .insert(worker, session)
            .ok_or(cause(Cause::NO_RESOURCES_AVAILABLE))?;
        if let Some(teid) = teid {
            self.table.claim_teid(teid, seid);
        }
        if let Some(session) = self.table.get_mut(seid.index)
            && let Some((before, last)) = self.departed.before(cp_seid, peer)
            && session.inherit(&last.reports)
        {
            self.departed.forget(before);
        }
        self.pack_later(now.monotonic, seid);
        self.start(to, seid);
        Ok(())
    }

    /// Passes a session to the worker. A default session has nothing for it.
    fn start(&mut self, to: T, seid: Seid) {
        let Some(session) = self.table.get_mut(seid.index) else {
            return;
        };
        let nets = session.compiled.nets().to_vec();
        match &mut session.compiled {
            CompiledSession::Default { port, .. } => {
                self.defaults.insert(seid.index, *port);
                self.change_nets(true, &[], &nets);
                self.accept(to, seid);
            }
            CompiledSession::Subscriber { entry, .. } => {
                entry.index = seid.index;
                let entry = entry.clone();
                let asked = Asked { to, refused: None };
                session.operation = Operation::Establish(Box::new(asked));
                self.change_nets(false, &[], &nets);
                self.worker(WorkerCommand::Set(entry));
                self.worker(WorkerCommand::Read(seid.index));
            }
        }
    }

    /// Removes the session that an establishment replaces. A control plane that missed our first answer does not know our SEID
    /// and cannot delete that session. The same tunnel and the same SEID of its own identify it. A control plane that restarted
    /// and kept its sessions establishes its default session again, in the same tunnel. One that removed this user plane without
    /// reaching it, and added it again, has another tunnel for the same port.
    fn displace_orphan(&mut self, session: &Session<T>) {
        let in_tunnel = self.in_tunnel_of(session);
        let orphans = in_tunnel.map(|seid| seid.index).into_iter();
        let orphans: Vec<SessionIndex> = orphans.chain(self.on_port_of(session)).collect();
        for index in orphans {
            let Some(old) = self.table.get(index).filter(|old| !old.is_leaving()) else {
                continue; // it was found twice
            };
            warn!(
                cp_seid = format_args!("{:#x}", session.cp_seid),
                "session established again"
            );
            if let CompiledSession::Default { nets, .. } = &old.compiled {
                let nets = nets.clone();
                self.hold_nets(session.peer, nets);
            }
            self.remove(index, After::Nothing);
        }
    }

    fn in_tunnel_of(&self, session: &Session<T>) -> Option<Seid> {
        let downlink = session.compiled.tunnel().downlink?;
        let owner = self.table.by_teid(downlink.teid)?;
        let old = self.table.resolve(owner)?;
        let both_default = old.compiled.is_default() && session.compiled.is_default();
        let same = both_default || old.cp_seid == session.cp_seid;
        (old.peer == session.peer && same).then_some(owner)
    }

    /// Default sessions of the same control plane on the access port of a new default session.
    fn on_port_of(&self, session: &Session<T>) -> Vec<SessionIndex> {
        let CompiledSession::Default {
            port: Some(port), ..
        } = session.compiled
        else {
            return Vec::new();
        };
        let on_port = self.defaults.iter().filter(|(index, of)| {
            let old = self.table.get(**index);
            **of == Some(port) && old.is_some_and(|old| old.peer == session.peer)
        });
        on_port.map(|(index, _)| *index).collect()
    }

    fn check_room(&mut self, session: &Session<T>) -> Result<(), Rejection> {
        let defaults = self.defaults.len();
        let full = match session.compiled {
            CompiledSession::Default { .. } => defaults >= MAX_DEFAULT_SESSIONS,
            CompiledSession::Subscriber { .. } => {
                self.table.len() - defaults >= self.config.max_sessions as usize
            }
        };
        if full {
            self.counters.table_full += 1;
            // Logs only at powers of two: a full table must not fill the log.
            if self.counters.table_full.is_power_of_two() {
                warn!(
                    refused = self.counters.table_full,
                    most = self.config.max_sessions,
                    "the session table is full: new sessions are rejected; raise `max-sessions`"
                );
            }
            return Err(cause(Cause::NO_RESOURCES_AVAILABLE));
        }
        Ok(())
    }

    pub(super) fn established(&mut self, now: Now, index: SessionIndex, to: T) {
        let Some(seid) = self.table.seid(index) else {
            return;
        };
        self.follow_usage_rule(now, index, false);
        self.follow_idle_timeout(now, index);
        self.follow_keepalive(now, index);
        self.accept(to, seid);
    }

    fn accept(&mut self, to: T, seid: Seid) {
        let cp_seid = session_seid(&self.table, seid.index);
        debug!(
            cp_seid = format_args!("{cp_seid:#x}"),
            index = seid.index.0,
            "session established"
        );
        let message = SessionEstablishmentResponse {
            node_id: self.config.node_id.clone(),
            cause: Cause::REQUEST_ACCEPTED,
            up_f_seid: Some(own_seid(&self.config, seid)),
            ..Default::default()
        };
        self.respond(to, cp_seid, message);
    }

    pub(super) fn modify(
        &mut self,
        now: Now,
        index: SessionIndex,
        to: T,
        request: &SessionModificationRequest,
    ) {
        let Some(session) = self.table.get(index) else {
            return;
        };
        let cp_seid = session.cp_seid;
        match self.compile_modification(index, session, request) {
            Ok((rules, compiled)) => {
                if let Err(rejection) = self.move_tunnel(index, &compiled) {
                    return self.refuse_modification(to, cp_seid, &rejection);
                }
                self.apply(now, index, to, request, rules, compiled);
            }
            Err(rejection) => {
                self.counters.rules_refused += 1;
                self.refuse_modification(to, cp_seid, &rejection);
            }
        }
    }

    fn compile_modification(
        &self,
        index: SessionIndex,
        session: &Session<T>,
        request: &SessionModificationRequest,
    ) -> Result<(RuleSet, CompiledSession), Rejection> {
        let rules = self.rules_of(session).modify(request)?;
        let compiled = self.config.layout.compile(index, &rules.decode()?)?;
        // A session cannot change its kind.
        if compiled.is_default() != session.compiled.is_default() {
            return Err(offending(ie::PDN_TYPE));
        }
        Ok((rules, compiled))
    }

    fn move_tunnel(&mut self, index: SessionIndex, new: &CompiledSession) -> Result<(), Rejection> {
        let (Some(seid), Some(session)) = (self.table.seid(index), self.table.get(index)) else {
            return Ok(());
        };
        let old = session.compiled.tunnel().downlink.map(|tunnel| tunnel.teid);
        let new = new.tunnel().downlink.map(|tunnel| tunnel.teid);
        if old == new {
            return Ok(());
        }
        if new.is_some_and(|teid| !self.table.claim_teid(teid, seid)) {
            self.counters.teid_taken += 1;
            return Err(offending(ie::F_TEID));
        }
        if let Some(teid) = old {
            self.table.release_teid(teid, seid);
        }
        Ok(())
    }

    fn apply(
        &mut self,
        now: Now,
        index: SessionIndex,
        to: T,
        request: &SessionModificationRequest,
        rules: RuleSet,
        compiled: CompiledSession,
    ) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        if let Some(cp_f_seid) = request.cp_f_seid {
            session.cp_seid = cp_f_seid.seid;
        }
        let all = ModificationFlags::QUERY_ALL_URRS;
        let query =
            !request.query_urrs.is_empty() || request.flags.is_some_and(|f| f.contains(all));
        let rules = std::mem::replace(&mut session.rules, Rules::new(rules));
        let previous = std::mem::replace(&mut session.compiled, compiled);
        let modification = Modification {
            to,
            query,
            rules,
            compiled: previous,
            refused: None,
        };
        let nets = session.compiled.nets().to_vec();
        let is_default = session.compiled.is_default();
        if modification.rules.is_packed()
            && let Some(seid) = self.table.seid(index)
        {
            self.pack_later(now.monotonic, seid);
        }
        self.change_nets(is_default, modification.compiled.nets(), &nets);
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        match (&modification.compiled, &session.compiled) {
            (CompiledSession::Default { .. }, CompiledSession::Default { port, .. }) => {
                self.defaults.insert(index, *port);
                self.modified(now, index, modification);
            }
            (
                CompiledSession::Subscriber {
                    entry: old,
                    usage: old_usage,
                    ..
                },
                CompiledSession::Subscriber { entry, usage, .. },
            ) => {
                let set = (old != entry).then(|| entry.clone());
                if set.is_none() && !query && old_usage == usage {
                    return self.modified(now, index, modification);
                }
                session.operation = Operation::Modify(Box::new(modification));
                if let Some(entry) = set {
                    self.worker(WorkerCommand::Set(entry));
                }
                self.worker(WorkerCommand::Read(index));
            }
            _ => {}
        }
    }

    pub(super) fn modified(&mut self, now: Now, index: SessionIndex, done: Modification<T>) {
        let usage_reports = self.follow_usage_rule(now, index, done.query);
        self.follow_idle_timeout(now, index);
        self.follow_keepalive(now, index);
        let message = SessionModificationResponse {
            cause: Cause::REQUEST_ACCEPTED,
            usage_reports,
            ..Default::default()
        };
        self.respond(done.to, session_seid(&self.table, index), message);
    }

    /// Handles a modification that the worker rejected: the session continues unchanged.
    pub(super) fn restore(&mut self, now: Now, index: SessionIndex, failed: Modification<T>) {
        let Some(refusal) = failed.refused else {
            return;
        };
        if let Some(seid) = self.table.seid(index) {
            self.pack_later(now.monotonic, seid);
        }
        if self.move_tunnel(index, &failed.compiled).is_err() {
            warn!(
                index = index.0,
                "another session took the tunnel of this session meanwhile"
            );
        }
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        session.rules = failed.rules;
        let refused = std::mem::replace(&mut session.compiled, failed.compiled);
        let nets = session.compiled.nets().to_vec();
        let failed = (failed.to, rejection(refusal));
        session.operation = Operation::Restore(Box::new(failed));
        if let CompiledSession::Subscriber { entry, .. } = &session.compiled {
            let entry = entry.clone();
            self.change_nets(false, refused.nets(), &nets);
            self.worker(WorkerCommand::Set(entry));
            self.worker(WorkerCommand::Read(index));
        }
    }

    /// Starts the removal of a session. Its tunnel is free at once; its place only when the worker has released it.
    pub(super) fn remove(&mut self, index: SessionIndex, after: After<T>) {
        let Some(seid) = self.table.seid(index) else {
            return;
        };
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        if session.is_leaving() {
            return;
        }
        let teid = session.compiled.tunnel().downlink.map(|tunnel| tunnel.teid);
        let removal = Operation::Remove(Box::new(after));
        let interrupted = std::mem::replace(&mut session.operation, removal);
        // Deletions keep waiting: the removal that they ask for is under way.
        let waiting = std::mem::take(&mut session.waiting).into_iter();
        let (deletions, waiting): (VecDeque<_>, VecDeque<_>) =
            waiting.partition(|(_, wanted)| wanted.is_deletion());
        session.waiting = deletions;
        let is_default = session.compiled.is_default();
        let nets = session.compiled.nets().to_vec();
        if let Some(teid) = teid {
            self.table.release_teid(teid, seid);
        }
        self.abandon(interrupted, waiting);
        self.change_nets(is_default, &nets, &[]);
        match is_default {
            true => {
                self.defaults.remove(&index);
                if let Some(session) = self.table.get_mut(index) {
                    let operation = std::mem::replace(&mut session.operation, Operation::None);
                    if let Operation::Remove(after) = operation {
                        self.removed(Now::default(), index, *after);
                    }
                }
            }
            false => self.worker(WorkerCommand::Remove(index)),
        }
    }

    /// Ends subscriber sessions whose place in the configuration is gone. The control plane is not told. Returns their number.
    pub fn end_sessions(&mut self, which: impl Fn(&SessionEntry) -> bool) -> usize {
        let gone = |session: &Session<T>| match &session.compiled {
            CompiledSession::Subscriber { entry, .. } => which(entry),
            CompiledSession::Default { .. } => false,
        };
        let staying = self
            .table
            .iter()
            .filter(|(_, session)| !session.is_leaving());
        let gone: Vec<SessionIndex> = staying
            .filter_map(|(index, session)| gone(session).then_some(index))
            .collect();
        for &index in &gone {
            self.remove(index, After::Nothing);
        }
        gone.len()
    }

    /// Ends the default sessions and subscriber sessions of an access port that closes. Returns the number of subscriber
    /// sessions.
    pub fn end_port(&mut self, port: PortIndex) -> usize {
        self.owners.retain(|(of, _), _| *of != port);
        let defaults = self.defaults.iter();
        let defaults: Vec<SessionIndex> = defaults
            .filter_map(|(index, of)| (*of == Some(port)).then_some(*index))
            .collect();
        for index in defaults {
            self.remove(index, After::Nothing);
        }
        self.end_sessions(|entry| entry.port == port)
    }

    /// Takes the default sessions off an access port that is opened anew with other devices. The control plane need not know of that.
    pub fn take_off_port(&mut self, port: PortIndex) -> Vec<SessionIndex> {
        let on_port = self.defaults.iter();
        let on_port = on_port.filter_map(|(index, of)| (*of == Some(port)).then_some(*index));
        let taken: Vec<SessionIndex> = on_port.collect();
        self.put_defaults(&taken, None);
        taken
    }

    /// Puts default sessions that were taken off a port on it again, which has this index now.
    pub fn put_on_port(&mut self, taken: &[SessionIndex], port: PortIndex) {
        self.put_defaults(taken, Some(port));
    }

    fn put_defaults(&mut self, sessions: &[SessionIndex], to: Option<PortIndex>) {
        for index in sessions {
            let session = self.table.get_mut(*index);
            if let Some(CompiledSession::Default { port, .. }) = session.map(|s| &mut s.compiled) {
                *port = to;
                self.defaults.insert(*index, to);
            }
        }
    }

    /// Ends default sessions whose port could not be opened anew.
    pub fn end_defaults(&mut self, taken: &[SessionIndex]) {
        for index in taken {
            self.remove(*index, After::Nothing);
        }
    }

    /// Answers the requests that cannot be carried out because the session is being removed.
    fn abandon(&mut self, interrupted: Operation<T>, waiting: VecDeque<(T, Wanted)>) {
        let gone = cause(Cause::SESSION_CONTEXT_NOT_FOUND);
        match interrupted {
            Operation::Establish(asked) => self.refuse_establishment(asked.to, 0, None, &gone),
            Operation::Modify(modification) => self.refuse_modification(modification.to, 0, &gone),
            Operation::Restore(failed) => self.refuse_modification(failed.0, 0, &gone),
            Operation::None
            | Operation::Report
            | Operation::Look
            | Operation::Check
            | Operation::Remove(_) => {}
        }
        for (to, wanted) in waiting {
            self.refuse(to, 0, &wanted, &gone);
        }
    }

    pub(super) fn removed(&mut self, now: Now, index: SessionIndex, after: After<T>) {
        let Some(seid) = self.table.seid(index) else {
            return;
        };
        if self.table.has_moved(index) {
            self.worker(WorkerCommand::Forget(index));
        }
        let Some(mut session) = self.table.remove(index) else {
            return;
        };
        debug!(
            cp_seid = format_args!("{:#x}", session.cp_seid),
            index = index.0,
            "session deleted"
        );
        // A report under way may arrive after the control plane has deleted the session, so the answer repeats it.
        let mut reports = session.unacknowledged.reports;
        let trigger = UsageReportTrigger::TERMINATION;
        let last = session.meter.as_mut();
        reports.extend(last.map(|m| m.report(session.counters, now.ntp, trigger)));
        let mut asked: Vec<T> = session.waiting.iter().map(|(to, _)| *to).collect();
        match after {
            After::Nothing => {}
            After::Refuse(to, rejection) => {
                self.refuse_establishment(to, session.cp_seid, None, &rejection);
            }
            After::Answer(to) => asked.insert(0, to),
        }
        // A session that has taken this session's tunnel in the meantime.
        let teid = session.compiled.tunnel().downlink.map(|tunnel| tunnel.teid);
        let heir = teid.and_then(|teid| self.table.by_teid(teid));
        let heir = heir.and_then(|heir| self.table.get_mut(heir.index));
        let heir = heir.filter(|s| (s.peer, s.cp_seid) == (session.peer, session.cp_seid));
        let handed_over = heir.is_some_and(|heir| heir.inherit(&reports));
        if asked.is_empty() && !handed_over {
            self.count_unreported(&reports);
        }
        let last = Last {
            peer: session.peer,
            cp_seid: session.cp_seid,
            reports,
        };
        if !asked.is_empty() && self.audits(&session.peer) {
            self.departed.remember(seid, last.clone());
        }
        for to in asked {
            self.tell_last(to, last.clone());
        }
    }

    /// Answers a deletion.
    pub(super) fn tell_last(&mut self, to: T, last: Last) {
        let message = SessionDeletionResponse {
            cause: Cause::REQUEST_ACCEPTED,
            usage_reports: last.reports,
            ..Default::default()
        };
        self.respond(to, last.cp_seid, message);
    }

    /// Counts usage that is lost because no control plane is told of it.
    fn count_unreported(&mut self, reports: &[UsageReport]) {
        let octets = reports
            .iter()
            .map(|report| Usage::of_report(report).total.octets());
        self.counters.unreported_octets += octets.sum::<u64>();
    }
}
