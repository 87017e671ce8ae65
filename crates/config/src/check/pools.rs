//! Address pools: lengths, overlaps and exclusions, and who may use which pool.

use super::whole::Found;
use crate::Path;
use crate::model::{Configuration, Ipv6Pool, MOST_BLOCK_BITS, MOST_UNIT_BITS};
use crate::values::AddressRange;
use ipnet::IpNet;

/// Pool of either family.
struct Pool<'a> {
    kind: &'static str,
    name: &'a String,
    instance: &'a String,
    prefix: IpNet,
    net_length: u8,
    /// Shortest and longest prefix of a block.
    net_lengths: (u8, u8),
    exclude: &'a [AddressRange],
}

/// Leaf that names pools, with what the pools must have.
struct Use<'a> {
    leaf: &'static str,
    pools: &'a [String],
    fits: fn(u8) -> bool,
    expected: &'static str,
}

impl Found {
    pub(super) fn pools(&mut self, configuration: &Configuration) {
        for (name, pool) in &configuration.ipv6_pools {
            let here = Path::from_iter(["ipv6-pools", name]);
            self.prefix_length(&here, pool);
        }
        let mut seen: Vec<Pool<'_>> = Vec::new();
        for pool in all(configuration) {
            self.pool(&pool);
            let overlaps = |other: &&Pool<'_>| {
                let (one, other_net) = (&pool.prefix, &other.prefix);
                other.instance == pool.instance
                    && (other_net.contains(one) || one.contains(other_net))
            };
            if let Some(other) = seen.iter().find(overlaps) {
                let why = format!(
                    "{} overlaps with {} of pool `{}` in network instance `{}`",
                    pool.prefix, other.prefix, other.name, pool.instance
                );
                self.at(&pool.place(), "prefix", why);
            }
            seen.push(pool);
        }
        self.users_of_pools(configuration);
    }

    fn prefix_length(&mut self, here: &Path, pool: &Ipv6Pool) {
        let length = pool.prefix_length;
        if !matches!(length, 44..=64 | 128) {
            let why = format!(
                "/{length} is for nobody: expected 64 for the prefix of a link, 44 to 64 for a delegated prefix, \
                or 128 for an address"
            );
            self.at(here, "prefix-length", why);
        } else if length < pool.prefix.prefix_len() {
            let prefix = pool.prefix;
            let why = format!(
                "{prefix} has no /{length}: expected at least {}",
                prefix.prefix_len()
            );
            self.at(here, "prefix-length", why);
        } else if length - pool.prefix.prefix_len() > MOST_BLOCK_BITS + MOST_UNIT_BITS {
            let least = length - MOST_BLOCK_BITS - MOST_UNIT_BITS;
            let why = format!(
                "{} has too many /{length}: expected a prefix of /{least} or longer",
                pool.prefix
            );
            self.at(here, "prefix", why);
        }
    }

    fn pool(&mut self, pool: &Pool<'_>) {
        let here = pool.place();
        let (least, most) = pool.net_lengths;
        if least <= most && !(least..=most).contains(&pool.net_length) {
            let why = format!(
                "prefix blocks of /{} in {}: expected a length from {least} to {most}",
                pool.net_length, pool.prefix
            );
            self.at(&here, "net-length", why);
        }
        for range in pool
            .exclude
            .iter()
            .filter(|range| !range.overlaps(pool.prefix))
        {
            let why = format!(
                "{range} is not in {}: expected addresses of the pool",
                pool.prefix
            );
            self.at(&here, "exclude", why);
        }
    }

    /// A pool that a profile or a user names is in the profile's network instance, and has what the leaf is about.
    fn users_of_pools(&mut self, configuration: &Configuration) {
        for (name, profile) in &configuration.subscriber_profiles {
            let here = Path::from_iter(["subscriber-profiles", name]);
            let own = &profile.network_instance;
            let ipv4 = profile.ipv4_pools.iter();
            let ipv4 = ipv4.filter_map(|pool| Some((pool, configuration.ipv4_pools.get(pool)?)));
            for (pool, of) in ipv4 {
                self.instance_of_pool(&here, "ipv4-pools", (pool, &of.network_instance), own);
            }
            let uses = uses(
                &profile.ipv6_pools,
                &profile.delegated_pools,
                &profile.ipv6_address_pools,
            );
            for of in uses {
                self.lengths(&here, &of, configuration);
                for pool in of.pools {
                    if let Some(found) = configuration.ipv6_pools.get(pool) {
                        let instance = (pool, &found.network_instance);
                        self.instance_of_pool(&here, of.leaf, instance, own);
                    }
                }
            }
        }
        for (name, user) in &configuration.users {
            let here = Path::from_iter(["users", name]);
            let uses = uses(
                &user.ipv6_pools,
                &user.delegated_pools,
                &user.ipv6_address_pools,
            );
            for of in uses {
                self.lengths(&here, &of, configuration);
            }
        }
    }

    fn instance_of_pool(
        &mut self,
        here: &Path,
        leaf: &str,
        (pool, instance): (&String, &String),
        own: &String,
    ) {
        if instance != own {
            let why = format!(
                "pool `{pool}` is in network instance `{instance}`, the profile in `{own}`: expected the same"
            );
            self.at(here, leaf, why);
        }
    }

    fn lengths(&mut self, here: &Path, of: &Use<'_>, configuration: &Configuration) {
        for name in of.pools {
            let pool = configuration.ipv6_pools.get(name);
            let length = pool.map(|pool| pool.prefix_length);
            if let Some(length) = length.filter(|length| !(of.fits)(*length)) {
                let why = format!(
                    "pool `{name}` has `prefix-length` {length}: expected {}",
                    of.expected
                );
                self.at(here, of.leaf, why);
            }
        }
    }
}

impl Pool<'_> {
    fn place(&self) -> Path {
        Path::from_iter([self.kind, self.name])
    }
}

/// All pools, those of IPv4 first.
fn all(configuration: &Configuration) -> impl Iterator<Item = Pool<'_>> {
    let ipv4 = configuration.ipv4_pools.iter().map(|(name, pool)| Pool {
        kind: "ipv4-pools",
        name,
        instance: &pool.network_instance,
        prefix: pool.prefix.into(),
        net_length: pool.net_length,
        net_lengths: (pool.prefix.prefix_len().max(16), 30),
        exclude: &pool.exclude,
    });
    let ipv6 = configuration.ipv6_pools.iter().map(|(name, pool)| {
        let length = pool.prefix.prefix_len();
        let widest = pool.prefix_length.saturating_sub(MOST_UNIT_BITS);
        let narrowest = length.saturating_add(MOST_BLOCK_BITS);
        Pool {
            kind: "ipv6-pools",
            name,
            instance: &pool.network_instance,
            prefix: pool.prefix.into(),
            net_length: pool.net_length(),
            net_lengths: (length.max(widest), narrowest.min(pool.prefix_length)),
            exclude: &pool.exclude,
        }
    });
    ipv4.chain(ipv6)
}

/// Leaves of a profile or a user that name IPv6 pools.
fn uses<'a>(link: &'a [String], delegated: &'a [String], address: &'a [String]) -> [Use<'a>; 3] {
    [
        Use {
            leaf: "ipv6-pools",
            pools: link,
            fits: |length| length == 64,
            expected: "64, the length of a link's prefix (RFC 4862)",
        },
        Use {
            leaf: "delegated-pools",
            pools: delegated,
            fits: |length| length <= 64,
            expected: "at most 64, so that a home has a prefix for its own network",
        },
        Use {
            leaf: "ipv6-address-pools",
            pools: address,
            fits: |length| length == 128,
            expected: "128, a single address",
        },
    ]
}

#[cfg(test)]
mod tests {
    /// What is said of a configuration with these pools, and a profile and a user with these leaves.
    fn said(pools: &str, profile: &str, user: &str) -> Vec<String> {
        let text = format!(
            "network-instances: {{default: {{}}, red: {{}}}}
ipv6-pools: {{{pools}}}
subscriber-profiles: {{home: {{{profile}}}}}
users: {{alice: {{password: wonderland{user}}}}}
"
        );
        let faults = crate::check::read(&text).err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect()
    }

    const POOLS: &str = "links: {prefix: '2001:db8:100::/40'}, \
        homes: {prefix: '2001:db8:4000::/36', prefix-length: 56}, \
        routers: {prefix: '2001:db8:5000::/64', prefix-length: 128}";

    #[test]
    fn each_kind_of_pool_is_for_its_own_use() {
        let good =
            "ipv6-pools: [links], delegated-pools: [homes, links], ipv6-address-pools: [routers]";
        assert_eq!(
            said(POOLS, good, &format!(", {good}")),
            Vec::<String>::new()
        );
        for (leaf, expected) in [
            (
                "ipv6-pools: [homes]",
                "ipv6-pools: pool `homes` has `prefix-length` 56: expected 64",
            ),
            (
                "delegated-pools: [routers]",
                "delegated-pools: pool `routers` has `prefix-length` 128: expected at most 64",
            ),
            (
                "ipv6-address-pools: [links]",
                "ipv6-address-pools: pool `links` has `prefix-length` 64: expected 128",
            ),
        ] {
            for (profile, user) in [(leaf, String::new()), ("", format!(", {leaf}"))] {
                let said = said(POOLS, profile, &user);
                assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
            }
        }
        let elsewhere = said(POOLS, "network-instance: red, delegated-pools: [homes]", "");
        assert!(
            elsewhere[0].contains("pool `homes` is in network instance `default`"),
            "{elsewhere:?}"
        );
    }

    #[test]
    fn lengths_and_exclusions_that_do_not_fit_are_named() {
        for (pool, expected) in [
            ("prefix-length: 65", "/65 is for nobody"),
            ("prefix-length: 44", ""),
            (
                "prefix-length: 56, net-length: 38",
                "expected a length from 40 to 56",
            ),
            (
                "prefix-length: 56, net-length: 57",
                "expected a length from 40 to 56",
            ),
            (
                "exclude: ['2001:db8:200::1']",
                "2001:db8:200::1 is not in 2001:db8:100::/40",
            ),
            ("exclude: ['192.0.2.1']", "192.0.2.1 is not in"),
            ("exclude: ['2001:db8:100::1', '2001:db8:101::/64']", ""),
        ] {
            let said = said(
                &format!("homes: {{prefix: '2001:db8:100::/40', {pool}}}"),
                "",
                "",
            );
            assert_eq!(said.len(), usize::from(!expected.is_empty()), "{said:?}");
            assert!(said.iter().all(|said| said.contains(expected)), "{said:?}");
        }
        for (length, expected) in [(48, "expected a prefix of /49 or longer"), (49, "")] {
            let pool = format!(
                "homes: {{prefix: '2001:db8::/{length}', prefix-length: 128, net-length: 112}}"
            );
            let said = said(&pool, "", "");
            assert_eq!(said.len(), usize::from(!expected.is_empty()), "{said:?}");
            assert!(said.iter().all(|said| said.contains(expected)), "{said:?}");
        }
        let short = said(
            "homes: {prefix: '2001:db8:100::/60', prefix-length: 56}",
            "",
            "",
        );
        assert!(
            short[0].contains("2001:db8:100::/60 has no /56"),
            "{short:?}"
        );
    }

    #[test]
    fn blocks_have_256_units_unless_something_else_is_said() {
        let text = format!("network-instances: {{default: {{}}}}\nipv6-pools: {{{POOLS}}}\n");
        let read = crate::check::read(&text).unwrap().configuration;
        let lengths: Vec<u8> = read.ipv6_pools.values().map(|p| p.net_length()).collect();
        assert_eq!(lengths, [48, 56, 120]);
    }
}
