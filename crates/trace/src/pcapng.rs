//! Packets as a file that Wireshark reads: an interface for each path on which packets were seen; datagrams get the IP and UDP
//! headers that they had, as far as those are known.

use crate::describe;
use northbound::{TracedPacket, TracedPath};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::pcap::{self, Direction, ETHERNET, RAW_IP};
use wire::{ipv4, ipv6, udp};

/// The interfaces, in the order of their numbers.
const INTERFACES: [(TracedPath, &str, u16); 4] = [
    (TracedPath::Access, "access", ETHERNET),
    (TracedPath::Radius, "radius", RAW_IP),
    (TracedPath::Pfcp, "pfcp", RAW_IP),
    (TracedPath::Sample, "samples", ETHERNET),
];

/// Writes packets one by one; whatever was written can be read when there is no more.
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// What is written to says so.
    pub fn begin(mut to: W) -> io::Result<Self> {
        let mut out = Vec::new();
        pcap::begin("sluice trace", &mut out);
        for (_, name, link) in INTERFACES {
            let name = Some(name);
            pcap::Interface { name, link }.emit(&mut out);
        }
        to.write_all(&out)?;
        to.flush()?;
        Ok(Writer(to))
    }

    /// Adds a packet, with what it says as a comment. One that was seen on no path that is known has no place in the file.
    ///
    /// # Errors
    /// What is written to says so.
    pub fn packet(&mut self, packet: &TracedPacket) -> io::Result<()> {
        let (path, comment) = (packet.path(), describe(packet));
        let Some(interface) = INTERFACES.iter().position(|(of, ..)| *of == path) else {
            return Ok(());
        };
        let datagram = (INTERFACES[interface].2 == RAW_IP).then(|| datagram(packet));
        let (octets, length) = match &datagram {
            Some(datagram) => (datagram, 0),
            None => (&packet.octets, packet.length as usize),
        };
        let direction = match packet.sent {
            true => Direction::Out,
            false => Direction::In,
        };
        let mut out = Vec::with_capacity(octets.len() + 128);
        let packet = pcap::Packet {
            interface,
            at: packet.at_nanoseconds,
            length: length.max(octets.len()) as u32,
            octets,
        };
        packet.emit(&comment, Some(direction), &mut out);
        self.0.write_all(&out)
    }

    /// What was written.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.0
    }

    /// Whatever was added is in the file then.
    ///
    /// # Errors
    /// What is written to says so.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The payload with its headers.
fn datagram(packet: &TracedPacket) -> Vec<u8> {
    let end = |text: &str| text.parse::<SocketAddr>().ok();
    let unknown = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let source = end(&packet.source).unwrap_or(unknown);
    let destination = end(&packet.destination).unwrap_or(unknown);
    // longer ones are no UDP datagrams
    let payload = &packet.octets[..packet.octets.len().min(65_000)];
    let udp = udp::Datagram {
        source_port: source.port(),
        destination_port: destination.port(),
        payload,
    };
    let (mut octets, mut out) = (Vec::new(), Vec::new());
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            udp.emit_v4(source, destination, &mut octets);
            let header = ipv4::Header::new(ipv4::UDP, source, destination);
            let payload = &octets;
            ipv4::Packet {
                header,
                options: &[],
                payload,
            }
            .emit(&mut out);
        }
        (source, destination) => {
            let (source, destination) = (v6(source), v6(destination));
            udp.emit_v6(source, destination, &mut octets);
            let header = ipv6::Header::new(ipv6::UDP, source, destination);
            let payload = &octets;
            ipv6::Packet { header, payload }.emit(&mut out);
        }
    }
    out
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_lie_on_the_interface_of_their_path() {
        let mut file = Vec::new();
        let mut writer = Writer::begin(&mut file).unwrap();
        for (path, octets) in [
            (TracedPath::Access, vec![1; 61]),
            (TracedPath::Radius, vec![2; 20]),
            (TracedPath::Sample, vec![3; 96]),
            (TracedPath::Unspecified, vec![4; 9]),
        ] {
            let packet = TracedPacket {
                at_nanoseconds: 1_700_000_000_000_000_007,
                path: path.into(),
                source: "192.0.2.1:40000".into(),
                destination: "[2001:db8::1]:1812".into(),
                length: 1500,
                octets,
                ..TracedPacket::default()
            };
            writer.packet(&packet).unwrap();
        }
        writer.flush().unwrap();
        let capture = pcap::Capture::parse(&file).unwrap();
        let names: Vec<_> = (capture.interfaces.iter()).filter_map(|i| i.name).collect();
        assert_eq!(names, ["access", "radius", "pfcp", "samples"]);
        let packets = capture.packets.iter();
        let found: Vec<_> = packets
            .map(|p| (p.interface, p.at, p.length, p.octets.len()))
            .collect();
        let at = 1_700_000_000_000_000_007;
        let expected = [(0, at, 1500, 61), (1, at, 68, 68), (3, at, 1500, 96)];
        assert_eq!(found, expected);
    }
}
