//! A data plane with ports in memory, and the balance that every test ends with: no packet is lost or made.
use crate::frames::{GATEWAY, Home, Mac};
use dataplane::*;
use dpdk::{Eal, EalOptions, Lag, Mbuf, MemoryPeer, Pool, Port, Spread};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use wire::eth::{MacAddr, Tag, Tags};

/// The ports of every world.
pub const ACCESS: u16 = 0;
pub const CORE: u16 = 1;
pub const ACCESS2: u16 = 2;
pub const CORE2: u16 = 3;

pub const ROUTER: Mac = [2, 0, 0, 0, 0, 0x77];
pub const ROUTER2: Mac = [2, 0, 0, 0, 0, 0x78];
/// The gateway's addresses in instance 0.
pub const LOCAL_V4: [u8; 4] = [100, 64, 0, 254];
pub const LOCAL_V6: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0xfe, 0, 0, 0, 0, 0, 0, 0, 1];

struct Dpdk {
    eal: Eal,
    pool: Pool,
    made: u32,
}

/// EAL starts once in a process, so the tests share it, one after the other.
fn dpdk() -> MutexGuard<'static, Dpdk> {
    static DPDK: OnceLock<Mutex<Dpdk>> = OnceLock::new();
    let start = || {
        let options = EalOptions {
            memory_mib: 128,
            huge_pages: false,
        };
        let eal = Eal::start(&options).expect("EAL");
        let pool = eal.pool("packets", 8191).expect("a pool");
        Mutex::new(Dpdk { eal, pool, made: 0 })
    };
    DPDK.get_or_init(start)
        .lock()
        .unwrap_or_else(|e| e.into_inner())
}

/// Packets that a queue holds: few, so that it is soon full.
const SIZE: u32 = 256;

pub struct World {
    pub controller: Controller,
    workers: Vec<Worker>,
    /// The other sides of the ports' queues.
    pub peers: BTreeMap<u16, Vec<MemoryPeer>>,
    /// Queues of ports that are added.
    queues: u16,
    /// Packets that each holds.
    size: u32,
    pub pool: Pool,
    sent: u64,
    pub got: u64,
    free: u32,
    /// Time of the workers, if not the machine's.
    clock: Option<Duration>,
    /// What ports counted that were removed.
    gone: PortCounters,
    opened: u32,
    turn: MutexGuard<'static, Dpdk>,
}

/// The segments of the access ports.
pub fn segments() -> Vec<Segment> {
    let ranges = [0..=0, 100..=199, 300..=300];
    let segments = ranges.into_iter().zip(0..);
    segments
        .map(|(range, id)| Segment {
            id,
            vlans: vec![range],
        })
        .collect()
}

/// A packet that was punted.
pub type Punted = (PuntKind, u16, Vec<u8>);

/// Rates that no test reaches unless it wants to.
pub fn no_policing() -> PuntLimits {
    PuntLimits::all(PuntRate {
        per_second: 1_000_000_000,
        burst: 1_000_000,
    })
}

impl World {
    /// Two access ports, two core ports of instances 0 and 1, and the routes of [`World::routes`].
    pub fn new() -> World {
        Self::with(no_policing(), Self::limits())
    }

    /// Those of every world that needs no others.
    pub fn limits() -> Limits {
        Limits {
            instances: 2,
            sessions: 64,
            adjacencies: 8,
            routes: 1000,
            ..Limits::default()
        }
    }

    pub fn with(punts: PuntLimits, limits: Limits) -> World {
        Self::made(1, 1, SIZE, punts, limits)
    }

    /// With so many workers, and ports with so many queues.
    pub fn shared(workers: u16, queues: u16) -> World {
        Self::made(workers, queues, SIZE, no_policing(), Self::limits())
    }

    /// The same with places for many sessions, and ports that hold more.
    pub fn wide(workers: u16, queues: u16) -> World {
        let limits = Limits {
            sessions: 16_384,
            ..Self::limits()
        };
        Self::made(workers, queues, 1024, no_policing(), limits)
    }

    /// With ports that hold as much as a network card's queues.
    pub fn deep() -> World {
        Self::made(1, 1, 1024, no_policing(), Self::limits())
    }

    fn made(workers: u16, queues: u16, size: u32, punts: PuntLimits, limits: Limits) -> World {
        let mut turn = dpdk();
        turn.made += 1;
        let Dpdk { eal, pool, .. } = &*turn;
        let free = pool.available();
        let config = Config {
            workers,
            limits,
            punts,
        };
        let (controller, workers) = channel(eal, *pool, config).expect("a data plane");
        let pool = *pool;
        let mut world = World {
            controller,
            workers,
            peers: BTreeMap::new(),
            queues,
            size,
            pool,
            sent: 0,
            got: 0,
            free,
            clock: None,
            gone: PortCounters::default(),
            opened: 0,
            turn,
        };
        let core = |instance| Role::Core {
            instance: InstanceIndex(instance),
        };
        world.add(
            ACCESS,
            Role::Access {
                segments: segments(),
            },
        );
        world.add(CORE, core(0));
        world.add(
            ACCESS2,
            Role::Access {
                segments: segments(),
            },
        );
        world.add(CORE2, core(1));
        world.routes();
        world
    }

    /// Adds a port in memory.
    pub fn add(&mut self, index: u16, role: Role) {
        let (port, peers) = self.open();
        self.put(index, role, port, peers);
    }

    /// Adds a port with two members; the peer of each stands for that of a queue.
    pub fn add_lag(&mut self, index: u16, role: Role) -> Arc<Lag> {
        let (members, peers): (Vec<_>, Vec<_>) = [self.open(), self.open()].into_iter().unzip();
        let port = Port::join(members, Spread::Destination).expect("a LAG");
        let lag = port.lag().expect("a LAG").clone();
        self.put(index, role, port, peers.into_iter().flatten().collect());
        lag
    }

    fn open(&mut self) -> (Port, Vec<MemoryPeer>) {
        let name = format!("w{}p{}", self.turn.made, self.opened);
        self.opened += 1;
        let opened = (self.turn.eal).memory_port(&name, self.size, self.pool, self.queues);
        opened.expect("a port")
    }

    fn put(&mut self, index: u16, role: Role, port: Port, peers: Vec<MemoryPeer>) {
        let config = PortConfig {
            port,
            mac: Some(MacAddr(GATEWAY)),
            role,
        };
        self.controller.add_port(PortIndex(index), config).unwrap();
        self.peers.insert(index, peers);
    }

    /// Removes a port, and takes what it had sent.
    pub fn remove(&mut self, index: u16) -> Vec<Vec<u8>> {
        self.controller.remove_port(PortIndex(index)).unwrap();
        self.settle();
        let removed = self.controller.poll_removed().expect("it is handed back");
        assert_eq!(removed.index, PortIndex(index));
        self.gone.rx_packets += removed.counters.rx_packets;
        self.gone.tx_packets += removed.counters.tx_packets;
        let mut sent = vec![];
        for mut peer in self.peers.remove(&index).expect("a port") {
            sent.extend(std::iter::from_fn(|| {
                Some(peer.from_port.recv()?.data().to_vec())
            }));
        }
        self.got += sent.len() as u64;
        // What came too late stays in the ring: nobody receives it.
        let mut port = removed.port;
        let mut late = dpdk::Burst::new();
        let queues = port.take_queues();
        assert_eq!(queues.len(), self.queues.into());
        for mut queue in queues {
            while queue.rx(&mut late) > 0 {
                self.sent -= late.len() as u64;
            }
        }
        sent
    }

    /// Instance 0: a router and the internet behind it, a connected net, a discarded one, the gateway; instance 1: a
    /// router of its own.
    fn routes(&mut self) {
        let c = &mut self.controller;
        let adjacency = |port, mac| Adjacency {
            port: PortIndex(port),
            mac: Some(MacAddr(mac)),
        };
        c.set_adjacency(AdjacencyIndex(0), adjacency(CORE, ROUTER))
            .unwrap();
        c.set_adjacency(AdjacencyIndex(1), adjacency(CORE2, ROUTER2))
            .unwrap();
        for (instance, prefix, to) in Self::table() {
            c.set_route(InstanceIndex(instance), prefix.parse().unwrap(), to)
                .unwrap();
        }
        self.settle();
    }

    /// The routes that are set, for the model too.
    pub fn table() -> Vec<(u16, &'static str, Destination)> {
        let (router, router2) = (
            Destination::Adjacency(AdjacencyIndex(0)),
            Destination::Adjacency(AdjacencyIndex(1)),
        );
        vec![
            (0, "0.0.0.0/0", router),
            (0, "2000::/3", router),
            (0, "100.64.0.0/24", Destination::Discard),
            (0, "2001:db8::/56", Destination::Discard),
            (0, "100.64.0.254/32", Destination::Local),
            (0, "2001:db8:0:fe::1/128", Destination::Local),
            (
                0,
                "198.51.100.0/24",
                Destination::Connected(PortIndex(CORE)),
            ),
            (
                0,
                "2001:db8:c::/64",
                Destination::Connected(PortIndex(CORE)),
            ),
            (
                0,
                "203.0.113.0/24",
                Destination::Adjacency(AdjacencyIndex(2)),
            ),
            (1, "10.0.0.0/8", router2),
        ]
    }

    pub fn entry(home: &Home) -> SessionEntry {
        let tag = |(tpid, vid): &(u16, u16)| Tag {
            tpid: *tpid,
            ..Tag::new(*vid)
        };
        let mut v6 = [0; 16];
        v6[..8].copy_from_slice(&home.v6);
        SessionEntry {
            index: SessionIndex(home.index),
            port: PortIndex(home.port),
            tags: Tags {
                outer: home.tags.first().map(tag),
                inner: home.tags.get(1).map(tag),
            },
            peer_mac: MacAddr(home.mac),
            gateway_mac: MacAddr(GATEWAY),
            pppoe_session_id: home.id,
            instance: InstanceIndex(0),
            packets: PacketSettings::with_mtu(home.mtu as u16),
            policies: Default::default(),
            subscriber: 7,
            ipv4: Some(home.v4.into()),
            ipv6: Some(ipnet::Ipv6Net::new(Ipv6Addr::from(v6), 64).unwrap()),
            routed: Box::default(),
        }
    }

    pub fn online(&mut self, homes: &[Home]) {
        for home in homes {
            self.controller.set_session(Self::entry(home)).unwrap();
        }
        self.settle();
        assert_eq!(self.controller.poll_event(), None);
    }

    /// Lets the workers work until there is nothing left to do.
    pub fn settle(&mut self) {
        while self.step() > 0 || !self.controller.catch_up() {}
    }

    /// The same at a time that the test says, from now on instead of the machine's.
    pub fn settle_at(&mut self, at: Duration) {
        self.clock = Some(at);
        self.settle();
    }

    /// When the next packet may leave that waits for its port's rate.
    pub fn next_departure(&self) -> Option<Duration> {
        self.workers.iter().filter_map(Worker::next_departure).min()
    }

    /// One round of each worker.
    pub fn step(&mut self) -> usize {
        let clock = self.clock;
        let step = |worker: &mut Worker| match clock {
            None => worker.step(),
            Some(at) => {
                let work = worker.step_traced(at);
                worker.take_path();
                work
            }
        };
        self.workers.iter_mut().map(step).sum()
    }

    /// One round of one worker.
    pub fn step_one(&mut self, worker: usize) -> usize {
        self.workers[worker].step()
    }

    /// The edges that packets take, each round's one after the other, until there is nothing left to do.
    pub fn traced(&mut self) -> Vec<Edge> {
        let mut path = vec![];
        loop {
            let mut work = 0;
            for worker in &mut self.workers {
                work += worker.step_traced(Duration::ZERO);
                path.extend(worker.take_path());
            }
            if work == 0 {
                return path;
            }
        }
    }

    /// The workers, for threads of their own; there is no balance then.
    pub fn take_workers(&mut self) -> Vec<Worker> {
        std::mem::take(&mut self.workers)
    }

    pub fn send(&mut self, port: u16, frame: &[u8]) {
        let mbuf = self.pool.packet(frame).expect("a buffer");
        self.send_mbuf(port, mbuf);
    }

    pub fn send_mbuf(&mut self, port: u16, mbuf: Mbuf) {
        let queue = (self.sent % u64::from(self.queues)) as usize;
        self.send_by(port, queue, mbuf);
    }

    /// By this queue of the port.
    pub fn send_by(&mut self, port: u16, queue: usize, mbuf: Mbuf) {
        let peers = self.peers.get_mut(&port).expect("a port");
        peers[queue].to_port.send(mbuf).expect("room in the ring");
        self.sent += 1;
    }

    pub fn inject(&mut self, packet: Inject<'_>) {
        self.controller.inject(packet).expect("room in the ring");
        self.sent += 1;
    }

    /// All frames that came out of all ports.
    pub fn receive(&mut self) -> Vec<(u16, Vec<u8>)> {
        let mut all = vec![];
        let peers = self.peers.iter_mut();
        for (port, peer) in peers.flat_map(|(port, all)| all.iter_mut().map(move |p| (port, p))) {
            while let Some(mbuf) = peer.from_port.recv() {
                all.push((*port, mbuf.data().to_vec()));
            }
        }
        self.got += all.len() as u64;
        all
    }

    /// Takes all frames that came out of all ports, and looks at none of them.
    pub fn discard(&mut self) {
        for peer in self.peers.values_mut().flatten() {
            while peer.from_port.recv().is_some() {
                self.got += 1;
            }
        }
    }

    pub fn punts(&mut self) -> Vec<Punted> {
        let mut all = vec![];
        self.controller.recv_punts(usize::MAX, |p| {
            all.push((p.kind, p.port.0, p.frame.to_vec()))
        });
        all
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.controller.poll_event()).collect()
    }

    /// Drops by name, those that happened.
    pub fn drops(&self) -> BTreeMap<&'static str, u64> {
        let drops = self
            .controller
            .drops()
            .into_iter()
            .filter(|d| d.packets > 0);
        drops.map(|d| (d.reason.name(), d.packets)).collect()
    }

    /// How many packets of a kind were punted.
    pub fn punted(&self, kind: &str) -> u64 {
        let punts = self.controller.punts();
        let of_kind = punts.iter().find(|punts| punts.class.name == kind);
        of_kind.expect("a kind").packets
    }

    /// How many of them were more than the kind's rate.
    pub fn policed(&self, kind: &str) -> u64 {
        let punts = self.controller.punts();
        let of_kind = punts.iter().find(|punts| punts.class.name == kind);
        of_kind.expect("a kind").policed
    }

    pub fn usage(&mut self, index: u32) -> Usage {
        self.controller.read_usage(SessionIndex(index)).unwrap();
        self.settle();
        match self.events()[..] {
            [
                Event::Usage {
                    index: SessionIndex(i),
                    usage,
                    removed: false,
                },
            ] if i == index => usage,
            ref other => panic!("{other:?}"),
        }
    }
}

/// Packets in = packets out + drops + punts, by what the tests sent and got and by the counters; no buffer is lost.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() || self.workers.is_empty() {
            return;
        }
        self.settle();
        self.receive();
        self.punts();
        let punts = self.controller.punts();
        let punts = punts.iter().filter(|p| p.class.shown == Shown::Packet);
        let punts: u64 = punts.map(|p| p.packets).sum();
        let drops: u64 = self.drops().values().sum();
        let ports = self.controller.ports();
        let (rx, tx) = (
            self.gone.rx_packets + ports.iter().map(|p| p.rx_packets).sum::<u64>(),
            self.gone.tx_packets + ports.iter().map(|p| p.tx_packets).sum::<u64>(),
        );
        let unaggregated: u64 = ports.iter().map(|p| p.unaggregated).sum();
        assert_eq!(rx + unaggregated + self.controller.injected(), self.sent);
        assert_eq!(tx, self.got);
        // In the place of a packet there may be fragments.
        let cut = self.controller.fragments();
        assert_eq!(
            self.sent + cut.fragments,
            self.got + punts + drops + unaggregated + cut.packets,
            "drops {:?}, {punts} punted",
            self.drops()
        );
        assert_eq!(self.pool.available(), self.free, "a buffer was lost");
    }
}
