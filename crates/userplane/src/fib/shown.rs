//! Routes and neighbours for display.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Bound;

use ipnet::IpNet;

use super::{AdjacencyId, Fib, Target};

/// Route that the dataplane has.
#[derive(Debug, PartialEq, Eq)]
pub struct ShownRoute {
    /// Its prefix.
    pub net: IpNet,
    /// Its target.
    pub target: Target,
    /// Whether it is a subscriber prefix.
    pub subscribers: bool,
    /// Neighbours that it leads to.
    pub hops: Vec<ShownHop>,
}

/// Neighbour that a route leads to.
#[derive(Debug, PartialEq, Eq)]
pub struct ShownHop {
    /// The link index of the port's TAP.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address, if known.
    pub mac: Option<[u8; 6]>,
}

/// Neighbour on a core port's link.
#[derive(Debug, PartialEq, Eq)]
pub struct ShownNeighbour {
    /// The link index of the port's TAP.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address, if known.
    pub mac: Option<[u8; 6]>,
    /// Whether the kernel wants it confirmed at its next use.
    pub stale: bool,
    /// Number of routes that lead to it.
    pub routes: usize,
}

impl Fib {
    /// Routes after a given one, or from the first on, sorted by prefix.
    pub fn shown_routes(&self, after: Option<IpNet>) -> impl Iterator<Item = ShownRoute> + '_ {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let routes = self.installed.range((from, Bound::Unbounded));
        routes.map(|(&net, &target)| ShownRoute {
            net,
            target,
            subscribers: target == Target::Discard && self.announces(net),
            hops: match target {
                Target::Adjacency(id) => self.shown_hop(id).into_iter().collect(),
                Target::Group(id) => {
                    let members: BTreeSet<_> = self.groups.members(id).iter().copied().collect();
                    let mut hops: Vec<ShownHop> = members
                        .into_iter()
                        .filter_map(|id| self.shown_hop(id))
                        .collect();
                    hops.sort_unstable_by_key(|hop| (hop.address, hop.link));
                    hops
                }
                _ => Vec::new(),
            },
        })
    }

    /// Neighbours that the kernel knows on the core ports' links, and those that routes lead to.
    pub fn shown_neighbours(&self) -> impl Iterator<Item = ShownNeighbour> + '_ {
        let known = self.kernel.neighbours.keys();
        let known = known.filter(|(link, _)| self.ports.contains_key(link));
        let all: BTreeSet<(u32, IpAddr)> = known.chain(self.by_hop.keys()).copied().collect();
        all.into_iter().map(|hop| self.shown_neighbour(hop))
    }

    fn shown_hop(&self, id: AdjacencyId) -> Option<ShownHop> {
        let adjacency = self.adjacencies.get(id as usize)?;
        let (link, address) = adjacency.hop;
        let mac = adjacency.mac;
        Some(ShownHop { link, address, mac })
    }

    fn shown_neighbour(&self, hop: (u32, IpAddr)) -> ShownNeighbour {
        let known = self.kernel.neighbours.get(&hop);
        let routes = self.by_hop.get(&hop).map_or(0, |&id| {
            let (groups, routes) = self.groups.of(id);
            self.adjacencies[id as usize].users - groups + routes
        });
        ShownNeighbour {
            link: hop.0,
            address: hop.1,
            mac: known.and_then(|known| known.mac),
            stale: known.is_some_and(|known| known.stale),
            routes,
        }
    }
}
