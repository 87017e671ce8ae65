//! The model: every setting that takes effect at run time, with what it means. What is declared here is the file format, the
//! JSON Schema, the command line's completion and the reference manual.
//!
//! What a daemon has to know before it can be told anything (where its sockets and its store are) is in [`crate::start`].

mod aaa;
mod access;
mod mapping;
mod policies;
mod pools;
mod protection;
mod subscriber;
mod user_plane;

pub use aaa::{
    Aaa, DynamicAuthorization, DynamicClient, FamilyCounters, Selection, Server, ServerGroup,
    Templates, Tls, Transport, User,
};
pub use access::{
    AccessProfile, Authentication, Fallback, LockOut, RouterAdvertisements, SetupBackOff,
    SubscriberIdentity,
};
pub use mapping::{MappedSetting, MappedUnit, Mapping, NotEnforced};
pub use policies::{
    AboveRate, Acl, Acls, Algorithm, Aqm, MOST_ACL_RULES, MOST_ACLS, MOST_CLASSES,
    MOST_POLICY_RULES, Overhead, Policer, Queue, TrafficClass, TrafficPolicy,
    UndeterminedTransport, Unmatched, share_acls,
};
pub use pools::{Ipv4Pool, Ipv6Pool, MOST_BLOCK_BITS, MOST_UNIT_BITS};
pub use protection::{
    DiscoveryRates, EchoRates, ForUsRates, HoldDown, LocalRates, MulticastRates, Protection,
    ResolutionRates, RoutingRates, SessionRates,
};
pub use subscriber::{AddressFamilies, SubscriberGroup, SubscriberProfile};
pub use user_plane::{
    AdminState, DeviceDocument, Ipv4Options, Lacp, LacpRate, Lag, MOST_LAG_MEMBERS, Port, PortRole,
    PrioritySource, Segment, SourceCheck, Subinterface, UserPlane, UserPlaneDocument,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The configuration of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Configuration {
    /// Logs of the daemons.
    pub logging: Logging,
    /// Limits that protect the control plane from too many sessions.
    pub limits: Limits,
    /// Protection of the gateway itself against floods.
    pub protection: Protection,
    /// History of subscriber and system events.
    pub history: History,
    /// Network instances (VRFs). Each has its own routing table and its own address space.
    #[schemars(extend("x-key" = "the network instance's name, as routing and RADIUS name it"))]
    pub network_instances: BTreeMap<String, NetworkInstance>,
    /// User planes that this control plane controls.
    #[schemars(extend("x-key" = "the user plane's PFCP Node ID: a host name"))]
    pub user_planes: BTreeMap<String, UserPlane>,
    /// Subscriber groups. The sessions of a group share a virtual MAC address and prefix blocks. A port that names no group has
    /// its own.
    #[schemars(extend("x-key" = "the group's name"))]
    pub subscriber_groups: BTreeMap<String, SubscriberGroup>,
    /// Access profiles: PPPoE, PPP and authentication settings of access segments.
    #[schemars(extend("x-key" = "the profile's name"))]
    pub access_profiles: BTreeMap<String, AccessProfile>,
    /// Subscriber profiles: addresses, forwarding settings and time-outs of subscribers' sessions.
    #[schemars(extend("x-key" = "the profile's name, as RADIUS and users name it"))]
    pub subscriber_profiles: BTreeMap<String, SubscriberProfile>,
    /// Pools of IPv4 addresses for subscribers.
    #[schemars(extend("x-key" = "the pool's name"))]
    pub ipv4_pools: BTreeMap<String, Ipv4Pool>,
    /// Pools of IPv6 prefixes and IPv6 addresses for subscribers.
    #[schemars(extend("x-key" = "the pool's name"))]
    pub ipv6_pools: BTreeMap<String, Ipv6Pool>,
    /// Access control lists: at most 256. Policies name them.
    #[serde(with = "policies::shared")]
    #[schemars(with = "BTreeMap<String, Acl>", extend("x-key" = "the ACL's name"))]
    pub acls: Acls,
    /// Policers: rates of sessions in colours. Policies name them.
    #[schemars(extend("x-key" = "the policer's name"))]
    pub policers: BTreeMap<String, Policer>,
    /// Policies: what happens to the packets of one direction. Subscriber profiles, users and RADIUS name them.
    #[schemars(extend("x-key" = "the policy's name"))]
    pub policies: BTreeMap<String, TrafficPolicy>,
    /// Authentication, authorization and accounting by RADIUS (RFC 2865, RFC 2866).
    pub aaa: Aaa,
    /// Local users. A segment whose access profile names no server group authenticates its subscribers with these entries; one with
    /// `fallback: local-users` does so while no RADIUS server answers.
    #[schemars(extend("x-key" = "the user name that the subscriber sends"))]
    pub users: BTreeMap<String, User>,
}

/// Logs of the daemons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Logging {
    /// Least severe level that the control plane and all user planes log. A daemon writes at most 100 lines a second from each place in
    /// its code; the next one says how many were left out (`left_out`). Lines that nobody takes from its standard error in time are missing as
    /// well, and the next one says how many. The environment variable `SLUICE_LOG` overrides the level.
    pub level: Level,
}

/// Severity of a log message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Failures.
    Error,
    /// In addition, conditions that may lead to a failure.
    Warn,
    /// In addition, events of subscribers, user planes and servers.
    #[default]
    Info,
    /// In addition, the reason for each rejected control packet.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

/// Limits that protect the control plane from too many sessions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum number of sessions, including half-open ones. At the limit, the gateway rejects new sessions.
    #[schemars(range(min = 1, max = 1_048_576), extend("x-unit" = "sessions"))]
    pub sessions: u32,
    /// Maximum number of half-open sessions, which are not online yet. At the limit, a new session ends the oldest one whose subscriber
    /// has not authenticated within 2 seconds; without one, the gateway does not answer discovery packets.
    #[schemars(range(min = 1, max = 1_048_576), extend("x-unit" = "sessions"))]
    pub half_open: u32,
    /// Maximum number of accounting records that wait for a RADIUS server, about 1 kB each. At the limit, new records are lost.
    #[schemars(range(min = 1, max = 16_777_216), extend("x-unit" = "records"))]
    pub accounting_records: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 131_072,
            half_open: 8_192,
            accounting_records: 131_072,
        }
    }
}

/// History of subscriber and system events.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct History {
    /// Time for which events are kept. Older events are deleted within a day, or within an eighth of this time if that is less.
    #[schemars(range(min = 1, max = 3_650), extend("x-unit" = "days"))]
    pub keep: u16,
    /// Maximum size of the events on the control plane's disk. Above it, the oldest ones are deleted early. The events of one session
    /// take about 760 octets.
    #[schemars(range(min = 16, max = 1_048_576), extend("x-unit" = "MiB"))]
    pub size: u32,
}

impl Default for History {
    fn default() -> Self {
        History {
            keep: 90,
            size: 3_072,
        }
    }
}

/// A network instance (VRF).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NetworkInstance {
    /// The gateway's own addresses towards subscribers. The first IPv4 address is the gateway's address in IPCP; a change
    /// applies to new sessions. Pools never allocate these addresses.
    #[schemars(extend("x-example" = "100.64.0.1"))]
    pub gateway: Vec<IpAddr>,
    /// Kernel interface (TUN) through which a user plane's kernel reaches the instance's subscribers. Default: `sl-` and the
    /// instance's name.
    #[schemars(extend("x-format" = "interface", "x-example" = "sl-default"))]
    pub interface: Option<String>,
}

impl NetworkInstance {
    /// The gateway's IPv4 address for IPCP.
    pub fn gateway_ipv4(&self) -> Option<std::net::Ipv4Addr> {
        self.gateway.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }
}
