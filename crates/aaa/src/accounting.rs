//! Delivery of accounting records to a server.
//!
//! A record is the same datagram for a server, however often it is sent, also after a restart of the client: its attributes are encoded
//! once, it keeps its [`Slot`] until a server answers, and its Request Authenticator depends on both (RFC 2866 §3). So a server
//! distinguishes a repetition from a new record, and an answer to a datagram of an earlier run counts. Records have no Acct-Delay-Time,
//! because its change would make another datagram (RFC 2866 §5.2). Event-Timestamp has the time of the event.
//!
//! A server has a [`Window`] of unanswered records. What has no room waits, the oldest first: nobody gives a record up.

use core::time::Duration;
use std::collections::BTreeSet;

use slab::Slab;
use wire::Result;
use wire::radius::{Code, HEADER_LEN, Missing, verify_response};

use crate::message::{AccountingRecord, Announcement};
use crate::random::Random;
use crate::requests::{accounting_attributes, accounting_request, announcement_attributes};
use crate::selection::{Queue, next_waiting};
use crate::server::{Server, ServerStatus, Slot, Slots, first_timeout, next_timeout};
use crate::streams::{Origin, Role};
use crate::window::Window;
use crate::{Client, Output, Selection, ServerConfig};

/// Minimum back-off after no server answered a record. Then all servers are tried again.
const REST: Duration = Duration::from_secs(30);

/// Time over which records are spread whose back-off ends early, for each of them; at most [`REST`] for all.
const SPREAD: Duration = Duration::from_millis(100);

/// Delivery guarantee of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Tried at every server that is alive, then given up: for interim records, which a later one replaces.
    Once,
    /// Retried until a server acknowledges it.
    UntilRecorded,
    /// Retried like `UntilRecorded`, for a record that an earlier run of the client may have sent. It starts after a short delay, because
    /// the answer may be in flight, and because there may be many such records.
    Resumed,
}

pub(crate) struct Offer {
    token: u64,
    /// Time at which its delivery began.
    since: Duration,
    slot: Slot,
    attributes: Box<[u8]>,
    insists: bool,
    /// Servers tried in this round. Empty during the back-off.
    pub(crate) asked: Vec<usize>,
    /// Current server. `None` during the back-off, and while it waits for room in a window.
    pub(crate) at: Option<usize>,
    /// Time of the first request to the current server.
    asked_at: Duration,
    /// Number of requests to it.
    sent: u32,
    timeout: Duration,
    pub(crate) deadline: Duration,
}

/// Accounting server.
pub(crate) struct AccountingServer {
    pub(crate) server: Server,
    /// Number of records whose current server it is.
    load: usize,
    window: Window,
    /// Records that wait for room in the window, by the time at which their delivery began.
    pub(crate) waiting: BTreeSet<(Duration, usize)>,
}

impl AccountingServer {
    pub(crate) fn new(config: ServerConfig) -> Self {
        Self {
            server: Server::new(config),
            load: 0,
            window: Window::default(),
            waiting: BTreeSet::new(),
        }
    }

    /// Whether it may be sent one more record.
    fn has_room(&self) -> bool {
        self.window.has_room(self.load)
    }

    /// Status of the server.
    pub(crate) fn status(&self, now: Duration) -> ServerStatus {
        self.server
            .status(now, self.window.size(), self.waiting.len())
    }
}

/// Records that no server has acknowledged yet, and the servers.
pub(crate) struct Accounting {
    pub(crate) servers: Vec<AccountingServer>,
    /// Slots. A slot is valid for all servers.
    pub(crate) slots: Slots<usize>,
    pub(crate) offers: Slab<Offer>,
    pub(crate) deadlines: BTreeSet<(Duration, usize)>,
}

impl Accounting {
    pub(crate) fn new(servers: Vec<ServerConfig>, max_sockets: u16, begin: u32) -> Self {
        Self {
            servers: servers.into_iter().map(AccountingServer::new).collect(),
            slots: Slots::all(max_sockets, begin),
            offers: Slab::new(),
            deadlines: BTreeSet::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.offers.len()
    }

    /// Time of the next time-out. A record that was withdrawn may have left room: then it is at once.
    pub(crate) fn poll_at(&self) -> Option<Duration> {
        let is_free = |of: &AccountingServer| of.has_room() && !of.waiting.is_empty();
        match self.servers.iter().any(is_free) {
            true => Some(Duration::ZERO),
            false => self.deadlines.first().map(|&(at, _)| at),
        }
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().map(|of| &of.server)
    }

    /// Next server that is alive and was not tried in this round: one that has room for a record, or the one with the fewest.
    fn next_server(&self, now: Duration, selection: Selection, offer: &Offer) -> Option<usize> {
        let servers = self.servers.iter().enumerate();
        let left = servers.filter(|(index, _)| !offer.asked.contains(index));
        let left = left.map(|(index, of)| (index, &of.server, of.load + of.waiting.len()));
        let with_room = left.clone().filter(|(i, ..)| self.servers[*i].has_room());
        let found = selection.select(now, with_room);
        found.or_else(|| Selection::Balanced.select(now, left))
    }

    /// Makes a server the current one of a record, or none.
    fn place(&mut self, key: usize, server: Option<usize>) {
        let offer = &mut self.offers[key];
        if let Some(left) = core::mem::replace(&mut offer.at, server) {
            self.servers[left].load -= 1;
        }
        match server {
            Some(server) => {
                offer.asked.push(server);
                self.servers[server].load += 1;
            }
            None => offer.asked.clear(),
        }
    }

    /// Lets a record wait for room at a server.
    fn wait_at(&mut self, index: usize, key: usize) {
        let offer = &mut self.offers[key];
        if let Some(left) = offer.at.take() {
            self.servers[left].load -= 1;
        }
        self.servers[index].waiting.insert((offer.since, key));
    }

    /// The next record that waits and for which a server has room: the oldest one of a server.
    fn take_waiting(&mut self, now: Duration) -> Option<usize> {
        let queues = self.servers.iter().map(|of| Queue {
            server: &of.server,
            has_room: of.has_room(),
            next: of.waiting.first().copied(),
        });
        let was_sent = |key: usize, server| self.offers[key].asked.contains(&server);
        let (index, place) = next_waiting(now, queues, was_sent)?;
        self.servers[index].waiting.remove(&place);
        Some(place.1)
    }

    /// Time at which a server counts as alive again; now if one is alive.
    fn next_life(&self) -> Duration {
        let until = self.servers().map(Server::dead_until);
        until.min().unwrap_or_default()
    }

    /// Shortens the back-off of records, because a server is alive again, or new. They are spread over a time that grows with their
    /// number, so that the server is not flooded.
    pub(crate) fn hasten(&mut self, now: Duration, random: &mut Random) {
        let rests = |deadlines: &BTreeSet<_>, key, offer: &Offer| {
            offer.asked.is_empty() && deadlines.contains(&(offer.deadline, key))
        };
        let offers = self.offers.iter();
        let resting = offers.filter(|(key, offer)| rests(&self.deadlines, *key, offer));
        let span = SPREAD.saturating_mul(resting.count() as u32).min(REST);
        for (key, offer) in &mut self.offers {
            let at = now + span.mul_f64(random.share());
            if rests(&self.deadlines, key, offer) && at < offer.deadline {
                self.deadlines.remove(&(offer.deadline, key));
                self.deadlines.insert((at, key));
                offer.deadline = at;
            }
        }
    }

    fn arm(&mut self, key: usize, at: Duration) {
        self.offers[key].deadline = at;
        self.deadlines.insert((at, key));
    }

    fn remove(&mut self, key: usize) -> u64 {
        self.place(key, None);
        let offer = self.offers.remove(key);
        self.deadlines.remove(&(offer.deadline, key));
        for server in &mut self.servers {
            server.waiting.remove(&(offer.since, key));
        }
        self.slots.free(offer.slot);
        offer.token
    }
}

impl Client {
    /// Encoded attributes of a record.
    ///
    /// # Errors
    /// A value that does not fit into RADIUS, for example a name of more than 253 octets.
    pub fn accounting_attributes(&mut self, record: &AccountingRecord) -> Result<Box<[u8]>> {
        let (attributes, is_shortened) =
            accounting_attributes(&self.nas, self.family_counters, record)?;
        self.counters.shortened += u64::from(is_shortened);
        Ok(attributes)
    }

    /// Encoded attributes of an announcement, for [`account`](Self::account).
    ///
    /// # Errors
    /// A value that does not fit into RADIUS.
    pub fn announcement_attributes(&self, announcement: &Announcement) -> Result<Box<[u8]>> {
        announcement_attributes(&self.nas, announcement)
    }

    /// Allocates a slot for an accounting record; `None` if the maximum number of records is in flight.
    pub fn take_slot(&mut self) -> Option<Slot> {
        self.accounting.slots.take()
    }

    /// Whether [`take_slot`](Self::take_slot) would return a slot.
    pub fn has_slot(&self) -> bool {
        self.accounting.slots.has_free()
    }

    /// Allocates the slot that a record had in an earlier run. Returns false if the slot is in use or no longer exists.
    pub fn claim_slot(&mut self, slot: Slot) -> bool {
        self.accounting.slots.claim(slot)
    }

    /// Delivers an accounting record to a server, and to the next one if that does not answer. `token` identifies it in
    /// [`Output::Accounted`], which frees the slot.
    pub fn account(
        &mut self,
        now: Duration,
        token: u64,
        slot: Slot,
        attributes: Box<[u8]>,
        delivery: Delivery,
    ) {
        self.counters.requests += 1;
        let accounting = &mut self.accounting;
        let key = accounting.offers.insert(Offer {
            token,
            since: now,
            slot,
            attributes,
            insists: delivery != Delivery::Once,
            asked: Vec::new(),
            at: None,
            asked_at: now,
            sent: 0,
            timeout: Duration::ZERO,
            deadline: now,
        });
        accounting.slots.occupy(slot, key);
        if delivery == Delivery::Resumed {
            let timeouts = accounting.servers().map(|s| s.config.timeout);
            let span = timeouts.max().unwrap_or_default();
            let at = now + span.mul_f64(self.random.share());
            return self.accounting.arm(key, at);
        }
        self.offer_next(now, key);
    }

    /// Releases the slot of a record that was not passed to [`account`](Self::account).
    pub fn give_back(&mut self, slot: Slot) {
        self.accounting.slots.free(slot);
    }

    /// Stops the delivery of a record and frees its slot. Has no effect if its delivery has ended, even if its [`Output::Accounted`] has
    /// not been polled yet.
    pub fn withdraw(&mut self, token: u64, slot: Slot) {
        let key = self.accounting.slots.owner(slot);
        if let Some(key) = key.filter(|key| self.accounting.offers[*key].token == token) {
            self.accounting.remove(key);
        }
    }

    /// Whether a datagram answers a record; `None` if its slot has no record that the sender can answer.
    pub(crate) fn handle_accounting(
        &mut self,
        now: Duration,
        slot: Slot,
        origin: Origin,
        bytes: &[u8],
    ) -> Option<bool> {
        let Accounting {
            servers,
            slots,
            offers,
            ..
        } = &mut self.accounting;
        let key = slots.owner(slot)?;
        let mut known = None;
        for (index, of) in servers.iter_mut().enumerate() {
            if !origin.is(Role::Accounting, &of.server.config) {
                continue;
            }
            let secret = &of.server.config.secret;
            let attributes = &offers[key].attributes;
            let request = accounting_request(slot.identifier(), attributes, secret);
            let authenticator = request[4..HEADER_LEN]
                .try_into()
                .expect("a packet has an authenticator");
            match verify_response(bytes, &authenticator, secret.expose(), Missing::Allow) {
                Err(_) => known = Some(false),
                Ok(packet) => {
                    let offer = &offers[key];
                    // another than the one that is asked now answers late
                    let present = offer.at == Some(index);
                    let sent = if present { offer.sent } else { 0 };
                    if sent == 1 {
                        let AccountingServer { window, load, .. } = &mut *of;
                        window.grow(*load);
                    }
                    let server = &mut of.server;
                    let revived = server.heard(now, offer.asked_at, sent);
                    match packet.code {
                        Code::ACCOUNTING_RESPONSE => self.accounted(key, true),
                        _ => self.counters.mismatched_replies += 1,
                    }
                    if revived {
                        self.on_revival(now);
                    }
                    return Some(true);
                }
            }
        }
        known
    }

    pub(crate) fn on_accounting_timeout(&mut self, now: Duration) {
        while let Some(&(at, key)) = self.accounting.deadlines.first()
            && at <= now
        {
            self.accounting.deadlines.pop_first();
            let offer = &self.accounting.offers[key];
            let Some(server) = offer.at else {
                self.offer_next(now, key); // it has rested
                continue;
            };
            let of = &mut self.accounting.servers[server];
            if offer.sent == 1 {
                of.window.shrink(now, offer.timeout);
            }
            if of.server.repeats(offer.sent) {
                self.counters.retransmissions += 1;
                let timeout = next_timeout(offer.timeout, self.random.jitter());
                self.offer(now, key, server, timeout);
            } else {
                self.miss_record(now, key, server);
            }
        }
    }

    /// Handles that a server has not answered about a record, which goes to the next one.
    fn miss_record(&mut self, now: Duration, key: usize, index: usize) {
        let asked_at = self.accounting.offers[key].asked_at;
        let server = &mut self.accounting.servers[index].server;
        let died = server.missed(now, asked_at);
        let mut moved = vec![key];
        if died {
            let closed = server.close_connections(Role::Accounting, &mut self.output);
            for number in closed {
                let others = self.requests_on(Role::Accounting, index, number);
                moved.extend(others.into_iter().filter(|other| *other != key));
            }
            let waiting = core::mem::take(&mut self.accounting.servers[index].waiting);
            moved.extend(waiting.into_iter().map(|(_, key)| key));
            self.on_death(now);
        }
        for key in moved {
            let deadline = self.accounting.offers[key].deadline;
            self.accounting.deadlines.remove(&(deadline, key));
            self.offer_next(now, key);
        }
    }

    /// Handles that the connection on which a record was sent has ended.
    pub(crate) fn on_record_lost(&mut self, now: Duration, key: usize, proven: bool) {
        let offer = &self.accounting.offers[key];
        let Some(index) = offer.at else { return };
        self.accounting.deadlines.remove(&(offer.deadline, key));
        let server = &self.accounting.servers[index].server;
        if !proven {
            self.miss_record(now, key, index);
        } else if server.reconnects(offer.sent) {
            self.counters.retransmissions += 1;
            let timeout = first_timeout(server, self.random.jitter());
            self.offer(now, key, index, timeout);
        } else {
            self.offer_next(now, key);
        }
    }

    /// Sends waiting records.
    pub(crate) fn serve_records(&mut self, now: Duration) {
        while let Some(key) = self.accounting.take_waiting(now) {
            self.offer_next(now, key);
        }
    }

    /// Tries a record at the next server, or lets it wait for room there. Without one, it starts the back-off or gives the record up.
    pub(crate) fn offer_next(&mut self, now: Duration, key: usize) {
        let offer = &self.accounting.offers[key];
        match self.accounting.next_server(now, self.selection, offer) {
            Some(server) if !self.accounting.servers[server].has_room() => {
                self.accounting.wait_at(server, key);
            }
            Some(server) => {
                self.counters.failovers += u64::from(!offer.asked.is_empty());
                self.turns += 1;
                self.accounting.place(key, Some(server));
                let at = &mut self.accounting.servers[server].server;
                at.last_turn = self.turns;
                let timeout = first_timeout(at, self.random.jitter());
                let offer = &mut self.accounting.offers[key];
                (offer.asked_at, offer.sent) = (now, 0);
                self.offer(now, key, server, timeout);
            }
            None if offer.insists => {
                self.counters.postponed += 1;
                let rest = REST.mul_f64(1.0 + self.random.jitter());
                let jitter = REST.mul_f64(0.1 + self.random.jitter());
                let at = (now + rest).max(self.accounting.next_life() + jitter);
                self.accounting.place(key, None);
                self.accounting.arm(key, at);
            }
            None => {
                self.counters.unanswered += 1;
                self.accounted(key, false);
            }
        }
    }

    fn offer(&mut self, now: Duration, key: usize, server: usize, timeout: Duration) {
        let offer = &mut self.accounting.offers[key];
        offer.sent += 1;
        let server = &mut self.accounting.servers[server].server;
        server.asked(offer.sent);
        let (slot, secret) = (offer.slot, &server.config.secret);
        let bytes = accounting_request(slot.identifier(), &offer.attributes, secret);
        offer.timeout = timeout;
        let output = server.transmit(Role::Accounting, slot, bytes);
        self.output.push_back(output);
        self.accounting.arm(key, now + timeout);
    }

    fn accounted(&mut self, key: usize, recorded: bool) {
        self.counters.recorded += u64::from(recorded);
        let token = self.accounting.remove(key);
        self.output.push_back(Output::Accounted { token, recorded });
    }
}
