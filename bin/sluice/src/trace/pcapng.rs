//! Packets as a file that Wireshark reads: pcapng (draft-ietf-opsawg-pcapng). An interface for each path on which packets were
//! seen; datagrams get the IP and UDP headers that they had, as far as those are known.

use northbound::{TracedPacket, TracedPath};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::{ipv4, ipv6, udp};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Link types: Ethernet, and IP without anything around it.
const ETHERNET: u16 = 1;
const RAW_IP: u16 = 101;

const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
/// Received and sent, in the flags of a packet.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// The interfaces, in the order of their numbers.
const INTERFACES: [(TracedPath, &str, u16); 4] = [
    (TracedPath::Access, "access", ETHERNET),
    (TracedPath::Radius, "radius", RAW_IP),
    (TracedPath::Pfcp, "pfcp", RAW_IP),
    (TracedPath::Sample, "samples", ETHERNET),
];

/// Writes packets one by one; whatever was written can be read when there is no more.
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn begin(mut to: W) -> io::Result<Self> {
        let mut header = Vec::new();
        header.extend(BYTE_ORDER.to_le_bytes());
        header.extend([1, 0, 0, 0]); // version 1.0
        header.extend(u64::MAX.to_le_bytes()); // how long the section is, is not known
        option(&mut header, APPLICATION, b"sluice trace");
        end_of_options(&mut header);
        block(&mut to, SECTION_HEADER, &header)?;
        for (_, name, link) in INTERFACES {
            let mut interface = Vec::new();
            interface.extend(link.to_le_bytes());
            interface.extend([0; 6]); // reserved; packets may have any length
            option(&mut interface, NAME, name.as_bytes());
            option(&mut interface, RESOLUTION, &[9]); // nanoseconds
            end_of_options(&mut interface);
            block(&mut to, INTERFACE, &interface)?;
        }
        to.flush()?;
        Ok(Writer(to))
    }

    /// Adds a packet, with a comment. One that was seen on no path that is known has no place in the file.
    pub fn packet(&mut self, packet: &TracedPacket, comment: &str) -> io::Result<()> {
        let path = packet.path();
        let Some(interface) = INTERFACES.iter().position(|(of, ..)| *of == path) else {
            return Ok(());
        };
        let (octets, length) = match INTERFACES[interface].2 {
            RAW_IP => {
                let datagram = datagram(packet);
                let length = datagram.len();
                (datagram, length)
            }
            _ => {
                let length = (packet.length as usize).max(packet.octets.len());
                (packet.octets.clone(), length)
            }
        };
        let mut body = Vec::with_capacity(octets.len() + 64);
        body.extend((interface as u32).to_le_bytes());
        body.extend(((packet.at_nanoseconds >> 32) as u32).to_le_bytes());
        body.extend((packet.at_nanoseconds as u32).to_le_bytes());
        body.extend((octets.len() as u32).to_le_bytes());
        body.extend((length as u32).to_le_bytes());
        padded(&mut body, &octets);
        let way = if packet.sent { OUTBOUND } else { INBOUND };
        option(&mut body, COMMENT, comment.as_bytes());
        option(&mut body, FLAGS, &way.to_le_bytes());
        end_of_options(&mut body);
        block(&mut self.0, ENHANCED_PACKET, &body)
    }

    /// Whatever was added is in the file then.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn block(to: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    to.write_all(&kind.to_le_bytes())?;
    to.write_all(&length)?;
    to.write_all(body)?;
    to.write_all(&length)
}

fn padded(body: &mut Vec<u8>, value: &[u8]) {
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// An option; a value that is too long for one is cut.
fn option(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let value = &value[..value.len().min(1000)];
    body.extend(kind.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    // every block before is a multiple of four octets long
    padded(body, value);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
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
    fn blocks_are_as_long_as_they_say() {
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
            writer.packet(&packet, "a comment").unwrap();
        }
        writer.flush().unwrap();
        let (mut kinds, mut rest) = (Vec::new(), &file[..]);
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let length = word(4) as usize;
            assert_eq!((length % 4, word(length - 4) as usize), (0, length));
            kinds.push(word(0));
            rest = &rest[length..];
        }
        let expected = [
            [SECTION_HEADER].as_slice(),
            &[INTERFACE; 4],
            &[ENHANCED_PACKET; 3],
        ];
        assert_eq!(kinds, expected.concat());
    }
}
