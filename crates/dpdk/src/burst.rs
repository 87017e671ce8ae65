//! Bursts of packets and the two passes that a node makes over one.
use crate::ffi::{M, RawMbuf, sl_free};
use crate::mbuf::Mbuf;
use crate::port::Sent;
use crate::prefetch;
use crate::window::{HEAD, WINDOW, Window};
use core::ffi::c_uint;
use core::mem::MaybeUninit;
use std::collections::VecDeque;

/// The most packets in a burst.
pub const BURST: usize = 64;

/// Up to 64 mbufs, each owned by this value alone. Neither `Clone` nor `Copy`; dropping it frees them.
///
/// ```compile_fail
/// fn twice(b: &dpdk::Burst) -> dpdk::Burst { b.clone() }
/// ```
/// ```compile_fail
/// fn twice(b: &dpdk::Burst) -> dpdk::Burst { *b }
/// ```
/// A borrowed frame does not outlive what is done with the burst:
/// ```compile_fail
/// fn keep(b: &mut dpdk::Burst, p: &mut dpdk::Port) -> usize { let f = b.frames().next(); p.tx(b); f.unwrap().len() }
/// ```
pub struct Burst {
    n: usize,
    m: [MaybeUninit<M>; BURST],
}

// SAFETY: the mbufs belong to this value alone.
unsafe impl Send for Burst {}

impl Drop for Burst {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}

impl Burst {
    /// No packets.
    pub const fn new() -> Self {
        Burst {
            n: 0,
            m: [MaybeUninit::uninit(); BURST],
        }
    }

    /// How many packets there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Are there none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Frees all packets.
    #[inline]
    pub fn clear(&mut self) {
        if self.n != 0 {
            self.free_from(0);
        }
    }

    /// Frees the packets from position `from` on.
    #[cold]
    pub(crate) fn free_from(&mut self, from: usize) {
        let rest = &mut self.m[from..self.n];
        // SAFETY: the first `n` are initialised and ours; shortening the burst first makes sure they go but once.
        unsafe { sl_free(rest.as_mut_ptr().cast(), rest.len() as c_uint) };
        self.n = from;
    }

    /// Adds a packet, or gives it back if the burst is full.
    pub fn push(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        if self.n == BURST {
            return Err(mbuf);
        }
        self.push_raw(mbuf.into_raw());
        Ok(())
    }

    /// Takes the last packet out.
    pub fn pop(&mut self) -> Option<Mbuf> {
        self.n = self.n.checked_sub(1)?;
        // SAFETY: it was initialised, and is ours no longer.
        unsafe { Mbuf::own(self.m[self.n].assume_init()) }
    }

    #[inline(always)]
    fn push_raw(&mut self, m: M) {
        self.m[self.n] = MaybeUninit::new(m);
        self.n += 1;
    }

    /// Fills the empty burst with a function that writes up to `BURST` owned mbufs and says how many.
    ///
    /// # Safety
    /// `fill` initialises as many pointers as it says, each to an mbuf that nothing else owns.
    #[inline(always)]
    pub(crate) unsafe fn fill(&mut self, fill: impl FnOnce(*mut M) -> usize) -> usize {
        self.clear();
        self.n = fill(self.m.as_mut_ptr().cast()).min(BURST);
        self.n
    }

    /// Hands the packets to a function that takes a first part of them and says how many; the others are freed.
    /// Returns what was taken.
    ///
    /// # Safety
    /// `take` owns the packets that it says it took, and leaves the others alone.
    #[inline(always)]
    pub(crate) unsafe fn drain(&mut self, take: impl FnOnce(*mut M, usize) -> usize) -> Sent {
        let (n, mut octets) = (self.n, self.octets());
        let taken = take(self.m.as_mut_ptr().cast(), n).min(n);
        if taken < n {
            octets -= self.octets_from(taken);
            self.free_from(taken);
        }
        self.n = 0;
        Sent {
            packets: taken,
            octets,
        }
    }

    /// Starts fetching descriptors and headers. A header's line is guessed from its mbuf's address, without reading it.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        for m in &self.m[..self.n] {
            // SAFETY: the first `n` are initialised.
            let m: *const u8 = unsafe { m.assume_init() }.cast();
            prefetch(m);
            prefetch(m.wrapping_add(size_of::<RawMbuf>() * 2 + 128));
        }
    }

    /// Whole frames, read only, for counting and for checks outside of the packet path.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> + '_ {
        self.m[..self.n].iter().map(|m| {
            // SAFETY: initialised, ours, and DPDK keeps `off + len` inside the buffer.
            unsafe {
                let m = &*m.assume_init();
                core::slice::from_raw_parts(m.buf.add(m.off as usize), m.len as usize)
            }
        })
    }

    /// The sum of the packets' lengths.
    #[inline]
    pub fn octets(&self) -> u64 {
        self.octets_from(0)
    }

    #[inline(always)]
    fn octets_from(&self, first: usize) -> u64 {
        // SAFETY: the first `n` are initialised and ours.
        self.m[first..self.n]
            .iter()
            .map(|m| unsafe { (*m.assume_init()).pkt_len } as u64)
            .sum()
    }

    /// The two passes of a node. `look` reads each header and returns a key, and may prefetch with it; `act` then
    /// edits the packet and says where it goes: to one of `outs`, or to `rest` with a reason.
    /// A packet that has no [`Window`] (short headroom, chained, shared) goes to `rest` with `R::default()`, unseen.
    ///
    /// # Panics
    /// If `act` names an out that does not exist, or if `rest` was not emptied before.
    ///
    /// A packet is only lent to `act`:
    /// ```compile_fail
    /// use dpdk::*;
    /// fn keep(b: &mut Burst, o: &mut Outs, r: &mut Rest<u8>) {
    ///     let mut kept: Vec<&mut Packet<'_>> = vec![];
    ///     b.two_pass(&mut (), o, r, |_, _, _| (), |_, _, p| { kept.push(p); Ok(0) });
    /// }
    /// ```
    /// ```compile_fail
    /// use dpdk::*;
    /// fn keep(b: &mut Burst, o: &mut Outs, r: &mut Rest<u8>) {
    ///     let mut kept: Option<&mut Window> = None;
    ///     b.two_pass(&mut (), o, r, |_, _, _| (), |_, _, p| { kept = Some(p.window()); Ok(0) });
    /// }
    /// ```
    #[inline(always)]
    pub fn two_pass<T: ?Sized, K: Copy, R: Copy + Default>(
        &mut self,
        t: &mut T,
        outs: &mut Outs,
        rest: &mut Rest<R>,
        look: impl Fn(&T, &Window, usize) -> K,
        act: impl FnMut(&mut T, K, &mut Packet<'_>) -> Result<usize, R>,
    ) {
        let mut keys = Keys::new();
        let n = self.gather(t, rest, &mut keys, look);
        self.scatter(n, t, outs, rest, &keys, act);
    }

    /// As [`Burst::two_pass`], with a pass in between: `ask` completes the key, and may wait for what `look` asked for and
    /// ask for more.
    #[inline(always)]
    pub fn three_pass<T: ?Sized, K: Copy, R: Copy + Default>(
        &mut self,
        t: &mut T,
        outs: &mut Outs,
        rest: &mut Rest<R>,
        look: impl Fn(&T, &Window, usize) -> K,
        ask: impl Fn(&T, &Window, &mut K),
        act: impl FnMut(&mut T, K, &mut Packet<'_>) -> Result<usize, R>,
    ) {
        let mut keys = Keys::new();
        let n = self.gather(t, rest, &mut keys, look);
        for key in &mut keys.0[..n] {
            // SAFETY: `gather` wrote the first `n`.
            let (key, w) = unsafe { key.assume_init_mut() };
            // SAFETY: the window lies inside a buffer of this burst, and nothing borrows it now.
            ask(t, unsafe { &**w }, key);
        }
        self.scatter(n, t, outs, rest, &keys, act);
    }

    /// The first pass: the packets that have a window, and their keys, are the first so many then.
    #[inline(always)]
    fn gather<T: ?Sized, K: Copy, R: Copy + Default>(
        &mut self,
        t: &T,
        rest: &mut Rest<R>,
        keys: &mut Keys<K>,
        look: impl Fn(&T, &Window, usize) -> K,
    ) -> usize {
        let total = core::mem::take(&mut self.n);
        let mut n = 0;
        for i in 0..total {
            // SAFETY: the first `total` are initialised and ours; none is borrowed now.
            let m = unsafe { self.m[i].assume_init() };
            // SAFETY: as above.
            let raw = unsafe { &*m };
            if !raw.windowed() {
                rest.push(m, R::default());
                continue;
            }
            // SAFETY: `windowed`: the window lies inside the buffer, which is ours alone.
            let w: *mut Window = unsafe { raw.buf.add(raw.off as usize - HEAD) }.cast();
            self.m[n] = MaybeUninit::new(m);
            // SAFETY: as above.
            keys.0[n].write((look(t, unsafe { &*w }, raw.len as usize), w));
            n += 1;
        }
        n
    }

    /// The last pass, over the `n` packets that [`Burst::gather`] left.
    #[inline(always)]
    fn scatter<T: ?Sized, K: Copy, R: Copy + Default>(
        &mut self,
        n: usize,
        t: &mut T,
        outs: &mut Outs,
        rest: &mut Rest<R>,
        keys: &Keys<K>,
        mut act: impl FnMut(&mut T, K, &mut Packet<'_>) -> Result<usize, R>,
    ) {
        for (m, key) in self.m[..n].iter().zip(&keys.0[..n]) {
            // SAFETY: both were written for the first `n`.
            let (m, (key, w)) = unsafe { (m.assume_init(), key.assume_init()) };
            // SAFETY: the mbufs of a burst are distinct, and the borrow ends with the call.
            let m_ref = unsafe { &mut *m };
            let mut packet = Packet { m: m_ref, w, outs };
            match act(t, key, &mut packet) {
                Ok(out) => outs.push_raw(out, m),
                Err(reason) => rest.push(m, reason),
            }
        }
    }
}

/// What the first pass found of each packet, and its window.
struct Keys<K>([MaybeUninit<(K, *mut Window)>; BURST]);

impl<K: Copy> Keys<K> {
    #[inline(always)]
    fn new() -> Self {
        Keys([const { MaybeUninit::uninit() }; BURST])
    }
}

/// One burst for each way out of a node, and a line for those that find their burst full: what `act` sends beside the
/// packets that came in ([`Packet::send`]) makes more of them than a burst holds.
pub struct Outs {
    ways: Box<[Burst]>,
    line: VecDeque<(usize, Mbuf)>,
}

/// Packets in the line. The last [`BURST`] places are kept for those that came in.
const LINE: usize = 8 * BURST;

impl Outs {
    /// `n` ways out.
    pub fn new(n: usize) -> Self {
        Outs {
            ways: (0..n).map(|_| Burst::new()).collect(),
            line: VecDeque::with_capacity(LINE),
        }
    }

    /// The packets that went out by way `out`.
    #[inline]
    pub fn get(&mut self, out: usize) -> &mut Burst {
        &mut self.ways[out]
    }

    /// Adds a packet to those that go out by way `out`.
    pub fn push(&mut self, out: usize, mbuf: Mbuf) {
        self.push_raw(out, mbuf.into_raw());
    }

    /// Lets packets that stand in line take the places of those that were sent; false if there are none.
    #[inline]
    pub fn refill(&mut self) -> bool {
        !self.line.is_empty() && self.advance()
    }

    #[cold]
    fn advance(&mut self) -> bool {
        let mut moved = false;
        // In the order of the line, so that no way's packets change theirs.
        while let Some((out, _)) = self.line.front()
            && self.ways[*out].n < BURST
            && let Some((out, mbuf)) = self.line.pop_front()
        {
            self.ways[out].push_raw(mbuf.into_raw());
            moved = true;
        }
        moved
    }

    #[inline(always)]
    fn push_raw(&mut self, out: usize, m: M) {
        let burst = &mut self.ways[out];
        if burst.n < BURST {
            burst.push_raw(m);
        } else {
            self.stand_in_line(out, m);
        }
    }

    #[cold]
    #[inline(never)]
    fn stand_in_line(&mut self, out: usize, m: M) {
        // SAFETY: whoever calls gives the packet away.
        if let Some(mbuf) = unsafe { Mbuf::own(m) } {
            self.line.push_back((out, mbuf));
        }
    }
}

/// Packets that left the path, with the reason of each.
pub struct Rest<R> {
    burst: Burst,
    why: [MaybeUninit<R>; BURST],
}

impl<R: Copy> Default for Rest<R> {
    fn default() -> Self {
        Rest {
            burst: Burst::new(),
            why: [const { MaybeUninit::uninit() }; BURST],
        }
    }
}

impl<R: Copy> Rest<R> {
    #[cold]
    #[inline(never)]
    fn push(&mut self, m: M, reason: R) {
        self.why[self.burst.n].write(reason);
        self.burst.push_raw(m);
    }

    /// Are there none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.burst.is_empty()
    }

    /// Gives the packets away in the order in which they left.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self, mut f: impl FnMut(R, Mbuf)) {
        let n = core::mem::take(&mut self.burst.n);
        for (m, why) in self.burst.m[..n].iter().zip(&self.why[..n]) {
            // SAFETY: both were written for the first `n`; the burst no longer owns them.
            if let (why, Some(mbuf)) = unsafe { (why.assume_init(), Mbuf::own(m.assume_init())) } {
                f(why, mbuf);
            }
        }
    }
}

/// One packet during `act`: borrowed, so it can neither outlive the burst nor be kept.
pub struct Packet<'a> {
    m: &'a mut RawMbuf,
    /// Inside the buffer of `m`; as a pointer, because `frame` lends the same octets.
    w: *mut Window,
    outs: &'a mut Outs,
}

impl Packet<'_> {
    /// Length of the frame.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.m.len as usize
    }

    /// Is the frame empty?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The window, where the frame as received starts at [`HEAD`].
    #[inline(always)]
    pub fn window(&mut self) -> &mut Window {
        // SAFETY: the window lies in the buffer of `m`, which is ours alone; whatever else is lent of it borrows `self`.
        unsafe { &mut *self.w }
    }

    /// The whole frame, of which the window shows the first octets; for what may lie behind them.
    pub fn frame(&mut self) -> &mut [u8] {
        // SAFETY: one segment, ours alone (`windowed`); DPDK and `reframe` keep `off + len` inside the buffer; as above.
        unsafe {
            let at = self.m.buf.add(self.m.off as usize);
            core::slice::from_raw_parts_mut(at, self.m.len as usize)
        }
    }

    /// How many packets can be sent beside those that come in.
    pub fn room(&self) -> usize {
        (LINE - BURST).saturating_sub(self.outs.line.len())
    }

    /// Sends other packets by way `out`: after those that `act` has sent before, ahead of this one. Those that find no
    /// [`Packet::room`] stay in the burst.
    pub fn send(&mut self, out: usize, burst: &mut Burst) {
        let n = burst.n.min(self.room());
        for m in &burst.m[..n] {
            // SAFETY: the first `n` are initialised; the burst gives them up below.
            self.outs.push_raw(out, unsafe { m.assume_init() });
        }
        burst.m.copy_within(n..burst.n, 0);
        burst.n -= n;
    }

    /// The frame now starts at offset `start` of the window and is `len` bytes long.
    /// False, and nothing changed, if the buffer is too small.
    #[inline(always)]
    #[must_use]
    pub fn reframe(&mut self, start: usize, len: usize) -> bool {
        // The window starts HEAD before the frame as received: read where from the pointers, not from `off`, which a
        // first call has moved.
        let base = (self.w as usize).wrapping_sub(self.m.buf as usize);
        let off = base + start;
        if (start > WINDOW) | (len > u16::MAX as usize) | (off + len > self.m.buf_len as usize) {
            return false;
        }
        self.m.off = off as u16;
        self.m.len = len as u16;
        self.m.pkt_len = len as u32;
        // What the driver said about the frame as received is not true of this one.
        self.m.flags = 0;
        true
    }
}
