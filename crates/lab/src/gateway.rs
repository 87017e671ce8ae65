//! The daemons: their configuration, their start, their life under supervision, and their end.

use crate::daemon::{Daemon, DaemonEvent, Phase, Recovery};
use crate::keep::Keep;
use crate::netns::Netns;
use crate::process::Process;
use crate::routes::Routes;
use crate::supervisor::{Probe, Supervisor};
use crate::topology::{
    ACCESS_PORT, CORE_PORT, CORE_V4_LEN, CORE_V6_LEN, DELEGATED_V6, INTERNET_V4, INTERNET_V6, Lab,
    Place, SUBSCRIBERS_V4, SUBSCRIBERS_V6, UserPlane, default_routes,
};
use anyhow::{Context, Result, bail};
use ipnet::Ipv4Net;
use northbound::{CallError, Client, Session, UserPlaneState};
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

/// How long the supervisor waits for an answer before it asks again.
const PROBE_PATIENCE: Duration = Duration::from_millis(500);

/// The running gateway of a lab: the control plane and its user planes, under supervision.
pub struct Gateway {
    // Dropped in this order: a user plane's routes go with it.
    supervisor: Supervisor,
    routes: Routes,
    ups: Vec<UserPlane>,
    cp_socket: PathBuf,
}

impl Gateway {
    /// Starts the daemons for these users, name and password.
    pub fn start(lab: &Lab, ups: &[UserPlane], users: &[(String, String)]) -> Result<Self> {
        Self::start_with(lab, ups, &users_yaml(users), users.len())
    }

    /// Writes the configuration and starts the control plane with these user planes; returns when subscribers can dial.
    ///
    /// `aaa` is the end of the configuration: the rest of the access profile, and who knows the subscribers, of whom there are
    /// `homes`.
    pub fn start_with(lab: &Lab, ups: &[UserPlane], aaa: &str, homes: usize) -> Result<Self> {
        let contents = Contents {
            limits: &format!("limits: {{half-open: {}}}", homes.max(1024)),
            segments: "all: {access-profile: pppoe}",
            subscribers_v4: SUBSCRIBERS_V4,
            aaa,
        };
        Self::start_configured(lab, ups, &contents.configuration(lab.dir(), ups))
    }

    /// The same with another configuration.
    pub fn start_configured(lab: &Lab, ups: &[UserPlane], configuration: &str) -> Result<Self> {
        let (dir, cp_file) = (lab.dir(), lab.dir().join("cp.yaml"));
        let routes = Routes::follow(lab, ups)?;
        let mut user_planes = Vec::new();
        for &up in ups {
            let file = dir.join(format!("{}.yaml", up.name()));
            fs::write(&file, user_plane_yaml(dir, up))?;
            user_planes.push(spawn(lab, Daemon::UserPlane(up), &file)?);
        }
        for (&up, (process, _)) in ups.iter().zip(&mut user_planes) {
            let socket = socket(dir, Daemon::UserPlane(up));
            process.wait_until("an answer from its API", START_LIMIT, || {
                ports(&socket, PATIENCE).is_ok()
            })?;
        }
        fs::write(&cp_file, start_yaml(dir, ups))?;
        write_secret(&dir.join("sluice.yaml"), configuration)?;
        let (mut cp, cp_keep) = spawn(lab, Daemon::ControlPlane, &cp_file)?;
        let cp_socket = socket(dir, Daemon::ControlPlane);
        cp.wait_until("its user planes to be ready", MEETING_LIMIT, || {
            all_associated(&cp_socket)
        })?;
        for (&up, (process, _)) in ups.iter().zip(&mut user_planes) {
            lab.default_routes(up)?; // its core port was there from the moment on when it was told its configuration
            meet_neighbours(lab, up, process)?;
        }
        // The control plane ends first, while the user planes still answer it.
        let mut daemons = vec![(Daemon::ControlPlane, cp, cp_keep)];
        for (&up, (process, keep)) in ups.iter().zip(user_planes) {
            daemons.push((Daemon::UserPlane(up), process, keep));
        }
        let kernel = |&up: &UserPlane| (up, lab.netns(Place::UserPlane(up)).clone());
        let probe = GatewayProbe {
            dir: dir.to_owned(),
            kernels: ups.iter().map(kernel).collect(),
        };
        Ok(Gateway {
            supervisor: Supervisor::start(daemons, probe)?,
            routes,
            ups: ups.to_vec(),
            cp_socket,
        })
    }

    /// What has happened to the daemons since the last call; an error if the lab itself does not work any more.
    pub fn check(&self) -> Result<Vec<DaemonEvent>> {
        if self.routes.failed() {
            bail!("a thread that follows routes has ended by mistake");
        }
        self.supervisor
            .events()
            .with_context(|| self.supervisor.tails())
    }

    /// Kills a daemon with SIGKILL; it is dead when this returns, and is started again.
    pub fn kill(&self, daemon: Daemon) -> Result<()> {
        self.supervisor.kill(daemon)
    }

    /// Stops a daemon with SIGSTOP until [`Gateway::resume`].
    pub fn pause(&self, daemon: Daemon) -> Result<()> {
        self.supervisor.pause(daemon)
    }

    /// Lets a daemon go on with SIGCONT.
    pub fn resume(&self, daemon: Daemon) -> Result<()> {
        self.supervisor.resume(daemon)
    }

    /// Waits until a daemon that was killed or stopped is back: the planes are associated, and every session is where it
    /// was. How long that took.
    pub fn wait_ready(&self, daemon: Daemon, limit: Duration) -> Result<Recovery> {
        self.supervisor.wait_ready(daemon, limit)
    }

    /// Does a user plane forward everything? It does not while it is dead or stopped, or has not got its sessions back.
    pub fn forwards(&self, up: UserPlane) -> Result<bool> {
        Ok(self.supervisor.phase(Daemon::UserPlane(up))? == Phase::Ready)
    }

    /// How far a daemon has come.
    pub fn phase(&self, daemon: Daemon) -> Result<Phase> {
        self.supervisor.phase(daemon)
    }

    /// How often each daemon was started again.
    pub fn restarts(&self) -> Vec<(Daemon, u32)> {
        self.supervisor.restarts()
    }

    /// The process id of a daemon.
    pub fn id(&self, daemon: Daemon) -> Result<i32> {
        self.supervisor.id(daemon)
    }

    /// The sessions that the control plane knows.
    pub fn sessions(&self) -> Result<Vec<Session>> {
        Ok(Client::connect(&self.cp_socket, PATIENCE)?.sessions()?)
    }

    /// What must be gone once every home has left and is not: sessions, and kernel routes to subscriber nets.
    pub fn leftovers(&self, lab: &Lab) -> Result<Vec<String>> {
        let mut left: Vec<String> = self
            .sessions()?
            .iter()
            .map(|s| format!("session {} of {}", s.id, s.user))
            .collect();
        for &up in &self.ups {
            let kernel = lab.netns(Place::UserPlane(up));
            for family in ["-4", "-6"] {
                let routes = kernel.run(&["ip", family, "route", "show", "table", "main"])?;
                left.extend(
                    routes
                        .lines()
                        .filter(|line| is_subscriber_route(line))
                        .map(|l| format!("kernel route of {}: {}", up.name(), l.trim())),
                );
            }
        }
        Ok(left)
    }

    /// Waits until nothing is left of the homes; what still is when the time is over.
    pub fn wait_until_empty(&self, lab: &Lab, limit: Duration) -> Result<Vec<String>> {
        let start = Instant::now();
        loop {
            let left = self.leftovers(lab)?;
            if left.is_empty() || start.elapsed() > limit {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends all daemons: the control plane first, while the user planes still answer it.
    pub fn stop(self) -> Result<()> {
        self.supervisor.end()
    }
}

/// Asks the daemons that were started again.
struct GatewayProbe {
    dir: PathBuf,
    kernels: Vec<(UserPlane, Netns)>,
}

impl Probe for GatewayProbe {
    fn answers(&self, daemon: Daemon) -> bool {
        let path = socket(&self.dir, daemon);
        let answers = match daemon {
            Daemon::ControlPlane => user_planes(&path, PROBE_PATIENCE).is_ok(),
            Daemon::UserPlane(_) => ports(&path, PROBE_PATIENCE).is_ok(),
        };
        if !answers {
            return false;
        }
        // The kernel forgot the default routes when the core port's TAP went away.
        let kernel = self
            .kernels
            .iter()
            .find(|(up, _)| daemon == Daemon::UserPlane(*up));
        kernel.is_none_or(|(up, kernel)| default_routes(kernel, *up).is_ok())
    }

    fn is_back(&self, daemon: Daemon, began: u64) -> bool {
        let cp = socket(&self.dir, Daemon::ControlPlane);
        user_planes(&cp, PROBE_PATIENCE).is_ok_and(|planes| {
            let mut planes = planes.iter();
            let ready = |plane: &northbound::UserPlane| plane.state() == UserPlaneState::Associated;
            match daemon {
                Daemon::ControlPlane => planes.all(ready),
                // Its association may still be the one from before its death.
                Daemon::UserPlane(up) => planes.any(|plane| {
                    plane.node_id == up.name() && ready(plane) && plane.started_at >= Some(began)
                }),
            }
        })
    }
}

/// The socket of a daemon's local API.
pub fn socket(dir: &Path, daemon: Daemon) -> PathBuf {
    dir.join(format!("{}.sock", daemon.name()))
}

fn user_planes(
    cp_socket: &Path,
    patience: Duration,
) -> Result<Vec<northbound::UserPlane>, CallError> {
    Client::connect(cp_socket, patience)?.user_planes()
}

fn ports(up_socket: &Path, patience: Duration) -> Result<Vec<northbound::Port>, CallError> {
    mi::blocking::Client::connect(up_socket, patience)?.ports()
}

fn all_associated(cp_socket: &Path) -> bool {
    let ready = |plane: &northbound::UserPlane| plane.state() == UserPlaneState::Associated;
    user_planes(cp_socket, PATIENCE).is_ok_and(|planes| planes.iter().all(ready))
}

/// Both directions of the core link are known before the first packet needs them, as in any network that lives.
fn meet_neighbours(lab: &Lab, up: UserPlane, process: &mut Process) -> Result<()> {
    for host in [IpAddr::from(up.internet_v4()), up.internet_v6().into()] {
        let what = format!("an answer from {host} through its core port");
        let host = host.to_string();
        process.wait_until(&what, MEETING_LIMIT, || {
            lab.netns(Place::UserPlane(up))
                .run(&["ping", "-n", "-c", "1", "-W", "1", &host])
                .is_ok()
        })?;
    }
    Ok(())
}

/// Starts a daemon that lies beside this program.
fn spawn(lab: &Lab, daemon: Daemon, configuration: &Path) -> Result<(Process, Keep)> {
    let here = std::env::current_exe()?;
    let program = here.with_file_name(daemon.program());
    if !program.exists() {
        bail!(
            "{} is not there: `make run` builds all three programs",
            program.display()
        );
    }
    let place = match daemon {
        Daemon::ControlPlane => Place::ControlPlane,
        Daemon::UserPlane(up) => Place::UserPlane(up),
    };
    let keep = Keep::open(&lab.dir().join(format!("{}.notify", daemon.name())))?;
    let mut command = lab.netns(place).command("bash");
    keep.become_daemon(&mut command, &program, configuration);
    Ok((Process::spawn(lab.dir(), daemon.name(), command)?, keep))
}

/// Is it a route that the user plane exports for subscribers? Those have its own protocol number.
fn is_subscriber_route(line: &str) -> bool {
    line.contains(" proto 96")
}

/// What a user plane starts with; the rest the control plane tells it. A lab's user planes share few cores with everything
/// else: workers that are bound to one core would wait for each other.
fn user_plane_yaml(dir: &Path, up: UserPlane) -> String {
    let (name, dir, address) = (up.name(), dir.display(), up.management());
    let control_plane = up.control_plane();
    format!(
        "node-id: {name}
address: '{address}'
control-planes: ['{control_plane}']
api-socket: {dir}/{name}.sock
state: {dir}/{name}
huge-pages: false
worker-cores: none
"
    )
}

/// What the control plane starts with.
fn start_yaml(dir: &Path, ups: &[UserPlane]) -> String {
    let dir = dir.display();
    let own = ups.iter().map(|up| format!("'{}'", up.control_plane()));
    let own = own.collect::<Vec<_>>().join(", ");
    format!(
        "node-id: cp1
address: [{own}]
api-socket: {dir}/cp.sock
state: {dir}/store
initial-configuration: sluice.yaml
"
    )
}

/// What a configuration says beside the lab's addresses, in YAML.
pub struct Contents<'a> {
    /// `limits`, and whatever else is at the top.
    pub limits: &'a str,
    /// Segments of each access port, separated by commas.
    pub segments: &'a str,
    /// Prefix of the subscribers' addresses.
    pub subscribers_v4: Ipv4Net,
    /// The end: the rest of the access profile, and who knows the subscribers.
    pub aaa: &'a str,
}

impl Contents<'_> {
    /// The configuration for these user planes of the lab in `dir`.
    pub fn configuration(&self, dir: &Path, ups: &[UserPlane]) -> String {
        let planes: String = ups.iter().map(|up| self.user_plane(dir, *up)).collect();
        let Contents {
            limits,
            subscribers_v4,
            aaa,
            ..
        } = self;
        format!(
            "{limits}
network-instances:
  default: {{gateway: ['{SUBSCRIBER_GATEWAY_V4}', '{SUBSCRIBER_GATEWAY_V6}']}}
user-planes:
{planes}subscriber-profiles:
  home: {{dns: ['{INTERNET_V4}', '{INTERNET_V6}'], delegated-pools: [delegated]}}
ipv4-pools: {{homes: {{prefix: '{subscribers_v4}'}}}}
ipv6-pools:
  homes: {{prefix: '{SUBSCRIBERS_V6}'}}
  delegated: {{prefix: '{DELEGATED_V6}', prefix-length: 56}}
access-profiles:
  pppoe:
    subscriber-profile: home
{aaa}"
        )
    }

    fn user_plane(&self, dir: &Path, up: UserPlane) -> String {
        let (name, address, segments) = (up.name(), up.management(), self.segments);
        let socket = socket(dir, Daemon::UserPlane(up));
        let (socket, core_v4, core_v6) = (socket.display(), up.core_v4(), up.core_v6());
        format!(
            "  {name}:
    address: '{address}'
    management: {socket}
    ports:
      {ACCESS_PORT}:
        role: access
        device: 'net_af_xdp0,iface={ACCESS_PORT}'
        segments: {{{segments}}}
      {CORE_PORT}:
        role: core
        device: 'net_af_xdp1,iface={CORE_PORT}'
        addresses: ['{core_v4}/{CORE_V4_LEN}', '{core_v6}/{CORE_V6_LEN}']
"
        )
    }
}

fn users_yaml(users: &[(String, String)]) -> String {
    let entry =
        |(name, password): &(String, String)| format!("  {name}: {{password: {password}}}\n");
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
