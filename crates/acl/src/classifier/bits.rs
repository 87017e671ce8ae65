//! Rules that are found as bits: a packet's first rule is the first bit that is set in the rows of all dimensions.

use super::list::NONE;
use super::places::Places;
use super::sets::{Row, Rows};

/// The rules that are found as bits, and their places in 64 words. All words have equally many bits.
pub(super) struct Group<'a> {
    members: Vec<usize>,
    numbers: &'a [u16],
    /// Bits of a word.
    width: usize,
}

impl<'a> Group<'a> {
    pub(super) fn new(members: &[u64], numbers: &'a [u16]) -> Group<'a> {
        let is_member = |rule: &usize| members[rule / 64] >> (rule % 64) & 1 == 1;
        let members: Vec<usize> = (0..numbers.len()).filter(is_member).collect();
        let width = members.len().div_ceil(64).max(1);
        Group {
            members,
            numbers,
            width,
        }
    }

    /// The words of a row.
    fn words(&self, row: &[u64]) -> [u64; 64] {
        let mut words = [0; 64];
        for (place, rule) in self.members.iter().enumerate() {
            let bit = row[rule / 64] >> (rule % 64) & 1;
            words[place / self.width] |= bit << (place % self.width);
        }
        words
    }

    fn numbers(&self) -> Places<u16> {
        let mut numbers = vec![NONE; 64 * self.width + 1];
        for (place, rule) in self.members.iter().enumerate() {
            numbers[place] = self.numbers[*rule];
        }
        Places::new(numbers, NONE)
    }
}

/// Rows of bits, by dimension.
pub(super) struct Bits {
    width: usize,
    sources: Lines,
    destinations: Lines,
    /// One dimension of folded services, or five.
    services: Box<[Lines]>,
    /// Summaries of folded services.
    folded: Places<u64>,
    /// Numbers of the rules; the last one is that of none.
    numbers: Places<u16>,
}

/// Rows of one dimension, without the words before the first and behind the last that is not 0.
struct Lines {
    /// Bit n: word n is not 0, in the row or in that of rules that match everywhere.
    summaries: Places<u64>,
    lines: Box<[Line]>,
    words: Box<[u64]>,
    /// Rules that match everywhere.
    any: [u64; 64],
}

struct Line {
    /// Bit n: word n of the row is not 0.
    summary: u64,
    /// Place of word 0, if it were there. Wraps below 0.
    base: u32,
}

impl Bits {
    /// Rows of sources and destinations, each with the row of rules that match everywhere, and those of services.
    pub(super) fn new(group: Group, sides: [(&Rows, &Row); 2], services: &[Rows]) -> Bits {
        let [sources, destinations] =
            sides.map(|(rows, any)| Lines::new(rows, group.words(any), &group));
        let services: Box<[Lines]> = services
            .iter()
            .map(|rows| Lines::new(rows, [0; 64], &group))
            .collect();
        let folded = services[0].summaries.clone();
        Bits {
            width: group.width,
            sources,
            destinations,
            services,
            folded,
            numbers: group.numbers(),
        }
    }

    /// Number of the first rule by the lines of source and destination and the class of a folded service.
    #[inline(always)]
    pub(super) fn first(&self, lines: [usize; 2], service: usize) -> u16 {
        let summary = self.sources.summaries.at(lines[0])
            & self.destinations.summaries.at(lines[1])
            & self.folded.at(service);
        if self.width == 1 {
            // The summary is the row.
            return self.numbers.at(summary.trailing_zeros() as usize);
        }
        match summary {
            0 => NONE,
            _ => self.first_of_words(lines, summary, &[service]),
        }
    }

    /// As [`Bits::first`], by the classes of a service's dimensions.
    pub(super) fn first_apart(&self, lines: [usize; 2], services: [usize; 5]) -> u16 {
        let summary =
            self.sources.summaries.at(lines[0]) & self.destinations.summaries.at(lines[1]);
        let summaries = self
            .services
            .iter()
            .zip(services)
            .map(|(lines, class)| lines.summaries.at(class));
        self.first_of_words(
            lines,
            summaries.fold(summary, |one, other| one & other),
            &services,
        )
    }

    #[inline(never)]
    fn first_of_words(&self, lines: [usize; 2], mut summary: u64, services: &[usize]) -> u16 {
        while summary != 0 {
            let word = summary.trailing_zeros() as usize;
            let sides = self.sources.word(lines[0], word) & self.destinations.word(lines[1], word);
            let services = self
                .services
                .iter()
                .zip(services)
                .map(|(lines, class)| lines.word(*class, word));
            let bits = services.fold(sides, |one, other| one & other);
            if bits != 0 {
                return self
                    .numbers
                    .at(word * self.width + bits.trailing_zeros() as usize);
            }
            summary &= summary - 1;
        }
        NONE
    }

    pub(super) fn octets(&self) -> usize {
        let services: usize = self
            .services
            .iter()
            .map(|lines| size_of_val(lines) + lines.octets())
            .sum();
        services
            + self.sources.octets()
            + self.destinations.octets()
            + self.numbers.octets()
            + self.folded.octets()
    }
}

impl Lines {
    fn new(rows: &Rows, any: [u64; 64], group: &Group) -> Lines {
        let (mut words, mut lines, mut summaries) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows.iter().map(|row| group.words(row)) {
            let first = row.iter().position(|word| *word != 0).unwrap_or(0);
            let end = row
                .iter()
                .rposition(|word| *word != 0)
                .map_or(0, |last| last + 1);
            let base = (words.len() as u32).wrapping_sub(first as u32);
            // The summary of words of one bit is the row.
            if group.width > 1 {
                words.extend_from_slice(&row[first..end]);
            }
            lines.push(Line {
                summary: summary(&row),
                base,
            });
            summaries.push(summary(&row) | summary(&any));
        }
        Lines {
            summaries: Places::new(summaries, 0),
            lines: lines.into(),
            words: words.into(),
            any,
        }
    }

    #[inline]
    fn word(&self, line: usize, word: usize) -> u64 {
        let line = &self.lines[line];
        let any = self.any[word % 64];
        match line.summary >> word & 1 {
            0 => any,
            _ => any | self.words[line.base.wrapping_add(word as u32) as usize],
        }
    }

    fn octets(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.words) + self.summaries.octets()
    }
}

fn summary(row: &[u64; 64]) -> u64 {
    let words = row.iter().enumerate();
    words.fold(0, |summary, (place, word)| {
        summary | u64::from(*word != 0) << place
    })
}
