//! Values of addresses of either family.

use super::intervals::{Intervals, Spans};
use super::trie::Trie;

/// An address of either family, and what finds its value.
pub(super) trait Address: Copy {
    /// The highest address.
    const MAX: u128;
    /// What finds an address's value.
    type Map;
    /// Compiles values, which are below 2^31.
    fn compile(spans: Spans) -> Self::Map;
    fn value(self, map: &Self::Map) -> u32;
    fn octets(map: &Self::Map) -> usize;
}

impl Address for u32 {
    const MAX: u128 = u32::MAX as u128;
    type Map = Trie;

    fn compile(spans: Spans) -> Trie {
        Trie::new(&spans)
    }

    #[inline(always)]
    fn value(self, map: &Trie) -> u32 {
        map.value(self)
    }

    fn octets(map: &Trie) -> usize {
        map.octets()
    }
}

/// Bit of a value of an upper half: the other bits are the place of intervals of lower halves.
const LOWER: u32 = 1 << 31;

impl Address for u128 {
    const MAX: u128 = u128::MAX;
    type Map = Intervals;

    /// Upper halves have a value, or lead to lower halves if a bound is between them.
    fn compile(spans: Spans) -> Intervals {
        let (bounds, values) = spans;
        let mut upper: Spans = (Vec::new(), vec![values[0]]);
        let mut lower: Vec<Spans> = Vec::new();
        let set =
            |upper: &mut Spans, bound: u128, value: u32| match upper.0.last().copied().unwrap_or(0)
            {
                last if last == bound => *upper.1.last_mut().expect("a value") = value,
                _ => {
                    upper.0.push(bound);
                    upper.1.push(value);
                }
            };
        let halves = |place: usize| (bounds[place] >> 64, bounds[place] as u64);
        let mut place = 0;
        while place < bounds.len() {
            let (half, _) = halves(place);
            let end = place + bounds[place..].partition_point(|bound| bound >> 64 == half);
            let before = if halves(place).1 == 0 {
                place + 1
            } else {
                place
            };
            if before == end {
                set(&mut upper, half, values[end]);
            } else {
                let list = bounds[before..end]
                    .iter()
                    .map(|bound| u128::from(*bound as u64))
                    .collect();
                set(&mut upper, half, LOWER | lower.len() as u32);
                lower.push((list, values[before..=end].to_vec()));
                if half < u128::from(u64::MAX) {
                    set(&mut upper, half + 1, values[end]);
                }
            }
            place = end;
        }
        Intervals::new(&upper, &lower)
    }

    #[inline]
    fn value(self, map: &Intervals) -> u32 {
        match map.value((self >> 64) as u64) {
            value if value & LOWER != 0 => map.value_below((value & !LOWER) as usize, self as u64),
            value => value,
        }
    }

    fn octets(map: &Intervals) -> usize {
        map.octets()
    }
}
