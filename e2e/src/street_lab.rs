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
