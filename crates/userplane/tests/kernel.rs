//! The devices and the netlink sockets against the real kernel, in a network namespace
//! that lives as long as the test's thread. Needs root: `make unit`.

use std::net::IpAddr;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use northbound::{Fault, Ledger};
use userplane::announcement::Announcement;
use userplane::device::{Device, Kind};
use userplane::fib::{Command, Fib, Meaning, Snapshot, Target};
use userplane::netlink::request::{self, LinkSettings};
use userplane::netlink::scan::Scan;
use userplane::netlink::socket::{Change, Monitor, RECEIVE_BUFFER, Requester};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PORT: u16 = 3;
/// Ends the wait for something that does not come.
const PATIENCE: Duration = Duration::from_secs(60);

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ip(arguments: &str) -> String {
    let output = Process::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a test in a namespace of its own: threads have their own, and the processes that
/// a thread starts inherit it.
fn in_a_namespace<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
            .expect("a network namespace needs root: run `make unit`");
        ip("link set lo up");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(test());
    });
    thread.join().unwrap();
}

struct Bench {
    requester: Requester,
    monitor: Monitor,
    tap: Device,
    tun: Device,
    fib: Fib,
}

impl Bench {
    fn new() -> Self {
        let mut requester = Requester::open().unwrap();
        let monitor = Monitor::open(RECEIVE_BUFFER).unwrap();
        let tap = Device::open("t-core0", Kind::Tap).unwrap();
        let tun = Device::open("t-default", Kind::Tun).unwrap();
        let settings = LinkSettings {
            mac: Some(MAC),
            mtu: Some(1500),
            link_local: true,
        };
        requester
            .request(request::configure_link(tap.index(), settings))
            .unwrap();
        let settings = LinkSettings {
            mac: None,
            mtu: Some(1500),
            link_local: false,
        };
        requester
            .request(request::configure_link(tun.index(), settings))
            .unwrap();
        for (device, address) in [
            (&tap, "198.51.100.1/24"),
            (&tap, "2001:db8:1::1/64"),
            (&tun, "100.64.0.1/32"),
            (&tun, "2001:db8:64::1/128"),
        ] {
            requester
                .request(request::add_address(device.index(), net(address)))
                .unwrap();
            requester
                .request(request::add_address(device.index(), net(address)))
                .unwrap();
        }
        for device in [&tap, &tun] {
            requester.request(request::link_up(device.index())).unwrap();
        }
        // the kernel makes the route of an IPv6 address in its own time
        let has_route = || ip("-6 route show table local").contains("2001:db8:64::1");
        let begun = Instant::now();
        while !has_route() {
            assert!(begun.elapsed() < Duration::from_secs(10), "no route");
            std::thread::sleep(Duration::from_millis(10));
        }
        let fib = Fib::new([(tap.index(), PORT)].into(), tun.index());
        Self {
            requester,
            monitor,
            tap,
            tun,
            fib,
        }
    }

    fn read_all(&mut self) -> Vec<Command> {
        self.fib.replace(snapshot());
        while self.fib.sweep(100) {}
        self.fib.take_commands()
    }

    /// What the ledger finds, as (kind, fault, what): after two readings, between which `meanwhile` happens.
    fn ledger(&self, meanwhile: impl FnOnce()) -> Vec<(String, Fault, String)> {
        let read = || {
            let snapshot = snapshot();
            let mut reading = self.fib.read(&snapshot);
            while self.fib.read_on(&snapshot, &mut reading, 2) {}
            reading
        };
        let first = read();
        meanwhile();
        let mut second = read();
        second.confirm(&first);
        let mut meaning = Meaning::default();
        while self.fib.compare_on(&mut meaning, 2) {}
        let mut ledger = Ledger::of("up1");
        second.compare(&mut ledger);
        meaning.compare(&mut ledger);
        let findings = ledger.findings.into_iter();
        findings
            .map(|f| (f.kind.clone(), f.fault(), f.what))
            .collect()
    }

    /// Follows the kernel until a command comes.
    async fn until(&mut self, wanted: impl Fn(&Command) -> bool) -> Vec<Command> {
        let mut seen = Vec::new();
        while !seen.iter().any(&wanted) {
            let next = tokio::time::timeout(PATIENCE, self.monitor.next()).await;
            let Ok(Ok(Change::Facts(facts))) = next else {
                panic!("{next:?}; so far {seen:?}")
            };
            facts.into_iter().for_each(|fact| self.fib.apply(fact));
            seen.append(&mut self.fib.take_commands());
        }
        seen
    }
}

fn snapshot() -> Snapshot {
    let mut scan = Scan::start().unwrap();
    loop {
        while !scan.read().unwrap() {}
        if let Some(snapshot) = scan.go_on().unwrap() {
            return snapshot;
        }
    }
}

fn count(frame: &[u8], ethertype: [u8; 2]) -> bool {
    frame[12..14] == ethertype
}

#[test]
fn addresses_and_routes_of_the_kernel_are_read_and_followed() {
    in_a_namespace(|| async {
        let mut bench = Bench::new();
        let link = ip("-d link show t-core0");
        assert!(
            link.contains("02:00:00:00:00:01") && link.contains("mtu 1500"),
            "{link}"
        );
        assert!(
            !ip("-6 addr show t-default").contains("fe80"),
            "a TUN needs no link-local"
        );

        let all = [
            Command::SetRoute(net("198.51.100.0/24"), Target::OnLink(PORT)),
            Command::SetRoute(net("198.51.100.1/32"), Target::Local),
            Command::SetRoute(net("100.64.0.1/32"), Target::Local),
            Command::SetRoute(net("2001:db8:1::/64"), Target::OnLink(PORT)),
            Command::SetRoute(net("2001:db8:64::1/128"), Target::Local),
        ];
        // The kernel adds the routes of IPv6 addresses a while after the addresses.
        let (mut commands, begun) = (bench.read_all(), Instant::now());
        while let Some(missing) = all.iter().find(|expected| !commands.contains(expected)) {
            let hangs = begun.elapsed() > Duration::from_secs(60);
            assert!(!hangs, "{missing:?} is not in {commands:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            commands.extend(bench.read_all());
        }

        ip("route add 203.0.113.0/24 via 198.51.100.9");
        let commands = bench
            .until(|c| matches!(c, Command::SetRoute(n, _) if *n == net("203.0.113.0/24")))
            .await;
        assert!(commands.contains(&Command::SetAdjacency {
            id: 0,
            port: PORT,
            mac: None
        }));
        ip("neigh replace 198.51.100.9 lladdr 02:00:00:00:00:09 dev t-core0");
        let mac = Some([2, 0, 0, 0, 0, 9]);
        bench
            .until(|c| {
                *c == Command::SetAdjacency {
                    id: 0,
                    port: PORT,
                    mac,
                }
            })
            .await;
        ip("route replace 203.0.113.0/24 via 198.51.100.8");
        bench
            .until(|c| *c == Command::SetRoute(net("203.0.113.0/24"), Target::Adjacency(1)))
            .await;
        ip("route del 203.0.113.0/24");
        bench
            .until(|c| *c == Command::RemoveRoute(net("203.0.113.0/24")))
            .await;
        ip("-6 route add default nexthop via 2001:db8:1::9 nexthop via 2001:db8:1::8");
        bench
            .until(|c| matches!(c, Command::SetRoute(n, Target::Group(_)) if *n == net("::/0")))
            .await;
        ip("link set t-core0 down");
        bench.until(|c| *c == Command::Resync).await;
        assert!(
            bench
                .read_all()
                .contains(&Command::RemoveRoute(net("198.51.100.0/24")))
        );
    });
}

#[test]
fn the_kernel_resolves_a_neighbour_when_asked() {
    in_a_namespace(|| async {
        let mut bench = Bench::new();
        let address: IpAddr = "198.51.100.9".parse().unwrap();
        let tap = bench.tap.index();
        bench
            .requester
            .request(request::use_neighbour(tap, address))
            .unwrap();
        let mut frame = [0; 2048];
        let arp = tokio::time::timeout(PATIENCE, async {
            loop {
                bench.tap.readable().await.unwrap();
                if let Ok(length) = bench.tap.try_read(&mut frame)
                    && count(&frame[..length], [0x08, 0x06])
                {
                    return frame[..length].to_vec();
                }
            }
        });
        let request = arp.await.expect("an ARP request");
        assert_eq!(request[38..42], [198, 51, 100, 9]);
        // Answer it: the neighbour's MAC becomes known.
        let mut reply = request.clone();
        reply[0..6].copy_from_slice(&MAC);
        reply[21] = 2;
        reply[22..28].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        reply[28..32].copy_from_slice(&[198, 51, 100, 9]);
        reply[32..38].copy_from_slice(&MAC);
        reply[38..42].copy_from_slice(&[198, 51, 100, 1]);
        bench.tap.try_write(&reply).unwrap();
        bench.until(|c| matches!(c, Command::SetRoute(n, Target::Adjacency(_)) if *n == net("198.51.100.9/32"))).await;
    });
}

#[test]
fn subscriber_nets_are_exported_and_leftovers_withdrawn() {
    in_a_namespace(|| async {
        let mut bench = Bench::new();
        let tun = bench.tun.index();
        for pool in ["100.64.0.0/24", "2001:db8:64::/56", "100.64.9.0/24"] {
            bench
                .requester
                .request(request::export(net(pool).into(), tun))
                .unwrap();
        }
        let shown = ip("route show proto 96") + &ip("-6 route show proto 96");
        assert!(
            shown.contains("100.64.0.0/24") && shown.contains("2001:db8:64::/56"),
            "{shown}"
        );
        bench.fib.add_net(net("100.64.0.0/24"));
        let mut commands = bench.read_all();
        bench.fib.end_keeping();
        commands.extend(bench.fib.take_commands());
        assert!(
            commands.contains(&Command::Withdraw(net("100.64.9.0/24").into(), tun)),
            "{commands:?}"
        );
        assert!(commands.contains(&Command::Withdraw(net("2001:db8:64::/56").into(), tun)));
        for command in commands {
            if let Command::Withdraw(pool, link) = command {
                bench
                    .requester
                    .request(request::withdraw(pool, link))
                    .unwrap();
            }
        }
        let shown = ip("route show proto 96") + &ip("-6 route show proto 96");
        assert!(
            shown.contains("100.64.0.0/24") && !shown.contains("100.64.9.0"),
            "{shown}"
        );
        let missing = bench
            .requester
            .request(request::withdraw(net("100.64.9.0/24").into(), tun));
        assert_eq!(missing.unwrap_err().raw_os_error(), Some(libc::ESRCH));
    });
}

/// In both families: without its metric, a withdrawal of IPv6 would take the route with the smallest.
#[test]
fn a_route_with_another_metric_replaces_the_old_one_without_a_gap() {
    in_a_namespace(|| async {
        let mut bench = Bench::new();
        let tun = bench.tun.index();
        let shown = |family: &str| ip(&format!("{family} route show proto 96"));
        for (family, net) in [("-4", net("192.0.2.0/28")), ("-6", net("2001:db8:64::/56"))] {
            let mut metric = None;
            bench
                .requester
                .request(request::export(net.into(), tun))
                .unwrap();
            for next in [Some(5), Some(2000), None] {
                let (old, new) = (Announcement::new(net, metric), Announcement::new(net, next));
                bench.requester.request(request::export(new, tun)).unwrap();
                assert_eq!(shown(family).lines().count(), 2, "{}", shown(family));
                bench
                    .requester
                    .request(request::withdraw(old, tun))
                    .unwrap();
                let left = shown(family);
                assert_eq!(left.lines().count(), 1, "{left}");
                if let Some(metric) = next {
                    assert!(left.contains(&format!("metric {metric} ")), "{left}");
                }
                metric = next;
            }
        }
    });
}

#[test]
fn a_device_stays_only_when_it_is_kept() {
    in_a_namespace(|| async {
        drop(Device::open("t-gone", Kind::Tap).unwrap());
        let kept = Device::open("t-kept", Kind::Tap).unwrap();
        kept.keep().unwrap();
        drop(kept);
        let links = ip("link show");
        assert!(
            !links.contains("t-gone") && links.contains("t-kept"),
            "{links}"
        );
        // A second start attaches to it.
        let again = Device::open("t-kept", Kind::Tap).unwrap();
        assert_eq!(again.name(), "t-kept");
    });
}

#[test]
fn the_ledger_finds_what_the_kernel_has_for_nobody_and_what_it_lacks() {
    in_a_namespace(|| async {
        let mut bench = Bench::new();
        let tun = bench.tun.index();
        let announced = net("100.64.0.0/24");
        bench.fib.add_net(announced);
        let export = request::export(announced.into(), tun);
        bench.requester.request(export).unwrap();
        ip("neigh replace 198.51.100.9 lladdr 02:00:00:00:00:09 dev t-core0");
        bench.read_all();
        assert_eq!(bench.ledger(|| ()), []);

        ip("route add 100.99.0.0/24 dev t-default proto 96");
        ip("-6 route add 2001:db8:99::/56 dev t-default proto 96");
        ip("route del 100.64.0.0/24");
        ip("route add 203.0.113.0/24 via 198.51.100.9");
        ip("neigh del 198.51.100.9 dev t-core0");
        ip("link set t-core0 up");
        // what only the second reading shows may be on its way to us
        let found = bench.ledger(|| drop(ip("route add 192.0.2.0/24 via 198.51.100.9")));
        let of = |kind: &str, fault, what: String| (kind.to_owned(), fault, what);
        let stray = |net: &str| {
            of(
                "kernel route",
                Fault::WithoutOwner,
                format!("{net} on link {tun}"),
            )
        };
        let tap = bench.tap.index();
        assert_eq!(
            found,
            [
                of(
                    "kernel route",
                    Fault::Missing,
                    format!("{announced} on link {tun}")
                ),
                stray("100.99.0.0/24"),
                stray("2001:db8:99::/56"),
                of("mirrored route", Fault::Missing, "203.0.113.0/24".into()),
                of(
                    "mirrored neighbour",
                    Fault::WithoutOwner,
                    format!("198.51.100.9 on link {tap}")
                ),
            ]
        );
        // the repair is a reading like any other
        bench.fib.end_keeping();
        for command in bench.read_all() {
            let request = match command {
                Command::Withdraw(net, link) => request::withdraw(net, link),
                Command::Export(net) => request::export(net, tun),
                _ => continue,
            };
            bench.requester.request(request).unwrap();
        }
        assert_eq!(bench.ledger(|| ()), []);

        ip("link set t-default down");
        let found = bench.ledger(|| ());
        assert!(
            found.contains(&of("device", Fault::Missing, format!("link {tun}"))),
            "{found:?}"
        );
        assert!(bench.fib.down_in(&snapshot()).eq([tun]));
    });
}
