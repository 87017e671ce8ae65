//! Counters of a session that have no room for a packet's octets: those of a family in one direction have 32 bits.
use crate::cases::homes;
use crate::frames::{GATEWAY, Home, frame, v4, v6};
use crate::world::*;
use dataplane::*;
use policy::Rate;

const INTERNET_V4: [u8; 4] = [192, 0, 2, 7];
const INTERNET_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
/// Octets of each packet, and how many are sent at a time.
const LENGTH: usize = 1492;
const BURST: u64 = 32;
/// So many have room; the next one has none.
const ROOM: u64 = (u32::MAX as u64) / LENGTH as u64;
/// So many follow that one.
const MORE: u64 = 5;

/// Packets from a home and to it.
fn packets(home: &Home, is_v6: bool) -> [Vec<u8>; 2] {
    let own = home.v6_address();
    match is_v6 {
        false => {
            let payload = [7; LENGTH - 20];
            [(home.v4, INTERNET_V4), (INTERNET_V4, home.v4)]
                .map(|(from, to)| v4(from, to, 64, 0, &payload))
        }
        true => {
            let payload = [7; LENGTH - 40];
            [(own, INTERNET_V6), (INTERNET_V6, own)]
                .map(|(from, to)| v6(from, to, 64, 59, &payload))
        }
    }
}

/// Sends more octets of a family both ways than their counters have room for: each packet comes out, and is counted.
fn overflow(w: &mut World, home: &Home, is_v6: bool) {
    let [up, down] = packets(home, is_v6);
    let (up, down) = (home.sends_ip(&up), frame(GATEWAY, ROUTER, &down));
    let (before, mut left) = (w.got, ROOM + 1 + MORE);
    let sent = left;
    while left > 0 {
        let burst = left.min(BURST);
        for _ in 0..burst {
            w.send(home.port, &up);
            w.send(CORE, &down);
        }
        w.settle();
        w.discard();
        left -= burst;
    }
    assert_eq!(w.got - before, 2 * sent);
    w.events(); // that the neighbour is used
    let usage = w.usage(home.index);
    let volume = if is_v6 { usage.ipv6 } else { usage.ipv4 };
    let octets = sent * LENGTH as u64;
    assert!(octets > 1 << 32);
    let expected = Volume {
        up_packets: sent,
        up_octets: octets,
        down_packets: sent,
        down_octets: octets,
    };
    assert_eq!(volume, expected);
}

#[test]
fn a_packet_for_which_the_counters_have_no_room_is_forwarded_and_counted() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    overflow(&mut w, &homes[0], true);
}

#[test]
fn that_is_so_in_a_session_with_rates() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let mut entry = World::entry(&homes[0]);
    let most = Some(Rate::MOST);
    (entry.packets.rate_up, entry.packets.rate_down) = (most, most);
    w.controller.set_session(entry).unwrap();
    overflow(&mut w, &homes[0], false);
}

#[test]
fn that_is_so_in_a_session_that_is_sampled() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let rarely = SampleRate {
        one_in: 1 << 30,
        per_second: 1,
    };
    let index = SessionIndex(homes[0].index);
    w.controller.sample(index, Some(rarely)).unwrap();
    overflow(&mut w, &homes[0], true);
    w.punts();
}
