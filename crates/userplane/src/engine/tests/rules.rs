//! Rules that are packed while nothing changes.

use super::*;
use crate::engine::rules::Rules;

/// Another prefix of the same session, as a change of its policy.
fn changed(spec: &SessionSpec, n: u8) -> SessionSpec {
    let mut changed = spec.clone();
    changed.forwarding.bindings = Bindings::of(
        Some([100, 65, 0, n].into()),
        Some("2001:db8:65:1::/64".parse().unwrap()),
    );
    changed
}

fn kept(bench: &Bench) -> Vec<&Rules> {
    let sessions = bench.engine.table.iter();
    sessions.map(|(_, session)| &session.rules).collect()
}

#[test]
fn rules_that_are_not_changed_any_more_take_little_memory_and_can_be_changed_again() {
    let mut bench = Bench::new();
    let specs: Vec<SessionSpec> = (1..=200).map(spec).collect();
    let seids: Vec<u64> = specs.iter().map(|s| bench.established_whole(s)).collect();
    let whole = |rules: &&&Rules| matches!(rules, Rules::Whole(_));
    assert_eq!(kept(&bench).iter().filter(whole).count(), 200, "not yet");
    bench.pass(2);
    let octets: Vec<usize> = (kept(&bench).into_iter())
        .map(|rules| match rules {
            Rules::Packed(_, bytes) => bytes.len(),
            Rules::Whole(_) => panic!("they wait no longer"),
        })
        .collect();
    assert!(octets.iter().sum::<usize>() < 200 * 100, "{octets:?}");

    for (n, (spec, seid)) in specs.iter().zip(seids).enumerate() {
        let changed = changed(spec, n as u8);
        let change = changed.change_from(&spec.told()).unwrap();
        let answer = bench.modify(seid, change);
        assert_eq!(answer.cause, Cause::REQUEST_ACCEPTED);
        let entry = bench.entry(seid);
        assert_eq!(entry.ipv4, changed.forwarding.bindings.ipv4());
        assert_eq!(entry.pppoe_session_id, n as u16 + 1);
    }
    bench.pass(2);
    assert_eq!(kept(&bench).iter().filter(whole).count(), 0);
}

#[test]
fn rules_of_any_shape_come_back_as_they_were() {
    let mut bench = Bench::new();
    let shapes = (0..100_u16).map(|n| {
        let mut spec = spec(n + 1);
        spec.usage_period = (n % 2 == 0).then_some(60);
        let delegated: Vec<Binding> = (0..n % 40)
            .map(|i| Binding::new(Role::Delegated, net(&format!("2001:db8:{n:x}:{i:x}::/64"))))
            .collect();
        let bindings = spec.forwarding.bindings.iter().copied().chain(delegated);
        spec.forwarding.bindings = Bindings::new(bindings).unwrap();
        spec
    });
    let seids: Vec<u64> = shapes.map(|spec| bench.established_whole(&spec)).collect();
    let rules = |bench: &Bench| -> Vec<pfcp::bng::RuleSet> {
        let session = |seid: &u64| bench.engine.table.get(Seid::from_u64(*seid).index).unwrap();
        let sessions = seids.iter().map(session);
        sessions
            .map(|session| bench.engine.rules_of(session).into_owned())
            .collect()
    };
    let before = rules(&bench);
    bench.pass(2);
    assert!(kept(&bench).iter().all(|rules| rules.is_packed()));
    assert_eq!(rules(&bench), before);
}

#[test]
fn of_very_many_new_sessions_few_wait_to_be_packed() {
    let mut bench = Bench::with_room_for(4000);
    for n in 1..=3000 {
        bench.send(0, spec(n).establish());
    }
    let whole = kept(&bench).into_iter().filter(|rules| !rules.is_packed());
    assert_eq!(whole.count(), 1024);
}
