//! Applies the mappings to a packet's attributes.

use core::net::IpAddr;

use policy::Rate;
use wire::radius::{Attribute, Kind, Packet, Value as Wire, values};

use super::{Mappings, Rule, Setting, UnusableRate, values as read};
use crate::attributes::second_policy;
use crate::dictionary::{AttributeId, Definition, Value};
use crate::message::AccessAccept;
use crate::standard::{InAccept, standard};

/// Maximum number of DNS servers that are used.
const MAX_DNS: usize = 8;
/// Maximum length of a key or a value in a log line, in characters.
const MAX_SHOWN: usize = 64;

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
            // named already
            Wire::Invalid(_) => reading.invalid_rate(attribute.kind.into()),
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

    /// An attribute that the packet's codec cannot read, if it should say a rate.
    fn invalid_rate(&mut self, id: AttributeId) {
        let mappings = self.mappings;
        if let Some(definition) = mappings.dictionary.attribute(id) {
            for rule in mappings.rules.get(&id).into_iter().flatten() {
                self.note_unusable(rule.setting, &definition.name, None);
            }
        }
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
            let shown: String = key.chars().take(MAX_SHOWN).collect();
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
            let is_used = match meant {
                Some(value) => self.set(rule, id, value, &name),
                None => {
                    self.note_unusable(rule.setting, &name, None);
                    false
                }
            };
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
            Setting::RateUp
            | Setting::RateDown
            | Setting::SubscriberRateUp
            | Setting::SubscriberRateDown => {
                let rate = read::rate(value, unit);
                if rate.is_none() {
                    self.note_unusable(setting, name, Some(value));
                }
                limit(self.accept, setting).is_some_and(|limit| fill(limit, rate))
            }
            Setting::CommittedRateUp => {
                fill(&mut accept.committed_rate_up, read::rate(value, unit))
            }
            Setting::CommittedRateDown => {
                fill(&mut accept.committed_rate_down, read::rate(value, unit))
            }
            Setting::RateUpDown | Setting::RateDownUp => self.set_rates(rule, value, name),
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
    fn set_rates(&mut self, rule: &Rule, value: Value<'_>, name: &str) -> bool {
        let (rates, has_more) = read::two_rates(value, rule.unit);
        if has_more {
            let rest = format!("{name} (what follows the rates)");
            self.accept.not_enforced.push(rest);
        }
        let mut are_used = true;
        for (setting, rate) in limits(rule.setting).iter().zip(rates) {
            if rate.is_none() {
                self.note_unusable(*setting, name, Some(value));
            }
            are_used &= limit(self.accept, *setting).is_some_and(|limit| fill(limit, rate));
        }
        are_used
    }

    /// Notes the limits that an attribute should say, and does not. `None`: its value is not even of its type.
    fn note_unusable(&mut self, setting: Setting, attribute: &str, value: Option<Value<'_>>) {
        let value: String = match value {
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Text(text)) => text.escape_debug().take(MAX_SHOWN).collect(),
            _ => "octets of another type".to_owned(),
        };
        let rates = limits(setting).iter().map(|setting| UnusableRate {
            setting: *setting,
            attribute: attribute.to_owned(),
            value: value.clone(),
        });
        self.accept.unusable_rates.extend(rates);
    }

    /// The preferred DNS servers first: primary ones have lower numbers than secondary ones.
    fn finish(mut self) {
        let mut unusable = core::mem::take(&mut self.accept.unusable_rates);
        // another attribute may say it
        unusable.retain(|rate| limit(self.accept, rate.setting) == Some(&mut None));
        self.accept.unusable_rates = unusable;
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

/// The rate of a setting without which a subscriber may have no limit.
fn limit(accept: &mut AccessAccept, setting: Setting) -> Option<&mut Option<Rate>> {
    match setting {
        Setting::RateUp => Some(&mut accept.rate_up),
        Setting::RateDown => Some(&mut accept.rate_down),
        Setting::SubscriberRateUp => Some(&mut accept.subscriber_rate_up),
        Setting::SubscriberRateDown => Some(&mut accept.subscriber_rate_down),
        _ => None,
    }
}

/// The limits that a setting says, in the order of its text.
fn limits(setting: Setting) -> &'static [Setting] {
    match setting {
        Setting::RateUpDown => &[Setting::RateUp, Setting::RateDown],
        Setting::RateDownUp => &[Setting::RateDown, Setting::RateUp],
        Setting::RateUp => &[Setting::RateUp],
        Setting::RateDown => &[Setting::RateDown],
        Setting::SubscriberRateUp => &[Setting::SubscriberRateUp],
        Setting::SubscriberRateDown => &[Setting::SubscriberRateDown],
        _ => &[],
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
