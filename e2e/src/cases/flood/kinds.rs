//! The floods: who sends what, where the user plane drops it, and whose rate it exceeds.

use super::mac_of;
use crate::flood::Side;
use crate::frames::{self, Line};
use crate::site::UP;
use anyhow::Result;
use lab::topology::{CORE_PORT, Lab, Place, SUBSCRIBERS_V4};
use northbound::Session;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses of a stranger who changes his own: so many that none of them exceeds the rate of an address.
const ADDRESSES: u32 = 100_000;
/// Where sessions that there are not come from.
const STRANGER: [u8; 6] = [2, 0x66, 0, 0, 0, 9];

/// A flood.
pub(super) struct Kind {
    pub what: &'static str,
    pub side: Side,
    pub frames: Vec<Vec<u8>>,
    /// Where the user plane drops most of them.
    pub dropped: &'static str,
    /// Whose rate it exceeds, where `show protection` names it.
    pub exceeds: Option<Exceeded>,
}

#[derive(Clone, Copy)]
pub(super) struct Exceeded {
    pub level: &'static str,
    pub vlans: [Option<u32>; 2],
    /// Whether it is held down. Those whose sessions would end are not.
    pub held: bool,
}

impl Kind {
    fn from_access(what: &'static str, dropped: &'static str, frames: Vec<Vec<u8>>) -> Self {
        Kind {
            what,
            side: Side::Access,
            frames,
            dropped,
            exceeds: None,
        }
    }

    fn from_core(what: &'static str, dropped: &'static str, frames: Vec<Vec<u8>>) -> Self {
        let side = Side::Core;
        Kind {
            side,
            ..Kind::from_access(what, dropped, frames)
        }
    }

    fn exceeds(mut self, level: &'static str, tags: [u16; 2], held: bool) -> Self {
        let vlans = tags.map(|vid| (vid != 0).then_some(vid.into()));
        self.exceeds = Some(Exceeded { level, vlans, held });
        self
    }
}

/// A PADI from one of a stranger's addresses.
fn padi(vlans: &[u16], address: u32) -> Vec<u8> {
    let [a, b, c, d] = address.to_be_bytes();
    frames::padi([2, 0x66, a, b, c, d], vlans)
}

/// Floods of discovery.
pub(super) fn discovery() -> Vec<Kind> {
    let changing = |vlans: &[u16]| (0..ADDRESSES).map(|mac| padi(vlans, mac)).collect();
    let (policed, held) = ("line-policed", "held-down");
    vec![
        Kind::from_access("one home on its line", held, vec![padi(&[300, 4001], 1)]).exceeds(
            "mac",
            [300, 4001],
            true,
        ),
        Kind::from_access(
            "one line with changing addresses",
            policed,
            changing(&[300, 4002]),
        )
        .exceeds("line", [300, 4002], false),
        Kind::from_access(
            "changing addresses on a VLAN of many lines",
            policed,
            changing(&[900]),
        )
        .exceeds("vlan", [900, 0], false),
    ]
}

/// Floods in a session that is online.
pub(super) fn in_session(gateway: [u8; 6], session: &Session) -> Result<Vec<Kind>> {
    let tag = |vid: Option<u32>| vid.unwrap_or(0) as u16;
    let line = Line {
        gateway,
        mac: frames::mac(&session.mac)?,
        tags: [tag(session.s_tag), tag(session.c_tag)],
        session: session.pppoe_session_id.try_into()?,
    };
    let of = |what, frame| {
        Kind::from_access(what, "session-policed", vec![frame]).exceeds("mac", line.tags, false)
    };
    Ok(vec![
        of("LCP of a session that is online", line.lcp_discard()),
        of(
            "router solicitations of a session that is online",
            line.router_solicitation(),
        ),
    ])
}

/// Floods of sessions that do not exist, and from the core.
pub(super) fn others(gateway_mac: [u8; 6], lab: &Lab) -> Result<Vec<Kind>> {
    let macs = [
        mac_of(lab, Place::UserPlane(UP), CORE_PORT)?,
        mac_of(lab, Place::Internet, UP.core_link())?,
    ];
    let (gateway, host) = (UP.core_v4(), UP.internet_v4());
    let (gateway6, host6) = (UP.core_v6(), UP.internet_v6());
    let all = |frame: &dyn Fn([u8; 2]) -> Vec<u8>| -> Vec<Vec<u8>> {
        let numbers = (0..=u16::MAX).map(u16::to_be_bytes);
        numbers.map(frame).collect()
    };
    let echo = |to: Ipv4Addr, number| frames::icmp_echo(macs, host, to, number);
    let [a, b, ..] = SUBSCRIBERS_V4.network().octets();
    let [x, y, z, _] = gateway.octets();
    // others on the core's network: who speaks in the router's name there is another matter
    let neighbour = |number: u8| Ipv4Addr::new(x, y, z, number.clamp(10, 250));
    let neighbour6 =
        |number: u16| Ipv6Addr::from(u128::from(gateway6) & !0xffff | u128::from(number));
    let no_session = |number| {
        let line = Line {
            gateway: gateway_mac,
            mac: STRANGER,
            tags: [300, 4003],
            session: u16::from_be_bytes(number),
        };
        line.udp4(Ipv4Addr::new(a, b, 200, 1), host, 9, "")
    };
    let changing = |[high, low]: [u8; 2]| [2, 0x77, 0, 0, high, low];
    Ok(vec![
        Kind::from_access(
            "packets of sessions that there are not",
            "unknown-session",
            all(&no_session),
        ),
        Kind::from_core(
            "ARP requests of changing addresses",
            "line-policed",
            all(&|number| frames::arp_request(changing(number), neighbour(number[1]), gateway)),
        ),
        Kind::from_core(
            "neighbour solicitations of changing addresses",
            "line-policed",
            all(&|number| {
                let from = neighbour6(0x8000 | u16::from_be_bytes(number));
                frames::neighbour_solicitation([macs[0], changing(number)], from, gateway6)
            }),
        ),
        Kind::from_core(
            "ICMP echoes to the gateway",
            "line-policed",
            all(&|number| echo(gateway, u16::from_be_bytes(number))),
        ),
        Kind::from_core(
            "ICMPv6 echoes to the gateway",
            "line-policed",
            vec![frames::icmp6_echo(macs, host6, gateway6)],
        ),
        Kind::from_core(
            "TCP connections to port 179 of the gateway",
            "line-policed",
            all(&|number| {
                frames::tcp_syn(macs, (host, u16::from_be_bytes(number)), (gateway, 179))
            }),
        ),
        Kind::from_core(
            "packets to a pool's addresses that nobody has",
            "discard-route",
            all(&|[_, low]| echo(Ipv4Addr::new(a, b, 0, low.max(200)), 1)),
        ),
        Kind::from_core(
            "packets to hosts on the core's network that there are not",
            "no-adjacency",
            all(&|[_, low]| echo(neighbour(low), 1)),
        ),
        Kind::from_core(
            "IPv6 packets to hosts on the core's network that there are not",
            "no-adjacency",
            all(&|number| {
                let to = neighbour6(0x1000 | u16::from_be_bytes(number));
                frames::icmp6_echo(macs, host6, to)
            }),
        ),
    ])
}
