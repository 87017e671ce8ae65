//! People sign in with passwords and links, and out.

mod commands;
mod links;

use crate::{Reply, Web, program};
use links::link;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

const PASSWORD: &str = "correct horse battery";
const SIGN_IN: &str = "/api/v1/sign-in";
const SIGN_OUT: &str = "/api/v1/sign-out";
const ME: &str = "/api/v1/me";
const POOLS: &str = "/api/v1/pools";

/// curl, as the browser of one person.
struct Browser<'w> {
    web: &'w Web,
    jar: String,
    origin: String,
}

impl<'w> Browser<'w> {
    fn new(web: &'w Web, name: &str) -> Self {
        let jar = web.folder().join(name).display().to_string();
        let origin = format!("Origin: https://{}", web.at);
        Browser { web, jar, origin }
    }

    /// A browser in which a user has signed in.
    fn signed_in(web: &'w Web, user: &str) -> Self {
        let browser = Browser::new(web, user);
        let reply = browser.sign_in(&json!({"user": user, "password": PASSWORD}));
        assert_eq!(reply.status, 200, "{reply:?}");
        browser
    }

    fn ask(&self, path: &str, more: &[&str]) -> Reply {
        let cookies = ["--cookie", &self.jar, "--cookie-jar", &self.jar];
        self.web.ask("", path, &[&cookies, more].concat())
    }

    /// Sends what a page of the server sends.
    fn post(&self, path: &str, body: &Value) -> Reply {
        let (body, site) = (body.to_string(), "Sec-Fetch-Site: same-origin");
        self.ask(path, &["--data", &body, "-H", &self.origin, "-H", site])
    }

    fn sign_in(&self, credentials: &Value) -> Reply {
        self.post(SIGN_IN, credentials)
    }

    fn status(&self, path: &str) -> u16 {
        self.ask(path, &[]).status
    }

    /// The secret in the cookie.
    fn secret(&self) -> String {
        let jar = std::fs::read_to_string(&self.jar).unwrap();
        let line = jar.lines().find(|line| line.contains("__Host-sluice"));
        let line = line.unwrap_or_else(|| panic!("no cookie: {jar}"));
        assert!(line.starts_with("#HttpOnly_"), "{line}");
        line.rsplit('\t').next().unwrap().to_owned()
    }
}

/// Runs a command of the program with a line of input.
fn command(web: &Web, words: &[&str], input: &str) -> Output {
    let mut child = program(&web.folder(), words);
    child.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // one that asks for nothing may be through already
    let _ = writeln!(stdin, "{input}");
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// What a command prints, or its error.
fn run(web: &Web, words: &[&str], input: &str) -> Result<String, String> {
    let done = command(web, words, input);
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap().trim().to_owned();
    match done.status.success() {
        true => Ok(text(done.stdout)),
        false => Err(text(done.stderr)),
    }
}

fn add(web: &Web, user: &str, role: &str) {
    let words = ["user", "add", user, "--role", role];
    run(web, &words, PASSWORD).unwrap();
}

#[test]
fn a_person_signs_in_asks_and_signs_out() {
    let web = Web::start();
    add(&web, "alice", "support");
    let alice = Browser::new(&web, "alice");
    assert_eq!(alice.status(ME), 401);
    let reply = alice.sign_in(&json!({"user": "alice", "password": PASSWORD}));
    assert_eq!(reply.status, 200, "{reply:?}");
    let told = reply.json();
    assert_eq!(
        (&told["name"], &told["role"]),
        (&json!("alice"), &json!("support"))
    );
    let expires = told["expires"].as_str().unwrap();
    let left = northbound::time::read(expires, 0).unwrap() - northbound::time::now();
    assert!(
        expires.contains('T') && (43_100..=43_200).contains(&left),
        "{expires}"
    );
    let secret = alice.secret();
    assert_eq!(secret.len(), 64, "256 bits");
    let cookie =
        format!("__Host-sluice={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200");
    assert_eq!(reply.header("set-cookie"), Some(&*cookie));

    assert_eq!(alice.ask(ME, &[]).json(), told);
    assert_eq!(alice.status("/api/v1/sessions"), 200);
    let refused = alice.post("/api/v1/actions/clear-session", &json!({"session": "7"}));
    assert_eq!(refused.status, 403);
    assert!(
        refused
            .detail()
            .contains("`alice` is signed in with the role support")
    );
    let metrics = alice.ask("/metrics", &["--http1.1"]).body;
    assert!(metrics.contains("\nsluice_web_sign_ins 1\n"), "{metrics}");

    let again = alice.sign_in(&json!({"user": "alice", "password": PASSWORD}));
    assert_eq!(again.status, 200);
    assert_ne!(
        alice.secret(),
        secret,
        "each sign-in has a secret of its own"
    );
    let stolen = |secret: &str| {
        let cookie = format!("__Host-sluice={secret}");
        web.ask("", ME, &["--cookie", &cookie]).status
    };
    assert_eq!(stolen(&secret), 401, "the one before has ended");
    let secret = alice.secret();
    assert_eq!(stolen(&secret), 200);
    let out = alice.post(SIGN_OUT, &json!({}));
    assert_eq!((out.status, &*out.body), (204, ""));
    assert!(
        out.header("set-cookie")
            .unwrap()
            .contains("__Host-sluice=; Path=/; Secure;")
    );
    assert_eq!(alice.status(ME), 401);
    assert_eq!(stolen(&secret), 401, "also for whoever has kept it");
    let late = web.ask("", ME, &["--cookie", &format!("__Host-sluice={secret}")]);
    assert!(late.detail().contains("Sign in again"), "{late:?}");
}

#[test]
fn a_token_has_no_sign_in_but_is_told_who_it_is() {
    let web = Web::start();
    let token = web.token("noc", "operate", &["--expires", "never"]);
    let me = json!({"name": "noc", "role": "operate", "scopes": [], "expires": null});
    assert_eq!(web.ask(&token, ME, &[]).json(), me);
    let out = web.ask(&token, SIGN_OUT, &["--data", ""]);
    assert_eq!(out.status, 400);
    assert!(out.detail().contains("token revoke"));
}

#[test]
fn wrong_passwords_are_refused_alike_and_lock_an_address_out() {
    let web = Web::start();
    add(&web, "alice", "view");
    let (alice, other) = (Browser::new(&web, "alice"), Browser::new(&web, "other"));
    let token = web.token("viewer", "view", &[]);
    let wrong = alice.sign_in(&json!({"user": "alice", "password": "incorrect horse"}));
    let unknown = other.sign_in(&json!({"user": "mallory", "password": PASSWORD}));
    assert_eq!((wrong.status, unknown.status), (401, 401));
    assert_eq!(
        wrong.detail(),
        unknown.detail(),
        "it does not tell which users there are"
    );
    for reply in [wrong, unknown] {
        assert_eq!(reply.header("set-cookie"), None);
        assert!(reply.header("www-authenticate").is_some());
    }
    for body in [
        json!({}),
        json!({"user": "alice"}),
        json!({"user": "alice", "password": 7}),
    ] {
        assert_eq!(alice.sign_in(&body).status, 400, "{body}");
    }
    assert_eq!(alice.ask(SIGN_IN, &[]).status, 405);
    let metrics = web.ask(&token, "/metrics", &["--http1.1"]).body;
    assert!(
        metrics.contains("\nsluice_web_wrong_tokens_total 2\n"),
        "{metrics}"
    );

    for _ in 2..10 {
        // a right token does not help whoever guesses
        assert_eq!(web.ask(&token, ME, &[]).status, 200);
        let wrong = other.sign_in(&json!({"user": "alice", "password": "guess guess guess"}));
        assert_eq!(wrong.status, 401, "{wrong:?}");
    }
    let right = alice.sign_in(&json!({"user": "alice", "password": PASSWORD}));
    assert_eq!(
        (right.status, right.header("retry-after")),
        (429, Some("300"))
    );
    // whoever has a token shares the address, and does not guess
    assert_eq!(web.ask(&token, ME, &[]).status, 200);
}

#[test]
fn whoever_guesses_many_at_once_is_locked_out_as_well() {
    let web = Web::start();
    add(&web, "alice", "view");
    let guess = json!({"user": "alice", "password": "guess guess guess"}).to_string();
    let at_once: Vec<_> = (0..24)
        .map(|_| web.curl("", SIGN_IN, &["--data", &guess]))
        .collect();
    let statuses = at_once.into_iter().map(|curl| {
        let done = curl.wait_with_output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    });
    let statuses: Vec<_> = statuses.collect();
    let checked = statuses.iter().filter(|status| *status == "401").count();
    // when the tenth is found wrong, one more is being checked
    assert!((10..=11).contains(&checked), "{statuses:?}");
    assert!(
        statuses
            .iter()
            .all(|status| ["401", "429", "503"].contains(&&**status)),
        "{statuses:?}"
    );
}

#[test]
fn a_cookie_that_is_not_in_force_locks_nobody_out() {
    let web = Web::start();
    let token = web.token("viewer", "view", &[]);
    for _ in 0..12 {
        let stale = web.ask("", ME, &["--cookie", "__Host-sluice=0123"]);
        assert_eq!(stale.status, 401, "{stale:?}");
    }
    assert_eq!(web.ask(&token, ME, &[]).status, 200);
}

#[test]
fn with_a_cookie_other_pages_change_nothing() {
    let web = Web::start();
    add(&web, "noc", "operate");
    let noc = Browser::signed_in(&web, "noc");
    let body = r#"{"session": "0000000000000007"}"#;
    let clear = "/api/v1/actions/clear-session";
    let evil = "Origin: https://evil.example";
    let plain = format!("Origin: http://{}", web.at);
    let (own, same) = (&*noc.origin, "Sec-Fetch-Site: same-origin");
    for headers in [
        &[][..],
        &[evil],
        &[&plain],
        &["Origin: null"],
        &[same],
        &[evil, same],
        &[own, "Sec-Fetch-Site: same-site"],
        &[own, "Sec-Fetch-Site: cross-site"],
    ] {
        let headers: Vec<&str> = headers.iter().flat_map(|header| ["-H", header]).collect();
        for path in [clear, SIGN_OUT] {
            let forged = noc.ask(path, &[&["--data", body], &*headers].concat());
            assert_eq!(forged.status, 403, "{headers:?}: {forged:?}");
            assert!(forged.detail().contains("`Origin`"), "{forged:?}");
        }
    }
    let forged = noc.ask(clear, &["-X", "DELETE"]);
    assert_eq!(
        forged.status, 403,
        "every method but GET and HEAD: {forged:?}"
    );
    for headers in [&["-H", own][..], &["-H", own, "-H", same]] {
        let right = noc.ask(clear, &[&["--data", body], headers].concat());
        assert_eq!(right.status, 204, "{right:?}");
    }
    // what only reads needs no origin, and another page cannot read the answer
    let read = noc.ask(POOLS, &["-H", evil]);
    assert_eq!(read.status, 200);
    assert_eq!(read.header("access-control-allow-origin"), None);
    assert_eq!(noc.ask(POOLS, &["--head"]).status, 200);
    // a token is sent on purpose
    let token = web.token("noc", "operate", &[]);
    let script = web.ask(&token, clear, &["--data", body, "-H", evil]);
    assert_eq!(script.status, 204, "{script:?}");
    let log = web.log();
    let audit = log.iter().filter(|line| line.contains("an action"));
    assert_eq!(audit.count(), 3, "{log:#?}");

    let credentials = json!({"user": "noc", "password": PASSWORD}).to_string();
    let sign_in = |header| web.ask("", SIGN_IN, &["--data", &credentials, "-H", header]);
    assert_eq!(
        sign_in(evil).status,
        403,
        "nobody is signed in as somebody else"
    );
    let rebound = sign_in("Host: evil.example");
    assert_eq!(rebound.status, 400);
    assert!(rebound.detail().contains("`hosts`"));
    assert_eq!(sign_in(own).status, 200);
}

#[test]
fn whoever_is_changed_or_removed_has_to_sign_in_again() {
    let web = Web::start();
    for user in ["alice", "bob", "carol", "dave"] {
        add(&web, user, "view");
    }
    let [alice, bob, carol, dave] =
        ["alice", "bob", "carol", "dave"].map(|user| Browser::signed_in(&web, user));
    run(&web, &["user", "remove", "alice"], "").unwrap();
    run(&web, &["user", "password", "bob"], "another long password").unwrap();
    run(&web, &["user", "role", "carol", "--role", "support"], "").unwrap();
    for browser in [&alice, &bob, &carol] {
        assert_eq!(browser.status(ME), 401, "{}", browser.jar);
    }
    assert_eq!(dave.status(ME), 200);
    let password = |name: &str, password: &str| json!({"user": name, "password": password});
    assert_eq!(alice.sign_in(&password("alice", PASSWORD)).status, 401);
    assert_eq!(bob.sign_in(&password("bob", PASSWORD)).status, 401);
    assert_eq!(
        bob.sign_in(&password("bob", "another long password"))
            .status,
        200
    );
    let carol = carol.sign_in(&password("carol", PASSWORD));
    assert_eq!(carol.json()["role"], "support");
}

#[test]
fn the_state_comes_to_whoever_is_signed_in() {
    let web = Web::start();
    add(&web, "alice", "support");
    let alice = Browser::signed_in(&web, "alice");
    let more = [
        "--no-buffer",
        "--cookie",
        &alice.jar,
        "-H",
        "Accept: text/event-stream",
    ];
    let mut curl = web.curl("", "/api/v1/top?interval=1", &more);
    let lines = BufReader::new(curl.stdout.take().unwrap()).lines();
    let mut states = lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("data: "));
    assert!(states.next().is_some() && states.next().is_some());
    curl.kill().unwrap();
    curl.wait().unwrap();
}

#[test]
fn who_signs_in_is_logged_and_no_secret_is() {
    let web = Web::start_with("trace");
    add(&web, "alice", "view");
    let alice = Browser::signed_in(&web, "alice");
    let cookie = alice.secret();
    assert_eq!(alice.status(POOLS), 200);
    assert_eq!(alice.post(SIGN_OUT, &json!({})).status, 204);
    let stranger = Browser::new(&web, "stranger");
    let wrong = "incorrect horse battery";
    stranger.sign_in(&json!({"user": "alice", "password": wrong}));
    stranger.sign_in(&json!({"user": "hunter2hunter2", "password": wrong}));
    stranger.sign_in(&json!({"user": "alice", "password": [wrong]}));
    let secret = link(&web, &["--name", "visitor"]);
    stranger.sign_in(&json!({"link": secret}));
    let visitor = stranger.secret();
    stranger.sign_in(&json!({"link": secret}));

    let log = web.log();
    let told = |words: &[&str]| {
        log.iter()
            .any(|l| words.iter().all(|word| l.contains(word)))
    };
    for words in [
        &[
            "signs in",
            "who=\"alice\"",
            "role=\"view\"",
            "peer=127.0.0.1",
        ][..],
        &["signs out", "who=\"alice\""],
        &["a wrong password", "who=\"alice\""],
        &["a password of an unknown user", "peer=127.0.0.1"],
        &["a link is used", "who=\"visitor\""],
        &["a wrong link"],
    ] {
        assert!(told(words), "{words:?}: {log:#?}");
    }
    for secret in [PASSWORD, wrong, "hunter2", &cookie, &secret, &visitor] {
        let in_log: Vec<_> = log.iter().filter(|line| line.contains(secret)).collect();
        assert!(in_log.is_empty(), "{secret}: {in_log:#?}");
    }
    for name in ["users.json", "links.json"] {
        let text = std::fs::read_to_string(web.folder().join("web").join(name)).unwrap();
        assert!(
            !text.contains(PASSWORD) && !text.contains(&secret),
            "{text}"
        );
    }
}
