//! What the client knows of a server: whether it lives, and which identifiers are open.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use crate::ServerConfig;

/// An identifier on a socket: what servers know a repeated request by, together with what it says (RFC 2866 §3,
/// RFC 5080 §2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// The identifier on the socket of this number.
    pub fn new(socket: u16, identifier: u8) -> Self {
        Self(u32::from(socket) << 8 | u32::from(identifier))
    }

    /// The number of the socket.
    pub fn socket(self) -> u16 {
        (self.0 >> 8) as u16
    }

    /// The identifier.
    pub fn identifier(self) -> u8 {
        self.0 as u8
    }
}

/// Identifiers on sockets, and who has each.
pub(crate) struct Slots<T> {
    max_sockets: u16,
    /// By slot.
    owners: Vec<Option<T>>,
    /// A free identifier rests behind the others, so that a late reply rarely meets another request.
    free: VecDeque<Slot>,
}

impl<T: Copy> Slots<T> {
    /// None is taken. They grow by the 256 identifiers of another socket when all are.
    pub(crate) fn new(max_sockets: u16) -> Self {
        Self {
            max_sockets,
            owners: Vec::new(),
            free: VecDeque::new(),
        }
    }

    /// All that there can be, beginning somewhere: a client that was started again shall not use those first that the one
    /// before has just used, because a server may take the new request for the old one (RFC 2866 §3).
    pub(crate) fn all(max_sockets: u16, begin: u32) -> Self {
        let mut slots = Self::new(max_sockets);
        while slots.open_socket() {}
        let begin = begin as usize % slots.free.len().max(1);
        slots.free.rotate_left(begin);
        slots
    }

    /// A free identifier, of a further socket if need be.
    pub(crate) fn take(&mut self) -> Option<Slot> {
        if self.free.is_empty() {
            self.open_socket();
        }
        self.free.pop_front()
    }

    /// Takes this one, if it is free.
    pub(crate) fn claim(&mut self, slot: Slot) -> bool {
        let at = self.free.iter().position(|free| *free == slot);
        at.is_some_and(|at| self.free.remove(at).is_some())
    }

    /// Whether [`take`](Self::take) would give one.
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty() || self.sockets() < self.max_sockets
    }

    fn sockets(&self) -> u16 {
        (self.owners.len() >> 8) as u16
    }

    fn open_socket(&mut self) -> bool {
        let socket = self.sockets();
        if socket >= self.max_sockets {
            return false;
        }
        self.free
            .extend((0..=255).map(|identifier| Slot::new(socket, identifier)));
        self.owners.resize(self.owners.len() + 256, None);
        true
    }

    pub(crate) fn occupy(&mut self, slot: Slot, owner: T) {
        self.owners[slot.0 as usize] = Some(owner);
    }

    pub(crate) fn free(&mut self, slot: Slot) {
        self.owners[slot.0 as usize] = None;
        self.free.push_back(slot);
    }

    pub(crate) fn owner(&self, slot: Slot) -> Option<T> {
        *self.owners.get(slot.0 as usize)?
    }
}

/// How a server is doing, and what was asked of it since it was configured (in the terms of RFC 4668 and RFC 4670).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Where it listens.
    pub address: SocketAddr,
    /// It is asked; otherwise it is passed over as long as another one is left to ask.
    pub alive: bool,
    /// Since when it has not answered; `None` if it answered what it was asked last, or was not asked yet.
    pub out_since: Option<Duration>,
    /// Requests sent to it, without those sent again.
    pub requests: u64,
    /// Requests sent again.
    pub retransmissions: u64,
    /// Answers that proved to be its own.
    pub answers: u64,
    /// Requests that it never answered, and that went elsewhere or were given up.
    pub timeouts: u64,
    /// From a request to its answer, of the last one that did not have to be sent again.
    pub round_trip: Option<Duration>,
}

/// A server, and whether it is thought to live.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    last_heard: Option<Duration>,
    dead_until: Option<Duration>,
    out_since: Option<Duration>,
    requests: u64,
    retransmissions: u64,
    answers: u64,
    timeouts: u64,
    round_trip: Option<Duration>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig) -> Self {
        Self {
            config,
            last_heard: None,
            dead_until: None,
            out_since: None,
            requests: 0,
            retransmissions: 0,
            answers: 0,
            timeouts: 0,
            round_trip: None,
        }
    }

    /// A request was sent to it, this often with this time.
    pub(crate) fn asked(&mut self, sent: u32) {
        match sent {
            1 => self.requests += 1,
            _ => self.retransmissions += 1,
        }
    }

    /// A reply came that only this server can have sent, to a request that was sent so often and first at `asked_at`. Which
    /// sending of several it answers cannot be known.
    pub(crate) fn heard(&mut self, now: Duration, asked_at: Duration, sent: u32) {
        self.last_heard = Some(now);
        self.dead_until = None;
        self.out_since = None;
        self.answers += 1;
        if sent == 1 {
            self.round_trip = Some(now.saturating_sub(asked_at));
        }
    }

    /// How it is doing.
    pub(crate) fn status(&self, now: Duration) -> ServerStatus {
        ServerStatus {
            address: self.config.address,
            alive: self.is_alive(now),
            out_since: self.out_since,
            requests: self.requests,
            retransmissions: self.retransmissions,
            answers: self.answers,
            timeouts: self.timeouts,
            round_trip: self.round_trip,
        }
    }

    /// A request first sent at `since` was never answered. A server that has answered others since then lives.
    pub(crate) fn missed(&mut self, now: Duration, since: Duration) -> bool {
        let dies = self.last_heard.is_none_or(|heard| heard < since) && self.is_alive(now);
        self.timeouts += 1;
        if dies {
            self.out_since.get_or_insert(now);
            self.dead_until = Some(now + self.config.dead_time);
        }
        dies
    }

    pub(crate) fn is_alive(&self, now: Duration) -> bool {
        self.dead_until.is_none_or(|until| until <= now)
    }

    /// Whether it was declared dead and has not been heard since.
    pub(crate) fn is_silent(&self) -> bool {
        self.dead_until.is_some()
    }

    /// Until when it is passed over.
    pub(crate) fn dead_until(&self) -> Duration {
        self.dead_until.unwrap_or_default()
    }
}
