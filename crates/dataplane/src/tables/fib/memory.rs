//! The memory that writer and readers share, in chunks of several kinds, and what the writer knows of it.
use core::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use dpdk::{Words, Zeroed};
use std::sync::Arc;

/// Words in a cache line, the unit of chunks.
pub(super) const LINE: usize = 16;
/// The most runs of a bitmap: those that one line holds.
const MOST_RUNS: usize = LINE;

/// What a chunk is. Each decides about the next bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// 32 bits: up to 8 runs of addresses with one value each. 7 words say where the second and later ones begin, 8 words
    /// from the ninth on what they lead to; what is not used of either repeats the last.
    List,
    /// The same with up to 16 runs, in two lines.
    Long,
    /// 8 bits: 16 words with a bit for each address where a run begins, and the place of the first of these; then a
    /// word for each run.
    Bitmap,
    /// 8, 16 or 24 bits: a word for each address.
    Array8,
    Array16,
    Array24,
}

impl Kind {
    /// How many bits of the address it decides about.
    pub const fn bits(self) -> u8 {
        match self {
            Kind::List | Kind::Long => 32,
            Kind::Bitmap | Kind::Array8 => 8,
            Kind::Array16 => 16,
            Kind::Array24 => 24,
        }
    }
}

/// A word that leads to a chunk: the kind that no [`Target`](super::Target) has, the chunk's kind, its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk(u32);

/// Words from here on are chunks.
pub(super) const CHUNKS: u32 = 7 << 29;
const KIND: u32 = 26;
/// The most lines that there can be.
const MOST_LINES: u32 = 1 << KIND;

impl Chunk {
    fn new(kind: Kind, line: u32) -> Self {
        Chunk(CHUNKS | (kind as u32) << KIND | line)
    }

    /// The chunk that a word leads to.
    #[inline(always)]
    pub fn of(word: u32) -> Option<Self> {
        (word >= CHUNKS).then_some(Chunk(word))
    }

    /// The chunk that a word leads to, if it is of this kind.
    #[inline(always)]
    pub fn if_is(word: u32, kind: Kind) -> Option<Self> {
        (word >> KIND == CHUNKS >> KIND | kind as u32).then_some(Chunk(word))
    }

    /// The number of a chunk's kind, and the chunk's first word; of a word that leads to none 7 and 0. Without a branch.
    #[inline(always)]
    pub fn or_none(word: u32) -> (usize, usize) {
        let chunk = ((word >= CHUNKS) as usize).wrapping_neg();
        let kind = (word >> KIND & 7) as usize;
        (kind | !chunk & 7, Chunk(word).at() & chunk)
    }

    pub fn word(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub fn kind(self) -> Kind {
        match self.0 >> KIND & 7 {
            0 => Kind::List,
            1 => Kind::Long,
            2 => Kind::Bitmap,
            3 => Kind::Array8,
            4 => Kind::Array16,
            _ => Kind::Array24,
        }
    }

    fn line(self) -> u32 {
        self.0 & (MOST_LINES - 1)
    }

    /// Its first word.
    #[inline(always)]
    pub fn at(self) -> usize {
        self.line() as usize * LINE
    }
}

/// Words that lead somewhere, and of each the length of the prefix that says so (the writer's business).
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub words: &'a [AtomicU32],
    pub origins: &'a [AtomicU8],
}

impl Places<'_> {
    pub fn get(&self, place: usize) -> (u8, u32) {
        let origin = self.origins[place].load(Relaxed);
        (origin, self.words[place].load(Relaxed))
    }

    /// A reader that sees the word sees what it leads to.
    pub fn set(&self, place: usize, (origin, word): (u8, u32)) {
        self.origins[place].store(origin, Relaxed);
        self.words[place].store(word, Release);
    }
}

/// 256 places that are not in the tables yet.
pub(super) struct Slots {
    words: [AtomicU32; 256],
    origins: [AtomicU8; 256],
}

impl Slots {
    pub fn filled((origin, word): (u8, u32)) -> Self {
        Slots {
            words: [const { AtomicU32::new(0) }; 256].map(|_| AtomicU32::new(word)),
            origins: [const { AtomicU8::new(0) }; 256].map(|_| AtomicU8::new(origin)),
        }
    }

    pub fn places(&self) -> Places<'_> {
        Places {
            words: &self.words,
            origins: &self.origins,
        }
    }
}

/// The words, which readers see, and the origins, which the writer alone does.
#[derive(Clone)]
pub(super) struct Memory {
    pub words: Words,
    origins: Zeroed<AtomicU8>,
}

impl Memory {
    pub fn new(lines: u32) -> Result<Self, dpdk::Error> {
        let words = lines.min(MOST_LINES) as usize * LINE;
        Ok(Memory {
            words: Words::new(words)?,
            origins: Zeroed::new(words)?,
        })
    }

    pub fn places(&self, range: core::ops::Range<usize>) -> Places<'_> {
        Places {
            words: &self.words[range.clone()],
            origins: &self.origins[range],
        }
    }

    pub fn place(&self, at: usize) -> (u8, u32) {
        self.places(at..at + 1).get(0)
    }

    /// All words of a chunk that lead somewhere.
    pub fn of(&self, chunk: Chunk) -> Places<'_> {
        let at = chunk.at();
        match chunk.kind() {
            Kind::List => self.places(at + LINE / 2..at + LINE),
            Kind::Long => self.places(at + LINE..at + 2 * LINE),
            Kind::Bitmap => {
                let (first, last) = (at + LINE, self.run(chunk, 255));
                self.places(first..last + 1)
            }
            array => self.places(at..at + (1 << array.bits())),
        }
    }

    /// The word of a bitmap for one of its 256 addresses.
    #[inline(always)]
    pub fn run(&self, chunk: Chunk, slot: usize) -> usize {
        let group = self.words[chunk.at() + slot / 16].load(Relaxed);
        let begun = dpdk::popcount(group & ((2 << (slot % 16)) - 1));
        chunk.at() + (group >> 16) as usize + begun as usize
    }

    /// What a bitmap says, address by address.
    pub fn expand(&self, chunk: Chunk) -> Slots {
        let slots = Slots::filled((0, 0));
        let (places, runs) = (slots.places(), self.of(chunk));
        for slot in 0..256 {
            places.set(slot, runs.get(self.run(chunk, slot) - chunk.at() - LINE));
        }
        slots
    }
}

/// How much a change may find resting and still be made, in lines (of 64 octets).
const MOST_RESTING: u32 = 1 << 21;

/// The sizes of chunks, in lines.
const SIZES: [u32; 5] = [1, 2, 16, 1 << 12, 1 << 20];
/// Those from here on are given back to the system, and lie at the upper end.
const LARGE: usize = 3;

/// Which chunks are free, and which rest until no reader can be in them.
pub(super) struct Store {
    memory: Memory,
    /// Of each chunk, at its line: the prefixes in it and below.
    counts: Words,
    /// The lines between these two were never used.
    low: u32,
    high: u32,
    free: [Vec<u32>; SIZES.len()],
    used: u32,
    resting: u32,
    /// Taken out since `waiting` was.
    fresh: Vec<(u8, u32)>,
    /// Taken out before the readers' rounds were looked at.
    waiting: Vec<(u8, u32)>,
    readers: Vec<Watched>,
}

/// A reader's round, which the reader writes each time: alone in its cache lines (the prefetcher takes two at once), lest readers on two
/// cores take them from each other.
#[repr(align(128))]
pub(super) struct Round(pub AtomicU64);

/// A reader, as the writer sees it: the number of its round, and which it was when `waiting` was begun.
struct Watched {
    round: Arc<Round>,
    seen: u64,
}

/// The round of a reader that is no more.
pub(super) const GONE: u64 = u64::MAX;

impl Store {
    /// The first `kept` words are not chunks.
    pub fn new(memory: Memory, kept: usize) -> Result<Self, dpdk::Error> {
        let lines = memory.words.len() / LINE;
        Ok(Store {
            counts: Words::new(lines)?,
            low: kept.div_ceil(LINE) as u32,
            high: lines as u32,
            memory,
            free: Default::default(),
            used: 0,
            resting: 0,
            fresh: Vec::new(),
            waiting: Vec::new(),
            readers: Vec::new(),
        })
    }

    pub(super) fn watch(&mut self) -> Arc<Round> {
        let round = Arc::new(Round(AtomicU64::new(0)));
        let watched = Watched {
            round: round.clone(),
            seen: GONE,
        };
        self.readers.push(watched);
        round
    }

    /// Lines in use, and lines that rest.
    pub fn lines(&self) -> (u32, u32) {
        (self.used, self.resting)
    }

    /// May a change be made that adds to what is there, or one that does not?
    pub fn has_room(&self, adds: bool) -> bool {
        // What adds leaves enough for those that remove.
        let (room, all) = (self.high - self.low, self.memory.words.len() / LINE);
        self.resting < MOST_RESTING && (!adds || room as usize > all / 4)
    }

    fn alloc(&mut self, kind: Kind, lines: u32) -> Chunk {
        let class = class(lines);
        self.used += lines;
        let line = self.free[class].pop().unwrap_or_else(|| {
            if class >= LARGE {
                // On a huge page's boundary, if it is larger than one.
                self.high = (self.high - lines) & !(lines.min(1 << 15) - 1);
                self.high
            } else {
                self.low += lines;
                self.low - lines
            }
        });
        assert!(self.low <= self.high, "there was room before the change");
        Chunk::new(kind, line)
    }

    pub fn count(&self, chunk: Chunk) -> u32 {
        self.counts[chunk.line() as usize].load(Relaxed)
    }

    pub fn set_count(&mut self, chunk: Chunk, count: u32) {
        self.counts[chunk.line() as usize].store(count, Relaxed);
    }

    /// An array, in which nothing is set yet.
    pub fn array(&mut self, kind: Kind, count: u32) -> Chunk {
        let chunk = self.alloc(kind, (1 << kind.bits()) / LINE as u32);
        self.set_count(chunk, count);
        chunk
    }

    /// A bitmap of these places, or an array if they are too different or it is asked for.
    pub fn pack(&mut self, slots: &Slots, count: u32, array: bool) -> Chunk {
        let from = slots.places();
        let begins = |slot: &usize| *slot == 0 || from.get(*slot) != from.get(*slot - 1);
        let runs = (0..256).filter(begins).count();
        if array || runs > MOST_RUNS {
            let chunk = self.array(Kind::Array8, count);
            let to = self.memory.of(chunk);
            (0..256).for_each(|slot| to.set(slot, from.get(slot)));
            return chunk;
        }
        let chunk = self.alloc(Kind::Bitmap, 2);
        self.set_count(chunk, count);
        let at = chunk.at();
        let to = self.memory.places(at + LINE..at + LINE + runs);
        let mut run = 0;
        for group in 0..16 {
            // So that counting the bits up to an address gives its run's place.
            let mut word = ((LINE + run - 1) as u32) << 16;
            for slot in (group * 16..group * 16 + 16).filter(begins) {
                word |= 1 << (slot % 16);
                to.set(run, from.get(slot));
                run += 1;
            }
            self.memory.words[at + group].store(word, Relaxed);
        }
        chunk
    }

    /// A list of 1 to 16 runs: where each begins, the first at 0, and what it leads to.
    pub fn list(&mut self, runs: &[(u32, (u8, u32))], count: u32) -> Chunk {
        let chunk = match runs.len() <= LINE / 2 {
            true => self.alloc(Kind::List, 1),
            false => self.alloc(Kind::Long, 2),
        };
        self.set_count(chunk, count);
        let (at, to) = (chunk.at(), self.memory.of(chunk));
        for n in 0..to.words.len() {
            let (begin, place) = *runs.get(n).unwrap_or(&(u32::MAX, runs[runs.len() - 1].1));
            to.set(n, place);
            if n > 0 {
                self.memory.words[at + n - 1].store(begin, Relaxed);
            }
        }
        chunk
    }

    /// Takes a chunk out to which nothing leads any more; it rests.
    pub fn retire(&mut self, chunk: Chunk) {
        let lines = match chunk.kind() {
            Kind::List => 1,
            Kind::Long | Kind::Bitmap => 2,
            array => (1 << array.bits()) / LINE as u32,
        };
        self.used -= lines;
        self.resting += lines;
        self.fresh.push((class(lines) as u8, chunk.line()));
    }

    /// Frees what has rested long enough: each reader has begun another round since, or is gone.
    pub fn settle(&mut self) {
        if self.fresh.is_empty() && self.waiting.is_empty() {
            return;
        }
        let passed = |reader: &mut Watched| {
            let round = reader.round.0.load(Acquire);
            (round != reader.seen, round != GONE)
        };
        let mut all = true;
        self.readers.retain_mut(|reader| {
            let (passed, there) = passed(reader);
            all &= passed;
            there
        });
        if !all {
            return;
        }
        let mut rested = core::mem::take(&mut self.waiting);
        for (class, line) in rested.drain(..) {
            let (class, lines) = (class as usize, SIZES[class as usize]);
            self.resting -= lines;
            if class >= LARGE {
                let at = line as usize * LINE;
                let range = at..at + lines as usize * LINE;
                self.memory.words.discard(range.clone());
                self.memory.origins.discard(range);
            }
            self.free[class].push(line);
        }
        self.waiting = core::mem::replace(&mut self.fresh, rested);
        // A reader whose round is read after this sees in its next one that the chunks are taken out: the pair is the
        // fence in `Reader::pass`.
        fence(SeqCst);
        for reader in &mut self.readers {
            reader.seen = reader.round.0.load(Relaxed);
        }
    }
}

fn class(lines: u32) -> usize {
    let class = SIZES.iter().position(|size| *size == lines);
    class.expect("chunks have these sizes")
}
