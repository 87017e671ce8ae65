//! What the queues of the workers tell. They are read, port after port, each time that the state is asked for: that is each second, as long as
//! there is a control plane.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dataplane::{ASK_AT, AggregateState, Limit, PartState, PortIndex, PortPart, Rate};
use mi::ListQueueAggregatesResponse;
use northbound::{PAGE, QUEUE_WAITS, QueueAggregate, QueueLimit};

use super::{ForWorker, UserPlane};

/// Maximum number of aggregates in the state.
const SHOWN: usize = 64;
/// Time between two readings, at least: rates are those of about a second, whoever else asks for the state.
const LEAST_AGE: Duration = Duration::from_millis(900);
/// Aggregates of a port for which there is room at first.
const ROOM: usize = 16;
/// Delay of frames that waited for longer than all of [`QUEUE_WAITS`], in milliseconds.
const LATER: u64 = 1000;
/// Frames wait for something if it is at least one of so many that are sent.
const NOTABLE: u64 = 10;

/// A part of a port, at all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    rate: Option<Rate>,
    counts: AggregateState,
    /// Workers that have sessions of it with queues, and the last one of them.
    workers: u32,
    worker: u16,
}

/// All parts with queues, at a time.
#[derive(Debug, Default)]
struct Reading {
    at: Duration,
    parts: BTreeMap<(PortIndex, PortPart), Part>,
}

impl Reading {
    /// Adds what a worker has.
    fn add(&mut self, (worker, port): (u16, PortIndex), state: PartState) {
        let PartState { part, rate, counts } = state;
        let known = self.parts.entry((port, part)).or_default();
        if counts.waiting.subscribers > 0 {
            (known.workers, known.worker) = (known.workers + 1, worker);
        }
        let all = &mut known.counts;
        known.rate = known.rate.or(rate);
        all.packets += counts.packets;
        all.octets += counts.octets;
        all.drops += counts.drops;
        all.most_octets += counts.most_octets;
        all.waiting_packets += counts.waiting_packets;
        let (waiting, more) = (&mut all.waiting, counts.waiting);
        waiting.octets += more.octets;
        waiting.subscribers += more.subscribers;
        waiting.waiting_subscribers += more.waiting_subscribers;
        let limits = all.limits.iter_mut().zip(counts.limits);
        limits.for_each(|(all, more)| *all += more);
        let waits = all.waits.iter_mut().zip(counts.waits);
        waits.for_each(|(all, more)| *all += more);
    }
}

impl Part {
    /// Whether there is something to show.
    fn is_used(&self) -> bool {
        self.rate.is_some() || self.counts.waiting.subscribers > 0
    }

    /// The row, without names, of a part that was like `before` so long ago.
    fn row(&self, before: &Part, time: Duration) -> QueueAggregate {
        let (now, then) = (&self.counts, &before.counts);
        let octets = now.octets.saturating_sub(then.octets);
        let bits = (octets * 8) as f64 / time.as_secs_f64().max(0.001);
        QueueAggregate {
            workers: self.workers,
            rate_bits_per_second: self.rate.map(|rate| rate.get() * 1000),
            bits_per_second: bits as u64,
            packets: now.packets,
            octets: now.octets,
            drops: now.drops,
            waiting_octets: now.waiting.octets,
            most_octets: now.most_octets,
            waiting_packets: now.waiting_packets,
            subscribers: now.waiting.subscribers.into(),
            waiting_subscribers: now.waiting.waiting_subscribers.into(),
            limited_by: limited_by(now, then)
                .map_or(QueueLimit::Unspecified, word)
                .into(),
            delay_milliseconds: delay(now, then),
            ..QueueAggregate::default()
        }
    }
}

/// What a limit is called.
pub(super) fn word(limit: Limit) -> QueueLimit {
    match limit {
        Limit::Class => QueueLimit::Class,
        Limit::Subscriber => QueueLimit::Subscriber,
        Limit::Aggregate => QueueLimit::Aggregate,
        Limit::Port => QueueLimit::Port,
    }
}

/// What most frames have waited for since then, if it was not just a few.
fn limited_by(now: &AggregateState, then: &AggregateState) -> Option<Limit> {
    let since = |n: usize| now.limits[n].saturating_sub(then.limits[n]);
    let all: u64 = (0..now.limits.len()).map(since).sum();
    let sent = now.packets.saturating_sub(then.packets);
    if all == 0 || all * ASK_AT * NOTABLE < sent {
        return None;
    }
    let limits = Limit::ALL.into_iter().enumerate();
    let most = limits.max_by_key(|(n, _)| since(*n));
    most.map(|(_, limit)| limit)
}

/// Time in milliseconds within which 99 of 100 frames that had to wait have left since then.
fn delay(now: &AggregateState, then: &AggregateState) -> Option<u64> {
    let both = now.waits.iter().zip(&then.waits);
    let counts: Vec<u64> = both.map(|(now, then)| now.saturating_sub(*then)).collect();
    let all: u64 = counts.iter().sum();
    let mut below = 0;
    let at = counts.iter().position(|count| {
        below += count;
        below > 0 && below * 100 >= all * 99
    })?;
    Some(QUEUE_WAITS.get(at).copied().unwrap_or(LATER))
}

/// What the workers have told, and what they are being asked.
#[derive(Default)]
pub(super) struct QueueReadings {
    /// Workers and ports that have not told yet; the first is being asked.
    asked: VecDeque<(u16, PortIndex)>,
    /// For so many parts of a port there is room in the next answer.
    room: usize,
    /// What has been told so far.
    next: Reading,
    now: Reading,
    before: Reading,
}

impl UserPlane {
    /// Begins to read the queues, unless that is under way or has just been done for somebody else.
    pub(super) fn read_queues(&mut self) {
        let now = self.clock.now().monotonic;
        let readings = &mut self.queues;
        let is_fresh = readings.now.at != Duration::ZERO && now < readings.now.at + LEAST_AGE;
        if is_fresh || !readings.asked.is_empty() {
            return;
        }
        readings.room = readings.room.max(ROOM);
        let workers = 0..self.controller.workers().count() as u16;
        let ports = self.ports.values().map(|port| port.index);
        let all = ports.flat_map(|port| workers.clone().map(move |worker| (worker, port)));
        readings.asked = all.collect();
        self.ask_queues(0);
    }

    /// Asks for the queues that are next, from a number on; at the end, what was told is the latest.
    fn ask_queues(&mut self, from: u32) {
        let readings = &mut self.queues;
        if let Some((worker, port)) = readings.asked.front().copied() {
            let room = readings.room;
            return self.for_worker(ForWorker::ReadQueues(worker, port, from, room));
        }
        let mut told = std::mem::take(&mut readings.next);
        told.at = self.clock.now().monotonic;
        readings.before = std::mem::replace(&mut readings.now, told);
    }

    /// Takes what a worker tells of the queues of a port. `all`: of how many parts it would have told if there had been room.
    pub(super) fn queues_told(&mut self, next: Option<u32>, parts: Vec<PartState>, all: usize) {
        let readings = &mut self.queues;
        let Some(asked) = readings.asked.front().copied() else {
            return;
        };
        if let Some(from) = next {
            return self.ask_queues(from);
        }
        if all > readings.room {
            readings.room = all.next_power_of_two();
            return self.ask_queues(0);
        }
        for part in parts {
            readings.next.add(asked, part);
        }
        readings.asked.pop_front();
        self.ask_queues(0);
    }

    /// Ports and parts of ports with queues, in the order of their names.
    fn queue_rows(&self) -> Vec<QueueAggregate> {
        let QueueReadings { now, before, .. } = &self.queues;
        // at first, all that there is was sent at an unknown time
        let is_first = before.at == Duration::ZERO;
        let used = now.parts.iter().filter(|(_, part)| part.is_used());
        let rows = used.filter_map(|((index, part), state)| {
            let then = match before.parts.get(&(*index, *part)) {
                Some(then) => *then,
                None if is_first => *state,
                None => Part::default(),
            };
            let (name, port) = self.ports.iter().find(|(_, port)| port.index == *index)?;
            let segment = |id| port.segment(id).unwrap_or_default().to_owned();
            let (segment, s_tag) = match *part {
                PortPart::Port => (String::new(), None),
                PortPart::Segment(id) => (segment(id), None),
                PortPart::Vlan(id, vlan) => (segment(id), Some(vlan.into())),
            };
            Some(QueueAggregate {
                user_plane: self.name.clone(),
                port: name.clone(),
                worker: (!segment.is_empty() && state.workers == 1).then_some(state.worker.into()),
                segment,
                s_tag,
                ..state.row(&then, now.at.saturating_sub(before.at))
            })
        });
        let mut rows: Vec<QueueAggregate> = rows.collect();
        rows.sort_by(|a, b| place(a).cmp(&place(b)));
        rows
    }

    /// Ports and parts of ports with queues, behind one of them or from the first on.
    pub(super) fn list_queues(
        &self,
        after: Option<&QueueAggregate>,
    ) -> ListQueueAggregatesResponse {
        let mut aggregates = self.queue_rows();
        aggregates.retain(|row| after.is_none_or(|after| place(row) > place(after)));
        let more = aggregates.len() > PAGE;
        aggregates.truncate(PAGE);
        ListQueueAggregatesResponse { aggregates, more }
    }

    /// Those that use most of their rates, and of these those with the longest delays; and parts of ports whose rate several workers keep.
    pub(super) fn notable_queues(&self) -> (Vec<QueueAggregate>, Vec<QueueAggregate>) {
        let mut rows = self.queue_rows();
        let split = rows.iter().filter(|row| is_split(row)).take(SHOWN);
        let split = split.cloned().collect();
        rows.sort_by_key(|row| Reverse((share(row), row.delay_milliseconds, row.drops)));
        rows.truncate(SHOWN);
        (rows, split)
    }
}

/// Where a row stands in the table.
fn place(row: &QueueAggregate) -> (&str, &str, Option<u32>) {
    (&row.port, &row.segment, row.s_tag)
}

/// Whether several workers have sessions of a part of a port, and each keeps its rate for its own. (They share the rate of a port.)
fn is_split(row: &QueueAggregate) -> bool {
    !row.segment.is_empty() && row.rate_bits_per_second.is_some() && row.workers > 1
}

/// The part of its rate that is used, in hundredths.
fn share(row: &QueueAggregate) -> u64 {
    let rate = row.rate_bits_per_second.filter(|rate| *rate > 0);
    rate.map_or(0, |rate| row.bits_per_second * 100 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::Waiting;

    fn state(part: PortPart, kbps: Option<u64>, packets: u64) -> PartState {
        PartState {
            part,
            rate: kbps.map(Rate::kbps),
            counts: AggregateState {
                packets,
                octets: packets * 1000,
                drops: 2,
                waiting_packets: 7,
                waiting: Waiting {
                    subscribers: 3,
                    waiting_subscribers: 1,
                    octets: 500,
                },
                ..AggregateState::default()
            },
        }
    }

    /// The workers share the rate of a port, and each counts what it sends.
    #[test]
    fn workers_are_added_and_their_rate_is_one() {
        let (port, mut reading) = (PortIndex(4), Reading::default());
        for part in [PortPart::Port, PortPart::Segment(1)] {
            for packets in [200, 300, 400] {
                let worker = packets as u16 / 100;
                reading.add((worker, port), state(part, Some(10_000), packets));
            }
            let Part {
                rate,
                counts,
                workers,
                worker,
            } = reading.parts[&(port, part)];
            assert_eq!((workers, worker), (3, 4));
            assert_eq!((rate, counts.packets), (Some(Rate::kbps(10_000)), 900));
            assert_eq!((counts.waiting.subscribers, counts.drops), (9, 6));
            assert_eq!(counts.waiting_packets, 21);
        }
    }

    #[test]
    fn only_parts_of_ports_with_a_rate_are_split() {
        let row = |segment: &str, rate, workers| QueueAggregate {
            segment: segment.into(),
            rate_bits_per_second: rate,
            workers,
            ..QueueAggregate::default()
        };
        assert!(is_split(&row("olt1", Some(1000), 2)));
        assert!(!is_split(&row("olt1", Some(1000), 1)));
        assert!(!is_split(&row("olt1", None, 2)));
        assert!(!is_split(&row("", Some(1000), 2)), "a port");
    }

    #[test]
    fn a_row_tells_what_was_since_the_last_reading() {
        let mut now = state(PortPart::Segment(1), Some(8_000), 2_000);
        now.counts.limits = [0, 30, 90, 5];
        now.counts.waits = [0, 0, 10, 0, 0, 0, 0, 990];
        let mut then = state(PortPart::Segment(1), Some(8_000), 1_000);
        then.counts.limits = [0, 0, 85, 5];
        then.counts.waits = [0, 0, 0, 0, 0, 0, 0, 990];
        let part = |state: PartState| Part {
            rate: state.rate,
            counts: state.counts,
            workers: 1,
            worker: 2,
        };
        let row = |now, then| part(now).row(&part(then), Duration::from_secs(2));
        let shown = row(now, then);
        assert_eq!(shown.rate_bits_per_second, Some(8_000_000));
        assert_eq!(shown.bits_per_second, 4_000_000);
        assert_eq!((share(&shown), shown.waiting_packets), (50, 7));
        assert_eq!(shown.limited_by(), QueueLimit::Subscriber);
        assert_eq!(shown.delay_milliseconds, Some(5));
        // a few of many packets
        now.counts.packets = 10_000_000;
        assert_eq!(row(now, then).limited_by(), QueueLimit::Unspecified);
        let idle = row(then, then);
        assert_eq!(idle.limited_by(), QueueLimit::Unspecified);
        assert_eq!((idle.delay_milliseconds, idle.bits_per_second), (None, 0));
        let late = row(then, state(PortPart::Segment(1), None, 0));
        assert_eq!(late.delay_milliseconds, Some(LATER));
        assert_eq!(late.limited_by(), QueueLimit::Aggregate);
    }
}
