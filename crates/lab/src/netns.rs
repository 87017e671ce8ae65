//! A named network namespace.

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where iproute2 keeps the names.
const NAMES: &str = "/run/netns";

/// A network namespace that `ip netns` knows by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netns(String);

impl Netns {
    /// The namespace of that name, whether it exists or not.
    pub fn named(name: impl Into<String>) -> Self {
        Netns(name.into())
    }

    /// All that have a name.
    pub fn all() -> Result<Vec<Self>> {
        let entries = match fs::read_dir(NAMES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read {NAMES}"))?,
        };
        let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
        let names: Result<Vec<Option<String>>> = entries.map(name).collect();
        Ok(names?.into_iter().flatten().map(Netns).collect())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(NAMES).join(&self.0)
    }

    /// Is there a namespace of this name?
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Makes it, with its loopback up.
    pub fn create(&self) -> Result<()> {
        output(Command::new("ip").args(["netns", "add", &self.0]))?;
        self.ip("link set lo up")
    }

    /// Removes the name; the namespace itself ends with its last process.
    pub fn delete(&self) -> Result<()> {
        output(Command::new("ip").args(["netns", "del", &self.0])).map(drop)
    }

    /// Runs lines of `ip` commands (without the word `ip`) inside, stopping at the first that fails.
    pub fn ip(&self, lines: &str) -> Result<()> {
        let mut child = Command::new("ip")
            .args(["-n", &self.0, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run ip (package iproute2)")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(lines.as_bytes())?;
        }
        let done = child.wait_with_output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            bail!("in namespace {}: {}\n{}", self.0, said.trim(), lines.trim());
        }
        Ok(())
    }

    /// A command line that runs `program` inside.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }

    /// Runs a command inside to its end and returns what it printed; an error if it failed.
    pub fn run(&self, argv: &[&str]) -> Result<String> {
        let (program, arguments) = argv.split_first().context("no command")?;
        output(self.command(program).args(arguments))
    }

    /// Runs `work` on a thread of its own that has entered the namespace: sockets and devices that it makes stay there.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let place = File::open(self.path()).with_context(|| format!("no namespace {}", self.0))?;
        let entered = std::thread::scope(|scope| {
            scope
                .spawn(|| setns(place, CloneFlags::CLONE_NEWNET).map(|()| work()))
                .join()
        });
        match entered {
            Ok(result) => {
                result.with_context(|| format!("cannot enter namespace {} (are you root?)", self.0))
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Keeps the kernel's own IPv6 away from interfaces that carry frames only.
    pub fn silence(&self, interfaces: &[&str]) -> Result<()> {
        self.within(|| {
            for interface in interfaces {
                let switch = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
                fs::write(&switch, "1").with_context(|| format!("cannot write {switch}"))?;
            }
            Ok(())
        })?
    }

    /// Addresses of interfaces to come are usable at once: on links where both ends are ours nobody else has them, and
    /// detection takes up to two seconds (RFC 4862 §5.4).
    pub fn without_duplicate_detection(&self) -> Result<()> {
        self.within(|| {
            let switch = "/proc/sys/net/ipv6/conf/default/accept_dad";
            fs::write(switch, "0").with_context(|| format!("cannot write {switch}"))
        })?
    }

    /// Switches off every offload that would keep tags or checksums out of the frames that AF_XDP and TAPs see.
    pub fn offloads_off(&self, interface: &str) -> Result<()> {
        const FEATURES: [&str; 9] = [
            "txvlan",
            "rxvlan",
            "tx-vlan-stag-hw-insert",
            "rx-vlan-stag-hw-parse",
            "tx",
            "rx",
            "tso",
            "gso",
            "gro",
        ];
        let mut command = self.command("ethtool");
        command.args(["-K", interface]);
        for feature in FEATURES {
            command.args([feature, "off"]);
        }
        output(&mut command).map(drop)
    }

    /// The processes inside.
    pub fn processes(&self) -> Result<Vec<i32>> {
        let listed = output(Command::new("ip").args(["netns", "pids", &self.0]))?;
        Ok(listed
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect())
    }
}

/// Runs a command to its end; its standard output, or an error with what it printed.
fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}").replace('"', "");
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {shown}"))?;
    if !done.status.success() {
        let text = [done.stdout, done.stderr].concat();
        bail!(
            "`{shown}` failed ({}): {}",
            done.status,
            String::from_utf8_lossy(&text).trim()
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
