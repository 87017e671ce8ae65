use crate::home::Home;
use crate::rig::Rig;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Of one core, each daemon, on a machine where waking up is cheap.
const MOST_PERCENT: f64 = 3.0;

/// On others: so many times what a thread takes that does nothing but sleep a millisecond at a time, as an idle worker
/// does. A virtual machine whose host is busy pays several times as much for it.
const MOST_TIMES: f64 = 1.5;

pub fn run(rig: &mut Rig) -> Result<()> {
    let stage = rig.stage(&Setup::default())?;
    let (one, two) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    one.dial("alice", "wonderland")?;
    two.dial("bob", "builder")?;
    sleep(Duration::from_secs(2));
    let daemons = [
        ("sluice-up", stage.site.up.id()),
        ("sluice-cp", stage.site.cp.id()),
    ];
    let used = || {
        daemons
            .iter()
            .map(|(_, id)| cpu_time(*id))
            .collect::<Result<Vec<_>>>()
    };
    let (before, start) = (used()?, Instant::now());
    let sleeper = spawn(sleep_for_ten_seconds)
        .join()
        .expect("it does not panic")?;
    let (after, elapsed) = (used()?, start.elapsed());
    let percent = |used: Duration| 100.0 * used.as_secs_f64() / elapsed.as_secs_f64();
    let most = MOST_PERCENT.max(MOST_TIMES * percent(sleeper));
    println!(
        "        a thread that only sleeps: {:.1} % of a core",
        percent(sleeper)
    );
    for ((name, _), (before, after)) in daemons.iter().zip(before.iter().zip(&after)) {
        let percent = percent(*after - *before);
        println!("        {name}: {percent:.1} % of a core");
        ensure!(
            percent < most,
            "{name} takes {percent:.1} % of a core while nothing happens, the limit is {most:.1} %"
        );
    }
    one.hang_up()?;
    two.hang_up()
}

/// The processor time that it took.
fn sleep_for_ten_seconds() -> Result<Duration> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        sleep(Duration::from_millis(1));
    }
    on_processor(Path::new("/proc/thread-self/schedstat"))
}

/// What all threads of a process have used so far.
fn cpu_time(id: i32) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        total += on_processor(&thread?.path().join("schedstat"))?;
    }
    Ok(total)
}

/// The first number of a schedstat: nanoseconds on a processor.
fn on_processor(schedstat: &Path) -> Result<Duration> {
    let text = fs::read_to_string(schedstat)?;
    let nanoseconds = text
        .split_whitespace()
        .next()
        .context("an empty schedstat")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}
