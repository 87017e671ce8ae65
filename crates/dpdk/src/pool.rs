//! Pools of packet buffers.
use crate::ffi::{self, sl_alloc, sl_alloc_bulk, sl_pool_free};
use crate::memory::Pages;
use crate::{BURST, Burst, Eal, Error, Mbuf};
use core::ffi::{c_uint, c_void};
use std::ffi::CString;

/// A pool of packet buffers of 2 KiB. It is never freed; a handle is all there is to it, shared by any thread. No thread waits
/// for another one in it, wherever that was preempted.
#[derive(Clone, Copy, Debug)]
pub struct Pool(pub(crate) *mut c_void);

// SAFETY: our handler (c/pool.c) may be used from any number of threads.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// Buffers that a registered thread keeps at hand.
const CACHE: u32 = 256;

impl Eal {
    /// Makes a pool of `buffers` packet buffers. Each takes about 2.4 KB of EAL's memory.
    pub fn pool(&self, name: &str, buffers: u32) -> Result<Pool, Error> {
        let what = || format!("pool {name:?} of {buffers} buffers");
        let c_name = CString::new(name).map_err(|_| Error::new(what(), "a NUL in the name"))?;
        // All of it is written here, and DPDK's drivers have the kernel hold it.
        let _pages = Pages::huge();
        // SAFETY: EAL runs, and the name is a C string.
        let pool = unsafe { ffi::sl_pool(c_name.as_ptr(), buffers, CACHE.min(buffers / 4)) };
        if pool.is_null() {
            Err(Error::last(what()))
        } else {
            Ok(Pool(pool))
        }
    }
}

impl Pool {
    /// An empty packet, or none if the pool is exhausted.
    pub fn alloc(&self) -> Option<Mbuf> {
        // SAFETY: the pool lives for ever, and what it hands out is the caller's alone.
        unsafe { Mbuf::own(sl_alloc(self.0)) }
    }

    /// `n` empty packets, at most [`BURST`]; none at all if the pool has not so many.
    pub fn bulk(&self, n: usize) -> Option<Burst> {
        let mut burst = Burst::new();
        if n > BURST {
            return None;
        }
        // SAFETY: the pool lives for ever; on success all `n` are written, and are the caller's alone, else none.
        unsafe {
            burst.fill(|m| match sl_alloc_bulk(self.0, m, n as c_uint) {
                0 => n,
                _ => 0,
            });
        }
        (burst.len() == n).then_some(burst)
    }

    /// A packet with these bytes; none if the pool is exhausted or they do not fit one buffer.
    pub fn packet(&self, bytes: &[u8]) -> Option<Mbuf> {
        let mut mbuf = self.alloc()?;
        mbuf.append(bytes).then_some(mbuf)
    }

    /// How many buffers are free.
    pub fn available(&self) -> u32 {
        // SAFETY: the pool lives for ever.
        unsafe { sl_pool_free(self.0) }
    }
}
