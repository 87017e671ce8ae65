//! Node `mss`: no TCP connection is to begin with segments that the subscriber's session cannot carry (RFC 4459 §3.2): the
//! MSS that a SYN offers becomes what fits the session's MTU. It is never raised.
//!
//! Out: the packet.
use super::Exit;
use super::ip::Family;
use dpdk::{HEAD, Packet, Window};
use wire::{checksum, ipv4, ipv6};

/// TCP's header without options (RFC 9293 §3.1), and where its flags and its checksum are.
const TCP: usize = 20;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const SYN: u8 = 2;
/// The option's kind, and its length with both.
const MSS: u8 = 2;
const MSS_LENGTH: u8 = 4;

/// Whether a packet could be a SYN, at the price of a look: all are, and some others. Behind an extension header of IPv6 none
/// is looked for.
#[inline(always)]
pub(crate) fn may_be_syn(family: Family, w: &Window, ip: usize) -> bool {
    // 0 where it cannot be a SYN: with options the flags are elsewhere.
    let (protocol, syn) = match family {
        Family::V4 => (
            w.u8(ip + 9),
            (w.u8(ip) ^ 0x45) | w.u8(ip + 20 + FLAGS) & SYN,
        ),
        Family::V6 => (w.u8(ip + 6), w.u8(ip + 40 + FLAGS) & SYN),
    };
    // Of both in one comparison: packets of TCP and of UDP come in no order that could be foreseen.
    u32::from(protocol ^ ipv4::TCP) << 8 < u32::from(syn)
}

/// Lowers what a SYN of `total` octets at `ip` in the window offers to what fits `mtu`; leaves whatever else it is alone.
#[cold]
#[inline(never)]
pub(crate) fn clamp(
    packet: &mut Packet<'_, Exit>,
    family: Family,
    ip: usize,
    total: usize,
    mtu: u16,
) {
    // Options may lie behind the window.
    if let Some(packet) = packet.frame().get_mut(ip - HEAD..ip - HEAD + total) {
        lower(family, packet, mtu);
    }
}

/// The same for an IP packet whose header is sound.
fn lower(family: Family, packet: &mut [u8], mtu: u16) {
    let header = match family {
        // Of fragments the first alone has a TCP header.
        Family::V4 if packet[6] & 0x1f == 0 && packet[7] == 0 && packet[9] == ipv4::TCP => {
            (packet[0] & 15) as usize * 4
        }
        Family::V6 if packet[6] == ipv6::TCP => 40,
        _ => return,
    };
    // RFC 9293 §3.7.1: without the headers of IP and TCP, whatever options they have.
    let fixed = match family {
        Family::V4 => 20 + TCP,
        Family::V6 => 40 + TCP,
    };
    let most = mtu.saturating_sub(fixed as u16);
    let Some(tcp) = packet.get_mut(header..).filter(|tcp| tcp.len() >= TCP) else {
        return;
    };
    let end = ((tcp[12] >> 4) as usize * 4).min(tcp.len());
    if tcp[FLAGS] & SYN == 0 {
        return;
    }
    let mut at = TCP;
    while at < end {
        let size = match tcp[at] {
            0 => return, // the end of options
            1 => 1,      // no operation
            _ if at + 1 < end && tcp[at + 1] >= 2 => tcp[at + 1] as usize,
            _ => return,
        };
        if at + size > end {
            return;
        }
        if tcp[at] == MSS && size == MSS_LENGTH as usize {
            let old = u16::from_be_bytes([tcp[at + 2], tcp[at + 3]]);
            if old > most {
                tcp[at + 2..at + 4].copy_from_slice(&most.to_be_bytes());
                let sum = u16::from_be_bytes([tcp[CHECKSUM], tcp[CHECKSUM + 1]]);
                // At an odd place its octets are in the other halves of two words (RFC 1071 §2 (B)).
                let sum = match at % 2 {
                    0 => checksum::update(sum, old, most),
                    _ => checksum::update(sum, old.swap_bytes(), most.swap_bytes()),
                };
                tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
            }
        }
        at += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V4: ([u8; 4], [u8; 4]) = ([192, 0, 2, 1], [100, 64, 0, 7]);

    fn v6() -> (core::net::Ipv6Addr, core::net::Ipv6Addr) {
        let address = |text: &str| text.parse().unwrap();
        (address("2001:db8::1"), address("2001:db8:64::7"))
    }

    fn sum(family: Family, segment: &[u8]) -> u16 {
        let n = segment.len();
        let (from, to) = v6();
        let pseudo = match family {
            Family::V4 => checksum::pseudo_v4(V4.0.into(), V4.1.into(), ipv4::TCP, n as u16),
            Family::V6 => checksum::pseudo_v6(from, to, ipv6::TCP, n as u32),
        };
        pseudo.bytes(segment).finish()
    }

    fn segment(family: Family, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut options = options.to_vec();
        options.resize(options.len().next_multiple_of(4), 0);
        let mut s = vec![0x30, 0x39, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0];
        s.extend([((TCP + options.len()) as u8 / 4) << 4, flags, 0xfa, 0xf0]);
        s.extend([0; 4]);
        s.extend(&options);
        s.extend(payload);
        let sum = sum(family, &s);
        s[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        s
    }

    /// The segment in an IP packet; `words` of options in IPv4's header.
    fn packet(family: Family, words: usize, offset: u16, segment: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match family {
            Family::V4 => ipv4::Packet {
                header: ipv4::Header {
                    fragment_offset: offset,
                    ..ipv4::Header::new(ipv4::TCP, V4.0.into(), V4.1.into())
                },
                options: &vec![1; words * 4],
                payload: segment,
            }
            .emit(&mut out),
            Family::V6 => ipv6::Packet {
                header: ipv6::Header::new(ipv6::TCP, v6().0, v6().1),
                payload: segment,
            }
            .emit(&mut out),
        }
        out
    }

    /// What becomes of the segment.
    fn clamped(family: Family, words: usize, s: &[u8], mtu: u16) -> Vec<u8> {
        let mut p = packet(family, words, 0, s);
        let looked_at = may_be_syn(family, &Window::of(&p), HEAD);
        let before = p.clone();
        lower(family, &mut p, mtu);
        assert!(looked_at || p == before, "a SYN was not seen");
        let header = p.len() - s.len();
        assert_eq!(p[..header], before[..header], "IP's header is as it was");
        p.split_off(header)
    }

    fn families() -> impl Strategy<Value = Family> {
        prop_oneof![Just(Family::V4), Just(Family::V6)]
    }

    proptest! {
        #[test]
        fn the_checksum_is_that_from_scratch(
            family in families(), words in 0usize..=10, nops in 0usize..8, offered: u16, mtu in 68u16.., flags: u8, payload: Vec<u8>,
        ) {
            let with = |mss: u16| {
                let mss = mss.to_be_bytes();
                let options = [&vec![1; nops][..], &[8, 10, 9, 9, 9, 9, 0, 0, 0, 0, 2, 4], &mss, &[3, 3, 7]].concat();
                segment(family, flags, &options, &payload)
            };
            let fits = mtu.saturating_sub(if family == Family::V4 { 40 } else { 60 });
            let expected = if flags & SYN == 0 { offered } else { offered.min(fits) };
            prop_assert_eq!(clamped(family, words, &with(offered), mtu), with(expected));
        }

        #[test]
        fn nonsense_never_panics_and_changes_nothing_else(
            family in families(), mut s in prop::collection::vec(any::<u8>(), 0..100), mtu: u16, first in 0u8..16,
        ) {
            if s.len() > FLAGS {
                (s[12], s[FLAGS]) = (first << 4, SYN);
            }
            let after = clamped(family, 0, &s, mtu);
            prop_assert!(s.len() >= 24 || after == s);
            let end = s.get(12).map_or(0, |l| (l >> 4) as usize * 4).clamp(TCP, s.len().max(TCP));
            let same = |at: usize| (TCP..end).contains(&at) || (CHECKSUM..CHECKSUM + 2).contains(&at);
            prop_assert!((0..s.len()).all(|at| same(at) || s[at] == after[at]));
        }
    }

    #[test]
    fn what_is_no_syn_is_left_alone() {
        let offer = [2, 4, 0x23, 0x28];
        for family in [Family::V4, Family::V6] {
            let syn = segment(family, SYN | 0x10, &offer, &[]);
            assert_ne!(clamped(family, 0, &syn, 1400), syn);
            for other in [
                segment(family, 0x18, &offer, &[7; 9]),
                segment(family, SYN, &[], &[]),
                segment(family, SYN, &[1, 0, 2, 4, 0x23, 0x28], &[]),
                segment(family, SYN, &[2, 3, 0x23, 2], &[]),
                segment(family, SYN, &[2, 40, 0x23, 0x28], &[]),
                segment(family, SYN, &[5, 0, 2, 4, 0x23, 0x28, 1, 1], &[]),
            ] {
                assert_eq!(clamped(family, 0, &other, 1400), other);
            }
            let mut udp = packet(family, 0, 0, &syn);
            udp[if family == Family::V4 { 9 } else { 6 }] = ipv4::UDP;
            let before = udp.clone();
            assert!(!may_be_syn(family, &Window::of(&udp), HEAD));
            lower(family, &mut udp, 1400);
            assert_eq!(udp, before);
        }
        // What looks like one in the middle of a packet.
        let syn = segment(Family::V4, SYN, &offer, &[]);
        let mut fragment = packet(Family::V4, 0, 0x1f00, &syn);
        let before = fragment.clone();
        lower(Family::V4, &mut fragment, 1400);
        assert_eq!(fragment, before);
    }
}
