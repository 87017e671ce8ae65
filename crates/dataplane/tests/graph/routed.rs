//! Networks behind a subscriber's router: packets from there pass, and packets to there reach the subscriber, as long as they
//! are the session's.
use crate::cases::{homes, observe};
use crate::frames::{self, Home, v4, v6};
use crate::model::Fate;
use crate::world::*;
use dataplane::*;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const INTERNET6: [u8; 16] = [
    0x20, 1, 0x0d, 0xb8, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
];
const BEHIND: [u8; 4] = [10, 77, 0, 9];
const BEHIND6: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0x77, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];

fn with_routes(home: &Home) -> SessionEntry {
    let routed = ["10.77.0.0/24", "2001:db8:7701::/48", "2001:db8:7700::/40"];
    SessionEntry {
        routed: routed.iter().map(|net| net.parse().unwrap()).collect(),
        ..World::entry(home)
    }
}

/// Whether packets from both networks pass, and packets to them reach the home. Of another home's they never do.
fn reaches(w: &mut World, home: &Home, other: &Home) -> bool {
    let up = [
        v4(BEHIND, INTERNET, 64, 0, b"up"),
        v6(BEHIND6, INTERNET6, 64, 17, b"up, up, up"),
    ];
    let down = [
        v4(INTERNET, BEHIND, 64, 0, b"down"),
        v6(INTERNET6, BEHIND6, 64, 17, b"down, down"),
    ];
    for packet in &up {
        let fate = observe(w, other.port, &other.sends_ip(packet));
        assert!(
            matches!(fate, Fate::Drop(name) if name.starts_with("spoofed-source")),
            "{fate:?}"
        );
    }
    let passes = up.map(|packet| {
        matches!(
            observe(w, home.port, &home.sends_ip(&packet)),
            Fate::Out(CORE, _)
        )
    });
    let arrives = down.map(|packet| {
        let fate = observe(w, CORE, &frames::frame(frames::GATEWAY, ROUTER, &packet));
        fate == Fate::Out(home.port, home.gets(&frames::hop(&packet)))
    });
    let all = [passes, arrives].concat();
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    all[0]
}

#[test]
fn what_is_routed_to_a_session_comes_and_goes_with_it() {
    let (all, mut w) = (homes(), World::shared(2, 1));
    w.online(&all);
    let (home, other) = (&all[0], &all[1]);
    assert!(!reaches(&mut w, home, other));
    w.controller.set_session(with_routes(home)).unwrap();
    w.settle();
    assert!(reaches(&mut w, home, other));
    // A session of somebody else cannot have them, and is gone then.
    let taken = SessionEntry {
        ipv4: None,
        ..with_routes(other)
    };
    w.controller.set_session(taken).unwrap();
    w.settle();
    let refused = Event::SessionRefused {
        index: SessionIndex(other.index),
        reason: Refusal::AddressTaken,
    };
    assert_eq!(w.events(), [refused]);
    w.controller.set_session(World::entry(other)).unwrap();
    w.settle();
    assert!(reaches(&mut w, home, other));
    w.controller.set_session(World::entry(home)).unwrap();
    w.settle();
    assert!(!reaches(&mut w, home, other));
    w.controller.set_session(with_routes(home)).unwrap();
    w.controller
        .remove_session(SessionIndex(home.index))
        .unwrap();
    w.controller.set_session(World::entry(home)).unwrap();
    w.settle();
    w.events();
    assert!(!reaches(&mut w, home, other));
}
