//! The Network Service Header (RFC 8300) as TR-459's control packet redirection uses it (CPR-NSH): MD type 2, a context
//! header of the Broadband Forum's class that names the access port, and a whole Ethernet frame.
//!
//! ```
//! use wire::nsh::Packet;
//!
//! let packet = Packet { logical_port: b"access0", frame: b"a whole Ethernet frame" };
//! let mut bytes = Vec::new();
//! packet.emit(&mut bytes).unwrap();
//! assert_eq!(Packet::parse(&bytes).unwrap(), packet);
//! ```
use crate::{Malformed, Result};

/// The metadata class of the Broadband Forum.
pub const CLASS_BBF: u16 = 0x0200;
/// The Broadband Forum's context header that names the logical port.
pub const TYPE_LOGICAL_PORT: u8 = 0x00;
/// Next protocol: Ethernet.
pub const NEXT_ETHERNET: u8 = 0x03;
/// The longest name of a port: a context header's length has seven bits.
pub const MAX_LOGICAL_PORT: usize = 127;

const MD_TYPE_2: u8 = 2;
/// Base header and service path header.
const FIXED: usize = 8;
const SHORT: Malformed = Malformed("NSH is cut short");

/// A frame and the access port that it came from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The access port.
    pub logical_port: &'a [u8],
    /// The frame with its tags, as it is on the wire.
    pub frame: &'a [u8],
}

/// The value of one context header, which is padded to four octets (RFC 8300 §2.5.1).
fn take_context<'a>(contexts: &mut &'a [u8]) -> Result<(u16, u8, &'a [u8])> {
    let (&[c0, c1, kind, length], rest) = contexts.split_first_chunk().ok_or(SHORT)?;
    let length = usize::from(length & 0x7f);
    let value = rest.get(..length).ok_or(SHORT)?;
    *contexts = rest.get(length.next_multiple_of(4)..).ok_or(SHORT)?;
    Ok((u16::from_be_bytes([c0, c1]), kind, value))
}

impl<'a> Packet<'a> {
    /// Parses what a default tunnel carries. Context headers of other kinds are skipped.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some((&[b0, b1, md_type, next, ..], _)) = bytes.split_first_chunk::<FIXED>() else {
            return Err(SHORT);
        };
        // Version 0, and no OAM packet: those carry no frame for us (RFC 8300 §2.2).
        if b0 & 0xe0 != 0 {
            return Err(Malformed("NSH of another version, or OAM"));
        }
        if md_type & 0x0f != MD_TYPE_2 || next != NEXT_ETHERNET {
            return Err(Malformed("NSH without metadata of type 2 around Ethernet"));
        }
        let length = usize::from(b1 & 0x3f) * 4;
        let mut contexts = bytes.get(FIXED..length).ok_or(SHORT)?;
        let mut logical_port = None;
        while !contexts.is_empty() {
            let (class, kind, value) = take_context(&mut contexts)?;
            if (class, kind) == (CLASS_BBF, TYPE_LOGICAL_PORT) {
                logical_port = logical_port.or(Some(value));
            }
        }
        let logical_port = logical_port.ok_or(Malformed("NSH without a logical port"))?;
        Ok(Packet {
            logical_port,
            frame: &bytes[length..],
        })
    }

    /// Appends header and frame. A port with a longer name than [`MAX_LOGICAL_PORT`] cannot be sent; then nothing is
    /// appended.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<()> {
        let port = self.logical_port;
        if port.len() > MAX_LOGICAL_PORT {
            return Err(Malformed("logical port of more than 127 octets"));
        }
        let padded = port.len().next_multiple_of(4);
        let words = ((FIXED + 4 + padded) / 4) as u8;
        // TTL 63, the default (RFC 8300 §2.2): bits 4 to 9 of the header.
        out.extend_from_slice(&[0x0f, 0xc0 | words, MD_TYPE_2, NEXT_ETHERNET]);
        // There is no service path between the planes: identifier 0, index 255, from where it counts down.
        out.extend_from_slice(&[0, 0, 0, 255]);
        let [class_high, class_low] = CLASS_BBF.to_be_bytes();
        out.extend_from_slice(&[class_high, class_low, TYPE_LOGICAL_PORT, port.len() as u8]);
        out.extend_from_slice(port);
        out.resize(out.len() + padded - port.len(), 0);
        out.extend_from_slice(self.frame);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse_is_identity(
            port in prop::collection::vec(any::<u8>(), 0..=MAX_LOGICAL_PORT),
            frame in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let packet = Packet { logical_port: &port, frame: &frame };
            let mut bytes = Vec::new();
            packet.emit(&mut bytes).unwrap();
            prop_assert_eq!(Packet::parse(&bytes).unwrap(), packet);
            for end in 0..bytes.len() - frame.len() {
                prop_assert!(Packet::parse(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn any_octets_are_parsed_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..96), valid in any::<bool>()) {
            if valid && bytes.len() >= 4 {
                bytes[0] &= 0x1f;
                bytes[1] %= 24;
                (bytes[2], bytes[3]) = (MD_TYPE_2, NEXT_ETHERNET);
            }
            let _ = Packet::parse(&bytes);
        }
    }

    #[test]
    fn the_header_on_the_wire() {
        let mut bytes = Vec::new();
        Packet {
            logical_port: b"acc01",
            frame: &[0xee],
        }
        .emit(&mut bytes)
        .unwrap();
        assert_eq!(
            bytes,
            [
                0x0f, 0xc5, 0x02, 0x03, 0, 0, 0, 255, // length is 5 words
                0x02, 0x00, 0x00, 5, b'a', b'c', b'c', b'0', b'1', 0, 0,
                0, // padded to four octets
                0xee,
            ]
        );
    }

    #[test]
    fn other_context_headers_are_skipped() {
        let bytes = [
            0x0f, 0xc5, 0x02, 0x03, 0, 0, 0, 255, 0x01, 0x00, 0x07, 0, 0x02, 0x00, 0x00, 2, b'a',
            b'1', 0, 0, 0xee,
        ];
        assert_eq!(
            Packet::parse(&bytes),
            Ok(Packet {
                logical_port: b"a1",
                frame: &[0xee]
            })
        );
    }

    #[test]
    fn what_is_not_cpr_nsh_is_refused() {
        let mut good = Vec::new();
        Packet {
            logical_port: b"a",
            frame: b"f",
        }
        .emit(&mut good)
        .unwrap();
        for (at, value) in [(0, 0x4f), (0, 0x2f), (1, 0xc1), (2, 1), (3, 1), (10, 1)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(Packet::parse(&bad).is_err(), "octet {at} = {value:#x}");
        }
    }

    #[test]
    fn a_port_with_too_long_a_name_is_refused() {
        let mut bytes = Vec::new();
        assert!(
            Packet {
                logical_port: &[b'a'; 128],
                frame: b""
            }
            .emit(&mut bytes)
            .is_err()
        );
        assert!(bytes.is_empty());
    }
}
