//! Names of protocols, code points and TCP flags.

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const ICMPV6: u8 = 58;

/// Protocols with ports in their first four octets.
pub(super) const WITH_PORTS: [u8; 5] = [TCP, 17, 33, 132, 136];

/// Names of protocol numbers (IANA, Assigned Internet Protocol Numbers). The first name of a number is its canonical one.
const PROTOCOLS: [(&str, u8); 22] = [
    ("icmp", ICMP),
    ("igmp", 2),
    ("ipip", 4),
    ("ipencap", 4),
    ("tcp", TCP),
    ("egp", 8),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", ICMPV6),
    ("ipv6-icmp", ICMPV6),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
    ("udplite", 136),
];

pub(super) fn protocol(name: &str) -> Option<u8> {
    let named = PROTOCOLS.iter().find(|(known, _)| *known == name);
    named.map(|(_, number)| *number)
}

pub(super) fn protocol_name(number: u8) -> Option<&'static str> {
    let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
    named.map(|(name, _)| *name)
}

/// TCP flags by bit, from the lowest one (RFC 9293 §3.1).
pub(super) const TCP_FLAGS: [&str; 6] = ["fin", "syn", "rst", "psh", "ack", "urg"];

/// Names of code points: default (RFC 2474), class selectors (RFC 2474), assured (RFC 2597) and expedited forwarding
/// (RFC 3246). The first name of a value is its canonical one.
const DSCPS: [(&str, u8); 22] = [
    ("be", 0),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
];

/// Code point, 0 to 63, by its name or its number.
pub fn dscp_value(text: &str) -> Option<u8> {
    let named = DSCPS.iter().find(|(known, _)| *known == text);
    let named = named.map(|(_, value)| *value);
    named.or_else(|| super::parse::number(text, 63).map(|value| value as u8))
}

/// Name of a code point, if it has one.
pub fn dscp_name(value: u8) -> Option<&'static str> {
    let named = DSCPS.iter().find(|(_, known)| *known == value);
    named.map(|(name, _)| *name)
}
