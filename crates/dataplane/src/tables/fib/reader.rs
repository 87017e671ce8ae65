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

/// Where the tables of an instance begin, as it was in this round.
#[derive(Clone, Copy)]
pub struct Table {
    instance: InstanceIndex,
    v4: Begin,
    v6: Begin,
}

/// Where a family's table begins: the first word and, where that leads to a large array, the array's first; else 0.
#[derive(Clone, Copy)]
struct Begin {
    root: u32,
    array: usize,
}

impl Table {
    /// The instance.
    #[inline(always)]
    pub fn instance(&self) -> InstanceIndex {
        self.instance
    }
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

    /// Where the tables of an instance begin: found once, for many lookups of a round.
    #[inline]
    pub fn table(&self, instance: InstanceIndex) -> Table {
        let begin = |family, kind| {
            let root = self.root(instance, family);
            let array = Chunk::if_is(root, kind).map_or(0, |chunk| chunk.at());
            Begin { root, array }
        };
        Table {
            instance,
            v4: begin(0, Kind::Array24),
            v6: begin(1, Kind::Array16),
        }
    }

    /// Where an IPv4 address leads.
    pub fn lookup_v4(&self, instance: InstanceIndex, address: u32) -> Target {
        self.find_v4(self.table(instance), address)
    }

    /// Where an IPv6 address leads.
    pub fn lookup_v6(&self, instance: InstanceIndex, address: u128) -> Target {
        self.find_v6(self.table(instance), address)
    }

    /// Where an IPv4 address leads.
    #[inline(always)]
    pub fn find_v4(&self, table: Table, address: u32) -> Target {
        if table.v4.array == 0 {
            return self.walk_v4(table.v4.root, address);
        }
        let word = self.word(table.v4.array + (address >> 8) as usize);
        match Chunk::of(word) {
            None => Target(word),
            Some(chunk) => Target(self.word(chunk.at() + (address & 0xff) as usize)),
        }
    }

    /// Where IPv4 addresses lead: their lines are asked for first, then looked at.
    pub fn lookup_v4_all(&self, instance: InstanceIndex, addresses: &[u32], found: &mut [Target]) {
        let root = self.root(instance, 0);
        let large = Chunk::if_is(root, Kind::Array24).and_then(|chunk| {
            let words: &[AtomicU32] = self.words.get(chunk.at()..)?;
            words.first_chunk::<{ 1 << 24 }>()
        });
        let Some(large) = large else {
            for (address, found) in addresses.iter().zip(found) {
                *found = self.walk_v4(root, *address);
            }
            return;
        };
        for address in addresses {
            dpdk::prefetch(&large[(address >> 8) as usize]);
        }
        for (address, found) in addresses.iter().zip(found) {
            let word = large[(address >> 8) as usize].load(Acquire);
            *found = match Chunk::of(word) {
                None => Target(word),
                Some(chunk) => Target(self.word(chunk.at() + (address & 0xff) as usize)),
            };
        }
    }

    /// Where an IPv6 address leads.
    #[inline(always)]
    pub fn find_v6(&self, table: Table, address: u128) -> Target {
        if table.v6.array == 0 {
            return self.walk(table.v6.root, address);
        }
        let word = self.word(table.v6.array + (address >> 112) as usize);
        let Some(chunk) = Chunk::if_is(word, Kind::Array16) else {
            return self.walk(word, address << 16);
        };
        let word = self.word(chunk.at() + (address >> 96) as u16 as usize);
        self.walk(word, address << 32)
    }

    /// Where up to 64 IPv6 addresses lead: all of them a step, then the next, so that none waits for memory alone.
    pub fn lookup_v6_all(&self, instance: InstanceIndex, addresses: &[u128], found: &mut [Target]) {
        let mut walks = [Walk::DONE; MOST];
        let mut going = [0u8; MOST];
        let mut n = 0;
        let root = self.root(instance, 1);
        let first = Chunk::if_is(root, Kind::Array16);
        let all = addresses.iter().zip(&mut *found).zip(&mut walks);
        for (lane, ((address, found), walk)) in all.enumerate() {
            walk.rest = *address;
            let word = match first {
                Some(chunk) => {
                    // A few of its lines are all that is ever asked for: they are near.
                    walk.rest = address.without(16);
                    self.word(chunk.at() + address.first(16) as usize)
                }
                None => root,
            };
            if self.follow(word, walk, found) {
                going[n] = lane as u8;
                n += 1;
            }
        }
        while n > 0 {
            let mut left = 0;
            for i in 0..n {
                let lane = going[i] as usize % MOST;
                let (walk, found) = (&mut walks[lane], &mut found[lane]);
                if self.advance(walk, found) {
                    going[left] = lane as u8;
                    left += 1;
                }
            }
            n = left;
        }
    }

    /// From a word to what has to be read next, which is asked for; false if it is the answer.
    #[inline(always)]
    fn follow(&self, word: u32, walk: &mut Walk, found: &mut Target) -> bool {
        let Some(chunk) = Chunk::of(word) else {
            *found = Target(word);
            return false;
        };
        let at = chunk.at();
        let kind = chunk.kind();
        walk.next = match kind {
            Kind::List => Next::List(at as u32),
            Kind::Long => {
                self.touch(at + LINE);
                Next::Long(at as u32)
            }
            Kind::Bitmap => Next::Bitmap(at as u32),
            array => {
                let bits = array.bits() as u32;
                let place = at + walk.rest.first(bits) as usize;
                walk.rest = walk.rest.without(bits);
                self.touch(place);
                walk.next = Next::Word(place as u32);
                return true;
            }
        };
        self.touch(at);
        true
    }

    #[inline(always)]
    fn advance(&self, walk: &mut Walk, found: &mut Target) -> bool {
        match walk.next {
            Next::Word(place) => self.follow(self.word(place as usize), walk, found),
            Next::List(at) => {
                *found = Target(self.listed::<LINE>(at as usize, walk.rest.first(32)));
                false
            }
            Next::Long(at) => {
                *found = Target(self.listed::<{ 2 * LINE }>(at as usize, walk.rest.first(32)));
                false
            }
            Next::Bitmap(at) => {
                let place = self.run(at as usize, walk.rest.first(8) as usize);
                walk.rest = walk.rest.without(8);
                self.touch(place);
                walk.next = Next::Word(place as u32);
                true
            }
            Next::Done => false,
        }
    }

    /// Asks for the line that a lookup will need first and that may be far away.
    #[inline(always)]
    pub fn touch_v4(&self, table: Table, address: u32) {
        match table.v4.array {
            0 => self.touch_root(table.v4.root),
            array => self.touch(array + (address >> 8) as usize),
        }
    }

    /// Asks for the last line that a lookup will need, once the first is near: for hosts' routes, whose first lines are few.
    #[inline(always)]
    pub fn touch_host_v4(&self, table: Table, address: u32) {
        if table.v4.array == 0 {
            return self.touch_root(table.v4.root);
        }
        let word = self.word(table.v4.array + (address >> 8) as usize);
        if let Some(chunk) = Chunk::of(word) {
            self.touch(chunk.at() + (address & 0xff) as usize);
        }
    }

    /// Asks for the line that a lookup will need first and that may be far away.
    #[inline(always)]
    pub fn touch_v6(&self, table: Table, address: u128) {
        if table.v6.array == 0 {
            return self.touch_root(table.v6.root);
        }
        // A few of its lines are all that is ever asked for: they are near.
        let word = self.word(table.v6.array + (address >> 112) as usize);
        let Some(chunk) = Chunk::of(word) else {
            return;
        };
        match chunk.kind() {
            Kind::Array16 => self.touch(chunk.at() + (address >> 96) as u16 as usize),
            _ => self.touch(chunk.at()),
        }
    }

    fn touch_root(&self, root: u32) {
        if let Some(chunk) = Chunk::of(root) {
            self.touch(chunk.at());
        }
    }

    #[inline(always)]
    fn touch(&self, at: usize) {
        dpdk::prefetch(self.words.as_ptr().wrapping_add(at));
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
                Kind::List => return Target(self.listed::<LINE>(at, rest.first(32))),
                Kind::Long => return Target(self.listed::<{ 2 * LINE }>(at, rest.first(32))),
                Kind::Bitmap => (self.run(at, rest.first(8) as usize), rest.without(8)),
                Kind::Array8 => (at + rest.first(8) as usize, rest.without(8)),
                Kind::Array16 => (at + rest.first(16) as usize, rest.without(16)),
                Kind::Array24 => (at + rest.first(24) as usize, rest.without(24)),
            };
            (word, rest) = (self.word(place), rest_of);
        }
        Target(word)
    }

    /// The place of an address in a bitmap.
    #[inline(always)]
    fn run(&self, at: usize, slot: usize) -> usize {
        let group = self.words[at + slot / 16].load(Relaxed);
        let begun = dpdk::popcount(group & ((2 << (slot % 16)) - 1));
        at + ((group >> 16) + begun) as usize
    }

    #[inline(always)]
    fn listed<const WORDS: usize>(&self, at: usize, key: u32) -> u32 {
        let list: Option<&[AtomicU32; WORDS]> = self.words[at..].first_chunk();
        let list = list.expect("chunks lie in the words");
        if WORDS > LINE {
            dpdk::prefetch(&list[LINE]);
        }
        let begins = list[..WORDS / 2 - 1].iter();
        let begun: usize = begins.map(|b| (b.load(Relaxed) <= key) as usize).sum();
        list[WORDS / 2 + begun].load(Acquire)
    }
}

/// The most addresses that are looked up together.
const MOST: usize = 64;

/// A lookup under way: what is read next, and what of the address has not been looked at.
#[derive(Clone, Copy)]
struct Walk {
    next: Next,
    rest: u128,
}

impl Walk {
    const DONE: Walk = Walk {
        next: Next::Done,
        rest: 0,
    };
}

#[derive(Clone, Copy)]
enum Next {
    Word(u32),
    List(u32),
    Long(u32),
    Bitmap(u32),
    Done,
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
