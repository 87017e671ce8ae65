//! What the scheduler needs of packets and of queues of them.
use core::mem::MaybeUninit;

/// A packet that waits.
pub trait Packet {
    /// Octets of its frame, from the Ethernet header on, without the check sequence.
    fn octets(&self) -> u32;

    /// The number that [`Packet::set_stamp`] gave it.
    fn stamp(&self) -> u32;

    /// Keeps a number with the packet: when it came.
    fn set_stamp(&mut self, stamp: u32);
}

/// Packets in the order in which they came. It owns them.
pub trait Chain: Default {
    /// What it holds.
    type Packet: Packet;

    /// Adds a packet at the end.
    fn push(&mut self, packet: Self::Packet);

    /// Takes the first packet out.
    fn pop(&mut self) -> Option<Self::Packet>;

    /// Asks for the memory that [`Chain::pop`] will need.
    fn prefetch_first(&self) {}

    /// Asks for the memory that [`Chain::push`] will need.
    fn prefetch_last(&self) {}

    /// Asks for pages that suit memory of the scheduler's own, before it is touched.
    fn large_pages<T>(_memory: &mut [MaybeUninit<T>]) {}

    /// Asks for a line of memory of the scheduler's own.
    fn prefetch<T>(_line: *const T) {}
}

impl<P: Packet> Chain for std::collections::VecDeque<P> {
    type Packet = P;

    fn push(&mut self, packet: P) {
        self.push_back(packet);
    }

    fn pop(&mut self) -> Option<P> {
        self.pop_front()
    }
}
