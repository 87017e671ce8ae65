//! Packets that an access list permits, and how they go round in what is measured.
use crate::frames::{Family, Size, Spec, Way};
use crate::report::Samples;
use crate::routes::Routes;
use crate::rules::{Rule, Tuple, first_match};
use crate::whole::{SESSIONS, WARM};
use crate::world::{HOT, SPECS, Stock};
use anyhow::{Result, ensure};
use dpdk::peers::ACCESS_HEADER;
use dpdk::{Consumer, Producer, tsc};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::Ipv4Addr;
use std::time::Instant;

/// What packets go through. Those that come out are all that went in, in their order.
pub trait Through {
    /// Where they go in, and where they come out.
    fn ends(&mut self) -> (&mut Producer, &mut Consumer);

    /// Takes all that went in through.
    fn run(&mut self);
}

/// One packet of IPv4: as `whole` has it, but with ports that the access list permits.
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

    /// With the type of service that it gets.
    fn output(&self, way: Way, service: u8) -> Vec<u8> {
        let mut frame = self.spec.output(way);
        let ip = &mut frame[start_out(way)..];
        ip[20..24].copy_from_slice(&self.ports);
        ip[1] = service;
        ip[10..12].fill(0);
        let sum = wire::checksum::of(&ip[..20]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
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

/// Packets of one way and size, of which some go round at a time.
pub struct Flows {
    pub way: Way,
    /// Of the frames that come in.
    pub octets: u16,
    /// That go round: hot or cold.
    pub packets: usize,
    all: Vec<Flow>,
    next: usize,
}

impl Flows {
    /// Packets of all sessions to the networks of the routes, which the list permits.
    pub fn new(way: Way, octets: u16, packets: usize, routes: &Routes, list: &[Rule]) -> Self {
        let mut random = SmallRng::seed_from_u64(3);
        let flow = |_| Flow::random(way, octets, routes, list, &mut random);
        Flows {
            way,
            octets,
            packets,
            all: (0..SPECS).map(flow).collect(),
            next: 0,
        }
    }

    /// The word for how many there are.
    pub fn headers(&self) -> &'static str {
        if self.packets == HOT { "hot" } else { "cold" }
    }

    /// The median of a few passes, as of our own path (`whole`): TSC cycles a packet. All get this type of service.
    pub fn measure(
        &mut self,
        through: &mut impl Through,
        service: u8,
        stock: &mut Stock,
    ) -> Result<f64> {
        let passes = if self.packets == HOT { 48 } else { 6 };
        let mut samples = Samples::default();
        for n in 0..=passes {
            let cycles = self.pass(through, service, stock)?;
            // The first warms up.
            if n > 0 {
                samples.0.push(cycles);
            }
        }
        Ok(samples.median())
    }

    /// Lets a core work that has rested, or did something else, for the same reason as `whole` does.
    pub fn warm(
        &mut self,
        through: &mut impl Through,
        service: u8,
        stock: &mut Stock,
    ) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < WARM {
            self.pass(through, service, stock)?;
        }
        Ok(())
    }

    /// Sends packets through once. Every octet that comes out is looked at.
    fn pass(&mut self, through: &mut impl Through, service: u8, stock: &mut Stock) -> Result<f64> {
        let (way, n) = (self.way, self.packets);
        let flows = &self.all[self.next..][..n];
        self.next = (self.next + n) % self.all.len();
        let (from, _) = through.ends();
        stock.make(
            n,
            |i| flows[i].input(way),
            |_, mbuf| {
                ensure!(from.send(mbuf).is_ok(), "the ring is full");
                Ok(())
            },
        )?;
        let begin = tsc();
        through.run();
        let took = tsc() - begin;
        let (_, to) = through.ends();
        stock.unload(n, to, |i| flows[i].output(way, service))?;
        Ok(took as f64 / n as f64)
    }
}
