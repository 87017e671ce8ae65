//! The daemons under test: `sluice-up`, `sluice-cp` and the RADIUS server that they ask.

use crate::accounting::AccountingRecords;
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::radius::{self, Forger, FreeRadius, Server};
use anyhow::{Context, Result, bail};
use lab::gateway::{SUBSCRIBER_GATEWAY_V4, SUBSCRIBER_GATEWAY_V6};
use lab::process::Process;
use lab::routes::Routes;
use lab::topology::{
    ACCESS_PORT, CORE_PORT, CORE_V4_LEN, CORE_V6_LEN, DELEGATED_V6, INTERNET_V4, INTERNET_V6, Lab,
    Place, SUBSCRIBERS_V4, SUBSCRIBERS_V6, UserPlane,
};
use nix::sys::signal::Signal;
use northbound::{DropCounter, Neighbour, Route, Session};
use serde::de::DeserializeOwned;
use std::fs;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The user plane that most cases work with, alone.
pub const UP: UserPlane = UserPlane::One;
/// Its name in the configuration.
pub const CONFIGURED_AS: &str = "up-e2e";
/// The name servers that subscribers are told.
pub const DNS: [&str; 2] = ["192.0.2.53", "192.0.2.54"];
/// Limit for accounting records: one that a server lost is sent again after half a minute to a minute.
const RECORDED: Duration = Duration::from_secs(60 + PATIENCE.as_secs());
/// Debian's libfaketime; the monotonic clock stays true.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// The file that says how far the daemons' wall clock is off.
const CLOCK: &str = "clock";

/// Who answers for RADIUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aaa {
    /// Debian's FreeRADIUS with `raddb`.
    FreeRadius,
    /// A server that signs its replies wrongly.
    Forger,
    /// Two servers in order, [`radius::PAIR`], which the case starts and ends itself.
    Two,
}

/// How the daemons are set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Who answers for RADIUS.
    pub aaa: Aaa,
    /// The authentication protocol that is offered first.
    pub authentication: &'static str,
    /// The IPv4 pool and the length of its nets.
    pub ipv4_pool: (String, u8),
    /// The IPv6 pool and the length of its nets.
    pub ipv6_pool: (String, u8),
    /// Whether each subscriber has a delegated prefix of [`DELEGATED_V6`], a /56.
    pub delegates: bool,
    /// The most sessions.
    pub sessions: u32,
    /// The user plane's workers.
    pub workers: u16,
    /// Seconds between LCP echo requests to a silent subscriber.
    pub echo_interval: u16,
    /// Seconds between interim records.
    pub interim_interval: u32,
    /// Whether the daemons' wall clock can be set, by [`Site::set_clock`].
    pub clock: bool,
    /// The folder in the lab's that has the daemons' state folders.
    pub state: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            aaa: Aaa::FreeRadius,
            authentication: "chap",
            ipv4_pool: (SUBSCRIBERS_V4.to_string(), 24),
            ipv6_pool: (SUBSCRIBERS_V6.to_string(), 56),
            delegates: false,
            sessions: 1000,
            workers: 1,
            echo_interval: 10,
            interim_interval: 300,
            clock: false,
            state: "",
        }
    }
}

impl Setup {
    /// `sluice-cp`'s start file.
    pub fn start(&self, dir: &Path) -> String {
        let (state, dir) = (dir.join(self.state), dir.display());
        let (state, own) = (state.join("store"), UP.control_plane());
        let state = state.display();
        format!(
            "node-id: cp-e2e
address: {own}
api-socket: {dir}/cp.sock
state: {state}
initial-configuration: sluice.yaml
"
        )
    }

    /// The configuration.
    pub fn configuration(&self, dir: &Path) -> String {
        let dir = dir.display();
        let servers: Vec<String> = match self.aaa {
            Aaa::FreeRadius | Aaa::Forger => vec![radius::ALONE.yaml()],
            Aaa::Two => radius::PAIR.map(|server| server.yaml()).into(),
        };
        let names: Vec<String> = (0..servers.len()).map(|n| format!("server{n}")).collect();
        // the version before knows none of it
        let (delegates, delegated) = match self.delegates {
            true => (
                ", delegated-pools: [delegated]",
                format!("  delegated: {{prefix: '{DELEGATED_V6}', prefix-length: 56}}\n"),
            ),
            false => ("", String::new()),
        };
        let servers = names.iter().zip(servers);
        let servers: String = servers
            .map(|(name, server)| format!("    {name}: {server}\n"))
            .collect();
        let names = names.join(", ");
        let Setup {
            authentication,
            sessions,
            echo_interval,
            interim_interval,
            ..
        } = self;
        let ((pool4, net4), (pool6, net6)) = (&self.ipv4_pool, &self.ipv6_pool);
        let [dns1, dns2] = DNS;
        let (up, core_v4, core_v6) = (UP.management(), UP.core_v4(), UP.core_v6());
        format!(
            "limits: {{sessions: {sessions}}}
network-instances:
  default: {{gateway: [{SUBSCRIBER_GATEWAY_V4}, '{SUBSCRIBER_GATEWAY_V6}']}}
user-planes:
  {CONFIGURED_AS}:
    address: {up}
    management: {dir}/up.sock
    ports:
      {ACCESS_PORT}:
        role: access
        device: 'net_af_xdp0,iface={ACCESS_PORT}'
        segments: {{all: {{access-profile: pppoe}}}}
      {CORE_PORT}:
        role: core
        device: net_af_xdp1,iface={CORE_PORT}
        addresses: [{core_v4}/{CORE_V4_LEN}, '{core_v6}/{CORE_V6_LEN}']
access-profiles:
  pppoe:
    authentication: [{authentication}]
    echo-interval: {echo_interval}
    server-group: radius
    subscriber-profile: standard
subscriber-profiles:
  standard: {{dns: [{dns1}, {dns2}, '2001:db8::53']{delegates}}}
ipv4-pools:
  homes: {{prefix: {pool4}, net-length: {net4}}}
ipv6-pools:
  homes: {{prefix: '{pool6}', net-length: {net6}}}
{delegated}aaa:
  servers:
{servers}  server-groups:
    radius: {{servers: [{names}], interim-interval: {interim_interval}}}
"
        )
    }

    /// `sluice-up`'s start file.
    pub fn user_plane(&self, dir: &Path) -> String {
        let state = dir.join(self.state).join("up");
        let (dir, state) = (dir.display(), state.display());
        let (own, workers) = (UP.management(), self.workers);
        let control_plane = UP.control_plane();
        format!(
            "node-id: {CONFIGURED_AS}
address: {own}
control-planes: [{control_plane}]
api-socket: {dir}/up.sock
state: {state}
memory: 128
max-sessions: 1024
workers: {workers}
huge-pages: false
worker-cores: none
"
        )
    }

    /// `sluice-up`'s start file where nobody tells it anything, and its document beside it.
    pub fn user_plane_alone(dir: &Path) -> (String, String) {
        let (core_v4, core_v6) = (UP.core_v4(), UP.core_v6());
        let start = Self::default().user_plane(dir) + "initial-configuration: document.yaml\n";
        let document = format!(
            "network-instances:
  default: {{interface: sl-default, gateway: [{SUBSCRIBER_GATEWAY_V4}, '{SUBSCRIBER_GATEWAY_V6}']}}
ports:
  {ACCESS_PORT}: {{role: access, device: 'net_af_xdp0,iface={ACCESS_PORT}'}}
  {CORE_PORT}:
    role: core
    device: net_af_xdp1,iface={CORE_PORT}
    addresses: [{core_v4}/{CORE_V4_LEN}, '{core_v6}/{CORE_V6_LEN}']
"
        );
        (start, document)
    }
}

/// The running daemons; ended when dropped.
pub struct Site {
    setup: Setup,
    dir: PathBuf,
    /// `sluice-cp`.
    pub cp: Process,
    /// `sluice-up`.
    pub up: Process,
    /// FreeRADIUS, where it was asked for.
    pub radius: Option<FreeRadius>,
    /// The forger, where it was asked for.
    pub forger: Option<Forger>,
    /// The internet host's routes to the subscribers.
    _routes: Routes,
}

/// Removes what daemons of cases before were told and have kept in this folder.
pub fn forget(dir: &Path) -> Result<()> {
    for state in ["store", "up"] {
        let folder = dir.join(state);
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    Ok(())
}

impl Site {
    /// Starts everything and waits until a subscriber could dial in.
    pub fn start(lab: &Lab, setup: &Setup) -> Result<Self> {
        let dir = lab.dir().to_owned();
        forget(&dir)?;
        let (radius, forger) = match setup.aaa {
            Aaa::FreeRadius => {
                let server = FreeRadius::start(lab, &radius::ALONE, radius::SECRET)?;
                (Some(server), None)
            }
            Aaa::Forger => (None, Some(Forger::start(lab, &radius::ALONE)?)),
            Aaa::Two => (None, None),
        };
        fs::write(dir.join("up.yaml"), setup.user_plane(&dir))?;
        fs::write(dir.join("cp.yaml"), setup.start(&dir))?;
        fs::write(dir.join("sluice.yaml"), setup.configuration(&dir))?;
        let routes = Routes::follow(lab, &[UP])?;
        let clock = setup.clock.then(|| dir.join(CLOCK));
        if let Some(clock) = &clock {
            fs::write(clock, "+0")?;
        }
        let start = |place, name, file: &str| -> Result<Process> {
            let mut command = lab.netns(place).command(program(name)?);
            command.arg(dir.join(file));
            if let Some(clock) = &clock {
                command
                    .env("LD_PRELOAD", FAKETIME)
                    .env("FAKETIME_TIMESTAMP_FILE", clock)
                    .env("FAKETIME_NO_CACHE", "1")
                    .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            }
            Process::spawn(&dir, name, command)
        };
        let up = start(Place::UserPlane(UP), "sluice-up", "up.yaml")?;
        let cp = start(Place::ControlPlane, "sluice-cp", "cp.yaml")?;
        let mut site = Site {
            setup: setup.clone(),
            dir,
            cp,
            up,
            radius,
            forger,
            _routes: routes,
        };
        site.wait_ready()?;
        join_core(lab, &mut site.up)?;
        Ok(site)
    }

    /// kill -9 and a new start of the user plane.
    pub fn restart_user_plane(&mut self, lab: &Lab) -> Result<()> {
        self.up.signal(Signal::SIGKILL)?;
        self.up.stop()?;
        let file = self.dir.join("up.yaml");
        self.up = daemon(lab, Place::UserPlane(UP), "sluice-up", &file)?;
        join_core(lab, &mut self.up)
    }

    /// Sets the daemons' wall clock so many seconds ahead of the true time, or behind it; at once.
    pub fn set_clock(&self, ahead: i64) -> Result<()> {
        // Never an empty file: it is read at any time.
        let (clock, new) = (self.dir.join(CLOCK), self.dir.join("clock.new"));
        fs::write(&new, format!("{ahead:+}"))?;
        Ok(fs::rename(new, clock)?)
    }

    /// How it was set up.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    fn wait_ready(&mut self) -> Result<()> {
        let (up, cp) = (self.dir.join("up.sock"), self.dir.join("cp.sock"));
        self.up
            .wait_until("its API", PATIENCE, || UnixStream::connect(&up).is_ok())?;
        self.cp
            .wait_until("its API", PATIENCE, || UnixStream::connect(&cp).is_ok())?;
        let log = self.cp.log().to_owned();
        self.cp
            .wait_until("its access port to be open", PATIENCE, || {
                fs::read_to_string(&log)
                    .is_ok_and(|text| text.contains("access port is open for subscribers"))
            })
    }

    /// Asks the command line: `sluice show WORDS --json`.
    fn show<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        let text = self
            .sluice()
            .run(&[&["show"], words, &["--json"]].concat())?;
        serde_json::from_str(&text)
            .with_context(|| format!("`sluice show {}` printed: {text}", words.join(" ")))
    }

    /// The `sluice` command for these daemons.
    pub fn sluice(&self) -> Sluice {
        Sluice::new(self.dir.join("cp.sock"))
    }

    /// Every session.
    pub fn sessions(&self) -> Result<Vec<Session>> {
        self.show(&["sessions"])
    }

    /// The session on a C-tag, with its counters as they are now.
    pub fn session_of(&self, c_tag: u16) -> Result<Session> {
        let sessions = self.sessions()?;
        let found = sessions
            .iter()
            .find(|session| session.c_tag == Some(c_tag.into()));
        let found =
            found.with_context(|| format!("no session on C-tag {c_tag} among {sessions:?}"))?;
        self.show(&["session", &found.id])
    }

    /// The routes of the user planes' forwarding tables.
    pub fn routes(&self) -> Result<Vec<Route>> {
        self.show(&["routes"])
    }

    /// The neighbours that routes lead to.
    pub fn neighbours(&self) -> Result<Vec<Neighbour>> {
        self.show(&["neighbours"])
    }

    /// The named counters of both daemons.
    pub fn drops(&self) -> Result<Drops> {
        self.show(&["drops"]).map(Drops)
    }

    /// The kernel routes that the user plane exported.
    pub fn exported_routes(&self, lab: &Lab) -> Result<String> {
        let up = lab.netns(Place::UserPlane(UP));
        let of = |family| up.run(&["ip", family, "route", "show", "proto", "96"]);
        Ok(of("-4")? + &of("-6")?)
    }

    /// Waits until no session is left.
    pub fn wait_empty(&mut self, limit: Duration) -> Result<()> {
        self.wait_for("every session to end", limit, |site| {
            Ok(site.sessions()?.is_empty())
        })
    }

    /// Waits until `done` says so.
    pub fn wait_for(
        &mut self,
        what: &str,
        limit: Duration,
        mut done: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let start = Instant::now();
        while !done(self)? {
            for daemon in [&mut self.cp, &mut self.up] {
                if let Some(status) = daemon.ended()? {
                    bail!(
                        "{} ended ({status}) while waiting for {what}",
                        daemon.name()
                    );
                }
            }
            if start.elapsed() > limit {
                bail!("waited {limit:?} for {what}");
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Waits until the servers have one Start and one Stop of each of so many sessions.
    pub fn wait_recorded(&mut self, lab: &Lab, servers: &[Server], sessions: usize) -> Result<()> {
        let mut lack = None;
        let done = self.wait_for("accounting records", RECORDED, |_| {
            let records: Vec<_> = servers
                .iter()
                .map(|of| of.records(lab))
                .collect::<Result<_>>()?;
            lack = AccountingRecords::of(records.into_iter().flatten())?.lack(sessions);
            Ok(lack.is_none())
        });
        done.with_context(|| {
            let said = servers.iter().map(|of| of.troubles(lab));
            let said: Vec<String> = said.filter(|said| !said.is_empty()).collect();
            format!("{}\n{}", lack.unwrap_or_default(), said.join("\n"))
        })
    }

    /// The last lines of every log.
    pub fn tails(&self) -> String {
        let mut processes = vec![&self.cp, &self.up];
        processes.extend(self.radius.as_ref().map(FreeRadius::process));
        let tail =
            |process: &&Process| format!("        {}:\n{}\n", process.name(), process.tail());
        processes.iter().map(tail).collect()
    }

    /// Ends the daemons: the control plane first, so that it can still say goodbye.
    pub fn stop(mut self) -> Result<()> {
        self.cp.stop()?;
        self.up.stop()
    }
}

/// Gives a user plane that has its core port its default routes. Both ways of the core link are known before the first packet
/// needs them, as in a network that lives.
pub fn join_core(lab: &Lab, up: &mut Process) -> Result<()> {
    let netns = lab.netns(Place::UserPlane(UP));
    let port = format!("sl-{CORE_PORT}");
    up.wait_until("its core port", PATIENCE, || {
        netns.run(&["ip", "link", "show", "dev", &port]).is_ok()
    })?;
    lab.default_routes(UP)?;
    for host in [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)].map(|host| host.to_string())
    {
        up.wait_until("its core link", PATIENCE, || {
            netns
                .run(&["ping", "-n", "-c", "1", "-W", "1", &host])
                .is_ok()
        })?;
    }
    Ok(())
}

/// Starts one of our daemons in its place.
pub fn daemon(lab: &Lab, place: Place, name: &str, configuration: &Path) -> Result<Process> {
    let mut command = lab.netns(place).command(program(name)?);
    command.arg(configuration);
    Process::spawn(lab.dir(), name, command)
}

/// A program of this workspace: it lies beside this one.
pub fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own
        .parent()
        .context("a program without a folder")?
        .join(name);
    if !path.exists() {
        bail!(
            "{} is not there: build it first (make e2e does)",
            path.display()
        );
    }
    Ok(path)
}

/// Counters of what was refused or dropped.
#[derive(Debug)]
pub struct Drops(Vec<DropCounter>);

impl Drops {
    /// The counter of this name, of both planes together; an error if neither has one.
    pub fn count(&self, name: &str) -> Result<u64> {
        let mut found = self.0.iter().filter(|drop| drop.name == name).peekable();
        if found.peek().is_none() {
            let names: Vec<&str> = self.0.iter().map(|drop| drop.name.as_str()).collect();
            bail!("no counter {name} among {names:?}");
        }
        Ok(found.map(|drop| drop.count).sum())
    }

    /// What has grown since `before`: plane, name and by how much.
    pub fn since(&self, before: &Drops) -> Vec<(&str, &str, u64)> {
        let same = |a: &DropCounter, b: &DropCounter| (&a.plane, &a.name) == (&b.plane, &b.name);
        let then = |now: &DropCounter| before.0.iter().find(|old| same(old, now));
        let grown = |now: &DropCounter| now.count - then(now).map_or(0, |old| old.count);
        let rows = self
            .0
            .iter()
            .map(|now| (now.plane.as_str(), now.name.as_str(), grown(now)));
        rows.filter(|(_, _, count)| *count > 0).collect()
    }
}
