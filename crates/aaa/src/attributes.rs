//! Decodes packets into answers.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use ipnet::Ipv6Net;
use wire::mschapv2;
use wire::radius::{Kind, Packet, Value, values};

use crate::config::NotEnforced;
use crate::filter_rules;
use crate::mapping::{self, Mappings};
use crate::message::{
    AccessAccept, AccessReject, Credentials, MOST_DELEGATED, MOST_LINKS, RejectReason,
};
use crate::route::{self, FramedRoute};

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

/// Decodes an answer that is a rejection.
pub(crate) fn rejection(packet: &Packet, reason: RejectReason) -> AccessReject {
    let error = packet.get(Kind::MS_CHAP_ERROR).and_then(Value::octets);
    // an identifier comes first, which RADIUS does not need (RFC 2548 §2.1.5)
    let error = error.and_then(|octets| mschapv2::Failure::parse(octets.get(1..)?).ok());
    let mut reply_message = reply_message(packet);
    if let (true, Some(error)) = (reply_message.is_empty(), &error) {
        reply_message = error.message.to_vec();
    }
    AccessReject {
        reply_message,
        mschap_error: error.map(|error| error.error),
        reason,
    }
}

/// Decodes an Access-Accept. A known attribute that is repeated although there is one value, or whose value cannot be used, is ignored
/// like an unknown one (RFC 6929 §2.8) and named in [`AccessAccept::ignored`].
///
/// # Errors
/// An Access-Accept for a service that we do not offer counts as a rejection (RFC 2865 §5.6). So does one with an attribute that is not
/// carried out, if the configuration says so, and one without a proof for a subscriber that needs it.
pub(crate) fn access_accept(
    packet: &Packet,
    mappings: &Mappings,
    not_enforced: NotEnforced,
    credentials: &Credentials,
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
    let needs_proof = matches!(credentials, Credentials::MsChapV2 { .. });
    if needs_proof && accept.mschapv2_proof.is_none() {
        return Err(RejectReason::NoProof);
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
    let filters = reader.filter_ids();
    let rules = filter_rules::read(reader.values(Kind::NAS_FILTER_RULE));
    let unusable = filters.unusable.or(rules.as_ref().err().cloned());
    let mut accept = AccessAccept {
        framed_ip: reader.framed_ip(),
        framed_ipv6_prefixes: reader.prefixes(Kind::FRAMED_IPV6_PREFIX, MOST_LINKS, |_| true),
        framed_routes: reader.framed_routes(),
        framed_interface_id: reader.single(Kind::FRAMED_INTERFACE_ID, |value| match value {
            Value::InterfaceId(identifier) => Some(*identifier),
            _ => None,
        }),
        filter_id: filters.profile,
        policy_up: filters.policy_up,
        policy_down: filters.policy_down,
        filter_rules: rules.unwrap_or_default(),
        unusable,
        framed_pool: reader.text(Kind::FRAMED_POOL),
        framed_ipv6_pool: reader.text(Kind::FRAMED_IPV6_POOL),
        framed_ipv6_address: reader.single(Kind::FRAMED_IPV6_ADDRESS, |value| match value {
            Value::Ipv6(address) => Some(*address).filter(|address| is_global(*address)),
            _ => None,
        }),
        ipv6_address_pool: reader.text(Kind::STATEFUL_IPV6_ADDRESS_POOL),
        delegated_prefixes: reader.prefixes(
            Kind::DELEGATED_IPV6_PREFIX,
            MOST_DELEGATED,
            is_delegable,
        ),
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
        mschapv2_proof: reader.single(Kind::MS_CHAP2_SUCCESS, mschapv2_proof),
        reply_message: reply_message(packet),
        ignored: reader.ignored,
        ..AccessAccept::default()
    };
    mapping::apply(mappings, packet, &mut accept);
    accept
}

/// Proof in an MS-CHAP2-Success: an identifier, which RADIUS does not need, and the text of a CHAP Success (RFC 2548 §2.3.3).
fn mschapv2_proof(value: &Value) -> Option<[u8; 20]> {
    let (_, text) = value.octets()?.split_first()?;
    let success = mschapv2::Success::parse(text).ok()?;
    Some(success.proof)
}

/// Why an answer with such an attribute cannot be carried out.
pub(crate) fn second_policy(attribute: &str) -> String {
    format!("a second policy for a direction, or one that cannot be read ({attribute})")
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

/// What the Filter-Ids of a packet name.
#[derive(Default)]
struct FilterIds {
    profile: Option<String>,
    policy_up: Option<String>,
    policy_down: Option<String>,
    unusable: Option<String>,
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

    /// Filter-Ids (RFC 2865 §5.11): the direction of a policy is the end of its name, as access servers have it since their beginnings.
    /// Without one it is the name of a profile.
    fn filter_ids(&mut self) -> FilterIds {
        let mut filters = FilterIds::default();
        let names = self.several(Kind::FILTER_ID, |value| match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        });
        for name in names {
            let (place, name) = match (name.strip_suffix(".in"), name.strip_suffix(".out")) {
                (Some(policy), _) => (&mut filters.policy_up, policy),
                (_, Some(policy)) => (&mut filters.policy_down, policy),
                _ if filters.profile.is_none() => {
                    filters.profile = Some(name);
                    continue;
                }
                _ => {
                    self.ignored.push(self::name(Kind::FILTER_ID).to_owned());
                    continue;
                }
            };
            if place.get_or_insert_with(|| name.to_owned()) != name {
                filters.unusable = Some(second_policy(self::name(Kind::FILTER_ID)));
            }
        }
        filters
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

    /// Routes of both families. One whose metric makes no sense has none, and is named.
    fn framed_routes(&mut self) -> Vec<FramedRoute> {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let mut routes = self.several(Kind::FRAMED_ROUTE, |value| route::ipv4(&text(value)?));
        let ipv6 = self.several(Kind::FRAMED_IPV6_ROUTE, |value| route::ipv6(&text(value)?));
        routes.extend(ipv6);
        let odd = routes.iter().filter(|(_, is_odd)| *is_odd);
        let odd = odd.map(|(route, _)| name(route.kind()).to_owned());
        self.ignored.extend(odd);
        routes.into_iter().map(|(route, _)| route).collect()
    }

    /// Prefixes that can be used. One that is said again, and those for which there is no room, are named.
    fn prefixes(
        &mut self,
        kind: Kind,
        most: usize,
        is_usable: fn(&Ipv6Net) -> bool,
    ) -> Vec<Ipv6Net> {
        let all = self.several(kind, |value| match value {
            Value::Ipv6Prefix(prefix) => Some(prefix.trunc()).filter(is_usable),
            _ => None,
        });
        let mut prefixes = Vec::new();
        for prefix in all {
            match prefixes.len() < most && !prefixes.contains(&prefix) {
                true => prefixes.push(prefix),
                false => self.ignored.push(name(kind).to_owned()),
            }
        }
        prefixes
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
