//! Node `session`: is the frame from the subscriber whose session it names, and is the packet in it from his address.
//!
//! Out: IP packets → `lookup`; LCP echoes and PPP's other protocols, PADT, neighbour discovery and DHCPv6 → punt to the control plane.
//! Drops: `unknown-session`, `not-for-us`, `wrong-mac`, `wrong-tag`, `bad-pppoe`, `bad-ipv4`, `bad-checksum`, `bad-ipv6`,
//! `source-route`, `ipv4-options`, `routing-header`, `spoofed-source-v4`, `spoofed-source-v6`, `link-local`.
use super::classify::{ETHERNET, PPPOE};
use super::ip::{self, Family};
use super::{Exit, Part};
use crate::api::{Destination, InstanceIndex, Ipv4Options};
use crate::drops::DropReason;
use crate::punt::PuntKind;
use crate::tables::fib::Reader;
use crate::tables::sessions::{MASKS, Up, Whose};
use dpdk::{HEAD, Window};

pub(crate) const PPP_IPV4: u16 = 0x0021;
pub(crate) const PPP_IPV6: u16 = 0x0057;

/// How a PPPoE header of the session stage begins: version 1, type 1, code 0 (RFC 2516 §4).
const VERSION_1: u16 = 0x1100;

/// Octets in front of the IP header, behind so many tags.
pub(crate) const fn headers(tags: usize) -> usize {
    ETHERNET + 4 * tags + PPPOE + 2
}

/// Verifies a frame of the session stage with `DEPTH` tags against the session that it names, and the packet in it; the
/// packet's family and length.
#[inline(always)]
pub(crate) fn admit<const DEPTH: usize>(
    up: &mut Up,
    whose: Whose<'_>,
    w: &Window,
    len: usize,
    fibs: &Reader,
    options: &Ipv4Options,
) -> Result<(Family, usize), Exit> {
    let pppoe = HEAD + ETHERNET + 4 * DEPTH;
    let payload = w.u16(pppoe + 4) as u32;
    // A payload within the frame that holds at least PPP's protocol: neither is negative.
    let within = (len as u32).wrapping_sub((pppoe - HEAD + PPPOE) as u32 + payload);
    let bounded = (within | (payload.wrapping_sub(2))) as i32 >= 0;
    let lying = (w.u16(pppoe) != VERSION_1) | !bounded;
    if (difference::<DEPTH>(up, w) != 0) | lying {
        return Err(why::<DEPTH>(up, w));
    }
    let ip = pppoe + PPPOE + 2;
    let protocol = w.raw16(ip - 2);
    let family = if protocol == PPP_IPV4.to_be() {
        Family::V4
    } else if protocol == PPP_IPV6.to_be() {
        Family::V6
    } else {
        return Err(control(whose, w, ip - 2));
    };
    let total = ip::check(family, w, ip, payload as usize - 2, options)?;
    match family {
        Family::V4 => {
            source_v4(up, whose, w, ip, fibs)?;
            count(up, Family::V4, total)?;
        }
        Family::V6 => {
            source_v6(up, whose, w, ip, total, fibs)?;
            count(up, Family::V6, total)?;
        }
    }
    Ok((family, total))
}

/// Counts a packet of so many octets. Each family does so in code of its own, where it is known.
#[inline(always)]
fn count(up: &mut Up, family: Family, octets: usize) -> Result<(), Exit> {
    match up.counts.count(family, octets) {
        true => Err(Exit::Full),
        false => Ok(()),
    }
}

/// Verifies a PADT with `depth` tags, which is for the control plane.
pub(crate) fn terminate(up: &Up, whose: Whose<'_>, w: &Window, depth: u8) -> Exit {
    let mut plain = *up;
    plain.sample(false);
    let difference = match depth {
        0 => difference::<0>(&plain, w),
        1 => difference::<1>(&plain, w),
        _ => difference::<2>(&plain, w),
    };
    match difference {
        0 => said(whose),
        _ => reason(&plain, w).into(),
    }
}

/// A packet of PPP's own protocols, which begin at `at`. (Behind the end of a short one is what the buffer held: it is the session's in
/// either case.)
#[cold]
fn control(whose: Whose<'_>, w: &Window, at: usize) -> Exit {
    const LCP: u16 = 0xc021;
    // Echo-Request and Echo-Reply (RFC 1661 §5.8)
    let kind = match (w.u16(at), w.u8(at + 2)) {
        (LCP, 9 | 10) => PuntKind::Echo(whose.index()),
        _ => return said(whose),
    };
    Exit::Punt(kind, Part::WHOLE)
}

/// Something that the session has to say to the control plane.
fn said(whose: Whose<'_>) -> Exit {
    Exit::Punt(PuntKind::Session(whose.index()), Part::WHOLE)
}

/// Are the MAC addresses and the tags (TPIDs and VLAN ids, whatever the priorities) those of the session? 0 if so.
#[inline(always)]
fn difference<const DEPTH: usize>(up: &Up, w: &Window) -> u64 {
    let (mac, tags) = MASKS[DEPTH];
    let wrong = (w.raw64(HEAD + 6) ^ up.mac) & mac | (w.raw64(HEAD + 14) ^ up.tags) & tags;
    wrong | w.raw64(HEAD) ^ up.begin | (DEPTH as u8 ^ up.depth) as u64
}

#[cold]
#[inline(never)]
fn why<const DEPTH: usize>(up: &Up, w: &Window) -> Exit {
    let mut plain = *up;
    plain.sample(false);
    if difference::<DEPTH>(&plain, w) != 0 {
        reason(&plain, w).into()
    } else if up.is_sampled() {
        Exit::Sampled
    } else {
        DropReason::BadPppoe.into()
    }
}

/// What is wrong with a frame that is not the session's.
fn reason(up: &Up, w: &Window) -> DropReason {
    if up.vacant() {
        DropReason::UnknownSession
    } else if w.u64(HEAD) >> 16 != up.begin.to_be() >> 16 {
        DropReason::NotForUs
    } else if w.u64(HEAD + 6) >> 16 != up.mac.to_be() >> 16 {
        DropReason::WrongMac
    } else {
        DropReason::WrongTag
    }
}

/// Asks for the line of the routes that will say whose the source of a packet behind `depth` tags is, unless it is the session's
/// own.
pub(crate) fn ask_for_source(up: &Up, fibs: &Reader, w: &Window, depth: usize) {
    let ip = HEAD + headers(depth);
    let table = || fibs.table(InstanceIndex(up.instance));
    match w.u16(ip - 2) {
        PPP_IPV4 if w.u32(ip + 12) != up.v4 => _ = fibs.touch_v4(table(), w.u32(ip + 12)),
        PPP_IPV6 if !is_own_v6(up, w.u64(ip + 8)) => fibs.touch_v6(table(), w.u128(ip + 8)),
        _ => {}
    }
}

/// The session's address, or one that is routed to the session (RFC 3704 §2.2, strict).
#[inline(always)]
fn source_v4(up: &Up, whose: Whose<'_>, w: &Window, ip: usize, fibs: &Reader) -> Result<(), Exit> {
    let source = w.u32(ip + 12);
    // A session without address has 0 there, and 0.0.0.0 is nobody's.
    if (source == up.v4) & (source != 0) {
        return Ok(());
    }
    routed_v4(up, whose, source, fibs)
}

#[cold]
#[inline(never)]
fn routed_v4(up: &Up, whose: Whose<'_>, source: u32, fibs: &Reader) -> Result<(), Exit> {
    let instance = InstanceIndex(up.instance);
    let to = fibs.lookup_v4(instance, source).destination();
    match to == Some(Destination::Session(whose.index())) {
        true => Ok(()),
        false => Err(DropReason::SpoofedSourceV4.into()),
    }
}

/// Is an address, of which these are the first 64 bits, in one of the session's own prefixes?
#[inline(always)]
fn is_own_v6(up: &Up, high: u64) -> bool {
    let within = |prefix, length: u8| length != 0 && (high ^ prefix) >> (64 - length) == 0;
    within(up.v6, up.v6_length) || within(up.delegated, up.delegated_length())
}

/// An address in one of the session's prefixes that is not about the link itself.
#[inline(always)]
fn source_v6(
    up: &Up,
    whose: Whose<'_>,
    w: &Window,
    ip: usize,
    total: usize,
    fibs: &Reader,
) -> Result<(), Exit> {
    if is_own_v6(up, w.u64(ip + 8)) & !is_control(w, ip, total) {
        return Ok(());
    }
    other_v6(up, whose, w, ip, total, fibs)
}

/// An address in one of the session's prefixes, or one that is routed to the session. What concerns the link itself is for the
/// control plane, which alone takes link-local sources and, in neighbour discovery, the unspecified one.
#[cold]
#[inline(never)]
fn other_v6(
    up: &Up,
    whose: Whose<'_>,
    w: &Window,
    ip: usize,
    total: usize,
    fibs: &Reader,
) -> Result<(), Exit> {
    let source = w.u128(ip + 8);
    let high = (source >> 64) as u64;
    let instance = InstanceIndex(up.instance);
    let routed = || fibs.lookup_v6(instance, source).destination();
    let own = is_own_v6(up, high) || routed() == Some(Destination::Session(whose.index()));
    let link_local = high >> 54 == 0xfe80 >> 6;
    match (own, is_control(w, ip, total)) {
        (true, false) => Ok(()),
        (true, true) => Err(said(whose)),
        (false, true) if link_local || source == 0 => Err(said(whose)),
        (false, false) if link_local => Err(DropReason::LinkLocal.into()),
        (false, _) => Err(DropReason::SpoofedSourceV6.into()),
    }
}

/// Router and neighbour discovery and redirects (ICMPv6 133 to 137, RFC 4861 §4), and DHCPv6 to a server of the link (RFC 8415
/// §7.2). Behind an extension header neither is expected; such a packet is forwarded like any other.
#[inline(always)]
fn is_control(w: &Window, ip: usize, total: usize) -> bool {
    match w.u8(ip + 6) {
        58 => total > 40 && (133..=137).contains(&w.u8(ip + 40)),
        17 => total >= 44 && w.u16(ip + 42) == 547 && is_for_link(w, ip),
        _ => false,
    }
}

/// Does a packet go to a multicast or link-local address? What goes to DHCPv6's port elsewhere is for a server in the internet.
#[cold]
#[inline(never)]
fn is_for_link(w: &Window, ip: usize) -> bool {
    let high = w.u16(ip + 24);
    high >> 8 == 0xff || high >> 6 == 0xfe80 >> 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::*;
    use crate::tables::fib::{Owner, Writer};
    use crate::tables::sessions::{Sessions, Sources};
    use policy::PacketSettings;
    use wire::eth::{Header, MacAddr, PPPOE_SESSION, TPID_8021AD, Tags};

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    struct Net {
        sessions: Sessions,
        fibs: Reader,
    }

    fn net(tags: Tags) -> Net {
        let mut sessions = Sessions::with(8, &[0..=4095]);
        let entry = SessionEntry {
            index: SessionIndex(3),
            port: PortIndex(0),
            tags,
            peer_mac: MAC,
            gateway_mac: MacAddr([2; 6]),
            pppoe_session_id: 5,
            instance: InstanceIndex(0),
            packets: PacketSettings::with_mtu(1492),
            policies: Default::default(),
            subscriber: 1,
            ipv4: Some([100, 64, 0, 7].into()),
            ipv6: Some("2001:db8:0:700::/56".parse().unwrap()),
            routed: Box::default(),
        };
        sessions.set(entry, Sources::default(), 0);
        let mut fibs = Writer::new(1, 100).unwrap();
        let framed = Some(Destination::Session(SessionIndex(3)));
        for net in ["192.0.2.0/28", "2001:db8:ffff::/48"] {
            let net = net.parse().unwrap();
            fibs.set(InstanceIndex(0), net, Owner::Route, framed)
                .unwrap();
        }
        Net {
            sessions,
            fibs: fibs.reader(),
        }
    }

    impl Net {
        fn frame(&mut self, frame: &[u8], depth: u8) -> Result<(Family, usize), Exit> {
            let slot = self.sessions.slot(0, 0, 5).unwrap();
            let (up, whose) = self.sessions.entry(slot);
            let (w, len, options) = (Window::of(frame), frame.len(), Ipv4Options::default());
            match depth {
                0 => admit::<0>(up, whose, &w, len, &self.fibs, &options),
                1 => admit::<1>(up, whose, &w, len, &self.fibs, &options),
                _ => admit::<2>(up, whose, &w, len, &self.fibs, &options),
            }
        }

        fn padt(&mut self, frame: &[u8]) -> Exit {
            let slot = self.sessions.slot(0, 0, 5).unwrap();
            let (up, whose) = self.sessions.entry(slot);
            terminate(up, whose, &Window::of(frame), 0)
        }
    }

    fn frame(source: MacAddr, tags: Tags, ppp: &[u8]) -> Vec<u8> {
        let mut f = vec![];
        Header {
            destination: MacAddr([2; 6]),
            source,
            tags,
            ethertype: PPPOE_SESSION,
        }
        .emit(&mut f);
        f.extend([0x11, 0, 0, 5]);
        f.extend((ppp.len() as u16).to_be_bytes());
        f.extend(ppp);
        f
    }

    fn v4(source: [u8; 4]) -> Vec<u8> {
        let mut p = vec![0x00, 0x21, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
        p.extend(source);
        p.extend([198, 51, 100, 7]);
        let sum = wire::checksum::of(&p[2..]);
        p[12..14].copy_from_slice(&sum.to_be_bytes());
        p
    }

    fn v6(source: &str, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x00, 0x57, 0x60, 0, 0, 0, 0, payload.len() as u8, next, 255];
        p.extend(source.parse::<core::net::Ipv6Addr>().unwrap().octets());
        p.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        p.extend(payload);
        p
    }

    fn models() -> [Tags; 4] {
        let mut s_tag = Tags::qinq(100, 7);
        s_tag.outer.as_mut().unwrap().tpid = TPID_8021AD;
        [Tags::NONE, Tags::single(100), Tags::qinq(100, 7), s_tag]
    }

    #[test]
    fn frames_are_verified_in_every_vlan_model() {
        for tags in models() {
            let mut net = net(tags);
            let depth = tags.count() as u8;
            let good = frame(MAC, tags, &v4([100, 64, 0, 7]));
            assert_eq!(net.frame(&good, depth), Ok((Family::V4, 20)));
            let usage = net.sessions.usage(SessionIndex(3)).unwrap();
            assert_eq!((usage.ipv4.up_packets, usage.ipv4.up_octets), (1, 20));
            for octet in 0..12 + 4 * depth as usize {
                let mut bad = good.clone();
                bad[octet] ^= 1;
                let why = match octet {
                    0..6 => DropReason::NotForUs,
                    6..12 => DropReason::WrongMac,
                    _ => DropReason::WrongTag,
                };
                assert_eq!(net.frame(&bad, depth), Err(why.into()), "octet {octet}");
            }
            for other in models().into_iter().filter(|t| t.count() != tags.count()) {
                let bad = frame(MAC, other, &v4([100, 64, 0, 7]));
                assert_eq!(
                    net.frame(&bad, other.count() as u8),
                    Err(DropReason::WrongTag.into())
                );
            }
        }
    }

    #[test]
    fn priorities_are_not_looked_at() {
        let mut tags = Tags::qinq(100, 7);
        let mut net = net(tags);
        (
            tags.outer.as_mut().unwrap().pcp,
            tags.inner.as_mut().unwrap().dei,
        ) = (5, true);
        assert!(
            net.frame(&frame(MAC, tags, &v4([100, 64, 0, 7])), 2)
                .is_ok()
        );
    }

    #[test]
    fn sources_are_the_sessions_own_or_routed_to_it() {
        let mut net = net(Tags::NONE);
        let mut try_v4 = |source| {
            net.frame(&frame(MAC, Tags::NONE, &v4(source)), 0)
                .map(|_| ())
        };
        assert_eq!(
            [try_v4([100, 64, 0, 7]), try_v4([192, 0, 2, 9])],
            [Ok(()); 2]
        );
        for forged in [
            [100, 64, 0, 8],
            [0, 0, 0, 0],
            [192, 0, 2, 16],
            [255, 255, 255, 255],
        ] {
            assert_eq!(
                try_v4(forged),
                Err(DropReason::SpoofedSourceV4.into()),
                "{forged:?}"
            );
        }
        let mut try_v6 = |s: &str| {
            net.frame(&frame(MAC, Tags::NONE, &v6(s, 17, &[0; 8])), 0)
                .map(|_| ())
        };
        assert_eq!(
            [try_v6("2001:db8:0:7ff::1"), try_v6("2001:db8:ffff::1")],
            [Ok(()); 2]
        );
        for forged in ["2001:db8:0:800::1", "::", "::1", "2001:db8:fffe::1"] {
            assert_eq!(
                try_v6(forged),
                Err(DropReason::SpoofedSourceV6.into()),
                "{forged}"
            );
        }
        assert_eq!(try_v6("fe80::1"), Err(DropReason::LinkLocal.into()));
    }

    #[test]
    fn a_delegated_prefix_is_a_source_without_a_route() {
        let mut net = net(Tags::NONE);
        let entry = net.sessions.get(SessionIndex(3)).unwrap().clone();
        let nets = ["10.0.0.0/8", "2001:db8:8000::/49", "2001:db8:9::1/128"];
        let nets = nets.map(|net| net.parse().unwrap());
        net.sessions.set(entry.clone(), Sources::of(&nets), 0);
        assert!(net.sessions.any_routed());
        let send = |net: &mut Net, source: &str| {
            let frame = frame(MAC, Tags::NONE, &v6(source, 17, &[0; 8]));
            net.frame(&frame, 0).map(|_| ())
        };
        let spoofed = Err(DropReason::SpoofedSourceV6.into());
        assert_eq!(send(&mut net, "2001:db8:8000:7fff::1"), Ok(()));
        assert_eq!(send(&mut net, "2001:db8:0:700::1"), Ok(()));
        assert_eq!(send(&mut net, "2001:db8:8000:8000::1"), spoofed);
        // The longer one has no room in the entry, and no route here.
        assert_eq!(send(&mut net, "2001:db8:9::1"), spoofed);
        net.sessions.set(entry.clone(), Sources::of(&nets[1..2]), 0);
        assert!(!net.sessions.any_routed());
        assert_eq!(send(&mut net, "2001:db8:8000::1"), Ok(()));
        net.sessions.set(entry, Sources::default(), 0);
        assert_eq!(send(&mut net, "2001:db8:8000::1"), spoofed);
    }

    #[test]
    fn a_session_without_addresses_sends_only_control_packets() {
        let mut net = net(Tags::NONE);
        let entry = SessionEntry {
            ipv4: None,
            ipv6: None,
            ..net.sessions.get(SessionIndex(3)).unwrap().clone()
        };
        net.sessions.set(entry, Sources::default(), 0);
        let mut send = |ppp: &[u8]| net.frame(&frame(MAC, Tags::NONE, ppp), 0).map(|_| ());
        assert_eq!(send(&v4([0; 4])), Err(DropReason::SpoofedSourceV4.into()));
        assert_eq!(
            send(&v4([100, 64, 0, 7])),
            Err(DropReason::SpoofedSourceV4.into())
        );
        assert_eq!(
            send(&v6("::", 17, &[0; 8])),
            Err(DropReason::SpoofedSourceV6.into())
        );
        assert_eq!(
            send(&v6("2001:db8:0:7ff::1", 17, &[0; 8])),
            Err(DropReason::SpoofedSourceV6.into())
        );
        assert!(matches!(send(&[0xc0, 0x21, 1]), Err(Exit::Punt(..))));
    }

    #[test]
    fn control_packets_are_for_the_control_plane() {
        let mut net = net(Tags::NONE);
        let punt = Err(Exit::Punt(PuntKind::Session(SessionIndex(3)), Part::WHOLE));
        let mut send = |ppp: &[u8]| net.frame(&frame(MAC, Tags::NONE, ppp), 0).map(|_| ());
        for protocol in [
            [0xc0, 0x21],
            [0x80, 0x57],
            [0xc2, 0x23],
            [0, 0x4b],
            [0x21, 0],
        ] {
            assert_eq!(send(&protocol), punt, "{protocol:x?}");
        }
        for source in ["fe80::1", "::", "2001:db8:0:7ff::1"] {
            for kind in 133..=137 {
                assert_eq!(send(&v6(source, 58, &[kind, 0, 0, 0])), punt);
            }
            assert_eq!(send(&v6(source, 17, &[2, 34, 2, 35, 0, 8, 0, 0])), punt);
        }
        let mut dhcpv6_to = |destination: &str| {
            let mut packet = v6("2001:db8:0:7ff::1", 17, &[2, 34, 2, 35, 0, 8, 0, 0]);
            let destination: core::net::Ipv6Addr = destination.parse().unwrap();
            packet[26..42].copy_from_slice(&destination.octets());
            send(&packet)
        };
        assert_eq!([dhcpv6_to("fe80::1"), dhcpv6_to("ff05::1:3")], [punt; 2]);
        assert_eq!([dhcpv6_to("2600::7"), dhcpv6_to("fec0::1")], [Ok(()); 2]);
        assert_eq!(
            send(&v6("2001:db8:9::1", 58, &[135])),
            Err(DropReason::SpoofedSourceV6.into())
        );
        assert_eq!(
            send(&v6("fe80::1", 58, &[128, 0])),
            Err(DropReason::LinkLocal.into()),
            "an echo request"
        );
        assert_eq!(
            send(&v6("fe80::1", 58, &[])),
            Err(DropReason::LinkLocal.into()),
            "no ICMPv6 type"
        );
        assert_eq!(send(&v6("2001:db8:0:7ff::1", 58, &[128, 0])), Ok(()));
        let mut padt = frame(MAC, Tags::NONE, &[]);
        (padt[13], padt[15]) = (0x63, 0xa7);
        assert_eq!(Err(net.padt(&padt)), punt);
        padt[11] ^= 1;
        assert_eq!(net.padt(&padt), DropReason::WrongMac.into());
    }

    #[test]
    fn pppoe_headers_that_lie_are_refused() {
        let mut net = net(Tags::NONE);
        let good = frame(MAC, Tags::NONE, &v4([100, 64, 0, 7]));
        for (at, value) in [(14, 0x12), (14, 0x21), (15, 1), (19, 0), (19, 1), (19, 23)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(
                net.frame(&bad, 0),
                Err(DropReason::BadPppoe.into()),
                "octet {at} is {value}"
            );
        }
        let mut short = good.clone();
        short[19] = 21; // less than PPP's protocol and the packet
        assert_eq!(net.frame(&short, 0), Err(DropReason::BadIpv4.into()));
        let mut padded = good.clone();
        padded.extend([0xee; 18]);
        assert_eq!(net.frame(&padded, 0).unwrap().1, 20);
    }
}
