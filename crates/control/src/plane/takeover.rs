//! Takeover of addresses: a subscriber that connects anew gets the addresses that AAA always gives it, and on the same line those that it
//! had from pools, although its earlier session is not over yet.
//!
//! A router that was switched off says no goodbye. Its earlier session ends when it connects again, and a PADR that comes late may end one
//! that is alive: so it says goodbye until it is answered, for some seconds. When AAA has accepted the new session, the earlier one is no
//! longer waited for. It has its addresses until its user plane has removed their rules, so that no address ever has two owners. The
//! new session waits for that between AAA's answer and the reply to the subscriber, and does not come online without them. If it
//! takes longer than a subscriber waits, the subscriber connects once more.

use super::{ControlPlane, Now};
use crate::addresses::{Kind, Net};
use crate::assigned::Assigned;
use crate::counters::Counter;
use crate::entry::Entry;
use crate::topology::Seid;
use aaa::AccessAccept;
use ipnet::IpNet;
use policy::Binding;
use session::{Cause, Command, Phase};

impl ControlPlane {
    /// Ends a session whose subscriber has begun another one or is gone, and does not wait for its goodbye.
    pub(super) fn abandon(&mut self, now: Now, index: u32, cause: Cause) {
        match self.entry(index).link {
            Some(_) => self.drive(now, index, Command::Abandon(cause)),
            None => self.release(now, index, cause),
        }
    }

    /// Whether no session is left that has an address of AAA's answer and has to give it up. Otherwise these end, and the session is woken
    /// by the last of them, unless it has ended itself.
    pub(super) fn has_free_addresses(
        &mut self,
        now: Now,
        index: u32,
        accept: &AccessAccept,
    ) -> bool {
        let seid = self.sessions[index].seid;
        // whoever ends may let another session go on, which takes over from others in turn, from this one too
        while self.sessions.find(seid).is_some() && !self.sessions[index].is_ending() {
            let givers = self.givers(index, accept);
            let Some(last) = givers.last() else {
                return true;
            };
            let open = givers.iter().find(|of| !self.sessions[**of].is_closing());
            match open.copied() {
                Some(holder) => self.take_over_from(now, holder),
                None => {
                    let heirs = &mut self.entry(*last).under_way.heirs;
                    if !heirs.contains(&seid) {
                        heirs.push(seid);
                    }
                    tracing::debug!(session = %seid, "waits for an address of an earlier session");
                    return false;
                }
            }
        }
        false
    }

    fn take_over_from(&mut self, now: Now, holder: u32) {
        if !self.sessions[holder].is_ending() {
            self.counters.count(Counter::Redialled);
        }
        self.abandon(now, holder, Cause::NasRequest);
    }

    /// Goes on with the answers that waited for a session's addresses.
    pub(super) fn wake_heirs(&mut self, now: Now, heirs: Vec<Seid>) {
        for heir in heirs {
            self.inherit(now, heir);
        }
    }

    fn inherit(&mut self, now: Now, heir: Seid) {
        let Some(index) = self.sessions.find(heir) else {
            return;
        };
        let entry = self.entry(index);
        let waits = entry
            .status()
            .is_some_and(|s| s.phase == Phase::Authenticate);
        let under_way = entry.under_way.held();
        let accept = under_way.and_then(|held| held.waiting.take());
        if let Some(accept) = accept.filter(|_| waits) {
            self.on_accept(now, index, *accept);
        }
    }

    /// What the earlier session on the same line has from the pools of AAA's answer and is about to release: its subscriber gets that
    /// again. A session whose deletion the user plane has rejected is not waited for.
    fn on_their_way_back(&self, index: u32, accept: &AccessAccept) -> Vec<IpNet> {
        let entry = &self.sessions[index];
        let is_new = entry.policy.forwarding.bindings.is_empty();
        if !is_new || !self.subscriber_profile(entry).sticky_addresses {
            return Vec::new();
        }
        let subscriber = entry.subscriber.and_then(|id| self.subscribers.get(id));
        let earlier = subscriber.into_iter().flat_map(|s| &s.sessions);
        let earlier = earlier.filter_map(|seid| self.sessions.find(*seid));
        let earlier = earlier.map(|other| &self.sessions[other]);
        let earlier = earlier.filter(|other| {
            let is_earlier = other.seid != entry.seid && other.line_key() == entry.line_key();
            is_earlier && other.is_ending() && other.under_way.delete_at.is_none()
        });
        let bindings = earlier.flat_map(|other| other.policy.forwarding.bindings.iter());
        let comes_again = |binding: &&Binding| self.comes_again(index, accept, binding);
        bindings.filter(comes_again).map(|b| b.prefix).collect()
    }

    /// Whether the session may get a binding of its subscriber's earlier session from a pool.
    fn comes_again(&self, index: u32, accept: &AccessAccept, had: &Binding) -> bool {
        let net = Net {
            instance: self.sessions[index].instance,
            net: had.prefix,
        };
        let (Some(kind), Some(pool)) = (Kind::of(had), self.addresses.pool_of(net)) else {
            return false;
        };
        let assigned = Assigned::of(accept, kind);
        let is_offered = self.offered_kinds(index).any(|offered| offered == kind);
        let pools = self.pools_for(index, kind, assigned.pool);
        let has_pool =
            |pools: Vec<String>| pools.is_empty() || pools.iter().any(|name| name == pool);
        is_offered && assigned.fixed.is_empty() && pools.is_some_and(has_pool)
    }

    /// Sessions that have an address that AAA gives this one, and that end or are the same subscriber's.
    fn givers(&self, index: u32, accept: &AccessAccept) -> Vec<u32> {
        let entry = &self.sessions[index];
        let own = &entry.policy.forwarding.bindings;
        let mut wanted = wanted(accept);
        wanted.extend(self.on_their_way_back(index, accept));
        wanted.retain(|net| own.iter().all(|binding| binding.prefix != *net));
        let is_held = |net: &IpNet| {
            let (instance, net) = (entry.instance, *net);
            self.addresses.is_held(Net { instance, net })
        };
        if !wanted.iter().any(is_held) {
            return Vec::new();
        }
        let gives = |other: &u32| {
            let other = &self.sessions[*other];
            other.seid != entry.seid
                && other.instance == entry.instance
                && has_one_of(other, &wanted)
                && (other.is_ending() || is_same_subscriber(other, entry))
        };
        let subscriber = entry.subscriber.and_then(|id| self.subscribers.get(id));
        let of_subscriber = subscriber.into_iter().flat_map(|s| &s.sessions);
        let of_subscriber = of_subscriber.filter_map(|seid| self.sessions.find(*seid));
        let found: Vec<u32> = of_subscriber.filter(gives).collect();
        if !found.is_empty() {
            return found;
        }
        // another line, or another router on it
        let all = self.sessions.entries().map(|entry| entry.seid.index());
        all.filter(gives).collect()
    }
}

/// Addresses, prefixes and routes that AAA chose.
pub(super) fn wanted(accept: &AccessAccept) -> Vec<IpNet> {
    let fixed = Kind::ALL.into_iter();
    let fixed = fixed.flat_map(|kind| Assigned::of(accept, kind).fixed);
    let routes = accept.framed_routes.iter().map(|route| route.net);
    fixed.chain(routes).collect()
}

fn has_one_of(entry: &Entry, wanted: &[IpNet]) -> bool {
    let overlap = |a: &IpNet, b: &IpNet| a.contains(b) || b.contains(a);
    let mut bindings = entry.policy.forwarding.bindings.iter();
    bindings.any(|binding| wanted.iter().any(|net| overlap(net, &binding.prefix)))
}

fn is_same_subscriber(one: &Entry, other: &Entry) -> bool {
    let is_same_home = one.subscriber.is_some() && one.subscriber == other.subscriber;
    is_same_home || one.who.username == other.who.username
}
