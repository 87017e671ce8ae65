//! Records of sessions, as curl reads them.

use super::*;

const PATH: &str = "/api/v1/records";

/// The records of an answer.
fn records(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines = reply.body.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn records_come_a_line_each_and_go_on_behind_the_last_one() {
    let web = Web::start();
    let token = web.token("billing", "support", &["--scope", "records"]);
    assert!(records(&web.ask(&token, PATH, &[])).is_empty());
    web.plane.happens(2_000);
    let all = records(&web.ask(&token, PATH, &[]));
    let numbers: Vec<u64> = all.iter().map(|r| r["number"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = (1_001..=2_000).filter(|number| number % 4 == 2).collect();
    assert_eq!(numbers, expected, "in many parts, each once");
    assert_eq!(all[0]["kind"], "counted");
    assert_eq!(all[0]["traffic"]["up_octets"], 1_002);
    assert_eq!(all[0]["ended"], all[0]["at"]);

    let last = numbers.last().unwrap();
    web.plane.happens(8);
    let behind = format!("{PATH}?after={last}");
    let new = records(&web.ask(&token, &behind, &[]));
    assert_eq!(new.len(), 2, "{new:?}");
    web.plane.forgets(last + 4);
    let gone = web.ask(&token, &behind, &[]);
    assert_eq!(gone.status, 410, "{gone:?}");
    assert!(gone.detail().contains("ask with `since`"), "{gone:?}");
    let left = records(&web.ask(&token, &format!("{PATH}?since=-1h"), &[]));
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn an_answer_that_ends_too_early_is_an_error_and_others_find_room() {
    let web = Web::start();
    let token = web.token("billing", "support", &[]);
    web.plane.happens(1_500);
    web.plane.is_cut_off();
    for _ in 0..3 {
        let done = web.curl(&token, PATH, &[]).wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.starts_with("HTTP/2 200"), "{text}");
        assert!(!done.status.success(), "curl takes it for the whole");
    }
}

#[test]
fn records_are_for_those_who_may_see_subscribers() {
    let web = Web::start();
    let viewer = web.token("viewer", "view", &[]);
    assert_eq!(web.ask(&viewer, PATH, &[]).status, 403);
    let token = web.token("noc", "support", &[]);
    for (query, says) in [
        ("?kinds=online", "`kinds` is not known here"),
        ("?since=yesterday", "expected"),
        ("?after=x", "expected 0"),
    ] {
        let wrong = web.ask(&token, &format!("{PATH}{query}"), &[]);
        assert_eq!(wrong.status, 400, "{query}: {wrong:?}");
        assert!(wrong.detail().contains(says), "{wrong:?}");
    }
}
