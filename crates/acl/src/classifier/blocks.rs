//! Search among sorted bounds: trees of blocks, each of which compares all of its bounds at once.

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

    /// The value of the numbers from `low` to `high`, if they all have the same.
    pub(super) fn uniform(&self, low: u128, high: u128) -> Option<u16> {
        let interval = self.bounds.partition_point(|bound| *bound <= low);
        let is_whole = self.bounds.get(interval).is_none_or(|bound| *bound > high);
        is_whole.then(|| self.values[interval])
    }

    /// The same, counted from `low` on, which is before the first bound.
    pub(super) fn from(&self, low: u128) -> Spans {
        Spans {
            bounds: self.bounds.iter().map(|bound| bound - low).collect(),
            values: self.values.clone(),
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
                    bounds: group[inner..].into(),
                    values: self.values[place + inner..=end].into(),
                };
                above.set(upper, link(&spans.from(first)));
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

/// A few sorted bounds and the values between them.
pub(super) trait Block {
    /// Most values of a block, one more than there are bounds.
    const VALUES: usize;

    /// A block of up to [`Block::VALUES`] values.
    fn new(bounds: &[u128], values: &[u16]) -> Self;
}

/// Blocks of numbers of 15 bits: a line of the cache.
#[repr(align(64))]
pub(super) struct Block15 {
    /// Sixteen numbers: what added to a number above the bound's predecessor sets the 16th bit.
    bounds: [u64; 4],
    values: [u16; 16],
}

/// One in each of a word's four numbers.
const EACH: u64 = 0x0001_0001_0001_0001;

impl Block for Block15 {
    const VALUES: usize = 16;

    fn new(bounds: &[u128], values: &[u16]) -> Block15 {
        let mut block = Block15 {
            bounds: [0; 4],
            values: [0; 16],
        };
        for (place, bound) in bounds.iter().enumerate() {
            let bound = 0x8000 - *bound as u64;
            block.bounds[place / 4] |= bound << (place % 4 * 16);
        }
        block.values[..values.len()].copy_from_slice(values);
        block
    }
}

impl Block15 {
    /// Value of a number, of which the lowest 15 bits are compared.
    #[inline(always)]
    pub(super) fn value(&self, number: u32) -> u16 {
        let number = u64::from(number & 0x7fff) * EACH;
        let passed = self.bounds.map(|bounds| (bounds + number) >> 15 & EACH);
        let passed: u64 = passed.iter().sum();
        self.values[(passed.wrapping_mul(EACH) >> 48) as usize % 16]
    }
}

/// Blocks of integers: signed, as SSE2 knows no other comparison. They hold the last number before each bound, and the highest
/// number, which nothing is above, in all places behind them.
#[repr(align(64))]
pub(super) struct Wide<K, const N: usize> {
    bounds: [K; N],
    values: [u16; N],
}

macro_rules! wide {
    ($key:ty, $unsigned:ty, $count:literal) => {
        impl Block for Wide<$key, $count> {
            const VALUES: usize = $count;

            fn new(bounds: &[u128], values: &[u16]) -> Self {
                let mut block = Wide {
                    bounds: [<$key>::MAX; $count],
                    values: [0; $count],
                };
                for (last, bound) in block.bounds.iter_mut().zip(bounds) {
                    *last = Self::key((bound - 1) as $unsigned);
                }
                block.values[..values.len()].copy_from_slice(values);
                block
            }
        }

        impl Wide<$key, $count> {
            #[inline(always)]
            fn key(number: $unsigned) -> $key {
                (number ^ 1 << (<$unsigned>::BITS - 1)) as $key
            }

            /// Value of a number.
            #[inline(always)]
            pub(super) fn value(&self, number: $unsigned) -> u16 {
                let key = Self::key(number);
                let passed: u32 = self.bounds.iter().map(|last| u32::from(key > *last)).sum();
                self.values[passed as usize % $count]
            }
        }
    };
}

wide!(i32, u32, 8);
wide!(i64, u64, 8);

/// Makes trees of blocks.
pub(super) struct Builder<B> {
    blocks: Vec<B>,
    /// Bits that a value has if it is the number of a block.
    link: u16,
}

impl<B: Block> Builder<B> {
    pub(super) fn new(link: u16) -> Builder<B> {
        Builder {
            blocks: Vec::new(),
            link,
        }
    }

    /// Link to the first block of a new tree.
    pub(super) fn tree(&mut self, spans: &Spans) -> u16 {
        let Spans { bounds, values } = spans;
        let children = values.len().div_ceil(B::VALUES);
        if children == 1 {
            return self.block(bounds, values);
        }
        let size = values.len().div_ceil(children.min(B::VALUES));
        let trees = values.chunks(size).zip(0..).map(|(values, child)| {
            let first = child * size;
            let bounds = bounds[first..first + values.len() - 1].into();
            let values = values.into();
            self.tree(&Spans { bounds, values })
        });
        let trees: Vec<u16> = trees.collect();
        let between = (1..trees.len()).map(|child| bounds[child * size - 1]);
        self.block(&between.collect::<Vec<u128>>(), &trees)
    }

    fn block(&mut self, bounds: &[u128], values: &[u16]) -> u16 {
        self.blocks.push(B::new(bounds, values));
        self.link | (self.blocks.len() - 1) as u16
    }

    pub(super) fn finish(self) -> Box<[B]> {
        self.blocks.into()
    }
}
