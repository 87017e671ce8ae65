//! Rules that are drawn at random, as texts, and packets at their edges.
#![allow(dead_code, reason = "each test uses its part")]

/// Small generator of random numbers (splitmix64): the same seed gives the same rules.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
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
        text += dice.pick(&[" mark cs1", " class 7", " mark 5 class 0"]);
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
