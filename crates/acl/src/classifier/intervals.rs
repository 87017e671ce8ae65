//! Values of addresses: intervals behind a tree of tables.

/// An address of either family.
pub(super) trait Key: Copy + Ord {
    /// The highest address.
    const MAX: Self;
    fn new(number: u128) -> Self;
    fn number(self) -> u128;
    /// `(self - first) >> shift`, 0 below `first`, at most `last`.
    fn cell(self, first: Self, shift: u32, last: u32) -> usize;
}

macro_rules! key {
    ($key:ty) => {
        impl Key for $key {
            const MAX: Self = <$key>::MAX;

            fn new(number: u128) -> Self {
                number as $key
            }

            fn number(self) -> u128 {
                u128::from(self)
            }

            #[inline]
            fn cell(self, first: Self, shift: u32, last: u32) -> usize {
                let cell = self.saturating_sub(first) >> (shift % <$key>::BITS);
                cell.min(<$key>::from(last)) as usize
            }
        }
    };
}

key!(u32);
key!(u128);

/// Most bounds that are compared one by one.
const RUN: usize = 4;

/// Bit of a cell that leads to a node. Without it the cell is the number of bounds up to its run.
const NODE: u16 = 1 << 15;

/// Cells of equal width between the first and the last bound of a node.
struct Node<K> {
    first: K,
    shift: u32,
    last: u32,
    /// Place of the first cell.
    cells: u32,
}

/// A value for each address.
pub(super) struct Intervals<K> {
    nodes: Box<[Node<K>]>,
    cells: Box<[u16]>,
    /// First addresses of all intervals but the first one, and a run of the highest address.
    bounds: Box<[K]>,
    /// Values of the intervals. The last one stands here once more for each bound that is none.
    values: Box<[u32]>,
}

impl<K: Key> Intervals<K> {
    /// Most bounds: those of 4,096 prefixes.
    pub(super) const MOST: usize = 8192;

    /// Intervals by their sorted bounds, and one value more.
    pub(super) fn new(bounds: &[u128], values: &[u32]) -> Intervals<K> {
        assert!(bounds.len() <= Self::MOST && values.len() == bounds.len() + 1);
        let mut bounds: Vec<K> = bounds.iter().map(|bound| K::new(*bound)).collect();
        let mut builder = Builder {
            nodes: Vec::new(),
            cells: Vec::new(),
            bounds: &bounds,
        };
        builder.node(0, bounds.len());
        let (nodes, cells) = (builder.nodes.into(), builder.cells.into());
        let mut values = values.to_vec();
        let last = values[bounds.len()];
        bounds.resize(bounds.len() + RUN, K::MAX);
        values.resize(values.len() + RUN, last);
        Intervals {
            nodes,
            cells,
            bounds: bounds.into(),
            values: values.into(),
        }
    }

    #[inline]
    pub(super) fn value(&self, key: K) -> u32 {
        let mut entry = NODE;
        while entry & NODE != 0 {
            let node = &self.nodes[usize::from(entry & !NODE)];
            let cell = key.cell(node.first, node.shift, node.last);
            entry = self.cells[node.cells as usize + cell];
        }
        let base = usize::from(entry);
        let run = &self.bounds[base..base + RUN];
        let below: usize = run.iter().map(|bound| usize::from(*bound <= key)).sum();
        self.values[base + below]
    }

    pub(super) fn octets(&self) -> usize {
        let (nodes, cells) = (size_of_val(&*self.nodes), size_of_val(&*self.cells));
        nodes + cells + size_of_val(&*self.bounds) + size_of_val(&*self.values)
    }
}

struct Builder<'a, K> {
    nodes: Vec<Node<K>>,
    cells: Vec<u16>,
    bounds: &'a [K],
}

impl<K: Key> Builder<'_, K> {
    const MOST_CELLS: usize = 4096;

    /// Adds the node for the bounds from `from` to before `to`, and those below it. Returns its cell.
    ///
    /// First and last bound of a node are in different cells, or its cells are one address wide: the tree ends.
    fn node(&mut self, from: usize, to: usize) -> u16 {
        let bounds = &self.bounds[from..to];
        let (first, last) = match (bounds.first(), bounds.last()) {
            (Some(first), Some(last)) => (first.number(), last.number()),
            _ => (0, 0),
        };
        let most = (bounds.len() * 4)
            .next_power_of_two()
            .clamp(4, Self::MOST_CELLS);
        let width = 128 - (last - first).leading_zeros();
        let shift = width.saturating_sub(most.trailing_zeros());
        let number = self.nodes.len();
        let (cells, count) = (self.cells.len(), ((last - first) >> shift) as usize + 1);
        let node = Node {
            first: K::new(first),
            shift,
            last: count as u32 - 1,
            cells: cells as u32,
        };
        self.nodes.push(node);
        self.cells.resize(cells + count, 0);
        let mut base = from;
        for cell in 0..count {
            let low = first + ((cell as u128) << shift);
            // Addresses below the first bound are in cell 0 as well.
            let below = |bound: &K| bound.number() <= low && cell > 0;
            base += self.bounds[base..to].partition_point(below);
            let inside = |bound: &K| (bound.number() - low) >> shift == 0;
            let end = base + self.bounds[base..to].partition_point(inside);
            self.cells[cells + cell] = match end - base {
                0..=RUN => base as u16,
                _ => self.node(base, end),
            };
            base = end;
        }
        NODE | number as u16
    }
}
