//! The answers as tables and as JSON.

use super::ask::{Failure, Sockets, answers};
use super::table::{Column, Table};
use super::time;
use super::units::{count, counted, duration, octets};
use northbound::{Drain, DropCounter, Session, SessionState, UserPlane, UserPlaneState};
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

/// `sluice show sessions`.
pub fn sessions(sockets: &Sockets, json: bool) -> Result<Answer, Failure> {
    let sessions = sockets.control_plane(|cp| cp.sessions())?;
    if json {
        return Answer::json(&sessions);
    }
    let mut answer = match sessions.is_empty() {
        true => Answer::default(),
        false => Answer::table(session_table(&sessions).render(terminal_width())),
    };
    let online = sessions
        .iter()
        .filter(|s| s.state() == SessionState::Online)
        .count();
    let all = counted(sessions.len(), "session");
    answer.total = Some(format!("{all}, {online} online"));
    Ok(answer)
}

/// `sluice show session ID`.
pub fn session(sockets: &Sockets, id: &str, json: bool) -> Result<Answer, Failure> {
    let session = sockets.control_plane(|cp| cp.session(id))?;
    match json {
        true => Answer::json(&session),
        false => Ok(Answer::of(session_page(&session))),
    }
}

/// `sluice show user-planes`.
pub fn user_planes(sockets: &Sockets, json: bool) -> Result<Answer, Failure> {
    let user_planes = sockets.control_plane(|cp| cp.user_planes())?;
    if json {
        return Answer::json(&user_planes);
    }
    let managed = sockets.configuration()?.ask(|c| c.managed())?;
    let mut answer = Answer::table(user_plane_table(&user_planes).render(terminal_width()));
    let behind = managed.iter().filter(|m| !m.in_force);
    let told = behind.map(|m| {
        format!(
            "{} does not have the configuration in force: {}",
            m.name, m.why
        )
    });
    answer.lines.extend(told);
    let drained = user_planes.iter().filter_map(|u| {
        let drain = u.drain.as_ref()?;
        Some(format!("{} {}", u.node_id, drained(drain, u.sessions)))
    });
    answer.lines.extend(drained);
    Ok(answer)
}

/// How far a user plane is drained that has so many sessions left.
fn drained(drain: &Drain, left: u64) -> String {
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

/// `sluice show drops`: every plane's counters; what one has is shown even where a user plane does not answer.
pub fn drops(sockets: &Sockets, all: bool, json: bool) -> Result<Answer, Failure> {
    let own = sockets.control_plane(|cp| cp.drops())?;
    let user_planes = sockets.control_plane(|cp| cp.user_planes())?;
    let of_user_planes = user_planes
        .iter()
        .map(|plane| sockets.control_plane(|cp| cp.user_plane_drops(&plane.node_id)));
    let (said, failure) = answers(std::iter::once(Ok(own)).chain(of_user_planes));
    let drops = said.concat();
    if json {
        let answer = Answer::json(&drops)?;
        return Ok(Answer { failure, ..answer });
    }
    let shown: Vec<&DropCounter> = drops.iter().filter(|d| all || d.count > 0).collect();
    let mut answer = match shown.is_empty() {
        true => Answer::default(),
        false => Answer::table(drop_table(&shown).render(terminal_width())),
    };
    if !all && !drops.is_empty() {
        answer.total = Some(format!(
            "{} of {} counters are not zero (--all shows every one)",
            shown.len(),
            drops.len()
        ));
    }
    Ok(Answer { failure, ..answer })
}

/// `sluice clear session ID`.
pub fn clear_session(sockets: &Sockets, id: &str) -> Result<Answer, Failure> {
    sockets.control_plane(|cp| cp.clear_session(id))?;
    Ok(Answer::of(vec![format!("session {id} is being ended")]))
}

fn session_table(sessions: &[Session]) -> Table {
    let mut table = Table::new(&[
        Column::words("ID", 0),
        Column::words("STATE", 0),
        Column::words("USER", 0),
        Column::words("PORT", 7),
        Column::words("VLAN", 2),
        Column::words("MAC", 6),
        Column::numbers("PPPOE", 8),
        Column::words("IPV4", 0),
        Column::words("IPV6", 1),
        Column::numbers("ONLINE", 3),
        Column::numbers("UP", 5),
        Column::numbers("DOWN", 4),
    ]);
    for s in sessions {
        let traffic = s.traffic.unwrap_or_default();
        table.push([
            s.id.clone(),
            state(s.state()).into(),
            s.user.clone(),
            format!("{}/{}", s.user_plane, s.port),
            vlan(s),
            s.mac.clone(),
            s.pppoe_session_id.to_string(),
            s.ipv4.clone().unwrap_or_default(),
            s.ipv6_prefix.clone().unwrap_or_default(),
            duration(s.online_seconds),
            octets(traffic.up_octets),
            octets(traffic.down_octets),
        ]);
    }
    table
}

fn session_page(s: &Session) -> Vec<String> {
    let none = || "none".to_owned();
    let t = s.traffic.unwrap_or_default();
    let routes = match s.routes.is_empty() {
        true => none(),
        false => s.routes.join(", "),
    };
    let traffic = |packets, bytes| format!("{} packets, {}", count(packets), octets(bytes));
    [
        ("session", s.id.clone()),
        ("state", state(s.state()).to_owned()),
        ("user", s.user.clone()),
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
        ("up", traffic(t.up_packets, t.up_octets)),
        ("down", traffic(t.down_packets, t.down_octets)),
    ]
    .into_iter()
    .map(|(name, value)| format!("{name:<18}{value}").trim_end().to_owned())
    .collect()
}

fn user_plane_table(user_planes: &[UserPlane]) -> Table {
    let mut table = Table::new(&[
        Column::words("NODE", 0),
        Column::words("ADDRESS", 2),
        Column::words("STATE", 0),
        Column::numbers("SINCE", 1),
        Column::numbers("STARTED", 3),
        Column::numbers("RESTARTS", 1),
        Column::numbers("SESSIONS", 0),
        Column::words("ACCESS PORTS", 1),
    ]);
    let now = time::now();
    let ago = |at: u64| format!("{} ago", duration(now.saturating_sub(at)));
    for u in user_planes {
        let ports = u.access_ports.iter().map(|port| match port.open {
            true => port.name.clone(),
            false => format!("{} (closed)", port.name),
        });
        table.push([
            u.node_id.clone(),
            u.address.clone(),
            match u.drain.is_some() {
                true => format!("{}, drained", user_plane_state(u.state())),
                false => user_plane_state(u.state()).into(),
            },
            duration(u.since_seconds),
            u.started_at.map(ago).unwrap_or_default(),
            u.restarts.to_string(),
            u.sessions.to_string(),
            ports.collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

fn drop_table(drops: &[&DropCounter]) -> Table {
    let mut table = Table::new(&[
        Column::words("PLANE", 1),
        Column::words("NAME", 0),
        Column::numbers("COUNT", 0),
        Column::words("MEANING", 0),
    ]);
    for d in drops {
        // Exact, because they are compared: a drop more or less matters.
        table.push([
            d.plane.clone(),
            d.name.clone(),
            d.count.to_string(),
            d.meaning.clone(),
        ]);
    }
    table
}

fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Unspecified => "unknown",
        SessionState::Connecting => "connecting",
        SessionState::Online => "online",
        SessionState::Closing => "closing",
    }
}

fn user_plane_state(state: UserPlaneState) -> &'static str {
    match state {
        UserPlaneState::Unspecified => "unknown",
        UserPlaneState::NeverSeen => "never seen",
        UserPlaneState::Restoring => "restoring",
        UserPlaneState::Associated => "associated",
        UserPlaneState::Lost => "lost",
    }
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
    use northbound::Traffic;

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
            online_seconds: 125,
            traffic: Some(Traffic {
                up_packets: 1000,
                up_octets: 64_000,
                down_packets: 10,
                down_octets: 640,
            }),
        }
    }

    #[test]
    fn the_session_table_fits_eighty_columns_and_keeps_who_and_where() {
        let table = session_table(&[example()]);
        let lines = table.render(Some(80));
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{lines:#?}"
        );
        assert!(
            lines[1].contains("home7@sluice") && lines[1].contains("100.64.0.9"),
            "{lines:#?}"
        );
        let full = table.render(None);
        assert!(
            full[1].contains("100.7") && full[1].contains("2m 05s") && full[1].contains("64.0 kB"),
            "{full:#?}"
        );
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
    }
}
