//! Packets and octets of a session in its lines: of one direction, by address family.
//!
//! Both families have room in the lines because their counters are short. They are carried over to long ones, which packets do not
//! touch, by the packet that octets of 32 bits have no room for, and begin with that packet. A packet has 20 octets or more, so that
//! packets of 32 bits always have room.
use crate::api::{Usage, Volume};
use crate::nodes::ip::Family;

/// What has been counted since it was carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Counts {
    // Those of one family are not beside each other: two additions are cheaper than one of both together.
    packets: [u32; 2],
    octets: [u32; 2],
}

impl Counts {
    pub const NONE: Counts = Counts {
        packets: [0; 2],
        octets: [0; 2],
    };

    /// Counts a packet of so many octets, fewer than 2^32. Returns whether they had no room for it: then they have to be carried over now.
    #[inline(always)]
    #[must_use]
    pub fn count(&mut self, family: Family, octets: usize) -> bool {
        let family = family as usize;
        self.packets[family] = self.packets[family].wrapping_add(1);
        let (sum, is_over) = self.octets[family].overflowing_add(octets as u32);
        self.octets[family] = sum;
        is_over
    }

    /// Takes a packet of so many octets out of the counters that is dropped after all: the last one of its family that was counted.
    pub fn uncount(&mut self, family: Family, octets: usize) {
        let family = family as usize;
        self.packets[family] -= 1;
        self.octets[family] -= octets as u32;
    }

    /// Takes packets and octets of a family that were counted before the packet of `last` octets, for which [`Counts::count`] had no room.
    fn carry(&mut self, family: Family, last: usize) -> (u64, u64) {
        let (packets, octets) = self.of(family);
        let family = family as usize;
        (self.packets[family], self.octets[family]) = (1, last as u32);
        (packets - 1, octets + (1 << 32) - last as u64)
    }

    /// Packets and octets of a family since they were carried over.
    fn of(&self, family: Family) -> (u64, u64) {
        let family = family as usize;
        (self.packets[family].into(), self.octets[family].into())
    }
}

/// What was carried over of a session's counters, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Carried(Usage);

impl Carried {
    /// Takes over what the upstream counters of a family had before the packet of `last` octets.
    pub fn carry_up(&mut self, counts: &mut Counts, family: Family, last: usize) {
        let (packets, octets) = counts.carry(family, last);
        let volume = self.volume(family);
        volume.up_packets += packets;
        volume.up_octets += octets;
    }

    /// Takes over what the downstream counters of a family had before the packet of `last` octets.
    pub fn carry_down(&mut self, counts: &mut Counts, family: Family, last: usize) {
        let (packets, octets) = counts.carry(family, last);
        let volume = self.volume(family);
        volume.down_packets += packets;
        volume.down_octets += octets;
    }

    fn volume(&mut self, family: Family) -> &mut Volume {
        family.either(&mut self.0.ipv4, &mut self.0.ipv6)
    }

    /// The session's usage with what its lines count beside.
    pub fn with(self, up: &Counts, down: &Counts) -> Usage {
        let add = |volume: Volume, family| {
            let ((up_packets, up_octets), (down_packets, down_octets)) =
                (up.of(family), down.of(family));
            Volume {
                up_packets: volume.up_packets + up_packets,
                up_octets: volume.up_octets + up_octets,
                down_packets: volume.down_packets + down_packets,
                down_octets: volume.down_octets + down_octets,
            }
        };
        Usage {
            ipv4: add(self.0.ipv4, Family::V4),
            ipv6: add(self.0.ipv6, Family::V6),
        }
    }
}

#[cfg(test)]
impl Counts {
    /// Counters that have these packets and octets of a family.
    pub fn with(family: Family, packets: u32, octets: u32) -> Self {
        let mut counts = Counts::NONE;
        let family = family as usize;
        (counts.packets[family], counts.octets[family]) = (packets, octets);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_before_the_packet_that_has_no_room_is_carried_over() {
        let mut counts = Counts::with(Family::V6, 7, u32::MAX - 100);
        let mut carried = Carried::default();
        assert!(!counts.count(Family::V6, 100));
        assert!(counts.count(Family::V6, 1500));
        carried.carry_up(&mut counts, Family::V6, 1500);
        assert_eq!(counts, Counts::with(Family::V6, 1, 1500));
        assert!(!counts.count(Family::V6, 40));
        let usage = carried.with(&counts, &Counts::NONE);
        let ipv6 = Volume {
            up_packets: 10,
            up_octets: u64::from(u32::MAX) + 1540,
            ..Volume::default()
        };
        let ipv4 = Volume::default();
        assert_eq!(usage, Usage { ipv4, ipv6 });
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_counted_for_the_other_family(
            packets in proptest::collection::vec((any::<bool>(), any::<bool>(), 0..u32::MAX), 0..100)
        ) {
            let (mut lines, mut carried) = ([Counts::NONE; 2], Carried::default());
            let mut expected = Usage::default();
            for (is_v6, is_up, octets) in packets {
                let family = if is_v6 { Family::V6 } else { Family::V4 };
                let volume = if is_v6 { &mut expected.ipv6 } else { &mut expected.ipv4 };
                let counts = &mut lines[usize::from(is_up)];
                let is_over = counts.count(family, octets as usize);
                if is_up {
                    volume.up_packets += 1;
                    volume.up_octets += u64::from(octets);
                    if is_over {
                        carried.carry_up(counts, family, octets as usize);
                    }
                } else {
                    volume.down_packets += 1;
                    volume.down_octets += u64::from(octets);
                    if is_over {
                        carried.carry_down(counts, family, octets as usize);
                    }
                }
                prop_assert_eq!(carried.with(&lines[1], &lines[0]), expected);
            }
        }
    }
}
