//! Events as they happen.

use super::super::HistoryQueries;
use super::*;
use northbound::{EventKind, FollowEventsRequest, FollowEventsResponse, HistoryCall, Refusal};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

type Parts = mpsc::Receiver<Result<FollowEventsResponse, Refusal>>;

/// A history whose writer says when there is more.
struct History {
    database: Database,
    written: watch::Sender<u64>,
    calls: mpsc::Sender<HistoryCall>,
}

impl History {
    fn open(directory: &Path) -> Self {
        let database = open(directory);
        let (plane, _) = mpsc::channel(1);
        let (written, more) = watch::channel(0);
        let (calls, received) = mpsc::channel(64);
        tokio::spawn(HistoryQueries::new(database.reader(), more, plane, || 5000).run(received));
        History {
            database,
            written,
            calls,
        }
    }

    fn happens(&mut self, number: u64, events: &[Event<'_>]) {
        add(&mut self.database, number, &block(events));
        self.written.send_replace(number);
    }

    async fn follow(&self, request: FollowEventsRequest) -> Parts {
        let (part, parts) = mpsc::channel(4);
        let call = HistoryCall::Follow(request, part);
        self.calls.send(call).await.unwrap();
        parts
    }
}

fn after(number: u64) -> FollowEventsRequest {
    FollowEventsRequest {
        after: Some(number),
        ..FollowEventsRequest::default()
    }
}

async fn next(parts: &mut Parts) -> FollowEventsResponse {
    let part = timeout(Duration::from_secs(30), parts.recv()).await;
    part.expect("a part").expect("more").unwrap()
}

/// Numbers of so many events, as they come.
async fn numbers(parts: &mut Parts, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let part = next(parts).await;
        numbers.extend(part.events.iter().map(|event| event.number));
    }
    numbers
}

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test);
}

const fn number(block: u64, place: u64) -> u64 {
    block << 16 | place
}

#[test]
fn a_follower_begins_with_now_or_behind_a_number_and_misses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut history = History::open(directory.path());
        let of = |n: u32| online(n, n.into(), addresses(Some(n as u8), None));
        history.happens(1, &[of(1), of(2)]);
        let mut now = history.follow(FollowEventsRequest::default()).await;
        let first = next(&mut now).await;
        assert!(first.events.is_empty() && first.lost == 0, "{first:?}");
        let mut behind = history.follow(after(number(1, 0))).await;
        assert_eq!(numbers(&mut behind, 1).await, [number(1, 1)]);
        history.happens(2, &[of(3)]);
        history.happens(3, &[of(4), of(5)]);
        let new = [number(2, 0), number(3, 0), number(3, 1)];
        assert_eq!(numbers(&mut now, 3).await, new);
        assert_eq!(numbers(&mut behind, 3).await, new);
        // with the place that it was told first, whoever comes back goes on
        let mut again = history.follow(after(first.last)).await;
        assert_eq!(numbers(&mut again, 3).await, new);
        // many come in parts, each once
        let many: Vec<_> = (0..300).map(of).collect();
        history.happens(4, &many);
        let all = numbers(&mut now, 300).await;
        assert_eq!(
            all,
            (0..300).map(|place| number(4, place)).collect::<Vec<_>>()
        );
    });
}

#[test]
fn a_follower_gets_what_it_wants_and_its_place_moves_past_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut history = History::open(directory.path());
        let had = addresses(Some(1), None);
        history.happens(1, &[online(1, 1, had.clone()), online(2, 2, had.clone())]);
        history.happens(2, &[ended(3, 1, 1, had.clone()), ended(4, 2, 2, had)]);
        let mut request = after(0);
        request.subscriber = "bob".into();
        request.push_kinds(EventKind::Ended);
        let part = next(&mut history.follow(request).await).await;
        assert_eq!(part.events.len(), 1, "{part:?}");
        assert_eq!(part.events[0].number, number(2, 0));
        assert_eq!(part.last, number(2, 1));
    });
}

#[test]
fn a_follower_is_told_what_the_history_has_no_more() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut history = History::open(directory.path());
        for n in 1..=40 {
            history.happens(n, &[online(n as u32, n, addresses(Some(n as u8), None))]);
        }
        history.database.set_bounds(Bounds {
            keep: 20,
            octets: u64::MAX,
        });
        history.database.tend(45).unwrap();
        let mut parts = history.follow(after(number(3, 0))).await;
        let first = next(&mut parts).await;
        let oldest = first.events[0].number >> 16;
        assert!(oldest > 4, "{oldest}");
        assert_eq!(first.lost, oldest - 4, "blocks 4 to {}", oldest - 1);
        assert_eq!(first.events.last().unwrap().number, number(40, 0));
        // a number of another history
        let mut parts = history.follow(after(number(90, 0))).await;
        let first = next(&mut parts).await;
        assert_eq!(first.events[0].number >> 16, oldest);
        assert!(first.last < number(90, 0));
    });
}

#[test]
fn a_follower_that_reads_slowly_is_told_what_has_left_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut history = History::open(directory.path());
        for n in 1..=40 {
            let of = |home: u64| online(n as u32, home, addresses(Some(home as u8), None));
            history.happens(n, &(0..200).map(of).collect::<Vec<_>>());
        }
        let mut parts = history.follow(after(0)).await;
        let mut last = next(&mut parts).await.last;
        assert!(last >> 16 < 3, "{last}");
        // until no more parts fit
        while parts.len() < parts.max_capacity() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        history.database.set_bounds(Bounds {
            keep: 10,
            octets: u64::MAX,
        });
        history.database.tend(45).unwrap();
        let mut lost = 0;
        while last < number(40, 199) {
            let part = next(&mut parts).await;
            if let Some(first) = part.events.first().filter(|_| part.lost > 0) {
                lost += part.lost;
                assert_eq!(first.number & 0xFFFF, 0, "from the beginning of a block");
                assert_eq!((first.number >> 16) - (last >> 16) - 1, part.lost);
            }
            last = part.last;
        }
        assert!(lost > 10, "{lost}");
    });
}

#[test]
fn followers_are_few_and_each_leaves_its_room() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let history = History::open(directory.path());
        let mut all = Vec::new();
        for _ in 0..64 {
            let mut parts = history.follow(after(0)).await;
            next(&mut parts).await;
            all.push(parts);
        }
        let refused = history.follow(after(0)).await.recv().await;
        assert!(
            matches!(refused, Some(Err(Refusal::Busy(_)))),
            "{refused:?}"
        );
        drop(all);
        let again = async {
            while !matches!(history.follow(after(0)).await.recv().await, Some(Ok(_))) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), again).await.expect("room");
    });
}

#[test]
fn an_export_has_what_was_counted_in_its_time_and_says_that_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut history = History::open(directory.path());
        let had = || addresses(Some(1), Some(1));
        for n in 1..=40 {
            let unix = 1000 + n as u32;
            history.happens(n, &[ended(unix, n, 100, had()), counted(unix, n, had())]);
        }
        let export = async |since, until, after| {
            let request = FollowEventsRequest::of_records(since, until, after);
            let mut parts = history.follow(request).await;
            let mut events = Vec::new();
            loop {
                let part = next(&mut parts).await;
                assert_eq!(part.lost, 0);
                events.extend(part.events);
                if part.complete {
                    assert!(parts.recv().await.is_none(), "it was the last part");
                    return events;
                }
            }
        };
        let numbers = |events: Vec<northbound::Event>| {
            let numbers = events.iter().map(|event| event.number);
            numbers.collect::<Vec<_>>()
        };
        let of = |blocks: std::ops::RangeInclusive<u64>| {
            let numbers = blocks.map(|block| number(block, 1));
            numbers.collect::<Vec<_>>()
        };
        let all = export(None, None, None).await;
        let first = &all[0];
        assert_eq!(first.kind(), EventKind::Counted);
        assert_eq!((first.since, first.ended), (Some(100), Some(1000)));
        assert_eq!(first.ipv4.as_deref(), Some("100.64.0.1"));
        let octets = first.traffic.map(|t| (t.up_octets, t.down_octets));
        assert_eq!(octets, Some((2, u64::MAX)));
        assert_eq!(first.ipv4_traffic, first.traffic);
        assert_eq!(first.ipv6_traffic, Some(northbound::Traffic::default()));
        assert_eq!(numbers(all), of(1..=40));
        // one period ends where the next one begins
        assert_eq!(numbers(export(None, Some(1010), None).await), of(1..=9));
        let second = export(Some(1010), Some(1020), None).await;
        assert_eq!(numbers(second), of(10..=19));
        assert_eq!(numbers(export(Some(1020), None, None).await), of(20..=40));
        assert!(export(Some(2000), None, None).await.is_empty());
        assert!(export(None, Some(1000), None).await.is_empty());
        let behind = export(None, None, Some(number(30, 1))).await;
        assert_eq!(numbers(behind), of(31..=40));
    });
}
