use crate::fixture::Fixture;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// How long is measured.
const LENGTH: Duration = Duration::from_secs(10);
/// What a daemon may use at most, by what a thread uses meanwhile that does nothing but sleep a millisecond at a time, as an
/// idle worker does: how often it wakes up, and processor time. What waking up costs differs from machine to machine.
const MOST: [(&str, f64, f64); 2] = [("sluice-up", 2.0, 2.5), ("sluice-cp", 0.025, 0.12)];

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let (one, two) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    one.dial("alice", "wonderland")?;
    two.dial("bob", "builder")?;
    sleep(Duration::from_secs(2));
    let ids = [stage.site.up.id(), stage.site.cp.id()];
    let before = [Used::by(ids[0])?, Used::by(ids[1])?];
    let sleeper = spawn(sleep_for_long).join().expect("it does not panic")?;
    let after = [Used::by(ids[0])?, Used::by(ids[1])?];
    println!("        a thread that only sleeps: {sleeper}");
    for ((name, wakes, processor), (before, after)) in
        MOST.into_iter().zip(before.into_iter().zip(after))
    {
        let used = after.since(before);
        let times = [
            used.wakes as f64 / sleeper.wakes as f64,
            used.processor.as_secs_f64() / sleeper.processor.as_secs_f64(),
        ];
        println!(
            "        {name}: {used}, {:.2} and {:.2} times that",
            times[0], times[1]
        );
        ensure!(
            times[0] <= wakes && times[1] <= processor,
            "while nothing happens {name} wakes up {:.2} times as often as a thread that only sleeps, at most {wakes} is right, and \
             takes {:.2} times its processor time, at most {processor} is right",
            times[0],
            times[1]
        );
        ensure!(used.wakes > 0, "{name} is not measured");
    }
    one.hang_up()?;
    two.hang_up()
}

/// What threads have used.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// How often they gave up the processor to wait for something.
    wakes: u64,
    processor: Duration,
    /// How often they waited for a page from the disk. The kernel takes pages of whoever is idle where memory is scarce, and to get them back
    /// takes processor time: so a failure can be told from a daemon that does something.
    faults: u64,
}

impl Used {
    /// By all threads of a process so far.
    fn by(id: i32) -> Result<Self> {
        let mut all = Used::default();
        for thread in fs::read_dir(format!("/proc/{id}/task"))? {
            let one = Used::of(&thread?.path())?;
            all.wakes += one.wakes;
            all.processor += one.processor;
            all.faults += one.faults;
        }
        Ok(all)
    }

    /// By a thread so far.
    fn of(thread: &Path) -> Result<Self> {
        let status = fs::read_to_string(thread.join("status"))?;
        let mut lines = status.lines();
        let wakes = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let schedstat = fs::read_to_string(thread.join("schedstat"))?;
        let nanoseconds = schedstat.split_whitespace().next();
        let stat = fs::read_to_string(thread.join("stat"))?;
        // the tenth behind the name, which may have blanks (proc(5), majflt)
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let faults = behind.split_whitespace().nth(9);
        Ok(Used {
            wakes: wakes.context("no switches")?.trim().parse()?,
            processor: Duration::from_nanos(nanoseconds.context("no time")?.parse()?),
            faults: faults.context("no page faults")?.parse()?,
        })
    }

    fn since(self, before: Used) -> Self {
        Used {
            wakes: self.wakes.saturating_sub(before.wakes),
            processor: self.processor.saturating_sub(before.processor),
            faults: self.faults.saturating_sub(before.faults),
        }
    }
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, processor) = (LENGTH.as_secs_f64(), self.processor.as_secs_f64());
        let (wakes, percent) = (self.wakes as f64 / seconds, 100.0 * processor / seconds);
        write!(
            f,
            "{wakes:.0} times a second awake, {percent:.2} % of a core, {} pages read",
            self.faults
        )
    }
}

/// What this thread used.
fn sleep_for_long() -> Result<Used> {
    let start = Instant::now();
    while start.elapsed() < LENGTH {
        sleep(Duration::from_millis(1));
    }
    Used::of(Path::new("/proc/thread-self"))
}
