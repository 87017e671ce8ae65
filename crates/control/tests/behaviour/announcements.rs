//! Accounting-On and Accounting-Off: servers get them only while no session of their group lives on.

use crate::world::radius::{number, session_id};
use crate::world::{Choice, World};
use control::Input;
use core::time::Duration;
use wire::radius::{Kind, Packet};

const SECOND: Duration = Duration::from_secs(1);
const ON: u32 = 7;
const OFF: u32 = 8;

/// Acct-Status-Type of what the server got about the gateway.
fn announced(w: &World) -> Vec<u32> {
    let announcements = w.radius.announcements.iter();
    announcements
        .map(|packet| number(packet, Kind::ACCT_STATUS_TYPE))
        .collect()
}

fn leave(w: &mut World) {
    let now = w.moment();
    w.plane.handle(now, Input::Leave);
    w.settle();
}

/// The session of the first home ends, and its Stop is recorded.
fn hang_up(w: &mut World) {
    w.hang_up(0);
    w.run(30 * SECOND);
    assert_eq!((w.stored_sessions(), w.stored_records()), (0, 0));
}

#[test]
fn servers_are_told_that_accounting_begins_if_no_session_lives_on() {
    let mut w = World::new(1, Choice::radius());
    assert_eq!(announced(&w), [ON]);
    let on = &w.radius.announcements[0];
    assert!(on.get(Kind::NAS_IDENTIFIER).is_some() && on.get(Kind::USER_NAME).is_none());
    w.restart_control_plane();
    w.run(SECOND);
    assert_eq!(announced(&w), [ON; 2]);
    let ids = w.radius.announcements.iter().map(session_id);
    let mut ids: Vec<String> = ids.collect();
    w.dial_all();
    ids.push(session_id(&w.radius.records[0]));
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has an id of its own: {ids:?}");

    // a session lives on, and then one that waits for its last counters
    w.restart_control_plane();
    w.run(SECOND);
    w.cut = true;
    w.hang_up(0);
    w.restart_control_plane();
    w.run(SECOND);
    w.cut = false;
    w.run(60 * SECOND);
    assert_eq!(announced(&w), [ON; 2]);
    hang_up(&mut w);
    w.restart_control_plane();
    w.run(SECOND);
    assert_eq!(announced(&w), [ON; 3]);
}

#[test]
fn a_record_that_is_owed_lets_a_restart_say_nothing() {
    let mut w = World::new(1, Choice::radius());
    w.dial_all();
    w.radius.full = true;
    w.hang_up(0);
    w.run(10 * SECOND);
    assert_eq!((w.stored_sessions(), w.stored_records()), (0, 1));
    w.restart_control_plane();
    w.run(60 * SECOND);
    w.radius.full = false;
    w.run(120 * SECOND);
    assert_eq!(w.radius.kinds(), [1, 2]);
    assert_eq!(announced(&w), [ON], "from before");
}

#[test]
fn starts_wait_until_accounting_has_begun_over_restarts() {
    let mut w = World::new(2, Choice::radius());
    w.radius.full = true;
    w.restart_control_plane();
    w.run(SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.stored_records(), 2, "Accounting-On and a Start");
    w.restart_control_plane();
    w.run(SECOND);
    w.dial(1);
    w.run(10 * SECOND);
    w.hang_up(0);
    w.run(10 * SECOND);
    assert_eq!(w.stored_records(), 4);
    assert_eq!(w.radius.kinds(), [0; 0]);
    w.radius.full = false;
    w.run(120 * SECOND);
    assert_eq!(
        announced(&w),
        [ON; 2],
        "one for each time without a session"
    );
    assert_eq!(w.stored_records(), 0);
    let mut kinds = w.radius.kinds();
    kinds.sort();
    assert_eq!(kinds, [1, 1, 2]);
    let event = |packet: &Packet| number(packet, Kind::EVENT_TIMESTAMP);
    let on = event(&w.radius.announcements[1]);
    assert!(w.radius.records.iter().all(|record| event(record) >= on));
}

#[test]
fn an_unanswered_accounting_on_is_the_same_datagram_again() {
    let mut w = World::new(1, Choice::radius());
    w.radius.unheard = true;
    w.restart_control_plane();
    w.run(SECOND);
    w.restart_control_plane();
    w.radius.unheard = false;
    w.run(60 * SECOND);
    assert_eq!(announced(&w), [ON; 2], "a server knows that it is the same");
    assert_eq!(w.stored_records(), 0);
}

#[test]
fn a_planned_end_is_told_to_groups_without_sessions() {
    let mut w = World::new(1, Choice::radius());
    w.dial_all();
    leave(&mut w);
    assert_eq!((announced(&w), w.plane.is_leaving()), (vec![ON], false));
    hang_up(&mut w);
    leave(&mut w);
    assert_eq!(
        (announced(&w), w.plane.is_leaving()),
        (vec![ON, OFF], false)
    );
    w.radius.full = true;
    leave(&mut w);
    assert!(w.plane.is_leaving(), "until a server answers");
    w.run(60 * SECOND);
    assert!(!w.plane.is_leaving(), "it is not stored, and given up");
    assert_eq!(w.stored_records(), 0);
    w.assert_balanced();
}

#[test]
fn a_group_begins_when_it_is_configured_and_is_forgotten_with_it() {
    let mut w = World::new(1, Choice::radius());
    w.configure(&[
        "set aaa servers two address 192.0.2.10",
        "set aaa servers two secret-key testing123",
        "set aaa server-groups second servers two",
    ])
    .unwrap();
    assert_eq!(announced(&w), [ON; 2]);
    w.configure(&["set aaa server-groups second accounting-on false"])
        .unwrap();
    leave(&mut w);
    assert_eq!(announced(&w), [ON, ON, OFF], "not to the second");
    w.radius.full = true;
    w.configure(&["set aaa server-groups third servers two"])
        .unwrap();
    assert_eq!(w.stored_records(), 1);
    w.configure(&["delete aaa server-groups third"]).unwrap();
    assert_eq!(w.stored_records(), 0);
    assert!(!w.numbers().iter().any(|name| name.contains("third")));
    w.assert_balanced();
}

/// A second group whose server takes no records.
const SECOND_GROUP: [&str; 4] = [
    "set aaa servers two address 192.0.2.10",
    "set aaa servers two secret-key testing123",
    "set aaa servers two retransmit-attempts 0",
    "set aaa server-groups second servers two",
];

#[test]
fn no_server_is_told_so_while_a_session_of_another_group_lives() {
    let mut w = World::new(1, Choice::radius());
    w.dial_all();
    w.configure(&SECOND_GROUP).unwrap();
    w.restart_control_plane();
    w.run(60 * SECOND);
    leave(&mut w);
    w.run(SECOND);
    assert_eq!(announced(&w), [ON], "from before the session");
}

#[test]
fn a_session_ends_what_other_groups_have_not_acknowledged() {
    let mut w = World::new(1, Choice::radius());
    w.radius.dead_at = Some("192.0.2.10".parse().unwrap());
    w.configure(&SECOND_GROUP).unwrap();
    w.run(10 * SECOND);
    assert_eq!(w.stored_records(), 1);
    w.dial_all();
    assert_eq!((w.radius.kinds(), w.stored_records()), (vec![1], 0));
    w.radius.dead_at = None;
    w.run(300 * SECOND);
    assert_eq!(announced(&w), [ON], "of the first group");
    w.assert_balanced();
}
