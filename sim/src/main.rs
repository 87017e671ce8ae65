//! Runs seeds of the simulation, one after another on every processor, and says which of them fail.

use anyhow::{Context, bail, ensure};
use clap::Parser;
use sim::outage::TRIALS;
use sim::outage::kills::Kills;
use sim::outage::overload::OVERLOADS;
use sim::outage::storms::STORMS;
use std::cell::Cell;
use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Simulates the gateway.
#[derive(Parser)]
struct Arguments {
    /// Run these seeds, `0-999`; one alone as `7` or `7-7`.
    #[arg(long, default_value = "0-999", value_parser = range)]
    seeds: RangeInclusive<u64>,
    /// Print everything that happens, of one seed.
    #[arg(long)]
    trace: bool,
    /// Run the trials with many homes instead: RADIUS servers in trouble, overload, storms, and kills.
    #[arg(long)]
    outages: bool,
    /// Of these trials only those whose name contains this.
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    /// The seed of these trials.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A run of so many seeds has to have had what the simulation is for.
const MANY: u64 = 100;
/// A run of at least so many seeds has to have had this many takeovers of fixed addresses.
const TAKEOVERS: (u64, u64) = (1000, 10_000);
/// How many seeds go by between two lines that say how far it is.
const PROGRESS: u64 = 250;

fn range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = |_| format!("`{text}`: expected two numbers, as in `0-999`");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok(first.parse().map_err(wrong)?..=last.parse().map_err(wrong)?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (first, last) = (*arguments.seeds.start(), *arguments.seeds.end());
    let result = match arguments.trace {
        _ if arguments.outages => outages(&arguments.only, arguments.seed),
        true if first == last => trace(first),
        true => Err(anyhow::anyhow!(
            "--trace prints one seed: --seeds {first}-{first}"
        )),
        false => many(arguments.seeds),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn trace(seed: u64) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut failed = None;
    let log = |at: core::time::Duration, what: &str| {
        failed = failed
            .take()
            .or(writeln!(out, "{:12.6} {what}", at.as_secs_f64()).err());
    };
    let result = sim::run(seed, Some(Box::new(log)));
    out.flush().context("standard output")?;
    match result {
        Ok(summary) => println!("seed {seed}: {summary:?}"),
        Err(what) => bail!("seed {seed}: {what}"),
    }
    Ok(())
}

/// Every overload, storm, series of kills and trial with servers in trouble, each by itself.
fn outages(only: &str, seed: u64) -> anyhow::Result<()> {
    let mut trials = Trials {
        only,
        failed: Vec::new(),
    };
    for overload in OVERLOADS {
        trials.run(overload.name, || overload.run(seed));
    }
    for storm in STORMS {
        trials.run(storm.name, || storm.run(seed));
    }
    for kills in Kills::every() {
        trials.run(&kills.name(), || kills.run(seed));
    }
    for trial in TRIALS {
        trials.run(trial.name, || trial.run(seed));
    }
    let failed = trials.failed;
    ensure!(failed.is_empty(), "trials failed: {failed:?}");
    Ok(())
}

/// Trials that are run, and those that failed.
struct Trials<'a> {
    only: &'a str,
    failed: Vec<String>,
}

impl Trials<'_> {
    /// Runs a trial, if it is wanted, and prints what came of it and how long that took.
    fn run<T: Display>(&mut self, name: &str, trial: impl FnOnce() -> Result<T, String>) {
        if !name.contains(self.only) {
            return;
        }
        let began = std::time::Instant::now();
        match trial() {
            Ok(outcome) => println!("{name} ({:.0} s): {outcome}", began.elapsed().as_secs_f64()),
            Err(what) => {
                println!("{name}: {what}");
                self.failed.push(name.to_owned());
            }
        }
    }
}

fn failure(seed: u64, what: &str) -> String {
    format!("seed {seed}: {what}. To see everything: make sim SEEDS={seed}-{seed} TRACE=1")
}

thread_local! {
    /// What this thread runs.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

fn many(seeds: RangeInclusive<u64>) -> anyhow::Result<()> {
    // A panic ends the run at once: it has to say by itself where it was.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{}", failure(SEED.get(), &panic.to_string()));
    }));
    let next = AtomicU64::new(*seeds.start());
    let failures = Mutex::new(Vec::new());
    let total = Mutex::new(sim::Summary::default());
    let began = std::time::Instant::now();
    let done = AtomicU64::new(0);
    let count = seeds.clone().count() as u64;
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return;
            }
            SEED.set(seed);
            match sim::run(seed, None) {
                Ok(summary) => *total.lock().expect("no panic") += summary,
                Err(what) => {
                    eprintln!("{}", failure(seed, &what));
                    failures.lock().expect("no panic").push(seed);
                }
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(PROGRESS) && done < count {
                println!(
                    "{done} of {count} seeds, {:.0} s",
                    began.elapsed().as_secs_f64()
                );
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let total = *total.lock().expect("no panic");
    println!(
        "{count} seeds in {:.1} s: {total:?}",
        began.elapsed().as_secs_f64()
    );
    let mut failed = failures.into_inner().expect("no panic");
    failed.sort_unstable();
    match failed.len() {
        0 => judge(count, &total),
        count => bail!("{count} seeds failed: {failed:?}"),
    }
}

/// Seeds that find nothing show nothing if nothing happened in them.
fn judge(seeds: u64, total: &sim::Summary) -> anyhow::Result<()> {
    if seeds < MANY {
        return Ok(());
    }
    ensure!(
        total.changes > 0,
        "no change of the configuration came into force"
    );
    ensure!(
        total.ordered > 0,
        "no request of a RADIUS server was acknowledged"
    );
    let (many, least) = TAKEOVERS;
    ensure!(
        total.takeovers > 0 && total.hurried > 0,
        "no fixed address was taken over, or none in haste"
    );
    ensure!(
        seeds < many || total.takeovers >= least,
        "{} fixed addresses were taken over, fewer than {least}",
        total.takeovers
    );
    ensure!(
        total.exact > total.sessions / 2,
        "accounting says of {} of {} sessions exactly what they carried: fewer than half",
        total.exact,
        total.sessions
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_seeds_in_which_little_happened_fail() {
        let most = sim::Summary {
            changes: 1,
            ordered: 1,
            takeovers: 9_999,
            hurried: 1,
            sessions: 10,
            exact: 6,
            ..sim::Summary::default()
        };
        judge(MANY, &most).unwrap();
        let unchanged = sim::Summary { changes: 0, ..most };
        let disobeyed = sim::Summary { ordered: 0, ..most };
        let inexact = sim::Summary { exact: 5, ..most };
        let kept = sim::Summary {
            takeovers: 0,
            ..most
        };
        let unhurried = sim::Summary { hurried: 0, ..most };
        judge(TAKEOVERS.0 - 1, &most).unwrap();
        judge(TAKEOVERS.0, &most).unwrap_err();
        for little in [unchanged, disobeyed, inexact, kept, unhurried] {
            judge(MANY, &little).unwrap_err();
            judge(MANY - 1, &little).unwrap();
        }
    }
}
