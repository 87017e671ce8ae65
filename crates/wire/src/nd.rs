//! Neighbor discovery (RFC 4861): RS, RA, NS, NA, with the options that an access gateway needs (prefix, MTU,
//! link-layer addresses, RDNSS of RFC 8106).
//!
//! ```
//! use wire::nd::{Message, Packet};
//!
//! let solicitation = Packet {
//!     source: "fe80::1".parse().unwrap(),
//!     destination: wire::ipv6::ALL_ROUTERS,
//!     message: Message::RouterSolicitation { options: vec![] },
//! };
//! let mut bytes = Vec::new();
//! solicitation.emit(&mut bytes);
//! assert_eq!(Packet::parse(&bytes), Ok(solicitation));
//! ```
use crate::checksum::pseudo_v6;
use crate::eth::MacAddr;
use crate::{Malformed, Result, ipv6};
use core::net::Ipv6Addr;

/// ICMPv6 type of a router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// ICMPv6 type of a router advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// ICMPv6 type of a neighbor solicitation.
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// ICMPv6 type of a neighbor advertisement.
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;

/// A discovery message with the addresses of its IPv6 packet, which always has hop limit 255.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// The message.
    pub message: Message,
}

/// A neighbor discovery message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A host asks for routers.
    RouterSolicitation {
        /// Options.
        options: Vec<Opt>,
    },
    /// A router says who it is.
    RouterAdvertisement(RouterAdvertisement),
    /// Who has this address?
    NeighborSolicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// Options.
        options: Vec<Opt>,
    },
    /// I have it.
    NeighborAdvertisement {
        /// Is the sender a router?
        router: bool,
        /// Is this an answer?
        solicited: bool,
        /// May it replace what is cached?
        override_cache: bool,
        /// The address in question.
        target: Ipv6Addr,
        /// Options.
        options: Vec<Opt>,
    },
}

/// The body of a router advertisement (RFC 4861 §4.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterAdvertisement {
    /// The hop limit that hosts should use; 0 says nothing.
    pub hop_limit: u8,
    /// M: addresses come by DHCPv6.
    pub managed: bool,
    /// O: other configuration comes by DHCPv6.
    pub other: bool,
    /// The other six bits of the flags octet (H, preference of RFC 4191, reserved), kept as they are.
    pub other_flags: u8,
    /// Seconds as default router; 0 if not one.
    pub router_lifetime: u16,
    /// Milliseconds a neighbor counts as reachable; 0 says nothing.
    pub reachable_time: u32,
    /// Milliseconds between solicitations; 0 says nothing.
    pub retransmit_time: u32,
    /// Options.
    pub options: Vec<Opt>,
}

/// An option of a discovery message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// Source link-layer address.
    SourceLinkLayer(MacAddr),
    /// Target link-layer address.
    TargetLinkLayer(MacAddr),
    /// Prefix information.
    Prefix(PrefixInformation),
    /// The link's MTU.
    Mtu(u32),
    /// Recursive DNS servers (RFC 8106 §5.1).
    Rdnss {
        /// Seconds that they may be used.
        lifetime: u32,
        /// The servers.
        servers: Vec<Ipv6Addr>,
    },
    /// Any other option, and a known one of unusual form.
    Unknown {
        /// Option type.
        kind: u8,
        /// What follows type and length: 8n - 2 octets.
        data: Vec<u8>,
    },
}

/// Prefix information (RFC 4861 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    /// The prefix.
    pub prefix: Ipv6Addr,
    /// Its length in bits.
    pub length: u8,
    /// L: the prefix is on the link.
    pub on_link: bool,
    /// A: hosts may form addresses from it.
    pub autonomous: bool,
    /// Seconds that the prefix is valid; all ones is for ever.
    pub valid_lifetime: u32,
    /// Seconds that its addresses are preferred.
    pub preferred_lifetime: u32,
}

impl Packet {
    /// Reads a whole IPv6 packet, with the checks of RFC 4861 §6.1 and §7.1: hop limit 255, code 0, checksum, option
    /// lengths.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let packet = ipv6::Packet::parse(bytes)?;
        let ipv6::Header {
            next_header,
            hop_limit,
            source,
            destination,
            ..
        } = packet.header;
        if next_header != ipv6::ICMPV6 {
            return Err(Malformed("not an ICMPv6 packet"));
        }
        if hop_limit != 255 {
            return Err(Malformed(
                "ND packet has crossed a router: its hop limit is not 255",
            ));
        }
        let message = Message::parse(packet.payload, source, destination)?;
        Ok(Packet {
            source,
            destination,
            message,
        })
    }

    /// Appends the IPv6 packet to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(64);
        self.message
            .emit(self.source, self.destination, &mut payload);
        let header = ipv6::Header {
            hop_limit: 255,
            ..ipv6::Header::new(ipv6::ICMPV6, self.source, self.destination)
        };
        ipv6::Packet {
            header,
            payload: &payload,
        }
        .emit(out);
    }
}

impl Message {
    /// Reads an ICMPv6 message.
    pub fn parse(bytes: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Self> {
        let (fixed, body) = bytes
            .split_first_chunk::<4>()
            .ok_or(Malformed("ND message cut off"))?;
        if pseudo_v6(source, destination, ipv6::ICMPV6, bytes.len() as u32)
            .bytes(bytes)
            .finish()
            != 0
        {
            return Err(Malformed("ND checksum is wrong"));
        }
        if fixed[1] != 0 {
            return Err(Malformed("ND code is not 0"));
        }
        match fixed[0] {
            ROUTER_SOLICITATION => {
                let (_, options) = body
                    .split_first_chunk::<4>()
                    .ok_or(Malformed("RS cut off"))?;
                Ok(Message::RouterSolicitation {
                    options: Opt::parse_all(options)?,
                })
            }
            ROUTER_ADVERTISEMENT => {
                RouterAdvertisement::parse(body).map(Message::RouterAdvertisement)
            }
            NEIGHBOR_SOLICITATION => {
                let (_, target, options) = flags_and_target(body)?;
                Ok(Message::NeighborSolicitation { target, options })
            }
            NEIGHBOR_ADVERTISEMENT => {
                let (flags, target, options) = flags_and_target(body)?;
                Ok(Message::NeighborAdvertisement {
                    router: flags & 0x80 != 0,
                    solicited: flags & 0x40 != 0,
                    override_cache: flags & 0x20 != 0,
                    target,
                    options,
                })
            }
            _ => Err(Malformed("not RS, RA, NS or NA")),
        }
    }

    /// Appends the ICMPv6 message to `out`.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind(), 0, 0, 0]);
        let options = match self {
            Message::RouterSolicitation { options } => {
                out.extend_from_slice(&[0; 4]);
                options
            }
            Message::RouterAdvertisement(ra) => {
                ra.emit_fixed(out);
                &ra.options
            }
            Message::NeighborSolicitation { target, options } => {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&target.octets());
                options
            }
            Message::NeighborAdvertisement {
                router,
                solicited,
                override_cache,
                target,
                options,
            } => {
                let flags = u8::from(*router) << 7
                    | u8::from(*solicited) << 6
                    | u8::from(*override_cache) << 5;
                out.extend_from_slice(&[flags, 0, 0, 0]);
                out.extend_from_slice(&target.octets());
                options
            }
        };
        for option in options {
            option.emit(out);
        }
        let length = (out.len() - start) as u32;
        let sum = pseudo_v6(source, destination, ipv6::ICMPV6, length)
            .bytes(&out[start..])
            .finish();
        out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
    }

    fn kind(&self) -> u8 {
        match self {
            Message::RouterSolicitation { .. } => ROUTER_SOLICITATION,
            Message::RouterAdvertisement(_) => ROUTER_ADVERTISEMENT,
            Message::NeighborSolicitation { .. } => NEIGHBOR_SOLICITATION,
            Message::NeighborAdvertisement { .. } => NEIGHBOR_ADVERTISEMENT,
        }
    }
}

fn flags_and_target(body: &[u8]) -> Result<(u8, Ipv6Addr, Vec<Opt>)> {
    let cut = Malformed("NS or NA cut off");
    let (&[flags, ..], rest) = body.split_first_chunk::<4>().ok_or(cut)?;
    let (&target, options) = rest.split_first_chunk::<16>().ok_or(cut)?;
    Ok((flags, target.into(), Opt::parse_all(options)?))
}

impl RouterAdvertisement {
    fn parse(body: &[u8]) -> Result<Self> {
        let (fixed, options) = body
            .split_first_chunk::<12>()
            .ok_or(Malformed("RA cut off"))?;
        Ok(RouterAdvertisement {
            hop_limit: fixed[0],
            managed: fixed[1] & 0x80 != 0,
            other: fixed[1] & 0x40 != 0,
            other_flags: fixed[1] & 0x3f,
            router_lifetime: u16::from_be_bytes([fixed[2], fixed[3]]),
            reachable_time: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            retransmit_time: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
            options: Opt::parse_all(options)?,
        })
    }

    fn emit_fixed(&self, out: &mut Vec<u8>) {
        let flags =
            u8::from(self.managed) << 7 | u8::from(self.other) << 6 | (self.other_flags & 0x3f);
        out.extend_from_slice(&[self.hop_limit, flags]);
        out.extend_from_slice(&self.router_lifetime.to_be_bytes());
        out.extend_from_slice(&self.reachable_time.to_be_bytes());
        out.extend_from_slice(&self.retransmit_time.to_be_bytes());
    }
}

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const RDNSS: u8 = 25;

impl Opt {
    /// Reads options up to the end; a length of 0 or beyond the message refuses the whole (RFC 4861 §4.6).
    pub fn parse_all(mut bytes: &[u8]) -> Result<Vec<Self>> {
        let mut options = Vec::new();
        while !bytes.is_empty() {
            let &[kind, units] = bytes.first_chunk().ok_or(Malformed("ND option cut off"))?;
            let length = usize::from(units) * 8;
            let data = bytes
                .get(2..length)
                .ok_or(Malformed("ND option length is 0 or beyond the message"))?;
            options.push(Self::parse(kind, data));
            bytes = &bytes[length..];
        }
        Ok(options)
    }

    fn parse(kind: u8, data: &[u8]) -> Self {
        match (kind, data) {
            (SOURCE_LINK_LAYER, &[a, b, c, d, e, f]) => {
                Opt::SourceLinkLayer(MacAddr([a, b, c, d, e, f]))
            }
            (TARGET_LINK_LAYER, &[a, b, c, d, e, f]) => {
                Opt::TargetLinkLayer(MacAddr([a, b, c, d, e, f]))
            }
            (MTU, &[0, 0, a, b, c, d]) => Opt::Mtu(u32::from_be_bytes([a, b, c, d])),
            _ => parse_prefix(kind, data)
                .or_else(|| parse_rdnss(kind, data))
                .unwrap_or_else(|| Opt::Unknown {
                    kind,
                    data: data.to_vec(),
                }),
        }
    }

    /// Appends the option to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Opt::SourceLinkLayer(mac) => emit_option(SOURCE_LINK_LAYER, &[&mac.0], out),
            Opt::TargetLinkLayer(mac) => emit_option(TARGET_LINK_LAYER, &[&mac.0], out),
            Opt::Mtu(mtu) => emit_option(MTU, &[&[0, 0], &mtu.to_be_bytes()], out),
            Opt::Prefix(p) => {
                let flags = u8::from(p.on_link) << 7 | u8::from(p.autonomous) << 6;
                let (valid, preferred) = (
                    p.valid_lifetime.to_be_bytes(),
                    p.preferred_lifetime.to_be_bytes(),
                );
                emit_option(
                    PREFIX,
                    &[
                        &[p.length, flags],
                        &valid,
                        &preferred,
                        &[0; 4],
                        &p.prefix.octets(),
                    ],
                    out,
                );
            }
            Opt::Rdnss { lifetime, servers } => {
                let servers: Vec<u8> = servers.iter().flat_map(|s| s.octets()).collect();
                emit_option(RDNSS, &[&[0, 0], &lifetime.to_be_bytes(), &servers], out);
            }
            Opt::Unknown { kind, data } => emit_option(*kind, &[data], out),
        }
    }
}

/// An option is as long as a multiple of 8 octets, at most 2,040.
fn emit_option(kind: u8, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length = 2 + parts.iter().map(|p| p.len()).sum::<usize>();
    debug_assert!(length.is_multiple_of(8) && length <= 2040);
    out.extend_from_slice(&[kind, (length / 8) as u8]);
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn parse_prefix(kind: u8, data: &[u8]) -> Option<Opt> {
    let fixed: &[u8; 30] = data.try_into().ok().filter(|_| kind == PREFIX)?;
    let (head, prefix) = fixed.split_last_chunk::<16>()?;
    let &[length, flags, a, b, c, d, e, f, g, h, 0, 0, 0, 0] = head else {
        return None;
    };
    if flags & 0x3f != 0 || length > 128 {
        return None;
    }
    Some(Opt::Prefix(PrefixInformation {
        prefix: (*prefix).into(),
        length,
        on_link: flags & 0x80 != 0,
        autonomous: flags & 0x40 != 0,
        valid_lifetime: u32::from_be_bytes([a, b, c, d]),
        preferred_lifetime: u32::from_be_bytes([e, f, g, h]),
    }))
}

fn parse_rdnss(kind: u8, data: &[u8]) -> Option<Opt> {
    let (&[r1, r2, a, b, c, d], servers) =
        data.split_first_chunk::<6>().filter(|_| kind == RDNSS)?;
    if [r1, r2] != [0, 0] || servers.is_empty() || !servers.len().is_multiple_of(16) {
        return None;
    }
    let address = |octets: &[u8]| <[u8; 16]>::try_from(octets).map(Ipv6Addr::from).ok();
    let servers = servers
        .chunks_exact(16)
        .map(address)
        .collect::<Option<_>>()?;
    Some(Opt::Rdnss {
        lifetime: u32::from_be_bytes([a, b, c, d]),
        servers,
    })
}

#[cfg(test)]
#[path = "nd_tests.rs"]
mod tests;
