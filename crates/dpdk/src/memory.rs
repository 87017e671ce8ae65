//! Memory of large tables: reserved once, so that what is in it never moves, and had from the system as it is touched.
use crate::Error;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32};
use std::sync::Arc;

/// Size and alignment of what the system is asked for: a huge page, if it has one to give.
const HUGE: usize = 2 << 20;

/// Whether the process gets huge pages where it asked for them; when this is dropped, what was before holds again.
#[must_use]
#[derive(Debug)]
pub struct Pages {
    small_before: bool,
}

impl Pages {
    /// Ordinary pages alone. A start touches a little of many tables, and a page of 2 MiB is cleared whole where one octet is
    /// touched: that takes longer than all the rest. The tables' pages become huge when more of them is used.
    pub fn small() -> Self {
        Self::set(true)
    }

    /// Huge pages where they were asked for.
    pub(crate) fn huge() -> Self {
        Self::set(false)
    }

    fn set(small: bool) -> Self {
        // SAFETY: both concern but how the system gives pages; one that does not know it gives them as ever.
        unsafe {
            let small_before = libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
            libc::prctl(libc::PR_SET_THP_DISABLE, small as libc::c_ulong, 0, 0, 0);
            Pages { small_before }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let small = self.small_before as libc::c_ulong;
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, small, 0, 0, 0) };
    }
}

/// Asks for huge pages for memory that is not touched yet, where the system gives them to those who ask. Memory that is no huge page
/// long stays as it is.
pub fn large_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let range = memory.as_mut_ptr_range();
    let start = (range.start as usize).next_multiple_of(HUGE);
    let end = range.end as usize & !(HUGE - 1);
    if start < end {
        // SAFETY: how the system gives pages of a range that is the caller's changes nothing in them.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Address space of this process alone, zeros where nothing was written.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory, which any thread may own; what may be done with it, its users say.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

#[cfg(not(miri))]
impl Mapping {
    fn new(bytes: usize) -> Result<Self, Error> {
        let what = || format!("address space of {} MiB", bytes >> 20);
        // Room to begin at a huge page's boundary.
        let whole = (bytes.checked_add(HUGE)).ok_or_else(|| Error::new(what(), "too large"))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, which touches nothing that there is.
        let at = unsafe { libc::mmap(core::ptr::null_mut(), whole, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(Error::new(what(), error.to_string()));
        }
        let before = (at as usize).next_multiple_of(HUGE) - at as usize;
        // SAFETY: within the mapping. Whether there are huge pages is the system's affair.
        let start = unsafe {
            let start = at.cast::<u8>().add(before);
            libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
            // What lies around is not needed.
            if before > 0 {
                libc::munmap(at, before);
            }
            let used = bytes.next_multiple_of(4096);
            if HUGE - before > used - bytes {
                let end = start.add(used);
                libc::munmap(end.cast(), HUGE - before - (used - bytes));
            }
            NonNull::new_unchecked(start)
        };
        Ok(Mapping { start, bytes })
    }

    /// Gives the memory of the pages that lie wholly in a range back: they are zeros again.
    fn discard(&self, from: usize, to: usize) {
        let (from, to) = (from.next_multiple_of(4096), to & !4095);
        if from < to && to <= self.bytes {
            // SAFETY: within the mapping; it is private and anonymous, so what is read there later are zeros.
            unsafe {
                let at = self.start.as_ptr().add(from);
                libc::madvise(at.cast(), to - from, libc::MADV_DONTNEED);
            }
        }
    }
}

#[cfg(not(miri))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping as it was made, which nothing uses any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// For the interpreter, which knows no huge pages.
#[cfg(miri)]
impl Mapping {
    fn new(bytes: usize) -> Result<Self, Error> {
        let layout = Self::layout(bytes)?;
        // SAFETY: at least a byte.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let start = NonNull::new(start).expect("memory");
        Ok(Mapping { start, bytes })
    }

    fn layout(bytes: usize) -> Result<core::alloc::Layout, Error> {
        let layout = core::alloc::Layout::from_size_align(bytes, 4096);
        layout.map_err(|_| Error::new("memory", "too large"))
    }

    fn discard(&self, _: usize, _: usize) {}
}

#[cfg(miri)]
impl Drop for Mapping {
    fn drop(&mut self) {
        let layout = Self::layout(self.bytes).expect("as it was made");
        // SAFETY: made with this layout, and nothing uses it any more.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout) };
    }
}

/// Atomic numbers: any value is good, zero among them.
///
/// # Safety
/// All bit patterns are valid, shared ones may be written, and nothing is done when a value goes.
pub unsafe trait Number: Sync {}
// SAFETY: an integer inside.
unsafe impl Number for AtomicU8 {}
// SAFETY: an integer inside.
unsafe impl Number for AtomicU32 {}

/// A long array of atomic numbers, zeros at first, of which only what is written takes memory. Threads may share it: a clone
/// is the same numbers.
///
/// ```
/// use std::sync::atomic::{AtomicU8, Ordering::{Acquire, Release}};
/// let lengths = dpdk::Zeroed::<AtomicU8>::new(1 << 30).unwrap();
/// let same = lengths.clone();
/// std::thread::spawn(move || same[123_456_789].store(24, Release)).join().unwrap();
/// assert_eq!((lengths[123_456_789].load(Acquire), lengths[0].load(Acquire)), (24, 0));
/// ```
pub struct Zeroed<T: Number> {
    map: Arc<Mapping>,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: atomic numbers may be used and dropped by any thread.
unsafe impl<T: Number> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Number> Sync for Zeroed<T> {}

/// Words that threads share.
pub type Words = Zeroed<AtomicU32>;

impl<T: Number> Zeroed<T> {
    /// So many zeros.
    pub fn new(len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.ok_or_else(|| Error::new(format!("{len} numbers"), "too many"))?;
        let map = Mapping::new(bytes.max(1))?;
        Ok(Zeroed {
            start: map.start.cast(),
            map: Arc::new(map),
            len,
        })
    }

    /// Gives the memory of this range back, as far as it fills pages: they are zeros again.
    pub fn discard(&self, range: core::ops::Range<usize>) {
        let size = size_of::<T>();
        self.map.discard(range.start * size, range.end * size);
    }
}

impl<T: Number> Clone for Zeroed<T> {
    fn clone(&self) -> Self {
        Zeroed {
            map: self.map.clone(),
            start: self.start,
            len: self.len,
        }
    }
}

impl<T: Number> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` numbers lie in the mapping, which lives as long as this; zero is a value of theirs, and they are
        // atomic, so that others may write them.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// A long array that one thread owns, which grows up to a bound without moving; only what there is takes memory.
///
/// ```
/// let mut table = dpdk::Table::<[u64; 8]>::new(1 << 20).unwrap();
/// table.resize(1000, [7; 8]);
/// table[999][0] = 8;
/// assert_eq!((table.len(), table[0][0], table[999][0]), (1000, 7, 8));
/// ```
pub struct Table<T: Copy> {
    map: Mapping,
    len: usize,
    most: usize,
    _of: PhantomData<T>,
}

// SAFETY: it owns its values.
unsafe impl<T: Copy + Send> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Table<T> {}

impl<T: Copy> Table<T> {
    /// Nothing, with address space for so many values.
    pub fn new(most: usize) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = most.checked_mul(size_of::<T>());
        let bytes = bytes.ok_or_else(|| Error::new(format!("{most} values"), "too many"))?;
        Ok(Table {
            map: Mapping::new(bytes.max(1))?,
            len: 0,
            most,
            _of: PhantomData,
        })
    }

    /// Makes it this long, with copies of a value at the end if it was shorter.
    ///
    /// # Panics
    /// Beyond its bound.
    pub fn resize(&mut self, len: usize, value: T) {
        assert!(len <= self.most, "a table of at most {} values", self.most);
        for place in self.len..len {
            // SAFETY: within the mapping, which is ours alone.
            unsafe { self.start().add(place).write(value) };
        }
        self.len = len;
    }

    fn start(&self) -> *mut T {
        self.map.start.as_ptr().cast()
    }
}

impl<T: Copy> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values were written, in a mapping that lives as long as this; pages are aligned enough.
        unsafe { core::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T: Copy> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

/// How many bits are set.
#[inline(always)]
pub fn popcount(x: u32) -> u32 {
    #[cfg(not(miri))]
    {
        let n: u32;
        // SAFETY: the instruction does nothing else. The CPU has it: the shim is compiled for CPUs that do, as DPDK is.
        unsafe {
            core::arch::asm!("popcnt {0:e}, {1:e}", out(reg) n, in(reg) x, options(pure, nomem, nostack));
        }
        n
    }
    #[cfg(miri)]
    x.count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn zeros_from_the_first_to_the_last() {
        let len = if cfg!(miri) { 5000 } else { 300 << 20 };
        let words = Words::new(len).unwrap();
        for at in [0, 1, len / 2, len - 1] {
            assert_eq!(words[at].swap(at as u32 + 1, Relaxed), 0);
        }
        let same = words.clone();
        drop(words);
        assert_eq!(same[len - 1].load(Relaxed), len as u32);
        if !cfg!(miri) {
            same.discard(1..len);
            assert_eq!(same[len / 2].load(Relaxed), 0);
            assert_eq!(same[1].load(Relaxed), 2, "its page has another number");
        }
        assert!(Zeroed::<AtomicU8>::new(usize::MAX).is_err());
    }

    #[test]
    fn bits_are_counted() {
        for x in [0, 1, 0x8000_0000, u32::MAX, 0x1234_5678] {
            assert_eq!(popcount(x), x.count_ones());
        }
    }
}
