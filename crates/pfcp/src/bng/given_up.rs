//! Control tunnels that belong to nobody any more.

use std::collections::{HashMap, VecDeque};

/// So many are remembered.
const MOST: usize = 65_536;

/// The tunnels that were given up last. A packet that comes through one of them was on its way when its session ended, or its
/// sender has not heard of the end yet.
///
/// ```
/// let mut given_up = pfcp::bng::GivenUp::default();
/// given_up.remember(7);
/// assert!(given_up.contains(7) && !given_up.contains(8));
/// ```
#[derive(Debug, Default)]
pub struct GivenUp {
    /// How often each TEID is in `order`.
    times: HashMap<u32, u32>,
    /// The one that was given up first in front.
    order: VecDeque<u32>,
}

impl GivenUp {
    /// Remembers a tunnel in place of the one that was given up first, if there are very many.
    pub fn remember(&mut self, teid: u32) {
        if self.order.len() == MOST {
            self.forget_first();
        }
        *self.times.entry(teid).or_default() += 1;
        self.order.push_back(teid);
    }

    /// Whether a tunnel is one of them.
    pub fn contains(&self, teid: u32) -> bool {
        self.times.contains_key(&teid)
    }

    fn forget_first(&mut self) {
        let Some(first) = self.order.pop_front() else {
            return;
        };
        if let Some(times) = self.times.get_mut(&first) {
            *times -= 1;
            if *times == 0 {
                self.times.remove(&first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_given_up_first_is_forgotten_first() {
        let mut given_up = GivenUp::default();
        // the first one is in use again, and is given up again
        for teid in [1, 2, 3, 1] {
            given_up.remember(teid);
        }
        (0..MOST as u32 - 3).for_each(|n| given_up.remember(100 + n));
        let known = |g: &GivenUp| [1, 2, 3, 100].map(|teid| g.contains(teid));
        assert_eq!(known(&given_up), [true, true, true, true]);
        given_up.remember(99);
        assert_eq!(known(&given_up), [true, false, true, true]);
        given_up.remember(98);
        given_up.remember(97);
        assert_eq!(known(&given_up), [false, false, false, true]);
        assert_eq!(given_up.order.len(), MOST);
        assert_eq!(given_up.times.len(), MOST);
    }
}
