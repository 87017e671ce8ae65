//! What the queues tell of themselves: to operators, and to the resource audit.
use super::{NOBODY, PortQueues, QueueLine, Queues, count_drops};
use crate::api::{PortIndex, SessionIndex};
use crate::counters::Shared;
use crate::drops::DropReason;
use crate::inspect::Held;
use crate::shard::Shard;
use policy::Rate;
use scheduler::{AggregateState, CLASSES, Limit, PORT, SubscriberIndex, WAITS};

/// Part of a port whose frames have a rate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortPart {
    /// All of it.
    Port,
    /// The access segment of this number.
    Segment(u16),
    /// A VLAN of the segment of this number; 0: untagged frames.
    Vlan(u16, u16),
}

/// What a worker's queues of a part of a port have done and hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartState {
    /// Which part.
    pub part: PortPart,
    /// Its rate: of the port that of all workers together.
    pub rate: Option<Rate>,
    /// What is counted. Its subscribers are sessions; frames in no session's queue are counted with those of the port.
    pub counts: AggregateState,
}

/// State of the queue of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Octets of frames that wait.
    pub waiting_octets: u32,
    /// The most octets that have waited.
    pub most_octets: u32,
    /// Frames that have left.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Frames that found no room.
    pub full_drops: u64,
    /// Frames that were dropped because frames have waited for too long.
    pub delay_drops: u64,
    /// Frames whose packets were marked (ECN) for the same reason.
    pub marks: u64,
    /// For every eighth of the frames that had to wait: how many left within each of the times of [`scheduler::WAITS`], and how many later.
    pub waits: [u32; WAITS.len() + 1],
    /// What frames have waited for in the last seconds.
    pub limit: Option<Limit>,
}

/// Queues that are counted at once, so that packets do not wait long: two lines of memory each at most where frames wait.
const COUNTED: u32 = 512;
/// Seconds that are the last ones.
const RECENT: u64 = 3;

impl Queues {
    /// Counts what waits for a port, from the queue with a number on, some at a time. Returns the number to go on with. After the last ones
    /// (`None`), the states of the parts of the port are in `parts`, as many as it has room for; `all` says how many there are.
    pub fn read(
        &mut self,
        PortIndex(port): PortIndex,
        from: u32,
        (parts, all): (&mut Vec<PartState>, &mut usize),
    ) -> Option<u32> {
        let queues = self.ports.get_mut(usize::from(port))?.as_mut()?;
        let next = queues.scheduler.count_waiting(from, COUNTED);
        if next.is_none() {
            let room = parts.capacity();
            *all = queues.aggregates.known.len() + 1;
            parts.extend(queues.parts().take(room));
        }
        next
    }

    /// The queues of a session, by class.
    pub fn state(&self, place: usize, now: u64) -> Option<[QueueState; CLASSES]> {
        let line = self.sessions.get(place)?;
        let queues = self.ports[usize::from(line.port)].as_ref()?;
        let subscriber = line.subscriber?;
        let recent = RECENT * self.limits.hz;
        Some(core::array::from_fn(|class| {
            let state = queues.scheduler.state(subscriber, class);
            QueueState {
                waiting_octets: state.octets,
                most_octets: state.most_octets,
                packets: state.sent,
                octets: state.sent_octets,
                full_drops: state.tail_drops,
                delay_drops: state.delay_drops,
                marks: state.marks,
                waits: state.waits,
                limit: queues.scheduler.limit(subscriber, class, (now, recent)),
            }
        }))
    }

    /// Shows the queues of sessions at all ports, from one of them on, at most as many as `found` has room for. Returns the one to go on with.
    pub fn inspect(&self, from: u32, shard: Shard, found: &mut Vec<Held>) -> Option<u32> {
        let mut first = 0;
        for (port, queues) in (0..).zip(&self.ports) {
            let Some(queues) = queues else {
                continue;
            };
            let end = first + queues.scheduler.subscribers();
            for at in from.clamp(first, end)..end {
                if found.len() == found.capacity() {
                    return Some(at);
                }
                let held = self.held(PortIndex(port), queues, at - first);
                found.extend(held.map(|(session, whole)| Held::Queues {
                    place: shard.number(at),
                    port: PortIndex(port),
                    session: session.map(|place| SessionIndex(shard.number(place))),
                    whole,
                }));
            }
            first = end;
        }
        None
    }

    /// Queues of a session, unless there are none with this number, or they are not a session's: its place, and whether it knows them.
    fn held(
        &self,
        port: PortIndex,
        queues: &PortQueues,
        number: u32,
    ) -> Option<(Option<u32>, bool)> {
        let subscriber = SubscriberIndex(number);
        if queues.scheduler.parent(subscriber).is_none() || queues.is_others(subscriber) {
            return None;
        }
        let owner = queues.owners.get(number as usize).copied();
        let owner = owner.filter(|owner| *owner != NOBODY);
        let line = owner.and_then(|owner| self.sessions.get(owner as usize));
        let knows = line.is_some_and(|line| {
            line.subscriber == Some(subscriber) && PortIndex(line.port) == port
        });
        Some((owner, knows))
    }

    /// Removes queues that [`Queues::inspect`] has shown at a place, with what waits in them.
    pub fn remove_stray(&mut self, place: u32, shared: &Shared) {
        let Some((port, number)) = self.port_of(place) else {
            return;
        };
        let Some(queues) = &mut self.ports[usize::from(port)] else {
            return;
        };
        let subscriber = SubscriberIndex(number);
        if queues.scheduler.parent(subscriber).is_none() || queues.is_others(subscriber) {
            return;
        }
        let purged = queues.purge(subscriber);
        count_drops(shared, port, DropReason::QueuePurged, purged);
        self.count(port);
        let mut lines = self.sessions.iter_mut();
        let of_queues =
            |line: &&mut QueueLine| line.port == port && line.subscriber == Some(subscriber);
        if let Some(line) = lines.find(of_queues) {
            *line = QueueLine::NONE;
        }
    }

    /// The port of the queues that are shown at a place, and their number there.
    fn port_of(&self, place: u32) -> Option<(u16, u32)> {
        let mut number = place;
        for (port, queues) in (0..).zip(&self.ports) {
            let all = queues
                .as_ref()
                .map_or(0, |queues| queues.scheduler.subscribers());
            match number.checked_sub(all) {
                Some(behind) => number = behind,
                None => return Some((port, number)),
            }
        }
        None
    }
}

impl PortQueues {
    /// Whether a subscriber's frames are those in no session's queue.
    fn is_others(&self, subscriber: SubscriberIndex) -> bool {
        let (_, others) = self.others;
        others == Some(subscriber)
    }

    /// The state of the port and of its parts.
    fn parts(&self) -> impl Iterator<Item = PartState> {
        let mut port = PartState {
            part: PortPart::Port,
            rate: self.rate,
            counts: self.scheduler.aggregate_state(PORT),
        };
        // frames in no session's queue are no subscriber
        let (_, others) = self.others;
        let waiting = &mut port.counts.waiting;
        if let Some(others) = others {
            waiting.subscribers = waiting.subscribers.saturating_sub(1);
            let waits = u32::from(self.scheduler.state(others, 0).octets > 0);
            waiting.waiting_subscribers = waiting.waiting_subscribers.saturating_sub(waits);
        }
        let known = self.aggregates.known.iter();
        let of_parts = known.map(|(part, index)| PartState {
            part: part.part(),
            rate: part.rate(&self.aggregates.rates),
            counts: self.scheduler.aggregate_state(*index),
        });
        [port].into_iter().chain(of_parts)
    }
}
