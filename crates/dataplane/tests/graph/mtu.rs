//! Packets that are larger than their next hop takes, and TCP connections that are kept from sending any.
use crate::cases::homes;
use crate::frames::{self, GATEWAY, Home, checksum, frame, hop, v4, v6};
use crate::world::*;
use dataplane::*;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const INTERNET6: [u8; 16] = [0x26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

/// The packet with DF = 0.
fn may_fragment(mut packet: Vec<u8>) -> Vec<u8> {
    packet[6] &= !0x40;
    let header = (packet[0] & 15) as usize * 4;
    (packet[10], packet[11]) = (0, 0);
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn octets(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// What a host makes of fragments that come in order: the packet, if they are one whole packet and none is larger than
/// `mtu`.
fn reassembled(fragments: &[Vec<u8>], mtu: usize) -> Vec<u8> {
    let (mut whole, mut at) = (fragments[0].clone(), 0);
    whole.truncate((whole[0] & 15) as usize * 4);
    for (n, fragment) in fragments.iter().enumerate() {
        let header = (fragment[0] & 15) as usize * 4;
        assert!(fragment.len() <= mtu, "{} octets", fragment.len());
        assert_eq!(checksum(&fragment[..header]), 0);
        assert_eq!(fragment[2..4], (fragment.len() as u16).to_be_bytes());
        let place = u16::from_be_bytes([fragment[6], fragment[7]]);
        assert_eq!((place & 0x1fff) as usize * 8, at, "fragment {n}");
        assert_eq!(place & 0x2000 != 0, n + 1 < fragments.len(), "more");
        whole.extend(&fragment[header..]);
        at += fragment.len() - header;
    }
    let total = whole.len() as u16;
    whole[2..4].copy_from_slice(&total.to_be_bytes());
    (whole[6], whole[7]) = (0, 0);
    may_fragment(whole)
}

/// The IP packets in frames that are `home`'s.
fn at_home(home: &Home, frames: Vec<(u16, Vec<u8>)>) -> Vec<Vec<u8>> {
    let header = home.gets(&[0x45]).len() - 1;
    let packet = |(port, frame): (u16, Vec<u8>)| {
        let packet = frame[header..].to_vec();
        assert_eq!((port, &frame), (home.port, &home.gets(&packet)));
        packet
    };
    frames.into_iter().map(packet).collect()
}

fn at_router(frames: Vec<(u16, Vec<u8>)>) -> Vec<Vec<u8>> {
    let packet = |(port, f): (u16, Vec<u8>)| {
        assert_eq!((port, &f), (CORE, &frame(ROUTER, GATEWAY, &f[14..])));
        f[14..].to_vec()
    };
    frames.into_iter().map(packet).collect()
}

#[test]
fn large_packets_to_a_subscriber_are_fragmented() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let mut seen = 0;
    for home in &homes {
        for (options, size) in [(0, 1480), (0, 1900), (3, 1500), (10, 1460)] {
            let packet = may_fragment(v4(INTERNET, home.v4, 64, options, &octets(size)));
            w.send(CORE, &frame(GATEWAY, ROUTER, &packet));
            w.settle();
            let got = at_home(home, w.receive());
            // What a home sends its neighbour, and what the gateway itself sends.
            let own = may_fragment(v4(LOCAL_V4, home.v4, 64, options, &octets(size)));
            w.inject(Inject::Route(InstanceIndex(0), &own));
            w.settle();
            let from_gateway = at_home(home, w.receive());
            let fits = packet.len() <= home.mtu;
            assert_eq!(
                (got.len(), from_gateway.len()),
                if fits { (1, 1) } else { (2, 2) }
            );
            if !fits {
                assert_eq!(reassembled(&got, home.mtu), hop(&packet));
                assert_eq!(reassembled(&from_gateway, home.mtu), own);
                seen += 1;
            }
        }
        let neighbour = &homes[5];
        let packet = may_fragment(v4(home.v4, neighbour.v4, 64, 0, &octets(1460)));
        let before = w.usage(neighbour.index);
        w.send(home.port, &home.sends_ip(&packet));
        w.settle();
        let got = at_home(neighbour, w.receive());
        assert_eq!(reassembled(&got, 1400), hop(&packet));
        // Whatever is sent counts: the second header, too.
        let after = w.usage(neighbour.index);
        assert_eq!(after.ipv4.down_packets - before.ipv4.down_packets, 2);
        assert_eq!(after.ipv4.down_octets - before.ipv4.down_octets, 1480 + 20);
    }
    let cut = w.controller.fragments();
    assert_eq!((cut.packets, cut.fragments), (2 * seen + 6, 4 * seen + 12));
    assert!(w.drops().is_empty());
}

#[test]
fn fragments_are_fragmented_where_they_belong() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let home = &homes[5];
    // A host cuts 3,000 octets for an MTU of 1,500.
    let datagram = octets(3000);
    let whole = may_fragment(v4(INTERNET, home.v4, 64, 0, &datagram));
    for (at, end) in [(0, 1480), (1480, 2960), (2960, 3000)] {
        let mut part = v4(INTERNET, home.v4, 64, 0, &datagram[at..end]);
        let more = if end < 3000 { 0x2000 } else { 0 };
        part[6..8].copy_from_slice(&((at / 8) as u16 | more).to_be_bytes());
        (part[10], part[11]) = (0, 0);
        let sum = checksum(&part[..20]);
        part[10..12].copy_from_slice(&sum.to_be_bytes());
        w.send(CORE, &frame(GATEWAY, ROUTER, &part));
    }
    w.settle();
    let got = at_home(home, w.receive());
    assert_eq!(got.len(), 5);
    assert_eq!(reassembled(&got, 1400), hop(&whole));
}

#[test]
fn large_packets_to_the_core_are_fragmented_for_its_mtu() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    for mtu in [1280, 576, 300] {
        w.controller.set_mtu(PortIndex(CORE), mtu).unwrap();
        for home in &homes {
            let packet = may_fragment(v4(home.v4, INTERNET, 64, 2, &octets(1464)));
            w.send(home.port, &home.sends_ip(&packet));
            w.settle();
            let got = at_router(w.receive());
            assert_eq!(reassembled(&got, mtu.into()), hop(&packet));
            let dont = v4(home.v4, INTERNET, 64, 2, &octets(1464));
            w.send(home.port, &home.sends_ip(&dont));
            w.settle();
            let told = PuntKind::TooBig(NextHop {
                instance: InstanceIndex(0),
                mtu,
            });
            assert_eq!(w.punts(), [(told, home.port, hop(&dont))]);
        }
    }
    assert_eq!((w.drops()["too-big"], w.receive()), (18, vec![]));
}

#[test]
fn what_must_be_whole_is_a_drop_and_shown_to_the_control_thread() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let told = |home: &Home, own| {
        let next_hop = NextHop {
            instance: InstanceIndex(0),
            mtu: home.mtu as u16,
        };
        match own {
            true => PuntKind::OwnTooBig(next_hop),
            false => PuntKind::TooBig(next_hop),
        }
    };
    for home in &homes {
        let dont = v4(INTERNET, home.v4, 64, 0, &octets(1473));
        let six = v6(INTERNET6, home.v6_address(), 64, 17, &octets(1453));
        w.send(CORE, &frame(GATEWAY, ROUTER, &dont));
        w.send(CORE, &frame(GATEWAY, ROUTER, &six));
        w.settle();
        let punts = [
            (told(home, false), CORE, hop(&dont)),
            (told(home, false), CORE, hop(&six)),
        ];
        assert_eq!(w.punts(), punts);
        let own = v6(LOCAL_V6, home.v6_address(), 64, 58, &octets(1453));
        w.inject(Inject::Route(InstanceIndex(0), &own));
        w.settle();
        let punts = w.punts();
        assert_eq!(punts.len(), 1);
        assert_eq!((punts[0].0, &punts[0].2), (told(home, true), &own));
        assert_eq!(w.usage(home.index).ipv4.down_packets, 0);
    }
    assert_eq!(
        (
            w.drops()["too-big"],
            w.punted("too-big") + w.punted("own-too-big")
        ),
        (18, 18)
    );
}

/// The frames of a whole burst become more than a port's burst holds; they come in their order, and none is lost.
#[test]
fn a_burst_of_large_packets_keeps_its_order() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    w.controller.set_mtu(PortIndex(CORE), 576).unwrap();
    w.settle();
    let (home, mut expected) = (&homes[1], vec![]);
    for n in 0..64u8 {
        let packet = match n % 4 {
            0 => may_fragment(v4(home.v4, INTERNET, 64, 0, &[n; 1472])),
            _ => v4(home.v4, INTERNET, 64, 0, &[n; 100]),
        };
        w.send(home.port, &home.sends_ip(&packet));
        expected.extend(std::iter::repeat_n(n, if n % 4 == 0 { 3 } else { 1 }));
    }
    w.settle();
    let got = at_router(w.receive());
    let order: Vec<u8> = got.iter().map(|packet| packet[20]).collect();
    assert_eq!(order, expected);
    // As much as the port's queue holds, from the gateway itself.
    w.controller.set_mtu(PortIndex(CORE), 1000).unwrap();
    for n in 0..64u8 {
        let packet = may_fragment(v4(LOCAL_V4, INTERNET, 64, 0, &[n; 1472]));
        w.inject(Inject::Route(InstanceIndex(0), &packet));
    }
    w.settle();
    let got = at_router(w.receive());
    assert!(got.iter().map(|p| p[20]).eq((0..128u8).map(|i| i / 2)));
    assert!(w.drops().is_empty());
}

#[test]
fn fragments_without_room_are_drops() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    w.controller.set_mtu(PortIndex(CORE), 576).unwrap();
    w.settle();
    let home = &homes[0];
    let packet = home.sends_ip(&may_fragment(v4(home.v4, INTERNET, 64, 0, &octets(1472))));
    w.send(home.port, &packet);
    // Two buffers are not three.
    let mut taken: Vec<_> = std::iter::from_fn(|| w.pool.alloc()).collect();
    taken.truncate(taken.len() - 2);
    w.settle();
    assert_eq!((w.drops()["no-buffer"], w.receive()), (1, vec![]));
    drop(taken);
    // More fragments than can stand in line: each packet goes with all of its own, or not at all.
    w.controller.set_mtu(PortIndex(CORE), 68).unwrap();
    for _ in 0..64 {
        w.send(home.port, &packet);
    }
    w.settle();
    let drops = w.drops();
    let cut = w.controller.fragments();
    assert_eq!((cut.fragments % 31, cut.fragments / 31), (0, cut.packets));
    assert_eq!(drops["no-buffer"] - 1 + cut.packets, 64);
    assert!(cut.fragments > 256 && drops["tx-queue-full"] > 0);
    // And one with more than any burst could have.
    let before = drops["no-buffer"];
    let mut large = v4(home.v4, INTERNET, 64, 10, &octets(1432));
    (large[20], large[21]) = (0x88, 40); // an option that is copied into each of them
    let large = home.sends_ip(&may_fragment(large));
    w.send(home.port, &large);
    w.settle();
    assert_eq!(w.drops()["no-buffer"], before + 1);
}

/// A SYN with these octets of other options before the MSS, in an IP packet.
fn syn(from: &Home, v6: bool, to_v4: [u8; 4], to_v6: [u8; 16], before: usize, mss: u16) -> Vec<u8> {
    let length = (20 + before + 4).next_multiple_of(4);
    let mut tcp = vec![1, 2, 0, 80, 0, 0, 0, 9, 0, 0, 0, 0, (length << 2) as u8, 2];
    tcp.extend([0xff, 0xff, 0, 0, 0, 0]);
    tcp.resize(20 + before, 1);
    tcp.extend([2, 4]);
    tcp.extend(mss.to_be_bytes());
    tcp.resize(length, 0);
    tcp.extend(b"fast open");
    let (addresses, n) = match v6 {
        true => ([from.v6_address(), to_v6].concat(), tcp.len() as u16),
        false => ([from.v4, to_v4].concat(), tcp.len() as u16),
    };
    let pseudo = [&addresses[..], &n.to_be_bytes(), &[0, 6], &tcp].concat();
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    if v6 {
        return frames::v6(from.v6_address(), to_v6, 64, 6, &tcp);
    }
    // With as many options of IP as there can be, the end of TCP's lies behind the first 96 octets of the frame.
    let mut packet = v4(from.v4, to_v4, 64, before / 4, &tcp);
    packet[9] = 6;
    (packet[10], packet[11]) = (0, 0);
    let header = (packet[0] & 15) as usize * 4;
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn connections_begin_with_what_the_session_can_carry() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    for sampled in [false, true] {
        for home in &homes {
            let rate = sampled.then_some(SampleRate {
                one_in: 1,
                per_second: 1_000_000,
            });
            w.controller.sample(SessionIndex(home.index), rate).unwrap();
            w.settle();
            for (before, six) in (0..=36).zip([false, true].into_iter().cycle()) {
                let fits = home.mtu as u16 - if six { 60 } else { 40 };
                for mss in [fits - 1, fits, fits + 1, 9000] {
                    let up = |mss| syn(home, six, INTERNET, INTERNET6, before, mss);
                    w.send(home.port, &home.sends_ip(&up(mss)));
                    w.settle();
                    let sent = frame(ROUTER, GATEWAY, &hop(&up(mss.min(fits))));
                    assert_eq!(w.receive(), [(CORE, sent)], "{home:?} {before} {mss}");
                    // The answer comes to the home.
                    let mut far = home.clone();
                    far.v4 = INTERNET;
                    far.v6 = INTERNET6[..8].try_into().unwrap();
                    let down = |mss| syn(&far, six, home.v4, home.v6_address(), before, mss);
                    w.send(CORE, &frame(GATEWAY, ROUTER, &down(mss)));
                    w.settle();
                    let sent = home.gets(&hop(&down(mss.min(fits))));
                    assert_eq!(w.receive(), [(home.port, sent)], "{home:?} {before} {mss}");
                }
            }
        }
        // Between two subscribers the smaller MTU counts, whoever begins.
        let (large, small) = (&homes[2], &homes[5]);
        for (a, b) in [(large, small), (small, large)] {
            let syn = |mss| syn(a, false, b.v4, b.v6_address(), 0, mss);
            w.send(a.port, &a.sends_ip(&syn(1460)));
            w.settle();
            assert_eq!(w.receive(), [(b.port, b.gets(&hop(&syn(1360))))]);
        }
        w.punts();
    }
}

#[test]
fn fragments_to_a_sampled_session_are_shown_each() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let home = &homes[5];
    let rate = SampleRate {
        one_in: 1,
        per_second: 1_000_000,
    };
    let index = SessionIndex(home.index);
    w.controller.sample(index, Some(rate)).unwrap();
    let packet = may_fragment(v4(INTERNET, home.v4, 64, 0, &octets(1480)));
    w.send(CORE, &frame(GATEWAY, ROUTER, &packet));
    w.settle();
    let (got, copies) = (w.receive(), w.punts());
    let of = |frame: &[u8]| frame[..frame.len().min(96)].to_vec();
    let shown: Vec<_> = got.iter().map(|(_, frame)| of(frame)).collect();
    assert!(copies.iter().all(|c| c.0 == PuntKind::SampledDown(index)));
    assert_eq!(copies.into_iter().map(|c| c.2).collect::<Vec<_>>(), shown);
    assert_eq!(reassembled(&at_home(home, got), 1400), hop(&packet));
}

#[test]
fn a_traced_packet_names_the_ways_of_large_ones_and_of_connections() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let (one, other) = (&homes[2], &homes[5]);
    let large = v4(INTERNET, other.v4, 64, 0, &octets(1400));
    w.send(CORE, &frame(GATEWAY, ROUTER, &may_fragment(large.clone())));
    let ahead = [
        Edge::CoreFrame,
        Edge::CoreV4,
        Edge::Sound,
        Edge::Forwarded,
        Edge::ToSubscriber,
        Edge::LargeToSubscriber,
    ];
    assert_eq!(w.traced(), [&ahead[..], &[Edge::Fragments]].concat());
    w.send(CORE, &frame(GATEWAY, ROUTER, &large));
    assert_eq!(w.traced(), [&ahead[..], &[Edge::Refused]].concat());
    let packet = syn(one, false, other.v4, INTERNET6, 0, 1460);
    w.send(one.port, &one.sends_ip(&packet));
    let path = [
        Edge::AccessFrame,
        Edge::OfSession,
        Edge::SubscriberSyn,
        Edge::SynToLookup,
        Edge::Forwarded,
        Edge::ToSubscriber,
        Edge::ToMss,
        Edge::SynToSubscriber,
        Edge::Encapsulated,
    ];
    assert_eq!(w.traced(), path);
}
