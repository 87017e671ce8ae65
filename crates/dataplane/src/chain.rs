//! Frames that wait in the queues of subscribers, as the scheduler needs them.
use crate::nodes::ip::Family;
use core::mem::MaybeUninit;
use dpdk::{Chain, Mbuf, large_pages, prefetch};

/// A frame that waits.
#[derive(Debug)]
pub struct WaitingFrame(pub Mbuf);

impl WaitingFrame {
    /// Address family of the packet in the frame, as [`note`] has kept it.
    pub(crate) fn family(&self) -> Family {
        match self.0.note() {
            0 => Family::V4,
            _ => Family::V6,
        }
    }
}

/// What a frame that waits keeps of the address family of its packet.
pub(crate) fn note(family: Family) -> u16 {
    family as u16
}

impl scheduler::Packet for WaitingFrame {
    #[inline(always)]
    fn octets(&self) -> u32 {
        self.0.frame_len() as u32
    }

    #[inline(always)]
    fn stamp(&self) -> u32 {
        self.0.stamp()
    }

    #[inline(always)]
    fn set_stamp(&mut self, stamp: u32) {
        self.0.set_stamp(stamp);
    }
}

/// The frames of a queue.
#[derive(Debug, Default)]
pub struct FrameChain(Chain);

impl scheduler::Chain for FrameChain {
    type Packet = WaitingFrame;

    #[inline(always)]
    fn push(&mut self, frame: WaitingFrame) {
        self.0.push(frame.0);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<WaitingFrame> {
        self.0.pop().map(WaitingFrame)
    }

    #[inline(always)]
    fn prefetch_first(&self) {
        prefetch(self.0.first());
    }

    #[inline(always)]
    fn prefetch_last(&self) {
        prefetch(self.0.last());
    }

    fn large_pages<T>(memory: &mut [MaybeUninit<T>]) {
        large_pages(memory);
    }

    #[inline(always)]
    fn prefetch<T>(line: *const T) {
        prefetch(line);
    }
}
