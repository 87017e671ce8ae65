//! What one line, MAC address, VLAN or port sends to the control thread leaves the others their part.
//!
//! A program of its own: DPDK has no room for the rings of very many worlds in one process.
#[allow(dead_code)] // what the other tests need besides
#[path = "../graph/frames.rs"]
mod frames;
#[allow(dead_code)]
#[path = "../graph/world.rs"]
mod world;

use crate::frames::{GATEWAY, Home, Mac, frame, v4};
use crate::world::{ACCESS, ACCESS2, CORE, CORE2, LOCAL_V4, ROUTER, World, no_policing};
use dataplane::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// When tests begin: later than the machine's time.
const BEGIN: Duration = Duration::from_secs(1 << 26);

/// Two packets a second of one MAC address, five of a line, 60 of a VLAN, 200 of a port.
const LEVELS: Levels = Levels {
    mac: Some(2),
    line: Some(5),
    vlan: Some(60),
    port: Some(200),
};

fn limits() -> PuntLimits {
    let mut limits = no_policing().with_levels("discovery", LEVELS).unwrap();
    limits.hold_down.after = 0;
    limits
}

fn world(limits: PuntLimits) -> World {
    let mut w = World::with(limits, World::limits());
    w.settle_at(BEGIN + SECOND);
    w
}

/// A PADI from a home with these VLANs and this address, in which the access node has named the circuit.
fn padi(vlans: &[u16], mac: u32, circuit: &str) -> Vec<u8> {
    let tags: Vec<(u16, u16)> = vlans.iter().map(|vid| (0x8100, *vid)).collect();
    let mut home = Home::new(1, ACCESS, &tags);
    home.mac[2..].copy_from_slice(&mac.to_be_bytes());
    let mut frame = home.discovers([0xff; 6], 9, 0);
    if !circuit.is_empty() {
        let length = circuit.len();
        frame.extend([
            1,
            5,
            0,
            4 + 2 + length as u8,
            0,
            0,
            0x0d,
            0xe9,
            1,
            length as u8,
        ]);
        frame.extend(circuit.bytes());
        let payload = 14 + 4 * vlans.len() + 4;
        frame[payload..payload + 2].copy_from_slice(&(14 + length as u16).to_be_bytes());
    }
    frame
}

/// How many of these frames reach the control thread.
fn through(w: &mut World, port: u16, at: Duration, frames: impl Iterator<Item = Vec<u8>>) -> usize {
    for frame in frames {
        w.send(port, &frame);
        w.settle_at(BEGIN + at);
    }
    w.punts().len()
}

fn offences(w: &mut World) -> Vec<Offence> {
    std::iter::from_fn(|| Some(w.controller.poll_offence()?.1)).collect()
}

#[test]
fn a_mac_address_has_a_rate_on_its_line_and_another_on_another() {
    let mut w = world(limits());
    let flood =
        |w: &mut World, at, frame: Vec<u8>| through(w, ACCESS, at, std::iter::repeat_n(frame, 50));
    assert_eq!(flood(&mut w, SECOND, padi(&[100, 7], 1, "")), 4);
    assert_eq!(w.drops()["line-policed"], 46);
    // another circuit is the same line there: two VLAN ids say which it is
    assert_eq!(flood(&mut w, SECOND, padi(&[100, 7], 1, "one")), 0);
    // another address there, the same one on other lines, and in one VLAN behind different circuits
    for (vlans, mac, circuit) in [
        (&[100, 7][..], 2, ""),
        (&[100, 8], 1, ""),
        (&[100], 1, "one"),
        (&[100], 1, "two"),
        (&[150], 1, ""),
        (&[], 1, ""),
    ] {
        assert_eq!(flood(&mut w, SECOND, padi(vlans, mac, circuit)), 4);
    }
    assert_eq!(flood(&mut w, 2 * SECOND, padi(&[100, 7], 1, "")), 2);
}

#[test]
fn whoever_changes_its_address_has_the_rate_of_its_line_however_the_line_is_known() {
    for (vlans, circuit) in [
        (&[100, 7][..], ""),
        (&[100], "one"),
        (&[100, 0], "one"),
        (&[], "one"),
    ] {
        let mut w = world(limits());
        let changing = (0..50).map(|mac| padi(vlans, mac, circuit));
        assert_eq!(through(&mut w, ACCESS, SECOND, changing), 10);
        let [neighbour, other] = match vlans {
            [_, 7] => [padi(&[100, 8], 0, ""), padi(&[101, 7], 0, "")],
            _ => [padi(vlans, 0, "two"), padi(&[101], 0, "one")],
        };
        for frame in [neighbour, other] {
            let few = std::iter::repeat_n(frame, 4);
            assert_eq!(through(&mut w, ACCESS, SECOND, few), 4);
        }
    }
}

#[test]
fn where_nobody_knows_the_line_a_vlan_has_a_rate_and_a_port() {
    let mut w = world(limits());
    let changing = |vlan: u16| (0..500).map(move |mac| padi(&[vlan], mac, ""));
    assert_eq!(through(&mut w, ACCESS, SECOND, changing(100)), 30);
    assert_eq!(through(&mut w, ACCESS, SECOND, changing(101)), 30);
    let all = (102..199).flat_map(|vlan| changing(vlan).take(20));
    assert_eq!(through(&mut w, ACCESS, SECOND, all), 100 - 60);
    let other_port = (0..500).map(|mac| padi(&[300], mac, ""));
    assert_eq!(through(&mut w, ACCESS2, SECOND, other_port), 30);
}

#[test]
fn whoever_goes_on_is_held_down_for_twice_as_long_each_time() {
    let mut limits = limits();
    limits.hold_down = HoldDown {
        after: 100,
        first: 10 * SECOND,
        longest: 30 * SECOND,
    };
    let mut w = world(limits);
    let flood = |w: &mut World, at, times| {
        let frame = padi(&[100, 7], 1, "");
        through(w, ACCESS, at, std::iter::repeat_n(frame, times))
    };
    let mut now = SECOND;
    for held in [10, 20, 30, 30] {
        assert_eq!(flood(&mut w, now, 4 + 100), 4);
        // its neighbours are not, nor the same address elsewhere
        assert_eq!(
            through(&mut w, ACCESS, now, [padi(&[100, 8], 1, "")].into_iter()),
            1
        );
        now += held * SECOND - SECOND / 100;
        let before = w.drops().get("held-down").copied().unwrap_or(0);
        assert_eq!(flood(&mut w, now, 30), 0);
        assert_eq!(w.drops()["held-down"], before + 30);
        let told = offences(&mut w).pop().expect("a report");
        assert!(told.held_for > Duration::ZERO, "{told:?}");
        now += SECOND / 50;
    }
    // a minute without a packet above the rate, and it begins at the first again
    now += 61 * SECOND;
    assert_eq!(flood(&mut w, now, 4 + 100), 4);
    assert_eq!(flood(&mut w, now + 11 * SECOND, 1), 1);
}

#[test]
fn a_home_with_its_own_vlan_ids_does_not_get_another_line_with_another_circuit_id() {
    let mut limits = limits();
    limits.hold_down.after = 100;
    let mut w = world(limits);
    let circuits = |mac: fn(u32) -> u32, names: std::ops::Range<u32>| {
        names.map(move |n| padi(&[100, 7], mac(n), &format!("olt9 1/{n}")))
    };
    // one address, with another circuit in each packet
    assert_eq!(
        through(&mut w, ACCESS, SECOND, circuits(|_| 1, 0..4 + 100)),
        4
    );
    assert_eq!(
        through(&mut w, ACCESS, 4 * SECOND, circuits(|_| 1, 200..230)),
        0
    );
    assert_eq!(w.drops()["held-down"], 30);
    // another address with each has what is left of the line
    assert_eq!(
        through(&mut w, ACCESS, 4 * SECOND, circuits(|n| n, 300..350)),
        10
    );
    // nothing of it is its neighbour's
    let neighbour = std::iter::repeat_n(padi(&[100, 8], 1, "olt1 1/8"), 4);
    assert_eq!(through(&mut w, ACCESS, 4 * SECOND, neighbour), 4);
    // what is told names the line by its VLAN ids, and by no name that the home has chosen
    w.settle_at(BEGIN + 5 * SECOND);
    let mut told = offences(&mut w);
    told.sort_by_key(|offence| offence.level);
    let levels: Vec<_> = told.iter().map(|offence| offence.level).collect();
    assert_eq!(levels.last(), Some(&Level::Line), "{told:?}");
    assert!(
        levels[..levels.len() - 1]
            .iter()
            .all(|level| *level == Level::Mac)
    );
    for offence in &told {
        assert_eq!(offence.vlans, [Some(100), Some(7)]);
        assert_eq!(offence.circuit, [0; CIRCUIT]);
    }
}

#[test]
fn where_ids_are_not_trusted_a_home_does_not_get_another_line_with_another_circuit_id() {
    let mut limits = limits();
    limits.hold_down.after = 10;
    let mut w = world(limits);
    let untrusted = [(PortIndex(ACCESS), 100), (PortIndex(ACCESS), 0)];
    w.controller.set_untrusted(untrusted.into()).unwrap();
    w.settle_at(BEGIN + SECOND);
    let circuits = |vlans: &'static [u16]| (0..20).map(|n| padi(vlans, 1, &format!("olt9 1/{n}")));
    for (port, vlans, passed) in [
        (ACCESS, &[100][..], 4),
        (ACCESS, &[], 4),
        (ACCESS, &[101], 20),
        (ACCESS2, &[100], 20),
    ] {
        assert_eq!(through(&mut w, port, SECOND, circuits(vlans)), passed);
    }
    // nobody is held down: a stranger can have sent it
    let later = circuits(&[100]).take(1);
    assert_eq!(through(&mut w, ACCESS, 2 * SECOND, later), 1);
    w.settle_at(BEGIN + 3 * SECOND);
    for offence in offences(&mut w) {
        assert_eq!((offence.circuit, offence.strikes), ([0; CIRCUIT], 0));
    }
    // trusted again, each is another line
    w.controller.set_untrusted(Untrusted::default()).unwrap();
    w.settle_at(BEGIN + 3 * SECOND);
    assert_eq!(through(&mut w, ACCESS, 3 * SECOND, circuits(&[100])), 20);
}

#[test]
fn another_rule_for_hold_downs_ends_those_of_the_former_one() {
    let mut limits = limits();
    limits.hold_down.after = 10;
    let mut w = world(limits);
    let sends = |w: &mut World, at, times| {
        let frame = padi(&[100, 7], 1, "");
        through(w, ACCESS, at, std::iter::repeat_n(frame, times))
    };
    sends(&mut w, SECOND, 100);
    assert_eq!(sends(&mut w, 3 * SECOND, 1), 0);
    // the same rule beside another rate changes nothing
    limits.per_session.burst += 1;
    w.controller.set_punt_limits(&limits).unwrap();
    w.settle_at(BEGIN + 3 * SECOND);
    assert_eq!(sends(&mut w, 3 * SECOND, 1), 0);
    limits.hold_down.after = 0;
    w.controller.set_punt_limits(&limits).unwrap();
    w.settle_at(BEGIN + 3 * SECOND);
    assert_eq!(sends(&mut w, 3 * SECOND, 1), 1);
    w.settle_at(BEGIN + 4 * SECOND);
    let told = offences(&mut w).pop().expect("a report");
    assert_eq!(told.held_for, Duration::ZERO);
}

#[test]
fn a_hold_down_is_no_weapon() {
    let mut limits = limits();
    limits.hold_down.after = 10;
    let mut w = world(limits);
    // where nobody knows the line, a stranger can send with another's address
    for (vlans, at) in [(&[100][..], 1), (&[], 3)] {
        let flood = std::iter::repeat_n(padi(vlans, 1, ""), 500);
        through(&mut w, ACCESS, at * SECOND, flood);
        let later = [padi(vlans, 1, "")].into_iter();
        assert_eq!(through(&mut w, ACCESS, (at + 1) * SECOND, later), 1);
    }
    // an address that changes holds down neither its line nor what others say there
    let changing = (0..500).map(|mac| padi(&[100, 7], mac, ""));
    through(&mut w, ACCESS, 5 * SECOND, changing);
    let later = [padi(&[100, 7], 1000, "")].into_iter();
    assert_eq!(through(&mut w, ACCESS, 6 * SECOND, later), 1);
    // sessions go on, whatever is said beside them in discovery
    let home = Home::new(3, ACCESS, &[(0x8100, 100), (0x8100, 7)]);
    w.online(std::slice::from_ref(&home));
    through(
        &mut w,
        ACCESS,
        7 * SECOND,
        std::iter::repeat_n(home.discovers([0xff; 6], 9, 0), 500),
    );
    assert!(w.drops()["held-down"] > 0);
    for frame in [
        home.sends(0xc021, &[9, 1, 0, 8, 0, 0, 0, 0]),
        home.sends(0x8021, &[1, 1, 0, 4]),
        home.discovers(GATEWAY, 0xa7, home.id),
    ] {
        assert_eq!(through(&mut w, ACCESS, 7 * SECOND, [frame].into_iter()), 1);
    }
}

#[test]
fn those_who_exceed_a_rate_are_reported_once_a_second_while_they_do() {
    let mut w = world(limits());
    through(
        &mut w,
        ACCESS,
        SECOND,
        std::iter::repeat_n(padi(&[100], 7, "olt1 1/2/3"), 54),
    );
    let changing = (0..40).map(|mac| padi(&[150], mac, ""));
    through(&mut w, ACCESS, SECOND, changing);
    w.settle_at(BEGIN + 2 * SECOND);
    let mut told = offences(&mut w);
    told.sort_by_key(|offence| offence.level);
    let [line, vlan] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((line.level, line.vlans), (Level::Mac, [Some(100), None]));
    assert_eq!(line.mac.0[2..], 7u32.to_be_bytes());
    assert!(line.circuit.starts_with(b"olt1 1/2/3\0"));
    assert_eq!((line.dropped, line.since), (50, SECOND));
    assert_eq!((line.strikes, line.class.name), (0, "discovery"));
    assert_eq!((vlan.level, vlan.vlans), (Level::Vlan, [Some(150), None]));
    assert_eq!((vlan.dropped, vlan.port), (10, PortIndex(ACCESS)));
    w.settle_at(BEGIN + 5 * SECOND);
    assert!(offences(&mut w).is_empty());
}

#[test]
fn very_many_who_exceed_their_rates_are_all_limited_and_a_part_is_named() {
    let mac = Levels {
        mac: Some(2),
        ..Levels::NONE
    };
    let mut w = world(limits().with_levels("discovery", mac).unwrap());
    let lines = 4096;
    let mut passed = 0;
    for line in 0..lines {
        let frame = padi(&[100 + line / 2048, line % 2048], 1, "");
        passed += through(&mut w, ACCESS, SECOND, std::iter::repeat_n(frame, 6));
    }
    assert_eq!(passed, 4 * usize::from(lines));
    let mut told = 0;
    for second in 2..20 {
        w.settle_at(BEGIN + second * SECOND);
        told += offences(&mut w).len();
    }
    assert!((900..=1024).contains(&told), "{told}");
}

#[test]
fn rates_are_changed_while_packets_come() {
    let mut w = world(limits());
    let flood = |w: &mut World, at| {
        let frame = padi(&[100, 7], 1, "");
        through(w, ACCESS, at, std::iter::repeat_n(frame, 50))
    };
    assert_eq!(flood(&mut w, SECOND), 4);
    let none = no_policing();
    w.controller.set_punt_limits(&none).unwrap();
    w.settle_at(BEGIN + SECOND);
    assert_eq!(flood(&mut w, SECOND), 50);
    w.controller.set_punt_limits(&limits()).unwrap();
    w.settle_at(BEGIN + SECOND);
    assert_eq!(flood(&mut w, 10 * SECOND), 4);
}

#[test]
fn echoes_of_a_session_have_another_rate_than_what_else_it_says() {
    let mut limits = no_policing();
    limits.per_session = PuntRate {
        per_second: 10,
        burst: 10,
    };
    let mut w = world(limits);
    let homes = [1, 2].map(|n| Home::new(n, ACCESS, &[(0x8100, 100), (0x8100, n.into())]));
    w.online(&homes);
    let says = |w: &mut World, at, home: usize, code, times| {
        let lcp = homes[home].sends(0xc021, &[code, 1, 0, 8, 0, 0, 0, 0]);
        through(w, ACCESS, at, std::iter::repeat_n(lcp, times))
    };
    let (request, echo) = (1, 9);
    // as many configure requests as there is time for
    for at in [SECOND, 2 * SECOND, 3 * SECOND] {
        assert_eq!(says(&mut w, at, 0, request, 100), 10);
        assert_eq!(says(&mut w, at, 0, echo, 10), 10);
    }
    assert_eq!(w.drops()["session-policed"], 270);
    // echoes without end have their limit, and leave what else there is to say its own
    for at in [4 * SECOND, 5 * SECOND] {
        assert_eq!(says(&mut w, at, 1, echo, 100), 10);
        assert_eq!(says(&mut w, at, 1, request, 10), 10);
    }
    assert_eq!(w.drops()["session-policed"], 450);
    // who it was is told, and nobody is held down: the session would end
    w.settle_at(BEGIN + 6 * SECOND);
    let mut told: std::collections::BTreeMap<_, _> = Default::default();
    for what in offences(&mut w) {
        let who = (what.class.name, what.vlans[1], what.mac.0[5]);
        told.insert(who, (what.dropped, what.level, what.strikes));
    }
    let [first, second] = homes.each_ref().map(|home| home.mac[5]);
    let expected = [
        (("echo", Some(2), second), (180, Level::Mac, 0)),
        (("session", Some(1), first), (270, Level::Mac, 0)),
    ];
    assert_eq!(told, expected.into());
}

/// With three packets a second of one MAC address and 20 of a port, of this kind alone.
fn of_kind(name: &str) -> PuntLimits {
    let levels = Levels {
        mac: Some(3),
        port: Some(20),
        ..Levels::NONE
    };
    no_policing().with_levels(name, levels).unwrap()
}

/// What is let through of a core port's frames: 50 of one address, as many at the same time at another port, and 50 of as many addresses.
fn of_neighbours(kind: &str, frame: impl Fn(Mac) -> Vec<u8>) -> [usize; 3] {
    let mut w = world(of_kind(kind));
    let ours = "100.64.0.254/32".parse().unwrap();
    let set = (w.controller).set_route(InstanceIndex(1), ours, Destination::Local);
    set.unwrap();
    w.settle_at(BEGIN + SECOND);
    let neighbour = |n: u8| frame([2, 0, 0, 0, 9, n]);
    let flood = || std::iter::repeat_n(neighbour(0), 50);
    [
        through(&mut w, CORE, SECOND, flood()),
        through(&mut w, CORE2, SECOND, flood()),
        through(&mut w, CORE, 3 * SECOND, (1..51).map(neighbour)),
    ]
}

#[test]
fn a_neighbour_on_a_core_port_has_a_rate_for_resolution_and_one_for_what_is_for_us() {
    let arp = |from: Mac| {
        let mut arp = frame([0xff; 6], from, &[0; 28]);
        arp[12..14].copy_from_slice(&[8, 6]);
        arp
    };
    // 6 at once of an address, 10 of a port
    assert_eq!(of_neighbours("resolution", arp), [6, 6, 10]);
    let ping = |from: Mac| frame(GATEWAY, from, &v4([8; 4], LOCAL_V4, 64, 0, b"ping"));
    assert_eq!(of_neighbours("for-us", ping), [6, 6, 10]);
    // what floods as one kind still resolves as another
    let mut w = world(of_kind("for-us"));
    through(&mut w, CORE, SECOND, std::iter::repeat_n(ping(ROUTER), 50));
    let few = std::iter::repeat_n(arp(ROUTER), 40);
    assert_eq!(through(&mut w, CORE, SECOND, few), 40);
}

#[test]
fn a_home_has_a_rate_on_its_line_for_what_it_sends_to_the_gateway_itself() {
    let mut w = world(of_kind("local"));
    let homes: Vec<Home> = (1..30)
        .map(|n| Home::new(n, ACCESS, &[(0x8100, 100), (0x8100, n.into())]))
        .collect();
    w.online(&homes);
    let ping = |home: &Home| home.sends_ip(&v4(home.v4, LOCAL_V4, 64, 0, b"ping"));
    let flood = std::iter::repeat_n(ping(&homes[0]), 50);
    assert_eq!(through(&mut w, ACCESS, SECOND, flood), 6);
    assert_eq!(w.drops()["line-policed"], 44);
    // its neighbour has its own, within that of the port
    let flood = std::iter::repeat_n(ping(&homes[1]), 50);
    assert_eq!(through(&mut w, ACCESS, SECOND, flood), 4);
    assert_eq!(
        through(&mut w, ACCESS, 3 * SECOND, homes.iter().map(ping)),
        10
    );
    // nobody is held down for it
    w.settle_at(BEGIN + 4 * SECOND);
    let told = offences(&mut w);
    assert!(!told.is_empty() && told.iter().all(|offence| offence.strikes == 0));
    assert!(told.iter().any(|told| told.vlans == [Some(100), Some(1)]));
}
