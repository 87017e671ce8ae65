//! What a session used last is in its Stop, whatever kept the user plane from telling it at once.

use crate::world::radius::number;
use crate::world::{Choice, UP, World};
use control::counters::Counter;
use control::history::{Step, What, events};
use core::time::Duration;
use northbound::Request;
use wire::pfcp::Cause;
use wire::radius::Kind;

const MINUTE: Duration = Duration::from_secs(60);
const START: u32 = 1;
const STOP: u32 = 2;
/// Octets up that the user plane tells when it deletes a session.
const LAST: u32 = 70;
/// And when it is asked, as it is for a list of sessions.
const LISTED: u32 = 1000;

/// A home that is online with RADIUS, with 500 octets up that the user plane has reported.
fn with_usage() -> World {
    let mut w = World::new(1, Choice::radius());
    w.dial_all();
    w.user_plane_reports(500);
    w
}

fn clear(w: &mut World) {
    let id = w.sessions()[0].id.clone();
    let by = "operator".into();
    w.call(Request::ClearSession { id, by }).unwrap();
}

/// Octets up of each session that the history has as counted.
fn counted(w: &World) -> Vec<u64> {
    let all = w.history.iter().flat_map(|(_, block)| events(block));
    let counted = all.filter_map(|event| match event.what {
        What::Subscriber(_, Step::Counted { traffic, .. }) => Some(traffic.up_octets),
        _ => None,
    });
    counted.collect()
}

#[track_caller]
fn assert_stopped(w: &World, octets: u32) {
    assert_eq!(w.radius.kinds(), [START, STOP]);
    assert_eq!(
        number(&w.radius.records[1], Kind::ACCT_INPUT_OCTETS),
        octets
    );
    assert_eq!(counted(w), [u64::from(octets)]);
    assert_eq!((w.stored_sessions(), w.up.subscribers().len()), (0, 0));
    let ledger = w.plane.ledger();
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
}

/// It was to be told the whole session when it was cut off: nobody knows under which name it has it, or whether.
#[test]
fn a_session_that_ends_while_it_is_not_known_what_the_user_plane_has_is_asked_about_when_it_is_back()
 {
    let mut w = with_usage();
    w.cut = true;
    w.configure(&["set subscriber-profiles home mtu 1400"])
        .unwrap();
    w.run(Duration::from_secs(6)); // the change of the rules is given up, the whole session is told
    clear(&mut w);
    w.run(2 * MINUTE);
    assert_eq!(w.radius.kinds(), [START], "its last counters are not known");
    w.cut = false;
    w.run(MINUTE);
    assert_stopped(&w, 500 + LAST);
}

/// The control plane had told it anew, and died before it had stored the name.
#[test]
fn a_session_is_sought_under_another_name_before_it_is_given_up() {
    let mut w = with_usage();
    w.up.rename_one();
    clear(&mut w);
    w.run(MINUTE);
    assert_stopped(&w, 500 + LAST);
}

#[test]
fn a_session_that_its_user_plane_does_not_have_ends_with_what_was_reported() {
    let mut w = with_usage();
    w.up.forget_one();
    w.up.refuse = Some(Cause::RULE_CREATION_FAILURE);
    clear(&mut w);
    w.run(MINUTE);
    assert_stopped(&w, 500);
}

/// The control plane died when the session had ended, and believes that it lasts. Its tunnel is another's by now.
#[test]
fn a_session_that_cannot_be_told_anew_is_deleted_by_the_name_that_it_had() {
    let mut w = with_usage();
    w.up.depart_one();
    w.up.refuse = Some(Cause::RULE_CREATION_FAILURE);
    w.restart_control_plane();
    w.run(MINUTE);
    assert_stopped(&w, 500 + LAST);
}

/// As one does whose worker stands still.
#[test]
fn a_user_plane_that_refuses_to_delete_a_session_is_asked_again() {
    let mut w = with_usage();
    w.up.refuse_deletions = Some(Cause::ENTITY_IN_CONGESTION);
    clear(&mut w);
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START], "its last counters are not known");
    let ledger = w.plane.ledger();
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    let asked = w.count(Counter::UserPlaneRefused);
    assert!((2..=13).contains(&asked), "{asked} times in a minute");
    w.up.refuse_deletions = None;
    w.run(MINUTE);
    assert_stopped(&w, 500 + LISTED + LAST);
}

/// The deletion may be on its way, and tells everything.
#[test]
fn a_session_that_ends_is_not_asked_for_its_counters_by_the_way() {
    let mut w = with_usage();
    w.up.refuse_deletions = Some(Cause::ENTITY_IN_CONGESTION);
    clear(&mut w); // its list is read before the end
    assert_eq!(w.sessions().len(), 1, "it is on the list until it is gone");
    w.up.refuse_deletions = None;
    w.run(MINUTE);
    assert_stopped(&w, 500 + LISTED + LAST);
}

#[test]
fn a_report_of_the_session_before_is_not_added_up_again_and_those_of_the_next_are() {
    let mut w = with_usage();
    let report = w.up.last_report.clone().unwrap();
    w.up.forget_one();
    w.restart_control_plane();
    w.run(Duration::from_secs(1));
    w.user_plane_reports(30); // by another rule, and with the same number
    w.user_plane_repeats(report);
    clear(&mut w);
    w.run(MINUTE);
    assert_stopped(&w, 500 + 30 + LISTED + LAST);
}

/// A user plane has half a minute to let go of its sessions, each time that it is taken out.
#[test]
fn a_user_plane_that_was_taken_out_before_has_its_time_again() {
    let mut w = World::new(1, Choice::radius());
    for round in 1..=2 {
        w.run(MINUTE);
        w.dial_all();
        assert_eq!(w.online(), 1, "round {round}");
        w.cut = true;
        w.configure(&["delete user-planes up1"]).unwrap();
        w.run(Duration::from_secs(3));
        w.cut = false;
        w.run(MINUTE);
        assert_eq!(w.count(Counter::TakenOutUnheard), 0, "round {round}");
        let address = format!("set user-planes up1 address {UP}");
        w.configure(&[
            &address,
            "set user-planes up1 management /run/up1.sock",
            "set user-planes up1 ports access0 role access",
            "set user-planes up1 ports access0 device a",
            "set user-planes up1 ports access0 segments all access-profile pppoe",
        ])
        .unwrap();
    }
}
