//! Node `queue`: frames wait for their turn. Frames of sessions whose policies have queues are in those of their classes; by a port with a
//! rate, all other frames have a queue as well. What the turn is, the scheduler says. Drops: `queue-full`, `queue-delay`, `queue-purged`,
//! `subscriber-queues-full`, `aggregate-queues-full`, `port-queues-full`, `egress-queue-full`.
mod aggregates;
mod view;

use crate::api::{PolicyIndex, PortIndex, SegmentRates, SessionEntry};
use crate::chain::{FrameChain, WaitingFrame};
use crate::compiled::CompiledPolicy;
use crate::counters::{Shared, add};
use crate::drops::DropReason;
use crate::nodes::ip::Family;
use crate::nodes::session;
use crate::tables::sessions::Sessions;
use aggregates::Aggregates;
use core::hash::BuildHasher;
use dpdk::{BURST, Burst, Mbuf};
use foldhash::quality::RandomState;
use policy::Rate;
use scheduler::{
    Discipline, Dropped, Management, PORT, ProfileIndex, QueueProfile, QueueSettings, Refused,
    Scheduler, Settings, SharedRate, SubscriberIndex, SubscriberSettings,
};
use std::sync::Arc;
pub use view::{PartState, PortPart, QueueState};

/// Queues of the frames of a policy's classes, and the share of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// The first class is that of frames without one; the others are the policy's, in their order.
    pub profile: QueueProfile,
    /// Share of a session where several have less than they want: 1 to 1,000.
    pub weight: u16,
}

/// The queues of a session: where they are, and for which version of its policy they were made.
#[derive(Clone, Copy, Debug)]
struct QueueLine {
    /// The compilation of the policy, or 0: the settings have to be looked at again.
    made_of: u32,
    subscriber: Option<SubscriberIndex>,
    port: u16,
}

impl QueueLine {
    const NONE: QueueLine = QueueLine {
        made_of: 0,
        subscriber: None,
        port: 0,
    };
}

/// What waits at a worker.
pub(crate) struct Queues {
    /// By the ports' numbers.
    ports: Box<[Option<Box<PortQueues>>]>,
    /// By the sessions' places.
    sessions: Vec<QueueLine>,
    limits: QueueLimits,
    /// Frames that wait for any port.
    waiting: usize,
    leaving: Leaving,
}

/// How much there may be at a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub ports: u16,
    pub sessions: usize,
    /// Frames that wait for all ports together, so that packets which arrive find buffers.
    pub packets: usize,
    /// The worker's number, and how many there are.
    pub worker: u16,
    pub workers: u16,
    /// Ticks in a second.
    pub hz: u64,
}

/// What waits for a port.
struct PortQueues {
    scheduler: Scheduler<FrameChain>,
    /// The port's rate: all frames wait for it. The workers share it.
    rate: Option<Rate>,
    /// For each policy that has queues the profile, and the compilation that it was made of.
    profiles: Vec<(PolicyIndex, u32, ProfileIndex)>,
    /// The profile of frames that are in no session's queue, and their queue.
    others: (ProfileIndex, Option<SubscriberIndex>),
    /// They wait: for the port's rate, or for those that have waited for a rate that is gone.
    others_wait: bool,
    aggregates: Aggregates,
    /// Place of the session of each queue's subscriber.
    owners: Vec<u32>,
    /// Frames whose turn it was but that the port did not take.
    left: Burst,
    /// Frames that were counted last with those of all ports.
    counted: usize,
}

/// Owner of frames that are in no session's queue.
const NOBODY: u32 = u32::MAX;

/// Frames without a queue of a session wait for this long at most at the port's rate, in milliseconds; 16 of Ethernet's size always may.
const LONGEST_WAIT: u64 = 20;
const LEAST_QUEUE: u64 = 16 * 1500;
/// A port has at most so many times what is free of the room of all ports.
const MULTIPLE: usize = 2;
/// Weight of frames without a queue of a session, at all workers together.
const MOST_WEIGHT: u16 = 1000;

/// The class of frames that are in no session's queue: one without CoDel, as they are of many senders.
fn others_profile(rate: Option<Rate>) -> QueueProfile {
    let octets = rate.map_or(0, |rate| rate.get() * LONGEST_WAIT / 8);
    let class = QueueSettings {
        discipline: Discipline::Weighted(1),
        rate: None,
        limit: octets.max(LEAST_QUEUE).min(u32::MAX.into()) as u32,
        longest_wait: None,
        management: Management::TailDrop,
    };
    QueueProfile {
        classes: vec![class],
        ..QueueProfile::default()
    }
}

fn others_settings(profile: ProfileIndex, weight: u16) -> SubscriberSettings {
    SubscriberSettings {
        profile,
        rate: None,
        committed: None,
        weight,
        header: 0,
    }
}

impl PortQueues {
    fn new(limits: QueueLimits) -> Self {
        let mut scheduler = Scheduler::new(Settings {
            hz: limits.hz,
            rate: None,
            most_packets: limits.packets,
            key: RandomState::default().hash_one(0),
        });
        // each may have more than four classes: memory that nobody needs is not touched
        scheduler.reserve(2 * limits.sessions + 1);
        let profile = scheduler.add_profile(&others_profile(None));
        let settings = others_settings(profile, MOST_WEIGHT / limits.workers);
        let others = scheduler.add(PORT, &settings);
        PortQueues {
            scheduler,
            rate: None,
            profiles: Vec::new(),
            others: (profile, Some(others)),
            others_wait: false,
            aggregates: Aggregates::default(),
            owners: Vec::with_capacity(2 * limits.sessions + 1),
            left: Burst::new(),
            counted: 0,
        }
    }

    /// Frames that wait.
    fn waiting(&self) -> usize {
        self.scheduler.waiting() + self.left.len()
    }

    /// Removes the queues of a session. `gone` gets the frames that waited, with their classes.
    fn remove(&mut self, subscriber: SubscriberIndex, gone: &mut impl FnMut(usize, WaitingFrame)) {
        let parent = self.scheduler.parent(subscriber);
        self.scheduler.take_out(subscriber, gone);
        self.remove_unused(parent.unwrap_or(PORT));
    }

    /// Removes the queues of a session, with what waits. Returns how many frames that were.
    fn purge(&mut self, subscriber: SubscriberIndex) -> u64 {
        let mut purged = 0;
        self.remove(subscriber, &mut |_, frame| {
            purged += 1;
            drop(frame);
        });
        purged
    }

    /// Does nothing wait, and does no other worker think so?
    fn is_empty(&self) -> bool {
        self.scheduler.is_idle() && self.left.is_empty()
    }

    /// Asks for what the frames of a burst will need, a kind of lines after the other.
    fn prefetch(&self, frames: &Burst) {
        for [subscriber, _] in frames.metas() {
            self.scheduler
                .prefetch_subscriber(SubscriberIndex(subscriber));
        }
        for [subscriber, class] in frames.metas() {
            let to = SubscriberIndex(subscriber);
            self.scheduler.prefetch_queue(to, class as usize);
        }
        for [subscriber, class] in frames.metas() {
            let to = SubscriberIndex(subscriber);
            self.scheduler.prefetch_last(to, class as usize);
        }
    }

    fn set_rate(&mut self, shared: Option<Arc<SharedRate>>, limits: QueueLimits) {
        let rate = shared.as_ref().map(|shared| shared.rate());
        self.rate = rate;
        match limits.workers {
            1 => self.scheduler.set_rate(PORT, rate),
            _ => (self.scheduler).share_rate(shared.map(|shared| (shared, limits.worker))),
        }
        // without a rate, what waits and what comes behind it has the room that it had, until all of it has left
        if rate.is_some() {
            self.others_wait = true;
            let (profile, _) = &self.others;
            self.scheduler.set_profile(*profile, &others_profile(rate));
        }
    }

    /// The profile of a policy as it is now.
    fn profile(
        &mut self,
        policy: PolicyIndex,
        compilation: u32,
        rules: &QueueRules,
    ) -> ProfileIndex {
        let known = self.profiles.iter_mut().find(|(of, ..)| *of == policy);
        match known {
            Some((_, made_of, profile)) => {
                if *made_of != compilation {
                    *made_of = compilation;
                    self.scheduler.set_profile(*profile, &rules.profile);
                }
                *profile
            }
            None => {
                let profile = self.scheduler.add_profile(&rules.profile);
                self.profiles.push((policy, compilation, profile));
                profile
            }
        }
    }
}

impl Queues {
    /// Without ports.
    pub fn new(limits: QueueLimits) -> Self {
        Queues {
            ports: (0..limits.ports).map(|_| None).collect(),
            sessions: Vec::with_capacity(limits.sessions),
            limits,
            waiting: 0,
            leaving: Leaving(Vec::with_capacity(BURST)),
        }
    }

    /// A policy is another version of itself: what waits does so by the new settings of its classes, though no packet may come for long. A
    /// session's share follows with its next packet.
    pub fn change_policy(&mut self, policy: PolicyIndex, compiled: &CompiledPolicy) {
        let Some(rules) = compiled.queues() else {
            return;
        };
        for port in self.ports.iter_mut().flatten() {
            if port.profiles.iter().any(|(of, ..)| *of == policy) {
                port.profile(policy, compiled.compilation(), rules);
            }
        }
    }

    /// Asks for what [`Queues::of_session`] will need.
    #[inline(always)]
    pub fn ask_for(&self, place: usize) {
        if let Some(line) = self.sessions.get(place) {
            dpdk::prefetch(line);
        }
    }

    /// Counts again how many frames wait for a port.
    fn count(&mut self, port: u16) {
        if let Some(queues) = &mut self.ports[usize::from(port)] {
            let own = queues.waiting();
            self.waiting += own;
            self.waiting -= core::mem::replace(&mut queues.counted, own);
        }
    }

    /// Gives a port its share of the room: a multiple of what is free. So a port that stands still leaves room to the others.
    fn share_room(&mut self, port: u16) {
        self.count(port);
        if let Some(queues) = &mut self.ports[usize::from(port)] {
            let free = self.limits.packets.saturating_sub(self.waiting);
            let share = (MULTIPLE * free).min(queues.counted + free);
            let left = queues.left.len();
            queues.scheduler.set_room(share.saturating_sub(left));
        }
    }

    /// The rate of a port, which the workers share. What waits goes on waiting for the new one; `None`: frames without queues leave at
    /// once, when those that wait have left.
    pub fn set_rate(&mut self, PortIndex(port): PortIndex, rate: Option<Arc<SharedRate>>) {
        if rate.is_some() || self.ports[usize::from(port)].is_some() {
            let limits = self.limits;
            self.port(port).set_rate(rate, limits);
        }
    }

    /// The rates of segments of an access port. What waits goes on waiting, at the new rates.
    pub fn set_segment_rates(&mut self, PortIndex(port): PortIndex, rates: Arc<[SegmentRates]>) {
        self.port(port).set_segment_rates(rates);
        // the next packet of a session may find its place elsewhere
        let lines = self.sessions.iter_mut().filter(|line| line.port == port);
        lines.for_each(|line| line.made_of = 0);
    }

    fn port(&mut self, port: u16) -> &mut PortQueues {
        let limits = self.limits;
        let new = || Box::new(PortQueues::new(limits));
        self.ports[usize::from(port)].get_or_insert_with(new)
    }

    /// The rate of a port.
    pub fn rate(&self, PortIndex(port): PortIndex) -> Option<Rate> {
        self.ports[usize::from(port)].as_ref()?.rate
    }

    /// Do frames without queues wait at a port? Where the rate is gone, until those have left that waited for it: none overtakes them.
    #[inline]
    pub fn holds_others(&mut self, PortIndex(port): PortIndex) -> bool {
        let Some(port) = &mut self.ports[usize::from(port)] else {
            return false;
        };
        if port.others_wait && port.rate.is_none() {
            let (_, others) = port.others;
            let waits = others.is_some_and(|others| port.scheduler.holds(others, 0));
            // among those that the port did not take may be some of them
            port.others_wait = waits || !port.left.is_empty();
        }
        port.others_wait
    }

    /// The rates of the segments of a port.
    pub fn segment_rates(&self, PortIndex(port): PortIndex) -> &[SegmentRates] {
        let queues = self.ports[usize::from(port)].as_ref();
        queues.map_or(&[], |queues| &queues.aggregates.rates)
    }

    /// When (TSC) the next frame may leave by any port, if one waits.
    pub fn deadline(&self) -> Option<u64> {
        let ports = self.ports.iter().flatten();
        let deadlines = ports.filter_map(|port| match port.left.is_empty() {
            true => port.scheduler.deadline(),
            false => Some(0),
        });
        deadlines.min()
    }

    /// The queues of a session for this version of its policy, if they are known. Otherwise they have to be [made](Queues::renew).
    #[inline(always)]
    pub fn of_session(&self, place: usize, compilation: u32) -> Option<SubscriberIndex> {
        let line = self.sessions.get(place)?;
        (line.made_of == compilation).then_some(line.subscriber)?
    }

    /// Whether a session has queues, whatever its policy was when they were made.
    pub fn has(&self, place: usize) -> bool {
        let line = self.sessions.get(place);
        line.is_some_and(|line| line.subscriber.is_some())
    }

    /// Makes or changes the queues of a session. What waits goes on waiting.
    #[cold]
    #[inline(never)]
    pub fn renew(
        &mut self,
        place: usize,
        entry: &SessionEntry,
        (policy, compiled, rules): (PolicyIndex, &CompiledPolicy, &QueueRules),
    ) -> SubscriberIndex {
        if self.sessions.len() <= place {
            self.sessions.resize(place + 1, QueueLine::NONE);
        }
        let known = self.sessions[place].subscriber;
        let port = self.port(entry.port.0);
        let settings = SubscriberSettings {
            profile: port.profile(policy, compiled.compilation(), rules),
            rate: entry.packets.rate_down,
            committed: entry.packets.committed_rate_down,
            weight: rules.weight,
            header: session::headers(entry.tags.count()) as u8,
        };
        let parent = port.parent(entry.tags.outer.map_or(0, |tag| tag.vid));
        let subscriber = match known {
            Some(subscriber) => {
                port.scheduler.set(subscriber, &settings);
                let former = port.scheduler.parent(subscriber);
                port.scheduler.place(subscriber, parent);
                port.remove_unused(former.unwrap_or(PORT));
                subscriber
            }
            None => port.scheduler.add(parent, &settings),
        };
        let at = subscriber.0 as usize;
        if port.owners.len() <= at {
            port.owners.resize(at + 1, NOBODY);
        }
        port.owners[at] = place as u32;
        self.sessions[place] = QueueLine {
            made_of: compiled.compilation(),
            subscriber: Some(subscriber),
            port: entry.port.0,
        };
        subscriber
    }

    /// The settings of a session may have changed, or the session is gone (`None`): then its frames do not wait any more. Changed ones hold with
    /// the next frame, or when the queues are [changed](Queues::renew).
    pub fn follow(&mut self, place: usize, port: Option<PortIndex>, shared: &Shared) {
        let Some(line) = self.sessions.get_mut(place) else {
            return;
        };
        line.made_of = 0;
        if port == Some(PortIndex(line.port)) {
            return;
        }
        let line = core::mem::replace(line, QueueLine::NONE);
        let queues = &mut self.ports[usize::from(line.port)];
        if let (Some(subscriber), Some(queues)) = (line.subscriber, queues) {
            let purged = queues.purge(subscriber);
            count_drops(shared, line.port, DropReason::QueuePurged, purged);
            self.count(line.port);
        }
    }

    /// Takes the queues of a session away, for another worker: the frames that wait, in the order of each flow. The second word of each is its
    /// class. Returns how many.
    pub fn release(&mut self, place: usize, frames: &mut Vec<Mbuf>) -> usize {
        let Some(line) = self.sessions.get_mut(place) else {
            return 0;
        };
        let line = core::mem::replace(line, QueueLine::NONE);
        let queues = &mut self.ports[usize::from(line.port)];
        let (Some(subscriber), Some(queues)) = (line.subscriber, queues) else {
            return 0;
        };
        let before = frames.len();
        queues.remove(subscriber, &mut |class, WaitingFrame(mut mbuf)| {
            mbuf.set_meta([0, class as u32]);
            frames.push(mbuf);
        });
        self.count(line.port);
        frames.len() - before
    }

    /// Lets a frame wait that has waited for a session at another worker ([`Queues::release`]).
    pub fn adopt(
        &mut self,
        PortIndex(port): PortIndex,
        to: SubscriberIndex,
        mbuf: Mbuf,
        (now, shared): (u64, &Shared),
    ) {
        self.share_room(port);
        let [_, class] = mbuf.meta();
        let queues = self.port(port);
        let frame = WaitingFrame(mbuf);
        if let Err((refused, _)) = queues.scheduler.enqueue(to, class as usize, frame, now) {
            count_drops(shared, port, reason(refused), 1);
        }
        self.count(port);
    }

    /// Whether frames stand outside of the sessions' queues that sessions which move may have sent: those that a port has not taken, and
    /// those that wait for the rate of a port.
    pub fn holds_unqueued(&self) -> bool {
        self.ports.iter().flatten().any(|port| {
            let (_, others) = port.others;
            let waits = others.is_some_and(|others| port.scheduler.holds(others, 0));
            waits || !port.left.is_empty()
        })
    }

    /// Most frames that wait at the worker.
    pub fn most(&self) -> usize {
        self.limits.packets
    }

    /// Gives away what waits for a port that goes in no queue of a session. Frames that come later leave at once.
    pub fn release_others(&mut self, PortIndex(port): PortIndex, mut leave: impl FnMut(Mbuf)) {
        let Some(queues) = &mut self.ports[usize::from(port)] else {
            return;
        };
        queues.left.take_all(&mut leave);
        let (_, others) = &mut queues.others;
        (queues.rate, queues.others_wait) = (None, false);
        if let Some(others) = others.take() {
            (queues.scheduler).remove(others, &mut |WaitingFrame(mbuf)| leave(mbuf));
        }
        self.count(port);
    }

    /// The port has gone, and its sessions before it.
    pub fn remove_port(&mut self, PortIndex(port): PortIndex, shared: &Shared) {
        if let Some(queues) = self.ports[usize::from(port)].take() {
            self.waiting -= queues.counted;
            let purged = queues.waiting() as u64;
            count_drops(shared, port, DropReason::QueuePurged, purged);
        }
        for line in &mut self.sessions {
            if line.port == port {
                *line = QueueLine::NONE;
            }
        }
    }

    /// Takes frames of sessions, whose words say which queue they are for. Those that need not wait are put into the burst `at_once`, which is
    /// empty, and are counted to their sessions.
    pub fn take(
        &mut self,
        PortIndex(port): PortIndex,
        frames: &mut Burst,
        at_once: &mut Burst,
        now: u64,
        (sessions, shared): (&mut Sessions, &Shared),
    ) {
        self.share_room(port);
        let Some(queues) = &mut self.ports[usize::from(port)] else {
            // the port was removed after the frames' queues had been found
            count_drops(shared, port, DropReason::QueuePurged, frames.len() as u64);
            return frames.clear();
        };
        queues.prefetch(frames);
        let PortQueues {
            scheduler,
            owners,
            left,
            ..
        } = &mut **queues;
        scheduler.open(now);
        frames.take_all(|mbuf| {
            let [subscriber, class] = mbuf.meta();
            let (to, class) = (SubscriberIndex(subscriber), class as usize);
            let frame = WaitingFrame(mbuf);
            let taken = match left.is_empty() {
                true => scheduler.offer(to, class, frame, now),
                false => scheduler.enqueue(to, class, frame, now).map(|()| None),
            };
            match taken {
                Ok(None) => {}
                Ok(Some(frame)) => {
                    if let Some(place) = owner(owners, to) {
                        sessions.count_down(place, frame.family(), frame.0.frame_len());
                    }
                    // there is room
                    let _ = at_once.push(frame.0);
                }
                Err((refused, _)) => count_drops(shared, port, reason(refused), 1),
            }
        });
        scheduler.close();
        self.count(port);
    }

    /// Takes frames that are in no session's queue.
    pub fn take_others(
        &mut self,
        PortIndex(port): PortIndex,
        (frames, now): (&mut Burst, u64),
        shared: &Shared,
    ) {
        self.share_room(port);
        let queues = self.port(port);
        let (_, others) = &queues.others;
        let Some(others) = *others else {
            // the port is going
            count_drops(shared, port, DropReason::QueuePurged, frames.len() as u64);
            return frames.clear();
        };
        frames.take_all(|mbuf| {
            let frame = WaitingFrame(mbuf);
            if let Err((refused, _)) = queues.scheduler.enqueue(others, 0, frame, now) {
                let reason = match refused {
                    Refused::ClassFull | Refused::SubscriberFull => DropReason::EgressQueueFull,
                    _ => reason(refused),
                };
                count_drops(shared, port, reason, 1);
            }
        });
        self.count(port);
    }

    /// Moves the frames that may leave now into an empty burst, and counts them to their sessions. What the port does not take has to be
    /// [given back](Queues::give_back).
    pub fn depart(
        &mut self,
        PortIndex(port): PortIndex,
        frames: &mut Burst,
        now: u64,
        (sessions, shared): (&mut Sessions, &Shared),
    ) {
        let leaving = &mut self.leaving;
        let queues = self.ports[usize::from(port)].as_mut();
        let Some(queues) = queues.filter(|queues| !queues.is_empty()) else {
            return;
        };
        core::mem::swap(&mut queues.left, frames);
        let room = BURST - frames.len();
        let [mut full, mut late] = [0; 2];
        let PortQueues {
            scheduler, owners, ..
        } = &mut **queues;
        let leave = &mut |subscriber: SubscriberIndex, frame: WaitingFrame| {
            leaving.add(sessions, owners, subscriber, &frame);
            // there is room
            let _ = frames.push(frame.0);
        };
        scheduler.dequeue(now, room, leave, &mut |dropped, _| match dropped {
            Dropped::Full => full += 1,
            Dropped::Delay => late += 1,
        });
        leaving.count(sessions);
        count_drops(shared, port, DropReason::QueueFull, full);
        count_drops(shared, port, DropReason::QueueDelay, late);
        self.count(port);
    }

    /// Whether frames stand in front of a port's queues that its device did not take. Whatever comes later is behind them.
    pub fn stands_full(&self, PortIndex(port): PortIndex) -> bool {
        let port = self.ports[usize::from(port)].as_ref();
        port.is_some_and(|port| !port.left.is_empty())
    }

    /// Takes frames that leave at once and that the device does not take. In front of a port's queues there is room for a burst. Drops the
    /// others.
    pub fn keep(&mut self, PortIndex(port): PortIndex, frames: &mut Burst, shared: &Shared) {
        let mut left = self.ports[usize::from(port)]
            .as_mut()
            .map(|queues| &mut queues.left);
        let mut full = 0;
        frames.take_all(|mbuf| {
            let kept = left.as_mut().is_some_and(|left| left.push(mbuf).is_ok());
            full += u64::from(!kept);
        });
        count_drops(shared, port, DropReason::TxQueueFull, full);
        self.count(port);
    }

    /// Takes back what the port did not take.
    pub fn give_back(&mut self, PortIndex(port): PortIndex, frames: &mut Burst) {
        if !frames.is_empty()
            && let Some(queues) = &mut self.ports[usize::from(port)]
        {
            core::mem::swap(&mut queues.left, frames);
            self.count(port);
        }
    }
}

/// Place of the session whose queue it is, if it is one's.
#[inline(always)]
fn owner(owners: &[u32], SubscriberIndex(subscriber): SubscriberIndex) -> Option<u32> {
    let owner = owners.get(subscriber as usize);
    owner.copied().filter(|owner| *owner != NOBODY)
}

/// Frames that leave, which are counted to their sessions together: the places of the sessions, families and octets. While frames have waited,
/// the lines of their sessions have left the caches: all are asked for before the first is needed.
struct Leaving(Vec<(u32, Family, u32)>);

impl Leaving {
    /// Adds a frame that leaves a queue.
    #[inline(always)]
    fn add(
        &mut self,
        sessions: &Sessions,
        owners: &[u32],
        of: SubscriberIndex,
        frame: &WaitingFrame,
    ) {
        if let Some(place) = owner(owners, of) {
            sessions.ask_for_down(place);
            let octets = frame.0.frame_len() as u32;
            self.0.push((place, frame.family(), octets));
        }
    }

    /// Counts all.
    #[inline]
    fn count(&mut self, sessions: &mut Sessions) {
        for (place, family, octets) in self.0.drain(..) {
            sessions.count_down(place, family, octets as usize);
        }
    }
}

/// Why a frame was dropped that the scheduler has refused.
fn reason(refused: Refused) -> DropReason {
    match refused {
        Refused::ClassFull => DropReason::QueueFull,
        Refused::SubscriberFull => DropReason::SubscriberQueuesFull,
        Refused::AggregateFull => DropReason::AggregateQueuesFull,
        Refused::PortFull => DropReason::PortQueuesFull,
        Refused::Unknown => DropReason::QueuePurged,
    }
}

#[inline]
fn count_drops(shared: &Shared, port: u16, reason: DropReason, n: u64) {
    if n > 0 {
        add(&shared.ports[usize::from(port)].tx_dropped, n);
        shared.count_drop(reason, n);
    }
}
