//! Prefixes of one side and the rules that name them, in groups of at most 64 rules.

use super::blocks::Spans;

/// First and last address of a prefix.
pub(super) type Range = (u128, u128);

/// Rules that are in one group, and whose prefixes the same addresses are in. These addresses' rules in other groups are in the
/// entries behind it.
pub(super) struct Entry {
    pub(super) group: usize,
    /// Sorted.
    pub(super) rules: Vec<u16>,
    /// Entry of other rules, which belong to the same addresses.
    pub(super) next: Option<u16>,
    /// First rule here and behind this entry.
    pub(super) first: Option<u16>,
}

/// Rules of one side by the prefixes that they name.
#[derive(Default)]
pub(super) struct Prefixes {
    pub(super) entries: Vec<Entry>,
    /// Rules of each group, sorted. A rule may be in several groups.
    pub(super) groups: Vec<Vec<u16>>,
    open: Vec<Open>,
}

/// A prefix whose longer prefixes are not all there yet.
struct Open {
    last: u128,
    entry: u16,
}

impl Prefixes {
    /// Most rules of a group.
    pub(super) const GROUP: usize = 64;

    /// Most rules of an entry that has the rules of shorter prefixes as well.
    const SHARED: usize = 48;

    /// Groups rules, each with its prefix, in the order of their numbers. Returns the entry of each address as well.
    pub(super) fn new(mut rules: Vec<(Range, u16)>, highest: u128) -> (Prefixes, Spans) {
        // A prefix comes before the longer ones in it.
        rules.sort_by_key(|((first, last), _)| (*first, u128::MAX - last));
        let mut prefixes = Prefixes::default();
        let everything = rules.partition_point(|(range, _)| *range == (0, highest));
        let entry = prefixes.open((0, highest), numbers(&rules[..everything]));
        let mut spans = Spans {
            bounds: Vec::new(),
            values: vec![entry],
        };
        for rules in rules[everything..].chunk_by(|one, other| one.0 == other.0) {
            let (first, last) = rules[0].0;
            prefixes.close_before(first, &mut spans);
            let entry = prefixes.open((first, last), numbers(rules));
            spans.set(first, entry);
        }
        prefixes.close_before(highest, &mut spans);
        for group in &mut prefixes.groups {
            group.sort_unstable();
        }
        (prefixes, spans)
    }

    /// Closes the prefixes that end before an address.
    fn close_before(&mut self, address: u128, spans: &mut Spans) {
        while let [.., outer, inner] = &self.open[..]
            && inner.last < address
        {
            spans.set(inner.last + 1, outer.entry);
            self.open.pop();
        }
    }

    /// Adds a prefix, inside of the last open one, and the rules that name it.
    fn open(&mut self, (_, last): Range, mut rules: Vec<u16>) -> u16 {
        let mut next = self.open.last().map(|outer| outer.entry);
        if let Some(outer) = next {
            let outer = &self.entries[usize::from(outer)];
            if outer.rules.len() + rules.len() <= Self::SHARED {
                rules.extend(&outer.rules);
                rules.sort_unstable();
                next = outer.next;
            } else if outer.rules.is_empty() {
                next = outer.next;
            }
        }
        // The first rules are in the entry that is looked at first.
        for rules in rules.chunks(Self::GROUP).rev() {
            next = Some(self.entry(rules, next));
        }
        let entry = match next {
            Some(entry) if !rules.is_empty() => entry,
            _ => self.entry(&[], None),
        };
        self.open.push(Open { last, entry });
        entry
    }

    /// Adds an entry, with its rules in the last group or else in a new one.
    fn entry(&mut self, rules: &[u16], next: Option<u16>) -> u16 {
        let is_new = |group: &[u16], rule: &u16| !group.contains(rule);
        let fits = self.groups.last().is_some_and(|group| {
            let new = rules.iter().filter(|rule| is_new(group, rule)).count();
            group.len() + new <= Self::GROUP
        });
        if !fits {
            self.groups.push(Vec::new());
        }
        let group = self.groups.last_mut().expect("a group");
        for rule in rules {
            if is_new(group, rule) {
                group.push(*rule);
            }
        }
        let behind = next.and_then(|next| self.entries[usize::from(next)].first);
        self.entries.push(Entry {
            group: self.groups.len() - 1,
            rules: rules.into(),
            next,
            first: rules.first().copied().into_iter().chain(behind).min(),
        });
        (self.entries.len() - 1) as u16
    }
}

fn numbers(rules: &[(Range, u16)]) -> Vec<u16> {
    rules.iter().map(|(_, rule)| *rule).collect()
}
