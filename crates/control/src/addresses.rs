//! The addresses and prefixes of every network instance: pools, and fixed ones that AAA chose.

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

/// A net that a group has to announce, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Net {
    /// Its network instance.
    pub instance: InstanceId,
    /// The net.
    pub net: IpNet,
}

/// Who asks for an address or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its network instance.
    pub instance: InstanceId,
    /// Its subscriber group.
    pub group: GroupId,
    /// The place of its session.
    pub session: u32,
}

/// What a subscriber was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The address or prefix.
    pub address: T,
    /// The net that the group has to announce from now on.
    pub new_net: Option<Net>,
    /// No net of the group covers it: it has to be announced by itself.
    pub is_alone: bool,
}

/// A pool of the configuration.
struct Source<F: Family> {
    instance: InstanceId,
    prefix: F,
    net_length: u8,
    /// The gateway's own.
    excluded: Vec<F::Unit>,
    pool: Pool<F, GroupId>,
}

/// The pools of a family, by name.
type Sources<F> = BTreeMap<String, Source<F>>;

/// Every address that subscribers have or can get.
#[derive(Default)]
pub struct Addresses {
    ipv4: Sources<Ipv4Net>,
    ipv6: Sources<Ipv6Net>,
    fixed: Fixed,
}

impl Addresses {
    /// The pools of the configuration, nothing given out.
    ///
    /// # Errors
    /// Pools that cannot be cut.
    pub fn new(configuration: &Configuration, topology: &Topology) -> Result<Self, Vec<Fault>> {
        let mut addresses = Addresses::default();
        let change = addresses.change(configuration, topology)?;
        addresses.apply(change);
        Ok(addresses)
    }

    /// Every address and prefix that a subscriber has.
    pub fn given(&self) -> impl Iterator<Item = Net> {
        let ipv4 = self.ipv4.values().flat_map(given);
        let ipv6 = self.ipv6.values().flat_map(given);
        ipv4.chain(ipv6).chain(self.fixed.nets())
    }

    /// Every pool, with how many of its addresses or prefixes subscribers have, and how many there are.
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

    /// Every net of the pools that a group has.
    pub fn lent_nets(&self) -> impl Iterator<Item = (GroupId, Net)> {
        let ipv4 = self.ipv4.values().flat_map(lent_nets);
        ipv4.chain(self.ipv6.values().flat_map(lent_nets))
    }

    /// How full each pool is, in order of their names.
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

    /// The net of a pool that an address or prefix is in, and the group that has it.
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

    /// Takes a net of a pool back from which no subscriber has an address.
    pub fn reclaim(&mut self, lent: Net) {
        match lent.net {
            IpNet::V4(net) => reclaim(&mut self.ipv4, lent.instance, net),
            IpNet::V6(net) => reclaim(&mut self.ipv6, lent.instance, net),
        }
    }

    /// Gives an IPv4 address: the fixed one, or one of the group's out of these pools in order, by default out of any of the
    /// instance's. `None`: there is no pool.
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

    /// Gives an IPv6 prefix of /64: the fixed one, or one of the group's, as [`Addresses::give_ipv4`] does.
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

    /// Gives a prefix that AAA chose and that is no unit of a pool, such as a route. It may lie within another one of the same
    /// session, not in another's or in a pool.
    ///
    /// # Errors
    /// What it overlaps.
    pub fn give_prefix(&mut self, holder: Holder, net: IpNet) -> Result<(), PoolError> {
        self.give_fixed(holder, net, net).map(drop)
    }

    /// Gives a session's binding again that it had before a restart.
    ///
    /// # Errors
    /// Who has it, or why it cannot be had.
    pub fn give_again(
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

    /// Takes an address or prefix back; the net of a pool that is no longer to be announced, if that was its last, and the
    /// group that had it.
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

    /// The pool of the instance that a prefix overlaps.
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

/// The next unit of the first pool that has one left.
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
