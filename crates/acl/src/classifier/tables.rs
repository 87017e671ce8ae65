//! First rules by service and by one address.

use super::list::NONE;
use super::places::Places;
use super::sets::{Cut, Row, Rows, both, either};

/// A table of each side: the first rule by service and by the address's column.
pub(super) struct Tables {
    /// By service: where its rows in both tables begin.
    rows: Places<[u32; 2]>,
    by_source: Box<[u16]>,
    by_destination: Box<[u16]>,
}

impl Tables {
    /// Tables without rules.
    pub(super) fn empty() -> Tables {
        Tables {
            rows: Places::new(Vec::new(), [0, 0]),
            by_source: Box::default(),
            by_destination: Box::default(),
        }
    }

    /// Puts both sides together.
    pub(super) fn new(source: Side, destination: Side) -> Tables {
        let rows = source
            .rows
            .iter()
            .zip(&destination.rows)
            .map(|(source, destination)| [*source, *destination]);
        Tables {
            rows: Places::new(rows.collect(), [0, 0]),
            by_source: source.firsts,
            by_destination: destination.firsts,
        }
    }

    /// Number of the first rule by a folded service and the columns of source and destination.
    #[inline(always)]
    pub(super) fn first(&self, service: usize, columns: [usize; 2]) -> u16 {
        let rows = self.rows.at(service);
        // Empty tables know no rule.
        let by_source = self.by_source.get(rows[0] as usize + columns[0]);
        let by_destination = self.by_destination.get(rows[1] as usize + columns[1]);
        *by_source
            .unwrap_or(&NONE)
            .min(by_destination.unwrap_or(&NONE))
    }

    pub(super) fn octets(&self) -> usize {
        self.rows.octets() + size_of_val(&*self.by_source) + size_of_val(&*self.by_destination)
    }
}

/// The table of one side.
pub(super) struct Side {
    /// Where each service's row begins. Services that differ only in rules of others share a row.
    rows: Vec<u32>,
    firsts: Box<[u16]>,
}

impl Side {
    /// Most entries.
    const MOST: usize = 4 << 20;

    /// The table of the rules in `alone`, which name addresses of this side, and of those in `always`, which name none.
    /// Columns have the order in which the sets of `alone` come in `cut`. Nothing if the table would be too large.
    pub(super) fn new(
        services: &Rows,
        cut: &Cut,
        alone: &Row,
        always: &Row,
        numbers: &[u16],
    ) -> Option<Side> {
        let mut columns = Rows::default();
        for row in cut.rows.iter() {
            columns.class(&both(row, alone))?;
        }
        let named = either(alone, always);
        let mut rows = Rows::default();
        let classes = services
            .iter()
            .map(|service| rows.class(&both(service, &named)));
        let classes = classes.collect::<Option<Vec<u16>>>()?;
        if rows.len() * columns.len() > Self::MOST {
            return None;
        }
        let columns: Vec<Row> = columns
            .iter()
            .map(|column| either(column, always))
            .collect();
        let firsts = rows
            .iter()
            .flat_map(|row| columns.iter().map(|column| first(row, column, numbers)));
        let firsts = firsts.collect();
        let place = |class: u16| u32::from(class) * columns.len() as u32;
        Some(Side {
            rows: classes.into_iter().map(place).collect(),
            firsts,
        })
    }
}

/// Number of the first rule that is in both rows.
fn first(one: &Row, other: &Row, numbers: &[u16]) -> u16 {
    let mut words = one
        .iter()
        .zip(other)
        .map(|(one, other)| one & other)
        .enumerate();
    let word = words.find(|(_, word)| *word != 0);
    word.map_or(NONE, |(place, word)| {
        numbers[place * 64 + word.trailing_zeros() as usize]
    })
}
