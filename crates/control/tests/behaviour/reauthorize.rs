//! New answers of RADIUS servers for open sessions: when the session time-out asks for one, and when a server wants to be asked.

use crate::dynamic::{ACK, change, gold, history, mtu, nak, request, settings, user, world};
use crate::world::World;
use crate::world::radius::{self, number, route};
use control::counters::Counter;
use core::time::Duration;
use ipnet::IpNet;
use policy::Role;
use wire::radius::{Code, Kind, Value, values};

const SECOND: Duration = Duration::from_secs(1);

fn timeout(seconds: u32) -> (Kind, Value) {
    (Kind::SESSION_TIMEOUT, seconds.into())
}

fn again() -> (Kind, Value) {
    (Kind::TERMINATION_ACTION, 1.into())
}

fn state(octet: u8) -> (Kind, Value) {
    (Kind::STATE, Value::Octets(vec![octet; 8]))
}

fn only() -> (Kind, Value) {
    let only = values::SERVICE_TYPE_AUTHORIZE_ONLY;
    (Kind::SERVICE_TYPE, only.into())
}

/// Networks behind a home's router, at the user plane.
fn routes(w: &World, n: usize) -> Vec<String> {
    let session = &w.up.subscribers()[n];
    let all = session.forwarding.bindings.iter();
    let routes = all.filter(|binding| binding.role == Role::Route);
    routes.map(|binding| binding.prefix.to_string()).collect()
}

/// Prefix of a link.
fn prefix(n: u8) -> String {
    format!("2001:db8:9:{n}::/64")
}

fn link(n: u8) -> (Kind, Value) {
    radius::link(&prefix(n))
}

/// What a home has of IPv6, at the user plane.
fn ipv6(w: &World, n: usize) -> Vec<String> {
    let session = &w.up.subscribers()[n];
    let all = session.forwarding.bindings.iter();
    let own = all.filter(|binding| !binding.is_ipv4());
    own.map(|binding| binding.prefix.to_string()).collect()
}

/// A world with one home, whose server has these attributes for it.
fn answered(attributes: &[(Kind, Value)]) -> World {
    let mut w = world(1);
    w.hang_up(0);
    w.run(10 * SECOND);
    w.radius.accept = attributes.to_vec();
    w.radius.requests.clear();
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    w
}

#[test]
fn at_its_timeout_a_session_goes_on_with_a_new_answer() {
    let mut w = answered(&[
        timeout(600),
        again(),
        state(7),
        gold(),
        route("203.0.113.0/29"),
    ]);
    let id = w.sessions().remove(0).id;
    w.run(500 * SECOND);
    assert_eq!(w.radius.requests.len(), 1);
    w.radius.accept = vec![
        timeout(900),
        again(),
        state(8),
        mtu(1400),
        route("203.0.113.8/29"),
    ];
    w.run(100 * SECOND);
    assert_eq!(w.radius.requests.len(), 2);
    let asked = &w.radius.requests[1];
    assert_eq!(asked.get(Kind::STATE), Some(&state(7).1));
    let framed = Value::Integer(values::SERVICE_TYPE_FRAMED);
    assert_eq!(asked.get(Kind::SERVICE_TYPE), Some(&framed));
    assert!(asked.get(Kind::CHAP_PASSWORD).is_some(), "a new proof");
    let now = settings(&w, 0);
    assert_eq!(
        (now.mtu, now.rate_down, now.vlan_priority),
        (Some(1400), None, 0)
    );
    assert_eq!(routes(&w, 0), ["203.0.113.8/29"]);
    assert_eq!(w.sessions().remove(0).id, id, "the same session");
    assert_eq!(history(&w).len(), 1);
    w.assert_balanced();

    // and so on, also after a restart, until the server says nothing of it
    w.restart_control_plane();
    w.radius.accept = vec![timeout(60)];
    w.run(850 * SECOND);
    assert_eq!(w.radius.requests.len(), 2);
    w.run(60 * SECOND);
    assert_eq!(w.radius.requests.len(), 3);
    let repeated = w.radius.requests[2].get(Kind::STATE);
    assert_eq!(repeated, Some(&state(8).1), "the store has it");
    assert_eq!(w.online(), 1);
    w.run(60 * SECOND);
    assert_eq!(w.online(), 0, "the session time-out ends it");
}

#[test]
fn who_is_not_let_in_again_goes() {
    for is_dead in [false, true] {
        let mut w = answered(&[timeout(600), again()]);
        (w.radius.rejects, w.radius.dead) = (!is_dead, is_dead);
        w.run(700 * SECOND);
        assert_eq!(w.online(), 0);
        (w.radius.rejects, w.radius.dead) = (false, false);
        w.run(60 * SECOND);
        let causes = [1, 5, 17]; // User-Request, Session-Timeout, User-Error
        let last = number(w.radius.records.last().unwrap(), Kind::ACCT_TERMINATE_CAUSE);
        assert_eq!(last, causes[if is_dead { 1 } else { 2 }]);
        w.assert_balanced();
    }
}

#[test]
fn without_chap_the_timeout_ends_the_session() {
    let mut w = world(1);
    w.configure(&["set access-profiles pppoe authentication pap"])
        .unwrap();
    w.hang_up(0);
    w.run(10 * SECOND);
    w.radius.accept = vec![timeout(600), again()];
    w.dial(0);
    w.run(590 * SECOND);
    assert_eq!(w.online(), 1);
    w.radius.requests.clear();
    w.run(60 * SECOND);
    assert_eq!((w.online(), w.radius.requests.len()), (0, 0));
}

#[test]
fn a_server_that_wants_to_be_asked_is_asked() {
    let mut w = answered(&[
        gold(),
        route("203.0.113.0/29"),
        (Kind::CLASS, Value::Octets(vec![1])),
    ]);
    w.radius.accept = vec![mtu(1400), timeout(900)];
    assert_eq!(change(&mut w, &[user(0), only(), state(9)]), nak(507));
    w.run(SECOND);
    let asked = w.radius.requests.last().unwrap();
    assert_eq!(asked.get(Kind::STATE), Some(&state(9).1));
    assert_eq!(asked.get(Kind::SERVICE_TYPE), Some(&only().1));
    assert_eq!(asked.get(Kind::USER_NAME), Some(&user(0).1));
    let now = settings(&w, 0);
    assert_eq!((now.mtu, now.vlan_priority), (Some(1400), 0));
    assert_eq!(routes(&w, 0), [""; 0]);
    w.assert_balanced();
    w.hang_up(0);
    w.run(10 * SECOND);
    let stop = w.radius.records.last().unwrap();
    assert_eq!(stop.get(Kind::CLASS), None, "the new answer has none");
}

#[test]
fn a_rejection_ends_the_session_and_silence_does_not() {
    let mut w = answered(&[]);
    w.radius.dead = true;
    let ask = [user(0), only(), state(9)];
    assert_eq!(change(&mut w, &ask), nak(507));
    w.run(60 * SECOND);
    assert_eq!(w.online(), 1);
    w.radius.dead = false;
    w.run(60 * SECOND);
    w.radius.rejects = true;
    let bytes = request(Code::COA_REQUEST, 2, &ask);
    w.order("192.0.2.9", &bytes);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    w.assert_balanced();
}

/// What an open session cannot get it gets by connecting again: it ends.
#[test]
fn another_address_an_unknown_profile_or_no_rate_ends_the_session() {
    let address = (
        Kind::FRAMED_IP_ADDRESS,
        Value::Ipv4([100, 64, 0, 99].into()),
    );
    let prefix: ipnet::Ipv6Net = "2001:db8:0:99::/64".parse().unwrap();
    // Mikrotik-Rate-Limit without a rate, which the profile does not have either
    let kind = Kind {
        vendor: 14988,
        number: 8,
    };
    let rate_limit = (kind, "0/0".into());
    let (admin_reset, nas_error) = (6, 9);
    for (answer, cause) in [
        (address, admin_reset),
        (
            (Kind::FRAMED_IPV6_PREFIX, Value::Ipv6Prefix(prefix)),
            admin_reset,
        ),
        ((Kind::FRAMED_POOL, "nowhere".into()), nas_error),
        ((Kind::FILTER_ID, "walled".into()), admin_reset),
        ((Kind::FILTER_ID, "nowhere".into()), nas_error),
        (rate_limit, nas_error),
    ] {
        let mut w = answered(&[]);
        w.radius.accept = vec![answer.clone(), mtu(1400)];
        assert_eq!(change(&mut w, &[user(0), only(), state(9)]), nak(507));
        w.run(10 * SECOND);
        assert_eq!(w.online(), 0, "{answer:?}");
        let stop = w.radius.records.last().unwrap();
        assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), cause);
        w.assert_balanced();
    }
    // its own it keeps
    let mut w = answered(&[]);
    let own: IpNet = format!("{}/32", w.sessions()[0].ipv4.clone().unwrap())
        .parse()
        .unwrap();
    let IpNet::V4(own) = own else { panic!() };
    let fixed = (Kind::FRAMED_IP_ADDRESS, Value::Ipv4(own.addr()));
    w.radius.accept = vec![fixed, (Kind::FRAMED_POOL, "homes".into()), mtu(1400)];
    assert_eq!(change(&mut w, &[user(0), only(), state(9)]), nak(507));
    w.run(10 * SECOND);
    assert_eq!((w.online(), settings(&w, 0).mtu), (1, Some(1400)));
}

/// Some of the link's prefixes go, others come, and the session stays.
#[test]
fn a_new_answer_may_have_other_prefixes_beside_one_of_before() {
    let links = |w: &World| ipv6(w, 0);
    let mut w = answered(&[link(1), link(2)]);
    let id = w.sessions().remove(0).id;
    let ask = |w: &mut World, n: u8, answer: &[(Kind, Value)]| {
        w.radius.accept = answer.to_vec();
        let bytes = request(Code::COA_REQUEST, n, &[user(0), only(), state(9)]);
        w.order("192.0.2.9", &bytes);
        w.run(10 * SECOND);
    };
    let first = w.homes[0].ipv6().unwrap().segments()[3];
    assert_eq!((first, links(&w)), (1, vec![prefix(1), prefix(2)]));

    // one that cannot be a link's is named, as at the beginning
    let odd = radius::link("2001:db8:8::/56");
    ask(&mut w, 1, &[link(3), link(2), odd]);
    assert_eq!(links(&w), [prefix(2), prefix(3)]);
    let moved = w.homes[0].ipv6().unwrap().segments()[3];
    assert_eq!(moved, 2, "the Router Advertisement withdraws the first");
    let recorded = w.radius.records.last().unwrap();
    assert_eq!(recorded.all(Kind::FRAMED_IPV6_PREFIX).count(), 2);
    w.assert_balanced();

    w.restart_control_plane();
    w.run(10 * SECOND);
    ask(&mut w, 2, &[]);
    assert_eq!(links(&w), [prefix(2), prefix(3)], "they stay");
    ask(&mut w, 3, &[link(2)]);
    assert_eq!(links(&w), [prefix(2)]);
    assert_eq!(w.sessions().remove(0).id, id, "the same session");
    w.assert_balanced();

    // nothing of what it has: it connects again
    ask(&mut w, 4, &[link(1)]);
    assert_eq!(w.online(), 0);
    w.assert_balanced();
}

/// What lies inside a prefix of the link goes with it. Otherwise the next subscriber of that prefix would share it.
#[test]
fn an_address_inside_a_withdrawn_prefix_goes_with_it() {
    let address = (
        Kind::FRAMED_IPV6_ADDRESS,
        Value::Ipv6("2001:db8:9:1::5".parse().unwrap()),
    );
    let inner = route("2001:db8:9:1:7::/80");
    for (again, online, left) in [
        (vec![link(2)], 1, vec!["2001:db8:9:2::/64"]),
        (vec![link(2), address.clone()], 0, vec![]),
        (vec![link(2), inner.clone()], 0, vec![]),
    ] {
        let mut w = answered(&[link(1), link(2), address.clone(), inner.clone()]);
        assert_eq!(ipv6(&w, 0).len(), 4);
        w.radius.accept = again.clone();
        assert_eq!(change(&mut w, &[user(0), only(), state(9)]), nak(507));
        w.run(10 * SECOND);
        assert_eq!(w.online(), online, "{again:?}");
        if online == 1 {
            assert_eq!(ipv6(&w, 0), left);
        } else {
            let stop = w.radius.records.last().unwrap();
            assert_eq!(number(stop, Kind::ACCT_TERMINATE_CAUSE), 6, "Admin-Reset");
        }
        w.assert_balanced();
    }
}

#[test]
fn prefixes_that_the_user_plane_rejects_or_does_not_confirm_are_free_again() {
    let mut w = answered(&[link(1)]);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), only(), state(9)]);
    w.radius.accept = vec![link(1), link(2), link(3)];
    w.up.silent_about_changes = true;
    w.order("192.0.2.9", &bytes);
    w.run(60 * SECOND);
    assert!(w.plane.ledger().is_balanced(), "also while it is under way");
    w.up.silent_about_changes = false;
    w.run(60 * SECOND);
    let told = w.up.subscribers()[0].forwarding.bindings.clone();
    assert_eq!(told.iter().filter(|b| !b.is_ipv4()).count(), 3);
    w.up.least_mtu = 1450;
    w.radius.accept = vec![link(1), link(4), mtu(1300)];
    let bytes = request(Code::COA_REQUEST, 2, &[user(0), only(), state(9)]);
    w.order("192.0.2.9", &bytes);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0, "as if it had connected with it");
    w.assert_balanced();
}

#[test]
fn an_answer_waits_for_a_user_plane_that_is_away() {
    let mut w = answered(&[]);
    w.cut = true;
    w.run(60 * SECOND);
    w.radius.accept = vec![mtu(1400), route("203.0.113.0/29")];
    let ask = [user(0), only(), state(9)];
    assert_eq!(change(&mut w, &ask), nak(507));
    w.run(SECOND);
    w.cut = false;
    w.run(60 * SECOND);
    assert_eq!(settings(&w, 0).mtu, Some(1400));
    assert_eq!(routes(&w, 0), ["203.0.113.0/29"]);
}

#[test]
fn an_answer_whose_fate_is_unknown_is_applied_again_and_one_that_is_rejected_ends_the_session() {
    let mut w = answered(&[route("203.0.113.0/29")]);
    let ask = |w: &mut World, n: u8| {
        let bytes = request(Code::COA_REQUEST, n, &[user(0), only(), state(9)]);
        w.order("192.0.2.9", &bytes);
    };
    w.radius.accept = vec![mtu(1300), route("203.0.113.8/29")];
    w.up.silent_about_changes = true;
    ask(&mut w, 1);
    w.run(60 * SECOND);
    w.up.silent_about_changes = false;
    w.run(60 * SECOND);
    assert_eq!((w.online(), settings(&w, 0).mtu), (1, Some(1300)));
    assert_eq!(routes(&w, 0), ["203.0.113.8/29"]);
    w.assert_balanced();

    // as if the subscriber had connected with it
    w.radius.accept = vec![mtu(1200)];
    w.up.least_mtu = 1280;
    ask(&mut w, 2);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    w.assert_balanced();
}

#[test]
fn a_change_and_a_new_answer_are_carried_out_in_order() {
    let mut w = answered(&[]);
    w.radius.accept = vec![timeout(900)];
    w.be_late();
    w.order(
        "192.0.2.9",
        &request(Code::COA_REQUEST, 1, &[user(0), mtu(1400)]),
    );
    w.order(
        "192.0.2.9",
        &request(Code::COA_REQUEST, 2, &[user(0), only(), state(9)]),
    );
    w.answer_late();
    w.run(SECOND);
    w.obeyed.clear();
    assert_eq!(
        settings(&w, 0).mtu,
        Some(1492),
        "the answer comes later and says nothing of it"
    );
    assert_eq!(change(&mut w, &[user(0), mtu(1300)]), ACK);
    assert_eq!(settings(&w, 0).mtu, Some(1300));
}

/// A subscriber of one address family gets nothing of the other one, whatever RADIUS says later.
#[test]
fn neither_a_new_answer_nor_a_change_gives_anything_of_an_address_family_that_is_not_offered() {
    let routes = [route("203.0.113.0/29"), route("2001:db8:a::/48")];
    for (families, has_ipv4) in [("ipv4-only", true), ("ipv6-only", false)] {
        let mut w = answered(&[]);
        w.hang_up(0);
        w.run(10 * SECOND);
        let line = format!("set subscriber-profiles home address-families {families}");
        w.configure(&[&line]).unwrap();
        w.radius.accept = [&[link(1)][..], &routes].concat();
        w.dial(0);
        w.run(10 * SECOND);
        let is_one = |w: &World| {
            let bindings = &w.up.subscribers()[0].forwarding.bindings;
            bindings.iter().count() == 2 && bindings.iter().all(|b| b.is_ipv4() == has_ipv4)
        };
        assert!(is_one(&w));
        assert_eq!(change(&mut w, &[user(0), only(), state(9)]), nak(507));
        w.run(10 * SECOND);
        assert!(w.online() == 1 && is_one(&w), "{families}");
        let [own, other] = match has_ipv4 {
            true => [&routes[0], &routes[1]],
            false => [&routes[1], &routes[0]],
        };
        let asked =
            |route: &(Kind, Value)| request(Code::COA_REQUEST, 2, &[user(0), route.clone()]);
        w.order("192.0.2.9", &asked(other));
        assert_eq!(w.obeyed.pop_front().unwrap()[0], Code::COA_NAK.0);
        w.order("192.0.2.9", &asked(own));
        assert!(is_one(&w), "{families}");
        w.assert_balanced();
    }
}

/// Local users have no server that could be asked.
#[test]
fn a_session_of_a_local_user_has_no_server_to_ask() {
    let mut w = World::new(1, crate::world::Choice::default());
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
    ])
    .unwrap();
    w.dial_all();
    assert_eq!(change(&mut w, &[user(0), only(), state(9)]), nak(405));
    assert_eq!(w.online(), 1);
}

/// By the fallback, what the user's entry says counts, also when it changes.
#[test]
fn at_its_timeout_a_session_may_go_on_as_a_local_users() {
    let mut w = world(1);
    w.configure(&[
        "set access-profiles pppoe fallback local-users",
        "set users home0 password secret0",
        "set users home0 mtu 1300",
    ])
    .unwrap();
    w.hang_up(0);
    w.run(10 * SECOND);
    w.radius.accept = vec![timeout(600), again(), mtu(1400)];
    w.dial(0);
    w.run(500 * SECOND);
    assert_eq!(settings(&w, 0).mtu, Some(1400));
    w.radius.dead = true;
    w.run(200 * SECOND);
    assert_eq!((w.online(), settings(&w, 0).mtu), (1, Some(1300)));
    assert_eq!(w.count(Counter::FallbackLocalUsers), 1);
    w.configure(&["set users home0 mtu 1280"]).unwrap();
    w.run(10 * SECOND);
    assert_eq!(settings(&w, 0).mtu, Some(1280));
    w.assert_balanced();
}
