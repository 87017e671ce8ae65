//! Address pools.

use crate::values::AddressRange;
use ipnet::{Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest span between a pool's prefix and a prefix block, in bits: there is room for blocks of addresses in a /64.
pub const MOST_BLOCK_BITS: u8 = 63;
/// Longest span between a prefix block and what one subscriber gets of it, in bits.
pub const MOST_UNIT_BITS: u8 = 16;

/// Pool of IPv4 addresses. Subscriber groups get prefix blocks of it and allocate addresses from them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ipv4Pool {
    /// Network instance of the addresses.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Address range of the pool.
    #[schemars(with = "String", extend("x-format" = "ipv4-prefix", "x-example" = "100.64.0.0/16"))]
    pub prefix: Ipv4Net,
    /// Prefix length of the pool's prefix blocks.
    #[serde(default = "ipv4_net_length")]
    #[schemars(range(min = 16, max = 30))]
    pub net_length: u8,
    /// Addresses that the pool does not allocate: addresses, prefixes and ranges. AAA and `users` may still give them to subscribers
    /// as fixed addresses. A subscriber that has one when it is excluded keeps it until its session ends.
    #[serde(default)]
    #[schemars(with = "Vec<String>", extend("x-format" = "addresses", "x-example" = "100.64.0.10-100.64.0.20"))]
    pub exclude: Vec<AddressRange>,
    /// Share of allocated addresses from which the alarm `pool-almost-exhausted` is raised. It is cleared when the share is five
    /// percentage points lower.
    #[serde(default = "alarm_threshold")]
    #[schemars(range(min = 1, max = 100), extend("x-unit" = "percent"))]
    pub alarm_threshold: u8,
}

/// Pool of IPv6 prefixes of one length, or of IPv6 addresses. Subscriber groups get prefix blocks of it and allocate from them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ipv6Pool {
    /// Network instance of the prefixes.
    #[serde(default = "default_instance")]
    #[schemars(extend("x-reference" = "/network-instances"))]
    pub network_instance: String,
    /// Prefix range of the pool.
    #[schemars(with = "String", extend("x-format" = "ipv6-prefix", "x-example" = "2001:db8:4000::/40"))]
    pub prefix: Ipv6Net,
    /// Prefix length of what one subscriber gets: 64 for the prefix of its link, 44 to 64 for a prefix that is delegated to its router,
    /// 128 for an address of its router.
    #[serde(default = "prefix_length")]
    #[schemars(range(min = 44, max = 128))]
    pub prefix_length: u8,
    /// Prefix length of the pool's prefix blocks, at most 16 less than `prefix-length`. Default: 8 less than `prefix-length`, or the
    /// pool's own length if that is more.
    #[serde(default)]
    #[schemars(range(min = 28, max = 128))]
    pub net_length: Option<u8>,
    /// Addresses that the pool does not allocate: addresses, prefixes and ranges. A prefix that has one of them is not allocated either.
    /// AAA and `users` may still give them to subscribers. A subscriber that has one when it is excluded keeps it until its session ends.
    #[serde(default)]
    #[schemars(with = "Vec<String>", extend("x-format" = "addresses", "x-example" = "2001:db8:4000::/56"))]
    pub exclude: Vec<AddressRange>,
    /// Share of allocated prefixes from which the alarm `pool-almost-exhausted` is raised. It is cleared when the share is five
    /// percentage points lower.
    #[serde(default = "alarm_threshold")]
    #[schemars(range(min = 1, max = 100), extend("x-unit" = "percent"))]
    pub alarm_threshold: u8,
}

impl Ipv6Pool {
    /// Prefix length of the blocks.
    pub fn net_length(&self) -> u8 {
        let default = self.prefix_length.saturating_sub(8);
        self.net_length
            .unwrap_or(default.max(self.prefix.prefix_len()))
    }
}

fn default_instance() -> String {
    "default".into()
}
fn ipv4_net_length() -> u8 {
    24
}
fn prefix_length() -> u8 {
    64
}
fn alarm_threshold() -> u8 {
    90
}
