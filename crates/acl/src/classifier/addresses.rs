//! Values of addresses of either family.

use std::collections::HashMap;
use std::ops::BitAnd;

use super::blocks::{Block15, Builder, Spans, Wide};

/// Bits of values that are numbers of blocks. Values of addresses are below all of them, and numbers of blocks too: 8,192 bounds
/// make fewer blocks.
const UPPER: u16 = 1 << 14;
const MIDDLE: u16 = 2 << 14;
const LOWER: u16 = 3 << 14;
const LINK: u16 = 3 << 14;

/// An address of either family, and what finds its value.
pub(super) trait Address: Copy + Eq + BitAnd<Output = Self> {
    /// The highest address.
    const MAX: u128;
    /// What finds an address's value.
    type Map;
    fn of(bits: u128) -> Self;
    /// Compiles values, which are below 2^14.
    fn compile(spans: &Spans) -> Self::Map;
    fn value(self, map: &Self::Map) -> u16;
    fn octets(map: &Self::Map) -> usize;
}

impl Address for u32 {
    const MAX: u128 = u32::MAX as u128;
    type Map = Cells;

    fn of(bits: u128) -> u32 {
        bits as u32
    }

    fn compile(spans: &Spans) -> Cells {
        Cells::new(spans)
    }

    #[inline(always)]
    fn value(self, map: &Cells) -> u16 {
        map.value(self)
    }

    fn octets(map: &Cells) -> usize {
        map.octets()
    }
}

/// Values of numbers of 32 bits. The upper 11 bits lead to a page of cells, 6 more bits to a cell, and a tree of blocks in it
/// compares the others.
pub(super) struct Cells {
    pages: Box<[u16; 1 << 11]>,
    cells: Box<[[u16; PAGE]]>,
    blocks: Box<[Block15]>,
}

/// Cells of a page.
const PAGE: usize = 1 << 6;

impl Cells {
    fn new(spans: &Spans) -> Cells {
        let mut builder = Builder::new(UPPER);
        let mut uniform = HashMap::new();
        let mut cell = |spans: &Spans, low: u128| {
            let spans = spans.within(low, low + (1 << 15) - 1);
            let tree = match spans.values[..] {
                [value] => *uniform.entry(value).or_insert_with(|| builder.tree(&spans)),
                _ => builder.tree(&spans.from(low)),
            };
            tree & !LINK
        };
        let mut cells = Vec::new();
        let mut uniform_pages = HashMap::new();
        let mut pages = Box::new([0; 1 << 11]);
        for (low, entry) in (0..).step_by(1 << 21).zip(pages.iter_mut()) {
            let spans = spans.within(low, low + (1 << 21) - 1);
            let mut page = || {
                match spans.values[..] {
                    [_] => cells.push([cell(&spans, low); PAGE]),
                    _ => cells.push(std::array::from_fn(|number| {
                        cell(&spans, low + ((number as u128) << 15))
                    })),
                }
                cells.len() as u16 - 1
            };
            *entry = match spans.values[..] {
                [value] => *uniform_pages.entry(value).or_insert_with(page),
                _ => page(),
            };
        }
        Cells {
            pages,
            cells: cells.into(),
            blocks: builder.finish(),
        }
    }

    #[inline(always)]
    fn value(&self, number: u32) -> u16 {
        let page = self.pages[(number >> 21) as usize];
        let block = self.cells[usize::from(page)][(number >> 15) as usize % PAGE];
        let mut value = self.blocks[usize::from(block)].value(number);
        while value & LINK == UPPER {
            value = self.blocks[usize::from(value & !LINK)].value(number);
        }
        value
    }

    fn octets(&self) -> usize {
        size_of_val(&*self.pages) + size_of_val(&*self.cells) + size_of_val(&*self.blocks)
    }
}

/// Values of IPv6 addresses by their words, of which only as many are read as tell the address's value.
pub(super) struct Words {
    /// By bits 0 to 31.
    upper: Upper,
    /// By bits 32 to 63.
    middle: Box<[Wide<i32, 16>]>,
    /// By bits 64 to 127.
    lower: Box<[Wide<i64, 8>]>,
}

impl Address for u128 {
    const MAX: u128 = u128::MAX;
    type Map = Words;

    fn of(bits: u128) -> u128 {
        bits
    }

    fn compile(spans: &Spans) -> Words {
        let (mut middle, mut lower) = (Builder::new(MIDDLE), Builder::new(LOWER));
        let spans = spans.above(64, |spans| lower.tree(spans));
        let spans = spans.above(32, |spans| middle.tree(spans));
        Words {
            upper: Upper::new(&spans),
            middle: middle.finish(),
            lower: lower.finish(),
        }
    }

    #[inline(always)]
    fn value(self, map: &Words) -> u16 {
        let mut value = map.upper.value((self >> 96) as u32);
        while value & LINK == MIDDLE {
            value = map.middle[usize::from(value & !LINK)].value((self >> 64) as u32);
        }
        while value & LINK == LOWER {
            value = map.lower[usize::from(value & !LINK)].value(self as u64);
        }
        value
    }

    fn octets(map: &Words) -> usize {
        map.upper.octets() + size_of_val(&*map.middle) + size_of_val(&*map.lower)
    }
}

/// Values of numbers of 32 bits: cells of equal width between the first and the last bound, with a tree of blocks in each.
pub(super) struct Upper {
    /// Last number before the first bound.
    first: u32,
    /// The last bound, from `first` on.
    last: u32,
    /// Logarithm of a cell's width.
    shift: u32,
    cells: Box<[u16]>,
    blocks: Box<[Wide<i32, 16>]>,
}

impl Upper {
    /// Most cells.
    const MOST: usize = 1 << 14;

    fn new(spans: &Spans) -> Upper {
        let bounds = &spans.bounds;
        let first = bounds.first().map_or(0, |bound| bound - 1);
        let last = bounds.last().map_or(0, |bound| bound - first);
        let shift = shift(bounds, first, last);
        let mut builder = Builder::new(UPPER);
        let mut uniform = HashMap::new();
        let cell = |cell: u128| {
            let low = first + (cell << shift);
            let spans = spans.within(low, low + (1 << shift) - 1);
            let tree = match spans.values[..] {
                [value] => *uniform.entry(value).or_insert_with(|| builder.tree(&spans)),
                _ => builder.tree(&spans),
            };
            tree & !LINK
        };
        let cells = (0..=last >> shift).map(cell).collect();
        Upper {
            first: first as u32,
            last: last as u32,
            shift,
            cells: cells,
            blocks: builder.finish(),
        }
    }

    #[inline(always)]
    fn value(&self, number: u32) -> u16 {
        let place = number.saturating_sub(self.first).min(self.last);
        let block = self.cells[(place >> (self.shift % 32)) as usize];
        let mut value = self.blocks[usize::from(block)].value(number);
        while value & LINK == UPPER {
            value = self.blocks[usize::from(value & !LINK)].value(number);
        }
        value
    }

    fn octets(&self) -> usize {
        size_of_val(&*self.cells) + size_of_val(&*self.blocks)
    }
}

/// The widest cells in which few bounds are in cells with more of them than a block has, or else the narrowest ones.
fn shift(bounds: &[u128], first: u128, last: u128) -> u32 {
    let is_enough = |shift: &u32| {
        let cells =
            bounds.chunk_by(|one, other| (one - first) >> shift == (other - first) >> shift);
        let crowded: usize = cells.map(<[u128]>::len).filter(|count| *count > 15).sum();
        let narrower = (last >> (shift - 1)) as usize + 1;
        crowded * 32 <= bounds.len() || narrower > Upper::MOST.min(4 * bounds.len() + 64)
    };
    (1..31).rev().find(is_enough).unwrap_or(0)
}
