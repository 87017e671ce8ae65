//! What the packets of a burst have in common, and what they have not.
use crate::cases::homes;
use crate::frames::{GATEWAY, Mac, frame, hop, v4, v6};
use crate::world::*;
use dataplane::*;
use wire::eth::MacAddr;

/// The router behind one of four nets, of which instance 0 alone knows.
fn router(n: u8) -> Mac {
    [2, 0, 0, 0, 1, n]
}

fn internet_v4(n: u8) -> [u8; 4] {
    [192, 0, n, 7]
}

fn internet_v6(n: u8) -> [u8; 16] {
    [0x26, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]
}

/// Homes of all VLAN models on one port, every other one in instance 1, where one router has everything.
fn world() -> (Vec<crate::frames::Home>, World) {
    let mut w = World::new();
    let mut homes = homes();
    homes.retain(|home| home.port == ACCESS);
    for (home, instance) in homes.iter().zip([0, 1].into_iter().cycle()) {
        let instance = InstanceIndex(instance);
        let entry = SessionEntry {
            instance,
            ..World::entry(home)
        };
        w.controller.set_session(entry).unwrap();
    }
    let mut route = |instance, prefix: String, to| {
        let to = Destination::Adjacency(AdjacencyIndex(to));
        let prefix = prefix.parse().unwrap();
        w.controller.set_route(InstanceIndex(instance), prefix, to)
    };
    for n in 0..4 {
        route(0, format!("192.0.{n}.0/24"), 2 + n).unwrap();
        route(0, format!("2600:{n:x}::/32"), 2 + n).unwrap();
    }
    route(1, "192.0.0.0/16".into(), 1).unwrap();
    route(1, "2600::/16".into(), 1).unwrap();
    for n in 0..4 {
        let to = Adjacency {
            port: PortIndex(CORE),
            mac: Some(MacAddr(router(n))),
        };
        let index = AdjacencyIndex(2 + n as u32);
        w.controller.set_adjacency(index, to).unwrap();
    }
    w.settle();
    (homes, w)
}

#[test]
fn each_packet_goes_by_its_own_instance_family_and_destination() {
    let (homes, mut w) = world();
    let (mut expected, mut forged) = (vec![], 0);
    for i in 0..60_u8 {
        let (home, n) = (&homes[i as usize % homes.len()], i / 3 % 4);
        let payload = [i; 20];
        let ip = match i % 5 {
            // Nothing becomes of some between the others.
            0 => v6(internet_v6(9), internet_v6(n), 64, 17, &payload),
            1 | 3 => v4(home.v4, internet_v4(n), 64, 0, &payload),
            _ => v6(home.v6_address(), internet_v6(n), 64, 17, &payload),
        };
        w.send(ACCESS, &home.sends_ip(&ip));
        let (port, to) = match i as usize % homes.len() % 2 {
            0 => (CORE, router(n)),
            _ => (CORE2, ROUTER2),
        };
        match i % 5 {
            0 => forged += 1,
            _ => expected.push((port, frame(to, GATEWAY, &hop(&ip)))),
        }
    }
    assert_eq!(w.step(), 60, "one burst");
    let found = w.receive();
    // The order on each port is that in which they came.
    expected.sort_by_key(|(port, _)| *port);
    assert_eq!(found, expected);
    assert_eq!(w.drops(), [("spoofed-source-v6", forged)].into());
}

#[test]
fn both_families_from_the_core_find_their_subscribers() {
    let (homes, mut w) = world();
    let mut expected = vec![];
    for i in 0..60_u8 {
        // Those in the core port's instance.
        let home = &homes[i as usize % 2 * 2];
        let payload = [i; 20];
        let ip = match i % 3 {
            0 => v4(internet_v4(0), home.v4, 64, 0, &payload),
            1 => v6(internet_v6(0), home.v6_address(), 64, 17, &payload),
            // To a neighbour, in between.
            _ => v6(internet_v6(0), internet_v6(i % 4), 64, 17, &payload),
        };
        w.send(CORE, &frame(GATEWAY, ROUTER, &ip));
        expected.push(match i % 3 {
            2 => (CORE, frame(router(i % 4), GATEWAY, &hop(&ip))),
            _ => (ACCESS, home.gets(&hop(&ip))),
        });
    }
    assert_eq!(w.step(), 60, "one burst");
    let found = w.receive();
    expected.sort_by_key(|(port, _)| *port);
    assert_eq!(found, expected);
}
