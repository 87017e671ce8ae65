//! Audit of a user plane's PFCP sessions, after a restart of the control plane or an interruption of the path.
//!
//! The control plane sends blocks of (session, digest of its rules) about a default session of the user plane
//! (see [`wire::pfcp::own`]). It puts back sessions that are missing or have other rules. Sessions that no block names are
//! unknown sessions, and the control plane deletes them.

use super::{ControlPlane, Now};
use crate::entry::Rules;
use crate::topology::{MAX_SESSIONS, PortId, Seid, UserPlaneId};
use crate::user_planes::{Answer, Request};
use core::time::Duration;
use pfcp::{FailReason, bng};
use rand::Rng;
use std::collections::{BTreeSet, VecDeque};
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{Audit as Block, AuditResult, Cause, Message};

/// An audit of one user plane.
pub(super) struct Audit {
    epoch: u32,
    /// Sessions that are still to be named.
    left: VecDeque<Seid>,
    /// Sessions of the block that is under way, if one is.
    asked: Option<Vec<Seid>>,
    named: usize,
    put_back: usize,
    /// Sessions that no block named.
    unknown_sessions: usize,
    /// Unknown sessions that were deleted. Those that were established meanwhile stay.
    deleted: usize,
    began: Duration,
}

impl ControlPlane {
    /// Prepares the audit of a user plane that kept these sessions; it begins when a port is open.
    pub(super) fn begin_audit(&mut self, now: Now, plane: UserPlaneId, kept: Vec<u32>) {
        let left = kept
            .into_iter()
            .map(|index| self.entry(index).seid)
            .collect();
        let audit = Audit {
            epoch: self.random.random_range(1..=u32::MAX),
            left,
            asked: None,
            named: 0,
            put_back: 0,
            unknown_sessions: 0,
            deleted: 0,
            began: now.at,
        };
        self.audits.insert(plane, audit);
    }

    pub(super) fn on_port_open(&mut self, now: Now, port: PortId) {
        let plane = self.topology.port(port).user_plane;
        if self.audits.get(&plane).is_some_and(|a| a.asked.is_none()) {
            self.audit_next(now, plane);
        }
    }

    /// A port whose default session can carry an audit of the user plane, with the user plane's SEID of that.
    fn carrier(&self, plane: UserPlaneId) -> Option<(PortId, u64)> {
        let mut ports = self.topology.ports().filter(|(_, p)| p.user_plane == plane);
        ports.find_map(|(port, _)| Some((port, self.user_planes.default_session(port)?)))
    }

    /// Whether the user plane can be asked for an audit now.
    pub(super) fn is_auditable(&self, plane: UserPlaneId) -> bool {
        self.carrier(plane).is_some()
    }

    /// Audits a user plane from the beginning.
    pub(super) fn audit_again(&mut self, now: Now, plane: UserPlaneId) {
        let all = self.sessions_of(plane);
        self.begin_audit(now, plane, all);
        self.audit_next(now, plane);
    }

    fn audit_next(&mut self, now: Now, plane: UserPlaneId) {
        let Some((port, up_seid)) = self.carrier(plane) else {
            return;
        };
        let Some(mut audit) = self.audits.remove(&plane) else {
            return;
        };
        let (mut sessions, mut asked) = (Vec::new(), Vec::new());
        while sessions.len() < AUDIT_BLOCK
            && let Some(seid) = audit.left.pop_front()
        {
            if let Some(named) = self.name_in_audit(seid) {
                sessions.push(named);
                asked.push(seid);
            }
        }
        audit.named += asked.len();
        audit.asked = Some(asked);
        let block = Block {
            epoch: audit.epoch,
            last: audit.left.is_empty(),
            sessions,
        };
        let request = Request::Audit(plane, port, audit.epoch);
        let asked = self
            .user_planes
            .ask(now.at, plane, up_seid, request, bng::audit(block));
        match asked {
            Ok(()) => drop(self.audits.insert(plane, audit)),
            Err(_) => self.audit_over(now, plane), // the next association audits anew
        }
    }

    /// What the user plane is expected to have of a session; `None` if that is not settled now.
    fn name_in_audit(&self, seid: Seid) -> Option<(u64, u64)> {
        let index = self.sessions.find(seid)?;
        let entry = &self.sessions[index];
        let up_seid = entry.rules.up_seid?;
        if entry.is_closing() || entry.rules.modifying {
            return None;
        }
        Some((up_seid, self.spec(index).digest()))
    }

    /// Handles the answer to a block of an audit. The port that carried it may be gone.
    pub(super) fn on_audited(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        (port, epoch): (PortId, u32),
        message: Answer,
    ) {
        if self.audits.get(&plane).is_none_or(|a| a.epoch != epoch) {
            return; // another audit has taken its place
        }
        let result = match message {
            // the user plane reports an unknown session once, so the audit begins again
            Err(FailReason::TimedOut) => return self.audit_again(now, plane),
            Ok(Message::SessionModificationResponse(m))
                if m.cause == Cause::SESSION_CONTEXT_NOT_FOUND =>
            {
                return self.audit_on_new_session(now, plane, port);
            }
            Ok(Message::SessionModificationResponse(m)) => m.audit_result,
            _ => None,
        };
        let Some(result) = result else {
            // gone; or of another make, and knows no audits
            let user_plane = &self.topology.user_plane(plane).node_id;
            tracing::info!(%user_plane, "audit ended without a result: the user plane's sessions were not compared");
            self.audits.remove(&plane);
            return self.audit_over(now, plane);
        };
        self.on_block_audited(now, plane, result);
    }

    /// The user plane does not have the default session that carried the audit: it is opened anew, and the audit begins
    /// again, on another or when that is done.
    fn audit_on_new_session(&mut self, now: Now, plane: UserPlaneId, port: PortId) {
        if self.user_planes.default_session(port).is_some() {
            self.user_planes
                .open_default_session(now.at, port, &self.topology);
        }
        self.audit_again(now, plane);
    }

    /// Puts right what differs of a block, and goes on with the next.
    fn on_block_audited(&mut self, now: Now, plane: UserPlaneId, result: AuditResult) {
        let Some(audit) = self.audits.get_mut(&plane) else {
            return;
        };
        let named = audit.asked.take().unwrap_or_default();
        let places = result.wrong.iter().map(|place| usize::from(*place));
        let wrong: Vec<Seid> = places
            .filter_map(|place| named.get(place).copied())
            .collect();
        audit.put_back += wrong.len();
        audit.unknown_sessions += result.unknown_sessions.len();
        // a user plane cannot have more of them than it has sessions; one that says so is not believed for ever
        let plausible = audit.unknown_sessions <= MAX_SESSIONS as usize;
        let more =
            !audit.left.is_empty() || result.unknown_sessions.len() >= AUDIT_BLOCK && plausible;
        let unknown_sessions = result.unknown_sessions.iter().map(|(seid, _)| Seid(*seid));
        let unknown_sessions: Vec<Seid> = unknown_sessions.collect();
        self.note_audited(plane, &named, &wrong, &unknown_sessions);
        self.user_planes.queue_resync(plane, wrong);
        self.delete_unknown_sessions(now, plane, result.unknown_sessions);
        self.resync(now, plane);
        match more {
            true => self.audit_next(now, plane),
            false => {
                self.conclude_audit(now, plane);
                self.audit_over(now, plane);
            }
        }
    }

    fn delete_unknown_sessions(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        mut unknown_sessions: Vec<(u64, u64)>,
    ) {
        unknown_sessions.retain(|(seid, up_seid)| !self.is_own(Seid(*seid), *up_seid));
        if let Some(audit) = self.audits.get_mut(&plane) {
            audit.deleted += unknown_sessions.len();
        }
        for (seid, up_seid) in unknown_sessions {
            tracing::debug!(session = %Seid(seid), "the user plane has an unknown session: deleting it there");
            self.release_tunnels(plane, Seid(seid));
            self.delete_unknown_session(now, plane, up_seid);
        }
    }

    /// Frames arrive in an unknown session's tunnel until it is deleted. Its group, which a TEID of an earlier version depends on, is
    /// not known.
    fn release_tunnels(&mut self, plane: UserPlaneId, seid: Seid) {
        let groups = self.topology.groups();
        let groups = groups.filter(|(_, group)| group.user_plane == plane);
        let teids: BTreeSet<u32> = groups
            .map(|(group, _)| self.teids.of_session(seid, group))
            .collect();
        for teid in teids {
            self.released_tunnels.remember(teid);
        }
    }

    /// Whether it is still being found out what a user plane has of our sessions.
    pub(super) fn is_comparing(&self, plane: UserPlaneId) -> bool {
        !self.user_planes.is_up(plane) || self.audits.contains_key(&plane)
    }

    /// Whether what a user plane has is a session of ours, as far as we know now.
    pub(super) fn is_own(&self, seid: Seid, up_seid: u64) -> bool {
        let own = self
            .sessions
            .find(seid)
            .map(|index| &self.sessions[index].rules);
        let underway = |rules: &Rules| rules.establishing || rules.unsettled;
        own.is_some_and(|rules| underway(rules) || rules.up_seid == Some(up_seid))
    }

    pub(super) fn delete_unknown_session(&mut self, now: Now, plane: UserPlaneId, up_seid: u64) {
        let request = Request::DeleteUnknown(plane, up_seid);
        let asked = self
            .user_planes
            .ask(now.at, plane, up_seid, request, bng::delete());
        if let Err(error) = asked {
            tracing::debug!(%error, "the next audit finds it again");
        }
    }

    pub(super) fn on_unknown_session_deleted(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        up_seid: u64,
        message: Answer,
    ) {
        if let Err(FailReason::TimedOut) = message {
            self.delete_unknown_session(now, plane, up_seid); // the path lives: asked again
        }
    }

    fn conclude_audit(&mut self, now: Now, plane: UserPlaneId) {
        let Some(audit) = self.audits.remove(&plane) else {
            return;
        };
        let user_plane = &self.topology.user_plane(plane).node_id;
        let (sessions, milliseconds) = (
            audit.named,
            now.at.saturating_sub(audit.began).as_millis() as u64,
        );
        tracing::info!(%user_plane, sessions, milliseconds, "audit done");
        if audit.put_back + audit.deleted > 0 {
            tracing::warn!(%user_plane, put_back = audit.put_back, deleted = audit.deleted, "audit found differences");
        }
    }
}
