//! Change of authorization and disconnection by RADIUS servers (RFC 5176).
//!
//! A change is part of AAA's answer as soon as it is under way: the policy is evaluated with it and applied like any other
//! ([`super::apply`]). The server gets its ACK when the user plane has the policy and the store has the session. If the user plane rejects
//! it, the answer of before is in force, and the server gets a NAK. If the user plane's answer is lost, the server gets none: the policy
//! of before is asserted again, and a repetition of the request is a new one. Changes of a session are carried out one after the other.

mod search;

pub(super) use search::Searches;

use super::apply::Applied;
use super::{Awaited, ControlPlane, Now, Output};
use crate::authorization::{Authorization, ChangeKey, PendingRequest, Proposal, Wanted};
use crate::entry::Entry;
use crate::evaluate::AaaAnswer;
use crate::next_pools::Pools;
use crate::topology::Seid;
use aaa::{
    AccessAccept, DynamicClient, DynamicConfig, DynamicOutcome, DynamicRequest, ErrorCause,
    Received, RequestKey, Requested, Secret, SessionIds,
};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use policy::{Binding, Policy};
use search::Search;
use session::Cause;

/// Maximum number of requests of a session that wait for each other.
const MOST_WAITING: usize = 8;

/// Whether a request is taken. Otherwise why it is not.
type Taken = Result<(), ErrorCause>;
/// Index of the session that a request means. Otherwise why there is not one.
type Found = Result<u32, ErrorCause>;

/// The only one of these sessions.
fn one(mut found: impl Iterator<Item = u32>) -> Found {
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => Err(ErrorCause::MultipleSessionSelectionUnsupported),
        (None, _) => Err(ErrorCause::SessionContextNotFound),
    }
}

impl ControlPlane {
    /// The server follows the configuration. Returns the UDP port to listen on; `None` without clients.
    pub(super) fn update_dynamic(&mut self) -> Option<u16> {
        let configured = &self.configuration.aaa.dynamic_authorization;
        let clients = configured.clients.values().map(|client| DynamicClient {
            address: client.address,
            secret: Secret::new(client.secret_key.reveal()),
            require_message_authenticator: client.require_message_authenticator,
        });
        let groups = self.configuration.aaa.server_groups.values();
        let gateways = groups.map(Some).chain([None]);
        let gateways = gateways.map(|group| self.aaa.nas(group));
        let config = DynamicConfig {
            clients: clients.collect(),
            gateways: gateways.collect(),
            time_window: Duration::from_secs(configured.time_window.into()),
            require_event_timestamp: configured.require_event_timestamp,
            mappings: self.aaa.mappings().clone(),
        };
        let port = (!config.clients.is_empty()).then_some(configured.port);
        self.dynamic.reconfigure(config);
        port
    }

    pub(super) fn on_dynamic(&mut self, now: Now, from: SocketAddr, bytes: &[u8]) {
        match self.dynamic.handle(now.at, now.unix, from, bytes) {
            Received::Request(key, request) => self.on_request(now, key, from.ip(), *request),
            Received::Answer(bytes) => {
                let to = from;
                self.outputs
                    .push_back(Output::DynamicAuthorization { to, bytes });
            }
            Received::Nothing => {}
        }
    }

    fn on_request(&mut self, now: Now, key: RequestKey, by: IpAddr, request: DynamicRequest) {
        match self.found_by_index(&request) {
            Some(found) => self.carry_out_request(now, key, by, request, found),
            None => self.search(now, Search::new(key, by, request)),
        }
    }

    /// Carries out a request for which one session was found, or none.
    fn carry_out_request(
        &mut self,
        now: Now,
        key: RequestKey,
        by: IpAddr,
        request: DynamicRequest,
        found: Found,
    ) {
        let DynamicRequest { ids, requested } = request;
        let what = match requested {
            Requested::Disconnect => "Disconnect-Request",
            Requested::Change(_) => "CoA-Request",
            Requested::Authorize { .. } => "CoA-Request for a new authorization",
        };
        let taken = found.and_then(|index| match requested {
            Requested::Disconnect => self.disconnect(now, key, by, index),
            Requested::Change(change) => self.take_change(now, key, by, index, &change),
            Requested::Authorize { state } => self.take_authorize(now, key, by, index, state),
        });
        if let Err(cause) = taken {
            tracing::info!(server = %by, session = %ids, %cause, "{what} is rejected");
            self.answer_server(key, DynamicOutcome::Rejected(cause));
        }
    }

    fn disconnect(&mut self, now: Now, key: RequestKey, by: IpAddr, index: u32) -> Taken {
        self.has_room(index)?;
        self.add_request(index, key, Wanted::End);
        let entry = self.entry(index);
        let user = entry.who.username.escape_ascii().to_string();
        tracing::info!(session = %entry.seid, user, server = %by, "the session is disconnected by RADIUS");
        entry.under_way.ended_by = Some(format!("RADIUS server {by}").into());
        self.forget_answer(index);
        self.forget_pools(index);
        self.end(now, index, Cause::AdminReset);
        Ok(())
    }

    fn take_change(
        &mut self,
        now: Now,
        key: RequestKey,
        by: IpAddr,
        index: u32,
        change: &AccessAccept,
    ) -> Taken {
        let mut wanted = self.wanted_change(now, index, by, change)?;
        self.has_room(index)?;
        self.share_rules(index, &mut wanted)?;
        if self.add_request(index, key, wanted) {
            self.begin_change(now, index);
        }
        Ok(())
    }

    /// Lets the rules of a change be those of other sessions that have the same.
    fn share_rules(&mut self, index: u32, wanted: &mut Wanted) -> Result<(), ErrorCause> {
        let Wanted::Change(change) = wanted else {
            return Ok(());
        };
        let Some(rules) = &mut change.answer.overrides.filter_rules else {
            return Ok(());
        };
        self.filter_sets.share(rules).map_err(|why| {
            let entry = &self.sessions[index];
            let user = entry.who.username.escape_ascii().to_string();
            tracing::warn!(session = %entry.seid, user, why, "the session's rules cannot be changed");
            ErrorCause::ResourcesUnavailable
        })
    }

    /// Whether a session may have one more request that waits.
    fn has_room(&self, index: u32) -> Taken {
        match self.sessions[index].under_way.requests.len() {
            MOST_WAITING.. => Err(ErrorCause::ResourcesUnavailable),
            _ => Ok(()),
        }
    }

    /// Adds a request to a session; whether it is the first.
    fn add_request(&mut self, index: u32, key: RequestKey, wanted: Wanted) -> bool {
        let requests = &mut self.entry(index).under_way.requests;
        let key = ChangeKey::Request(key);
        requests.push_back(PendingRequest { key, wanted });
        requests.len() == 1
    }

    /// Asks the server anew, whose request is answered at once (RFC 5176 §3.2).
    fn take_authorize(
        &mut self,
        now: Now,
        key: RequestKey,
        by: IpAddr,
        index: u32,
        state: Vec<u8>,
    ) -> Taken {
        if self.sessions[index].accepted_by.is_user() {
            return Err(ErrorCause::UnsupportedService);
        }
        let entry = &self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        tracing::info!(session = %entry.seid, user, server = %by, "RADIUS wants to be asked for the session's authorization");
        self.answer_server(key, DynamicOutcome::Initiated);
        self.ask_authorization(now, index, state);
        Ok(())
    }

    /// The one session that is meant, if an index leads to it.
    fn found_by_index(&self, request: &DynamicRequest) -> Option<Found> {
        let is_it = |index: &u32| self.is_meant(&self.sessions[*index], request);
        if let Some(id) = &request.ids.acct_session_id {
            let seid = u64::from_str_radix(id, 16).ok().map(Seid);
            let index = seid.and_then(|seid| self.sessions.find(seid));
            return Some(one(index.into_iter().filter(is_it)));
        }
        let name = request.ids.username.as_deref();
        let name = name.filter(|_| self.has_names_as_sent())?;
        let mut of_user = self.sessions.of_user(name).filter(is_it).peekable();
        of_user.peek()?;
        Some(one(of_user))
    }

    /// Whether a request may mean a session. One that is not stored yet is still being set up, and no server knows it.
    fn is_meant(&self, entry: &Entry, request: &DynamicRequest) -> bool {
        let is_change = !matches!(request.requested, Requested::Disconnect);
        let is_fit = entry.stored && (!is_change || entry.has_policy() && !entry.is_ending());
        is_fit && self.is_named(entry, &request.ids)
    }

    /// Whether servers know subscribers by the names that these sent: no template makes others of them.
    fn has_names_as_sent(&self) -> bool {
        let mut groups = self.configuration.aaa.server_groups.values();
        groups.all(|group| group.templates.user_name.is_none())
    }

    fn is_named(&self, entry: &Entry, ids: &SessionIds) -> bool {
        let is_same = |wanted: &Option<Vec<u8>>, own: Option<&[u8]>| {
            wanted.as_deref().is_none_or(|wanted| own == Some(wanted))
        };
        let is_text = |wanted: &Option<String>, own: &dyn Fn() -> String| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| own().eq_ignore_ascii_case(wanted))
        };
        let bindings = &entry.policy.forwarding.bindings;
        is_same(&ids.username, Some(entry.sent_name()))
            && ids.framed_ip.is_none_or(|ip| entry.ipv4() == Some(ip))
            && (ids.framed_ipv6_prefixes.iter()).all(|net| entry.links().any(|own| own == *net))
            && (ids.framed_ipv6_address).is_none_or(|ip| bindings.ipv6_address() == Some(ip))
            && (ids.delegated_prefixes.iter())
                .all(|net| bindings.delegated().any(|own| own == *net))
            && is_same(&ids.circuit_id, entry.tags.line.circuit_id.as_deref())
            && is_same(&ids.remote_id, entry.tags.line.remote_id.as_deref())
            && is_text(&ids.calling_station, &|| entry.calling_station())
            && is_text(&ids.port_id, &|| self.nas_port_id(entry))
    }

    /// Checks the values of a change, of which every one must be usable.
    fn wanted_change(
        &self,
        now: Now,
        index: u32,
        by: IpAddr,
        change: &AccessAccept,
    ) -> Result<Wanted, ErrorCause> {
        let entry = &self.sessions[index];
        let answer = AaaAnswer::of(change, entry.account.lasted(now.at));
        if change.framed_mtu.is_some() && answer.overrides.mtu.is_none() {
            return Err(ErrorCause::InvalidAttributeValue);
        }
        if let Err(why) = self.check_names(change) {
            let user = entry.who.username.escape_ascii().to_string();
            tracing::info!(session = %entry.seid, user, server = %by, why, "the session's profile and policies cannot be changed");
            return Err(ErrorCause::InvalidAttributeValue);
        }
        if let Some(name) = &change.filter_id {
            let profile = self.configuration.subscriber_profiles.get(name);
            let profile = profile.ok_or(ErrorCause::InvalidAttributeValue)?;
            // the addresses of a running session are in its network instance
            if profile.network_instance != self.topology.instance(entry.instance).name {
                return Err(ErrorCause::InvalidAttributeValue);
            }
        }
        let routes = self.offered_routes(index, change);
        if routes.len() < change.framed_routes.len() {
            return Err(ErrorCause::InvalidAttributeValue);
        }
        if let Err(why) = self.check_pools(entry.instance, change) {
            tracing::info!(session = %entry.seid, server = %by, why, "the session's pools cannot be changed");
            return Err(ErrorCause::InvalidAttributeValue);
        }
        Ok(Wanted::Change(Box::new(Authorization {
            answer,
            is_whole: false,
            class: change.class.clone().into(),
            links: Box::default(),
            routes,
            claimed: Vec::new(),
            pools: Pools::of(change),
            by: Some(by),
        })))
    }

    /// Begins the change that is first in turn, if one is.
    pub(super) fn begin_change(&mut self, now: Now, index: u32) {
        let Some((key, _)) = self.sessions[index].change() else {
            return;
        };
        let claimed = self.claim_bindings(now, index);
        let claimed = claimed.map_err(|why| (why, ErrorCause::InvalidAttributeValue));
        let applied = claimed.and_then(|()| {
            let applied = self.assign_policy(now, index);
            applied.map_err(|why| (why, ErrorCause::ResourcesUnavailable))
        });
        let (why, cause) = match applied {
            Ok(Applied::InForce | Applied::Proposed) => return,
            // what a server has answered is carried out as soon as the user plane is back
            Ok(Applied::Deferred) if key.request().is_none() => return,
            Ok(Applied::Deferred) => {
                let why = "its user plane cannot be reached".to_owned();
                (why, ErrorCause::ResourcesUnavailable)
            }
            Err(refused) => refused,
        };
        let session = self.sessions[index].seid;
        tracing::warn!(%session, why, "a change of the session's authorization is rejected");
        self.change_refused(now, index, key, cause);
    }

    /// Goes on after a change came into force: the server is told as soon as the store has it.
    pub(super) fn change_done(
        &mut self,
        now: Now,
        index: u32,
        key: ChangeKey,
        change: &Authorization,
        before: &Policy,
    ) {
        let entry = &self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        let server = change.by.map(|by| by.to_string());
        let differs = entry.policy.differences(before).map(|s| s.label);
        let differs = differs.collect::<Vec<_>>().join(", ");
        let next = change.pools.texts().collect::<Vec<_>>().join(", ");
        tracing::info!(session = %entry.seid, user, server, differs, next, "the session's policy is changed by RADIUS");
        let has = |had: &&Binding| {
            let mut bindings = entry.policy.forwarding.bindings.iter();
            bindings.any(|binding| binding.prefix == had.prefix)
        };
        let had = before.forwarding.bindings.iter().chain(&change.claimed);
        let gone: Vec<Binding> = had.filter(|had| !has(had)).copied().collect();
        self.give_back(now, index, gone);
        if !change.is_whole {
            self.remember_change(index, change);
        }
        self.remember_pools(now, index, &change.pools);
        self.note_authorized(now, index, change, before);
        if let Some(key) = key.request() {
            self.journal.await_batch(Awaited::Answer(key));
        }
        self.begin_change(now, index);
    }

    /// Goes on after a change was rejected: AAA's answer of before stays.
    pub(super) fn change_refused(
        &mut self,
        now: Now,
        index: u32,
        key: ChangeKey,
        cause: ErrorCause,
    ) {
        let entry = self.entry(index);
        let is_it = |first: &mut PendingRequest| first.key == key;
        let requests = entry.under_way.held().map(|held| &mut held.requests);
        let Some(request) = requests.and_then(|held| held.pop_front_if(is_it)) else {
            return;
        };
        self.release_claims(now, index, request);
        let entry = self.entry(index);
        let is_proposed = |proposal: &mut Proposal| proposal.change == Some(key);
        if entry.under_way.proposed.take_if(is_proposed).is_some() {
            self.renew_policy(now, index);
        }
        match key.request() {
            Some(key) => self.answer_server(key, DynamicOutcome::Rejected(cause)),
            // as if the subscriber had connected with this answer
            None => return self.end(now, index, Cause::NasError),
        }
        self.begin_change(now, index);
    }

    /// Forgets the changes of a session whose user plane may have carried one out or not. Repetitions begin anew. What a server has
    /// answered stays, and is carried out with the next policy.
    pub(super) fn changes_unknown(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        if let Some(under_way) = entry.under_way.held() {
            let of_change = |proposal: &mut Proposal| proposal.change.is_some();
            under_way.proposed.take_if(of_change);
        }
        let is_asked = |request: &PendingRequest| request.key.request().is_some();
        self.answer_changes(now, index, is_asked, DynamicOutcome::Unknown);
    }

    /// Answers the changes of a session for which `which` returns true.
    fn answer_changes(
        &mut self,
        now: Now,
        index: u32,
        which: impl Fn(&PendingRequest) -> bool,
        outcome: DynamicOutcome,
    ) {
        let Some(under_way) = self.entry(index).under_way.held() else {
            return;
        };
        let requests = std::mem::take(&mut under_way.requests).into_iter();
        let is_change = |request: &PendingRequest| matches!(request.wanted, Wanted::Change(_));
        let is_answered = |request: &PendingRequest| is_change(request) && which(request);
        let (changes, others): (Vec<PendingRequest>, _) = requests.partition(is_answered);
        self.entry(index).under_way.requests = others.into();
        for change in changes {
            let key = change.key.request();
            self.release_claims(now, index, change);
            if let Some(key) = key {
                self.answer_server(key, outcome);
            }
        }
    }

    /// Releases what a change would have given to the session.
    fn release_claims(&mut self, now: Now, index: u32, request: PendingRequest) {
        if let Wanted::Change(change) = request.wanted {
            self.give_back(now, index, change.claimed);
        }
    }

    /// Rejects the changes of a session that has ended.
    pub(super) fn end_changes(&mut self, now: Now, index: u32) {
        let gone = ErrorCause::SessionContextNotFound;
        self.answer_changes(now, index, |_| true, DynamicOutcome::Rejected(gone));
    }

    /// Answers those who wanted the end of a session, once the store has no record of it.
    pub(super) fn answer_disconnects(&mut self, requests: impl Iterator<Item = PendingRequest>) {
        for key in requests.filter_map(|request| request.key.request()) {
            self.journal.await_batch(Awaited::Answer(key));
        }
    }

    /// Answers a RADIUS server.
    pub(super) fn answer_server(&mut self, key: RequestKey, outcome: DynamicOutcome) {
        if let Some((to, bytes)) = self.dynamic.answer(key, outcome) {
            self.outputs
                .push_back(Output::DynamicAuthorization { to, bytes });
        }
    }
}
