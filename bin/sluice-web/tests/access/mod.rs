//! Who is let in.

use super::*;

#[test]
fn nobody_is_let_in_without_a_token_of_the_role_by_the_right_name() {
    let web = Web::start();
    let viewer = web.token("viewer", "view", &["--expires", "1d"]);
    let none = web.ask("", "/api/v1/pools", &[]);
    assert_eq!(none.status, 401);
    assert!(
        none.header("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    assert!(none.detail().contains("sluice-web token add"));
    assert_eq!(web.ask("sluice_0", "/api/v1/pools", &[]).status, 401);

    let right = web.ask(&viewer, "/api/v1/pools", &[]);
    assert_eq!(right.status, 200);
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(right.header(name), Some(value));
    }
    let forbidden = web.ask(&viewer, "/api/v1/sessions", &[]);
    assert_eq!(forbidden.status, 403);
    assert!(forbidden.detail().contains("--role support"));

    for more in [
        &["--http1.1", "-H", "Host: evil.example"][..],
        &["-H", "Host: evil.example"],
    ] {
        let rebound = web.ask(&viewer, "/api/v1/pools", more);
        assert_eq!(rebound.status, 400, "{rebound:?}");
        assert!(rebound.detail().contains("`hosts`"));
    }
    let nowhere = web.ask(&viewer, "/api/v1/nothing", &[]);
    assert_eq!(nowhere.status, 404);
    assert!(nowhere.detail().contains("openapi.json"));
    assert_eq!(
        web.ask(&viewer, "/api/v1/pools", &["-X", "POST"]).status,
        405
    );

    let revoked = program(&web.folder(), &["token", "revoke", "viewer"]).status();
    assert!(revoked.unwrap().success());
    assert_eq!(web.ask(&viewer, "/api/v1/pools", &[]).status, 401);
}

#[test]
fn wrong_tokens_lock_an_address_out() {
    let web = Web::start();
    let viewer = web.token("viewer", "view", &[]);
    for _ in 0..10 {
        assert_eq!(web.ask("sluice_wrong", "/metrics", &[]).status, 401);
    }
    // nobody guesses a right one, and others may share the address
    assert_eq!(web.ask(&viewer, "/metrics", &[]).status, 200);
    for _ in 0..10 {
        web.ask("sluice_wrong", "/metrics", &[]);
    }
    let locked = web.ask("sluice_wrong", "/metrics", &[]);
    assert_eq!(
        (locked.status, locked.header("retry-after")),
        (429, Some("300"))
    );
    assert!(locked.detail().contains("wait five minutes"));
}

#[test]
fn a_head_that_is_too_large_and_a_client_without_tls_get_nothing() {
    let web = Web::start();
    let token = web.token("viewer", "view", &[]);
    let large = format!("X-Large: {}", "x".repeat(20_000));
    let refused = web.ask(&token, "/metrics", &["--http1.1", "-H", &large]);
    assert_eq!(refused.status, 431);
    let plain = Command::new("curl")
        .args(["--silent", &format!("http://{}/metrics", web.at)])
        .output()
        .unwrap();
    assert!(
        !plain.status.success() && plain.stdout.is_empty(),
        "{plain:?}"
    );
    assert_eq!(web.ask(&token, "/metrics", &[]).status, 200);
}
