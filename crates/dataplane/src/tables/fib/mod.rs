//! Longest-prefix match in the network instances, shared by one writer and any number of readers.
//!
//! The [`Writer`] keeps all prefixes and makes of them what the [`Reader`]s walk through: chunks of words in one long array, in
//! which a word is an answer or leads to another chunk. IPv4 with many prefixes is DIR-24-8: a word for each /24, and 256
//! for one with longer prefixes. All else is a trie of bitmaps and lists of a few cache lines each, with arrays of
//! 65,536 words for 16 bits of IPv6 up to the 64th where there are many prefixes. An instance with a few routes takes one
//! or two KB.
//!
//! Readers never wait. Each address is answered by one word, so each lookup finds what was true before a change or what is true
//! after it. A chunk that is taken out rests until every reader has begun another round ([`Reader::pass`]).
//!
//! ```
//! use dataplane::fib::{Owner, Writer};
//! use dataplane::{AdjacencyIndex, Destination, InstanceIndex};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let instance = InstanceIndex(0);
//! let mut writer = Writer::new(1, 1_000_000)?;
//! let reader = writer.reader();
//! let to = Destination::Adjacency(AdjacencyIndex(7));
//! writer.set(instance, "192.0.2.0/24".parse()?, Owner::Route, Some(to))?;
//! writer.set(instance, "2001:db8::/32".parse()?, Owner::Route, Some(to))?;
//!
//! let addresses = [0xc000_0207, 0xc000_0307];
//! let table = reader.table(instance);
//! for address in addresses {
//!     reader.touch_v4(table, address); // asks for the line that decides
//! }
//! let found = addresses.map(|address| reader.find_v4(table, address).destination());
//! assert_eq!(found, [Some(to), None]);
//! assert_eq!(reader.lookup_v6(instance, 0x2001_0db8 << 96).destination(), Some(to));
//! reader.pass(); // once a round
//! # Ok(())
//! # }
//! ```
use crate::api::{AdjacencyIndex, Destination, GroupIndex, InstanceIndex, PortIndex, SessionIndex};
use ipnet::IpNet;
use memory::{LINE, Memory, Store};
use rib::{Net, V4, V6};
use std::net::IpAddr;
use trie::{Policy, Trie};

mod memory;
#[cfg(test)]
mod races;
mod reader;
mod rib;
#[cfg(test)]
pub(crate) mod tests;
mod trie;

pub use reader::{Reader, Table};

/// A destination in 4 bytes: its kind in the upper 3 bits, which of them in the others. 0 is no destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target(u32);

impl Target {
    /// The first three bits: what packets meet all the time has a kind of its own. 4, 5 and 6 are free.
    const KIND: u32 = 29;
    const WHICH: u32 = (1 << Self::KIND) - 1;
    const ADJACENCY: u32 = 1;
    const SESSION: u32 = 2;
    const SELDOM: u32 = 3;
    // 7: a chunk
    /// Behind [`Target::SELDOM`] five bits say which of those it is: 4 to 31 are free.
    const SELDOM_KIND: u32 = 24;
    const SELDOM_WHICH: u32 = (1 << Self::SELDOM_KIND) - 1;
    const LOCAL: u32 = 0;
    const DISCARD: u32 = 1;
    const CONNECTED: u32 = 2;
    const GROUP: u32 = 3;
    pub(crate) const NONE: Target = Target(0);

    pub(crate) fn of(to: Destination) -> Self {
        let often = |kind: u32, which: u32| Target(kind << Self::KIND | (which & Self::WHICH));
        let seldom = |kind: u32, which: u32| {
            let which = kind << Self::SELDOM_KIND | (which & Self::SELDOM_WHICH);
            often(Self::SELDOM, which)
        };
        match to {
            Destination::Adjacency(AdjacencyIndex(i)) => often(Self::ADJACENCY, i),
            Destination::Session(SessionIndex(i)) => often(Self::SESSION, i),
            Destination::Local => seldom(Self::LOCAL, 0),
            Destination::Discard => seldom(Self::DISCARD, 0),
            Destination::Connected(PortIndex(i)) => seldom(Self::CONNECTED, i.into()),
            Destination::Group(GroupIndex(i)) => seldom(Self::GROUP, i),
        }
    }

    /// Where it leads.
    #[inline(always)]
    pub fn destination(self) -> Option<Destination> {
        let which = self.0 & Self::WHICH;
        match self.0 >> Self::KIND {
            Self::ADJACENCY => Some(Destination::Adjacency(AdjacencyIndex(which))),
            Self::SESSION => Some(Destination::Session(SessionIndex(which))),
            Self::SELDOM => {
                let of_kind = which & Self::SELDOM_WHICH;
                match which >> Self::SELDOM_KIND {
                    Self::LOCAL => Some(Destination::Local),
                    Self::DISCARD => Some(Destination::Discard),
                    Self::CONNECTED => Some(Destination::Connected(PortIndex(of_kind as u16))),
                    Self::GROUP => Some(Destination::Group(GroupIndex(of_kind))),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The adjacency, if it leads to one.
    #[inline(always)]
    pub(crate) fn adjacency(self) -> Option<AdjacencyIndex> {
        let adjacency = self.0 >> Self::KIND == Self::ADJACENCY;
        adjacency.then_some(AdjacencyIndex(self.0 & Self::WHICH))
    }

    /// The session, if it leads to one.
    #[inline(always)]
    pub(crate) fn session(self) -> Option<SessionIndex> {
        let session = self.0 >> Self::KIND == Self::SESSION;
        session.then_some(SessionIndex(self.0 & Self::WHICH))
    }

    /// The group, if it leads to one.
    #[inline(always)]
    pub(crate) fn group(self) -> Option<GroupIndex> {
        const GROUPS: u32 = Target::SELDOM << (Target::KIND - Target::SELDOM_KIND) | Target::GROUP;
        let group = self.0 >> Self::SELDOM_KIND == GROUPS;
        group.then_some(GroupIndex(self.0 & Self::SELDOM_WHICH))
    }

    pub(crate) fn word(self) -> u32 {
        self.0
    }

    pub(crate) fn of_word(word: u32) -> Self {
        Target(word)
    }
}

/// Who set a route. Of two for the same prefix the session's counts: an address may be announced as a net of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The control thread.
    Route,
    /// A session that has the address or prefix.
    Session,
}

/// What both owners say about a prefix.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said([Target; 2]);

impl Said {
    /// Where an owner says that the prefix leads.
    pub fn by(self, owner: Owner) -> Option<Destination> {
        self.0[owner as usize].destination()
    }

    fn counts(self) -> Target {
        let [route, session] = self.0;
        if session == Target::NONE {
            route
        } else {
            session
        }
    }
}

/// A change was not made, and nothing has changed: the table is full, there is no such instance, or a reader has not begun a
/// round for so long that too much rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table of routes is full, or there is no such instance")]
pub struct Refused;

/// What there is, and what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Prefixes in all instances.
    pub prefixes: usize,
    /// Octets that readers walk through.
    pub octets: u64,
    /// Octets that rest until no reader can be in them.
    pub resting: u64,
    /// Changes that were refused since the start.
    pub refused: u64,
}

/// The one who changes routes.
pub struct Writer {
    instances: Vec<(Trie<V4>, Trie<V6>)>,
    memory: Memory,
    store: Store,
    /// The most prefixes.
    most: usize,
    prefixes: usize,
    refused: u64,
}

impl Writer {
    /// Tables without routes, for so many instances and at most so many prefixes in all of them together.
    pub fn new(instances: u16, prefixes: usize) -> Result<Self, dpdk::Error> {
        // Address space only: what an isolated IPv6 host route takes, and IPv4's large arrays.
        let lines = (1 << 23) + (prefixes.min(1 << 24) as u32) * 24;
        Self::with(instances, prefixes, lines, [Policy::V4, Policy::V6])
    }

    fn with(
        instances: u16,
        prefixes: usize,
        lines: u32,
        [v4, v6]: [Policy; 2],
    ) -> Result<Self, dpdk::Error> {
        let roots = 2 * instances as usize;
        let memory = Memory::new(lines.max((roots.div_ceil(LINE)) as u32))?;
        let store = Store::new(memory.clone(), roots)?;
        let tries = |instance| {
            let v4 = Trie::new(2 * instance, memory.clone(), v4);
            (v4, Trie::new(2 * instance + 1, memory.clone(), v6))
        };
        Ok(Writer {
            instances: (0..instances as usize).map(tries).collect(),
            memory,
            store,
            most: prefixes,
            prefixes: 0,
            refused: 0,
        })
    }

    /// Another reader.
    pub fn reader(&mut self) -> Reader {
        let instances = self.instances.len() as u16;
        Reader::new(self.memory.words.clone(), instances, self.store.watch())
    }

    /// Sets what an owner says about a prefix or, with `None`, takes it back; what others say stays. Returns where it led.
    pub fn set(
        &mut self,
        InstanceIndex(instance): InstanceIndex,
        prefix: IpNet,
        owner: Owner,
        to: Option<Destination>,
    ) -> Result<Option<Destination>, Refused> {
        self.store.settle();
        let full = to.is_some() && self.prefixes >= self.most;
        let instance = self.instances.get_mut(instance as usize);
        let (Some((v4, v6)), false, true) = (instance, full, self.store.has_room(to.is_some()))
        else {
            self.refused += 1;
            return Err(Refused);
        };
        let before = v4.rib.len() + v6.rib.len();
        let (net, store) = (net(prefix), &mut self.store);
        let target = to.map(Target::of).unwrap_or_default();
        let said = match prefix {
            IpNet::V4(_) => v4.set(store, net, owner, target),
            IpNet::V6(_) => v6.set(store, net, owner, target),
        };
        self.prefixes = self.prefixes + v4.rib.len() + v6.rib.len() - before;
        Ok(said.destination())
    }

    /// The route of exactly this prefix.
    pub fn exact(
        &self,
        InstanceIndex(instance): InstanceIndex,
        prefix: IpNet,
    ) -> Option<Destination> {
        let (v4, v6) = self.instances.get(instance as usize)?;
        let target = match prefix {
            IpNet::V4(_) => v4.rib.target(net(prefix)),
            IpNet::V6(_) => v6.rib.target(net(prefix)),
        };
        target.destination()
    }

    /// The prefixes of an instance that is there, behind one or from the first on, with what is said about them: IPv4,
    /// then IPv6.
    pub fn after(
        &self,
        InstanceIndex(instance): InstanceIndex,
        after: Option<IpNet>,
    ) -> impl Iterator<Item = (IpNet, Said)> {
        let (v4, v6) = &self.instances[instance as usize];
        let (in_v4, in_v6) = match after {
            None => (Some(None), None),
            Some(prefix @ IpNet::V4(_)) => (Some(Some(net(prefix))), None),
            Some(prefix) => (None, Some(net(prefix))),
        };
        let v4 = in_v4.into_iter().flat_map(|after| v4.rib.after(after));
        let v4 = v4.map(|(Net { bits, len }, said)| {
            let address = ((bits >> 96) as u32).to_be_bytes();
            (IpNet::new_assert(address.into(), len), said)
        });
        let v6 = v6.rib.after(in_v6).map(|(Net { bits, len }, said)| {
            let address = bits.to_be_bytes();
            (IpNet::new_assert(address.into(), len), said)
        });
        v4.chain(v6)
    }

    /// How many instances there are.
    pub fn instances(&self) -> u16 {
        self.instances.len() as u16
    }

    /// Will so many new prefixes be taken now?
    pub fn has_room(&self, more: usize) -> bool {
        self.prefixes + more <= self.most && self.store.has_room(true)
    }

    /// What there is, and what it takes.
    pub fn counts(&self) -> Counts {
        let octets = |lines| lines as u64 * 64;
        let (used, resting) = self.store.lines();
        Counts {
            prefixes: self.prefixes,
            octets: octets(used),
            resting: octets(resting),
            refused: self.refused,
        }
    }
}

fn net(prefix: IpNet) -> Net {
    let bits = match prefix.network() {
        IpAddr::V4(address) => (u32::from(address) as u128) << 96,
        IpAddr::V6(address) => u128::from(address),
    };
    let len = prefix.prefix_len();
    Net { bits, len }
}
