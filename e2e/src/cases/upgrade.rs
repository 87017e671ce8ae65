use crate::background_lab::{BackgroundLab, id, sluice_by};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::page::{self, Block};
use crate::site::program;
use anyhow::{Context, Result, bail, ensure};
use lab::topology::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::{Session, UserPlane, UserPlaneState};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const HOMES: u32 = 200;
const PROGRAMS: [&str; 4] = ["sluice", "sluice-cp", "sluice-up", "sluice-web"];

/// What the how-to says is done to a running lab, by the lab's names of what systemd has.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let bin = own.dir().join("bin");
    if bin.exists() {
        fs::remove_dir_all(&bin)?;
    }
    fs::create_dir(&bin)?;
    install(&bin)?;
    let blocks = page::of_how_to("upgrade.md")?;
    let lab = BackgroundLab::start_from(&bin.join("sluice"), own, HOMES)?;
    let gateway = Gateway { lab: own, bin };
    let before = gateway.sessions()?;
    ensure!(before.len() == HOMES as usize, "{} sessions", before.len());
    for block in &blocks {
        let done = gateway.follow(block);
        done.with_context(|| format!("of the how-to:\n{}", block.commands))?;
    }
    for (name, daemon) in [
        ("cp", "sluice-cp"),
        ("up1", "sluice-up"),
        ("up2", "sluice-up"),
    ] {
        ensure!(
            gateway.runs_what_is_installed(name, daemon)?,
            "{name} does not run what was installed"
        );
    }
    ensure!(gateway.sessions()? == before, "a session did not survive");
    let report = lab.end()?;
    println!("        {report:?}");
    report.homes(HOMES, 0)?;
    report.restarts([1; 3])?;
    report.losses()
}

/// Puts the programs in place, as install(1) does: whoever runs goes on with the old file.
fn install(bin: &Path) -> Result<()> {
    for name in PROGRAMS {
        let to = bin.join(name);
        let new = to.with_extension("new");
        fs::copy(program(name)?, &new)?;
        fs::rename(new, to)?;
    }
    Ok(())
}

struct Gateway<'a> {
    lab: &'a Lab,
    bin: PathBuf,
}

impl Gateway<'_> {
    /// Does what a block says; what it shows is what the page says.
    fn follow(&self, block: &Block) -> Result<()> {
        let mut shown = String::new();
        for line in block.commands.lines() {
            match &*block.language {
                "sluice" => shown.push_str(&self.sluice(line)?),
                _ => self.order(&block.language, line)?,
            }
        }
        match &block.shows {
            Some(page) => page::compare(&shown, page),
            None => {
                ensure!(
                    shown.is_empty(),
                    "the page does not say what is shown: {shown}"
                );
                Ok(())
            }
        }
    }

    fn order(&self, language: &str, line: &str) -> Result<()> {
        match (language, line) {
            ("sh", line) if line.starts_with("install ") => install(&self.bin),
            ("sh", "systemctl restart sluice-cp") => self.restart("cp", "sluice-cp"),
            ("sh", "systemctl restart sluice-up") => {
                self.restart("up1", "sluice-up")?;
                self.restart("up2", "sluice-up")
            }
            _ => bail!("nobody knows how to do this here"),
        }
    }

    /// Ends a daemon as systemd does; the lab starts it again.
    fn restart(&self, name: &str, daemon: &str) -> Result<()> {
        let old = id(self.lab, name)?;
        kill(Pid::from_raw(old), Signal::SIGTERM)?;
        let begun = Instant::now();
        let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let is_new = || -> Result<bool> {
            let new = id(self.lab, name)? != old && self.runs_what_is_installed(name, daemon)?;
            Ok(new && self.is_whole(name, began))
        };
        while !is_new().unwrap_or(false) {
            ensure!(begun.elapsed() < PATIENCE, "{name} has not come back");
            sleep(Duration::from_millis(100));
        }
        println!("        {name} is back after {:.1?}", begun.elapsed());
        Ok(())
    }

    /// Both user planes have everything that they are to have; this one, if it is one, since it began anew.
    fn is_whole(&self, name: &str, began: u64) -> bool {
        let planes = self.shown::<UserPlane>("user-planes");
        let whole = |plane: &UserPlane| {
            let anew = plane.node_id != name || plane.started_at >= Some(began);
            anew && plane.state() == UserPlaneState::Associated
        };
        planes.is_ok_and(|planes| planes.len() == 2 && planes.iter().all(whole))
    }

    fn runs_what_is_installed(&self, name: &str, daemon: &str) -> Result<bool> {
        let runs = fs::metadata(format!("/proc/{}/exe", id(self.lab, name)?))?;
        Ok(runs.ino() == fs::metadata(self.bin.join(daemon))?.ino())
    }

    fn sessions(&self) -> Result<BTreeSet<String>> {
        let sessions = self.shown::<Session>("sessions")?.into_iter();
        Ok(sessions.map(|session| session.id).collect())
    }

    fn shown<T: DeserializeOwned>(&self, what: &str) -> Result<Vec<T>> {
        let text = self.sluice(&format!("show {what} --json"))?;
        serde_json::from_str(&text).with_context(|| format!("not what was expected: {text}"))
    }

    fn sluice(&self, line: &str) -> Result<String> {
        let mut command = sluice_by(&self.bin.join("sluice"), self.lab);
        let done = command
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{said}");
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}
