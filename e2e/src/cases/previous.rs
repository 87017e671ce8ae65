//! Planes of an earlier version with planes of this one.

pub mod managed;
pub mod unmanaged;

use crate::access_network::AccessNetwork;
use crate::guard::PATIENCE;
use crate::scenario::Newcomer;
use crate::site::{UP, join_core};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use northbound::{Client, ConfigurationClient, Managed, SessionState, UserPlaneState};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const HOMES: u16 = 50;
/// What says that subscribers can dial in, in all versions.
const OPEN: &str = "access port is open for subscribers";

/// The daemons of an earlier version.
struct Previous {
    cp: PathBuf,
    up: PathBuf,
}

impl Previous {
    /// Those that `e2e/previous` names for a case.
    fn find(case: &str) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let named = fs::read_to_string(root.join("e2e/previous"))?;
        let mut named = named.lines().filter_map(|line| line.split_once(' '));
        let commit = named.find(|(name, _)| *name == case);
        let (_, commit) = commit.context("e2e/previous names no commit for this case")?;
        let folder = root.join("target/previous").join(commit);
        let [cp, up] = ["sluice-cp", "sluice-up"].map(|name| folder.join(name));
        ensure!(
            cp.exists() && up.exists(),
            "the daemons of {commit}, which e2e/previous names, are not built: scripts/previous does it, or says why not"
        );
        Ok(Previous { cp, up })
    }
}

struct Gateway<'a> {
    lab: &'a Lab,
    up: Process,
    cp: Process,
}

impl Gateway<'_> {
    fn wait_open(&mut self) -> Result<()> {
        let log = self.cp.log().to_owned();
        self.cp
            .wait_until("its access port to be open", PATIENCE, || {
                count(&log, OPEN) > 0
            })
    }

    fn change_control_plane(&mut self, to: &Path, file: &str) -> Result<()> {
        self.cp.stop()?;
        self.cp = control_plane(self.lab, to, file)?;
        Ok(())
    }

    fn change_user_plane(&mut self, to: &Path, file: &str) -> Result<()> {
        self.up.stop()?;
        self.up = user_plane(self.lab, to, file)?;
        join_core(self.lab, &mut self.up)
    }

    /// Every home's session is online, and the user plane has it.
    fn wait_whole(&mut self) -> Result<()> {
        let socket = self.lab.dir().join("cp.sock");
        let whole = || -> Result<bool> {
            let mut client = Client::connect(&socket, PATIENCE)?;
            let planes = client.user_planes()?;
            let sessions = client.sessions()?;
            let online = sessions
                .iter()
                .filter(|s| s.state() == SessionState::Online);
            let associated = |p: &northbound::UserPlane| p.state() == UserPlaneState::Associated;
            let whole = planes.len() == 1 && planes.iter().all(associated);
            Ok(online.count() == usize::from(HOMES) && whole)
        };
        self.cp
            .wait_until("every session to be there", PATIENCE, || {
                whole().unwrap_or(false)
            })
    }

    fn wait_empty(&mut self) -> Result<()> {
        let socket = self.lab.dir().join("cp.sock");
        let left =
            || -> Result<usize> { Ok(Client::connect(&socket, PATIENCE)?.sessions()?.len()) };
        self.cp.wait_until("every session to end", PATIENCE, || {
            left().is_ok_and(|left| left == 0)
        })
    }

    fn managed(&self) -> Result<Managed> {
        let socket = self.lab.dir().join("cp.sock");
        let managed = ConfigurationClient::connect(&socket, PATIENCE)?.managed()?;
        managed.into_iter().next().context("no user plane")
    }

    fn stop(mut self) -> Result<()> {
        self.cp.stop()?;
        self.up.stop()
    }
}

fn user_plane(lab: &Lab, program: &Path, file: &str) -> Result<Process> {
    let mut up = start(lab, Place::UserPlane(UP), "sluice-up", program, file)?;
    let socket = lab.dir().join("up.sock");
    up.wait_until("its API", PATIENCE, || UnixStream::connect(&socket).is_ok())?;
    Ok(up)
}

fn control_plane(lab: &Lab, program: &Path, file: &str) -> Result<Process> {
    start(lab, Place::ControlPlane, "sluice-cp", program, file)
}

fn start(lab: &Lab, place: Place, name: &str, program: &Path, file: &str) -> Result<Process> {
    let mut command = lab.netns(place).command(program);
    command.arg(lab.dir().join(file));
    Process::spawn(lab.dir(), name, command)
}

fn count(log: &Path, words: &str) -> usize {
    fs::read_to_string(log).map_or(0, |text| text.matches(words).count())
}

/// A home dials in and leaves again.
fn newcomer(lab: &Lab, number: u16) -> Result<()> {
    let newcomer = Newcomer::dial_on(lab, UP, number, number)?;
    newcomer.wait_online(PATIENCE)?;
    newcomer.hang_up(PATIENCE)
}

/// No home was disconnected, and traffic of every home flows both ways.
fn unharmed(network: &AccessNetwork, after: &str) -> Result<()> {
    network.hear_all(PATIENCE).context(after.to_owned())?;
    let status = network.status();
    ensure!(
        status.ends.is_empty(),
        "{after}: homes were disconnected: {:?}",
        status.ends
    );
    println!("        {after}: nobody was disconnected, traffic flows");
    Ok(())
}
