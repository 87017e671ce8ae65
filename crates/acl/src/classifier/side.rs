//! Rules by the prefixes of one side.

use super::addresses::Address;
use super::list::NONE;
use super::prefixes::{Entry, Prefixes, Range};
use super::sets::Row;
use super::{MOST_OCTETS, TooLarge};

/// A rule as one side has it: its prefix on this side, and on the other one.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) rule: u16,
    pub(super) own: Range,
    pub(super) other: Range,
}

/// Rules by the prefixes of one side. An address leads to a group of at most 64 rules, and to those among them whose prefixes it is
/// in. A packet's rules are the bits that are set in the words of all dimensions. What they ask of the other side is compared last.
pub(super) struct Side<A: Address> {
    addresses: A::Map,
    classes: Box<[Class]>,
    /// Number of the first rule of each class and of those behind it.
    firsts: Box<[u16]>,
    /// By group and by place in a row.
    words: Box<[u64]>,
    /// By group and by bit.
    rules: Box<[Found]>,
    /// Prefixes of the other side: network and mask.
    others: Box<[(A, A)]>,
}

/// Addresses that are in the same prefixes.
#[derive(Clone, Copy)]
struct Class {
    /// Rules of the group.
    bits: u64,
    /// Where the group's row of words begins.
    row: u32,
    group: u16,
    /// Class of other rules for the same addresses, or [`NONE`].
    next: u16,
}

#[derive(Clone, Copy)]
struct Found {
    number: u16,
    /// Place of the other side's prefix.
    other: u16,
}

impl<A: Address> Side<A> {
    /// Compiles rules, with the rows of all places. Rules' numbers are by rule. Fails if there were more than [`MOST_OCTETS`].
    pub(super) fn new(
        members: &[Member],
        rows: &[Row],
        numbers: &[u16],
    ) -> Result<Side<A>, TooLarge> {
        let owns = members.iter().map(|member| (member.own, member.rule));
        let (prefixes, spans) = Prefixes::new(owns.collect(), A::MAX);
        match prefixes.groups.len() * rows.len() * size_of::<u64>() {
            octets if octets > MOST_OCTETS => return Err(TooLarge::Octets(octets)),
            _ => {}
        }
        let words = prefixes
            .groups
            .iter()
            .flat_map(|group| rows.iter().map(|row| word(group, row)));
        let number = |rule: Option<u16>| rule.map_or(NONE, |rule| numbers[usize::from(rule)]);
        let firsts = prefixes.entries.iter().map(|entry| number(entry.first));
        let (rules, others) = found::<A>(&prefixes.groups, members, numbers);
        Ok(Side {
            addresses: A::compile(&spans),
            classes: classes(&prefixes, rows.len()),
            firsts: firsts.collect(),
            words: words.collect(),
            rules,
            others,
        })
    }

    /// Number of the first rule by the addresses of both sides and by the places in a row.
    #[inline(always)]
    pub(super) fn first<const N: usize>(&self, own: A, other: A, places: [u16; N]) -> u16 {
        let class = &self.classes[usize::from(own.value(&self.addresses))];
        let first = self.first_of_class(class, other, places);
        match class.next {
            NONE => first,
            next => self.first_of_chain(first, next, other, places),
        }
    }

    #[inline(never)]
    fn first_of_chain<const N: usize>(
        &self,
        mut first: u16,
        mut next: u16,
        other: A,
        places: [u16; N],
    ) -> u16 {
        while next != NONE && self.firsts[usize::from(next)] < first {
            let class = &self.classes[usize::from(next)];
            first = first.min(self.first_of_class(class, other, places));
            next = class.next;
        }
        first
    }

    #[inline(always)]
    fn first_of_class<const N: usize>(&self, class: &Class, other: A, places: [u16; N]) -> u16 {
        let words = places.map(|place| self.words[class.row as usize + usize::from(place)]);
        let mut bits = words.iter().fold(class.bits, |bits, word| bits & word);
        while bits != 0 {
            let place = usize::from(class.group) * Prefixes::GROUP + bits.trailing_zeros() as usize;
            let found = &self.rules[place];
            let (network, mask) = self.others[usize::from(found.other)];
            if other & mask == network {
                return found.number;
            }
            bits &= bits - 1;
        }
        NONE
    }

    pub(super) fn octets(&self) -> usize {
        let rules = size_of_val(&*self.rules) + size_of_val(&*self.others);
        let classes = size_of_val(&*self.classes) + size_of_val(&*self.firsts);
        A::octets(&self.addresses) + classes + size_of_val(&*self.words) + rules
    }
}

/// The rules of a group that are in a row.
fn word(group: &[u16], row: &Row) -> u64 {
    let rules = group.iter().zip(0..);
    rules.fold(0, |word, (rule, bit)| {
        let rule = usize::from(*rule);
        word | (row[rule / 64] >> (rule % 64) & 1) << bit
    })
}

/// The classes, one for each entry.
fn classes(prefixes: &Prefixes, row: usize) -> Box<[Class]> {
    let class = |entry: &Entry| {
        let group = &prefixes.groups[entry.group];
        let bit = |rule| group.binary_search(rule).expect("a rule of the group");
        Class {
            bits: entry
                .rules
                .iter()
                .fold(0, |bits, rule| bits | 1 << bit(rule)),
            row: (entry.group * row) as u32,
            group: entry.group as u16,
            next: entry.next.unwrap_or(NONE),
        }
    };
    prefixes.entries.iter().map(class).collect()
}

/// What each group's bits stand for, and the prefixes of the other side.
fn found<A: Address>(
    groups: &[Vec<u16>],
    members: &[Member],
    numbers: &[u16],
) -> (Box<[Found]>, Box<[(A, A)]>) {
    let mut others: Vec<Range> = members.iter().map(|member| member.other).collect();
    others.sort_unstable();
    others.dedup();
    let none = Found {
        number: NONE,
        other: 0,
    };
    let mut rules = vec![none; groups.len() * Prefixes::GROUP];
    for (group, place) in groups.iter().zip((0..).step_by(Prefixes::GROUP)) {
        for (rule, found) in group.iter().zip(&mut rules[place..]) {
            let member = members.binary_search_by_key(rule, |member| member.rule);
            let other = members[member.expect("a member")].other;
            *found = Found {
                number: numbers[usize::from(*rule)],
                other: others.binary_search(&other).expect("a prefix") as u16,
            };
        }
    }
    let of = |(first, last): Range| (A::of(first), A::of(A::MAX ^ first ^ last));
    let others = others.into_iter().map(of).collect();
    (rules.into(), others)
}
