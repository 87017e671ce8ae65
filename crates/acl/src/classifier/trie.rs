//! Values of IPv4 addresses: a trie in which every look-up takes the same steps.

use std::collections::HashMap;

use super::intervals::Spans;
use super::places::Places;

/// Bits that are below those of a level: the first level takes 11 bits of an address, each of the others 7.
const BELOW: [u32; 4] = [21, 14, 7, 0];

/// Entries of the first node.
const FIRST: usize = 1 << 11;

/// Entries of every other node.
const NODE: usize = 1 << 7;

/// Entries are the places of the next level's nodes, and on the last level values. Equal nodes are one.
pub(super) struct Trie {
    entries: Places<u32>,
}

impl Trie {
    pub(super) fn new(spans: &Spans) -> Trie {
        let mut builder = Builder {
            spans,
            entries: vec![0; FIRST],
            known: HashMap::new(),
            uniform: HashMap::new(),
        };
        let first = builder.node(0, 0);
        builder.entries[..FIRST].copy_from_slice(&first);
        Trie {
            entries: Places::new(builder.entries, 0),
        }
    }

    #[inline(always)]
    pub(super) fn value(&self, address: u32) -> u32 {
        let mut entry = self.entries.at((address >> BELOW[0]) as usize);
        for below in &BELOW[1..] {
            let place = entry as usize + (address >> below) as usize % NODE;
            entry = self.entries.at(place);
        }
        entry
    }

    pub(super) fn octets(&self) -> usize {
        self.entries.octets()
    }
}

struct Builder<'a> {
    spans: &'a Spans,
    entries: Vec<u32>,
    /// Places of nodes.
    known: HashMap<Vec<u32>, u32>,
    /// Places of nodes that lead all addresses to one value, by value and level.
    uniform: HashMap<(u32, usize), u32>,
}

impl Builder<'_> {
    /// The entries of the node at `level` for the addresses from `low` on.
    fn node(&mut self, low: u128, level: usize) -> Vec<u32> {
        let count = if level == 0 { FIRST } else { NODE };
        let mut entries: Vec<u32> = Vec::with_capacity(count);
        for number in 0..count as u128 {
            let low = low + (number << BELOW[level]);
            let high = low + (1 << BELOW[level]) - 1;
            let interval = self.spans.0.partition_point(|bound| *bound <= low);
            let is_whole = self.spans.0.get(interval).is_none_or(|bound| *bound > high);
            let value = self.spans.1[interval];
            let entry = match (is_whole, level + 1 == BELOW.len()) {
                (_, true) => value,
                (true, false) => self.uniform(value, level + 1),
                (false, false) => {
                    let node = self.node(low, level + 1);
                    self.place(node)
                }
            };
            entries.push(entry);
        }
        entries
    }

    /// A node at `level` that leads all addresses to one value.
    fn uniform(&mut self, value: u32, level: usize) -> u32 {
        if let Some(place) = self.uniform.get(&(value, level)) {
            return *place;
        }
        let entry = match level + 1 == BELOW.len() {
            true => value,
            false => self.uniform(value, level + 1),
        };
        let place = self.place(vec![entry; NODE]);
        self.uniform.insert((value, level), place);
        place
    }

    fn place(&mut self, node: Vec<u32>) -> u32 {
        let place = self.entries.len() as u32;
        let known = self.known.entry(node);
        *known.or_insert_with_key(|node| {
            self.entries.extend(node);
            place
        })
    }
}
