//! The subscribers of sessions, and the maximum number of their sessions.

use super::ControlPlane;
use crate::entry::{Entry, LineIds};
use crate::lanes::{Aggregate, Load};
use crate::records::Sixth;
use crate::subscribers::{Identity, StoredMember, Subscriber, Subscribers};
use crate::topology::{Aggregates, SegmentId, Seid, SubscriberId, UserPlaneId};
use aaa::AccessAccept;
use config::model::SubscriberIdentity;
use session::Circuit;

impl ControlPlane {
    /// Identity of the subscriber on an access line; `None` if the line's access profile takes the user name instead.
    pub(super) fn line_identity(
        &self,
        segment: SegmentId,
        circuit: &Circuit,
        line: &LineIds,
    ) -> Option<Identity> {
        let port = self.topology.segment(segment).port;
        match self.view().access_profile(segment).subscriber_identity {
            SubscriberIdentity::Line => Some(Identity::of_line(port, circuit, line)),
            SubscriberIdentity::UserName => None,
        }
    }

    /// Adds a session to its subscriber when AAA has accepted the user name, if that is its identity. A session that began to connect
    /// under another name leaves that one's subscriber.
    ///
    /// # Errors
    /// The subscriber has as many sessions as it may.
    pub(super) fn join_user(&mut self, index: u32) -> Result<(), String> {
        let entry = &self.sessions[index];
        let identity = Identity::User(entry.who.username.clone());
        let (segment, seid, before) = (entry.segment, entry.seid, entry.subscriber);
        let known = before.and_then(|id| self.subscribers.get(id));
        if known.is_some_and(|known| !known.identity.is_user() || known.identity == identity) {
            return Ok(());
        }
        self.check_session_limit(segment, &identity, Some(seid))?;
        if let Some(before) = before {
            self.subscribers.leave(before, seid);
        }
        let subscriber = self.subscribers.join(identity, seid);
        self.entry(index).subscriber = Some(subscriber);
        Ok(())
    }

    /// Whether the subscriber of this identity may have one more session beside its own `but`. Sessions that are ending do not count.
    pub(super) fn check_session_limit(
        &self,
        segment: SegmentId,
        identity: &Identity,
        but: Option<Seid>,
    ) -> Result<(), String> {
        let most = self.view().access_profile(segment).sessions_per_subscriber;
        let subscriber = self.subscribers.find(identity).filter(|_| most > 0);
        let sessions = subscriber.map_or(0, |subscriber| self.live_sessions(subscriber, but));
        if sessions < usize::from(most) || most == 0 {
            return Ok(());
        }
        Err(format!(
            "the subscriber {} has {sessions} sessions, and the access profile allows {most} (`sessions-per-subscriber`)",
            identity.text(&self.topology)
        ))
    }

    /// Whether the subscriber of a session may have it beside its others, by AAA's Port-Limit (RFC 2865 §5.42).
    pub(super) fn check_port_limit(&self, index: u32, accept: &AccessAccept) -> Result<(), String> {
        let Some(most) = accept.port_limit else {
            return Ok(());
        };
        let entry = &self.sessions[index];
        let own = entry.subscriber.and_then(|id| self.subscribers.get(id));
        let of_line = own.filter(|own| !own.identity.is_user());
        let of_user = || {
            let identity = Identity::User(entry.who.username.clone());
            self.subscribers.find(&identity)
        };
        let subscriber = of_line.or_else(of_user);
        let others = subscriber.map_or(0, |s| self.live_sessions(s, Some(entry.seid)));
        if others < most as usize {
            return Ok(());
        }
        Err(format!(
            "the subscriber has {others} other sessions, and AAA allows {most} (Port-Limit)"
        ))
    }

    /// Whether a session may have its user name beside others, on whichever lines these are. Only sessions that are accepted count: a name
    /// alone locks nobody out.
    pub(super) fn check_user_limit(&self, index: u32) -> Result<(), String> {
        let entry = &self.sessions[index];
        let most = self.view().access_profile(entry.segment).sessions_per_user;
        if most == 0 {
            return Ok(());
        }
        let named = self.sessions.of_user(&entry.who.username);
        let others = named.filter(|other| {
            let other = &self.sessions[*other];
            other.seid != entry.seid && other.has_policy() && !other.is_ending()
        });
        let others = others.count();
        if others < usize::from(most) {
            return Ok(());
        }
        Err(format!(
            "its user name has {others} other sessions, and the access profile allows {most} (`sessions-per-user`)"
        ))
    }

    fn live_sessions(&self, subscriber: &Subscriber, but: Option<Seid>) -> usize {
        let others = subscriber
            .sessions
            .iter()
            .filter(|seid| Some(**seid) != but);
        let found = others.filter_map(|seid| self.sessions.find(*seid));
        let live = found.filter(|index| !self.sessions[*index].is_ending());
        live.count()
    }

    /// Lane of a session of a segment that shares a rate, as a whole or each outer VLAN: that of the aggregate's other sessions, so that one
    /// worker has them all.
    pub(super) fn lane_of_aggregate(
        &self,
        plane: UserPlaneId,
        segment: SegmentId,
        circuit: &Circuit,
    ) -> Option<u8> {
        let (outer, _) = circuit.tags.vids();
        let aggregate = match self.topology.segment(segment).aggregates {
            Aggregates::None => return None,
            Aggregates::Whole => Aggregate::Segment(segment),
            Aggregates::EachVlan => Aggregate::Vlan(segment, outer),
        };
        let lanes = self.user_planes.lanes(plane);
        Some(self.sessions.lane_of_aggregate(plane, &lanes, aggregate))
    }

    /// Lane of the sessions that a subscriber has on a user plane already.
    pub(super) fn lane_of_home(&self, plane: UserPlaneId, identity: &Identity) -> Option<u8> {
        let subscriber = self.subscribers.find(identity)?;
        let sessions = subscriber.sessions.iter();
        let found = sessions.filter_map(|seid| self.sessions.find(*seid));
        let mut entries = found.map(|index| &self.sessions[index]);
        let there = entries.find(|entry| entry.user_plane == plane)?;
        Some(Load::lane(there.access))
    }

    /// Handle of a session's subscriber, and whether it is known by its user name.
    pub(super) fn known_by(&self, entry: &Entry) -> Option<(SubscriberId, bool)> {
        let id = entry.subscriber?;
        let subscriber = self.subscribers.get(id)?;
        Some((id, subscriber.identity.is_user()))
    }

    /// Session with which a session's subscriber began.
    pub(super) fn first_session(&self, entry: &Entry) -> Option<Seid> {
        let subscriber = self.subscribers.get(entry.subscriber?)?;
        Some(subscriber.first)
    }

    /// Subscriber of a stored session, with the handle that its user plane knows. In records of earlier versions each session is its own
    /// subscriber, with its index as handle; what the subscriber is known by follows from the configuration. Before version 8, it began
    /// with the first of its sessions that is stored.
    pub(super) fn stored_subscriber(
        &self,
        entry: &Entry,
        sixth: Option<Sixth>,
        first: Option<Seid>,
    ) -> Option<StoredMember> {
        let port = self.topology.segment(entry.segment).port;
        let of_line = || Identity::of_line(port, &entry.circuit, &entry.tags.line);
        let of_user = || Identity::User(entry.who.username.clone());
        let (identity, id) = match sixth {
            Some(Sixth { subscriber }) => match subscriber? {
                (id, true) => (of_user(), id),
                (id, false) => (of_line(), id),
            },
            None => {
                let line = self.line_identity(entry.segment, &entry.circuit, &entry.tags.line);
                (
                    line.unwrap_or_else(of_user),
                    SubscriberId(entry.seid.index()),
                )
            }
        };
        Some(StoredMember {
            identity,
            id,
            first: first.unwrap_or(entry.seid),
            session: entry.seid,
        })
    }

    /// Restores the subscribers of the stored sessions.
    pub(super) fn resume_subscribers(&mut self, members: Vec<StoredMember>) {
        let (subscribers, handles) = Subscribers::resume(members);
        self.subscribers = subscribers;
        for (seid, id) in handles {
            self.entry(seid.index()).subscriber = Some(id);
        }
    }

    /// Removes a session from its subscriber.
    pub(super) fn leave_subscriber(&mut self, entry: &Entry) {
        if let Some(subscriber) = entry.subscriber {
            self.subscribers.leave(subscriber, entry.seid);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::world::{Choice, World};

    #[test]
    fn a_session_that_is_accepted_under_another_name_is_another_subscribers() {
        let mut w = World::new(2, Choice::default());
        w.configure(&["set access-profiles pppoe subscriber-identity user-name"])
            .unwrap();
        w.dial_all();
        let plane = &mut w.plane;
        let before = plane.sessions[0].subscriber;
        plane.sessions.set_user(0, b"home1".as_slice().into());
        plane.join_user(0).unwrap();
        assert_eq!(plane.sessions[0].subscriber, plane.sessions[1].subscriber);
        assert_ne!(plane.sessions[0].subscriber, before);
        assert!(plane.ledger().is_balanced());
        assert_eq!(plane.subscribers.members().count(), 2);
    }
}
