use crate::background_lab::{self, BackgroundLab, id, name, sluice};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use lab::netns::Netns;
use lab::topology::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::Session;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The homes of the lab whose daemons are killed.
const HOMES: u32 = 100;

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
    sessions_ended: u32,
}

pub fn hundred(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let report = lab(own, 100, 8)?;
    println!("        {report:?}");
    nothing_left(own)?;
    ensure!(
        report.homes == 100 && report.online == 100 && report.sessions_ended == 0,
        "not every home is online, or some had to dial in anew"
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

pub fn restart(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let mut first = command(own, 20, 600)?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let start = Instant::now();
    while running_daemons(own)?.len() < 3 {
        ensure!(
            start.elapsed() < PATIENCE,
            "the first lab did not start its daemons"
        );
        ensure!(first.try_wait()?.is_none(), "the first lab ended early");
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_secs(1));
    first.kill()?;
    first.wait()?;
    ensure!(
        running_daemons(own)?.len() >= 3,
        "nothing was left behind: the case shows nothing"
    );
    let report = lab(own, 20, 3)?;
    ensure!(
        report.online == 20 && report.packets_wrong == 0,
        "{report:?}"
    );
    nothing_left(own)
}

/// Each daemon is killed from outside, one after the other; the homes of both user planes share everything but a name.
pub fn supervision(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let mut background = BackgroundLab::start(lab, HOMES)?;
    kill_each(lab, &mut background)?;
    let report = background.end()?;
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
    nothing_left(lab)
}

fn kill_each(lab: &Lab, background: &mut BackgroundLab) -> Result<()> {
    same_at_both(lab)?;
    for (daemon, name) in [
        ("sluice-up up1", "up1"),
        ("sluice-up up2", "up2"),
        ("sluice-cp", "cp"),
    ] {
        kill(Pid::from_raw(id(lab, name)?), Signal::SIGKILL)?;
        background.wait_said(&format!("{daemon} died (signal 9): started again"))?;
        background.wait_said(&format!("{daemon} is back after"))?;
    }
    Ok(())
}

/// The homes of one user plane have the lines of the other's, and sessions at both have the same PPPoE session ids.
fn same_at_both(lab: &Lab) -> Result<()> {
    let done = sluice(lab)?.args(["show", "sessions", "--json"]).output()?;
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
        sessions.len() == HOMES as usize && lines == sessions.len() / 2 && ids > 0,
        "of {} sessions, {lines} share a line and {ids} a session id with one at the other user plane",
        sessions.len()
    );
    println!("        {lines} lines and {ids} session ids are in use at both user planes");
    Ok(())
}

fn command(own: &Lab, homes: u32, seconds: u32) -> Result<Command> {
    let mut command = background_lab::command(&program("sluice")?, own, homes);
    command.args(["--seconds", &seconds.to_string()]);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs a lab to its end.
fn lab(own: &Lab, homes: u32, seconds: u32) -> Result<Report> {
    let done = command(own, homes, seconds)?.output()?;
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
fn nothing_left(own: &Lab) -> Result<()> {
    let name = name(own);
    let all = Netns::all()?;
    let left: Vec<&Netns> = all.iter().filter(|n| n.name().ends_with(&name)).collect();
    ensure!(left.is_empty(), "namespaces are left: {left:?}");
    Ok(())
}

/// The processes in the namespaces of the lab's daemons: these, and for a moment whatever looks at the network there.
fn running_daemons(own: &Lab) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for place in ["up1", "up2", "cp"] {
        let place = Netns::named(format!("sluice-{place}-{}", name(own)));
        found.extend(place.processes().unwrap_or_default());
    }
    Ok(found)
}
