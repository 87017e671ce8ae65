//! Decodes packets into answers.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use wire::radius::{Kind, Packet, Value, values};

use crate::config::NotEnforced;
use crate::mapping::{self, Mappings};
use crate::message::{AccessAccept, RejectReason};

/// Minimum interval: RFC 2869 §5.16 forbids shorter ones.
const SHORTEST_INTERIM: Duration = Duration::from_secs(60);

/// All Reply-Messages joined. They may contain octets that are not UTF-8.
pub(crate) fn reply_message(packet: &Packet) -> Vec<u8> {
    packet
        .all(Kind::REPLY_MESSAGE)
        .filter_map(Value::octets)
        .flatten()
        .copied()
        .collect()
}

/// Decodes an Access-Accept. A known attribute that is repeated although there is one value, or whose value cannot be used, is ignored
/// like an unknown one (RFC 6929 §2.8) and named in [`AccessAccept::ignored`].
///
/// # Errors
/// An Access-Accept for a service that we do not offer counts as a rejection (RFC 2865 §5.6). So does one with an attribute that is not
/// carried out, if the configuration says so.
pub(crate) fn access_accept(
    packet: &Packet,
    mappings: &Mappings,
    not_enforced: NotEnforced,
) -> core::result::Result<AccessAccept, RejectReason> {
    let services = [
        values::SERVICE_TYPE_FRAMED,
        values::SERVICE_TYPE_AUTHORIZE_ONLY,
    ];
    expect(packet, Kind::SERVICE_TYPE, &services)?;
    let protocols = [values::FRAMED_PROTOCOL_PPP];
    expect(packet, Kind::FRAMED_PROTOCOL, &protocols)?;
    let mut accept = authorization(packet, mappings);
    if accept.reauthenticates == Some(true) {
        let state = packet.get(Kind::STATE).and_then(Value::octets);
        accept.state = state.unwrap_or_default().to_vec();
    }
    if let (NotEnforced::Reject, Some(name)) = (not_enforced, accept.not_enforced.first()) {
        return Err(RejectReason::NotEnforced(name.clone()));
    }
    // Servers use zero for "none said".
    let AccessAccept {
        session_timeout,
        idle_timeout,
        acct_interim,
        ..
    } = &mut accept;
    for time in [session_timeout, idle_timeout, acct_interim] {
        time.take_if(|time| time.is_zero());
    }
    Ok(accept)
}

/// Checks the service.
fn expect(packet: &Packet, kind: Kind, any_of: &[u32]) -> core::result::Result<(), RejectReason> {
    match packet.get(kind) {
        Some(Value::Integer(other)) if !any_of.contains(other) => {
            Err(RejectReason::Unsupported(name(kind)))
        }
        _ => Ok(()),
    }
}

/// Decodes the attributes of an Access-Accept or a CoA-Request that say what a subscriber gets. A mapped attribute has the meaning of
/// its mapping alone.
pub(crate) fn authorization(packet: &Packet, mappings: &Mappings) -> AccessAccept {
    let others = packet.attributes.iter();
    let invalid = others.filter(|a| is_invalid(&a.value) && a.kind != Kind::REPLY_MESSAGE);
    let mut reader = Reader {
        packet,
        mappings,
        ignored: invalid.map(|a| name(a.kind).to_owned()).collect(),
    };
    let interim = reader.time(Kind::ACCT_INTERIM_INTERVAL);
    let mut accept = AccessAccept {
        framed_ip: reader.framed_ip(),
        framed_ipv6_prefix: reader.single(Kind::FRAMED_IPV6_PREFIX, |value| match value {
            Value::Ipv6Prefix(prefix) => Some(*prefix),
            _ => None,
        }),
        framed_routes: reader.framed_routes(),
        framed_interface_id: reader.single(Kind::FRAMED_INTERFACE_ID, |value| match value {
            Value::InterfaceId(identifier) => Some(*identifier),
            _ => None,
        }),
        filter_id: reader.text(Kind::FILTER_ID),
        framed_pool: reader.text(Kind::FRAMED_POOL),
        framed_ipv6_pool: reader.text(Kind::FRAMED_IPV6_POOL),
        framed_ipv6_address: reader.single(Kind::FRAMED_IPV6_ADDRESS, |value| match value {
            Value::Ipv6(address) => Some(*address).filter(|address| is_global(*address)),
            _ => None,
        }),
        ipv6_address_pool: reader.text(Kind::STATEFUL_IPV6_ADDRESS_POOL),
        delegated_prefixes: reader.several(Kind::DELEGATED_IPV6_PREFIX, |value| match value {
            Value::Ipv6Prefix(prefix) => Some(*prefix).filter(is_delegable),
            _ => None,
        }),
        delegated_pool: reader.text(Kind::DELEGATED_IPV6_PREFIX_POOL),
        class: packet
            .all(Kind::CLASS)
            .filter_map(Value::octets)
            .map(<[u8]>::to_vec)
            .collect(),
        session_timeout: reader.time(Kind::SESSION_TIMEOUT),
        reauthenticates: reader.single(Kind::TERMINATION_ACTION, |value| match value {
            Value::Integer(values::TERMINATION_ACTION_DEFAULT) => Some(false),
            Value::Integer(values::TERMINATION_ACTION_RADIUS_REQUEST) => Some(true),
            _ => None,
        }),
        port_limit: reader.single(Kind::PORT_LIMIT, |value| match value {
            Value::Integer(number) if *number > 0 => Some(*number),
            _ => None,
        }),
        idle_timeout: reader.time(Kind::IDLE_TIMEOUT),
        acct_interim: interim.map(|interval| match interval {
            Duration::ZERO => interval,
            _ => interval.max(SHORTEST_INTERIM),
        }),
        framed_mtu: reader.integer(Kind::FRAMED_MTU),
        reply_message: reply_message(packet),
        ignored: reader.ignored,
        ..AccessAccept::default()
    };
    mapping::apply(mappings, packet, &mut accept);
    accept
}

fn name(kind: Kind) -> &'static str {
    kind.name().unwrap_or("attribute")
}

fn is_invalid(value: &Value) -> bool {
    matches!(value, Value::Invalid(_))
}

/// Reads attributes of a packet, and notes those that cannot be used. Those that are not even of their type are noted already.
struct Reader<'a> {
    packet: &'a Packet,
    mappings: &'a Mappings,
    ignored: Vec<String>,
}

impl<'a> Reader<'a> {
    /// The values of an attribute that has its standard meaning.
    fn values(&self, kind: Kind) -> impl Iterator<Item = &'a Value> + use<'a> {
        let is_mapped = self.mappings.has(kind);
        self.packet.all(kind).filter(move |_| !is_mapped)
    }

    /// The first value of an attribute. `read` returns `None` if it cannot be used.
    fn single<T>(&mut self, kind: Kind, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let mut values = self.values(kind);
        let first = values.next()?;
        let further = values.filter(|value| !is_invalid(value)).count();
        let value = read(first);
        let is_odd = value.is_none() && !is_invalid(first);
        let ignored = further + usize::from(is_odd);
        self.ignored.extend(vec![name(kind).to_owned(); ignored]);
        value
    }

    /// All values of an attribute that can be used.
    fn several<T>(&mut self, kind: Kind, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        for value in self.values(kind) {
            match read(value) {
                Some(value) => found.push(value),
                None if is_invalid(value) => {}
                None => self.ignored.push(name(kind).to_owned()),
            }
        }
        found
    }

    fn integer(&mut self, kind: Kind) -> Option<u32> {
        self.single(kind, |value| match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        })
    }

    /// Time in seconds.
    fn time(&mut self, kind: Kind) -> Option<Duration> {
        let seconds = self.integer(kind)?;
        Some(Duration::from_secs(seconds.into()))
    }

    fn text(&mut self, kind: Kind) -> Option<String> {
        self.single(kind, |value| match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }

    /// RFC 2865 §5.8: with two of the values the user may choose, which we do not support, or the NAS chooses.
    fn framed_ip(&mut self) -> Option<Ipv4Addr> {
        let address = self.single(Kind::FRAMED_IP_ADDRESS, |value| match value {
            Value::Ipv4(address) => match address.octets() {
                [255, 255, 255, 255 | 254] => Some(None),
                [0 | 127 | 224.., ..] => None,
                _ => Some(Some(*address)),
            },
            _ => None,
        });
        address.flatten()
    }

    fn framed_routes(&mut self) -> Vec<IpNet> {
        let ipv4 = |value: &Value| route(value).and_then(ipv4_route).map(IpNet::V4);
        let ipv6 = |value: &Value| route(value).and_then(ipv6_route).map(IpNet::V6);
        let mut routes = self.several(Kind::FRAMED_ROUTE, ipv4);
        routes.extend(self.several(Kind::FRAMED_IPV6_ROUTE, ipv6));
        routes
    }
}

/// Whether an address can be a subscriber's.
fn is_global(address: Ipv6Addr) -> bool {
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !is_special && !address.is_unicast_link_local()
}

/// Whether a prefix can be delegated. A longer one has no room for a network with addresses of its own (RFC 4862), and ::/0 is everything.
fn is_delegable(prefix: &Ipv6Net) -> bool {
    (1..=64).contains(&prefix.prefix_len()) && is_global(prefix.network())
}

/// Destination of a route: its first word. A gateway and metrics may follow, but there is only one way to the peer.
fn route(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => text.split_whitespace().next(),
        _ => None,
    }
}

/// Network of an IPv4 route. Without a length it has that of its class (RFC 2865 §5.22). 0.0.0.0/0 cannot be a subscriber's
/// route.
pub(crate) fn ipv4_route(net: &str) -> Option<Ipv4Net> {
    let net = match net.contains('/') {
        true => net.parse().ok()?,
        false => {
            let address: Ipv4Addr = net.parse().ok()?;
            let length = match address.octets()[0] {
                0..128 => 8,
                128..192 => 16,
                192..224 => 24,
                224.. => return None,
            };
            Ipv4Net::new(address, length).ok()?
        }
    };
    (net.prefix_len() > 0).then_some(net.trunc())
}

/// Network of an IPv6 route. ::/0 cannot be a subscriber's route.
pub(crate) fn ipv6_route(net: &str) -> Option<Ipv6Net> {
    let net = net.parse::<Ipv6Net>().ok()?;
    (net.prefix_len() > 0).then(|| net.trunc())
}
