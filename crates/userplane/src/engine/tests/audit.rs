//! What a returned control plane is told about the sessions that it names, and about the others.

use super::*;

impl Bench {
    /// One block of an audit, about the default session.
    pub(super) fn audit(
        &mut self,
        default: u64,
        last: bool,
        sessions: &[(u64, u64)],
    ) -> AuditResult {
        let block = Audit {
            epoch: 5,
            last,
            sessions: sessions.to_vec(),
        };
        let response = self.modify(default, pfcp::bng::audit(block));
        assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
        response.audit_result.expect("what the audit found")
    }

    /// Establishes a session with all of its rules, as a control plane does after a loss.
    fn put_back(&mut self, spec: &SessionSpec) -> u64 {
        let to = self.send(0, spec.establish());
        match self.answer(to) {
            Message::SessionEstablishmentResponse(response) => response.up_f_seid.unwrap().seid,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_audit_tells_what_is_missing_what_differs_and_what_is_strange() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    let seids: Vec<u64> = (1..=3).map(|n| bench.established(&spec(n))).collect();
    for (n, family) in [(1, Family::Ipv4), (1, Family::Ipv6), (2, Family::Ipv4)] {
        let message = spec(n).add_family(family).unwrap();
        bench.modify(seids[usize::from(n) - 1], message);
    }
    let digest = |n| spec(n).digest();

    let first = bench.audit(
        default,
        false,
        &[(seids[0], digest(1)), (seids[1], digest(2))],
    );
    assert_eq!(first.wrong, [1], "the second one lacks IPv6");
    assert_eq!(first.unknown_sessions, []);
    let last = bench.audit(default, true, &[(0xdead, digest(9))]);
    assert_eq!(last.wrong, [0], "there is no such session");
    assert_eq!(
        last.unknown_sessions,
        [(0x1003, seids[2])],
        "nobody named the third one"
    );
    assert_eq!(
        bench.audit(default, true, &[]).unknown_sessions,
        [],
        "each is told once"
    );
}

#[test]
fn digests_of_both_planes_agree_whatever_the_way_to_the_rules() {
    let mut bench = Bench::new();
    let at_once = spec(1);
    let first = bench.put_back(&at_once);
    let step_by_step = spec(2);
    let seid = bench.established(&step_by_step);
    bench.modify(seid, step_by_step.add_family(Family::Ipv6).unwrap());
    bench.modify(seid, step_by_step.add_family(Family::Ipv4).unwrap());
    let default = bench.default_session(&[]);
    let named = [(first, at_once.digest()), (seid, step_by_step.digest())];
    let result = bench.audit(default, true, &named);
    assert_eq!(result, AuditResult::default());
}

#[test]
fn a_session_established_during_an_audit_is_not_unknown() {
    let mut bench = Bench::new();
    let default = bench.default_session(&[]);
    bench.established(&spec(1));
    bench.audit(default, false, &[]);
    bench.established(&spec(2));
    let unknown_sessions = bench.audit(default, true, &[]).unknown_sessions;
    assert_eq!(unknown_sessions.len(), 1);
    assert_eq!(unknown_sessions[0].0, 0x1001);
}

#[test]
fn a_session_that_is_going_is_missing_for_an_audit() {
    let mut bench = Bench::new();
    bench.engine.config.hold = Some(Duration::from_secs(300));
    let seid = bench.put_back(&spec(7));
    bench.worker_runs = false;
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(300);
    // The path returns before the worker has released the session.
    bench.engine.peer_up(bench.now, cp());
    let default = bench.default_session(&[]);
    let result = bench.audit(default, true, &[(seid, spec(7).digest())]);
    assert_eq!((result.wrong, result.unknown_sessions), (vec![0], vec![]));
    bench.worker_runs = true;
    bench.put_back(&spec(7));
    assert_eq!(bench.entries.len(), 1);
}
