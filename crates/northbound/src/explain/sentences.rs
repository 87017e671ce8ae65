//! The sentences: whether a subscriber is online, where it is, what it has, and where its packets go.

use super::{Explanation, absence, denials};
use crate::telling::line;
use crate::time::{self, moment};
use crate::units::{count, duration, octets};
use crate::words::word;
use crate::{
    FindSubscriberResponse, PolicySetting, Session, SessionState, Subscriber, SubscriberState,
    UserPlaneState,
};

impl Explanation {
    pub(super) fn say(&mut self, asked: &str, found: &FindSubscriberResponse, similar: &[String]) {
        let mut said = Vec::new();
        for (number, state) in found.subscribers.iter().enumerate() {
            said.extend(self.of_session(state));
            let policy = self.policies.get(number).and_then(Option::as_ref);
            said.extend(policy.map_or_else(Vec::new, denials::sentences));
        }
        if found.subscribers.is_empty() {
            said.extend(absence::sentences(self, asked, found, similar));
        }
        for row in &self.held {
            let whose = match row.level.as_str() {
                "mac" => format!("MAC address {}", row.mac),
                _ => "its whole line".into(),
            };
            said.push(format!(
                "Discovery packets of {whose} are not answered for {} more ({}, `sluice show protection`).",
                duration(row.held_seconds),
                row.kind
            ));
        }
        for alarm in &self.alarms {
            let severity = word(&[], alarm.severity());
            let since = moment(alarm.raised_at);
            said.push(format!("Alarm since {since} ({severity}): {}.", alarm.text));
        }
        for of_plane in self.drops.chunk_by(|a, b| a.plane == b.plane) {
            let drops = of_plane
                .iter()
                .map(|drop| format!("{} {} ({})", drop.count, drop.name, drop.meaning));
            said.push(format!(
                "User plane {} has dropped since its start, of all subscribers: {}",
                of_plane[0].plane,
                drops.collect::<Vec<_>>().join("; ")
            ));
        }
        let missing = self.missing.iter();
        said.extend(missing.map(|why| format!("What was dropped there is not known: {why}")));
        self.sentences = said;
    }

    fn of_session(&self, state: &SubscriberState) -> Vec<String> {
        let session = state.session.clone().unwrap_or_default();
        let mut said = vec![standing(state, &session), place(state, &session)];
        said.extend(admission(state, &session));
        said.push(addresses(state, &session));
        said.extend(policy(&state.policy));
        said.extend(self.way(state, &session));
        said
    }

    /// Where its packets go.
    fn way(&self, state: &SubscriberState, session: &Session) -> Vec<String> {
        let plane = &session.user_plane;
        let mut said = Vec::new();
        let row = self.user_planes.iter().find(|row| row.node_id == *plane);
        let stands = row.map(|row| (row.state(), duration(row.since_seconds)));
        said.push(match (stands, state.on_user_plane) {
            (Some((UserPlaneState::Associated, since)), true) => format!(
                "User plane {plane} is associated for {since} and has the session's rules: packets go by its port {} and \
                 the routes of network instance {}, in packets of up to {} octets.",
                session.port, session.network_instance, state.mtu
            ),
            (Some((UserPlaneState::Lost | UserPlaneState::NeverSeen, since)), _) => format!(
                "User plane {plane} is not associated for {since}: what it forwards for the session is not known here, and \
                 nothing of the session can be changed."
            ),
            (Some((UserPlaneState::Restoring, _)), _) => {
                format!("User plane {plane} is just being told its sessions again.")
            }
            (_, false) => {
                format!("User plane {plane} does not have the session's rules: its packets are dropped there.")
            }
            (_, true) => format!("User plane {plane} has the session's rules."),
        });
        let traffic = session.traffic.unwrap_or_default();
        if session.state() == SessionState::Online {
            said.push(format!(
                "It has sent {} packets ({}) and was sent {} ({}).",
                count(traffic.up_packets),
                octets(traffic.up_octets),
                count(traffic.down_packets),
                octets(traffic.down_octets)
            ));
        }
        said
    }
}

pub(super) fn name(user: &str, mac: &str) -> String {
    match user.is_empty() {
        true => format!("The home with MAC address {mac}"),
        false => user.to_owned(),
    }
}

/// Whether it is online.
fn standing(state: &SubscriberState, session: &Session) -> String {
    let who = name(&session.user, &session.mac);
    let ago = |at: u64| duration(time::now().saturating_sub(at));
    match session.state() {
        SessionState::Online => {
            let since = state
                .online_since
                .map(|at| format!(" since {}", moment(at)));
            format!(
                "{who} is online{} ({}), as session {}.",
                since.unwrap_or_default(),
                duration(session.online_seconds),
                session.id
            )
        }
        SessionState::Closing => format!(
            "{who} is not online: session {} has ended, and its user plane is asked for the last counters.",
            session.id
        ),
        _ => {
            let since = state.dialled_at.map(|at| format!(" for {}", ago(at)));
            let waits = match state.phase.as_str() {
                "discovery" => "its user plane is asked for a tunnel",
                "establish" => "LCP is being negotiated",
                "authenticate" => "it is being authenticated",
                "network" => "it is let in, and its addresses are being negotiated",
                _ => "it is saying goodbye",
            };
            format!(
                "{who} is dialling in{}: {waits}.",
                since.unwrap_or_default()
            )
        }
    }
}

/// Where it is attached.
fn place(state: &SubscriberState, session: &Session) -> String {
    let who = Subscriber {
        user_plane: session.user_plane.clone(),
        port: session.port.clone(),
        s_tag: session.s_tag,
        c_tag: session.c_tag,
        ..Subscriber::default()
    };
    let ids = [("circuit", &state.circuit_id), ("remote", &state.remote_id)];
    let ids = ids
        .into_iter()
        .filter_map(|(what, id)| Some((what, id.as_ref()?)));
    let ids: String = ids.map(|(what, id)| format!(", {what} id {id}")).collect();
    format!(
        "It is at {} with MAC address {} and PPPoE session id {}{ids}.",
        line(&who),
        session.mac,
        session.pppoe_session_id
    )
}

/// Who let it in.
fn admission(state: &SubscriberState, session: &Session) -> Option<String> {
    if session.user.is_empty() {
        return None;
    }
    let by = match &state.server_group {
        Some(group) => format!("RADIUS server group {group}"),
        None => "the users of the configuration".to_owned(),
    };
    let profile = match &state.profile {
        Some(profile) => format!("subscriber profile {profile}"),
        None => "the defaults of subscriber profiles".to_owned(),
    };
    Some(match (state.phase.as_str(), state.online_since) {
        ("terminate", None) => return None,
        ("authenticate", _) => format!(
            "It calls itself {}; {by} says whether it may come in.",
            session.user
        ),
        _ => format!("It was let in by {by} and gets {profile}."),
    })
}

/// The settings that have a value, each with where that came from; and those that the user plane has not accepted.
fn policy(settings: &[PolicySetting]) -> Option<String> {
    let told = |setting: &PolicySetting| {
        let PolicySetting {
            label,
            value,
            origin,
            ..
        } = setting;
        match &setting.wanted {
            Some(wanted) if wanted.is_empty() => {
                format!(
                    "{label} {value}, though none is wanted ({origin}) and the user plane has not accepted that"
                )
            }
            Some(wanted) => {
                format!(
                    "{label} {value}, though {wanted} is wanted ({origin}) and the user plane has not accepted that"
                )
            }
            None => format!("{label} {value} ({origin})"),
        }
    };
    let there = settings
        .iter()
        .filter(|s| !s.value.is_empty() || s.wanted.is_some());
    let told: Vec<String> = there.map(told).collect();
    (!told.is_empty()).then(|| format!("Its policy: {}.", told.join("; ")))
}

fn addresses(state: &SubscriberState, session: &Session) -> String {
    let all: Vec<&str> = [&session.ipv4, &session.ipv6_prefix]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    if all.is_empty() {
        return "It has no address.".into();
    }
    let mut pools = state.pools.clone();
    pools.dedup();
    let of = match pools.is_empty() {
        true => "of no pool".to_owned(),
        false => format!("of pool {}", pools.join(" and ")),
    };
    let routed = match &session.routes[..] {
        [] => String::new(),
        [route] => format!(" {route} is routed to it."),
        routes => format!(" {} are routed to it.", routes.join(" and ")),
    };
    format!(
        "It has {}, {of}, in network instance {}.{routed}",
        all.join(" and "),
        session.network_instance
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DirectionPolicy, Event, EventKind, LineEvent, LineHistory, SessionPolicy, Traffic,
        UserPlane,
    };

    fn session() -> SubscriberState {
        SubscriberState {
            session: Some(Session {
                id: "18bcff4aa4100000".into(),
                state: SessionState::Online.into(),
                user: "alice".into(),
                user_plane: "up1".into(),
                port: "access0".into(),
                s_tag: Some(100),
                c_tag: Some(7),
                mac: "02:00:00:00:00:07".into(),
                ipv4: Some("100.64.0.9".into()),
                network_instance: "default".into(),
                online_seconds: 125,
                ..Session::default()
            }),
            online_since: Some(1_795_331_730),
            server_group: Some("radius".into()),
            profile: Some("gold".into()),
            pools: vec!["homes".into()],
            mtu: 1492,
            policy: vec![
                setting("MTU", "1492", "link", None),
                setting("session timeout", "", "default", None),
                setting("name servers", "192.0.2.53", "profile", Some("192.0.2.54")),
            ],
            on_user_plane: true,
            ..SubscriberState::default()
        }
    }

    fn setting(label: &str, value: &str, origin: &str, wanted: Option<&str>) -> PolicySetting {
        PolicySetting {
            label: label.into(),
            value: value.into(),
            origin: origin.into(),
            wanted: wanted.map(str::to_owned),
            ..PolicySetting::default()
        }
    }

    fn explain(found: &FindSubscriberResponse, events: Vec<Event>) -> String {
        let mut explanation = Explanation {
            events,
            user_planes: vec![UserPlane {
                node_id: "up1".into(),
                state: UserPlaneState::Associated.into(),
                ..UserPlane::default()
            }],
            ..Explanation::default()
        };
        explanation.say("alice", found, &found.similar);
        explanation.page().join("\n")
    }

    #[test]
    fn who_is_online_is_said_with_line_addresses_and_user_plane() {
        let found = FindSubscriberResponse {
            subscribers: vec![session()],
            ..FindSubscriberResponse::default()
        };
        let said = explain(&found, Vec::new());
        for words in [
            "alice is online since 2026-11-22 07:15:30Z (2m 05s), as session 18bcff4aa4100000.",
            "It is at up1/access0.100.7",
            "let in by RADIUS server group radius and gets subscriber profile gold",
            "Its policy: MTU 1492 (link); name servers 192.0.2.53, though 192.0.2.54 is wanted (profile)",
            "It has 100.64.0.9, of pool homes, in network instance default.",
            "User plane up1 is associated",
        ] {
            assert!(said.contains(words), "{words}\n{said}");
        }
    }

    #[test]
    fn what_drops_its_packets_is_said_of_the_session_that_it_concerns() {
        let mut explanation = Explanation {
            policies: vec![
                None,
                Some(SessionPolicy {
                    up: Some(DirectionPolicy {
                        exceeded_packets: 12,
                        ..DirectionPolicy::default()
                    }),
                    ..SessionPolicy::default()
                }),
            ],
            ..Explanation::default()
        };
        let mut second = session();
        second.session.as_mut().unwrap().user = "alice-2".into();
        let found = FindSubscriberResponse {
            subscribers: vec![session(), second],
            ..FindSubscriberResponse::default()
        };
        explanation.say("alice", &found, &[]);
        let last = explanation.sentences.last().unwrap();
        let expected = "12 packets from the subscriber were above the rate and were dropped.";
        assert_eq!(last, expected);
        assert_eq!(explanation.page().join("\n").matches(expected).count(), 1);
    }

    #[test]
    fn who_was_refused_is_said_with_the_answer_and_who_is_unknown_with_the_nearest() {
        let refused = Event {
            at: 1_795_331_730,
            kind: EventKind::Refused.into(),
            subscriber: Some(Subscriber {
                user: "alice".into(),
                ..Subscriber::default()
            }),
            server_group: Some("radius".into()),
            text: "rejected".into(),
            reply: Some("wrong password".into()),
            ..Event::default()
        };
        let nobody = FindSubscriberResponse {
            similar: vec!["alicia".into()],
            ..FindSubscriberResponse::default()
        };
        let said = explain(&nobody, vec![refused]);
        assert!(
            said.contains("RADIUS server group radius refused it at 2026-11-22 07:15:30Z: rejected; it was told \"wrong password\""),
            "{said}"
        );
        let said = explain(&nobody, Vec::new());
        assert!(said.contains("Nothing is known of alice"), "{said}");
        assert!(said.contains("Names that are like it: alicia."), "{said}");
    }

    #[test]
    fn that_traffic_is_counted_does_not_hide_why_a_session_ended() {
        let event = |kind: EventKind, text: &str| Event {
            at: 1_795_331_730,
            kind: kind.into(),
            subscriber: Some(Subscriber {
                user: "alice".into(),
                ..Subscriber::default()
            }),
            text: text.into(),
            ..Event::default()
        };
        let ended = event(EventKind::Ended, "carrier lost");
        let counted = Event {
            ended: Some(1_795_331_730),
            traffic: Some(Traffic {
                up_octets: 1_500,
                ..Traffic::default()
            }),
            ..event(EventKind::Counted, "carrier lost")
        };
        let nobody = FindSubscriberResponse::default();
        let said = explain(&nobody, vec![ended, counted.clone()]);
        let why = "alice is not online: its session ended at 2026-11-22 07:15:30Z: carrier lost";
        assert!(said.contains(&format!("{why}.")), "{said}");
        // its end may have left the history before
        let said = explain(&nobody, vec![counted]);
        assert!(
            said.contains(&format!("{why}; it had 1.5 kB up, 0 B down.")),
            "{said}"
        );
    }

    #[test]
    fn of_a_line_without_anybody_it_is_said_since_when_and_who_tried() {
        let who = Subscriber {
            user_plane: "up1".into(),
            port: "access0".into(),
            mac: "02:00:00:00:00:07".into(),
            circuit_id: Some("olt 1/1".into()),
            ..Subscriber::default()
        };
        let event = |at, user: &str, text: &str| LineEvent {
            at,
            user: user.into(),
            text: text.into(),
        };
        let refusal = Event {
            at: 1_795_331_730,
            kind: EventKind::Refused.into(),
            subscriber: Some(who.clone()),
            ..Event::default()
        };
        let line = LineHistory {
            line: "olt 1/1 at up1/access0".into(),
            subscriber: Some(who),
            heard_at: 1_795_331_730,
            refusals: 12,
            last_ended: Some(event(1_795_331_000, "alice", "carrier lost")),
            last_refused: Some(event(1_795_331_730, "", "unknown user")),
            ..LineHistory::default()
        };
        let mut explanation = Explanation {
            events: vec![refusal],
            lines: vec![line],
            ..Explanation::default()
        };
        explanation.say("olt 1/1", &FindSubscriberResponse::default(), &[]);
        let said = explanation.sentences.join("\n");
        let expected = "Nobody has been connected from line olt 1/1 since 2026-11-22 07:03:20Z: the session of alice ended (carrier lost).";
        assert!(said.starts_with(expected), "{said}");
        let refused = "AAA has refused attempts there 12 times, the last one at 2026-11-22 07:15:30Z by somebody who gave no name: unknown user.";
        assert!(said.contains(refused), "{said}");
    }
}
