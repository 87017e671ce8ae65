//! A lab that runs in the background, as `sluice lab` starts it.

use crate::site::program;
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

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

/// A running lab.
pub struct StreetLab {
    child: Option<Child>,
    log: PathBuf,
}

impl StreetLab {
    /// Starts one, and waits until all of its homes are online.
    pub fn start(dir: &Path, homes: u32) -> Result<Self> {
        Self::start_from(&program("sluice")?, dir, homes)
    }

    /// The same with this program and the daemons that lie beside it.
    pub fn start_from(sluice: &Path, dir: &Path, homes: u32) -> Result<Self> {
        let log = dir.join("street-lab.log");
        let mut command = Command::new(sluice);
        command.args(["lab", "--json", "--homes", &homes.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(File::create(&log)?).spawn()?;
        let lab = StreetLab {
            child: Some(child),
            log,
        };
        let (online, start) = (format!("{homes} of {homes} homes online"), Instant::now());
        while !lab.said()?.contains(&online) {
            ensure!(
                start.elapsed() < Duration::from_secs(60),
                "waited for \"{online}\": {}",
                lab.said()?
            );
            sleep(Duration::from_millis(50));
        }
        Ok(lab)
    }

    fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }

    /// Ends it as Ctrl-C does.
    pub fn end(mut self) -> Result<Report> {
        let child = self.child.take().context("it runs")?;
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT)?;
        let done = child.wait_with_output()?;
        let said = self.said()?;
        ensure!(
            done.status.success(),
            "the lab ended with {}: {said}",
            done.status
        );
        serde_json::from_slice(&done.stdout).context(said)
    }
}

impl Drop for StreetLab {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
            let _ = child.wait();
        }
    }
}
