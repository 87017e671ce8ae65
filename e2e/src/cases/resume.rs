//! Restarts of either plane under very many sessions, whose store is made of one real session.

use crate::rig::Rig;
use crate::site::{UP, daemon};
use anyhow::{Context, Result, ensure};
use control::plane::{STORE_RECOVERY_KEY, StoredSession};
use control::store::{Record, Store};
use control::topology::Seid;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::{Client, Session, SessionState};
use session::Circuit;
use sluice::lab::process::Process;
use sluice::lab::topology::{ACCESS_PORT, Lab, Place};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::eth::{MacAddr, Tags};

/// As many as one control plane serves.
const ALL: u32 = 131_072;
/// Sessions of one access segment, whose PPPoE session ids end at 65,534.
const PER_SEGMENT: u32 = 50_000;
/// How long a restarted user plane may take until it has 2,000 sessions again.
const FEW_LIMIT: Duration = Duration::from_secs(2);
/// How long a restarted control plane may take until it has gone on with all sessions and audited them.
const RESUME_LIMIT: Duration = Duration::from_secs(5);
/// Sessions that are to be put back in a second. On two processors that others use as well it is not reached, so it is shown
/// and does not decide.
const RATE: u32 = 50_000;
/// How long anything may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn few(rig: &mut Rig) -> Result<()> {
    let planes = Planes::start(rig.without_site()?, 2_000)?;
    let (planes, took) = planes.restart_user_plane()?;
    println!("        2,000 sessions are back {took:.2?} after the user plane was started");
    ensure!(took <= FEW_LIMIT, "expected {FEW_LIMIT:?} at most");
    planes.stop()
}

pub fn all(rig: &mut Rig) -> Result<()> {
    let planes = Planes::start(rig.without_site()?, ALL)?;
    println!(
        "        told for the first time in {} ms",
        planes.milliseconds("sessions are back")?
    );
    let (planes, took) = planes.restart_control_plane()?;
    println!("        {ALL} sessions are resumed and audited in {took:.2?}");
    ensure!(took <= RESUME_LIMIT, "expected {RESUME_LIMIT:?} at most");
    let (planes, took) = planes.restart_user_plane()?;
    let telling = planes.milliseconds("sessions are back")?;
    let rate = f64::from(ALL) / (telling as f64 / 1000.0);
    println!(
        "        {ALL} sessions are back {took:.2?} after the user plane was started: told again at {rate:.0}/s \
         (wanted: {RATE}/s)"
    );
    planes.stop()
}

/// Both daemons with so many sessions.
struct Planes<'a> {
    lab: &'a Lab,
    sessions: u32,
    up: Process,
    cp: Process,
}

impl<'a> Planes<'a> {
    /// Makes the store and starts both; the user plane is told every session for the first time.
    fn start(lab: &'a Lab, sessions: u32) -> Result<Self> {
        let dir = lab.dir();
        let store = dir.join("store");
        for state in [&store, &dir.join("up")] {
            if state.exists() {
                fs::remove_dir_all(state)?;
            }
        }
        fill(&store, sessions)?;
        fs::write(dir.join("sluice.yaml"), configuration(dir))?;
        fs::write(dir.join("up.yaml"), user_plane(dir))?;
        fs::write(dir.join("cp.yaml"), control_plane(dir))?;
        let up = daemon(lab, Place::UserPlane(UP), "sluice-up", &dir.join("up.yaml"))?;
        let cp = daemon(lab, Place::ControlPlane, "sluice-cp", &dir.join("cp.yaml"))?;
        let mut planes = Planes {
            lab,
            sessions,
            up,
            cp,
        };
        planes.wait_log("sessions are back")?;
        planes.wait_stored()?;
        Ok(planes)
    }

    /// kill -9 and a new start of the user plane; the time from the start until the last session is back.
    fn restart_user_plane(mut self) -> Result<(Self, Duration)> {
        kill(Pid::from_raw(self.up.id()), Signal::SIGKILL)?;
        let before = self.said("sessions are back")?;
        self.up.stop()?;
        let began = Instant::now();
        let file = self.lab.dir().join("up.yaml");
        self.up = daemon(self.lab, Place::UserPlane(UP), "sluice-up", &file)?;
        let log = self.cp.log().to_owned();
        self.cp
            .wait_until("sessions to be put back", PATIENCE, || {
                count(&log, "sessions are back") > before
            })?;
        Ok((self, began.elapsed()))
    }

    /// kill -9 and a new start of the control plane; the time from the start until it has audited every session and
    /// shows it online.
    fn restart_control_plane(mut self) -> Result<(Self, Duration)> {
        kill(Pid::from_raw(self.cp.id()), Signal::SIGKILL)?;
        self.cp.stop()?;
        let began = Instant::now();
        let file = self.lab.dir().join("cp.yaml");
        self.cp = daemon(self.lab, Place::ControlPlane, "sluice-cp", &file)?;
        self.wait_log("audit done")?;
        let took = began.elapsed();
        let log = fs::read_to_string(self.cp.log())?;
        ensure!(
            !log.contains("audit found differences"),
            "the audit found differences\n{}",
            self.cp.tail()
        );
        let online = |session: &&Session| session.state() == SessionState::Online;
        let shown = self.show()?.iter().filter(online).count();
        ensure!(
            shown == self.sessions as usize,
            "{shown} sessions are shown online"
        );
        Ok((self, took))
    }

    fn show(&self) -> Result<Vec<Session>> {
        let socket = self.lab.dir().join("cp.sock");
        Ok(Client::connect(&socket, PATIENCE)?.sessions()?)
    }

    fn said(&self, words: &str) -> Result<usize> {
        Ok(count(self.cp.log(), words))
    }

    fn wait_log(&mut self, words: &str) -> Result<()> {
        let log = self.cp.log().to_owned();
        self.cp
            .wait_until(&format!("\"{words}\""), PATIENCE, || count(&log, words) > 0)
    }

    /// Waits until nothing more is written to the store, so that what is in it is what both planes have.
    fn wait_stored(&mut self) -> Result<()> {
        let log = self.lab.dir().join("store/sessions.log");
        let length = || fs::metadata(&log).map_or(0, |file| file.len());
        let mut last = (0, Instant::now());
        self.cp.wait_until("the store to rest", PATIENCE, || {
            if length() != last.0 {
                last = (length(), Instant::now());
            }
            last.1.elapsed() > Duration::from_secs(1)
        })
    }

    /// What the control plane last said that something took.
    fn milliseconds(&self, words: &str) -> Result<u64> {
        let log = fs::read_to_string(self.cp.log())?;
        let line = log.lines().rfind(|line| line.contains(words));
        let value = line.and_then(|line| line.split("milliseconds=").nth(1));
        let digits = value.and_then(|value| value.split_whitespace().next());
        Ok(digits.context("no time in the log")?.parse()?)
    }

    fn stop(mut self) -> Result<()> {
        self.cp.stop()?;
        self.up.stop()
    }
}

fn count(log: &Path, words: &str) -> usize {
    fs::read_to_string(log).map_or(0, |text| text.matches(words).count())
}

/// Fills a store with sessions that are like the first one of the control plane's fixture.
fn fill(directory: &Path, sessions: u32) -> Result<()> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/control/tests/fixtures/store-2-1/backup");
    let live = control::store::check(&fixture)?.live;
    let find = |wanted: &dyn Fn(&[u8], &[u8]) -> bool| {
        let found = live.iter().find(|(key, value)| wanted(key, value));
        found
            .map(|(_, value)| value.as_slice())
            .context("not in the fixture")
    };
    let like = find(&|key, value| StoredSession::read(key, value).is_some())?;
    let stamp = find(&|key, _| key == STORE_RECOVERY_KEY)?;
    let (mut store, _) = Store::open(directory)?;
    store.append(&Record::put(STORE_RECOVERY_KEY, stamp));
    for number in 0..sessions {
        store.append(&stored(number).like(like).map_err(anyhow::Error::msg)?);
    }
    store.sync()?;
    store.seal()?;
    Ok(())
}

/// The session of this number: a home of its own on a line of its own.
fn stored(number: u32) -> StoredSession {
    let (segment, home) = (number / PER_SEGMENT, number % PER_SEGMENT);
    // A /24 has no more of them, less our own.
    let (net, host) = (number / 253, number % 253);
    let [_, a, b, c] = number.to_be_bytes();
    let vlans = [100 + segment, 1 + home % 4000].map(|vlan| vlan as u16);
    StoredSession {
        seid: Seid::new(1_700_000_000_000, number),
        circuit: Circuit {
            logical_port: ACCESS_PORT.as_bytes().into(),
            tags: Tags::qinq(vlans[0], vlans[1]),
            mac: MacAddr([2, 0, 0, a, b, c]),
        },
        pppoe_id: 1 + home as u16,
        ipv4: Some(Ipv4Addr::from(
            u32::from(Ipv4Addr::new(100, 64, 0, 2)) + net * 256 + host,
        )),
        ipv6: Some(
            ipnet::Ipv6Net::new(
                Ipv6Addr::from(0x2001_0db8_0100_0000_u128 << 64 | u128::from(number) << 64),
                64,
            )
            .expect("a length below 128"),
        ),
    }
}

fn user_plane(dir: &Path) -> String {
    let (dir, own, control_plane) = (dir.display(), UP.management(), UP.control_plane());
    format!(
        "node-id: up1
address: {own}
control-planes: [{control_plane}]
api-socket: {dir}/up.sock
state: {dir}/up
memory: 64
"
    )
}

fn control_plane(dir: &Path) -> String {
    let (dir, own) = (dir.display(), UP.control_plane());
    format!(
        "node-id: cp1
address: {own}
api-socket: {dir}/cp.sock
state: {dir}/store
initial-configuration: sluice.yaml
"
    )
}

fn configuration(dir: &Path) -> String {
    let (dir, user_plane) = (dir.display(), UP.management());
    format!(
        "network-instances:
  default: {{gateway: [100.64.0.1, '2001:db8:64::1']}}
user-planes:
  up1:
    address: {user_plane}
    management: {dir}/up.sock
    ports:
      {ACCESS_PORT}:
        role: access
        device: 'net_af_packet0,iface={ACCESS_PORT}'
        segments: {{a: {{s-vlans: 100}}, b: {{s-vlans: 101}}, c: {{s-vlans: 102}}}}
ipv4-pools: {{homes: {{prefix: 100.64.0.0/10}}}}
ipv6-pools: {{homes: {{prefix: '2001:db8:100::/40'}}}}
users: {{home0: {{password: secret0}}}}
"
    )
}
