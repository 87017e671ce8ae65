//! Nodes `hop`, `neighbour` and `subscriber`: the packet goes one hop further and gets the header of its next hop, a neighbour's or a subscriber's.
//!
//! Out: a port; what is too big for its next hop goes to `fragment` instead.
//! Drops: `ttl-expired` (and a copy for the control thread), `no-adjacency`, `stale-session`.
use super::Exit;
use super::ip::{self, Family};
use crate::api::InstanceIndex;
use crate::drops::DropReason;
use crate::nodes::classify::{ETHERNET, PPPOE, TAG};
use crate::nodes::{fields, lookup};
use crate::punt::PuntKind;
use crate::tables::adjacency::Neighbour;
use crate::tables::sessions::Down;
use dpdk::Window;
use wire::eth::TPID_8021Q;

/// A frame that is ready: its port, where it starts in the window, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub port: usize,
    pub start: usize,
    pub len: usize,
}

/// One hop further, or the end of the packet's time.
#[inline(always)]
pub(crate) fn hop(
    family: Family,
    w: &mut Window,
    ip: usize,
    total: usize,
    instance: u16,
) -> Result<(), Exit> {
    if ip::hop(family, w, ip) {
        return Ok(());
    }
    Err(Exit::DropAndNotify(
        DropReason::TtlExpired,
        PuntKind::TtlExpired(InstanceIndex(instance)),
        lookup::packet(ip, total),
    ))
}

/// Ethernet to a neighbour.
#[inline(always)]
pub(crate) fn to_neighbour(
    neighbour: &Neighbour,
    family: Family,
    w: &mut Window,
    ip: usize,
    total: usize,
) -> Frame {
    w.copy_in(ip - 16, &neighbour.header);
    w.put16(
        ip - 2,
        if family == Family::V4 {
            wire::eth::IPV4
        } else {
            wire::eth::IPV6
        },
    );
    let mut header = ETHERNET;
    if neighbour.vlan != 0 {
        tag(neighbour, family, w, ip);
        header += TAG;
    }
    Frame {
        port: neighbour.port as usize,
        start: ip - header,
        len: total + header,
    }
}

/// Ethernet with a tag (IEEE 802.1Q), in front of a type that is there.
#[inline(never)]
fn tag(neighbour: &Neighbour, family: Family, w: &mut Window, ip: usize) {
    w.copy_in(ip - 20, &neighbour.header);
    w.put16(ip - 6, TPID_8021Q);
    w.put16(ip - 4, neighbour.tci(|| fields::dscp(w, family, ip)));
}

/// Octets between the type of the frame and the IP packet.
const PPPOE_AND_PPP: usize = PPPOE + 2;

/// Puts the priority of the packet's code point (RFC 2474 §4.2.2) into the tags of a header of so many octets to a subscriber.
#[inline(never)]
fn tag_by_dscp(length: usize, family: Family, w: &mut Window, ip: usize) {
    let priority = fields::dscp(w, family, ip) & 0b111_000;
    let tags = length.saturating_sub(ETHERNET + PPPOE_AND_PPP) / TAG;
    for tag in 1..=tags.min(2) {
        // between the tags and the packet are the type, PPPoE and PPP
        let at = ip - PPPOE_AND_PPP - 2 - (TAG * tag - 2);
        w.put8(at, w.u8(at) & 0x1f | priority << 2);
    }
}

/// Ethernet, tags, PPPoE and PPP to a subscriber.
#[inline(always)]
pub(crate) fn to_subscriber(
    down: &Down,
    family: Family,
    w: &mut Window,
    ip: usize,
    total: usize,
) -> Frame {
    w.copy_in(ip - 32, &down.header);
    w.put16(ip - 4, total as u16 + 2); // PPPoE's length counts PPP's protocol (RFC 2516 §4)
    w.put16(ip - 2, if family == Family::V4 { 0x0021 } else { 0x0057 });
    let length = down.length as usize;
    if down.has_priority_by_dscp() {
        tag_by_dscp(length, family, w, ip);
    }
    Frame {
        port: down.port as usize,
        start: ip - length,
        len: total + length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::*;
    use crate::nodes::Part;
    use crate::tables::adjacency::Adjacencies;
    use crate::tables::interfaces::Interface;
    use crate::tables::sessions::{Sessions, Sources};
    use dpdk::HEAD;
    use policy::{PacketSettings, PrioritySource};
    use wire::eth::{Frame as Parsed, MacAddr, PPPOE_SESSION, Tags};

    const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
    const IP: usize = HEAD + 14;

    fn written(w: &Window, frame: Frame) -> Vec<u8> {
        w.bytes(frame.start..IP).to_vec()
    }

    #[test]
    fn a_neighbours_header() {
        let mut all = Adjacencies::new(2);
        let adjacency = Adjacency {
            port: PortIndex(2),
            mac: Some(PEER),
        };
        let port = Interface {
            port: PortIndex(2),
            own: OWN,
            mtu: 1500,
            vlan: 0,
            instance: InstanceIndex(0),
            source_check: SourceCheck::Off,
            priority_source: PrioritySource::Fixed,
        };
        all.set(AdjacencyIndex(0), Some((adjacency, &port)));
        let neighbour = all.get(AdjacencyIndex(0)).unwrap();
        for (family, ethertype) in [(Family::V4, wire::eth::IPV4), (Family::V6, wire::eth::IPV6)] {
            let mut w = Window::default();
            let frame = to_neighbour(neighbour, family, &mut w, IP, 100);
            assert_eq!((frame.port, frame.len), (2, 114));
            let bytes = written(&w, frame);
            let header = Parsed::parse(&bytes).unwrap().header;
            assert_eq!(
                (header.destination, header.source, header.ethertype),
                (PEER, OWN, ethertype)
            );
        }
        // The same on a subinterface.
        let part = Interface {
            mtu: 1400,
            vlan: 300,
            ..port
        };
        all.set(AdjacencyIndex(1), Some((adjacency, &part)));
        let neighbour = all.get(AdjacencyIndex(1)).unwrap();
        let mut w = Window::default();
        let frame = to_neighbour(neighbour, Family::V6, &mut w, IP, 1400);
        assert_eq!((frame.port, frame.len), (2, 1418));
        let bytes = written(&w, frame);
        let header = Parsed::parse(&bytes).unwrap().header;
        let expected = (PEER, OWN, Tags::single(300), wire::eth::IPV6);
        let found = (
            header.destination,
            header.source,
            header.tags,
            header.ethertype,
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn the_priority_of_tags_may_be_that_of_the_code_point() {
        let packets = PacketSettings {
            vlan_priority: 5,
            priority_source: PrioritySource::Dscp,
            ..PacketSettings::with_mtu(1492)
        };
        for tags in [Tags::NONE, Tags::single(100), Tags::qinq(100, 7)] {
            let mut sessions = Sessions::with(1, &[0..=4095]);
            sessions.set(entry(tags, packets), Sources::default(), 0);
            for dscp in 0..64 {
                let mut w = Window::of(&[&[0; 14][..], &[0x45, dscp << 2 | 3]].concat());
                let down = sessions.down(SessionIndex(0)).unwrap();
                let frame = to_subscriber(down, Family::V4, &mut w, IP, 100);
                let bytes = written(&w, frame);
                let header = Parsed::parse(&bytes).unwrap().header;
                assert_eq!(header.tags, tags.with_priority(dscp >> 3), "{dscp}");
                assert_eq!((header.source, header.ethertype), (OWN, PPPOE_SESSION));
            }
        }
    }

    #[test]
    fn a_subinterfaces_tags_too() {
        let mut all = Adjacencies::new(1);
        let adjacency = Adjacency {
            port: PortIndex(2),
            mac: Some(PEER),
        };
        let part = Interface {
            port: PortIndex(2),
            own: OWN,
            mtu: 1500,
            vlan: 300,
            instance: InstanceIndex(0),
            source_check: SourceCheck::Off,
            priority_source: PrioritySource::Dscp,
        };
        let header = |all: &mut Adjacencies, octets: &[u8], family| {
            let mut w = Window::of(&[&[0; 14][..], octets].concat());
            let frame = to_neighbour(all.get(AdjacencyIndex(0)).unwrap(), family, &mut w, IP, 100);
            Parsed::parse(&written(&w, frame)).unwrap().header
        };
        all.set(AdjacencyIndex(0), Some((adjacency, &part)));
        let tags = |priority| Tags::single(300).with_priority(priority);
        assert_eq!(header(&mut all, &[0x45, 46 << 2], Family::V4).tags, tags(5));
        assert_eq!(header(&mut all, &[0x6b, 0x80], Family::V6).tags, tags(5));
        all.set_priority_source(PortIndex(2), PrioritySource::Fixed);
        assert_eq!(header(&mut all, &[0x45, 46 << 2], Family::V4).tags, tags(0));
        all.set_priority_source(PortIndex(2), PrioritySource::Dscp);
        assert_eq!(header(&mut all, &[0x45, 40 << 2], Family::V4).tags, tags(5));
    }

    fn entry(tags: Tags, packets: PacketSettings) -> SessionEntry {
        SessionEntry {
            index: SessionIndex(0),
            port: PortIndex(0),
            tags,
            peer_mac: PEER,
            gateway_mac: OWN,
            pppoe_session_id: 0x1234,
            instance: InstanceIndex(0),
            packets,
            policies: Default::default(),
            subscriber: 1,
            ipv4: None,
            ipv6: None,
            routed: Box::default(),
        }
    }

    #[test]
    fn a_subscribers_header_in_every_vlan_model() {
        for (n, tags) in [Tags::NONE, Tags::single(100), Tags::qinq(100, 7)]
            .into_iter()
            .enumerate()
        {
            let mut sessions = Sessions::with(1, &[0..=4095]);
            let packets = PacketSettings {
                vlan_priority: 5,
                ..PacketSettings::with_mtu(1492)
            };
            sessions.set(entry(tags, packets), Sources::default(), 0);
            let down = sessions.down(SessionIndex(0)).unwrap();
            let mut w = Window::default();
            let frame = to_subscriber(down, Family::V6, &mut w, IP, 1492);
            assert_eq!(frame.len, 1492 + 22 + 4 * n);
            let bytes = written(&w, frame);
            let parsed = Parsed::parse(&bytes).unwrap();
            assert_eq!(
                (parsed.header.destination, parsed.header.source),
                (PEER, OWN)
            );
            assert_eq!(
                (parsed.header.tags, parsed.header.ethertype),
                (tags.with_priority(5), PPPOE_SESSION)
            );
            assert_eq!(
                parsed.payload,
                [0x11, 0, 0x12, 0x34, 0x05, 0xd6, 0x00, 0x57]
            );
        }
    }

    #[test]
    fn the_end_of_a_packets_time_names_the_packet() {
        let mut packet = vec![0; 14 + 40];
        packet[14 + 7] = 1;
        let left = hop(Family::V6, &mut Window::of(&packet), IP, 40, 3);
        assert_eq!(
            left,
            Err(Exit::DropAndNotify(
                DropReason::TtlExpired,
                PuntKind::TtlExpired(InstanceIndex(3)),
                Part { strip: 14, len: 40 }
            ))
        );
    }
}
