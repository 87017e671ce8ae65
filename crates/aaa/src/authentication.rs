//! Authentications on their way: which server is asked, when it is asked again, and when another one is.

use core::time::Duration;
use std::collections::BTreeSet;

use wire::radius::{Code, Missing, Packet, verify_response};

use crate::attributes::{access_accept, rejection};
use crate::message::{AccessRequest, Outcome, RejectReason, Unavailable};
use crate::requests::access_request;
use crate::selection::{Place, Queue, next_waiting};
use crate::server::{Server, ServerStatus, Slot, Slots, first_timeout, next_timeout};
use crate::streams::{Origin, Role};
use crate::window::Window;
use crate::{Client, Output, ServerConfig};

/// Authentication that is not answered yet.
pub(crate) struct Open {
    token: u64,
    /// Time at which it was opened.
    since: Duration,
    request: Box<AccessRequest>,
    /// Servers that were tried. The last one is the current server.
    pub(crate) asked: Vec<usize>,
    /// Time of the first request to the current server.
    asked_at: Duration,
    /// Number of requests to it.
    sent: u32,
    timeout: Duration,
    pub(crate) deadline: Duration,
    /// Identifier of the request to the current server.
    pub(crate) slot: Option<Slot>,
    /// Sent packet.
    bytes: Vec<u8>,
}

/// Request that waits for the reply with an identifier, and the authenticator that verifies the reply.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) request: usize,
    authenticator: [u8; 16],
}

/// Authentication server.
pub(crate) struct Peer {
    pub(crate) server: Server,
    pub(crate) slots: Slots<Owner>,
    pub(crate) window: Window,
    /// Requests that wait for room in the window or a free identifier, by the time at which they were opened.
    pub(crate) waiting: BTreeSet<(Duration, usize)>,
}

impl Peer {
    pub(crate) fn new(config: ServerConfig, sockets: u16) -> Self {
        Peer {
            server: Server::new(config),
            slots: Slots::new(sockets),
            window: Window::default(),
            waiting: BTreeSet::new(),
        }
    }

    /// Whether it may be sent one more request.
    fn has_room(&self) -> bool {
        self.slots.has_free() && self.window.has_room(self.slots.in_use())
    }

    /// Status of the server.
    pub(crate) fn status(&self, now: Duration) -> ServerStatus {
        self.server
            .status(now, self.window.size(), self.waiting.len())
    }

    /// Number of open requests.
    fn load(&self) -> usize {
        self.slots.in_use() + self.waiting.len()
    }
}

impl Client {
    /// Tokens of open authentications.
    pub(crate) fn authentication_tokens(&self) -> impl Iterator<Item = u64> {
        self.requests.iter().map(|(_, open)| open.token)
    }

    /// Nobody waits for the answer to an authentication any more. It is dropped if it was not sent yet; then this returns true, and there
    /// is no [`Output::Done`]. Otherwise the server works on it, and it ends as usual.
    pub fn withdraw_authentication(&mut self, token: u64) -> bool {
        let Some(key) = self.waiting.remove(&token) else {
            return false;
        };
        let place = (self.requests.remove(key).since, key);
        let mut peers = self.peers.iter_mut();
        let was_there = peers.any(|peer| peer.waiting.remove(&place));
        debug_assert!(was_there, "a request that waits does so at a server");
        self.counters.withdrawn += 1;
        true
    }

    /// Lets a request wait for room at a server.
    fn wait_at(&mut self, index: usize, key: usize) {
        let open = &self.requests[key];
        self.waiting.insert(open.token, key);
        self.peers[index].waiting.insert((open.since, key));
    }

    /// Whether a packet answers an authentication; `None` if the sender was not asked with this identifier.
    pub(crate) fn handle_authentication(
        &mut self,
        now: Duration,
        slot: Slot,
        origin: Origin,
        bytes: &[u8],
    ) -> Option<bool> {
        let mut known = None;
        for index in 0..self.peers.len() {
            let peer = &self.peers[index];
            let asked = origin.is(Role::Authentication, &peer.server.config);
            let Some(owner) = peer.slots.owner(slot).filter(|_| asked) else {
                continue;
            };
            known = Some(false);
            if let Some(packet) = self.verify(index, owner, bytes) {
                let open = &self.requests[owner.request];
                let (asked_at, sent) = (open.asked_at, open.sent);
                let peer = &mut self.peers[index];
                if sent == 1 {
                    peer.window.grow(peer.slots.in_use());
                }
                if self.peers[index].server.heard(now, asked_at, sent) {
                    self.on_revival(now);
                }
                self.answers.count(now);
                self.answer(owner.request, &packet);
                return Some(true);
            }
        }
        known
    }

    /// Asks again, or asks the next server.
    pub(crate) fn on_authentication_timeout(&mut self, now: Duration) {
        while let Some(&(at, key)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            let open = &self.requests[key];
            if open.slot.is_none() {
                self.ask_next(now, key); // it has waited for the next attempt to connect
                continue;
            }
            let server = self.present_server(key);
            if open.sent == 1 {
                let timeout = open.timeout;
                self.peers[server].window.shrink(now, timeout);
            }
            let open = &self.requests[key];
            if self.peers[server].server.repeats(open.sent) {
                self.send_again(now, key);
            } else {
                self.give_up(now, key);
            }
        }
    }

    /// Begins an authentication.
    pub(crate) fn begin(&mut self, now: Duration, token: u64, request: AccessRequest) {
        if self.peers.is_empty() {
            return self.done(token, Outcome::Unavailable(Unavailable::NoServer));
        }
        if self.requests.len() >= self.max_requests {
            self.counters.queue_full += 1;
            return self.done(token, Outcome::Unavailable(Unavailable::QueueFull));
        }
        self.counters.requests += 1;
        let key = self.requests.insert(Open {
            token,
            since: now,
            request: Box::new(request),
            asked: Vec::new(),
            asked_at: now,
            sent: 0,
            timeout: Duration::ZERO,
            deadline: Duration::ZERO,
            slot: None,
            bytes: Vec::new(),
        });
        self.ask_next(now, key);
    }

    /// Next server that is alive and was not tried, if possible one that has room for a request. Without one, the server that has been dead
    /// for longest is tried: it may answer again.
    fn next_server(&self, now: Duration, open: &Open) -> Option<usize> {
        let peers = self.peers.iter().enumerate();
        let left = peers.filter(|(index, _)| !open.asked.contains(index));
        let candidates = left.clone().map(|(i, peer)| (i, &peer.server, peer.load()));
        let with_room = candidates
            .clone()
            .filter(|(i, ..)| self.peers[*i].has_room());
        let alive = self.selection.select(now, with_room);
        let alive = alive.or_else(|| self.selection.select(now, candidates));
        let left = left.filter(|(_, peer)| peer.server.connections.is_usable(now));
        let dead = || left.min_by_key(|(_, peer)| peer.server.dead_until());
        alive.or_else(|| dead().map(|(index, _)| index))
    }

    fn present_server(&self, key: usize) -> usize {
        *self.requests[key]
            .asked
            .last()
            .expect("a request with a deadline was sent to a server")
    }

    /// Sends the first request to the next server, or waits for a free identifier there.
    pub(crate) fn ask_next(&mut self, now: Duration, key: usize) {
        self.waiting.remove(&self.requests[key].token);
        let Some(index) = self.next_server(now, &self.requests[key]) else {
            return match self.next_attempt(now, key) {
                Some(at) => self.defer(key, at),
                None => {
                    self.counters.unanswered += 1;
                    self.finish(key, Outcome::Unavailable(Unavailable::NoAnswer));
                }
            };
        };
        let peer = &mut self.peers[index];
        let room = peer.has_room().then(|| peer.slots.take()).flatten();
        let Some(slot) = room else {
            return self.wait_at(index, key);
        };
        self.turns += 1;
        self.peers[index].server.last_turn = self.turns;
        let jitter = self.random.jitter();
        let open = &mut self.requests[key];
        open.asked.push(index);
        open.asked_at = now;
        open.sent = 0;
        open.timeout = first_timeout(&self.peers[index].server, jitter);
        self.compose_and_send(now, key, slot);
    }

    /// Time at which a server may be connected to again, if the request may wait for it: no longer than for an answer.
    fn next_attempt(&self, now: Duration, key: usize) -> Option<Duration> {
        let since = self.requests[key].since;
        let servers = self.peers.iter().map(|peer| &peer.server);
        let attempts = servers.filter_map(|server| {
            let at = server.connections.retry_at(now)?;
            (at < since + first_timeout(server, 0.0)).then_some(at)
        });
        attempts.min()
    }

    /// Lets a request wait until it may be sent to every server again.
    fn defer(&mut self, key: usize, at: Duration) {
        let open = &mut self.requests[key];
        open.asked.clear();
        open.deadline = at;
        self.deadlines.insert((at, key));
    }

    /// Retransmits the request unchanged (RFC 5080 §2.2.1).
    fn send_again(&mut self, now: Duration, key: usize) {
        self.counters.retransmissions += 1;
        let jitter = self.random.jitter();
        let open = &mut self.requests[key];
        open.timeout = next_timeout(open.timeout, jitter);
        self.send(now, key);
    }

    fn compose_and_send(&mut self, now: Duration, key: usize, slot: Slot) {
        let index = self.present_server(key);
        let peer = &mut self.peers[index];
        let open = &mut self.requests[key];
        open.slot = Some(slot);
        let authenticator = self.random.authenticator();
        let (identifier, secret) = (slot.identifier(), &peer.server.config.secret);
        let composed = access_request(&self.nas, &open.request, identifier, authenticator, secret);
        match composed {
            Ok(bytes) => {
                let request = key;
                peer.slots.occupy(
                    slot,
                    Owner {
                        request,
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
        let index = self.present_server(key);
        let server = &mut self.peers[index].server;
        let open = &mut self.requests[key];
        open.sent += 1;
        server.asked(open.sent);
        open.deadline = now + open.timeout;
        self.deadlines.insert((open.deadline, key));
        let slot = open.slot.expect("a request that is sent has an identifier");
        let output = server.transmit(Role::Authentication, slot, open.bytes.clone());
        self.output.push_back(output);
    }

    /// Sends waiting requests, the latest first: if many wait, the oldest ones are those of subscribers who are about to give up, and an
    /// answer to each of them would come too late.
    pub(crate) fn serve_waiting(&mut self, now: Duration) {
        while let Some((index, place)) = self.next_waiting(now) {
            self.peers[index].waiting.remove(&place);
            self.ask_next(now, place.1);
        }
    }

    fn next_waiting(&self, now: Duration) -> Option<(usize, Place)> {
        let queues = self.peers.iter().map(|peer| Queue {
            server: &peer.server,
            has_room: peer.has_room(),
            next: peer.waiting.last().copied(),
        });
        next_waiting(now, queues, |key, server| {
            self.requests[key].asked.contains(&server)
        })
    }

    /// Fails over to the next server after a time-out.
    fn give_up(&mut self, now: Duration, key: usize) {
        let index = self.present_server(key);
        let asked_at = self.requests[key].asked_at;
        let died = self.peers[index].server.missed(now, asked_at);
        let mut moved = vec![key];
        if died {
            moved.extend(self.strand(index).into_iter().filter(|other| *other != key));
            self.on_death(now);
        }
        for key in moved {
            self.move_on(now, key);
        }
    }

    /// Closes the connections to a server that is considered dead. Returns the requests that were sent on them, or wait for it.
    fn strand(&mut self, index: usize) -> Vec<usize> {
        let peer = &mut self.peers[index];
        let role = Role::Authentication;
        let closed = peer.server.close_connections(role, &mut self.output);
        let waiting = core::mem::take(&mut peer.waiting);
        let sent = closed.into_iter();
        let sent = sent.flat_map(|number| self.requests_on(role, index, number));
        let waiting = waiting.into_iter().map(|(_, key)| key);
        sent.chain(waiting).collect()
    }

    /// Sends a request to the next server.
    fn move_on(&mut self, now: Duration, key: usize) {
        let open = &self.requests[key];
        self.deadlines.remove(&(open.deadline, key));
        // one that waited for an identifier was not sent to the last server that it tried
        let was_sent = open.slot.is_some();
        self.counters.failovers += u64::from(was_sent && open.asked.len() < self.peers.len());
        self.free_slot(key);
        self.ask_next(now, key);
    }

    /// Handles that the connection on which a request was sent has ended.
    pub(crate) fn on_request_lost(&mut self, now: Duration, key: usize, proven: bool) {
        let open = &self.requests[key];
        self.deadlines.remove(&(open.deadline, key));
        let index = self.present_server(key);
        if !proven {
            return self.give_up(now, key);
        }
        let again = self.peers[index].server.reconnects(open.sent);
        self.free_slot(key);
        match again.then(|| self.peers[index].slots.take()).flatten() {
            Some(slot) => {
                self.counters.retransmissions += 1;
                let jitter = self.random.jitter();
                let timeout = first_timeout(&self.peers[index].server, jitter);
                self.requests[key].timeout = timeout;
                self.compose_and_send(now, key, slot);
            }
            None => self.ask_next(now, key),
        }
    }

    /// Handles that a server is considered dead.
    pub(crate) fn on_death(&mut self, now: Duration) {
        self.counters.deaths += 1;
        self.settle_probes(now);
    }

    fn free_slot(&mut self, key: usize) {
        let open = &mut self.requests[key];
        if let (Some(slot), Some(&server)) = (open.slot.take(), open.asked.last()) {
            self.peers[server].slots.free(slot);
        }
    }

    fn verify(&self, server: usize, owner: Owner, bytes: &[u8]) -> Option<Packet> {
        let config = &self.peers[server].server.config;
        let missing = match config.require_message_authenticator {
            true => Missing::Refuse,
            false => Missing::Allow,
        };
        verify_response(bytes, &owner.authenticator, config.secret.expose(), missing).ok()
    }

    fn answer(&mut self, key: usize, packet: &Packet) {
        let refused = |reason| Outcome::Reject(rejection(packet, reason));
        let credentials = &self.requests[key].request.credentials;
        let outcome = match packet.code {
            Code::ACCESS_ACCEPT => {
                match access_accept(packet, &self.mappings, self.not_enforced, credentials) {
                    Ok(accept) => Outcome::Accept(Box::new(accept)),
                    Err(reason) => {
                        self.counters.unusable_accepts += 1;
                        refused(reason)
                    }
                }
            }
            Code::ACCESS_REJECT => refused(RejectReason::Refused),
            Code::ACCESS_CHALLENGE => refused(RejectReason::Challenged),
            _ => return self.counters.mismatched_replies += 1,
        };
        match outcome {
            Outcome::Accept(_) => self.counters.accepts += 1,
            Outcome::Reject(_) => self.counters.rejects += 1,
            Outcome::Unavailable(_) => {}
        }
        self.finish(key, outcome);
    }

    fn finish(&mut self, key: usize, outcome: Outcome) {
        self.deadlines.remove(&(self.requests[key].deadline, key));
        self.free_slot(key);
        let open = self.requests.remove(key);
        self.done(open.token, outcome);
    }

    fn done(&mut self, token: u64, outcome: Outcome) {
        self.output.push_back(Output::Done { token, outcome });
    }
}
