//! The cases: settings, two values of each, and what is seen with them.

mod aaa;
mod access;
mod gateway;
mod subscribers;
mod users;

use super::Case;
use crate::world::World;

/// Policies for settings that name one.
const POLICIES: &[&str] = &[
    "set policies open unmatched permit",
    "set policies filtered",
];

const fn case(
    place: &'static str,
    values: [&'static str; 2],
    seen: [&'static str; 2],
    probe: fn(&mut World) -> String,
) -> Case {
    Case {
        place,
        values,
        seen,
        probe,
        beside: &[],
    }
}

const fn beside(lines: &'static [&'static str], case: Case) -> Case {
    Case {
        beside: lines,
        ..case
    }
}

const RADIUS: &[&str] = &["set access-profiles pppoe server-group radius"];

pub(super) fn cases() -> Vec<Case> {
    let parts = [
        gateway::cases(),
        access::cases(),
        subscribers::cases(),
        aaa::cases(),
        users::cases(),
    ];
    parts.concat()
}
