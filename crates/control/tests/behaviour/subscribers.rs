//! Subscribers with several sessions: what tells them apart, what their user plane is told, and how many sessions they may have.

use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use cpe::{Home, HomeConfig, State};
use northbound::{FindSubscriberResponse, Request, Response};
use std::collections::BTreeSet;
use wire::eth::Tags;
use wire::radius::{Kind, Value};

const WHILE: Duration = Duration::from_secs(30);
const BY_NAME: &str = "set access-profiles pppoe subscriber-identity user-name";

/// The home dials in from the line of these VLAN ids, as this user.
fn move_home(w: &mut World, home: usize, c_tag: u16, user: usize) {
    let config = HomeConfig {
        tags: Tags::qinq(100, c_tag),
        user: format!("home{user}"),
        password: format!("secret{user}"),
        ..w.homes[home].config().clone()
    };
    w.homes[home] = Home::new(config, home as u64);
}

/// What each home's subscriber is known by, with its handle, in the order of the homes.
fn subscribers(w: &mut World) -> Vec<(String, u32)> {
    let mut sessions = w.sessions();
    sessions.sort_by(|a, b| a.mac.cmp(&b.mac));
    let known = sessions.into_iter();
    known
        .map(|s| (s.subscriber, s.subscriber_handle.expect("a handle")))
        .collect()
}

/// The handles that the user plane was told, each once.
fn told(w: &World) -> BTreeSet<u32> {
    let rules = w.up.subscribers().into_iter();
    rules.filter_map(|rules| rules.subscriber).collect()
}

fn find(w: &mut World, subscriber: &str) -> FindSubscriberResponse {
    let subscriber = subscriber.into();
    match w.call(Request::FindSubscriber {
        subscriber,
        from: 0,
    }) {
        Ok(Response::Subscriber { found, .. }) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_sessions_of_one_line_are_one_subscriber() {
    let mut w = World::new(3, Choice::default());
    move_home(&mut w, 1, 1, 1);
    w.dial_all();
    let own = subscribers(&mut w);
    let names: Vec<&str> = own.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        [
            "up1/access0.100.1",
            "up1/access0.100.1",
            "up1/access0.100.3"
        ]
    );
    assert_eq!(own[0].1, own[1].1);
    assert_ne!(own[0].1, own[2].1);
    assert_eq!(told(&w), BTreeSet::from([own[0].1, own[2].1]));
    w.assert_balanced();

    let found = find(&mut w, "home0").subscribers;
    let siblings: Vec<bool> = found.iter().map(|state| state.sibling).collect();
    assert_eq!(siblings, [false, true]);
    let by_line = find(&mut w, "up1/access0.100.1").subscribers;
    assert_eq!(by_line.iter().filter(|state| !state.sibling).count(), 2);
    assert_eq!(find(&mut w, "home2").subscribers.len(), 1);

    w.hang_up(0);
    w.run(WHILE);
    assert_eq!(subscribers(&mut w), own[1..]);
    w.hang_up(1);
    w.hang_up(2);
    w.run(WHILE);
    assert_eq!(w.sessions(), []);
    w.assert_balanced();
}

#[test]
fn a_restarted_control_plane_knows_the_handles() {
    let mut w = World::new(4, Choice::default());
    move_home(&mut w, 3, 2, 3);
    w.dial_all();
    w.hang_up(0);
    w.run(WHILE);
    let (own, names) = (subscribers(&mut w), w.up.names());
    assert_eq!(own[0], own[2]);
    w.restart_control_plane();
    w.run(WHILE);
    assert_eq!(subscribers(&mut w), own);
    assert_eq!(w.up.names(), names, "it was told nothing again");
    w.dial(0);
    w.run(WHILE);
    let handles: BTreeSet<u32> = subscribers(&mut w).into_iter().map(|(_, id)| id).collect();
    assert_eq!((handles.len(), &told(&w)), (3, &handles));
    w.assert_balanced();
}

#[test]
fn the_sessions_of_one_user_are_one_subscriber_if_that_is_configured() {
    let mut w = World::new(3, Choice::default());
    w.configure(&[BY_NAME]).unwrap();
    move_home(&mut w, 1, 2, 0);
    w.dial_all();
    let own = subscribers(&mut w);
    let names: Vec<&str> = own.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["home0", "home0", "home2"]);
    assert_eq!(own[0].1, own[1].1);
    assert_eq!(told(&w), BTreeSet::from([own[0].1, own[2].1]));
    let rules = w.up.names();
    w.run(WHILE);
    assert_eq!(w.up.names(), rules, "no audit found a difference");
    // those that are there keep their identity
    w.configure(&["delete access-profiles pppoe subscriber-identity"])
        .unwrap();
    w.restart_control_plane();
    w.run(WHILE);
    assert_eq!(subscribers(&mut w), own);
    assert_eq!(w.up.names(), rules);
    w.assert_balanced();
}

#[test]
fn a_line_has_as_many_sessions_as_it_may() {
    let mut w = World::new(3, Choice::default());
    w.configure(&["set access-profiles pppoe sessions-per-subscriber 1"])
        .unwrap();
    move_home(&mut w, 1, 1, 1);
    w.dial(0);
    w.dial(1);
    w.dial(2);
    w.run(WHILE);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_ne!(w.homes[1].state(), State::Online);
    assert_eq!(w.homes[2].state(), State::Online, "another line");
    assert!(w.count(Counter::SubscriberLimit) >= 1);
    // a router that starts again takes the place of its own session
    w.switch_off_and_on(0);
    w.dial(0);
    w.run(WHILE);
    assert_eq!(w.homes[0].state(), State::Online);
    w.hang_up(0);
    w.dial(1);
    w.run(WHILE);
    assert_eq!(w.homes[1].state(), State::Online, "there is room again");
    w.assert_balanced();
}

/// By the access line, and by the user name.
#[test]
fn a_subscriber_has_as_many_sessions_as_aaa_allows() {
    for by_name in [false, true] {
        let mut w = World::new(3, Choice::radius());
        if by_name {
            w.configure(&[BY_NAME]).unwrap();
            move_home(&mut w, 1, 2, 0);
            move_home(&mut w, 2, 3, 0);
        } else {
            move_home(&mut w, 1, 1, 1);
            move_home(&mut w, 2, 1, 2);
        }
        w.radius.accept = vec![(Kind::PORT_LIMIT, 2.into())];
        w.dial_all();
        assert_eq!(w.online(), 2);
        assert!(w.count(Counter::SubscriberLimit) >= 1);
        // who is in counts only once when it begins PPP anew
        w.begin_ppp_anew(0);
        w.run(WHILE);
        assert_eq!(w.online(), 2);
        let out = w.homes.iter().position(|h| h.state() != State::Online);
        w.radius.accept.clear();
        w.dial(out.unwrap());
        w.run(WHILE);
        assert_eq!(w.online(), 3, "no limit");
        w.assert_balanced();
    }
}

#[test]
fn a_user_has_as_many_sessions_as_it_may() {
    let mut w = World::new(3, Choice::default());
    let limit = "set access-profiles pppoe sessions-per-subscriber 2";
    w.configure(&[BY_NAME, limit]).unwrap();
    move_home(&mut w, 1, 2, 0);
    move_home(&mut w, 2, 3, 0);
    w.dial_all();
    assert_eq!(w.online(), 2);
    assert!(w.count(Counter::SubscriberLimit) >= 1);
    let before = subscribers(&mut w).len();
    assert_eq!(before, 2, "the third is not one of its sessions");
    let online = |w: &World| {
        let homes = w.homes.iter().enumerate();
        let online = homes.filter(|(_, home)| home.state() == State::Online);
        online.map(|(n, _)| n).collect::<Vec<_>>()
    };
    w.hang_up(online(&w)[0]);
    w.run(Duration::from_secs(5));
    w.dial(2);
    w.run(WHILE);
    assert!(online(&w).contains(&2), "there is room again");
    w.assert_balanced();
}

/// Also where a subscriber is known by its line.
#[test]
fn a_user_name_has_as_many_sessions_on_all_lines_as_it_may() {
    let mut w = World::new(3, Choice::default());
    w.configure(&["set access-profiles pppoe sessions-per-user 1"])
        .unwrap();
    move_home(&mut w, 1, 2, 0);
    w.dial(0);
    w.run(WHILE);
    w.dial(1);
    w.dial(2);
    w.run(WHILE);
    let states = |w: &World| [0, 1, 2].map(|n: usize| w.homes[n].state() == State::Online);
    assert_eq!(states(&w), [true, false, true], "another name is no matter");
    assert!(w.count(Counter::SubscriberLimit) >= 1);
    w.assert_balanced();
    // who is in counts only once, also after a restart
    w.restart_control_plane();
    w.run(WHILE);
    w.begin_ppp_anew(0);
    w.dial(1);
    w.run(WHILE);
    assert_eq!(states(&w), [true, false, true]);
    w.hang_up(0);
    w.run(WHILE);
    w.dial(1);
    w.run(WHILE);
    assert_eq!(states(&w), [false, true, true], "there is room again");
    // a wrong password locks nobody out
    w.hang_up(1);
    w.run(WHILE);
    let wrong = HomeConfig {
        password: "wrong".into(),
        ..w.homes[0].config().clone()
    };
    w.homes[0] = Home::new(wrong, 5);
    w.dial(0);
    w.dial(1);
    w.run(WHILE);
    assert_eq!(states(&w), [false, true, true]);
    w.assert_balanced();
}

/// Acct-Multi-Session-Id of the records so far.
fn multi_session_ids(w: &World) -> Vec<String> {
    let records = w.radius.records.iter();
    let ids = records.map(|record| match record.get(Kind::ACCT_MULTI_SESSION_ID) {
        Some(Value::Text(id)) => id.clone(),
        other => panic!("{other:?}"),
    });
    ids.collect()
}

#[test]
fn sessions_of_a_subscriber_that_overlap_have_one_multi_session_id() {
    for identity in ["line", "user-name"] {
        let mut w = World::new(3, Choice::radius());
        let line = format!("set access-profiles pppoe subscriber-identity {identity}");
        w.configure(&[&line]).unwrap();
        move_home(&mut w, 1, 1, 0);
        w.dial_all();
        let ids = multi_session_ids(&w);
        assert_eq!(ids.len(), 3);
        assert!(ids[0] == ids[1] && ids[0] != ids[2], "{ids:?}");

        // the first session ends, and another begins after a restart: the id stays as long as the subscriber has a session
        w.hang_up(0);
        w.run(WHILE);
        w.restart_control_plane();
        w.run(WHILE);
        w.dial(0);
        w.run(WHILE);
        w.hang_up(0);
        w.hang_up(1);
        w.run(WHILE);
        let later = multi_session_ids(&w).split_off(3);
        assert_eq!(later, [&*ids[0]; 4], "Stop, Start, Stop, Stop");

        // without a session, the subscriber is another one
        w.dial(0);
        w.run(WHILE);
        let last = multi_session_ids(&w).pop().unwrap();
        assert!(!ids.contains(&last), "{last} {ids:?}");
    }
}
