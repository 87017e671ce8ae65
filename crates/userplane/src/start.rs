//! How a user plane comes up: everything that can fail first, what lasts at the end.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use config::{HoldSessions, PortRole, UserPlane as Document};
use dataplane::{
    Controller, InstanceIndex, Limits, PortConfig, PortIndex, PuntLimits, Role, Worker,
};
use dpdk::{Eal, EalOptions, Pool, PortOptions};
use ipnet::IpNet;
use nix::sys::socket::{setsockopt, sockopt};
use northbound::{Call, supervisor};
use rand::Rng;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::{info, warn};
use wire::eth::MacAddr;
use wire::pfcp::{BbfUpFeatures, NodeId, SluiceFeatures, UpFunctionFeatures};

use crate::compile::Layout;
use crate::cpri::Redirection;
use crate::device::{Device, Kind};
use crate::engine::{self, Engine};
use crate::fib::{Fib, MAX_ADJACENCIES};
use crate::icmp::ErrorSource;
use crate::netlink::request::{self, LinkSettings};
use crate::netlink::socket::{Monitor, Requester};
use crate::run::{Clock, Instance, Port, UserPlane};

/// The only network instance that can be served: the process's own network namespace.
const DEFAULT_INSTANCE: &str = "default";
/// A buffer of 2 KiB with its headers and the pool's share.
const BUFFER: u32 = 2432;
/// Packets that the control thread has under way.
const INJECT_BUFFERS: u32 = 2048;

/// What may wait in a socket, in octets.
const SOCKET_BUFFER: usize = 4 << 20;
/// What the kernel may send through a TUN: what a PPPoE session usually takes (RFC 2516 §7).
const TUN_MTU: u32 = 1492;

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
        ports,
        limits,
        punts: PuntLimits::default(),
    };
    let injects = eal.pool("injects", INJECT_BUFFERS)?;
    let (controller, worker) = dataplane::channel(&eal, injects, config)?;

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
    let path = &document.api_socket;
    let server = northbound::serve(path, sender);
    tokio::spawn(server.context(|| format!("local API at {}", path.display()))?);
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
        ..EalOptions::for_ports(ports.iter().map(|port| port.device.as_str()))
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

/// The dataplane's segments are single ranges, each with PPPoE session ids of its own. A
/// configured segment of several ranges becomes several of them: its ids are unique in
/// all of them together, hence in each. Untagged frames count as VLAN 0.
fn segments(configured: &[config::Segment]) -> Vec<RangeInclusive<u16>> {
    let mut vlans: Vec<u16> = configured
        .iter()
        .flat_map(|segment| segment.s_vlans.members().map(|vlan| vlan.unwrap_or(0)))
        .collect();
    vlans.sort_unstable();
    vlans.dedup();
    let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
    for vlan in vlans {
        let owner = |vlan: u16| {
            let of = |s: &config::Segment| {
                s.s_vlans.contains(Some(vlan)) || (vlan == 0 && s.s_vlans.contains(None))
            };
            configured.iter().position(of)
        };
        match ranges.last_mut() {
            Some(last) if *last.end() + 1 == vlan && owner(*last.end()) == owner(vlan) => {
                *last = *last.start()..=vlan;
            }
            _ => ranges.push(vlan..=vlan),
        }
    }
    ranges
}

/// Ports as the control thread knows them, with the TAPs of core ports.
fn describe_ports(
    document: &Document,
    described: &[(MacAddr, u16)],
    devices: &mut Devices<'_>,
) -> Result<Vec<Port>, StartError> {
    let mut ports = Vec::with_capacity(described.len());
    for (port, (mac, mtu)) in document.ports.value.iter().zip(described) {
        let tap = match &port.tap {
            None => None,
            Some(name) => {
                let settings = LinkSettings {
                    mac: Some(mac.0),
                    mtu: Some((*mtu).into()),
                    link_local: true,
                };
                Some(devices.make(name, Kind::Tap, settings, &port.addresses)?)
            }
        };
        ports.push(Port {
            name: port.name.clone(),
            device: port.device.clone(),
            access: port.role == PortRole::Access,
            mac: *mac,
            tap,
        });
    }
    Ok(ports)
}

fn make_instances(
    document: &Document,
    ports: &[Port],
    devices: &mut Devices<'_>,
) -> Result<Vec<Instance>, StartError> {
    let taps = ports
        .iter()
        .zip(0..)
        .filter_map(|(port, index)| Some((port.tap.as_ref()?.index(), index)));
    let taps: HashMap<u32, u16> = taps.collect();
    let mut instances = Vec::new();
    for (name, instance) in &document.network_instances {
        let addresses: Vec<IpNet> = instance.gateway.iter().map(|a| IpNet::from(*a)).collect();
        let settings = LinkSettings {
            mac: None,
            mtu: Some(TUN_MTU),
            link_local: false,
        };
        let tun = devices.make(&instance.device, Kind::Tun, settings, &addresses)?;
        instances.push(Instance {
            name: name.clone(),
            fib: Fib::new(taps.clone(), tun.index()),
            errors: ErrorSource::new(&instance.gateway),
            tun,
        });
    }
    Ok(instances)
}

/// Makes TAPs and TUNs, or takes up those that a supervisor held.
struct Devices<'a> {
    requester: &'a mut Requester,
    kept: BTreeMap<String, OwnedFd>,
}

impl<'a> Devices<'a> {
    fn new(requester: &'a mut Requester) -> Self {
        let kept = supervisor::kept().unwrap_or_else(|error| {
            warn!(%error, "cannot take up what the supervisor held: opening devices anew");
            BTreeMap::new()
        });
        Self { requester, kept }
    }

    fn make(
        &mut self,
        name: &str,
        kind: Kind,
        settings: LinkSettings,
        addresses: &[IpNet],
    ) -> Result<Device, StartError> {
        let device = match self.take_up(name, kind) {
            Some(device) => device,
            None => Device::open(name, kind).context(|| {
                format!("cannot make the interface {name}; if it exists, it must be a free {kind:?} device")
            })?,
        };
        let index = device.index();
        self.requester
            .request(request::configure_link(index, settings))
            .context(|| format!("cannot set MAC and MTU of {name}"))?;
        for address in addresses {
            self.requester
                .request(request::add_address(index, *address))
                .context(|| format!("cannot give {name} the address {address}"))?;
        }
        let up = self.requester.request(request::link_up(index));
        up.context(|| format!("cannot bring {name} up"))?;
        Ok(device)
    }

    fn take_up(&mut self, name: &str, kind: Kind) -> Option<Device> {
        let kept = self.kept.remove(&kind.kept_as(name))?;
        match Device::take_up(kept, name, kind) {
            Ok(device) => {
                info!(device = name, "taken up from the supervisor");
                Some(device)
            }
            Err(error) => {
                warn!(device = name, %error, "opening it anew");
                self.forget(&kind.kept_as(name));
                None
            }
        }
    }

    /// What is left is of an earlier configuration.
    fn forget_unused(mut self) {
        for name in std::mem::take(&mut self.kept).into_keys() {
            self.forget(&name);
        }
    }

    fn forget(&self, name: &str) {
        if let Err(error) = supervisor::forget(name) {
            warn!(name, %error, "the supervisor cannot be told to hold a device no longer");
        }
    }
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
    fn segments_of_several_ranges_become_several_segments() {
        let document = document(GOOD);
        let ranges = segments(&document.ports.value[0].segments);
        assert_eq!(ranges, [0..=0, 10..=19, 20..=29, 30..=30]);
        assert_eq!(segments(&config::Segment::whole_port()), [0..=4095]);
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
