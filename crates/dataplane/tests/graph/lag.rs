//! A port with several members.
use crate::frames::*;
use crate::queues::{BEGIN, MS, RATE, rules, send, set_policy, set_session};
use crate::world::*;
use dataplane::*;
use dpdk::Lag;
use policy::Rate;
use std::collections::BTreeMap;
use std::sync::Arc;

const PORT: u16 = 9;

fn frame(to: [u8; 6], ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let home = [2, 0, 0, 0, 0, 0x77];
    let mut frame = [&to[..], &home, &ethertype, payload].concat();
    frame.resize(60, 0);
    frame
}

/// PADI (RFC 2516 §5.1).
fn padi() -> Vec<u8> {
    frame([0xff; 6], [0x88, 0x63], &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0])
}

fn lacpdu() -> Vec<u8> {
    frame([1, 0x80, 0xc2, 0, 0, 2], [0x88, 0x09], &[1, 1])
}

/// What reaches the control thread: kind, and number of the member.
fn punted(w: &mut World) -> Vec<(PuntKind, u16)> {
    let mut all = vec![];
    w.controller
        .recv_punts(usize::MAX, |p| all.push((p.kind, p.member)));
    all
}

#[test]
fn an_unused_member_brings_lacp_alone_and_what_else_comes_is_counted_apart_from_losses() {
    let mut w = World::new();
    let segments = Segment::whole_port();
    let lag = w.add_lag(PORT, Role::Access { segments });
    let send = |w: &mut World, member, frame: &[u8]| {
        let mbuf = w.pool.packet(frame).unwrap();
        w.send_by(PORT, member, mbuf);
        w.settle();
    };
    let counted = |w: &World| {
        let ports = w.controller.ports();
        let port = ports.iter().find(|port| port.index.0 == PORT).unwrap();
        (port.rx_packets, port.unaggregated, port.rx_lost, port.up)
    };
    send(&mut w, 1, &padi());
    send(&mut w, 1, &lacpdu());
    assert_eq!(punted(&mut w), [(PuntKind::SlowProtocol, 1)]);
    // The control plane's watchdog takes losses without packets for a driver that has stopped.
    assert_eq!(counted(&w), (1, 1, 0, false));

    // LACP is answered although nothing else is sent, by its own member.
    let answer = lacpdu();
    w.inject(Inject::Member(PortIndex(PORT), 1, &answer));
    w.settle();
    let sent: Vec<bool> = (w.peers.get_mut(&PORT).unwrap().iter_mut())
        .map(|member| member.from_port.recv().is_some())
        .collect();
    assert_eq!(sent, [false, true]);
    w.got += 1;

    lag.set(0b10, 0b10);
    send(&mut w, 1, &padi());
    send(&mut w, 0, &padi());
    let discovery = punted(&mut w);
    assert!(
        matches!(discovery[..], [(PuntKind::Discovery, 1)]),
        "{discovery:?}"
    );
    assert_eq!(counted(&w), (2, 2, 0, true));
}

/// Eight homes with queues at a port with two members, and ten packets a millisecond for each.
fn with_homes() -> (World, Arc<Lag>, Vec<Home>) {
    let mut w = World::new();
    let segments = Segment::whole_port();
    let lag = w.add_lag(PORT, Role::Access { segments });
    lag.set(0b11, 0b11);
    let homes = (1..=8).map(|n| Home::new(n, PORT, &[(0x8100, 100)]));
    let homes: Vec<Home> = homes.collect();
    w.online(&homes);
    w.settle_at(BEGIN);
    set_policy(&mut w, 1, Some(&rules()));
    for home in &homes {
        set_session(&mut w, home, Some(1), Some(Rate::kbps(RATE.get() * 10)));
    }
    (w, lag, homes)
}

/// What waits leaves, from so many milliseconds on.
fn drain(w: &mut World, from: u32) {
    for tenth in 10 * from..10 * (from + 300) {
        w.settle_at(BEGIN + tenth * MS / 10);
        w.discard();
    }
}

/// How many frames each home got by each of the first members in so many milliseconds, while all want more than there is. What leaves by the other
/// one stays in its ring.
fn shares(
    w: &mut World,
    homes: &[Home],
    (from, n): (u32, u32),
    members: usize,
) -> BTreeMap<[u8; 6], [usize; 2]> {
    let mut shares = BTreeMap::new();
    // a port makes up for 200 microseconds
    for tenth in 10 * from..10 * (from + n) {
        if tenth % 40 == 0 {
            homes.iter().for_each(|home| send(w, home, 0, 5));
        }
        w.settle_at(BEGIN + tenth * MS / 10);
        let mut got = 0;
        for (member, peer) in (0..members).zip(w.peers.get_mut(&PORT).unwrap()) {
            while let Some(mbuf) = peer.from_port.recv() {
                let to: [u8; 6] = mbuf.data()[..6].try_into().unwrap();
                shares.entry(to).or_insert([0; 2])[member] += 1;
                got += 1;
            }
        }
        w.got += got;
    }
    shares
}

#[test]
fn rates_hold_across_members_and_the_homes_of_one_that_fails_go_on_by_the_others() {
    let (mut w, lag, homes) = with_homes();
    // eight homes could have ten times as much each
    let each = 400;
    let wire = 1024 + 22 + 8 + 4;
    let of_port = 8 * wire * 8 * each / 1000;
    (w.controller)
        .set_egress_rate(PortIndex(PORT), Some(Rate::kbps(of_port as u64)))
        .unwrap();
    shares(&mut w, &homes, (0, 200), 2);
    let near = |found: usize, wanted: usize| found.abs_diff(wanted) <= wanted / 20;
    let sum = |shares: &BTreeMap<_, [usize; 2]>| shares.values().flatten().sum::<usize>();

    let both = shares(&mut w, &homes, (200, 1000), 2);
    assert!(near(sum(&both), 8 * each), "{both:?}");
    assert!(
        both.values().all(|by| near(by[0] + by[1], each)),
        "{both:?}"
    );
    assert!(
        both.values().all(|by| by.contains(&0)),
        "a home has one member: {both:?}"
    );
    let of_second = both.values().filter(|by| by[1] > 0).count();
    assert!((2..=6).contains(&of_second), "{both:?}");

    lag.set(0b01, 0b01);
    let one = shares(&mut w, &homes, (1200, 1000), 2);
    assert!(
        one.values().all(|by| near(by[0], each) && by[1] == 0),
        "{one:?}"
    );
    let drops = w.drops();
    assert_eq!(drops.keys().collect::<Vec<_>>(), [&"queue-full"]);
    drain(&mut w, 2200);
}

#[test]
fn a_member_that_is_full_does_not_stop_the_others() {
    let (mut w, _, homes) = with_homes();
    let by = shares(&mut w, &homes, (0, 100), 2);
    let (first, second): (Vec<_>, Vec<_>) = (homes.iter()).partition(|home| by[&home.mac][1] == 0);
    assert!(first.len() > 1 && second.len() > 1);
    assert_eq!(w.drops(), BTreeMap::new());
    // nobody takes what the second one sends: 256 frames are in its ring
    let by = shares(&mut w, &homes, (100, 1000), 1);
    for home in &first {
        assert_eq!(by[&home.mac], [1250, 0]);
    }
    let sent = 1250 * second.len();
    let drops = w.drops();
    let dropped = drops["tx-queue-full"] as usize;
    assert!(dropped > sent / 2 && dropped <= sent - 256, "{drops:?}");
    drain(&mut w, 1100);
}
