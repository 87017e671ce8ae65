//! A crowd of readers beside somebody who commits: each reader gets right answers or a refusal that says why, and homes connect meanwhile.

use super::{AT, Web};
use anyhow::{Context, Result, bail, ensure};
use lab::topology::{Lab, Place};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::{ScopedJoinHandle, scope};

/// Readers, each with an address of its own, since limits are for each address.
const READERS: u8 = 100;
/// How often each asks for everything.
const ROUNDS: usize = 4;
/// What each asks for, and what a right answer has.
const ASKED: [(&str, &str); 7] = [
    ("/api/v1/sessions?limit=2", "rows"),
    ("/api/v1/ports", "rows"),
    ("/api/v1/pools", "rows"),
    ("/api/v1/events?last=20", "rows"),
    ("/api/v1/trouble", "rows"),
    ("/api/v1/configuration", "tree"),
    ("/metrics", ""),
];
/// At least so many versions are committed.
const COMMITS: usize = 10;
/// Octets of a body that is much too large.
const LARGE: u64 = 100_000_000;
/// Stands before the status of each answer.
const MARK: &str = "\u{1}";

/// What became of it.
pub struct Crowd {
    /// Right answers.
    pub right: usize,
    /// Questions that were refused.
    pub refused: usize,
    /// Versions that were committed.
    pub commits: usize,
    /// Frames that waited for the control plane for more than 5 ms.
    pub long_waits: u64,
    /// The longest that a frame waited within the last minute or two, in milliseconds.
    pub longest_wait: f64,
}

/// `meanwhile`: what is done while the crowd is there.
pub fn run(web: &Web<'_>, meanwhile: impl FnOnce() -> Result<()>) -> Result<Crowd> {
    let before = web.get("configuration")?.right()?;
    let [_, long] = waits(web)?;
    let mut slow = slow_reader(web)?;
    let (right, refused, commits) = scope(|scope| -> Result<_> {
        let readers = (1..=READERS).map(|number| scope.spawn(move || reads(web, number)));
        let readers: Vec<_> = readers.collect();
        let large = scope.spawn(|| sends_too_much(web));
        meanwhile()?;
        let commits = commits(web, &readers)?;
        large.join().expect("it does not panic")?;
        let told = readers
            .into_iter()
            .map(|one| one.join().expect("it does not panic"));
        let told: Vec<(usize, usize)> = told.collect::<Result<_>>()?;
        let sum = |(a, b), (c, d)| (a + c, b + d);
        let (right, refused) = told.into_iter().fold((0, 0), sum);
        Ok((right, refused, commits))
    })?;
    ensure!(slow.try_wait()?.is_none(), "the slow reader was sent away");
    slow.kill()?;
    slow.wait()?;
    let back = json!({"version": before["version"]});
    web.post("configuration/commit", &back)?.right()?;
    // of so many questions at once some may be refused, but not most
    ensure!(right > refused, "{right} right answers, {refused} refusals");
    let [longest, long_now] = waits(web)?;
    // how long a wait may be depends on the machine, but each takes some time
    ensure!(longest > 0, "nothing has waited");
    let crowd = Crowd {
        right,
        refused,
        commits,
        long_waits: long_now - long,
        longest_wait: longest as f64 / 1000.0,
    };
    println!(
        "        {right} right answers, {refused} refusals, {commits} commits; frames waited for {:.1} ms at most, and {} times for more than 5 ms",
        crowd.longest_wait, crowd.long_waits
    );
    Ok(crowd)
}

/// The longest wait of a frame, in microseconds, and how many were long.
fn waits(web: &Web<'_>) -> Result<[u64; 2]> {
    let told = web.get("waits")?.right()?["rows"][0].clone();
    let of = |name: &str| told[name].as_u64().with_context(|| format!("{told}"));
    Ok([of("longest_microseconds")?, of("long")?])
}

/// Commits versions as long as somebody reads; the last one is in force. Returns how many.
fn commits<T>(web: &Web<'_>, readers: &[ScopedJoinHandle<'_, T>]) -> Result<usize> {
    let mut number = 0;
    while number < COMMITS || readers.iter().any(|one| !one.is_finished()) {
        let edit = format!("set access-profiles pppoe ac-name crowd-{number}");
        let done = web
            .post("configuration/commit", &json!({"edits": [edit]}))?
            .right()?;
        ensure!(done["version"].is_u64(), "{done}");
        number += 1;
    }
    let tree = &web.get("configuration")?.right()?["tree"];
    let name = &tree["access-profiles"]["pppoe"]["ac-name"];
    ensure!(*name == format!("crowd-{}", number - 1), "{name}");
    Ok(number)
}

/// Asks again and again on one connection. Returns the numbers of right answers and of refusals.
fn reads(web: &Web<'_>, number: u8) -> Result<(usize, usize)> {
    let mut curl = curl(web.lab);
    curl.arg("--interface").arg(format!("127.0.1.{number}"));
    curl.args(["--write-out", &format!("{MARK}%{{http_code}}{MARK}")]);
    let asked: Vec<_> = ASKED.iter().cycle().take(ROUNDS * ASKED.len()).collect();
    curl.args(asked.iter().map(|(path, _)| format!("https://{AT}{path}")));
    let done = begin(web, curl)?.wait_with_output()?;
    ensure!(done.status.success(), "reader {number}: {}", done.status);
    let text = String::from_utf8(done.stdout)?;
    let mut parts = text.split(MARK);
    let (mut right, mut refused) = (0, 0);
    for (path, member) in asked {
        let (body, status) = (parts.next(), parts.next());
        let (body, status) = body
            .zip(status)
            .with_context(|| format!("no answer to {path}"))?;
        match status {
            "200" if member.is_empty() => ensure!(body.contains("sluice_waits_long_total")),
            "200" => ensure!(
                !serde_json::from_str::<Value>(body)?[member].is_null(),
                "{body}"
            ),
            "409" | "429" | "503" => {
                let problem: Value = serde_json::from_str(body)?;
                let detail = problem["detail"].as_str().unwrap_or_default();
                ensure!(!detail.is_empty(), "{path}: {status} without a reason");
                refused += 1;
                continue;
            }
            other => bail!("{path}: {other}: {body}"),
        }
        right += 1;
    }
    Ok((right, refused))
}

/// Follows events, an octet a second.
fn slow_reader(web: &Web<'_>) -> Result<Child> {
    let mut curl = curl(web.lab);
    curl.args(["--limit-rate", "1", "--no-buffer"]);
    curl.arg(format!("https://{AT}/api/v1/events/stream"));
    begin(web, curl)
}

/// Sends a body that is much too large without saying so before. It is refused while it is sent, which some clients take for a broken
/// connection: they have no answer then, or only that they may send.
fn sends_too_much(web: &Web<'_>) -> Result<()> {
    let file = web.lab.dir().join("large");
    File::create(&file)?.set_len(LARGE)?;
    let mut curl = curl(web.lab);
    curl.args([
        "--http1.1",
        "--request",
        "POST",
        "--header",
        "Transfer-Encoding: chunked",
    ]);
    curl.arg("--upload-file").arg(&file);
    curl.args(["--write-out", &format!("{MARK}%{{http_code}}")]);
    curl.arg(format!("https://{AT}/api/v1/configuration/commit"));
    let done = begin(web, curl)?.wait_with_output()?;
    fs::remove_file(file)?;
    let text = String::from_utf8(done.stdout)?;
    let status = text.rsplit_once(MARK).map(|(_, status)| status);
    ensure!(
        matches!(status, Some("413" | "100" | "000")),
        "{text}: {}",
        done.status
    );
    Ok(())
}

/// Debian's curl, on the control plane's machine.
fn curl(lab: &Lab) -> Command {
    let mut curl = lab.netns(Place::ControlPlane).command("/usr/bin/curl");
    curl.args(["--silent", "--config", "-", "--cacert"]);
    curl.arg(lab.dir().join("web/certificate.pem"));
    curl.stdin(Stdio::piped()).stdout(Stdio::piped());
    curl
}

/// Starts it with the token where other users do not see it.
fn begin(web: &Web<'_>, mut curl: Command) -> Result<Child> {
    let mut curl = curl.spawn()?;
    let mut input = curl.stdin.take().context("piped")?;
    writeln!(input, "header = \"Authorization: Bearer {}\"", web.token)?;
    Ok(curl)
}
