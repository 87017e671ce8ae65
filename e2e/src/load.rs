//! A gateway with 2,000 homes and pppd online and verified traffic, and what it makes of faults.

mod changes;
mod fault;
mod partition;

pub use fault::{Fault, Measured};
pub use partition::Way;

use crate::carried::{Unreported, check, recorded};
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::leak_check;
use crate::scenario::{Crowd, Newcomer, Scenario, Tally};
use crate::sniff::Capture;
use crate::vm::Vm;
use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::supervisor;
use lab::topology::{INTERNET_V4, Lab, Place, UserPlane};
use northbound::SessionState;
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// Emulated homes, half at each user plane.
pub const HOMES: u16 = 2000;
/// Verified packets a second, all homes, directions and families together, in soak: a little more than is asked for.
pub const FULL_RATE: u32 = 20_500;
/// The same in a case: what a machine carries that is busy with other things, none of which a queue may lose.
pub const RATE: u32 = 4_000;
/// pppd's line.
const PPPD: u16 = 7;

/// How long a stopped daemon stands still.
const STANDSTILL: Duration = Duration::from_secs(5);
/// Between two faults: a daemon that died soon is not started again at once.
const CALM: Duration = Duration::from_secs(supervisor::SOON.as_secs() + 1);
/// Frames that were under way when a user plane died have arrived, and its successor has not begun.
const UNDER_WAY: Duration = Duration::from_millis(50);

/// LCP Echo-Replies from the gateway, in PPPoE behind two tags. The kernel has taken the outer one out of a received frame before the
/// filter looks; homes answer the gateway as well, but that is sent.
const ECHO_REPLIES: &str =
    "inbound and ether[16:2] = 0x8864 and ether[24:2] = 0xc021 and ether[26] = 10";

/// The gateway, its homes, and what is watched.
pub struct Loaded {
    /// The daemons.
    pub scenario: Scenario,
    /// The emulated homes.
    pub crowd: Crowd,
    echoes: [Capture; 2],
    /// The sessions of the emulated homes and of pppd.
    sessions: BTreeSet<String>,
    newcomers: u16,
    last: Instant,
    /// What was done so far.
    pub faults: Vec<Measured>,
    /// What each user plane had not reported when it was killed.
    unreported: [Unreported; 2],
    /// RADIUS may change and end sessions.
    asks: bool,
}

/// What the user plane and the kernel's queues around it have dropped so far.
fn where_lost(lab: &Lab, up: UserPlane) -> String {
    let mut said = String::new();
    for what in [&["show", "drops"][..], &["show", "ports", up.name()]] {
        said.push_str(&Sluice::of(lab).run(what).unwrap_or_default());
    }
    for place in [Place::Access(up), Place::UserPlane(up), Place::Internet] {
        let netns = lab.netns(place);
        let counted = netns.run(&["cat", "/proc/net/dev"]).unwrap_or_default();
        said.push_str(&format!("{}\n{counted}", netns.name()));
    }
    let internet = lab.netns(Place::Internet);
    for file in ["/proc/net/snmp", "/proc/net/snmp6"] {
        let counted = internet.run(&["grep", "-E", "Udp", file]);
        said.push_str(&counted.unwrap_or_default());
    }
    said
}

impl Loaded {
    /// Starts the gateway; returns when pppd and every home are online and traffic flows.
    pub fn start(lab: &Lab, vm: &Vm, rate: u32) -> Result<Self> {
        let scenario = Scenario::open(lab)?;
        let echoes = [
            Capture::of(
                lab,
                Place::Access(UserPlane::One),
                "access",
                "echo1",
                ECHO_REPLIES,
            )?,
            Capture::of(
                lab,
                Place::Access(UserPlane::Two),
                "access",
                "echo2",
                ECHO_REPLIES,
            )?,
        ];
        let home = Home::build(vm, PPPD)?;
        home.dial("alice", "wonderland")?;
        home.wait_ipv6()?;
        home.start_ping(&INTERNET_V4.to_string())?;
        let crowd = Crowd::dial(lab, HOMES, rate)?;
        let took = crowd.wait_online(&scenario, PATIENCE)?;
        println!(
            "        {HOMES} homes online after {:.2} s",
            took.as_secs_f64()
        );
        let mut loaded = Loaded {
            scenario,
            crowd,
            echoes,
            sessions: BTreeSet::new(),
            newcomers: 0,
            last: Instant::now(),
            faults: Vec::new(),
            unreported: [Unreported::at(rate), Unreported::at(rate)],
            asks: false,
        };
        loaded.sessions = loaded.online()?;
        let expected = usize::from(HOMES) + 1;
        ensure!(
            loaded.sessions.len() == expected,
            "{} sessions are online, not {expected}",
            loaded.sessions.len()
        );
        loaded.crowd.hear_all(PATIENCE)?;
        Ok(loaded)
    }

    /// Deals a fault, waits until all is as before, and holds what was seen against what is promised.
    pub fn strike(&mut self, lab: &Lab, vm: &Vm, fault: Fault) -> Result<Measured> {
        sleep(CALM.saturating_sub(self.last.elapsed()));
        let before = self.crowd.hush();
        if let (true, Some(up)) = (fault.kills_user_plane(), fault.user_plane()) {
            let recorded = recorded(&self.scenario.records(lab)?)?;
            self.unreported[up as usize].note(up, &self.crowd.carried(), &recorded)?;
        }
        self.crowd.speak();
        let (at, clock) = (Instant::now(), SystemTime::now());
        let mut measured = self.deal(lab, fault, at, clock)?;
        self.last = Instant::now();
        // Whatever the fault did to the traffic has shown by now, and what flows again has flowed for a while.
        sleep(Duration::from_secs(1));
        let after = self.crowd.hush();
        measured.lost = [0, 1].map(|up| Tally::since(&after[up], &before[up]));
        println!("        {measured}");
        self.faults.push(measured);
        for up in UserPlane::ALL {
            if fault.user_plane() != Some(up) && measured.lost[up as usize].1 > 0 {
                println!("{}", where_lost(lab, up));
            }
        }
        self.crowd.speak();
        self.judge(&measured)?;
        // A home that hung up may not be gone yet.
        self.wait_sound(lab, vm, PATIENCE)?;
        Ok(measured)
    }

    fn deal(
        &mut self,
        lab: &Lab,
        fault: Fault,
        at: Instant,
        clock: SystemTime,
    ) -> Result<Measured> {
        let mut newcomer = None;
        for daemon in fault.daemons() {
            match fault.is_kill() {
                true => self.scenario.gateway.kill(daemon)?,
                false => self.scenario.gateway.pause(daemon)?,
            }
        }
        let mut since = at;
        if !fault.is_kill() {
            sleep(STANDSTILL);
            since = Instant::now();
            for daemon in fault.daemons() {
                self.scenario.gateway.resume(daemon)?;
            }
        } else if fault.hits_control_plane() {
            let up = match fault.user_plane() {
                Some(UserPlane::One) => UserPlane::Two,
                Some(UserPlane::Two) => UserPlane::One,
                None => UserPlane::ALL[usize::from(self.newcomers % 2)],
            };
            let line = self.number();
            newcomer = Some(Newcomer::dial_on(lab, up, line, line)?);
        }
        let traffic = self.traffic_back(fault, since)?;
        let came = newcomer.as_ref().map(|home| home.wait_online(PATIENCE));
        let came = came.transpose()?.map(|when| when - at);
        for daemon in fault.daemons() {
            self.scenario.gateway.wait_ready(daemon, PATIENCE)?;
        }
        let ready = since.elapsed();
        let echo = match fault.is_kill() && fault.hits_control_plane() {
            true => Some(self.first_echo(clock)?),
            false => None,
        };
        if let Some(home) = newcomer {
            home.hang_up(PATIENCE)?;
        }
        Ok(Measured {
            fault,
            echo,
            newcomer: came,
            traffic,
            ready,
            lost: [(0, 0); 2],
        })
    }

    /// Waits until the traffic of every home flows; how long that took from the start of the user plane that was killed at
    /// `since`, or from `since`, when it went on.
    fn traffic_back(&self, fault: Fault, since: Instant) -> Result<Option<Duration>> {
        let Some(up) = fault.user_plane() else {
            return Ok(None);
        };
        sleep(UNDER_WAY);
        let heard = self.crowd.hear_all(PATIENCE)?;
        let up = Daemon::UserPlane(up);
        let started = match fault.is_kill() {
            true => since + self.scenario.gateway.wait_ready(up, PATIENCE)?.started,
            false => since,
        };
        Ok(Some(heard.saturating_duration_since(started)))
    }

    /// When a subscriber's echo was answered first, at the user plane where that took longer, after a moment.
    fn first_echo(&self, since: SystemTime) -> Result<Duration> {
        let mut latest = Duration::ZERO;
        for capture in &self.echoes {
            let start = Instant::now();
            let first = loop {
                // What was captured within the last instant may have been answered by the one that died.
                match capture.first_after(since + Duration::from_millis(30))? {
                    Some(first) => break first,
                    None => ensure!(
                        start.elapsed() < PATIENCE,
                        "no subscriber's echo was answered"
                    ),
                }
                sleep(Duration::from_millis(50));
            };
            latest = latest.max(first.duration_since(since)?);
        }
        Ok(latest)
    }

    fn number(&mut self) -> u16 {
        self.newcomers += 1;
        self.newcomers
    }

    fn no_address_twice(&self) -> Result<()> {
        let mut given = BTreeSet::new();
        for session in self.scenario.gateway.sessions()? {
            for address in [session.ipv4, session.ipv6_prefix].into_iter().flatten() {
                ensure!(given.insert(address.clone()), "{address} is given twice");
            }
        }
        Ok(())
    }

    /// Holds what a fault came to against what is promised, however fast the machine is.
    fn judge(&self, measured: &Measured) -> Result<()> {
        let Measured { fault, lost, .. } = *measured;
        for up in UserPlane::ALL {
            let (sent, lost) = lost[up as usize];
            let hit = fault.user_plane() == Some(up);
            ensure!(
                sent > 0 && hit == (lost > 0),
                "{fault}: sessions of {} lost {lost} of {sent} packets",
                up.name()
            );
        }
        Ok(())
    }

    /// Nothing died that was not killed, no home was offline, and, after a while, the sessions from before are there and
    /// nobody else; no address is given twice, both planes hold what is theirs, and pppd is online.
    fn wait_sound(&self, lab: &Lab, vm: &Vm, limit: Duration) -> Result<()> {
        self.scenario.check()?;
        self.crowd.check()?;
        self.wait_sessions(limit)?;
        self.no_address_twice()?;
        leak_check::balanced(lab)?;
        Home::at(vm, PPPD).still_online()
    }

    /// The sessions from before are there, and, after a while, nobody else.
    fn wait_sessions(&self, limit: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            let now = self.online()?;
            if now == self.sessions {
                return Ok(());
            }
            ensure!(
                start.elapsed() < limit,
                "sessions that are gone: {:?}; that are new: {:?}",
                self.sessions.difference(&now).take(5).collect::<Vec<_>>(),
                now.difference(&self.sessions).take(5).collect::<Vec<_>>()
            );
            sleep(Duration::from_millis(100));
        }
    }

    fn online(&self) -> Result<BTreeSet<String>> {
        let sessions = self.scenario.gateway.sessions()?;
        let online = sessions
            .into_iter()
            .filter(|session| session.state() == SessionState::Online);
        Ok(online.map(|session| session.id).collect())
    }

    /// Every home hangs up; nothing is left of them, and the records are right.
    pub fn finish(self, lab: &Lab, vm: &Vm) -> Result<()> {
        self.scenario.check()?;
        Home::at(vm, PPPD).hang_up()?;
        let carried = self.crowd.hang_up(&self.scenario, PATIENCE)?;
        leak_check::nothing_left(lab, &self.scenario)?;
        let records = leak_check::complete_records(lab, &self.scenario)?;
        let unknown = self.sessions.iter().find(|id| !records.has(id));
        ensure!(unknown.is_none(), "no record about session {unknown:?}");
        check(
            &carried,
            &recorded(&records)?,
            &self.unreported,
            &self.faults,
        )?;
        self.scenario.close()
    }

    /// Ends the daemons.
    pub fn close(self) -> Result<()> {
        self.crowd.close()?;
        self.scenario.close()
    }
}
