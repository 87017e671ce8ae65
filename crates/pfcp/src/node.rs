//! One PFCP entity: its associations, its requests and its answers, in either role.
mod association;
mod cache;
mod peer;
mod transport;

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use peer::{Peer, Purpose};
use std::collections::{BTreeMap, VecDeque};
use wire::pfcp::{
    BbfUpFeatures, Cause, CpFunctionFeatures, Message, NodeId, Packet, SEQUENCE_MASK,
    SluiceFeatures, UpFunctionFeatures,
};

/// Which plane an entity is of. Either may start an association (TS 29.244 §6.2.6); only the control plane ends one by
/// itself, and takes one up again that was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Control plane.
    Control,
    /// User plane.
    User,
}

/// What an entity says of itself in an association's setup.
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
}

impl Features {
    /// Can the peer's default session have a rule towards the access side?
    pub fn default_cp_to_up_rule(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::DEFAULT_CP_TO_UP_RULE))
    }

    /// Forwarding parameters may carry settings of a policy by number.
    pub fn settings(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::SETTINGS))
    }

    /// A session may have any bindings, and the peer announces those that are to be.
    pub fn bindings(&self) -> bool {
        self.sluice
            .is_some_and(|f| f.contains(SluiceFeatures::BINDINGS))
    }
}

/// How an entity is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which plane it is of.
    pub role: Role,
    /// Its name.
    pub node_id: NodeId,
    /// When it started, in seconds since 1900; a control plane that kept its store keeps it.
    pub recovery_time_stamp: u32,
    /// What it can do.
    pub features: Features,
    /// Asks the user planes to keep the sessions that they have (PFCP Session Retention Information). Control plane only.
    pub retain_sessions: bool,
    /// Whose association setup is accepted besides that of configured peers; `None` is anyone's.
    pub accept: Option<Vec<IpAddr>>,
    /// T1: how long an answer is waited for.
    pub t1: Duration,
    /// N1: how often a request is sent again.
    pub n1: u8,
    /// How often a peer is asked for a heartbeat.
    pub heartbeat_interval: Duration,
    /// The longest wait between two attempts to associate.
    pub setup_backoff: Duration,
    /// How many requests about sessions may be without an answer at one peer; others wait.
    pub window: usize,
    /// How many requests may wait for the window of one peer.
    pub queue: usize,
    /// How many of a peer's requests are remembered, so that one sent again gets the same answer.
    pub response_cache: usize,
    /// How many peers there may be.
    pub max_peers: usize,
    /// Where sequence numbers begin: random, so that a restarted entity is not taken for its predecessor.
    pub first_sequence: u32,
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
            accept: (role == Role::Control).then(Vec::new),
            t1: Duration::from_secs(1),
            n1: 4,
            heartbeat_interval: Duration::from_secs(10),
            setup_backoff: Duration::from_secs(30),
            window: 512,
            queue: 65_536,
            response_cache: 8_192,
            max_peers: 64,
            first_sequence: 0,
        }
    }

    /// After this time a peer sends a request no more.
    fn patience(&self) -> Duration {
        self.t1 * (u32::from(self.n1) + 1)
    }
}

/// A request of a peer that waits for [`Node::respond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// Who asked.
    pub peer: SocketAddr,
    /// Where the answer goes.
    reply_to: SocketAddr,
    /// The number of the request.
    sequence: u32,
}

/// Whom an association is with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its name.
    pub node_id: NodeId,
    /// When it started, in seconds since 1900.
    pub recovery_time_stamp: u32,
    /// What it can do.
    pub features: Features,
    /// It started anew since the association before this one, so that what it had is gone.
    pub restarted: bool,
    /// It asked for its sessions to be kept.
    pub retain_sessions: bool,
    /// The address that the same name was associated from before, and cannot be reached at any more: its sessions are
    /// this peer's now.
    pub moved_from: Option<SocketAddr>,
}

/// Why an association ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownReason {
    /// Heartbeats were not answered.
    PathLost,
    /// One side released it.
    Released,
    /// The peer started anew.
    Restarted,
    /// The peer says that there is none.
    Forgotten,
}

/// Why a request got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// None came, though it was sent again and again.
    TimedOut,
    /// The association ended.
    AssociationDown,
    /// The answer was wrong in this way.
    BadResponse(Cause),
    /// The peer speaks another version.
    Version,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An association is there, perhaps in place of an older one. The user plane deletes the peer's sessions if it restarted without asking to keep them;
    /// the control plane puts its sessions back if the user plane restarted.
    AssociationUp {
        /// With whom.
        peer: SocketAddr,
        /// What it said of itself.
        info: PeerInfo,
    },
    /// An association is no more.
    AssociationDown {
        /// With whom.
        peer: SocketAddr,
        /// Why.
        reason: DownReason,
    },
    /// The peer refused an association; it is tried again.
    AssociationRejected {
        /// Who.
        peer: SocketAddr,
        /// Its words.
        cause: Cause,
    },
    /// Somebody calls itself by a name that is another's: the association was refused. Counted by
    /// [`Counters::node_id_taken`].
    NodeIdTaken {
        /// Who.
        peer: SocketAddr,
        /// The name.
        node_id: NodeId,
        /// Whose name it is.
        owner: SocketAddr,
    },
    /// The peer speaks another version.
    VersionMismatch {
        /// Who.
        peer: SocketAddr,
        /// Which one.
        version: u8,
    },
    /// A request about a session, to be answered by [`Node::respond`].
    Request {
        /// What to answer to.
        id: RequestId,
        /// Our name for the session; 0 in an establishment.
        seid: u64,
        /// What is wanted.
        message: Message,
    },
    /// The answer to a request.
    Response {
        /// Who answered.
        peer: SocketAddr,
        /// What the request was made with.
        token: u64,
        /// Our name for the session, or 0 if the peer does not know the session.
        seid: u64,
        /// The answer.
        message: Message,
    },
    /// A session was established, and no request of ours waits for that answer: it came twice, or the peer carried out a
    /// request that was under way for so long that it did not know it again. Then what we asked for since is undone.
    EstablishedLate {
        /// Who answered.
        peer: SocketAddr,
        /// Our name for the session.
        seid: u64,
        /// The peer's name for what it established.
        peer_seid: u64,
    },
    /// A request that will get no answer.
    Failed {
        /// Who did not answer.
        peer: SocketAddr,
        /// What the request was made with.
        token: u64,
        /// Why.
        reason: FailReason,
    },
}

/// What the owner of a node has to do.
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
    /// Take note.
    Event(Event),
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// There is no association with the peer.
    NoAssociation,
    /// Too many requests wait for the peer already.
    QueueFull,
    /// Only requests about sessions are made by hand.
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

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that came in.
    pub received: u64,
    /// Datagrams that went out.
    pub sent: u64,
    /// Of these, requests sent again.
    pub retransmitted: u64,
    /// Requests given up.
    pub timed_out: u64,
    /// Requests that came again: answered from the cache, or dropped while the answer is being made.
    pub duplicates: u64,
    /// Requests dropped because the cache is full of unanswered ones.
    pub overload: u64,
    /// Responses to nothing that was asked.
    pub unexpected_responses: u64,
    /// Datagrams that are no PFCP message.
    pub malformed: u64,
    /// Messages of types that are not known.
    pub unknown_messages: u64,
    /// Messages of another version.
    pub other_version: u64,
    /// Messages refused because an element was missing or wrong.
    pub refused: u64,
    /// Requests from peers without an association.
    pub unassociated: u64,
    /// Associations refused because the peer's name is another's.
    pub node_id_taken: u64,
    /// Elements that were skipped.
    pub ignored_elements: u64,
    /// Requests refused to the owner because the queue was full.
    pub queue_full: u64,
}

/// A PFCP entity without I/O: datagrams and time go in, [`Output`]s come out.
///
/// A peer is known by the address that it is reached at. Requests that it sends from another port of the same address
/// are its own, and are answered to that port.
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

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// No answer yet to this request.
    Retransmit(SocketAddr, u32),
    /// Try to associate.
    Setup(SocketAddr),
    /// Ask for a heartbeat.
    Heartbeat(SocketAddr),
}

/// When a timer expires, and a number that tells it from others of the same time.
type TimerKey = (Duration, u64);

impl Node {
    /// An entity without peers.
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

    /// Takes on a peer: begins to associate with it, and never gives up. A user plane that started anew is heard of at
    /// once in this way, and not when the control plane next asks.
    pub fn add_peer(&mut self, now: Duration, peer: SocketAddr) {
        let capacity = self.config.response_cache;
        let entry = self
            .peers
            .entry(peer)
            .or_insert_with(|| Peer::new(capacity));
        if !entry.configured {
            entry.configured = true;
            if !entry.is_up() {
                self.arm_setup(peer, now);
            }
        }
    }

    /// Only this peer, of those taken on, may go by this name; others who use it are refused.
    pub fn reserve(&mut self, peer: SocketAddr, node_id: NodeId) {
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.reserved = Some(node_id);
        }
    }

    /// Ends an association and the efforts for it; the peer's name is free. A user plane asks the control plane to end it (TS 29.244 §6.2.8.3).
    pub fn release(&mut self, now: Duration, peer: SocketAddr) {
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        entry.configured = false;
        entry.reserved = None;
        self.disarm_setup(peer);
        if !self.is_associated(peer) {
            return;
        }
        match self.config.role {
            Role::Control => self.send_release(now, peer),
            Role::User => self.ask_for_release(now, peer),
        }
    }

    /// Sends a request about a session, or lets it wait for its turn. It ends in [`Event::Response`] or
    /// [`Event::Failed`] with the same token. `seid` is the peer's name for the session, 0 to establish one.
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
        let sequence = self.take_sequence();
        let mut bytes = Vec::new();
        Packet::session(seid, sequence, message)
            .emit(&mut bytes)
            .map_err(|_| RequestError::TooLong)?;
        if must_wait {
            if let Some(entry) = self.peers.get_mut(&peer) {
                entry.queue.push_back((sequence, bytes, token));
            }
        } else {
            self.send_request(now, peer, sequence, bytes, Purpose::Session(token));
        }
        Ok(())
    }

    /// Answers a request about a session. `seid` is the peer's name for the session, 0 when there is none.
    pub fn respond(&mut self, id: RequestId, seid: u64, message: impl Into<Message>) {
        self.answer(id, Packet::session(seid, id.sequence, message));
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Node::on_timeout`] wants to be called.
    pub fn poll_at(&self) -> Option<Duration> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Time has passed.
    pub fn on_timeout(&mut self, now: Duration) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            match entry.remove() {
                Timer::Retransmit(peer, sequence) => self.retransmit(now, peer, sequence),
                Timer::Setup(peer) => self.send_setup(now, peer),
                Timer::Heartbeat(peer) => self.send_heartbeat(now, peer),
            }
        }
    }

    /// A datagram came in.
    pub fn handle_datagram(&mut self, now: Duration, from: SocketAddr, bytes: &[u8]) {
        self.counters.received += 1;
        self.receive(now, from, bytes);
    }

    /// Is there an association with the peer?
    pub fn is_associated(&self, peer: SocketAddr) -> bool {
        self.peers.get(&peer).is_some_and(Peer::is_up)
    }

    /// Is there an association with the peer, and has it let no request wait so long that it was sent again?
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

    /// When the peer last answered a request.
    pub fn last_heard(&self, peer: SocketAddr) -> Option<Duration> {
        self.peers.get(&peer)?.heard
    }

    /// How often a peer is asked for a heartbeat.
    pub fn heartbeat_interval(&self) -> Duration {
        self.config.heartbeat_interval
    }

    /// What the peer said of itself when it last associated.
    pub fn peer_info(&self, peer: SocketAddr) -> Option<&PeerInfo> {
        self.peers.get(&peer)?.info.as_ref()
    }

    /// The peers, and whether there is an association with each.
    pub fn peers(&self) -> impl Iterator<Item = (SocketAddr, bool)> {
        self.peers
            .iter()
            .map(|(peer, entry)| (*peer, entry.is_up()))
    }

    /// How many requests wait for an answer or for their turn at a peer.
    pub fn pending(&self, peer: SocketAddr) -> usize {
        self.peers
            .get(&peer)
            .map_or(0, |entry| entry.in_window + entry.queue.len())
    }

    /// The tokens of the requests that wait for an answer or for their turn, at all peers.
    pub fn open_tokens(&self) -> impl Iterator<Item = u64> {
        self.peers.values().flat_map(|entry| {
            let sent = entry.outstanding.values().filter_map(|o| match o.purpose {
                Purpose::Session(token) => Some(token),
                _ => None,
            });
            sent.chain(entry.queue.iter().map(|(_, _, token)| *token))
        })
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
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
