//! A packet path out of DPDK's libraries over the frames, sessions and routes of our own (`whole`): the stages of Intel's vBNG
//! reference pipeline. It has no checks of a packet's source, no counters of sessions and no clamp of TCP's segment size.
use crate::acl::{fastest, peers};
use crate::flows::{Flows, Kind, Through};
use crate::frames::{Family, GATEWAY, Size, Way, address_v4, home, neighbour};
use crate::layout::Layout;
use crate::report::{Entry, Samples};
use crate::routes::{NEIGHBOURS, Prefixes, Routes};
use crate::rules::{Rule, rules};
use crate::whole::SESSIONS;
use crate::world::{COLD, HOT, Stock};
use anyhow::{Context, Result};
use dpdk::peers::{
    ACCESS_HEADER, Downlink, Fib, Filter, Hash, MeterRates, Meters, Uplink, UplinkTables,
    allow_wide_vectors, session_key,
};
use dpdk::{Burst, Consumer, Eal, MemoryPeer, Pool, Port, Producer, Queue};
use ipnet::IpNet;
use std::net::Ipv4Addr;

/// Routes upstream.
pub const ROUTES: usize = 600_000;
/// Rules upstream.
pub const RULES: usize = 150;
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
pub const GREEN_SERVICE: u8 = 10 << 2;

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

/// What is done to a burst.
pub type Run = Box<dyn FnMut(&mut Burst)>;

/// One way through, between two rings.
pub struct Path {
    run: Run,
    from: MemoryPeer,
    to: MemoryPeer,
    rx: Queue,
    tx: Queue,
    _ports: [Port; 2],
}

impl Path {
    pub fn new(eal: &Eal, pool: Pool, name: &str, run: Run) -> Result<Self> {
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
}

impl Through for Path {
    fn ends(&mut self, _way: Way) -> (&mut Producer, &mut Consumer) {
        (&mut self.from.to_port, &mut self.to.from_port)
    }

    fn run(&mut self) {
        let mut burst = Burst::new();
        while self.rx.rx(&mut burst) > 0 {
            (self.run)(&mut burst);
            self.tx.tx(&mut burst);
        }
    }
}

/// What goes through, and what was measured.
struct Figure {
    octets: u16,
    flows: Flows,
    samples: Samples,
}

impl Figure {
    fn measure(&mut self, path: &mut Path, stock: &mut Stock) -> Result<()> {
        let cycles = self
            .flows
            .measure(path, service(self.flows.kind.way), stock);
        let cycles = cycles.context("the path of DPDK's libraries")?;
        self.samples.0.push(cycles);
        Ok(())
    }

    fn entry(&self) -> Entry {
        let way = self.flows.kind.way;
        let (word, features) = match way {
            Way::Up => ("up", UP.to_vec()),
            Way::Down => ("down", DOWN.to_vec()),
        };
        let (headers, octets) = (self.flows.headers(), self.octets);
        let id = format!("pipeline-{word}-v4-{octets}-{headers}-peer");
        let name = format!("{word}link of DPDK's libraries, IPv4 {octets} octets {headers}");
        Entry {
            features,
            frame: Some(octets.to_string()),
            sessions: Some(SESSIONS),
            routes: (way == Way::Up).then_some(ROUTES),
            ..Entry::new(&id, name, "cycles", &self.samples)
        }
    }
}

/// Type of service that packets get: upstream all are green.
fn service(way: Way) -> u8 {
    if way == Way::Up { GREEN_SERVICE } else { 0 }
}

/// IPv4 in frames of so many octets, of all sessions.
pub fn plain(way: Way, octets: u16, packets: usize) -> Kind {
    Kind {
        way,
        family: Family::V4,
        size: Size::Octets(octets),
        sessions: SESSIONS,
        packets,
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
        let lists = [list];
        let figure = |(octets, packets)| Figure {
            octets,
            flows: Flows::new(plain(way, octets, packets), &routes, &lists),
            samples: Samples::default(),
        };
        let mut figures = FIGURES.map(figure);
        for _ in 0..rounds {
            figures[0].flows.warm(&mut path, service(way), stock)?;
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

/// Upstream: the list, each session and its meter, and the routes.
pub fn uplink(eal: &Eal, routes: &Routes, list: &[Rule]) -> Result<Run> {
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
