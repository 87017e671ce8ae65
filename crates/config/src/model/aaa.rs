//! Who knows the subscribers.

use crate::Secret;
use ipnet::Ipv6Net;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// RADIUS servers, and the groups in which they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Aaa {
    /// RADIUS servers.
    #[schemars(extend("x-key" = "the server's name"))]
    pub servers: BTreeMap<String, Server>,
    /// Servers that know the same subscribers. Accounting records for a group that is deleted are kept until there is one of
    /// its name again.
    #[schemars(extend("x-key" = "the group's name"))]
    pub server_groups: BTreeMap<String, ServerGroup>,
}

/// A RADIUS server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Server {
    /// Its address.
    #[schemars(extend("x-example" = "192.0.2.9"))]
    pub address: IpAddr,
    /// The secret that it shares with us.
    #[schemars(with = "String", extend("x-secret" = true))]
    pub secret_key: Secret,
    /// Its UDP port for authentication.
    #[serde(default = "auth_port")]
    #[schemars(range(min = 1))]
    pub auth_port: u16,
    /// Its UDP port for accounting.
    #[serde(default = "acct_port")]
    #[schemars(range(min = 1))]
    pub acct_port: u16,
    /// How long an answer is waited for before the request is sent again, the first time.
    #[serde(default = "timeout")]
    #[schemars(range(min = 1, max = 60), extend("x-unit" = "seconds"))]
    pub timeout: u16,
    /// How often a request is sent again before the next server is asked.
    #[serde(default = "retransmit_attempts")]
    #[schemars(range(max = 10))]
    pub retransmit_attempts: u8,
    /// How long a server that answered nothing is passed over, as long as another one is left to ask.
    #[serde(default = "dead_time")]
    #[schemars(range(max = 3600), extend("x-unit" = "seconds"))]
    pub dead_time: u16,
    /// Whether an answer without Message-Authenticator is refused: one without it can be forged (RFC 3579 §3.2).
    #[serde(default = "yes")]
    pub require_message_authenticator: bool,
}

fn auth_port() -> u16 {
    1812
}
fn acct_port() -> u16 {
    1813
}
fn timeout() -> u16 {
    2
}
fn retransmit_attempts() -> u8 {
    2
}
fn dead_time() -> u16 {
    60
}
fn yes() -> bool {
    true
}

/// Servers that know the same subscribers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServerGroup {
    /// The servers, asked in this order.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/aaa/servers"))]
    pub servers: Vec<String>,
    /// What we call ourselves (NAS-Identifier, RFC 2865 §5.32); by default the control plane's node id.
    #[serde(default)]
    pub nas_identifier: Option<String>,
    /// Between interim accounting records where the server sends no Acct-Interim-Interval; 0: none.
    #[serde(default = "interim_interval")]
    #[schemars(extend("x-unit" = "seconds"))]
    pub interim_interval: u32,
}

fn interim_interval() -> u32 {
    300
}

/// A subscriber that is known without asking a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct User {
    /// What it proves itself with.
    #[schemars(with = "String", extend("x-secret" = true))]
    pub password: Secret,
    /// What it gets; by default what the access profile says.
    #[serde(default)]
    #[schemars(extend("x-reference" = "/subscriber-profiles"))]
    pub subscriber_profile: Option<String>,
    /// Always this address.
    #[serde(default)]
    #[schemars(extend("x-example" = "100.64.9.1"))]
    pub ipv4_address: Option<Ipv4Addr>,
    /// Always this prefix on its link, a /64.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("x-format" = "ipv6-prefix", "x-example" = "2001:db8:9:1::/64"))]
    pub ipv6_prefix: Option<Ipv6Net>,
}
