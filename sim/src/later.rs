//! What happens later, on a simulated clock.

use core::cmp::Ordering;
use core::time::Duration;

/// Event with its time, and a number that keeps the order of events of one time.
pub(crate) struct Later<E>(pub Duration, pub u64, pub E);

impl<E> PartialEq for Later<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<E> Eq for Later<E> {}

impl<E> PartialOrd for Later<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Later<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}
