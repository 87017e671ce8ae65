//! The control plane as one sans-IO value: inputs and a time go in, outputs come out.
//!
//! Each module below is a part of a session's way; all of them are methods of [`ControlPlane`].

mod account;
mod admit;
mod alarm;
mod apply;
mod audit;
mod backlog;
mod bindings;
mod call;
mod change;
mod drain;
mod find;
mod holdings;
mod ledger;
mod link;
mod note;
mod overview;
mod persist;
mod profiles;
mod release;
mod restore;
mod retire;
mod rules;
mod tables;
mod tunnel;

use crate::aaa_clients::{AaaClients, AaaEvent};
use crate::accounting::AccountingQueue;
use crate::addresses::Addresses;
use crate::alarms::{Alarms, Condition};
use crate::counters::{Counter, Counters};
use crate::entry::Entry;
use crate::history::{Bounds, Outbox};
use crate::session_ids::SessionIdAllocator;
use crate::store::Record as StoreRecord;
use crate::topology::{Numbers, SegmentId, Seid, Topology, UserPlaneId};
use crate::user_planes::{UserPlaneEvent, UserPlanes};
use crate::wheel::TimerWheel;
use config::{Configuration, Fault};
use core::net::SocketAddr;
use core::time::Duration;
use northbound::{Answer, Request as Call};
use pfcp::RequestId;
use pfcp::bng::ReleasedTunnels;
use profiles::AccessProfiles;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use session::Family;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use wire::eth::MacAddr;
use wire::pfcp::Cause as PfcpCause;

pub(crate) use alarm::severity;
pub use backlog::MOST_BATCHES;
pub use holdings::{Held, HeldStage, StoredSession};
pub use northbound::Effect;
pub use note::Note;
pub(crate) use note::history_bounds;
pub use persist::STORE_RECOVERY_KEY;
pub use restore::{RadiusPorts, Restored};

/// A moment, on the clock that timers use and on the clock that records use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time. Its origin is the same as long as [`Restored::read`] is told the same run of the machine.
    pub at: Duration,
    /// Wall time in seconds since 1970.
    pub unix: u32,
}

/// What happens to the control plane.
#[derive(Debug)]
pub enum Input<'a> {
    /// A PFCP datagram.
    Pfcp {
        /// Where it came from.
        from: SocketAddr,
        /// The datagram.
        bytes: &'a [u8],
    },
    /// A GTP-U datagram.
    Gtpu {
        /// Where it came from.
        from: SocketAddr,
        /// The datagram.
        bytes: &'a [u8],
    },
    /// A RADIUS datagram.
    Radius {
        /// The number of the socket that received it.
        socket: u16,
        /// Where it came from.
        from: SocketAddr,
        /// The datagram.
        bytes: &'a [u8],
    },
    /// The ports of the sockets that [`Output::RadiusSockets`] wanted.
    RadiusPorts(RadiusPorts),
    /// The store has every batch up to this number on disk; batches count from 1.
    Durable(u64),
    /// The history has every block up to this number on disk.
    Kept(u64),
    /// Something happened around the control plane that the history is to know.
    Note(Note),
    /// Look at what is wrong, as is to be done about each second; this is what is wrong around the control plane.
    Look(Vec<Condition>),
    /// A call of the local API; answered under the same ticket.
    Call {
        /// Tells this call from others.
        ticket: u64,
        /// What is asked.
        call: Call,
    },
}

/// What the control plane wants done, in this order.
#[derive(Debug)]
pub enum Output {
    /// Send a PFCP datagram.
    Pfcp {
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Send a GTP-U datagram.
    Gtpu {
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Have these sockets for RADIUS from now on, by whether they are of IPv6 and by number, each at the port that it had,
    /// if it had one; then say which ports they have with [`Input::RadiusPorts`].
    RadiusSockets(BTreeMap<(bool, u16), Option<u16>>),
    /// Send a RADIUS datagram from the socket of this number: see [`Output::RadiusSockets`].
    Radius {
        /// The socket's number.
        socket: u16,
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Make these records durable as the next batch, then say so with [`Input::Durable`]. At most [`MOST_BATCHES`] are
    /// wanted at a time.
    Store(Vec<StoreRecord>),
    /// Add this block to the history, then say so with [`Input::Kept`].
    History {
        /// The block's number; they count up.
        number: u64,
        /// Its events.
        block: Vec<u8>,
    },
    /// Keep so much of the history from now on.
    HistoryBounds(Bounds),
    /// Answer a call of the local API.
    Answer {
        /// The call's ticket.
        ticket: u64,
        /// The answer.
        answer: Answer,
    },
}

/// Key of an access line: segment, outer and inner VLAN, MAC address. It finds the session of a subscriber that reconnects.
type LineKey = (SegmentId, Option<u16>, Option<u16>, MacAddr);

/// Something that waits until a batch of records is on disk.
struct Waiting {
    batch: u64,
    what: Awaited,
}

enum Awaited {
    /// A session's packet that lets the subscriber send; `asked` is [`crate::entry::Rules::asked`] of the family.
    Family {
        seid: Seid,
        family: Family,
        asked: u8,
    },
    /// An accounting record, by its token.
    Record(u64),
    /// A block of events for the history.
    Block(u64, Vec<u8>),
    /// The answer to a user plane's report.
    Report { id: RequestId, up_seid: u64 },
}

/// The control plane.
pub struct ControlPlane {
    start: config::start::ControlPlane,
    configuration: Arc<Configuration>,
    topology: Topology,
    access: AccessProfiles,
    cookie_key: [u8; 32],
    sessions: Slab<Box<Entry>>,
    /// How many of them each user plane has.
    counts: BTreeMap<UserPlaneId, u64>,
    by_line: HashMap<LineKey, Seid>,
    /// Sessions in the order of their PADR, to shed the oldest one that is half open.
    admitted: VecDeque<Seid>,
    half_open: usize,
    wheel: TimerWheel,
    session_ids: BTreeMap<SegmentId, SessionIdAllocator>,
    addresses: Addresses,
    user_planes: UserPlanes,
    aaa: AaaClients,
    /// What the store has of numbers, and of the ports of RADIUS sockets.
    numbers: Numbers,
    radius_ports: RadiusPorts,
    radius_sockets: BTreeSet<(bool, u16)>,
    /// What the configuration has no more.
    retirement: retire::Retirement,
    /// User planes that take no new sessions.
    drains: drain::Drains,
    /// Sessions whose policy is to be renewed, as the user planes answer.
    adjusting: VecDeque<Seid>,
    /// Records of the batch that is being put together.
    records: Vec<StoreRecord>,
    /// The number of the batch that is being put together.
    batch: u64,
    /// How far the store is behind.
    backlog: backlog::Backlog,
    waiting: VecDeque<Waiting>,
    /// What is wrong.
    alarms: Alarms,
    /// Events on their way into the history.
    outbox: Outbox,
    /// Accounting records that no server has yet.
    accounting: AccountingQueue,
    /// Tunnels of sessions that have ended.
    released_tunnels: ReleasedTunnels,
    /// Audits under way, by user plane.
    audits: BTreeMap<UserPlaneId, audit::Audit>,
    /// A check of the ledger that waits for audits.
    check: Option<Box<ledger::Check>>,
    /// Calls that list sessions, and how many sessions' counters each still waits for.
    listings: HashMap<u64, usize>,
    generation: u64,
    /// Generations up to this one may be given out: the store knows that they may have been.
    last_generation: u64,
    /// Tells the machine's present run.
    boot: u32,
    random: StdRng,
    counters: Counters,
    tally: overview::Tally,
    outputs: VecDeque<Output>,
}

impl ControlPlane {
    /// A control plane with what the store held. `seed` comes from the system's generator.
    ///
    /// # Errors
    /// What cannot be served of the configuration.
    pub fn new(
        start: &config::start::ControlPlane,
        configuration: Arc<Configuration>,
        mut restored: Restored,
        seed: [u8; 32],
        now: Now,
    ) -> Result<Self, Vec<Fault>> {
        faults(start, &configuration)?;
        let mut topology = Topology::new(&configuration, restored.take_numbers());
        restored.find_places(&mut topology);
        topology.forget_kept();
        let mut random = StdRng::from_seed(seed);
        let mut keys = [[0u8; 32]; 2];
        keys.iter_mut().for_each(|key| random.fill_bytes(key));
        let (outbox, blocks) = restored.take_outbox();
        let user_planes = UserPlanes::new(start, restored.recovery_time_stamp, random.next_u32());
        let mut plane = ControlPlane {
            access: profiles::access_profiles(&configuration, keys[0]),
            cookie_key: keys[0],
            addresses: Addresses::new(&configuration, &topology)?,
            aaa: AaaClients::new(start, keys[1]),
            session_ids: BTreeMap::new(),
            sessions: Slab::new(),
            counts: BTreeMap::new(),
            by_line: HashMap::new(),
            admitted: VecDeque::new(),
            half_open: 0,
            wheel: TimerWheel::new(Duration::from_millis(10)),
            user_planes,
            numbers: restored.numbers().clone(),
            radius_ports: restored.radius_ports().clone(),
            radius_sockets: BTreeSet::new(),
            retirement: retire::Retirement::default(),
            drains: drain::Drains::new(),
            adjusting: VecDeque::new(),
            records: restored.first_records(),
            batch: 1,
            backlog: backlog::Backlog::default(),
            waiting: VecDeque::new(),
            alarms: Alarms::resume(restored.take_alarms()),
            outbox,
            accounting: AccountingQueue::default(),
            released_tunnels: ReleasedTunnels::default(),
            audits: BTreeMap::new(),
            check: None,
            listings: HashMap::new(),
            generation: restored.first_generation(now),
            last_generation: 0,
            boot: restored.boot,
            random,
            counters: Counters::default(),
            tally: overview::Tally::default(),
            outputs: VecDeque::new(),
            topology,
            start: start.clone(),
            configuration,
        };
        for (id, user_plane) in plane.topology.user_planes() {
            let recovery = restored.recovery_of(&user_plane.node_id);
            plane.user_planes.add(now.at, id, user_plane, recovery);
        }
        let blocks = blocks.into_iter();
        let again = blocks.map(|(number, block)| Output::History { number, block });
        plane.outputs.extend(again);
        plane.bound_history();
        plane.resume(restored, now);
        plane.follow_drains(now);
        Ok(plane)
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        match input {
            Input::Pfcp { from, bytes } => {
                // an unknown peer gets an answer that rejects it (TS 29.244 §7.4.4)
                if self.user_planes.find(from.ip()).is_none() {
                    self.counters.count(Counter::UnknownUserPlane);
                }
                self.user_planes
                    .datagram(now.at, from, bytes, &self.topology);
            }
            Input::Gtpu { from, bytes } => self.on_gtpu(now, from, bytes),
            Input::Radius {
                socket,
                from,
                bytes,
            } => self.aaa.handle(now.at, socket, from, bytes),
            Input::RadiusPorts(ports) => self.on_radius_ports(ports),
            Input::Durable(batch) => self.on_durable(now, batch),
            Input::Kept(number) => self.outbox.on_kept(number),
            Input::Note(note) => self.on_note(now, &note),
            Input::Look(outside) => self.look_at_alarms(now, outside),
            Input::Call { ticket, call } => self.on_call(now, ticket, call),
        }
        self.settle(now);
    }

    /// Lets time pass.
    pub fn on_timeout(&mut self, now: Now) {
        // first, while nothing waits to be handled that is about what goes
        if self.retirement.look_at.is_some_and(|at| at <= now.at) {
            self.look_at_retired(now);
        }
        while let Some(index) = self.wheel.pop(now.at) {
            self.on_session_timeout(now, index);
        }
        self.user_planes.on_timeout(now.at, &self.topology);
        self.aaa.on_timeout(now.at);
        self.end_drained(now);
        self.settle(now);
    }

    /// When [`ControlPlane::on_timeout`] wants to be called.
    pub fn poll_at(&self) -> Option<Duration> {
        let times = [
            self.wheel.next_at(),
            self.user_planes.poll_at(),
            self.aaa.poll_at(),
            self.retirement.look_at,
            self.drain_at(),
        ];
        times.into_iter().flatten().min()
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.records.is_empty() && self.outbox.is_empty() {
            return None;
        }
        if self.waiting_batches() >= MOST_BATCHES {
            self.hold_back();
            return None;
        }
        self.store_events();
        self.batch += 1;
        Some(Output::Store(std::mem::take(&mut self.records)))
    }

    /// How many sessions there are, in any stage.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes care of whatever the parts have to say, until none has anything more.
    fn settle(&mut self, now: Now) {
        loop {
            if let Some(event) = self.user_planes.poll(now.at, &self.topology) {
                self.on_user_plane_event(now, event);
            } else if let Some(event) = self.aaa.poll() {
                self.on_aaa_event(now, event);
            } else {
                break;
            }
        }
        self.watch_store(now);
    }

    fn on_user_plane_event(&mut self, now: Now, event: UserPlaneEvent) {
        match event {
            UserPlaneEvent::Transmit(to, bytes) => {
                self.outputs.push_back(Output::Pfcp { to, bytes })
            }
            UserPlaneEvent::Open(port) => self.on_port_open(now, port),
            UserPlaneEvent::Up { plane, lost } => self.on_user_plane_up(now, plane, lost),
            UserPlaneEvent::Down(plane, why) => self.on_user_plane_down(now, plane, why),
            UserPlaneEvent::Answer(request, message) => self.on_answer(now, request, message),
            UserPlaneEvent::Report { id, seid, message } => self.on_report(now, id, seid, message),
            UserPlaneEvent::EstablishedLate(plane, seid, up_seid) => {
                self.on_established_late(now, plane, seid, up_seid);
            }
        }
    }

    fn on_aaa_event(&mut self, now: Now, event: AaaEvent) {
        match event {
            AaaEvent::Transmit { socket, to, bytes } => {
                self.outputs.push_back(Output::Radius { socket, to, bytes });
            }
            AaaEvent::Answer(pending, outcome) => self.on_outcome(now, pending, outcome),
            AaaEvent::Accounted(token) => self.on_accounted(token),
        }
    }

    fn on_durable(&mut self, now: Now, batch: u64) {
        self.backlog.advance(now.at, batch);
        while self.waiting.front().is_some_and(|w| w.batch <= batch) {
            let Some(Waiting { what, .. }) = self.waiting.pop_front() else {
                return;
            };
            match what {
                Awaited::Family {
                    seid,
                    family,
                    asked,
                } => {
                    if let Some(index) = self.find(seid) {
                        self.on_family_durable(now, index, family, asked);
                    }
                }
                Awaited::Record(token) => self.deliver(now, token),
                Awaited::Block(number, block) => {
                    self.outputs.push_back(Output::History { number, block });
                }
                Awaited::Report { id, up_seid } => {
                    let cause = PfcpCause::REQUEST_ACCEPTED;
                    self.user_planes.acknowledge(id, up_seid, cause);
                }
            }
        }
    }

    /// The index of a session, if it still exists.
    fn find(&self, seid: Seid) -> Option<u32> {
        let entry = self.sessions.get(seid.index() as usize)?;
        (entry.seid == seid).then_some(seid.index())
    }

    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.sessions[index as usize]
    }

    /// Arms the one timer of a session.
    fn arm(&mut self, index: u32) {
        match self.sessions.get(index as usize).and_then(|e| e.wake_at()) {
            Some(at) => self.wheel.arm(index, at),
            None => self.wheel.cancel(index),
        }
    }
}

/// What cannot be served of a configuration, whatever subscribers have.
pub(crate) fn faults(
    start: &config::start::ControlPlane,
    configuration: &Configuration,
) -> Result<(), Vec<Fault>> {
    let mut faults = crate::topology::bounds(configuration);
    faults.extend(crate::aaa_clients::bounds(configuration));
    for (name, plane) in &configuration.user_planes {
        if start.address.towards(plane.address).is_none() {
            let family = if plane.address.is_ipv4() {
                "IPv4"
            } else {
                "IPv6"
            };
            faults.push(Fault {
                line: 0,
                path: ["user-planes", name, "address"].into_iter().collect(),
                message: format!(
                    "`{}` is an {family} address: expected one of ours of that family in `address` of the control plane's \
                     start file, too",
                    plane.address
                ),
            });
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults),
    }
}
