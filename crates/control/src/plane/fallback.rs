//! Fallback of access profiles when no RADIUS server answers (`docs/decisions/0024-fallback.md`).

use super::{ControlPlane, Now};
use crate::authorization::Authorization;
use crate::counters::Counter;
use crate::entry::Entry;
use crate::evaluate::AaaAnswer;
use crate::fallback::{AcceptedBy, AnswerKey, LastAnswer};
use crate::remembered::{KeyLine, encode_key};
use aaa::{AccessAccept, FramedRoute, RejectReason, Unavailable};
use config::model::{AccessProfile, Fallback};
use core::time::Duration;
use ipnet::IpNet;
use policy::Overrides;
use std::sync::Arc;

/// Overrides of an answer that a session gets after it has lasted so long: its time-out counts from the answer.
fn counted_from(overrides: Overrides, lasted: Duration) -> Overrides {
    let longest = Duration::from_secs(u32::MAX.into());
    let lasted = Duration::from_secs(lasted.as_secs());
    let timeout = overrides.session_timeout;
    Overrides {
        session_timeout: timeout.map(|time| time.map(|time| longest.min(time + lasted))),
        ..overrides
    }
}

impl ControlPlane {
    fn access_profile_of(&self, index: u32) -> &AccessProfile {
        self.view().access_profile(self.sessions[index].segment)
    }

    /// Key of the last answer for a session's server group, access line and user name.
    fn answer_key(&self, index: u32) -> Option<Arc<[u8]>> {
        let entry = &self.sessions[index];
        let line = self.key_line(entry);
        let is_known = entry.tags.line.is_known() || line.vlans.1.is_some();
        Some(encode_key(&AnswerKey {
            servers: self.access_profile_of(index).server_group.as_deref()?,
            line,
            mac: (!is_known).then_some(entry.circuit.mac.0),
            username: &entry.who.username,
        }))
    }

    /// Access line of a session in the keys of what is remembered of its subscriber.
    pub(super) fn key_line<'a>(&'a self, entry: &'a Entry) -> KeyLine<'a> {
        let port = self.topology.segment(entry.segment).port;
        let port = self.topology.port(port);
        KeyLine {
            user_plane: &self.topology.user_plane(port.user_plane).node_id,
            port: &port.name,
            vlans: entry.circuit.tags.vids(),
            ids: &entry.tags.line,
        }
    }

    /// Keeps what happens when a subscriber was accepted: the answer of a server for later, or that it came in by a fallback.
    pub(super) fn note_accepted(&mut self, now: Now, index: u32, accept: &AccessAccept) {
        let entry = &self.sessions[index];
        let by = entry.accepted_by;
        if let Some(fallback) = by.fallback() {
            let user = entry.who.username.escape_ascii().to_string();
            let (session, mac) = (entry.seid, entry.circuit.mac);
            tracing::info!(%session, user, %mac, fallback, "no RADIUS server answered: the subscriber is accepted by the fallback \
                of its access profile");
            self.counters.count(match by {
                AcceptedBy::LastAnswer => Counter::FallbackLastPolicy,
                _ => Counter::FallbackLocalUsers,
            });
        } else if by == AcceptedBy::Servers {
            self.remember_answer(now, index, accept);
        }
    }

    fn remember_answer(&mut self, now: Now, index: u32, accept: &AccessAccept) {
        let Some(key) = self
            .answer_key(index)
            .filter(|_| self.access_profile_of(index).fallback == Fallback::LastPolicy)
        else {
            return;
        };
        let answer = LastAnswer::new(now.unix, accept);
        let most = self.configuration.limits.sessions as usize;
        if (self.last_answers).put(key, answer, most, &mut self.journal) {
            self.counters.count(Counter::LastAnswersFull);
        }
    }

    /// Forgets the last answer for a session's subscriber: a server has rejected or disconnected it since.
    pub(super) fn forget_answer(&mut self, index: u32) {
        if let Some(key) = self.answer_key(index) {
            self.last_answers.remove(&key, &mut self.journal);
        }
    }

    /// Forgets the last answer for a subscriber that a server has rejected. Returns the reason for the operator.
    pub(super) fn note_rejected(
        &mut self,
        index: u32,
        by: AcceptedBy,
        reason: RejectReason,
    ) -> String {
        if by == AcceptedBy::Servers {
            self.forget_answer(index);
        }
        let nobody = "no local user has this name and password";
        match (by, &reason) {
            (AcceptedBy::Users, RejectReason::Refused) => nobody.into(),
            (AcceptedBy::UsersInstead, RejectReason::Refused) => {
                format!("no RADIUS server answered, and {nobody}")
            }
            _ => reason.to_string(),
        }
    }

    /// Adds a change of authorization to the last answer, so that it holds for a session that begins while no server answers. A time-out
    /// is of the session that it was said of.
    pub(super) fn remember_change(&mut self, index: u32, change: &Authorization) {
        let is_servers = !self.sessions[index].accepted_by.is_user();
        let Some(key) = self.answer_key(index).filter(|_| is_servers) else {
            return;
        };
        let Some(mut last) = self.last_answers.get(&key).cloned() else {
            return;
        };
        let mut answer = change.answer.clone();
        answer.overrides.session_timeout = None;
        // rules are in use as long as sessions share them
        let rules = &mut answer.overrides.filter_rules;
        *rules = rules
            .take()
            .map(|rules| rules.map(|rules| rules.unshared()));
        last.answer = last.answer.changed_by(&answer);
        let LastAnswer { answer, accept, .. } = &mut last;
        accept.filter_id = answer.profile.as_deref().map(str::to_owned);
        if !change.class.is_empty() {
            accept.class = change.class.to_vec();
        }
        let is_ipv4 = |route: &FramedRoute| matches!(route.net, IpNet::V4(_));
        let is_kept = |route: &FramedRoute| {
            let mut changed = change.routes.iter();
            !changed.any(|other| is_ipv4(other) == is_ipv4(route))
        };
        accept.framed_routes.retain(is_kept);
        accept.framed_routes.extend(change.routes.iter().copied());
        let most = self.configuration.limits.sessions as usize;
        self.last_answers.put(key, last, most, &mut self.journal);
    }

    /// Gives a subscriber its last answer again, if its access profile falls back to that and no server answered.
    ///
    /// # Errors
    /// Text for the operator that says why it cannot.
    pub(super) fn fall_back(
        &mut self,
        now: Now,
        index: u32,
        why: Unavailable,
    ) -> Result<(), String> {
        match why {
            Unavailable::TooManyPasswords => self.counters.count(Counter::PasswordQueueFull),
            Unavailable::PasswordLate => self.counters.count(Counter::PasswordLate),
            _ => {}
        }
        let profile = self.access_profile_of(index);
        let is_silent = matches!(why, Unavailable::NoAnswer | Unavailable::NoServer);
        if profile.fallback != Fallback::LastPolicy || !is_silent {
            return Err(why.to_string());
        }
        let hours = profile.fallback_time;
        let status = self.sessions[index].status();
        if status.is_some_and(|status| status.needs_proof) {
            return Err(format!(
                "{why}, and an MS-CHAPv2 subscriber expects a proof that a last answer does not have"
            ));
        }
        let key = self.answer_key(index);
        let last = key.and_then(|key| self.last_answers.get(&key).cloned());
        let Some(last) = last.filter(|last| last.is_valid(now.unix, hours)) else {
            return Err(format!(
                "{why}, and none has accepted this user name on this access line in the last {hours} hours (`fallback-time`)"
            ));
        };
        let entry = self.entry(index);
        let lasted = entry.account.lasted(now.at);
        entry.accepted_by = AcceptedBy::LastAnswer;
        entry.answer = Arc::new(AaaAnswer {
            overrides: counted_from(last.answer.overrides, lasted),
            ..last.answer
        });
        self.on_accept(now, index, last.accept);
        Ok(())
    }

    /// Removes last answers that no access profile may use any more.
    pub(super) fn expire_answers(&mut self, now: Now) {
        let profiles = self.configuration.access_profiles.values();
        let in_use = profiles.filter(|profile| profile.fallback == Fallback::LastPolicy);
        let hours = in_use.map(|profile| profile.fallback_time).max();
        (self.last_answers).expire(now.unix, hours.unwrap_or(0), &mut self.journal);
    }
}
