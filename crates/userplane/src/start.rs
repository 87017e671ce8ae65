//! Starts a user plane, without what it can be configured with later.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use config::model::Level;
use config::start::UserPlane as Document;
use config::{Fault, UserPlaneDocument};
use dataplane::{Controller, Limits, PuntLimits, Worker};
use dpdk::{Eal, EalOptions};
use mi::{Call, Configured, Kept};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use policy::{PacketSettings, TrafficPolicies};
use rand::Rng;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::{debug, error, info, warn};
use wire::pfcp::{BbfUpFeatures, KnownSettings, Lanes, NodeId, SluiceFeatures, UpFunctionFeatures};

use crate::configure::{Source, capabilities};
use crate::cpri::Redirection;
use crate::documents::DocumentReader;
use crate::engine::{self, Engine, Now};
use crate::fib::{MAX_ADJACENCIES, MAX_GROUPS};
use crate::host::{Finding, Host, Wanted};
use crate::moved::Moved;
use crate::netlink::socket::{Monitor, RECEIVE_BUFFER, Requester};
use crate::run::{Clock, UserPlane};

/// Size of a 2 KiB buffer with its headers and the pool's share, in octets.
const BUFFER: u64 = 2432;
/// Buffers for packets of the control thread: twice what waits for a worker, because workers keep some that they have freed.
const INJECT_BUFFERS: u32 = 4096;

/// Niceness of the workers' threads: three times the share of an ordinary thread.
const NICENESS: i32 = -5;

/// Receive buffer of a socket, in octets.
const SOCKET_BUFFER: usize = 8 << 20;

/// Why a user plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The initial document cannot be applied.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Initial(Vec<Fault>),
    /// DPDK failed to start.
    #[error(
        "{0}: `memory` must fit into what this machine has free; `sluice-up check --host` says what it has"
    )]
    Dpdk(#[from] dpdk::Error),
    /// The dataplane cannot be created.
    #[error(transparent)]
    Dataplane(#[from] dataplane::Error),
    /// The management interface cannot be served.
    #[error("the management interface cannot be served at {0}")]
    Management(#[from] mi::NetworkError),
    /// A socket, device or netlink request failed.
    #[error("{what}: {source}")]
    System {
        /// The failed operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

trait Context<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, StartError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, StartError> {
        self.map_err(|source| StartError::System {
            what: what(),
            source,
        })
    }
}

/// Worker threads. Dropping them stops and joins them.
pub struct WorkerThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerThreads {
    /// Starts each worker on its core, if cores are given.
    fn start(workers: Vec<Worker>, cores: &[u16]) -> io::Result<Self> {
        let mut started = Self {
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        for (number, worker) in workers.into_iter().enumerate() {
            let stop = started.stop.clone();
            let thread = std::thread::Builder::new().name(format!("sluice-worker{number}"));
            let spawn = || {
                thread.spawn(move || {
                    come_first();
                    worker.run(&stop);
                })
            };
            started.threads.push(match cores.get(number) {
                Some(core) => bound(*core, spawn)??,
                None => spawn()?,
            });
        }
        Ok(started)
    }

    /// Threads that stand in for workers.
    #[cfg(test)]
    pub(crate) fn of(threads: Vec<JoinHandle<()>>) -> Self {
        Self {
            stop: Arc::default(),
            threads,
        }
    }

    /// Whether a thread ended by itself, which is a fault.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A worker's panic was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Lets a worker's thread come before others on a core that it has to share: while it waits for its turn, its ports' rings overflow. In
/// Linux a thread has a priority of its own. Who may not set it, does without.
fn come_first() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        debug!(%error, "a worker has no priority over other threads");
    }
}

/// Runs a function while the calling thread is bound to a core. A thread started meanwhile inherits that.
fn bound<T>(core: u16, act: impl FnOnce() -> T) -> io::Result<T> {
    let own = Pid::from_raw(0);
    let before = sched_getaffinity(own)?;
    let mut only = CpuSet::new();
    only.set(core.into())?;
    sched_setaffinity(own, &only)?;
    let done = act();
    sched_setaffinity(own, &before)?;
    Ok(done)
}

/// Whether the user plane has a stored document. Then it ignores the initial one.
pub fn was_told(document: &Document) -> bool {
    Kept::is_there(&document.state)
}

/// Starts a user plane. It applies the last document that it got. Without one it applies `initial`; without that, it has neither
/// ports nor network instances, and waits for its control plane.
pub async fn start(
    document: &Document,
    initial: Option<&UserPlaneDocument>,
    set_level: SetLevel,
) -> Result<UserPlane, StartError> {
    let clock = Clock::new();
    let pfcp = bind(document.address, wire::pfcp::PORT, "PFCP").await?;
    udp::receive_batches(&pfcp);
    let gtpu = bind(document.address, wire::gtpu::PORT, "GTP-U").await?;
    let calls = serve_api(document)?;

    let state = &document.state;
    let kept = Kept::open(state).context(|| format!("the state in {}", state.display()))?;
    let moved = Moved::open(state).context(|| format!("the state in {}", state.display()))?;
    let mut reader = DocumentReader::new(capabilities(document.max_sessions));
    let last = kept.document().map(|last| {
        last.map(|last| {
            let reading = reader.read_to_apply(&last);
            (last, reading)
        })
    });

    let engine = engine_config(document, rand::rng().random());
    let limits = Limits {
        instances: 1,
        sessions: engine.places(),
        adjacencies: MAX_ADJACENCIES as u32,
        groups: MAX_GROUPS as u32,
        punted: most_punted(document),
        ..Limits::default()
    };
    let (host, wanted) = (Host::read(Path::new("/")), Wanted::from(document));
    let taken = host.take(&wanted);
    let lacking = host.defaults(&wanted);
    let lacking: Vec<String> = lacking.iter().filter_map(Finding::sentence).collect();
    for sentence in &lacking {
        warn!("{sentence}");
    }
    let source = start_dpdk(document, taken.huge_pages)?;
    let config = dataplane::Config {
        workers: document.workers,
        limits,
        punts: PuntLimits::default(),
    };
    let injects = source.eal.pool("injects", INJECT_BUFFERS)?;
    let (controller, workers) = dataplane::channel(&source.eal, injects, config)?;
    let requester = Requester::open().context(|| "netlink".into())?;
    let monitor = Monitor::open(RECEIVE_BUFFER).context(|| "netlink".into())?;
    let threads = WorkerThreads::start(workers, &taken.cores);
    let workers = threads.context(|| format!("workers on cores {:?}", taken.cores))?;
    info!(huge_pages = taken.huge_pages, worker_cores = ?taken.cores, "the machine");
    let user_plane = UserPlane::new(
        Parts {
            name: document.node_id.clone(),
            address: document.address,
            max_sessions: document.max_sessions,
            node: node(document, clock.now(), rand::rng().random()),
            engine: Engine::new(engine),
            redirection: Redirection::new(document.address, Vec::new()),
            controller,
            source,
            requester,
            monitor,
            pfcp,
            gtpu,
            calls,
            workers,
            configured: Configured::new(kept),
            reader,
            moved,
            set_level,
            host: lacking,
        },
        clock,
    );
    let mut user_plane = user_plane.context(|| "the worker's eventfd".into())?;
    match last {
        Ok(Some((last, reading))) => user_plane.go_on_with(&last, reading),
        Ok(None) => {
            if let Some(initial) = initial {
                user_plane
                    .reconfigure(initial)
                    .map_err(StartError::Initial)?;
            }
        }
        Err(error) => {
            error!(%error, "cannot read the last document from the control plane: waiting for a new one");
        }
    }
    Ok(user_plane)
}

/// Parts of a [`UserPlane`].
pub struct Parts {
    /// The node id.
    pub name: String,
    /// Address for PFCP and GTP-U.
    pub address: IpAddr,
    /// Maximum number of subscriber sessions.
    pub max_sessions: u32,
    /// PFCP transport.
    pub node: pfcp::Node,
    /// Sessions.
    pub engine: Engine<pfcp::RequestId>,
    /// GTP-U tunnels of control packets.
    pub redirection: Redirection,
    /// Controller of the dataplane.
    pub controller: Controller,
    /// Source of ports.
    pub source: Source,
    /// Netlink requests.
    pub requester: Requester,
    /// Netlink changes.
    pub monitor: Monitor,
    /// PFCP's socket.
    pub pfcp: UdpSocket,
    /// GTP-U's socket.
    pub gtpu: UdpSocket,
    /// Requests of the local API.
    pub calls: mpsc::Receiver<Call>,
    /// The workers.
    pub workers: WorkerThreads,
    /// Document from the management interface.
    pub configured: Configured,
    /// VLANs that were moved to another worker.
    pub moved: Moved,
    /// Reads documents.
    pub reader: DocumentReader,
    /// Sets the log level.
    pub set_level: SetLevel,
    /// What the machine lacks, one sentence each.
    pub host: Vec<String>,
}

/// Sets the log level.
pub type SetLevel = Box<dyn Fn(Level) + Send>;

async fn bind(address: IpAddr, port: u16, protocol: &str) -> Result<UdpSocket, StartError> {
    let socket = UdpSocket::bind(SocketAddr::new(address, port)).await.context(|| {
        format!("cannot bind {protocol} at {address} port {port}: `address` must be a free address of this machine")
    })?;
    // After an outage, discovery packets of a whole access network come at once. Without the privilege to exceed the system's
    // limit, the buffer is as large as the system allows.
    if setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER).is_err() {
        let _ = setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER);
    }
    Ok(socket)
}

fn serve_api(document: &Document) -> Result<mpsc::Receiver<Call>, StartError> {
    let (sender, calls) = mpsc::channel(16);
    let management = document.management.as_ref();
    tokio::spawn(mi::serve(&document.api_socket, management, sender)?);
    Ok(calls)
}

/// Configuration of the engine at the start; `seed` is random.
pub fn engine_config(document: &Document, seed: u32) -> engine::Config {
    engine::Config {
        max_sessions: document.max_sessions,
        workers: document.workers,
        control_planes: document.control_planes.clone(),
        seed,
        ..engine::Config::new(node_id(&document.node_id), document.address)
    }
}

fn node_id(text: &str) -> NodeId {
    match text.parse() {
        Ok(IpAddr::V4(address)) => NodeId::Ipv4(address),
        Ok(IpAddr::V6(address)) => NodeId::Ipv6(address),
        Err(_) => NodeId::Fqdn(text.to_owned()),
    }
}

/// PFCP transport at the start, which contacts the control planes. `sequence` is random.
pub fn node(document: &Document, now: Now, sequence: u32) -> pfcp::Node {
    let mut node = pfcp::Node::new(node_config(document, now, sequence));
    for address in &document.control_planes {
        let control_plane = SocketAddr::new(*address, wire::pfcp::PORT);
        node.add_peer(now.monotonic, control_plane);
    }
    node
}

fn node_config(document: &Document, now: Now, sequence: u32) -> pfcp::Config {
    let ntp = now.ntp;
    let mut config = pfcp::Config::new(pfcp::Role::User, node_id(&document.node_id), ntp);
    config.features = pfcp::Features {
        up: Some(
            UpFunctionFeatures::TRAFFIC_ENDPOINTS
                | UpFunctionFeatures::FRAMED_ROUTES
                | UpFunctionFeatures::PACKET_COUNTS
                | UpFunctionFeatures::BUNDLING
                | UpFunctionFeatures::PREFIX_LENGTHS,
        ),
        bbf: Some(BbfUpFeatures::PPPOE),
        sluice: Some(
            SluiceFeatures::DEFAULT_CP_TO_UP_RULE
                | SluiceFeatures::SETTINGS
                | SluiceFeatures::BINDINGS
                | SluiceFeatures::ECHO_REPLIES
                | SluiceFeatures::METRICS
                | SluiceFeatures::FRAMES,
        ),
        lanes: Some(Lanes::even(document.workers)),
        known_settings: Some(KnownSettings::of(
            PacketSettings::SETTINGS
                .iter()
                .chain(TrafficPolicies::SETTINGS)
                .map(|setting| setting.id),
        )),
        ..Default::default()
    };
    config.first_sequence = sequence;
    config.clock = ntp.wrapping_sub(now.monotonic.as_secs() as u32);
    config
}

/// Buffers for the packets of all ports: half of the memory, the rest being for the drivers' rings.
fn buffers(document: &Document) -> u32 {
    let octets = u64::from(document.memory) << 20;
    let buffers = octets / 2 / BUFFER;
    (buffers as u32)
        .saturating_sub(INJECT_BUFFERS)
        .max(INJECT_BUFFERS)
}

/// Packets of each worker that may wait for the control thread: a third of the buffers for all workers, and no more than are worth
/// waiting for; 256 where many workers have few buffers.
fn most_punted(document: &Document) -> u32 {
    let each = buffers(document) / 3 / u32::from(document.workers);
    1 << each.clamp(256, 16_384).ilog2()
}

fn start_dpdk(document: &Document, huge_pages: bool) -> Result<Source, StartError> {
    let options = EalOptions {
        memory_mib: document.memory,
        huge_pages,
    };
    let eal = Eal::start(&options)?;
    let pool = eal.pool("packets", buffers(document))?;
    let queues = document.workers;
    Ok(Source { eal, pool, queues })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::spawn;

    /// Who may not set it does without: the test needs root.
    #[test]
    fn a_workers_thread_comes_before_the_one_that_started_it() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let worker = spawn(move || {
            come_first();
            own()
        });
        assert_eq!((worker.join().unwrap(), own()), (NICENESS, before));
    }

    #[test]
    fn packets_for_the_control_thread_take_a_third_of_the_buffers_at_most() {
        for (memory, workers, buffered, punted) in [
            (64, 1, 9_701, 2048),
            (256, 1, 51_092, 16_384),
            (256, 8, 51_092, 2048),
            (64, 16, 9_701, 256),
            (65_536, 1, 14_124_085, 16_384),
        ] {
            let text = format!(
                "node-id: up1
address: 192.0.2.2
control-planes: [192.0.2.1]
memory: {memory}
workers: {workers}
"
            );
            let document: Document = config::parse(&text, "up.yaml").unwrap();
            assert_eq!(buffers(&document), buffered, "{memory} MiB");
            assert_eq!(most_punted(&document), punted, "{memory} MiB");
        }
    }

    #[test]
    fn a_thread_is_bound_to_its_core_and_whoever_starts_it_is_not() {
        let own = || sched_getaffinity(Pid::from_raw(0)).unwrap();
        let before = own();
        let allowed = |core: &usize| before.is_set(*core).unwrap();
        let core = (0..CpuSet::count()).rfind(allowed).unwrap();
        let thread = bound(core as u16, || spawn(own)).unwrap();
        let mut only = CpuSet::new();
        only.set(core).unwrap();
        assert_eq!(thread.join().unwrap(), only);
        assert_eq!(own(), before);
        assert!(bound(1000, || ()).is_err(), "there is no such core");
        assert_eq!(own(), before);
    }
}
