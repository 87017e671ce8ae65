//! Accounting records at a RADIUS server: each session has exactly one Start and one Stop, whichever process dies and when.

use crate::world::radius::{number, vendors_numbers};
use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use northbound::Request;
use std::collections::BTreeSet;
use wire::pfcp::{Cause, SluiceFeatures};
use wire::radius::{Kind, Packet};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn assert_nothing_left(w: &mut World) {
    assert_eq!(w.sessions(), [], "sessions");
    assert_eq!(w.up.subscribers(), [], "rules");
    assert_eq!((w.stored_sessions(), w.stored_records()), (0, 0), "store");
    let ledger = w.plane.ledger();
    let held = ledger.accounts.iter().filter(|a| a.kind != "access port");
    assert!(held.clone().all(|a| a.booked + a.owned == 0), "{ledger:#?}");
}

fn with_radius(homes: usize) -> World {
    World::new(homes, Choice::radius())
}

/// A number of every record but the first.
fn after_start(w: &World, kind: Kind) -> Vec<u32> {
    let records = w.radius.records[1..].iter();
    records.map(|record| number(record, kind)).collect()
}

/// How many different Acct-Session-Ids the records have.
fn session_ids(w: &World) -> usize {
    let records = w.radius.records.iter();
    let ids = records.map(|record| format!("{:?}", record.get(Kind::ACCT_SESSION_ID)));
    ids.collect::<BTreeSet<_>>().len()
}

const START: u32 = 1;
const STOP: u32 = 2;
const INTERIM: u32 = 3;

#[test]
fn a_session_is_accounted_from_start_to_stop() {
    let mut w = with_radius(1);
    w.radius.accept = vec![
        (Kind::CLASS, b"gold".into()),
        (Kind::ACCT_INTERIM_INTERVAL, 60.into()),
    ];
    w.dial_all();
    assert_eq!(w.radius.kinds(), [START]);
    w.run(Duration::from_secs(150));
    assert_eq!(w.radius.kinds(), [START, INTERIM, INTERIM]);
    w.hang_up(0);
    w.run(Duration::from_secs(1));
    assert_eq!(w.radius.kinds(), [START, INTERIM, INTERIM, STOP]);
    assert_eq!(session_ids(&w), 1);
    let octets = after_start(&w, Kind::ACCT_INPUT_OCTETS);
    assert_eq!(
        octets,
        [1000, 2000, 2070],
        "asked for, asked for, and the last ones"
    );
    for record in &w.radius.records {
        assert_eq!(
            record.get(Kind::CLASS).and_then(|v| v.octets()),
            Some(&b"gold"[..])
        );
        assert!(record.get(Kind::EVENT_TIMESTAMP).is_some());
        assert!(record.get(Kind::FRAMED_IP_ADDRESS).is_some());
        assert!(record.get(Kind::FRAMED_IPV6_PREFIX).is_some());
    }
    let stop = &w.radius.records[3];
    assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 1, "user request");
    assert!((150..170).contains(&number(stop, Kind::ACCT_SESSION_TIME)));
}

/// ERX-IPv6-Acct-Input-Octets in a record.
fn ipv6_input(record: &Packet) -> Option<u32> {
    vendors_numbers(record, 4874).get(&151).copied()
}

#[test]
fn families_add_up_over_a_restart() {
    let mut w = with_radius(1);
    let group = "set aaa server-groups radius";
    w.configure(&[&format!("{group} family-counters erx")])
        .unwrap();
    w.dial_all();
    w.user_plane_reports(500);
    w.restart_control_plane();
    w.run(SECOND);
    w.user_plane_reports(300);
    w.hang_up(0);
    w.run(SECOND);
    let octets = after_start(&w, Kind::ACCT_INPUT_OCTETS);
    let of_ipv6: Vec<_> = w.radius.records[1..].iter().map(ipv6_input).collect();
    assert_eq!((octets, of_ipv6), (vec![870], vec![Some(87)]));
}

/// Its octets are in the sums alone. What other user planes tell of families would be less than the session's.
#[test]
fn families_that_a_user_plane_does_not_tell_are_in_no_record() {
    let mut w = with_radius(1);
    let group = "set aaa server-groups radius";
    w.configure(&[&format!("{group} family-counters erx")])
        .unwrap();
    w.dial_all();
    w.user_plane_reports(500);
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS);
    w.run(MINUTE);
    w.user_plane_reports(300);
    w.restart_control_plane();
    w.run(SECOND);
    w.hang_up(0);
    w.run(SECOND);
    let stop = w.radius.records.last().unwrap();
    assert_eq!(number(stop, Kind::ACCT_STATUS_TYPE), STOP);
    assert_eq!(number(stop, Kind::ACCT_INPUT_OCTETS), 870);
    assert_eq!(ipv6_input(stop), None);
}

#[test]
fn a_restart_between_start_and_stop_shows_in_no_record() {
    let mut w = with_radius(3);
    w.dial_all();
    w.run(MINUTE);
    w.restart_control_plane();
    w.run(MINUTE);
    (0..3).for_each(|n| w.hang_up(n));
    w.run(Duration::from_secs(1));
    assert_eq!(w.radius.kinds(), [START, START, START, STOP, STOP, STOP]);
    let stop = &w.radius.records[3];
    assert!((120..140).contains(&number(stop, Kind::ACCT_SESSION_TIME)));
    assert_nothing_left(&mut w);
}

#[test]
fn the_time_that_was_granted_ends_the_session() {
    let mut w = with_radius(1);
    w.radius.accept = vec![(Kind::SESSION_TIMEOUT, 90.into())];
    w.dial_all();
    w.run(MINUTE);
    assert_eq!(w.sessions().len(), 1);
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    assert_eq!(number(&w.radius.records[1], Kind::ACCT_TERMINATE_CAUSE), 5);
    assert_eq!(number(&w.radius.records[1], Kind::ACCT_SESSION_TIME), 90);
}

/// Every accounting request of this kind was the same datagram.
fn assert_one_datagram(w: &World, kind: u32) {
    let of_kind = |(_, bytes): &&(u16, Vec<u8>)| {
        let packet = wire::radius::Packet::parse(bytes).unwrap();
        number(&packet, Kind::ACCT_STATUS_TYPE) == kind
    };
    let sent: Vec<_> = w.radius.datagrams.iter().filter(of_kind).collect();
    assert!(sent.len() > 1, "it was not sent again");
    assert!(sent.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_start_whose_answer_died_with_us_is_the_same_afterwards() {
    let mut w = with_radius(1);
    w.radius.unheard = true;
    w.dial_all();
    w.restart_control_plane();
    w.radius.unheard = false;
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START]);
    assert_one_datagram(&w, START);
    assert_eq!(w.stored_records(), 0);
    w.hang_up(0);
    w.run(SECOND);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    assert_nothing_left(&mut w);
}

#[test]
fn a_stop_whose_answer_died_with_us_is_the_same_afterwards() {
    let mut w = with_radius(1);
    w.dial_all();
    w.radius.unheard = true;
    w.hang_up(0);
    w.run(SECOND);
    assert_eq!(w.stored_records(), 1);
    w.restart_control_plane();
    w.run(5 * MINUTE);
    w.radius.unheard = false;
    w.run(2 * MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    assert_one_datagram(&w, STOP);
    assert_nothing_left(&mut w);
}

#[test]
fn what_the_disk_does_not_have_is_not_sent() {
    let mut w = with_radius(2);
    w.dial_all();
    w.hang_up(1);
    w.run(SECOND);
    w.stall_disk();
    w.hang_up(0);
    w.dial(1);
    w.run(10 * SECOND);
    assert_eq!(w.radius.kinds(), [START, START, STOP]);
    w.restart_control_plane();
    // One session never was, and the other still is: its subscriber is found gone.
    w.homes.clear();
    w.run(5 * MINUTE);
    assert_eq!(w.radius.kinds(), [START, START, STOP, STOP]);
    let last = w.radius.records.last().unwrap();
    assert_eq!(number(last, Kind::ACCT_TERMINATE_CAUSE), 2, "lost carrier");
    assert_nothing_left(&mut w);
}

#[test]
fn an_interim_record_says_nothing_that_a_crash_could_take_back() {
    let mut w = with_radius(1);
    w.radius.accept = vec![(Kind::ACCT_INTERIM_INTERVAL, 60.into())];
    w.dial_all();
    w.stall_disk();
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START], "the disk has no counters yet");
    w.disk_recovers();
    assert_eq!(w.radius.kinds(), [START, INTERIM]);
    w.restart_control_plane();
    w.run(MINUTE);
    let octets = after_start(&w, Kind::ACCT_INPUT_OCTETS);
    assert_eq!(octets, [1000, 2000]);
}

#[test]
fn a_report_is_answered_when_the_store_has_it() {
    let mut w = with_radius(1);
    w.dial_all();
    w.stall_disk();
    w.user_plane_reports(500);
    assert_eq!(w.up.told, []);
    w.disk_recovers();
    assert_eq!(w.up.told, [Cause::REQUEST_ACCEPTED]);
    // what ends is not stored again: the report stays the user plane's until the end
    w.up.keeps_all = true;
    w.hang_up(0);
    w.user_plane_reports(300);
    assert_eq!(w.up.told.len(), 1);
    w.up.keeps_all = false;
    w.run(MINUTE);
    let stop = w.radius.records.last().unwrap();
    let octets = number(stop, Kind::ACCT_INPUT_OCTETS);
    assert_eq!(octets, 870, "500, 300 although it came again, and the last");
    assert_nothing_left(&mut w);
}

#[test]
fn interim_records_and_granted_time_go_on_over_a_restart() {
    let mut w = with_radius(1);
    w.radius.accept = vec![
        (Kind::ACCT_INTERIM_INTERVAL, 60.into()),
        (Kind::SESSION_TIMEOUT, 150.into()),
    ];
    w.dial_all();
    w.run(MINUTE + 30 * SECOND);
    w.restart_control_plane();
    w.run(2 * MINUTE);
    let times = after_start(&w, Kind::ACCT_SESSION_TIME);
    assert_eq!(w.radius.kinds(), [START, INTERIM, INTERIM, STOP]);
    assert_eq!(times, [60, 120, 150]);
}

#[test]
fn an_end_is_an_end_over_a_restart() {
    let mut w = with_radius(1);
    w.dial_all();
    w.run(MINUTE);
    let id = w.sessions()[0].id.clone();
    w.cut = true; // the user plane cannot give its last counters
    w.call(Request::ClearSession {
        id,
        by: "root".into(),
    })
    .unwrap();
    w.run(MINUTE);
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START]);
    w.homes.clear();
    w.cut = false;
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, STOP]);
    let stop = &w.radius.records[1];
    assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 6, "admin reset");
    let lasted = number(stop, Kind::ACCT_SESSION_TIME);
    assert!((60..90).contains(&lasted), "{lasted}: until it was ended");
    assert_nothing_left(&mut w);
}

#[test]
fn what_no_server_takes_waits_for_one_over_a_restart() {
    let mut w = with_radius(20);
    w.dial_all();
    w.radius.dead = true;
    (0..20).for_each(|n| w.hang_up(n));
    let ended = w.now;
    w.run(10 * MINUTE);
    assert_eq!(w.sessions(), [], "what they held is free");
    assert_eq!((w.stored_sessions(), w.stored_records()), (0, 20));
    w.restart_control_plane();
    w.run(5 * MINUTE);
    w.radius.dead = false;
    w.run(2 * MINUTE);
    assert_eq!(w.radius.kinds(), [[START; 20], [STOP; 20]].concat());
    let start = number(&w.radius.records[0], Kind::EVENT_TIMESTAMP);
    for stop in &w.radius.records[20..] {
        let lasted = number(stop, Kind::ACCT_SESSION_TIME);
        let event = number(stop, Kind::EVENT_TIMESTAMP) - start;
        assert!(
            event.abs_diff(lasted) <= 1,
            "when it ended, not when it was sent"
        );
        assert!(u64::from(lasted) <= ended.as_secs());
    }
    assert_eq!(w.count(Counter::AccountingLost), 0);
    assert_nothing_left(&mut w);
}

#[test]
fn a_stop_waits_for_its_start_and_no_more_are_kept_than_configured() {
    let mut w = World::new(
        3,
        Choice {
            accounting_records: 4,
            ..Choice::radius()
        },
    );
    w.radius.full = true;
    w.dial_all();
    assert_eq!(w.online(), 3);
    (0..3).for_each(|n| w.hang_up(n));
    w.run(MINUTE);
    assert_eq!(w.count(Counter::AccountingLost), 2);
    w.restart_control_plane();
    w.radius.full = false;
    w.run(2 * MINUTE);
    let kinds = w.radius.kinds();
    let counts = [START, STOP].map(|kind| kinds.iter().filter(|k| **k == kind).count());
    assert_eq!(counts, [3, 1]);
    let session = |record: &Packet| record.get(Kind::ACCT_SESSION_ID).cloned();
    let stop = kinds.iter().position(|kind| *kind == STOP).unwrap();
    let mut before = w.radius.records[..stop].iter();
    let stopped = session(&w.radius.records[stop]);
    assert!(
        before.any(|record| session(record) == stopped),
        "after its Start"
    );
    assert_nothing_left(&mut w);
}

#[test]
fn more_records_than_slots_are_delivered_in_turns() {
    let homes = 2100;
    let mut w = World::new(
        homes,
        Choice {
            sessions: 5000,
            half_open: 5000,
            accounting_records: 10_000,
            ..Choice::radius()
        },
    );
    w.radius.full = true;
    w.dial_all();
    (0..homes).for_each(|n| w.hang_up(n));
    w.run(SECOND);
    w.dial_all();
    assert_eq!((w.online(), w.stored_records()), (homes, 3 * homes));
    w.restart_control_plane();
    w.radius.full = false;
    w.run(3 * MINUTE);
    let starts = w.radius.kinds().iter().filter(|k| **k == START).count();
    assert_eq!((starts, w.radius.records.len()), (2 * homes, 3 * homes));
    let owed = w.plane.ledger().held("accounting record");
    assert_eq!((w.stored_records(), owed), (0, 0));
}

#[test]
fn a_step_of_the_wall_clock_changes_neither_timers_nor_session_times() {
    for step in [3600, -3600] {
        let mut w = with_radius(2);
        w.radius.accept = vec![(Kind::SESSION_TIMEOUT, 300.into())];
        w.dial_all();
        w.run(MINUTE);
        w.wall_step = step; // while it runs
        w.run(MINUTE);
        let id = w.sessions()[0].id.clone();
        w.call(Request::ClearSession {
            id,
            by: "root".into(),
        })
        .unwrap();
        w.run(SECOND);
        let first = number(&w.radius.records[2], Kind::ACCT_SESSION_TIME);
        assert!((125..140).contains(&first), "{first}");
        w.wall_step = 2 * step; // while it is dead
        let ids = |w: &mut World| w.sessions().into_iter().map(|s| s.id).collect::<Vec<_>>();
        let before = ids(&mut w);
        w.restart_control_plane();
        w.run(5 * SECOND);
        w.dial(0);
        w.run(MINUTE);
        assert_eq!(ids(&mut w)[0], before[0]);
        assert_eq!(session_ids(&w), 3, "no identifier is used again");
        w.run(3 * MINUTE);
        let stops = w
            .radius
            .records
            .iter()
            .filter(|r| number(r, Kind::ACCT_STATUS_TYPE) == STOP);
        let granted = stops.map(|r| number(r, Kind::ACCT_SESSION_TIME)).nth(1);
        assert_eq!(granted, Some(300));
    }
}

/// Only the wall clock says how long a session has lasted when the machine was started anew, and somebody may have set it back.
#[test]
fn after_a_reboot_no_less_is_said_of_a_session_s_time_than_before() {
    let mut w = with_radius(1);
    w.dial_all();
    w.run(10 * MINUTE);
    w.user_plane_reports(500); // stores the session
    w.wall_step = -3600;
    w.boot = "second";
    w.restart_control_plane();
    w.run(MINUTE);
    w.hang_up(0);
    w.run(SECOND);
    let stop = w.radius.records.last().unwrap();
    let lasted = number(stop, Kind::ACCT_SESSION_TIME);
    assert!((660..690).contains(&lasted), "{lasted}");
}

fn octets(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

/// Uplink is what the subscriber sent, and Input for RADIUS (RFC 2866 §5.3). Both planes use one codec, so the report and
/// the record are octets that are written by hand.
#[test]
fn the_uplink_of_a_report_is_the_input_of_the_record() {
    let mut w = with_radius(1);
    w.dial_all();
    let mut keys = w.store.keys();
    let session = keys.find(|key| key.starts_with(b"session/")).unwrap();
    let seid = session[8..].to_vec();
    let report = octets(
        "0027 0001 02
         0050 0053
           0051 0004 00000001
           0068 0004 00000005
           003f 0002 0100
           0042 0031 3f
             0000000700000033
             0000000300000011
             0000000400000022
             0000000000000008
             0000000000000003
             0000000000000005
           0043 0004 0000003c",
    ); // the elements are named in crates/wire/src/pfcp/octets.rs
    let length = (12 + report.len() as u16).to_be_bytes();
    let header = [&[0x21, 56][..], &length, &seid, &[0, 0x77, 0x77, 0]];
    let bytes = [header.concat(), report].concat();
    let from = "192.0.2.2:8805".parse().unwrap();
    let input = control::Input::Pfcp {
        from,
        bytes: &bytes,
    };
    w.plane.handle(w.moment(), input);
    w.settle();
    w.restart_control_plane();
    w.run(MINUTE);
    w.hang_up(0); // which adds 70 octets up and 140 down
    w.run(SECOND);
    let (_, stop) = w.radius.datagrams.last().unwrap();
    for attribute in [
        "28 06 00000002", // Acct-Status-Type: Stop
        "2a 06 00000057", // Acct-Input-Octets
        "34 06 00000003", // Acct-Input-Gigawords
        "2f 06 00000003", // Acct-Input-Packets
        "2b 06 000000ae", // Acct-Output-Octets
        "35 06 00000004", // Acct-Output-Gigawords
        "30 06 00000005", // Acct-Output-Packets
    ] {
        let attribute = octets(attribute);
        let there = stop.windows(6).any(|window| window == attribute);
        assert!(there, "{attribute:x?} in {stop:x?}");
    }
}
