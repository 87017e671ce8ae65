//! Bindings of sessions: allocation, announcement and release of addresses and prefixes.
//!
//! A binding inside a prefix block of the session's group is announced with that block. Every other binding is announced by the
//! session's own rules; a user plane that does not support that announces it as a prefix block of the group.

use super::{ControlPlane, Now};
use crate::addresses::{Given, Holder, Net};
use crate::counters::Counter;
use crate::entry::Entry;
use crate::pool::PoolError;
use crate::topology::{GroupId, UserPlaneId};
use aaa::{AccessAccept, FramedRoute};
use core::net::{IpAddr, Ipv4Addr};
use ipnet::{IpNet, Ipv6Net};
use policy::{Binding, Bindings, Role};

/// What AAA passes on is what a session has room for.
const _: () = assert!(aaa::MOST_PREFIXES == policy::MOST_LINKS);

impl ControlPlane {
    /// Allocates the subscriber's addresses and routes: those from AAA, or from the group's prefix blocks. A subscriber that
    /// renegotiates PPP keeps its addresses.
    pub(super) fn take_addresses(&mut self, now: Now, index: u32, accept: &AccessAccept) {
        if self.gateway_ipv4(index).is_some() {
            self.give_ipv4(now, index, accept.framed_ip, accept.framed_pool.as_ref());
        }
        let pool = accept.framed_ipv6_pool.as_ref();
        match &accept.framed_ipv6_prefixes[..] {
            [] => self.give_link(now, index, pool),
            fixed => self.give_fixed_links(now, index, fixed),
        }
        self.give_routes(now, index, &accept.framed_routes);
    }

    /// Whether the session keeps what it has: it is what AAA gives it, or of the pool that AAA names.
    pub(super) fn keeps<T: Copy + PartialEq + Into<IpNet>>(
        &self,
        has: Option<T>,
        fixed: Option<T>,
        pool: Option<&String>,
    ) -> bool {
        has.is_some_and(|has| match (fixed, pool) {
            (Some(fixed), _) => fixed == has,
            (None, Some(pool)) => self.addresses.is_of_pool(pool, has.into()),
            (None, None) => true,
        })
    }

    fn give_ipv4(&mut self, now: Now, index: u32, fixed: Option<Ipv4Addr>, pool: Option<&String>) {
        let entry = &self.sessions[index];
        let net = |address: Ipv4Addr| IpNet::from(IpAddr::V4(address));
        if self.keeps(entry.ipv4().map(net), fixed.map(net), pool) {
            return;
        }
        let pools = match pool {
            Some(pool) => vec![pool.clone()],
            None => self.own_pools(entry, true).to_vec(),
        };
        let given = self.addresses.give_ipv4(self.holder(index), &pools, fixed);
        let given =
            given.map(|given| given.map(|given| in_role(Role::Host, given, net(given.address))));
        let fixed = fixed.map(|address| address.to_string());
        let exhausted = Counter::Ipv4PoolExhausted;
        self.replace(now, index, Role::Host, given, (fixed, exhausted));
    }

    /// Allocates a prefix of the link from pools, unless the session keeps what it has.
    fn give_link(&mut self, now: Now, index: u32, pool: Option<&String>) {
        let entry = &self.sessions[index];
        let stays = |link: IpNet| self.keeps(Some(link), None, pool);
        let stays: Vec<IpNet> = entry
            .links()
            .map(IpNet::from)
            .filter(|l| stays(*l))
            .collect();
        if !stays.is_empty() {
            let is_gone = |had: &Binding| had.role == Role::Link && !stays.contains(&had.prefix);
            return self.take_back(now, index, is_gone);
        }
        let pools = match pool {
            Some(pool) => vec![pool.clone()],
            None => self.own_pools(entry, false).to_vec(),
        };
        let given = self.addresses.give_ipv6(self.holder(index), &pools, None);
        let given =
            given.map(|given| given.map(|given| in_role(Role::Link, given, given.address.into())));
        let exhausted = Counter::Ipv6PoolExhausted;
        self.replace(now, index, Role::Link, given, (None, exhausted));
    }

    /// Allocates the prefixes of the link that AAA chose, and releases others. They are allocated first, so that a prefix block that has
    /// some of both stays announced.
    fn give_fixed_links(&mut self, now: Now, index: u32, fixed: &[Ipv6Net]) {
        let is_gone = |had: &Binding| match had.prefix {
            IpNet::V6(net) => had.role == Role::Link && !fixed.contains(&net),
            IpNet::V4(_) => false,
        };
        let bindings = &self.sessions[index].policy.forwarding.bindings;
        let mut all = bindings.filtered(|had| !is_gone(had));
        let mut new = Vec::new();
        for prefix in fixed {
            if all.links().any(|had| had == *prefix) {
                continue;
            }
            match self.allocate(index, &all, Binding::link(*prefix)) {
                Ok((with, given)) => {
                    all = with;
                    new.push(given);
                }
                Err(why) => self.unusable(index, &prefix.to_string(), &why),
            }
        }
        self.take_back(now, index, is_gone);
        for (binding, new_net) in new {
            self.hold(now, index, binding, new_net);
        }
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
        let given = self.addresses.give_binding(self.holder(index), &wanted);
        Ok((with, given.map_err(|why| why.to_string())?))
    }

    /// Replaces the session's binding in a role by the allocated one. Without an allocated one the old binding is released as well,
    /// because AAA no longer assigns it.
    fn replace(
        &mut self,
        now: Now,
        index: u32,
        role: Role,
        given: Option<Result<(Binding, Option<Net>), PoolError>>,
        (fixed, exhausted): (Option<String>, Counter),
    ) {
        let had = |had: &Binding| had.role == role && had.is_ipv4() == (role == Role::Host);
        match given {
            Some(Ok((binding, new_net))) => {
                self.take_back(now, index, had);
                self.hold(now, index, binding, new_net);
            }
            Some(Err(error)) => {
                self.take_back(now, index, had);
                self.cannot_give(index, fixed, exhausted, error);
            }
            None => {}
        }
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
                Ok((_, (route, new_net))) => self.hold(now, index, route, new_net),
                Err(why) => self.unusable(index, &net.to_string(), &why),
            }
        }
    }

    /// Allocates what the change that is under way gives the session: all its routes or nothing. A prefix of the link that is not
    /// available is left out, as at the beginning of a session.
    ///
    /// # Errors
    /// The route that is not available, and why.
    pub(super) fn claim(&mut self, now: Now, index: u32) -> Result<(), String> {
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

    /// Adds a binding to the session.
    fn hold(&mut self, now: Now, index: u32, binding: Binding, new_net: Option<Net>) {
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
        let bindings = entry.let_go(|_| true);
        let mut nets = Vec::new();
        for binding in &bindings {
            match self.addresses.give_binding(holder, binding) {
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

    fn cannot_give(
        &mut self,
        index: u32,
        fixed: Option<String>,
        exhausted: Counter,
        error: PoolError,
    ) {
        if let Some(fixed) = fixed {
            return self.unusable(index, &fixed, &error.to_string());
        }
        self.counters.count(exhausted);
        let entry = &self.sessions[index];
        let user = entry.who.username.escape_ascii().to_string();
        tracing::warn!(session = %entry.seid, user, %error, "no address for the subscriber in one address family");
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

/// Allocated binding, with the prefix block to announce for it.
fn in_role<T>(role: Role, given: Given<T>, prefix: IpNet) -> (Binding, Option<Net>) {
    let binding = Binding {
        is_announced: given.is_alone,
        ..Binding::new(role, prefix)
    };
    (binding, given.new_net)
}
