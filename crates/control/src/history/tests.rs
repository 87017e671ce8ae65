use super::database::{Full, segments};
use super::event::events;
use super::*;
use crate::journal::Journal;
use core::ops::ControlFlow;
use policy::{Binding, Bindings, Role};
use proptest::prelude::*;
use session::Cause;
use std::fs;
use std::path::Path;

mod alarms;
mod backup;
mod bindings;
mod combined;
mod disk;
mod figures;
mod follow;
mod lines;
mod model;
mod questions;
mod trouble;

const FOREVER: Bounds = Bounds {
    keep: u32::MAX,
    octets: u64::MAX,
};

fn who(session: u64) -> Subscriber<'static> {
    const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];
    Subscriber {
        session,
        user: NAMES[session as usize % 4].as_bytes(),
        mac: [2, 0, 0, 0, (session >> 8) as u8, session as u8],
        user_plane: "up1",
        port: "access0",
        vlans: [Some(100), Some(session as u16)],
        line: [Some(b"olt 1/2"), None],
    }
}

fn addresses(ipv4: Option<u8>, ipv6: Option<u8>) -> Bindings {
    let ipv4 = ipv4.map(|n| [100, 64, 0, n].into());
    let ipv6 = ipv6.map(|n| format!("2001:db8:0:{n}::/64").parse().unwrap());
    Bindings::of(ipv4, ipv6)
}

fn prefix(text: &str) -> ipnet::IpNet {
    parse_prefix(text).unwrap()
}

/// These with further ones.
fn with(bindings: Bindings, others: &[(Role, &str)]) -> Bindings {
    let others = others.iter();
    let others = others.map(|(role, text)| Binding::new(*role, prefix(text)));
    Bindings::new(bindings.iter().copied().chain(others)).unwrap()
}

fn online(unix: u32, session: u64, now: Bindings) -> Event<'static> {
    let step = Step::Online {
        dialled: unix,
        servers: Some("radius"),
        profile: None,
        instance: "default",
        bindings: now,
    };
    subscriber(unix, session, step)
}

fn changed(unix: u32, session: u64, before: Bindings, now: Bindings) -> Event<'static> {
    let step = Step::Changed {
        instance: "default",
        before,
        bindings: now,
    };
    subscriber(unix, session, step)
}

fn ended(unix: u32, session: u64, started: u32, had: Bindings) -> Event<'static> {
    let step = Step::Ended {
        started,
        cause: Cause::UserRequest,
        by: None,
        instance: "default",
        bindings: had,
    };
    subscriber(unix, session, step)
}

fn counted(unix: u32, session: u64, had: Bindings) -> Event<'static> {
    let traffic = Traffic {
        up_packets: 1,
        up_octets: 2,
        down_packets: 3,
        down_octets: u64::MAX,
    };
    let step = Step::Counted {
        started: 100,
        ended: unix - 1,
        cause: Cause::UserRequest,
        instance: "default",
        bindings: had,
        traffic,
        families: Some([traffic, Traffic::default()]),
    };
    subscriber(unix, session, step)
}

fn subscriber(unix: u32, session: u64, step: Step<'static>) -> Event<'static> {
    let what = What::Subscriber(who(session), step);
    Event { unix, what }
}

fn block(events: &[Event<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    events.iter().for_each(|event| event.emit(&mut block));
    block
}

/// The history with small segments.
fn open(directory: &Path) -> Database {
    let full = Full {
        events: 8,
        octets: 4096,
        sum: 3,
    };
    Database::open_with(directory, FOREVER, full).unwrap()
}

fn add(database: &mut Database, number: u64, block: &[u8]) {
    database.append([(number, block)]).unwrap();
}

/// Extent in which all that is counted is looked for.
fn exactly(told: usize, counted: usize) -> Extent {
    Extent {
        told,
        counted,
        effort: usize::MAX,
    }
}

fn times(reader: &Reader, subject: &str) -> Vec<u32> {
    let subject = (!subject.is_empty()).then(|| Subject::parse(subject));
    let query = Query {
        subjects: subject.into_iter().collect(),
        ..Query::default()
    };
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    reader.forward(&query, |event| {
        forward.push(event.unix);
        ControlFlow::Continue(())
    });
    reader.backward(&query, |event| {
        backward.insert(0, event.unix);
        ControlFlow::Continue(())
    });
    assert_eq!(forward, backward);
    forward
}

fn count_segments(reader: &Reader) -> usize {
    segments(&reader.connect().unwrap(), false).unwrap().len()
}

#[test]
fn events_are_found_by_name_mac_session_line_and_address_across_segments_and_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    for n in 0..50u8 {
        let had = addresses(Some(n), Some(n));
        let unix = 100 * u32::from(n);
        let events = [
            online(unix, n.into(), had.clone()),
            ended(unix + 50, n.into(), unix, had),
        ];
        add(&mut database, u64::from(n) + 1, &block(&events));
    }
    for _ in 0..2 {
        let reader = database.reader();
        assert!(count_segments(&reader) > 10);
        assert_eq!(times(&reader, "").len(), 100);
        assert_eq!(times(&reader, "bob").len(), 26);
        assert_eq!(times(&reader, "olt 1/2").len(), 100);
        for subject in [
            "100.64.0.7",
            "2001:db8:0:7::1",
            "2001:db8:0:7::/64",
            "02:00:00:00:00:07",
            "0000000000000007",
            "up1/access0.100.7",
        ] {
            assert_eq!(times(&reader, subject), [700, 750], "{subject}");
        }
        assert_eq!(times(&reader, "2001:db8::/48").len(), 100);
        for nobody in ["mallory", "olt 1/3", "100.64.1.7"] {
            assert_eq!(times(&reader, nobody), [0; 0]);
        }
        drop(database);
        database = open(directory.path());
        assert_eq!(database.last(), 50);
    }
}

#[test]
fn a_block_that_comes_again_is_there_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let one = block(&[online(1, 1, addresses(Some(1), None))]);
    let two = block(&[online(2, 2, addresses(Some(2), None))]);
    database.append([(1, &one[..]), (2, &two[..])]).unwrap();
    database.append([(1, &one[..]), (2, &two[..])]).unwrap();
    drop(database);
    let mut database = open(directory.path());
    assert_eq!(database.last(), 2);
    database.append([(2, &two[..]), (3, &one[..])]).unwrap();
    assert_eq!(times(&database.reader(), ""), [1, 2, 1]);
}

#[test]
fn what_is_old_or_too_much_goes_the_oldest_first() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    for n in 1..=2000u32 {
        let event = online(n, n.into(), addresses(Some(n as u8), None));
        add(&mut database, n.into(), &block(&[event]));
    }
    let bounds = |keep, octets| Bounds { keep, octets };
    database.set_bounds(bounds(1500, u64::MAX));
    database.tend(2000).unwrap();
    let status = database.reader().status();
    assert!((490..=500).contains(&status.oldest.unwrap()), "{status:?}");
    assert_eq!((status.displaced, status.displaced_until), (0, None));
    let most = status.octets / 2;
    database.set_bounds(bounds(1500, most));
    database.tend(2000).unwrap();
    let status = database.reader().status();
    assert!((most * 3 / 4..=most).contains(&status.octets), "{status:?}");
    assert!(status.displaced > 0 && status.displaced_until < status.oldest);
    let there = times(&database.reader(), "");
    assert!(there.len() > 500 && there.last() == Some(&2000));
    database.tend(5000).unwrap();
    assert_eq!(times(&database.reader(), ""), [0; 0]);
    assert_eq!(database.reader().status().last, 2000);
    drop(database);
    // what was free has been given back
    let length = fs::metadata(directory.path().join("events.db"))
        .unwrap()
        .len();
    assert!(length < most, "{length}");
    assert_eq!(open(directory.path()).last(), 2000);
}

#[test]
fn blocks_wait_in_the_store_until_the_history_has_them() {
    let mut outbox = Outbox::default();
    let mut store = std::collections::BTreeMap::new();
    let mut journal = Journal::new(Vec::new());
    for n in 1..=3 {
        assert!(outbox.add(&online(n, n.into(), Bindings::default())));
        assert_eq!(outbox.store(&mut journal).map(|(n, _)| n), Some(n.into()));
    }
    outbox.on_kept(2);
    assert!(!outbox.is_settled());
    outbox.forget(&mut journal);
    for record in journal.take_batch() {
        match record.value {
            Some(value) => drop(store.insert(record.key, value)),
            None => drop(store.remove(&record.key)),
        }
    }
    let stored: Vec<(u64, Vec<u8>)> = store.into_values().map(|block| (3, block)).collect();
    assert_eq!(stored.len(), 1);
    // after a crash: the history has it, or not
    let (outbox, again) = Outbox::resume(3, stored.clone());
    assert!(again.is_empty() && !outbox.is_settled());
    let (mut outbox, again) = Outbox::resume(2, stored.clone());
    assert_eq!(again, stored);
    assert!(outbox.add(&online(4, 4, Bindings::default())));
    assert_eq!(outbox.store(&mut journal).map(|(n, _)| n), Some(4));
}

#[test]
fn attempts_that_come_to_nothing_are_bounded() {
    let second = |n| core::time::Duration::from_secs(n);
    let mut outbox = Outbox::default();
    let many = |outbox: &mut Outbox, at| (0..100_000).filter(|_| outbox.takes_attempt(at)).count();
    assert_eq!(many(&mut outbox, second(1000)), 20_000);
    assert_eq!(many(&mut outbox, second(1003)), 300);
}
