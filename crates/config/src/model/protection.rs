//! Protection of the gateway itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rates of packets to the gateway itself. A user plane drops packets above a rate (`show drops`); `show protection` lists who exceeds one.
/// Each worker of a user plane counts separately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Protection {
    /// Rates of PPPoE discovery packets.
    pub discovery: DiscoveryRates,
    /// Time for which all discovery packets of a MAC address on its access line are dropped after it exceeded its rate.
    pub hold_down: HoldDown,
    /// Rates of control packets of sessions: PPP, neighbour discovery, DHCPv6 and PADT.
    pub session: SessionRates,
    /// Rates of LCP echo packets of sessions.
    pub echo: EchoRates,
    /// Rates of packets from subscribers that a rule redirects (`portal` of a policy). User planes of before know nothing of them.
    #[serde(skip_serializing_if = "RedirectRates::is_default")]
    pub redirect: RedirectRates,
    /// Rates of IP packets from subscribers to the gateway's own addresses.
    pub local: LocalRates,
    /// Rates of ARP and neighbour discovery on core ports.
    pub resolution: ResolutionRates,
    /// Rates of routing protocols on core ports: BGP, OSPF, IS-IS, BFD, LDP, PIM, RIP.
    pub routing: RoutingRates,
    /// Rates of other multicast and broadcast packets on core ports.
    pub multicast: MulticastRates,
    /// Rates of other packets to the gateway's own addresses on core ports.
    pub for_us: ForUsRates,
}

/// Rates of PPPoE discovery packets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DiscoveryRates {
    /// Rate of each MAC address on an access line. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub mac: u32,
    /// Rate of each access line, which is known by both VLAN ids, or else by circuit and remote id. Frames with neither have no rate of a
    /// line. Increase it where many subscribers share both VLAN ids. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub line: u32,
    /// Rate of each outer VLAN of a port. The untagged frames of a port count as one VLAN. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub vlan: u32,
    /// Rate of each port. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub port: u32,
    /// Rate of all ports together.
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

/// Rates of control packets of sessions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SessionRates {
    /// Rate of each session. Its LCP echoes have the same rate of their own.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub session: u32,
    /// Rate of all sessions together.
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

/// Rates of LCP echo packets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EchoRates {
    /// Rate of all sessions together.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub total: u32,
}

impl Default for EchoRates {
    fn default() -> Self {
        EchoRates { total: 50_000 }
    }
}

/// Rates of packets that a rule redirects. A home whose devices look for the internet sends ten for each connection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RedirectRates {
    /// Rate of each MAC address on an access line. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub mac: u32,
    /// Rate of each access line, which is known by both VLAN ids. Frames with fewer have no rate of a line. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub line: u32,
    /// Rate of each access port. 0: unlimited.
    #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub port: u32,
    /// Rate of all ports together.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-unit" = "packets per second"))]
    pub total: u32,
}

impl RedirectRates {
    fn is_default(&self) -> bool {
        *self == RedirectRates::default()
    }
}

impl Default for RedirectRates {
    fn default() -> Self {
        RedirectRates {
            mac: 100,
            line: 200,
            port: 8_000,
            total: 10_000,
        }
    }
}

/// Rates by MAC address and port. Each kind of packet has its own defaults.
macro_rules! port_rates {
    ($($(#[doc = $doc:literal])+ $name:ident {
        $(#[doc = $of_mac:literal])+ mac: $mac:literal,
        $(#[doc = $of_port:literal])+ port: $port:literal,
        total: $total:literal
    })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        pub struct $name {
            $(#[doc = $of_mac])+
            #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
            pub mac: u32,
            $(#[doc = $of_port])+
            #[schemars(range(max = 10_000_000), extend("x-unit" = "packets per second"))]
            pub port: u32,
            /// Rate of all ports together.
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
    /// Rates of IP packets from subscribers to the gateway's own addresses.
    LocalRates {
        /// Rate of each MAC address on an access line. 0: unlimited.
        mac: 100,
        /// Rate of each access port. 0: unlimited.
        port: 15_000,
        total: 20_000
    }
    /// Rates of ARP and neighbour discovery.
    ResolutionRates {
        /// Rate of each MAC address on the link of a core port. 0: unlimited.
        mac: 2_000,
        /// Rate of each core port or sub-interface. 0: unlimited.
        port: 8_000,
        total: 10_000
    }
    /// Rates of routing protocols.
    RoutingRates {
        /// Rate of each MAC address on the link of a core port. 0: unlimited.
        mac: 20_000,
        /// Rate of each core port or sub-interface. 0: unlimited.
        port: 40_000,
        total: 50_000
    }
    /// Rates of other multicast and broadcast packets.
    MulticastRates {
        /// Rate of each MAC address on the link of a core port. 0: unlimited.
        mac: 500,
        /// Rate of each core port or sub-interface. 0: unlimited.
        port: 1_500,
        total: 2_000
    }
    /// Rates of other packets to the gateway's own addresses.
    ForUsRates {
        /// Rate of each MAC address on the link of a core port. 0: unlimited.
        mac: 10_000,
        /// Rate of each core port or sub-interface. 0: unlimited.
        port: 15_000,
        total: 20_000
    }
}

/// Time for which all discovery packets of a MAC address on its access line are dropped after it exceeded its rate. The line must be known
/// by circuit or remote id, or by both VLAN ids.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HoldDown {
    /// Number of packets above the rate after which the MAC address is held down. 0: never.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "packets"))]
    pub after: u32,
    /// Time of the first hold-down. Each further one is twice as long, until the MAC address has been quiet for a minute.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub first: u32,
    /// Longest hold-down; at least `first`.
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
    /// Whether all rates are the defaults.
    pub fn is_default(&self) -> bool {
        *self == Protection::default()
    }
}
