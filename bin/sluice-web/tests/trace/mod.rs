//! Traces, as curl reads them.

use super::*;
use std::io::Read;
use std::process::Output;

const PATH: &str = "/api/v1/trace?who=02:00:5e:10:00:01";

/// What curl wrote until the trace had ended.
fn read(web: &Web, token: &str, path: &str, more: &[&str]) -> Output {
    let more = [&["--no-buffer"], more].concat();
    web.curl(token, path, &more).wait_with_output().unwrap()
}

#[test]
fn messages_of_a_subscriber_come_as_they_happen() {
    let web = Web::start();
    let token = web.token("noc", "operate", &[]);
    let told = read(&web, &token, &format!("{PATH}&seconds=1"), &[]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("content-type: text/event-stream"), "{told}");
    let data = told.lines().filter_map(|line| line.strip_prefix("data: "));
    let lines: Vec<Value> = data
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let [followed, message, ended] = &lines[..] else {
        panic!("{told}");
    };
    assert_eq!(followed["line"], "02:00:5e:10:00:01 at up1/access0.100.7");
    assert_eq!(
        (&message["says"], &message["path"]),
        (&json!("PADI"), &json!("access"))
    );
    assert_eq!(ended["missed"], 0);
    let log = web.log();
    let begun = log.iter().find(|line| line.contains("a trace"));
    assert!(
        begun.is_some_and(|line| line.contains("noc") && line.contains("02:00:5e:10:00:01")),
        "{log:?}"
    );
}

#[test]
fn a_file_of_messages_is_what_wireshark_reads() {
    let web = Web::start();
    let token = web.token("noc", "operate", &[]);
    let path = PATH.replace("trace?", "trace/file?") + "&seconds=1";
    let head = web.folder().join("head");
    let head_to = ["--no-include", "--dump-header", head.to_str().unwrap()];
    let done = read(&web, &token, &path, &head_to);
    let head = std::fs::read_to_string(head).unwrap();
    assert!(
        head.contains("filename=\"02-00-5e-10-00-01.pcapng\""),
        "{head}"
    );
    let file = web.folder().join("trace.pcapng");
    std::fs::write(&file, &done.stdout).unwrap();
    let fields = [
        "-T",
        "fields",
        "-e",
        "pppoe.code",
        "-e",
        "frame.comment",
        "-e",
        "frame.interface_name",
    ];
    let shown = Command::new("tshark")
        .arg("-r")
        .arg(&file)
        .args(fields)
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(words, ["0x09", "PADI", "access"], "{head}");
}

#[test]
fn a_file_that_ends_too_early_is_an_error() {
    let mut web = Web::start();
    let token = web.token("noc", "operate", &[]);
    let path = PATH.replace("trace?", "trace/file?");
    let mut curl = web.curl(&token, &path, &["--no-buffer", "--max-time", "60"]);
    let mut answer = curl.stdout.take().unwrap();
    // it has begun
    answer.read_exact(&mut [0; 400]).unwrap();
    web.plane.stop();
    std::io::copy(&mut answer, &mut std::io::sink()).unwrap();
    assert!(
        !curl.wait().unwrap().success(),
        "curl takes it for the whole"
    );
}

#[test]
fn a_stream_ends_when_its_token_is_revoked() {
    let web = Web::start();
    let token = web.token("leaver", "operate", &[]);
    let other = web.token("stays", "operate", &[]);
    let follow = |token: &str, path: &str| {
        let mut curl = web.curl(token, path, &["--no-buffer", "--max-time", "60"]);
        let mut lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        // the answer has begun
        assert!(lines.any(|line| line.unwrap().starts_with("content-type")));
        (curl, lines)
    };
    let mut leaves =
        [PATH, "/api/v1/top", "/api/v1/events/stream"].map(|path| follow(&token, path));
    let (mut stays, _lines) = follow(&other, "/api/v1/events/stream");
    let revoked = program(&web.folder(), &["token", "revoke", "leaver"]).status();
    assert!(revoked.unwrap().success());
    let begun = std::time::Instant::now();
    for (curl, _lines) in &mut leaves {
        while curl.try_wait().unwrap().is_none() {
            assert!(begun.elapsed().as_secs() < 20, "it goes on");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    assert!(stays.try_wait().unwrap().is_none(), "the other goes on");
    stays.kill().unwrap();
    stays.wait().unwrap();
}

#[test]
fn traces_are_for_operators_and_few_at_once() {
    let web = Web::start();
    let support = web.token("viewer", "support", &[]);
    assert_eq!(web.ask(&support, PATH, &[]).status, 403);
    let token = web.token("noc", "operate", &[]);
    for (path, status, says) in [
        ("/api/v1/trace", 400, "`who` is missing"),
        ("/api/v1/trace?who=home7&seconds=0", 400, "expected 1"),
        ("/api/v1/trace?who=nobody", 404, "no subscriber"),
        ("/api/v1/trace/file?who=nobody", 404, "no subscriber"),
    ] {
        let refused = web.ask(&token, path, &[]);
        assert_eq!(refused.status, status, "{path}: {refused:?}");
        assert!(refused.detail().contains(says), "{refused:?}");
    }
    let begin = || {
        let mut curl = web.curl(&token, PATH, &["--no-buffer", "--max-time", "60"]);
        let mut lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("PADI")));
        curl
    };
    let mut all: Vec<_> = (0..4).map(|_| begin()).collect();
    let refused = web.ask(&token, PATH, &[]);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.detail().contains("4 subscribers are traced"));
    for curl in &mut all {
        curl.kill().unwrap();
        curl.wait().unwrap();
    }
    // the room of one that has gone is there for the next
    let free = std::time::Instant::now();
    while web.ask(&token, &format!("{PATH}&seconds=1"), &[]).status != 200 {
        assert!(free.elapsed().as_secs() < 30, "no room");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
