//! A list of at most 4,096 rules of one family, compiled.

use std::collections::HashMap;

use super::TooLarge;
use super::addresses;
use super::prefixes::Range;
use super::service::{Fields, More, Service};
use super::side::{Member, Side};
use crate::rule::{Address, Rule};

/// Most rules of a list.
pub(super) const MOST_RULES: usize = 4096;

/// No rule.
pub(super) const NONE: u16 = u16::MAX;

/// A compiled list. A rule is found by its destination, or by its source if it names no destination or if many rules name the same.
pub(super) struct List<A: addresses::Address> {
    service: Service,
    by_destination: Side<A>,
    /// Nothing if there are no such rules.
    by_source: Option<Side<A>>,
}

impl<A: addresses::Address> List<A> {
    /// Compiles rules, each with its number.
    pub(super) fn new(rules: &[(u16, &Rule)]) -> Result<List<A>, TooLarge> {
        let numbers: Vec<u16> = rules.iter().map(|(number, _)| *number).collect();
        let rules: Vec<&Rule> = rules.iter().map(|(_, rule)| *rule).collect();
        let (service, rows) = Service::new(&rules).ok_or(TooLarge::Numbers)?;
        let (by_destination, by_source) = split::<A>(&rules);
        let by_source = match by_source.is_empty() {
            true => None,
            false => Some(Side::new(&by_source, &rows, &numbers)?),
        };
        Ok(List {
            service,
            by_destination: Side::new(&by_destination, &rows, &numbers)?,
            by_source,
        })
    }

    /// Number of the first rule that matches.
    #[inline(always)]
    pub(super) fn first_match(&self, source: A, destination: A, fields: &impl Fields) -> u16 {
        let [protocol, to, from] = self.service.places(fields);
        match &self.service.more {
            More::Nothing => self.first(source, destination, [protocol, to, from]),
            More::Flags(flags) => {
                let places = [protocol, to, from, flags.place(fields)];
                self.first_of_more(source, destination, places)
            }
            More::All(seldom) => {
                let [flags, dscp, length] = seldom.places(fields);
                let places = [protocol, to, from, flags, dscp, length];
                self.first_of_more(source, destination, places)
            }
        }
    }

    #[inline(never)]
    fn first_of_more<const N: usize>(&self, source: A, destination: A, places: [u16; N]) -> u16 {
        self.first(source, destination, places)
    }

    #[inline(always)]
    fn first<const N: usize>(&self, source: A, destination: A, places: [u16; N]) -> u16 {
        let first = self.by_destination.first(destination, source, places);
        match &self.by_source {
            None => first,
            Some(side) => first.min(side.first(source, destination, places)),
        }
    }

    pub(super) fn octets(&self) -> usize {
        let by_source = self.by_source.as_ref().map_or(0, Side::octets);
        self.service.octets() + self.by_destination.octets() + by_source
    }
}

/// Most rules with the same destination, and with sources, that are found by the destination.
const CROWD: usize = 8;

/// Rules that are found by the destination, and those that are found by the source.
fn split<A: addresses::Address>(rules: &[&Rule]) -> (Vec<Member>, Vec<Member>) {
    let everything = (0, A::MAX);
    let range = |address| range::<A>(address).unwrap_or(everything);
    let ranges = rules
        .iter()
        .map(|rule| (range(rule.source), range(rule.destination)));
    let ranges: Vec<(Range, Range)> = ranges.collect();
    let (mut by_destination, mut by_source) = (HashMap::new(), HashMap::new());
    for (source, destination) in &ranges {
        if *source != everything {
            *by_destination.entry(destination).or_insert(0) += 1;
            *by_source.entry(source).or_insert(0) += 1;
        }
    }
    let is_by_source = |(source, destination): &(Range, Range)| {
        let crowd = by_destination.get(destination).copied().unwrap_or(0);
        *source != everything
            && (*destination == everything || crowd > CROWD && by_source[source] < crowd)
    };
    let (mut destinations, mut sources) = (Vec::new(), Vec::new());
    for (rule, ranges) in (0..).zip(&ranges) {
        let (source, destination) = *ranges;
        match is_by_source(ranges) {
            true => sources.push(Member {
                rule,
                own: source,
                other: destination,
            }),
            false => destinations.push(Member {
                rule,
                own: destination,
                other: source,
            }),
        }
    }
    (destinations, sources)
}

/// First and last address of a prefix, nothing for every address.
fn range<A: addresses::Address>(addresses: Address) -> Option<Range> {
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
