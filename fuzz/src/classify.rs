//! [`dataplane`]: any frames from any port of a user plane with sessions, through the whole graph from `classify` on.
//!
//! The ports are in memory, so that nothing but DPDK itself is needed. One data plane serves all inputs: EAL starts once in
//! a process. Whatever a frame is, its buffer comes back; it is sent, punted or counted by name; and what leaves towards
//! subscribers is a packet for the subscriber whose line it leaves by.
use crate::{Step, script, steps};
use dataplane::*;
use dpdk::{Eal, EalOptions, MemoryPeer, Pool};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use wire::checksum::Sum;
use wire::eth::{self, Frame, Header, MacAddr, Tags};
use wire::{ipv4, ipv6, ppp, pppoe, udp};

/// What a step does, by `op % 8`; with bit 3 set lengths and checksums of IP are left as they are.
mod op {
    /// A frame from the access port.
    pub const ACCESS: u8 = 0;
    /// A frame from the core port.
    pub const CORE: u8 = 1;
    /// A PPP frame of a subscriber (by number).
    pub const PPP: u8 = 2;
    /// An IP packet of a subscriber (by number).
    pub const UPLINK: u8 = 3;
    /// An IP packet from the core.
    pub const DOWNLINK: u8 = 4;
    /// An IP packet of the gateway itself.
    pub const GATEWAY: u8 = 5;
    /// The worker works: a burst ends here.
    pub const SETTLE: u8 = 6;
}

const GATEWAY: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);
const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x77]);
const ACCESS: usize = 0;
const CORE: usize = 1;
const HOMES: u8 = 4;

struct World {
    controller: Controller,
    worker: Worker,
    peers: Vec<MemoryPeer>,
    pool: Pool,
    sent: u64,
    got: u64,
    punted: u64,
    free: u32,
}

/// Takes one input.
pub fn run(input: &[u8]) {
    let mut world = world();
    for step in steps(input) {
        world.step(step);
    }
    world.settle();
    world.balance();
}

fn world() -> MutexGuard<'static, World> {
    static WORLD: OnceLock<Mutex<World>> = OnceLock::new();
    let world = WORLD.get_or_init(|| Mutex::new(World::new()));
    world.lock().expect("a world that is whole")
}

fn tags(home: u8) -> Tags {
    match home {
        0 => Tags::NONE,
        1 => Tags::single(100),
        _ => Tags::qinq(101, home.into()),
    }
}

fn home_mac(home: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, home])
}

/// One home takes so little that packets to it are fragmented.
fn mtu(home: u8) -> u16 {
    if home == 0 { 68 } else { 1492 }
}

/// The policy of two homes, with which all headers are looked at that rules can ask for.
fn filter() -> PolicyIndex {
    PolicyIndex(1.try_into().expect("not zero"))
}

/// Most packets pass it.
fn policy(compiler: PolicyCompiler) -> CompiledPolicy {
    let policer = PolicerSettings {
        meter: MeterSettings::TwoRate {
            pir: Rate::kbps(100_000),
            pbs: 15_000,
            cir: Rate::kbps(10_000),
            cbs: 15_000,
        },
        overhead: Overhead::ethernet(2, 8),
        is_colour_aware: true,
        yellow_mark: Some(12),
    };
    let class = |(name, dscp, priority): (&str, u8, u8)| PolicyClass {
        name: name.into(),
        dscps: 1 << dscp,
        priorities: 1 << priority,
        policer: Some(policer),
        mark: None,
    };
    // as many as there may be
    let classes = [
        ("voice", 46, 5),
        ("video", 34, 4),
        ("games", 26, 3),
        ("mail", 18, 2),
        ("backup", 10, 1),
        ("routing", 48, 6),
        ("control", 56, 7),
    ];
    let rules = [
        "deny tcp from any to any 25 setup",
        "deny udp from any 1-9 to any 137-139",
        "permit icmp from any to any icmptypes 8,0 mark cs1",
        "deny icmpv6 from any to any icmptypes 255",
        "deny ip from any to any frag length 1400-1500 dscp ef",
        "permit udp from any to any 5060 class voice",
        "redirect tcp from any to any 80",
    ];
    let rules = PolicyRules {
        rules: rules
            .iter()
            .map(|rule| rule.parse().expect("a rule"))
            .collect(),
        unmatched_pass: true,
        denies_undetermined: true,
        is_counted: true,
        classes: classes.map(class).into(),
        mark: Some(0),
        policer: Some(policer),
        queues: None,
        portal: Some("http://portal.example/".into()),
    };
    compiler.compile(&rules).expect("a small policy")
}

fn entry(home: u8) -> SessionEntry {
    SessionEntry {
        index: SessionIndex(home.into()),
        port: PortIndex(ACCESS as u16),
        tags: tags(home),
        peer_mac: home_mac(home),
        gateway_mac: GATEWAY,
        pppoe_session_id: 0x100 + u16::from(home),
        instance: InstanceIndex(0),
        packets: PacketSettings::with_mtu(mtu(home)),
        policies: Policies {
            up: (home < 2).then(filter),
            down: (home < 2).then(filter),
        },
        subscriber: home.into(),
        // The last one has IPv6 alone, the first one IPv4 alone.
        ipv4: (home != HOMES - 1).then_some([100, 64, 0, home + 1].into()),
        ipv6: (home != 0).then(|| format!("2001:db8:0:{home}::/64").parse().expect("a prefix")),
        routed: Box::default(),
    }
}

impl World {
    fn new() -> Self {
        let options = EalOptions {
            memory_mib: 64,
            huge_pages: false,
        };
        let eal = Eal::start(&options).expect("EAL");
        let pool = eal.pool("packets", 2047).expect("a pool");
        let segment = |id, range| Segment {
            id,
            vlans: vec![range],
        };
        let roles = [
            Role::Access {
                segments: vec![segment(0, 0..=0), segment(1, 100..=199)],
            },
            Role::Core {
                instance: InstanceIndex(0),
            },
        ];
        let free = pool.available();
        let rate = PuntRate {
            per_second: 1_000_000_000,
            burst: 1_000_000,
        };
        // Whoever sends too much is found out, and dropped like everything that has no place to go.
        let with_levels = |punts: PuntLimits, class: &PuntClass| {
            let with = punts.with_levels(class.name, class.levels);
            with.expect("a kind")
        };
        let punts = (PuntKind::ALL.iter()).fold(PuntLimits::all(rate), with_levels);
        let limits = Limits {
            instances: 1,
            sessions: 64,
            adjacencies: 8,
            routes: 1000,
            ..Limits::default()
        };
        let config = Config {
            workers: 1,
            limits,
            punts,
        };
        let (mut controller, mut workers) = channel(&eal, pool, config).expect("a data plane");
        let worker = workers.remove(0);
        let mut peers = vec![];
        for (role, i) in roles.into_iter().zip(0..) {
            let name = format!("port{i}");
            let (port, mut own) = eal.memory_port(&name, 256, pool, 1).expect("a port");
            let mac = Some(GATEWAY);
            controller
                .add_port(PortIndex(i), PortConfig { port, mac, role })
                .expect("room");
            peers.append(&mut own);
        }
        // One VLAN of the core port is a subinterface.
        let part = Subinterface {
            port: PortIndex(CORE as u16),
            vlan: 300,
            instance: InstanceIndex(0),
            mtu: 1400,
        };
        controller
            .add_subinterface(PortIndex(9), part)
            .expect("room");
        let mut world = World {
            controller,
            worker,
            peers,
            pool,
            sent: 0,
            got: 0,
            punted: 0,
            free,
        };
        world.set_up();
        world
    }

    fn set_up(&mut self) {
        let router = Adjacency {
            port: PortIndex(CORE as u16),
            mac: Some(ROUTER),
        };
        self.controller
            .set_adjacency(AdjacencyIndex(0), router)
            .expect("room");
        let by_router = Destination::Adjacency(AdjacencyIndex(0));
        let routes = [
            ("0.0.0.0/0", by_router),
            ("2000::/3", by_router),
            ("100.64.0.0/24", Destination::Discard),
            ("2001:db8::/56", Destination::Discard),
            ("100.64.0.254/32", Destination::Local),
            ("2001:db8:0:fe::1/128", Destination::Local),
            (
                "198.51.100.0/24",
                Destination::Connected(PortIndex(CORE as u16)),
            ),
            ("203.0.113.0/24", Destination::Adjacency(AdjacencyIndex(2))),
        ];
        for (prefix, to) in routes {
            self.controller
                .set_route(InstanceIndex(0), prefix.parse().expect("a prefix"), to)
                .expect("room");
        }
        let compiler = self.controller.policy_compiler();
        let compiled = Arc::new(policy(compiler));
        self.controller
            .set_policy(filter(), Some(compiled))
            .expect("room");
        for home in 0..HOMES {
            self.controller.set_session(entry(home)).expect("room");
        }
        self.settle();
    }

    fn step(&mut self, step: Step<'_>) {
        let number = step.octet(0) % HOMES;
        let rest = step.data.get(1..).unwrap_or_default();
        let fixed = |bytes: &[u8]| {
            if step.op & 8 == 0 {
                repaired(bytes)
            } else {
                bytes.to_vec()
            }
        };
        match step.op & 7 {
            op::ACCESS => self.send(ACCESS, step.data),
            op::CORE => self.send(CORE, step.data),
            op::PPP => self.send(ACCESS, &of_home(number, rest)),
            op::UPLINK => {
                let packet = fixed(rest);
                let protocol = if step.octet(1) >> 4 == 6 {
                    ppp::IPV6
                } else {
                    ppp::IPV4
                };
                self.send(
                    ACCESS,
                    &of_home(number, &[&protocol.to_be_bytes()[..], &packet].concat()),
                );
            }
            op::DOWNLINK => {
                let ethertype = if step.octet(0) >> 4 == 6 {
                    eth::IPV6
                } else {
                    eth::IPV4
                };
                let mut frame = Vec::new();
                Header {
                    destination: GATEWAY,
                    source: ROUTER,
                    tags: Tags::NONE,
                    ethertype,
                }
                .emit(&mut frame);
                frame.extend(fixed(step.data));
                self.send(CORE, &frame);
            }
            op::GATEWAY => {
                if self
                    .controller
                    .inject(Inject::Route(InstanceIndex(0), &fixed(step.data)))
                    .is_ok()
                {
                    self.sent += 1;
                }
            }
            _ => self.settle(),
        }
    }

    fn send(&mut self, port: usize, frame: &[u8]) {
        let Some(mbuf) = self.pool.packet(frame) else {
            return;
        };
        if self.peers[port].to_port.send(mbuf).is_ok() {
            self.sent += 1;
        }
    }

    fn settle(&mut self) {
        while self.worker.step() > 0 {}
        while let Some(mbuf) = self.peers[CORE].from_port.recv() {
            self.got += 1;
            assert_eq!(
                mbuf.data().get(6..12),
                Some(&GATEWAY.0[..]),
                "a frame with another's address"
            );
        }
        while let Some(mbuf) = self.peers[ACCESS].from_port.recv() {
            self.got += 1;
            check(mbuf.data());
        }
        let mut punted = 0;
        self.controller.recv_punts(usize::MAX, |punt| {
            punted += u64::from(punt.kind.class().shown == Shown::Packet);
        });
        self.punted += punted;
        while self.controller.poll_event().is_some() {}
    }

    /// Every packet in is a packet out, or fragments of it, a packet punted or a drop with a name, and no buffer is lost.
    fn balance(&mut self) {
        let dropped: u64 = self
            .controller
            .drops()
            .iter()
            .map(|drop| drop.packets)
            .sum();
        let cut = self.controller.fragments();
        assert_eq!(
            self.sent + cut.fragments,
            self.got + self.punted + dropped + cut.packets,
            "{:?}",
            self.controller.drops()
        );
        assert_eq!(self.pool.available(), self.free, "a buffer was lost");
    }
}

/// What leaves by a line is a packet for that line's subscriber.
fn check(bytes: &[u8]) {
    let Frame { header, payload } = Frame::parse(bytes).expect("a frame of our own");
    assert_eq!(header.ethertype, eth::PPPOE_SESSION);
    let pppoe::Packet {
        session_id,
        payload,
        ..
    } = pppoe::Packet::parse(payload).expect("PPPoE of our own");
    let home = (session_id as u8) % HOMES;
    let entry = entry(home);
    assert_eq!(
        (session_id, header.destination, header.source),
        (entry.pppoe_session_id, home_mac(home), GATEWAY)
    );
    assert_eq!(header.tags, tags(home));
    let frame = ppp::Frame::parse(payload).expect("PPP of our own");
    assert!(
        frame.payload.len() <= usize::from(mtu(home)),
        "a packet that is too long for the subscriber"
    );
    match frame.protocol {
        ppp::IPV4 => {
            let packet =
                ipv4::Packet::parse(frame.payload).expect("an IPv4 packet that was checked");
            assert_eq!(Some(packet.header.destination), entry.ipv4);
        }
        ppp::IPV6 => {
            let packet =
                ipv6::Packet::parse(frame.payload).expect("an IPv6 packet that was checked");
            assert!(
                entry
                    .ipv6
                    .is_some_and(|net| net.contains(&packet.header.destination))
            );
        }
        protocol => panic!("PPP protocol {protocol:#x} towards a subscriber"),
    }
}

/// A PPP frame as a subscriber sends it.
fn of_home(home: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let (destination, source, ethertype) = (GATEWAY, home_mac(home), eth::PPPOE_SESSION);
    Header {
        destination,
        source,
        tags: tags(home),
        ethertype,
    }
    .emit(&mut frame);
    pppoe::Packet {
        code: pppoe::SESSION,
        session_id: entry(home).pppoe_session_id,
        payload,
    }
    .emit(&mut frame);
    frame
}

/// The packet with the lengths and the checksum that belong to it.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut packet = bytes.to_vec();
    let length = packet.len();
    match packet
        .first()
        .map(|first| (first >> 4, usize::from(first & 15) * 4))
    {
        Some((4, header)) if header >= 20 && length >= header => {
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            packet[10..12].fill(0);
            let sum = Sum::default().bytes(&packet[..header]).finish();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some((6, _)) if length >= 40 => {
            packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes())
        }
        _ => {}
    }
    packet
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let home4 = |n: u8| core::net::Ipv4Addr::new(100, 64, 0, n + 1);
    let home6 = |n: u8| {
        format!("2001:db8:0:{n}::1")
            .parse::<core::net::Ipv6Addr>()
            .expect("an address")
    };
    let v4 = |from, to, ttl| {
        let (mut datagram, mut packet) = (Vec::new(), Vec::new());
        udp::Datagram {
            source_port: 5,
            destination_port: 53,
            payload: b"text",
        }
        .emit_v4(from, to, &mut datagram);
        let header = ipv4::Header {
            ttl,
            ..ipv4::Header::new(ipv4::UDP, from, to)
        };
        ipv4::Packet {
            header,
            options: &[],
            payload: &datagram,
        }
        .emit(&mut packet);
        packet
    };
    let v6 = |from, to| {
        let mut packet = Vec::new();
        udp::Datagram {
            source_port: 5,
            destination_port: 547,
            payload: b"text",
        }
        .emit_packet_v6(from, to, &mut packet);
        packet
    };
    // behind an extension header with this number
    let behind = |number: u8, header: [u8; 8], packet: &[u8]| {
        [
            &packet[..6],
            &[number],
            &packet[7..40],
            &header,
            &packet[40..],
        ]
        .concat()
    };
    let far4 = [192, 0, 2, 1].into();
    let far6 = "2001:db8:1::1".parse().expect("an address");
    let home = |n: u8, packet: &[u8]| [&[n], packet].concat();
    let arp = [&[0xff; 6][..], &ROUTER.0, &[8, 6], &[0; 28]].concat();
    let padi = [
        &[0xff; 6][..],
        &home_mac(9).0,
        &[0x88, 0x63, 0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0],
    ]
    .concat();
    vec![
        script([
            (op::UPLINK, home(0, &v4(home4(0), far4, 64))),
            (op::DOWNLINK, v4(far4, home4(1), 64)),
        ]),
        script([
            (op::UPLINK, home(1, &v6(home6(1), far6))),
            (op::DOWNLINK, v6(far6, home6(3))),
        ]),
        script([
            (
                op::UPLINK,
                home(
                    1,
                    &behind(60, [17, 0, 1, 4, 0, 0, 0, 0], &v6(home6(1), far6)),
                ),
            ),
            (
                op::UPLINK,
                home(
                    1,
                    &behind(44, [17, 0, 0, 1, 0, 0, 0, 7], &v6(home6(1), far6)),
                ),
            ),
        ]),
        script([
            (op::UPLINK, home(2, &v4(home4(2), home4(1), 1))),
            (op::UPLINK, home(2, &v4(home4(2), home4(1), 2))),
        ]),
        script([
            (op::GATEWAY, v4([100, 64, 0, 254].into(), home4(0), 64)),
            (op::DOWNLINK, v4(far4, [203, 0, 113, 1].into(), 9)),
        ]),
        script([
            (op::PPP, home(1, &[0xc0, 0x21, 9, 1, 0, 8, 1, 2, 3, 4])),
            (op::SETTLE, vec![]),
            (op::CORE, arp),
        ]),
        script([(op::ACCESS, padi), (op::ACCESS, of_home(2, &[0, 0x21]))]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_forwarded_both_ways() {
        // How many packets leave by a port.
        for (seed, leave) in [(0, 2), (1, 2), (2, 2), (3, 1), (4, 1)] {
            let mut world = world();
            let before = world.got;
            steps(&seeds()[seed]).for_each(|step| world.step(step));
            world.settle();
            assert_eq!(
                world.got - before,
                leave,
                "seed {seed}: {:?}",
                world.controller.drops()
            );
        }
    }
}
