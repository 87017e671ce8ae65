//! Nothing outlives the run: Ctrl-C, a panic and a case that hangs end the processes and remove the namespaces too.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sluice::lab::netns::Netns;
use sluice::lab::process::end_leftovers;
use sluice::lab::topology::{Lab, Place};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// No case takes nearly as long; the first one may also make the virtual machine's image.
const CASE_LIMIT: Duration = Duration::from_secs(240);

/// What is running now, until when, and how long that is.
static NOW: Mutex<Option<(&str, Instant, Duration)>> = Mutex::new(None);
/// The lab's directory and namespaces.
static LAB: Mutex<Option<(PathBuf, Vec<Netns>)>> = Mutex::new(None);

/// Watches over the rest of this process' life.
pub fn start() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            eprintln!("e2e: ended by signal {signal}: cleaning up");
            clean_up();
            std::process::exit(128 + signal);
        }
    });
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(500));
            if let Some((name, until, limit)) = *lock(&NOW)
                && Instant::now() > until
            {
                eprintln!("e2e: {name} took longer than {limit:?}: given up, cleaning up");
                clean_up();
                std::process::exit(1);
            }
        }
    });
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        clean_up();
        std::process::exit(101);
    }));
    Ok(())
}

/// `name` begins and may take [`CASE_LIMIT`].
pub fn limit(name: &'static str) {
    limit_to(name, CASE_LIMIT);
}

/// `name` begins and may take so long.
pub fn limit_to(name: &'static str, limit: Duration) {
    *lock(&NOW) = Some((name, Instant::now() + limit, limit));
}

/// Remembers what there is to clean up.
pub fn protect(lab: &Lab) {
    let places = Place::ALL
        .iter()
        .map(|&place| lab.netns(place).clone())
        .collect();
    *lock(&LAB) = Some((lab.dir().to_owned(), places));
}

/// Ends what the run started and removes the namespaces; the logs stay.
fn clean_up() {
    let Some((dir, places)) = lock(&LAB).take() else {
        return;
    };
    if let Err(error) = end_leftovers(&dir, &places) {
        eprintln!("e2e: {error:#}");
    }
    for place in places.iter().filter(|place| place.exists()) {
        if let Err(error) = place.delete() {
            eprintln!("e2e: {error:#}");
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
