//! RADIUS client as a sans-IO state machine.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use slab::Slab;

use crate::FamilyCounters;
use crate::accounting::Accounting;
use crate::authentication::{Open, Peer};
use crate::mapping::Mappings;
use crate::message::{AccessRequest, Outcome};
use crate::random::Random;
use crate::server::{ServerStatus, Slot};
use crate::streams::{Connection, Origin, Verdict};
use crate::window::Answers;
use crate::{ClientConfig, Nas, NotEnforced, Selection};

/// Output of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram. There is one UDP socket for each number and address family. It keeps its port while an accounting record is in
    /// flight. Datagrams that it receives go to [`Client::handle`] with the same number.
    Transmit {
        /// Number of the socket.
        socket: u16,
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Send a packet on a connection, which is opened for it if it is not open. Packets that it receives go to [`Client::receive`]. If it
    /// cannot be opened, or ends, [`Client::on_closed`] is told.
    Send {
        /// The connection.
        connection: Connection,
        /// The packet.
        bytes: Vec<u8>,
    },
    /// Close a connection. The client is told nothing more of it.
    Close {
        /// The connection.
        connection: Connection,
    },
    /// An authentication has ended.
    Done {
        /// Token of the caller.
        token: u64,
        /// Result.
        outcome: Outcome,
    },
    /// The delivery of an accounting record has ended, and its slot is free.
    Accounted {
        /// The caller's name for it.
        token: u64,
        /// Whether a server acknowledged it. Otherwise it was given up, which happens only with [`Delivery::Once`](crate::Delivery::Once).
        recorded: bool,
    },
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were accepted for sending.
    pub requests: u64,
    /// Retransmitted datagrams.
    pub retransmissions: u64,
    /// Requests that failed over to another server.
    pub failovers: u64,
    /// Number of times that a server was declared dead.
    pub deaths: u64,
    /// Accepted Access-Accepts.
    pub accepts: u64,
    /// Rejections of every kind.
    pub rejects: u64,
    /// Access-Accepts that count as a rejection, because they are for a service that is not supported.
    pub unusable_accepts: u64,
    /// Acknowledged accounting records.
    pub recorded: u64,
    /// Requests that were given up without an answer.
    pub unanswered: u64,
    /// Number of times that an accounting record was postponed, because no server answered or every server was considered dead.
    pub postponed: u64,
    /// Requests rejected because too many were open.
    pub queue_full: u64,
    /// Requests that do not fit into RADIUS.
    pub unsendable: u64,
    /// Accounting records without the prefixes behind the subscriber's router, with which they would not fit into RADIUS.
    pub shortened: u64,
    /// Requests that were dropped before they were sent, because nobody waited for an answer any more.
    pub withdrawn: u64,
    /// Replies without an open request: late, repeated, or from an unknown sender. Ignored.
    pub unexpected_replies: u64,
    /// Replies with a wrong authenticator, with a wrong or missing Message-Authenticator, or malformed. Ignored.
    pub unauthentic_replies: u64,
    /// Replies with a code that does not answer the request. Ignored.
    pub mismatched_replies: u64,
    /// Status-Server packets that were not sent, because every identifier was in use.
    pub probes_unsent: u64,
    /// Connections that could not be opened, or ended before they had brought an authentic packet.
    pub connection_failures: u64,
}

/// RADIUS client for authentication and accounting: a state machine without sockets, clock or random numbers of its own.
pub struct Client {
    pub(crate) nas: Nas,
    pub(crate) mappings: Arc<Mappings>,
    pub(crate) not_enforced: NotEnforced,
    pub(crate) family_counters: FamilyCounters,
    pub(crate) selection: Selection,
    /// Number of selections so far.
    pub(crate) turns: u64,
    pub(crate) peers: Vec<Peer>,
    pub(crate) max_sockets: u16,
    pub(crate) max_requests: usize,
    pub(crate) requests: Slab<Open>,
    /// Requests that wait to be sent, by their tokens.
    pub(crate) waiting: HashMap<u64, usize>,
    pub(crate) deadlines: BTreeSet<(Duration, usize)>,
    pub(crate) answers: Answers,
    pub(crate) accounting: Accounting,
    pub(crate) output: VecDeque<Output>,
    pub(crate) random: Random,
    pub(crate) counters: Counters,
}

impl Client {
    /// Creates a client. The seed must come from an unpredictable source and must never be used twice.
    pub fn new(config: ClientConfig, seed: [u8; 32]) -> Self {
        let sockets = config.max_sockets;
        let mut random = Random::new(&seed);
        let peer = |server| Peer::new(server, sockets);
        Self {
            nas: config.nas,
            mappings: config.mappings,
            not_enforced: config.not_enforced,
            family_counters: config.family_counters,
            selection: config.selection,
            turns: 0,
            peers: config.authentication.into_iter().map(peer).collect(),
            max_sockets: sockets,
            max_requests: config.max_requests,
            requests: Slab::new(),
            waiting: HashMap::new(),
            deadlines: BTreeSet::new(),
            answers: Answers::default(),
            accounting: Accounting::new(config.accounting, sockets, random.number()),
            output: VecDeque::new(),
            random,
            counters: Counters::default(),
        }
    }

    /// Starts an authentication. `token` identifies it in [`Output::Done`].
    pub fn authenticate(&mut self, now: Duration, token: u64, request: AccessRequest) {
        self.begin(now, token, request);
        self.serve_waiting(now);
    }

    /// Handles a datagram that a socket has received.
    pub fn handle(&mut self, now: Duration, socket: u16, from: SocketAddr, bytes: &[u8]) {
        self.on_packet(now, Origin::Datagram(from), socket, bytes);
    }

    /// Handles a packet of a socket or connection with this number.
    pub(crate) fn on_packet(
        &mut self,
        now: Duration,
        origin: Origin,
        number: u16,
        bytes: &[u8],
    ) -> Verdict {
        let slot = Slot::new(number, bytes.get(1).copied().unwrap_or_default());
        // servers at one address may have the same identifier in use
        let mut is_known = false;
        for handle in [
            Self::handle_probe,
            Self::handle_authentication,
            Self::handle_accounting,
        ] {
            match handle(self, now, slot, origin, bytes) {
                Some(true) => {
                    self.serve_waiting(now);
                    self.serve_records(now);
                    return Verdict::Authentic;
                }
                Some(false) => is_known = true,
                None => {}
            }
        }
        if is_known {
            self.counters.unauthentic_replies += 1;
            return Verdict::Unauthentic;
        }
        self.counters.unexpected_replies += 1;
        Verdict::Unexpected
    }

    /// Next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// Time at which [`on_timeout`](Self::on_timeout) must be called.
    pub fn poll_at(&self) -> Option<Duration> {
        let access = self.deadlines.first().map(|&(at, _)| at);
        let others = self.accounting.poll_at().into_iter().chain(self.probe_at());
        access.into_iter().chain(others).min()
    }

    /// Handles time-outs: retransmits, fails over to the next server, gives up, or asks a dead server for its status.
    pub fn on_timeout(&mut self, now: Duration) {
        self.on_authentication_timeout(now);
        self.serve_waiting(now);
        self.on_accounting_timeout(now);
        self.serve_records(now);
        self.on_probe_timeout(now);
    }

    /// Whether more authentications wait to be sent than the servers answer in 4 s: a further one would be answered so late that its
    /// subscriber may have given up.
    pub fn is_congested(&self, now: Duration) -> bool {
        self.waiting.len() > self.answers.in_patience(now)
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of open authentications and records.
    pub fn open_requests(&self) -> usize {
        self.requests.len() + self.accounting.len()
    }

    /// Tokens of open requests, and of finished ones whose output has not been polled yet.
    pub fn open_tokens(&self) -> impl Iterator<Item = u64> {
        let done = self.output.iter().filter_map(|output| match output {
            Output::Done { token, .. } => Some(*token),
            _ => None,
        });
        self.authentication_tokens().chain(done)
    }

    /// Servers, and whether each is considered alive; authentication servers first.
    pub fn servers(&self, now: Duration) -> impl Iterator<Item = (SocketAddr, bool)> {
        let authentication = self.peers.iter().map(|peer| &peer.server);
        authentication
            .chain(self.accounting.servers())
            .map(move |server| (server.config.address, server.is_alive(now)))
    }

    /// State of the authentication servers, in order.
    pub fn authentication_servers(&self, now: Duration) -> impl Iterator<Item = ServerStatus> {
        self.peers.iter().map(move |peer| peer.status(now))
    }

    /// State of the accounting servers, in order.
    pub fn accounting_servers(&self, now: Duration) -> impl Iterator<Item = ServerStatus> {
        let servers = self.accounting.servers.iter();
        servers.map(move |server| server.status(now))
    }
}
