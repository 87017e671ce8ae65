//! What happens to subscribers when no RADIUS server answers.

use crate::world::{Choice, World, radius};
use control::Input;
use control::counters::Counter;
use control::history::{Step, What, events};
use core::time::Duration;
use cpe::HomeConfig;
use wire::eth::Tags;
use wire::radius::{Kind, Packet, Value};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Homes at a RADIUS server, with this fallback.
fn world(homes: usize, fallback: &str) -> World {
    let mut w = World::new(homes, Choice::radius());
    let line = format!("set access-profiles pppoe fallback {fallback}");
    w.configure(&[
        &line,
        "set subscriber-profiles gold mtu 1400",
        "set subscriber-profiles gold rate-down 50000",
    ])
    .unwrap();
    w
}

/// The server names a profile, an address and a class.
fn says_gold(w: &mut World) {
    w.radius.accept = vec![
        (Kind::FILTER_ID, "gold".into()),
        (Kind::CLASS, "customer 7".into()),
        (
            Kind::FRAMED_IP_ADDRESS,
            wire::radius::Value::Ipv4([203, 0, 113, 7].into()),
        ),
    ];
}

/// Home 0 leaves, and dials again while no server answers.
fn redial(w: &mut World, dead: bool) {
    w.hang_up(0);
    w.run(30 * SECOND);
    w.radius.dead = dead;
    w.dial(0);
    w.run(60 * SECOND);
}

/// Home 0 is replaced by one that differs.
fn replace(w: &mut World, change: impl FnOnce(&mut HomeConfig)) {
    w.hang_up(0);
    w.run(30 * SECOND);
    let mut config = w.homes[0].config().clone();
    change(&mut config);
    w.homes[0] = cpe::Home::new(config, 9);
}

fn is_in(w: &mut World) -> Option<String> {
    (w.online() == 1).then(|| w.sessions().remove(0).fallback)
}

/// The events of fallbacks in the history.
fn told(w: &World) -> Vec<String> {
    let found = w.history.iter().flat_map(|(_, block)| events(block));
    let found = found.filter_map(|event| match event.what {
        What::Subscriber(_, Step::FellBack { servers, fallback }) => {
            Some(format!("{fallback} {servers:?}"))
        }
        _ => None,
    });
    found.collect()
}

/// Acct-Authentic of the records, in their order.
fn authentic(w: &World) -> Vec<u32> {
    let of = |record: &Packet| radius::number(record, Kind::ACCT_AUTHENTIC);
    w.radius.records.iter().map(of).collect()
}

#[test]
fn without_a_fallback_nobody_comes_in() {
    let mut w = world(1, "reject");
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some(""));
    redial(&mut w, true);
    assert_eq!(is_in(&mut w), None);
    assert!(w.count(Counter::AuthenticationUnavailable) > 0);
}

#[test]
fn the_local_users_answer_when_no_server_does() {
    let mut w = world(1, "local-users");
    w.configure(&[
        "set users home0 password secret0",
        "set users home0 subscriber-profile gold",
    ])
    .unwrap();
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some("local-users"));
    assert_eq!(w.count(Counter::FallbackLocalUsers), 1);
    assert_eq!(w.up.subscribers()[0].forwarding.packets.mtu, Some(1400));
    assert_eq!(told(&w), ["local-users Some(\"radius\")"]);

    // the server answers again: the session stays, and its records say who decided
    w.radius.dead = false;
    w.restart_control_plane();
    w.run(HOUR);
    assert_eq!(is_in(&mut w).as_deref(), Some("local-users"));
    w.hang_up(0);
    w.run(30 * SECOND);
    assert_eq!(authentic(&w), [2, 2]);
}

#[test]
fn the_local_users_refuse_whom_they_do_not_know_and_do_not_answer_for_a_server() {
    let mut w = world(1, "local-users");
    w.configure(&["set users home0 password another"]).unwrap();
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(is_in(&mut w), None);
    assert!(w.count(Counter::AuthenticationRejected) > 0);

    w.configure(&["set users home0 password secret0"]).unwrap();
    w.radius.rejects = true;
    redial(&mut w, false);
    assert_eq!(is_in(&mut w), None, "a server decides if it answers");
    assert_eq!(w.count(Counter::FallbackLocalUsers), 0);
}

#[test]
fn the_last_policy_comes_again_after_a_restart() {
    let mut w = world(1, "last-policy");
    says_gold(&mut w);
    let rule = "deny in tcp from any to any 25";
    let of_subscriber = (Kind::NAS_FILTER_RULE, Value::Octets(rule.into()));
    w.radius.accept.push(of_subscriber);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some(""));
    w.hang_up(0);
    w.run(30 * SECOND);
    w.restart_control_plane();
    redial(&mut w, true);
    assert_eq!(is_in(&mut w).as_deref(), Some("last-policy"));
    assert_eq!(w.count(Counter::FallbackLastPolicy), 1);
    let rules = w.up.subscribers().remove(0).forwarding;
    assert_eq!(rules.packets.mtu, Some(1400));
    assert_eq!(rules.policies.filter_rules, policy::FilterRules::new(rule));
    assert_eq!(w.homes[0].ipv4(), Some([203, 0, 113, 7].into()));
    assert_eq!(told(&w), ["last-policy Some(\"radius\")"]);

    w.radius.dead = false;
    w.run(400 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some("last-policy"), "it stays");
    redial(&mut w, false);
    assert_eq!(is_in(&mut w).as_deref(), Some(""), "the server decides");
    let of_records = authentic(&w);
    assert_eq!(of_records, [1, 1, 2, 2, 1]);
    let class = w.radius.records[2].get(Kind::CLASS);
    assert_eq!(class, Some(&b"customer 7".into()));
    w.assert_balanced();
}

#[test]
fn a_session_timeout_is_granted_again() {
    let mut w = world(1, "last-policy");
    w.radius.accept = vec![(Kind::SESSION_TIMEOUT, 300.into())];
    w.dial(0);
    w.run(200 * SECOND);
    w.radius.dead = true;
    w.begin_ppp_anew(0);
    w.run(250 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some("last-policy"));
    w.run(120 * SECOND);
    assert_eq!(w.online(), 0);
}

#[test]
fn the_last_policy_expires() {
    let mut w = world(1, "last-policy");
    w.configure(&["set access-profiles pppoe fallback-time 2"])
        .unwrap();
    w.dial(0);
    w.run(HOUR);
    redial(&mut w, true);
    assert_eq!(is_in(&mut w).as_deref(), Some("last-policy"));
    // what the fallback gives does not count as an answer of a server
    w.run(HOUR);
    redial(&mut w, true);
    assert_eq!(is_in(&mut w), None);
    let stored = |w: &World| w.store.keys().any(|key| key.starts_with(b"last-answer/"));
    assert!(stored(&w));
    w.plane.handle(w.moment(), Input::Look(Vec::new()));
    w.settle();
    assert!(!stored(&w));
}

#[test]
fn another_name_or_another_line_has_no_last_policy() {
    let cases: [fn(&mut HomeConfig); 4] = [
        |home| home.user = "home1".into(),
        |home| home.tags = Tags::qinq(100, 2),
        |home| home.tags = Tags::qinq(101, 1),
        |home| home.tags = Tags::single(100),
    ];
    for (n, change) in cases.into_iter().enumerate() {
        let mut w = world(1, "last-policy");
        w.dial(0);
        w.run(10 * SECOND);
        replace(&mut w, change);
        redial(&mut w, true);
        assert_eq!(is_in(&mut w), None, "case {n}");
        w.radius.dead = false;
        w.hang_up(0);
        w.run(100 * SECOND); // the server's dead time
        redial(&mut w, false);
        assert_eq!(is_in(&mut w).as_deref(), Some(""), "case {n}");
    }
}

#[test]
fn the_mac_address_counts_only_where_nothing_else_names_the_line() {
    for (tags, comes_in) in [(Tags::qinq(100, 1), true), (Tags::single(100), false)] {
        let mut w = world(1, "last-policy");
        replace(&mut w, |home| home.tags = tags);
        redial(&mut w, false);
        replace(&mut w, |home| home.mac = [2, 0, 0, 0, 0, 77].into());
        redial(&mut w, true);
        assert_eq!(w.online() == 1, comes_in, "{tags:?}");
    }
}

#[test]
fn whom_a_server_has_rejected_since_does_not_come_in() {
    let mut w = world(1, "last-policy");
    w.dial(0);
    w.run(10 * SECOND);
    w.radius.rejects = true;
    redial(&mut w, false);
    w.radius.rejects = false;
    redial(&mut w, true);
    assert_eq!(is_in(&mut w), None);
}

#[test]
fn the_last_answers_are_bounded() {
    let mut w = world(3, "last-policy");
    w.configure(&["set limits sessions 2"]).unwrap();
    for n in 0..3 {
        w.dial(n);
        w.run(10 * SECOND);
        w.hang_up(n);
        w.run(30 * SECOND);
    }
    let keys = w.store.keys();
    let answers = keys.filter(|key| key.starts_with(b"last-answer/"));
    assert_eq!(answers.count(), 2);
    assert_eq!(w.count(Counter::LastAnswersFull), 1);
}

#[test]
fn nothing_is_kept_without_the_setting_and_no_password_is_ever() {
    let mut w = world(1, "local-users");
    w.dial(0);
    w.run(10 * SECOND);
    assert!(!w.store.keys().any(|key| key.starts_with(b"last-answer/")));
    let mut w = world(1, "last-policy");
    w.dial(0);
    w.run(10 * SECOND);
    let mut records = w.store.iter().flat_map(|(key, value)| [key, value]);
    let secret = b"secret0";
    assert!(!records.any(|octets| octets.windows(7).any(|part| part == secret)));
}

#[test]
fn servers_that_are_known_to_be_dead_are_not_waited_for() {
    let mut w = world(1, "last-policy");
    w.dial(0);
    w.run(10 * SECOND);
    redial(&mut w, true);
    w.hang_up(0);
    w.run(10 * SECOND);
    w.asked.retain(|(_, _, code)| *code != 1);
    w.dial(0);
    w.run(3 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some("last-policy"));
    let asked = |w: &World| w.asked.iter().any(|(_, _, code)| *code == 1);
    assert!(!asked(&w));

    // after the dead time a request asks again
    w.hang_up(0);
    w.run(60 * SECOND);
    w.radius.dead = false;
    w.dial(0);
    w.run(3 * SECOND);
    assert_eq!(is_in(&mut w).as_deref(), Some(""));
    assert!(asked(&w));
}

/// More subscribers than a server may be asked about at a time: who hangs up before it was asked is not asked about.
#[test]
fn whoever_has_gone_is_not_asked_about() {
    let mut w = World::new(1100, Choice::radius());
    w.radius.dead = true;
    (0..1100).for_each(|n| w.dial(n));
    w.run(SECOND);
    (0..1100).for_each(|n| w.hang_up(n));
    w.radius.dead = false;
    w.run(120 * SECOND);
    let asked = w.radius.requests.len();
    assert!((1..=1024).contains(&asked), "{asked}");
    assert_eq!(w.sessions().len(), 0);
    w.assert_balanced();
}
