//! Finds the first rule that matches a packet.

mod addresses;
mod blocks;
mod bound;
mod list;
mod pages;
mod prefixes;
mod service;
mod sets;
mod side;

use addresses::Address;
pub use bound::surely_fits;
use list::List;
use service::Fields;

use crate::{Packet4, Packet6, Rule};

/// Most rules of a classifier.
pub const MOST_RULES: usize = 8192;

/// Most octets of a classifier: 64 MiB.
pub const MOST_OCTETS: usize = 64 << 20;

/// Why rules cannot be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// There are more than [`MOST_RULES`] rules.
    #[error("{0} rules, {MOST_RULES} are permitted")]
    Rules(usize),
    /// The rules tell too many ports, protocols, lengths and other numbers apart.
    #[error("the rules tell more than 65,535 sets of ports and of other numbers apart")]
    Numbers,
    /// The compiled rules take more than [`MOST_OCTETS`].
    #[error("the compiled rules take {0} octets, {MOST_OCTETS} are permitted")]
    Octets(usize),
}

/// What is compiled from the rules that concern one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilySize {
    /// Number of rules. Those without an address concern both families.
    pub rules: usize,
    /// Octets of memory.
    pub octets: usize,
}

/// Rules that are compiled for the packet path.
///
/// A look-up allocates nothing. Its cost hardly depends on the number of rules. It grows with the number of rules that match all of
/// a packet but one of its addresses. IPv4 packets do not touch what is compiled from IPv6 rules, nor the other way round.
pub struct Classifier {
    v4: Lists<u32>,
    v6: Lists<u128>,
}

impl Classifier {
    /// Compiles rules. The caller puts the rules of several lists one behind the other, and leaves out those of the other
    /// direction.
    pub fn new(rules: &[Rule]) -> Result<Classifier, TooLarge> {
        if rules.len() > MOST_RULES {
            return Err(TooLarge::Rules(rules.len()));
        }
        let v4 = Lists::new(rules, Rule::concerns_ipv4)?;
        let v6 = Lists::new(rules, Rule::concerns_ipv6)?;
        let classifier = Classifier { v4, v6 };
        match classifier.octets() {
            octets if octets > MOST_OCTETS => Err(TooLarge::Octets(octets)),
            _ => Ok(classifier),
        }
    }

    /// Index of the first rule that matches an IPv4 packet.
    #[inline]
    pub fn first_match_v4(&self, packet: &Packet4) -> Option<u32> {
        self.v4
            .first_match(packet.source, packet.destination, packet)
    }

    /// Index of the first rule that matches an IPv6 packet.
    #[inline]
    pub fn first_match_v6(&self, packet: &Packet6) -> Option<u32> {
        self.v6
            .first_match(packet.source, packet.destination, packet)
    }

    /// Octets of memory.
    pub fn octets(&self) -> usize {
        size_of_val(self) + self.v4.octets() + self.v6.octets()
    }

    /// What is compiled for IPv4, and for IPv6.
    pub fn sizes(&self) -> [FamilySize; 2] {
        [self.v4.size(), self.v6.size()]
    }
}

/// The rules of one family.
struct Lists<A: Address> {
    first: List<A>,
    /// Those behind the first [`list::MOST_RULES`].
    others: Box<[List<A>]>,
    rules: usize,
}

impl<A: Address> Lists<A> {
    fn new(rules: &[Rule], concerns: impl Fn(&Rule) -> bool) -> Result<Lists<A>, TooLarge> {
        let numbered = rules
            .iter()
            .enumerate()
            .map(|(number, rule)| (number as u16, rule));
        let rules: Vec<(u16, &Rule)> = numbered.filter(|(_, rule)| concerns(rule)).collect();
        let count = rules.len();
        let (first, others) = rules.split_at(count.min(list::MOST_RULES));
        let others = others.chunks(list::MOST_RULES).map(List::new);
        Ok(Lists {
            first: List::new(first)?,
            others: others.collect::<Result<_, _>>()?,
            rules: count,
        })
    }

    #[inline]
    fn first_match(&self, source: A, destination: A, fields: &impl Fields) -> Option<u32> {
        match self.first.first_match(source, destination, fields) {
            list::NONE if self.others.is_empty() => None,
            list::NONE => self.first_of_others(source, destination, fields),
            number => Some(number.into()),
        }
    }

    #[inline(never)]
    fn first_of_others(&self, source: A, destination: A, fields: &impl Fields) -> Option<u32> {
        let numbers = self
            .others
            .iter()
            .map(|list| list.first_match(source, destination, fields));
        let mut found = numbers.filter(|number| *number != list::NONE);
        found.next().map(u32::from)
    }

    fn octets(&self) -> usize {
        let others: usize = self.others.iter().map(List::octets).sum();
        self.first.octets() + size_of_val(&*self.others) + others
    }

    fn size(&self) -> FamilySize {
        FamilySize {
            rules: self.rules,
            octets: self.octets(),
        }
    }
}
