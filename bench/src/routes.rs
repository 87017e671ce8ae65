//! Real prefixes, and which next hop each has here.
use anyhow::{Context, Result, ensure};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::process::Command;

/// The gateway's neighbours: a route leads to one of them.
pub const NEIGHBOURS: u32 = 256;

/// All prefixes, in a random order that is the same each time: a smaller table is a part of a larger one.
pub struct Prefixes {
    pub v4: Vec<Ipv4Net>,
    pub v6: Vec<Ipv6Net>,
}

impl Prefixes {
    /// Reads them from Debian's libloc-database.
    pub fn real() -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/prefixes.py");
        // Debian's interpreter: the module belongs to it.
        let said = Command::new("/usr/bin/python3").arg(script).output()?;
        ensure!(
            said.status.success(),
            "the real prefixes (Debian's packages libloc-database and python3-location): {}",
            String::from_utf8_lossy(&said.stderr).trim()
        );
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for line in String::from_utf8(said.stdout)?.lines() {
            match line.parse().with_context(|| format!("prefix {line:?}"))? {
                IpNet::V4(net) => v4.push(net),
                IpNet::V6(net) => v6.push(net),
            }
        }
        let mut random = SmallRng::seed_from_u64(1);
        v4.shuffle(&mut random);
        v6.shuffle(&mut random);
        Ok(Prefixes { v4, v6 })
    }
}

/// The routes of one table, default routes among them.
pub struct Routes {
    pub v4: Vec<(Ipv4Net, u32)>,
    pub v6: Vec<(Ipv6Net, u32)>,
    by_prefix_v4: HashMap<(u32, u8), u32>,
    by_prefix_v6: HashMap<(u128, u8), u32>,
}

impl Routes {
    /// Default routes, and of each family as many others as there are up to `most` in all.
    pub fn first(prefixes: &Prefixes, most: usize) -> Self {
        Self::share(prefixes, most, 0, 1)
    }

    /// The routes of so many tables, `most` in all. Each table has a default route, and prefixes and neighbours that no other has.
    pub fn shares(prefixes: &Prefixes, most: usize, tables: u16) -> Vec<Self> {
        let share = |table| Self::share(prefixes, most / usize::from(tables), table, tables);
        (0..tables).map(share).collect()
    }

    fn share(prefixes: &Prefixes, most: usize, table: u16, tables: u16) -> Self {
        let mut random = SmallRng::seed_from_u64(2);
        let (first, step) = (u32::from(table), u32::from(tables));
        let mut to = || random.random_range(0..NEIGHBOURS) / step * step + first;
        let (skip, step, others) = (table.into(), tables.into(), most - 1);
        let mut v4 = vec![(Ipv4Net::default(), first)];
        let own = prefixes.v4.iter().skip(skip).step_by(step).take(others);
        v4.extend(own.map(|net| (*net, to())));
        let mut v6 = vec![(Ipv6Net::default(), first)];
        let own = prefixes.v6.iter().skip(skip).step_by(step).take(others);
        v6.extend(own.map(|net| (*net, to())));
        let by_prefix_v4 = v4
            .iter()
            .map(|(net, to)| ((u32::from(net.network()), net.prefix_len()), *to));
        let by_prefix_v6 = v6
            .iter()
            .map(|(net, to)| ((u128::from(net.network()), net.prefix_len()), *to));
        Routes {
            by_prefix_v4: by_prefix_v4.collect(),
            by_prefix_v6: by_prefix_v6.collect(),
            v4,
            v6,
        }
    }

    pub fn all(&self) -> impl Iterator<Item = (IpNet, u32)> + '_ {
        let v4 = self.v4.iter().map(|&(net, to)| (IpNet::V4(net), to));
        v4.chain(self.v6.iter().map(|&(net, to)| (IpNet::V6(net), to)))
    }

    /// A random address within a random prefix, and its next hop by looking at every length.
    pub fn pick_v4(&self, random: &mut impl Rng) -> (u32, u32) {
        let (net, _) = self.v4[random.random_range(0..self.v4.len())];
        let host = random.random::<u32>() & u32::from(net.hostmask());
        // What nobody routes is no destination (RFC 6890).
        let address = match u32::from(net.network()) | host {
            a if net.prefix_len() > 0 => a,
            a => 0x0800_0000 | a >> 8,
        };
        let found = (0..=32u8).rev().find_map(|length| {
            let mask = u32::MAX.checked_shl(32 - length as u32).unwrap_or(0);
            self.by_prefix_v4.get(&(address & mask, length))
        });
        (address, *found.expect("the default route"))
    }

    /// The same of IPv6.
    pub fn pick_v6(&self, random: &mut impl Rng) -> (u128, u32) {
        let (net, _) = self.v6[random.random_range(0..self.v6.len())];
        let host = random.random::<u128>() & u128::from(net.hostmask());
        let address = match u128::from(net.network()) | host {
            a if net.prefix_len() > 0 => a,
            a => 0x2a00 << 112 | a >> 16,
        };
        let found = (0..=128u8).rev().find_map(|length| {
            let mask = u128::MAX.checked_shl(128 - length as u32).unwrap_or(0);
            self.by_prefix_v6.get(&(address & mask, length))
        });
        (address, *found.expect("the default route"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tables_share_prefixes_and_neighbours_out() {
        let v4 = (0..100).map(|n| Ipv4Net::new_assert((n << 8).into(), 24));
        let prefixes = Prefixes {
            v4: v4.collect(),
            v6: Vec::new(),
        };
        let tables = Routes::shares(&prefixes, 80, 8);
        let mut seen = HashSet::new();
        for (own, table) in (0..).zip(&tables) {
            assert_eq!(table.v4.len(), 10);
            assert_eq!(table.v4[0], (Ipv4Net::default(), own));
            assert!(
                table
                    .v4
                    .iter()
                    .all(|(_, to)| to % 8 == own && *to < NEIGHBOURS)
            );
            assert!(table.v4[1..].iter().all(|(net, _)| seen.insert(*net)));
        }
    }
}
