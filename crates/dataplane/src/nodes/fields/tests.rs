//! What rules see of packets, compared with a parser that knows nothing of the window's layout and is written plainly.
use super::*;
use dpdk::HEAD;
use proptest::prelude::*;

/// What is read of a packet of either family.
#[derive(Debug, PartialEq)]
struct Seen {
    addresses: [u128; 2],
    length: usize,
    dscp: u8,
    protocol: u8,
    fragment: Fragment,
    /// `None`: it is undetermined.
    transport: Option<Transport>,
}

#[derive(Debug, PartialEq)]
struct Transport {
    upper: Upper,
    ports: [u16; 2],
    flags: u8,
}

const UNREAD: Transport = Transport {
    upper: Upper::Unread,
    ports: [0; 2],
    flags: 0,
};

fn number(octets: &[u8]) -> u128 {
    octets
        .iter()
        .fold(0, |n, octet| n << 8 | u128::from(*octet))
}

/// What follows the IP headers, as far as it is visible.
fn transport(protocol: u8, octets: &[u8]) -> Option<Transport> {
    let (upper, needed) = match protocol {
        6 => (Upper::Flags, 14),
        1 | 17 | 33 | 58 | 132 | 136 => (Upper::Ports, 4),
        _ => return Some(UNREAD),
    };
    let header = octets.get(..needed)?;
    Some(Transport {
        upper,
        ports: [number(&header[..2]) as u16, number(&header[2..4]) as u16],
        flags: header.get(13).copied().unwrap_or(0),
    })
}

/// A fragment that is not the first one shows no ports. One of TCP that begins within the flags of the first is dropped.
fn of_later(protocol: u8, offset: u128) -> Option<Transport> {
    (protocol != 6 || offset != 1).then_some(UNREAD)
}

/// An IPv4 packet, of which so many octets are visible.
fn plain_v4(packet: &[u8], visible: usize) -> Seen {
    let options_end = usize::from(packet[0] % 16) * 4;
    let (protocol, offset) = (packet[9], number(&packet[6..8]) % 0x2000);
    let rest = packet[..visible].get(options_end..).unwrap_or_default();
    Seen {
        addresses: [number(&packet[12..16]), number(&packet[16..20])],
        length: packet.len(),
        dscp: packet[1] / 4,
        protocol,
        fragment: match (offset, packet[6] & 0x20) {
            (0, 0) => Fragment::None,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        },
        transport: match offset {
            0 => transport(protocol, rest),
            _ => of_later(protocol, offset),
        },
    }
}

/// What is behind the IPv6 header or an extension header.
fn behind(next: u8, octets: &[u8], fragment: Fragment) -> (u8, Fragment, Option<Transport>) {
    let size = match next {
        44 => |_| 8,
        51 => |length| (length + 2) * 4,
        0 | 43 | 60 | 135 | 139 | 140 => |length| (length + 1) * 8,
        _ => return (next, fragment, transport(next, octets)),
    };
    let Some(header) = octets.get(..8) else {
        return (next, fragment, None);
    };
    let (offset, is_last) = (number(&header[2..4]) / 8, header[3] % 2 == 0);
    let fragment = match (next, offset, is_last) {
        (44, 0, false) => Fragment::First,
        (44, 1.., _) => return (header[0], Fragment::Later, of_later(header[0], offset)),
        _ => fragment,
    };
    let size: usize = size(usize::from(header[1]));
    behind(header[0], octets.get(size..).unwrap_or_default(), fragment)
}

/// An IPv6 packet, of which so many octets are visible.
fn plain_v6(packet: &[u8], visible: usize) -> Seen {
    let (protocol, fragment, transport) = behind(packet[6], &packet[40..visible], Fragment::None);
    Seen {
        addresses: [number(&packet[8..24]), number(&packet[24..40])],
        length: packet.len(),
        dscp: (number(&packet[..2]) / 64 % 64) as u8,
        protocol,
        fragment,
        transport,
    }
}

/// Compares what is read of a packet at `place` of a frame, behind which the frame has padding.
fn compare(family: Family, packet: &[u8], place: usize) {
    let frame = [&vec![0xff; place], packet, &[0xff; 46]].concat();
    let (w, ip, total) = (Window::of(&frame), HEAD + place, packet.len());
    let visible = total.min(WINDOW - ip);
    macro_rules! seen {
        ($read:expr) => {{
            let Read {
                packet,
                is_undetermined,
            } = $read;
            let transport = Transport {
                upper: packet.upper,
                ports: [packet.source_port, packet.destination_port],
                flags: packet.tcp_flags,
            };
            if is_undetermined {
                assert_eq!(transport, UNREAD);
            }
            Seen {
                addresses: [packet.source.into(), packet.destination.into()],
                length: packet.length.into(),
                dscp: packet.dscp,
                protocol: packet.protocol,
                fragment: packet.fragment,
                transport: (!is_undetermined).then_some(transport),
            }
        }};
    }
    let (seen, plain) = match family {
        Family::V4 => (seen!(read_v4(&w, ip, total)), plain_v4(packet, visible)),
        Family::V6 => (seen!(read_v6(&w, ip, total)), plain_v6(packet, visible)),
    };
    assert_eq!(seen, plain, "{packet:02x?} at {place}");
}

/// Where the IP header may be: behind Ethernet, tags and PPPoE.
fn place() -> impl Strategy<Value = usize> {
    prop_oneof![Just(14), Just(18), Just(22), Just(26), Just(30)]
}

fn protocol() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => Just(6),
        3 => prop_oneof![Just(1), Just(17), Just(33), Just(58), Just(132), Just(136)],
        1 => any::<u8>(),
    ]
}

/// Offset and flag of a fragment: none, the first, the second octets of TCP, any.
fn fragment() -> impl Strategy<Value = (u16, bool)> {
    let offset = prop_oneof![4 => Just(0), 2 => Just(1), 1 => 0..0x2000u16];
    (offset, any::<bool>())
}

/// Octets behind the IP headers: often too few for a header.
fn rest() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        proptest::collection::vec(any::<u8>(), 20..120),
    ]
}

/// An extension header: its kind, a length as its second octet says it, its octets, and what it says of the fragment.
type Extension = (u8, u8, [u8; 8], (u16, bool));

fn extension() -> impl Strategy<Value = Extension> {
    let kind = prop_oneof![
        4 => Just(44),
        2 => Just(51),
        6 => prop_oneof![Just(0), Just(43), Just(60), Just(135), Just(139), Just(140)],
    ];
    let length = prop_oneof![8 => 0..3u8, 1 => any::<u8>()];
    (kind, length, any::<[u8; 8]>(), fragment())
}

/// The octets of extension headers, and the kind of the first thing.
fn chained(extensions: &[Extension], protocol: u8) -> (u8, Vec<u8>) {
    let Some(((kind, length, filling, (offset, more)), others)) = extensions.split_first() else {
        return (protocol, Vec::new());
    };
    let (next, behind) = chained(others, protocol);
    let size = match kind {
        44 => 8,
        51 => (usize::from(*length) + 2) * 4,
        _ => (usize::from(*length) + 1) * 8,
    };
    let mut header: Vec<u8> = filling.iter().copied().cycle().take(size).collect();
    (header[0], header[1]) = (next, *length);
    if *kind == 44 {
        let field = offset << 3 | u16::from(*more);
        header[2..4].copy_from_slice(&field.to_be_bytes());
    }
    (*kind, [header, behind].concat())
}

proptest! {
    #[test]
    fn ipv4_packets_with_options_and_fragments_are_read_as_plainly(
        place in place(),
        options in 0..=10usize,
        protocol in protocol(),
        (offset, more) in fragment(),
        head in any::<[u8; 60]>(),
        rest in rest(),
    ) {
        let mut packet = [&head[..20 + 4 * options], &rest].concat();
        packet[0] = 0x45 + options as u8;
        packet[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
        packet[9] = protocol;
        compare(Family::V4, &packet, place);
    }

    #[test]
    fn ipv6_packets_with_extension_headers_are_read_as_plainly(
        place in place(),
        extensions in proptest::collection::vec(extension(), 0..5),
        protocol in protocol(),
        head in any::<[u8; 40]>(),
        rest in rest(),
        cut in prop_oneof![2 => Just(0), 1 => 0..60usize],
    ) {
        let (next, chain) = chained(&extensions, protocol);
        let mut packet = [&head[..], &chain, &rest].concat();
        packet[6] = next;
        packet.truncate((packet.len() - cut.min(packet.len())).max(40));
        compare(Family::V6, &packet, place);
    }

    #[test]
    fn whatever_octets_there_are_are_read_as_plainly(
        place in place(), octets in proptest::collection::vec(any::<u8>(), 40..160)
    ) {
        compare(Family::V4, &octets, place);
        compare(Family::V6, &octets, place);
    }
}
