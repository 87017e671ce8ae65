//! Subinterfaces of core ports: frames with their tag belong to them, and to nobody else.
use crate::cases::{homes, observe};
use crate::frames::{self, GATEWAY, Home, Mac, v4, v6};
use crate::model::Fate;
use crate::world::*;
use dataplane::*;
use wire::eth::MacAddr;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const FAR: [u8; 4] = [10, 9, 9, 9];
const PEER: Mac = [2, 0, 0, 0, 0, 0x79];
/// Subinterfaces of the first core port, in instances 0 and 1.
const V300: u16 = 30;
const V301: u16 = 31;

/// A frame with a tag in front of its type.
fn tagged(tci: u16, frame: &[u8]) -> Vec<u8> {
    let tag = [0x8100_u16.to_be_bytes(), tci.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

/// A router behind VLAN 300 with 10.9.0.0/16 behind it, the net of VLAN 300, and VLAN 301 in another instance.
fn world() -> World {
    let mut w = World::new();
    let part = |vlan, instance, mtu| Subinterface {
        port: PortIndex(CORE),
        vlan,
        instance: InstanceIndex(instance),
        mtu,
    };
    let c = &mut w.controller;
    c.add_subinterface(PortIndex(V300), part(300, 0, 1400))
        .unwrap();
    c.add_subinterface(PortIndex(V301), part(301, 1, 1500))
        .unwrap();
    let peer = Adjacency {
        port: PortIndex(V300),
        mac: Some(MacAddr(PEER)),
    };
    c.set_adjacency(AdjacencyIndex(5), peer).unwrap();
    let behind = Destination::Adjacency(AdjacencyIndex(5));
    let net = Destination::Connected(PortIndex(V300));
    for (prefix, to) in [("10.9.0.0/16", behind), ("198.18.0.0/24", net)] {
        let prefix = prefix.parse().unwrap();
        c.set_route(InstanceIndex(0), prefix, to).unwrap();
    }
    w.settle();
    w
}

fn up(home: &Home, to: [u8; 4], octets: usize) -> Vec<u8> {
    home.sends_ip(&v4(home.v4, to, 64, 0, &vec![1; octets - 20]))
}

#[test]
fn packets_leave_with_the_tag_and_within_the_subinterfaces_mtu() {
    let (all, mut w) = (homes(), world());
    w.online(&all);
    for home in &all {
        let packet = v4(home.v4, FAR, 64, 0, &[1; 60]);
        let sent = frames::frame(PEER, GATEWAY, &frames::hop(&packet));
        let expected = Fate::Out(CORE, tagged(300, &sent));
        assert_eq!(
            observe(&mut w, home.port, &home.sends_ip(&packet)),
            expected
        );
    }
    let home = &all[0];
    assert!(matches!(
        observe(&mut w, ACCESS, &up(home, FAR, 1400)),
        Fate::Out(CORE, _)
    ));
    assert_eq!(
        observe(&mut w, ACCESS, &up(home, FAR, 1401)),
        Fate::Drop("too-big")
    );
    assert!(matches!(
        observe(&mut w, ACCESS, &up(home, INTERNET, 1492)),
        Fate::Out(CORE, _)
    ));
    w.controller.set_mtu(PortIndex(V300), 1401).unwrap();
    w.settle();
    assert!(matches!(
        observe(&mut w, ACCESS, &up(home, FAR, 1401)),
        Fate::Out(CORE, _)
    ));
    // The gateway's own, routed and from the interface itself.
    let own = v4(LOCAL_V4, FAR, 64, 0, b"own");
    w.inject(Inject::Route(InstanceIndex(0), &own));
    let arp = {
        let mut arp = frames::frame([0xff; 6], GATEWAY, &[0; 28]);
        arp[12..14].copy_from_slice(&[8, 6]);
        arp
    };
    w.inject(Inject::Port(PortIndex(V300), &arp));
    w.inject(Inject::Port(PortIndex(CORE), &arp));
    w.settle();
    let expected = [
        tagged(300, &frames::frame(PEER, GATEWAY, &own)),
        tagged(300, &arp),
        arp,
    ];
    assert_eq!(w.receive(), expected.map(|frame| (CORE, frame)));
    // A neighbour on its net is asked for by its name.
    assert_eq!(
        observe(&mut w, ACCESS, &up(home, [198, 18, 0, 9], 60)),
        Fate::Drop("no-adjacency")
    );
    let missing = Event::NeighbourMissing {
        port: PortIndex(V300),
        address: [198, 18, 0, 9].into(),
    };
    assert!(w.events().contains(&missing));
}

#[test]
fn a_tagged_frame_is_treated_as_the_untagged_one_without_its_tag() {
    let (all, mut w) = (homes(), world());
    w.online(&all);
    let home = &all[2];
    let v6_source = [0x26; 16];
    let mut link_local = v6_source;
    link_local[..8].copy_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
    let packets = [
        v4(INTERNET, home.v4, 64, 0, &[2; 30]),
        v4(INTERNET, home.v4, 64, 3, &[2; 30]),
        v4(INTERNET, home.v4, 1, 0, b"expires"),
        v4(INTERNET, LOCAL_V4, 64, 0, b"to the gateway"),
        v4(INTERNET, FAR, 64, 0, b"in transit, out where it came in"),
        v4(INTERNET, [100, 64, 0, 99], 64, 0, b"nobody's"),
        v6(v6_source, home.v6_address(), 64, 17, b"down"),
        v6(link_local, LOCAL_V6, 255, 58, &[136, 0, 0, 0]),
        v6(v6_source, LOCAL_V6, 64, 17, b"to the gateway"),
    ];
    for packet in packets {
        for to in [GATEWAY, [0x33, 0x33, 0, 0, 0, 1], [2, 9, 9, 9, 9, 9]] {
            let frame = frames::frame(to, ROUTER, &packet);
            let untagged = observe(&mut w, CORE, &frame);
            // Whatever its priority.
            for tci in [300, 0xe000 | 300] {
                let fate = observe(&mut w, CORE, &tagged(tci, &frame));
                let part = PortIndex(V300);
                let expected = match untagged.clone() {
                    Fate::Punt(kind, port, frame) => {
                        let kind = match kind {
                            PuntKind::Resolution(_) => PuntKind::Resolution(part),
                            PuntKind::Multicast(_) => PuntKind::Multicast(part),
                            PuntKind::ForUs(_) => PuntKind::ForUs(part),
                            other => other,
                        };
                        Fate::Punt(kind, port, frame)
                    }
                    other => other,
                };
                assert_eq!(fate, expected, "{packet:x?}");
            }
            // A priority alone is no VLAN.
            assert_eq!(observe(&mut w, CORE, &tagged(0xe000, &frame)), untagged);
            let unknown = observe(&mut w, CORE, &tagged(302, &frame));
            assert_eq!(unknown, Fate::Drop("unknown-vlan"));
        }
    }
    // The other one's instance knows nothing of these subscribers, and has a route of its own.
    let frame = |to| frames::frame(GATEWAY, ROUTER, &v4(INTERNET, to, 64, 0, b"red"));
    assert_eq!(
        observe(&mut w, CORE, &tagged(301, &frame(home.v4))),
        Fate::Drop("no-route")
    );
    let out = observe(&mut w, CORE, &tagged(301, &frame([10, 1, 2, 3])));
    assert!(matches!(out, Fate::Out(CORE2, _)), "{out:?}");
    for len in 12..40 {
        let frame = &tagged(300, &frame(home.v4))[..len];
        let fate = observe(&mut w, CORE, frame);
        let why = match len {
            ..18 => "truncated",
            _ => "bad-ipv4",
        };
        assert!(fate == Fate::Drop(why) || len < 14, "{len}: {fate:?}");
    }
}

#[test]
fn a_subinterface_goes_and_its_vlan_is_unknown() {
    let (all, mut w) = (homes(), world());
    w.online(&all);
    let home = &all[1];
    let down = tagged(
        300,
        &frames::frame(GATEWAY, PEER, &v4(FAR, home.v4, 64, 0, b"down")),
    );
    assert!(matches!(observe(&mut w, CORE, &down), Fate::Out(ACCESS, _)));
    w.controller.remove_subinterface(PortIndex(V300)).unwrap();
    w.settle();
    assert_eq!(observe(&mut w, CORE, &down), Fate::Drop("unknown-vlan"));
    assert_eq!(
        observe(&mut w, ACCESS, &up(home, FAR, 60)),
        Fate::Drop("no-adjacency")
    );
    w.inject(Inject::Port(PortIndex(V300), &[0; 60]));
    w.settle();
    assert_eq!(w.drops()["bad-inject"], 1);
    // Its port goes on, and so does the other one on it.
    assert!(matches!(
        observe(&mut w, ACCESS, &up(home, INTERNET, 60)),
        Fate::Out(CORE, _)
    ));
    let other = tagged(
        301,
        &frames::frame(GATEWAY, ROUTER, &v4(INTERNET, [10, 1, 2, 3], 64, 0, b"red")),
    );
    assert!(matches!(observe(&mut w, CORE, &other), Fate::Out(CORE2, _)));
    // The VLAN comes back in another place.
    let part = Subinterface {
        port: PortIndex(CORE),
        vlan: 300,
        instance: InstanceIndex(0),
        mtu: 1500,
    };
    w.controller.add_subinterface(PortIndex(40), part).unwrap();
    w.settle();
    assert!(matches!(observe(&mut w, CORE, &down), Fate::Out(ACCESS, _)));
}
