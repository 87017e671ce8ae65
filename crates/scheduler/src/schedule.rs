//! Packets come and leave.
use crate::child::Band;
use crate::node::WIRE;
use crate::packet::{Chain, Packet};
use crate::profile::{CLASSES, STAMP};
use crate::subscriber::SubscriberIndex;
use crate::tree::Scheduler;
use crate::wait::WHEEL_SLOT;
use policy::pace::{parts, ticks};

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such subscriber or class.
    Unknown,
    /// The limit of the class is reached.
    ClassFull,
    /// As many packets wait as may.
    PortFull,
}

/// An empty queue has no more than this behind its first packet, for CoDel.
const SHORT: u32 = 1514;
/// The port.
pub(crate) const ROOT: u32 = 0;

/// The stamp of a time.
fn stamp(now: u64) -> u32 {
    (now >> (STAMP + 4)) as u32
}

impl<C: Chain> Scheduler<C> {
    /// Takes a packet, or gives it back.
    #[inline]
    pub fn enqueue(
        &mut self,
        to: SubscriberIndex,
        class: usize,
        mut packet: C::Packet,
        now: u64,
    ) -> Result<(), (Refused, C::Packet)> {
        let (now, at) = (parts(now), to.0 as usize);
        self.now = now;
        let Some(subscriber) = self.subscribers.get_mut(at) else {
            return Err((Refused::Unknown, packet));
        };
        if subscriber.is_vacant || class >= CLASSES {
            return Err((Refused::Unknown, packet));
        }
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let settings = &profile.classes[class];
        let queue = &mut self.queues[at * CLASSES + class];
        let octets = queue.octets + packet.octets().max(1);
        let is_full = queue.octets > 0 && octets > settings.limit;
        if is_full || self.waiting >= self.most_packets {
            self.drops[at * CLASSES + class].tail += 1;
            let refused = match is_full {
                true => Refused::ClassFull,
                false => Refused::PortFull,
            };
            return Err((refused, packet));
        }
        packet.set_stamp(stamp(now));
        queue.chain.push(packet);
        queue.octets = octets;
        self.waiting += 1;
        if subscriber.backlog & 1 << class != 0 {
            return Ok(());
        }
        // with packets of a class without a rate it waits already, and only a strict one would change for what
        let is_strict = profile.strict & 1 << class != 0;
        let waits = !is_strict && subscriber.backlog & !profile.paced != 0;
        subscriber.backlog |= 1 << class;
        if !waits {
            self.catch_up();
            self.wake(at, now);
        }
        Ok(())
    }

    /// Gives a packet back at once if it may leave, and nobody waits whose turn it would be before; otherwise takes it as
    /// [`Scheduler::enqueue`] does. It takes no share from anybody, so it is charged to rates alone.
    #[inline]
    pub fn offer(
        &mut self,
        to: SubscriberIndex,
        class: usize,
        packet: C::Packet,
        now: u64,
    ) -> Result<Option<C::Packet>, (Refused, C::Packet)> {
        let (at, ticks) = (to.0 as usize, now);
        let now = parts(now);
        if !self.is_way_free(at, class, now) {
            return self.enqueue(to, class, packet, ticks).map(|()| None);
        }
        let octets = packet.octets().max(1);
        let subscriber = &mut self.subscribers[at];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let queue = &mut self.queues[at * CLASSES + class];
        queue.most_octets = queue.most_octets.max(octets);
        queue.packets += 1;
        queue.sent += u64::from(octets);
        if let Some(delays) = profile.classes[class].delays {
            queue.codel.drops(delays, 0, stamp(now), true);
        }
        let past = now.saturating_sub(self.slack);
        subscriber.charge_rates(profile, class, octets, [past, now]);
        let parent = subscriber.parent;
        self.charge(parent, octets, true, now);
        Ok(Some(packet))
    }

    /// Whether a class may send, and nobody waits on its way.
    #[inline(always)]
    fn is_way_free(&self, at: usize, class: usize, now: u64) -> bool {
        let Some(subscriber) = self.subscribers.get(at) else {
            return false;
        };
        if subscriber.backlog != 0 || subscriber.is_vacant || class >= CLASSES {
            return false;
        }
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let is_limited = profile.paced & 1 << class != 0 && subscriber.class_next[class] > now;
        !is_limited
            && subscriber.next <= now
            && self.is_free_above(subscriber.parent, Band::Excess, now)
    }

    /// Asks for a subscriber's line. Callers with many packets make a pass over them with this, one with
    /// [`Scheduler::prefetch_queue`], and one with [`Scheduler::prefetch_last`].
    #[inline(always)]
    pub fn prefetch_subscriber(&self, SubscriberIndex(at): SubscriberIndex) {
        if let Some(subscriber) = self.subscribers.get(at as usize) {
            C::prefetch(subscriber);
        }
    }

    /// Asks for the queue of a class.
    #[inline(always)]
    pub fn prefetch_queue(&self, to: SubscriberIndex, class: usize) {
        if let Some(queue) = self.queues.get(to.0 as usize * CLASSES + class) {
            C::prefetch(queue);
        }
    }

    /// Asks for the last packet of a queue, behind which the next one comes.
    #[inline(always)]
    pub fn prefetch_last(&self, to: SubscriberIndex, class: usize) {
        if let Some(queue) = self.queues.get(to.0 as usize * CLASSES + class) {
            queue.chain.prefetch_last();
        }
    }

    /// Lets packets leave whose time has come, at most `most`: `leave` gets them. `dropped` gets those that CoDel drops. Returns how many
    /// have left.
    #[inline]
    pub fn dequeue(
        &mut self,
        now: u64,
        most: usize,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(C::Packet),
    ) -> usize {
        let now = parts(now);
        self.now = now;
        self.catch_up();
        if self.nodes[ROOT as usize].next > now || self.is_late(now) {
            self.expire(now);
        }
        // where some have waited for their share, all whose time has come have to be known before one of them has its turn
        let first = match self.is_short {
            true => Band::Guaranteed,
            false => Band::Excess,
        };
        let mut left = self.serve_waiting(first, most, now, leave, dropped);
        left += self.serve_due(most - left, now, leave, dropped);
        left += self.serve_waiting(Band::Excess, most - left, now, leave, dropped);
        self.is_short = self.nodes[ROOT as usize].band().is_some();
        left
    }

    /// The tick at which there is something to do next, if packets wait. It may be over.
    pub fn deadline(&self) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        let root = &self.nodes[ROOT as usize];
        let port = root.band().map(|_| root.next);
        let wheel = self.wheel.first().map(|slot| slot << WHEEL_SLOT);
        port.into_iter().chain(wheel).min().map(ticks)
    }

    /// Lets the next packet of a class leave whose turn it is, and charges it to all on the way. Returns how many have left: none if CoDel has
    /// dropped all that waited.
    pub(crate) fn serve(
        &mut self,
        at: usize,
        class: usize,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(C::Packet),
    ) -> usize {
        let packet = self.take(at, class, now, dropped);
        let mut served = 0;
        if let Some(packet) = &packet {
            let octets = packet.octets().max(1);
            served = octets + WIRE;
            let subscriber = &mut self.subscribers[at];
            let profile = &self.profiles[usize::from(subscriber.profile)];
            let past = now.saturating_sub(self.slack);
            let is_committed = subscriber.charge(profile, class, octets, [past, now]);
            let parent = subscriber.parent;
            self.charge(parent, octets, is_committed, now);
        }
        self.stand(at, served, now);
        let mut above = self.subscribers[at].parent;
        while above != ROOT {
            self.return_node(above, served, now);
            above = self.nodes[above as usize].parent;
        }
        let left = usize::from(packet.is_some());
        packet
            .into_iter()
            .for_each(|packet| leave(SubscriberIndex(at as u32), packet));
        left
    }

    /// Takes the first packet of a queue that CoDel does not drop.
    #[inline]
    fn take(
        &mut self,
        at: usize,
        class: usize,
        now: u64,
        dropped: &mut impl FnMut(C::Packet),
    ) -> Option<C::Packet> {
        let subscriber = &mut self.subscribers[at];
        let queue = &mut self.queues[at * CLASSES + class];
        let delays = self.profiles[usize::from(subscriber.profile)].classes[class].delays;
        let (mut packet, now) = (None, stamp(now));
        queue.most_octets = queue.most_octets.max(queue.octets);
        while let Some(first) = queue.chain.pop() {
            self.waiting -= 1;
            queue.octets -= first.octets().max(1);
            let waited = now.wrapping_sub(first.stamp());
            let is_short = queue.octets <= SHORT;
            let drops = |delays| queue.codel.drops(delays, waited, now, is_short);
            if !delays.is_some_and(drops) {
                queue.packets += 1;
                queue.sent += u64::from(first.octets().max(1));
                packet = Some(first);
                break;
            }
            self.drops[at * CLASSES + class].delay += 1;
            dropped(first);
        }
        if queue.octets == 0 {
            subscriber.backlog &= !(1 << class);
        }
        packet
    }

    /// Charges a packet to a node and to those above it, up to the port.
    #[inline(always)]
    fn charge(&mut self, mut at: u32, octets: u32, is_committed: bool, now: u64) {
        let past = now.saturating_sub(self.slack);
        while at != ROOT {
            let node = &mut self.nodes[at as usize];
            node.charge(octets, is_committed, past);
            at = node.parent;
        }
        let past = now.saturating_sub(self.port_slack);
        self.nodes[ROOT as usize].charge(octets, is_committed, past);
    }
}
