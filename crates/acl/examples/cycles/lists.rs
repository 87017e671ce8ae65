//! Lists as operators write them, and traffic for them, drawn at random.

use acl::{Address, Fragment, Packet4, Packet6, Rule, Upper};
use ipnet::IpNet;

/// Generator of random numbers (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in so many of a hundred cases.
    fn percent(&mut self, cases: u64) -> bool {
        self.below(100) < cases
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// About 50 destinations of services: protocol and ports.
const SERVICES: [&str; 48] = [
    "tcp 80",
    "tcp 443",
    "tcp 22",
    "tcp 25",
    "tcp 53",
    "udp 53",
    "udp 123",
    "udp 443",
    "tcp 80,443",
    "tcp 8080",
    "tcp 8000-8999",
    "tcp 1024-65535",
    "udp 1024-65535",
    "tcp 21",
    "tcp 20-21",
    "tcp 23",
    "tcp 110",
    "tcp 143",
    "tcp 993,995",
    "tcp 389",
    "tcp 636",
    "tcp 445",
    "tcp 135-139",
    "udp 137-138",
    "tcp 3389",
    "tcp 3306",
    "tcp 5432",
    "tcp 1433",
    "udp 161-162",
    "udp 514",
    "udp 69",
    "udp 500",
    "udp 4500",
    "udp 1194",
    "udp 51820",
    "tcp 1723",
    "tcp 5060-5061",
    "udp 5060-5061",
    "udp 10000-20000",
    "udp 3478",
    "tcp 6881-6999",
    "udp 6881-6999",
    "tcp 179",
    "tcp 5900-5910",
    "tcp 27015",
    "udp 27000-27050",
    "tcp 6000-6063",
    "udp 33434-33534",
];

/// Rules of both families, half of them each, but for a few that are for both; and the prefixes in them.
pub struct List {
    pub rules: Vec<Rule>,
    v4: Prefixes<u32>,
    v6: Prefixes<u128>,
}

#[derive(Default)]
struct Prefixes<K> {
    sources: Vec<(K, u8)>,
    destinations: Vec<(K, u8)>,
}

impl List {
    /// A list with so many rules for each family, of which the last one denies everything.
    pub fn draw(dice: &mut Dice, rules: usize) -> List {
        let networks = Networks::draw(dice, rules);
        let mut list = List {
            rules: Vec::new(),
            v4: Prefixes::default(),
            v6: Prefixes::default(),
        };
        for v6 in [false, true] {
            for _ in 1..rules {
                list.add(&networks.rule(dice, v6));
            }
        }
        // Both families' rules in the order of one list.
        let halves = list.rules.split_off(rules - 1);
        let pairs = list.rules.into_iter().zip(halves);
        list.rules = pairs.flat_map(|(v4, v6)| [v4, v6]).collect();
        list.rules.truncate(2 * rules - 1);
        list.rules
            .push("deny ip from any to any".parse().expect("a rule"));
        list
    }

    fn add(&mut self, text: &str) {
        let rule: Rule = text
            .parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        match rule.source() {
            Address::Prefix(IpNet::V4(prefix)) => self
                .v4
                .sources
                .push((prefix.network().into(), prefix.prefix_len())),
            Address::Prefix(IpNet::V6(prefix)) => self
                .v6
                .sources
                .push((prefix.network().into(), prefix.prefix_len())),
            _ => {}
        }
        match rule.destination() {
            Address::Prefix(IpNet::V4(prefix)) => self
                .v4
                .destinations
                .push((prefix.network().into(), prefix.prefix_len())),
            Address::Prefix(IpNet::V6(prefix)) => self
                .v6
                .destinations
                .push((prefix.network().into(), prefix.prefix_len())),
            _ => {}
        }
        self.rules.push(rule);
    }

    /// Six of ten destinations and four of ten sources are in prefixes of the list.
    pub fn packet4(&self, dice: &mut Dice) -> Packet4 {
        let mut address = |prefixes: &[(u32, u8)], percent| {
            let random = dice.next() as u32;
            match dice.percent(percent) && !prefixes.is_empty() {
                true => {
                    let (network, length) = dice.pick(prefixes);
                    network | random & u32::MAX.checked_shr(length.into()).unwrap_or(0)
                }
                false => random,
            }
        };
        let (source, destination) = (
            address(&self.v4.sources, 40),
            address(&self.v4.destinations, 60),
        );
        let ports = ports(dice);
        Packet4 {
            source,
            destination,
            source_port: ports.source_port,
            destination_port: ports.destination_port,
            length: 40 + dice.below(1460) as u16,
            protocol: if ports.protocol == 58 {
                1
            } else {
                ports.protocol
            },
            dscp: 0,
            tcp_flags: dice.pick(&[2, 16, 16, 16, 24, 17]),
            fragment: ports.fragment,
            upper: ports.upper,
        }
    }

    /// As [`List::packet4`], and addresses that are in no prefix are of the same /32.
    pub fn packet6(&self, dice: &mut Dice) -> Packet6 {
        let mut address = |prefixes: &[(u128, u8)], percent| {
            let random = u128::from(dice.next()) << 64 | u128::from(dice.next());
            match dice.percent(percent) && !prefixes.is_empty() {
                true => {
                    let (network, length) = dice.pick(prefixes);
                    network | random & u128::MAX.checked_shr(length.into()).unwrap_or(0)
                }
                false => 0x2 << 124 | random >> 4,
            }
        };
        let (source, destination) = (
            address(&self.v6.sources, 40),
            address(&self.v6.destinations, 60),
        );
        Packet6 {
            source,
            destination,
            length: 40 + dice.below(1460) as u16,
            tcp_flags: dice.pick(&[2, 16, 16, 16, 24, 17]),
            ..ports(dice)
        }
    }
}

/// Protocol and ports: six of ten TCP, three UDP, some ICMP and others.
fn ports(dice: &mut Dice) -> Packet6 {
    let service = SERVICES[(dice.below(48) * dice.below(48) / 48) as usize];
    let (protocol, ports) = service.split_once(' ').expect("protocol and ports");
    let first = ports
        .split([',', '-'])
        .next()
        .and_then(|port| port.parse().ok());
    let served: u16 = first.expect("a port");
    let ephemeral = 32_768 + dice.below(28_000) as u16;
    let (source_port, destination_port) = match dice.below(10) {
        0..6 => (ephemeral, served),
        6..9 => (served, ephemeral),
        _ => (ephemeral, dice.next() as u16),
    };
    let protocol = if protocol == "tcp" { 6 } else { 17 };
    let packet = Packet6 {
        source_port,
        destination_port,
        protocol,
        upper: if protocol == 6 {
            Upper::Flags
        } else {
            Upper::Ports
        },
        ..Packet6::default()
    };
    match dice.below(50) {
        0 | 1 => Packet6 {
            protocol: 58,
            source_port: 8 << 8,
            upper: Upper::Ports,
            ..packet
        },
        2 => Packet6 {
            protocol: 47,
            upper: Upper::Unread,
            ..packet
        },
        3 => Packet6 {
            fragment: Fragment::Later,
            upper: Upper::Unread,
            ..packet
        },
        _ => packet,
    }
}

/// Networks that a list speaks of: an operator's own, and others'.
struct Networks {
    own4: Vec<u32>,
    own6: Vec<u128>,
    known: u64,
}

impl Networks {
    fn draw(dice: &mut Dice, rules: usize) -> Networks {
        let own4 = (0..8).map(|_| (dice.next() as u32) & 0xffff_0000).collect();
        let own6 = (0..8)
            .map(|_| (0x2001_0000 + dice.below(0xd_0000) as u128) << 96)
            .collect();
        Networks {
            own4,
            own6,
            known: rules as u64 / 4 + 4,
        }
    }

    /// Nearly all rules name a destination, or else a source; a third of them name a source.
    fn rule(&self, dice: &mut Dice, v6: bool) -> String {
        let action = if dice.percent(70) { "permit" } else { "deny" };
        let mut side = |percent| match dice.percent(percent) {
            true if v6 => self.prefix6(dice),
            true => self.prefix4(dice),
            false => "any".to_owned(),
        };
        let (source, mut destination) = (side(35), side(85));
        if source == "any" && destination == "any" && !dice.percent(5) {
            destination = if v6 {
                self.prefix6(dice)
            } else {
                self.prefix4(dice)
            };
        }
        let any = if source == "any" && destination == "any" {
            0
        } else {
            10
        };
        if dice.below(100) < any {
            return format!("{action} ip from {source} to {destination}");
        }
        if dice.percent(5) {
            let icmp = if v6 { "icmpv6" } else { "icmp" };
            let types = if dice.percent(50) {
                " icmptypes 8,0"
            } else {
                ""
            };
            return format!("{action} {icmp} from {source} to {destination}{types}");
        }
        let service = SERVICES[(dice.below(48) * dice.below(48) / 48) as usize];
        let (protocol, ports) = service.split_once(' ').expect("protocol and ports");
        let established = if protocol == "tcp" && dice.percent(5) {
            " established"
        } else {
            ""
        };
        let (from, to) = match dice.below(10) {
            0 => (format!(" {ports}"), String::new()),
            1 => (" 1024-65535".to_owned(), format!(" {ports}")),
            _ => (String::new(), format!(" {ports}")),
        };
        format!("{action} {protocol} from {source}{from} to {destination}{to}{established}")
    }

    /// One of the operator's subnets and hosts, or another network. The same ones come again.
    fn prefix4(&self, dice: &mut Dice) -> String {
        let mut place = Dice(dice.below(self.known) ^ u64::from(self.own4[0]));
        let address = match place.percent(70) {
            true => place.pick(&self.own4) | (place.next() as u32 & 0xffff),
            false => place.next() as u32,
        };
        let length = dice.pick(&[
            8, 16, 20, 22, 24, 24, 24, 24, 24, 26, 28, 29, 30, 32, 32, 32, 32, 32, 32,
        ]);
        format!(
            "{}/{length}",
            std::net::Ipv4Addr::from(address & u32::MAX << (32 - length))
        )
    }

    fn prefix6(&self, dice: &mut Dice) -> String {
        let mut place = Dice(dice.below(self.known) ^ u64::from(self.own4[0]));
        let subnet = u128::from(place.below(0x1_0000)) << 80 | u128::from(place.below(16)) << 64;
        let host = u128::from(place.next() & 0xffff);
        let address = match place.percent(70) {
            true => place.pick(&self.own6) | subnet | host,
            false => (0x2400_0000 + u128::from(place.below(0x800_0000))) << 96 | subnet | host,
        };
        let length = dice.pick(&[
            32, 32, 40, 48, 48, 48, 56, 56, 64, 64, 64, 64, 128, 128, 128, 128, 128, 128,
        ]);
        format!(
            "{}/{length}",
            std::net::Ipv6Addr::from(address & u128::MAX << (128 - length))
        )
    }
}
