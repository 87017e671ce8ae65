//! Sessions that come, change and go under traffic, limits that are reached, and queues that fill.
use crate::cases::{each_world, homes, observe};
use crate::frames::{self, GATEWAY, Home, v4, v6};
use crate::model::{Fate, Model};
use crate::world::*;
use dataplane::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const INTERNET: [u8; 4] = [192, 0, 2, 7];

pub fn up(home: &Home) -> Vec<u8> {
    home.sends_ip(&v4(home.v4, INTERNET, 64, 0, &[1; 80]))
}

pub fn down(home: &Home) -> Vec<u8> {
    frames::frame(GATEWAY, ROUTER, &v4(INTERNET, home.v4, 64, 0, &[2; 30]))
}

/// A small generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn sessions_come_change_and_go_under_traffic() {
    each_world(|mut w| come_change_and_go(&mut w));
}

fn come_change_and_go(w: &mut World) {
    let all = homes();
    let mut random = Random(88172645463325252);
    let mut online: Vec<Home> = vec![];
    let mut expected = vec![Usage::default(); 64];
    for _ in 0..400 {
        // One change, put before a burst of traffic without waiting for it.
        let home = &all[random.below(all.len())];
        let known = online.iter().position(|h| h.index == home.index);
        let mut gone = None;
        match (known, random.below(3)) {
            (Some(i), 0) => {
                w.controller
                    .remove_session(SessionIndex(home.index))
                    .unwrap();
                gone = Some(online.remove(i));
            }
            (Some(i), _) => {
                online[i].mtu = 500 + random.below(1000);
                // Its own numbers: nobody else ever has this address.
                online[i].v4[3] = home.index as u8 + 20 * random.below(3) as u8;
                online[i].mac[5] ^= 0x40;
                w.controller.set_session(World::entry(&online[i])).unwrap();
            }
            (None, _) => {
                online.push(home.clone());
                w.controller.set_session(World::entry(home)).unwrap();
            }
        }
        let model = Model::new(&online);
        let mut fates = vec![];
        for _ in 0..random.below(60) {
            let home = match online.get(random.below(online.len() + 1)) {
                Some(home) => home,
                None => &all[random.below(all.len())],
            };
            let (port, frame) = match random.below(2) {
                0 => (home.port, up(home)),
                _ => (CORE, down(home)),
            };
            let fate = model.fate(port, &frame);
            if let Fate::Out(to, _) = &fate {
                let usage = &mut expected[home.index as usize];
                if *to == CORE {
                    usage.ipv4.up_packets += 1;
                    usage.ipv4.up_octets += 100;
                } else {
                    usage.ipv4.down_packets += 1;
                    usage.ipv4.down_octets += 50;
                }
            }
            w.send(port, &frame);
            fates.push(fate);
        }
        w.settle();
        let mut got: Vec<_> = w
            .receive()
            .into_iter()
            .map(|(port, frame)| Fate::Out(port, frame))
            .collect();
        let mut wanted: Vec<_> = fates
            .into_iter()
            .filter(|f| matches!(f, Fate::Out(..)))
            .collect();
        let key = |f: &Fate| format!("{f:?}");
        got.sort_by_key(key);
        wanted.sort_by_key(key);
        let differ = got.iter().zip(&wanted).find(|(g, w)| g != w);
        assert!(
            got.len() == wanted.len() && differ.is_none(),
            "{} {} {differ:?}",
            got.len(),
            wanted.len()
        );
        if let Some(home) = gone {
            let usage = core::mem::take(&mut expected[home.index as usize]);
            let last = Event::Usage {
                index: SessionIndex(home.index),
                usage,
                removed: true,
            };
            let events: Vec<_> = w
                .events()
                .into_iter()
                .filter(|e| matches!(e, Event::Usage { .. }))
                .collect();
            assert_eq!(events, [last]);
        }
    }
    for home in &online {
        w.events();
        assert_eq!(w.usage(home.index), expected[home.index as usize]);
    }
}

#[test]
fn a_session_id_is_free_again_and_the_next_subscriber_inherits_nothing() {
    let (all, mut w) = (homes(), World::new());
    let old = &all[2];
    w.online(std::slice::from_ref(old));
    assert!(matches!(observe(&mut w, old.port, &up(old)), Fate::Out(..)));
    w.controller
        .remove_session(SessionIndex(old.index))
        .unwrap();
    w.settle();
    w.events();
    assert_eq!(
        observe(&mut w, old.port, &up(old)),
        Fate::Drop("unknown-session")
    );
    assert_eq!(
        observe(&mut w, CORE, &down(old)),
        Fate::Drop("discard-route")
    );
    let new = Home {
        mac: [2, 9, 9, 9, 9, 9],
        v4: [100, 64, 0, 50],
        ..old.clone()
    };
    w.online(std::slice::from_ref(&new));
    assert_eq!(w.usage(new.index), Usage::default());
    assert_eq!(observe(&mut w, old.port, &up(old)), Fate::Drop("wrong-mac"));
    assert_eq!(
        observe(&mut w, CORE, &down(old)),
        Fate::Drop("discard-route")
    );
    assert!(matches!(
        observe(&mut w, new.port, &up(&new)),
        Fate::Out(..)
    ));
}

#[test]
fn what_cannot_be_set_is_refused_and_not_there() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    let refused = |w: &mut World, entry: SessionEntry, reason| {
        let index = entry.index;
        w.controller.set_session(entry).unwrap();
        w.settle();
        assert_eq!(w.events(), [Event::SessionRefused { index, reason }]);
    };
    let new = |change: &dyn Fn(&mut SessionEntry)| {
        let mut entry = World::entry(&Home::new(40, ACCESS, &[(0x8100, 101)]));
        change(&mut entry);
        entry
    };
    refused(
        &mut w,
        new(&|e| e.pppoe_session_id = all[1].id),
        Refusal::IdTaken,
    );
    refused(
        &mut w,
        new(&|e| e.tags = wire::eth::Tags::single(99)),
        Refusal::NoSegment,
    );
    refused(
        &mut w,
        new(&|e| e.port = PortIndex(CORE)),
        Refusal::NoSegment,
    );
    refused(&mut w, new(&|e| e.port = PortIndex(77)), Refusal::NoSegment);
    refused(
        &mut w,
        new(&|e| e.ipv4 = Some(all[0].v4.into())),
        Refusal::AddressTaken,
    );
    refused(
        &mut w,
        new(&|e| e.ipv4 = Some(LOCAL_V4.into())),
        Refusal::AddressTaken,
    );
    refused(
        &mut w,
        new(&|e| e.ipv6 = World::entry(&all[0]).ipv6),
        Refusal::AddressTaken,
    );
    refused(
        &mut w,
        new(&|e| e.instance = InstanceIndex(2)),
        Refusal::Malformed,
    );
    refused(&mut w, new(&|e| e.pppoe_session_id = 0), Refusal::Malformed);
    refused(
        &mut w,
        new(&|e| e.index = SessionIndex(64)),
        Refusal::TableFull,
    );
    // A change that is refused ends the session: it must not go on as it was.
    let entry = SessionEntry {
        ipv4: Some(all[0].v4.into()),
        ..World::entry(&all[1])
    };
    refused(&mut w, entry, Refusal::AddressTaken);
    assert_eq!(
        observe(&mut w, all[1].port, &up(&all[1])),
        Fate::Drop("unknown-session")
    );
    // All others are as they were.
    for home in all.iter().filter(|h| h.index != all[1].index) {
        assert!(matches!(
            observe(&mut w, home.port, &up(home)),
            Fate::Out(..)
        ));
    }
    let prefix = "10.0.0.0/8".parse().unwrap();
    w.controller
        .set_route(InstanceIndex(7), prefix, Destination::Discard)
        .unwrap();
    w.controller
        .set_adjacency(
            AdjacencyIndex(8),
            Adjacency {
                port: PortIndex(0),
                mac: Some(Default::default()),
            },
        )
        .unwrap();
    w.controller
        .set_adjacency(
            AdjacencyIndex(0),
            Adjacency {
                port: PortIndex(8),
                mac: Some(Default::default()),
            },
        )
        .unwrap();
    w.settle();
    let refused = [
        Event::RouteRefused {
            instance: InstanceIndex(7),
            prefix,
        },
        Event::AdjacencyRefused(AdjacencyIndex(8)),
        Event::AdjacencyRefused(AdjacencyIndex(0)),
    ];
    let events: Vec<_> = w
        .events()
        .into_iter()
        .filter(|e| !matches!(e, Event::AdjacencyUsed(_)))
        .collect();
    assert_eq!(events, refused);
}

#[test]
fn the_table_of_routes_has_a_bound() {
    let mut w = World::with(
        no_policing(),
        Limits {
            instances: 2,
            sessions: 64,
            adjacencies: 8,
            routes: 100,
            ..Limits::default()
        },
    );
    for n in 0..100u8 {
        let prefix = ipnet::IpNet::new([10, 0, n, 0].into(), 24).unwrap();
        w.controller
            .set_route(InstanceIndex(0), prefix, Destination::Discard)
            .unwrap();
    }
    w.settle();
    let refused = w.events();
    assert!(
        refused.len() > 20
            && refused
                .iter()
                .all(|e| matches!(e, Event::RouteRefused { .. })),
        "{refused:?}"
    );
    let entry = World::entry(&homes()[0]);
    w.controller.set_session(entry.clone()).unwrap();
    w.settle();
    let full = Event::SessionRefused {
        index: entry.index,
        reason: Refusal::TableFull,
    };
    assert_eq!(w.events(), [full]);
    for n in 0..2u8 {
        let prefix = ipnet::IpNet::new([10, 0, n, 0].into(), 24).unwrap();
        w.controller.remove_route(InstanceIndex(0), prefix).unwrap();
    }
    w.controller.set_session(entry).unwrap();
    w.settle();
    assert_eq!(w.events(), []);
}

#[test]
fn a_route_to_a_session_that_is_gone_is_stale() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    // A framed route: its net's addresses are the subscriber's too.
    let net = "192.0.2.128/28".parse().unwrap();
    w.controller
        .set_route(InstanceIndex(0), net, Destination::Session(SessionIndex(2)))
        .unwrap();
    w.settle();
    let inside = [192, 0, 2, 130];
    let framed = all[1].sends_ip(&v4(inside, INTERNET, 64, 0, b"from behind the router"));
    assert!(matches!(
        observe(&mut w, ACCESS, &framed),
        Fate::Out(CORE, _)
    ));
    let forged = all[0].sends_ip(&v4(inside, INTERNET, 64, 0, b"from another home"));
    assert_eq!(
        observe(&mut w, ACCESS, &forged),
        Fate::Drop("spoofed-source-v4")
    );
    let to_net = frames::frame(GATEWAY, ROUTER, &v4(INTERNET, inside, 64, 0, b"to it"));
    assert!(matches!(
        observe(&mut w, CORE, &to_net),
        Fate::Out(ACCESS, _)
    ));
    w.controller.remove_session(SessionIndex(2)).unwrap();
    w.settle();
    assert_eq!(observe(&mut w, CORE, &to_net), Fate::Drop("stale-session"));
}

#[test]
fn rates_and_queues_for_punted_packets_have_bounds() {
    let rate = |burst| PuntRate {
        per_second: 1,
        burst,
    };
    let mut limits = PuntLimits::all(rate(1_000_000));
    limits.per_session = rate(10);
    for (kind, burst) in [
        ("discovery", 100),
        ("session", 15),
        ("echo", 4),
        ("local", 7),
        ("ttl-expired", 3),
        ("too-big", 2),
    ] {
        limits = limits.with(kind, rate(burst)).unwrap();
    }
    let (all, mut w) = (
        homes(),
        World::with(
            limits,
            Limits {
                instances: 2,
                ..Limits::default()
            },
        ),
    );
    w.online(&all);
    let send = |w: &mut World, port: u16, frame: &[u8], times: usize| {
        for _ in 0..times {
            w.send(port, frame);
            w.step();
        }
    };
    send(&mut w, ACCESS, &all[0].discovers([0xff; 6], 9, 0), 150);
    assert_eq!(w.drops()["punt-policed"], 50);
    send(&mut w, ACCESS, &all[0].sends(0xc021, &[5, 1, 0, 4]), 12);
    assert_eq!(w.drops()["session-policed"], 2);
    // Another session has its own rate, within that of all.
    send(&mut w, ACCESS, &all[1].sends(0xc021, &[5, 1, 0, 4]), 6);
    assert_eq!(
        (w.drops()["session-policed"], w.drops()["punt-policed"]),
        (2, 51)
    );
    // Echoes have another rate than all else that sessions say.
    send(&mut w, ACCESS, &all[2].sends(0xc021, &[9, 1, 0, 4]), 5);
    assert_eq!((w.punted("echo"), w.drops()["punt-policed"]), (4, 52));
    send(
        &mut w,
        ACCESS,
        &all[0].sends_ip(&v4(all[0].v4, LOCAL_V4, 64, 0, b"ping")),
        8,
    );
    assert_eq!(w.drops()["punt-policed"], 53);
    send(
        &mut w,
        ACCESS,
        &all[0].sends_ip(&v4(all[0].v4, INTERNET, 1, 0, b"trace")),
        8,
    );
    assert_eq!((w.drops()["ttl-expired"], w.punted("ttl-expired")), (8, 3));
    w.punts();
    let mut arp = frames::frame([0xff; 6], ROUTER, &[0; 28]);
    arp[12..14].copy_from_slice(&[8, 6]);
    send(&mut w, CORE, &arp, 2100);
    assert_eq!(
        (w.drops()["punt-queue-full"], w.punts().len()),
        (2100 - 2048, 2048)
    );
}

#[test]
fn a_flood_of_one_kind_for_the_kernel_leaves_the_others_their_rates() {
    let mut limits = PuntLimits::all(PuntRate {
        per_second: 1,
        burst: 1,
    });
    let kinds = ["resolution", "routing", "multicast", "for-us"];
    for (kind, burst) in kinds.into_iter().zip(5..) {
        let rate = PuntRate {
            per_second: 1,
            burst,
        };
        limits = limits.with(kind, rate).unwrap();
    }
    let mut w = World::with(
        limits,
        Limits {
            instances: 2,
            ..Limits::default()
        },
    );
    let to_us = |packet: &[u8]| frames::frame(GATEWAY, ROUTER, packet);
    let six = |hops, next, payload: &[u8]| to_us(&v6([0x26; 16], LOCAL_V6, hops, next, payload));
    let mut arp = frames::frame([0xff; 6], ROUTER, &[0; 28]);
    arp[12..14].copy_from_slice(&[8, 6]);
    let ports = |source: u16, destination: u16| {
        let ports = [source.to_be_bytes(), destination.to_be_bytes()];
        [&ports.concat()[..], &[0; 16]].concat()
    };
    let with_protocol = |protocol: u8, payload: &[u8]| {
        let mut packet = v4(INTERNET, LOCAL_V4, 64, 0, payload);
        packet[9] = protocol;
        frames::seal(&mut packet);
        packet
    };
    let all_hosts = [1, 0, 0x5e, 0, 0, 1];
    let is_is = {
        let mut frame = frames::frame([1, 0x80, 0xc2, 0, 0, 0x14], ROUTER, &[0; 60]);
        frame[12..14].copy_from_slice(&60u16.to_be_bytes());
        frame
    };
    let frames = [
        (0, arp),
        (0, six(255, 58, &[135, 0, 0, 0])),
        (1, to_us(&with_protocol(6, &ports(40000, 179)))),
        (1, to_us(&with_protocol(6, &ports(179, 40000)))),
        (1, to_us(&with_protocol(89, &[0; 20]))),
        (1, six(255, 17, &ports(49152, 3784))),
        (1, is_is),
        (
            2,
            frames::frame(all_hosts, ROUTER, &with_protocol(2, &[0; 8])),
        ),
        (3, to_us(&with_protocol(6, &ports(40000, 22)))),
        (3, to_us(&with_protocol(1, &[8, 0, 0, 0]))),
        (3, six(64, 58, &[128, 0, 0, 0])),
    ];
    for (of, frame) in &frames {
        let before = kinds.map(|kind| w.punted(kind) + w.policed(kind));
        w.send(CORE, frame);
        w.settle();
        let after = kinds.map(|kind| w.punted(kind) + w.policed(kind));
        let mut expected = before;
        expected[*of] += 1;
        assert_eq!(after, expected, "{frame:x?}");
    }
    for (_, frame) in frames.iter().cycle().take(500) {
        w.send(CORE, frame);
        w.settle();
    }
    assert_eq!(kinds.map(|kind| w.punted(kind)), [5, 6, 7, 8]);
    let policed: u64 = kinds.map(|kind| w.policed(kind)).iter().sum();
    assert_eq!(policed, w.drops()["punt-policed"]);
}

#[test]
fn a_full_transmit_queue_and_a_buffer_without_room_are_counted() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    for _ in 0..300 {
        w.send(ACCESS, &up(&all[0]));
        w.step();
    }
    assert_eq!((w.receive().len(), w.drops()["tx-queue-full"]), (256, 44));
    assert_eq!(w.controller.ports()[CORE as usize].tx_dropped, 44);
    // So far back in its buffer that the window does not fit.
    let mut no_headroom = w.pool.packet(&[0; 2048]).unwrap();
    no_headroom.advance(2000);
    w.send_mbuf(CORE, no_headroom);
    w.settle();
    assert_eq!(w.drops()["unsupported-buffer"], 1);
}

#[test]
fn a_worker_thread_wakes_the_control_thread_and_stops() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    assert!(w.controller.arm() && !readable(&w.controller));
    w.send(ACCESS, &all[0].discovers([0xff; 6], 9, 0));
    w.step();
    assert!(readable(&w.controller));
    assert!(!w.controller.arm(), "a punt waits");
    w.send(ACCESS, &all[0].discovers([0xff; 6], 9, 0));
    w.step();
    assert!(
        !readable(&w.controller),
        "nobody sleeps, so nobody is woken"
    );
    assert_eq!(w.punts().len(), 2);
    assert!(w.controller.arm());
    w.controller.read_usage(SessionIndex(1)).unwrap();
    w.step();
    assert!(readable(&w.controller) && w.events().len() == 1);
}

fn readable(controller: &Controller) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    poll(
        &mut [PollFd::new(controller.wakeup(), PollFlags::POLLIN)],
        PollTimeout::ZERO,
    )
    .unwrap()
        == 1
}

#[test]
fn an_idle_worker_leaves_the_machine_idle() {
    let mut w = World::deep();
    let worker = w.take_workers().remove(0);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let thread = std::thread::spawn(move || {
        worker.run(&flag);
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap()
    });
    let before = Instant::now();
    std::thread::sleep(Duration::from_millis(1000));
    stop.store(true, Relaxed);
    let used = Duration::from(thread.join().unwrap());
    let share = used.as_secs_f64() / before.elapsed().as_secs_f64();
    println!("idle worker: {:.2} % of a core", share * 100.0);
    // One that spins has 100. A round takes tens of microseconds in a debug build beside others, and a sleep lasts 60.
    assert!(share < 0.5, "{share}");
}
