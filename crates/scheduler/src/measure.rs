//! What aggregates and the port have sent, how long packets waited there, and for what.
use crate::node::AggregateIndex;
use crate::packet::Chain;
use crate::profile::STAMP;
use crate::queue::{Gone, State, WAITS};
use crate::schedule::ROOT;
use crate::subscriber::{SubscriberIndex, classes};
use crate::tree::Scheduler;
use core::time::Duration;
use policy::pace::{PARTS, parts};

/// What packets wait for: the rate that is used up, at the lowest level where one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The rate of their class.
    Class,
    /// The rate of their subscriber.
    Subscriber,
    /// The rate of an aggregate.
    Aggregate,
    /// The rate of the port, or that at which the caller takes packets.
    Port,
}

impl Limit {
    /// Every limit, from below.
    pub const ALL: [Limit; 4] = [
        Limit::Class,
        Limit::Subscriber,
        Limit::Aggregate,
        Limit::Port,
    ];
}

/// A packet that waits for less than this is not limited: another one is just being sent.
pub const LEAST_WAIT: Duration = Duration::from_micros(100);

/// One of so many packets of a class is asked what it has waited for.
pub const ASK_AT: u64 = 32;

/// What has become of the packets of an aggregate, or of all packets of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateState {
    /// Packets that have left.
    pub packets: u64,
    /// Their octets, with check sequence, preamble and gap.
    pub octets: u64,
    /// Packets that were refused or dropped.
    pub drops: u64,
    /// For one of [`ASK_AT`] packets, if it had to wait: what it waited for, in the order of [`Limit::ALL`], if for at least [`LEAST_WAIT`].
    pub limits: [u64; Limit::ALL.len()],
    /// For the same packets: how many left within each of the times of [`WAITS`], and how many later.
    pub waits: [u64; WAITS.len() + 1],
    /// Packets that wait now.
    pub waiting_packets: u64,
    /// What stood there when it was [counted](Scheduler::count_waiting) last.
    pub waiting: Waiting,
    /// The most octets that waited when it was counted.
    pub most_octets: u64,
}

/// What stands under an aggregate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Subscribers.
    pub subscribers: u32,
    /// Those of them that have packets.
    pub waiting_subscribers: u32,
    /// Octets of these packets.
    pub octets: u64,
}

/// What a node counts seldom, beside what is charged to it.
#[derive(Default)]
pub(crate) struct Counts {
    drops: u64,
    limits: [u64; Limit::ALL.len()],
    waits: [u64; WAITS.len() + 1],
    waiting: Waiting,
    most_octets: u64,
    /// What was counted so far of what waits.
    counting: Waiting,
}

/// The number of a unit of age: the time is too coarse for anything but seconds, and does not begin again in half a century.
const AGE: u32 = 30 + PARTS;

/// The age of a time, in its own units.
fn age(now: u64) -> u32 {
    (now >> AGE) as u32
}

/// What the last packet of a class that was looked at waited for, and when it left.
#[derive(Clone, Copy, Default)]
pub(crate) struct LastLimit {
    limit: Option<Limit>,
    at: u32,
}

impl<C: Chain> Scheduler<C> {
    /// What an aggregate or the port has sent.
    ///
    /// # Panics
    /// If there is no such aggregate.
    pub fn aggregate_state(&self, aggregate: AggregateIndex) -> AggregateState {
        let node = &self.nodes[aggregate.0 as usize];
        let counts = &*node.counts;
        AggregateState {
            packets: node.packets,
            octets: node.octets,
            drops: counts.drops,
            limits: counts.limits,
            waits: counts.waits,
            waiting_packets: self.waiting_at(aggregate.0) as u64,
            waiting: counts.waiting,
            most_octets: counts.most_octets,
        }
    }

    /// Counts what waits, some subscribers at a time, since there may be very many: those from a number on, which is 0 at first. Returns the
    /// number to go on with; `None`: all are counted, and [`Scheduler::aggregate_state`] has it.
    pub fn count_waiting(&mut self, from: u32, most: u32) -> Option<u32> {
        if from == 0 {
            let nodes = self.nodes.iter_mut();
            nodes.for_each(|node| node.counts.counting = Waiting::default());
        }
        let all = self.subscribers.len();
        let end = (from as usize + most as usize).min(all);
        for at in (from as usize).min(end)..end {
            let subscriber = &self.subscribers[at];
            if !subscriber.is_there() {
                continue;
            }
            let full = classes(subscriber.backlog);
            let octets = full.map(|class| u64::from(self.queues[self.number(at, class)].octets));
            let (octets, is_waiting) = (octets.sum::<u64>(), subscriber.backlog != 0);
            let mut above = Some(subscriber.parent);
            while let Some(at) = above {
                let node = &mut self.nodes[at as usize];
                let counting = &mut node.counts.counting;
                counting.subscribers += 1;
                counting.waiting_subscribers += u32::from(is_waiting);
                counting.octets += octets;
                above = (at != ROOT).then_some(node.parent);
            }
        }
        if end < all {
            return Some(end as u32);
        }
        for node in &mut self.nodes {
            let counts = &mut node.counts;
            counts.waiting = counts.counting;
            counts.most_octets = counts.most_octets.max(counts.counting.octets);
        }
        None
    }

    /// What packets of a class waited for in the last seconds (from `most_age` ticks before `now` on), as far as the last one that was looked
    /// at tells.
    pub fn limit(
        &self,
        SubscriberIndex(at): SubscriberIndex,
        class: usize,
        (now, most_age): (u64, u64),
    ) -> Option<Limit> {
        let last = self.tallies.get(self.number(at as usize, class))?.last;
        let since = age(parts(now.saturating_sub(most_age)));
        last.limit.filter(|_| last.at >= since)
    }

    /// Counts packets of a class that were dropped and marked for the delay.
    #[inline(never)]
    pub(crate) fn count_delays(&mut self, number: usize, gone: &Gone) {
        let tally = &mut self.tallies[number];
        tally.delay += u64::from(gone.drops);
        tally.marks += u64::from(gone.marks);
        if gone.drops > 0 {
            self.count_drops(number, gone.drops.into());
            let (subscriber, _) = self.owner(number);
            let parent = self.subscribers[subscriber].parent;
            self.count_above(parent, |waiting| *waiting -= gone.drops);
        }
    }

    /// Counts how long the packet of a class has waited that leaves now, as the so many-th. For what, is asked for some of them, and for the first
    /// one after some time, so that slow classes can tell it, too.
    #[inline(always)]
    pub(crate) fn count_wait(&mut self, number: usize, (packets, waited): (u64, u32), now: u64) {
        let slot = self.waits.partition_point(|bound| *bound <= waited);
        let tally = &mut self.tallies[number];
        tally.waits[slot] = tally.waits[slot].saturating_add(1);
        let is_counted = packets.is_multiple_of(ASK_AT);
        if is_counted || tally.last.at != age(now) {
            self.ask(number, (waited, slot), now, is_counted);
        }
    }

    /// Asks what a packet has waited for, and counts it on its way, if it is one of those.
    #[inline(never)]
    fn ask(&mut self, number: usize, (waited, slot): (u32, usize), now: u64, is_counted: bool) {
        let limit = match waited < self.least_wait {
            true => None,
            false => Some(self.limit_of(number, waited, now)),
        };
        let at = age(now);
        self.tallies[number].last = LastLimit { limit, at };
        if is_counted {
            self.on_the_way(number, |counts| {
                counts.waits[slot] += 1;
                if let Some(limit) = limit {
                    counts.limits[limit as usize] += 1;
                }
            });
        }
    }

    /// Counts packets of a class that were refused or dropped, where they would have passed.
    pub(crate) fn count_drops(&mut self, number: usize, packets: u64) {
        self.on_the_way(number, |counts| counts.drops += packets);
    }

    /// Changes what is counted of each aggregate above a class, and of the port.
    fn on_the_way(&mut self, number: usize, change: impl Fn(&mut Counts)) {
        let (subscriber, _) = self.owner(number);
        let mut at = self.subscribers[subscriber].parent;
        while at != ROOT {
            let node = &mut self.nodes[at as usize];
            change(&mut node.counts);
            at = node.parent;
        }
        change(&mut self.nodes[ROOT as usize].counts);
    }

    /// What a packet has waited for that leaves now: the lowest level whose rate is used up. Such a level may send not much earlier than all
    /// together may, since what it loses beyond its burst, somebody above has taken; and not before the packet came. If all might have sent
    /// long before, it was the caller.
    fn limit_of(&self, number: usize, waited: u32, now: u64) -> Limit {
        let (subscriber, class) = self.owner(number);
        let subscriber = &self.subscribers[subscriber];
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let of_class = match profile.paced & 1 << class != 0 {
            true => self.class_next(subscriber, class),
            false => 0,
        };
        let above = |at: u32| {
            let node = &self.nodes[at as usize];
            (at != ROOT).then_some((node.next, node.parent))
        };
        let mut together = of_class.max(subscriber.next);
        let mut at = subscriber.parent;
        while let Some((next, parent)) = above(at) {
            (together, at) = (together.max(next), parent);
        }
        together = together.max(self.nodes[ROOT as usize].next);
        if together + self.slack < now {
            return Limit::Port;
        }
        let came = now.saturating_sub(u64::from(waited) << (STAMP + PARTS));
        // half of the burst, since a level that is not used up has a whole one
        let least = came.max(together.saturating_sub(self.slack / 2));
        if of_class > least {
            return Limit::Class;
        }
        if subscriber.next > least {
            return Limit::Subscriber;
        }
        let mut at = subscriber.parent;
        while let Some((next, parent)) = above(at) {
            if next > least {
                return Limit::Aggregate;
            }
            at = parent;
        }
        Limit::Port
    }

    /// Does a packet of a class wait?
    #[inline]
    pub fn holds(&self, subscriber: SubscriberIndex, class: usize) -> bool {
        let queue = self.queues.get(self.number(subscriber.0 as usize, class));
        queue.is_some_and(|queue| queue.octets > 0)
    }

    /// A class. All is 0 if no packet of it has come, or there is no such subscriber or class.
    pub fn state(&self, subscriber: SubscriberIndex, class: usize) -> State {
        let at = self.number(subscriber.0 as usize, class);
        let (Some(queue), Some(tally)) = (self.queues.get(at), self.tallies.get(at)) else {
            return State::default();
        };
        State {
            octets: queue.octets,
            most_octets: queue.most_octets,
            sent: queue.packets,
            sent_octets: queue.sent,
            tail_drops: tally.tail,
            delay_drops: tally.delay,
            marks: tally.marks,
            waits: tally.waits,
        }
    }
}
