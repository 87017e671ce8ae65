//! A whole user plane against a control plane made of `pfcp::Node`, in a network namespace
//! of the test's own. The ports are DPDK's net_af_packet on TAPs whose other ends the test
//! holds, so it sees every frame. Needs root: `make unit`.

mod control_plane;
mod policies;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::UserPlaneDocument;
use control_plane::{ControlPlane, default_spec, session_spec};
use northbound::TrafficPolicyState::{InForce, Missing};
use northbound::{
    DenialReason, DirectionPolicy, Fault, Ledger, PolicerKind, PolicerOwner, SessionPolicy,
};
use pfcp::bng::{Circuit, DefaultSpec, Family, PoolNet, SessionSpec, Tunnel, delete, query_usage};
use pfcp::{Event, Node, Output, Role};
use policies::{filtered, filtered_by_own_rules};
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
