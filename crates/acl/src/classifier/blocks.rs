//! Search among sorted bounds: trees of blocks, each of which compares all of its bounds at once.

use super::places::Places;

/// Sorted bounds, and a value for each interval: one more than there are bounds. No bound is 0.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    pub(super) bounds: Vec<u128>,
    pub(super) values: Vec<u16>,
}

impl Spans {
    /// The spans of the numbers from `low` to `high`.
    pub(super) fn within(&self, low: u128, high: u128) -> Spans {
        let first = self.bounds.partition_point(|bound| *bound <= low);
        let end = self.bounds.partition_point(|bound| *bound <= high);
        Spans {
            bounds: self.bounds[first..end].into(),
            values: self.values[first..=end].into(),
        }
    }

    /// Spans of what is above the lowest `bits` of the numbers. Where a bound is between numbers that only those bits tell apart,
    /// the value is what `link` makes of the spans of those bits.
    pub(super) fn above(&self, bits: u32, mut link: impl FnMut(&Spans) -> u16) -> Spans {
        let mut above = Spans {
            bounds: Vec::new(),
            values: vec![self.values[0]],
        };
        let mut place = 0;
        for group in self
            .bounds
            .chunk_by(|one, other| one >> bits == other >> bits)
        {
            let upper = group[0] >> bits;
            let first = upper << bits;
            let end = place + group.len();
            let inner = usize::from(group[0] == first);
            if inner == group.len() {
                above.set(upper, self.values[end]);
            } else {
                let spans = Spans {
                    bounds: group[inner..].iter().map(|bound| bound - first).collect(),
                    values: self.values[place + inner..=end].into(),
                };
                above.set(upper, link(&spans));
                above.set(upper + 1, self.values[end]);
            }
            place = end;
        }
        above
    }

    /// Sets the value from `bound` on, which is not below the last bound.
    pub(super) fn set(&mut self, bound: u128, value: u16) {
        match self.bounds.last().copied().unwrap_or(0) == bound {
            true => *self.values.last_mut().expect("a value") = value,
            false => {
                self.bounds.push(bound);
                self.values.push(value);
            }
        }
    }
}

/// What is compared: signed, as SSE2 knows no other comparison of integers.
pub(super) trait Key: Copy + PartialOrd {
    /// No key is above this one.
    const HIGHEST: Self;
    /// Keeps the order of numbers.
    fn of(number: u128) -> Self;
}

impl Key for i32 {
    const HIGHEST: i32 = i32::MAX;

    #[inline(always)]
    fn of(number: u128) -> i32 {
        (number as u32 ^ 1 << 31) as i32
    }
}

impl Key for i64 {
    const HIGHEST: i64 = i64::MAX;

    #[inline(always)]
    fn of(number: u128) -> i64 {
        (number as u64 ^ 1 << 63) as i64
    }
}

/// The last numbers before up to N - 1 bounds, and [`Key::HIGHEST`] in all places behind them. A line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line<K, const N: usize>([K; N]);

/// Trees of blocks.
pub(super) struct Blocks<K, const N: usize> {
    lines: Places<Line<K, N>>,
    values: Places<[u16; N]>,
}

impl<K: Key, const N: usize> Blocks<K, N> {
    /// Value of a key in a block.
    #[inline(always)]
    pub(super) fn value(&self, block: u16, key: K) -> u16 {
        let line = self.lines.at(block.into());
        let passed: u32 = line.0.iter().map(|last| u32::from(key > *last)).sum();
        self.values.at(block.into())[passed as usize % N]
    }

    pub(super) fn octets(&self) -> usize {
        self.lines.octets() + self.values.octets()
    }
}

/// Makes trees of blocks.
pub(super) struct Builder<K, const N: usize> {
    lines: Vec<Line<K, N>>,
    values: Vec<[u16; N]>,
    /// Bits that a value has if it is the number of a block.
    link: u16,
}

impl<K: Key, const N: usize> Builder<K, N> {
    pub(super) fn new(link: u16) -> Builder<K, N> {
        Builder {
            lines: Vec::new(),
            values: Vec::new(),
            link,
        }
    }

    /// Link to the first block of a new tree.
    pub(super) fn tree(&mut self, spans: &Spans) -> u16 {
        let Spans { bounds, values } = spans;
        let children = values.len().div_ceil(N);
        if children == 1 {
            return self.block(bounds, values);
        }
        let size = values.len().div_ceil(children.min(N));
        let trees: Vec<u16> = values
            .chunks(size)
            .zip(0..)
            .map(|(values, child)| {
                let first = child * size;
                let bounds = bounds[first..first + values.len() - 1].into();
                let values = values.into();
                self.tree(&Spans { bounds, values })
            })
            .collect();
        let between: Vec<u128> = (1..trees.len())
            .map(|child| bounds[child * size - 1])
            .collect();
        self.block(&between, &trees)
    }

    fn block(&mut self, bounds: &[u128], values: &[u16]) -> u16 {
        let mut line = [K::HIGHEST; N];
        for (last, bound) in line.iter_mut().zip(bounds) {
            *last = K::of(bound - 1);
        }
        let mut places = [0; N];
        places[..values.len()].copy_from_slice(values);
        self.lines.push(Line(line));
        self.values.push(places);
        self.link | (self.lines.len() - 1) as u16
    }

    pub(super) fn finish(self) -> Blocks<K, N> {
        Blocks {
            lines: Places::new(self.lines, Line([K::HIGHEST; N])),
            values: Places::new(self.values, [0; N]),
        }
    }
}
