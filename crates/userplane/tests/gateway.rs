//! A whole user plane against a control plane made of `pfcp::Node`, in a network namespace
//! of the test's own. The ports are DPDK's net_af_packet on TAPs whose other ends the test
//! holds, so it sees every frame. Needs root: `make unit`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::UserPlaneDocument;
use northbound::TrafficPolicyState::{InForce, Missing};
use northbound::{
    DenialReason, DirectionPolicy, Fault, Ledger, PolicerKind, PolicerOwner, SessionPolicy,
};
use pfcp::bng::{Circuit, DefaultSpec, Family, PoolNet, SessionSpec, Tunnel, delete, query_usage};
use pfcp::{Event, Node, Output, Role};
use policy::{Access, Bindings, FilterRules, Forwarding, Name, PacketSettings, Rate, Treatment};
use tokio::net::UdpSocket;
use userplane::configure::Management;
use userplane::device::{Device, Kind};
use wire::eth::{self, MacAddr, Tags};
use wire::pfcp::{Cause, FSeid, Message, NodeId, SessionDeletionResponse, UsageReport};
use wire::{gtpu, icmp, ipv4, nsh};

const UP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const CP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const HOME: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
const GATEWAY: MacAddr = MacAddr([2, 0x53, 0, 0, 0, 1]);
const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 2, 9]);
const HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 7);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
const SESSION: u16 = 0x1234;
/// Ends the wait for something that does not come.
const PATIENCE: Duration = Duration::from_secs(60);

fn ip(arguments: &str) -> String {
    let output = Process::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn start_file(directory: &std::path::Path) -> config::start::UserPlane {
    let text = format!(
        "node-id: up1
address: {UP}
control-planes: [{CP}]
api-socket: {directory}/up.sock
state: {directory}
memory: 64
max-sessions: 1000
workers: 2
huge-pages: false
worker-cores: none
",
        directory = directory.display()
    );
    config::parse(&text, "up.yaml").unwrap()
}

const DOCUMENT: &str = "
ports:
  access0: {role: access, device: 'net_af_packet0,iface=acc0'}
  core0:
    role: core
    device: net_af_packet1,iface=core0
    addresses: [198.51.100.1/24, '2001:db8:1::1/64']
network-instances:
  default: {interface: sl-default, gateway: [100.64.0.1, '2001:db8:64::1']}
acls:
  base:
    count: true
    rules: {10: permit udp from any to any 53, 20: deny udp from any to any 25}
  silent:
    rules: {5: permit ip from any to any}
policies:
  home-up: {acls: [base], unmatched: deny}
";

/// A control plane without a mind of its own.
struct ControlPlane {
    node: Node,
    pfcp: UdpSocket,
    gtpu: UdpSocket,
    origin: Instant,
    events: Vec<Event>,
}

impl ControlPlane {
    async fn new() -> Self {
        let config = pfcp::Config::new(Role::Control, NodeId::Fqdn("cp1".into()), 3_900_000_000);
        let mut node = Node::new(config);
        node.add_peer(Duration::ZERO, up());
        Self {
            node,
            pfcp: UdpSocket::bind((CP, wire::pfcp::PORT)).await.unwrap(),
            gtpu: UdpSocket::bind((CP, gtpu::PORT)).await.unwrap(),
            origin: Instant::now(),
            events: Vec::new(),
        }
    }

    /// Runs PFCP until an event comes that is wanted.
    async fn until<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = self.origin.elapsed();
            self.node.on_timeout(now);
            while let Some(output) = self.node.poll_output() {
                match output {
                    Output::Transmit { to, bytes } => {
                        self.pfcp.send_to(&bytes, to).await.unwrap();
                    }
                    Output::Event(event) => self.events.push(event),
                }
            }
            for event in std::mem::take(&mut self.events) {
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
            assert!(
                Instant::now() < deadline,
                "nothing came from the user plane"
            );
            let mut buffer = [0; 4096];
            let received = self.pfcp.recv_from(&mut buffer);
            let received = tokio::time::timeout(Duration::from_millis(100), received).await;
            if let Ok(Ok((length, from))) = received {
                let now = self.origin.elapsed();
                self.node.handle_datagram(now, from, &buffer[..length]);
            }
        }
    }

    async fn ask(&mut self, seid: u64, message: impl Into<Message>) -> Message {
        let now = self.origin.elapsed();
        self.node.request(now, up(), seid, message, 1).unwrap();
        self.until(|event| match event {
            Event::Response { message, .. } => Some(message.clone()),
            Event::Failed { reason, .. } => panic!("{reason:?}"),
            _ => None,
        })
        .await
    }

    async fn establish(&mut self, message: impl Into<Message>) -> u64 {
        match self.ask(0, message).await {
            Message::SessionEstablishmentResponse(response) => {
                assert_eq!(response.cause, Cause::REQUEST_ACCEPTED, "{response:?}");
                response.up_f_seid.unwrap().seid
            }
            other => panic!("{other:?}"),
        }
    }

    async fn receive_gtpu(&self) -> (u32, Vec<u8>) {
        let mut buffer = [0; 4096];
        let received = tokio::time::timeout(PATIENCE, self.gtpu.recv_from(&mut buffer));
        let (length, from) = received.await.expect("a packet in a tunnel").unwrap();
        assert_eq!(from, SocketAddr::new(UP, gtpu::PORT));
        match gtpu::Packet::parse(&buffer[..length]).unwrap() {
            gtpu::Packet::Gpdu { teid, payload } => (teid, payload.to_vec()),
            gtpu::Packet::ErrorIndication { teid, .. } => (teid, b"error indication".to_vec()),
            other => panic!("{other:?}"),
        }
    }

    async fn send_gtpu(&self, teid: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        gtpu::emit_gpdu(teid, payload, &mut bytes).unwrap();
        self.gtpu.send_to(&bytes, (UP, gtpu::PORT)).await.unwrap();
    }
}

fn up() -> SocketAddr {
    SocketAddr::new(UP, wire::pfcp::PORT)
}

fn default_spec() -> DefaultSpec {
    let net = |slot, text: &str| PoolNet {
        slot,
        network_instance: "default".into(),
        net: text.parse().unwrap(),
    };
    DefaultSpec {
        node_id: NodeId::Fqdn("cp1".into()),
        cp_f_seid: FSeid::new(1, CP),
        logical_port: Some(b"access0".to_vec()),
        uplink: Tunnel {
            teid: 0x11,
            address: CP,
        },
        downlink: Some(Tunnel {
            teid: 0x12,
            address: UP,
        }),
        nets: vec![net(0, "100.64.0.0/24"), net(1, "2001:db8:64::/56")],
    }
}

fn session_spec() -> SessionSpec {
    SessionSpec {
        node_id: NodeId::Fqdn("cp1".into()),
        cp_f_seid: FSeid::new(2, CP),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags::NONE,
            mac: HOME,
            gateway_mac: GATEWAY,
        },
        access: Access::Pppoe(SESSION),
        subscriber: Some(1),
        uplink: Tunnel {
            teid: 0x21,
            address: CP,
        },
        downlink: Tunnel {
            teid: 0x22,
            address: UP,
        },
        forwarding: Forwarding::new(
            Bindings::of(Some(HOME_ADDRESS), None),
            Treatment {
                network_instance: "default".into(),
                packets: PacketSettings::with_mtu(1492),
                ..Default::default()
            },
        ),
        urr_id: 1,
        usage_period: None,
        echo_magic: None,
    }
}

fn frame(destination: MacAddr, source: MacAddr, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    eth::Header {
        destination,
        source,
        tags: Tags::NONE,
        ethertype,
    }
    .emit(&mut out);
    out.extend_from_slice(payload);
    out.resize(out.len().max(60), 0);
    out
}

/// A PPPoE data frame of the home with an IPv4 packet.
fn from_home(packet: &[u8]) -> Vec<u8> {
    let mut payload = vec![0x11, 0x00];
    payload.extend_from_slice(&SESSION.to_be_bytes());
    payload.extend_from_slice(&(packet.len() as u16 + 2).to_be_bytes());
    payload.extend_from_slice(&[0x00, 0x21]);
    payload.extend_from_slice(packet);
    frame(GATEWAY, HOME, eth::PPPOE_SESSION, &payload)
}

fn packet(
    ttl: u8,
    protocol: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    payload: &[u8],
) -> Vec<u8> {
    let header = ipv4::Header {
        ttl,
        ..ipv4::Header::new(protocol, source, destination)
    };
    let mut out = Vec::new();
    ipv4::Packet {
        header,
        options: &[],
        payload,
    }
    .emit(&mut out);
    out
}

/// Reads frames at the test's end of a port until one is wanted.
async fn expect<T>(port: &Device, what: &str, wanted: impl Fn(&eth::Frame<'_>) -> Option<T>) -> T {
    let mut buffer = [0; 4096];
    let search = async {
        loop {
            port.readable().await.unwrap();
            if let Ok(length) = port.try_read(&mut buffer)
                && let Ok(frame) = eth::Frame::parse(&buffer[..length])
                && let Some(found) = wanted(&frame)
            {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, search).await;
    found.unwrap_or_else(|_| panic!("{what} did not come"))
}

/// An IPv4 packet in PPPoE for the home.
fn to_home(frame: &eth::Frame<'_>) -> Option<Vec<u8>> {
    let ours = frame.header.ethertype == eth::PPPOE_SESSION && frame.header.destination == HOME;
    let data = ours && frame.payload.get(6..8) == Some(&[0x00, 0x21]);
    data.then(|| frame.payload[8..].to_vec())
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn announced() -> String {
    ip("route show proto 96") + &ip("-6 route show proto 96")
}

#[test]
fn a_subscriber_is_carried_from_discovery_to_deletion() {
    let thread = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
            .expect("a network namespace needs root: run `make unit`");
        ip("link set lo up");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(scenario());
    });
    thread.join().unwrap();
}

async fn scenario() {
    let directory = tempfile::tempdir().unwrap();
    let document = start_file(directory.path());
    let access = Device::open("acc0", Kind::Tap).unwrap();
    let core = Device::open("core0", Kind::Tap).unwrap();
    ip("link set acc0 up");
    ip("link set core0 up");
    let told: UserPlaneDocument = serde_saphyr::from_str(DOCUMENT).unwrap();
    let user_plane = userplane::start(&document, Some(&told), Box::new(|_| {}));
    let user_plane = user_plane.await.unwrap();
    let management = user_plane.management();
    ip("neigh replace 198.51.100.9 lladdr 02:00:00:00:02:09 dev sl-core0");
    ip("route add default via 198.51.100.9");

    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = user_plane.run(async { drop(stopped.await) });
    let story = async {
        let mut cp = ControlPlane::new().await;
        story(&mut cp, &access, &core, &document.api_socket).await;
        filtered(&mut cp, &access, &management, &told, &document.api_socket).await;
        filtered_by_own_rules(&mut cp, &access, &document.api_socket).await;
        a_port_goes(&mut cp, &management, told, &document.api_socket).await;
        stop.send(()).unwrap();
    };
    let (ended, ()) = tokio::join!(running, story);
    ended.unwrap();
    assert_eq!(announced(), "");
    let links = ip("link show");
    assert!(
        links.contains("sl-core0") && links.contains("sl-default"),
        "{links}"
    );
}

async fn story(cp: &mut ControlPlane, access: &Device, core: &Device, api: &Path) {
    cp.until(|event| matches!(event, Event::AssociationUp { .. }).then_some(()))
        .await;
    let default = cp.establish(default_spec().establish().0).await;
    eventually("nets are announced", || {
        let shown = announced();
        shown.contains("100.64.0.0/24") && shown.contains("2001:db8:64::/56")
    })
    .await;
    discovery(cp, access).await;

    let spec = session_spec();
    let seid = cp.establish(spec.establish_control()).await;
    control(cp, access).await;
    let modified = cp.ask(seid, spec.add_family(Family::Ipv4).unwrap()).await;
    assert_eq!(modified.cause(), Some(Cause::REQUEST_ACCEPTED));
    let (up, down) = data(access, core).await;
    let reported = match cp.ask(seid, query_usage(1)).await {
        Message::SessionModificationResponse(response) => response.usage_reports,
        other => panic!("{other:?}"),
    };
    check_usage(&reported, up, down);
    moved(cp, access, core, seid, api).await;
    gateway_itself(access).await;
    ledger(api).await;
    shown(api).await;

    let Message::SessionDeletionResponse(SessionDeletionResponse { cause, .. }) =
        cp.ask(seid, delete()).await
    else {
        panic!("another answer")
    };
    assert_eq!(cause, Cause::REQUEST_ACCEPTED);
    cp.send_gtpu(0x22, b"to nobody").await;
    assert_eq!(
        cp.receive_gtpu().await,
        (0x22, b"error indication".to_vec())
    );
    assert_eq!(
        cp.ask(default, delete()).await.cause(),
        Some(Cause::REQUEST_ACCEPTED)
    );
    eventually("prefixes are withdrawn", || announced().is_empty()).await;
    // Left for the clean exit.
    cp.establish(default_spec().establish().0).await;
    eventually("nets are announced again", || {
        announced().contains("100.64.0.0/24")
    })
    .await;
}

/// A session whose packets pass a policy in one direction, and should pass one that nobody defines in the other.
async fn filtered(
    cp: &mut ControlPlane,
    access: &Device,
    management: &Management,
    told: &UserPlaneDocument,
    api: &Path,
) {
    let mut spec = session_spec();
    spec.forwarding.policies = policy::TrafficPolicies {
        policy_up: Name::new("home-up"),
        policy_down: Name::new("nowhere"),
        filter_rules: None,
    };
    spec.forwarding.packets.rate_up = Rate::new(50_000);
    spec.forwarding.packets.rate_down = Rate::new(50_000);
    let seid = cp.establish(spec.establish_control()).await;
    let modified = cp.ask(seid, spec.add_family(Family::Ipv4).unwrap()).await;
    assert_eq!(modified.cause(), Some(Cause::REQUEST_ACCEPTED));
    let mut mi = mi::Client::new(&mi::Endpoint::Unix(api.to_owned()), None).unwrap();
    in_force(&mut mi).await;
    mi.watch_rules(place(), 60).await.unwrap();
    access.try_write(&udp(53)).unwrap();
    access.try_write(&udp(25)).unwrap();
    let up = denied(&mut mi, 1).await;
    assert_eq!(hits(&up), [("base", 10, 1, 28), ("base", 20, 1, 28)]);
    assert_eq!((&*up.name, up.state()), ("home-up", InForce));
    assert_eq!((up.denied_octets, up.exceeded_packets), (28, 0));
    let compiled = up.compiled.unwrap();
    assert_eq!((compiled.rules, compiled.ipv4.unwrap().rules), (2, 2));
    assert!(compiled.octets > compiled.ipv6.unwrap().octets);
    let denial = up.last_denial.unwrap();
    assert_eq!(denial.reason(), DenialReason::Rule);
    let text = "deny udp from any to any 25";
    assert_eq!(
        (&*denial.acl, denial.rule, &*denial.text),
        ("base", 20, text)
    );
    let rate = up.policers.first().unwrap();
    assert_eq!(
        (rate.owner(), rate.kind()),
        (PolicerOwner::Session, PolicerKind::SingleBucket)
    );
    assert!(rate.committed_rate.abs_diff(50_000_000) < 1000, "{rate:?}");
    let policy = session_policy(&mut mi).await;
    assert_eq!(policy.worker, Some(1), "the segment was moved there");
    let down = policy.down.unwrap();
    assert!(down.drops_all && down.state() == Missing, "{down:?}");
    assert!(
        down.compiled.is_none() && down.policers.is_empty(),
        "{down:?}"
    );
    policies_are_shown(&mut mi).await;

    // another document: what was counted stays, and the rule that denied is not mistaken for another one
    let mut changed = told.clone();
    let acl = Arc::make_mut(changed.acls.get_mut("base").unwrap());
    let deny = acl.rules.remove(&20).unwrap();
    acl.rules.insert(5, deny);
    acl.rules.remove(&10);
    acl.rules.extend(told.acls["base"].rules.clone());
    management.reconfigure(changed).await.unwrap();
    let begun = Instant::now();
    while mi.policies().await.unwrap()[0].state() != InForce {
        assert!(begun.elapsed() < PATIENCE, "the policy is not compiled");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(counted(&mut mi).await, [(5, 0), (10, 1), (20, 1)]);
    let denial = denied(&mut mi, 1).await.last_denial.unwrap();
    assert_eq!(
        (denial.reason(), &*denial.acl),
        (DenialReason::Replaced, "")
    );
    let now = in_force(&mut mi).await.compiled.unwrap();
    assert_eq!((now.number, now.rules), (compiled.number, 3));
    assert_ne!(now.compilation, compiled.compilation);
    access.try_write(&udp(80)).unwrap();
    let up = denied(&mut mi, 2).await;
    assert_eq!(hits(&up), [("", 0, 1, 28)], "of the changed policy");
    assert_eq!(up.last_denial.unwrap().reason(), DenialReason::Unmatched);
    mi.watch_rules(place(), 0).await.unwrap();
    assert_eq!(session_policy(&mut mi).await.up.unwrap().rule_watch, None);
    mi.watch_rules(place(), 60).await.unwrap();

    assert_eq!(
        cp.ask(seid, delete()).await.cause(),
        Some(Cause::REQUEST_ACCEPTED)
    );
    let gone = mi.session_policy(place()).await.unwrap_err();
    assert!(mi::is_absent(&gone), "{gone}");
    let gone = mi.watch_rules(place(), 60).await.unwrap_err();
    assert!(mi::is_absent(&gone), "{gone}");
}

/// Hits of a session that is watched: ACL, number of the rule, packets and octets.
fn hits(of: &DirectionPolicy) -> Vec<(&str, u32, u64, u64)> {
    let hits = of.rule_watch.iter().flat_map(|watch| &watch.hits);
    hits.map(|hits| (&*hits.acl, hits.rule, hits.packets, hits.octets))
        .collect()
}

/// A datagram of the home to a port of the server.
fn udp(port: u16) -> Vec<u8> {
    let ports = [[0, 9], port.to_be_bytes(), [0, 8], [0, 0]].concat();
    from_home(&packet(64, ipv4::UDP, HOME_ADDRESS, SERVER, &ports))
}

/// A session with rules of its own. Without ACLs behind them, the last one says what becomes of other packets.
async fn filtered_by_own_rules(cp: &mut ControlPlane, access: &Device, api: &Path) {
    let rules = |texts: &[&str]| FilterRules::new(&texts.join("\0"));
    let mut spec = session_spec();
    let first = [
        "deny in udp from any to any 25",
        "permit in udp from any to any 53",
    ];
    spec.forwarding.policies.filter_rules = rules(&first);
    let seid = cp.establish(spec.establish_control()).await;
    let modified = cp.ask(seid, spec.add_family(Family::Ipv4).unwrap()).await;
    assert_eq!(modified.cause(), Some(Cause::REQUEST_ACCEPTED));
    let mut mi = mi::Client::new(&mi::Endpoint::Unix(api.to_owned()), None).unwrap();
    in_force(&mut mi).await;
    access.try_write(&udp(53)).unwrap();
    access.try_write(&udp(25)).unwrap();
    let up = denied(&mut mi, 1).await;
    assert_eq!(up.rule_watch, None, "it ended with the session before");
    mi.watch_rules(place(), 60).await.unwrap();
    assert_eq!(up.name, "NAS-Filter-Rule");
    let denial = up.last_denial.unwrap();
    assert_eq!(
        (&*denial.acl, denial.rule, &*denial.text),
        ("", 1, first[0])
    );
    access.try_write(&udp(80)).unwrap();
    let denial = denied(&mut mi, 2).await.last_denial.unwrap();
    assert_eq!(denial.reason(), DenialReason::Unmatched);
    assert!(session_policy(&mut mi).await.down.is_none());

    let told = spec.told();
    let second = "deny in udp from any to any 53";
    spec.forwarding.policies.filter_rules = rules(&[second]);
    let changed = cp.ask(seid, spec.change_from(&told).unwrap()).await;
    assert_eq!(changed.cause(), Some(Cause::REQUEST_ACCEPTED));
    let before = in_force(&mut mi).await.denied_packets;
    access.try_write(&udp(80)).unwrap();
    access.try_write(&udp(53)).unwrap();
    let up = denied(&mut mi, before + 1).await;
    let shown = hits(&up);
    assert_eq!(shown, [("", 1, 1, 28), ("", 0, 1, 28)], "of the new rules");
    assert_eq!(up.last_denial.unwrap().text, second, "only that is denied");

    let told = spec.told();
    spec.forwarding.policies.filter_rules = rules(&["deny in udp from any to any 80 fast"]);
    let refused = cp.ask(seid, spec.change_from(&told).unwrap()).await;
    assert_eq!(refused.cause(), Some(Cause::RULE_CREATION_FAILURE));
    let gone = cp.ask(seid, delete()).await.cause();
    assert_eq!(gone, Some(Cause::REQUEST_ACCEPTED));
}

/// The policy of packets from the home, once it is in force.
async fn in_force(mi: &mut mi::Client) -> DirectionPolicy {
    let begun = Instant::now();
    loop {
        let up = session_policy(mi).await.up.unwrap();
        if up.state() == InForce {
            return up;
        }
        assert!(begun.elapsed() < PATIENCE, "{up:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Where the session is.
fn place() -> mi::GetSessionPolicyRequest {
    mi::GetSessionPolicyRequest {
        port: "access0".into(),
        s_tag: None,
        c_tag: None,
        mac: HOME.to_string(),
        pppoe_session_id: SESSION.into(),
    }
}

async fn session_policy(mi: &mut mi::Client) -> SessionPolicy {
    mi.session_policy(place()).await.unwrap()
}

/// What happened to packets of the home, once so many were denied.
async fn denied(mi: &mut mi::Client, packets: u64) -> DirectionPolicy {
    let begun = Instant::now();
    loop {
        let up = session_policy(mi).await.up.unwrap();
        if up.denied_packets == packets {
            return up;
        }
        assert!(begun.elapsed() < PATIENCE, "{up:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Numbers of the rules of an ACL with the packets that they matched.
async fn counted(mi: &mut mi::Client) -> Vec<(u32, u64)> {
    let listed = mi.acl_rules("base".into(), None).await.unwrap();
    assert!(!listed.more);
    let rows = listed.rules.iter();
    rows.map(|row| (row.number, row.packets.unwrap())).collect()
}

async fn policies_are_shown(mi: &mut mi::Client) {
    assert_eq!(counted(mi).await, [(10, 1), (20, 1)]);
    let silent = mi.acl_rules("silent".into(), None).await.unwrap().rules;
    assert_eq!((silent[0].number, silent[0].packets), (5, None));
    let behind = mi.acl_rules("silent".into(), silent.first().cloned()).await;
    assert!(behind.unwrap().rules.is_empty());
    let unknown = mi.acl_rules("bse".into(), None).await.unwrap_err();
    let why = "ACL `bse` does not exist. There is: base, silent";
    assert_eq!((unknown.message(), mi::is_absent(&unknown)), (why, true));

    let policies = mi.policies().await.unwrap();
    let rows: Vec<_> = policies
        .iter()
        .map(|row| (&*row.name, row.state(), row.rules, row.sessions))
        .collect();
    assert_eq!(
        rows,
        [("home-up", InForce, 2, 1), ("nowhere", Missing, 0, 1)]
    );
    assert!(policies[0].octets.is_some_and(|octets| octets > 0));
    assert_eq!(policies[1].octets, None);
}

/// An access port that is taken away ends its sessions, whatever the control plane thinks of it; put back, it is a new one.
async fn a_port_goes(
    cp: &mut ControlPlane,
    management: &Management,
    told: UserPlaneDocument,
    api: &Path,
) {
    let seid = cp.establish(session_spec().establish_control()).await;
    let mut without = told.clone();
    without.ports.remove("access0");
    management.reconfigure(without).await.unwrap();
    let gone = cp.ask(seid, delete()).await.cause();
    assert_eq!(gone, Some(Cause::SESSION_CONTEXT_NOT_FOUND));
    eventually("prefixes are withdrawn", || announced().is_empty()).await;
    assert!(check_ledger(api, false).await.is_balanced());
    let refused = cp.ask(0, session_spec().establish_control()).await;
    assert_eq!(refused.cause(), Some(Cause::RULE_CREATION_FAILURE));

    management.reconfigure(told).await.unwrap();
    cp.establish(default_spec().establish().0).await;
    cp.establish(session_spec().establish_control()).await;
    eventually("nets are announced again", || {
        announced().contains("100.64.0.0/24")
    })
    .await;
    let ledger = check_ledger(api, false).await;
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    assert_eq!(ledger.held("session"), 1);
}

/// Discovery up with the port's name, its answer down without any session.
async fn discovery(cp: &ControlPlane, access: &Device) {
    let padi = frame(
        MacAddr::BROADCAST,
        HOME,
        eth::PPPOE_DISCOVERY,
        &[0x11, 9, 0, 0, 0, 0],
    );
    access.try_write(&padi).unwrap();
    let (teid, payload) = cp.receive_gtpu().await;
    assert_eq!(teid, 0x11);
    let received = nsh::Packet::parse(&payload).unwrap();
    assert_eq!(
        (received.logical_port, received.frame),
        (&b"access0"[..], &padi[..])
    );

    let pado = frame(HOME, GATEWAY, eth::PPPOE_DISCOVERY, &[0x11, 7, 0, 0, 0, 0]);
    let mut wrapped = Vec::new();
    nsh::Packet {
        logical_port: b"access0",
        frame: &pado,
    }
    .emit(&mut wrapped)
    .unwrap();
    cp.send_gtpu(0x12, &wrapped).await;
    expect(access, "the PADO", |frame| {
        (frame.payload.get(1) == Some(&7)).then_some(())
    })
    .await;
}

/// Control packets of the session through its own tunnel.
async fn control(cp: &ControlPlane, access: &Device) {
    let mut lcp = vec![0x11, 0];
    lcp.extend_from_slice(&SESSION.to_be_bytes());
    lcp.extend_from_slice(&[0, 6, 0xc0, 0x21, 1, 1, 0, 4]);
    let request = frame(GATEWAY, HOME, eth::PPPOE_SESSION, &lcp);
    access.try_write(&request).unwrap();
    let (teid, payload) = cp.receive_gtpu().await;
    assert_eq!((teid, &payload), (0x21, &request));
    let answer = frame(HOME, GATEWAY, eth::PPPOE_SESSION, &lcp);
    cp.send_gtpu(0x22, &answer).await;
    expect(access, "the LCP packet", |frame| {
        (frame.header.source == GATEWAY && frame.payload.starts_with(&lcp)).then_some(())
    })
    .await;
}

/// Data up and down; returns the octets of each.
async fn data(access: &Device, core: &Device) -> (u64, u64) {
    let up = packet(64, ipv4::UDP, HOME_ADDRESS, SERVER, &[7; 100]);
    access.try_write(&from_home(&up)).unwrap();
    let routed = expect(core, "the packet of the home", |frame| {
        let ours = frame.header.ethertype == eth::IPV4;
        let packet = ipv4::Packet::parse(frame.payload).ok().filter(|_| ours)?;
        (packet.header.source == HOME_ADDRESS).then_some((frame.header, packet.header.ttl))
    })
    .await;
    assert_eq!((routed.0.destination, routed.1), (ROUTER, 63));

    let down = packet(64, ipv4::UDP, SERVER, HOME_ADDRESS, &[8; 200]);
    core.try_write(&frame(routed.0.source, ROUTER, eth::IPV4, &down))
        .unwrap();
    let delivered = expect(access, "the packet for the home", to_home).await;
    let delivered = ipv4::Packet::parse(&delivered).unwrap();
    assert_eq!(
        (delivered.header.source, delivered.payload),
        (SERVER, &[8; 200][..])
    );
    (up.len() as u64, down.len() as u64)
}

/// The session's VLAN goes to the other worker, further on, and back: packets find it there, and all of them are counted.
async fn moved(cp: &mut ControlPlane, access: &Device, core: &Device, seid: u64, api: &Path) {
    let mut mi = mi::Client::new(&mi::Endpoint::Unix(api.to_owned()), None).unwrap();
    let to = |worker, s_tag| mi::MoveAggregateRequest {
        port: "access0".into(),
        segment: "all".into(),
        s_tag,
        worker,
    };
    // its PPPoE session id is of worker 0
    for (worker, s_tag, sessions) in [
        (0, None, 0),
        (1, Some(0), 1),
        (1, None, 0),
        (0, Some(0), 1),
        (1, Some(100), 0),
        (1, None, 1),
    ] {
        let moved = mi.move_aggregate(to(worker, s_tag)).await.unwrap();
        assert_eq!(moved.sessions, sessions, "to {worker}");
        let (up, down) = data(access, core).await;
        let reported = match cp.ask(seid, query_usage(1)).await {
            Message::SessionModificationResponse(response) => response.usage_reports,
            other => panic!("{other:?}"),
        };
        check_usage(&reported, up, down);
        let ledger = check_ledger(api, false).await;
        assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    }
    let nowhere = [
        to(2, None),
        to(0, Some(4096)),
        mi::MoveAggregateRequest {
            segment: "some".into(),
            ..to(0, None)
        },
        mi::MoveAggregateRequest {
            port: "core0".into(),
            ..to(0, None)
        },
    ];
    for request in nowhere {
        let refused = mi.move_aggregate(request).await.unwrap_err();
        assert!(mi::is_absent(&refused), "{refused}");
    }
}

fn check_usage(reports: &[UsageReport], up: u64, down: u64) {
    let [report] = reports else {
        panic!("{reports:?}")
    };
    let volume = report.volume.unwrap();
    assert_eq!(
        (volume.uplink_octets, volume.downlink_octets),
        (Some(up), Some(down))
    );
    assert_eq!(
        (volume.uplink_packets, volume.downlink_packets),
        (Some(1), Some(1))
    );
}

async fn check_ledger(api: &Path, repair: bool) -> Ledger {
    let api = api.to_owned();
    let ask = move || {
        let mut user_plane = mi::blocking::Client::connect(&api, PATIENCE)?;
        user_plane.check_ledger(repair)
    };
    tokio::task::spawn_blocking(ask).await.unwrap().unwrap()
}

/// What an operator is shown: two neighbours by address, those behind one, and every counter with its meaning.
async fn shown(api: &Path) {
    ip("neigh replace 198.51.100.8 lladdr 02:00:00:00:02:08 dev sl-core0");
    ip("route add 192.0.2.128/25 via 198.51.100.8");
    let mut user_plane = mi::Client::new(&mi::Endpoint::Unix(api.to_owned()), None).unwrap();
    let addresses = |listed: &mi::ListNeighboursResponse| -> Vec<String> {
        let rows = listed.neighbours.iter();
        rows.map(|row| row.address.clone()).collect()
    };
    let begun = Instant::now();
    let all = loop {
        let all = user_plane.neighbours(None).await.unwrap();
        if addresses(&all) == ["198.51.100.8", "198.51.100.9"] {
            break all;
        }
        assert!(begun.elapsed() < PATIENCE, "{all:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(!all.more);
    let mut behind = all.neighbours.into_iter();
    let second = user_plane.neighbours(behind.next()).await.unwrap();
    assert_eq!(addresses(&second), ["198.51.100.9"]);
    let none = user_plane.neighbours(behind.next()).await.unwrap();
    assert!(none.neighbours.is_empty());
    ip("route del 192.0.2.128/25");

    let counters = user_plane.drops().await.unwrap();
    let names: Vec<&str> = counters.iter().map(|row| row.name.as_str()).collect();
    for name in [
        "inject-busy",
        "netlink-overrun",
        "gtpu-unknown-teid",
        "gtpu-stale-teid",
        "spoofed-source-v4",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let is_told = |row: &northbound::DropCounter| !row.name.is_empty() && !row.meaning.is_empty();
    assert!(counters.iter().all(is_told), "{counters:#?}");
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "each once");
}

/// Everything that is held has its owner, until somebody puts a route of ours into the kernel.
async fn ledger(api: &Path) {
    let ledger = check_ledger(api, false).await;
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    let kinds = [
        "session",
        "forwarding entry",
        "host route",
        "kernel route",
        "next hop",
    ];
    assert_eq!(kinds.map(|kind| ledger.held(kind)), [1, 1, 1, 2, 1]);

    ip("route add 100.99.0.0/24 dev sl-default proto 96");
    let ledger = check_ledger(api, false).await;
    let [finding] = &ledger.findings[..] else {
        panic!("{:#?}", ledger.findings)
    };
    assert_eq!(
        (&*finding.kind, finding.fault()),
        ("kernel route", Fault::WithoutOwner)
    );
    assert!(
        announced().contains("100.99.0.0/24"),
        "a check changes nothing"
    );
    let ledger = check_ledger(api, true).await;
    assert!(
        ledger.is_balanced() && ledger.findings[0].repaired,
        "{ledger:#?}"
    );
    let left = announced();
    assert!(
        !left.contains("100.99.0.0/24") && left.contains("100.64.0.0/24"),
        "{left}"
    );
}

/// The gateway's own address answers, and so does a hop limit that ends here.
async fn gateway_itself(access: &Device) {
    let gateway = Ipv4Addr::new(100, 64, 0, 1);
    let mut ping = Vec::new();
    icmp::Message::echo(icmp::V4_ECHO_REQUEST, 1, 2, b"ping").emit_v4(&mut ping);
    let request = packet(64, ipv4::ICMP, HOME_ADDRESS, gateway, &ping);
    access.try_write(&from_home(&request)).unwrap();
    let icmp_from_gateway = |kind: u8| {
        move |frame: &eth::Frame<'_>| {
            let packet = to_home(frame)?;
            let packet = ipv4::Packet::parse(&packet).ok()?;
            let message = icmp::Message::parse_v4(packet.payload).ok()?;
            (packet.header.source == gateway && message.kind == kind).then_some(())
        }
    };
    expect(
        access,
        "the echo reply",
        icmp_from_gateway(icmp::V4_ECHO_REPLY),
    )
    .await;

    let last_hop = packet(1, ipv4::UDP, HOME_ADDRESS, SERVER, &[0; 20]);
    access.try_write(&from_home(&last_hop)).unwrap();
    expect(
        access,
        "time exceeded",
        icmp_from_gateway(icmp::V4_TIME_EXCEEDED),
    )
    .await;
}
