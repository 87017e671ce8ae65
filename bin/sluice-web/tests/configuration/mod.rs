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
    ] {
        let wrong = order(&token, "commit", body);
        assert_eq!(wrong.status, 400, "{body}: {wrong:?}");
        assert!(wrong.detail().contains(says), "{wrong:?}");
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
