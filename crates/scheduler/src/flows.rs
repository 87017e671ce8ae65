//! FQ-CoDel (RFC 8290): flows of a class by turns, those with few packets first.
use crate::packet::{Chain, Packet};
use crate::profile::Aqm;
use crate::queue::{Gone, Head, octets};
use crate::sub_queues::{NONE, SubQueues};

/// Octets that a flow sends in its turn (RFC 8290 §5.2.4): a packet of Ethernet's size.
const QUANTUM: i32 = 1514;

/// Flows that are looked at when there is too much.
const LOOKED_AT: usize = 8;

/// Flows of a class that have packets, or had some in this round (§4.2). A flow is known by its number of 32 bits, so different ones hardly ever
/// share a queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flows {
    /// Flows in their first turn.
    new: List,
    old: List,
    /// One that had the most octets when its last packet came. It is looked at when there is too much.
    fattest: u32,
    /// The last one that was looked at.
    hand: u32,
}

/// A list of queues, by their numbers.
#[derive(Clone, Copy, Default)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    fn push<C: Chain>(&mut self, at: u32, pool: &mut SubQueues<C>) {
        pool.get(at).next = NONE;
        match self.first {
            NONE => self.first = at,
            _ => pool.get(self.last).next = at,
        }
        self.last = at;
    }

    fn pop<C: Chain>(&mut self, pool: &mut SubQueues<C>) -> Option<u32> {
        let at = self.first;
        (at != NONE).then(|| {
            self.first = pool.get(at).next;
            at
        })
    }
}

impl Flows {
    /// Adds a packet to the queue of its flow. `of`: the class. Gives it back if there are as many queues as may be.
    #[inline]
    pub fn push<C: Chain>(
        &mut self,
        of: u32,
        packet: C::Packet,
        pool: &mut SubQueues<C>,
    ) -> Result<(), C::Packet> {
        let flow = (of, packet.flow(pool.key));
        let at = match pool.find(flow) {
            Some(at) => at,
            None => {
                let Some(at) = pool.add(flow) else {
                    return Err(packet);
                };
                pool.get(at).credit = QUANTUM;
                self.new.push(at, pool);
                at
            }
        };
        let fifo = &mut pool.get(at).fifo;
        fifo.push(packet);
        let octets = fifo.octets;
        if octets > pool.get(self.fattest).fifo.octets {
            self.fattest = at;
        }
        Ok(())
    }

    /// Takes the next packet: flows have their turns, and send a quantum in each. `dropped` gets what CoDel drops.
    #[inline]
    pub fn pop<C: Chain>(
        &mut self,
        aqm: &Aqm,
        now: u32,
        pool: &mut SubQueues<C>,
        gone: &mut Gone,
        dropped: &mut impl FnMut(C::Packet),
    ) -> Option<Head<C::Packet>> {
        loop {
            let is_new = self.new.first != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = list.first;
            if at == NONE {
                return None;
            }
            let queue = pool.get(at);
            let head = match aqm {
                _ if queue.credit <= 0 => {
                    self.next_turn(is_new, pool);
                    continue;
                }
                Aqm::FqCoDel(delays) => queue.fifo.managed(*delays, now, gone, dropped),
                // the profile has changed since
                _ => queue.fifo.pop(now, gone),
            };
            match head {
                Some(head) => {
                    queue.credit -= octets(&head.packet) as i32;
                    if queue.credit <= 0 {
                        self.next_turn(is_new, pool);
                    }
                    return Some(head);
                }
                None => self.has_emptied(is_new, pool),
            }
        }
    }

    /// The turn of the first flow of a list is over.
    fn next_turn<C: Chain>(&mut self, is_new: bool, pool: &mut SubQueues<C>) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        if let Some(at) = list.pop(pool) {
            pool.get(at).credit += QUANTUM;
            self.old.push(at, pool);
        }
    }

    /// The first flow of a list has no packets. A new one waits for a turn before it may be new again, so that it does not keep others from theirs
    /// (§4.2).
    fn has_emptied<C: Chain>(&mut self, is_new: bool, pool: &mut SubQueues<C>) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        let Some(at) = list.pop(pool) else {
            return;
        };
        if is_new && self.old.first != NONE {
            return self.old.push(at, pool);
        }
        self.forget(at, pool);
    }

    fn forget<C: Chain>(&mut self, at: u32, pool: &mut SubQueues<C>) {
        for seen in [&mut self.fattest, &mut self.hand] {
            if *seen == at {
                *seen = NONE;
            }
        }
        pool.remove(at);
    }

    /// Takes the first packet of the flow that has the most (§4.1), as far as is known: that which had the most, and the next ones of a way
    /// through all, are looked at. To look at all each time would take the longer the more flows a flood has.
    pub fn overflow<C: Chain>(&mut self, pool: &mut SubQueues<C>) -> Option<C::Packet> {
        for _ in 0..LOOKED_AT {
            self.hand = match self.hand {
                NONE => self.first(),
                hand => pool.get(hand).next,
            };
            if pool.get(self.hand).fifo.octets > pool.get(self.fattest).fifo.octets {
                self.fattest = self.hand;
            }
        }
        let fifo = &mut pool.get(self.fattest).fifo;
        let head = fifo.pop(0, &mut Gone::default())?;
        Some(head.packet)
    }

    /// No packet waits: the queues are given back.
    pub fn end<C: Chain>(&mut self, pool: &mut SubQueues<C>) {
        let mut flows = core::mem::take(self);
        while let Some(at) = flows.new.pop(pool).or_else(|| flows.old.pop(pool)) {
            pool.remove(at);
        }
    }

    /// The flow whose turn is next.
    pub fn first(&self) -> u32 {
        match self.new.first {
            NONE => self.old.first,
            first => first,
        }
    }
}
