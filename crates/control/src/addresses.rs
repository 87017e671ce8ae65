//! The addresses of every network instance: pools, and fixed addresses that AAA chose.

mod change;
mod shares;

use crate::pool::{Family, Pool, PoolError};
use crate::topology::{GroupId, InstanceId, Topology};
use config::{Configuration, Fault};
use core::net::Ipv4Addr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use northbound::PoolUse;
use std::collections::{BTreeMap, BTreeSet};

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

/// What a subscriber was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The address or prefix.
    pub address: T,
    /// The net that the group has to announce from now on.
    pub new_net: Option<Net>,
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
    /// Fixed addresses outside of the pools: each is a net of its own.
    fixed: BTreeSet<Net>,
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
        ipv4.chain(ipv6).chain(self.fixed.iter().copied())
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

    /// The net that has to be announced for an address or prefix; true if it is one of a pool.
    pub fn net_of(&self, given: Net) -> (Net, bool) {
        let of_pool = match given.net {
            IpNet::V4(net) => find(&self.ipv4, given.instance, net.addr())
                .and_then(|source| source.pool.net_of(net.addr()).map(IpNet::from)),
            IpNet::V6(net) => find(&self.ipv6, given.instance, net)
                .and_then(|source| source.pool.net_of(net).map(IpNet::from)),
        };
        let net = of_pool.unwrap_or(given.net);
        (Net { net, ..given }, of_pool.is_some())
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
        (instance, group): (InstanceId, GroupId),
        pools: &[String],
        fixed: Option<Ipv4Addr>,
    ) -> Option<Result<Given<Ipv4Addr>, PoolError>> {
        match fixed {
            None => allocate(&mut self.ipv4, (instance, group), pools),
            Some(address) => Some(match find_mut(&mut self.ipv4, instance, address) {
                Some(source) => source.reserve(group, address),
                None => self.give_fixed(instance, address, Ipv4Net::from(address)),
            }),
        }
    }

    /// Gives an IPv6 prefix of /64: the fixed one, or one of the group's, as [`Addresses::give_ipv4`] does.
    pub fn give_ipv6(
        &mut self,
        (instance, group): (InstanceId, GroupId),
        pools: &[String],
        fixed: Option<Ipv6Net>,
    ) -> Option<Result<Given<Ipv6Net>, PoolError>> {
        match fixed {
            None => allocate(&mut self.ipv6, (instance, group), pools),
            // a link's prefix has 64 bits (RFC 4862)
            Some(prefix) if prefix.prefix_len() != 64 => Some(Err(PoolError::Foreign)),
            Some(prefix) => Some(match find_mut(&mut self.ipv6, instance, prefix) {
                Some(source) => source.reserve(group, prefix),
                None => self.give_fixed(instance, prefix, prefix),
            }),
        }
    }

    /// Takes an IPv4 address back; the net that is no longer to be announced, if that was its last.
    pub fn take_ipv4(&mut self, instance: InstanceId, address: Ipv4Addr) -> Option<Net> {
        let net = Ipv4Net::from(address).into();
        let fixed = Net { instance, net };
        if self.fixed.remove(&fixed) {
            return Some(fixed);
        }
        let source = find_mut(&mut self.ipv4, instance, address)?;
        let net = source.pool.release(address).ok()??.into();
        Some(Net { instance, net })
    }

    /// Takes an IPv6 prefix back; the net that is no longer to be announced, if that was its last.
    pub fn take_ipv6(&mut self, instance: InstanceId, prefix: Ipv6Net) -> Option<Net> {
        let net = prefix.into();
        let fixed = Net { instance, net };
        if self.fixed.remove(&fixed) {
            return Some(fixed);
        }
        let source = find_mut(&mut self.ipv6, instance, prefix)?;
        let net = source.pool.release(prefix).ok()??.into();
        Some(Net { instance, net })
    }

    fn give_fixed<T>(
        &mut self,
        instance: InstanceId,
        address: T,
        net: impl Into<IpNet>,
    ) -> Result<Given<T>, PoolError> {
        let net = Net {
            instance,
            net: net.into(),
        };
        if !self.fixed.insert(net) {
            return Err(PoolError::InUse);
        }
        Ok(Given {
            address,
            new_net: Some(net),
        })
    }
}

impl<F: Family> Source<F> {
    fn reserve(&mut self, group: GroupId, unit: F::Unit) -> Result<Given<F::Unit>, PoolError> {
        let lease = self.pool.reserve(group, unit)?;
        Ok(Given {
            address: lease.address,
            new_net: lease.new_net.map(|net| self.net(net)),
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
    (instance, group): (InstanceId, GroupId),
    pools: &[String],
) -> Option<Result<Given<F::Unit>, PoolError>> {
    let mut last = None;
    let mut gives = |source: &mut Source<F>| {
        if source.instance != instance {
            return false;
        }
        let given = source.pool.allocate(group).map(|lease| Given {
            address: lease.address,
            new_net: lease.new_net.map(|net| source.net(net)),
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
