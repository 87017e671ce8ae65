//! What the client knows of a server: whether it lives, and which identifiers are open.

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

/// A server, and whether it is thought to live.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    last_heard: Option<Duration>,
    dead_until: Option<Duration>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig) -> Self {
        Self {
            config,
            last_heard: None,
            dead_until: None,
        }
    }

    /// A reply came that only this server can have sent.
    pub(crate) fn heard(&mut self, now: Duration) {
        self.last_heard = Some(now);
        self.dead_until = None;
    }

    /// A request first sent at `since` was never answered. A server that has answered others since then lives.
    pub(crate) fn missed(&mut self, now: Duration, since: Duration) -> bool {
        let dies = self.last_heard.is_none_or(|heard| heard < since) && self.is_alive(now);
        if dies {
            self.dead_until = Some(now + self.config.dead_time);
        }
        dies
    }

    pub(crate) fn is_alive(&self, now: Duration) -> bool {
        self.dead_until.is_none_or(|until| until <= now)
    }

    /// Until when it is passed over.
    pub(crate) fn dead_until(&self) -> Duration {
        self.dead_until.unwrap_or_default()
    }
}
