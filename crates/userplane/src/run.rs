//! Control thread: one loop over sockets, devices, the kernel and the worker.
//!
//! All decisions are made elsewhere ([`crate::engine`], [`crate::fib`], [`crate::cpri`], `pfcp::Node`), without sockets. The loop
//! passes inputs to these parts and carries their outputs. It reads each source in portions, so that no source starves the
//! others.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use config::UserPlaneDocument;
use config::model::DeviceDocument;
use dataplane::{
    Adjacency, AdjacencyIndex, Busy, Controller, Destination, GroupIndex, InstanceIndex, Part,
    PortIndex, RuleHits, SampleRate, SessionIndex,
};
use ipnet::IpNet;
use mi::{Call, Configured};
use pfcp::{Node, RequestId};
use policy::Direction;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::warn;
use udp::{Batch, Bundles, Receiver};

use crate::configure::{Ask, Kept, Management, Opened, Opening, Parked, Port, Source};
use crate::cpri::Redirection;
use crate::device::Device;
use crate::documents::{Documents, Read};
use crate::engine::{Engine, Now, WorkerCommand};
use crate::fib::{Command, Fib};
use crate::icmp::ErrorSource;
use crate::moved::Moved;
use crate::netlink::follower::Follower;
use crate::netlink::socket::{Change, Requester};
use crate::policies::{Done, PolicyChange, PolicyNumbers, TrafficPolicies};
use crate::portal::Responder;
use crate::start::{Parts, SetLevel, WorkerThreads};
use watchdog::{Received, Watchdog};

mod api;
mod apply;
mod kernel;
mod ledger;
mod listing;
mod moves;
mod packets;
mod policies;
mod protection;
mod queues;
mod samples;
mod sessions;
mod tables;
mod watchdog;
mod watches;

/// Maximum number of frames, datagrams and punts that are handled before other sources get their turn.
const PORTION: usize = 64;
/// Maximum number of commands that wait for the worker. Above it, new sessions are rejected.
const BACKLOG: usize = 16_384;
/// Retry interval while the worker's queue is full.
const RETRY: Duration = Duration::from_millis(1);
/// How long announcements of an earlier run are kept for control planes to repeat.
const KEEP_NETS: Duration = Duration::from_secs(60);
/// Time after the start at which an unconfigured user plane logs a warning.
const UNTOLD: Duration = Duration::from_secs(10);
/// Maximum size of a datagram or frame.
const LARGEST: usize = 65_536;

/// Clock for the parts that do no I/O.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock with the origin now.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The time now.
    pub fn now(self) -> Now {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            monotonic: self.origin.elapsed(),
            ntp: wire::pfcp::ntp_seconds(unix.as_secs()),
        }
    }

    fn instant(self, at: Duration) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + at)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Network instance.
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its routes and next hops.
    pub fib: Fib,
    /// Its ICMP errors.
    pub errors: ErrorSource,
    /// TUN with the gateway's addresses.
    pub tun: Device,
    /// Its configuration.
    pub document: DeviceDocument,
}

/// Command that waits for room in the worker's queue.
pub(crate) enum ForWorker {
    Session(WorkerCommand),
    SetRoute(InstanceIndex, IpNet, Destination),
    RemoveRoute(InstanceIndex, IpNet),
    SetAdjacency(AdjacencyIndex, Option<Adjacency>),
    SetGroup(GroupIndex, Vec<AdjacencyIndex>),
    RemoveGroup(GroupIndex),
    Inspect(Part),
    Sample(SessionIndex, Option<SampleRate>),
    ReadPolicy(SessionIndex, Direction),
    /// Of a worker and a port, from a queue on, with room for so many parts of the port.
    ReadQueues(u16, PortIndex, u32, usize),
    WatchRules(SessionIndex, Direction, Option<Arc<RuleHits>>),
    /// An aggregate to another worker.
    Move(moves::Aggregate),
    RemoveStrayId(u32),
    RemoveStrayQueues(u32),
    RemoveHostRoute(InstanceIndex, IpNet),
}

/// Counters beside those of the parts.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    inject_busy: u64,
    device_full: u64,
    send_failed: u64,
    routes_refused: u64,
    adjacencies_refused: u64,
    neighbour_requests_failed: u64,
}

/// Running user plane.
pub struct UserPlane {
    /// Its node id.
    name: String,
    pub(crate) address: IpAddr,
    pub(crate) max_sessions: u32,
    pub(crate) clock: Clock,
    node: Node,
    pub(crate) engine: Engine<RequestId>,
    pub(crate) redirection: Redirection,
    pub(crate) controller: Controller,
    pub(crate) source: Source,
    /// Configuration in force.
    pub(crate) document: UserPlaneDocument,
    /// Document from the control plane, and whether a restart finds it.
    configured: Configured,
    /// Reads documents beside this thread.
    documents: Documents,
    /// Sets the log level.
    pub(crate) set_level: SetLevel,
    /// What the machine lacks, one sentence each.
    host: Vec<String>,
    pub(crate) ports: BTreeMap<String, Port>,
    /// Document whose devices are being opened.
    pub(crate) opening: Option<Opening>,
    /// Devices that were opened for the document that is being applied.
    pub(crate) opened: Opened,
    /// Default sessions of access ports that are being opened anew.
    pub(crate) off_ports: BTreeMap<String, Vec<SessionIndex>>,
    pub(crate) instances: BTreeMap<InstanceIndex, Instance>,
    pub(crate) kept: Kept,
    pub(crate) parked: Vec<Parked>,
    pub(crate) management: Management,
    asked: mpsc::Receiver<Ask>,
    pub(crate) requester: Requester,
    pub(crate) kernel: Follower,
    pfcp: UdpSocket,
    received: Receiver,
    /// PFCP messages that are sent together.
    messages: Bundles,
    sending: Batch,
    /// Redirected frames that are sent together.
    frames: Bundles,
    gtpu: UdpSocket,
    /// The socket of `gtpu`, read before tokio has noticed new datagrams.
    gtpu_now: std::net::UdpSocket,
    calls: mpsc::Receiver<Call>,
    workers: WorkerThreads,
    wakeup: AsyncFd<OwnedFd>,
    pub(crate) backlog: VecDeque<ForWorker>,
    /// Policies of the packets of a direction.
    pub(crate) policies: TrafficPolicies,
    /// Answers what they redirect.
    responder: Responder,
    /// Changes of policies that the workers have not taken yet, in their order: a number may have had another policy before.
    pub(crate) policy_changes: VecDeque<PolicyChange>,
    /// Whether frames for subscribers wait for the workers.
    room: packets::Room,
    /// When announcements that nobody repeated are withdrawn.
    pub(crate) end_keeping_at: Option<Duration>,
    pub(crate) watchdog: Watchdog,
    /// Time of the next check of the ports.
    watch_at: Duration,
    /// Whether the warning about a missing configuration has been logged.
    said_untold: bool,
    /// Resource audit under way.
    check: Option<Box<ledger::Check>>,
    /// Move of an aggregate to another worker.
    moving: Option<moves::Moving>,
    /// VLANs that were moved, on the disk.
    pub(crate) moved: Moved,
    /// Subscriber lines whose packets are sampled.
    samples: samples::Samples,
    /// Sessions of which the hits of each rule are counted.
    watches: watches::RuleWatches,
    /// Questions about the policies of sessions.
    questions: policies::Questions,
    /// What the queues of the workers have told.
    queues: queues::QueueReadings,
    /// Who exceeds a rate for what is for the gateway itself.
    offenders: protection::Offenders,
    counters: Counters,
    buffer: Vec<u8>,
    /// TAP or TUN whose turn is next.
    next_device: usize,
}

/// Source that is ready.
enum Ready {
    Shutdown,
    Pfcp,
    Gtpu,
    Device(usize),
    Worker,
    Kernel(io::Result<Change>),
    Call(Call),
    Asked(Ask),
    Read(Box<Read>),
    Opened(Opened),
    Compiled(Done),
    Other,
}

impl UserPlane {
    /// Assembles a user plane from its parts.
    pub fn new(parts: Parts, clock: Clock) -> io::Result<Self> {
        let wakeup = parts.controller.wakeup().try_clone_to_owned()?;
        // The AsyncFd owns the descriptor and keeps it open. The newer function `register` (unsafe) asks for just that.
        #[expect(deprecated)]
        let wakeup = AsyncFd::with_interest(wakeup, Interest::READABLE)?;
        let gtpu_now = parts.gtpu.as_fd().try_clone_to_owned()?.into();
        let (management, asked) = Management::new();
        Ok(Self {
            name: parts.name,
            address: parts.address,
            max_sessions: parts.max_sessions,
            clock,
            node: parts.node,
            engine: parts.engine,
            redirection: parts.redirection,
            responder: Responder::default(),
            policies: TrafficPolicies::start(
                PolicyNumbers::default(),
                parts.controller.policy_compiler(),
            )?,
            controller: parts.controller,
            source: parts.source,
            document: UserPlaneDocument::default(),
            documents: Documents::start(parts.reader, parts.configured.kept().clone())?,
            configured: parts.configured,
            set_level: parts.set_level,
            host: parts.host,
            ports: BTreeMap::new(),
            opening: None,
            opened: Opened::new(),
            off_ports: BTreeMap::new(),
            instances: BTreeMap::new(),
            kept: Kept::from_supervisor(),
            parked: Vec::new(),
            management,
            asked,
            requester: parts.requester,
            kernel: Follower::new(parts.monitor),
            pfcp: parts.pfcp,
            received: Receiver::default(),
            messages: Bundles::new(wire::pfcp::mark_followed),
            sending: Batch::default(),
            frames: Bundles::new(|_| {}),
            gtpu: parts.gtpu,
            gtpu_now,
            calls: parts.calls,
            workers: parts.workers,
            wakeup,
            backlog: VecDeque::new(),
            policy_changes: VecDeque::new(),
            room: packets::Room::default(),
            end_keeping_at: Some(clock.now().monotonic + KEEP_NETS),
            watchdog: Watchdog::default(),
            watch_at: Duration::ZERO,
            said_untold: false,
            check: None,
            moving: None,
            moved: parts.moved,
            samples: samples::Samples::default(),
            watches: watches::RuleWatches::default(),
            questions: policies::Questions::default(),
            queues: queues::QueueReadings::default(),
            offenders: protection::Offenders::default(),
            counters: Counters::default(),
            buffer: vec![0; LARGEST],
            next_device: 0,
        })
    }

    /// TAPs with their dataplane interfaces, and TUNs with their instances.
    fn devices(&self) -> impl Iterator<Item = (&Device, Result<PortIndex, InstanceIndex>)> {
        let taps = self.ports.values().flat_map(Port::interfaces);
        let tuns = self.instances.iter();
        taps.map(|(index, tap)| (tap, Ok(index)))
            .chain(tuns.map(|(index, instance)| (&instance.tun, Err(*index))))
    }

    /// Runs until `shutdown` completes, then withdraws all announcements.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        self.serve(shutdown).await?;
        self.shut_down();
        Ok(())
    }

    /// Serves until `shutdown` completes, or a worker or a port has stopped for good.
    async fn serve(&mut self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut drained = true;
        loop {
            self.settle();
            // The thread sleeps only if the worker has nothing for it.
            let busy = !drained || !self.controller.arm() || !self.follows_kernel();
            match self.wait(shutdown.as_mut(), busy).await {
                Ready::Shutdown => return Ok(()),
                Ready::Pfcp => self.receive_pfcp(),
                Ready::Gtpu => self.receive_gtpu(),
                Ready::Device(index) => {
                    self.next_device = index + 1;
                    self.read_device(index);
                }
                Ready::Worker | Ready::Other => {}
                Ready::Kernel(change) => self.kernel_changed(change?),
                Ready::Call(call) => self.answer(call),
                Ready::Asked(ask) => self.asked(ask),
                Ready::Read(read) => self.use_document(read),
                Ready::Opened(opened) => self.end_opening(opened),
                Ready::Compiled(done) => self.policy_changes.extend(self.policies.compiled(done)),
            }
            drained = self.drain_worker();
            self.end_move();
            self.drive_lags();
            self.policies.take_news(&self.document);
            self.set_policies();
            self.judge_piece();
            self.read_tables();
            self.read_for_check();
            self.on_timeout();
            if self.workers.is_finished() {
                return Err(io::Error::other("a worker's thread ended by itself"));
            }
            self.watch()?;
        }
    }

    /// Whether the user plane has no configuration yet. Until then it has no ports for sessions, so it neither calls control
    /// planes nor listens to them.
    fn is_blank(&self) -> bool {
        self.configured.in_force().is_none() && self.ports.is_empty()
    }

    /// Returns an error when a port's driver has stopped for good. After a restart the port is open again, and every session is
    /// back within seconds.
    fn watch(&mut self) -> io::Result<()> {
        let now = self.clock.now().monotonic;
        if now < self.watch_at {
            return Ok(());
        }
        self.watch_at = now + watchdog::INTERVAL;
        self.watch_for_document(now);
        self.end_samples();
        self.end_watches(now);
        // so that what is forgotten is so before its number can be another's
        if self.policy_changes.is_empty() {
            self.policy_changes.extend(self.policies.forget_unused());
        }
        let ports = self.controller.ports();
        let received = ports.iter().map(|port| Received {
            packets: port.rx_packets,
            lost: port.rx_lost,
        });
        match self.watchdog.look(received) {
            Some(stopped) => Err(io::Error::other(format!(
                "port {} ({}) loses every packet and receives none: its driver has stopped. The supervisor restarts \
                    sluice-up, which opens the port again",
                self.port_name(ports[stopped].index),
                ports[stopped].name
            ))),
            None => Ok(()),
        }
    }

    /// Logs once that the user plane has no configuration.
    fn watch_for_document(&mut self, now: Duration) {
        if self.is_blank() && now >= UNTOLD && !self.said_untold {
            self.said_untold = true;
            warn!(
                "this user plane has no configuration and forwards nothing: check that sluice-cp runs, and that \
                    `user-planes {} management` in its configuration is this user plane. An earlier version of the control \
                    plane cannot configure it: upgrade that first, or set `initial-configuration` in this user plane's \
                    start file",
                self.name
            );
        }
    }

    /// Gives the workers the policies that were compiled, and takes away what is not configured any more.
    pub(crate) fn set_policies(&mut self) {
        while let Some(PolicyChange { number, policy }) = self.policy_changes.front() {
            if self.controller.set_policy(*number, policy.clone()).is_err() {
                return;
            }
            self.policy_changes.pop_front();
            if self.policy_changes.is_empty() {
                self.renew_watches();
            }
        }
    }

    /// Name of the port with this index.
    fn port_name(&self, index: PortIndex) -> &str {
        packets::port_name(&self.ports, index)
    }

    async fn wait(
        &mut self,
        shutdown: std::pin::Pin<&mut impl Future<Output = ()>>,
        busy: bool,
    ) -> Ready {
        let times = [
            self.node.poll_at().filter(|_| !self.is_blank()),
            self.engine.poll_at(),
            self.kernel.read_at(),
            self.end_keeping_at,
            Some(self.watch_at),
            self.check_at(),
            self.lags_at(),
        ];
        let mut at = times.into_iter().flatten().min();
        let takes_frames = self.takes_frames();
        let opens = self.opening.is_some();
        if !self.backlog.is_empty() || !self.policy_changes.is_empty() || !takes_frames {
            let retry = self.clock.now().monotonic + RETRY;
            at = Some(at.map_or(retry, |at| at.min(retry)));
        }
        let never = Duration::from_secs(3600);
        let sleep = tokio::time::sleep_until(
            self.clock
                .instant(at.unwrap_or(self.clock.now().monotonic + never)),
        );
        let taps = self.ports.values().flat_map(Port::interfaces);
        let devices: Vec<&Device> = taps
            .map(|(_, tap)| tap)
            .chain(self.instances.values().map(|instance| &instance.tun))
            .collect();
        tokio::select! {
            () = shutdown => Ready::Shutdown,
            // What may delete the sessions of frames that wait waits with them.
            _ = self.pfcp.readable(), if takes_frames && !self.is_blank() => Ready::Pfcp,
            _ = self.gtpu.readable(), if takes_frames => Ready::Gtpu,
            index = any_readable(&devices, self.next_device) => Ready::Device(index),
            guard = self.wakeup.readable() => {
                if let Ok(mut guard) = guard {
                    guard.clear_ready();
                }
                Ready::Worker
            }
            // Changes stay in the socket while the worker is behind.
            change = self.kernel.next(), if self.backlog.len() <= BACKLOG / 2 => {
                Ready::Kernel(change)
            }
            Some(call) = self.calls.recv() => Ready::Call(call),
            // Documents are applied in their order.
            Some(ask) = self.asked.recv(), if !opens => Ready::Asked(ask),
            Some(read) = self.documents.read.recv(), if !opens => Ready::Read(read.into()),
            Some(opened) = opened(&mut self.opening) => Ready::Opened(opened),
            Some(done) = self.policies.done.recv() => Ready::Compiled(done),
            () = sleep => Ready::Other,
            () = tokio::task::yield_now(), if busy => Ready::Other,
        }
    }

    fn receive_pfcp(&mut self) {
        let mut taken = 0;
        while taken < PORTION
            && let Ok(datagrams) = self.received.try_recv(&self.pfcp)
        {
            let now = self.clock.now().monotonic;
            let from = datagrams.from;
            for message in datagrams.flat_map(|octets| udp::messages(octets, wire::pfcp::split)) {
                self.node.handle_datagram(now, from, message);
                taken += 1;
            }
        }
        // A session's last packets (Terminate-Ack, PADT) were sent before the request that deletes it. They go out before that
        // request is handled.
        for _ in 0..PORTION * taken {
            if !self.takes_frames() {
                return;
            }
            let Ok((length, from)) = self.gtpu_now.recv_from(&mut self.buffer) else {
                return;
            };
            self.redirect(length, from);
        }
    }

    fn receive_gtpu(&mut self) {
        for _ in 0..PORTION {
            if !self.takes_frames() {
                return;
            }
            let Ok((length, from)) = self.gtpu.try_recv_from(&mut self.buffer) else {
                return;
            };
            self.redirect(length, from);
        }
    }

    fn on_timeout(&mut self) {
        let now = self.clock.now();
        if !self.is_blank() && self.node.poll_at().is_some_and(|at| at <= now.monotonic) {
            self.node.on_timeout(now.monotonic);
        }
        if self.engine.poll_at().is_some_and(|at| at <= now.monotonic) {
            self.engine.on_timeout(now);
        }
        if self.end_keeping_at.is_some_and(|at| at <= now.monotonic) {
            self.end_keeping_at = None;
            let fibs = self
                .instances
                .values_mut()
                .map(|instance| &mut instance.fib);
            fibs.for_each(Fib::end_keeping);
        }
    }
}

/// Devices that a document waits for, when they are open. `None` if none does.
async fn opened(opening: &mut Option<Opening>) -> Option<Opened> {
    match opening {
        Some(opening) => Some(opening.opened().await),
        None => None,
    }
}

/// Index of a device with a waiting frame. The search starts at `first`, so that each device gets its turn.
async fn any_readable(devices: &[&Device], first: usize) -> usize {
    std::future::poll_fn(|context| {
        let turns = (0..devices.len()).map(|turn| (first + turn) % devices.len());
        let ready = |&index: &usize| devices[index].poll_readable(context).is_ready();
        // All of them are polled, so that any of them wakes the task.
        match turns.filter(ready).collect::<Vec<_>>().first() {
            Some(&index) => Poll::Ready(index),
            None => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests;
