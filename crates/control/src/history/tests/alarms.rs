//! The alarms that stand at the end of the history, with who has acknowledged them.

use super::*;
use crate::alarms::{Acknowledgement, Fault};

fn change(unix: u32, raised: bool, resource: &str) -> Event<'_> {
    let what = What::Alarm {
        raised,
        fault: Fault::UserPlaneLost,
        resource,
        text: "it is not associated",
    };
    Event { unix, what }
}

fn acknowledged<'a>(unix: u32, resource: &'a str, by: &'a str) -> Event<'a> {
    let what = What::Acknowledged {
        fault: Fault::UserPlaneLost,
        resource,
        by,
        comment: "power cut",
    };
    Event { unix, what }
}

/// Events of subscribers that close a segment.
fn fill(database: &mut Database, from: u64) {
    for number in from..from + 200 {
        let events = [online(100, number, addresses(Some(number as u8), None))];
        add(database, number, &block(&events));
    }
}

/// Resource of a standing alarm, when it was raised, and who acknowledged it when.
type Standing = (String, u32, Option<(String, u32)>);

fn standing(reader: &Reader) -> Vec<Standing> {
    let alarms = reader.alarms();
    let alarms = alarms.raised().into_iter().map(|alarm| {
        let by = alarm.acknowledged.clone();
        let by = by.map(|Acknowledgement { by, at, .. }| (by, at));
        (alarm.condition.resource.clone(), alarm.raised, by)
    });
    let mut alarms: Vec<_> = alarms.collect();
    alarms.sort();
    alarms
}

#[test]
fn an_acknowledgement_is_found_in_an_earlier_segment_until_the_alarm_is_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let events = [
        change(10, true, "up1"),
        acknowledged(11, "up1", "early"),
        change(12, false, "up1"),
        change(20, true, "up1"),
        change(20, true, "up2"),
        change(21, true, "up3"),
        acknowledged(22, "up2", "alice"),
        acknowledged(23, "up2", "bob"),
        acknowledged(23, "up3", "carol"),
    ];
    add(&mut database, 1, &block(&events));
    fill(&mut database, 2);
    add(&mut database, 202, &block(&[change(300, false, "up3")]));
    assert!(count_segments(&database.reader()) > 1);
    let expected = [
        ("up1".to_owned(), 20, None),
        ("up2".to_owned(), 20, Some(("bob".to_owned(), 23))),
    ];
    assert_eq!(standing(&database.reader()), expected);
    drop(database);
    assert_eq!(standing(&open(directory.path()).reader()), expected);
}

/// Records are encoded by position: those of earlier versions keep theirs.
#[test]
fn an_acknowledgement_is_the_fourth_kind_of_event() {
    let octets = postcard::to_allocvec(&acknowledged(7, "", "alice")).unwrap();
    assert_eq!(octets[..4], [7, 3, 0, 0]);
    let octets = postcard::to_allocvec(&change(7, true, "")).unwrap();
    assert_eq!(octets[..3], [7, 2, 1]);
}
