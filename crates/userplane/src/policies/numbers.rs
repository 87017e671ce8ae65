//! What policies are known by: their keys, and their numbers at the workers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acl::{Rule, RuleError};
use dataplane::PolicyIndex;
use policy::{Direction, FilterRules, Name, TrafficPolicies};

/// What the packets of a direction pass: rules of a subscriber, and then a policy of the document. Sessions whose packets pass the same have
/// one key, one number and one compiled policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyKey {
    /// Policy of the document.
    pub policy: Option<Name>,
    /// Rules of a subscriber, of this direction only.
    pub rules: Option<FilterRules>,
}

impl PolicyKey {
    /// A policy of the document alone.
    pub fn named(policy: &Name) -> Self {
        PolicyKey {
            policy: Some(policy.clone()),
            rules: None,
        }
    }

    /// What the packets of a session's direction pass. `None`: there is nothing.
    ///
    /// # Errors
    /// A text is no rule, or has no direction.
    pub fn of(policies: &TrafficPolicies, direction: Direction) -> Result<Option<Self>, NoRule> {
        let of_direction = match direction {
            Direction::Up => acl::Direction::In,
            Direction::Down => acl::Direction::Out,
        };
        let mut texts = Vec::new();
        for text in policies.filter_rules.iter().flat_map(FilterRules::iter) {
            let rule: Rule = text.parse().map_err(NoRule::Text)?;
            if rule.direction().ok_or(NoRule::Direction)? == of_direction {
                texts.push(text);
            }
        }
        let key = PolicyKey {
            policy: policies.of(direction).cloned(),
            rules: FilterRules::new(&texts.join("\0")),
        };
        let is_empty = key.policy.is_none() && key.rules.is_none();
        Ok((!is_empty).then_some(key))
    }
}

/// For people.
impl Display for PolicyKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (&self.rules, &self.policy) {
            (None, Some(policy)) => policy.fmt(f),
            (_, None) => f.write_str(northbound::FILTER_RULES),
            (Some(_), Some(policy)) => write!(f, "{}, {policy}", northbound::FILTER_RULES),
        }
    }
}

/// Why a text of a session is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRule {
    /// It cannot be read.
    #[error(transparent)]
    Text(RuleError),
    /// It has no direction.
    #[error("the rule has no direction")]
    Direction,
}

/// A policy's number, and its key, which keeps the number from being freed.
pub type Claim = (PolicyIndex, Arc<PolicyKey>);

/// Numbers of policies, by key. Copies are the same numbers.
#[derive(Clone, Debug)]
pub struct PolicyNumbers {
    numbers: Arc<Mutex<Numbers>>,
    most: u16,
}

#[derive(Debug, Default)]
struct Numbers {
    by_key: BTreeMap<Arc<PolicyKey>, PolicyIndex>,
    /// Keys with rules that sessions have begun to claim.
    news: Vec<Arc<PolicyKey>>,
}

impl Numbers {
    fn of(&mut self, key: &PolicyKey, most: u16) -> Option<Claim> {
        if let Some((key, number)) = self.by_key.get_key_value(key) {
            return Some((*number, key.clone()));
        }
        let taken: BTreeSet<PolicyIndex> = self.by_key.values().copied().collect();
        let all = (1..=most).filter_map(NonZeroU16::new).map(PolicyIndex);
        let free = all.into_iter().find(|number| !taken.contains(number))?;
        let key = Arc::new(key.clone());
        self.by_key.insert(key.clone(), free);
        Some((free, key))
    }
}

impl PolicyNumbers {
    /// Numbers from 1 to `most`.
    pub fn new(most: u16) -> Self {
        PolicyNumbers {
            numbers: Arc::default(),
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        // whoever panics here leaves a map behind that is as good as before
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of a policy for a session. It stays the policy's as long as somebody has the claim. `None`: no number is free.
    pub fn claim(&self, key: &PolicyKey) -> Option<Claim> {
        let mut numbers = self.lock();
        let (number, key) = numbers.of(key, self.most)?;
        // the map has one, and this claim
        let is_first = Arc::strong_count(&key) == 2;
        if is_first && key.rules.is_some() {
            numbers.news.push(key.clone());
        }
        Some((number, key))
    }

    /// Number of a policy. `None`: no number is free.
    pub(super) fn of(&self, key: &PolicyKey) -> Option<PolicyIndex> {
        let claim = self.lock().of(key, self.most);
        claim.map(|(number, _)| number)
    }

    /// Most policies at a time.
    pub fn most(&self) -> u16 {
        self.most
    }

    /// The policy with a number.
    pub fn key(&self, number: PolicyIndex) -> Option<PolicyKey> {
        let numbers = self.lock();
        let mut all = numbers.by_key.iter();
        all.find(|(_, of)| **of == number)
            .map(|(key, _)| PolicyKey::clone(key))
    }

    /// Keys with rules that sessions have begun to claim since the last call.
    pub(super) fn news(&self) -> Vec<Arc<PolicyKey>> {
        std::mem::take(&mut self.lock().news)
    }

    /// Keys with rules, and whether somebody claims them.
    pub(super) fn with_rules(&self) -> Vec<(PolicyKey, bool)> {
        let numbers = self.lock();
        let with_rules = numbers.by_key.keys().filter(|key| key.rules.is_some());
        with_rules
            .map(|key| (PolicyKey::clone(key), Arc::strong_count(key) > 1))
            .collect()
    }

    /// Whether less than half of the numbers are free: time to look for those that nobody names.
    pub(super) fn are_scarce(&self) -> bool {
        self.lock().by_key.len() > usize::from(self.most / 2)
    }

    /// Frees the numbers of policies that nobody claims and that are not wanted otherwise.
    pub(super) fn retain(&self, is_wanted: impl Fn(&PolicyKey) -> bool) {
        let is_claimed = |key: &Arc<PolicyKey>| Arc::strong_count(key) > 1;
        let by_key = &mut self.lock().by_key;
        by_key.retain(|key, _| is_claimed(key) || is_wanted(key));
    }
}

impl Default for PolicyNumbers {
    fn default() -> Self {
        PolicyNumbers::new(dataplane::Limits::default().policies)
    }
}
