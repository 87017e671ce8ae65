//! The pools as operators see them.

use super::{Addresses, Source};
use crate::pool::Share;
use crate::topology::{GroupId, InstanceId};
use ipnet::IpNet;
use std::collections::BTreeMap;

/// Use of a pool.
pub(crate) struct Usage<'a> {
    pub name: &'a str,
    pub is_ipv4: bool,
    /// Number of allocated units that count in `size`.
    pub used: u64,
    /// Number of units that the pool allocates by itself.
    pub size: u64,
}

/// A pool, its size, and who has how much of it.
pub(crate) struct Shares {
    pub name: String,
    pub instance: InstanceId,
    pub prefix: IpNet,
    pub net_length: u8,
    pub unit_length: u8,
    pub size: u64,
    pub used: u64,
    pub nets: u64,
    pub by_group: BTreeMap<GroupId, Share>,
}

impl Addresses {
    /// Use of each pool, those of IPv4 first.
    pub(crate) fn usage(&self) -> impl Iterator<Item = Usage<'_>> {
        self.all().map(|(name, source)| Usage {
            name,
            is_ipv4: super::is_ipv4(source.settings.prefix),
            used: source.pool.used_of_size(),
            size: source.pool.size(),
        })
    }

    /// Every pool, those of IPv4 first.
    pub(crate) fn shares(&self) -> impl Iterator<Item = Shares> {
        self.all().map(|(name, source)| shares(name, source))
    }
}

fn shares(name: &str, source: &Source) -> Shares {
    Shares {
        name: name.into(),
        instance: source.instance,
        prefix: source.settings.prefix,
        net_length: source.settings.net_length,
        unit_length: source.settings.unit_length,
        size: source.pool.size(),
        used: source.pool.used_of_size(),
        nets: source.pool.net_count(),
        by_group: source.pool.shares(),
    }
}
