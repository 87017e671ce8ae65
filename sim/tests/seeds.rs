//! A few seeds, and what every seed promises. `make test` runs two thousand, optimised.
//!
//! What a seed once found has a test of its own in the room where it was mended: a seed stands for the same story only
//! until the simulation draws one random number more.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Everything that happens with a seed, as one number, and how it ends.
fn history(seed: u64) -> (u64, Result<sim::Summary, String>) {
    let hash = RefCell::new(DefaultHasher::new());
    let log = |at: core::time::Duration, what: &str| (at, what).hash(&mut *hash.borrow_mut());
    let result = sim::run(seed, Some(Box::new(log)));
    (hash.borrow().finish(), result)
}

#[test]
fn a_seed_does_the_same_again_and_another_does_not() {
    let (first, again, other) = (history(3), history(3), history(4));
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
}

#[test]
fn the_first_seeds_find_nothing_and_every_check_is_in_force() {
    let mut total = sim::Summary::default();
    let crowded = (6..).find(|seed| sim::is_crowded(*seed));
    for seed in (0..6).chain(crowded) {
        match sim::run(seed, None) {
            Ok(summary) => total += summary,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert_eq!(total.lively, 7, "everybody has to be online in every seed");
    assert!(total.crowded > 0, "room that is less than homes: {total:?}");
    assert!(total.changes > 0, "changes of the configuration: {total:?}");
    assert!(total.takeovers > 0, "fixed addresses: {total:?}");
    // What dies takes along what it counted; of most sessions nothing is lost.
    assert!(total.exact > total.sessions / 2, "{total:?}");
}
