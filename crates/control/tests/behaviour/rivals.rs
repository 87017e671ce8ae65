//! Several PADRs of one MAC address in the same VLANs: repeated ones, those of a router that begins anew, and those of two clients.

use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::Request;
use wire::eth::{Frame, PPPOE_DISCOVERY};
use wire::pppoe::{self, Discovery, PADR, PADS, Tag};

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

fn last_padr(w: &World) -> Vec<u8> {
    let is_padr = |frame: &&Vec<u8>| Frame::parse(frame).unwrap().payload[1] == PADR;
    w.asked_for.iter().rfind(is_padr).expect("a PADR").clone()
}

/// Session ids of the PADS so far, 0 for a refusal.
fn pads(w: &World) -> Vec<u16> {
    let frames = w.heard.iter().map(|frame| Frame::parse(frame).unwrap());
    let discovery = frames.filter(|frame| frame.header.ethertype == PPPOE_DISCOVERY);
    let packets = discovery.map(|frame| pppoe::Packet::parse(frame.payload).unwrap());
    let pads = packets.filter(|packet| packet.code == PADS);
    pads.map(|packet| packet.session_id).collect()
}

fn says(w: &World, text: &[u8]) -> bool {
    let mut parts = w.heard.iter().flat_map(|frame| frame.windows(text.len()));
    parts.any(|part| part == text)
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
    w.assert_balanced();
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
    w.assert_balanced();

    w.hang_up(0);
    w.run(SECOND);
    w.dial(2);
    w.run(10 * SECOND);
    assert_eq!(w.homes[2].state(), State::Online, "there is room again");
    assert_eq!(w.homes[1].state(), State::Online);

    w.restart_control_plane();
    w.run(60 * SECOND);
    assert_eq!(w.sessions().len(), 2);
    w.assert_balanced();
}

#[test]
fn a_router_that_was_switched_off_and_on_takes_its_own_place() {
    let mut w = behind_one_mac(2);
    w.configure(&["set access-profiles pppoe sessions-per-mac 2"])
        .unwrap();
    w.dial_all();
    for home in [0, 1, 0] {
        let other = w.homes[1 - home].session_id();
        w.switch_off_and_on(home);
        w.dial(home);
        w.run(2 * SECOND);
        assert_eq!(w.homes[home].state(), State::Online, "home {home}");
        assert_eq!(w.homes[1 - home].session_id(), other, "it is alive");
        assert_eq!(w.sessions().len(), 2);
    }
    assert_eq!(w.count(Counter::Redialled), 3);
    assert_eq!(w.count(Counter::MacLimit), 0);
    w.assert_balanced();
}

#[test]
fn a_router_that_is_switched_off_twice_comes_back_as_soon_as_once() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    for _ in 0..2 {
        w.switch_off_and_on(0);
        w.dial(0);
        w.run(SECOND / 10);
    }
    w.run(SECOND);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.sessions().len(), 1);
    w.assert_balanced();
}

/// The session did not get as far as to answer.
#[test]
fn a_router_that_is_switched_off_while_it_connects_comes_back_at_once() {
    let mut w = World::new(1, Choice::default());
    w.disk_stalls = true;
    w.dial(0);
    w.switch_off_and_on(0);
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
    // the router lost its session, not its memory: it has the same Host-Uniq
    w.homes[0] = Home::new(w.homes[0].config().clone(), 0);
    w.dial(0);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.sessions().len(), 1);
}

#[test]
fn a_claim_dies_with_its_line() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    w.switch_off_and_on(0);
    w.dial(0);
    let port = "user-planes up1 ports access0";
    w.configure(&[&format!("set {port} segments all s-vlans 900")])
        .unwrap();
    w.run(60 * SECOND);
    assert_eq!(w.sessions(), []);
    w.assert_balanced();
}

/// Number of PADOs so far.
fn offers(w: &World) -> usize {
    let frames = w.heard.iter().map(|frame| Frame::parse(frame).unwrap());
    let packets = frames.filter_map(|frame| Discovery::parse(frame.payload).ok());
    packets.filter(|packet| packet.code == pppoe::PADO).count()
}

#[test]
fn a_padi_is_not_answered_if_no_session_can_be_had() {
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
    w.switch_off_and_on(0);
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
    assert_eq!((w.online(), offers(&w)), (2, 2));
    assert!(w.count(Counter::AccessPortLimit) >= 1);
    // a router that is switched off and on takes its own place
    w.switch_off_and_on(0);
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
    let before = offers(&w);
    w.dial(2);
    w.run(SECOND);
    assert_ne!(w.homes[2].state(), State::Online);
    assert_eq!(offers(&w), before);
    assert!(w.count(Counter::VlanLimit) >= 1);
    w.hang_up(0);
    w.hang_up(2);
    w.dial(2);
    w.run(SECOND);
    assert_eq!(w.homes[2].state(), State::Online, "there is room again");
    w.assert_balanced();
}

/// Until its user plane has removed it, or its goodbye was answered, it is in the VLAN.
#[test]
fn a_session_that_ends_is_not_in_the_way_of_its_own_home() {
    let mut w = World::new(1, Choice::default());
    w.configure(&[
        "set access-profiles pppoe sessions-per-vlan 1",
        "set access-profiles pppoe sessions-per-port 1",
    ])
    .unwrap();
    w.dial_all();
    w.switch_off_and_on(0);
    let id = w.sessions()[0].id.clone();
    let by = "alice".into();
    w.call(Request::ClearSession { id, by }).unwrap();
    w.dial(0);
    w.run(SECOND);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.count(Counter::VlanLimit), 0);
}

/// The home's last PADR, as an answer to a new offer.
fn padr_of_a_new_offer(w: &mut World) -> Vec<u8> {
    let padr = last_padr(w);
    let is_padi = |frame: &&Vec<u8>| Frame::parse(frame).unwrap().payload[1] == pppoe::PADI;
    let padi = w.asked_for.iter().find(is_padi).expect("a PADI").clone();
    w.redirect(&padi);
    w.run(SECOND);
    let is_pado = |frame: &&Vec<u8>| {
        let frame = Frame::parse(frame).unwrap();
        frame.header.ethertype == PPPOE_DISCOVERY && frame.payload[1] == pppoe::PADO
    };
    let offer = w.heard.iter().rfind(is_pado).expect("a PADO").clone();
    let offer = Discovery::parse(Frame::parse(&offer).unwrap().payload).unwrap();
    let is_cookie = |tag: &&Tag<'_>| matches!(tag, Tag::AcCookie(_));
    let cookie = *offer.tags.iter().find(is_cookie).expect("a cookie");
    let frame = Frame::parse(&padr).unwrap();
    let mut padr = Discovery::parse(frame.payload).unwrap();
    padr.tags.retain(|tag| !is_cookie(&tag));
    padr.tags.push(cookie);
    let mut again = Vec::new();
    frame.header.emit(&mut again);
    padr.emit(&mut again);
    again
}

#[test]
fn a_session_stays_where_no_other_one_can_begin_in_its_place() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let padr = padr_of_a_new_offer(&mut w);
    w.configure(&["set user-planes up1 admin-state shutting-down"])
        .unwrap();
    let before = w.sessions()[0].id.clone();
    w.redirect(&padr);
    w.run(SECOND);
    assert!(says(&w, b"gateway takes no new sessions"));
    assert_eq!(w.sessions()[0].id, before);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.count(Counter::Redialled), 0);
}
