//! `rte_sched`, and frames for it and for ours.
use super::made;
use crate::ffi::M;
use crate::memory::Pages;
use crate::{BURST, Burst, Eal, Error, Mbuf, Pool};
use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ffi::CString;

unsafe extern "C" {
    fn sl_small_pool(name: *const c_char, n: c_uint) -> *mut c_void;
    fn sl_sched(pipes: u32, rate: u64, pipe_rate: u64, weights: *const u8) -> *mut c_void;
    fn sl_sched_address(port: *mut c_void, m: M, pipe: u32, queue: u32);
    fn sl_sched_enqueue(port: *mut c_void, m: *mut M, n: u32) -> c_int;
    fn sl_sched_dequeue(port: *mut c_void, m: *mut M, n: u32) -> c_int;
    fn sl_sched_free(port: *mut c_void);
}

/// A pool of frames of which headers matter alone, so that very many fit. Each buffer has room for 128 octets.
pub fn small_pool(_: &Eal, name: &str, frames: u32) -> Result<Pool, Error> {
    let c_name = CString::new(name).map_err(|_| Error::new(name, "a NUL in the name"))?;
    let _pages = Pages::huge();
    // SAFETY: EAL runs, and the name is a C string.
    made(unsafe { sl_small_pool(c_name.as_ptr(), frames) }, name).map(Pool)
}

/// The frame, which says from now on that it has so many octets. There is no more in its buffer than before.
pub fn claim(frame: Mbuf, octets: u32) -> Option<Mbuf> {
    let m = frame.into_raw();
    // SAFETY: it was ours alone, and is again.
    unsafe {
        (*m).pkt_len = octets;
        Mbuf::own(m)
    }
}

/// A port of `rte_sched` with one subport, and a pipe for each subscriber. Its classes are the four queues of best effort.
pub struct Sched(*mut c_void);

impl Sched {
    /// `pipes` is a power of two; rates are octets a second, of frames with preamble, gap and check sequence.
    pub fn new(
        _: &Eal,
        pipes: u32,
        rate: u64,
        pipe_rate: u64,
        weights: [u8; 4],
    ) -> Result<Self, Error> {
        // SAFETY: EAL runs, and four weights are there to be read.
        let port = unsafe { sl_sched(pipes, rate, pipe_rate, weights.as_ptr()) };
        made(port, "rte_sched").map(Sched)
    }

    /// Says in a frame's descriptor where it goes, until somebody writes its two words.
    pub fn address(&self, frame: Mbuf, pipe: u32, queue: u32) -> Option<Mbuf> {
        let m = frame.into_raw();
        // SAFETY: the port lives; the frame was ours alone, and is again.
        unsafe {
            sl_sched_address(self.0, m, pipe, queue);
            Mbuf::own(m)
        }
    }

    /// Takes the frames of a burst and says how many have found room; the others are gone.
    #[inline]
    pub fn enqueue(&mut self, burst: &mut Burst) -> usize {
        let mut queued = 0;
        // SAFETY: the port lives and owns all frames then, those that it has freed, too.
        unsafe {
            burst.thin(|m, n| {
                queued = sl_sched_enqueue(self.0, m, n as u32) as usize;
                0
            });
        }
        queued
    }

    /// Fills the empty burst with frames whose turn it is.
    #[inline]
    pub fn dequeue(&mut self, burst: &mut Burst) -> usize {
        // SAFETY: the port lives, and gives away as many frames as it says.
        unsafe { burst.fill(|m| sl_sched_dequeue(self.0, m, BURST as u32).max(0) as usize) }
    }
}

impl Drop for Sched {
    fn drop(&mut self) {
        // SAFETY: it is used no more. It frees the frames that wait.
        unsafe { sl_sched_free(self.0) }
    }
}
