//! The two daemons: their configuration, their start and their end.

use super::process::Process;
use super::topology::{
    ACCESS_PORT, CORE_PORT, CORE_V4_LEN, CORE_V6_LEN, CP_MANAGEMENT, GATEWAY_V4, GATEWAY_V6,
    INTERNET_V4, INTERNET_V6, Lab, Place, SUBSCRIBERS_V4, SUBSCRIBERS_V6, UP_MANAGEMENT,
};
use anyhow::{Context, Result, bail};
use ipnet::IpNet;
use northbound::{Request, Response, Session};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The gateway's own address towards subscribers.
pub const SUBSCRIBER_GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
/// The gateway's own address towards subscribers.
pub const SUBSCRIBER_GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xfffe, 0, 0, 0, 0, 1);

/// How long a daemon may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the gateway may take to find its neighbours and the two planes to find each other.
const MEETING_LIMIT: Duration = Duration::from_secs(10);

/// The running gateway of a lab.
#[derive(Debug)]
pub struct Gateway {
    up: Process,
    cp: Process,
    cp_socket: PathBuf,
}

impl Gateway {
    /// Writes the configuration and starts both daemons; returns when subscribers can dial.
    pub fn start(lab: &Lab, users: &[(String, String)]) -> Result<Self> {
        let dir = lab.dir();
        let (up_file, cp_file, users_file) = (
            dir.join("up.yaml"),
            dir.join("cp.yaml"),
            dir.join("users.yaml"),
        );
        fs::write(&up_file, user_plane_yaml(dir))?;
        fs::write(&cp_file, control_plane_yaml(dir, &users_file, users.len()))?;
        write_secret(&users_file, &users_yaml(users))?;
        let mut up = daemon(lab, Place::UserPlane, "sluice-up", &up_file)?;
        let up_socket = dir.join("up.sock");
        up.wait_until("an answer from its API", START_LIMIT, || {
            answers(&up_socket, &Request::ShowPorts)
        })?;
        lab.default_routes()?;
        let mut cp = daemon(lab, Place::ControlPlane, "sluice-cp", &cp_file)?;
        let cp_socket = dir.join("cp.sock");
        cp.wait_until("an answer from its API", START_LIMIT, || {
            answers(&cp_socket, &Request::ShowSessions)
        })?;
        let log = cp.log().to_owned();
        cp.wait_until("an association with sluice-up", MEETING_LIMIT, || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("associated"))
        })?;
        // Both directions of the core link are known before the first packet needs them, as in any network that lives.
        for host in [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)] {
            up.wait_until(
                &format!("an answer from {host} through its core port"),
                MEETING_LIMIT,
                || {
                    let host = host.to_string();
                    lab.netns(Place::UserPlane)
                        .run(&["ping", "-n", "-c", "1", "-W", "1", &host])
                        .is_ok()
                },
            )?;
        }
        Ok(Gateway { up, cp, cp_socket })
    }

    /// An error with its last words if a daemon has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for process in [&mut self.up, &mut self.cp] {
            if let Some(status) = process.ended()? {
                bail!(
                    "{} has ended by itself ({status})\n{}",
                    process.name(),
                    process.tail()
                );
            }
        }
        Ok(())
    }

    /// The sessions that the control plane knows.
    pub fn sessions(&self) -> Result<Vec<Session>> {
        match northbound::call(&self.cp_socket, &Request::ShowSessions, PATIENCE)? {
            Response::Sessions { sessions } => Ok(sessions),
            other => bail!("sluice-cp answered {other:?} when asked for its sessions"),
        }
    }

    /// What must be gone once every home has left and is not: sessions, and kernel routes to subscriber nets.
    pub fn leftovers(&self, lab: &Lab) -> Result<Vec<String>> {
        let mut left: Vec<String> = self
            .sessions()?
            .iter()
            .map(|s| format!("session {} of {}", s.id, s.user))
            .collect();
        let kernel = lab.netns(Place::UserPlane);
        for family in ["-4", "-6"] {
            let routes = kernel.run(&["ip", family, "route", "show", "table", "main"])?;
            left.extend(
                routes
                    .lines()
                    .filter(|line| is_subscriber_route(line))
                    .map(|l| format!("kernel route {}", l.trim())),
            );
        }
        Ok(left)
    }

    /// Waits until nothing is left of the homes; what still is when the time is over.
    pub fn wait_until_empty(&mut self, lab: &Lab, limit: Duration) -> Result<Vec<String>> {
        let start = Instant::now();
        loop {
            self.check()?;
            let left = self.leftovers(lab)?;
            if left.is_empty() || start.elapsed() > limit {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The process ids of user plane and control plane.
    pub fn ids(&self) -> [i32; 2] {
        [self.up.id(), self.cp.id()]
    }

    /// Ends both: the control plane first, while the user plane still answers it.
    pub fn stop(mut self) -> Result<()> {
        self.cp.stop()?;
        self.up.stop()
    }
}

/// Starts a daemon that lies beside this program.
fn daemon(lab: &Lab, place: Place, name: &str, configuration: &Path) -> Result<Process> {
    let here = std::env::current_exe()?;
    let program = here.with_file_name(name);
    if !program.exists() {
        bail!(
            "{} is not there: `make run` builds all three programs",
            program.display()
        );
    }
    let mut command = lab.netns(place).command(program);
    command.arg(configuration);
    Process::spawn(lab.dir(), name, command)
}

fn answers(socket: &Path, request: &Request) -> bool {
    northbound::call(socket, request, PATIENCE).is_ok()
}

/// Is it a route into the subscribers' nets (the gateway's own addresses aside, which stay)?
fn is_subscriber_route(line: &str) -> bool {
    let Some(destination) = line.split_whitespace().find_map(|word| {
        word.parse::<IpNet>()
            .ok()
            .or_else(|| word.parse::<IpAddr>().ok().map(IpNet::from))
    }) else {
        return false;
    };
    let own = [
        IpNet::from(IpAddr::from(SUBSCRIBER_GATEWAY_V4)),
        IpNet::from(IpAddr::from(SUBSCRIBER_GATEWAY_V6)),
    ];
    let nets = [IpNet::from(SUBSCRIBERS_V4), IpNet::from(SUBSCRIBERS_V6)];
    !own.contains(&destination) && nets.iter().any(|net| net.contains(&destination))
}

fn user_plane_yaml(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "node-id: up1
address: {UP_MANAGEMENT}
api-socket: {dir}/up.sock
ports:
  - {{name: {ACCESS_PORT}, role: access, device: 'net_af_xdp0,iface={ACCESS_PORT}'}}
  - name: {CORE_PORT}
    role: core
    device: 'net_af_xdp1,iface={CORE_PORT}'
    tap: sl-{CORE_PORT}
    addresses: ['{GATEWAY_V4}/{CORE_V4_LEN}', '{GATEWAY_V6}/{CORE_V6_LEN}']
network-instances:
  default: {{device: sl-default, gateway: ['{SUBSCRIBER_GATEWAY_V4}', '{SUBSCRIBER_GATEWAY_V6}']}}
"
    )
}

fn control_plane_yaml(dir: &Path, users: &Path, homes: usize) -> String {
    let (dir, users, half_open) = (dir.display(), users.display(), homes.max(1024));
    format!(
        "node-id: cp1
address: {CP_MANAGEMENT}
api-socket: {dir}/cp.sock
store: {dir}/store
limits: {{half-open: {half_open}}}
user-planes:
  - {{node-id: up1, address: {UP_MANAGEMENT}, access-ports: [{{port: {ACCESS_PORT}}}]}}
network-instances:
  default:
    gateway: {SUBSCRIBER_GATEWAY_V4}
    ipv4-pool: {{prefix: '{SUBSCRIBERS_V4}'}}
    ipv6-pool: {{prefix: '{SUBSCRIBERS_V6}'}}
    dns: ['{INTERNET_V4}', '{INTERNET_V6}']
aaa:
  users-file: {users}
"
    )
}

fn users_yaml(users: &[(String, String)]) -> String {
    let entry = |(name, password): &(String, String)| {
        format!("  - {{name: {name}, password: {password}}}\n")
    };
    format!("users:\n{}", users.iter().map(entry).collect::<String>())
}

/// A file that only its owner reads.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriber_routes_are_told_from_the_gateways_own() {
        for (line, expected) in [
            ("100.64.3.0/24 dev sl-default proto 96 scope link", true),
            ("unreachable 100.64.0.0/24 proto 96", true),
            (
                "2001:db8:100::/56 dev sl-default proto 96 metric 1024 pref medium",
                true,
            ),
            ("100.64.0.1 dev sl-default scope link", false),
            ("default via 198.51.100.2 dev sl-core0", false),
            (
                "198.51.100.0/24 dev sl-core0 proto kernel scope link src 198.51.100.1",
                false,
            ),
            (
                "2001:db8:ffff::/64 dev sl-core0 proto kernel metric 256",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(is_subscriber_route(line), expected, "{line}");
        }
    }
}
