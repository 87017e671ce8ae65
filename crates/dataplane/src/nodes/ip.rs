//! Node `ip`: is the header sound, how long is the packet, may it go one hop further.
//!
//! Out: its length; whether the time to live ends. Drops: `bad-ipv4`, `bad-checksum`, `bad-ipv6`.
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
/// length.
#[inline(always)]
pub(crate) fn check(
    family: Family,
    w: &Window,
    ip: usize,
    room: usize,
) -> Result<usize, DropReason> {
    match family {
        Family::V4 => check_v4(w, ip, room),
        Family::V6 => check_v6(w, ip, room),
    }
}

/// Without options, as nearly all packets are, that is one comparison and one sum.
#[inline(always)]
fn check_v4(w: &Window, ip: usize, room: usize) -> Result<usize, DropReason> {
    let total = w.u16(ip + 2) as usize;
    // What lies behind the frame's end is never believed: `room` bounds `total`.
    let plain = (w.u8(ip) == 0x45) & (total >= 20) & (total <= room);
    if plain & w.sums_up(ip) {
        Ok(total)
    } else {
        check_v4_slowly(w, ip, room)
    }
}

/// The same with options, and what is wrong.
#[cold]
#[inline(never)]
fn check_v4_slowly(w: &Window, ip: usize, room: usize) -> Result<usize, DropReason> {
    let (first, total) = (w.u8(ip), w.u16(ip + 2) as usize);
    let header = (first & 0xf) as usize * 4;
    // `room` bounds `total`, and `total` the header.
    if (first >> 4 != 4) | (header < 20) | (header > total) | (total > room) {
        return Err(DropReason::BadIpv4);
    }
    match wire::checksum::of(w.bytes(ip..ip + header)) {
        0 => Ok(total),
        _ => Err(DropReason::BadChecksum),
    }
}

#[inline(always)]
fn check_v6(w: &Window, ip: usize, room: usize) -> Result<usize, DropReason> {
    let total = w.u16(ip + 4) as usize + 40;
    if (w.u8(ip) >> 4 != 6) | (total > room) {
        return Err(DropReason::BadIpv6);
    }
    Ok(total)
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

    fn v4(h: &[u8], room: usize) -> Result<usize, DropReason> {
        check(Family::V4, &Window::of(h), HEAD, room)
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
            assert_eq!(check(Family::V4, &w, HEAD, 100), Ok(100));
        }
    }

    #[test]
    fn ipv6_headers() {
        let mut h = [0u8; 40];
        (h[0], h[5], h[7]) = (0x60, 60, 2);
        let v6 = |h: &[u8], room| check(Family::V6, &Window::of(h), HEAD, room);
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
