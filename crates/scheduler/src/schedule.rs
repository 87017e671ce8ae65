//! Packets come and leave.
use crate::child::Band;
use crate::node::WIRE;
use crate::packet::{Chain, Packet};
use crate::profile::STAMP;
use crate::subscriber::{Kind, LINE_CLASSES, Subscriber, SubscriberIndex, charge_extended, lines};
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
    /// Room is short, and the subscriber has its share.
    SubscriberFull,
    /// Room is short, and an aggregate has its share.
    AggregateFull,
    /// Room is short, and the port has its share.
    PortFull,
}

/// Why a packet was dropped that had been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its class has reached its limit, and its flow has more there than others.
    Full,
    /// Packets have waited for too long.
    Delay,
}

/// The port.
pub(crate) const ROOT: u32 = 0;

/// The stamp of a time.
fn stamp(now: u64) -> u32 {
    (now >> (STAMP + 4)) as u32
}

impl<C: Chain> Scheduler<C> {
    /// Takes a packet, or gives it back. Where room is short, it may give back another packet of the class in its place.
    #[inline]
    pub fn enqueue(
        &mut self,
        SubscriberIndex(at): SubscriberIndex,
        class: usize,
        packet: C::Packet,
        now: u64,
    ) -> Result<(), (Refused, C::Packet)> {
        let (now, at) = (parts(now), at as usize);
        self.now = now;
        let subscriber = self.subscribers.get(at);
        match class < LINE_CLASSES && subscriber.is_some_and(Subscriber::is_there) {
            true => self.push((at, class), at * LINE_CLASSES + class, packet, now),
            false => self.enqueue_further((at, class), packet, now),
        }
    }

    /// The same for a further class, which may have no line yet, or for a subscriber or class that there is not.
    #[cold]
    fn enqueue_further(
        &mut self,
        (at, class): (usize, usize),
        packet: C::Packet,
        now: u64,
    ) -> Result<(), (Refused, C::Packet)> {
        match self.make_queue(at, class) {
            Some(number) => self.push((at, class), number, packet, now),
            None => Err((Refused::Unknown, packet)),
        }
    }

    /// Takes a packet into the queue with a number.
    #[inline(always)]
    fn push(
        &mut self,
        (at, class): (usize, usize),
        number: usize,
        packet: C::Packet,
        now: u64,
    ) -> Result<(), (Refused, C::Packet)> {
        let is_full = self.is_full((at, class), number, &packet);
        match is_full || self.waiting >= self.plenty {
            true => self.push_if_room((at, class), number, (packet, now), is_full),
            false => self.put((at, class), number, packet, now),
        }
    }

    /// Takes a packet where room is short or the class is full. It is a call, so that it takes no registers from all other packets.
    #[inline(never)]
    fn push_if_room(
        &mut self,
        to: (usize, usize),
        number: usize,
        (packet, now): (C::Packet, u64),
        is_full: bool,
    ) -> Result<(), (Refused, C::Packet)> {
        let (at, _) = to;
        match !is_full && self.has_room(at, number) {
            true => self.put(to, number, packet, now),
            false => self.put_in_place(to, number, (packet, now), is_full),
        }
    }

    /// Whether a class is above its limit with one more packet.
    #[inline(always)]
    fn is_full(&self, (at, class): (usize, usize), number: usize, packet: &C::Packet) -> bool {
        let profile = &self.profiles[usize::from(self.subscribers[at].profile)];
        let octets = self.queues[number].octets;
        octets > 0 && octets + packet.octets().max(1) > profile.classes[class].limit
    }

    /// Takes a packet for which there is no room, if its class has queues of flows: the flow that has the most loses one. Refuses all others.
    #[cold]
    fn put_in_place(
        &mut self,
        (at, class): (usize, usize),
        number: usize,
        (packet, now): (C::Packet, u64),
        is_full: bool,
    ) -> Result<(), (Refused, C::Packet)> {
        let queue = &self.queues[number];
        let is_by_flows = queue.is_by_flows() && queue.octets > 0;
        let refused = match is_full && !is_by_flows {
            true => Some(Refused::ClassFull),
            false if self.has_room(at, number) => None,
            false => Some(self.who_has_it(at)),
        };
        if let Some(refused) = refused
            && !is_by_flows
        {
            self.refuse(number);
            return Err((refused, packet));
        }
        let octets = packet.octets().max(1);
        self.put((at, class), number, packet, now)?;
        let exchanged = refused.map_or(Ok(()), |refused| self.exchange((at, number), refused));
        if is_full {
            self.overflow((at, class), number, octets);
        }
        exchanged
    }

    /// Puts a packet into the queue with a number.
    #[inline(always)]
    fn put(
        &mut self,
        (at, class): (usize, usize),
        number: usize,
        mut packet: C::Packet,
        now: u64,
    ) -> Result<(), (Refused, C::Packet)> {
        let profile = &self.profiles[usize::from(self.subscribers[at].profile)];
        let (stamp, aqm) = (stamp(now), &profile.classes[class].aqm);
        packet.set_stamp(stamp);
        let (queue, pool) = (&mut self.queues[number], &mut self.sub_queues);
        if let Err(packet) = queue.push(number as u32, aqm, (packet, stamp), pool) {
            self.refuse(number);
            return Err((Refused::PortFull, packet));
        }
        self.count_in(at);
        let subscriber = &mut self.subscribers[at];
        if subscriber.backlog & 1 << class != 0 {
            return Ok(());
        }
        let profile = &self.profiles[usize::from(subscriber.profile)];
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

    /// The flow that has the most in a class loses packets until there is no more than the limit of a packet that has come. They are given
    /// away with the next ones that leave.
    fn overflow(&mut self, (at, class): (usize, usize), number: usize, octets: u32) {
        let profile = &self.profiles[usize::from(self.subscribers[at].profile)];
        let limit = profile.classes[class].limit.max(octets);
        let (queue, mut dropped) = (&mut self.queues[number], 0);
        while queue.octets > limit
            && let Some(packet) = queue.overflow(&mut self.sub_queues)
        {
            self.overflowed.push(packet);
            dropped += 1;
        }
        self.tallies[number].tail += u64::from(dropped);
        self.count_drops(number, dropped.into());
        self.count_out(at, dropped);
    }

    /// Counts a packet that a class does not take.
    #[cold]
    pub(crate) fn refuse(&mut self, number: usize) {
        self.tallies[number].tail += 1;
        self.count_drops(number, 1);
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
        let at = to.0 as usize;
        let kind = self.subscribers.get(at).map(|subscriber| subscriber.kind);
        if kind != Some(Kind::Whole) || class >= LINE_CLASSES {
            return self.offer_extended(to, class, packet, now);
        }
        match self.passes((at, class), packet.octets(), parts(now), false) {
            true => Ok(Some(packet)),
            false => self.enqueue(to, class, packet, now).map(|()| None),
        }
    }

    /// The same for a subscriber with further classes. The first packet of such a class has to be taken: so it gets its line.
    #[cold]
    fn offer_extended(
        &mut self,
        to: SubscriberIndex,
        class: usize,
        packet: C::Packet,
        now: u64,
    ) -> Result<Option<C::Packet>, (Refused, C::Packet)> {
        let of = (to.0 as usize, class);
        match self.has_queue(of) && self.passes(of, packet.octets(), parts(now), true) {
            true => Ok(Some(packet)),
            false => self.enqueue(to, class, packet, now).map(|()| None),
        }
    }

    /// Whether a packet of so many octets leaves at once; if so, it is charged.
    #[inline(always)]
    fn passes(
        &mut self,
        (at, class): (usize, usize),
        octets: u32,
        now: u64,
        is_extended: bool,
    ) -> bool {
        if !self.is_way_free(at, class, now) {
            return false;
        }
        let octets = octets.max(1);
        let number = self.number(at, class);
        let (subscriber, further) = lines(&mut self.subscribers, at, is_extended);
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let queue = &mut self.queues[number];
        queue.pass(&profile.classes[class].aqm, octets, stamp(now));
        let past = now.saturating_sub(self.slack);
        subscriber.charge_rates(further, (profile, class), octets, [past, now]);
        let parent = subscriber.parent;
        self.charge((parent, octets), [false; 2], 0, now);
        true
    }

    /// Whether a class may send, and nobody waits on its way.
    #[inline(always)]
    fn is_way_free(&self, at: usize, class: usize, now: u64) -> bool {
        let subscriber = &self.subscribers[at];
        if subscriber.backlog != 0 {
            return false;
        }
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let is_paced = profile.paced & 1 << class != 0;
        let is_limited = is_paced && self.class_next(subscriber, class) > now;
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
        if let Some(queue) = self.queues.get(self.number(to.0 as usize, class)) {
            C::prefetch(queue);
        }
    }

    /// Asks for the last packet of a queue, behind which the next one comes.
    #[inline(always)]
    pub fn prefetch_last(&self, to: SubscriberIndex, class: usize) {
        if let Some(queue) = self.queues.get(self.number(to.0 as usize, class)) {
            queue.prefetch_last();
        }
    }

    /// Lets packets leave whose time has come, at most `most`: `leave` gets them. `dropped` gets those that are dropped. Returns how many
    /// have left.
    #[inline]
    pub fn dequeue(
        &mut self,
        now: u64,
        most: usize,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(Dropped, C::Packet),
    ) -> usize {
        let now = parts(now);
        self.now = now;
        while let Some(packet) = self.overflowed.pop() {
            self.waiting -= 1;
            dropped(Dropped::Full, packet);
        }
        self.catch_up();
        if self.share.is_some() {
            return self.dequeue_shared(now, most, leave, dropped);
        }
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
        let port = root.band().map(|_| self.port_next());
        let wheel = self.wheel.first().map(|slot| slot << WHEEL_SLOT);
        // otherwise there is only what was dropped
        let first = port.into_iter().chain(wheel).min().unwrap_or(self.now);
        Some(ticks(first))
    }

    /// Lets the next packet of a class leave whose turn it is, and charges it to all on the way. Returns how many have left: none if all
    /// that waited was dropped. `is_guaranteed`: it has waited for its turn among those that are.
    pub(crate) fn serve(
        &mut self,
        (at, class): (usize, usize),
        is_guaranteed: bool,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(Dropped, C::Packet),
    ) -> usize {
        let packet = self.take(at, class, now, dropped);
        let mut served = 0;
        if let Some(packet) = &packet {
            let octets = packet.octets().max(1);
            served = octets + WIRE;
            let times = [now.saturating_sub(self.slack), now];
            let subscriber = &mut self.subscribers[at];
            let parent = subscriber.parent;
            let profile = &self.profiles[usize::from(subscriber.profile)];
            let is_committed = match subscriber.kind == Kind::Extended {
                true => charge_extended(&mut self.subscribers, at, (profile, class), octets, times),
                // which changes nothing, but says that the class is in the line
                false => subscriber.charge(None, (profile, class % LINE_CLASSES), octets, times),
            };
            if profile.strict & 1 << class != 0 {
                self.subscribers[at].note_strict(profile, octets, self.strict_slack, now);
            }
            self.charge((parent, octets), [is_guaranteed, !is_committed], 1, now);
        }
        self.stand(at, served, now);
        let mut above = self.subscribers[at].parent;
        while above != ROOT {
            self.return_node(above, now);
            above = self.nodes[above as usize].parent;
        }
        if class >= LINE_CLASSES {
            self.shed(at);
        }
        let left = usize::from(packet.is_some());
        packet
            .into_iter()
            .for_each(|packet| leave(SubscriberIndex(at as u32), packet));
        left
    }

    /// Takes the packet of a class whose turn it is; `None`: all that waited was dropped.
    #[inline]
    fn take(
        &mut self,
        at: usize,
        class: usize,
        now: u64,
        dropped: &mut impl FnMut(Dropped, C::Packet),
    ) -> Option<C::Packet> {
        let number = self.number(at, class);
        let subscriber = &mut self.subscribers[at];
        let settings = &self.profiles[usize::from(subscriber.profile)].classes[class];
        let limits = (&settings.aqm, settings.longest_wait);
        let queue = &mut self.queues[number];
        let dropped = &mut |packet| dropped(Dropped::Delay, packet);
        let (head, gone) = queue.pop(limits, stamp(now), &mut self.sub_queues, dropped);
        self.waiting -= gone.packets;
        subscriber.waiting -= gone.packets as u16;
        if queue.octets == 0 {
            subscriber.backlog &= !(1 << class);
        }
        let looked_at = head.as_ref().filter(|_| queue.is_looked_at());
        let (packets, waited) = (queue.packets, looked_at.map(|head| head.waited));
        if gone.drops + gone.marks > 0 {
            self.count_delays(number, &gone);
        }
        if let Some(waited) = waited {
            self.count_wait(number, (packets, waited), now);
        }
        head.map(|head| head.packet)
    }

    /// Charges a packet to a node and to those above it, up to the port, and to their shares in these bands. `waited`: how many fewer wait there.
    #[inline(always)]
    fn charge(&mut self, (mut at, octets): (u32, u32), counts: [bool; 2], waited: u32, now: u64) {
        let past = now.saturating_sub(self.slack);
        while at != ROOT {
            let node = &mut self.nodes[at as usize];
            node.charge(octets, counts, past);
            node.waiting -= waited;
            at = node.parent;
        }
        let past = now.saturating_sub(self.port_slack);
        self.nodes[ROOT as usize].charge(octets, counts, past);
    }
}
