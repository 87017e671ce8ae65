//! A list of at most 4,096 rules of one family, compiled.

use super::intervals::{Intervals, Key};
use super::service::{Fields, Service};
use super::sets::{Cut, Row, Rows, both, row, words};
use crate::rule::{Address, Rule};

/// Most rules of a list: a summary of their words is one word.
pub(super) const MOST_RULES: usize = 4096;

/// No rule.
const NONE: u16 = u16::MAX;

/// A compiled list. Rules that name only one of both addresses, or none, are in tables by service and address. Rules that
/// name both are found as bits: only packets both of whose addresses are named by some of them look there.
///
/// If the tables would be too large, all rules are found as bits.
pub(super) struct List<K> {
    service: Service,
    sources: Intervals<K>,
    destinations: Intervals<K>,
    tables: Option<Tables>,
    bits: Bits,
    /// Numbers of the rules in the order of bits.
    numbers: Box<[u16]>,
}

/// First rules by service and by one address's column.
struct Tables {
    by_source: Box<[u16]>,
    sources: usize,
    by_destination: Box<[u16]>,
    destinations: usize,
}

/// Rows of bits.
struct Bits {
    words: usize,
    sources: Side,
    destinations: Side,
    /// Rows of folded services, with a summary of each.
    services: Box<[u64]>,
    summaries: Box<[u64]>,
}

/// Rows of one side, without the words before the first and behind the last that is not 0.
struct Side {
    lines: Box<[Line]>,
    words: Box<[u64]>,
    /// Rules that match every address of the side.
    any: Row,
    any_summary: u64,
}

struct Line {
    /// Bit n: word n is not 0.
    summary: u64,
    /// Place of word 0, if it were there. Wraps below 0.
    base: u32,
}

/// The addresses of one side, by interval: column of the table, and line of bits above it.
struct Addresses<K> {
    intervals: Intervals<K>,
    columns: Rows,
    side: Side,
}

impl<K: Key> List<K> {
    /// Compiles rules, each with its number.
    pub(super) fn new(rules: &[(u16, &Rule)]) -> List<K> {
        let plain: Vec<&Rule> = rules.iter().map(|(_, rule)| *rule).collect();
        let numbers: Box<[u16]> = rules.iter().map(|(number, _)| *number).collect();
        let service = Service::new(&plain);
        let source = cut::<K>(&plain, Rule::source);
        let destination = cut::<K>(&plain, Rule::destination);
        let places =
            (source.rows.len() + destination.rows.len()) * service.rows().map_or(0, Rows::len);
        let in_tables = service.rows().is_some() && places <= Tables::MOST;
        let names = |rule: usize| {
            (
                range::<K>(plain[rule].source()).is_some(),
                range::<K>(plain[rule].destination()).is_some(),
            )
        };
        let count = plain.len();
        let in_bits = row(count, |rule| !in_tables || names(rule) == (true, true));
        let any = [
            row(count, |rule| !in_tables && !names(rule).0),
            row(count, |rule| !in_tables && !names(rule).1),
        ];
        let neither = row(count, |rule| names(rule) == (false, false));
        let [any_source, any_destination] = any;
        let sources = Addresses::<K>::new(
            &source,
            &row(count, |rule| names(rule) == (true, false)),
            &in_bits,
            any_source,
        );
        let destinations = Addresses::<K>::new(
            &destination,
            &row(count, |rule| names(rule) == (false, true)),
            &in_bits,
            any_destination,
        );
        let tables = service.rows().filter(|_| in_tables).map(|services| Tables {
            by_source: table(services, &sources.columns, None, &numbers),
            sources: sources.columns.len(),
            by_destination: table(services, &destinations.columns, Some(&neither), &numbers),
            destinations: destinations.columns.len(),
        });
        let bits = Bits {
            words: words(count),
            sources: sources.side,
            destinations: destinations.side,
            services: service.rows().map_or_else(Box::default, Rows::concatenated),
            summaries: service
                .rows()
                .into_iter()
                .flat_map(Rows::iter)
                .map(|row| summary(row))
                .collect(),
        };
        List {
            service,
            sources: sources.intervals,
            destinations: destinations.intervals,
            tables,
            bits,
            numbers,
        }
    }

    /// Number of the first rule that matches.
    #[inline]
    pub(super) fn first_match(&self, source: K, destination: K, fields: &Fields) -> Option<u16> {
        let source = self.sources.value(source);
        let destination = self.destinations.value(destination);
        let service = usize::from(self.service.class(fields));
        let lines = ((source >> 16) as usize, (destination >> 16) as usize);
        let Some(tables) = &self.tables else {
            return self.by_bits(lines, service, fields);
        };
        let by_source = tables.by_source[service * tables.sources + (source & 0xffff) as usize];
        let by_destination =
            tables.by_destination[service * tables.destinations + (destination & 0xffff) as usize];
        let mut first = by_source.min(by_destination);
        if lines.0 != 0 && lines.1 != 0 {
            first = first.min(self.by_bits(lines, service, fields).unwrap_or(NONE));
        }
        (first != NONE).then_some(first)
    }

    #[inline(never)]
    fn by_bits(&self, lines: (usize, usize), service: usize, fields: &Fields) -> Option<u16> {
        let bit = match self.service.apart(fields, self.bits.words) {
            None => self.bits.first_folded(lines, service),
            Some(parts) => self.bits.first(lines, u64::MAX, |word| {
                parts.iter().fold(u64::MAX, |bits, part| bits & part[word])
            }),
        };
        bit.map(|bit| self.numbers[bit])
    }

    pub(super) fn octets(&self) -> usize {
        let tables = self.tables.as_ref().map_or(0, |tables| {
            size_of_val(&*tables.by_source) + size_of_val(&*tables.by_destination)
        });
        self.service.octets()
            + self.sources.octets()
            + self.destinations.octets()
            + tables
            + self.bits.octets()
            + size_of_val(&*self.numbers)
    }
}

impl Tables {
    /// Most places in both tables.
    const MOST: usize = 2 << 20;
}

/// First rule by service, then by column. `always` are rules that every column has.
fn table(services: &Rows, columns: &Rows, always: Option<&Row>, numbers: &[u16]) -> Box<[u16]> {
    let columns: Vec<Row> = columns
        .iter()
        .map(|column| match always {
            Some(always) => column
                .iter()
                .zip(always)
                .map(|(one, other)| one | other)
                .collect(),
            None => column.clone(),
        })
        .collect();
    let first = |service: &Row, column: &Row| {
        let mut words = service
            .iter()
            .zip(column)
            .map(|(one, other)| one & other)
            .enumerate();
        let word = words.find(|(_, word)| *word != 0);
        word.map_or(NONE, |(place, word)| {
            numbers[place * 64 + word.trailing_zeros() as usize]
        })
    };
    services
        .iter()
        .flat_map(|service| columns.iter().map(move |column| first(service, column)))
        .collect()
}

impl Bits {
    #[inline]
    fn first_folded(&self, lines: (usize, usize), service: usize) -> Option<usize> {
        let from = service * self.words;
        let row = &self.services[from..from + self.words];
        self.first(lines, self.summaries[service], |word| row[word])
    }

    /// The first bit that is set on both sides and in the words of `service`, whose summary has all that are not 0.
    #[inline]
    fn first(
        &self,
        lines: (usize, usize),
        summary: u64,
        service: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let (sources, destinations) = (&self.sources, &self.destinations);
        let (source, destination) = (&sources.lines[lines.0], &destinations.lines[lines.1]);
        let mut left = summary
            & (source.summary | sources.any_summary)
            & (destination.summary | destinations.any_summary);
        while left != 0 {
            let word = left.trailing_zeros() as usize;
            let bits =
                service(word) & sources.word(source, word) & destinations.word(destination, word);
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            left &= left - 1;
        }
        None
    }

    fn octets(&self) -> usize {
        let rows = size_of_val(&*self.services) + size_of_val(&*self.summaries);
        rows + self.sources.octets() + self.destinations.octets()
    }
}

impl Side {
    fn new(rows: &Rows, any: Row) -> Side {
        let mut words = Vec::new();
        let line = |row: &Row| {
            let first = row.iter().position(|word| *word != 0).unwrap_or(0);
            let end = row
                .iter()
                .rposition(|word| *word != 0)
                .map_or(0, |last| last + 1);
            let base = (words.len() as u32).wrapping_sub(first as u32);
            words.extend_from_slice(&row[first..end.max(first)]);
            Line {
                summary: summary(row),
                base,
            }
        };
        let lines = rows.iter().map(line).collect();
        Side {
            lines,
            words: words.into(),
            any_summary: summary(&any),
            any,
        }
    }

    #[inline]
    fn word(&self, line: &Line, word: usize) -> u64 {
        let any = self.any[word];
        match line.summary >> word & 1 {
            0 => any,
            _ => any | self.words[line.base.wrapping_add(word as u32) as usize],
        }
    }

    fn octets(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.words) + size_of_val(&*self.any)
    }
}

impl<K: Key> Addresses<K> {
    fn new(cut: &Cut, in_tables: &[u64], in_bits: &[u64], any: Row) -> Addresses<K> {
        let (mut columns, mut lines) = (Rows::default(), Rows::default());
        let value = |row: &Row, columns: &mut Rows, lines: &mut Rows| {
            let column = columns
                .class(&both(row, in_tables))
                .expect("fewer than intervals");
            let line = lines
                .class(&both(row, in_bits))
                .expect("fewer than intervals");
            u32::from(column) | u32::from(line) << 16
        };
        // The first row is that of no rule: column 0 and line 0.
        let by_class: Vec<u32> = cut
            .rows
            .iter()
            .map(|row| value(row, &mut columns, &mut lines))
            .collect();
        let values: Vec<u32> = cut
            .classes
            .iter()
            .map(|class| by_class[usize::from(*class)])
            .collect();
        Addresses {
            intervals: Intervals::new(&cut.bounds, &values),
            side: Side::new(&lines, any),
            columns,
        }
    }
}

fn summary(row: &[u64]) -> u64 {
    let words = row.iter().enumerate();
    words.fold(0, |summary, (place, word)| {
        summary | u64::from(*word != 0) << place
    })
}

/// Cuts the addresses of one side at the rules' prefixes.
fn cut<K: Key>(rules: &[&Rule], side: impl Fn(&Rule) -> Address) -> Cut {
    let ranges = rules
        .iter()
        .enumerate()
        .filter_map(|(number, rule)| range::<K>(side(rule)).map(|(low, high)| (number, low, high)));
    Cut::new(&row(rules.len(), |_| false), K::MAX.number(), ranges)
}

/// First and last address of a prefix, nothing for every address.
fn range<K: Key>(addresses: Address) -> Option<(u128, u128)> {
    let Address::Prefix(prefix) = addresses else {
        return None;
    };
    let first = match prefix.network() {
        std::net::IpAddr::V4(address) => u128::from(u32::from(address)),
        std::net::IpAddr::V6(address) => u128::from(address),
    };
    let others = K::MAX
        .number()
        .checked_shr(u32::from(prefix.prefix_len()))
        .unwrap_or(0);
    (prefix.prefix_len() > 0).then_some((first, first | others))
}
