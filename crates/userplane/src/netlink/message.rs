//! rtnetlink messages reduced to facts.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::NetlinkHeader;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteType,
    RouteVia,
};

use super::PROTO_SLUICE;

/// The table of addresses that are our own (`ip route show table local`).
pub const TABLE_LOCAL: u32 = 255;
/// The table that ordinary routes live in.
pub const TABLE_MAIN: u32 = 254;

const NLM_F_REPLACE: u16 = 0x100;

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
    /// A route exists; `replace` when it took the place of the one with its key.
    Route {
        /// The route.
        route: Route,
        /// Whether it replaces the routes with the same [`RouteKey`].
        replace: bool,
    },
    /// A route, or some of its next hops, is gone.
    RouteGone(Route),
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

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// What it does.
    pub kind: RouteKind,
    /// Its next hops: more than one for a multipath route.
    pub hops: Vec<Hop>,
    /// Whether Sluice itself put it there.
    pub ours: bool,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The link.
    pub link: u32,
    /// The router; `None` when the destination is on the link itself.
    pub gateway: Option<IpAddr>,
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

/// The fact in a message; `None` when it says nothing that a user plane needs.
pub fn fact(header: &NetlinkHeader, message: &RouteNetlinkMessage) -> Option<Fact> {
    match message {
        RouteNetlinkMessage::NewLink(m) => link(m).map(Fact::Link),
        RouteNetlinkMessage::DelLink(m) => Some(Fact::LinkGone(m.header.index)),
        RouteNetlinkMessage::DelAddress(_) => Some(Fact::AddressGone),
        RouteNetlinkMessage::NewRoute(m) => route(m).map(|route| {
            // IPv6 always tells the whole route with all its next hops
            // (rt6_fill_node); for IPv4 only the flag tells an addition from a change.
            let replace = route.destination.addr().is_ipv6() || header.flags & NLM_F_REPLACE != 0;
            Fact::Route { route, replace }
        }),
        RouteNetlinkMessage::DelRoute(m) => route(m).map(Fact::RouteGone),
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

fn route(message: &RouteMessage) -> Option<Route> {
    let header = &message.header;
    let mut table = u32::from(header.table);
    let mut destination = match header.address_family {
        AddressFamily::Inet => IpAddr::from([0; 4]),
        AddressFamily::Inet6 => IpAddr::from([0; 16]),
        _ => return None,
    };
    let (mut metric, mut link, mut gateway, mut hops) = (0, None, None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(t) => table = *t,
            RouteAttribute::Destination(a) => destination = ip(a)?,
            RouteAttribute::Priority(m) => metric = *m,
            RouteAttribute::Oif(i) => link = Some(*i),
            RouteAttribute::Gateway(a) => gateway = ip(a),
            RouteAttribute::Via(v) => gateway = via(v),
            RouteAttribute::MultiPath(list) => hops = list.iter().filter_map(hop).collect(),
            // A cached exception (PMTU, redirect) of IPv6 is no route.
            RouteAttribute::CacheInfo(_) | RouteAttribute::Metrics(_) => {}
            _ => {}
        }
    }
    let cloned = netlink_packet_route::route::RouteFlags::Cloned;
    if !matches!(table, TABLE_LOCAL | TABLE_MAIN)
        || header.source_prefix_length != 0
        || header.flags.contains(cloned)
    {
        return None;
    }
    if let (true, Some(link)) = (hops.is_empty(), link) {
        hops.push(Hop { link, gateway });
    }
    let kind = match header.kind {
        RouteType::Unicast => RouteKind::Forward,
        RouteType::Local | RouteType::Broadcast | RouteType::Anycast | RouteType::Multicast => {
            RouteKind::Local
        }
        RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit => RouteKind::Discard,
        _ => return None,
    };
    Some(Route {
        destination: IpNet::new(destination, header.destination_prefix_length)
            .ok()?
            .trunc(),
        key: RouteKey {
            local: table == TABLE_LOCAL,
            metric,
        },
        kind,
        hops,
        ours: u8::from(header.protocol) == PROTO_SLUICE,
    })
}

fn hop(next: &RouteNextHop) -> Option<Hop> {
    if next.flags.contains(RouteNextHopFlags::Dead) {
        return None;
    }
    let gateway = next.attributes.iter().find_map(|a| match a {
        RouteAttribute::Gateway(a) => ip(a),
        RouteAttribute::Via(v) => via(v),
        _ => None,
    });
    Some(Hop {
        link: next.interface_index,
        gateway,
    })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(a) => Some(IpAddr::V4(*a)),
        RouteAddress::Inet6(a) => Some(IpAddr::V6(*a)),
        _ => None,
    }
}

/// An IPv4 route may go by an IPv6 router (RFC 8950).
fn via(via: &RouteVia) -> Option<IpAddr> {
    match via {
        RouteVia::Inet(a) => Some(IpAddr::V4(*a)),
        RouteVia::Inet6(a) => Some(IpAddr::V6(*a)),
        _ => None,
    }
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
