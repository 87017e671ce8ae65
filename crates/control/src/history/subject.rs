//! Whom or what somebody asks about.

use super::event::{Address, Event, Families, Key, Step, Subscriber, What};
use super::segment;
use ipnet::IpNet;

/// Whom or what events are about, as somebody has typed it: it may be a user name, an access line, a circuit or remote id, a MAC
/// address, a session's id or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// User name, circuit id or remote id as it was typed, and what that stands for if it was typed as names are shown.
    names: Vec<Vec<u8>>,
    /// Access line, as [`Subscriber::place`] prints it.
    place: Option<String>,
    mac: Option<[u8; 6]>,
    session: Option<u64>,
    address: Option<Address>,
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
        let mut names = vec![text.as_bytes().to_vec(), unescaped(text)];
        names.dedup();
        let mac = text.parse::<wire::eth::MacAddr>().ok().map(|mac| mac.0);
        let is_session = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let session = is_session.then(|| u64::from_str_radix(text, 16).ok());
        Subject {
            names,
            place: text.contains('/').then(|| text.to_owned()),
            mac,
            session: session.flatten(),
            address: Address::parse(text),
            resources: Vec::new(),
        }
    }

    /// An address alone.
    pub(super) fn address(address: Address) -> Self {
        Subject {
            address: Some(address),
            ..Subject::default()
        }
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
            What::System { resource, .. } | What::Alarm { resource, .. } => {
                self.resources.iter().any(|name| name == resource)
            }
            What::Subscriber(who, step) => {
                let (now, before) = addresses_of(step);
                self.is(who, now.into_iter().chain(before))
            }
        }
    }

    /// Whether it is this session or its subscriber, or one of these addresses.
    pub fn is(&self, who: &Subscriber<'_>, addresses: impl IntoIterator<Item = Families>) -> bool {
        let has = |address: Address| addresses.into_iter().any(|own| own.contains(&address));
        let [circuit, remote] = who.line;
        let names = [Some(who.user), circuit, remote].into_iter().flatten();
        self.session == Some(who.session)
            || self.mac == Some(who.mac)
            || names
                .into_iter()
                .any(|name| self.names.iter().any(|own| own == name))
            || self
                .place
                .as_ref()
                .is_some_and(|place| *place == who.place())
            || self.address.is_some_and(has)
    }

    /// Whether it is an address or prefix within a net.
    pub fn is_within(&self, net: &IpNet) -> bool {
        match (self.address, net) {
            (Some(Address::Ipv4(address)), IpNet::V4(net)) => net.contains(&address),
            (Some(Address::Ipv6(prefix)), IpNet::V6(net)) => net.contains(&prefix),
            _ => false,
        }
    }

    /// What a segment's filter knows it by, if its prefixes have lengths among these.
    pub(super) fn hashes(&self, lengths: u128) -> Vec<u64> {
        let mut keys: Vec<Key<'_>> = Vec::new();
        for name in &self.names {
            keys.extend([Key::User(name), Key::Line(name)]);
        }
        keys.extend(self.place.iter().map(|place| Key::Place(place.into())));
        keys.extend(self.mac.map(Key::Mac));
        keys.extend(self.session.map(Key::Session));
        keys.extend(self.resources.iter().map(|name| Key::Resource(name)));
        match self.address {
            Some(Address::Ipv4(address)) => keys.push(Key::Ipv4(address)),
            Some(Address::Ipv6(net)) => {
                let known =
                    (1..=net.prefix_len()).filter(|l| lengths & segment::length_bit(*l) != 0);
                let nets = known.filter_map(|l| ipnet::Ipv6Net::new(net.network(), l).ok());
                keys.extend(nets.map(|net| Key::Ipv6(net.trunc())));
            }
            None => {}
        }
        keys.iter().map(Key::hash).collect()
    }

    /// Whether it may be an access line, a circuit id or a remote id.
    pub(super) fn may_be_line(&self) -> bool {
        !self.names.is_empty()
            && self.mac.is_none()
            && self.session.is_none()
            && self.address.is_none()
    }

    /// Whether filters can tell: not when somebody asks for a prefix of many.
    pub(super) fn can_be_filtered(&self, lengths: u128) -> bool {
        match self.address {
            Some(Address::Ipv6(net)) => {
                (net.prefix_len() + 1..128).all(|l| lengths & segment::length_bit(l) == 0)
            }
            _ => true,
        }
    }
}

/// The addresses that a step speaks of, and those that were before.
fn addresses_of(step: &Step<'_>) -> (Option<Families>, Option<Families>) {
    match step {
        Step::Online { addresses, .. } | Step::Ended { addresses, .. } => (Some(*addresses), None),
        Step::Changed {
            before, addresses, ..
        } => (Some(*addresses), Some(*before)),
        Step::Refused { .. } | Step::Failed { .. } => (None, None),
    }
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
