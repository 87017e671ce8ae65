//! The control plane as one sans-IO state machine: it takes inputs with a time and returns outputs.
//!
//! Each module below handles one part of a session's life, as methods of [`ControlPlane`].

mod account;
mod admit;
mod alarm;
mod announce;
mod apply;
mod audit;
mod back_off;
mod backlog;
mod bindings;
mod call;
mod change;
mod clear;
mod drain;
mod dynamic;
mod fallback;
mod filter;
mod find;
mod holdings;
mod ledger;
mod link;
mod names;
mod next_pools;
mod note;
mod offers;
mod overview;
mod pace;
mod persist;
mod profiles;
mod reauthorize;
mod release;
mod restore;
mod retire;
mod rivals;
mod rules;
mod subscribers;
mod tables;
mod takeover;
mod test_aaa;
mod tunnel;
mod users;

use crate::aaa_clients::{AaaClients, AaaEvent, PendingAuth};
use crate::accounting::AccountingQueue;
use crate::addresses::{Addresses, Sticky};
use crate::alarms::{Alarms, Condition};
use crate::back_offs::BackOffs;
use crate::counters::Counters;
use crate::entry::Entry;
use crate::evaluate::AaaAnswer;
use crate::fallback::LastAnswers;
use crate::filter_sets::FilterSets;
use crate::generations::Generations;
use crate::history::{Bounds, Outbox};
use crate::journal::{Awaited, Journal};
use crate::next_pools::AllNextPools;
use crate::radius_sockets::RadiusSockets;
use crate::session_ids::SessionIdAllocator;
use crate::sessions::SessionTable;
use crate::shared::Shared;
use crate::store::Record as StoreRecord;
use crate::subscribers::Subscribers;
use crate::teids::Teids;
use crate::topology::{Numbers, SegmentId, Seid, Topology, UserPlaneId};
use crate::trends::Trends;
use crate::user_planes::{UserPlaneEvent, UserPlanes};
use aaa::dictionary::Dictionary;
use aaa::{DynamicAuthorization, DynamicOutcome, Secret};
use change::Rollout;
pub use change::{Plan, Progress, ends};
use config::{Configuration, Fault};
use core::net::SocketAddr;
use core::time::Duration;
use dynamic::Searches;
use northbound::{Answer, Request as Call};
use pfcp::bng::ReleasedTunnels;
use policy::{ControlSettings, Treatment};
use profiles::{AccessProfiles, Gateway};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use session::{DhcpConfig, Duid};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use wire::pfcp::Cause as PfcpCause;

pub use crate::aaa_clients::MOST_VERIFICATIONS;
pub use crate::journal::MOST_BATCHES;
pub use crate::radius_sockets::{RadiusBinding, RadiusPorts, RadiusSocket};
pub use crate::radius_streams::{RadiusConnection, RadiusServer, RadiusServers, RadiusTls};
pub(crate) use alarm::severity;
pub(crate) use find::{Found, Lines};
pub use holdings::{Held, HeldStage, StoredSession};
pub use northbound::Effect;
pub use note::Note;
pub(crate) use note::history_bounds;
pub use persist::STORE_RECOVERY_KEY;
pub use restore::Restored;
pub(crate) use rivals::CameBy;

/// Point in time, on the monotonic clock for timers and on the wall clock for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time. Its origin stays the same within one boot of the machine (see [`Restored::read`]).
    pub at: Duration,
    /// Wall time in seconds since 1970.
    pub unix: u32,
}

/// Input of the control plane.
#[derive(Debug)]
pub enum Input<'a> {
    /// A PFCP datagram.
    Pfcp {
        /// Where it came from.
        from: SocketAddr,
        /// The datagram.
        bytes: &'a [u8],
    },
    /// How long a GTP-U datagram has waited for the control plane. The next ones have waited as long.
    Waited(Duration),
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
    /// A datagram of a RADIUS server that asks for a change of authorization or a disconnection.
    DynamicAuthorization {
        /// Where it came from.
        from: SocketAddr,
        /// The datagram.
        bytes: &'a [u8],
    },
    /// Packet that a RADIUS connection has received.
    RadiusPacket {
        /// The connection.
        connection: RadiusConnection,
        /// The packet.
        bytes: &'a [u8],
    },
    /// A RADIUS connection has ended, or could not be opened.
    RadiusClosed {
        /// The connection.
        connection: RadiusConnection,
        /// Why, for the operator.
        reason: &'a str,
    },
    /// Ports of the sockets that [`Output::RadiusSockets`] requested.
    RadiusPorts(RadiusPorts),
    /// The control plane is about to stop: servers of groups without sessions get Accounting-Off, as long as
    /// [`ControlPlane::is_leaving`].
    Leave,
    /// The store has synced every batch up to this number. Numbers start at 1.
    Durable(u64),
    /// The history has synced every block up to this number.
    Kept(u64),
    /// [`Output::VerifyPassword`] is done, or was given up after its deadline.
    PasswordVerified {
        /// The ticket of the output.
        ticket: u64,
        /// Whether the password has the hash.
        is_right: bool,
    },
    /// Event outside the control plane, for the history.
    Note(Note),
    /// Update the alarms, about once a second, with these conditions from outside the control plane.
    Look(Vec<Condition>),
    /// Call of the local API. Its answer has the same ticket.
    Call {
        /// Identifies the call.
        ticket: u64,
        /// Request of the call.
        call: Call,
    },
}

/// Output of the control plane. Outputs must be carried out in order.
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
    /// Open exactly these RADIUS sockets, by address family (`true` is IPv6) and number, each at its previous port if it had one. Then
    /// report their ports with [`Input::RadiusPorts`], and again when a socket that could not be opened is open.
    RadiusSockets(BTreeMap<(bool, u16), RadiusSocket>),
    /// Servers over TCP and TLS. It comes before the first packet to them, and settings of an open connection do not change.
    RadiusServers(RadiusServers),
    /// Send a packet on a RADIUS connection. It is opened first if it is not open, as [`Output::RadiusServers`] says.
    RadiusSend {
        /// The connection.
        connection: RadiusConnection,
        /// The packet.
        bytes: Vec<u8>,
    },
    /// Close a RADIUS connection, without a report of its end.
    RadiusClose(RadiusConnection),
    /// Send a RADIUS datagram from the socket of this number: see [`Output::RadiusSockets`].
    Radius {
        /// The socket's number.
        socket: u16,
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Listen for [`Input::DynamicAuthorization`] on this UDP port of the control plane's addresses, and on no other; `None`: on none.
    DynamicPort(Option<u16>),
    /// Send a datagram from the port of [`Output::DynamicPort`].
    DynamicAuthorization {
        /// Where to.
        to: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
    /// Sync these records as the next batch, then report it with [`Input::Durable`]. At most [`MOST_BATCHES`] are pending.
    Store(Vec<StoreRecord>),
    /// Add this block to the history, then report it with [`Input::Kept`].
    History {
        /// Number of the block. Numbers increase.
        number: u64,
        /// Its events.
        block: Vec<u8>,
    },
    /// Compare a password with a hash ([`config::password::verify`]) outside of the control plane's loop, then report it with
    /// [`Input::PasswordVerified`], also after the deadline. At most [`MOST_VERIFICATIONS`] are pending.
    VerifyPassword {
        /// Identifies the comparison.
        ticket: u64,
        /// Monotonic time after which nobody waits for the result.
        deadline: Duration,
        /// Hash of a local user's password.
        hash: Secret,
        /// Password that a subscriber sent.
        password: Secret,
    },
    /// Set the limits of the history.
    HistoryBounds(Bounds),
    /// Answer a call of the local API.
    Answer {
        /// The call's ticket.
        ticket: u64,
        /// The answer.
        answer: Answer,
    },
}

/// The control plane.
pub struct ControlPlane {
    start: config::start::ControlPlane,
    configuration: Arc<Configuration>,
    topology: Topology,
    access: AccessProfiles,
    sessions: SessionTable,
    subscribers: Subscribers,
    session_ids: BTreeMap<SegmentId, SessionIdAllocator>,
    /// PADOs that are delayed.
    offers: offers::Offers,
    /// PADRs that claim the place of a session.
    claims: rivals::Claims,
    /// Senders whose set-ups fail.
    back_offs: BackOffs,
    addresses: Addresses,
    /// What subscribers had whose sessions have ended.
    sticky: Sticky,
    /// Use of the pools in the last week.
    trends: Trends,
    user_planes: UserPlanes,
    aaa: AaaClients,
    /// Takes the requests of RADIUS servers.
    dynamic: DynamicAuthorization,
    /// UDP port on which they come.
    dynamic_port: Option<u16>,
    /// Last answers of RADIUS servers, for when none answers.
    last_answers: LastAnswers,
    /// Rules that subscribers have from RADIUS.
    filter_sets: FilterSets,
    /// AAA's answers, and the parts of policies that sessions have alike.
    answers: Shared<AaaAnswer>,
    control_settings: Shared<ControlSettings>,
    treatments: Shared<Treatment>,
    /// Names of the server groups of sessions.
    server_groups: Shared<str>,
    /// Changed pools that count from the subscribers' next connections on.
    next_pools: AllNextPools,
    /// Numbers as stored.
    numbers: Numbers,
    radius_sockets: RadiusSockets,
    /// Retired objects, which the configuration no longer contains.
    retirement: retire::Retirement,
    /// User planes that take no new sessions.
    drains: drain::Drains,
    /// Sessions that an administrator ends by a filter.
    clears: clear::Clears,
    /// Sessions whose policy is to be evaluated again.
    adjusting: VecDeque<Seid>,
    /// What a change of the configuration has left to do.
    rollout: Rollout,
    /// Requests of RADIUS servers whose sessions are looked for.
    searches: Searches,
    /// Records on their way to the store, and what waits for them.
    journal: Journal,
    /// Raised alarms.
    alarms: Alarms,
    /// Events that the history does not have yet.
    outbox: Outbox,
    /// Accounting records that no server has acknowledged yet.
    accounting: AccountingQueue,
    /// Server groups of this run, which have got their Accounting-On if they get one.
    served_groups: BTreeSet<Arc<str>>,
    /// Tunnels of sessions that have ended.
    teids: Teids,
    released_tunnels: ReleasedTunnels,
    /// Running PFCP audits, by user plane.
    audits: BTreeMap<UserPlaneId, audit::Audit>,
    /// Resource audit that waits for PFCP audits.
    check: Option<Box<ledger::Check>>,
    /// Calls that list sessions and wait for the sessions' counters.
    listings: HashMap<u64, call::Listing>,
    generations: Generations,
    /// Identifies the machine's current boot.
    boot: u32,
    random: StdRng,
    counters: Counters,
    outputs: VecDeque<Output>,
}

impl ControlPlane {
    /// Creates a control plane from the restored state. `dictionary` has the RADIUS attributes that mappings may name. `seed` comes from
    /// the system's random number generator.
    ///
    /// # Errors
    /// Faults of the configuration.
    pub fn new(
        start: &config::start::ControlPlane,
        dictionary: Arc<Dictionary>,
        configuration: Arc<Configuration>,
        mut restored: Restored,
        seed: [u8; 32],
        now: Now,
    ) -> Result<Self, Vec<Fault>> {
        faults(start, &dictionary, &configuration)?;
        let mut topology = Topology::new(&configuration, restored.take_numbers());
        restored.find_places(&mut topology);
        topology.forget_kept();
        let mut random = StdRng::from_seed(seed);
        let mut keys = [[0u8; 32]; 4];
        keys.iter_mut().for_each(|key| random.fill_bytes(key));
        let alarms = restored.take_alarms();
        let (outbox, blocks) = restored.take_outbox();
        let (stamp, sequence) = (restored.recovery_time_stamp, random.next_u32());
        let teids = restored.teids(keys[3], now);
        let user_planes = UserPlanes::new(start, (stamp, sequence), teids.clone(), now);
        let gateway = Gateway {
            cookie_key: keys[0],
            dhcp: DhcpConfig {
                duid: Duid::of_gateway(&start.node_id),
                reconfigure_key: restored.reconfigure_key(keys[2]),
                epoch: Duration::from_secs(now.unix.into()).saturating_sub(now.at),
                ..DhcpConfig::default()
            },
        };
        let mut plane = ControlPlane {
            access: AccessProfiles::new(&configuration, gateway),
            addresses: Addresses::new(&configuration, &topology)?,
            aaa: AaaClients::new(start, dictionary, keys[1]),
            last_answers: LastAnswers::resume(restored.take_last_answers()),
            filter_sets: FilterSets::default(),
            answers: Shared::default(),
            control_settings: Shared::default(),
            treatments: Shared::default(),
            server_groups: Shared::default(),
            next_pools: AllNextPools::resume(restored.take_next_pools()),
            sticky: Sticky::default(),
            trends: Trends::resume(restored.take_trends()),
            dynamic: DynamicAuthorization::default(),
            dynamic_port: None,
            session_ids: BTreeMap::new(),
            offers: offers::Offers::default(),
            claims: rivals::Claims::default(),
            back_offs: BackOffs::default(),
            sessions: SessionTable::new(),
            subscribers: Subscribers::default(),
            user_planes,
            numbers: restored.numbers().clone(),
            radius_sockets: RadiusSockets::new(restored.radius_ports().clone()),
            retirement: retire::Retirement::default(),
            drains: drain::Drains::new(),
            clears: clear::Clears::default(),
            adjusting: VecDeque::new(),
            rollout: Rollout::default(),
            searches: Searches::default(),
            journal: Journal::new(restored.first_records()),
            alarms,
            outbox,
            accounting: AccountingQueue::default(),
            served_groups: BTreeSet::new(),
            teids,
            released_tunnels: ReleasedTunnels::default(),
            audits: BTreeMap::new(),
            check: None,
            listings: HashMap::new(),
            generations: Generations::after(restored.highest_generation(now)),
            boot: restored.boot,
            random,
            counters: Counters::default(),
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

    /// Handles an input.
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        match input {
            Input::Pfcp { from, bytes } => {
                self.user_planes
                    .datagram(now.at, from, bytes, &self.topology);
            }
            Input::Waited(waited) => self.note_wait(now, waited),
            Input::Gtpu { from, bytes } => self.on_gtpu(now, from, bytes),
            Input::Radius {
                socket,
                from,
                bytes,
            } => self.aaa.handle(now.at, socket, from, bytes),
            Input::RadiusPacket { connection, bytes } => {
                self.aaa.receive(now.at, connection, bytes);
            }
            Input::RadiusClosed { connection, reason } => {
                self.aaa.on_closed(now.at, connection, reason);
            }
            Input::DynamicAuthorization { from, bytes } => self.on_dynamic(now, from, bytes),
            Input::RadiusPorts(ports) => self.radius_sockets.on_open(ports, &mut self.journal),
            Input::Leave => self.announce_end(now),
            Input::Durable(batch) => self.on_durable(now, batch),
            Input::Kept(number) => self.outbox.on_kept(number),
            Input::PasswordVerified { ticket, is_right } => self.aaa.verified(ticket, is_right),
            Input::Note(note) => self.on_note(now, &note),
            Input::Look(outside) => {
                self.look_at_alarms(now, outside);
                self.expire_answers(now);
            }
            Input::Call { ticket, call } => self.on_call(now, ticket, call),
        }
        self.settle(now);
    }

    /// Lets time pass.
    pub fn on_timeout(&mut self, now: Now) {
        // first, while no pending event refers to a retired object
        if self.retirement.look_at.is_some_and(|at| at <= now.at) {
            self.look_at_retired(now);
        }
        while let Some(index) = self.sessions.pop_due(now.at) {
            self.on_session_timeout(now, index);
        }
        self.decide_claims(now);
        self.send_offers(now);
        if self.rollout_at().is_some_and(|at| at <= now.at) {
            self.roll_out_more(now);
        }
        if self.search_at().is_some_and(|at| at <= now.at) {
            self.search_more(now);
        }
        self.user_planes.on_timeout(now.at, &self.topology);
        self.aaa.on_timeout(now.at);
        self.end_drained(now);
        self.end_cleared(now);
        self.settle(now);
    }

    /// Time at which [`ControlPlane::on_timeout`] must be called.
    pub fn poll_at(&self) -> Option<Duration> {
        let times = [
            self.sessions.next_at(),
            self.user_planes.poll_at(),
            self.aaa.poll_at(),
            self.retirement.look_at,
            self.drain_at(),
            self.clears.next_at(),
            self.claim_at(),
            self.offer_at(),
            self.rollout_at(),
            self.search_at(),
        ];
        times.into_iter().flatten().min()
    }

    /// Next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.journal.is_empty() && self.outbox.is_empty() {
            return None;
        }
        if self.journal.is_full() {
            self.hold_back();
            return None;
        }
        self.store_events();
        Some(Output::Store(self.journal.take_batch()))
    }

    /// Number of sessions in any stage.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Counters of rejected, dropped and lost items.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Handles the events of user planes and AAA clients until none is left.
    fn settle(&mut self, now: Now) {
        loop {
            if let Some(event) = self.user_planes.poll(now.at, &self.topology) {
                self.on_user_plane_event(now, event);
            } else if let Some(event) = self.aaa.poll(now.at) {
                self.on_aaa_event(now, event);
            } else {
                break;
            }
        }
        self.journal.watch(now.at);
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
            AaaEvent::Send { connection, bytes } => {
                self.outputs
                    .push_back(Output::RadiusSend { connection, bytes });
            }
            AaaEvent::Close(connection) => {
                self.outputs.push_back(Output::RadiusClose(connection));
            }
            AaaEvent::Answer(PendingAuth::Session { seid, attempt }, by, outcome) => {
                self.on_outcome(now, (seid, attempt), by, outcome);
            }
            AaaEvent::Answer(PendingAuth::Authorization { seid, number }, by, outcome) => {
                self.on_authorization(now, (seid, number), by, outcome);
            }
            AaaEvent::Answer(
                PendingAuth::Call {
                    ticket,
                    access_profile,
                },
                by,
                outcome,
            ) => self.on_tested(ticket, &access_profile, by, outcome),
            AaaEvent::Accounted(token) => {
                self.on_accounted(now, token);
            }
            AaaEvent::Verify {
                ticket,
                deadline,
                hash,
                password,
            } => self.outputs.push_back(Output::VerifyPassword {
                ticket,
                deadline,
                hash,
                password,
            }),
        }
    }

    fn on_durable(&mut self, now: Now, batch: u64) {
        self.journal.on_durable(now.at, batch);
        while let Some(what) = self.journal.next_durable() {
            match what {
                Awaited::Family {
                    seid,
                    family,
                    asked,
                } => {
                    if let Some(index) = self.sessions.find(seid) {
                        self.on_family_durable(now, index, family, asked);
                    }
                }
                Awaited::Record(token) => self.accounting.deliver(now.at, token, &mut self.aaa),
                Awaited::Block(number, block) => {
                    self.outputs.push_back(Output::History { number, block });
                }
                Awaited::Answer(key) => self.answer_server(key, DynamicOutcome::Done),
                Awaited::Report { id, up_seid } => {
                    let cause = PfcpCause::REQUEST_ACCEPTED;
                    self.user_planes.acknowledge(id, up_seid, cause);
                }
            }
        }
    }

    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.sessions[index]
    }
}

/// What cannot be served of a configuration, whatever subscribers have.
pub(crate) fn faults(
    start: &config::start::ControlPlane,
    dictionary: &Arc<Dictionary>,
    configuration: &Configuration,
) -> Result<(), Vec<Fault>> {
    let mut faults = crate::topology::bounds(configuration);
    faults.extend(crate::aaa_clients::bounds(configuration));
    let mappings = crate::mappings::mappings(dictionary, configuration);
    faults.extend(mappings.err().into_iter().flatten());
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
