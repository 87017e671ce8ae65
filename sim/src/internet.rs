//! The host that stands for the internet: it answers each verified packet.

use cpe::Label;
use std::net::IpAddr;
use wire::{ipv4, ipv6, udp};

/// The internet's own addresses.
pub const INTERNET: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(std::net::Ipv6Addr::new(
        0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1,
    )),
];
/// The port of verified packets.
pub const TRAFFIC_PORT: u16 = 7777;

/// Source and payload of a UDP packet.
pub fn datagram_of(packet: &[u8]) -> Option<(IpAddr, Vec<u8>)> {
    match packet.first()? >> 4 {
        4 => {
            let packet = ipv4::Packet::parse(packet).ok()?;
            let datagram = udp::Datagram::parse(packet.payload).ok()?;
            Some((packet.header.source.into(), datagram.payload.to_vec()))
        }
        _ => {
            let packet = ipv6::Packet::parse(packet).ok()?;
            let datagram = udp::Datagram::parse(packet.payload).ok()?;
            Some((packet.header.source.into(), datagram.payload.to_vec()))
        }
    }
}

/// The internet's answer to a home's address.
pub fn reply_to(address: IpAddr, label: &Label) -> Vec<u8> {
    let (mut payload, mut segment, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    label.emit(Label::MIN_SIZE, &mut payload);
    let datagram = udp::Datagram {
        source_port: TRAFFIC_PORT,
        destination_port: TRAFFIC_PORT,
        payload: &payload,
    };
    match (INTERNET, address) {
        ([IpAddr::V4(from), _], IpAddr::V4(to)) => {
            datagram.emit_v4(from, to, &mut segment);
            let header = ipv4::Header::new(ipv4::UDP, from, to);
            ipv4::Packet {
                header,
                options: &[],
                payload: &segment,
            }
            .emit(&mut packet);
        }
        ([_, IpAddr::V6(from)], IpAddr::V6(to)) => {
            datagram.emit_packet_v6(from, to, &mut packet);
        }
        _ => {}
    }
    packet
}
