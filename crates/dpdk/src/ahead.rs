//! Asking for memory before it is needed.
//!
//! A core waits for some twenty lines of its first cache at a time. Of more than that, CPUs of AMD forget what was asked for
//! ahead, and packets wait for memory as if it had not been. So it is asked for twice: [`prefetch_early`], a pass ahead, into
//! the second cache, which takes more at a time (though for some milliseconds after a rest not always), and [`prefetch`], a
//! few packets ahead, into the first.
use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

/// Asks for a cache line that is needed a few packets later, of which the core takes some twenty at a time. It is a hint that
/// may name any address, so it is safe.
#[inline(always)]
pub fn prefetch<T>(p: *const T) {
    // SAFETY: prefetching never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
}

/// Asks for a cache line that is needed in a later pass: more of them at a time, but only as near as the second cache.
#[inline(always)]
pub fn prefetch_early<T>(p: *const T) {
    // SAFETY: as above.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
}

/// Where a table's values are: to ask for their lines while the table is lent to somebody else.
#[derive(Debug)]
pub struct Lines<T>(*const T);

// Whatever the values are, this is but where they are.
impl<T> Clone for Lines<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lines<T> {}

impl<T> Lines<T> {
    /// Those of a table.
    #[inline(always)]
    pub fn of(table: &[T]) -> Self {
        Lines(table.as_ptr())
    }

    /// Where a value is, or would be: there need not be such a one.
    #[inline(always)]
    pub fn at(self, place: u32) -> *const T {
        self.0.wrapping_add(place as usize)
    }
}
