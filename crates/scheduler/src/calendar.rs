//! Numbers in the order of the time, real or virtual, at which they are due.
use crate::blocks::{Blocks, Set};

/// Slots of which one word says whether they are empty.
const WORD: usize = 64;

/// A circle of sets, each for a slot of time, and which of them are not empty. It has 64 slots for each of its `W` words, a power of two up to 64.
///
/// What is due later than the circle reaches is put into the last slot; whoever takes it from there puts it back.
pub(crate) struct Calendar<const W: usize> {
    /// The earliest slot in which something may be.
    slot: u64,
    /// Slots by which numbers were made smaller.
    gone_back: u64,
    /// A bit for each word that is not 0.
    words: u64,
    /// A bit for each set that is not empty.
    full: [u64; W],
    sets: Box<[[Set; WORD]; W]>,
}

impl<const W: usize> Default for Calendar<W> {
    fn default() -> Self {
        const { assert!(W.is_power_of_two() && W <= 64) };
        Calendar {
            slot: 0,
            gone_back: 0,
            words: 0,
            full: [0; W],
            sets: Box::new([[Set::EMPTY; WORD]; W]),
        }
    }
}

impl<const W: usize> Calendar<W> {
    pub const SLOTS: usize = W * WORD;

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// The earliest slot in which something may be.
    #[inline(always)]
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// Where a slot is: the word, and the bit of it.
    #[inline(always)]
    fn place(slot: u64) -> (usize, usize) {
        let slot = slot as usize;
        (slot / WORD % W, slot % WORD)
    }

    /// Puts a number into a slot, or the nearest that there is.
    #[inline(always)]
    pub fn insert(&mut self, blocks: &mut Blocks, slot: u64, id: u32) {
        let last = self.slot + Self::SLOTS as u64 - 1;
        self.put(blocks, slot.clamp(self.slot, last), id);
    }

    /// Puts a number into a slot that there is.
    #[inline(always)]
    pub fn put(&mut self, blocks: &mut Blocks, slot: u64, id: u32) {
        debug_assert!(slot.wrapping_sub(self.slot) < Self::SLOTS as u64);
        let (word, bit) = Self::place(slot);
        blocks.push(&mut self.sets[word][bit], id);
        self.full[word] |= 1 << bit;
        self.words |= 1 << word;
    }

    /// The first slot that is not empty.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        self.first_from(self.slot)
    }

    /// The first slot from this one on that is not empty.
    #[inline]
    fn first_from(&self, slot: u64) -> Option<u64> {
        if self.words == 0 {
            return None;
        }
        let (word, bit) = Self::place(slot);
        let later = self.full[word] >> bit;
        if later != 0 {
            return Some(slot + u64::from(later.trailing_zeros()));
        }
        // the words behind this one, around the circle, and at last the beginning of this one
        let above = self.words & (u64::MAX << word << 1);
        let next = match above {
            0 => self.words.trailing_zeros() as usize,
            above => above.trailing_zeros() as usize,
        };
        let found = next * WORD + self.full[next % W].trailing_zeros() as usize;
        let ahead = found.wrapping_sub(word * WORD + bit) % Self::SLOTS;
        Some(slot + ahead as u64)
    }

    /// Moves on to a slot, as far as nothing is due before. If that slot is farther away than the circle reaches, what was due before is due
    /// then.
    #[inline(always)]
    pub fn catch_up(&mut self, blocks: &mut Blocks, slot: u64) {
        if slot > self.slot {
            self.move_on(blocks, slot);
        }
    }

    fn move_on(&mut self, blocks: &mut Blocks, slot: u64) {
        if self.first().is_none_or(|first| first >= slot) {
            self.slot = slot;
        } else if slot - self.slot >= Self::SLOTS as u64 {
            self.make_due(blocks, slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_due(&mut self, blocks: &mut Blocks, slot: u64) {
        let mut due = Set::EMPTY;
        while let Some(id) = self.pop(blocks, u64::MAX) {
            blocks.push(&mut due, id);
        }
        self.slot = slot;
        while let Some(id) = blocks.pop(&mut due) {
            self.insert(blocks, slot, id);
        }
    }

    /// Calls each slot by a number that is smaller by so many, which are whole circles.
    #[cold]
    pub fn go_back(&mut self, slots: u64) {
        debug_assert!(slots.is_multiple_of(Self::SLOTS as u64));
        self.slot -= slots;
        self.gone_back += slots;
    }

    /// The first slot that is not empty, or the earliest in which something may be, as if no number had been made smaller.
    pub fn position(&self) -> u64 {
        self.gone_back + self.first().unwrap_or(self.slot)
    }

    /// Moves on to the first slot that is not empty, but not beyond `last`, and takes a number out of it.
    #[inline]
    pub fn pop(&mut self, blocks: &mut Blocks, last: u64) -> Option<u32> {
        let (word, bit) = self.due(last)?;
        let set = &mut self.sets[word][bit];
        let id = blocks.pop(set);
        if set.is_empty() {
            self.clear(word, bit);
        }
        id
    }

    /// Takes as many numbers as there is room for, and as are in slots up to `last`, in the order of the slots. Returns how many.
    #[inline]
    pub fn take(&mut self, blocks: &mut Blocks, last: u64, into: &mut [u32]) -> usize {
        let mut n = 0;
        while n < into.len()
            && let Some((word, bit)) = self.due(last)
        {
            let set = &mut self.sets[word][bit];
            n += blocks.take(set, &mut into[n..]);
            if set.is_empty() {
                self.clear(word, bit);
            }
        }
        n
    }

    /// Moves on to the first slot that is not empty, if it is not beyond `last`.
    #[inline(always)]
    fn due(&mut self, last: u64) -> Option<(usize, usize)> {
        let (word, bit) = Self::place(self.slot);
        let is_full = self.full[word] >> bit & 1 != 0;
        if is_full {
            return (self.slot <= last).then_some((word, bit));
        }
        let first = self.first().filter(|first| *first <= last)?;
        self.slot = first;
        Some(Self::place(first))
    }

    /// A slot is empty.
    #[inline(always)]
    fn clear(&mut self, word: usize, bit: usize) {
        self.full[word] &= !(1 << bit);
        if self.full[word] == 0 {
            self.words &= !(1 << word);
        }
    }

    /// The number that will be taken out next if no more come.
    #[inline(always)]
    pub fn next(&self, blocks: &Blocks) -> Option<u32> {
        let (word, bit) = Self::place(self.first()?);
        blocks.first(self.sets[word][bit])
    }

    /// The numbers that will be taken out next if no more come, as many as there is room for. Returns how many.
    pub fn next_ones(&self, blocks: &Blocks, into: &mut [u32]) -> usize {
        let (mut n, mut slot) = (0, self.first());
        while let Some(at) = slot
            && n < into.len()
        {
            let (word, bit) = Self::place(at);
            n += blocks.copy(self.sets[word][bit], &mut into[n..]);
            let next = self.first_from(at + 1);
            slot = next.filter(|next| *next < self.slot + Self::SLOTS as u64);
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Numbers come in the order of their slots, whatever was taken before, and never before their time.
        #[test]
        fn each_number_comes_in_its_slot(steps in proptest::collection::vec((0u64..300, any::<bool>()), 0..400)) {
            let (mut blocks, mut calendar) = (Blocks::default(), Calendar::<4>::default());
            let mut waiting: Vec<(u64, u32)> = Vec::new();
            for (id, (ahead, take)) in steps.into_iter().enumerate() {
                if take {
                    let last = calendar.slot() + ahead / 4;
                    let first = waiting.iter().map(|(slot, _)| *slot).min();
                    let due = first.filter(|first| *first <= last);
                    let popped = calendar.pop(&mut blocks, last);
                    prop_assert_eq!(popped.is_some(), due.is_some());
                    if let Some(id) = popped {
                        let at = waiting.iter().position(|(_, one)| *one == id).unwrap();
                        prop_assert_eq!(Some(waiting.remove(at).0), due);
                    }
                } else {
                    let slot = (calendar.slot() + ahead).min(calendar.slot() + 255);
                    calendar.insert(&mut blocks, slot, id as u32);
                    waiting.push((slot, id as u32));
                }
                let first = waiting.iter().map(|(slot, _)| *slot).min();
                prop_assert_eq!(calendar.first(), first);
            }
            while calendar.pop(&mut blocks, u64::MAX).is_some() {
                waiting.pop();
            }
            prop_assert!(waiting.is_empty() && calendar.is_empty());
        }

        /// After any time, what has waited comes at once, and what comes later is as far ahead as it should be.
        #[test]
        fn nothing_is_lost_by_catching_up(slots in proptest::collection::vec(0u64..256, 0..50), later in 0u64..1 << 40) {
            let (mut blocks, mut calendar) = (Blocks::default(), Calendar::<4>::default());
            for (id, slot) in slots.iter().enumerate() {
                calendar.insert(&mut blocks, *slot, id as u32);
            }
            calendar.catch_up(&mut blocks, later);
            let due = slots.iter().filter(|slot| **slot <= later).count();
            let popped = std::iter::from_fn(|| calendar.pop(&mut blocks, later)).count();
            prop_assert_eq!(popped, due);
            calendar.catch_up(&mut blocks, later);
            if due == slots.len() {
                calendar.insert(&mut blocks, later + 100, 7);
                prop_assert_eq!(calendar.pop(&mut blocks, later + 99), None);
                prop_assert_eq!(calendar.pop(&mut blocks, later + 100), Some(7));
            }
        }
    }
}
