//! Nothing outlives the run: Ctrl-C, a panic and a case that hangs end the processes and remove the namespaces too.

use anyhow::{Context, Result};
use lab::claim;
use lab::topology::Lab;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Ends a hang. No case takes nearly as long, on a busy machine either; the first one may also make the virtual machine's
/// image.
const CASE_LIMIT: Duration = Duration::from_secs(600);

/// Ends the wait for something that does not come. Whatever is waited for is there long before, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What is running now, until when, and how long that is.
static NOW: Mutex<Option<(&str, Instant, Duration)>> = Mutex::new(None);
/// The name of the lab.
static LAB: Mutex<Option<String>> = Mutex::new(None);
/// Whether the process cleans up to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Watches over the rest of this process' life.
pub fn start() -> Result<()> {
    on_signal(|signal| {
        eprintln!("e2e: ended by signal {signal}: cleaning up");
        clean_up();
    })?;
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(500));
            if let Some((name, until, limit)) = *lock(&NOW)
                && Instant::now() > until
            {
                eprintln!("e2e: {name} took longer than {limit:?}: given up, cleaning up");
                clean_up();
                exit(1);
            }
        }
    });
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        clean_up();
        exit(101);
    }));
    Ok(())
}

/// At the first signal that asks this process to end it does this, and ends.
pub fn on_signal(act: impl FnOnce(i32) + Send + 'static) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            act(signal);
            exit(128 + signal);
        }
    });
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

/// Nothing runs until the next call of [`limit`].
pub fn idle() {
    *lock(&NOW) = None;
}

/// Whoever gives this process its work is not there any more: ends it if it is at work.
pub fn abandoned() {
    if let Some((name, ..)) = *lock(&NOW) {
        eprintln!("e2e: nobody waits for {name} any more: cleaning up");
        clean_up();
        exit(1);
    }
}

/// Remembers what there is to clean up.
pub fn protect(lab: &Lab) {
    *lock(&LAB) = Some(lab.name().to_owned());
}

/// Does not return once this process is ended: what failed because of that is no case's fault.
pub fn go_on() {
    while ENDING.load(Ordering::Relaxed) {
        thread::park();
    }
}

/// Ends what the run started and removes the namespaces; the logs stay.
fn clean_up() {
    ENDING.store(true, Ordering::Relaxed);
    if let Some(lab) = lock(&LAB).take()
        && let Err(error) = claim::end(&lab)
    {
        eprintln!("e2e: {error:#}");
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
