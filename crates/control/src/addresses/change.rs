//! Pools of a changed configuration take over what subscribers have of the present ones.

use super::fixed::Fixed;
use super::{Addresses, Net, Source, Sources};
use crate::pool::{Pool, PoolSettings};
use crate::topology::{GroupId, InstanceId, Topology};
use config::model::{Ipv4Pool, Ipv6Pool};
use config::{AddressRange, Configuration, Fault, Path};
use core::net::IpAddr;
use ipnet::IpNet;
use std::collections::BTreeSet;

/// What a changed configuration makes of the pools.
#[derive(Default)]
pub(crate) struct Change {
    ipv4: SourcesChange,
    ipv6: SourcesChange,
    /// Nets that groups have to announce from then on.
    pub lent: Vec<(GroupId, Net)>,
    /// Nets that they have not to announce any more.
    pub withdrawn: Vec<(GroupId, Net)>,
}

#[derive(Default)]
struct SourcesChange {
    /// Pools that are new or made anew.
    new: Sources,
    gone: BTreeSet<String>,
}

/// A pool as the configuration has it.
struct Wanted<'a> {
    name: &'a str,
    instance: &'a str,
    settings: PoolSettings,
}

impl<'a> Wanted<'a> {
    fn ipv4(name: &'a str, pool: &'a Ipv4Pool) -> Self {
        let settings = PoolSettings::new(pool.prefix.into(), pool.net_length, 32);
        Self::excluding(name, &pool.network_instance, settings, &pool.exclude)
    }

    fn ipv6(name: &'a str, pool: &'a Ipv6Pool) -> Self {
        let (prefix, net_length) = (pool.prefix.into(), pool.net_length());
        let settings = PoolSettings::new(prefix, net_length, pool.prefix_length);
        Self::excluding(name, &pool.network_instance, settings, &pool.exclude)
    }

    fn excluding(
        name: &'a str,
        instance: &'a str,
        settings: PoolSettings,
        excluded: &[AddressRange],
    ) -> Self {
        let excluded = excluded.iter().map(AddressRange::addresses).collect();
        Wanted {
            name,
            instance,
            settings: PoolSettings {
                excluded,
                ..settings
            },
        }
    }

    /// The same without the gateway's own addresses in its network instance.
    fn without_gateway(mut self, configuration: &Configuration) -> Self {
        let instance = configuration.network_instances.get(self.instance);
        let gateway = instance.into_iter().flat_map(|instance| &instance.gateway);
        let is_in = |address: &&IpAddr| self.settings.prefix.contains(*address);
        self.settings.own = gateway.filter(is_in).copied().collect();
        self
    }
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
        let ipv4 = configuration.ipv4_pools.iter();
        let ipv4 = ipv4.map(|(name, pool)| Wanted::ipv4(name, pool).without_gateway(configuration));
        let ipv6 = configuration.ipv6_pools.iter();
        let ipv6 = ipv6.map(|(name, pool)| Wanted::ipv6(name, pool).without_gateway(configuration));
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
    fn sources<'a>(
        &mut self,
        kind: &str,
        present: &Sources,
        wanted: impl Iterator<Item = Wanted<'a>>,
    ) -> SourcesChange {
        let mut change = SourcesChange::default();
        let mut named = BTreeSet::new();
        for wanted in wanted {
            let path: Path = [kind, wanted.name].into_iter().collect();
            let Some(instance) = self.topology.find_instance(wanted.instance) else {
                continue; // it names an instance of this configuration: that is checked
            };
            named.insert(wanted.name);
            let before = present.get(wanted.name);
            let is_same =
                |source: &Source| source.instance == instance && source.settings == wanted.settings;
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
                self.in_use(path, source.pool.used(), unit);
            }
            change.gone.insert(name.clone());
        }
        change
    }

    /// A pool with what subscribers have of the present one.
    fn source(
        &mut self,
        path: &Path,
        instance: InstanceId,
        wanted: &Wanted<'_>,
        before: Option<&Source>,
    ) -> Option<Source> {
        let pool = match Pool::new(&wanted.settings) {
            Ok(pool) => pool,
            Err(error) => {
                self.fault(path.clone(), error.to_string());
                return None;
            }
        };
        let mut source = Source {
            instance,
            settings: wanted.settings.clone(),
            pool,
        };
        let prefix = wanted.settings.prefix;
        let net = prefix;
        let mut fixed = self.fixed.overlapping(Net { instance, net });
        // what is inside a subscriber's prefix of the pool goes with that
        let is_apart = |net: &IpNet| !before.is_some_and(|before| before.has_around(*net));
        if let Some(fixed) = fixed.find(is_apart) {
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
            self.in_use(path.clone(), missing, unit);
        }
        let nets = |source: &Source| -> BTreeSet<(GroupId, Net)> {
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
