//! Access lists and their traffic: drawn at random, the same each time.
//!
//! Rules are shaped as those of ClassBench's seeds are: destinations share networks, most rules name one port, few name a source.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use acl::{Packet4, Packet6, Rule, Upper};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Subscribers, from whose addresses packets come.
const SUBSCRIBERS: u32 = 131_072;

/// Ports that rules name alone, and ranges of ports: 50 in all.
const SINGLE: [u16; 36] = [
    20, 21, 22, 23, 25, 53, 67, 69, 80, 110, 111, 119, 123, 135, 137, 139, 143, 161, 179, 389, 443,
    445, 465, 500, 514, 587, 636, 853, 993, 995, 1433, 1521, 3306, 3389, 5060, 8080,
];
const RANGES: [(u16, u16); 14] = [
    (0, 1023),
    (1024, 65535),
    (20, 21),
    (67, 68),
    (137, 139),
    (161, 162),
    (512, 514),
    (1812, 1813),
    (2300, 2400),
    (5060, 5061),
    (6000, 6063),
    (6881, 6999),
    (8000, 8080),
    (49152, 65535),
];

/// First and last port.
type Ports = (u16, u16);

/// A prefix: its network and its length.
type Net = (u128, u32);

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// A rule's conditions. `None` is whatever there is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Conditions {
    protocol: Option<u8>,
    source: Option<Net>,
    source_ports: Option<Ports>,
    destination: Option<Net>,
    destination_ports: Option<Ports>,
}

/// A list for one family, of which the last rule permits everything.
pub struct List {
    family: Family,
    conditions: Vec<Conditions>,
    pub rules: Vec<Rule>,
}

impl List {
    /// `count` different rules.
    pub fn draw(family: Family, count: usize, seed: u64) -> List {
        let mut random = SmallRng::seed_from_u64(seed);
        let sites: Vec<u128> = (0..count.div_ceil(4))
            .map(|_| family.remote(&mut random))
            .collect();
        let mut seen = HashSet::new();
        let mut list = List {
            family,
            conditions: Vec::with_capacity(count),
            rules: Vec::with_capacity(count),
        };
        while list.rules.len() + 1 < count {
            let conditions = family.conditions(&sites, &mut random);
            if seen.insert(conditions) {
                let permits = random.random_ratio(2, 5);
                list.push(conditions, permits);
            }
        }
        list.push(Conditions::NONE, true);
        list
    }

    fn push(&mut self, conditions: Conditions, permits: bool) {
        let text = conditions.text(self.family, permits);
        let rule = text.parse();
        self.rules.push(rule.expect("a rule"));
        self.conditions.push(conditions);
    }

    /// A packet. Four of five are drawn from rules; the others match the last rule alone. `first_match` finds the first rule.
    pub fn packet<P: Packet>(
        &self,
        random: &mut SmallRng,
        first_match: impl Fn(&P) -> Option<u32>,
    ) -> P {
        loop {
            let is_drawn = random.random_ratio(4, 5);
            let conditions = match is_drawn {
                true => one_of(&self.conditions, random),
                false => Conditions::NONE,
            };
            let packet = P::of(&self.random_packet(&conditions, random));
            let last = self.rules.len() as u32 - 1;
            if is_drawn || first_match(&packet) == Some(last) {
                return packet;
            }
        }
    }

    fn random_packet(&self, conditions: &Conditions, random: &mut SmallRng) -> Packet6 {
        let source = conditions.source.map(|net| self.family.within(net, random));
        let destination = conditions
            .destination
            .map(|net| self.family.within(net, random));
        let mut port = |ports: Option<Ports>, most| match ports {
            Some((first, last)) => random.random_range(first..=last),
            None => random.random_range(0..=most),
        };
        let source_port = port(conditions.source_ports, u16::MAX);
        let destination_port = port(conditions.destination_ports, 1023);
        let protocol = conditions
            .protocol
            .unwrap_or_else(|| one_of(&[TCP, UDP], random));
        let upper = match protocol {
            TCP => Upper::Flags,
            _ => Upper::Ports,
        };
        Packet6 {
            source: source.unwrap_or_else(|| self.family.subscriber(random)),
            destination: destination.unwrap_or_else(|| self.family.remote(random)),
            source_port,
            destination_port,
            length: random.random_range(40..=1500),
            protocol,
            tcp_flags: 16,
            upper,
            ..Packet6::default()
        }
    }
}

/// A packet of either family.
pub trait Packet: Copy {
    fn of(packet: &Packet6) -> Self;
}

impl Packet for Packet6 {
    fn of(packet: &Packet6) -> Packet6 {
        *packet
    }
}

impl Packet for Packet4 {
    fn of(packet: &Packet6) -> Packet4 {
        Packet4 {
            source: packet.source as u32,
            destination: packet.destination as u32,
            source_port: packet.source_port,
            destination_port: packet.destination_port,
            length: packet.length,
            protocol: packet.protocol,
            dscp: packet.dscp,
            tcp_flags: packet.tcp_flags,
            fragment: packet.fragment,
            upper: packet.upper,
        }
    }
}

impl Conditions {
    const NONE: Conditions = Conditions {
        protocol: None,
        source: None,
        source_ports: None,
        destination: None,
        destination_ports: None,
    };

    fn text(&self, family: Family, permits: bool) -> String {
        let action = if permits { "permit" } else { "deny" };
        let protocol = match self.protocol {
            Some(TCP) => "tcp",
            Some(_) => "udp",
            None => "ip",
        };
        let side = |net: Option<Net>, ports: Option<Ports>| {
            let net = net.map_or("any".to_owned(), |net| family.text(net));
            let ports = ports.map_or(String::new(), |(first, last)| format!(" {first}-{last}"));
            net + &ports
        };
        let source = side(self.source, self.source_ports);
        let destination = side(self.destination, self.destination_ports);
        format!("{action} {protocol} from {source} to {destination}")
    }
}

fn one_of<T: Copy>(all: &[T], random: &mut SmallRng) -> T {
    all[random.random_range(0..all.len())]
}

/// One of the 50.
fn ports(random: &mut SmallRng) -> Ports {
    match random.random_range(0..SINGLE.len() + RANGES.len()) {
        n if n < SINGLE.len() => (SINGLE[n], SINGLE[n]),
        n => RANGES[n - SINGLE.len()],
    }
}

impl Family {
    fn conditions(self, sites: &[u128], random: &mut SmallRng) -> Conditions {
        let protocols = [Some(TCP), Some(TCP), Some(TCP), Some(UDP), Some(UDP), None];
        let protocol = one_of(&protocols, random);
        let has_ports = protocol.is_some();
        let source_ports = match random.random_range(0..20) {
            0..17 => None,
            17 | 18 => Some((1024, u16::MAX)),
            _ => Some(ports(random)),
        };
        let destination_ports = random.random_ratio(4, 5).then(|| ports(random));
        Conditions {
            protocol,
            source: random.random_ratio(3, 10).then(|| self.source(random)),
            source_ports: source_ports.filter(|_| has_ports),
            destination: Some(self.destination(one_of(sites, random), random)),
            destination_ports: destination_ports.filter(|_| has_ports),
        }
    }

    fn source(self, random: &mut SmallRng) -> Net {
        let length = match self {
            Family::V4 => one_of(&[16, 18, 20, 22, 24, 28, 32], random),
            Family::V6 => one_of(&[47, 48, 52, 56, 60, 64], random),
        };
        self.net(self.subscriber(random), length)
    }

    /// /8 to /32, or /20 to /128. Short ones are parts of the site's address, so that rules share them.
    fn destination(self, site: u128, random: &mut SmallRng) -> Net {
        match self {
            Family::V4 => {
                let host = site ^ u128::from(random.random::<u8>());
                let lengths = [8, 12, 16, 16, 18, 20, 22, 24, 24, 24, 24, 26, 28, 30];
                let length = one_of(&lengths, random);
                let is_host = random.random_ratio(3, 8);
                self.net(host, if is_host { 32 } else { length })
            }
            Family::V6 => {
                let host = site ^ u128::from(random.random::<u64>());
                let lengths = [
                    20, 29, 32, 32, 36, 40, 48, 48, 48, 48, 56, 56, 64, 64, 64, 96,
                ];
                let length = one_of(&lengths, random);
                let is_host = random.random_ratio(1, 4);
                self.net(host, if is_host { 128 } else { length })
            }
        }
    }

    /// A subscriber's address.
    fn subscriber(self, random: &mut SmallRng) -> u128 {
        let number = u128::from(random.random_range(0..SUBSCRIBERS));
        match self {
            Family::V4 => 0x6440_0000 + number,
            Family::V6 => 0x2001_0db8 << 96 | number << 64 | u128::from(random.random::<u64>()),
        }
    }

    /// An address of the internet, 11.0.0.0 to 99.255.255.255 or in 2400::/8 (no subscriber's).
    fn remote(self, random: &mut SmallRng) -> u128 {
        match self {
            Family::V4 => random.random_range(0x0b00_0000..0x6400_0000_u32).into(),
            Family::V6 => 0x24 << 120 | random.random::<u128>() >> 8,
        }
    }

    /// Bits of an address that are beyond a prefix of this length.
    fn hosts(self, length: u32) -> u128 {
        let (all, width) = match self {
            Family::V4 => (u128::from(u32::MAX), 32),
            Family::V6 => (u128::MAX, 128),
        };
        if length == width { 0 } else { all >> length }
    }

    fn net(self, address: u128, length: u32) -> Net {
        (address & !self.hosts(length), length)
    }

    /// An address in a network.
    fn within(self, (network, length): Net, random: &mut SmallRng) -> u128 {
        network | random.random::<u128>() & self.hosts(length)
    }

    fn text(self, (network, length): Net) -> String {
        match self {
            Family::V4 => format!("{}/{length}", Ipv4Addr::from(network as u32)),
            Family::V6 => format!("{}/{length}", Ipv6Addr::from(network)),
        }
    }
}
