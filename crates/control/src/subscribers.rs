//! Subscribers: homes with one or several sessions, each known by its access line or its user name.

use crate::entry::LineIds;
use crate::finder::Finder;
use crate::topology::{PortId, Seid, SubscriberId, Topology};
use session::Circuit;
use slab::Slab;
use std::collections::{BTreeMap, HashMap};
use wire::eth::MacAddr;

/// What a subscriber is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// Circuit and remote id, which the access node of the port adds (TR-101).
    Circuit(PortId, Box<LineIds>),
    /// Outer and inner VLAN id: the access node gives each line its own (1:1 VLANs of TR-101).
    Vlans(PortId, u16, u16),
    /// MAC address behind an outer VLAN id that several lines share, or behind none.
    Mac(PortId, Option<u16>, MacAddr),
    /// User name, as authenticated.
    User(Box<[u8]>),
}

impl Identity {
    /// Identity by an access line of a port.
    pub fn of_line(port: PortId, circuit: &Circuit, line: &LineIds) -> Self {
        let ids = [&line.circuit_id, &line.remote_id].map(Option::as_deref);
        match LineText::of(ids, circuit.tags.vids().into(), circuit.mac) {
            LineText::Circuit(_) => Identity::Circuit(port, line.clone().into()),
            LineText::Vlans(outer, inner) => Identity::Vlans(port, outer, inner),
            LineText::Mac(outer, mac) => Identity::Mac(port, outer, mac),
        }
    }

    /// Whether it is a user name.
    pub fn is_user(&self) -> bool {
        matches!(self, Identity::User(_))
    }

    /// Text for operators: `up1/access0.100.7`.
    pub fn text(&self, topology: &Topology) -> String {
        let at = |port: PortId| {
            let port = topology.port(port);
            let user_plane = &topology.user_plane(port.user_plane).node_id;
            format!("{user_plane}/{}", port.name)
        };
        match self {
            Identity::Circuit(port, line) => {
                let ids = [&line.circuit_id, &line.remote_id];
                LineText::Circuit(ids.map(Option::as_deref)).at(&at(*port))
            }
            Identity::Vlans(port, outer, inner) => LineText::Vlans(*outer, *inner).at(&at(*port)),
            Identity::Mac(port, outer, mac) => LineText::Mac(*outer, *mac).at(&at(*port)),
            Identity::User(name) => name.escape_ascii().to_string(),
        }
    }
}

/// An access line of a port, as operators read it.
pub(crate) enum LineText<'a> {
    /// Circuit and remote id.
    Circuit([Option<&'a [u8]>; 2]),
    /// Outer and inner VLAN id.
    Vlans(u16, u16),
    /// Outer VLAN id and MAC address.
    Mac(Option<u16>, MacAddr),
}

impl<'a> LineText<'a> {
    /// The line of these ids.
    pub fn of(ids: [Option<&'a [u8]>; 2], vlans: [Option<u16>; 2], mac: MacAddr) -> Self {
        match vlans {
            _ if ids.iter().any(Option::is_some) => LineText::Circuit(ids),
            [Some(outer), Some(inner)] => LineText::Vlans(outer, inner),
            [outer, _] => LineText::Mac(outer, mac),
        }
    }

    /// Its text on a port, such as `up1/access0`.
    pub fn at(&self, port: &str) -> String {
        match self {
            LineText::Circuit(ids) => {
                let ids = ids.iter().flatten();
                let ids: Vec<String> = ids.map(|id| id.escape_ascii().to_string()).collect();
                format!("{} at {port}", ids.join(" "))
            }
            LineText::Vlans(outer, inner) => format!("{port}.{outer}.{inner}"),
            LineText::Mac(Some(outer), mac) => format!("{mac} at {port}.{outer}"),
            LineText::Mac(None, mac) => format!("{mac} at {port}"),
        }
    }
}

/// Subscriber. It exists as long as it has a session.
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// What it is known by.
    pub identity: Identity,
    /// The session with which it began. Its id stands for the subscriber in accounting records (Acct-Multi-Session-Id, RFC 2866 §5.11):
    /// it is unique across restarts, other than the handle.
    pub first: Seid,
    /// Its sessions in the order in which they joined, including those that are ending.
    pub sessions: Vec<Seid>,
}

impl Subscriber {
    /// One without a session yet.
    fn new(identity: Identity, first: Seid) -> Box<Self> {
        Box::new(Subscriber {
            identity,
            first,
            sessions: Vec::with_capacity(1), // most have no other
        })
    }
}

/// Subscriber of a stored session.
#[derive(Debug)]
pub(crate) struct StoredMember {
    pub identity: Identity,
    /// Handle that the session's user plane knows.
    pub id: SubscriberId,
    /// [`Subscriber::first`].
    pub first: Seid,
    pub session: Seid,
}

/// All subscribers.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    // boxed, so that the room for further ones is small
    all: Slab<Box<Subscriber>>,
    by_identity: Finder,
}

impl Subscribers {
    /// Subscribers of stored sessions, with the handles that their user planes know. A handle that another identity has is replaced;
    /// the second result has the handle of each session.
    pub fn resume(
        members: impl IntoIterator<Item = StoredMember>,
    ) -> (Self, HashMap<Seid, SubscriberId>) {
        let mut found: BTreeMap<u32, Box<Subscriber>> = BTreeMap::new();
        let mut by_identity = Finder::default();
        let (mut handles, mut others) = (HashMap::new(), Vec::new());
        for member in members {
            let StoredMember {
                identity,
                id: stored,
                first,
                session,
            } = member;
            let is_its = |id: &u32| found.get(id).is_some_and(|own| own.identity == identity);
            let known = by_identity.of(&identity).find(is_its);
            let id = known.unwrap_or(stored.0);
            if known.is_none() && found.contains_key(&id) {
                others.push((identity, first, session));
                continue;
            }
            by_identity.insert(&identity, id);
            let subscriber = found
                .entry(id)
                .or_insert_with(|| Subscriber::new(identity, first));
            subscriber.sessions.push(session);
            handles.insert(session, SubscriberId(id));
        }
        let all = found.into_iter().map(|(id, s)| (id as usize, s)).collect();
        let mut subscribers = Subscribers { all, by_identity };
        for (identity, first, session) in others {
            handles.insert(session, subscribers.add(identity, first, session));
        }
        (subscribers, handles)
    }

    /// Adds a session to the subscriber of this identity.
    pub fn join(&mut self, identity: Identity, session: Seid) -> SubscriberId {
        self.add(identity, session, session)
    }

    /// Adds a session to the subscriber of this identity; one that is new began with `first`.
    fn add(&mut self, identity: Identity, first: Seid, session: Seid) -> SubscriberId {
        let id = match self.id_of(&identity) {
            Some(id) => id,
            None => {
                let id = self.all.vacant_key() as u32;
                self.by_identity.insert(&identity, id);
                self.all.insert(Subscriber::new(identity, first));
                SubscriberId(id)
            }
        };
        let sessions = &mut self.all[id.0 as usize].sessions;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
        id
    }

    fn id_of(&self, identity: &Identity) -> Option<SubscriberId> {
        let mut found = self.by_identity.of(identity);
        let id = found.find(|id| self.all[*id as usize].identity == *identity);
        id.map(SubscriberId)
    }

    /// Removes a session from its subscriber. Without a session the subscriber ends, and its handle is free.
    pub fn leave(&mut self, id: SubscriberId, session: Seid) {
        let Some(subscriber) = self.all.get_mut(id.0 as usize) else {
            return;
        };
        subscriber.sessions.retain(|own| *own != session);
        if subscriber.sessions.is_empty() {
            let subscriber = self.all.remove(id.0 as usize);
            self.by_identity.remove(&subscriber.identity, id.0);
        }
    }

    /// The subscriber of a handle.
    pub fn get(&self, id: SubscriberId) -> Option<&Subscriber> {
        self.all.get(id.0 as usize).map(|subscriber| &**subscriber)
    }

    /// The subscriber of an identity.
    pub fn find(&self, identity: &Identity) -> Option<&Subscriber> {
        self.get(self.id_of(identity)?)
    }

    /// Each session with its subscriber.
    pub fn members(&self) -> impl Iterator<Item = (SubscriberId, Seid)> {
        self.all.iter().flat_map(|(id, subscriber)| {
            let sessions = subscriber.sessions.iter();
            sessions.map(move |session| (SubscriberId(id as u32), *session))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Identity {
        Identity::User(name.as_bytes().into())
    }

    fn sessions(subscribers: &Subscribers, identity: &Identity) -> Vec<u64> {
        let found = subscribers.find(identity).map(|s| &s.sessions[..]);
        found
            .unwrap_or_default()
            .iter()
            .map(|seid| seid.0)
            .collect()
    }

    #[test]
    fn a_subscriber_lasts_as_long_as_one_of_its_sessions() {
        let mut subscribers = Subscribers::default();
        let alice = subscribers.join(user("alice"), Seid(1));
        let bob = subscribers.join(user("bob"), Seid(2));
        assert_ne!(alice, bob);
        assert_eq!(subscribers.join(user("alice"), Seid(3)), alice);
        assert_eq!(subscribers.join(user("alice"), Seid(3)), alice);
        assert_eq!(sessions(&subscribers, &user("alice")), [1, 3]);
        subscribers.leave(alice, Seid(1));
        subscribers.leave(alice, Seid(1));
        assert_eq!(sessions(&subscribers, &user("alice")), [3]);
        subscribers.leave(alice, Seid(3));
        assert!(subscribers.find(&user("alice")).is_none());
        assert_eq!(subscribers.members().collect::<Vec<_>>(), [(bob, Seid(2))]);
        let carol = subscribers.join(user("carol"), Seid(4));
        assert_eq!(carol, alice, "its handle is free");
    }

    #[test]
    fn handles_are_those_of_before_unless_somebody_else_has_them() {
        let stored = [
            ("alice", 7, 101, 1),
            ("bob", 7, 2, 2),
            ("carol", 3, 3, 3),
            ("alice", 9, 4, 4),
        ];
        let stored = stored.map(|(name, id, first, session)| StoredMember {
            identity: user(name),
            id: SubscriberId(id),
            first: Seid(first),
            session: Seid(session),
        });
        let (mut subscribers, handles) = Subscribers::resume(stored);
        assert_eq!(handles[&Seid(1)], SubscriberId(7));
        assert_eq!(handles[&Seid(3)], SubscriberId(3));
        assert_eq!(handles[&Seid(4)], SubscriberId(7), "one subscriber has one");
        assert!(![3, 7].contains(&handles[&Seid(2)].0));
        assert_eq!(sessions(&subscribers, &user("alice")), [1, 4]);
        assert_eq!(sessions(&subscribers, &user("bob")), [2]);
        let first = |name| subscribers.find(&user(name)).map(|s| s.first.0);
        assert_eq!((first("alice"), first("bob")), (Some(101), Some(2)));
        subscribers.leave(handles[&Seid(2)], Seid(2));
        assert_eq!(subscribers.members().count(), 3);
    }
}
