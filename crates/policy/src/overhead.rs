//! Octets that a packet takes on its line beyond its own.

/// What a packet is charged beyond its own octets. The default is nothing.
///
/// A packet of n octets is charged c * floor((max(n + a, l) * m + r) / 2^s), with constants that take the place of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// r
    round: u32,
    /// m
    multiplier: u16,
    /// a
    added: i16,
    /// l
    least: u16,
    /// s
    shift: u8,
    /// c
    cell: u8,
}

const _: () = assert!(size_of::<Overhead>() == 12);

impl Default for Overhead {
    fn default() -> Self {
        Overhead::IP
    }
}

impl Overhead {
    /// The IP packet alone.
    pub const IP: Overhead = Overhead::octets(0);

    /// A fixed number of octets more, or fewer, but not fewer than none.
    pub const fn octets(added: i16) -> Self {
        Overhead {
            round: 0,
            multiplier: 1,
            added,
            least: 0,
            shift: 0,
            cell: 1,
        }
    }

    /// Ethernet with so many VLAN tags and `encapsulation` octets between its header and the IP packet (8 with PPPoE, RFC 2516 §4):
    /// header 14, each tag 4, check sequence 4, preamble 8, gap between packets 12 octets. A frame is padded to 64 octets (IEEE 802.3 §3.2.8).
    pub const fn ethernet(tags: u8, encapsulation: u8) -> Self {
        Overhead {
            least: 64 + 8 + 12,
            ..Overhead::octets(38 + 4 * tags as i16 + encapsulation as i16)
        }
    }

    /// Cells of ATM with AAL5: the packet, its encapsulation (RFC 2684: 0 octets for IP in a virtual circuit of its own, 8 for IP with
    /// LLC, and so on) and a trailer of 8 octets fill cells that carry 48 octets and have 53 (ITU-T I.363.5, I.361).
    pub const fn atm(encapsulation: u8) -> Self {
        Overhead {
            // 2^21 / 48 rounded up is too large by 16 / (48 * 2^21), which is not seen below 2^17 octets.
            round: 47 * 43_691,
            multiplier: 43_691,
            added: encapsulation as i16 + 8,
            least: 0,
            shift: 21,
            cell: 53,
        }
    }

    /// Packet transfer mode of VDSL2 and others: of 65 octets one is for synchronisation (64/65-octet encapsulation, IEEE 802.3 §61.3.3).
    /// `encapsulation` is what the frame has beyond the IP packet.
    pub const fn ptm(encapsulation: u8) -> Self {
        Overhead {
            round: 63,
            multiplier: 65,
            added: encapsulation as i16,
            least: 0,
            shift: 6,
            cell: 1,
        }
    }

    /// What a packet of so many octets, at most 65,535, is charged.
    #[inline(always)]
    pub fn charged(self, octets: u32) -> u32 {
        let all = (octets as i32 + i32::from(self.added)).max(i32::from(self.least)) as u64;
        let cells = (all * u64::from(self.multiplier) + u64::from(self.round)) >> self.shift;
        cells as u32 * u32::from(self.cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every length of an IP packet.
    const LENGTHS: core::ops::RangeInclusive<u32> = 0..=65_535;

    #[test]
    fn a_fixed_number_is_added_or_taken() {
        for octets in LENGTHS {
            assert_eq!(Overhead::default().charged(octets), octets);
            assert_eq!(Overhead::octets(-18).charged(octets), octets.max(18) - 18);
            let most = Overhead::octets(i16::MAX).charged(octets);
            assert_eq!(most, octets + i16::MAX as u32);
            let least = Overhead::octets(i16::MIN).charged(octets);
            assert_eq!(least, octets.saturating_sub(32_768));
        }
    }

    #[test]
    fn ethernet_frames_have_at_least_64_octets() {
        assert_eq!(Overhead::ethernet(0, 0).charged(1500), 1538);
        assert_eq!(Overhead::ethernet(0, 0).charged(46), 84);
        assert_eq!(Overhead::ethernet(0, 0).charged(40), 84);
        assert_eq!(Overhead::ethernet(2, 8).charged(1492), 1492 + 8 + 8 + 38);
        let most = Overhead::ethernet(u8::MAX, u8::MAX).charged(65_535);
        assert_eq!(most, 65_535 + 38 + 4 * 255 + 255);
    }

    #[test]
    fn cells_are_those_of_a_division() {
        assert_eq!(Overhead::atm(0).charged(40), 53);
        assert_eq!(Overhead::atm(0).charged(41), 2 * 53);
        for encapsulation in [0, 2, 6, 8, 10, 18, 24, 28, 32, 255] {
            let overhead = Overhead::atm(encapsulation);
            for octets in LENGTHS {
                let cells = (octets + u32::from(encapsulation) + 8).div_ceil(48);
                assert_eq!(overhead.charged(octets), cells * 53, "{octets}");
            }
        }
    }

    #[test]
    fn synchronisation_octets_are_those_of_a_division() {
        assert_eq!(Overhead::ptm(0).charged(64), 65);
        assert_eq!(Overhead::ptm(0).charged(65), 67);
        for encapsulation in [0, 18, 22, 26, 30, 255] {
            let overhead = Overhead::ptm(encapsulation);
            for octets in LENGTHS {
                let all = octets + u32::from(encapsulation);
                assert_eq!(
                    overhead.charged(octets),
                    (all * 65).div_ceil(64),
                    "{octets}"
                );
            }
        }
    }
}
