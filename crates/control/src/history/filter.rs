//! Bloom filters: whether a segment may have something about a key.

use super::event::Key;

/// Bits for each key: about one segment in a hundred is read for nothing.
const BITS: usize = 10;
/// Bits that a key sets.
const PROBES: u64 = 7;

/// A filter of the keys of these hashes.
pub(super) fn build(hashes: impl ExactSizeIterator<Item = u64>) -> Vec<u8> {
    let mut filter = vec![0; (hashes.len() * BITS).div_ceil(8).max(1)];
    for hash in hashes {
        for bit in bits(hash, filter.len()) {
            filter[bit / 8] |= 1 << (bit % 8);
        }
    }
    filter
}

/// Filter of a closed segment.
pub(super) struct Filter {
    pub octets: Vec<u8>,
    /// Whether it has the access lines of events. Those of earlier versions have not.
    pub has_lines: bool,
}

impl Filter {
    /// Whether the segment may have events with this key.
    pub fn may_have(&self, key: &Key<'_>) -> bool {
        let octets = &self.octets;
        !octets.is_empty()
            && bits(key.hash(), octets.len()).all(|bit| octets[bit / 8] & 1 << (bit % 8) != 0)
    }
}

fn bits(hash: u64, octets: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (hash & 0xffff_ffff, hash >> 32 | 1);
    let all = octets as u64 * 8;
    (0..PROBES).map(move |n| (first.wrapping_add(n.wrapping_mul(step)) % all) as usize)
}
