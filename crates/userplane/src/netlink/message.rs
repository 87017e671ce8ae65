//! rtnetlink messages reduced to facts.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

/// A fact about the kernel's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A link exists, with this state.
    Link(Link),
    /// The link with this index is gone.
    LinkGone(u32),
    /// An address was taken away from a link. The kernel then drops routes silently
    /// (`fib_sync_down_addr`), so the tables have to be read again.
    AddressGone,
    /// A route exists.
    Route {
        /// The route.
        route: Route,
        /// Where it is among those with the same destination and [`RouteKey`].
        place: Place,
    },
    /// A route, or some of its next hops, is gone.
    RouteGone(Route),
    /// A next hop object exists and is this (`ip nexthop`).
    NextHop(u32, NextHop),
    /// The next hop object with this id is gone. Routes that still had it went silently.
    NextHopGone(u32),
    /// A neighbour's state.
    Neighbour(Neighbour),
    /// A neighbour's entry is gone.
    NeighbourGone {
        /// The link that it was on.
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

/// What the kernel tells routes to one destination apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKey {
    /// The local table wins over the main table (the kernel's default rules).
    pub local: bool,
    /// Priority; the smallest wins.
    pub metric: u32,
}

/// Where a route is among those with the same destination and [`RouteKey`]; the first one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the others.
    First,
    /// Behind the others.
    Last,
    /// Where another one was, which it replaces.
    Instead,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// Send to one of the next hops.
    Forward,
    /// An address of this host, or a broadcast, anycast or multicast address.
    Local,
    /// Drop.
    Discard,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where to.
    pub destination: IpNet,
    /// Which one of several for that destination.
    pub key: RouteKey,
    /// What becomes of packets.
    pub way: Way,
    /// Whether Sluice itself put it there.
    pub ours: bool,
}

/// What becomes of packets of a route. Very many routes have few different ways.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// What the route does.
    pub kind: RouteKind,
    /// The next hop object that it refers to. What that is counts, whatever `hops` says.
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
    /// Its MAC address while the kernel holds it for good.
    pub mac: Option<[u8; 6]>,
    /// Whether the kernel wants it confirmed before it goes on being used.
    pub stale: bool,
}

/// The fact in a message about a link, an address or a neighbour; `None` when it says nothing that a user plane needs.
/// For routes see [`super::route`].
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
    // AF_BRIDGE messages about a port of a bridge use the same type.
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
