//! Rules of one subscriber, by NAS-Filter-Rule (RFC 4849): they reach the user plane, or the subscriber does not come in.

use crate::dynamic::{ACK, change, nak, user, world};
use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use northbound::{Request, Response};
use policy::FilterRules;
use wire::pfcp::SluiceFeatures;
use wire::radius::{Kind, Value};

const SECOND: Duration = Duration::from_secs(1);
const DENY: &str = "deny in tcp from any to any 25";
const PERMIT: &str = "permit in ip from any to any";
const OUT: &str = "deny out udp from any to assigned 53";

/// NAS-Filter-Rule with a text.
fn rule(text: &str) -> (Kind, Value) {
    octets(text.as_bytes())
}

/// NAS-Filter-Rule with a part of a text.
fn octets(part: &[u8]) -> (Kind, Value) {
    (Kind::NAS_FILTER_RULE, Value::Octets(part.into()))
}

/// The rules of each session at the user plane, with semicolons between them.
fn rules(w: &World) -> Vec<String> {
    let all = w.up.subscribers().into_iter();
    all.map(|rules| {
        let own = rules.forwarding.policies.filter_rules.clone();
        own.as_ref().map_or(String::new(), FilterRules::to_string)
    })
    .collect()
}

fn dialled(accept: Vec<(Kind, Value)>) -> World {
    let mut w = World::new(2, Choice::radius());
    w.radius.accept = accept;
    w.dial_all();
    w
}

#[test]
fn rules_of_radius_reach_the_user_plane_and_outlive_a_restart() {
    let mut w = dialled(vec![
        rule(&format!("{DENY}\0permit  in")),
        rule(" ip from any to any"),
    ]);
    assert_eq!(w.online(), 2);
    let both = format!("{DENY}; {PERMIT}");
    assert_eq!(rules(&w), [both.clone(), both.clone()]);
    for _ in 0..2 {
        w.restart_control_plane();
        w.run(10 * SECOND);
        assert_eq!(rules(&w), [both.clone(), both.clone()]);
        w.restart_user_plane();
        w.run(10 * SECOND);
        assert_eq!(rules(&w), [both.clone(), both.clone()]);
    }
    // the digest of an audit covers them: what differs is told again
    w.up.damage_rules();
    assert_eq!(rules(&w)[1], "");
    w.restart_control_plane();
    w.run(10 * SECOND);
    assert_eq!(rules(&w), [both.clone(), both.clone()]);
    let id = w.sessions()[0].id.clone();
    let Ok(Response::Subscriber { found, .. }) = w.call(Request::FindSubscriber {
        subscriber: id,
        from: 0,
    }) else {
        panic!("it is not found");
    };
    let setting = found.subscribers[0]
        .policy
        .iter()
        .find(|s| s.name == "filter_rules");
    let shown = setting.map(|setting| (&*setting.value, &*setting.origin));
    assert_eq!(shown, Some((&*both, "aaa")));
    w.assert_balanced();
}

#[test]
fn a_change_replaces_the_rules_and_a_bad_one_is_rejected() {
    let mut w = world(1);
    assert_eq!(rules(&w), [""]);
    assert_eq!(change(&mut w, &[user(0), rule(DENY), rule(OUT)]), ACK);
    assert_eq!(rules(&w), [format!("{DENY}; {OUT}")]);
    assert_eq!(change(&mut w, &[user(0), rule(PERMIT)]), ACK);
    assert_eq!(
        rules(&w),
        [PERMIT],
        "those of the other direction are gone, too"
    );
    for bad in [
        "deny in tcp from any to any 25 fast",
        "deny ip from any to any",
    ] {
        assert_eq!(change(&mut w, &[user(0), rule(DENY), rule(bad)]), nak(407));
        assert_eq!(rules(&w), [PERMIT]);
    }
    assert_eq!(change(&mut w, &[user(0), rule("\0")]), nak(407), "no rule");
    w.restart_control_plane();
    w.run(10 * SECOND);
    assert_eq!(rules(&w), [PERMIT]);
    // a change of something else leaves them
    assert_eq!(
        change(&mut w, &[user(0), (Kind::IDLE_TIMEOUT, 600.into())]),
        ACK
    );
    assert_eq!(rules(&w), [PERMIT]);
    w.assert_balanced();
}

#[test]
fn a_rule_that_cannot_be_used_rejects_the_subscriber() {
    for accept in [
        vec![rule("deny in tcp from any to any http")],
        vec![rule(DENY), rule("deny icmp from any to any")],
        vec![rule("\0")],
    ] {
        let w = dialled(accept);
        assert_eq!(w.online(), 0);
        assert!(w.count(Counter::AuthenticationRejected) > 0);
        assert!(rules(&w).iter().all(String::is_empty));
    }
}

/// Denies TCP to 64 ranges of ports, which begin at an offset of each of 64 parts.
fn periodic(way: &str, offset: usize) -> String {
    let ranges = (0..64).map(|part| 1024 * part + offset);
    let ranges: Vec<String> = ranges
        .map(|port| format!("{port}-{}", port + 511))
        .collect();
    format!("deny{way} tcp from any to any {}", ranges.join(","))
}

#[test]
fn rules_that_do_not_fit_in_front_of_their_policy_are_refused_at_the_accept_and_by_coa() {
    let mut w = world(2);
    // 65,024 sets of ports are told apart: 65,535 may be
    let parts = (1..64).map(|part| format!("deny tcp from any to any 0-{}", 1024 * part - 1));
    let all = (0..508).map(|offset| periodic("", offset)).chain(parts);
    let edits = (1..).zip(all);
    let edits = edits.map(|(number, rule)| format!("set acls ports rules {number} {rule}"));
    let edits: Vec<String> = edits
        .chain(["set policies large acls ports".into()])
        .collect();
    let edits: Vec<&str> = edits.iter().map(String::as_str).collect();
    w.configure(&edits).unwrap();
    let many: Vec<String> = (508..512).map(|offset| periodic(" in", offset)).collect();
    let many = many.join("\0");
    let many: Vec<(Kind, Value)> = many.as_bytes().chunks(250).map(octets).collect();
    let large = (Kind::FILTER_ID, "large.in".into());
    let both = [&[user(0), large.clone()], &many[..]].concat();
    assert_eq!(change(&mut w, &both), nak(506));
    assert_eq!(rules(&w), ["", ""]);
    let fitting = [user(0), large.clone(), rule(DENY)];
    assert_eq!(change(&mut w, &fitting), ACK);
    let again = [&[user(0)], &many[..]].concat();
    assert_eq!(change(&mut w, &again), nak(506));
    assert_eq!(rules(&w), [DENY, ""], "what is in force stays");

    w.hang_up(1);
    w.run(SECOND);
    w.radius.accept = [vec![large.clone()], many].concat();
    w.dial(1);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    assert!(w.count(Counter::PolicyRefused) > 0);
    w.radius.accept = vec![large, rule(DENY)];
    w.dial(1);
    w.run(10 * SECOND);
    assert_eq!((w.online(), rules(&w)), (2, vec![DENY.into(), DENY.into()]));
    w.assert_balanced();
}

#[test]
fn a_user_plane_that_does_not_know_rules_gets_no_session_with_them() {
    let mut w = World::new(2, Choice::radius());
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS | SluiceFeatures::BINDINGS);
    w.radius.accept = vec![rule(DENY)];
    w.dial_all();
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (0, 2));
    w.radius.accept.clear();
    w.dial_all();
    assert_eq!(w.online(), 2);
}

#[test]
fn a_session_with_rules_forwards_nothing_at_an_earlier_user_plane() {
    let mut w = dialled(vec![rule(DENY)]);
    assert_eq!(w.online(), 2);
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS | SluiceFeatures::BINDINGS);
    w.run(10 * SECOND);
    let open = |w: &World| {
        let all = w.up.subscribers().into_iter();
        all.filter(|rules| rules.forwarding.bindings.iter().next().is_some())
            .count()
    };
    assert_eq!(open(&w), 0);
    w.restart_user_plane();
    w.run(10 * SECOND);
    assert_eq!((open(&w), rules(&w)), (2, vec![DENY.to_owned(); 2]));
}
