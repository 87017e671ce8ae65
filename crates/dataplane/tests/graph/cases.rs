//! Frame by frame: what has to happen, said by the model and, where it matters, said once more by hand.
use crate::frames::{self, GATEWAY, Home, v4, v6};
use crate::model::{Fate, Model};
use crate::world::*;
use dataplane::*;
use std::collections::BTreeSet;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const INTERNET6: [u8; 16] = [0x26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

/// Homes of every VLAN model on both access ports; two pairs share session ids or MAC addresses between segments.
pub fn homes() -> Vec<Home> {
    let mut homes = vec![
        Home::new(1, ACCESS, &[]),
        Home::new(2, ACCESS, &[(0x8100, 100)]),
        Home::new(3, ACCESS, &[(0x8100, 100), (0x8100, 7)]),
        Home::new(4, ACCESS, &[(0x88a8, 199), (0x8100, 4094)]),
        Home::new(5, ACCESS2, &[(0x88a8, 300), (0x88a8, 1)]),
        Home::new(6, ACCESS2, &[(0x8100, 300)]),
    ];
    (homes[4].id, homes[4].mac) = (homes[3].id, homes[3].mac);
    // An index that goes with the id.
    homes[4].index = 20;
    homes[5].mtu = 1400;
    homes
}

/// Does the same with one worker and with several, which have queues of their own or not.
pub fn each_world(test: impl Fn(World)) {
    for (workers, queues) in [(1, 1), (2, 1), (2, 2), (4, 2), (16, 16)] {
        println!("{workers} workers, {queues} queues");
        test(World::shared(workers, queues));
    }
}

/// A copy says nothing of what became of the packet.
pub fn is_copy(kind: &PuntKind) -> bool {
    kind.class().shown == Shown::Copy
}

/// Sends a frame and looks at what becomes of it.
pub fn observe(w: &mut World, port: u16, frame: &[u8]) -> Fate {
    let before = w.drops();
    w.send(port, frame);
    w.settle();
    let (out, mut punts) = (w.receive(), w.punts());
    punts.retain(|(kind, ..)| !is_copy(kind));
    let dropped: Vec<_> = w
        .drops()
        .into_iter()
        .filter(|(name, n)| before.get(name) != Some(n))
        .collect();
    match (&out[..], &punts[..], &dropped[..]) {
        ([(port, frame)], [], []) => Fate::Out(*port, frame.clone()),
        ([], [(kind, port, frame)], []) => Fate::Punt(*kind, *port, frame.clone()),
        ([], [], [(name, _)]) => Fate::Drop(name),
        // What is left of a packet whose sender is to be told is shown to the control thread.
        ([], [(kind, ..)], [(name, _)]) if kind.class().shown == Shown::Notice => Fate::Drop(name),
        other => panic!("{other:?}"),
    }
}

pub fn packets_of(home: &Home) -> Vec<Vec<u8>> {
    let (s4, s6) = (home.v4, home.v6_address());
    let mut packets = vec![];
    for destination in [
        INTERNET,
        LOCAL_V4,
        [100, 64, 0, 3],
        [100, 64, 0, 99],
        [198, 51, 100, 1],
        [239, 1, 1, 1],
    ] {
        packets.push(v4(s4, destination, 64, 0, b"some udp payload"));
    }
    packets.push(v4(s4, INTERNET, 64, 10, &[]));
    packets.push(v4(s4, INTERNET, 1, 0, &[1; 100]));
    packets.push(v4(s4, [100, 64, 0, 6], 2, 0, &[1; 1400]));
    packets.push(v4(s4, INTERNET, 255, 0, &[0xab; 1472]));
    let mut neighbour = [0; 16];
    neighbour[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    neighbour[7] = 4;
    for destination in [
        INTERNET6, LOCAL_V6, neighbour, [0xff; 16], [0x3f; 16], [0x40; 16],
    ] {
        packets.push(v6(s6, destination, 64, 17, b"some udp payload"));
        packets.push(v6(
            s6,
            destination,
            64,
            0,
            &[58, 0, 5, 2, 0, 0, 0, 0, 143, 0, 0, 0],
        ));
    }
    packets.push(v6(s6, INTERNET6, 1, 59, &[]));
    let mut link_local = s6;
    link_local[0] = 0xfe;
    link_local[1] = 0x80;
    for source in [link_local, s6, [0; 16]] {
        packets.push(v6(source, [0xff; 16], 255, 58, &[133, 0, 0, 0, 0, 0, 0, 0]));
        packets.push(v6(source, [0xff; 16], 255, 58, &[128, 0, 0, 0]));
        packets.push(v6(source, [0xff; 16], 1, 17, &[2, 34, 2, 35, 0, 8, 0, 0]));
    }
    packets
}

#[test]
fn every_kind_of_packet_of_every_home_is_treated_as_the_model_says() {
    each_world(|mut w| packets_of_homes(&mut w));
}

fn packets_of_homes(w: &mut World) {
    let homes = homes();
    let model = Model::new(&homes);
    w.online(&homes);
    for home in &homes {
        for packet in packets_of(home) {
            let mut frame = home.sends_ip(&packet);
            let expected = model.fate(home.port, &frame);
            assert_eq!(
                observe(w, home.port, &frame),
                expected,
                "{home:?} {packet:x?}"
            );
            // Ethernet pads short frames; IP's length cuts that off again.
            frame.extend([0xee; 40]);
            let padded = model.fate(home.port, &frame);
            assert_eq!(
                observe(w, home.port, &frame),
                padded,
                "{home:?} {packet:x?} padded"
            );
            if matches!(expected, Fate::Out(..)) {
                assert_eq!(padded, expected);
            }
        }
    }
}

#[test]
fn every_kind_of_packet_from_the_core_is_treated_as_the_model_says() {
    each_world(|mut w| packets_from_the_core(&mut w));
}

fn packets_from_the_core(w: &mut World) {
    let homes = homes();
    let model = Model::new(&homes);
    w.online(&homes);
    let mut frames = vec![];
    for home in &homes {
        for packet in [
            v4(INTERNET, home.v4, 64, 0, b"downstream"),
            v4(INTERNET, home.v4, 64, 3, b"with options"),
            v4(INTERNET, home.v4, 1, 0, b"expires"),
            v4(INTERNET, home.v4, 9, 0, &[7; 1380]),
            v4(INTERNET, home.v4, 9, 0, &[7; 1381]),
            v4(INTERNET, home.v4, 9, 0, &[7; 1472]),
            v4(INTERNET, home.v4, 9, 0, &[7; 1473]),
            v6(INTERNET6, home.v6_address(), 64, 17, b"downstream"),
            v6(INTERNET6, home.v6_address(), 1, 17, b"expires"),
            v6(INTERNET6, home.v6_address(), 2, 17, &[7; 1452]),
            v6(INTERNET6, home.v6_address(), 2, 17, &[7; 1453]),
        ] {
            frames.push(frames::frame(GATEWAY, ROUTER, &packet));
        }
    }
    // Transit, the gateway itself, nobody, multicast, other stations, other types.
    for packet in [
        v4([10, 1, 1, 1], INTERNET, 64, 0, b"transit"),
        v4([10, 1, 1, 1], LOCAL_V4, 64, 0, b"local"),
        v4([10, 1, 1, 1], [100, 64, 0, 77], 64, 0, b"unassigned"),
        v4(
            [10, 1, 1, 1],
            [10, 9, 9, 9],
            64,
            0,
            b"in the other instance",
        ),
        v4(
            [10, 1, 1, 1],
            [203, 0, 113, 1],
            64,
            0,
            b"adjacency 2 is not known",
        ),
        v6(INTERNET6, LOCAL_V6, 64, 17, b"local"),
        v6(INTERNET6, INTERNET6, 64, 17, b"transit"),
        v6(
            [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            LOCAL_V6,
            64,
            58,
            &[136, 0, 0, 0],
        ),
        v6(INTERNET6, [0x40; 16], 64, 17, b"no route"),
    ] {
        for to in [
            GATEWAY,
            [0xff; 6],
            [0x33, 0x33, 0, 0, 0, 1],
            [2, 0, 0, 0, 0, 1],
        ] {
            frames.push(frames::frame(to, ROUTER, &packet));
        }
    }
    let mut arp = frames::frame([0xff; 6], ROUTER, &[0; 28]);
    arp[12..14].copy_from_slice(&[8, 6]);
    frames.push(arp);
    for frame in frames {
        for port in [CORE, CORE2] {
            for padding in [0, 46] {
                let frame = [&frame[..], &vec![0; padding]].concat();
                assert_eq!(
                    observe(w, port, &frame),
                    model.fate(port, &frame),
                    "{port} {frame:x?}"
                );
            }
        }
    }
}

#[test]
fn damaged_frames_are_treated_as_the_model_says() {
    let (homes, mut w) = (homes(), World::new());
    let model = Model::new(&homes);
    w.online(&homes);
    let mut seen = BTreeSet::new();
    let mut check = |w: &mut World, port: u16, frame: &[u8]| {
        let fate = observe(w, port, frame);
        assert_eq!(fate, model.fate(port, frame), "{port} {frame:x?}");
        seen.insert(match fate {
            Fate::Drop(name) => name,
            Fate::Out(..) => "out",
            Fate::Punt(..) => "punt",
        });
    };
    for home in &homes {
        let v4 = home.sends_ip(&v4(home.v4, INTERNET, 64, 1, &[0; 30]));
        let v6 = home.sends_ip(&v6(home.v6_address(), INTERNET6, 64, 58, &[129; 20]));
        for good in [v4, v6] {
            for octet in 0..good.len().min(90) {
                for bit in 0..8 {
                    let mut bad = good.clone();
                    bad[octet] ^= 1 << bit;
                    check(&mut w, home.port, &bad);
                }
            }
            for len in 0..good.len() {
                check(&mut w, home.port, &good[..len]);
            }
            // The frame of one home under another's session id, and on another port.
            for other in &homes {
                let mut forged = good.clone();
                let id = 14 + 4 * home.tags.len() + 2;
                forged[id..id + 2].copy_from_slice(&other.id.to_be_bytes());
                check(&mut w, home.port, &forged);
                check(&mut w, other.port, &good);
            }
        }
        for len in 0..60 {
            check(
                &mut w,
                CORE,
                &frames::frame(
                    GATEWAY,
                    ROUTER,
                    &frames::v4(INTERNET, home.v4, 64, 0, &[0; 40]),
                )[..len],
            );
        }
    }
    let damage = [
        "bad-checksum",
        "bad-ipv4",
        "bad-ipv6",
        "bad-pppoe",
        "not-for-us",
        "out",
        "punt",
        "spoofed-source-v6",
        "truncated",
        "unexpected-type",
        "unknown-session",
        "unknown-vlan",
        "wrong-mac",
        "wrong-tag",
    ];
    let missed: Vec<_> = damage.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(missed.is_empty(), "{missed:?} did not occur: {seen:?}");
}

#[test]
fn forged_sources_are_dropped_by_name() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    for home in &homes {
        let other = &homes[home.index as usize % homes.len()];
        for source in [other.v4, INTERNET, LOCAL_V4, [0; 4], [255; 4]] {
            let forged = home.sends_ip(&v4(source, INTERNET, 64, 0, b"forged"));
            assert_eq!(
                observe(&mut w, home.port, &forged),
                Fate::Drop("spoofed-source-v4")
            );
        }
        for source in [other.v6_address(), INTERNET6, LOCAL_V6, [0; 16], [0xff; 16]] {
            let forged = home.sends_ip(&v6(source, INTERNET6, 64, 17, b"forged"));
            assert_eq!(
                observe(&mut w, home.port, &forged),
                Fate::Drop("spoofed-source-v6")
            );
        }
        let mut link_local = [0; 16];
        (link_local[0], link_local[1], link_local[15]) = (0xfe, 0x80, 9);
        let packet = home.sends_ip(&v6(link_local, INTERNET6, 64, 17, b"link-local"));
        assert_eq!(
            observe(&mut w, home.port, &packet),
            Fate::Drop("link-local")
        );
        assert_eq!(w.usage(home.index), Usage::default());
    }
}

#[test]
fn subscribers_reach_each_other_through_the_gateway() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    for a in &homes {
        for b in &homes {
            for packet in [
                v4(a.v4, b.v4, 64, 0, b"from home to home"),
                v6(a.v6_address(), b.v6_address(), 64, 17, b"from home to home"),
            ] {
                let fate = observe(&mut w, a.port, &a.sends_ip(&packet));
                assert_eq!(fate, Fate::Out(b.port, b.gets(&frames::hop(&packet))));
            }
        }
    }
    let usage = w.usage(1);
    let volume = |octets| Volume {
        up_packets: 6,
        up_octets: octets,
        down_packets: 6,
        down_octets: octets,
    };
    let (ipv4, ipv6) = (volume(6 * 37), volume(6 * 57));
    assert_eq!(usage, Usage { ipv4, ipv6 });
}

#[test]
fn discovery_and_control_packets_are_punted_with_their_session() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    for home in &homes {
        for to in [[0xff; 6], GATEWAY, [2, 9, 9, 9, 9, 9]] {
            let padi = home.discovers(to, 9, 0);
            assert_eq!(
                observe(&mut w, home.port, &padi),
                Fate::Punt(PuntKind::Discovery, home.port, padi)
            );
        }
        let session = PuntKind::Session(SessionIndex(home.index));
        let padt = home.discovers(GATEWAY, 0xa7, home.id);
        assert_eq!(
            observe(&mut w, home.port, &padt),
            Fate::Punt(session, home.port, padt)
        );
        for protocol in [0xc021, 0xc023, 0xc223, 0x8021, 0x8057, 0x8281] {
            let frame = home.sends(protocol, &[1, 1, 0, 4]);
            assert_eq!(
                observe(&mut w, home.port, &frame),
                Fate::Punt(session, home.port, frame)
            );
        }
        let echo = PuntKind::Echo(SessionIndex(home.index));
        for code in [9, 10] {
            let frame = home.sends(0xc021, &[code, 1, 0, 8, 0, 0, 0, 0]);
            assert_eq!(
                observe(&mut w, home.port, &frame),
                Fate::Punt(echo, home.port, frame)
            );
        }
    }
    assert_eq!((w.punted("discovery"), w.punted("session")), (18, 42));
    assert_eq!(w.punted("echo"), 12);
}

#[test]
fn an_expired_packet_is_a_drop_and_shown_to_the_control_thread() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let home = &homes[2];
    let packet = v4(home.v4, INTERNET, 1, 0, b"traceroute");
    let mut padded = home.sends_ip(&packet);
    padded.extend([0; 20]);
    w.send(home.port, &padded);
    let down = v6(INTERNET6, home.v6_address(), 1, 17, b"traceroute");
    w.send(CORE, &frames::frame(GATEWAY, ROUTER, &down));
    w.settle();
    let expired = PuntKind::TtlExpired(InstanceIndex(0));
    assert_eq!(
        w.punts(),
        [(expired, home.port, packet), (expired, CORE, down)]
    );
    assert_eq!((w.drops()["ttl-expired"], w.punted("ttl-expired")), (2, 2));
    // It did not pass, so downstream does not count it; upstream it came from the subscriber.
    let usage = w.usage(home.index);
    assert_eq!((usage.ipv4.up_packets, usage.ipv4.down_packets), (1, 0));
}

#[test]
fn the_gateways_own_packets_are_routed_as_they_are() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let instance = InstanceIndex(0);
    for home in &homes {
        let reply = v4(LOCAL_V4, home.v4, 1, 0, b"pong");
        w.inject(Inject::Route(instance, &reply));
        let reply6 = v6(LOCAL_V6, home.v6_address(), 255, 58, &[129, 0]);
        w.inject(Inject::Route(instance, &reply6));
        w.settle();
        assert_eq!(
            w.receive(),
            [
                (home.port, home.gets(&reply)),
                (home.port, home.gets(&reply6))
            ]
        );
    }
    let out = v4(LOCAL_V4, INTERNET, 64, 0, b"to the core");
    w.inject(Inject::Route(instance, &out));
    let arp = [0x55; 60];
    w.inject(Inject::Port(PortIndex(ACCESS2), &arp));
    w.settle();
    assert_eq!(
        w.receive(),
        [
            (CORE, frames::frame(ROUTER, GATEWAY, &out)),
            (ACCESS2, arp.to_vec())
        ]
    );

    // What leads back to the gateway, nowhere, or makes no sense.
    w.inject(Inject::Route(
        instance,
        &v4(LOCAL_V4, LOCAL_V4, 64, 0, b"loop"),
    ));
    w.inject(Inject::Route(InstanceIndex(9), &out));
    w.inject(Inject::Port(PortIndex(9), &arp));
    w.inject(Inject::Route(InstanceIndex(1), &out));
    w.inject(Inject::Route(instance, &[]));
    w.inject(Inject::Route(instance, &out[..19]));
    w.settle();
    let drops: Vec<_> = w.drops().into_iter().collect();
    assert_eq!(drops, [("bad-inject", 3), ("bad-ipv4", 2), ("no-route", 1)]);
}

#[test]
fn unknown_neighbours_are_asked_for_once_a_second() {
    let mut w = World::new();
    let connected = v4([10, 0, 0, 1], [198, 51, 100, 9], 64, 0, b"?");
    let connected6 = v6(
        INTERNET6,
        "2001:db8:c::9"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets(),
        64,
        17,
        b"?",
    );
    let unknown = v4([10, 0, 0, 1], [203, 0, 113, 9], 64, 0, b"?");
    for _ in 0..5 {
        for packet in [&connected, &connected6, &unknown] {
            w.send(CORE, &frames::frame(GATEWAY, ROUTER, packet));
        }
    }
    w.settle();
    let mut events = w.events();
    events.retain(|e| !matches!(e, Event::AdjacencyUsed(_)));
    let missing = |address: &str| Event::NeighbourMissing {
        port: PortIndex(CORE),
        address: address.parse().unwrap(),
    };
    let asked = [
        missing("198.51.100.9"),
        missing("2001:db8:c::9"),
        Event::AdjacencyMissing(AdjacencyIndex(2)),
    ];
    assert_eq!(events, asked);
    assert_eq!(w.drops()["no-adjacency"], 15);

    // The kernel found it: a host route to its adjacency.
    let found = Adjacency {
        port: PortIndex(CORE),
        mac: Some(wire::eth::MacAddr([2, 7, 7, 7, 7, 7])),
    };
    w.controller
        .set_adjacency(AdjacencyIndex(3), found)
        .unwrap();
    let host = "198.51.100.9/32".parse().unwrap();
    w.controller
        .set_route(
            InstanceIndex(0),
            host,
            Destination::Adjacency(AdjacencyIndex(3)),
        )
        .unwrap();
    w.settle();
    let out = frames::frame([2, 7, 7, 7, 7, 7], GATEWAY, &frames::hop(&connected));
    assert_eq!(
        observe(&mut w, CORE, &frames::frame(GATEWAY, ROUTER, &connected)),
        Fate::Out(CORE, out)
    );
    w.controller.remove_adjacency(AdjacencyIndex(3)).unwrap();
    w.settle();
    assert_eq!(
        observe(&mut w, CORE, &frames::frame(GATEWAY, ROUTER, &connected)),
        Fate::Drop("no-adjacency")
    );
    assert_eq!(w.events(), [Event::AdjacencyMissing(AdjacencyIndex(3))]);
}

/// Every edge has a case in `bin/sluice-up/cases`; this is what they rely on.
#[test]
fn a_traced_packet_names_its_edges_and_fares_like_any_other() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let (home, neighbour) = (&homes[2], &homes[3]);
    let packet = v4(home.v4, neighbour.v4, 64, 0, b"next door");
    w.send(home.port, &home.sends_ip(&packet));
    w.send(
        home.port,
        &home.sends_ip(&v4([10, 0, 0, 1], INTERNET, 64, 0, &[])),
    );
    let path = [
        Edge::AccessFrame,
        Edge::OfSession,
        Edge::SubscriberV4,
        Edge::Forwarded,
        Edge::ToSubscriber,
        Edge::Encapsulated,
        Edge::AccessFrame,
        Edge::OfSession,
    ];
    assert_eq!(w.traced(), path);
    let expected = (neighbour.port, neighbour.gets(&frames::hop(&packet)));
    assert_eq!(w.receive(), [expected]);
    assert_eq!(w.drops()["spoofed-source-v4"], 1);
    assert!(w.traced().is_empty());
}

#[test]
fn the_flows_to_a_group_are_shared_out_and_stay_where_they_are() {
    let (all, mut w) = (homes(), World::new());
    w.online(&all);
    let (instance, group) = (InstanceIndex(0), GroupIndex(5));
    let routers: Vec<[u8; 6]> = (0..4).map(|n| [2, 0, 0, 0, 1, n]).collect();
    for (n, mac) in routers.iter().enumerate() {
        let to = Adjacency {
            port: PortIndex(CORE),
            mac: Some(wire::eth::MacAddr(*mac)),
        };
        let index = AdjacencyIndex(2 + n as u32);
        w.controller.set_adjacency(index, to).unwrap();
    }
    let members = |of: &[u32]| of.iter().map(|n| AdjacencyIndex(2 + n)).collect::<Vec<_>>();
    w.controller
        .set_group(group, &members(&[0, 1, 2, 3]))
        .unwrap();
    let net = "203.0.113.0/24".parse().unwrap();
    let to = Destination::Group(group);
    w.controller.set_route(instance, net, to).unwrap();
    w.settle();
    let home = &all[0];
    // UDP from many ports: which router each goes to.
    let udp = |port: u16| {
        let mut datagram = port.to_be_bytes().to_vec();
        datagram.extend([0, 53, 0, 9, 0, 0, 1]);
        home.sends_ip(&v4(home.v4, [203, 0, 113, 7], 64, 0, &datagram))
    };
    let goes = |w: &mut World, frame: &[u8]| match observe(w, home.port, frame) {
        Fate::Out(CORE, sent) => routers.iter().position(|mac| sent[..6] == *mac),
        other => panic!("{other:?}"),
    };
    let all_flows = |w: &mut World| (0..400).map(|port| goes(w, &udp(port))).collect::<Vec<_>>();
    let before = all_flows(&mut w);
    for n in 0..4 {
        let share = before.iter().filter(|to| **to == Some(n)).count();
        assert!((60..140).contains(&share), "{n}: {share}");
    }
    assert_eq!(all_flows(&mut w), before, "a flow stays with its router");
    w.controller.set_group(group, &members(&[0, 1, 3])).unwrap();
    let after = all_flows(&mut w);
    assert!(after.iter().all(|to| *to != Some(2)));
    let stays = before
        .iter()
        .zip(&after)
        .all(|(b, a)| b == a || *b == Some(2));
    assert!(stays, "only the flows of the router that went move");
    // Fragments have no ports, or are not to be believed: all of a packet go one way.
    let fragment = |offset: u16, port: u16| {
        let mut packet = v4(
            home.v4,
            [203, 0, 113, 7],
            64,
            0,
            &port.to_be_bytes().repeat(8),
        );
        packet[6..8].copy_from_slice(&offset.to_be_bytes());
        packet[10..12].fill(0);
        let sum = wire::checksum::of(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        home.sends_ip(&packet)
    };
    let fragments = [(0x2000, 1), (0x2002, 2), (4, 3)];
    let ways = fragments.map(|(offset, port)| goes(&mut w, &fragment(offset, port)));
    assert_eq!(ways, [ways[0]; 3]);
    w.controller.remove_group(group).unwrap();
    assert_eq!(observe(&mut w, home.port, &udp(1)), Fate::Drop("no-route"));
}
