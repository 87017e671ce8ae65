//! Keys with which events are found.

use ipnet::IpNet;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Key with which events are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    User(&'a [u8]),
    Mac([u8; 6]),
    Session(u64),
    /// Circuit id or remote id.
    Line(&'a [u8]),
    /// Access line, as [`Subscriber::place`](super::Subscriber::place) prints it.
    Place(Cow<'a, str>),
    /// Prefix of a binding.
    Prefix(IpNet),
    /// Resource of events of the system.
    Resource(&'a str),
    /// Alarms of any kind.
    Alarms,
}

impl Key<'_> {
    /// The key in the database. Prefixes stand in the order of their addresses.
    pub fn octets(&self) -> Vec<u8> {
        match self {
            Key::User(name) => with(b'n', name),
            Key::Mac(mac) => with(b'm', mac),
            Key::Session(id) => with(b's', &id.to_be_bytes()),
            Key::Line(id) => with(b'l', id),
            Key::Place(place) => with(b'p', place.as_bytes()),
            Key::Prefix(prefix) => {
                let mut key = address(*prefix, false);
                key.push(prefix.prefix_len());
                key
            }
            Key::Resource(name) => with(b'r', name.as_bytes()),
            Key::Alarms => vec![b'a'],
        }
    }
}

fn with(kind: u8, octets: &[u8]) -> Vec<u8> {
    [&[kind], octets].concat()
}

/// This key alone.
pub(super) fn exactly(key: &Key<'_>) -> Range<Vec<u8>> {
    let key = key.octets();
    let behind = [&key[..], &[0]].concat();
    key..behind
}

/// Keys that begin as this one does.
pub(super) fn beginning(key: &Key<'_>) -> Range<Vec<u8>> {
    let begin = key.octets();
    let mut end = begin.clone();
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    begin..end
}

/// Beginning of the keys of prefixes with this one's first or last address.
fn address(prefix: IpNet, last: bool) -> Vec<u8> {
    match prefix {
        IpNet::V4(net) if last => with(b'4', &net.broadcast().octets()),
        IpNet::V4(net) => with(b'4', &net.network().octets()),
        IpNet::V6(net) if last => with(b'6', &net.broadcast().octets()),
        IpNet::V6(net) => with(b'6', &net.network().octets()),
    }
}

/// Keys of prefixes that overlap this one, in a segment with prefixes of these lengths.
pub(super) fn around(prefix: IpNet, lengths: &Lengths) -> Vec<Range<Vec<u8>>> {
    let mut inside = address(prefix, true);
    inside.push(u8::MAX);
    let mut ranges = vec![address(prefix, false)..inside];
    let shorter = lengths.of_family(prefix);
    let shorter = shorter.filter(|length| *length < prefix.prefix_len());
    for outside in shorter.filter_map(|length| IpNet::new(prefix.addr(), length).ok()) {
        ranges.push(exactly(&Key::Prefix(outside.trunc())));
    }
    ranges
}

/// Lengths of the prefixes of a segment, with their families (4 or 6): whoever asks about an address looks for prefixes of these alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lengths(BTreeSet<[u8; 2]>);

impl Lengths {
    /// Reads what [`Self::octets`] wrote, and nothing of what is behind that.
    pub fn of(octets: &[u8]) -> Self {
        let (pairs, _) = octets.as_chunks::<2>();
        Lengths(pairs.iter().copied().collect())
    }

    pub fn octets(&self) -> Vec<u8> {
        self.0.iter().flatten().copied().collect()
    }

    pub fn insert(&mut self, prefix: IpNet) {
        self.0.insert([family(prefix), prefix.prefix_len()]);
    }

    fn of_family(&self, prefix: IpNet) -> impl Iterator<Item = u8> {
        let family = family(prefix);
        let pairs = self.0.iter().copied();
        pairs.filter_map(move |[of, length]| (of == family).then_some(length))
    }
}

fn family(prefix: IpNet) -> u8 {
    match prefix {
        IpNet::V4(_) => 4,
        IpNet::V6(_) => 6,
    }
}
