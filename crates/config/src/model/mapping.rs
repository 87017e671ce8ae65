//! Mappings of RADIUS attributes to settings of a subscriber.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Meaning of a RADIUS attribute for a subscriber. It replaces the shipped mapping, or the standard meaning, of the same attribute and
/// key. A change applies to answers that arrive after it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mapping {
    /// Name of the attribute in the shipped dictionary, or in a file of `dictionaries` in the control plane's start file.
    #[schemars(extend("x-example" = "Acme-Down"))]
    pub attribute: String,
    /// Word before `=` in the attribute's text: the mapping is for texts with this word, and reads what follows `=`. Default: for texts
    /// without a word that another mapping of the attribute has.
    #[serde(default)]
    #[schemars(extend("x-example" = "ip:addr-pool"))]
    pub key: Option<String>,
    /// Setting that the attribute sets.
    pub setting: MappedSetting,
    /// Unit of the attribute's number. Rates need one; the default of time-outs is `seconds`; other settings have none.
    #[serde(default)]
    pub unit: Option<MappedUnit>,
}

/// Setting of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MappedSetting {
    /// Rate from the subscriber, 8 kbit/s to 400 Gbit/s. Another rate is ignored and counted (`attribute-ignored`).
    RateUp,
    /// Rate to the subscriber, in the same range.
    RateDown,
    /// Committed rate from the subscriber, in the same range: that of the policer of its policy, if this has two rates.
    CommittedRateUp,
    /// Committed rate to the subscriber, in the same range.
    CommittedRateDown,
    /// Rate from all sessions of the subscriber together, in the same range.
    SubscriberRateUp,
    /// Rate to all sessions of the subscriber together, in the same range.
    SubscriberRateDown,
    /// Both rates in one text, `UP/DOWN`. The suffixes k, M and G mean kbit/s, Mbit/s and Gbit/s.
    RateUpDown,
    /// Both rates in one text, `DOWN/UP`.
    RateDownUp,
    /// DNS servers: an address, or a text of addresses.
    Dns,
    /// Name of the subscriber profile.
    Profile,
    /// Name of the IPv4 pool.
    Ipv4Pool,
    /// Name of the IPv6 pool.
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
    None,
}

/// Unit of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MappedUnit {
    /// 1 bit/s.
    #[serde(rename = "bit/s")]
    BitPerSecond,
    /// 1,000 bit/s.
    #[serde(rename = "kbit/s")]
    KbitPerSecond,
    /// 1,000,000 bit/s.
    #[serde(rename = "Mbit/s")]
    MbitPerSecond,
    /// Seconds.
    #[serde(rename = "seconds")]
    Second,
    /// Minutes.
    #[serde(rename = "minutes")]
    Minute,
}

/// What happens to an answer with an attribute that a dictionary knows and that has no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotEnforced {
    /// The subscriber is accepted. The attribute is logged and counted (`attribute-not-enforced`).
    #[default]
    Accept,
    /// The subscriber is rejected.
    Reject,
}
