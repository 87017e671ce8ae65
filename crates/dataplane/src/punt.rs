//! The way of packets between the worker and the control thread: what they are is written into two words that travel
//! with each packet.
use crate::api::*;
use dpdk::{Mbuf, Pool};
use wire::eth::TPID_8021Q;

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

/// The first word of a packet to be routed; that of one for a port is 0. The second word says where.
pub(crate) const ROUTE: u32 = 1;

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
                [0, port.0 as u32],
                mbuf.append(addresses)
                    && mbuf.append(&TPID_8021Q.to_be_bytes())
                    && mbuf.append(&vlan.to_be_bytes())
                    && mbuf.append(rest),
            ),
            _ => ([0, interface.0 as u32], mbuf.append(frame)),
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
