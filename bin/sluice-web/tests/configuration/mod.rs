//! Changes of the configuration.

use super::*;

#[test]
fn the_configuration_is_checked_committed_and_confirmed() {
    let web = Web::start();
    let token = web.token("netops", "configure", &[]);
    let send = |token: &str, what: &str, body: &str, more: &[&str]| {
        let file = web.folder().join("body.json");
        std::fs::write(&file, body).unwrap();
        let data = format!("@{}", file.display());
        let path = format!("/api/v1/configuration/{what}");
        web.ask(token, &path, &[&["--data-binary", &data], more].concat())
    };
    let order = |token: &str, what: &str, body: &str| send(token, what, body, &[]);
    let operator = web.token("operator", "operate", &[]);
    for what in ["check", "commit", "confirm"] {
        let refused = order(&operator, what, "{}");
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(refused.detail().contains("--role configure"));
    }

    let edits =
        r#"{"edits": ["set user-planes up1 admin-state shutting-down"], "comment": "a rate"}"#;
    let would = order(&token, "check", edits).json();
    assert_eq!(would["faults"], json!([]));
    let effect = json!({"text": "3 sessions end", "sessions": 3, "ends": true});
    assert_eq!(would["effects"], json!([effect]));
    let done = order(&token, "commit", edits);
    assert_eq!((done.status, &done.json()["version"]), (200, &json!(8)));
    let kept = order(&token, "confirm", "");
    assert_eq!((kept.status, kept.json()), (200, json!({"version": 8})));

    let outdated = r#"{"edits": ["delete users"], "base": 3}"#;
    let outdated = order(&token, "commit", outdated);
    assert_eq!(outdated.status, 409, "{outdated:?}");
    let faulty = order(&token, "commit", r#"{"edits": ["delete pools homes"]}"#);
    assert_eq!(faulty.status, 422, "{faulty:?}");
    let said = "Nothing was changed: pools homes: there is no such pool";
    assert_eq!(faulty.detail(), said);
    assert_eq!(faulty.json()["faults"][0]["path"], "pools homes");

    for body in [r#"{"document": {"pools": {}}}"#, r#"{"version": 5}"#] {
        assert_eq!(order(&token, "commit", body).status, 200, "{body}");
    }
    let large = json!({"document": "# ".repeat(1 << 20)}).to_string();
    assert_eq!(order(&token, "commit", &large).status, 200);
    let too_large = json!({"document": " ".repeat(17 << 20)}).to_string();
    let too_large = send(&token, "commit", &too_large, &["--http1.1"]);
    assert_eq!(too_large.status, 413, "before it was sent");
    for (body, says) in [
        ("{}", "Expected one of `edits`"),
        (
            r#"{"version": 5, "document": "x"}"#,
            "Expected one of `edits`",
        ),
        (r#"{"version": 5, "base": 3}"#, "Expected one of `edits`"),
        (r#"{"edits": ["show pools"]}"#, "expected `set PATH VALUE`"),
        (r#"{"version": 5, "force": true}"#, "unknown field `force`"),
        (r#"{"document": null}"#, "Expected one of `edits`"),
        (r#"{"document": 7}"#, "Expected one of `edits`"),
    ] {
        let wrong = order(&token, "commit", body);
        assert_eq!(wrong.status, 400, "{body}: {wrong:?}");
        assert!(wrong.detail().contains(says), "{wrong:?}");
    }
    for body in [
        json!({"version": 5, "confirm-within": 86_401}),
        json!({"version": 5, "comment": "é".repeat(1001)}),
    ] {
        for what in ["check", "commit"] {
            let wrong = order(&token, what, &body.to_string());
            assert_eq!(wrong.status, 400, "{body}: {wrong:?}");
        }
    }
    let log = web.log();
    let commits = log.iter().filter(|line| line.contains("a commit"));
    assert_eq!(commits.count(), 6, "{log:#?}");
    let told = |words: &str| log.iter().any(|line| line.contains(words));
    assert!(
        told(r#"who="netops" kind="edits" result="version 8""#),
        "{log:#?}"
    );
    assert!(!told("shutting-down"), "an edit may have a secret in it");
}

#[test]
fn a_line_is_completed_with_the_model_and_what_is_configured() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    let complete = |token: &str, body: &Value| {
        let body = body.to_string();
        let path = "/api/v1/configuration/completions";
        web.ask(token, path, &["--data-binary", &body])
    };
    let told = |line: &str| complete(&token, &json!({"line": line})).json();
    let words = |told: &Value| -> Vec<String> {
        let options = told["options"].as_array().unwrap().iter();
        options
            .map(|o| o["word"].as_str().unwrap().into())
            .collect()
    };
    let viewer = web.token("viewer", "view", &[]);
    assert_eq!(complete(&viewer, &json!({"line": ""})).status, 403);

    assert_eq!(words(&told("")), ["delete", "set"]);
    let planes = told("set user-planes ");
    assert_eq!(words(&planes), ["up1"]);
    assert_eq!(
        (&planes["place"], &planes["begins"]),
        (&json!("user-planes"), &json!(16))
    );
    let state = told("set user-planes up1 admin-state shu");
    let model = config::schema::root();
    let place = config::Path::parse("user-planes up1 admin-state").unwrap();
    let about = model.find(&place).unwrap().doc.replace('\n', " ");
    assert_eq!(state["about"], about);
    assert_eq!(words(&state), ["shutting-down"]);
    assert_ne!(state["options"][0]["help"], "");
    let begins = told("set users \"é ü");
    assert_eq!(begins["begins"], 10, "characters, not octets");

    let edits = [
        "set users ann password hunter2",
        "set ipv4-pools more",
        "set ipv4-",
        "nonsense",
    ];
    let above = |line: &str| complete(&token, &json!({"line": line, "edits": edits}));
    assert_eq!(words(&above("set ipv4-pools ").json()), ["more"]);
    for line in ["set users ann password ", "delete users ann password "] {
        assert!(!above(line).body.contains("hunter2"), "a secret");
    }
    // a long draft is more than other requests may have
    let many: Vec<_> = (0..1000)
        .map(|n| format!("set ipv4-pools p{n:03}"))
        .collect();
    let many = complete(&token, &json!({"line": "set ipv4-pools p", "edits": many})).json();
    assert_eq!((words(&many).len(), &many["more"]), (100, &json!(900)));

    let longest = complete(&token, &json!({"line": "é".repeat(4096)}));
    assert_eq!(longest.status, 200, "characters, not octets");
    let long = "x".repeat(4097);
    for wrong in [
        json!({"line": long}),
        json!({"line": 7}),
        json!({"secret": "hunter2"}),
    ] {
        let wrong = complete(&token, &wrong);
        assert_eq!(wrong.status, 400, "{wrong:?}");
        assert!(
            wrong.detail().contains("at most 4096 characters"),
            "{wrong:?}"
        );
        assert!(!wrong.detail().contains("hunter2"), "{wrong:?}");
    }
    let log = web.log();
    let looked = log
        .iter()
        .filter(|line| line.contains("a line is completed"));
    assert_eq!(looked.count(), 3, "who looked at users: {log:#?}");
    assert!(!log.iter().any(|line| line.contains("hunter2")), "{log:#?}");
}
