//! Forwarding tables derived from the kernel's routes and neighbours.
//!
//! [`Fib`] is the view of one network instance. Inputs: facts of the kernel (see [`crate::netlink::message`]). Outputs:
//! [`Command`]s for the dataplane and requests for the kernel. It performs no I/O, so a test or a simulator can drive it
//! directly.
//!
//! A kernel route is read as follows:
//!
//! - The local table wins over the main table, then the smallest metric wins.
//! - An address of a TAP, of the instance's TUN or of `lo` is local; addresses of other
//!   interfaces (management) are not reachable through the packet path.
//! - A route through a core port's TAP becomes an adjacency on that port. A route by several routers on core ports becomes a
//!   group of adjacencies, in which each router has a share by its weight.
//! - A route that refers to a next hop object follows the object. (FRR gives all of its routes such objects.)
//! - Next hops are on a link. The kernel takes no router that it would need another route to reach, and routing daemons resolve
//!   theirs (BGP's) before they install them.
//! - A route through any other interface is discarded: subscribers never leave through
//!   the management network.
//! - A prefix that is on a core port's own link is *on-link*: each resolved neighbour has
//!   a host route, and a packet to an unresolved one makes the kernel resolve it.
//! - Subscriber prefixes (from PFCP) are discarded where no session owns an address. The sessions' own host routes are more
//!   specific and not kept here.
//!
//! A change that concerns one prefix is handled at once. A change that may concern all of them, such as a new reading of the
//! kernel's tables, is handled in portions ([`Fib::sweep`]), so that a full table does not block other work.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use crate::announcement::Announcement;
use crate::bucket::Bucket;
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

/// Index of a next hop on a link in the dataplane.
pub type AdjacencyId = u32;

/// Maximum number of next hops and neighbours. Further ones stay unresolved and are counted.
pub const MAX_ADJACENCIES: usize = 16_384;

/// Requests to resolve neighbours on connected nets: rate per second, and burst. The kernel's neighbour table has 1,024 entries for each
/// family by default, and removes unresolved ones after 15 to 30 s. A full table loses resolved routers as well. Requests for next hops of
/// routes are not limited.
const REQUEST_RATE: u32 = 20;
const REQUEST_BURST: u32 = 256;

/// Where packets for a prefix go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a neighbour on a core port.
    Adjacency(AdjacencyId),
    /// To the neighbours of a group; all packets of a flow go to the same one.
    Group(GroupId),
    /// To a neighbour on this port that has yet to be resolved.
    OnLink(u16),
    /// To the gateway itself.
    Local,
    /// Nowhere.
    Discard,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Dataplane: packets for this prefix go there.
    SetRoute(IpNet, Target),
    /// Dataplane: remove the route of this prefix.
    RemoveRoute(IpNet),
    /// Dataplane: this next hop is on this port and has this MAC (`None`: not resolved).
    SetAdjacency {
        /// The next hop.
        id: AdjacencyId,
        /// The port.
        port: u16,
        /// Its MAC, if the kernel knows it.
        mac: Option<[u8; 6]>,
    },
    /// Dataplane: remove this next hop; no route uses it any more.
    RemoveAdjacency(AdjacencyId),
    /// Dataplane: a new group spreads flows among these next hops. A next hop that is named n times has n shares.
    SetGroup(GroupId, Vec<AdjacencyId>),
    /// Dataplane: remove this group; no route uses it any more.
    RemoveGroup(GroupId),
    /// Kernel: resolve or confirm this neighbour.
    UseNeighbour(u32, IpAddr),
    /// Kernel: announce this subscriber prefix.
    Export(Announcement),
    /// Kernel: withdraw a route of ours from this link.
    Withdraw(Announcement, u32),
    /// The kernel changed its tables without notice: read everything again.
    Resync,
}

/// Routes and next hops of one network instance.
#[derive(Debug)]
pub struct Fib {
    /// Core ports by the link index of their TAP.
    ports: HashMap<u32, u16>,
    /// The instance's TUN.
    tun: u32,
    /// Our links that are administratively down.
    down: HashSet<u32>,
    kernel: Snapshot,
    /// Subscriber prefixes.
    nets: BTreeSet<Announcement>,
    /// Prefixes that an earlier run announced and no session has announced again yet.
    kept: BTreeSet<Announcement>,
    /// Whether announcements of an earlier run are kept, so that routing does not notice a restart.
    keeping: bool,
    /// Routes that the dataplane has.
    installed: BTreeMap<IpNet, Target>,
    adjacencies: slab::Slab<Adjacency>,
    by_hop: HashMap<(u32, IpAddr), AdjacencyId>,
    groups: Groups,
    /// Prefixes that [`Fib::sweep`] has to handle: those after this one; `Some(None)` means all.
    sweep: Option<Option<IpNet>>,
    commands: Vec<Command>,
    /// Next hops rejected for lack of room.
    pub adjacencies_refused: u64,
    /// Limits requests to resolve neighbours on connected nets.
    requests: Bucket,
    /// Requests above this limit.
    pub requests_limited: u64,
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
            requests: Bucket::full(REQUEST_RATE, REQUEST_BURST),
            requests_limited: 0,
        }
    }

    /// Adds a core port or subinterface: routes through its TAP lead there.
    pub fn add_port(&mut self, link: u32, port: u16) {
        self.ports.insert(link, port);
        self.refresh_link(link);
    }

    /// Removes a core port or subinterface: routes through its TAP lead nowhere.
    pub fn remove_port(&mut self, link: u32) {
        self.ports.remove(&link);
        self.down.remove(&link);
        self.refresh_link(link);
        self.kernel.neighbours.retain(|(on, _), _| *on != link);
    }

    /// Updates everything that concerns a link.
    fn refresh_link(&mut self, link: u32) {
        let mut prefixes = self.kernel.through(link);
        let neighbours = self.kernel.neighbours.keys();
        let on_link = neighbours.filter(|(on, _)| *on == link);
        prefixes.extend(on_link.map(|(_, address)| host(*address)));
        prefixes.into_iter().for_each(|net| self.refresh(net));
    }

    /// Changes the instance's TUN: prefixes are announced there.
    pub fn move_tun(&mut self, tun: u32) {
        let old = std::mem::replace(&mut self.tun, tun);
        self.down.remove(&old);
        for link in [old, tun] {
            self.refresh_link(link);
        }
        let nets = self.nets.iter().chain(&self.kept);
        self.commands.extend(nets.map(|net| Command::Export(*net)));
    }

    /// Clears the instance: removes all routes and announcements.
    pub fn clear(&mut self) {
        let nets: Vec<Announcement> = self.nets().collect();
        let withdrawn = nets.iter().map(|net| Command::Withdraw(*net, self.tun));
        self.commands.extend(withdrawn);
        self.nets.clear();
        self.kept.clear();
        self.kernel = Snapshot::default();
        let told: Vec<IpNet> = self.installed.keys().copied().collect();
        told.into_iter().for_each(|net| self.refresh(net));
    }

    /// Takes the commands since the last call.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Replaces the kernel's state by a complete reading. [`Fib::sweep`] updates the routes.
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
        let changed = kept.symmetric_difference(&self.kept);
        let changed: Vec<IpNet> = changed.map(|announced| announced.net).collect();
        changed.into_iter().for_each(|net| self.refresh(net));
        let missing = self
            .nets
            .iter()
            .filter(|net| !ours.contains(&(**net, self.tun)));
        self.commands
            .extend(missing.map(|net| Command::Export(*net)));
    }

    /// Updates the next prefixes, at most `most`, if a sweep is under way. Returns whether more are left.
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

    /// The next prefixes that the kernel or the dataplane has routes to.
    fn prefixes_behind(&self, after: Option<IpNet>, most: usize) -> Vec<IpNet> {
        let routes = self.kernel.routes.prefixes(after);
        let told = self.installed_between(after, None);
        either(routes, told).take(most).collect()
    }

    /// Whether [`Fib::sweep`] has work left.
    pub fn is_sweeping(&self) -> bool {
        self.sweep.is_some()
    }

    /// Handles a change of the kernel's tables.
    pub fn apply(&mut self, fact: Fact) {
        match fact {
            // Routes vanish silently when a link goes down or an address is removed: the kernel flushes them (fib_disable_ip,
            // fib_sync_down_addr) without RTM_DELROUTE.
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
                // Another process removed it, or the TUN went down.
                let announced = route.announcement();
                if self.nets.contains(&announced) {
                    self.commands.push(Command::Export(announced));
                } else if self.kept.remove(&announced) {
                    self.refresh(announced.net);
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
            // The kernel flushes the routes that used it (fib_flush) without RTM_DELROUTE.
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

    /// Announces a subscriber prefix, and discards packets for its addresses without a session.
    pub fn add_net(&mut self, net: impl Into<Announcement>) {
        let net = net.into();
        if self.nets.insert(net) {
            if !self.kept.remove(&net) {
                self.commands.push(Command::Export(net));
            }
            self.refresh(net.net);
        }
    }

    /// Withdraws what an earlier run announced and no session has announced again.
    pub fn end_keeping(&mut self) {
        self.keeping = false;
        for net in std::mem::take(&mut self.kept) {
            self.commands.push(Command::Withdraw(net, self.tun));
            self.refresh(net.net);
        }
    }

    /// Withdraws a subscriber prefix.
    pub fn remove_net(&mut self, net: impl Into<Announcement>) {
        let net = net.into();
        if self.nets.remove(&net) {
            self.commands.push(Command::Withdraw(net, self.tun));
            self.refresh(net.net);
        }
    }

    /// Subscriber prefixes that are announced.
    pub fn nets(&self) -> impl Iterator<Item = Announcement> + '_ {
        self.nets.union(&self.kept).copied()
    }

    /// Whether a prefix is announced, with whatever metric.
    fn announces(&self, net: IpNet) -> bool {
        let announced = |metric| Announcement { net, metric };
        let all = announced(0)..=announced(u32::MAX);
        let is_in = |nets: &BTreeSet<Announcement>| nets.range(all.clone()).next().is_some();
        is_in(&self.nets) || is_in(&self.kept)
    }

    /// Number of routes that the dataplane has.
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

    /// Updates the dataplane's route of a prefix.
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
        // The old target is released last, so that a target that stays is not created again.
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
        if self.announces(prefix) {
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

    /// Host route of a resolved neighbour. Link-local addresses have none: they are valid on their link only.
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

/// Merges two sorted iterators, without duplicates.
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

/// Host prefix of an address.
fn host(address: IpAddr) -> IpNet {
    IpNet::from(address)
}

/// fe80::/64 and ff00::/8 exist once per link: the packet path recognizes them without a lookup. Our own link-local addresses are
/// local nevertheless.
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
