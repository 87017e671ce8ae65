//! The whole downlink with queues: packets come from the core, wait in the queues of their sessions' policies, and leave to the homes.
use crate::circulation::{Address, CLASSES, Circulation, Population, Side};
use crate::flows::{Flow, header, set_service, start_in, start_out};
use crate::frames::{ACCESS, CORE, Family, HEADERS, Size, Spec, Way};
use crate::layout::Layout;
use crate::pipeline::ROUTES;
use crate::policies::{compiled, give, number, of_rules};
use crate::queues::{FRAME, FRAMES, PORT_KBPS, WIRE};
use crate::report::{Entry, Samples};
use crate::routes::{Prefixes, Routes};
use crate::rules::Rule;
use crate::whole::{FEATURES, SESSIONS};
use crate::world::{Plan, World};
use anyhow::{Context, Result, ensure};
use dataplane::{
    Discipline, Management, Overhead, PacketSettings, Policies, PolicyClass, PolicyRules,
    QueueProfile, QueueRules, QueueSettings, Rate, Segment, SegmentRates, SourceCheck,
};
use dpdk::peers::ACCESS_HEADER;
use dpdk::{BURST, Burst, Eal, Mbuf, Pool, tsc, tsc_hz};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::time::Duration;

/// What ids begin with.
pub const ID: &str = "down-full";

/// Packets that the port sends in a second: as many as in `queues`.
const PORT: f64 = PORT_KBPS as f64 * 1000.0 / ((FRAME + WIRE) as f64 * 8.0);
/// What the subscribers' rates together take of it, if packets are to wait.
const BUSY: f64 = 0.9;

/// What the downlink does, and for whom.
pub struct Load {
    pub name: &'static str,
    pub family: Family,
    pub size: Size,
    pub sessions: u32,
    /// Lists that the packets are permitted by: session n has the list n modulo their number.
    pub lists: Vec<Vec<Rule>>,
    /// The policy of each list, without queues.
    pub policies: Vec<PolicyRules>,
    /// What keeps packets from waiting for long.
    pub management: Management,
    /// Whether sources must have a way back.
    pub is_checked: bool,
    /// Whether segments have rates too: that of the port.
    pub has_segments: bool,
    /// The first subscribers have packets, which wait or not.
    pub population: Population,
}

impl Load {
    /// IPv4 in frames of 64 octets, and no rules.
    fn plain(name: &'static str, population: Population) -> Result<Self> {
        Ok(Load {
            name,
            family: Family::V4,
            size: Size::Octets(64),
            sessions: SESSIONS,
            lists: vec![Vec::new()],
            policies: vec![of_rules(&[])?],
            management: Management::TailDrop,
            is_checked: false,
            has_segments: false,
            population,
        })
    }

    fn spec(&self, routes: &Routes, random: &mut SmallRng) -> Spec {
        let sessions = self.population.subscribers;
        Spec::random(Way::Down, self.family, self.size, sessions, routes, random)
    }

    /// The packets, each of which its subscriber's list permits.
    fn packets(&self, routes: &Routes) -> Vec<(Flow, Address)> {
        let mut random = SmallRng::seed_from_u64(3);
        let mut flow = |to: Address| {
            loop {
                let mut spec = self.spec(routes, &mut random);
                spec.session = to.subscriber;
                if let Some(flow) = Flow::permitted(spec, Way::Down, &self.lists, &mut random) {
                    return (flow, to);
                }
            }
        };
        self.population.addresses().map(&mut flow).collect()
    }

    /// The port's rate, and that of each subscriber: so much that all send as many packets.
    fn rates(&self, packets: &[(Flow, Address)]) -> (Rate, Vec<Rate>) {
        let octets = |(flow, _): &(Flow, Address)| flow.output(Way::Down, 0).len() + WIRE as usize;
        let mean =
            |of: &[(Flow, Address)]| of.iter().map(octets).sum::<usize>() as f64 / of.len() as f64;
        let rate = |octets: f64, packets: f64| Rate::kbps((octets * packets * 8.0 / 1000.0) as u64);
        let each = match self.population.waits() {
            true => PORT * BUSY / f64::from(self.population.subscribers),
            false => PORT / 100.0,
        };
        let own = packets.chunks(self.population.frames as usize);
        let own = own.map(|packets| rate(mean(packets), each));
        (rate(mean(packets), PORT), own.collect())
    }

    /// With a queue for each of four classes, by code points.
    fn with_queues(&self, rules: &PolicyRules) -> PolicyRules {
        let class = |class: usize| PolicyClass {
            name: format!("class {class}").into(),
            dscps: 1 << (service(class) >> 2),
            priorities: 0,
            policer: None,
            mark: None,
        };
        let queue = QueueSettings {
            discipline: Discipline::Weighted(1),
            management: self.management,
            ..QueueSettings::default()
        };
        PolicyRules {
            classes: (1..CLASSES).map(class).collect(),
            queues: Some(QueueRules {
                profile: QueueProfile {
                    classes: vec![queue; CLASSES],
                    overhead: Overhead::octets((ACCESS_HEADER + WIRE as usize) as i16),
                },
                weight: 1,
            }),
            ..rules.clone()
        }
    }
}

/// Type of service of a class's packets: class selectors (RFC 2474 §4.2.2).
fn service(class: usize) -> u8 {
    (class as u8) << 5
}

/// A data plane whose worker's clock goes on as the port sends.
pub struct Downlink {
    world: World,
    /// What the packets are, by their numbers, which they carry.
    packets: Vec<(Flow, Address)>,
    /// How many of them there are frames of.
    made: usize,
    port: Rate,
    segments: Vec<Segment>,
    now: f64,
    /// Ticks from one burst that comes to the next.
    burst: f64,
}

impl Downlink {
    fn new(eal: &Eal, pool: Pool, load: Load, routes: Routes) -> Result<Self> {
        let packets = load.packets(&routes);
        let (port, own) = load.rates(&packets);
        let plan = Plan::plain(load.sessions, routes);
        let mut world = World::new(eal, pool, &format!("q-{}", load.name), plan)?;
        if load.is_checked {
            (world.controller).set_source_check(CORE, SourceCheck::Strict)?;
        }
        for (at, rules) in load.policies.iter().enumerate() {
            let policy = compiled(&world.controller, &load.with_queues(rules))?;
            (world.controller).set_policy(number(1 + at), Some(policy))?;
            world.settle()?;
        }
        let policies = load.policies.len();
        give(&mut world, |n, packets| {
            let packets = PacketSettings {
                rate_down: own.get(n as usize).copied(),
                ..packets
            };
            let down = Some(number(1 + n as usize % policies));
            (packets, Policies { up: None, down })
        })?;
        let frame = tsc_hz(eal) as f64 / PORT;
        Ok(Downlink {
            world,
            packets,
            made: 0,
            port,
            segments: match load.has_segments {
                true => Layout::PLAIN.segments(load.sessions),
                false => Vec::new(),
            },
            now: tsc() as f64,
            // a little less than all subscribers' rates together permit leaves until the next burst comes
            burst: frame * BURST as f64 / BUSY * 0.95,
        })
    }

    /// The frame of a packet with a number as it comes in.
    fn input(&self, number: usize) -> Result<Vec<u8>> {
        let (flow, to) = self.packets.get(number).context("an unknown packet")?;
        let mut frame = flow.input(Way::Down);
        let ip = &mut frame[start_in(Way::Down)..];
        set_service(ip, service(to.class));
        place(ip)?.copy_from_slice(&(number as u32).to_be_bytes());
        Ok(frame)
    }

    /// And as it goes out.
    fn output(&self, number: usize) -> Result<Vec<u8>> {
        let (flow, to) = self.packets.get(number).context("an unknown packet")?;
        let mut frame = flow.output(Way::Down, service(to.class));
        place(&mut frame[start_out(Way::Down)..])?.copy_from_slice(&(number as u32).to_be_bytes());
        Ok(frame)
    }

    /// Hands frames to the worker.
    fn send(&mut self, frames: impl Iterator<Item = Mbuf>) -> Result<()> {
        let ring = &mut self.world.routers[0].to_port;
        for frame in frames {
            ensure!(ring.send(frame).is_ok(), "the ring is full");
        }
        Ok(())
    }
}

/// Where a packet carries its number: behind the longest header of its transport.
fn place(ip: &mut [u8]) -> Result<&mut [u8]> {
    let at = header(ip) + 20;
    ip.get_mut(at..at + 4).context("a packet without room")
}

/// The number of a packet.
fn numbered(ip: &[u8]) -> Result<usize> {
    let octets = ip.get(header(ip) + 20..).and_then(<[u8]>::first_chunk);
    let octets = octets.context("a packet without its number")?;
    Ok(u32::from_be_bytes(*octets) as usize)
}

impl Side for Downlink {
    fn frame(&mut self, pool: Pool, _: Address) -> Result<Mbuf> {
        let frame = self.input(self.made)?;
        self.made += 1;
        pool.packet(&frame).context("no buffer is free")
    }

    fn address(&self, frame: &Mbuf) -> Result<Address> {
        let number = numbered(&frame.data()[start_in(Way::Down)..])?;
        let packet = self.packets.get(number);
        packet.map(|(_, to)| *to).context("an unknown packet")
    }

    /// Every octet of it is looked at.
    fn renew(&mut self, mut frame: Mbuf) -> Result<Mbuf> {
        let found = frame.data();
        let number = numbered(&found[start_out(Way::Down)..])?;
        ensure!(
            found == self.output(number)?,
            "packet {number} is not what it should be: {found:02x?}"
        );
        let octets = self.input(number)?;
        frame.reset();
        let header = &octets[..octets.len().min(HEADERS)];
        let written = frame.append(header) && frame.extend(octets.len() as u16);
        ensure!(written, "a packet buffer is too small");
        Ok(frame)
    }

    /// What leaves, as nothing has waited before it, comes again at the same time: in the end all wait.
    fn take(&mut self, coming: &mut Vec<(Address, Mbuf)>) -> Result<()> {
        let mut frames: Vec<_> = coming.drain(..).map(|(_, frame)| frame).collect();
        let mut left = Burst::new();
        while !frames.is_empty() {
            self.send(frames.drain(..))?;
            self.world.workers[0].step_at(self.now as u64);
            while self.world.homes[0].from_port.recv_burst(&mut left) > 0 {
                while let Some(frame) = left.pop() {
                    frames.push(self.renew(frame)?);
                }
            }
        }
        Ok(())
    }

    /// The port and its segments have rates from now on: before, each subscriber has sent what it may send at once.
    fn start(&mut self) -> Result<()> {
        let rate = Some(self.port);
        let segment = |segment: &Segment| SegmentRates {
            id: segment.id,
            vlans: segment.vlans.clone(),
            rate,
            vlan_rate: None,
        };
        let segments: Vec<_> = self.segments.iter().map(segment).collect();
        self.world.controller.set_egress_rate(ACCESS, rate)?;
        self.world.workers[0].step_at(self.now as u64);
        (self.world.controller).set_segment_rates(ACCESS, &segments)?;
        self.world.workers[0].step_at(self.now as u64);
        Ok(())
    }

    fn turn(&mut self, coming: &mut Vec<(Address, Mbuf)>, left: &mut Vec<Mbuf>) -> Result<u64> {
        self.now += self.burst;
        let burst = coming.drain(..BURST.min(coming.len()));
        self.send(burst.map(|(_, frame)| frame))?;
        let begin = tsc();
        self.world.workers[0].step_at(self.now as u64);
        let took = tsc() - begin;
        let ring = &mut self.world.homes[0].from_port;
        left.extend(core::iter::from_fn(|| ring.recv()));
        Ok(took)
    }
}

/// Packets in circulation through a downlink of a load.
pub fn circulate(
    eal: &Eal,
    pool: Pool,
    load: Load,
    routes: Routes,
) -> Result<Circulation<Downlink>> {
    let population = load.population;
    Circulation::new(population, pool, Downlink::new(eal, pool, load, routes)?)
}

/// One round: cycles a packet. None may be dropped.
pub fn round(packets: &mut Circulation<Downlink>) -> Result<f64> {
    let cycles = packets.round()?;
    packets.side.world.check_drops()?;
    Ok(cycles)
}

/// What is measured.
struct Case {
    /// The end of its id.
    end: &'static str,
    name: &'static str,
    population: Population,
    management: Management,
    /// Cycles that are aimed at.
    most: Option<f64>,
}

/// Every case.
fn cases() -> [Case; 4] {
    let few = Case {
        end: "4k",
        name: "4,096 subscribers, whose packets wait",
        population: Population::waiting(4096, FRAMES),
        management: Management::TailDrop,
        most: Some(155.0),
    };
    let idle = Case {
        end: "4k-idle",
        name: "4,096 subscribers, whose queues are empty when a packet comes",
        population: Population::idle(4096),
        most: Some(115.0),
        ..few
    };
    let flows = Case {
        end: "4k-flows",
        name: "the same with queues of flows",
        management: Management::FqCoDel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
        },
        most: None,
        ..few
    };
    let many = Case {
        end: "128k",
        name: "131,072 subscribers, whose packets wait",
        population: Population::waiting(SESSIONS, FRAMES),
        most: Some(210.0),
        ..few
    };
    [idle, few, flows, many]
}

impl Case {
    fn entry(&self, samples: &Samples) -> Entry {
        let id = format!("{ID}-{}", self.end);
        let name = format!("downlink with queues, {}", self.name);
        let entry = Entry {
            features: FEATURES.into_iter().chain(["classes", "queues"]).collect(),
            frame: Some("64".into()),
            sessions: Some(self.population.subscribers),
            routes: Some(ROUTES),
            ..Entry::new(&id, name, "cycles", samples)
        };
        match self.most {
            Some(most) => entry.at_most(most),
            None => entry,
        }
    }
}

/// What a packet of 64 octets costs.
pub fn measure(eal: &Eal, pool: Pool, prefixes: &Prefixes, rounds: usize) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for case in cases() {
        eprintln!("  {ID}-{}", case.end);
        let load = Load {
            management: case.management,
            ..Load::plain(case.end, case.population)?
        };
        let mut packets = circulate(eal, pool, load, Routes::first(prefixes, ROUTES))?;
        let mut samples = Samples::default();
        for _ in 0..rounds {
            samples.0.push(round(&mut packets)?);
        }
        entries.push(case.entry(&samples));
    }
    Ok(entries)
}
