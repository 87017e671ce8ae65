//! Sets of rules as rows of bits, and the classes of values that the rules tell apart.

use std::collections::HashMap;

/// Rules as bits: rule n is bit n % 64 of word n / 64.
pub(super) type Row = Box<[u64]>;

/// The row with the rules for which `is_in` holds.
pub(super) fn row(rules: usize, is_in: impl Fn(usize) -> bool) -> Row {
    let mut row = vec![0; rules.div_ceil(64).max(1)].into_boxed_slice();
    for rule in (0..rules).filter(|rule| is_in(*rule)) {
        row[rule / 64] |= 1 << (rule % 64);
    }
    row
}

/// Different rows, each with a number: its class.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    known: HashMap<Row, u16>,
}

impl Rows {
    /// Most classes of one dimension.
    pub(super) const MOST: usize = 1 << 16;

    /// The class of a row, a new one if the row is new. Nothing if there are too many.
    pub(super) fn class(&mut self, row: &[u64]) -> Option<u16> {
        if let Some(class) = self.known.get(row) {
            return Some(*class);
        }
        if self.rows.len() == Self::MOST {
            return None;
        }
        let class = self.rows.len() as u16;
        self.rows.push(row.into());
        self.known.insert(row.into(), class);
        Some(class)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }
}

/// Numbers cut into intervals in which the same rules match.
pub(super) struct Cut {
    /// First numbers of all intervals but the one that begins with 0. Sorted, all different.
    pub(super) bounds: Vec<u32>,
    /// Class of each interval, one more than there are bounds.
    pub(super) classes: Vec<u16>,
    pub(super) rows: Rows,
}

impl Cut {
    /// Cuts 16-bit numbers. The rules of `always` match everywhere, the others in their ranges, which include
    /// both ends and do not overlap for one rule. The class of `always` is 0. Nothing if there are too many classes.
    pub(super) fn new(
        always: &[u64],
        ranges: impl Iterator<Item = (usize, u32, u32)>,
    ) -> Option<Cut> {
        let mut turns = Vec::new();
        for (rule, low, high) in ranges {
            turns.push((low, rule));
            if high < u16::MAX.into() {
                turns.push((high + 1, rule));
            }
        }
        turns.sort_unstable();
        let mut rows = Rows::default();
        let mut row: Row = always.into();
        let mut cut = Cut {
            bounds: Vec::new(),
            classes: vec![0],
            rows: Rows::default(),
        };
        rows.class(&row);
        for turn in turns.chunk_by(|one, other| one.0 == other.0) {
            for (_, rule) in turn {
                row[rule / 64] ^= 1 << (rule % 64);
            }
            let class = rows.class(&row)?;
            match turn[0].0 {
                0 => cut.classes[0] = class,
                bound if cut.classes.last() != Some(&class) => {
                    cut.bounds.push(bound);
                    cut.classes.push(class);
                }
                _ => {}
            }
        }
        Some(Cut { rows, ..cut })
    }
}
