//! Questions about one thing, and the state as it changes.

use super::*;

#[test]
fn why_a_subscriber_is_not_online_is_said_as_on_the_command_line() {
    let web = Web::start();
    let support = web.token("support", "support", &[]);
    let said = web.rows(&support, "/api/v1/explain?subscriber=home0007");
    let sentences = said["sentences"].as_array().unwrap();
    let first = sentences[0].as_str().unwrap();
    assert!(first.starts_with("home0007 is online"), "{first}");
    assert_eq!(said["sessions"][0]["session"]["user"], "home0007");
    assert_eq!(said["policies"], json!([null]));
    let nobody = web.rows(&support, "/api/v1/explain?subscriber=nobody");
    let first = nobody["sentences"][0].as_str().unwrap();
    assert!(first.starts_with("Nothing is known of nobody"), "{first}");
    let viewer = web.token("viewer", "view", &[]);
    let refused = web.ask(&viewer, "/api/v1/explain?subscriber=home0007", &[]);
    assert_eq!(refused.status, 403);
}

#[test]
fn questions_about_one_thing_are_answered_as_the_command_line_does() {
    let web = Web::start();
    let viewer = web.token("viewer", "view", &[]);
    let token = web.token("support", "support", &[]);
    let session = "/api/v1/session?session=0000000000000007";
    assert_eq!(web.ask(&viewer, session, &[]).status, 403);
    let told = web.rows(&token, session);
    assert_eq!(told["user"], "home0007");
    assert_eq!(told["settings"], json!([plane::setting()]));
    assert_eq!(told["policy"], Value::Null, "its user plane does not tell");
    let nowhere = web.ask(&token, "/api/v1/session?session=x", &[]);
    assert_eq!(
        (nowhere.status, nowhere.detail()),
        (404, "there is no session x".into())
    );
    assert_eq!(web.ask(&token, "/api/v1/session", &[]).status, 400);

    let own = web.rows(&token, "/api/v1/subscriber?subscriber=home0007");
    let seventh = plane::sessions().nth(7);
    assert_eq!(own, json!([seventh]));
    let nobody = web.ask(&token, "/api/v1/subscriber?subscriber=nobody", &[]);
    assert_eq!(nobody.status, 404);
    assert!(nobody.detail().contains("has no session now"));

    let who = web.rows(
        &token,
        "/api/v1/who?address=100.64.0.9&at=2026-11-22T07:15:00Z",
    );
    let expected = plane::holders("100.64.0.9", Some(1_795_331_700));
    assert_eq!(who, json!(expected));

    let configuration = web.rows(&token, "/api/v1/configuration");
    let tree = json!({"ipv4-pools": {}, "user-planes": {"up1": {}}});
    let whole = json!({"version": 7, "document": "ipv4-pools: {}\n", "tree": tree});
    assert_eq!(configuration, whole);
    let gone = web.ask(&token, "/api/v1/configuration?version=3", &[]);
    assert_eq!(gone.status, 404);
    let log = web.log();
    let looked = log.iter().filter(|line| line.contains("a question"));
    let looked: Vec<_> = looked.filter(|line| line.contains("home0007")).collect();
    assert_eq!(looked.len(), 1, "who looked at whom: {log:#?}");
}

#[test]
fn the_state_comes_as_it_changes_to_a_bounded_number_of_clients() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    let path = "/api/v1/top?interval=1";
    let watch = || {
        let mut curl = web.curl(&token, path, &["--no-buffer"]);
        let lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        (curl, lines.map(Result::unwrap))
    };
    let mut watchers: Vec<_> = (0..16).map(|_| watch()).collect();
    for (_, lines) in &mut watchers {
        let states = lines.filter_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
        for state in states.take(2) {
            let state: Value = serde_json::from_str(&state).unwrap();
            assert_eq!(state["sessions"]["online"], 2);
        }
    }
    let refused = web.ask(&token, path, &[]);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.detail().contains("16 clients watch already"));
    let pools = web.ask(&token, "/api/v1/pools", &[]);
    assert_eq!(pools.status, 200, "others are answered");

    let (mut gone, _) = watchers.pop().unwrap();
    gone.kill().unwrap();
    gone.wait().unwrap();
    let (mut again, mut lines) = loop {
        let (mut again, mut lines) = watch();
        match lines.next().unwrap().contains("200") {
            true => break (again, lines),
            false => again.wait().unwrap(),
        };
    };
    assert!(lines.any(|line| line.starts_with("data: ")));
    again.kill().unwrap();
    again.wait().unwrap();
    for (mut curl, _) in watchers {
        curl.kill().unwrap();
        curl.wait().unwrap();
    }
}
