//! Rules that are drawn at random, as texts, and packets at their edges.
#![allow(dead_code, reason = "each test uses its part")]

use acl::{Address, Fragment, Packet4, Packet6, Rule, Upper};
use ipnet::IpNet;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Random numbers: the same seed gives the same rules.
pub struct Dice(SmallRng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(SmallRng::seed_from_u64(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.random()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(..bound)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// How a set of rules is drawn.
#[derive(Clone, Copy)]
pub struct Style {
    /// Bits of an address that vary. Few: prefixes overlap a lot.
    pub address_bits: u32,
    /// One rule in so many has an option that is seldom used.
    pub seldom: u64,
    /// Number of different ports near 0.
    pub ports: u64,
}

impl Style {
    pub fn draw(dice: &mut Dice) -> Style {
        Style {
            address_bits: dice.pick(&[3, 6, 10, 32]),
            seldom: dice.pick(&[2, 10, 1000]),
            ports: dice.pick(&[4, 30, 60_000]),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Family {
    Both,
    V4,
    V6,
}

/// The text of a rule.
pub fn rule(dice: &mut Dice, style: Style) -> String {
    let family = dice.pick(&[Family::Both, Family::V4, Family::V4, Family::V6, Family::V6]);
    let icmp = match family {
        Family::V4 => "icmp",
        Family::V6 => "icmpv6",
        Family::Both => "ip",
    };
    let protocol = dice.pick(&["ip", "tcp", "tcp", "udp", "sctp", "gre", "200", icmp]);
    let with_ports = ["tcp", "udp", "sctp"].contains(&protocol);
    let action = dice.pick(&["permit", "deny"]);
    let direction = dice.pick(&["", "", "in ", "out "]);
    let (source, destination) = (address(dice, family, style), address(dice, family, style));
    let mut side = |address: String| match with_ports && dice.once_in(2) {
        true => format!("{address} {}", ports(dice, style)),
        false => address,
    };
    let (source, destination) = (side(source), side(destination));
    let mut text = format!("{action} {direction}{protocol} from {source} to {destination}");
    if protocol == "tcp" && dice.once_in(3) {
        text += dice.pick(&[
            " established",
            " setup",
            " tcpflags syn,!ack",
            " tcpflags !fin,psh",
        ]);
    }
    if protocol.starts_with("icmp") && dice.once_in(2) {
        text += dice.pick(&[" icmptypes 8", " icmptypes 0,3-5,11", " icmptypes 128-255"]);
    }
    text + &options(dice, style, action, protocol)
}

fn options(dice: &mut Dice, style: Style, action: &str, protocol: &str) -> String {
    let mut text = String::new();
    if dice.once_in(style.seldom) && ["ip", "gre", "200"].contains(&protocol) {
        text += " frag";
    }
    if dice.once_in(style.seldom) {
        text += dice.pick(&[" dscp ef", " dscp be,af11,cs7", " dscp 1,2,3,46"]);
    }
    if dice.once_in(style.seldom) {
        let low = dice.below(2000);
        text += &format!(" length {low}-{}", low + dice.below(1000));
    }
    if action == "permit" && dice.once_in(4) {
        text += dice.pick(&[" mark cs1", " class x", " mark 5 class y"]);
    }
    text
}

fn ports(dice: &mut Dice, style: Style) -> String {
    let mut range = || {
        let low = dice.below(style.ports);
        match dice.once_in(2) {
            true => low.to_string(),
            false => format!("{low}-{}", low + dice.below(style.ports) % (65_536 - low)),
        }
    };
    match range() {
        first if first.len() % 2 == 0 => first,
        first => format!("{first},{}", range()),
    }
}

fn address(dice: &mut Dice, family: Family, style: Style) -> String {
    if family == Family::Both || dice.once_in(3) {
        return "any".to_owned();
    }
    match family {
        Family::V4 => {
            let length = prefix_length(dice, 32, style);
            let address = address4(dice, style) & u32::MAX.checked_shl(32 - length).unwrap_or(0);
            format!("{}/{length}", std::net::Ipv4Addr::from(address))
        }
        _ => {
            let length = prefix_length(dice, 128, style);
            let address = address6(dice, style) & u128::MAX.checked_shl(128 - length).unwrap_or(0);
            format!("{}/{length}", std::net::Ipv6Addr::from(address))
        }
    }
}

fn prefix_length(dice: &mut Dice, width: u32, style: Style) -> u32 {
    match dice.once_in(20) {
        true => dice.below(u64::from(width) + 1) as u32,
        false => width - dice.below(u64::from(style.address_bits.min(width)) + 1) as u32,
    }
}

/// Addresses differ in their last bits, a few of them elsewhere.
fn address4(dice: &mut Dice, style: Style) -> u32 {
    let mask = u32::MAX.checked_shr(32 - style.address_bits).unwrap_or(0);
    let other = if dice.once_in(10) {
        1 << dice.below(32)
    } else {
        0
    };
    0x0a00_0000 ^ (dice.next() as u32 & mask) ^ other
}

fn address6(dice: &mut Dice, style: Style) -> u128 {
    let mask = (1 << style.address_bits) - 1;
    let upper = u128::from(dice.next() & mask) << 64;
    let lower = if dice.once_in(2) {
        u128::from(dice.next() & mask)
    } else {
        0
    };
    let other = if dice.once_in(10) {
        1 << dice.below(128)
    } else {
        0
    };
    0x2001_0db8_0000_0000_0000_0000_0000_0000 ^ upper ^ lower ^ other
}

/// Values at which rules begin or end, and their neighbours.
pub struct Edges {
    v4: Vec<u32>,
    v6: Vec<u128>,
    numbers: Vec<u16>,
}

impl Edges {
    pub fn of(rules: &[Rule]) -> Edges {
        let mut edges = Edges {
            v4: vec![0, u32::MAX],
            v6: vec![0, u128::MAX],
            numbers: vec![0, u16::MAX],
        };
        for rule in rules {
            for address in [rule.source(), rule.destination()] {
                match address {
                    Address::Prefix(IpNet::V4(prefix)) => edges
                        .v4
                        .extend([prefix.network().into(), u32::from(prefix.broadcast())]),
                    Address::Prefix(IpNet::V6(prefix)) => edges
                        .v6
                        .extend([prefix.network().into(), u128::from(prefix.broadcast())]),
                    _ => {}
                }
            }
            let text = rule.to_string();
            let numbers = text
                .split([' ', ',', '-'])
                .filter_map(|word| word.parse::<u16>().ok());
            edges
                .numbers
                .extend(numbers.flat_map(|number| [number, number << 8]));
        }
        edges
    }

    fn number(&self, dice: &mut Dice) -> u16 {
        match dice.once_in(8) {
            true => dice.next() as u16,
            false => dice
                .pick(&self.numbers)
                .wrapping_add(dice.pick(&[0, 0, 1, u16::MAX])),
        }
    }

    fn v4(&self, dice: &mut Dice) -> u32 {
        match dice.once_in(16) {
            true => dice.next() as u32,
            false => dice
                .pick(&self.v4)
                .wrapping_add(dice.pick(&[0, 0, 1, u32::MAX])),
        }
    }

    fn v6(&self, dice: &mut Dice) -> u128 {
        match dice.once_in(16) {
            true => u128::from(dice.next()) << 64 | u128::from(dice.next()),
            false => dice
                .pick(&self.v6)
                .wrapping_add(dice.pick(&[0, 0, 1, u128::MAX])),
        }
    }

    /// An IPv4 packet at the edges.
    pub fn packet4(&self, dice: &mut Dice) -> Packet4 {
        let (fragment, upper) = dice.pick(&STATES);
        Packet4 {
            source: self.v4(dice),
            destination: self.v4(dice),
            source_port: self.number(dice),
            destination_port: self.number(dice),
            length: self.number(dice),
            protocol: dice.pick(&[6, 6, 6, 17, 17, 1, 132, 47, 200, 58, 0, 255]),
            dscp: dice.pick(&[0, 46, 10, 56, 1, 63, 64 + 46]),
            tcp_flags: dice.next() as u8,
            fragment,
            upper,
        }
    }

    /// An IPv6 packet at the edges.
    pub fn packet6(&self, dice: &mut Dice) -> Packet6 {
        let other = self.packet4(dice);
        Packet6 {
            source: self.v6(dice),
            destination: self.v6(dice),
            source_port: other.source_port,
            destination_port: other.destination_port,
            length: other.length,
            protocol: if other.protocol == 1 {
                58
            } else {
                other.protocol
            },
            dscp: other.dscp,
            tcp_flags: other.tcp_flags,
            fragment: other.fragment,
            upper: other.upper,
        }
    }
}

const STATES: [(Fragment, Upper); 8] = [
    (Fragment::None, Upper::Flags),
    (Fragment::None, Upper::Flags),
    (Fragment::None, Upper::Ports),
    (Fragment::None, Upper::Unread),
    (Fragment::First, Upper::Flags),
    (Fragment::First, Upper::Ports),
    (Fragment::Later, Upper::Unread),
    (Fragment::Later, Upper::Unread),
];

/// So many rules.
pub fn rules(dice: &mut Dice, count: u64) -> Vec<Rule> {
    let style = Style::draw(dice);
    let texts = (0..count).map(|_| rule(dice, style));
    let parsed = texts.map(|text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    });
    parsed.collect()
}
