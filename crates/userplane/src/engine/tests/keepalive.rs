//! Subscribers who are watched with LCP echo requests.

use super::echoes::{HOME_MAGIC, MAGIC, lcp_frame};
use super::*;
use policy::Keepalive;
use std::collections::BTreeSet;
use wire::eth::Frame;
use wire::{lcp, ppp, pppoe};

const EVERY_10_S: Keepalive = Keepalive {
    interval: 10,
    failures: 3,
};

fn watched(n: u16) -> SessionSpec {
    let mut spec = spec(n);
    spec.forwarding.packets.keepalive = Some(EVERY_10_S);
    spec.echo_magic = Some(MAGIC);
    spec
}

/// PPPoE session id, number and magic number of an echo request.
fn echo_request(frame: &[u8]) -> (u16, u8, u32) {
    let packet = pppoe::Packet::parse(Frame::parse(frame).unwrap().payload).unwrap();
    let ppp = ppp::Frame::parse(packet.payload).unwrap();
    let control = ppp::Control::parse(ppp.payload).unwrap();
    assert_eq!((ppp.protocol, control.code), (ppp::LCP, lcp::ECHO_REQUEST));
    let echo = lcp::Echo::parse(control.data).unwrap();
    (packet.session_id, control.id, echo.magic)
}

impl Bench {
    /// A second passes, in which the subscriber of a session answers what it is asked.
    fn pass_answering(&mut self, seid: u64) {
        self.pass(1);
        for frame in std::mem::take(&mut self.sent) {
            let (_, id, _) = echo_request(&frame);
            assert_eq!(self.answers(seid, id), FromSubscriber::Taken);
        }
    }

    /// The subscriber of a session answers an echo request with this number.
    fn answers(&mut self, seid: u64, id: u8) -> FromSubscriber {
        let entry = self.entry(seid).clone();
        let circuit = Circuit {
            logical_port: Vec::new(),
            tags: entry.tags,
            mac: entry.peer_mac,
            gateway_mac: entry.gateway_mac,
        };
        let id_of = entry.pppoe_session_id;
        let frame = lcp_frame(circuit, id_of, lcp::ECHO_REPLY, id, &HOME_MAGIC);
        self.engine.from_subscriber(entry.index, &frame)
    }

    /// What was reported about subscribers who are gone: the number of echo requests that they have not answered.
    fn gone(&self) -> Vec<u16> {
        let reports = self.reports.iter();
        let gone = reports.filter_map(|(_, report)| {
            let unanswered = report.unanswered_echoes?;
            assert!(report.report_type.contains(ReportType::INACTIVITY));
            Some(unanswered)
        });
        gone.collect()
    }

    fn acknowledge(&mut self) {
        for (token, _) in std::mem::take(&mut self.reports) {
            self.engine.reported(token, Some(Cause::REQUEST_ACCEPTED));
        }
    }
}

#[test]
fn a_subscriber_who_answers_nothing_is_asked_as_often_as_set_and_then_reported() {
    let mut bench = Bench::new();
    bench.established_whole(&watched(7));
    let mut took = 0;
    while bench.reports.is_empty() && took < 60 {
        bench.pass(1);
        took += 1;
    }
    assert_eq!(bench.gone(), [3]);
    let requests: Vec<_> = bench.sent.iter().map(|frame| echo_request(frame)).collect();
    assert_eq!(requests, [1, 2, 3, 4].map(|id| (7, id, MAGIC)));
    assert!((28..=44).contains(&took), "after {took} s");
    // whoever stays away is told again
    bench.acknowledge();
    (0..11).for_each(|_| bench.pass(1));
    assert_eq!(bench.gone(), [4]);
}

#[test]
fn as_many_failures_as_can_be_set_are_counted() {
    let mut bench = Bench::new();
    let mut spec = watched(7);
    spec.forwarding.packets.keepalive = Some(Keepalive {
        interval: 1,
        failures: u8::MAX,
    });
    bench.established_whole(&spec);
    (0..400).for_each(|_| bench.pass(1));
    assert_eq!(bench.gone().first(), Some(&255));
}

#[test]
fn who_is_back_is_not_reported_before_the_next_check() {
    let mut bench = Bench::new();
    let spec = SessionSpec {
        usage_period: Some(1),
        ..watched(7)
    };
    let seid = bench.established_whole(&spec);
    bench.engine.peer_lost(bench.now, cp());
    (0..100).for_each(|_| bench.pass(1));
    bench.engine.peer_up(bench.now, cp());
    bench.count(seid, 100);
    bench.pass(1);
    assert!(!bench.reports.is_empty() && bench.gone().is_empty());
}

#[test]
fn an_answer_or_a_question_is_a_sign_of_life() {
    let mut bench = Bench::new();
    let seid = bench.established_whole(&watched(7));
    (0..200).for_each(|_| bench.pass_answering(seid));
    for second in 0..200 {
        bench.pass(1);
        if second % 25 == 0 {
            let entry = bench.entry(seid).index;
            let frame = lcp_frame(spec(7).circuit, 7, lcp::ECHO_REQUEST, 1, &HOME_MAGIC);
            let answer = bench.engine.from_subscriber(entry, &frame);
            assert!(matches!(answer, FromSubscriber::Answer(_)));
        }
    }
    assert!(bench.gone().is_empty());
}

#[test]
fn a_subscriber_who_sends_is_not_asked() {
    let mut bench = Bench::new();
    let seid = bench.established_whole(&watched(7));
    for _ in 0..50 {
        bench.count(seid, 100);
        (0..8).for_each(|_| bench.pass(1));
    }
    assert_eq!(bench.sent, [] as [Vec<u8>; 0]);
    // packets to the subscriber say nothing about it
    for _ in 0..60 {
        bench.count_down(seid, 100);
        bench.pass(1);
    }
    assert_eq!(bench.gone().first(), Some(&3));
}

#[test]
fn only_answers_to_the_own_requests_are_taken_from_the_control_plane() {
    let mut bench = Bench::new();
    let seid = bench.established_whole(&watched(7));
    while bench.sent.is_empty() {
        bench.pass(1);
    }
    let (_, id, _) = echo_request(&bench.sent[0]);
    let answers = [id.wrapping_add(1), id, id].map(|id| bench.answers(seid, id));
    use FromSubscriber::{Pass, Taken};
    assert_eq!(answers, [Pass, Taken, Pass]);
}

#[test]
fn a_worker_that_stands_still_makes_nobody_gone() {
    let mut bench = Bench::new();
    let seid = bench.established_whole(&watched(7));
    bench.worker_runs = false;
    (0..300).for_each(|_| bench.pass(1));
    bench.worker_runs = true;
    bench.sent.clear();
    bench.run();
    (0..50).for_each(|_| bench.pass_answering(seid));
    assert!(bench.gone().is_empty());
}

#[test]
fn a_control_plane_that_was_away_is_told() {
    let mut bench = Bench::new();
    bench.established_whole(&watched(7));
    bench.engine.peer_lost(bench.now, cp());
    (0..300).for_each(|_| bench.pass(1));
    assert!(bench.gone().is_empty());
    bench.engine.peer_up(bench.now, cp());
    (0..11).for_each(|_| bench.pass(1));
    assert_eq!(bench.gone().len(), 1);
}

#[test]
fn watching_follows_the_rules() {
    let mut bench = Bench::new();
    let open = watched(7);
    let closed = SessionSpec {
        forwarding: Forwarding::default(),
        ..open.clone()
    };
    let mut unasked = open.clone();
    unasked.forwarding.packets.keepalive = None;
    let seid = bench.established_whole(&unasked);
    let silent = |bench: &mut Bench| {
        bench.sent.clear();
        bench.reports.clear();
        (0..100).for_each(|_| bench.pass(1));
        bench.sent.is_empty() && bench.gone().is_empty()
    };
    assert!(silent(&mut bench), "without an interval");
    bench.modify(seid, open.change_from(&unasked.told()).unwrap());
    assert!(!silent(&mut bench));
    bench.modify(seid, closed.change_from(&open.told()).unwrap());
    assert!(silent(&mut bench), "without an address family");
    bench.modify(seid, open.change_from(&closed.told()).unwrap());
    assert!(!silent(&mut bench));
}

/// Sessions of 128 VLANs with up to 1,024 homes each.
fn one_of_many(n: u32) -> SessionSpec {
    let [_, a, b, c] = n.to_be_bytes();
    let mut spec = watched((n % 60_000) as u16 + 1);
    spec.cp_f_seid = FSeid::new(0x1000 + u64::from(n), cp().ip());
    spec.circuit.tags = Tags::qinq(1 + (n >> 10) as u16, 1 + (n & 0x3ff) as u16);
    spec.circuit.mac = MacAddr([2, 0, 0, a, b, c]);
    spec.downlink.teid = 0x1000 + n;
    spec.forwarding.bindings = Bindings::of(Some([100, 64 + a, b, c].into()), None);
    spec.forwarding.packets.keepalive = Some(Keepalive {
        interval: 30,
        failures: 3,
    });
    spec
}

#[test]
fn of_131_072_sessions_exactly_the_1000_that_fall_silent_are_found_in_time() {
    let mut bench = Bench::with_room_for(131_072);
    let establish = |n| bench.established_whole(&one_of_many(n));
    let seids: Vec<u64> = (0..131_072).map(establish).collect();
    let silent: BTreeSet<u64> = (0..1000).map(|n| seids[n * 131 + 7]).collect();
    let by_mac = |seid: &u64| (bench.entry(*seid).peer_mac.0, *seid);
    let by_mac: HashMap<[u8; 6], u64> = seids.iter().map(by_mac).collect();
    let mut most_at_once = 0;
    // 30 s, 3 times, and 30 s for the last answer, each varied by up to 10 %
    for _ in 0..132 {
        bench.pass(1);
        most_at_once = most_at_once.max(bench.sent.len());
        for frame in std::mem::take(&mut bench.sent) {
            let (_, id, _) = echo_request(&frame);
            let seid = by_mac[&Frame::parse(&frame).unwrap().header.destination.0];
            if !silent.contains(&seid) {
                assert_eq!(bench.answers(seid, id), FromSubscriber::Taken);
            }
        }
    }
    let told: BTreeSet<u64> = bench.reports.iter().map(|(token, _)| *token).collect();
    assert_eq!(bench.gone().len(), bench.reports.len());
    assert_eq!(told, silent);
    assert!(
        most_at_once < 2 * 131_072 / 30,
        "{most_at_once} in a second"
    );
}
