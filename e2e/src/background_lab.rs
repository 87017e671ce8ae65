//! A lab that runs in the background, as `sluice lab` starts it.

use crate::guard::PATIENCE;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use lab::claim::directory;
use lab::process::Process;
use lab::topology::Lab;
use nix::sys::signal::Signal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is looked at.
const TICK: Duration = Duration::from_millis(50);
/// What the command takes the control plane's socket from.
const SOCKET: &str = "SLUICE_CP_SOCKET";

/// What `sluice lab --json` prints.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// Those that are online at the end.
    pub online: u32,
    /// Packets that were not what was sent.
    pub packets_wrong: u64,
    /// Packets that homes and internet sent.
    pub packets_sent: u64,
    /// And received.
    pub packets_received: u64,
    /// Of those that did not arrive, those whose user plane did not forward.
    pub packets_lost_in_outages: u64,
    /// Sessions and attempts that ended without the home having hung up.
    pub sessions_ended: u32,
    /// How often each daemon was started again.
    pub restarts: BTreeMap<String, u32>,
}

impl Report {
    /// All of so many homes are online, nothing was wrong, and `sessions_ended` sessions were ended in between.
    pub fn homes(&self, homes: u32, sessions_ended: u32) -> Result<()> {
        ensure!(
            self.online == homes && self.packets_wrong == 0 && self.packets_received > 0,
            "of {homes} homes: {self:?}"
        );
        ensure!(
            self.sessions_ended == sessions_ended,
            "{} sessions ended, not {sessions_ended}: {self:?}",
            self.sessions_ended
        );
        Ok(())
    }

    /// The control plane and both user planes were started again so often.
    pub fn restarts(&self, [cp, up1, up2]: [u32; 3]) -> Result<()> {
        let expected = [("cp", cp), ("up1", up1), ("up2", up2)];
        let expected = expected.map(|(name, times)| (name.to_owned(), times));
        ensure!(
            self.restarts == BTreeMap::from(expected.clone()),
            "daemons were started again {:?}, not {expected:?}",
            self.restarts
        );
        Ok(())
    }

    /// Packets were lost only while their user plane was away, and if it was.
    pub fn losses(&self) -> Result<()> {
        let (lost, away) = (
            self.packets_sent - self.packets_received,
            self.packets_lost_in_outages,
        );
        let had_outage = ["up1", "up2"]
            .iter()
            .any(|up| self.restarts.get(*up) > Some(&0));
        ensure!(
            lost == away && (lost > 0) == had_outage,
            "{lost} packets were lost, of which {away} because their user plane was away: {self:?}"
        );
        Ok(())
    }
}

/// `sluice lab` under the name [`name`], by this program.
pub fn command(sluice: &Path, lab: &Lab, homes: u32) -> Command {
    let mut command = Command::new(sluice);
    command.args(["lab", "--json", "--homes", &homes.to_string()]);
    command.args(["--name", &name(lab)]);
    command
}

/// The name of the lab that belongs to this one.
pub fn name(lab: &Lab) -> String {
    lab.part_name("lab")
}

/// The socket of its control plane.
pub fn socket(lab: &Lab) -> PathBuf {
    directory(&name(lab)).join("cp.sock")
}

/// The process id of one of its daemons: `cp`, `up1` or `up2`.
pub fn id(lab: &Lab, daemon: &str) -> Result<i32> {
    let record = directory(&name(lab)).join(format!("{daemon}.pid"));
    let record = fs::read_to_string(record)?;
    let id = record.split(' ').next().context("an empty pid file")?;
    Ok(id.parse()?)
}

/// The `sluice` command for it, by this program, as it is where nobody names a socket.
pub fn sluice_by(program: &Path, lab: &Lab) -> Command {
    let mut command = Command::new(program);
    command.env(SOCKET, socket(lab));
    command
}

/// The `sluice` command for it.
pub fn sluice(lab: &Lab) -> Result<Command> {
    Ok(sluice_by(&program("sluice")?, lab))
}

/// The same as a line for a shell.
pub fn sluice_line(lab: &Lab) -> Result<String> {
    let (socket, sluice) = (socket(lab), program("sluice")?);
    Ok(format!(
        "{SOCKET}='{}' '{}'",
        socket.display(),
        sluice.display()
    ))
}

/// A running lab; ended when dropped.
pub struct BackgroundLab(Process);

impl BackgroundLab {
    /// Starts one, and waits until all of its homes are online.
    pub fn start(lab: &Lab, homes: u32) -> Result<Self> {
        Self::start_with(lab, homes, &[])
    }

    /// The same with further options.
    pub fn start_with(lab: &Lab, homes: u32, options: &[&str]) -> Result<Self> {
        let mut command = command(&program("sluice")?, lab, homes);
        command.args(options);
        Self::spawn(command, lab, homes)
    }

    /// The same with this program and the daemons that lie beside it.
    pub fn start_from(sluice: &Path, lab: &Lab, homes: u32) -> Result<Self> {
        Self::spawn(command(sluice, lab, homes), lab, homes)
    }

    fn spawn(command: Command, lab: &Lab, homes: u32) -> Result<Self> {
        let background = Process::spawn(lab.dir(), "background-lab", command)?;
        let mut background = BackgroundLab(background);
        let online = format!("{homes} of {homes} homes online");
        background.wait_said(&online)?;
        Ok(background)
    }

    /// Waits until it has said this.
    pub fn wait_said(&mut self, what: &str) -> Result<()> {
        self.wait_times(what, 1)
    }

    /// What it has said so far.
    pub fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(self.0.log())?)
    }

    /// Waits until it has said this once more than so far.
    pub fn wait_said_again(&mut self, what: &str) -> Result<()> {
        let before = fs::read_to_string(self.0.log())?.matches(what).count();
        self.wait_times(what, before + 1)
    }

    fn wait_times(&mut self, what: &str, times: usize) -> Result<()> {
        let log = self.0.log().to_owned();
        self.0.wait_until(&format!("\"{what}\""), PATIENCE, || {
            fs::read_to_string(&log).is_ok_and(|said| said.matches(what).count() >= times)
        })
    }

    /// Ends it as Ctrl-C does.
    pub fn end(mut self) -> Result<Report> {
        let log = self.0.log().to_owned();
        let succeeded = self.interrupt()?;
        let said = fs::read_to_string(log)?;
        ensure!(succeeded, "the lab has failed: {said}");
        let report = said.lines().find(|line| line.starts_with('{'));
        serde_json::from_str(report.unwrap_or_default()).with_context(|| said.clone())
    }

    /// Asks it to end, and waits until it has; whether it was content.
    fn interrupt(&mut self) -> Result<bool> {
        let start = Instant::now();
        if self.0.ended()?.is_none() {
            self.0.signal(Signal::SIGINT)?;
        }
        loop {
            if let Some(status) = self.0.ended()? {
                return Ok(status.success());
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "the lab does not end\n{}",
                self.0.tail()
            );
            sleep(TICK);
        }
    }
}

impl Drop for BackgroundLab {
    fn drop(&mut self) {
        // It ends its daemons itself, which takes longer than a process that is just dropped is given.
        let _ = self.interrupt();
    }
}
