//! Retired objects: those that the configuration no longer contains. They are removed when nothing refers to them.
//!
//! Their sessions end first. Then the default session of a port is closed, and the association with a user plane is released. Only then
//! their numbers, which sessions and user planes used, are free.

use super::persist::user_plane_key;
use super::{ControlPlane, Now};
use crate::counters::Counter;
use crate::entry::{Entry, Stage};
use crate::store::Record as StoreRecord;
use crate::topology::{GroupId, PortId, SegmentId, Seid, UserPlaneId};
use core::time::Duration;
use session::Cause;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the author in events of sessions that a configuration change ends.
pub(super) const OF_CONFIGURATION: &str = "the configuration";
/// Interval of checks of retired objects.
const LOOK: Duration = Duration::from_secs(1);
/// Interval of checks when only server groups are retired. They may wait for ever for records that no server accepts.
const LOOK_AT_GROUPS: Duration = Duration::from_secs(60);
/// Time in which a retired user plane must delete its sessions.
const FAREWELL: Duration = Duration::from_secs(30);

/// Retired objects.
#[derive(Default)]
pub(super) struct Retirement {
    /// Time of the next check.
    pub look_at: Option<Duration>,
    /// Retired user planes, with the end of their time.
    leaving: BTreeMap<UserPlaneId, Duration>,
    /// Sessions that the configuration has ended and that their user planes may still have.
    ended: BTreeMap<UserPlaneId, Vec<Seid>>,
}

impl ControlPlane {
    /// Ends the sessions of before that the configuration no longer has a place or a user for, and starts the checks of retired objects.
    pub(super) fn end_without_place(&mut self, now: Now) {
        let is_over = |entry: &Entry| {
            !entry.is_closing() && !self.topology.has_place(entry.segment, entry.s_vlan())
                || !entry.is_ending() && self.view().is_user_gone(entry)
        };
        let over = self.sessions.iter().filter(|(_, entry)| is_over(entry));
        let over: Vec<u32> = over.map(|(index, _)| index).collect();
        for index in over {
            if self.sessions.get(index).is_some() {
                self.end_for_configuration(now, index);
            }
        }
        self.arm_retirement(now);
    }

    /// Ends a session that the configuration no longer has a place or a user for.
    pub(super) fn end_for_configuration(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        entry.under_way.ended_by = Some(OF_CONFIGURATION.into());
        let (plane, seid) = (entry.user_plane, entry.seid);
        self.retirement.ended.entry(plane).or_default().push(seid);
        self.end(now, index, Cause::AdminReset);
    }

    /// Whether reachable user planes still have ports or sessions that their next document does not contain.
    pub fn is_retiring(&mut self) -> bool {
        let sessions = &self.sessions;
        self.retirement.ended.retain(|_, ended| {
            while ended
                .pop_if(|seid| sessions.find(*seid).is_none())
                .is_some()
            {}
            !ended.is_empty()
        });
        let answers = |plane: UserPlaneId| {
            self.user_planes.is_up(plane) && !self.topology.user_plane(plane).retired
        };
        let mut ports = self.topology.ports();
        self.rollout.displaces()
            || ports.any(|(_, port)| port.retired && answers(port.user_plane))
            || self.retirement.ended.keys().any(|plane| answers(*plane))
    }

    pub(super) fn arm_retirement(&mut self, now: Now) {
        let groups = self.aaa.has_retired(&self.configuration);
        let groups = groups.then_some(LOOK_AT_GROUPS);
        let next = self.topology.has_retired().then_some(LOOK).or(groups);
        self.retirement.look_at = next.map(|next| now.at + next);
    }

    /// Removes retired objects without references.
    pub(super) fn look_at_retired(&mut self, now: Now) {
        if self.topology.has_retired() {
            self.look_at_places(now);
        }
        if self.aaa.has_retired(&self.configuration) {
            self.update_aaa(now, &[]);
        }
        self.persist_numbers();
        self.arm_retirement(now);
    }

    fn look_at_places(&mut self, now: Now) {
        let planes = self
            .topology
            .user_planes()
            .filter(|(_, plane)| plane.retired);
        let planes: Vec<UserPlaneId> = planes.map(|(id, _)| id).collect();
        self.retirement
            .leaving
            .retain(|plane, _| planes.contains(plane));
        planes
            .into_iter()
            .for_each(|plane| self.see_off(now, plane));
        self.close_ports(now);
        self.forget_groups_and_segments();
    }

    /// Removes a retired user plane after its last session, or at the end of its time.
    fn see_off(&mut self, now: Now, plane: UserPlaneId) {
        let until = *self
            .retirement
            .leaving
            .entry(plane)
            .or_insert(now.at + FAREWELL);
        if self.sessions.on_user_plane(plane) > 0 && now.at < until {
            return;
        }
        let mut unheard = 0u64;
        for index in self.sessions_of(plane) {
            if !matches!(self.entry(index).stage, Stage::Closing(_)) {
                self.release(now, index, Cause::AdminReset);
            }
            if self.sessions.get(index).is_some() {
                self.counters.count(Counter::TakenOutUnheard);
                unheard += 1;
                self.entry(index).rules.establishing = false;
                self.finish(now, index);
            }
        }
        let name = self.topology.user_plane(plane).node_id.clone();
        match unheard {
            0 => tracing::info!(user_plane = %name, "user plane is removed"),
            sessions => tracing::warn!(
                user_plane = %name, sessions,
                "user plane is removed without its sessions' last counters: usage since the last report is in no accounting \
                    record"
            ),
        }
        self.pass_blocks_on(now, plane);
        self.user_planes.remove(now.at, plane, &self.topology);
        self.audits.remove(&plane);
        self.audit_over(now, plane);
        self.topology.remove_user_plane(plane);
        self.retirement.leaving.remove(&plane); // its number may be another's soon, who has time of its own
        self.journal.add(StoreRecord::delete(user_plane_key(&name)));
    }

    fn close_ports(&mut self, now: Now) {
        let retired = self.topology.ports().filter(|(_, port)| port.retired);
        let retired: BTreeSet<PortId> = retired.map(|(id, _)| id).collect();
        let places = self.sessions.places();
        let used = places.map(|(segment, _)| self.topology.segment(segment).port);
        let used: BTreeSet<PortId> = used.collect();
        for id in retired.difference(&used) {
            let plane = self.topology.port(*id).user_plane;
            let groups = || {
                self.topology
                    .groups()
                    .filter(|(_, g)| g.user_plane == plane)
            };
            let carried = groups().any(|(_, group)| group.carrier == *id);
            let told = groups()
                .filter(|(_, group)| group.carrier != *id)
                .all(|(group, _)| self.user_planes.is_told(group));
            // what it announced of a group is announced by another port before it is closed
            if !self.user_planes.is_up(plane) || !carried && !told {
                continue;
            }
            if !self.user_planes.close_port(now.at, *id, &self.topology) {
                self.topology.remove_port(*id);
            }
        }
    }

    fn forget_groups_and_segments(&mut self) {
        let used = self.sessions.places().map(|(_, group)| group);
        // a session of another group may have an address of one of its nets
        let lending = self.addresses.lent_nets().map(|(group, _)| group);
        let used: BTreeSet<GroupId> = used.chain(lending).collect();
        let groups = self.topology.groups().filter(|(id, group)| {
            group.retired && !used.contains(id) && self.user_planes.is_told(*id)
        });
        let groups: Vec<GroupId> = groups.map(|(id, _)| id).collect();
        for group in groups {
            self.user_planes.forget_group(group);
            self.topology.remove_group(group);
        }
        let places = self.sessions.places();
        let used: BTreeSet<SegmentId> = places.map(|(segment, _)| segment).collect();
        let segments = self.topology.segments();
        let segments = segments.filter(|(id, segment)| segment.retired && !used.contains(id));
        let segments: Vec<SegmentId> = segments.map(|(id, _)| id).collect();
        segments
            .into_iter()
            .for_each(|id| self.topology.remove_segment(id));
        let there: BTreeSet<SegmentId> = self.topology.segments().map(|(id, _)| id).collect();
        self.session_ids
            .retain(|segment, _| there.contains(segment));
    }
}
