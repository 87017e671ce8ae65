//! PPP frames from the protocol field on, the packet format that all PPP control protocols share, and the format of
//! their options (RFC 1661 §2, §5, §6).
//!
//! ```
//! use wire::ppp::{self, Control, Frame, RawOption};
//!
//! let mut options = Vec::new();
//! RawOption { kind: 1, data: &1492u16.to_be_bytes() }.emit(&mut options);
//! let mut bytes = Vec::new();
//! Control { code: ppp::CONFIGURE_REQUEST, id: 1, data: &options }.emit(ppp::LCP, &mut bytes);
//!
//! let frame = Frame::parse(&bytes).unwrap();
//! assert_eq!(frame.protocol, ppp::LCP);
//! let packet = Control::parse(frame.payload).unwrap();
//! let first = RawOption::iter(packet.data).next().unwrap().unwrap();
//! assert_eq!((first.kind, first.data), (1, &[0x05, 0xd4][..]));
//! ```
use crate::{Malformed, Result};

/// Protocol: an IPv4 packet.
pub const IPV4: u16 = 0x0021;
/// Protocol: an IPv6 packet.
pub const IPV6: u16 = 0x0057;
/// Protocol: IPCP (RFC 1332).
pub const IPCP: u16 = 0x8021;
/// Protocol: IPV6CP (RFC 5072).
pub const IPV6CP: u16 = 0x8057;
/// Protocol: CCP (RFC 1962), which we refuse.
pub const CCP: u16 = 0x80fd;
/// Protocol: LCP (RFC 1661).
pub const LCP: u16 = 0xc021;
/// Protocol: PAP (RFC 1334).
pub const PAP: u16 = 0xc023;
/// Protocol: CHAP (RFC 1994).
pub const CHAP: u16 = 0xc223;

/// Code of every control protocol: Configure-Request.
pub const CONFIGURE_REQUEST: u8 = 1;
/// Code: Configure-Ack.
pub const CONFIGURE_ACK: u8 = 2;
/// Code: Configure-Nak.
pub const CONFIGURE_NAK: u8 = 3;
/// Code: Configure-Reject.
pub const CONFIGURE_REJECT: u8 = 4;
/// Code: Terminate-Request.
pub const TERMINATE_REQUEST: u8 = 5;
/// Code: Terminate-Ack.
pub const TERMINATE_ACK: u8 = 6;
/// Code: Code-Reject.
pub const CODE_REJECT: u8 = 7;

/// A frame from the protocol field on, as PPPoE carries it: the field has always two octets (RFC 2516 §7 advises
/// against compression, and we refuse it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The protocol number.
    pub protocol: u16,
    /// What follows.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the protocol field. A number whose first octet is odd or last octet is even is none (RFC 1661 §2).
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (&[high, low], payload) = bytes
            .split_first_chunk()
            .ok_or(Malformed("PPP frame without protocol field"))?;
        if high & 1 != 0 || low & 1 == 0 {
            return Err(Malformed("PPP protocol number is impossible"));
        }
        Ok(Frame {
            protocol: u16::from_be_bytes([high, low]),
            payload,
        })
    }

    /// Appends the frame to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.protocol.to_be_bytes());
        out.extend_from_slice(self.payload);
    }
}

/// A packet of LCP, an NCP, PAP or CHAP: code, identifier, length, data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Control<'a> {
    /// What kind of packet it is.
    pub code: u8,
    /// Matches requests and replies.
    pub id: u8,
    /// What the length field covers behind itself.
    pub data: &'a [u8],
}

impl<'a> Control<'a> {
    /// Reads the payload of a frame; octets beyond the length field are padding.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let &[code, id, a, b] = bytes
            .first_chunk()
            .ok_or(Malformed("PPP control packet cut off"))?;
        let length = usize::from(u16::from_be_bytes([a, b]));
        let data = bytes
            .get(4..length)
            .ok_or(Malformed("PPP control packet length contradicts the frame"))?;
        Ok(Control { code, id, data })
    }

    /// Appends the frame of `protocol` that holds this packet. The data must fit into 65,531 octets.
    pub fn emit(&self, protocol: u16, out: &mut Vec<u8>) {
        debug_assert!(self.data.len() + 4 <= 0xffff);
        out.extend_from_slice(&protocol.to_be_bytes());
        out.extend_from_slice(&[self.code, self.id]);
        out.extend_from_slice(&((self.data.len() + 4) as u16).to_be_bytes());
        out.extend_from_slice(self.data);
    }
}

/// Without the data, which may hold a password.
impl core::fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Control {{ code: {}, id: {}, data: {} octets }}",
            self.code,
            self.id,
            self.data.len()
        )
    }
}

/// A configuration option before its protocol gives it a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Option type.
    pub kind: u8,
    /// What follows type and length: at most 253 octets.
    pub data: &'a [u8],
}

impl<'a> RawOption<'a> {
    /// The options of a configure packet; after the first malformed one the iterator ends.
    pub fn iter(mut bytes: &'a [u8]) -> impl Iterator<Item = Result<RawOption<'a>>> {
        core::iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            let option = Self::split_first(bytes);
            bytes = option.map_or(&[], |(_, rest)| rest);
            Some(option.map(|(option, _)| option))
        })
    }

    fn split_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8])> {
        let &[kind, length] = bytes.first_chunk().ok_or(Malformed("PPP option cut off"))?;
        let length = usize::from(length);
        let data = bytes.get(2..length).ok_or(Malformed(
            "PPP option length is below 2 or beyond the packet",
        ))?;
        Ok((RawOption { kind, data }, &bytes[length..]))
    }

    /// Appends the option to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        debug_assert!(self.data.len() <= 253);
        out.extend_from_slice(&[self.kind, (self.data.len() + 2) as u8]);
        out.extend_from_slice(self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frame_emit_then_parse(high: u8, low: u8, payload: Vec<u8>) {
            let protocol = u16::from_be_bytes([high & !1, low | 1]);
            let mut bytes = Vec::new();
            Frame { protocol, payload: &payload }.emit(&mut bytes);
            prop_assert_eq!(Frame::parse(&bytes), Ok(Frame { protocol, payload: &payload }));
        }

        #[test]
        fn control_emit_then_parse(code: u8, id: u8, data: Vec<u8>, padding: Vec<u8>) {
            let mut bytes = Vec::new();
            Control { code, id, data: &data }.emit(LCP, &mut bytes);
            prop_assert!((2..bytes.len()).all(|n| Control::parse(&bytes[2..n]).is_err()));
            bytes.extend_from_slice(&padding);
            let frame = Frame::parse(&bytes).unwrap();
            prop_assert_eq!(frame.protocol, LCP);
            prop_assert_eq!(Control::parse(frame.payload), Ok(Control { code, id, data: &data }));
        }

        #[test]
        fn options_emit_then_parse(options in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..=253)), 0..6)) {
            let options: Vec<_> = options.iter().map(|(kind, data)| RawOption { kind: *kind, data }).collect();
            let mut bytes = Vec::new();
            options.iter().for_each(|o| o.emit(&mut bytes));
            prop_assert_eq!(RawOption::iter(&bytes).collect::<Result<Vec<_>>>(), Ok(options));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Frame::parse(&bytes);
            let _ = Control::parse(&bytes);
            let _ = RawOption::iter(&bytes).count();
        }
    }

    #[test]
    fn frames_of_length_0_to_3() {
        assert!(Frame::parse(&[]).is_err());
        assert!(Frame::parse(&[0xc0]).is_err());
        for bytes in [&[0xc0, 0x21][..], &[0xc0, 0x21, 1]] {
            let frame = Frame::parse(bytes).unwrap();
            assert!(Control::parse(frame.payload).is_err());
        }
    }

    #[test]
    fn option_lengths_0_and_1_are_refused() {
        for length in [0, 1] {
            assert!(RawOption::iter(&[1, length, 5, 220]).any(|option| option.is_err()));
        }
        assert_eq!(
            RawOption::iter(&[1, 2]).next(),
            Some(Ok(RawOption { kind: 1, data: &[] }))
        );
        assert!(RawOption::iter(&[1, 3]).next().unwrap().is_err());
        assert!(RawOption::iter(&[1]).next().unwrap().is_err());
    }

    #[test]
    fn control_lengths_below_4_are_refused() {
        for length in 0..4 {
            assert!(Control::parse(&[1, 1, 0, length, 0, 0]).is_err());
        }
    }

    #[test]
    fn debug_shows_no_data() {
        let text = format!(
            "{:?}",
            Control {
                code: 1,
                id: 2,
                data: b"secret"
            }
        );
        assert!(!text.contains("115") && !text.contains("secret"), "{text}");
    }
}
