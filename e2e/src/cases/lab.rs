use crate::rig::Rig;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::Session;
use serde::Deserialize;
use sluice::lab::topology::directory;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What `sluice lab --json` prints.
#[derive(Debug, Deserialize)]
struct Report {
    homes: u32,
    online: u32,
    seconds_to_first: Option<f64>,
    sessions_per_second: f64,
    packets_sent: u64,
    packets_received: u64,
    packets_wrong: u64,
    packets_lost_in_outages: u64,
    sessions_ended: u32,
    restarts: BTreeMap<String, u32>,
}

pub fn hundred(rig: &mut Rig) -> Result<()> {
    rig.without_site()?;
    let report = lab(100, 8)?;
    println!("        {report:?}");
    nothing_left()?;
    ensure!(
        report.homes == 100 && report.online == 100,
        "not every home is online"
    );
    ensure!(report.packets_wrong == 0, "packets are wrong");
    ensure!(
        report.seconds_to_first.is_some() && report.sessions_per_second > 0.0,
        "no rate"
    );
    // Ten packets a second, home, direction and family; the homes come online during the first seconds.
    ensure!(
        report.packets_sent > 100 * 10 * 2 * 2 * 4,
        "too few packets were sent"
    );
    ensure!(
        report.packets_received == report.packets_sent,
        "packets were lost"
    );
    Ok(())
}

pub fn restart(rig: &mut Rig) -> Result<()> {
    rig.without_site()?;
    let mut first = command(20, 600)?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let start = Instant::now();
    while running_daemons()?.len() < 3 {
        ensure!(
            start.elapsed() < Duration::from_secs(20),
            "the first lab did not start its daemons"
        );
        ensure!(first.try_wait()?.is_none(), "the first lab ended early");
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_secs(1));
    first.kill()?;
    first.wait()?;
    ensure!(
        running_daemons()?.len() >= 3,
        "nothing was left behind: the case shows nothing"
    );
    let report = lab(20, 3)?;
    ensure!(
        report.online == 20 && report.packets_wrong == 0,
        "{report:?}"
    );
    nothing_left()
}

/// Each daemon is killed from outside, one after the other; the homes of both user planes share everything but a name.
pub fn supervision(rig: &mut Rig) -> Result<()> {
    const HOMES: u32 = 100;
    let log = rig.without_site()?.dir().join("lab-supervision.log");
    let mut command = Command::new(program("sluice")?);
    command.args(["lab", "--json", "--homes", &HOMES.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let lab = command.stderr(File::create(&log)?).spawn()?;
    let outcome = kill_each(&log, HOMES);
    kill(Pid::from_raw(lab.id() as i32), Signal::SIGINT)?;
    let done = lab.wait_with_output()?;
    let said = fs::read_to_string(&log)?;
    outcome.with_context(|| said.clone())?;
    ensure!(
        done.status.success(),
        "it ended with {}: {said}",
        done.status
    );
    let report: Report = serde_json::from_slice(&done.stdout).context(said)?;
    println!("        {report:?}");
    ensure!(
        report.restarts.len() == 3 && report.restarts.values().all(|times| *times == 1),
        "not every daemon was started again once"
    );
    ensure!(
        report.online == HOMES && report.packets_wrong == 0 && report.sessions_ended == 0,
        "homes are missing, had to dial in anew, or packets were wrong"
    );
    let lost = report.packets_sent - report.packets_received;
    ensure!(
        lost > 0 && lost == report.packets_lost_in_outages,
        "{lost} packets were lost, and not all of them because a user plane was dead"
    );
    nothing_left()
}

fn kill_each(log: &Path, homes: u32) -> Result<()> {
    let heard = |what: &str| -> Result<()> {
        let start = Instant::now();
        while !fs::read_to_string(log)?.contains(what) {
            ensure!(
                start.elapsed() < Duration::from_secs(30),
                "waited for \"{what}\""
            );
            sleep(Duration::from_millis(50));
        }
        Ok(())
    };
    heard(&format!("{homes} of {homes} homes online"))?;
    same_at_both(homes)?;
    for (daemon, name) in [
        ("sluice-up up1", "up1"),
        ("sluice-up up2", "up2"),
        ("sluice-cp", "cp"),
    ] {
        let record = fs::read_to_string(directory("").join(format!("{name}.pid")))?;
        let id = record.split(' ').next().context("an empty pid file")?;
        kill(Pid::from_raw(id.parse()?), Signal::SIGKILL)?;
        heard(&format!("{daemon} died (signal 9): started again"))?;
        heard(&format!("{daemon} is back after"))?;
    }
    Ok(())
}

/// The homes of one user plane have the lines of the other's, and sessions at both have the same PPPoE session ids.
fn same_at_both(homes: u32) -> Result<()> {
    let done = Command::new(program("sluice")?)
        .args(["show", "sessions", "--json"])
        .output()?;
    let sessions: Vec<Session> = serde_json::from_slice(&done.stdout)?;
    let (mut lines, mut ids) = (HashMap::new(), HashMap::new());
    for s in &sessions {
        let line = (&s.mac, s.s_tag, s.c_tag);
        lines
            .entry(line)
            .or_insert_with(BTreeSet::new)
            .insert(&s.user_plane);
        let id = s.pppoe_session_id;
        ids.entry(id)
            .or_insert_with(BTreeSet::new)
            .insert(&s.user_plane);
    }
    let lines = lines.values().filter(|planes| planes.len() == 2).count();
    let ids = ids.values().filter(|planes| planes.len() == 2).count();
    ensure!(
        sessions.len() == homes as usize && lines == sessions.len() / 2 && ids > 0,
        "of {} sessions, {lines} share a line and {ids} a session id with one at the other user plane",
        sessions.len()
    );
    println!("        {lines} lines and {ids} session ids are in use at both user planes");
    Ok(())
}

fn command(homes: u32, seconds: u32) -> Result<Command> {
    let mut command = Command::new(program("sluice")?);
    command.args([
        "lab",
        "--homes",
        &homes.to_string(),
        "--seconds",
        &seconds.to_string(),
        "--json",
    ]);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs a lab to its end.
fn lab(homes: u32, seconds: u32) -> Result<Report> {
    let done = command(homes, seconds)?.output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "sluice lab ended with {}: {said}",
        done.status
    );
    let text = String::from_utf8_lossy(&done.stdout);
    let line = text
        .lines()
        .last()
        .with_context(|| format!("sluice lab printed nothing: {said}"))?;
    serde_json::from_str(line).with_context(|| format!("sluice lab printed {line}"))
}

/// The lab's namespaces and daemons are gone.
fn nothing_left() -> Result<()> {
    let names = output(&["netns", "list"])?;
    let left: Vec<&str> = names.lines().filter(|line| is_labs(line)).collect();
    ensure!(left.is_empty(), "namespaces are left: {left:?}");
    Ok(())
}

/// The processes in the namespaces of the lab's daemons: these, and for a moment whatever looks at the network there.
fn running_daemons() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for place in ["sluice-up1", "sluice-up2", "sluice-cp"] {
        found.extend(
            output(&["netns", "pids", place])
                .unwrap_or_default()
                .lines()
                .map(str::to_owned),
        );
    }
    Ok(found)
}

/// Is it a namespace of `make run`, not of these tests?
fn is_labs(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    [
        "sluice-access1",
        "sluice-access2",
        "sluice-up1",
        "sluice-up2",
        "sluice-cp",
        "sluice-inet",
    ]
    .contains(&name)
}

fn output(arguments: &[&str]) -> Result<String> {
    let done = Command::new("ip").args(arguments).output()?;
    ensure!(
        done.status.success(),
        "ip {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
