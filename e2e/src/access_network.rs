//! Emulated homes with verified traffic in both families, as the lab has them.

use crate::scenario::GIVEN_UP;
use crate::site::UP;
use anyhow::{Result, ensure};
use cpe::{HomeConfig, State};
use lab::access_network::{self, Order, Plan, Residents};
use lab::internet::{self, Internet};
use lab::port::Port;
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place};
use std::cell::Cell;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The password of every emulated home in `raddb/users`.
pub const PASSWORD: &str = "home-secret";
/// The S-tag of their lines; the virtual machine's homes have another.
const S_TAG: u16 = 200;
/// Each home sends, and is sent, one packet in each family this often.
const INTERVAL: Duration = Duration::from_millis(95);
/// Packets under way have arrived when for this long nothing did: more than two looks at the counters.
const SETTLED: Duration = Duration::from_millis(800);
/// How often an access network is looked at.
const TICK: Duration = Duration::from_millis(50);

/// An access network of homes and the host that they talk to.
pub struct AccessNetwork {
    homes: access_network::AccessNetwork,
    internet: Internet,
    count: u32,
    /// Packets that had not arrived when traffic last paused.
    missing: Cell<u64>,
}

impl AccessNetwork {
    /// `count` homes begin to dial at once, as `home1` and so on.
    pub fn dial(lab: &Lab, count: u16) -> Result<Self> {
        Self::dial_as(lab, (1..=count).map(impatient).collect())
    }

    /// These homes begin to dial at once.
    pub fn dial_as(lab: &Lab, configs: Vec<HomeConfig>) -> Result<Self> {
        let count = configs.len() as u16;
        let run = u64::from(std::process::id()) << 32 | u64::from(count);
        let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
        let all = u32::from(count);
        let internet = lab.netns(Place::Internet);
        let internet = Internet::open(internet, host, all, all, INTERVAL, run)?;
        let homes = Residents {
            first: 0,
            configs,
            all,
        };
        let tap = lab.tap(UP, "homes0")?;
        let plan = Plan::of_lab(INTERVAL, run, internet.reach(), host);
        Ok(AccessNetwork {
            homes: access_network::AccessNetwork::open(homes, plan, Port::Tap(tap))?,
            internet,
            count: count.into(),
            missing: Cell::new(0),
        })
    }

    /// Waits until every home is online; how long the last one took.
    pub fn wait_online(&self, limit: Duration) -> Result<Duration> {
        self.wait("every home to be online", limit, |status| {
            status.ever_online == self.count && status.at(State::Online) == self.count
        })?;
        let last = self.homes.status().last_online;
        Ok(last.unwrap_or_default())
    }

    /// Waits until the homes' status is as wanted.
    pub fn wait(
        &self,
        what: &str,
        limit: Duration,
        done: impl Fn(&access_network::Status) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        loop {
            let status = self.homes.status();
            if done(&status) {
                return Ok(());
            }
            ensure!(
                !self.homes.failed() && !self.internet.failed(),
                "a thread of the access network has ended by mistake"
            );
            ensure!(
                start.elapsed() < limit,
                "waited {limit:?} for {what}: {:?}, ends {:?}",
                status.states,
                status.ends
            );
            sleep(TICK);
        }
    }

    /// What the homes have seen so far.
    pub fn status(&self) -> access_network::Status {
        self.homes.status()
    }

    /// Octets of IP packets that have come to each home.
    pub fn received(&self) -> Vec<u64> {
        let octets = self.homes.octets().into_iter();
        octets.map(|both| both.iter().sum()).collect()
    }

    /// Traffic pauses; how many verified packets were sent so far, up and down, and how many of them arrived.
    pub fn hush(&self) -> (u64, u64) {
        self.homes.order(Order::Quiet);
        self.internet.quiet();
        let count = || {
            let (homes, internet) = (self.homes.status(), self.internet.status());
            let sent = homes.sent + internet.sent.iter().sum::<u64>();
            (sent, homes.counts.received + internet.counts.received)
        };
        let missing = |(sent, arrived): (u64, u64)| sent.saturating_sub(arrived);
        let (mut last, mut since) = (count(), Instant::now());
        while since.elapsed() < SETTLED
            || missing(last) > self.missing.get() && since.elapsed() < GIVEN_UP
        {
            sleep(TICK);
            let now = count();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        self.missing.set(missing(last));
        last
    }

    /// Traffic goes on.
    pub fn speak(&self) {
        self.homes.order(Order::Speak);
        self.internet.speak();
    }

    /// Waits until from now on something has come to and from every home in both families; how long that took.
    pub fn hear_all(&self, limit: Duration) -> Result<Duration> {
        let called = Instant::now();
        self.homes.order(Order::Call);
        self.internet.call();
        loop {
            let heard = [
                self.homes.status().all_heard,
                self.internet.status().all_heard,
            ];
            // What is not later is of an earlier call.
            if heard.iter().all(|heard| *heard > Some(called)) {
                return Ok(called.elapsed());
            }
            ensure!(
                called.elapsed() < limit,
                "for {limit:?} nothing has come to some home, or from it"
            );
            sleep(TICK);
        }
    }

    /// Every home hangs up; what the homes and the internet host have seen.
    pub fn hang_up(self, limit: Duration) -> Result<(access_network::Status, internet::Status)> {
        self.homes.order(Order::HangUp);
        self.internet.quiet();
        self.wait("every home to hang up", limit, |status| {
            status.leaving && status.states.keys().all(|state| *state == State::Offline)
        })?;
        Ok((self.homes.close()?, self.internet.close()?))
    }
}

/// A home that asks again after a second.
pub fn impatient(number: u16) -> HomeConfig {
    HomeConfig {
        restart: Duration::from_secs(1),
        ..home(number, number)
    }
}

/// A home on a line of its own: user planes may have the same lines, but no two homes the same number.
pub fn home(line: u16, number: u16) -> HomeConfig {
    let [high, low] = line.to_be_bytes();
    let mac = [2, 0, 0x5e, 0, high, low].into();
    HomeConfig::new(mac, S_TAG, line, format!("home{number}"), PASSWORD)
}
