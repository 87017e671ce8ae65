//! Requests on their way, and datagrams as they come in (TS 29.244 §6.4, §7.6).
use super::cache::Known;
use super::claims::Setup;
use super::peer::{Outstanding, Purpose, State};
use super::{Doubt, Event, FailReason, Node, RequestId, Timer};
use core::net::SocketAddr;
use core::time::Duration;
use wire::pfcp::*;

/// Message type of Version Not Supported Response.
const VERSION_NOT_SUPPORTED: u8 = 11;
/// Where a message about a session has its sequence number (TS 29.244 §7.2.2.4).
const SEQUENCE_AT: core::ops::Range<usize> = 12..15;

impl Node {
    /// Sends a request about a session. Its sequence number is taken only now: a number says how old a request is at most.
    pub(super) fn send_session_request(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        mut bytes: Vec<u8>,
        token: u64,
    ) {
        let sequence = self.take_sequence();
        if let Some(at) = bytes.get_mut(SEQUENCE_AT) {
            at.copy_from_slice(&sequence.to_be_bytes()[1..]);
        }
        self.send_request(now, peer, sequence, bytes, Purpose::Session(token));
    }

    /// Sends a request.
    pub(super) fn send_request(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        sequence: u32,
        bytes: Vec<u8>,
        purpose: Purpose,
    ) {
        let timer = self.arm(now + self.config.t1, Timer::Retransmit(peer, sequence));
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.in_window += usize::from(matches!(purpose, Purpose::Session(_)));
            entry.outstanding.insert(
                sequence,
                Outstanding {
                    bytes: bytes.clone(),
                    purpose,
                    retries: 0,
                    timer,
                },
            );
            self.transmit(peer, bytes);
        }
    }

    /// Sends a request of the node itself.
    pub(super) fn send_node_request(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        message: impl Into<Message>,
        purpose: Purpose,
    ) {
        let sequence = self.take_sequence();
        let mut bytes = Vec::new();
        if Packet::node(sequence, message).emit(&mut bytes).is_ok() {
            self.send_request(now, peer, sequence, bytes, purpose);
        }
    }

    /// T1 is over: again, identically, up to N1 times.
    pub(super) fn retransmit(&mut self, now: Duration, peer: SocketAddr, sequence: u32) {
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let Some(outstanding) = entry.outstanding.get_mut(&sequence) else {
            return;
        };
        if outstanding.retries < self.config.n1 {
            outstanding.retries += 1;
            let bytes = outstanding.bytes.clone();
            let timer = self.arm(now + self.config.t1, Timer::Retransmit(peer, sequence));
            if let Some(outstanding) = self.outstanding(peer, sequence) {
                outstanding.timer = timer;
            }
            self.counters.retransmitted += 1;
            return self.transmit(peer, bytes);
        }
        let Some(outstanding) = entry.settle(sequence) else {
            return;
        };
        self.counters.timed_out += 1;
        match outstanding.purpose {
            Purpose::Session(token) => {
                self.event(Event::Failed {
                    peer,
                    token,
                    reason: FailReason::TimedOut,
                });
                self.pump(now, peer);
            }
            purpose => self.gave_up(now, peer, purpose),
        }
    }

    fn outstanding(&mut self, peer: SocketAddr, sequence: u32) -> Option<&mut Outstanding> {
        self.peers.get_mut(&peer)?.outstanding.get_mut(&sequence)
    }

    /// Lets waiting requests into the window.
    fn pump(&mut self, now: Duration, peer: SocketAddr) {
        let window = self.config.window;
        while let Some(entry) = self.peers.get_mut(&peer) {
            if entry.in_window >= window {
                break;
            }
            let Some((bytes, token)) = entry.queue.pop_front() else {
                break;
            };
            self.send_session_request(now, peer, bytes, token);
        }
    }

    /// Takes a request out of the books, with its timer.
    fn settle(&mut self, peer: SocketAddr, sequence: u32) -> Option<Outstanding> {
        let outstanding = self.peers.get_mut(&peer)?.settle(sequence)?;
        self.timers.remove(&outstanding.timer);
        Some(outstanding)
    }

    /// Ends every request about sessions; the association is no more.
    pub(super) fn fail_all(&mut self, peer: SocketAddr) {
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let waiting: Vec<u64> = entry.queue.drain(..).map(|(_, token)| token).collect();
        let sent: Vec<u32> = entry.outstanding.keys().copied().collect();
        let mut tokens = Vec::new();
        for sequence in sent {
            if let Some(Purpose::Session(token)) = self.settle(peer, sequence).map(|o| o.purpose) {
                tokens.push(token);
            }
        }
        for token in tokens.into_iter().chain(waiting) {
            self.event(Event::Failed {
                peer,
                token,
                reason: FailReason::AssociationDown,
            });
        }
    }

    /// The peer that an address belongs to: by address and port, else by address alone.
    fn peer_at(&self, from: SocketAddr) -> Option<SocketAddr> {
        if self.peers.contains_key(&from) {
            return Some(from);
        }
        self.peers
            .keys()
            .find(|peer| peer.ip() == from.ip())
            .copied()
    }

    /// Whether anything of this address is heard. Others get no answer: they would have us send to whoever they name.
    fn listens_to(&self, now: Duration, from: SocketAddr) -> bool {
        let mut peers = self.peers.iter();
        let known = self.peers.get(&from);
        known.is_some_and(|peer| peer.is_known(now))
            || peers.any(|(at, peer)| at.ip() == from.ip() && peer.is_known(now))
    }

    /// Whether a response may come from here: the address and port that requests go to (TS 29.244 §6.8.2).
    fn is_asked(&mut self, from: SocketAddr) -> bool {
        let is_asked = self.peers.contains_key(&from);
        if !is_asked {
            self.doubt(from, Doubt::Misdirected);
        }
        is_asked
    }

    pub(super) fn receive(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        if !self.listens_to(now, from) {
            return self.doubt(from, Doubt::UnknownPeer);
        }
        match parse(bytes) {
            Ok(received) => {
                self.counters.ignored_elements += u64::from(received.ignored);
                if received.packet.message.is_request() {
                    self.on_request(now, from, received.packet, bytes);
                } else if self.is_asked(from) {
                    self.on_response(now, from, received.packet);
                }
            }
            Err(ParseError::Malformed(_)) => self.counters.malformed += 1,
            Err(ParseError::UnknownMessage(_)) => self.counters.unknown_messages += 1,
            Err(ParseError::Version {
                version,
                kind,
                sequence,
            }) => {
                self.on_other_version(now, from, version, kind, sequence);
            }
            Err(ParseError::Refused {
                header,
                cause,
                offending_ie,
            }) => {
                self.counters.refused += 1;
                self.on_refused(now, from, header, cause, offending_ie);
            }
        }
    }

    fn on_other_version(
        &mut self,
        now: Duration,
        from: SocketAddr,
        version: u8,
        kind: u8,
        sequence: u32,
    ) {
        self.counters.other_version += 1;
        if kind == VERSION_NOT_SUPPORTED {
            if self.is_asked(from) {
                self.version_refused(now, from, version, sequence);
            }
            return;
        }
        self.event(Event::VersionMismatch {
            peer: from,
            version,
        });
        if is_request(kind) {
            self.reply(from, version_not_supported(sequence));
        }
    }

    /// A peer does not take our version.
    fn version_refused(&mut self, now: Duration, peer: SocketAddr, version: u8, sequence: u32) {
        match self
            .settle(peer, sequence)
            .map(|outstanding| outstanding.purpose)
        {
            None => self.counters.unexpected_responses += 1,
            Some(Purpose::Session(token)) => {
                self.event(Event::VersionMismatch { peer, version });
                self.event(Event::Failed {
                    peer,
                    token,
                    reason: FailReason::Version,
                });
                self.pump(now, peer);
            }
            Some(purpose) => {
                self.event(Event::VersionMismatch { peer, version });
                self.gave_up(now, peer, purpose);
            }
        }
    }

    fn on_refused(
        &mut self,
        now: Duration,
        from: SocketAddr,
        header: Header,
        cause: Cause,
        ie: Option<IeId>,
    ) {
        if is_request(header.kind) {
            if let Some(message) = self.refusal(header.kind, cause, ie.map(|id| id.kind)) {
                let seid = is_about_session(header.kind).then_some(0);
                self.reply(
                    from,
                    Packet {
                        seid,
                        sequence: header.sequence,
                        message,
                    },
                );
            }
            return;
        }
        if !self.is_asked(from) {
            return;
        }
        let peer = from;
        match self
            .settle(peer, header.sequence)
            .map(|outstanding| outstanding.purpose)
        {
            None => self.counters.unexpected_responses += 1,
            Some(Purpose::Session(token)) => {
                self.event(Event::Failed {
                    peer,
                    token,
                    reason: FailReason::BadResponse(cause),
                });
                self.pump(now, peer);
            }
            Some(purpose) => self.gave_up(now, peer, purpose),
        }
    }

    /// The response to a request that is refused. A heartbeat cannot be.
    fn refusal(&self, request: u8, cause: Cause, offending_ie: Option<u16>) -> Option<Message> {
        let node_id = self.config.node_id.clone();
        let recovery_time_stamp = self.config.recovery_time_stamp;
        Some(match request {
            5 => AssociationSetupResponse {
                node_id,
                cause,
                recovery_time_stamp,
                ..Default::default()
            }
            .into(),
            7 => AssociationUpdateResponse {
                node_id,
                cause,
                ..Default::default()
            }
            .into(),
            9 => AssociationReleaseResponse { node_id, cause }.into(),
            50 => SessionEstablishmentResponse {
                node_id,
                cause,
                offending_ie,
                ..Default::default()
            }
            .into(),
            52 => SessionModificationResponse {
                cause,
                offending_ie,
                ..Default::default()
            }
            .into(),
            54 => SessionDeletionResponse {
                cause,
                offending_ie,
                ..Default::default()
            }
            .into(),
            56 => SessionReportResponse {
                cause,
                offending_ie,
            }
            .into(),
            _ => return None,
        })
    }

    /// Answers without keeping the answer.
    fn reply(&mut self, to: SocketAddr, packet: Packet) {
        let mut bytes = Vec::new();
        if packet.emit(&mut bytes).is_ok() {
            self.transmit(to, bytes);
        }
    }

    /// Answers, and keeps the answer in case the request comes again.
    pub(super) fn answer(&mut self, id: RequestId, packet: Packet) {
        let mut bytes = Vec::new();
        if packet.emit(&mut bytes).is_err() {
            return;
        }
        if let Some(entry) = self.peers.get_mut(&id.peer) {
            entry
                .cache
                .answer((id.reply_to.port(), id.sequence), &bytes);
            self.transmit(id.reply_to, bytes);
        }
    }

    fn on_request(&mut self, now: Duration, from: SocketAddr, packet: Packet, bytes: &[u8]) {
        if let Message::AssociationSetupRequest(request) = &packet.message
            && self.is_taken(now, from, &request.node_id)
        {
            return self.refuse(from, &packet, Cause::REQUEST_REJECTED);
        }
        let peer = self.peer_at(from);
        let Some(peer) = peer.filter(|peer| self.takes(*peer, &packet.message)) else {
            if let Message::HeartbeatRequest(_) = packet.message {
                let answer = self.heartbeat_response();
                return self.reply(from, Packet::node(packet.sequence, answer));
            }
            self.counters.unassociated += 1;
            return self.refuse(from, &packet, Cause::NO_ESTABLISHED_ASSOCIATION);
        };
        let id = RequestId {
            peer,
            reply_to: from,
            sequence: packet.sequence,
        };
        if !self.is_new(now, id, bytes) {
            return;
        }
        if let Message::AssociationSetupRequest(request) = packet.message {
            let bytes = bytes.to_vec();
            return self.on_claimed_setup(now, Setup { id, bytes, request });
        }
        let is_about_session = packet.message.is_about_session();
        if is_about_session && !self.is_in_use(id) {
            return self.doubt(from, Doubt::Sequence);
        }
        if !self.begin(now, id, bytes) {
            return;
        }
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.numbering.carry_out();
        }
        self.dispatch(now, id, packet);
    }

    /// Whether a peer may make this request now. Most need an association; one that we release is none to whoever asks for it.
    fn takes(&self, peer: SocketAddr, message: &Message) -> bool {
        self.peers.get(&peer).is_some_and(|entry| match message {
            Message::HeartbeatRequest(_) => true,
            Message::AssociationSetupRequest(_) => entry.configured,
            Message::AssociationUpdateRequest(_) => entry.state == State::Up,
            _ => entry.is_up(),
        })
    }

    /// Whether the peer still uses the request's sequence number.
    fn is_in_use(&self, id: RequestId) -> bool {
        let entry = self.peers.get(&id.peer);
        entry.is_some_and(|entry| entry.numbering.allows(id.sequence))
    }

    /// Refuses without keeping anything.
    pub(super) fn refuse(&mut self, from: SocketAddr, packet: &Packet, cause: Cause) {
        if let Some(message) = self.refusal(packet.message.kind(), cause, None) {
            let seid = packet.seid.map(|_| 0);
            self.reply(
                from,
                Packet {
                    seid,
                    sequence: packet.sequence,
                    message,
                },
            );
        }
    }

    /// Has the request not been seen yet? If it has, it gets the answer that it got, once there is one.
    fn is_new(&mut self, now: Duration, id: RequestId, bytes: &[u8]) -> bool {
        let Some(entry) = self.peers.get_mut(&id.peer) else {
            return false;
        };
        let key = (id.reply_to.port(), id.sequence);
        match entry.cache.look_up(now, key, bytes) {
            Known::New => return true,
            Known::InProgress => self.counters.duplicates += 1,
            Known::Answered(answer) => {
                let answer = answer.to_vec();
                self.counters.duplicates += 1;
                self.transmit(id.reply_to, answer);
            }
        }
        false
    }

    /// Remembers a request that is carried out now, unless there is no memory for it: then it is not carried out.
    pub(super) fn begin(&mut self, now: Duration, id: RequestId, bytes: &[u8]) -> bool {
        let key = (id.reply_to.port(), id.sequence);
        let entry = self.peers.get_mut(&id.peer);
        let begun = entry.is_some_and(|entry| entry.cache.begin(now, key, bytes));
        self.counters.overload += u64::from(!begun);
        begun
    }

    fn dispatch(&mut self, now: Duration, id: RequestId, packet: Packet) {
        let seid = packet.seid.unwrap_or(0);
        match packet.message {
            Message::HeartbeatRequest(request) => self.on_heartbeat(now, id, &request),
            Message::AssociationUpdateRequest(request) => self.on_update(id, &request),
            Message::AssociationReleaseRequest(_) => self.on_release(now, id),
            message => self.event(Event::Request { id, seid, message }),
        }
    }

    fn on_response(&mut self, now: Duration, peer: SocketAddr, packet: Packet) {
        if let Message::VersionNotSupportedResponse(_) = packet.message {
            return self.version_refused(now, peer, VERSION, packet.sequence);
        }
        let kind = packet.message.kind();
        let matches = self
            .outstanding(peer, packet.sequence)
            .is_some_and(|outstanding| {
                // Octet 2 of a message is its type, and a response's is its request's plus one.
                outstanding
                    .bytes
                    .get(1)
                    .is_some_and(|request| request + 1 == kind)
            });
        let Some(outstanding) = matches
            .then(|| self.settle(peer, packet.sequence))
            .flatten()
        else {
            self.counters.unexpected_responses += 1;
            return self.on_late_response(peer, &packet);
        };
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.heard = Some(now);
        }
        let Purpose::Session(token) = outstanding.purpose else {
            return self.on_node_response(now, peer, outstanding.purpose, packet.message);
        };
        // Nothing was done about the request: what becomes of it is decided when there is an association again.
        if packet.message.cause() == Some(Cause::NO_ESTABLISHED_ASSOCIATION) {
            self.event(Event::Failed {
                peer,
                token,
                reason: FailReason::AssociationDown,
            });
            return self.forgotten(now, peer);
        }
        let seid = packet.seid.unwrap_or(0);
        self.event(Event::Response {
            peer,
            token,
            seid,
            message: packet.message,
        });
        self.pump(now, peer);
    }

    fn on_late_response(&mut self, peer: SocketAddr, packet: &Packet) {
        if let (Message::SessionEstablishmentResponse(m), Some(seid)) =
            (&packet.message, packet.seid)
            && let Some(f_seid) = m.up_f_seid
            && m.cause == Cause::REQUEST_ACCEPTED
            && self.is_associated(peer)
        {
            self.event(Event::EstablishedLate {
                peer,
                seid,
                peer_seid: f_seid.seid,
            });
        }
    }
}
