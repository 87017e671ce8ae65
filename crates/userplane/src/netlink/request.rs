//! Messages that we send to the kernel.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::PROTO_SLUICE;
use super::route::TABLE_MAIN;
use crate::announcement::Announcement;

/// Request with the flags for an object that exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message.
    pub message: RouteNetlinkMessage,
    /// `NLM_F_CREATE` and similar flags, without `NLM_F_REQUEST` and `NLM_F_ACK`.
    pub flags: u16,
}

const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    }
}

/// Settings of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// MAC address; `None`: unchanged.
    pub mac: Option<[u8; 6]>,
    /// MTU; `None`: unchanged.
    pub mtu: Option<u32>,
    /// Whether the kernel creates a link-local IPv6 address. A point-to-point TUN needs none and would only send router
    /// solicitations from it.
    pub link_local: bool,
}

/// Sets a link's MAC and MTU.
pub fn configure_link(index: u32, settings: LinkSettings) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    if let Some(mac) = settings.mac {
        message
            .attributes
            .push(LinkAttribute::Address(mac.to_vec()));
    }
    if let Some(mtu) = settings.mtu {
        message.attributes.push(LinkAttribute::Mtu(mtu));
    }
    if !settings.link_local {
        message
            .attributes
            .push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(
                vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)],
            )]));
    }
    Request {
        message: RouteNetlinkMessage::SetLink(message),
        flags: 0,
    }
}

/// Brings a link up.
pub fn link_up(index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    Request {
        message: RouteNetlinkMessage::SetLink(message),
        flags: 0,
    }
}

/// Removes a virtual link.
pub fn delete_link(index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    Request {
        message: RouteNetlinkMessage::DelLink(message),
        flags: 0,
    }
}

/// Adds an address to a link; an existing address is no error.
pub fn add_address(index: u32, address: IpNet) -> Request {
    Request {
        message: RouteNetlinkMessage::NewAddress(address_of(index, address)),
        flags: CREATE | REPLACE,
    }
}

/// Removes an address from a link.
pub fn remove_address(index: u32, address: IpNet) -> Request {
    Request {
        message: RouteNetlinkMessage::DelAddress(address_of(index, address)),
        flags: 0,
    }
}

fn address_of(index: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.prefix_len = address.prefix_len();
    message.header.index = index;
    message
        .attributes
        .push(AddressAttribute::Local(address.addr()));
    message
        .attributes
        .push(AddressAttribute::Address(address.addr()));
    message
}

/// Route of a subscriber prefix. Its metric is always said: without one, a withdrawal would take the route with the smallest.
fn route(Announcement { net, metric }: Announcement, index: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(net.addr());
    message.header.destination_prefix_length = net.prefix_len();
    message.header.table = TABLE_MAIN as u8;
    message.header.protocol = RouteProtocol::Other(PROTO_SLUICE);
    message.header.kind = RouteType::Unicast;
    message.header.scope = RouteScope::Link;
    message
        .attributes
        .push(RouteAttribute::Destination(RouteAddress::from(
            net.network(),
        )));
    message.attributes.push(RouteAttribute::Oif(index));
    message.attributes.push(RouteAttribute::Priority(metric));
    message
}

/// Announces a subscriber prefix: `NET dev TUN proto sluice metric METRIC`.
pub fn export(net: Announcement, index: u32) -> Request {
    let message = RouteNetlinkMessage::NewRoute(route(net, index));
    Request {
        message,
        flags: CREATE | REPLACE,
    }
}

/// Withdraws an announced prefix.
pub fn withdraw(net: Announcement, index: u32) -> Request {
    Request {
        message: RouteNetlinkMessage::DelRoute(route(net, index)),
        flags: 0,
    }
}

/// Asks the kernel to resolve a neighbour, or to confirm a stale one. `NTF_USE` has the same effect as sending a packet to it.
pub fn use_neighbour(link: u32, address: IpAddr) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = link;
    message.header.flags = NeighbourFlags::Use;
    let destination = match address {
        IpAddr::V4(a) => NeighbourAddress::Inet(a),
        IpAddr::V6(a) => NeighbourAddress::Inet6(a),
    };
    message
        .attributes
        .push(NeighbourAttribute::Destination(destination));
    Request {
        message: RouteNetlinkMessage::NewNeighbour(message),
        flags: CREATE,
    }
}

/// Dumps that together give the whole state, as message type, header length and address family. The order matters: a route needs
/// its link and its next hop object.
pub const DUMPS: [(u16, usize, u8); 5] = [
    (18, 16, 0),                   // RTM_GETLINK, struct ifinfomsg
    (30, 12, 0),                   // RTM_GETNEIGH, struct ndmsg
    (106, 8, 0),                   // RTM_GETNEXTHOP, struct nhmsg
    (26, 12, libc::AF_INET as u8), // RTM_GETROUTE, struct rtmsg
    (26, 12, libc::AF_INET6 as u8),
];
