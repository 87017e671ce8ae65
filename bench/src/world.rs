//! A data plane with sessions and routes between two rings, and packets that go round in it.
use crate::flows::Through;
use crate::frames::*;
use crate::layout::Layout;
use crate::routes::{NEIGHBOURS, Routes};
use anyhow::{Context, Result, bail, ensure};
use dataplane::*;
use dpdk::{BURST, Burst, Consumer, Eal, Mbuf, MemoryPeer, Pool, Producer, tsc};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Packets that go round at most.
pub const COLD: usize = 8192;
/// So few that their headers stay in the second cache.
pub const HOT: usize = 512;
/// Different packets of a scenario.
pub const SPECS: usize = 1 << 16;

/// Packets of one instance in a row: each of 64 instances has its turn.
pub const RUN: usize = SPECS / 64;

/// What a world is made of.
pub struct Plan {
    pub sessions: u32,
    pub layout: Layout,
    /// Those of each instance.
    pub routes: Vec<Routes>,
    pub workers: u16,
}

impl Plan {
    /// One worker, and sessions in the plain layout.
    pub fn plain(sessions: u32, routes: Routes) -> Self {
        Plan {
            sessions,
            layout: Layout::PLAIN,
            routes: vec![routes],
            workers: 1,
        }
    }

    fn config(&self) -> Config {
        let mut config = Config {
            workers: self.workers,
            ..Config::default()
        };
        config.limits.sessions = config.limits.sessions.max(self.sessions);
        config.limits.instances = self.layout.instances;
        config.limits.routes = 4 << 20;
        config
    }
}

/// A data plane at work, whose workers have a queue of each port.
pub struct World {
    pub controller: Controller,
    pub workers: Vec<Worker>,
    pub homes: Vec<MemoryPeer>,
    pub routers: Vec<MemoryPeer>,
    pub routes: Vec<Routes>,
    pub sessions: u32,
}

impl World {
    /// Each worker, where its packets come from and where they go.
    pub fn sides(
        &mut self,
        way: Way,
    ) -> impl Iterator<Item = (&mut Worker, &mut MemoryPeer, &mut MemoryPeer)> {
        let (from, to) = match way {
            Way::Up => (&mut self.homes, &mut self.routers),
            Way::Down => (&mut self.routers, &mut self.homes),
        };
        let places = self.workers.iter_mut().zip(from).zip(to);
        places.map(|((worker, from), to)| (worker, from, to))
    }

    pub fn new(eal: &Eal, pool: Pool, name: &str, plan: Plan) -> Result<Self> {
        let size = 2 * COLD as u32;
        let (access, homes) = eal.memory_port(&format!("{name}a"), size, pool, plan.workers)?;
        let (core, routers) = eal.memory_port(&format!("{name}c"), size, pool, plan.workers)?;
        let (mut controller, workers) = channel(eal, pool, plan.config())?;
        let segments = plan.layout.segments(plan.sessions);
        let instance = InstanceIndex(0);
        for (index, port, role) in [
            (ACCESS, access, Role::Access { segments }),
            (CORE, core, Role::Core { instance }),
        ] {
            let mac = Some(GATEWAY);
            controller.add_port(index, PortConfig { port, mac, role })?;
        }
        let mut world = World {
            controller,
            workers,
            homes,
            routers,
            routes: plan.routes,
            sessions: plan.sessions,
        };
        world.fill(plan.layout)?;
        Ok(world)
    }

    fn fill(&mut self, layout: Layout) -> Result<()> {
        let instances = || (0..layout.instances).map(InstanceIndex);
        for instance in instances() {
            let Some(vlan) = layout.core_vlan(instance) else {
                continue;
            };
            let part = Subinterface {
                port: CORE,
                vlan,
                instance,
                mtu: 1500,
            };
            let interface = layout.core_interface(instance);
            self.controller.add_subinterface(interface, part)?;
        }
        for n in 0..NEIGHBOURS {
            let instance = InstanceIndex((n % u32::from(layout.instances)) as u16);
            let to = Adjacency {
                port: layout.core_interface(instance),
                mac: Some(neighbour(n)),
            };
            self.controller.set_adjacency(AdjacencyIndex(n), to)?;
        }
        for n in 0..self.sessions {
            self.settle()?;
            self.controller.set_session(layout.entry(n))?;
        }
        for instance in instances() {
            let routes: Vec<_> = self.routes[usize::from(instance.0)].all().collect();
            for (net, to) in routes {
                self.settle()?;
                let to = Destination::Adjacency(AdjacencyIndex(to));
                self.controller.set_route(instance, net, to)?;
            }
        }
        while self.controller.free_commands() < 4096 {
            self.step();
        }
        self.settle()
    }

    /// A round of each worker; how much there was to do.
    pub fn step(&mut self) -> usize {
        self.workers.iter_mut().map(Worker::step).sum()
    }

    /// No packet was dropped: what goes in comes out.
    pub fn check_drops(&self) -> Result<()> {
        let drops = self
            .controller
            .drops()
            .into_iter()
            .filter(|drop| drop.packets > 0);
        let drops: Vec<_> = drops
            .map(|drop| (drop.reason.name(), drop.packets))
            .collect();
        ensure!(drops.is_empty(), "packets were dropped: {drops:?}");
        Ok(())
    }

    /// Lets the worker catch up when there is little room, and hears what it says.
    pub fn settle(&mut self) -> Result<()> {
        while self.controller.free_commands() < 64 {
            self.step();
        }
        while let Some(event) = self.controller.poll_event() {
            ensure!(
                !matches!(
                    event,
                    Event::SessionRefused { .. } | Event::RouteRefused { .. }
                ),
                "{event:?}"
            );
        }
        Ok(())
    }
}

/// By its first worker.
impl Through for World {
    fn ends(&mut self, way: Way) -> (&mut Producer, &mut Consumer) {
        let (home, router) = (&mut self.homes[0], &mut self.routers[0]);
        match way {
            Way::Up => (&mut home.to_port, &mut router.from_port),
            Way::Down => (&mut router.to_port, &mut home.from_port),
        }
    }

    fn run(&mut self) {
        while self.workers[0].step() > 0 {}
    }
}

/// What goes through, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub way: Way,
    pub family: Family,
    pub size: Size,
    /// That of the world.
    pub layout: Layout,
    /// [`RUN`] packets in a row are of one instance, then as many of the next; else each is of any.
    pub in_runs: bool,
    /// Sessions that have traffic: the first so many.
    pub sessions: u32,
    /// Packets that go round.
    pub packets: usize,
}

impl Scenario {
    /// IPv4 in frames of 64 octets, of sessions in the plain layout.
    pub fn plain(way: Way, sessions: u32, packets: usize) -> Self {
        Scenario {
            way,
            family: Family::V4,
            size: Size::Octets(64),
            layout: Layout::PLAIN,
            in_runs: false,
            sessions,
            packets,
        }
    }
}

/// A scenario's packets.
pub struct Traffic {
    scenario: Scenario,
    specs: Vec<Spec>,
    next: usize,
}

impl Traffic {
    /// With the routes of each instance.
    pub fn new(scenario: Scenario, routes: &[Routes]) -> Self {
        let mut random = SmallRng::seed_from_u64(3);
        let mut turns = SmallRng::seed_from_u64(4);
        let Scenario {
            way,
            family,
            size,
            sessions,
            layout,
            ..
        } = scenario;
        let spec = |n: usize| {
            let instance = match scenario.in_runs {
                true => n / RUN % routes.len(),
                false => turns.random_range(0..routes.len()),
            };
            let own = &routes[instance];
            Spec::random(way, family, size, sessions, own, &mut random)
                .within(layout, InstanceIndex(instance as u16))
        };
        Traffic {
            scenario,
            specs: (0..SPECS).map(spec).collect(),
            next: 0,
        }
    }

    /// The packet that comes after `n` others.
    pub fn spec(&self, n: usize) -> &Spec {
        &self.specs[(self.next + n) % SPECS]
    }

    /// Goes on to the next packets.
    pub fn advance(&mut self) {
        self.next = (self.next + self.scenario.packets) % SPECS;
    }

    /// The packets as they come in, in bursts.
    pub fn bursts(&self, stock: &mut Stock) -> Result<Vec<Burst>> {
        let n = self.scenario.packets;
        let mut bursts: Vec<Burst> = (0..n / BURST).map(|_| Burst::new()).collect();
        stock.make(
            n,
            |i| self.spec(i).input(self.scenario.way),
            |i, mbuf| {
                ensure!(bursts[i / BURST].push(mbuf).is_ok(), "a burst is full");
                Ok(())
            },
        )?;
        Ok(bursts)
    }

    /// Sends the packets through once; TSC cycles for each. Every octet that comes out is looked at.
    pub fn pass(&mut self, world: &mut World, stock: &mut Stock) -> Result<f64> {
        let (way, n) = (self.scenario.way, self.scenario.packets);
        let (from, to) = match way {
            Way::Up => (&mut world.homes[0], &mut world.routers[0]),
            Way::Down => (&mut world.routers[0], &mut world.homes[0]),
        };
        stock.make(
            n,
            |i| self.spec(i).input(way),
            |_, mbuf| {
                ensure!(from.to_port.send(mbuf).is_ok(), "the ring is full");
                Ok(())
            },
        )?;
        let [worker] = &mut world.workers[..] else {
            bail!("a pass is one worker's");
        };
        let begin = tsc();
        while worker.step() > 0 {}
        let took = tsc() - begin;
        stock
            .unload(n, &mut to.from_port, |i| self.spec(i).output(way))
            .with_context(|| format!("{:?}", self.scenario))?;
        self.advance();
        Ok(took as f64 / n as f64)
    }
}

/// The packets that are not under way.
pub struct Stock {
    idle: Vec<Mbuf>,
    burst: Burst,
}

impl Stock {
    pub fn new(pool: Pool) -> Result<Self> {
        Self::some(pool, COLD)
    }

    /// So many packets.
    pub fn some(pool: Pool, packets: usize) -> Result<Self> {
        let fresh = |_| {
            let mut mbuf = pool.alloc().context("a packet buffer")?;
            ensure!(mbuf.append(&[FILL; 1700]), "room in a packet buffer");
            Ok(mbuf)
        };
        Ok(Stock {
            idle: (0..packets).map(fresh).collect::<Result<_>>()?,
            burst: Burst::new(),
        })
    }

    /// Makes `n` packets and gives them away. Their headers are written anew; what lies behind is what it was.
    pub fn make(
        &mut self,
        n: usize,
        frame: impl Fn(usize) -> Vec<u8>,
        mut to: impl FnMut(usize, Mbuf) -> Result<()>,
    ) -> Result<()> {
        let first = self.idle.len() - n;
        for (i, mut mbuf) in self.idle.drain(first..).enumerate() {
            let frame = frame(i);
            mbuf.reset();
            let header = &frame[..frame.len().min(HEADERS)];
            let written = mbuf.append(header) && mbuf.extend(frame.len() as u16);
            ensure!(written, "a packet buffer is too small");
            to(i, mbuf)?;
        }
        Ok(())
    }

    /// Gives `n` packets away, whatever is in them.
    pub fn give(&mut self, n: usize) -> Vec<Mbuf> {
        self.idle.split_off(self.idle.len() - n)
    }

    /// Takes packets back. What lies behind their headers is what it has to be again.
    pub fn take(&mut self, packets: Vec<Mbuf>) {
        for mut mbuf in packets {
            mbuf.reset();
            mbuf.append(&[FILL; 1700]);
            self.idle.push(mbuf);
        }
    }

    /// Takes packets back.
    pub fn take_back(&mut self, bursts: Vec<Burst>) {
        for mut burst in bursts {
            self.idle.extend(std::iter::from_fn(|| burst.pop()));
        }
    }

    /// Takes `n` packets out of a ring, and compares them.
    pub fn unload(
        &mut self,
        n: usize,
        ring: &mut dpdk::Consumer,
        frame: impl Fn(usize) -> Vec<u8>,
    ) -> Result<()> {
        let mut at = 0;
        while ring.recv_burst(&mut self.burst) > 0 {
            for found in self.burst.frames() {
                ensure!(
                    found == frame(at),
                    "packet {at} is not what it should be: {found:02x?}"
                );
                at += 1;
            }
            while let Some(mbuf) = self.burst.pop() {
                self.idle.push(mbuf);
            }
        }
        ensure!(at == n, "{at} of {n} packets came out");
        Ok(())
    }
}
