//! The whole gateway under load: a control plane with two user planes under supervision, FreeRADIUS, and emulated homes
//! with verified traffic at both.

use crate::access_network::{PASSWORD, home};
use crate::accounting::AccountingRecords;
use crate::leak_check::Footprint;
use crate::radius::{ALONE, FreeRadius, SECRET};
use anyhow::{Context, Result, bail, ensure};
use cpe::{End, HomeConfig, State};
use lab::access_network::{self, AccessNetwork, Order, Plan, Residents};
use lab::daemon::{Daemon, What};
use lab::gateway::Gateway;
use lab::internet::Internet;
use lab::port::Port;
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place, UserPlane};
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// Seconds between interim records of a session.
pub const INTERIM: u64 = 20;
/// Seconds between LCP echo requests to a silent home.
const ECHO_INTERVAL: u64 = 5;
/// How many of them it may leave unanswered.
const ECHO_FAILURES: u64 = 3;
/// After this time at the latest a home that is gone without a word is noticed.
pub const NOTICED: Duration = Duration::from_secs((ECHO_FAILURES + 2) * ECHO_INTERVAL);
/// The most homes that an scenario is made for.
const MOST: usize = 4000;
/// The S-tag of newcomers' lines.
const NEWCOMERS_S_TAG: u16 = 201;
/// Homes of each access network that ask more often whether the gateway is still there, and as patiently as the others.
const CURIOUS: u16 = 40;
/// Packets under way have arrived when for this long nothing did: more than two looks at the counters.
const SETTLED: Duration = Duration::from_millis(600);
/// The same while more packets are missing than before: on a busy machine somebody may have been without a turn.
pub const GIVEN_UP: Duration = Duration::from_secs(3);
/// What the lab's access network says of a frame to a MAC address that is not there.
const FLOODED: &str = "a frame for no home";
/// How often anything is looked at.
const TICK: Duration = Duration::from_millis(20);

/// The daemons and their RADIUS server.
pub struct Scenario {
    /// The daemons under supervision.
    pub gateway: Gateway,
    radius: FreeRadius,
    /// How many accounting records there were before.
    known: usize,
}

impl Scenario {
    /// Starts everything; returns when homes can dial.
    pub fn open(lab: &Lab) -> Result<Self> {
        Scenario::open_with(lab, &FreeRadius::users())
    }

    /// The same with another file of users for FreeRADIUS.
    pub fn open_with(lab: &Lab, users: &Path) -> Result<Self> {
        if lab.dir().join("store").exists() {
            std::fs::remove_dir_all(lab.dir().join("store"))?;
        }
        let known = ALONE.records(lab)?.len();
        let radius = FreeRadius::start_with(lab, &ALONE, SECRET, users)?;
        let server = ALONE.yaml();
        let aaa = format!(
            "    server-group: radius
    echo-interval: {ECHO_INTERVAL}
    echo-failures: {ECHO_FAILURES}
aaa:
  servers: {{one: {server}}}
  server-groups: {{radius: {{servers: [one], interim-interval: {INTERIM}, family-counters: erx}}}}
"
        );
        let gateway = Gateway::start_with(lab, &UserPlane::ALL, &aaa, MOST)?;
        Ok(Scenario {
            gateway,
            radius,
            known,
        })
    }

    /// FreeRADIUS starts again with another file of users.
    pub fn with_users(mut self, lab: &Lab, users: &Path) -> Result<Self> {
        self.radius.stop()?;
        self.radius = FreeRadius::start_with(lab, &ALONE, SECRET, users)?;
        Ok(self)
    }

    /// What the control plane and the user planes hold.
    pub fn footprints(&self) -> Result<[Footprint; 3]> {
        let of = |daemon| Footprint::of(self.gateway.id(daemon)?);
        let [one, two] = UserPlane::ALL.map(Daemon::UserPlane);
        Ok([of(Daemon::ControlPlane)?, of(one)?, of(two)?])
    }

    /// What RADIUS was told of all sessions.
    pub fn records(&self, lab: &Lab) -> Result<AccountingRecords> {
        AccountingRecords::of(ALONE.records(lab)?.into_iter().skip(self.known))
    }

    /// Nothing died that was not killed.
    pub fn check(&self) -> Result<()> {
        for event in self.gateway.check()? {
            if let What::Died { ordered: false, .. } = event.what {
                bail!("{event}");
            }
        }
        Ok(())
    }

    /// Ends everything.
    pub fn close(self) -> Result<()> {
        self.gateway.stop()?;
        self.radius.stop()
    }
}

/// What was sent by way of a user plane and what arrived: up and down together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Verified packets sent.
    pub sent: u64,
    /// Those that arrived where they should, unchanged, each once.
    pub received: u64,
}

impl Tally {
    /// Packets sent and lost since an earlier tally.
    pub fn since(&self, before: &Tally) -> (u64, u64) {
        let sent = self.sent - before.sent;
        (sent, sent.saturating_sub(self.received - before.received))
    }
}

/// Homes at both user planes, line for line the same, and the host that they talk to.
pub struct Crowd {
    internet: Internet,
    networks: [AccessNetwork; 2],
    homes: u32,
    /// What had been sent and had arrived when traffic last paused.
    hushed: [Tally; 2],
    /// How many sessions of theirs the gateway was told to end.
    pub ended: u32,
}

/// Octets of a home's IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Octets {
    /// Of the home: Acct-Input-Octets.
    pub up: u64,
    /// To the home: Acct-Output-Octets.
    pub down: u64,
    /// IPv6's part of `up`: ERX-IPv6-Acct-Input-Octets.
    pub up_v6: u64,
    /// IPv6's part of `down`: ERX-IPv6-Acct-Output-Octets.
    pub down_v6: u64,
}

impl Octets {
    /// Of IPv4 and IPv6 each way.
    pub fn of(up: [u64; 2], down: [u64; 2]) -> Self {
        Octets {
            up: up.iter().sum(),
            down: down.iter().sum(),
            up_v6: up[1],
            down_v6: down[1],
        }
    }

    /// What two of each come to, way by way.
    pub fn with(self, other: Octets, of: impl Fn(u64, u64) -> u64) -> Self {
        Octets {
            up: of(self.up, other.up),
            down: of(self.down, other.down),
            up_v6: of(self.up_v6, other.up_v6),
            down_v6: of(self.down_v6, other.down_v6),
        }
    }
}

impl Crowd {
    /// `homes` homes, half at each user plane, begin to dial; all together send and are sent `rate` packets a second. Each
    /// sends two and is sent three meanwhile: who takes one way for the other is seen by the octets.
    pub fn dial(lab: &Lab, homes: u16, rate: u32) -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let run = now.as_nanos() as u64; // a packet of an earlier crowd is not taken for one of this
        let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
        let interval = Duration::from_secs_f64(5.0 * f64::from(homes) / f64::from(rate));
        let (all, half) = (u32::from(homes), homes / 2);
        let at = lab.netns(Place::Internet);
        let internet = Internet::open(at, host, all, half.into(), interval * 2 / 3, run)?;
        let network = |up: UserPlane, first: u16, count: u16| {
            let residents = Residents {
                first: first.into(),
                configs: (0..count).map(|place| resident(first, place)).collect(),
                all,
            };
            let (tap, reach) = (lab.tap(up, "homes0")?, internet.reach());
            let plan = Plan::of_lab(interval, run, reach, host);
            AccessNetwork::open(residents, plan, Port::Tap(tap))
        };
        let networks = [
            network(UserPlane::One, 0, half)?,
            network(UserPlane::Two, half, homes - half)?,
        ];
        Ok(Crowd {
            internet,
            networks,
            homes: all,
            hushed: [Tally::default(); 2],
            ended: 0,
        })
    }

    /// Waits until every home is online; how long the last one took.
    pub fn wait_online(&self, scenario: &Scenario, limit: Duration) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let statuses = self.statuses();
            if statuses.iter().map(|s| s.at(State::Online)).sum::<u32>() == self.homes {
                let last = statuses.iter().filter_map(|s| s.last_online).max();
                return last.context("nobody came online");
            }
            scenario.check()?;
            ensure!(
                start.elapsed() < limit,
                "not every home is online after {limit:?}: {:?} and {:?}",
                statuses.each_ref().map(|s| s.states.clone()),
                statuses.each_ref().map(|s| s.ends.clone())
            );
            sleep(TICK);
        }
    }

    /// Every home is online, no session ended that the gateway was not told to end, and no packet was wrong.
    pub fn check(&self) -> Result<()> {
        ensure!(
            !self.internet.failed() && !self.networks.iter().any(AccessNetwork::failed),
            "a thread of the homes or the internet has ended by mistake"
        );
        let statuses = self.statuses();
        let online: u32 = statuses.iter().map(|s| s.at(State::Online)).sum();
        let ends = statuses.each_ref().map(|s| s.ends.clone());
        let all_ends = || ends.iter().flatten();
        let by_gateway = End::Terminated.to_string();
        ensure!(
            online == self.homes
                && all_ends().all(|(end, _)| *end == by_gateway)
                && all_ends().map(|(_, count)| count).sum::<u32>() == self.ended,
            "{online} of {} homes are online; sessions that ended: {ends:?}",
            self.homes
        );
        // What is still sent to a home that went without a word reaches every port of the access network.
        let flooded = |s: &access_network::Status| s.strays.get(FLOODED).copied().unwrap_or(0);
        let wrong = statuses
            .each_ref()
            .map(|s| s.counts.wrong() - u64::from(flooded(s)));
        let internet = self.internet.status().counts;
        ensure!(
            wrong == [0, 0] && internet.wrong() == 0,
            "wrong packets at the homes: {wrong:?}, at the internet: {internet}"
        );
        Ok(())
    }

    /// Traffic pauses; counts it when what was under way has arrived.
    pub fn hush(&mut self) -> [Tally; 2] {
        self.order(Order::Quiet);
        self.internet.quiet();
        let (mut last, mut since) = (self.count(), Instant::now());
        let missing = |now: &[Tally; 2]| (0..2).any(|up| now[up].since(&self.hushed[up]).1 > 0);
        while since.elapsed() < SETTLED || missing(&last) && since.elapsed() < GIVEN_UP {
            sleep(TICK);
            let now = self.count();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        self.hushed = last;
        last
    }

    /// What has arrived of each home at the internet host, and at each home, by the homes' numbers.
    pub fn carried(&self) -> Vec<Octets> {
        let down = self.networks.iter().flat_map(AccessNetwork::octets);
        let both = self.internet.octets().into_iter().zip(down);
        both.map(|(up, down)| Octets::of(up, down)).collect()
    }

    /// Traffic goes on.
    pub fn speak(&self) {
        self.order(Order::Speak);
        self.internet.speak();
    }

    fn count(&self) -> [Tally; 2] {
        let (statuses, internet) = (self.statuses(), self.internet.status());
        UserPlane::ALL.map(|up| {
            let (network, up) = (&statuses[up as usize], up as usize);
            Tally {
                sent: network.sent + internet.sent[up],
                received: network.counts.received + internet.received[up],
            }
        })
    }

    /// Waits until from now on something has come to and from every home in both families; when that was.
    pub fn hear_all(&self, limit: Duration) -> Result<Instant> {
        let (called, before) = (Instant::now(), self.carried());
        self.order(Order::Call);
        self.internet.call();
        loop {
            let [one, two] = self.statuses().map(|status| status.all_heard);
            let heard = [one, two, self.internet.status().all_heard];
            // What is not later is of an earlier call.
            if heard.iter().all(|heard| *heard > Some(called))
                && let Some(last) = heard.into_iter().flatten().max()
            {
                return Ok(last);
            }
            ensure!(
                called.elapsed() < limit,
                "for {limit:?} nothing has come {}",
                self.silent(&before)
            );
            sleep(TICK);
        }
    }

    /// Which homes are as they were, for people: from some of them nothing has come to the internet host, to some nothing.
    fn silent(&self, before: &[Octets]) -> String {
        let now = self.carried();
        let same = |of: fn(&Octets) -> u64| -> Vec<usize> {
            let pairs = before.iter().zip(&now).enumerate();
            let same = pairs.filter(|(_, (before, now))| of(before) == of(now));
            same.map(|(home, _)| home + 1).collect()
        };
        let named = |homes: Vec<usize>| match &homes[..] {
            [] => "none, unless one family alone is silent".to_owned(),
            [first, ..] => format!("{} homes, home{first:04} the first of them", homes.len()),
        };
        format!(
            "from {}; and to {}",
            named(same(|octets| octets.up)),
            named(same(|octets| octets.down))
        )
    }

    /// Every home hangs up; what was carried for each.
    pub fn hang_up(mut self, scenario: &Scenario, limit: Duration) -> Result<Vec<Octets>> {
        self.hush(); // what was forwarded has arrived, and may be held against the records
        self.order(Order::HangUp);
        let start = Instant::now();
        let gone = |s: &access_network::Status| {
            s.leaving && s.states.keys().all(|state| *state == State::Offline)
        };
        while !self.statuses().iter().all(gone) {
            scenario.check()?;
            ensure!(
                start.elapsed() < limit,
                "the homes have not left after {limit:?}"
            );
            sleep(TICK);
        }
        let carried = self.carried();
        self.close()?;
        Ok(carried)
    }

    /// Ends the homes as they are.
    pub fn close(self) -> Result<()> {
        for network in self.networks {
            network.close()?;
        }
        self.internet.close().map(drop)
    }

    /// The homes of each user plane.
    pub fn statuses(&self) -> [access_network::Status; 2] {
        self.networks.each_ref().map(AccessNetwork::status)
    }

    fn order(&self, order: Order) {
        self.networks
            .iter()
            .for_each(|network| network.order(order));
    }
}

/// A home that dials in while something is wrong. It sends no traffic.
pub struct Newcomer {
    network: AccessNetwork,
    dialled: Instant,
}

impl Newcomer {
    /// Begins to dial on this line.
    pub fn dial_on(lab: &Lab, up: UserPlane, line: u16, number: u16) -> Result<Self> {
        let user = format!("home{}", 10_000 + u32::from(number));
        Newcomer::dial_as(lab, up, line, number, (&user, PASSWORD))
    }

    /// Begins to dial on this line under a name with its password.
    pub fn dial_as(
        lab: &Lab,
        up: UserPlane,
        line: u16,
        number: u16,
        (user, password): (&str, &str),
    ) -> Result<Self> {
        let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
        let [high, low] = number.to_be_bytes();
        let config = HomeConfig {
            restart: Duration::from_millis(500),
            ..HomeConfig::new(
                [2, 0, 0x5f, 0, high, low].into(),
                NEWCOMERS_S_TAG,
                line,
                user,
                password,
            )
        };
        let residents = Residents {
            first: 0,
            configs: vec![config],
            all: 1,
        };
        // Its turn to send comes once, before it is online.
        let never = Duration::from_secs(24 * 3600);
        let (reach, tap) = (channel().0, lab.tap(up, &format!("new{number}"))?);
        Ok(Newcomer {
            dialled: Instant::now(),
            network: AccessNetwork::open(
                residents,
                Plan::of_lab(never, 1, reach, host),
                Port::Tap(tap),
            )?,
        })
    }

    /// How it is getting on.
    pub fn status(&self) -> access_network::Status {
        self.network.status()
    }

    /// Waits until it is online in both families; when that was.
    pub fn wait_online(&self, limit: Duration) -> Result<Instant> {
        let start = Instant::now();
        loop {
            let status = self.network.status();
            if let (1, Some(after)) = (status.at(State::Online), status.last_online) {
                return Ok(self.dialled + after);
            }
            ensure!(
                start.elapsed() < limit,
                "the new home is not online after {limit:?}: {:?}, {:?}",
                status.states,
                status.ends
            );
            sleep(TICK);
        }
    }

    /// Hangs up and waits until it is offline.
    pub fn hang_up(self, limit: Duration) -> Result<()> {
        self.network.order(Order::HangUp);
        let start = Instant::now();
        loop {
            let status = self.network.status();
            if status.leaving && status.at(State::Offline) == 1 {
                return self.network.close().map(drop);
            }
            ensure!(
                start.elapsed() < limit,
                "the new home has not left after {limit:?}: {:?}",
                status.states
            );
            sleep(TICK);
        }
    }
}

/// The home at this place of the access network whose first home has number `first`: users differ, lines overlap.
fn resident(first: u16, place: u16) -> HomeConfig {
    let mut config = home(place + 1, first + place + 1);
    if place < CURIOUS {
        let interval = Duration::from_millis(1900 + 13 * u64::from(place));
        (config.echo_interval, config.echo_failures) = (Some(interval), 60);
    }
    config
}
