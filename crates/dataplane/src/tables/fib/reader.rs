//! Lookups.
use super::Target;
use super::memory::{Chunk, GONE, Kind, LINE};
use crate::api::InstanceIndex;
use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use dpdk::Words;
use std::sync::Arc;

/// One who looks destinations up: a worker has one of its own.
pub struct Reader {
    words: Words,
    instances: u16,
    /// Which round it is in: what the writer took out in an earlier one it cannot meet.
    round: Arc<AtomicU64>,
    /// One thread uses it: the round is its own.
    _one_thread: PhantomData<Cell<()>>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.round.store(GONE, Release);
    }
}

impl Reader {
    pub(super) fn new(words: Words, instances: u16, round: Arc<AtomicU64>) -> Self {
        Reader {
            words,
            instances,
            round,
            _one_thread: PhantomData,
        }
    }

    /// Begins another round: nothing that was found on the way to a result is used any more. To be called often; what is changed
    /// meanwhile takes memory until then.
    #[inline]
    pub fn pass(&self) {
        let round = self.round.load(Relaxed);
        self.round.store(round + 1, Release);
        // Lookups from here on see everything that was written before the writer saw this round. The pair is the fence
        // in `Store::settle`.
        fence(SeqCst);
    }

    /// How many instances there are.
    pub fn instances(&self) -> u16 {
        self.instances
    }

    /// Where an IPv4 address leads.
    #[inline(always)]
    pub fn lookup_v4(&self, instance: InstanceIndex, address: u32) -> Target {
        let word = self.root(instance, 0);
        match Chunk::of(word) {
            Some(chunk) if chunk.kind() == Kind::Array24 => {
                let word = self.word(chunk.at() + (address >> 8) as usize);
                match Chunk::of(word) {
                    None => Target(word),
                    Some(chunk) => Target(self.word(chunk.at() + (address & 0xff) as usize)),
                }
            }
            _ => self.walk_v4(word, address),
        }
    }

    /// Where an IPv6 address leads.
    #[inline(always)]
    pub fn lookup_v6(&self, instance: InstanceIndex, address: u128) -> Target {
        let word = self.root(instance, 1);
        match Chunk::of(word) {
            Some(chunk) if chunk.kind() == Kind::Array16 => {
                let word = self.word(chunk.at() + (address >> 112) as usize);
                match Chunk::of(word) {
                    Some(chunk) if chunk.kind() == Kind::Array16 => {
                        let word = self.word(chunk.at() + (address >> 96) as u16 as usize);
                        self.walk(word, address << 32)
                    }
                    _ => self.walk(word, address << 16),
                }
            }
            _ => self.walk(word, address),
        }
    }

    /// Asks for the line that a lookup will need first and that may be far away.
    #[inline(always)]
    pub fn touch_v4(&self, instance: InstanceIndex, address: u32) {
        if let Some(chunk) = Chunk::of(self.root(instance, 0)) {
            match chunk.kind() {
                Kind::Array24 => self.touch(chunk.at() + (address >> 8) as usize),
                _ => self.touch(chunk.at()),
            }
        }
    }

    /// Asks for the line that a lookup will need first and that may be far away.
    #[inline(always)]
    pub fn touch_v6(&self, instance: InstanceIndex, address: u128) {
        let Some(mut chunk) = Chunk::of(self.root(instance, 1)) else {
            return;
        };
        if chunk.kind() == Kind::Array16 {
            // A few of its lines are all that is ever asked for: they are near.
            match Chunk::of(self.word(chunk.at() + (address >> 112) as usize)) {
                None => return,
                Some(below) => chunk = below,
            }
        }
        match chunk.kind() {
            Kind::Array16 => self.touch(chunk.at() + (address >> 96) as u16 as usize),
            _ => self.touch(chunk.at()),
        }
    }

    #[inline(always)]
    fn touch(&self, at: usize) {
        if let Some(word) = self.words.get(at) {
            dpdk::prefetch(word);
        }
    }

    #[inline(always)]
    fn root(&self, InstanceIndex(instance): InstanceIndex, family: usize) -> u32 {
        if instance >= self.instances {
            return Target::NONE.0;
        }
        self.word(2 * instance as usize + family)
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        self.words[at].load(Acquire)
    }

    #[inline(never)]
    fn walk_v4(&self, word: u32, address: u32) -> Target {
        self.walk(word, address)
    }

    /// From a word to an answer; `rest` is what of the address has not been looked at.
    #[inline(always)]
    fn walk<A: Address>(&self, mut word: u32, mut rest: A) -> Target {
        while let Some(chunk) = Chunk::of(word) {
            let at = chunk.at();
            let (place, rest_of) = match chunk.kind() {
                Kind::List => return Target(self.listed(at, rest.first(32))),
                Kind::Bitmap => {
                    let slot = rest.first(8) as usize;
                    let group = self.words[at + slot / 16].load(Relaxed);
                    let begun = dpdk::popcount(group & ((2 << (slot % 16)) - 1));
                    (at + ((group >> 16) + begun) as usize, rest.without(8))
                }
                Kind::Array8 => (at + rest.first(8) as usize, rest.without(8)),
                Kind::Array16 => (at + rest.first(16) as usize, rest.without(16)),
                Kind::Array24 => (at + rest.first(24) as usize, rest.without(24)),
            };
            (word, rest) = (self.word(place), rest_of);
        }
        Target(word)
    }

    #[inline(always)]
    fn listed(&self, at: usize, key: u32) -> u32 {
        let line: Option<&[AtomicU32; LINE]> = self.words[at..].first_chunk();
        let line = line.expect("chunks lie in the words");
        let begins = line[..LINE / 2 - 1].iter();
        let begun: usize = begins.map(|b| (b.load(Relaxed) <= key) as usize).sum();
        line[LINE / 2 + begun].load(Relaxed)
    }
}

/// Bits of which the first are looked at.
trait Address: Copy {
    fn first(self, n: u32) -> u32;
    fn without(self, n: u32) -> Self;
}

impl Address for u32 {
    #[inline(always)]
    fn first(self, n: u32) -> u32 {
        self >> (32 - n)
    }

    #[inline(always)]
    fn without(self, n: u32) -> Self {
        self << n
    }
}

impl Address for u128 {
    #[inline(always)]
    fn first(self, n: u32) -> u32 {
        (self >> (128 - n)) as u32
    }

    #[inline(always)]
    fn without(self, n: u32) -> Self {
        self << n
    }
}
