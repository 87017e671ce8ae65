//! Copies of packets of a session that is sampled.
use crate::cases::{homes, is_copy, observe, packets_of};
use crate::frames::{GATEWAY, Home, frame, v4};
use crate::model::Model;
use crate::world::*;
use dataplane::*;

const INTERNET: [u8; 4] = [192, 0, 2, 7];
const ALL: SampleRate = SampleRate {
    one_in: 1,
    per_second: 1_000_000,
};

fn sample(w: &mut World, home: &Home, rate: Option<SampleRate>) {
    w.controller.sample(SessionIndex(home.index), rate).unwrap();
    w.settle();
}

/// Sends a packet up and one down; the copies, and what a home got.
fn both_ways(w: &mut World, home: &Home) -> (Vec<Punted>, Vec<u8>, Vec<u8>) {
    let up = home.sends_ip(&v4(home.v4, INTERNET, 64, 0, &[7; 300]));
    let down = frame(GATEWAY, ROUTER, &v4(INTERNET, home.v4, 64, 0, b"an answer"));
    w.send(home.port, &up);
    w.send(CORE, &down);
    w.settle();
    let got = w.receive();
    let got = got.into_iter().find(|(port, _)| *port == home.port);
    let (mut punts, got) = (w.punts(), got.expect("the answer goes down").1);
    punts.sort_by_key(|(kind, ..)| matches!(kind, PuntKind::SampledDown(_)));
    (punts, up, got)
}

#[test]
fn packets_of_a_sampled_session_are_treated_as_those_of_any_other() {
    let (homes, mut w) = (homes(), World::new());
    let model = Model::new(&homes);
    w.online(&homes);
    for home in &homes {
        sample(&mut w, home, Some(ALL));
        for packet in packets_of(home) {
            let frame = home.sends_ip(&packet);
            let fate = model.fate(home.port, &frame);
            assert_eq!(observe(&mut w, home.port, &frame), fate, "{home:?}");
        }
        let mut forged = home.sends_ip(&packets_of(home)[0]);
        forged[11] ^= 1;
        let fate = model.fate(home.port, &forged);
        assert_eq!(observe(&mut w, home.port, &forged), fate, "{home:?} forged");
    }
}

#[test]
fn copies_of_both_ways_are_shown_until_it_ends() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    for home in &homes {
        let before = w.usage(home.index);
        assert_eq!(both_ways(&mut w, home).0, [], "nobody asked");
        sample(&mut w, home, Some(ALL));
        let (copies, up, down) = both_ways(&mut w, home);
        let index = SessionIndex(home.index);
        let first = |octets: &[u8]| octets[..octets.len().min(96)].to_vec();
        let expected = [
            (PuntKind::SampledUp(index), home.port, first(&up)),
            (PuntKind::SampledDown(index), home.port, down.clone()),
        ];
        assert!(down.len() <= 96);
        assert_eq!(copies, expected);
        // what is counted does not depend on it, and a change of the session ends nothing
        w.controller.set_session(World::entry(home)).unwrap();
        w.settle();
        assert_eq!(both_ways(&mut w, home).0.len(), 2);
        let used = w.usage(home.index);
        assert_eq!(used.ipv4.up_packets - before.ipv4.up_packets, 3);
        assert_eq!(used.ipv4.down_packets - before.ipv4.down_packets, 3);
        sample(&mut w, home, None);
        assert_eq!(both_ways(&mut w, home).0, []);
    }
}

#[test]
fn it_ends_with_the_session() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let home = &homes[0];
    sample(&mut w, home, Some(ALL));
    w.controller
        .remove_session(SessionIndex(home.index))
        .unwrap();
    w.settle();
    w.events();
    w.online(&homes[..1]);
    assert_eq!(both_ways(&mut w, home).0, []);
    // one that is not there is not sampled when it comes
    let nobody = SessionIndex(home.index + 100);
    w.controller.sample(nobody, Some(ALL)).unwrap();
    w.settle();
    assert!(!w.punts().iter().any(|(kind, ..)| is_copy(kind)));
}

#[test]
fn there_are_no_more_copies_than_wanted() {
    let (homes, mut w) = (homes(), World::new());
    w.online(&homes);
    let home = &homes[0];
    let rate = SampleRate {
        one_in: 4,
        per_second: 3,
    };
    sample(&mut w, home, Some(rate));
    let up = home.sends_ip(&v4(home.v4, INTERNET, 64, 0, b"again and again"));
    let mut shown = Vec::new();
    for n in 1..=40 {
        w.send(home.port, &up);
        w.settle();
        w.receive();
        if !w.punts().is_empty() {
            shown.push(n);
        }
    }
    assert_eq!(shown[..3], [4, 8, 12]);
    // a slow machine may take longer than a second for it
    assert!(shown.iter().all(|n| n % 4 == 0), "{shown:?}");
}

#[test]
fn no_more_sessions_are_sampled_than_there_is_room_for() {
    let limits = Limits {
        sessions: 256,
        ..World::limits()
    };
    let mut w = World::with(no_policing(), limits);
    let homes: Vec<Home> = (1..=MAX_SAMPLED as u8 + 1)
        .map(|n| Home::new(n, ACCESS, &[]))
        .collect();
    w.online(&homes);
    for home in &homes {
        sample(&mut w, home, Some(ALL));
    }
    let [.., last, beyond] = &homes[..] else {
        panic!("there is room for one")
    };
    assert_eq!(both_ways(&mut w, last).0.len(), 2);
    assert_eq!(both_ways(&mut w, beyond).0, []);
    // One that ends makes room.
    sample(&mut w, last, None);
    sample(&mut w, beyond, Some(ALL));
    assert_eq!(both_ways(&mut w, beyond).0.len(), 2);
}
