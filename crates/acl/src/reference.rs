//! The law, written plainly: which rule is a packet's first match. [`Classifier`](crate::Classifier) returns the same, faster.

use std::net::IpAddr;

use crate::rule::{Address, Family, Rule};
use crate::{Fragment, Packet4, Packet6, Upper};

/// A packet of either family.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// IPv4.
    V4(Packet4),
    /// IPv6.
    V6(Packet6),
}

/// Index of the first rule that matches the packet.
pub fn first_match(rules: &[Rule], packet: Packet) -> Option<usize> {
    let view = View::new(packet);
    rules.iter().position(|rule| view.matches(rule))
}

/// What both families have.
struct View {
    family: Family,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    fragment: Fragment,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    icmp_type: Option<u16>,
    flags: Option<u8>,
    dscp: u8,
    length: u16,
}

macro_rules! view {
    ($packet:expr, $family:expr) => {{
        let ports = $packet.upper >= Upper::Ports;
        View {
            family: $family,
            source: IpAddr::from($packet.source.to_be_bytes()),
            destination: IpAddr::from($packet.destination.to_be_bytes()),
            protocol: $packet.protocol,
            fragment: $packet.fragment,
            source_port: ports.then_some($packet.source_port),
            destination_port: ports.then_some($packet.destination_port),
            icmp_type: ports.then_some($packet.source_port >> 8),
            flags: ($packet.upper == Upper::Flags).then_some($packet.tcp_flags),
            dscp: $packet.dscp & 63,
            length: $packet.length,
        }
    }};
}

impl View {
    fn new(packet: Packet) -> View {
        match packet {
            Packet::V4(packet) => view!(packet, Family::V4),
            Packet::V6(packet) => view!(packet, Family::V6),
        }
    }

    fn matches(&self, rule: &Rule) -> bool {
        let family = rule.family();
        let length = rule.length;
        family.is_none_or(|family| family == self.family)
            && rule.protocol.is_none_or(|number| number == self.protocol)
            && contains(&rule.source, self.source)
            && contains(&rule.destination, self.destination)
            && names(rule.source_ports.is_any(), self.source_port, |port| {
                rule.source_ports.contains(port)
            })
            && names(
                rule.destination_ports.is_any(),
                self.destination_port,
                |port| rule.destination_ports.contains(port),
            )
            && names(rule.icmp_types.is_any(), self.icmp_type, |kind| {
                rule.icmp_types.contains(kind)
            })
            && names(rule.flags.is_any(), self.flags, |flags| {
                rule.flags.contains(flags)
            })
            && (!rule.frag || self.fragment == Fragment::Later)
            && rule.dscp.is_none_or(|set| set >> self.dscp & 1 == 1)
            && length.is_none_or(|(low, high)| (low..=high).contains(&self.length))
    }
}

fn contains(addresses: &Address, address: IpAddr) -> bool {
    match addresses {
        Address::Any | Address::Assigned => true,
        Address::Prefix(prefix) => prefix.contains(&address),
    }
}

/// Whether a rule that asks for a field, unless any will do, gets it.
fn names<T>(any: bool, field: Option<T>, is_right: impl Fn(T) -> bool) -> bool {
    any || field.is_some_and(is_right)
}
