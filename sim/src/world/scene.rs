//! Who is where, and what the control plane is configured with.

use crate::access_network::{CHOOSY, FIXED, RESTLESS};
use crate::plan::{Plan, SERVERS, USER_PLANES};
use crate::server::{Gift, SECRET};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr};
use wire::radius::{Kind, Value};

/// The control plane's address towards user planes.
pub(super) fn control_address(over_ipv6: bool) -> IpAddr {
    host(1, over_ipv6)
}

pub(super) fn plane_address(plane: usize, over_ipv6: bool) -> IpAddr {
    host(2 + plane as u8, over_ipv6)
}

/// The address of somebody who claims to be a user plane.
pub(super) fn impostor_address(plane: usize, over_ipv6: bool) -> IpAddr {
    host(20 + plane as u8, over_ipv6)
}

fn host(number: u8, over_ipv6: bool) -> IpAddr {
    match over_ipv6 {
        true => [0x2001, 0xdb8, 0xcafe, 0, 0, 0, 0, number.into()].into(),
        false => [192, 0, 2, number].into(),
    }
}

pub(super) fn server_address(plan: &Plan, server: usize) -> IpAddr {
    host(8 + server as u8, plan.servers_over_ipv6[server])
}

pub(super) fn plane_at(address: IpAddr) -> Option<usize> {
    let is_it = |plane: &usize| {
        [false, true]
            .iter()
            .any(|v6| plane_address(*plane, *v6) == address)
    };
    (0..USER_PLANES).find(is_it)
}

pub(super) fn plane_name(plane: usize) -> String {
    format!("up{}", plane + 1)
}

/// What the control plane starts with.
pub(super) fn start(plan: &Plan) -> config::start::ControlPlane {
    let address = control_address(plan.over_ipv6);
    let text = format!("node-id: cp1\naddress: '{address}'\n");
    config::parse(&text, "cp.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What a user plane starts with.
pub(super) fn user_plane_start(plan: &Plan, plane: usize) -> config::start::UserPlane {
    let (name, address) = (plane_name(plane), plane_address(plane, plan.over_ipv6));
    let (workers, control_plane) = (plan.workers[plane], control_address(plan.over_ipv6));
    let text = format!(
        "node-id: {name}\naddress: '{address}'\ncontrol-planes: ['{control_plane}']\nmax-sessions: 1000\nworkers: {workers}\n"
    );
    config::parse(&text, "up.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The configuration that it begins with.
pub(super) fn document(plan: &Plan) -> config::Checked {
    let port = |name: &&str| {
        format!(
            "{name}: {{role: access, device: {name}, segments: {{all: {{access-profile: pppoe}}}}}}"
        )
    };
    let ports = crate::user_plane::PORTS
        .iter()
        .map(port)
        .collect::<Vec<_>>()
        .join(", ");
    let planes = (0..USER_PLANES).map(|n| {
        let (name, address) = (plane_name(n), plane_address(n, plan.over_ipv6));
        format!(
            "  {name}: {{address: '{address}', management: /run/{name}.sock, ports: {{{ports}}}}}\n"
        )
    });
    let servers = (0..SERVERS).map(|n| {
        let address = server_address(plan, n);
        format!("    server{n}: {{address: '{address}', secret-key: {SECRET}}}\n")
    });
    let clients = (0..SERVERS).map(|n| {
        let address = server_address(plan, n);
        format!("      server{n}: {{address: '{address}', secret-key: {SECRET}}}\n")
    });
    let names: Vec<String> = (0..SERVERS).map(|n| format!("server{n}")).collect();
    let Plan {
        sessions,
        half_open,
        echo,
        interim,
        ipv4_pool,
        ipv6_pool,
        ..
    } = plan;
    let text = format!(
        "limits: {{sessions: {sessions}, half-open: {half_open}}}
network-instances: {{default: {{gateway: [100.64.0.1]}}}}
user-planes:
{}access-profiles:
  pppoe:
    {{echo-interval: {echo}, server-group: radius, subscriber-profile: home, authentication: [chap, pap, mschapv2]}}
subscriber-profiles:
  home: {{dns: [192.0.2.53, '2001:db8::53'], delegated-pools: [lans], ipv6-address-pools: [routers]}}
ipv4-pools: {{homes: {{prefix: 100.64.0.0/{}, net-length: {}}}}}
ipv6-pools:
  homes: {{prefix: '2001:db8:100::/{}', net-length: {}}}
  lans: {{prefix: '2001:db8:4000::/36', prefix-length: 56}}
  routers: {{prefix: '2001:db8:5000::/96', prefix-length: 128}}
aaa:
  servers:
{}  server-groups:
    radius: {{servers: [{}], interim-interval: {interim}, family-counters: redback}}
  dynamic-authorization:
    clients:
{}",
        planes.collect::<String>(),
        ipv4_pool.0,
        ipv4_pool.1,
        ipv6_pool.0,
        ipv6_pool.1,
        servers.collect::<String>(),
        names.join(", "),
        clients.collect::<String>(),
    );
    config::check::read(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

/// Some homes are given something special.
pub(super) fn gifts(user: &str) -> Gift {
    let number: usize = user.trim_start_matches("home").parse().unwrap_or(0);
    let mut gifts = match number {
        RESTLESS => vec![(Kind::SESSION_TIMEOUT, Value::Integer(40))],
        33 => vec![(Kind::ACCT_INTERIM_INTERVAL, Value::Integer(20))],
        _ => Vec::new(),
    };
    if let Some(address) = fixed_address(number) {
        gifts.push((Kind::FRAMED_IP_ADDRESS, Value::Ipv4(address)));
    }
    for prefix in fixed_prefix(number)
        .into_iter()
        .chain(further_prefix(number))
    {
        gifts.push((Kind::FRAMED_IPV6_PREFIX, Value::Ipv6Prefix(prefix)));
    }
    gifts.extend(routes(number).into_iter().map(|net| {
        let (kind, gateway) = match net {
            IpNet::V4(_) => (Kind::FRAMED_ROUTE, "0.0.0.0"),
            IpNet::V6(_) => (Kind::FRAMED_IPV6_ROUTE, "::"),
        };
        let text = format!("{net} {gateway} {METRIC}");
        (kind, text.as_str().into())
    }));
    gifts
}

/// The address that RADIUS chooses for a home.
pub(crate) fn fixed_address(home: usize) -> Option<Ipv4Addr> {
    match home {
        // within a net that any group may have by then
        CHOOSY => Some([100, 64, 0, 9].into()),
        home if FIXED.contains(&home) => Some([203, 0, 113, home as u8].into()),
        _ => None,
    }
}

/// The prefix that RADIUS chooses for a home.
pub(crate) fn fixed_prefix(home: usize) -> Option<Ipv6Net> {
    // one with a fixed address alone
    let chosen = FIXED.contains(&home) && home != FIXED[4];
    let prefix = [0x2001, 0xdb8, 0x7600, home as u16, 0, 0, 0, 0].into();
    chosen.then(|| Ipv6Net::new_assert(prefix, 64))
}

/// The second prefix that RADIUS chooses for the link of a home that has a fixed one.
pub(crate) fn further_prefix(home: usize) -> Option<Ipv6Net> {
    let prefix = [0x2001, 0xdb8, 0x7610, home as u16, 0, 0, 0, 0].into();
    fixed_prefix(home).map(|_| Ipv6Net::new_assert(prefix, 64))
}

/// Metric of the routes to networks behind routers.
pub(crate) const METRIC: u32 = 7;

/// Networks behind a home's router.
pub(crate) fn routes(home: usize) -> Vec<IpNet> {
    if !FIXED.contains(&home) {
        return Vec::new();
    }
    let ipv4 = Ipv4Net::new_assert([198, 18, home as u8, 0].into(), 24);
    let ipv6 = [0x2001, 0xdb8, 0x7700 + home as u16, 0, 0, 0, 0, 0].into();
    let ipv6 = fixed_prefix(home).map(|_| Ipv6Net::new_assert(ipv6, 48).into());
    ipv6.into_iter().chain([ipv4.into()]).collect()
}
