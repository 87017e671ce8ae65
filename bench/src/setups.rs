//! What a set-up and its end cost both planes, over links in memory.
use crate::report::{Entry, Samples};
use anyhow::{Error, Result};
use sim::cost::{HOMES, set_ups};
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
