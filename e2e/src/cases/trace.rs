use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, Site, daemon, program};
use crate::sniff::tshark;
use anyhow::{Context, Result, bail, ensure};
use lab::topology::{INTERNET_V4, Place};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PASSWORD: &str = "wonderland";

/// What has to be said, in this order, with something else in between or not.
const STEPS: [&str; 21] = [
    "PADI",
    "PADO",
    "PADR",
    "PFCP Session-Establishment-Request",
    "PFCP Session-Establishment-Response",
    "PADS session",
    "LCP Configure-Request",
    "LCP Configure-Ack",
    "PAP Authenticate-Request id 1 alice password ***",
    "Access-Request",
    "Access-Accept",
    "PAP Authenticate-Ack",
    "IPCP Configure-Request",
    "PFCP Session-Modification-Request",
    "PFCP Session-Modification-Response",
    "IPCP Configure-Ack",
    "ICMP echo request",
    "ICMP echo reply",
    "LCP Terminate-Request",
    "PFCP Session-Deletion-Request",
    "Acct-Status-Type Stop",
];

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let setup = Setup {
        authentication: "pap",
        ..Setup::default()
    };
    let stage = fixture.stage(&setup)?;
    let (lab, site) = (stage.lab, stage.site);
    let home = Home::build(stage.vm, 7)?;
    whole_dial_in(lab.dir(), &home, site)?;

    // nothing is left after kill -9: of the command, and of the control plane
    home.dial("alice", PASSWORD)?;
    home.start_ping(&INTERNET_V4.to_string())?;
    let killed = Trace::start(lab.dir(), &["alice"])?;
    wait_for_sampled(lab.dir(), 1)?;
    killed.end("-KILL")?;
    wait_for_sampled(lab.dir(), 0)?;
    let trace = Trace::start(lab.dir(), &[&home.mac()])?;
    wait_for_sampled(lab.dir(), 1)?;
    let kill = Command::new("kill")
        .args(["-KILL", &site.cp.id().to_string()])
        .status()?;
    ensure!(kill.success(), "kill");
    while site.cp.ended()?.is_none() {
        sleep(Duration::from_millis(20));
    }
    trace.wait()?;
    site.cp = daemon(
        lab,
        Place::ControlPlane,
        "sluice-cp",
        &lab.dir().join("cp.yaml"),
    )?;
    wait_for_sampled(lab.dir(), 0)?;
    home.still_online()?;
    home.hang_up()
}

fn whole_dial_in(dir: &Path, home: &Home, site: &mut Site) -> Result<()> {
    let file = dir.join("trace.pcapng");
    let path = file.display().to_string();
    let trace = Trace::start(dir, &[&home.mac(), "--samples", "50", "--write", &path])?;
    trace.wait_for("following")?;
    home.dial("alice", PASSWORD)?;
    home.wait_ipv6()?;
    home.ping(&INTERNET_V4.to_string(), 5)?;
    home.hang_up()?;
    site.wait_empty(PATIENCE)?;
    trace.wait_for("Acct-Status-Type Stop")?;
    sleep(Duration::from_millis(300)); // its answer
    let ladder = trace.end("-INT")?;
    let mut lines = ladder.lines();
    for step in STEPS {
        ensure!(
            lines.any(|line| line.contains(step)),
            "no `{step}` where it is expected in\n{ladder}"
        );
    }
    ensure!(
        ladder.contains("ND Router-Advertisement prefix") && ladder.contains(" 0 missed"),
        "{ladder}"
    );
    let octets = fs::read(&file)?;
    let has = |octets: &[u8]| {
        octets
            .windows(PASSWORD.len())
            .any(|w| w == PASSWORD.as_bytes())
    };
    ensure!(
        !has(&octets) && !has(ladder.as_bytes()),
        "the password is shown"
    );

    let seen =
        |filter: &str| -> Result<usize> { Ok(tshark(&file, filter, &["frame.number"])?.len()) };
    let messages = ladder.lines().filter(|line| line.contains('|')).count();
    ensure!(
        seen("frame")? == messages,
        "{messages} messages, and in the file {}",
        seen("frame")?
    );
    let wrong = tshark(
        &file,
        "_ws.malformed || _ws.expert.severity >= 0x800000",
        &["frame.number", "_ws.col.Info", "_ws.expert.message"],
    )?;
    ensure!(wrong.is_empty(), "tshark complains:\n{}", wrong.join("\n"));
    for (filter, line) in [
        ("pppoe.code == 0x09", "PADI"),
        ("pppoe.code == 0x65", "PADS"),
        ("pap.code == 1", "PAP Authenticate-Request"),
        ("radius.code == 1", "Access-Request"),
        ("radius.code == 2", "Access-Accept"),
        ("radius.code == 4", "Accounting-Request"),
        ("pfcp.msg_type == 50", "Session-Establishment-Request"),
        ("pfcp.msg_type == 54", "Session-Deletion-Request"),
        ("icmp.type == 8", "ICMP echo request"),
        ("icmp.type == 0", "ICMP echo reply"),
        ("icmpv6.type == 134", "Router-Advertisement"),
    ] {
        let (in_file, said) = (seen(filter)?, ladder.matches(line).count());
        ensure!(
            in_file == said && said > 0,
            "{line}: {said} times in the ladder, {in_file} times in the file\n{ladder}"
        );
    }
    Ok(())
}

/// Waits until so many sessions are sampled by the user plane, as it tells.
fn wait_for_sampled(dir: &Path, sessions: u64) -> Result<()> {
    let sluice = Sluice::new(dir.join("cp.sock"));
    let start = Instant::now();
    loop {
        let look = sluice.run(&["top", "--once", "--json"]);
        let sampled = look.and_then(|look| {
            let look: Value = serde_json::from_str(&look)?;
            let plane = look["user_planes"][0].clone();
            ensure!(plane["reached"] == true, "{plane}");
            plane["sampled"].as_u64().context("no number")
        });
        match sampled {
            Ok(sampled) if sampled == sessions => return Ok(()),
            other if start.elapsed() > PATIENCE => {
                bail!("{sessions} sessions are not sampled: {other:?}")
            }
            _ => sleep(Duration::from_millis(200)),
        }
    }
}

/// A `sluice trace` that runs.
struct Trace {
    child: Child,
    said: PathBuf,
}

impl Trace {
    fn start(dir: &Path, words: &[&str]) -> Result<Self> {
        let said = dir.join("trace.txt");
        let mut command = Command::new(program("sluice")?);
        command.arg("--cp-socket").arg(dir.join("cp.sock"));
        command.arg("trace").args(words).stdin(Stdio::null());
        let child = command.stdout(File::create(&said)?).spawn()?;
        Ok(Trace { child, said })
    }

    fn wait_for(&self, what: &str) -> Result<()> {
        let start = Instant::now();
        while !fs::read_to_string(&self.said)?.contains(what) {
            if start.elapsed() > PATIENCE {
                bail!("`{what}` is not said:\n{}", fs::read_to_string(&self.said)?);
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Ends it with a signal; what it said.
    fn end(self, signal: &str) -> Result<String> {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status()?;
        ensure!(kill.success(), "kill {signal}");
        self.wait()
    }

    fn wait(mut self) -> Result<String> {
        self.child.wait()?;
        Ok(fs::read_to_string(&self.said)?)
    }
}
