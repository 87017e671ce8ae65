//! Tables whose look-ups need no check.

/// A table of a power of two of entries, so that masking makes every index valid.
pub(super) struct Places<T>(Box<[T]>);

impl<T: Clone> Places<T> {
    /// The entries, and copies of `other` behind them.
    pub(super) fn new(mut entries: Vec<T>, other: T) -> Places<T> {
        entries.resize(entries.len().next_power_of_two().max(1), other);
        Places(entries.into())
    }

    /// The entry at a place. The caller knows that there is one: beyond the last one the places begin again.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> &T {
        &self.0[place & (self.0.len() - 1)]
    }

    pub(super) fn octets(&self) -> usize {
        size_of_val(&*self.0)
    }
}
