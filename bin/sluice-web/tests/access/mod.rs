//! Who is let in.

mod scopes;

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

/// Requests of an address at once, and in a second for longer, as decision 0044 says.
const AT_ONCE: usize = 100;
const IN_A_SECOND: usize = 20;
/// Connections of an address, as it says.
const CONNECTIONS: usize = 32;

#[test]
fn an_address_that_asks_too_often_is_told_to_wait() {
    let web = Web::start();
    let begun = std::time::Instant::now();
    let asked = 400;
    // `[1-400]` is curl's: so many requests by one connection
    let paths = format!("/metrics?[1-{asked}]");
    let done = web.curl("", &paths, &[]).wait_with_output().unwrap();
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let text = String::from_utf8(done.stdout).unwrap();
    // no line ends before the next head
    let refused = text.matches("HTTP/2 429").count();
    let served = text.matches("HTTP/2 401").count();
    assert_eq!(refused + served, asked, "{text}");
    let most = AT_ONCE + IN_A_SECOND * seconds;
    assert!(served >= AT_ONCE, "{served} are served");
    assert!(served <= most && most < asked, "{served} in {seconds} s");
    assert!(text.contains("retry-after: 1"), "{text}");
    // a second later it is served again
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_ne!(web.ask("", "/metrics", &[]).status, 429);
}

#[test]
fn an_address_has_so_many_connections() {
    let web = Web::start();
    let connect = || std::net::TcpStream::connect(&web.at).unwrap();
    let mut held: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    let refused = web.curl("", "/metrics", &[]).wait_with_output().unwrap();
    assert!(!refused.status.success(), "{refused:?}");
    held.pop();
    let reply = || web.curl("", "/metrics", &[]).wait_with_output().unwrap();
    let is_served = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        reply().status.success()
    });
    assert!(is_served);
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
