//! What travels with a packet that one thread hands another: two words that say what it is, and where it goes.
use crate::api::{Inject, PortIndex};
use dpdk::{Mbuf, Pool};
use wire::eth::{Frame, PPPOE_SESSION, TPID_8021Q};

/// In front of an injected IP packet, so that it looks like a frame from a core port.
const NO_ETHERNET: [u8; 14] = [0; 14];

/// The first word of a packet that a worker gets from another thread. The second word says where.
///
/// A frame that is ready, for the port that the second word says.
pub(crate) const READY: u32 = 0;
/// A packet of the gateway itself, to be routed in an instance.
pub(crate) const ROUTE: u32 = 1;
/// A frame of a session of this worker, as it came in by an access port.
pub(crate) const FRAME: u32 = 2;
/// An IP packet to a session of this worker. The 14 octets in front of it say what is known of it already.
pub(crate) const PACKET: u32 = 3;
/// A frame that is ready, for a member of the port that the second word says. The packet itself says which.
pub(crate) const MEMBER: u32 = 4;
/// As [`PACKET`], and the hop is counted already: it waited until its session had come to this worker.
pub(crate) const HOPPED: u32 = 5;

/// The port, the outer VLAN and the PPPoE session id of an injected frame of a session.
pub(crate) fn session(packet: Inject<'_>) -> Option<(PortIndex, u16, u16)> {
    let Inject::Port(port, frame) = packet else {
        return None;
    };
    match Frame::parse(frame) {
        Ok(Frame { header, payload }) if header.ethertype == PPPOE_SESSION => {
            let id = payload.get(2..4)?.try_into().ok()?;
            let outer = header.tags.outer.map_or(0, |tag| tag.vid);
            Some((port, outer, u16::from_be_bytes(id)))
        }
        _ => None,
    }
}

/// Copies a packet of the gateway itself into a buffer; `tagged` says of which port an interface is a part, and its VLAN.
pub(crate) fn wrap(
    pool: &Pool,
    packet: Inject<'_>,
    tagged: impl Fn(PortIndex) -> Option<(PortIndex, u16)>,
) -> Option<Mbuf> {
    let mut mbuf = pool.alloc()?;
    let (meta, fits) = match packet {
        Inject::Port(interface, frame) => match (tagged(interface), frame.split_at_checked(12)) {
            (Some((port, vlan)), Some((addresses, rest))) => (
                [READY, port.0 as u32],
                mbuf.append(addresses)
                    && mbuf.append(&TPID_8021Q.to_be_bytes())
                    && mbuf.append(&vlan.to_be_bytes())
                    && mbuf.append(rest),
            ),
            _ => ([READY, interface.0 as u32], mbuf.append(frame)),
        },
        Inject::Member(port, member, frame) => {
            mbuf.set_member(member);
            ([MEMBER, port.0 as u32], mbuf.append(frame))
        }
        Inject::Route(instance, ip) => (
            [ROUTE, instance.0 as u32],
            mbuf.append(&NO_ETHERNET) && mbuf.append(ip),
        ),
    };
    mbuf.set_meta(meta);
    fits.then_some(mbuf)
}
