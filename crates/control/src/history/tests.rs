use super::event::events;
use super::*;
use crate::journal::Journal;
use crate::store::log::{emit_frame, u64_at};
use core::ops::ControlFlow;
use policy::{Binding, Bindings, Role};
use proptest::prelude::*;
use session::Cause;
use std::fs;
use std::path::{Path, PathBuf};

mod bindings;
mod disk;
mod lines;
mod model;
mod questions;

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

fn subscriber(unix: u32, session: u64, step: Step<'static>) -> Event<'static> {
    let what = What::Subscriber(who(session), step);
    Event { unix, what }
}

fn block(events: &[Event<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    events.iter().for_each(|event| event.emit(&mut block));
    block
}

fn open(directory: &Path) -> (Log, Opened) {
    Log::open_with(directory, FOREVER, 600).unwrap()
}

fn add(log: &mut Log, number: u64, block: &[u8]) {
    log.append([(number, block)]).unwrap();
}

fn times(reader: &Reader, subject: &str) -> Vec<u32> {
    let subject = (!subject.is_empty()).then(|| Subject::parse(subject));
    let query = Query {
        subject,
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

fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

#[test]
fn events_are_found_by_name_mac_session_and_address_across_segments_and_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path());
    for n in 0..50u8 {
        let had = addresses(Some(n), Some(n));
        let unix = 100 * u32::from(n);
        let events = [
            online(unix, n.into(), had.clone()),
            ended(unix + 50, n.into(), unix, had),
        ];
        add(&mut log, u64::from(n) + 1, &block(&events));
    }
    assert!(segments(directory.path()).len() > 5);
    for _ in 0..2 {
        let reader = log.reader();
        assert_eq!(times(&reader, "").len(), 100);
        assert_eq!(times(&reader, "bob").len(), 26);
        for subject in [
            "100.64.0.7",
            "2001:db8:0:7::1",
            "2001:db8:0:7::/64",
            "02:00:00:00:00:07",
            "0000000000000007",
        ] {
            assert_eq!(times(&reader, subject), [700, 750], "{subject}");
        }
        assert_eq!(times(&reader, "2001:db8::/48").len(), 100);
        assert_eq!(times(&reader, "mallory"), [0; 0]);
        drop(log);
        let opened;
        (log, opened) = open(directory.path());
        assert_eq!(opened, Opened { last: 50, cut: 0 });
    }
}

#[test]
fn events_are_found_by_their_line_in_segments_of_earlier_versions_too() {
    for is_earlier in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, _) = open(directory.path());
        for n in 0..40 {
            let event = online(n as u32, n, addresses(Some(n as u8), None));
            add(&mut log, n + 1, &block(&[event]));
        }
        drop(log);
        if is_earlier {
            let segments = segments(directory.path());
            let rewritten = segments.iter().filter(|path| with_earlier_filter(path));
            assert!(rewritten.count() > 3);
        }
        let (log, _) = open(directory.path());
        let reader = log.reader();
        assert_eq!(times(&reader, "up1/access0.100.7"), [7]);
        assert_eq!(times(&reader, "olt 1/2").len(), 40);
        assert_eq!(times(&reader, "olt 1/3"), [] as [u32; 0]);
        assert_eq!(times(&reader, "02:00:00:00:00:09"), [9]);
    }
}

/// Gives a closed segment a filter as earlier versions wrote it, which knows MAC addresses but no lines. Returns false for the open
/// segment.
fn with_earlier_filter(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap();
    let (body, trailer) = bytes.split_at(bytes.len() - segment::TRAILER);
    let end = u64_at(trailer, 0) as usize;
    if end >= body.len() || u64_at(body, end) != u64::MAX - 1 {
        return false;
    }
    let macs = (0..40).map(|n| event::Key::Mac(who(n).mac).hash());
    let macs: Vec<u64> = macs.collect();
    let mut earlier = body[..end].to_vec();
    let filter = filter::build(macs.into_iter());
    emit_frame(u64_at(&bytes, 12), u64::MAX, &filter, &mut earlier);
    earlier.extend(trailer);
    fs::write(path, earlier).unwrap();
    true
}

#[test]
fn a_block_that_comes_again_is_there_once() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path());
    let one = block(&[online(1, 1, addresses(Some(1), None))]);
    let two = block(&[online(2, 2, addresses(Some(2), None))]);
    log.append([(1, &one[..]), (2, &two[..])]).unwrap();
    log.append([(1, &one[..]), (2, &two[..])]).unwrap();
    drop(log);
    let (mut log, opened) = open(directory.path());
    assert_eq!(opened.last, 2);
    log.append([(2, &two[..]), (3, &one[..])]).unwrap();
    assert_eq!(times(&log.reader(), ""), [1, 2, 1]);
}

#[test]
fn a_crash_at_any_octet_leaves_whole_blocks() {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let (mut log, _) = Log::open(&whole, FOREVER).unwrap();
    let path = || segments(&whole).remove(0);
    let mut lengths = Vec::new();
    for n in 1..=4u8 {
        let event = online(n.into(), n.into(), addresses(Some(n), None));
        add(&mut log, n.into(), &block(&[event]));
        lengths.push(fs::metadata(path()).unwrap().len() as usize);
    }
    let (bytes, name) = (fs::read(path()).unwrap(), path());
    for end in 0..=bytes.len() {
        let torn = place.path().join(format!("torn{end}"));
        fs::create_dir(&torn).unwrap();
        fs::write(torn.join(name.file_name().unwrap()), &bytes[..end]).unwrap();
        let there = lengths.iter().filter(|length| **length <= end).count() as u64;
        let (mut log, opened) = Log::open(&torn, FOREVER).unwrap();
        assert_eq!(opened.last, there, "cut at {end}");
        let event = online(9, 9, addresses(Some(9), None));
        add(&mut log, there + 1, &block(&[event]));
        let expected: Vec<u32> = (1..=there as u32).chain([9]).collect();
        assert_eq!(times(&log.reader(), ""), expected, "cut at {end}");
    }
}

#[test]
fn what_is_damaged_is_told_and_the_rest_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path());
    for n in 1..=40u8 {
        let event = online(n.into(), n.into(), addresses(Some(n), None));
        add(&mut log, n.into(), &block(&[event]));
    }
    drop(log);
    let second = segments(directory.path()).remove(1);
    let mut bytes = fs::read(&second).unwrap();
    bytes[60] ^= 1; // in its first block
    fs::write(&second, bytes).unwrap();
    let (log, _) = open(directory.path());
    let there = times(&log.reader(), "");
    assert!(there.len() < 40 && there.first() == Some(&1) && there.last() == Some(&40));
    assert_eq!(log.reader().status().damaged, 1, "told once");
}

#[test]
fn what_is_old_or_too_much_goes_the_oldest_first() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path());
    for n in 1..=100u32 {
        let event = online(n * 10, n.into(), addresses(Some(n as u8), None));
        add(&mut log, n.into(), &block(&[event]));
    }
    log.set_bounds(Bounds {
        keep: 700,
        octets: u64::MAX,
    });
    log.tend(1000).unwrap();
    let status = log.reader().status();
    assert!((250..=300).contains(&status.oldest.unwrap()), "{status:?}");
    assert_eq!((status.displaced, status.displaced_until), (0, None));
    log.set_bounds(Bounds {
        keep: 700,
        octets: 3000,
    });
    log.tend(1000).unwrap();
    let status = log.reader().status();
    assert!((1500..=3000).contains(&status.octets), "{status:?}");
    assert!(status.displaced > 0 && status.displaced_until < status.oldest);
    assert_eq!(times(&log.reader(), "").last(), Some(&1000));
    log.tend(5000).unwrap();
    assert_eq!(times(&log.reader(), ""), [0; 0]);
    assert_eq!(log.reader().status().last, 100);
}

#[test]
fn a_disk_that_cannot_be_written_costs_nothing_that_comes_again() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("history");
    let (mut log, _) = Log::open_with(&directory, FOREVER, 150).unwrap();
    let one = block(&[online(1, 1, addresses(Some(1), None))]);
    for number in 1..=2 {
        add(&mut log, number, &one);
    }
    // where the next segment would be
    fs::create_dir(directory.join(format!("{:020}.events", 3))).unwrap();
    assert!(log.append([(3, &one[..])]).is_err());
    fs::remove_dir(directory.join(format!("{:020}.events", 3))).unwrap();
    add(&mut log, 3, &one);
    assert_eq!(times(&log.reader(), "").len(), 3);
    drop(log);
    assert_eq!(Log::open(&directory, FOREVER).unwrap().1.last, 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn octets_that_nobody_wrote_are_read_without_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        behind in prop::collection::vec(any::<u8>(), 0..80),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, _) = open(directory.path());
        for n in 1..=12u8 {
            let event = online(n.into(), n.into(), addresses(Some(n), Some(n)));
            add(&mut log, n.into(), &block(&[event]));
        }
        drop(log);
        for path in segments(directory.path()) {
            let mut bytes = fs::read(&path).unwrap();
            for (at, other) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *other;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            bytes.extend(&behind);
            fs::write(&path, bytes).unwrap();
        }
        fs::write(directory.path().join(format!("{:020}.events", 500)), &noise).unwrap();
        events(&noise).for_each(drop);
        let (mut log, opened) = open(directory.path());
        let reader = log.reader();
        times(&reader, "");
        reader.who(prefix("100.64.0.3"), 5, 1, Vec::new(), 100);
        add(&mut log, opened.last + 1, &block(&[online(77, 77, addresses(Some(77), None))]));
        prop_assert_eq!(times(&reader, "100.64.0.77"), [77]);
    }
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
