//! UDP (RFC 768) over IPv4 and IPv6.
//!
//! ```
//! use wire::udp::Datagram;
//!
//! let datagram = Datagram { source_port: 4000, destination_port: 53, payload: b"query" };
//! let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
//! let mut bytes = Vec::new();
//! datagram.emit_v4(source, destination, &mut bytes);
//! assert_eq!(Datagram::parse_v4(&bytes, source, destination), Ok(datagram));
//! ```
use crate::checksum::{Sum, pseudo_v4, pseudo_v6};
use crate::{Malformed, Result, ipv4, ipv6};
use core::net::{Ipv4Addr, Ipv6Addr};

/// A datagram with borrowed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a datagram without looking at its checksum.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let fixed = bytes
            .first_chunk::<8>()
            .ok_or(Malformed("UDP header cut off"))?;
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let payload = bytes
            .get(8..length)
            .ok_or(Malformed("UDP length contradicts the packet"))?;
        Ok(Datagram {
            source_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            destination_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            payload,
        })
    }

    /// Reads a datagram and checks its checksum; zero means that the sender computed none.
    pub fn parse_v4(bytes: &'a [u8], source: Ipv4Addr, destination: Ipv4Addr) -> Result<Self> {
        let datagram = Self::parse(bytes)?;
        let length = datagram.length();
        let computed = pseudo_v4(source, destination, ipv4::UDP, length)
            .bytes(&bytes[..length.into()])
            .finish();
        if bytes[6..8] != [0, 0] && computed != 0 {
            return Err(Malformed("UDP checksum is wrong"));
        }
        Ok(datagram)
    }

    /// Reads a datagram and checks its checksum, which IPv6 requires (RFC 8200 §8.1).
    pub fn parse_v6(bytes: &'a [u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Self> {
        let datagram = Self::parse(bytes)?;
        let length = datagram.length();
        let pseudo = pseudo_v6(source, destination, ipv6::UDP, length.into());
        if bytes[6..8] == [0, 0] || pseudo.bytes(&bytes[..length.into()]).finish() != 0 {
            return Err(Malformed("UDP checksum is wrong"));
        }
        Ok(datagram)
    }

    /// Appends the datagram with its checksum over IPv4. The payload must fit into 65,527 octets.
    pub fn emit_v4(&self, source: Ipv4Addr, destination: Ipv4Addr, out: &mut Vec<u8>) {
        self.emit(
            pseudo_v4(source, destination, ipv4::UDP, self.length()),
            out,
        );
    }

    /// Appends the datagram with its checksum over IPv6. The payload must fit into 65,527 octets.
    pub fn emit_v6(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) {
        self.emit(
            pseudo_v6(source, destination, ipv6::UDP, self.length().into()),
            out,
        );
    }

    /// Appends an IPv6 packet with the datagram and its checksum. The payload must fit into 65,527 octets.
    pub fn emit_packet_v6(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) {
        let mut datagram = Vec::with_capacity(self.payload.len() + 8);
        self.emit_v6(source, destination, &mut datagram);
        ipv6::Packet {
            header: ipv6::Header::new(ipv6::UDP, source, destination),
            payload: &datagram,
        }
        .emit(out);
    }

    fn length(&self) -> u16 {
        debug_assert!(self.payload.len() + 8 <= 0xffff);
        (self.payload.len() + 8) as u16
    }

    fn emit(&self, pseudo: Sum, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.length().to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(self.payload);
        // A computed zero is sent as all ones: zero says "no checksum".
        let sum = match pseudo.bytes(&out[start..]).finish() {
            0 => 0xffff,
            sum => sum,
        };
        out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(sp: u16, dp: u16, payload: Vec<u8>, s: [u8; 16], d: [u8; 16], s4: [u8; 4], d4: [u8; 4], padding: Vec<u8>) {
            let datagram = Datagram { source_port: sp, destination_port: dp, payload: &payload };
            let mut bytes = Vec::new();
            datagram.emit_v6(s.into(), d.into(), &mut bytes);
            bytes.extend_from_slice(&padding);
            prop_assert_eq!(Datagram::parse_v6(&bytes, s.into(), d.into()), Ok(datagram));
            let mut bytes = Vec::new();
            datagram.emit_v4(s4.into(), d4.into(), &mut bytes);
            prop_assert!((0..bytes.len()).all(|n| Datagram::parse(&bytes[..n]).is_err()));
            bytes.extend_from_slice(&padding);
            prop_assert_eq!(Datagram::parse_v4(&bytes, s4.into(), d4.into()), Ok(datagram));
        }

        #[test]
        fn a_changed_octet_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..50), at: prop::sample::Index, flip in 1u8..) {
            let mut bytes = Vec::new();
            let (s, d) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
            Datagram { source_port: 1, destination_port: 2, payload: &payload }.emit_v6(s, d, &mut bytes);
            let at = 8 + at.index(payload.len());
            bytes[at] ^= flip;
            prop_assert!(Datagram::parse_v6(&bytes, s, d).is_err());
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Datagram::parse(&bytes);
            let _ = Datagram::parse_v4(&bytes, Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
            let _ = Datagram::parse_v6(&bytes, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        }
    }

    #[test]
    fn lengths_below_the_header_are_refused() {
        for length in 0..8 {
            assert!(Datagram::parse(&[0, 1, 0, 2, 0, length, 0, 0, 9, 9]).is_err());
        }
    }
}
