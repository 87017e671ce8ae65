//! Tables, metrics and what describes them, as curl and promtool read them.

use super::*;
use northbound::catalogue::{TABLES, Table};

fn path(table: &Table) -> String {
    format!("/api/v1/{}", table.name.replace(' ', "/"))
}

#[test]
fn every_table_is_served_with_the_rows_of_the_command_line() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    for table in TABLES {
        let query = match table.name {
            "acl" => "?acl=base",
            "qos session" => "?session=0000000000000001",
            _ => "",
        };
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
fn queues_are_those_of_a_session_that_is_named() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    let path = "/api/v1/qos/session";
    let queues = web.rows(&token, &format!("{path}?session=0000000000000002"));
    let queue = &queues["rows"][0];
    let told = ["queue", "limited_by", "delay", "full_drops"].map(|field| queue[field].clone());
    let wanted = [json!("voice"), json!("plan"), json!("< 2 ms"), json!(3)];
    assert_eq!(told, wanted, "{queues}");
    assert_eq!(queues["missing"], json!([]));
    let silent = web.rows(&token, &format!("{path}?session=0000000000000001"));
    let why = "the user plane of session 0000000000000001 does not say what its queues are";
    assert_eq!(silent["missing"], json!([why]));
    let unknown = web.ask(&token, &format!("{path}?session=7"), &[]);
    assert_eq!(unknown.status, 404, "{unknown:?}");
    assert_eq!(web.ask(&token, path, &[]).status, 400);
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
fn trouble_is_of_a_kind_and_of_a_day() {
    let web = Web::start();
    let token = web.token("noc", "support", &[]);
    let path = "/api/v1/trouble?kind=failed&until=1970-01-02T03:00:00Z";
    let row = &web.rows(&token, path)["rows"][0];
    let failed = json!({"at": 97_200, "ended": 0, "failed": 3, "refused": 0});
    assert_eq!((&row["ended"], &row["hours"][0]), (&json!(0), &failed));
    let all = web.rows(&token, "/api/v1/trouble");
    assert_eq!(all["rows"][0]["ended"], 12);
    let wrong = web.ask(&token, "/api/v1/trouble?kind=online", &[]);
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let viewer = web.token("viewer", "view", &[]);
    assert_eq!(web.ask(&viewer, "/api/v1/trouble", &[]).status, 403);
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
        "sluice_waits_longest_seconds 0.0015",
        "sluice_waits_long_total 2",
        r#"sluice_associations_state{node_id="up1",state="up"} 1"#,
        r#"sluice_associations_state{node_id="up2",state="down"} 1"#,
        r#"sluice_pools_used{name="homes",prefix="100.64.0.0/16",network_instance="default"} 20"#,
        r#"sluice_ports_rx_octets_total{user_plane="up1",name="core0",role="core"} 1500"#,
        r#"sluice_drops_total{plane="up1",name="ttl-expired"} 7"#,
        r#"sluice_aaa_servers_state{name="first",group="main",role="authentication",state="out"} 1"#,
        r#"sluice_alarms{severity="minor",name="aaa-server-out"} 1"#,
        r#"sluice_workers_busy_seconds_total{user_plane="up1",number="0"} 1.5"#,
        r#"sluice_daemons_cpu_seconds_total{name="sluice-up",user_plane="up1"} 2.5"#,
        r#"sluice_daemons_resident_octets{name="sluice-up",user_plane="up1"} 1048576"#,
        r#"sluice_scrape_complete{table="ports"} 0"#,
        r#"sluice_scrape_complete{table="pools"} 1"#,
    ] {
        assert!(
            text.lines().any(|l| l == line),
            "{line} is missing:\n{text}"
        );
    }
    // each daemon has its own
    for daemon in ["sluice-cp", "sluice-web"] {
        let begins = format!("sluice_daemons_descriptors{{name=\"{daemon}\",user_plane=\"\"}} ");
        let value = text.lines().find_map(|l| l.strip_prefix(&begins));
        let value = value.unwrap_or_else(|| panic!("{daemon} is missing:\n{text}"));
        assert!(value.parse::<u32>().unwrap() > 3, "{daemon}: {value}");
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
fn events_are_asked_for_by_any_combination_and_counted() {
    let web = Web::start();
    let token = web.token("support", "support", &[]);
    let path = "/api/v1/events?subscriber=alice&also=up1/access0.100.*&kinds=refused,failed";
    let page = web.rows(&token, path);
    assert_eq!(
        (page["rows"].as_array().unwrap().len(), &page["total"]),
        (1, &json!(4))
    );
    assert_eq!(page.get("or_more"), None);
    let many = web.rows(&token, "/api/v1/events?subscriber=alice&also=many");
    assert_eq!(
        (&many["total"], &many["or_more"]),
        (&json!(4), &json!(true))
    );
    let row = &page["rows"][0];
    assert_eq!(
        (&row["kind"], &row["text"]),
        (&json!("refused"), &json!("alice and up1/access0.100.*"))
    );
    let wrong = web.ask(&token, "/api/v1/events?kinds=refused,lost", &[]);
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert!(wrong.detail().contains("`lost` is no kind"), "{wrong:?}");
}

#[test]
fn this_server_tells_its_own_figures_while_the_control_plane_is_away() {
    let mut web = Web::start();
    let token = web.token("prometheus", "view", &["--scope", "metrics"]);
    let daemons = |web: &Web| {
        let text = web.ask(&token, "/metrics", &[]).body;
        let lines = text.lines().map(str::to_owned);
        let all = lines.filter(|l| l.starts_with("sluice_daemons_threads{"));
        let complete = "sluice_scrape_complete{table=\"daemons\"} 1";
        (all.count(), text.lines().any(|l| l == complete))
    };
    assert_eq!(daemons(&web), (3, true));
    web.plane.stop();
    assert_eq!(daemons(&web), (1, false));
    web.plane.resume();
    let is_back = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        daemons(&web) == (3, true)
    });
    assert!(is_back);
}
