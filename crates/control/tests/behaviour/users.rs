//! The configured users say everything that a RADIUS server can say, and their sessions follow them.

use crate::world::{Choice, World};
use control::counters::Counter;
use control::history::{Step, What, events};
use control::plane::MOST_VERIFICATIONS;
use core::time::Duration;
use northbound::Effect;

const SECOND: Duration = Duration::from_secs(1);

fn online(homes: usize) -> World {
    let mut w = World::new(homes, Choice::default());
    w.configure(&["set subscriber-profiles gold mtu 1400"])
        .unwrap();
    w.dial_all();
    assert_eq!(w.online(), homes);
    w
}

fn texts(effects: &[Effect]) -> String {
    let texts: Vec<&str> = effects.iter().map(|effect| &*effect.text).collect();
    texts.join("\n")
}

/// MTU and rate of the sessions at the user plane, in the order of their MAC addresses.
fn at_user_plane(w: &World) -> Vec<(Option<u16>, Option<u64>)> {
    let mut rules = w.up.subscribers();
    rules.sort_by_key(|rules| rules.circuit.mac.0);
    let packets = rules.iter().map(|rules| rules.forwarding.packets);
    packets
        .map(|p| (p.mtu, p.rate_down.map(|rate| rate.get())))
        .collect()
}

#[test]
fn a_change_of_a_user_reaches_its_sessions_and_no_other() {
    let mut w = online(2);
    let ids = |w: &mut World| -> Vec<String> { w.sessions().into_iter().map(|s| s.id).collect() };
    let before = ids(&mut w);
    let effects = w
        .configure(&[
            "set users home0 subscriber-profile gold",
            "set users home0 rate-down 20000",
            "set users home0 session-timeout 600",
        ])
        .unwrap();
    let said = texts(&effects);
    for expected in [
        "the MTU of 1 session of profile gold changes",
        "the rate down of 1 session of profile gold changes",
        "the session timeout of 1 session of profile gold changes",
        "user home0 changed: a new password, pools, routes and fixed addresses apply to new sessions, all else now",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    w.run(SECOND);
    assert_eq!(
        at_user_plane(&w),
        [(Some(1400), Some(20_000)), (Some(1492), None)]
    );

    // it is the configuration's, not the session's: after a restart, too
    w.restart_control_plane();
    w.run(SECOND);
    w.configure(&["set users home0 rate-down 30000"]).unwrap();
    w.run(SECOND);
    assert_eq!(at_user_plane(&w)[0], (Some(1400), Some(30_000)));
    assert_eq!(ids(&mut w), before, "no session began anew");
    w.run(700 * SECOND);
    assert_eq!(w.online(), 1, "its time is over");
}

#[test]
fn a_users_value_comes_before_its_profiles_and_gives_way_again() {
    let mut w = online(1);
    w.configure(&[
        "set subscriber-profiles home rate-down 50000",
        "set users home0 rate-down 0",
    ])
    .unwrap();
    w.run(SECOND);
    assert_eq!(at_user_plane(&w)[0].1, None, "0 is no limit");
    w.configure(&["delete users home0 rate-down"]).unwrap();
    w.run(SECOND);
    assert_eq!(at_user_plane(&w)[0].1, Some(50_000));
}

#[test]
fn addresses_pools_and_routes_wait_for_the_next_session() {
    let mut w = online(1);
    let before = w.sessions().remove(0);
    w.configure(&[
        "set ipv4-pools more prefix 100.80.0.0/24",
        "set subscriber-profiles home ipv4-pools homes",
        "set users home0 ipv4-pools more",
        "set users home0 ipv6-prefix 2001:db8:9:1::/64",
        "set users home0 routes 203.0.113.0/28",
        "set users home0 routes 2001:db8:77::/48",
    ])
    .unwrap();
    w.run(SECOND);
    let same = w.sessions().remove(0);
    assert_eq!(
        (same.ipv4, same.routes.len()),
        (before.ipv4, 0),
        "it keeps what it has"
    );
    w.hang_up(0);
    w.run(30 * SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    let after = w.sessions().remove(0);
    assert!(after.ipv4.unwrap().starts_with("100.80.0."));
    assert_eq!(after.ipv6_prefix.as_deref(), Some("2001:db8:9:1::/64"));
    assert_eq!(after.routes, ["203.0.113.0/28", "2001:db8:77::/48"]);
    w.assert_balanced();
}

#[test]
fn a_deleted_user_is_told_before_and_its_sessions_end() {
    let mut w = online(3);
    let effects = w.configure(&["delete users home1"]).unwrap();
    let ending: Vec<&Effect> = effects.iter().filter(|effect| effect.ends).collect();
    let [ending] = ending[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(ending.sessions, 1);
    assert_eq!(ending.text, "1 session of user home1, who is deleted, ends");
    assert!(texts(&effects).contains("user home1 deleted"));
    w.run(30 * SECOND);
    assert_eq!((w.online(), w.plane.session_count()), (2, 2));
    let effects = w.configure(&["delete users"]).unwrap();
    assert!(texts(&effects).contains("2 sessions of 2 users, who are deleted, end"));
    w.run(30 * SECOND);
    assert_eq!(w.plane.session_count(), 0);
    w.assert_balanced();
}

#[test]
fn the_session_of_a_user_who_was_deleted_during_a_crash_ends() {
    let mut w = online(2);
    // the version is on the disk, and the control plane dies before it applies it
    let mut tree = w.tree.clone();
    let edit = config::Edit::parse("delete users home0").unwrap();
    edit.apply(&mut tree).unwrap();
    w.configuration = config::check::check(&tree).unwrap().configuration;
    w.restart_control_plane();
    w.run(30 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(w.plane.session_count(), 1);
}

#[test]
fn sessions_that_a_server_accepted_do_not_follow_a_user_of_that_name() {
    let mut w = World::new(1, Choice::radius());
    w.configure(&["set users home0 password x"]).unwrap();
    w.dial_all();
    w.configure(&["set users home0 rate-down 20000"]).unwrap();
    w.run(SECOND);
    assert_eq!(at_user_plane(&w)[0].1, None);
    w.configure(&["delete users home0"]).unwrap();
    w.run(30 * SECOND);
    assert_eq!(w.online(), 1);
}

/// Hash of `secret0` at the least cost.
const HASH: &str =
    "$argon2id$v=19$m=8,t=1,p=1$FGlR94HPfinQU2dzFhSyaQ$5snSihf56S7STeBMShxiTQ15t3LjxRQE4z0sOzVONFQ";

/// A home whose user has a hash, and that proves itself by PAP.
fn hashed() -> World {
    let mut w = World::new(1, Choice::default());
    w.configure(&[
        "set access-profiles pppoe authentication pap",
        "delete users home0 password",
        &format!("set users home0 password-hash {HASH}"),
    ])
    .unwrap();
    w
}

/// Why subscribers were refused.
pub fn refusals(w: &World) -> Vec<String> {
    let found = w.history.iter().flat_map(|(_, block)| events(block));
    let found = found.filter_map(|event| match event.what {
        What::Subscriber(_, Step::Refused { why, .. }) => Some(why.to_owned()),
        _ => None,
    });
    found.collect()
}

#[test]
fn a_hashed_password_is_verified_outside_and_only_the_right_one_comes_in() {
    let mut w = hashed();
    w.verifiers_stall = true;
    w.dial(0);
    w.run(2 * SECOND);
    assert_eq!((w.online(), w.to_verify.len()), (0, 1));
    assert!(!format!("{:?}", w.to_verify).contains("secret0"));
    w.verifiers_stall = false;
    w.run(5 * SECOND);
    assert_eq!(w.online(), 1);

    w.hang_up(0);
    w.run(10 * SECOND);
    let mut config = w.homes[0].config().clone();
    config.password = "secret1".into();
    w.homes[0] = cpe::Home::new(config, 3);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    assert_eq!(
        refusals(&w).last().unwrap(),
        "no local user has this name and password"
    );
    w.assert_balanced();
}

#[test]
fn chap_is_refused_by_name_for_a_user_with_a_hash() {
    let mut w = hashed();
    w.configure(&[
        "delete access-profiles pppoe authentication",
        "set access-profiles pppoe authentication chap",
    ])
    .unwrap();
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    let why = refusals(&w).remove(0);
    assert!(
        why.contains("`password-hash`, which only PAP can use"),
        "{why}"
    );
    assert!(w.to_verify.is_empty());
}

#[test]
fn a_password_that_is_verified_too_late_lets_nobody_in() {
    let mut w = hashed();
    w.verifiers_stall = true;
    w.dial(0);
    w.run(6 * SECOND);
    assert_eq!(w.count(Counter::PasswordLate), 1);
    assert_eq!(refusals(&w)[0], "the password was not verified in time");
    w.hang_up(0);
    w.run(30 * SECOND);
    w.verifiers_stall = false;
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    assert_eq!(w.plane.session_count(), 0);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1, "the next one is verified");
}

#[test]
fn passwords_beyond_the_bound_are_refused_at_once() {
    let homes = MOST_VERIFICATIONS + 2;
    let mut w = World::new(homes, Choice::default());
    // one hash is enough: names that nobody has cost as much
    w.configure(&[
        "set access-profiles pppoe authentication pap",
        "delete users",
        &format!("set users home0 password-hash {HASH}"),
    ])
    .unwrap();
    w.verifiers_stall = true;
    (0..homes).for_each(|n| w.dial(n));
    w.run(2 * SECOND);
    assert_eq!(w.to_verify.len(), MOST_VERIFICATIONS);
    assert!(w.count(Counter::PasswordQueueFull) >= 2);
    w.verifiers_stall = false;
    w.run(60 * SECOND);
    assert_eq!(w.online(), 1);
    assert!(w.to_verify.is_empty());
}

#[test]
fn the_fallback_to_local_users_verifies_hashes_too() {
    let mut w = World::new(1, Choice::radius());
    w.configure(&[
        "set access-profiles pppoe authentication pap",
        "set access-profiles pppoe fallback local-users",
        &format!("set users home0 password-hash {HASH}"),
    ])
    .unwrap();
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(w.sessions().remove(0).fallback, "local-users");
}

#[test]
fn a_hash_that_costs_too_much_is_refused_at_the_commit() {
    let mut w = hashed();
    let costly = HASH.replace("m=8", "m=1000000");
    let line = format!("set users home0 password-hash {costly}");
    let faults = w.configure(&[&line]).unwrap_err();
    assert!(faults[0].message.contains("at most 65536"), "{faults:?}");
    let faults = w.configure(&["set users home0 password x"]).unwrap_err();
    assert!(faults[0].message.contains("expected one of them"));
    let faults = w
        .configure(&["delete users home0 password-hash"])
        .unwrap_err();
    assert!(faults[0].message.contains("neither"), "{faults:?}");
}
