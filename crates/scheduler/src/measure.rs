//! What aggregates and the port have sent, how long packets waited there, and for what.
use crate::node::AggregateIndex;
use crate::packet::Chain;
use crate::profile::{CLASSES, STAMP};
use crate::queue::{Gone, State, WAITS};
use crate::schedule::ROOT;
use crate::subscriber::{SubscriberIndex, classes};
use crate::tree::{LEVELS, Scheduler};
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

/// What has become of the packets of an aggregate, or of all packets of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateState {
    /// Packets that have left.
    pub packets: u64,
    /// Their octets, with check sequence, preamble and gap.
    pub octets: u64,
    /// Packets that were refused or dropped.
    pub drops: u64,
    /// For every eighth of the packets that had to wait: what it waited for, in the order of [`Limit::ALL`], if it was for [`LEAST_WAIT`].
    pub limits: [u64; Limit::ALL.len()],
    /// For the same packets: how many left within each of the times of [`WAITS`], and how many later.
    pub waits: [u64; WAITS.len() + 1],
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
        self.nodes[aggregate.0 as usize].state
    }

    /// Counts what waits, some subscribers at a time, since there may be very many: those from a number on, which is 0 at first. Returns the
    /// number to go on with; `None`: all are counted, and [`Scheduler::aggregate_state`] has it.
    pub fn count_waiting(&mut self, from: u32, most: u32) -> Option<u32> {
        if from == 0 {
            let nodes = self.nodes.iter_mut();
            nodes.for_each(|node| node.counting = Waiting::default());
        }
        let all = self.subscribers.len();
        let end = (from as usize + most as usize).min(all);
        for at in (from as usize).min(end)..end {
            let subscriber = &self.subscribers[at];
            if subscriber.is_vacant {
                continue;
            }
            let full = classes(subscriber.backlog);
            let octets = full.map(|class| u64::from(self.queues[at * CLASSES + class].octets));
            let (octets, is_waiting) = (octets.sum::<u64>(), subscriber.backlog != 0);
            let mut above = Some(subscriber.parent);
            while let Some(at) = above {
                let node = &mut self.nodes[at as usize];
                node.counting.subscribers += 1;
                node.counting.waiting_subscribers += u32::from(is_waiting);
                node.counting.octets += octets;
                above = (at != ROOT).then_some(node.parent);
            }
        }
        if end < all {
            return Some(end as u32);
        }
        for node in &mut self.nodes {
            node.state.waiting = node.counting;
            node.state.most_octets = node.state.most_octets.max(node.counting.octets);
        }
        None
    }

    /// What packets of a class waited for in the last seconds (from `most_age` ticks before `now` on), as far as the last one that was looked
    /// at tells.
    ///
    /// # Panics
    /// If there is no such subscriber or class.
    pub fn limit(
        &self,
        SubscriberIndex(at): SubscriberIndex,
        class: usize,
        (now, most_age): (u64, u64),
    ) -> Option<Limit> {
        let last = self.tallies[at as usize * CLASSES + class].last;
        let since = age(parts(now.saturating_sub(most_age)));
        last.limit.filter(|_| last.at >= since)
    }

    /// Counts what was dropped and marked, and how long and for what the packet has waited that leaves now, if it is looked at.
    #[inline(never)]
    pub(crate) fn count_gone(&mut self, number: usize, gone: &Gone, waited: Option<u32>, now: u64) {
        let tally = &mut self.tallies[number];
        tally.delay += u64::from(gone.drops);
        tally.marks += u64::from(gone.marks);
        if gone.drops > 0 {
            self.count_drops(number, gone.drops.into());
        }
        let Some(waited) = waited else {
            return;
        };
        let slot = self.waits.partition_point(|bound| *bound <= waited);
        let limit = self.limit_of(number, waited, now);
        let tally = &mut self.tallies[number];
        tally.waits[slot] = tally.waits[slot].saturating_add(1);
        let at = age(now);
        tally.last = LastLimit { limit, at };
        self.on_the_way(number, |state| {
            state.waits[slot] += 1;
            if let Some(limit) = limit {
                state.limits[limit as usize] += 1;
            }
        });
    }

    /// Counts packets of a class that were refused or dropped, where they would have passed.
    pub(crate) fn count_drops(&mut self, number: usize, packets: u64) {
        self.on_the_way(number, |state| state.drops += packets);
    }

    /// Changes what is counted of each aggregate above a class, and of the port.
    fn on_the_way(&mut self, number: usize, change: impl Fn(&mut AggregateState)) {
        let mut at = self.subscribers[number / CLASSES].parent;
        while at != ROOT {
            let node = &mut self.nodes[at as usize];
            change(&mut node.state);
            at = node.parent;
        }
        change(&mut self.nodes[ROOT as usize].state);
    }

    /// What a packet has waited for that leaves now: the lowest level whose rate is used up. Such a level may send not much earlier than all
    /// together may, since what it loses beyond its burst, somebody above has taken; and not before the packet came. If all might have sent
    /// long before, it was the caller.
    fn limit_of(&self, number: usize, waited: u32, now: u64) -> Option<Limit> {
        if waited < self.least_wait {
            return None;
        }
        let came = now.saturating_sub(u64::from(waited) << (STAMP + PARTS));
        let levels = self.levels(number);
        let together = levels.iter().map(|(_, next)| *next).max()?;
        if together + self.slack < now {
            return Some(Limit::Port);
        }
        // half of the burst, since a level that is not used up has a whole one
        let is_used_up = |next: u64| next > came && next + self.slack / 2 > together;
        let mut levels = levels.into_iter();
        let used_up = levels.find(|(_, next)| is_used_up(*next));
        Some(used_up.map_or(Limit::Port, |(limit, _)| limit))
    }

    /// When each level that a packet of a class passes may send, from below.
    fn levels(&self, number: usize) -> [(Limit, u64); 3 + LEVELS] {
        let (subscriber, class) = (&self.subscribers[number / CLASSES], number % CLASSES);
        let profile = &self.profiles[usize::from(subscriber.profile)];
        let is_paced = profile.paced & 1 << class != 0;
        let of_class = subscriber.class_next[class];
        let mut levels = [(Limit::Port, self.nodes[ROOT as usize].next); 3 + LEVELS];
        levels[0] = (Limit::Class, if is_paced { of_class } else { 0 });
        levels[1] = (Limit::Subscriber, subscriber.next);
        let mut at = subscriber.parent;
        for level in &mut levels[2..2 + LEVELS] {
            if at != ROOT {
                let node = &self.nodes[at as usize];
                *level = (Limit::Aggregate, node.next);
                at = node.parent;
            }
        }
        levels
    }

    /// A class.
    ///
    /// # Panics
    /// If there is no such subscriber or class.
    pub fn state(&self, subscriber: SubscriberIndex, class: usize) -> State {
        let at = subscriber.0 as usize * CLASSES + class;
        let (queue, tally) = (&self.queues[at], &self.tallies[at]);
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
