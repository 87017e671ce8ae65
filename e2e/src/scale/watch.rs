//! The frames that come to homes, counted all the time, to see when traffic stands still.

use anyhow::{Context, Result};
use lab::netns::Netns;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often they are counted.
const EVERY: Duration = Duration::from_millis(10);
/// Traffic is back when this share of its rate flows.
const SHARE: f64 = 0.9;
/// For how long it has to.
const STEADY: Duration = Duration::from_millis(200);

/// Counts the frames that arrive at an interface.
pub struct Watch {
    running: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<(Instant, u64)>>>,
}

impl Watch {
    /// From now on.
    pub fn start(netns: &Netns, interface: &str) -> Watch {
        let running = Arc::new(AtomicBool::new(true));
        let (netns, interface, go_on) = (netns.clone(), interface.to_owned(), running.clone());
        let thread = std::thread::spawn(move || {
            netns.within(|| {
                let mut counts = Vec::new();
                while go_on.load(Ordering::Relaxed) {
                    counts.push((Instant::now(), arrived(&interface)?));
                    std::thread::sleep(EVERY);
                }
                Ok(counts)
            })?
        });
        Watch { running, thread }
    }

    /// Ends it: how long after `fault` as many frames came again as before it.
    pub fn back_after(self, fault: Instant) -> Result<Duration> {
        self.running.store(false, Ordering::Relaxed);
        let counts = match self.thread.join() {
            Ok(counts) => counts?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let back = back(&counts, fault).context("traffic does not come back")?;
        Ok(back.saturating_duration_since(fault))
    }
}

/// Frames that have arrived at an interface of this thread's namespace.
fn arrived(interface: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    let frames = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(frames.context("no such interface")?.parse()?)
}

/// When frames came again at their rate from before the fault, from then on for a while.
fn back(counts: &[(Instant, u64)], fault: Instant) -> Option<Instant> {
    let at = counts.iter().position(|(when, _)| *when > fault)?;
    let (first, last) = (counts.first()?, counts.get(at.checked_sub(1)?)?);
    let before = rate(first, last);
    let (mut from, mut to) = (at, at);
    while to < counts.len() {
        if counts[to].0 - counts[from].0 < STEADY {
            to += 1;
        } else if rate(&counts[from], &counts[to]) >= SHARE * before {
            return Some(counts[from].0);
        } else {
            from += 1;
        }
    }
    None
}

fn rate((from, before): &(Instant, u64), (to, after): &(Instant, u64)) -> f64 {
    (after - before) as f64 / (*to - *from).as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_back_when_it_flows_as_before() {
        let start = Instant::now();
        let millis = |n| start + Duration::from_millis(n);
        let mut counts = Vec::new();
        let mut frames = 0;
        for n in 0..300 {
            counts.push((millis(10 * n), frames));
            // Nothing for a second, then a trickle for half of one.
            frames += match n {
                100..200 => 0,
                200..250 => 3,
                _ => 10,
            };
        }
        let found = back(&counts, millis(1000)).unwrap();
        let expected = 2480..=2500;
        assert!(
            expected.contains(&(found - start).as_millis()),
            "{:?}",
            found - start
        );
        assert_eq!(back(&counts[..260], millis(1000)), None);
    }
}
