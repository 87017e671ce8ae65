//! New answers of RADIUS servers for sessions that are open: when a session time-out asks for one (Termination-Action, RFC 2865 §5.29),
//! and when a server wants to be asked (Authorize-Only, RFC 5176 §3.2).
//!
//! A new answer replaces the one before as a whole, and is applied like a change of authorization ([`super::dynamic`]). What an open
//! session cannot get, such as another address, ends it: the subscriber gets it when it connects again. So does an answer with which the
//! subscriber could not connect.

use super::takeover::wanted;
use super::{ControlPlane, Now};
use crate::aaa_clients::PendingAuth;
use crate::addresses::Kind;
use crate::assigned::Assigned;
use crate::authorization::{Authorization, ChangeKey, PendingRequest, Wanted, withdrawn_links};
use crate::counters::Counter;
use crate::evaluate::AaaAnswer;
use crate::fallback::AcceptedBy;
use crate::next_pools::Pools;
use crate::topology::Seid;
use aaa::{AccessAccept, Credentials, Outcome};
use config::model::Fallback;
use ipnet::IpNet;
use policy::TimeoutAction;
use session::{AuthReply, Cause, Command, Grant, Phase};

/// Who has changed or ended a session, in the history.
pub(super) const ASKED_AGAIN: &str = "RADIUS server, asked again";

impl ControlPlane {
    /// Ends a session whose time-out has passed, or authenticates its subscriber again. PAP cannot be asked for again: only the subscriber
    /// can begin it.
    pub(super) fn on_time_over(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        let is_again = entry.policy.control.timeout_action == TimeoutAction::Reauthenticate;
        let link = entry.link.as_mut().filter(|_| is_again);
        let asked = link.map(|link| link.command(now.at, Command::Reauthenticate));
        match asked {
            Some(Ok(())) => self.carry_out(now, index),
            _ => self.end(now, index, Cause::SessionTimeout),
        }
    }

    /// Whether the subscriber is authenticated.
    pub(super) fn is_authenticated(&self, index: u32) -> bool {
        let status = self.sessions[index].status();
        status.is_some_and(|status| status.phase == Phase::Network)
    }

    /// State for the request of a subscriber that is authenticated again.
    pub(super) fn state_to_repeat(&self, index: u32) -> Vec<u8> {
        match self.is_authenticated(index) {
            true => self.sessions[index].state.to_vec(),
            false => Vec::new(),
        }
    }

    /// Handles AAA's answer about a subscriber that was authenticated again.
    pub(super) fn on_reauthenticated(
        &mut self,
        now: Now,
        index: u32,
        by: AcceptedBy,
        outcome: Outcome,
    ) {
        match outcome {
            Outcome::Accept(accept) => {
                let (attempt, grant) = (self.sessions[index].who.attempt, Grant::default());
                let message = accept.reply_message.clone();
                let reply = AuthReply::Accept {
                    grant,
                    message,
                    proof: accept.mschapv2_proof,
                };
                self.drive(now, index, Command::Auth { attempt, reply });
                self.reauthorize(now, index, by, &accept);
            }
            Outcome::Reject(reject) => self.on_reject(now, index, by, reject),
            Outcome::Unavailable(why) => {
                self.counters.count(Counter::AuthenticationUnavailable);
                let entry = &self.sessions[index];
                let user = entry.who.username.escape_ascii().to_string();
                tracing::warn!(session = %entry.seid, user, %why, "the subscriber cannot be authenticated again: the session \
                    ends");
                self.end(now, index, Cause::SessionTimeout);
            }
        }
    }

    /// Asks the servers of a session for its settings.
    pub(super) fn ask_authorization(&mut self, now: Now, index: u32, state: Vec<u8>) {
        let request = self.access_request(index, Credentials::AuthorizeOnly, state);
        let entry = self.entry(index);
        entry.authorization = entry.authorization.wrapping_add(1);
        let (seid, number) = (entry.seid, entry.authorization);
        let servers = entry.servers.clone();
        let route = (servers.as_deref(), Fallback::Reject);
        let pending = PendingAuth::Authorization { seid, number };
        self.aaa.authenticate(now.at, route, pending, request);
    }

    /// Handles the answer to [`ControlPlane::ask_authorization`].
    pub(super) fn on_authorization(
        &mut self,
        now: Now,
        (seid, number): (Seid, u8),
        by: AcceptedBy,
        outcome: Outcome,
    ) {
        let is_last = |index: &u32| {
            let entry = &self.sessions[*index];
            entry.authorization == number && !entry.is_ending() && self.is_authenticated(*index)
        };
        let Some(index) = self.sessions.find(seid).filter(is_last) else {
            return;
        };
        let entry = &self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        match outcome {
            Outcome::Accept(accept) => self.reauthorize(now, index, by, &accept),
            // RFC 5176 §3.2: as if the server had asked for the session's end
            Outcome::Reject(reject) => {
                let why = self.note_rejected(index, by, reject.reason);
                tracing::info!(session = %seid, user, why, "the session is no longer authorized");
                self.end_by_servers(now, index, Cause::AdminReset);
            }
            Outcome::Unavailable(why) => {
                tracing::warn!(session = %seid, user, %why, "no new authorization: the session stays as it is");
            }
        }
    }

    /// Applies an answer to a session that is open, in place of the one before.
    fn reauthorize(&mut self, now: Now, index: u32, by: AcceptedBy, accept: &AccessAccept) {
        let mut rules = accept.filter_rules.clone();
        let checked = self.check_answer(index, accept).and_then(|()| {
            let shared = self.filter_sets.share(&mut rules);
            shared.map_err(|why| (why, Cause::NasError))
        });
        if let Err((why, cause)) = checked {
            let entry = &self.sessions[index];
            let user = entry.who.username.escape_ascii().to_string();
            tracing::info!(session = %entry.seid, user, why, "the session ends with AAA's new answer");
            return self.end_by_servers(now, index, cause);
        }
        self.count_attributes(index, accept);
        self.entry(index).accepted_by = by;
        self.note_accepted(now, index, accept);
        self.settle_pools(now, index, accept);
        let links = self.offered_links(index, accept);
        let routes = self.offered_routes(index, accept);
        let entry = self.entry(index);
        entry.state = accept.state.clone().into();
        let mut answer = match by.is_user() {
            // what its entry in the configuration says counts as long as it is there
            true => AaaAnswer::default(),
            false => AaaAnswer::of(accept, entry.account.lasted(now.at)),
        };
        answer.overrides.filter_rules = rules.map(Some);
        let change = Authorization {
            answer,
            is_whole: true,
            class: accept.class.clone().into(),
            links,
            routes,
            claimed: Vec::new(),
            // a session that could not stay with the pools of the answer has ended
            pools: Pools::default(),
            by: None,
        };
        // the attempt tells answers to two proofs apart, and the other number those without
        let number = entry.who.attempt.wrapping_add(entry.authorization);
        entry.under_way.requests.push_back(PendingRequest {
            key: ChangeKey::Answer(number),
            wanted: Wanted::Change(Box::new(change)),
        });
        if entry.under_way.requests.len() == 1 {
            self.begin_change(now, index);
        }
    }

    /// Ends a session because of what its servers have answered.
    fn end_by_servers(&mut self, now: Now, index: u32, cause: Cause) {
        self.entry(index).under_way.ended_by = Some(ASKED_AGAIN.into());
        self.end(now, index, cause);
    }

    /// Whether an open session can go on with an answer. Otherwise why it ends, and with which cause.
    fn check_answer(&self, index: u32, accept: &AccessAccept) -> Result<(), (String, Cause)> {
        let usable = self.check_names(accept);
        let usable = usable.and_then(|()| self.check_rates(index, accept));
        usable.map_err(|why| (why, Cause::NasError))?;
        let entry = &self.sessions[index];
        let pools = self.check_pools(entry.instance, accept);
        pools.map_err(|why| (why, Cause::NasError))?;
        let another = |what: String| {
            let why =
                format!("AAA gives the subscriber {what}, which it gets when it connects again");
            Err((why, Cause::AdminReset))
        };
        let profile = accept.filter_id.as_deref();
        let profile = profile.or(self
            .view()
            .access_profile(entry.segment)
            .subscriber_profile
            .as_deref());
        let (profile, _) = crate::evaluate::profile(&self.configuration, profile);
        if profile.network_instance != self.topology.instance(entry.instance).name {
            return another(format!("network instance `{}`", profile.network_instance));
        }
        for kind in self.offered_kinds(index) {
            let assigned = Assigned::of(accept, kind);
            if !assigned.is_empty() && !self.stays(index, kind, &assigned) {
                return another(format!("another {}", kind.name()));
            }
        }
        let bindings = &entry.policy.forwarding.bindings;
        let withdrawn = withdrawn_links(bindings, &self.offered_links(index, accept));
        let is_withdrawn = |net: &IpNet| withdrawn.iter().any(|link| link.contains(net));
        match wanted(accept).into_iter().find(is_withdrawn) {
            Some(net) => another(format!("{net} inside a prefix that it withdraws")),
            None => Ok(()),
        }
    }

    /// Whether an open session can stay with what it has of a kind. Of the prefixes of its link one must stay: Router Advertisements give
    /// and withdraw the others.
    fn stays(&self, index: u32, kind: Kind, assigned: &Assigned<'_>) -> bool {
        let mut links = self.sessions[index].links();
        match (kind, assigned.fixed.is_empty()) {
            (Kind::Link, false) => links.any(|own| assigned.fixed.contains(&own.into())),
            _ => self.keeps(index, kind, assigned),
        }
    }
}
