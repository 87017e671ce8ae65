//! Rules. Only a text makes one, so that every rule is consistent.

mod error;
mod names;
mod parse;
mod show;

use ipnet::IpNet;
use std::sync::Arc;

pub use error::RuleError;
pub use names::{dscp_name, dscp_value};

/// Longest text of a rule, in octets.
pub const LONGEST_TEXT: usize = 1024;

/// Longest name of a class, in octets.
pub const LONGEST_CLASS: usize = 32;

/// Largest number of port ranges on one side of a rule.
pub const MOST_RANGES: usize = 64;

/// What happens to a packet whose first matching rule this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The packet is forwarded.
    Permit,
    /// The packet is dropped.
    Deny,
    /// The connection is answered by the gateway, which leads it to a portal; for packets from subscribers.
    Redirect,
}

/// Direction of the packets that a rule is for (RFC 6733 §4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the subscriber.
    In,
    /// To the subscriber.
    Out,
}

/// Addresses that a rule permits on one side of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Every address.
    Any,
    /// The subscriber's addresses (`assigned`, RFC 6733 §4.3.1). No address is compared: the gateway forwards a packet
    /// only with an address of the subscriber on the subscriber's side.
    Assigned,
    /// The addresses of a prefix, of one address for a prefix of full length. No bits are set beyond the prefix length.
    Prefix(IpNet),
}

/// A rule: what it matches, and what it does with a packet.
///
/// # Text
///
/// `ACTION [in|out] PROTOCOL from SOURCE [PORTS] to DESTINATION [PORTS] [OPTION...]`
///
/// - ACTION: `permit`, `deny`, or `redirect`: the gateway answers HTTP requests itself and leads them to the portal of the policy. It needs `tcp`
///   with ports of the destination, since other packets cannot be answered, and is for rules of an ACL.
/// - PROTOCOL: `ip` for any, a number from 0 to 255, or a name, such as `tcp`. `icmp` is for IPv4, `icmpv6` for IPv6.
/// - `in`, `out`, `assigned`: in rules of one subscriber (NAS-Filter-Rule, RFC 4849). Rules of an ACL, which many subscribers share, have
///   none of them. `assigned` is any address on the subscriber's side.
/// - SOURCE, DESTINATION: `any`, `assigned`, an address or a prefix. Both sides are of one family.
/// - PORTS: ports and ranges, such as `80,443,1000-2000`, for `tcp`, `udp`, `sctp`, `dccp` and `udplite`.
///
/// | option | matches, or does |
/// |---|---|
/// | `established` | TCP with ACK or RST |
/// | `setup` | TCP with SYN and without ACK |
/// | `tcpflags syn,!ack` | TCP with these flags, and without those behind `!`: `fin`, `syn`, `rst`, `psh`, `ack`, `urg` |
/// | `icmptypes 8,0,3-5` | these types of ICMP or ICMPv6 |
/// | `frag` | fragments other than the first one |
/// | `dscp ef,af41,10` | these code points |
/// | `length 100-1500` | IP packets of this many octets, with their header; or one number |
/// | `mark cs1` | sets the code point of a permitted packet |
/// | `class voice` | puts a permitted packet in a class: a name of letters, digits, `-`, `_` and `.`, at most [`LONGEST_CLASS`] of them |
///
/// A rule with ports, TCP flags or ICMP types matches no packet in which these cannot be read, such as a fragment other than
/// the first one.
///
/// The text that [`Display`](std::fmt::Display) returns is canonical: ranges are sorted and merged, numbers with a name are
/// names, and options have the order of the table. Neither it nor the text that is read may exceed [`LONGEST_TEXT`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    action: Action,
    direction: Option<Direction>,
    pub(crate) protocol: Option<u8>,
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) source_ports: Ranges,
    pub(crate) destination_ports: Ranges,
    pub(crate) flags: Flags,
    pub(crate) icmp_types: Ranges,
    pub(crate) frag: bool,
    /// Code points: bit n is for code point n.
    pub(crate) dscp: Option<u64>,
    pub(crate) length: Option<(u16, u16)>,
    mark: Option<u8>,
    class: Option<Arc<str>>,
}

impl Rule {
    /// What happens to a packet that the rule matches.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Direction of the packets that the rule is for, `None` for both. [`Classifier`](crate::Classifier) does not look at it.
    pub fn direction(&self) -> Option<Direction> {
        self.direction
    }

    /// IP protocol number, `None` for any.
    pub fn protocol(&self) -> Option<u8> {
        self.protocol
    }

    /// Source addresses.
    pub fn source(&self) -> Address {
        self.source
    }

    /// Destination addresses.
    pub fn destination(&self) -> Address {
        self.destination
    }

    /// Code point that a permitted packet gets, 0 to 63.
    pub fn mark(&self) -> Option<u8> {
        self.mark
    }

    /// Class in which a permitted packet is.
    pub fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// Whether the rule can match IPv4 packets.
    pub fn concerns_ipv4(&self) -> bool {
        self.family() != Some(Family::V6)
    }

    /// Whether the rule can match IPv6 packets.
    pub fn concerns_ipv6(&self) -> bool {
        self.family() != Some(Family::V4)
    }

    /// The only family of the rule's packets, if there is one.
    pub(crate) fn family(&self) -> Option<Family> {
        let of_protocol = self.protocol.and_then(Family::of_protocol);
        let of_source = Family::of_address(&self.source);
        let of_addresses = of_source.or(Family::of_address(&self.destination));
        of_addresses.or(of_protocol)
    }
}

/// Whether a rule can name a class so.
pub fn is_class_name(text: &str) -> bool {
    let is_sign = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    (1..=LONGEST_CLASS).contains(&text.len()) && text.bytes().all(is_sign)
}

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    fn of_protocol(protocol: u8) -> Option<Family> {
        match protocol {
            names::ICMP => Some(Family::V4),
            names::ICMPV6 => Some(Family::V6),
            _ => None,
        }
    }

    fn of_address(address: &Address) -> Option<Family> {
        match address {
            Address::Prefix(IpNet::V4(_)) => Some(Family::V4),
            Address::Prefix(IpNet::V6(_)) => Some(Family::V6),
            Address::Any | Address::Assigned => None,
        }
    }
}

/// Ranges of numbers, both ends included: sorted, and neither overlapping nor adjacent. Empty: every number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ranges(Vec<(u16, u16)>);

impl Ranges {
    /// Sorts and merges ranges.
    fn new(mut ranges: Vec<(u16, u16)>) -> Ranges {
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ranges(merged)
    }

    /// Whether every number, and its absence, is permitted.
    pub(crate) fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, u16)> {
        self.0.iter().copied()
    }

    /// Whether every number of the other ranges is one of these, and its absence too.
    pub(crate) fn covers(&self, other: &Ranges) -> bool {
        let covers = |(low, high)| self.iter().any(|range| range.0 <= low && high <= range.1);
        self.is_any() || !other.is_any() && other.iter().all(covers)
    }

    pub(crate) fn contains(&self, number: u16) -> bool {
        self.iter()
            .any(|(low, high)| (low..=high).contains(&number))
    }
}

/// What a rule asks of TCP flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flags {
    established: bool,
    setup: bool,
    set: u8,
    clear: u8,
}

impl Flags {
    const SYN: u8 = 2;
    const RST: u8 = 4;
    const ACK: u8 = 16;

    /// Whether all flags, and their absence, are permitted.
    pub(crate) fn is_any(&self) -> bool {
        *self == Flags::default()
    }

    /// Whether a packet with these flags is permitted. Only the six flags of RFC 793 can be named.
    pub(crate) fn contains(&self, flags: u8) -> bool {
        let established = flags & (Self::ACK | Self::RST) != 0;
        let setup = flags & (Self::SYN | Self::ACK) == Self::SYN;
        (established || !self.established)
            && (setup || !self.setup)
            && flags & self.set == self.set
            && flags & self.clear == 0
    }
}
