//! What the client knows of a server: whether it lives, and which identifiers are open with it.

use core::time::Duration;
use std::collections::VecDeque;

use crate::ServerConfig;

/// An identifier on a socket: the socket's number × 256 + the identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) fn new(socket: u16, identifier: u8) -> Self {
        Self(u32::from(socket) << 8 | u32::from(identifier))
    }

    pub(crate) fn socket(self) -> u16 {
        (self.0 >> 8) as u16
    }

    pub(crate) fn identifier(self) -> u8 {
        self.0 as u8
    }
}

/// Who waits for the reply with an identifier, and what proves that it is to his request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) request: usize,
    pub(crate) authenticator: [u8; 16],
}

pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    max_sockets: u16,
    /// By slot. It grows by the 256 identifiers of another socket when all are taken.
    owners: Vec<Option<Owner>>,
    /// A free identifier rests behind the others, so that a late reply rarely meets another request.
    free: VecDeque<Slot>,
    /// Requests that found no identifier free, in order.
    pub(crate) waiting: VecDeque<usize>,
    last_heard: Option<Duration>,
    dead_until: Option<Duration>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, max_sockets: u16) -> Self {
        Self {
            config,
            max_sockets,
            owners: Vec::new(),
            free: VecDeque::new(),
            waiting: VecDeque::new(),
            last_heard: None,
            dead_until: None,
        }
    }

    /// A free identifier, of a further socket if need be.
    pub(crate) fn take_slot(&mut self) -> Option<Slot> {
        if self.free.is_empty() {
            let socket = self.next_socket()?;
            self.free
                .extend((0..=255).map(|identifier| Slot::new(socket, identifier)));
            self.owners.resize(self.owners.len() + 256, None);
        }
        self.free.pop_front()
    }

    /// Whether [`take_slot`](Self::take_slot) would give one.
    pub(crate) fn has_slot(&self) -> bool {
        !self.free.is_empty() || self.next_socket().is_some()
    }

    fn next_socket(&self) -> Option<u16> {
        u16::try_from(self.owners.len() >> 8)
            .ok()
            .filter(|&socket| socket < self.max_sockets)
    }

    pub(crate) fn occupy(&mut self, slot: Slot, owner: Owner) {
        self.owners[slot.0 as usize] = Some(owner);
    }

    pub(crate) fn free_slot(&mut self, slot: Slot) {
        self.owners[slot.0 as usize] = None;
        self.free.push_back(slot);
    }

    pub(crate) fn owner(&self, slot: Slot) -> Option<Owner> {
        *self.owners.get(slot.0 as usize)?
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
