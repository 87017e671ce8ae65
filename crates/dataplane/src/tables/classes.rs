//! Tokens and counters of the classes of sessions' packets: two cache lines for each direction, which only packets in a class touch. Sessions
//! whose policies have more classes have further lines for those.
use crate::compiled::{Classes, CompiledPolicy, MOST_CLASSES};
use crate::police::Tokens;
use policy::Direction;

/// What happened to the packets of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Packets that passed.
    pub passed: u64,
    /// Those of them that were above the committed rate of the class.
    pub yellow: u64,
    /// Packets that were dropped since they were above the rates of the class.
    pub exceeded: u64,
}

/// Classes that a session has room for without further lines.
const OWN: usize = 3;
/// The others.
const FURTHER: usize = MOST_CLASSES - OWN;

/// What a session has of the classes of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct ClassLine {
    /// The compilation whose policers the tokens are for; 0: none.
    made_of: u32,
    /// [`Classes::names`] of the classes that were counted.
    names: u32,
    tokens: [Tokens; OWN],
    counts: [ClassCounts; OWN],
}

const _: () = assert!(size_of::<ClassLine>() == 128);

/// The same of further classes, for those that have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct FurtherLine {
    tokens: [Tokens; FURTHER],
    counts: [ClassCounts; FURTHER],
}

/// No further line.
const NONE: u32 = u32::MAX;

/// The classes of all sessions, by the places of their lines.
pub(crate) struct ClassLines {
    own: dpdk::Table<ClassLine>,
    /// The further line of each place, up to the last one that has had any.
    further_of: dpdk::Table<u32>,
    further: dpdk::Table<FurtherLine>,
    /// Further lines that nobody has.
    free: Vec<u32>,
}

impl ClassLines {
    /// None, with address space for so many.
    pub fn new(most: usize) -> Result<Self, dpdk::Error> {
        Ok(ClassLines {
            own: dpdk::Table::new(most)?,
            further_of: dpdk::Table::new(most)?,
            further: dpdk::Table::new(most)?,
            free: Vec::new(),
        })
    }

    /// Makes room for so many places.
    pub fn resize(&mut self, places: usize) {
        self.own.resize(places, ClassLine::default());
    }

    /// Forgets what there is at a place.
    pub fn clear(&mut self, place: usize) {
        self.own[place] = ClassLine::default();
        self.remove_further(place);
    }

    /// What there is at a place.
    pub fn get(&self, place: usize) -> (ClassLine, Option<FurtherLine>) {
        (self.own[place], self.further_line(place).copied())
    }

    /// Sets what there is at a place.
    pub fn set(&mut self, place: usize, (own, further): (ClassLine, Option<FurtherLine>)) {
        self.own[place] = own;
        match further {
            Some(further) => self.set_further(place, further),
            None => self.remove_further(place),
        }
    }

    /// Makes what there is at a place, which is for a direction, that of a compilation's classes.
    #[inline(always)]
    pub fn follow(
        &mut self,
        (place, direction): (usize, Direction),
        compiled: &CompiledPolicy,
        classes: &Classes,
        now: u64,
    ) {
        if self.own[place].made_of != compiled.compilation() {
            self.renew((place, direction), compiled.compilation(), classes, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn renew(
        &mut self,
        (place, direction): (usize, Direction),
        compilation: u32,
        classes: &Classes,
        now: u64,
    ) {
        let (mut line, mut further) = (self.own[place], FurtherLine::default());
        match line.names == classes.names() {
            true => further = self.further_line(place).copied().unwrap_or_default(),
            false => line = ClassLine::default(),
        }
        (line.made_of, line.names) = (compilation, classes.names());
        for (position, tokens) in line
            .tokens
            .iter_mut()
            .chain(&mut further.tokens)
            .enumerate()
        {
            *tokens = classes.adopted((direction, position), *tokens, now);
        }
        self.own[place] = line;
        match classes.len() > OWN {
            true => self.set_further(place, further),
            false => self.remove_further(place),
        }
    }

    fn further_line(&self, place: usize) -> Option<&FurtherLine> {
        self.further.get(*self.further_of.get(place)? as usize)
    }

    fn set_further(&mut self, place: usize, line: FurtherLine) {
        if self.further_of.len() <= place {
            self.further_of.resize(place + 1, NONE);
        }
        if self.further_of[place] == NONE {
            self.further_of[place] = self.free.pop().unwrap_or(self.further.len() as u32);
        }
        let at = self.further_of[place] as usize;
        if self.further.len() <= at {
            self.further.resize(at + 1, line);
        }
        self.further[at] = line;
    }

    fn remove_further(&mut self, place: usize) {
        if let Some(at) = self.further_of.get_mut(place)
            && *at != NONE
        {
            self.free.push(*at);
            *at = NONE;
        }
    }

    /// Tokens and counters of a class.
    ///
    /// # Panics
    /// If the policy has no such class that was [followed](ClassLines::follow).
    #[inline(always)]
    pub fn class(&mut self, place: usize, position: usize) -> (&mut Tokens, &mut ClassCounts) {
        if position >= OWN {
            return self.further_class(place, position - OWN);
        }
        let line = &mut self.own[place];
        (&mut line.tokens[position], &mut line.counts[position])
    }

    #[cold]
    fn further_class(&mut self, place: usize, position: usize) -> (&mut Tokens, &mut ClassCounts) {
        let line = &mut self.further[self.further_of[place] as usize];
        (&mut line.tokens[position], &mut line.counts[position])
    }

    /// What the classes of a compilation have counted at a place, if these are its.
    pub fn counts_of(
        &self,
        place: usize,
        classes: &Classes,
    ) -> Option<[ClassCounts; MOST_CLASSES]> {
        let line = self.own.get(place)?;
        if line.made_of == 0 || line.names != classes.names() {
            return None;
        }
        let further = self.further_line(place).copied().unwrap_or_default();
        let mut counts = [ClassCounts::default(); MOST_CLASSES];
        let all = line.counts.into_iter().chain(further.counts);
        counts.iter_mut().zip(all).for_each(|(to, of)| *to = of);
        Some(counts)
    }

    /// Asks for the lines of a place.
    #[inline(always)]
    pub fn prefetch(&self, place: usize) {
        if let Some(line) = self.own.get(place) {
            dpdk::prefetch(line);
            dpdk::prefetch(&line.counts[1]);
        }
    }

    /// Further lines that sessions have.
    #[cfg(test)]
    pub fn further(&self) -> usize {
        self.further.len() - self.free.len()
    }
}
