//! PFCP entity for both roles: associations, requests and answers.
mod association;
mod cache;
mod claims;
mod numbering;
mod peer;
mod transport;

use core::net::SocketAddr;
use core::time::Duration;
use peer::{Peer, Purpose};
use policy::Setting;
use std::collections::{BTreeMap, VecDeque};
use wire::pfcp::{
    BbfUpFeatures, Cause, CpFunctionFeatures, KnownSettings, Lanes, Message, NodeId, Packet,
    SEQUENCE_MASK, SluiceFeatures, UpFunctionFeatures,
};

/// Role of an entity. Both roles may set up an association (TS 29.244 §6.2.6). Only the control plane releases one by itself, and sets up
/// a released one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Control plane.
    Control,
    /// User plane.
    User,
}

/// Features in an association setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Of the user plane.
    pub up: Option<UpFunctionFeatures>,
    /// Of the control plane.
    pub cp: Option<CpFunctionFeatures>,
    /// Of TR-459.
    pub bbf: Option<BbfUpFeatures>,
    /// Our own.
    pub sluice: Option<SluiceFeatures>,
    /// Workers of the user plane's sessions.
    pub lanes: Option<Lanes>,
    /// Policy settings that the user plane can carry out.
    pub known_settings: Option<KnownSettings>,
}

impl Features {
    /// Whether the peer's default session supports a rule towards the access side.
    pub fn default_cp_to_up_rule(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::DEFAULT_CP_TO_UP_RULE))
    }

    /// Whether the peer can carry out a policy setting. One that does not say which it knows has those of its time.
    pub fn takes_setting(&self, setting: &Setting) -> bool {
        let numbered = SluiceFeatures::SETTINGS;
        match self.known_settings {
            Some(known) => known.contains(setting.id),
            None if self.sluice.is_some_and(|f| f.contains(numbered)) => {
                matches!(setting.id, 1 | 5..=7)
            }
            None => setting.id == 1,
        }
    }

    /// Whether the peer answers LCP echo requests of subscribers if requested.
    pub fn echo_replies(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::ECHO_REPLIES))
    }

    /// Whether a session's routes may have metrics, with which the peer announces them.
    pub fn metrics(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::METRICS))
    }

    /// Whether the peer takes several PFCP messages in a datagram (TS 29.244 §6.5).
    pub fn bundles_messages(&self) -> bool {
        let up = |f: UpFunctionFeatures| f.contains(UpFunctionFeatures::BUNDLING);
        let cp = |f: CpFunctionFeatures| f.contains(CpFunctionFeatures::BUNDLING);
        self.up.is_some_and(up) || self.cp.is_some_and(cp)
    }

    /// Whether the peer takes several GTP-U packets in a datagram.
    pub fn bundles_frames(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::FRAMES))
    }

    /// Whether a session may have any bindings, which the peer announces if requested.
    pub fn bindings(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::BINDINGS))
    }
}

/// Configuration of an entity.
#[derive(Clone, Debug)]
pub struct Config {
    /// Role of the entity.
    pub role: Role,
    /// Node ID.
    pub node_id: NodeId,
    /// Recovery Time Stamp: time of the start in seconds since 1900. A control plane keeps it as long as its store.
    pub recovery_time_stamp: u32,
    /// What it can do.
    pub features: Features,
    /// Whether to request that user planes keep their sessions (PFCP Session Retention Information). Control plane only.
    pub retain_sessions: bool,
    /// T1: time-out of a request.
    pub t1: Duration,
    /// N1: number of retransmissions.
    pub n1: u8,
    /// Interval of heartbeat requests.
    pub heartbeat_interval: Duration,
    /// Maximum back-off between two association setups.
    pub setup_backoff: Duration,
    /// Maximum number of unanswered session requests for each peer. Further ones wait.
    pub window: usize,
    /// Maximum number of requests that wait for each peer.
    pub queue: usize,
    /// Maximum memory for the answers to each peer's requests, in octets. They are kept so that a retransmission gets the same answer;
    /// above it, new requests are dropped.
    pub response_cache: usize,
    /// First sequence number. It is random, so that requests of a restarted entity differ from earlier ones.
    pub first_sequence: u32,
    /// Wall clock at time zero of the times that the entity is given, in seconds since 1900.
    pub clock: u32,
}

impl Config {
    /// Usual timers and bounds.
    pub fn new(role: Role, node_id: NodeId, recovery_time_stamp: u32) -> Self {
        Config {
            role,
            node_id,
            recovery_time_stamp,
            features: Features::default(),
            retain_sessions: false,
            t1: Duration::from_secs(1),
            n1: 4,
            heartbeat_interval: Duration::from_secs(10),
            setup_backoff: Duration::from_secs(30),
            window: 512,
            queue: 65_536,
            response_cache: 256 << 20,
            first_sequence: 0,
            clock: recovery_time_stamp,
        }
    }

    /// Time after which a peer no longer retransmits a request. A peer's own is taken to be at most twice as long as ours.
    fn patience(&self) -> Duration {
        self.t1 * (u32::from(self.n1) + 1) * 2
    }

    /// How long answers are kept: as long as the sequence number may be accepted of a peer that says its numbers at each heartbeat, of
    /// which a few may be lost.
    fn keep(&self) -> Duration {
        self.patience() * 3 / 2 + self.heartbeat_interval
    }
}

/// Request of a peer that waits for [`Node::respond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// Peer that sent the request.
    pub peer: SocketAddr,
    /// Address for the answer.
    reply_to: SocketAddr,
    /// Sequence number of the request.
    sequence: u32,
}

/// Peer of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its name.
    pub node_id: NodeId,
    /// When it started, in seconds since 1900.
    pub recovery_time_stamp: u32,
    /// What it can do.
    pub features: Features,
    /// Whether it was restarted since the previous association and has lost its state.
    pub restarted: bool,
    /// Whether it requested that its sessions are kept.
    pub retain_sessions: bool,
    /// Previous address of the same node id, which is no longer reachable. Its sessions are this peer's now.
    pub moved_from: Option<SocketAddr>,
}

/// Reason for the end of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownReason {
    /// Heartbeats were not answered.
    PathLost,
    /// One side released it.
    Released,
    /// The peer was restarted.
    Restarted,
    /// The peer does not know the association.
    Forgotten,
}

/// Reason for which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// No answer after all retransmissions.
    TimedOut,
    /// The association ended.
    AssociationDown,
    /// The answer was invalid, for this reason.
    BadResponse(Cause),
    /// The peer uses another PFCP version.
    Version,
}

/// Event of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An association was set up, perhaps in place of an older one. The user plane deletes the peer's sessions if the peer was restarted
    /// and did not request to keep them. The control plane establishes its sessions again if the user plane was restarted.
    AssociationUp {
        /// With whom.
        peer: SocketAddr,
        /// Data of its association setup.
        info: PeerInfo,
    },
    /// An association ended.
    AssociationDown {
        /// With whom.
        peer: SocketAddr,
        /// Why.
        reason: DownReason,
    },
    /// The peer rejected an association setup. It is retried.
    AssociationRejected {
        /// Who.
        peer: SocketAddr,
        /// Cause of the rejection.
        cause: Cause,
    },
    /// A peer used another peer's node id, and its association setup was rejected. Counted by [`Counters::node_id_taken`].
    NodeIdTaken {
        /// Who.
        peer: SocketAddr,
        /// The name.
        node_id: NodeId,
        /// Peer to which the node id belongs.
        owner: SocketAddr,
    },
    /// A datagram was not believed, so many times by now. It is reported at powers of two.
    NotBelieved {
        /// Where it came from, by its own account.
        from: SocketAddr,
        /// Why.
        doubt: Doubt,
        /// How many there were.
        times: u64,
    },
    /// The peer uses another PFCP version.
    VersionMismatch {
        /// Who.
        peer: SocketAddr,
        /// Which one.
        version: u8,
    },
    /// Session request of the peer. [`Node::respond`] answers it.
    Request {
        /// Identifies the request for the answer.
        id: RequestId,
        /// Our SEID of the session; 0 in an establishment.
        seid: u64,
        /// Message.
        message: Message,
    },
    /// Answer to a request.
    Response {
        /// Who answered.
        peer: SocketAddr,
        /// What the request was made with.
        token: u64,
        /// Our SEID of the session; 0 if the peer does not know the session.
        seid: u64,
        /// The answer.
        message: Message,
    },
    /// A session was established without a pending request: the answer arrived twice, or the peer repeated a delayed request that it no
    /// longer recognised. In the second case our later requests are undone.
    EstablishedLate {
        /// Who answered.
        peer: SocketAddr,
        /// Our SEID of the session.
        seid: u64,
        /// Peer's SEID of the established session.
        peer_seid: u64,
    },
    /// A request failed.
    Failed {
        /// Who did not answer.
        peer: SocketAddr,
        /// What the request was made with.
        token: u64,
        /// Why.
        reason: FailReason,
    },
}

/// Output of a node.
#[allow(
    clippy::large_enum_variant,
    reason = "outputs are short-lived and handled one at a time"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram.
    Transmit {
        /// Where to.
        to: SocketAddr,
        /// What.
        bytes: Vec<u8>,
    },
    /// Event for the owner.
    Event(Event),
}

/// Reason for which a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// There is no association with the peer.
    NoAssociation,
    /// Too many requests wait for the peer.
    QueueFull,
    /// The owner may send only session requests.
    NotASessionRequest,
    /// The message is too long for a datagram.
    TooLong,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RequestError::NoAssociation => "no PFCP association with the peer",
            RequestError::QueueFull => "too many PFCP requests are waiting for the peer",
            RequestError::NotASessionRequest => "not a PFCP request about a session",
            RequestError::TooLong => "PFCP request of more than 65,535 octets",
        })
    }
}

impl std::error::Error for RequestError {}

/// Why a datagram was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The sender is no peer.
    UnknownPeer,
    /// The response came from another port than the request was sent to.
    Misdirected,
    /// The recovery time stamp is older than the known one, or in the future.
    TimeStamp,
    /// The peer itself denied what the request said: that it was restarted, or that the association ends.
    Denied,
    /// The peer no longer uses the request's sequence number.
    Sequence,
    /// A user plane requests its release.
    ReleaseRequest,
}

impl core::fmt::Display for Doubt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Doubt::UnknownPeer => {
                "dropped a PFCP message from an address that is not configured: add the address to the configuration if it is \
                    yours, or else have a firewall keep it away from UDP port 8805"
            }
            Doubt::Misdirected => {
                "dropped a PFCP response that came from another port than the request was sent to: somebody forges answers, or a \
                    device in between changes ports"
            }
            Doubt::TimeStamp => {
                "rejected a PFCP message with a Recovery Time Stamp that goes back or lies in the future, and asked the peer itself: \
                    somebody repeats recorded messages, or the peer's clock is wrong"
            }
            Doubt::Denied => {
                "ignored a PFCP message that the peer denied when it was asked: somebody forges its address. Protect the path \
                    between the planes"
            }
            Doubt::Sequence => {
                "dropped a PFCP request with a sequence number that the peer no longer uses: somebody repeats recorded messages. \
                    Protect the path between the planes"
            }
            Doubt::ReleaseRequest => {
                "the user plane requests its release, which is not carried out while it is configured: remove it from the \
                    configuration, or set its `admin-state`"
            }
        })
    }
}

macro_rules! counters {
    (
        named { $($(#[doc = $meaning:literal])+ $named:ident = $name:literal,)* }
        unnamed { $($(#[doc = $text:literal])+ $unnamed:ident,)* }
    ) => {
        /// Counters since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $meaning])+ pub $named: u64,)*
            $($(#[doc = $text])+ pub $unnamed: u64,)*
        }

        impl Counters {
            /// Counters of what was rejected, dropped or lost: name, count and meaning.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> + use<> {
                [$(($name, self.$named, concat!($($meaning),+).trim_ascii()),)*].into_iter()
            }
        }
    };
}

counters! {
    named {
        /// A PFCP message came from an address that is no configured peer's. It was not answered.
        unknown_peer = "pfcp-unknown-peer",
        /// A PFCP response came from another address or port than the request was sent to.
        misdirected = "pfcp-misdirected",
        /// A PFCP response had the sequence number of no pending request: it came late or twice, or somebody forges answers.
        unexpected_responses = "pfcp-unexpected-response",
        /// A PFCP message had a Recovery Time Stamp that goes back or lies in the future. The peer itself was asked.
        time_stamps = "pfcp-time-stamp",
        /// A PFCP message said that the peer was restarted or that the association ends, and the peer denied it when it was asked.
        denied = "pfcp-denied",
        /// A PFCP request had a sequence number that its sender no longer uses.
        old_sequence = "pfcp-old-sequence",
        /// A user plane requested its release. It stays associated while it is configured.
        release_requests = "pfcp-release-request",
        /// A datagram was not a PFCP message.
        malformed = "pfcp-malformed",
        /// A PFCP message had another version.
        other_version = "pfcp-other-version",
        /// A PFCP message was rejected: it lacked an element or had a wrong one.
        refused = "pfcp-refused",
        /// An association setup was rejected: its node id is another peer's.
        node_id_taken = "pfcp-node-id-taken",
        /// A PFCP request was given up without an answer.
        timed_out = "pfcp-timed-out",
        /// A PFCP request was not made because too many waited.
        queue_full = "pfcp-queue-full",
        /// A PFCP request was dropped because the answers to earlier ones fill the memory for them.
        overload = "pfcp-overload",
    }
    unnamed {
        /// Received datagrams.
        received,
        /// Sent datagrams.
        sent,
        /// Retransmissions among them.
        retransmitted,
        /// Received retransmissions: answered from the cache, or dropped while the answer is pending.
        duplicates,
        /// Requests from peers without an association.
        unassociated,
        /// Messages of unknown types.
        unknown_messages,
        /// Skipped elements.
        ignored_elements,
    }
}

/// Sans-IO PFCP entity: it takes datagrams and a time, and returns [`Output`]s.
///
/// The address identifies a peer. Requests from another port of the same address belong to the same peer, and the answer goes to that
/// port. Responses are taken only from the address and port that was asked (TS 29.244 §6.8.2).
#[derive(Debug)]
pub struct Node {
    config: Config,
    peers: BTreeMap<SocketAddr, Peer>,
    timers: BTreeMap<(Duration, u64), Timer>,
    next_timer: u64,
    next_sequence: u32,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Retransmit this request.
    Retransmit(SocketAddr, u32),
    /// Retry the association setup.
    Setup(SocketAddr),
    /// Send a heartbeat request.
    Heartbeat(SocketAddr),
    /// Ask again whether there is an association.
    Ask(SocketAddr),
}

/// Expiry of a timer, and a number that distinguishes timers with the same expiry.
type TimerKey = (Duration, u64);

impl Node {
    /// Creates an entity without peers.
    pub fn new(config: Config) -> Self {
        Node {
            next_sequence: config.first_sequence & SEQUENCE_MASK,
            config,
            peers: BTreeMap::new(),
            timers: BTreeMap::new(),
            next_timer: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Adds a peer and sets up an association with it, with unlimited retries. A restarted user plane is known at once this way, not only
    /// at the control plane's next attempt.
    pub fn add_peer(&mut self, now: Duration, peer: SocketAddr) {
        let new = || Peer::new(&self.config);
        let entry = self.peers.entry(peer).or_insert_with(new);
        if !entry.configured {
            entry.configured = true;
            if !entry.is_up() {
                self.arm_setup(peer, now);
            }
        }
    }

    /// Reserves a node id for a peer. Other peers that use it are rejected.
    pub fn reserve(&mut self, peer: SocketAddr, node_id: NodeId) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.reserved = Some(node_id);
        }
    }

    /// Releases an association, stops retries and frees the peer's node id. Control plane only (TS 29.244 §6.2.8).
    pub fn release(&mut self, now: Duration, peer: SocketAddr) {
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        entry.configured = false;
        entry.reserved = None;
        self.disarm_setup(peer);
        if self.is_associated(peer) {
            self.send_release(now, peer);
        }
    }

    /// Sends or queues a session request. It ends with [`Event::Response`] or [`Event::Failed`] with the same token. `seid` is the peer's
    /// SEID of the session, 0 for an establishment.
    pub fn request(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        seid: u64,
        message: impl Into<Message>,
        token: u64,
    ) -> Result<(), RequestError> {
        let message = message.into();
        if !message.is_request() || !message.is_about_session() {
            return Err(RequestError::NotASessionRequest);
        }
        let entry = self
            .peers
            .get(&peer)
            .filter(|entry| entry.is_up())
            .ok_or(RequestError::NoAssociation)?;
        let must_wait = entry.in_window >= self.config.window || !entry.queue.is_empty();
        if must_wait && entry.queue.len() >= self.config.queue {
            self.counters.queue_full += 1;
            return Err(RequestError::QueueFull);
        }
        let mut bytes = Vec::new();
        Packet::session(seid, 0, message)
            .emit(&mut bytes)
            .map_err(|_| RequestError::TooLong)?;
        if must_wait {
            if let Some(entry) = self.peers.get_mut(&peer) {
                entry.queue.push_back((bytes, token));
            }
        } else {
            self.send_session_request(now, peer, bytes, token);
        }
        Ok(())
    }

    /// Answers a session request. `seid` is the peer's SEID of the session, 0 if there is none.
    pub fn respond(&mut self, id: RequestId, seid: u64, message: impl Into<Message>) {
        self.answer(id, Packet::session(seid, id.sequence, message));
    }

    /// Next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which [`Node::on_timeout`] must be called.
    pub fn poll_at(&self) -> Option<Duration> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Handles expired timers.
    pub fn on_timeout(&mut self, now: Duration) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            match entry.remove() {
                Timer::Retransmit(peer, sequence) => self.retransmit(now, peer, sequence),
                Timer::Setup(peer) => self.send_setup(now, peer),
                Timer::Heartbeat(peer) => self.send_heartbeat(now, peer),
                Timer::Ask(peer) => self.ask_again(now, peer),
            }
        }
    }

    /// Handles a received datagram.
    pub fn handle_datagram(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        self.counters.received += 1;
        self.receive(now, from, bytes);
    }

    /// Whether there is an association with the peer.
    pub fn is_associated(&self, peer: SocketAddr) -> bool {
        self.peers.get(&peer).is_some_and(Peer::is_up)
    }

    /// Whether there is an association with the peer and no request needed a retransmission.
    pub fn is_answering(&self, peer: SocketAddr) -> bool {
        let waits = |entry: &Peer| {
            entry
                .outstanding
                .values()
                .next()
                .is_some_and(|o| o.retries > 0)
        };
        self.peers
            .get(&peer)
            .is_some_and(|entry| entry.is_up() && !waits(entry))
    }

    /// Time of the peer's last answer.
    pub fn last_heard(&self, peer: SocketAddr) -> Option<Duration> {
        self.peers.get(&peer)?.heard
    }

    /// Interval of heartbeat requests.
    pub fn heartbeat_interval(&self) -> Duration {
        self.config.heartbeat_interval
    }

    /// Data of the peer's last association setup.
    pub fn peer_info(&self, peer: SocketAddr) -> Option<&PeerInfo> {
        self.peers.get(&peer)?.info.as_ref()
    }

    /// Peers, and whether each is associated.
    pub fn peers(&self) -> impl Iterator<Item = (SocketAddr, bool)> {
        self.peers
            .iter()
            .map(|(peer, entry)| (*peer, entry.is_up()))
    }

    /// Number of a peer's requests that are queued or wait for an answer.
    pub fn pending(&self, peer: SocketAddr) -> usize {
        self.peers
            .get(&peer)
            .map_or(0, |entry| entry.in_window + entry.queue.len())
    }

    /// Tokens of all requests that are queued or wait for an answer.
    pub fn open_tokens(&self) -> impl Iterator<Item = u64> {
        self.peers.values().flat_map(|entry| {
            let sent = entry.outstanding.values().filter_map(|o| match o.purpose {
                Purpose::Session(token) => Some(token),
                _ => None,
            });
            sent.chain(entry.queue.iter().map(|(_, token)| *token))
        })
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Counts a datagram that is not believed. It is reported at powers of two, so that a flood of them does not fill the log.
    fn doubt(&mut self, from: SocketAddr, doubt: Doubt) {
        let counters = &mut self.counters;
        let counter = match doubt {
            Doubt::UnknownPeer => &mut counters.unknown_peer,
            Doubt::Misdirected => &mut counters.misdirected,
            Doubt::TimeStamp => &mut counters.time_stamps,
            Doubt::Denied => &mut counters.denied,
            Doubt::Sequence => &mut counters.old_sequence,
            Doubt::ReleaseRequest => &mut counters.release_requests,
        };
        *counter += 1;
        let times = *counter;
        if times.is_power_of_two() {
            self.event(Event::NotBelieved { from, doubt, times });
        }
    }

    fn transmit(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        self.counters.sent += 1;
        self.outputs.push_back(Output::Transmit { to, bytes });
    }

    fn take_sequence(&mut self) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence = (sequence + 1) & SEQUENCE_MASK;
        sequence
    }

    fn arm(&mut self, at: Duration, timer: Timer) -> TimerKey {
        let key = (at, self.next_timer);
        self.next_timer += 1;
        self.timers.insert(key, timer);
        key
    }
}
