//! Requests of RADIUS servers that change and end sessions: who may ask, what is understood, and that a repetition changes nothing.

use aaa::{
    DynamicAuthorization, DynamicClient, DynamicConfig, DynamicOutcome, ErrorCause, Nas, Received,
    RequestKey, Requested, Secret, SessionIds,
};
use core::net::SocketAddr;
use core::time::Duration;
use policy::Rate;
use wire::radius::{Code, Kind, Missing, Packet, Value, values, verify_response};

const SECRET: &[u8] = b"testing123";
const NOW: Duration = Duration::from_secs(1000);
const UNIX: u32 = 1_800_000_000;

fn from() -> SocketAddr {
    "192.0.2.9:40000".parse().unwrap()
}

fn config() -> DynamicConfig {
    let client = |host: &str, require_message_authenticator| DynamicClient {
        address: host.parse().unwrap(),
        secret: Secret::new(SECRET),
        require_message_authenticator,
    };
    DynamicConfig {
        clients: vec![client("192.0.2.9", false), client("192.0.2.10", true)],
        gateways: vec![Nas {
            identifier: "bng1".into(),
            ipv4: Some([192, 0, 2, 1].into()),
            ipv6: None,
        }],
        time_window: Duration::from_secs(300),
        require_event_timestamp: false,
        ..DynamicConfig::default()
    }
}

fn server() -> DynamicAuthorization {
    let mut server = DynamicAuthorization::default();
    server.reconfigure(config());
    server
}

fn packet(code: Code, attributes: &[(Kind, Value)]) -> Packet {
    let mut packet = Packet::new(code, 7, [0; 16]);
    for (kind, value) in attributes {
        packet.push(*kind, value.clone());
    }
    packet
}

fn signed(code: Code, attributes: &[(Kind, Value)]) -> Vec<u8> {
    packet(code, attributes)
        .emit_dynamic_request(SECRET)
        .unwrap()
}

fn session() -> (Kind, Value) {
    (Kind::ACCT_SESSION_ID, "51".into())
}

fn handle(server: &mut DynamicAuthorization, bytes: &[u8]) -> Received {
    server.handle(NOW, UNIX, from(), bytes)
}

fn request(server: &mut DynamicAuthorization, bytes: &[u8]) -> (RequestKey, SessionIds, Requested) {
    match handle(server, bytes) {
        Received::Request(key, request) => (key, request.ids, request.requested),
        other => panic!("{other:?}"),
    }
}

/// An answer as the server that asked reads it.
fn read(request: &[u8], answer: &[u8]) -> Packet {
    let authenticator = request[4..20].try_into().unwrap();
    verify_response(answer, &authenticator, SECRET, Missing::Refuse).unwrap()
}

/// The Error-Cause with which a request is rejected at once.
fn cause(code: Code, attributes: &[(Kind, Value)]) -> u32 {
    let bytes = signed(code, attributes);
    let Received::Answer(answer) = handle(&mut server(), &bytes) else {
        panic!("it is not rejected");
    };
    let answer = read(&bytes, &answer);
    let nak = match code {
        Code::COA_REQUEST => Code::COA_NAK,
        _ => Code::DISCONNECT_NAK,
    };
    assert_eq!(answer.code, nak);
    match answer.get(Kind::ERROR_CAUSE) {
        Some(Value::Integer(cause)) => *cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_says_whom_and_what() {
    let attributes = [
        (Kind::NAS_IDENTIFIER, "bng1".into()),
        (Kind::NAS_IP_ADDRESS, Value::Ipv4([192, 0, 2, 1].into())),
        (Kind::USER_NAME, Value::Octets(b"alice".to_vec())),
        (Kind::FRAMED_IP_ADDRESS, Value::Ipv4([100, 64, 0, 7].into())),
        (Kind::CALLING_STATION_ID, "02:00:00:00:00:07".into()),
        session(),
        (Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED.into()),
        (Kind::FILTER_ID, "gold".into()),
        (Kind::SESSION_TIMEOUT, 0.into()),
    ];
    let (_, ids, requested) = request(&mut server(), &signed(Code::COA_REQUEST, &attributes));
    let expected = SessionIds {
        username: Some(b"alice".to_vec()),
        acct_session_id: Some("51".into()),
        framed_ip: Some([100, 64, 0, 7].into()),
        calling_station: Some("02:00:00:00:00:07".into()),
        ..SessionIds::default()
    };
    assert_eq!(ids, expected);
    let Requested::Change(change) = requested else {
        panic!("{requested:?}")
    };
    assert_eq!(change.filter_id.as_deref(), Some("gold"));
    assert_eq!(change.session_timeout, Some(Duration::ZERO), "no limit");
    assert_eq!(change.idle_timeout, None);

    let bytes = signed(Code::DISCONNECT_REQUEST, &attributes[..6]);
    let (_, ids, requested) = request(&mut server(), &bytes);
    assert_eq!((ids, requested), (expected, Requested::Disconnect));
}

#[test]
fn vendors_attributes_are_changes_too() {
    let specific = |octets: &[u8]| (Kind::VENDOR_SPECIFIC, Value::Octets(octets.to_vec()));
    // Mikrotik-Rate-Limit "2M/8M", and an attribute of a vendor that nobody knows
    let rate = specific(b"\x00\x00\x3a\x8c\x08\x072M/8M");
    let unknown = specific(b"\x00\x00\x7e\xd9\x01\x04ab");
    let bytes = signed(Code::COA_REQUEST, &[session(), rate.clone()]);
    let (_, _, requested) = request(&mut server(), &bytes);
    let Requested::Change(change) = requested else {
        panic!("{requested:?}")
    };
    assert_eq!(
        (change.rate_up, change.rate_down),
        (Rate::new(2000), Rate::new(8000))
    );
    let half = [session(), rate, unknown];
    assert_eq!(cause(Code::COA_REQUEST, &half), 401);
}

#[test]
fn the_answer_says_what_came_of_it_and_repeats_the_proxy_states() {
    let proxies = [
        (Kind::PROXY_STATE, Value::Octets(vec![1])),
        (Kind::PROXY_STATE, Value::Octets(vec![2, 3])),
    ];
    let attributes = [session(), proxies[0].clone(), proxies[1].clone()];
    for (outcome, code, cause) in [
        (DynamicOutcome::Done, Code::DISCONNECT_ACK, None),
        (
            DynamicOutcome::Rejected(ErrorCause::SessionContextNotFound),
            Code::DISCONNECT_NAK,
            Some(Value::Integer(503)),
        ),
    ] {
        let mut server = server();
        let bytes = signed(Code::DISCONNECT_REQUEST, &attributes);
        let (key, ..) = request(&mut server, &bytes);
        let (to, answer) = server.answer(key, outcome).unwrap();
        let answer = read(&bytes, &answer);
        assert_eq!((to, answer.code, answer.identifier), (from(), code, 7));
        assert_eq!(answer.get(Kind::ERROR_CAUSE), cause.as_ref());
        let states: Vec<_> = answer.all(Kind::PROXY_STATE).cloned().collect();
        assert_eq!(states, proxies.clone().map(|(_, state)| state));
    }
}

/// A request that could be carried out, but never be answered, is not carried out.
#[test]
fn every_request_that_is_taken_has_room_for_its_answer() {
    let taken = |last: usize| {
        let state = |len: usize| (Kind::PROXY_STATE, Value::Octets(vec![1; len]));
        let mut attributes = vec![session(), state(last)];
        attributes.extend((0..15).map(|_| state(253)));
        // without Message-Authenticator, which an answer has in any case
        let mut bytes = Vec::new();
        let unsigned = packet(Code::DISCONNECT_REQUEST, &attributes);
        unsigned.emit(&mut bytes).unwrap();
        wire::radius::sign_accounting_request(&mut bytes, SECRET);
        let mut server = server();
        let received = handle(&mut server, &bytes);
        let Received::Request(key, _) = received else {
            assert_eq!(received, Received::Nothing);
            assert_eq!(server.counters().unauthentic, 1);
            return false;
        };
        let outcome = DynamicOutcome::Rejected(ErrorCause::SessionContextNotFound);
        let (_, answer) = server.answer(key, outcome).expect("it has an answer");
        assert_eq!(read(&bytes, &answer).all(Kind::PROXY_STATE).count(), 16);
        true
    };
    // Error-Cause, Service-Type, Message-Authenticator
    let room = 4096 - 20 - 6 - 6 - 18 - 15 * 255 - 2;
    assert!(taken(room));
    assert!(!taken(room + 1));
}

/// RFC 5176 §3.2: the request for a new authorization has a State and no values, and is not acknowledged.
#[test]
fn a_server_may_ask_to_be_asked() {
    let only = (
        Kind::SERVICE_TYPE,
        values::SERVICE_TYPE_AUTHORIZE_ONLY.into(),
    );
    let state = (Kind::STATE, Value::Octets(vec![7; 9]));
    let mut server = server();
    let bytes = signed(Code::COA_REQUEST, &[session(), only.clone(), state.clone()]);
    let (key, ids, requested) = request(&mut server, &bytes);
    assert_eq!(ids.acct_session_id.as_deref(), Some("51"));
    assert_eq!(requested, Requested::Authorize { state: vec![7; 9] });
    let (_, answer) = server.answer(key, DynamicOutcome::Initiated).unwrap();
    let answer = read(&bytes, &answer);
    assert_eq!(answer.code, Code::COA_NAK);
    assert_eq!(answer.get(Kind::ERROR_CAUSE), Some(&Value::Integer(507)));
    assert_eq!(answer.get(Kind::SERVICE_TYPE), Some(&only.1));

    let with = |more: (Kind, Value)| [session(), only.clone(), more];
    let filter = (Kind::FILTER_ID, "gold".into());
    let empty = (Kind::STATE, Value::Octets(Vec::new()));
    assert_eq!(cause(Code::COA_REQUEST, &with(filter)), 401);
    assert_eq!(cause(Code::COA_REQUEST, &with(empty)), 402);
    assert_eq!(cause(Code::COA_REQUEST, &[session(), only.clone()]), 402);
    assert_eq!(
        cause(Code::COA_REQUEST, &[only.clone(), state.clone()]),
        402
    );
    assert_eq!(cause(Code::DISCONNECT_REQUEST, &with(state)), 405);
}

#[test]
fn what_cannot_be_authentic_gets_no_answer() {
    let mut server = server();
    let bytes = signed(Code::DISCONNECT_REQUEST, &[session()]);
    let stranger = "192.0.2.99:40000".parse().unwrap();
    let nothing = server.handle(NOW, UNIX, stranger, &bytes);
    assert_eq!(nothing, Received::Nothing);
    assert_eq!(server.counters().unknown_clients, 1);

    let other = packet(Code::DISCONNECT_REQUEST, &[session()]);
    let other = other.emit_dynamic_request(b"another secret").unwrap();
    assert_eq!(handle(&mut server, &other), Received::Nothing);
    let mut short = bytes.clone();
    short.truncate(19);
    assert_eq!(handle(&mut server, &short), Received::Nothing);

    // without Message-Authenticator: one client may, the other may not
    let mut plain = Vec::new();
    let unsigned = packet(Code::DISCONNECT_REQUEST, &[session()]);
    unsigned.emit(&mut plain).unwrap();
    wire::radius::sign_accounting_request(&mut plain, SECRET);
    let strict = "192.0.2.10:40000".parse().unwrap();
    let nothing = server.handle(NOW, UNIX, strict, &plain);
    assert_eq!(nothing, Received::Nothing);
    assert_eq!(server.counters().unauthentic, 3);
    assert!(matches!(handle(&mut server, &plain), Received::Request(..)));
}

#[test]
fn what_is_too_old_or_of_the_future_gets_no_answer() {
    let at = |time: u32| {
        let time = (Kind::EVENT_TIMESTAMP, Value::Time(time));
        signed(Code::DISCONNECT_REQUEST, &[session(), time])
    };
    let mut server = server();
    for time in [UNIX - 301, UNIX + 301, 0] {
        assert_eq!(handle(&mut server, &at(time)), Received::Nothing);
    }
    assert_eq!(server.counters().untimely, 3);
    for time in [UNIX - 300, UNIX + 300] {
        let received = handle(&mut server, &at(time));
        assert!(matches!(received, Received::Request(..)));
    }
    server.reconfigure(DynamicConfig {
        require_event_timestamp: true,
        ..config()
    });
    let without = signed(Code::DISCONNECT_REQUEST, &[session()]);
    assert_eq!(handle(&mut server, &without), Received::Nothing);
}

#[test]
fn a_repetition_gets_the_same_answer_and_is_not_carried_out() {
    let mut server = server();
    let time = (Kind::EVENT_TIMESTAMP, Value::Time(UNIX));
    let bytes = signed(Code::DISCONNECT_REQUEST, &[session(), time]);
    let (key, ..) = request(&mut server, &bytes);
    assert_eq!(handle(&mut server, &bytes), Received::Nothing, "not yet");
    let (_, answer) = server.answer(key, DynamicOutcome::Done).unwrap();
    let again = Received::Answer(answer.clone());
    assert_eq!(handle(&mut server, &bytes), again);
    let other_port = "192.0.2.9:40001".parse().unwrap();
    let received = server.handle(NOW, UNIX, other_port, &bytes);
    assert!(matches!(received, Received::Request(..)), "another request");

    // recorded by somebody on the way, and sent again when the answer is no longer kept
    let other = signed(Code::DISCONNECT_REQUEST, &[(Kind::USER_NAME, "bob".into())]);
    let later = NOW + Duration::from_secs(290);
    let received = server.handle(later, UNIX + 290, from(), &other);
    assert!(matches!(received, Received::Request(..)));
    let received = server.handle(later, UNIX + 290, from(), &bytes);
    assert_eq!(received, Received::Nothing);
    assert_eq!(server.counters().repeated, 3);
}

#[test]
fn a_request_whose_outcome_is_unknown_is_new_when_it_comes_again() {
    let mut server = server();
    let bytes = signed(Code::DISCONNECT_REQUEST, &[session()]);
    let (first, ..) = request(&mut server, &bytes);
    assert_eq!(server.answer(first, DynamicOutcome::Unknown), None);
    let (second, ..) = request(&mut server, &bytes);
    assert_ne!(first, second);
    assert_eq!(server.open().collect::<Vec<_>>(), [second]);

    // the time of the first does not count for the second
    server.answer(second, DynamicOutcome::Unknown);
    let later = NOW + Duration::from_secs(500);
    let received = server.handle(later, UNIX, from(), &bytes);
    assert!(matches!(received, Received::Request(..)));
    let other = signed(Code::DISCONNECT_REQUEST, &[(Kind::USER_NAME, "bob".into())]);
    let later = NOW + Duration::from_secs(700);
    let received = server.handle(later, UNIX, from(), &other);
    assert!(matches!(received, Received::Request(..)));
    let received = server.handle(later, UNIX, from(), &bytes);
    assert_eq!(received, Received::Nothing, "it is a repetition");
}

#[test]
fn what_is_authentic_and_cannot_be_done_is_rejected_with_its_cause() {
    let user = || (Kind::USER_NAME, Value::Octets(b"alice".to_vec()));
    let timeout = || (Kind::SESSION_TIMEOUT, 60.into());
    let (change, end) = (Code::COA_REQUEST, Code::DISCONNECT_REQUEST);
    for (code, attributes, expected, why) in [
        (end, vec![], 402, "no session"),
        (change, vec![timeout()], 402, "no session"),
        (change, vec![user()], 402, "nothing to change"),
        (
            change,
            vec![user(), (Kind::STATE, Value::Octets(vec![1]))],
            402,
            "nothing to change",
        ),
        (end, vec![user(), timeout()], 401, "it changes something"),
        (
            change,
            vec![user(), timeout(), (Kind::LOGIN_TCP_PORT, 23.into())],
            401,
            "half of it cannot be done",
        ),
        (
            change,
            vec![
                user(),
                timeout(),
                (Kind::IDLE_TIMEOUT, Value::Invalid(vec![1])),
            ],
            407,
            "half of it is odd",
        ),
        (
            change,
            vec![user(), timeout(), (Kind::FRAMED_ROUTE, "nonsense".into())],
            407,
            "half of it is odd",
        ),
        (
            change,
            vec![user(), (Kind::PORT_LIMIT, 2.into())],
            401,
            "a running session has its addresses",
        ),
        (end, vec![user(), user()], 404, "two users"),
        (
            end,
            vec![(Kind::FRAMED_IP_ADDRESS, Value::Invalid(vec![1]))],
            407,
            "no address",
        ),
        (
            end,
            vec![user(), (Kind::NAS_IDENTIFIER, "bng2".into())],
            403,
            "another gateway",
        ),
        (
            end,
            vec![
                user(),
                (Kind::NAS_IP_ADDRESS, Value::Ipv4([192, 0, 2, 2].into())),
            ],
            403,
            "another gateway",
        ),
        (
            change,
            vec![
                user(),
                (Kind::SERVICE_TYPE, values::SERVICE_TYPE_LOGIN.into()),
            ],
            405,
            "another service",
        ),
    ] {
        assert_eq!(cause(code, &attributes), expected, "{why}: {attributes:?}");
    }
}
