//! The model: every setting that takes effect at run time, with what it means. What is declared here is the file format, the
//! JSON Schema, the command line's completion and the reference manual.
//!
//! What a daemon has to know before it can be told anything (where its sockets and its store are) is in [`crate::start`].

mod aaa;
mod access;
mod subscriber;
mod user_plane;

pub use aaa::{Aaa, Server, ServerGroup, User};
pub use access::{AccessProfile, Authentication};
pub use subscriber::{Ipv4Pool, Ipv6Pool, SubscriberGroup, SubscriberProfile};
pub use user_plane::{
    AdminState, DeviceDocument, Port, PortRole, Segment, Subinterface, UserPlane, UserPlaneDocument,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The configuration of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Configuration {
    /// What the daemons write to their logs.
    pub logging: Logging,
    /// Bounds of what subscribers can make the control plane hold.
    pub limits: Limits,
    /// What is kept of what happened.
    pub history: History,
    /// Network instances (VRFs): routing tables with addresses of their own.
    #[schemars(extend("x-key" = "the network instance's name, as routing and RADIUS name it"))]
    pub network_instances: BTreeMap<String, NetworkInstance>,
    /// The user planes that forward for this control plane.
    #[schemars(extend("x-key" = "the user plane's PFCP Node ID: a host name"))]
    pub user_planes: BTreeMap<String, UserPlane>,
    /// Subscriber groups: what moves between user planes as a whole. A port that names none has one of its own.
    #[schemars(extend("x-key" = "the group's name"))]
    pub subscriber_groups: BTreeMap<String, SubscriberGroup>,
    /// How subscribers are met on access segments.
    #[schemars(extend("x-key" = "the profile's name"))]
    pub access_profiles: BTreeMap<String, AccessProfile>,
    /// What subscribers get.
    #[schemars(extend("x-key" = "the profile's name, as RADIUS and users name it"))]
    pub subscriber_profiles: BTreeMap<String, SubscriberProfile>,
    /// IPv4 addresses for subscribers.
    #[schemars(extend("x-key" = "the pool's name"))]
    pub ipv4_pools: BTreeMap<String, Ipv4Pool>,
    /// IPv6 prefixes for subscribers.
    #[schemars(extend("x-key" = "the pool's name"))]
    pub ipv6_pools: BTreeMap<String, Ipv6Pool>,
    /// Authentication, authorization and accounting by RADIUS (RFC 2865, RFC 2866).
    pub aaa: Aaa,
    /// Subscribers that are known without asking a server.
    #[schemars(extend("x-key" = "the name that the subscriber gives"))]
    pub users: BTreeMap<String, User>,
}

/// What the daemons write to their logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Logging {
    /// The least severe messages that are written, by the control plane and by all user planes.
    pub level: Level,
}

/// How severe a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// What has failed.
    Error,
    /// And what may lead to a failure.
    Warn,
    /// And what happens to subscribers, user planes and servers.
    #[default]
    Info,
    /// And why packets of control protocols are refused.
    Debug,
    /// And everything else.
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

/// Bounds of what subscribers can make the control plane hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// The most sessions, half-open ones among them. When it is reached, who dials in is refused.
    #[schemars(range(min = 1, max = 1_048_576), extend("x-unit" = "sessions"))]
    pub sessions: u32,
    /// The most sessions that are not online yet; beyond it the oldest of them gives way.
    #[schemars(range(min = 1, max = 1_048_576), extend("x-unit" = "sessions"))]
    pub half_open: u32,
    /// The most accounting records that may wait for a RADIUS server, each of about 1 kB; beyond it they are lost.
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

/// What is kept of what happened to subscribers and to the system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct History {
    /// How long events are kept. What is older goes within a day, or an eighth of this if that is less.
    #[schemars(range(min = 1, max = 3_650), extend("x-unit" = "days"))]
    pub keep: u16,
    /// The most room for them on the control plane's disk; beyond it the oldest go before their time. A session that
    /// comes and goes takes about 270 octets.
    #[schemars(range(min = 16, max = 1_048_576), extend("x-unit" = "MiB"))]
    pub size: u32,
}

impl Default for History {
    fn default() -> Self {
        History {
            keep: 90,
            size: 1_024,
        }
    }
}

/// A network instance (VRF).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NetworkInstance {
    /// The gateway's own addresses towards subscribers: the first one of IPv4 is the far end of the PPP links
    /// (IPCP) of those that dial in from then on. Nobody gets one of them out of a pool.
    #[schemars(extend("x-example" = "100.64.0.1"))]
    pub gateway: Vec<IpAddr>,
    /// The kernel interface through which a user plane's kernel reaches the instance's subscribers; by default `sl-` and
    /// the instance's name.
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
