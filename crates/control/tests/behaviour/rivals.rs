//! Several PADRs of one MAC address in the same VLANs: repeated ones, those of a router that begins anew, and those of two clients.

use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use wire::eth::Frame;
use wire::pppoe::{self, Discovery, PADR, PADS};

const SECOND: Duration = Duration::from_secs(1);

/// Homes behind one MAC address, each with its own user.
fn behind_one_mac(homes: usize) -> World {
    let mut w = World::new(homes, Choice::default());
    let first = w.homes[0].config().clone();
    for n in 1..homes {
        let config = HomeConfig {
            user: format!("home{n}"),
            password: format!("secret{n}"),
            ..first.clone()
        };
        w.homes[n] = Home::new(config, n as u64);
    }
    w
}

/// The home's router was switched off and on: it has another Host-Uniq.
fn switch_off_and_on(w: &mut World, home: usize) {
    let config = w.homes[home].config().clone();
    w.homes[home] = Home::new(config, 1000 + w.now.as_millis() as u64);
}

fn last_padr(w: &World) -> Vec<u8> {
    let is_padr = |frame: &&Vec<u8>| Frame::parse(frame).unwrap().payload[1] == PADR;
    w.asked_for.iter().rfind(is_padr).expect("a PADR").clone()
}

/// Session ids of the PADS so far, 0 for a refusal.
fn pads(w: &World) -> Vec<u16> {
    let frames = w.heard.iter().map(|frame| Frame::parse(frame).unwrap());
    let discovery = frames.filter(|frame| frame.header.ethertype == wire::eth::PPPOE_DISCOVERY);
    let packets = discovery.map(|frame| pppoe::Packet::parse(frame.payload).unwrap());
    let pads = packets.filter(|packet| packet.code == PADS);
    pads.map(|packet| packet.session_id).collect()
}

fn says(w: &World, text: &[u8]) -> bool {
    let mut parts = w.heard.iter().flat_map(|frame| frame.windows(text.len()));
    parts.any(|part| part == text)
}

fn assert_balanced(w: &World) {
    let ledger = w.plane.ledger();
    assert!(ledger.is_balanced(), "{ledger:?}");
}

#[test]
fn a_repeated_padr_gets_the_same_pads_and_ends_nothing() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let (before, padr) = (w.sessions(), last_padr(&w));
    let id = w.homes[0].session_id().expect("a session");
    for _ in 0..3 {
        w.redirect(&padr);
        w.run(SECOND);
    }
    assert_eq!(pads(&w), [id; 4]);
    assert_eq!(w.homes[0].state(), State::Online);
    let after = w.sessions();
    assert_eq!((&after[0].id, after.len()), (&before[0].id, 1));
    assert_eq!(w.count(Counter::Redialled), 0);
    assert_balanced(&w);
}

#[test]
fn clients_behind_one_mac_address_live_side_by_side_up_to_the_limit() {
    let mut w = behind_one_mac(3);
    w.configure(&["set access-profiles pppoe sessions-per-mac 2"])
        .unwrap();
    w.dial_all();
    w.run(60 * SECOND);
    let states: Vec<State> = w.homes.iter().map(Home::state).collect();
    assert_eq!(states[..2], [State::Online; 2]);
    assert_ne!(states[2], State::Online);
    assert!(says(&w, b"too many sessions of this MAC address"));
    assert!(w.count(Counter::MacLimit) >= 1);
    assert_eq!(w.count(Counter::Redialled), 0);
    assert_eq!(w.sessions().len(), 2);
    assert_balanced(&w);

    w.hang_up(0);
    w.run(SECOND);
    w.dial(2);
    w.run(10 * SECOND);
    assert_eq!(w.homes[2].state(), State::Online, "there is room again");
    assert_eq!(w.homes[1].state(), State::Online);

    w.restart_control_plane();
    w.run(60 * SECOND);
    assert_eq!(w.sessions().len(), 2);
    assert_balanced(&w);
}

#[test]
fn a_router_that_was_switched_off_and_on_takes_its_own_place() {
    let mut w = behind_one_mac(2);
    w.configure(&["set access-profiles pppoe sessions-per-mac 2"])
        .unwrap();
    w.dial_all();
    for home in [0, 1, 0] {
        let other = w.homes[1 - home].session_id();
        switch_off_and_on(&mut w, home);
        w.dial(home);
        w.run(2 * SECOND);
        assert_eq!(w.homes[home].state(), State::Online, "home {home}");
        assert_eq!(w.homes[1 - home].session_id(), other, "it is alive");
        assert_eq!(w.sessions().len(), 2);
    }
    assert_eq!(w.count(Counter::Redialled), 3);
    assert_eq!(w.count(Counter::MacLimit), 0);
    assert_balanced(&w);
}

#[test]
fn a_router_that_is_switched_off_twice_comes_back_as_soon_as_once() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    for _ in 0..2 {
        switch_off_and_on(&mut w, 0);
        w.dial(0);
        w.run(SECOND / 10);
    }
    w.run(SECOND);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.sessions().len(), 1);
    assert_balanced(&w);
}

/// The session did not get as far as to answer.
#[test]
fn a_router_that_is_switched_off_while_it_connects_comes_back_at_once() {
    let mut w = World::new(1, Choice::default());
    w.disk_stalls = true;
    w.dial(0);
    switch_off_and_on(&mut w, 0);
    w.dial(0);
    assert_eq!(
        w.homes[0].state(),
        State::Network,
        "without a second's rest"
    );
    let sessions = pads(&w);
    assert_ne!(
        sessions[0], sessions[1],
        "the old session is of no use to it"
    );
    assert_eq!(w.count(Counter::Redialled), 1);
}

#[test]
fn a_client_that_begins_anew_replaces_its_session_at_once() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    // the router lost its session, not its memory
    w.homes[0] = Home::new(w.homes[0].config().clone(), 0);
    w.dial(0);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.sessions().len(), 1);
}

#[test]
fn a_claim_dies_with_its_line() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    switch_off_and_on(&mut w, 0);
    w.dial(0);
    let port = "user-planes up1 ports access0";
    w.configure(&[&format!("set {port} segments all s-vlans 900")])
        .unwrap();
    w.run(60 * SECOND);
    assert_eq!(w.sessions(), []);
    assert_balanced(&w);
}

#[test]
fn a_padi_is_not_answered_if_no_session_can_be_had() {
    let offers = |w: &World| {
        let frames = w.heard.iter().map(|frame| Frame::parse(frame).unwrap());
        let packets = frames.filter_map(|frame| Discovery::parse(frame.payload).ok());
        packets.filter(|packet| packet.code == pppoe::PADO).count()
    };
    let choice = Choice {
        sessions: 1,
        ..Choice::default()
    };
    let mut w = World::new(2, choice);
    w.dial(0);
    w.run(SECOND);
    let before = offers(&w);
    w.dial(1);
    w.run(SECOND);
    assert_eq!(offers(&w), before, "the table is full");
    assert_eq!(w.count(Counter::SessionTableFull), 1);

    // but the one who has a session may have another in its place
    w.hang_up(1);
    switch_off_and_on(&mut w, 0);
    w.dial(0);
    assert_eq!(offers(&w), before + 1);
    w.run(2 * SECOND);
    // the user plane has removed the old session since the PADR was refused
    w.dial(0);
    w.run(SECOND);
    assert_eq!(w.homes[0].state(), State::Online);
}

#[test]
fn a_vlan_and_a_port_have_as_many_sessions_as_they_may() {
    let mut w = World::new(3, Choice::default());
    w.configure(&["set access-profiles pppoe sessions-per-port 2"])
        .unwrap();
    w.dial_all();
    assert_eq!(w.online(), 2);
    assert!(says(&w, b"too many sessions on this port"));
    assert!(w.count(Counter::AccessPortLimit) >= 1);
    // a router that is switched off and on takes its own place
    switch_off_and_on(&mut w, 0);
    w.dial(0);
    w.run(2 * SECOND);
    assert_eq!(w.online(), 2);
    assert_eq!(w.homes[0].state(), State::Online);

    w.configure(&[
        "delete access-profiles pppoe sessions-per-port",
        "set access-profiles pppoe sessions-per-vlan 1",
    ])
    .unwrap();
    let config = HomeConfig {
        tags: w.homes[0].config().tags,
        ..w.homes[2].config().clone()
    };
    w.homes[2] = Home::new(config, 2);
    w.dial(2);
    w.run(SECOND);
    assert_ne!(w.homes[2].state(), State::Online);
    assert!(says(&w, b"too many sessions in this VLAN"));
    assert!(w.count(Counter::VlanLimit) >= 1);
    w.hang_up(0);
    w.dial(2);
    w.run(SECOND);
    assert_eq!(w.homes[2].state(), State::Online, "there is room again");
    assert_balanced(&w);
}
