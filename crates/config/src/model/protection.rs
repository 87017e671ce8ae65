//! Protection of the gateway itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rates at which a user plane passes on packets that are for the gateway itself. The excess is dropped (`show drops`); who exceeds a rate
/// is in `show protection`. Each worker of a user plane counts for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Protection {
    /// PPPoE discovery, by which sessions begin.
    pub discovery: DiscoveryRates,
    /// When discovery of a MAC address on its access line is not answered at all for a while.
    pub hold_down: HoldDown,
    /// PPP control packets, neighbour discovery and DHCPv6 of sessions, and PADT.
    pub session: SessionRates,
    /// LCP echoes of sessions.
    pub echo: EchoRates,
    /// IP packets from subscribers to the gateway's own addresses.
    pub local: LocalRates,
    /// ARP and neighbour discovery on core ports.
    pub resolution: ResolutionRates,
    /// Routing protocols on core ports: BGP, OSPF, IS-IS, BFD, LDP, PIM, RIP.
    pub routing: RoutingRates,
    /// Other packets to groups on core ports.
    pub multicast: MulticastRates,
    /// Other packets to the gateway's own addresses on core ports.
    pub for_us: ForUsRates,
}

/// Rates of PPPoE discovery.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DiscoveryRates {
    /// Of a MAC address on an access line. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub mac: u32,
    /// Of an access line: circuit and remote id of the access node, or else both VLAN ids. Where there is neither, the line has no rate.
    /// Choose more where many subscribers share both VLAN ids. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub line: u32,
    /// Of an outer VLAN of a port, or of the untagged frames of a port. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub vlan: u32,
    /// Of a port. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub port: u32,
    /// Of all ports together.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub total: u32,
}

impl Default for DiscoveryRates {
    fn default() -> Self {
        DiscoveryRates {
            mac: 10,
            line: 20,
            vlan: 5_000,
            port: 15_000,
            total: 20_000,
        }
    }
}

/// Rates of what sessions say.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SessionRates {
    /// Of one session, its LCP echoes included.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub session: u32,
    /// Of all sessions together.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub total: u32,
}

impl Default for SessionRates {
    fn default() -> Self {
        SessionRates {
            session: 50,
            total: 100_000,
        }
    }
}

/// Rates of LCP echoes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EchoRates {
    /// Of all sessions together.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub total: u32,
}

impl Default for EchoRates {
    fn default() -> Self {
        EchoRates { total: 50_000 }
    }
}

/// Rates of senders and ports, each with defaults of its own.
macro_rules! port_rates {
    ($($(#[doc = $doc:literal])+ $name:ident { mac: $mac:literal, port: $port:literal, total: $total:literal })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $name {
            /// Of a MAC address on an access line, or on the link of a core port. 0: unlimited.
            #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
            pub mac: u32,
            /// Of a port or sub-interface. 0: unlimited.
            #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
            pub port: u32,
            /// Of all ports together.
            #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
            pub total: u32,
        }

        impl Default for $name {
            fn default() -> Self {
                $name { mac: $mac, port: $port, total: $total }
            }
        }
    )+};
}

port_rates! {
    /// Rates of packets from subscribers to the gateway.
    LocalRates { mac: 100, port: 15_000, total: 20_000 }
    /// Rates of address resolution.
    ResolutionRates { mac: 2_000, port: 8_000, total: 10_000 }
    /// Rates of routing protocols.
    RoutingRates { mac: 20_000, port: 40_000, total: 50_000 }
    /// Rates of other packets to groups.
    MulticastRates { mac: 500, port: 1_500, total: 2_000 }
    /// Rates of other packets to the gateway.
    ForUsRates { mac: 10_000, port: 15_000, total: 20_000 }
}

/// When discovery of a MAC address on its access line is not answered at all for a while. Only lines that are known have it: by circuit or
/// remote id, or by both VLAN ids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HoldDown {
    /// Packets above the rate of the MAC address on its access line after which it is held down. The line must be known by circuit or
    /// remote id, or by both VLAN ids. 0: never.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "packets"))]
    pub after: u32,
    /// Time of the first hold-down. Each further one is twice as long, until the MAC address was quiet for a minute.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub first: u32,
    /// Longest time; at least `first`.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub longest: u32,
}

impl Default for HoldDown {
    fn default() -> Self {
        HoldDown {
            after: 100,
            first: 10,
            longest: 300,
        }
    }
}

impl Protection {
    /// Whether nothing differs from what user planes do by themselves.
    pub fn is_default(&self) -> bool {
        *self == Protection::default()
    }
}
