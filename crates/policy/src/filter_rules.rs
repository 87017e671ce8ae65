//! Rules of one subscriber, as they travel from AAA to the user plane and are stored.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rules of one subscriber for both directions, from AAA: texts of IPFilterRule (RFC 6733 §4.3.1) in their order, separated by NUL. Copies
/// share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilterRules(
    // a thin pointer: few sessions have rules of their own, and all have room for them
    Arc<Box<str>>,
);

impl FilterRules {
    /// Length of the longest text, in octets: more do not fit into an Access-Accept (RFC 2865 §3).
    pub const MOST: usize = 4096;

    /// The rules with this text; `None` if it is empty or too long.
    pub fn new(text: &str) -> Option<Self> {
        (1..=FilterRules::MOST)
            .contains(&text.len())
            .then(|| FilterRules(Arc::new(text.into())))
    }

    /// The text of all rules.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text of each rule.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split('\0')
    }

    /// Whether somebody else has a copy that shares the text.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// A copy with a text of its own.
    #[must_use]
    pub fn unshared(&self) -> Self {
        FilterRules(Arc::new(self.as_str().into()))
    }
}

impl core::fmt::Debug for FilterRules {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// For people: with semicolons between the rules.
impl core::fmt::Display for FilterRules {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut separator = "";
        for rule in self.iter() {
            write!(f, "{separator}{rule}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl Serialize for FilterRules {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FilterRules {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("rules have 1 to 4096 octets");
        FilterRules::new(&text).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_bounded_shown_and_told_apart_from_copies() {
        let longest = "x".repeat(FilterRules::MOST);
        assert!(FilterRules::new(&longest).is_some());
        assert_eq!(FilterRules::new(&format!("{longest}x")), None);
        assert_eq!(FilterRules::new(""), None);
        let rules = FilterRules::new("deny in ip from any to any\0permit out ip from any to any");
        let rules = rules.unwrap();
        assert_eq!(rules.iter().count(), 2);
        let shown = "deny in ip from any to any; permit out ip from any to any";
        assert_eq!(rules.to_string(), shown);
        assert!(!rules.is_shared());
        let (copy, unshared) = (rules.clone(), rules.unshared());
        assert_eq!((&copy, &unshared), (&rules, &rules));
        assert!(rules.is_shared() && !unshared.is_shared());
    }
}
