//! Packets that wait, linked to each other.
use crate::ffi::M;
use crate::mbuf::Mbuf;
use core::ptr::NonNull;

/// Packets in the order in which they came, without room of its own: each is linked to the next one by the two words that otherwise
/// travel with it ([`Mbuf::meta`]). It owns them; dropping it frees them.
///
/// ```compile_fail
/// fn twice(chain: &dpdk::Chain) -> dpdk::Chain { chain.clone() }
/// ```
#[derive(Default)]
pub struct Chain {
    /// The first and the last packet.
    ends: Option<(NonNull<crate::ffi::RawMbuf>, NonNull<crate::ffi::RawMbuf>)>,
}

// SAFETY: the mbufs belong to this value alone, and mempools take buffers back from any thread.
unsafe impl Send for Chain {}

const _: () = assert!(size_of::<Chain>() == 16);

impl Chain {
    /// Does none wait?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Adds a packet at the end.
    #[inline(always)]
    pub fn push(&mut self, mbuf: Mbuf) {
        let Some(new) = NonNull::new(mbuf.into_raw()) else {
            return; // a packet is somewhere
        };
        let first = match self.ends {
            None => new,
            Some((first, last)) => {
                let link = new.as_ptr() as u64;
                // SAFETY: the last one is ours alone, and nothing borrows it.
                unsafe { (*last.as_ptr()).meta = [link as u32, (link >> 32) as u32] };
                first
            }
        };
        self.ends = Some((first, new));
    }

    /// Takes the first packet out. Its two words mean nothing.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Mbuf> {
        let (first, last) = self.ends?;
        self.ends = match first == last {
            true => None,
            false => {
                // SAFETY: ours alone; `push` has linked it, as it is not the last one.
                let [low, high] = unsafe { (*first.as_ptr()).meta };
                let next = (u64::from(low) | u64::from(high) << 32) as M;
                NonNull::new(next).map(|next| (next, last))
            }
        };
        // SAFETY: it was ours, and is no part of the chain any more.
        unsafe { Mbuf::own(first.as_ptr()) }
    }

    /// The first packet's descriptor, to be asked for ahead.
    #[inline(always)]
    pub fn first(&self) -> *const u8 {
        self.ends
            .map_or(core::ptr::null(), |(first, _)| first.as_ptr().cast())
    }

    /// That of the last one.
    #[inline(always)]
    pub fn last(&self) -> *const u8 {
        self.ends
            .map_or(core::ptr::null(), |(_, last)| last.as_ptr().cast())
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl core::fmt::Debug for Chain {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Chain({})",
            if self.is_empty() { "empty" } else { "packets" }
        )
    }
}
