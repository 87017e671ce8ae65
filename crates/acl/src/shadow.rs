//! Rules that can never be the first match.

use ipnet::IpNet;

use crate::Direction;
use crate::rule::{Address, Family, Ranges, Rule};

/// Rules that one earlier rule keeps from ever being the first match, each with the first such rule: pairs of (rule, earlier
/// rule), by their indices.
///
/// The earlier rule matches all packets of the later one, for the later one's direction. A rule whose packets are matched only
/// by several earlier rules together is not found.
pub fn shadowed(rules: &[Rule]) -> Vec<(usize, usize)> {
    let extents: Vec<Extent> = rules.iter().map(Extent::of).collect();
    let covered = |(number, extent): (usize, &Extent)| {
        let earlier = extents[..number]
            .iter()
            .position(|earlier| earlier.covers(extent))?;
        Some((number, earlier))
    };
    extents.iter().enumerate().filter_map(covered).collect()
}

/// What a rule matches, ready to be compared.
struct Extent<'a> {
    destination: (u128, u128),
    source: (u128, u128),
    protocol: Option<u8>,
    family: Option<Family>,
    direction: Option<Direction>,
    frag: bool,
    source_ports: &'a Ranges,
    destination_ports: &'a Ranges,
    icmp_types: &'a Ranges,
    /// Combinations of the six TCP flags; nothing if the rule does not look at flags.
    flags: Option<u64>,
    dscp: u64,
    length: (u16, u16),
}

impl Extent<'_> {
    fn of(rule: &Rule) -> Extent<'_> {
        let combinations = (0..64).filter(|flags| rule.flags.contains(*flags));
        Extent {
            destination: addresses(rule.destination),
            source: addresses(rule.source),
            protocol: rule.protocol,
            family: rule.family(),
            direction: rule.direction(),
            frag: rule.frag,
            source_ports: &rule.source_ports,
            destination_ports: &rule.destination_ports,
            icmp_types: &rule.icmp_types,
            flags: (!rule.flags.is_any())
                .then(|| combinations.fold(0, |set, flags| set | 1 << flags)),
            dscp: rule.dscp.unwrap_or(u64::MAX),
            length: rule.length.unwrap_or((0, u16::MAX)),
        }
    }

    /// Whether every packet of the other rule is one of this rule.
    fn covers(&self, other: &Extent) -> bool {
        contains(self.destination, other.destination)
            && contains(self.source, other.source)
            && is_wider(self.protocol, other.protocol)
            && is_wider(self.family, other.family)
            && is_wider(self.direction, other.direction)
            && (!self.frag || other.frag)
            && self.destination_ports.covers(other.destination_ports)
            && self.source_ports.covers(other.source_ports)
            && self.icmp_types.covers(other.icmp_types)
            && self
                .flags
                .is_none_or(|flags| other.flags.is_some_and(|others| others & !flags == 0))
            && other.dscp & !self.dscp == 0
            && contains(self.length, other.length)
    }
}

/// First and last address; those of IPv4 are compared only with others of IPv4, as families are compared as well.
fn addresses(address: Address) -> (u128, u128) {
    match address {
        Address::Prefix(IpNet::V4(prefix)) if prefix.prefix_len() > 0 => (
            u32::from(prefix.network()).into(),
            u32::from(prefix.broadcast()).into(),
        ),
        Address::Prefix(IpNet::V6(prefix)) => (prefix.network().into(), prefix.broadcast().into()),
        Address::Prefix(IpNet::V4(_)) | Address::Any | Address::Assigned => (0, u128::MAX),
    }
}

fn contains<T: Ord>(outer: (T, T), inner: (T, T)) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// Whether the first one permits what the second one does: nothing named permits all.
fn is_wider<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.is_none() || one == other
}
