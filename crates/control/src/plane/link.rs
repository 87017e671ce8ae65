//! Link of a session: its commands and outputs, authentication and timers.

use super::{ControlPlane, Now};
use crate::aaa_clients::PendingAuth;
use crate::addresses::Kind;
use crate::assigned::Assigned;
use crate::counters::Counter;
use crate::evaluate::AaaAnswer;
use crate::fallback::AcceptedBy;
use crate::topology::{InstanceId, Seid};
use crate::without_effect::WithoutEffect;
use aaa::{AccessAccept, AccessReject, AccessRequest, Credentials, Outcome, Secret};
use core::net::Ipv4Addr;
use core::time::Duration;
use session::{
    AuthMethod, AuthReply, AuthRequest, Cause, Command, Family, Grant, Ipv4Grant, Ipv6Grant,
    Output, Status, Watch,
};

impl ControlPlane {
    /// Passes a command to a session's link and carries out its outputs.
    pub(super) fn drive(&mut self, now: Now, index: u32, command: Command) {
        let entry = self.entry(index);
        let Some(link) = &mut entry.link else {
            return;
        };
        if let Err(why) = link.command(now.at, command) {
            tracing::trace!(session = %entry.seid, why = why.0, "command discarded");
        }
        self.carry_out(now, index);
    }

    /// Ends a session and notifies the subscriber.
    pub(super) fn end(&mut self, now: Now, index: u32, cause: Cause) {
        match self.entry(index).link {
            Some(_) => self.drive(now, index, Command::Terminate(cause)),
            None => self.release(now, index, cause),
        }
    }

    /// Who looks for signs of life of a session's subscriber. The user plane does it if it takes the setting and has acknowledged it together
    /// with an open address family.
    fn watch(&self, index: u32) -> Watch {
        let (rules, plane) = (&self.sessions[index].rules, self.plane_of(index));
        if !self.user_planes.is_answering(plane) {
            return Watch::Nobody;
        }
        let told = &rules.last_sent.forwarding;
        let is_open = told.bindings.iter().next().is_some();
        let is_acknowledged = rules.up_seid.is_some() && !rules.modifying;
        let is_known = |setting: &_| self.user_planes.takes_setting(plane, setting);
        let packets = || told.packets.limited_to(is_known);
        let does = is_open && is_acknowledged && packets().keepalive.is_some();
        match does && self.user_planes.answers_echoes(plane) {
            true => Watch::UserPlane,
            false => Watch::Link,
        }
    }

    /// Ends a session whose subscriber answers no echo requests, as the user plane says. A subscriber that is watched by the link meanwhile
    /// negotiates anew.
    pub(super) fn on_unanswered(&mut self, now: Now, index: u32) {
        if self.watch(index) == Watch::UserPlane {
            self.abandon(now, index, Cause::LostCarrier);
        }
    }

    pub(super) fn on_session_timeout(&mut self, now: Now, index: u32) {
        match self.sessions.get(index) {
            None => return,
            Some(entry) if entry.is_closing() => return self.delete(now, index), // once more
            Some(_) => {}
        }
        let watch = self.watch(index);
        let entry = self.entry(index);
        if let Some(link) = &mut entry.link {
            link.on_timeout(now.at, watch);
        }
        if entry.account.next_interim.is_due(now.at) {
            self.ask_interim(now, index);
        }
        if self.entry(index).account.ends_at.take_if_due(now.at) {
            self.on_time_over(now, index);
        } else {
            self.carry_out(now, index);
        }
    }

    /// Carries out a session's outputs in order.
    pub(super) fn carry_out(&mut self, now: Now, index: u32) {
        loop {
            let link = self.sessions.get_mut(index).and_then(|e| e.link.as_mut());
            let Some(output) = link.and_then(|link| link.poll_output()) else {
                return self.sessions.arm(index);
            };
            match output {
                Output::Frame(frame) => {
                    self.send_to_session(index, frame.ethertype, &frame.payload);
                }
                Output::Authenticate(request) => self.authenticate(now, index, request),
                Output::Install(family) => self.install(now, index, family),
                Output::Up(family) => self.on_family_up(index, family),
                Output::Down(family) => self.uninstall(now, index, family),
                Output::Closed(cause) => return self.release(now, index, cause),
            }
        }
    }

    fn authenticate(&mut self, now: Now, index: u32, request: AuthRequest) {
        let entry = self.entry(index);
        if entry.account.started.is_some() && *entry.who.username != *request.username {
            // somebody else on a link that is open: a session of its own, with its own record
            return self.end(now, index, Cause::NasRequest);
        }
        let name = request.username.clone().into_boxed_slice();
        self.sessions.set_user(index, name);
        let entry = self.entry(index);
        entry.who.attempt = request.attempt;
        if let Some(under_way) = entry.under_way.held() {
            under_way.waiting = None;
        }
        let (seid, attempt) = (entry.seid, request.attempt);
        let credentials = match request.method {
            AuthMethod::Pap { password } => Credentials::Pap {
                password: Secret::new(password),
            },
            AuthMethod::Chap {
                id,
                challenge,
                response,
            } => Credentials::Chap {
                id,
                challenge: challenge.to_vec(),
                response,
            },
            AuthMethod::MsChapV2 {
                id,
                challenge,
                response,
            } => Credentials::MsChapV2 {
                id,
                challenge,
                response,
            },
        };
        let segment = self.sessions[index].segment;
        let profile = self.view().access_profile(segment);
        let (servers, fallback) = (profile.server_group.clone(), profile.fallback);
        if self.sessions[index].account.started.is_none() {
            let names = self.written_names(index, servers.as_deref());
            let servers = servers.as_deref().map(|name| self.server_groups.get(name));
            let entry = self.entry(index);
            (entry.servers, entry.names) = (servers, names);
        }
        let state = self.state_to_repeat(index);
        let request = self.access_request(index, credentials, state);
        let pending = PendingAuth::Session { seid, attempt };
        let route = (servers.as_deref(), fallback);
        self.aaa.authenticate(now.at, route, pending, request);
    }

    /// Request about a session's subscriber.
    pub(super) fn access_request(
        &self,
        index: u32,
        credentials: Credentials,
        state: Vec<u8>,
    ) -> AccessRequest {
        let entry = &self.sessions[index];
        let names = entry.names.as_ref();
        let sent_name = names.and_then(|names| names.user_name.as_deref());
        AccessRequest {
            username: entry.who.username.to_vec(),
            sent_name: sent_name.map(<[u8]>::to_vec),
            credentials,
            acct_session_id: entry.seid.to_string(),
            nas_port: self.nas_port(index),
            state,
        }
    }

    /// Handles AAA's answer to the authentication of a session.
    pub(super) fn on_outcome(
        &mut self,
        now: Now,
        (seid, attempt): (Seid, u8),
        by: AcceptedBy,
        outcome: Outcome,
    ) {
        let waits = |index: &u32| {
            let entry = &self.sessions[*index];
            let waits = |status: Status| status.waits_for_verdict;
            entry.who.attempt == attempt && entry.status().is_some_and(waits)
        };
        // otherwise the session ended meanwhile, or its subscriber began anew
        let Some(index) = self.sessions.find(seid).filter(waits) else {
            return;
        };
        if self.is_authenticated(index) {
            return self.on_reauthenticated(now, index, by, outcome);
        }
        match outcome {
            Outcome::Accept(accept) => {
                self.entry(index).accepted_by = by;
                self.on_accept(now, index, *accept);
            }
            Outcome::Reject(reject) => self.on_reject(now, index, by, reject),
            Outcome::Unavailable(why) => {
                let Err(why) = self.fall_back(now, index, why) else {
                    return;
                };
                self.counters.count(Counter::AuthenticationUnavailable);
                let message = b"authentication is not available".to_vec();
                self.reject(now, index, &why, message);
            }
        }
    }

    /// Passes AAA's rejection on to the subscriber.
    pub(super) fn on_reject(&mut self, now: Now, index: u32, by: AcceptedBy, reject: AccessReject) {
        self.counters.count(Counter::AuthenticationRejected);
        self.count_failed_login(now, index);
        let why = self.note_rejected(index, by, reject.reason);
        self.send_rejection(
            now,
            index,
            &why,
            (reject.reply_message, reject.mschap_error),
        );
    }

    /// Rejects a subscriber that AAA has accepted, or not decided about.
    pub(super) fn reject(&mut self, now: Now, index: u32, why: &str, message: Vec<u8>) {
        self.send_rejection(now, index, why, (message, None));
    }

    fn send_rejection(
        &mut self,
        now: Now,
        index: u32,
        why: &str,
        (message, error): (Vec<u8>, Option<u32>),
    ) {
        let entry = self.entry(index);
        let user = entry.who.username.escape_ascii().to_string();
        let (seid, mac, attempt) = (entry.seid, entry.circuit.mac, entry.who.attempt);
        tracing::info!(session = %seid, user, %mac, why, "subscriber is rejected");
        self.note_refused(now, index, why, &message);
        let reply = AuthReply::Reject { message, error };
        self.drive(now, index, Command::Auth { attempt, reply });
    }

    pub(super) fn on_accept(&mut self, now: Now, index: u32, accept: AccessAccept) {
        let usable = self.check_names(&accept);
        if let Err(why) = usable.and_then(|()| self.check_rates(index, &accept)) {
            let message = b"service is not available".to_vec();
            self.counters.count(Counter::AuthenticationRejected);
            return self.reject(now, index, &why, message);
        }
        let limited = self.check_port_limit(index, &accept);
        let limited = limited.and_then(|()| self.check_user_limit(index));
        if let Err(why) = limited.and_then(|()| self.join_user(index)) {
            self.counters.count(Counter::SubscriberLimit);
            return self.reject(now, index, &why, b"too many sessions".to_vec());
        }
        self.count_attributes(index, &accept);
        let entry = &self.sessions[index];
        let mut answer = match entry.accepted_by {
            AcceptedBy::LastAnswer => AaaAnswer::clone(&entry.answer),
            AcceptedBy::Servers => AaaAnswer::of(&accept, entry.account.lasted(now.at)),
            // what their entries in the configuration say counts as long as it is there
            AcceptedBy::Users | AcceptedBy::UsersInstead => AaaAnswer::default(),
        };
        let mut rules = answer.overrides.filter_rules.take().flatten();
        if let Err(why) = self.filter_sets.share(&mut rules) {
            self.counters.count(Counter::AuthenticationRejected);
            return self.reject(now, index, &why, b"service is not available".to_vec());
        }
        answer.overrides.filter_rules = rules.map(Some);
        let answer = self.answers.get(answer);
        let entry = self.entry(index);
        entry.answer = answer;
        if let (Some(mtu), None) = (accept.framed_mtu, entry.answer.overrides.mtu) {
            let user = entry.who.username.escape_ascii().to_string();
            tracing::warn!(session = %entry.seid, user, mtu, "Framed-MTU is ignored: expected 576 to 9216. The subscriber \
                profile's MTU applies");
        }
        entry.who.class = accept.class.clone().into_boxed_slice();
        entry.state = accept.state.clone().into_boxed_slice();
        let (seid, attempt) = (entry.seid, entry.who.attempt);
        self.set_instance(now, index);
        let instance = self.sessions[index].instance;
        if let Err(why) = self.check_pools(instance, &accept) {
            self.counters.count(Counter::AuthenticationRejected);
            return self.reject(now, index, &why, b"service is not available".to_vec());
        }
        let with_pools = self.with_next_pools(now, index, &accept);
        let assigned = with_pools.as_ref().unwrap_or(&accept);
        if !self.has_free_addresses(now, index, assigned) {
            if let Some(index) = self.sessions.find(seid) {
                self.entry(index).under_way.waiting = Some(Box::new(accept));
            }
            return;
        }
        self.take_addresses(now, index, assigned);
        if !self.entry(index).has_policy() {
            let entry = self.entry(index);
            let (seid, user) = (entry.seid, entry.who.username.escape_ascii().to_string());
            tracing::warn!(session = %seid, user, "no free address for the subscriber: the session ends. Enlarge the pools \
                of its network instance");
            return self.end(now, index, Cause::NasError);
        }
        if let Err(why) = self.assign_policy(now, index) {
            self.counters.count(Counter::PolicyRefused);
            let message = b"service is not available".to_vec();
            return self.reject(now, index, &why, message);
        }
        self.note_accepted(now, index, &accept);
        let reply = AuthReply::Accept {
            grant: self.grant(index, accept.framed_interface_id),
            message: accept.reply_message,
            proof: accept.mschapv2_proof,
        };
        self.drive(now, index, Command::Auth { attempt, reply });
    }

    /// Whether what AAA names is configured: the subscriber profile, and the policies, without which more would pass than AAA wants.
    pub(super) fn check_names(&self, accept: &AccessAccept) -> Result<(), String> {
        if let Some(why) = &accept.unusable {
            return Err(format!("AAA's answer cannot be carried out: {why}"));
        }
        let configured = &self.configuration;
        let profile = accept.filter_id.iter().map(|name| {
            let is_known = configured.subscriber_profiles.contains_key(name);
            ("subscriber profile", name, is_known)
        });
        let policies = accept.policy_up.iter().chain(&accept.policy_down);
        let policies = policies.map(|name| {
            let is_known = configured.policies.contains_key(name);
            ("policy", name, is_known)
        });
        match profile.chain(policies).find(|(_, _, is_known)| !is_known) {
            Some((what, name, _)) => Err(format!(
                "AAA names the {what} `{name}`, which is not configured"
            )),
            None => Ok(()),
        }
    }

    /// Whether a session would have a limit wherever an answer wants one.
    pub(super) fn check_rates(&self, index: u32, accept: &AccessAccept) -> Result<(), String> {
        if accept.unusable_rates.is_empty() {
            return Ok(());
        }
        let answer = AaaAnswer::of(accept, Duration::ZERO);
        let view = self.view();
        let inputs = view.policy_inputs_with(&self.sessions[index], &answer);
        inputs.check_rates(accept)
    }

    /// Counts and names the attributes of an Access-Accept that have no effect.
    pub(super) fn count_attributes(&mut self, index: u32, accept: &AccessAccept) {
        let kinds = [
            (&accept.ignored, Counter::AttributeIgnored),
            (&accept.not_enforced, Counter::AttributeNotEnforced),
            (&accept.unknown, Counter::AttributeUnknown),
        ];
        for (names, counter) in kinds {
            names.iter().for_each(|_| self.counters.count(counter));
        }
        let entry = self.entry(index);
        entry.without_effect = WithoutEffect::of(accept);
        let (seid, user) = (entry.seid, entry.who.username.escape_ascii().to_string());
        if !accept.ignored.is_empty() {
            let ignored = accept.ignored.join(", ");
            tracing::warn!(session = %seid, user, ignored, "attributes of AAA's answer are ignored: their values cannot \
                be used, or they came more often than they may");
        }
        if !accept.not_enforced.is_empty() || !accept.unknown.is_empty() {
            let (not_enforced, unknown) =
                (accept.not_enforced.join(", "), accept.unknown.join(", "));
            tracing::info!(session = %seid, user, not_enforced, unknown, "attributes of AAA's answer have no effect: no mapping \
                says what they mean, or no dictionary knows them");
        }
    }

    /// Whether the pools that AAA names are in the network instance.
    pub(super) fn check_pools(
        &self,
        instance: InstanceId,
        accept: &AccessAccept,
    ) -> Result<(), String> {
        for kind in Kind::ALL {
            let Some(pool) = Assigned::of(accept, kind).pool else {
                continue;
            };
            let (what, name) = (kind.name(), &self.topology.instance(instance).name);
            match self.addresses.pool_length(instance, pool, kind) {
                None => {
                    return Err(format!(
                        "AAA names the pool `{pool}` for the {what}, and network instance `{name}` has no such pool"
                    ));
                }
                Some(length) if !kind.fits(length) => {
                    return Err(format!(
                        "AAA names the pool `{pool}` for the {what}, and what it allocates is a /{length}"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Sets the network instance of the subscriber's profile. Bindings in another instance are released.
    fn set_instance(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let name = &self.subscriber_profile(entry).network_instance;
        let instance = self.topology.find_instance(name);
        let instance = instance.expect("the topology has those of all profiles");
        if entry.instance != instance {
            self.take_back(now, index, |_| true);
            self.entry(index).instance = instance;
        }
    }

    /// Gateway's IPv4 address in the session's network instance.
    pub(super) fn gateway_ipv4(&self, index: u32) -> Option<Ipv4Addr> {
        let instance = self.sessions[index].instance;
        let name = &self.topology.instance(instance).name;
        let instance = self.configuration.network_instances.get(name);
        instance.and_then(|instance| instance.gateway_ipv4())
    }

    /// Addresses of the subscriber.
    fn grant(&self, index: u32, interface_id: Option<u64>) -> Grant {
        let entry = &self.sessions[index];
        let (gateway, control) = (self.gateway_ipv4(index), &entry.policy.control);
        let bindings = &entry.policy.forwarding.bindings;
        let ipv4 = entry
            .ipv4()
            .zip(gateway)
            .map(|(address, gateway)| Ipv4Grant {
                address,
                gateway,
                dns: control.dns_ipv4(),
            });
        let ipv6 = bindings.ipv6().map(|_| Ipv6Grant {
            bindings: bindings.clone(),
            dns: control.dns_ipv6().into(),
            interface_id,
        });
        Grant { ipv4, ipv6 }
    }

    /// Passes the addresses and DNS servers of the policy in force to the session's link.
    pub(super) fn set_grant(&mut self, now: Now, index: u32) {
        let grant = self.grant(index, None);
        self.drive(now, index, Command::SetGrant(grant));
    }

    /// Notes that an address family is open. The first one makes the session online.
    fn on_family_up(&mut self, index: u32, family: Family) {
        let entry = &mut self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        tracing::debug!(session = %entry.seid, user, %family, "address family is open");
        if !entry.is_half_open() {
            return;
        }
        self.sessions.open(index);
        self.forget_failures(index);
        let entry = &self.sessions[index];
        let (mac, ipv4) = (entry.circuit.mac, entry.ipv4().map(|a| a.to_string()));
        let ipv6 = entry.ipv6().map(|a| a.to_string());
        tracing::info!(session = %entry.seid, user, %mac, ipv4, ipv6, "subscriber is online");
    }
}
