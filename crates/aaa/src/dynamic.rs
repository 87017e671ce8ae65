//! Dynamic authorization server (RFC 5176): takes the requests of RADIUS servers that change or end a session.
//!
//! It verifies who asks, reads the request, and remembers the answer. A repetition of a request gets the same answer and changes nothing
//! (RFC 5080 §2.2.2). What cannot be authentic is dropped without an answer, as the RFC says; what is authentic and cannot be read is
//! rejected at once. Everything else is for the caller to find the session and to say what came of it.

mod request;

use crate::mapping::Mappings;
use crate::{Nas, Secret};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use wire::radius::{
    Code, HEADER_LEN, Kind, MAX_LEN, Missing, Packet, Value, values, verify_dynamic_request,
};

pub use request::{DynamicRequest, Requested, SessionIds};

/// Time for which an answer is kept for repetitions of its request. No server repeats a request for longer (RFC 5080 §2.2.1: MRD is 30 s).
const ANSWER_LIFETIME: Duration = Duration::from_secs(60);
/// Room for the Proxy-States in an answer: what the header, Error-Cause, Service-Type and Message-Authenticator leave.
const PROXY_STATES_ROOM: usize = MAX_LEN - HEADER_LEN - 6 - 6 - 18;
/// Maximum number of requests with their answers.
const MOST_REQUESTS: usize = 131_072;
/// Maximum number of datagrams that are known again.
const MOST_IDENTITIES: usize = 524_288;

/// Configuration of a [`DynamicAuthorization`].
#[derive(Clone, Debug)]
pub struct DynamicConfig {
    /// Who may ask.
    pub clients: Vec<DynamicClient>,
    /// Names and addresses of the gateway. A request that names another gateway is rejected.
    pub gateways: Vec<Nas>,
    /// Maximum difference between Event-Timestamp and the clock. A repetition is known for at least as long.
    pub time_window: Duration,
    /// Whether to drop a request without Event-Timestamp, which anybody on the way can repeat later.
    pub require_event_timestamp: bool,
    /// Meaning of vendors' attributes.
    pub mappings: Arc<Mappings>,
}

impl Default for DynamicConfig {
    /// Nobody may ask.
    fn default() -> Self {
        DynamicConfig {
            clients: Vec::new(),
            gateways: Vec::new(),
            time_window: Duration::ZERO,
            require_event_timestamp: false,
            mappings: Mappings::shipped(),
        }
    }
}

/// RADIUS server that may change and end sessions.
#[derive(Clone, Debug)]
pub struct DynamicClient {
    /// Address from which its requests come.
    pub address: IpAddr,
    /// The shared secret.
    pub secret: Secret,
    /// Whether to drop a request without Message-Authenticator.
    pub require_message_authenticator: bool,
}

/// Name of a request, unique in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

/// What is to be done about a datagram.
#[derive(Debug, PartialEq)]
pub enum Received {
    /// Carry out a request, then call [`DynamicAuthorization::answer`].
    Request(RequestKey, Box<DynamicRequest>),
    /// Send this answer.
    Answer(Vec<u8>),
    /// Nothing: it was dropped and counted, or its answer is still to come.
    Nothing,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DynamicOutcome {
    /// It is done.
    Done,
    /// It is not done, and nothing has changed.
    Rejected(ErrorCause),
    /// The server is asked for the session's values (RFC 5176 §3.2).
    Initiated,
    /// It is not known whether it is done. There is no answer, and a repetition is a new request.
    Unknown,
}

/// Error-Cause (RFC 5176 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u32)]
pub enum ErrorCause {
    /// An attribute that cannot be changed, or that does not belong into the request.
    #[error("unsupported attribute")]
    UnsupportedAttribute = values::ERROR_CAUSE_UNSUPPORTED_ATTRIBUTE,
    /// Nothing names a session, or nothing is to be changed.
    #[error("missing attribute")]
    MissingAttribute = values::ERROR_CAUSE_MISSING_ATTRIBUTE,
    /// The request is for another gateway.
    #[error("NAS identification mismatch")]
    NasIdentificationMismatch = values::ERROR_CAUSE_NAS_IDENTIFICATION_MISMATCH,
    /// The request contradicts itself.
    #[error("invalid request")]
    InvalidRequest = values::ERROR_CAUSE_INVALID_REQUEST,
    /// Its Service-Type is another one than Framed, or than Authorize-Only in a CoA-Request.
    #[error("unsupported service")]
    UnsupportedService = values::ERROR_CAUSE_UNSUPPORTED_SERVICE,
    /// A value cannot be used.
    #[error("invalid attribute value")]
    InvalidAttributeValue = values::ERROR_CAUSE_INVALID_ATTRIBUTE_VALUE,
    /// No session matches.
    #[error("session context not found")]
    SessionContextNotFound = values::ERROR_CAUSE_SESSION_CONTEXT_NOT_FOUND,
    /// The user plane does not take the change, or cannot be asked now.
    #[error("resources unavailable")]
    ResourcesUnavailable = values::ERROR_CAUSE_RESOURCES_UNAVAILABLE,
    /// Several sessions match.
    #[error("multiple session selection unsupported")]
    MultipleSessionSelectionUnsupported =
        values::ERROR_CAUSE_MULTIPLE_SESSION_SELECTION_UNSUPPORTED,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DynamicCounters {
    /// Requests that were carried out.
    pub done: u64,
    /// Requests that were rejected with an Error-Cause.
    pub rejected: u64,
    /// Datagrams of unknown clients. Dropped.
    pub unknown_clients: u64,
    /// Datagrams with a wrong authenticator, with a wrong or missing Message-Authenticator, malformed, or with so many Proxy-States that
    /// no answer has room for them. Dropped.
    pub unauthentic: u64,
    /// Requests whose Event-Timestamp is missing or outside the window. Dropped.
    pub untimely: u64,
    /// Repetitions of a known request.
    pub repeated: u64,
    /// Requests that were dropped because there were too many in the last minute.
    pub dropped: u64,
}

/// What identifies a datagram: a repetition has the same.
type Identity = (SocketAddr, u8, [u8; 16]);

struct Known {
    identity: Identity,
    client: Secret,
    code: Code,
    proxy_states: Vec<Vec<u8>>,
    answer: Option<Vec<u8>>,
}

/// Dynamic authorization server: a state machine without sockets or clock.
#[derive(Default)]
pub struct DynamicAuthorization {
    config: DynamicConfig,
    last: u64,
    known: HashMap<RequestKey, Known>,
    /// Requests in order of their time, and some that are no longer known.
    by_age: VecDeque<(Duration, RequestKey)>,
    /// Datagrams that were taken, also those whose answer is no longer kept: a request that somebody recorded has no effect.
    taken: HashMap<Identity, RequestKey>,
    /// These in order of their time, and some that are no longer known.
    taken_by_age: VecDeque<(Duration, Identity, RequestKey)>,
    counters: DynamicCounters,
}

impl DynamicAuthorization {
    /// Follows a changed configuration. Known requests stay known.
    pub fn reconfigure(&mut self, config: DynamicConfig) {
        self.config = config;
    }

    /// Counters since the start.
    pub fn counters(&self) -> DynamicCounters {
        self.counters
    }

    /// Handles a datagram. `unix` is the wall clock in seconds since 1970.
    pub fn handle(&mut self, now: Duration, unix: u32, from: SocketAddr, bytes: &[u8]) -> Received {
        let mut clients = self.config.clients.iter();
        let Some(client) = clients.find(|client| client.address == from.ip()).cloned() else {
            self.counters.unknown_clients += 1;
            return Received::Nothing;
        };
        let missing = match client.require_message_authenticator {
            true => Missing::Refuse,
            false => Missing::Allow,
        };
        let packet = verify_dynamic_request(bytes, client.secret.expose(), missing);
        let Some(packet) = packet.ok().filter(is_answerable) else {
            self.counters.unauthentic += 1;
            return Received::Nothing;
        };
        let identity = (from, packet.identifier, packet.authenticator);
        if let Some(key) = self.taken.get(&identity) {
            self.counters.repeated += 1;
            let answer = self.known.get(key).and_then(|known| known.answer.clone());
            return answer.map_or(Received::Nothing, Received::Answer);
        }
        if !self.is_timely(unix, &packet) {
            self.counters.untimely += 1;
            return Received::Nothing;
        }
        self.forget_old(now);
        if self.known.len() >= MOST_REQUESTS {
            self.counters.dropped += 1;
            return Received::Nothing;
        }
        self.begin(now, identity, client.secret, &packet)
    }

    /// RFC 5176 §6.3.
    fn is_timely(&self, unix: u32, packet: &Packet) -> bool {
        match packet.get(Kind::EVENT_TIMESTAMP) {
            Some(Value::Time(at)) => {
                u64::from(at.abs_diff(unix)) <= self.config.time_window.as_secs()
            }
            Some(_) => false,
            None => !self.config.require_event_timestamp,
        }
    }

    fn begin(
        &mut self,
        now: Duration,
        identity: Identity,
        client: Secret,
        packet: &Packet,
    ) -> Received {
        self.last += 1;
        let key = RequestKey(self.last);
        let proxy_states = packet.all(Kind::PROXY_STATE).filter_map(Value::octets);
        let known = Known {
            identity,
            client,
            code: packet.code,
            proxy_states: proxy_states.map(<[u8]>::to_vec).collect(),
            answer: None,
        };
        self.known.insert(key, known);
        self.by_age.push_back((now, key));
        self.taken.insert(identity, key);
        self.taken_by_age.push_back((now, identity, key));
        match request::read(packet, &self.config) {
            Ok(request) => Received::Request(key, Box::new(request)),
            Err(cause) => match self.answer(key, DynamicOutcome::Rejected(cause)) {
                Some((_, answer)) => Received::Answer(answer),
                None => Received::Nothing,
            },
        }
    }

    /// Says what came of a request. Returns the answer and where it goes; `None` if there is none to give.
    pub fn answer(
        &mut self,
        key: RequestKey,
        outcome: DynamicOutcome,
    ) -> Option<(SocketAddr, Vec<u8>)> {
        let known = self.known.get_mut(&key)?;
        let (to, identifier, authenticator) = known.identity;
        let (done, cause) = match outcome {
            DynamicOutcome::Done => (true, None),
            DynamicOutcome::Rejected(cause) => (false, Some(cause as u32)),
            DynamicOutcome::Initiated => (false, Some(values::ERROR_CAUSE_REQUEST_INITIATED)),
            DynamicOutcome::Unknown => {
                self.forget(key);
                return None;
            }
        };
        let code = match (known.code, done) {
            (Code::COA_REQUEST, true) => Code::COA_ACK,
            (Code::COA_REQUEST, false) => Code::COA_NAK,
            (_, true) => Code::DISCONNECT_ACK,
            (_, false) => Code::DISCONNECT_NAK,
        };
        let mut packet = Packet::new(code, identifier, authenticator);
        if let Some(cause) = cause {
            packet.push(Kind::ERROR_CAUSE, cause);
        }
        if outcome == DynamicOutcome::Initiated {
            let service = values::SERVICE_TYPE_AUTHORIZE_ONLY;
            packet.push(Kind::SERVICE_TYPE, service);
        }
        for state in &known.proxy_states {
            packet.push(Kind::PROXY_STATE, &state[..]);
        }
        // it has room: see `is_answerable`
        let answer = packet.emit_response(&authenticator, known.client.expose());
        let answer = answer.ok()?;
        known.answer = Some(answer.clone());
        match outcome {
            DynamicOutcome::Rejected(_) => self.counters.rejected += 1,
            _ => self.counters.done += 1,
        }
        Some((to, answer))
    }

    /// Requests that are not answered yet.
    pub fn open(&self) -> impl Iterator<Item = RequestKey> {
        let open = self
            .known
            .iter()
            .filter(|(_, known)| known.answer.is_none());
        open.map(|(key, _)| *key)
    }

    /// Forgets answers that nobody waits for, and datagrams that would be untimely if somebody repeated them.
    fn forget_old(&mut self, now: Duration) {
        let is_old = |at: Duration, lifetime: Duration| now.saturating_sub(at) > lifetime;
        while let Some((at, key)) = self.by_age.front().copied()
            && is_old(at, ANSWER_LIFETIME)
        {
            self.by_age.pop_front();
            self.known.remove(&key);
        }
        let lifetime = ANSWER_LIFETIME.max(self.config.time_window * 2);
        while let Some((at, identity, key)) = self.taken_by_age.front().copied()
            && (is_old(at, lifetime) || self.taken_by_age.len() >= MOST_IDENTITIES)
        {
            self.taken_by_age.pop_front();
            // a request whose outcome was unknown may have been taken again since
            if self.taken.get(&identity) == Some(&key) {
                self.taken.remove(&identity);
            }
        }
    }

    fn forget(&mut self, key: RequestKey) {
        if let Some(known) = self.known.remove(&key) {
            self.taken.remove(&known.identity);
        }
    }
}

/// Whether an answer has room for the request's Proxy-States, all of which it must repeat (RFC 5176 §3.1).
fn is_answerable(packet: &Packet) -> bool {
    let states = packet.all(Kind::PROXY_STATE).filter_map(Value::octets);
    let length: usize = states.map(|state| 2 + state.len()).sum();
    length <= PROXY_STATES_ROOM
}
