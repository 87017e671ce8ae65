//! How the writer changes what readers walk through.
//!
//! Every word that leads somewhere is that of the longest prefix that covers its addresses and ends in its chunk or above: what
//! a shorter one says is written into the chunks below. So each address has one word that answers for it, and a change
//! of that word is the change of the answer. Where a prefix ends in an array its places are written one by one; a
//! bitmap or list is made anew and put in place by the one word that leads to it.
use super::memory::{Chunk, Kind, Memory, Places, Slots, Store};
use super::rib::{Key, Net, Rib};
use super::{Owner, Target};
use core::sync::atomic::Ordering::{Relaxed, Release};

/// The kinds of chunks that a family uses.
#[derive(Clone, Copy)]
pub(super) struct Policy {
    /// Where a subtree with many prefixes begins with a large array: at which bit, and which.
    pub wide: &'static [(u8, Kind)],
    /// How many are many. With less than a quarter of them it is no large array any more.
    pub many: u32,
    /// Below a large array there are only arrays.
    pub dense: bool,
}

impl Policy {
    /// DIR-24-8.
    pub const V4: Policy = Policy {
        wide: &[(0, Kind::Array24)],
        many: 4096,
        dense: true,
    };
    /// Registries give out /32s and shorter, and sites have /48s, of which subscribers have /64s and shorter: where there are
    /// many of them one word tells them apart.
    pub const V6: Policy = Policy {
        wide: &[
            (0, Kind::Array16),
            (16, Kind::Array16),
            (32, Kind::Array16),
            (48, Kind::Array16),
        ],
        many: 1024,
        dense: false,
    };
}

/// The most runs of a list, and prefixes for which one is tried.
const MOST_LISTED: usize = 16;
/// With fewer prefixes than that bitmaps and arrays of 256 are made anew when one comes or goes: they may fit a list.
const FEW: u32 = 7;

/// One family of one instance.
pub(super) struct Trie<K> {
    pub rib: Rib<K>,
    /// The word that everything begins with.
    root: usize,
    memory: Memory,
    policy: Policy,
}

/// Where in the tree: a word, the bits that lead to it, and whether there are only arrays from here on.
#[derive(Clone, Copy)]
struct At {
    place: usize,
    bits: u8,
    dense: bool,
}

/// The length of a prefix and where it leads.
type To = (u8, u32);

impl<K: Key> Trie<K> {
    pub fn new(root: usize, memory: Memory, policy: Policy) -> Self {
        Trie {
            rib: Rib::new(),
            root,
            memory,
            policy,
        }
    }

    /// Sets what an owner says about a prefix, nothing to take it back; returns what he said before.
    pub fn set(&mut self, store: &mut Store, net: Net, owner: Owner, value: Target) -> Target {
        let change = self.rib.set(net, owner, value);
        let (before, after) = (change.before, change.after);
        if before != after {
            let there = |target| (target != Target::NONE) as i32;
            let to = match after {
                Target::NONE => self.rib.covering(net),
                after => (net.len, after),
            };
            let more = there(after) - there(before);
            self.change(store, net, more, (to.0, to.1.0));
        }
        change.said
    }

    /// Brings the tree to what the prefixes say. Of `net`, of which there are `more` now (-1, 0 or 1), the addresses lead
    /// `to`, unless a longer prefix has them.
    fn change(&self, store: &mut Store, net: Net, more: i32, to: To) {
        let mut at = At {
            place: self.root,
            bits: 0,
            dense: false,
        };
        if net.len == 0 {
            let root = self.memory.places(at.place..at.place + 1);
            return self.paint(root, 0..1, net.len, to);
        }
        loop {
            let (_, word) = self.memory.place(at.place);
            let Some(chunk) = Chunk::of(word) else {
                return self.rebuild(store, net, at);
            };
            let count = store.count(chunk).wrapping_add_signed(more);
            store.set_count(chunk, count);
            if self.outgrown(chunk.kind(), count, at) {
                return self.rebuild(store, net, at);
            }
            let end = at.bits + chunk.kind().bits();
            let slot = slot(net.bits, at.bits, end);
            match chunk.kind() {
                Kind::Bitmap => {
                    let place = self.memory.run(chunk, slot);
                    let below = Chunk::of(self.memory.place(place).1);
                    let stays = |below| store.count(below).wrapping_add_signed(more) > 0;
                    if net.len <= end || !below.is_some_and(stays) {
                        return self.alter(store, at, chunk, net, to, below);
                    }
                    at.place = place;
                }
                array => {
                    if net.len <= end {
                        let places = self.memory.of(chunk);
                        return self.paint(places, slots(net, at.bits, end), net.len, to);
                    }
                    at.dense |= self.policy.dense && array != Kind::Array8;
                    at.place = chunk.at() + slot;
                }
            }
            at.bits = end;
        }
    }

    /// Whether a chunk with so many prefixes has to be of another kind, or none. (A list is always made anew.)
    fn outgrown(&self, kind: Kind, count: u32, at: At) -> bool {
        let few = match kind {
            Kind::List | Kind::Long => return true,
            Kind::Array8 if at.dense => 1,
            Kind::Bitmap | Kind::Array8 => FEW,
            Kind::Array16 | Kind::Array24 => return count < self.policy.many / 4,
        };
        count < few || self.wide(count, at).is_some()
    }

    fn wide(&self, count: u32, at: At) -> Option<Kind> {
        let mut wide = self.policy.wide.iter();
        let (_, kind) = wide.find(|(bits, _)| *bits == at.bits)?;
        (count >= self.policy.many).then_some(*kind)
    }

    /// Makes a subtree anew out of its prefixes, and puts it in the place of the old one.
    fn rebuild(&self, store: &mut Store, net: Net, at: At) {
        let inside: Vec<_> = self.rib.inside(net.bits, at.bits).collect();
        let (origin, old) = self.memory.place(at.place);
        let base = (origin, self.rib.target(Net::cut(net.bits, origin)).0);
        let new = self.build(store, &inside, at.bits, at.dense, base);
        let place = self.memory.places(at.place..at.place + 1);
        place.set(0, (origin, new));
        self.prune(store, Chunk::of(old));
    }

    /// Makes a bitmap anew in which a prefix ends, or in which a subtree begins or ends to be.
    fn alter(&self, store: &mut Store, at: At, old: Chunk, net: Net, to: To, below: Option<Chunk>) {
        let end = at.bits + 8;
        let new = self.memory.expand(old);
        let places = new.places();
        if net.len <= end {
            self.paint(places, slots(net, at.bits, end), net.len, to);
        } else {
            let slot = slot(net.bits, at.bits, end);
            let (origin, _) = places.get(slot);
            let base = (origin, self.rib.target(Net::cut(net.bits, origin)).0);
            let inside: Vec<_> = self.rib.inside(net.bits, end).collect();
            let word = self.build(store, &inside, end, at.dense, base);
            places.set(slot, (origin, word));
        }
        let packed = store.pack(&new, store.count(old), false);
        let (origin, _) = self.memory.place(at.place);
        let place = self.memory.places(at.place..at.place + 1);
        place.set(0, (origin, packed.word()));
        store.retire(old);
        if net.len > end {
            self.prune(store, below);
        }
    }

    /// What prefixes of at most this length said in some places leads elsewhere now, below as well.
    fn paint(&self, places: Places<'_>, range: core::ops::Range<usize>, len: u8, to: To) {
        let words = places.words[range.clone()].iter();
        for (word, origin) in words.zip(&places.origins[range]) {
            let was = origin.load(Relaxed);
            if was > len {
                continue;
            }
            if was != to.0 {
                origin.store(to.0, Relaxed);
            }
            match Chunk::of(word.load(Relaxed)) {
                None => word.store(to.1, Release),
                Some(below) => {
                    let all = self.memory.of(below);
                    self.paint(all, 0..all.words.len(), len, to);
                }
            }
        }
    }

    /// Takes a subtree out, to which nothing leads any more.
    fn prune(&self, store: &mut Store, chunk: Option<Chunk>) {
        let Some(chunk) = chunk else {
            return;
        };
        let places = self.memory.of(chunk);
        if !matches!(chunk.kind(), Kind::List | Kind::Long) {
            (0..places.words.len()).for_each(|n| self.prune(store, Chunk::of(places.get(n).1)));
        }
        store.retire(chunk);
    }

    /// The word for a subtree behind `bits` bits: what is `inside` of it, in order, and what covers it.
    fn build(
        &self,
        store: &mut Store,
        inside: &[(Net, Target)],
        bits: u8,
        dense: bool,
        base: To,
    ) -> u32 {
        let count = inside.len() as u32;
        let at = At {
            place: 0,
            bits,
            dense,
        };
        if inside.is_empty() {
            return base.1;
        }
        if let Some(kind) = self.wide(count, at) {
            let chunk = store.array(kind, count);
            let places = self.memory.of(chunk);
            (0..places.words.len()).for_each(|n| places.set(n, base));
            self.fill(store, places, inside, bits, kind.bits(), self.policy.dense);
            return chunk.word();
        }
        if let Some(runs) = (!dense).then(|| list(inside, bits, base)).flatten() {
            return store.list(&runs, count).word();
        }
        let slots = Slots::filled(base);
        self.fill(store, slots.places(), inside, bits, 8, dense);
        store.pack(&slots, count, dense).word()
    }

    /// Writes prefixes into the places of a chunk that nobody sees yet.
    fn fill(
        &self,
        store: &mut Store,
        places: Places<'_>,
        inside: &[(Net, Target)],
        bits: u8,
        wide: u8,
        dense: bool,
    ) {
        let end = bits + wide;
        let mut rest = inside;
        // A prefix comes before those that are within it.
        while let Some((net, target)) = rest.first() {
            let slot = slot(net.bits, bits, end);
            if net.len <= end {
                let range = slots(*net, bits, end);
                range.for_each(|n| places.set(n, (net.len, target.0)));
                rest = &rest[1..];
            } else {
                let (origin, word) = places.get(slot);
                let last = rest.partition_point(|(other, _)| within(other.bits, net.bits, end));
                let below = self.build(store, &rest[..last], end, dense, (origin, word));
                places.set(slot, (origin, below));
                rest = &rest[last..];
            }
        }
    }
}

/// Do both begin with the same `len` bits?
fn within(a: u128, b: u128, len: u8) -> bool {
    (a ^ b).leading_zeros() >= len as u32
}

/// The place for an address in a chunk that decides about the bits from `begin` to `end`.
fn slot(bits: u128, begin: u8, end: u8) -> usize {
    (bits << begin >> (128 - (end - begin))) as usize
}

/// The places of a prefix in the chunk in which it ends.
fn slots(net: Net, begin: u8, end: u8) -> core::ops::Range<usize> {
    let first = slot(net.bits, begin, end);
    first..first + (1 << (end - net.len))
}

/// The runs of a list: where each begins (32 bits from `bits` on) and what it leads to. `None` if they do not fit.
fn list(inside: &[(Net, Target)], bits: u8, base: To) -> Option<Vec<(u32, To)>> {
    if inside.len() >= MOST_LISTED || inside.iter().any(|(net, _)| net.len - bits > 32) {
        return None;
    }
    let mut runs = vec![(0, base)];
    for (net, target) in inside {
        let first = slot(net.bits, bits, bits + 32) as u32;
        let last = first | u32::MAX.checked_shr((net.len - bits) as u32).unwrap_or(0);
        let from = split(&mut runs, first);
        let to = last
            .checked_add(1)
            .map_or(runs.len(), |next| split(&mut runs, next));
        runs[from..to].fill((first, (net.len, target.0)));
        // What was within it is one run now: longer prefixes come later.
        runs.drain(from + 1..to);
    }
    runs.dedup_by(|next, run| next.1 == run.1);
    (runs.len() <= MOST_LISTED).then_some(runs)
}

/// Lets a run begin here; which one it is.
fn split(runs: &mut Vec<(u32, To)>, begin: u32) -> usize {
    let place = runs.partition_point(|run| run.0 < begin);
    if runs.get(place).is_none_or(|run| run.0 != begin) {
        runs.insert(place, (begin, runs[place - 1].1));
    }
    place
}
