//! Pools of a changed configuration take over what subscribers have of the present ones.

use super::fixed::Fixed;
use super::{Addresses, Net, Source, Sources};
use crate::pool::{Family, Pool};
use crate::topology::{GroupId, InstanceId, Topology};
use config::{Configuration, Fault, Path};
use core::net::IpAddr;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::BTreeSet;

/// What a changed configuration makes of the pools.
#[derive(Default)]
pub(crate) struct Change {
    ipv4: SourcesChange<Ipv4Net>,
    ipv6: SourcesChange<Ipv6Net>,
    /// Nets that groups have to announce from then on.
    pub lent: Vec<(GroupId, Net)>,
    /// Nets that they have not to announce any more.
    pub withdrawn: Vec<(GroupId, Net)>,
}

struct SourcesChange<F: Family> {
    /// Pools that are new or made anew.
    new: Sources<F>,
    gone: BTreeSet<String>,
}

impl<F: Family> Default for SourcesChange<F> {
    fn default() -> Self {
        SourcesChange {
            new: Sources::new(),
            gone: BTreeSet::new(),
        }
    }
}

/// A pool as the configuration has it.
struct Wanted<'a, F: Family> {
    name: &'a str,
    instance: &'a str,
    prefix: F,
    net_length: u8,
    excluded: Vec<F::Unit>,
}

impl Addresses {
    /// What a changed configuration makes of the pools; `topology` is the one that follows it.
    ///
    /// # Errors
    /// Pools that cannot be cut, and those that do not have what subscribers have.
    pub(crate) fn change(
        &self,
        configuration: &Configuration,
        topology: &Topology,
    ) -> Result<Change, Vec<Fault>> {
        let gateways = |instance: &str| {
            let instance = configuration.network_instances.get(instance);
            instance
                .into_iter()
                .flat_map(|instance| instance.gateway.iter().copied())
        };
        let ipv4 = configuration.ipv4_pools.iter().map(|(name, pool)| Wanted {
            name,
            instance: &pool.network_instance,
            prefix: pool.prefix,
            net_length: pool.net_length,
            excluded: gateways(&pool.network_instance)
                .filter_map(|address| match address {
                    IpAddr::V4(address) => Some(address),
                    IpAddr::V6(_) => None,
                })
                .filter(|address| pool.prefix.contains(address))
                .collect(),
        });
        let ipv6 = configuration.ipv6_pools.iter().map(|(name, pool)| Wanted {
            name,
            instance: &pool.network_instance,
            prefix: pool.prefix,
            net_length: pool.net_length,
            excluded: gateways(&pool.network_instance)
                .filter_map(|address| match address {
                    IpAddr::V6(address) => Ipv6Net::new(address, 64).ok().map(|net| net.trunc()),
                    IpAddr::V4(_) => None,
                })
                .filter(|net| pool.prefix.contains(net))
                .collect(),
        });
        let (mut change, mut faults) = (Change::default(), Vec::new());
        let mut changing = Changing {
            topology,
            fixed: &self.fixed,
            lent: &mut change.lent,
            withdrawn: &mut change.withdrawn,
            faults: &mut faults,
        };
        change.ipv4 = changing.sources("ipv4-pools", &self.ipv4, ipv4);
        change.ipv6 = changing.sources("ipv6-pools", &self.ipv6, ipv6);
        match faults.is_empty() {
            true => Ok(change),
            false => Err(faults),
        }
    }

    /// Carries a change out. The nets in it are the caller's to announce and to withdraw.
    pub(crate) fn apply(&mut self, change: Change) {
        self.ipv4.retain(|name, _| !change.ipv4.gone.contains(name));
        self.ipv6.retain(|name, _| !change.ipv6.gone.contains(name));
        self.ipv4.extend(change.ipv4.new);
        self.ipv6.extend(change.ipv6.new);
    }
}

struct Changing<'a> {
    topology: &'a Topology,
    fixed: &'a Fixed,
    lent: &'a mut Vec<(GroupId, Net)>,
    withdrawn: &'a mut Vec<(GroupId, Net)>,
    faults: &'a mut Vec<Fault>,
}

impl Changing<'_> {
    fn sources<'a, F: Family>(
        &mut self,
        kind: &str,
        present: &Sources<F>,
        wanted: impl Iterator<Item = Wanted<'a, F>>,
    ) -> SourcesChange<F> {
        let mut change = SourcesChange::default();
        let mut named = BTreeSet::new();
        for wanted in wanted {
            let path: Path = [kind, wanted.name].into_iter().collect();
            let Some(instance) = self.topology.find_instance(wanted.instance) else {
                continue; // it names an instance of this configuration: that is checked
            };
            named.insert(wanted.name);
            let before = present.get(wanted.name);
            let is_same = |source: &Source<F>| {
                source.instance == instance
                    && source.prefix == wanted.prefix
                    && source.net_length == wanted.net_length
                    && source.excluded == wanted.excluded
            };
            if !before.is_some_and(is_same)
                && let Some(source) = self.source(&path, instance, &wanted, before)
            {
                change.new.insert(wanted.name.to_owned(), source);
            }
        }
        for (name, source) in present.iter().filter(|(name, _)| !named.contains(&***name)) {
            let path: Path = [kind, name].into_iter().collect();
            let sample = source.pool.leases().next();
            if let Some((_, unit)) = sample {
                self.in_use(path, source.pool.used(), F::of_unit(unit));
            }
            change.gone.insert(name.clone());
        }
        change
    }

    /// A pool with what subscribers have of the present one.
    fn source<F: Family>(
        &mut self,
        path: &Path,
        instance: InstanceId,
        wanted: &Wanted<'_, F>,
        before: Option<&Source<F>>,
    ) -> Option<Source<F>> {
        let pool = match Pool::new(wanted.prefix, wanted.net_length, &wanted.excluded) {
            Ok(pool) => pool,
            Err(error) => {
                self.fault(path.clone(), error.to_string());
                return None;
            }
        };
        let mut source = Source {
            instance,
            prefix: wanted.prefix,
            net_length: wanted.net_length,
            excluded: wanted.excluded.clone(),
            pool,
        };
        let prefix: IpNet = wanted.prefix.into();
        let net = prefix;
        if let Some(fixed) = self.fixed.overlaps(Net { instance, net }) {
            let address = name(fixed);
            let message = format!(
                "{address} of {prefix} is a subscriber's fixed address: end that session first, or leave out the address"
            );
            self.fault(path.clone(), message);
        }
        let Some(before) = before else {
            return Some(source);
        };
        let (mut missing, mut sample) = (0, None);
        for (group, unit) in before.pool.leases() {
            // in two nets of before they may have had other groups
            let reserved = source.pool.reserve(group, unit);
            let stays = reserved.is_ok_and(|lease| lease.net_of == group);
            if before.instance != instance || !stays {
                missing += 1;
                sample.get_or_insert(unit);
            }
        }
        if let Some(unit) = sample {
            self.in_use(path.clone(), missing, F::of_unit(unit));
        }
        let nets = |source: &Source<F>| -> BTreeSet<(GroupId, Net)> {
            let lent = source.pool.lent_nets();
            lent.map(|(group, net)| (group, source.net(net))).collect()
        };
        let (old, new) = (nets(before), nets(&source));
        self.lent.extend(new.difference(&old));
        self.withdrawn.extend(old.difference(&new));
        Some(source)
    }

    fn in_use(&mut self, path: Path, sessions: u64, sample: IpNet) {
        let sample = name(sample);
        self.fault(path, format!("{sessions} sessions have addresses that the changed pool does not contain, such as \
            {sample}: end these sessions first, or keep this part of the pool"));
    }

    fn fault(&mut self, path: Path, message: String) {
        self.faults.push(Fault {
            line: 0,
            path,
            message,
        });
    }
}

/// An address without its length, a prefix with it.
fn name(net: IpNet) -> String {
    match net.prefix_len() == net.max_prefix_len() {
        true => net.addr().to_string(),
        false => net.to_string(),
    }
}
