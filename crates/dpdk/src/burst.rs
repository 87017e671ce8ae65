//! Bursts of packets and the passes that a node makes over one.
use crate::ffi::{M, RawMbuf, sl_free};
use crate::mbuf::Mbuf;
use crate::prefetch;
use crate::queue::Sent;
use crate::window::{HEAD, Window};
use core::ffi::c_uint;
use core::mem::MaybeUninit;
use std::collections::VecDeque;

/// The most packets in a burst.
pub const BURST: usize = 64;
/// So many packets before its own a packet's lines are asked for: two of them each is what a core waits for at a time.
const SOON: usize = 8;

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
/// fn keep(b: &mut dpdk::Burst, p: &mut dpdk::Queue) -> usize { let f = b.frames().next(); p.tx(b); f.unwrap().len() }
/// ```
pub struct Burst {
    n: usize,
    m: [MaybeUninit<M>; BURST],
}

impl core::fmt::Debug for Burst {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Burst({} packets)", self.n)
    }
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
            self.free();
        }
    }

    #[cold]
    fn free(&mut self) {
        let all = &mut self.m[..core::mem::take(&mut self.n)];
        // SAFETY: the first `n` were initialised and ours; emptying the burst first makes sure they go but once.
        unsafe { sl_free(all.as_mut_ptr().cast(), all.len() as c_uint) };
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

    /// The two words of every packet.
    #[inline(always)]
    pub fn metas(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        // SAFETY: the first `n` are initialised and ours.
        self.m[..self.n]
            .iter()
            .map(|m| unsafe { (*m.assume_init()).meta })
    }

    /// Gives all packets away, in their order.
    #[inline(always)]
    pub fn take_all(&mut self, mut take: impl FnMut(Mbuf)) {
        for m in &self.m[..core::mem::take(&mut self.n)] {
            // SAFETY: the first so many were initialised and ours, and the burst has given them up.
            if let Some(mbuf) = unsafe { Mbuf::own(m.assume_init()) } {
                take(mbuf);
            }
        }
    }

    #[inline(always)]
    fn push_raw(&mut self, m: M) {
        self.m[self.n] = MaybeUninit::new(m);
        self.n += 1;
    }

    /// Moves the packets that have the same two words as the first to the end of `to`, as far as there is room there; those words, or
    /// nothing if there is no packet. The packets on either side keep their order.
    pub fn split_same(&mut self, to: &mut Burst) -> Option<[u32; 2]> {
        self.split_by(to, |raw| raw.meta)
    }

    #[inline(always)]
    fn split_by<T: PartialEq>(&mut self, to: &mut Burst, by: impl Fn(&RawMbuf) -> T) -> Option<T> {
        // SAFETY: the first `n` are initialised and ours.
        let of = |m: &MaybeUninit<M>| unsafe { by(&*m.assume_init()) };
        let first = of(self.m[..self.n].first()?);
        let mut kept = 0;
        for at in 0..self.n {
            let m = self.m[at];
            let (burst, place) = match of(&m) == first && to.n < BURST {
                true => (&mut to.m, &mut to.n),
                false => (&mut self.m, &mut kept),
            };
            burst[*place] = m;
            *place += 1;
        }
        self.n = kept;
        Some(first)
    }

    /// Moves the packets that name the same member as the first to the end of `to`, as far as there is room there; that member, or
    /// nothing if there is no packet. The packets on either side keep their order.
    pub(crate) fn split_member(&mut self, to: &mut Burst) -> Option<u16> {
        self.split_by(to, |raw| raw.member)
    }

    /// Moves all packets of the other burst to the end of this one. What finds no room is freed.
    pub(crate) fn append(&mut self, from: &mut Burst) {
        from.take_all(|mbuf| drop(self.push(mbuf)));
    }

    /// Says of every packet by which member of a LAG it came.
    pub(crate) fn set_member(&mut self, member: u16) {
        for m in &self.m[..self.n] {
            // SAFETY: the first `n` are initialised and ours.
            unsafe { (*m.assume_init()).member = member };
        }
    }

    /// Says of every packet by which member of a LAG it goes.
    pub(crate) fn assign_members(&mut self, of: impl Fn(&[u8]) -> u16) {
        for at in 0..self.n {
            let member = of(self.frame(at));
            // SAFETY: the first `n` are initialised and ours; the frame is borrowed no more.
            unsafe { (*self.m[at].assume_init()).member = member };
        }
    }

    /// Frees the packets that are not to be kept, and says how many those were.
    pub(crate) fn keep(&mut self, keep: impl Fn(&[u8]) -> bool) -> usize {
        let before = self.n;
        let mut others = Burst::new();
        let mut kept = 0;
        for at in 0..before {
            let (keeps, m) = (keep(self.frame(at)), self.m[at]);
            let (burst, place) = match keeps {
                true => (&mut self.m, &mut kept),
                false => (&mut others.m, &mut others.n),
            };
            burst[*place] = m;
            *place += 1;
        }
        self.n = kept;
        before - kept
    }

    /// Keeps a number with every packet while it waits.
    pub fn set_note(&mut self, note: u16) {
        for m in &self.m[..self.n] {
            // SAFETY: the first `n` are initialised and ours.
            unsafe { (*m.assume_init()).note = note };
        }
    }

    /// Sets the two words of every packet.
    pub fn set_meta(&mut self, meta: [u32; 2]) {
        for m in &self.m[..self.n] {
            // SAFETY: the first `n` are initialised and ours.
            unsafe { (*m.assume_init()).meta = meta };
        }
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

    /// Hands the packets to a function that takes a first part of them and says how many; the others stay, in their order. Returns
    /// what was taken.
    ///
    /// # Safety
    /// `take` owns the packets that it says it took, and leaves the others alone.
    #[inline(always)]
    pub(crate) unsafe fn drain(&mut self, take: impl FnOnce(*mut M, usize) -> usize) -> Sent {
        let (n, mut octets) = (self.n, self.octets());
        let taken = take(self.m.as_mut_ptr().cast(), n).min(n);
        if taken < n {
            octets -= self.octets_from(taken);
            self.m.copy_within(taken..n, 0);
        }
        self.n = n - taken;
        Sent {
            packets: taken,
            octets,
            dropped: 0,
        }
    }

    /// Hands the packets to a function that keeps some of them, moved to the front, and says how many.
    ///
    /// # Safety
    /// `thin` owns the packets that it does not keep. The first so many pointers are those that it keeps, each once.
    #[cfg(feature = "peers")]
    #[inline(always)]
    pub(crate) unsafe fn thin(&mut self, thin: impl FnOnce(*mut M, usize) -> usize) {
        self.n = thin(self.m.as_mut_ptr().cast(), self.n).min(BURST);
    }

    /// Starts fetching descriptors and headers. A header's line is guessed from its mbuf's address, without reading it. (They
    /// are more than a core waits for at a time, but not far: to ask for them into the second cache first gained nothing.)
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
        (0..self.n).map(|at| self.frame(at))
    }

    fn frame(&self, at: usize) -> &[u8] {
        // SAFETY: initialised, ours, and DPDK keeps `off + len` inside the buffer.
        unsafe {
            let m = &*self.m[..self.n][at].assume_init();
            core::slice::from_raw_parts(m.buf.add(m.off as usize), m.len as usize)
        }
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

    /// The first of the passes that a node makes: `look` reads each header, and may ask for what the next pass will need;
    /// what it returns is the packet's key.
    /// A packet that has no [`Window`] (short headroom, chained, shared) goes to `rest` with `R::default()`, unseen.
    ///
    /// # Panics
    /// If `rest` was not emptied before.
    #[inline(always)]
    pub fn look<K: Copy, R: Copy + Default>(
        &mut self,
        rest: &mut Exits<R>,
        mut look: impl FnMut(&Window, usize) -> K,
    ) -> Seen<K> {
        let mut all = [const { MaybeUninit::uninit() }; BURST + SOON];
        let mut n = 0;
        for m in &self.m[..core::mem::take(&mut self.n)] {
            // SAFETY: the first so many are initialised and ours; none is borrowed now.
            let m = unsafe { m.assume_init() };
            // SAFETY: as above.
            let raw = unsafe { &*m };
            if !raw.windowed() {
                rest.push(m, R::default());
                continue;
            }
            let w = raw.window();
            // SAFETY: `windowed`.
            let key = look(unsafe { &*w }, raw.len as usize);
            // SAFETY: there are no more than the burst holds.
            unsafe { all.get_unchecked_mut(n) }.write(One { m, w, key });
            n += 1;
        }
        Seen { n, all }
    }
}

/// The packets of a burst that were looked at, with their keys. They are this value's own; dropping it frees them.
#[must_use]
pub struct Seen<K: Copy> {
    n: usize,
    /// So many; behind them is room for what [`Seen::act`] looks at in vain.
    all: [MaybeUninit<One<K>>; BURST + SOON],
}

/// A packet, its window, and its key.
#[derive(Clone, Copy)]
struct One<K> {
    m: M,
    w: *mut Window,
    key: K,
}

impl<K: Copy> Seen<K> {
    /// The packets, which are given away, and the last of them a few times more.
    #[inline(always)]
    fn take(&mut self) -> &[One<K>] {
        let n = core::mem::take(&mut self.n);
        if n > 0 {
            let last = self.all[n - 1];
            self.all[n..n + SOON].fill(last);
        }
        let all = if n > 0 { n + SOON } else { 0 };
        // SAFETY: `look` wrote `n`, and the others are written now.
        unsafe { self.all[..all].assume_init_ref() }
    }

    /// A pass in between: `ask` completes the keys, and may wait for what `look` asked for and ask for more.
    #[inline(always)]
    pub fn ask(&mut self, mut ask: impl FnMut(&Window, &mut K)) {
        // SAFETY: `look` wrote so many.
        for One { w, key, .. } in unsafe { self.all[..self.n].assume_init_mut() } {
            // SAFETY: of a packet that is ours, and nothing borrows it now.
            ask(unsafe { &**w }, key);
        }
    }

    /// The last pass: `act` edits each packet and lets it go, to one of `outs` or to `rest`. A few packets before, `soon` may
    /// ask for what `act` will need.
    ///
    /// A packet is only lent to `act`:
    /// ```compile_fail
    /// use dpdk::*;
    /// fn keep(b: &mut Burst, o: &mut TxBuffers, r: &mut Exits<u8>) {
    ///     let mut kept: Vec<Packet<'_, u8>> = vec![];
    ///     b.look(r, |_, _| ()).act(o, r, |_| (), |_, p| { kept.push(p); todo!() });
    /// }
    /// ```
    /// ```compile_fail
    /// use dpdk::*;
    /// fn keep(b: &mut Burst, o: &mut TxBuffers, r: &mut Exits<u8>) {
    ///     let mut kept: Option<&mut Window> = None;
    ///     b.look(r, |_, _| ()).act(o, r, |_| (), |_, mut p| { kept = Some(p.window()); todo!() });
    /// }
    /// ```
    #[inline(always)]
    pub fn act<R: Copy + Default>(
        mut self,
        outs: &mut TxBuffers,
        rest: &mut Exits<R>,
        mut soon: impl FnMut(K),
        mut act: impl FnMut(K, Packet<'_, R>) -> Gone,
    ) {
        let mut ends = Ends {
            m: core::ptr::null_mut(),
            outs,
            rest,
        };
        let all = self.take();
        for one in &all[..all.len().min(SOON)] {
            soon(one.key);
        }
        for some in all.windows(1 + SOON) {
            // The last ones are asked for time and again at the end, which costs less than to look whether it is the end.
            soon(some[SOON].key);
            let One { m, w, key } = some[0];
            // The mbufs of a burst are distinct, and each goes before the next one comes.
            ends.m = m;
            let ends = &mut ends;
            let Gone(()) = act(key, Packet { w, ends });
        }
    }
}

impl<K: Copy> Drop for Seen<K> {
    #[inline]
    fn drop(&mut self) {
        if self.n != 0 {
            self.free();
        }
    }
}

impl<K: Copy> Seen<K> {
    #[cold]
    #[inline(never)]
    fn free(&mut self) {
        let n = core::mem::take(&mut self.n);
        // SAFETY: `look` wrote so many.
        for One { m, .. } in unsafe { self.all[..n].assume_init_ref() } {
            // SAFETY: it is ours, and goes but once.
            drop(unsafe { Mbuf::own(*m) });
        }
    }
}

/// One burst for each way out of a node, and a line for those that find their burst full: what `act` sends beside the
/// packets that came in ([`Packet::send`]) makes more of them than a burst holds.
pub struct TxBuffers {
    ways: Box<[Burst]>,
    line: VecDeque<(usize, Mbuf)>,
}

/// Packets in the line. The last [`BURST`] places are kept for those that came in.
const LINE: usize = 8 * BURST;

impl TxBuffers {
    /// `n` ways out.
    pub fn new(n: usize) -> Self {
        TxBuffers {
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

    /// Adds the packets of a burst to those that go out by way `out`.
    pub fn push_all(&mut self, out: usize, burst: &mut Burst) {
        for m in &burst.m[..core::mem::take(&mut burst.n)] {
            // SAFETY: the first `n` were initialised, and the burst has given them up.
            self.push_raw(out, unsafe { m.assume_init() });
        }
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
pub struct Exits<R> {
    burst: Burst,
    why: [MaybeUninit<R>; BURST],
}

impl<R: Copy> Default for Exits<R> {
    fn default() -> Self {
        Exits {
            burst: Burst::new(),
            why: [const { MaybeUninit::uninit() }; BURST],
        }
    }
}

impl<R: Copy> Exits<R> {
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

    /// Gives the packets away in the order in which they left, and frees those together that come back.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self, mut f: impl FnMut(R, Mbuf) -> Option<Mbuf>) {
        let n = core::mem::take(&mut self.burst.n);
        for at in 0..n {
            // SAFETY: both were written for the first `n`; the burst owns what came back, which is at most `at`.
            let left = unsafe {
                (
                    self.why[at].assume_init(),
                    Mbuf::own(self.burst.m[at].assume_init()),
                )
            };
            if let (why, Some(mbuf)) = left
                && let Some(back) = f(why, mbuf)
            {
                self.burst.push_raw(back.into_raw());
            }
        }
        self.burst.clear();
    }
}

/// Where packets go: borrowed by [`Seen::act`] for as long as there is one of these. (As pointers, which are all the same
/// for packets with different lives.)
struct Ends<R> {
    /// The packet that is lent.
    m: M,
    outs: *mut TxBuffers,
    rest: *mut Exits<R>,
}

impl<R> Ends<R> {
    #[inline(always)]
    fn outs(&mut self) -> &mut TxBuffers {
        // SAFETY: see above.
        unsafe { &mut *self.outs }
    }

    #[inline(always)]
    fn rest(&mut self) -> &mut Exits<R> {
        // SAFETY: see above.
        unsafe { &mut *self.rest }
    }
}

/// One packet during `act`: borrowed, so it can neither outlive the burst nor be kept.
///
/// It is two words, which travel in registers. With three it lay on the stack, and to read it in other pieces than it was written the CPU
/// waited for all that was stored before: more than a quarter of what the way to a subscriber cost.
pub struct Packet<'a, R> {
    /// Its window. The mbuf, which is ours alone until it goes, is [`Ends::m`].
    w: *mut Window,
    ends: &'a mut Ends<R>,
}

/// What `act` has to return: a packet has gone.
#[must_use]
pub struct Gone(());

impl<R: Copy + Default> Packet<'_, R> {
    #[inline(always)]
    fn raw(&self) -> &RawMbuf {
        // SAFETY: ours, and borrowed with `self`.
        unsafe { &*self.ends.m }
    }

    /// Length of the frame.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.raw().len as usize
    }

    /// Is the frame empty?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the two words that travel with the packet through a ring.
    #[inline(always)]
    pub fn set_meta(&mut self, meta: [u32; 2]) {
        // SAFETY: ours, and borrowed with `self`.
        unsafe { (*self.ends.m).meta = meta };
    }

    /// Keeps a number with the packet while it waits.
    #[inline(always)]
    pub fn set_note(&mut self, note: u16) {
        // SAFETY: ours, and borrowed with `self`.
        unsafe { (*self.ends.m).note = note };
    }

    /// The window, where the frame as received starts at [`HEAD`](crate::HEAD).
    #[inline(always)]
    pub fn window(&mut self) -> &mut Window {
        // SAFETY: there is one, in a buffer that is ours alone; whatever else is lent of it borrows `self`.
        unsafe { &mut *self.w }
    }

    /// The whole frame, of which the window shows the first octets; for what may lie behind them.
    pub fn frame(&mut self) -> &mut [u8] {
        // SAFETY: one segment, ours alone (`windowed`); DPDK keeps `off + len` inside the buffer; as above.
        unsafe {
            let at = self.raw().buf.add(self.raw().off as usize);
            core::slice::from_raw_parts_mut(at, self.len())
        }
    }

    /// How many packets can be sent beside those that come in.
    pub fn room(&mut self) -> usize {
        (LINE - BURST).saturating_sub(self.ends.outs().line.len())
    }

    /// Sends other packets by way `out`: after those that were sent before, ahead of this one. Those that find no
    /// [`Packet::room`] stay in the burst.
    pub fn send_ahead(&mut self, out: usize, burst: &mut Burst) {
        let n = burst.n.min(self.room());
        for m in &burst.m[..n] {
            // SAFETY: the first `n` are initialised; the burst gives them up below.
            self.ends.outs().push_raw(out, unsafe { m.assume_init() });
        }
        burst.m.copy_within(n..burst.n, 0);
        burst.n -= n;
    }

    /// Sends the frame by way `out`. It starts at offset `start` of the window now, and is `len` octets long; if the
    /// buffer is too small for that it leaves with `R::default()`.
    ///
    /// # Panics
    /// If there is no such way.
    #[inline(always)]
    pub fn send(self, out: usize, start: u32, len: u32) -> Gone {
        let raw = self.ends.m;
        // SAFETY: ours until it goes below.
        let m = unsafe { &mut *raw };
        // It has a window, which starts at HEAD before the frame, inside the buffer.
        let off = m.off as usize - HEAD + start as usize;
        // The buffer's length has 16 bits, so both have.
        if off + len as usize > m.buf_len as usize {
            self.ends.rest().push(raw, R::default());
            return Gone(());
        }
        m.off = off as u16;
        m.len = len as u16;
        m.pkt_len = len;
        // What the driver said about the frame as received is not true of this one.
        m.flags = [0; 2];
        self.ends.outs().push_raw(out, raw);
        Gone(())
    }

    /// Gives the packet to those that leave the path, with the reason.
    pub fn leave(self, why: R) -> Gone {
        let m = self.ends.m;
        self.ends.rest().push(m, why);
        Gone(())
    }
}
