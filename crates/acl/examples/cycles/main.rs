//! What a look-up costs: `cargo run --release -p acl --example cycles`.
//!
//! Lists of 150 and 4,000 rules, and traffic of which most goes to addresses that the list names, in an order that no branch
//! predictor learns. Cycles are those of a clock of 2.6 GHz.

mod lists;

use std::hint::black_box;
use std::time::{Duration, Instant};

use acl::{Classifier, Packet4, Packet6, Rule};
use lists::{Family, List, Packet};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const PACKETS: usize = 1 << 16;
const BURST: usize = 64;
const ROUNDS: usize = 100;
const GIGAHERTZ: f64 = 2.6;

fn main() {
    for rules in [150, 4000] {
        whole(rules);
    }
    println!("rules  lists  family  nanoseconds  cycles");
    for rules in [150, 4000] {
        for lists in [1, 8] {
            measure::<Packet4>(rules, lists, Family::V4, Classifier::first_match_v4);
            measure::<Packet6>(rules, lists, Family::V6, Classifier::first_match_v6);
        }
    }
}

/// Prints what a list with so many rules of each family takes.
fn whole(count: usize) {
    let lists = [Family::V4, Family::V6].map(|family| List::draw(family, count, 6).rules);
    // The last rule is for both families.
    let rules = [&lists[0][..count - 1], &lists[1]].concat();
    let start = Instant::now();
    let octets = compile(&rules).octets();
    let time = start.elapsed();
    println!(
        "{} rules: {octets} octets, compiled in {time:?}",
        rules.len()
    );
    let start = Instant::now();
    let shadowed = acl::shadowed(&rules).len();
    println!("{shadowed} are shadowed, found in {:?}", start.elapsed());
}

/// Prints the cost of a packet of one family. Every packet of a burst belongs to one of the lists.
fn measure<P: Packet>(
    rules: usize,
    lists: usize,
    family: Family,
    first_match: impl Fn(&Classifier, &P) -> Option<u32>,
) {
    let mut random = SmallRng::seed_from_u64(7);
    let seeds = 6..6 + lists as u64;
    let lists: Vec<List> = seeds.map(|seed| List::draw(family, rules, seed)).collect();
    let compiled: Vec<Classifier> = lists.iter().map(|list| compile(&list.rules)).collect();
    let packets: Vec<(usize, P)> = (0..PACKETS)
        .map(|_| {
            let number = random.random_range(0..lists.len());
            let first_match = |packet: &P| first_match(&compiled[number], packet);
            (number, lists[number].packet(&mut random, first_match))
        })
        .collect();
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for burst in packets.chunks(BURST) {
            let mut found = [0; BURST];
            for (found, (number, packet)) in found.iter_mut().zip(burst) {
                *found = first_match(&compiled[*number], packet).unwrap_or(u32::MAX);
            }
            black_box(&found);
        }
        best = best.min(start.elapsed());
    }
    let nanoseconds = best.as_nanos() as f64 / PACKETS as f64;
    println!(
        "{rules:5}  {:5}  {:>6}  {nanoseconds:11.1}  {:6.1}",
        lists.len(),
        format!("{family:?}"),
        nanoseconds * GIGAHERTZ
    );
}

fn compile(rules: &[Rule]) -> Classifier {
    Classifier::new(rules).expect("not too large")
}
