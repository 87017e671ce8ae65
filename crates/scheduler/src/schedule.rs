//! Packets come and leave.
use crate::blocks::Blocks;
use crate::child::{Band, Child, Timer, slot};
use crate::node::{Entry, Node, WIRE};
use crate::packet::{Chain, Packet};
use crate::profile::{CLASSES, STAMP};
use crate::subscriber::{Choice, NEVER, SubscriberIndex, choose, classes, limited};
use crate::tree::Scheduler;
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

/// A slot of the wheel, in parts of ticks: 2^14 ticks, 6 microseconds.
const WHEEL_SLOT: u32 = 18;
/// An empty queue has no more than this behind its first packet, for CoDel.
const SHORT: u32 = 1514;
/// Those whose time has come are woken as many at a time.
const TOGETHER: usize = 64;
/// Of these, lines are asked for so many before they are needed.
const AHEAD: usize = 8;
/// The bit of the band in the number of a turn. There are fewer than 2^30 queues.
const EXCESS: u32 = 31;
/// No turn.
const NOBODY: u32 = u32::MAX;
/// The port.
const ROOT: u32 = 0;

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

    /// Whether nothing is short from a node up to the port, and nobody waits there in a band or before it.
    #[inline(always)]
    fn is_free_above(&self, mut at: u32, band: Band, now: u64) -> bool {
        loop {
            let node = &self.nodes[at as usize];
            if node.next > now || !node.is_free(band) {
                return false;
            }
            if at == ROOT {
                return true;
            }
            at = node.parent;
        }
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

    /// Whether somebody on the wheel is so late that it loses of its rate, as the caller takes fewer packets than are due: then the order of the
    /// wheel is not fair.
    fn is_late(&self, now: u64) -> bool {
        let is_late = |first| (first << WHEEL_SLOT) + self.slack < now;
        self.wheel.first().is_some_and(is_late)
    }

    /// Lets those send, at most `most` packets, who wait for their turn in a band, or in one before it.
    #[inline(always)]
    fn serve_waiting(
        &mut self,
        band: Band,
        most: usize,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(C::Packet),
    ) -> usize {
        let root = &self.nodes[ROOT as usize];
        if root.next > now || root.band().is_none_or(|first| first > band) {
            return 0;
        }
        let mut next = [0; TOGETHER];
        let n = root.waiting(&self.blocks, band, &mut next[..most.min(TOGETHER)]);
        for step in 0..3 * AHEAD {
            self.prefetch_next(&mut next[..n], step, now);
        }
        let (mut left, mut steps) = (0, 3 * AHEAD..);
        while left < most
            && self.nodes[ROOT as usize].band() <= Some(band)
            && let Some(turn) = self.next(now)
        {
            if let Some(step) = steps.next() {
                self.prefetch_next(&mut next[..n], step, now);
            }
            left += self.serve(turn, now, leave, dropped);
        }
        left
    }

    /// Takes those whose time has come from the wheel, until `most` packets have left. Where nothing is short and nobody waits in its band or
    /// before, it is the turn of each: it sends at once. The others wait for their turn.
    #[inline(always)]
    fn serve_due(
        &mut self,
        most: usize,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(C::Packet),
    ) -> usize {
        let (mut due, last, mut left) = ([0; TOGETHER], now >> WHEEL_SLOT, 0);
        loop {
            let room = (most - left).min(TOGETHER);
            let n = self.wheel.take(&mut self.blocks, last, &mut due[..room]);
            if n == 0 {
                return left;
            }
            left += self.serve_all(&mut due[..n], now, leave, dropped);
        }
    }

    /// Serves those whose timers have run out. Each is asked for its line, its queue's and its packet's, and served; what takes its time is done
    /// for others meanwhile.
    #[inline(always)]
    fn serve_all(
        &mut self,
        due: &mut [u32],
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(C::Packet),
    ) -> usize {
        let mut left = 0;
        for step in 0..due.len() + 3 * AHEAD {
            if let Some(id) = due.get(step) {
                self.prefetch_timer(Timer::of(*id));
            }
            if let Some(id) = due.get_mut(step.wrapping_sub(AHEAD)) {
                let turn = self.turn_at_once(Timer::of(*id), now);
                *id = turn.map_or(NOBODY, Turn::id);
            }
            if let Some(id) = due.get(step.wrapping_sub(2 * AHEAD))
                && let Some(queue) = self.queues.get(Turn::of(*id).queue())
            {
                queue.chain.prefetch_first();
            }
            if let Some(id) = due.get(step.wrapping_sub(3 * AHEAD))
                && *id != NOBODY
            {
                left += self.serve_at_once(Turn::of(*id), now, leave, dropped);
            }
        }
        left
    }

    /// Serves a subscriber that has come from the wheel, unless somebody has become short in the meantime: then it waits for its turn.
    #[inline(always)]
    fn serve_at_once(
        &mut self,
        turn: Turn,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(C::Packet),
    ) -> usize {
        if self.is_free_above(self.subscribers[turn.at].parent, turn.band, now) {
            return self.serve(turn, now, leave, dropped);
        }
        self.wake(turn.at, now);
        0
    }

    /// What a subscriber may send at once, if it seems so, and if this was its only timer but those of classes: otherwise it could be served for
    /// another one before this. Whoever has no turn waits where it has to.
    #[inline(always)]
    fn turn_at_once(&mut self, timer: Timer, now: u64) -> Option<Turn> {
        if let Timer::Subscriber(at) | Timer::Committed(at) = timer {
            let places = &mut self.subscribers[at as usize].places;
            places.clear(timer);
            if !places.has_timer()
                && let Some(turn) = self.choice(at, now)
                && self.nodes[ROOT as usize].is_free(turn.band)
            {
                self.prefetch_turn(turn);
                return Some(turn);
            }
        }
        self.fire(timer, now);
        None
    }

    /// What a subscriber may send.
    #[inline(always)]
    fn choice(&self, at: u32, now: u64) -> Option<Turn> {
        let at = at as usize;
        let subscriber = self.subscribers.get(at)?;
        let profile = &self.profiles[usize::from(subscriber.profile)];
        match choose(subscriber, profile, now) {
            Choice::Class(class, band) => Some(Turn { at, class, band }),
            _ => None,
        }
    }

    /// Asks for what a packet needs that leaves.
    #[inline(always)]
    fn prefetch_turn(&self, turn: Turn) {
        if turn.band == Band::Guaranteed {
            C::prefetch(&self.subscribers[turn.at].committed);
        }
        C::prefetch(&self.queues[turn.queue()]);
    }

    /// Asks for the line of the subscriber whose timer it is.
    #[inline(always)]
    fn prefetch_timer(&self, timer: Timer) {
        if let Timer::Subscriber(at) | Timer::Committed(at) | Timer::Class(at, _) = timer {
            self.prefetch_subscriber(SubscriberIndex(at));
        }
    }

    /// Asks for what one more of the next packets needs: the line of its subscriber, and later those of its queue and of itself. Who sends may
    /// change in the meantime; then it was in vain.
    #[inline(always)]
    fn prefetch_next(&self, next: &mut [u32], step: usize, now: u64) {
        if let Some(child) = next.get_mut(step) {
            *child = self.first_of(Child::of(*child)).unwrap_or(NOBODY);
            self.prefetch_subscriber(SubscriberIndex(*child));
        }
        if let Some(at) = next.get_mut(step.wrapping_sub(AHEAD)) {
            let turn = self.choice(*at, now);
            turn.inspect(|turn| self.prefetch_turn(*turn));
            *at = turn.map_or(NOBODY, |turn| turn.queue() as u32);
        }
        if let Some(queue) = next.get(step.wrapping_sub(2 * AHEAD))
            && let Some(queue) = self.queues.get(*queue as usize)
        {
            queue.chain.prefetch_first();
        }
    }

    /// The subscriber whose turn it is when a child's is.
    #[inline(always)]
    fn first_of(&self, mut child: Child) -> Option<u32> {
        loop {
            match child {
                Child::Subscriber(at) => return Some(at),
                Child::Node(at) => child = self.nodes[at as usize].first(&self.blocks)?,
            }
        }
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

    /// Moves the wheel on, before it is used after a time without packets.
    #[inline(always)]
    pub(crate) fn catch_up(&mut self) {
        self.wheel
            .catch_up(&mut self.blocks, self.now >> WHEEL_SLOT);
    }

    /// Puts a subscriber that has packets where it has to wait: on the wheel, or among the children of its aggregate. Nothing changes if
    /// it is there already.
    pub(crate) fn wake(&mut self, at: usize, now: u64) {
        if let Some((parent, band)) = self.stand(at, 0, now) {
            self.wake_node(parent, band, now);
        }
    }

    /// The same, but for what has to be done for the parent, which is returned with the band in which it has another child. `served`: octets
    /// that the subscriber has sent just now.
    #[inline(always)]
    fn stand(&mut self, at: usize, served: u32, now: u64) -> Option<(u32, Band)> {
        let subscriber = &self.subscribers[at];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        match choose(subscriber, profile, now) {
            Choice::Nothing => None,
            Choice::Limited => {
                let next = subscriber.next;
                self.set_timer(at, Timer::Subscriber(at as u32), next);
                None
            }
            Choice::ClassesLimited => {
                let limited = limited(subscriber, profile, now);
                self.set_class_timers(at, limited);
                None
            }
            Choice::Class(_, band) => {
                if band == Band::Excess {
                    self.await_guarantee(at, now);
                }
                self.enter(at, band, served)
            }
        }
    }

    /// A subscriber that waits for its share may be guaranteed something before its turn comes.
    #[inline(always)]
    fn await_guarantee(&mut self, at: usize, now: u64) {
        let subscriber = &self.subscribers[at];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let strict = limited(subscriber, profile, now) & profile.strict;
        let next = subscriber.committed_next;
        if next != NEVER {
            self.set_timer(at, Timer::Committed(at as u32), next);
        }
        if strict != 0 {
            self.set_class_timers(at, strict);
        }
    }

    #[inline(never)]
    fn set_class_timers(&mut self, at: usize, mask: u8) {
        for class in classes(mask) {
            let next = self.subscribers[at].class_next[class];
            self.set_timer(at, Timer::Class(at as u32, class), next);
        }
    }

    /// Lets a timer of a subscriber run, unless it does.
    #[inline(always)]
    fn set_timer(&mut self, at: usize, timer: Timer, time: u64) {
        let places = &mut self.subscribers[at].places;
        if !places.has(timer) {
            places.set(timer);
            self.wheel
                .insert(&mut self.blocks, wheel_slot(time), timer.id());
        }
    }

    /// Puts a subscriber into a band of its parent, unless it is there.
    #[inline(always)]
    fn enter(&mut self, at: usize, band: Band, served: u32) -> Option<(u32, Band)> {
        let subscriber = &mut self.subscribers[at];
        if subscriber.places.is_in(band) {
            return None;
        }
        subscriber.places.enter(band);
        let parent = subscriber.parent;
        let entry = Entry {
            child: Child::Subscriber(at as u32),
            tag: &mut subscriber.tag,
            served: subscriber.share.time(served),
        };
        self.nodes[parent as usize].insert(&mut self.blocks, band, entry);
        Some((parent, band))
    }

    /// Puts a node that has a child in this band where it has to wait, and those above it.
    fn wake_node(&mut self, mut at: u32, band: Band, now: u64) {
        while at != ROOT {
            let node = &self.nodes[at as usize];
            if node.places.is_in(band) || self.waits_for_rate(at, now) {
                return;
            }
            let (blocks, [node, parent]) = self.with_parent(at);
            node.places.enter(band);
            let above = node.parent;
            parent.insert(blocks, band, node.entry(at, 0));
            at = above;
        }
    }

    /// Whether a node has to wait for its rate; if so, its timer runs.
    #[inline(always)]
    fn waits_for_rate(&mut self, at: u32, now: u64) -> bool {
        let node = &mut self.nodes[at as usize];
        let (waits, timer) = (node.next > now, Timer::Node(at));
        if waits && !node.places.has(timer) {
            node.places.set(timer);
            self.wheel
                .insert(&mut self.blocks, wheel_slot(node.next), timer.id());
        }
        waits
    }

    /// A node that is not the port, and its parent; and the blocks of both.
    #[inline(always)]
    fn with_parent(&mut self, at: u32) -> (&mut Blocks, [&mut Node; 2]) {
        let parent = self.nodes[at as usize].parent;
        let both = self.nodes.get_disjoint_mut([at as usize, parent as usize]);
        let both = both.expect("an aggregate is not its own parent");
        (&mut self.blocks, both)
    }

    /// Wakes those whose time has come: some at once, so that their lines come together.
    fn expire(&mut self, now: u64) {
        let (mut due, last) = ([0; TOGETHER], now >> WHEEL_SLOT);
        loop {
            let n = self.wheel.take(&mut self.blocks, last, &mut due);
            if n == 0 {
                break;
            }
            for id in &due[..n] {
                self.prefetch_timer(Timer::of(*id));
            }
            for id in &due[..n] {
                self.fire(Timer::of(*id), now);
            }
        }
        self.catch_up();
    }

    /// A timer has run out.
    fn fire(&mut self, timer: Timer, now: u64) {
        match timer {
            Timer::Node(at) => {
                self.nodes[at as usize].places.clear(timer);
                self.wake_node_in_all(at, now);
            }
            Timer::Subscriber(at) | Timer::Committed(at) | Timer::Class(at, _) => {
                self.subscribers[at as usize].places.clear(timer);
                self.wake(at as usize, now);
                self.release(at);
            }
        }
    }

    /// Wakes a node in each band in which it has children.
    pub(crate) fn wake_node_in_all(&mut self, at: u32, now: u64) {
        for band in Band::ALL {
            if self.nodes[at as usize].has(band) {
                self.wake_node(at, band, now);
            }
        }
    }

    /// Puts a node on the way of a packet that has left where it has to wait, if it has more.
    #[inline(always)]
    fn return_node(&mut self, at: u32, served: u32, now: u64) {
        let node = &self.nodes[at as usize];
        let misses = Band::ALL.map(|band| node.has(band) && !node.places.is_in(band));
        if misses == [false; 2] || self.waits_for_rate(at, now) {
            return;
        }
        let (blocks, [node, parent]) = self.with_parent(at);
        for band in Band::ALL {
            if misses[band as usize] {
                node.places.enter(band);
                parent.insert(blocks, band, node.entry(at, served));
            }
        }
    }

    /// The class of a subscriber that may send next. The nodes on its way are out of the calendars.
    #[inline(always)]
    fn next(&mut self, now: u64) -> Option<Turn> {
        let mut at = ROOT;
        if self.nodes[at as usize].next > now {
            return None;
        }
        loop {
            let node = &mut self.nodes[at as usize];
            let Some(band) = node.band() else {
                // this way ended in a node whose children have gone, or nobody waits
                if at == ROOT {
                    return None;
                }
                while at != ROOT {
                    self.wake_node_in_all(at, now);
                    at = self.nodes[at as usize].parent;
                }
                continue;
            };
            let Some((child, due)) = node.pop(&mut self.blocks, band) else {
                continue;
            };
            match child {
                Child::Node(child) => {
                    if self.is_turn_of_node(child, band, due, now) {
                        at = child;
                    }
                }
                Child::Subscriber(child) => {
                    if let Some(turn) = self.turn(child as usize, at, band, due, now) {
                        return Some(turn);
                    }
                }
            }
        }
    }

    /// Whether a node that was the next one of a band of its parent may send; if not, it waits where it has to.
    #[inline(always)]
    fn is_turn_of_node(&mut self, at: u32, band: Band, due: u64, now: u64) -> bool {
        let node = &mut self.nodes[at as usize];
        if band == Band::Excess && slot(node.tag) > due {
            // too far ahead for the calendar
            let (blocks, [node, parent]) = self.with_parent(at);
            parent.insert(blocks, band, node.entry(at, 0));
            return false;
        }
        node.places.leave(band);
        let may_send = node.next <= now;
        if !may_send {
            self.wake_node_in_all(at, now);
        }
        may_send
    }

    /// The class with which a subscriber that was the next one may send; if it may not, it waits where it has to.
    fn turn(&mut self, child: usize, at: u32, band: Band, due: u64, now: u64) -> Option<Turn> {
        let subscriber = &mut self.subscribers[child];
        let is_early = band == Band::Excess && slot(subscriber.tag) > due;
        if is_early && subscriber.backlog != 0 && subscriber.parent == at {
            let entry = Entry {
                child: Child::Subscriber(child as u32),
                tag: &mut subscriber.tag,
                served: 0,
            };
            self.nodes[at as usize].insert(&mut self.blocks, band, entry);
            return None;
        }
        subscriber.places.leave(band);
        let profile = &self.profiles[usize::from(subscriber.profile)];
        if let Choice::Class(class, chosen) = choose(subscriber, profile, now)
            && chosen <= band
            && subscriber.parent == at
        {
            return Some(Turn {
                at: child,
                class,
                band,
            });
        }
        self.wake(child, now);
        self.release(child as u32);
        None
    }

    /// Lets the next packet of a class leave whose turn it is, and charges it to all on the way. Returns how many have left: none if CoDel has
    /// dropped all that waited.
    fn serve(
        &mut self,
        Turn { at, class, .. }: Turn,
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
            let is_committed = subscriber.charge_rates(profile, class, octets, [past, now]);
            subscriber.charge_shares(profile, class, octets, is_committed);
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

/// The slot of the wheel at whose beginning a time is over.
fn wheel_slot(time: u64) -> u64 {
    (time + (1 << WHEEL_SLOT) - 1) >> WHEEL_SLOT
}

/// A class of a subscriber that sends.
#[derive(Clone, Copy)]
struct Turn {
    at: usize,
    class: usize,
    band: Band,
}

impl Turn {
    /// The number of its queue.
    #[inline(always)]
    fn queue(self) -> usize {
        self.at * CLASSES + self.class
    }

    /// A number that says what it is, and not [`NOBODY`].
    #[inline(always)]
    fn id(self) -> u32 {
        self.queue() as u32 | (self.band as u32) << EXCESS
    }

    #[inline(always)]
    fn of(id: u32) -> Self {
        let queue = (id & !(1 << EXCESS)) as usize;
        Turn {
            at: queue / CLASSES,
            class: queue % CLASSES,
            band: Band::ALL[(id >> EXCESS) as usize],
        }
    }
}
