//! Generations of session identifiers.

use crate::journal::Journal;
use crate::store::Record;

/// Key of the last generation that may be in use (u64, big endian).
pub(crate) const GENERATION_KEY: &[u8] = b"generation";
/// Number of generations that are reserved in the store at once.
const RESERVE: u64 = 1 << 20;

/// Source of generations. Two sessions never get the same one, whatever the wall clock does.
#[derive(Debug)]
pub(crate) struct Generations {
    last: u64,
    /// Last generation that is reserved in the store.
    reserved: u64,
}

impl Generations {
    /// Continues after the highest generation that may be in use.
    pub fn after(highest: u64) -> Self {
        Generations {
            last: highest,
            reserved: 0,
        }
    }

    /// Generation of the last session.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Next generation. The store has its reservation before it has the session.
    pub fn next(&mut self, journal: &mut Journal) -> u64 {
        self.last += 1;
        if self.last > self.reserved {
            self.reserved = self.last + RESERVE;
            journal.add(Record::put(GENERATION_KEY, self.reserved.to_be_bytes()));
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_written_before_the_first_and_before_the_one_behind_the_last() {
        let mut journal = Journal::new(Vec::new());
        let mut generations = Generations::after(41);
        let reserved = |n: u64| Record::put(GENERATION_KEY, n.to_be_bytes());
        assert_eq!(generations.next(&mut journal), 42);
        assert_eq!(journal.take_batch(), [reserved(42 + RESERVE)]);
        let last = (0..RESERVE).map(|_| generations.next(&mut journal)).last();
        assert_eq!(last, Some(42 + RESERVE));
        assert!(journal.is_empty());
        assert_eq!(generations.next(&mut journal), 43 + RESERVE);
        assert_eq!(journal.take_batch(), [reserved(43 + 2 * RESERVE)]);
    }
}
