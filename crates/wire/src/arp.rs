//! ARP for IPv4 over Ethernet (RFC 826).
//!
//! ```
//! use wire::{arp::{Packet, REQUEST}, eth::MacAddr};
//!
//! let request = Packet {
//!     operation: REQUEST,
//!     sender_mac: MacAddr([2, 0, 0, 0, 0, 1]),
//!     sender_ip: [192, 0, 2, 1].into(),
//!     target_mac: MacAddr::ZERO,
//!     target_ip: [192, 0, 2, 2].into(),
//! };
//! let mut bytes = Vec::new();
//! request.emit(&mut bytes);
//! assert_eq!(Packet::parse(&bytes), Ok(request));
//! ```
use crate::eth::MacAddr;
use crate::{Malformed, Result};
use core::net::Ipv4Addr;

/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: I have it.
pub const REPLY: u16 = 2;

/// Hardware type Ethernet, protocol type IPv4, lengths 6 and 4.
const PREFIX: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// An ARP packet; what follows it in the frame is padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// [`REQUEST`], [`REPLY`], or another.
    pub operation: u16,
    /// Who sends.
    pub sender_mac: MacAddr,
    /// The sender's address.
    pub sender_ip: Ipv4Addr,
    /// Whom it is for; zero in a request.
    pub target_mac: MacAddr,
    /// The address asked for.
    pub target_ip: Ipv4Addr,
}

impl Packet {
    /// Reads the payload of an ARP frame.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (fixed, _) = bytes
            .split_first_chunk::<28>()
            .ok_or(Malformed("ARP packet cut off"))?;
        if fixed[..6] != PREFIX {
            return Err(Malformed("ARP packet is not for IPv4 over Ethernet"));
        }
        let mac = |at: usize| MacAddr(core::array::from_fn(|i| fixed[at + i]));
        let ip = |at: usize| Ipv4Addr::from_octets(core::array::from_fn(|i| fixed[at + i]));
        Ok(Packet {
            operation: u16::from_be_bytes([fixed[6], fixed[7]]),
            sender_mac: mac(8),
            sender_ip: ip(14),
            target_mac: mac(18),
            target_ip: ip(24),
        })
    }

    /// Appends the 28 octets to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PREFIX);
        out.extend_from_slice(&self.operation.to_be_bytes());
        out.extend_from_slice(&self.sender_mac.0);
        out.extend_from_slice(&self.sender_ip.octets());
        out.extend_from_slice(&self.target_mac.0);
        out.extend_from_slice(&self.target_ip.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(operation: u16, sm: [u8; 6], si: [u8; 4], tm: [u8; 6], ti: [u8; 4], padding: Vec<u8>) {
            let packet = Packet {
                operation,
                sender_mac: MacAddr(sm),
                sender_ip: si.into(),
                target_mac: MacAddr(tm),
                target_ip: ti.into(),
            };
            let mut bytes = Vec::new();
            packet.emit(&mut bytes);
            prop_assert!((0..bytes.len()).all(|n| Packet::parse(&bytes[..n]).is_err()));
            bytes.extend_from_slice(&padding);
            prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Packet::parse(&bytes);
        }
    }
}
