//! Access lists and the traffic that they filter: made up, the same each time.
//!
//! Rules are shaped as those of ClassBench's seeds are: destinations share networks, most rules name one port, few name a
//! source. Sources lie where the bench's subscribers have their addresses (`frames`).
use crate::frames::{address_v4, address_v6};
use crate::whole::SESSIONS;
use dpdk::peers::{AclRule, V4_KEY, V6_KEY};
use ipnet::IpNet;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Ports that rules name alone, and ranges of ports: 50 in all.
const SINGLE: [u16; 36] = [
    20, 21, 22, 23, 25, 53, 67, 69, 80, 110, 111, 119, 123, 135, 137, 139, 143, 161, 179, 389, 443,
    445, 465, 500, 514, 587, 636, 853, 993, 995, 1433, 1521, 3306, 3389, 5060, 8080,
];
const RANGES: [Ports; 14] = [
    [0, 1023],
    [1024, 65535],
    [20, 21],
    [67, 68],
    [137, 139],
    [161, 162],
    [512, 514],
    [1812, 1813],
    [2300, 2400],
    [5060, 5061],
    [6000, 6063],
    [6881, 6999],
    [8000, 8080],
    [49152, 65535],
];

/// First and last port.
pub type Ports = [u16; 2];

/// One rule. `None` is whatever there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub permits: bool,
    pub protocol: Option<u8>,
    pub source: Option<IpNet>,
    pub source_ports: Option<Ports>,
    pub destination: Option<IpNet>,
    pub destination_ports: Option<Ports>,
}

/// What rules look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    pub protocol: u8,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
}

impl Rule {
    /// Every packet is permitted.
    pub const LAST: Rule = Rule {
        permits: true,
        protocol: None,
        source: None,
        source_ports: None,
        destination: None,
        destination_ports: None,
    };

    /// Whether the rule is about such packets.
    pub fn matches(&self, tuple: &Tuple) -> bool {
        let port = |ports: Option<Ports>, port| ports.is_none_or(|[a, b]| a <= port && port <= b);
        let within =
            |net: Option<IpNet>, address: &IpAddr| net.is_none_or(|net| net.contains(address));
        self.protocol.is_none_or(|p| p == tuple.protocol)
            && port(self.destination_ports, tuple.destination_port)
            && port(self.source_ports, tuple.source_port)
            && within(self.destination, &tuple.destination)
            && within(self.source, &tuple.source)
    }

    /// The rule for packets the other way.
    pub fn reversed(self) -> Rule {
        Rule {
            source: self.destination,
            source_ports: self.destination_ports,
            destination: self.source,
            destination_ports: self.source_ports,
            ..self
        }
    }

    /// The rule as our classifier has it: by its text.
    pub fn own(&self) -> acl::Rule {
        let text = self.to_string();
        text.parse()
            .unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
    }

    /// The rule as `rte_acl` has it.
    pub fn peer(&self) -> AclRule {
        let (source, source_length) = words(self.source);
        let (destination, destination_length) = words(self.destination);
        AclRule {
            source,
            destination,
            source_ports: self.source_ports.unwrap_or([0, u16::MAX]),
            destination_ports: self.destination_ports.unwrap_or([0, u16::MAX]),
            source_length,
            destination_length,
            protocol: self.protocol.unwrap_or(0),
            any_protocol: self.protocol.is_none(),
        }
    }
}

fn words(net: Option<IpNet>) -> ([u32; 4], u8) {
    let words = match net {
        None => [0; 4],
        Some(IpNet::V4(net)) => [net.network().into(), 0, 0, 0],
        Some(IpNet::V6(net)) => {
            let bits = u128::from(net.network());
            [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
        }
    };
    (words, net.map_or(0, |net| net.prefix_len()))
}

/// As an operator writes it: `deny tcp from any to 192.0.2.0/24 80`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.permits { "permit" } else { "deny" })?;
        match self.protocol {
            None => f.write_str(" ip")?,
            Some(TCP) => f.write_str(" tcp")?,
            Some(UDP) => f.write_str(" udp")?,
            Some(other) => write!(f, " {other}")?,
        }
        for (word, net, ports) in [
            (" from ", self.source, self.source_ports),
            (" to ", self.destination, self.destination_ports),
        ] {
            f.write_str(word)?;
            match net {
                None => f.write_str("any")?,
                Some(net) => write!(f, "{net}")?,
            }
            match ports {
                None => {}
                Some([first, last]) if first == last => write!(f, " {first}")?,
                Some([first, last]) => write!(f, " {first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl Tuple {
    /// The IPv4 packet's header and ports.
    pub fn key_v4(&self) -> [u8; V4_KEY] {
        let mut key = [0; V4_KEY];
        if let (IpAddr::V4(source), IpAddr::V4(destination)) = (self.source, self.destination) {
            (key[0], key[9]) = (0x45, self.protocol);
            key[12..16].copy_from_slice(&source.octets());
            key[16..20].copy_from_slice(&destination.octets());
            key[20..].copy_from_slice(&self.ports());
        }
        key
    }

    /// The IPv6 packet's header and ports.
    pub fn key_v6(&self) -> [u8; V6_KEY] {
        let mut key = [0; V6_KEY];
        if let (IpAddr::V6(source), IpAddr::V6(destination)) = (self.source, self.destination) {
            (key[0], key[6]) = (0x60, self.protocol);
            key[8..24].copy_from_slice(&source.octets());
            key[24..40].copy_from_slice(&destination.octets());
            key[40..].copy_from_slice(&self.ports());
        }
        key
    }

    fn ports(&self) -> [u8; 4] {
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        ports.to_be_bytes()
    }
}

/// Place of the first rule that matches.
pub fn first_match(rules: &[Rule], tuple: &Tuple) -> Option<usize> {
    rules.iter().position(|rule| rule.matches(tuple))
}

/// `n` different rules of one family. The last one permits every packet.
pub fn rules(is_v6: bool, n: usize) -> Vec<Rule> {
    list(is_v6, n, 0)
}

/// So many different lists of as many rules.
pub fn lists(is_v6: bool, n: usize, count: usize) -> Vec<Vec<Rule>> {
    (0..count as u64).map(|nth| list(is_v6, n, nth)).collect()
}

fn list(is_v6: bool, n: usize, nth: u64) -> Vec<Rule> {
    let mut random = SmallRng::seed_from_u64(6 + (nth << 8));
    let sites = (0..n.div_ceil(4)).map(|_| remote(is_v6, &mut random));
    let sites: Vec<IpAddr> = sites.collect();
    let mut seen = HashSet::new();
    let mut rules = Vec::with_capacity(n);
    while rules.len() + 1 < n {
        let rule = random_rule(is_v6, &sites, &mut random);
        if seen.insert(rule) {
            let permits = random.random_ratio(2, 5);
            rules.push(Rule { permits, ..rule });
        }
    }
    rules.push(Rule::LAST);
    rules
}

fn random_rule(is_v6: bool, sites: &[IpAddr], random: &mut SmallRng) -> Rule {
    let protocol = one_of(
        &[Some(TCP), Some(TCP), Some(TCP), Some(UDP), Some(UDP), None],
        random,
    );
    let has_ports = protocol.is_some();
    let source_ports = match random.random_range(0..20) {
        0..17 => None,
        17 | 18 => Some([1024, u16::MAX]),
        _ => Some(ports(random)),
    };
    let destination_ports = random.random_ratio(4, 5).then(|| ports(random));
    Rule {
        permits: false,
        protocol,
        source: random.random_ratio(3, 10).then(|| source(is_v6, random)),
        source_ports: source_ports.filter(|_| has_ports),
        destination: Some(destination(one_of(sites, random), random)),
        destination_ports: destination_ports.filter(|_| has_ports),
    }
}

fn one_of<T: Copy>(all: &[T], random: &mut SmallRng) -> T {
    all[random.random_range(0..all.len())]
}

/// One of the 50.
fn ports(random: &mut SmallRng) -> Ports {
    match random.random_range(0..SINGLE.len() + RANGES.len()) {
        n if n < SINGLE.len() => [SINGLE[n]; 2],
        n => RANGES[n - SINGLE.len()],
    }
}

fn source(is_v6: bool, random: &mut SmallRng) -> IpNet {
    let length = match is_v6 {
        false => one_of(&[16, 18, 20, 22, 24, 28, 32], random),
        true => one_of(&[47, 48, 52, 56, 60, 64], random),
    };
    IpNet::new_assert(subscriber(is_v6, random), length).trunc()
}

/// /8 to /32, or /20 to /128. Short ones are parts of the site's address, so that rules share them.
fn destination(site: IpAddr, random: &mut SmallRng) -> IpNet {
    match site {
        IpAddr::V4(site) => {
            let host = Ipv4Addr::from(u32::from(site) ^ random.random::<u8>() as u32);
            let lengths = [8, 12, 16, 16, 18, 20, 22, 24, 24, 24, 24, 26, 28, 30];
            let length = one_of(&lengths, random);
            let length = if random.random_ratio(3, 8) {
                32
            } else {
                length
            };
            IpNet::new_assert(host.into(), length).trunc()
        }
        IpAddr::V6(site) => {
            let host = Ipv6Addr::from(u128::from(site) ^ random.random::<u64>() as u128);
            let lengths = [
                20, 29, 32, 32, 36, 40, 48, 48, 48, 48, 56, 56, 64, 64, 64, 96,
            ];
            let length = one_of(&lengths, random);
            let length = if random.random_ratio(1, 4) {
                128
            } else {
                length
            };
            IpNet::new_assert(host.into(), length).trunc()
        }
    }
}

/// A subscriber's address.
fn subscriber(is_v6: bool, random: &mut SmallRng) -> IpAddr {
    let session = random.random_range(0..SESSIONS);
    match is_v6 {
        false => Ipv4Addr::from(address_v4(session)).into(),
        true => Ipv6Addr::from(address_v6(session) | random.random::<u64>() as u128).into(),
    }
}

/// An address of the internet, 11.0.0.0 to 99.255.255.255 or in 2400::/8 (no subscriber's).
fn remote(is_v6: bool, random: &mut SmallRng) -> IpAddr {
    match is_v6 {
        false => Ipv4Addr::from(random.random_range(0x0b00_0000..0x6400_0000_u32)).into(),
        true => Ipv6Addr::from(0x24 << 120 | random.random::<u128>() >> 8).into(),
    }
}

/// An address in a network.
fn within(net: IpNet, random: &mut SmallRng) -> IpAddr {
    match net {
        IpNet::V4(net) => {
            let host = random.random::<u32>() & u32::from(net.hostmask());
            Ipv4Addr::from(u32::from(net.network()) | host).into()
        }
        IpNet::V6(net) => {
            let host = random.random::<u128>() & u128::from(net.hostmask());
            Ipv6Addr::from(u128::from(net.network()) | host).into()
        }
    }
}

/// `n` packets' 5-tuples, each with the place of the first rule that matches. Four of five are drawn from rules; the others match
/// the last rule alone.
pub fn traffic(is_v6: bool, rules: &[Rule], n: usize) -> Vec<(Tuple, usize)> {
    let mut random = SmallRng::seed_from_u64(7);
    let mut all = Vec::with_capacity(n);
    while all.len() < n {
        let is_drawn = random.random_ratio(4, 5);
        let rule = match is_drawn {
            true => one_of(rules, &mut random),
            false => Rule::LAST,
        };
        let tuple = random_tuple(is_v6, &rule, &mut random);
        match first_match(rules, &tuple) {
            Some(place) if is_drawn || place + 1 == rules.len() => all.push((tuple, place)),
            _ => {}
        }
    }
    all
}

fn random_tuple(is_v6: bool, rule: &Rule, random: &mut SmallRng) -> Tuple {
    let source = rule.source.map(|net| within(net, random));
    let destination = rule.destination.map(|net| within(net, random));
    let mut port = |ports: Option<Ports>, most| match ports {
        Some([first, last]) => random.random_range(first..=last),
        None => random.random_range(0..=most),
    };
    let source_port = port(rule.source_ports, u16::MAX);
    let destination_port = port(rule.destination_ports, 1023);
    Tuple {
        protocol: rule.protocol.unwrap_or_else(|| one_of(&[TCP, UDP], random)),
        source: source.unwrap_or_else(|| subscriber(is_v6, random)),
        destination: destination.unwrap_or_else(|| remote(is_v6, random)),
        source_port,
        destination_port,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_operators_do() {
        let rule = Rule {
            permits: false,
            protocol: Some(TCP),
            source: Some("10.0.0.0/8".parse().unwrap()),
            source_ports: Some([1024, 65535]),
            destination: None,
            destination_ports: Some([80, 80]),
        };
        let text = "deny tcp from 10.0.0.0/8 1024-65535 to any 80";
        assert_eq!(rule.to_string(), text);
        assert_eq!(Rule::LAST.to_string(), "permit ip from any to any");
    }

    #[test]
    fn lists_and_their_traffic_are_varied() {
        for (is_v6, n) in [(false, 150), (false, 4000), (true, 150), (true, 4000)] {
            let rules = rules(is_v6, n);
            assert_eq!(rules.len(), n);
            assert!(rules[..n - 1].iter().any(|rule| rule.permits));
            let specs: HashSet<_> = rules.iter().map(|rule| rule.destination_ports).collect();
            assert!(specs.len() >= 40, "{}", specs.len());
            let traffic = traffic(is_v6, &rules, 2000);
            let found: HashSet<_> = traffic.iter().map(|(_, place)| *place).collect();
            assert!(found.len() > 50, "{}", found.len());
            let last = traffic.iter().filter(|(_, place)| *place == n - 1).count();
            assert!((300..900).contains(&last), "{last}");
        }
    }
}
