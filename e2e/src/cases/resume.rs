//! Restarts of either plane under very many sessions, whose store is made of one real session.

use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{UP, daemon, forget, join_core};
use crate::sniff::{Capture, tshark};
use crate::stored_homes::{Ends, StoredHome};
use anyhow::{Context, Result, ensure};
use control::plane::{STORE_RECOVERY_KEY, StoredSession};
use control::store::{Record, Store};
use control::topology::Seid;
use lab::process::Process;
use lab::routes::Routes;
use lab::topology::{ACCESS_PORT, CORE_PORT, CORE_V4_LEN, CORE_V6_LEN, Lab, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::{Client, SessionState, UserPlane, UserPlaneState};
use session::Circuit;
use std::collections::HashMap;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use wire::eth::{MacAddr, Tags};
use wire::pfcp::own::AUDIT_BLOCK;

/// As many as one control plane serves.
const ALL: u32 = 131_072;
/// Sessions of one access segment, whose PPPoE session ids end at 65,534.
const PER_SEGMENT: u32 = 50_000;
/// Segments that the sessions are spread over.
const SEGMENTS: u32 = 3;
/// Of very many sessions about so many have their homes send and receive packets, evenly spread.
const SAMPLED: u32 = 2_000;
/// Of these so many are asked for their counters.
const COUNTED: usize = 20;
/// PADT and LCP Terminate-Request behind two tags (RFC 2516 section 5.5, RFC 1661 section 5.5), or behind the inner one alone: the
/// kernel has taken the outer one out of what a net_af_packet port sends before the filter looks.
const GOODBYES: &str = "(ether[20:2] = 0x8863 and ether[23] = 0xa7) or (ether[20:2] = 0x8864 and ether[28:2] = 0xc021 and ether[30] = 5)
    or (ether[16:2] = 0x8863 and ether[19] = 0xa7) or (ether[16:2] = 0x8864 and ether[24:2] = 0xc021 and ether[26] = 5)";
/// The pools that the stored sessions have their addresses of.
const POOLS: &str = "ipv4-pools: {homes: {prefix: 100.64.0.0/10}}
ipv6-pools: {homes: {prefix: '2001:db8:100::/40'}}
";
const NO_POOLS: &str = "";
/// How many times as long a restarted user plane may take as it took both planes to start and the user plane to be told
/// everything for the first time. A restarted control plane tells nothing, and is there sooner.
const MOST_TIMES: u32 = 2;
/// What takes less is not held against the first start: on a busy machine the start of a process alone varies by as much.
const SOON: Duration = Duration::from_secs(1);
/// How long a control plane that has a machine for itself may take until it has gone on with all sessions and audited them.
const RESUME_LIMIT: Duration = Duration::from_secs(5);
/// Sessions that are to be put back in a second. On two processors that others use as well it is not reached, so it is shown
/// and does not decide.
const RATE: u32 = 50_000;

pub fn few(fixture: &mut Fixture) -> Result<()> {
    let mut planes = Planes::start(fixture.without_site()?, 2_000, POOLS)?;
    planes.check("told for the first time")?;
    let took = planes.restart_user_plane()?;
    println!("        2,000 sessions are back {took:.2?} after the user plane was started");
    planes.check("the user plane was restarted")?;
    planes.judge(took, MOST_TIMES)?;
    planes.stop()
}

pub fn all(fixture: &mut Fixture) -> Result<()> {
    resume(fixture, ALL, POOLS).map(drop)
}

/// Each address and prefix is a fixed one outside of all pools, and announced by itself.
pub fn fixed(fixture: &mut Fixture) -> Result<()> {
    resume(fixture, 20_000, NO_POOLS).map(drop)
}

/// The same with as many as there may be.
pub fn all_fixed(fixture: &mut Fixture) -> Result<()> {
    resume(fixture, ALL, NO_POOLS).map(drop)
}

/// The same on a machine that has nothing else to do.
pub fn in_time(fixture: &mut Fixture) -> Result<()> {
    let took = resume(fixture, ALL, POOLS)?;
    ensure!(
        took <= RESUME_LIMIT,
        "resumed in {took:.2?}, expected {RESUME_LIMIT:?} at most"
    );
    Ok(())
}

/// Restarts either plane; how long the control plane took.
fn resume(fixture: &mut Fixture, sessions: u32, pools: &str) -> Result<Duration> {
    let mut planes = Planes::start(fixture.without_site()?, sessions, pools)?;
    planes.check("told for the first time")?;
    let resumed = planes.restart_control_plane()?;
    println!("        {sessions} sessions are resumed and audited in {resumed:.2?}");
    planes.check("the control plane was restarted")?;
    planes.judge(resumed, 1)?;
    let took = planes.restart_user_plane()?;
    let rate = f64::from(sessions) / took.as_secs_f64();
    println!(
        "        {sessions} sessions are back {took:.2?} after the user plane was started: {rate:.0}/s (wanted: {RATE}/s)"
    );
    planes.check("the user plane was restarted")?;
    planes.judge(took, MOST_TIMES)?;
    planes.stop()?;
    Ok(resumed)
}

/// Both daemons with so many sessions, and both ends of the traffic of their homes.
struct Planes<'a> {
    lab: &'a Lab,
    sessions: u32,
    /// How long it took at first from both daemons' start until the user plane had every session.
    first: Duration,
    up: Process,
    cp: Process,
    ends: Ends,
    /// Packets of each home that were forwarded since its user plane was started.
    forwarded: u64,
    /// What the gateway says to homes when it ends their sessions.
    goodbyes: Capture,
    /// The internet host's routes to the subscribers.
    _routes: Routes,
}

impl<'a> Planes<'a> {
    /// Makes the store and starts both; the user plane is told every session for the first time.
    fn start(lab: &'a Lab, sessions: u32, pools: &str) -> Result<Self> {
        let dir = lab.dir();
        let store = dir.join("store");
        forget(dir)?;
        fill(&store, sessions)?;
        fs::write(dir.join("sluice.yaml"), configuration(dir, pools))?;
        fs::write(dir.join("up.yaml"), user_plane(dir))?;
        fs::write(dir.join("cp.yaml"), control_plane(dir))?;
        let access = Place::Access(UP);
        let (ends, goodbyes) = (
            Ends::open(lab)?,
            Capture::of(lab, access, "access", "goodbyes", GOODBYES)?,
        );
        let begun = Instant::now();
        let mut planes = Planes {
            lab,
            sessions,
            first: Duration::MAX,
            ends,
            forwarded: 0,
            goodbyes,
            _routes: Routes::follow(lab, &[UP])?,
            up: daemon(lab, Place::UserPlane(UP), "sluice-up", &dir.join("up.yaml"))?,
            cp: daemon(lab, Place::ControlPlane, "sluice-cp", &dir.join("cp.yaml"))?,
        };
        planes.wait_whole(0)?;
        planes.first = begun.elapsed();
        println!(
            "        started and told for the first time in {:.2?}",
            planes.first
        );
        planes.wait_stored()?;
        join_core(lab, &mut planes.up)?;
        Ok(planes)
    }

    /// Holds what a restart took against the first start.
    fn judge(&self, took: Duration, times: u32) -> Result<()> {
        ensure!(
            took <= SOON.max(times * self.first),
            "a restart takes {took:.2?}, the first start took {:.2?}",
            self.first
        );
        Ok(())
    }

    /// kill -9 and a new start of the user plane; the time from the start until it has every session.
    fn restart_user_plane(&mut self) -> Result<Duration> {
        let before = self.plane()?.restarts;
        kill(Pid::from_raw(self.up.id()), Signal::SIGKILL)?;
        self.up.stop()?;
        let began = Instant::now();
        let file = self.lab.dir().join("up.yaml");
        self.up = daemon(self.lab, Place::UserPlane(UP), "sluice-up", &file)?;
        self.wait_whole(before + 1)?;
        let took = began.elapsed();
        self.forwarded = 0;
        join_core(self.lab, &mut self.up)?;
        Ok(took)
    }

    /// kill -9 and a new start of the control plane; the time from the start until it has audited every session. The user
    /// plane has kept them: it is asked about them, and told none of them again.
    fn restart_control_plane(&mut self) -> Result<Duration> {
        // What it was told of counters is stored by then.
        self.wait_stored()?;
        kill(Pid::from_raw(self.cp.id()), Signal::SIGKILL)?;
        self.cp.stop()?;
        let said = Capture::between_planes(self.lab, "resumed")?;
        let began = Instant::now();
        let file = self.lab.dir().join("cp.yaml");
        self.cp = daemon(self.lab, Place::ControlPlane, "sluice-cp", &file)?;
        self.wait_whole(0)?;
        let took = began.elapsed();
        let said = said.finish()?;
        let count = |filter: &str| tshark(&said, filter, &["frame.number"]).map(|all| all.len());
        let (told, asked) = (count("pfcp.msg_type == 50")?, count("pfcp.msg_type == 52")?);
        println!(
            "        of {} sessions {told} were told, in {asked} messages they were asked about",
            self.sessions
        );
        ensure!(
            told <= SEGMENTS as usize && asked >= self.sessions as usize / AUDIT_BLOCK,
            "{told} sessions were told again, {asked} messages asked about the others"
        );
        Ok(took)
    }

    /// Waits until the user plane is said to have everything, after so many starts that the control plane has seen.
    fn wait_whole(&mut self, restarts: u32) -> Result<()> {
        let socket = self.socket();
        self.cp
            .wait_until("its user plane to have every session", PATIENCE, || {
                let plane = only_plane(&socket);
                plane.is_ok_and(|plane| {
                    plane.restarts == restarts && plane.state() == UserPlaneState::Associated
                })
            })
    }

    /// Every session is what it was, as both planes say, each for itself; its home was not told to go; and packets of homes
    /// pass both ways and are counted.
    fn check(&mut self, when: &str) -> Result<()> {
        self.shown().context(when.to_owned())?;
        self.held().context(when.to_owned())?;
        let step = (self.sessions / SAMPLED).max(1);
        let numbers = (0..self.sessions)
            .step_by(step as usize)
            .chain([self.sessions - 1]);
        let homes: Vec<StoredHome> = numbers
            .clone()
            .map(|number| home(&stored(number)))
            .collect();
        let packets = self.ends.both_ways(&homes).context(when.to_owned())?;
        self.forwarded += 2;
        for number in numbers.step_by(homes.len() / COUNTED) {
            self.counted(number).context(when.to_owned())?;
        }
        let told_to_go = self.goodbyes.first_after(SystemTime::UNIX_EPOCH)?;
        ensure!(
            told_to_go.is_none(),
            "{when}: a home was told that its session ends"
        );
        println!(
            "        {when}: both planes have {} sessions, {packets} packets of {} of them passed",
            self.sessions,
            homes.len()
        );
        Ok(())
    }

    /// The control plane shows the sessions of the store as they were there, all of them online, and no others.
    fn shown(&self) -> Result<()> {
        let mut shown = HashMap::new();
        for session in Client::connect(&self.socket(), PATIENCE)?.sessions()? {
            shown.insert(session.id.clone(), session);
        }
        ensure!(
            shown.len() == self.sessions as usize,
            "{} sessions are shown",
            shown.len()
        );
        for number in 0..self.sessions {
            let stored = stored(number);
            let session = shown.get(&stored.seid.to_string());
            let session =
                session.with_context(|| format!("session {} is not shown", stored.seid))?;
            let [outer, inner] = home(&stored).tags.map(u32::from);
            let same = session.state() == SessionState::Online
                && session.user_plane == UP.name()
                && session.mac == stored.circuit.mac.to_string()
                && (session.s_tag, session.c_tag) == (Some(outer), Some(inner))
                && session.pppoe_session_id == u32::from(stored.pppoe_id)
                && session.ipv4 == stored.ipv4.map(|address| address.to_string())
                && session.ipv6_prefix == stored.ipv6.map(|prefix| prefix.to_string());
            ensure!(same, "{stored:?} is shown as {session:?}");
        }
        Ok(())
    }

    /// The user plane itself says that its worker has every session and leads both of its addresses to it.
    fn held(&self) -> Result<()> {
        let socket = self.lab.dir().join("up.sock");
        let ledger = mi::blocking::Client::connect(&socket, PATIENCE)?.check_ledger(false)?;
        let sessions = u64::from(self.sessions);
        let held = ["forwarding entry", "TEID", "host route"].map(|kind| ledger.held(kind));
        ensure!(
            ledger.is_balanced() && held == [sessions, sessions, 2 * sessions],
            "the user plane has {held:?} forwarding entries, TEIDs and host routes: {:#?}",
            ledger.accounts
        );
        Ok(())
    }

    /// The user plane has counted what was forwarded for this home.
    fn counted(&self, number: u32) -> Result<()> {
        let id = stored(number).seid.to_string();
        let session = Client::connect(&self.socket(), PATIENCE)?.session(&id)?;
        let traffic = session.traffic.unwrap_or_default();
        ensure!(
            traffic.up_packets >= self.forwarded && traffic.down_packets >= self.forwarded,
            "at least {} packets passed each way: {session:?}",
            self.forwarded
        );
        Ok(())
    }

    fn plane(&self) -> Result<UserPlane> {
        only_plane(&self.socket())
    }

    fn socket(&self) -> PathBuf {
        self.lab.dir().join("cp.sock")
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

    /// Clears a session, whose goodbye the capture shows in which [`check`](Self::check) found none, and ends both daemons.
    fn stop(mut self) -> Result<()> {
        let session = stored(0).seid.to_string();
        Sluice::new(self.socket()).run(&["clear", "session", &session])?;
        let goodbyes = &self.goodbyes;
        self.cp
            .wait_until("the goodbye of a session that is cleared", PATIENCE, || {
                let told_to_go = goodbyes.first_after(SystemTime::UNIX_EPOCH);
                told_to_go.is_ok_and(|at| at.is_some())
            })?;
        self.goodbyes.finish()?;
        self.cp.stop()?;
        self.up.stop()
    }
}

/// The one user plane, as the control plane shows it.
fn only_plane(socket: &Path) -> Result<UserPlane> {
    let planes = Client::connect(socket, PATIENCE)?.user_planes()?;
    let plane = planes.into_iter().next();
    plane.context("no user plane is shown")
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
    let home = number % PER_SEGMENT;
    // A /24 has no more of them, less our own.
    let (net, host) = (number / 253, number % 253);
    let [_, a, b, c] = number.to_be_bytes();
    let vlans = tags(number);
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
        mtu: 1492,
    }
}

/// The home of a session.
fn home(stored: &StoredSession) -> StoredHome {
    let number = stored.seid.index();
    let prefix = stored.ipv6.expect("every session has one").network();
    StoredHome {
        mac: stored.circuit.mac.0,
        tags: tags(number),
        session: stored.pppoe_id,
        ipv4: stored.ipv4.expect("every session has one"),
        ipv6: Ipv6Addr::from(u128::from(prefix) | 1),
    }
}

/// Outer and inner VLAN id of the line of this number.
fn tags(number: u32) -> [u16; 2] {
    let (segment, home) = (number / PER_SEGMENT, number % PER_SEGMENT);
    [100 + segment, 1 + home % 4000].map(|vlan| vlan as u16)
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
huge-pages: false
worker-cores: none
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

fn configuration(dir: &Path, pools: &str) -> String {
    let (dir, user_plane) = (dir.display(), UP.management());
    let (core_v4, core_v6) = (UP.core_v4(), UP.core_v6());
    // Nobody answers an echo.
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
        segments:
          a: {{s-vlans: 100, access-profile: silent}}
          b: {{s-vlans: 101, access-profile: silent}}
          c: {{s-vlans: 102, access-profile: silent}}
      {CORE_PORT}:
        role: core
        device: 'net_af_packet1,iface={CORE_PORT}'
        addresses: [{core_v4}/{CORE_V4_LEN}, '{core_v6}/{CORE_V6_LEN}']
access-profiles: {{silent: {{echo-interval: 0}}}}
{pools}users: {{home0: {{password: secret0}}}}
"
    )
}
