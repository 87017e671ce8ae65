use crate::fixture::Fixture;
use crate::guard;
use crate::guard::PATIENCE;
use crate::leak_check::{Allowance, complete_records, no_leak, nothing_left, store_size};
use crate::scenario::{Crowd, Scenario, Tally};
use anyhow::{Result, ensure};

/// Homes that dial at once.
const HOMES: u16 = 1000;
/// A store that nobody is in is compacted at this size at the latest.
const STORE_LIMIT: u64 = 64 << 20;
/// Octets that a session leaves behind in it at most until then.
const STORED: u64 = 3072;
/// Rounds that may follow if daemons hold more than is allowed. What their allocators keep differs from round to round, by up to what a round
/// takes while it lasts. What leaks is still there after them.
const MORE: u16 = 3;
/// What daemons may hold beyond what they held after the first round.
const ALLOWED: Allowance = Allowance {
    memory: [10 << 10; 3],
    descriptors: 1,
};
/// Verified packets a second.
const RATE: u32 = 4_000;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    times(fixture, 2)
}

/// The homes dial in, pass verified traffic and leave, so many times over.
pub fn times(fixture: &mut Fixture, rounds: u16) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let mut first = None;
    let mut round = 0;
    loop {
        round += 1;
        guard::limit("homes that come and go");
        let mut crowd = Crowd::dial(lab, HOMES, RATE)?;
        let took = crowd.wait_online(&scenario, PATIENCE)?;
        let before = crowd.hush();
        crowd.speak();
        crowd.hear_all(PATIENCE)?;
        let after = crowd.hush();
        crowd.check()?;
        let [one, two] = [0, 1].map(|up| Tally::since(&after[up], &before[up]));
        crowd.hang_up(&scenario, PATIENCE)?;
        nothing_left(lab, &scenario)?;
        println!(
            "        round {round}: {HOMES} homes online after {:.2} s, {} of {} packets lost, nothing left",
            took.as_secs_f64(),
            one.1 + two.1,
            one.0 + two.0
        );
        ensure!(one.1 + two.1 == 0, "packets were lost");
        let now = scenario.footprints()?;
        let held = no_leak(first.get_or_insert(now), &now, ALLOWED);
        let store = store_size(lab)?;
        let sessions = u64::from(HOMES) * u64::from(round);
        println!(
            "        store: {store} octets, {} for each session",
            store / sessions
        );
        ensure!(
            store <= STORE_LIMIT.min(STORED * sessions),
            "the store has {store} octets after {sessions} sessions"
        );
        let booked = complete_records(lab, &scenario)?.sessions();
        ensure!(
            booked as u64 == sessions,
            "{booked} sessions, not {sessions}"
        );
        match held {
            Ok(()) if round >= rounds => return scenario.close(),
            Err(more) if round >= rounds + MORE => return Err(more),
            _ => {}
        }
    }
}
