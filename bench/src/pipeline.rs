//! A packet path out of DPDK's libraries over the frames, sessions and routes of our own (`whole`): the stages of Intel's vBNG
//! reference pipeline. It has no checks of a packet's source, no counters of sessions and no clamp of TCP's segment size.
use crate::acl::{fastest, peers};
use crate::frames::{Family, GATEWAY, Size, Spec, Way, address_v4, home, neighbour};
use crate::layout::Layout;
use crate::report::{Entry, Samples};
use crate::routes::{NEIGHBOURS, Prefixes, Routes};
use crate::rules::{Rule, Tuple, first_match, rules};
use crate::whole::SESSIONS;
use crate::world::{COLD, HOT, SPECS, Stock};
use anyhow::{Context, Result, ensure};
use dpdk::peers::{
    ACCESS_HEADER, Downlink, Fib, Filter, Hash, MeterRates, Meters, Uplink, UplinkTables,
    allow_wide_vectors, session_key,
};
use dpdk::{Burst, Eal, MemoryPeer, Pool, Port, Queue, tsc};
use ipnet::IpNet;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::Ipv4Addr;

/// Routes upstream.
const ROUTES: usize = 600_000;
/// Rules upstream.
const RULES: usize = 150;
/// Sessions that one rule of the reverse path is about: there are 4,096 rules.
const PER_RULE: u32 = 32;
/// Second-level blocks of `rte_fib`.
const BLOCKS: u32 = 1 << 15;
/// 100 Mb/s. What the bench sends is less, so that all packets are green.
const TWO_RATES: MeterRates = MeterRates::TrTcm {
    cir: 12_500_000,
    pir: 25_000_000,
    cbs: 1 << 17,
    pbs: 1 << 18,
};
/// Assured Forwarding 11, which green packets upstream get.
const GREEN_SERVICE: u8 = 10 << 2;

const UP: [&str; 9] = [
    "mbufs",
    "rings",
    "acl-150",
    "qinq",
    "pppoe",
    "trtcm",
    "dscp",
    "lookup",
    "ttl-and-checksum",
];
const DOWN: [&str; 7] = [
    "mbufs",
    "rings",
    "acl-4096",
    "qinq",
    "pppoe",
    "lookup",
    "ttl-and-checksum",
];

/// Frames that come in, in octets, and how many packets go round.
const FIGURES: [(u16, usize); 6] = [
    (64, HOT),
    (64, COLD),
    (128, HOT),
    (128, COLD),
    (512, HOT),
    (512, COLD),
];

/// One packet: as `whole` has it, but with ports that the access list permits.
#[derive(Clone, Copy)]
struct Flow {
    spec: Spec,
    ports: [u8; 4],
}

impl Flow {
    fn random(
        way: Way,
        octets: u16,
        routes: &Routes,
        list: &[Rule],
        random: &mut SmallRng,
    ) -> Self {
        loop {
            let size = Size::Octets(octets);
            let spec = Spec::random(way, Family::V4, size, SESSIONS, routes, random);
            // Rules are about well-known ports.
            let [a, b] = random.random::<u16>().to_be_bytes();
            let [c, d] = random.random_range(0..1024_u16).to_be_bytes();
            let flow = Flow {
                spec,
                ports: [a, b, c, d],
            };
            let found = first_match(list, &tuple(&flow.input(way)[start_in(way)..]));
            if found.is_some_and(|place| list[place].permits) {
                return flow;
            }
        }
    }

    fn input(&self, way: Way) -> Vec<u8> {
        let mut frame = self.spec.input(way);
        let at = start_in(way) + 20;
        frame[at..at + 4].copy_from_slice(&self.ports);
        frame
    }

    fn output(&self, way: Way) -> Vec<u8> {
        let mut frame = self.spec.output(way);
        let ip = &mut frame[start_out(way)..];
        ip[20..24].copy_from_slice(&self.ports);
        if way == Way::Up {
            ip[1] = GREEN_SERVICE;
            ip[10..12].fill(0);
            let sum = wire::checksum::of(&ip[..20]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        frame
    }
}

/// Where the IPv4 header starts in a frame that comes in.
fn start_in(way: Way) -> usize {
    if way == Way::Up { ACCESS_HEADER } else { 14 }
}

/// And in one that goes out.
fn start_out(way: Way) -> usize {
    if way == Way::Up { 14 } else { ACCESS_HEADER }
}

fn tuple(ip: &[u8]) -> Tuple {
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let port = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    Tuple {
        protocol: ip[9],
        source: address(12).into(),
        destination: address(16).into(),
        source_port: port(20),
        destination_port: port(22),
    }
}

/// What is done to a burst.
type Run = Box<dyn FnMut(&mut Burst)>;

/// One way through, between two rings.
struct Path {
    run: Run,
    from: MemoryPeer,
    to: MemoryPeer,
    rx: Queue,
    tx: Queue,
    _ports: [Port; 2],
}

impl Path {
    fn new(eal: &Eal, pool: Pool, name: &str, run: Run) -> Result<Self> {
        let end = |side| -> Result<(Port, MemoryPeer, Queue)> {
            let name = format!("{name}{side}");
            let (mut port, mut peers) = eal.memory_port(&name, 2 * COLD as u32, pool, 1)?;
            let peer = peers.pop().context("a peer")?;
            let queue = port.take_queues().pop().context("a queue")?;
            Ok((port, peer, queue))
        };
        let (inside, from, rx) = end("i")?;
        let (outside, to, tx) = end("o")?;
        Ok(Path {
            run,
            from,
            to,
            rx,
            tx,
            _ports: [inside, outside],
        })
    }

    /// Sends the packets through once; TSC cycles for each. Every octet that comes out is looked at.
    fn pass(&mut self, way: Way, flows: &[Flow], stock: &mut Stock) -> Result<f64> {
        let n = flows.len();
        let ring = &mut self.from.to_port;
        stock.make(
            n,
            |i| flows[i].input(way),
            |_, mbuf| {
                ensure!(ring.send(mbuf).is_ok(), "the ring is full");
                Ok(())
            },
        )?;
        let mut burst = Burst::new();
        let begin = tsc();
        while self.rx.rx(&mut burst) > 0 {
            (self.run)(&mut burst);
            self.tx.tx(&mut burst);
        }
        let took = tsc() - begin;
        let out = &mut self.to.from_port;
        let outcome = stock.unload(n, out, |i| flows[i].output(way));
        outcome.context("the path of DPDK's libraries")?;
        Ok(took as f64 / n as f64)
    }
}

/// What goes through, and what was measured.
struct Figure {
    way: Way,
    octets: u16,
    packets: usize,
    flows: Vec<Flow>,
    next: usize,
    samples: Samples,
}

impl Figure {
    /// The median of a few passes, as of our own path (`whole`).
    fn measure(&mut self, path: &mut Path, stock: &mut Stock) -> Result<()> {
        let passes = if self.packets == HOT { 48 } else { 6 };
        let mut samples = Samples::default();
        for n in 0..=passes {
            let flows = &self.flows[self.next..][..self.packets];
            let cycles = path.pass(self.way, flows, stock)?;
            self.next = (self.next + self.packets) % self.flows.len();
            // The first warms up.
            if n > 0 {
                samples.0.push(cycles);
            }
        }
        self.samples.0.push(samples.median());
        Ok(())
    }

    fn entry(&self) -> Entry {
        let (way, features) = match self.way {
            Way::Up => ("up", UP.to_vec()),
            Way::Down => ("down", DOWN.to_vec()),
        };
        let headers = if self.packets == HOT { "hot" } else { "cold" };
        let octets = self.octets;
        let id = format!("pipeline-{way}-v4-{octets}-{headers}-peer");
        let name = format!("{way}link of DPDK's libraries, IPv4 {octets} octets {headers}");
        Entry {
            features,
            frame: Some(octets.to_string()),
            sessions: Some(SESSIONS),
            routes: (self.way == Way::Up).then_some(ROUTES),
            ..Entry::new(&id, name, "cycles", &self.samples)
        }
    }
}

/// All that is measured of the path.
pub fn measure(
    eal: &Eal,
    pool: Pool,
    stock: &mut Stock,
    prefixes: &Prefixes,
    rounds: usize,
) -> Result<Vec<Entry>> {
    allow_wide_vectors(eal)?;
    let routes = Routes::first(prefixes, ROUTES);
    let lists = [(Way::Up, rules(false, RULES)), (Way::Down, reverse_path())];
    let mut entries = Vec::new();
    for (way, list) in lists {
        let run = match way {
            Way::Up => uplink(eal, &routes, &list)?,
            Way::Down => downlink(eal, &list)?,
        };
        let mut path = Path::new(eal, pool, word(way), run)?;
        let figure = |(octets, packets)| {
            let mut random = SmallRng::seed_from_u64(3);
            let flow = |_| Flow::random(way, octets, &routes, &list, &mut random);
            Figure {
                way,
                octets,
                packets,
                flows: (0..SPECS).map(flow).collect(),
                next: 0,
                samples: Samples::default(),
            }
        };
        let mut figures = FIGURES.map(figure);
        for _ in 0..rounds {
            for figure in &mut figures {
                figure.measure(&mut path, stock)?;
            }
        }
        entries.extend(figures.iter().map(Figure::entry));
    }
    Ok(entries)
}

fn word(way: Way) -> &'static str {
    match way {
        Way::Up => "peer-up",
        Way::Down => "peer-down",
    }
}

/// Each rule permits packets to so many sessions; no other packet is permitted.
fn reverse_path() -> Vec<Rule> {
    let length = 32 - PER_RULE.ilog2() as u8;
    let rule = |n| Rule {
        destination: Some(IpNet::new_assert(
            Ipv4Addr::from(address_v4(n)).into(),
            length,
        )),
        ..Rule::LAST
    };
    (0..SESSIONS).step_by(PER_RULE as usize).map(rule).collect()
}

fn filter(eal: &Eal, name: &str, list: &[Rule]) -> Result<Filter> {
    let form = fastest(eal, list)?;
    let permits = list.iter().map(|rule| rule.permits);
    let rules: Vec<_> = peers(list).into_iter().zip(permits).collect();
    Ok(Filter::new(eal, name, &rules, form)?)
}

fn uplink(eal: &Eal, routes: &Routes, list: &[Rule]) -> Result<Run> {
    // A table of as many entries as sessions could not hold all of them.
    let mut sessions = Hash::new(eal, "peer-up", 2 * SESSIONS)?;
    for n in 0..SESSIONS {
        let (outer, inner) = Layout::PLAIN.tags(n).vids();
        let id = Layout::PLAIN.pppoe_id(n);
        sessions.add(session_key(outer.unwrap_or(0), inner.unwrap_or(0), id))?;
    }
    let mut table = Fib::new(eal, "peer-up", 2 * ROUTES as u32, BLOCKS)?;
    for (net, to) in &routes.v4 {
        table.add(net.network().into(), net.prefix_len(), u64::from(*to))?;
    }
    let mut uplink = Uplink::new(UplinkTables {
        filter: filter(eal, "peer-up", list)?,
        sessions,
        meters: Meters::new(eal, SESSIONS, TWO_RATES)?,
        routes: table,
        neighbours: (0..NEIGHBOURS).map(|n| neighbour(n).0).collect(),
        gateway: GATEWAY.0,
    })?;
    Ok(Box::new(move |burst| uplink.run(burst)))
}

fn downlink(eal: &Eal, list: &[Rule]) -> Result<Run> {
    let mut routes = Fib::new(eal, "peer-down", 2 * SESSIONS, BLOCKS)?;
    for n in 0..SESSIONS {
        routes.add(address_v4(n), 32, n.into())?;
    }
    let headers = (0..SESSIONS).map(access_header);
    let filter = filter(eal, "peer-down", list)?;
    let mut downlink = Downlink::new(filter, routes, headers.collect())?;
    Ok(Box::new(move |burst| downlink.run(burst)))
}

/// What comes before a session's IPv4 packets.
fn access_header(session: u32) -> [u8; ACCESS_HEADER] {
    let mut frame = Vec::with_capacity(ACCESS_HEADER);
    wire::eth::Header {
        destination: home(session),
        source: GATEWAY,
        tags: Layout::PLAIN.tags(session),
        ethertype: wire::eth::PPPOE_SESSION,
    }
    .emit(&mut frame);
    frame.extend([0x11, 0]);
    frame.extend(Layout::PLAIN.pppoe_id(session).to_be_bytes());
    frame.extend([0, 0, 0, 0x21]);
    frame.try_into().expect("an access header")
}
