//! What subscribers get, and where their addresses come from.

use ipnet::{Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A subscriber group: its sessions share a virtual MAC address and nets of the pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubscriberGroup {
    /// The gateway's MAC address towards the group's subscribers; by default one made from the group's name. For those that
    /// dial in from then on: who is online knows the gateway by the one before.
    #[schemars(extend("x-format" = "mac", "x-example" = "02:53:00:00:00:01"))]
    pub virtual_mac: Option<String>,
}

/// What a subscriber gets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubscriberProfile {
    /// The network instance of its addresses. For those that dial in from then on.
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Where its IPv4 address comes from, the first one first; without any, every pool of the network instance. For those
    /// that dial in from then on.
    #[schemars(extend("x-reference" = "/ipv4-pools"))]
    pub ipv4_pools: Vec<String>,
    /// Where its IPv6 prefix comes from, the first one first; without any, every pool of the network instance. For those
    /// that dial in from then on.
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub ipv6_pools: Vec<String>,
    /// Name servers: the first two of IPv4 go into IPCP, those of IPv6 into Router Advertisements (RFC 8106).
    /// Who is online hears of others by the next Router Advertisement, and by IPCP when it dials in anew.
    #[schemars(extend("x-example" = "192.0.2.53"))]
    pub dns: Vec<IpAddr>,
    /// The largest IP packet that is sent to it, if its link agreed on no smaller one.
    #[schemars(range(min = 576, max = 9216), extend("x-unit" = "octets"))]
    pub mtu: u16,
    /// Priority (802.1p) in the VLAN tags of frames to the subscriber, control packets included.
    #[schemars(range(min = 0, max = 7))]
    pub vlan_priority: u8,
    /// The session ends when the subscriber has sent no packet for this time, or up to an eighth longer. Idle-Timeout of RADIUS
    /// comes before it. 0: never.
    #[schemars(extend("x-unit" = "seconds"))]
    pub idle_timeout: u32,
    /// Packets to the subscriber count against the idle timeout, too.
    pub idle_both_ways: bool,
    /// How long its session lasts where AAA does not say so; 0: for ever.
    #[schemars(extend("x-unit" = "seconds"))]
    pub session_timeout: u32,
}

impl Default for SubscriberProfile {
    fn default() -> Self {
        SubscriberProfile {
            network_instance: "default".into(),
            ipv4_pools: Vec::new(),
            ipv6_pools: Vec::new(),
            dns: Vec::new(),
            mtu: 1492,
            vlan_priority: 0,
            idle_timeout: 0,
            idle_both_ways: false,
            session_timeout: 0,
        }
    }
}

/// IPv4 addresses, handed to subscriber groups net by net.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ipv4Pool {
    /// The network instance of the addresses.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// All of them.
    #[schemars(with = "String", extend("x-format" = "ipv4-prefix", "x-example" = "100.64.0.0/16"))]
    pub prefix: Ipv4Net,
    /// The prefix length of the nets that it is cut into.
    #[serde(default = "ipv4_net_length")]
    #[schemars(range(min = 16, max = 30))]
    pub net_length: u8,
}

/// IPv6 prefixes of /64, handed to subscriber groups net by net.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ipv6Pool {
    /// The network instance of the prefixes.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// All of them.
    #[schemars(with = "String", extend("x-format" = "ipv6-prefix", "x-example" = "2001:db8:4000::/40"))]
    pub prefix: Ipv6Net,
    /// The prefix length of the nets that it is cut into.
    #[serde(default = "ipv6_net_length")]
    #[schemars(range(min = 48, max = 64))]
    pub net_length: u8,
}

fn default_instance() -> String {
    "default".into()
}
fn ipv4_net_length() -> u8 {
    24
}
fn ipv6_net_length() -> u8 {
    56
}
