//! A gateway with 2,000 homes and pppd online and verified traffic, and what it makes of blows.

use crate::arena::{Arena, Crowd, NOTICED, Newcomer, Tally};
use crate::cut::Cut;
use crate::home::Home;
use crate::reckoning;
use crate::sniff::Capture;
use crate::vm::Vm;
use anyhow::{Result, ensure};
use northbound::SessionState;
use sluice::lab::daemon::Daemon;
use sluice::lab::topology::{INTERNET_V4, Lab, Place, UserPlane};
use std::collections::BTreeSet;
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// Emulated homes, half at each user plane.
pub const HOMES: u16 = 2000;
/// Verified packets a second, all homes, directions and families together; a little more than is asked for.
pub const RATE: u32 = 20_500;
/// pppd's line.
const PPPD: u16 = 7;

/// A killed control plane answers a subscriber's echo again within this time of the kill.
const ECHO_LIMIT: Duration = Duration::from_secs(2);
/// A home that dials in the moment that the control plane is killed is online within this time.
const NEWCOMER_LIMIT: Duration = Duration::from_secs(3);
/// Every home's traffic flows again within this time of a user plane's start.
const TRAFFIC_LIMIT: Duration = Duration::from_secs(2);
/// How long a stopped daemon stands still.
const STANDSTILL: Duration = Duration::from_secs(5);
/// How long a daemon may take to be what it was before.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// The supervisor starts a daemon again at once unless it died this soon after its start.
const CALM: Duration = Duration::from_secs(6);
/// Frames that were under way when a user plane died have arrived, and its successor has not begun.
const UNDER_WAY: Duration = Duration::from_millis(50);

/// LCP Echo-Replies from the gateway, in PPPoE behind two tags.
const ECHO_REPLIES: &str =
    "ether[20:2] = 0x8864 and ether[28:2] = 0xc021 and ether[30] = 10 and ether[0] = 2";

/// What is done to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// kill -9 of the control plane.
    KillControlPlane,
    /// kill -9 of a user plane.
    KillUserPlane(UserPlane),
    /// kill -9 of the control plane and a user plane.
    KillBoth(UserPlane),
    /// SIGSTOP of the control plane, and SIGCONT after a while.
    StopControlPlane,
    /// SIGSTOP of a user plane, and SIGCONT after a while.
    StopUserPlane(UserPlane),
}

impl Blow {
    /// All of them.
    pub const ALL: [Blow; 8] = [
        Blow::KillControlPlane,
        Blow::StopControlPlane,
        Blow::KillUserPlane(UserPlane::One),
        Blow::KillUserPlane(UserPlane::Two),
        Blow::KillBoth(UserPlane::One),
        Blow::KillBoth(UserPlane::Two),
        Blow::StopUserPlane(UserPlane::One),
        Blow::StopUserPlane(UserPlane::Two),
    ];

    fn hits_control_plane(self) -> bool {
        !matches!(self, Blow::KillUserPlane(_) | Blow::StopUserPlane(_))
    }

    /// The user plane that may lose packets.
    pub fn user_plane(self) -> Option<UserPlane> {
        match self {
            Blow::KillControlPlane | Blow::StopControlPlane => None,
            Blow::KillUserPlane(up) | Blow::KillBoth(up) | Blow::StopUserPlane(up) => Some(up),
        }
    }

    /// Does a user plane forget what it has counted?
    pub fn kills_user_plane(self) -> bool {
        matches!(self, Blow::KillUserPlane(_) | Blow::KillBoth(_))
    }

    fn is_kill(self) -> bool {
        !matches!(self, Blow::StopControlPlane | Blow::StopUserPlane(_))
    }

    fn daemons(self) -> Vec<Daemon> {
        let control_plane = self.hits_control_plane().then_some(Daemon::ControlPlane);
        let user_plane = self.user_plane().map(Daemon::UserPlane);
        control_plane.into_iter().chain(user_plane).collect()
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blow::KillControlPlane => f.write_str("kill -9 of sluice-cp"),
            Blow::KillUserPlane(up) => write!(f, "kill -9 of sluice-up {}", up.name()),
            Blow::KillBoth(up) => write!(f, "kill -9 of sluice-cp and sluice-up {}", up.name()),
            Blow::StopControlPlane => f.write_str("SIGSTOP of sluice-cp"),
            Blow::StopUserPlane(up) => write!(f, "SIGSTOP of sluice-up {}", up.name()),
        }
    }
}

/// Which way datagrams between a user plane and the control plane are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the user plane.
    Up,
    /// To the user plane.
    Down,
    /// Both.
    Both,
}

/// Cuts the ways between the control plane and each user plane.
fn cut(lab: &Lab, ways: [Way; 2]) -> Result<Vec<Cut<'_>>> {
    let (mut up, mut cuts) = (Vec::new(), Vec::new());
    for (plane, way) in UserPlane::ALL.into_iter().zip(ways) {
        if way != Way::Down {
            up.push(format!("iifname {}", plane.management_link()));
        }
        if way != Way::Up {
            let netns = lab.netns(Place::UserPlane(plane));
            cuts.push(Cut::arriving(netns, &["iifname mgmt0"])?);
        }
    }
    let expressions: Vec<&str> = up.iter().map(String::as_str).collect();
    cuts.push(Cut::arriving(lab.netns(Place::ControlPlane), &expressions)?);
    Ok(cuts)
}

/// What a blow came to.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Which.
    pub blow: Blow,
    /// From the blow until an LCP echo of a subscriber was answered, where the control plane was killed.
    pub echo: Option<Duration>,
    /// From the blow until a home that dialled at that moment was online, where the control plane was killed.
    pub newcomer: Option<Duration>,
    /// From the user plane's start, or its going on, until every one of its homes had sent and received packets again.
    pub traffic: Option<Duration>,
    /// From the blow, or the going on, until all was as before.
    pub ready: Duration,
    /// Packets sent and lost, by user plane.
    pub lost: [(u64, u64); 2],
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.blow)?;
        let mut say = |what: &str, took: Option<Duration>| match took {
            Some(took) => write!(f, " {what} after {:.2} s,", took.as_secs_f64()),
            None => Ok(()),
        };
        say("echo answered", self.echo)?;
        say("new home online", self.newcomer)?;
        say("traffic of every home back", self.traffic)?;
        say("all as before", Some(self.ready))?;
        for (up, (sent, lost)) in UserPlane::ALL.iter().zip(self.lost) {
            write!(f, " {}: {lost} of {sent} packets lost", up.name())?;
        }
        Ok(())
    }
}

/// The gateway, its homes, and what is watched.
pub struct Loaded {
    /// The daemons.
    pub arena: Arena,
    /// The emulated homes.
    pub crowd: Crowd,
    echoes: [Capture; 2],
    /// The sessions of the emulated homes and of pppd.
    sessions: BTreeSet<String>,
    newcomers: u16,
    last: Instant,
    /// What was done so far.
    pub blows: Vec<Measured>,
}

/// What the user plane and the kernel's queues around it have dropped so far.
fn where_lost(lab: &Lab, up: UserPlane) -> String {
    let mut said = String::new();
    for what in ["drops", "ports"] {
        said.push_str(&reckoning::sluice(lab, up, &["show", what]).unwrap_or_default());
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
    pub fn start(lab: &Lab, vm: &Vm) -> Result<Self> {
        let arena = Arena::open(lab)?;
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
        let crowd = Crowd::dial(lab, HOMES, RATE)?;
        let took = crowd.wait_online(&arena, Duration::from_secs(60))?;
        println!(
            "        {HOMES} homes online after {:.2} s",
            took.as_secs_f64()
        );
        let mut loaded = Loaded {
            arena,
            crowd,
            echoes,
            sessions: BTreeSet::new(),
            newcomers: 0,
            last: Instant::now(),
            blows: Vec::new(),
        };
        loaded.sessions = loaded.online()?;
        let expected = usize::from(HOMES) + 1;
        ensure!(
            loaded.sessions.len() == expected,
            "{} sessions are online, not {expected}",
            loaded.sessions.len()
        );
        loaded.crowd.hear_all(Duration::from_secs(10))?;
        Ok(loaded)
    }

    /// Deals a blow, waits until all is as before, and holds what was seen against what is promised.
    pub fn strike(&mut self, lab: &Lab, vm: &Vm, blow: Blow) -> Result<Measured> {
        sleep(CALM.saturating_sub(self.last.elapsed()));
        let before = self.crowd.hush();
        self.crowd.speak();
        let (at, clock) = (Instant::now(), SystemTime::now());
        let mut measured = self.deal(lab, blow, at, clock)?;
        self.last = Instant::now();
        // Whatever the blow did to the traffic has shown by now, and what flows again has flowed for a while.
        sleep(Duration::from_secs(1));
        let after = self.crowd.hush();
        measured.lost = [0, 1].map(|up| Tally::since(&after[up], &before[up]));
        println!("        {measured}");
        self.blows.push(measured);
        for up in UserPlane::ALL {
            if blow.user_plane() != Some(up) && measured.lost[up as usize].1 > 0 {
                println!("{}", where_lost(lab, up));
            }
        }
        self.crowd.speak();
        self.judge(vm, &measured)?;
        Ok(measured)
    }

    fn deal(&mut self, lab: &Lab, blow: Blow, at: Instant, clock: SystemTime) -> Result<Measured> {
        let mut newcomer = None;
        for daemon in blow.daemons() {
            match blow.is_kill() {
                true => self.arena.gateway.kill(daemon)?,
                false => self.arena.gateway.pause(daemon)?,
            }
        }
        let mut since = at;
        if !blow.is_kill() {
            sleep(STANDSTILL);
            since = Instant::now();
            for daemon in blow.daemons() {
                self.arena.gateway.resume(daemon)?;
            }
        } else if blow.hits_control_plane() {
            let up = match blow.user_plane() {
                Some(UserPlane::One) => UserPlane::Two,
                Some(UserPlane::Two) => UserPlane::One,
                None => UserPlane::ALL[usize::from(self.newcomers % 2)],
            };
            let line = self.number();
            newcomer = Some(Newcomer::dial_on(lab, up, line, line)?);
        }
        let gateway = &self.arena.gateway;
        let mut traffic = None;
        if let Some(up) = blow.user_plane() {
            sleep(UNDER_WAY);
            let heard = self.crowd.hear_all(READY_LIMIT)?;
            let started = match blow.is_kill() {
                true => {
                    at + gateway
                        .wait_ready(Daemon::UserPlane(up), READY_LIMIT)?
                        .started
                }
                false => since,
            };
            traffic = Some(heard.saturating_duration_since(started));
        }
        let came = newcomer.as_ref().map(|home| home.wait_online(READY_LIMIT));
        let came = came.transpose()?.map(|when| when - at);
        for daemon in blow.daemons() {
            gateway.wait_ready(daemon, READY_LIMIT)?;
        }
        let ready = since.elapsed();
        let echo = match blow.is_kill() && blow.hits_control_plane() {
            true => Some(self.first_echo(clock)?),
            false => None,
        };
        if let Some(home) = newcomer {
            home.hang_up(Duration::from_secs(10))?;
        }
        Ok(Measured {
            blow,
            echo,
            newcomer: came,
            traffic,
            ready,
            lost: [(0, 0); 2],
        })
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
                        start.elapsed() < READY_LIMIT,
                        "no subscriber's echo was answered"
                    ),
                }
                sleep(Duration::from_millis(50));
            };
            latest = latest.max(first.duration_since(since)?);
        }
        Ok(latest)
    }

    /// Cuts the planes apart for a while: traffic of every session goes on. Meanwhile at each user plane a home hangs up,
    /// and another one dials in on its line; afterwards both planes know who is there.
    pub fn part(&mut self, lab: &Lab, vm: &Vm, ways: [Way; 2], length: Duration) -> Result<()> {
        let lines = UserPlane::ALL.map(|up| (up, self.number()));
        let mut leaving = Vec::new();
        for (up, line) in lines {
            let home = Newcomer::dial_on(lab, up, line, line)?;
            home.wait_online(READY_LIMIT)?;
            leaving.push(home);
        }
        let before = self.crowd.hush();
        self.crowd.speak();
        let began = Instant::now();
        let cuts = cut(lab, ways)?;
        for home in leaving {
            home.hang_up(Duration::from_secs(20))?;
        }
        let mut coming = Vec::new();
        for (up, line) in lines {
            let number = self.number();
            coming.push(Newcomer::dial_on(lab, up, line, number)?);
        }
        sleep(length.saturating_sub(began.elapsed()));
        let lasted = began.elapsed();
        drop(cuts);
        let healed = Instant::now();
        // A home that was not heard asks less and less often.
        for home in &coming {
            home.wait_online(READY_LIMIT + lasted)?;
        }
        let online = healed.elapsed();
        for home in coming {
            home.hang_up(Duration::from_secs(10))?;
        }
        self.wait_sessions(NOTICED)?;
        let settled = healed.elapsed();
        let after = self.crowd.hush();
        self.crowd.speak();
        let lost = [0, 1].map(|up| Tally::since(&after[up], &before[up]));
        println!(
            "        {} s {:?} and {:?}: new homes on the same lines online {:.2} s after, all sessions right {:.2} s after, {} of {} packets lost",
            lasted.as_secs(),
            ways[0],
            ways[1],
            online.as_secs_f64(),
            settled.as_secs_f64(),
            lost[0].1 + lost[1].1,
            lost[0].0 + lost[1].0
        );
        ensure!(lost[0].1 + lost[1].1 == 0, "packets were lost: {lost:?}");
        self.arena.check()?;
        self.crowd.check()?;
        self.no_address_twice()?;
        Home::at(vm, PPPD).still_online()
    }

    fn number(&mut self) -> u16 {
        self.newcomers += 1;
        self.newcomers
    }

    fn no_address_twice(&self) -> Result<()> {
        let mut given = BTreeSet::new();
        for session in self.arena.gateway.sessions()? {
            for address in [session.ipv4, session.ipv6_prefix].into_iter().flatten() {
                ensure!(given.insert(address.clone()), "{address} is given twice");
            }
        }
        Ok(())
    }

    fn judge(&self, vm: &Vm, measured: &Measured) -> Result<()> {
        let Measured {
            blow,
            echo,
            newcomer,
            traffic,
            lost,
            ..
        } = *measured;
        let within = |what: &str, took: Option<Duration>, limit: Duration| {
            ensure!(
                took.is_none_or(|took| took <= limit),
                "{blow}: {what} took longer than {limit:?}: {took:?}"
            );
            Ok(())
        };
        self.arena.check()?;
        self.crowd.check()?;
        within("an answer to an echo", echo, ECHO_LIMIT)?;
        within("a new home", newcomer, NEWCOMER_LIMIT)?;
        within("every home's traffic", traffic, TRAFFIC_LIMIT)?;
        for up in UserPlane::ALL {
            ensure!(
                blow.user_plane() == Some(up) || lost[up as usize].1 == 0,
                "{blow}: sessions of {} lost {} packets",
                up.name(),
                lost[up as usize].1
            );
        }
        // A home that hung up may not be gone yet.
        self.wait_sessions(Duration::from_secs(5))?;
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
        let sessions = self.arena.gateway.sessions()?;
        let online = sessions
            .into_iter()
            .filter(|session| session.state == SessionState::Online);
        Ok(online.map(|session| session.id).collect())
    }

    /// Every home hangs up; nothing is left of them, and the books are right.
    pub fn finish(self, lab: &Lab, vm: &Vm) -> Result<()> {
        self.arena.check()?;
        Home::at(vm, PPPD).hang_up()?;
        let outcome = self.crowd.hang_up(&self.arena, Duration::from_secs(30))?;
        reckoning::nothing_left(lab, &self.arena)?;
        reckoning::check_books(lab, &self.sessions, &outcome, &self.blows)?;
        self.arena.close()
    }

    /// Ends the daemons.
    pub fn close(self) -> Result<()> {
        self.crowd.close()?;
        self.arena.close()
    }
}
