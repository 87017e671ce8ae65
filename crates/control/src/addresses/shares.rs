//! The pools as people are shown them.

use super::{Addresses, Source, Sources};
use crate::pool::{Family, Share};
use crate::topology::{GroupId, InstanceId};
use ipnet::IpNet;
use std::collections::BTreeMap;

/// A pool, how much there is of it, and who has it.
pub(crate) struct Shares {
    pub name: String,
    pub instance: InstanceId,
    pub prefix: IpNet,
    pub net_length: u8,
    pub size: u64,
    pub used: u64,
    pub nets: u64,
    pub by_group: BTreeMap<GroupId, Share>,
}

impl Addresses {
    /// Every pool, those of IPv4 first.
    pub(crate) fn shares(&self) -> impl Iterator<Item = Shares> {
        of(&self.ipv4).chain(of(&self.ipv6))
    }
}

fn of<F: Family>(sources: &Sources<F>) -> impl Iterator<Item = Shares> {
    let shares = |(name, source): (&String, &Source<F>)| Shares {
        name: name.clone(),
        instance: source.instance,
        prefix: source.prefix.into(),
        net_length: source.net_length,
        size: source.pool.size(),
        used: source.pool.used(),
        nets: source.pool.net_count(),
        by_group: source.pool.shares(),
    };
    sources.iter().map(shares)
}
