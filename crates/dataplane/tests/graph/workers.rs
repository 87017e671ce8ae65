//! Several workers: what one receives for another's sessions is handed over, in its order, and none of it is lost unseen.
use crate::cases::{homes, observe};
use crate::churn::{down, up};
use crate::frames::{self, GATEWAY, Home, v4};
use crate::model::{Fate, Model};
use crate::world::*;
use dataplane::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const INTERNET: [u8; 4] = [192, 0, 2, 7];

/// What each worker handed over and took over.
fn handed(w: &World) -> Vec<(u64, u64)> {
    let workers = w.controller.workers();
    workers.map(|w| (w.handed_over, w.taken_over)).collect()
}

/// The packet of a flow with this number.
fn numbered(home: &Home, n: u16) -> Vec<u8> {
    v4(home.v4, INTERNET, 64, 0, &n.to_be_bytes())
}

#[test]
fn a_flow_keeps_its_order_whichever_worker_works_when() {
    let (all, mut w) = (homes(), World::shared(4, 2));
    w.online(&all);
    let mut next: BTreeMap<u32, u16> = BTreeMap::new();
    let mut seed = 7u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (seed >> 33) as usize % n
    };
    let (mut sent, mut came) = (0, 0);
    while came < 5000 {
        for _ in 0..random(20) {
            let home = &all[random(all.len())];
            // A flow always comes by the same queue.
            let frame = home.sends_ip(&numbered(home, sent));
            let mbuf = w.pool.packet(&frame).unwrap();
            w.send_by(home.port, home.index as usize % 2, mbuf);
            sent += 1;
        }
        w.step_one(random(4));
        for (_, frame) in w.receive() {
            came += 1;
            let home = all.iter().find(|h| frame[26..30] == h.v4).unwrap().index;
            let n = u16::from_be_bytes([frame[34], frame[35]]);
            let last = next.insert(home, n);
            assert!(last.is_none_or(|last| last < n), "{n} after {last:?}");
        }
    }
}

#[test]
fn what_is_handed_over_is_counted_on_both_sides() {
    let (all, mut w) = (homes(), World::shared(2, 1));
    w.online(&all);
    // Worker 0 has the only queue, worker 1 the session: there and back again.
    let odd = &all[0];
    assert_eq!(odd.index % 2, 1);
    assert!(matches!(
        observe(&mut w, ACCESS, &up(odd)),
        Fate::Out(CORE, _)
    ));
    assert_eq!(handed(&w), [(1, 1), (1, 1)]);
    assert!(matches!(
        observe(&mut w, CORE, &down(odd)),
        Fate::Out(ACCESS, _)
    ));
    assert_eq!(handed(&w), [(2, 2), (2, 2)]);
    let even = &all[1];
    assert!(matches!(
        observe(&mut w, ACCESS, &up(even)),
        Fate::Out(CORE, _)
    ));
    assert_eq!(handed(&w), [(2, 2), (2, 2)]);
    let ports = w.controller.ports();
    assert_eq!((ports[0].rx_packets, ports[0].tx_packets), (2, 1));
    let each: Vec<_> = (w.controller.workers())
        .map(|w| (w.rx_packets, w.tx_packets))
        .collect();
    assert_eq!(each, [(3, 3), (0, 0)]);
    // From subscriber to subscriber, of different workers.
    let packet = v4(odd.v4, even.v4, 64, 0, b"hello");
    let fate = observe(&mut w, ACCESS, &odd.sends_ip(&packet));
    assert_eq!(fate, Fate::Out(ACCESS, even.gets(&frames::hop(&packet))));
    assert_eq!(
        (
            w.usage(odd.index).ipv4.up_packets,
            w.usage(even.index).ipv4.down_packets
        ),
        (2, 1)
    );
}

#[test]
fn the_gateways_own_packets_reach_every_workers_sessions() {
    let (all, mut w) = (homes(), World::shared(2, 2));
    w.online(&all);
    for home in &all {
        let packet = v4(LOCAL_V4, home.v4, 64, 0, b"ping");
        w.inject(Inject::Route(InstanceIndex(0), &packet));
        w.settle();
        // Its time to live is left alone.
        assert_eq!(w.receive(), [(home.port, home.gets(&packet))]);
        let frame = home.gets(&packet);
        w.inject(Inject::Port(PortIndex(home.port), &frame));
        w.settle();
        assert_eq!(w.receive(), [(home.port, frame)]);
    }
}

#[test]
fn a_frame_to_a_session_waits_for_the_commands_before_it() {
    let (all, mut w) = (homes(), World::shared(2, 2));
    let home = &all[0];
    w.controller.set_session(World::entry(home)).unwrap();
    let frame = home.gets(&v4(LOCAL_V4, home.v4, 64, 0, b"the answer"));
    w.inject(Inject::Port(PortIndex(home.port), &frame));
    w.step_one(0);
    assert_eq!(w.receive(), []);
    w.step_one(1);
    assert_eq!(w.receive(), [(home.port, frame)]);
    assert!(matches!(
        observe(&mut w, ACCESS, &up(home)),
        Fate::Out(CORE, _)
    ));
}

/// What is taken in portions comes from each worker in turn: one that always has some does not keep the others waiting.
#[test]
fn workers_take_turns_with_what_is_punted() {
    let (all, mut w) = (homes(), World::shared(2, 2));
    w.online(&all);
    let [first, second] = [0, 1].map(|worker| {
        let its = all.iter().find(|home| home.index as usize % 2 == worker);
        its.expect("each worker has a home")
    });
    for _ in 0..3 {
        for home in [first, second] {
            w.send(home.port, &home.sends(0xc021, &[9, 1, 0, 8, 0, 0, 0, 1]));
        }
    }
    w.settle();
    let mut shown = Vec::new();
    while w.controller.recv_punts(1, |punt| shown.push(punt.kind)) > 0 {}
    let of = |home: &Home| PuntKind::Echo(SessionIndex(home.index));
    let turns = [of(first), of(second)];
    assert_eq!(shown.len(), 6);
    for pair in shown.chunks(2) {
        assert!(turns.iter().all(|one| pair.contains(one)), "{shown:?}");
    }
}

#[test]
fn what_a_worker_cannot_take_is_dropped_and_counted() {
    let (all, mut w) = (homes(), World::shared(2, 1));
    w.online(&all);
    for _ in 0..2100 {
        w.send(ACCESS, &up(&all[0]));
        w.step_one(0);
    }
    assert_eq!(w.drops()["hand-over-full"], 2100 - 2048);
    assert_eq!(handed(&w)[0], (2048, 0));
    // The way back is full, too, unless somebody takes what comes.
    while w.step_one(1) > 0 {
        w.step_one(0);
        w.receive();
    }
}

#[test]
fn what_is_on_its_way_to_a_session_is_not_given_to_the_next_with_its_index() {
    let (all, mut w) = (homes(), World::shared(2, 1));
    let home = all.iter().find(|home| home.index % 2 == 1).unwrap();
    w.online(&all);
    let on_its_way = |w: &mut World| {
        w.send(CORE, &down(home));
        w.step_one(0);
    };
    // A change of the session is no other session.
    on_its_way(&mut w);
    w.controller.set_session(World::entry(home)).unwrap();
    w.settle();
    assert_eq!(w.receive().len(), 1);
    on_its_way(&mut w);
    w.controller
        .remove_session(SessionIndex(home.index))
        .unwrap();
    let next = SessionEntry {
        ipv4: Some([100, 64, 9, 9].into()),
        ipv6: None,
        ..World::entry(home)
    };
    w.controller.set_session(next).unwrap();
    w.settle();
    assert_eq!(w.receive(), []);
    assert_eq!(w.drops()["stale-session"], 1);
}

/// The runs are as short as can be: one packet each.
#[test]
fn packets_of_several_kinds_and_ports_are_done_each_together_and_in_order() {
    let (all, mut w) = (homes(), World::shared(4, 1));
    // Both are worker 2's.
    let (first, second) = (&all[1], &all[5]);
    assert!(first.port != second.port && [first, second].iter().all(|home| home.index % 4 == 2));
    w.online(&all);
    w.receive();
    let numbered = |n: u8, home: &Home, up: bool| match up {
        true => home.sends_ip(&v4(home.v4, [192, 0, 2, 7], 64, 0, &[home.index as u8, n])),
        false => {
            let packet = v4([192, 0, 2, 7], home.v4, 64, 0, &[home.index as u8, n]);
            frames::frame(GATEWAY, ROUTER, &packet)
        }
    };
    for n in 0..10 {
        for home in [first, second] {
            w.send(home.port, &numbered(n, home, true));
            w.send(CORE, &numbered(n, home, false));
            w.step_one(0);
        }
    }
    while w.step_one(2) > 0 {}
    w.settle();
    let out = w.receive();
    assert_eq!(out.len(), 40);
    let mut last: BTreeMap<(u16, u8), u8> = BTreeMap::new();
    for (port, frame) in out {
        let n = *frame.last().unwrap();
        let flow = (port, frame[frame.len() - 2]);
        let before = last.insert(flow, n);
        assert!(before.is_none_or(|before| before <= n), "{flow:?}");
    }
}

#[test]
fn index_and_session_id_have_to_name_the_same_worker() {
    let (all, mut w) = (homes(), World::shared(2, 1));
    let wrong = SessionEntry {
        index: SessionIndex(2),
        ..World::entry(&all[0])
    };
    w.controller.set_session(wrong).unwrap();
    w.settle();
    let refused = Event::SessionRefused {
        index: SessionIndex(2),
        reason: Refusal::Malformed,
    };
    assert_eq!(w.events(), [refused]);
    assert_eq!(
        observe(&mut w, ACCESS, &up(&all[0])),
        Fate::Drop("unknown-session")
    );
}

#[test]
fn every_worker_lets_go_of_a_port_before_it_is_handed_back() {
    for (workers, queues) in [(2, 1), (2, 2), (4, 2)] {
        let (all, mut w) = (homes(), World::shared(workers, queues));
        w.online(&all);
        w.controller.remove_port(PortIndex(ACCESS2)).unwrap();
        for worker in 1..workers {
            for _ in 0..4 {
                w.step_one(worker.into());
            }
            assert!(w.controller.poll_removed().is_none(), "worker 0 has it");
        }
        w.settle();
        let gone: Vec<_> = (w.events().into_iter())
            .filter(|e| matches!(e, Event::Usage { removed: true, .. }))
            .collect();
        assert_eq!(gone.len(), 2, "its sessions are gone");
        let mut removed = w.controller.poll_removed().unwrap();
        assert_eq!(removed.port.take_queues().len(), queues.into());
        w.peers.remove(&ACCESS2);
        // The place is free, and the others are as they were.
        w.add(
            ACCESS2,
            Role::Access {
                segments: segments(),
            },
        );
        w.settle();
        w.online(&all[4..]);
        let model = Model::new(&all);
        for home in &all {
            let frame = up(home);
            assert_eq!(
                observe(&mut w, home.port, &frame),
                model.fate(home.port, &frame)
            );
        }
    }
}

#[test]
fn what_the_workers_hold_is_shown_of_one_after_the_other() {
    let (all, mut w) = (homes(), World::shared(4, 1));
    w.online(&all);
    let (mut part, mut found) = (Some(Part::FIRST), vec![]);
    while let Some(next) = part {
        w.controller.inspect(next).unwrap();
        w.settle();
        let piece = w.controller.poll_piece().expect("a piece");
        assert_eq!(piece.part, next);
        found.extend(piece.found);
        part = piece.next;
    }
    let mut sessions: Vec<_> = (found.iter())
        .filter_map(|held| match held {
            Held::Session { entry, whole } => Some((entry.index.0, *whole)),
            _ => None,
        })
        .collect();
    sessions.sort();
    let mut wanted: Vec<_> = all.iter().map(|home| (home.index, true)).collect();
    wanted.sort();
    assert_eq!(sessions, wanted);
    let neighbours = found
        .iter()
        .filter(|held| matches!(held, Held::Adjacency(..)));
    assert_eq!(neighbours.count(), 2, "each is shown once");
    assert!(
        !found
            .iter()
            .any(|held| matches!(held, Held::StrayId { .. }))
    );
}

/// Threads, as in the product: two workers, traffic both ways, sessions that come and go meanwhile.
#[test]
fn workers_on_threads_lose_nothing() {
    let (all, mut w) = (homes(), World::shared(2, 2));
    w.online(&all);
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (w.take_workers().into_iter())
        .map(|worker| {
            let stop = stop.clone();
            std::thread::spawn(move || worker.run(&stop))
        })
        .collect();
    let (mut sent, mut got) = (0u64, 0u64);
    let dropped = |w: &World| w.drops().values().sum::<u64>();
    for round in 0..500u32 {
        for home in &all {
            for (port, frame) in [(home.port, up(home)), (CORE, down(home))] {
                let mbuf = w.pool.packet(&frame).expect("a buffer");
                w.send_by(port, (round % 2) as usize, mbuf);
                sent += 1;
            }
        }
        let home = &all[round as usize % all.len()];
        if round % 3 == 0 {
            let _ = w.controller.remove_session(SessionIndex(home.index));
            let _ = w.controller.set_session(World::entry(home));
        }
        got += w.receive().len() as u64;
        w.events();
        // No ring is ever full. What was dropped never comes: on a busy machine that alone can be more than 100.
        while sent - got > 100 + dropped(&w) {
            std::thread::yield_now();
            got += w.receive().len() as u64;
        }
    }
    // One reading of what was dropped: workers that still drop would make two readings differ.
    let begin = std::time::Instant::now();
    while got + dropped(&w) < sent {
        assert!(
            begin.elapsed().as_secs() < 20,
            "{got} of {sent}: {:?}",
            w.drops()
        );
        got += w.receive().len() as u64;
    }
    stop.store(true, Relaxed);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let drops = w.drops();
    let known = ["stale-session", "unknown-session", "discard-route"];
    assert!(drops.keys().all(|name| known.contains(name)), "{drops:?}");
    let received: u64 = w.controller.ports().iter().map(|p| p.rx_packets).sum();
    assert_eq!(sent, received);
    assert_eq!(sent, got + drops.values().sum::<u64>());
}
