//! Ports that come, change and go while others forward.
use crate::cases::{homes, observe};
use crate::frames::{self, GATEWAY, Home, v4};
use crate::model::Fate;
use crate::world::*;
use dataplane::*;
use std::collections::BTreeMap;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const THIRD: u16 = 7;

fn up(home: &Home) -> Vec<u8> {
    home.sends_ip(&v4(home.v4, INTERNET, 64, 0, &[1; 80]))
}

fn down(home: &Home) -> Vec<u8> {
    frames::frame(GATEWAY, ROUTER, &v4(INTERNET, home.v4, 64, 0, &[2; 30]))
}

fn access() -> Role {
    Role::Access {
        segments: segments(),
    }
}

/// The last counters of sessions that went without having been asked to.
fn lost(w: &mut World) -> BTreeMap<u32, Usage> {
    let lost = w.events().into_iter().filter_map(|event| match event {
        Event::Usage {
            index,
            usage,
            removed: true,
        } => Some((index.0, usage)),
        _ => None,
    });
    lost.collect()
}

#[test]
fn a_port_goes_with_its_sessions_and_their_usage_is_told() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    for home in &all {
        assert!(matches!(
            observe(&mut w, home.port, &up(home)),
            Fate::Out(CORE, _)
        ));
        assert!(matches!(observe(&mut w, CORE, &down(home)), Fate::Out(..)));
    }
    assert_eq!(w.remove(ACCESS2), Vec::<Vec<u8>>::new());
    let ipv4 = Volume {
        up_packets: 1,
        up_octets: 100,
        down_packets: 1,
        down_octets: 50,
    };
    let usage = Usage {
        ipv4,
        ..Usage::default()
    };
    assert_eq!(lost(&mut w), [(6, usage), (20, usage)].into());
    for home in &all {
        let fate = observe(&mut w, CORE, &down(home));
        match home.port {
            ACCESS2 => assert_eq!(fate, Fate::Drop("discard-route")),
            _ => assert!(matches!(fate, Fate::Out(ACCESS, _))),
        }
    }
    // What is for the port from now on is refused, and its place is free for another.
    let there = w.controller.ports();
    let indexes: Vec<_> = there.iter().map(|p| p.index.0).collect();
    assert_eq!(indexes, [ACCESS, CORE, CORE2]);
    w.inject(Inject::Port(PortIndex(ACCESS2), &[0; 60]));
    w.controller.set_session(World::entry(&all[4])).unwrap();
    w.settle();
    let refused = Event::SessionRefused {
        index: SessionIndex(all[4].index),
        reason: Refusal::NoSegment,
    };
    assert_eq!(w.drops()["bad-inject"], 1);
    let events = w.events();
    assert!(events.contains(&refused), "{events:?}");
    w.add(ACCESS2, access());
    w.online(&all[4..]);
    let anew = w.controller.ports()[ACCESS2 as usize].clone();
    assert_eq!((anew.rx_packets, anew.tx_packets), (0, 0));
    for home in &all {
        assert!(matches!(
            observe(&mut w, home.port, &up(home)),
            Fate::Out(CORE, _)
        ));
    }
    assert_eq!(w.usage(all[4].index).ipv4.up_packets, 1);
}

#[test]
fn ports_come_and_go_while_another_forwards_every_packet() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all[..4]);
    let third = Home::new(20, THIRD, &[(0x8100, 150)]);
    let (mut sent, mut out) = (0, 0);
    for round in 0..60 {
        for home in &all[..4] {
            w.send(ACCESS, &up(home));
            sent += 1;
        }
        w.step();
        w.add(THIRD, access());
        w.controller.set_session(World::entry(&third)).unwrap();
        w.step();
        for _ in 0..round {
            w.send(THIRD, &up(&third));
            w.send(CORE, &down(&third));
            w.step();
        }
        w.send(ACCESS, &up(&all[0]));
        sent += 1;
        // Some of what was sent lies in the port's queues.
        w.send(THIRD, &up(&third));
        let delivered = w.remove(THIRD);
        assert_eq!(delivered.len(), round);
        let usage = lost(&mut w)[&20];
        assert_eq!(usage.ipv4.down_packets, round as u64);
        let from_third = usage.ipv4.up_packets;
        let (frames, others): (Vec<_>, Vec<_>) =
            w.receive().into_iter().partition(|(port, _)| *port == CORE);
        assert!(others.is_empty());
        out += frames.len() - from_third as usize;
    }
    assert_eq!(out, sent);
    assert_eq!(w.drops(), BTreeMap::new());
}

#[test]
fn a_session_stays_whose_vlan_stays_in_its_segment() {
    let (all, mut w) = (homes(), World::new());
    let far = Home::new(7, ACCESS, &[(0x8100, 180)]);
    w.online(&all);
    w.online(std::slice::from_ref(&far));
    assert!(matches!(observe(&mut w, ACCESS, &up(&far)), Fate::Out(..)));
    let set = |w: &mut World, to: &[(u16, &[std::ops::RangeInclusive<u16>])]| {
        let segments: Vec<Segment> = to
            .iter()
            .map(|(id, vlans)| Segment {
                id: *id,
                vlans: vlans.to_vec(),
            })
            .collect();
        w.controller
            .set_segments(PortIndex(ACCESS), &segments)
            .unwrap();
        w.settle();
        lost(w).into_keys().collect::<Vec<_>>()
    };
    // Wider and narrower, in several ranges: nobody is concerned.
    let none: [u32; 0] = [];
    assert_eq!(
        set(
            &mut w,
            &[(0, &[0..=0]), (1, &[90..=100, 180..=198, 200..=250])]
        ),
        [4]
    );
    assert_eq!(
        observe(&mut w, ACCESS, &up(&all[3])),
        Fate::Drop("unknown-vlan")
    );
    for home in [&all[0], &all[1], &all[2], &far] {
        assert!(matches!(observe(&mut w, ACCESS, &up(home)), Fate::Out(..)));
    }
    assert_eq!(w.usage(far.index).ipv4.up_packets, 2);
    // VLAN 180 goes to another segment, where the same session id is another session's.
    let segments: [(u16, &[_]); 3] = [(0, &[0..=0]), (1, &[100..=179]), (2, &[180..=250])];
    assert_eq!(set(&mut w, &segments), [7]);
    assert_eq!(
        observe(&mut w, ACCESS, &up(&far)),
        Fate::Drop("unknown-session")
    );
    w.online(std::slice::from_ref(&far));
    // Untagged subscribers have to go, and nothing of it touches the others.
    assert_eq!(set(&mut w, &segments[1..]), [1]);
    assert_eq!(set(&mut w, &segments[1..]), none);
    assert_eq!(
        observe(&mut w, ACCESS, &up(&all[0])),
        Fate::Drop("unknown-vlan")
    );
    for home in [&all[1], &all[2], &all[4], &all[5], &far] {
        assert!(matches!(
            observe(&mut w, home.port, &up(home)),
            Fate::Out(..)
        ));
    }
}

#[test]
fn very_many_sessions_go_in_pieces_between_bursts() {
    let limits = Limits {
        instances: 2,
        sessions: 5000,
        adjacencies: 8,
        ..Limits::default()
    };
    let mut w = World::with(no_policing(), limits);
    let home = &homes()[5];
    for n in 0..5000u32 {
        let entry = SessionEntry {
            index: SessionIndex(n),
            pppoe_session_id: n as u16 + 1,
            ipv4: Some((0x6441_0000 + n).into()),
            ipv6: None,
            ..World::entry(home)
        };
        w.controller.set_session(entry).unwrap();
        w.settle();
    }
    let other = &homes()[0];
    w.controller.remove_session(SessionIndex(0)).unwrap();
    let entry = SessionEntry {
        index: SessionIndex(0),
        ..World::entry(other)
    };
    w.controller.set_session(entry).unwrap();
    w.controller.remove_port(PortIndex(ACCESS2)).unwrap();
    w.controller.read_usage(SessionIndex(0)).unwrap();
    // The worker's queue of events is full for a while, and nobody else waits for that.
    let mut gone = 0;
    let mut forwarded = 0;
    for round in 0.. {
        w.send(ACCESS, &up(other));
        w.step();
        forwarded += w.receive().len();
        let removed = |e: &Event| matches!(e, Event::Usage { removed: true, .. });
        if round > 300 {
            let events = w.events();
            gone += events.iter().filter(|e| removed(e)).count();
            if events
                .iter()
                .any(|e| matches!(e, Event::Usage { removed: false, .. }))
            {
                assert_eq!(forwarded, round + 1);
                break;
            }
        }
    }
    assert_eq!(gone, 5000);
    let removed = w.controller.poll_removed().unwrap();
    assert_eq!(
        (removed.index, removed.counters.access),
        (PortIndex(ACCESS2), true)
    );
    w.peers.remove(&ACCESS2);
}

#[test]
fn a_core_port_goes_with_its_neighbours() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    w.remove(CORE);
    assert_eq!(
        observe(&mut w, ACCESS, &up(&all[0])),
        Fate::Drop("no-adjacency")
    );
    let events = w.events();
    assert!(
        events.contains(&Event::AdjacencyMissing(AdjacencyIndex(0))),
        "{events:?}"
    );
    // Another takes its place, and nothing of the old one.
    w.add(
        CORE,
        Role::Core {
            instance: InstanceIndex(0),
        },
    );
    assert_eq!(
        observe(&mut w, ACCESS, &up(&all[0])),
        Fate::Drop("no-adjacency")
    );
    let router = Adjacency {
        port: PortIndex(CORE),
        mac: Some(wire::eth::MacAddr(ROUTER)),
    };
    w.controller
        .set_adjacency(AdjacencyIndex(0), router)
        .unwrap();
    w.settle();
    assert!(matches!(
        observe(&mut w, ACCESS, &up(&all[0])),
        Fate::Out(CORE, _)
    ));
    // Its MTU changes under the neighbour.
    w.controller.set_mtu(PortIndex(CORE), 99).unwrap();
    w.settle();
    assert_eq!(observe(&mut w, ACCESS, &up(&all[0])), Fate::Drop("too-big"));
    w.controller.set_mtu(PortIndex(CORE), 100).unwrap();
    w.settle();
    assert!(matches!(
        observe(&mut w, ACCESS, &up(&all[0])),
        Fate::Out(CORE, _)
    ));
}

#[test]
fn what_cannot_be_done_with_ports_is_refused() {
    let mut w = World::new();
    let c = &mut w.controller;
    let part = |port, vlan, instance| Subinterface {
        port: PortIndex(port),
        vlan,
        instance: InstanceIndex(instance),
        mtu: 1500,
    };
    let (access, core, nobody) = (PortIndex(ACCESS), PortIndex(CORE), PortIndex(99));
    let unknown = |index| Err(PortError::Unknown(index));
    assert_eq!(c.remove_port(nobody), unknown(nobody));
    assert_eq!(c.remove_port(PortIndex(9999)), unknown(PortIndex(9999)));
    assert_eq!(c.set_segments(core, &segments()), unknown(core));
    assert_eq!(c.set_mtu(access, 1500), unknown(access));
    assert_eq!(c.remove_subinterface(core), unknown(core));
    assert_eq!(
        c.add_subinterface(nobody, part(ACCESS, 5, 0)),
        unknown(access)
    );
    assert_eq!(
        c.add_subinterface(core, part(CORE, 5, 0)),
        Err(PortError::NoPlace(core))
    );
    assert_eq!(
        c.add_subinterface(PortIndex(512), part(CORE, 5, 0)),
        Err(PortError::NoPlace(PortIndex(512)))
    );
    assert_eq!(
        c.add_subinterface(nobody, part(CORE, 5, 2)),
        Err(PortError::NoInstance(InstanceIndex(2)))
    );
    for vlan in [0, 4095] {
        let wrong = Err(PortError::Vlan(vlan));
        assert_eq!(c.add_subinterface(nobody, part(CORE, vlan, 0)), wrong);
    }
    c.add_subinterface(nobody, part(CORE, 5, 0)).unwrap();
    let twice = c.add_subinterface(PortIndex(98), part(CORE, 5, 0));
    assert_eq!(twice, Err(PortError::Vlan(5)));
    c.add_subinterface(PortIndex(98), part(CORE2, 5, 1))
        .unwrap();
    assert_eq!(c.remove_port(core), Err(PortError::HasSubinterfaces(core)));
    c.remove_subinterface(nobody).unwrap();
    c.remove_port(core).unwrap();
    assert_eq!(c.remove_port(core), unknown(core));
    assert_eq!(
        c.add_subinterface(core, part(CORE2, 6, 0)),
        Err(PortError::NoPlace(core))
    );
    w.settle();
    drop(w.controller.poll_removed().unwrap());
    w.peers.remove(&CORE);
}

#[test]
fn a_worker_is_busy_while_there_is_something_to_do() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    w.settle();
    let busy = |w: &World| w.controller.workers().next().unwrap();
    let before = busy(&w);
    for _ in 0..100 {
        w.step();
    }
    assert_eq!(busy(&w), before, "there was nothing to do");
    w.send(homes[0].port, &up(&homes[0]));
    w.settle();
    w.receive();
    let now = busy(&w);
    assert!(now.busy > before.busy && now.busy_cycles > before.busy_cycles);
    assert_eq!(now.bursts, before.bursts + 1);
    assert_eq!(
        (now.rx_packets, now.tx_packets),
        (before.rx_packets + 1, before.tx_packets + 1)
    );
}
