//! A few seeds, and what every seed promises. `make test` runs a thousand, optimised.
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
fn the_first_seeds_find_nothing() {
    for seed in 0..6 {
        if let Err(error) = sim::run(seed, None) {
            panic!("seed {seed}: {error}");
        }
    }
}
