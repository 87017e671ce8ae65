//! Usage of sessions, and how the control plane learns of it.

use super::*;

#[test]
fn queries_report_what_was_added_since_the_report_before() {
    let mut bench = Bench::new();
    let seid = bench.established(&spec(7));
    let mut last = None;
    for expected in [100, 50, 0] {
        if expected > 0 {
            bench.count(seid, expected);
        }
        let response = bench.modify(seid, query_usage(1));
        let [report] = &response.usage_reports[..] else {
            panic!("{response:?}")
        };
        assert_eq!(octets(report), (Some(expected), Some(2 * expected)));
        assert!(last.is_none_or(|last| report.sequence == last + 1));
        last = Some(report.sequence);
    }
    // A change of rules in between sends no report and loses no usage.
    bench.count(seid, 11);
    let response = bench.modify(seid, spec(7).add_family(Family::Ipv4).unwrap());
    assert_eq!(response.usage_reports, []);
    assert_eq!(
        octets(&bench.delete(seid).usage_reports[0]),
        (Some(11), Some(22))
    );
}

#[test]
fn periodic_reports_come_by_the_measurement_period() {
    let mut bench = Bench::new();
    bench.pass(10); // until then, nets may be told again
    let seid = bench.established(&with_period(7, 60));
    bench.pass(2); // its rules are packed by then
    assert_eq!(bench.engine.poll_at(), Some(Duration::from_secs(71)));
    bench.pass(57);
    assert!(bench.reports.is_empty());
    bench.count(seid, 100);
    bench.pass(1);
    let (token, report) = bench.reports.remove(0);
    assert!(report.report_type.contains(ReportType::USAGE));
    assert_eq!(octets(&report.usage_reports[0]), (Some(100), Some(200)));
    assert_eq!(report.usage_reports[0].duration, Some(60));
    bench.engine.reported(token, Some(Cause::REQUEST_ACCEPTED));
    bench.count(seid, 1);
    bench.pass(60);
    assert_eq!(
        octets(&bench.reports[0].1.usage_reports[0]),
        (Some(1), Some(2))
    );
}

#[test]
fn a_report_that_was_not_acknowledged_comes_again_unchanged() {
    let mut bench = Bench::new();
    let seid = bench.established(&with_period(7, 60));
    bench.count(seid, 100);
    bench.pass(60);
    let (token, first) = bench.reports.remove(0);
    // No new report while the first is under way.
    bench.count(seid, 5);
    bench.pass(60);
    assert!(bench.reports.is_empty());
    bench.engine.reported(token, None);
    assert_eq!(bench.engine.counters.reports_kept, 1);
    // The path is lost: sessions are held, and nothing is sent.
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(60);
    assert!(bench.reports.is_empty());
    assert_eq!(bench.engine.sessions(), 1);
    bench.engine.peer_up(bench.now, cp());
    bench.pass(60);
    // Usage in the meantime is a second report.
    let (token, again) = bench.reports.remove(0);
    let [repeated, fresh] = &again.usage_reports[..] else {
        panic!("{again:?}")
    };
    assert_eq!(*repeated, first.usage_reports[0]);
    assert_eq!(octets(fresh), (Some(5), Some(10)));
    assert_eq!(fresh.sequence, repeated.sequence + 1);
    // An acknowledgement ends both.
    bench.engine.reported(token, Some(Cause::REQUEST_ACCEPTED));
    bench.count(seid, 2);
    bench.pass(60);
    let (token, report) = bench.reports.remove(0);
    assert_eq!(report.usage_reports.len(), 1);
    assert_eq!(octets(&report.usage_reports[0]), (Some(2), Some(4)));
    // A report that failed is repeated with the last one.
    bench.engine.reported(token, None);
    bench.count(seid, 3);
    let last = bench.delete(seid).usage_reports;
    assert_eq!(last[0], report.usage_reports[0]);
    assert_eq!(octets(&last[1]), (Some(3), Some(6)));
}

/// A control plane can die before it has handled an answer.
#[test]
fn what_an_answer_told_is_told_again_until_it_is_acknowledged() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    bench.audit(default, true, &[]);
    let seid = bench.established(&with_period(7, 60));
    bench.count(seid, 100);
    let first = bench.modify(seid, query_usage(1)).usage_reports;
    bench.count(seid, 5);
    let second = bench.modify(seid, query_usage(1)).usage_reports;
    assert_eq!((first.len(), second.len()), (1, 2));
    assert_eq!(second[0], first[0]);
    assert_eq!(octets(&second[1]), (Some(5), Some(10)));
    // A change of rules sends no report.
    let change = bench.modify(seid, with_period(7, 60).add_family(Family::Ipv4).unwrap());
    assert_eq!(change.usage_reports, []);
    bench.pass(60);
    let (token, report) = bench.reports.remove(0);
    assert_eq!(report.usage_reports[..2], second);
    // A report sent meanwhile is not part of what is acknowledged.
    bench.count(seid, 7);
    let third = bench.modify(seid, query_usage(1)).usage_reports;
    assert_eq!(third[..3], report.usage_reports);
    bench.engine.reported(token, Some(Cause::REQUEST_ACCEPTED));
    let last = bench.delete(seid).usage_reports;
    assert_eq!(last[0], third[3]);
    assert_eq!((octets(&last[0]), last.len()), ((Some(7), Some(14)), 2));
}

#[test]
fn a_query_beyond_what_is_kept_asks_for_the_acknowledgement() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    bench.audit(default, true, &[]);
    let seid = bench.established(&with_period(7, 60));
    let mut told = Vec::new();
    for _ in 0..MAX_KEPT + 3 {
        bench.count(seid, 1);
        told = bench.modify(seid, query_usage(1)).usage_reports;
    }
    assert_eq!(told.len(), MAX_KEPT);
    let (token, report) = bench.reports.remove(0);
    assert_eq!(report.usage_reports, told);
    assert!(bench.reports.is_empty(), "one at a time");
    bench.engine.reported(token, Some(Cause::REQUEST_ACCEPTED));
    let next = bench.modify(seid, query_usage(1)).usage_reports;
    assert_eq!(next.len(), 1);
    assert_eq!(octets(&next[0]), (Some(3), Some(6)));
}

#[test]
fn a_deletion_that_is_asked_again_is_answered_the_same() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    bench.audit(default, true, &[]);
    let seid = bench.established(&with_period(7, 60));
    bench.count(seid, 100);
    let first = bench.delete(seid);
    assert_eq!(octets(&first.usage_reports[0]), (Some(100), Some(200)));
    // The control plane was away meanwhile, and returned at another address.
    let other = "192.0.2.9:8805".parse().unwrap();
    bench.engine.peer_lost(bench.now, cp());
    bench.engine.move_peer(cp(), other);
    bench.engine.move_peer(other, cp());
    bench.engine.peer_up(bench.now, cp());
    assert_eq!(bench.delete(seid), first);
    // No other control plane gets the answer.
    bench
        .engine
        .request(bench.now, 99, other, seid, delete().into());
    bench.run();
    let Message::SessionDeletionResponse(answer) = bench.answer(99) else {
        panic!("an answer")
    };
    assert_eq!(answer.cause, Cause::SESSION_CONTEXT_NOT_FOUND);
    assert_eq!(answer.usage_reports, []);
}

#[test]
fn a_control_plane_of_another_make_hears_of_a_deleted_session_once() {
    let mut bench = Bench::new();
    let seid = bench.established(&with_period(7, 60));
    assert_eq!(bench.delete(seid).usage_reports.len(), 1);
    let again = bench.delete(seid);
    assert_eq!(again.cause, Cause::SESSION_CONTEXT_NOT_FOUND);
    assert_eq!(again.usage_reports, []);
}

#[test]
fn a_session_told_anew_reports_what_the_one_before_it_had_to_report() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    bench.audit(default, true, &[]);
    let before = bench.established(&with_period(7, 60));
    bench.count(before, 100);
    let told = bench.modify(before, query_usage(1)).usage_reports;
    bench.count(before, 5);
    let anew = SessionSpec {
        urr_id: 2,
        ..with_period(7, 60)
    };
    let seid = bench.established(&anew);
    assert_ne!(seid, before);
    bench.count(seid, 7);
    bench.pass(60);
    let (_, report) = bench.reports.remove(0);
    let [repeated, last, own] = &report.usage_reports[..] else {
        panic!("{report:?}")
    };
    assert_eq!(*repeated, told[0]);
    assert_eq!((last.urr_id, octets(last)), (1, (Some(5), Some(10))));
    assert_eq!((own.urr_id, own.sequence), (2, 0));
    assert_eq!(octets(own), (Some(7), Some(14)));
    assert_eq!(bench.engine.counters.unreported_octets, 0);
}

/// A control plane that died before it had stored the end of a session still has the session.
#[test]
fn a_session_told_anew_after_its_deletion_reports_what_the_deletion_told() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    bench.audit(default, true, &[]);
    let before = bench.established(&with_period(7, 60));
    bench.count(before, 100);
    let told = bench.delete(before).usage_reports;
    // A session with the same rule id must not get the reports: they would count as its own.
    let same = bench.established(&with_period(7, 60));
    bench.count(same, 3);
    assert_eq!(bench.delete(same).usage_reports.len(), 1);
    let anew = SessionSpec {
        urr_id: 2,
        ..with_period(7, 60)
    };
    let other = SessionSpec {
        urr_id: 3,
        ..with_period(8, 60)
    };
    let [anew, other] = [anew, other].map(|spec| bench.established(&spec));
    assert_eq!(bench.delete(other).usage_reports.len(), 1);
    let last = bench.delete(anew).usage_reports;
    assert_eq!((last.len(), last[0].urr_id, last[1].urr_id), (2, 1, 2));
    assert_eq!(octets(&last[0]), (Some(3), Some(6)));
    assert_ne!(last[0], told[0], "the one that was deleted last");
}

#[test]
fn a_session_told_anew_while_the_one_before_it_goes_reports_what_that_told() {
    let mut bench = Bench::new();
    let before = bench.established(&with_period(7, 60));
    bench.count(before, 100);
    bench.worker_runs = false;
    let deletion = bench.send(before, delete());
    let anew = SessionSpec {
        urr_id: 2,
        ..with_period(7, 60)
    };
    let establishment = bench.send(0, anew.establish_control());
    bench.worker_runs = true;
    bench.run();
    assert_eq!(
        bench.answer(deletion).cause(),
        Some(Cause::REQUEST_ACCEPTED)
    );
    let Message::SessionEstablishmentResponse(answer) = bench.answer(establishment) else {
        panic!("an answer")
    };
    let last = bench.delete(answer.up_f_seid.unwrap().seid).usage_reports;
    assert_eq!(octets(&last[0]), (Some(100), Some(200)));
    assert_eq!((last.len(), last[1].urr_id), (2, 2));
}

#[test]
fn a_deletion_always_finds_a_place() {
    let mut bench = Bench::new();
    let seid = bench.established(&spec(7));
    bench.worker_runs = false;
    for _ in 0..MAX_WAITING + 5 {
        bench.send(seid, query_usage(1));
    }
    let deletion = bench.send(seid, delete());
    bench.worker_runs = true;
    bench.run();
    assert_eq!(
        bench.answer(deletion).cause(),
        Some(Cause::REQUEST_ACCEPTED)
    );
}

#[test]
fn a_deletion_of_a_session_that_is_going_waits_for_its_counters() {
    let mut bench = Bench::new();
    let seid = bench.established(&with_period(7, 60));
    bench.count(seid, 100);
    bench.worker_runs = false;
    // A deletion waits behind a query, the port closes, and the deletion is repeated before the worker has handled any of it.
    let query = bench.send(seid, query_usage(1));
    let given_up = bench.send(seid, delete());
    bench.engine.end_port(PORT);
    let asked = bench.send(seid, delete());
    let refused = bench.answer(query).cause();
    assert_eq!(refused, Some(Cause::SESSION_CONTEXT_NOT_FOUND));
    let refused = bench.answer(given_up).cause();
    assert_eq!(refused, Some(Cause::ENTITY_IN_CONGESTION));
    assert_eq!(bench.responses, []);
    bench.worker_runs = true;
    bench.run();
    let Message::SessionDeletionResponse(answer) = bench.answer(asked) else {
        panic!("an answer")
    };
    assert_eq!(octets(&answer.usage_reports[0]), (Some(100), Some(200)));
    assert_eq!(bench.engine.counters.unreported_octets, 0);
}

#[test]
fn a_report_that_is_under_way_when_the_session_is_deleted_goes_along() {
    let mut bench = Bench::new();
    let seid = bench.established(&with_period(7, 60));
    bench.count(seid, 100);
    bench.pass(60);
    let (_, report) = bench.reports.remove(0);
    bench.count(seid, 3);
    // The answer to the deletion may overtake the report, and the control plane is done then.
    let last = bench.delete(seid).usage_reports;
    assert_eq!(last[0], report.usage_reports[0]);
    assert_eq!(octets(&last[1]), (Some(3), Some(6)));
}

#[test]
fn a_session_that_the_control_plane_does_not_know_is_removed() {
    let mut bench = Bench::new();
    bench.established(&with_period(7, 60));
    bench.pass(60);
    let (token, _) = bench.reports.remove(0);
    bench
        .engine
        .reported(token, Some(Cause::SESSION_CONTEXT_NOT_FOUND));
    bench.run();
    assert!(bench.entries.is_empty());
    assert_eq!(bench.engine.sessions(), 0);
    bench.pass(600);
    assert!(bench.reports.is_empty());
}

/// Both planes read usage with the same codec. So the octets on the wire are compared with octets written by hand.
#[test]
fn what_came_from_the_subscriber_is_the_uplink_s_on_the_wire() {
    let mut bench = Bench::new();
    let seid = bench.established(&spec(7));
    let ipv4 = Volume {
        up_packets: 2,
        up_octets: 0x0000_0003_0000_0000,
        down_packets: 1,
        down_octets: 0x0000_0004_0000_0000,
    };
    let ipv6 = Volume {
        up_packets: 1,
        up_octets: 0x11,
        down_packets: 4,
        down_octets: 0x22,
    };
    let used = Usage::of_families(ipv4, ipv6);
    bench.usage.insert(Seid::from_u64(seid).index, used);
    bench.now.ntp += 60;
    let to = bench.send(seid, delete());
    let at = bench.responses.iter().position(|r| r.0 == to).unwrap();
    let (_, cp_seid, message) = bench.responses.remove(at);
    let mut octets = Vec::new();
    let packet = Packet::session(cp_seid, 7, message);
    packet.emit(&mut octets).unwrap();
    let expected = [
        "213700af",
        "0000000000001007",
        "00000700",         // Session Deletion Response, length; SEID; sequence number
        "0013000101",       // Cause: Request accepted
        "004f009a", // Usage Report in a Session Deletion Response (TS 29.244 table 7.5.7.2-1)
        "0051000400000001", // URR ID
        "0068000400000000", // UR-SEQN
        "003f00020008", // Usage Report Trigger: TERMR
        "004b0004000003e8", // Start Time
        "004c000400000424", // End Time
        "004200313f", // Volume Measurement (§8.2.44): all six fields
        "0000000700000033", // Total Volume
        "0000000300000011", // Uplink Volume
        "0000000400000022", // Downlink Volume
        "0000000000000008", // Total Number of Packets
        "0000000000000003", // Uplink Number of Packets
        "0000000000000005", // Downlink Number of Packets
        "004300040000003c", // Duration Measurement
        "800800337ed93f", // IPv6 Volume of enterprise 32473, like a Volume Measurement
        "0000000000000033", // Total Volume
        "0000000000000011", // Uplink Volume
        "0000000000000022", // Downlink Volume
        "0000000000000005", // Total Number of Packets
        "0000000000000001", // Uplink Number of Packets
        "0000000000000004", // Downlink Number of Packets
    ];
    let octets: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(octets, expected.concat());
}

#[test]
fn sessions_that_come_and_go_leave_no_timers_behind() {
    let mut bench = Bench::new();
    let stays = bench.established(&with_period(1, 300));
    for _ in 0..10_000 {
        let seid = bench.established(&with_period(7, 300));
        bench.delete(seid);
    }
    assert!(bench.engine.timers.len() <= 1024);
    assert!(bench.engine.timers.capacity() <= 4096);
    bench.pass(301);
    let reported: Vec<u64> = bench.reports.iter().map(|(token, _)| *token).collect();
    assert_eq!(reported, [stays]);
}

/// A session with IPv4 and an idle timeout of 80 seconds.
pub(super) fn may_be_idle(bench: &mut Bench, both_ways: bool) -> (SessionSpec, u64) {
    let mut spec = spec(7);
    let bindings = &mut spec.forwarding.bindings;
    *bindings = Bindings::of(bindings.ipv4(), None);
    spec.forwarding.packets.idle_timeout = Some(Duration::from_secs(80));
    spec.forwarding.packets.idle_both_ways = both_ways;
    let seid = bench.established(&spec);
    bench.modify(seid, spec.add_family(Family::Ipv4).unwrap());
    (spec, seid)
}

/// Number of reports that say that a session is idle.
pub(super) fn told(bench: &Bench) -> usize {
    let reports = bench.reports.iter();
    let idle = reports.filter(|(_, r)| r.report_type.contains(ReportType::INACTIVITY));
    idle.count()
}

#[test]
fn a_session_that_is_idle_is_reported_until_it_sends_again() {
    for both_ways in [false, true] {
        let mut bench = Bench::new();
        let (_, seid) = may_be_idle(&mut bench, both_ways);
        // Packets from the subscriber keep it from being idle.
        for _ in 0..20 {
            bench.count(seid, 100);
            bench.pass(10);
        }
        assert_eq!(told(&bench), 0);
        for _ in 0..9 {
            bench.pass(10);
        }
        assert_eq!(told(&bench), 1, "both ways: {both_ways}");
        let (token, report) = bench.reports.remove(0);
        assert_eq!(octets(&report.usage_reports[0]), (Some(2000), Some(4000)));
        bench.engine.reported(token, Some(Cause::REQUEST_ACCEPTED));
        // One report is enough, and the session can become idle again.
        (0..30).for_each(|_| bench.pass(10));
        assert_eq!(told(&bench), 0);
        bench.count(seid, 100);
        (0..11).for_each(|_| bench.pass(10));
        assert_eq!(told(&bench), 1);
    }
}

#[test]
fn packets_to_the_subscriber_count_against_idleness_only_if_wanted() {
    for both_ways in [false, true] {
        let mut bench = Bench::new();
        let (mut spec, seid) = may_be_idle(&mut bench, both_ways);
        for _ in 0..20 {
            bench.count_down(seid, 100);
            bench.pass(10);
        }
        assert_eq!(told(&bench), usize::from(!both_ways));
        // Without an idle timeout, no session is idle.
        let before = spec.told();
        spec.forwarding.packets.idle_timeout = None;
        let response = bench.modify(seid, spec.change_from(&before).unwrap());
        assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
        bench.reports.clear();
        (0..50).for_each(|_| bench.pass(10));
        assert_eq!(told(&bench), 0);
    }
}
