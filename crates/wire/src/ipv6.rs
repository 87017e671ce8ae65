//! IPv6 packets (RFC 8200); extension headers are left in the payload.
//!
//! ```
//! use wire::ipv6::{Header, Packet, ICMPV6};
//!
//! let header = Header::new(ICMPV6, "fe80::1".parse().unwrap(), "ff02::1".parse().unwrap());
//! let mut bytes = Vec::new();
//! Packet { header, payload: b"message" }.emit(&mut bytes);
//! assert_eq!(Packet::parse(&bytes), Ok(Packet { header, payload: b"message" }));
//! ```
use crate::{Malformed, Result};
use core::net::Ipv6Addr;

/// Next header UDP.
pub const UDP: u8 = 17;
/// Next header TCP.
pub const TCP: u8 = 6;
/// Next header ICMPv6.
pub const ICMPV6: u8 = 58;

/// ff02::1, every node of a link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// ff02::2, every router of a link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The link-local address with this interface identifier.
pub const fn link_local(interface_id: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | interface_id as u128)
}

/// The interface identifier of an address: its low 64 bits.
pub const fn interface_id(address: Ipv6Addr) -> u64 {
    address.to_bits() as u64
}

/// The solicited-node multicast address (RFC 4291 §2.7.1).
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | (address.to_bits() & 0xff_ffff))
}

/// The header without the payload length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// What follows the header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Header {
    /// A header with hop limit 64.
    pub const fn new(next_header: u8, source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Header {
            traffic_class: 0,
            flow_label: 0,
            next_header,
            hop_limit: 64,
            source,
            destination,
        }
    }
}

/// A packet with borrowed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The fixed header.
    pub header: Header,
    /// What the payload length covers.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks version and length; octets beyond the payload length are padding.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (fixed, rest) = bytes
            .split_first_chunk::<40>()
            .ok_or(Malformed("IPv6 header cut off"))?;
        let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        if first >> 28 != 6 {
            return Err(Malformed("IPv6 version is not 6"));
        }
        let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let payload = rest
            .get(..payload_len)
            .ok_or(Malformed("IPv6 payload cut off"))?;
        let address = |at: usize| Ipv6Addr::from_octets(core::array::from_fn(|i| fixed[at + i]));
        let header = Header {
            traffic_class: (first >> 20) as u8,
            flow_label: first & 0xf_ffff,
            next_header: fixed[6],
            hop_limit: fixed[7],
            source: address(8),
            destination: address(24),
        };
        Ok(Packet { header, payload })
    }

    /// Appends the packet to `out`. The payload must fit into 65,535 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        debug_assert!(self.payload.len() <= 0xffff);
        let h = &self.header;
        let first = 6 << 28 | u32::from(h.traffic_class) << 20 | (h.flow_label & 0xf_ffff);
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&(self.payload.len() as u16).to_be_bytes());
        out.extend_from_slice(&[h.next_header, h.hop_limit]);
        out.extend_from_slice(&h.source.octets());
        out.extend_from_slice(&h.destination.octets());
        out.extend_from_slice(self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(
            traffic_class: u8, flow_label in 0u32..0x10_0000, next_header: u8, hop_limit: u8,
            source: [u8; 16], destination: [u8; 16], payload: Vec<u8>, padding: Vec<u8>,
        ) {
            let header = Header {
                traffic_class, flow_label, next_header, hop_limit,
                source: source.into(), destination: destination.into(),
            };
            let packet = Packet { header, payload: &payload };
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            prop_assert!(Packet::parse(&bytes[..bytes.len() - 1]).is_err());
            bytes.extend_from_slice(&padding);
            prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
        }

        #[test]
        fn parse_never_panics(mut bytes: Vec<u8>) {
            let _ = Packet::parse(&bytes);
            if let Some(b) = bytes.first_mut() {
                *b = 0x60;
            }
            let _ = Packet::parse(&bytes);
        }
    }

    #[test]
    fn well_known_addresses() {
        assert_eq!(link_local(0x1234).to_string(), "fe80::1234");
        assert_eq!(
            interface_id("2001:db8::5:6:7:8".parse().unwrap()),
            0x5_0006_0007_0008
        );
        let target = "2001:db8::12:3456:789a".parse().unwrap();
        assert_eq!(solicited_node(target).to_string(), "ff02::1:ff56:789a");
    }
}
