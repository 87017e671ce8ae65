//! Rules of sessions, kept for the next modification. A session that was changed a moment ago will soon be changed again: its rules stay as
//! they are. Later they are packed into the octets of a message and compressed, which takes a tenth of the memory.
//!
//! Sessions' rules are alike but for names and addresses, so the compression's dictionary is the message of an earlier session.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};
use pfcp::bng::RuleSet;

use super::{Engine, Session};
use crate::table::Seid;

/// Time after the last change at which rules are packed.
const SOON: Duration = Duration::from_secs(2);
/// Maximum number of sessions whose rules wait to be packed.
const MOST_FRESH: usize = 1024;
/// Maximum number of dictionaries, each for messages of another length.
const MOST_DICTIONARIES: usize = 32;

/// Rules of a session.
#[derive(Debug)]
pub(super) enum Rules {
    /// Packed and compressed, with the number of the dictionary.
    Packed(u8, Box<[u8]>),
    /// As they were sent; also those with too many prefixes for a message.
    Whole(Box<RuleSet>),
}

impl Rules {
    pub fn new(rules: RuleSet) -> Self {
        Rules::Whole(Box::new(rules))
    }

    pub fn is_packed(&self) -> bool {
        matches!(self, Rules::Packed(..))
    }
}

/// Packs rules, and has what that needs.
#[derive(Debug, Default)]
pub(super) struct Packer {
    dictionaries: Vec<Box<[u8]>>,
    /// Sessions whose rules are to be packed, and when; the first one in front.
    fresh: VecDeque<(Duration, Seid)>,
}

impl Packer {
    fn pack(&mut self, rules: Rules) -> Rules {
        let Rules::Whole(rules) = rules else {
            return rules;
        };
        match rules.pack() {
            Ok(bytes) => {
                let number = self.dictionary(&bytes);
                let dictionary = &self.dictionaries[number];
                let packed = compress_prepend_size_with_dict(&bytes, dictionary);
                Rules::Packed(number as u8, packed.into())
            }
            Err(rules) => Rules::Whole(rules),
        }
    }

    /// Number of the dictionary for a message.
    fn dictionary(&mut self, bytes: &[u8]) -> usize {
        let mut all = self.dictionaries.iter();
        let of_length = all.position(|other| other.len() == bytes.len());
        if of_length.is_none() && self.dictionaries.len() < MOST_DICTIONARIES {
            self.dictionaries.push(bytes.into());
        }
        of_length.unwrap_or(self.dictionaries.len() - 1)
    }

    fn unpack<'a>(&self, rules: &'a Rules) -> Cow<'a, RuleSet> {
        match rules {
            Rules::Whole(rules) => Cow::Borrowed(rules),
            Rules::Packed(number, bytes) => {
                let dictionary = self.dictionaries.get(usize::from(*number));
                let bytes = dictionary
                    .and_then(|other| decompress_size_prepended_with_dict(bytes, other).ok());
                let rules = bytes.and_then(|bytes| RuleSet::unpack(&bytes));
                // Packed rules can always be unpacked. If they could not, an empty set would reject every change.
                Cow::Owned(rules.unwrap_or_default())
            }
        }
    }
}

impl<T: Copy> Engine<T> {
    /// Rules of a session.
    pub(super) fn rules_of<'a>(&self, session: &'a Session<T>) -> Cow<'a, RuleSet> {
        self.packer.unpack(&session.rules)
    }

    /// Packs a session's rules in a while, and those of sessions that have waited for long.
    pub(super) fn pack_later(&mut self, now: Duration, seid: Seid) {
        self.packer.fresh.push_back((now + SOON, seid));
        self.pack_due(now);
    }

    /// When [`Engine::pack_due`] has something to do.
    pub(super) fn pack_at(&self) -> Option<Duration> {
        self.packer.fresh.front().map(|(at, _)| *at)
    }

    /// Packs the rules of sessions that have not been changed for a while, or of which too many wait.
    pub(super) fn pack_due(&mut self, now: Duration) {
        while let Some((at, seid)) = self.packer.fresh.front().copied()
            && (at <= now || self.packer.fresh.len() > MOST_FRESH)
        {
            self.packer.fresh.pop_front();
            if self.table.seid(seid.index) == Some(seid)
                && let Some(session) = self.table.get_mut(seid.index)
            {
                let nothing = Rules::Packed(0, Box::default());
                let rules = std::mem::replace(&mut session.rules, nothing);
                session.rules = self.packer.pack(rules);
            }
        }
    }
}
