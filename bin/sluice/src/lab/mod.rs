//! The lab: homes, access network, gateway and internet on one machine.
//!
//! [`run`] is `sluice lab`. It conducts the parts: [`topology`] builds the network, [`gateway`] starts the daemons,
//! [`street`] holds the homes and [`internet`] the host that they talk to, [`view`] shows it.

pub mod gateway;
pub mod internet;
pub mod netns;
pub mod process;
pub mod street;
pub mod topology;
pub mod view;

mod report;

pub use report::Report;

use anyhow::{Context, Result, bail};
use cpe::{Auth, HomeConfig, State};
use gateway::Gateway;
use internet::Internet;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use street::{Order, Street};
use topology::{INTERNET_V4, INTERNET_V6, Lab, Place};
use view::{Stage, View};

/// How often the lab looks at its parts.
const TICK: Duration = Duration::from_millis(50);
/// All homes come online within this time, and [`BRING_UP_PER_HOME`] for each.
const BRING_UP: Duration = Duration::from_secs(30);
/// See [`BRING_UP`].
const BRING_UP_PER_HOME: Duration = Duration::from_millis(20);
/// Packets under way have arrived when for this long nothing did.
const SETTLED: Duration = Duration::from_secs(2);
/// How long hanging up, and then the gateway's tidying, may take.
const LEAVING: Duration = Duration::from_secs(15);
/// C-tags of one S-tag.
const LINES_PER_S_TAG: u32 = 4000;
/// The first S-tag.
const FIRST_S_TAG: u32 = 100;
/// Every home of this number and its multiples has PAP alone; all others let the gateway choose.
const PAP_EVERY: u32 = 10;
/// What a home waits for an answer: less than RFC 1661's 3 s, because nothing here is far away.
const RESTART: Duration = Duration::from_secs(1);

/// What `sluice lab` is asked for.
#[derive(Clone, Debug, clap::Args)]
pub struct LabOptions {
    /// How many homes dial in
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    homes: u32,
    /// End by itself this many seconds after all homes are online, and fail if anything was wrong or lost
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Print the result as one line of JSON, and progress on the standard error
    #[arg(long)]
    json: bool,
    /// A name for this lab, to run beside others [default: none]
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
}

/// `sluice lab`.
pub fn run(options: &LabOptions) -> ExitCode {
    match try_run(options) {
        Ok(report) => match report.print(options.json) {
            Ok(()) if report.is_good() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("sluice lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(options: &LabOptions) -> Result<Report> {
    let started = Instant::now();
    if !nix::unistd::geteuid().is_root() {
        bail!("namespaces and network interfaces need root: try again with sudo");
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot listen for signals")?;
    }
    let mut view = View::new(options.json, options.homes, how_to_look(&options.name));
    view.say("building the network");
    let lab = Lab::new(&options.name)?;
    if !lab.leftovers().is_empty() {
        view.say(&format!(
            "ended what an earlier run left behind: processes {:?}",
            lab.leftovers()
        ));
    }
    let done = conduct(&lab, options, started, &stop, &mut view);
    drop(view);
    match done {
        Ok(report) if report.is_good() => {
            lab.close()?;
            Ok(report)
        }
        Ok(report) => {
            let kept = lab.close_keeping_logs()?;
            Ok(report.with_problem(format!("logs are kept in {}", kept.display())))
        }
        Err(error) => {
            lab.close_keeping_logs()?;
            Err(error)
        }
    }
}

/// The commands that show this lab, as they can be typed where it was started.
fn how_to_look(name: &str) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "sluice".into());
    let sockets = match name {
        // Found without being named.
        "" => String::new(),
        name => {
            let dir = topology::directory(name);
            format!(
                " --cp-socket {0}/cp.sock --up-socket {0}/up.sock",
                dir.display()
            )
        }
    };
    format!("{program}{sockets} show sessions | session ID | ports | drops")
}

/// Runs a lab from its daemons' start to their end.
fn conduct(
    lab: &Lab,
    options: &LabOptions,
    started: Instant,
    stop: &AtomicBool,
    view: &mut View,
) -> Result<Report> {
    let secret = rand::random::<u64>();
    let configs: Vec<HomeConfig> = (0..options.homes).map(|n| home(n, secret)).collect();
    let users: Vec<(String, String)> = configs
        .iter()
        .map(|c| (c.user.clone(), c.password.clone()))
        .collect();
    view.say("starting sluice-up and sluice-cp");
    let mut gateway = Gateway::start(lab, &users)?;
    view.say(&format!("logs and sockets: {}", lab.dir().display()));

    view.say_look();

    let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
    let internet = Internet::open(lab.netns(Place::Internet), host, options.homes, secret)?;
    let before_dialling = started.elapsed();
    let street = Street::open(configs, secret, lab.tap("homes0")?, internet.reach(), host)?;
    let mut parts = Parts {
        gateway: &mut gateway,
        internet: &internet,
        street: &street,
        view,
    };

    let all = options.homes;
    let limit = BRING_UP + BRING_UP_PER_HOME * all;
    parts.watch(Stage::Dialling, limit, stop, |street| {
        street.at(State::Online) == all
    })?;
    let length = options.seconds.map_or(Duration::MAX, Duration::from_secs);
    parts.watch(Stage::Running, length, stop, |_| false)?;
    let online = street.status().at(State::Online);
    parts.settle(stop)?;
    parts.hang_up(stop)?;
    parts
        .view
        .say("waiting until the gateway has let go of everything");
    let left = gateway.wait_until_empty(lab, LEAVING)?;
    let (street, internet) = (street.close()?, internet.close()?);
    gateway.stop()?;
    Ok(Report::new(
        options.homes,
        online,
        before_dialling,
        &street,
        &internet,
        &left,
        options.seconds.is_some(),
    ))
}

/// Everything about home `number` that does not change.
fn home(number: u32, secret: u64) -> HomeConfig {
    let [_, a, b, c] = number.to_be_bytes();
    let (s_tag, c_tag) = (
        FIRST_S_TAG + number / LINES_PER_S_TAG,
        1 + number % LINES_PER_S_TAG,
    );
    let password = format!(
        "pw-{:016x}",
        secret ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    );
    let user = format!("home{:04}", number + 1);
    HomeConfig {
        auth: if (number + 1).is_multiple_of(PAP_EVERY) {
            Auth::Pap
        } else {
            Auth::Any
        },
        restart: RESTART,
        ..HomeConfig::new(
            [2, 0, 0x5e, a, b, c].into(),
            s_tag as u16,
            c_tag as u16,
            user,
            password,
        )
    }
}

/// The parts while they run.
struct Parts<'l> {
    gateway: &'l mut Gateway,
    internet: &'l Internet,
    street: &'l Street,
    view: &'l mut View,
}

impl Parts<'_> {
    /// Lets the lab run until `done`, a signal, or the end of the time; an error if a part dies.
    fn watch(
        &mut self,
        stage: Stage,
        limit: Duration,
        stop: &AtomicBool,
        done: impl Fn(&street::Status) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !stop.load(Ordering::Relaxed) && start.elapsed() < limit {
            self.check()?;
            let street = self.street.status();
            self.view.show(stage, &street, &self.internet.status());
            if done(&street) {
                break;
            }
            sleep(TICK);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.gateway.check()?;
        if self.street.failed() || self.internet.failed() {
            bail!("a thread of the lab itself has ended by mistake");
        }
        Ok(())
    }

    /// Nobody sends any more; waits until what is under way has arrived. A second signal ends the waiting.
    fn settle(&mut self, stop: &AtomicBool) -> Result<()> {
        stop.store(false, Ordering::Relaxed);
        self.street.order(Order::Quiet);
        self.internet.quiet();
        self.view.say("waiting for the packets under way");
        let (mut last, mut since) = ([0; 4], Instant::now());
        while since.elapsed() < SETTLED && !stop.load(Ordering::Relaxed) {
            self.check()?;
            let (street, internet) = (self.street.status(), self.internet.status());
            let counts = [
                street.sent,
                internet.counts.received,
                internet.sent,
                street.counts.received,
            ];
            if counts != last {
                (last, since) = (counts, Instant::now());
            } else if counts[0] == counts[1]
                && counts[2] == counts[3]
                && since.elapsed() > SETTLED / 4
            {
                break;
            }
            sleep(TICK);
        }
        Ok(())
    }

    fn hang_up(&mut self, stop: &AtomicBool) -> Result<()> {
        self.view.say("the homes hang up");
        self.street.order(Order::HangUp);
        // The status may still be from before the order.
        let start = Instant::now();
        while start.elapsed() < LEAVING && !stop.load(Ordering::Relaxed) {
            self.check()?;
            let street = self.street.status();
            if street.leaving && street.states.keys().all(|state| *state == State::Offline) {
                break;
            }
            sleep(TICK);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_homes_share_a_line_an_address_or_a_user() {
        let homes: Vec<HomeConfig> = (0..60_000).map(|n| home(n, 7)).collect();
        let lines: HashSet<_> = homes.iter().map(|h| h.tags.vids()).collect();
        let macs: HashSet<_> = homes.iter().map(|h| h.mac).collect();
        let users: HashSet<_> = homes.iter().map(|h| (&h.user, &h.password)).collect();
        assert_eq!([lines.len(), macs.len(), users.len()], [60_000; 3]);
        assert!(
            homes
                .iter()
                .all(|h| h.tags.inner.unwrap().vid <= 4094 && h.tags.outer.unwrap().vid <= 4094)
        );
    }
}
