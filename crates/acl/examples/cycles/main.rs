//! What a look-up costs: `cargo run --release -p acl --example cycles`.
//!
//! Lists of 150 and 4,000 rules, as an operator writes them, and traffic of which most goes to addresses that the list names,
//! in an order that no branch predictor learns. Cycles are those of a clock of 2.6 GHz.

mod lists;

use std::hint::black_box;
use std::time::{Duration, Instant};

use acl::{Classifier, Rule};
use lists::{Dice, List};

const PACKETS: usize = 1 << 16;
const BURST: usize = 64;
const GIGAHERTZ: f64 = 2.6;

fn main() {
    println!(
        "rules  classifiers  family  nanoseconds  cycles  octets of a classifier  time to compile"
    );
    for rules in [150, 4000] {
        let list = List::draw(&mut Dice(rules as u64), rules);
        let start = Instant::now();
        let count = acl::shadowed(&list.rules).len();
        println!(
            "{count} of {} rules are shadowed, found in {:?}",
            list.rules.len(),
            start.elapsed()
        );
        for classifiers in [1, 8, 64] {
            measure(
                rules,
                classifiers,
                "v4",
                List::packet4,
                Classifier::first_match_v4,
            );
            measure(
                rules,
                classifiers,
                "v6",
                List::packet6,
                Classifier::first_match_v6,
            );
        }
    }
}

/// Prints the cost of a packet of one family. Every packet of a burst belongs to one of the classifiers.
fn measure<P: Copy>(
    rules: usize,
    classifiers: usize,
    family: &str,
    draw: impl Fn(&List, &mut Dice) -> P,
    first_match: impl Fn(&Classifier, &P) -> Option<u32>,
) {
    let dice = &mut Dice(rules as u64);
    let lists: Vec<List> = (0..classifiers).map(|_| List::draw(dice, rules)).collect();
    let start = Instant::now();
    let compiled: Vec<Classifier> = lists.iter().map(|list| compile(&list.rules)).collect();
    let compile_time = start.elapsed() / classifiers as u32;
    let packets: Vec<(u32, P)> = (0..PACKETS)
        .map(|_| {
            let number = dice.below(classifiers as u64);
            (number as u32, draw(&lists[number as usize], dice))
        })
        .collect();
    let mut best = Duration::MAX;
    for _ in 0..30 {
        let start = Instant::now();
        for burst in packets.chunks(BURST) {
            let mut found = [0; BURST];
            for (found, (number, packet)) in found.iter_mut().zip(burst) {
                *found = first_match(&compiled[*number as usize], packet).unwrap_or(u32::MAX);
            }
            black_box(&found);
        }
        best = best.min(start.elapsed());
    }
    let nanoseconds = best.as_nanos() as f64 / PACKETS as f64;
    let octets = compiled.iter().map(Classifier::octets).sum::<usize>() / classifiers;
    println!(
        "{rules:5}  {classifiers:11}  {family:>6}  {nanoseconds:11.1}  {:6.1}  {octets:22}  {compile_time:?}",
        nanoseconds * GIGAHERTZ
    );
}

fn compile(rules: &[Rule]) -> Classifier {
    Classifier::new(rules).expect("not too large")
}
