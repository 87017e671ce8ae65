//! Codecs of every protocol that the gateway speaks, and nothing else.
//!
//! A codec is a total function: any bytes either parse or are refused with [`Malformed`]; nothing panics and nothing
//! reads past the end. Owned values (`Repr`-like structs) serve the control plane, borrowed views the user plane.
//!
//! Every crate may call it; it calls none. One module is one protocol, and layers are put together by hand:
//!
//! ```
//! use wire::{eth, pppoe};
//!
//! let mut frame = Vec::new();
//! eth::Header {
//!     destination: eth::MacAddr::BROADCAST,
//!     source: "02:00:00:00:00:01".parse()?,
//!     tags: eth::Tags::qinq(100, 7),
//!     ethertype: eth::PPPOE_DISCOVERY,
//! }
//! .emit(&mut frame);
//! let tags = vec![pppoe::Tag::ServiceName(b"")];
//! pppoe::Discovery { code: pppoe::PADI, session_id: 0, tags }.emit(&mut frame);
//!
//! let outer = eth::Frame::parse(&frame)?;
//! let padi = pppoe::Discovery::parse(outer.payload)?;
//! assert_eq!((outer.header.tags.to_string().as_str(), padi.code), ("100.7", pppoe::PADI));
//! # Ok::<(), wire::Malformed>(())
//! ```
#![forbid(unsafe_code)]

pub mod access_loop;
pub mod arp;
pub mod chap;
pub mod checksum;
pub mod dhcpv6;
pub mod eth;
pub mod gtpu;
pub mod icmp;
pub mod ipcp;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6cp;
pub mod lacp;
pub mod lcp;
pub mod mschapv2;
pub mod nd;
pub mod nsh;
#[cfg(test)]
mod octets;
pub mod pap;
pub mod pcap;
pub mod pfcp;
pub mod ppp;
pub mod pppoe;
pub mod radius;
pub mod tcp;
pub mod udp;

/// Why bytes were refused: the protocol and what was wrong, for logs and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// The result of parsing.
pub type Result<T> = core::result::Result<T, Malformed>;
