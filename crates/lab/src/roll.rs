//! A roll call: whose packets have come since it began.

use cpe::Family;

/// Who has been heard of since the last call, by home and family.
#[derive(Debug)]
pub struct Roll {
    heard: Vec<[bool; Family::ALL.len()]>,
    missing: usize,
}

impl Roll {
    /// Nobody has been called yet.
    pub fn new(homes: usize) -> Self {
        Roll {
            heard: vec![[true; Family::ALL.len()]; homes],
            missing: 0,
        }
    }

    /// Begins anew.
    pub fn call(&mut self) {
        self.heard.fill([false; Family::ALL.len()]);
        self.missing = self.heard.len() * Family::ALL.len();
    }

    /// A packet of this home came; true if it was the last that was missing.
    pub fn note(&mut self, home: usize, family: Family) -> bool {
        let heard = &mut self.heard[home][family as usize];
        if std::mem::replace(heard, true) {
            return false;
        }
        self.missing -= 1;
        self.missing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_over_when_every_home_was_heard_of_in_both_families() {
        let mut roll = Roll::new(2);
        assert!(!roll.note(0, Family::V4));
        for _ in 0..2 {
            roll.call();
            for (home, family) in [(0, Family::V4), (0, Family::V4), (1, Family::V6)] {
                assert!(!roll.note(home, family));
            }
            assert!(!roll.note(0, Family::V6));
            assert!(roll.note(1, Family::V4));
            assert!(!roll.note(1, Family::V4));
        }
    }
}
