//! How a user plane comes up, without anything that it can be told later.

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
use rand::Rng;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::{error, info, warn};
use wire::pfcp::{BbfUpFeatures, NodeId, SluiceFeatures, UpFunctionFeatures};

use crate::configure::Source;
use crate::cpri::Redirection;
use crate::engine::{self, Engine};
use crate::fib::{MAX_ADJACENCIES, MAX_GROUPS};
use crate::host::{Finding, Host, Wanted};
use crate::netlink::socket::{Monitor, RECEIVE_BUFFER, Requester};
use crate::run::{Clock, UserPlane};

/// A buffer of 2 KiB with its headers and the pool's share.
const BUFFER: u32 = 2432;
/// Packets that the control thread has under way.
const INJECT_BUFFERS: u32 = 2048;

/// What may wait in a socket, in octets.
const SOCKET_BUFFER: usize = 4 << 20;
/// Why a user plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The document to begin with cannot be done.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Initial(Vec<Fault>),
    /// DPDK refused its start.
    #[error(
        "{0}: `memory` must fit into what this machine has free; `sluice-up check --host` says what it has"
    )]
    Dpdk(#[from] dpdk::Error),
    /// The dataplane cannot be put together.
    #[error(transparent)]
    Dataplane(#[from] dataplane::Error),
    /// The management interface cannot be served.
    #[error("the management interface cannot be served at {0}")]
    Management(#[from] mi::NetworkError),
    /// A socket, device or netlink request failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// The system's reason.
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

/// The workers' threads; dropping them stops and joins.
pub struct WorkerThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerThreads {
    /// Each worker on its core, if there are cores for them.
    fn start(workers: Vec<Worker>, cores: &[u16]) -> io::Result<Self> {
        let mut started = Self {
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        for (number, worker) in workers.into_iter().enumerate() {
            let stop = started.stop.clone();
            let thread = std::thread::Builder::new().name(format!("sluice-worker{number}"));
            let spawn = || thread.spawn(move || worker.run(&stop));
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

    /// Whether one of them ended by itself, which it never should.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of the worker was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Does something while the calling thread is bound to a core: a thread that is started meanwhile inherits that.
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

/// Whether a user plane was brought a document already: then it does not begin with the initial one.
pub fn was_told(document: &Document) -> bool {
    Kept::is_there(&document.state)
}

/// Brings a user plane up. It goes on with the document that it was brought last; one that never was begins with `initial`, or
/// has neither ports nor network instances and waits to be told, and is there for its control planes meanwhile.
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
    let last = kept.document();

    let engine = engine_config(document, rand::rng().random());
    let limits = Limits {
        instances: 1,
        sessions: engine.places(),
        adjacencies: MAX_ADJACENCIES as u32,
        groups: MAX_GROUPS as u32,
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
            node: node(document, clock),
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
            set_level,
            host: lacking,
        },
        clock,
    );
    let mut user_plane = user_plane.context(|| "the worker's eventfd".into())?;
    match last {
        Ok(Some(last)) => user_plane.go_on_with(&last),
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

/// What [`UserPlane::new`] puts together.
pub struct Parts {
    /// The node id.
    pub name: String,
    /// Where PFCP and GTP-U are served.
    pub address: IpAddr,
    /// The most subscriber sessions.
    pub max_sessions: u32,
    /// PFCP's transport.
    pub node: pfcp::Node,
    /// Sessions.
    pub engine: Engine<pfcp::RequestId>,
    /// Tunnels.
    pub redirection: Redirection,
    /// The dataplane's end.
    pub controller: Controller,
    /// Where ports come from.
    pub source: Source,
    /// Netlink requests.
    pub requester: Requester,
    /// Netlink changes.
    pub monitor: Monitor,
    /// PFCP's socket.
    pub pfcp: UdpSocket,
    /// GTP-U's socket.
    pub gtpu: UdpSocket,
    /// The local API's requests.
    pub calls: mpsc::Receiver<Call>,
    /// The workers.
    pub workers: WorkerThreads,
    /// What was brought over the management interface.
    pub configured: Configured,
    /// Sets how much the log says.
    pub set_level: SetLevel,
    /// What the machine does not give, in a sentence each.
    pub host: Vec<String>,
}

/// Sets how much the log says.
pub type SetLevel = Box<dyn Fn(Level) + Send>;

async fn bind(address: IpAddr, port: u16, protocol: &str) -> Result<UdpSocket, StartError> {
    let socket = UdpSocket::bind(SocketAddr::new(address, port)).await.context(|| {
        format!("cannot bind {protocol} at {address} port {port}: `address` must be a free address of this machine")
    })?;
    // Discovery of a whole access network comes at once after an outage. Without the
    // privilege to exceed the system's limit, as much as it allows.
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

/// What the sessions begin with; `seed` is random.
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

fn node(document: &Document, clock: Clock) -> pfcp::Node {
    let config = node_config(document, clock.now().ntp, rand::rng().random());
    let mut node = pfcp::Node::new(config);
    for address in &document.control_planes {
        let control_plane = SocketAddr::new(*address, wire::pfcp::PORT);
        node.add_peer(clock.now().monotonic, control_plane);
    }
    node
}

/// What PFCP's transport begins with. `ntp`: seconds since 1900; `sequence` is random.
pub fn node_config(document: &Document, ntp: u32, sequence: u32) -> pfcp::Config {
    let mut config = pfcp::Config::new(pfcp::Role::User, node_id(&document.node_id), ntp);
    config.features = pfcp::Features {
        up: Some(
            UpFunctionFeatures::TRAFFIC_ENDPOINTS
                | UpFunctionFeatures::FRAMED_ROUTES
                | UpFunctionFeatures::PACKET_COUNTS
                | UpFunctionFeatures::PREFIX_LENGTHS,
        ),
        bbf: Some(BbfUpFeatures::PPPOE),
        sluice: Some(
            SluiceFeatures::DEFAULT_CP_TO_UP_RULE
                | SluiceFeatures::SETTINGS
                | SluiceFeatures::BINDINGS,
        ),
        ..Default::default()
    };
    config.first_sequence = sequence;
    let named = &document.control_planes;
    config.accept = (!named.is_empty()).then(|| named.clone());
    config
}

fn start_dpdk(document: &Document, huge_pages: bool) -> Result<Source, StartError> {
    let memory = document.memory;
    let options = EalOptions {
        memory_mib: memory,
        huge_pages,
    };
    let eal = Eal::start(&options)?;
    // Half of the memory for packets, the rest for the drivers' rings.
    let buffers = memory * (1 << 20) / 2 / BUFFER;
    let buffers = buffers.saturating_sub(INJECT_BUFFERS).max(INJECT_BUFFERS);
    let pool = eal.pool("packets", buffers)?;
    let queues = document.workers;
    Ok(Source { eal, pool, queues })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::spawn;

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
