//! Actions: who may, and what the control plane is asked.

use super::*;

#[test]
fn an_action_needs_its_role_and_is_told_with_who_did_it() {
    let web = Web::start();
    let clear = |token: &str, body: &str| {
        let path = "/api/v1/actions/clear-session";
        web.ask(token, path, &["--data", body])
    };
    let viewer = web.token("viewer", "support", &[]);
    let refused = clear(&viewer, r#"{"session": "0000000000000007"}"#);
    assert_eq!(refused.status, 403);
    assert!(refused.detail().contains("--role operate"));
    let noc = web.token("noc", "operate", &[]);
    assert_eq!(
        clear(&noc, r#"{"session": "0000000000000007"}"#).status,
        204
    );
    let nowhere = clear(&noc, r#"{"session": "9"}"#);
    assert_eq!(
        (nowhere.status, nowhere.detail()),
        (404, "there is no session 9".into())
    );
    for (body, says) in [
        ("{}", "`session` is missing"),
        ("[]", "no JSON object"),
        (r#"{"session": "7", "by": "x"}"#, "`by` is not known here"),
        (r#"{"session": ["7"]}"#, "expected a text"),
    ] {
        let wrong = clear(&noc, body);
        assert_eq!(wrong.status, 400, "{body}: {wrong:?}");
        assert!(wrong.detail().contains(says), "{wrong:?}");
    }
    assert_eq!(clear(&noc, &"x".repeat(20_000)).status, 413);
    assert_eq!(
        web.ask(&noc, "/api/v1/actions/top", &["--data", "{}"])
            .status,
        404
    );
    let log = web.log();
    let audit = log.iter().filter(|line| line.contains("an action"));
    let audit: Vec<_> = audit.filter(|line| line.contains("who=\"noc\"")).collect();
    assert_eq!(audit.len(), 2, "{log:#?}");
    assert!(
        audit[0].contains("session=\"0000000000000007\" result=\"done\""),
        "{audit:?}"
    );
    assert!(
        log.iter().all(|line| !line.contains(&noc)),
        "a token is in the log"
    );
}

#[test]
fn sessions_are_filtered_and_those_that_were_seen_are_ended() {
    let web = Web::start();
    let support = web.token("support", "support", &[]);
    let noc = web.token("noc", "operate", &[]);
    let page = web.rows(&support, "/api/v1/sessions?user-prefix=home12&limit=60");
    assert_eq!(page["total"], 100);
    assert_eq!(page["rows"].as_array().unwrap().len(), 60);
    let next = format!(
        "/api/v1/sessions?user-prefix=home12&cursor={}",
        page["next"]
    );
    let rest = web.rows(&support, &next);
    assert_eq!(rest["rows"].as_array().unwrap().len(), 40);
    assert_eq!((&rest["next"], rest.get("total")), (&Value::Null, None));
    for (wrong, says) in [
        ("mac=x", "no MAC address"),
        ("user=", "`user` is empty"),
        ("state=gone", "expected one of connecting, online, closing"),
        ("s-tag=4096", "expected 0 to 4095"),
        ("name=x", "is not known here"),
    ] {
        let refused = web.ask(&support, &format!("/api/v1/sessions?{wrong}"), &[]);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.detail().contains(says), "{refused:?}");
    }
    let clear = |token: &str, body: Value| {
        let path = "/api/v1/actions/clear-sessions";
        web.ask(token, path, &["--data", &body.to_string()])
    };
    let order = json!({"user-prefix": "home12", "expect": 100, "rate": 7});
    assert_eq!(clear(&support, order.clone()).status, 403);
    let done = clear(&noc, order);
    assert_eq!(done.json(), json!({"sessions": 100, "rate": 7}), "{done:?}");
    for (order, status, says) in [
        (json!({"user-prefix": "home12"}), 400, "give its `total`"),
        (json!({"expect": 1300}), 400, "give a filter"),
        (
            json!({"user-prefix": "home12", "expect": 90}),
            409,
            "100 sessions match now",
        ),
        (json!({"stop": true}), 404, "under way"),
    ] {
        let refused = clear(&noc, order);
        assert_eq!(refused.status, status, "{refused:?}");
        assert!(refused.detail().contains(says), "{refused:?}");
    }
    let clears = web.rows(&support, "/api/v1/session-clears");
    assert_eq!(clears["rows"][0]["ended"], 30);
    let audit = "action=\"clear sessions\" arguments=expect=\"100\" rate=\"7\" user-prefix=\"home12\" result=\"done\"";
    let log = web.log();
    assert!(log.iter().any(|line| line.contains(audit)), "{log:#?}");
}

#[test]
fn aaa_is_tested_and_the_password_is_in_no_log_and_no_answer() {
    let web = Web::start();
    let support = web.token("support", "support", &[]);
    let noc = web.token("noc", "operate", &[]);
    let test = |token: &str, body: &Value| {
        let path = "/api/v1/actions/test-aaa";
        web.ask(token, path, &["--data", &body.to_string()])
    };
    let whole = json!({"user": "alice", "password": "wonderland", "access-profile": "pppoe"});
    assert_eq!(test(&support, &whole).status, 403);
    let tested = test(&noc, &whole);
    assert_eq!(tested.status, 200, "{tested:?}");
    assert_eq!(
        (&tested.json()["accepted"], &tested.json()["asked"]),
        (&json!(true), &json!("pppoe"))
    );
    let wrong = test(
        &noc,
        &json!({"user": "alice", "password": {"wonderland": 1}}),
    );
    assert_eq!(wrong.status, 400);
    for reply in [&tested, &wrong] {
        assert!(!reply.body.contains("wonderland"), "{reply:?}");
    }
    let log = web.log();
    let audit = "who=\"noc\" action=\"test aaa\" user=\"alice\"";
    assert!(log.iter().any(|line| line.contains(audit)), "{log:#?}");
    assert!(
        log.iter().all(|line| !line.contains("wonderland")),
        "{log:#?}"
    );
}

#[test]
fn an_alarm_is_acknowledged_by_a_person_and_tells_it() {
    let web = Web::start();
    let support = web.token("support", "support", &[]);
    let noc = web.token("noc", "operate", &[]);
    let acknowledge = |token: &str, body: &Value| {
        let path = "/api/v1/actions/acknowledge-alarm";
        web.ask(token, path, &["--data", &body.to_string()])
    };
    let whole =
        json!({"alarm": "aaa-server-out", "resource": "first", "comment": "its rack moves"});
    assert_eq!(acknowledge(&support, &whole).status, 403);
    assert_eq!(acknowledge(&noc, &whole).status, 204);
    assert_eq!(
        acknowledge(&noc, &json!({"alarm": "aaa-server-out"})).status,
        204
    );
    let nowhere = acknowledge(&noc, &json!({"alarm": "store-slow"}));
    assert_eq!(nowhere.status, 404, "{nowhere:?}");
    let long = json!({"alarm": "aaa-server-out", "comment": "x".repeat(1001)});
    let long = acknowledge(&noc, &long);
    assert_eq!(long.status, 400);
    assert!(long.detail().contains("expected at most 1000"), "{long:?}");
    let log = web.log();
    let audit = "action=\"acknowledge alarm\" arguments=alarm=\"aaa-server-out\" comment=\"its rack moves\" resource=\"first\" result=\"done\"";
    assert!(log.iter().any(|line| line.contains(audit)), "{log:#?}");
    let alarms = web.rows(&support, "/api/v1/alarms");
    let by = json!({"by": "alice", "at": 7, "comment": "its rack moves"});
    assert_eq!(alarms["rows"][0]["acknowledged"], by);
}

#[test]
fn a_drain_is_an_action_that_needs_the_role_of_a_commit() {
    let web = Web::start();
    let noc = web.token("noc", "operate", &[]);
    let netops = web.token("netops", "configure", &[]);
    let drain = |token: &str, body: &Value| {
        let path = "/api/v1/actions/drain-user-plane";
        web.ask(token, path, &["--data", &body.to_string()])
    };
    let begin = json!({"user-plane": "up1", "end-sessions": 20});
    let refused = drain(&noc, &begin);
    assert_eq!(refused.status, 403);
    assert!(refused.detail().contains("--role configure"), "{refused:?}");
    let nothing = drain(&netops, &json!({"user-plane": "up1", "stop": true}));
    assert_eq!(
        nothing.json(),
        json!({"version": 7, "effects": [], "pending": []})
    );
    let done = drain(&netops, &begin);
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    assert_eq!(
        (&done["version"], &done["pending"]),
        (&json!(8), &json!([]))
    );
    assert_eq!(done["effects"][0]["text"], "3 sessions end");
    for (body, status, says) in [
        (json!({"user-plane": "up9"}), 404, "`up9` does not exist"),
        (
            json!({"user-plane": "up1", "end-sessions": 0}),
            400,
            "expected 1 to 10000",
        ),
        (
            json!({"user-plane": "up1", "end-sessions": 5, "stop": true}),
            400,
            "contradict",
        ),
        (json!({}), 400, "`user-plane` is missing"),
    ] {
        let refused = drain(&netops, &body);
        assert_eq!(refused.status, status, "{body}: {refused:?}");
        assert!(refused.detail().contains(says), "{refused:?}");
    }
    let document = web.rows(&noc, "/api/v1/openapi.json");
    let role = |path: &str| document["paths"][path]["post"]["x-sluice-role"].clone();
    assert_eq!(role("/api/v1/actions/drain-user-plane"), "configure");
    assert_eq!(role("/api/v1/actions/clear-session"), "operate");
}

#[test]
fn an_aggregate_moves_to_a_worker() {
    let web = Web::start();
    let noc = web.token("noc", "operate", &[]);
    let viewer = web.token("viewer", "support", &[]);
    let path = "/api/v1/actions/move-aggregate";
    let ask = |token: &str, body: Value| web.ask(token, path, &["--data", &body.to_string()]);
    let order = json!({"aggregate": "up1/access0/olt1.100", "worker": 3});
    assert_eq!(ask(&viewer, order.clone()).status, 403);
    let moved = ask(&noc, order);
    assert_eq!(
        (moved.status, moved.json()),
        (200, json!({"sessions": 103, "split_subscribers": 2}))
    );
    for (body, status, says) in [
        (
            json!({"aggregate": "up9/access0/olt1", "worker": 0}),
            404,
            "up9",
        ),
        (json!({"aggregate": "access0", "worker": 0}), 404, "no name"),
        (
            json!({"aggregate": "up1/access0/olt1", "worker": 16}),
            400,
            "0 to 15",
        ),
        (
            json!({"aggregate": "up1/access0/olt1"}),
            400,
            "`worker` is missing",
        ),
    ] {
        let refused = ask(&noc, body);
        assert_eq!(refused.status, status, "{refused:?}");
        assert!(refused.detail().contains(says), "{refused:?}");
    }
}

#[test]
fn a_backup_of_the_history_says_where_it_is() {
    let web = Web::start();
    let path = "/api/v1/actions/backup-history";
    let viewer = web.token("viewer", "support", &[]);
    assert_eq!(web.ask(&viewer, path, &["--data", "{}"]).status, 403);
    let token = web.token("noc", "operate", &[]);
    let made = web.ask(&token, path, &["--data", "{}"]);
    let expected = json!({"path": "/var/lib/sluice/history/backup.db", "octets": 4096});
    assert_eq!((made.status, made.json()), (200, expected));
}
