//! Associations and heartbeats (TS 29.244 §6.2.2, §6.2.6 to §6.2.8).
use super::claims::Setup;
use super::peer::{Peer, Purpose, State};
use super::{Doubt, DownReason, Event, Features, Node, PeerInfo, RequestId, Role, Timer};
use core::net::SocketAddr;
use core::time::Duration;
use wire::pfcp::*;

/// The first wait after an attempt to associate failed; it doubles up to the configured one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);

/// What a peer says of itself in either direction of a setup.
struct Introduction {
    node_id: NodeId,
    recovery_time_stamp: u32,
    features: Features,
    retain_sessions: bool,
}

impl Node {
    pub(super) fn arm_setup(&mut self, peer: SocketAddr, at: Duration) {
        self.disarm_setup(peer);
        let timer = self.arm(at, Timer::Setup(peer));
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.setup_timer = Some(timer);
        }
    }

    pub(super) fn disarm_setup(&mut self, peer: SocketAddr) {
        if let Some(timer) = self
            .peers
            .get_mut(&peer)
            .and_then(|entry| entry.setup_timer.take())
        {
            self.timers.remove(&timer);
        }
    }

    fn arm_heartbeat(&mut self, now: Duration, peer: SocketAddr) {
        self.disarm_heartbeat(peer);
        let timer = self.arm(now + self.config.heartbeat_interval, Timer::Heartbeat(peer));
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.heartbeat_timer = Some(timer);
        }
    }

    fn disarm_heartbeat(&mut self, peer: SocketAddr) {
        if let Some(timer) = self
            .peers
            .get_mut(&peer)
            .and_then(|entry| entry.heartbeat_timer.take())
        {
            self.timers.remove(&timer);
        }
    }

    /// The setup timer has expired.
    pub(super) fn send_setup(&mut self, now: Duration, peer: SocketAddr) {
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        entry.setup_timer = None;
        entry.cache.expire(now);
        if entry.state != State::Down || !entry.configured {
            return;
        }
        entry.state = State::Connecting;
        let features = self.config.features;
        let request = AssociationSetupRequest {
            node_id: self.config.node_id.clone(),
            recovery_time_stamp: self.config.recovery_time_stamp,
            up_features: features.up,
            cp_features: features.cp,
            session_retention: self
                .config
                .retain_sessions
                .then(SessionRetentionInformation::default),
            bbf_features: features.bbf,
            sluice_features: features.sluice,
            lanes: features.lanes,
            known_settings: features.known_settings,
        };
        self.send_node_request(now, peer, request, Purpose::Setup);
    }

    /// An attempt to associate failed; the next one waits longer.
    fn setup_failed(&mut self, now: Duration, peer: SocketAddr) {
        let longest = self.config.setup_backoff;
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        if entry.state != State::Connecting {
            return;
        }
        entry.state = State::Down;
        let wait = FIRST_BACKOFF * (1 << entry.failures.min(16));
        entry.failures = entry.failures.saturating_add(1);
        if entry.configured {
            self.arm_setup(peer, now + wait.min(longest));
        }
    }

    /// The heartbeat timer has expired.
    pub(super) fn send_heartbeat(&mut self, now: Duration, peer: SocketAddr) {
        if !self.is_associated(peer) {
            return;
        }
        self.arm_heartbeat(now, peer);
        self.send_heartbeat_now(now, peer);
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.cache.expire(now);
        }
    }

    /// Asks a peer when it started, unless it is being asked already.
    pub(super) fn send_heartbeat_now(&mut self, now: Duration, peer: SocketAddr) {
        let waits = |entry: &Peer| entry.awaits(Purpose::Heartbeat);
        if !self.peers.get(&peer).is_none_or(waits) {
            let request = HeartbeatRequest {
                recovery_time_stamp: self.config.recovery_time_stamp,
            };
            self.send_node_request(now, peer, request, Purpose::Heartbeat);
        }
    }

    pub(super) fn heartbeat_response(&self) -> HeartbeatResponse {
        HeartbeatResponse {
            recovery_time_stamp: self.config.recovery_time_stamp,
            next_sequence: Some(self.next_sequence),
        }
    }

    pub(super) fn send_release(&mut self, now: Duration, peer: SocketAddr) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.state = State::Releasing;
        }
        let request = AssociationReleaseRequest {
            node_id: self.config.node_id.clone(),
        };
        self.send_node_request(now, peer, request, Purpose::Release);
    }

    /// A request of the node's own got no answer, or none that can be used.
    pub(super) fn gave_up(&mut self, now: Duration, peer: SocketAddr, purpose: Purpose) {
        match purpose {
            Purpose::Setup => self.setup_failed(now, peer),
            Purpose::Heartbeat | Purpose::Ask => self.on_silence(now, peer),
            Purpose::Release => self.go_down(now, peer, DownReason::Released),
            Purpose::Session(_) => {}
        }
    }

    pub(super) fn forgotten(&mut self, now: Duration, peer: SocketAddr) {
        self.go_down(now, peer, DownReason::Forgotten);
    }

    /// The association is no more. Whoever began it tries to get it back; a user plane that was released waits to be asked.
    pub(super) fn go_down(&mut self, now: Duration, peer: SocketAddr, reason: DownReason) {
        if !self.is_associated(peer) {
            return;
        }
        self.disarm_heartbeat(peer);
        self.forget_claims(peer);
        self.event(Event::AssociationDown { peer, reason });
        self.fail_all(peer);
        let patience = self.config.patience();
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        entry.state = State::Down;
        entry.farewell = now + patience;
        let dismissed = self.config.role == Role::User && reason == DownReason::Released;
        if entry.configured && !dismissed {
            let at_once = matches!(reason, DownReason::Restarted | DownReason::Forgotten);
            self.arm_setup(peer, if at_once { now } else { now + FIRST_BACKOFF });
        }
    }

    /// Is this the name of another peer: by the owner's word, or because the other is associated under it and its path
    /// lives? Two of one name would undo each other's sessions. Whether the path lives is asked at once, so that a peer whose address
    /// changed has to wait no longer than that takes.
    pub(super) fn is_taken(&mut self, now: Duration, from: SocketAddr, node_id: &NodeId) -> bool {
        let owns = |(at, peer): &(&SocketAddr, &Peer)| {
            let alive = peer.info.as_ref().filter(|_| peer.is_up());
            let names = [peer.reserved.as_ref(), alive.map(|info| &info.node_id)];
            at.ip() != from.ip() && names.contains(&Some(node_id))
        };
        let Some(owner) = self.peers.iter().find(owns).map(|(at, _)| *at) else {
            return false;
        };
        self.counters.node_id_taken += 1;
        self.event(Event::NodeIdTaken {
            peer: from,
            node_id: node_id.clone(),
            owner,
        });
        if self.is_associated(owner) {
            self.send_heartbeat_now(now, owner);
        }
        true
    }

    /// The address at which a peer of this name was known before; it is forgotten.
    fn take_former(&mut self, peer: SocketAddr, node_id: &NodeId) -> Option<SocketAddr> {
        let mut others = self.peers.iter_mut().filter(|(at, _)| at.ip() != peer.ip());
        let is_it = |info: &mut PeerInfo| info.node_id == *node_id;
        others.find_map(|(at, entry)| entry.info.take_if(is_it).map(|_| *at))
    }

    /// There is an association, perhaps in place of an older one.
    fn go_up(&mut self, now: Duration, peer: SocketAddr, said: Introduction) {
        let moved_from = self.take_former(peer, &said.node_id);
        self.disarm_setup(peer);
        self.forget_claims(peer);
        self.fail_all(peer);
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let before = entry.info.as_ref().map(|info| info.recovery_time_stamp);
        let info = PeerInfo {
            node_id: said.node_id,
            recovery_time_stamp: said.recovery_time_stamp,
            features: said.features,
            restarted: before.is_some_and(|before| before != said.recovery_time_stamp),
            retain_sessions: said.retain_sessions,
            moved_from,
        };
        entry.state = State::Up;
        entry.failures = 0;
        entry.info = Some(info.clone());
        entry.numbering.begin();
        self.event(Event::AssociationUp { peer, info });
        // The answer says which sequence numbers the peer uses.
        self.send_heartbeat(now, peer);
    }

    pub(super) fn on_heartbeat(
        &mut self,
        now: Duration,
        id: RequestId,
        request: &HeartbeatRequest,
    ) {
        self.answer(id, Packet::node(id.sequence, self.heartbeat_response()));
        self.on_claimed_stamp(now, id, request.recovery_time_stamp);
    }

    /// Associates with a peer that wants it.
    pub(super) fn accept_setup(&mut self, now: Duration, setup: Setup) {
        let Setup { id, bytes, request } = setup;
        if !self.begin(now, id, &bytes) {
            return;
        }
        let features = self.config.features;
        let response = AssociationSetupResponse {
            node_id: self.config.node_id.clone(),
            cause: Cause::REQUEST_ACCEPTED,
            recovery_time_stamp: self.config.recovery_time_stamp,
            up_features: features.up,
            cp_features: features.cp,
            bbf_features: features.bbf,
            sluice_features: features.sluice,
            lanes: features.lanes,
            known_settings: features.known_settings,
        };
        self.answer(id, Packet::node(id.sequence, response));
        self.go_up(
            now,
            id.peer,
            Introduction {
                node_id: request.node_id,
                recovery_time_stamp: request.recovery_time_stamp,
                features: Features {
                    up: request.up_features,
                    cp: request.cp_features,
                    bbf: request.bbf_features,
                    sluice: request.sluice_features,
                    lanes: request.lanes,
                    known_settings: request.known_settings,
                },
                retain_sessions: request.session_retention.is_some(),
            },
        );
    }

    /// What it says of its features is not taken: what a peer can do is what it says when it associates.
    pub(super) fn on_update(&mut self, id: RequestId, request: &AssociationUpdateRequest) {
        let response = AssociationUpdateResponse {
            node_id: self.config.node_id.clone(),
            cause: Cause::REQUEST_ACCEPTED,
            up_features: self.config.features.up,
            cp_features: self.config.features.cp,
        };
        self.answer(id, Packet::node(id.sequence, response));
        // Nothing in PFCP proves who asks, and an associated peer cannot deny it. It would be set up again at once anyway.
        if request.release_request.is_some() {
            self.doubt(id.reply_to, Doubt::ReleaseRequest);
        }
    }

    pub(super) fn on_release(&mut self, now: Duration, id: RequestId) {
        let node_id = self.config.node_id.clone();
        let response = AssociationReleaseResponse {
            node_id,
            cause: Cause::REQUEST_ACCEPTED,
        };
        self.answer(id, Packet::node(id.sequence, response));
        self.on_claimed_release(now, id.peer);
    }

    /// The answer to a request of the node's own.
    pub(super) fn on_node_response(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        purpose: Purpose,
        message: Message,
    ) {
        match message {
            Message::HeartbeatResponse(response) => {
                let patience = self.config.patience();
                if let (Some(entry), Some(next)) =
                    (self.peers.get_mut(&peer), response.next_sequence)
                {
                    entry.numbering.say(now, patience, next);
                }
                self.on_stamp(now, peer, response.recovery_time_stamp);
            }
            Message::AssociationUpdateResponse(response) => {
                self.on_asked(now, peer, response.cause);
            }
            Message::AssociationSetupResponse(response)
                if response.cause.is_accepted() && self.is_taken(now, peer, &response.node_id) =>
            {
                self.setup_failed(now, peer);
            }
            Message::AssociationSetupResponse(response) if response.cause.is_accepted() => {
                self.go_up(
                    now,
                    peer,
                    Introduction {
                        node_id: response.node_id,
                        recovery_time_stamp: response.recovery_time_stamp,
                        features: Features {
                            up: response.up_features,
                            cp: response.cp_features,
                            bbf: response.bbf_features,
                            sluice: response.sluice_features,
                            lanes: response.lanes,
                            known_settings: response.known_settings,
                        },
                        retain_sessions: false,
                    },
                );
            }
            Message::AssociationSetupResponse(response) => {
                self.event(Event::AssociationRejected {
                    peer,
                    cause: response.cause,
                });
                self.setup_failed(now, peer);
            }
            _ => self.gave_up(now, peer, purpose),
        }
    }
}
