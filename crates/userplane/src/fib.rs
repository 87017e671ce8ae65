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
//! - A route through a core port's TAP becomes an adjacency on that port; one by several
//!   routers on core ports a group of adjacencies, which has a router the more often the
//!   larger its weight is.
//! - A route that refers to a next hop object goes where the object leads now. (FRR gives
//!   all of its routes such objects.)
//! - Next hops are on a link: the kernel takes no router that it would need another route
//!   to reach, and routing daemons resolve theirs (BGP's) before they tell the kernel.
//! - A route through any other interface is discarded: subscribers never leave through
//!   the management network.
//! - A prefix that is on a core port's own link is *on-link*: each resolved neighbour has
//!   a host route, and a packet to an unresolved one makes the kernel resolve it.
//! - Subscriber nets (the PFCP peer's) are discarded where no session owns an address;
//!   the sessions' own host routes are more specific and not kept here.
//!
//! A change that concerns one prefix is worked out at once. What may concern all of them, a
//! new reading of the kernel's tables above all, is worked out portion by portion
//! ([`Fib::sweep`]), so that a full table keeps nobody waiting.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use crate::netlink::message::{Fact, RouteKind, Way};

mod adjacency;
mod group;
mod ledger;
mod mirror;
mod shown;

use adjacency::Adjacency;
use group::Groups;
pub use group::{GroupId, MAX_GROUPS, MAX_WAYS};
pub use ledger::{Meaning, Reading};
pub use mirror::Snapshot;
pub use shown::{ShownHop, ShownNeighbour, ShownRoute};

/// The index of a next hop on a link, as the dataplane knows it.
pub type AdjacencyId = u32;

/// The most next hops and neighbours that are kept; more are left unresolved and counted.
pub const MAX_ADJACENCIES: usize = 16_384;

/// Where packets for a prefix go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a neighbour on a core port.
    Adjacency(AdjacencyId),
    /// To one of the neighbours of a group, each flow always to the same.
    Group(GroupId),
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
    /// Dataplane: a new group spreads flows among these next hops, of which one that is named n times has n shares.
    SetGroup(GroupId, Vec<AdjacencyId>),
    /// Dataplane: this group is not used by any route any more.
    RemoveGroup(GroupId),
    /// Kernel: resolve or confirm this neighbour.
    UseNeighbour(u32, IpAddr),
    /// Kernel: announce this subscriber net.
    Export(IpNet),
    /// Kernel: take a route of ours back, from the link that it is on.
    Withdraw(IpNet, u32),
    /// The kernel changed its tables without telling how: read everything again.
    Resync,
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
    groups: Groups,
    /// Everything behind this prefix is to be worked out anew, or everything at all.
    sweep: Option<Option<IpNet>>,
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
            groups: Groups::default(),
            sweep: None,
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
        let mut prefixes = self.kernel.through(link);
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

    /// Takes in a complete reading: whatever it lacks is gone. What it means for routes, [`Fib::sweep`] works out.
    pub fn replace(&mut self, snapshot: Snapshot) {
        let old = std::mem::replace(&mut self.kernel, snapshot);
        let known = old.neighbours.keys().chain(self.kernel.neighbours.keys());
        let hosts: HashSet<IpNet> = known.map(|(_, address)| host(*address)).collect();
        for id in self.by_hop.values().copied().collect::<Vec<_>>() {
            self.refresh_adjacency(id);
        }
        hosts.into_iter().for_each(|net| self.refresh(net));
        self.sweep = Some(None);
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

    /// Works out anew what the next prefixes come to, at most this many, if everything is to be. Whether that goes on.
    pub fn sweep(&mut self, most: usize) -> bool {
        let Some(after) = self.sweep.take() else {
            return false;
        };
        let portion = self.prefixes_behind(after, most);
        if portion.len() == most {
            self.sweep = Some(portion.last().copied());
        }
        portion.into_iter().for_each(|net| self.refresh(net));
        self.sweep.is_some()
    }

    /// The next prefixes that the kernel has routes to or the dataplane was told of.
    fn prefixes_behind(&self, after: Option<IpNet>, most: usize) -> Vec<IpNet> {
        let routes = self.kernel.routes.prefixes(after);
        let told = self.installed_between(after, None);
        either(routes, told).take(most).collect()
    }

    /// Whether [`Fib::sweep`] has something to do.
    pub fn is_sweeping(&self) -> bool {
        self.sweep.is_some()
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
            Fact::Route { route, place } => {
                let prefix = route.destination;
                self.kernel.routes.add(route, place);
                self.refresh(prefix);
            }
            Fact::RouteGone(route) => {
                self.kernel.routes.remove(&route);
                self.refresh(route.destination);
            }
            Fact::NextHop(id, what) => {
                let old = self.kernel.objects.insert(id, what);
                if old.as_ref() != self.kernel.objects.get(&id) && self.kernel.uses(id) {
                    self.sweep = Some(None);
                }
            }
            // The kernel flushes the routes that had it (fib_flush) without RTM_DELROUTE.
            Fact::NextHopGone(id) => {
                if self.kernel.uses(id) {
                    self.commands.push(Command::Resync);
                }
                self.kernel.objects.remove(&id);
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
            Desired::Spread(hops) => self.acquire_any(&hops),
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
        match old {
            Some(Target::Adjacency(id)) => self.release(id),
            Some(Target::Group(id)) => self.release_group(id),
            _ => {}
        }
    }

    fn desired(&self, prefix: IpNet) -> Desired {
        if let Some(way) = self.kernel.routes.best(&prefix)
            && !is_link_scope(&prefix, way)
        {
            return self.meaning(prefix, way);
        }
        if self.nets.contains(&prefix) || self.kept.contains(&prefix) {
            return Desired::Target(Target::Discard);
        }
        if is_host(&prefix) {
            return self.resolved(prefix.addr());
        }
        Desired::Nothing
    }

    fn meaning(&self, prefix: IpNet, way: &Way) -> Desired {
        let (kind, hops) = self.kernel.resolved(way);
        let local = |link: u32| {
            self.is_own(link)
                || (self.kernel.loopback == Some(link) && !prefix.addr().is_loopback())
        };
        match kind {
            RouteKind::Local if hops.iter().any(|hop| local(hop.link)) => {
                Desired::Target(Target::Local)
            }
            RouteKind::Local | RouteKind::Discard => Desired::Target(Target::Discard),
            RouteKind::Forward => {
                let usable = hops.iter().filter(|hop| self.ports.contains_key(&hop.link));
                let routers = usable.clone();
                let routers =
                    routers.filter_map(|hop| Some(((hop.link, hop.gateway?), hop.weight)));
                let routers: Vec<_> = routers.collect();
                match (&routers[..], usable.map(|hop| hop.link).next()) {
                    ([((link, router), _)], _) => Desired::Via(*link, *router),
                    ([_, ..], _) => Desired::Spread(routers),
                    // A host route on a link is a neighbour like any other.
                    ([], Some(link)) if is_host(&prefix) => Desired::Via(link, prefix.addr()),
                    ([], Some(link)) => Desired::Target(Target::OnLink(self.ports[&link])),
                    ([], None) => Desired::Target(Target::Discard),
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
    /// Routers by their links, with their weights.
    Spread(Vec<((u32, IpAddr), u16)>),
}

fn is_host(prefix: &IpNet) -> bool {
    prefix.prefix_len() == prefix.max_prefix_len()
}

/// What two have that are in order, in order, and each once.
fn either(
    some: impl Iterator<Item = IpNet>,
    others: impl Iterator<Item = IpNet>,
) -> impl Iterator<Item = IpNet> {
    let (mut some, mut others) = (some.peekable(), others.peekable());
    std::iter::from_fn(move || match (some.peek(), others.peek()) {
        (Some(one), Some(other)) if one == other => {
            others.next();
            some.next()
        }
        (Some(one), Some(other)) if other < one => others.next(),
        (Some(_), _) => some.next(),
        (None, _) => others.next(),
    })
}

/// The prefix of one address.
fn host(address: IpAddr) -> IpNet {
    IpNet::from(address)
}

/// fe80::/64 and ff00::/8 exist once per link: the packet path treats them by what they
/// are, not by a lookup. Our own link-local addresses are local all the same.
fn is_link_scope(prefix: &IpNet, way: &Way) -> bool {
    const LINK_LOCAL: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10);
    match prefix {
        IpNet::V6(net) if net.addr().is_multicast() => true,
        IpNet::V6(net) => LINK_LOCAL.contains(net) && way.kind == RouteKind::Forward,
        IpNet::V4(net) => net.addr().is_multicast(),
    }
}

#[cfg(test)]
mod tests;
