//! I/O of the control plane: sockets, disk, clocks and signals around [`ControlPlane`].

mod dynamic;
mod leave;
mod passwords;
mod past;
mod radius;
mod streams;
mod tls;

use crate::alarms::Condition;
use crate::configuration::{Keeper, SetLevel, ToPlane, adopt};
use crate::figures;
use crate::history::{HistoryQueries, HistoryThread, Kind};
use crate::live::Live;
use crate::management::Management;
use crate::plane::{ControlPlane, Input, MOST_BATCHES, Now, Output, RadiusConnection, Restored};
use crate::relay::Relay;
use crate::store::{Acknowledgement, Store, StoreThread};
use crate::trace::{Datagram, Traces, Way};
use crate::user_planes::PFCP_PORT;
use crate::waits::Waits;
use aaa::Role;
use aaa::dictionary::Dictionary;
use config::history::History;
use config::transactions::{Author, Transactions};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use dynamic::Dynamic;
use nix::sys::socket::{setsockopt, sockopt};
use northbound::{Answer, Request, Session, UserPlaneTable, WatchStateResponse};
use passwords::{Job, PasswordThreads};
use past::open_history;
use radius::Radius;
use rand::TryRngCore;
use rand::rngs::OsRng;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use streams::{StreamEvent, Streams};
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;
use udp::{Batch, Bundles, Receiver, Split};
use wire::gtpu;

/// Receive buffer for datagrams that arrive while the loop is busy, in octets.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Datagrams taken from one socket before the others get their turn; it may be a few more.
const PORTION: usize = 64;
/// Maximum number of RADIUS packets that wait for the loop.
const RADIUS_QUEUE: usize = 1024;
/// Interval of the check for faults.
const LOOK: Duration = Duration::from_secs(1);
/// Time for the last events to get into the history when the control plane stops.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// Seconds between 1900 (NTP, PFCP) and 1970.
const NTP_OFFSET: u32 = 2_208_988_800;

/// Serves until the process is asked to end (SIGTERM, SIGINT). `dictionary` has the RADIUS attributes that mappings may name.
///
/// # Errors
/// Message for the operator: what cannot be opened or read, and why. Nothing keeps running then.
pub fn run(
    start: config::start::ControlPlane,
    dictionary: Arc<Dictionary>,
    initial: Option<config::Checked>,
    set_level: SetLevel,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("cannot start the event loop: {error}"))?;
    runtime.block_on(async {
        Edge::open(start, dictionary, initial, set_level)?
            .serve()
            .await
    })
}

/// Opens the stored versions of the configuration. If there are none, `initial` becomes the first.
fn open_configuration(
    start: &config::start::ControlPlane,
    initial: Option<config::Checked>,
) -> Result<Transactions, String> {
    let history = History::open(&start.configuration());
    let mut transactions = Transactions::new(history.map_err(|error| error.to_string())?);
    if let Some(initial) = initial.filter(|_| transactions.version() == 0) {
        let author = Author {
            name: "sluice-cp".into(),
            lock: None,
            at: unix_time().into(),
        };
        let first = transactions.commit(initial, &author, "as it began", None);
        first.map_err(|error| format!("the initial configuration cannot be kept: {error}"))?;
    }
    Ok(transactions)
}

/// Monotonic time since the machine's start. It continues after a restart of the process.
struct Clock {
    start: Instant,
    /// The time at `start`.
    uptime: Duration,
}

impl Clock {
    fn start() -> Self {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let seconds = uptime.split(' ').next().and_then(|s| s.parse().ok());
        let uptime = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        Clock {
            start: Instant::now(),
            uptime: uptime.unwrap_or_default(),
        }
    }

    fn now(&self) -> Now {
        Now {
            at: self.uptime + self.start.elapsed(),
            unix: unix_time(),
        }
    }

    fn instant(&self, at: Duration) -> Instant {
        self.start + at.saturating_sub(self.uptime)
    }
}

/// Identifies the machine's current boot. If the system does not provide an id, each run of this process counts as a boot.
fn boot_id(random: &[u8]) -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_else(|_| random.escape_ascii().to_string())
}

/// Time since a time of the wall clock.
fn since(at: Duration) -> Duration {
    let at = UNIX_EPOCH.checked_add(at);
    let since = at.and_then(|at| SystemTime::now().duration_since(at).ok());
    since.unwrap_or_default() // the clock was set back
}

fn unix_time() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs() as u32)
}

/// Status of the store's thread.
#[derive(Default)]
struct Durable {
    /// Batches up to this one are on the disk.
    batch: u64,
    /// Why nothing can be written at present.
    failing: Option<String>,
}

impl Durable {
    fn take(&mut self, done: Acknowledgement) {
        match done {
            Ok(batch) => {
                self.batch = batch;
                if self.failing.take().is_some() {
                    tracing::info!("writing the store works again");
                }
            }
            Err(error) => {
                let failing = self.failing.replace(error.to_string());
                if failing.is_none() {
                    tracing::error!(%error, "cannot write the store: no new session comes online, everything else \
                        continues. Free or replace the disk");
                }
            }
        }
    }
}

struct Edge {
    plane: ControlPlane,
    /// Requests of the configuration task.
    asks: mpsc::Receiver<ToPlane>,
    clock: Clock,
    pfcp: Sockets,
    gtpu: Sockets,
    radius: Radius,
    streams: Streams,
    dynamic: Dynamic,
    store: StoreThread,
    durable: watch::Receiver<Durable>,
    history: HistoryThread,
    /// Last block on the history's disk.
    kept: watch::Receiver<u64>,
    passwords: PasswordThreads,
    /// Faults known to the configuration task.
    wrong: watch::Receiver<Vec<Condition>>,
    /// Submission times of the batches that are not on the disk yet.
    writing: VecDeque<Instant>,
    /// Number of batches on the disk.
    batches: u64,
    calls: mpsc::Receiver<northbound::Call>,
    /// Relays requests that only user planes can answer.
    relay: Relay,
    answers: HashMap<u64, oneshot::Sender<northbound::Answer>>,
    next_ticket: u64,
    /// Subscribers that are traced.
    traces: Traces,
    /// How long frames of subscribers waited.
    waits: Waits,
}

impl Edge {
    fn open(
        start: config::start::ControlPlane,
        dictionary: Arc<Dictionary>,
        initial: Option<config::Checked>,
        set_level: SetLevel,
    ) -> Result<Self, String> {
        let transactions = open_configuration(&start, initial)?;
        let pfcp = Sockets::bind(start.address, PFCP_PORT, Protocols::Pfcp)?;
        let gtpu = Sockets::bind(start.address, gtpu::PORT, Protocols::Gtpu)?;
        let mut seed = [0; 32];
        OsRng
            .try_fill_bytes(&mut seed)
            .map_err(|error| format!("no randomness from the system: {error}"))?;
        let clock = Clock::start();
        let (store, restored) = open_store(&start, &boot_id(&seed))?;
        let (history, kept, last_block) = open_history(&start, &transactions)?;
        let alarms = history.reader().alarms();
        let restored = restored.behind_history(last_block).with_alarms(alarms);
        let (calls_in, calls) = mpsc::channel(64);
        let api = start.api_socket.clone();
        let count = restored.session_count();
        let configuration = transactions.current().configuration.clone();
        let now = clock.now();
        let plane = ControlPlane::new(&start, dictionary, configuration, restored, seed, now);
        let plane = plane.map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            faults.join("\n")
        })?;
        let (acknowledge, durable) = watch::channel(Durable::default());
        let store = StoreThread::start(store, MOST_BATCHES as usize, move |done| {
            acknowledge.send_modify(|durable| durable.take(done));
        });
        let (configuration_in, configuration_calls) = mpsc::channel(64);
        let (live_in, live_calls) = mpsc::channel(64);
        let (history_in, history_calls) = mpsc::channel(64);
        let queries =
            HistoryQueries::new(history.reader(), kept.clone(), calls_in.clone(), unix_time);
        tokio::spawn(queries.run(history_calls));
        let watch = live_in.clone();
        let served = northbound::serve(&api, calls_in, configuration_in, live_in, history_in);
        tokio::spawn(served.map_err(|error| format!("local API at {}: {error}", api.display()))?);
        tracing::info!(sessions = count, api = %api.display(), "control plane is ready");
        if let Err(error) = northbound::supervisor::notify("READY=1") {
            tracing::warn!(%error, "cannot notify the supervisor that the control plane is ready");
        }
        let (to_plane, asks) = mpsc::channel(1);
        let (tells_wrong, wrong) = watch::channel(Vec::new());
        let management = Management::new(start.management.clone(), to_plane.clone());
        let relay = Relay::new(management.standings());
        let live = Live::new(to_plane.clone(), management.standings(), live_calls);
        tokio::spawn(live.run());
        tokio::spawn(figures::run(watch, to_plane.clone(), unix_time));
        let keeper = Keeper::new(
            transactions,
            management,
            set_level,
            to_plane,
            configuration_calls,
            tells_wrong,
        );
        tokio::spawn(keeper.run());
        Ok(Edge {
            plane,
            asks,
            clock,
            pfcp,
            gtpu,
            radius: Radius::new(),
            streams: Streams::new(),
            dynamic: Dynamic::new(start.address),
            store: store.map_err(|error| format!("cannot start the store's thread: {error}"))?,
            durable,
            history,
            kept,
            passwords: PasswordThreads::start()
                .map_err(|error| format!("cannot start the threads for passwords: {error}"))?,
            wrong,
            writing: VecDeque::new(),
            batches: 0,
            calls,
            relay,
            answers: HashMap::new(),
            next_ticket: 0,
            traces: Traces::default(),
            waits: Waits::default(),
        })
    }

    async fn serve(mut self) -> Result<(), String> {
        let ends =
            |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
        let mut terminate = ends(SignalKind::terminate())?;
        let mut interrupt = ends(SignalKind::interrupt())?;
        let mut received = Receiver::default();
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.note(
            Kind::Started,
            concat!("sluice-cp ", env!("CARGO_PKG_VERSION")),
        );
        loop {
            self.carry_out().await?;
            let wake = self.plane.poll_at().map(|at| self.clock.instant(at));
            tokio::select! {
                ready = self.pfcp.readable() => {
                    ready.map_err(|error| format!("PFCP socket: {error}"))?;
                    self.receive(&mut received, Protocols::Pfcp);
                }
                ready = self.gtpu.readable() => {
                    ready.map_err(|error| format!("GTP-U socket: {error}"))?;
                    self.receive(&mut received, Protocols::Gtpu);
                }
                Some((socket, replies)) = self.radius.replies.recv() => self.on_replies(socket, &replies),
                Some((connection, event)) = self.streams.next() => self.on_stream(connection, event),
                Some((from, bytes)) = self.dynamic.requests.recv() => {
                    let input = Input::DynamicAuthorization { from, bytes: &bytes };
                    self.plane.handle(self.clock.now(), input);
                }
                Ok(()) = self.durable.changed() => self.on_durable(),
                Ok(()) = self.kept.changed() => self.on_kept(),
                Some((ticket, is_right)) = self.passwords.done.recv() => {
                    let input = Input::PasswordVerified { ticket, is_right };
                    self.plane.handle(self.clock.now(), input);
                }
                _ = looks.tick() => self.look(),
                Some(call) = self.calls.recv() => self.on_call(call),
                Some(ask) = self.asks.recv() => self.on_ask(ask),
                () = sleep_until(wake) => self.plane.on_timeout(self.clock.now()),
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        self.leave().await?;
        self.note(
            Kind::Stopped,
            "sessions stay on the user planes and in the store",
        );
        let settled = tokio::time::timeout(LAST_EVENTS, self.settle_history()).await;
        settled.unwrap_or(Ok(()))?;
        tracing::info!("control plane stops; sessions stay on the user planes and in the store");
        Ok(())
    }

    /// Takes received datagrams, up to a portion from each socket, so that no socket starves the others.
    fn receive(&mut self, received: &mut Receiver, protocol: Protocols) {
        let now = self.clock.now();
        let sockets = match protocol {
            Protocols::Pfcp => &self.pfcp,
            Protocols::Gtpu => &self.gtpu,
        };
        let split = protocol.split();
        let mut waited = Duration::ZERO;
        for socket in sockets.iter() {
            let (mut taken, mut late) = (0, Duration::ZERO);
            while taken < PORTION {
                // An error is an ICMP message about an earlier datagram. Its protocol notices that by itself.
                let Ok(datagrams) = received.try_recv(socket) else {
                    late = Duration::ZERO;
                    break;
                };
                let from = datagrams.from;
                if let Some(waited) = datagrams.came.map(since) {
                    self.waits.add(now.at, waited);
                    late = waited;
                }
                for bytes in datagrams.flat_map(|octets| udp::messages(octets, split)) {
                    if !self.traces.is_empty() {
                        let own = sockets.own(from);
                        let datagram = Datagram {
                            way: Way::In,
                            own,
                            peer: from,
                            bytes,
                        };
                        match protocol {
                            Protocols::Pfcp => self.traces.pfcp(&self.plane, datagram),
                            Protocols::Gtpu => self.traces.gtpu(&self.plane, datagram),
                        }
                    }
                    let input = match protocol {
                        Protocols::Pfcp => Input::Pfcp { from, bytes },
                        Protocols::Gtpu => Input::Gtpu { from, bytes },
                    };
                    self.plane.handle(now, input);
                    taken += 1;
                }
            }
            waited = waited.max(late);
        }
        if let Protocols::Gtpu = protocol {
            self.plane.handle(now, Input::Waited(waited));
        }
    }

    /// Takes datagrams that a RADIUS socket has received.
    fn on_replies(&mut self, socket: u16, replies: &[(SocketAddr, Vec<u8>)]) {
        let now = self.clock.now();
        for &(from, ref bytes) in replies {
            if !self.traces.is_empty() {
                let own = self.radius.own(socket, from);
                let datagram = Datagram {
                    way: Way::In,
                    own,
                    peer: from,
                    bytes,
                };
                self.traces.radius(&self.plane, socket, datagram);
            }
            self.plane.handle(
                now,
                Input::Radius {
                    socket,
                    from,
                    bytes,
                },
            );
        }
    }

    fn on_stream(&mut self, connection: RadiusConnection, event: StreamEvent) {
        let now = self.clock.now();
        match event {
            StreamEvent::Packet(bytes) => {
                if !self.traces.is_empty() {
                    let datagram = stream_datagram(Way::In, connection, &bytes);
                    (self.traces).radius(&self.plane, trace_number(connection), datagram);
                }
                let bytes = &bytes;
                self.plane
                    .handle(now, Input::RadiusPacket { connection, bytes });
            }
            StreamEvent::Closed(reason) => {
                let reason = &reason;
                self.plane
                    .handle(now, Input::RadiusClosed { connection, reason });
            }
        }
    }

    fn on_durable(&mut self) {
        let batch = self.durable.borrow_and_update().batch;
        if batch > self.batches {
            self.durable_batches(batch);
            self.plane.handle(self.clock.now(), Input::Durable(batch));
        }
    }

    fn on_call(&mut self, (call, reply): northbound::Call) {
        let call = match call {
            Request::UserPlane { name, table } => return self.relay.ask(name, table, reply),
            Request::GetSessionPolicy { id } => {
                let question = |session| UserPlaneTable::SessionPolicy { session };
                return self.ask_about_session(&id, question, reply);
            }
            Request::WatchRules { id, seconds } => {
                let question = |session| UserPlaneTable::WatchRules { session, seconds };
                return self.ask_about_session(&id, question, reply);
            }
            call => call,
        };
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.answers.retain(|_, waiting| !waiting.is_closed());
        self.answers.insert(ticket, reply);
        self.plane
            .handle(self.clock.now(), Input::Call { ticket, call });
    }

    /// Asks the user plane of a session something about it.
    fn ask_about_session(
        &mut self,
        id: &str,
        question: impl FnOnce(Box<Session>) -> UserPlaneTable,
        reply: oneshot::Sender<Answer>,
    ) {
        match self.plane.session_now(self.clock.now(), id) {
            Ok(session) => {
                let name = session.user_plane.clone();
                self.relay.ask(name, question(session.into()), reply);
            }
            // whoever asked may have gone
            Err(refusal) => drop(reply.send(Err(refusal))),
        }
    }

    fn on_ask(&mut self, ask: ToPlane) {
        let now = self.clock.now();
        // The configuration task outlives its requests.
        match ask {
            ToPlane::BeginPlan(configuration, reply) => {
                let _ = reply.send(self.plane.begin_plan(configuration));
            }
            ToPlane::PlanMore(plan, reply) => {
                let _ = reply.send(self.plane.plan_more(now, plan));
            }
            ToPlane::Adopt(adoption, reply) => {
                let _ = reply.send(adopt(now, &mut self.plane, adoption));
            }
            ToPlane::Note(note) => self.plane.handle(now, Input::Note(note)),
            ToPlane::Told(user_plane) => self.plane.user_plane_was_told(now, &user_plane),
            ToPlane::IsRetiring(reply) => {
                let _ = reply.send(self.plane.is_retiring());
            }
            ToPlane::Lines(subject, from, reply) => {
                let _ = reply.send(self.plane.lines_of(&subject, from));
            }
            ToPlane::Trace(subject, reader, reply) => {
                let begun = self.traces.begin(&self.plane, subject, reader);
                let _ = reply.send(begun);
            }
            ToPlane::Figures(sample) => self.history.submit_figures(sample),
            ToPlane::Overview(reply) => {
                let _ = reply.send(WatchStateResponse {
                    waits: Some(self.waits.told(now.at)),
                    ..self.plane.overview(now.at)
                });
            }
        }
    }

    /// Shows an output to the traces of its subscriber.
    fn trace(&mut self, output: &Output) {
        let out = |own, to: &SocketAddr, bytes| Datagram {
            way: Way::Out,
            own,
            peer: *to,
            bytes,
        };
        match output {
            Output::Pfcp { to, bytes } => {
                let datagram = out(self.pfcp.own(*to), to, bytes);
                self.traces.pfcp(&self.plane, datagram);
            }
            Output::Gtpu { to, bytes } => {
                let datagram = out(self.gtpu.own(*to), to, bytes);
                self.traces.gtpu(&self.plane, datagram);
            }
            Output::Radius { socket, to, bytes } => {
                let datagram = out(self.radius.own(*socket, *to), to, bytes);
                self.traces.radius(&self.plane, *socket, datagram);
            }
            Output::RadiusSend { connection, bytes } => {
                let datagram = stream_datagram(Way::Out, *connection, bytes);
                (self.traces).radius(&self.plane, trace_number(*connection), datagram);
            }
            _ => {}
        }
    }

    async fn carry_out(&mut self) -> Result<(), String> {
        while let Some(output) = self.plane.poll_output() {
            if !self.traces.is_empty() {
                self.trace(&output);
            }
            match output {
                Output::Pfcp { to, bytes } => {
                    let joins = self.plane.bundles_messages(to.ip());
                    if let Some(full) = self.pfcp.add(to, bytes, joins) {
                        self.gtpu.flush().await;
                        self.pfcp.send(full).await;
                    }
                }
                Output::Gtpu { to, bytes } => {
                    let joins = self.plane.bundles_frames(to.ip());
                    if let Some(full) = self.gtpu.add(to, bytes, joins) {
                        self.gtpu.send(full).await;
                    }
                }
                Output::RadiusSockets(wanted) => {
                    let ports = self.radius.follow(wanted);
                    self.plane
                        .handle(self.clock.now(), Input::RadiusPorts(ports));
                }
                Output::Radius { socket, to, bytes } => self.radius.send(socket, to, &bytes).await,
                Output::RadiusServers(servers) => self.streams.follow(servers),
                Output::RadiusSend { connection, bytes } => {
                    if let Some(reason) = self.streams.send(connection, bytes) {
                        self.on_stream(connection, StreamEvent::Closed(reason));
                    }
                }
                Output::RadiusClose(connection) => self.streams.close(connection),
                Output::DynamicPort(port) => self.dynamic.listen(port),
                Output::DynamicAuthorization { to, bytes } => self.dynamic.send(to, &bytes).await,
                Output::Store(records) => {
                    self.writing.push_back(Instant::now());
                    // This does not block: the control plane never wants more batches than the queue has room for.
                    let submitted = self.store.submit(records);
                    submitted.map_err(|error| error.to_string())?;
                }
                Output::History { number, block } => self.history.submit(number, block),
                Output::HistoryBounds(bounds) => self.history.set_bounds(bounds),
                Output::VerifyPassword {
                    ticket,
                    deadline,
                    hash,
                    password,
                } => self.passwords.verify(Job {
                    ticket,
                    deadline: self.clock.instant(deadline),
                    hash,
                    password,
                }),
                Output::Answer { ticket, answer } => {
                    if let Some(reply) = self.answers.remove(&ticket) {
                        let _ = reply.send(answer); // whoever asked may have gone
                    }
                }
            }
        }
        // A session's last packets go before the request that deletes it.
        self.gtpu.flush().await;
        self.pfcp.flush().await;
        Ok(())
    }
}

/// Packet on a RADIUS connection, for traces. Our end of the connection is not known before it is open.
fn stream_datagram(way: Way, on: RadiusConnection, bytes: &[u8]) -> Datagram<'_> {
    let peer = on.connection.server;
    let own = unknown(peer, 0);
    Datagram {
        way,
        own,
        peer,
        bytes,
    }
}

/// Number by which traces know a RADIUS connection. UDP sockets have lower ones.
fn trace_number(RadiusConnection { connection, .. }: RadiusConnection) -> u16 {
    let role = u16::from(connection.role == Role::Accounting) << 14;
    1 << 15 | role | connection.number
}

/// Protocol between the planes.
#[derive(Clone, Copy, Debug)]
enum Protocols {
    Pfcp,
    Gtpu,
}

impl Protocols {
    /// Divides a datagram into its first message and the rest.
    fn split(self) -> Split {
        match self {
            Protocols::Pfcp => wire::pfcp::split,
            Protocols::Gtpu => gtpu::split,
        }
    }

    /// Marks a message that another one follows in the same datagram.
    fn mark(self) -> fn(&mut [u8]) {
        match self {
            Protocols::Pfcp => wire::pfcp::mark_followed,
            Protocols::Gtpu => |_| {},
        }
    }
}

/// Datagram, and where it goes.
type Whole = (SocketAddr, Vec<u8>);

/// UDP port on our address of each family.
struct Sockets {
    ipv4: Option<UdpSocket>,
    ipv6: Option<UdpSocket>,
    /// Messages that are sent together.
    bundles: Bundles,
    /// Datagrams that are sent together.
    sending: Batch,
}

impl Sockets {
    fn bind(addresses: config::Addresses, port: u16, protocol: Protocols) -> Result<Self, String> {
        let of_family = |ipv4| {
            let mut own = addresses.iter().filter(|own| own.is_ipv4() == ipv4);
            let socket = own.next().map(|own| bind(own, port)).transpose()?;
            if let Some(socket) = &socket {
                udp::receive_batches(socket);
                if let Protocols::Gtpu = protocol {
                    udp::receive_times(socket);
                }
            }
            Ok::<_, String>(socket)
        };
        Ok(Sockets {
            ipv4: of_family(true)?,
            ipv6: of_family(false)?,
            bundles: Bundles::new(protocol.mark()),
            sending: Batch::default(),
        })
    }

    /// Our address and port towards a peer.
    fn own(&self, peer: SocketAddr) -> SocketAddr {
        let socket = match peer.is_ipv4() {
            true => &self.ipv4,
            false => &self.ipv6,
        };
        let own = socket.as_ref().and_then(|socket| socket.local_addr().ok());
        own.unwrap_or_else(|| unknown(peer, 0))
    }

    fn iter(&self) -> impl Iterator<Item = &UdpSocket> {
        self.ipv4.iter().chain(&self.ipv6)
    }

    /// Waits until one of the sockets has a datagram.
    async fn readable(&self) -> io::Result<()> {
        tokio::select! {
            ready = readable(self.ipv4.as_ref()) => ready,
            ready = readable(self.ipv6.as_ref()) => ready,
        }
    }

    /// Adds a message, which is sent at the latest with [`Sockets::flush`]. Returns the datagram that must be sent now.
    fn add(&mut self, to: SocketAddr, message: Vec<u8>, joins: bool) -> Option<Whole> {
        self.bundles.push(to, message, joins)
    }

    /// Sends a datagram together with the following ones, at the latest with [`Sockets::flush`].
    async fn send(&mut self, (to, bytes): Whole) {
        if !self.sending.push(to, &bytes) {
            self.send_batch().await;
            self.sending.push(to, &bytes);
        }
    }

    async fn flush(&mut self) {
        while let Some(datagram) = self.bundles.pop() {
            self.send(datagram).await;
        }
        self.send_batch().await;
    }

    async fn send_batch(&mut self) {
        let Some(to) = self.sending.to() else {
            return;
        };
        let socket = match to.is_ipv4() {
            true => &self.ipv4,
            false => &self.ipv6,
        };
        // The configuration is rejected if a user plane has no socket of its family.
        if let Some(socket) = socket {
            let lost = self.sending.send(socket).await;
            if lost > 0 {
                tracing::debug!(%to, lost, "datagrams were not sent; their protocol repeats them");
            }
        }
    }
}

/// Our end towards a peer when only the port is known.
fn unknown(peer: SocketAddr, port: u16) -> SocketAddr {
    match peer.is_ipv4() {
        true => SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), port),
        false => SocketAddr::new(core::net::Ipv6Addr::UNSPECIFIED.into(), port),
    }
}

async fn readable(socket: Option<&UdpSocket>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}

async fn send(socket: &UdpSocket, to: SocketAddr, bytes: &[u8]) {
    if let Err(error) = socket.send_to(bytes, to).await {
        tracing::debug!(%to, %error, "datagram was not sent; its protocol repeats it");
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn bind(address: IpAddr, port: u16) -> Result<UdpSocket, String> {
    let to = SocketAddr::new(address, port);
    bind_in(to, None).map_err(|error| {
        format!("cannot bind UDP {to}: {error}. Is the address this machine's, and free?")
    })
}

/// Binds a UDP socket in the routing table of a VRF device, or in the main one.
fn bind_in(to: SocketAddr, vrf: Option<&str>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if to.is_ipv6() {
        socket.set_only_v6(true)?; // `::` leaves IPv4 to its own socket
    }
    // The system's limit for others is 200 kB, which a burst of set-ups exceeds. With CAP_NET_ADMIN it does not count.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    if let Some(device) = vrf {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    socket.bind(&to.into())?;
    UdpSocket::from_std(socket.into())
}

fn open_store(
    start: &config::start::ControlPlane,
    boot: &str,
) -> Result<(Store, Restored), String> {
    let (store, opened) = Store::open(&start.state).map_err(|error| error.to_string())?;
    if opened.cut > 0 {
        tracing::warn!(
            octets = opened.cut,
            "removed an incomplete batch from the end of the store; no acknowledged data was in it"
        );
    }
    let restored = Restored::read(opened.live, unix_time().wrapping_add(NTP_OFFSET), boot)?;
    Ok((store, restored))
}

#[cfg(test)]
mod tests;
