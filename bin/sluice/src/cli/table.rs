//! Tables that fit the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column: its heading, its side, and how soon it may go when the terminal is narrow (0: never).
#[derive(Clone, Copy, Debug)]
pub struct Column {
    heading: &'static str,
    align: Align,
    expendable: u8,
}

impl Column {
    /// A column of words.
    pub const fn words(heading: &'static str, expendable: u8) -> Self {
        Column {
            heading,
            align: Align::Left,
            expendable,
        }
    }

    /// A column of numbers.
    pub const fn numbers(heading: &'static str, expendable: u8) -> Self {
        Column {
            heading,
            align: Align::Right,
            expendable,
        }
    }
}

/// Rows under columns.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: usize = 2;

impl Table {
    /// A table without rows.
    pub fn new(columns: &[Column]) -> Self {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A table with its rows: a text for each column.
    pub fn of(columns: Vec<Column>, rows: Vec<Vec<String>>) -> Self {
        debug_assert!(rows.iter().all(|row| row.len() == columns.len()));
        Table { columns, rows }
    }

    /// Adds a row: a text for each column.
    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(row.into());
    }

    /// The table as lines of at most `width` columns, without limit if `None`.
    ///
    /// Columns that may go are left out, the most expendable first; then the widest texts are cut.
    pub fn render(&self, width: Option<usize>) -> Vec<String> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|c| self.natural_width(c))
            .collect();
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let width = width.unwrap_or(usize::MAX);
        while total(&kept, &widths) > width {
            let goes = kept
                .iter()
                .copied()
                .filter(|&c| self.columns[c].expendable > 0);
            match goes.max_by_key(|&c| self.columns[c].expendable) {
                Some(column) => kept.retain(|&c| c != column),
                None => break,
            }
        }
        while total(&kept, &widths) > width {
            match kept.iter().copied().max_by_key(|&c| widths[c]) {
                Some(widest) if widths[widest] > 4 => widths[widest] -= 1,
                _ => break,
            }
        }
        let headings = self.columns.iter().map(|c| c.heading.to_owned()).collect();
        std::iter::once(&headings)
            .chain(&self.rows)
            .map(|row| self.line(row, &kept, &widths))
            .collect()
    }

    fn natural_width(&self, column: usize) -> usize {
        let texts = self.rows.iter().map(|row| row[column].width());
        texts
            .chain([self.columns[column].heading.width()])
            .max()
            .unwrap_or(0)
    }

    fn line(&self, row: &[String], kept: &[usize], widths: &[usize]) -> String {
        let cells = kept.iter().map(|&c| {
            let text = cut(&row[c], widths[c]);
            let rest = " ".repeat(widths[c].saturating_sub(text.width()));
            match self.columns[c].align {
                Align::Left => text + &rest,
                Align::Right => rest + &text,
            }
        });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    }
}

fn total(kept: &[usize], widths: &[usize]) -> usize {
    kept.iter().map(|&c| widths[c]).sum::<usize>() + GAP * kept.len().saturating_sub(1)
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let head: String = text.chars().take_while(fits).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[
            Column::words("USER", 0),
            Column::words("MAC", 2),
            Column::numbers("UP", 1),
        ]);
        table.push([
            "ann@example".into(),
            "02:00:00:00:00:01".into(),
            "1.2 MB".into(),
        ]);
        table.push(["bo".into(), "02:00:00:00:00:02".into(), "17 kB".into()]);
        table
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            table().render(None),
            [
                "USER         MAC                    UP",
                "ann@example  02:00:00:00:00:01  1.2 MB",
                "bo           02:00:00:00:00:02   17 kB",
            ]
        );
    }

    #[test]
    fn characters_may_be_two_columns_wide() {
        let mut table = Table::new(&[Column::words("USER", 0), Column::numbers("UP", 0)]);
        table.push(["王小明".into(), "7".into()]);
        table.push(["alice".into(), "10".into()]);
        let lines = ["USER    UP", "王小明   7", "alice   10"];
        assert_eq!(table.render(None), lines);
        assert_eq!(table.render(Some(9))[1], "王小…   7");
        assert_eq!(table.render(Some(8))[1], "王…    7");
    }

    #[test]
    fn a_narrow_terminal_loses_the_expendable_first_and_cuts_last() {
        assert_eq!(table().render(Some(20))[1], "ann@example  1.2 MB");
        assert_eq!(table().render(Some(11))[1], "ann@example");
        assert_eq!(table().render(Some(6))[1], "ann@e…");
        for width in 4..60 {
            assert!(
                table()
                    .render(Some(width))
                    .iter()
                    .all(|line| line.width() <= width)
            );
        }
    }
}
