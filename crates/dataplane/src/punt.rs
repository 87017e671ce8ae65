//! The way of packets between workers and the control thread, and between workers: what they are is written into two words
//! that travel with each packet.
use crate::api::*;
use dpdk::{Mbuf, Pool};
use wire::eth::{Frame, PPPOE_SESSION, TPID_8021Q};

/// Both words of a punted packet: kind and port, and what the kind is about.
pub(crate) fn pack(kind: PuntKind, port: PortIndex) -> [u32; 2] {
    let (code, about) = match kind {
        PuntKind::Discovery => (0, 0),
        PuntKind::Session(SessionIndex(i)) => (1, i),
        PuntKind::Core(PortIndex(i)) => (2, i as u32),
        PuntKind::Local(InstanceIndex(i)) => (3, i as u32),
        PuntKind::TtlExpired(InstanceIndex(i)) => (4, i as u32),
        PuntKind::SampledUp(SessionIndex(i)) => (5, i),
        PuntKind::SampledDown(SessionIndex(i)) => (6, i),
        PuntKind::TooBig {
            instance: InstanceIndex(i),
            mtu,
            own,
        } => (7 + own as u32, (mtu as u32) << 16 | i as u32),
    };
    [code << 16 | port.0 as u32, about]
}

/// What [`pack`] wrote.
pub(crate) fn unpack([head, about]: [u32; 2]) -> Option<(PuntKind, PortIndex)> {
    let instance = InstanceIndex(about as u16);
    let kind = match head >> 16 {
        0 => PuntKind::Discovery,
        1 => PuntKind::Session(SessionIndex(about)),
        2 => PuntKind::Core(PortIndex(about as u16)),
        3 => PuntKind::Local(instance),
        4 => PuntKind::TtlExpired(instance),
        5 => PuntKind::SampledUp(SessionIndex(about)),
        6 => PuntKind::SampledDown(SessionIndex(about)),
        code @ (7 | 8) => PuntKind::TooBig {
            instance,
            mtu: (about >> 16) as u16,
            own: code == 8,
        },
        _ => return None,
    };
    Some((kind, PortIndex(head as u16)))
}

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

/// The PPPoE session id of an injected frame of a session, or 0.
pub(crate) fn session(packet: Inject<'_>) -> u16 {
    let Inject::Port(_, frame) = packet else {
        return 0;
    };
    match Frame::parse(frame) {
        Ok(Frame { header, payload }) if header.ethertype == PPPOE_SESSION => {
            let id = payload.get(2..4).and_then(|id| id.try_into().ok());
            id.map_or(0, u16::from_be_bytes)
        }
        _ => 0,
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
        Inject::Route(instance, ip) => (
            [ROUTE, instance.0 as u32],
            mbuf.append(&NO_ETHERNET) && mbuf.append(ip),
        ),
    };
    mbuf.set_meta(meta);
    fits.then_some(mbuf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let kinds = [
            PuntKind::Discovery,
            PuntKind::Session(SessionIndex(0xffff_ffff)),
            PuntKind::Core(PortIndex(0xffff)),
            PuntKind::Local(InstanceIndex(0xffff)),
            PuntKind::TtlExpired(InstanceIndex(7)),
            PuntKind::SampledUp(SessionIndex(0xffff_ffff)),
            PuntKind::SampledDown(SessionIndex(8)),
            PuntKind::TooBig {
                instance: InstanceIndex(0xffff),
                mtu: 0xffff,
                own: false,
            },
            PuntKind::TooBig {
                instance: InstanceIndex(0),
                mtu: 1280,
                own: true,
            },
        ];
        for kind in kinds {
            assert_eq!(
                unpack(pack(kind, PortIndex(65535))),
                Some((kind, PortIndex(65535)))
            );
        }
        assert_eq!(unpack([9 << 16, 0]), None);
    }
}
