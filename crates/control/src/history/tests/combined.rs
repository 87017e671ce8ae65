//! Events of several subjects and kinds, compared with a look at every event.

use super::questions::{queries, run};
use super::*;
use northbound::{EventKind, HistoryCall, ListEventsRequest, Matching};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Times of the events that a query selects, and of those that it should.
fn selected(database: &Database, all: &[Event<'static>], query: &Query) -> [Vec<u32>; 2] {
    let mut found = Vec::new();
    database.reader().forward(query, |event| {
        found.push(event.unix);
        ControlFlow::Continue(())
    });
    let wanted = all.iter().filter(|event| query.wants(event));
    [found, wanted.map(|event| event.unix).collect()]
}

/// Times of the latest that a query selects, and how many it counts.
fn latest(database: &Database, query: &Query, told: usize, counted: usize) -> (Vec<u32>, usize) {
    let (found, count) = within(database, query, exactly(told, counted));
    (found, count.events as usize)
}

fn within(database: &Database, query: &Query, extent: Extent) -> (Vec<u32>, Matching) {
    let mut found = Vec::new();
    let tell = |_, event: &Event<'_>| found.insert(0, event.unix);
    let count = database.reader().latest(query, extent, || true, tell);
    (found, count)
}

/// A place has its number in all that a home has there.
fn home(unix: u32, place: u64, ends: bool) -> Event<'static> {
    let had = addresses(Some(place as u8), None);
    let mut event = match ends {
        true => ended(unix, place, 0, had),
        false => online(unix, place, had),
    };
    if let What::Subscriber(who, _) = &mut event.what
        && place % 5 == 4
    {
        who.user_plane = "up2";
    }
    event
}

/// Leaves every so many-th segment as a version has written it that summed nothing up.
fn forget_sums(directory: &Path, every: u64) {
    let connection = rusqlite::Connection::open(directory.join("events.db")).unwrap();
    let all = format!(
        "DELETE FROM key WHERE segment % {every} = 0 AND substr(key, 1, 1) IN (x'64', x'65');"
    );
    connection.execute_batch(&all).unwrap();
}

/// What happens in the history of a test.
#[derive(Clone, Copy, Debug)]
enum Op {
    Home(u64, bool),
    /// An event that only a later version can read.
    Later,
    /// What happened since the last one is a block.
    Block,
    Tend,
    /// Every so many-th segment has no sums any more.
    Forget(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..24u64, any::<bool>()).prop_map(|(place, ends)| Op::Home(place, ends)),
        1 => Just(Op::Later),
        4 => Just(Op::Block),
        2 => Just(Op::Tend),
        1 => (1..4u64).prop_map(Op::Forget),
    ]
}

/// The history after these, and its events.
fn history(directory: &Path, full: Full, ops: &[Op]) -> (Database, Vec<Event<'static>>) {
    let open = || Database::open_with(directory, FOREVER, full).unwrap();
    let mut database = Some(open());
    let (mut all, mut waiting) = (Vec::new(), Vec::new());
    for op in ops.iter().chain([&Op::Block]) {
        let history = database.get_or_insert_with(open);
        match *op {
            Op::Home(place, ends) => {
                let event = home(all.len() as u32, place, ends);
                event.emit(&mut waiting);
                all.push(event);
            }
            Op::Later => waiting.extend([2, 0, 0xff, 0xff]),
            Op::Block => add(history, history.last() + 1, &std::mem::take(&mut waiting)),
            Op::Tend => history.tend(0).unwrap(),
            Op::Forget(every) => {
                database = None;
                forget_sums(directory, every);
            }
        }
    }
    (database.unwrap_or_else(open), all)
}

const SUBJECTS: [&str; 9] = [
    "alice",
    "olt*",
    "up1/*",
    "up1/access0.100.1*",
    "up1/access0.200.*",
    "100.64.0.0/30",
    "02:00:00:00:00:05",
    "b*",
    "*",
];
const KINDS: [EventKind; 3] = [EventKind::Online, EventKind::Ended, EventKind::Refused];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_selected_and_counted_is_what_matches(
        ops in prop::collection::vec(op(), 1..120),
        events in prop::sample::select(&[8, 64][..]),
        subjects in prop::collection::vec(prop::sample::select(&SUBJECTS[..]), 0..3),
        kinds in prop::collection::vec(prop::sample::select(&KINDS[..]), 0..3),
        since in prop::option::of(0..60u32),
        until in prop::option::of(0..60u32),
        told in 0..4usize,
        effort in 0..300usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let full = Full { events, octets: 1 << 20, sum: 3 };
        let (database, all) = history(directory.path(), full, &ops);
        let query = Query {
            subjects: subjects.into_iter().map(Subject::of_events).collect(),
            kinds,
            since,
            until,
            ..Query::default()
        };
        let [found, wanted] = selected(&database, &all, &query);
        prop_assert_eq!(&found, &wanted);
        let last = wanted[wanted.len().saturating_sub(told)..].to_vec();
        let matching = wanted.len() as u64;
        let exact = Matching { events: matching, or_more: false };
        prop_assert_eq!(within(&database, &query, exactly(told, 1000)), (last.clone(), exact));
        let extent = Extent { effort, ..exactly(told, 1000) };
        let (shown, count) = within(&database, &query, extent);
        prop_assert_eq!(shown, last);
        prop_assert!(count.events >= matching.min(told as u64));
        match count.or_more {
            true => prop_assert!(count.events <= matching),
            false => prop_assert_eq!(count.events, matching),
        }
        prop_assert_eq!(latest(&database, &query, 0, 2).1, wanted.len().min(2));
        let mut planes = database.reader().user_planes(&query, 1000, || true);
        planes.sort();
        let wanted = all.iter().filter(|event| query.wants(event));
        let wanted: BTreeSet<&str> = wanted.map(|event| event.what.user_plane()).collect();
        prop_assert_eq!(planes, Vec::from_iter(wanted));
    }
}

#[test]
fn what_is_summed_up_is_counted_and_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let events: Vec<Event<'_>> = (0..400)
        .map(|n| home(n, u64::from(n) % 20, n % 4 == 0))
        .collect();
    for (n, some) in events.chunks(5).enumerate() {
        add(&mut database, n as u64 + 1, &block(some));
    }
    // as a version before has left it, and then this one has a look at all of it
    drop(database);
    let mut database = open(directory.path());
    while database.has_more_to_tend() {
        database.tend(400).unwrap();
    }
    drop(database);
    let connection = rusqlite::Connection::open(directory.path().join("events.db")).unwrap();
    let last = "DELETE FROM event WHERE id < (SELECT max(first) FROM segment) << 16";
    connection.execute_batch(last).unwrap();
    drop(connection);
    let database = open(directory.path());
    let query = |subjects: &[&str], kinds: &[EventKind]| Query {
        subjects: subjects
            .iter()
            .map(|text| Subject::of_events(text))
            .collect(),
        kinds: kinds.to_vec(),
        ..Query::default()
    };
    let count = |subjects: &[&str], kinds: &[EventKind]| {
        latest(&database, &query(subjects, kinds), 0, 1000).1
    };
    assert_eq!(count(&[], &[EventKind::Ended]), 100);
    assert_eq!(count(&["up1/*"], &[EventKind::Ended]), 80);
    assert_eq!(count(&["up1/*", "olt*"], &[EventKind::Online]), 240);
    assert_eq!(count(&["up1/*"], &[EventKind::Refused]), 0);
    let planes = database
        .reader()
        .user_planes(&query(&["olt*"], &[]), 1000, || true);
    assert_eq!(planes.len(), 2);
}

/// Two segments of 640 events in 40 places, each of which has 16 of them.
fn forty_places(directory: &Path) -> Database {
    let full = Full {
        events: 640,
        octets: 1 << 20,
        sum: 64,
    };
    let mut database = Database::open_with(directory, FOREVER, full).unwrap();
    let events: Vec<Event<'_>> = (0..1280)
        .map(|n| home(n, u64::from(n) % 40, n % 3 == 0))
        .collect();
    for (n, some) in events.chunks(5).enumerate() {
        add(&mut database, n as u64 + 1, &block(some));
        database.tend(0).unwrap();
    }
    database
}

fn both(subjects: [&str; 2], kinds: &[EventKind]) -> Query {
    Query {
        subjects: subjects.map(Subject::of_events).into(),
        kinds: kinds.to_vec(),
        ..Query::default()
    }
}

#[test]
fn events_of_two_subjects_are_counted_by_their_keys_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(forty_places(directory.path()));
    let connection = rusqlite::Connection::open(directory.path().join("events.db")).unwrap();
    let first = "DELETE FROM event WHERE id < (SELECT max(first) FROM segment) << 16";
    connection.execute(first, []).unwrap();
    drop(connection);
    let database = open(directory.path());
    assert_eq!(count_segments(&database.reader()), 2);
    let count = |subjects, kinds: &[EventKind]| {
        let (told, count) = within(&database, &both(subjects, kinds), exactly(0, 1000));
        assert_eq!((told.len(), count.or_more), (0, false));
        count.events as usize
    };
    assert_eq!(count(["up1/*", "up1/access0.100.7"], &[]), 32);
    assert_eq!(count(["up1/access0.100.8", "up1/*"], &[]), 32);
    assert_eq!(count(["up1/*", "up2/*"], &[]), 0);
    let ended = (0..1280).filter(|n| n % 40 == 8 && n % 3 == 0).count();
    assert_eq!(
        count(["up1/access0.100.8", "alice"], &[EventKind::Ended]),
        ended
    );
}

#[test]
fn what_would_take_long_is_not_counted_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let database = forty_places(directory.path());
    let query = both(["olt*", "up1/access0.100.7"], &[]);
    let ask = |told, effort| {
        let extent = Extent {
            effort,
            ..exactly(told, 1000)
        };
        let (shown, count) = within(&database, &query, extent);
        (shown, count.events, count.or_more)
    };
    assert_eq!(ask(2, EFFORT), (vec![1207, 1247], 32, false));
    assert_eq!(ask(2, 3 * 32), (vec![1207, 1247], 5, true), "three more");
    assert_eq!(ask(2, 0), (vec![1207, 1247], 2, true));
    let (shown, events, or_more) = ask(32, 0);
    assert_eq!((shown.len(), events, or_more), (32, 32, false));
}

/// The version before had keys of kinds, and a mark behind a segment's lengths that said so.
#[test]
fn a_history_of_the_version_before_is_read_and_summed_up_and_its_mark_goes_with_what_is_added() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    for n in 0..100 {
        let event = home(n, u64::from(n) % 20, n % 4 == 0);
        add(&mut database, u64::from(n) + 1, &block(&[event]));
    }
    drop(database);
    let connection = || rusqlite::Connection::open(directory.path().join("events.db")).unwrap();
    let before = "
        INSERT INTO key SELECT segment, x'6b00000001', event FROM key WHERE substr(key, 1, 1) = x'73';
        UPDATE segment SET lengths = CAST(lengths || x'01' AS BLOB);";
    connection().execute_batch(before).unwrap();
    let query = Query {
        subjects: vec![Subject::of_events("olt*")],
        kinds: vec![EventKind::Ended],
        ..Query::default()
    };
    let mut database = open(directory.path());
    assert_eq!(latest(&database, &query, 1, 1000), (vec![96], 25));
    add(&mut database, 101, &block(&[home(100, 7, true)]));
    assert_eq!(latest(&database, &query, 1, 1000), (vec![100], 26));
    assert!(database.has_more_to_tend());
    while database.has_more_to_tend() {
        database.tend(100).unwrap();
    }
    assert_eq!(latest(&database, &query, 1, 1000), (vec![100], 26));
    drop(database);
    let marked = "SELECT count(*), sum(length(lengths) % 2) FROM segment";
    let (all, marked): (u64, u64) = connection()
        .query_row(marked, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(marked, all - 1, "that of the segment that goes on");
}

#[test]
fn what_leaves_while_a_question_looks_at_it_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    database.set_bounds(Bounds { keep: 3, ..FOREVER });
    let reader = database.reader();
    let writer = std::thread::spawn(move || {
        for n in 1..=300 {
            let events: Vec<Event<'_>> = (0..12)
                .map(|place| home(n, place, place % 2 == 0))
                .collect();
            add(&mut database, n.into(), &block(&events));
            database.tend(n).unwrap();
        }
    });
    let query = Query {
        subjects: vec![Subject::of_events("olt*")],
        kinds: vec![EventKind::Ended],
        ..Query::default()
    };
    while !writer.is_finished() {
        reader.latest(&query, exactly(0, 1000), || true, |_, _| {});
        reader.user_planes(&query, 1000, || true);
    }
    writer.join().unwrap();
    assert_eq!(reader.status().damaged, 0);
}

#[test]
fn what_matches_is_counted_and_the_latest_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let events: Vec<Event<'_>> = (0..12_000u32)
        .map(|n| home(n, n.into(), n % 3 == 0))
        .collect();
    for (n, some) in events.chunks(500).enumerate() {
        add(&mut database, n as u64 + 1, &block(some));
        database.tend(0).unwrap();
    }
    let lost = Event {
        unix: 12_000,
        what: What::System {
            kind: Kind::UserPlaneLost,
            resource: "up1",
            by: None,
            text: "",
        },
    };
    add(&mut database, 25, &block(&[lost]));
    let ask = |request: ListEventsRequest| {
        let mut told = (Vec::new(), None);
        run(async {
            let queries = queries(&database, Vec::new());
            let (part, mut parts) = mpsc::channel(4);
            queries
                .send(HistoryCall::Events(request, part))
                .await
                .unwrap();
            while let Some(part) = parts.recv().await {
                let part = part.unwrap();
                told.0.extend(part.events.iter().map(|event| event.at));
                told.1 = part.matching.or(told.1);
                assert_eq!(part.or_more, part.matching == Some(10_000));
            }
        });
        told
    };
    let asked = |subscriber: &str, kinds: &[EventKind], last| ListEventsRequest {
        subscriber: subscriber.into(),
        kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
        count: true,
        last,
        ..ListEventsRequest::default()
    };
    let ended = [EventKind::Ended];
    assert_eq!(
        ask(asked("", &ended, Some(2))),
        (vec![11_994, 11_997], Some(4000))
    );
    assert_eq!(
        ask(asked("", &[], Some(1))),
        (vec![12_000], Some(10_000)),
        "so many at least"
    );
    assert_eq!(ask(asked("alice", &ended, Some(0))), (vec![], Some(1000)));
    let all = ask(asked("up1/access0.100.1*", &ended, None));
    assert_eq!((all.0.len() as u64, all.0[0]), (all.1.unwrap(), 12));
    let both = ListEventsRequest {
        also: "up1/access0.100.7".into(),
        ..asked("bob", &[], None)
    };
    assert_eq!(ask(both).1, Some(0), "7 is Dave's");
    let lost = [EventKind::UserPlaneLost];
    let of_planes = ask(asked("alice", &lost, None));
    assert_eq!(of_planes, (vec![12_000], Some(1)), "Alice was on up1");
    let uncounted = ListEventsRequest {
        count: false,
        ..asked("alice", &[], Some(1))
    };
    assert_eq!(ask(uncounted).1, None);
}
