//! Frames that wait in the queues of subscribers, as the scheduler needs them.
use crate::nodes::fields::{ecn, has_ports};
use crate::nodes::ip::Family;
use core::hash::BuildHasher;
use core::mem::MaybeUninit;
use dpdk::{Chain, Mbuf, Window, large_pages, prefetch};
use foldhash::fast::FixedState;
use scheduler::Ecn;

/// A frame that waits.
#[derive(Debug)]
pub struct WaitingFrame(pub Mbuf);

/// What a frame that waits keeps of the packet in it: its address family, what it says of congestion, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note(u16);

impl Note {
    /// Of the packet at `ip` of a window, in a frame that begins `ahead` octets before it.
    #[inline(always)]
    pub fn of(w: &Window, family: Family, ip: usize, ahead: usize) -> Self {
        Note(family as u16 | u16::from(ecn(w, family, ip)) << 1 | (ahead as u16) << 3)
    }

    #[inline(always)]
    pub fn get(self) -> u16 {
        self.0
    }

    #[inline(always)]
    fn family(self) -> Family {
        match self.0 & 1 {
            0 => Family::V4,
            _ => Family::V6,
        }
    }

    #[inline(always)]
    fn ecn(self) -> Ecn {
        Ecn::of((self.0 >> 1) as u8)
    }

    #[inline(always)]
    fn ip(self) -> usize {
        usize::from(self.0 >> 3)
    }
}

impl WaitingFrame {
    #[inline(always)]
    fn note(&self) -> Note {
        Note(self.0.note())
    }

    /// Address family of the packet in the frame.
    #[inline(always)]
    pub(crate) fn family(&self) -> Family {
        self.note().family()
    }
}

impl scheduler::Packet for WaitingFrame {
    #[inline(always)]
    fn octets(&self) -> u32 {
        self.0.frame_len() as u32
    }

    #[inline(always)]
    fn stamp(&self) -> u32 {
        self.0.stamp()
    }

    #[inline(always)]
    fn set_stamp(&mut self, stamp: u32) {
        self.0.set_stamp(stamp);
    }

    fn flow(&self, key: u64) -> u32 {
        let note = self.note();
        let packet = self.0.data().get(note.ip()..).unwrap_or_default();
        let hash = match note.family() {
            Family::V4 => flow_v4(packet, key),
            Family::V6 => flow_v6(packet, key),
        };
        hash.unwrap_or_default() as u32
    }

    #[inline(always)]
    fn ecn(&self) -> Ecn {
        self.note().ecn()
    }

    fn mark(&mut self) {
        let note = self.note();
        let frame = self.0.data_mut().unwrap_or_default();
        let packet = frame.get_mut(note.ip()..).unwrap_or_default();
        match note.family() {
            Family::V4 => mark_v4(packet),
            Family::V6 => mark_v6(packet),
        };
    }
}

/// Number of the flow of an IPv4 packet: addresses, protocol, and ports, which fragments do not have.
fn flow_v4(packet: &[u8], key: u64) -> Option<u64> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let addresses: &[u8; 8] = header.last_chunk()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let protocol = header[9];
    let ports = match has_ports(protocol) && !is_fragment {
        true => *packet
            .get(usize::from(header[0] & 0xf) * 4..)?
            .first_chunk()?,
        false => [0; 4],
    };
    let words = (
        u64::from_ne_bytes(*addresses),
        u32::from_ne_bytes(ports),
        protocol,
    );
    Some(FixedState::with_seed(key).hash_one(words))
}

/// The same of IPv6; where extension headers hide the ports, by its flow label (RFC 6438).
fn flow_v6(packet: &[u8], key: u64) -> Option<u64> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let (start, addresses): (_, &[u8; 32]) = header.split_last_chunk()?;
    let next = start[6];
    let ports = match has_ports(next) {
        true => *packet.get(40..)?.first_chunk()?,
        false => [0, start[1] & 0xf, start[2], start[3]],
    };
    let words = (addresses, u32::from_ne_bytes(ports), next);
    Some(FixedState::with_seed(key).hash_one(words))
}

/// Says in an IPv4 packet that there is congestion (RFC 3168 §5); its checksum stays right (RFC 1624 §3).
fn mark_v4(packet: &mut [u8]) -> Option<()> {
    let header: &mut [u8; 20] = packet.first_chunk_mut()?;
    let added = 3 & !header[1];
    header[1] |= added;
    let sum = u32::from(u16::from_be_bytes([header[10], header[11]])) + 0xffff - u32::from(added);
    let sum = ((sum & 0xffff) + (sum >> 16)) as u16;
    [header[10], header[11]] = sum.to_be_bytes();
    Some(())
}

/// The same in an IPv6 packet, which has none.
fn mark_v6(packet: &mut [u8]) -> Option<()> {
    *packet.get_mut(1)? |= 3 << 4;
    Some(())
}

/// The frames of a queue.
#[derive(Debug, Default)]
pub struct FrameChain(Chain);

impl scheduler::Chain for FrameChain {
    type Packet = WaitingFrame;

    #[inline(always)]
    fn push(&mut self, frame: WaitingFrame) {
        self.0.push(frame.0);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<WaitingFrame> {
        self.0.pop().map(WaitingFrame)
    }

    #[inline(always)]
    fn prefetch_first(&self) {
        prefetch(self.0.first());
    }

    #[inline(always)]
    fn prefetch_last(&self) {
        prefetch(self.0.last());
    }

    fn large_pages<T>(memory: &mut [MaybeUninit<T>]) {
        large_pages(memory);
    }

    #[inline(always)]
    fn prefetch<T>(line: *const T) {
        prefetch(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of a header's 16-bit words, with carries: all ones, if its checksum is right.
    fn sum(header: &[u8]) -> u16 {
        let words = header.as_chunks::<2>().0.iter();
        let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_mark_is_ce_and_leaves_the_rest_and_a_right_checksum() {
        for (dscp, ecn) in [(0, 1), (46, 2), (63, 1), (8, 3)] {
            for id in 0..=0xffffu16 {
                let mut packet = [
                    0x45,
                    dscp << 2 | ecn,
                    0,
                    20,
                    0,
                    0,
                    0,
                    0,
                    64,
                    17,
                    0,
                    0,
                    10,
                    0,
                    0,
                    1,
                    10,
                    0,
                    0,
                    2,
                ];
                [packet[4], packet[5]] = id.to_be_bytes();
                let check = !sum(&packet);
                [packet[10], packet[11]] = check.to_be_bytes();
                mark_v4(&mut packet).unwrap();
                assert_eq!(packet[1], dscp << 2 | 3);
                assert_eq!(sum(&packet), 0xffff, "{packet:02x?}");
            }
        }
        let mut packet = [0x6a, 0x9c, 0xde, 0xf0];
        mark_v6(&mut packet).unwrap();
        assert_eq!(packet, [0x6a, 0xbc, 0xde, 0xf0], "traffic class a9 is ab");
        assert_eq!(
            (mark_v4(&mut [0x45; 19]), mark_v6(&mut [0x60])),
            (None, None)
        );
    }

    #[test]
    fn packets_of_a_flow_have_the_same_number_and_fragments_none_of_ports() {
        let mut packet = [0u8; 60];
        (packet[0], packet[9]) = (0x45, 17);
        let own = flow_v4(&packet, 1);
        packet[1] = 0xff;
        packet[4] = 9;
        packet[40] = 1;
        assert_eq!(flow_v4(&packet, 1), own, "other packets of the flow");
        assert_ne!(flow_v4(&packet, 2), own, "by the key");
        for at in [9, 12, 19, 20, 23] {
            let mut other = packet;
            other[at] = if at == 9 { 6 } else { 1 };
            assert_ne!(flow_v4(&other, 1), own, "{at}");
        }
        // a fragment, whose first octets are not ports
        packet[6] = 0x20;
        let fragment = flow_v4(&packet, 1);
        packet[20] = 7;
        assert_eq!(flow_v4(&packet, 1), fragment);
        assert_eq!(flow_v4(&packet[..19], 1), None);

        let mut packet = [0u8; 60];
        (packet[0], packet[6]) = (0x60, 6);
        let own = flow_v6(&packet, 1);
        packet[3] = 5;
        assert_eq!(
            flow_v6(&packet, 1),
            own,
            "its ports say more than the label"
        );
        for at in [6, 8, 39, 40, 43] {
            let mut other = packet;
            other[at] = if at == 6 { 17 } else { 1 };
            assert_ne!(flow_v6(&other, 1), own, "{at}");
        }
        packet[6] = 44;
        let hidden = flow_v6(&packet, 1);
        packet[40] = 7;
        assert_eq!(flow_v6(&packet, 1), hidden);
        packet[3] = 6;
        assert_ne!(flow_v6(&packet, 1), hidden);
        assert_eq!(flow_v6(&packet[..39], 1), None);
    }
}
