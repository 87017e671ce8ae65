//! Encodes requests into packets.

use core::time::Duration;

use wire::Result;
use wire::access_loop::{AccessLoop, LoopValue};
use wire::radius::{
    Code, HEADER_LEN, Kind, Packet, Value, hide_password, sign_accounting_request, values,
};

use crate::families::{self, Counters, push_traffic};
use crate::message::{
    AccessRequest, AccountingKind, AccountingRecord, Announcement, Authentic, Credentials, NasPort,
    PortType,
};
use crate::{FamilyCounters, Nas, Secret};

/// Access-Request, ready to be sent.
pub(crate) fn access_request(
    nas: &Nas,
    request: &AccessRequest,
    identifier: u8,
    authenticator: [u8; 16],
    secret: &Secret,
) -> Result<Vec<u8>> {
    let mut packet = Packet::new(Code::ACCESS_REQUEST, identifier, authenticator);
    let username = request.sent_name.as_ref().unwrap_or(&request.username);
    push_octets(&mut packet, Kind::USER_NAME, username);
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
        Credentials::MsChapV2 {
            id,
            challenge,
            response,
        } => {
            packet.push(Kind::MS_CHAP_CHALLENGE, &challenge[..]);
            packet.push(Kind::MS_CHAP2_RESPONSE, response.to_attribute(*id));
        }
        Credentials::AuthorizeOnly => {}
    }
    let service = match request.credentials {
        Credentials::AuthorizeOnly => values::SERVICE_TYPE_AUTHORIZE_ONLY,
        _ => values::SERVICE_TYPE_FRAMED,
    };
    push_service(&mut packet, nas, &request.nas_port, service);
    push_octets(&mut packet, Kind::STATE, &request.state);
    if let Some(access_loop) = &request.nas_port.access_loop {
        let is_sent = |value| matches!(value, LoopValue::ActualRateUp | LoopValue::ActualRateDown);
        push_loop(&mut packet, access_loop, is_sent);
    }
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
/// Event-Timestamp has the time of the event. If the prefixes behind the subscriber's router make the packet longer than RADIUS
/// allows (4,096 octets), the record goes without them; then the second result is true.
///
/// # Errors
/// A value that does not fit into RADIUS, for example a name of more than 253 octets.
pub(crate) fn accounting_attributes(
    nas: &Nas,
    counters: FamilyCounters,
    record: &AccountingRecord,
) -> Result<(Box<[u8]>, bool)> {
    let mut packet = accounting_packet(nas, counters, record);
    let (mut bytes, without) = (Vec::new(), packet.attributes.len());
    push_routed(&mut packet, record);
    let is_too_long = packet.emit(&mut bytes).is_err();
    if is_too_long {
        packet.attributes.truncate(without);
        bytes.clear();
        packet.emit(&mut bytes)?;
    }
    Ok((bytes[HEADER_LEN..].into(), is_too_long))
}

/// Attributes of an Accounting-On or Accounting-Off.
///
/// # Errors
/// A value that does not fit into RADIUS.
pub(crate) fn announcement_attributes(nas: &Nas, announcement: &Announcement) -> Result<Box<[u8]>> {
    let mut packet = Packet::new(Code::ACCOUNTING_REQUEST, 0, [0; 16]);
    let status = match announcement.begins {
        true => values::ACCT_STATUS_TYPE_ACCOUNTING_ON,
        false => values::ACCT_STATUS_TYPE_ACCOUNTING_OFF,
    };
    packet.push(Kind::ACCT_STATUS_TYPE, status);
    let acct_session_id = Some(&*announcement.acct_session_id);
    push_text(&mut packet, Kind::ACCT_SESSION_ID, acct_session_id);
    push_nas(&mut packet, nas);
    packet.push(Kind::EVENT_TIMESTAMP, Value::Time(announcement.event_time));
    let mut bytes = Vec::new();
    packet.emit(&mut bytes)?;
    Ok(bytes[HEADER_LEN..].into())
}

/// Everything of a record but the prefixes behind the subscriber's router.
fn accounting_packet(nas: &Nas, counters: FamilyCounters, record: &AccountingRecord) -> Packet {
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
    let multi_session_id = record.multi_session_id.as_deref();
    push_text(&mut packet, Kind::ACCT_MULTI_SESSION_ID, multi_session_id);
    push_octets(&mut packet, Kind::USER_NAME, &record.username);
    push_service(
        &mut packet,
        nas,
        &record.nas_port,
        values::SERVICE_TYPE_FRAMED,
    );
    if let Some(access_loop) = &record.nas_port.access_loop {
        push_loop(&mut packet, access_loop, |_| true);
    }
    for class in &record.class {
        push_octets(&mut packet, Kind::CLASS, class);
    }
    push_text(&mut packet, Kind::FILTER_ID, record.filter_id.as_deref());
    push_addresses(&mut packet, record);
    packet.push(Kind::ACCT_AUTHENTIC, authentic(record.authentic));
    packet.push(Kind::EVENT_TIMESTAMP, Value::Time(record.event_time));
    if record.kind != AccountingKind::Start {
        push_usage(&mut packet, record);
        families::push(&mut packet, counters, record);
    }
    if let AccountingKind::Stop(cause) = record.kind {
        packet.push(Kind::ACCT_TERMINATE_CAUSE, cause as u32);
    }
    packet
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
fn push_service(packet: &mut Packet, nas: &Nas, port: &NasPort, service: u32) {
    push_nas(packet, nas);
    packet.push(Kind::SERVICE_TYPE, service);
    packet.push(Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_PPP);
    packet.push(Kind::NAS_PORT_TYPE, port_type(port.port_type));
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

/// Adds the characteristics of the access loop (RFC 4679 §3.3.3 to §3.3.18), of which only some belong into an Access-Request. A rate is in
/// bit/s there; one that has no room, from 4.3 Gbit/s on, is left out, because a smaller one would be wrong.
fn push_loop(packet: &mut Packet, access_loop: &AccessLoop, is_sent: impl Fn(LoopValue) -> bool) {
    push_text(
        packet,
        Kind::CONNECT_INFO,
        connect_info(access_loop).as_deref(),
    );
    for (value, number) in access_loop.values().filter(|(value, _)| is_sent(*value)) {
        let number = match value.is_rate() {
            true => number.checked_mul(1000),
            false => Some(number),
        };
        if let Some(number) = number {
            packet.push(Kind::adsl_forum(value as u8), number);
        }
    }
    if let Some(encapsulation) = &access_loop.encapsulation {
        packet.push(
            Kind::ADSL_FORUM_ACCESS_LOOP_ENCAPSULATION,
            &encapsulation[..],
        );
    }
    if access_loop.is_interworked {
        packet.push(Kind::ADSL_FORUM_IWF_SESSION, &b""[..]); // it has no data
    }
}

/// Connect-Info: rates to and from the subscriber in bit/s, of which one is enough if both are the same (RFC 2869 §5.11). `None` if one
/// is unknown, because the other one alone would stand for both.
fn connect_info(access_loop: &AccessLoop) -> Option<String> {
    let rate = |value| Some(u64::from(access_loop.get(value)?) * 1000);
    let (down, up) = (
        rate(LoopValue::ActualRateDown)?,
        rate(LoopValue::ActualRateUp)?,
    );
    Some(match down == up {
        true => down.to_string(),
        false => format!("{down}/{up}"),
    })
}

fn push_addresses(packet: &mut Packet, record: &AccountingRecord) {
    if let Some(address) = record.framed_ip {
        packet.push(Kind::FRAMED_IP_ADDRESS, address);
    }
    for prefix in &record.framed_ipv6_prefixes {
        packet.push(Kind::FRAMED_IPV6_PREFIX, *prefix);
    }
    if let Some(address) = record.framed_ipv6_address {
        packet.push(Kind::FRAMED_IPV6_ADDRESS, address);
    }
    if let Some(identifier) = record.framed_interface_id {
        packet.push(Kind::FRAMED_INTERFACE_ID, Value::InterfaceId(identifier));
    }
}

/// Adds the prefixes behind the subscriber's router.
fn push_routed(packet: &mut Packet, record: &AccountingRecord) {
    for route in &record.framed_routes {
        packet.push(route.kind(), route.text());
    }
    for prefix in &record.delegated_prefixes {
        packet.push(Kind::DELEGATED_IPV6_PREFIX, *prefix);
    }
}

fn push_usage(packet: &mut Packet, record: &AccountingRecord) {
    packet.push(Kind::ACCT_SESSION_TIME, seconds(record.session_time));
    let input = Counters {
        octets: Kind::ACCT_INPUT_OCTETS,
        gigawords: Kind::ACCT_INPUT_GIGAWORDS,
        packets: Kind::ACCT_INPUT_PACKETS,
    };
    let output = Counters {
        octets: Kind::ACCT_OUTPUT_OCTETS,
        gigawords: Kind::ACCT_OUTPUT_GIGAWORDS,
        packets: Kind::ACCT_OUTPUT_PACKETS,
    };
    push_traffic(packet, input, record.input);
    push_traffic(packet, output, record.output);
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
