//! `sluice load`, as an operator starts it, on an interface of a lab's access network.

use crate::guard::PATIENCE;
use crate::site::{UP, program};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place, UserPlane};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The interface that it loads.
pub const INTERFACE: &str = "eth1";
/// A load takes its time, and its homes may take as much again where the other side is slow.
const LIMIT: Duration = Duration::from_secs(240);

/// A load that runs.
pub struct LoadTool {
    process: Process,
    report: PathBuf,
}

/// What it has reported.
#[derive(Debug)]
pub struct Report(Value);

impl LoadTool {
    /// Starts it with these words.
    pub fn start(lab: &Lab, words: &str) -> Result<Self> {
        LoadTool::start_at(lab, UP, INTERFACE, words)
    }

    /// The same on an interface of this name at a user plane.
    pub fn start_at(lab: &Lab, up: UserPlane, interface: &str, words: &str) -> Result<Self> {
        lab.access_interface(up, interface)?;
        let name = format!("sluice-load-{}-{interface}", up.name());
        let report = lab.dir().join(format!("{name}.json"));
        let mut command = lab.netns(Place::Access(up)).command(program("sluice")?);
        command
            .args(["load", "--interface", interface, "--report"])
            .arg(&report)
            .args(words.split_whitespace());
        Ok(LoadTool {
            process: Process::spawn(lab.dir(), &name, command)?,
            report,
        })
    }

    /// Waits until it has said something on its standard error.
    pub fn wait_said(&mut self, what: &str) -> Result<()> {
        self.wait_said_within(what, PATIENCE)
    }

    /// The same for as long as this.
    pub fn wait_said_within(&mut self, what: &str, limit: Duration) -> Result<()> {
        let log = self.process.log().to_owned();
        self.process.wait_until(what, limit, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains(what))
        })
    }

    /// What it has said so far.
    pub fn said(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.process.log())?)
    }

    /// How often every home has received a packet in both families.
    pub fn rounds(&self) -> Result<u64> {
        let said = self.said()?;
        let latest = said.rsplit_once(" complete").map(|(before, _)| before);
        let number = latest.and_then(|before| before.rsplit(' ').next());
        number.map_or(Ok(0), |number| Ok(number.parse()?))
    }

    /// An error if it has ended.
    pub fn ensure_runs(&mut self) -> Result<()> {
        let ended = self.process.ended()?;
        ensure!(
            ended.is_none(),
            "sluice load has ended\n{}",
            self.process.tail()
        );
        Ok(())
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        self.process.id()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) -> Result<()> {
        self.process.signal(Signal::SIGINT)
    }

    /// Waits for its end; whether its exit status is 0, and its report.
    pub fn finish(mut self) -> Result<(bool, Report)> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.process.ended()? {
                break status;
            }
            ensure!(
                start.elapsed() < LIMIT,
                "sluice load does not end\n{}",
                self.process.tail()
            );
            sleep(Duration::from_millis(50));
        };
        let said = std::fs::read_to_string(self.process.log())?;
        println!("{}", said.trim_end());
        let text =
            std::fs::read_to_string(&self.report).with_context(|| format!("no report: {said}"))?;
        std::fs::remove_file(&self.report)?;
        Ok((status.success(), Report(serde_json::from_str(&text)?)))
    }
}

impl Report {
    /// A whole number in it.
    pub fn number(&self, pointer: &str) -> Result<u64> {
        let value = self.0.pointer(pointer).and_then(Value::as_u64);
        value.with_context(|| format!("no number at {pointer} in {:#}", self.0))
    }

    /// A number in it.
    pub fn float(&self, pointer: &str) -> Result<f64> {
        let value = self.0.pointer(pointer).and_then(Value::as_f64);
        value.with_context(|| format!("no number at {pointer} in {:#}", self.0))
    }

    /// How often a failure is in it whose reason contains this word.
    pub fn failures(&self, word: &str) -> u64 {
        let reasons = self.0.pointer("/reasons").and_then(Value::as_object);
        let found = reasons.into_iter().flatten();
        let found = found.filter(|(reason, _)| reason.contains(word));
        found.filter_map(|(_, times)| times.as_u64()).sum()
    }
}

/// The reflector on the internet host.
pub fn reflector(lab: &Lab) -> Result<Process> {
    let mut command = lab.netns(Place::Internet).command(program("sluice")?);
    command.args(["load", "reflect"]);
    command.args(["--listen", &INTERNET_V4.to_string()]);
    command.args(["--listen", &INTERNET_V6.to_string()]);
    reflecting(lab, command)
}

/// A reflector that this command starts, as soon as it reflects.
pub fn reflecting(lab: &Lab, command: Command) -> Result<Process> {
    let mut process = Process::spawn(lab.dir(), "reflector", command)?;
    let log = process.log().to_owned();
    process.wait_until("reflecting", PATIENCE, || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("reflecting on"))
    })?;
    Ok(process)
}

/// Presses Ctrl-C at a reflector, and waits for its end with the totals in its log.
pub fn end_reflector(mut reflector: Process) -> Result<()> {
    reflector.signal(Signal::SIGINT)?;
    let start = Instant::now();
    while reflector.ended()?.is_none() {
        ensure!(
            start.elapsed() < PATIENCE,
            "the reflector does not end\n{}",
            reflector.tail()
        );
        sleep(Duration::from_millis(50));
    }
    let said = std::fs::read_to_string(reflector.log())?;
    ensure!(
        said.contains(" packets reflected, "),
        "the reflector says no totals: {said}"
    );
    reflector.stop()
}
