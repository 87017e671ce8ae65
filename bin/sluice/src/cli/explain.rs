//! Why a home is online or not, and where its packets go, in sentences with their evidence.

use super::ask::{Failure, Sockets};
use super::denials;
use super::history::{events, line, told};
use super::listing::word;
use super::show::Answer;
use super::time::{self, moment};
use super::units::{count, counted, duration, octets};
use northbound::catalogue::EVENT_WORDS;
use northbound::{
    Alarm, DropCounter, Event, EventKind, FindSubscriberResponse, LineHistory, ListEventsRequest,
    ListLinesRequest, Offender, PolicySetting, Session, SessionPolicy, SessionState, Subscriber,
    SubscriberState, UserPlane, UserPlaneState,
};
use serde::Serialize;
use std::time::Duration;

/// How many of the latest events are evidence.
const LATEST: u32 = 6;
/// How many kinds of drops are named.
const DROPS: usize = 5;

/// `sluice explain`.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// A name, a line, a circuit id, a MAC address, a session, or an address
    #[arg(value_name = "SUBSCRIBER")]
    subscriber: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is known, and what follows from it.
#[derive(Debug, Default, Serialize)]
struct Explanation {
    /// In words.
    sentences: Vec<String>,
    /// Its sessions, with counters that were read from the user plane now.
    sessions: Vec<SubscriberState>,
    /// What the policies of these sessions have done, in their order. Absent where a user plane does not tell.
    policies: Vec<Option<SessionPolicy>>,
    /// What happened to it last.
    events: Vec<Event>,
    /// What happened on the lines where it has been, as far back as the history goes. Absent while it has a session.
    lines: Vec<LineHistory>,
    /// Held senders of those lines: their discovery packets are not answered.
    held: Vec<Offender>,
    /// The user planes that it is on, or was on last.
    user_planes: Vec<UserPlane>,
    /// Alarms that concern it.
    alarms: Vec<Alarm>,
    /// What those user planes have dropped since their start, of anybody's packets.
    drops: Vec<DropCounter>,
    /// Which of that could not be asked, and why.
    missing: Vec<String>,
}

impl Explain {
    /// Asks what is known of a subscriber, and says what follows.
    pub fn answer(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        let mut found = sockets.history(|history| history.subscriber(&self.subscriber))?;
        let names = found.similar.clone();
        for state in &mut found.subscribers {
            let id = state.session.as_ref().map(|session| session.id.clone());
            // it may end at this moment
            if let Some(Ok(now)) = id.map(|id| sockets.control_plane(|cp| cp.session(&id))) {
                state.session = Some(now);
            }
        }
        let request = ListEventsRequest {
            subscriber: self.subscriber.clone(),
            last: Some(LATEST),
            ..ListEventsRequest::default()
        };
        let events = events(sockets, request)?;
        let lines = match found.subscribers.is_empty() {
            true => lines(sockets, &self.subscriber)?,
            false => Vec::new(),
        };
        let held = match lines.is_empty() {
            true => Vec::new(),
            false => held(sockets, &lines)?,
        };
        let planes = planes_of(&found, &events);
        let mut explanation = Explanation {
            user_planes: sockets.control_plane(|cp| cp.user_planes())?,
            alarms: sockets.history(|history| history.alarms())?.alarms,
            events,
            lines,
            held,
            policies: policies(sockets, &found),
            ..Explanation::default()
        };
        for plane in &planes {
            match sockets.control_plane(|cp| cp.user_plane_drops(plane)) {
                Ok(drops) => explanation.drops.extend(most(drops)),
                Err(why) => explanation.missing.push(why.to_string()),
            }
        }
        explanation
            .user_planes
            .retain(|plane| planes.contains(&plane.node_id));
        explanation
            .alarms
            .retain(|alarm| concerns(alarm, &planes, &found));
        explanation.say(&self.subscriber, &found, &names);
        explanation.sessions = found.subscribers;
        match self.json {
            true => Answer::json(&explanation),
            false => Ok(Answer::of(explanation.page())),
        }
    }
}

/// What the policies of a subscriber's sessions have done, as far as the user planes tell.
fn policies(sockets: &Sockets, found: &FindSubscriberResponse) -> Vec<Option<SessionPolicy>> {
    let of_session = |state: &SubscriberState| {
        let id = &state.session.as_ref()?.id;
        let asked = state.on_user_plane.then_some(id)?;
        sockets.control_plane(|cp| cp.session_policy(asked)).ok()
    };
    found.subscribers.iter().map(of_session).collect()
}

/// What happened on the lines where somebody has been.
fn lines(sockets: &Sockets, subscriber: &str) -> Result<Vec<LineHistory>, Failure> {
    let request = ListLinesRequest {
        subscriber: subscriber.into(),
        since: None,
    };
    let (lines, _) = sockets.history(|history| history.lines(request))?;
    Ok(lines)
}

/// Senders on these lines whose discovery packets are not answered now.
fn held(sockets: &Sockets, lines: &[LineHistory]) -> Result<Vec<Offender>, Failure> {
    let state = sockets.watch(Duration::from_secs(60))?.next()?;
    let planes = state.user_planes.into_iter();
    let mut held: Vec<Offender> = planes.flat_map(|plane| plane.offenders).collect();
    held.retain(|row| {
        let mut subscribers = lines.iter().filter_map(|of| of.subscriber.as_ref());
        row.held_seconds > 0 && subscribers.any(|who| is_of(row, who))
    });
    Ok(held)
}

/// Whether a held sender is this subscriber, or its line.
fn is_of(row: &Offender, who: &Subscriber) -> bool {
    row.user_plane == who.user_plane
        && row.port == who.port
        && (row.s_tag, row.c_tag) == (who.s_tag, who.c_tag)
        && row.circuit_id == who.circuit_id.as_deref().unwrap_or_default()
        && (row.level != "mac" || row.mac == who.mac)
}

/// The user planes that a subscriber is on, or was on last.
fn planes_of(found: &FindSubscriberResponse, events: &[Event]) -> Vec<String> {
    let now = found
        .subscribers
        .iter()
        .filter_map(|state| state.session.as_ref());
    let mut planes: Vec<String> = now.map(|session| session.user_plane.clone()).collect();
    if planes.is_empty() {
        let last = events
            .iter()
            .rev()
            .find_map(|event| event.subscriber.as_ref());
        planes.extend(last.map(|who| who.user_plane.clone()));
    }
    planes.sort();
    planes.dedup();
    planes
}

/// What was dropped most often.
fn most(mut drops: Vec<DropCounter>) -> Vec<DropCounter> {
    drops.retain(|drop| drop.count > 0);
    drops.sort_by_key(|drop| std::cmp::Reverse(drop.count));
    drops.truncate(DROPS);
    drops
}

/// Whether an alarm is about what a subscriber needs.
fn concerns(alarm: &Alarm, planes: &[String], found: &FindSubscriberResponse) -> bool {
    let of = &alarm.resource;
    // a pool is named with its kind: `ipv4-pools homes`
    let pool = of.rsplit(' ').next().unwrap_or_default();
    let needs = |state: &SubscriberState| {
        let mut pools = state.pools.iter();
        state.server_group.as_ref() == Some(of) || pools.any(|name| name == pool)
    };
    of.is_empty()
        || planes.contains(of)
        || found.subscribers.iter().any(needs)
        || alarm.name.starts_with("aaa-")
}

impl Explanation {
    fn page(&self) -> Vec<String> {
        let mut lines = self.sentences.clone();
        if !self.events.is_empty() {
            lines.extend([String::new(), "What happened last (UTC):".into()]);
            lines.extend(self.events.iter().map(|event| {
                let at = moment(event.at);
                format!(
                    "  {at}  {:<11}  {}",
                    word(EVENT_WORDS, event.kind()),
                    told(event)
                )
            }));
        }
        lines
    }

    fn say(&mut self, asked: &str, found: &FindSubscriberResponse, similar: &[String]) {
        let mut said = Vec::new();
        for (number, state) in found.subscribers.iter().enumerate() {
            said.extend(self.of_session(state));
            let policy = self.policies.get(number).and_then(Option::as_ref);
            said.extend(policy.map_or_else(Vec::new, denials::sentences));
        }
        if found.subscribers.is_empty() {
            said.extend(self.of_nobody(asked, found, similar));
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

    /// Why somebody is not there.
    fn of_nobody(
        &self,
        asked: &str,
        found: &FindSubscriberResponse,
        similar: &[String],
    ) -> Vec<String> {
        let mut own = self.events.iter().rev();
        let last = own.find(|event| event.subscriber.is_some());
        let mut said = match last {
            Some(event) if is_line(asked, event) => self
                .lines
                .iter()
                .flat_map(|line| of_line(asked, line))
                .collect(),
            Some(event) => absence(asked, event),
            None if found.is_user => vec![format!(
                "{asked} is a user of the configuration and has not dialled in, as far as is known."
            )],
            None => vec![format!(
                "Nothing is known of {asked}: no session and no event has it as name, MAC address, session or address."
            )],
        };
        if !similar.is_empty() {
            said.push(format!("Names that are like it: {}.", similar.join(", ")));
        }
        said
    }
}

fn name(user: &str, mac: &str) -> String {
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

/// Whether a line was asked for, not who was there.
fn is_line(asked: &str, event: &Event) -> bool {
    let who = event.subscriber.clone().unwrap_or_default();
    let ids = [who.circuit_id.as_deref(), who.remote_id.as_deref()];
    ids.contains(&Some(asked)) || line(&who) == asked
}

/// Why nobody is connected from a line.
fn of_line(asked: &str, of: &LineHistory) -> Vec<String> {
    let since = match (&of.last_online, &of.last_ended) {
        (_, Some(ended)) => format!(
            "Nobody has been connected from line {asked} since {}: the session of {} ended ({}).",
            moment(ended.at),
            by(&ended.user),
            ended.text
        ),
        (Some(online), None) => format!(
            "Nobody is connected from line {asked}. {} came online there at {}, and its end was not recorded.",
            by(&online.user),
            moment(online.at)
        ),
        (None, None) => {
            format!("Nobody has connected from line {asked}, as far back as the history goes.")
        }
    };
    let mut said = vec![since];
    let tries = [
        ("AAA has refused attempts", of.refusals, &of.last_refused),
        ("Attempts have failed", of.failures, &of.last_failed),
    ];
    for (what, times, last) in tries {
        said.extend(last.as_ref().map(|last| {
            format!(
                "{what} there {}, the last one at {} by {}: {}.",
                counted(times, "time"),
                moment(last.at),
                by(&last.user),
                last.text
            )
        }));
    }
    let who = of.subscriber.clone().unwrap_or_default();
    said.push(format!(
        "It is {}. It was heard of last at {}, from MAC address {} at {}.",
        of.line,
        moment(of.heard_at),
        who.mac,
        line(&who)
    ));
    said
}

/// Who it was, by a name that may be empty.
fn by(user: &str) -> &str {
    match user.is_empty() {
        true => "somebody who gave no name",
        false => user,
    }
}

/// Why it is not online, by what happened to it last.
fn absence(asked: &str, event: &Event) -> Vec<String> {
    let who = event.subscriber.clone().unwrap_or_default();
    let at = moment(event.at);
    let name = name(&who.user, &who.mac);
    let why = match event.kind() {
        EventKind::Refused => {
            let by = match &event.server_group {
                Some(group) => format!("RADIUS server group {group}"),
                None => "the users of the configuration".into(),
            };
            format!(
                "{name} is not online: {by} refused it at {at}: {}.",
                told(event)
            )
        }
        EventKind::Failed => {
            format!(
                "{name} is not online: it dialled in, and that ended at {at}: {}.",
                told(event)
            )
        }
        EventKind::Ended => format!(
            "{name} is not online: its session ended at {at}: {}.",
            told(event)
        ),
        _ => format!(
            "{name} is not online, although its end was not recorded; it was last heard of at {at}."
        ),
    };
    let mut said = vec![why];
    said.push(format!(
        "It was at {} with MAC address {}.",
        line(&who),
        who.mac
    ));
    if asked != who.user && !who.user.is_empty() {
        said.push(format!(
            "{asked} was looked for as name, MAC address, session and address."
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::{DirectionPolicy, LineEvent};

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
                    down: None,
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
