//! Rules by the prefixes of one side.

use std::collections::HashMap;

use super::addresses::Address;
use super::list::NONE;
use super::prefixes::{Entry, Prefixes, Range};
use super::sets::Row;
use super::{MOST_OCTETS, TooLarge};

/// Most rules whose last bits are compared, among those whose prefixes have the bits before them in common.
const FEW: usize = 6;

/// A rule as one side has it: its prefix on this side, and on the other one.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) rule: u16,
    pub(super) own: Range,
    pub(super) other: Range,
}

/// Rules by the prefixes of one side.
///
/// An address leads to a group of at most 64 rules, and to those among them whose prefixes it is in. Each of a packet's other
/// numbers leads to a word with the group's rules that permit it. The rules that are in all words are tried in their order: their
/// prefixes of the other side are compared.
pub(super) struct Side<A: Address> {
    addresses: A::Map,
    classes: Box<[Class]>,
    /// Number of the first rule of each class and of those behind it.
    firsts: Box<[u16]>,
    /// By group and by place in a row.
    words: Box<[u64]>,
    /// By group and by bit.
    rules: Box<[Found<A>]>,
}

/// Addresses that are in the same prefixes.
#[derive(Clone, Copy)]
struct Class {
    /// Rules of the group.
    bits: u64,
    /// Where the group's row of words begins.
    row: u32,
    /// Where the group's rules begin.
    rules: u16,
    /// Class of other rules for the same addresses, or [`NONE`].
    next: u16,
}

/// A rule, and what it asks besides.
#[derive(Clone, Copy)]
struct Found<A: Address> {
    /// Prefix of the other side: network and mask.
    other: (A, A),
    /// Of the last [`Address::COMPARED`] bits of this side.
    own: A::Last,
    number: u16,
}

impl<A: Address> Found<A> {
    fn new(number: u16, member: &Member) -> Found<A> {
        let mask = |(first, last): Range| A::MAX ^ first ^ last;
        let others = member.own.0 ^ member.own.1;
        // Of shorter prefixes, no bits are compared.
        let (network, own) = match others >> A::COMPARED {
            0 => (member.own.0, mask(member.own)),
            _ => (0, 0),
        };
        Found {
            other: (A::of(member.other.0), A::of(mask(member.other))),
            own: A::last(network, own),
            number,
        }
    }
}

impl<A: Address> Side<A> {
    /// Compiles rules, with the rows of all places. Rules' numbers are by rule. Fails if there were more than [`MOST_OCTETS`].
    pub(super) fn new(
        members: &[Member],
        rows: &[Row],
        numbers: &[u16],
    ) -> Result<Side<A>, TooLarge> {
        let owns = indexed::<A>(members);
        let (prefixes, spans) = Prefixes::new(owns, A::MAX);
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
        Ok(Side {
            addresses: A::compile(&spans),
            classes: classes(&prefixes, rows.len()),
            firsts: firsts.collect(),
            words: words.collect(),
            rules: found(&prefixes.groups, members, numbers),
        })
    }

    /// Number of the first rule by the addresses of both sides and by the places in a row.
    #[inline(always)]
    pub(super) fn first<const N: usize>(&self, own: A, other: A, places: [u16; N]) -> u16 {
        let class = &self.classes[usize::from(own.value(&self.addresses))];
        let first = self.first_of_class(class, [own, other], places);
        match class.next {
            NONE => first,
            // A copy, so that the places of most packets stay in registers.
            next => self.first_of_chain(first, next, [own, other], &{ places }),
        }
    }

    #[inline(never)]
    fn first_of_chain<const N: usize>(
        &self,
        mut first: u16,
        mut next: u16,
        sides: [A; 2],
        places: &[u16; N],
    ) -> u16 {
        while next != NONE && self.firsts[usize::from(next)] < first {
            let class = &self.classes[usize::from(next)];
            first = first.min(self.first_of_class(class, sides, *places));
            next = class.next;
        }
        first
    }

    #[inline(always)]
    fn first_of_class<const N: usize>(
        &self,
        class: &Class,
        [own, other]: [A; 2],
        places: [u16; N],
    ) -> u16 {
        let mut bits = class.bits;
        for place in places {
            bits &= self.words[class.row as usize + usize::from(place)];
        }
        while bits != 0 {
            let place = usize::from(class.rules) + bits.trailing_zeros() as usize;
            let found = &self.rules[place];
            let (network, mask) = found.other;
            if (other & mask == network) & own.is_in(found.own) {
                return found.number;
            }
            bits &= bits - 1;
        }
        NONE
    }

    pub(super) fn octets(&self) -> usize {
        let rules = size_of_val(&*self.rules);
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
            rules: u16::try_from(entry.group * Prefixes::GROUP).expect("fewer than 1,024 groups"),
            next: entry.next.unwrap_or(NONE),
        }
    };
    prefixes.entries.iter().map(class).collect()
}

/// The prefixes by which rules are found. Where few rules name the last bits, these are left out of the prefix and compared.
fn indexed<A: Address>(members: &[Member]) -> Vec<(Range, u16)> {
    let others = (1 << A::COMPARED) - 1;
    let wider = |(first, last): Range| (first & !others, last | others);
    let mut narrow: HashMap<Range, usize> = HashMap::new();
    for own in members.iter().map(|member| member.own) {
        if wider(own) != own {
            *narrow.entry(wider(own)).or_insert(0) += 1;
        }
    }
    let of = |member: &Member| match narrow.get(&wider(member.own)) {
        Some(count) if *count <= FEW => (wider(member.own), member.rule),
        _ => (member.own, member.rule),
    };
    members.iter().map(of).collect()
}

/// What each group's bits stand for.
fn found<A: Address>(groups: &[Vec<u16>], members: &[Member], numbers: &[u16]) -> Box<[Found<A>]> {
    let found = |rule: &u16| {
        let member = members.binary_search_by_key(rule, |member| member.rule);
        let member = &members[member.expect("a member")];
        Found::new(numbers[usize::from(*rule)], member)
    };
    let everything = Member {
        rule: NONE,
        own: (0, A::MAX),
        other: (0, A::MAX),
    };
    let mut rules = vec![Found::new(NONE, &everything); groups.len() * Prefixes::GROUP];
    for (group, places) in groups.iter().zip(rules.chunks_mut(Prefixes::GROUP)) {
        for (rule, place) in group.iter().zip(places) {
            *place = found(rule);
        }
    }
    rules.into()
}
