//! Effects that a changed configuration would have on sessions, found before it is applied.

use super::{Change, changed, effect, sessions};
use crate::entry::{Entry, Stage};
use crate::plane::call::FILTERED;
use crate::plane::profiles::View;
use crate::plane::{ControlPlane, Effect, Now, users};
use config::{Configuration, Fault};
use policy::{ControlSettings, Name, Policy, TrafficPolicies};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Effects of a changed configuration, as far as they are known: sessions are looked at in parts, so that nothing waits for all of them.
/// Those that come and go meanwhile may be counted or not.
pub struct Plan {
    new: Arc<Configuration>,
    change: Change,
    /// Policies that it deletes.
    deleted: BTreeSet<String>,
    /// Place of the next session to look at; `None` if all were.
    next: Option<u32>,
    counts: Counts,
}

/// Numbers of sessions.
#[derive(Default)]
struct Counts {
    /// By changed setting and profile.
    settings: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// That have lasted longer than their new session time-out.
    over: u64,
    /// By the deleted policy that AAA has named.
    without_policy: BTreeMap<Name, u64>,
}

/// What came of looking at some sessions.
pub enum Progress {
    /// There are more.
    More(Box<Plan>),
    /// Effects of the changed configuration.
    Done(Vec<Effect>),
}

impl ControlPlane {
    /// Begins to find the effects of a changed configuration, which [`ControlPlane::plan_more`] finds. No other configuration may come
    /// into force meanwhile.
    ///
    /// # Errors
    /// Every reason for which it cannot be applied, now or at all, each with what to do.
    pub fn begin_plan(&self, new: Arc<Configuration>) -> Result<Box<Plan>, Vec<Fault>> {
        let change = self.change(&new)?;
        let before = self.configuration.policies.keys();
        let deleted = before.filter(|name| !new.policies.contains_key(*name));
        let deleted: BTreeSet<String> = deleted.cloned().collect();
        let touches = !change.touched.is_nothing() || !deleted.is_empty();
        Ok(Box::new(Plan {
            new,
            change,
            deleted,
            next: touches.then_some(0),
            counts: Counts::default(),
        }))
    }

    /// Looks at the next sessions.
    pub fn plan_more(&self, now: Now, mut plan: Box<Plan>) -> Progress {
        if let Some(from) = plan.next {
            let mut counts = std::mem::take(&mut plan.counts);
            plan.next = self.count_changes(now, from, &plan, &mut counts);
            plan.counts = counts;
        }
        match plan.next {
            Some(_) => Progress::More(plan),
            None => Progress::Done(self.effects(&plan)),
        }
    }

    /// Counts what changes of the next sessions from a place on. Returns the place of those after them.
    fn count_changes(&self, now: Now, from: u32, plan: &Plan, counts: &mut Counts) -> Option<u32> {
        let (before, after) = (self.view(), plan.after());
        let mut last = None;
        for (index, entry) in self.sessions.from(from).take(FILTERED) {
            last = Some(index);
            if !entry.is_closing() && !after.is_user_gone(entry) {
                plan.count(counts, now, [before, after], entry);
            }
        }
        last.map(|index| index + 1)
    }

    /// Effects of a configuration, after all sessions were looked at.
    fn effects(&self, plan: &Plan) -> Vec<Effect> {
        let (change, counts) = (&plan.change, &plan.counts);
        let mut effects = change.effects.clone();
        for (what, profiles) in &counts.settings {
            let of_profiles = profiles.iter();
            effects.extend(of_profiles.map(|(profile, count)| changing(what, profile, *count)));
        }
        if counts.over > 0 {
            let text = format!(
                "{} end: they have lasted longer than the new session timeout",
                sessions(counts.over)
            );
            effects.push(effect(counts.over, true, text));
        }
        effects.extend(counts.without_policy.iter().map(|(name, count)| {
            let text = format!(
                "packets of {} are dropped (policy-missing), all of a direction: AAA has named policy {name}, which is deleted",
                sessions(*count)
            );
            effect(*count, false, text)
        }));
        effects.extend(self.moved(change));
        effects.extend(self.effects_from_now_on(plan));
        effects
    }

    /// Effects on new sessions only.
    fn effects_from_now_on(&self, plan: &Plan) -> Vec<Effect> {
        let (old, new, touched) = (&*self.configuration, &*plan.new, &plan.change.touched);
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
            say(match new.aaa.server_groups.contains_key(name) {
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
}

impl Plan {
    fn after(&self) -> View<'_> {
        View {
            configuration: &self.new,
            topology: &self.change.topology,
        }
    }

    /// Counts what changes of a session.
    fn count(&self, counts: &mut Counts, now: Now, [before, after]: [View<'_>; 2], entry: &Entry) {
        let touched = &self.change.touched;
        let profile = || after.policy_inputs(entry).profile_name();
        if touched.link_of(entry) {
            counts.add("access settings", profile());
        }
        let is_touched = touched.has_policies() && touched.policy_of(before, entry);
        if !is_touched && self.deleted.is_empty() {
            debug_assert!(
                before.evaluate(entry).0 == after.evaluate(entry).0,
                "a policy of which nothing is touched changes"
            );
            return;
        }
        let ((old, _), (new, _)) = (before.evaluate(entry), after.evaluate(entry));
        if entry.has_policy() && matches!(entry.stage, Stage::Online) {
            let settings = new.differences(&old);
            settings.for_each(|setting| counts.add(setting.label, profile()));
            counts.over += u64::from(is_over(&old.control, &new.control, entry, now));
        }
        // AAA has named it: what the configuration names is there
        self.missing(&new).for_each(|name| {
            *counts.without_policy.entry(name).or_default() += 1;
        });
    }

    /// Deleted policies that a session's policy still names.
    fn missing(&self, new: &Policy) -> impl Iterator<Item = Name> {
        let TrafficPolicies {
            policy_up,
            policy_down,
            ..
        } = &new.forwarding.policies;
        let policy_down = policy_down
            .iter()
            .filter(|down| policy_up.as_ref() != Some(down));
        let named = policy_up.iter().chain(policy_down);
        let missing = named.filter(|name| self.deleted.contains(name.as_str()));
        missing.cloned()
    }
}

impl Counts {
    fn add(&mut self, what: &'static str, profile: Option<&str>) {
        let of_what = self.settings.entry(what).or_default();
        let profile = profile.unwrap_or("(the defaults)");
        match of_what.get_mut(profile) {
            Some(count) => *count += 1,
            None => drop(of_what.insert(profile.to_owned(), 1)),
        }
    }
}

/// Whether a session has lasted longer than its new session time-out.
fn is_over(old: &ControlSettings, new: &ControlSettings, entry: &Entry, now: Now) -> bool {
    let lasts = |timeout| timeout <= entry.account.lasted(now.at);
    old.session_timeout != new.session_timeout && new.session_timeout.is_some_and(lasts)
}

/// Effect of a changed setting on the sessions of a profile.
fn changing(what: &str, profile: &str, count: u64) -> Effect {
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
