//! IPv4 packets (RFC 791).
//!
//! ```
//! use wire::ipv4::{Header, Packet, UDP};
//!
//! let header = Header::new(UDP, [192, 0, 2, 1].into(), [192, 0, 2, 2].into());
//! let mut bytes = Vec::new();
//! Packet { header, options: &[], payload: b"datagram" }.emit(&mut bytes);
//! let packet = Packet::parse(&bytes).unwrap();
//! assert_eq!((packet.header, packet.payload), (header, &b"datagram"[..]));
//! ```
use crate::{Malformed, Result, checksum};
use core::net::Ipv4Addr;

/// Protocol ICMP.
pub const ICMP: u8 = 1;
/// Protocol TCP.
pub const TCP: u8 = 6;
/// Protocol UDP.
pub const UDP: u8 = 17;

/// The header without what follows from the packet itself (lengths, checksum) and without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Identification, the same for all fragments of a packet.
    pub identification: u16,
    /// May no router fragment it?
    pub dont_fragment: bool,
    /// Do fragments follow?
    pub more_fragments: bool,
    /// Where this fragment belongs, in units of 8 octets.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Header {
    /// The header of an unfragmented packet with TTL 64.
    pub const fn new(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Header {
            traffic_class: 0,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            source,
            destination,
        }
    }

    fn flags_and_offset(&self) -> u16 {
        u16::from(self.dont_fragment) << 14
            | u16::from(self.more_fragments) << 13
            | (self.fragment_offset & 0x1fff)
    }
}

/// A packet with borrowed options and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The fixed part.
    pub header: Header,
    /// Options: a multiple of 4 octets, at most 40.
    pub options: &'a [u8],
    /// What the total length covers behind the header.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks version, lengths and header checksum; octets beyond the total length are padding.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let fixed = bytes
            .first_chunk::<20>()
            .ok_or(Malformed("IPv4 header cut off"))?;
        if fixed[0] >> 4 != 4 {
            return Err(Malformed("IPv4 version is not 4"));
        }
        let header_len = usize::from(fixed[0] & 15) * 4;
        let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_len < 20 || total_len < header_len || total_len > bytes.len() {
            return Err(Malformed("IPv4 lengths contradict each other"));
        }
        if checksum::of(&bytes[..header_len]) != 0 {
            return Err(Malformed("IPv4 header checksum is wrong"));
        }
        let flags = u16::from_be_bytes([fixed[6], fixed[7]]);
        let header = Header {
            traffic_class: fixed[1],
            identification: u16::from_be_bytes([fixed[4], fixed[5]]),
            dont_fragment: flags & 0x4000 != 0,
            more_fragments: flags & 0x2000 != 0,
            fragment_offset: flags & 0x1fff,
            ttl: fixed[8],
            protocol: fixed[9],
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
        };
        Ok(Packet {
            header,
            options: &bytes[20..header_len],
            payload: &bytes[header_len..total_len],
        })
    }

    /// Appends the packet to `out`, lengths and checksum computed. Options and payload must fit (40 octets, and
    /// 65,535 for the whole).
    pub fn emit(&self, out: &mut Vec<u8>) {
        debug_assert!(self.options.len() <= 40 && self.options.len().is_multiple_of(4));
        let start = out.len();
        let header_len = 20 + self.options.len();
        let total_len = header_len + self.payload.len();
        debug_assert!(total_len <= 0xffff);
        let h = &self.header;
        out.extend_from_slice(&[0x40 | (header_len / 4) as u8, h.traffic_class]);
        out.extend_from_slice(&(total_len as u16).to_be_bytes());
        out.extend_from_slice(&h.identification.to_be_bytes());
        out.extend_from_slice(&h.flags_and_offset().to_be_bytes());
        out.extend_from_slice(&[h.ttl, h.protocol, 0, 0]);
        out.extend_from_slice(&h.source.octets());
        out.extend_from_slice(&h.destination.octets());
        out.extend_from_slice(self.options);
        let sum = checksum::of(&out[start..]);
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = Header> {
        let flags = (any::<bool>(), any::<bool>(), 0u16..0x2000);
        (
            any::<u8>(),
            any::<u16>(),
            flags,
            any::<u8>(),
            any::<u8>(),
            any::<[u8; 4]>(),
            any::<[u8; 4]>(),
        )
            .prop_map(
                |(
                    traffic_class,
                    identification,
                    (df, mf, offset),
                    ttl,
                    protocol,
                    source,
                    destination,
                )| Header {
                    traffic_class,
                    identification,
                    dont_fragment: df,
                    more_fragments: mf,
                    fragment_offset: offset,
                    ttl,
                    protocol,
                    source: source.into(),
                    destination: destination.into(),
                },
            )
    }

    proptest! {
        #[test]
        fn emit_then_parse(header in header(), options in prop::collection::vec(any::<[u8; 4]>(), 0..=10), payload: Vec<u8>, padding: Vec<u8>) {
            let options = options.concat();
            let packet = Packet { header, options: &options, payload: &payload };
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            prop_assert!(Packet::parse(&bytes[..bytes.len() - 1]).is_err());
            bytes.extend_from_slice(&padding);
            prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
        }

        #[test]
        fn parse_never_panics(mut bytes: Vec<u8>, first in 0x40u8..0x50) {
            let _ = Packet::parse(&bytes);
            if let Some(b) = bytes.first_mut() {
                *b = first;
            }
            let _ = Packet::parse(&bytes);
        }
    }

    #[test]
    fn one_wrong_bit_in_the_header_is_noticed() {
        let mut bytes = Vec::new();
        let header = Header::new(UDP, [192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        Packet {
            header,
            options: &[],
            payload: &[],
        }
        .emit(&mut bytes);
        for bit in 0..160 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Packet::parse(&wrong).is_err(), "bit {bit}");
        }
    }
}
