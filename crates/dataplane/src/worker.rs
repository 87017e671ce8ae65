//! A worker: polls its queues of the ports, passes bursts through the graph, hands over what is other workers', and between
//! bursts does what the control thread asks.
use crate::api::*;
use crate::backoff::{self, Backoff, Waiting};
use crate::commands::{self, Sweep};
use crate::counters::{Shared, Wake, add};
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::egress::Egress;
use crate::graph::{self, Source, Tables};
use crate::handoff::{FRAME, HOPPED, MEMBER, PACKET, READY, ROUTE};
use crate::inspect::Piece;
use crate::message::Command;
use crate::moves::{Fence, HeldPackets, TRANSFER, Transfer};
use crate::nodes::Exit;
use crate::nodes::punt::Punter;
use crate::protection::Offence;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use dpdk::{BURST, Burst, Consumer, Eal, Exits, Producer, Queue, Sent, TxBuffers, tsc};
use std::sync::Arc;
use std::time::Duration;
use wire::eth::MacAddr;

/// A port as a worker has it.
pub(crate) struct WorkerPort {
    pub index: PortIndex,
    /// Its own queue; of a port that has too few, it has none.
    pub queue: Option<Queue>,
    /// How its packets leave.
    pub egress: Egress,
    pub source: Source,
    pub own: MacAddr,
    pub mtu: u16,
    /// It is not, while it is being removed.
    pub polled: bool,
}

/// A worker's end: it owns queues of ports and the tables of its sessions, and runs on one thread.
#[repr(align(128))]
pub struct Worker {
    pub(crate) eal: Eal,
    /// In no order; room for all is there from the start.
    pub(crate) ports: Vec<WorkerPort>,
    /// A search for sessions whose port or VLAN was taken away. Commands wait for its end.
    pub(crate) sweep: Option<Sweep>,
    pub(crate) removed: rtrb::Producer<(PortIndex, Option<Queue>)>,
    /// What commands wait for.
    pub(crate) fence: Fence,
    /// Packets whose sessions are on their way to this worker.
    pub(crate) held: HeldPackets,
    /// Sessions that have come, and that packets do not find yet. There is room from the start. They stay in their boxes, as the worker
    /// frees nothing.
    #[expect(clippy::vec_box)]
    pub(crate) adopted: Vec<Box<Transfer>>,
    /// Sessions that have left, and the memory of those that have come: the control thread frees it.
    pub(crate) transfers: rtrb::Producer<Box<Transfer>>,
    pub(crate) tables: Tables,
    pub(crate) punter: Punter,
    /// What the control thread injects, and what each worker hands over; its own place is empty.
    pub(crate) injects: Consumer,
    pub(crate) taken: Vec<Option<Consumer>>,
    pub(crate) handed: Vec<Option<Producer>>,
    pub(crate) commands: rtrb::Consumer<Command>,
    pub(crate) pieces: rtrb::Producer<Piece>,
    pub(crate) limits: Limits,
    /// Of each session, by its place here, which of those that had its place it is.
    pub(crate) serials: Vec<u32>,
    /// Sessions that are not there though the control thread did not say so.
    pub(crate) gone: rtrb::Producer<(SessionIndex, u32)>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) inbox: Burst,
    pub(crate) burst: Burst,
    pub(crate) outs: TxBuffers,
    pub(crate) rest: Exits<Exit>,
    /// When (TSC) adjacencies in use are reported again.
    pub(crate) report_at: u64,
    /// The way of reports of those who exceed a rate, and when (TSC) they are due again.
    pub(crate) offences: rtrb::Producer<Offence>,
    pub(crate) offences_at: u64,
    /// When (TSC) the round began whose time is not counted yet, if there was something to do in it.
    pub(crate) busy_since: Option<u64>,
}

/// Bursts that leave by a port in one round at most.
const MOST_DEPARTURES: usize = 8;

/// Commands that are applied in one go, so that packets do not wait long.
const COMMANDS: usize = 32;

impl Worker {
    /// Works until `stop` is set, on a thread that may sleep.
    pub fn run(mut self, stop: &AtomicBool) {
        // Without caches of its own in the pools the thread works too, but slower.
        let _registered = self.eal.register_thread().ok();
        let mut backoff = Backoff::default();
        while !stop.load(Relaxed) {
            let work = self.step();
            if backoff.is_idle(work)
                && let Some(most) = self.longest_sleep(tsc())
            {
                self.count_busy(tsc());
                dpdk::await_packets(self.queues(), most);
            }
        }
    }

    /// The queues that are polled.
    fn queues(&self) -> impl Iterator<Item = &Queue> {
        let polled = self.ports.iter().filter(|port| port.polled);
        polled.filter_map(|port| port.queue.as_ref())
    }

    /// Queues that wake the worker bound no sleep; others do, and rings of other workers, and what is to be done at a time.
    fn longest_sleep(&self, now: u64) -> Option<Duration> {
        let queues = self.queues().filter(|queue| !queue.wakes());
        let queues = queues.map(|queue| Waiting {
            room: queue.descriptors(),
            rate: queue.rate(),
        });
        let rings = self.taken.iter().flatten().map(|_| Waiting {
            room: self.limits.handed_over,
            rate: None,
        });
        let until = self
            .deadline()
            .map(|at| self.duration(at.saturating_sub(now)));
        backoff::longest(queues.chain(rings), until)
    }

    /// When (TSC) the worker has to do something although no packet came.
    fn deadline(&self) -> Option<u64> {
        let departure = self.tables.queues.deadline();
        departure.into_iter().chain([self.report_at]).min()
    }

    fn duration(&self, ticks: u64) -> Duration {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.tables.second);
        Duration::from_nanos(nanoseconds as u64)
    }

    /// One round over commands, injected packets and ports; how much there was to do.
    pub fn step(&mut self) -> usize {
        self.round::<false>(tsc())
    }

    /// A round at a time that the caller says, in ticks of the time stamp counter; never before an earlier round.
    #[cfg(feature = "stages")]
    pub fn step_at(&mut self, now: u64) -> usize {
        self.round::<false>(self.tables.now.max(now))
    }

    /// A round as if so much time had passed since the worker's start, with a note of the edges that packets take;
    /// never before an earlier round.
    pub fn step_traced(&mut self, at: Duration) -> usize {
        let ticks = at.as_nanos() * u128::from(self.tables.second) / 1_000_000_000;
        self.round::<true>(self.tables.now.max(ticks as u64))
    }

    /// When a packet that waits may leave, as [`Worker::step_traced`] counts time; `None` if none waits.
    pub fn next_departure(&self) -> Option<Duration> {
        let at = self.tables.queues.deadline()?;
        Some(self.duration(at) + Duration::from_nanos(1))
    }

    /// The edges that packets took in traced rounds, one after the other: each packet's path begins with the edge from
    /// where it came.
    pub fn take_path(&mut self) -> Vec<Edge> {
        core::mem::take(&mut self.tables.path)
    }

    fn round<const TRACE: bool>(&mut self, now: u64) -> usize {
        self.tables.now = now;
        self.count_busy(now);
        let commands = self.apply_commands();
        let mut work = commands;
        if commands < COMMANDS {
            // An injected packet does not overtake the commands that were given before it.
            let n = self.injects.recv_burst(&mut self.inbox);
            self.sort::<TRACE>(Edge::GatewayFrame, None);
            work += n;
        }
        for other in 0..self.taken.len() {
            work += self.take_over::<TRACE>(other);
        }
        for port in 0..self.ports.len() {
            work += self.poll::<TRACE>(port);
        }
        work += self.depart::<TRACE>();
        self.report_adjacencies();
        self.report_offences();
        self.tables.fibs.pass();
        self.wake_control();
        self.busy_since = (work > 0).then_some(self.tables.now);
        work
    }

    /// Counts the last round, which is over now.
    fn count_busy(&mut self, now: u64) {
        if let Some(since) = self.busy_since.take() {
            add(&self.shared.busy, now.wrapping_sub(since));
        }
    }

    fn apply_commands(&mut self) -> usize {
        for n in 0..COMMANDS {
            // A command has at most one answer for each session that it is about. Unless there is room, it waits: no answer is lost.
            if self.tables.events.slots() < TRANSFER || self.gone.slots() < TRANSFER {
                return n;
            }
            if self.sweep.is_some() {
                commands::sweep(self);
                continue;
            }
            if self.fence.is_up {
                if self.is_fenced() {
                    return n;
                }
                add(&self.shared.applied, 1);
            }
            let Ok(command) = self.commands.pop() else {
                return n;
            };
            let is_transfer = matches!(command, Command::Release(_) | Command::Adopt(_));
            commands::apply(self, command);
            if self.fence.is_up {
                // it counts as applied when it is over
                continue;
            }
            add(&self.shared.applied, 1);
            if is_transfer {
                // packets of others do not wait for more than one of these
                return n + 1;
            }
        }
        COMMANDS
    }

    /// Receives a burst from another worker and does everything for it.
    fn take_over<const TRACE: bool>(&mut self, other: usize) -> usize {
        let Some(taken) = &mut self.taken[other] else {
            return 0;
        };
        let n = taken.recv_burst(&mut self.inbox);
        if n > 0 {
            let before = &mut self.fence.left[other];
            *before = before.saturating_sub(n);
            add(&self.shared.taken_over, n as u64);
            self.sort::<TRACE>(Edge::TakenReady, Some(other));
        }
        n
    }

    /// Does for each packet of the inbox what its words say, for all that say the same together; `ready` is the way of a frame that is
    /// ready, and `other` the worker that it comes from.
    pub(crate) fn sort<const TRACE: bool>(&mut self, ready: Edge, other: Option<usize>) {
        while let Some([kind, place]) = self.inbox.split_same(&mut self.burst) {
            let port = self.ports.iter().any(|p| p.index.0 as u32 == place);
            let instance = place < self.tables.fibs.instances().into();
            let (index, edge) = (place as u16, Edge::TakenFrame);
            match kind {
                READY if port => {
                    for _ in 0..self.burst.len() {
                        self.tables.took::<TRACE>(ready);
                    }
                    match other {
                        Some(_) => self.send_for_other(index),
                        None => self.outs.push_all(place as usize, &mut self.burst),
                    }
                }
                MEMBER if port => self.send_by_member::<TRACE>(index),
                ROUTE if instance => self.pass::<TRACE>(Source::Gateway { instance: index }, 0),
                FRAME if port => self.pass::<TRACE>(Source::Access { port: index, edge }, index),
                PACKET => self.pass::<TRACE>(Source::Worker, 0),
                HOPPED => self.pass::<TRACE>(Source::Held, 0),
                _ => {
                    let n = self.burst.len() as u64;
                    self.shared.count_drop(DropReason::BadInject, n);
                    self.burst.clear();
                }
            }
        }
        self.flush::<TRACE>();
    }

    /// Receives a burst from a port and does everything for it.
    fn poll<const TRACE: bool>(&mut self, port: usize) -> usize {
        let p = &mut self.ports[port];
        if !p.polled {
            return 0;
        }
        let Some(queue) = &mut p.queue else {
            return 0;
        };
        let n = queue.rx(&mut self.burst);
        if n == 0 {
            return 0;
        }
        let (source, PortIndex(index)) = (p.source, p.index);
        let counters = &self.shared.ports[index as usize];
        add(&counters.rx_packets, n as u64);
        add(&counters.rx_octets, self.burst.octets());
        add(&self.shared.bursts, 1);
        self.pass::<TRACE>(source, index);
        self.flush::<TRACE>();
        n
    }

    fn pass<const TRACE: bool>(&mut self, source: Source, port: u16) {
        graph::run::<TRACE>(
            source,
            &mut self.tables,
            &mut self.burst,
            &mut self.outs,
            &mut self.rest,
        );
        if !self.rest.is_empty() {
            let Worker {
                rest,
                punter,
                tables,
                shared,
                ..
            } = self;
            let Tables { now, sessions, .. } = tables;
            rest.settle(|leave, mbuf| punter.settle(leave, mbuf, port, *now, sessions, shared));
        }
        if let Some(copies) = self.tables.samples.taken() {
            self.punter.show(copies);
        }
    }

    /// Sends what is ready, and hands over what is others'.
    pub(crate) fn flush<const TRACE: bool>(&mut self) {
        self.send_outs::<TRACE>();
        // Fragments can be more than a port takes at once.
        while self.outs.refill() {
            self.send_outs::<TRACE>();
        }
    }

    fn send_outs<const TRACE: bool>(&mut self) {
        for port in 0..self.ports.len() {
            self.queue_up::<TRACE>(port);
            self.send_out::<TRACE>(port);
        }
        for other in 0..self.handed.len() {
            self.hand_over(other as u16, self.tables.others + other);
        }
        if self.tables.holds {
            self.keep_held();
        }
    }

    /// Sends the frames of a worker that has no queue of the port. They have waited there for the port's rate.
    fn send_for_other(&mut self, index: u16) {
        let mut ports = self.ports.iter_mut();
        let port = ports.find(|port| port.index.0 == index);
        let queue = port.and_then(|port| port.queue.as_mut());
        send(&self.shared, index.into(), queue, &mut self.burst);
    }

    /// Sends frames by the members of a port that they name.
    #[cold]
    fn send_by_member<const TRACE: bool>(&mut self, index: u16) {
        for _ in 0..self.burst.len() {
            self.tables.took::<TRACE>(Edge::GatewayFrame);
        }
        let mut ports = self.ports.iter_mut();
        let port = ports.find(|port| port.index.0 == index);
        if let Some(queue) = port.and_then(|port| port.queue.as_mut()) {
            let sent = queue.tx_by_member(&mut self.burst);
            count_sent(&self.shared, index.into(), sent);
        }
        drop_left(&self.shared, index.into(), &mut self.burst);
    }

    /// Puts the frames that are for queues of sessions there, and all others too if they wait at the port. What need not wait is left.
    fn queue_up<const TRACE: bool>(&mut self, port: usize) {
        let index = self.ports[port].index;
        let (out, now) = (usize::from(index.0), self.tables.now);
        let frames = self.outs.get(out);
        if !frames.is_empty() && self.tables.queues.holds_others(index) {
            for _ in 0..frames.len() {
                self.tables.took::<TRACE>(Edge::EgressQueued);
            }
            (self.tables.queues).take_others(index, (frames, now), &self.shared);
        }
        let frames = self.outs.get(self.tables.queued + out);
        if frames.is_empty() {
            return;
        }
        let counts = (&mut self.tables.sessions, &*self.shared);
        (self.tables.queues).take(index, frames, &mut self.burst, now, counts);
        for _ in 0..self.burst.len() {
            self.tables.took::<TRACE>(Edge::Dequeued);
        }
        self.outs.push_all(out, &mut self.burst);
    }

    /// Sends what leaves by a port at once.
    fn send_out<const TRACE: bool>(&mut self, port: usize) {
        let p = &mut self.ports[port];
        let index = p.index.0 as usize;
        let out = self.outs.get(index);
        let n = out.len();
        if n == 0 {
            return;
        }
        match p.egress {
            Egress::Direct => {
                let queues = &mut self.tables.queues;
                if !queues.stands_full(p.index)
                    && let Some(queue) = &mut p.queue
                {
                    count_sent(&self.shared, index, queue.tx(out));
                }
                if !out.is_empty() {
                    queues.keep(p.index, out, &self.shared);
                }
            }
            Egress::By(by) => {
                out.set_meta([READY, index as u32]);
                for _ in 0..n {
                    self.tables.took::<TRACE>(Edge::ByOther);
                }
                self.hand_over(by, index);
            }
        }
    }

    /// Sends what has waited and whose turn it is; how much that is.
    fn depart<const TRACE: bool>(&mut self) -> usize {
        let mut all = 0;
        for port in 0..self.ports.len() {
            // several ports may bring packets for one
            for _ in 0..MOST_DEPARTURES {
                let left = self.depart_by::<TRACE>(port);
                all += left;
                if left < BURST {
                    break;
                }
            }
        }
        all
    }

    fn depart_by<const TRACE: bool>(&mut self, port: usize) -> usize {
        let (now, p) = (self.tables.now, &mut self.ports[port]);
        let queues = &mut self.tables.queues;
        let counts = (&mut self.tables.sessions, &*self.shared);
        queues.depart(p.index, &mut self.inbox, now, counts);
        let n = self.inbox.len();
        if n == 0 {
            return 0;
        }
        for _ in 0..n {
            self.tables.took::<TRACE>(Edge::Dequeued);
        }
        match (p.egress, &mut p.queue) {
            (Egress::Direct, Some(queue)) => {
                let sent = queue.tx(&mut self.inbox);
                count_sent(&self.shared, p.index.0.into(), sent);
                (self.tables.queues).give_back(p.index, &mut self.inbox);
                sent.packets
            }
            _ => {
                self.outs.push_all(p.index.0.into(), &mut self.inbox);
                self.send_out::<TRACE>(port);
                n
            }
        }
    }

    /// Lets what waits for a port in no queue of a session leave at once, whatever the rate is.
    pub(crate) fn release_others(&mut self, index: PortIndex) {
        let (queues, outs) = (&mut self.tables.queues, &mut self.outs);
        queues.release_others(index, |mbuf| outs.push(index.0.into(), mbuf));
        self.flush::<false>();
    }

    /// Hands the packets of a way out over to another worker.
    fn hand_over(&mut self, other: u16, out: usize) {
        let out = self.outs.get(out);
        let n = out.len();
        if n == 0 {
            return;
        }
        let queue = self.handed.get_mut(other as usize).and_then(Option::as_mut);
        let handed = match queue {
            Some(queue) => queue.send_burst(out),
            None => {
                out.clear();
                0
            }
        };
        add(&self.shared.handed_over, handed as u64);
        if handed < n {
            self.shared
                .count_drop(DropReason::HandOverFull, (n - handed) as u64);
        }
    }

    /// Every few seconds: which neighbours were used, so that the kernel keeps them fresh.
    fn report_adjacencies(&mut self) {
        let Tables {
            now,
            second,
            adjacencies,
            events,
            ..
        } = &mut self.tables;
        if *now < self.report_at {
            return;
        }
        self.report_at = *now + 5 * *second;
        for index in adjacencies.used() {
            // One that finds no room is reported when it is used again.
            let _ = events.push(Event::AdjacencyUsed(index));
        }
    }

    /// Once a second: who exceeds a rate. What finds no room is reported the next time.
    fn report_offences(&mut self) {
        let Tables { now, second, .. } = self.tables;
        if now < self.offences_at {
            return;
        }
        self.offences_at = now + second;
        let offences = &mut self.offences;
        let tell = |offence| offences.push(offence).is_ok();
        self.punter.report_offences(now, &self.shared, tell);
    }

    /// Signals the control thread if it sleeps and something waits for it.
    fn wake_control(&mut self) {
        self.wake.rouse(|| {
            self.tables.events.slots() < self.tables.events.buffer().capacity()
                || self.pieces.slots() == 0
                || self.transfers.slots() < self.transfers.buffer().capacity()
                || self.offences.slots() < self.offences.buffer().capacity()
                || self.removed.slots() < self.removed.buffer().capacity()
                || self.punter.waiting()
        });
    }
}

/// Sends frames by a queue. What it does not take is dropped.
fn send(shared: &Shared, port: usize, queue: Option<&mut Queue>, frames: &mut Burst) {
    if let Some(queue) = queue {
        count_sent(shared, port, queue.tx(frames));
    }
    drop_left(shared, port, frames);
}

/// Drops what the device did not take.
fn drop_left(shared: &Shared, port: usize, frames: &mut Burst) {
    let left = frames.len() as u64;
    if left > 0 {
        count_dropped(shared, port, left);
        frames.clear();
    }
}

fn count_sent(shared: &Shared, port: usize, sent: Sent) {
    let counters = &shared.ports[port];
    add(&counters.tx_packets, sent.packets as u64);
    add(&counters.tx_octets, sent.octets);
    if sent.dropped > 0 {
        count_dropped(shared, port, sent.dropped as u64);
    }
}

/// Frames that the device had no room for.
fn count_dropped(shared: &Shared, port: usize, n: u64) {
    add(&shared.ports[port].tx_dropped, n);
    shared.count_drop(DropReason::TxQueueFull, n);
}
