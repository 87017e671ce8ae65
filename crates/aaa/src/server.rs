//! State of a server: whether it is alive, and its identifiers in use.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::probe::{Probe, ProbeStatus};
use crate::streams::Connections;
use crate::{ServerConfig, Transport};

/// MRT of RFC 5080 §2.2.1: maximum time between retransmissions.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(16);

/// Identifier on a socket. Servers recognize a repeated request by it, together with the request's content (RFC 2866 §3, RFC 5080
/// §2.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// Slot for an identifier on the socket with this number.
    pub fn new(socket: u16, identifier: u8) -> Self {
        Self(u32::from(socket) << 8 | u32::from(identifier))
    }

    /// Number of the socket.
    pub fn socket(self) -> u16 {
        (self.0 >> 8) as u16
    }

    /// The identifier.
    pub fn identifier(self) -> u8 {
        self.0 as u8
    }
}

/// Identifiers on sockets, with the owner of each.
pub(crate) struct Slots<T> {
    max_sockets: u16,
    /// Owners by slot.
    owners: Vec<Option<T>>,
    /// Free slots. A released one goes to the end, so that a late reply rarely meets another request.
    free: VecDeque<Slot>,
}

impl<T: Copy> Slots<T> {
    /// Creates slots without a socket. When all slots are in use, another socket adds 256 identifiers.
    pub(crate) fn new(max_sockets: u16) -> Self {
        Self {
            max_sockets,
            owners: Vec::new(),
            free: VecDeque::new(),
        }
    }

    /// Creates all slots, starting at `begin`. A restarted client must not reuse first the identifiers that its predecessor used
    /// last: a server may take the new request for the old one (RFC 2866 §3).
    pub(crate) fn all(max_sockets: u16, begin: u32) -> Self {
        let mut slots = Self::new(max_sockets);
        while slots.open_socket() {}
        let begin = begin as usize % slots.free.len().max(1);
        slots.free.rotate_left(begin);
        slots
    }

    /// Allocates a free slot; adds a socket if needed.
    pub(crate) fn take(&mut self) -> Option<Slot> {
        if self.free.is_empty() {
            self.open_socket();
        }
        self.free.pop_front()
    }

    /// Allocates this slot. Returns whether it was free.
    pub(crate) fn claim(&mut self, slot: Slot) -> bool {
        let at = self.free.iter().position(|free| *free == slot);
        at.is_some_and(|at| self.free.remove(at).is_some())
    }

    /// Whether [`take`](Self::take) would return a slot.
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

    /// Number of allocated slots.
    pub(crate) fn in_use(&self) -> usize {
        self.owners.len() - self.free.len()
    }

    pub(crate) fn owner(&self, slot: Slot) -> Option<T> {
        *self.owners.get(slot.0 as usize)?
    }
}

/// Status of a server with its counters since it was configured (in the terms of RFC 4668 and RFC 4670).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Address, and UDP or TCP port.
    pub address: SocketAddr,
    /// Whether requests go to it. Otherwise it is skipped as long as another server can be tried.
    pub alive: bool,
    /// Time since when it does not answer; `None` if it answered its last request, or had none yet.
    pub out_since: Option<Duration>,
    /// Requests sent to it, without retransmissions.
    pub requests: u64,
    /// Retransmitted requests.
    pub retransmissions: u64,
    /// Authentic answers.
    pub answers: u64,
    /// Requests that it never answered. They went to another server or were given up.
    pub timeouts: u64,
    /// Round-trip time of the last request that was not retransmitted.
    pub round_trip: Option<Duration>,
    /// Time of the last authentic answer, also to a Status-Server.
    pub last_answer: Option<Duration>,
    /// Status-Server packets.
    pub probes: ProbeStatus,
    /// Why it could not be connected to, if it has not answered since. Only of a server with connections.
    pub trouble: Option<Arc<str>>,
    /// Requests that it may have unanswered at a time.
    pub window: usize,
    /// Requests that wait for room in the window.
    pub waiting: usize,
}

/// Server, and whether it counts as alive.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    last_heard: Option<Duration>,
    dead_until: Option<Duration>,
    /// Number of the client's last selection that selected it.
    pub(crate) last_turn: u64,
    pub(crate) probe: Probe,
    pub(crate) connections: Connections,
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
            last_turn: 0,
            probe: Probe::default(),
            connections: Connections::default(),
            out_since: None,
            requests: 0,
            retransmissions: 0,
            answers: 0,
            timeouts: 0,
            round_trip: None,
        }
    }

    /// Counts a request that was sent to it; `sent`: number of transmissions to it.
    pub(crate) fn asked(&mut self, sent: u32) {
        match sent {
            1 => self.requests += 1,
            _ => self.retransmissions += 1,
        }
    }

    /// Handles an authentic reply to a request that was sent `sent` times, first at `asked_at`. It is unknown which of the
    /// transmissions it answers. Returns whether the server was considered dead until now.
    pub(crate) fn heard(&mut self, now: Duration, asked_at: Duration, sent: u32) -> bool {
        self.answers += 1;
        self.probe.on_request_answered();
        if sent == 1 {
            self.round_trip = Some(now.saturating_sub(asked_at));
        }
        self.revive(now)
    }

    /// Considers the server alive. Returns whether it was considered dead until now.
    pub(crate) fn revive(&mut self, now: Duration) -> bool {
        self.last_heard = Some(now);
        self.out_since = None;
        self.dead_until.take().is_some()
    }

    /// Status of the server, with the size of its window and the number of requests that wait for room in it.
    pub(crate) fn status(&self, now: Duration, window: usize, waiting: usize) -> ServerStatus {
        ServerStatus {
            address: self.config.address,
            alive: self.is_alive(now),
            out_since: self.out_since,
            requests: self.requests,
            retransmissions: self.retransmissions,
            answers: self.answers,
            timeouts: self.timeouts,
            round_trip: self.round_trip,
            last_answer: self.last_heard,
            probes: self.probe.status(self.is_silent()),
            trouble: self.connections.trouble(),
            window,
            waiting,
        }
    }

    /// Handles a request, first sent at `since`, that was never answered. The server stays alive if it has answered others since
    /// then. Returns whether it was declared dead.
    pub(crate) fn missed(&mut self, now: Duration, since: Duration) -> bool {
        let dies = self.last_heard.is_none_or(|heard| heard < since) && self.is_alive(now);
        self.timeouts += 1;
        if dies {
            self.out_since.get_or_insert(now);
            self.dead_until = Some(now + self.config.dead_time);
        }
        dies
    }

    /// Whether requests go to it. After its dead time a request tries it, unless a Status-Server will tell.
    pub(crate) fn is_alive(&self, now: Duration) -> bool {
        let is_tried = |until| until <= now && !self.probe.is_conclusive();
        self.dead_until.is_none_or(is_tried)
    }

    /// Whether a request that was sent this often may be retransmitted.
    pub(crate) fn repeats(&self, sent: u32) -> bool {
        self.config.transport == Transport::Datagram && sent <= self.config.retries
    }

    /// Whether a request whose connection ended is sent again on another one, after this many transmissions.
    pub(crate) fn reconnects(&self, sent: u32) -> bool {
        sent <= self.config.retries
    }

    /// Whether it was declared dead and has not answered since.
    pub(crate) fn is_silent(&self) -> bool {
        self.dead_until.is_some()
    }

    /// Time until which it is skipped.
    pub(crate) fn dead_until(&self) -> Duration {
        self.dead_until.unwrap_or_default()
    }
}

/// IRT of RFC 5080 §2.2.1; `jitter` is its RAND. On a stream it is the time that all transmissions of a datagram would have.
pub(crate) fn first_timeout(server: &Server, jitter: f64) -> Duration {
    let config = &server.config;
    let transmissions = match config.transport {
        Transport::Datagram => 1,
        Transport::Stream { .. } => config.retries + 1,
    };
    let longer = |last: &Duration| Some((*last * 2).min(LONGEST_TIMEOUT));
    let timeouts = core::iter::successors(Some(config.timeout), longer);
    let total: Duration = timeouts.take(transmissions as usize).sum();
    total.mul_f64(1.0 + jitter)
}

/// RT of RFC 5080 §2.2.1 after the last one.
pub(crate) fn next_timeout(last: Duration, jitter: f64) -> Duration {
    match last.mul_f64(2.0 + jitter) {
        next if next > LONGEST_TIMEOUT => LONGEST_TIMEOUT.mul_f64(1.0 + jitter),
        next => next,
    }
}
