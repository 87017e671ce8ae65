//! What a set-up and its end cost both planes, over links in memory, and what a session holds.
use crate::report::{Entry, Samples};
use anyhow::{Error, Result};
use sim::cost::{self, HOMES, set_ups};
use std::time::Duration;

/// Measures both planes.
pub fn measure(rounds: usize) -> Result<[Entry; 2]> {
    let (mut control, mut user_plane) = (Samples::default(), Samples::default());
    for round in 0..rounds {
        let cost = set_ups(round as u64).map_err(Error::msg)?;
        let microseconds = |spent: Duration| spent.as_secs_f64() * 1e6;
        control.0.push(microseconds(cost.control));
        user_plane.0.push(microseconds(cost.user_plane));
    }
    let entry = |id, name, samples: &Samples, most| {
        let mut entry = Entry::new(id, name, "us", samples).at_most(most);
        entry.sessions = Some(HOMES as u32);
        entry
    };
    Ok([
        entry(
            "setup-cp",
            "set-up and end of a session at 10,000 a second: the control plane, without sockets and disk",
            &control,
            50.0,
        ),
        entry(
            "setup-up",
            "set-up and end of a session at 10,000 a second: the user plane, without sockets and workers",
            &user_plane,
            25.0,
        ),
    ])
}

/// More rounds show the same, within a few octets.
const MEMORY_ROUNDS: usize = 2;

/// Measures the memory of a session. `allocated` says how many octets this process has allocated.
pub fn memory(rounds: usize, allocated: impl Fn() -> usize) -> Result<Entry> {
    let mut octets = Samples::default();
    for round in 0..rounds.min(MEMORY_ROUNDS) {
        let each = cost::memory(round as u64, cost::HOMES, &allocated).map_err(Error::msg)?;
        octets.0.push(each as f64);
    }
    let name = "memory of a session in the control plane, with its part of the store's index";
    let mut entry = Entry::new("memory-session", name, "octets", &octets).at_most(1000.0);
    entry.sessions = Some(HOMES as u32);
    Ok(entry)
}
