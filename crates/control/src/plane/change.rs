//! Changes of the configuration: computes their effects on sessions, and applies them.

mod touched;

use super::profiles::View;
use super::{ControlPlane, Now, faults, users};
use crate::addresses;
use crate::entry::{Entry, Stage};
use crate::topology::{GroupId, PortId, Seid, Topology, UserPlaneId};
use config::{Configuration, Fault};
use core::time::Duration;
use northbound::Effect;
use policy::{ControlSettings, Name, Reach, TrafficPolicies};
use session::Command;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use touched::Touched;

/// Effects of a changed configuration, computed before it is applied.
pub(super) struct Change {
    topology: Topology,
    addresses: addresses::Change,
    /// User planes whose address changes.
    moved: Vec<UserPlaneId>,
    /// Access ports that get other devices.
    replaced: Vec<PortId>,
    /// Whether sessions may be attached elsewhere than before, or nowhere.
    places: bool,
    /// Whether users are added, changed or removed.
    users: bool,
    /// Affected sessions.
    affected: Vec<Affected>,
    pub(super) effects: Vec<Effect>,
}

/// Changed configuration that can be applied, with its effects.
pub struct Prepared {
    new: Arc<Configuration>,
    change: Change,
}

impl Prepared {
    /// Effects of the change.
    pub fn effects(&self) -> &[Effect] {
        &self.change.effects
    }
}

/// Session whose policy or link settings change.
struct Affected {
    index: u32,
    /// Whether its link settings change.
    link: bool,
    /// Plane that carries out the changed settings of its policy, if any changes.
    policy: Option<Reach>,
}

pub(super) fn effect(sessions: u64, ends: bool, text: String) -> Effect {
    Effect {
        text,
        sessions,
        ends,
    }
}

impl ControlPlane {
    /// Effects that a changed configuration would have.
    ///
    /// # Errors
    /// Every reason for which it cannot be applied, now or at all, each with what to do.
    pub fn plan(&self, now: Now, new: &Configuration) -> Result<Vec<Effect>, Vec<Fault>> {
        self.change(now, new).map(|change| change.effects)
    }

    /// Applies a changed configuration, with the effects that [`ControlPlane::plan`] returns.
    ///
    /// # Errors
    /// As those of [`ControlPlane::plan`]; nothing has changed then.
    pub fn reconfigure(
        &mut self,
        now: Now,
        new: Arc<Configuration>,
    ) -> Result<Vec<Effect>, Vec<Fault>> {
        let prepared = self.prepare_change(now, new)?;
        Ok(self.follow_change(now, prepared))
    }

    /// First half of [`ControlPlane::reconfigure`]. It changes nothing.
    ///
    /// # Errors
    /// As those of [`ControlPlane::plan`].
    pub fn prepare_change(
        &self,
        now: Now,
        new: Arc<Configuration>,
    ) -> Result<Prepared, Vec<Fault>> {
        let change = self.change(now, &new)?;
        Ok(Prepared { new, change })
    }

    /// Second half of [`ControlPlane::reconfigure`]. It cannot fail, and must follow the first half immediately.
    pub fn follow_change(&mut self, now: Now, Prepared { new, change }: Prepared) -> Vec<Effect> {
        let carriers = carriers(&self.topology);
        let before: Vec<PortId> = self.topology.open_ports().collect();
        self.access.update(&new);
        let former = std::mem::replace(&mut self.configuration, new);
        self.topology = change.topology;
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
        if change.users {
            self.end_deleted_users(now);
        }
        self.change_affected(now, change.affected);
        match change.places {
            true => {
                self.end_replaced(now, &change.replaced);
                self.end_displaced(now);
            }
            false => self.arm_retirement(now),
        }
        self.follow_drains(now);
        self.bound_history();
        self.sticky
            .keep(self.configuration.limits.sessions as usize);
        self.persist_numbers();
        self.settle(now);
        change.effects
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

    fn change(&self, now: Now, new: &Configuration) -> Result<Change, Vec<Fault>> {
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
        let topologies = [&self.topology, &topology];
        let touched = Touched::between([&self.configuration, new], topologies);
        let mut change = Change {
            moved: moved.map(|(id, _)| id).collect(),
            replaced: topology.replaced_ports(&self.topology),
            places: self.configuration.user_planes != new.user_planes,
            users: !touched.users.is_empty(),
            addresses,
            affected: Vec::new(),
            effects: Vec::new(),
            topology,
        };
        if change.places {
            self.find_displaced(new, &mut change);
        }
        if change.users {
            change.effects.extend(self.deleted_users(new));
        }
        self.find_drained(new, &mut change);
        self.find_affected(now, new, &touched, &mut change);
        self.find_without_policy(new, &mut change);
        self.find_moved(&mut change);
        let from_now_on = from_now_on(&self.configuration, new, &touched);
        change.effects.extend(from_now_on);
        Ok(change)
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

    fn find_displaced(&self, new: &Configuration, change: &mut Change) {
        let mut by_reason: BTreeMap<String, u64> = BTreeMap::new();
        for entry in self.sessions.entries().filter(|entry| !entry.is_closing()) {
            let segment = change.topology.segment(entry.segment);
            let port = change.topology.port(segment.port);
            let plane = change.topology.user_plane(port.user_plane);
            let tags = &entry.circuit.tags;
            let replaced = change.replaced.contains(&segment.port);
            if change.topology.has_place(entry.segment, tags) && !replaced {
                continue;
            }
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
            *by_reason.entry(why).or_default() += 1;
        }
        for (why, count) in by_reason {
            let text = format!("{} end: {why}", sessions(count));
            change.effects.push(effect(count, true, text));
        }
        for (name, plane) in &new.user_planes {
            let known = self.configuration.user_planes.get(name);
            if known.is_none() {
                let text = format!("user plane {name} is added at {}", plane.address);
                change.effects.push(effect(0, false, text));
            }
        }
    }

    fn find_affected(
        &self,
        now: Now,
        new: &Configuration,
        touched: &Touched<'_>,
        change: &mut Change,
    ) {
        if touched.is_nothing() {
            return;
        }
        let before = self.view();
        let after = View {
            configuration: new,
            topology: &change.topology,
        };
        let mut counts: BTreeMap<(&'static str, &str), u64> = BTreeMap::new();
        let (mut over, mut affected) = (0, Vec::new());
        for entry in self.sessions.entries().filter(|entry| !entry.is_closing()) {
            if after.is_user_gone(entry) {
                continue; // it ends
            }
            let link = touched.link_of(entry);
            let policies = touched.policy_of(before, entry).then(|| {
                let ((old, _), (policy, _)) = (before.evaluate(entry), after.evaluate(entry));
                (old, policy)
            });
            debug_assert!(
                policies.is_some() || before.evaluate(entry).0 == after.evaluate(entry).0,
                "a policy of which nothing is touched changes"
            );
            let settings = || {
                let both = policies.iter().filter(|_| entry.has_policy());
                both.flat_map(|(old, policy)| policy.differences(old))
            };
            if settings().next().is_none() && !link {
                continue;
            }
            let profile = after.policy_inputs(entry).profile_name();
            let profile = profile.unwrap_or("(the defaults)");
            let mut count = |what: &'static str| {
                *counts.entry((what, profile)).or_default() += 1;
            };
            if matches!(entry.stage, Stage::Online) {
                settings().for_each(|setting| count(setting.label));
                over += policies
                    .iter()
                    .filter(|(old, policy)| is_over(&old.control, &policy.control, entry, now))
                    .count() as u64;
            }
            if link {
                count("access settings");
            }
            affected.push(Affected {
                index: entry.seid.index(),
                link,
                // packets before what the control plane does alone
                policy: settings().map(|setting| setting.reach).min(),
            });
        }
        let mut effects: Vec<Effect> = counts.into_iter().map(setting_effect).collect();
        if over > 0 {
            let text = format!(
                "{} end: they have lasted longer than the new session timeout",
                sessions(over)
            );
            effects.push(effect(over, true, text));
        }
        change.effects.extend(effects);
        change.affected = affected;
    }

    /// Counts those whose policies are deleted. AAA has named them: what the configuration names is there.
    fn find_without_policy(&self, new: &Configuration, change: &mut Change) {
        let before = self.configuration.policies.keys().map(String::as_str);
        let deleted: BTreeSet<&str> = before
            .filter(|name| !new.policies.contains_key(*name))
            .collect();
        if deleted.is_empty() {
            return;
        }
        let after = View {
            configuration: new,
            topology: &change.topology,
        };
        let mut counts: BTreeMap<Name, u64> = BTreeMap::new();
        for entry in self.sessions.entries().filter(|entry| !entry.is_closing()) {
            if after.is_user_gone(entry) {
                continue; // it ends
            }
            let TrafficPolicies {
                policy_up,
                policy_down,
                ..
            } = after.evaluate(entry).0.forwarding.policies.clone();
            let policy_down = policy_down.filter(|down| policy_up.as_ref() != Some(down));
            for name in policy_up
                .into_iter()
                .chain(policy_down)
                .filter(|name| deleted.contains(name.as_str()))
            {
                *counts.entry(name).or_default() += 1;
            }
        }
        for (name, count) in counts {
            let text = format!(
                "packets of {} are dropped (policy-missing), all of a direction: AAA has named policy {name}, which is deleted",
                sessions(count)
            );
            change.effects.push(effect(count, false, text));
        }
    }

    fn find_moved(&self, change: &mut Change) {
        for id in &change.moved {
            let plane = change.topology.user_plane(*id);
            let count = self.sessions.on_user_plane(*id);
            let text = format!(
                "user plane {} moves to {}: its {} are established there again, and forward nothing until then",
                plane.node_id,
                plane.address,
                sessions(count)
            );
            change.effects.push(effect(count, false, text));
        }
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

    fn change_affected(&mut self, now: Now, affected: Vec<Affected>) {
        let links = affected.iter().filter(|affected| affected.link);
        let links = links.map(|affected| self.sessions[affected.index].seid);
        self.relinking.sessions.append(&mut links.collect());
        for Affected { index, policy, .. } in affected {
            let seid = self.sessions[index].seid;
            match policy {
                Some(Reach::Packets) => self.adjusting.push_back(seid),
                Some(Reach::Control) => self.renew_policy(now, index),
                None => continue,
            }
            self.sessions.arm(index);
        }
        self.adjust_more(now);
        self.relink_more(now);
    }

    /// Gives the links of some sessions the settings of their access profiles.
    pub(super) fn relink_more(&mut self, now: Now) {
        for _ in 0..RELINKED {
            let Some(seid) = self.relinking.sessions.pop_first() else {
                break;
            };
            let index = self.sessions.find(seid);
            if let Some(index) = index.filter(|index| !self.sessions[*index].is_closing()) {
                let segment = self.sessions[index].segment;
                let config = self.access(segment).session.clone();
                self.drive(now, index, Command::Configure(config));
                self.sessions.arm(index);
            }
        }
        self.relinking.at = now.at + RELINK_PAUSE;
    }

    /// Time at which [`ControlPlane::relink_more`] has more to do.
    pub(super) fn relink_at(&self) -> Option<Duration> {
        (!self.relinking.sessions.is_empty()).then_some(self.relinking.at)
    }
}

/// Sessions whose links get new settings at once, and the time until the next ones do: nothing waits for very many of them.
const RELINKED: usize = 256;
const RELINK_PAUSE: Duration = Duration::from_millis(1);

/// Sessions whose links get new settings.
#[derive(Default)]
pub(super) struct Relinking {
    sessions: BTreeSet<Seid>,
    /// When the next ones do.
    at: Duration,
}

/// Whether a session has lasted longer than its new session time-out.
fn is_over(old: &ControlSettings, new: &ControlSettings, entry: &Entry, now: Now) -> bool {
    let lasts = |timeout| timeout <= entry.account.lasted(now.at);
    old.session_timeout != new.session_timeout && new.session_timeout.is_some_and(lasts)
}

/// Effect of a changed setting on the sessions of a profile.
fn setting_effect(((what, profile), count): ((&'static str, &str), u64)) -> Effect {
    let verb = if what.ends_with("servers") {
        "change"
    } else {
        "changes"
    };
    let mut text = format!(
        "the {what} of {} of profile {profile} {verb}",
        sessions(count)
    );
    if what == "name servers" {
        text += ": in the next Router Advertisement, and by IPCP when they reconnect";
    }
    effect(count, false, text)
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

/// Effects on new sessions only.
fn from_now_on(old: &Configuration, new: &Configuration, touched: &Touched<'_>) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut say = |text: String| effects.push(effect(0, false, text));
    for name in changed(&old.access_profiles, &new.access_profiles) {
        say(format!(
            "new sessions use the changed access profile {name}"
        ));
    }
    for name in &touched.profiles {
        say(format!(
            "new sessions use the changed subscriber profile {name}"
        ));
    }
    for name in changed(&old.subscriber_groups, &new.subscriber_groups) {
        say(format!(
            "new sessions use the changed MAC address of group {name}"
        ));
    }
    for name in changed(&old.ipv4_pools, &new.ipv4_pools) {
        say(format!("new sessions use the changed IPv4 pool {name}"));
    }
    for name in changed(&old.ipv6_pools, &new.ipv6_pools) {
        say(format!("new sessions use the changed IPv6 pool {name}"));
    }
    for name in &touched.server_groups {
        say(match new.aaa.server_groups.contains_key(*name) {
            true => format!("requests use the changed server group {name}"),
            false => format!(
                "server group {name} is removed: accounting records of sessions that it authenticated wait until a group of \
                    that name exists again"
            ),
        });
    }
    for name in changed(&old.aaa.servers, &new.aaa.servers) {
        say(format!("requests use the changed RADIUS server {name}"));
    }
    for name in changed(&old.aaa.mappings, &new.aaa.mappings) {
        say(format!("answers are read with the changed mapping {name}"));
    }
    users::say_changed(&touched.users, old, new, &mut say);
    if old.limits != new.limits {
        say("the changed limits apply to new sessions".into());
    }
    effects
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
