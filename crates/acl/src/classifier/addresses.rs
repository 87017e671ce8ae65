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
    /// Number of the last bits that rules compare, if few rules name them.
    const COMPARED: u32;
    /// What finds an address's value.
    type Map;
    /// A network, and its mask, of the last [`Address::COMPARED`] bits.
    type Last: Copy;
    fn of(bits: u128) -> Self;
    /// The last bits of a network and of its mask.
    fn last(network: u128, mask: u128) -> Self::Last;
    /// Compiles values, which are below 2^14.
    fn compile(spans: &Spans) -> Self::Map;
    fn value(self, map: &Self::Map) -> u16;
    /// Whether the last bits are in a network.
    fn is_in(self, network: Self::Last) -> bool;
    fn octets(map: &Self::Map) -> usize;
}

impl Address for u32 {
    const MAX: u128 = u32::MAX as u128;
    const COMPARED: u32 = 0;
    type Last = ();
    type Map = Cells;

    fn of(bits: u128) -> u32 {
        bits as u32
    }

    fn last(_: u128, _: u128) {}

    fn compile(spans: &Spans) -> Cells {
        Cells::new(spans)
    }

    #[inline(always)]
    fn value(self, map: &Cells) -> u16 {
        map.value(self)
    }

    #[inline(always)]
    fn is_in(self, _: ()) -> bool {
        true
    }

    fn octets(map: &Cells) -> usize {
        map.octets()
    }
}

/// Values of numbers of 32 bits. The upper 13 bits lead to a page of cells, 4 more bits to a cell, and a tree of blocks in it
/// compares the others.
pub(super) struct Cells {
    pages: Box<[u16; 1 << 13]>,
    cells: Box<[[u16; PAGE]]>,
    blocks: Box<[Block15]>,
}

/// Cells of a page.
const PAGE: usize = 1 << 4;

impl Cells {
    fn new(spans: &Spans) -> Cells {
        let mut builder = Builder::new(UPPER);
        let mut uniform = HashMap::new();
        let mut cell = |low: u128| {
            let high = low + (1 << 15) - 1;
            let mut tree = || builder.tree(&spans.within(low, high).from(low)) & !LINK;
            match spans.uniform(low, high) {
                Some(value) => *uniform.entry(value).or_insert_with(tree),
                None => tree(),
            }
        };
        let mut cells = Vec::new();
        let mut uniform_pages = HashMap::new();
        let mut pages = Box::new([0; 1 << 13]);
        for (low, entry) in (0..).step_by(1 << 19).zip(pages.iter_mut()) {
            let mut page = |width: u128| {
                cells.push(std::array::from_fn(|number| {
                    cell(low + number as u128 * width)
                }));
                cells.len() as u16 - 1
            };
            *entry = match spans.uniform(low, low + (1 << 19) - 1) {
                Some(value) => *uniform_pages.entry(value).or_insert_with(|| page(0)),
                None => page(1 << 15),
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
        let page = self.pages[(number >> 19) as usize];
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

/// Values of IPv6 addresses. All prefixes are in one network, and all addresses outside of it have the same value.
pub(super) struct Words {
    network: u64,
    mask: u64,
    /// Length of the network's prefix.
    skip: u32,
    /// Bits below those that lead to a place in `middle`.
    below: u32,
    /// Place in `middle` for all other addresses.
    outside: u16,
    /// Places in `middle` by the 32 bits behind the network's.
    upper: Cells,
    /// By the next bits up to bit 63.
    middle: Box<[Wide<i32, 8>]>,
    /// By bits 64 to 127, which only few addresses need.
    lower: Box<[Wide<i64, 8>]>,
}

impl Address for u128 {
    const MAX: u128 = u128::MAX;
    const COMPARED: u32 = 64;
    type Last = (u64, u64);
    type Map = Words;

    fn of(bits: u128) -> u128 {
        bits
    }

    fn last(network: u128, mask: u128) -> (u64, u64) {
        (network as u64, mask as u64)
    }

    fn compile(spans: &Spans) -> Words {
        let (mut middle, mut lower) = (Builder::new(MIDDLE), Builder::new(LOWER));
        let spans = spans.above(64, |spans| lower.tree(spans));
        // In the network are the last address before the first bound and the first one behind the last bound.
        let first = spans.bounds.first().map_or(0, |bound| bound - 1) as u64;
        let last = spans.bounds.last().map_or(0, |bound| *bound);
        let skip = u64::try_from(last).map_or(0, |last| (first ^ last).leading_zeros().min(31));
        let mask = !u64::MAX.checked_shr(skip).unwrap_or(0);
        let network = first & mask;
        let spans = spans.from(network.into());
        let mut spans = spans.above(32 - skip, |spans| middle.tree(spans));
        let mut uniform = HashMap::new();
        let mut place = |value: u16| match value & LINK {
            MIDDLE => value & !LINK,
            _ => *uniform.entry(value).or_insert_with(|| {
                let values = vec![value];
                let bounds = Vec::new();
                middle.tree(&Spans { bounds, values }) & !LINK
            }),
        };
        for value in &mut spans.values {
            *value = place(*value);
        }
        Words {
            network,
            mask,
            skip,
            below: u32::MAX >> skip,
            outside: spans.values[spans.values.len() - 1],
            upper: Cells::new(&spans),
            middle: middle.finish(),
            lower: lower.finish(),
        }
    }

    #[inline(always)]
    fn value(self, map: &Words) -> u16 {
        let upper = (self >> 64) as u64;
        let place = match upper & map.mask == map.network {
            true => map.upper.value((upper << (map.skip % 64) >> 32) as u32),
            false => map.outside,
        };
        let key = upper as u32 & map.below;
        // All values are in `middle`: whether this address needs it could not be predicted.
        let mut value = map.middle[usize::from(place)].value(key);
        while value & LINK == MIDDLE {
            value = map.middle[usize::from(value & !LINK)].value(key);
        }
        while value & LINK == LOWER {
            value = map.lower[usize::from(value & !LINK)].value(self as u64);
        }
        value
    }

    #[inline(always)]
    fn is_in(self, (network, mask): (u64, u64)) -> bool {
        self as u64 & mask == network
    }

    fn octets(map: &Words) -> usize {
        map.upper.octets() + size_of_val(&*map.middle) + size_of_val(&*map.lower)
    }
}
