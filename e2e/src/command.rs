//! The `sluice` command, as an operator types it.

use crate::site::program;
use anyhow::{Context, Result, bail, ensure};
use lab::daemon::Daemon;
use lab::gateway::socket;
use lab::topology::Lab;
use northbound::Ledger;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The command for a control plane.
pub struct Sluice {
    cp_socket: PathBuf,
}

impl Sluice {
    /// For the one that listens here.
    pub fn new(cp_socket: PathBuf) -> Self {
        Sluice { cp_socket }
    }

    /// For a lab's.
    pub fn of(lab: &Lab) -> Self {
        Sluice::new(socket(lab.dir(), Daemon::ControlPlane))
    }

    /// What it prints; an error with what it says if it fails.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let done = self.output(words)?;
        if !done.status.success() {
            bail!(
                "`sluice {}` failed: {}",
                words.join(" "),
                String::from_utf8_lossy(&done.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Makes an edit of the configuration and commits it.
    pub fn configure(&self, edit: &str) -> Result<()> {
        let script = format!("configure\n{edit}\ncommit\n");
        self.tell(&[], &script).map(drop)
    }

    /// What it prints for an input; an error with what it says if it fails.
    pub fn tell(&self, words: &[&str], text: &str) -> Result<String> {
        let mut command = Command::new(program("sluice")?);
        command.arg("--cp-socket").arg(&self.cp_socket).args(words);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("piped")?;
        input.write_all(text.as_bytes())?;
        drop(input);
        let done = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "`{text}`: {}", said.trim());
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// `sluice check --resources`; an error with what differs unless every plane balances.
    pub fn ledger(&self) -> Result<Ledger> {
        let done = self.output(&["check", "--resources", "--json"])?;
        let said = String::from_utf8_lossy(&done.stderr);
        let ledger: Ledger = serde_json::from_slice(&done.stdout)
            .with_context(|| format!("`sluice check --resources` printed no ledger: {said}"))?;
        let first = &ledger.findings[..ledger.findings.len().min(5)];
        ensure!(
            done.status.success() && ledger.is_balanced(),
            "`sluice check --resources`: {}: {} findings, the first: {first:#?}",
            said.trim(),
            ledger.findings.len()
        );
        Ok(ledger)
    }

    fn output(&self, words: &[&str]) -> Result<Output> {
        let mut command = Command::new(program("sluice")?);
        command.arg("--cp-socket").arg(&self.cp_socket);
        command.args(words).output().context("cannot run sluice")
    }
}
