//! Finds subscribers by user name, id, MAC address or IP address.

use super::ControlPlane;
use super::call::FILTERED;
use crate::addresses::Net;
use crate::entry::{Entry, Stage};
use crate::history::{Subject, other_bindings};
use crate::plane::Now;
use crate::topology::{AccessLine, Seid, SubscriberId};
use northbound::{FindSubscriberResponse, PolicySetting, SubscriberState};
use session::Phase;
use std::collections::{BTreeSet, HashSet};

/// Maximum number of sessions of a subscriber, and of similar names, in an answer.
const MOST: usize = 64;
const MOST_SIMILAR: usize = 5;

/// Sessions of a part with their access lines, and the place to go on from.
pub(crate) type Lines = (Vec<(Seid, AccessLine)>, Option<usize>);

impl ControlPlane {
    /// Sessions of a subscriber; without a session, names that are similar to the requested one. Where no index leads to the sessions, these are
    /// those of the next [`FILTERED`] from a place on, and where to go on is said. [`Found`] puts such parts together.
    pub(super) fn find_subscriber(
        &self,
        now: Now,
        text: &str,
        from: usize,
    ) -> (FindSubscriberResponse, Option<usize>) {
        let subject = Subject::parse(text);
        let known: Vec<&Entry> = match from {
            0 => self.known(&subject).collect(),
            _ => Vec::new(),
        };
        let (found, visited) = match known.is_empty() {
            true => {
                let visited: Vec<(u32, &Entry)> = self.looked_at(from).collect();
                let is = |entry: &&Entry| self.is_subject(&subject, entry);
                let found = visited.iter().map(|(_, entry)| *entry).filter(is);
                (found.collect(), visited)
            }
            false => (known, Vec::new()),
        };
        let similar = match found.is_empty() {
            true => self.similar_names(text, &visited, from == 0),
            false => Vec::new(),
        };
        let states = self.with_siblings(found.into_iter()).take(MOST);
        let states = states.map(|(entry, sibling)| SubscriberState {
            sibling,
            ..self.subscriber_state(now, entry)
        });
        let response = FindSubscriberResponse {
            subscribers: states.collect(),
            similar,
            network_instances: self.topology.instances().count() as u32,
            is_user: self.configuration.users.contains_key(text),
        };
        let last = visited.last().filter(|_| visited.len() == FILTERED);
        (response, last.map(|(index, _)| *index as usize + 1))
    }

    /// Sessions with the other sessions of their subscribers, which are marked.
    fn with_siblings<'a>(
        &'a self,
        found: impl Iterator<Item = &'a Entry>,
    ) -> impl Iterator<Item = (&'a Entry, bool)> {
        let found: Vec<&Entry> = found.take(MOST).collect();
        let own: HashSet<Seid> = found.iter().map(|entry| entry.seid).collect();
        let subscribers: BTreeSet<SubscriberId> =
            found.iter().filter_map(|entry| entry.subscriber).collect();
        let subscribers = subscribers.into_iter();
        let sessions = subscribers.filter_map(|id| self.subscribers.get(id));
        let sessions = sessions.flat_map(|subscriber| subscriber.sessions.iter().copied());
        let others = sessions.filter(move |seid| !own.contains(seid));
        let others = others.filter_map(|seid| self.sessions.find(seid));
        let others = others.map(|index| (&self.sessions[index], true));
        found.into_iter().map(|entry| (entry, false)).chain(others)
    }

    /// Sessions that an index leads to: that of an id, and those of a user name.
    fn known(&self, subject: &Subject) -> impl Iterator<Item = &Entry> {
        let with_id = subject
            .session()
            .and_then(|id| self.sessions.find(Seid(id)));
        let of_users = subject.names().flat_map(|name| self.sessions.of_user(name));
        let known = with_id.into_iter().chain(of_users);
        known.map(|index| &self.sessions[index])
    }

    fn is_subject(&self, subject: &Subject, entry: &Entry) -> bool {
        let bindings = entry.policy.forwarding.bindings.iter();
        subject.is(&self.named(entry), bindings)
    }

    /// Sessions that match, with their access lines. Where no index leads to them, these are those of the next [`FILTERED`] from a place on,
    /// and where to go on is said.
    pub(crate) fn lines_of(&self, subject: &Subject, from: usize) -> Lines {
        let line = |entry: &Entry| (entry.seid, self.access_line(entry));
        let known: Vec<_> = self.known(subject).map(line).collect();
        if !known.is_empty() {
            return (known, None);
        }
        let visited: Vec<(u32, &Entry)> = self.looked_at(from).collect();
        let entries = visited.iter().map(|(_, entry)| *entry);
        let found = entries.filter(|entry| self.is_subject(subject, entry));
        let last = visited.last().filter(|_| visited.len() == FILTERED);
        let next = last.map(|(index, _)| *index as usize + 1);
        (found.map(line).collect(), next)
    }

    fn subscriber_state(&self, now: Now, entry: &Entry) -> SubscriberState {
        let text = |octets: &Option<Box<[u8]>>| {
            let octets = octets.as_deref();
            octets.map(|octets| octets.escape_ascii().to_string())
        };
        let started = entry.account.started;
        SubscriberState {
            session: Some(self.session_row(now, entry)),
            circuit_id: text(&entry.tags.line.circuit_id),
            remote_id: text(&entry.tags.line.remote_id),
            dialled_at: Some(entry.noted.dialled.into()).filter(|at| *at > 0),
            online_since: started.map(|started| started.unix.into()),
            phase: phase(entry).into(),
            server_group: entry.servers.as_deref().map(str::to_owned),
            profile: self
                .view()
                .policy_inputs(entry)
                .profile_name()
                .map(str::to_owned),
            pools: self.pools_of(entry),
            mtu: entry.policy.forwarding.packets.largest_packet().into(),
            on_user_plane: entry.rules.up_seid.is_some(),
            other_bindings: other_bindings(&entry.policy.forwarding.bindings),
            sibling: false,
            policy: match entry.has_policy() {
                true => self.policy_rows(entry),
                false => Vec::new(),
            },
        }
    }

    /// Settings of the policy in force, with the proposed value where it differs.
    fn policy_rows(&self, entry: &Entry) -> Vec<PolicySetting> {
        let (wanted, origins) = self.view().evaluate(entry);
        let wanted = wanted.rows(&origins).into_iter();
        let rows = entry.policy.rows(&origins).into_iter().zip(wanted);
        rows.map(|(row, wanted)| PolicySetting {
            name: row.setting.name.into(),
            label: row.setting.label.into(),
            origin: row.origin.name().into(),
            wanted: Some(wanted.value).filter(|wanted| *wanted != row.value),
            value: row.value,
        })
        .collect()
    }

    /// Pools of a session's addresses.
    fn pools_of(&self, entry: &Entry) -> Vec<String> {
        let bindings = entry.policy.forwarding.bindings.iter();
        let pools = bindings.filter_map(|binding| {
            let (instance, net) = (entry.instance, binding.prefix);
            self.addresses.pool_of(Net { instance, net })
        });
        let mut named = BTreeSet::new();
        let once = pools.filter(|name| named.insert(*name));
        once.map(str::to_owned).collect()
    }

    /// Names like this one: of sessions, and of configured users.
    fn similar_names(
        &self,
        text: &str,
        visited: &[(u32, &Entry)],
        configured: bool,
    ) -> Vec<String> {
        let online = visited.iter().map(|(_, entry)| &*entry.who.username);
        let users = configured.then(|| self.configuration.users.keys());
        let users = users.into_iter().flatten().map(String::as_bytes);
        let like = online
            .chain(users)
            .filter(|name| is_like(name, text.as_bytes()));
        let shown = like.map(|name| name.escape_ascii().to_string());
        first_names(shown.take(MOST).collect())
    }
}

/// The first ones of these names, each once.
fn first_names(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names.truncate(MOST_SIMILAR);
    names
}

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Found(FindSubscriberResponse);

impl Found {
    /// Adds a part of the answer.
    pub fn add(&mut self, part: FindSubscriberResponse) {
        fn id(state: &SubscriberState) -> Option<&str> {
            state.session.as_ref().map(|row| &*row.id)
        }
        for state in part.subscribers {
            let known = &mut self.0.subscribers;
            // who was a sibling of another one may be found by itself later
            match known.iter_mut().find(|known| id(known) == id(&state)) {
                Some(known) => known.sibling &= state.sibling,
                None => known.push(state),
            }
        }
        self.0.similar.extend(part.similar);
        self.0.similar = first_names(std::mem::take(&mut self.0.similar));
        self.0.network_instances = part.network_instances;
        self.0.is_user = part.is_user;
    }

    /// Whether no more is told.
    pub fn is_complete(&self) -> bool {
        self.0.subscribers.len() >= MOST
    }

    /// The answer.
    pub fn answer(self) -> FindSubscriberResponse {
        let Found(mut found) = self;
        found.subscribers.truncate(MOST);
        if !found.subscribers.is_empty() {
            found.similar.clear();
        }
        found
    }
}

/// Whether one of two names begins with the other, or one edit separates them (insertion, deletion, substitution or swap).
fn is_like(name: &[u8], text: &[u8]) -> bool {
    if name.is_empty() || text.is_empty() {
        return false;
    }
    let same = name.iter().zip(text).take_while(|(a, b)| a == b).count();
    let (a, b) = (&name[same..], &text[same..]);
    match (a, b) {
        ([], _) | (_, []) => same >= 3,
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, rest @ ..], b) if rest == b => true,
        (a, [_, rest @ ..]) if a == rest => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) => (a, b) == (d, c) && rest == other,
        _ => false,
    }
}

/// State of its link.
fn phase(entry: &Entry) -> &'static str {
    match (&entry.stage, entry.status().map(|status| status.phase)) {
        (Stage::Closing(_), _) => "terminate",
        (_, None) => "discovery",
        (_, Some(Phase::Establish)) => "establish",
        (_, Some(Phase::Authenticate)) => "authenticate",
        (_, Some(Phase::Network)) => "network",
        (_, Some(Phase::Terminate | Phase::Closed)) => "terminate",
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn names_are_alike_that_begin_alike_or_differ_by_a_slip() {
        for (name, text) in [
            ("alice@x", "alice"),
            ("alice@x", "alcie@x"),
            ("alice@x", "alic@x"),
            ("alice@x", "alicee@x"),
            ("alice@x", "aloce@x"),
        ] {
            assert!(is_like(name.as_bytes(), text.as_bytes()), "{name} {text}");
            assert!(is_like(text.as_bytes(), name.as_bytes()), "{text} {name}");
        }
        for (name, text) in [
            ("alice@x", "al"),
            ("alice@x", "bob@x"),
            ("", "alice"),
            ("alice", ""),
        ] {
            assert!(!is_like(name.as_bytes(), text.as_bytes()), "{name} {text}");
        }
    }
}
