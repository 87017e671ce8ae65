//! The `sluice` command, as an operator types it.

use crate::site::program;
use anyhow::{Context, Result, bail, ensure};
use northbound::Ledger;
use sluice::lab::daemon::Daemon;
use sluice::lab::gateway::socket;
use sluice::lab::topology::{Lab, UserPlane};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The command for a control plane, and for one user plane.
pub struct Sluice {
    cp_socket: PathBuf,
    up_socket: Option<PathBuf>,
}

impl Sluice {
    /// For the daemons that listen here.
    pub fn new(cp_socket: PathBuf, up_socket: PathBuf) -> Self {
        Sluice {
            cp_socket,
            up_socket: Some(up_socket),
        }
    }

    /// For a lab's control plane alone, which asks its user planes.
    pub fn alone(lab: &Lab) -> Self {
        Sluice {
            cp_socket: socket(lab.dir(), Daemon::ControlPlane),
            up_socket: None,
        }
    }

    /// For a lab's control plane and this user plane.
    pub fn at(lab: &Lab, up: UserPlane) -> Self {
        let at = |daemon| socket(lab.dir(), daemon);
        Sluice::new(at(Daemon::ControlPlane), at(Daemon::UserPlane(up)))
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

    /// `sluice check --ledger`; an error with what differs unless both planes balance.
    pub fn ledger(&self) -> Result<Ledger> {
        let done = self.output(&["check", "--ledger", "--json"])?;
        let said = String::from_utf8_lossy(&done.stderr);
        let ledger: Ledger = serde_json::from_slice(&done.stdout)
            .with_context(|| format!("`sluice check --ledger` printed no ledger: {said}"))?;
        let first = &ledger.findings[..ledger.findings.len().min(5)];
        ensure!(
            done.status.success() && ledger.is_balanced(),
            "`sluice check --ledger`: {}: {} findings, the first: {first:#?}",
            said.trim(),
            ledger.findings.len()
        );
        Ok(ledger)
    }

    fn output(&self, words: &[&str]) -> Result<Output> {
        let mut command = Command::new(program("sluice")?);
        command.arg("--cp-socket").arg(&self.cp_socket);
        if let Some(socket) = &self.up_socket {
            command.arg("--up-socket").arg(socket);
        }
        command.args(words).output().context("cannot run sluice")
    }
}
