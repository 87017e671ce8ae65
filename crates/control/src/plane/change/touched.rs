//! What differs between two configurations, so that a change looks at no session for which nothing does.

use super::changed;
use crate::entry::Entry;
use crate::evaluate::keepalive;
use crate::plane::profiles::View;
use crate::topology::{SegmentId, Topology};
use config::Configuration;
use std::collections::BTreeSet;

/// What a change touches of what is made for sessions.
pub(super) struct Touched<'a> {
    /// Segments whose access profile says something else of links.
    links: BTreeSet<SegmentId>,
    /// Segments whose access profile says something else of policies.
    segments: BTreeSet<SegmentId>,
    /// Subscriber profiles.
    pub profiles: BTreeSet<&'a str>,
    pub server_groups: BTreeSet<&'a str>,
    pub users: BTreeSet<&'a str>,
}

impl<'a> Touched<'a> {
    /// What differs from one to the other.
    pub fn between(configurations: [&'a Configuration; 2], topologies: [&Topology; 2]) -> Self {
        let [old, new] = configurations;
        let views = [0, 1].map(|one| View {
            configuration: configurations[one],
            topology: topologies[one],
        });
        let [before, after] = views;
        let segments = || before.topology.segments().map(|(id, _)| id);
        let says_else = |id: &SegmentId| {
            let [was, is] = views.map(|view| view.access_profile(*id));
            was.service_profiles != is.service_profiles
                || was.subscriber_profile != is.subscriber_profile
                || keepalive(was) != keepalive(is)
        };
        let links_else = |id: &SegmentId| before.link_settings(*id) != after.link_settings(*id);
        Touched {
            links: segments().filter(links_else).collect(),
            segments: segments().filter(says_else).collect(),
            profiles: changed(&old.subscriber_profiles, &new.subscriber_profiles),
            server_groups: changed(&old.aaa.server_groups, &new.aaa.server_groups),
            users: changed(&old.users, &new.users),
        }
    }

    /// Nothing of any session.
    pub fn is_nothing(&self) -> bool {
        self.links.is_empty()
            && self.segments.is_empty()
            && self.profiles.is_empty()
            && self.server_groups.is_empty()
            && self.users.is_empty()
    }

    /// Whether a session's link has other settings.
    pub fn link_of(&self, entry: &Entry) -> bool {
        self.links.contains(&entry.segment)
    }

    /// Whether a session's policy may be another one. `before`: what was in force.
    pub fn policy_of(&self, before: View<'_>, entry: &Entry) -> bool {
        let has = |names: &BTreeSet<&str>, name: Option<&str>| {
            name.is_some_and(|name| names.contains(name))
        };
        self.segments.contains(&entry.segment)
            || has(&self.users, str::from_utf8(&entry.who.username).ok())
            || has(&self.server_groups, entry.servers.as_deref())
            || !self.profiles.is_empty()
                && has(&self.profiles, before.policy_inputs(entry).profile_name())
    }
}
