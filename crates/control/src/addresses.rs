//! The addresses of every network instance: pools, and fixed addresses that AAA chose.

use crate::pool::{Pool, PoolError};
use crate::topology::{GroupId, InstanceId, Topology};
use core::net::Ipv4Addr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::{BTreeMap, BTreeSet};

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

#[derive(Default)]
struct InstancePools {
    ipv4: Option<Pool<Ipv4Net, GroupId>>,
    ipv6: Option<Pool<Ipv6Net, GroupId>>,
    /// Fixed addresses outside of the pools: each is a net of its own.
    fixed: BTreeSet<IpNet>,
}

/// Every address that subscribers have or can get.
pub struct Addresses(BTreeMap<InstanceId, InstancePools>);

impl Addresses {
    /// The pools of the configuration, nothing given out.
    pub fn new(topology: &Topology) -> Result<Self, String> {
        let pools = topology.instances().map(|(id, instance)| {
            let service = &instance.service;
            let gateway: Vec<Ipv4Addr> = service.gateway.into_iter().collect();
            let ipv4 = service
                .ipv4_pool
                .as_ref()
                .map(|p| Pool::new(p.value.prefix, p.value.net_length, &gateway));
            let ipv6 = service
                .ipv6_pool
                .as_ref()
                .map(|p| Pool::new(p.value.prefix, p.value.net_length, &[]));
            let wrong = |error| format!("network instance `{}`: {error}", instance.name);
            Ok((
                id,
                InstancePools {
                    ipv4: ipv4.transpose().map_err(wrong)?,
                    ipv6: ipv6.transpose().map_err(wrong)?,
                    fixed: BTreeSet::new(),
                },
            ))
        });
        Ok(Addresses(pools.collect::<Result<_, String>>()?))
    }

    /// Every address and prefix that a subscriber has.
    pub fn given(&self) -> impl Iterator<Item = Net> {
        self.0.iter().flat_map(|(&instance, pools)| {
            let ipv4 = pools.ipv4.iter().flat_map(Pool::given).map(host);
            let ipv6 = pools.ipv6.iter().flat_map(Pool::given).map(IpNet::from);
            let all = ipv4.chain(ipv6).chain(pools.fixed.iter().copied());
            all.map(move |net| Net { instance, net })
        })
    }

    /// Every net of the pools that a group has.
    pub fn lent_nets(&self) -> impl Iterator<Item = (GroupId, Net)> {
        self.0.iter().flat_map(|(&instance, pools)| {
            let ipv4 = pools.ipv4.iter().flat_map(Pool::lent_nets);
            let ipv6 = pools.ipv6.iter().flat_map(Pool::lent_nets);
            let all = ipv4.map(|(group, net)| (group, IpNet::from(net)));
            let all = all.chain(ipv6.map(|(group, net)| (group, IpNet::from(net))));
            all.map(move |(group, net)| (group, Net { instance, net }))
        })
    }

    /// The net that has to be announced for an address or prefix; true if it is one of a pool.
    pub fn net_of(&self, given: Net) -> (Net, bool) {
        let pools = self.0.get(&given.instance);
        let of_pool = pools.and_then(|pools| match given.net {
            IpNet::V4(net) => pools.ipv4.as_ref()?.net_of(net.addr()).map(IpNet::from),
            IpNet::V6(net) => pools.ipv6.as_ref()?.net_of(net).map(IpNet::from),
        });
        let net = of_pool.unwrap_or(given.net);
        (Net { net, ..given }, of_pool.is_some())
    }

    /// Takes a net of a pool back from which no subscriber has an address.
    pub fn reclaim(&mut self, lent: Net) {
        if let Some(pools) = self.0.get_mut(&lent.instance) {
            match (lent.net, &mut pools.ipv4, &mut pools.ipv6) {
                (IpNet::V4(net), Some(pool), _) => pool.reclaim(net),
                (IpNet::V6(net), _, Some(pool)) => pool.reclaim(net),
                _ => {}
            }
        }
    }

    /// Whether subscribers of the instance get IPv4 addresses from a pool.
    pub fn has_ipv4(&self, instance: InstanceId) -> bool {
        self.0.get(&instance).is_some_and(|p| p.ipv4.is_some())
    }

    /// Whether subscribers of the instance get IPv6 prefixes from a pool.
    pub fn has_ipv6(&self, instance: InstanceId) -> bool {
        self.0.get(&instance).is_some_and(|p| p.ipv6.is_some())
    }

    /// Gives an IPv4 address: the fixed one, or one of the group's.
    pub fn give_ipv4(
        &mut self,
        instance: InstanceId,
        group: GroupId,
        fixed: Option<Ipv4Addr>,
    ) -> Result<Given<Ipv4Addr>, PoolError> {
        let pools = self.0.get_mut(&instance).ok_or(PoolError::Foreign)?;
        let lease = match (&mut pools.ipv4, fixed) {
            (Some(pool), None) => pool.allocate(group),
            (Some(pool), Some(address)) => pool.reserve(group, address),
            (None, _) => Err(PoolError::Foreign),
        };
        match (lease, fixed) {
            (Err(PoolError::Foreign), Some(address)) => {
                pools.give_fixed(instance, address, Ipv4Net::from(address))
            }
            (lease, _) => lease.map(|lease| Given {
                address: lease.address,
                new_net: lease.new_net.map(|net| Net {
                    instance,
                    net: net.into(),
                }),
            }),
        }
    }

    /// Gives an IPv6 prefix of /64: the fixed one, or one of the group's.
    pub fn give_ipv6(
        &mut self,
        instance: InstanceId,
        group: GroupId,
        fixed: Option<Ipv6Net>,
    ) -> Result<Given<Ipv6Net>, PoolError> {
        let pools = self.0.get_mut(&instance).ok_or(PoolError::Foreign)?;
        if fixed.is_some_and(|prefix| prefix.prefix_len() != 64) {
            return Err(PoolError::Foreign); // a link's prefix has 64 bits (RFC 4862)
        }
        let lease = match (&mut pools.ipv6, fixed) {
            (Some(pool), None) => pool.allocate(group),
            (Some(pool), Some(prefix)) => pool.reserve(group, prefix),
            (None, _) => Err(PoolError::Foreign),
        };
        match (lease, fixed) {
            (Err(PoolError::Foreign), Some(prefix)) => pools.give_fixed(instance, prefix, prefix),
            (lease, _) => lease.map(|lease| Given {
                address: lease.address,
                new_net: lease.new_net.map(|net| Net {
                    instance,
                    net: net.into(),
                }),
            }),
        }
    }

    /// Takes an IPv4 address back; the net that is no longer to be announced, if that was its last.
    pub fn take_ipv4(&mut self, instance: InstanceId, address: Ipv4Addr) -> Option<Net> {
        let pools = self.0.get_mut(&instance)?;
        let net = host(address);
        if pools.fixed.remove(&net) {
            return Some(Net { instance, net });
        }
        let freed = pools.ipv4.as_mut()?.release(address).ok()??;
        Some(Net {
            instance,
            net: freed.into(),
        })
    }

    /// Takes an IPv6 prefix back; the net that is no longer to be announced, if that was its last.
    pub fn take_ipv6(&mut self, instance: InstanceId, prefix: Ipv6Net) -> Option<Net> {
        let pools = self.0.get_mut(&instance)?;
        if pools.fixed.remove(&prefix.into()) {
            return Some(Net {
                instance,
                net: prefix.into(),
            });
        }
        let freed = pools.ipv6.as_mut()?.release(prefix).ok()??;
        Some(Net {
            instance,
            net: freed.into(),
        })
    }
}

/// The net of one address.
fn host(address: Ipv4Addr) -> IpNet {
    Ipv4Net::from(address).into()
}

impl InstancePools {
    fn give_fixed<T>(
        &mut self,
        instance: InstanceId,
        address: T,
        net: impl Into<IpNet>,
    ) -> Result<Given<T>, PoolError> {
        let net = net.into();
        if !self.fixed.insert(net) {
            return Err(PoolError::InUse);
        }
        Ok(Given {
            address,
            new_net: Some(Net { instance, net }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        let text = "node-id: cp1
address: 192.0.2.1
user-planes: [{node-id: up1, address: 192.0.2.2, access-ports: [{port: a}]}]
network-instances:
  default:
    gateway: 100.64.0.1
    ipv4-pool: {prefix: 100.64.0.0/23}
    ipv6-pool: {prefix: '2001:db8::/48'}
aaa: {users-file: users.yaml}
";
        Addresses::new(&Topology::new(&config::parse(text, "cp.yaml").unwrap())).unwrap()
    }
    const HERE: InstanceId = InstanceId(0);
    const GROUP: GroupId = GroupId(0);

    #[test]
    fn nets_are_announced_with_their_first_address_and_withdrawn_with_their_last() {
        let mut a = addresses();
        let one = a.give_ipv4(HERE, GROUP, None).unwrap();
        let net = Net {
            instance: HERE,
            net: "100.64.0.0/24".parse().unwrap(),
        };
        assert_eq!(
            (one.address, one.new_net),
            ("100.64.0.2".parse().unwrap(), Some(net)),
            "not the gateway's"
        );
        let two = a.give_ipv4(HERE, GROUP, None).unwrap();
        assert_eq!(two.new_net, None);
        assert_eq!(a.take_ipv4(HERE, one.address), None);
        assert_eq!(a.take_ipv4(HERE, two.address), Some(net));
        assert_eq!(a.take_ipv4(HERE, two.address), None, "already back");
        let short = Some("2001:db8:1::/56".parse().unwrap());
        assert_eq!(a.give_ipv6(HERE, GROUP, short), Err(PoolError::Foreign));
        let six = a.give_ipv6(HERE, GROUP, None).unwrap();
        assert_eq!(a.take_ipv6(HERE, six.address), six.new_net);
    }

    #[test]
    fn fixed_addresses_inside_and_outside_of_the_pool() {
        let mut a = addresses();
        let inside = Some("100.64.1.9".parse().unwrap());
        assert!(a.give_ipv4(HERE, GROUP, inside).unwrap().new_net.is_some());
        assert_eq!(a.give_ipv4(HERE, GROUP, inside), Err(PoolError::InUse));
        let outside: Ipv4Addr = "203.0.113.7".parse().unwrap();
        let given = a.give_ipv4(HERE, GROUP, Some(outside)).unwrap();
        assert_eq!(
            given.new_net.unwrap().net,
            "203.0.113.7/32".parse().unwrap()
        );
        assert_eq!(
            a.give_ipv4(HERE, GROUP, Some(outside)),
            Err(PoolError::InUse)
        );
        assert_eq!(a.take_ipv4(HERE, outside), given.new_net);
        assert!(a.give_ipv4(HERE, GROUP, Some(outside)).is_ok());
        assert!(
            a.give_ipv4(HERE, GROUP, Some("100.64.0.1".parse().unwrap()))
                .is_err(),
            "the gateway's own"
        );
    }
}
