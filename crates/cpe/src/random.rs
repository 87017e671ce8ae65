//! Random numbers from a seed: the same seed dials the same way.

/// The SplitMix64 generator: one word of state for each home.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A magic number: not 0, which stands for none (RFC 1661 §6.4).
    pub(crate) fn magic(&mut self) -> u32 {
        self.next() as u32 | 1
    }

    /// An interface identifier that claims no global uniqueness: not 0, and the "u" bit clear (RFC 5072 §4.1).
    pub(crate) fn interface_id(&mut self) -> u64 {
        self.next() & !(1 << 57) | 1
    }
}
