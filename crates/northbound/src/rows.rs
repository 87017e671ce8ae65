//! Rows of tables that the client makes of other messages.

use crate::{
    LineHistory, MoveAggregateRequest, Process, QUEUE_WAITS, QueueAggregate, QueueState, Refusal,
    Session, SessionState, WatchStateResponse, WatchedUserPlane, Worker,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A row of [`crate::catalogue::SUBSCRIBERS`]: the sessions of one subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SubscriberRow {
    /// The user name of a session, the first of them in order.
    pub name: String,
    /// What it is known by: its access line, or its user name.
    pub subscriber: String,
    /// Its handle.
    pub subscriber_handle: Option<u32>,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many of them are online.
    pub online: u64,
    /// Their IPv4 addresses.
    pub ipv4: Vec<String>,
    /// Their IPv6 prefixes.
    pub ipv6_prefixes: Vec<String>,
    /// Other prefixes that are routed to them.
    pub routes: Vec<String>,
    /// Of the session that is online for longest.
    pub online_seconds: u64,
    /// The subscriber profile.
    pub profile: String,
    /// The node ids of their user planes.
    pub user_planes: Vec<String>,
}

impl SubscriberRow {
    /// A row for each subscriber, in the order of names. Sessions that are not authenticated are left out.
    pub fn of(sessions: &[Session]) -> Vec<Self> {
        let mut all: BTreeMap<(Option<u32>, &str), SubscriberRow> = BTreeMap::new();
        for session in sessions.iter().filter(|session| !session.user.is_empty()) {
            let handle = session.subscriber_handle;
            let without = handle.map_or(&*session.user, |_| "");
            let subscriber = all.entry((handle, without)).or_default();
            if subscriber.sessions == 0 || session.user < subscriber.name {
                subscriber.name.clone_from(&session.user);
            }
            subscriber.subscriber.clone_from(&session.subscriber);
            subscriber.subscriber_handle = handle;
            subscriber.sessions += 1;
            if session.state() == SessionState::Online {
                subscriber.online += 1;
                let longest = subscriber.online_seconds.max(session.online_seconds);
                subscriber.online_seconds = longest;
            }
            subscriber.ipv4.extend(session.ipv4.clone());
            subscriber.ipv6_prefixes.extend(session.ipv6_prefix.clone());
            subscriber.routes.extend(session.routes.iter().cloned());
            subscriber.profile.clone_from(&session.profile);
            if !subscriber.user_planes.contains(&session.user_plane) {
                subscriber.user_planes.push(session.user_plane.clone());
            }
        }
        let mut rows: Vec<SubscriberRow> = all.into_values().collect();
        rows.sort_by(|a, b| (&a.name, &a.subscriber).cmp(&(&b.name, &b.subscriber)));
        rows
    }
}

/// A row of [`crate::catalogue::LINES`]: the sessions of an access line, and what happened on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LineRow {
    /// User names of its sessions; without a session, of the latest event.
    pub users: Vec<String>,
    /// How many of its sessions are online.
    pub online: u64,
    /// Of the session that is online for longest.
    pub online_seconds: u64,
    /// Characteristics of the access loop, of a session that is online.
    pub access_loop: Vec<String>,
    /// The line, and what happened on it.
    #[serde(flatten)]
    pub history: LineHistory,
}

impl LineRow {
    /// A row for each line that has a session or a history, in the order of their texts. `subject`: a line or a user, whose sessions and those
    /// of the lines with these histories are meant; empty: all sessions are.
    pub fn of(subject: &str, sessions: &[Session], histories: Vec<LineHistory>) -> Vec<Self> {
        let of_history = histories.into_iter().map(|history| LineRow {
            history,
            ..LineRow::default()
        });
        let mut all: BTreeMap<String, LineRow> = of_history
            .map(|row| (row.history.line.clone(), row))
            .collect();
        let is_meant = |session: &&Session| {
            subject.is_empty()
                || session.line == subject
                || session.user == subject
                || all.contains_key(&session.line)
        };
        let sessions: Vec<&Session> = sessions.iter().filter(is_meant).collect();
        for session in sessions {
            let row = all.entry(session.line.clone()).or_default();
            row.history.line.clone_from(&session.line);
            if !session.user.is_empty() && !row.users.contains(&session.user) {
                row.users.push(session.user.clone());
            }
            if session.state() == SessionState::Online {
                row.online += 1;
                row.online_seconds = row.online_seconds.max(session.online_seconds);
                row.access_loop.clone_from(&session.access_loop);
            }
        }
        for row in all.values_mut().filter(|row| row.users.is_empty()) {
            let last = row.history.subscriber.as_ref().map(|who| &who.user);
            row.users
                .extend(last.filter(|user| !user.is_empty()).cloned());
        }
        all.into_values().collect()
    }

    /// Lines with the most trouble first: those on which sessions end, are refused or fail most often. Lines without trouble are left out.
    pub fn worst(mut rows: Vec<Self>) -> Vec<Self> {
        let trouble = |row: &Self| row.history.ends + row.history.refusals + row.history.failures;
        rows.retain(|row| trouble(row) > 0);
        rows.sort_by_key(|row| Reverse(trouble(row)));
        rows
    }
}

/// A row of [`crate::catalogue::WORKERS`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerRow {
    /// The node id of its user plane.
    pub user_plane: String,
    /// What it counted.
    #[serde(flatten)]
    pub counters: Worker,
}

impl WatchedUserPlane {
    /// What is missing, for each user plane that does not answer.
    pub fn silent(planes: &[Self]) -> Vec<String> {
        let silent = planes.iter().filter(|plane| !plane.reached);
        let sentence = silent.map(|plane| {
            format!(
                "user plane {} does not answer: its management interface cannot be reached",
                plane.node_id
            )
        });
        sentence.collect()
    }
}

impl WorkerRow {
    /// The workers of a user plane.
    pub fn of(plane: WatchedUserPlane) -> Vec<Self> {
        let row = |counters| WorkerRow {
            user_plane: plane.node_id.clone(),
            counters,
        };
        plane.workers.into_iter().map(row).collect()
    }
}

/// A row of [`crate::catalogue::QUEUES`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueRow {
    /// The class.
    pub queue: String,
    /// What its packets have waited for in the last seconds: class, line, plan, aggregate, port or nothing.
    pub limited_by: &'static str,
    /// How long 99 of 100 frames that had to wait have waited at most; empty if none had to.
    pub delay: String,
    /// Octets that wait.
    pub waiting_octets: u64,
    /// The most octets that have waited.
    pub most_octets: u64,
    /// Frames that have left.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Frames that found no room.
    pub full_drops: u64,
    /// Frames that were dropped for the delay.
    pub delay_drops: u64,
    /// Frames that were marked for it.
    pub marks: u64,
}

impl QueueRow {
    /// A queue whose packets wait for this.
    pub fn of(queue: &QueueState, limited_by: &'static str) -> Self {
        QueueRow {
            queue: queue.name().into(),
            limited_by,
            delay: queue.waited(99).unwrap_or_default(),
            waiting_octets: queue.waiting_octets,
            most_octets: queue.most_octets,
            packets: queue.packets,
            octets: queue.octets,
            full_drops: queue.full_drops,
            delay_drops: queue.delay_drops,
            marks: queue.marks,
        }
    }
}

impl QueueState {
    /// How long so many of a hundred frames have waited at most, of those that have waited. `None`: none has.
    pub fn waited(&self, percent: u64) -> Option<String> {
        let all: u64 = self.waits.iter().map(|n| u64::from(*n)).sum();
        let mut below = 0;
        let at = self.waits.iter().position(|n| {
            below += u64::from(*n);
            below > 0 && below * 100 >= all * percent
        })?;
        Some(match QUEUE_WAITS.get(at) {
            Some(bound) => format!("< {bound} ms"),
            None => format!("{} ms or more", QUEUE_WAITS[QUEUE_WAITS.len() - 1]),
        })
    }
}

/// A row of [`crate::catalogue::DAEMONS`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DaemonRow {
    /// The daemon's program.
    pub name: String,
    /// The node id of the user plane; empty for other daemons.
    pub user_plane: String,
    /// What its kernel counts.
    #[serde(flatten)]
    pub process: Process,
}

impl DaemonRow {
    /// The control plane, and the user planes that answer.
    pub fn of(state: WatchStateResponse) -> Vec<Self> {
        let own = state.process.map(|process| DaemonRow {
            name: "sluice-cp".into(),
            user_plane: String::new(),
            process,
        });
        let answer = state.user_planes.into_iter().filter(|plane| plane.reached);
        let user_planes = answer.filter_map(|plane| {
            Some(DaemonRow {
                name: "sluice-up".into(),
                user_plane: plane.node_id,
                process: plane.process?,
            })
        });
        own.into_iter().chain(user_planes).collect()
    }
}

impl QueueAggregate {
    /// What a port or a part of it is called: `up1/access0`, `up1/access0/olt1`, `up1/access0/olt1.100`.
    pub fn name(&self) -> String {
        let mut name = format!("{}/{}", self.user_plane, self.port);
        if !self.segment.is_empty() {
            name.push_str(&format!("/{}", self.segment));
        }
        if let Some(vlan) = self.s_tag {
            name.push_str(&format!(".{vlan}"));
        }
        name
    }

    /// The worker that has its sessions, or how many have some.
    pub fn at(&self) -> String {
        match (self.worker, self.workers) {
            (Some(worker), _) => worker.to_string(),
            (None, 0) => String::new(),
            (None, _) if self.segment.is_empty() => "all".into(),
            (None, workers) => format!("{workers} workers"),
        }
    }

    /// Whether a port or a part of it is meant by what was asked for: its whole name or one part of that, or what it is in.
    pub fn is_meant(&self, asked: &str) -> bool {
        let name = self.name();
        let is_in = name
            .strip_prefix(asked)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']));
        let tag = self.s_tag.map(|tag| tag.to_string());
        is_in || asked == self.port || asked == self.segment || tag.as_deref() == Some(asked)
    }
}

impl MoveAggregateRequest {
    /// To move what [`QueueAggregate::name`] calls so to a worker.
    ///
    /// # Errors
    /// It is no name of a segment or VLAN.
    pub fn named(name: &str, worker: u32) -> Result<Self, Refusal> {
        let parts: Vec<&str> = name.split('/').collect();
        let [user_plane, port, part] = parts[..] else {
            return Err(Refusal::NotFound(format!(
                "`{name}` is no name of an aggregate: expected one such as up1/access0/olt1 or up1/access0/olt1.100, as \
                    `sluice show qos aggregates` prints them"
            )));
        };
        let vlan = part
            .rsplit_once('.')
            .and_then(|(segment, vlan)| Some((segment, vlan.parse().ok()?)));
        let (segment, s_tag) = match vlan {
            Some((segment, vlan)) => (segment, Some(vlan)),
            None => (part, None),
        };
        Ok(MoveAggregateRequest {
            user_plane: user_plane.into(),
            port: port.into(),
            segment: segment.into(),
            s_tag,
            worker,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aggregate_that_is_to_move_is_found_by_its_name() {
        for s_tag in [None, Some(0), Some(4000)] {
            let row = QueueAggregate {
                user_plane: "up1.example".into(),
                port: "access0".into(),
                segment: "olt-1".into(),
                s_tag,
                ..QueueAggregate::default()
            };
            let request = MoveAggregateRequest::named(&row.name(), 3).unwrap();
            assert_eq!(request.user_plane, row.user_plane);
            assert_eq!((request.port, request.segment), (row.port, row.segment));
            assert_eq!((request.s_tag, request.worker), (s_tag, 3));
        }
        for name in ["", "up1/access0", "up1/access0/olt1/100"] {
            assert!(MoveAggregateRequest::named(name, 0).is_err());
        }
    }

    #[test]
    fn an_aggregate_says_where_its_sessions_are() {
        let at = |segment: &str, worker, workers| {
            let segment = segment.into();
            let row = QueueAggregate {
                segment,
                worker,
                workers,
                ..QueueAggregate::default()
            };
            row.at()
        };
        assert_eq!(at("olt1", Some(0), 1), "0");
        assert_eq!(at("olt1", None, 2), "2 workers");
        assert_eq!(at("olt1", None, 0), "");
        assert_eq!(at("", None, 4), "all");
    }

    #[test]
    fn a_line_has_its_sessions_and_its_past() {
        let online = |line: &str, user: &str| Session {
            line: line.into(),
            user: user.into(),
            state: SessionState::Online.into(),
            online_seconds: 5,
            access_loop: vec!["rate down 100 Mbit/s".into()],
            ..Session::default()
        };
        // what its router said before it was switched off
        let closing = Session {
            state: SessionState::Closing.into(),
            online_seconds: 90,
            access_loop: vec!["rate down 50 Mbit/s".into()],
            ..online("a", "alice")
        };
        let past = |line: &str, refusals, ends| LineHistory {
            line: line.into(),
            refusals,
            ends,
            subscriber: Some(crate::Subscriber {
                user: "mallory".into(),
                ..crate::Subscriber::default()
            }),
            ..LineHistory::default()
        };
        let sessions = [
            online("a", "alice"),
            online("a", "alice-tv"),
            online("b", "bob"),
            closing,
        ];
        let rows = LineRow::of(
            "",
            &sessions,
            vec![past("c", 3, 0), past("b", 0, 4), past("d", 0, 0)],
        );
        let seen = rows
            .iter()
            .map(|row| (&*row.history.line, row.online, row.users.join(" ")));
        let expected = [
            ("a", 2, "alice alice-tv"),
            ("b", 1, "bob"),
            ("c", 0, "mallory"),
            ("d", 0, "mallory"),
        ];
        let expected = expected.map(|(line, online, users)| (line, online, users.to_owned()));
        assert!(seen.eq(expected), "{rows:?}");
        assert_eq!(rows[0].online_seconds, 5);
        assert_eq!(rows[0].access_loop, ["rate down 100 Mbit/s"]);
        let worst = LineRow::worst(rows);
        assert!(worst.iter().map(|row| &*row.history.line).eq(["b", "c"]));
        let of = |subject, histories| {
            let rows = LineRow::of(subject, &sessions, histories).into_iter();
            let lines = rows.map(|row| (row.history.line, row.users.len()));
            lines.collect::<Vec<_>>()
        };
        let line = |name: &str, users| (name.to_owned(), users);
        assert_eq!(of("a", Vec::new()), [line("a", 2)]);
        assert_eq!(of("alice-tv", Vec::new()), [line("a", 1)]);
        assert_eq!(
            of("bob", vec![past("a", 1, 0)]),
            [line("a", 2), line("b", 1)]
        );
    }

    #[test]
    fn sessions_of_one_handle_are_one_subscriber() {
        let session = |handle, user: &str, ipv4: &str, seconds| Session {
            user: user.into(),
            subscriber: format!("up1/access0.100.{handle}"),
            subscriber_handle: Some(handle),
            state: SessionState::Online.into(),
            ipv4: Some(ipv4.into()),
            online_seconds: seconds,
            profile: "gold".into(),
            user_plane: "up1".into(),
            ..Session::default()
        };
        let sessions = [
            session(3, "bob", "100.64.0.3", 5),
            session(4, "alice", "100.64.0.2", 7),
            session(3, "bob-tv", "100.64.0.4", 9),
            session(5, "", "100.64.0.5", 1),
            session(6, "bob", "100.64.0.6", 1),
            Session {
                state: SessionState::Closing.into(),
                ..session(3, "bob", "100.64.0.7", 90)
            },
        ];
        let all = SubscriberRow::of(&sessions);
        let names: Vec<_> = all.iter().map(|s| (s.name.as_str(), s.sessions)).collect();
        assert_eq!(names, [("alice", 1), ("bob", 3), ("bob", 1)]);
        assert_eq!(all[1].ipv4, ["100.64.0.3", "100.64.0.4", "100.64.0.7"]);
        assert_eq!((all[1].online_seconds, all[1].user_planes.len()), (9, 1));
    }

    #[test]
    fn aggregates_are_found_by_their_names_or_parts_of_them() {
        let row = |segment: &str, s_tag| QueueAggregate {
            user_plane: "up1".into(),
            port: "access0".into(),
            segment: segment.into(),
            s_tag,
            ..QueueAggregate::default()
        };
        let rows = [
            row("", None),
            row("olt1", None),
            row("olt1", Some(100)),
            row("olt10", None),
        ];
        let names: Vec<String> = rows.iter().map(QueueAggregate::name).collect();
        let all = [
            "up1/access0",
            "up1/access0/olt1",
            "up1/access0/olt1.100",
            "up1/access0/olt10",
        ];
        assert_eq!(names, all);
        let found = |asked: &str| rows.iter().filter(|row| row.is_meant(asked)).count();
        let asked = [
            "up1",
            "access0",
            "olt1",
            "100",
            "up1/access0/olt1",
            all[2],
            "olt",
            "",
        ];
        assert_eq!(asked.map(found), [4, 4, 2, 1, 2, 1, 0, 1]);
    }
}
