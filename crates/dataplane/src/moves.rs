//! Sessions of VLANs that move from worker to worker, as the workers see it (`docs/decisions/0023-lanes.md`).
//!
//! The new worker holds what comes for the VLANs. The former ones do what was on its way to them, and then let go of the sessions: with what
//! was counted, with all tokens, and with the frames that wait. When the new worker has all of that, it goes on with what it holds.
use crate::api::{Event, PortIndex, SessionIndex};
use crate::commands;
use crate::compiled::RuleHits;
use crate::drops::DropReason;
use crate::edges::Edge;
use crate::handoff;
use crate::routes::Admitted;
use crate::shard::Owners;
use crate::tables::samples::Sampled;
use crate::tables::sessions::MovedSession;
use crate::worker::Worker;
use dpdk::{BURST, Burst, Mbuf};
use policy::Direction;
use std::collections::VecDeque;
use std::sync::Arc;

/// Sessions in one [`Transfer`]: packets of others wait while it is made.
pub(crate) const TRANSFER: usize = 64;

/// Frames that are in no session's queue have so much of a second to leave.
const PATIENCE: u64 = 50;

/// Where a session goes.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub from: SessionIndex,
    pub to: SessionIndex,
    pub admitted: Admitted,
}

/// Sessions on their way from a worker to another one. All memory is the control thread's.
pub(crate) struct Transfer {
    pub ways: Vec<Way>,
    moved: Vec<Moved>,
    adopted: Vec<Adopted>,
    /// What waits for the sessions, in their order.
    frames: Vec<Mbuf>,
}

struct Moved {
    session: MovedSession,
    admitted: Admitted,
    /// How many of the frames are its.
    frames: usize,
    sampled: Option<Sampled>,
    watched: [Option<Arc<RuleHits>>; 2],
}

impl Transfer {
    /// Of sessions with at most so many frames.
    pub fn new(ways: Vec<Way>, frames: usize) -> Box<Self> {
        Box::new(Transfer {
            moved: Vec::with_capacity(ways.len()),
            adopted: Vec::with_capacity(ways.len()),
            frames: Vec::with_capacity(frames),
            ways,
        })
    }
}

/// A session that has come, and that packets do not find yet.
struct Adopted {
    index: SessionIndex,
    port: PortIndex,
    generation: u32,
    frames: usize,
}

/// What a worker waits for before it goes on with commands.
pub(crate) struct Fence {
    /// Packets that other workers have handed over before, by worker.
    pub left: Box<[usize]>,
    /// Until when (TSC) it waits for frames that are in no session's queue.
    until: u64,
    pub is_up: bool,
}

impl Fence {
    pub fn new(workers: usize) -> Self {
        Fence {
            left: (0..workers).map(|_| 0).collect(),
            until: 0,
            is_up: false,
        }
    }
}

/// Packets whose sessions are on their way to a worker. There is room from the start.
pub(crate) struct HeldPackets {
    /// IP packets to sessions.
    down: VecDeque<Mbuf>,
    /// Frames from subscribers.
    up: VecDeque<Mbuf>,
}

impl HeldPackets {
    /// With room for so many of each.
    pub fn new(most: usize) -> Self {
        HeldPackets {
            down: VecDeque::with_capacity(most),
            up: VecDeque::with_capacity(most),
        }
    }

    /// Takes a packet; false if there is no room.
    fn push(&mut self, mbuf: Mbuf) -> bool {
        let [kind, _] = mbuf.meta();
        let all = match kind {
            handoff::FRAME => &mut self.up,
            _ => &mut self.down,
        };
        let room = all.len() < all.capacity();
        if room {
            all.push_back(mbuf);
        }
        room
    }

    /// Moves the next ones into an empty burst; false if there are none. Packets to sessions come first: a former worker may have passed one on
    /// from a subscriber whose later frames are held here.
    fn pop(&mut self, burst: &mut Burst) -> bool {
        while burst.len() < BURST
            && let Some(mbuf) = self.down.pop_front().or_else(|| self.up.pop_front())
        {
            // there is room
            let _ = burst.push(mbuf);
        }
        !burst.is_empty()
    }
}

impl Worker {
    /// Holds what comes for VLANs from now on: those whose owner is beyond the last worker.
    pub(crate) fn hold(&mut self, port: PortIndex, owners: Arc<Owners>) {
        self.tables.holds = true;
        self.tables.sessions.set_owners(port, Some(owners), false);
    }

    /// Takes packets of a way out that leads nowhere until their sessions are here.
    pub(crate) fn keep_held(&mut self) {
        let out = self.outs.get(self.tables.held());
        let (held, mut full) = (&mut self.held, 0);
        out.take_all(|mbuf| full += u64::from(!held.push(mbuf)));
        if full > 0 {
            self.shared.count_drop(DropReason::HandOverFull, full);
        }
    }

    /// The sessions are here, and nothing of theirs is under way elsewhere: does everything for what was held, before anything that comes
    /// later.
    pub(crate) fn unhold(&mut self, port: PortIndex, owners: Arc<Owners>) {
        self.show_adopted();
        self.tables.holds = false;
        self.tables.sessions.set_owners(port, Some(owners), false);
        while self.held.pop(&mut self.inbox) {
            self.sort::<false>(Edge::TakenReady, None);
        }
    }

    /// Commands wait from now on.
    pub(crate) fn begin_fence(&mut self, unqueued: bool) {
        let Fence { left, until, is_up } = &mut self.fence;
        for (left, taken) in left.iter_mut().zip(&self.taken) {
            *left = taken.as_ref().map_or(0, |taken| taken.len());
        }
        *is_up = true;
        *until = match unqueued {
            true => self.tables.now + self.tables.second / PATIENCE,
            false => 0,
        };
    }

    /// Whether commands still have to wait.
    pub(crate) fn is_fenced(&mut self) -> bool {
        if !self.fence.is_up {
            return false;
        }
        let waits = self.tables.now < self.fence.until && self.tables.queues.holds_unqueued();
        self.fence.is_up = waits || self.fence.left.iter().any(|left| *left > 0);
        self.fence.is_up
    }

    /// Lets go of sessions.
    pub(crate) fn release(&mut self, mut transfer: Box<Transfer>) {
        let Transfer {
            ways,
            moved,
            frames,
            ..
        } = &mut *transfer;
        let tables = &mut self.tables;
        for Way { from, to, admitted } in ways.drain(..) {
            let Some(mut session) = tables.sessions.release(from) else {
                continue;
            };
            session.entry.index = to;
            let place = tables.sessions.shard.place(from.0) as usize;
            let watches = &mut tables.policies.watches;
            moved.push(Moved {
                session,
                admitted,
                frames: tables.queues.release(place, frames),
                sampled: tables.samples.release(from),
                watched: Direction::BOTH.map(|direction| watches.take((from, direction))),
            });
        }
        self.give_back(transfer);
    }

    /// Takes sessions of another worker. Packets find them later ([`Worker::unhold`]).
    pub(crate) fn adopt(&mut self, mut transfer: Box<Transfer>) {
        let Transfer { moved, adopted, .. } = &mut *transfer;
        for moved in moved.drain(..) {
            adopted.push(self.adopt_one(moved));
        }
        self.adopted.push(transfer);
    }

    fn adopt_one(&mut self, moved: Moved) -> Adopted {
        let Moved {
            session,
            admitted,
            sampled,
            watched,
            frames,
        } = moved;
        let (index, port) = (session.entry.index, session.entry.port);
        let adopted = Adopted {
            index,
            port,
            generation: admitted.generation,
            frames,
        };
        if let Err(reason) = self.tables.sessions.check(&session.entry) {
            commands::is_gone(self, index, admitted.serial);
            commands::tell(self, Event::SessionRefused { index, reason });
            return adopted;
        }
        let place = self.tables.sessions.shard.place(index.0) as usize;
        self.tables.sessions.adopt(session);
        commands::set_serial(self, place, admitted.serial);
        if let Some(sampled) = sampled
            && !self.tables.samples.adopt(index, sampled)
        {
            self.tables.sessions.sample(index, false);
        }
        for (direction, hits) in Direction::BOTH.into_iter().zip(watched) {
            if hits.is_some() {
                commands::watch_rules(self, (index, direction), hits);
            }
        }
        adopted
    }

    /// Lets packets find the sessions that have come. What waited for them waits here.
    fn show_adopted(&mut self) {
        let mut all = core::mem::take(&mut self.adopted);
        for mut transfer in all.drain(..) {
            let Transfer {
                adopted, frames, ..
            } = &mut *transfer;
            let mut frames = frames.drain(..);
            for session in adopted.drain(..) {
                self.tables.sessions.show(session.index, session.generation);
                for mbuf in frames.by_ref().take(session.frames) {
                    self.wait_again(session.index, session.port, mbuf);
                }
            }
            drop(frames);
            self.give_back(transfer);
        }
        self.adopted = all;
        self.flush::<false>();
    }

    /// Lets a frame that has waited at another worker wait here. Without queues it leaves at once.
    fn wait_again(&mut self, index: SessionIndex, port: PortIndex, mbuf: Mbuf) {
        let tables = &mut self.tables;
        if tables.sessions.get(index).is_none() {
            return self.shared.count_drop(DropReason::QueuePurged, 1);
        }
        let place = tables.sessions.shard.place(index.0) as usize;
        match tables.queues_of(index, place) {
            Some(queues) => (tables.queues).adopt(port, queues, mbuf, (tables.now, &self.shared)),
            None => {
                let frame = crate::chain::WaitingFrame(mbuf);
                let octets = frame.0.frame_len();
                (tables.sessions).count_down(place as u32, frame.family(), octets);
                self.outs.push(port.0.into(), frame.0);
            }
        }
    }

    fn give_back(&mut self, transfer: Box<Transfer>) {
        let given = self.transfers.push(transfer);
        assert!(given.is_ok(), "room for all transfers of a move");
    }
}
