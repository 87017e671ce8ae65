//! A few seeds, and what every seed promises. `make test` runs a thousand more, optimised.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Seeds that once found something, by what it was.
const PAST: [(u64, &str); 2] = [
    (
        0,
        "a deletion that nobody answered was never asked for again",
    ),
    (
        12,
        "a user plane that missed an establishment kept its subscriber without rules",
    ),
];

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
fn what_was_found_once_stays_mended() {
    for (seed, what) in PAST {
        if let Err(error) = sim::run(seed, None) {
            panic!("seed {seed}, which once found that {what}: {error}");
        }
    }
}
