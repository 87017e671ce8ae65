//! Bindings of sessions: allocation, announcement and release of addresses and prefixes.
//!
//! A binding inside a prefix block of the session's group is announced with that block. Every other binding is announced by the
//! session's own rules; a user plane that does not support that announces it as a prefix block of the group.

use super::{ControlPlane, Now};
use crate::addresses::{Given, Holder, Kind, Net};
use crate::assigned::Assigned;
use crate::counters::Counter;
use crate::entry::Entry;
use crate::pool::PoolError;
use crate::topology::{GroupId, UserPlaneId};
use aaa::{AccessAccept, FramedRoute};
use ipnet::{IpNet, Ipv6Net};
use policy::{Binding, Bindings, Role};

/// What AAA passes on is what a session has room for, and what its subscriber is told.
const _: () = assert!(aaa::MOST_LINKS == policy::MOST_LINKS);
const _: () = assert!(aaa::MOST_DELEGATED == session::MOST_DELEGATED);

impl ControlPlane {
    /// Allocates the subscriber's addresses and routes: those from AAA, or from the group's prefix blocks. A subscriber that
    /// renegotiates PPP keeps its addresses.
    pub(super) fn take_addresses(&mut self, now: Now, index: u32, accept: &AccessAccept) {
        for kind in self.offered_kinds(index) {
            let assigned = Assigned::of(accept, kind);
            if self.keeps(index, kind, &assigned) {
                continue;
            }
            match assigned.fixed.is_empty() {
                true => self.give_from_pools(now, index, kind, assigned.pool),
                false => self.give_fixed(now, index, kind, &assigned.fixed),
            }
        }
        let routes = self.offered_routes(index, accept);
        self.give_routes(now, index, &routes);
    }

    /// Routes of an answer that the session can have: those of the address families of its subscriber profile.
    pub(super) fn offered_routes(&self, index: u32, accept: &AccessAccept) -> Box<[FramedRoute]> {
        let families = self
            .subscriber_profile(&self.sessions[index])
            .address_families;
        let is_offered = |route: &&FramedRoute| match route.net {
            IpNet::V4(_) => families.has_ipv4(),
            IpNet::V6(_) => families.has_ipv6(),
        };
        let routes = accept.framed_routes.iter();
        routes.filter(is_offered).copied().collect()
    }

    /// Prefixes of the link in an answer, if the session can have any.
    pub(super) fn offered_links(&self, index: u32, accept: &AccessAccept) -> Box<[Ipv6Net]> {
        match self.offered_kinds(index).any(|kind| kind == Kind::Link) {
            true => accept.framed_ipv6_prefixes.clone().into(),
            false => Box::default(),
        }
    }

    /// Kinds that the session can have: those of the address families of its subscriber profile, and no IPv4 in a network instance
    /// without a gateway address.
    pub(super) fn offered_kinds(&self, index: u32) -> impl Iterator<Item = Kind> + use<> {
        let families = self
            .subscriber_profile(&self.sessions[index])
            .address_families;
        let has_ipv4 = families.has_ipv4() && self.gateway_ipv4(index).is_some();
        let kinds = Kind::ALL.into_iter();
        kinds.filter(move |kind| match kind.is_ipv4() {
            true => has_ipv4,
            false => families.has_ipv6(),
        })
    }

    /// Whether the session keeps what it has of a kind: it is what AAA assigns, or of the pool that AAA names.
    pub(super) fn keeps(&self, index: u32, kind: Kind, assigned: &Assigned<'_>) -> bool {
        let bindings = &self.sessions[index].policy.forwarding.bindings;
        let has = bindings.iter().filter(|had| Kind::of(had) == Some(kind));
        let has: Vec<IpNet> = has.map(|had| had.prefix).collect();
        match (&assigned.fixed[..], assigned.pool) {
            _ if has.is_empty() => false,
            ([], None) => true,
            ([], Some(pool)) => {
                let is_of_pool = |net: &IpNet| self.addresses.is_of_pool(pool, *net);
                has.iter().all(is_of_pool)
            }
            (fixed, _) => {
                has.iter().all(|net| fixed.contains(net))
                    && fixed.iter().all(|net| has.contains(net))
            }
        }
    }

    /// Allocates an address or prefix from the pool that AAA names, or else from those of the user or the profile. Without a free one,
    /// the old one is released as well, because AAA no longer assigns it.
    fn give_from_pools(&mut self, now: Now, index: u32, kind: Kind, pool: Option<&String>) {
        let Some(pools) = self.pools_for(index, kind, pool) else {
            return;
        };
        if let Some(pool) = pool
            && self.keeps_some_of(now, index, kind, pool)
        {
            return;
        }
        let (holder, before) = (self.holder(index), self.former_nets(index));
        let given = self
            .addresses
            .allocate(holder, kind, &pools, before.into_iter());
        match given {
            Some(Ok(given)) => self.replace(now, index, kind, &[given]),
            Some(Err(error)) => {
                self.replace(now, index, kind, &[]);
                self.exhausted(index, kind, error);
            }
            None => {}
        }
    }

    /// Pools from which the session gets addresses or prefixes of a kind. No names: every pool of its network instance. `None`: no pool.
    pub(super) fn pools_for(
        &self,
        index: u32,
        kind: Kind,
        named: Option<&String>,
    ) -> Option<Vec<String>> {
        let pools = match named {
            Some(pool) => vec![pool.clone()],
            None => self.own_pools(&self.sessions[index], kind).to_vec(),
        };
        let is_on_request = matches!(kind, Kind::Delegated | Kind::Ipv6Address);
        (!pools.is_empty() || !is_on_request).then_some(pools)
    }

    /// Releases what the session has of a kind from elsewhere than this pool, if it has something of the pool.
    fn keeps_some_of(&mut self, now: Now, index: u32, kind: Kind, pool: &str) -> bool {
        let bindings = &self.sessions[index].policy.forwarding.bindings;
        let stays = bindings.filtered(|had| {
            Kind::of(had) == Some(kind) && self.addresses.is_of_pool(pool, had.prefix)
        });
        if stays.is_empty() {
            return false;
        }
        let is_kept = |had: &Binding| stays.iter().any(|own| own.prefix == had.prefix);
        let is_gone = |had: &Binding| Kind::of(had) == Some(kind) && !is_kept(had);
        self.take_back_with_inner(now, index, is_gone);
        true
    }

    /// Allocates what AAA assigns. What is not available is left out.
    fn give_fixed(&mut self, now: Now, index: u32, kind: Kind, fixed: &[IpNet]) {
        let holder = self.holder(index);
        let bindings = &self.sessions[index].policy.forwarding.bindings;
        let mut own = bindings.filtered(|had| Kind::of(had) != Some(kind));
        let had = bindings.filtered(|had| Kind::of(had) == Some(kind));
        let mut given = Vec::new();
        for prefix in fixed {
            let with = own.with(Binding::new(kind.role(), *prefix));
            let is_had = had.iter().any(|had| had.prefix == *prefix);
            let result = with.map_err(|why| why.to_string()).and_then(|with| {
                let new = (!is_had).then(|| self.addresses.give_fixed(holder, kind, *prefix, &own));
                let new = new.transpose().map_err(|why| why.to_string())?;
                Ok((with, new))
            });
            match result {
                Ok((with, new)) => {
                    own = with;
                    given.extend(new);
                }
                Err(why) => self.unusable(index, &prefix.to_string(), &why),
            }
        }
        let is_gone = |had: &Binding| Kind::of(had) == Some(kind) && !fixed.contains(&had.prefix);
        self.take_back_with_inner(now, index, is_gone);
        for given in given {
            self.hold(now, index, kind.role(), given);
        }
    }

    /// Replaces the session's bindings of a kind by allocated ones.
    fn replace(&mut self, now: Now, index: u32, kind: Kind, given: &[Given]) {
        self.take_back_with_inner(now, index, |had| Kind::of(had) == Some(kind));
        for given in given {
            self.hold(now, index, kind.role(), *given);
        }
    }

    /// Releases bindings, and those that are inside them: these are the session's only as long as it has the outer ones.
    fn take_back_with_inner(&mut self, now: Now, index: u32, which: impl Fn(&Binding) -> bool) {
        let bindings = &self.sessions[index].policy.forwarding.bindings;
        let gone = bindings.iter().filter(|had| which(had));
        let gone: Vec<IpNet> = gone.map(|had| had.prefix).collect();
        let is_in = |net: &IpNet| gone.iter().any(|gone| gone.contains(net));
        self.take_back(now, index, |had| is_in(&had.prefix));
    }

    /// Allocates a binding that the session gets beside these.
    ///
    /// # Errors
    /// The reason for which it cannot have it.
    fn allocate(
        &mut self,
        index: u32,
        beside: &Bindings,
        wanted: Binding,
    ) -> Result<(Bindings, (Binding, Option<Net>)), String> {
        let with = beside.with(wanted).map_err(|why| why.to_string())?;
        let given = (self.addresses).give_binding(self.holder(index), &wanted, beside);
        Ok((with, given.map_err(|why| why.to_string())?))
    }

    /// Sets the routes of the subscriber. A route to its own address is left out.
    fn give_routes(&mut self, now: Now, index: u32, routes: &[FramedRoute]) {
        let route = |net: IpNet| routes.iter().find(|route| route.net == net);
        let is_gone = |had: &Binding| had.role == Role::Route && route(had.prefix).is_none();
        self.take_back(now, index, is_gone);
        let metric = |had: &Binding| route(had.prefix)?.metric;
        self.entry(index).set_metrics(metric);
        for FramedRoute { net, metric } in routes.iter().copied() {
            let bindings = self.sessions[index].policy.forwarding.bindings.clone();
            if bindings.iter().any(|binding| binding.prefix == net) {
                continue;
            }
            match self.allocate(index, &bindings, Binding::route(net, metric)) {
                Ok((_, (route, new_net))) => self.hold_binding(now, index, route, new_net),
                Err(why) => self.unusable(index, &net.to_string(), &why),
            }
        }
    }

    /// Allocates what the change that is under way gives the session: all its routes or nothing. A prefix of the link that is not
    /// available is left out, as at the beginning of a session.
    ///
    /// # Errors
    /// The route that is not available, and why.
    pub(super) fn claim_bindings(&mut self, now: Now, index: u32) -> Result<(), String> {
        let entry = &self.sessions[index];
        let Some((_, change)) = entry.change() else {
            return Ok(());
        };
        let mut all = change.kept(&entry.policy.forwarding.bindings);
        let wanted: Vec<Binding> = change.wanted().collect();
        let mut claimed = Vec::new();
        for wanted in wanted {
            if all.iter().any(|binding| binding.prefix == wanted.prefix) {
                continue;
            }
            match self.allocate(index, &all, wanted) {
                Ok((with, (binding, new_net))) => {
                    all = with;
                    self.announce(now, index, &binding, new_net);
                    claimed.push(binding);
                }
                Err(why) if wanted.role == Role::Link => {
                    self.unusable(index, &wanted.to_string(), &why);
                }
                Err(why) => {
                    self.give_back(now, index, claimed);
                    return Err(format!("route {wanted}: {why}"));
                }
            }
        }
        if let Some(change) = self.entry(index).change_mut() {
            change.claimed = claimed;
        }
        Ok(())
    }

    /// Holder of the session's addresses.
    fn holder(&self, index: u32) -> Holder {
        holder(&self.sessions[index])
    }

    /// Adds an allocated address or prefix to the session.
    fn hold(&mut self, now: Now, index: u32, role: Role, given: Given) {
        let binding = Binding {
            is_announced: given.is_alone,
            ..Binding::new(role, given.prefix)
        };
        self.hold_binding(now, index, binding, given.new_net);
    }

    /// Adds a binding to the session.
    fn hold_binding(&mut self, now: Now, index: u32, binding: Binding, new_net: Option<Net>) {
        self.entry(index).hold(binding);
        self.announce(now, index, &binding, new_net);
    }

    /// Announces the prefix block that a binding needs, and the binding itself where its own rules cannot.
    fn announce(&mut self, now: Now, index: u32, binding: &Binding, new_net: Option<Net>) {
        let entry = &self.sessions[index];
        let (group, instance) = (entry.group, entry.instance);
        let plane = self.plane_of(index);
        let alone = self.is_net_of_group(plane, binding).then_some(Net {
            instance,
            net: binding.prefix,
        });
        for net in new_net.into_iter().chain(alone) {
            self.user_planes
                .announce(now.at, group, net, &self.topology);
        }
    }

    /// Whether a binding must be announced as a prefix block of its group, because the user plane supports nothing else.
    pub(super) fn is_net_of_group(&self, plane: UserPlaneId, binding: &Binding) -> bool {
        binding.is_announced && !self.user_planes.takes_bindings(plane)
    }

    /// Releases the session's bindings for which `which` returns true, and prefix blocks that are unused then.
    pub(super) fn take_back(&mut self, now: Now, index: u32, which: impl Fn(&Binding) -> bool) {
        let gone = self.entry(index).let_go(which);
        self.give_back(now, index, gone);
    }

    /// Releases bindings that are not, or no longer, the session's.
    pub(super) fn give_back(&mut self, now: Now, index: u32, bindings: Vec<Binding>) {
        let plane = self.plane_of(index);
        let entry = &self.sessions[index];
        let (group, instance) = (entry.group, entry.instance);
        for binding in bindings {
            let net = Net {
                instance,
                net: binding.prefix,
            };
            let freed = self.addresses.take(net);
            let alone = self
                .is_net_of_group(plane, &binding)
                .then_some((group, net));
            for (group, net) in freed.into_iter().chain(alone) {
                self.user_planes
                    .withdraw(now.at, group, net, &self.topology);
            }
        }
    }

    /// Passes the prefix blocks of a user plane that is removed on to other groups, whose sessions have addresses in them.
    pub(super) fn pass_blocks_on(&mut self, now: Now, plane: UserPlaneId) {
        let is_its = |group: &GroupId| self.topology.group(*group).user_plane == plane;
        let lent = self.addresses.lent_nets();
        let lent: Vec<Net> = lent
            .filter_map(|(group, block)| is_its(&group).then_some(block))
            .collect();
        for block in lent {
            let is_in = |binding: &Binding| block.net.contains(&binding.prefix);
            let has_one = |entry: &&Entry| {
                let mut bindings = entry.policy.forwarding.bindings.iter();
                entry.instance == block.instance && bindings.any(is_in)
            };
            let heir = self.sessions.entries().find(has_one).map(|e| e.group);
            let Some(heir) = heir else {
                tracing::error!(
                    ?block,
                    "a prefix block is leaked: `sluice check` releases it"
                );
                continue;
            };
            self.addresses.pass_on(block, heir);
            self.user_planes
                .announce(now.at, heir, block, &self.topology);
        }
    }

    /// Adapts the announcement of bindings to the version of a user plane that has associated.
    pub(super) fn follow_version(&mut self, now: Now, plane: UserPlaneId) {
        let mut alone: Vec<(GroupId, Net)> = Vec::new();
        for index in self.sessions_of(plane) {
            let entry = &self.sessions[index];
            let bindings = entry.policy.forwarding.bindings.iter();
            alone.extend(bindings.filter(|binding| binding.is_announced).map(|b| {
                let (instance, net) = (entry.instance, b.prefix);
                (entry.group, Net { instance, net })
            }));
        }
        let as_nets = !self.user_planes.takes_bindings(plane);
        for (group, net) in alone {
            let (planes, topology) = (&mut self.user_planes, &self.topology);
            match as_nets {
                true => planes.announce(now.at, group, net, topology),
                false => planes.withdraw(now.at, group, net, topology),
            }
        }
    }

    /// Allocates all bindings of a stored session again, or none with the reason. The way of their announcement may change.
    pub(super) fn reserve_bindings(&mut self, now: Now, entry: &mut Entry) -> Result<(), String> {
        let holder = holder(entry);
        let mut bindings = entry.let_go(|_| true);
        // what is inside another one comes after it
        bindings.sort_by_key(|binding| binding.prefix.prefix_len());
        let mut nets = Vec::new();
        for binding in &bindings {
            let own = entry.policy.forwarding.bindings.clone();
            match self.addresses.give_binding(holder, binding, &own) {
                Ok((binding, new_net)) => {
                    entry.hold(binding);
                    nets.extend(new_net);
                }
                Err(error) => {
                    for booked in entry.let_go(|_| true) {
                        let (instance, net) = (holder.instance, booked.prefix);
                        self.addresses.take(Net { instance, net });
                    }
                    return Err(format!("{binding}: {error}"));
                }
            }
        }
        for net in nets {
            self.user_planes
                .announce(now.at, holder.group, net, &self.topology);
        }
        Ok(())
    }

    /// Remembers what the session has from pools, so that its subscriber gets it again.
    pub(super) fn remember_bindings(&mut self, index: u32) {
        let entry = &self.sessions[index];
        let subscriber = entry.subscriber.and_then(|id| self.subscribers.get(id));
        let is_sticky = self.subscriber_profile(entry).sticky_addresses;
        let Some(subscriber) = subscriber.filter(|_| is_sticky) else {
            return;
        };
        let bindings = entry.policy.forwarding.bindings.iter();
        let nets = bindings.map(|binding| Net {
            instance: entry.instance,
            net: binding.prefix,
        });
        let of_pools = nets.filter(|net| self.addresses.pool_of(*net).is_some());
        let most = self.configuration.limits.sessions as usize;
        let identity = &subscriber.identity;
        if self.sticky.remember(identity, of_pools, most) {
            self.counters.count(Counter::StickyAddressesFull);
        }
    }

    /// What the session's subscriber had, the latest first.
    fn former_nets(&self, index: u32) -> Vec<IpNet> {
        let entry = &self.sessions[index];
        let subscriber = entry.subscriber.and_then(|id| self.subscribers.get(id));
        let is_sticky = self.subscriber_profile(entry).sticky_addresses;
        let subscriber = subscriber.filter(|_| is_sticky);
        let nets = subscriber.map_or(&[][..], |s| self.sticky.of(&s.identity));
        let nets = nets.iter().filter(|net| net.instance == entry.instance);
        nets.map(|net| net.net).collect()
    }

    /// Reports that no pool has a free address or prefix.
    fn exhausted(&mut self, index: u32, kind: Kind, error: PoolError) {
        self.counters.count(match kind.is_ipv4() {
            true => Counter::Ipv4PoolExhausted,
            false => Counter::Ipv6PoolExhausted,
        });
        let entry = &self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        let what = kind.name();
        tracing::warn!(session = %entry.seid, user, what, %error, "the subscriber does not get it: enlarge its pools");
    }

    /// Reports that a prefix from AAA is not available.
    fn unusable(&mut self, index: u32, prefix: &str, why: &str) {
        self.counters.count(Counter::FixedAddressUnusable);
        let entry = &self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        tracing::warn!(session = %entry.seid, user, prefix, why, "an address or route from AAA is not available: the \
            subscriber does not get it");
    }
}

/// Holder for which a session's addresses are allocated.
pub(super) fn holder(entry: &Entry) -> Holder {
    Holder {
        instance: entry.instance,
        group: entry.group,
        session: entry.seid.index(),
    }
}
