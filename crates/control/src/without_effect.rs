//! Attributes of AAA's answer that have no effect on a session.

use aaa::AccessAccept;
use serde::{Deserialize, Serialize};

/// Maximum number of names of each kind. An answer may have more than a thousand.
const MOST_NAMES: usize = 16;

/// Names of attributes of AAA's answer that have no effect, each one once. The counters and the log have all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WithoutEffect {
    ignored: Box<[Box<str>]>,
    not_enforced: Box<[Box<str>]>,
    unknown: Box<[Box<str>]>,
}

impl WithoutEffect {
    /// Those of an answer; `None` if everything in it has an effect.
    pub fn of(accept: &AccessAccept) -> Option<Box<Self>> {
        let own = WithoutEffect {
            ignored: distinct(&accept.ignored),
            not_enforced: distinct(&accept.not_enforced),
            unknown: distinct(&accept.unknown),
        };
        (own != WithoutEffect::default()).then(|| Box::new(own))
    }

    /// For operators: each name and why it has no effect.
    pub fn texts(&self) -> Vec<String> {
        let kinds = [
            (&self.ignored, "ignored"),
            (&self.not_enforced, "not enforced"),
            (&self.unknown, "unknown"),
        ];
        let kinds = kinds.into_iter();
        let texts =
            kinds.flat_map(|(names, why)| names.iter().map(move |n| format!("{n} ({why})")));
        texts.collect()
    }
}

fn distinct(names: &[String]) -> Box<[Box<str>]> {
    let mut distinct: Vec<Box<str>> = Vec::new();
    for name in names {
        if distinct.len() < MOST_NAMES && distinct.iter().all(|known| **known != **name) {
            distinct.push(name.as_str().into());
        }
    }
    distinct.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_not_too_many() {
        assert_eq!(WithoutEffect::of(&AccessAccept::default()), None);
        let accept = AccessAccept {
            ignored: vec!["Filter-Id".into(); 3],
            unknown: (0..1000).map(|n| format!("Attr-26.{n}")).collect(),
            ..AccessAccept::default()
        };
        let texts = WithoutEffect::of(&accept).unwrap().texts();
        assert_eq!(texts[..2], ["Filter-Id (ignored)", "Attr-26.0 (unknown)"]);
        assert_eq!(texts.len(), 1 + MOST_NAMES);
    }
}
