//! How a user plane comes up: everything that can fail first, what lasts at the end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use config::{HoldSessions, PortRole, UserPlane as Document};
use dataplane::{
    Controller, InstanceIndex, Limits, PortConfig, PortIndex, PuntLimits, Role, Segment, Worker,
};
use dpdk::{Eal, EalOptions, Pool, PortOptions};
use mi::Call;
use nix::sys::socket::{setsockopt, sockopt};
use rand::Rng;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::info;
use wire::eth::MacAddr;
use wire::pfcp::{BbfUpFeatures, NodeId, SluiceFeatures, UpFunctionFeatures};

use crate::compile::Layout;
use crate::cpri::Redirection;
use crate::engine::{self, Engine};
use crate::fib::MAX_ADJACENCIES;
use crate::netlink::socket::{Monitor, Requester};
use crate::run::{Clock, Instance, Port, UserPlane};

mod devices;

use devices::{Devices, describe_ports, make_instances};

/// The only network instance that can be served: the process's own network namespace.
const DEFAULT_INSTANCE: &str = "default";
/// A buffer of 2 KiB with its headers and the pool's share.
const BUFFER: u32 = 2432;
/// Packets that the control thread has under way.
const INJECT_BUFFERS: u32 = 2048;

/// What may wait in a socket, in octets.
const SOCKET_BUFFER: usize = 4 << 20;
/// Why a user plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration asks for something that this version cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// DPDK refused a port or its own start.
    #[error(
        "{0}: check `device` and, for net_af_xdp and net_af_packet, that the interface exists and nobody else uses it"
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

/// What the document asks for that this version cannot do, in the words of a
/// configuration error.
pub fn check(document: &Document) -> Result<(), StartError> {
    let unsupported = |text| Err(StartError::Unsupported(text));
    if let Some(name) = document
        .network_instances
        .keys()
        .find(|name| *name != DEFAULT_INSTANCE)
    {
        return unsupported(format!(
            "network instance `{name}`: expected only `{DEFAULT_INSTANCE}`, which is the \
             network namespace that sluice-up runs in"
        ));
    }
    if !document.network_instances.contains_key(DEFAULT_INSTANCE) {
        return unsupported(format!(
            "`network-instances` lacks `{DEFAULT_INSTANCE}`: expected it"
        ));
    }
    if document.address.is_unspecified() || document.address.is_multicast() {
        return unsupported(format!(
            "`address` is {}: expected an address of this machine that the control plane reaches",
            document.address
        ));
    }
    Ok(())
}

/// The worker's thread; dropping it stops and joins.
pub struct WorkerThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WorkerThread {
    fn start(worker: Worker) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::Builder::new()
            .name("sluice-worker".into())
            .spawn(move || worker.run(&seen))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Whether the thread ended by itself, which it never should.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the worker was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Brings a user plane up. On an error nothing is left behind: devices that were made
/// here vanish with the process, as they are kept only at the end.
pub async fn start(document: &Document) -> Result<UserPlane, StartError> {
    check(document)?;
    let clock = Clock::new();
    let pfcp = bind(document.address, wire::pfcp::PORT, "PFCP").await?;
    udp::receive_batches(&pfcp);
    let gtpu = bind(document.address, wire::gtpu::PORT, "GTP-U").await?;
    let calls = serve_api(document)?;

    let limits = Limits {
        instances: 1,
        sessions: engine_config(document, Layout::default()).places(),
        adjacencies: MAX_ADJACENCIES as u32,
        ..Limits::default()
    };
    let (eal, ports) = open_ports(document)?;
    let mut described = Vec::with_capacity(ports.len());
    for (port, document) in ports.iter().zip(&document.ports.value) {
        described.push((MacAddr(port.port.mac()), port.port.mtu().min(document.mtu)));
    }
    let config = dataplane::Config {
        limits,
        punts: PuntLimits::default(),
    };
    let injects = eal.pool("injects", INJECT_BUFFERS)?;
    let (mut controller, worker) = dataplane::channel(&eal, injects, config)?;
    for (port, index) in ports.into_iter().zip(0..) {
        let added = controller.add_port(PortIndex(index), port);
        added.map_err(|error| StartError::Unsupported(error.to_string()))?;
    }

    let mut requester = Requester::open().context(|| "netlink".into())?;
    let mut devices = Devices::new(&mut requester);
    let ports = describe_ports(document, &described, &mut devices)?;
    let instances = make_instances(document, &ports, &mut devices)?;
    devices.forget_unused();
    // After the devices are as they shall be: the first reading shows them all.
    let monitor = Monitor::open().context(|| "netlink".into())?;
    let worker = WorkerThread::start(worker).context(|| "the worker's thread".into())?;

    let layout = layout(document, &ports);
    let names = access_ports(&ports).map(|(index, port)| (index, port.name.clone().into_bytes()));
    let user_plane = UserPlane::new(
        Parts {
            name: document.node_id.clone(),
            node: node(document, clock),
            engine: Engine::new(engine_config(document, layout)),
            redirection: Redirection::new(document.address, names.collect()),
            controller,
            ports,
            instances,
            requester,
            monitor,
            pfcp,
            gtpu,
            calls,
            worker,
        },
        clock,
    )
    .context(|| "the worker's eventfd".into())?;
    user_plane
        .keep_devices()
        .context(|| "TUNSETPERSIST".into())?;
    Ok(user_plane)
}

/// What [`UserPlane::new`] puts together.
pub struct Parts {
    /// The node id.
    pub name: String,
    /// PFCP's transport.
    pub node: pfcp::Node,
    /// Sessions.
    pub engine: Engine<pfcp::RequestId>,
    /// Tunnels.
    pub redirection: Redirection,
    /// The dataplane's end.
    pub controller: Controller,
    /// Ports in the order of the configuration.
    pub ports: Vec<Port>,
    /// Network instances.
    pub instances: Vec<Instance>,
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
    /// The worker.
    pub worker: WorkerThread,
}

async fn bind(address: IpAddr, port: u16, protocol: &str) -> Result<UdpSocket, StartError> {
    let socket = UdpSocket::bind(SocketAddr::new(address, port)).await.context(|| {
        format!("cannot serve {protocol} at {address} port {port}; `address` must be one of this machine, and free")
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
    tokio::spawn(mi::serve(&document.api_socket, None, sender)?);
    Ok(calls)
}

fn engine_config(document: &Document, layout: Layout) -> engine::Config {
    engine::Config {
        layout,
        max_sessions: document.max_sessions.value,
        hold: match document.hold_sessions {
            HoldSessions::Forever => None,
            HoldSessions::Seconds(seconds) => Some(Duration::from_secs(seconds.into())),
        },
        seed: rand::rng().random(),
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
    let mut node = pfcp::Node::new(node_config(document, clock));
    for address in &document.control_planes {
        let control_plane = SocketAddr::new(*address, wire::pfcp::PORT);
        node.add_peer(clock.now().monotonic, control_plane);
    }
    node
}

fn node_config(document: &Document, clock: Clock) -> pfcp::Config {
    let mut config = pfcp::Config::new(
        pfcp::Role::User,
        node_id(&document.node_id),
        clock.now().ntp,
    );
    config.features = pfcp::Features {
        up: Some(
            UpFunctionFeatures::TRAFFIC_ENDPOINTS
                | UpFunctionFeatures::FRAMED_ROUTES
                | UpFunctionFeatures::PACKET_COUNTS
                | UpFunctionFeatures::PREFIX_LENGTHS,
        ),
        bbf: Some(BbfUpFeatures::PPPOE),
        sluice: Some(SluiceFeatures::DEFAULT_CP_TO_UP_RULE),
        ..Default::default()
    };
    config.first_sequence = rand::rng().random();
    let named = &document.control_planes;
    config.accept = (!named.is_empty()).then(|| named.clone());
    config
}

fn open_ports(document: &Document) -> Result<(Eal, Vec<PortConfig>), StartError> {
    let ports = &document.ports.value;
    let options = EalOptions {
        memory_mib: document.memory,
        ..EalOptions::default()
    };
    let eal = Eal::start(&options)?;
    // Half of the memory for packets, the rest for the drivers' rings.
    let buffers = document.memory * (1 << 20) / 2 / BUFFER;
    let buffers = buffers.saturating_sub(INJECT_BUFFERS).max(INJECT_BUFFERS);
    let pool = eal.pool("packets", buffers)?;
    let opened = ports.iter().map(|port| open_port(&eal, pool, port));
    Ok((eal, opened.collect::<Result<_, StartError>>()?))
}

fn open_port(eal: &Eal, pool: Pool, port: &config::Port) -> Result<PortConfig, StartError> {
    let core = port.role == PortRole::Core;
    // The gateway's addresses towards subscribers are virtual, and the kernel behind a
    // core port joins multicast groups that the device is not told of.
    let options = PortOptions {
        mtu: core.then_some(port.mtu),
        promiscuous: true,
    };
    let open = eal.open_port(&port.device, pool, &options)?;
    info!(port = port.name, device = port.device, mac = %MacAddr(open.mac()), "port open");
    let role = match port.role {
        PortRole::Access => Role::Access {
            segments: segments(&port.segments),
        },
        PortRole::Core => Role::Core {
            instance: InstanceIndex(0),
        },
    };
    Ok(PortConfig {
        port: open,
        mac: None,
        role,
    })
}

/// Untagged frames count as VLAN 0.
fn segments(configured: &[config::Segment]) -> Vec<Segment> {
    let segments = configured.iter().zip(0..);
    segments
        .map(|(segment, id)| {
            let members = segment.s_vlans.members().map(|vlan| vlan.unwrap_or(0));
            let mut vlans: Vec<u16> = members.collect();
            vlans.sort_unstable();
            vlans.dedup();
            let runs = vlans.chunk_by(|a, b| a + 1 == *b);
            Segment {
                id,
                vlans: runs.map(|run| run[0]..=run[run.len() - 1]).collect(),
            }
        })
        .collect()
}

fn access_ports(ports: &[Port]) -> impl Iterator<Item = (PortIndex, &Port)> {
    let indexed = ports
        .iter()
        .zip(0..)
        .map(|(port, index)| (PortIndex(index), port));
    indexed.filter(|(_, port)| port.access)
}

fn layout(document: &Document, ports: &[Port]) -> Layout {
    let named =
        |(index, port): (PortIndex, &Port)| (port.name.clone().into_bytes(), (index, port.mac));
    let instances = document.network_instances.keys().zip(0..);
    Layout {
        access_ports: access_ports(ports).map(named).collect(),
        instances: instances
            .map(|(name, index)| (name.clone(), InstanceIndex(index)))
            .collect(),
        address: Some(document.address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        config::parse(text, "up.yaml").unwrap()
    }

    const GOOD: &str = "node-id: up1
address: 192.0.2.2
ports:
  - {name: a, role: access, device: net_null0, segments: [{name: x, s-vlans: '10-19,30'}, {name: y, s-vlans: 'untagged,20-29'}]}
network-instances:
  default: {device: sl-default}
";

    #[test]
    fn segments_are_ranges_of_vlans() {
        let document = document(GOOD);
        let segment = |id, vlans| Segment { id, vlans };
        assert_eq!(
            segments(&document.ports.value[0].segments),
            [
                segment(0, vec![10..=19, 30..=30]),
                segment(1, vec![0..=0, 20..=29])
            ]
        );
        let whole = segments(&config::Segment::whole_port());
        assert_eq!(whole, Segment::whole_port());
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        check(&document(GOOD)).unwrap();
        for (from, to, said) in [
            ("default: {", "red: {", "`red`: expected only `default`"),
            (
                "192.0.2.2",
                "0.0.0.0",
                "expected an address of this machine",
            ),
        ] {
            let error = check(&document(&GOOD.replace(from, to)))
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
