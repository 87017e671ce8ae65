//! Values of which many sessions have the same.

use core::hash::{BuildHasher, Hash};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Number of values at which those that no session has any more are forgotten for the first time.
const TIDY: usize = 64;

/// Values that sessions have: equal ones are in memory once, for as long as a session has them.
pub(crate) struct Shared<T: ?Sized> {
    /// The values by their hashes. Of two with one hash the later one is here, and the other one is not shared any more.
    values: HashMap<u64, Weak<T>>,
    /// Number of values at which those that no session has any more are forgotten.
    tidy_at: usize,
}

impl<T: ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Shared {
            values: HashMap::new(),
            tidy_at: TIDY,
        }
    }
}

impl<T: ?Sized + Eq + Hash> Shared<T> {
    /// Lets a value be in the memory of an equal one if a session has that.
    pub fn share(&mut self, value: &mut Arc<T>) {
        *value = self.get(value.clone());
    }

    /// A value, in the memory of an equal one if a session has that.
    pub fn get(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let own = value.into();
        let hash = self.values.hasher().hash_one(&own);
        let known = self.values.get(&hash).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| *known == own) {
            return known;
        }
        if self.values.len() >= self.tidy_at {
            self.values.retain(|_, value| value.strong_count() > 0);
            self.tidy_at = TIDY.max(2 * self.values.len());
        }
        self.values.insert(hash, Arc::downgrade(&own));
        own
    }

    /// Whether a session has a value.
    pub fn is_used(&self, value: &T) -> bool {
        let hash = self.values.hasher().hash_one(value);
        let known = self.values.get(&hash).and_then(Weak::upgrade);
        known.is_some_and(|known| *known == *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_in_memory_once_and_those_of_nobody_are_forgotten() {
        let mut shared = Shared::<String>::default();
        let (one, same) = (shared.get("one".to_owned()), shared.get("one".to_owned()));
        assert!(Arc::ptr_eq(&one, &same));
        assert_eq!(*shared.get("two".to_owned()), "two");
        let used = ["one", "two", "three"].map(|value| shared.is_used(&value.to_owned()));
        assert_eq!(used, [true, false, false]);
        for number in 0..1000 {
            shared.get(number.to_string());
        }
        assert!(shared.values.len() <= TIDY);
        assert!(Arc::ptr_eq(&one, &shared.get("one".to_owned())));
        let many: Vec<_> = (0..1000).map(|n| shared.get(n.to_string())).collect();
        assert!(
            many.iter()
                .all(|one| Arc::ptr_eq(one, &shared.get((**one).clone())))
        );
    }
}
