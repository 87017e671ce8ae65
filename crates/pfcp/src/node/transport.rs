//! Requests on their way, and datagrams as they come in (TS 29.244 §6.4, §7.6).
use super::cache::Known;
use super::peer::{Outstanding, Peer, Purpose};
use super::{Event, FailReason, Node, RequestId, Timer};
use core::net::SocketAddr;
use core::time::Duration;
use wire::pfcp::*;

/// Message type of Version Not Supported Response.
const VERSION_NOT_SUPPORTED: u8 = 11;

impl Node {
    /// Sends a request that is due now. The number was taken when it was made.
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
            let Some((sequence, bytes, token)) = entry.queue.pop_front() else {
                break;
            };
            self.send_request(now, peer, sequence, bytes, Purpose::Session(token));
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
        let waiting: Vec<u64> = entry.queue.drain(..).map(|(_, _, token)| token).collect();
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

    pub(super) fn receive(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        match parse(bytes) {
            Ok(received) => {
                self.counters.ignored_elements += u64::from(received.ignored);
                if received.packet.message.is_request() {
                    self.on_request(now, from, received.packet, bytes);
                } else {
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
            return self.version_refused(now, from, version, sequence);
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
    fn version_refused(&mut self, now: Duration, from: SocketAddr, version: u8, sequence: u32) {
        let peer = self.peer_at(from).unwrap_or(from);
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
        let peer = self.peer_at(from).unwrap_or(from);
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
            entry.cache.answer((id.reply_to, id.sequence), &bytes);
            self.transmit(id.reply_to, bytes);
        }
    }

    fn on_request(&mut self, now: Duration, from: SocketAddr, packet: Packet, bytes: &[u8]) {
        let sequence = packet.sequence;
        if let Message::AssociationSetupRequest(request) = &packet.message
            && (self.is_taken(from, &request.node_id) || !self.admit(from))
        {
            return self.refuse(from, &packet, Cause::REQUEST_REJECTED);
        }
        let peer = self.peer_at(from);
        let is_up = peer.is_some_and(|peer| self.is_associated(peer));
        let needs_association = !matches!(
            packet.message,
            Message::AssociationSetupRequest(_) | Message::HeartbeatRequest(_)
        );
        let Some(peer) = peer.filter(|_| is_up || !needs_association) else {
            if let Message::HeartbeatRequest(_) = packet.message {
                return self.reply(from, Packet::node(sequence, self.heartbeat_response()));
            }
            self.counters.unassociated += 1;
            return self.refuse(from, &packet, Cause::NO_ESTABLISHED_ASSOCIATION);
        };
        let id = RequestId {
            peer,
            reply_to: from,
            sequence,
        };
        if self.is_new(now, id, bytes) {
            self.dispatch(now, id, packet);
        }
    }

    /// Refuses without keeping anything.
    fn refuse(&mut self, from: SocketAddr, packet: &Packet, cause: Cause) {
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
        // A peer gives up after its own patience, which is taken to be like ours.
        let keep = self.config.patience() * 2;
        let Some(entry) = self.peers.get_mut(&id.peer) else {
            return false;
        };
        match entry
            .cache
            .look_up(now, keep, (id.reply_to, id.sequence), bytes)
        {
            Known::New => return true,
            Known::InProgress => self.counters.duplicates += 1,
            Known::Overload => self.counters.overload += 1,
            Known::Answered(answer) => {
                let answer = answer.to_vec();
                self.counters.duplicates += 1;
                self.transmit(id.reply_to, answer);
            }
        }
        false
    }

    fn dispatch(&mut self, now: Duration, id: RequestId, packet: Packet) {
        let seid = packet.seid.unwrap_or(0);
        match packet.message {
            Message::HeartbeatRequest(request) => self.on_heartbeat(now, id, &request),
            Message::AssociationSetupRequest(request) => self.on_setup(now, id, request),
            Message::AssociationUpdateRequest(request) => self.on_update(now, id, &request),
            Message::AssociationReleaseRequest(_) => self.on_release(now, id),
            message => self.event(Event::Request { id, seid, message }),
        }
    }

    fn on_response(&mut self, now: Duration, from: SocketAddr, packet: Packet) {
        if let Message::VersionNotSupportedResponse(_) = packet.message {
            return self.version_refused(now, from, VERSION, packet.sequence);
        }
        let peer = self.peer_at(from).unwrap_or(from);
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

    /// Makes place for a peer that associates by itself.
    fn admit(&mut self, from: SocketAddr) -> bool {
        if self.peer_at(from).is_some() {
            return true;
        }
        let accepted = self
            .config
            .accept
            .as_ref()
            .is_none_or(|list| list.contains(&from.ip()));
        if !accepted {
            return false;
        }
        if self.peers.len() >= self.config.max_peers {
            let idle = |(_, peer): &(&SocketAddr, &Peer)| !peer.configured && !peer.is_up();
            let Some(idle) = self.peers.iter().find(idle).map(|(at, _)| *at) else {
                return false;
            };
            self.peers.remove(&idle);
        }
        self.peers
            .insert(from, Peer::new(self.config.response_cache));
        true
    }
}
