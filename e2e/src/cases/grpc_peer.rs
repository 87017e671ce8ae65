use crate::access_network::AccessNetwork;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use northbound::{DropCounter, Port, Session, UserPlane};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::process::Command;

const HOMES: u16 = 10;
/// Where the peer and the .proto files lie.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// Debian's own, for which its packages are.
const PYTHON: &str = "/usr/bin/python3";

/// What the peer heard.
#[derive(Deserialize)]
struct Heard {
    /// Id, state, user, IPv4 address, PPPoE session id, inner VLAN.
    sessions: Vec<(String, String, String, String, u32, u32)>,
    user_planes: Vec<(String, String)>,
    control_plane_drops: usize,
    accounts: usize,
    refused: Option<String>,
    /// Name, role, whether it received anything.
    ports: Vec<(String, String, bool)>,
    user_plane_drops: usize,
}

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    let heard = hear(lab.dir())?;
    let shown = |words: &[&str]| -> Result<String> { site.sluice().run(words) };

    let sessions: Vec<Session> = json(&shown(&["show", "sessions", "--json"])?)?;
    let of = |s: Session| {
        let state = s.state().as_str_name().to_owned();
        let ipv4 = s.ipv4.unwrap_or_default();
        let c_tag = s.c_tag.unwrap_or_default();
        (s.id, state, s.user, ipv4, s.pppoe_session_id, c_tag)
    };
    let mut told = heard.sessions;
    told.sort();
    let sessions: Vec<_> = sessions.into_iter().map(of).collect();
    ensure!(sessions.len() == usize::from(HOMES), "{sessions:?}");
    ensure!(told == sessions, "{told:?} and not {sessions:?}");

    let planes: Vec<UserPlane> = json(&shown(&["show", "user-planes", "--json"])?)?;
    let planes: Vec<_> = planes
        .iter()
        .map(|plane| (plane.node_id.clone(), plane.state().as_str_name().into()))
        .collect();
    ensure!(heard.user_planes == planes, "{:?}", heard.user_planes);
    let ports: Vec<Port> = json(&shown(&["show", "ports", "--json"])?)?;
    let ports: Vec<_> = ports
        .into_iter()
        .map(|port| (port.name, port.role, port.rx_packets > 0))
        .collect();
    ensure!(heard.ports == ports, "{:?}", heard.ports);
    let drops: Vec<DropCounter> = json(&shown(&["show", "drops", "--all", "--json"])?)?;
    let told = heard.control_plane_drops + heard.user_plane_drops;
    ensure!(told == drops.len(), "{told} counters, not {}", drops.len());
    ensure!(heard.accounts > 10, "{} accounts", heard.accounts);
    ensure!(
        heard.refused.as_deref() == Some("NOT_FOUND"),
        "there is no session 1: {:?}",
        heard.refused
    );
    network.hang_up(PATIENCE)?;
    Ok(())
}

fn hear(dir: &Path) -> Result<Heard> {
    let here = Path::new(HERE);
    let done = Command::new(PYTHON)
        .arg(here.join("grpc-peer/peer.py"))
        .arg(here.with_file_name("proto"))
        .args([dir.join("cp.sock"), dir.join("up.sock")])
        .output()
        .context("cannot run Debian's Python")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "the peer failed: {said}");
    json(&String::from_utf8_lossy(&done.stdout))
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).with_context(|| format!("not what was expected: {text}"))
}
