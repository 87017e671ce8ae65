//! TCP segments (RFC 9293 §3.1) over IPv4 and IPv6.
//!
//! ```
//! use wire::tcp::{ACK, Header, Segment};
//!
//! let header = Header { source_port: 4000, destination_port: 80, sequence: 7, acknowledgment: 9, flags: ACK, window: 65_535 };
//! let segment = Segment { header, options: &[], payload: b"GET /" };
//! let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
//! let mut bytes = Vec::new();
//! segment.emit_v4(source, destination, &mut bytes);
//! assert_eq!(Segment::parse_v4(&bytes, source, destination), Ok(segment));
//! ```
use crate::checksum::{Sum, pseudo_v4, pseudo_v6};
use crate::{Malformed, Result, ipv4, ipv6};
use core::net::{Ipv4Addr, Ipv6Addr};

/// No more data from the sender.
pub const FIN: u8 = 0x01;
/// The sequence numbers begin.
pub const SYN: u8 = 0x02;
/// The connection is reset.
pub const RST: u8 = 0x04;
/// The data is for the application at once.
pub const PSH: u8 = 0x08;
/// The acknowledgment number counts.
pub const ACK: u8 = 0x10;

/// Option: maximum segment size (RFC 9293 §3.7.1), of 4 octets with its head.
pub const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// Length of the header without options.
const FIXED: usize = 20;

/// The header without what follows from the segment itself (data offset, checksum) and without the urgent pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first octet, or of the SYN.
    pub sequence: u32,
    /// The next sequence number that the sender expects.
    pub acknowledgment: u32,
    /// [`FIN`], [`SYN`], [`RST`], [`PSH`], [`ACK`] and those above them.
    pub flags: u8,
    /// How many octets the sender takes, not scaled.
    pub window: u16,
}

/// A segment with borrowed options and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The fixed part.
    pub header: Header,
    /// Options: a multiple of 4 octets, at most 40.
    pub options: &'a [u8],
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads the payload of an IPv4 packet and checks the checksum.
    pub fn parse_v4(bytes: &'a [u8], source: Ipv4Addr, destination: Ipv4Addr) -> Result<Self> {
        let length = u16::try_from(bytes.len()).map_err(|_| Malformed("TCP segment too long"))?;
        Self::parse(bytes, pseudo_v4(source, destination, ipv4::TCP, length))
    }

    /// Reads the payload of an IPv6 packet and checks the checksum.
    pub fn parse_v6(bytes: &'a [u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Self> {
        let length = u32::try_from(bytes.len()).map_err(|_| Malformed("TCP segment too long"))?;
        Self::parse(bytes, pseudo_v6(source, destination, ipv6::TCP, length))
    }

    /// Appends the segment as payload of an IPv4 packet, into which it must fit.
    pub fn emit_v4(&self, source: Ipv4Addr, destination: Ipv4Addr, out: &mut Vec<u8>) {
        debug_assert!(self.len() <= 0xffff);
        let pseudo = pseudo_v4(source, destination, ipv4::TCP, self.len() as u16);
        self.emit(pseudo, out);
    }

    /// Appends the segment as payload of an IPv6 packet, into which it must fit.
    pub fn emit_v6(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) {
        let pseudo = pseudo_v6(source, destination, ipv6::TCP, self.len() as u32);
        self.emit(pseudo, out);
    }

    /// How many sequence numbers the segment takes: its octets, SYN and FIN (RFC 9293 §3.4).
    pub fn taken(&self) -> u32 {
        let flags = (self.header.flags & (SYN | FIN)).count_ones();
        (self.payload.len() as u32).wrapping_add(flags)
    }

    fn len(&self) -> usize {
        FIXED + self.options.len() + self.payload.len()
    }

    fn parse(bytes: &'a [u8], pseudo: Sum) -> Result<Self> {
        let fixed = bytes
            .first_chunk::<FIXED>()
            .ok_or(Malformed("TCP header cut off"))?;
        let offset = usize::from(fixed[12] >> 4) * 4;
        let options = bytes
            .get(FIXED..offset)
            .ok_or(Malformed("TCP data offset contradicts the packet"))?;
        if pseudo.bytes(bytes).finish() != 0 {
            return Err(Malformed("TCP checksum is wrong"));
        }
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let number = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        Ok(Segment {
            header: Header {
                source_port: word(0),
                destination_port: word(2),
                sequence: number(4),
                acknowledgment: number(8),
                flags: fixed[13],
                window: word(14),
            },
            options,
            payload: &bytes[offset..],
        })
    }

    fn emit(&self, pseudo: Sum, out: &mut Vec<u8>) {
        debug_assert!(self.options.len().is_multiple_of(4) && self.options.len() <= 40);
        let Header {
            source_port,
            destination_port,
            sequence,
            acknowledgment,
            flags,
            window,
        } = self.header;
        let start = out.len();
        out.extend_from_slice(&source_port.to_be_bytes());
        out.extend_from_slice(&destination_port.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        out.extend_from_slice(&acknowledgment.to_be_bytes());
        out.extend_from_slice(&[((FIXED + self.options.len()) as u8 / 4) << 4, flags]);
        out.extend_from_slice(&window.to_be_bytes());
        // checksum and urgent pointer
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(self.options);
        out.extend_from_slice(self.payload);
        let sum = pseudo.bytes(&out[start..]).finish();
        out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(
            ports: [u16; 2], numbers: [u32; 2], flags: u8, window: u16, words in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
            payload: Vec<u8>, s: [u8; 16], d: [u8; 16], s4: [u8; 4], d4: [u8; 4],
        ) {
            let header = Header {
                source_port: ports[0],
                destination_port: ports[1],
                sequence: numbers[0],
                acknowledgment: numbers[1],
                flags,
                window,
            };
            let options = words.concat();
            let segment = Segment { header, options: &options, payload: &payload };
            let mut bytes = Vec::new();
            segment.emit_v4(s4.into(), d4.into(), &mut bytes);
            prop_assert_eq!(Segment::parse_v4(&bytes, s4.into(), d4.into()), Ok(segment));
            let head = FIXED + options.len();
            prop_assert!((0..head).all(|n| Segment::parse_v4(&bytes[..n], s4.into(), d4.into()).is_err()));
            let mut bytes = Vec::new();
            segment.emit_v6(s.into(), d.into(), &mut bytes);
            prop_assert_eq!(Segment::parse_v6(&bytes, s.into(), d.into()), Ok(segment));
        }

        #[test]
        fn a_changed_octet_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..50), at: prop::sample::Index, flip in 1u8..) {
            let header = Header { source_port: 1, destination_port: 2, sequence: 3, acknowledgment: 4, flags: ACK, window: 5 };
            let (s, d) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
            let mut bytes = Vec::new();
            Segment { header, options: &[], payload: &payload }.emit_v6(s, d, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(Segment::parse_v6(&bytes, s, d).is_err());
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Segment::parse(&bytes, Sum::default());
        }
    }

    #[test]
    fn data_offsets_below_the_header_are_refused() {
        for words in 0..5 {
            let mut bytes = [0; 24];
            bytes[12] = words << 4;
            let sum = Sum::default().bytes(&bytes).finish();
            bytes[16..18].copy_from_slice(&sum.to_be_bytes());
            assert!(Segment::parse(&bytes, Sum::default()).is_err());
        }
    }

    #[test]
    fn syn_and_fin_take_a_number_each() {
        let of = |flags, payload| {
            let header = Header {
                source_port: 1,
                destination_port: 2,
                sequence: 3,
                acknowledgment: 4,
                flags,
                window: 5,
            };
            Segment {
                header,
                options: &[],
                payload,
            }
            .taken()
        };
        assert_eq!(of(SYN, &[][..]), 1);
        assert_eq!(of(ACK | FIN, &[7; 10][..]), 11);
        assert_eq!(of(ACK, &[][..]), 0);
    }
}
