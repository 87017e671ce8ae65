//! The real program before a control plane that tells what it is asked, with curl and promtool as its clients.

mod clients;
mod destinations;
mod feed;
mod gnmi;
mod pages;
mod plane;
mod sign_in;
mod trace;

use northbound::catalogue::{TABLES, Table};
use plane::Plane;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// The program at work.
struct Web {
    child: Child,
    at: String,
    gnmi: String,
    plane: Plane,
    lines: Receiver<String>,
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came back.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(header, _)| header.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value)
    }

    /// The sentence of an error.
    fn detail(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

fn program(folder: &Path, words: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sluice-web"));
    program
        .arg("--start")
        .arg(folder.join("web.yaml"))
        .args(words);
    program
}

impl Web {
    fn start() -> Self {
        Web::start_with("info")
    }

    /// The program with this log.
    fn start_with(log: &str) -> Self {
        Web::start_of(Plane::start(), log, "destinations: {}")
    }

    /// The program with this log and these settings besides.
    fn start_of(plane: Plane, log: &str, more: &str) -> Self {
        let folder = plane.folder.path();
        let start = format!(
            "{{listen: ['127.0.0.1:0'], state: {0}/web, api-socket: {0}/cp.sock, {more}, \
             gnmi: {{listen: ['127.0.0.1:0']}}}}",
            folder.display()
        );
        std::fs::write(folder.join("web.yaml"), start).unwrap();
        let (child, [at, gnmi], lines) = Web::serve(folder, log);
        Web {
            child,
            at,
            gnmi,
            plane,
            lines,
        }
    }

    /// It is killed, and started again.
    fn die(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, [self.at, self.gnmi], self.lines) = Web::serve(&self.folder(), "info");
    }

    fn serve(folder: &Path, log: &str) -> (Child, [String; 2], Receiver<String>) {
        let mut child = program(folder, &[]);
        child.env("SLUICE_LOG", log).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serves = log
            .by_ref()
            .map(Result::unwrap)
            .filter_map(|line| Some(line.split_once(" at=")?.1.trim().to_owned()));
        let (at, gnmi) = (serves.next(), serves.next());
        let (at, gnmi) = at.zip(gnmi).expect("it says where it serves");
        let (said, lines) = channel();
        std::thread::spawn(move || {
            log.map_while(Result::ok)
                .all(|line| said.send(line).is_ok())
        });
        (child, [at, gnmi], lines)
    }

    /// What it logged so far. It logs before it answers, and the answer has come.
    fn log(&self) -> Vec<String> {
        let wait = std::time::Duration::from_millis(500);
        std::iter::from_fn(|| self.lines.recv_timeout(wait).ok()).collect()
    }

    fn folder(&self) -> PathBuf {
        self.plane.folder.path().into()
    }

    fn token(&self, name: &str, role: &str, more: &[&str]) -> String {
        let words = [&["token", "add", name, "--role", role], more].concat();
        let done = program(&self.folder(), &words).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// curl, with a token in a file of its own rather than in its arguments.
    fn curl(&self, token: &str, path: &str, more: &[&str]) -> Child {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--include", "--config", "-"])
            .arg("--cacert")
            .arg(self.folder().join("web/certificate.pem"))
            .args(more)
            .arg(format!("https://{}{path}", self.at))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut curl = curl.spawn().expect("curl");
        let header = match token {
            "" => String::new(),
            token => format!("header = \"Authorization: Bearer {token}\"\n"),
        };
        let mut stdin = curl.stdin.take().unwrap();
        stdin.write_all(header.as_bytes()).unwrap();
        curl
    }

    fn ask(&self, token: &str, path: &str, more: &[&str]) -> Reply {
        let done = self.curl(token, path, more).wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply {
            status,
            head: head.replace('\r', ""),
            body: body.to_owned(),
        }
    }

    fn rows(&self, token: &str, path: &str) -> Value {
        let reply = self.ask(token, path, &[]);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }
}

fn path(table: &Table) -> String {
    format!("/api/v1/{}", table.name.replace(' ', "/"))
}

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
fn every_table_is_served_with_the_rows_of_the_command_line() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    for table in TABLES {
        let query = if table.name == "acl" { "?acl=base" } else { "" };
        let page = web.rows(&token, &format!("{}{query}", path(table)));
        assert!(page["rows"].is_array(), "{}: {page}", table.name);
    }
    // `sluice show --json` prints the messages as serde_json writes them
    let expected = |rows: Value| json!({"rows": rows, "next": null, "missing": []});
    let pools = serde_json::to_value(plane::pools()).unwrap();
    assert_eq!(web.rows(&token, "/api/v1/pools"), expected(pools));
    let drops = serde_json::to_value(plane::drops()).unwrap();
    let told = web.rows(&token, "/api/v1/drops");
    assert_eq!(told["rows"], drops);
    assert_eq!(told["missing"], json!(["up2 does not answer"]));
    let counts =
        json!({"connecting": 1, "online": 2, "closing": 0, "begun": 9, "opened": 8, "ended": 6});
    assert_eq!(
        web.rows(&token, "/api/v1/session-counts"),
        expected(json!([counts]))
    );
    let ports = web.rows(&token, "/api/v1/ports?user-plane=up1");
    assert_eq!(ports["rows"], serde_json::to_value(plane::ports()).unwrap());
    let refused = web.ask(&token, "/api/v1/ports?user-plane=up9", &[]);
    assert_eq!(
        (refused.status, refused.detail()),
        (404, "there is no up9".into())
    );
    let silent = web.ask(&token, "/api/v1/ports?user-plane=up2", &[]);
    assert_eq!(silent.status, 503, "{silent:?}");
    let wrong = web.ask(&token, "/api/v1/events?last=0", &[]);
    assert_eq!(wrong.status, 400);
    assert!(wrong.detail().contains("expected 1 to 100000"));
}

#[test]
fn figures_are_of_everything_or_of_what_is_named_though_the_gateway_has_no_name() {
    let web = Web::start();
    let token = web.token("view", "view", &[]);
    for (asked, of) in [("", "everything"), ("?of=", ""), ("?of=up1", "up1")] {
        let page = web.rows(&token, &format!("/api/v1/figures{asked}"));
        assert_eq!(page["rows"][0]["resource"], of, "{asked}");
        assert_eq!(page["rows"][0]["mean"], 7);
    }
}

#[test]
fn pages_follow_each_other_and_what_is_known_is_not_sent_again() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    let (mut cursor, mut ids) = (json!(0), Vec::new());
    while !cursor.is_null() {
        let page = web.rows(
            &token,
            &format!("/api/v1/sessions?limit=400&cursor={cursor}"),
        );
        let rows = page["rows"].as_array().unwrap().clone();
        assert!(rows.len() <= 400);
        ids.extend(rows.into_iter().map(|row| row["id"].clone()));
        cursor = page["next"].clone();
    }
    let all: Vec<Value> = plane::sessions().map(|s| s.id.into()).collect();
    assert_eq!(ids, all);
    assert!(web.plane.most_asked() <= 512, "no listing of all sessions");

    let first = web.ask(&token, "/api/v1/pools", &[]);
    let known = format!("If-None-Match: {}", first.header("etag").unwrap());
    let again = web.ask(&token, "/api/v1/pools", &["-H", &known]);
    assert_eq!((again.status, &*again.body), (304, ""));
}

#[test]
fn metrics_are_what_promtool_wants_and_name_no_subscriber() {
    let web = Web::start();
    let token = web.token("prometheus", "view", &[]);
    let reply = web.ask(&token, "/metrics", &["--http1.1"]);
    let text = reply.body;
    assert!(
        reply.head.contains("text/plain; version=0.0.4"),
        "{}",
        reply.head
    );
    for line in [
        "sluice_session_counts_online 2",
        "sluice_session_counts_begun_total 9",
        r#"sluice_associations_state{node_id="up1",state="up"} 1"#,
        r#"sluice_associations_state{node_id="up2",state="down"} 1"#,
        r#"sluice_pools_used{name="homes",prefix="100.64.0.0/16",network_instance="default"} 20"#,
        r#"sluice_ports_rx_octets_total{user_plane="up1",name="core0",role="core"} 1500"#,
        r#"sluice_drops_total{plane="up1",name="ttl-expired"} 7"#,
        r#"sluice_aaa_servers_state{name="first",group="main",role="authentication",state="out"} 1"#,
        r#"sluice_alarms{severity="minor",name="aaa-server-out"} 1"#,
        r#"sluice_workers_busy_seconds_total{user_plane="up1",number="0"} 1.5"#,
        r#"sluice_scrape_complete{table="ports"} 0"#,
        r#"sluice_scrape_complete{table="pools"} 1"#,
    ] {
        assert!(
            text.lines().any(|l| l == line),
            "{line} is missing:\n{text}"
        );
    }
    for secret in ["home0001", "02:00:5e", "100.64.0.9"] {
        assert!(!text.contains(secret), "{secret} is in the metrics");
    }
    assert_eq!(web.plane.most_asked(), 0, "no session was asked for");
    check(&["check", "metrics"], &text);

    // what the alerts ask for is there
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/alerts.yaml");
    check(&["check", "rules", rules.to_str().unwrap()], "");
    has_metrics(&text, &std::fs::read_to_string(rules).unwrap());

    // and so is what the dashboards ask for
    let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana");
    let files = std::fs::read_dir(boards)
        .unwrap()
        .map(|file| file.unwrap().path());
    let boards = files.filter(|file| file.extension().is_some_and(|kind| kind == "json"));
    let boards: Vec<_> = boards.collect();
    assert!(boards.len() >= 4, "{boards:?}");
    for board in boards {
        has_metrics(&text, &std::fs::read_to_string(board).unwrap());
    }
}

/// Every metric that a text names is among these.
fn has_metrics(metrics: &str, text: &str) {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let asked: Vec<&str> = words.filter(|word| word.starts_with("sluice_")).collect();
    assert!(asked.len() > 5, "{asked:?}");
    for name in asked {
        assert!(
            metrics.contains(&format!("# TYPE {name} ")),
            "no metric {name}"
        );
    }
}

/// Runs promtool.
fn check(words: &[&str], input: &str) {
    let mut promtool = Command::new("promtool");
    promtool
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = promtool
        .spawn()
        .expect("promtool, of Debian's package prometheus");
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let done = promtool.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

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

#[test]
fn an_audit_tells_what_it_found() {
    let web = Web::start();
    let token = web.token("noc", "operate", &[]);
    let body = ["--data", r#"{"resources": true}"#];
    let reply = web.ask(&token, "/api/v1/actions/check", &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    let nothing = ["--data", r#"{"resources": false}"#];
    let nothing = web.ask(&token, "/api/v1/actions/check", &nothing);
    assert_eq!(nothing.status, 400, "{nothing:?}");
    let told = reply.json();
    assert_eq!(told["balanced"], true);
    assert_eq!(told["missing"], json!(["up2 does not answer"]));
}

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

#[test]
fn the_description_has_every_table() {
    let web = Web::start();
    let token = web.token("viewer", "view", &[]);
    let document = web.rows(&token, "/api/v1/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    for table in TABLES {
        let described = &document["paths"][path(table)]["get"];
        assert_eq!(described["summary"], table.about, "{}", table.name);
    }
    let commit = &document["paths"]["/api/v1/configuration/commit"]["post"];
    assert_eq!(commit["x-sluice-role"], "configure");
}

#[test]
fn a_control_plane_that_is_away_is_said_and_comes_back() {
    let mut web = Web::start();
    let token = web.token("viewer", "view", &[]);
    assert_eq!(web.ask(&token, "/api/v1/pools", &[]).status, 200);
    web.plane.stop();
    let away = web.ask(&token, "/api/v1/pools", &[]);
    assert_eq!(away.status, 503, "{away:?}");
    let detail = away.detail();
    assert!(detail.contains("check that sluice-cp runs"), "{detail}");
    let metrics = web.ask(&token, "/metrics", &["--http1.1"]).body;
    assert!(metrics.contains("sluice_scrape_complete{table=\"pools\"} 0\n"));
    web.plane.resume();
    assert_eq!(web.ask(&token, "/api/v1/pools", &[]).status, 200);
}

#[test]
fn a_start_file_that_is_wrong_ends_it_with_its_own_code() {
    let folder = tempfile::tempdir().unwrap();
    let run = |text: &str, words: &[&str]| {
        std::fs::write(folder.path().join("web.yaml"), text).unwrap();
        let done = program(folder.path(), words).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    };
    let (code, said) = run("listen: ['0.0.0.0:8443']", &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("by which names clients call"), "{said}");
    assert_eq!(run("hosts: [gateway.example.net]", &["--check"]).0, Some(0));
    let state = folder.path().join("web.yaml").join("state");
    let (code, said) = run(&format!("state: {}", state.display()), &[]);
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = run("{}", &["token", "add", "a b", "--role", "view"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected 1 to 64 visible"), "{said}");
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
