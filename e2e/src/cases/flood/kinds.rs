//! The floods: who sends what, where the user plane drops it, and whose rate it exceeds.

use super::mac_of;
use crate::flood::Side;
use crate::frames::{self, Line};
use crate::site::UP;
use anyhow::Result;
use lab::topology::{CORE_PORT, Lab, Place, SUBSCRIBERS_V4};
use northbound::Session;
use std::net::{Ipv4Addr, Ipv6Addr};

/// MAC addresses of a flood that changes them. None exceeds the rate of an address.
const ADDRESSES: u32 = 100_000;
/// Sender of packets of unknown sessions.
const STRANGER: [u8; 6] = [2, 0x66, 0, 0, 0, 9];

/// A flood.
pub(super) struct Kind {
    pub what: &'static str,
    pub side: Side,
    pub frames: Vec<Vec<u8>>,
    /// Reason of most drops.
    pub dropped: &'static str,
    /// Offender that `show protection` names.
    pub exceeds: Option<Exceeded>,
}

#[derive(Clone, Copy)]
pub(super) struct Exceeded {
    pub level: &'static str,
    pub vlans: [Option<u32>; 2],
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

    fn exceeds(mut self, level: &'static str, tags: [u16; 2]) -> Self {
        let vlans = tags.map(|vid| (vid != 0).then_some(vid.into()));
        self.exceeds = Some(Exceeded { level, vlans });
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
        Kind::from_access("one home on its line", held, vec![padi(&[300, 4001], 1)])
            .exceeds("mac", [300, 4001]),
        Kind::from_access(
            "one line with changing addresses",
            policed,
            changing(&[300, 4002]),
        )
        .exceeds("line", [300, 4002]),
        Kind::from_access(
            "changing addresses on a VLAN of many lines",
            policed,
            changing(&[900]),
        )
        .exceeds("vlan", [900, 0]),
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
        Kind::from_access(what, "session-policed", vec![frame]).exceeds("mac", line.tags)
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
    // addresses other than the router's: the kernel believes an ARP request in the router's name
    let neighbour = |number: u8| Ipv4Addr::new(x, y, z, number.clamp(10, 250));
    let neighbour6 = |block: u8, [high, low]: [u8; 2]| {
        let host = u32::from_be_bytes([0, block, high, low]);
        Ipv6Addr::from(u128::from(gateway6) & !0xffff_ffff | u128::from(host))
    };
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
                let from = neighbour6(1, number);
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
            all(&|number| frames::icmp6_echo(macs, host6, neighbour6(2, number))),
        ),
    ])
}
