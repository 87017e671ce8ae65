//! A list of at most 4,096 rules of one family, compiled.

use std::collections::HashSet;

use super::addresses;
use super::bits::{Bits, Group};
use super::places::Places;
use super::service::{Apart, Fields, Service};
use super::sets::{Cut, Row, Rows, both, row};
use crate::rule::{Address, Rule};

/// Most rules of a list.
pub(super) const MOST_RULES: usize = 4096;

/// No rule.
pub(super) const NONE: u16 = u16::MAX;

/// A compiled list. Rules that name only one of both addresses, or none, are in tables by service and address. Rules that
/// name both are found as bits: only packets both of whose addresses are named by some of them look there.
///
/// If the tables would be too large, all rules are found as bits.
pub(super) struct List<A: addresses::Address> {
    service: Service,
    sources: A::Map,
    destinations: A::Map,
    tables: Tables,
    bits: Bits,
}

/// First rules by service and by one address's column.
struct Tables {
    by_source: Places<u16>,
    sources: usize,
    by_destination: Places<u16>,
    destinations: usize,
}

/// The addresses of one side: an interval's value is its column of the table, and above it its line of bits.
struct Side {
    cut: Cut,
    /// Rules that name only this side.
    alone: Row,
    /// Rules that are found as bits.
    in_bits: Row,
    /// Rules that are found as bits and match every address of this side.
    any: Row,
}

impl<A: addresses::Address> List<A> {
    /// Compiles rules, each with its number. Nothing if they tell too many ports or lengths apart.
    pub(super) fn new(rules: &[(u16, &Rule)]) -> Option<List<A>> {
        let numbers: Vec<u16> = rules.iter().map(|(number, _)| *number).collect();
        let rules: Vec<&Rule> = rules.iter().map(|(_, rule)| *rule).collect();
        let (service, dimensions) = Service::new(&rules)?;
        let folded = (dimensions.len() == 1).then(|| &dimensions[0]);
        let cuts = [
            cut::<A>(&rules, Rule::source)?,
            cut::<A>(&rules, Rule::destination)?,
        ];
        let named: Vec<(bool, bool)> = rules
            .iter()
            .map(|rule| {
                (
                    range::<A>(rule.source()).is_some(),
                    range::<A>(rule.destination()).is_some(),
                )
            })
            .collect();
        let of = |is_in: &dyn Fn((bool, bool)) -> bool| row(rules.len(), |rule| is_in(named[rule]));
        let alone = [
            of(&|names| names == (true, false)),
            of(&|names| names == (false, true)),
        ];
        let columns = columns(&cuts[0], &alone[0]) + columns(&cuts[1], &alone[1]);
        let services = folded.map_or(usize::MAX, Rows::len);
        let tabled = services.saturating_mul(columns) <= Tables::MOST;
        let in_bits = of(&|names| !tabled || names == (true, true));
        let [source, destination] = cuts;
        let source = Side {
            cut: source,
            alone: alone[0].clone(),
            in_bits: in_bits.clone(),
            any: of(&|names| !tabled && !names.0),
        };
        let destination = Side {
            cut: destination,
            alone: alone[1].clone(),
            in_bits: in_bits.clone(),
            any: of(&|names| !tabled && !names.1),
        };
        let (sources, source_columns, source_lines) = source.values::<A>();
        let (destinations, destination_columns, destination_lines) = destination.values::<A>();
        let services = folded.filter(|_| tabled);
        let neither = of(&|names| names == (false, false));
        let tables = Tables {
            by_source: table(services, &source_columns, None, &numbers),
            sources: source_columns.len(),
            by_destination: table(services, &destination_columns, Some(&neither), &numbers),
            destinations: destination_columns.len(),
        };
        let group = Group::new(&in_bits, &numbers);
        let bits = Bits::new(
            group,
            [
                (&source_lines, &source.any),
                (&destination_lines, &destination.any),
            ],
            &dimensions,
        );
        Some(List {
            service,
            sources,
            destinations,
            tables,
            bits,
        })
    }

    /// Number of the first rule that matches.
    #[inline(always)]
    pub(super) fn first_match(&self, source: A, destination: A, fields: &impl Fields) -> u16 {
        let folded = match &self.service {
            Service::Folded(folded) => folded,
            Service::Apart(apart) => return self.first_apart(apart, source, destination, fields),
        };
        let service = folded.class(fields);
        let source = source.value(&self.sources);
        let destination = destination.value(&self.destinations);
        let columns = [(source & 0xffff) as usize, (destination & 0xffff) as usize];
        let first = self.tables.first(service, columns);
        let lines = [(source >> 16) as usize, (destination >> 16) as usize];
        first.min(self.bits.first(lines, service))
    }

    #[inline(never)]
    fn first_apart(&self, apart: &Apart, source: A, destination: A, fields: &impl Fields) -> u16 {
        let source = source.value(&self.sources);
        let destination = destination.value(&self.destinations);
        let lines = [(source >> 16) as usize, (destination >> 16) as usize];
        self.bits.first_apart(lines, apart.classes(fields))
    }

    pub(super) fn octets(&self) -> usize {
        let tables = self.tables.by_source.octets() + self.tables.by_destination.octets();
        self.service.octets()
            + A::octets(&self.sources)
            + A::octets(&self.destinations)
            + tables
            + self.bits.octets()
    }
}

impl Tables {
    /// Most places in both tables.
    const MOST: usize = 4 << 20;

    #[inline]
    fn first(&self, service: usize, [source, destination]: [usize; 2]) -> u16 {
        // Tables without entries have one for no rule.
        let by_source = self.by_source.at(service * self.sources + source);
        let by_destination = self
            .by_destination
            .at(service * self.destinations + destination);
        by_source.min(by_destination)
    }
}

/// First rule by service, then by column. `always` are rules that every column has.
fn table(
    services: Option<&Rows>,
    columns: &Rows,
    always: Option<&Row>,
    numbers: &[u16],
) -> Places<u16> {
    let with_always = |column: &Row| match always {
        Some(always) => column
            .iter()
            .zip(always)
            .map(|(one, other)| one | other)
            .collect(),
        None => column.clone(),
    };
    let columns: Vec<Row> = columns.iter().map(with_always).collect();
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
    let services = services.into_iter().flat_map(Rows::iter);
    let firsts =
        services.flat_map(|service| columns.iter().map(move |column| first(service, column)));
    Places::new(firsts.collect(), NONE)
}

impl Side {
    /// The value of each address, and the rows of columns and lines.
    fn values<A: addresses::Address>(&self) -> (A::Map, Rows, Rows) {
        let (mut columns, mut lines) = (Rows::default(), Rows::default());
        let mut value = |row: &Row| {
            let column = columns
                .class(&both(row, &self.alone))
                .expect("fewer than intervals");
            let line = lines
                .class(&both(row, &self.in_bits))
                .expect("fewer than intervals");
            u32::from(column) | u32::from(line) << 16
        };
        let by_class: Vec<u32> = self.cut.rows.iter().map(&mut value).collect();
        let values: Vec<u32> = self
            .cut
            .classes
            .iter()
            .map(|class| by_class[usize::from(*class)])
            .collect();
        (
            A::compile((self.cut.bounds.clone(), values)),
            columns,
            lines,
        )
    }
}

/// Number of different sets of rules of `alone` on one side.
fn columns(cut: &Cut, alone: &Row) -> usize {
    let sets: HashSet<Row> = cut.rows.iter().map(|row| both(row, alone)).collect();
    sets.len()
}

/// Cuts the addresses of one side at the rules' prefixes.
fn cut<A: addresses::Address>(rules: &[&Rule], side: impl Fn(&Rule) -> Address) -> Option<Cut> {
    let ranges = rules
        .iter()
        .enumerate()
        .filter_map(|(number, rule)| range::<A>(side(rule)).map(|(low, high)| (number, low, high)));
    Cut::new(&row(rules.len(), |_| false), A::MAX, ranges)
}

/// First and last address of a prefix, nothing for every address.
fn range<A: addresses::Address>(addresses: Address) -> Option<(u128, u128)> {
    let Address::Prefix(prefix) = addresses else {
        return None;
    };
    let first = match prefix.network() {
        std::net::IpAddr::V4(address) => u128::from(u32::from(address)),
        std::net::IpAddr::V6(address) => u128::from(address),
    };
    let others = A::MAX
        .checked_shr(u32::from(prefix.prefix_len()))
        .unwrap_or(0);
    (prefix.prefix_len() > 0).then_some((first, first | others))
}
