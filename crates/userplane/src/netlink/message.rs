//! rtnetlink messages reduced to facts.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use crate::announcement::Announcement;

/// A fact about the kernel's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A link exists, with this state.
    Link(Link),
    /// The link with this index is gone.
    LinkGone(u32),
    /// An address was removed from a link. The kernel then drops routes silently (`fib_sync_down_addr`), so the tables have to be
    /// read again.
    AddressGone,
    /// A route exists.
    Route {
        /// The route.
        route: Route,
        /// Its position among routes with the same destination and [`RouteKey`].
        place: Place,
    },
    /// A route, or some of its next hops, is gone.
    RouteGone(Route),
    /// A next hop object exists (`ip nexthop`), with this content.
    NextHop(u32, NextHop),
    /// The next hop object with this id is gone. Routes that still used it vanished silently.
    NextHopGone(u32),
    /// A neighbour's state.
    Neighbour(Neighbour),
    /// A neighbour's entry is gone.
    NeighbourGone {
        /// The link.
        link: u32,
        /// Its address.
        address: IpAddr,
    },
}

/// A network device of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is administratively up.
    pub up: bool,
}

/// Key by which the kernel distinguishes routes to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKey {
    /// The local table wins over the main table (the kernel's default rules).
    pub local: bool,
    /// Priority; the smallest wins.
    pub metric: u32,
}

/// Position of a route among those with the same destination and [`RouteKey`]; the first one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the others.
    First,
    /// After the others.
    Last,
    /// In place of another one, which it replaces.
    Instead,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// Forward to one of the next hops.
    Forward,
    /// An address of this host, or a broadcast, anycast or multicast address.
    Local,
    /// Drop.
    Discard,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination.
    pub destination: IpNet,
    /// Distinguishes several routes to that destination.
    pub key: RouteKey,
    /// What happens to its packets.
    pub way: Way,
    /// Whether Sluice itself installed it.
    pub ours: bool,
}

impl Route {
    /// Subscriber prefix that a route of ours announces.
    pub fn announcement(&self) -> Announcement {
        Announcement::new(self.destination, Some(self.key.metric))
    }
}

/// What happens to packets of a route. Very many routes share a few different ways.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// What the route does.
    pub kind: RouteKind,
    /// The next hop object that it refers to. The object applies, whatever `hops` says.
    pub object: Option<u32>,
    /// Its next hops: more than one for a multipath route.
    pub hops: Vec<Hop>,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The link.
    pub link: u32,
    /// The router; `None` when the destination is on the link itself.
    pub gateway: Option<IpAddr>,
    /// Its share among the next hops of a route, at least 1.
    pub weight: u16,
}

/// A next hop object of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// One next hop.
    Hop(Hop),
    /// Several other objects, with their weights.
    Group(Vec<(u32, u16)>),
    /// Packets are dropped.
    Discard,
}

/// A neighbour on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The link.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address while the kernel considers it valid.
    pub mac: Option<[u8; 6]>,
    /// Whether the kernel wants it confirmed before further use.
    pub stale: bool,
}

/// The fact in a message about a link, an address or a neighbour; `None` if a user plane does not need it. For routes see
/// [`super::route`].
pub fn fact(message: &RouteNetlinkMessage) -> Option<Fact> {
    match message {
        RouteNetlinkMessage::NewLink(m) => link(m).map(Fact::Link),
        RouteNetlinkMessage::DelLink(m) => Some(Fact::LinkGone(m.header.index)),
        RouteNetlinkMessage::DelAddress(_) => Some(Fact::AddressGone),
        RouteNetlinkMessage::NewNeighbour(m) => neighbour(m).map(Fact::Neighbour),
        RouteNetlinkMessage::DelNeighbour(m) => neighbour(m).map(|n| Fact::NeighbourGone {
            link: n.link,
            address: n.address,
        }),
        _ => None,
    }
}

fn link(message: &LinkMessage) -> Option<Link> {
    // AF_BRIDGE messages about a bridge port use the same type.
    if message.header.interface_family != AddressFamily::Unspec {
        return None;
    }
    let name = message.attributes.iter().find_map(|a| match a {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })?;
    Some(Link {
        index: message.header.index,
        name,
        up: message.header.flags.contains(LinkFlags::Up),
    })
}

fn neighbour(message: &NeighbourMessage) -> Option<Neighbour> {
    let (mut address, mut mac) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => {
                address = Some(IpAddr::V4(*a));
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(a)) => {
                address = Some(IpAddr::V6(*a));
            }
            NeighbourAttribute::LinkLayerAddress(bytes) => mac = bytes.as_slice().try_into().ok(),
            _ => {}
        }
    }
    let address = address.filter(|a| !a.is_multicast())?;
    let usable = matches!(
        message.header.state,
        NeighbourState::Reachable
            | NeighbourState::Stale
            | NeighbourState::Delay
            | NeighbourState::Probe
            | NeighbourState::Permanent
    );
    Some(Neighbour {
        link: message.header.ifindex,
        address,
        mac: mac.filter(|_| usable),
        stale: message.header.state == NeighbourState::Stale,
    })
}
