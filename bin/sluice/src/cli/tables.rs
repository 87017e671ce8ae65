//! Tables beside the sessions: subscribers, pools, associations, RADIUS servers, ports, routes, neighbours.

use super::ask::{Failure, Sockets};
use super::show::{Answer, terminal_width};
use super::table::{Column, Table};
use super::time;
use super::units::{count, counted, duration, octets};
use northbound::{
    AaaRole, AaaServer, AaaServerState, Association, AssociationState, Neighbour, NeighbourState,
    Pool, Port, Route, RouteKind, Session, SessionState,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A subscriber: whoever dialled in under one name.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Subscriber {
    name: String,
    sessions: u64,
    /// Those of its sessions that are online.
    online: u64,
    ipv4: Vec<String>,
    ipv6_prefixes: Vec<String>,
    routes: Vec<String>,
    /// Of the session that is online for longest.
    online_seconds: u64,
    profile: String,
    user_planes: Vec<String>,
}

/// `sluice show subscribers`.
pub fn subscribers(sockets: &Sockets, json: bool) -> Result<Answer, Failure> {
    let sessions = sockets.control_plane(|cp| cp.sessions())?;
    let subscribers = by_name(&sessions);
    if json {
        return Answer::json(&subscribers);
    }
    let mut table = Table::new(&[
        Column::words("SUBSCRIBER", 0),
        Column::numbers("SESSIONS", 0),
        Column::words("IPV4", 0),
        Column::words("IPV6", 3),
        Column::numbers("ONLINE", 1),
        Column::words("PROFILE", 2),
        Column::words("USER PLANE", 4),
    ]);
    for s in &subscribers {
        table.push([
            s.name.clone(),
            s.sessions.to_string(),
            s.ipv4.join(", "),
            s.ipv6_prefixes.join(", "),
            duration(s.online_seconds),
            s.profile.clone(),
            s.user_planes.join(", "),
        ]);
    }
    let online = subscribers.iter().filter(|s| s.online > 0).count();
    let all = counted(subscribers.len(), "subscriber");
    let total = format!("{all}, {online} online");
    Ok(shown(table, subscribers.is_empty(), Some(total)))
}

fn by_name(sessions: &[Session]) -> Vec<Subscriber> {
    let mut all: BTreeMap<&str, Subscriber> = BTreeMap::new();
    for session in sessions.iter().filter(|session| !session.user.is_empty()) {
        let subscriber = all.entry(&session.user).or_default();
        subscriber.name.clone_from(&session.user);
        subscriber.sessions += 1;
        subscriber.online += u64::from(session.state() == SessionState::Online);
        subscriber.ipv4.extend(session.ipv4.clone());
        subscriber.ipv6_prefixes.extend(session.ipv6_prefix.clone());
        subscriber.routes.extend(session.routes.iter().cloned());
        subscriber.online_seconds = subscriber.online_seconds.max(session.online_seconds);
        subscriber.profile.clone_from(&session.profile);
        if !subscriber.user_planes.contains(&session.user_plane) {
            subscriber.user_planes.push(session.user_plane.clone());
        }
    }
    all.into_values().collect()
}

/// `sluice show pools`.
pub fn pools(sockets: &Sockets, json: bool) -> Result<Answer, Failure> {
    let pools = sockets.tables(|tables| tables.pools())?;
    if json {
        return Answer::json(&pools);
    }
    Ok(shown(pool_table(&pools), pools.is_empty(), None))
}

fn pool_table(pools: &[Pool]) -> Table {
    let mut table = Table::new(&[
        Column::words("POOL", 0),
        Column::words("PREFIX", 0),
        Column::words("INSTANCE", 3),
        Column::words("GROUP", 0),
        Column::numbers("SIZE", 0),
        Column::numbers("USED", 0),
        Column::numbers("FREE", 0),
        Column::numbers("NETS", 2),
        Column::words("OF", 1),
    ]);
    for pool in pools {
        table.push([
            pool.name.clone(),
            pool.prefix.clone(),
            pool.network_instance.clone(),
            String::new(),
            pool.size.to_string(),
            pool.used.to_string(),
            pool.size.saturating_sub(pool.used).to_string(),
            format!("{}/{}", pool.lent_nets, pool.nets),
            format!("/{}", pool.net_length),
        ]);
        for share in &pool.shares {
            let group = match share.group.starts_with(&format!("{}/", share.user_plane)) {
                true => share.group.clone(),
                false => format!("{} {}", share.user_plane, share.group),
            };
            table.push([
                String::new(),
                String::new(),
                String::new(),
                group,
                String::new(),
                share.used.to_string(),
                String::new(),
                share.nets.to_string(),
                String::new(),
            ]);
        }
    }
    table
}

/// `sluice show associations`.
pub fn associations(sockets: &Sockets, json: bool) -> Result<Answer, Failure> {
    let associations = sockets.tables(|tables| tables.associations())?;
    if json {
        return Answer::json(&associations);
    }
    let table = association_table(&associations);
    Ok(shown(table, associations.is_empty(), None))
}

fn association_table(associations: &[Association]) -> Table {
    let mut table = Table::new(&[
        Column::words("NODE", 0),
        Column::words("ADDRESS", 0),
        Column::words("STATE", 0),
        Column::numbers("SINCE", 0),
        Column::numbers("PEER STARTED", 2),
        Column::numbers("HEARD", 0),
        Column::numbers("HEARTBEAT", 1),
        Column::numbers("PENDING", 3),
        Column::numbers("RESTARTS", 4),
    ]);
    let now = time::now();
    let ago = |seconds: u64| format!("{} ago", duration(seconds));
    for a in associations {
        let started = a.recovery_time_stamp;
        table.push([
            a.node_id.clone(),
            a.address.clone(),
            match a.state() {
                AssociationState::Unspecified => "unknown",
                AssociationState::Down => "down",
                AssociationState::Up => "up",
                AssociationState::Silent => "silent",
            }
            .into(),
            duration(a.since_seconds),
            started
                .map(|at| ago(now.saturating_sub(at)))
                .unwrap_or_default(),
            a.heard_seconds.map(ago).unwrap_or("never".into()),
            format!("{} s", a.heartbeat_interval),
            a.pending.to_string(),
            a.restarts.to_string(),
        ]);
    }
    table
}

/// `sluice show aaa-servers`.
pub fn aaa_servers(sockets: &Sockets, json: bool) -> Result<Answer, Failure> {
    let servers = sockets.tables(|tables| tables.aaa_servers())?;
    if json {
        return Answer::json(&servers);
    }
    let nobody = "no RADIUS server is configured: subscribers are looked up among `users`";
    let none = servers.is_empty().then(|| nobody.to_owned());
    Ok(shown(server_table(&servers), servers.is_empty(), none))
}

fn server_table(servers: &[AaaServer]) -> Table {
    let mut table = Table::new(&[
        Column::words("SERVER", 0),
        Column::words("GROUP", 4),
        Column::words("ROLE", 0),
        Column::words("ADDRESS", 1),
        Column::words("STATE", 0),
        Column::numbers("REQUESTS", 0),
        Column::numbers("AGAIN", 3),
        Column::numbers("ANSWERS", 0),
        Column::numbers("TIMEOUTS", 0),
        Column::numbers("RTT", 2),
    ]);
    for s in servers {
        let rtt = s.round_trip_microseconds;
        table.push([
            s.name.clone(),
            s.group.clone(),
            match s.role() {
                AaaRole::Unspecified => "unknown",
                AaaRole::Authentication => "auth",
                AaaRole::Accounting => "acct",
            }
            .into(),
            s.address.clone(),
            server_state(s),
            s.requests.to_string(),
            s.retransmissions.to_string(),
            s.answers.to_string(),
            s.timeouts.to_string(),
            rtt.map(|us| format!("{:.1} ms", us as f64 / 1000.0))
                .unwrap_or_default(),
        ]);
    }
    table
}

fn server_state(server: &AaaServer) -> String {
    let word = match server.state() {
        AaaServerState::Unspecified => "unknown",
        AaaServerState::Untried => "untried",
        AaaServerState::Up => "up",
        AaaServerState::Out => "out",
        AaaServerState::OnTrial => "on trial",
    };
    match server.out_seconds {
        Some(seconds) => format!("{word} {}", duration(seconds)),
        None => word.into(),
    }
}

/// `sluice show ports [USER-PLANE]`.
pub fn ports(sockets: &Sockets, of: Option<&str>, json: bool) -> Result<Answer, Failure> {
    let (ports, missing) = sockets.tables(|tables| tables.ports(of))?;
    let answer = match json {
        true => Answer::json(&ports)?,
        false => shown(port_table(&ports), ports.is_empty(), None),
    };
    Ok(but(answer, missing))
}

fn port_table(ports: &[Port]) -> Table {
    let mut table = Table::new(&[
        Column::words("USER PLANE", 0),
        Column::words("PORT", 0),
        Column::words("ROLE", 0),
        Column::words("LINK", 0),
        Column::words("DEVICE", 3),
        Column::words("MAC", 4),
        Column::numbers("RX PACKETS", 2),
        Column::numbers("RX", 0),
        Column::numbers("LOST", 1),
        Column::numbers("TX PACKETS", 2),
        Column::numbers("TX", 0),
        Column::numbers("DROPPED", 1),
    ]);
    for p in ports {
        table.push([
            p.user_plane.clone(),
            p.name.clone(),
            p.role.clone(),
            if p.link_up { "up" } else { "down" }.into(),
            p.device.clone(),
            p.mac.clone(),
            count(p.rx_packets),
            octets(p.rx_octets),
            count(p.rx_lost),
            count(p.tx_packets),
            octets(p.tx_octets),
            count(p.tx_dropped),
        ]);
    }
    table
}

/// `sluice show routes [USER-PLANE]`.
pub fn routes(sockets: &Sockets, of: Option<&str>, json: bool) -> Result<Answer, Failure> {
    let (routes, missing) = sockets.tables(|tables| tables.routes(of))?;
    let answer = match json {
        true => Answer::json(&routes)?,
        false => shown(route_table(&routes), routes.is_empty(), None),
    };
    Ok(but(answer, missing))
}

fn route_table(routes: &[Route]) -> Table {
    let mut table = Table::new(&[
        Column::words("USER PLANE", 1),
        Column::words("INSTANCE", 2),
        Column::words("PREFIX", 0),
        Column::words("LEADS", 0),
        Column::words("NEXT HOP", 0),
        Column::words("PORT", 0),
        Column::words("MAC", 3),
    ]);
    for r in routes {
        table.push([
            r.user_plane.clone(),
            r.network_instance.clone(),
            r.prefix.clone(),
            match r.kind() {
                RouteKind::Unspecified => "unknown",
                RouteKind::Neighbour => "neighbour",
                RouteKind::OnLink => "link",
                RouteKind::Local => "local",
                RouteKind::Subscribers => "subscribers",
                RouteKind::Discard => "discard",
            }
            .into(),
            r.next_hop.clone().unwrap_or_default(),
            r.port.clone().unwrap_or_default(),
            match (r.kind(), &r.mac) {
                (_, Some(mac)) => mac.clone(),
                (RouteKind::Neighbour, None) => "unresolved".into(),
                (_, None) => String::new(),
            },
        ]);
        for hop in &r.further {
            table.push([
                r.user_plane.clone(),
                r.network_instance.clone(),
                String::new(),
                String::new(),
                hop.address.clone().unwrap_or_default(),
                hop.port.clone().unwrap_or_default(),
                hop.mac.clone().unwrap_or_else(|| "unresolved".into()),
            ]);
        }
    }
    table
}

/// `sluice show neighbours [USER-PLANE]`.
pub fn neighbours(sockets: &Sockets, of: Option<&str>, json: bool) -> Result<Answer, Failure> {
    let (neighbours, missing) = sockets.tables(|tables| tables.neighbours(of))?;
    let answer = match json {
        true => Answer::json(&neighbours)?,
        false => shown(neighbour_table(&neighbours), neighbours.is_empty(), None),
    };
    Ok(but(answer, missing))
}

fn neighbour_table(neighbours: &[Neighbour]) -> Table {
    let mut table = Table::new(&[
        Column::words("USER PLANE", 1),
        Column::words("INSTANCE", 2),
        Column::words("PORT", 0),
        Column::words("ADDRESS", 0),
        Column::words("MAC", 0),
        Column::words("STATE", 0),
        Column::numbers("ROUTES", 3),
    ]);
    for n in neighbours {
        table.push([
            n.user_plane.clone(),
            n.network_instance.clone(),
            n.port.clone(),
            n.address.clone(),
            n.mac.clone().unwrap_or_default(),
            match n.state() {
                NeighbourState::Unspecified => "unknown",
                NeighbourState::Resolved => "resolved",
                NeighbourState::Stale => "stale",
                NeighbourState::Unresolved => "unresolved",
            }
            .into(),
            n.routes.to_string(),
        ]);
    }
    table
}

/// A table, without its heading if there is nothing below it, and a line behind it.
fn shown(table: Table, empty: bool, total: Option<String>) -> Answer {
    let answer = match empty {
        true => Answer::default(),
        false => Answer::table(table.render(terminal_width())),
    };
    Answer { total, ..answer }
}

/// What could not be asked is told beside what could.
fn but(mut answer: Answer, missing: Vec<String>) -> Answer {
    if !missing.is_empty() {
        answer.failure = Some(Failure::Other(missing.join("\n")));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::NextHop;

    fn fits(table: &Table, whole: &[&str]) {
        let lines = table.render(Some(80));
        let wide = lines.iter().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
        let text = lines.join("\n");
        for word in whole {
            assert!(text.contains(word), "`{word}` is cut:\n{text}");
        }
    }

    #[test]
    fn sessions_of_one_name_are_one_subscriber() {
        let session = |user: &str, ipv4: &str, seconds| Session {
            user: user.into(),
            state: SessionState::Online.into(),
            ipv4: Some(ipv4.into()),
            online_seconds: seconds,
            profile: "gold".into(),
            user_plane: "up1".into(),
            ..Session::default()
        };
        let sessions = [
            session("bob", "100.64.0.3", 5),
            session("alice", "100.64.0.2", 7),
            session("bob", "100.64.0.4", 9),
            session("", "100.64.0.5", 1),
        ];
        let all = by_name(&sessions);
        let names: Vec<_> = all.iter().map(|s| (s.name.as_str(), s.sessions)).collect();
        assert_eq!(names, [("alice", 1), ("bob", 2)]);
        assert_eq!(all[1].ipv4, ["100.64.0.3", "100.64.0.4"]);
        assert_eq!((all[1].online_seconds, all[1].user_planes.len()), (9, 1));
    }

    #[test]
    fn every_table_fits_eighty_columns_and_keeps_what_it_is_looked_at_for() {
        let pool = Pool {
            name: "residential".into(),
            network_instance: "default".into(),
            prefix: "2001:db8:4000::/40".into(),
            net_length: 56,
            size: 16_777_215,
            used: 131_072,
            nets: 65_536,
            lent_nets: 512,
            shares: vec![northbound::PoolShare {
                user_plane: "up1".into(),
                group: "up1/access0".into(),
                nets: 512,
                used: 131_072,
            }],
        };
        fits(
            &pool_table(&[pool]),
            &[
                "residential",
                "2001:db8:4000::/40",
                "16646143",
                "up1/access0",
            ],
        );
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
        fits(&association_table(&[association]), &words);
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
        fits(
            &server_table(&[server]),
            &["first", "auth", "out 1m 15s", "1234567", "17"],
        );
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
        fits(&port_table(&[port]), &["up1", "access0", "down", "18.4 EB"]);
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
        fits(
            &route_table(&[route]),
            &[
                "2001:db8:100::/64",
                "neighbour",
                "2001:db8:100::2",
                "core0",
                "2001:db8:100::3",
                "core1",
            ],
        );
        let neighbour = Neighbour {
            user_plane: "up1".into(),
            network_instance: "default".into(),
            port: "core0".into(),
            address: "fe80::5054:ff:fe12:3456".into(),
            mac: Some("52:54:00:12:34:56".into()),
            state: NeighbourState::Resolved.into(),
            routes: 3,
        };
        fits(
            &neighbour_table(&[neighbour]),
            &["fe80::5054:ff:fe12:3456", "52:54:00:12:34:56", "resolved"],
        );
    }
}
