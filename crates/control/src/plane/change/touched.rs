//! What differs between two configurations, so that a change looks at no session for which nothing does.

use super::changed;
use crate::entry::Entry;
use crate::evaluate::keepalive;
use crate::plane::profiles::View;
use crate::topology::{PortId, SegmentId, Topology, UserPlaneId};
use config::Configuration;
use std::collections::{BTreeMap, BTreeSet};

/// What a change touches of what is made for sessions.
#[derive(Debug, Default)]
pub(in crate::plane) struct Touched {
    /// Segments whose sessions, or some of them, lose their place.
    pub places: BTreeSet<SegmentId>,
    /// Access ports that get other devices, with the generation of the last session before.
    pub replaced: BTreeMap<PortId, u64>,
    /// Segments whose access profile says something else of links.
    links: BTreeSet<SegmentId>,
    /// Segments whose access profile says something else of policies.
    segments: BTreeSet<SegmentId>,
    /// Subscriber profiles.
    pub profiles: BTreeSet<String>,
    pub server_groups: BTreeSet<String>,
    pub users: BTreeSet<String>,
    /// User planes whose sessions may have missed a change.
    user_planes: BTreeSet<UserPlaneId>,
}

impl Touched {
    /// What differs from one to the other; `last` is the generation of the last session.
    pub fn between([old, new]: [&Configuration; 2], [was, is]: [&Topology; 2], last: u64) -> Self {
        let before = View {
            configuration: old,
            topology: was,
        };
        let after = View {
            configuration: new,
            topology: is,
        };
        let segments = || was.segments().map(|(id, _)| id);
        let says_else = |id: &SegmentId| {
            let (was, is) = (before.access_profile(*id), after.access_profile(*id));
            was.service_profiles != is.service_profiles
                || was.subscriber_profile != is.subscriber_profile
                || keepalive(was) != keepalive(is)
        };
        let links_else = |id: &SegmentId| before.link_settings(*id) != after.link_settings(*id);
        let replaced = is.replaced_ports(was).into_iter();
        Touched {
            places: is.lost_places(was),
            replaced: replaced.map(|port| (port, last)).collect(),
            links: segments().filter(links_else).collect(),
            segments: segments().filter(says_else).collect(),
            profiles: owned(changed(&old.subscriber_profiles, &new.subscriber_profiles)),
            server_groups: owned(changed(&old.aaa.server_groups, &new.aaa.server_groups)),
            users: owned(changed(&old.users, &new.users)),
            user_planes: BTreeSet::new(),
        }
    }

    /// The sessions of a user plane that was away.
    pub fn user_plane(id: UserPlaneId) -> Self {
        Touched {
            user_planes: [id].into(),
            ..Touched::default()
        }
    }

    /// Adds what another change touches.
    pub fn add(&mut self, mut other: Touched) {
        self.places.append(&mut other.places);
        self.replaced.append(&mut other.replaced);
        self.links.append(&mut other.links);
        self.segments.append(&mut other.segments);
        self.profiles.append(&mut other.profiles);
        self.server_groups.append(&mut other.server_groups);
        self.users.append(&mut other.users);
        self.user_planes.append(&mut other.user_planes);
    }

    /// Nothing of any session.
    pub fn is_nothing(&self) -> bool {
        self.places.is_empty() && self.links.is_empty() && !self.has_policies()
    }

    /// Whether sessions may have to end: those that lose their place, or their user.
    pub fn may_end(&self) -> bool {
        !self.places.is_empty() || !self.users.is_empty()
    }

    /// Something of which policies are made.
    pub fn has_policies(&self) -> bool {
        let names = [&self.profiles, &self.server_groups, &self.users];
        !self.segments.is_empty()
            || !self.user_planes.is_empty()
            || names.iter().any(|names| !names.is_empty())
    }

    /// Whether a session has lost its place in the topology of now.
    pub fn displaces(&self, topology: &Topology, entry: &Entry) -> bool {
        let before = |port| {
            let last = self.replaced.get(&port);
            last.is_some_and(|last| entry.seid.generation() <= *last)
        };
        self.places.contains(&entry.segment)
            && (!topology.has_place(entry.segment, entry.s_vlan())
                || before(topology.segment(entry.segment).port))
    }

    /// Whether a session's link has other settings.
    pub fn link_of(&self, entry: &Entry) -> bool {
        self.links.contains(&entry.segment)
    }

    /// Whether a session's policy may be another one. `view`: what was in force, or what is now.
    pub fn policy_of(&self, view: View<'_>, entry: &Entry) -> bool {
        let has = |names: &BTreeSet<String>, name: Option<&str>| {
            name.is_some_and(|name| names.contains(name))
        };
        self.segments.contains(&entry.segment)
            || self.user_planes.contains(&entry.user_plane)
            || has(&self.users, str::from_utf8(&entry.who.username).ok())
            || has(&self.server_groups, entry.servers.as_deref())
            || !self.profiles.is_empty()
                && has(&self.profiles, view.policy_inputs(entry).profile_name())
    }
}

fn owned(names: BTreeSet<&str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}
