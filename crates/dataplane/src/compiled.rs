//! Policies of the packets of a direction, compiled: what the control thread makes and the workers look packets up in.
mod classes;
mod hits;
mod policers;

use acl::{Action, Classifier, FamilySize, Packet4, Packet6, Rule, TooLarge};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;

use crate::police::{Colour, MeterSettings};
use crate::queues::QueueRules;
use policy::Overhead;

pub use classes::MOST_CLASSES;
pub(crate) use classes::{Class, Classes};
use hits::Counter;
pub use hits::{Hits, RuleHits};
pub use policers::{PolicerKind, PolicerOwner, SessionPolicer};

/// What becomes of a packet, in one word. Its bits 4 to 6 are the class into which a rule puts it (`classes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict(u16);

impl Verdict {
    const PERMIT: u16 = 1;
    /// With a code point in bits 8 to 13.
    const MARK: u16 = 2;
    /// Its transport header is not known.
    const UNDETERMINED: u16 = 4;
    /// Nobody has looked yet.
    const OPEN: u16 = 8;
    /// It does not pass, and the control thread answers it.
    const REDIRECT: u16 = 128;
    /// The policy has nothing to do for the packet besides.
    const ALONE: u16 = 1 << 14;

    fn of(rule: &Rule) -> Self {
        let action = match rule.action() {
            Action::Permit => Verdict::PERMIT,
            Action::Deny => 0,
            Action::Redirect => Verdict::REDIRECT,
        };
        let mark = rule.mark().map(|dscp| u16::from(dscp) << 8 | Verdict::MARK);
        Verdict(action | mark.unwrap_or(0))
    }

    fn unmatched(passes: bool) -> Self {
        Verdict(if passes { Verdict::PERMIT } else { 0 })
    }

    /// Whether nobody has asked the rules yet.
    #[inline(always)]
    pub fn is_open(self) -> bool {
        self.0 & Verdict::OPEN != 0
    }

    /// Whether the packet is dropped since its transport header is not known.
    #[inline(always)]
    pub fn is_undetermined(self) -> bool {
        self.0 & Verdict::UNDETERMINED != 0
    }

    /// Whether the packet passes.
    #[inline(always)]
    pub fn permits(self) -> bool {
        self.0 & Verdict::PERMIT != 0
    }

    /// The same of a policy that does nothing else for the packets that it permits.
    fn alone(self) -> Self {
        match self.permits() {
            true => Verdict(self.0 | Verdict::ALONE),
            false => self,
        }
    }

    /// Whether the packet passes, and the policy has nothing to do for it but to mark it.
    #[inline(always)]
    pub fn is_alone(self) -> bool {
        self.0 & Verdict::ALONE != 0
    }

    /// Whether the control thread answers the packet, which does not pass.
    #[inline(always)]
    pub fn redirects(self) -> bool {
        self.0 & Verdict::REDIRECT != 0
    }

    /// The differentiated services code point that the packet gets.
    #[inline(always)]
    pub fn mark(self) -> Option<u8> {
        (self.0 & Verdict::MARK != 0).then_some((self.0 >> 8) as u8 & 63)
    }
}

/// What the rules of a policy say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    /// The rule that decides, counted from 1; 0: none.
    pub rule: u16,
    pub verdict: Verdict,
}

impl Matched {
    /// They have not been asked.
    pub const OPEN: Matched = Matched {
        rule: 0,
        verdict: Verdict(Verdict::OPEN),
    };
    /// The policy drops packets whose transport header is not known, as this one's.
    pub const UNDETERMINED: Matched = Matched {
        rule: 0,
        verdict: Verdict(Verdict::UNDETERMINED),
    };
}

/// Policer of a policy. Each session has a meter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerSettings {
    /// Rates and bursts.
    pub meter: MeterSettings,
    /// What a packet is charged beyond its own octets.
    pub overhead: Overhead,
    /// Whether packets come with the colour of their drop precedence (RFC 2597 §2): AFx2 yellow, AFx3 red. Otherwise all come green.
    pub is_colour_aware: bool,
    /// Code point that yellow packets get, 0 to 63.
    pub yellow_mark: Option<u8>,
}

impl PolicerSettings {
    /// Colour with which a packet with a code point comes.
    #[inline(always)]
    pub(crate) fn incoming(&self, dscp: u8) -> Colour {
        // AFxy is 8x + 2y
        let is_assured = (10..=38).contains(&dscp) && dscp & 1 == 0;
        match dscp & 0b110 {
            0b100 if self.is_colour_aware && is_assured => Colour::Yellow,
            0b110 if self.is_colour_aware && is_assured => Colour::Red,
            _ => Colour::Green,
        }
    }
}

/// What a policy is compiled from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRules {
    /// Rules of all ACLs, in the order in which they are tried.
    pub rules: Vec<Rule>,
    /// Whether packets pass that no rule matches.
    pub unmatched_pass: bool,
    /// Whether packets are dropped whose transport header the packet path cannot see, or not all of it.
    pub denies_undetermined: bool,
    /// Whether it is counted how often each rule is the first to match.
    pub is_counted: bool,
    /// Classes of what passes the rules, at most [`MOST_CLASSES`].
    pub classes: Vec<PolicyClass>,
    /// Code point of packets that neither a rule nor a class marks, 0 to 63. `None`: they keep theirs.
    pub mark: Option<u8>,
    /// Policer of what passes the rules, whatever class it is in.
    pub policer: Option<PolicerSettings>,
    /// Queues of what is sent to a subscriber; the session's rates are kept by waiting then. `None`: nothing waits.
    pub queues: Option<QueueRules>,
    /// Address (URL) to which rules redirect connections of subscribers, which the control thread answers ([`PuntKind::Redirect`](crate::PuntKind)).
    pub portal: Option<Arc<str>>,
}

/// A class of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyClass {
    /// Its name, by which rules put packets into it.
    pub name: Arc<str>,
    /// Code points of the packets in it that no rule puts into a class: bit n is for code point n.
    pub dscps: u64,
    /// Priorities (IEEE 802.1p) of the packets in it that neither a rule nor their code point puts into a class: bit n is for priority n.
    pub priorities: u8,
    /// Policer of the class. A packet passes it before that of the policy.
    pub policer: Option<PolicerSettings>,
    /// Code point that packets of the class get, 0 to 63.
    pub mark: Option<u8>,
}

/// Number of the next compilation.
static COMPILATIONS: AtomicU32 = AtomicU32::new(1);

/// Compiles policies for workers, on any thread.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCompiler {
    /// How many workers there are.
    pub workers: u16,
    /// Ticks of their clock in a second.
    pub hz: u64,
}

impl PolicyCompiler {
    /// Compiles a policy. Takes milliseconds for thousands of rules.
    ///
    /// # Errors
    /// The rules need more memory than a classifier may have.
    pub fn compile(&self, policy: &PolicyRules) -> Result<CompiledPolicy, TooLarge> {
        CompiledPolicy::new(policy, self.workers, self.hz)
    }
}

/// A policy of the packets of a direction, compiled. It never changes; a changed policy is another one.
pub struct CompiledPolicy {
    classifier: Classifier,
    /// For each rule, and behind them for packets that none matches.
    verdicts: Box<[Verdict]>,
    denies_undetermined: bool,
    policer: Option<PolicerSettings>,
    /// `None`: packets are in no class, and rules alone mark them.
    classes: Option<Box<Classes>>,
    queues: Option<Box<QueueRules>>,
    portal: Option<Arc<str>>,
    compilation: u32,
    /// For each worker the counters of each rule; empty if none is counted.
    counters: Box<[Box<[Counter]>]>,
}

impl core::fmt::Debug for CompiledPolicy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CompiledPolicy({} rules)", self.rules())
    }
}

impl CompiledPolicy {
    fn new(policy: &PolicyRules, workers: u16, hz: u64) -> Result<Self, TooLarge> {
        let classes = Classes::of(policy, hz);
        let has_more = policy.policer.is_some() || classes.is_some() || policy.queues.is_some();
        let complete = |verdict: Verdict| match has_more || policy.is_counted {
            true => verdict,
            false => verdict.alone(),
        };
        let verdict = |rule| Verdict::of(rule).in_class(classes::class_of(rule, &policy.classes));
        let rules = policy.rules.iter().map(verdict);
        let unmatched = Verdict::unmatched(policy.unmatched_pass);
        let counters = || policy.rules.iter().map(|_| Counter::default()).collect();
        let workers = if policy.is_counted { workers } else { 0 };
        Ok(CompiledPolicy {
            classifier: Classifier::new(&policy.rules)?,
            verdicts: rules.chain([unmatched]).map(complete).collect(),
            denies_undetermined: policy.denies_undetermined,
            policer: policy.policer,
            classes,
            queues: policy.queues.clone().map(Box::new),
            portal: policy.portal.clone(),
            compilation: COMPILATIONS.fetch_add(1, Relaxed).max(1),
            counters: (0..workers).map(|_| counters()).collect(),
        })
    }

    /// Number of the compilation, never 0: no other one of the last four billion has it. By it a session's last denial names the policy
    /// ([`LastDenial`](crate::LastDenial)), and its meters the policer.
    #[inline(always)]
    pub fn compilation(&self) -> u32 {
        self.compilation
    }

    /// Address (URL) to which rules redirect connections of subscribers.
    pub fn portal(&self) -> Option<&str> {
        self.portal.as_deref()
    }

    /// Memory of the tables, in octets.
    pub fn octets(&self) -> usize {
        let counters = self.counters.iter().map(|of| size_of_val(&of[..]));
        self.classifier.octets() + size_of_val(&self.verdicts[..]) + counters.sum::<usize>()
    }

    /// Number of its rules.
    pub fn rules(&self) -> usize {
        self.verdicts.len() - 1
    }

    /// What is compiled of the rules for IPv4, and for IPv6.
    pub fn sizes(&self) -> [FamilySize; 2] {
        self.classifier.sizes()
    }

    /// How often each rule was the first to match, in all workers; empty if none is counted.
    pub fn hits(&self) -> Vec<Hits> {
        let rules = self.counters.first().map_or(0, |first| first.len());
        let of = |rule: usize| {
            let workers = self.counters.iter().map(|counters| &counters[rule]);
            workers.fold(Hits::default(), |sum, counter| sum + counter.read())
        };
        (0..rules).map(of).collect()
    }

    /// Policer of what passes the rules.
    #[inline(always)]
    pub(crate) fn policer(&self) -> Option<&PolicerSettings> {
        self.policer.as_ref()
    }

    /// Classes of what passes the rules. `None`: there are none, and rules alone mark packets.
    #[inline(always)]
    pub(crate) fn classes(&self) -> Option<&Classes> {
        self.classes.as_deref()
    }

    /// Queues of what is sent to a subscriber.
    #[inline(always)]
    pub(crate) fn queues(&self) -> Option<&QueueRules> {
        self.queues.as_deref()
    }

    /// Whether packets are dropped whose transport header is not seen.
    #[inline(always)]
    pub(crate) fn denies_undetermined(&self) -> bool {
        self.denies_undetermined
    }

    /// What the rules say of every packet, if there are none.
    #[inline(always)]
    pub(crate) fn of_all(&self) -> Option<Matched> {
        let is_without = self.verdicts.len() == 1 && !self.denies_undetermined;
        is_without.then(|| self.decided(None))
    }

    /// What the rules say of a packet.
    #[inline(always)]
    pub(crate) fn of_v4(&self, packet: &Packet4) -> Matched {
        self.decided(self.classifier.first_match_v4(packet))
    }

    /// The same for IPv6.
    #[inline(always)]
    pub(crate) fn of_v6(&self, packet: &Packet6) -> Matched {
        self.decided(self.classifier.first_match_v6(packet))
    }

    #[inline(always)]
    fn decided(&self, rule: Option<u32>) -> Matched {
        let unmatched = self.verdicts.len() - 1;
        let place = rule.map_or(unmatched, |rule| rule as usize);
        let verdict = self.verdicts.get(place).copied();
        Matched {
            rule: rule.map_or(0, |rule| rule as u16 + 1),
            verdict: verdict.unwrap_or(self.verdicts[unmatched]),
        }
    }

    /// Counts a packet of so many octets for the rule that decides on it, if the policy counts.
    #[inline(always)]
    pub(crate) fn count(&self, matched: Matched, octets: usize, worker: u16) {
        if let Some(counters) = self.counters.get(usize::from(worker))
            && let Some(counter) = counters.get(usize::from(matched.rule).wrapping_sub(1))
        {
            counter.count(octets);
        }
    }
}
