//! Whom or what somebody asks about.

use super::bindings::{overlap, parse_prefix};
use super::event::{Event, Subscriber, What};
use super::keys::{Key, Lengths, around, beginning, exactly};
use ipnet::IpNet;
use policy::{Binding, Bindings};
use std::ops::Range;

/// Whom or what events are about, as somebody has typed it: it may be a user name, an access line, a circuit or remote id, a MAC
/// address, a session's id, an address or a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// User name, circuit id or remote id as it was typed, and what that stands for if it was typed as names are shown.
    names: Vec<Vec<u8>>,
    /// Access line, as [`Subscriber::place`] prints it.
    place: Option<String>,
    mac: Option<[u8; 6]>,
    session: Option<u64>,
    prefix: Option<IpNet>,
    /// How names and lines begin.
    beginnings: Vec<Vec<u8>>,
    /// Events of the system about these.
    resources: Vec<String>,
}

/// Nobody has a longer name: 255 octets (RFC 1334 §2.2.1), each shown as `\x..`.
const MOST_TEXT: usize = 4 * 255;

impl Subject {
    /// Reads what was typed; what is longer than any name is nobody.
    pub fn parse(text: &str) -> Self {
        if text.len() > MOST_TEXT {
            return Subject::default();
        }
        let mac = text.parse::<wire::eth::MacAddr>().ok().map(|mac| mac.0);
        let is_session = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let session = is_session.then(|| u64::from_str_radix(text, 16).ok());
        Subject {
            names: names(text),
            place: text.contains('/').then(|| text.to_owned()),
            mac,
            session: session.flatten(),
            prefix: parse_prefix(text),
            ..Subject::default()
        }
    }

    /// The same of events, where `*` at the end stands for all names and lines that begin so: `up1/access0.100.*`.
    pub fn of_events(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(begin) if text.len() <= MOST_TEXT => Subject {
                beginnings: names(begin),
                ..Subject::default()
            },
            _ => Self::parse(text),
        }
    }

    /// An address or a prefix alone.
    pub(super) fn prefix(prefix: IpNet) -> Self {
        Subject {
            prefix: Some(prefix),
            ..Subject::default()
        }
    }

    /// The session with this id.
    pub fn session(&self) -> Option<u64> {
        self.session
    }

    /// The names that were typed: of a user, of a circuit or of a remote end.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(Vec::as_slice)
    }

    /// What the system says of something, too.
    #[must_use]
    pub fn and_resources(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.resources.extend(names);
        self
    }

    /// Whether an event is about it.
    pub fn matches(&self, event: &Event<'_>) -> bool {
        match &event.what {
            What::System { resource, .. }
            | What::Alarm { resource, .. }
            | What::Acknowledged { resource, .. } => {
                self.resources.iter().any(|name| name == resource)
            }
            What::Subscriber(who, step) => {
                let bindings = step.bindings().into_iter().flatten();
                self.is(who, bindings.flat_map(Bindings::iter))
            }
        }
    }

    /// Whether it is this session or its subscriber, or overlaps one of these bindings.
    pub fn is<'a>(
        &self,
        who: &Subscriber<'_>,
        bindings: impl IntoIterator<Item = &'a Binding>,
    ) -> bool {
        let has = |prefix| bindings.into_iter().any(|own| overlap(own.prefix, prefix));
        let [circuit, remote] = who.line;
        let names = [Some(who.user), circuit, remote].into_iter().flatten();
        let begins = |name: &[u8]| self.beginnings.iter().any(|own| name.starts_with(own));
        let has_place = || {
            let asked = self.place.is_some() || !self.beginnings.is_empty();
            let place = asked.then(|| who.place());
            place.is_some_and(|place| {
                self.place.as_ref() == Some(&place) || begins(place.as_bytes())
            })
        };
        self.session == Some(who.session)
            || self.mac == Some(who.mac)
            || names
                .into_iter()
                .any(|name| begins(name) || self.names.iter().any(|own| own == name))
            || has_place()
            || self.prefix.is_some_and(has)
    }

    /// Ranges of keys that events about it have, and no others, in a segment with prefixes of these lengths.
    pub(super) fn keys(&self, lengths: &Lengths) -> Vec<Range<Vec<u8>>> {
        let mut keys: Vec<Key<'_>> = Vec::new();
        for name in &self.names {
            keys.extend([Key::User(name), Key::Line(name)]);
        }
        keys.extend(self.place.iter().map(|place| Key::Place(place.into())));
        keys.extend(self.mac.map(Key::Mac));
        keys.extend(self.session.map(Key::Session));
        keys.extend(self.resources.iter().map(|name| Key::Resource(name)));
        let exact = keys.iter().map(exactly);
        let begin = self.beginnings.iter().flat_map(|own| {
            let place = core::str::from_utf8(own).ok();
            let place = place.map(|place| Key::Place(place.into()));
            let keys = [Key::User(own), Key::Line(own)].into_iter().chain(place);
            keys.map(|key| beginning(&key))
        });
        let around = self.prefix.map(|prefix| around(prefix, lengths));
        let around = around.into_iter().flatten();
        exact.chain(begin).chain(around).collect()
    }
}

/// A name as it was typed, and what that stands for if it was typed as names are shown.
fn names(text: &str) -> Vec<Vec<u8>> {
    let mut names = vec![text.as_bytes().to_vec(), unescaped(text)];
    names.dedup();
    names
}

/// What a name is that is shown as [`u8::escape_ascii`] does it.
pub(super) fn unescaped(text: &str) -> Vec<u8> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let (octet, more) = match first {
            b'\\' => escape(behind).unwrap_or((b'\\', behind)),
            _ => (*first, behind),
        };
        octets.push(octet);
        rest = more;
    }
    octets
}

/// What stands behind a backslash means this octet, and what comes then.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, rest) = text.split_first()?;
    match kind {
        b'n' => Some((b'\n', rest)),
        b'r' => Some((b'\r', rest)),
        b't' => Some((b'\t', rest)),
        b'\\' | b'\'' | b'"' => Some((*kind, rest)),
        b'x' => {
            let (digits, rest) = rest.split_at_checked(2)?;
            let digits = core::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, rest))
        }
        _ => None,
    }
}
