//! Addresses and prefixes of all network instances: pools, and fixed ones from AAA.

mod change;
mod fixed;
mod shares;

use crate::pool::{Family, Pool, PoolError};
use crate::topology::{GroupId, InstanceId, Topology};
use config::{Configuration, Fault};
use core::net::Ipv4Addr;
use fixed::Fixed;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use northbound::PoolUse;
use policy::{Binding, Role};
use std::collections::BTreeMap;

pub(crate) use change::Change;
pub(crate) use shares::Shares;

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

/// Allocated address or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// Address or prefix.
    pub address: T,
    /// New prefix block that the group must announce.
    pub new_net: Option<Net>,
    /// Whether it is outside the group's prefix blocks and must be announced by itself.
    pub is_alone: bool,
}

/// Configured pool.
struct Source<F: Family> {
    instance: InstanceId,
    prefix: F,
    net_length: u8,
    /// The gateway's own addresses, which are never allocated.
    excluded: Vec<F::Unit>,
    pool: Pool<F, GroupId>,
}

/// Pools of an address family, by name.
type Sources<F> = BTreeMap<String, Source<F>>;

/// Addresses that subscribers have or can get.
#[derive(Default)]
pub struct Addresses {
    ipv4: Sources<Ipv4Net>,
    ipv6: Sources<Ipv6Net>,
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
        let ipv4 = self.ipv4.values().flat_map(given);
        let ipv6 = self.ipv6.values().flat_map(given);
        ipv4.chain(ipv6).chain(self.fixed.nets())
    }

    /// Pools with their number of allocated units and their number of units.
    pub fn usage(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let ipv4 = self
            .ipv4
            .iter()
            .map(|(name, source)| (&**name, source.pool.used(), source.pool.size()));
        let ipv6 = self
            .ipv6
            .iter()
            .map(|(name, source)| (&**name, source.pool.used(), source.pool.size()));
        ipv4.chain(ipv6)
    }

    /// Prefix blocks of groups.
    pub fn lent_nets(&self) -> impl Iterator<Item = (GroupId, Net)> {
        let ipv4 = self.ipv4.values().flat_map(lent_nets);
        ipv4.chain(self.ipv6.values().flat_map(lent_nets))
    }

    /// Use of each pool, in order of names.
    pub fn use_of_pools(&self, topology: &Topology) -> Vec<PoolUse> {
        let ipv4 = self
            .ipv4
            .iter()
            .map(|pool| pool_use(pool, "ipv4", topology));
        let ipv6 = self
            .ipv6
            .iter()
            .map(|pool| pool_use(pool, "ipv6", topology));
        ipv4.chain(ipv6).collect()
    }

    /// Prefix block of an address or prefix, and the group that has it.
    pub fn net_of(&self, given: Net) -> Option<(GroupId, Net)> {
        let (group, net) = match given.net {
            IpNet::V4(net) => {
                let unit = Ipv4Net::unit_of(net.into())?;
                let (group, net) = find(&self.ipv4, given.instance, unit)?.pool.net_of(unit)?;
                (group, IpNet::from(net))
            }
            IpNet::V6(net) => {
                let (group, net) = find(&self.ipv6, given.instance, net)?.pool.net_of(net)?;
                (group, IpNet::from(net))
            }
        };
        Some((group?, Net { net, ..given }))
    }

    /// Releases a leaked prefix block, in which no address is in use.
    pub fn reclaim(&mut self, lent: Net) {
        match lent.net {
            IpNet::V4(net) => reclaim(&mut self.ipv4, lent.instance, net),
            IpNet::V6(net) => reclaim(&mut self.ipv6, lent.instance, net),
        }
    }

    /// Passes a prefix block on to another group.
    pub fn pass_on(&mut self, lent: Net, group: GroupId) {
        match lent.net {
            IpNet::V4(net) => pass_on(&mut self.ipv4, lent.instance, net, group),
            IpNet::V6(net) => pass_on(&mut self.ipv6, lent.instance, net, group),
        }
    }

    /// Whether there is a pool of this name and family in a network instance.
    pub fn has_pool(&self, instance: InstanceId, name: &str, is_ipv4: bool) -> bool {
        let of_pool = match is_ipv4 {
            true => self.ipv4.get(name).map(|source| source.instance),
            false => self.ipv6.get(name).map(|source| source.instance),
        };
        of_pool == Some(instance)
    }

    /// Whether an address or prefix is of the pool of this name.
    pub fn is_of_pool(&self, name: &str, net: IpNet) -> bool {
        match net {
            IpNet::V4(net) => (self.ipv4.get(name)).is_some_and(|s| s.prefix.contains(&net)),
            IpNet::V6(net) => (self.ipv6.get(name)).is_some_and(|s| s.prefix.contains(&net)),
        }
    }

    /// Whether a session has an address or prefix, or one that overlaps it.
    pub fn is_held(&self, net: Net) -> bool {
        let of_pool = match net.net {
            IpNet::V4(prefix) => Ipv4Net::unit_of(prefix.into())
                .and_then(|unit| Some(find(&self.ipv4, net.instance, unit)?.pool.is_leased(unit))),
            IpNet::V6(prefix) => {
                find(&self.ipv6, net.instance, prefix).map(|source| source.pool.is_leased(prefix))
            }
        };
        of_pool.unwrap_or_else(|| self.fixed.overlaps(net).is_some())
    }

    /// Allocates an IPv4 address: the fixed one, or one from these pools in order. Without pools, any pool of the instance is used. `None`
    /// if there is no pool.
    pub fn give_ipv4(
        &mut self,
        holder: Holder,
        pools: &[String],
        fixed: Option<Ipv4Addr>,
    ) -> Option<Result<Given<Ipv4Addr>, PoolError>> {
        match fixed {
            None => allocate(&mut self.ipv4, holder, pools),
            Some(address) => Some(match find_mut(&mut self.ipv4, holder.instance, address) {
                Some(source) => source.reserve(holder.group, address),
                None => self.give_fixed(holder, address, Ipv4Net::from(address)),
            }),
        }
    }

    /// Allocates an IPv6 /64 prefix like [`Addresses::give_ipv4`].
    pub fn give_ipv6(
        &mut self,
        holder: Holder,
        pools: &[String],
        fixed: Option<Ipv6Net>,
    ) -> Option<Result<Given<Ipv6Net>, PoolError>> {
        match fixed {
            None => allocate(&mut self.ipv6, holder, pools),
            // a link's prefix has 64 bits (RFC 4862)
            Some(prefix) if prefix.prefix_len() != 64 => Some(Err(PoolError::Foreign)),
            Some(prefix) => Some(match find_mut(&mut self.ipv6, holder.instance, prefix) {
                Some(source) => source.reserve(holder.group, prefix),
                None => self.give_fixed(holder, prefix, prefix),
            }),
        }
    }

    /// Allocates a prefix from AAA that is not a unit of a pool, such as a route. It may be inside another prefix of the same session,
    /// but not inside another session's prefix or a pool.
    ///
    /// # Errors
    /// The kind of overlap.
    pub fn give_prefix(&mut self, holder: Holder, net: IpNet) -> Result<(), PoolError> {
        self.give_fixed(holder, net, net).map(drop)
    }

    /// Allocates a binding that is known: AAA chose it, or the session had it before a restart.
    ///
    /// # Errors
    /// The reason for which it is not available.
    pub fn give_binding(
        &mut self,
        holder: Holder,
        binding: &Binding,
    ) -> Result<(Binding, Option<Net>), PoolError> {
        let (new_net, is_announced) = match (binding.role, binding.prefix) {
            (Role::Host, IpNet::V4(net)) => {
                let given = self.give_ipv4(holder, &[], Some(net.addr()));
                let given = given.unwrap_or(Err(PoolError::Foreign))?;
                (given.new_net, given.is_alone)
            }
            (Role::Link, IpNet::V6(net)) => {
                let given = self.give_ipv6(holder, &[], Some(net));
                let given = given.unwrap_or(Err(PoolError::Foreign))?;
                (given.new_net, given.is_alone)
            }
            (_, net) => {
                self.give_prefix(holder, net)?;
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
        let (group, of_pool) = match net.net {
            IpNet::V4(address) => {
                let unit = Ipv4Net::unit_of(address.into())?;
                let source = find_mut(&mut self.ipv4, net.instance, unit)?;
                let (group, net) = source.pool.release(unit).ok()??;
                (group, net.into())
            }
            IpNet::V6(prefix) => {
                let source = find_mut(&mut self.ipv6, net.instance, prefix)?;
                let (group, net) = source.pool.release(prefix).ok()??;
                (group, net.into())
            }
        };
        Some((
            group,
            Net {
                net: of_pool,
                ..net
            },
        ))
    }

    fn give_fixed<T>(
        &mut self,
        holder: Holder,
        address: T,
        net: impl Into<IpNet>,
    ) -> Result<Given<T>, PoolError> {
        let net = Net {
            instance: holder.instance,
            net: net.into(),
        };
        if let Some(pool) = self.overlapping_pool(net) {
            return Err(PoolError::OverlapsPool(pool));
        }
        let inserted = self.fixed.insert(net, holder.session);
        inserted.map_err(|other| match other == net.net {
            true => PoolError::InUse,
            false => PoolError::Overlaps(other),
        })?;
        Ok(Given {
            address,
            new_net: None,
            is_alone: true,
        })
    }

    /// Pool of the instance that a prefix overlaps.
    fn overlapping_pool(&self, net: Net) -> Option<IpNet> {
        let ipv4 = self.ipv4.values();
        let ipv4 = ipv4.map(|source| (source.instance, IpNet::from(source.prefix)));
        let ipv6 = self.ipv6.values();
        let ipv6 = ipv6.map(|source| (source.instance, IpNet::from(source.prefix)));
        let overlaps = |pool: IpNet| pool.contains(&net.net) || net.net.contains(&pool);
        let mut pools = ipv4.chain(ipv6);
        pools.find_map(|(instance, pool)| {
            (instance == net.instance && overlaps(pool)).then_some(pool)
        })
    }
}

impl<F: Family> Source<F> {
    fn reserve(&mut self, group: GroupId, unit: F::Unit) -> Result<Given<F::Unit>, PoolError> {
        let lease = self.pool.reserve(group, unit)?;
        Ok(Given {
            address: lease.address,
            new_net: lease.new_net.map(|net| self.net(net)),
            is_alone: lease.net_of != group,
        })
    }

    fn net(&self, net: F) -> Net {
        Net {
            instance: self.instance,
            net: net.into(),
        }
    }
}

fn pool_use<F: Family>(
    (name, source): (&String, &Source<F>),
    family: &str,
    topology: &Topology,
) -> PoolUse {
    PoolUse {
        name: name.clone(),
        network_instance: topology.instance(source.instance).name.clone(),
        family: family.into(),
        used: source.pool.used(),
        size: source.pool.size(),
    }
}

fn given<F: Family>(source: &Source<F>) -> impl Iterator<Item = Net> {
    let units = source.pool.leases();
    units.map(|(_, unit)| Net {
        instance: source.instance,
        net: F::of_unit(unit),
    })
}

fn lent_nets<F: Family>(source: &Source<F>) -> impl Iterator<Item = (GroupId, Net)> {
    let lent = source.pool.lent_nets();
    lent.map(|(group, net)| (group, source.net(net)))
}

fn find<F: Family>(
    sources: &Sources<F>,
    instance: InstanceId,
    unit: F::Unit,
) -> Option<&Source<F>> {
    let is_it = |source: &&Source<F>| source.instance == instance && source.pool.contains(unit);
    sources.values().find(is_it)
}

fn find_mut<F: Family>(
    sources: &mut Sources<F>,
    instance: InstanceId,
    unit: F::Unit,
) -> Option<&mut Source<F>> {
    let is_it = |source: &&mut Source<F>| source.instance == instance && source.pool.contains(unit);
    sources.values_mut().find(is_it)
}

fn reclaim<F: Family>(sources: &mut Sources<F>, instance: InstanceId, net: F) {
    let of_instance = sources.values_mut().filter(|s| s.instance == instance);
    of_instance.for_each(|source| source.pool.reclaim(net));
}

fn pass_on<F: Family>(sources: &mut Sources<F>, instance: InstanceId, net: F, group: GroupId) {
    let of_instance = sources.values_mut().filter(|s| s.instance == instance);
    of_instance.for_each(|source| source.pool.pass_on(net, group));
}

/// Allocates from the first pool with a free unit.
fn allocate<F: Family>(
    sources: &mut Sources<F>,
    holder: Holder,
    pools: &[String],
) -> Option<Result<Given<F::Unit>, PoolError>> {
    let mut last = None;
    let mut gives = |source: &mut Source<F>| {
        if source.instance != holder.instance {
            return false;
        }
        let given = source.pool.allocate(holder.group).map(|lease| Given {
            address: lease.address,
            new_net: lease.new_net.map(|net| source.net(net)),
            is_alone: false,
        });
        last.insert(given).is_ok()
    };
    match pools {
        [] => sources.values_mut().any(gives),
        named => named
            .iter()
            .any(|name| sources.get_mut(name).is_some_and(&mut gives)),
    };
    last
}

#[cfg(test)]
mod tests;
