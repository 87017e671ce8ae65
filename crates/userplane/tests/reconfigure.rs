//! A user plane that is told to be something else while it forwards.

// The namespace is shared with other tests, which use more of it.
#[allow(dead_code)]
mod namespace;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use config::UserPlaneDocument;
use namespace::{Asking, End, ip};
use wire::eth::{self, MacAddr, Tags};
use wire::{icmp, ipv4};

/// Stations on the core port, without a tag and in VLAN 300.
const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 2, 9]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 3, 9]);
const ARP: u16 = 0x0806;

fn document(ports: &str, instances: &str) -> UserPlaneDocument {
    let text = format!("network-instances: {{{instances}}}\nports: {{{ports}}}\n");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const INSTANCE: &str = "default: {interface: sl-default, gateway: [100.64.0.1]}";
const CORE: &str =
    "core0: {role: core, device: 'net_af_xdp0,iface=core0', addresses: [198.51.100.1/24],
  subinterfaces: {v300: {vlan-id: 300, addresses: [203.0.113.1/24], mtu: 1400}}}";
const ACCESS: &str = "access0: {role: access, device: 'net_af_packet0,iface=acc0'}";

fn frame(
    destination: MacAddr,
    source: MacAddr,
    vlan: Option<u16>,
    ethertype: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    eth::Header {
        destination,
        source,
        tags: vlan.map_or(Tags::NONE, Tags::single),
        ethertype,
    }
    .emit(&mut out);
    out.extend_from_slice(payload);
    out.resize(out.len().max(64), 0);
    out
}

#[test]
fn a_user_plane_becomes_what_it_is_told_while_it_forwards() {
    namespace::run(story);
}

fn story(ask: &Asking, ends: &[End; 3]) {
    let capabilities = ask.1.block_on(ask.0.capabilities()).unwrap();
    assert_eq!(capabilities.sessions, 1000);
    let nothing = ask.tables();
    ask.reconfigure(&document(&format!("{CORE}, {ACCESS}"), INSTANCE))
        .unwrap();
    let links = ip("-br addr show");
    for (link, address) in [
        ("sl-core0", "198.51.100.1/24"),
        ("sl-v300", "203.0.113.1/24"),
    ] {
        let line = links.lines().find(|line| line.starts_with(link));
        assert!(line.is_some_and(|line| line.contains(address)), "{links}");
    }
    assert!(ip("link show sl-v300").contains("mtu 1400"));
    a_subinterface_answers(&ends[0]);
    others_forward_meanwhile(ask, &ends[0]);
    faults_change_nothing(ask);
    names_go_from_port_to_port(ask);
    sequences_end_where_a_fresh_start_does(ask);
    what_is_half_done_is_undone(ask);
    as_many_ports_as_the_driver_has(ask);
    ask.reconfigure(&UserPlaneDocument::default()).unwrap();
    ask.eventually("nothing is left", |tables| *tables == nothing);
    let links = ip("-br link show");
    assert!(!links.contains("sl-"), "{links}");
}

/// ARP and ping in VLAN 300: the kernel behind the subinterface's TAP answers, with the tag.
fn a_subinterface_answers(core: &End) {
    let mut request = vec![0, 1, 8, 0, 6, 4, 0, 1];
    request.extend(PEER.0);
    request.extend([203, 0, 113, 9]);
    request.extend([0; 6]);
    request.extend([203, 0, 113, 1]);
    core.send(&frame(MacAddr::BROADCAST, PEER, Some(300), ARP, &request));
    let in_vlan = |frame: &eth::Frame<'_>, ethertype| {
        frame.header.tags == Tags::single(300)
            && frame.header.ethertype == ethertype
            && frame.header.destination == PEER
    };
    let answer = core.receive(|frame| {
        let answer = in_vlan(frame, ARP) && frame.payload[7] == 2;
        answer.then_some(frame.header.source)
    });
    let gateway = answer.expect("an ARP reply in VLAN 300");

    let mut echo = Vec::new();
    icmp::Message::echo(icmp::V4_ECHO_REQUEST, 1, 2, b"ping").emit_v4(&mut echo);
    let ping = packet([203, 0, 113, 9], [203, 0, 113, 1], ipv4::ICMP, &echo);
    core.send(&frame(gateway, PEER, Some(300), eth::IPV4, &ping));
    let pong = core.receive(|frame| {
        let packet = ipv4::Packet::parse(frame.payload).ok()?;
        let message = icmp::Message::parse_v4(packet.payload).ok()?;
        (in_vlan(frame, eth::IPV4) && message.kind == icmp::V4_ECHO_REPLY).then_some(())
    });
    pong.expect("an echo reply in VLAN 300");
}

fn packet(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Header::new(protocol, source.into(), destination.into());
    let mut out = Vec::new();
    ipv4::Packet {
        header,
        options: &[],
        payload,
    }
    .emit(&mut out);
    out
}

/// From VLAN 300 to a router without a tag, while ports, segments and subinterfaces beside them come and go: no packet is
/// lost.
fn others_forward_meanwhile(ask: &Asking, core: &End) {
    ip(&format!(
        "neigh replace 198.51.100.9 lladdr {ROUTER} dev sl-core0 nud permanent"
    ));
    ask.eventually("the router is known", |tables| {
        tables
            .iter()
            .any(|line| line.contains("route 198.51.100.9/32"))
    });
    let own = ip("link show sl-core0");
    let own = own
        .split_whitespace()
        .skip_while(|word| *word != "link/ether")
        .nth(1);
    let gateway: MacAddr = own.unwrap().parse().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let traffic = std::thread::spawn({
        let (stop, core) = (stop.clone(), End(core.0.try_clone().unwrap()));
        move || exchange(&core, gateway, &stop)
    });
    let more =
        "access1: {role: access, device: 'net_af_packet1,iface=acc1', segments: {a: {s-vlans: 5}}}";
    let (wide, narrow) = (
        "segments: {east: {s-vlans: 100-199}}}",
        "segments: {east: {s-vlans: 100-149}}}",
    );
    let access = |segments: &str| ACCESS.replace("'}", &format!("', {segments}"));
    let v301 = CORE.replace(
        "{v300",
        "{v301: {vlan-id: 301, addresses: [192.0.2.1/24]}, v300",
    );
    for round in 0..10 {
        for ports in [
            format!("{CORE}, {}, {more}", access(wide)),
            format!("{v301}, {}, {more}", access(narrow)),
            format!("{v301}, {}", access(narrow)),
            format!("{CORE}, {}", access(wide)),
        ] {
            let done = ask.reconfigure(&document(&ports, INSTANCE));
            done.unwrap_or_else(|faults| panic!("round {round}: {faults:?}"));
        }
    }
    stop.store(true, Relaxed);
    let (sent, received) = traffic.join().unwrap();
    println!("{sent} packets through 40 changes, {received} arrived");
    assert!(sent > 100, "{sent}");
    assert_eq!(received, sent);
}

/// Sends packets with numbers and counts those that come out; until told to stop, and a little longer.
fn exchange(core: &End, gateway: MacAddr, stop: &AtomicBool) -> (usize, usize) {
    let (mut sent, mut seen) = (0_u32, BTreeSet::new());
    let mut buffer = [0; 4096];
    let mut idle = 0;
    while idle < 200 {
        if stop.load(Relaxed) {
            idle += 1;
        } else {
            let payload = [b"number..".as_slice(), &sent.to_be_bytes()].concat();
            let packet = packet([203, 0, 113, 9], [198, 51, 100, 9], ipv4::UDP, &payload);
            core.send(&frame(gateway, PEER, Some(300), eth::IPV4, &packet));
            sent += 1;
        }
        while let Ok(length) = (&core.0).read(&mut buffer) {
            let Ok(frame) = eth::Frame::parse(&buffer[..length]) else {
                continue;
            };
            let ours = frame.header.destination == ROUTER && frame.header.tags == Tags::NONE;
            if let Some(number) = frame.payload.get(28..32).filter(|_| ours) {
                seen.insert(number.to_vec());
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    (sent as usize, seen.len())
}

/// What cannot be checked beforehand is put back.
fn faults_change_nothing(ask: &Asking) {
    let good = document(&format!("{CORE}, {ACCESS}"), INSTANCE);
    ask.reconfigure(&good).unwrap();
    let known = |tables: &BTreeSet<String>| tables.iter().any(|line| line.contains("198.51.100.9"));
    ask.eventually("the router is known", known);
    let before = ask.tables();
    let acc1 = "role: access, device: 'net_af_packet1,iface=acc1'";
    let (addressed, carried) = (addresses(), carriers());
    let refused = |ports: &str, instance: &str| {
        let faults = ask.reconfigure(&document(ports, instance)).unwrap_err();
        ask.eventually("as it was", |tables| *tables == before);
        assert_eq!(addresses(), addressed, "as it was");
        assert_eq!(carriers(), carried, "no device was let go");
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let faulty = |ports: &str| refused(ports, INSTANCE);
    // Before anything is done.
    let faults = faulty(&format!(
        "{CORE}, access1: {{role: access, device: 'net_af_packet1,iface=nosuch0'}}"
    ));
    assert_eq!(
        faults,
        ["ports access1 device: this machine has no network interface `nosuch0`"]
    );
    // In the middle: the interface of a new core port is somebody else's, and an access port is opened before.
    let taken = "core1: {role: core, device: 'net_af_xdp7,iface=acc1', tap: core0}";
    let faults = faulty(&format!(
        "access9: {{{}}}, {taken}",
        acc1.replace("acc1", "acc0").replace("packet1", "packet0")
    ));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].contains("core1") && faults[0].contains("`core0`"),
        "{faults:?}"
    );
    // A device of a kind that opens, with arguments that do not.
    let wrong = CORE.replace("core0'", "core0,start_queue=77'");
    let faults = faulty(&format!("{wrong}, {ACCESS}"));
    assert!(faults[0].starts_with("ports core0 device: "), "{faults:?}");
    // The first of two new addresses is taken, the second one is not: there is no IPv6 here.
    const TWO: &str = "192.0.2.1/25, '2001:db8::1/64'";
    for (has, place) in [
        ("198.51.100.1/24", "ports core0 addresses: "),
        (
            "203.0.113.1/24",
            "ports core0 subinterfaces v300 addresses: ",
        ),
    ] {
        let wrong = CORE.replace(has, &format!("{has}, {TWO}"));
        let faults = faulty(&format!("{wrong}, {ACCESS}"));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with(place), "{faults:?}");
    }
    let wrong = INSTANCE.replace("100.64.0.1", "100.64.0.1, 100.64.0.2, '2001:db8::1'");
    let faults = refused(&format!("{CORE}, {ACCESS}"), &wrong);
    assert_eq!(faults.len(), 1, "{faults:?}");
    // The same on another device, for which the TAP is taken up: it comes back with its neighbours.
    let wrong = CORE.replace("net_af_xdp0", "net_af_packet0");
    let wrong = wrong.replace("198.51.100.1/24", &format!("198.51.100.1/24, {TWO}"));
    let faults = faulty(&format!("{wrong}, {ACCESS}"));
    assert_eq!(faults.len(), 1, "{faults:?}");
    // The core port still answers in its VLAN's name.
    ask.reconfigure(&good).unwrap();
    assert_eq!(ask.tables(), before);
}

/// Subinterfaces and TAPs that ports exchange, or that a port leaves to another one when it is closed.
fn names_go_from_port_to_port(ask: &Asking) {
    let core0 =
        |more: &str| format!("core0: {{role: core, device: 'net_af_packet8,iface=core0', {more}}}");
    let core1 =
        |more: &str| format!("core1: {{role: core, device: 'net_af_packet7,iface=acc1', {more}}}");
    let v300 = "subinterfaces: {v300: {vlan-id: 300, addresses: [203.0.113.1/24]}}";
    let pair = |first, second| {
        format!(
            "subinterfaces: {{v300: {{vlan-id: 300, tap: {first}}}, v301: {{vlan-id: 301, tap: {second}}}}}"
        )
    };
    let (a, b) = ("tap: sl-a, addresses: [198.51.100.1/24]", "tap: sl-b");
    ask.reconfigure(&UserPlaneDocument::default()).unwrap();
    let both = |first: &str, second: &str| format!("{}, {}", core0(first), core1(second));
    for (step, ports) in [
        both(a, &format!("{b}, {v300}")),
        both(&format!("{a}, {v300}"), b),
        both(b, &format!("{a}, {v300}")),
        core0(&format!("{a}, {v300}")),
        both(&pair("sl-a", "sl-b"), ""),
        both(&pair("sl-b", "sl-a"), ""),
        both("tap: sl-v301", &pair("sl-a", "sl-core0")),
    ]
    .iter()
    .enumerate()
    {
        let document = document(ports, INSTANCE);
        let done = ask.reconfigure(&document);
        done.unwrap_or_else(|faults| panic!("step {step}: {faults:?}"));
        let seen = (settled(ask), addresses());
        // From nothing it would be the same.
        ask.reconfigure(&UserPlaneDocument::default()).unwrap();
        ask.reconfigure(&document).unwrap();
        assert_eq!((settled(ask), addresses()), seen, "step {step}: {ports}");
    }
}

/// Dozens of access ports, and others in their place.
fn as_many_ports_as_the_driver_has(ask: &Asking) {
    const MOST: usize = dpdk::MAX_PORTS as usize;
    let access = |n: usize| {
        let (name, device) = (format!("many{n}"), 100 + n);
        format!("{name}: {{role: access, device: 'net_af_packet{device},iface={name}'}}")
    };
    let ports = |range: std::ops::Range<usize>| {
        let all: Vec<String> = range.map(access).collect();
        document(&all.join(", "), INSTANCE)
    };
    for n in 0..MOST {
        let other = MOST + n;
        ip(&format!("link add many{n} type veth peer name many{other}"));
        ip(&format!("link set many{n} up"));
        ip(&format!("link set many{other} up"));
    }
    ask.reconfigure(&UserPlaneDocument::default()).unwrap();
    ask.reconfigure(&ports(0..MOST)).unwrap();
    let open = settled(ask);
    let faults = ask.reconfigure(&ports(0..MOST + 1)).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "ports: 33 devices: the user plane supports at most 32"
    );
    let faults = ask.reconfigure(&ports(1..MOST + 1)).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "ports: 32 devices of open ports and 1 of new ones are more than 32 at once: delete old ports in a commit of their own first"
    );
    assert_eq!(settled(ask), open);
    for range in [MOST / 2..MOST, MOST / 2..3 * MOST / 2, MOST..2 * MOST - 16] {
        ask.reconfigure(&ports(range)).unwrap();
    }
    ask.reconfigure(&UserPlaneDocument::default()).unwrap();
    for n in 0..MOST {
        ip(&format!("link delete many{n}"));
    }
}

/// The kernel does not take an MTU that the worker has taken already.
fn what_is_half_done_is_undone(ask: &Asking) {
    let good = format!("{CORE}, {ACCESS}").replace("net_af_xdp0", "net_af_packet9");
    ask.reconfigure(&document(&good, INSTANCE)).unwrap();
    ip("link delete sl-v300");
    let changed = good.replace("mtu: 1400", "mtu: 1300");
    let faults = ask.reconfigure(&document(&changed, INSTANCE));
    assert!(faults.is_err(), "there is no interface");
    let tables = ask.tables();
    let has = |mtu| {
        let wanted = format!("vlan 300 instance 0 mtu {mtu} ");
        tables.iter().any(|line| line.contains(&wanted))
    };
    assert!(has(1400) && !has(1300), "{tables:#?}");
}

/// The addresses of the interfaces of the user plane.
fn addresses() -> BTreeSet<String> {
    let all = ip("-o addr show");
    let ours = all
        .lines()
        .filter(|line| line.contains("sl-") || line.contains("other0"));
    // Without the interfaces' numbers.
    let text = ours.map(|line| {
        line.split_once(": ")
            .map_or("", |(_, rest)| rest)
            .to_owned()
    });
    text.collect()
}

/// How often the interfaces of the user plane found or lost who holds them.
fn carriers() -> BTreeMap<String, String> {
    let links: serde_json::Value = serde_json::from_str(&ip("-s -s -j link show")).unwrap();
    let links = links.as_array().unwrap().iter();
    let named = links.map(|link| {
        let changes = &link["stats64"]["tx"]["carrier_changes"];
        let name = link["ifname"].as_str().unwrap();
        (name.to_owned(), changes.to_string())
    });
    named.filter(|(name, _)| name.starts_with("sl-")).collect()
}

/// A small generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn of<'a>(&mut self, choice: &[&'a str]) -> &'a str {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        choice[(self.0 >> 33) as usize % choice.len()]
    }

    /// Some of what a user plane can be.
    fn document(&mut self) -> UserPlaneDocument {
        let device = self.of(&["0", "0", "3"]);
        let mtu = self.of(&["1500", "1500", "1400"]);
        let address = self.of(&[
            "198.51.100.1/24",
            "198.51.100.2/24",
            "198.51.100.1/24, 192.0.2.1/25",
        ]);
        let parts = self.of(&[
            "",
            "v300: {vlan-id: 300, mtu: 1300}",
            "v300: {vlan-id: 301, addresses: [203.0.113.1/24]}",
            "v300: {vlan-id: 300, tap: other0}, b: {vlan-id: 301, addresses: [203.0.113.2/24]}",
        ]);
        let parts = if mtu == "1500" { parts } else { "" };
        let core = format!(
            "core0: {{role: core, device: 'net_af_packet{device},iface=core0', mtu: {mtu}, addresses: [{address}], subinterfaces: {{{parts}}}}}"
        );
        let access = self.of(&[
            "",
            "a: {role: access, device: 'net_af_packet5,iface=acc0'}",
            "a: {role: access, device: 'net_af_packet5,iface=acc0', segments: {x: {s-vlans: 1-9}, y: {s-vlans: untagged}}}",
            "a: {role: access, device: 'net_af_packet5,iface=acc0', segments: {y: {s-vlans: '5-20,30'}, z: {s-vlans: 0-4}}}",
            "b: {role: access, device: 'net_af_packet5,iface=acc0'}",
        ]);
        let flexible = self.of(&[
            "",
            "f: {role: access, device: 'net_af_packet6,iface=acc1'}",
            "f: {role: core, device: 'net_af_packet6,iface=acc1', addresses: [192.0.2.129/25]}",
        ]);
        let instance = self.of(&[
            INSTANCE,
            INSTANCE,
            "default: {interface: sl-default, gateway: [100.64.0.1, 100.64.0.2]}",
            "default: {interface: sl-tun, gateway: [100.64.1.1]}",
        ]);
        let ports = [core.as_str(), access, flexible];
        let ports: Vec<&str> = ports.into_iter().filter(|port| !port.is_empty()).collect();
        document(&ports.join(", "), instance)
    }
}

/// Whatever a user plane was before, it is what it was told last.
fn sequences_end_where_a_fresh_start_does(ask: &Asking) {
    let mut random = Random(88172645463325252);
    for round in 0..8 {
        let mut last = UserPlaneDocument::default();
        for _ in 0..4 {
            last = random.document();
            let done = ask.reconfigure(&last);
            done.unwrap_or_else(|faults| panic!("round {round}: {faults:?}\n{last:?}"));
        }
        let (reached, addressed) = (settled(ask), addresses());
        ask.reconfigure(&UserPlaneDocument::default()).unwrap();
        ask.reconfigure(&last).unwrap();
        assert_eq!(settled(ask), reached, "round {round}: {last:?}");
        assert_eq!(addresses(), addressed, "round {round}: {last:?}");
        // Told the same again, it does nothing.
        let links = ip("-o link show");
        ask.reconfigure(&last).unwrap();
        assert_eq!(ip("-o link show"), links);
    }
}

/// The tables when the kernel has told of all that it has.
fn settled(ask: &Asking) -> BTreeSet<String> {
    let (mut last, mut same) = (ask.tables(), 0);
    while same < 10 {
        std::thread::sleep(Duration::from_millis(20));
        let now = ask.tables();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}
