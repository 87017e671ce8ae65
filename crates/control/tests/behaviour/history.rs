//! What the history is told of sessions and of the system, whatever dies.

use crate::world::{Choice, World};
use control::history::{Event, Kind, Step, What, events};
use core::time::Duration;
use northbound::{Request, Response};
use session::Cause;
use wire::radius::{Kind as Attribute, Value};

const SECOND: Duration = Duration::from_secs(1);

/// Every event that the history has.
fn told(w: &World) -> Vec<Event<'_>> {
    let blocks = w.history.iter();
    blocks.flat_map(|(_, block)| events(block)).collect()
}

/// The steps of the home of this number.
fn steps(w: &World, n: u8) -> Vec<Step<'_>> {
    let steps = told(w).into_iter().filter_map(|event| match event.what {
        What::Subscriber(who, step) if who.mac[5] == n => Some(step),
        _ => None,
    });
    steps.collect()
}

fn kinds(w: &World) -> Vec<Kind> {
    let kinds = told(w).into_iter().filter_map(|event| match event.what {
        What::System { kind, .. } => Some(kind),
        _ => None,
    });
    kinds.collect()
}

#[test]
fn a_session_that_comes_and_goes_is_told_with_its_addresses_and_its_end() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    let rows = w.sessions();
    w.hang_up(0);
    let id = rows[1].id.clone();
    let by = "alice".into();
    w.call(Request::ClearSession { id, by }).unwrap();
    w.run(10 * SECOND);
    for (n, row) in rows.iter().enumerate() {
        let steps = steps(&w, n as u8);
        // one family opens first, the other one joins it
        assert!(matches!(steps[0], Step::Online { .. }), "{steps:?}");
        let last = steps.iter().rev().find_map(|step| match step {
            Step::Online { bindings, .. } | Step::Changed { bindings, .. } => Some(bindings),
            _ => None,
        });
        let last = last.unwrap();
        assert_eq!(last.ipv4().map(|a| a.to_string()), row.ipv4);
        assert_eq!(last.ipv6().map(|p| p.to_string()), row.ipv6_prefix);
    }
    let end = |n| match steps(&w, n).iter().rev().nth(1) {
        Some(Step::Ended {
            cause,
            by,
            bindings,
            ..
        }) => Some((*cause, by.map(str::to_owned), bindings.ipv4().is_some())),
        _ => None,
    };
    assert_eq!(end(0), Some((Cause::UserRequest, None, true)));
    assert_eq!(
        end(1),
        Some((Cause::AdminReset, Some("alice".into()), true))
    );
    assert_eq!(end(2), None);
    // its traffic is known when the user plane has deleted it
    for n in 0..2 {
        let steps = steps(&w, n);
        let Some(Step::Counted {
            started,
            ended,
            cause,
            bindings,
            ..
        }) = steps.last()
        else {
            panic!("{steps:?}");
        };
        let Some(Step::Ended {
            started: began,
            cause: why,
            bindings: had,
            ..
        }) = steps.iter().rev().nth(1)
        else {
            panic!("{steps:?}");
        };
        assert_eq!((started, cause, bindings), (began, why, had));
        assert!(started <= ended, "{steps:?}");
    }
}

#[test]
fn who_is_refused_is_told_with_the_reason_and_without_the_password() {
    let mut w = World::new(1, Choice::radius());
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    let steps = steps(&w, 0);
    let Some(Step::Refused { servers, why, .. }) = steps.first() else {
        panic!("{steps:?}");
    };
    assert_eq!(*servers, Some("radius"));
    assert!(!why.is_empty());
    assert!(
        steps
            .iter()
            .all(|step| matches!(step, Step::Refused { .. })),
        "one event each: {steps:?}"
    );
    let all: Vec<u8> = w
        .history
        .iter()
        .flat_map(|(_, block)| block.clone())
        .collect();
    assert!(!all.windows(7).any(|octets| octets == b"secret0"));
}

#[test]
fn what_the_store_acknowledged_is_told_once_though_the_control_plane_dies() {
    let mut w = World::new(8, Choice::default());
    w.history_stalls = true;
    let before = w.history.len();
    (0..4).for_each(|n| w.dial(n));
    w.run(10 * SECOND);
    assert_eq!((w.history.len(), w.online()), (before, 4));
    w.restart_control_plane();
    assert_eq!(w.history.len(), before);
    w.history_stalls = false;
    w.restart_control_plane();
    w.run(5 * SECOND);
    (4..8).for_each(|n| w.dial(n));
    w.run(10 * SECOND);
    assert_eq!(w.online(), 8);
    w.restart_control_plane();
    w.run(SECOND);
    let numbers: Vec<u64> = w.history.iter().map(|(number, _)| *number).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
    for n in 0..8 {
        let online = steps(&w, n).into_iter();
        let online = online
            .filter(|step| matches!(step, Step::Online { .. }))
            .count();
        assert_eq!(online, 1, "home {n}");
    }
}

#[test]
fn a_session_that_the_disk_did_not_get_is_not_told_either() {
    let mut w = World::new(2, Choice::default());
    w.dial(0);
    w.run(5 * SECOND);
    w.stall_disk();
    w.dial(1);
    w.run(5 * SECOND);
    assert_eq!(w.online(), 1);
    w.restart_control_plane();
    w.run(SECOND);
    let online = |n| {
        steps(&w, n)
            .iter()
            .any(|step| matches!(step, Step::Online { .. }))
    };
    assert_eq!((online(0), online(1)), (true, false));
}

#[test]
fn user_planes_that_come_and_go_are_told() {
    let mut w = World::new(1, Choice::default());
    assert_eq!(kinds(&w), [Kind::UserPlaneBack]);
    w.cut = true;
    w.run(120 * SECOND);
    assert_eq!(kinds(&w)[1..], [Kind::UserPlaneLost]);
    w.cut = false;
    w.run(120 * SECOND);
    assert_eq!(kinds(&w)[2..], [Kind::UserPlaneBack]);
}

#[test]
fn a_subscriber_is_found_by_whatever_is_known_of_it() {
    let mut w = World::new(3, Choice::default());
    w.dial_all();
    let row = w.sessions()[1].clone();
    let mut find = |what: &str| {
        let subscriber = what.to_owned();
        match w.call(Request::FindSubscriber {
            subscriber,
            from: 0,
        }) {
            Ok(Response::Subscriber { found, .. }) => found,
            other => panic!("{other:?}"),
        }
    };
    let prefix = row.ipv6_prefix.clone().unwrap();
    let inside = prefix.replace("/64", "1");
    for what in [
        &row.user,
        &row.mac,
        &row.id,
        &row.ipv4.clone().unwrap(),
        &prefix,
        &inside,
    ] {
        let found = find(what).subscribers;
        assert_eq!(found.len(), 1, "{what}");
        let one = found[0].clone();
        assert_eq!(one.session.unwrap().id, row.id, "{what}");
        assert_eq!(one.pools, ["homes"]);
        assert!(one.on_user_plane && one.online_since.is_some() && one.phase == "network");
    }
    let missing = find("hoem1");
    assert!(missing.subscribers.is_empty());
    assert_eq!(missing.similar, ["home1"]);
}

/// Looks at what is wrong for so many seconds; the alarms that are raised then.
pub fn look(w: &mut World, seconds: u64) -> Vec<String> {
    for _ in 0..seconds {
        w.run(SECOND);
        let now = w.moment();
        w.plane.handle(now, control::Input::Look(Vec::new()));
        w.settle();
    }
    match w.call(Request::ListAlarms) {
        Ok(Response::Alarms(found)) => found.alarms.into_iter().map(|alarm| alarm.name).collect(),
        other => panic!("{other:?}"),
    }
}

/// The alarms that were raised (true) and cleared, in their order.
fn changes(w: &World) -> Vec<(bool, &'static str)> {
    let changes = told(w).into_iter().filter_map(|event| match event.what {
        What::Alarm { raised, fault, .. } => Some((raised, fault.name())),
        _ => None,
    });
    changes.collect()
}

#[test]
fn a_lost_user_plane_and_servers_that_do_not_answer_raise_alarms_that_are_cleared() {
    let mut w = World::new(2, Choice::radius());
    assert_eq!(look(&mut w, 5), [""; 0]);
    w.cut = true;
    assert_eq!(look(&mut w, 120), ["user-plane-lost"]);
    w.cut = false;
    assert_eq!(look(&mut w, 120), [""; 0]);
    w.radius.dead = true;
    w.dial(0);
    assert_eq!(look(&mut w, 60), ["aaa-group-out", "aaa-server-out"]);
    w.radius.dead = false;
    w.dial(1);
    assert_eq!(look(&mut w, 60), [""; 0]);
    let expected = [
        (true, "user-plane-lost"),
        (false, "user-plane-lost"),
        (true, "aaa-server-out"),
        (true, "aaa-group-out"),
    ];
    assert_eq!(changes(&w)[..4], expected);
    let cleared = |name| changes(&w).contains(&(false, name));
    assert!(cleared("aaa-server-out") && cleared("aaa-group-out"));
}

/// Acknowledges an alarm as alice.
fn acknowledge(w: &mut World, alarm: &str, resource: Option<&str>) -> Result<(), String> {
    let answer = w.call(Request::AcknowledgeAlarm {
        alarm: alarm.into(),
        resource: resource.map(str::to_owned),
        comment: "power cut".into(),
        by: "alice".into(),
    });
    answer.map(drop).map_err(|refusal| refusal.to_string())
}

/// Who has acknowledged each raised alarm when, in seconds of the world.
fn acknowledged(w: &mut World) -> Vec<Option<(String, String, u64)>> {
    let began = u64::from(w.moment().unix) - w.now.as_secs();
    let Ok(Response::Alarms(found)) = w.call(Request::ListAlarms) else {
        panic!("no alarms");
    };
    let by = found.alarms.into_iter().map(|alarm| alarm.acknowledged);
    by.map(|by| by.map(|by| (by.by, by.comment, by.at - began)))
        .collect()
}

#[test]
fn an_alarm_is_acknowledged_until_it_is_cleared_whatever_dies() {
    let mut w = World::new(1, Choice::default());
    let refused = acknowledge(&mut w, "user-plane-lost", None).unwrap_err();
    assert!(
        refused.contains("no alarm `user-plane-lost` is raised"),
        "{refused}"
    );
    // what the history has not taken yet is in the store
    w.history_stalls = true;
    w.cut = true;
    assert_eq!(look(&mut w, 120), ["user-plane-lost"]);
    let refused = acknowledge(&mut w, "user-plane-lost", Some("up9")).unwrap_err();
    assert!(refused.contains("of `up9` is raised"), "{refused}");
    let at = w.now.as_secs();
    acknowledge(&mut w, "user-plane-lost", None).unwrap();
    let by = Some(("alice".to_owned(), "power cut".to_owned(), at));
    assert_eq!(acknowledged(&mut w), std::slice::from_ref(&by));
    w.run(SECOND);
    w.restart_control_plane();
    assert_eq!(
        look(&mut w, 1),
        ["user-plane-lost"],
        "it is not raised anew"
    );
    assert_eq!(acknowledged(&mut w), [by]);
    w.cut = false;
    assert_eq!(look(&mut w, 120), [""; 0]);
    w.run(SECOND);
    w.history_stalls = false;
    w.restart_control_plane();
    assert_eq!(
        look(&mut w, 5),
        [""; 0],
        "it was cleared before the restart"
    );
    w.cut = true;
    assert_eq!(look(&mut w, 120), ["user-plane-lost"]);
    assert_eq!(acknowledged(&mut w), [None], "it is another alarm");
    let who = told(&w).into_iter().filter_map(|event| match event.what {
        What::Acknowledged { resource, by, .. } => Some((resource, by)),
        _ => None,
    });
    assert_eq!(who.collect::<Vec<_>>(), [("up1", "alice")]);
}

#[test]
fn of_several_alarms_of_a_name_the_resource_is_asked_for() {
    let pools = Choice {
        ipv4_pool: Some("{prefix: 100.64.1.0/26, net-length: 26, alarm-threshold: 40}"),
        ipv6_pool: Some("{prefix: '2001:db8:100::/58', net-length: 58, alarm-threshold: 40}"),
        ..Choice::default()
    };
    let mut w = World::new(30, pools);
    w.dial_all();
    let raised = look(&mut w, 5);
    assert_eq!(raised, ["pool-almost-exhausted"; 2]);
    let refused = acknowledge(&mut w, "pool-almost-exhausted", None).unwrap_err();
    for words in ["2 alarms", "`ipv4-pools homes`", "`ipv6-pools homes`"] {
        assert!(refused.contains(words), "{refused}");
    }
    acknowledge(&mut w, "pool-almost-exhausted", Some("ipv6-pools homes")).unwrap();
    let known = acknowledged(&mut w).into_iter().filter(Option::is_some);
    assert_eq!(known.count(), 1);
}

#[test]
fn a_pool_that_is_almost_exhausted_or_exhausted_raises_an_alarm() {
    let pool = Choice {
        ipv4_pool: Some("{prefix: 100.64.1.0/27, net-length: 27}"),
        ipv6_pool: None,
        ..Choice::default()
    };
    let mut w = World::new(30, pool);
    (0..26).for_each(|n| w.dial(n));
    assert_eq!(look(&mut w, 5), [""; 0]);
    w.dial(26);
    assert_eq!(look(&mut w, 5), ["pool-almost-exhausted"], "27 of 30");
    (27..30).for_each(|n| w.dial(n));
    assert_eq!(look(&mut w, 5)[0], "pool-exhausted");
    (0..30).for_each(|n| w.hang_up(n));
    assert!(!look(&mut w, 30).is_empty(), "it may come again at once");
    assert_eq!(look(&mut w, 60), [""; 0]);
}

/// Excluded addresses are for fixed assignments, and do not count.
#[test]
fn excluded_addresses_count_neither_in_the_size_nor_in_the_use_of_a_pool() {
    let pool = Choice {
        ipv4_pool: Some("{prefix: 100.64.1.0/27, net-length: 27, exclude: [100.64.1.0/28]}"),
        ipv6_pool: None,
        ..Choice::radius()
    };
    let mut w = World::new(14, pool);
    (0..14).for_each(|n| {
        let fixed = Value::Ipv4([100, 64, 1, 1 + n as u8].into());
        w.radius.accept = vec![(Attribute::FRAMED_IP_ADDRESS, fixed)];
        w.dial(n);
    });
    assert_eq!(w.sessions().len(), 14);
    assert_eq!(look(&mut w, 5), [""; 0], "of the others nobody has one");
    let use_of = |w: &World| {
        let pool = w.plane.overview(w.now).pools.remove(0);
        (pool.used, pool.size)
    };
    assert_eq!(use_of(&w), (0, 15));
    w.configure(&["set ipv4-pools homes exclude 100.64.1.0/27"])
        .unwrap();
    assert_eq!(look(&mut w, 5), [""; 0], "nobody misses anything");
    assert_eq!(use_of(&w), (0, 0));
}

#[test]
fn a_full_session_table_raises_an_alarm_until_there_is_room() {
    let limit = Choice {
        sessions: 2,
        ..Choice::default()
    };
    let mut w = World::new(2, limit);
    w.dial(0);
    assert_eq!(look(&mut w, 5), [""; 0]);
    w.dial(1);
    assert_eq!(look(&mut w, 1), ["session-table-full"]);
    w.hang_up(0);
    assert_eq!(
        look(&mut w, 30),
        ["session-table-full"],
        "it may come again"
    );
    assert_eq!(look(&mut w, 60), [""; 0]);
    let full = "session-table-full";
    assert_eq!(changes(&w), [(true, full), (false, full)]);
}
