//! `sluice load`: emulated homes on an interface of this machine, against any access concentrator.

mod homes;
mod progress;
mod reflect;
mod report;

use crate::cli::terminal_width;
use crate::screen::Interrupt;
use anyhow::{Context, Result, bail, ensure};
use cpe::{Family, State};
use homes::HomeOptions;
use lab::access_network::{
    AccessNetwork, Dialling, Far, Flapping, Leaving, Order, Outcome, Plan, Residents, Status,
    family_of,
};
use lab::port::{Port, largest_packet};
use nix::sys::resource::{UsageWho, getrusage};
use progress::{Progress, Stage};
use reflect::Reflect;
use report::{Report, Run};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the homes are looked at.
const TICK: Duration = Duration::from_millis(50);
/// No further home hangs up when for this long none did, and none comes online after the time of `--redial` beside it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Packets under way have arrived when for this long nothing did.
const SETTLED: Duration = Duration::from_millis(500);
/// The longest time that packets under way are awaited.
const SETTLING: Duration = Duration::from_secs(5);
/// Verified packets a second, unless an operator wants others: for each home one in each family, but not more than this.
const PACKETS: u32 = 10_000;
/// The size of the largest IP packet in PPPoE (RFC 2516 §7).
const LARGEST: usize = 1492;

/// What `sluice load` is asked for.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Homes connect by PPPoE at the wanted rate and stay for the wanted time. Meanwhile each sends verified packets in both families: \
every packet says who sent it to whom and when, and every arrival is checked.

By default each home sends to the next one, through the gateway. A lost packet may be lost on its way up or down, and the delay \
is one way. With --reflector, homes send to `sluice load reflect` on a host at the core side. Losses are told apart by direction, \
and the delay is that of both ways.

Homes that leave (--flap) send and are sent nothing from half a second before, so that their leaving costs no packet.

Ctrl-C ends all sessions and prints the report; a second one ends them at once with PADTs.

Exit status: 0 if every home was online at the end, no session ended unasked, and no packet came twice, changed, or to the wrong \
home; with --max-loss, if no more packets were lost. Otherwise 1."
)]
pub struct Load {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    options: LoadOptions,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Part {
    Reflect(Reflect),
}

#[derive(Clone, Debug, clap::Args)]
struct LoadOptions {
    /// Interface towards the gateway; others may use it too. Needs root, or CAP_NET_RAW
    #[arg(long, required = true, value_name = "NAME")]
    interface: Option<String>,
    #[command(flatten)]
    homes: HomeOptions,
    /// Homes that connect a second
    #[arg(long, default_value_t = 100.0, value_name = "N", value_parser = rate)]
    rate: f64,
    /// Seconds that homes stay, after all of them are online
    #[arg(long, default_value_t = 60, value_name = "S")]
    duration: u64,
    /// Maximum number of homes whose sessions are being set up or ended at one time
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: u32,
    /// Seconds before a home whose attempt failed tries again
    #[arg(long, default_value_t = 5, value_name = "S")]
    redial: u64,
    /// Verified packets that homes send a second, all homes together; 0: none [default: one for each home and family, at most 10000]
    #[arg(long, value_name = "N")]
    pps: Option<u32>,
    /// Homes send nothing until all of them are online [default: each sends as soon as it is online]
    #[arg(long)]
    wait_for_all: bool,
    /// Send to a reflector at this address instead of from home to home; may be given once for each family
    #[arg(long, value_name = "ADDRESS")]
    reflector: Vec<IpAddr>,
    /// Homes that leave a second, to come back
    #[arg(long, value_name = "N", value_parser = rate)]
    flap: Option<f64>,
    /// How they leave: with Terminate-Request and PADT, with PADT alone, without a word, or in turn
    #[arg(
        long,
        value_enum,
        default_value = "in-turn",
        value_name = "HOW",
        requires = "flap"
    )]
    flap_how: FlapHow,
    /// Seconds that they stay away
    #[arg(long, default_value_t = 2, value_name = "S", requires = "flap")]
    flap_off: u64,
    /// Fail if more than this share of the packets of a family is lost, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_loss: Option<f64>,
    /// Write the report to this file too, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the report as JSON; progress goes to the standard error in any case
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.01..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("not a number from 0.01 to 100000".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("not a number from 0 to 100".into()),
    }
}

/// `--flap-how`.
// Without doc comments: clap would print a list of them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FlapHow {
    Terminate,
    Padt,
    Silent,
    InTurn,
}

/// `sluice load`.
pub fn run(load: &Load) -> ExitCode {
    let done = match &load.part {
        Some(Part::Reflect(reflect)) => reflect.run().map(|()| true),
        None => load.options.run(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sluice load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl LoadOptions {
    /// Whether everything was as it should be.
    fn run(&self) -> Result<bool> {
        let interface = self.interface.as_deref().context("no interface")?;
        let configs = self.homes.configs().map_err(anyhow::Error::msg)?;
        let largest = largest_packet(interface, self.homes.tags())?;
        let plan = self.plan(largest)?;
        let port = Port::interface(interface)?;
        let residents = Residents {
            first: 0,
            all: configs.len() as u32,
            configs,
        };
        let interrupt = Interrupt::listen().context("cannot listen for signals")?;
        let conductor = Conductor {
            options: self,
            network: AccessNetwork::open(residents, plan, port)?,
            progress: Progress::new(self.homes.homes),
            rounds: Rounds::default(),
            interrupt,
        };
        let done = conductor.conduct()?;
        let mut report = Report::new(&Run {
            interface,
            status: &done.status,
            outcome: &done.outcome,
            interrupted: done.interrupted,
            reflected: !self.reflector.is_empty(),
            cpu: done.cpu,
            memory: memory()?,
            set_ups: done.set_ups,
            rounds: done.rounds,
            max_loss: self.max_loss,
            delegation: self.homes.delegation,
        });
        if largest < LARGEST {
            report.note(format!(
                "the MTU of {interface} has room for IP packets of {largest} octets only: larger ones were not sent"
            ));
        }
        self.print(&report)?;
        Ok(report.is_good())
    }

    fn print(&self, report: &Report) -> Result<()> {
        let json = serde_json::to_string_pretty(report)?;
        let text = match self.json {
            true => json.clone(),
            false => report.lines(terminal_width()).join("\n"),
        };
        // Whoever has closed the pipe has seen enough.
        let _ = writeln!(std::io::stdout(), "{text}");
        match &self.report {
            Some(file) => std::fs::write(file, format!("{json}\n"))
                .with_context(|| format!("cannot write {}", file.display())),
            None => Ok(()),
        }
    }

    fn plan(&self, largest: usize) -> Result<Plan> {
        Ok(Plan {
            dialling: Dialling {
                at_once: self.at_once,
                rate: Some(self.rate),
                redial: Duration::from_secs(self.redial),
            },
            flapping: self.flapping(),
            far: self.far()?,
            interval: self.interval(),
            largest,
            pause: Duration::ZERO,
            run: rand::random(),
        })
    }

    fn flapping(&self) -> Option<Flapping> {
        let how = match self.flap_how {
            FlapHow::Terminate => Some(Leaving::Terminate),
            FlapHow::Padt => Some(Leaving::Padt),
            FlapHow::Silent => Some(Leaving::Silent),
            FlapHow::InTurn => None,
        };
        self.flap.map(|rate| Flapping {
            rate,
            how,
            off: Duration::from_secs(self.flap_off),
        })
    }

    fn far(&self) -> Result<Far> {
        let speaks = self.pps != Some(0);
        ensure!(
            speaks || self.max_loss.is_none() && self.reflector.is_empty(),
            "with --pps 0 there are no packets for --reflector and --max-loss"
        );
        if self.reflector.is_empty() {
            ensure!(
                self.homes.homes > 1 || !speaks,
                "one home has no other home to send to: give a reflector, or --pps 0"
            );
            return Ok(Far::Homes);
        }
        let mut far = [None; Family::ALL.len()];
        for &address in &self.reflector {
            let place = &mut far[family_of(address) as usize];
            if place.replace(address).is_some() {
                bail!("two reflectors of one family");
            }
        }
        ensure!(
            self.families() > 0,
            "no reflector is of a family that homes ask for"
        );
        Ok(Far::Reflector(far))
    }

    /// Address families in which homes send: those that they ask for and that have a far side.
    fn families(&self) -> u32 {
        let has_far_side = |family| {
            let mut reflectors = self.reflector.iter();
            self.reflector.is_empty() || reflectors.any(|&address| family_of(address) == family)
        };
        let families = Family::ALL.into_iter();
        let families = families.filter(|&f| self.homes.ask_for(f) && has_far_side(f));
        families.count() as u32
    }

    /// How often a home sends one packet in each family.
    fn interval(&self) -> Option<Duration> {
        let each = self.homes.homes * self.families();
        let per_second = self.pps.unwrap_or(each.min(PACKETS));
        let interval = f64::from(each) / f64::from(per_second);
        (per_second > 0).then(|| Duration::from_secs_f64(interval))
    }

    /// How long all homes take at the wanted rate, to come online or to hang up.
    fn planned(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.homes.homes) / self.rate)
    }

    /// How long no home may come online before nobody waits any more. A home that fails may wait for `--redial` before it tries again.
    fn patience(&self) -> Duration {
        PATIENCE.saturating_add(Duration::from_secs(self.redial))
    }
}

/// Lets the homes do one thing after the other.
struct Conductor<'o> {
    options: &'o LoadOptions,
    network: AccessNetwork,
    progress: Progress,
    rounds: Rounds,
    interrupt: Interrupt,
}

/// Rounds of traffic: in each, every home receives a packet in both families.
#[derive(Debug, Default)]
struct Rounds {
    /// Rounds that are over.
    count: u64,
    /// When the round of now began.
    began: Option<Instant>,
}

/// What was noted on the way.
struct Stages {
    interrupted: bool,
    /// CPU time of this process until the homes were online, and set-ups until then.
    cpu: Duration,
    set_ups: u64,
}

/// What it has come to.
struct Done {
    status: Status,
    outcome: Outcome,
    interrupted: bool,
    cpu: [Duration; 2],
    set_ups: u64,
    rounds: u64,
}

impl Conductor<'_> {
    fn conduct(mut self) -> Result<Done> {
        let staged = self.stages();
        self.progress.finish();
        // If the homes' thread has ended by itself, its own error says more.
        let (status, outcome) = self.network.finish()?;
        let Stages {
            interrupted,
            cpu: set_up_cpu,
            set_ups,
        } = staged?;
        Ok(Done {
            status,
            outcome,
            interrupted,
            cpu: [set_up_cpu, cpu()?],
            set_ups,
            rounds: self.rounds.count,
        })
    }

    fn stages(&mut self) -> Result<Stages> {
        let all = self.options.homes.homes;
        if self.options.wait_for_all {
            self.network.order(Order::Quiet);
        }
        self.set_up()?;
        let (cpu, set_ups) = (cpu()?, self.network.status().set_ups);
        if self.options.wait_for_all {
            self.network.order(Order::Speak);
        }
        self.begin_round();
        self.network.order(Order::Flap);
        let length = Duration::from_secs(self.options.duration);
        self.watch(Stage::Running(length), length, |_| false)?;
        self.network.order(Order::Stay);
        if self.options.flap.is_some() {
            let off = Duration::from_secs(self.options.flap_off);
            let limit = off.saturating_add(self.options.patience());
            self.watch(Stage::Returning, limit, |s| s.at(State::Online) == all)?;
        }
        let interrupted = self.interrupt.is_asked();
        // A second Ctrl-C is noticed from here on: while packets settle and while homes hang up.
        self.interrupt.listen_again();
        self.settle()?;
        if !interrupted {
            // One while packets settle is the first: homes hang up then, as for any first one.
            self.interrupt.listen_again();
        }
        self.hang_up()?;
        Ok(Stages {
            interrupted,
            cpu,
            set_ups,
        })
    }

    /// All homes come online; whether or not they can, it is over when no further home has come online for a while.
    fn set_up(&mut self) -> Result<()> {
        let homes = self.options.homes.homes;
        let (planned, patience) = (self.options.planned(), self.options.patience());
        let (start, mut since, mut online) = (Instant::now(), Instant::now(), 0);
        while online < homes && !self.interrupt.is_asked() {
            let now = self.look(Stage::SettingUp)?.ever_online;
            if now > online || start.elapsed() < planned {
                (online, since) = (now, Instant::now());
            }
            if since.elapsed() > patience {
                break;
            }
            sleep(TICK);
        }
        Ok(())
    }

    /// Shows how it is getting on until it is as wanted, the time is over, or somebody wants an end.
    fn watch(
        &mut self,
        stage: Stage,
        limit: Duration,
        done: impl Fn(&Status) -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < limit && !self.interrupt.is_asked() {
            let status = self.look(stage)?;
            if done(&status) {
                break;
            }
            sleep(TICK.min(limit));
        }
        Ok(())
    }

    fn look(&mut self, stage: Stage) -> Result<Status> {
        let status = self.network.status();
        let began = self.rounds.began;
        if began.is_some_and(|began| status.all_heard > Some(began)) {
            self.rounds.count += 1;
            self.begin_round();
        }
        self.progress.show(stage, &status, self.rounds.count);
        ensure!(
            !self.network.failed(),
            "the homes' thread has ended by mistake"
        );
        Ok(status)
    }

    fn begin_round(&mut self) {
        self.rounds.began = Some(Instant::now());
        self.network.order(Order::Call);
    }

    /// Nobody sends any more; waits until what is under way has arrived, or somebody wants an end.
    fn settle(&mut self) -> Result<()> {
        self.network.order(Order::Quiet);
        let (start, mut since, mut last) = (Instant::now(), Instant::now(), None);
        while since.elapsed() < SETTLED && start.elapsed() < SETTLING && !self.interrupt.is_asked()
        {
            let status = self.look(Stage::Settling)?;
            let counts = (status.sent, status.counts);
            if last.replace(counts) != Some(counts) {
                since = Instant::now();
            }
            sleep(TICK);
        }
        Ok(())
    }

    /// All homes hang up; if no further one does for a while, or somebody cannot wait for that, they leave at once.
    fn hang_up(&mut self) -> Result<()> {
        self.network.order(Order::HangUp);
        let (homes, planned) = (self.options.homes.homes, self.options.planned());
        let (start, mut since, mut offline) = (Instant::now(), Instant::now(), 0);
        while since.elapsed() < PATIENCE && !self.interrupt.is_asked() {
            let status = self.look(Stage::Leaving)?;
            let now = status.at(State::Offline);
            if status.leaving && now == homes {
                return Ok(());
            }
            if now > offline || start.elapsed() < planned {
                (offline, since) = (now, Instant::now());
            }
            sleep(TICK);
        }
        self.network.order(Order::Leave);
        Ok(())
    }
}

/// The most memory that this process has used so far, in octets.
fn memory() -> Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("cannot read the own memory")?;
    Ok(usage.max_rss() as u64 * 1024)
}

/// CPU time that this process has had so far.
fn cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("cannot read the own CPU time")?;
    let times = [usage.user_time(), usage.system_time()];
    let micros = times.map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    Ok(Duration::from_micros(micros.iter().sum::<i64>() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: Load,
    }

    fn options(words: &str) -> LoadOptions {
        let words = ["load", "--interface", "eth1"]
            .into_iter()
            .chain(words.split_whitespace());
        Line::try_parse_from(words).unwrap().load.options
    }

    #[test]
    fn a_reflector_needs_no_interface_and_homes_do() {
        let parse = |words: &[&str]| Line::try_parse_from([&["load"], words].concat());
        assert!(parse(&[]).is_err());
        assert!(parse(&["reflect"]).is_err());
        assert!(parse(&["reflect", "--listen", "192.0.2.1"]).is_ok());
        assert!(parse(&["--interface", "eth1", "--rate", "0"]).is_err());
        assert!(parse(&["--interface", "eth1", "--rate", "nan"]).is_err());
        assert!(parse(&["--interface", "eth1"]).is_ok());
    }

    #[test]
    fn packets_a_second_are_spread_over_homes_and_families() {
        let rate = |words: &str| {
            let options = options(words);
            let each = f64::from(options.homes.homes * options.families());
            options
                .interval()
                .map_or(0.0, |i| (each / i.as_secs_f64()).round())
        };
        for (words, expected) in [
            ("", 200.0),
            ("--homes 20000", 10_000.0),
            ("--homes 50 --ipv4-only", 50.0),
            ("--pps 7", 7.0),
            ("--pps 7 --reflector 192.0.2.1", 7.0),
            ("--homes 50 --reflector 2001:db8::1", 50.0),
            (
                "--homes 50 --reflector 192.0.2.1 --reflector 2001:db8::1",
                100.0,
            ),
            ("--pps 0", 0.0),
        ] {
            assert_eq!(rate(words), expected, "{words}");
        }
    }

    #[test]
    fn who_the_homes_send_to_is_checked() {
        assert!(matches!(options("").far(), Ok(Far::Homes)));
        assert!(options("--homes 1").far().is_err());
        assert!(options("--homes 1 --pps 0").far().is_ok());
        let far = options("--homes 1 --reflector 192.0.2.1 --reflector 2001:db8::1").far();
        assert!(matches!(far, Ok(Far::Reflector([Some(_), Some(_)]))));
        let twice = options("--reflector 192.0.2.1 --reflector 192.0.2.2");
        assert!(twice.far().is_err());
        let none = options("--ipv4-only --reflector 2001:db8::1");
        assert!(none.far().is_err() && none.interval().is_none());
        for silent in ["--reflector 192.0.2.1", "--max-loss 1"] {
            assert!(options(silent).far().is_ok(), "{silent}");
            assert!(options(&format!("--pps 0 {silent}")).far().is_err());
        }
    }

    #[test]
    fn a_home_that_waits_to_try_again_is_waited_for() {
        assert_eq!(options("").patience(), Duration::from_secs(35));
        assert_eq!(options("--redial 60").patience(), Duration::from_secs(90));
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        let is_taken = |words: &str| {
            let words = ["load", "--interface", "eth1"]
                .into_iter()
                .chain(words.split_whitespace());
            Line::try_parse_from(words).is_ok()
        };
        for (words, taken) in [
            ("--flap-how padt", false),
            ("--flap-off 3", false),
            ("--flap 1 --flap-how padt --flap-off 3", true),
            ("--flap 1 --flap-how loud", false),
            ("--outer-tpid 88a8", false),
            ("--outer-tpid 88a8 --vlan 7", true),
            ("--max-loss 0", true),
            ("--max-loss 100", true),
            ("--max-loss 100.1", false),
            ("--max-loss=-1", false),
            ("--max-loss nan", false),
            ("--max-loss inf", false),
        ] {
            assert_eq!(is_taken(words), taken, "{words}");
        }
    }

    #[test]
    fn homes_leave_as_they_are_told() {
        assert!(options("").flapping().is_none());
        let how = |words: &str| options(words).flapping().unwrap().how;
        assert_eq!(how("--flap 3 --flap-how silent"), Some(Leaving::Silent));
        assert_eq!(how("--flap 3"), None);
    }
}
