//! Events as they happen, as curl reads them.

use super::*;
use std::thread::sleep;
use std::time::Duration;

/// A client that stays.
struct Follower {
    curl: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.curl.kill();
        let _ = self.curl.wait();
    }
}

impl Follower {
    /// Waits until its place is told.
    fn start(web: &Web, token: &str, query: &str, more: &[&str]) -> (Self, u64) {
        let more = [&["--no-buffer", "--max-time", "60"], more].concat();
        let mut curl = web.curl(token, &format!("/api/v1/events/stream{query}"), &more);
        let lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        let mut follower = Follower { curl, lines };
        let place = follower.field("id");
        (follower, place.parse().unwrap())
    }

    /// The next field of this name.
    fn field(&mut self, name: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let field =
            lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()));
        field.unwrap_or_else(|| panic!("no {name} comes"))
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.field("data")).unwrap()
    }
}

#[test]
fn events_come_as_they_happen_and_go_on_behind_the_last_one() {
    let web = Web::start();
    let token = web.token("noc", "support", &[]);
    web.plane.happens(5);
    let (mut follower, place) = Follower::start(&web, &token, "", &[]);
    assert_eq!(place, 5, "it begins with now");
    web.plane.happens(2);
    let first = follower.event();
    assert_eq!(
        (&first["number"], &first["kind"]),
        (&json!(6), &json!("online"))
    );
    assert_eq!(first["subscriber"]["user"], "home6");
    assert_eq!(follower.field("id"), "7");
    drop(follower);

    web.plane.happens(300);
    let id = "Last-Event-ID: 7";
    let (mut follower, first) = Follower::start(&web, &token, "?after=3", &["-H", id]);
    assert_eq!(first, 8, "the header counts");
    for number in 8..=307 {
        assert_eq!(follower.event()["number"], number);
    }
}

#[test]
fn a_follower_gets_the_kinds_that_it_wants_and_is_told_what_is_gone() {
    let web = Web::start();
    let token = web.token("noc", "support", &[]);
    web.plane.happens(10);
    web.plane.forgets(2);
    let (mut follower, place) =
        Follower::start(&web, &token, "?after=0&kinds=alarm-raised,ended", &[]);
    assert_eq!(place, 4);
    assert_eq!(follower.event()["alarm"], "pool-full");
    assert_eq!(follower.event()["number"], 8);
    assert_eq!(
        follower.field("id"),
        "10",
        "its place is behind what it does not want"
    );
    drop(follower);

    let mut curl = web.curl(
        &token,
        "/api/v1/events/stream?after=0",
        &["--no-buffer", "--max-time", "60"],
    );
    let mut lines = BufReader::new(curl.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line == "event: lost"));
    assert_eq!(lines.next().unwrap(), r#"data: {"at_least":2}"#);
    curl.kill().unwrap();
    curl.wait().unwrap();
}

#[test]
fn events_are_for_those_who_may_see_subscribers_and_for_a_few_at_once() {
    let web = Web::start();
    let viewer = web.token("viewer", "view", &[]);
    assert_eq!(web.ask(&viewer, "/api/v1/events/stream", &[]).status, 403);
    let token = web.token("noc", "support", &[]);
    for (query, more, says) in [
        ("?kinds=end", &[][..], "`end` is no kind"),
        ("?after=x", &[], "expected 0"),
        ("?last=5", &[], "`last` is not known here"),
        ("", &["-H", "Last-Event-ID: x"], "no number of an event"),
    ] {
        let wrong = web.ask(&token, &format!("/api/v1/events/stream{query}"), more);
        assert_eq!(wrong.status, 400, "{query}: {wrong:?}");
        assert!(wrong.detail().contains(says), "{wrong:?}");
    }
    let all: Vec<_> = (0..12)
        .map(|_| Follower::start(&web, &token, "", &[]))
        .collect();
    let full = web.ask(&token, "/api/v1/events/stream", &[]);
    assert_eq!(full.status, 503, "{full:?}");
    drop(all);
    let again = (0..100).any(|_| {
        sleep(Duration::from_millis(100));
        let more = ["--max-time", "1"];
        let done = web
            .curl(&token, "/api/v1/events/stream", &more)
            .wait_with_output();
        String::from_utf8_lossy(&done.unwrap().stdout).contains("event-stream")
    });
    assert!(again, "those who went left room");
}

#[test]
fn a_follower_whose_control_plane_goes_is_told_by_the_end() {
    let mut web = Web::start();
    let token = web.token("noc", "support", &[]);
    let (mut follower, _) = Follower::start(&web, &token, "", &[]);
    web.plane.stop();
    assert!(follower.curl.wait().is_ok());
    let away = web.ask(&token, "/api/v1/events/stream", &[]);
    assert_eq!(away.status, 503, "{away:?}");
}
