//! Next hops on the core ports' links. The kernel resolves them; each exists for as long as a prefix uses it.

use std::net::IpAddr;
use std::time::Duration;

use super::{AdjacencyId, Command, Fib, MAX_ADJACENCIES};

#[derive(Debug)]
pub(super) struct Adjacency {
    pub(super) hop: (u32, IpAddr),
    /// Prefixes and groups that use it.
    pub(super) users: usize,
    /// MAC address that the dataplane has.
    pub(super) mac: Option<[u8; 6]>,
}

impl Fib {
    /// Handles a miss: the dataplane had a packet for a next hop without a MAC address.
    pub fn adjacency_missing(&mut self, id: AdjacencyId) {
        if let Some(adjacency) = self.adjacencies.get(id as usize) {
            let (link, address) = adjacency.hop;
            self.commands.push(Command::UseNeighbour(link, address));
        }
    }

    /// Handles a miss: the dataplane had a packet for an address on a core port's own link. `now` is monotonic; requests have a rate limit.
    pub fn neighbour_missing(&mut self, port: u16, address: IpAddr, now: Duration) {
        let Some((&link, _)) = self.ports.iter().find(|(_, p)| **p == port) else {
            return;
        };
        match self.requests.take(now) {
            true => self.commands.push(Command::UseNeighbour(link, address)),
            false => self.requests_limited += 1,
        }
    }

    /// Confirms a next hop that the dataplane used since the last query. The kernel sees none of that traffic and would let the
    /// neighbour expire.
    pub fn adjacency_used(&mut self, id: AdjacencyId) {
        let Some(adjacency) = self.adjacencies.get(id as usize) else {
            return;
        };
        let (link, address) = adjacency.hop;
        if self
            .kernel
            .neighbours
            .get(&adjacency.hop)
            .is_none_or(|n| n.stale)
        {
            self.commands.push(Command::UseNeighbour(link, address));
        }
    }

    pub(super) fn refresh_adjacency(&mut self, id: AdjacencyId) {
        let Some(adjacency) = self.adjacencies.get_mut(id as usize) else {
            return;
        };
        let (link, _) = adjacency.hop;
        let mac = self
            .kernel
            .neighbours
            .get(&adjacency.hop)
            .and_then(|n| n.mac);
        let Some(&port) = self.ports.get(&link) else {
            return;
        };
        if adjacency.mac != mac {
            adjacency.mac = mac;
            self.commands.push(Command::SetAdjacency { id, port, mac });
        }
    }

    pub(super) fn acquire(&mut self, link: u32, address: IpAddr) -> Option<AdjacencyId> {
        if let Some(&id) = self.by_hop.get(&(link, address)) {
            self.adjacencies[id as usize].users += 1;
            return Some(id);
        }
        if self.adjacencies.len() >= MAX_ADJACENCIES {
            self.adjacencies_refused += 1;
            return None;
        }
        let mac = self
            .kernel
            .neighbours
            .get(&(link, address))
            .and_then(|n| n.mac);
        let id = self.adjacencies.insert(Adjacency {
            hop: (link, address),
            users: 1,
            mac,
        });
        let id = id as AdjacencyId;
        self.by_hop.insert((link, address), id);
        let port = self.ports[&link];
        self.commands.push(Command::SetAdjacency { id, port, mac });
        if mac.is_none() {
            // Resolves it before the first packet needs it.
            self.commands.push(Command::UseNeighbour(link, address));
        }
        Some(id)
    }

    pub(super) fn release(&mut self, id: AdjacencyId) {
        let adjacency = &mut self.adjacencies[id as usize];
        adjacency.users -= 1;
        if adjacency.users == 0 {
            let hop = adjacency.hop;
            self.by_hop.remove(&hop);
            self.adjacencies.remove(id as usize);
            self.commands.push(Command::RemoveAdjacency(id));
        }
    }
}
