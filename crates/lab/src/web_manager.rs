//! The web manager of the lab's gateway: `sluice-web` on a loopback address of this machine, where a browser can reach it.

use crate::process::Process;
use crate::topology::Lab;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Ports that are taken if they are free: of HTTPS, and of gNMI.
const PORT: u16 = 8443;
const GNMI_PORT: u16 = 9339;
/// How long the server may take to listen: it makes a certificate first.
const STARTS: Duration = Duration::from_secs(10);
/// Minutes for which the link can be used: as long as somebody may let a lab run.
const MINUTES: &str = "1440";

/// The server.
#[derive(Debug)]
pub struct WebManager {
    process: Process,
    start_file: PathBuf,
    at: SocketAddr,
    gnmi: SocketAddr,
}

impl WebManager {
    /// Starts the server for a lab whose control plane runs.
    ///
    /// # Errors
    /// It does not start, or does not listen in time; the text has the end of its log.
    pub fn start(lab: &Lab) -> Result<Self> {
        let started = Self::start_at(lab, free_address(PORT)?, free_address(GNMI_PORT)?);
        // a lab that starts at the same time may have been faster to take an address that was free
        started.or_else(|_| Self::start_at(lab, free_address(0)?, free_address(0)?))
    }

    fn start_at(lab: &Lab, at: SocketAddr, gnmi: SocketAddr) -> Result<Self> {
        let dir = lab.dir();
        let start_file = dir.join("web.yaml");
        let text = format!(
            "{{listen: ['{at}'], gnmi: {{listen: ['{gnmi}']}}, state: {0}/web, api-socket: {0}/cp.sock}}\n",
            dir.display()
        );
        fs::write(&start_file, text)?;
        let mut process = Process::spawn(dir, "web", command(&start_file)?)?;
        let log = process.log().to_owned();
        process.wait_until("sluice-web to listen", STARTS, || {
            let serves = |said: String| {
                ["serves HTTPS", "serves gNMI"]
                    .iter()
                    .all(|one| said.contains(one))
            };
            fs::read_to_string(&log).is_ok_and(serves)
        })?;
        Ok(WebManager {
            process,
            start_file,
            at,
            gnmi,
        })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// Address at which it serves gNMI.
    pub fn gnmi(&self) -> SocketAddr {
        self.gnmi
    }

    /// The command that makes a token for programs, with the role `configure`.
    ///
    /// # Errors
    /// The path of the program is not known.
    pub fn token_command(&self) -> Result<String> {
        let program = program()?;
        let (program, start_file) = (program.display(), self.start_file.display());
        Ok(format!(
            "{program} --start {start_file} token add lab --role configure"
        ))
    }

    /// Makes a link that signs a browser in once, with the role `configure`.
    ///
    /// # Errors
    /// The program refuses; the text says why.
    pub fn link(&self) -> Result<String> {
        let at = self.at.to_string();
        let words = [
            "link",
            "--role",
            "configure",
            "--name",
            "lab",
            "--minutes",
            MINUTES,
            "--at",
            &at,
        ];
        let made = command(&self.start_file)?.args(words).output()?;
        let said = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "no link: {}", said.trim());
        Ok(String::from_utf8(made.stdout)?.trim().to_owned())
    }

    /// Ends the server.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(mut self) -> Result<()> {
        self.process.stop()
    }
}

fn command(start_file: &Path) -> Result<Command> {
    let mut command = Command::new(program()?);
    command.arg("--start").arg(start_file);
    Ok(command)
}

fn program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("sluice-web"))
}

/// The address with the usual port, or with another one if something listens there.
fn free_address(usual: u16) -> Result<SocketAddr> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = bind(usual).or_else(|_| bind(0));
    let listener = listener.context("no free TCP port on the loopback address")?;
    Ok(listener.local_addr()?)
}
