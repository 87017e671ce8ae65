//! What is kept of one peer.
use super::cache::ResponseCache;
use super::claims::Claims;
use super::numbering::Numbering;
use super::{Config, PeerInfo, TimerKey};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use wire::pfcp::NodeId;

/// Where an association stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is none.
    Down,
    /// It was asked for.
    Connecting,
    /// There is one.
    Up,
    /// There is one, and it was asked to end.
    Releasing,
}

/// What a request was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Setup,
    Heartbeat,
    /// The peer is asked whether there is an association.
    Ask,
    Release,
    /// The owner's, with its token.
    Session(u64),
}

/// A request without an answer.
#[derive(Debug)]
pub(super) struct Outstanding {
    pub bytes: Vec<u8>,
    pub purpose: Purpose,
    pub retries: u8,
    pub timer: TimerKey,
}

#[derive(Debug)]
pub(super) struct Peer {
    /// It was named by the owner, and did not come by itself.
    pub configured: bool,
    /// The name that nobody else may use.
    pub reserved: Option<NodeId>,
    pub state: State,
    /// What it said when it last associated.
    pub info: Option<PeerInfo>,
    pub outstanding: BTreeMap<u32, Outstanding>,
    /// How many of these are about sessions.
    pub in_window: usize,
    /// Requests about sessions that wait: octets, which have no sequence number yet, and token.
    pub queue: VecDeque<(Vec<u8>, u64)>,
    pub cache: ResponseCache,
    /// What it says of its sequence numbers.
    pub numbering: Numbering,
    /// What was said in its name and is not believed yet.
    pub claims: Claims,
    /// Attempts to associate that failed since the last association.
    pub failures: u32,
    pub setup_timer: Option<TimerKey>,
    pub heartbeat_timer: Option<TimerKey>,
    /// When it last answered.
    pub heard: Option<Duration>,
    /// Until when it is heard although the association was released: it asks whether that is so.
    pub farewell: Duration,
}

impl Peer {
    pub fn new(config: &Config) -> Self {
        Peer {
            configured: false,
            reserved: None,
            state: State::Down,
            info: None,
            outstanding: BTreeMap::new(),
            in_window: 0,
            queue: VecDeque::new(),
            cache: ResponseCache::new(config.keep(), config.response_cache),
            numbering: Numbering::default(),
            claims: Claims::default(),
            failures: 0,
            setup_timer: None,
            heartbeat_timer: None,
            heard: None,
            farewell: Duration::ZERO,
        }
    }

    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up | State::Releasing)
    }

    /// Whether there is reason to listen to it: the owner named it, or there is an association, or there was one until just now.
    pub fn is_known(&self, now: Duration) -> bool {
        self.configured || self.is_up() || now < self.farewell
    }

    /// Whether a request of this purpose waits for its answer.
    pub fn awaits(&self, purpose: Purpose) -> bool {
        self.outstanding.values().any(|o| o.purpose == purpose)
    }

    /// Takes a request that has come to its end out of the books.
    pub fn settle(&mut self, sequence: u32) -> Option<Outstanding> {
        let outstanding = self.outstanding.remove(&sequence)?;
        if let Purpose::Session(_) = outstanding.purpose {
            self.in_window -= 1;
        }
        Some(outstanding)
    }
}
