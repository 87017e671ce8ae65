//! A list of at most 4,096 rules of one family, compiled.

use super::addresses;
use super::bits::{Bits, Group};
use super::service::{Apart, Fields, Service};
use super::sets::{Cut, Row, Rows, both, either, row};
use super::tables::{self, Tables};
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

/// The addresses of one side: an interval's value is its column of the table, and above it its line of bits.
struct Side {
    cut: Cut,
    /// Rules that name only this side.
    alone: Row,
}

impl<A: addresses::Address> List<A> {
    /// Compiles rules, each with its number. Nothing if they tell too many ports or lengths apart.
    pub(super) fn new(rules: &[(u16, &Rule)]) -> Option<List<A>> {
        let numbers: Vec<u16> = rules.iter().map(|(number, _)| *number).collect();
        let rules: Vec<&Rule> = rules.iter().map(|(_, rule)| *rule).collect();
        let (service, dimensions) = Service::new(&rules)?;
        let names = |rule: usize| {
            (
                range::<A>(rules[rule].source()).is_some(),
                range::<A>(rules[rule].destination()).is_some(),
            )
        };
        let of = |sides: (bool, bool)| row(rules.len(), |rule| names(rule) == sides);
        let (none, neither, both) = (
            row(rules.len(), |_| false),
            of((false, false)),
            of((true, true)),
        );
        let source = Side {
            cut: cut::<A>(&rules, Rule::source)?,
            alone: of((true, false)),
        };
        let destination = Side {
            cut: cut::<A>(&rules, Rule::destination)?,
            alone: of((false, true)),
        };
        let tables = match &dimensions[..] {
            [services] => tables::Side::new(services, &source.cut, &source.alone, &none, &numbers)
                .zip(tables::Side::new(
                    services,
                    &destination.cut,
                    &destination.alone,
                    &neither,
                    &numbers,
                )),
            _ => None,
        };
        let all = row(rules.len(), |_| true);
        let (in_bits, any) = match tables {
            Some(_) => (&both, [none.clone(), none]),
            None => (
                &all,
                [
                    either(&destination.alone, &neither),
                    either(&source.alone, &neither),
                ],
            ),
        };
        let (sources, source_lines) = source.values::<A>(in_bits);
        let (destinations, destination_lines) = destination.values::<A>(in_bits);
        let lines = [(&source_lines, &any[0]), (&destination_lines, &any[1])];
        let bits = Bits::new(Group::new(in_bits, &numbers), lines, &dimensions);
        let tables = tables.map_or_else(Tables::empty, |(source, destination)| {
            Tables::new(source, destination)
        });
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
        let addresses = A::octets(&self.sources) + A::octets(&self.destinations);
        self.service.octets() + addresses + self.tables.octets() + self.bits.octets()
    }
}

impl Side {
    /// The value of each address, and the rows of lines, which have the rules of `in_bits`.
    fn values<A: addresses::Address>(&self, in_bits: &Row) -> (A::Map, Rows) {
        let (mut columns, mut lines) = (Rows::default(), Rows::default());
        let mut value = |row: &Row| {
            let column = columns
                .class(&both(row, &self.alone))
                .expect("fewer than intervals");
            let line = lines
                .class(&both(row, in_bits))
                .expect("fewer than intervals");
            u32::from(column) | u32::from(line) << 16
        };
        let by_class: Vec<u32> = self.cut.rows.iter().map(&mut value).collect();
        let classes = self.cut.classes.iter();
        let values = classes.map(|class| by_class[usize::from(*class)]).collect();
        (A::compile((self.cut.bounds.clone(), values)), lines)
    }
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
