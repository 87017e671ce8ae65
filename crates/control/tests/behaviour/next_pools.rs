//! Pools in a CoA-Request: the session keeps its addresses, and the pools count from the subscriber's next connection on.

use crate::dynamic::{ACK, change, history, mtu, nak, request, user, world as dynamic_world};
use crate::world::World;
use control::counters::Counter;
use core::time::Duration;
use cpe::{Home, HomeConfig};
use wire::radius::{Code, Kind, Value, values};

const SECOND: Duration = Duration::from_secs(1);
const WALLED: [bool; 2] = [true; 2];
const FREE: [bool; 2] = [false; 2];

/// A world with a second pool of each family, into which only AAA lets a subscriber.
fn world(homes: usize) -> World {
    let mut w = dynamic_world(homes);
    w.configure(&[
        "set ipv4-pools walled prefix 100.127.0.0/24",
        "set ipv6-pools walled6 prefix 2001:db8:f000::/48",
        "set ipv4-pools red prefix 10.1.0.0/24",
        "set ipv4-pools red network-instance red",
        "set subscriber-profiles home ipv4-pools homes",
        "set subscriber-profiles home ipv6-pools homes",
    ])
    .unwrap();
    w
}

fn pool(name: &str) -> (Kind, Value) {
    (Kind::FRAMED_POOL, name.into())
}

fn pool6(name: &str) -> (Kind, Value) {
    (Kind::FRAMED_IPV6_POOL, name.into())
}

/// IPv4 address and IPv6 prefix of a home.
pub fn addresses(w: &mut World, n: usize) -> (Option<String>, Option<String>) {
    let name = format!("home{n}");
    let mut sessions = w.sessions().into_iter();
    let own = sessions.find(|session| session.user == name).unwrap();
    (own.ipv4, own.ipv6_prefix)
}

/// Whether these are of the pools into which only AAA lets a subscriber.
pub fn is_walled(w: &mut World, n: usize) -> [bool; 2] {
    let (ipv4, ipv6) = addresses(w, n);
    [
        ipv4.unwrap().starts_with("100.127.0."),
        ipv6.unwrap().starts_with("2001:db8:f000:"),
    ]
}

fn to_come(w: &mut World) -> Vec<String> {
    w.sessions().remove(0).next_connection
}

fn reconnect(w: &mut World, n: usize) {
    w.hang_up(n);
    w.run(10 * SECOND);
    w.dial(n);
    w.run(10 * SECOND);
    assert_eq!(w.online(), w.homes.len());
}

fn stored(w: &World) -> usize {
    let keys = w.store.keys();
    keys.filter(|key| key.starts_with(b"next-pools/")).count()
}

fn walled(w: &mut World, n: usize) {
    assert_eq!(change(w, &[user(n), pool("walled"), pool6("walled6")]), ACK);
}

#[test]
fn a_session_keeps_its_addresses_and_its_subscriber_gets_others_when_it_connects_again() {
    let mut w = world(2);
    let before = addresses(&mut w, 0);
    walled(&mut w, 0);
    w.run(60 * SECOND);
    assert_eq!((w.online(), addresses(&mut w, 0)), (2, before));
    let shown = ["IPv4 pool walled", "IPv6 pool walled6"];
    assert_eq!(to_come(&mut w), shown);
    assert_eq!(
        history(&w),
        [
            "RADIUS server 192.0.2.9: IPv4 pool walled from the next connection; IPv6 pool walled6 from the next connection"
        ]
    );

    for _ in 0..2 {
        reconnect(&mut w, 0);
        assert_eq!(is_walled(&mut w, 0), WALLED);
        assert!(w.sessions().iter().all(|s| s.next_connection.is_empty()));
    }
    reconnect(&mut w, 1);
    assert_eq!(is_walled(&mut w, 1), FREE, "nobody has changed its pools");
    w.assert_balanced();

    // paid meanwhile, of one family
    assert_eq!(change(&mut w, &[user(0), pool("homes")]), ACK);
    reconnect(&mut w, 0);
    assert_eq!(is_walled(&mut w, 0), [false, true]);
}

#[test]
fn pools_of_delegated_prefixes_and_router_addresses_count_from_the_next_connection_too() {
    let mut w = world(1);
    w.configure(&[
        "set ipv6-pools lans prefix 2001:db8:4000::/36",
        "set ipv6-pools lans prefix-length 56",
        "set ipv6-pools others prefix 2001:db8:6000::/36",
        "set ipv6-pools others prefix-length 56",
        "set ipv6-pools routers prefix 2001:db8:5000::/64",
        "set ipv6-pools routers prefix-length 128",
        "set subscriber-profiles home delegated-pools lans",
    ])
    .unwrap();
    let delegated = |name: &str| (Kind::DELEGATED_IPV6_PREFIX_POOL, name.into());
    let address = |name: &str| (Kind::STATEFUL_IPV6_ADDRESS_POOL, name.into());
    let has = |w: &World, expected: [&str; 2]| {
        let bindings = w.up.subscribers()[0].forwarding.bindings.clone();
        let address = bindings.ipv6_address().map(|own| own.to_string());
        let delegated: Vec<String> = bindings.delegated().map(|own| own.to_string()).collect();
        let own = [address.unwrap_or_default(), delegated.join(" ")];
        assert_eq!(own, expected);
    };
    reconnect(&mut w, 0);
    has(&w, ["", "2001:db8:4000::/56"]);
    let both = [user(0), delegated("others"), address("routers")];
    assert_eq!(change(&mut w, &both), ACK);
    has(&w, ["", "2001:db8:4000::/56"]);
    w.restart_control_plane();
    w.run(5 * SECOND);
    let shown = ["delegated pool others", "IPv6 address pool routers"];
    assert_eq!(to_come(&mut w), shown);
    reconnect(&mut w, 0);
    has(&w, ["2001:db8:5000::", "2001:db8:6000::/56"]);
    assert!(to_come(&mut w).is_empty());

    let invalid = nak(values::ERROR_CAUSE_INVALID_ATTRIBUTE_VALUE);
    assert_eq!(change(&mut w, &[user(0), delegated("routers")]), invalid);
    assert_eq!(change(&mut w, &[user(0), address("lans")]), invalid);
    // an answer that says something of it is newer
    let prefix = Value::Ipv6Prefix("2001:db8:9900::/48".parse().unwrap());
    w.radius.accept = vec![(Kind::DELEGATED_IPV6_PREFIX, prefix)];
    reconnect(&mut w, 0);
    has(&w, ["2001:db8:5000::", "2001:db8:9900::/48"]);
    w.radius.accept.clear();
    reconnect(&mut w, 0);
    has(&w, ["2001:db8:5000::", "2001:db8:4000::/56"]);
    w.assert_balanced();
}

#[test]
fn changed_pools_are_acknowledged_when_they_are_durable_and_survive_the_control_plane() {
    let mut w = world(1);
    let bytes = request(
        Code::COA_REQUEST,
        1,
        &[user(0), pool("walled"), pool6("walled6")],
    );
    w.stall_disk();
    w.order("192.0.2.9", &bytes);
    assert!(w.obeyed.is_empty(), "it is not durable");
    w.disk_recovers();
    assert_eq!(w.obeyed.pop_front().map(|b| b[0]), Some(Code::COA_ACK.0));
    w.restart_control_plane();
    w.run(5 * SECOND);
    assert_eq!(to_come(&mut w), ["IPv4 pool walled", "IPv6 pool walled6"]);
    w.hang_up(0);
    w.run(10 * SECOND);
    w.restart_control_plane();
    w.run(5 * SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(is_walled(&mut w, 0), WALLED);
}

#[test]
fn an_answer_that_names_a_pool_or_an_address_is_newer() {
    let address = Value::Ipv4([203, 0, 113, 7].into());
    for said in [pool("homes"), (Kind::FRAMED_IP_ADDRESS, address)] {
        let mut w = world(1);
        walled(&mut w, 0);
        w.radius.accept = vec![said];
        reconnect(&mut w, 0);
        assert_eq!(is_walled(&mut w, 0), [false, true]);
        // it has said so, and what was changed before is over
        w.radius.accept.clear();
        reconnect(&mut w, 0);
        assert_eq!(is_walled(&mut w, 0), [false, true]);
        w.radius.accept = vec![pool6("homes")];
        reconnect(&mut w, 0);
        assert_eq!((is_walled(&mut w, 0), stored(&w)), (FREE, 0));
    }
}

#[test]
fn a_pool_that_the_network_instance_does_not_have_changes_nothing() {
    let mut w = world(1);
    let invalid = nak(values::ERROR_CAUSE_INVALID_ATTRIBUTE_VALUE);
    for other in [
        pool("nowhere"),
        pool("walled6"),
        pool("red"),
        pool6("walled"),
    ] {
        let attributes = [user(0), mtu(1400), pool6("walled6"), other];
        assert_eq!(change(&mut w, &attributes), invalid, "{attributes:?}");
    }
    let twice = [user(0), pool("walled"), pool("homes")];
    assert_eq!(change(&mut w, &twice), invalid);
    let only = [user(0), mtu(1400), pool("walled"), pool("nowhere")];
    assert_eq!(change(&mut w, &only), invalid);
    assert_eq!((stored(&w), history(&w)), (0, Vec::new()));
    reconnect(&mut w, 0);
    assert_eq!(is_walled(&mut w, 0), FREE);
}

#[test]
fn a_subscriber_that_negotiates_ppp_anew_gets_addresses_as_if_it_had_connected() {
    let mut w = world(1);
    let session = w.sessions().remove(0).id;
    walled(&mut w, 0);
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(is_walled(&mut w, 0), WALLED);
    assert_eq!(w.sessions().remove(0).id, session);
    w.assert_balanced();
}

/// The user plane keeps the earlier session, so that its addresses do not become free.
#[test]
fn a_router_that_reboots_does_not_wait_for_addresses_of_which_its_pools_are_others() {
    for by_change in [true, false] {
        let mut w = world(1);
        match by_change {
            true => walled(&mut w, 0),
            false => w.radius.accept = vec![pool("walled"), pool6("walled6")],
        }
        w.up.keeps_all = true;
        w.switch_off_and_on(0);
        w.dial(0);
        w.run(3 * SECOND);
        assert_eq!(w.online(), 1, "{by_change}");
        let ipv4 = w.homes[0].ipv4().unwrap().to_string();
        assert!(ipv4.starts_with("100.127.0."), "{ipv4}");
    }
}

#[test]
fn a_session_that_is_authorized_anew_stays_and_its_next_connection_is_changed() {
    let mut w = world(1);
    let before = addresses(&mut w, 0);
    walled(&mut w, 0);
    let only = (
        Kind::SERVICE_TYPE,
        values::SERVICE_TYPE_AUTHORIZE_ONLY.into(),
    );
    let state = (Kind::STATE, Value::Octets(vec![7; 8]));
    change(&mut w, &[user(0), only, state]);
    w.run(5 * SECOND);
    assert_eq!((w.online(), addresses(&mut w, 0)), (1, before));
    reconnect(&mut w, 0);
    assert_eq!(is_walled(&mut w, 0), WALLED);
}

#[test]
fn who_is_disconnected_by_radius_is_for_the_server_to_decide_about() {
    let mut w = world(1);
    walled(&mut w, 0);
    assert_eq!(stored(&w), 1);
    w.order(
        "192.0.2.9",
        &request(Code::DISCONNECT_REQUEST, 2, &[user(0)]),
    );
    w.run(10 * SECOND);
    assert_eq!(stored(&w), 0);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(is_walled(&mut w, 0), FREE);
}

#[test]
fn neither_a_wrong_password_nor_another_router_undoes_the_change() {
    let mut w = world(1);
    walled(&mut w, 0);
    w.hang_up(0);
    w.run(10 * SECOND);
    w.radius.rejects = true;
    w.dial(0);
    w.run(30 * SECOND);
    assert_eq!(w.online(), 0);
    w.radius.rejects = false;
    let other = HomeConfig {
        mac: [2, 9, 9, 9, 9, 9].into(),
        ..w.homes[0].config().clone()
    };
    w.homes[0] = Home::new(other, 9);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(is_walled(&mut w, 0), WALLED);
}

#[test]
fn changed_pools_hold_while_no_server_answers() {
    let mut w = world(1);
    w.configure(&["set access-profiles pppoe fallback last-policy"])
        .unwrap();
    w.radius.accept = vec![pool("homes"), pool6("homes")];
    reconnect(&mut w, 0);
    walled(&mut w, 0);
    w.radius.dead = true;
    w.hang_up(0);
    w.run(10 * SECOND);
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!((w.online(), is_walled(&mut w, 0)), (1, WALLED));
    w.radius.dead = false;
    w.run(120 * SECOND);
    reconnect(&mut w, 0);
    assert_eq!(is_walled(&mut w, 0), FREE, "the server names other pools");
}

#[test]
fn changed_pools_are_bounded() {
    let mut w = world(3);
    (0..3).for_each(|n| walled(&mut w, n));
    assert_eq!((stored(&w), w.count(Counter::NextPoolsFull)), (3, 0));
    for n in 0..3 {
        w.hang_up(n);
    }
    w.run(30 * SECOND);
    w.configure(&["set limits sessions 2"]).unwrap();
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!((stored(&w), w.count(Counter::NextPoolsFull)), (2, 1));
    assert_eq!(is_walled(&mut w, 0), WALLED, "it was used last");
}

#[test]
fn a_changed_pool_that_is_removed_locks_nobody_out() {
    let mut w = world(1);
    walled(&mut w, 0);
    w.configure(&["delete ipv4-pools walled"]).unwrap();
    reconnect(&mut w, 0);
    assert_eq!(is_walled(&mut w, 0), [false, true]);
    assert_eq!(w.count(Counter::NextPoolGone), 1);
    reconnect(&mut w, 0);
    assert_eq!(w.count(Counter::NextPoolGone), 1, "it is forgotten");
}

#[test]
fn a_vendors_attribute_names_a_pool_as_it_does_at_the_start() {
    let mut w = world(1);
    // Cisco-AVPair
    let text = b"ip:addr-pool=walled";
    let mut specific = vec![0, 0, 0, 9, 1, 2 + text.len() as u8];
    specific.extend(text);
    let named = (Kind::VENDOR_SPECIFIC, Value::Octets(specific));
    assert_eq!(change(&mut w, &[user(0), named]), ACK);
    reconnect(&mut w, 0);
    assert_eq!(is_walled(&mut w, 0), [true, false]);
}

#[test]
fn the_change_is_of_the_line_or_of_the_user_name_as_the_access_profile_says() {
    for (identity, on_other_line) in [("user-name", WALLED), ("line", FREE)] {
        let mut w = world(1);
        let set = format!("set access-profiles pppoe subscriber-identity {identity}");
        w.configure(&[&set]).unwrap();
        reconnect(&mut w, 0);
        walled(&mut w, 0);
        w.hang_up(0);
        w.run(10 * SECOND);
        let own = w.homes[0].config().clone();
        let other = HomeConfig::new(own.mac, 100, 77, "home0", "secret0");
        w.homes[0] = Home::new(other, 9);
        w.dial(0);
        w.run(10 * SECOND);
        assert_eq!(is_walled(&mut w, 0), on_other_line, "{identity}");
    }
}
