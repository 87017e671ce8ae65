//! Reads a CoA-Request or Disconnect-Request: whom it is about, and what is to be done.

use super::{DynamicConfig, ErrorCause};
use crate::attributes::authorization;
use crate::mapping::Mappings;
use crate::standard::{InAccept, InChange, standard};
use crate::{AccessAccept, Nas};
use core::net::{Ipv4Addr, Ipv6Addr};
use ipnet::Ipv6Net;
use wire::radius::{Code, Kind, Packet, Value, values};

/// Request about one session.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicRequest {
    /// What identifies the session.
    pub ids: SessionIds,
    /// What is to be done.
    pub requested: Requested,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Requested {
    /// The session is to be ended.
    Disconnect,
    /// The session is to have these values in place of those that it has. What is not there stays as it is.
    Change(Box<AccessAccept>),
    /// The server is to be asked for all of the session's values with this State (RFC 5176 §3.2).
    Authorize {
        /// State.
        state: Vec<u8>,
    },
}

/// Attributes that identify a session (RFC 5176 §3). Each one that is there must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionIds {
    /// User-Name.
    pub username: Option<Vec<u8>>,
    /// Acct-Session-Id.
    pub acct_session_id: Option<String>,
    /// Framed-IP-Address.
    pub framed_ip: Option<Ipv4Addr>,
    /// Framed-IPv6-Prefixes, all of which must be prefixes of the session's link.
    pub framed_ipv6_prefixes: Vec<Ipv6Net>,
    /// Framed-IPv6-Address.
    pub framed_ipv6_address: Option<Ipv6Addr>,
    /// Delegated-IPv6-Prefixes, which the session has all.
    pub delegated_prefixes: Vec<Ipv6Net>,
    /// Calling-Station-Id, as the gateway sends it: the MAC address.
    pub calling_station: Option<String>,
    /// NAS-Port-Id, as the gateway sends it.
    pub port_id: Option<String>,
    /// Agent circuit id of the access node (RFC 4679 §3.3.1).
    pub circuit_id: Option<Vec<u8>>,
    /// Agent remote id of the access node (RFC 4679 §3.3.2).
    pub remote_id: Option<Vec<u8>>,
}

impl core::fmt::Display for SessionIds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let octets = |octets: &Option<Vec<u8>>| {
            let octets = octets.as_deref();
            octets.map(|octets| octets.escape_ascii().to_string())
        };
        let delegated = self.delegated_prefixes.iter().map(Ipv6Net::to_string);
        let delegated = delegated.reduce(|all, one| format!("{all} {one}"));
        let ids = [
            ("Acct-Session-Id", self.acct_session_id.clone()),
            ("User-Name", octets(&self.username)),
            ("Framed-IP-Address", self.framed_ip.map(|ip| ip.to_string())),
            (
                "Framed-IPv6-Address",
                self.framed_ipv6_address.map(|ip| ip.to_string()),
            ),
            ("Delegated-IPv6-Prefix", delegated),
            ("Calling-Station-Id", self.calling_station.clone()),
            ("NAS-Port-Id", self.port_id.clone()),
            ("Agent-Circuit-Id", octets(&self.circuit_id)),
            ("Agent-Remote-Id", octets(&self.remote_id)),
        ];
        let prefixes = self.framed_ipv6_prefixes.iter();
        let prefixes = prefixes.map(|net| ("Framed-IPv6-Prefix", Some(net.to_string())));
        let ids = ids.into_iter().chain(prefixes);
        let ids = ids.filter_map(|(name, id)| Some(format!("{name} {}", id?)));
        f.write_str(&ids.collect::<Vec<_>>().join(", "))
    }
}

impl SessionIds {
    fn is_empty(&self) -> bool {
        *self == SessionIds::default()
    }
}

/// Reads a request to one of these gateways.
pub(super) fn read(packet: &Packet, config: &DynamicConfig) -> Result<DynamicRequest, ErrorCause> {
    check_gateway(packet, &config.gateways)?;
    let mut ids = SessionIds::default();
    let mut changes = Packet::new(packet.code, packet.identifier, packet.authenticator);
    for attribute in &packet.attributes {
        let (kind, value) = (attribute.kind, &attribute.value);
        if identify(&mut ids, kind, value)? {
            continue;
        }
        match (
            kind,
            standard(kind).map(|own| (own.in_accept, own.in_change)),
        ) {
            (Kind::SERVICE_TYPE | Kind::FRAMED_PROTOCOL, _) => {
                check_service(packet.code, kind, value)?
            }
            // the caller has looked at them
            (_, Some((_, InChange::OfTheMessage | InChange::NamesGateway))) => {}
            // at the beginning it needs no action, and now it would be one
            (_, Some((InAccept::NoAction, InChange::Unsupported)))
                if !config.mappings.has(kind) =>
            {
                return Err(ErrorCause::UnsupportedAttribute);
            }
            _ if packet.code == Code::COA_REQUEST => changes.attributes.push(attribute.clone()),
            // of a session that ends the server gets its own back
            (Kind::CLASS, _) => {}
            _ => return Err(ErrorCause::UnsupportedAttribute),
        }
    }
    if ids.is_empty() {
        return Err(ErrorCause::MissingAttribute);
    }
    let requested = match packet.code {
        Code::COA_REQUEST if is_authorize_only(packet) => authorize_only(packet, &changes)?,
        Code::COA_REQUEST => Requested::Change(Box::new(change(&changes, &config.mappings)?)),
        _ => Requested::Disconnect,
    };
    Ok(DynamicRequest { ids, requested })
}

fn is_authorize_only(packet: &Packet) -> bool {
    let only = Value::Integer(values::SERVICE_TYPE_AUTHORIZE_ONLY);
    packet.get(Kind::SERVICE_TYPE) == Some(&only)
}

/// RFC 5176 §3.2: it has a State, and no values.
fn authorize_only(packet: &Packet, changes: &Packet) -> Result<Requested, ErrorCause> {
    if !changes.attributes.is_empty() {
        return Err(ErrorCause::UnsupportedAttribute);
    }
    let state = packet.get(Kind::STATE).and_then(Value::octets);
    let state = state.filter(|state| !state.is_empty());
    let state = state.ok_or(ErrorCause::MissingAttribute)?.to_vec();
    Ok(Requested::Authorize { state })
}

/// What is to be changed. Half of it is never done: one value that cannot be used is the end, and so is one that says nothing to a
/// session that is running, or to its subscriber's next one. Attributes that change nothing, like State, are no change.
fn change(changes: &Packet, mappings: &Mappings) -> Result<AccessAccept, ErrorCause> {
    let change = authorization(changes, mappings);
    let is_enforced = change.not_enforced.is_empty() && change.unknown.is_empty();
    let is_of_begin = change.framed_interface_id.is_some()
        || change.port_limit.is_some()
        || change.mschapv2_proof.is_some();
    match change.ignored.is_empty() {
        _ if !is_enforced || is_of_begin => Err(ErrorCause::UnsupportedAttribute),
        true if change == AccessAccept::default() => Err(ErrorCause::MissingAttribute),
        true => Ok(change),
        false => Err(ErrorCause::InvalidAttributeValue),
    }
}

/// RFC 5176 §3: the attributes that name a gateway must name this one.
fn check_gateway(packet: &Packet, gateways: &[Nas]) -> Result<(), ErrorCause> {
    let is_named = |attribute: &wire::radius::Attribute| match (attribute.kind, &attribute.value) {
        (Kind::NAS_IDENTIFIER, value) => {
            let name = value.octets();
            gateways
                .iter()
                .any(|g| name == Some(g.identifier.as_bytes()))
        }
        (Kind::NAS_IP_ADDRESS, Value::Ipv4(own)) => gateways.iter().any(|g| g.ipv4 == Some(*own)),
        (Kind::NAS_IPV6_ADDRESS, Value::Ipv6(own)) => gateways.iter().any(|g| g.ipv6 == Some(*own)),
        (Kind::NAS_IP_ADDRESS | Kind::NAS_IPV6_ADDRESS, _) => false,
        _ => true,
    };
    match packet.attributes.iter().all(is_named) {
        true => Ok(()),
        false => Err(ErrorCause::NasIdentificationMismatch),
    }
}

/// Every service but that of a PPP subscriber is somebody else's. Only a change may ask for Authorize-Only.
fn check_service(code: Code, kind: Kind, value: &Value) -> Result<(), ErrorCause> {
    let is_own = match (kind, value) {
        (Kind::SERVICE_TYPE, Value::Integer(values::SERVICE_TYPE_AUTHORIZE_ONLY)) => {
            code == Code::COA_REQUEST
        }
        (Kind::SERVICE_TYPE, value) => *value == Value::Integer(values::SERVICE_TYPE_FRAMED),
        (_, value) => *value == Value::Integer(values::FRAMED_PROTOCOL_PPP),
    };
    match is_own {
        true => Ok(()),
        false => Err(ErrorCause::UnsupportedService),
    }
}

/// Takes an attribute that identifies the session; whether it is one.
fn identify(ids: &mut SessionIds, kind: Kind, value: &Value) -> Result<bool, ErrorCause> {
    let octets = || value.octets().filter(|o| !o.is_empty()).map(<[u8]>::to_vec);
    let text = || match value {
        Value::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    match kind {
        Kind::USER_NAME => set(&mut ids.username, octets()),
        Kind::ACCT_SESSION_ID => set(&mut ids.acct_session_id, text()),
        Kind::CALLING_STATION_ID => set(&mut ids.calling_station, text()),
        Kind::NAS_PORT_ID => set(&mut ids.port_id, text()),
        Kind::ADSL_FORUM_AGENT_CIRCUIT_ID => set(&mut ids.circuit_id, octets()),
        Kind::ADSL_FORUM_AGENT_REMOTE_ID => set(&mut ids.remote_id, octets()),
        Kind::FRAMED_IP_ADDRESS => match value {
            Value::Ipv4(address) => set(&mut ids.framed_ip, Some(*address)),
            _ => set(&mut ids.framed_ip, None),
        },
        Kind::FRAMED_IPV6_PREFIX => add(&mut ids.framed_ipv6_prefixes, value),
        Kind::FRAMED_IPV6_ADDRESS => match value {
            Value::Ipv6(address) => set(&mut ids.framed_ipv6_address, Some(*address)),
            _ => set(&mut ids.framed_ipv6_address, None),
        },
        Kind::DELEGATED_IPV6_PREFIX => add(&mut ids.delegated_prefixes, value),
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Adds a prefix, which must not be named twice.
fn add(prefixes: &mut Vec<Ipv6Net>, value: &Value) -> Result<(), ErrorCause> {
    let Value::Ipv6Prefix(prefix) = value else {
        return Err(ErrorCause::InvalidAttributeValue);
    };
    let prefix = prefix.trunc();
    if prefixes.contains(&prefix) {
        return Err(ErrorCause::InvalidRequest);
    }
    prefixes.push(prefix);
    Ok(())
}

/// Two values for what is one contradict each other.
fn set<T>(id: &mut Option<T>, value: Option<T>) -> Result<(), ErrorCause> {
    let value = value.ok_or(ErrorCause::InvalidAttributeValue)?;
    match id.replace(value) {
        None => Ok(()),
        Some(_) => Err(ErrorCause::InvalidRequest),
    }
}
