//! What the kernel's routes and neighbours mean for the forwarding tables.
//!
//! [`Fib`] is one network instance's view: facts of the kernel go in (see
//! [`crate::netlink::message`]), [`Command`]s for the dataplane and requests for the
//! kernel come out. It performs no I/O, so a test or a simulator feeds it directly.
//!
//! How a kernel route is read:
//!
//! - The local table wins over the main table, then the smallest metric wins.
//! - An address of a TAP, of the instance's TUN or of `lo` is local; addresses of other
//!   interfaces (management) are not reachable through the packet path.
//! - A route through a core port's TAP becomes an adjacency on that port. Of a multipath
//!   route the first next hop that is usable is taken.
//! - A route through any other interface is discarded: subscribers never leave through
//!   the management network.
//! - A prefix that is on a core port's own link is *on-link*: each resolved neighbour has
//!   a host route, and a packet to an unresolved one makes the kernel resolve it.
//! - Subscriber nets (the PFCP peer's) are discarded where no session owns an address;
//!   the sessions' own host routes are more specific and not kept here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use crate::netlink::message::{Fact, Hop, Link, Neighbour, Route, RouteKind};

mod adjacency;
mod ledger;
mod shown;

use adjacency::Adjacency;
pub use ledger::Reading;
pub use shown::{ShownNeighbour, ShownRoute};

/// The index of a next hop on a link, as the dataplane knows it.
pub type AdjacencyId = u32;

/// The most next hops and neighbours that are kept; more are left unresolved and counted.
pub const MAX_ADJACENCIES: usize = 16_384;

/// Where packets for a prefix go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a neighbour on a core port.
    Adjacency(AdjacencyId),
    /// To a neighbour on this port that has yet to be resolved.
    OnLink(u16),
    /// To the gateway itself.
    Local,
    /// Nowhere.
    Discard,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Dataplane: packets for this prefix go there.
    SetRoute(IpNet, Target),
    /// Dataplane: nothing is known about this prefix any more.
    RemoveRoute(IpNet),
    /// Dataplane: this next hop is on this port and has this MAC (`None`: not resolved).
    SetAdjacency {
        /// Which one.
        id: AdjacencyId,
        /// The port.
        port: u16,
        /// Its MAC, when the kernel knows it.
        mac: Option<[u8; 6]>,
    },
    /// Dataplane: this next hop is not used by any route any more.
    RemoveAdjacency(AdjacencyId),
    /// Kernel: resolve or confirm this neighbour.
    UseNeighbour(u32, IpAddr),
    /// Kernel: announce this subscriber net.
    Export(IpNet),
    /// Kernel: take a route of ours back, from the link that it is on.
    Withdraw(IpNet, u32),
    /// The kernel changed its tables without telling how: read everything again.
    Resync,
}

/// The facts of one complete reading.
#[derive(Debug, Default)]
pub struct Snapshot {
    routes: BTreeMap<IpNet, Vec<Route>>,
    neighbours: HashMap<(u32, IpAddr), Neighbour>,
    loopback: Option<u32>,
    links: HashMap<u32, Link>,
    ours: BTreeSet<(IpNet, u32)>,
}

impl Snapshot {
    /// Adds a fact to the reading.
    pub fn add(&mut self, fact: Fact) {
        match fact {
            Fact::Link(link) => {
                if link.name == "lo" {
                    self.loopback = Some(link.index);
                }
                self.links.insert(link.index, link);
            }
            Fact::Route { route, .. } if route.ours => {
                self.ours
                    .extend(route.hops.iter().map(|hop| (route.destination, hop.link)));
            }
            Fact::Route { route, replace } => add_route(&mut self.routes, route, replace),
            Fact::Neighbour(n) => {
                self.neighbours.insert((n.link, n.address), n);
            }
            _ => {}
        }
    }
}

/// The routes and next hops of one network instance.
#[derive(Debug)]
pub struct Fib {
    /// The core ports by the link index of their TAP.
    ports: HashMap<u32, u16>,
    /// The instance's TUN.
    tun: u32,
    /// Those of our links that are administratively down.
    down: HashSet<u32>,
    kernel: Snapshot,
    /// Subscriber nets.
    nets: BTreeSet<IpNet>,
    /// Nets that an earlier run announced and nobody has asked for yet.
    kept: BTreeSet<IpNet>,
    /// What an earlier run announced is kept, so that routing does not notice a restart.
    keeping: bool,
    /// What the dataplane was told.
    installed: BTreeMap<IpNet, Target>,
    adjacencies: slab::Slab<Adjacency>,
    by_hop: HashMap<(u32, IpAddr), AdjacencyId>,
    commands: Vec<Command>,
    /// Next hops that found no room.
    pub adjacencies_refused: u64,
}

impl Fib {
    /// An empty view: `ports` are the core ports by the link index of their TAP, `tun` is
    /// the link index of the instance's TUN.
    pub fn new(ports: HashMap<u32, u16>, tun: u32) -> Self {
        Self {
            ports,
            tun,
            down: HashSet::new(),
            kernel: Snapshot::default(),
            nets: BTreeSet::new(),
            kept: BTreeSet::new(),
            keeping: true,
            installed: BTreeMap::new(),
            adjacencies: slab::Slab::new(),
            by_hop: HashMap::new(),
            commands: Vec::new(),
            adjacencies_refused: 0,
        }
    }

    /// A core port or subinterface has come: routes through its TAP lead there.
    pub fn add_port(&mut self, link: u32, port: u16) {
        self.ports.insert(link, port);
        self.refresh_link(link);
    }

    /// A core port or subinterface goes: routes through its TAP lead nowhere.
    pub fn remove_port(&mut self, link: u32) {
        self.ports.remove(&link);
        self.down.remove(&link);
        self.refresh_link(link);
        self.kernel.neighbours.retain(|(on, _), _| *on != link);
    }

    /// Works out anew what concerns a link.
    fn refresh_link(&mut self, link: u32) {
        let routes = self.kernel.routes.iter();
        let through = routes.filter(|(_, routes)| {
            let mut hops = routes.iter().flat_map(|route| &route.hops);
            hops.any(|hop| hop.link == link)
        });
        let mut prefixes: Vec<IpNet> = through.map(|(net, _)| *net).collect();
        let neighbours = self.kernel.neighbours.keys();
        let on_link = neighbours.filter(|(on, _)| *on == link);
        prefixes.extend(on_link.map(|(_, address)| host(*address)));
        prefixes.into_iter().for_each(|net| self.refresh(net));
    }

    /// The instance has another TUN: what is announced is announced there.
    pub fn move_tun(&mut self, tun: u32) {
        let old = std::mem::replace(&mut self.tun, tun);
        self.down.remove(&old);
        for link in [old, tun] {
            self.refresh_link(link);
        }
        let nets = self.nets.iter().chain(&self.kept);
        self.commands.extend(nets.map(|net| Command::Export(*net)));
    }

    /// The instance goes: nothing leads anywhere, and nothing is announced.
    pub fn clear(&mut self) {
        let nets: Vec<IpNet> = self.nets().collect();
        let withdrawn = nets.iter().map(|net| Command::Withdraw(*net, self.tun));
        self.commands.extend(withdrawn);
        self.nets.clear();
        self.kept.clear();
        self.kernel = Snapshot::default();
        let told: Vec<IpNet> = self.installed.keys().copied().collect();
        told.into_iter().for_each(|net| self.refresh(net));
    }

    /// Takes what is to be done since the last call.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Takes in a complete reading: whatever it lacks is gone.
    pub fn replace(&mut self, snapshot: Snapshot) {
        let old = std::mem::replace(&mut self.kernel, snapshot);
        let mut prefixes: HashSet<IpNet> = old.routes.into_keys().collect();
        prefixes.extend(self.kernel.routes.keys());
        prefixes.extend(old.neighbours.into_keys().map(|(_, address)| host(address)));
        prefixes.extend(
            self.kernel
                .neighbours
                .keys()
                .map(|&(_, address)| host(address)),
        );
        for id in self.by_hop.values().copied().collect::<Vec<_>>() {
            self.refresh_adjacency(id);
        }
        for prefix in prefixes {
            self.refresh(prefix);
        }
        let ours = std::mem::take(&mut self.kernel.ours);
        let kept = std::mem::take(&mut self.kept);
        for &(net, link) in &ours {
            if link == self.tun && self.nets.contains(&net) {
                continue;
            }
            if link == self.tun && self.keeping {
                self.kept.insert(net);
            } else {
                self.commands.push(Command::Withdraw(net, link));
            }
        }
        let changed: Vec<IpNet> = kept.symmetric_difference(&self.kept).copied().collect();
        changed.into_iter().for_each(|net| self.refresh(net));
        let missing = self
            .nets
            .iter()
            .filter(|net| !ours.contains(&(**net, self.tun)));
        self.commands
            .extend(missing.map(|net| Command::Export(*net)));
    }

    /// Takes in a change.
    pub fn apply(&mut self, fact: Fact) {
        match fact {
            // Routes go silently when a link goes down or an address goes: the kernel
            // flushes them (fib_disable_ip, fib_sync_down_addr) without RTM_DELROUTE.
            Fact::Link(link) if self.is_own(link.index) => {
                let changed = match link.up {
                    true => self.down.remove(&link.index),
                    false => self.down.insert(link.index),
                };
                if changed {
                    self.commands.push(Command::Resync);
                }
            }
            Fact::LinkGone(_) | Fact::AddressGone => self.commands.push(Command::Resync),
            Fact::Link(_) => {}
            Fact::Route { route, .. } if route.ours => {}
            Fact::RouteGone(route) if route.ours => {
                // Somebody else removed it, or the TUN went down.
                if self.nets.contains(&route.destination) {
                    self.commands.push(Command::Export(route.destination));
                } else if self.kept.remove(&route.destination) {
                    self.refresh(route.destination);
                }
            }
            Fact::Route { route, replace } => {
                let prefix = route.destination;
                add_route(&mut self.kernel.routes, route, replace);
                self.refresh(prefix);
            }
            Fact::RouteGone(route) => {
                remove_route(&mut self.kernel.routes, &route);
                self.refresh(route.destination);
            }
            Fact::Neighbour(neighbour) => {
                let key = (neighbour.link, neighbour.address);
                if !self.ports.contains_key(&key.0) {
                    return;
                }
                self.kernel.neighbours.insert(key, neighbour);
                self.refresh_neighbour(key);
            }
            Fact::NeighbourGone { link, address } => {
                self.kernel.neighbours.remove(&(link, address));
                self.refresh_neighbour((link, address));
            }
        }
    }

    /// Announces a subscriber net and discards what no session owns in it.
    pub fn add_net(&mut self, net: IpNet) {
        if self.nets.insert(net) {
            if !self.kept.remove(&net) {
                self.commands.push(Command::Export(net));
            }
            self.refresh(net);
        }
    }

    /// Withdraws what an earlier run announced and nobody has asked for since.
    pub fn end_keeping(&mut self) {
        self.keeping = false;
        for net in std::mem::take(&mut self.kept) {
            self.commands.push(Command::Withdraw(net, self.tun));
            self.refresh(net);
        }
    }

    /// Takes a subscriber net back.
    pub fn remove_net(&mut self, net: IpNet) {
        if self.nets.remove(&net) {
            self.commands.push(Command::Withdraw(net, self.tun));
            self.refresh(net);
        }
    }

    /// The subscriber nets that are announced.
    pub fn nets(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.nets.union(&self.kept).copied()
    }

    /// How many prefixes the dataplane was told.
    pub fn routes(&self) -> usize {
        self.installed.len()
    }

    fn is_own(&self, link: u32) -> bool {
        self.ports.contains_key(&link) || link == self.tun
    }

    fn refresh_neighbour(&mut self, key: (u32, IpAddr)) {
        if let Some(&id) = self.by_hop.get(&key) {
            self.refresh_adjacency(id);
        }
        self.refresh(host(key.1));
    }

    /// Brings what the dataplane was told about a prefix in line with what is true.
    fn refresh(&mut self, prefix: IpNet) {
        let desired = self.desired(prefix);
        let target = match desired {
            Desired::Nothing => None,
            Desired::Target(target) => Some(target),
            Desired::Via(link, address) => self.acquire(link, address).map(Target::Adjacency),
        };
        let old = match target {
            Some(target) => self.installed.insert(prefix, target),
            None => self.installed.remove(&prefix),
        };
        if old != target {
            self.commands.push(match target {
                Some(target) => Command::SetRoute(prefix, target),
                None => Command::RemoveRoute(prefix),
            });
        }
        // The old one is released last, so that one that stays is not made anew.
        if let Some(Target::Adjacency(id)) = old {
            self.release(id);
        }
    }

    fn desired(&self, prefix: IpNet) -> Desired {
        if let Some(routes) = self.kernel.routes.get(&prefix)
            && let Some(best) = routes.iter().min_by_key(|r| (!r.key.local, r.key.metric))
            && !is_link_scope(&prefix, best)
        {
            return self.meaning(best);
        }
        if self.nets.contains(&prefix) || self.kept.contains(&prefix) {
            return Desired::Target(Target::Discard);
        }
        if prefix.prefix_len() == prefix.max_prefix_len() {
            return self.resolved(prefix.addr());
        }
        Desired::Nothing
    }

    fn meaning(&self, route: &Route) -> Desired {
        let local = |hop: &Hop| {
            self.is_own(hop.link)
                || (self.kernel.loopback == Some(hop.link)
                    && !route.destination.addr().is_loopback())
        };
        match route.kind {
            RouteKind::Local if route.hops.iter().any(local) => Desired::Target(Target::Local),
            RouteKind::Local | RouteKind::Discard => Desired::Target(Target::Discard),
            RouteKind::Forward => {
                let hop = route
                    .hops
                    .iter()
                    .find(|hop| self.ports.contains_key(&hop.link));
                match hop {
                    Some(Hop {
                        link,
                        gateway: Some(gateway),
                    }) => Desired::Via(*link, *gateway),
                    // A host route on a link is a neighbour like any other.
                    Some(hop)
                        if route.destination.prefix_len() == route.destination.max_prefix_len() =>
                    {
                        Desired::Via(hop.link, route.destination.addr())
                    }
                    Some(hop) => Desired::Target(Target::OnLink(self.ports[&hop.link])),
                    None => Desired::Target(Target::Discard),
                }
            }
        }
    }

    /// The host route of a resolved neighbour. Link-local addresses have none: they mean
    /// something on their link only.
    fn resolved(&self, address: IpAddr) -> Desired {
        if matches!(address, IpAddr::V6(a) if a.is_unicast_link_local()) {
            return Desired::Nothing;
        }
        let links = self.ports.keys().filter(|&&link| {
            self.kernel
                .neighbours
                .get(&(link, address))
                .is_some_and(|n| n.mac.is_some())
        });
        links
            .min()
            .map_or(Desired::Nothing, |&link| Desired::Via(link, address))
    }
}

enum Desired {
    Nothing,
    Target(Target),
    Via(u32, IpAddr),
}

/// The prefix of one address.
fn host(address: IpAddr) -> IpNet {
    IpNet::from(address)
}

/// fe80::/64 and ff00::/8 exist once per link: the packet path treats them by what they
/// are, not by a lookup. Our own link-local addresses are local all the same.
fn is_link_scope(prefix: &IpNet, route: &Route) -> bool {
    const LINK_LOCAL: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10);
    match prefix {
        IpNet::V6(net) if net.addr().is_multicast() => true,
        IpNet::V6(net) => LINK_LOCAL.contains(net) && route.kind == RouteKind::Forward,
        IpNet::V4(net) => net.addr().is_multicast(),
    }
}

fn add_route(routes: &mut BTreeMap<IpNet, Vec<Route>>, route: Route, replace: bool) {
    let list = routes.entry(route.destination).or_default();
    if replace {
        list.retain(|r| r.key != route.key);
    }
    if !list.contains(&route) {
        list.push(route);
    }
}

/// IPv6 removes the next hops of a multipath route one by one, IPv4 whole routes.
fn remove_route(routes: &mut BTreeMap<IpNet, Vec<Route>>, gone: &Route) {
    let Some(list) = routes.get_mut(&gone.destination) else {
        return;
    };
    for route in list
        .iter_mut()
        .filter(|r| r.key == gone.key && r.kind == gone.kind)
    {
        route.hops.retain(|hop| !gone.hops.contains(hop));
    }
    list.retain(|r| r.key != gone.key || r.kind != gone.kind || !r.hops.is_empty());
    if list.is_empty() {
        routes.remove(&gone.destination);
    }
}

#[cfg(test)]
mod tests;
