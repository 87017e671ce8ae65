//! Counters of rules: for all sessions of a policy, and for one session that is watched.
use super::{CompiledPolicy, Matched};
use crate::counters::add;
use core::ops::Add;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often a rule was the first to match.
#[derive(Debug, Default)]
pub(super) struct Counter {
    packets: AtomicU64,
    octets: AtomicU64,
}

impl Counter {
    /// Counts a packet. One thread alone does.
    #[inline(always)]
    pub fn count(&self, octets: usize) {
        add(&self.packets, 1);
        add(&self.octets, octets as u64);
    }

    pub fn read(&self) -> Hits {
        Hits {
            packets: self.packets.load(Relaxed),
            octets: self.octets.load(Relaxed),
        }
    }
}

/// How often a rule was the first to match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Packets.
    pub packets: u64,
    /// Octets of their IP packets.
    pub octets: u64,
}

impl Add for Hits {
    type Output = Hits;

    fn add(self, other: Hits) -> Hits {
        Hits {
            packets: self.packets + other.packets,
            octets: self.octets + other.octets,
        }
    }
}

/// Hits of the rules of a policy by the packets of one session. Its worker counts, the control thread reads.
#[derive(Debug)]
pub struct RuleHits {
    compilation: u32,
    rules: Box<[Counter]>,
    unmatched: Counter,
    undetermined: Counter,
}

impl RuleHits {
    /// No hits yet, of the rules of a compiled policy.
    pub fn of(policy: &CompiledPolicy) -> Self {
        let rules = policy.verdicts.len() - 1;
        RuleHits {
            compilation: policy.compilation,
            rules: (0..rules).map(|_| Counter::default()).collect(),
            unmatched: Counter::default(),
            undetermined: Counter::default(),
        }
    }

    /// The compilation ([`CompiledPolicy::compilation`]) to which the rules belong.
    pub fn compilation(&self) -> u32 {
        self.compilation
    }

    /// Hits of each rule.
    pub fn rules(&self) -> impl Iterator<Item = Hits> {
        self.rules.iter().map(Counter::read)
    }

    /// Packets that no rule matched.
    pub fn unmatched(&self) -> Hits {
        self.unmatched.read()
    }

    /// Packets that were dropped before a rule was asked, because their transport header is not seen.
    pub fn undetermined(&self) -> Hits {
        self.undetermined.read()
    }

    /// Counts a packet of so many octets on which a rule of this compilation decides.
    pub(crate) fn count(&self, matched: Matched, octets: usize) {
        let rule = usize::from(matched.rule).checked_sub(1);
        let counter = match rule.and_then(|rule| self.rules.get(rule)) {
            Some(counter) => counter,
            None if matched.verdict.is_undetermined() => &self.undetermined,
            None => &self.unmatched,
        };
        counter.count(octets);
    }
}
