//! Tokens and counters of the classes of sessions' packets: two cache lines for each direction, which only packets in a class touch.
use crate::compiled::{Classes, CompiledPolicy, MOST_CLASSES};
use crate::police::Tokens;

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

/// What a session has of the classes of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct ClassLine {
    /// The compilation whose policers the tokens are for; 0: none.
    made_of: u32,
    /// [`Classes::names`] of the classes that were counted.
    names: u32,
    pub tokens: [Tokens; MOST_CLASSES],
    pub counts: [ClassCounts; MOST_CLASSES],
}

const _: () = assert!(size_of::<ClassLine>() == 128);

impl ClassLine {
    /// Makes the line one of this compilation's classes.
    #[inline(always)]
    pub fn follow(&mut self, compiled: &CompiledPolicy, classes: &Classes, now: u64) {
        if self.made_of != compiled.compilation() {
            self.renew(compiled.compilation(), classes, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn renew(&mut self, compilation: u32, classes: &Classes, now: u64) {
        let (tokens, counts) = match self.names == classes.names() {
            true => (self.tokens, self.counts),
            false => Default::default(),
        };
        *self = ClassLine {
            made_of: compilation,
            names: classes.names(),
            tokens: classes.adopted(tokens, now),
            counts,
        };
    }

    /// What the classes of a compilation have counted, if these are its.
    pub fn counts_of(&self, classes: &Classes) -> Option<[ClassCounts; MOST_CLASSES]> {
        (self.made_of != 0 && self.names == classes.names()).then_some(self.counts)
    }
}
