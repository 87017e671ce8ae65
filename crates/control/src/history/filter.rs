//! Bloom filters: whether a segment may have something about a key.

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

/// Whether the filter may have been built with this one.
pub(super) fn may_contain(filter: &[u8], hash: u64) -> bool {
    !filter.is_empty() && bits(hash, filter.len()).all(|bit| filter[bit / 8] & 1 << (bit % 8) != 0)
}

fn bits(hash: u64, octets: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (hash & 0xffff_ffff, hash >> 32 | 1);
    let all = octets as u64 * 8;
    (0..PROBES).map(move |n| (first.wrapping_add(n.wrapping_mul(step)) % all) as usize)
}
