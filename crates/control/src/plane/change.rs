//! Changes of the configuration: computes their effects on sessions, and applies them.

mod plan;
mod rollout;
mod touched;

pub use plan::{Plan, Progress};
pub(super) use rollout::Rollout;
pub(super) use touched::Touched;

use super::{ControlPlane, Now, faults};
use crate::addresses;
use crate::topology::{GroupId, PortId, Topology, UserPlaneId};
use config::{Configuration, Fault};
use northbound::Effect;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a changed configuration changes.
struct Change {
    topology: Topology,
    addresses: addresses::Change,
    /// User planes whose address changes.
    moved: Vec<UserPlaneId>,
    touched: Touched,
    /// Effects that need no look at each session: what ends, where sessions are placed, and which users are gone.
    effects: Vec<Effect>,
}

/// Changed configuration that can be applied.
pub struct Prepared {
    new: Arc<Configuration>,
    change: Change,
}

impl Prepared {
    /// What it ends, as of now.
    pub fn ends(&self) -> impl Iterator<Item = &Effect> {
        ends(&self.change.effects)
    }
}

/// Effects that end sessions.
pub fn ends(effects: &[Effect]) -> impl Iterator<Item = &Effect> {
    effects
        .iter()
        .filter(|effect| effect.ends && effect.sessions > 0)
}

pub(super) fn effect(sessions: u64, ends: bool, text: String) -> Effect {
    Effect {
        text,
        sessions,
        ends,
    }
}

impl ControlPlane {
    /// First half of a change, which changes nothing. Sessions may have come since it was planned ([`ControlPlane::begin_plan`]).
    ///
    /// # Errors
    /// Every reason for which it cannot be applied, now or at all, each with what to do.
    pub fn prepare_change(&self, new: Arc<Configuration>) -> Result<Prepared, Vec<Fault>> {
        let change = self.change(&new)?;
        Ok(Prepared { new, change })
    }

    /// Second half of a change. It cannot fail, and must follow the first half immediately. What the change touches of sessions is carried
    /// out in portions: the first one at once, the others by [`ControlPlane::on_timeout`].
    pub fn follow_change(&mut self, now: Now, Prepared { new, change }: Prepared) {
        let carriers = carriers(&self.topology);
        let before: Vec<PortId> = self.topology.open_ports().collect();
        self.access.update(&new);
        let former = std::mem::replace(&mut self.configuration, new);
        self.topology = change.topology;
        self.filter_sets.forget_checks();
        self.update_back_offs(&former);
        self.follow_user_planes(now, change.moved, &before);
        self.addresses_change(now, change.addresses);
        for (group, carrier) in self
            .topology
            .groups()
            .map(|(id, g)| (id, g.carrier))
            .collect::<Vec<_>>()
        {
            if carriers
                .get(&group)
                .is_some_and(|before| *before != carrier)
            {
                self.user_planes.carry(now.at, group, &self.topology);
            }
        }
        self.update_aaa(now, &[]);
        self.announce_groups(now);
        self.arm_retirement(now);
        self.roll_out(now, change.touched);
        self.follow_drains(now);
        self.bound_history();
        self.sticky
            .keep(self.configuration.limits.sessions as usize);
        self.persist_numbers();
        self.settle(now);
    }

    /// Opens new access ports after their user plane has its configuration. Before that it would reject them.
    pub fn user_plane_was_told(&mut self, now: Now, node_id: &str) {
        let is_it = |(_, plane): &(UserPlaneId, &crate::topology::UserPlane)| {
            !plane.retired && plane.node_id == node_id
        };
        if let Some((plane, _)) = self.topology.user_planes().find(is_it) {
            self.user_planes.open_missing(now.at, plane, &self.topology);
        }
        self.settle(now);
    }

    fn change(&self, new: &Configuration) -> Result<Change, Vec<Fault>> {
        let wrong = faults(&self.start, self.aaa.dictionary(), new);
        let mut wrong = wrong.err().unwrap_or_default();
        wrong.extend(self.taken_addresses(new));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let mut topology = self.topology.clone();
        topology.update(new);
        let addresses = self.addresses.change(new, &topology)?;
        let moved = topology.user_planes().filter(|(id, plane)| {
            let known = self.user_planes.knows(*id);
            known && !plane.retired && self.topology.user_plane(*id).address != plane.address
        });
        let moved = moved.map(|(id, _)| id).collect();
        let touched = Touched::between(
            [&self.configuration, new],
            [&self.topology, &topology],
            self.generations.last(),
        );
        let mut effects = self.displaced(&touched, &topology);
        effects.extend(self.added_user_planes(new));
        effects.extend(self.deleted_users(&touched, new));
        effects.extend(self.changed_drains(new));
        Ok(Change {
            topology,
            addresses,
            moved,
            touched,
            effects,
        })
    }

    /// Rejects a user plane's address that another user plane still has.
    fn taken_addresses(&self, new: &Configuration) -> Vec<Fault> {
        let taken = new.user_planes.iter().filter_map(|(name, plane)| {
            let mut others = self.topology.user_planes();
            let (_, other) = others.find(|(_, other)| {
                other.address == plane.address && other.node_id != *name
            })?;
            Some(Fault {
                line: 0,
                path: ["user-planes", name, "address"].into_iter().collect(),
                message: format!(
                    "`{}` is still the address of user plane `{}`: change or delete that one first, then this one after at \
                        most 30 seconds",
                    plane.address, other.node_id
                ),
            })
        });
        taken.collect()
    }

    /// Effect on sessions that lose their place in the new topology, by reason.
    fn displaced(&self, touched: &Touched, new: &Topology) -> Vec<Effect> {
        let mut by_reason: BTreeMap<String, u64> = BTreeMap::new();
        for &id in &touched.places {
            let segment = new.segment(id);
            let port = new.port(segment.port);
            let plane = new.user_plane(port.user_plane);
            let replaced = touched.replaced.contains_key(&segment.port);
            let why = match (plane.retired, port.retired) {
                (true, _) => format!("user plane {} is removed", plane.node_id),
                (_, true) => format!("port {} of {} is removed", port.name, plane.node_id),
                _ if replaced => {
                    format!("port {} of {} gets other devices", port.name, plane.node_id)
                }
                _ => format!(
                    "their S-VLAN is no longer in segment {} of port {} of {}",
                    segment.name, port.name, plane.node_id
                ),
            };
            let vlans = self.sessions.outer_vlans(id).into_iter();
            let lost = vlans.filter(|(vlan, _)| replaced || !new.has_place(id, *vlan));
            *by_reason.entry(why).or_default() += lost.map(|(_, sessions)| sessions).sum::<u64>();
        }
        let reasons = by_reason.into_iter().filter(|(_, count)| *count > 0);
        let told = reasons.map(|(why, count)| {
            let text = format!("{} end: {why}", sessions(count));
            effect(count, true, text)
        });
        told.collect()
    }

    fn added_user_planes(&self, new: &Configuration) -> impl Iterator<Item = Effect> {
        let known = &self.configuration.user_planes;
        let planes = new.user_planes.iter();
        let added = planes.filter(|(name, _)| !known.contains_key(*name));
        added.map(|(name, plane)| {
            let text = format!("user plane {name} is added at {}", plane.address);
            effect(0, false, text)
        })
    }

    /// Effect on the sessions of user planes that get another address.
    fn moved(&self, change: &Change) -> impl Iterator<Item = Effect> {
        change.moved.iter().map(|id| {
            let plane = change.topology.user_plane(*id);
            let count = self.sessions.on_user_plane(*id);
            let text = format!(
                "user plane {} moves to {}: its {} are established there again, and forward nothing until then",
                plane.node_id,
                plane.address,
                sessions(count)
            );
            effect(count, false, text)
        })
    }

    /// Adds new user planes and ports, and moves those with a new address.
    fn follow_user_planes(&mut self, now: Now, moved: Vec<UserPlaneId>, before: &[PortId]) {
        for id in moved {
            for index in self.sessions_of(id) {
                let rules = &mut self.entry(index).rules;
                (rules.up_seid, rules.put_back) = (None, false);
            }
            let plane = self.topology.user_plane(id);
            self.audits.remove(&id);
            self.user_planes.relocate(now.at, id, plane, &self.topology);
            self.audit_over(now, id);
        }
        for (id, plane) in self.topology.user_planes() {
            if !self.user_planes.knows(id) {
                self.user_planes.add(now.at, id, plane, None);
            }
        }
        // one that was retired and is not closed yet may announce what another one carries now: it is opened anew
        for port in self.topology.open_ports().filter(|id| !before.contains(id)) {
            self.user_planes.forget_default_session(port);
        }
    }

    fn addresses_change(&mut self, now: Now, mut change: addresses::Change) {
        let (lent, withdrawn) = (
            std::mem::take(&mut change.lent),
            std::mem::take(&mut change.withdrawn),
        );
        self.addresses.apply(change);
        let (planes, topology) = (&mut self.user_planes, &self.topology);
        for (group, net) in lent {
            planes.announce(now.at, group, net, topology);
        }
        for (group, net) in withdrawn {
            planes.withdraw(now.at, group, net, topology);
        }
    }
}

fn carriers(topology: &Topology) -> BTreeMap<GroupId, PortId> {
    let groups = topology.groups();
    groups.map(|(id, group)| (id, group.carrier)).collect()
}

pub(super) fn sessions(count: u64) -> String {
    match count {
        1 => "1 session".into(),
        n => format!("{n} sessions"),
    }
}

/// Names of entries that were added, changed or removed. It walks both maps once, in parallel, for up to 100,000 users.
fn changed<'a, T: PartialEq>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
) -> BTreeSet<&'a str> {
    let (mut before, mut after) = (old.iter().peekable(), new.iter().peekable());
    let mut names = BTreeSet::new();
    loop {
        let mut gone = |name: &String| after.peek().is_none_or(|(next, _)| name < *next);
        if let Some((name, _)) = before.next_if(|(name, _)| gone(name)) {
            names.insert(name.as_str());
            continue;
        }
        let Some((name, value)) = after.next() else {
            return names;
        };
        let was = before.next_if(|(old, _)| *old == name);
        if was.is_none_or(|(_, was)| was != value) {
            names.insert(name.as_str());
        }
    }
}

#[cfg(test)]
mod tests;
