//! The real program before a control plane that tells what it is asked, with curl and promtool as its clients.

mod access;
mod actions;
mod clients;
mod configuration;
mod destinations;
mod feed;
mod gnmi;
mod matrix;
mod pages;
mod plane;
mod questions;
mod records;
mod sign_in;
mod start;
mod tables;
mod trace;

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
