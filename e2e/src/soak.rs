//! Fifty faults in random order to a gateway under load, then a thousand homes that come and go: nothing is lost, and
//! nothing leaks. Then a thousand takeovers of fixed addresses, changes by RADIUS while homes connect, 10,000 homes of
//! `sluice load`, floods, and a million sessions. At last as many sessions as there may be are resumed, also with addresses that no
//! pool covers, a full table of the internet comes by FRR, and each page and action of the web manager is tried with very many homes.

use crate::cases::{changes_beside_setups, come_and_go, flood, frr_full, load, resume, takeovers};
use crate::fixture::Fixture;
use crate::guard;
use crate::leak_check::{Allowance, no_leak};
use crate::load::{FULL_RATE, Fault, Measured};
use crate::scale;
use crate::schemathesis;
use anyhow::{Context, Result, bail};
use lab::topology::UserPlane;
use std::time::{Duration, Instant, SystemTime};

/// How many faults.
const FAULTS: u64 = 50;
/// RADIUS changes sessions, and ends some, after each of so many of them.
const CHANGES: u64 = 10;
/// A control plane that stood still catches up at once, and all of them are started anew in between.
const ALLOWED: Allowance = Allowance {
    memory: [20 << 10, 32 << 10, 32 << 10],
    descriptors: 4,
};
/// How often the homes come and go.
const ROUNDS: u16 = 10;

/// A part, for a seed and a number of faults.
type Part = fn(&mut Fixture, (u64, u64)) -> Result<()>;

/// The parts, in their order.
const PARTS: [(&str, Part); 12] = [
    ("faults", |fixture, (seed, faults)| {
        deal(fixture, seed, faults)
    }),
    ("come-and-go", |fixture, _| {
        come_and_go::times(fixture, ROUNDS)
    }),
    ("takeovers", |fixture, _| takeovers::run(fixture)),
    ("changes", |fixture, _| changes_beside_setups::run(fixture)),
    ("load", |fixture, _| load::many(fixture)),
    ("flood", |fixture, _| flood::fast(fixture)),
    ("million", |fixture, _| {
        let sessions = number("SESSIONS")?.unwrap_or(1_000_000);
        load::very_many_sessions(fixture, sessions)
    }),
    ("resume", |fixture, _| in_time(fixture)),
    ("fixed", |fixture, _| all_fixed(fixture)),
    ("frr-full", |fixture, _| frr_full::all(fixture)),
    ("web-manager", |fixture, _| scale::all_pages(fixture)),
    ("schemathesis", |fixture, (seed, _)| {
        schemathesis::run(fixture, seed)
    }),
];

/// Runs it, or one part of it. `SEED` repeats an order, `FAULTS` changes their number.
pub fn run(only: Option<&str>) -> Result<()> {
    if let Some(only) = only
        && PARTS.iter().all(|(name, _)| *name != only)
    {
        bail!("no part {only}: {:?}", PARTS.map(|(name, _)| name));
    }
    guard::start()?;
    let start = Instant::now();
    let seed = number("SEED")?.unwrap_or_else(some_seed);
    let faults = number("FAULTS")?.unwrap_or(FAULTS);
    println!("soak: SEED={seed} FAULTS={faults}");
    let mut fixture = Fixture::with_rate(FULL_RATE)?;
    let mut done = Ok(());
    for (name, part) in PARTS {
        if done.is_ok() && only.is_none_or(|only| only == name) {
            println!("soak: {name}");
            done = part(&mut fixture, (seed, faults));
        }
    }
    if done.is_err() {
        println!("{}", fixture.post_mortem("soak"));
    }
    guard::limit("cleaning up");
    fixture.close()?;
    println!("soak: {:.0} s", start.elapsed().as_secs_f64());
    done.with_context(|| format!("soak with SEED={seed}"))
}

/// After each fault everything is as before, both planes hold what is theirs, and nothing has grown.
fn deal(fixture: &mut Fixture, seed: u64, faults: u64) -> Result<()> {
    guard::limit("the gateway under load");
    let before = fixture.loaded()?.2.scenario.footprints()?;
    for number in 0..faults {
        guard::limit("a fault");
        let fault = Fault::ALL[(mixed(seed, number) % Fault::ALL.len() as u64) as usize];
        println!("[{:2}/{faults}] {fault}", number + 1);
        let (lab, vm, loaded) = fixture.loaded()?;
        let dealt = loaded.strike(lab, vm, fault);
        let dealt = dealt.and_then(|measured| measured.in_time());
        dealt.with_context(|| format!("fault {} of {faults}", number + 1))?;
        if number % CHANGES == 0 {
            loaded.change_and_reconnect(lab)?;
        }
        no_leak(&before, &loaded.scenario.footprints()?, ALLOWED)?;
    }
    summarize(&fixture.loaded()?.2.faults);
    guard::limit("the end");
    fixture.unload()
}

/// All sessions that there may be are resumed as fast as is promised.
fn in_time(fixture: &mut Fixture) -> Result<()> {
    guard::limit("very many sessions");
    resume::in_time(fixture)
}

/// As many have addresses that no pool covers.
fn all_fixed(fixture: &mut Fixture) -> Result<()> {
    guard::limit("very many addresses outside of all pools");
    resume::all_fixed(fixture)
}

/// Median and worst of everything that was measured.
fn summarize(faults: &[Measured]) {
    type Figure = fn(&Measured) -> Option<Duration>;
    let figures: [(&str, Figure); 4] = [
        ("echo answered after the kill", |m| m.echo),
        ("new home online after the kill", |m| m.newcomer),
        ("traffic of every home back after the start", |m| m.traffic),
        ("all as before", |m| Some(m.ready)),
    ];
    for (what, figure) in figures {
        let mut took: Vec<f64> = faults
            .iter()
            .filter_map(figure)
            .map(|took| took.as_secs_f64())
            .collect();
        took.sort_by(f64::total_cmp);
        if let Some(worst) = took.last() {
            let median = took[took.len() / 2];
            println!(
                "        {what}: median {median:.2} s, worst {worst:.2} s of {}",
                took.len()
            );
        }
    }
    let (mut bystanders, mut hit) = ((0, 0), (0, 0));
    for measured in faults {
        for up in UserPlane::ALL {
            let (sent, lost) = measured.lost[up as usize];
            let sum = match measured.fault.user_plane() == Some(up) {
                true => &mut hit,
                false => &mut bystanders,
            };
            *sum = (sum.0 + sent, sum.1 + lost);
        }
    }
    println!(
        "        user planes that were hit lost {} of {} packets, the others {} of {}",
        hit.1, hit.0, bystanders.1, bystanders.0
    );
}

/// The number in an environment variable, if it is set.
pub fn number(name: &str) -> Result<Option<u64>> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            let parsed = text.parse();
            parsed
                .map(Some)
                .with_context(|| format!("{name} is not a number: {text}"))
        }
        _ => Ok(None),
    }
}

fn some_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::from(now.subsec_nanos()))
}

/// SplitMix64: the same seed gives the same order everywhere.
fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_random_and_repeats() {
        let order = |seed| -> Vec<u64> { (0..50).map(|n| mixed(seed, n) % 8).collect() };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        assert!((0..8).all(|kind| order(7).contains(&kind)));
    }
}
