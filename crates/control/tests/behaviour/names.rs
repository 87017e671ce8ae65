//! Names in RADIUS requests, as the templates of the server group write them: the same in every request about a session, and those by
//! which servers name it.

use crate::world::{Choice, World};
use core::time::Duration;
use northbound::{Password, Request, Response};
use wire::pppoe::AccessLine;
use wire::radius::{Code, Kind, Packet, Value};

const SECOND: Duration = Duration::from_secs(1);
const TEMPLATES: [&str; 4] = [
    "set aaa server-groups radius templates user-name {user}@isp.example",
    "set aaa server-groups radius templates nas-port-id \"{node} {user-plane} {port}:{svlan}.{cvlan}\"",
    "set aaa server-groups radius templates calling-station-id {circuit-id}",
    "set aaa server-groups radius templates called-station-id {service}",
];
/// The names that they write for the first home.
const NAMES: [Option<&str>; 4] = [
    Some("home0@isp.example"),
    Some("cp1 up1 access0:100.1"),
    Some("olt1 1/2/3"),
    Some("internet"),
];

/// A world whose first home has a circuit id and asks for a service.
fn world() -> World {
    let mut w = World::new(1, Choice::radius());
    let mut config = w.homes[0].config().clone();
    let line = AccessLine {
        circuit_id: Some(b"olt1 1/2/3"),
        ..AccessLine::default()
    };
    line.emit(&mut config.access_line);
    config.service = "internet".into();
    w.homes[0] = cpe::Home::new(config, 7);
    w.configure(&TEMPLATES).unwrap();
    w
}

/// User-Name, NAS-Port-Id, Calling-Station-Id and Called-Station-Id of a request.
fn names(packet: &Packet) -> [Option<String>; 4] {
    let kinds = [
        Kind::USER_NAME,
        Kind::NAS_PORT_ID,
        Kind::CALLING_STATION_ID,
        Kind::CALLED_STATION_ID,
    ];
    kinds.map(|kind| match packet.get(kind)? {
        Value::Text(text) => Some(text.clone()),
        Value::Octets(octets) => Some(octets.escape_ascii().to_string()),
        other => panic!("{other:?}"),
    })
}

fn is_named(packet: &Packet, expected: [Option<&str>; 4]) {
    assert_eq!(names(packet).each_ref().map(Option::as_deref), expected);
}

#[test]
fn a_session_has_the_same_names_in_all_its_requests() {
    let mut w = world();
    w.dial_all();
    is_named(&w.radius.requests[0], NAMES);
    w.configure(&[
        "delete aaa server-groups radius templates",
        "set aaa server-groups radius interim-interval 60",
    ])
    .unwrap();
    w.begin_ppp_anew(0);
    w.run(10 * SECOND);
    assert_eq!(w.radius.requests.len(), 2, "it authenticated again");
    is_named(&w.radius.requests[1], NAMES);
    w.restart_control_plane();
    w.run(90 * SECOND);
    w.hang_up(0);
    w.run(SECOND);
    assert_eq!(w.radius.kinds(), [1, 3, 2]);
    (w.radius.records.iter()).for_each(|record| is_named(record, NAMES));

    // the next session has those of the configuration of now
    w.dial_all();
    let defaults = [
        Some("home0"),
        Some("up1/access0.100.1"),
        Some("02:00:00:00:00:00"),
        Some("internet"), // the service that it asked for
    ];
    is_named(&w.radius.requests[2], defaults);
}

#[test]
fn what_comes_out_empty_is_left_out_and_the_user_name_is_that_of_the_peer() {
    let mut w = World::new(1, Choice::radius());
    w.configure(&[
        "set aaa server-groups radius templates user-name {realm}",
        "set aaa server-groups radius templates nas-port-id {remote-id}",
        "set aaa server-groups radius templates calling-station-id {circuit-id}",
    ])
    .unwrap();
    w.dial_all();
    is_named(&w.radius.requests[0], [Some("home0"), None, None, None]);
    is_named(&w.radius.records[0], [Some("home0"), None, None, None]);
}

#[test]
fn a_server_finds_a_session_by_the_names_that_it_was_sent() {
    let mut w = world();
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
    ])
    .unwrap();
    w.dial_all();
    let kinds = [Kind::USER_NAME, Kind::NAS_PORT_ID, Kind::CALLING_STATION_ID];
    let own = ["home0", "up1/access0.100.1", "02:00:00:00:00:00"];
    for (n, kind) in kinds.into_iter().enumerate() {
        let asks = |w: &mut World, name: &str, identifier: usize| {
            let mut packet = Packet::new(Code::COA_REQUEST, identifier as u8, [0; 16]);
            match kind {
                Kind::USER_NAME => packet.push(kind, name.as_bytes()),
                _ => packet.push(kind, name),
            }
            packet.push(Kind::FRAMED_MTU, 1400);
            let bytes = packet.emit_dynamic_request(b"coa-secret").unwrap();
            w.order("192.0.2.9", &bytes);
            Code(w.obeyed.pop_front().unwrap()[0])
        };
        let sent = NAMES[n].unwrap();
        assert_eq!(asks(&mut w, own[n], 2 * n), Code::COA_NAK, "{kind:?}");
        assert_eq!(asks(&mut w, sent, 2 * n + 1), Code::COA_ACK, "{kind:?}");
    }
}

#[test]
fn a_local_user_is_found_by_the_name_that_the_subscriber_sent() {
    let mut w = world();
    w.configure(&[
        "set access-profiles pppoe fallback local-users",
        "set users home0 password secret0",
    ])
    .unwrap();
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(w.online(), 1);
    w.radius.dead = false;
    w.run(120 * SECOND);
    is_named(&w.radius.records[0], NAMES);
}

#[test]
fn a_test_of_aaa_sends_what_a_session_would() {
    let mut w = world();
    let test = Request::TestAaa {
        user: "alice@home".into(),
        password: Password("secret".into()),
        access_profile: String::new(),
    };
    match w.call(test) {
        Ok(Response::AaaTested(tested)) => assert!(tested.accepted),
        other => panic!("{other:?}"),
    }
    let expected = [Some("alice@isp.example"), Some("cp1  test:."), None, None];
    is_named(&w.radius.requests[0], expected);
}

#[test]
fn a_template_with_an_unknown_variable_is_refused() {
    let mut w = world();
    let faults = w
        .configure(&["set aaa server-groups radius templates user-name {usr}"])
        .unwrap_err();
    let why =
        "`{usr}` is not a variable of templates: expected one of user-name, user, realm, mac,";
    assert!(faults[0].message.contains(why), "{faults:?}");
}
