use crate::rig::Rig;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
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
        running_daemons()?.len() == 3,
        "nothing was left behind: the case shows nothing"
    );
    let report = lab(20, 3)?;
    ensure!(
        report.online == 20 && report.packets_wrong == 0,
        "{report:?}"
    );
    nothing_left()
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

/// The processes in the namespaces of the lab's daemons.
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
