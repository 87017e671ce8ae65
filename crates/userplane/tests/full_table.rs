//! Many routes, and more changes of them than are heard: what the dataplane is told is what the kernel has. Against the real
//! kernel, in a network namespace that lives as long as the test's thread. Needs root: `make unit`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use userplane::device::{Device, Kind};
use userplane::fib::{Command, Fib, Target};
use userplane::netlink::follower::Follower;
use userplane::netlink::request;
use userplane::netlink::socket::{Monitor, RECEIVE_BUFFER, Requester};

/// Where a route's next hops are.
type Ways = BTreeSet<String>;

const PORT: u16 = 3;
/// The routers on the core link, by the last octets of their addresses and of their MAC addresses.
const ROUTERS: std::ops::Range<u8> = 2..6;

fn ip(arguments: &str) -> String {
    let arguments = arguments.split(' ');
    let output = Process::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// `ip -batch`, which goes on where something is there already or gone.
fn batch() -> Child {
    let mut command = Process::new("ip");
    command.args(["-force", "-batch", "-"]);
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn run(lines: &str) {
    let mut child = batch();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).unwrap();
    drop(stdin);
    child.wait().unwrap();
}

/// Follows the kernel as the user plane does, and keeps what the dataplane is told.
struct Bench {
    follower: Follower,
    fib: Fib,
    begun: Instant,
    /// The core port's TAP.
    _tap: Device,
    told: BTreeMap<IpNet, Target>,
    routers: BTreeMap<u32, String>,
    groups: BTreeMap<u32, Vec<u32>>,
    changes: u64,
}

impl Bench {
    fn new(room: usize) -> Self {
        let monitor = Monitor::open(room).unwrap();
        let tap = Device::open("t-core0", Kind::Tap).unwrap();
        let mut requester = Requester::open().unwrap();
        for address in ["198.51.100.1/24", "2001:db8:1::1/64"] {
            let request = request::add_address(tap.index(), address.parse().unwrap());
            requester.request(request).unwrap();
        }
        requester.request(request::link_up(tap.index())).unwrap();
        for n in ROUTERS {
            for address in [format!("198.51.100.{n}"), format!("2001:db8:1::{n}")] {
                let mac = format!("02:00:00:00:00:{n:02x}");
                ip(&format!(
                    "neigh replace {address} lladdr {mac} dev t-core0 nud permanent"
                ));
            }
        }
        Self {
            follower: Follower::new(monitor),
            // The TUN's place is taken by a link that is not there.
            fib: Fib::new([(tap.index(), PORT)].into(), u32::MAX),
            begun: Instant::now(),
            _tap: tap,
            told: BTreeMap::new(),
            routers: BTreeMap::new(),
            groups: BTreeMap::new(),
            changes: 0,
        }
    }

    /// One turn of the loop. Whether there was something to do within this time.
    async fn turn(&mut self, patience: Duration) -> bool {
        let now = self.begun.elapsed();
        let busy = self.follower.is_reading()
            || self.follower.read_at().is_some()
            || self.fib.is_sweeping();
        let patience = if busy { Duration::ZERO } else { patience };
        let change = tokio::time::timeout(patience, self.follower.next()).await;
        let heard = change.is_ok();
        if let Ok(change) = change {
            self.follower
                .take(now, change.unwrap(), Some(&mut self.fib));
        }
        self.follower.read(now, Some(&mut self.fib));
        if !self.follower.is_reading() {
            self.fib.sweep(512);
        }
        for command in self.fib.take_commands() {
            self.obey(now, command);
        }
        busy || heard
    }

    fn obey(&mut self, now: Duration, command: Command) {
        match command {
            Command::SetRoute(net, target) => {
                self.changes += 1;
                self.told.insert(net, target);
            }
            Command::RemoveRoute(net) => {
                self.changes += 1;
                self.told.remove(&net).expect("it was told");
            }
            Command::SetAdjacency { id, mac, .. } => {
                let router = mac.map_or("?".into(), |mac| mac[5].to_string());
                self.routers.insert(id, router);
            }
            Command::RemoveAdjacency(id) => drop(self.routers.remove(&id)),
            Command::SetGroup(id, members) => drop(self.groups.insert(id, members)),
            Command::RemoveGroup(id) => drop(self.groups.remove(&id)),
            Command::Resync => self.follower.read_again(now),
            _ => {}
        }
    }

    async fn settle(&mut self) {
        while self.turn(Duration::from_millis(300)).await {}
    }

    /// Where the dataplane was told that prefixes lead, by their routers; links' own nets and neighbours are left out.
    fn told(&self) -> BTreeMap<IpNet, Ways> {
        let router = |id: &u32| self.routers[id].clone();
        let all = self.told.iter().filter_map(|(net, target)| {
            let routers = match target {
                Target::Adjacency(id) => [router(id)].into(),
                Target::Group(id) => self.groups[id].iter().map(router).collect(),
                _ => return None,
            };
            Some((*net, routers))
        });
        all.filter(|(net, _)| !is_router(net)).collect()
    }
}

fn is_router(net: &IpNet) -> bool {
    let links = ["198.51.100.0/24", "2001:db8:1::/64"].map(|net| net.parse::<IpNet>().unwrap());
    links.iter().any(|link| link.contains(net))
}

/// How long this thread has been on a processor.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// What the kernel says of its own routes by routers.
fn kernel() -> BTreeMap<IpNet, Ways> {
    let last = |address: &serde_json::Value| {
        let address = address.as_str().unwrap();
        address.rsplit(['.', ':']).next().unwrap().to_owned()
    };
    let mut all = BTreeMap::new();
    for family in ["-4", "-6"] {
        let text = ip(&format!("{family} -json route show table main"));
        let routes: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        for route in routes {
            let net = match (route["dst"].as_str().unwrap(), family) {
                ("default", "-4") => "0.0.0.0/0".to_owned(),
                ("default", _) => "::/0".to_owned(),
                (net, _) if net.contains('/') => net.to_owned(),
                (host, "-4") => format!("{host}/32"),
                (host, _) => format!("{host}/128"),
            };
            let hops = route["nexthops"].as_array();
            let one = std::slice::from_ref(&route);
            let hops = hops.map_or(one, Vec::as_slice).iter();
            let routers: Ways = hops
                .filter(|hop| hop["gateway"].is_string())
                .map(|hop| last(&hop["gateway"]))
                .collect();
            if !routers.is_empty() {
                all.insert(net.parse().unwrap(), routers);
            }
        }
    }
    all
}

/// Runs a test in a namespace of its own: threads have their own, and what a thread starts inherits it.
fn in_a_namespace<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
            .expect("a network namespace needs root: run `make unit`");
        std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap();
        ip("link set lo up");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(test());
    });
    thread.join().unwrap();
}

/// A prefix of a table with many of them, one in ten IPv6, in no order.
fn prefix(n: u32) -> String {
    let mixed = n.wrapping_mul(0x9e37_79b1) >> 12;
    match n % 10 {
        0 => format!("2001:db8:{:x}:{:x}::/64", 0x100 + (mixed & 0xff), n / 10),
        _ => {
            let [_, a, b, _] = (n << 4).to_be_bytes();
            format!("{}.{a}.{b}.{}/28", 20 + (mixed & 0x7f), (n & 15) << 4)
        }
    }
}

/// The line that adds a route or replaces it by one with other routers.
fn set(verb: &str, n: u32, turn: u32) -> String {
    let prefix = prefix(n);
    let link = if n.is_multiple_of(10) {
        "2001:db8:1::"
    } else {
        "198.51.100."
    };
    let router = |k: u32| format!("{link}{}", 2 + (n + turn + k) % 4);
    match (n + turn) % 7 {
        0 => format!(
            "route {verb} {prefix} nexthop via {} nexthop via {}\n",
            router(0),
            router(1)
        ),
        1 if !n.is_multiple_of(10) => {
            format!("route {verb} {prefix} nhid {}\n", 100 + (n + turn) % 3)
        }
        _ => format!("route {verb} {prefix} via {}\n", router(0)),
    }
}

/// Objects: two routers, and a group of them.
fn objects() {
    run("nexthop add id 100 via 198.51.100.2 dev t-core0\n\
         nexthop add id 101 via 198.51.100.3 dev t-core0\n\
         nexthop add id 102 group 100/101\n");
}

#[test]
fn after_an_overrun_the_dataplane_has_what_the_kernel_has() {
    in_a_namespace(|| async {
        // Room for a few messages.
        let mut bench = Bench::new(8 * 1024);
        bench.settle().await;
        objects();
        let all: String = (0..100_000).map(|n| set("add", n, 0)).collect();
        let adding = std::thread::spawn(move || run(&all));
        while !adding.is_finished() {
            bench.turn(Duration::from_millis(10)).await;
        }
        bench.settle().await;
        let missed = bench.follower.overruns;
        assert!(missed > 0, "nothing was missed");
        let (told, kernel_has) = (bench.told(), kernel());
        assert!(kernel_has.len() > 90_000, "{}", kernel_has.len());
        assert!(told == kernel_has, "{:?}", difference(&told, &kernel_has));

        // They flap while the tables are read again, over and over, sometimes with room for the changes and sometimes not.
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let flapping = std::thread::spawn(move || {
            let mut turn = 1;
            while !until.load(Ordering::Relaxed) {
                let some = || (0..100_000_u32).step_by(37).map(|n| n + turn % 37);
                let gone = |n: u32| format!("route del {}\n", prefix(n));
                run(&some().map(gone).collect::<String>());
                run(&some().map(|n| set("add", n, turn)).collect::<String>());
                run(&some()
                    .map(|n| set("replace", n, turn + 1))
                    .collect::<String>());
                let member = 100 + turn % 2;
                run(&format!("nexthop replace id 102 group {member}\n"));
                run("nexthop replace id 102 group 100/101\n");
                turn += 1;
            }
            turn
        });
        // With no room for the changes no reading ends.
        bench.follower = Follower::new(Monitor::open(8 * 1024).unwrap());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            bench.turn(Duration::from_millis(10)).await;
        }
        bench.follower = Follower::new(Monitor::open(RECEIVE_BUFFER).unwrap());
        // A reading takes half a second, on a busy machine a minute.
        let (mut read, begun) = (0, Instant::now());
        while read < 3 && begun.elapsed() < Duration::from_secs(600) {
            let reading = bench.follower.is_reading();
            bench.turn(Duration::from_millis(10)).await;
            if reading && !bench.follower.is_reading() && bench.fib.is_sweeping() {
                read += 1;
                bench.follower.read_again(Duration::ZERO);
            }
        }
        stop.store(true, Ordering::Relaxed);
        let turns = flapping.join().unwrap();
        bench.settle().await;
        let (told, kernel_has) = (bench.told(), kernel());
        assert!(told == kernel_has, "{:?}", difference(&told, &kernel_has));
        println!(
            "{} routes; {missed} overruns while they came; read {read} times in {turns} rounds of flapping",
            told.len()
        );
        assert_eq!(read, 3, "the tables could not be read while routes flapped");
    });
}

/// The first that differ.
fn difference(
    told: &BTreeMap<IpNet, Ways>,
    kernel: &BTreeMap<IpNet, Ways>,
) -> Vec<(IpNet, Option<Ways>, Option<Ways>)> {
    let nets: BTreeSet<&IpNet> = told.keys().chain(kernel.keys()).collect();
    let differing = nets
        .into_iter()
        .filter(|net| told.get(net) != kernel.get(net));
    let shown = differing.map(|net| (*net, told.get(net).cloned(), kernel.get(net).cloned()));
    shown.take(10).collect()
}

#[test]
fn ten_thousand_changes_a_second_are_all_heard() {
    const SECONDS: u32 = 4;
    in_a_namespace(|| async {
        let mut bench = Bench::new(RECEIVE_BUFFER);
        bench.settle().await;
        objects();
        let adding = std::thread::spawn(move || {
            let mut child = batch();
            let mut stdin = child.stdin.take().unwrap();
            let begun = Instant::now();
            for hundred in 0..SECONDS * 100 {
                let lines = hundred * 100..hundred * 100 + 100;
                let lines: String = lines.map(|n| set("add", n, 0)).collect();
                stdin.write_all(lines.as_bytes()).unwrap();
                let next = Duration::from_millis(10) * (hundred + 1);
                std::thread::sleep(next.saturating_sub(begun.elapsed()));
            }
            drop(stdin);
            child.wait().unwrap();
            begun.elapsed()
        });
        let before = bench.changes;
        let processor = on_processor();
        while !adding.is_finished() {
            bench.turn(Duration::from_millis(10)).await;
        }
        let worked = on_processor() - processor;
        let took = adding.join().unwrap();
        bench.settle().await;
        let changes = bench.changes - before;
        let (told, kernel_has) = (bench.told(), kernel());
        assert!(told == kernel_has, "{:?}", difference(&told, &kernel_has));
        assert_eq!(bench.follower.overruns, 0);
        println!(
            "{changes} changes of routes in {took:.2?}: {:.0} a second, {:.1} us of work each",
            changes as f64 / took.as_secs_f64(),
            worked.as_secs_f64() * 1e6 / changes as f64
        );
    });
}
