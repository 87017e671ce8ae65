//! Audit: a control plane that was away compares its sessions with those of this user plane.

use dataplane::SessionIndex;
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{Audit, AuditResult, Cause, SessionModificationResponse};

use super::{Engine, session_seid};
use crate::compile::CompiledSession;
use crate::table::Seid;

impl<T: Copy> Engine<T> {
    /// Answers a block of an audit, which arrived on the default session at `index`.
    pub(super) fn audit(&mut self, index: SessionIndex, to: T, audit: &Audit) {
        let Some(peer) = self.table.get(index).map(|session| session.peer) else {
            return;
        };
        // The control plane knows every session that is established from now on.
        self.peers.entry(peer).or_default().audit = audit.epoch;
        let mut result = AuditResult::default();
        for (place, &(seid, digest)) in audit.sessions.iter().enumerate() {
            let seid = Seid::from_u64(seid);
            // A session that is being removed counts as missing: the control plane is not told later.
            let named = self
                .table
                .resolve(seid)
                .is_some_and(|session| session.peer == peer && !session.is_leaving());
            match self.table.get_mut(seid.index).filter(|_| named) {
                Some(session) if session.compiled.digest() == Some(digest) => {
                    session.audited = audit.epoch
                }
                other => {
                    // The audit named it, so the session is not unknown. The control plane corrects its rules.
                    if let Some(session) = other {
                        session.audited = audit.epoch;
                    }
                    result.wrong.push(place as u16);
                }
            }
        }
        if audit.last {
            result.unknown_sessions = self.unknown_sessions(peer, audit.epoch);
        }
        let response = SessionModificationResponse {
            cause: Cause::REQUEST_ACCEPTED,
            audit_result: Some(result),
            ..Default::default()
        };
        self.respond(to, session_seid(&self.table, index), response);
    }

    /// Sessions of a control plane that the audit did not name. Each is reported once.
    fn unknown_sessions(&mut self, peer: std::net::SocketAddr, epoch: u32) -> Vec<(u64, u64)> {
        let unnamed = |(index, session): (SessionIndex, &super::Session<T>)| {
            let forgotten = session.peer == peer && session.audited != epoch;
            (forgotten && !session.is_leaving() && !session.compiled.is_default()).then_some(index)
        };
        let found: Vec<SessionIndex> = self
            .table
            .iter()
            .filter_map(unnamed)
            .take(AUDIT_BLOCK)
            .collect();
        let mut unknown_sessions = Vec::with_capacity(found.len());
        for index in found {
            let seid = self.table.seid(index);
            if let (Some(seid), Some(session)) = (seid, self.table.get_mut(index)) {
                session.audited = epoch;
                unknown_sessions.push((session.cp_seid, seid.to_u64()));
            }
        }
        unknown_sessions
    }
}

impl CompiledSession {
    /// Digest of a subscriber session's rules.
    fn digest(&self) -> Option<u64> {
        match self {
            CompiledSession::Subscriber { digest, .. } => Some(*digest),
            CompiledSession::Default { .. } => None,
        }
    }
}
