//! Packets that access lists permit, and how they go round in what is measured.
use crate::frames::{Family, Size, Spec, Way};
use crate::report::Samples;
use crate::routes::Routes;
use crate::rules::{Rule, Tuple, first_match};
use crate::whole::WARM;
use crate::world::{HOT, SPECS, Stock};
use anyhow::{Result, ensure};
use dpdk::peers::ACCESS_HEADER;
use dpdk::{Consumer, Producer, tsc};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

/// What packets go through. Those that come out are all that went in, in their order.
pub trait Through {
    /// Where packets of a way go in, and where they come out.
    fn ends(&mut self, way: Way) -> (&mut Producer, &mut Consumer);

    /// Takes all that went in through.
    fn run(&mut self);
}

/// Which packets there are.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub way: Way,
    pub family: Family,
    pub size: Size,
    /// Sessions that they are of.
    pub sessions: u32,
    /// How many go round at a time: hot or cold.
    pub packets: usize,
}

/// One packet: as `whole` has it, but with ports that the session's access list permits.
#[derive(Clone, Copy)]
pub struct Flow {
    spec: Spec,
    ports: [u8; 4],
}

impl Flow {
    fn random(kind: Kind, routes: &Routes, lists: &[Vec<Rule>], random: &mut SmallRng) -> Self {
        let Kind {
            way,
            family,
            size,
            sessions,
            ..
        } = kind;
        loop {
            let spec = Spec::random(way, family, size, sessions, routes, random);
            if let Some(flow) = Flow::permitted(spec, way, lists, random) {
                return flow;
            }
        }
    }

    /// With ports at random, unless the session's list denies them.
    pub fn permitted(
        spec: Spec,
        way: Way,
        lists: &[Vec<Rule>],
        random: &mut SmallRng,
    ) -> Option<Flow> {
        // Rules are about well-known ports at the far end.
        let own = random.random::<u16>().to_be_bytes();
        let far = random.random_range(0..1024_u16).to_be_bytes();
        let ports = match way {
            Way::Up => [own, far],
            Way::Down => [far, own],
        };
        let flow = Flow {
            spec,
            ports: ports.as_flattened().try_into().expect("two ports"),
        };
        let list = &lists[spec.session as usize % lists.len()];
        if list.is_empty() {
            return Some(flow);
        }
        let found = first_match(list, &tuple(&flow.input(way)[start_in(way)..]));
        found
            .is_some_and(|place| list[place].permits)
            .then_some(flow)
    }

    pub fn input(&self, way: Way) -> Vec<u8> {
        let mut frame = self.spec.input(way);
        self.set_ports(&mut frame[start_in(way)..]);
        frame
    }

    /// With the type of service that it gets.
    pub fn output(&self, way: Way, service: u8) -> Vec<u8> {
        let mut frame = self.spec.output(way);
        let ip = &mut frame[start_out(way)..];
        self.set_ports(ip);
        set_service(ip, service);
        frame
    }

    fn set_ports(&self, ip: &mut [u8]) {
        let at = header(ip);
        ip[at..at + 4].copy_from_slice(&self.ports);
    }
}

/// Sets the type of service of a packet.
pub fn set_service(ip: &mut [u8], service: u8) {
    match is_v6(ip) {
        true => (ip[0], ip[1]) = (0x60 | service >> 4, service << 4),
        false => {
            ip[1] = service;
            ip[10..12].fill(0);
            let sum = wire::checksum::of(&ip[..20]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// Where the IP header starts in a frame that comes in.
pub fn start_in(way: Way) -> usize {
    if way == Way::Up { ACCESS_HEADER } else { 14 }
}

/// And in one that goes out.
pub fn start_out(way: Way) -> usize {
    if way == Way::Up { 14 } else { ACCESS_HEADER }
}

fn is_v6(ip: &[u8]) -> bool {
    ip[0] >> 4 == 6
}

/// Octets of the IP header.
pub fn header(ip: &[u8]) -> usize {
    if is_v6(ip) { 40 } else { 20 }
}

fn tuple(ip: &[u8]) -> Tuple {
    let v4 = |at: usize| Ipv4Addr::from_octets(ip[at..at + 4].try_into().expect("an address"));
    let v6 = |at: usize| Ipv6Addr::from_octets(ip[at..at + 16].try_into().expect("an address"));
    let port = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let (protocol, source, destination) = match is_v6(ip) {
        true => (ip[6], v6(8).into(), v6(24).into()),
        false => (ip[9], v4(12).into(), v4(16).into()),
    };
    Tuple {
        protocol,
        source,
        destination,
        source_port: port(header(ip)),
        destination_port: port(header(ip) + 2),
    }
}

/// Packets of one kind, of which some go round at a time.
pub struct Flows {
    pub kind: Kind,
    all: Vec<Flow>,
    next: usize,
}

impl Flows {
    /// Packets to the networks of the routes, or from there. Session n has the list n modulo their number, which permits its packets;
    /// one without rules permits all.
    pub fn new(kind: Kind, routes: &Routes, lists: &[Vec<Rule>]) -> Self {
        let mut random = SmallRng::seed_from_u64(3);
        let flow = |_| Flow::random(kind, routes, lists, &mut random);
        Flows {
            kind,
            all: (0..SPECS).map(flow).collect(),
            next: 0,
        }
    }

    /// The word for how many there are.
    pub fn headers(&self) -> &'static str {
        if self.kind.packets == HOT {
            "hot"
        } else {
            "cold"
        }
    }

    /// The median of a few passes, as of our own path (`whole`): TSC cycles a packet. All get this type of service.
    pub fn measure(
        &mut self,
        through: &mut impl Through,
        service: u8,
        stock: &mut Stock,
    ) -> Result<f64> {
        let passes = if self.kind.packets == HOT { 48 } else { 6 };
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

    /// Lets each packet pass once: a session's meter is made by its first packet, which is not what is to be measured.
    pub fn all(
        &mut self,
        through: &mut impl Through,
        service: u8,
        stock: &mut Stock,
    ) -> Result<()> {
        for _ in 0..self.all.len() / self.kind.packets {
            self.pass(through, service, stock)?;
        }
        Ok(())
    }

    /// Sends packets through once. Every octet that comes out is looked at.
    pub fn pass(
        &mut self,
        through: &mut impl Through,
        service: u8,
        stock: &mut Stock,
    ) -> Result<f64> {
        let Kind {
            way, packets: n, ..
        } = self.kind;
        let flows = &self.all[self.next..][..n];
        self.next = (self.next + n) % self.all.len();
        let (from, _) = through.ends(way);
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
        let (_, to) = through.ends(way);
        stock.unload(n, to, |i| flows[i].output(way, service))?;
        Ok(took as f64 / n as f64)
    }
}
