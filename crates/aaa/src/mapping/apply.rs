//! Applies the mappings to a packet's attributes.

use core::net::IpAddr;

use policy::Rate;
use wire::radius::{Attribute, Kind, Packet, Value as Wire, values};

use super::{Mappings, Rule, Setting, values as read};
use crate::attributes::second_policy;
use crate::dictionary::{AttributeId, Definition, Value};
use crate::message::AccessAccept;
use crate::standard::{InAccept, standard};

/// Maximum number of DNS servers that are used.
const MAX_DNS: usize = 8;
/// Maximum length of a key in a log line, in characters.
const MAX_KEY: usize = 64;

/// Whether the attribute needs no mapping.
fn is_settled(attribute: &Attribute) -> bool {
    match attribute.kind {
        // None (RFC 2865 §5.10)
        Kind::FRAMED_ROUTING if attribute.value == Wire::Integer(0) => true,
        // that of a single address
        Kind::FRAMED_IP_NETMASK if attribute.value == Wire::Ipv4([255; 4].into()) => true,
        // the server allows an encryption and does not require it (RFC 2548 §2.4.4)
        Kind::MS_MPPE_ENCRYPTION_POLICY
            if attribute.value
                == Wire::Integer(values::MS_MPPE_ENCRYPTION_POLICY_ENCRYPTION_ALLOWED) =>
        {
            true
        }
        kind => standard(kind).is_some_and(|own| own.in_accept != InAccept::NotEnforced),
    }
}

/// Adds the settings of mapped attributes, and the names of attributes that are not carried out.
pub(crate) fn apply(mappings: &Mappings, packet: &Packet, accept: &mut AccessAccept) {
    let mut reading = Reading {
        mappings,
        accept,
        dns: Vec::new(),
    };
    for attribute in &packet.attributes {
        match &attribute.value {
            Wire::Invalid(_) => {} // named already
            Wire::Octets(octets) if attribute.kind == Kind::VENDOR_SPECIFIC => {
                reading.vendor_specific(octets);
            }
            _ if mappings.has(attribute.kind) || !is_settled(attribute) => {
                reading.standard(attribute);
            }
            _ => {}
        }
    }
    reading.finish();
}

/// Reading of a packet's attributes.
struct Reading<'a> {
    mappings: &'a Mappings,
    accept: &'a mut AccessAccept,
    /// DNS servers with the attributes that name them.
    dns: Vec<(AttributeId, IpAddr)>,
}

impl Reading<'_> {
    /// An attribute that the packet's codec has read.
    fn standard(&mut self, attribute: &Attribute) {
        let id = AttributeId::from(attribute.kind);
        let mappings = self.mappings;
        let Some(definition) = mappings.dictionary.attribute(id) else {
            return self.unknown(id);
        };
        let value = match &attribute.value {
            Wire::Integer(number) => Some(Value::Number((*number).into())),
            Wire::Text(text) => Some(Value::Text(text)),
            Wire::Octets(octets) => definition.read(octets),
            Wire::Ipv4(address) => Some(Value::Address((*address).into())),
            Wire::Ipv6(address) => Some(Value::Address((*address).into())),
            Wire::Ipv6Prefix(prefix) => Some(Value::Prefix((*prefix).into())),
            Wire::InterfaceId(_) | Wire::Time(_) | Wire::Invalid(_) => Some(Value::Octets(&[])),
        };
        self.attribute(id, definition, value);
    }

    /// The attributes of a vendor whose layout only the dictionary knows.
    fn vendor_specific(&mut self, octets: &[u8]) {
        let Some((vendor, inner)) = octets.split_first_chunk() else {
            return;
        };
        let (vendor, mappings) = (u32::from_be_bytes(*vendor), self.mappings);
        let name = || format!("Attr-26.{vendor}");
        let Some(format) = mappings.dictionary.format(vendor) else {
            return self.accept.unknown.push(name());
        };
        let Some(attributes) = format.split(inner) else {
            return self.accept.ignored.push(name());
        };
        for (number, octets) in attributes {
            let id = AttributeId { vendor, number };
            match mappings.dictionary.attribute(id) {
                Some(definition) => self.attribute(id, definition, definition.read(octets)),
                None => self.unknown(id),
            }
        }
    }

    fn unknown(&mut self, AttributeId { vendor, number }: AttributeId) {
        self.accept.unknown.push(match vendor {
            0 => format!("Attr-{number}"),
            vendor => format!("Attr-26.{vendor}.{number}"),
        });
    }

    /// An attribute of the dictionary. `None`: its value does not fit its type.
    fn attribute(&mut self, id: AttributeId, definition: &Definition, value: Option<Value<'_>>) {
        let rules = self.mappings.rules.get(&id).map_or(&[][..], Vec::as_slice);
        let of = |key: Option<&str>| -> Vec<&Rule> {
            let rules = rules.iter();
            rules.filter(|rule| rule.key.as_deref() == key).collect()
        };
        let mut name = definition.name.clone();
        let (mut found, mut meant) = (of(None), value);
        if rules.iter().any(|rule| rule.key.is_some())
            && let Some(Value::Text(text)) = value
            && let Some((key, rest)) = text.split_once(['=', '*'])
        {
            // `#` and a number order several values of a key
            let key = key.split('#').next().unwrap_or_default().trim();
            let shown: String = key.chars().take(MAX_KEY).collect();
            name = format!("{name} {}", shown.escape_debug());
            let of_key = of(Some(key));
            if !of_key.is_empty() {
                (found, meant) = (of_key, Some(Value::Text(rest.trim())));
            }
        }
        if found.is_empty() {
            return self.accept.not_enforced.push(name);
        }
        for rule in found {
            let is_used = meant.is_some_and(|value| self.set(rule, id, value, &name));
            if !is_used && rule.setting != Setting::Nothing {
                self.accept.ignored.push(name.clone());
            }
        }
    }

    /// Sets a setting. `false`: the value cannot be used, or the setting has another value already.
    fn set(&mut self, rule: &Rule, id: AttributeId, value: Value<'_>, name: &str) -> bool {
        let (setting, unit) = (rule.setting, rule.unit);
        let accept = &mut *self.accept;
        match setting {
            Setting::RateUp => fill(&mut accept.rate_up, read::rate(value, unit)),
            Setting::RateDown => fill(&mut accept.rate_down, read::rate(value, unit)),
            Setting::CommittedRateUp => {
                fill(&mut accept.committed_rate_up, read::rate(value, unit))
            }
            Setting::CommittedRateDown => {
                fill(&mut accept.committed_rate_down, read::rate(value, unit))
            }
            Setting::SubscriberRateUp => {
                fill(&mut accept.subscriber_rate_up, read::rate(value, unit))
            }
            Setting::SubscriberRateDown => {
                fill(&mut accept.subscriber_rate_down, read::rate(value, unit))
            }
            Setting::RateUpDown => self.set_rates(read::two_rates(value, unit), name),
            Setting::RateDownUp => {
                let rates = read::two_rates(value, unit);
                self.set_rates(rates.map(|([down, up], more)| ([up, down], more)), name)
            }
            Setting::Dns => match read::addresses(value) {
                Some(addresses) => {
                    self.dns.extend(addresses.into_iter().map(|a| (id, a)));
                    true
                }
                None => false,
            },
            Setting::Profile => fill(&mut accept.filter_id, read::name(value)),
            Setting::Ipv4Pool => fill(&mut accept.framed_pool, read::name(value)),
            Setting::Ipv6Pool => fill(&mut accept.framed_ipv6_pool, read::name(value)),
            Setting::VlanPriority => fill(&mut accept.vlan_priority, read::priority(value)),
            Setting::Mtu => fill(&mut accept.framed_mtu, read::mtu(value)),
            Setting::SessionTimeout => fill(&mut accept.session_timeout, read::time(value, unit)),
            Setting::IdleTimeout => fill(&mut accept.idle_timeout, read::time(value, unit)),
            Setting::Route => {
                let route = read::route(value);
                accept.framed_routes.extend(route.map(|(route, _)| route));
                route.is_some_and(|(_, is_odd)| !is_odd)
            }
            Setting::PolicyUp => {
                let policy = read::name(value);
                name_policy(&mut accept.policy_up, policy, name, &mut accept.unusable)
            }
            Setting::PolicyDown => {
                let policy = read::name(value);
                name_policy(&mut accept.policy_down, policy, name, &mut accept.unusable)
            }
            Setting::Nothing => true,
        }
    }

    /// Sets the rates up and down. What follows them, such as MikroTik's burst, is not carried out.
    fn set_rates(&mut self, rates: Option<([Rate; 2], bool)>, name: &str) -> bool {
        let Some(([up, down], has_more)) = rates else {
            return false;
        };
        if has_more {
            let rest = format!("{name} (what follows the rates)");
            self.accept.not_enforced.push(rest);
        }
        let accept = &mut *self.accept;
        let is_up = fill(&mut accept.rate_up, Some(up));
        fill(&mut accept.rate_down, Some(down)) && is_up
    }

    /// The preferred DNS servers first: primary ones have lower numbers than secondary ones.
    fn finish(mut self) {
        self.dns.sort_by_key(|(id, _)| *id);
        for (id, address) in self.dns {
            let dns = &mut self.accept.dns;
            if dns.contains(&address) {
                continue;
            }
            if dns.len() < MAX_DNS {
                dns.push(address);
            } else if let Some(definition) = self.mappings.dictionary.attribute(id) {
                self.accept.ignored.push(definition.name.clone());
            }
        }
    }
}

/// Sets the policy of a direction. Another one than it has is a contradiction, and so is a name that cannot be read: without a policy more
/// would pass than the server wants.
fn name_policy(
    setting: &mut Option<String>,
    policy: Option<String>,
    attribute: &str,
    unusable: &mut Option<String>,
) -> bool {
    let is_set = fill(setting, policy);
    if !is_set {
        *unusable = Some(second_policy(attribute));
    }
    is_set
}

/// Sets a value if there is none yet. `false`: there is no value to set, or there is another one already.
fn fill<T: PartialEq>(setting: &mut Option<T>, value: Option<T>) -> bool {
    match (&*setting, value) {
        (_, None) => false,
        (Some(other), Some(value)) => *other == value,
        (None, Some(value)) => {
            *setting = Some(value);
            true
        }
    }
}
