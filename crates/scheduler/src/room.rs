//! Room for packets that wait, and how much of it each level may have.
//!
//! Each level has a dynamic threshold (A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches"): it
//! has at most a multiple or a part of what is free above it. What is free under an aggregate is its threshold less what waits there. So whoever is
//! busy alone has most of the room, and whoever comes later finds some that is free. The thresholds hold while at least half of what may wait
//! does. Below that a packet asks for nothing.
use crate::packet::Chain;
use crate::schedule::{ROOT, Refused};
use crate::tree::Scheduler;

/// An aggregate has at most so many times what is free above it.
const MULTIPLE: usize = 2;
/// A subscriber has at most one of so many parts of what is free above it. Thousands of busy ones leave more free than a burst takes.
const PART: usize = 8;
/// A subscriber has at most so many packets in any case, as 16 bits count them: one more may come before another one gives way.
const MOST: u16 = u16::MAX - 1;

impl<C: Chain> Scheduler<C> {
    /// Says how many packets may wait from now on. More of them may wait already; then there is no room until they have left.
    pub fn set_room(&mut self, most_packets: usize) {
        self.most_packets = most_packets;
        self.plenty = (most_packets / 2).min(MOST.into());
    }

    /// A packet of a subscriber waits.
    #[inline(always)]
    pub(crate) fn count_in(&mut self, at: usize) {
        self.waiting += 1;
        let subscriber = &mut self.subscribers[at];
        subscriber.waiting += 1;
        let parent = subscriber.parent;
        self.count_above(parent, |waiting| *waiting += 1);
    }

    /// Packets of a subscriber do not wait any more. The port counts them until they are given away.
    pub(crate) fn count_out(&mut self, at: usize, packets: u16) {
        let subscriber = &mut self.subscribers[at];
        subscriber.waiting -= packets;
        let parent = subscriber.parent;
        self.count_above(parent, |waiting| *waiting -= u32::from(packets));
    }

    /// Changes how many packets wait under an aggregate and those above it. The port's number is the scheduler's.
    #[inline(always)]
    pub(crate) fn count_above(&mut self, mut at: u32, change: impl Fn(&mut u32)) {
        while at != ROOT {
            let node = &mut self.nodes[at as usize];
            change(&mut node.waiting);
            at = node.parent;
        }
    }

    /// Packets that wait under an aggregate, or at the port.
    pub(crate) fn waiting_at(&self, at: u32) -> usize {
        match at {
            ROOT => self.waiting,
            _ => self.nodes[at as usize].waiting as usize,
        }
    }

    /// What is free for those under an aggregate, or the port.
    fn free_under(&self, at: u32) -> usize {
        let most = match at {
            ROOT => self.most_packets,
            _ => MULTIPLE * self.free_under(self.nodes[at as usize].parent),
        };
        most.saturating_sub(self.waiting_at(at))
    }

    /// Whether there is room for one more packet in the queue with a number. The first packet of a class needs room in the aggregate alone: a call
    /// does not lose packets to a download of the same subscriber.
    #[inline]
    pub(crate) fn has_room(&self, at: usize, number: usize) -> bool {
        let subscriber = &self.subscribers[at];
        let free = self.free_under(subscriber.parent);
        let is_first = self.queues[number].octets == 0;
        let with_it = usize::from(subscriber.waiting) + 1;
        free > 0 && (is_first || with_it * PART <= free) && subscriber.waiting < MOST
    }

    /// The level whose share is used up when a packet of a subscriber finds no room: the lowest one that has half of what its parent has.
    pub(crate) fn who_has_it(&self, at: usize) -> Refused {
        let subscriber = &self.subscribers[at];
        let (mut has, mut level) = (subscriber.waiting.into(), Refused::SubscriberFull);
        let mut above = subscriber.parent;
        loop {
            let all = self.waiting_at(above);
            if 2 * has >= all {
                return level;
            }
            if above == ROOT {
                return Refused::PortFull;
            }
            (has, level) = (all, Refused::AggregateFull);
            above = self.nodes[above as usize].parent;
        }
    }

    /// Gives back a packet of the flow that has the most, as a class has taken one without room for it.
    pub(crate) fn exchange(
        &mut self,
        (at, number): (usize, usize),
        refused: Refused,
    ) -> Result<(), (Refused, C::Packet)> {
        let Some(packet) = self.queues[number].overflow(&mut self.sub_queues) else {
            return Ok(());
        };
        self.waiting -= 1;
        self.count_out(at, 1);
        self.refuse(number);
        Err((refused, packet))
    }
}
