//! A user plane that is killed under a supervisor which holds its devices, in a network namespace of the test's own.
//! Needs root: `make unit`.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::BTreeMap;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Ends the wait for something that does not come.
const PATIENCE: Duration = Duration::from_secs(60);

fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// As much of systemd as the daemon notices.
struct Supervisor {
    socket: UnixDatagram,
    held: BTreeMap<String, OwnedFd>,
    ready: usize,
    directory: tempfile::TempDir,
}

impl Supervisor {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        socket.set_nonblocking(true).unwrap();
        std::fs::write(
            directory.path().join("up.yaml"),
            configuration(directory.path()),
        )
        .unwrap();
        std::fs::write(directory.path().join("document.yaml"), DOCUMENT).unwrap();
        Supervisor {
            socket,
            held: BTreeMap::new(),
            ready: 0,
            directory,
        }
    }

    /// Takes in what the daemon said.
    fn listen(&mut self) {
        let mut text = [0; 256];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        loop {
            let mut rights = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut text)];
            let flags = RecvFlags::empty();
            let Ok(received) = recvmsg(&self.socket, &mut parts, &mut rights, flags) else {
                return;
            };
            let said = String::from_utf8_lossy(&text[..received.bytes]).into_owned();
            let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
            self.ready += usize::from(value("READY=") == Some("1"));
            for message in rights.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    assert_eq!(value("FDSTORE="), Some("1"), "{said}");
                    let name = value("FDNAME=").unwrap();
                    self.held
                        .extend(descriptors.map(|fd| (name.to_owned(), fd)));
                }
            }
        }
    }

    /// Starts the daemon with what is held, and waits until it is ready.
    fn start(&mut self) -> Child {
        let names: Vec<&str> = self.held.keys().map(String::as_str).collect();
        let mut shell = String::new();
        for (number, held) in (3..).zip(self.held.values()) {
            rustix::io::fcntl_setfd(held, rustix::io::FdFlags::empty()).unwrap();
            shell += &format!("exec {number}<&{}; ", held.as_fd().as_raw_fd());
        }
        shell += "LISTEN_PID=$$ exec \"$0\" \"$1\"";
        let daemon = Command::new("bash")
            .args(["-c", &shell, env!("CARGO_BIN_EXE_sluice-up")])
            .arg(self.directory.path().join("up.yaml"))
            .env("LISTEN_FDS", names.len().to_string())
            .env("LISTEN_FDNAMES", names.join(":"))
            .env("NOTIFY_SOCKET", self.directory.path().join("notify"))
            .stderr(std::fs::File::create(self.directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let before = self.ready;
        let log = self.directory.path().join("log");
        let start = Instant::now();
        while self.ready == before {
            let said = std::fs::read_to_string(&log).unwrap();
            assert!(start.elapsed() < PATIENCE, "not ready: {said}");
            std::thread::sleep(Duration::from_millis(10));
            self.listen();
        }
        daemon
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }
}

fn configuration(directory: &Path) -> String {
    format!(
        "node-id: up1
address: 127.0.0.1
control-planes: [127.0.0.2]
api-socket: {directory}/up.sock
state: {directory}/state
memory: 64
initial-configuration: document.yaml
",
        directory = directory.display()
    )
}

const DOCUMENT: &str = "
ports:
  access0: {role: access, device: 'net_af_packet0,iface=acc0'}
  core0: {role: core, device: 'net_af_packet1,iface=core0', tap: sl-core0, addresses: [198.51.100.1/24]}
network-instances:
  default: {interface: sl-default, gateway: [100.64.0.1]}
";

/// What the kernel believes of both devices, and the routes that hang on them.
fn state() -> (String, String) {
    let carrier = |device| {
        let link = ip(&format!("link show {device}"));
        let flags = link.split(['<', '>']).nth(1).unwrap().to_owned();
        assert!(
            flags.contains("LOWER_UP"),
            "{device} lost its carrier: {link}"
        );
        flags
    };
    (
        format!("{} {}", carrier("sl-core0"), carrier("sl-default")),
        ip("route show"),
    )
}

#[test]
fn devices_routes_and_what_waits_in_them_survive_a_killed_user_plane() {
    std::thread::spawn(story).join().unwrap();
}

fn story() {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
        .expect("a network namespace needs root: run `make unit`");
    ip("link set lo up");
    for name in ["acc0", "core0"] {
        ip(&format!("link add {name} type veth peer name {name}-far"));
        ip(&format!("link set {name} up"));
        ip(&format!("link set {name}-far up"));
    }
    let mut supervisor = Supervisor::new();
    let mut daemon = supervisor.start();
    let names: Vec<&str> = supervisor.held.keys().map(String::as_str).collect();
    assert_eq!(names, ["tap-sl-core0", "tun-sl-default"]);
    // As a run before had announced it, and as FRR would have learned one.
    ip("route add 100.64.7.0/24 dev sl-default proto 96");
    ip("route add 203.0.113.0/24 via 198.51.100.2");
    ip("neighbour replace 198.51.100.2 lladdr 02:00:00:00:00:09 dev sl-core0");
    let before = state();

    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(state(), before);
    // Meanwhile the kernel sends to a neighbour: the frame waits in the TAP.
    let socket = UdpSocket::bind("198.51.100.1:0").unwrap();
    socket
        .send_to(b"while nobody was there", "203.0.113.5:9")
        .unwrap();
    assert_eq!(state(), before);

    let far = far_end();
    let mut daemon = supervisor.start();
    let said = supervisor.log();
    for device in ["sl-core0", "sl-default"] {
        let taken_up = said
            .lines()
            .any(|line| line.contains("taken up from the supervisor") && line.contains(device));
        assert!(taken_up, "{device}: {said}");
    }
    assert_eq!(state(), before, "and the route of the run before is kept");
    eventually("the frame that waited leaves at the core port", || {
        let mut frame = [0; 2048];
        let length = (&far).read(&mut frame).unwrap_or(0);
        frame[..length].ends_with(b"while nobody was there")
    });
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    // Whoever kept nothing opens the devices anew.
    supervisor.held.clear();
    let mut daemon = supervisor.start();
    assert_eq!(supervisor.held.len(), 2);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

/// Reads what leaves at the core port.
fn far_end() -> std::fs::File {
    use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, eth, socket_with};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let all: Option<Protocol> = Some(eth::ALL);
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, all).unwrap();
    std::fs::File::from(socket)
}
