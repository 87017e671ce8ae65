use crate::home::Home;
use crate::rig::Rig;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Of one core, each daemon.
const MOST_PERCENT: f64 = 3.0;

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
    sleep(Duration::from_secs(10));
    let (after, elapsed) = (used()?, start.elapsed());
    for ((name, _), (before, after)) in daemons.iter().zip(before.iter().zip(&after)) {
        let percent = 100.0 * (*after - *before).as_secs_f64() / elapsed.as_secs_f64();
        println!("        {name}: {percent:.1} % of a core");
        ensure!(
            percent < MOST_PERCENT,
            "{name} takes {percent:.1} % of a core while nothing happens"
        );
    }
    one.hang_up()?;
    two.hang_up()
}

/// What all threads of a process have used so far.
fn cpu_time(id: i32) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        // The first number: nanoseconds on a processor.
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let nanoseconds = text
            .split_whitespace()
            .next()
            .context("an empty schedstat")?
            .parse()?;
        total += Duration::from_nanos(nanoseconds);
    }
    Ok(total)
}
