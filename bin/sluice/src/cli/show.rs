//! Answers, and the page of one session.

use super::ask::{Failure, Sockets};
use super::denials;
use super::queues;
use super::units::{count, counted, duration, octets};
use super::word;
use northbound::{
    AcknowledgeAlarmRequest, Drain, MoveAggregateRequest, Session, SessionDetails, SessionState,
    Traffic,
};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// What is to be shown.
#[derive(Debug, Default)]
pub struct Answer {
    /// Its lines.
    pub lines: Vec<String>,
    /// The first one is a heading.
    pub table: bool,
    /// A last line, of all the others: what is left or counted of these is not its business.
    pub total: Option<String>,
    /// What could not be asked beside it.
    pub failure: Option<Failure>,
}

impl Answer {
    /// Lines of text.
    pub fn of(lines: Vec<String>) -> Self {
        Answer {
            lines,
            ..Answer::default()
        }
    }

    /// Lines of which the first is a heading.
    pub fn table(lines: Vec<String>) -> Self {
        Answer {
            table: !lines.is_empty(),
            ..Answer::of(lines)
        }
    }

    /// A value in JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, Failure> {
        let text =
            serde_json::to_string_pretty(value).map_err(|e| Failure::Other(e.to_string()))?;
        Ok(Answer::of(text.lines().map(str::to_owned).collect()))
    }

    /// Prints it, and passes on what could not be asked.
    pub fn print(self) -> Result<(), Failure> {
        print_lines(&self.lines)?;
        print_lines(self.total.as_slice())?;
        self.failure.map_or(Ok(()), Err)
    }
}

/// A session in detail. What cannot be asked beside the session itself is left out.
pub(super) fn details(sockets: &Sockets, id: &str) -> Result<SessionDetails, Failure> {
    let session = sockets.control_plane(|cp| cp.session(id))?;
    let found = sockets.history(|history| history.subscriber(id));
    let states = found.map_or_else(|_| Vec::new(), |found| found.subscribers);
    let policy = sockets.control_plane(|cp| cp.session_policy(id)).ok();
    Ok(SessionDetails::of(session, states, policy))
}

/// `sluice show session ID`.
pub fn session(sockets: &Sockets, id: &str, json: bool) -> Result<Answer, Failure> {
    let details = details(sockets, id)?;
    match json {
        true => Answer::json(&details),
        false => Ok(Answer::of(details_page(&details))),
    }
}

fn details_page(details: &SessionDetails) -> Vec<String> {
    let mut rows = denials::settings(&details.settings);
    rows.extend(details.policy.iter().flat_map(denials::rows));
    rows.extend(queues::limited_by_row(details));
    let rows = rows.into_iter();
    let rows = rows.map(|(name, value)| row(&name, &value));
    session_page(&details.session)
        .into_iter()
        .chain(rows)
        .collect()
}

/// A line of a page.
fn row(name: &str, value: &str) -> String {
    // some labels of settings are longer than the column
    let gap = if name.len() < 18 { "" } else { " " };
    format!("{name:<18}{gap}{value}").trim_end().to_owned()
}

/// `sluice show subscriber SUBSCRIBER`.
pub fn subscriber(sockets: &Sockets, asked: &str, json: bool) -> Result<Answer, Failure> {
    let found = sockets.history(|history| history.subscriber(asked))?;
    let sessions = found.into_sessions();
    if sessions.is_empty() {
        return Err(Failure::Other(format!(
            "`{asked}` has no session now: `sluice explain {asked}` says what is known"
        )));
    }
    match json {
        true => Answer::json(&sessions),
        false => Ok(Answer::of(subscriber_pages(&sessions))),
    }
}

/// The subscribers of sessions, which stand in the order of their handles.
fn subscriber_pages(sessions: &[Session]) -> Vec<String> {
    let mut lines = Vec::new();
    for own in sessions.chunk_by(|a, b| a.subscriber_handle == b.subscriber_handle) {
        let online = own.iter().filter(|s| s.state() == SessionState::Online);
        let known_by = match &*own[0].subscriber {
            "" => "not known before its user name is authenticated",
            known_by => known_by,
        };
        lines.push(format!("subscriber        {known_by}"));
        let all = counted(own.len(), "session");
        lines.push(format!(
            "sessions          {all}, {} online",
            online.count()
        ));
        for session in own {
            lines.push(String::new());
            lines.extend(
                session_page(session)
                    .into_iter()
                    .map(|line| format!("  {line}")),
            );
        }
        lines.push(String::new());
    }
    lines.pop();
    lines
}

/// How far a user plane is drained that has so many sessions left.
pub(super) fn drained(drain: &Drain, left: u64) -> String {
    if left == 0 {
        return "is drained: no session is left, and no new one is taken".into();
    }
    let so_far = format!(
        "is drained: {left} of {} sessions left",
        drain.sessions_before
    );
    let since = duration(drain.since_seconds);
    match (drain.rate, drain.remaining_seconds) {
        (1.., _) if drain.waits => format!("{so_far}; it does not answer, so none is ended"),
        (rate @ 1.., Some(seconds)) => {
            let rest = duration(seconds);
            format!("{so_far} after {since}, {rate}/s end, {rest} to go")
        }
        _ => format!("{so_far} after {since}"),
    }
}

/// `sluice watch session ID`.
pub fn watch_session(sockets: &Sockets, id: &str, seconds: u32) -> Result<Answer, Failure> {
    sockets.control_plane(|cp| cp.watch_rules(id, seconds))?;
    Ok(Answer::of(vec![match seconds {
        0 => format!("the rules of session {id} are not watched any more"),
        seconds => format!(
            "the rules of session {id} are watched for {seconds} s: `sluice show session {id}` shows which ones its packets match"
        ),
    }]))
}

/// `sluice clear session ID`.
pub fn clear_session(sockets: &Sockets, id: &str) -> Result<Answer, Failure> {
    sockets.control_plane(|cp| cp.clear_session(id))?;
    Ok(Answer::of(vec![format!("session {id} is being ended")]))
}

/// `sluice clear back-off WHO`.
pub fn clear_back_off(sockets: &Sockets, who: &str) -> Result<Answer, Failure> {
    sockets.control_plane(|cp| cp.clear_back_off(who))?;
    Ok(Answer::of(vec![format!(
        "discovery packets of {who} are answered again"
    )]))
}

/// `sluice move aggregate AGGREGATE --worker WORKER`.
pub fn move_aggregate(sockets: &Sockets, name: &str, worker: u32) -> Result<Answer, Failure> {
    let request = MoveAggregateRequest::named(name, worker);
    let request = request.map_err(|refusal| Failure::Other(refusal.to_string()))?;
    let moved = sockets.control_plane(|cp| cp.move_aggregate(request))?;
    let sessions = counted(moved.sessions, "session");
    let mut lines = vec![format!("{name} is at worker {worker}; moved: {sessions}")];
    if moved.split_subscribers > 0 {
        lines.push(format!(
            "warning: {} of it have other sessions at other workers, and each worker holds their home rates alone: move those \
                segments or VLANs to worker {worker} too",
            counted(moved.split_subscribers, "subscriber")
        ));
    }
    Ok(Answer::of(lines))
}

/// `sluice acknowledge alarm ALARM`.
pub fn acknowledge_alarm(
    sockets: &Sockets,
    alarm: String,
    resource: Option<String>,
    comment: Option<String>,
) -> Result<Answer, Failure> {
    let said = format!("alarm {alarm} is acknowledged until it is cleared");
    let request = AcknowledgeAlarmRequest {
        alarm,
        resource,
        comment: comment.unwrap_or_default(),
    };
    sockets.control_plane(|cp| cp.acknowledge_alarm(request))?;
    Ok(Answer::of(vec![said]))
}

/// Lines that only a session has that they concern.
const ONLY_IF_THERE: [&str; 8] = [
    "ipv4 up",
    "ipv4 down",
    "ipv6 up",
    "ipv6 down",
    "access loop",
    "fallback",
    "without effect",
    "next connection",
];

fn session_page(s: &Session) -> Vec<String> {
    let none = || "none".to_owned();
    let t = s.traffic.unwrap_or_default();
    let routes = match s.routes.is_empty() {
        true => none(),
        false => s.routes.join(", "),
    };
    let counted = |packets, bytes| format!("{} packets, {}", count(packets), octets(bytes));
    let up = |t: &Traffic| counted(t.up_packets, t.up_octets);
    let down = |t: &Traffic| counted(t.down_packets, t.down_octets);
    let of = |family: &Option<Traffic>, way: &dyn Fn(&Traffic) -> String| {
        family.as_ref().map(way).unwrap_or_default()
    };
    [
        ("session", s.id.clone()),
        ("state", word(&[], s.state())),
        ("user", s.user.clone()),
        ("subscriber", s.subscriber.clone()),
        (
            "line",
            format!(
                "user plane {}, port {}, VLAN {}",
                s.user_plane,
                s.port,
                vlan(s)
            ),
        ),
        ("mac", s.mac.clone()),
        ("pppoe session", s.pppoe_session_id.to_string()),
        ("profile", s.profile.clone()),
        ("group", s.group.clone()),
        ("network instance", s.network_instance.clone()),
        ("ipv4", s.ipv4.clone().unwrap_or_else(none)),
        ("ipv6", s.ipv6_prefix.clone().unwrap_or_else(none)),
        ("routes", routes),
        ("online", duration(s.online_seconds)),
        ("up", up(&t)),
        ("down", down(&t)),
        ("ipv4 up", of(&s.ipv4_traffic, &up)),
        ("ipv4 down", of(&s.ipv4_traffic, &down)),
        ("ipv6 up", of(&s.ipv6_traffic, &up)),
        ("ipv6 down", of(&s.ipv6_traffic, &down)),
        ("access loop", s.access_loop.join(", ")),
        ("fallback", s.fallback.clone()),
        ("without effect", s.without_effect.join(", ")),
        ("next connection", s.next_connection.join(", ")),
    ]
    .into_iter()
    .filter(|(name, value)| !ONLY_IF_THERE.contains(name) || !value.is_empty())
    .map(|(name, value)| row(name, &value))
    .collect()
}

fn vlan(s: &Session) -> String {
    match (s.s_tag, s.c_tag) {
        (None, _) => "untagged".into(),
        (Some(outer), None) => outer.to_string(),
        (Some(outer), Some(inner)) => format!("{outer}.{inner}"),
    }
}

/// The terminal's width; `None` where the output goes elsewhere.
pub(crate) fn terminal_width() -> Option<usize> {
    let (width, _) = io::stdout()
        .is_terminal()
        .then(|| crossterm::terminal::size().ok())??;
    (width > 0).then_some(width as usize)
}

pub(super) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Other(e.to_string()))?;
    print_lines(&[text])
}

pub(super) fn print_lines(lines: &[String]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match lines
        .iter()
        .try_for_each(|line| writeln!(out, "{line}"))
        .and_then(|()| out.flush())
    {
        // `sluice show sessions | head` is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::{DirectionPolicy, PolicySetting, SessionPolicy};

    fn example() -> Session {
        Session {
            id: "65f0a1-00000007".into(),
            state: SessionState::Online.into(),
            user: "home7@sluice".into(),
            user_plane: "up1".into(),
            port: "access0".into(),
            s_tag: Some(100),
            c_tag: Some(7),
            mac: "02:00:00:00:00:07".into(),
            pppoe_session_id: 7,
            group: "up1/access0".into(),
            network_instance: "default".into(),
            profile: "home".into(),
            ipv4: Some("100.64.0.9".into()),
            ipv6_prefix: Some("2001:db8:100:7::/64".into()),
            routes: vec!["192.0.2.0/29".into(), "2001:db8:77::/48".into()],
            subscriber: "up1/access0.100.7".into(),
            subscriber_handle: Some(7),
            fallback: String::new(),
            access_loop: Vec::new(),
            without_effect: Vec::new(),
            next_connection: Vec::new(),
            line: "up1/access0.100.7".into(),
            online_seconds: 125,
            traffic: Some(Traffic {
                up_packets: 1000,
                up_octets: 64_000,
                down_packets: 10,
                down_octets: 640,
            }),
            ipv4_traffic: None,
            ipv6_traffic: None,
        }
    }

    #[test]
    fn a_drain_is_told_with_what_is_left_and_when_it_ends() {
        let drain = |rate, remaining_seconds, waits| Drain {
            sessions_before: 1000,
            since_seconds: 60,
            rate,
            remaining_seconds,
            waits,
        };
        let said = |rate, rest, waits, left| drained(&drain(rate, rest, waits), left);
        let expected = "is drained: 312 of 1000 sessions left after 1m 00s, 10/s end, 31s to go";
        assert_eq!(said(10, Some(31), false, 312), expected);
        assert!(expected.len() <= 76, "a name has room beside it");
        assert!(said(0, None, false, 312).ends_with("sessions left after 1m 00s"));
        assert!(said(10, None, true, 312).ends_with("so none is ended"));
        assert!(said(10, Some(0), false, 0).contains("no session is left"));
    }

    #[test]
    fn a_session_page_ends_with_its_policies() {
        let setting = |label: &str, value: &str| PolicySetting {
            label: label.into(),
            value: value.into(),
            origin: "profile".into(),
            ..PolicySetting::default()
        };
        let up = DirectionPolicy {
            name: "home-up".into(),
            denied_packets: 133,
            ..DirectionPolicy::default()
        };
        let mut details = SessionDetails {
            session: example(),
            settings: vec![
                setting("policy up", "home-up"),
                setting("direction of the idle timeout", "both ways"),
            ],
            policy: Some(SessionPolicy {
                up: Some(up),
                ..SessionPolicy::default()
            }),
            limited_by: None,
        };
        let page = details_page(&details).join("\n");
        let rows = "\npolicy up         home-up (profile)\n\
                    direction of the idle timeout both ways (profile)\n\
                    policy up state   home-up (unknown)\n\
                    denied up         133 packets, 0 B\n\
                    above rate up     0 packets";
        assert!(page.ends_with(rows), "{page}");
        let json = serde_json::to_value(&details).unwrap();
        assert_eq!(json["user"], "home7@sluice", "as before");
        assert_eq!(json["policy"]["up"]["denied_packets"], 133);
        details.policy = None;
        let page = details_page(&details).join("\n");
        assert!(
            !page.contains("denied") && page.contains("policy up"),
            "{page}"
        );
    }

    #[test]
    fn a_subscriber_page_has_each_of_its_sessions() {
        let second = Session {
            id: "65f0a1-00000009".into(),
            state: SessionState::Connecting.into(),
            ..example()
        };
        let other = Session {
            subscriber: String::new(),
            subscriber_handle: None,
            ..example()
        };
        let page = subscriber_pages(&[example(), second, other]).join("\n");
        let heads = "subscriber        up1/access0.100.7\nsessions          2 sessions, 1 online\n\n  session ";
        assert!(page.starts_with(heads), "{page}");
        assert_eq!(page.matches("\n  session ").count(), 3, "{page}");
        assert!(
            page.contains("subscriber        not known before"),
            "{page}"
        );
    }

    #[test]
    fn a_session_page_names_what_is_missing() {
        let page = session_page(&Session {
            ipv6_prefix: None,
            ..example()
        })
        .join("\n");
        assert!(page.contains("ipv6              none"), "{page}");
        let routes = "routes            192.0.2.0/29, 2001:db8:77::/48";
        assert!(page.contains(routes), "{page}");
        assert!(
            page.contains("up                1.0 k packets, 64.0 kB"),
            "{page}"
        );
        assert!(!page.contains("fallback"), "{page}");
        let by_fallback = Session {
            fallback: "last-policy".into(),
            ..example()
        };
        let page = session_page(&by_fallback).join("\n");
        assert!(page.contains("fallback          last-policy"), "{page}");
        let with_rates = Session {
            access_loop: vec!["line rate up 10000 kbit/s".into(), "PPP over ATM".into()],
            ..example()
        };
        let page = session_page(&with_rates).join("\n");
        assert!(!page.contains("without effect"), "{page}");
        let rates = "access loop       line rate up 10000 kbit/s, PPP over ATM";
        assert!(page.contains(rates), "{page}");
    }
}
