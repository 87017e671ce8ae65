//! `sluice lab`: conducts the parts of the lab (crate `lab`), shows them ([`view`]), and reports what came of it ([`report`]).

mod outage;
mod report;
mod view;

use anyhow::{Context, Result, bail};
use cpe::{Auth, HomeConfig, State};
use lab::access_network::{self, AccessNetwork, Order, Plan, Residents};
use lab::claim;
use lab::daemon::What;
use lab::gateway::Gateway;
use lab::internet::Internet;
use lab::port::Port;
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place, UserPlane};
use lab::web_manager::WebManager;
use outage::Outages;
use report::Report;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use view::{Scene, Stage, View};

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

/// Verified packets that a home sends and is sent in a second, unless the machine would be too small for all of them.
const PACKETS_PER_HOME: u32 = 42;
/// Verified packets in a second that every machine carries.
const PACKETS: u32 = 20_000;

/// What `sluice lab` is asked for.
#[derive(Clone, Debug, clap::Args)]
pub struct LabOptions {
    /// How many homes dial in
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    homes: u32,
    /// Verified packets a second: of all homes, both directions and both families together [default: 42 for each home, at most 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pps: Option<u32>,
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

impl LabOptions {
    /// How often a home sends, and is sent, one packet in each family.
    fn interval(&self) -> Duration {
        let all = PACKETS_PER_HOME.saturating_mul(self.homes).min(PACKETS);
        let per_second = f64::from(self.pps.unwrap_or(all));
        Duration::from_secs_f64(4.0 * f64::from(self.homes) / per_second)
    }
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
            let dir = claim::directory(name);
            format!(" --cp-socket {}/cp.sock", dir.display())
        }
    };
    format!("{program}{sockets} show sessions | session ID | user-planes | ports | drops")
}

/// Runs a lab from its daemons' start to their end.
fn conduct(
    lab: &Lab,
    options: &LabOptions,
    started: Instant,
    stop: &AtomicBool,
    view: &mut View,
) -> Result<Report> {
    let (secret, all) = (rand::random::<u64>(), options.homes);
    let networks = residents(all, secret);
    let second = networks[1].first;
    let homes = networks.iter().flat_map(|network| &network.configs);
    let users: Vec<(String, String)> = homes
        .map(|c| (c.user.clone(), c.password.clone()))
        .collect();
    view.say("starting sluice-up twice, and sluice-cp");
    let gateway = Gateway::start(lab, &UserPlane::ALL, &users)?;
    view.say(&format!("logs and sockets: {}", lab.dir().display()));
    view.say_look();
    let web = WebManager::start(lab)?;
    view.say(&format!("web manager, signed in once: {}", web.link()?));
    let (gnmi, token) = (web.gnmi(), web.token_command()?);
    view.say(&format!(
        "gNMI and REST for programs: {gnmi} and {}, with the token of {token}",
        web.address()
    ));

    let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
    let interval = options.interval();
    let internet = lab.netns(Place::Internet);
    let internet = Internet::open(internet, host, all, second, interval, secret)?;
    let before_dialling = started.elapsed();
    let mut opened = Vec::new();
    for (up, residents) in UserPlane::ALL.into_iter().zip(networks) {
        let tap = lab.tap(up, "homes0")?;
        let reach = internet.reach();
        let plan = Plan::of_lab(interval, secret, reach, host);
        opened.push(AccessNetwork::open(residents, plan, Port::Tap(tap))?);
    }
    let mut parts = Parts {
        gateway: &gateway,
        internet: &internet,
        networks: &opened,
        view,
        outages: Outages::default(),
    };

    let limit = BRING_UP + BRING_UP_PER_HOME * all;
    parts.watch(Stage::Dialling, limit, stop, |online| online == all)?;
    let length = options.seconds.map_or(Duration::MAX, Duration::from_secs);
    parts.watch(Stage::Running, length, stop, |_| false)?;
    let online = parts.online();
    parts.settle(stop)?;
    parts.hang_up(stop)?;
    parts
        .view
        .say("waiting until the gateway has let go of everything");
    let left = gateway.wait_until_empty(lab, LEAVING)?;
    parts.check()?;
    let (outages, restarts) = (parts.outages, gateway.restarts());
    let networks = opened.into_iter().map(AccessNetwork::close);
    let networks: Vec<access_network::Status> = networks.collect::<Result<_>>()?;
    let internet = internet.close()?;
    web.stop()?;
    gateway.stop()?;
    Ok(Report::new(report::Run {
        homes: all,
        online,
        before_dialling,
        networks: &networks,
        internet: &internet,
        left: &left,
        outages: &outages,
        restarts: &restarts,
        unattended: options.seconds.is_some(),
    }))
}

/// The homes of both user planes, one half each.
fn residents(all: u32, secret: u64) -> [Residents; 2] {
    let second = all.div_ceil(2);
    [0..second, second..all].map(|numbers| {
        let first = numbers.start;
        Residents {
            first,
            configs: numbers.map(|n| home(n, n - first, secret)).collect(),
            all,
        }
    })
}

/// Everything about home `number` that does not change. Its line is the same as that of the other user plane's home with
/// the same `place`: MAC address and tags.
fn home(number: u32, place: u32, secret: u64) -> HomeConfig {
    let [_, a, b, c] = place.to_be_bytes();
    let (s_tag, c_tag) = (
        FIRST_S_TAG + place / LINES_PER_S_TAG,
        1 + place % LINES_PER_S_TAG,
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
    gateway: &'l Gateway,
    internet: &'l Internet,
    networks: &'l [AccessNetwork],
    view: &'l mut View,
    outages: Outages,
}

impl Parts<'_> {
    /// Lets the lab run until `done` with this many homes online, a signal, or the end of the time; an error if a part of
    /// the lab itself dies.
    fn watch(
        &mut self,
        stage: Stage,
        limit: Duration,
        stop: &AtomicBool,
        done: impl Fn(u32) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !stop.load(Ordering::Relaxed) && start.elapsed() < limit {
            let networks = self.check()?;
            self.show(stage, &networks)?;
            if done(networks.iter().map(|s| s.at(State::Online)).sum()) {
                break;
            }
            sleep(TICK);
        }
        Ok(())
    }

    fn show(&mut self, stage: Stage, networks: &[access_network::Status]) -> Result<()> {
        let mut daemons = Vec::new();
        for (daemon, restarts) in self.gateway.restarts() {
            daemons.push((daemon, self.gateway.phase(daemon)?, restarts));
        }
        self.view.show(&Scene {
            stage,
            networks,
            internet: &self.internet.status(),
            daemons: &daemons,
        });
        Ok(())
    }

    /// Looks at every part; how the homes are getting on.
    fn check(&mut self) -> Result<Vec<access_network::Status>> {
        let networks: Vec<access_network::Status> =
            self.networks.iter().map(AccessNetwork::status).collect();
        for event in self.gateway.check()? {
            self.view.say(&event.to_string());
            if let What::Died { ordered: false, .. } = event.what {
                self.outages.deaths.push(event.to_string());
            }
        }
        if self.networks.iter().any(AccessNetwork::failed) || self.internet.failed() {
            bail!("a thread of the lab itself has ended by mistake");
        }
        let internet = self.internet.status();
        for (up, network) in UserPlane::ALL.into_iter().zip(&networks) {
            let sent = [network.sent, internet.sent[up as usize]];
            let forwards = self.gateway.forwards(up)?;
            self.outages.note(up, forwards, sent);
        }
        Ok(networks)
    }

    fn online(&self) -> u32 {
        let online = |network: &AccessNetwork| network.status().at(State::Online);
        self.networks.iter().map(online).sum()
    }

    fn order(&self, order: Order) {
        self.networks
            .iter()
            .for_each(|network| network.order(order));
    }

    /// Nobody sends any more; waits until what is under way has arrived. A second signal ends the waiting.
    fn settle(&mut self, stop: &AtomicBool) -> Result<()> {
        stop.store(false, Ordering::Relaxed);
        self.order(Order::Quiet);
        self.internet.quiet();
        self.view.say("waiting for the packets under way");
        let (mut last, mut since) = ([0; 4], Instant::now());
        while since.elapsed() < SETTLED && !stop.load(Ordering::Relaxed) {
            let networks = access_network::Status::of_all(&self.check()?);
            let internet = self.internet.status();
            let counts = [
                networks.sent,
                internet.counts.received,
                internet.sent.iter().sum(),
                networks.counts.received,
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
        self.order(Order::HangUp);
        // A status may still be from before the order.
        let gone = |network: &access_network::Status| {
            network.leaving && network.states.keys().all(|state| *state == State::Offline)
        };
        let start = Instant::now();
        while start.elapsed() < LEAVING && !stop.load(Ordering::Relaxed) {
            if self.check()?.iter().all(gone) {
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
    fn homes_of_one_user_plane_share_no_line_and_nobody_shares_a_user() {
        let second = 30_000;
        let homes: Vec<HomeConfig> = (0..60_000).map(|n| home(n, n % second, 7)).collect();
        let (one, two) = homes.split_at(second as usize);
        let lines: HashSet<_> = one.iter().map(|h| h.tags.vids()).collect();
        let macs: HashSet<_> = one.iter().map(|h| h.mac).collect();
        let users: HashSet<_> = homes.iter().map(|h| (&h.user, &h.password)).collect();
        assert_eq!(
            [lines.len(), macs.len(), users.len()],
            [30_000, 30_000, 60_000]
        );
        let same = |(a, b): (&HomeConfig, &HomeConfig)| a.mac == b.mac && a.tags == b.tags;
        assert!(one.iter().zip(two).all(same));
        assert!(
            homes
                .iter()
                .all(|h| h.tags.inner.unwrap().vid <= 4094 && h.tags.outer.unwrap().vid <= 4094)
        );
    }

    #[test]
    fn packets_a_second_are_spread_over_all_homes() {
        let options = |homes, pps| LabOptions {
            homes,
            pps,
            seconds: None,
            json: false,
            name: String::new(),
        };
        let rate = |o: &LabOptions| 4.0 * f64::from(o.homes) / o.interval().as_secs_f64();
        for (homes, pps, expected) in [
            (100, None, 4200.0),
            (2000, None, 20_000.0),
            (2000, Some(50_000), 50_000.0),
        ] {
            let rate = rate(&options(homes, pps));
            assert!((rate - expected).abs() < 1.0, "{rate} {expected}");
        }
    }
}
