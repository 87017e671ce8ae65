//! Every attribute that the gateway knows itself does what its declaration says, with values that can be used and with others. The table
//! in `docs/reference/radius.md` is written from the declarations: `UPDATE=1` writes it anew.

use aaa::{
    AccessAccept, AccessRequest, AccountingKind, AccountingRecord, Authentic, Client, ClientConfig,
    Credentials, DynamicAuthorization, DynamicClient, DynamicConfig, DynamicRequest, FamilyUsage,
    InAccept, InChange, Nas, NasPort, Outcome, Output, Received, Requested, STANDARD, Secret,
    ServerConfig, Standard, TerminateCause, Traffic, standard,
};
use core::time::Duration;
use policy::FilterRules;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use wire::access_loop::AccessLoop;
use wire::mschapv2::Response;
use wire::radius::{Code, DataType, Kind, Packet, Value, values, verify_access_request};

const SECRET: &[u8] = b"testing123";
const ZERO: Duration = Duration::ZERO;

/// Some value of an attribute's type.
fn some_value(kind: Kind) -> Value {
    match kind {
        Kind::MS_CHAP2_SUCCESS => return success(&[0xab; 20]),
        Kind::MS_MPPE_ENCRYPTION_POLICY => return Value::Integer(2), // required (RFC 2548 §2.4.4)
        _ => {}
    }
    match kind.data_type() {
        DataType::Integer => Value::Integer(1),
        DataType::Text => "text".into(),
        DataType::Octets => Value::Octets(vec![1]),
        DataType::Ipv4 => Value::Ipv4([192, 0, 2, 1].into()),
        DataType::Ipv6 => Value::Ipv6("2001:db8::1".parse().unwrap()),
        DataType::Ipv6Prefix => Value::Ipv6Prefix("2001:db8:7::/64".parse().unwrap()),
        DataType::InterfaceId => Value::InterfaceId(7),
        DataType::Time => Value::Time(1_800_000_000),
    }
}

/// MS-CHAP2-Success: an identifier, and the text.
fn success(proof: &[u8; 20]) -> Value {
    let digits: String = proof.iter().map(|octet| format!("{octet:02X}")).collect();
    Value::Octets([&[7][..], b"S=", digits.as_bytes()].concat())
}

fn nas() -> Nas {
    Nas {
        identifier: "bng1".into(),
        ipv4: Some([192, 0, 2, 1].into()),
        ipv6: Some("2001:db8::1".parse().unwrap()),
    }
}

fn client() -> Client {
    let mut config = ClientConfig::new(nas());
    let server = "192.0.2.9:1812".parse().unwrap();
    let server = ServerConfig::new(server, Secret::new(SECRET));
    config.authentication.push(server);
    Client::new(config, [7; 32])
}

/// A request with nothing that it could do without.
fn bare_request() -> AccessRequest {
    AccessRequest {
        username: b"alice".to_vec(),
        sent_name: None,
        credentials: Credentials::AuthorizeOnly,
        acct_session_id: "1".into(),
        nas_port: NasPort::default(),
        state: Vec::new(),
    }
}

/// Sends a request. Returns it, and what comes of an answer with these attributes.
fn ask(
    request: AccessRequest,
    code: Code,
    attributes: &[(Kind, Value)],
) -> (Packet, Option<Outcome>) {
    let mut client = client();
    client.authenticate(ZERO, 1, request);
    let Some(Output::Transmit { socket, to, bytes }) = client.poll_output() else {
        panic!("it is not sent");
    };
    let request = verify_access_request(&bytes, SECRET).unwrap();
    let mut answer = Packet::new(code, request.identifier, [0; 16]);
    for (kind, value) in attributes {
        answer.push(*kind, value.clone());
    }
    let answer = answer.emit_response(&request.authenticator, SECRET);
    client.handle(ZERO, socket, to, &answer.unwrap());
    let outcome = match client.poll_output() {
        Some(Output::Done { outcome, .. }) => Some(outcome),
        _ => None,
    };
    (request, outcome)
}

fn accepted(attributes: &[(Kind, Value)]) -> AccessAccept {
    match ask(bare_request(), Code::ACCESS_ACCEPT, attributes).1 {
        Some(Outcome::Accept(accept)) => *accept,
        other => panic!("{attributes:?}: {other:?}"),
    }
}

/// Values of an attribute that is carried out.
struct Case {
    kind: Kind,
    /// Values that can be used, and what they come to.
    good: (Vec<Value>, AccessAccept),
    /// A value that cannot be used; `None` if all can.
    bad: Option<Value>,
}

fn case(kind: Kind, good: Value, bad: Value, comes_to: impl Fn(&mut AccessAccept)) -> Case {
    let mut accept = AccessAccept::default();
    comes_to(&mut accept);
    Case {
        kind,
        good: (vec![good], accept),
        bad: Some(bad),
    }
}

fn cases() -> Vec<Case> {
    let seconds = |n| Some(Duration::from_secs(n));
    let broken = || Value::Invalid(vec![1]);
    let text = |text: &str| Value::from(text);
    let no_text = || Value::Invalid(vec![0xff]);
    let prefix = "2001:db8:7::/64";
    let mut cases = vec![
        case(
            Kind::FRAMED_IP_ADDRESS,
            Value::Ipv4([100, 64, 0, 7].into()),
            Value::Ipv4([224, 0, 0, 1].into()),
            |a| a.framed_ip = Some([100, 64, 0, 7].into()),
        ),
        case(Kind::FILTER_ID, text("gold"), no_text(), |a| {
            a.filter_id = Some("gold".into());
        }),
        case(Kind::FRAMED_MTU, 1400.into(), broken(), |a| {
            a.framed_mtu = Some(1400);
        }),
        case(Kind::FRAMED_ROUTE, text("192.0.2.0/24"), text("x"), |a| {
            a.framed_routes = vec!["192.0.2.0/24".parse().unwrap()];
        }),
        case(Kind::FRAMED_IPV6_ROUTE, text(prefix), text("x"), |a| {
            a.framed_routes = vec![prefix.parse().unwrap()];
        }),
        case(Kind::SESSION_TIMEOUT, 60.into(), broken(), |a| {
            a.session_timeout = seconds(60);
        }),
        case(Kind::IDLE_TIMEOUT, 60.into(), broken(), |a| {
            a.idle_timeout = seconds(60);
        }),
        case(Kind::TERMINATION_ACTION, 1.into(), 2.into(), |a| {
            a.reauthenticates = Some(true);
        }),
        case(Kind::PORT_LIMIT, 2.into(), 0.into(), |a| {
            a.port_limit = Some(2);
        }),
        case(Kind::ACCT_INTERIM_INTERVAL, 5.into(), broken(), |a| {
            a.acct_interim = seconds(60);
        }),
        case(Kind::FRAMED_POOL, text("homes"), no_text(), |a| {
            a.framed_pool = Some("homes".into());
        }),
        case(Kind::FRAMED_IPV6_POOL, text("homes"), no_text(), |a| {
            a.framed_ipv6_pool = Some("homes".into());
        }),
        case(
            Kind::FRAMED_INTERFACE_ID,
            Value::InterfaceId(7),
            broken(),
            |a| a.framed_interface_id = Some(7),
        ),
        case(
            Kind::FRAMED_IPV6_PREFIX,
            Value::Ipv6Prefix(prefix.parse().unwrap()),
            Value::Invalid(vec![0, 129]),
            |a| a.framed_ipv6_prefixes = vec![prefix.parse().unwrap()],
        ),
        case(
            Kind::FRAMED_IPV6_ADDRESS,
            Value::Ipv6("2001:db8::2".parse().unwrap()),
            Value::Ipv6("fe80::2".parse().unwrap()),
            |a| a.framed_ipv6_address = Some("2001:db8::2".parse().unwrap()),
        ),
        case(
            Kind::DELEGATED_IPV6_PREFIX,
            Value::Ipv6Prefix("2001:db8:7700::/56".parse().unwrap()),
            Value::Ipv6Prefix("2001:db8:7700::/65".parse().unwrap()),
            |a| a.delegated_prefixes = vec!["2001:db8:7700::/56".parse().unwrap()],
        ),
        case(
            Kind::DELEGATED_IPV6_PREFIX_POOL,
            text("lans"),
            no_text(),
            |a| a.delegated_pool = Some("lans".into()),
        ),
        case(
            Kind::STATEFUL_IPV6_ADDRESS_POOL,
            text("routers"),
            no_text(),
            |a| a.ipv6_address_pool = Some("routers".into()),
        ),
        case(
            Kind::DNS_SERVER_IPV6_ADDRESS,
            Value::Ipv6("2001:db8::53".parse().unwrap()),
            Value::Ipv6("::".parse().unwrap()),
            |a| a.dns = vec!["2001:db8::53".parse().unwrap()],
        ),
        case(
            Kind::MS_CHAP2_SUCCESS,
            success(&[0xab; 20]),
            Value::Octets(b"\x07S=AB".to_vec()),
            |a| a.mschapv2_proof = Some([0xab; 20]),
        ),
    ];
    let several = |kind, values: [Value; 2], accept| Case {
        kind,
        good: (values.into(), accept),
        bad: None,
    };
    cases.push(several(
        Kind::CLASS,
        [Value::Octets(vec![1]), Value::Octets(vec![2])],
        AccessAccept {
            class: vec![vec![1], vec![2]],
            ..AccessAccept::default()
        },
    ));
    cases.push(several(
        Kind::REPLY_MESSAGE,
        [text("Hello, "), text("Alice")],
        AccessAccept {
            reply_message: b"Hello, Alice".to_vec(),
            ..AccessAccept::default()
        },
    ));
    cases.push(several(
        Kind::NAS_FILTER_RULE,
        [b"deny in ip from".to_vec(), b" any to any".to_vec()].map(Value::Octets),
        AccessAccept {
            filter_rules: FilterRules::new("deny in ip from any to any"),
            ..AccessAccept::default()
        },
    ));
    cases
}

/// They say which service is meant, and another one is a rejection.
const OF_THE_SERVICE: [(Kind, u32); 2] = [
    (Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED),
    (Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_PPP),
];

fn of(state: InAccept) -> impl Iterator<Item = &'static Standard> {
    STANDARD.iter().filter(move |own| own.in_accept == state)
}

#[test]
fn every_attribute_of_the_dictionary_is_declared_once() {
    let declared: Vec<Kind> = STANDARD.iter().map(|own| own.kind).collect();
    let known: BTreeSet<Kind> = Kind::all()
        .filter(|k| *k != Kind::VENDOR_SPECIFIC)
        .collect();
    assert_eq!(declared, known.into_iter().collect::<Vec<_>>());
    assert!(standard(Kind::VENDOR_SPECIFIC).is_none());
}

#[test]
fn an_attribute_that_is_carried_out_has_its_cases() {
    let with_cases = cases().into_iter().map(|case| case.kind);
    let with_cases = with_cases.chain(OF_THE_SERVICE.map(|(kind, _)| kind));
    let obeyed: BTreeSet<Kind> = of(InAccept::Obeyed).map(|own| own.kind).collect();
    assert_eq!(with_cases.collect::<BTreeSet<Kind>>(), obeyed);
    for Case { kind, good, bad } in cases() {
        let (values, expected) = good;
        let attributes: Vec<_> = values.into_iter().map(|value| (kind, value)).collect();
        assert_eq!(accepted(&attributes), expected, "{kind:?}");
        if let Some(bad) = bad {
            let expected = AccessAccept {
                ignored: vec![kind.name().unwrap().into()],
                ..AccessAccept::default()
            };
            assert_eq!(accepted(&[(kind, bad)]), expected, "{kind:?}");
        }
    }
    for (kind, own) in OF_THE_SERVICE {
        assert_eq!(accepted(&[(kind, own.into())]), AccessAccept::default());
        let other = ask(bare_request(), Code::ACCESS_ACCEPT, &[(kind, 99.into())]).1;
        assert!(matches!(other, Some(Outcome::Reject(_))), "{kind:?}");
    }
}

#[test]
fn an_attribute_that_needs_no_action_has_no_effect_and_any_other_is_named() {
    // the codec adds the one, and drops the other in pieces
    for own in of(InAccept::NoAction).filter(|own| own.kind != Kind::MESSAGE_AUTHENTICATOR) {
        let accept = accepted(&[(own.kind, some_value(own.kind))]);
        assert_eq!(accept, AccessAccept::default(), "{:?}", own.kind);
    }
    for own in of(InAccept::NotEnforced) {
        let mut accept = accepted(&[(own.kind, some_value(own.kind))]);
        assert_eq!(accept.not_enforced.len(), 1, "{:?}: {accept:?}", own.kind);
        accept.not_enforced.clear();
        assert_eq!(accept, AccessAccept::default(), "{:?}", own.kind);
    }
}

fn server() -> DynamicAuthorization {
    let mut server = DynamicAuthorization::default();
    server.reconfigure(DynamicConfig {
        clients: vec![DynamicClient {
            address: [192, 0, 2, 9].into(),
            secret: Secret::new(SECRET),
            require_message_authenticator: false,
        }],
        gateways: vec![nas()],
        time_window: Duration::from_secs(300),
        ..DynamicConfig::default()
    });
    server
}

/// What a CoA-Request with these attributes, and one that changes something, comes to: the request, or its Error-Cause.
fn change(attributes: &[(Kind, Value)]) -> Result<DynamicRequest, u32> {
    let mut packet = Packet::new(Code::COA_REQUEST, 7, [0; 16]);
    for (kind, value) in attributes {
        packet.push(*kind, value.clone());
    }
    let bytes = packet.emit_dynamic_request(SECRET).unwrap();
    let from = "192.0.2.9:40000".parse().unwrap();
    match server().handle(ZERO, 1_800_000_000, from, &bytes) {
        Received::Request(_, request) => Ok(*request),
        Received::Answer(answer) => match Packet::parse(&answer).unwrap().get(Kind::ERROR_CAUSE) {
            Some(Value::Integer(cause)) => Err(*cause),
            other => panic!("{other:?}"),
        },
        Received::Nothing => panic!("{attributes:?}: it is dropped"),
    }
}

#[test]
fn an_attribute_of_a_change_does_what_is_declared() {
    let named = (Kind::ACCT_SESSION_ID, Value::from("51"));
    let mtu = (Kind::FRAMED_MTU, Value::Integer(1400));
    let usual = change(&[named.clone(), mtu.clone()]).unwrap();
    for Standard {
        kind, in_change, ..
    } in STANDARD
    {
        let own = (*kind, some_value(*kind));
        let with = || vec![named.clone(), mtu.clone(), own.clone()];
        match in_change {
            InChange::Identifies => {
                let request = change(&[own.clone(), mtu.clone()]).unwrap();
                assert_ne!(request.ids, Default::default(), "{kind:?}");
                assert_eq!(change(&[own.clone(), own.clone(), mtu.clone()]), Err(404));
                let broken = (*kind, Value::Invalid(Vec::new()));
                assert_eq!(change(&[broken, mtu.clone()]), Err(407), "{kind:?}");
            }
            InChange::NamesGateway => {
                let other = change(&[named.clone(), mtu.clone(), (*kind, Value::Invalid(vec![1]))]);
                assert_eq!(other, Err(403), "{kind:?}");
            }
            InChange::OfTheMessage if OF_THE_SERVICE.iter().any(|(of, _)| of == kind) => {
                assert_eq!(
                    change(&[named.clone(), mtu.clone(), (*kind, 99.into())]),
                    Err(405)
                );
            }
            InChange::OfTheMessage if *kind == Kind::MESSAGE_AUTHENTICATOR => {} // the codec adds it
            InChange::OfTheMessage => assert_eq!(change(&with()).unwrap(), usual, "{kind:?}"),
            InChange::Unsupported => assert_eq!(change(&with()), Err(401), "{kind:?}"),
            InChange::Changes | InChange::ChangesNext => {
                let mut cases = cases().into_iter();
                let case = cases.find(|case| case.kind == *kind).unwrap();
                let mut attributes = vec![named.clone()];
                attributes.extend(case.good.0.into_iter().map(|value| (*kind, value)));
                let Requested::Change(changed) = change(&attributes).unwrap().requested else {
                    panic!("{kind:?}");
                };
                assert_eq!(*changed, case.good.1, "{kind:?}");
                if let Some(bad) = case.bad {
                    assert_eq!(change(&[named.clone(), (*kind, bad)]), Err(407), "{kind:?}");
                }
            }
        }
    }
}

fn kinds(packet: &Packet) -> BTreeSet<Kind> {
    packet.attributes.iter().map(|a| a.kind).collect()
}

/// A port of which everything is known.
fn full_port() -> NasPort {
    let rate = 1000u32.to_be_bytes();
    let rates = (0x81..=0x8e).map(|n| (n, &rate[..]));
    let options = rates.chain([(0x90, &[1, 1, 2][..]), (0xfe, &[][..])]);
    NasPort {
        port_id: Some("up1/access0:100.7".into()),
        calling_station: Some("02:00:00:00:00:07".into()),
        called_station: Some("internet".into()),
        circuit_id: Some(b"circuit".to_vec()),
        remote_id: Some(b"remote".to_vec()),
        access_loop: AccessLoop::read(options).map(Box::new),
        ..NasPort::default()
    }
}

fn record(nas_port: NasPort, is_full: bool) -> AccountingRecord {
    let net = |text: &str| text.parse().unwrap();
    AccountingRecord {
        kind: match is_full {
            true => AccountingKind::Stop(TerminateCause::UserRequest),
            false => AccountingKind::Start,
        },
        username: b"alice".to_vec(),
        acct_session_id: "1".into(),
        multi_session_id: is_full.then(|| "1".into()),
        nas_port,
        class: vec![vec![1]; is_full.into()],
        framed_ip: is_full.then(|| [100, 64, 0, 7].into()),
        framed_ipv6_prefixes: vec!["2001:db8:7::/64".parse().unwrap(); is_full.into()],
        framed_ipv6_address: is_full.then(|| "2001:db8:7::2".parse().unwrap()),
        framed_interface_id: is_full.then_some(7),
        framed_routes: match is_full {
            true => vec![net("192.0.2.0/24"), net("2001:db8:77::/48")],
            false => Vec::new(),
        },
        delegated_prefixes: vec!["2001:db8:100::/56".parse().unwrap(); is_full.into()],
        filter_id: is_full.then(|| "gold".into()),
        authentic: Authentic::Radius,
        event_time: 1_800_000_000,
        session_time: ZERO,
        input: Traffic::default(),
        output: Traffic::default(),
        families: Some(FamilyUsage::default()),
    }
}

/// What is declared as sent is sent if there is something to be said, and not otherwise; nothing else is sent.
#[test]
fn what_is_sent_is_declared() {
    let chap = Credentials::Chap {
        id: 1,
        challenge: vec![1; 16],
        response: [2; 16],
    };
    let pap = Credentials::Pap {
        password: Secret::new("wonderland"),
    };
    let mschapv2 = Credentials::MsChapV2 {
        id: 1,
        challenge: [1; 16],
        response: Response {
            peer_challenge: [2; 16],
            nt_response: [3; 24],
        },
    };
    let full = |credentials| AccessRequest {
        credentials,
        nas_port: full_port(),
        state: vec![1],
        ..bare_request()
    };
    let sent = |request| kinds(&ask(request, Code::ACCESS_ACCEPT, &[]).0);
    let all = [chap, pap, mschapv2].into_iter();
    let all: BTreeSet<Kind> = all.flat_map(|way| sent(full(way))).collect();
    let declared = STANDARD.iter().filter(|own| own.sent.request);
    let declared: BTreeSet<Kind> = declared.map(|own| own.kind).collect();
    assert_eq!(all, declared, "in an Access-Request");

    let recorded = |record: AccountingRecord| {
        let attributes = client().accounting_attributes(&record).unwrap();
        let length = (20 + attributes.len()) as u16;
        let head = [&[4, 1], &length.to_be_bytes()[..], &[0; 16]].concat();
        kinds(&Packet::parse(&[&head, &attributes[..]].concat()).unwrap())
    };
    let all = recorded(record(full_port(), true));
    let declared = STANDARD.iter().filter(|own| own.sent.record);
    let declared: BTreeSet<Kind> = declared.map(|own| own.kind).collect();
    assert_eq!(all, declared, "in an Accounting-Request");

    let always = [
        Kind::USER_NAME,
        Kind::SERVICE_TYPE,
        Kind::FRAMED_PROTOCOL,
        Kind::NAS_IDENTIFIER,
        Kind::NAS_IP_ADDRESS,
        Kind::NAS_IPV6_ADDRESS,
        Kind::NAS_PORT_TYPE,
        Kind::ACCT_SESSION_ID,
    ];
    let with = |more: &[Kind]| {
        always
            .iter()
            .chain(more)
            .copied()
            .collect::<BTreeSet<Kind>>()
    };
    let request = sent(bare_request());
    assert_eq!(request, with(&[Kind::MESSAGE_AUTHENTICATOR]));
    let start = recorded(record(NasPort::default(), false));
    let own = [
        Kind::ACCT_STATUS_TYPE,
        Kind::ACCT_AUTHENTIC,
        Kind::EVENT_TIMESTAMP,
    ];
    assert_eq!(start, with(&own));
}

/// Tests that show what attributes do: behaviour tests of the control plane by file and name, and end-to-end cases.
#[rustfmt::skip]
const TESTS: &[(&str, &[Kind])] = &[
    ("names::a_session_has_the_same_names_in_all_its_requests", &[Kind::USER_NAME, Kind::CALLED_STATION_ID, Kind::CALLING_STATION_ID, Kind::NAS_PORT_ID]),
    ("dynamic::a_session_is_found_by_every_identifier_and_only_one", &[Kind::USER_NAME, Kind::CALLING_STATION_ID, Kind::ACCT_SESSION_ID, Kind::NAS_PORT_ID, Kind::FRAMED_IPV6_PREFIX, Kind::FRAMED_IPV6_ADDRESS, Kind::DELEGATED_IPV6_PREFIX]),
    ("e2e pppd-pap", &[Kind::USER_PASSWORD]),
    ("e2e pppd-chap", &[Kind::CHAP_PASSWORD, Kind::CHAP_CHALLENGE]),
    ("e2e pppd-mschapv2", &[Kind::MS_CHAP_CHALLENGE, Kind::MS_CHAP2_RESPONSE, Kind::MS_CHAP2_SUCCESS, Kind::MS_CHAP_ERROR]),
    ("mschapv2::a_server_s_answer_is_passed_on_with_its_proof", &[Kind::MS_CHAP_CHALLENGE, Kind::MS_CHAP2_RESPONSE, Kind::MS_CHAP2_SUCCESS]),
    ("mschapv2::who_gets_no_proof_is_rejected", &[Kind::MS_CHAP2_SUCCESS]),
    ("mschapv2::an_error_of_the_server_is_passed_on", &[Kind::MS_CHAP_ERROR]),
    ("dynamic::changes_of_one_session_are_carried_out_in_order", &[Kind::NAS_IP_ADDRESS]),
    ("reauthorize::a_server_that_wants_to_be_asked_is_asked", &[Kind::SERVICE_TYPE]),
    ("e2e tshark-wire", &[Kind::FRAMED_PROTOCOL, Kind::NAS_PORT_TYPE]),
    ("bindings::prefixes_of_aaa_are_announced_by_the_session_that_has_them", &[Kind::FRAMED_IP_ADDRESS, Kind::FRAMED_ROUTE, Kind::FRAMED_IPV6_PREFIX, Kind::FRAMED_IPV6_ROUTE]),
    ("bindings::a_router_that_reboots_has_its_fixed_addresses_again_at_once", &[Kind::FRAMED_IP_ADDRESS]),
    ("aaa_answer::a_session_shows_what_of_its_answer_has_no_effect", &[Kind::FRAMED_IP_NETMASK, Kind::FRAMED_ROUTING, Kind::ROUTE_IPV6_INFORMATION]),
    ("dynamic::a_change_is_acknowledged_when_user_plane_and_store_have_it", &[Kind::FILTER_ID]),
    ("dynamic::a_profile_that_is_not_there_or_of_another_instance_is_rejected", &[Kind::FILTER_ID]),
    ("change::framed_mtu_comes_before_the_profile_s_and_outlives_a_restart", &[Kind::FRAMED_MTU]),
    ("plane::a_wrong_password_is_told_and_leaves_nothing", &[Kind::REPLY_MESSAGE]),
    ("bindings::a_session_has_all_prefixes_of_its_link", &[Kind::FRAMED_IPV6_PREFIX]),
    ("reauthorize::a_new_answer_may_have_other_prefixes_beside_one_of_before", &[Kind::FRAMED_IPV6_PREFIX]),
    ("recorded_bindings::a_record_has_the_metric_that_the_server_gave_and_another_one_is_recorded_at_once", &[Kind::FRAMED_ROUTE]),
    ("dynamic::another_metric_is_another_route_of_the_kernel_and_a_link_identifies_by_all_its_prefixes", &[Kind::FRAMED_ROUTE, Kind::FRAMED_IPV6_ROUTE]),
    ("e2e framed-routes", &[Kind::FRAMED_ROUTE, Kind::FRAMED_IPV6_ROUTE, Kind::FRAMED_IPV6_PREFIX]),
    ("dynamic::routes_of_a_family_are_replaced_together", &[Kind::FRAMED_ROUTE, Kind::FRAMED_IPV6_ROUTE]),
    ("reauthorize::at_its_timeout_a_session_goes_on_with_a_new_answer", &[Kind::STATE, Kind::TERMINATION_ACTION]),
    ("dynamic::interim_interval_and_class_apply_to_the_records_that_follow", &[Kind::CLASS, Kind::ACCT_INTERIM_INTERVAL]),
    ("aaa_answer::the_time_out_of_an_accept_counts_from_that", &[Kind::SESSION_TIMEOUT]),
    ("dynamic::time_outs_count_from_the_request_and_zero_is_none", &[Kind::SESSION_TIMEOUT]),
    ("change::an_idle_session_ends_and_its_record_says_why", &[Kind::IDLE_TIMEOUT]),
    ("reauthorize::who_is_not_let_in_again_goes", &[Kind::TERMINATION_ACTION, Kind::ACCT_TERMINATE_CAUSE]),
    ("e2e coa", &[Kind::NAS_IDENTIFIER, Kind::PROXY_STATE, Kind::ERROR_CAUSE]),
    ("radius_records::a_session_is_accounted_from_start_to_stop", &[Kind::ACCT_STATUS_TYPE]),
    ("announcements::servers_are_told_that_accounting_begins_if_no_session_lives_on", &[Kind::ACCT_STATUS_TYPE]),
    ("radius_records::the_uplink_of_a_report_is_the_input_of_the_record", &[Kind::ACCT_INPUT_OCTETS, Kind::ACCT_OUTPUT_OCTETS, Kind::ACCT_INPUT_PACKETS, Kind::ACCT_OUTPUT_PACKETS, Kind::ACCT_INPUT_GIGAWORDS, Kind::ACCT_OUTPUT_GIGAWORDS]),
    ("fallback::the_last_policy_comes_again_after_a_restart", &[Kind::ACCT_AUTHENTIC]),
    ("radius_records::a_step_of_the_wall_clock_changes_neither_timers_nor_session_times", &[Kind::ACCT_SESSION_TIME, Kind::EVENT_TIMESTAMP]),
    ("subscribers::sessions_of_a_subscriber_that_overlap_have_one_multi_session_id", &[Kind::ACCT_MULTI_SESSION_ID]),
    ("subscribers::a_subscriber_has_as_many_sessions_as_aaa_allows", &[Kind::PORT_LIMIT]),
    ("e2e accounting-on", &[Kind::CONNECT_INFO, Kind::ADSL_FORUM_AGENT_CIRCUIT_ID, Kind::ADSL_FORUM_AGENT_REMOTE_ID, Kind::ADSL_FORUM_ACTUAL_DATA_RATE_UPSTREAM, Kind::ADSL_FORUM_ACTUAL_DATA_RATE_DOWNSTREAM, Kind::ADSL_FORUM_MINIMUM_DATA_RATE_UPSTREAM, Kind::ADSL_FORUM_MINIMUM_DATA_RATE_DOWNSTREAM, Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_UPSTREAM, Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_DOWNSTREAM, Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_UPSTREAM, Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_DOWNSTREAM, Kind::ADSL_FORUM_MINIMUM_DATA_RATE_UPSTREAM_LOW_POWER, Kind::ADSL_FORUM_MINIMUM_DATA_RATE_DOWNSTREAM_LOW_POWER, Kind::ADSL_FORUM_MAXIMUM_INTERLEAVING_DELAY_UPSTREAM, Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_UPSTREAM, Kind::ADSL_FORUM_MAXIMUM_INTERLEAVING_DELAY_DOWNSTREAM, Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_DOWNSTREAM, Kind::ADSL_FORUM_ACCESS_LOOP_ENCAPSULATION, Kind::ADSL_FORUM_IWF_SESSION]),
    ("e2e radius-bad-authenticator", &[Kind::MESSAGE_AUTHENTICATOR]),
    ("aaa_answer::a_pool_that_aaa_names_is_used_in_place_of_the_profiles", &[Kind::FRAMED_POOL, Kind::FRAMED_IPV6_POOL]),
    ("aaa_answer::a_pool_that_is_not_there_refuses_the_subscriber_by_name", &[Kind::FRAMED_POOL, Kind::FRAMED_IPV6_POOL]),
    ("next_pools::a_session_keeps_its_addresses_and_its_subscriber_gets_others_when_it_connects_again", &[Kind::FRAMED_POOL, Kind::FRAMED_IPV6_POOL]),
    ("next_pools::pools_of_delegated_prefixes_and_router_addresses_count_from_the_next_connection_too", &[Kind::DELEGATED_IPV6_PREFIX_POOL, Kind::STATEFUL_IPV6_ADDRESS_POOL]),
    ("next_pools::a_pool_that_the_network_instance_does_not_have_changes_nothing", &[Kind::FRAMED_POOL, Kind::FRAMED_IPV6_POOL]),
    ("delegated::prefixes_and_an_address_of_radius_come_before_those_of_pools", &[Kind::FRAMED_IPV6_ADDRESS, Kind::DELEGATED_IPV6_PREFIX, Kind::DNS_SERVER_IPV6_ADDRESS]),
    ("delegated::pools_that_radius_names_for_delegation_are_used_or_refuse_the_subscriber_by_name", &[Kind::DELEGATED_IPV6_PREFIX_POOL, Kind::STATEFUL_IPV6_ADDRESS_POOL]),
    ("e2e radius-servers", &[Kind::NAS_IPV6_ADDRESS]),
    ("filter_rules::rules_of_radius_reach_the_user_plane_and_outlive_a_restart", &[Kind::NAS_FILTER_RULE]),
    ("filter_rules::a_change_replaces_the_rules_and_a_bad_one_is_rejected", &[Kind::NAS_FILTER_RULE]),
    ("e2e policies", &[Kind::NAS_FILTER_RULE]),
    ("plane::homes_come_and_go_and_leave_nothing", &[Kind::FRAMED_INTERFACE_ID]),
    ("aaa_answer::what_vendors_attributes_say_reaches_the_user_plane_and_the_subscriber", &[Kind::DNS_SERVER_IPV6_ADDRESS]),
];

fn tests_of(kind: Kind) -> impl Iterator<Item = &'static str> {
    let own = TESTS.iter().filter(move |(_, kinds)| kinds.contains(&kind));
    own.map(|(test, _)| *test)
}

/// The tests are there, and what is carried out or sent has one.
#[test]
fn the_tests_of_an_attribute_are_there() {
    for own in STANDARD {
        let does = own.in_accept == InAccept::Obeyed || own.sent.request || own.sent.record;
        let has_one = tests_of(own.kind).next().is_some();
        assert!(!does || has_one, "{:?} has no test", own.kind);
    }
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for (test, _) in TESTS {
        if let Some(case) = test.strip_prefix("e2e ") {
            let file = format!("e2e/src/cases/{}.rs", case.replace('-', "_"));
            assert!(root.join(&file).exists(), "{test}");
            continue;
        }
        let (file, name) = test.split_once("::").unwrap();
        let file = format!("crates/control/tests/behaviour/{file}.rs");
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&format!("fn {name}(")), "{test}");
    }
}

const BEGIN: &str = "<!-- the attributes: written by crates/aaa/tests/attributes.rs -->\n";
const END: &str = "<!-- the end of the attributes -->\n";

fn table() -> String {
    let mut out = String::from(
        "\n| attribute | the gateway sends it in | Access-Accept | CoA-Request | meaning | tests |\n|---|---|---|---|---|---|\n",
    );
    for own in STANDARD {
        let sent = match (own.sent.request, own.sent.record) {
            (true, true) => "Access-Request, accounting",
            (true, false) => "Access-Request",
            (false, true) => "accounting",
            (false, false) => "",
        };
        let in_accept = match own.in_accept {
            InAccept::Obeyed => "carried out",
            InAccept::NoAction => "no action",
            InAccept::NotEnforced => "not enforced",
        };
        let in_change = match own.in_change {
            InChange::Identifies => "identifies the session",
            InChange::NamesGateway => "names the gateway",
            InChange::OfTheMessage => "about the request",
            InChange::Changes => "changes the session",
            InChange::ChangesNext => "from the next connection",
            InChange::Unsupported => "rejected",
        };
        let tests: Vec<String> = tests_of(own.kind).map(|test| format!("`{test}`")).collect();
        let name = own.kind.name().unwrap();
        let (meaning, tests) = (own.meaning, tests.join(", "));
        writeln!(
            out,
            "| {name} | {sent} | {in_accept} | {in_change} | {meaning} | {tests} |"
        )
        .unwrap();
    }
    out.push('\n');
    out
}

#[test]
fn the_table_of_the_manual_is_that_of_the_declarations() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/radius.md"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("where it begins");
    let (written, after) = rest.split_once(END).expect("where it ends");
    let table = table();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, [before, BEGIN, &table, END, after].concat()).unwrap();
        return;
    }
    assert!(
        written == table,
        "the table in docs/reference/radius.md is another: run `UPDATE=1 cargo test -p aaa --test attributes`"
    );
}
