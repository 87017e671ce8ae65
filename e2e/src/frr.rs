//! FRR: Debian's routing daemons, as the gateway's own and as its neighbours in the core.

use crate::guard::PATIENCE;
use anyhow::{Context, Result, ensure};
use lab::netns::Netns;
use lab::process::Process;
use lab::topology::Lab;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where Debian has the daemons.
const DAEMONS: &str = "/usr/lib/frr";

/// A router's daemons; ended when dropped.
pub struct Frr {
    dir: PathBuf,
    /// In the order in which they end: zebra, which takes routes out of the kernel, is the last.
    processes: Vec<Process>,
}

impl Frr {
    /// Starts zebra and other daemons in a namespace and tells them their configuration.
    pub fn start(
        lab: &Lab,
        at: &Netns,
        name: &str,
        daemons: &[&str],
        configuration: &str,
    ) -> Result<Self> {
        let dir = lab.dir().join(format!("frr-{name}"));
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        // The daemons drop root.
        let mut install = Command::new("install");
        install.args(["-d", "-o", "frr", "-g", "frr"]).arg(&dir);
        ensure!(install.status()?.success(), "cannot make {}", dir.display());
        let mut frr = Frr {
            dir: dir.clone(),
            processes: Vec::new(),
        };
        for daemon in [&["zebra"], daemons].concat() {
            let mut command = at.command(format!("{DAEMONS}/{daemon}"));
            command.args(["--log", "stdout", "-P", "0", "-f", "/dev/null"]);
            command.arg("--vty_socket").arg(&dir);
            command.arg("-z").arg(dir.join("zserv.api"));
            command.arg("-i").arg(dir.join(format!("{daemon}.pid")));
            if daemon == "bfdd" {
                command.arg("--bfdctl").arg(dir.join("bfdd.sock"));
            }
            let mut process = Process::spawn(lab.dir(), &format!("{name}-{daemon}"), command)?;
            let socket = dir.join(format!("{daemon}.vty"));
            process.wait_until("its terminal", PATIENCE, || socket.exists())?;
            frr.processes.insert(0, process);
        }
        let file = lab.dir().join(format!("frr-{name}.conf"));
        std::fs::write(&file, configuration)?;
        let mut vtysh = frr.vtysh();
        frr.done(vtysh.arg("-f").arg(&file))?;
        Ok(frr)
    }

    fn vtysh(&self) -> Command {
        let mut command = Command::new("vtysh");
        command.arg("--vty_socket").arg(&self.dir);
        command.stdin(Stdio::null());
        command
    }

    fn done(&self, command: &mut Command) -> Result<String> {
        let done = command.output().context("cannot run vtysh (package frr)")?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{command:?}: {said}{complaints}");
        Ok(said)
    }

    /// What it answers to a command.
    pub fn ask(&self, command: &str) -> Result<String> {
        self.done(self.vtysh().args(["-c", command]))
    }

    /// What it answers to a command that ends in `json`.
    pub fn show<T: DeserializeOwned>(&self, command: &str) -> Result<T> {
        let said = self.ask(command)?;
        let first = || said.chars().take(400).collect::<String>();
        serde_json::from_str(&said).with_context(|| format!("`{command}`: {}", first()))
    }

    /// Changes its configuration by these lines.
    pub fn tell(&self, lines: &str) -> Result<()> {
        let mut vtysh = self.vtysh();
        vtysh.args(["-c", "configure terminal"]);
        for line in lines.lines() {
            vtysh.args(["-c", line]);
        }
        self.done(&mut vtysh).map(drop)
    }

    /// The memory that its daemons have, in octets, by their names.
    pub fn memory(&self) -> Result<Vec<(String, u64)>> {
        let of = |process: &Process| {
            let text = std::fs::read_to_string(format!("/proc/{}/statm", process.id()))?;
            let pages = text.split(' ').nth(1).context("no resident set")?;
            Ok((process.name().to_owned(), pages.parse::<u64>()? * 4096))
        };
        self.processes.iter().map(of).collect()
    }

    /// Dies as a router does that loses its power.
    pub fn kill(&mut self) -> Result<()> {
        for process in &self.processes {
            process.signal(nix::sys::signal::Signal::SIGKILL)?;
        }
        Ok(())
    }

    /// The last lines of every log.
    pub fn tails(&self) -> String {
        let tail = |process: &Process| format!("{}:\n{}\n", process.name(), process.tail());
        self.processes.iter().map(tail).collect()
    }

    /// Ends the daemons.
    pub fn stop(mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::stop)
    }
}
