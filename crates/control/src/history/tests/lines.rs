//! What happened on access lines.

use super::*;
use northbound::LineHistory;

/// An event on the line with this circuit id, or on VLANs of its own.
fn on_line(circuit: Option<&'static [u8]>, mut event: Event<'static>) -> Event<'static> {
    if let What::Subscriber(who, _) = &mut event.what {
        who.line = [circuit, None];
    }
    event
}

fn refused(unix: u32, session: u64, why: &'static str) -> Event<'static> {
    let step = Step::Refused {
        dialled: unix,
        servers: None,
        why,
        reply: b"",
    };
    subscriber(unix, session, step)
}

fn lines(database: &Database, subject: &str, since: Option<u32>) -> Vec<LineHistory> {
    let query = Query {
        subjects: (!subject.is_empty())
            .then(|| Subject::parse(subject))
            .into_iter()
            .collect(),
        since,
        ..Query::default()
    };
    database.reader().lines(&query, || true).lines
}

/// A history of three lines in several segments.
fn history(directory: &Path) -> Database {
    let mut database = open(directory);
    let had = || addresses(Some(1), None);
    let (first, second): (Option<&[u8]>, Option<&[u8]>) = (Some(b"olt 1/1"), Some(b"olt 1/2"));
    let events = [
        on_line(first, online(100, 1, had())),
        on_line(first, ended(200, 1, 100, had())),
        on_line(first, refused(300, 2, "unknown user")),
        on_line(second, online(400, 3, had())),
        on_line(first, refused(500, 2, "wrong password")),
        on_line(None, online(600, 4, had())),
    ];
    for (n, event) in events.into_iter().enumerate() {
        add(&mut database, n as u64 + 1, &block(&[event]));
    }
    database
}

#[test]
fn each_line_has_its_counts_and_the_latest_event_of_each_kind() {
    let directory = tempfile::tempdir().unwrap();
    let database = history(directory.path());
    let all = lines(&database, "", None);
    let seen = all.iter().map(|line| (&*line.line, line.heard_at));
    let expected = [
        ("up1/access0.100.4", 600),
        ("olt 1/1 at up1/access0", 500),
        ("olt 1/2 at up1/access0", 400),
    ];
    assert!(seen.eq(expected), "{all:?}");
    let first = &all[1];
    let counts = [first.set_ups, first.ends, first.refusals, first.failures];
    assert_eq!(counts, [1, 1, 2, 0]);
    let refused = first.last_refused.clone().unwrap();
    assert_eq!((refused.at, &*refused.text), (500, "wrong password"));
    assert_eq!(first.last_ended.clone().unwrap().at, 200);
    assert_eq!(first.last_failed, None);
}

#[test]
fn lines_are_of_those_who_were_there_and_of_the_time_that_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let database = history(directory.path());
    let names = |subject, since| -> Vec<String> {
        let lines = lines(&database, subject, since);
        lines.into_iter().map(|line| line.line).collect()
    };
    assert_eq!(names("olt 1/1", None), ["olt 1/1 at up1/access0"]);
    assert_eq!(names("up1/access0.100.4", None), ["up1/access0.100.4"]);
    assert_eq!(names("mallory", None), [""; 0]);
    assert_eq!(
        names("", Some(450)),
        ["up1/access0.100.4", "olt 1/1 at up1/access0"]
    );
    let later = lines(&database, "olt 1/1", Some(450)).remove(0);
    assert_eq!((later.set_ups, later.refusals), (0, 1));
}
