//! Longest-prefix match of one network instance.
//!
//! A trie of nodes with 256 places, one for each value of an octet. A prefix is written into all places that it covers
//! of the one node where it ends, unless a longer prefix that ends there has them; so a change touches one node (and
//! those on the way to it), and a lookup takes the last value seen on its way down.
use crate::api::{AdjacencyIndex, Destination, PortIndex, SessionIndex};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

/// A destination in 4 bytes: its kind in the upper 3 bits, which of them in the others. 0 is no destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target(u32);

impl Target {
    const KIND: u32 = 29;
    const WHICH: u32 = (1 << Self::KIND) - 1;

    pub fn of(to: Destination) -> Self {
        let (kind, which) = match to {
            Destination::Adjacency(AdjacencyIndex(i)) => (1, i),
            Destination::Session(SessionIndex(i)) => (2, i),
            Destination::Local => (3, 0),
            Destination::Discard => (4, 0),
            Destination::Connected(PortIndex(i)) => (5, i as u32),
        };
        Target(kind << Self::KIND | (which & Self::WHICH))
    }

    #[inline(always)]
    pub fn destination(self) -> Option<Destination> {
        let which = self.0 & Self::WHICH;
        match self.0 >> Self::KIND {
            1 => Some(Destination::Adjacency(AdjacencyIndex(which))),
            2 => Some(Destination::Session(SessionIndex(which))),
            3 => Some(Destination::Local),
            4 => Some(Destination::Discard),
            5 => Some(Destination::Connected(PortIndex(which as u16))),
            _ => None,
        }
    }
}

/// One place of a node: the value of the longest prefix that ends in this node and covers the place, and the node
/// below (0: none).
#[derive(Clone, Copy, Default)]
struct Place {
    value: Target,
    below: u32,
}

struct Node {
    places: [Place; 256],
    /// Of the prefix whose value is in the place: its length, 0 if there is none.
    lengths: [u8; 256],
    /// Prefixes that end here and nodes below.
    used: u32,
}

impl Node {
    fn empty() -> Self {
        Node {
            places: [Place::default(); 256],
            lengths: [0; 256],
            used: 0,
        }
    }
}

/// Who set a route. Of two for the same prefix the session's counts: an address may be announced as a net of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The control thread.
    Route,
    /// A session that has the address or prefix.
    Session,
}

/// What both owners say about a prefix.
#[derive(Clone, Copy, Default)]
pub(crate) struct Said([Target; 2]);

impl Said {
    /// Where an owner says that the prefix leads.
    pub fn by(self, owner: Owner) -> Option<Destination> {
        self.0[owner as usize].destination()
    }

    fn counts(self) -> Target {
        let [route, session] = self.0;
        if session == Target(0) { route } else { session }
    }
}

/// Routes of one address family; `N` is the number of octets of an address.
struct Trie<const N: usize> {
    /// Node 0 is the root; freed ones are in `free`.
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Every prefix with its values, for what a removed one had covered.
    prefixes: BTreeMap<([u8; N], u8), Said>,
    /// Of the prefix of length 0.
    default: Target,
}

impl<const N: usize> Trie<N> {
    fn new() -> Self {
        Trie {
            nodes: vec![Node::empty()],
            free: Vec::new(),
            prefixes: BTreeMap::new(),
            default: Target(0),
        }
    }

    #[inline]
    fn lookup(&self, address: &[u8; N]) -> Target {
        let (mut best, mut node) = (self.default, 0);
        for &octet in address {
            let place = self.nodes[node as usize].places[octet as usize];
            if place.value != Target(0) {
                best = place.value;
            }
            node = place.below;
            if node == 0 {
                break;
            }
        }
        best
    }

    fn exact(&self, prefix: [u8; N], length: u8) -> Target {
        self.prefixes
            .get(&(prefix, length))
            .map(|said| said.counts())
            .unwrap_or_default()
    }

    /// What is said about the prefixes behind one, or from the first on.
    fn after(&self, after: Option<([u8; N], u8)>) -> impl Iterator<Item = (&([u8; N], u8), &Said)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.prefixes.range((from, Bound::Unbounded))
    }

    /// Sets what an owner says about a prefix, 0 to take it back; returns what it said before.
    /// `prefix` has no bits behind `length`.
    fn set(&mut self, prefix: [u8; N], length: u8, owner: Owner, value: Target) -> Target {
        let said = self.prefixes.entry((prefix, length)).or_default();
        let before = said.counts();
        let old = core::mem::replace(&mut said.0[owner as usize], value);
        let after = said.counts();
        if after == Target(0) {
            self.prefixes.remove(&(prefix, length));
        }
        if after != before {
            self.change(prefix, length, before, after);
        }
        old
    }

    fn change(&mut self, prefix: [u8; N], length: u8, before: Target, after: Target) {
        if length == 0 {
            self.default = after;
        } else if after == Target(0) {
            self.erase(prefix, length);
        } else {
            self.write(prefix, length, after, before == Target(0));
        }
    }

    fn write(&mut self, prefix: [u8; N], length: u8, value: Target, new: bool) {
        let node = self.node_for(&prefix, length);
        let node = &mut self.nodes[node as usize];
        node.used += new as u32;
        for place in places(&prefix, length) {
            if node.lengths[place] <= length {
                node.lengths[place] = length;
                node.places[place].value = value;
            }
        }
    }

    /// The node where a prefix of this length ends, made with those on the way if it is not there.
    fn node_for(&mut self, prefix: &[u8; N], length: u8) -> u32 {
        let mut node = 0;
        for &octet in &prefix[..level(length)] {
            let mut below = self.nodes[node as usize].places[octet as usize].below;
            if below == 0 {
                below = self.free.pop().unwrap_or_else(|| {
                    self.nodes.push(Node::empty());
                    self.nodes.len() as u32 - 1
                });
                let node = &mut self.nodes[node as usize];
                node.places[octet as usize].below = below;
                node.used += 1;
            }
            node = below;
        }
        node
    }

    /// What a removed prefix covered falls back to the next longest.
    fn erase(&mut self, prefix: [u8; N], length: u8) {
        let level = level(length);
        let (shorter, value) = self.covering(prefix, length);
        let mut path = [0; N];
        for (i, &octet) in prefix[..level].iter().enumerate() {
            path[i + 1] = self.nodes[path[i] as usize].places[octet as usize].below;
        }
        let node = &mut self.nodes[path[level] as usize];
        node.used -= 1;
        for place in places(&prefix, length) {
            if node.lengths[place] == length {
                node.lengths[place] = shorter;
                node.places[place].value = value;
            }
        }
        self.prune(&prefix, &path[..=level]);
    }

    /// Frees the nodes at the end of the path that hold nothing any more.
    fn prune(&mut self, prefix: &[u8; N], path: &[u32]) {
        for level in (1..path.len()).rev() {
            if self.nodes[path[level] as usize].used != 0 {
                return;
            }
            let above = &mut self.nodes[path[level - 1] as usize];
            above.places[prefix[level - 1] as usize].below = 0;
            above.used -= 1;
            self.free.push(path[level]);
        }
    }

    /// The next longest prefix that covers this one and ends in the same node.
    fn covering(&self, prefix: [u8; N], length: u8) -> (u8, Target) {
        let first = level(length) as u8 * 8 + 1;
        let mut shorter = (first..length)
            .rev()
            .map(|l| (l, self.exact(cut(prefix, l), l)));
        shorter
            .find(|&(_, value)| value != Target(0))
            .unwrap_or_default()
    }
}

/// How many nodes lie above the one where a prefix of this length (not 0) ends.
fn level(length: u8) -> usize {
    (length as usize - 1) / 8
}

/// The places of its node that a prefix of this length (not 0) covers.
fn places<const N: usize>(prefix: &[u8; N], length: u8) -> core::ops::Range<usize> {
    let level = level(length);
    let first = prefix[level] as usize;
    first..first + (1 << (8 * (level + 1) - length as usize))
}

/// The first `length` bits.
fn cut<const N: usize>(mut prefix: [u8; N], length: u8) -> [u8; N] {
    for (i, octet) in prefix.iter_mut().enumerate() {
        let bits = (length as usize).saturating_sub(i * 8).min(8);
        *octet &= !(0xff_u32 >> bits) as u8;
    }
    prefix
}

/// The routes of one network instance.
pub(crate) struct Fib {
    v4: Trie<4>,
    v6: Trie<16>,
}

impl Fib {
    pub fn new() -> Self {
        Fib {
            v4: Trie::new(),
            v6: Trie::new(),
        }
    }

    #[inline(always)]
    pub fn lookup_v4(&self, address: u32) -> Target {
        self.v4.lookup(&address.to_be_bytes())
    }

    #[inline(always)]
    pub fn lookup_v6(&self, address: u128) -> Target {
        self.v6.lookup(&address.to_be_bytes())
    }

    /// The route of exactly this prefix.
    pub fn exact(&self, prefix: IpNet) -> Option<Destination> {
        let target = match prefix.network() {
            IpAddr::V4(a) => self.v4.exact(a.octets(), prefix.prefix_len()),
            IpAddr::V6(a) => self.v6.exact(a.octets(), prefix.prefix_len()),
        };
        target.destination()
    }

    /// Sets a route or, with `None`, removes it; other owners' stay. Returns where it led.
    pub fn set(
        &mut self,
        prefix: IpNet,
        owner: Owner,
        to: Option<Destination>,
    ) -> Option<Destination> {
        let target = to.map(Target::of).unwrap_or_default();
        let old = match prefix.network() {
            IpAddr::V4(a) => self.v4.set(a.octets(), prefix.prefix_len(), owner, target),
            IpAddr::V6(a) => self.v6.set(a.octets(), prefix.prefix_len(), owner, target),
        };
        old.destination()
    }

    /// The prefixes behind one, or from the first on, with what is said about them: IPv4, then IPv6.
    pub fn after(&self, after: Option<IpNet>) -> impl Iterator<Item = (IpNet, Said)> {
        let (v4, v6) = match after {
            None => (Some(None), None),
            Some(IpNet::V4(net)) => (Some(Some((net.network().octets(), net.prefix_len()))), None),
            Some(IpNet::V6(net)) => (None, Some((net.network().octets(), net.prefix_len()))),
        };
        let net = |address: IpAddr, length| IpNet::new_assert(address, length);
        let v4 = v4.into_iter().flat_map(|after| self.v4.after(after));
        let v4 = v4.map(move |(&(prefix, length), said)| (net(prefix.into(), length), *said));
        let v6 = self.v6.after(v6);
        v4.chain(v6.map(move |(&(prefix, length), said)| (net(prefix.into(), length), *said)))
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.v4.prefixes.len() + self.v6.prefixes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn value(n: u32) -> Target {
        Target::of(Destination::Session(SessionIndex(n)))
    }

    /// Longest match by looking at every prefix.
    fn naive<const N: usize>(all: &HashMap<([u8; N], u8), Target>, address: [u8; N]) -> Target {
        let covers = |&(p, l): &([u8; N], u8)| cut(address, l) == p;
        all.iter()
            .filter(|(k, _)| covers(k))
            .max_by_key(|((_, l), _)| *l)
            .map(|(_, v)| *v)
            .unwrap_or_default()
    }

    /// Few different octets, so that prefixes meet.
    fn address<const N: usize>() -> impl Strategy<Value = [u8; N]> {
        proptest::collection::vec(
            prop_oneof![Just(0u8), Just(1), Just(0x80), Just(0xff), any::<u8>()],
            N,
        )
        .prop_map(|v| v.try_into().unwrap())
    }

    fn agrees<const N: usize>(changes: &[([u8; N], u8, Option<u32>)], asked: &[[u8; N]]) {
        let (mut trie, mut model) = (Trie::<N>::new(), HashMap::new());
        for &(prefix, length, what) in changes {
            let prefix = cut(prefix, length);
            match what {
                Some(n) => {
                    trie.set(prefix, length, Owner::Route, value(n));
                    model.insert((prefix, length), value(n));
                }
                None => {
                    let was = model.remove(&(prefix, length)).unwrap_or_default();
                    assert_eq!(trie.set(prefix, length, Owner::Route, Target(0)), was);
                }
            }
            for &a in asked.iter().chain(changes.iter().map(|(p, ..)| p)) {
                assert_eq!(
                    trie.lookup(&a),
                    naive(&model, a),
                    "{a:?} after {prefix:?}/{length}"
                );
            }
        }
        for &(prefix, length, _) in changes {
            trie.set(cut(prefix, length), length, Owner::Route, Target(0));
        }
        assert_eq!(
            trie.free.len(),
            trie.nodes.len() - 1,
            "a node was not freed"
        );
        assert!(
            trie.nodes
                .iter()
                .all(|n| n.used == 0 && n.lengths == [0; 256])
        );
    }

    fn changes<const N: usize>() -> impl Strategy<Value = Vec<([u8; N], u8, Option<u32>)>> {
        let change = (
            address::<N>(),
            0..=(N as u8 * 8),
            prop_oneof![2 => (0..9u32).prop_map(Some), 1 => Just(None)],
        );
        proptest::collection::vec(change, 0..if cfg!(miri) { 6 } else { 40 })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 3 } else { 128 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn finds_what_a_naive_search_finds_v4(c in changes::<4>(), asked in proptest::collection::vec(address::<4>(), 0..8)) {
            agrees(&c, &asked);
        }

        #[test]
        fn finds_what_a_naive_search_finds_v6(c in changes::<16>(), asked in proptest::collection::vec(address::<16>(), 0..8)) {
            agrees(&c, &asked);
        }
    }

    fn session(n: u32) -> Option<Destination> {
        Some(Destination::Session(SessionIndex(n)))
    }

    #[test]
    fn a_removed_prefix_uncovers_the_next_longest() {
        let mut fib = Fib::new();
        let net = |s: &str| s.parse::<IpNet>().unwrap();
        let host = 0x6440_0007;
        for (n, prefix) in [
            "0.0.0.0/0",
            "100.64.0.0/24",
            "100.64.0.4/30",
            "100.64.0.7/32",
        ]
        .into_iter()
        .enumerate()
        {
            fib.set(net(prefix), Owner::Route, session(n as u32));
        }
        assert_eq!((fib.lookup_v4(host), fib.len()), (value(3), 4));
        assert_eq!(
            fib.set(net("100.64.0.7/32"), Owner::Route, None),
            session(3)
        );
        assert_eq!(fib.set(net("100.64.0.7/32"), Owner::Route, None), None);
        assert_eq!(fib.lookup_v4(host), value(2));
        fib.set(net("100.64.0.4/30"), Owner::Route, None);
        assert_eq!((fib.lookup_v4(host), fib.len()), (value(1), 2));
        fib.set(net("100.64.0.0/24"), Owner::Route, None);
        assert_eq!(fib.lookup_v4(host), value(0));
        assert_eq!(fib.lookup_v6(1), Target(0));
    }

    #[test]
    fn a_sessions_route_covers_one_of_the_same_prefix_and_leaves_it() {
        let mut fib = Fib::new();
        let net: IpNet = "2001:db8:0:7::/64".parse().unwrap();
        let inside = 0x2001_0db8_0000_0007_0000_0000_0000_0001;
        fib.set(net, Owner::Session, session(7));
        fib.set(net, Owner::Route, Some(Destination::Discard));
        assert_eq!(
            (fib.lookup_v6(inside), fib.exact(net), fib.len()),
            (value(7), session(7), 1)
        );
        fib.set(net, Owner::Session, None);
        assert_eq!((fib.exact(net), fib.len()), (Some(Destination::Discard), 1));
        fib.set(net, Owner::Route, None);
        assert_eq!((fib.lookup_v6(inside), fib.len()), (Target(0), 0));
    }

    #[test]
    fn destinations_survive_their_four_bytes() {
        let all = [
            Destination::Adjacency(AdjacencyIndex(1 << 28)),
            Destination::Session(SessionIndex(0x1fff_ffff)),
            Destination::Local,
            Destination::Discard,
            Destination::Connected(PortIndex(65535)),
        ];
        for to in all {
            assert_eq!(Target::of(to).destination(), Some(to));
        }
        assert_eq!(Target::default().destination(), None);
    }
}
