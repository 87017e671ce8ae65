//! The rows of the local API's tables: whom they are asked of, and what stands below them.

use super::ask::{Configuration, Failure, Sockets, answers};
use super::history::{self, LATEST, events};
use super::listing::Row;
use super::query::{Query, shown};
use super::queues;
use super::show::{Answer, details, drained};
use super::time;
use super::units::{counted, duration};
use super::word;
use northbound::catalogue::{self, EVENT_WORDS};
use northbound::{
    DaemonRow, EventKind, LineRow, ListAlarmsResponse, ListEventsRequest, ListFiguresRequest,
    ListLinesRequest, ListSessionsRequest, ListTroubleRequest, RouteKind, SessionState,
    SubscriberRow, TroubleHour, WatchStateResponse, WatchedUserPlane, WorkerRow,
};
use std::time::Duration;

/// How far back the events of lines count where nothing else is said.
const DAY: u64 = 24 * 60 * 60;

/// The first state comes at once, whatever the time to the next.
const INTERVAL: Duration = Duration::from_secs(60);

/// Asks for a table's rows, and shows them.
pub(super) type Ask = fn(&Query, &Sockets) -> Result<Answer, Failure>;

/// How the rows of each table are asked for.
pub(super) const ASKED: [(&catalogue::Table, Ask); 28] = [
    (&catalogue::SESSIONS, sessions),
    (&catalogue::SUBSCRIBERS, subscribers),
    (&catalogue::LINES, lines),
    (&catalogue::TROUBLE, trouble),
    (&catalogue::SESSION_COUNTS, session_counts),
    (&catalogue::SESSION_CLEARS, session_clears),
    (&catalogue::WAITS, waits),
    (&catalogue::USER_PLANES, user_planes),
    (&catalogue::PORTS, ports),
    (&catalogue::LAG_MEMBERS, lag_members),
    (&catalogue::ROUTES, routes),
    (&catalogue::NEIGHBOURS, neighbours),
    (&catalogue::DAEMONS, daemons),
    (&catalogue::WORKERS, workers),
    (&catalogue::ACL, acl),
    (&catalogue::POLICIES, policies),
    (&catalogue::QUEUES, session_queues),
    (&catalogue::QUEUE_AGGREGATES, queue_aggregates),
    (&catalogue::PROTECTION, protection),
    (&catalogue::POOLS, pools),
    (&catalogue::ASSOCIATIONS, associations),
    (&catalogue::AAA_SERVERS, aaa_servers),
    (&catalogue::ALARMS, alarms),
    (&catalogue::ALARM_HISTORY, alarm_history),
    (&catalogue::EVENTS, happened),
    (&catalogue::FIGURES, figures),
    (&catalogue::DROPS, drops),
    (&catalogue::VERSIONS, in_versions),
];

/// What could not be asked is told beside what could.
fn but(mut answer: Answer, missing: &[String]) -> Answer {
    if !missing.is_empty() {
        answer.failure = Some(Failure::Other(missing.join("\n")));
    }
    answer
}

fn sessions(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let request = ListSessionsRequest {
        filter: Some(asked.filter()?),
        ..ListSessionsRequest::default()
    };
    let sessions = sockets.control_plane(|cp| cp.sessions_of(request))?;
    let online = sessions
        .iter()
        .filter(|s| s.state() == SessionState::Online);
    let all = counted(sessions.len(), "session");
    let total = format!("{all}, {} online", online.count());
    Ok(asked.with_total(asked.shown(&sessions)?, total))
}

fn subscribers(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let sessions = sockets.control_plane(|cp| cp.sessions())?;
    let subscribers = SubscriberRow::of(&sessions);
    let online = subscribers.iter().filter(|s| s.online > 0).count();
    let all = counted(subscribers.len(), "subscriber");
    let total = format!("{all}, {online} online");
    Ok(asked.with_total(asked.shown(&subscribers)?, total))
}

fn lines(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let subscriber = asked.text("line").unwrap_or_default();
    let request = ListLinesRequest {
        subscriber: subscriber.into(),
        since: asked.time("since")?.or(Some(time::now() - DAY)),
    };
    let (histories, more) = sockets.history(|history| history.lines(request))?;
    let sessions = sockets.control_plane(|cp| cp.sessions())?;
    let mut rows = LineRow::of(subscriber, &sessions, histories);
    let online = rows.iter().filter(|row| row.online > 0).count();
    let mut total = format!(
        "{}, {online} with somebody online",
        counted(rows.len(), "line")
    );
    if more {
        total.push_str("; those that were heard of longest ago are left out");
    }
    if asked.flag("worst") {
        rows = LineRow::worst(rows);
        if rows.is_empty() {
            total.push_str(", and nobody was refused, failed or went in that time");
        }
    }
    let answer = asked.derived(&rows, |line, row| {
        row.insert(
            "last_trouble".into(),
            history::trouble(&line.history).into(),
        );
    })?;
    Ok(asked.with_total(answer, total))
}

fn trouble(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let kind = EventKind::list(asked.text("kind").unwrap_or_default());
    let kind = kind.map_err(Failure::Other)?;
    let request = ListTroubleRequest {
        until: asked.time("until")?,
        kind: kind.first().copied().unwrap_or_default().into(),
    };
    let mut rows = sockets.history(|history| history.trouble(request))?;
    if !asked.json() {
        let has_some = |hour: &TroubleHour| hour.ended + hour.failed + hour.refused > 0;
        rows.iter_mut().for_each(|row| row.hours.retain(has_some));
    }
    asked.shown(&rows)
}

fn session_counts(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    asked.shown(&[state.sessions.unwrap_or_default()])
}

fn session_clears(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    asked.shown(&sockets.control_plane(|cp| cp.session_clears())?)
}

fn waits(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    asked.shown(&[state.waits.unwrap_or_default()])
}

fn user_planes(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let user_planes = sockets.control_plane(|cp| cp.user_planes())?;
    let mut answer = asked.shown(&user_planes)?;
    if asked.json() {
        return Ok(answer);
    }
    let managed = sockets.configuration()?.ask(|c| c.managed())?;
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

fn ports(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let of = asked.text("user-plane");
    let (ports, missing) = sockets.tables(|tables| tables.ports(of))?;
    Ok(but(asked.shown(&ports)?, &missing))
}

fn routes(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let of = asked.text("user-plane");
    let (routes, missing) = sockets.tables(|tables| tables.routes(of))?;
    let answer = asked.derived(&routes, unresolved)?;
    Ok(but(answer, &missing))
}

fn unresolved(route: &northbound::Route, row: &mut Row) {
    if route.kind() == RouteKind::Neighbour && route.mac.is_none() {
        row.insert("mac".into(), "unresolved".into());
    }
}

fn neighbours(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let of = asked.text("user-plane");
    let (neighbours, missing) = sockets.tables(|tables| tables.neighbours(of))?;
    Ok(but(asked.shown(&neighbours)?, &missing))
}

fn acl(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let (name, of) = (
        asked.text("acl").unwrap_or_default(),
        asked.text("user-plane"),
    );
    let (rules, missing) = sockets.tables(|tables| tables.acl_rules(name, of))?;
    let answer = asked.shown(&rules)?;
    let uncounted = !rules.is_empty() && rules.iter().all(|rule| rule.packets.is_none());
    let answer = match uncounted {
        true => {
            let how = format!("packets are not counted: `set acls {name} count true` changes that");
            asked.with_total(answer, how)
        }
        false => answer,
    };
    Ok(but(answer, &missing))
}

fn policies(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let of = asked.text("user-plane");
    let (policies, missing) = sockets.tables(|tables| tables.policies(of))?;
    Ok(but(asked.shown(&policies)?, &missing))
}

fn session_queues(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let id = asked.text("session").unwrap_or_default();
    let details = details(sockets, id)?;
    let queues = details.queues();
    let answer = asked.shown(&queues)?;
    let missing = details.missing_queues();
    let answer = match queues.is_empty() && missing.is_none() {
        true => asked.with_total(
            answer,
            format!("session {id} has no queues: its `policy-down` does not say `above-rate wait`"),
        ),
        false => answer,
    };
    Ok(but(answer, missing.as_slice()))
}

fn queue_aggregates(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let (mut rows, missing) = sockets.tables(|tables| tables.queue_aggregates(None))?;
    if let Some(name) = asked.text("aggregate") {
        rows.retain(|row| row.is_meant(name));
        if rows.is_empty() && missing.is_empty() {
            return Err(Failure::Other(format!(
                "no port, segment or VLAN with queues is called `{name}`: `sluice show qos aggregates` lists them"
            )));
        }
    }
    Ok(but(asked.derived(&rows, queues::derive)?, &missing))
}

/// The processes of the control plane and of user planes, as the user planes told last.
fn daemons(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    let silent = WatchedUserPlane::silent(&state.user_planes);
    Ok(but(asked.shown(&DaemonRow::of(state))?, &silent))
}

/// What workers did since their start, as their user planes told last.
fn workers(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    let (workers, silent) = workers_of(state, asked.text("user-plane"))?;
    Ok(but(asked.shown(&workers)?, &silent))
}

/// Members of ports, as the user planes reported last.
fn lag_members(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    let planes = wanted(state, asked.text("user-plane"))?;
    let silent = WatchedUserPlane::silent(&planes);
    let members: Vec<_> = planes
        .into_iter()
        .flat_map(|plane| plane.lag_members)
        .collect();
    let answer = asked.shown(&members)?;
    let answer = match members.is_empty() {
        true => asked.with_total(
            answer,
            "no port has a LAG: `set user-planes NAME ports NAME lag members` makes one".into(),
        ),
        false => answer,
    };
    Ok(but(answer, &silent))
}

/// Senders above a rate, as the user planes reported last, and senders whose set-ups fail.
fn protection(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    let planes = wanted(state, asked.text("user-plane"))?;
    let silent = WatchedUserPlane::silent(&planes);
    let offenders: Vec<_> = planes
        .into_iter()
        .flat_map(|plane| plane.offenders)
        .collect();
    let held = offenders.iter().filter(|row| row.held_seconds > 0).count();
    let all = counted(offenders.len(), "sender");
    let total = format!("{all}, {held} held");
    Ok(but(
        asked.with_total(asked.shown(&offenders)?, total),
        &silent,
    ))
}

/// All user planes, or one.
fn wanted(state: WatchStateResponse, of: Option<&str>) -> Result<Vec<WatchedUserPlane>, Failure> {
    let mut planes = state.user_planes;
    planes.retain(|plane| of.is_none_or(|of| of == plane.node_id));
    match of {
        _ if !planes.is_empty() => Ok(planes),
        Some(name) => Err(Failure::Other(format!(
            "user plane `{name}` does not exist: `sluice show user-planes` lists them"
        ))),
        None => Err(Failure::Other("there is no user plane".into())),
    }
}

/// The workers of all user planes or of one, and what is missing.
fn workers_of(
    state: WatchStateResponse,
    of: Option<&str>,
) -> Result<(Vec<WorkerRow>, Vec<String>), Failure> {
    let planes = wanted(state, of)?;
    let silent = WatchedUserPlane::silent(&planes);
    let workers = planes.into_iter().flat_map(WorkerRow::of);
    Ok((workers.collect(), silent))
}

fn pools(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let pools = sockets.tables(|tables| tables.pools())?;
    asked.derived(&pools, free)
}

fn free(pool: &northbound::Pool, row: &mut Row) {
    let free = pool.size.saturating_sub(pool.used);
    row.insert("free".into(), free.into());
}

fn associations(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    asked.shown(&sockets.tables(|tables| tables.associations())?)
}

fn aaa_servers(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let servers = sockets.tables(|tables| tables.aaa_servers())?;
    let answer = asked.shown(&servers)?;
    if !servers.is_empty() {
        return Ok(answer);
    }
    let nobody = "no RADIUS server is configured: subscribers are looked up among `users`";
    Ok(asked.with_total(answer, nobody.into()))
}

fn alarms(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let found = sockets.history(|history| history.alarms())?;
    if asked.json() {
        return Answer::json(&found);
    }
    Ok(asked.with_total(asked.shown(&found.alarms)?, by_severity(&found)))
}

/// How many alarms of which severity are raised.
fn by_severity(found: &ListAlarmsResponse) -> String {
    let counts = [
        (found.critical, "critical"),
        (found.major, "major"),
        (found.minor, "minor"),
        (found.warning, "warning"),
    ];
    let there = counts.into_iter().filter(|(count, _)| *count > 0);
    let there: Vec<String> = there
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    match there.is_empty() {
        true => "no alarm is raised".into(),
        false => there.join(", "),
    }
}

fn alarm_history(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let request = ListEventsRequest {
        alarms: true,
        last: Some(LATEST),
        ..ListEventsRequest::default()
    };
    let (changes, _) = events(sockets, request)?;
    if changes.is_empty() && !asked.json() {
        return Ok(Answer::of(vec!["no alarm was raised".into()]));
    }
    asked.derived(&changes, |change, row| {
        let became = match change.kind() {
            EventKind::AlarmRaised => word(&[], change.severity()),
            other => word(EVENT_WORDS, other),
        };
        row.insert("became".into(), became.into());
    })
}

fn happened(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let kinds = EventKind::list(asked.text("kinds").unwrap_or_default());
    let kinds = kinds.map_err(Failure::Other)?;
    let all = asked.text("since").is_some();
    let last = asked.number("last");
    let last = last.and_then(|last| u32::try_from(last).ok());
    let request = ListEventsRequest {
        subscriber: asked.text("subscriber").unwrap_or_default().into(),
        since: asked.time("since")?,
        until: asked.time("until")?,
        last: last.or((!all).then_some(LATEST)),
        alarms: false,
        kinds: kinds.into_iter().map(Into::into).collect(),
        also: asked.text("also").unwrap_or_default().into(),
        count: !asked.json(),
    };
    let (events, matching) = events(sockets, request)?;
    if events.is_empty() && !asked.json() {
        return Ok(Answer::of(vec!["nothing is known of that".into()]));
    }
    let answer = asked.derived(&events, history::derive)?;
    Ok(match matching {
        Some(all) if all.or_more || all.events > events.len() as u64 => {
            asked.with_total(answer, history::cut(events.len(), all))
        }
        _ => answer,
    })
}

fn figures(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let request = ListFiguresRequest {
        name: asked.text("figure").unwrap_or_default().into(),
        resource: asked.text("of").map(Into::into),
        since: asked.time("since")?,
        until: asked.time("until")?,
    };
    let figures = sockets.history(|history| history.figures(request))?;
    asked.shown(&figures)
}

/// Every plane's counters; what one has is shown even where a user plane does not answer.
fn drops(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    let own = sockets.control_plane(|cp| cp.drops())?;
    let user_planes = sockets.control_plane(|cp| cp.user_planes())?;
    let of_user_planes = user_planes
        .iter()
        .map(|plane| sockets.control_plane(|cp| cp.user_plane_drops(&plane.node_id)));
    let (said, failure) = answers(std::iter::once(Ok(own)).chain(of_user_planes));
    let mut drops = said.concat();
    let all = drops.len();
    let whole = asked.flag("all") || asked.json();
    drops.retain(|drop| whole || drop.count > 0);
    let mut answer = asked.shown(&drops)?;
    if !whole && all > 0 {
        let not_zero = drops.len();
        let total = format!("{not_zero} of {all} counters are not zero (--all shows every one)");
        answer.total = Some(total);
    }
    Ok(Answer { failure, ..answer })
}

fn in_versions(asked: &Query, sockets: &Sockets) -> Result<Answer, Failure> {
    versions(&mut sockets.configuration()?, asked.json())
}

/// The versions of the configuration, on a page the latest first.
pub fn versions(configuration: &mut Configuration, json: bool) -> Result<Answer, Failure> {
    let mut versions = configuration.ask(|c| c.versions())?;
    let last = versions.last().map(|v| v.version);
    if !json {
        versions.reverse();
    }
    let now = time::now();
    shown(&catalogue::VERSIONS, json, &versions, |v, row| {
        let state = match v.confirm_by {
            Some(by) => format!("waits {} to be confirmed", duration(by.saturating_sub(now))),
            None if Some(v.version) == last => "in force".into(),
            None => String::new(),
        };
        row.insert("state".into(), state.into());
        row.insert("ago".into(), now.saturating_sub(v.at).into());
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::cli::listing::table;
    use clap::{CommandFactory, Parser};
    use northbound::catalogue::{ACTIONS, TABLES};
    use northbound::{
        AaaRole, AaaServer, AaaServerState, Acknowledgement, AclRule, Alarm, AlarmSeverity,
        Association, AssociationState, Drain, Neighbour, NeighbourState, NextHop, Pool, PoolShare,
        Port, QueueAggregate, QueueLimit, Route, Session, SessionCounts, Traffic, TrafficPolicy,
        TrafficPolicyState, UserPlane, UserPlanePort, UserPlaneState, WatchedUserPlane, Worker,
    };
    use serde::Serialize;

    fn nothing<R>(_: &R, _: &mut Row) {}

    /// A page of 80 columns that has these words whole.
    fn fits<R: Serialize>(
        of: &catalogue::Table,
        row: R,
        derive: impl Fn(&R, &mut Row),
        whole: &[&str],
    ) {
        let lines = table(of, &[row], derive).render(Some(80));
        let wide = lines.iter().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
        let text = lines.join("\n");
        for word in whole {
            assert!(text.contains(word), "`{word}` is cut:\n{text}");
        }
    }

    fn session() -> Session {
        Session {
            id: "65f0a1-00000007".into(),
            state: SessionState::Online.into(),
            user: "home7@sluice".into(),
            user_plane: "up1".into(),
            port: "access0".into(),
            s_tag: Some(100),
            c_tag: Some(7),
            mac: "02:00:00:00:00:07".into(),
            ipv4: Some("100.64.0.9".into()),
            ipv6_prefix: Some("2001:db8:100:7::/64".into()),
            online_seconds: 125,
            traffic: Some(Traffic {
                up_octets: 64_000,
                ..Traffic::default()
            }),
            ..Session::default()
        }
    }

    #[test]
    fn the_command_line_offers_every_table_and_action_as_declared() {
        let asked: Vec<&str> = ASKED.iter().map(|(table, _)| table.name).collect();
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        assert_eq!(asked, tables);
        let all = TABLES
            .iter()
            .map(|t| (format!("show {}", t.name), t.about, t.arguments));
        let actions = ACTIONS
            .iter()
            .filter(|action| !action.name.starts_with("commit"));
        let all = all.chain(actions.map(|a| (a.name.to_owned(), a.about, a.arguments)));
        for (name, about, arguments) in all {
            let mut command = &Cli::command();
            for word in name.split(' ') {
                let below = command.find_subcommand(word);
                command = below.unwrap_or_else(|| panic!("`{name}` is not offered"));
            }
            assert_eq!(
                command.get_about().map(ToString::to_string).as_deref(),
                Some(about)
            );
            for declared in arguments {
                let value = declared.name.to_uppercase();
                let is_it = |arg: &&clap::Arg| {
                    let names = arg.get_value_names().unwrap_or_default();
                    let long = arg.get_long().unwrap_or(arg.get_id().as_str());
                    long == declared.name || names.iter().any(|name| *name == value)
                };
                let arg = command.get_arguments().find(is_it);
                let arg = arg.unwrap_or_else(|| panic!("{name} without {}", declared.name));
                let help = arg.get_help().map(ToString::to_string);
                assert_eq!(help.as_deref(), Some(declared.about), "{name}");
                assert_eq!(arg.is_required_set(), declared.required, "{name}: {arg}");
            }
        }
    }

    #[test]
    fn arguments_are_read_as_declared_and_others_refused() {
        let show = |line: &str| {
            let words = ["sluice", "show"].into_iter().chain(line.split(' '));
            Cli::try_parse_from(words).map(drop)
        };
        for line in [
            "ports up1 --json",
            "events alice --since -2h --last 5",
            "events alice --also up1/access0.100.* --kinds refused,failed",
            "alarms",
            "alarms history --json",
            "drops --all",
            "acl base",
            "acl base up1 --json",
            "policies up1",
            "qos aggregates --json",
            "qos aggregates up1",
            "qos session 7 --json",
        ] {
            assert!(show(line).is_ok(), "{line}: {:?}", show(line));
        }
        for line in [
            "acl",
            "pools up1",
            "events --last 0",
            "alarms past",
            "qos",
            "qos session",
            "nonsense",
        ] {
            assert!(show(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_session_is_shown_with_line_time_and_octets() {
        let narrow = ["home7@sluice", "100.64.0.9"];
        fits(&catalogue::SESSIONS, session(), nothing, &narrow);
        let untagged = Session {
            s_tag: None,
            c_tag: None,
            ..session()
        };
        let rows = [session(), untagged];
        let lines = table(&catalogue::SESSIONS, &rows, nothing).render(None);
        for word in ["up1/access0", "100.7", "2m 05s", "64.0 kB"] {
            assert!(lines[1].contains(word), "{word}: {lines:#?}");
        }
        assert!(lines[2].contains("untagged"), "{lines:#?}");
    }

    #[test]
    fn sessions_are_counted_by_state() {
        let counts = SessionCounts {
            online: 131_072,
            begun: 131_200,
            ..SessionCounts::default()
        };
        fits(
            &catalogue::SESSION_COUNTS,
            counts,
            nothing,
            &["131072", "131200"],
        );
    }

    #[test]
    fn a_user_plane_is_shown_with_its_drain_and_closed_ports() {
        let port = |name: &str, open| UserPlanePort {
            name: name.into(),
            open,
        };
        let plane = UserPlane {
            node_id: "up1".into(),
            state: UserPlaneState::NeverSeen.into(),
            access_ports: vec![port("access0", true), port("access1", false)],
            drain: Some(Drain::default()),
            ..UserPlane::default()
        };
        let words = ["never seen, drained", "access0, access1 (closed)"];
        fits(&catalogue::USER_PLANES, plane, nothing, &words);
    }

    #[test]
    fn rows_below_a_row_have_its_columns() {
        let share = |group: &str| PoolShare {
            user_plane: "up1".into(),
            group: group.into(),
            nets: 512,
            used: 131_072,
        };
        let pool = Pool {
            name: "residential".into(),
            network_instance: "default".into(),
            prefix: "2001:db8:4000::/40".into(),
            net_length: 56,
            size: 16_777_215,
            used: 131_072,
            nets: 65_536,
            lent_nets: 512,
            shares: vec![share("up1/access0"), share("east")],
            prefix_length: 64,
            full_at: Some(1_800_000_000),
        };
        let words = [
            "residential",
            "2001:db8:4000::/40",
            "16646143",
            "up1/access0",
            "up1 east",
        ];
        fits(&catalogue::POOLS, pool, free, &words);
        let route = Route {
            user_plane: "up1".into(),
            network_instance: "default".into(),
            prefix: "2001:db8:100::/64".into(),
            kind: RouteKind::Neighbour.into(),
            next_hop: Some("2001:db8:100::2".into()),
            port: Some("core0".into()),
            mac: None,
            further: vec![NextHop {
                address: Some("2001:db8:100::3".into()),
                port: Some("core1".into()),
                mac: Some("52:54:00:12:34:56".into()),
            }],
        };
        let lines =
            table(&catalogue::ROUTES, std::slice::from_ref(&route), unresolved).render(None);
        assert!(lines[1].ends_with("core0  unresolved"), "{lines:#?}");
        assert!(lines[2].starts_with("up1         default"), "{lines:#?}");
        let words = [
            "neighbour",
            "2001:db8:100::2",
            "core0",
            "2001:db8:100::3",
            "core1",
        ];
        fits(&catalogue::ROUTES, route, unresolved, &words);
    }

    #[test]
    fn every_other_table_fits_eighty_columns_and_keeps_what_it_is_looked_at_for() {
        let association = Association {
            node_id: "up1.pop7.example".into(),
            address: "[2001:db8:2::2]:8805".into(),
            state: AssociationState::Silent.into(),
            since_seconds: 86_400 * 12,
            recovery_time_stamp: Some(1_700_000_000),
            heard_seconds: Some(3),
            heartbeat_interval: 10,
            ..Association::default()
        };
        let words = [
            "up1.pop7.example",
            "[2001:db8:2::2]:8805",
            "silent",
            "3s ago",
        ];
        fits(&catalogue::ASSOCIATIONS, association, nothing, &words);
        let never = [Association::default()];
        let lines = table(&catalogue::ASSOCIATIONS, &never, nothing).render(None);
        assert!(lines[1].contains("never"), "{lines:#?}");
        let server = AaaServer {
            name: "first".into(),
            group: "radius".into(),
            role: AaaRole::Authentication.into(),
            address: "[2001:db8:2::9]:1812".into(),
            state: AaaServerState::Out.into(),
            out_seconds: Some(75),
            requests: 1_234_567,
            timeouts: 17,
            ..AaaServer::default()
        };
        let words = ["first", "auth", "out 1m 15s", "1234567", "17"];
        fits(&catalogue::AAA_SERVERS, server, nothing, &words);
        let port = Port {
            user_plane: "up1".into(),
            name: "access0".into(),
            role: "access".into(),
            device: "net_af_xdp0,iface=eth1".into(),
            mac: "02:00:00:00:00:07".into(),
            rx_packets: u64::MAX,
            rx_octets: u64::MAX,
            ..Port::default()
        };
        let words = ["up1", "access0", "down", "18.4 EB"];
        fits(&catalogue::PORTS, port, nothing, &words);
        let neighbour = Neighbour {
            user_plane: "up1".into(),
            network_instance: "default".into(),
            port: "core0".into(),
            address: "fe80::5054:ff:fe12:3456".into(),
            mac: Some("52:54:00:12:34:56".into()),
            state: NeighbourState::Resolved.into(),
            routes: 3,
        };
        let words = ["fe80::5054:ff:fe12:3456", "52:54:00:12:34:56", "resolved"];
        fits(&catalogue::NEIGHBOURS, neighbour, nothing, &words);
        let rule = AclRule {
            user_plane: "up1".into(),
            acl: "base".into(),
            number: 20,
            text: "deny tcp from any to any 25,465".into(),
            packets: Some(1_234_567),
            octets: Some(u64::MAX),
        };
        let words = ["20  deny tcp from any to any 25,465", "1234567"];
        fits(&catalogue::ACL, rule, nothing, &words);
        let silent = [AclRule::default()];
        let lines = table(&catalogue::ACL, &silent, nothing).render(None);
        assert!(lines[1].trim() == "0", "nothing was counted: {lines:#?}");
        let policy = TrafficPolicy {
            user_plane: "up1".into(),
            name: "residential-up".into(),
            state: TrafficPolicyState::TooLarge.into(),
            rules: 8000,
            octets: None,
            sessions: 131_072,
            trouble: "the compiled rules take 134217728 octets, 67108864 are permitted".into(),
        };
        let words = ["residential-up", "too large", "8000", "none", "131072"];
        fits(&catalogue::POLICIES, policy, nothing, &words);
        let row = QueueAggregate {
            user_plane: "up1".into(),
            port: "access0".into(),
            segment: "olt1".into(),
            s_tag: Some(100),
            rate_bits_per_second: Some(2_500_000_000),
            bits_per_second: 2_497_000_000,
            limited_by: QueueLimit::Aggregate.into(),
            delay_milliseconds: Some(20),
            waiting_octets: 6_200_000,
            drops: 1234,
            ..QueueAggregate::default()
        };
        let words = [
            "up1/access0/olt1.100",
            "2.5 Gbit/s",
            "aggregate",
            "6.2 MB",
            "1234",
        ];
        fits(&catalogue::QUEUE_AGGREGATES, row, queues::derive, &words);
        let alarm = Alarm {
            name: "user-plane-lost".into(),
            severity: AlarmSeverity::Critical.into(),
            resource: "up1".into(),
            text: "up1 at 192.0.2.2 is not associated; 12 sessions are on it".into(),
            raised_at: 1_795_331_730,
            acknowledged: Some(Acknowledgement {
                by: "alice".into(),
                at: 1_795_331_800,
                comment: "power cut".into(),
            }),
        };
        let lines = table(&catalogue::ALARMS, std::slice::from_ref(&alarm), nothing).render(None);
        assert!(lines[1].contains("alice: power cut"), "{lines:#?}");
        let words = ["critical  user-plane-lost  up1"];
        fits(&catalogue::ALARMS, alarm, nothing, &words);
    }

    #[test]
    fn alarms_are_counted_by_severity() {
        let found = ListAlarmsResponse {
            critical: 1,
            warning: 2,
            ..ListAlarmsResponse::default()
        };
        assert_eq!(by_severity(&found), "1 critical, 2 warning");
        let none = ListAlarmsResponse::default();
        assert_eq!(by_severity(&none), "no alarm is raised");
    }

    #[test]
    fn each_worker_has_a_line_and_who_is_silent_is_named() {
        let worker = |number| Worker {
            number,
            busy_nanoseconds: 3_700_000_000_000,
            busy_cycles: u64::MAX,
            bursts: 123_456_789_012,
            handed_over: 5,
            taken_over: 6,
            ..Worker::default()
        };
        let plane = |name: &str, reached, workers| WatchedUserPlane {
            node_id: name.into(),
            reached,
            workers,
            ..WatchedUserPlane::default()
        };
        let up1 = plane("up1", true, vec![worker(0), worker(1)]);
        let state = WatchStateResponse {
            user_planes: vec![up1, plane("up2", false, Vec::new())],
            ..WatchStateResponse::default()
        };
        let (workers, silent) = workers_of(state.clone(), None).unwrap();
        assert_eq!(workers.len(), 2);
        assert!(silent[0].contains("up2"), "{silent:?}");
        let json = serde_json::to_value(&workers[1]).unwrap();
        assert_eq!(
            (&json["user_plane"], &json["handed_over"]),
            (&"up1".into(), &5.into())
        );
        let words = ["up1", "1h 01m", "5", "6"];
        fits(&catalogue::WORKERS, workers[0].clone(), nothing, &words);
        let (of_one, silent) = workers_of(state.clone(), Some("up1")).unwrap();
        assert_eq!((of_one.len(), silent.len()), (2, 0));
        assert!(workers_of(state, Some("up3")).is_err());
    }
}
