//! A running user plane in its own network namespace: timed withdrawals, a kernel that rejects requests, and what ends the user
//! plane. DPDK starts once per process, so all are in one test.

use super::*;
use crate::device::Kind;
use std::convert::Infallible;
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};

/// Prefix that an earlier run announced, and that nobody requests.
const STALE: &str = "100.64.7.0/24";
/// Prefix that is requested.
const WANTED: &str = "100.64.0.0/24";
/// Prefix that the kernel rejects at first.
const REFUSED: &str = "2001:db8:7::/56";
/// How long stale prefixes are kept in this test, instead of a minute.
const KEPT: Duration = Duration::from_secs(10);

/// A frame that nobody wants.
const FRAME: [u8; 64] = [0xff; 64];
/// A frame that no buffer holds: the kernel drops it, and counts it as lost by the socket.
const TOO_LARGE: [u8; 2500] = [0xff; 2500];

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn is_announced(net: &str) -> bool {
    (ip("route show proto 96") + &ip("-6 route show proto 96")).contains(net)
}

/// The kernel rejects IPv6 routes to a device with IPv6 disabled.
fn disable_ipv6(disabled: bool) {
    let file = "/proc/sys/net/ipv6/conf/sl-default/disable_ipv6";
    std::fs::write(file, if disabled { "1" } else { "0" }).unwrap();
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not so after a minute: {what}");
}

/// The network's end of an access port.
fn access_network() -> File {
    let device = Device::open("access0", Kind::Tap).unwrap();
    ip("link set access0 up");
    device.as_fd().try_clone_to_owned().unwrap().into()
}

/// A thread that stands in for the worker threads until the sender is dropped.
fn stand_in() -> (Sender<()>, WorkerThreads) {
    let (end, ended) = channel();
    let thread = std::thread::spawn(move || _ = ended.recv());
    (end, WorkerThreads::of(vec![thread]))
}

#[test]
fn a_user_plane_keeps_its_announcements_and_ends_with_a_worker_or_a_port() {
    assert!(nix::unistd::geteuid().is_root(), "this test needs root");
    let thread = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        ip("link set lo up");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(run());
    });
    thread.join().unwrap();
}

async fn run() {
    let directory = tempfile::tempdir().unwrap();
    let start = format!(
        "node-id: up1\naddress: 127.0.0.1\ncontrol-planes: [127.0.0.2]\nmemory: 64\nmax-sessions: 1000\nhuge-pages: false\nworker-cores: none\napi-socket: {directory}/up.sock\nstate: {directory}\n",
        directory = directory.path().display()
    );
    let start = config::parse(&start, "up.yaml").unwrap();
    let mut network = access_network();
    let document = "network-instances: {default: {interface: sl-default, gateway: [100.64.0.1]}}
ports: {access0: {role: access, device: 'net_af_xdp0,iface=access0'}}";
    let document: UserPlaneDocument = serde_saphyr::from_str(document).unwrap();
    let started = crate::start(&start, Some(&document), Box::new(|_| {}));
    let mut user_plane = started.await.unwrap();

    let now = user_plane.clock.now().monotonic;
    let left = user_plane.end_keeping_at.unwrap() - now;
    assert!(left > KEEP_NETS / 2 && left <= KEEP_NETS);
    user_plane.end_keeping_at = Some(now + KEPT);
    ip(&format!("route add {STALE} dev sl-default proto 96"));
    disable_ipv6(true);
    for net in [WANTED, REFUSED] {
        user_plane
            .instances
            .get_mut(&dataplane::InstanceIndex(0))
            .unwrap()
            .fib
            .add_net(net.parse::<ipnet::IpNet>().unwrap());
    }

    eventually("the port receives", || {
        network.write_all(&FRAME).unwrap();
        user_plane.controller.ports()[0].rx_packets > 0
    });
    let (end_worker, threads) = stand_in();
    let working = std::mem::replace(&mut user_plane.workers, threads);
    let story = tokio::task::spawn_blocking(move || {
        // It is announced once the kernel's routes have been read.
        eventually("a net is announced", || is_announced(WANTED));
        assert!(is_announced(STALE), "it may be asked for again");
        assert!(!is_announced(REFUSED), "the kernel cannot have it");
        disable_ipv6(false);
        eventually("what was refused is announced", || is_announced(REFUSED));
        eventually("a stale net is withdrawn", || !is_announced(STALE));
        assert!(is_announced(WANTED));
        drop(end_worker);
    });
    let why = end(&mut user_plane).await;
    story.await.unwrap();
    assert!(why.contains("worker"), "{why}");

    // From now on the port loses every frame, as if its driver had stopped.
    user_plane.workers = working;
    let why = tokio::select! {
        why = end(&mut user_plane) => why,
        never = send_for_ever(network, &TOO_LARGE) => match never {},
    };
    assert!(why.contains("port access0"), "{why}");
}

async fn send_for_ever(mut network: File, frame: &[u8]) -> Infallible {
    loop {
        network.write_all(frame).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Why a user plane ends.
async fn end(user_plane: &mut UserPlane) -> String {
    let serving = user_plane.serve(std::future::pending());
    let ended = tokio::time::timeout(Duration::from_secs(150), serving).await;
    ended.expect("it ends").unwrap_err().to_string()
}
