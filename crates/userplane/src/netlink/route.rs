//! Routes and next hop objects in rtnetlink messages.
//!
//! A reading may have a million of them, and there may be ten thousand changes a second. So they are parsed in place; a library
//! parses messages of other kinds ([`super::message::fact`]).

use std::net::IpAddr;

use ipnet::IpNet;

use super::PROTO_SLUICE;
use super::message::{Fact, Hop, NextHop, Place, Route, RouteKey, RouteKind, Way};

/// Routing table of local addresses (`ip route show table local`).
pub const TABLE_LOCAL: u32 = 255;
/// Routing table of ordinary routes.
pub const TABLE_MAIN: u32 = 254;

const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;

/// linux/rtnetlink.h.
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const RTM_F_CLONED: u32 = 0x200;
const RTNH_F_DEAD: u32 = 1;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_NH_ID: u16 = 30;

/// linux/nexthop.h.
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;

const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;

/// The fact in a message about a route or next hop object; `None` for a message of another kind. The inner option is `None` if a
/// user plane does not need the message.
pub fn fact(kind: u16, flags: u16, body: &[u8]) -> Option<Option<Fact>> {
    Some(match kind {
        RTM_NEWROUTE => route(body).map(|route| {
            let place = place(flags, &route);
            Fact::Route { route, place }
        }),
        RTM_DELROUTE => route(body).map(Fact::RouteGone),
        RTM_NEWNEXTHOP => next_hop(body).map(|(id, what)| Fact::NextHop(id, what)),
        RTM_DELNEXTHOP => next_hop(body).map(|(id, _)| Fact::NextHopGone(id)),
        _ => return None,
    })
}

/// Position of a route. A reading comes in the kernel's order and without these flags. Among changes, IPv4 flags a route that is
/// appended (fib_table_insert); IPv6 always appends (fib6_add_rt2node).
fn place(flags: u16, route: &Route) -> Place {
    let first = route.destination.addr().is_ipv4() && flags & NLM_F_CREATE != 0;
    match flags {
        _ if flags & NLM_F_REPLACE != 0 => Place::Instead,
        _ if first && flags & NLM_F_APPEND == 0 => Place::First,
        _ => Place::Last,
    }
}

/// `struct rtmsg` and its attributes.
fn route(body: &[u8]) -> Option<Route> {
    let (header, rest) = body.split_first_chunk::<12>()?;
    let [
        family,
        length,
        source,
        tos,
        table,
        protocol,
        _scope,
        kind,
        flags @ ..,
    ] = *header;
    let mut table = u32::from(table);
    let mut destination = match family {
        AF_INET => IpAddr::from([0; 4]),
        AF_INET6 => IpAddr::from([0; 16]),
        _ => return None,
    };
    let (mut metric, mut link, mut gateway, mut object) = (0, None, None, None);
    let mut hops = Vec::new();
    for (kind, value) in attributes(rest) {
        match kind {
            RTA_TABLE => table = number(value)?,
            RTA_DST => destination = address(value)?,
            RTA_PRIORITY => metric = number(value)?,
            RTA_OIF => link = number(value),
            RTA_GATEWAY => gateway = address(value),
            RTA_VIA => gateway = via(value),
            RTA_NH_ID => object = number(value),
            RTA_MULTIPATH => hops = multipath(value),
            _ => {}
        }
    }
    // Ignores routes of other tables, for a source or for a type of service, and cached exceptions (path MTU, redirects).
    if !matches!(table, TABLE_LOCAL | TABLE_MAIN)
        || source != 0
        || tos != 0
        || u32::from_ne_bytes(flags) & RTM_F_CLONED != 0
    {
        return None;
    }
    if let (true, Some(link)) = (hops.is_empty(), link) {
        hops.push(Hop {
            link,
            gateway,
            weight: 1,
        });
    }
    let kind = match kind {
        libc::RTN_UNICAST => RouteKind::Forward,
        libc::RTN_LOCAL | libc::RTN_BROADCAST | libc::RTN_ANYCAST | libc::RTN_MULTICAST => {
            RouteKind::Local
        }
        libc::RTN_BLACKHOLE | libc::RTN_UNREACHABLE | libc::RTN_PROHIBIT => RouteKind::Discard,
        _ => return None,
    };
    Some(Route {
        destination: IpNet::new(destination, length).ok()?.trunc(),
        key: RouteKey {
            local: table == TABLE_LOCAL,
            metric,
        },
        way: Way { kind, object, hops },
        ours: protocol == PROTO_SLUICE,
    })
}

/// `struct rtnexthop`s with their attributes. Next hops whose link is down are left out, as in the kernel.
fn multipath(mut rest: &[u8]) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let Some((header, _)) = rest.split_first_chunk::<8>() {
        let [l0, l1, flags, more, link @ ..] = *header;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let Some(attached) = rest.get(8..length) else {
            break;
        };
        let gateway = attributes(attached).find_map(|(kind, value)| match kind {
            RTA_GATEWAY => address(value),
            RTA_VIA => via(value),
            _ => None,
        });
        if u32::from(flags) & RTNH_F_DEAD == 0 {
            hops.push(Hop {
                link: u32::from_ne_bytes(link),
                gateway,
                weight: u16::from(more) + 1,
            });
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    hops
}

/// `struct nhmsg` and its attributes.
fn next_hop(body: &[u8]) -> Option<(u32, NextHop)> {
    let (mut id, mut link, mut gateway) = (None, None, None);
    let (mut group, mut discard) = (None, false);
    for (kind, value) in attributes(body.get(8..)?) {
        match kind {
            NHA_ID => id = number(value),
            NHA_GROUP => group = Some(members(value)),
            NHA_BLACKHOLE => discard = true,
            NHA_OIF => link = number(value),
            NHA_GATEWAY => gateway = address(value),
            _ => {}
        }
    }
    let what = match (group, link) {
        (Some(members), _) => NextHop::Group(members),
        (None, Some(link)) if !discard => NextHop::Hop(Hop {
            link,
            gateway,
            weight: 1,
        }),
        _ => NextHop::Discard,
    };
    Some((id?, what))
}

/// `struct nexthop_grp`s: an id and a weight minus one, whose upper half follows it since Linux 6.12.
fn members(value: &[u8]) -> Vec<(u32, u16)> {
    let members = value.as_chunks::<8>().0.iter();
    let member = |&[a, b, c, d, low, high, ..]: &[u8; 8]| {
        let weight = u16::from_le_bytes([low, high]).saturating_add(1);
        (u32::from_ne_bytes([a, b, c, d]), weight)
    };
    members.map(member).collect()
}

/// `struct rtattr`s: kind and value.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (&[l0, l1, k0, k1], _) = rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The upper two bits are flags.
        Some((u16::from_ne_bytes([k0, k1]) & 0x3fff, value))
    })
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?)),
        _ => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?)),
    }
}

/// `struct rtvia`: an IPv4 route may have an IPv6 router (RFC 8950).
fn via(value: &[u8]) -> Option<IpAddr> {
    address(value.get(2..)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn of(header: [u8; 12], rest: &[Vec<u8>]) -> Vec<u8> {
        [header.to_vec(), rest.concat()].concat()
    }

    const MAIN: [u8; 12] = [AF_INET, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];

    #[test]
    fn a_multipath_route_of_an_object_is_read() {
        let hop = |link: u32, more: u8, flags: u8, gateway: [u8; 4]| {
            let attached = attribute(RTA_GATEWAY, &gateway);
            let mut bytes = (attached.len() as u16 + 8).to_ne_bytes().to_vec();
            bytes.extend([flags, more]);
            bytes.extend(link.to_ne_bytes());
            bytes.extend(attached);
            bytes
        };
        let hops = [
            hop(7, 0, 0, [192, 0, 2, 1]),
            hop(8, 3, 0, [192, 0, 2, 2]),
            hop(9, 0, RTNH_F_DEAD as u8, [192, 0, 2, 3]),
        ];
        let body = of(
            MAIN,
            &[
                attribute(RTA_DST, &[203, 0, 113, 77]),
                attribute(RTA_PRIORITY, &20_u32.to_ne_bytes()),
                attribute(RTA_NH_ID, &33_u32.to_ne_bytes()),
                attribute(RTA_MULTIPATH, &hops.concat()),
            ],
        );
        let hop = |link, gateway: &str, weight| Hop {
            link,
            gateway: Some(gateway.parse().unwrap()),
            weight,
        };
        let route = Route {
            destination: "203.0.113.0/24".parse().unwrap(),
            key: RouteKey {
                local: false,
                metric: 20,
            },
            way: Way {
                kind: RouteKind::Forward,
                object: Some(33),
                hops: vec![hop(7, "192.0.2.1", 1), hop(8, "192.0.2.2", 4)],
            },
            ours: false,
        };
        for (flags, place) in [
            (NLM_F_CREATE, Place::First),
            (NLM_F_CREATE | NLM_F_APPEND, Place::Last),
            (NLM_F_REPLACE, Place::Instead),
            (2, Place::Last),
        ] {
            let route = route.clone();
            let told = fact(RTM_NEWROUTE, flags, &body);
            assert_eq!(told, Some(Some(Fact::Route { route, place })));
        }
        assert_eq!(
            fact(RTM_DELROUTE, 0, &body),
            Some(Some(Fact::RouteGone(route)))
        );
    }

    #[test]
    fn what_is_no_route_of_ours_is_passed_over() {
        let with = |at: usize, value: u8| {
            let mut header = MAIN;
            header[at] = value;
            route(&of(header, &[attribute(RTA_OIF, &7_u32.to_ne_bytes())]))
        };
        assert!(with(1, 0).is_some());
        // prefix length, source, type of service, table, type, RTM_F_CLONED, family
        for (at, value) in [(1, 33), (2, 24), (3, 16), (4, 100), (7, 9), (9, 2), (0, 28)] {
            assert_eq!(with(at, value), None, "octet {at}");
        }
        assert_eq!(
            fact(16, 0, &[]),
            None,
            "RTM_NEWLINK is for somebody else to read"
        );
    }

    #[test]
    fn next_hop_objects_are_read() {
        let read = |rest: &[Vec<u8>]| next_hop(&[vec![0; 8], rest.concat()].concat());
        let id = attribute(NHA_ID, &5_u32.to_ne_bytes());
        let link = attribute(NHA_OIF, &7_u32.to_ne_bytes());
        let gateway = attribute(NHA_GATEWAY, &[192, 0, 2, 1]);
        let hop = NextHop::Hop(Hop {
            link: 7,
            gateway: Some([192, 0, 2, 1].into()),
            weight: 1,
        });
        assert_eq!(read(&[id.clone(), link, gateway]), Some((5, hop)));
        let blackhole = attribute(NHA_BLACKHOLE, &[]);
        assert_eq!(read(&[id.clone(), blackhole]), Some((5, NextHop::Discard)));
        let group = [[6, 0, 0, 0, 0, 0, 0, 0], [7, 0, 0, 0, 2, 1, 0, 0]].concat();
        let group = attribute(NHA_GROUP, &group);
        let members = NextHop::Group(vec![(6, 1), (7, 259)]);
        assert_eq!(read(&[id, group]), Some((5, members)));
        assert_eq!(read(&[]), None);
    }

    proptest! {
        #[test]
        fn any_octets_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 24..106_u16) {
            fact(kind, 0, &bytes);
            let attached = attribute(RTA_MULTIPATH, &bytes);
            fact(RTM_NEWROUTE, 0, &of(MAIN, &[attached]));
        }
    }
}
