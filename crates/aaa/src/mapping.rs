//! Mappings: which attribute of which vendor sets which setting of a subscriber, and in which unit.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use wire::radius::Kind;

use crate::dictionary::{AttributeId, DataType, Definition, Dictionary};

mod apply;
mod shipped;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use apply::apply;

/// Setting of a subscriber that an attribute can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Rate from the subscriber.
    RateUp,
    /// Rate to the subscriber.
    RateDown,
    /// Committed rate from the subscriber.
    CommittedRateUp,
    /// Committed rate to the subscriber.
    CommittedRateDown,
    /// Rate from all sessions of the subscriber together.
    SubscriberRateUp,
    /// Rate to all sessions of the subscriber together.
    SubscriberRateDown,
    /// Text of two rates, `UP/DOWN`. One rate alone is both.
    RateUpDown,
    /// Text of two rates, `DOWN/UP`. One rate alone is both.
    RateDownUp,
    /// DNS servers: an address, or a text of addresses. The attribute with the lower number has the preferred ones.
    Dns,
    /// Name of the subscriber profile.
    Profile,
    /// Name of the IPv4 pool.
    Ipv4Pool,
    /// Name of the IPv6 prefix pool.
    Ipv6Pool,
    /// Priority in VLAN tags, 0 to 7.
    VlanPriority,
    /// Largest IP packet to the subscriber, 576 to 9,216 octets.
    Mtu,
    /// Maximum duration of the session.
    SessionTimeout,
    /// Time after which an idle session ends.
    IdleTimeout,
    /// Network behind the subscriber.
    Route,
    /// Name of the policy of packets from the subscriber.
    PolicyUp,
    /// Name of the policy of packets to the subscriber.
    PolicyDown,
    /// No setting: the attribute is accepted and has no effect.
    Nothing,
}

/// A rate that an attribute should say and does not: zero, too large, or no rate at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableRate {
    /// The rate: [`Setting::RateUp`], [`Setting::RateDown`], [`Setting::SubscriberRateUp`] or [`Setting::SubscriberRateDown`].
    pub setting: Setting,
    /// Name of the attribute.
    pub attribute: String,
    /// Its value, for people.
    pub value: String,
}

/// Unit of a rate or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 1 bit/s.
    BitPerSecond,
    /// 1,000 bit/s.
    KbitPerSecond,
    /// 1,000,000 bit/s.
    MbitPerSecond,
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
}

/// Mapping of an attribute to a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeMapping {
    /// Name of the attribute in a dictionary.
    pub attribute: String,
    /// Word before `=` in the attribute's text: only such values are meant. Without the word, and with it if no other mapping has it:
    /// `None`.
    pub key: Option<String>,
    /// The setting.
    pub setting: Setting,
    /// Unit of the attribute's number. Rates need one; the default of times is [`Unit::Second`].
    pub unit: Option<Unit>,
}

/// Why a mapping is refused. The text names the attribute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// No dictionary has the attribute.
    #[error(
        "no dictionary has the attribute `{0}`: expected a name of the shipped dictionary, or of a file in `dictionaries` of the \
         control plane's start file"
    )]
    UnknownAttribute(String),
    /// The attribute is no attribute of a packet.
    #[error(
        "`{0}` is part of another attribute, or internal to a RADIUS server: expected an attribute that a packet carries"
    )]
    NotInPackets(String),
    /// The attribute is encrypted.
    #[error("`{0}` is encrypted: expected an attribute that can be read")]
    Encrypted(String),
    /// The setting cannot be read from the attribute's type.
    #[error("the setting cannot be read from `{0}`: expected an attribute of another type")]
    WrongType(String),
    /// A key needs a text.
    #[error("`{0}` is no text: expected no `key`")]
    KeyWithoutText(String),
    /// The unit does not fit the setting.
    #[error("expected {0}")]
    WrongUnit(&'static str),
    /// Another mapping maps the attribute to the same setting.
    #[error("`{0}` is mapped to this setting twice: expected one mapping")]
    Twice(String),
}

/// One setting of a mapped attribute.
#[derive(Clone, Debug)]
struct Rule {
    key: Option<String>,
    setting: Setting,
    unit: Unit,
}

/// Rules of each mapped attribute.
type Rules = HashMap<AttributeId, Vec<Rule>>;

/// All mappings, and the dictionary that knows the attributes.
pub struct Mappings {
    dictionary: Arc<Dictionary>,
    rules: Rules,
}

impl fmt::Debug for Mappings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mappings({} attributes)", self.rules.len())
    }
}

impl Mappings {
    /// The shipped mappings with the shipped dictionary.
    pub fn shipped() -> Arc<Mappings> {
        static MAPPINGS: LazyLock<Arc<Mappings>> = LazyLock::new(|| {
            let mappings = Mappings::new(Dictionary::shipped(), &[]);
            Arc::new(mappings.expect("no mapping of an operator is wrong"))
        });
        MAPPINGS.clone()
    }

    /// The shipped mappings and an operator's. An operator's mapping replaces the shipped ones of the same attribute and key.
    ///
    /// # Errors
    /// What is wrong with an operator's mappings, each with its position.
    pub fn new(
        dictionary: Arc<Dictionary>,
        operator: &[AttributeMapping],
    ) -> Result<Mappings, Vec<(usize, MappingError)>> {
        let mut rules = Rules::new();
        for mapping in shipped::mappings() {
            let added = add(&Dictionary::shipped(), &mapping, &mut rules);
            debug_assert_eq!(added, Ok(()), "{mapping:?}");
        }
        let (mut own, mut errors) = (Rules::new(), Vec::new());
        for (position, mapping) in operator.iter().enumerate() {
            if let Err(error) = add(&dictionary, mapping, &mut own) {
                errors.push((position, error));
            }
        }
        for (id, own) in own {
            let all = rules.entry(id).or_default();
            all.retain(|shipped| own.iter().all(|rule| rule.key != shipped.key));
            all.extend(own);
        }
        match errors.is_empty() {
            true => Ok(Mappings { dictionary, rules }),
            false => Err(errors),
        }
    }

    /// Whether a mapping says what the attribute means, in place of its standard meaning.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.rules.contains_key(&AttributeId::from(kind))
    }
}

impl From<Kind> for AttributeId {
    fn from(kind: Kind) -> Self {
        AttributeId {
            vendor: kind.vendor,
            number: kind.number.into(),
        }
    }
}

/// Checks a mapping and adds it.
fn add(
    dictionary: &Dictionary,
    mapping: &AttributeMapping,
    rules: &mut Rules,
) -> Result<(), MappingError> {
    let name = || mapping.attribute.clone();
    let definition = dictionary
        .find(&mapping.attribute)
        .ok_or_else(|| MappingError::UnknownAttribute(name()))?;
    let id = definition
        .id
        .ok_or_else(|| MappingError::NotInPackets(name()))?;
    if definition.encrypted {
        return Err(MappingError::Encrypted(name()));
    }
    if mapping.key.is_some() && definition.data_type != DataType::Text {
        return Err(MappingError::KeyWithoutText(name()));
    }
    if !mapping.setting.is_readable(definition) {
        return Err(MappingError::WrongType(name()));
    }
    let unit = mapping.setting.unit(mapping.unit)?;
    let found = rules.entry(id).or_default();
    let is_same = |rule: &Rule| rule.key == mapping.key && rule.setting == mapping.setting;
    if found.iter().any(is_same) {
        return Err(MappingError::Twice(name()));
    }
    found.push(Rule {
        key: mapping.key.clone(),
        setting: mapping.setting,
        unit,
    });
    Ok(())
}

impl Setting {
    /// Whether the setting can be read from values of the attribute.
    fn is_readable(self, definition: &Definition) -> bool {
        let data_type = definition.data_type;
        let is_text = data_type == DataType::Text;
        match self {
            Setting::Nothing => true,
            Setting::RateUpDown
            | Setting::RateDownUp
            | Setting::Profile
            | Setting::PolicyUp
            | Setting::PolicyDown
            | Setting::Ipv4Pool
            | Setting::Ipv6Pool => is_text,
            Setting::Dns => {
                is_text || matches!(data_type, DataType::Ipv4 | DataType::Ipv6 | DataType::Ip)
            }
            Setting::Route => {
                is_text || matches!(data_type, DataType::Ipv4Prefix | DataType::Ipv6Prefix)
            }
            Setting::RateUp
            | Setting::RateDown
            | Setting::CommittedRateUp
            | Setting::CommittedRateDown
            | Setting::SubscriberRateUp
            | Setting::SubscriberRateDown
            | Setting::VlanPriority
            | Setting::Mtu
            | Setting::SessionTimeout
            | Setting::IdleTimeout => is_text || matches!(data_type, DataType::Number(_)),
        }
    }

    /// The unit of a mapping. Settings without a unit have one that is not used.
    fn unit(self, unit: Option<Unit>) -> Result<Unit, MappingError> {
        use Unit::{BitPerSecond, KbitPerSecond, MbitPerSecond, Minute, Second};
        match self {
            Setting::RateUp
            | Setting::RateDown
            | Setting::CommittedRateUp
            | Setting::CommittedRateDown
            | Setting::SubscriberRateUp
            | Setting::SubscriberRateDown
            | Setting::RateUpDown
            | Setting::RateDownUp => unit
                .filter(|unit| [BitPerSecond, KbitPerSecond, MbitPerSecond].contains(unit))
                .ok_or(MappingError::WrongUnit(
                    "a `unit` of the rate: bit/s, kbit/s or Mbit/s",
                )),
            Setting::SessionTimeout | Setting::IdleTimeout => Some(unit.unwrap_or(Second))
                .filter(|unit| [Second, Minute].contains(unit))
                .ok_or(MappingError::WrongUnit(
                    "a `unit` of time, seconds or minutes",
                )),
            _ => match unit {
                None => Ok(Second),
                Some(_) => Err(MappingError::WrongUnit(
                    "no `unit`, because the setting has none",
                )),
            },
        }
    }
}
