//! Accounting records have what the session has at that time, and a change of it is recorded at once.

use crate::world::radius::number;
use crate::world::{Choice, World};
use core::time::Duration;
use wire::radius::{Code, Kind, Packet, Value};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const START: u32 = 1;
const STOP: u32 = 2;
const INTERIM: u32 = 3;

/// A home with a route, whom a RADIUS server may change.
fn world() -> World {
    let mut w = World::new(1, Choice::radius());
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
        "set subscriber-profiles gold rate-down 100000",
    ])
    .unwrap();
    w.radius.accept = vec![
        (Kind::FILTER_ID, "gold".into()),
        (Kind::FRAMED_ROUTE, "198.18.1.0/24".into()),
        (Kind::FRAMED_IPV6_ROUTE, "2001:db8:a::/48".into()),
    ];
    w
}

/// The server replaces the route of the only home.
fn change_route(w: &mut World, identifier: u8, route: &str) {
    let mut packet = Packet::new(Code::COA_REQUEST, identifier, [0; 16]);
    packet.push(Kind::USER_NAME, b"home0");
    packet.push(Kind::FRAMED_ROUTE, route);
    let bytes = packet.emit_dynamic_request(b"coa-secret").unwrap();
    w.order("192.0.2.9", &bytes);
    w.settle();
}

/// The texts of an attribute in each record.
fn texts(w: &World, kind: Kind) -> Vec<Vec<String>> {
    let text = |value: &Value| String::from_utf8_lossy(value.octets().unwrap()).into_owned();
    let of = |record: &Packet| record.all(kind).map(text).collect();
    w.radius.records.iter().map(of).collect()
}

#[test]
fn a_change_of_the_routes_is_recorded_at_once() {
    let mut w = world();
    w.dial_all();
    assert_eq!(w.radius.kinds(), [START]);
    change_route(&mut w, 1, "198.18.2.0/24");
    assert_eq!(w.radius.kinds(), [START, INTERIM]);
    change_route(&mut w, 2, "198.18.2.0/24");
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, INTERIM], "nothing has changed");
    w.hang_up(0);
    w.run(SECOND);
    assert_eq!(w.radius.kinds(), [START, INTERIM, STOP]);
    let routes = texts(&w, Kind::FRAMED_ROUTE);
    let [before, now] = ["198.18.1.0/24 0.0.0.0 1", "198.18.2.0/24 0.0.0.0 1"];
    assert_eq!(routes, [[before], [now], [now]]);
    let routes = texts(&w, Kind::FRAMED_IPV6_ROUTE);
    assert_eq!(routes, [["2001:db8:a::/48 :: 1"]; 3]);
    assert_eq!(texts(&w, Kind::FILTER_ID), [["gold"]; 3]);
    let octets = number(&w.radius.records[1], Kind::ACCT_INPUT_OCTETS);
    assert_eq!(octets, 1000, "the user plane was asked");
}

#[test]
fn a_record_has_the_metric_that_the_server_gave_and_another_one_is_recorded_at_once() {
    let mut w = world();
    w.radius.accept[1].1 = "198.18.1.0/24 0.0.0.0 5".into();
    w.dial_all();
    assert_eq!(w.sessions()[0].routes[0], "198.18.1.0/24 metric 5");
    change_route(&mut w, 1, "198.18.1.0/24 198.18.1.1 9 10");
    change_route(&mut w, 2, "198.18.1.0/24 0.0.0.0 9");
    w.restart_control_plane();
    w.run(MINUTE);
    w.restart_user_plane();
    w.run(MINUTE);
    let told = &w.up.subscribers()[0].forwarding.bindings;
    let metrics: Vec<Option<u32>> = told.others().map(|route| route.metric).collect();
    assert_eq!(metrics, [Some(9), None], "the store has it");
    w.hang_up(0);
    w.run(SECOND);
    assert_eq!(w.radius.kinds(), [START, INTERIM, STOP]);
    let routes = texts(&w, Kind::FRAMED_ROUTE);
    let [before, now] = ["198.18.1.0/24 0.0.0.0 5", "198.18.1.0/24 0.0.0.0 9"];
    assert_eq!(routes, [[before], [now], [now]]);
    w.assert_balanced();
}

#[test]
fn a_change_while_the_start_is_on_its_way_is_recorded_behind_it() {
    let mut w = world();
    w.radius.full = true;
    w.dial_all();
    change_route(&mut w, 1, "198.18.2.0/24");
    w.run(SECOND);
    assert_eq!(w.radius.records.len(), 0);
    w.radius.full = false;
    w.run(2 * MINUTE);
    assert_eq!(w.radius.kinds(), [START, INTERIM]);
}

#[test]
fn another_address_of_a_subscriber_that_begins_ppp_anew_is_recorded_at_once() {
    let mut w = world();
    w.dial_all();
    let address = Value::Ipv4([198, 18, 0, 7].into());
    w.radius
        .accept
        .push((Kind::FRAMED_IP_ADDRESS, address.clone()));
    w.begin_ppp_anew(0);
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, INTERIM]);
    let recorded = w.radius.records[1].get(Kind::FRAMED_IP_ADDRESS);
    assert_eq!(recorded, Some(&address));
    w.begin_ppp_anew(0);
    w.run(MINUTE);
    assert_eq!(w.radius.kinds(), [START, INTERIM], "the same address");
}
