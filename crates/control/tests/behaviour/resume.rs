//! Stored sessions that cannot be resumed after a restart: each ends with its Accounting-Stop, told once.

use crate::world::radius::{number, session_id};
use crate::world::{Choice, World, checked};
use control::counters::Counter;
use control::plane::Restored;
use core::time::Duration;
use wire::radius::Kind;

const MINUTE: Duration = Duration::from_secs(60);
const START: u32 = 1;
const STOP: u32 = 2;

/// Homes that are online with RADIUS, each with 500 octets up and 1,000 down that the user plane has reported.
fn with_usage(homes: usize) -> World {
    let mut w = World::new(homes, Choice::radius());
    w.dial_all();
    w.user_plane_reports(500);
    w
}

/// Starts the control plane again with a configuration whose gateway has the first home's address. While the control plane
/// runs such a change is refused.
fn restart_with_the_first_address_taken(w: &mut World) {
    let address = w.up.subscribers()[0]
        .forwarding
        .bindings
        .ipv4()
        .unwrap()
        .to_string();
    let document = Choice::radius().document(w.homes.len());
    let document = document.replace("100.64.0.1", &address);
    w.configuration = checked(&document).configuration;
    w.restart_control_plane();
}

/// Acct-Session-Id of a record.
#[test]
fn a_session_whose_address_is_taken_ends_with_its_last_counters() {
    let mut w = with_usage(2);
    restart_with_the_first_address_taken(&mut w);
    assert_eq!(w.count(Counter::NotResumed), 1);
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, START, STOP]);
    assert_eq!(
        session_id(&w.radius.records[2]),
        session_id(&w.radius.records[0])
    );
    let stop = &w.radius.records[2];
    assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 9, "NAS error");
    assert_eq!(number(stop, Kind::ACCT_INPUT_OCTETS), 500 + 70);
    assert_eq!(number(stop, Kind::ACCT_OUTPUT_OCTETS), 1000 + 140);
    assert_eq!((w.sessions().len(), w.online()), (1, 1), "the other stays");
    assert_eq!((w.up.subscribers().len(), w.stored_sessions()), (1, 1));
    w.assert_balanced();
}

#[test]
fn its_record_waits_for_its_user_plane_and_for_a_server_and_is_told_once() {
    let mut w = with_usage(1);
    w.cut = true;
    restart_with_the_first_address_taken(&mut w);
    w.assert_balanced(); // the address is not its own any more
    w.run(2 * MINUTE);
    w.restart_control_plane();
    w.run(2 * MINUTE);
    assert_eq!(w.radius.kinds(), [START], "its last counters are not known");
    w.radius.unheard = true;
    w.cut = false;
    w.run(MINUTE);
    assert_eq!((w.stored_sessions(), w.stored_records()), (0, 1));
    w.restart_control_plane();
    w.run(MINUTE);
    w.radius.unheard = false;
    w.run(5 * MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    let stop = &w.radius.records[1];
    assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 9, "NAS error");
    assert_eq!(number(stop, Kind::ACCT_INPUT_OCTETS), 500 + 70);
    assert_eq!((w.sessions(), w.stored_records()), (vec![], 0));
    w.assert_balanced();
}

#[test]
fn its_record_comes_behind_the_start_that_no_server_has_yet() {
    let mut w = World::new(1, Choice::radius());
    w.radius.full = true;
    w.dial_all();
    assert_eq!((w.online(), w.stored_records()), (1, 1));
    restart_with_the_first_address_taken(&mut w);
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [0; 0]);
    w.radius.full = false;
    w.run(5 * MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    assert_eq!(w.stored_records(), 0);
}

/// The user plane has lost the session: what it reported before is all that is known.
#[test]
fn without_its_user_plane_s_last_counters_it_ends_with_the_stored_ones() {
    let mut w = with_usage(1);
    w.cut = true;
    restart_with_the_first_address_taken(&mut w);
    w.run(MINUTE);
    w.restart_user_plane();
    w.cut = false;
    w.run(2 * MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    let stop = &w.radius.records[1];
    assert_eq!(number(stop, Kind::ACCT_INPUT_OCTETS), 500);
    assert_eq!(number(stop, Kind::ACCT_OUTPUT_OCTETS), 1000);
    assert_eq!(w.up.subscribers(), []);
}

#[test]
fn a_session_that_was_ending_keeps_its_own_cause() {
    let mut w = with_usage(1);
    let id = w.sessions()[0].id.clone();
    w.cut = true;
    let by = "root".into();
    w.call(northbound::Request::ClearSession { id, by })
        .unwrap();
    w.run(MINUTE);
    restart_with_the_first_address_taken(&mut w);
    assert_eq!(w.count(Counter::NotResumed), 0, "it was ending anyway");
    w.homes.clear();
    w.cut = false;
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    let stop = &w.radius.records[1];
    assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 6, "admin reset");
}

/// Generation 0 is that of default sessions. A store with a session of it is not ours.
#[test]
fn a_session_with_an_identifier_that_is_never_given_is_not_guessed_at() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let key = w.store.keys().find(|key| key.starts_with(b"session/"));
    let value = w.store[key.unwrap()].clone();
    let key = [&b"session/"[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
    let read = Restored::read(vec![(key, value)], 1, "boot");
    let why = read.err().expect("a refusal");
    assert!(why.contains("identifier"), "{why}");
}
