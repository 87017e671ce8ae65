//! Set-ups that fail again and again, and lines whose logins are rejected.

use crate::leaves::probes::connects_in_silence;
use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::{Offender, Refusal, Request, Response};
use wire::eth::Tags;

const SECOND: Duration = Duration::from_secs(1);

/// Home `n` becomes this one.
fn replace(w: &mut World, n: usize, change: impl FnOnce(HomeConfig) -> HomeConfig) {
    let config = change(w.homes[n].config().clone());
    w.homes[n] = Home::new(config, w.now.as_millis() as u64);
}

fn forgets_its_password(config: HomeConfig) -> HomeConfig {
    HomeConfig {
        password: "wrong".into(),
        ..config
    }
}

/// Whether a new attempt of a home gets an answer within a second.
fn is_answered(w: &mut World, n: usize) -> bool {
    w.switch_off_and_on(n);
    w.heard.clear();
    w.dial(n);
    w.run(SECOND);
    !w.heard.is_empty()
}

/// Rows of `show protection`.
fn shown(w: &World) -> Vec<Offender> {
    let planes = w.plane.overview(w.now).user_planes;
    planes
        .into_iter()
        .flat_map(|plane| plane.offenders)
        .collect()
}

#[test]
fn a_home_that_is_rejected_again_and_again_is_answered_ever_later() {
    let mut w = World::new(2, Choice::default());
    replace(&mut w, 0, forgets_its_password);
    let mut attempts = Vec::new();
    for _ in 0..200 {
        attempts.push(is_answered(&mut w, 0));
    }
    let answered: Vec<usize> = (0..200).filter(|second| attempts[*second]).collect();
    // after the fifth 5 s, then twice as long each time, 60 s at most
    assert_eq!(answered, [0, 1, 2, 3, 4, 9, 19, 39, 79, 139, 199]);
    assert_eq!(w.count(Counter::AuthenticationRejected), 11);
    assert_eq!(w.count(Counter::SetupBackOff), 189);

    let rows = shown(&w);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    let Offender {
        kind, level, mac, ..
    } = &rows[0];
    assert_eq!((kind.as_str(), level.as_str()), ("failed-set-ups", "mac"));
    assert_eq!(*mac, w.homes[0].config().mac.to_string());
    assert_eq!((rows[0].s_tag, rows[0].c_tag), (Some(100), Some(1)));
    assert_eq!((rows[0].dropped, rows[0].holds), (189, 7));
    assert!((55..=60).contains(&rows[0].held_seconds), "{rows:#?}");
    assert!(is_answered(&mut w, 1), "another home is not concerned");
    w.assert_balanced();
}

#[test]
fn a_login_that_succeeds_is_a_new_beginning() {
    let mut w = World::new(1, Choice::default());
    let right = w.homes[0].config().clone();
    for _ in 0..3 {
        replace(&mut w, 0, forgets_its_password);
        assert!((0..4).all(|_| is_answered(&mut w, 0)));
        w.homes[0] = Home::new(right.clone(), w.now.as_millis() as u64);
        w.dial_all();
        assert_eq!(w.online(), 1);
        w.hang_up(0);
        w.run(SECOND);
    }
    assert_eq!(w.count(Counter::SetupBackOff), 0);
    assert!(shown(&w).is_empty());
}

/// Home 3 is on the line of home 0, and changes its MAC address with each of so many logins. Returns how many got to their rejection.
fn fails_with_new_addresses(w: &mut World, logins: u8) -> u64 {
    let tags = w.homes[0].config().tags;
    let before = w.count(Counter::AuthenticationRejected);
    for n in 0..logins {
        replace(w, 3, |config| HomeConfig {
            tags,
            mac: [2, 0, 0, 9, 9, n].into(),
            ..forgets_its_password(config)
        });
        is_answered(w, 3);
    }
    w.hang_up(3);
    w.count(Counter::AuthenticationRejected) - before
}

#[test]
fn a_line_on_which_ever_new_addresses_fail_backs_off() {
    let mut w = World::new(4, Choice::default());
    w.configure(&["set access-profiles pppoe sessions-per-mac 2"])
        .unwrap();
    w.dial_all();
    w.hang_up(2);
    w.hang_up(3);
    w.run(SECOND);
    let tags = w.homes[0].config().tags;
    replace(&mut w, 2, |config| HomeConfig { tags, ..config });
    assert_eq!(fails_with_new_addresses(&mut w, 22), 20);
    assert_eq!(w.count(Counter::SetupBackOff), 2);
    let rows = shown(&w);
    let row = |of: &Offender| (of.kind.clone(), of.level.clone(), of.dropped, of.holds);
    let expected = ("failed-set-ups".into(), "line".into(), 2, 1);
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), [expected]);
    assert!(!is_answered(&mut w, 2), "nobody of the line is answered");
    assert!(is_answered(&mut w, 1), "another line is not concerned");
    assert_eq!(
        w.homes[0].state(),
        State::Online,
        "established sessions stay"
    );

    w.run(5 * SECOND);
    assert!(is_answered(&mut w, 2));
    assert_eq!(w.homes[2].state(), State::Online, "until its time is over");
    let failed = fails_with_new_addresses(&mut w, 20);
    assert_eq!(failed, 20, "a login that succeeds is a new beginning");
    w.assert_balanced();
}

#[test]
fn an_address_that_fails_does_not_keep_the_others_of_its_line_out() {
    let mut w = World::new(2, Choice::default());
    let tags = w.homes[0].config().tags;
    replace(&mut w, 1, |config| HomeConfig { tags, ..config });
    replace(&mut w, 0, forgets_its_password);
    for _ in 0..400 {
        is_answered(&mut w, 0);
    }
    assert!(w.count(Counter::SetupBackOff) > 300);
    w.dial(1);
    w.run(SECOND);
    assert_eq!(w.homes[1].state(), State::Online);
}

#[test]
fn a_line_is_locked_out_and_its_sessions_stay() {
    let mut w = World::new(4, Choice::default());
    w.configure(&[
        "set access-profiles pppoe lock-out after 3",
        "set access-profiles pppoe sessions-per-mac 2",
    ])
    .unwrap();
    w.dial_all();
    w.hang_up(1);
    w.hang_up(2);
    w.run(SECOND);
    // three homes are one: the first is online on the line on which another one changes its address with every login
    let tags = w.homes[0].config().tags;
    replace(&mut w, 2, |config| HomeConfig { tags, ..config });
    for n in 0..3 {
        replace(&mut w, 1, |config| HomeConfig {
            tags,
            mac: [2, 0, 0, 9, 9, n].into(),
            ..forgets_its_password(config)
        });
        assert!(is_answered(&mut w, 1));
    }
    assert!(!is_answered(&mut w, 2), "nobody of the line is answered");
    assert_eq!(w.count(Counter::LineLockedOut), 1);
    assert_eq!(w.homes[0].state(), State::Online);
    let rows = shown(&w);
    assert_eq!(
        (rows[0].kind.as_str(), rows[0].level.as_str()),
        ("failed-logins", "line")
    );
    assert!((890..=900).contains(&rows[0].held_seconds));

    w.run(880 * SECOND);
    assert!(!is_answered(&mut w, 2));
    w.run(20 * SECOND);
    assert!(is_answered(&mut w, 2), "until its time is over");
    assert_eq!(w.homes[0].state(), State::Online);
    w.assert_balanced();
}

#[test]
fn another_rule_ends_what_is_held() {
    let mut w = World::new(1, Choice::default());
    w.configure(&["set access-profiles pppoe lock-out after 2"])
        .unwrap();
    replace(&mut w, 0, forgets_its_password);
    assert!(is_answered(&mut w, 0) && is_answered(&mut w, 0));
    assert!(!is_answered(&mut w, 0));
    w.configure(&["set access-profiles pppoe lock-out after 0"])
        .unwrap();
    assert!(is_answered(&mut w, 0));
    assert!(shown(&w).is_empty());
}

#[test]
fn an_operator_ends_what_is_held_by_mac_address_or_line() {
    let mut w = World::new(1, Choice::default());
    w.configure(&["set access-profiles pppoe lock-out after 3"])
        .unwrap();
    replace(&mut w, 0, forgets_its_password);
    let mac = w.homes[0].config().mac.to_string();
    let clear = |w: &mut World, who: &str| w.call(Request::ClearBackOff { who: who.into() });
    for who in ["up1/access0.100.1", &mac] {
        while is_answered(&mut w, 0) {}
        let other = clear(&mut w, "up1/access0.100.2");
        assert!(matches!(other, Err(Refusal::NotFound(_))), "{other:?}");
        assert!(!is_answered(&mut w, 0));
        assert_eq!(clear(&mut w, who), Ok(Response::Done));
        assert!(is_answered(&mut w, 0));
    }
}

#[test]
fn on_a_shared_vlan_nobody_is_held_by_a_mac_address_alone() {
    let mut w = World::new(1, Choice::default());
    w.configure(&["set access-profiles pppoe lock-out after 1"])
        .unwrap();
    replace(&mut w, 0, |config| HomeConfig {
        tags: Tags {
            inner: None,
            ..config.tags
        },
        ..forgets_its_password(config)
    });
    assert!((0..20).all(|_| is_answered(&mut w, 0)));
    assert!(w.count(Counter::AuthenticationRejected) >= 20);
}

#[test]
fn silent_servers_are_not_the_subscribers_fault() {
    let mut w = World::new(1, Choice::radius());
    w.radius.dead = true;
    for _ in 0..8 {
        w.dial(0);
        w.run(60 * SECOND);
    }
    assert!(w.count(Counter::AuthenticationUnavailable) >= 6);
    assert_eq!(w.count(Counter::SetupBackOff), 0);
}

#[test]
fn whoever_gives_up_while_the_servers_are_silent_does_not_back_off() {
    let mut w = World::new(2, Choice::radius());
    w.radius.dead = true;
    for _ in 0..8 {
        assert!(is_answered(&mut w, 0), "switched off and on");
        w.dial(1);
        w.run(SECOND);
        w.hang_up(1);
        w.run(SECOND);
    }
    assert!(w.count(Counter::Redialled) >= 7);
    assert_eq!(w.count(Counter::SetupBackOff), 0);
    w.radius.dead = false;
    w.dial_all();
    w.run(60 * SECOND);
    w.dial_all();
    assert_eq!(w.online(), 2);
}

#[test]
fn a_client_that_says_nothing_after_pads_again_and_again_backs_off() {
    let mut w = World::new(4, Choice::default());
    for _ in 0..8 {
        connects_in_silence(&mut w);
    }
    let rows = shown(&w);
    assert_eq!(
        (rows[0].kind.as_str(), rows[0].holds),
        ("failed-set-ups", 4)
    );
}
