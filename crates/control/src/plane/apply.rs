//! Applies policies to sessions.
//!
//! A policy is evaluated ([`crate::evaluate`]) and then applied: a session modification to the user plane, the record in the store,
//! and the control plane's own part. The previous policy stays in force until the user plane accepts the new one, and also if it
//! rejects it. If the answer is lost, the session is established again with the previous policy.

use super::change::Touched;
use super::{ControlPlane, Now};
use crate::authorization::{Authorization, ChangeKey, Proposal};
use crate::counters::Counter;
use crate::entry::Sending;
use crate::topology::UserPlaneId;
use aaa::ErrorCause;
use policy::{Bindings, PacketSettings, Policy, TrafficPolicies};
use wire::pfcp::Cause;

/// What became of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// It is in force.
    InForce,
    /// The user plane's answer decides.
    Proposed,
    /// The user plane cannot be asked. The policy is evaluated again when it is back.
    Deferred,
}

impl ControlPlane {
    /// Evaluates the policy of a session and applies it. If the policy cannot be applied, the previous one stays in force.
    pub(super) fn renew_policy(&mut self, now: Now, index: u32) {
        if let Err(why) = self.assign_policy(now, index) {
            let entry = &self.sessions[index];
            let user = entry.who.username.escape_ascii().to_string();
            tracing::error!(session = %entry.seid, user, why, "cannot change the session's policy: the previous policy \
                stays in force");
            self.counters.count(Counter::PolicyRefused);
        }
    }

    /// The same for a subscriber that has no policy yet.
    ///
    /// # Errors
    /// The reason for which the policy cannot be applied.
    pub(super) fn assign_policy(&mut self, now: Now, index: u32) -> Result<Applied, String> {
        let mut policy = self.view().evaluate_wanted(&self.sessions[index]);
        self.check_capability(index, &policy)?;
        let in_force = &self.sessions[index].policy.forwarding.policies;
        let policies = &policy.forwarding.policies;
        // what is in force stays: when its ACLs become too large, the user plane goes on with the former ones
        if in_force != policies {
            self.filter_sets.check(policies, &self.configuration)?;
        }
        self.share_policy(&mut policy);
        Ok(self.apply(now, index, policy))
    }

    /// Lets a policy have in memory what other sessions have alike.
    pub(super) fn share_policy(&mut self, policy: &mut Policy) {
        self.control_settings.share(&mut policy.control);
        self.treatments.share(&mut policy.forwarding.treatment);
    }

    /// Whether the session's user plane supports a policy.
    fn check_capability(&self, index: u32, policy: &Policy) -> Result<(), String> {
        let plane = self.plane_of(index);
        let packets = PacketSettings {
            keepalive: None, // where the user plane cannot, the control plane does it
            ..policy.forwarding.packets
        };
        let known = packets.limited_to(|setting| self.user_planes.takes_setting(plane, setting));
        let lacking = packets.differences(&known);
        // as if nothing were known of them, as they are none to be left out quietly: less would be filtered
        let policies = policy
            .forwarding
            .policies
            .differences(&TrafficPolicies::default());
        let policies = policies.filter(|setting| !self.user_planes.takes_setting(plane, setting));
        let mut lacking: Vec<&str> = lacking
            .chain(policies)
            .map(|setting| setting.label)
            .collect();
        let bindings = &policy.forwarding.bindings;
        let known = Bindings::of(bindings.ipv4(), bindings.ipv6());
        let others = bindings.iter().count() > known.iter().count();
        if others && !self.user_planes.takes_bindings(plane) {
            lacking.push("routes or further prefixes");
        }
        if lacking.is_empty() {
            return Ok(());
        }
        Err(format!(
            "user plane {} is too old for a policy with {}: upgrade it, or remove that from the subscriber profile and from \
                AAA's answer",
            self.topology.user_plane(plane).node_id,
            lacking.join(", ")
        ))
    }

    /// Applies a policy.
    fn apply(&mut self, now: Now, index: u32, policy: Policy) -> Applied {
        let is_up = self.user_planes.is_up(self.plane_of(index));
        let entry = self.entry(index);
        let change = entry.change().map(|(key, _)| key);
        let is_same = |wanted: &Proposal| wanted.policy == policy && wanted.change == change;
        if entry.under_way.proposed.as_ref().is_some_and(is_same) {
            return Applied::Proposed; // it is on its way
        }
        entry.take_proposed();
        if entry.policy == policy {
            let policy = entry.policy.clone();
            let same = Proposal { policy, change };
            if entry.under_way.sending.is_some() {
                // behind the one that is under way, which is wanted no more and may be accepted
                entry.under_way.proposed = Some(same);
                return Applied::Proposed;
            }
            if change.is_some() {
                self.put_in_force(now, index, same);
            }
            self.adjust(now, index);
            return Applied::InForce;
        }
        let proposal = Proposal { policy, change };
        let is_told = entry.forwarding(&proposal.policy) == entry.rules.last_sent.forwarding;
        // what was told is not accepted yet while a modification is under way
        if !entry.rules.modifying && is_told {
            self.put_in_force(now, index, proposal);
            Applied::InForce
        } else if is_up || entry.rules.establishing {
            entry.under_way.proposed = Some(proposal);
            self.adjust(now, index);
            Applied::Proposed
        } else {
            Applied::Deferred
        }
    }

    /// Puts a policy in force after the user plane has accepted its part.
    pub(super) fn put_in_force(&mut self, now: Now, index: u32, proposal: Proposal) {
        let Proposal { mut policy, change } = proposal;
        let entry = self.entry(index);
        let under_way = entry.change().map(|(key, _)| key);
        let is_under_way = change.is_some() && change == under_way;
        let bindings = match is_under_way {
            true => entry.wanted_bindings().into_owned(),
            false => entry.policy.forwarding.bindings.clone(),
        };
        // the subscriber may have got other addresses since the policy was evaluated
        policy.forwarding.bindings = bindings;
        let before = std::mem::replace(&mut entry.policy, policy.clone());
        let change = is_under_way.then(|| self.adopt_change(index)).flatten();
        let entry = &self.sessions[index];
        let (stored, was, is) = (entry.stored, &before.control, &policy.control);
        if stored && !entry.is_closing() {
            self.persist(now, index);
        }
        if was.dns != is.dns || before.forwarding.bindings != policy.forwarding.bindings {
            self.set_grant(now, index);
        }
        if (was.session_timeout, was.interim_interval) != (is.session_timeout, is.interim_interval)
        {
            self.arm_times(now, index);
        }
        self.sessions.arm(index);
        if let Some((key, change)) = change {
            self.change_done(now, index, key, &change, &before);
        }
    }

    fn adopt_change(&mut self, index: u32) -> Option<(ChangeKey, Box<Authorization>)> {
        let answer = self.sessions[index].wanted_answer().into_owned();
        let answer = self.answers.get(answer);
        self.entry(index).adopt_change(answer)
    }

    /// Handles an accepted modification.
    pub(super) fn policy_accepted(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        let Some(sending) = entry.take_sending() else {
            return;
        };
        let proposal = sending.proposal;
        let wanted = entry.under_way.proposed.as_ref();
        if wanted.is_some_and(|wanted| wanted.is(&proposal)) {
            entry.take_proposed();
        }
        self.put_in_force(now, index, proposal);
    }

    /// Handles a rejected modification. Returns true if it was for a policy; the previous policy then stays in force.
    pub(super) fn policy_refused(&mut self, now: Now, index: u32, cause: Cause) -> bool {
        let entry = self.entry(index);
        let Some(sending) = entry.take_sending() else {
            return false;
        };
        let Sending {
            proposal: refused,
            sent_before,
        } = *sending;
        let wanted = entry.under_way.proposed.as_ref();
        if wanted.is_some_and(|wanted| wanted.is(&refused)) {
            entry.take_proposed();
        }
        entry.rules.last_sent = sent_before;
        let differs = refused.policy.differences(&entry.policy).map(|s| s.label);
        let differs = differs.collect::<Vec<_>>().join(", ");
        let user = entry.who.username.escape_ascii().to_string();
        let session = entry.seid;
        tracing::error!(%session, user, %cause, differs, "user plane rejects a change of the session's policy: the previous \
            policy stays in force");
        self.counters.count(Counter::PolicyRefused);
        self.adjust(now, index);
        if let Some(key) = refused.change {
            self.change_refused(now, index, key, ErrorCause::ResourcesUnavailable);
        }
        true
    }

    /// Handles a lost answer to a modification: forgets the new policy, because it is unknown which one the user plane has.
    pub(super) fn policy_unknown(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        entry.take_proposed();
        if let Some(sending) = entry.take_sending() {
            // so that the wanted policy differs from what was told, whichever of both the user plane has
            entry.rules.last_sent = sending.sent_before;
            tracing::warn!(session = %entry.seid, "no answer to a change of the session's policy: the previous policy is \
                sent again");
        }
        self.changes_unknown(now, index);
    }

    /// Whether a session may get another policy than the one in force.
    pub(super) fn policy_differs(&self, index: u32) -> bool {
        let entry = &self.sessions[index];
        let work = &entry.under_way;
        let is_changing =
            entry.change().is_some() || work.proposed.is_some() || work.sending.is_some();
        entry.has_policy() && (is_changing || self.view().evaluate(entry).0 != entry.policy)
    }

    /// Evaluates the policies of all sessions of a user plane again, because the configuration may have changed while it was away.
    pub(super) fn renew_policies(&mut self, now: Now, plane: UserPlaneId) {
        self.roll_out(now, Touched::user_plane(plane));
    }
}
