//! Sessions that an administrator ends by a filter.

use crate::world::{Choice, World};
use core::time::Duration;
use northbound::{ClearSessionsResponse, Refusal, Request, Response, SessionClear, SessionFilter};

const SECOND: Duration = Duration::from_secs(1);

fn filter(user_prefix: &str) -> SessionFilter {
    SessionFilter {
        user_prefix: user_prefix.into(),
        ..SessionFilter::default()
    }
}

fn ids(w: &mut World, filter: SessionFilter) -> Vec<u64> {
    match w.call(Request::MatchSessions {
        from: 0,
        filter: Box::new(filter),
    }) {
        Ok(Response::Matches { ids, next: None }) => ids,
        other => panic!("{other:?}"),
    }
}

fn clear(w: &mut World, user_prefix: &str, rate: u32) -> Result<ClearSessionsResponse, Refusal> {
    let filter = filter(user_prefix);
    let request = Request::ClearSessions {
        ids: ids(w, filter.clone()),
        filter: Box::new(filter),
        rate,
        by: "alice".into(),
    };
    match w.call(request)? {
        Response::Clearing(told) => Ok(told),
        other => panic!("{other:?}"),
    }
}

fn rows(w: &mut World) -> Vec<SessionClear> {
    match w.call(Request::ListSessionClears) {
        Ok(Response::SessionClears { clears }) => clears,
        other => panic!("{other:?}"),
    }
}

fn last(w: &mut World) -> SessionClear {
    rows(w).swap_remove(0)
}

/// Homes that stay away when they were disconnected.
fn world(homes: usize) -> World {
    let mut w = World::new(homes, Choice::default());
    w.dial_all();
    assert_eq!(w.online(), homes);
    w
}

#[test]
fn those_that_matched_end_at_the_rate_and_nobody_else() {
    let mut w = world(21);
    let told = clear(&mut w, "home1", 2).unwrap();
    // home1 and home10 to home19
    assert_eq!((told.sessions, told.rate), (11, 2));
    w.run(SECOND);
    let row = last(&mut w);
    assert_eq!(
        (row.by.as_str(), row.filter.as_str()),
        ("alice", "user-prefix home1")
    );
    assert!((2..=4).contains(&row.ended), "{row:?}");
    assert!(
        row.remaining_seconds.is_some_and(|left| left >= 4),
        "{row:?}"
    );
    w.run(6 * SECOND);
    let row = last(&mut w);
    assert_eq!((row.sessions, row.ended, row.gone), (11, 11, 0));
    assert_eq!(row.remaining_seconds, None);
    // who has connected again stays
    let kept = w.sessions();
    let kept = kept
        .iter()
        .filter(|session| !session.user.starts_with("home1"));
    assert_eq!(kept.count(), 10);
    w.run(30 * SECOND);
    assert_eq!(last(&mut w).ended, 11, "nobody ends twice");
    w.assert_balanced();
}

#[test]
fn a_clear_is_stopped_and_keeps_out_a_second_one_meanwhile() {
    let mut w = world(8);
    let stop = |w: &mut World| w.call(Request::StopClear { by: "bob".into() });
    assert!(matches!(stop(&mut w), Err(Refusal::NotFound(_))));
    clear(&mut w, "home", 1).unwrap();
    match clear(&mut w, "home", 1) {
        Err(Refusal::Busy(said)) => assert!(said.contains("alice"), "{said}"),
        other => panic!("{other:?}"),
    }
    w.run(2 * SECOND);
    let ended = last(&mut w).ended;
    assert!((1..8).contains(&ended), "{ended}");
    let Ok(Response::Clearing(told)) = stop(&mut w) else {
        panic!("it is under way");
    };
    assert_eq!(told.sessions, 8 - ended);
    w.run(20 * SECOND);
    let row = last(&mut w);
    assert_eq!((row.ended, row.remaining_seconds), (ended, None));
    assert_eq!(row.stopped_by, "bob");
    clear(&mut w, "home", 1000).unwrap();
    assert_eq!(rows(&mut w).len(), 2);
}

#[test]
fn who_goes_by_itself_is_counted_apart_and_few_clears_are_remembered() {
    let mut w = world(3);
    let told = clear(&mut w, "home", 1).unwrap();
    assert_eq!(told.sessions, 3);
    w.hang_up(2);
    w.run(5 * SECOND);
    let row = last(&mut w);
    assert_eq!((row.ended, row.gone), (2, 1));
    for _ in 0..20 {
        clear(&mut w, "nobody", 1).unwrap();
    }
    assert_eq!(rows(&mut w).len(), 16);
}
