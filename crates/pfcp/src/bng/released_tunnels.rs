//! Control tunnels of sessions that have ended.

use std::collections::{HashMap, VecDeque};

/// Maximum number of tunnels. Their table has room for 114,688; one that is more than half full would double as entries come and go.
const MOST: usize = 50_000;

/// The control tunnels that were released last. A packet that comes through one of them was on its way when its session ended, or its
/// sender has not heard of the end yet.
///
/// ```
/// let mut released = pfcp::bng::ReleasedTunnels::default();
/// released.remember(7);
/// assert!(released.contains(7) && !released.contains(8));
/// ```
#[derive(Debug, Default)]
pub struct ReleasedTunnels {
    /// How often each TEID is in `order`.
    times: HashMap<u32, u32>,
    /// The one that was released first in front.
    order: VecDeque<u32>,
}

impl ReleasedTunnels {
    /// Remembers a tunnel in place of the one that was released first, if there are very many.
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
    fn the_one_that_was_released_first_is_forgotten_first() {
        let mut released = ReleasedTunnels::default();
        // the first one is in use again, and is released again
        for teid in [1, 2, 3, 1] {
            released.remember(teid);
        }
        (0..MOST as u32 - 3).for_each(|n| released.remember(100 + n));
        let known = |g: &ReleasedTunnels| [1, 2, 3, 100].map(|teid| g.contains(teid));
        assert_eq!(known(&released), [true, true, true, true]);
        released.remember(99);
        assert_eq!(known(&released), [true, false, true, true]);
        released.remember(98);
        released.remember(97);
        assert_eq!(known(&released), [false, false, false, true]);
        assert_eq!(released.order.len(), MOST);
        assert_eq!(released.times.len(), MOST);
    }
}
