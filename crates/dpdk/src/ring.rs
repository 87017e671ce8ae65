//! Rings of packets between two threads. Whoever holds a packet owns it: sending gives it away.
use crate::ffi::{self, M, sl_dequeue, sl_enqueue, sl_ring_count};
use crate::{BURST, Burst, Eal, Error, Mbuf};
use core::ffi::{c_uint, c_void};
use std::ffi::CString;
use std::sync::Arc;

/// The sending end of a ring; there is one, so neither `Clone` nor usable from two threads at once.
///
/// ```compile_fail
/// fn both(p: &dpdk::Producer) { std::thread::scope(|s| { s.spawn(|| p.len()); }); }
/// ```
#[derive(Debug)]
pub struct Producer {
    ring: *mut c_void,
    /// Keeps the ring; those that are never freed have no owner.
    _owner: Option<Arc<Ring>>,
}

/// The receiving end of a ring; there is one.
#[derive(Debug)]
pub struct Consumer {
    ring: *mut c_void,
    /// As of [`Producer`].
    _owner: Option<Arc<Ring>>,
}

/// A ring that both its ends own: it goes with the second of them, and what is in it.
#[derive(Debug)]
struct Ring(*mut c_void);

// SAFETY: nobody uses it beside its ends, and it is freed when both have gone.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        // What waits is received, and freed.
        let mut rest = Consumer {
            ring: self.0,
            _owner: None,
        };
        while rest.recv().is_some() {}
        // SAFETY: neither end is there any more.
        unsafe { ffi::sl_ring_free(self.0) }
    }
}

// SAFETY: a ring is there as long as an end is, or for ever, and one end may be used by one thread, whichever it is.
unsafe impl Send for Producer {}
// SAFETY: as above.
unsafe impl Send for Consumer {}

impl Eal {
    /// Makes a ring that holds up to `size` packets.
    pub fn ring(&self, name: &str, size: u32) -> Result<(Producer, Consumer), Error> {
        let ring = self.raw_ring(name, size)?;
        let both = Arc::new(Ring(ring));
        let sending = Producer {
            ring,
            _owner: Some(both.clone()),
        };
        let receiving = Consumer {
            ring,
            _owner: Some(both),
        };
        Ok((sending, receiving))
    }

    pub(crate) fn raw_ring(&self, name: &str, size: u32) -> Result<*mut c_void, Error> {
        let what = || format!("ring {name:?} of {size}");
        let c_name = CString::new(name).map_err(|_| Error::new(what(), "a NUL in the name"))?;
        // SAFETY: EAL runs, and the name is a C string.
        let ring = unsafe { ffi::sl_ring(c_name.as_ptr(), size) };
        if ring.is_null() {
            Err(Error::last(what()))
        } else {
            Ok(ring)
        }
    }
}

impl Producer {
    /// # Safety
    /// The ring's only sending end; the ring is never freed.
    pub(crate) unsafe fn of(ring: *mut c_void) -> Self {
        Producer { ring, _owner: None }
    }

    /// Sends a packet, or gives it back if the ring is full.
    pub fn send(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        let mut m = mbuf.into_raw();
        // SAFETY: `m` is ours; the ring takes it, or (0) leaves it to us.
        let taken = unsafe { sl_enqueue(self.ring, &mut m, 1) };
        if taken == 1 {
            return Ok(());
        }
        // SAFETY: still ours.
        match unsafe { Mbuf::own(m) } {
            Some(mbuf) => Err(mbuf),
            None => Ok(()), // never: it came from an `Mbuf`
        }
    }

    /// Sends the packets of a burst, as far as there is room, and frees the others; how many were sent.
    #[inline]
    pub fn send_burst(&mut self, burst: &mut Burst) -> usize {
        // SAFETY: the ring takes as many mbufs as it says, and leaves the others alone.
        let sent = unsafe { burst.drain(|m, n| sl_enqueue(self.ring, m, n as c_uint) as usize) };
        burst.clear();
        sent.packets
    }

    /// How many packets wait in the ring.
    pub fn len(&self) -> usize {
        // SAFETY: the ring is there as long as its ends.
        unsafe { sl_ring_count(self.ring) as usize }
    }

    /// Is the ring empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Consumer {
    /// # Safety
    /// The ring's only receiving end; the ring is never freed.
    pub(crate) unsafe fn of(ring: *mut c_void) -> Self {
        Consumer { ring, _owner: None }
    }

    /// Receives a packet if there is one.
    pub fn recv(&mut self) -> Option<Mbuf> {
        let mut m: M = core::ptr::null_mut();
        // SAFETY: what comes out of the ring is ours; if nothing does, `m` stays null.
        unsafe {
            sl_dequeue(self.ring, &mut m, 1);
            Mbuf::own(m)
        }
    }

    /// Receives up to [`BURST`] packets in place of those that `burst` had, and starts fetching their headers.
    #[inline]
    pub fn recv_burst(&mut self, burst: &mut Burst) -> usize {
        // SAFETY: the ring writes as many mbufs as it says, and they are ours.
        let n = unsafe { burst.fill(|m| sl_dequeue(self.ring, m, BURST as c_uint) as usize) };
        burst.fetch();
        n
    }

    /// How many packets wait in the ring.
    pub fn len(&self) -> usize {
        // SAFETY: the ring is there as long as its ends.
        unsafe { sl_ring_count(self.ring) as usize }
    }

    /// Is the ring empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
