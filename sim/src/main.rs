//! Runs seeds of the simulation, one after another on every processor, and says which of them fail.

use anyhow::{Context, bail};
use clap::Parser;
use std::io::{BufWriter, Write};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Simulates the gateway.
#[derive(Parser)]
struct Arguments {
    /// Run this seed alone.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run these seeds, `0-999`.
    #[arg(long, default_value = "0-999", value_parser = range)]
    seeds: RangeInclusive<u64>,
    /// Print everything that happens; with --seed.
    #[arg(long, requires = "seed")]
    trace: bool,
}

fn range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = |_| format!("`{text}`: expected two numbers, as in `0-999`");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok(first.parse().map_err(wrong)?..=last.parse().map_err(wrong)?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.seed {
        Some(seed) => one(seed, arguments.trace),
        None => many(arguments.seeds),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, trace: bool) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut failed = None;
    let log = |at: core::time::Duration, what: &str| {
        failed = failed
            .take()
            .or(writeln!(out, "{:12.6} {what}", at.as_secs_f64()).err());
    };
    let result = sim::run(seed, trace.then(|| Box::new(log) as sim::Log<'_>));
    out.flush().context("standard output")?;
    match result {
        Ok(summary) => println!("seed {seed}: {summary:?}"),
        Err(what) => bail!("seed {seed}: {what}"),
    }
    Ok(())
}

fn many(seeds: RangeInclusive<u64>) -> anyhow::Result<()> {
    let next = AtomicU64::new(*seeds.start());
    let failures = Mutex::new(Vec::new());
    let total = Mutex::new(sim::Summary::default());
    let began = std::time::Instant::now();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return;
            }
            let result = std::panic::catch_unwind(|| sim::run(seed, None));
            let result = result.unwrap_or_else(|_| Err("panic".into()));
            match result {
                Ok(summary) => *total.lock().expect("no panic") += summary,
                Err(what) => {
                    eprintln!("seed {seed}: {what}");
                    failures.lock().expect("no panic").push(seed);
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let total = *total.lock().expect("no panic");
    println!(
        "{} seeds in {:.1} s: {total:?}",
        seeds.clone().count(),
        began.elapsed().as_secs_f64()
    );
    let mut failed = failures.into_inner().expect("no panic");
    failed.sort_unstable();
    match failed.first() {
        None => Ok(()),
        Some(first) => bail!(
            "{} seeds failed: {failed:?}. To see what happened: cargo run --release -p sim -- --seed {first} --trace",
            failed.len()
        ),
    }
}
