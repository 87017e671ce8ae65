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

    /// A number that packets of the same flow (addresses, protocol, ports) have in common, and others hardly ever. `key` is secret, so that
    /// senders cannot make flows whose numbers are the same.
    fn flow(&self, _key: u64) -> u32 {
        0
    }

    /// Whether its sender is told of congestion by a mark.
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    /// Marks it with [`Ecn::Congested`]. It is called for packets alone that say another thing than [`Ecn::NotCapable`].
    fn mark(&mut self) {}
}

/// Explicit Congestion Notification of a packet: the two bits of the IP header (RFC 3168 §5, RFC 9331 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Its sender is told by drops alone.
    #[default]
    NotCapable = 0,
    /// ECT(1): its sender expects to be told at once and often, and to have nearly no delay (L4S).
    L4s = 1,
    /// ECT(0): its sender takes a mark as it takes a drop.
    Classic = 2,
    /// CE: it is marked already.
    Congested = 3,
}

impl Ecn {
    /// The two bits; further bits are not looked at.
    #[inline(always)]
    pub fn of(bits: u8) -> Self {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::L4s,
            2 => Ecn::Classic,
            _ => Ecn::Congested,
        }
    }

    /// Whether a mark tells its sender something.
    #[inline(always)]
    pub fn is_capable(self) -> bool {
        self != Ecn::NotCapable
    }

    /// Whether it belongs into the queue of low latency (RFC 9331 §5.1): a marked one may have been of L4S.
    #[inline(always)]
    pub fn is_low_latency(self) -> bool {
        matches!(self, Ecn::L4s | Ecn::Congested)
    }
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
