//! A port whose packets leave at a rate.
use crate::cases::homes;
use crate::frames::{Home, v4};
use crate::world::*;
use dataplane::*;
use std::time::Duration;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
/// Octets of an IP packet, and of its frame on the wire: Ethernet, preamble, gap and frame check sequence.
const PACKET: usize = 1000;
const ON_THE_WIRE: u64 = PACKET as u64 + 14 + 24;
/// A frame each millisecond.
const RATE: Rate = Rate::kbps(ON_THE_WIRE * 8);

/// When tests begin: later than the machine's time.
const BEGIN: Duration = Duration::from_secs(1 << 26);

/// Packets that wait at most at that rate: 24,000 octets of frames, as 20 ms of the rate are less.
const WAITING: usize = 24_000 / (PACKET + 14);

fn set(w: &mut World, rate: Option<Rate>) {
    w.controller.set_egress_rate(PortIndex(CORE), rate).unwrap();
    w.settle();
}

/// So many packets of a home to the internet, numbered from `first` on.
fn send(w: &mut World, home: &Home, first: u8, n: u8) {
    for number in first..first + n {
        let packet = v4(home.v4, INTERNET, 64, 0, &[number; PACKET - 20]);
        w.send(home.port, &home.sends_ip(&packet));
    }
}

/// The numbers of those that left until a time.
fn left(w: &mut World, at: Duration) -> Vec<u8> {
    w.settle_at(at);
    let all = w.receive().into_iter();
    all.filter(|(port, _)| *port == CORE)
        .map(|(_, frame)| *frame.last().unwrap())
        .collect()
}

#[test]
fn packets_leave_at_the_rate_in_their_order_and_no_more_than_fit_wait() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let begin = BEGIN;
    w.settle_at(begin);
    set(&mut w, Some(RATE));
    send(&mut w, &homes[0], 0, 40);
    let mut all = left(&mut w, begin);
    assert!(all.len() <= 2, "{all:?}");
    assert_eq!(w.drops()["egress-queue-full"], 40 - WAITING as u64);
    for ms in 1..=(WAITING as u64) {
        let at = begin + Duration::from_millis(ms);
        let next = w.next_departure();
        let waits = all.len() < WAITING;
        assert_eq!(next.is_some_and(|next| next <= at), waits, "{next:?}");
        all.extend(left(&mut w, at));
        let wanted = (ms as usize..=ms as usize + 2).contains(&all.len());
        assert!(
            wanted || all.len() == WAITING,
            "{} after {ms} ms",
            all.len()
        );
    }
    assert!(all.iter().copied().eq(0..WAITING as u8), "{all:?}");
    assert_eq!(w.next_departure(), None);
}

#[test]
fn a_change_of_rate_loses_nothing_that_waits() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    w.settle_at(BEGIN);
    set(&mut w, Some(RATE));
    send(&mut w, &homes[0], 0, 20);
    w.settle();
    let before = w.receive().len();
    set(&mut w, Some(Rate::kbps(RATE.get() * 1000)));
    let faster = left(&mut w, BEGIN + Duration::from_millis(2)).len();
    assert!(before < 3 && before + faster == 20, "{before}, {faster}");
    // and without a rate nothing waits any more
    set(&mut w, Some(RATE));
    send(&mut w, &homes[0], 20, 20);
    w.settle();
    assert!(w.receive().len() < 3);
    set(&mut w, None);
    send(&mut w, &homes[0], 40, 1);
    w.settle();
    let rest: Vec<u8> = w
        .receive()
        .iter()
        .map(|(_, frame)| *frame.last().unwrap())
        .collect();
    assert_eq!((rest.len() >= 18, rest.last()), (true, Some(&40)));
    assert_eq!(w.drops(), Default::default());
}

#[test]
fn what_comes_after_the_rate_is_gone_does_not_overtake_what_waits() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    w.settle_at(BEGIN);
    set(&mut w, Some(RATE));
    send(&mut w, &homes[0], 0, 10);
    let mut all = left(&mut w, BEGIN);
    assert!(all.len() < 3, "{all:?}");
    // the worker hears of it in the round in which the next packets come
    (w.controller.set_egress_rate(PortIndex(CORE), None)).unwrap();
    send(&mut w, &homes[0], 10, 10);
    all.extend(left(&mut w, BEGIN));
    assert!(all.iter().copied().eq(0..20), "{all:?}");
    assert_eq!(w.drops(), Default::default());
}

#[test]
fn workers_share_the_rate_of_a_port() {
    let (homes, mut w) = (homes(), World::shared(4, 4));
    w.online(&homes);
    let begin = BEGIN;
    w.settle_at(begin);
    set(&mut w, Some(RATE));
    for home in homes.iter().filter(|home| home.port == ACCESS) {
        send(&mut w, home, home.index as u8, 1);
    }
    let mut all = left(&mut w, begin).len();
    let sent = homes.iter().filter(|home| home.port == ACCESS).count();
    assert!(all <= 2 && sent > 3);
    for ms in 1..=(sent as u64) {
        all += left(&mut w, begin + Duration::from_millis(ms)).len();
        assert!(all <= ms as usize + 2, "{all} after {ms} ms");
    }
    assert_eq!(all, sent);
}

#[test]
fn what_a_port_does_not_take_is_the_next_that_it_gets() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    w.settle_at(BEGIN);
    set(&mut w, Some(Rate::kbps(40_000_000)));
    // the port's ring holds 255
    for first in [0, 100, 200] {
        send(&mut w, &homes[0], first, if first < 200 { 100 } else { 55 });
        w.settle();
    }
    send(&mut w, &homes[0], 0, 20);
    w.settle();
    // nor does it cost the port its rate that it is asked in vain
    (0..100).for_each(|_| w.settle());
    assert!(w.next_departure().is_some_and(|at| at <= BEGIN));
    let of = |frames: Vec<(u16, Vec<u8>)>| -> Vec<u8> {
        frames
            .iter()
            .map(|(_, frame)| *frame.last().unwrap())
            .collect()
    };
    let mut all = of(w.receive());
    assert!((200..275).contains(&all.len()), "{}", all.len());
    w.settle();
    all.extend(of(w.receive()));
    let wanted = (0..=254).chain(0..20);
    assert!(all.iter().copied().eq(wanted), "{all:?}");
    assert_eq!(w.drops(), Default::default());
}

#[test]
fn what_waits_leaves_before_its_port_does() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    set(&mut w, Some(RATE));
    send(&mut w, &homes[0], 0, 20);
    w.settle();
    let before = w.receive().len();
    assert_eq!(before + w.remove(CORE).len(), 20);
}
