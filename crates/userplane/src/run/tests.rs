//! A running user plane in its own network namespace: timed withdrawals, a kernel that rejects requests, and what ends the user
//! plane. DPDK starts once per process, so all are in one test.

use super::*;
use std::process::Command;
use std::sync::mpsc::channel;

/// Prefix that an earlier run announced, and that nobody requests.
const STALE: &str = "100.64.7.0/24";
/// Prefix that is requested.
const WANTED: &str = "100.64.0.0/24";
/// Prefix that the kernel rejects at first.
const REFUSED: &str = "2001:db8:7::/56";
/// How long stale prefixes are kept in this test, instead of a minute.
const KEPT: Duration = Duration::from_secs(10);

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

fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("not so after a minute: {what}");
}

#[test]
fn stale_nets_are_withdrawn_refused_ones_are_announced_later_and_a_dead_worker_ends_all() {
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
        "node-id: up1\naddress: 127.0.0.1\nmemory: 64\nmax-sessions: 1000\nhuge-pages: false\nworker-cores: none\napi-socket: {directory}/up.sock\nstate: {directory}\n",
        directory = directory.path().display()
    );
    let start = config::parse(&start, "up.yaml").unwrap();
    let document = "network-instances: {default: {interface: sl-default, gateway: [100.64.0.1]}}";
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
            .add_net(net.parse().unwrap());
    }

    let (end_worker, worker) = channel::<()>();
    let worker = std::thread::spawn(move || {
        let _ = worker.recv();
    });
    let stand_in = WorkerThreads::of(vec![worker]);
    let working = std::mem::replace(&mut user_plane.workers, stand_in);

    let running = user_plane.run(std::future::pending());
    let running = tokio::time::timeout(Duration::from_secs(150), running);
    let story = tokio::task::spawn_blocking(move || {
        // It is announced once the kernel's routes have been read.
        eventually("a net is announced", || is_announced(WANTED));
        assert!(is_announced(STALE), "it may be asked for again");
        assert!(!is_announced(REFUSED), "the kernel cannot have it");
        disable_ipv6(false);
        eventually("what was refused is announced", || is_announced(REFUSED));
        eventually("a stale net is withdrawn", || !is_announced(STALE));
        assert!(is_announced(WANTED));
        end_worker.send(()).unwrap();
    });
    let (ended, told) = tokio::join!(running, story);
    told.unwrap();
    let ended = ended.expect("it ends with its worker");
    let why = ended.unwrap_err().to_string();
    assert!(why.contains("worker"), "{why}");
    drop(working);
}
