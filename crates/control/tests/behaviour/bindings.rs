//! What sessions hold beside an address and a link prefix of the pools: prefixes and routes that AAA chose.

use crate::world::radius::link;
use crate::world::{Choice, World};
use control::counters::Counter;
use control::history::{Bounds, Database, Query, Reader, Subject, Until, parse_prefix};
use core::ops::ControlFlow;
use core::time::Duration;
use northbound::{BindingRole, Request, Response};
use policy::{Binding, Role};
use session::Cause;
use wire::pfcp::SluiceFeatures;
use wire::radius::{Kind, Value};

const MINUTE: Duration = Duration::from_secs(60);

/// The Access-Accept of a subscriber with this address and these routes.
fn accept(address: &str, routes: &[&str]) -> Vec<(Kind, Value)> {
    let address = Value::Ipv4(address.parse().unwrap());
    let routes = routes.iter().map(|route| {
        let kind = match route.contains(':') {
            true => Kind::FRAMED_IPV6_ROUTE,
            false => Kind::FRAMED_ROUTE,
        };
        (kind, (*route).into())
    });
    let address = (Kind::FRAMED_IP_ADDRESS, address);
    [address].into_iter().chain(routes).collect()
}

/// A world whose first subscriber is online with an address outside of the pools, and routes.
fn world() -> World {
    let mut w = World::new(3, Choice::radius());
    w.radius.accept = accept("203.0.113.1", &["203.0.113.0/29", "2001:db8:77::/48"]);
    w.dial(0);
    w.run(MINUTE);
    assert_eq!(w.online(), 1);
    w
}

/// What the user plane has of a session.
fn bindings(w: &World, session: usize) -> Vec<Binding> {
    let decoded = &w.up.subscribers()[session];
    decoded.forwarding.bindings.iter().copied().collect()
}

fn has(w: &World, session: usize, role: Role, prefix: &str) -> bool {
    let wanted = prefix.parse().unwrap();
    let all = bindings(w, session);
    let mut alone = all.iter().filter(|binding| binding.is_announced);
    alone.any(|binding| (binding.role, binding.prefix) == (role, wanted))
}

fn has_everything(w: &World, session: usize) -> bool {
    has(w, session, Role::Host, "203.0.113.1/32")
        && has(w, session, Role::Route, "203.0.113.0/29")
        && has(w, session, Role::Route, "2001:db8:77::/48")
}

#[test]
fn prefixes_of_aaa_are_announced_by_the_session_that_has_them() {
    let mut w = world();
    assert!(has_everything(&w, 0), "{:?}", bindings(&w, 0));
    let link = bindings(&w, 0);
    let link = link.iter().find(|binding| binding.role == Role::Link);
    assert!(!link.unwrap().is_announced, "it is of a pool");
    assert_eq!(w.up.nets(), ["2001:db8:100::/56"], "of the pool alone");
    assert_eq!(
        w.sessions()[0].routes,
        ["203.0.113.0/29", "2001:db8:77::/48"]
    );

    let before = w.up.subscribers();
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(w.up.subscribers(), before);
    w.restart_user_plane();
    w.run(MINUTE);
    assert!(has_everything(&w, 0));

    w.hang_up(0);
    w.run(MINUTE);
    assert_eq!((w.up.subscribers().len(), w.up.nets().len()), (0, 0));
    // Somebody else may have them now.
    w.dial(1);
    w.run(MINUTE);
    assert!(has_everything(&w, 0));
}

/// One of the prefixes is in a pool, and one cannot be a link's.
const LINKS: [&str; 3] = [
    "2001:db8:9:2::/64",
    "2001:db8:9:1::/64",
    "2001:db8:100:77::/64",
];

#[test]
fn a_session_has_all_prefixes_of_its_link() {
    let mut w = World::new(2, Choice::radius());
    w.radius.accept = LINKS.iter().map(|prefix| link(prefix)).collect();
    w.radius.accept.push(link("2001:db8:8::/56"));
    w.dial(0);
    w.run(MINUTE);
    assert_eq!((w.online(), w.count(Counter::FixedAddressUnusable)), (1, 1));
    let first = w.homes[0].ipv6().unwrap();
    assert!(first.to_string().starts_with("2001:db8:9:1:"), "{first}");
    let own = |w: &World, role| {
        let all = bindings(w, 0).into_iter();
        let own = all.filter(|binding| binding.role == role);
        let own = own.map(|binding| (binding.prefix.to_string(), binding.is_announced));
        own.collect::<Vec<_>>()
    };
    let shown = w.sessions().remove(0);
    assert_eq!(shown.ipv6_prefix.as_deref(), Some(LINKS[1]));
    assert_eq!(shown.routes, [LINKS[0], LINKS[2]]);
    // to the user plane, the others are prefixes that are routed to the session
    assert_eq!(own(&w, Role::Link), [(LINKS[1].to_owned(), true)]);
    let others = [(LINKS[0].to_owned(), true), (LINKS[2].to_owned(), false)];
    assert_eq!(own(&w, Role::Delegated), others);
    assert_eq!(w.up.nets(), ["100.64.0.0/24", "2001:db8:100::/56"]);
    let recorded = |w: &World| {
        let record = w.radius.records.last().unwrap();
        let all = record
            .all(Kind::FRAMED_IPV6_PREFIX)
            .map(|value| match value {
                Value::Ipv6Prefix(prefix) => prefix.to_string(),
                other => panic!("{other:?}"),
            });
        all.collect::<Vec<_>>()
    };
    assert_eq!(recorded(&w), [LINKS[1], LINKS[0], LINKS[2]]);
    let subscriber = "2001:db8:9:2::5".to_owned();
    match w.call(Request::FindSubscriber {
        subscriber,
        from: 0,
    }) {
        Ok(Response::Subscriber { found, .. }) => assert_eq!(found.subscribers.len(), 1),
        other => panic!("{other:?}"),
    }

    // neither plane forgets them, and nobody else gets them
    let before = w.up.subscribers();
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(w.up.subscribers(), before);
    w.assert_balanced();
    w.restart_user_plane();
    w.run(MINUTE);
    assert_eq!(own(&w, Role::Delegated), others);
    w.radius.accept = vec![link(LINKS[0])];
    w.dial(1);
    w.run(MINUTE);
    let refused = w.count(Counter::FixedAddressUnusable);
    assert_eq!(refused, 1, "since the restart");

    // one path releases all of them
    w.hang_up(0);
    w.hang_up(1);
    w.run(MINUTE);
    assert_eq!(recorded(&w).len(), 0, "the second had none");
    assert_eq!((w.up.subscribers().len(), w.up.nets().len()), (0, 0));
    w.assert_balanced();
}

#[test]
fn who_begins_ppp_anew_has_the_prefixes_of_the_new_answer() {
    let mut w = World::new(1, Choice::radius());
    let mut expect = |prefixes: &[&str], anew: &[(Kind, Value)]| {
        w.radius.accept = anew.to_vec();
        match w.online() {
            0 => w.dial(0),
            _ => w.begin_ppp_anew(0),
        }
        w.run(MINUTE);
        assert_eq!(w.online(), 1);
        let all = bindings(&w, 0).into_iter();
        let all = all.filter(|binding| !binding.is_ipv4());
        let all: Vec<String> = all.map(|binding| binding.prefix.to_string()).collect();
        assert_eq!(all, prefixes);
        w.assert_balanced();
    };
    expect(&LINKS[..1], &[link(LINKS[0])]);
    expect(&[LINKS[1], LINKS[0], LINKS[2]], &LINKS.map(link));
    // it keeps what it has if the server says nothing, or what is of the pool
    expect(&[LINKS[1], LINKS[0], LINKS[2]], &[]);
    let pool = (Kind::FRAMED_IPV6_POOL, "homes".into());
    expect(&LINKS[2..], &[pool]);
    expect(&LINKS[..1], &[link(LINKS[0])]);
}

#[test]
fn what_overlaps_another_subscribers_prefix_is_refused_by_name_and_harms_nobody() {
    let mut w = world();
    let before = w.up.subscribers();
    // One route is around the other one's network, one in a pool.
    let routes = ["203.0.113.128/25", "203.0.0.0/16", "100.64.9.0/24"];
    w.radius.accept = accept("203.0.113.200", &routes);
    w.dial(1);
    w.run(MINUTE);
    assert_eq!(w.count(Counter::FixedAddressUnusable), 2);
    assert!(has(&w, 1, Role::Host, "203.0.113.200/32"));
    assert!(has(&w, 1, Role::Route, "203.0.113.128/25"));
    let routes = bindings(&w, 1);
    let routes = routes.iter().filter(|binding| binding.role == Role::Route);
    assert_eq!(routes.count(), 1);
    // An address in the network of the first.
    w.radius.accept = accept("203.0.113.6", &[]);
    w.dial(2);
    w.run(MINUTE);
    assert_eq!(w.count(Counter::FixedAddressUnusable), 3);
    assert_eq!(w.online(), 3, "it has IPv6 alone");
    assert_eq!(w.up.subscribers()[0], before[0]);
}

#[test]
fn a_subscriber_that_is_accepted_anew_has_the_routes_of_now() {
    let mut w = world();
    w.radius.accept = accept("203.0.113.1", &["203.0.113.0/29", "203.0.113.64/26"]);
    w.begin_ppp_anew(0);
    w.run(MINUTE);
    assert_eq!(w.online(), 1);
    assert!(has(&w, 0, Role::Host, "203.0.113.1/32"));
    assert!(has(&w, 0, Role::Route, "203.0.113.64/26"));
    assert!(!has(&w, 0, Role::Route, "2001:db8:77::/48"));
}

/// A user plane of the version before announces nets of groups alone, and refuses a session with routes.
#[test]
fn an_older_user_plane_announces_addresses_as_nets_of_the_group() {
    let mut w = World::new(2, Choice::radius());
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS);
    w.run(MINUTE);
    w.radius.accept = accept("203.0.113.1", &[]);
    w.dial(0);
    w.run(MINUTE);
    assert_eq!(w.up.nets(), ["203.0.113.1/32", "2001:db8:100::/56"]);
    assert!(bindings(&w, 0).iter().all(|binding| !binding.is_announced));
    w.radius.accept = accept("203.0.113.2", &["203.0.113.64/26"]);
    w.dial(1);
    w.run(MINUTE);
    assert_eq!((w.online(), w.count(Counter::PolicyRefused)), (1, 1));

    // One of this version takes its place: the session announces the address itself.
    w.restart_user_plane();
    w.run(MINUTE);
    assert_eq!(w.up.nets(), ["2001:db8:100::/56"]);
    assert!(has(&w, 0, Role::Host, "203.0.113.1/32"));
    // And back.
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS);
    w.run(MINUTE);
    assert_eq!(w.up.nets(), ["203.0.113.1/32", "2001:db8:100::/56"]);
    w.hang_up(0);
    w.run(MINUTE);
    assert!(w.up.nets().is_empty(), "{:?}", w.up.nets());
}

/// A reader of the history that the control plane has written so far.
fn history(w: &World, directory: &tempfile::TempDir) -> Reader {
    let bounds = Bounds {
        keep: u32::MAX,
        octets: u64::MAX,
    };
    let mut database = Database::open(directory.path(), bounds).unwrap();
    let blocks = w
        .history
        .iter()
        .map(|(number, block)| (*number, &block[..]));
    database.append(blocks).unwrap();
    database.reader()
}

/// How the session ended that had an address last, and its bindings; `None` if it has the address.
fn last_holder(reader: &Reader, address: &str) -> (Option<Option<Cause>>, Vec<String>) {
    let address = parse_prefix(address).unwrap();
    let held = reader.who(address, u32::MAX, 1, Vec::new(), 0);
    let last = held
        .last()
        .unwrap_or_else(|| panic!("nobody had {address}"));
    let ended = match last.until {
        Until::Ended { cause, .. } => Some(cause),
        Until::Now => None,
        Until::Unknown(_) => panic!("{last:?}"),
    };
    let bindings = last.bindings.iter();
    let bindings = bindings.filter(|binding| binding.role == Role::Route);
    (ended, bindings.map(Binding::to_string).collect())
}

#[test]
fn the_history_leads_from_an_address_in_a_route_to_the_session_that_had_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut w = world();
    let both = ["203.0.113.0/29", "2001:db8:77::/48"];
    let subscriber = "2001:db8:77:5::9".to_owned();
    let found = match w.call(Request::FindSubscriber {
        subscriber,
        from: 0,
    }) {
        Ok(Response::Subscriber { found, .. }) => found.subscribers,
        other => panic!("{other:?}"),
    };
    let found: Vec<(BindingRole, &str)> = found[0]
        .other_bindings
        .iter()
        .map(|binding| (binding.role(), &*binding.prefix))
        .collect();
    assert_eq!(found, both.map(|net| (BindingRole::Route, net)));
    let reader = history(&w, &directory);
    for address in ["203.0.113.1", "203.0.113.6", "2001:db8:77:5::9"] {
        let held = last_holder(&reader, address);
        assert_eq!(held, (None, both.map(String::from).to_vec()), "{address}");
    }

    let before = w.history.len();
    w.restart_control_plane();
    w.run(MINUTE);
    w.restart_user_plane();
    w.run(MINUTE);
    let is_about_sessions = Query {
        subjects: vec![Subject::parse("home0")],
        ..Query::default()
    };
    let mut steps = 0;
    history(&w, &directory).forward(&is_about_sessions, |_| {
        steps += 1;
        ControlFlow::Continue(())
    });
    assert!(w.history.len() > before);
    assert_eq!(steps, 2, "a restart changes nothing of what it has");

    w.radius.accept = accept("203.0.113.1", &["203.0.113.64/26"]);
    w.begin_ppp_anew(0);
    w.run(MINUTE);
    w.hang_up(0);
    w.run(MINUTE);
    let reader = history(&w, &directory);
    let now = vec!["203.0.113.64/26".to_owned()];
    let (another, over) = (Some(None), Some(Some(Cause::UserRequest)));
    assert_eq!(last_holder(&reader, "203.0.113.70"), (over, now.clone()));
    assert_eq!(last_holder(&reader, "203.0.113.1"), (over, now));
    assert_eq!(last_holder(&reader, "2001:db8:77:5::9").0, another);
    assert_eq!(last_holder(&reader, "203.0.113.6").0, another);
    let nobody = parse_prefix("203.0.113.200").unwrap();
    assert!(reader.who(nobody, 0, 1, Vec::new(), 0).is_empty());
}

/// Neither the number of messages and records nor the rules of the port grow with the number of subscribers on it.
#[test]
fn the_last_of_many_with_prefixes_of_aaa_costs_what_the_first_does() {
    const MANY: usize = 2500;
    let choice = Choice {
        sessions: MANY as u32,
        ..Choice::radius()
    };
    let mut w = World::new(1, choice);
    let mut costs = Vec::new();
    for n in 0..MANY {
        let (high, low) = (n / 256, n % 256);
        let routes = [
            format!("10.{high}.{low}.0/29"),
            format!("2001:db8:{:x}:{low:x}00::/56", 0x7700 + high),
        ];
        let routes = routes.each_ref().map(|route| &**route);
        w.radius.accept = accept(&format!("10.{high}.{low}.1"), &routes);
        let link = format!("2001:db8:6600:{n:x}::/64").parse().unwrap();
        let link = (Kind::FRAMED_IPV6_PREFIX, Value::Ipv6Prefix(link));
        w.radius.accept.push(link);
        let (datagrams, said) = (w.told.len(), w.said);
        w.dial_instead(n);
        assert_eq!(w.online(), 1, "subscriber {n}");
        costs.push((w.told.len() - datagrams, w.said - said));
    }
    let subscribers = w.up.subscribers();
    assert_eq!(subscribers.len(), MANY);
    for rules in subscribers {
        let all = rules.forwarding.bindings;
        assert_eq!(all.iter().filter(|b| b.is_announced).count(), 4, "{all:?}");
    }
    assert!(w.up.nets().is_empty(), "the port has no rules for them");
    // the very first stores what the port needs as well
    let (first, last) = (costs[1], costs[MANY - 1]);
    assert_eq!(first, last);
    assert!(costs[1..].iter().all(|cost| *cost == first));
}

/// The only subscriber's router is switched off and on, without a goodbye, and connects again.
fn reboot(w: &mut World) {
    w.switch_off_and_on(0);
    w.dial(0);
}

#[test]
fn a_router_that_reboots_has_its_fixed_addresses_again_at_once() {
    let mut w = world();
    let before = bindings(&w, 0);
    reboot(&mut w);
    w.run(Duration::from_secs(3));
    assert_eq!((w.online(), w.sessions().len()), (1, 1));
    assert!(
        has_everything(&w, 0),
        "{:?} before: {before:?}",
        bindings(&w, 0)
    );
    assert_eq!(w.homes[0].ipv4().unwrap().to_string(), "203.0.113.1");
    assert_eq!(w.count(Counter::FixedAddressUnusable), 0);
    w.assert_balanced();
}

#[test]
fn a_new_session_waits_for_the_addresses_that_the_user_plane_still_has_in_the_earlier_one() {
    let mut w = world();
    w.up.refuse_deletions = Some(wire::pfcp::Cause::NO_RESOURCES_AVAILABLE);
    reboot(&mut w);
    w.run(Duration::from_secs(2));
    assert_eq!(w.online(), 0, "it does not come online without them");
    w.assert_balanced();
    w.up.refuse_deletions = None;
    w.run(Duration::from_secs(10));
    assert_eq!((w.online(), w.sessions().len()), (1, 1));
    assert!(has_everything(&w, 0), "{:?}", bindings(&w, 0));
    w.assert_balanced();
}

#[test]
fn another_router_of_the_subscriber_takes_its_addresses_over_and_another_subscriber_does_not() {
    let mut w = world();
    w.dial(1);
    w.run(MINUTE);
    assert_eq!(
        w.count(Counter::FixedAddressUnusable),
        3,
        "of another subscriber"
    );
    assert!(has_everything(&w, 0));
    let config = w.homes[0].config().clone();
    w.homes[0] = cpe::Home::new(
        cpe::HomeConfig {
            mac: wire::eth::MacAddr([2, 0, 0, 9, 9, 9]),
            ..config
        },
        99,
    );
    w.dial(0);
    w.run(Duration::from_secs(3));
    assert_eq!((w.online(), w.sessions().len()), (2, 2));
    assert_eq!(w.homes[0].ipv4().unwrap().to_string(), "203.0.113.1");
    w.assert_balanced();
}

#[test]
fn a_subscriber_of_one_address_family_gets_nothing_of_the_other() {
    for (families, has_ipv4) in [("ipv4-only", true), ("ipv6-only", false)] {
        let mut w = world();
        w.hang_up(0);
        w.run(MINUTE);
        let line = format!("set subscriber-profiles home address-families {families}");
        w.configure(&[&line]).unwrap();
        w.dial(0);
        w.run(MINUTE);
        let all = bindings(&w, 0);
        assert!(!all.is_empty(), "{families}");
        assert!(
            all.iter().all(|b| b.is_ipv4() == has_ipv4),
            "{families}: {all:?}"
        );
        assert_eq!(w.homes[0].ipv4().is_some(), has_ipv4);
        assert_eq!(w.homes[0].ipv6().is_some(), !has_ipv4);
        assert_eq!(w.count(Counter::FixedAddressUnusable), 0);
        w.assert_balanced();
    }
}
