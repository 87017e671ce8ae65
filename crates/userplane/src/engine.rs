//! PFCP role of the user plane, without I/O. Inputs: requests of the control plane, answers of the worker, and time. Outputs:
//! commands, responses and reports.
//!
//! A subscriber's session exists twice: here and in the worker. Each change goes to the worker together with a query for the
//! session's counters. The worker handles both in order, so its answer means that the change is done. Only then does the engine
//! answer the control plane. Each session has one such operation at a time; further requests wait.
//!
//! ```
//! use userplane::engine::{Config, Engine, Now, Output};
//! use wire::pfcp::{Cause, Message, NodeId, SessionDeletionRequest};
//!
//! let node_id = NodeId::Fqdn("up1".into());
//! let mut engine: Engine<&str> = Engine::new(Config::new(node_id, "192.0.2.2".parse().unwrap()));
//! let control_plane = "192.0.2.1:8805".parse().unwrap();
//! let now = Now::default();
//! engine.request(now, "first", control_plane, 7, SessionDeletionRequest {}.into());
//! let Some(Output::Respond { to: "first", message: Message::SessionDeletionResponse(answer), .. }) =
//!     engine.poll_output()
//! else {
//!     panic!("an answer")
//! };
//! assert_eq!(answer.cause, Cause::SESSION_CONTEXT_NOT_FOUND);
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dataplane::{InstanceIndex, PortIndex, Refusal, SessionEntry, SessionIndex};
use pfcp::bng::{Rejection, Usage, UsageMeter};
use policy::Name;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use wire::pfcp::{
    Cause, FSeid, IeId, Message, NodeId, SessionEstablishmentRequest, SessionModificationRequest,
    UsageReport, bbf_ie, ie,
};

use crate::announcement::Announcement;
use crate::compile::{CompiledSession, Layout};
use crate::policies::PolicyKey;
use crate::table::{Seid, Table};

mod answers;
mod audit;
mod change;
mod departed;
mod echoes;
mod frames;
mod idle;
mod keepalive;
mod ledger;
mod moves;
mod nets;
mod peers;
mod redirected;
mod rules;
mod timers;
mod tunnels;
mod usage;

use departed::Departed;
pub use echoes::FromSubscriber;
use idle::Idleness;
use keepalive::Watch;
pub use ledger::Expected;
use peers::Peer;
use rules::{Packer, Rules};
pub use tunnels::{Downlink, NoDownlink};

/// Maximum number of default sessions: one for each subscriber group of each control plane.
const MAX_DEFAULT_SESSIONS: usize = 256;
/// Maximum number of requests that wait for one session.
const MAX_WAITING: usize = 8;
/// Maximum number of unacknowledged usage reports of one session.
const MAX_KEPT: usize = 4;
/// Maximum number of earlier rules (URRs) of a session that have such reports.
const MAX_RULES: usize = 4;

/// Time of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time since an arbitrary origin, for timers.
    pub monotonic: Duration,
    /// Seconds since 1900, for reports.
    pub ntp: u32,
}

/// Configuration of the engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our node id.
    pub node_id: NodeId,
    /// Our address, for PFCP and tunnels.
    pub address: IpAddr,
    /// Names of ports and network instances.
    pub layout: Layout,
    /// Maximum number of subscriber sessions.
    pub max_sessions: u32,
    /// Number of workers that share the sessions.
    pub workers: u16,
    /// Control planes that may connect.
    pub control_planes: Vec<IpAddr>,
    /// How long a control plane's sessions are held after the path to it is lost; `None`: for ever.
    pub hold: Option<Duration>,
    /// Random seed.
    pub seed: u32,
}

impl Config {
    /// No ports, 131,072 sessions, and nothing random.
    pub fn new(node_id: NodeId, address: IpAddr) -> Self {
        let layout = Layout {
            address: Some(address),
            ..Layout::default()
        };
        Self {
            node_id,
            address,
            layout,
            max_sessions: 131_072,
            workers: 1,
            control_planes: Vec::new(),
            hold: None,
            seed: 1,
        }
    }

    /// Places in the table. The worker's table must have at least as many.
    pub fn places(&self) -> u32 {
        self.capacity() * u32::from(self.workers)
    }

    /// Maximum number of sessions, default sessions included.
    fn capacity(&self) -> u32 {
        self.max_sessions + MAX_DEFAULT_SESSIONS as u32
    }
}

/// Change or query for the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerCommand {
    /// Add or change a session.
    Set(SessionEntry),
    /// Remove a session; the answer has its last counters.
    Remove(SessionIndex),
    /// Query the counters of a session.
    Read(SessionIndex),
    /// Forget the place of a session that has moved to another worker and is gone.
    Forget(SessionIndex),
}

/// What the caller has to do. `T` identifies a request of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<T> {
    /// Pass to the worker, in this order.
    Worker(WorkerCommand),
    /// Answer a request.
    Respond {
        /// The request.
        to: T,
        /// The control plane's SEID of the session.
        seid: u64,
        /// The answer.
        message: Message,
    },
    /// Send a Session Report Request; its outcome goes to [`Engine::reported`].
    Report {
        /// The control plane.
        peer: SocketAddr,
        /// The control plane's SEID of the session.
        seid: u64,
        /// Token for the outcome.
        token: u64,
        /// The request.
        message: Message,
    },
    /// Send a frame by an access port. It may get lost.
    Send(PortIndex, Vec<u8>),
    /// Announce a subscriber prefix.
    AddNet(InstanceIndex, Announcement),
    /// Withdraw a subscriber prefix.
    RemoveNet(InstanceIndex, Announcement),
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Establishments rejected because the table is full.
    pub table_full: u64,
    /// Establishments and modifications rejected because of their rules.
    pub rules_refused: u64,
    /// Establishments and modifications rejected because another session has the tunnel.
    pub teid_taken: u64,
    /// Sessions that the worker rejected.
    pub worker_refused: u64,
    /// Requests for unknown sessions.
    pub unknown_session: u64,
    /// Requests rejected because too many wait.
    pub congested: u64,
    /// Usage reports that were not acknowledged in time, and were kept.
    pub reports_kept: u64,
    /// Sessions removed because the path to their control plane did not return in time.
    pub hold_expired: u64,
    /// Unreported octets of sessions that were removed without a last report.
    pub unreported_octets: u64,
}

/// Worker answer that a session waits for. It is small, since most sessions wait for none.
#[derive(Debug)]
enum Operation<T> {
    None,
    Establish(Box<Asked<T>>),
    Modify(Box<Modification<T>>),
    /// Restore the session after a rejected modification.
    Restore(Box<(T, Rejection)>),
    /// Counters for a report.
    Report,
    /// Counters for the idle check.
    Look,
    /// Counters for the check whether the subscriber lives.
    Check,
    Remove(Box<After<T>>),
}

/// Establishment that the worker has not answered yet.
#[derive(Debug)]
struct Asked<T> {
    to: T,
    refused: Option<Refusal>,
}

#[derive(Debug)]
struct Modification<T> {
    to: T,
    query: bool,
    /// Rules from before the modification.
    rules: Rules,
    compiled: CompiledSession,
    refused: Option<Refusal>,
}

/// What follows when a session has been removed.
#[derive(Debug)]
enum After<T> {
    Answer(T),
    Refuse(T, Rejection),
    Nothing,
}

#[derive(Debug)]
enum Wanted {
    Modify(Box<SessionModificationRequest>),
    Delete,
}

impl Wanted {
    fn is_deletion(&self) -> bool {
        matches!(self, Wanted::Delete)
    }
}

/// Reports that the control plane has not acknowledged, the oldest first. Each later report or answer about the session's usage
/// repeats them. Each keeps its number (UR-SEQN), by which the control plane recognizes a repetition.
#[derive(Debug, Default)]
struct Unacknowledged {
    reports: Vec<UsageReport>,
    /// How many of them, from the oldest, are in a report under way.
    in_flight: usize,
}

#[derive(Debug)]
struct Session<T> {
    peer: SocketAddr,
    cp_seid: u64,
    rules: Rules,
    compiled: CompiledSession,
    meter: Option<UsageMeter>,
    /// Counters that the worker reported last.
    counters: Usage,
    /// Counters from before the worker restarted at 0; `None`: it has not.
    carried_over: Option<Box<Usage>>,
    unacknowledged: Unacknowledged,
    report_at: Option<Duration>,
    idleness: Idleness,
    watch: Watch,
    operation: Operation<T>,
    waiting: VecDeque<(T, Wanted)>,
    /// Last audit that named the session.
    audited: u32,
}

impl<T> Session<T> {
    /// Whether the session is being removed, and waits for the worker only.
    fn is_leaving(&self) -> bool {
        matches!(self.operation, Operation::Remove(_))
    }
}

/// Sessions of a user plane.
#[derive(Debug)]
pub struct Engine<T> {
    config: Config,
    table: Table<Session<T>>,
    /// Workers of VLANs that were moved, by access port; untagged frames count as VLAN 0.
    owners: HashMap<(PortIndex, u16), u16>,
    /// Default sessions with the port of each; `None`: all ports.
    defaults: BTreeMap<SessionIndex, Option<PortIndex>>,
    /// How many sessions announce each prefix.
    nets: BTreeMap<(InstanceIndex, Announcement), usize>,
    /// Prefixes of default sessions that a control plane has replaced: announced until it has announced its own again.
    held: HashMap<SocketAddr, BTreeSet<(InstanceIndex, Announcement)>>,
    /// Control planes.
    peers: HashMap<SocketAddr, Peer>,
    departed: Departed,
    packer: Packer,
    timers: BinaryHeap<Reverse<(Duration, Seid)>>,
    /// Number of timers at which void ones are dropped.
    clean_timers_at: usize,
    outputs: VecDeque<Output<T>>,
    random: SmallRng,
    /// Set while the worker is behind: establishments are rejected meanwhile.
    pub worker_behind: bool,
    /// Counters since the start.
    pub counters: Counters,
}

impl<T: Copy> Engine<T> {
    /// An empty table.
    pub fn new(config: Config) -> Self {
        Self {
            table: Table::new(config.capacity(), config.workers, config.seed),
            owners: HashMap::new(),
            random: SmallRng::seed_from_u64(config.seed.into()),
            config,
            defaults: BTreeMap::new(),
            nets: BTreeMap::new(),
            held: HashMap::new(),
            peers: HashMap::new(),
            departed: Departed::default(),
            packer: Packer::default(),
            timers: BinaryHeap::new(),
            clean_timers_at: timers::FEW,
            outputs: VecDeque::new(),
            worker_behind: false,
            counters: Counters::default(),
        }
    }

    /// Replaces the names and indexes of ports and instances. Existing sessions stay as they are.
    pub fn set_layout(&mut self, layout: Layout) {
        self.config.layout = layout;
    }

    /// Number of sessions that name each policy of a document, for one direction or for both.
    pub fn sessions_by_policy(&self) -> BTreeMap<Name, u64> {
        let mut sessions = BTreeMap::new();
        for (_, session) in self.table.iter() {
            let CompiledSession::Subscriber { policies, .. } = &session.compiled else {
                continue;
            };
            let named =
                |key: &Option<Arc<PolicyKey>>| key.as_ref().and_then(|key| key.policy.clone());
            let [up, down] = policies.each_ref().map(named);
            let down = down.filter(|down| up.as_ref() != Some(down));
            for name in [up, down].into_iter().flatten() {
                *sessions.entry(name).or_default() += 1;
            }
        }
        sessions
    }

    /// Sets how long a control plane's sessions are held after the path to it is lost. It applies to paths lost from now on.
    pub fn set_hold(&mut self, hold: Option<Duration>) {
        self.config.hold = hold;
    }

    /// How long sessions are held; `None`: for ever.
    pub fn hold(&self) -> Option<Duration> {
        self.config.hold
    }

    /// Next output.
    pub fn poll_output(&mut self) -> Option<Output<T>> {
        self.outputs.pop_front()
    }

    /// Number of sessions, default sessions included.
    pub fn sessions(&self) -> usize {
        self.table.len()
    }

    /// Number of subscribers' sessions.
    pub fn subscriber_sessions(&self) -> usize {
        self.table.len().saturating_sub(self.defaults.len())
    }

    /// Handles a request about a session. `seid` is our SEID.
    pub fn request(&mut self, now: Now, to: T, peer: SocketAddr, seid: u64, message: Message) {
        let wanted = match message {
            Message::SessionEstablishmentRequest(request) => {
                return self.establish(now, to, peer, request);
            }
            Message::SessionModificationRequest(request) => Wanted::Modify(Box::new(request)),
            Message::SessionDeletionRequest(_) => Wanted::Delete,
            _ => return,
        };
        let seid = Seid::from_u64(seid);
        if self
            .table
            .resolve(seid)
            .is_none_or(|session| session.peer != peer)
        {
            if let (Wanted::Delete, Some(last)) = (&wanted, self.departed.find(seid, peer)) {
                let last = last.clone();
                return self.tell_last(to, last);
            }
            self.counters.unknown_session += 1;
            return self.refuse(to, 0, &wanted, &cause(Cause::SESSION_CONTEXT_NOT_FOUND));
        }
        let Some(session) = self.table.get_mut(seid.index) else {
            return;
        };
        match session.operation {
            Operation::None => self.run(now, seid.index, to, wanted),
            Operation::Remove(_) if !wanted.is_deletion() => {
                self.refuse(to, 0, &wanted, &cause(Cause::SESSION_CONTEXT_NOT_FOUND));
            }
            _ if wanted.is_deletion() => self.wait_for_deletion(seid.index, to, wanted),
            _ if session.waiting.len() < MAX_WAITING => session.waiting.push_back((to, wanted)),
            _ => {
                let seid = session.cp_seid;
                self.counters.congested += 1;
                self.refuse(to, seid, &wanted, &cause(Cause::ENTITY_IN_CONGESTION));
            }
        }
    }

    /// Queues a deletion, which is never rejected for lack of room: the control plane might not repeat it. It replaces a deletion
    /// that already waits: the control plane asked again, so it no longer waits for that answer.
    fn wait_for_deletion(&mut self, index: SessionIndex, to: T, deletion: Wanted) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let mut waiting = session.waiting.iter();
        let before = waiting.position(|(_, wanted)| wanted.is_deletion());
        let before = before.and_then(|at| session.waiting.remove(at));
        session.waiting.push_back((to, deletion));
        let seid = session.cp_seid;
        if let Some((to, wanted)) = before {
            self.refuse(to, seid, &wanted, &cause(Cause::ENTITY_IN_CONGESTION));
        }
    }

    fn run(&mut self, now: Now, index: SessionIndex, to: T, wanted: Wanted) {
        match wanted {
            Wanted::Modify(request) => match &request.audit {
                Some(audit) => self.audit(index, to, audit),
                None => self.modify(now, index, to, &request),
            },
            Wanted::Delete => self.remove(index, After::Answer(to)),
        }
    }

    /// Starts waiting requests of a session, until one has to wait for the worker.
    fn run_waiting(&mut self, now: Now, index: SessionIndex) {
        while let Some(session) = self.table.get_mut(index)
            && matches!(session.operation, Operation::None)
            && let Some((to, wanted)) = session.waiting.pop_front()
        {
            self.run(now, index, to, wanted);
        }
    }

    /// Handles the worker's answer to a query or a removal.
    pub fn worker_usage(&mut self, now: Now, index: SessionIndex, usage: Usage, removed: bool) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        let operation = std::mem::replace(&mut session.operation, Operation::None);
        match removed && !matches!(operation, Operation::Remove(_)) {
            // The worker drops a session whose change it rejects, and counts from 0 when the session is put back.
            true => session.carried_over = Some(Box::new(session.counters)),
            false => {
                session.counters = session
                    .carried_over
                    .as_deref()
                    .map_or(usage, |over| over.plus(usage))
            }
        }
        match (operation, removed) {
            (Operation::Establish(asked), removed) => match asked.refused {
                None if removed => session.operation = Operation::Establish(asked),
                None => self.established(now, index, asked.to),
                Some(refusal) => {
                    self.remove(index, After::Refuse(asked.to, rejection(refusal)));
                }
            },
            (Operation::Modify(modification), _) if modification.refused.is_some() => {
                self.restore(now, index, *modification);
            }
            (Operation::Modify(modification), false) => self.modified(now, index, *modification),
            (Operation::Restore(failed), false) => {
                let (to, rejection) = *failed;
                self.refuse_modification(to, session_seid(&self.table, index), &rejection);
            }
            (Operation::Report, false) => self.report(now, index),
            (Operation::Look, false) => self.looked(now, index),
            (Operation::Check, false) => self.checked(now, index),
            (Operation::Remove(after), true) => return self.removed(now, index, *after),
            // This answers an earlier query than the one that is waited for.
            (operation, _) => session.operation = operation,
        }
        self.run_waiting(now, index);
    }

    /// Handles the worker's rejection of a session. The answer to the query that followed the change comes after this.
    pub fn worker_refused(&mut self, index: SessionIndex, reason: Refusal) {
        let Some(session) = self.table.get_mut(index) else {
            return;
        };
        self.counters.worker_refused += 1;
        match &mut session.operation {
            Operation::Establish(asked) => asked.refused = Some(reason),
            Operation::Modify(modification) => modification.refused = Some(reason),
            _ => {}
        }
    }

    /// When [`Engine::on_timeout`] has to be called next.
    pub fn poll_at(&self) -> Option<Duration> {
        let report = self.timers.peek().map(|Reverse((at, _))| *at);
        [
            report,
            self.hold_ends(),
            self.telling_ends(),
            self.pack_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn worker(&mut self, command: WorkerCommand) {
        self.outputs.push_back(Output::Worker(command));
    }
}

fn session_seid<T>(table: &Table<Session<T>>, index: SessionIndex) -> u64 {
    table.get(index).map_or(0, |session| session.cp_seid)
}

fn cause(cause: Cause) -> Rejection {
    Rejection {
        cause,
        offending_ie: None,
        failed_rule: None,
    }
}

fn offending(offending_ie: IeId) -> Rejection {
    Rejection {
        offending_ie: Some(offending_ie),
        ..cause(Cause::RULE_CREATION_FAILURE)
    }
}

/// PFCP rejection for a refusal of the worker.
fn rejection(refusal: Refusal) -> Rejection {
    match refusal {
        Refusal::IdTaken => offending(bbf_ie::PPPOE_SESSION_ID),
        Refusal::NoSegment => offending(bbf_ie::LOGICAL_PORT),
        Refusal::AddressTaken => offending(ie::UE_IP_ADDRESS),
        Refusal::Malformed => offending(ie::TRAFFIC_ENDPOINT_ID),
        Refusal::TableFull => cause(Cause::NO_RESOURCES_AVAILABLE),
    }
}

fn own_seid(config: &Config, seid: Seid) -> FSeid {
    FSeid::new(seid.to_u64(), config.address)
}

fn request_name(wanted: &Wanted) -> &'static str {
    match wanted {
        Wanted::Modify(_) => "modification",
        Wanted::Delete => "deletion",
    }
}

#[cfg(test)]
mod tests;

// Only for signatures in the submodules.
type Establishment = SessionEstablishmentRequest;
