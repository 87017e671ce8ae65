//! PFCP sessions of subscribers: establishment, modification, deletion, restoration and usage.

use super::change::sessions;
use super::{Awaited, ControlPlane, Now};
use crate::counters::Counter;
use crate::entry::{Entry, LastSent, Sending, Stage};
use crate::history::Kind;
use crate::topology::{Seid, UserPlaneId};
use crate::user_planes::{Answer, Request, UsageFor};
use core::time::Duration;
use pfcp::bng::{self, SessionSpec, Usage};
use pfcp::{FailReason, RequestId};
use policy::{Bindings, Policy, TrafficPolicies};
use rand::Rng;
use session::{Cause, Command, Family, RulesState};
use wire::pfcp::{Cause as PfcpCause, Message, ReportType, UsageReport};

/// Interval in seconds of the user plane's usage reports. A user plane that dies loses the usage since its last report.
const USAGE_PERIOD: u32 = 300;
/// Maximum number of pending policy changes.
pub(super) const ADJUST_WINDOW: usize = 384;
/// Time after which the deletion of a session is repeated that the user plane rejected.
const DELETE_AGAIN: Duration = Duration::from_secs(5);

/// What a user plane is told by rules of a session.
fn last_sent(spec: SessionSpec) -> LastSent {
    LastSent {
        subscriber: spec.subscriber,
        forwarding: spec.forwarding,
    }
}

impl ControlPlane {
    /// PFCP rules of a session with the policy in force.
    pub(super) fn spec(&self, index: u32) -> SessionSpec {
        self.spec_with(index, &self.sessions[index].policy)
    }

    /// PFCP rules of a session with the given policy.
    fn spec_with(&self, index: u32, policy: &Policy) -> SessionSpec {
        let entry = &self.sessions[index];
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        let mut forwarding = entry.forwarding(policy);
        // a user plane may have taken the place of a newer one: what it would skip must not differ in every audit
        let is_known = |setting: &_| self.user_planes.takes_setting(port.user_plane, setting);
        let packets = forwarding.packets.limited_to(is_known);
        if packets != forwarding.packets {
            forwarding.packets = packets; // a treatment of its own
        }
        forwarding.bindings = self.known_bindings(port.user_plane, forwarding.bindings);
        if !self.takes_policies(port.user_plane, &forwarding.policies) {
            // an older one has taken its place. It would skip them, and more would pass than is permitted
            forwarding = forwarding.with_bindings(|_| false);
        }
        SessionSpec {
            node_id: self.user_planes.node_id(),
            cp_f_seid: self.user_planes.f_seid(port.user_plane, entry.seid),
            circuit: bng::Circuit {
                logical_port: port.name.clone().into_bytes(),
                tags: entry.circuit.tags,
                mac: entry.circuit.mac,
                gateway_mac: entry.gateway_mac,
            },
            access: entry.access,
            subscriber: entry.subscriber.map(|subscriber| subscriber.0),
            uplink: self.user_planes.uplink(port.user_plane, entry.teid),
            downlink: self.user_planes.downlink(port.user_plane, entry.teid),
            forwarding,
            urr_id: entry.rules.urr_id,
            usage_period: Some(USAGE_PERIOD),
            echo_magic: self.echo_magic(port.user_plane, entry),
        }
    }

    /// Whether a user plane takes all policies of a session.
    fn takes_policies(&self, plane: UserPlaneId, policies: &TrafficPolicies) -> bool {
        let mut given = policies.differences(&TrafficPolicies::default());
        given.all(|setting| self.user_planes.takes_setting(plane, setting))
    }

    /// The bindings that a user plane takes.
    fn known_bindings(&self, plane: UserPlaneId, bindings: Bindings) -> Bindings {
        if !self.user_planes.takes_bindings(plane) {
            return Bindings::of(bindings.ipv4(), bindings.ipv6());
        }
        match self.user_planes.takes_metrics(plane) {
            true => bindings,
            false => bindings.with_metrics(|_| None),
        }
    }

    /// Magic number with which a user plane answers a session's LCP echo requests, if it can.
    fn echo_magic(&self, plane: UserPlaneId, entry: &Entry) -> Option<u32> {
        let status = entry
            .status()
            .filter(|_| self.user_planes.answers_echoes(plane));
        status.map(|status| status.magic)
    }

    pub(super) fn plane_of(&self, index: u32) -> UserPlaneId {
        self.sessions[index].user_plane
    }

    /// Establishes the PFCP session with its control tunnel, and with the rules of address families that are already open.
    pub(super) fn establish(&mut self, now: Now, index: u32) {
        // the highest bit would name a rule that the user plane brings along (TS 29.244 §8.2.54)
        self.sessions[index].rules.urr_id = self.random.random_range(1..=i32::MAX as u32);
        let (spec, plane) = (self.spec(index), self.plane_of(index));
        let establishment = spec.establish();
        let entry = self.entry(index);
        if let Some(before) = entry.rules.up_seid.take() {
            entry.under_way.up_seid_before = Some(before);
        }
        entry.rules.establishing = true;
        entry.rules.last_sent = last_sent(spec);
        entry.take_sending();
        entry.rules.modifying = false;
        entry.rules.modification = entry.rules.modification.wrapping_add(1);
        let seid = entry.seid;
        let asked = self
            .user_planes
            .ask(now.at, plane, 0, Request::Establish(seid), establishment);
        if let Err(error) = asked {
            tracing::warn!(session = %seid, %error, "cannot send a session establishment to the user plane");
            return self.on_establish_failed(now, index, Counter::UserPlaneAbsent);
        }
        self.entry(index).rules.unsettled = false; // its answer will say
    }

    /// Requests the rules of an address family.
    pub(super) fn install(&mut self, now: Now, index: u32, family: Family) {
        let rules = &mut self.entry(index).rules;
        rules.families[family as usize] = true;
        rules.asked[family as usize] = rules.asked[family as usize].wrapping_add(1);
        self.adjust(now, index);
    }

    /// Removes the rules of an address family.
    pub(super) fn uninstall(&mut self, now: Now, index: u32, family: Family) {
        let rules = &mut self.entry(index).rules;
        if !std::mem::take(&mut rules.families[family as usize]) {
            return;
        }
        rules.asked[family as usize] = rules.asked[family as usize].wrapping_add(1);
        self.adjust(now, index);
        // of a session that is ending nothing is stored any more, and its end tells what it had
        self.persist(now, index);
    }

    /// Sends a modification with the differences from what was sent last. It waits for a pending establishment or modification,
    /// because one request may overtake another.
    pub(super) fn adjust(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let rules = &entry.rules;
        let Some(up_seid) = rules.up_seid.filter(|_| !rules.modifying) else {
            return;
        };
        let proposed = entry
            .under_way
            .proposed
            .as_ref()
            .map(|proposal| &proposal.policy);
        let wanted = proposed.unwrap_or(&entry.policy).clone();
        let (spec, plane) = (self.spec_with(index, &wanted), self.plane_of(index));
        let Some(message) = spec.change_from(&rules.last_sent) else {
            if let Some(proposal) = self.entry(index).take_proposed() {
                self.put_in_force(now, index, proposal);
            }
            return;
        };
        let number = rules.modification.wrapping_add(1);
        let entry = self.entry(index);
        let sent = last_sent(spec);
        let sent_before = std::mem::replace(&mut entry.rules.last_sent, sent);
        let proposal = entry.under_way.proposed.clone();
        entry.take_sending();
        if let Some(proposal) = proposal {
            let sending = Sending {
                proposal,
                sent_before,
            };
            entry.under_way.sending = Some(Box::new(sending));
        }
        (entry.rules.modifying, entry.rules.modification) = (true, number);
        let request = Request::Modify(entry.seid, number);
        if let Err(error) = self
            .user_planes
            .ask(now.at, plane, up_seid, request, message)
        {
            let entry = self.entry(index);
            entry.rules.modifying = false;
            tracing::warn!(session = %entry.seid, %error, "cannot send a session modification to the user plane");
            self.policy_unknown(now, index);
            self.on_modify_failed(now, index, Counter::UserPlaneAbsent);
        }
    }

    /// Renews the policies of waiting sessions up to the maximum number of pending changes. Each answer lets the next one go.
    pub(super) fn adjust_more(&mut self, now: Now) {
        while self.user_planes.modifying() < ADJUST_WINDOW {
            let Some(seid) = self.adjusting.pop_front() else {
                return;
            };
            let index = self.sessions.find(seid);
            if let Some(index) = index.filter(|index| self.sessions[*index].has_policy()) {
                self.renew_policy(now, index);
            }
        }
    }

    /// Reads the counters for an interim record, and sets the time of the next one.
    pub(super) fn ask_interim(&mut self, now: Now, index: u32) {
        self.arm_interim(now, index);
        if !self.ask_usage(now, index, UsageFor::Interim) {
            self.record_interim(now, index); // with what was known
        }
    }

    /// Requests a session's counters. Returns false if the request cannot be sent now, or the session ends: its deletion tells them, and
    /// a request behind that would be about a session that is gone.
    pub(super) fn ask_usage(&mut self, now: Now, index: u32, purpose: UsageFor) -> bool {
        let plane = self.plane_of(index);
        let entry = self.entry(index);
        let (request, urr_id) = (Request::Usage(entry.seid, purpose), entry.rules.urr_id);
        let is_closing = entry.is_closing();
        let Some(up_seid) = entry.rules.up_seid.filter(|_| !is_closing) else {
            return false;
        };
        self.user_planes
            .ask(now.at, plane, up_seid, request, bng::query_usage(urr_id))
            .is_ok()
    }

    /// Requests the deletion of the PFCP session. Returns false if the request cannot be sent now.
    pub(super) fn ask_delete(&mut self, now: Now, index: u32) -> bool {
        let plane = self.plane_of(index);
        let entry = self.entry(index);
        let request = Request::Delete(entry.seid);
        let Some(up_seid) = entry.rules.up_seid else {
            return false;
        };
        self.user_planes
            .ask(now.at, plane, up_seid, request, bng::delete())
            .is_ok()
    }

    pub(super) fn on_answer(&mut self, now: Now, request: Request, message: Answer) {
        match request {
            Request::Establish(seid) => self.on_established(now, seid, message),
            Request::Modify(seid, number) => {
                self.on_modified(now, seid, number, message);
                self.adjust_more(now);
            }
            Request::Usage(seid, purpose) => self.on_usage(now, seid, purpose, message),
            Request::Delete(seid) => self.on_deleted(now, seid, message),
            Request::Audit(plane, port, epoch) => {
                self.on_audited(now, plane, (port, epoch), message)
            }
            Request::DeleteUnknown(plane, up_seid) => {
                self.on_unknown_session_deleted(now, plane, up_seid, message)
            }
            Request::DefaultSession(_) | Request::ClosePort(_) | Request::Nets(..) => {
                unreachable!("taken care of by UserPlanes")
            }
        }
    }

    fn on_established(&mut self, now: Now, seid: Seid, message: Answer) {
        let Some(index) = self.sessions.find(seid) else {
            return;
        };
        let plane = self.plane_of(index);
        self.entry(index).rules.establishing = false;
        match message {
            Ok(Message::SessionEstablishmentResponse(m))
                if m.cause == PfcpCause::REQUEST_ACCEPTED =>
            {
                let entry = self.entry(index);
                entry.take_seid_before();
                entry.rules.up_seid = m.up_f_seid.map(|f| f.seid);
                self.put_back_done(now, index);
                match self.entry(index).stage {
                    Stage::Admitted(_) => self.confirm(now, index),
                    Stage::Closing(_) => self.delete(now, index),
                    _ => {
                        self.rules_are_there(now, index);
                        self.persist(now, index);
                        if self.sessions[index].has_policy() {
                            self.renew_policy(now, index);
                        }
                    }
                }
            }
            Ok(Message::SessionEstablishmentResponse(m)) => {
                let offending = m.offending_ie;
                tracing::error!(session = %seid, cause = %m.cause, ?offending, "user plane rejects the session");
                // of the one before it may still have something to tell
                let entry = self.entry(index);
                let before = entry.take_seid_before();
                entry.rules.up_seid = m.up_f_seid.map(|f| f.seid).or(before);
                self.on_establish_failed(now, index, Counter::UserPlaneRefused);
            }
            Err(FailReason::TimedOut) => self.on_establish_silent(now, index),
            Err(FailReason::AssociationDown) => {
                self.entry(index).rules.unsettled = true;
                self.on_establish_failed(now, index, Counter::UserPlaneSilent);
            }
            _ => self.on_establish_failed(now, index, Counter::UserPlaneSilent),
        }
        self.resync(now, plane);
    }

    /// Handles an old establishment that the user plane repeated: it replaced the current session, or a session that has ended.
    pub(super) fn on_established_late(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        seid: Seid,
        up_seid: u64,
    ) {
        if self.is_own(seid, up_seid) {
            return; // the answer came twice, or another is still to come
        }
        tracing::info!(session = %seid, "the user plane repeated an old request: restoring the session");
        let index = self
            .sessions
            .find(seid)
            .filter(|i| self.plane_of(*i) == plane);
        match index.filter(|i| !self.sessions[*i].is_closing()) {
            Some(index) => self.establish(now, index),
            None => self.delete_unknown_session(now, plane, up_seid),
        }
    }

    fn on_establish_failed(&mut self, now: Now, index: u32, counter: Counter) {
        self.entry(index).rules.establishing = false;
        self.put_back_done(now, index);
        match self.entry(index).stage {
            Stage::Admitted(_) => self.refuse(now, index, counter),
            Stage::Closing(_) => self.delete(now, index),
            Stage::Connecting | Stage::Online => {
                self.counters.count(counter);
                self.changes_unknown(now, index);
                // without an answer the association is gone; the next one puts the session back
                if counter == Counter::UserPlaneRefused {
                    self.end(now, index, Cause::PortError);
                }
            }
        }
    }

    /// Handles a missing answer of an associated user plane. It may have the session or not, so the request is repeated until it
    /// answers: an old session there must not keep the identifiers of a later one.
    fn on_establish_silent(&mut self, now: Now, index: u32) {
        match self.entry(index).stage {
            Stage::Admitted(_) => {
                self.entry(index).rules.establishing = true;
                self.refuse(now, index, Counter::UserPlaneSilent);
            }
            _ => self.counters.count(Counter::UserPlaneSilent),
        }
        self.establish(now, index);
    }

    /// Handles an accepted request. Address families whose rules are installed continue, and later changes are sent.
    fn rules_are_there(&mut self, now: Now, index: u32) {
        for family in [Family::Ipv4, Family::Ipv6] {
            let entry = &self.sessions[index];
            let told = &entry.rules.last_sent.forwarding.bindings;
            let own = entry.policy.forwarding.bindings.clone();
            let own = self.known_bindings(entry.user_plane, own);
            let wanted = entry.rules.families[family as usize];
            let there = match family {
                Family::Ipv4 => told.ipv4().is_some() && told.ipv4() == entry.ipv4(),
                Family::Ipv6 => told.ipv6().is_some() && told.links().eq(own.links()),
            };
            if wanted && there && entry.status().is_some_and(|s| s.waits_for_rules(family)) {
                self.await_durable(now, index, family);
            }
        }
        self.adjust(now, index);
    }

    fn on_modified(&mut self, now: Now, seid: Seid, number: u8, message: Answer) {
        let Some(index) = self.sessions.find(seid) else {
            return;
        };
        let entry = self.entry(index);
        if !entry.rules.modifying || entry.rules.modification != number {
            return; // the whole session was told since
        }
        entry.rules.modifying = false;
        if entry.is_closing() {
            return;
        }
        match message {
            Ok(Message::SessionModificationResponse(m))
                if m.cause == PfcpCause::REQUEST_ACCEPTED =>
            {
                self.policy_accepted(now, index);
                self.rules_are_there(now, index);
            }
            Ok(Message::SessionModificationResponse(m)) => {
                if self.policy_refused(now, index, m.cause) {
                    return;
                }
                let offending = m.offending_ie;
                tracing::error!(session = %seid, cause = %m.cause, ?offending, "user plane rejects the rules");
                self.on_modify_failed(now, index, Counter::UserPlaneRefused);
            }
            // the next audit compares with the policy in force
            Err(FailReason::AssociationDown) if !self.waits_for_rules(index) => {
                self.policy_unknown(now, index);
            }
            _ => {
                self.policy_unknown(now, index);
                self.on_modify_failed(now, index, Counter::UserPlaneSilent);
            }
        }
    }

    fn waits_for_rules(&self, index: u32) -> bool {
        let status = self.sessions[index].status();
        status.is_some_and(|status| status.rules.contains(&RulesState::Asked))
    }

    /// Handles a rejected or lost request. A session that waits for its rules ends; any other one is established again, unless it is
    /// ending.
    fn on_modify_failed(&mut self, now: Now, index: u32, counter: Counter) {
        self.counters.count(counter);
        let entry = &self.sessions[index];
        let stays = entry.link.is_some() && !entry.is_ending();
        if self.waits_for_rules(index) {
            self.end(now, index, Cause::PortError);
        } else if stays && self.user_planes.is_up(self.plane_of(index)) {
            self.establish(now, index);
        }
    }

    /// Lets the packet that opens an address family wait until the session is on disk.
    fn await_durable(&mut self, now: Now, index: u32, family: Family) {
        if self.sessions[index].rules.up_seid.is_none() {
            return; // it is being put back, and waits for that: before, there is nothing that can be stored
        }
        self.begin_account(now, index);
        if self.persist(now, index) {
            self.note_bindings(now, index);
        }
        let entry = &self.sessions[index];
        let what = Awaited::Family {
            seid: entry.seid,
            family,
            asked: entry.rules.asked[family as usize],
        };
        self.journal.await_batch(what);
    }

    pub(super) fn on_family_durable(&mut self, now: Now, index: u32, family: Family, asked: u8) {
        if self.entry(index).rules.asked[family as usize] == asked {
            self.drive(now, index, Command::Installed(family));
        }
    }

    /// Adds the usage of a report.
    fn add_usage(&mut self, index: u32, reports: &[UsageReport]) {
        let account = &mut self.entry(index).account;
        for report in reports {
            if account.reports.is_new(report.urr_id, report.sequence) {
                account.usage = account.usage.plus(Usage::of_report(report));
            }
        }
    }

    fn on_usage(&mut self, now: Now, seid: Seid, purpose: UsageFor, message: Answer) {
        let index = self.sessions.find(seid);
        if let (Some(index), Ok(Message::SessionModificationResponse(m))) = (index, &message) {
            self.add_usage(index, &m.usage_reports);
            self.persist(now, index);
        }
        match (purpose, index) {
            (UsageFor::Interim, Some(index)) => self.record_interim(now, index),
            (UsageFor::Interim, None) => {}
            (UsageFor::Call(ticket), _) => self.answer_session(now, ticket, seid),
            (UsageFor::List(ticket), _) => self.on_listed(now, ticket),
        }
    }

    fn on_deleted(&mut self, now: Now, seid: Seid, message: Answer) {
        let Some(index) = self.sessions.find(seid) else {
            return;
        };
        if self.sessions[index].rules.establishing {
            // An audit had it deleted once more. The answer to the establishment says what there is to delete.
            if let Ok(Message::SessionDeletionResponse(m)) = message {
                self.add_usage(index, &m.usage_reports);
            }
            return;
        }
        match message {
            // a session that was told anew when we died has another name than the one that we had stored
            Ok(Message::SessionDeletionResponse(m))
                if m.cause == PfcpCause::SESSION_CONTEXT_NOT_FOUND
                    && !std::mem::replace(&mut self.entry(index).rules.sought, true) =>
            {
                self.establish(now, index);
            }
            Ok(Message::SessionDeletionResponse(m))
                if m.cause.is_accepted() || m.cause == PfcpCause::SESSION_CONTEXT_NOT_FOUND =>
            {
                self.add_usage(index, &m.usage_reports);
                self.finish(now, index);
            }
            // it still has the session, its addresses and what it used last
            Ok(Message::SessionDeletionResponse(m)) => {
                self.counters.count(Counter::UserPlaneRefused);
                tracing::debug!(session = %seid, cause = %m.cause, "user plane does not delete the session: retrying");
                self.entry(index).under_way.delete_at = Some(now.at + DELETE_AGAIN);
                self.sessions.arm(index);
                // what they had from pools they do not wait for any more
                let heirs = std::mem::take(&mut self.entry(index).under_way.heirs);
                self.wake_heirs(now, heirs);
            }
            Err(FailReason::TimedOut) => {
                self.counters.count(Counter::UserPlaneSilent);
                self.delete(now, index); // the path lives: asked again
            }
            _ => {
                self.counters.count(Counter::UserPlaneSilent);
                tracing::warn!(session = %seid, "user plane did not answer the deletion of a session: retrying when it is \
                    back");
            }
        }
    }

    /// Handles an unsolicited usage report.
    pub(super) fn on_report(&mut self, now: Now, id: RequestId, seid: Seid, message: Message) {
        let Message::SessionReportRequest(report) = message else {
            return; // a user plane asks nothing else of us
        };
        // a session is its own user plane's to speak of
        let from = self.user_planes.find(id.peer.ip());
        let index = self.sessions.find(seid);
        match index.filter(|index| from == Some(self.plane_of(*index))) {
            Some(index) => {
                self.add_usage(index, &report.usage_reports);
                let is_idle = report.report_type.contains(ReportType::INACTIVITY);
                let up_seid = self.entry(index).rules.up_seid.unwrap_or(0);
                // the user plane repeats it until the store has it, or gives it along with the session's end
                if self.persist(now, index) {
                    self.journal.await_batch(Awaited::Report { id, up_seid });
                } else if !self.entry(index).stored {
                    // what was used before anything is recorded
                    let cause = PfcpCause::REQUEST_ACCEPTED;
                    self.user_planes.acknowledge(id, up_seid, cause);
                }
                let packets = self.sessions[index].policy.forwarding.packets;
                if report.unanswered_echoes.is_some() {
                    self.on_unanswered(now, index);
                } else if is_idle && packets.idle_timeout.is_some() {
                    self.end(now, index, Cause::IdleTimeout);
                }
            }
            None => {
                self.counters.count(Counter::UnknownReport);
                self.user_planes
                    .acknowledge(id, 0, PfcpCause::SESSION_CONTEXT_NOT_FOUND);
            }
        }
    }

    /// Logs how many sessions have policies that their user plane does not know.
    fn tell_of_shut_sessions(&self, plane: UserPlaneId, sessions: &[u32]) {
        let is_shut = |index: &&u32| {
            let policies = &self.sessions[**index].policy.forwarding.policies;
            !self.takes_policies(plane, policies)
        };
        let shut = sessions.iter().filter(is_shut).count();
        if shut > 0 {
            let user_plane = &self.topology.user_plane(plane).node_id;
            tracing::error!(%user_plane, sessions = shut, "the user plane is too old for the policies of sessions: it forwards \
                nothing for them. Upgrade it");
        }
    }

    /// Handles a new association. Sessions that the user plane lost are established again; otherwise an audit finds differences.
    /// Sessions that were ending are deleted now.
    pub(super) fn on_user_plane_up(&mut self, now: Now, plane: UserPlaneId, lost: bool) {
        self.follow_version(now, plane);
        let of_plane = self.sessions_of(plane);
        for &index in &of_plane {
            self.entry(index).rules.put_back = false; // what was under way with the association before is void
        }
        self.tell_of_shut_sessions(plane, &of_plane);
        let again = |index: &u32| {
            let entry = &self.sessions[*index];
            lost || entry.is_closing() || entry.rules.up_seid.is_none()
        };
        let (again, kept): (Vec<u32>, Vec<u32>) = of_plane.into_iter().partition(again);
        if lost {
            for &index in &again {
                let entry = self.entry(index);
                entry.take_seid_before();
                (entry.rules.up_seid, entry.rules.unsettled) = (None, false);
            }
            self.persist_user_plane(plane);
        }
        if !again.is_empty() {
            let user_plane = &self.topology.user_plane(plane).node_id;
            tracing::info!(%user_plane, sessions = again.len(), "putting sessions back");
        }
        let again: Vec<Seid> = again
            .into_iter()
            .map(|index| self.entry(index).seid)
            .collect();
        let text = match lost {
            true => "associated; it has none of our sessions and gets them",
            false => "associated; it has kept its sessions",
        };
        self.note_user_plane(now, plane, Kind::UserPlaneBack, text);
        self.user_planes.begin_resync(now.at, plane);
        self.user_planes.queue_resync(plane, again);
        self.begin_audit(now, plane, kept);
        self.resync(now, plane);
    }

    /// Handles the end of an association.
    pub(super) fn on_user_plane_down(&mut self, now: Now, plane: UserPlaneId, why: &str) {
        let its = sessions(self.sessions.on_user_plane(plane));
        let text = format!("{why}; it keeps forwarding as long as it can, with {its}");
        self.note_user_plane(now, plane, Kind::UserPlaneLost, &text);
    }

    /// Notes the end of one session's restoration.
    fn resync_done(&mut self, now: Now, plane: UserPlaneId) {
        if let Some((sessions, took)) = self.user_planes.resync_done(now.at, plane) {
            let user_plane = &self.topology.user_plane(plane).node_id;
            let milliseconds = took.as_millis() as u64;
            tracing::info!(%user_plane, sessions, milliseconds, "sessions are back");
        }
    }

    /// Indexes of a user plane's sessions.
    pub(super) fn sessions_of(&self, plane: UserPlaneId) -> Vec<u32> {
        let on_it = self
            .sessions
            .iter()
            .filter(|(_, entry)| entry.user_plane == plane);
        on_it.map(|(index, _)| index).collect()
    }

    /// Restores sessions up to the maximum number of pending establishments.
    pub(super) fn resync(&mut self, now: Now, plane: UserPlaneId) {
        while let Some(seid) = self.user_planes.next_resync(plane) {
            let Some(index) = self.sessions.find(seid) else {
                self.resync_done(now, plane);
                continue;
            };
            if self.entry(index).rules.establishing {
                self.resync_done(now, plane); // its answer is still to come
            } else if self.entry(index).is_closing() && !self.entry(index).rules.unsettled {
                self.resync_done(now, plane);
                self.delete(now, index);
            } else {
                self.entry(index).rules.put_back = true;
                self.establish(now, index);
            }
        }
    }

    /// Removes a session from the resync window.
    pub(super) fn put_back_done(&mut self, now: Now, index: u32) {
        if std::mem::take(&mut self.entry(index).rules.put_back) {
            let plane = self.plane_of(index);
            self.resync_done(now, plane);
        }
    }
}
