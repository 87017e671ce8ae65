//! After a restart of ours, or when the path to a user plane was cut: does it have what we believe that it has?
//!
//! Blocks of (session, hash of its rules) are sent one after the other about the first default session of the user plane
//! (see [`wire::pfcp::own`]). Sessions that are not there or have other rules are put back; what was not named by the
//! end is a stranger, and is deleted.

use super::{ControlPlane, Now};
use crate::topology::{MAX_SESSIONS, PortId, Seid, UserPlaneId};
use crate::user_planes::{Answer, Request};
use core::time::Duration;
use pfcp::{FailReason, bng};
use rand::Rng;
use std::collections::VecDeque;
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{Audit as Block, Message};

/// An audit of one user plane.
pub(super) struct Audit {
    epoch: u32,
    /// Sessions that are still to be named.
    left: VecDeque<Seid>,
    /// Sessions of the block that is under way.
    asked: Vec<Seid>,
    named: usize,
    put_back: usize,
    /// Those whom nobody named, and those of them who were not on their way meanwhile.
    strangers: usize,
    deleted: usize,
    began: Duration,
}

impl ControlPlane {
    /// Prepares the audit of a user plane that kept these sessions; it begins with the default session.
    pub(super) fn begin_audit(&mut self, now: Now, plane: UserPlaneId, kept: Vec<u32>) {
        let left = kept
            .into_iter()
            .map(|index| self.entry(index).seid)
            .collect();
        let audit = Audit {
            epoch: self.random.random_range(1..=u32::MAX),
            left,
            asked: Vec::new(),
            named: 0,
            put_back: 0,
            strangers: 0,
            deleted: 0,
            began: now.at,
        };
        self.audits.insert(plane, audit);
    }

    pub(super) fn on_port_open(&mut self, now: Now, port: PortId) {
        let plane = self.topology.port(port).user_plane;
        if self.first_port(plane) == Some(port) {
            self.audit_next(now, plane);
        }
    }

    /// The port whose default session carries the audits of its user plane.
    fn first_port(&self, plane: UserPlaneId) -> Option<PortId> {
        let mut ports = self.topology.ports();
        ports.find(|(_, p)| p.user_plane == plane).map(|(id, _)| id)
    }

    /// Whether the user plane can be asked for an audit now.
    pub(super) fn is_auditable(&self, plane: UserPlaneId) -> bool {
        let port = self.first_port(plane);
        port.is_some_and(|port| self.user_planes.default_session(port).is_some())
    }

    /// Audits a user plane from the beginning.
    pub(super) fn audit_again(&mut self, now: Now, plane: UserPlaneId) {
        let all = self.sessions_of(plane);
        self.begin_audit(now, plane, all);
        self.audit_next(now, plane);
    }

    fn audit_next(&mut self, now: Now, plane: UserPlaneId) {
        let port = self.first_port(plane);
        let Some(up_seid) = port.and_then(|port| self.user_planes.default_session(port)) else {
            return;
        };
        let Some(mut audit) = self.audits.remove(&plane) else {
            return;
        };
        let mut sessions = Vec::new();
        audit.asked.clear();
        while sessions.len() < AUDIT_BLOCK
            && let Some(seid) = audit.left.pop_front()
        {
            if let Some(named) = self.name_in_audit(seid) {
                sessions.push(named);
                audit.asked.push(seid);
                audit.named += 1;
            }
        }
        let block = Block {
            epoch: audit.epoch,
            last: audit.left.is_empty(),
            sessions,
        };
        let asked = self.user_planes.ask(
            now.at,
            plane,
            up_seid,
            Request::Audit(plane),
            bng::audit(block),
        );
        match asked {
            Ok(()) => drop(self.audits.insert(plane, audit)),
            Err(_) => self.audit_over(now, plane), // the next association audits anew
        }
    }

    /// What the user plane is expected to have of a session; `None` if that is not settled now.
    fn name_in_audit(&self, seid: Seid) -> Option<(u64, u64)> {
        let index = self.find(seid)?;
        let up_seid = self.sessions[index as usize].rules.up_seid?;
        Some((up_seid, self.spec(index).digest()))
    }

    pub(super) fn on_audited(&mut self, now: Now, plane: UserPlaneId, message: Answer) {
        let result = match message {
            Err(FailReason::TimedOut) => {
                // strangers are told once: from the beginning
                return self.audit_again(now, plane);
            }
            Ok(Message::SessionModificationResponse(m)) => m.audit_result,
            _ => None,
        };
        // a user plane of another make knows no audits
        let (Some(result), Some(audit)) = (result, self.audits.get_mut(&plane)) else {
            self.audits.remove(&plane);
            return self.audit_over(now, plane);
        };
        let asked = &audit.asked;
        let wrong: Vec<Seid> = result
            .wrong
            .iter()
            .filter_map(|place| asked.get(usize::from(*place)).copied())
            .collect();
        audit.put_back += wrong.len();
        audit.strangers += result.strangers.len();
        // a user plane cannot have more of them than it has sessions; one that says so is not believed for ever
        let plausible = audit.strangers <= MAX_SESSIONS as usize;
        let more = !audit.left.is_empty() || result.strangers.len() >= AUDIT_BLOCK && plausible;
        let named = audit.asked.clone();
        let strangers: Vec<Seid> = result
            .strangers
            .iter()
            .map(|(seid, _)| Seid(*seid))
            .collect();
        self.note_audited(plane, &named, &wrong, &strangers);
        self.user_planes.queue_resync(plane, wrong);
        let mut deleted = 0;
        for (seid, up_seid) in result.strangers {
            if !self.is_own(Seid(seid), up_seid) {
                tracing::debug!(session = %Seid(seid), "the user plane has a session that we do not: it is deleted there");
                self.delete_stranger(now, plane, up_seid);
                deleted += 1;
            }
        }
        if let Some(audit) = self.audits.get_mut(&plane) {
            audit.deleted += deleted;
        }
        self.resync(now, plane);
        match more {
            true => self.audit_next(now, plane),
            false => {
                self.conclude_audit(now, plane);
                self.audit_over(now, plane);
            }
        }
    }

    /// Whether a session that was not named came while the audit ran.
    fn is_own(&self, seid: Seid, up_seid: u64) -> bool {
        let own = self
            .find(seid)
            .map(|index| self.sessions[index as usize].rules);
        own.is_some_and(|rules| rules.establishing || rules.up_seid == Some(up_seid))
    }

    fn delete_stranger(&mut self, now: Now, plane: UserPlaneId, up_seid: u64) {
        let request = Request::Stranger(plane, up_seid);
        let asked = self
            .user_planes
            .ask(now.at, plane, up_seid, request, bng::delete());
        if let Err(error) = asked {
            tracing::debug!(%error, "the next audit finds it again");
        }
    }

    pub(super) fn on_stranger_deleted(
        &mut self,
        now: Now,
        plane: UserPlaneId,
        up_seid: u64,
        message: Answer,
    ) {
        if let Err(FailReason::TimedOut) = message {
            self.delete_stranger(now, plane, up_seid); // the path lives: asked again
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
