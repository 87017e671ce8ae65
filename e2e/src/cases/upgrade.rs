use crate::background_lab::{BackgroundLab, id, sluice_by, socket};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::page::{self, Block};
use crate::site::program;
use anyhow::{Context, Result, bail, ensure};
use lab::process::Process;
use lab::topology::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::{Session, UserPlane, UserPlaneState};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const HOMES: u32 = 200;
/// User of the web manager, and name of its token.
const NAME: &str = "netops";
const PASSWORD: &str = "twelve or more characters";
/// Its start file.
const START: &str = "web.yaml";
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
    let web = WebManager::start(own, &bin)?;
    let mut gateway = Gateway { lab: own, bin, web };
    let before = gateway.sessions()?;
    ensure!(before.len() == HOMES as usize, "{} sessions", before.len());
    let users = gateway.web.say(&["user", "list"], "")?;
    ensure!(users.contains(NAME), "{users}");
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
    gateway.web.knows_its_token()?;
    let after = gateway.web.say(&["user", "list"], "")?;
    ensure!(after == users, "users were {users}, and are {after}");
    gateway.web.process.stop()?;
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

/// `sluice-web` of the gateway, on a loopback address of this machine, with a user and a token.
struct WebManager {
    process: Process,
    program: PathBuf,
    folder: PathBuf,
    at: SocketAddr,
    token: String,
}

impl WebManager {
    fn start(lab: &Lab, bin: &Path) -> Result<Self> {
        let (program, folder) = (bin.join("sluice-web"), lab.dir().to_owned());
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let start = format!(
            "{{listen: ['{at}'], state: {}/web, api-socket: {}}}\n",
            folder.display(),
            socket(lab).display()
        );
        fs::write(folder.join(START), start)?;
        let process = serve(&program, &folder)?;
        let mut web = WebManager {
            process,
            program,
            folder,
            at,
            token: String::new(),
        };
        web.say(&["user", "add", NAME, "--role", "view"], PASSWORD)?;
        let token = web.say(&["token", "add", NAME, "--role", "view"], "")?;
        web.token = token.trim().into();
        web.knows_its_token()?;
        Ok(web)
    }

    /// Ends it as systemd does, and starts what is installed.
    fn restart(&mut self) -> Result<()> {
        self.process.stop()?;
        self.process = serve(&self.program, &self.folder)?;
        Ok(())
    }

    /// What one of its commands says.
    fn say(&self, words: &[&str], input: &str) -> Result<String> {
        let mut command = start_of(&self.program, &self.folder);
        command.args(words).stdin(Stdio::piped());
        let mut command = command.stdout(Stdio::piped()).spawn()?;
        let stdin = command.stdin.take().context("piped")?;
        (&stdin).write_all(input.as_bytes())?;
        drop(stdin);
        let done = command.wait_with_output()?;
        ensure!(done.status.success(), "{words:?}: {done:?}");
        Ok(String::from_utf8(done.stdout)?)
    }

    fn knows_its_token(&self) -> Result<()> {
        let mut curl = Command::new("/usr/bin/curl");
        curl.args(["--silent", "--fail", "--cacert"])
            .arg(self.folder.join("web/certificate.pem"))
            .args(["--header", &format!("Authorization: Bearer {}", self.token)])
            .arg(format!("https://{}/api/v1/ports", self.at));
        let done = curl.output()?;
        ensure!(done.status.success(), "the token is of no use: {done:?}");
        Ok(())
    }
}

fn start_of(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--start").arg(folder.join(START));
    command
}

fn serve(program: &Path, folder: &Path) -> Result<Process> {
    let mut process = Process::spawn(folder, "sluice-web", start_of(program, folder))?;
    let log = process.log().to_owned();
    process.wait_until("sluice-web to listen", PATIENCE, || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("serves HTTPS"))
    })?;
    Ok(process)
}

struct Gateway<'a> {
    lab: &'a Lab,
    bin: PathBuf,
    web: WebManager,
}

impl Gateway<'_> {
    /// Does what a block says; what it shows is what the page says.
    fn follow(&mut self, block: &Block) -> Result<()> {
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

    fn order(&mut self, language: &str, line: &str) -> Result<()> {
        match (language, line) {
            ("sh", line) if line.starts_with("install ") => install(&self.bin),
            ("sh", "systemctl restart sluice-cp") => self.restart("cp", "sluice-cp"),
            ("sh", "systemctl restart sluice-up") => {
                self.restart("up1", "sluice-up")?;
                self.restart("up2", "sluice-up")
            }
            ("sh", "systemctl restart sluice-web") => self.web.restart(),
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
