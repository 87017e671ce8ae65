//! Sessions of the configured users: they follow the users' entries as long as they last, and end with them.

use super::change::{Touched, effect, sessions};
use super::profiles::View;
use super::{ControlPlane, Effect};
use crate::addresses::Kind;
use crate::entry::Entry;
use config::Configuration;
use config::model::User;
use std::collections::BTreeSet;

impl<'a> View<'a> {
    /// Configured user of a session, if the configured users accepted it and still have it.
    pub fn user(&self, entry: &Entry) -> Option<&'a User> {
        let name = str::from_utf8(&entry.who.username);
        let name = name.ok().filter(|_| entry.accepted_by.is_user());
        name.and_then(|name| self.configuration.users.get(name))
    }

    /// Whether the configured users accepted a session, and no longer have it.
    pub fn is_user_gone(&self, entry: &Entry) -> bool {
        entry.accepted_by.is_user() && self.user(entry).is_none()
    }
}

impl ControlPlane {
    /// Pools from which a session gets addresses of a kind, in order. Without names, IPv4 addresses and prefixes of links are of every
    /// pool of its network instance.
    pub(super) fn own_pools<'a>(&'a self, entry: &'a Entry, kind: Kind) -> &'a [String] {
        let profile = self.subscriber_profile(entry);
        let user = self.view().user(entry);
        let of_profile = match kind {
            Kind::Ipv4Address => &profile.ipv4_pools,
            Kind::Link => &profile.ipv6_pools,
            Kind::Delegated => &profile.delegated_pools,
            Kind::Ipv6Address => &profile.ipv6_address_pools,
        };
        let own = user.map(|user| match kind {
            Kind::Ipv4Address => &user.ipv4_pools,
            Kind::Link => &user.ipv6_pools,
            Kind::Delegated => &user.delegated_pools,
            Kind::Ipv6Address => &user.ipv6_address_pools,
        });
        own.filter(|own| !own.is_empty()).unwrap_or(of_profile)
    }

    /// Effect of a configuration that lacks users who have sessions.
    pub(super) fn deleted_users(&self, touched: &Touched, new: &Configuration) -> Option<Effect> {
        let deleted = touched.users.iter();
        let deleted = deleted.filter(|name| !new.users.contains_key(*name));
        let sessions_of = |name: &String| {
            let indexes = self.sessions.of_user(name.as_bytes());
            let of_user = indexes.map(|index| &self.sessions[index]);
            let stay = of_user.filter(|e| !e.is_ending() && e.accepted_by.is_user());
            stay.count() as u64
        };
        let online = deleted.map(|name| (name, sessions_of(name)));
        let online: Vec<(&String, u64)> = online.filter(|(_, count)| *count > 0).collect();
        let whose = match online[..] {
            [] => return None,
            [(name, _)] => format!("user {}, who is", name.as_bytes().escape_ascii()),
            ref users => format!("{} users, who are", users.len()),
        };
        let count = online.iter().map(|(_, count)| count).sum();
        let verb = if count == 1 { "ends" } else { "end" };
        let text = format!("{} of {whose} deleted, {verb}", sessions(count));
        Some(effect(count, true, text))
    }
}

/// Says what a change of users means for those who connect from now on.
pub(super) fn say_changed(
    names: &BTreeSet<String>,
    old: &Configuration,
    new: &Configuration,
    mut say: impl FnMut(String),
) {
    let is_in = |of: &Configuration, name: &str| of.users.contains_key(name);
    let mut of_kind = |is: &dyn Fn(&str) -> bool, what: &str| {
        let who = match names.iter().filter(|name| is(name)).collect::<Vec<_>>()[..] {
            [] => return,
            [name] => format!("user {name}"),
            ref users => format!("{} users", users.len()),
        };
        say(format!("{who} {what}"));
    };
    of_kind(&|name| !is_in(old, name), "added");
    of_kind(&|name| !is_in(new, name), "deleted");
    of_kind(
        &|name| is_in(old, name) && is_in(new, name),
        "changed: a new password, pools, routes and fixed addresses apply to new sessions, all else now",
    );
}
