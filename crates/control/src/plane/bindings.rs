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
use aaa::AccessAccept;
use core::net::{IpAddr, Ipv4Addr};
use ipnet::{IpNet, Ipv6Net};
use policy::{Binding, Role};

impl ControlPlane {
    /// Allocates the subscriber's addresses and routes: those from AAA, or from the group's prefix blocks. A subscriber that
    /// renegotiates PPP keeps its addresses.
    pub(super) fn take_addresses(&mut self, now: Now, index: u32, accept: &AccessAccept) {
        let families = self
            .subscriber_profile(&self.sessions[index])
            .address_families;
        if families.has_ipv4() && self.gateway_ipv4(index).is_some() {
            self.give_ipv4(now, index, accept.framed_ip, accept.framed_pool.as_ref());
        }
        if families.has_ipv6() {
            let pool = accept.framed_ipv6_pool.as_ref();
            self.give_ipv6(now, index, accept.framed_ipv6_prefix, pool);
        }
        let is_wanted = |net: &&IpNet| match net {
            IpNet::V4(_) => families.has_ipv4(),
            IpNet::V6(_) => families.has_ipv6(),
        };
        let routes: Vec<IpNet> = accept
            .framed_routes
            .iter()
            .filter(is_wanted)
            .copied()
            .collect();
        self.give_routes(now, index, &routes);
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

    fn give_ipv6(&mut self, now: Now, index: u32, fixed: Option<Ipv6Net>, pool: Option<&String>) {
        let entry = &self.sessions[index];
        if self.keeps(entry.ipv6(), fixed, pool) {
            return;
        }
        let pools = match pool {
            Some(pool) => vec![pool.clone()],
            None => self.own_pools(entry, false).to_vec(),
        };
        let given = self.addresses.give_ipv6(self.holder(index), &pools, fixed);
        let given =
            given.map(|given| given.map(|given| in_role(Role::Link, given, given.address.into())));
        let fixed = fixed.map(|prefix| prefix.to_string());
        let exhausted = Counter::Ipv6PoolExhausted;
        self.replace(now, index, Role::Link, given, (fixed, exhausted));
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
    fn give_routes(&mut self, now: Now, index: u32, routes: &[IpNet]) {
        let is_gone = |had: &Binding| had.role == Role::Route && !routes.contains(&had.prefix);
        self.take_back(now, index, is_gone);
        for net in routes {
            let entry = &self.sessions[index];
            let bindings = &entry.policy.forwarding.bindings;
            if bindings.iter().any(|binding| binding.prefix == *net) {
                continue;
            }
            let route = Binding::new(Role::Route, *net);
            if let Err(why) = bindings.with(route) {
                self.unusable(index, &net.to_string(), &why.to_string());
                continue;
            }
            match self.addresses.give_prefix(self.holder(index), *net) {
                Ok(()) => self.hold(now, index, route, None),
                Err(error) => self.unusable(index, &net.to_string(), &error.to_string()),
            }
        }
    }

    /// Allocates the routes of the change that is under way, all of them or none.
    ///
    /// # Errors
    /// The route that is not available, and why.
    pub(super) fn claim_routes(&mut self, index: u32) -> Result<(), String> {
        let holder = self.holder(index);
        let entry = &self.sessions[index];
        let Some((_, change)) = entry.change() else {
            return Ok(());
        };
        let mut all = entry.policy.forwarding.bindings.clone();
        let mut claimed = Vec::new();
        for net in change.routes.clone() {
            if all.iter().any(|binding| binding.prefix == net) {
                continue;
            }
            let with = all.with(Binding::new(Role::Route, net));
            let given = with.map_err(|why| why.to_string()).and_then(|with| {
                let given = self.addresses.give_prefix(holder, net);
                given.map(|()| with).map_err(|why| why.to_string())
            });
            match given {
                Ok(with) => all = with,
                Err(why) => {
                    self.release_routes(index, &claimed);
                    return Err(format!("route {net}: {why}"));
                }
            }
            claimed.push(net);
        }
        if let Some(change) = self.entry(index).change_mut() {
            change.claimed = claimed;
        }
        Ok(())
    }

    /// Releases routes that are not, or no longer, among the session's bindings.
    pub(super) fn release_routes(&mut self, index: u32, routes: &[IpNet]) {
        let instance = self.sessions[index].instance;
        for net in routes.iter().copied() {
            self.addresses.take(Net { instance, net });
        }
    }

    /// Holder of the session's addresses.
    fn holder(&self, index: u32) -> Holder {
        holder(&self.sessions[index])
    }

    /// Adds a binding to the session.
    fn hold(&mut self, now: Now, index: u32, binding: Binding, new_net: Option<Net>) {
        let entry = self.entry(index);
        entry.hold(binding);
        let (group, instance) = (entry.group, entry.instance);
        let plane = self.plane_of(index);
        let alone = self.is_net_of_group(plane, &binding).then_some(Net {
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
        let plane = self.plane_of(index);
        let entry = self.entry(index);
        let (group, instance) = (entry.group, entry.instance);
        for binding in entry.let_go(which) {
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
            match self.addresses.give_again(holder, binding) {
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
