//! Whose turn it is: those who wait for it in the calendars, and those whose time has come where nobody does.
use crate::child::{Band, Child, Timer, slot};
use crate::choice::Choice;
use crate::packet::Chain;
use crate::profile::CLASSES;
use crate::queue::Queue;
use crate::schedule::{Dropped, ROOT};
use crate::subscriber::SubscriberIndex;
use crate::tree::Scheduler;
use crate::wait::WHEEL_SLOT;

/// Those whose time has come, and those whose turn is next, are looked at so many at a time.
pub(crate) const TOGETHER: usize = 64;
/// Of these, lines are asked for so many before they are needed.
const AHEAD: usize = 8;
/// The bit of the band in the number of a turn. There are fewer than 2^28 subscribers.
const EXCESS: u32 = 31;
/// No turn.
const NOBODY: u32 = u32::MAX;

impl<C: Chain> Scheduler<C> {
    /// Whether somebody on the wheel is so late that it loses of its rate, as the caller takes fewer packets than are due: then the order of the
    /// wheel is not fair.
    pub(crate) fn is_late(&self, now: u64) -> bool {
        let is_late = |first| (first << WHEEL_SLOT) + self.slack < now;
        self.wheel.first().is_some_and(is_late)
    }

    /// Lets those send, at most `most` packets, who wait for their turn in a band, or in one before it.
    #[inline(always)]
    pub(crate) fn serve_waiting(
        &mut self,
        band: Band,
        most: usize,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(Dropped, C::Packet),
    ) -> usize {
        let root = &self.nodes[ROOT as usize];
        if root.next > now || root.band().is_none_or(|first| first > band) {
            return 0;
        }
        let mut next = [0; TOGETHER];
        let most_next = root.most_packets(now.saturating_sub(self.port_slack), now);
        let most_next = most.min(most_next).min(TOGETHER);
        let n = self.upcoming(band, &mut next[..most_next]);
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
            let is_guaranteed = turn.band == Band::Guaranteed;
            left += self.serve((turn.at, turn.class), is_guaranteed, now, leave, dropped);
        }
        left
    }

    /// Those who have the next turns in a band if no others come, as many as there is room for. Returns how many.
    fn upcoming(&self, band: Band, into: &mut [u32]) -> usize {
        let mut n = self.nodes[ROOT as usize].waiting(&self.blocks, band, into);
        // where nodes are few, each of them has several turns
        while 2 * n <= into.len()
            && let Some(Child::Node(_)) = into[..n].first().copied().map(Child::of)
        {
            n = self.unfold(into, n);
        }
        n
    }

    /// Puts several children of each node in the place of the node, in turns. Returns how many there are then.
    fn unfold(&self, into: &mut [u32], n: usize) -> usize {
        let (each, mut turns) = (into.len() / n, [NOBODY; TOGETHER]);
        for (place, child) in into[..n].iter().enumerate() {
            let (mut own, mut m) = ([*child; TOGETHER], 1);
            if let Child::Node(at) = Child::of(*child) {
                let node = &self.nodes[at as usize];
                let waiting = |band| node.waiting(&self.blocks, band, &mut own[..each]);
                m = node.band().map_or(0, waiting);
            }
            for (turn, child) in own[..m].iter().enumerate() {
                turns[turn * n + place] = *child;
            }
        }
        let all = turns.into_iter().filter(|child| *child != NOBODY);
        into.iter_mut()
            .zip(all)
            .map(|(to, child)| *to = child)
            .count()
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
        if band == Band::Excess && slot(node.tags[band as usize]) > due {
            // too far ahead for the calendar
            self.insert_node(at, band);
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
    #[inline(always)]
    fn turn(&mut self, child: usize, at: u32, band: Band, due: u64, now: u64) -> Option<Turn> {
        let subscriber = &mut self.subscribers[child];
        let is_early = band == Band::Excess && slot(subscriber.tag) > due;
        if is_early && subscriber.backlog != 0 && subscriber.parent == at {
            self.insert_subscriber(child, band, 0);
            return None;
        }
        subscriber.places.leave(band);
        let subscriber = &self.subscribers[child];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        if let Choice::Class(class, chosen) = self.choose(subscriber, profile, now)
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
            *at = turn.map_or(NOBODY, |turn| self.prefetch_turn(turn) as u32);
        }
        if let Some(queue) = next.get(step.wrapping_sub(2 * AHEAD))
            && let Some(queue) = self.queues.get(*queue as usize)
        {
            queue.prefetch_first(&self.sub_queues);
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

    /// Takes those whose time has come from the wheel, until `most` packets have left. Where nothing is short and nobody waits in its band or
    /// before, it is the turn of each: it sends at once. The others wait for their turn.
    #[inline(always)]
    pub(crate) fn serve_due(
        &mut self,
        most: usize,
        now: u64,
        leave: &mut impl FnMut(SubscriberIndex, C::Packet),
        dropped: &mut impl FnMut(Dropped, C::Packet),
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
        dropped: &mut impl FnMut(Dropped, C::Packet),
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
                && let Some(queue) = self.queue_of(*id)
            {
                queue.prefetch_first(&self.sub_queues);
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
        dropped: &mut impl FnMut(Dropped, C::Packet),
    ) -> usize {
        if self.is_free_above(self.subscribers[turn.at].parent, turn.band, now) {
            // it takes no turn from anybody
            return self.serve((turn.at, turn.class), false, now, leave, dropped);
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

    /// Whether nothing is short from a node up to the port, and nobody waits there in a band or before it.
    #[inline(always)]
    pub(crate) fn is_free_above(&self, mut at: u32, band: Band, now: u64) -> bool {
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

    /// What a subscriber may send.
    #[inline(always)]
    fn choice(&self, at: u32, now: u64) -> Option<Turn> {
        let at = at as usize;
        let subscriber = self.subscribers.get(at)?;
        let profile = &self.profiles[usize::from(subscriber.profile)];
        match self.choose(subscriber, profile, now) {
            Choice::Class(class, band) => Some(Turn { at, class, band }),
            _ => None,
        }
    }

    /// Asks for what a packet needs that leaves. Returns the number of its queue.
    #[inline(always)]
    fn prefetch_turn(&self, turn: Turn) -> usize {
        if turn.band == Band::Guaranteed {
            C::prefetch(&self.subscribers[turn.at].committed);
        }
        let number = self.number(turn.at, turn.class);
        C::prefetch(&self.queues[number]);
        number
    }

    /// The queue of a turn's number; `None`: it is no turn.
    #[inline(always)]
    fn queue_of(&self, id: u32) -> Option<&Queue<C>> {
        let turn = Turn::of(id);
        match id == NOBODY {
            true => None,
            false => self.queues.get(self.number(turn.at, turn.class)),
        }
    }

    /// Asks for the line of the subscriber whose timer it is.
    #[inline(always)]
    pub(crate) fn prefetch_timer(&self, timer: Timer) {
        if let Timer::Subscriber(at) | Timer::Committed(at) | Timer::Class(at, _) = timer {
            self.prefetch_subscriber(SubscriberIndex(at));
        }
    }
}

/// A class of a subscriber that sends.
#[derive(Clone, Copy)]
struct Turn {
    at: usize,
    class: usize,
    band: Band,
}

impl Turn {
    /// A number that says what it is, and not [`NOBODY`].
    #[inline(always)]
    fn id(self) -> u32 {
        (self.at * CLASSES + self.class) as u32 | (self.band as u32) << EXCESS
    }

    #[inline(always)]
    fn of(id: u32) -> Self {
        let of_all = (id & !(1 << EXCESS)) as usize;
        Turn {
            at: of_all / CLASSES,
            class: of_all % CLASSES,
            band: Band::ALL[(id >> EXCESS) as usize],
        }
    }
}
