//! One packet, owned.
use crate::ffi::{M, RawMbuf, sl_chain, sl_free};
use crate::window::{HEAD, WINDOW, Window};
use core::ptr::NonNull;

/// RTE_MBUF_F_EXTERNAL and RTE_MBUF_F_INDIRECT, of the upper half of the flags: the buffer may be another's too.
const BORROWED: u32 = 3 << 29;

/// RTE_PKTMBUF_HEADROOM; `c/shim.c` asserts it.
const HEADROOM: u16 = 128;

impl RawMbuf {
    /// One owner, one segment, a buffer of its own (neither attached nor external), and the window inside it.
    #[inline(always)]
    pub(crate) fn windowed(&self) -> bool {
        // What is below HEAD wraps to a large number.
        let start = (self.off as u32).wrapping_sub(HEAD as u32) as u64;
        self.alone() & (start + WINDOW as u64 <= self.buf_len as u64)
    }

    /// Where the window is of one that has one ([`RawMbuf::windowed`]): inside the buffer.
    #[inline(always)]
    pub(crate) fn window(&self) -> *mut Window {
        self.buf.wrapping_add(self.off as usize - HEAD).cast()
    }

    /// One owner, one segment, a buffer of its own: it may be written.
    #[inline(always)]
    fn alone(&self) -> bool {
        let one = (self.refcnt as u32 | (self.segs as u32) << 16) == 0x0001_0001;
        one & (self.flags[1] & BORROWED == 0)
    }
}

/// One packet outside of a burst: the slow way, for hand-over to another thread, injection and tests.
///
/// It is its mbuf's only holder: neither `Clone` nor `Copy`, and dropping it frees the buffer.
pub struct Mbuf(NonNull<RawMbuf>);

// SAFETY: the mbuf belongs to this value alone, and mempools take buffers back from any thread.
unsafe impl Send for Mbuf {}

impl Drop for Mbuf {
    fn drop(&mut self) {
        let mut m = self.0.as_ptr();
        // SAFETY: we own `m`, and nothing uses it after this.
        unsafe { sl_free(&mut m, 1) }
    }
}

impl core::fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Mbuf({} bytes)", self.data().len())
    }
}

impl Mbuf {
    /// Takes ownership.
    ///
    /// # Safety
    /// `m` is a valid mbuf that nothing else owns.
    pub(crate) unsafe fn own(m: M) -> Option<Self> {
        NonNull::new(m).map(Mbuf)
    }

    /// Gives ownership up.
    pub(crate) fn into_raw(self) -> M {
        let m = self.0.as_ptr();
        core::mem::forget(self);
        m
    }

    fn raw(&self) -> &RawMbuf {
        // SAFETY: owned by self, so valid and not written by anyone else while borrowed.
        unsafe { self.0.as_ref() }
    }

    fn raw_mut(&mut self) -> &mut RawMbuf {
        // SAFETY: as for `raw`, and borrowed exclusively.
        unsafe { self.0.as_mut() }
    }

    /// The packet's bytes; of a chained packet those of its first segment.
    pub fn data(&self) -> &[u8] {
        let m = self.raw();
        // SAFETY: DPDK keeps `off + len <= buf_len`, and so do `cut` and `advance`.
        unsafe { core::slice::from_raw_parts(m.buf.add(m.off as usize), m.len as usize) }
    }

    /// The packet's bytes, to be changed; `None` if the buffer may be another's too, or the packet is not whole.
    pub fn data_mut(&mut self) -> Option<&mut [u8]> {
        let m = self.raw_mut();
        if !m.alone() {
            return None;
        }
        // SAFETY: as in `data`; the buffer is this packet's alone, which is borrowed exclusively.
        Some(unsafe { core::slice::from_raw_parts_mut(m.buf.add(m.off as usize), m.len as usize) })
    }

    /// Octets of the whole frame.
    pub fn frame_len(&self) -> usize {
        self.raw().pkt_len as usize
    }

    /// Is the whole packet in one segment?
    pub fn is_whole(&self) -> bool {
        self.raw().segs == 1
    }

    /// The two words that travel with the packet through a [`crate::ring`].
    pub fn meta(&self) -> [u32; 2] {
        self.raw().meta
    }

    /// Sets the two words.
    pub fn set_meta(&mut self, meta: [u32; 2]) {
        self.raw_mut().meta = meta;
    }

    /// By which member of a LAG the packet came, by number; of other ports it says nothing.
    pub fn member(&self) -> u16 {
        self.raw().member
    }

    /// Says by which member [`Queue::tx_by_member`](crate::Queue::tx_by_member) sends the packet.
    pub fn set_member(&mut self, member: u16) {
        self.raw_mut().member = member;
    }

    /// The number that [`Mbuf::set_stamp`] has set, until the packet is sent.
    #[inline(always)]
    pub fn stamp(&self) -> u32 {
        self.raw().stamp
    }

    /// Keeps a number with the packet while it waits.
    #[inline(always)]
    pub fn set_stamp(&mut self, stamp: u32) {
        self.raw_mut().stamp = stamp;
    }

    /// The number that [`Packet::set_note`](crate::Packet::set_note) has set, until the packet is sent.
    #[inline(always)]
    pub fn note(&self) -> u16 {
        self.raw().note
    }

    /// Takes `n` bytes from the front, or all there are.
    pub fn advance(&mut self, n: u16) {
        let m = self.raw_mut();
        let n = n.min(m.len);
        m.off += n;
        m.len -= n;
        m.pkt_len -= n as u32;
    }

    /// Makes the packet `len` bytes long, if it is longer and whole.
    pub fn truncate(&mut self, len: u16) {
        let m = self.raw_mut();
        if len < m.len && m.segs == 1 {
            m.len = len;
            m.pkt_len = len as u32;
        }
    }

    /// Makes the packet empty again, with the headroom of a new one, if it is whole and its buffer its own.
    pub fn reset(&mut self) {
        let m = self.raw_mut();
        if m.alone() && m.buf_len >= HEADROOM {
            m.off = HEADROOM;
            m.len = 0;
            m.pkt_len = 0;
            m.flags = [0; 2];
        }
    }

    /// Makes the packet `len` octets long: what lies behind its end becomes part of it as it is. False, and nothing
    /// changed, if the buffer is too small or shared.
    pub fn extend(&mut self, len: u16) -> bool {
        let m = self.raw_mut();
        let fits = m.off as usize + len as usize <= m.buf_len as usize;
        if !(m.alone() && fits && len >= m.len) {
            return false;
        }
        m.len = len;
        m.pkt_len = len as u32;
        true
    }

    /// Makes the other packet's buffers the end of this one, as drivers do where a frame fits no single buffer; or
    /// gives it back, if they are too many.
    pub fn chain(&mut self, tail: Mbuf) -> Result<(), Mbuf> {
        let tail = tail.into_raw();
        // SAFETY: both are ours; the tail belongs to the head then, unless this fails.
        match unsafe { sl_chain(self.0.as_ptr(), tail) } {
            0 => Ok(()),
            // SAFETY: it is still ours, and was never null.
            _ => Err(Mbuf(unsafe { NonNull::new_unchecked(tail) })),
        }
    }

    /// Writes `bytes` in front of the packet; false, and nothing changed, if they do not fit or the buffer is shared.
    pub fn prepend(&mut self, bytes: &[u8]) -> bool {
        let m = self.raw_mut();
        let Some(off) = (m.off as usize).checked_sub(bytes.len()) else {
            return false;
        };
        if !m.alone() {
            return false;
        }
        // SAFETY: as in `append`; the range begins in the buffer and ends where the packet begins.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), m.buf.add(off), bytes.len()) }
        m.off = off as u16;
        m.len += bytes.len() as u16;
        m.pkt_len += bytes.len() as u32;
        true
    }

    /// Writes `bytes` behind the packet's end; false, and nothing changed, if they do not fit or the buffer is shared.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let m = self.raw_mut();
        let end = m.off as usize + m.len as usize;
        if !(m.alone() && end + bytes.len() <= m.buf_len as usize) {
            return false;
        }
        // SAFETY: the range lies in the buffer, which is ours alone (refcnt 1); `bytes` cannot overlap it, because a
        // borrow of our own data would exclude `&mut self`.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), m.buf.add(end), bytes.len()) }
        m.len += bytes.len() as u16;
        m.pkt_len += bytes.len() as u32;
        true
    }
}
