//! The prefixes of one family of one instance with what is said about them, on the writer's side.
use super::{Owner, Said, Target};
use std::collections::BTreeMap;
use std::ops::Bound;

/// A prefix of either family: its bits at the upper end, nothing behind `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Net {
    pub bits: u128,
    pub len: u8,
}

impl Net {
    /// The first `len` bits.
    pub fn cut(bits: u128, len: u8) -> Self {
        let bits = bits & !u128::MAX.checked_shr(len as u32).unwrap_or(0);
        Net { bits, len }
    }
}

/// A prefix as the map has it: in the order of addresses, shorter ones first.
pub(super) trait Key: Ord + Copy {
    fn of(net: Net) -> Self;
    fn net(self) -> Net;
}

/// IPv4: address and length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct V4(u64);

impl Key for V4 {
    fn of(Net { bits, len }: Net) -> Self {
        V4((bits >> 96 << 8) as u64 | len as u64)
    }

    fn net(self) -> Net {
        let V4(key) = self;
        Net {
            bits: (key as u128 >> 8) << 96,
            len: key as u8,
        }
    }
}

/// IPv6, in less room than a u128 and a length take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct V6([u64; 2], u8);

impl Key for V6 {
    fn of(Net { bits, len }: Net) -> Self {
        V6([(bits >> 64) as u64, bits as u64], len)
    }

    fn net(self) -> Net {
        let V6([high, low], len) = self;
        Net {
            bits: (high as u128) << 64 | low as u128,
            len,
        }
    }
}

/// All prefixes.
pub(super) struct Rib<K>(BTreeMap<K, Said>);

/// What becomes of a prefix when somebody says something else about it.
pub(super) struct Change {
    /// What he said before.
    pub said: Target,
    /// Where the prefix led and leads.
    pub before: Target,
    pub after: Target,
}

impl<K: Key> Rib<K> {
    pub fn new() -> Self {
        Rib(BTreeMap::new())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Where a prefix leads.
    pub fn target(&self, net: Net) -> Target {
        let said = self.0.get(&K::of(net));
        said.map(|said| said.counts()).unwrap_or_default()
    }

    pub fn set(&mut self, net: Net, owner: Owner, value: Target) -> Change {
        let said = self.0.entry(K::of(net)).or_default();
        let before = said.counts();
        let old = core::mem::replace(&mut said.0[owner as usize], value);
        let after = said.counts();
        if after == Target::NONE {
            self.0.remove(&K::of(net));
        }
        Change {
            said: old,
            before,
            after,
        }
    }

    /// The next longest prefix that covers this one, and where it leads; length 0 and nowhere if there is none.
    pub fn covering(&self, net: Net) -> (u8, Target) {
        let mut below = net;
        loop {
            let Some((key, said)) = self.0.range(..K::of(below)).next_back() else {
                return (0, Target::NONE);
            };
            let found = key.net();
            let common = (found.bits ^ net.bits).leading_zeros() as u8;
            if found.len <= common {
                return (found.len, said.counts());
            }
            // What covers both is no longer than what they have in common.
            below = Net {
                len: common + 1,
                ..Net::cut(net.bits, common)
            };
        }
    }

    /// The prefixes that are longer than one and lie within it, in order.
    pub fn inside(&self, bits: u128, len: u8) -> impl Iterator<Item = (Net, Target)> {
        let Net { bits, .. } = Net::cut(bits, len);
        let last = bits | u128::MAX.checked_shr(len as u32).unwrap_or(0);
        let from = K::of(Net { bits, len: len + 1 });
        let to = K::of(Net {
            bits: last,
            len: 128,
        });
        let all = self.0.range(from..=to);
        all.map(|(key, said)| (key.net(), said.counts()))
    }

    /// What is said about the prefixes behind one, or from the first on.
    pub fn after(&self, after: Option<Net>) -> impl Iterator<Item = (Net, Said)> {
        let from = after.map_or(Bound::Unbounded, |net| Bound::Excluded(K::of(net)));
        let all = self.0.range((from, Bound::Unbounded));
        all.map(|(key, said)| (key.net(), *said))
    }
}
