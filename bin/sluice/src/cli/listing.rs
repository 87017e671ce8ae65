//! Rows of the local API's tables as lines of text: what the catalogue says of their columns, types and units.

use super::table::{Column, Table};
use super::time::{self, moment};
use super::units::{bits_per_second, count, duration, octets};
use northbound::catalogue::{self, Kind, Place, Unit};
use northbound::shown_word;
use serde::Serialize;
use serde_json::{Map, Value};

/// A row: its fields as JSON has them.
pub type Row = Map<String, Value>;

/// Rows as a table. `derive` adds the fields that a row's message does not have.
pub fn table<R: Serialize>(
    of: &catalogue::Table,
    rows: &[R],
    derive: impl Fn(&R, &mut Row),
) -> Table {
    let headings = Headings::of(of.columns);
    let mut lines = Vec::with_capacity(rows.len());
    for row in rows {
        let mut fields = fields(row);
        derive(row, &mut fields);
        headings.lines(of.columns, &fields, &mut lines);
    }
    Table::of(of.columns.iter().filter_map(column).collect(), lines)
}

fn fields(row: &impl Serialize) -> Row {
    match serde_json::to_value(row) {
        Ok(Value::Object(fields)) => fields,
        _ => Row::new(),
    }
}

fn column(column: &catalogue::Column) -> Option<Column> {
    match (column.place, &column.kind) {
        (Place::Under(heading, expendable), Kind::Number(unit)) if is_quantity(*unit) => {
            Some(Column::numbers(heading, expendable))
        }
        (Place::Under(heading, expendable), _) => Some(Column::words(heading, expendable)),
        _ => None,
    }
}

fn is_quantity(unit: Unit) -> bool {
    !matches!(unit, Unit::Id | Unit::PrefixLength | Unit::Time)
}

/// The headings of a table in their order, each a place for a cell.
struct Headings(Vec<&'static str>);

impl Headings {
    fn of(columns: &[catalogue::Column]) -> Self {
        let heading = |column: &catalogue::Column| match column.place {
            Place::Under(heading, _) => Some(heading),
            Place::Nowhere | Place::Beside(_) => None,
        };
        Headings(columns.iter().filter_map(heading).collect())
    }

    fn at(&self, column: &catalogue::Column) -> Option<usize> {
        match column.place {
            Place::Under(heading, _) => self.0.iter().position(|h| *h == heading),
            Place::Nowhere | Place::Beside(_) => None,
        }
    }

    /// A row's line, and those of the rows below it.
    fn lines(&self, columns: &[catalogue::Column], row: &Row, lines: &mut Vec<Vec<String>>) {
        let own = self.cells(columns, row);
        let first = lines.len();
        for column in columns {
            let Kind::Rows {
                columns: below,
                repeated,
            } = &column.kind
            else {
                continue;
            };
            let again = columns.iter().filter(|c| repeated.contains(&c.field));
            let again: Vec<usize> = again.filter_map(|column| self.at(column)).collect();
            for row in elements(field(row, column.field)) {
                let mut cells = self.cells(below, row);
                for &at in &again {
                    cells[at].clone_from(&own[at]);
                }
                lines.push(cells);
            }
        }
        lines.insert(first, own);
    }

    fn cells(&self, columns: &[catalogue::Column], row: &Row) -> Vec<String> {
        let mut cells = vec![String::new(); self.0.len()];
        let mut last = 0;
        for column in columns {
            if column.place == Place::Nowhere {
                continue;
            }
            let mut text = text(&column.kind, field(row, column.field));
            if text.is_empty() {
                text.push_str(column.absent);
            }
            if let Place::Beside(between) = column.place {
                put_beside(&mut cells[last], between, &text);
            } else if let Some(at) = self.at(column) {
                last = at;
                cells[at] = text;
            }
        }
        cells
    }
}

fn put_beside(cell: &mut String, between: &str, text: &str) {
    let names_it_already = text.strip_prefix(cell.as_str());
    if names_it_already.is_some_and(|rest| rest.starts_with('/')) {
        text.clone_into(cell);
    } else if !text.is_empty() {
        cell.push_str(between);
        cell.push_str(text);
    }
}

fn elements(list: &Value) -> impl Iterator<Item = &Row> {
    let elements = list.as_array().into_iter().flatten();
    elements.filter_map(Value::as_object)
}

fn field<'r>(row: &'r Row, path: &str) -> &'r Value {
    static NONE: Value = Value::Null;
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match (row.get(first), rest) {
        (Some(value), "") => value,
        (Some(Value::Object(below)), rest) => field(below, rest),
        _ => &NONE,
    }
}

fn text(kind: &Kind, value: &Value) -> String {
    match (kind, value) {
        (Kind::Text, Value::String(text)) => text.clone(),
        (Kind::Texts, Value::Array(all)) => {
            let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            texts.join(", ")
        }
        (Kind::Number(unit), value) => value
            .as_u64()
            .map_or_else(String::new, |n| number(*unit, n)),
        (Kind::Word(words), Value::String(word)) => shown_word(words, word),
        (Kind::Flag(yes, _), Value::Bool(true) | Value::Object(_)) => (*yes).into(),
        (Kind::Flag(_, no), _) => (*no).into(),
        (Kind::Cell(columns), list) => {
            let one = |row| Headings(vec![""]).cells(columns, row).concat();
            let all: Vec<String> = elements(list).map(one).collect();
            all.join(", ")
        }
        _ => String::new(),
    }
}

fn number(unit: Unit, number: u64) -> String {
    match unit {
        Unit::Id | Unit::Exact => number.to_string(),
        Unit::PrefixLength => format!("/{number}"),
        Unit::Count => count(number),
        Unit::Octets => octets(number),
        Unit::BitsPerSecond => bits_per_second(number as f64 / 8.0),
        Unit::Nanoseconds => duration(number / 1_000_000_000),
        Unit::Microseconds => format!("{:.1} ms", number as f64 / 1000.0),
        Unit::Seconds => duration(number),
        Unit::SecondsAgo => format!("{} ago", duration(number)),
        Unit::Time => moment(number).trim_end_matches('Z').to_owned(),
        Unit::TimeAgo => format!("{} ago", duration(time::now().saturating_sub(number))),
    }
}

/// What each column of a table is, for its help.
pub fn columns_help(of: &catalogue::Table) -> String {
    let mut columns: Vec<(&str, String)> = Vec::new();
    let mut others = Vec::new();
    for column in of.columns {
        match (column.place, columns.last_mut()) {
            (Place::Under(heading, _), _) => columns.push((heading, column.about.into())),
            (Place::Beside(_), Some((_, about))) => {
                about.push_str("; ");
                about.push_str(column.about);
            }
            _ => others.push(column.field),
        }
    }
    let width = columns.iter().map(|(heading, _)| heading.len()).max();
    let width = width.unwrap_or_default();
    let lines = columns
        .iter()
        .map(|(heading, about)| format!("\n  {heading:<width$}  {about}"));
    let mut help = format!("Columns:{}", lines.collect::<String>());
    if !others.is_empty() {
        help.push_str(&format!("\n\nOnly in JSON: {}", others.join(", ")));
    }
    help
}
