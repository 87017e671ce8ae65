//! Values of halves of IPv6 addresses: intervals behind tables.

use std::collections::HashMap;

/// Bounds that are compared all at once, a power of two.
const RUN: usize = 4;

/// Nodes of the top.
const TOP: usize = 1024;

/// Cells of equal width between the first and the last bound of a node.
#[derive(Clone, Copy)]
struct Node {
    first: u64,
    /// Place of the first cell.
    cells: u32,
    last: u16,
    shift: u8,
}

/// Sorted bounds, and a value for each interval: one more than there are bounds.
pub(super) type Spans = (Vec<u128>, Vec<u32>);

/// A value for each number. Every look-up takes the same way, so that the CPU predicts all of its branches.
pub(super) struct Intervals {
    first: u64,
    shift: u8,
    /// How often the bounds behind a cell are halved before they are a run.
    halvings: u32,
    top: Box<[Node; TOP]>,
    inner: Box<[Node]>,
    /// Numbers of inner nodes, or places of runs.
    cells: Box<[u32]>,
    /// First numbers of all intervals but the first one, and the highest number several times.
    bounds: Box<[u64]>,
    /// Values of the intervals. The last one stands here once more for each bound that is none.
    values: Box<[u32]>,
}

impl Intervals {
    /// Intervals, and others that [`Intervals::value_below`] finds by their place.
    pub(super) fn new(spans: &Spans, below: &[Spans]) -> Intervals {
        let first = spans.0.first().copied().unwrap_or(0);
        let last = spans.0.last().copied().unwrap_or(0);
        let shift = width(last - first).saturating_sub(TOP.trailing_zeros()) as u8;
        let mut halvings = 0;
        loop {
            let mut builder = Builder::new(RUN << halvings);
            builder.add_below(below);
            let top = builder.top(spans, shift);
            let needed = builder
                .longest_run
                .div_ceil(RUN)
                .next_power_of_two()
                .trailing_zeros();
            if needed <= halvings {
                let (inner, cells) = (builder.inner.into(), builder.cells.into());
                let (bounds, values) = (builder.bounds.into(), builder.values.into());
                return Intervals {
                    first: first as u64,
                    shift,
                    halvings,
                    top,
                    inner,
                    cells,
                    bounds,
                    values,
                };
            }
            halvings = needed;
        }
    }

    #[inline(always)]
    pub(super) fn value(&self, number: u64) -> u32 {
        let cell = cell(number, self.first, self.shift, TOP as u16 - 1);
        let entry = self.entry(&self.top[cell % TOP], number);
        self.value_below(entry, number)
    }

    /// Value of a number among the intervals at a place.
    #[inline(always)]
    pub(super) fn value_below(&self, place: usize, number: u64) -> u32 {
        let entry = self.entry(&self.inner[place], number);
        self.value_of_run(entry, number)
    }

    #[inline(always)]
    fn entry(&self, node: &Node, number: u64) -> usize {
        let cell = cell(number, node.first, node.shift, node.last);
        self.cells[node.cells as usize + cell] as usize
    }

    #[inline(always)]
    fn value_of_run(&self, mut base: usize, number: u64) -> u32 {
        for halving in (0..self.halvings).rev() {
            let half = RUN << halving;
            let is_above = self.bounds[base + half - 1] <= number;
            base += half * usize::from(is_above);
        }
        let run = &self.bounds[base..base + RUN];
        let below: usize = run.iter().map(|bound| usize::from(*bound <= number)).sum();
        self.values[base + below]
    }

    pub(super) fn octets(&self) -> usize {
        let nodes = size_of_val(&*self.top) + size_of_val(&*self.inner);
        nodes + size_of_val(&*self.cells) + size_of_val(&*self.bounds) + size_of_val(&*self.values)
    }
}

/// `(number - first) >> shift`, 0 below `first`, at most `last`.
#[inline(always)]
fn cell(number: u64, first: u64, shift: u8, last: u16) -> usize {
    let cell = number.saturating_sub(first) >> (shift % 64);
    cell.min(last.into()) as usize
}

/// Bits of a number.
fn width(number: u128) -> u32 {
    128 - number.leading_zeros()
}

struct Builder {
    inner: Vec<Node>,
    cells: Vec<u32>,
    bounds: Vec<u64>,
    values: Vec<u32>,
    /// Bounds behind the last one of each list.
    padding: usize,
    longest_run: usize,
    /// Inner nodes of one cell, by the place of its run.
    through: HashMap<usize, u32>,
}

impl Builder {
    const MOST_CELLS: usize = 4096;

    fn new(padding: usize) -> Builder {
        let (inner, cells, bounds, values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Builder {
            inner,
            cells,
            bounds,
            values,
            padding,
            longest_run: 0,
            through: HashMap::new(),
        }
    }

    /// Adds lists of intervals. The place of a list is that of its node.
    fn add_below(&mut self, lists: &[Spans]) {
        let empty = Node {
            first: 0,
            cells: 0,
            last: 0,
            shift: 0,
        };
        self.inner.resize(lists.len(), empty);
        for (place, spans) in lists.iter().enumerate() {
            let (from, to) = self.add(spans);
            self.inner[place] = self.node(from, to, false);
        }
    }

    fn add(&mut self, spans: &Spans) -> (usize, usize) {
        let from = self.bounds.len();
        self.bounds
            .extend(spans.0.iter().map(|bound| *bound as u64));
        let to = self.bounds.len();
        self.values.extend(&spans.1);
        let last = self.values[to];
        self.bounds.resize(to + self.padding + 1, u64::MAX);
        self.values.resize(to + self.padding + 1, last);
        (from, to)
    }

    fn top(&mut self, spans: &Spans, shift: u8) -> Box<[Node; TOP]> {
        let (mut base, to) = self.add(spans);
        let first = spans.0.first().copied().unwrap_or(0);
        let mut top = Box::new(
            [Node {
                first: 0,
                cells: 0,
                last: 0,
                shift: 0,
            }; TOP],
        );
        for (cell, node) in top.iter_mut().enumerate() {
            let end = self.end(base, to, first + ((cell as u128) << shift), shift);
            *node = self.node(base, end, true);
            base = end;
        }
        top
    }

    /// Where the bounds of a cell that begins at `low` end.
    fn end(&self, base: usize, to: usize, low: u128, shift: u8) -> usize {
        let inside =
            |bound: &u64| u128::from(*bound) < low || (u128::from(*bound) - low) >> shift == 0;
        base + self.bounds[base..to].partition_point(inside)
    }

    /// A node for the bounds from `from` to before `to`, and the cells and nodes below it.
    fn node(&mut self, from: usize, to: usize, to_inner: bool) -> Node {
        let bounds = &self.bounds[from..to];
        let (first, last) = match (bounds.first(), bounds.last()) {
            (Some(first), Some(last)) => (u128::from(*first), u128::from(*last)),
            _ => (0, 0),
        };
        let shift = Self::shift(bounds, to_inner);
        let (cells, count) = (self.cells.len(), ((last - first) >> shift) as usize + 1);
        self.cells.resize(cells + count, 0);
        let mut base = from;
        for cell in 0..count {
            let low = first + ((cell as u128) << shift);
            // Numbers below the first bound are in cell 0 as well.
            let below = |bound: &u64| u128::from(*bound) <= low && cell > 0;
            base += self.bounds[base..to].partition_point(below);
            let end = self.end(base, to, low, shift);
            self.cells[cells + cell] = match to_inner {
                true => self.inner(base, end),
                false => base as u32,
            };
            if !to_inner {
                self.longest_run = self.longest_run.max(end - base);
            }
            base = end;
        }
        Node {
            first: first as u64,
            cells: cells as u32,
            last: count as u16 - 1,
            shift,
        }
    }

    /// Number of the inner node for some bounds. One run, from whatever cells, has one node.
    fn inner(&mut self, from: usize, to: usize) -> u32 {
        if to - from > RUN {
            let node = self.node(from, to, false);
            self.inner.push(node);
            return self.inner.len() as u32 - 1;
        }
        if let Some(known) = self.through.get(&from) {
            return *known;
        }
        self.cells.push(from as u32);
        let cells = self.cells.len() as u32 - 1;
        self.inner.push(Node {
            first: 0,
            cells,
            last: 0,
            shift: 0,
        });
        let number = self.inner.len() as u32 - 1;
        self.through.insert(from, number);
        number
    }

    /// Width of a node's cells, as a power of two: about four cells for each bound, and before runs as many as leave no more
    /// than a run in each, if that is possible.
    fn shift(bounds: &[u64], to_inner: bool) -> u8 {
        let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else {
            return 0;
        };
        let first = u128::from(*first);
        let width = width(u128::from(*last) - first);
        let least = bounds
            .len()
            .next_power_of_two()
            .min(Self::MOST_CELLS / 4)
            .trailing_zeros();
        let most = if to_inner {
            least + 2
        } else {
            Self::MOST_CELLS.trailing_zeros()
        };
        let is_fine = |cells: &u32| {
            let cell = |bound: &u64| (u128::from(*bound) - first) >> width.saturating_sub(*cells);
            bounds
                .chunk_by(|one, other| cell(one) == cell(other))
                .all(|run| run.len() <= RUN)
        };
        width.saturating_sub((least..most).find(is_fine).unwrap_or(most)) as u8
    }
}
