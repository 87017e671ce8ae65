use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{Setup, UP, daemon, program};
use anyhow::{Context, Result, bail, ensure};
use lab::topology::{ACCESS_PORT, Lab, Place};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The net that the peer lends to the port.
const NET: &str = "100.64.0.0/24";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    user_plane(lab).context("sluice-up and a foreign control plane")?;
    control_plane(lab).context("sluice-cp and a foreign user plane")
}

/// A foreign control plane establishes, changes, asks and deletes; what it asks for is there, and gone afterwards.
fn user_plane(lab: &Lab) -> Result<()> {
    let (dir, file) = (lab.dir(), lab.dir().join("up.yaml"));
    let (start, document) = Setup::user_plane_alone(dir);
    fs::write(&file, start)?;
    fs::write(dir.join("document.yaml"), document)?;
    let mut up = daemon(lab, Place::UserPlane(UP), "sluice-up", &file)?;
    up.wait_until("its API", PATIENCE, || {
        UnixStream::connect(dir.join("up.sock")).is_ok()
    })?;
    let routes = || {
        let netns = lab.netns(Place::UserPlane(UP));
        netns.run(&["ip", "-4", "route", "show", "proto", "96"])
    };
    let peer = Peer::start(
        lab,
        Place::ControlPlane,
        "cp",
        [UP.control_plane(), UP.management()],
    )?;
    let announced = routes()?;
    ensure!(
        announced.contains(NET),
        "{NET} is not announced: {announced}"
    );
    let said = peer.go_on()?;
    for step in ["usage queried", "refusals", "released"] {
        ensure!(
            said.contains(step),
            "the peer did not come to \"{step}\": {said}"
        );
    }
    up.wait_until("the released routes to be gone", PATIENCE, || {
        routes().is_ok_and(|left| left.is_empty())
    })?;
    up.stop()
}

/// A foreign user plane gets an association and a default session, whose rules it checks; the port opens.
fn control_plane(lab: &Lab) -> Result<()> {
    let (dir, file) = (lab.dir(), lab.dir().join("cp.yaml"));
    if dir.join("store").exists() {
        fs::remove_dir_all(dir.join("store"))?;
    }
    fs::write(&file, Setup::default().start(dir))?;
    fs::write(dir.join("sluice.yaml"), Setup::default().configuration(dir))?;
    let mut cp = daemon(lab, Place::ControlPlane, "sluice-cp", &file)?;
    let peer = Peer::start(
        lab,
        Place::UserPlane(UP),
        "up",
        [UP.management(), UP.control_plane()],
    )?;
    let log = cp.log().to_owned();
    cp.wait_until("its access port to be open", PATIENCE, || {
        fs::read_to_string(&log)
            .is_ok_and(|text| text.contains("access port is open for subscribers"))
    })?;
    peer.go_on()?;
    cp.stop()
}

/// The peer, which has come to its "standing" line.
struct Peer {
    child: Child,
    stdin: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Peer {
    fn start(lab: &Lab, place: Place, role: &str, [own, other]: [IpAddr; 2]) -> Result<Self> {
        let mut command: Command = lab.netns(place).command(program("pfcp-peer")?);
        command.arg(role).args([own, other].map(|a| a.to_string()));
        command.arg(ACCESS_PORT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run pfcp-peer")?;
        let stdin = child.stdin.take().context("no stdin")?;
        let mut output = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut said = String::new();
        while !said.contains("standing:") {
            if output.read_line(&mut said)? == 0 {
                bail!("after \"{}\" {}", said.trim(), complaint(&mut child)?);
            }
        }
        Ok(Peer {
            child,
            stdin,
            output,
        })
    }

    /// Lets it go on to its end; what it said.
    fn go_on(mut self) -> Result<String> {
        self.stdin.write_all(b"\n")?;
        let mut said = String::new();
        self.output.read_to_string(&mut said)?;
        let complaint = complaint(&mut self.child)?;
        ensure!(
            said.ends_with("done\n"),
            "after \"{}\" {complaint}",
            said.trim()
        );
        Ok(said)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn complaint(child: &mut Child) -> Result<String> {
    let mut text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut text)?;
    }
    Ok(text.trim().to_owned())
}
