//! Sources that cannot be: what comes from the core is checked against the routes, where a port or subinterface says so.
use crate::cases::{homes, observe};
use crate::frames::{self, GATEWAY, v4, v6};
use crate::model::{Fate, Model};
use crate::world::*;
use dataplane::*;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

const MODES: [SourceCheck; 3] = [SourceCheck::Strict, SourceCheck::Loose, SourceCheck::Off];

fn six(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

/// Frames from the core with sources of every kind, to the first home.
fn frames() -> Vec<Vec<u8>> {
    let home = &homes()[0];
    let v4_sources = [
        [192, 0, 2, 7],    // in the internet
        [198, 51, 100, 9], // on a connected net
        [203, 0, 113, 1],  // behind an adjacency that is not known
        [10, 1, 1, 1],     // in the other instance behind the other port
        [100, 64, 0, 77],  // of no session
        [169, 254, 1, 1],  // of a link
        LOCAL_V4,          // the gateway itself
        homes()[2].v4,     // a subscriber
        [0, 1, 2, 3],      // and those that no packet may have
        [127, 0, 0, 1],
        [224, 0, 0, 5],
        [240, 0, 0, 1],
        [255; 4],
    ];
    let v6_sources = [
        six("2600::7"),
        six("2001:db8:c::9"),
        six("4000::1"), // without a route
        six("2001:db8:0:77::1"),
        LOCAL_V6,
        homes()[2].v6_address(),
        six("::1"),
        six("::ffff:192.0.2.1"),
        six("ff0e::1"),
        six("fe80::1"),
        [0; 16],
    ];
    let four = v4_sources.map(|source| v4(source, home.v4, 64, 0, b"from the core"));
    let six = v6_sources.map(|source| v6(source, home.v6_address(), 64, 17, b"from the core"));
    let packets = four.into_iter().chain(six);
    packets
        .map(|packet| frames::frame(GATEWAY, ROUTER, &packet))
        .collect()
}

#[test]
fn every_source_in_every_mode_is_treated_as_the_model_says() {
    // Not `each_world`: DPDK has 2,560 zones of memory for all worlds of a process, of which those with many workers take the most.
    let (mut w, mut model) = (World::new(), Model::new(&homes()));
    w.online(&homes());
    let mut seen = BTreeSet::new();
    for mode in MODES {
        for port in [CORE, CORE2] {
            w.controller
                .set_source_check(PortIndex(port), mode)
                .unwrap();
        }
        w.settle();
        model.source_check = mode;
        for frame in frames() {
            for port in [CORE, CORE2] {
                // Whatever a frame that is cut off has for a source, its header is what is wrong. (Those of the link are the kernel's.)
                let cut = frame[12] == 8 || frame[22] >> 4 == 2;
                for len in [frame.len(), if cut { 30 } else { frame.len() }] {
                    let fate = model.fate(port, &frame[..len]);
                    assert_eq!(
                        observe(&mut w, port, &frame[..len]),
                        fate,
                        "{mode:?} {port} {frame:x?}"
                    );
                    seen.extend(match fate {
                        Fate::Drop(name) => Some((mode as u8, name)),
                        _ => None,
                    });
                }
            }
        }
    }
    for mode in [SourceCheck::Loose, SourceCheck::Strict] {
        for name in ["martian-source", "unrouted-source", "inside-source"] {
            assert!(seen.contains(&(mode as u8, name)), "{mode:?} {name}");
        }
    }
    assert!(seen.contains(&(SourceCheck::Strict as u8, "reverse-path")));
    assert!(!seen.contains(&(SourceCheck::Loose as u8, "reverse-path")));
}

#[test]
fn a_whole_burst_is_judged_packet_by_packet() {
    let (mut w, mut model) = (World::new(), Model::new(&homes()));
    w.online(&homes());
    (w.controller
        .set_source_check(PortIndex(CORE), SourceCheck::Strict))
    .unwrap();
    w.settle();
    model.source_check = SourceCheck::Strict;
    let frames: Vec<_> = frames().into_iter().cycle().take(64).collect();
    let fates: Vec<_> = frames.iter().map(|frame| model.fate(CORE, frame)).collect();
    for frame in &frames {
        w.send(CORE, frame);
    }
    w.settle();
    let out = fates.iter().filter_map(|fate| match fate {
        Fate::Out(port, frame) => Some((*port, frame.clone())),
        _ => None,
    });
    assert_eq!(w.receive(), out.collect::<Vec<_>>());
    for name in [
        "martian-source",
        "unrouted-source",
        "inside-source",
        "reverse-path",
    ] {
        let expected = fates
            .iter()
            .filter(|fate| **fate == Fate::Drop(name))
            .count();
        assert_eq!(
            w.drops().get(name).copied().unwrap_or(0),
            expected as u64,
            "{name}"
        );
    }
}

/// A frame with a tag in front of its type.
fn tagged(vlan: u16, frame: &[u8]) -> Vec<u8> {
    let tag = [0x8100_u16.to_be_bytes(), vlan.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

#[test]
fn a_port_and_its_subinterfaces_have_checks_of_their_own() {
    const PART: PortIndex = PortIndex(30);
    let (mut w, homes) = (World::new(), homes());
    w.online(&homes);
    let part = Subinterface {
        port: PortIndex(CORE),
        vlan: 300,
        instance: InstanceIndex(0),
        mtu: 1500,
    };
    w.controller.add_subinterface(PART, part).unwrap();
    let route = "10.9.0.0/16".parse().unwrap();
    let to = Destination::Connected(PART);
    w.controller.set_route(InstanceIndex(0), route, to).unwrap();
    w.settle();
    // One source is behind the port, the other behind the subinterface.
    let down = |source| {
        let packet = v4(source, homes[0].v4, 64, 0, b"from the core");
        frames::frame(GATEWAY, ROUTER, &packet)
    };
    let (by_port, by_part) = (down([192, 0, 2, 7]), down([10, 9, 1, 1]));
    let link_local = {
        let packet = v6(six("fe80::1"), LOCAL_V6, 255, 58, &[136, 0, 0, 0]);
        tagged(300, &frames::frame(GATEWAY, ROUTER, &packet))
    };
    let other = "reverse-path";
    let expected = |of_port: bool, of_part: bool| {
        let [on_port, on_part] = [of_port, of_part].map(|strict| strict.then_some(other));
        [None, on_port, on_part, None]
    };
    for (of_port, of_part) in [(true, true), (true, false), (false, true), (false, false)] {
        for (index, strict) in [(PortIndex(CORE), of_port), (PART, of_part)] {
            let mode = match strict {
                true => SourceCheck::Strict,
                false => SourceCheck::Off,
            };
            w.controller.set_source_check(index, mode).unwrap();
        }
        w.settle();
        let sent = [
            &by_port,
            &by_part,
            &tagged(300, &by_port),
            &tagged(300, &by_part),
        ];
        let found = sent.map(|frame| match observe(&mut w, CORE, frame) {
            Fate::Out(..) => None,
            Fate::Drop(name) => Some(name),
            punt => panic!("{punt:?}"),
        });
        assert_eq!(found, expected(of_port, of_part), "{of_port} {of_part}");
        assert!(matches!(observe(&mut w, CORE, &link_local), Fate::Punt(..)));
    }
    assert!(
        w.controller
            .set_source_check(PortIndex(ACCESS), SourceCheck::Loose)
            .is_err()
    );
    assert!(
        w.controller
            .set_source_check(PortIndex(9), SourceCheck::Loose)
            .is_err()
    );
}

#[test]
fn a_route_back_by_several_neighbours_or_by_an_unresolved_one_is_one() {
    let (mut w, homes) = (World::new(), homes());
    w.online(&homes);
    let c = &mut w.controller;
    c.set_source_check(PortIndex(CORE), SourceCheck::Strict)
        .unwrap();
    let unresolved = Adjacency {
        port: PortIndex(CORE),
        mac: None,
    };
    c.set_adjacency(AdjacencyIndex(6), unresolved).unwrap();
    let members = [AdjacencyIndex(1), AdjacencyIndex(6)];
    c.set_group(GroupIndex(0), &members).unwrap();
    c.set_group(GroupIndex(1), &members[..1]).unwrap();
    for (prefix, to) in [
        ("10.1.0.0/16", Destination::Group(GroupIndex(0))),
        ("10.2.0.0/16", Destination::Group(GroupIndex(1))),
        ("10.3.0.0/16", Destination::Adjacency(AdjacencyIndex(6))),
    ] {
        let prefix = prefix.parse().unwrap();
        c.set_route(InstanceIndex(0), prefix, to).unwrap();
    }
    w.settle();
    let mut from = |net| {
        let packet = v4([10, net, 1, 1], homes[0].v4, 64, 0, b"from the core");
        observe(&mut w, CORE, &frames::frame(GATEWAY, ROUTER, &packet))
    };
    assert!(matches!(from(1), Fate::Out(..)));
    assert_eq!(from(2), Fate::Drop("reverse-path"));
    assert!(matches!(from(3), Fate::Out(..)));
    // Nothing is sent to a neighbour that is not resolved.
    let up = homes[0].sends_ip(&v4(homes[0].v4, [10, 3, 1, 1], 64, 0, b"up"));
    assert_eq!(observe(&mut w, ACCESS, &up), Fate::Drop("no-adjacency"));
}

#[test]
fn the_setting_of_options_is_changed_while_packets_pass() {
    let (mut w, homes) = (World::new(), homes());
    w.online(&homes);
    let home = &homes[2];
    let with = |option: u8, from_core: bool| {
        let (source, destination) = match from_core {
            true => ([192, 0, 2, 7], home.v4),
            false => (home.v4, [192, 0, 2, 7]),
        };
        let mut packet = v4(source, destination, 64, 2, b"options");
        packet[20..28].copy_from_slice(&[option, 7, 4, 192, 0, 2, 99, 0]);
        packet[10..12].fill(0);
        let sum = frames::checksum(&packet[..28]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        match from_core {
            true => (CORE, frames::frame(GATEWAY, ROUTER, &packet)),
            false => (home.port, home.sends_ip(&packet)),
        }
    };
    let (source_route, any) = (Some("source-route"), Some("ipv4-options"));
    for (setting, of_routes, of_others) in [
        (None, source_route, None),
        (Some(Ipv4Options::Forward), None, None),
        (Some(Ipv4Options::Drop), any, any),
        (Some(Ipv4Options::DropSourceRoutes), source_route, None),
    ] {
        if let Some(setting) = setting {
            w.controller.set_ipv4_options(setting).unwrap();
            w.settle();
        }
        for (option, expected) in [(131, of_routes), (137, of_routes), (7, of_others)] {
            for from_core in [false, true] {
                let (port, frame) = with(option, from_core);
                let found = match observe(&mut w, port, &frame) {
                    Fate::Drop(name) => Some(name),
                    _ => None,
                };
                assert_eq!(found, expected, "{setting:?} {option} {from_core}");
            }
        }
    }
}
