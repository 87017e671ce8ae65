//! Link aggregation: several devices that are one port (IEEE 802.1AX). Which of them frames are sent and received by is decided
//! elsewhere, by LACP; here frames are spread over those.
use crate::queue::{DeviceQueue, Sent};
use crate::{BURST, Burst};
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use wire::eth::{IPV4, IPV6, SLOW_PROTOCOLS, TPID_8021AD, TPID_8021Q};

/// The most members of a LAG.
pub const MAX_MEMBERS: usize = 8;

/// What says by which member a frame is sent. Frames of a subscriber are the same in this, so all of them go by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The destination address and the VLAN ids: towards subscribers.
    Destination,
    /// The source address of the IP packet (of IPv6 its first 64 bits) and the VLAN ids: from subscribers.
    Source,
}

/// What the members of a LAG share: by which of them frames are sent and received. Bit 0 of a set is the first member.
#[derive(Debug)]
pub struct Lag {
    members: u16,
    spread: Spread,
    receives: AtomicU16,
    sends: AtomicU16,
    unaggregated: AtomicU64,
}

impl Lag {
    pub(crate) fn new(members: usize, spread: Spread) -> Lag {
        Lag {
            members: members as u16,
            spread,
            receives: AtomicU16::new(0),
            sends: AtomicU16::new(0),
            unaggregated: AtomicU64::new(0),
        }
    }

    /// Says by which members frames are received, and by which they are sent, from the next burst on. What a subscriber sends and gets
    /// stays at its member as long as that is one of them, and goes back to it.
    pub fn set(&self, receives: u16, sends: u16) {
        self.receives.store(receives, Relaxed);
        self.sends.store(sends, Relaxed);
    }

    /// Whether frames are sent and received by a member at least.
    pub fn is_up(&self) -> bool {
        self.receives.load(Relaxed) & self.sends.load(Relaxed) != 0
    }

    /// Frames that came by a member from which nothing is received; LACP's own are not among them.
    pub fn unaggregated(&self) -> u64 {
        self.unaggregated.load(Relaxed)
    }
}

/// The other members' parts of a LAG's queue; that of the first member is kept where a port without others has its only one.
#[derive(Debug)]
pub(crate) struct LagQueue {
    others: Vec<DeviceQueue>,
    lag: Arc<Lag>,
    /// The member that is asked first for packets.
    turn: usize,
    /// Packets for one member; empty in between, as are those that are left.
    part: Burst,
    left: Burst,
}

impl LagQueue {
    pub fn new(others: Vec<DeviceQueue>, lag: Arc<Lag>) -> Self {
        LagQueue {
            others,
            lag,
            turn: 0,
            part: Burst::new(),
            left: Burst::new(),
        }
    }

    pub fn others(&self) -> &[DeviceQueue] {
        &self.others
    }

    /// Receives a burst of the member whose turn it is, or of the next one that has packets.
    pub fn rx(&mut self, first: &mut DeviceQueue, burst: &mut Burst) -> usize {
        let members = self.others.len() + 1;
        for _ in 0..members {
            let member = self.turn;
            self.turn = (member + 1) % members;
            if member_of(first, &mut self.others, member).rx(burst) > 0 {
                burst.set_member(member as u16);
                if self.lag.receives.load(Relaxed) & 1 << member == 0 {
                    let dropped = burst.keep(is_slow_protocol) as u64;
                    self.lag.unaggregated.fetch_add(dropped, Relaxed);
                }
                if !burst.is_empty() {
                    break;
                }
            }
        }
        burst.len()
    }

    /// Sends each packet by the member that is its own, or by another if nothing is sent by that.
    pub fn tx(&mut self, first: &mut DeviceQueue, burst: &mut Burst) -> Sent {
        let sends = self.lag.sends.load(Relaxed);
        if sends == 0 {
            return Sent::default();
        }
        if sends.is_power_of_two() {
            let member = sends.trailing_zeros() as usize;
            return member_of(first, &mut self.others, member).tx(burst);
        }
        let Lag {
            members, spread, ..
        } = *self.lag;
        burst.assign_members(|frame| pick(hash(frame, spread), members, sends));
        self.tx_by_member(first, burst)
    }

    /// Sends each packet by the member that it names. Half a burst is left for members that are full; what is more for them is dropped if
    /// another member has room, as its packets would have to wait as well.
    pub fn tx_by_member(&mut self, first: &mut DeviceQueue, burst: &mut Burst) -> Sent {
        let (mut sent, mut has_room) = (Sent::default(), false);
        while let Some(member) = burst.split_member(&mut self.part) {
            if usize::from(member) <= self.others.len() {
                sent += member_of(first, &mut self.others, member.into()).tx(&mut self.part);
            }
            has_room |= self.part.is_empty();
            self.left.append(&mut self.part);
        }
        while has_room && self.left.len() > BURST / 2 {
            drop(self.left.pop());
            sent.dropped += 1;
        }
        burst.append(&mut self.left);
        sent
    }
}

fn member_of<'a>(
    first: &'a mut DeviceQueue,
    others: &'a mut [DeviceQueue],
    member: usize,
) -> &'a mut DeviceQueue {
    match member.checked_sub(1) {
        None => first,
        Some(other) => &mut others[other],
    }
}

/// Octets of the frame from `at` on, as a number; 0 if it has not so many.
#[inline(always)]
fn octets<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let octets = frame.get(at..at + N);
    octets
        .and_then(|octets| octets.try_into().ok())
        .unwrap_or([0; N])
}

fn ethertype(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(octets(frame, at))
}

fn is_slow_protocol(frame: &[u8]) -> bool {
    ethertype(frame, 12) == SLOW_PROTOCOLS
}

/// A number that is the same for all frames of a subscriber, and evenly spread otherwise.
#[inline]
fn hash(frame: &[u8], spread: Spread) -> u32 {
    let (mut at, mut vlans) = (12, 0u64);
    for _ in 0..2 {
        if [TPID_8021Q, TPID_8021AD].contains(&ethertype(frame, at)) {
            vlans = vlans << 12 | u64::from(ethertype(frame, at + 2) & 0xfff);
            at += 4;
        }
    }
    let of = match (spread, ethertype(frame, at)) {
        (Spread::Destination, _) => u64::from_be_bytes(octets(frame, 0)) >> 16,
        (Spread::Source, IPV4) => u32::from_be_bytes(octets(frame, at + 14)).into(),
        (Spread::Source, IPV6) => u64::from_be_bytes(octets(frame, at + 10)),
        (Spread::Source, _) => 0,
    };
    // Neighbours' addresses differ in few bits; the multiplications carry each of them to the upper half.
    let mixed = (of ^ vlans << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
}

/// The member of a frame with this hash: the one that it has if frames are sent by all, else one of those by which they are.
#[inline]
fn pick(hash: u32, members: u16, sends: u16) -> u16 {
    let of = |count: u32, hash: u32| ((u64::from(hash) * u64::from(count)) >> 32) as u32;
    let own = of(members.into(), hash) as u16;
    if sends >> own & 1 != 0 {
        return own;
    }
    let mut left = sends;
    for _ in 0..of(sends.count_ones(), hash.rotate_left(16)) {
        left &= left - 1;
    }
    left.trailing_zeros() as u16
}

// a set of members is a word of 16 bits
const _: () = assert!(MAX_MEMBERS <= 16);

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, tags: &[u16], payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, 0xaa];
        for tag in tags {
            frame.extend([0x81, 0]);
            frame.extend(tag.to_be_bytes());
        }
        frame.extend(payload);
        frame
    }

    fn ipv4(source: u8, destination: u8) -> Vec<u8> {
        let mut packet = vec![0x08, 0, 0x45];
        packet.resize(2 + 20, 0);
        packet[2 + 12..].copy_from_slice(&[100, 64, 0, source, 192, 0, 2, destination]);
        packet
    }

    #[test]
    fn a_subscriber_s_frames_have_one_hash_each_way() {
        let down =
            |to, tags: &[u16], rest: &[u8]| hash(&frame(to, tags, rest), Spread::Destination);
        assert_eq!(
            down(7, &[100, 5], &ipv4(1, 2)),
            down(7, &[100, 5], &ipv4(9, 9))
        );
        assert_eq!(
            down(7, &[0x6064], &[]),
            down(7, &[0x64], &[]),
            "priorities do not count"
        );
        assert_ne!(down(7, &[100, 5], &[]), down(7, &[100, 6], &[]));
        assert_ne!(down(7, &[], &[]), down(8, &[], &[]));
        let up = |to, source, destination| {
            hash(
                &frame(to, &[300], &ipv4(source, destination)),
                Spread::Source,
            )
        };
        assert_eq!(up(1, 7, 1), up(2, 7, 9));
        assert_ne!(up(1, 7, 1), up(1, 8, 1));
        let v6 = |net: u8, host: u8| {
            let mut packet = vec![0x86, 0xdd, 0x60];
            packet.resize(2 + 40, 0);
            (packet[2 + 8 + 7], packet[2 + 8 + 15]) = (net, host);
            hash(&frame(1, &[], &packet), Spread::Source)
        };
        assert_eq!(v6(1, 1), v6(1, 2));
        assert_ne!(v6(1, 1), v6(2, 1));
        for len in 0..60 {
            let whole = frame(1, &[100, 5], &ipv4(1, 2));
            let cut = &whole[..len.min(whole.len())];
            let _ = (hash(cut, Spread::Destination), hash(cut, Spread::Source));
        }
    }

    #[test]
    fn subscribers_are_spread_evenly_and_only_those_of_a_failed_member_move() {
        for members in 1..=MAX_MEMBERS as u16 {
            let all = (1 << members) - 1;
            let homes = (0..4000u32).map(|n| {
                let [.., a, b] = n.to_be_bytes();
                let mut frame = frame(b, &[100], &[]);
                frame[4] = a;
                hash(&frame, Spread::Destination)
            });
            let homes: Vec<u32> = homes.collect();
            let mut at = vec![0; members.into()];
            for home in &homes {
                at[usize::from(pick(*home, members, all))] += 1;
            }
            let fair = homes.len() / usize::from(members);
            assert!(
                at.iter()
                    .all(|n| (fair * 8 / 10..=fair * 12 / 10).contains(n)),
                "{at:?}"
            );
            for failed in 0..members {
                let others = all & !(1 << failed);
                if others == 0 {
                    continue;
                }
                let mut moved = vec![0; members.into()];
                for home in &homes {
                    let (before, after) = (pick(*home, members, all), pick(*home, members, others));
                    assert!(after == before || before == failed);
                    assert_ne!(after, failed);
                    moved[usize::from(after)] += usize::from(after != before);
                }
                let fair = at[usize::from(failed)] / usize::from(members - 1);
                for member in (0..members).filter(|member| *member != failed) {
                    let got = moved[usize::from(member)];
                    assert!((fair * 7 / 10..=fair * 13 / 10).contains(&got), "{moved:?}");
                }
            }
        }
    }
}
