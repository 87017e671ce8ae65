//! Subscriber groups and subscriber profiles.

use super::user_plane::PrioritySource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Subscriber group. Its sessions share a virtual MAC address and prefix blocks of the pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubscriberGroup {
    /// Gateway's MAC address towards the group's subscribers. Default: derived from the group's name. A change applies to new
    /// sessions, because online subscribers keep using the old address.
    #[schemars(extend("x-format" = "mac", "x-example" = "02:53:00:00:00:01"))]
    pub virtual_mac: Option<String>,
}

/// Subscriber profile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SubscriberProfile {
    /// Network instance of the subscriber's addresses. A change applies to new sessions.
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Address families that the subscriber gets. The gateway rejects the other one (Protocol-Reject), whatever RADIUS says of it. A change
    /// applies to new sessions.
    pub address_families: AddressFamilies,
    /// IPv4 pools in the order in which they are tried. Default: every pool of the network instance. A change applies to new
    /// sessions.
    #[schemars(extend("x-reference" = "/ipv4-pools"))]
    pub ipv4_pools: Vec<String>,
    /// IPv6 pools of the prefix of the link, in the order in which they are tried: pools of /64 prefixes. Default: every such pool of
    /// the network instance. A change applies to new sessions.
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub ipv6_pools: Vec<String>,
    /// IPv6 pools of the prefix that is delegated to the subscriber's router by DHCPv6 (IA_PD), in the order in which they are tried.
    /// Default: no prefix is delegated, unless RADIUS or `users` says so. A change applies to new sessions.
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub delegated_pools: Vec<String>,
    /// IPv6 pools of the address that the subscriber's router gets by DHCPv6 (IA_NA), in the order in which they are tried: pools of
    /// single addresses. Default: no such address, unless RADIUS or `users` says so. A change applies to new sessions.
    #[schemars(extend("x-reference" = "/ipv6-pools"))]
    pub ipv6_address_pools: Vec<String>,
    /// Whether a subscriber that connects again gets the addresses and prefixes of pools that it had before, as far as they are free.
    /// The gateway remembers as many subscribers as `limits sessions` says. A change applies to new sessions.
    pub sticky_addresses: bool,
    /// DNS servers. IPCP carries the first two IPv4 addresses (RFC 1877), Router Advertisements (RFC 8106) and DHCPv6 (RFC 3646) carry
    /// the IPv6 addresses. A change reaches online subscribers with the next Router Advertisement, and by DHCPv6 when they renew or
    /// are told to by Reconfigure; by IPCP it reaches them when they reconnect.
    #[schemars(extend("x-example" = "192.0.2.53"))]
    pub dns: Vec<IpAddr>,
    /// Largest IP packet that is sent to the subscriber. A smaller MRU that the subscriber negotiates takes precedence. Default: the MRU
    /// that the subscriber negotiates, 1492 or less without PPP-Max-Payload (RFC 4638).
    #[schemars(range(min = 576, max = 9216), extend("x-unit" = "octets"))]
    pub mtu: Option<u16>,
    /// Priority (IEEE 802.1p) in the VLAN tags of frames to the subscriber, including control packets.
    #[schemars(range(min = 0, max = 7))]
    pub vlan_priority: u8,
    /// Where the priority in the VLAN tags of IP packets to the subscriber comes from. Control packets always have `vlan-priority`.
    pub priority_source: PrioritySource,
    /// Time without packets from the subscriber after which the session ends, or up to an eighth longer. Idle-Timeout from RADIUS
    /// takes precedence. 0: no idle time-out.
    #[schemars(extend("x-unit" = "seconds"))]
    pub idle_timeout: u32,
    /// Whether packets to the subscriber also restart the idle time-out.
    pub idle_both_ways: bool,
    /// Rate of IP packets from the subscriber. Packets above it are dropped, after a burst of 100 ms of the rate or ten packets of
    /// 1,500 octets, whichever is more. 0: no limit.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub rate_up: u32,
    /// Rate of IP packets to the subscriber, with the same burst; or that of its queues, if `above-rate` of `policy-down` is `wait`. 0: no
    /// limit.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub rate_down: u32,
    /// Percentage of the actual data rate of the access line, as the access node says it (TR-101; `trust-line-tags`), above which `rate-down`
    /// has no effect. With queues, packets then wait here and not in the access node. What is less than 1 kbit/s counts as 1, and a line of which
    /// the access node says 0 as one of which it says nothing. 0: the line's rate does not count.
    #[schemars(range(min = 0, max = 200), extend("x-unit" = "percent"))]
    pub line_rate_percent: u8,
    /// Committed rate of IP packets from the subscriber, in place of that of the policer of `policy-up`, if this has two rates. It is not
    /// above the peak rate, which is `rate-up` if there is one. 0: the policer's own.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub committed_rate_up: u32,
    /// Committed rate of IP packets to the subscriber, in place of that of the policer of `policy-down`. With queues, what is below this rate
    /// comes before what is above those of other sessions. Not above `rate-down`, if there is one. 0: the policer's own; queues have none.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub committed_rate_down: u32,
    /// Rate of IP packets from all sessions of the subscriber together, beside the rates of each session. Packets above it are dropped
    /// (`subscriber-exceeded-up`), after a burst as with `rate-up`. If the subscriber's sessions have different ones, that of the session
    /// which was changed last counts. On a user plane with several workers, a subscriber that is known by its user name
    /// (`subscriber-identity`) has it once for each worker with sessions of its. 0: no limit.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub subscriber_rate_up: u32,
    /// Rate of IP packets to all sessions of the subscriber together (`subscriber-exceeded-down`). 0: no limit.
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-unit" = "kbit/s"))]
    pub subscriber_rate_down: u32,
    /// Policy of packets from the subscriber. RADIUS takes precedence (Filter-Id that ends in `.in`). Default: all of them pass.
    #[schemars(extend("x-reference" = "/policies"))]
    pub policy_up: Option<String>,
    /// Policy of packets to the subscriber. RADIUS takes precedence (Filter-Id that ends in `.out`). Default: all of them pass.
    #[schemars(extend("x-reference" = "/policies"))]
    pub policy_down: Option<String>,
    /// Maximum duration of a session if AAA sends no Session-Timeout. 0: unlimited.
    #[schemars(extend("x-unit" = "seconds"))]
    pub session_timeout: u32,
}

impl Default for SubscriberProfile {
    fn default() -> Self {
        SubscriberProfile {
            network_instance: "default".into(),
            address_families: AddressFamilies::DualStack,
            ipv4_pools: Vec::new(),
            ipv6_pools: Vec::new(),
            delegated_pools: Vec::new(),
            ipv6_address_pools: Vec::new(),
            sticky_addresses: true,
            dns: Vec::new(),
            mtu: None,
            vlan_priority: 0,
            priority_source: PrioritySource::Fixed,
            idle_timeout: 0,
            idle_both_ways: false,
            rate_up: 0,
            rate_down: 0,
            line_rate_percent: 0,
            committed_rate_up: 0,
            committed_rate_down: 0,
            subscriber_rate_up: 0,
            subscriber_rate_down: 0,
            policy_up: None,
            policy_down: None,
            session_timeout: 0,
        }
    }
}

/// Address families of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressFamilies {
    /// IPv4 and IPv6, as far as there are addresses.
    DualStack,
    /// IPv4 only.
    Ipv4Only,
    /// IPv6 only.
    Ipv6Only,
}

impl AddressFamilies {
    /// Whether IPv4 is one of them.
    pub fn has_ipv4(self) -> bool {
        self != AddressFamilies::Ipv6Only
    }

    /// Whether IPv6 is one of them.
    pub fn has_ipv6(self) -> bool {
        self != AddressFamilies::Ipv4Only
    }
}
