use crate::arena::{Arena, Crowd, Tally};
use crate::reckoning::{no_leak, nothing_left, store_size};
use crate::rig::Rig;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Homes that dial at once.
const HOMES: u16 = 1000;
/// A store that nobody is in is compacted at this size at the latest.
const STORE_LIMIT: u64 = 64 << 20;
/// Verified packets a second.
const RATE: u32 = 10_000;

pub fn run(rig: &mut Rig) -> Result<()> {
    times(rig, 2)
}

/// The homes dial in, pass verified traffic and leave, so many times over.
pub fn times(rig: &mut Rig, rounds: u32) -> Result<()> {
    let lab = rig.without_site()?;
    let arena = Arena::open(lab)?;
    let mut held = Vec::new();
    for round in 1..=rounds {
        let crowd = Crowd::dial(lab, HOMES, RATE)?;
        let took = crowd.wait_online(&arena, Duration::from_secs(30))?;
        let before = crowd.hush();
        crowd.speak();
        crowd.hear_all(Duration::from_secs(5))?;
        let after = crowd.hush();
        crowd.check()?;
        let [one, two] = [0, 1].map(|up| Tally::since(&after[up], &before[up]));
        crowd.hang_up(&arena, Duration::from_secs(20))?;
        nothing_left(lab, &arena)?;
        println!(
            "        round {round}: {HOMES} homes online after {:.2} s, {} of {} packets lost, nothing left",
            took.as_secs_f64(),
            one.1 + two.1,
            one.0 + two.0
        );
        ensure!(one.1 + two.1 == 0, "packets were lost");
        held.push((arena.footprints()?, store_size(lab)?));
    }
    let (first, last) = (held[0], held[held.len() - 1]);
    no_leak(&first.0, &last.0)?;
    println!("        store: {} to {} octets", first.1, last.1);
    ensure!(last.1 <= STORE_LIMIT, "the store has {} octets", last.1);
    arena.close()
}
