//! Delegated prefixes and router addresses: of pools, of RADIUS and of users, from the allocation to the release.

use crate::history::look;
use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use northbound::{Pool, Request, Response};
use policy::{Binding, Role};
use wire::pfcp::Cause;
use wire::radius::{Kind, Value};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// A world with pools of delegated prefixes and router addresses, which the profile names or not.
fn world(homes: usize, choice: Choice, profile: bool) -> World {
    let mut w = World::new(homes, choice);
    let mut lines = vec![
        "set ipv6-pools lans prefix 2001:db8:4000::/36",
        "set ipv6-pools lans prefix-length 56",
        "set ipv6-pools routers prefix 2001:db8:5000::/64",
        "set ipv6-pools routers prefix-length 128",
    ];
    if profile {
        lines.push("set subscriber-profiles home delegated-pools lans");
        lines.push("set subscriber-profiles home ipv6-address-pools routers");
    }
    w.configure(&lines).unwrap();
    w
}

fn online(w: &mut World, home: usize) {
    w.dial(home);
    w.run(MINUTE);
}

fn away(w: &mut World, home: usize) {
    w.hang_up(home);
    w.run(MINUTE);
}

/// The bindings of a session on the user plane in a role, each with whether it is announced by itself.
fn held(w: &World, session: usize, role: Role) -> Vec<(String, bool)> {
    let rules = &w.up.subscribers()[session];
    let bindings = rules.forwarding.bindings.iter();
    let own = bindings.filter(|b| b.role == role && !b.is_ipv4());
    let shown = |binding: &Binding| (binding.to_string(), binding.is_announced);
    own.map(shown).collect()
}

fn of_block(prefix: &str) -> Vec<(String, bool)> {
    vec![(prefix.into(), false)]
}

fn prefix(text: &str) -> Value {
    Value::Ipv6Prefix(text.parse().unwrap())
}

fn who(w: &mut World, address: &str) -> Vec<String> {
    let subscriber = address.to_owned();
    match w.call(Request::FindSubscriber {
        subscriber,
        from: 0,
    }) {
        Ok(Response::Subscriber { found, .. }) => {
            let sessions = found.subscribers.into_iter();
            sessions.map(|of| of.session.unwrap().user).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn pools(w: &mut World) -> Vec<Pool> {
    match w.call(Request::ListPools) {
        Ok(Response::Pools { pools }) => pools,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_delegated_prefix_of_a_pool_is_there_before_the_family_opens_and_as_long_as_the_session() {
    let mut w = world(3, Choice::default(), true);
    online(&mut w, 0);
    online(&mut w, 1);
    let has = |w: &World| {
        held(w, 0, Role::Delegated) == of_block("2001:db8:4000::/56")
            && held(w, 0, Role::Host) == of_block("2001:db8:5000::")
            && held(w, 1, Role::Delegated) == of_block("2001:db8:4000:100::/56")
            && held(w, 1, Role::Host) == of_block("2001:db8:5000::1")
    };
    assert!(has(&w), "{:?}", w.up.subscribers());
    let nets = w.up.nets();
    for block in ["2001:db8:4000::/48", "2001:db8:5000::/120"] {
        assert!(nets.iter().any(|net| net == block), "{block} in {nets:?}");
    }
    assert_eq!(w.sessions()[1].routes, ["2001:db8:4000:100::/56"]);
    assert_eq!(who(&mut w, "2001:db8:4000:1ff::9"), ["home1"]);
    assert_eq!(who(&mut w, "2001:db8:5000::1"), ["home1"]);
    assert!(who(&mut w, "2001:db8:4000:200::9").is_empty());

    w.restart_control_plane();
    w.run(MINUTE);
    assert!(has(&w));
    w.restart_user_plane();
    w.run(MINUTE);
    assert!(has(&w));
    assert_eq!(w.up.nets(), nets);
    w.assert_balanced();

    away(&mut w, 0);
    away(&mut w, 1);
    assert!(w.up.nets().is_empty(), "{:?}", w.up.nets());
    assert!(pools(&mut w).iter().all(|pool| pool.used == 0));
    w.assert_balanced();
}

#[test]
fn without_a_pool_nothing_is_delegated_and_without_a_free_prefix_the_session_goes_on() {
    let mut w = world(3, Choice::default(), false);
    online(&mut w, 0);
    assert_eq!(held(&w, 0, Role::Delegated), []);
    w.configure(&[
        "set ipv6-pools few prefix 2001:db8:6000::/48",
        "set ipv6-pools few prefix-length 48",
        "set subscriber-profiles home delegated-pools few",
    ])
    .unwrap();
    online(&mut w, 1);
    online(&mut w, 2);
    assert_eq!(w.online(), 3);
    assert_eq!(held(&w, 1, Role::Delegated), of_block("2001:db8:6000::/48"));
    assert_eq!(held(&w, 2, Role::Delegated), []);
    assert_eq!(w.count(Counter::Ipv6PoolExhausted), 1);
    // the next pool in order is used
    w.configure(&["set subscriber-profiles home delegated-pools lans"])
        .unwrap();
    away(&mut w, 2);
    online(&mut w, 2);
    assert_eq!(held(&w, 2, Role::Delegated), of_block("2001:db8:4000::/56"));
}

#[test]
fn prefixes_and_an_address_of_radius_come_before_those_of_pools() {
    let mut w = world(2, Choice::radius(), true);
    w.radius.accept = vec![
        (Kind::FRAMED_IPV6_PREFIX, prefix("2001:db8:100:77::/64")),
        // in the prefix of the link (RFC 6911)
        (
            Kind::FRAMED_IPV6_ADDRESS,
            Value::Ipv6("2001:db8:100:77::2".parse().unwrap()),
        ),
        (
            Kind::DELEGATED_IPV6_PREFIX,
            prefix("2001:db8:4000:700::/56"),
        ),
        (Kind::DELEGATED_IPV6_PREFIX, prefix("2001:db8:9900::/48")),
        // RADIUS may not delegate the network of a link with it
        (Kind::DELEGATED_IPV6_PREFIX, prefix("2001:db8:9900::/80")),
        (
            Kind::DNS_SERVER_IPV6_ADDRESS,
            Value::Ipv6("2001:db8::5353".parse().unwrap()),
        ),
    ];
    online(&mut w, 0);
    let has = |w: &World| {
        let outside = ("2001:db8:9900::/48".to_owned(), true);
        let mut both = of_block("2001:db8:4000:700::/56");
        both.push(outside);
        held(w, 0, Role::Delegated) == both
            && held(w, 0, Role::Host) == of_block("2001:db8:100:77::2")
    };
    assert!(has(&w), "{:?}", w.up.subscribers());
    assert_eq!(
        w.sessions()[0].without_effect,
        ["Delegated-IPv6-Prefix (ignored)"]
    );
    assert!(
        w.homes[0]
            .dns()
            .any(|dns| dns.to_string() == "2001:db8::5353")
    );
    w.restart_control_plane();
    w.run(MINUTE);
    assert!(has(&w), "{:?}", w.up.subscribers());
    w.begin_ppp_anew(0);
    w.run(MINUTE);
    assert!(has(&w));
    w.assert_balanced();

    // somebody else has none of it
    online(&mut w, 1);
    assert_eq!(w.online(), 2);
    assert_eq!(w.count(Counter::FixedAddressUnusable), 4);
    assert_eq!(held(&w, 1, Role::Delegated), []);

    away(&mut w, 0);
    let stop = w.radius.records.iter().rev();
    let mut stop = stop.filter(|record| record.all(Kind::DELEGATED_IPV6_PREFIX).count() > 0);
    let stop = stop.next().expect("a record with delegated prefixes");
    assert_eq!(stop.all(Kind::DELEGATED_IPV6_PREFIX).count(), 2);
    let address = Value::Ipv6("2001:db8:100:77::2".parse().unwrap());
    assert_eq!(stop.get(Kind::FRAMED_IPV6_ADDRESS), Some(&address));
    away(&mut w, 1);
    w.assert_balanced();
    assert!(w.up.nets().is_empty());
}

#[test]
fn pools_that_radius_names_for_delegation_are_used_or_refuse_the_subscriber_by_name() {
    let mut w = world(1, Choice::radius(), false);
    w.radius.accept = vec![
        (Kind::DELEGATED_IPV6_PREFIX_POOL, "lans".into()),
        (Kind::STATEFUL_IPV6_ADDRESS_POOL, "routers".into()),
    ];
    online(&mut w, 0);
    assert_eq!(held(&w, 0, Role::Delegated), of_block("2001:db8:4000::/56"));
    assert_eq!(held(&w, 0, Role::Host), of_block("2001:db8:5000::"));
    away(&mut w, 0);
    for (kind, pool) in [
        (Kind::DELEGATED_IPV6_PREFIX_POOL, "routers"),
        (Kind::STATEFUL_IPV6_ADDRESS_POOL, "lans"),
        (Kind::FRAMED_IPV6_POOL, "lans"),
        (Kind::DELEGATED_IPV6_PREFIX_POOL, "nowhere"),
    ] {
        let rejected = w.count(Counter::AuthenticationRejected);
        w.radius.accept = vec![(kind, pool.into())];
        online(&mut w, 0);
        assert_eq!(w.online(), 0, "{pool}");
        assert!(w.count(Counter::AuthenticationRejected) > rejected);
    }
}

/// Somebody else is online all the time, so that the blocks stay.
#[test]
fn a_subscriber_that_comes_back_gets_what_it_had_unless_the_profile_says_otherwise() {
    let mut w = world(4, Choice::default(), true);
    online(&mut w, 0);
    online(&mut w, 1);
    let all = |w: &mut World| {
        let of = |session: &northbound::Session| {
            let addresses = [session.ipv4.clone(), session.ipv6_prefix.clone()];
            let addresses = addresses.into_iter().flatten();
            let all: Vec<String> = addresses.chain(session.routes.clone()).collect();
            all
        };
        let sessions = w.sessions();
        let of_home = sessions.iter().find(|session| session.user == "home1");
        of_home.map(of).expect("home1 is online")
    };
    let had = all(&mut w);
    assert_eq!(had.len(), 3);
    away(&mut w, 1);
    online(&mut w, 2);
    online(&mut w, 1);
    assert_eq!(all(&mut w), had, "nobody else got it meanwhile");
    away(&mut w, 1);
    w.configure(&["set subscriber-profiles home sticky-addresses false"])
        .unwrap();
    online(&mut w, 1);
    let others = all(&mut w);
    assert!(
        others.iter().all(|address| !had.contains(address)),
        "{others:?} {had:?}"
    );
}

#[test]
fn the_subscriber_that_is_offline_for_longest_is_forgotten_first_and_a_counter_says_so() {
    let choice = Choice {
        sessions: 2,
        ..Choice::default()
    };
    let mut w = world(4, choice, true);
    // so that the blocks stay
    online(&mut w, 3);
    for home in 0..2 {
        online(&mut w, home);
        away(&mut w, home);
    }
    assert_eq!(w.count(Counter::StickyAddressesFull), 0);
    online(&mut w, 2);
    away(&mut w, 2);
    assert_eq!(w.count(Counter::StickyAddressesFull), 1);
    for (home, ipv4) in [(1, "100.64.0.4"), (0, "100.64.0.6")] {
        online(&mut w, home);
        assert_eq!(w.homes[home].ipv4().unwrap().to_string(), ipv4);
        away(&mut w, home);
    }
}

/// The new session does not wait for what the user plane keeps.
#[test]
fn a_rejected_deletion_wakes_the_session_that_waits_for_the_addresses() {
    let mut w = world(1, Choice::default(), true);
    online(&mut w, 0);
    w.switch_off_and_on(0);
    w.be_late();
    w.dial(0);
    w.run(SECOND * 3 / 2);
    w.answer_late_but_deletions();
    w.run(SECOND / 2);
    assert_eq!(w.online(), 0, "it waits");
    w.up.refuse_deletions = Some(Cause::NO_RESOURCES_AVAILABLE);
    w.answer_late();
    // the next challenge of CHAP would come later
    w.run(SECOND / 2);
    assert_eq!(w.online(), 1);
    w.up.refuse_deletions = None;
    w.run(MINUTE);
    w.assert_balanced();
}

/// After a power cut the router is back before its earlier session is over.
#[test]
fn a_router_that_reboots_has_its_addresses_of_pools_again_at_once() {
    let mut w = world(3, Choice::default(), true);
    online(&mut w, 1);
    online(&mut w, 0);
    let had = |w: &mut World| {
        let sessions = w.sessions().into_iter();
        let mut own = sessions.filter(|session| session.user == "home0");
        let own = own.next().expect("home0 has a session");
        (own.ipv4, own.ipv6_prefix, own.routes)
    };
    let before = had(&mut w);
    for deletions_fail in [false, true] {
        w.up.refuse_deletions = deletions_fail.then_some(Cause::NO_RESOURCES_AVAILABLE);
        w.switch_off_and_on(0);
        w.dial(0);
        w.run(3 * SECOND);
        if !deletions_fail {
            assert_eq!((w.online(), had(&mut w)), (2, before.clone()));
        }
    }
    assert_eq!(w.online(), 2);
    w.up.refuse_deletions = None;
    w.run(MINUTE);
    w.assert_balanced();
}

#[test]
fn a_pool_says_when_it_is_full_if_it_goes_on_growing_and_remembers_its_growth() {
    let mut w = world(12, Choice::default(), false);
    w.configure(&[
        "set access-profiles pppoe echo-interval 0",
        "set ipv6-pools few prefix 2001:db8:6000::/51",
        "set ipv6-pools few prefix-length 56",
        "set subscriber-profiles home delegated-pools few",
    ])
    .unwrap();
    // four a day for three days
    for home in 0..12 {
        w.dial(home);
        w.run(360 * MINUTE);
        look(&mut w, 1);
    }
    let full_at = |w: &mut World| {
        let mut pools = pools(w).into_iter().filter(|pool| pool.name == "few");
        pools.next().and_then(|pool| pool.full_at)
    };
    let date = full_at(&mut w).expect("it grows by four a day");
    let days = (date - u64::from(w.moment().unix)) / 86_400;
    assert!((4..=5).contains(&days), "20 of 32 are left: {days}");
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(full_at(&mut w), Some(date));
}

#[test]
fn a_threshold_of_its_own_raises_the_alarm_of_a_pool_until_the_use_is_well_below() {
    let mut w = world(13, Choice::default(), false);
    w.configure(&[
        "set ipv4-pools homes prefix 100.64.0.0/28",
        "set ipv4-pools homes net-length 28",
        "set ipv4-pools homes alarm-threshold 50",
    ])
    .unwrap();
    let raised = ["pool-almost-exhausted"];
    (0..6).for_each(|home| w.dial(home));
    assert_eq!(look(&mut w, 70), [""; 0], "6 of 13");
    w.dial(6);
    assert_eq!(look(&mut w, 70), raised, "7 of 13");
    w.hang_up(6);
    assert_eq!(look(&mut w, 90), raised, "6 of 13 is 46 %");
    w.hang_up(5);
    assert_eq!(look(&mut w, 90), [""; 0], "5 of 13 is 38 %");
}
