//! The fields of a packet that rules and policers ask for, read from its window, and its code point.
use crate::nodes::ip::Family;
use acl::{Fragment, Packet4, Packet6, Upper};
use dpdk::{WINDOW, Window};
use wire::ipv4::{ICMP, TCP, UDP};
use wire::ipv6::ICMPV6;

/// Other protocols whose header begins with ports.
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Octets of the TCP header up to its flags.
const TCP_FLAGS: usize = 13;

/// How many octets of its header say what rules may ask, for each protocol; 0: they ask nothing of it.
const ASKED: [u8; 256] = {
    let mut asked = [0; 256];
    let ports = [UDP, ICMP, ICMPV6, SCTP, UDP_LITE, DCCP];
    let mut n = 0;
    while n < ports.len() {
        asked[ports[n] as usize] = 4;
        n += 1;
    }
    asked[TCP as usize] = TCP_FLAGS as u8 + 1;
    asked
};

/// What could be read of a packet.
pub(crate) struct Read<T> {
    pub packet: T,
    /// What rules may ask of the transport header is not known: it lies behind the window, the packet ends before, or another fragment
    /// may overwrite it.
    pub is_undetermined: bool,
}

/// Ports or types, and flags.
struct UpperLayer {
    source_port: u16,
    destination_port: u16,
    tcp_flags: u8,
    upper: Upper,
    is_undetermined: bool,
}

impl UpperLayer {
    const NONE: UpperLayer = UpperLayer {
        source_port: 0,
        destination_port: 0,
        tcp_flags: 0,
        upper: Upper::Unread,
        is_undetermined: false,
    };
    const UNDETERMINED: UpperLayer = UpperLayer {
        is_undetermined: true,
        ..UpperLayer::NONE
    };

    /// The header of a protocol at `at` of a packet that ends at `end`.
    #[inline(always)]
    fn read(w: &Window, protocol: u8, at: usize, end: usize) -> Self {
        let asked = usize::from(ASKED[usize::from(protocol)]);
        if asked == 0 {
            return UpperLayer::NONE;
        }
        // a first fragment need not hold the whole header: rules would not see what the receiver does (RFC 1858 §3)
        if at + asked > end.min(WINDOW) {
            return UpperLayer::UNDETERMINED;
        }
        let (tcp_flags, upper) = match protocol {
            TCP => (w.u8(at + TCP_FLAGS), Upper::Flags),
            _ => (0, Upper::Ports),
        };
        let ports = w.u32(at);
        UpperLayer {
            source_port: (ports >> 16) as u16,
            destination_port: ports as u16,
            tcp_flags,
            upper,
            is_undetermined: false,
        }
    }

    /// What is known of it in a fragment at an offset, in units of 8 octets.
    #[inline(always)]
    fn of_later_fragment(protocol: u8, offset: u16) -> Self {
        // its octets may overwrite the flags that the first fragment showed (RFC 1858 §4, RFC 3128)
        match protocol == TCP && offset == 1 {
            true => UpperLayer::UNDETERMINED,
            false => UpperLayer::NONE,
        }
    }
}

/// The IPv4 packet of so many octets at `ip`, whose header is sound.
#[inline(always)]
pub(crate) fn read_v4(w: &Window, ip: usize, total: usize) -> Read<Packet4> {
    let (header, fragment) = (usize::from(w.u8(ip) & 0xf) * 4, w.u16(ip + 6));
    let protocol = w.u8(ip + 9);
    // offset, and the flag MF (RFC 791 §3.1)
    let (offset, more) = (fragment & 0x1fff, fragment & 0x2000 != 0);
    let (fragment, upper) = match offset {
        0 => {
            let upper = UpperLayer::read(w, protocol, ip + header, ip + total);
            (
                if more {
                    Fragment::First
                } else {
                    Fragment::None
                },
                upper,
            )
        }
        _ => (
            Fragment::Later,
            UpperLayer::of_later_fragment(protocol, offset),
        ),
    };
    Read {
        packet: Packet4 {
            source: w.u32(ip + 12),
            destination: w.u32(ip + 16),
            source_port: upper.source_port,
            destination_port: upper.destination_port,
            length: total as u16,
            protocol,
            dscp: dscp(w, Family::V4, ip),
            tcp_flags: upper.tcp_flags,
            fragment,
            upper: upper.upper,
        },
        is_undetermined: upper.is_undetermined,
    }
}

/// The IPv6 packet of so many octets at `ip`.
#[inline(always)]
pub(crate) fn read_v6(w: &Window, ip: usize, total: usize) -> Read<Packet6> {
    let next = w.u8(ip + 6);
    let chain = match is_extension(next) {
        false => Chain {
            protocol: next,
            at: ip + 40,
            fragment: Fragment::None,
            offset: 0,
            is_cut: false,
        },
        true => Chain::follow(w, next, ip + 40, ip + total),
    };
    let upper = match (chain.is_cut, chain.offset) {
        (true, _) => UpperLayer::UNDETERMINED,
        (false, 0) => UpperLayer::read(w, chain.protocol, chain.at, ip + total),
        (false, offset) => UpperLayer::of_later_fragment(chain.protocol, offset),
    };
    Read {
        packet: Packet6 {
            source: w.u128(ip + 8),
            destination: w.u128(ip + 24),
            source_port: upper.source_port,
            destination_port: upper.destination_port,
            length: total.min(usize::from(u16::MAX)) as u16,
            protocol: chain.protocol,
            dscp: dscp(w, Family::V6, ip),
            tcp_flags: upper.tcp_flags,
            fragment: chain.fragment,
            upper: upper.upper,
        },
        is_undetermined: upper.is_undetermined,
    }
}

/// Extension headers (RFC 8200 §4, RFC 4302, RFC 6275, RFC 7401, RFC 5533).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

#[inline(always)]
fn is_extension(next: u8) -> bool {
    matches!(
        next,
        HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION | MOBILITY | HIP | SHIM6
    )
}

/// Where a chain of extension headers ends.
struct Chain {
    /// What follows: the upper-layer protocol, or the extension header that could not be read.
    protocol: u8,
    at: usize,
    fragment: Fragment,
    /// Offset of the fragment, in units of 8 octets.
    offset: u16,
    /// It goes on behind the window or the packet's end. A first fragment has the whole chain (RFC 7112 §5).
    is_cut: bool,
}

impl Chain {
    /// Follows the headers from `at` to the packet's end. The window bounds how many there can be.
    #[cold]
    #[inline(never)]
    fn follow(w: &Window, mut next: u8, mut at: usize, end: usize) -> Self {
        let (mut fragment, mut offset) = (Fragment::None, 0);
        let mut is_cut = false;
        while is_extension(next) && offset == 0 {
            is_cut = at + 8 > end.min(WINDOW);
            if is_cut {
                break;
            }
            let length = match next {
                FRAGMENT => {
                    let field = w.u16(at + 2);
                    offset = field >> 3;
                    fragment = match (offset, field & 1) {
                        (0, 0) => fragment, // an atomic fragment is a whole datagram (RFC 6946)
                        (0, _) => Fragment::First,
                        _ => Fragment::Later,
                    };
                    8
                }
                AUTHENTICATION => (usize::from(w.u8(at + 1)) + 2) * 4,
                _ => (usize::from(w.u8(at + 1)) + 1) * 8,
            };
            next = w.u8(at);
            at += length;
        }
        Chain {
            protocol: next,
            at,
            fragment,
            offset,
            is_cut,
        }
    }
}

/// The differentiated services code point of the packet at `ip`.
#[inline(always)]
pub(crate) fn dscp(w: &Window, family: Family, ip: usize) -> u8 {
    match family {
        Family::V4 => w.u8(ip + 1) >> 2,
        Family::V6 => (w.u16(ip) >> 6) as u8 & 0x3f,
    }
}

/// The two bits of Explicit Congestion Notification of the packet at `ip` (RFC 3168 §5).
#[inline(always)]
pub(crate) fn ecn(w: &Window, family: Family, ip: usize) -> u8 {
    match family {
        Family::V4 => w.u8(ip + 1) & 3,
        Family::V6 => w.u8(ip + 1) >> 4 & 3,
    }
}

/// Whether the header of a protocol begins with ports.
#[inline(always)]
pub(crate) fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | SCTP | UDP_LITE | DCCP)
}

/// Sets the differentiated services code point of the packet at `ip`; what the ECN field says stays (RFC 3168 §5).
#[inline(always)]
pub(crate) fn mark(w: &mut Window, family: Family, ip: usize, dscp: u8) {
    match family {
        Family::V4 => mark_v4(w, ip, dscp),
        Family::V6 => w.put16(ip, w.u16(ip) & 0xf03f | u16::from(dscp) << 6),
    }
}

/// Sets the code point of the IPv4 packet at `ip`; its checksum stays right.
#[inline(always)]
fn mark_v4(w: &mut Window, ip: usize, dscp: u8) {
    let old = w.u16(ip);
    let new = old & 0xff03 | u16::from(dscp) << 2;
    w.put16(ip, new);
    // RFC 1624 §3: HC' = ~(~HC + ~m + m')
    let sum = u32::from(!w.u16(ip + 10)) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    w.put16(ip + 10, !((sum & 0xffff) + (sum >> 16)) as u16);
}

#[cfg(test)]
mod tests;
