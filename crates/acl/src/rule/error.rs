//! Why a text is no rule.

use super::{LONGEST_TEXT, MOST_RANGES};

/// Why a text is no rule. The message names the word that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The text, or its canonical form, has more than [`LONGEST_TEXT`] octets.
    #[error("the rule has {0} octets, {LONGEST_TEXT} are permitted")]
    TooLong(usize),
    /// The text ends where a word is expected.
    #[error("the rule ends too early: expected {0}")]
    Ended(&'static str),
    /// A word is not what is expected in its place.
    #[error("`{0}`: expected {1}")]
    Unexpected(String, &'static str),
    /// A prefix has bits set beyond its length.
    #[error("`{0}`: bits are set beyond the prefix length, `{1}` is the prefix")]
    HostBits(String, ipnet::IpNet),
    /// A list has more than [`MOST_RANGES`] ranges of ports.
    #[error("`{0}`: more than {MOST_RANGES} ports and ranges")]
    TooManyRanges(String),
    /// A word is known, but cannot be used in this rule.
    #[error("`{0}`: {1}")]
    Misplaced(String, &'static str),
}
