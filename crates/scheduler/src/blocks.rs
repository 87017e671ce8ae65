//! Sets of numbers, in blocks of one cache line.
//!
//! Whoever takes numbers out of a set knows which ones come next, and can ask for their lines ahead. A list that leads from one
//! element to the next through the elements themselves would not tell that before each line has come. A set of one number needs
//! no block.

/// Numbers in a block.
pub(crate) const ROOM: usize = 14;
/// Marks a block, in the bits from [`MARK`] to 30. Numbers have fewer than all of them.
const BLOCK: u32 = 7;
const MARK: u32 = 28;

/// No number, one, or a block with the rest of the set behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set(u32);

impl Set {
    pub const EMPTY: Set = Set(u32::MAX);

    #[inline(always)]
    fn of_block(at: usize) -> Self {
        Set(at as u32 | BLOCK << MARK)
    }

    #[inline(always)]
    fn block(self) -> Option<usize> {
        (self.0 >> MARK == BLOCK).then_some((self.0 & !(BLOCK << MARK)) as usize)
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self == Set::EMPTY
    }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block {
    /// The rest of the set, or of the blocks that are free.
    link: Set,
    len: u32,
    ids: [u32; ROOM],
}

const _: () = assert!(size_of::<Block>() == 64);

/// The blocks of all sets.
pub(crate) struct Blocks {
    all: Vec<Block>,
    free: Set,
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks {
            all: Vec::new(),
            free: Set::EMPTY,
        }
    }
}

impl Blocks {
    /// Makes room for so many blocks in all, so that a push does not allocate.
    pub fn reserve(&mut self, blocks: usize) {
        self.all.reserve(blocks.saturating_sub(self.all.len()));
    }

    /// A block with one number, in front of the rest of its set.
    #[inline(never)]
    fn allocate(&mut self, id: u32, link: Set) -> Set {
        let mut block = Block {
            link,
            len: 1,
            ids: [0; ROOM],
        };
        block.ids[0] = id;
        let set = self.free;
        match set.block() {
            Some(at) => {
                self.free = self.all[at].link;
                self.all[at] = block;
                set
            }
            None => {
                self.all.push(block);
                Set::of_block(self.all.len() - 1)
            }
        }
    }

    /// Adds a number to a set.
    #[inline(always)]
    pub fn push(&mut self, set: &mut Set, id: u32) {
        debug_assert!(id >> MARK & BLOCK != BLOCK);
        let block = set.block().map(|at| &mut self.all[at]);
        if let Some(block) = block
            && let Some(place) = block.ids.get_mut(block.len as usize)
        {
            *place = id;
            block.len += 1;
            return;
        }
        *set = match set.is_empty() {
            true => Set(id),
            false => self.allocate(id, *set),
        };
    }

    /// Takes a number out of a set: the one that came last.
    #[inline]
    pub fn pop(&mut self, set: &mut Set) -> Option<u32> {
        let Some(at) = set.block() else {
            let id = (!set.is_empty()).then_some(set.0);
            *set = Set::EMPTY;
            return id;
        };
        let block = &mut self.all[at];
        block.len -= 1;
        let id = block.ids.get(block.len as usize).copied();
        if block.len == 0 {
            self.release(set, at);
        }
        id
    }

    /// Takes numbers out of a set: a whole block, if there is room. Returns how many.
    #[inline(always)]
    pub fn take(&mut self, set: &mut Set, into: &mut [u32]) -> usize {
        if let Some(at) = set.block()
            && let Some(into) = into.first_chunk_mut()
        {
            let block = &self.all[at];
            let len = block.len as usize;
            *into = block.ids;
            self.release(set, at);
            return len;
        }
        match (into.first_mut(), self.pop(set)) {
            (Some(into), Some(id)) => {
                *into = id;
                1
            }
            _ => 0,
        }
    }

    /// The first block of a set is free.
    #[inline(always)]
    fn release(&mut self, set: &mut Set, at: usize) {
        let link = &mut self.all[at].link;
        (self.free, *set, *link) = (*set, *link, self.free);
    }

    /// Copies numbers of a set, in the order in which they will be taken out one by one, as many as there is room for. Returns how many.
    #[inline(always)]
    pub fn copy(&self, mut set: Set, into: &mut [u32]) -> usize {
        let mut n = 0;
        while n < into.len()
            && let Some(at) = set.block()
        {
            let block = &self.all[at];
            let ids = block.ids[..block.len as usize].iter().rev();
            for (into, id) in into[n..].iter_mut().zip(ids) {
                *into = *id;
                n += 1;
            }
            set = block.link;
        }
        match into.get_mut(n) {
            Some(into) if !set.is_empty() => *into = set.0,
            _ => return n,
        }
        n + 1
    }

    /// The number that will be taken out next.
    #[inline(always)]
    pub fn first(&self, set: Set) -> Option<u32> {
        match set.block() {
            Some(at) => {
                let block = &self.all[at];
                block.ids.get((block.len as usize).wrapping_sub(1)).copied()
            }
            None => (!set.is_empty()).then_some(set.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_back_each_number_once_and_its_blocks_serve_again() {
        let mut blocks = Blocks::default();
        let (mut odd, mut even) = (Set::EMPTY, Set::EMPTY);
        for _ in 0..3 {
            for id in 0..1000 {
                blocks.push(if id % 2 == 0 { &mut even } else { &mut odd }, id);
            }
            for (set, first) in [(&mut even, 0), (&mut odd, 1)] {
                let (mut some, mut wanted) = ([0; 100], [0; 1000]);
                assert_eq!(blocks.copy(*set, &mut wanted), 500);
                assert_eq!(blocks.copy(*set, &mut some), some.len());
                assert_eq!(some, wanted[..100]);
                assert_eq!(blocks.first(*set), Some(wanted[0]));
                let mut all: Vec<u32> = std::iter::from_fn(|| blocks.pop(set)).collect();
                assert_eq!(all, wanted[..500]);
                all.sort_unstable();
                assert_eq!(all, (first..1000).step_by(2).collect::<Vec<_>>());
                assert!(set.is_empty());
            }
        }
        assert_eq!(blocks.all.len(), 2 * 499usize.div_ceil(ROOM));
    }

    #[test]
    fn many_are_taken_at_once_and_each_of_them_once() {
        let mut blocks = Blocks::default();
        for count in [0, 1, 2, 15, 16, 100] {
            for room in [1, ROOM - 1, ROOM, 64] {
                let mut set = Set::EMPTY;
                (0..count).for_each(|id| blocks.push(&mut set, id));
                let (mut into, mut all) = ([0; 64], Vec::new());
                loop {
                    let n = blocks.take(&mut set, &mut into[..room]);
                    all.extend_from_slice(&into[..n]);
                    if n == 0 {
                        break;
                    }
                }
                all.sort_unstable();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
                assert!(set.is_empty());
            }
        }
    }
}
