//! The queue of a class: packets in the order in which they came, or in queues of their flows, or in two queues that are coupled.
use crate::codel::{CoDel, Delays};
use crate::dual::Dual;
use crate::flows::Flows;
use crate::measure::LastLimit;
use crate::packet::{Chain, Packet};
use crate::profile::Aqm;
use crate::sub_queues::SubQueues;
use core::time::Duration;

/// A queue with no more octets than this behind its first packet is as good as empty.
pub(crate) const SHORT: u32 = 1514;

/// Bounds of the times that packets wait by which [`State::waits`] counts them.
pub const WAITS: [Duration; 7] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
];
/// One of so many packets is looked at for how long it has waited, as each look is a line of memory.
const LOOK_AT: u64 = 8;

/// What has become of the packets of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Octets that wait.
    pub octets: u32,
    /// The most octets that have waited.
    pub most_octets: u32,
    /// Packets that have left.
    pub sent: u64,
    /// Their octets.
    pub sent_octets: u64,
    /// Packets that found no room.
    pub tail_drops: u64,
    /// Packets that were dropped since others have waited for too long.
    pub delay_drops: u64,
    /// Packets that were marked for the same reason.
    pub marks: u64,
    /// For every eighth of the packets that had to wait: how many left within each of the times of [`WAITS`], and how many later.
    pub waits: [u32; WAITS.len() + 1],
}

/// What is seldom counted of a class.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub tail: u64,
    pub delay: u64,
    pub marks: u64,
    pub waits: [u32; WAITS.len() + 1],
    pub last: LastLimit,
}

const _: () = assert!(size_of::<Tally>() <= 64);

/// Packets that have left a queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Gone {
    pub packets: usize,
    pub octets: u32,
    pub drops: u32,
    pub marks: u32,
}

/// What a packet has waited for.
#[derive(Clone, Copy)]
pub(crate) struct Head<P> {
    pub packet: P,
    pub waited: u32,
}

/// Packets in the order in which they came.
#[derive(Default)]
pub(crate) struct Fifo<C> {
    pub chain: C,
    pub octets: u32,
    pub codel: CoDel,
}

impl<C: Chain> Fifo<C> {
    #[inline(always)]
    pub fn push(&mut self, packet: C::Packet) {
        self.octets += octets(&packet);
        self.chain.push(packet);
    }

    /// Takes the first packet, without a look at how long it has waited.
    #[inline(always)]
    pub fn pop(&mut self, now: u32, gone: &mut Gone) -> Option<Head<C::Packet>> {
        let packet = self.chain.pop()?;
        let octets = octets(&packet);
        self.octets -= octets;
        gone.packets += 1;
        gone.octets += octets;
        let waited = now.wrapping_sub(packet.stamp());
        Some(Head { packet, waited })
    }

    /// Takes the first packet that CoDel does not drop; what it drops and can be marked is marked in place of that (RFC 3168 §5).
    #[inline(always)]
    pub fn managed(
        &mut self,
        delays: Delays,
        now: u32,
        gone: &mut Gone,
        dropped: &mut impl FnMut(C::Packet),
    ) -> Option<Head<C::Packet>> {
        loop {
            let mut head = self.pop(now, gone)?;
            let is_short = self.octets <= SHORT;
            if !self.codel.drops(delays, head.waited, now, is_short) {
                return Some(head);
            }
            if head.packet.ecn().is_capable() {
                head.packet.mark();
                gone.marks += 1;
                return Some(head);
            }
            gone.drops += 1;
            dropped(head.packet);
        }
    }
}

/// Where the packets of a class wait. It is chosen when a packet comes and none waits, so that a changed profile moves nothing.
enum Waiting<C> {
    InOrder(Fifo<C>),
    Flows(Flows),
    Dual(Dual),
}

/// The queue of a class: a cache line.
#[repr(align(64))]
pub(crate) struct Queue<C> {
    waiting: Waiting<C>,
    /// Octets that wait, and the most that have.
    pub octets: u32,
    pub most_octets: u32,
    /// Octets and packets that have left.
    pub sent: u64,
    pub packets: u64,
}

// with a chain of two pointers
const _: () = assert!(size_of::<Queue<[usize; 2]>>() == 64);

impl<C: Chain> Default for Queue<C> {
    fn default() -> Self {
        Queue {
            waiting: Waiting::InOrder(Fifo::default()),
            octets: 0,
            most_octets: 0,
            sent: 0,
            packets: 0,
        }
    }
}

impl<C: Chain> Queue<C> {
    /// Adds a packet; `at` is the number of the queue. Gives it back if there is no queue for its flow.
    #[inline(always)]
    pub fn push(
        &mut self,
        at: u32,
        aqm: &Aqm,
        (packet, now): (C::Packet, u32),
        pool: &mut SubQueues<C>,
    ) -> Result<(), C::Packet> {
        if self.octets == 0 {
            self.begin(aqm, now, pool);
        }
        let octets = octets(&packet);
        match &mut self.waiting {
            Waiting::InOrder(fifo) => fifo.push(packet),
            Waiting::Flows(flows) => flows.push(at, packet, pool)?,
            Waiting::Dual(dual) => dual.push(packet, pool)?,
        }
        self.octets += octets;
        Ok(())
    }

    /// The first packet of those that will wait comes.
    #[inline(always)]
    fn begin(&mut self, aqm: &Aqm, now: u32, pool: &mut SubQueues<C>) {
        match (&mut self.waiting, aqm) {
            (Waiting::InOrder(_), Aqm::TailDrop | Aqm::CoDel(_))
            | (Waiting::Flows(_), Aqm::FqCoDel(_)) => {}
            (Waiting::Dual(dual), Aqm::DualPi2(settings)) => dual.resume(settings, now),
            _ => self.change(aqm, now, pool),
        }
    }

    /// The profile has changed.
    #[cold]
    fn change(&mut self, aqm: &Aqm, now: u32, pool: &mut SubQueues<C>) {
        self.end(pool);
        self.waiting = match aqm {
            Aqm::TailDrop | Aqm::CoDel(_) => Waiting::InOrder(Fifo::default()),
            Aqm::FqCoDel(_) => Waiting::Flows(Flows::default()),
            Aqm::DualPi2(_) => Waiting::Dual(Dual::new(now)),
        };
    }

    /// Whether a packet of another flow is dropped in place of the last one, if there is too much.
    #[inline(always)]
    pub fn is_by_flows(&self) -> bool {
        matches!(self.waiting, Waiting::Flows(_))
    }

    /// Takes a packet of the flow that has the most.
    pub fn overflow(&mut self, pool: &mut SubQueues<C>) -> Option<C::Packet> {
        let Waiting::Flows(flows) = &mut self.waiting else {
            return None;
        };
        let packet = flows.overflow(pool)?;
        self.octets -= octets(&packet);
        Some(packet)
    }

    /// Takes the packet whose turn it is. `dropped` gets those that have waited for too long before it.
    #[inline(always)]
    pub fn pop(
        &mut self,
        (aqm, longest_wait): (&Aqm, u32),
        now: u32,
        pool: &mut SubQueues<C>,
        dropped: &mut impl FnMut(C::Packet),
    ) -> (Option<Head<C::Packet>>, Gone) {
        self.most_octets = self.most_octets.max(self.octets);
        let mut gone = Gone::default();
        let mut head = self.next(aqm, now, pool, &mut gone, dropped);
        if let Some(late) = head.take_if(|head| head.waited > longest_wait) {
            head = self.next_in_time((aqm, longest_wait), now, pool, (late, &mut gone), dropped);
        }
        self.octets -= gone.octets;
        if self.octets == 0 {
            self.end(pool);
        }
        if let Some(head) = &head {
            self.packets += 1;
            self.sent += u64::from(octets(&head.packet));
        }
        (head, gone)
    }

    /// The packet whose turn it is, however long it has waited.
    #[inline(always)]
    fn next(
        &mut self,
        aqm: &Aqm,
        now: u32,
        pool: &mut SubQueues<C>,
        gone: &mut Gone,
        dropped: &mut impl FnMut(C::Packet),
    ) -> Option<Head<C::Packet>> {
        match (&mut self.waiting, aqm) {
            (Waiting::InOrder(fifo), Aqm::CoDel(delays)) => {
                fifo.managed(*delays, now, gone, dropped)
            }
            (Waiting::InOrder(fifo), _) => fifo.pop(now, gone),
            (Waiting::Flows(flows), aqm) => flows.pop(aqm, now, pool, gone, dropped),
            (Waiting::Dual(dual), aqm) => dual.pop(aqm, now, pool, gone, dropped),
        }
    }

    /// The first packet behind a late one that has not waited for too long.
    #[cold]
    #[inline(never)]
    fn next_in_time(
        &mut self,
        (aqm, longest_wait): (&Aqm, u32),
        now: u32,
        pool: &mut SubQueues<C>,
        (late, gone): (Head<C::Packet>, &mut Gone),
        dropped: &mut impl FnMut(C::Packet),
    ) -> Option<Head<C::Packet>> {
        let mut head = Some(late);
        while let Some(late) = head.take_if(|head| head.waited > longest_wait) {
            gone.drops += 1;
            dropped(late.packet);
            head = self.next(aqm, now, pool, gone, dropped);
        }
        head
    }

    /// Nothing waits any more: queues of flows are given back.
    #[inline(always)]
    fn end(&mut self, pool: &mut SubQueues<C>) {
        match &mut self.waiting {
            Waiting::InOrder(_) => {}
            Waiting::Flows(flows) => flows.end(pool),
            Waiting::Dual(dual) => dual.end(pool),
        }
    }

    /// A packet leaves at once, as none waits.
    #[inline(always)]
    pub fn pass(&mut self, aqm: &Aqm, octets: u32, now: u32) {
        self.most_octets = self.most_octets.max(octets);
        self.packets += 1;
        self.sent += u64::from(octets);
        if let (Waiting::InOrder(fifo), Aqm::CoDel(delays)) = (&mut self.waiting, aqm) {
            fifo.codel.drops(*delays, 0, now, true);
        }
    }

    /// Whether the packet that has just left is one of those whose waiting is counted.
    #[inline(always)]
    pub fn is_looked_at(&self) -> bool {
        self.packets.is_multiple_of(LOOK_AT)
    }

    /// Takes all packets.
    pub fn purge(&mut self, pool: &mut SubQueues<C>, gone: &mut impl FnMut(C::Packet)) {
        let all = (&Aqm::TailDrop, u32::MAX);
        while self.octets > 0
            && let (Some(head), _) = self.pop(all, 0, pool, &mut |_| ())
        {
            gone(head.packet);
        }
        self.end(pool);
    }

    /// Asks for the memory that [`Queue::pop`] will need.
    #[inline(always)]
    pub fn prefetch_first(&self, pool: &SubQueues<C>) {
        match &self.waiting {
            Waiting::InOrder(fifo) => fifo.chain.prefetch_first(),
            Waiting::Flows(flows) => pool.prefetch(flows.first()),
            Waiting::Dual(dual) => pool.prefetch(dual.first()),
        }
    }

    /// Asks for the memory that [`Queue::push`] will need.
    #[inline(always)]
    pub fn prefetch_last(&self) {
        if let Waiting::InOrder(fifo) = &self.waiting {
            fifo.chain.prefetch_last();
        }
    }
}

/// What a packet counts for in a queue.
#[inline(always)]
pub(crate) fn octets(packet: &impl Packet) -> u32 {
    packet.octets().max(1)
}
