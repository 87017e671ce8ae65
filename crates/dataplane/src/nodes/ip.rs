//! Node `ip`: is the header sound, how long is the packet, may it go one hop further.
//!
//! Out: its length; whether the time to live ends. Drops: `bad-ipv4`, `bad-checksum`, `bad-ipv6`, `source-route`, `ipv4-options`,
//! `routing-header`, `martian-source`.
use crate::api::Ipv4Options;
use crate::drops::DropReason;
use dpdk::Window;

/// The families that are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// The one or the other.
    #[inline(always)]
    pub fn either<T>(self, v4: T, v6: T) -> T {
        match self {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }
}

/// The family of the packet at `ip`; what is neither counts as IPv4, whose check refuses it.
pub(crate) fn family(w: &Window, ip: usize) -> Family {
    match w.u8(ip) >> 4 {
        6 => Family::V6,
        _ => Family::V4,
    }
}

/// The length of a packet whose header is sound.
pub(crate) fn total(family: Family, w: &Window, ip: usize) -> usize {
    match family {
        Family::V4 => w.u16(ip + 2).into(),
        Family::V6 => w.u16(ip + 4) as usize + 40,
    }
}

/// Checks the header at `ip` against the `room` octets that there are (RFC 1812 §5.2.2, RFC 8200 §3); the packet's
/// length. What becomes of IPv4 options is a setting, which only packets with some read.
#[inline(always)]
pub(crate) fn check(
    family: Family,
    w: &Window,
    ip: usize,
    room: usize,
    options: &Ipv4Options,
) -> Result<usize, DropReason> {
    match family {
        Family::V4 => check_v4(w, ip, room, options),
        Family::V6 => check_v6(w, ip, room),
    }
}

/// Without options, as nearly all packets are, that is one comparison and one sum.
#[inline(always)]
fn check_v4(
    w: &Window,
    ip: usize,
    room: usize,
    options: &Ipv4Options,
) -> Result<usize, DropReason> {
    let total = w.u16(ip + 2) as usize;
    // What lies behind the frame's end is never believed: `room` bounds `total`.
    let plain = (w.u8(ip) == 0x45) & (total >= 20) & (total <= room);
    if plain & w.sums_up(ip) {
        Ok(total)
    } else {
        check_v4_slowly(w, ip, room, options)
    }
}

/// The same with options, and what is wrong.
#[cold]
#[inline(never)]
fn check_v4_slowly(
    w: &Window,
    ip: usize,
    room: usize,
    options: &Ipv4Options,
) -> Result<usize, DropReason> {
    let (first, total) = (w.u8(ip), w.u16(ip + 2) as usize);
    let header = (first & 0xf) as usize * 4;
    // `room` bounds `total`, and `total` the header.
    if (first >> 4 != 4) | (header < 20) | (header > total) | (total > room) {
        return Err(DropReason::BadIpv4);
    }
    if wire::checksum::of(w.bytes(ip..ip + header)) != 0 {
        return Err(DropReason::BadChecksum);
    }
    let carried = w.bytes(ip + 20..ip + header);
    match options {
        Ipv4Options::Forward => {}
        Ipv4Options::DropSourceRoutes => find_source_route(carried)?,
        Ipv4Options::Drop if carried.is_empty() => {}
        Ipv4Options::Drop => return Err(DropReason::Ipv4Options),
    }
    Ok(total)
}

/// Looks for a loose or strict source route (RFC 7126 §4.3, §4.4). An option whose length is wrong could hide one (RFC 791 §3.1).
fn find_source_route(mut options: &[u8]) -> Result<(), DropReason> {
    while let [kind, behind @ ..] = options {
        options = match kind {
            0 => return Ok(()), // end of the list
            1 => behind,        // no operation
            131 | 137 => return Err(DropReason::SourceRoute),
            _ => {
                let length = behind.first().copied().unwrap_or(0).into();
                let rest = options.get(length..).filter(|_| length >= 2);
                rest.ok_or(DropReason::BadIpv4)?
            }
        };
    }
    Ok(())
}

#[inline(always)]
fn check_v6(w: &Window, ip: usize, room: usize) -> Result<usize, DropReason> {
    let total = w.u16(ip + 4) as usize + 40;
    if (w.u8(ip) >> 4 != 6) | (total > room) {
        return Err(DropReason::BadIpv6);
    }
    if w.u8(ip + 6) == ROUTING_HEADER {
        return routed_v6(w, ip, total);
    }
    Ok(total)
}

/// IPv6's next header of a routing header (RFC 8200 §4.4).
const ROUTING_HEADER: u8 = 43;

/// Of a routing header, only type 0 is refused (RFC 5095 §4.2). One behind another extension header is not looked for.
#[cold]
#[inline(never)]
fn routed_v6(w: &Window, ip: usize, total: usize) -> Result<usize, DropReason> {
    match total >= 44 && w.u8(ip + 42) == 0 {
        true => Err(DropReason::RoutingHeader),
        false => Ok(total),
    }
}

/// Has a packet a source that none may have on a link (RFC 1812 §5.3.7, RFC 6890)? In IPv4, networks 0 and 127, multicast, and what
/// is reserved behind it. In IPv6, multicast, and ::/64: the unspecified address, the loopback address and IPv4's (RFC 4291 §2.5).
#[inline(always)]
pub(crate) fn has_martian_source(family: Family, w: &Window, ip: usize) -> bool {
    match family {
        Family::V4 => {
            let first = w.u8(ip + 12);
            first == 127 || !(1..224).contains(&first)
        }
        Family::V6 => w.u64(ip + 8) == 0 || w.u8(ip + 8) == 0xff,
    }
}

/// Takes one from the time to live or hop limit; false, and nothing changed, if it ends here.
#[inline(always)]
pub(crate) fn hop(family: Family, w: &mut Window, ip: usize) -> bool {
    match family {
        Family::V4 => {
            let ttl = w.u8(ip + 8);
            if ttl <= 1 {
                return false;
            }
            w.put8(ip + 8, ttl - 1);
            // RFC 1624 §3: the word with the TTL falls by 0x100, so the complement rises by it, with the carry around. From
            // 0xffff on, lest the result be 0xffff, the zero that a checksum from scratch never is.
            let sum = w.raw16(ip + 10) as u32 + u16::from_be(0x100) as u32;
            w.put16(ip + 10, u16::from_be((sum + (sum >= 0xffff) as u32) as u16));
        }
        Family::V6 => {
            let limit = w.u8(ip + 7);
            if limit <= 1 {
                return false;
            }
            w.put8(ip + 7, limit - 1);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use dpdk::HEAD;

    /// The Internet checksum, word by word (RFC 1071).
    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = header
            .chunks(2)
            .map(|c| u16::from_be_bytes([c[0], c[1]]) as u32)
            .sum();
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    fn header(ihl: u8, total: u16, id: u16, ttl: u8) -> Vec<u8> {
        let mut h = vec![0; ihl as usize * 4];
        h[0] = 0x40 | ihl;
        h[2..4].copy_from_slice(&total.to_be_bytes());
        h[4..6].copy_from_slice(&id.to_be_bytes());
        (h[8], h[9]) = (ttl, 17);
        h[12..20].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 7]);
        h[20..].fill(1);
        let sum = checksum(&h);
        h[10..12].copy_from_slice(&sum.to_be_bytes());
        h
    }

    fn checked(
        h: &[u8],
        room: usize,
        family: Family,
        options: Ipv4Options,
    ) -> Result<usize, DropReason> {
        check(family, &Window::of(h), HEAD, room, &options)
    }

    fn v4(h: &[u8], room: usize) -> Result<usize, DropReason> {
        checked(h, room, Family::V4, Ipv4Options::default())
    }

    /// What each setting does with these options, with as many zeros as the header needs.
    fn with_options(options: &[u8]) -> [Result<usize, DropReason>; 3] {
        let mut h = header(5 + options.len().div_ceil(4) as u8, 100, 7, 64);
        h[20..].fill(0);
        h[20..20 + options.len()].copy_from_slice(options);
        (h[10], h[11]) = (0, 0);
        let sum = checksum(&h);
        h[10..12].copy_from_slice(&sum.to_be_bytes());
        let settings = [
            Ipv4Options::Forward,
            Ipv4Options::DropSourceRoutes,
            Ipv4Options::Drop,
        ];
        settings.map(|setting| checked(&h, 100, Family::V4, setting))
    }

    #[test]
    fn source_routes_are_found_among_options() {
        let loose = [131, 7, 4, 192, 0, 2, 1];
        let strict = [137, 7, 4, 192, 0, 2, 1];
        let record = [7, 7, 4, 0, 0, 0, 0];
        let dropped = Err(DropReason::Ipv4Options);
        for route in [loose, strict] {
            let found = [Ok(100), Err(DropReason::SourceRoute), dropped];
            assert_eq!(with_options(&route), found);
            assert_eq!(with_options(&[&[1], &route[..]].concat()), found);
            assert_eq!(with_options(&[&record[..], &route].concat()), found);
        }
        let others = [Ok(100), Ok(100), dropped];
        for fine in [
            &record[..],
            &[148, 4, 0, 0],               // router alert
            &[1, 1, 1, 1],                 // nothing
            &[0, 131, 7, 4, 192, 0, 2, 1], // behind the end
            &[7, 7, 131, 137, 0, 0, 0],    // within another one
        ] {
            assert_eq!(with_options(fine), others, "{fine:?}");
        }
        for wrong in [
            &[7, 0, 0, 0][..],
            &[7, 1, 0, 0],
            &[7, 5, 0, 0],
            &[1, 1, 1, 7],
        ] {
            let found = [Ok(100), Err(DropReason::BadIpv4), dropped];
            assert_eq!(with_options(wrong), found, "{wrong:?}");
        }
        let plain = header(5, 100, 7, 64);
        assert_eq!(checked(&plain, 100, Family::V4, Ipv4Options::Drop), Ok(100));
    }

    #[test]
    fn a_routing_header_of_type_0_is_refused_and_no_other() {
        let v6 = |next, octets: &[u8]| {
            let mut h = vec![0; 40];
            (h[0], h[5], h[6], h[7]) = (0x60, octets.len() as u8, next, 64);
            h.extend(octets);
            checked(&h, 100, Family::V6, Ipv4Options::Forward)
        };
        let type_0 = [17, 2, 0, 1, 0, 0, 0, 0];
        assert_eq!(v6(43, &type_0), Err(DropReason::RoutingHeader));
        assert_eq!(v6(43, &[17, 2, 0, 0]), Err(DropReason::RoutingHeader));
        // Mobile IPv6, segments, a header that is cut off, no routing header.
        assert_eq!(v6(43, &[17, 2, 2, 1, 0, 0, 0, 0]), Ok(48));
        assert_eq!(v6(43, &[17, 2, 4, 1, 0, 0, 0, 0]), Ok(48));
        assert_eq!((v6(43, &type_0[..3]), v6(17, &type_0)), (Ok(43), Ok(48)));
    }

    #[test]
    fn sources_that_no_packet_may_have() {
        let v4 = |source: [u8; 4]| {
            let mut h = header(5, 20, 7, 64);
            h[12..16].copy_from_slice(&source);
            has_martian_source(Family::V4, &Window::of(&h), HEAD)
        };
        for first in 0..=255 {
            let martian = matches!(first, 0 | 127 | 224..);
            assert_eq!(v4([first, 1, 2, 3]), martian, "{first}");
        }
        let v6 = |source: &str| {
            let mut h = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
            h.extend(source.parse::<core::net::Ipv6Addr>().unwrap().octets());
            has_martian_source(Family::V6, &Window::of(&h), HEAD)
        };
        for martian in [
            "::",
            "::1",
            "ff02::1",
            "ff0e::1",
            "::ffff:192.0.2.1",
            "::192.0.2.1",
        ] {
            assert!(v6(martian), "{martian}");
        }
        for sound in ["2001:db8::1", "64:ff9b::c000:201", "fd00::1", "fe80::1"] {
            assert!(!v6(sound), "{sound}");
        }
    }

    #[test]
    fn ipv4_headers_with_and_without_options() {
        for ihl in 5..=15 {
            let h = header(ihl, 100, 7, 64);
            assert_eq!((v4(&h, 100), v4(&h, 200)), (Ok(100), Ok(100)));
            assert_eq!(
                v4(&h, 99),
                Err(DropReason::BadIpv4),
                "longer than there is room"
            );
            let mut bad = h.clone();
            *bad.last_mut().unwrap() ^= 1;
            assert_eq!(v4(&bad, 100), Err(DropReason::BadChecksum));
        }
        assert_eq!(
            v4(&header(6, 23, 7, 64), 100),
            Err(DropReason::BadIpv4),
            "options longer than the packet"
        );
        let mut h = header(5, 100, 7, 64);
        h[0] = 0x44;
        assert_eq!(v4(&h, 100), Err(DropReason::BadIpv4), "header of 16 octets");
        h[0] = 0x65;
        assert_eq!(v4(&h, 100), Err(DropReason::BadIpv4), "version 6");
    }

    #[test]
    fn the_checksum_after_a_hop_is_that_from_scratch() {
        for id in 0..=0xffff {
            let h = header(5, 100, id, (id % 255) as u8 + 1);
            let mut w = Window::of(&h);
            let went = hop(Family::V4, &mut w, HEAD);
            let expected = if h[8] > 1 {
                header(5, 100, id, h[8] - 1)
            } else {
                h.clone()
            };
            assert_eq!((went, w.bytes(HEAD..HEAD + 20)), (h[8] > 1, &expected[..]));
            let again = check(Family::V4, &w, HEAD, 100, &Ipv4Options::default());
            assert_eq!(again, Ok(100));
        }
    }

    #[test]
    fn ipv6_headers() {
        let mut h = [0u8; 40];
        (h[0], h[5], h[7]) = (0x60, 60, 2);
        let v6 = |h: &[u8], room| checked(h, room, Family::V6, Ipv4Options::default());
        assert_eq!(
            (v6(&h, 100), v6(&h, 99)),
            (Ok(100), Err(DropReason::BadIpv6))
        );
        let mut w = Window::of(&h);
        assert!(hop(Family::V6, &mut w, HEAD) && w.u8(HEAD + 7) == 1);
        assert!(!hop(Family::V6, &mut w, HEAD) && w.u8(HEAD + 7) == 1);
        h[0] = 0x45;
        assert_eq!(v6(&h, 100), Err(DropReason::BadIpv6));
    }
}
