use super::*;
use crate::netlink::message::{Link, RouteKey};

const LO: u32 = 1;
const MANAGEMENT: u32 = 2;
const TUN: u32 = 9;
const CORE0: u32 = 10;
const CORE1: u32 = 11;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn addr(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn fib() -> Fib {
    let mut fib = Fib::new(HashMap::from([(CORE0, 5), (CORE1, 6)]), TUN);
    let mut snapshot = Snapshot::default();
    snapshot.add(Fact::Link(Link {
        index: LO,
        name: "lo".into(),
        up: true,
    }));
    fib.replace(snapshot);
    assert_eq!(fib.take_commands(), []);
    fib
}

fn route(destination: &str, metric: u32, hops: &[(u32, Option<&str>)]) -> Route {
    Route {
        destination: net(destination),
        key: RouteKey {
            local: false,
            metric,
        },
        kind: RouteKind::Forward,
        hops: hops
            .iter()
            .map(|&(link, gw)| Hop {
                link,
                gateway: gw.map(addr),
            })
            .collect(),
        ours: false,
    }
}

fn local(destination: &str, link: u32) -> Route {
    let mut route = route(destination, 0, &[(link, None)]);
    route.key.local = true;
    route.kind = RouteKind::Local;
    route
}

fn new(route: Route) -> Fact {
    Fact::Route {
        route,
        replace: false,
    }
}

fn neighbour(address: &str, mac: Option<[u8; 6]>, stale: bool) -> Fact {
    Fact::Neighbour(Neighbour {
        link: CORE0,
        address: addr(address),
        mac,
        stale,
    })
}

fn after(fib: &mut Fib, fact: Fact) -> Vec<Command> {
    fib.apply(fact);
    fib.take_commands()
}

#[test]
fn a_route_by_a_router_waits_for_its_mac_and_learns_it() {
    let mut fib = fib();
    let default = route("0.0.0.0/0", 0, &[(CORE0, Some("198.51.100.9"))]);
    assert_eq!(
        after(&mut fib, new(default.clone())),
        [
            Command::SetAdjacency {
                id: 0,
                port: 5,
                mac: None
            },
            Command::UseNeighbour(CORE0, addr("198.51.100.9")),
            Command::SetRoute(net("0.0.0.0/0"), Target::Adjacency(0)),
        ]
    );
    assert_eq!(
        after(&mut fib, neighbour("198.51.100.9", Some(MAC), false)),
        [
            Command::SetAdjacency {
                id: 0,
                port: 5,
                mac: Some(MAC)
            },
            Command::SetRoute(net("198.51.100.9/32"), Target::Adjacency(0)),
        ]
    );
    // The router moves to another MAC, then fails.
    let moved = [2, 0, 0, 0, 0, 8];
    assert_eq!(
        after(&mut fib, neighbour("198.51.100.9", Some(moved), false)),
        [Command::SetAdjacency {
            id: 0,
            port: 5,
            mac: Some(moved)
        }]
    );
    assert_eq!(
        after(&mut fib, neighbour("198.51.100.9", None, false)),
        [
            Command::SetAdjacency {
                id: 0,
                port: 5,
                mac: None
            },
            Command::RemoveRoute(net("198.51.100.9/32")),
        ]
    );
    assert_eq!(
        after(&mut fib, Fact::RouteGone(default)),
        [
            Command::RemoveRoute(net("0.0.0.0/0")),
            Command::RemoveAdjacency(0)
        ]
    );
}

#[test]
fn on_link_prefixes_make_the_kernel_resolve() {
    let mut fib = fib();
    assert_eq!(
        after(&mut fib, new(route("198.51.100.0/24", 0, &[(CORE0, None)]))),
        [Command::SetRoute(net("198.51.100.0/24"), Target::OnLink(5))]
    );
    fib.neighbour_missing(5, addr("198.51.100.3"));
    assert_eq!(
        fib.take_commands(),
        [Command::UseNeighbour(CORE0, addr("198.51.100.3"))]
    );
    assert_eq!(
        after(&mut fib, neighbour("198.51.100.3", Some(MAC), false)),
        [
            Command::SetAdjacency {
                id: 0,
                port: 5,
                mac: Some(MAC)
            },
            Command::SetRoute(net("198.51.100.3/32"), Target::Adjacency(0)),
        ]
    );
    let gone = Fact::NeighbourGone {
        link: CORE0,
        address: addr("198.51.100.3"),
    };
    assert_eq!(
        after(&mut fib, gone),
        [
            Command::SetAdjacency {
                id: 0,
                port: 5,
                mac: None
            },
            Command::RemoveRoute(net("198.51.100.3/32")),
            Command::RemoveAdjacency(0),
        ]
    );
}

#[test]
fn a_used_neighbour_is_refreshed_only_when_it_went_stale() {
    let mut fib = fib();
    after(&mut fib, neighbour("198.51.100.3", Some(MAC), false));
    fib.adjacency_used(0);
    assert_eq!(fib.take_commands(), []);
    assert_eq!(
        after(&mut fib, neighbour("198.51.100.3", Some(MAC), true)),
        []
    );
    fib.adjacency_used(0);
    assert_eq!(
        fib.take_commands(),
        [Command::UseNeighbour(CORE0, addr("198.51.100.3"))]
    );
    fib.adjacency_missing(0);
    assert_eq!(
        fib.take_commands(),
        [Command::UseNeighbour(CORE0, addr("198.51.100.3"))]
    );
    fib.adjacency_used(77);
    assert_eq!(fib.take_commands(), []);
}

#[test]
fn the_local_table_and_the_smallest_metric_win() {
    let mut fib = fib();
    after(&mut fib, new(route("203.0.113.0/24", 20, &[(CORE0, None)])));
    assert_eq!(
        after(&mut fib, new(route("203.0.113.0/24", 10, &[(CORE1, None)]))),
        [Command::SetRoute(net("203.0.113.0/24"), Target::OnLink(6))]
    );
    assert_eq!(
        after(
            &mut fib,
            Fact::RouteGone(route("203.0.113.0/24", 10, &[(CORE1, None)]))
        ),
        [Command::SetRoute(net("203.0.113.0/24"), Target::OnLink(5))]
    );
    assert_eq!(
        after(&mut fib, new(local("203.0.113.0/24", TUN))),
        [Command::SetRoute(net("203.0.113.0/24"), Target::Local)]
    );
}

#[test]
fn addresses_are_local_by_the_interface_that_has_them() {
    let mut fib = fib();
    for (destination, link, expected) in [
        ("198.51.100.1/32", CORE0, Target::Local),
        ("100.64.0.1/32", TUN, Target::Local),
        ("192.0.2.200/32", LO, Target::Local),
        ("2001:db8::1/128", TUN, Target::Local),
        ("fe80::1/128", CORE0, Target::Local),
        ("127.0.0.0/8", LO, Target::Discard),
        ("::1/128", LO, Target::Discard),
        ("10.9.9.9/32", MANAGEMENT, Target::Discard),
    ] {
        let told = after(&mut fib, new(local(destination, link)));
        assert_eq!(
            told,
            [Command::SetRoute(net(destination), expected)],
            "{destination}"
        );
    }
}

#[test]
fn subscribers_never_leave_through_the_management_network() {
    let mut fib = fib();
    let management = route("0.0.0.0/0", 0, &[(MANAGEMENT, Some("10.0.0.1"))]);
    assert_eq!(
        after(&mut fib, new(management)),
        [Command::SetRoute(net("0.0.0.0/0"), Target::Discard)]
    );
}

#[test]
fn link_scope_prefixes_are_not_looked_up() {
    let mut fib = fib();
    let mut multicast = route("ff00::/8", 256, &[(CORE0, None)]);
    multicast.key.local = true;
    multicast.kind = RouteKind::Local;
    assert_eq!(after(&mut fib, new(multicast)), []);
    assert_eq!(
        after(&mut fib, new(route("fe80::/64", 256, &[(CORE0, None)]))),
        []
    );
    assert_eq!(after(&mut fib, neighbour("fe80::7", Some(MAC), false)), []);
    // It still serves as a router.
    assert_eq!(
        after(
            &mut fib,
            new(route("::/0", 1024, &[(CORE0, Some("fe80::7"))]))
        ),
        [
            Command::SetAdjacency {
                id: 0,
                port: 5,
                mac: Some(MAC)
            },
            Command::SetRoute(net("::/0"), Target::Adjacency(0)),
        ]
    );
}

#[test]
fn of_a_multipath_route_the_first_usable_hop_is_taken() {
    let mut fib = fib();
    let hops = [
        (MANAGEMENT, Some("10.0.0.1")),
        (CORE1, Some("10.1.0.1")),
        (CORE0, Some("10.2.0.1")),
    ];
    let commands = after(&mut fib, new(route("0.0.0.0/0", 0, &hops)));
    assert_eq!(
        commands[0],
        Command::SetAdjacency {
            id: 0,
            port: 6,
            mac: None
        }
    );
    // IPv6 takes hops away one by one.
    let gone = route("0.0.0.0/0", 0, &[(CORE1, Some("10.1.0.1"))]);
    let commands = after(&mut fib, Fact::RouteGone(gone));
    assert_eq!(
        commands[0],
        Command::SetAdjacency {
            id: 1,
            port: 5,
            mac: None
        }
    );
    assert!(commands.contains(&Command::SetRoute(net("0.0.0.0/0"), Target::Adjacency(1))));
    assert!(commands.contains(&Command::RemoveAdjacency(0)));
}

#[test]
fn replacing_a_route_is_one_change() {
    let mut fib = fib();
    after(
        &mut fib,
        new(route("0.0.0.0/0", 0, &[(CORE0, Some("10.2.0.1"))])),
    );
    let better = route("0.0.0.0/0", 0, &[(CORE1, Some("10.1.0.1"))]);
    fib.apply(Fact::Route {
        route: better.clone(),
        replace: true,
    });
    let commands = fib.take_commands();
    assert!(commands.contains(&Command::SetRoute(net("0.0.0.0/0"), Target::Adjacency(1))));
    assert_eq!(
        after(&mut fib, Fact::RouteGone(better)),
        [
            Command::RemoveRoute(net("0.0.0.0/0")),
            Command::RemoveAdjacency(1)
        ]
    );
}

#[test]
fn subscriber_nets_are_announced_and_discarded() {
    let mut fib = fib();
    let pool = net("100.64.0.0/24");
    fib.add_net(pool);
    fib.add_net(pool);
    assert_eq!(
        fib.take_commands(),
        [
            Command::Export(pool),
            Command::SetRoute(pool, Target::Discard)
        ]
    );
    let mut ours = route("100.64.0.0/24", 0, &[(TUN, None)]);
    ours.ours = true;
    assert_eq!(after(&mut fib, new(ours.clone())), []);
    // Somebody removes the announcement: it is put back.
    assert_eq!(
        after(&mut fib, Fact::RouteGone(ours)),
        [Command::Export(pool)]
    );
    fib.remove_net(pool);
    assert_eq!(
        fib.take_commands(),
        [Command::Withdraw(pool, TUN), Command::RemoveRoute(pool)]
    );
}

#[test]
fn a_reading_removes_what_it_lacks_and_cleans_leftovers() {
    let mut fib = fib();
    after(
        &mut fib,
        new(route("0.0.0.0/0", 0, &[(CORE0, Some("10.2.0.1"))])),
    );
    after(&mut fib, neighbour("10.2.0.1", Some(MAC), false));
    fib.add_net(net("100.64.0.0/24"));
    fib.take_commands();

    let mut snapshot = Snapshot::default();
    let mut leftover = route("100.64.7.0/24", 0, &[(TUN, None)]);
    leftover.ours = true;
    snapshot.add(new(leftover));
    let mut stray = route("100.64.8.0/24", 0, &[(MANAGEMENT, None)]);
    stray.ours = true;
    snapshot.add(new(stray));
    snapshot.add(new(route("203.0.113.0/24", 0, &[(CORE0, None)])));
    fib.replace(snapshot);
    let commands = fib.take_commands();
    for expected in [
        Command::RemoveRoute(net("0.0.0.0/0")),
        Command::RemoveRoute(net("10.2.0.1/32")),
        Command::RemoveAdjacency(0),
        Command::SetRoute(net("203.0.113.0/24"), Target::OnLink(5)),
        Command::Withdraw(net("100.64.8.0/24"), MANAGEMENT),
        // What a run before announced may be asked for again.
        Command::SetRoute(net("100.64.7.0/24"), Target::Discard),
        Command::Export(net("100.64.0.0/24")),
    ] {
        assert!(
            commands.contains(&expected),
            "{expected:?} is not in {commands:?}"
        );
    }
    assert_eq!(fib.routes(), 3);
    let withdrawn = Command::Withdraw(net("100.64.7.0/24"), TUN);
    assert!(!commands.contains(&withdrawn));
    fib.end_keeping();
    assert_eq!(
        fib.take_commands(),
        [withdrawn, Command::RemoveRoute(net("100.64.7.0/24"))]
    );
}

#[test]
fn a_net_of_the_run_before_that_is_asked_for_again_never_goes() {
    let mut fib = fib();
    let pool = net("100.64.7.0/24");
    let mut leftover = route("100.64.7.0/24", 0, &[(TUN, None)]);
    leftover.ours = true;
    let reading = || {
        let mut snapshot = Snapshot::default();
        snapshot.add(new(leftover.clone()));
        snapshot
    };
    fib.replace(reading());
    assert_eq!(
        fib.take_commands(),
        [Command::SetRoute(pool, Target::Discard)]
    );
    fib.add_net(pool);
    assert_eq!(fib.take_commands(), []);
    fib.end_keeping();
    fib.replace(reading());
    assert_eq!(fib.take_commands(), []);
}

#[test]
fn a_net_of_the_run_before_that_the_kernel_lost_is_announced_again() {
    let mut fib = fib();
    let pool = net("100.64.7.0/24");
    let mut leftover = route("100.64.7.0/24", 0, &[(TUN, None)]);
    leftover.ours = true;
    let mut snapshot = Snapshot::default();
    snapshot.add(new(leftover));
    fib.replace(snapshot);
    fib.take_commands();
    fib.replace(Snapshot::default());
    assert_eq!(fib.take_commands(), [Command::RemoveRoute(pool)]);
    fib.add_net(pool);
    assert_eq!(
        fib.take_commands(),
        [
            Command::Export(pool),
            Command::SetRoute(pool, Target::Discard)
        ]
    );
}

#[test]
fn silent_changes_of_the_kernel_lead_to_a_reading() {
    let mut fib = fib();
    let link = |index, up| {
        Fact::Link(Link {
            index,
            name: "x".into(),
            up,
        })
    };
    assert_eq!(after(&mut fib, link(CORE0, true)), []);
    assert_eq!(after(&mut fib, link(CORE0, false)), [Command::Resync]);
    assert_eq!(after(&mut fib, link(CORE0, false)), []);
    assert_eq!(after(&mut fib, link(CORE0, true)), [Command::Resync]);
    assert_eq!(after(&mut fib, link(MANAGEMENT, false)), []);
    assert_eq!(after(&mut fib, Fact::AddressGone), [Command::Resync]);
}

#[test]
fn what_is_shown_is_what_the_dataplane_was_told() {
    let mut fib = fib();
    fib.add_net(net("100.64.0.0/24"));
    fib.apply(new(local("198.51.100.1/32", CORE0)));
    fib.apply(new(route("198.51.100.0/24", 0, &[(CORE0, None)])));
    fib.apply(new(route("0.0.0.0/0", 0, &[(CORE0, Some("198.51.100.2"))])));
    fib.apply(new(route("203.0.113.0/24", 0, &[(MANAGEMENT, None)])));
    fib.apply(neighbour("198.51.100.2", Some(MAC), true));
    let shown: Vec<ShownRoute> = fib.shown_routes(None).collect();
    let told: Vec<IpNet> = shown.iter().map(|route| route.net).collect();
    let installed: Vec<IpNet> = fib.installed.keys().copied().collect();
    assert_eq!(told, installed);
    let of = |prefix: &str| shown.iter().find(|route| route.net == net(prefix)).unwrap();
    assert!(of("100.64.0.0/24").subscribers && !of("203.0.113.0/24").subscribers);
    assert_eq!(of("203.0.113.0/24").target, Target::Discard);
    assert_eq!(of("198.51.100.1/32").target, Target::Local);
    assert_eq!(of("198.51.100.0/24").target, Target::OnLink(5));
    let hop = of("0.0.0.0/0").hop.as_ref().unwrap();
    assert_eq!(
        (hop.address, hop.mac, hop.stale),
        (addr("198.51.100.2"), Some(MAC), true)
    );
    // the default route, and the neighbour's own host route
    assert_eq!(hop.routes, 2);
    let rest: Vec<IpNet> = fib
        .shown_routes(Some(told[1]))
        .map(|route| route.net)
        .collect();
    assert_eq!(rest, told[2..]);
    let neighbours: Vec<ShownNeighbour> = fib.shown_neighbours().collect();
    assert_eq!(neighbours.len(), 1);
    assert_eq!(&neighbours[0], hop);
}
