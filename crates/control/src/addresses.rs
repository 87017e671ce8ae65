//! Addresses and prefixes of all network instances: pools, and fixed ones from AAA.

mod change;
mod fixed;
mod shares;
mod sticky;

use crate::pool::{Lease, Pool, PoolError, PoolSettings};
use crate::topology::{GroupId, InstanceId, Topology};
use config::{Configuration, Fault};
use fixed::Fixed;
use ipnet::IpNet;
use northbound::PoolUse;
use policy::{Binding, Bindings, Role};
use std::collections::BTreeMap;

pub(crate) use change::Change;
pub(crate) use shares::{Shares, Usage};
pub(crate) use sticky::Sticky;

/// Prefix in a network instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Net {
    /// Network instance.
    pub instance: InstanceId,
    /// Prefix.
    pub net: IpNet,
}

/// Holder of an address or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Network instance.
    pub instance: InstanceId,
    /// Subscriber group.
    pub group: GroupId,
    /// Index of the session.
    pub session: u32,
}

/// What a subscriber gets from a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IPv4 address of its router.
    Ipv4Address,
    /// IPv6 prefix of its link (RFC 4862).
    Link,
    /// IPv6 prefix that is delegated to its router (RFC 8415 §6.3).
    Delegated,
    /// IPv6 address of its router (RFC 8415 §6.2).
    Ipv6Address,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 4] = [
        Kind::Ipv4Address,
        Kind::Link,
        Kind::Delegated,
        Kind::Ipv6Address,
    ];

    /// Kind of a binding; `None` for a route, which no pool allocates.
    pub fn of(binding: &Binding) -> Option<Kind> {
        match (binding.role, binding.is_ipv4()) {
            (Role::Host, true) => Some(Kind::Ipv4Address),
            (Role::Host, false) => Some(Kind::Ipv6Address),
            (Role::Link, _) => Some(Kind::Link),
            (Role::Delegated, _) => Some(Kind::Delegated),
            (Role::Route, _) => None,
        }
    }

    /// Role of its bindings.
    pub fn role(self) -> Role {
        match self {
            Kind::Ipv4Address | Kind::Ipv6Address => Role::Host,
            Kind::Link => Role::Link,
            Kind::Delegated => Role::Delegated,
        }
    }

    /// Whether it is of IPv4.
    pub fn is_ipv4(self) -> bool {
        self == Kind::Ipv4Address
    }

    /// Whether a prefix of this length can be one.
    pub fn fits(self, length: u8) -> bool {
        match self {
            Kind::Ipv4Address => length == 32,
            Kind::Link => length == 64,
            Kind::Delegated => length <= 64,
            Kind::Ipv6Address => length == 128,
        }
    }

    /// Name for operators.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ipv4Address => "IPv4 address",
            Kind::Link => "IPv6 prefix",
            Kind::Delegated => "delegated prefix",
            Kind::Ipv6Address => "IPv6 address",
        }
    }
}

/// Allocated address or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Address or prefix.
    pub prefix: IpNet,
    /// New prefix block that the group must announce.
    pub new_net: Option<Net>,
    /// Whether it is outside the group's prefix blocks and must be announced by itself.
    pub is_alone: bool,
}

/// Configured pool.
struct Source {
    instance: InstanceId,
    settings: PoolSettings,
    pool: Pool<GroupId>,
}

/// Pools of an address family, by name.
type Sources = BTreeMap<String, Source>;

/// Addresses that subscribers have or can get.
#[derive(Default)]
pub struct Addresses {
    ipv4: Sources,
    ipv6: Sources,
    fixed: Fixed,
}

impl Addresses {
    /// Creates the configured pools, with nothing allocated.
    ///
    /// # Errors
    /// Pools with invalid prefix blocks.
    pub fn new(configuration: &Configuration, topology: &Topology) -> Result<Self, Vec<Fault>> {
        let mut addresses = Addresses::default();
        let change = addresses.change(configuration, topology)?;
        addresses.apply(change);
        Ok(addresses)
    }

    /// Allocated addresses and prefixes.
    pub fn given(&self) -> impl Iterator<Item = Net> {
        let of_pools = self.all().flat_map(|(_, source)| {
            let units = source.pool.leases();
            units.map(|(_, unit)| source.net(unit))
        });
        of_pools.chain(self.fixed.nets())
    }

    /// Prefix blocks of groups.
    pub fn lent_nets(&self) -> impl Iterator<Item = (GroupId, Net)> {
        self.all().flat_map(|(_, source)| {
            let lent = source.pool.lent_nets();
            lent.map(|(group, net)| (group, source.net(net)))
        })
    }

    /// Use of each pool, those of IPv4 first, in order of names.
    pub fn use_of_pools(&self, topology: &Topology) -> Vec<PoolUse> {
        let rows = self.all().map(|(name, source)| PoolUse {
            name: name.clone(),
            network_instance: topology.instance(source.instance).name.clone(),
            family: source.family().into(),
            used: source.pool.used_of_size(),
            size: source.pool.size(),
        });
        rows.collect()
    }

    /// Prefix block of an address or prefix, and the group that has it.
    pub fn net_of(&self, given: Net) -> Option<(GroupId, Net)> {
        let source = self.find(given)?;
        let (group, net) = source.pool.net_of(given.net)?;
        Some((group?, source.net(net)))
    }

    /// Releases a leaked prefix block, in which no address is in use.
    pub fn reclaim(&mut self, lent: Net) {
        self.of_instance(lent)
            .for_each(|source| source.pool.reclaim(lent.net));
    }

    /// Passes a prefix block on to another group.
    pub fn pass_on(&mut self, lent: Net, group: GroupId) {
        self.of_instance(lent)
            .for_each(|source| source.pool.pass_on(lent.net, group));
    }

    /// Prefix length of what the pool of this name in a network instance allocates. `None` if there is no such pool of the kind's family.
    pub fn pool_length(&self, instance: InstanceId, name: &str, kind: Kind) -> Option<u8> {
        let source = self.sources(kind.is_ipv4()).get(name);
        let source = source.filter(|source| source.instance == instance);
        source.map(|source| source.settings.unit_length)
    }

    /// Whether an address or prefix is of the pool of this name.
    pub fn is_of_pool(&self, name: &str, net: IpNet) -> bool {
        let source = self.sources(is_ipv4(net)).get(name);
        source.is_some_and(|source| source.pool.contains(net))
    }

    /// Name of the pool of an address or prefix.
    pub fn pool_of(&self, given: Net) -> Option<&str> {
        let mut sources = self.sources(is_ipv4(given.net)).iter();
        let found = sources.find(|(_, source)| source.has(given));
        found.map(|(name, _)| &**name)
    }

    /// Whether a session has an address or prefix, or one that overlaps it.
    pub fn is_held(&self, net: Net) -> bool {
        let of_pool = self.find(net).map(|source| source.pool.is_leased(net.net));
        of_pool.unwrap_or_else(|| self.fixed.overlapping(net).next().is_some())
    }

    /// Allocates an address or prefix from these pools: one that the subscriber had `before`, as far as it is free, or else from the
    /// first pool with a free one. Without names, every pool of the network instance is used. `None` if there is no pool.
    pub fn allocate(
        &mut self,
        holder: Holder,
        kind: Kind,
        pools: &[String],
        before: impl Iterator<Item = IpNet>,
    ) -> Option<Result<Given, PoolError>> {
        let sources = self.sources_mut(kind.is_ipv4());
        for had in before {
            let again = first_of(sources, pools, |source| {
                let is_its = source.is_for(holder.instance, kind);
                is_its.then(|| source.again(holder.group, had)).flatten()
            });
            if let Some(given) = again {
                return Some(Ok(given));
            }
        }
        let mut why = None;
        let given = first_of(sources, pools, |source| {
            let is_its = source.is_for(holder.instance, kind);
            match is_its.then(|| source.allocate(holder.group))? {
                Ok(given) => Some(given),
                Err(error) => {
                    why = Some(error);
                    None
                }
            }
        });
        given.map(Ok).or(why.map(Err))
    }

    /// Allocates an address or prefix that AAA chose. `own` are the session's other bindings: its router's IPv6 address may be in a prefix
    /// of them, and is announced with that.
    ///
    /// # Errors
    /// The reason for which it is not available.
    pub fn give_fixed(
        &mut self,
        holder: Holder,
        kind: Kind,
        prefix: IpNet,
        own: &Bindings,
    ) -> Result<Given, PoolError> {
        if is_ipv4(prefix) != kind.is_ipv4() || !kind.fits(prefix.prefix_len()) {
            return Err(PoolError::Foreign);
        }
        let instance = holder.instance;
        let net = Net {
            instance,
            net: prefix,
        };
        if let Some(source) = self.find_mut(net) {
            return source.reserve(holder.group, prefix);
        }
        let nothing = Bindings::default();
        let own = match kind {
            Kind::Ipv6Address => own,
            Kind::Ipv4Address | Kind::Link | Kind::Delegated => &nothing,
        };
        self.give_prefix(holder, prefix, own)?;
        Ok(Given {
            prefix,
            new_net: None,
            is_alone: !is_within(prefix, own),
        })
    }

    /// Allocates a prefix from AAA that is not a unit of a pool, such as a route. It may be inside another prefix of the same session,
    /// but not inside another session's prefix or a pool.
    ///
    /// # Errors
    /// The kind of overlap.
    pub fn give_prefix(
        &mut self,
        holder: Holder,
        net: IpNet,
        own: &Bindings,
    ) -> Result<(), PoolError> {
        let instance = holder.instance;
        let net = Net { instance, net };
        if let Some(pool) = self.overlapping_pool(net)
            && !is_within(net.net, own)
        {
            return Err(PoolError::OverlapsPool(pool));
        }
        let inserted = self.fixed.insert(net, holder.session);
        inserted.map_err(|other| match other == net.net {
            true => PoolError::InUse,
            false => PoolError::Overlaps(other),
        })
    }

    /// Allocates a binding that is known: AAA chose it, or the session had it before a restart. `own` are those that it
    /// has besides, or has again already.
    ///
    /// # Errors
    /// The reason for which it is not available.
    pub fn give_binding(
        &mut self,
        holder: Holder,
        binding: &Binding,
        own: &Bindings,
    ) -> Result<(Binding, Option<Net>), PoolError> {
        let (new_net, is_announced) = match Kind::of(binding) {
            Some(kind) => {
                let given = self.give_fixed(holder, kind, binding.prefix, own)?;
                (given.new_net, given.is_alone)
            }
            None => {
                self.give_prefix(holder, binding.prefix, own)?;
                (None, true)
            }
        };
        let binding = Binding {
            is_announced,
            ..*binding
        };
        Ok((binding, new_net))
    }

    /// Releases an address or prefix. If its prefix block is unused then, returns the block with its group, to be withdrawn.
    pub fn take(&mut self, net: Net) -> Option<(GroupId, Net)> {
        if self.fixed.remove(net) {
            return None;
        }
        let source = self.find_mut(net)?;
        let (group, block) = source.pool.release(net.net).ok()??;
        Some((group, source.net(block)))
    }

    /// Pool of the instance that a prefix overlaps.
    fn overlapping_pool(&self, net: Net) -> Option<IpNet> {
        let overlaps = |pool: &IpNet| pool.contains(&net.net) || net.net.contains(pool);
        let of_instance = self
            .all()
            .filter(|(_, source)| source.instance == net.instance);
        let mut prefixes = of_instance.map(|(_, source)| source.settings.prefix);
        prefixes.find(overlaps)
    }

    /// Every pool with its name, those of IPv4 first.
    fn all(&self) -> impl Iterator<Item = (&String, &Source)> {
        self.ipv4.iter().chain(&self.ipv6)
    }

    fn sources(&self, is_ipv4: bool) -> &Sources {
        match is_ipv4 {
            true => &self.ipv4,
            false => &self.ipv6,
        }
    }

    fn sources_mut(&mut self, is_ipv4: bool) -> &mut Sources {
        match is_ipv4 {
            true => &mut self.ipv4,
            false => &mut self.ipv6,
        }
    }

    /// Pool that has an address or prefix as a unit, allocated or not.
    fn find(&self, unit: Net) -> Option<&Source> {
        let mut sources = self.sources(is_ipv4(unit.net)).values();
        sources.find(|source| source.has(unit))
    }

    fn find_mut(&mut self, unit: Net) -> Option<&mut Source> {
        let mut sources = self.sources_mut(is_ipv4(unit.net)).values_mut();
        sources.find(|source| source.has(unit))
    }

    fn of_instance(&mut self, net: Net) -> impl Iterator<Item = &mut Source> {
        let sources = self.sources_mut(is_ipv4(net.net)).values_mut();
        sources.filter(move |source| source.instance == net.instance)
    }
}

impl Source {
    /// Whether it has what subscribers in a network instance can get.
    fn is_for(&self, instance: InstanceId, kind: Kind) -> bool {
        self.instance == instance && kind.fits(self.settings.unit_length)
    }

    fn has(&self, unit: Net) -> bool {
        self.instance == unit.instance && self.pool.contains(unit.net)
    }

    /// Whether a prefix is inside an allocated unit, or is one.
    fn has_around(&self, net: IpNet) -> bool {
        let unit = IpNet::new(net.addr(), self.settings.unit_length);
        let unit = unit.ok().map(|unit| unit.trunc());
        unit.is_some_and(|unit| unit.contains(&net) && self.pool.is_leased(unit))
    }

    fn family(&self) -> &'static str {
        match is_ipv4(self.settings.prefix) {
            true => "ipv4",
            false => "ipv6",
        }
    }

    fn allocate(&mut self, group: GroupId) -> Result<Given, PoolError> {
        let lease = self.pool.allocate(group)?;
        Ok(self.given(group, lease))
    }

    fn again(&mut self, group: GroupId, unit: IpNet) -> Option<Given> {
        let lease = self.pool.allocate_again(group, unit)?;
        Some(self.given(group, lease))
    }

    fn reserve(&mut self, group: GroupId, unit: IpNet) -> Result<Given, PoolError> {
        let lease = self.pool.reserve(group, unit)?;
        Ok(self.given(group, lease))
    }

    fn given(&self, group: GroupId, lease: Lease<GroupId>) -> Given {
        Given {
            prefix: lease.unit,
            new_net: lease.new_net.map(|net| self.net(net)),
            is_alone: lease.net_of != group,
        }
    }

    fn net(&self, net: IpNet) -> Net {
        Net {
            instance: self.instance,
            net,
        }
    }
}

fn is_ipv4(net: IpNet) -> bool {
    matches!(net, IpNet::V4(_))
}

/// Whether a prefix is inside a prefix of a session's link or a delegated one.
fn is_within(net: IpNet, own: &Bindings) -> bool {
    let mut around = own.iter().filter(|own| own.prefix.contains(&net));
    around.any(|own| own.prefix != net && matches!(own.role, Role::Link | Role::Delegated))
}

/// First result of these pools in order; without names, of every pool.
fn first_of<T>(
    sources: &mut Sources,
    names: &[String],
    mut of: impl FnMut(&mut Source) -> Option<T>,
) -> Option<T> {
    match names {
        [] => sources.values_mut().find_map(of),
        names => names.iter().find_map(|name| of(sources.get_mut(name)?)),
    }
}

#[cfg(test)]
mod tests;
