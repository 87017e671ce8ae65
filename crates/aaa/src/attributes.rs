//! Encodes requests into packets, and decodes packets into answers.

use core::net::Ipv4Addr;
use core::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use wire::Result;
use wire::radius::{
    Code, HEADER_LEN, Kind, Packet, Value, hide_password, sign_accounting_request, values,
};

use crate::config::NotEnforced;
use crate::mapping::{self, Mappings};
use crate::message::{
    AccessAccept, AccessRequest, AccountingKind, AccountingRecord, Authentic, Credentials, NasPort,
    PortType, RejectReason, Traffic,
};
use crate::{Nas, Secret};

/// Minimum interval: RFC 2869 §5.16 forbids shorter ones.
const SHORTEST_INTERIM: Duration = Duration::from_secs(60);

/// Access-Request, ready to be sent.
pub(crate) fn access_request(
    nas: &Nas,
    request: &AccessRequest,
    identifier: u8,
    authenticator: [u8; 16],
    secret: &Secret,
) -> Result<Vec<u8>> {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, identifier, authenticator);
    push_octets(&mut packet, Kind::USER_NAME, &request.username);
    match &request.credentials {
        Credentials::Pap { password } => {
            let hidden = hide_password(password.expose(), &authenticator, secret.expose())?;
            packet.push(Kind::USER_PASSWORD, hidden);
        }
        Credentials::Chap {
            id,
            challenge,
            response,
        } => {
            packet.push(Kind::CHAP_PASSWORD, [&[*id][..], response].concat());
            packet.push(Kind::CHAP_CHALLENGE, &challenge[..]);
        }
    }
    push_service(&mut packet, nas, &request.nas_port);
    push_text(
        &mut packet,
        Kind::ACCT_SESSION_ID,
        Some(&request.acct_session_id),
    );
    packet.emit_access_request(secret.expose())
}

/// Status-Server, ready to be sent to either port of a server (RFC 5997 §3).
pub(crate) fn status_server(
    nas: &Nas,
    identifier: u8,
    authenticator: [u8; 16],
    secret: &Secret,
) -> Result<Vec<u8>> {
    let mut packet = Packet::new(Code::STATUS_SERVER, identifier, authenticator);
    push_nas(&mut packet, nas);
    packet.emit_access_request(secret.expose())
}

/// Attributes of an Accounting-Request. They have no Acct-Delay-Time, which would make another datagram of each repetition.
/// Event-Timestamp has the time of the event.
pub(crate) fn accounting_attributes(nas: &Nas, record: &AccountingRecord) -> Result<Box<[u8]>> {
    let mut packet = Packet::new(Code::ACCOUNTING_REQUEST, 0, [0; 16]);
    let status = match record.kind {
        AccountingKind::Start => values::ACCT_STATUS_TYPE_START,
        AccountingKind::Interim => values::ACCT_STATUS_TYPE_INTERIM_UPDATE,
        AccountingKind::Stop(_) => values::ACCT_STATUS_TYPE_STOP,
    };
    packet.push(Kind::ACCT_STATUS_TYPE, status);
    push_text(
        &mut packet,
        Kind::ACCT_SESSION_ID,
        Some(&record.acct_session_id),
    );
    push_octets(&mut packet, Kind::USER_NAME, &record.username);
    push_service(&mut packet, nas, &record.nas_port);
    for class in &record.class {
        push_octets(&mut packet, Kind::CLASS, class);
    }
    push_addresses(&mut packet, record);
    packet.push(Kind::ACCT_AUTHENTIC, authentic(record.authentic));
    packet.push(Kind::EVENT_TIMESTAMP, Value::Time(record.event_time));
    if record.kind != AccountingKind::Start {
        push_usage(&mut packet, record);
    }
    if let AccountingKind::Stop(cause) = record.kind {
        packet.push(Kind::ACCT_TERMINATE_CAUSE, cause as u32);
    }
    let mut bytes = Vec::new();
    packet.emit(&mut bytes)?;
    Ok(bytes[HEADER_LEN..].into())
}

/// Accounting-Request with these attributes, for a server with this secret.
pub(crate) fn accounting_request(identifier: u8, attributes: &[u8], secret: &Secret) -> Vec<u8> {
    let length = (HEADER_LEN + attributes.len()) as u16;
    let mut bytes = Vec::with_capacity(length.into());
    bytes.extend([Code::ACCOUNTING_REQUEST.0, identifier]);
    bytes.extend(length.to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend(attributes);
    sign_accounting_request(&mut bytes, secret.expose());
    bytes
}

/// Adds the identity of the gateway.
fn push_nas(packet: &mut Packet, nas: &Nas) {
    push_text(packet, Kind::NAS_IDENTIFIER, Some(&nas.identifier));
    if let Some(address) = nas.ipv4 {
        packet.push(Kind::NAS_IP_ADDRESS, address);
    }
    if let Some(address) = nas.ipv6 {
        packet.push(Kind::NAS_IPV6_ADDRESS, address);
    }
}

/// Adds the attributes about the gateway, the service and the port that both requests have.
fn push_service(packet: &mut Packet, nas: &Nas, port: &NasPort) {
    push_nas(packet, nas);
    packet.push(Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED);
    packet.push(Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_PPP);
    packet.push(Kind::NAS_PORT_TYPE, port_type(port.port_type));
    if let Some(port) = port.port {
        packet.push(Kind::NAS_PORT, port);
    }
    push_text(packet, Kind::NAS_PORT_ID, port.port_id.as_deref());
    push_text(
        packet,
        Kind::CALLING_STATION_ID,
        port.calling_station.as_deref(),
    );
    push_text(
        packet,
        Kind::CALLED_STATION_ID,
        port.called_station.as_deref(),
    );
    push_octets(
        packet,
        Kind::ADSL_FORUM_AGENT_CIRCUIT_ID,
        port.circuit_id.as_deref().unwrap_or_default(),
    );
    push_octets(
        packet,
        Kind::ADSL_FORUM_AGENT_REMOTE_ID,
        port.remote_id.as_deref().unwrap_or_default(),
    );
}

fn push_addresses(packet: &mut Packet, record: &AccountingRecord) {
    if let Some(address) = record.framed_ip {
        packet.push(Kind::FRAMED_IP_ADDRESS, address);
    }
    if let Some(prefix) = record.framed_ipv6_prefix {
        packet.push(Kind::FRAMED_IPV6_PREFIX, prefix);
    }
    if let Some(identifier) = record.framed_interface_id {
        packet.push(Kind::FRAMED_INTERFACE_ID, Value::InterfaceId(identifier));
    }
}

fn push_usage(packet: &mut Packet, record: &AccountingRecord) {
    packet.push(Kind::ACCT_SESSION_TIME, seconds(record.session_time));
    let input = (
        Kind::ACCT_INPUT_OCTETS,
        Kind::ACCT_INPUT_GIGAWORDS,
        Kind::ACCT_INPUT_PACKETS,
    );
    let output = (
        Kind::ACCT_OUTPUT_OCTETS,
        Kind::ACCT_OUTPUT_GIGAWORDS,
        Kind::ACCT_OUTPUT_PACKETS,
    );
    for ((octets, gigawords, packets), traffic) in [(input, record.input), (output, record.output)]
    {
        let Traffic {
            octets: count,
            packets: number,
        } = traffic;
        packet.push(octets, count as u32);
        packet.push(gigawords, (count >> 32) as u32);
        packet.push(packets, number as u32);
    }
}

/// Adds a text. An attribute without a value must not be sent (RFC 2865 §5).
fn push_text(packet: &mut Packet, kind: Kind, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        packet.push(kind, text);
    }
}

fn push_octets(packet: &mut Packet, kind: Kind, octets: &[u8]) {
    if !octets.is_empty() {
        packet.push(kind, octets);
    }
}

fn port_type(port_type: PortType) -> u32 {
    match port_type {
        PortType::Ethernet => values::NAS_PORT_TYPE_ETHERNET,
        PortType::PppoeOverEthernet => values::NAS_PORT_TYPE_PPPOEOE,
        PortType::PppoeOverVlan => values::NAS_PORT_TYPE_PPPOEOVLAN,
        PortType::PppoeOverQinq => values::NAS_PORT_TYPE_PPPOEOQINQ,
    }
}

fn authentic(authentic: Authentic) -> u32 {
    match authentic {
        Authentic::Radius => values::ACCT_AUTHENTIC_RADIUS,
        Authentic::Local => values::ACCT_AUTHENTIC_LOCAL,
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

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
    expect(packet, Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED)?;
    expect(packet, Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_PPP)?;
    let mut accept = authorization(packet, mappings);
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
fn expect(packet: &Packet, kind: Kind, only: u32) -> core::result::Result<(), RejectReason> {
    match packet.get(kind) {
        Some(Value::Integer(other)) if *other != only => Err(RejectReason::Unsupported(name(kind))),
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
        class: packet
            .all(Kind::CLASS)
            .filter_map(Value::octets)
            .map(<[u8]>::to_vec)
            .collect(),
        session_timeout: reader.time(Kind::SESSION_TIMEOUT),
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
