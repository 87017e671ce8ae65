//! ICMP (RFC 792) and ICMPv6 (RFC 4443) messages with their checksums; neighbor discovery is in [`crate::nd`].
//!
//! ```
//! use wire::icmp::{self, Message};
//!
//! let ping = Message::echo(icmp::V6_ECHO_REQUEST, 7, 1, b"data");
//! let (source, destination) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
//! let mut bytes = Vec::new();
//! ping.emit_v6(source, destination, &mut bytes);
//! let got = Message::parse_v6(&bytes, source, destination).unwrap();
//! assert_eq!(got.identifier_and_sequence(), (7, 1));
//! ```
use crate::checksum::{self, Sum, pseudo_v6};
use crate::{Malformed, Result, ipv6};
use core::net::Ipv6Addr;

/// ICMP: echo reply.
pub const V4_ECHO_REPLY: u8 = 0;
/// ICMP: destination unreachable.
pub const V4_UNREACHABLE: u8 = 3;
/// ICMP: echo request.
pub const V4_ECHO_REQUEST: u8 = 8;
/// ICMP: time exceeded.
pub const V4_TIME_EXCEEDED: u8 = 11;
/// ICMPv6: destination unreachable.
pub const V6_UNREACHABLE: u8 = 1;
/// ICMPv6: packet too big.
pub const V6_TOO_BIG: u8 = 2;
/// ICMPv6: time exceeded.
pub const V6_TIME_EXCEEDED: u8 = 3;
/// ICMPv6: echo request.
pub const V6_ECHO_REQUEST: u8 = 128;
/// ICMPv6: echo reply.
pub const V6_ECHO_REPLY: u8 = 129;

/// A message of either version: they differ in numbers and in what the checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// The second word: identifier and sequence number, MTU, or unused.
    pub rest: [u8; 4],
    /// What follows: echoed data, or the packet that caused the error.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// An echo request or reply.
    pub const fn echo(kind: u8, identifier: u16, sequence: u16, payload: &'a [u8]) -> Self {
        let ([a, b], [c, d]) = (identifier.to_be_bytes(), sequence.to_be_bytes());
        Message {
            kind,
            code: 0,
            rest: [a, b, c, d],
            payload,
        }
    }

    /// Identifier and sequence number of an echo message.
    pub const fn identifier_and_sequence(&self) -> (u16, u16) {
        let [a, b, c, d] = self.rest;
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }

    /// Reads the payload of an IPv4 packet and checks the checksum.
    pub fn parse_v4(bytes: &'a [u8]) -> Result<Self> {
        Self::parse(bytes, Sum::default())
    }

    /// Reads the payload of an IPv6 packet and checks the checksum.
    pub fn parse_v6(bytes: &'a [u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Self> {
        Self::parse(
            bytes,
            pseudo_v6(source, destination, ipv6::ICMPV6, bytes.len() as u32),
        )
    }

    /// Appends the message as payload of an IPv4 packet.
    pub fn emit_v4(&self, out: &mut Vec<u8>) {
        self.emit(Sum::default(), out);
    }

    /// Appends the message as payload of an IPv6 packet.
    pub fn emit_v6(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) {
        let length = self.payload.len() as u32 + 8;
        self.emit(pseudo_v6(source, destination, ipv6::ICMPV6, length), out);
    }

    fn parse(bytes: &'a [u8], pseudo: Sum) -> Result<Self> {
        let (fixed, payload) = bytes
            .split_first_chunk::<8>()
            .ok_or(Malformed("ICMP message cut off"))?;
        if pseudo.bytes(bytes).finish() != 0 {
            return Err(Malformed("ICMP checksum is wrong"));
        }
        let rest = [fixed[4], fixed[5], fixed[6], fixed[7]];
        Ok(Message {
            kind: fixed[0],
            code: fixed[1],
            rest,
            payload,
        })
    }

    fn emit(&self, pseudo: Sum, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind, self.code, 0, 0]);
        out.extend_from_slice(&self.rest);
        out.extend_from_slice(self.payload);
        let sum: checksum::Sum = pseudo.bytes(&out[start..]);
        out[start + 2..start + 4].copy_from_slice(&sum.finish().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(kind: u8, code: u8, rest: [u8; 4], payload: Vec<u8>, s: [u8; 16], d: [u8; 16]) {
            let message = Message { kind, code, rest, payload: &payload };
            let mut bytes = Vec::new();
            message.emit_v4(&mut bytes);
            prop_assert_eq!(Message::parse_v4(&bytes), Ok(message));
            prop_assert!((0..8).all(|n| Message::parse_v4(&bytes[..n]).is_err()));
            let mut bytes = Vec::new();
            message.emit_v6(s.into(), d.into(), &mut bytes);
            prop_assert_eq!(Message::parse_v6(&bytes, s.into(), d.into()), Ok(message));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Message::parse_v4(&bytes);
            let _ = Message::parse_v6(&bytes, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        }
    }
}
