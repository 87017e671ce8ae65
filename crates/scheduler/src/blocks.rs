//! Sets of numbers, in blocks of one cache line.
//!
//! Whoever takes numbers out of a set knows which ones come next, and can ask for their lines ahead. A list that leads from one
//! element to the next through the elements themselves would not tell that before each line has come.

/// No block.
pub(crate) const NONE: u32 = u32::MAX;
/// Numbers in a block.
pub(crate) const ROOM: usize = 14;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block {
    /// The next block of the set, or of those that are free.
    link: u32,
    len: u32,
    ids: [u32; ROOM],
}

const _: () = assert!(size_of::<Block>() == 64);

/// All blocks. A set is the number of its first block, or [`NONE`].
#[derive(Default)]
pub(crate) struct Blocks {
    all: Vec<Block>,
    free: Option<u32>,
}

impl Blocks {
    /// Makes room for so many blocks in all, so that a push does not allocate.
    pub fn reserve(&mut self, blocks: usize) {
        self.all.reserve(blocks.saturating_sub(self.all.len()));
    }

    fn allocate(&mut self, link: u32) -> u32 {
        let block = Block {
            link,
            len: 0,
            ids: [0; ROOM],
        };
        match self.free {
            Some(at) => {
                let free = self.all[at as usize].link;
                self.free = (free != NONE).then_some(free);
                self.all[at as usize] = block;
                at
            }
            None => {
                self.all.push(block);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Adds a number to a set.
    #[inline]
    pub fn push(&mut self, set: &mut u32, id: u32) {
        if *set == NONE || self.all[*set as usize].len as usize == ROOM {
            *set = self.allocate(*set);
        }
        let block = &mut self.all[*set as usize];
        block.ids[block.len as usize] = id;
        block.len += 1;
    }

    /// Takes a number out of a set: the one that came last.
    #[inline]
    pub fn pop(&mut self, set: &mut u32) -> Option<u32> {
        let at = *set;
        let block = self.all.get_mut(at as usize)?;
        block.len -= 1;
        let id = block.ids[block.len as usize];
        if block.len == 0 {
            *set = block.link;
            block.link = self.free.unwrap_or(NONE);
            self.free = Some(at);
        }
        Some(id)
    }

    /// The number that will be taken out next.
    #[inline(always)]
    pub fn first(&self, set: u32) -> Option<u32> {
        let block = self.all.get(set as usize)?;
        block.ids.get((block.len as usize).wrapping_sub(1)).copied()
    }

    /// The numbers of a set, in the order in which they will be taken out.
    #[inline(always)]
    pub fn of(&self, set: u32) -> impl Iterator<Item = u32> {
        let first = self.all.get(set as usize);
        let blocks = std::iter::successors(first, |block| self.all.get(block.link as usize));
        blocks.flat_map(|block| block.ids.iter().take(block.len as usize).rev().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_back_each_number_once_and_its_blocks_serve_again() {
        let mut blocks = Blocks::default();
        let (mut odd, mut even) = (NONE, NONE);
        for _ in 0..3 {
            for id in 0..1000 {
                blocks.push(if id % 2 == 0 { &mut even } else { &mut odd }, id);
            }
            for (set, first) in [(&mut even, 0), (&mut odd, 1)] {
                let wanted: Vec<u32> = blocks.of(*set).collect();
                assert_eq!(blocks.first(*set), wanted.first().copied());
                let mut all: Vec<u32> = std::iter::from_fn(|| blocks.pop(set)).collect();
                assert_eq!(all, wanted);
                all.sort_unstable();
                assert_eq!(all, (first..1000).step_by(2).collect::<Vec<_>>());
                assert_eq!(*set, NONE);
            }
        }
        assert_eq!(blocks.all.len(), 2 * 500usize.div_ceil(ROOM));
    }
}
