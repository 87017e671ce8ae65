//! A lab that runs in the background, as `sluice lab` starts it.

use crate::guard::PATIENCE;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde::Deserialize;
use sluice::lab::claim::directory;
use sluice::lab::process::Process;
use sluice::lab::topology::Lab;
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
    /// How often each daemon was started again.
    pub restarts: BTreeMap<String, u32>,
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
    lab.part_name("street")
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
pub struct StreetLab(Process);

impl StreetLab {
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
        let street = Process::spawn(lab.dir(), "street-lab", command)?;
        let mut street = StreetLab(street);
        let online = format!("{homes} of {homes} homes online");
        street.wait_said(&online)?;
        Ok(street)
    }

    /// Waits until it has said this.
    pub fn wait_said(&mut self, what: &str) -> Result<()> {
        let log = self.0.log().to_owned();
        self.0.wait_until(&format!("\"{what}\""), PATIENCE, || {
            fs::read_to_string(&log).is_ok_and(|said| said.contains(what))
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

impl Drop for StreetLab {
    fn drop(&mut self) {
        // It ends its daemons itself, which takes longer than a process that is just dropped is given.
        let _ = self.interrupt();
    }
}
