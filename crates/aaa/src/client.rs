//! The RADIUS client: requests in, datagrams out, answers back.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use slab::Slab;
use wire::radius::{Code, Missing, Packet, verify_response};

use crate::attributes::{self, access_accept, reply_message};
use crate::message::{
    AccessReject, AccessRequest, AccountingRecord, Outcome, RejectReason, Unavailable,
};
use crate::random::Random;
use crate::server::{Owner, Server, Slot};
use crate::{ClientConfig, Nas};

/// MRT of RFC 5080 §2.2.1: the longest time between retransmissions.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(16);

/// What the client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram. For each number and address family there is one UDP socket, opened when it is first named;
    /// what it receives goes to [`Client::handle`] with the same number.
    Transmit {
        /// The number of the socket.
        socket: u16,
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// A request has ended.
    Done {
        /// The caller's name for it.
        token: u64,
        /// How it ended.
        outcome: Outcome,
    },
}

/// What has happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were accepted for sending.
    pub requests: u64,
    /// Datagrams sent again.
    pub retransmissions: u64,
    /// Requests that went on to another server.
    pub failovers: u64,
    /// How often a server was declared dead.
    pub deaths: u64,
    /// Access-Accepts that were used.
    pub accepts: u64,
    /// Refusals of every kind.
    pub rejects: u64,
    /// Access-Accepts that were taken as a refusal, because they could not be read or honoured.
    pub unusable_accepts: u64,
    /// Accounting records that a server has.
    pub recorded: u64,
    /// Requests that no server answered.
    pub unanswered: u64,
    /// Requests refused because too many were open.
    pub queue_full: u64,
    /// Requests that do not fit into RADIUS.
    pub unsendable: u64,
    /// Replies to nothing that is open: late, repeated, or from a stranger. Ignored.
    pub unexpected_replies: u64,
    /// Replies with a wrong authenticator, a wrong or missing Message-Authenticator, or not readable. Ignored.
    pub unauthentic_replies: u64,
    /// Replies of a kind that does not answer the request. Ignored.
    pub mismatched_replies: u64,
}

/// What is asked.
enum Message {
    Access(Box<AccessRequest>),
    Accounting(Box<AccountingRecord>),
}

/// A request that is not answered yet.
struct Open {
    token: u64,
    message: Message,
    began: Duration,
    /// Servers that have been asked; the last is asked now.
    asked: Vec<usize>,
    /// When the present server was first asked.
    asked_at: Duration,
    /// How often it was asked.
    sent: u32,
    timeout: Duration,
    deadline: Duration,
    /// Every identifier under which the present server may answer. An accounting record has several when it was sent
    /// again with a later Acct-Delay-Time.
    slots: Vec<Slot>,
    /// What was sent last, and the Acct-Delay-Time in it.
    bytes: Vec<u8>,
    delay: u32,
}

/// A RADIUS client for authentication and accounting: a state machine without sockets, clock or randomness of its own.
pub struct Client {
    nas: Nas,
    servers: Vec<Server>,
    /// Servers before this one are for authentication, the others for accounting.
    first_accounting: usize,
    max_requests: usize,
    requests: Slab<Open>,
    deadlines: BTreeSet<(Duration, usize)>,
    output: VecDeque<Output>,
    random: Random,
    counters: Counters,
}

impl Client {
    /// A client that has sent nothing yet. The seed must come from a source that cannot be foreseen and must never be used
    /// twice.
    pub fn new(config: ClientConfig, seed: [u8; 32]) -> Self {
        let ClientConfig {
            nas,
            authentication,
            accounting,
            max_requests,
            max_sockets,
        } = config;
        let first_accounting = authentication.len();
        let servers = authentication.into_iter().chain(accounting);
        Self {
            nas,
            servers: servers
                .map(|server| Server::new(server, max_sockets))
                .collect(),
            first_accounting,
            max_requests,
            requests: Slab::new(),
            deadlines: BTreeSet::new(),
            output: VecDeque::new(),
            random: Random::new(&seed),
            counters: Counters::default(),
        }
    }

    /// Asks whether a subscriber may come in. `token` names the request in [`Output::Done`]; who has lost interest by then
    /// ignores it.
    pub fn authenticate(&mut self, now: Duration, token: u64, request: AccessRequest) {
        self.open(now, token, Message::Access(Box::new(request)));
        self.serve_waiting(now);
    }

    /// Delivers an accounting record of something that has happened just now.
    pub fn account(&mut self, now: Duration, token: u64, record: AccountingRecord) {
        self.open(now, token, Message::Accounting(Box::new(record)));
        self.serve_waiting(now);
    }

    /// Takes a datagram that a socket has received.
    pub fn handle(&mut self, now: Duration, socket: u16, from: SocketAddr, bytes: &[u8]) {
        let slot = Slot::new(socket, bytes.get(1).copied().unwrap_or_default());
        let mut unexpected = true;
        for index in 0..self.servers.len() {
            let server = &self.servers[index];
            let Some(owner) = server.owner(slot).filter(|_| server.config.address == from) else {
                continue;
            };
            unexpected = false;
            if let Some(packet) = self.verify(index, owner, bytes) {
                self.servers[index].heard(now);
                self.answer(owner.request, &packet);
                return self.serve_waiting(now);
            }
        }
        match unexpected {
            true => self.counters.unexpected_replies += 1,
            false => self.counters.unauthentic_replies += 1,
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// When to call [`on_timeout`](Self::on_timeout).
    pub fn poll_at(&self) -> Option<Duration> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Sends again what is due, asks the next server, or gives up.
    pub fn on_timeout(&mut self, now: Duration) {
        while let Some(&(at, key)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            let open = &self.requests[key];
            let server = self.present_server(key);
            if open.sent <= self.servers[server].config.retries {
                self.send_again(now, key);
            } else {
                self.give_up(now, key);
            }
        }
        self.serve_waiting(now);
    }

    /// What has happened since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many requests are open.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Every server and whether it is thought to live, those for authentication first.
    pub fn servers(&self, now: Duration) -> impl Iterator<Item = (SocketAddr, bool)> {
        self.servers
            .iter()
            .map(move |server| (server.config.address, server.is_alive(now)))
    }

    fn open(&mut self, now: Duration, token: u64, message: Message) {
        if self.candidates(&message).is_empty() {
            return self.done(token, Outcome::Unavailable(Unavailable::NoServer));
        }
        if self.requests.len() >= self.max_requests {
            self.counters.queue_full += 1;
            return self.done(token, Outcome::Unavailable(Unavailable::QueueFull));
        }
        self.counters.requests += 1;
        let key = self.requests.insert(Open {
            token,
            message,
            began: now,
            asked: Vec::new(),
            asked_at: now,
            sent: 0,
            timeout: Duration::ZERO,
            deadline: Duration::ZERO,
            slots: Vec::new(),
            bytes: Vec::new(),
            delay: 0,
        });
        self.ask_next(now, key);
    }

    /// Which servers there are for a request.
    fn candidates(&self, message: &Message) -> core::ops::Range<usize> {
        match message {
            Message::Access(_) => 0..self.first_accounting,
            Message::Accounting(_) => self.first_accounting..self.servers.len(),
        }
    }

    /// The first server in order that lives and has not been asked. If there is none, one that is thought dead is asked too,
    /// the one that has been so for longest: a wrong guess must not keep subscribers out.
    fn next_server(&self, now: Duration, open: &Open) -> Option<usize> {
        let mut left = self
            .candidates(&open.message)
            .filter(|server| !open.asked.contains(server));
        let alive = left
            .clone()
            .find(|&server| self.servers[server].is_alive(now));
        alive.or_else(|| {
            left.by_ref()
                .min_by_key(|&server| self.servers[server].dead_until())
        })
    }

    fn present_server(&self, key: usize) -> usize {
        *self.requests[key]
            .asked
            .last()
            .expect("a request with a deadline was sent to a server")
    }

    /// Asks the next server for the first time, or waits until an identifier is free there.
    fn ask_next(&mut self, now: Duration, key: usize) {
        let Some(index) = self.next_server(now, &self.requests[key]) else {
            self.counters.unanswered += 1;
            return self.finish(key, Outcome::Unavailable(Unavailable::NoAnswer));
        };
        let Some(slot) = self.servers[index].take_slot() else {
            return self.servers[index].waiting.push_back(key);
        };
        let jitter = 1.0 + self.random.jitter();
        let open = &mut self.requests[key];
        open.asked.push(index);
        open.asked_at = now;
        open.sent = 0;
        open.timeout = self.servers[index].config.timeout.mul_f64(jitter);
        self.compose_and_send(now, key, slot);
    }

    /// Sends the request again: the same packet, unless what it says has changed (RFC 5080 §2.2.1). Then it takes a new
    /// identifier, if there is one.
    fn send_again(&mut self, now: Duration, key: usize) {
        self.counters.retransmissions += 1;
        let jitter = self.random.jitter();
        let open = &mut self.requests[key];
        open.timeout = open.timeout.mul_f64(2.0 + jitter);
        if open.timeout > LONGEST_TIMEOUT {
            open.timeout = LONGEST_TIMEOUT.mul_f64(1.0 + jitter);
        }
        let changed = matches!(open.message, Message::Accounting(_))
            && attributes::seconds(now.saturating_sub(open.began)) != open.delay;
        let server = self.present_server(key);
        match changed.then(|| self.servers[server].take_slot()).flatten() {
            Some(slot) => self.compose_and_send(now, key, slot),
            None => self.send(now, key),
        }
    }

    fn compose_and_send(&mut self, now: Duration, key: usize, slot: Slot) {
        let index = self.present_server(key);
        let server = &mut self.servers[index];
        let open = &mut self.requests[key];
        open.slots.push(slot);
        let (identifier, secret) = (slot.identifier(), &server.config.secret);
        let composed = match &open.message {
            Message::Access(request) => {
                let authenticator = self.random.authenticator();
                attributes::access_request(&self.nas, request, identifier, authenticator, secret)
            }
            Message::Accounting(record) => {
                let delay = now.saturating_sub(open.began);
                open.delay = attributes::seconds(delay);
                attributes::accounting_request(&self.nas, record, delay, identifier, secret)
            }
        };
        match composed {
            Ok(bytes) => {
                let authenticator = bytes[4..20]
                    .try_into()
                    .expect("a packet has an authenticator");
                server.occupy(
                    slot,
                    Owner {
                        request: key,
                        authenticator,
                    },
                );
                open.bytes = bytes;
                self.send(now, key);
            }
            Err(malformed) => {
                self.counters.unsendable += 1;
                self.finish(
                    key,
                    Outcome::Unavailable(Unavailable::Unsendable(malformed)),
                );
            }
        }
    }

    fn send(&mut self, now: Duration, key: usize) {
        let to = self.servers[self.present_server(key)].config.address;
        let open = &mut self.requests[key];
        let slot = open
            .slots
            .last()
            .expect("a request that is sent has an identifier");
        open.sent += 1;
        open.deadline = now + open.timeout;
        self.deadlines.insert((open.deadline, key));
        self.output.push_back(Output::Transmit {
            socket: slot.socket(),
            to,
            bytes: open.bytes.clone(),
        });
    }

    /// Gives identifiers that have become free to those who wait for one.
    fn serve_waiting(&mut self, now: Duration) {
        while let Some(server) = self
            .servers
            .iter_mut()
            .find(|server| server.has_slot() && !server.waiting.is_empty())
            && let Some(key) = server.waiting.pop_front()
        {
            self.ask_next(now, key);
        }
    }

    /// The present server has not answered; asks the next one.
    fn give_up(&mut self, now: Duration, key: usize) {
        let index = self.present_server(key);
        let died = self.servers[index].missed(now, self.requests[key].asked_at);
        self.counters.deaths += u64::from(died);
        let stranded = if died {
            core::mem::take(&mut self.servers[index].waiting)
        } else {
            VecDeque::new()
        };
        self.free_slots(key);
        let (asked, open) = (self.requests[key].asked.len(), &self.requests[key]);
        self.counters.failovers += u64::from(asked < self.candidates(&open.message).len());
        self.ask_next(now, key);
        for waiting in stranded {
            self.ask_next(now, waiting);
        }
    }

    fn free_slots(&mut self, key: usize) {
        let open = &mut self.requests[key];
        let Some(&server) = open.asked.last() else {
            return;
        };
        for slot in core::mem::take(&mut open.slots) {
            self.servers[server].free_slot(slot);
        }
    }

    fn verify(&self, server: usize, owner: Owner, bytes: &[u8]) -> Option<Packet> {
        let config = &self.servers[server].config;
        let missing = match &self.requests[owner.request].message {
            Message::Access(_) if config.require_message_authenticator => Missing::Refuse,
            _ => Missing::Allow,
        };
        verify_response(bytes, &owner.authenticator, config.secret.expose(), missing).ok()
    }

    fn answer(&mut self, key: usize, packet: &Packet) {
        let refused = |reason| {
            Outcome::Reject(AccessReject {
                reply_message: reply_message(packet),
                reason,
            })
        };
        let outcome = match (&self.requests[key].message, packet.code) {
            (Message::Access(_), Code::ACCESS_ACCEPT) => match access_accept(packet) {
                Ok(accept) => Outcome::Accept(Box::new(accept)),
                Err(reason) => {
                    self.counters.unusable_accepts += 1;
                    refused(reason)
                }
            },
            (Message::Access(_), Code::ACCESS_REJECT) => refused(RejectReason::Refused),
            (Message::Access(_), Code::ACCESS_CHALLENGE) => refused(RejectReason::Challenged),
            (Message::Accounting(_), Code::ACCOUNTING_RESPONSE) => Outcome::Recorded,
            _ => return self.counters.mismatched_replies += 1,
        };
        match outcome {
            Outcome::Accept(_) => self.counters.accepts += 1,
            Outcome::Reject(_) => self.counters.rejects += 1,
            Outcome::Recorded => self.counters.recorded += 1,
            Outcome::Unavailable(_) => {}
        }
        self.finish(key, outcome);
    }

    fn finish(&mut self, key: usize, outcome: Outcome) {
        self.deadlines.remove(&(self.requests[key].deadline, key));
        self.free_slots(key);
        let open = self.requests.remove(key);
        self.done(open.token, outcome);
    }

    fn done(&mut self, token: u64, outcome: Outcome) {
        self.output.push_back(Output::Done { token, outcome });
    }
}
