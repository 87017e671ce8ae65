//! Lookups.
use super::Target;
use super::memory::{Chunk, GONE, Kind, LINE, Round};
use crate::api::InstanceIndex;
use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use dpdk::{Lines, Words};
use std::sync::Arc;

/// One who looks destinations up: a worker has one of its own.
pub struct Reader {
    words: Words,
    instances: u16,
    /// Which round it is in: what the writer took out in an earlier one it cannot meet.
    round: Arc<Round>,
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

/// The place of the word for the first 24 bits, or 0 where no large array says it. (There are fewer than 2^32 words.)
#[inline(always)]
fn place_of_24(table: Table, address: u32) -> u32 {
    match table.v4.array as u32 {
        0 => 0,
        array => array + (address >> 8),
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.round.0.store(GONE, Release);
    }
}

impl Reader {
    pub(super) fn new(words: Words, instances: u16, round: Arc<Round>) -> Self {
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
        let round = self.round.0.load(Relaxed);
        self.round.0.store(round + 1, Release);
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
        match place_of_24(table, address) {
            0 => self.walk_v4(table.v4.root, address),
            place => self.find_v4_at(place, address),
        }
    }

    /// The same for whoever knows from [`Reader::touch_v4`] the place of the word that decides about most addresses.
    #[inline(always)]
    pub fn find_v4_at(&self, place: u32, address: u32) -> Target {
        let word = self.word(place as usize);
        match Chunk::of(word) {
            None => Target(word),
            Some(chunk) => Target(self.word(chunk.at() + (address & 0xff) as usize)),
        }
    }

    /// The lines of all tables, by the places of their words.
    pub(crate) fn lines(&self) -> Lines<AtomicU32> {
        Lines::of(&self.words)
    }

    /// Where IPv4 addresses lead. Nothing is asked for ahead: with no other work in between a core reaches as far by itself.
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
        match self.place_of_32(table, address) {
            Some(place) => self.walk(self.word(place), address << 32),
            None => self.walk(table.v6.root, address),
        }
    }

    /// Where up to 64 IPv6 addresses lead: all of them a step, then the next, so that none waits for memory alone. Behind the
    /// large arrays of the first 32 bits most are one or two chunks away from the answer.
    ///
    /// # Panics
    /// If there are more.
    pub fn find_v6_all(&self, table: Table, addresses: &[u128], found: &mut [Target]) {
        let n = addresses.len();
        let (mut places, mut words, mut rests) = ([0; MOST], [0; MOST], [0; MOST]);
        for (place, &address) in places[..n].iter_mut().zip(addresses) {
            *place = self.place_of_32(table, address).unwrap_or(0);
            self.touch(*place);
        }
        let all = words[..n].iter_mut().zip(&mut rests).zip(&places);
        for (((word, rest), &place), &address) in all.zip(addresses) {
            (*word, *rest) = match place {
                0 => (table.v6.root, address),
                _ => (self.word(place), address << 32),
            };
            self.touch_word(*word, *rest);
        }
        // Most have come to an end now, or have one step to go.
        for (word, rest) in words[..n].iter_mut().zip(&mut rests) {
            if let Some(chunk) = Chunk::of(*word) {
                (*word, *rest) = self.beyond(chunk, *rest);
                self.touch_word(*word, *rest);
            }
        }
        for ((found, &word), &rest) in found.iter_mut().zip(&words[..n]).zip(&rests) {
            *found = self.walk(word, rest);
        }
    }

    /// The place of the word for the first 32 bits, where large arrays say it.
    #[inline(always)]
    fn place_of_32(&self, table: Table, address: u128) -> Option<usize> {
        if table.v6.array == 0 {
            return None;
        }
        // A few of its lines are all that is ever asked for: they are near.
        let word = self.word(table.v6.array + (address >> 112) as usize);
        let chunk = Chunk::if_is(word, Kind::Array16)?;
        Some(chunk.at() + (address >> 96) as u16 as usize)
    }

    /// Asks for the lines of a chunk that will be read for an address that goes on like this; for a word that does not lead to
    /// one, for some others. (No branch: neither that nor which kind it is could be foreseen.)
    #[inline(always)]
    fn touch_word(&self, word: u32, rest: u128) {
        let (kind, at) = Chunk::or_none(word);
        let place = at + ((rest >> 64) as u64 >> 1 >> (63 - INDEXED[kind])) as usize;
        self.touch(place);
        self.touch(place + BEHIND[kind]);
    }

    /// The same in an instance.
    pub fn lookup_v6_all(&self, instance: InstanceIndex, addresses: &[u128], found: &mut [Target]) {
        self.find_v6_all(self.table(instance), addresses, found);
    }

    /// Asks for the line that a lookup will need first and that may be far away; the place of its word, 0 if there is more
    /// than one way to go.
    #[inline(always)]
    pub fn touch_v4(&self, table: Table, address: u32) -> u32 {
        let place = place_of_24(table, address);
        match place {
            0 => self.touch_root(table.v4.root),
            place => self.touch(place as usize),
        }
        place
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
        dpdk::prefetch_early(self.words.as_ptr().wrapping_add(at));
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
            (word, rest) = self.beyond(chunk, rest);
        }
        Target(word)
    }

    /// The word to which a chunk leads, and what of the address has not been looked at then.
    #[inline(always)]
    fn beyond<A: Address>(&self, chunk: Chunk, rest: A) -> (u32, A) {
        let at = chunk.at();
        match chunk.kind() {
            list @ (Kind::List | Kind::Long) => {
                let more = if list == Kind::Long { LINE / 2 } else { 0 };
                (self.listed(at, rest.first(32), more), rest)
            }
            Kind::Bitmap => {
                let place = self.run(at, rest.first(8) as usize);
                (self.word(place), rest.without(8))
            }
            Kind::Array8 => (self.word(at + rest.first(8) as usize), rest.without(8)),
            Kind::Array16 => (self.word(at + rest.first(16) as usize), rest.without(16)),
            Kind::Array24 => (self.word(at + rest.first(24) as usize), rest.without(24)),
        }
    }

    /// The place of an address in a bitmap.
    #[inline(always)]
    fn run(&self, at: usize, slot: usize) -> usize {
        let group = self.words[at + slot / 16].load(Relaxed);
        let begun = dpdk::popcount(group & ((2 << (slot % 16)) - 1));
        at + ((group >> 16) + begun) as usize
    }

    /// What a list says of an address: of 8 runs, or of twice as many where `more` is 8. A search for the last run that
    /// begins before it, without a branch that could not be foreseen.
    #[inline(always)]
    fn listed(&self, at: usize, key: u32, more: usize) -> u32 {
        let begun = |begin: &AtomicU32| (begin.load(Relaxed) <= key) as usize;
        self.touch(at + 2 * more);
        let skipped = more * begun(&self.words[at + LINE / 2 - 1]);
        let begins: Option<&[AtomicU32; 8]> = self.words[at + skipped..].first_chunk();
        let begins = begins.expect("chunks lie in the words");
        let mut run = 4 * begun(&begins[3]);
        run += 2 * begun(&begins[run + 1]);
        run += begun(&begins[run]);
        self.word(at + LINE / 2 + more + skipped + run)
    }
}

/// For each kind of chunk and for none: how many bits say which word is read, if it is one alone.
const INDEXED: [u32; 8] = [0, 0, 0, 8, 16, 24, 0, 0];
/// And how far behind the first line that is read there is another one.
const BEHIND: [usize; 8] = [0, LINE, LINE, 0, 0, 0, 0, 0];

/// The most IPv6 addresses that are looked up together.
const MOST: usize = 64;

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
