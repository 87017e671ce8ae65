//! Events of several subjects and kinds, compared with a look at every event.

use super::super::rows::kind;
use super::questions::{queries, run};
use super::*;
use northbound::{EventKind, HistoryCall, ListEventsRequest};
use tokio::sync::mpsc;

/// Times of the events that a query selects, and of those that it should.
fn selected(database: &Database, all: &[Event<'static>], query: &Query) -> [Vec<u32>; 2] {
    let mut found = Vec::new();
    database.reader().forward(query, |event| {
        found.push(event.unix);
        ControlFlow::Continue(())
    });
    let wanted = all.iter().filter(|event| {
        query.subjects.iter().all(|subject| subject.matches(event))
            && (query.kinds.is_empty() || query.kinds.contains(&kind(&event.what)))
    });
    [found, wanted.map(|event| event.unix).collect()]
}

/// A place has its number in all that a home has there.
fn home(unix: u32, place: u64, ends: bool) -> Event<'static> {
    let had = addresses(Some(place as u8), None);
    match ends {
        true => ended(unix, place, 0, had),
        false => online(unix, place, had),
    }
}

/// Leaves every so many-th segment as a version has written it that had no keys of kinds.
fn forget_kinds(directory: &Path, every: u64) {
    let connection = rusqlite::Connection::open(directory.join("events.db")).unwrap();
    let all = format!(
        "DELETE FROM key WHERE segment % {every} = 0 AND substr(key, 1, 1) = x'6b';
         UPDATE segment SET lengths = substr(lengths, 1, length(lengths) / 2 * 2) WHERE first % {every} = 0;"
    );
    connection.execute_batch(&all).unwrap();
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
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_selected_is_what_matches(
        homes in prop::collection::vec((0..24u64, any::<bool>()), 1..60),
        subjects in prop::collection::vec(prop::sample::select(&SUBJECTS[..]), 0..3),
        kinds in prop::collection::vec(prop::sample::select(&KINDS[..]), 0..3),
        // one in so many segments is of an earlier version, and perhaps not full
        without in 0..4u64,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut database = open(directory.path());
        let mut all = Vec::new();
        let half = homes.len() / 2;
        for (n, (place, ends)) in homes.into_iter().enumerate() {
            if n == half && without > 0 {
                drop(database);
                forget_kinds(directory.path(), without);
                database = open(directory.path());
            }
            let event = home(n as u32, place, ends);
            add(&mut database, n as u64 + 1, &block(std::slice::from_ref(&event)));
            all.push(event);
        }
        let query = Query {
            subjects: subjects.into_iter().map(Subject::of_events).collect(),
            kinds,
            ..Query::default()
        };
        let [found, wanted] = selected(&database, &all, &query);
        prop_assert_eq!(found, wanted);
    }
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
