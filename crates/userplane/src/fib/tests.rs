use super::*;
use crate::netlink::message::{Hop, Link, Neighbour, NextHop, Place, Route, RouteKey};
use std::net::Ipv4Addr;
use std::time::Duration;

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
    read(&mut fib, snapshot);
    assert_eq!(fib.take_commands(), []);
    fib
}

/// Applies a reading in small portions.
fn read(fib: &mut Fib, snapshot: Snapshot) {
    fib.replace(snapshot);
    while fib.sweep(2) {}
}

fn route(destination: &str, metric: u32, hops: &[(u32, Option<&str>)]) -> Route {
    Route {
        destination: net(destination),
        key: RouteKey {
            local: false,
            metric,
        },
        way: Way {
            kind: RouteKind::Forward,
            object: None,
            hops: hops.iter().map(|&(link, gw)| hop(link, gw)).collect(),
        },
        ours: false,
    }
}

fn hop(link: u32, gateway: Option<&str>) -> Hop {
    Hop {
        link,
        gateway: gateway.map(addr),
        weight: 1,
    }
}

fn local(destination: &str, link: u32) -> Route {
    let mut route = route(destination, 0, &[(link, None)]);
    route.key.local = true;
    route.way.kind = RouteKind::Local;
    route
}

fn new(route: Route) -> Fact {
    Fact::Route {
        route,
        place: Place::Last,
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
    // The router moves to another MAC address, then fails.
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

/// The kernel's neighbour table must keep its room for routers.
#[test]
fn requests_for_neighbours_are_limited_and_those_for_routers_are_not() {
    let mut fib = fib();
    let router = Some("198.51.100.1");
    after(
        &mut fib,
        new(route("203.0.113.0/24", 0, &[(CORE0, router)])),
    );
    let mut requested = |seconds| {
        for number in 0..1000_u32 {
            let address = IpAddr::from(Ipv4Addr::from(0xc633_6400 | number));
            fib.neighbour_missing(5, address, Duration::from_secs(seconds));
        }
        fib.adjacency_missing(0);
        let commands = fib.take_commands();
        assert_eq!(
            commands.last(),
            Some(&Command::UseNeighbour(CORE0, addr("198.51.100.1")))
        );
        (commands.len() - 1, fib.requests_limited)
    };
    assert_eq!(requested(0), (256, 744));
    assert_eq!(requested(1), (20, 1724));
    assert_eq!(requested(60), (256, 2468));
}

#[test]
fn on_link_prefixes_make_the_kernel_resolve() {
    let mut fib = fib();
    assert_eq!(
        after(&mut fib, new(route("198.51.100.0/24", 0, &[(CORE0, None)]))),
        [Command::SetRoute(net("198.51.100.0/24"), Target::OnLink(5))]
    );
    fib.neighbour_missing(5, addr("198.51.100.3"), Duration::ZERO);
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
    multicast.way.kind = RouteKind::Local;
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

const ROUTERS: [(u32, Option<&str>); 3] = [
    (CORE0, Some("198.51.100.1")),
    (CORE1, Some("198.51.101.1")),
    (CORE1, Some("198.51.101.2")),
];

fn object(destination: &str, id: u32) -> Route {
    let mut route = route(destination, 20, &[]);
    route.way.object = Some(id);
    route
}

/// The dataplane's routes and groups after these commands.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    routes: BTreeMap<IpNet, Target>,
    groups: BTreeMap<GroupId, Vec<AdjacencyId>>,
    adjacencies: BTreeSet<AdjacencyId>,
}

impl Told {
    /// Checks that everything a route or group refers to exists.
    fn follow(&mut self, fib: &mut Fib) -> &Self {
        for command in fib.take_commands() {
            match command {
                Command::SetRoute(net, target) => {
                    match target {
                        Target::Adjacency(id) => assert!(self.adjacencies.contains(&id)),
                        Target::Group(id) => assert!(self.groups.contains_key(&id)),
                        _ => {}
                    }
                    self.routes.insert(net, target);
                }
                Command::RemoveRoute(net) => drop(self.routes.remove(&net)),
                Command::SetAdjacency { id, .. } => drop(self.adjacencies.insert(id)),
                Command::RemoveAdjacency(id) => {
                    let used = self.groups.values().any(|group| group.contains(&id));
                    assert!(!used && !self.leads_to(Target::Adjacency(id)));
                    self.adjacencies.remove(&id);
                }
                Command::SetGroup(id, members) => {
                    assert!(members.iter().all(|id| self.adjacencies.contains(id)));
                    self.groups.insert(id, members);
                }
                Command::RemoveGroup(id) => {
                    assert!(!self.leads_to(Target::Group(id)));
                    self.groups.remove(&id);
                }
                _ => {}
            }
        }
        self
    }

    fn leads_to(&self, target: Target) -> bool {
        self.routes.values().any(|other| *other == target)
    }

    fn to(&self, destination: &str) -> Option<Target> {
        self.routes.get(&net(destination)).copied()
    }
}

#[test]
fn routes_by_the_same_routers_share_a_group() {
    let (mut fib, mut told) = (fib(), Told::default());
    let management = [&[(MANAGEMENT, Some("10.0.0.1"))], &ROUTERS[..2]].concat();
    fib.apply(new(route("0.0.0.0/0", 0, &management)));
    fib.apply(new(route("203.0.113.0/24", 0, &ROUTERS[..2])));
    told.follow(&mut fib);
    assert_eq!(told.groups, BTreeMap::from([(0, vec![0, 1])]));
    assert_eq!(told.to("0.0.0.0/0"), Some(Target::Group(0)));
    assert_eq!(told.to("203.0.113.0/24"), Some(Target::Group(0)));
    let shown: Vec<ShownRoute> = fib.shown_routes(None).collect();
    let hops = shown[0].hops.iter().map(|hop| (hop.link, hop.address));
    assert!(hops.eq([(CORE0, addr("198.51.100.1")), (CORE1, addr("198.51.101.1"))]));
    let shown: Vec<usize> = fib.shown_neighbours().map(|n| n.routes).collect();
    assert_eq!(shown, [2, 2]);

    // Of weights 2 and 1 the first has two shares.
    let mut weighted = route("203.0.113.0/24", 0, &ROUTERS[..2]);
    weighted.way.hops[0].weight = 2;
    let place = Place::Instead;
    fib.apply(Fact::Route {
        route: weighted.clone(),
        place,
    });
    told.follow(&mut fib);
    assert_eq!(told.groups[&1], [0, 0, 1]);

    // One router that is named twice counts as one router.
    let twice = route("198.18.0.0/15", 0, &[ROUTERS[0], ROUTERS[0]]);
    fib.apply(new(twice.clone()));
    told.follow(&mut fib);
    assert_eq!(told.to("198.18.0.0/15"), Some(Target::Adjacency(0)));

    for gone in [route("0.0.0.0/0", 0, &management), weighted, twice] {
        fib.apply(Fact::RouteGone(gone));
    }
    assert_eq!(told.follow(&mut fib), &Told::default());
}

#[test]
fn ipv6_takes_next_hops_away_one_by_one() {
    let (mut fib, mut told) = (fib(), Told::default());
    let routers = [(CORE0, Some("2001:db8::1")), (CORE1, Some("2001:db8:1::1"))];
    fib.apply(new(route("2001:db8:7::/48", 20, &routers[..1])));
    // Another next hop is added: the message has both.
    fib.apply(new(route("2001:db8:7::/48", 20, &routers)));
    told.follow(&mut fib);
    assert_eq!(told.to("2001:db8:7::/48"), Some(Target::Group(0)));
    let gone = route("2001:db8:7::/48", 20, &routers[..1]);
    fib.apply(Fact::RouteGone(gone));
    told.follow(&mut fib);
    assert_eq!(told.to("2001:db8:7::/48"), Some(Target::Adjacency(1)));
    assert!(told.groups.is_empty());
    // The prefix on two links is two routes.
    let on = |link| route("2001:db8:8::/64", 256, &[(link, None)]);
    fib.apply(new(on(CORE0)));
    fib.apply(new(on(CORE1)));
    told.follow(&mut fib);
    assert_eq!(told.to("2001:db8:8::/64"), Some(Target::OnLink(5)));
    fib.apply(Fact::RouteGone(on(CORE0)));
    told.follow(&mut fib);
    assert_eq!(told.to("2001:db8:8::/64"), Some(Target::OnLink(6)));
}

#[test]
fn of_several_routes_with_one_key_the_first_is_used() {
    let (mut fib, mut told) = (fib(), Told::default());
    let by = |router| route("203.0.113.0/24", 0, &ROUTERS[router..=router]);
    let mut add = |fib: &mut Fib, router, place| {
        let route = by(router);
        fib.apply(Fact::Route { route, place });
        let shown = fib.shown_routes(None).next().unwrap();
        told.follow(fib);
        shown.hops[0].address.to_string()
    };
    assert_eq!(add(&mut fib, 0, Place::First), "198.51.100.1");
    assert_eq!(add(&mut fib, 1, Place::Last), "198.51.100.1");
    assert_eq!(add(&mut fib, 2, Place::First), "198.51.101.2");
    // A change from before the reading comes again.
    assert_eq!(add(&mut fib, 0, Place::First), "198.51.101.2");
    assert_eq!(add(&mut fib, 0, Place::Instead), "198.51.100.1");
    fib.apply(Fact::RouteGone(by(0)));
    told.follow(&mut fib);
    assert_eq!(told.to("203.0.113.0/24"), Some(Target::Adjacency(1)));
    fib.apply(Fact::RouteGone(by(1)));
    assert_eq!(told.follow(&mut fib), &Told::default());
}

#[test]
fn a_route_of_an_object_leads_where_the_object_does() {
    let (mut fib, mut told) = (fib(), Told::default());
    for (id, (link, gateway)) in (1..).zip(ROUTERS) {
        fib.apply(Fact::NextHop(id, NextHop::Hop(hop(link, gateway))));
    }
    let group = |ids: &[u32]| NextHop::Group(ids.iter().map(|id| (*id, 1)).collect());
    fib.apply(Fact::NextHop(9, group(&[1, 2])));
    fib.apply(new(object("0.0.0.0/0", 9)));
    fib.apply(new(object("203.0.113.0/24", 3)));
    told.follow(&mut fib);
    let group_of = |told: &Told, destination| match told.to(destination) {
        Some(Target::Group(id)) => told.groups[&id].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(group_of(&told, "0.0.0.0/0"), [0, 1]);
    assert_eq!(told.to("203.0.113.0/24"), Some(Target::Adjacency(2)));

    // The objects change, and the kernel sends no change of the routes.
    fib.apply(Fact::NextHop(9, group(&[1, 2, 3])));
    fib.apply(Fact::NextHop(
        3,
        NextHop::Hop(hop(ROUTERS[0].0, ROUTERS[0].1)),
    ));
    while fib.sweep(1) {}
    told.follow(&mut fib);
    assert_eq!(told.to("203.0.113.0/24"), Some(Target::Adjacency(0)));
    assert_eq!(group_of(&told, "0.0.0.0/0"), [0, 0, 1]);
    fib.apply(Fact::NextHop(9, group(&[2])));
    fib.apply(Fact::NextHop(3, NextHop::Discard));
    while fib.sweep(1) {}
    told.follow(&mut fib);
    assert_eq!(told.to("0.0.0.0/0"), Some(Target::Adjacency(1)));
    assert_eq!(told.to("203.0.113.0/24"), Some(Target::Discard));

    // Removing unused objects has no effect. Routes vanish with the object that they use.
    assert_eq!(after(&mut fib, Fact::NextHopGone(1)), []);
    assert_eq!(after(&mut fib, Fact::NextHopGone(2)), [Command::Resync]);
}

#[test]
fn more_than_64_routers_are_cut_and_more_groups_than_fit_counted() {
    let (mut fib, mut told) = (fib(), Told::default());
    let router = |n: u32| IpAddr::from((0xc633_6400 + n).to_be_bytes());
    let by = |numbers: &mut dyn Iterator<Item = u32>| -> Vec<Hop> {
        let hop = |n| Hop {
            link: CORE0,
            gateway: Some(router(n)),
            weight: 1,
        };
        numbers.map(hop).collect()
    };
    let mut wide = route("0.0.0.0/0", 0, &[]);
    wide.way.hops = by(&mut (1..=100));
    fib.apply(new(wide));
    told.follow(&mut fib);
    assert_eq!(told.groups[&0].len(), MAX_WAYS);

    for n in 0..MAX_GROUPS as u32 {
        let destination = IpAddr::from((0x0a00_0000 + n).to_be_bytes()).to_string() + "/32";
        let mut narrow = route(&destination, 0, &[]);
        narrow.way.hops = by(&mut [1 + n % 50, 60 + n / 50].into_iter());
        fib.apply(new(narrow));
    }
    told.follow(&mut fib);
    assert_eq!((told.groups.len(), fib.groups_refused()), (MAX_GROUPS, 1));
    assert!(matches!(
        told.to("10.0.3.255/32"),
        Some(Target::Adjacency(_))
    ));
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
        place: Place::Instead,
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
            Command::Export(pool.into()),
            Command::SetRoute(pool, Target::Discard)
        ]
    );
    let mut ours = route("100.64.0.0/24", 0, &[(TUN, None)]);
    ours.ours = true;
    assert_eq!(after(&mut fib, new(ours.clone())), []);
    // Another process removes the announcement: it is announced again.
    assert_eq!(
        after(&mut fib, Fact::RouteGone(ours)),
        [Command::Export(pool.into())]
    );
    fib.remove_net(pool);
    assert_eq!(
        fib.take_commands(),
        [
            Command::Withdraw(pool.into(), TUN),
            Command::RemoveRoute(pool)
        ]
    );
}

#[test]
fn each_metric_of_a_net_is_a_route_of_its_own() {
    let mut fib = fib();
    let routed = net("192.0.2.0/28");
    let of = |metric| Announcement::new(routed, metric);
    fib.add_net(of(Some(7)));
    assert_eq!(
        fib.take_commands(),
        [
            Command::Export(of(Some(7))),
            Command::SetRoute(routed, Target::Discard)
        ]
    );
    // the packet path notices nothing of another metric
    fib.add_net(of(Some(9)));
    fib.remove_net(of(Some(7)));
    let (export, withdraw) = (
        Command::Export(of(Some(9))),
        Command::Withdraw(of(Some(7)), TUN),
    );
    assert_eq!(fib.take_commands(), [export.clone(), withdraw]);
    let ours = |metric| {
        let mut ours = route("192.0.2.0/28", metric, &[(TUN, None)]);
        ours.ours = true;
        ours
    };
    assert_eq!(after(&mut fib, Fact::RouteGone(ours(7))), []);
    assert_eq!(
        after(&mut fib, Fact::RouteGone(ours(9))),
        std::slice::from_ref(&export)
    );
    // a reading with the old metric alone
    fib.end_keeping();
    fib.take_commands();
    let mut snapshot = Snapshot::default();
    snapshot.add(new(ours(7)));
    read(&mut fib, snapshot);
    assert_eq!(
        fib.take_commands(),
        [Command::Withdraw(of(Some(7)), TUN), export]
    );
    fib.remove_net(of(Some(9)));
    let gone = [
        Command::Withdraw(of(Some(9)), TUN),
        Command::RemoveRoute(routed),
    ];
    assert_eq!(fib.take_commands(), gone);
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
    read(&mut fib, snapshot);
    let commands = fib.take_commands();
    for expected in [
        Command::RemoveRoute(net("0.0.0.0/0")),
        Command::RemoveRoute(net("10.2.0.1/32")),
        Command::RemoveAdjacency(0),
        Command::SetRoute(net("203.0.113.0/24"), Target::OnLink(5)),
        Command::Withdraw(net("100.64.8.0/24").into(), MANAGEMENT),
        // An announcement of an earlier run may be requested again.
        Command::SetRoute(net("100.64.7.0/24"), Target::Discard),
        Command::Export(net("100.64.0.0/24").into()),
    ] {
        assert!(
            commands.contains(&expected),
            "{expected:?} is not in {commands:?}"
        );
    }
    assert_eq!(fib.routes(), 3);
    let withdrawn = Command::Withdraw(net("100.64.7.0/24").into(), TUN);
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
    read(&mut fib, reading());
    assert_eq!(
        fib.take_commands(),
        [Command::SetRoute(pool, Target::Discard)]
    );
    fib.add_net(pool);
    assert_eq!(fib.take_commands(), []);
    fib.end_keeping();
    read(&mut fib, reading());
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
    read(&mut fib, snapshot);
    fib.take_commands();
    read(&mut fib, Snapshot::default());
    assert_eq!(fib.take_commands(), [Command::RemoveRoute(pool)]);
    fib.add_net(pool);
    assert_eq!(
        fib.take_commands(),
        [
            Command::Export(pool.into()),
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
    let hop = &of("0.0.0.0/0").hops[0];
    assert_eq!((hop.address, hop.mac), (addr("198.51.100.2"), Some(MAC)));
    let rest: Vec<IpNet> = fib
        .shown_routes(Some(told[1]))
        .map(|route| route.net)
        .collect();
    assert_eq!(rest, told[2..]);
    let neighbours: Vec<ShownNeighbour> = fib.shown_neighbours().collect();
    let [neighbour] = &neighbours[..] else {
        panic!("{neighbours:?}")
    };
    assert_eq!((neighbour.address, neighbour.stale), (hop.address, true));
    // The default route, and the neighbour's own host route.
    assert_eq!(neighbour.routes, 2);
}

#[test]
fn routes_to_a_prefix_are_the_same_when_all_of_both_are() {
    let [a, b] = [Some("192.0.2.1"), Some("192.0.2.2")]
        .map(|gateway| route("10.0.0.0/8", 0, &[(CORE0, gateway)]));
    let worse = route("10.0.0.0/8", 7, &[(CORE0, Some("192.0.2.2"))]);
    let of = |routes: &[&Route]| {
        let mut all = mirror::Routes::default();
        for one in routes {
            all.add((*one).clone(), Place::Last);
        }
        all
    };
    let prefix = net("10.0.0.0/8");
    let same = |ours: &[&Route], theirs: &[&Route]| of(ours).same(&of(theirs), &prefix);
    assert!(same(&[&a, &worse], &[&worse, &a]));
    assert!(same(&[], &[]));
    assert!(!same(&[&a], &[&b]), "as many, and others");
    assert!(!same(&[&a], &[&a, &worse]));
    assert!(!same(&[&a, &worse], &[&a]));
}
