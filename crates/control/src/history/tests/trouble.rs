//! Where sessions ended and set-ups failed.

use super::*;
use northbound::{EventKind, Trouble};
use rusqlite::Connection;

const HOUR: u32 = 3600;
/// A time in the hour of which most is asked.
const NOW: u32 = 30 * HOUR + 5;

fn failed(unix: u32, session: u64) -> Event<'static> {
    let step = Step::Failed {
        dialled: unix,
        cause: Cause::LostCarrier,
    };
    subscriber(unix, session, step)
}

fn at(vlans: [Option<u16>; 2], mut event: Event<'static>) -> Event<'static> {
    if let What::Subscriber(who, _) = &mut event.what {
        who.vlans = vlans;
    }
    event
}

/// Two sessions of a VLAN end now, one fails an hour before, and one ends on the day before; one fails on a line with one tag.
fn history(directory: &Path) -> Database {
    let mut database = open(directory);
    let had = || addresses(Some(1), None);
    let events = [
        ended(NOW - 24 * HOUR, 1, 100, had()),
        failed(NOW - HOUR, 1),
        at([Some(7), None], failed(NOW, 2)),
        online(NOW, 3, had()),
        ended(NOW, 3, 100, had()),
        ended(NOW, 4, 100, had()),
    ];
    for (n, event) in (1..).zip(&events) {
        add(&mut database, n, &block(std::slice::from_ref(event)));
    }
    database
}

/// Groups of lines with what ended, failed and was refused there.
fn counts(all: &[Trouble]) -> Vec<(&str, [u64; 3])> {
    let counts = |of: &Trouble| [of.ended, of.failed, of.refused];
    all.iter().map(|of| (&*of.lines, counts(of))).collect()
}

const WORST: &str = "up1/access0.100.*";
const OTHER: &str = "up1/access0.7";

#[test]
fn what_ended_and_failed_is_counted_by_hour_and_outer_vlan() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = history(directory.path());
    for _ in 0..2 {
        let reader = database.reader();
        let all = reader.trouble(NOW, None);
        assert_eq!(counts(&all), [(WORST, [2, 1, 0]), (OTHER, [0, 1, 0])]);
        let hours: Vec<_> = all[0]
            .hours
            .iter()
            .map(|h| (h.at, h.ended, h.failed))
            .collect();
        let begin = u64::from(NOW / HOUR * HOUR);
        assert_eq!(hours.len(), 24);
        assert_eq!(hours[0], (begin - 23 * 3600, 0, 0));
        assert_eq!(hours[22..], [(begin - 3600, 0, 1), (begin, 2, 0)]);
        // what is called so is found under that name
        for of in &all {
            let subjects = vec![Subject::of_events(&of.lines)];
            let query = Query {
                subjects,
                since: Some(NOW - HOUR),
                ..Query::default()
            };
            let mut found = 0;
            reader.forward(&query, |event| {
                found += u64::from(!matches!(
                    event.what,
                    What::Subscriber(_, Step::Online { .. })
                ));
                ControlFlow::Continue(())
            });
            assert_eq!(found, of.ended + of.failed);
        }
        let only = reader.trouble(NOW, Some(EventKind::Ended));
        assert_eq!(counts(&only), [(WORST, [2, 0, 0])]);
        let before = reader.trouble(NOW - 24 * HOUR, None);
        assert_eq!(counts(&before), [(WORST, [1, 0, 0])]);
        assert_eq!(before[0].counted_since, Some(u64::from(NOW - 24 * HOUR)));
        drop(database);
        database = open(directory.path());
    }
}

/// An earlier version writes events and counts nothing. So it is not known what was missed.
#[test]
fn counting_begins_anew_behind_a_version_that_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    drop(history(directory.path()));
    let other = Connection::open(directory.path().join("events.db")).unwrap();
    other
        .execute_batch("DROP TABLE trouble; ALTER TABLE progress DROP COLUMN counted; ALTER TABLE progress DROP COLUMN counted_since")
        .unwrap();
    drop(other);
    let mut database = open(directory.path());
    assert_eq!(counts(&database.reader().trouble(NOW, None)), []);
    add(&mut database, 7, &block(&[failed(NOW + 1, 5)]));
    drop(database);
    let other = Connection::open(directory.path().join("events.db")).unwrap();
    other.execute_batch("UPDATE progress SET last = 8").unwrap();
    drop(other);
    let mut database = open(directory.path());
    assert_eq!(counts(&database.reader().trouble(NOW, None)), []);
    add(&mut database, 9, &block(&[failed(NOW + 2, 5)]));
    let all = database.reader().trouble(NOW, None);
    assert_eq!(counts(&all), [(WORST, [0, 1, 0])]);
    assert_eq!(all[0].counted_since, Some(u64::from(NOW + 2)));
}

#[test]
fn counts_leave_with_their_day_and_the_worst_come_first() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    for vlan in 0..100 {
        let one = at([Some(vlan), Some(1)], failed(NOW, 1));
        let times = if vlan == 99 { 2 } else { 1 };
        add(
            &mut database,
            u64::from(vlan) + 1,
            &block(&vec![one; times]),
        );
    }
    let all = database.reader().trouble(NOW, None);
    assert_eq!((all.len(), &*all[0].lines), (64, "up1/access0.99.*"));
    database.tend(NOW + 8 * 24 * HOUR).unwrap();
    assert_eq!(database.reader().trouble(NOW, None).len(), 64);
    database.tend(NOW + (8 * 24 + 1) * HOUR).unwrap();
    assert_eq!(database.reader().trouble(NOW, None), []);
}
