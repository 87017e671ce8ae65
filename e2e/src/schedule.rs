//! Which case runs when and where: those that do nothing but work side by side, in lanes; those that load the machine, or
//! measure, alone.

use crate::cases::{Case, Needs};
use crate::fixture::FAMILY;
use crate::guard;
use crate::lane::{self, Lane};
use crate::turn::Turn;
use anyhow::{Result, anyhow};
use lab::claim;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

/// A lane boots a virtual machine rather than ending while so many cases wait for one.
const WORTH_A_MACHINE: usize = 4;

/// Runs cases in so many lanes, then those that want to be alone in one; whether all passed.
pub fn run(cases: &[&'static Case], lanes: usize) -> Result<bool> {
    static STOPPING: AtomicBool = AtomicBool::new(false);
    guard::on_signal(|signal| {
        STOPPING.store(true, Ordering::Relaxed);
        eprintln!("e2e: ended by signal {signal}: cleaning up");
        lane::end_all();
    })?;
    let start = Instant::now();
    let (alone, beside): (Vec<&'static Case>, Vec<&'static Case>) =
        cases.iter().partition(|case| case.needs == Needs::Alone);
    println!(
        "{} cases in {lanes} lanes, then {} alone",
        beside.len(),
        alone.len()
    );
    let run = Run {
        all: cases.len(),
        stopping: &STOPPING,
        done: Mutex::default(),
    };
    if !beside.is_empty() {
        let _turn = Turn::beside_others()?;
        run.side_by_side(beside, lanes)?;
    }
    if !alone.is_empty() {
        let _turn = Turn::alone()?;
        run.side_by_side(alone, 1)?;
    }
    while STOPPING.load(Ordering::Relaxed) {
        thread::park(); // whoever ends this process does it
    }
    let done = run.done.into_inner();
    let failed = done.unwrap_or_else(|poisoned| poisoned.into_inner()).failed;
    Ok(conclude(cases.len(), &failed, start))
}

/// Says how it went, after everything; whether all passed.
pub fn conclude(all: usize, failed: &[&str], start: Instant) -> bool {
    for name in failed {
        println!("failed: {name}   (again alone: make e2e CASE={name})");
    }
    println!("end to end: {:.0} s", start.elapsed().as_secs_f64());
    println!("{} passed, {} failed", all - failed.len(), failed.len());
    failed.is_empty()
}

/// What the lanes share.
struct Run<'a> {
    all: usize,
    stopping: &'a AtomicBool,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    count: usize,
    failed: Vec<&'static str>,
}

impl Run<'_> {
    fn side_by_side(&self, cases: Vec<&'static Case>, lanes: usize) -> Result<()> {
        let lanes = lanes.min(cases.len());
        let queue = &Mutex::new(Queue(cases));
        thread::scope(|scope| {
            let lanes: Vec<_> = (0..lanes)
                .map(|number| scope.spawn(move || self.lane(queue, number == 0)))
                .collect();
            lanes.into_iter().try_for_each(|lane| {
                let ended = lane.join();
                ended.map_err(|_| anyhow!("a thread that runs a lane panicked"))?
            })
        })
    }

    /// Has a lane run what is left, and another one in its place if it dies.
    fn lane(&self, queue: &Mutex<Queue>, mut has_machine: bool) -> Result<()> {
        let mut lane = None;
        while !self.stopping.load(Ordering::Relaxed) {
            let Some(case) = lock(queue).next(has_machine) else {
                break;
            };
            has_machine |= case.needs == Needs::Machine;
            let mut running = match lane.take() {
                Some(lane) => lane,
                None => Lane::start()?,
            };
            let (mut said, passed) = running.run(case)?;
            match passed {
                Some(_) => lane = Some(running),
                None => {
                    said.push_str(&running.close()?.0);
                    said.push_str("        FAILED: its process died\n");
                    claim::clear_dead(FAMILY)?;
                }
            }
            self.tell(case, &said, passed == Some(true));
        }
        let Some(lane) = lane else { return Ok(()) };
        let (said, well) = lane.close()?;
        print!("{said}");
        match well || self.stopping.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(anyhow!("a lane did not clean up")),
        }
    }

    /// Prints all that a case said, at once.
    fn tell(&self, case: &Case, said: &str, passed: bool) {
        let mut done = lock(&self.done);
        done.count += 1;
        if !passed {
            done.failed.push(case.name);
        }
        if !self.stopping.load(Ordering::Relaxed) {
            let (number, all) = (done.count, self.all);
            println!("[{number:2}/{all}] {}: {}", case.name, case.about);
            print!("{said}");
            let _ = std::io::stdout().flush();
        }
    }
}

/// The cases that wait, in order.
struct Queue(Vec<&'static Case>);

impl Queue {
    /// What a lane does next. One that has a virtual machine spares others from booting one.
    fn next(&mut self, has_machine: bool) -> Option<&'static Case> {
        let wants = |case: &&Case| (case.needs == Needs::Machine) == has_machine;
        let waiting = self.0.iter().filter(|case| !wants(case)).count();
        let at = match self.0.iter().position(wants) {
            Some(at) => at,
            None if has_machine || waiting >= WORTH_A_MACHINE => 0,
            None => return None,
        };
        (at < self.0.len()).then(|| self.0.remove(at))
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;

    #[test]
    fn every_case_has_its_turn_and_few_lanes_boot_a_machine() {
        let left: Vec<&'static Case> = CASES.iter().collect();
        let needy = |case: &Case| case.needs == Needs::Machine;
        let mut queue = Queue(left);
        assert!(needy(queue.next(true).unwrap()));
        assert!(!needy(queue.next(false).unwrap()));
        queue.0.retain(|case| needy(case));
        assert!(queue.0.len() > WORTH_A_MACHINE);
        while queue.0.len() >= WORTH_A_MACHINE {
            assert!(needy(queue.next(false).unwrap()));
        }
        assert!(queue.next(false).is_none());
        for _ in 1..WORTH_A_MACHINE {
            assert!(queue.next(true).is_some());
        }
        assert!(queue.next(true).is_none());
    }
}
