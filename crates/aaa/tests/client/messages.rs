//! What requests say, and how answers are understood.

use super::accounting::account;
use super::*;
use aaa::AccessAccept;
use wire::mschapv2::Response;

#[test]
fn an_access_request_says_who_and_where() {
    let mut client = client(config(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let packet = verify_access_request(&one(&mut client).bytes, SECRET).unwrap();
    let Some(Value::Octets(hidden)) = packet.get(Kind::USER_PASSWORD) else {
        panic!("no password")
    };
    assert_eq!(
        reveal_password(hidden, &packet.authenticator, SECRET).unwrap(),
        b"wonderland"
    );
    let expected: [(Kind, Value); 13] = [
        (Kind::USER_NAME, b"alice".into()),
        (Kind::NAS_IDENTIFIER, "bng1".into()),
        (Kind::NAS_IP_ADDRESS, Value::Ipv4([192, 0, 2, 200].into())),
        (
            Kind::NAS_IPV6_ADDRESS,
            Value::Ipv6("2001:db8::200".parse().unwrap()),
        ),
        (Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED.into()),
        (Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_PPP.into()),
        (Kind::NAS_PORT_TYPE, 34.into()),
        (Kind::NAS_PORT_ID, "up1/access0:100.7".into()),
        (Kind::CALLING_STATION_ID, "02:00:00:00:00:07".into()),
        (Kind::CALLED_STATION_ID, "internet".into()),
        (
            Kind::ADSL_FORUM_AGENT_CIRCUIT_ID,
            b"olt1 eth 1/1:100.7".into(),
        ),
        (Kind::ADSL_FORUM_AGENT_REMOTE_ID, b"line 7".into()),
        (Kind::ACCT_SESSION_ID, "bng1-0001".into()),
    ];
    for (kind, value) in expected {
        assert_eq!(packet.all(kind).collect::<Vec<_>>(), [&value], "{kind:?}");
    }
    assert_eq!(packet.attributes.len(), 13 + 2);
}

#[test]
fn chap_goes_with_its_challenge() {
    let mut client = client(config(1, 0));
    let credentials = Credentials::Chap {
        id: 9,
        challenge: vec![1; 20],
        response: [2; 16],
    };
    client.authenticate(
        ZERO,
        1,
        AccessRequest {
            credentials,
            ..access("alice")
        },
    );
    let packet = verify_access_request(&one(&mut client).bytes, SECRET).unwrap();
    let password = [&[9][..], &[2; 16]].concat();
    assert_eq!(
        packet.get(Kind::CHAP_PASSWORD),
        Some(&Value::Octets(password))
    );
    assert_eq!(
        packet.get(Kind::CHAP_CHALLENGE),
        Some(&Value::Octets(vec![1; 20]))
    );
    assert_eq!(packet.get(Kind::USER_PASSWORD), None);
}

/// What comes of an MS-CHAPv2 request that is answered by this.
fn by_mschapv2(code: Code, attributes: &[(Kind, Value)]) -> (Packet, Outcome) {
    let mut client = client(config(1, 0));
    let credentials = Credentials::MsChapV2 {
        id: 9,
        challenge: [1; 16],
        response: Response {
            peer_challenge: [2; 16],
            nt_response: [3; 24],
        },
    };
    let request = AccessRequest {
        credentials,
        ..access("alice")
    };
    client.authenticate(ZERO, 1, request);
    let sent = one(&mut client);
    let packet = verify_access_request(&sent.bytes, SECRET).unwrap();
    let bytes = reply(&sent, code, attributes);
    client.handle(ZERO, sent.socket, sent.to, &bytes);
    let (_, mut done) = drain(&mut client);
    (packet, done.remove(0).1)
}

fn ms(kind: Kind, text: &str) -> (Kind, Value) {
    // an identifier comes first
    (kind, Value::Octets([&[9], text.as_bytes()].concat()))
}

#[test]
fn mschapv2_goes_with_both_challenges_and_comes_with_a_proof() {
    let proof = "407A5589115FD0D6209F510FE9C04566932CDA56";
    let success = ms(Kind::MS_CHAP2_SUCCESS, &format!("S={proof}"));
    let (packet, outcome) = by_mschapv2(Code::ACCESS_ACCEPT, &[success]);
    // RFC 2548 §2.3.2: identifier, flags, challenge of the peer, reserved, response
    let response = [&[9, 0][..], &[2; 16], &[0; 8], &[3; 24]].concat();
    let sent = packet.get(Kind::MS_CHAP2_RESPONSE).and_then(Value::octets);
    assert_eq!(sent, Some(&response[..]));
    let challenge = Value::Octets(vec![1; 16]);
    assert_eq!(packet.get(Kind::MS_CHAP_CHALLENGE), Some(&challenge));
    assert_eq!(packet.get(Kind::CHAP_PASSWORD), None);
    assert!(!format!("{packet:?}").contains("[3, 3"), "a proof in a log");
    let Outcome::Accept(accept) = outcome else {
        panic!("{outcome:?}")
    };
    let proof = accept.mschapv2_proof.unwrap();
    assert_eq!((proof[0], proof[19]), (0x40, 0x56));
}

#[test]
fn an_accept_without_a_proof_is_a_refusal_for_mschapv2_alone() {
    let short = ms(Kind::MS_CHAP2_SUCCESS, "S=407A55");
    for attributes in [&[][..], &[short]] {
        let (_, outcome) = by_mschapv2(Code::ACCESS_ACCEPT, attributes);
        assert_eq!(rejected(outcome), RejectReason::NoProof);
        assert!(matches!(accept(attributes), Outcome::Accept(_)));
    }
}

#[test]
fn a_reject_has_the_error_of_mschapv2() {
    let error = ms(
        Kind::MS_CHAP_ERROR,
        "E=648 R=1 C=0123456789abcdef0123456789abcdef V=3 M=expired",
    );
    let text = (Kind::REPLY_MESSAGE, Value::Text("No.".into()));
    let reject = |attributes: &[(Kind, Value)]| match by_mschapv2(Code::ACCESS_REJECT, attributes) {
        (_, Outcome::Reject(reject)) => (reject.mschap_error, reject.reply_message),
        other => panic!("{other:?}"),
    };
    let said = |text: &str| text.as_bytes().to_vec();
    assert_eq!(
        reject(core::slice::from_ref(&error)),
        (Some(648), said("expired"))
    );
    assert_eq!(reject(&[error, text.clone()]), (Some(648), said("No.")));
    assert_eq!(reject(&[text]), (None, said("No.")));
    let odd = ms(Kind::MS_CHAP_ERROR, "expired");
    assert_eq!(reject(&[odd]), (None, Vec::new()));
}

/// RFC 5176 §3.2, and RFC 2865 §5.29 for the State of an Access-Accept.
#[test]
fn a_server_is_asked_for_settings_without_a_proof() {
    let mut client = client(config(1, 0));
    let request = AccessRequest {
        credentials: Credentials::AuthorizeOnly,
        state: vec![7; 9],
        ..access("alice")
    };
    client.authenticate(ZERO, 1, request);
    let sent = one(&mut client);
    let packet = verify_access_request(&sent.bytes, SECRET).unwrap();
    let only = Value::Integer(values::SERVICE_TYPE_AUTHORIZE_ONLY);
    assert_eq!(packet.get(Kind::SERVICE_TYPE), Some(&only));
    assert_eq!(packet.get(Kind::STATE), Some(&Value::Octets(vec![7; 9])));
    assert_eq!(packet.get(Kind::USER_PASSWORD), None);
    let attributes = [(Kind::SERVICE_TYPE, only)];
    let bytes = reply(&sent, Code::ACCESS_ACCEPT, &attributes);
    client.handle(ZERO, sent.socket, sent.to, &bytes);
    let (_, done) = drain(&mut client);
    assert_eq!(done, [(1, Outcome::Accept(Box::default()))]);
}

#[test]
fn what_happens_at_the_session_timeout_and_how_many_sessions_are_read() {
    let said = |attributes: &[(Kind, Value)]| match accept(attributes) {
        Outcome::Accept(accept) => *accept,
        other => panic!("{other:?}"),
    };
    let state = (Kind::STATE, Value::Octets(vec![7; 9]));
    let action = |number: u32| (Kind::TERMINATION_ACTION, Value::Integer(number));
    let again = said(&[action(1), state.clone(), (Kind::PORT_LIMIT, 2.into())]);
    let expected = AccessAccept {
        reauthenticates: Some(true),
        state: vec![7; 9],
        port_limit: Some(2),
        ..AccessAccept::default()
    };
    assert_eq!(again, expected);
    let ends = said(&[action(0), state]);
    assert_eq!((ends.reauthenticates, ends.state), (Some(false), vec![]));
    let odd = said(&[action(2), (Kind::PORT_LIMIT, 0.into())]);
    assert_eq!(odd.ignored, ["Termination-Action", "Port-Limit"]);
}

#[test]
fn an_accept_is_read_as_a_whole() {
    let prefix = "2001:db8:0:7::/64".parse().unwrap();
    let outcome = accept(&[
        (Kind::SERVICE_TYPE, values::SERVICE_TYPE_FRAMED.into()),
        (Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_PPP.into()),
        (Kind::FRAMED_IP_ADDRESS, Value::Ipv4([100, 64, 0, 7].into())),
        (Kind::FRAMED_IPV6_PREFIX, Value::Ipv6Prefix(prefix)),
        (Kind::FRAMED_INTERFACE_ID, Value::InterfaceId(7)),
        (Kind::FRAMED_POOL, "homes".into()),
        (Kind::FRAMED_IPV6_POOL, "homes6".into()),
        (Kind::CLASS, b"gold".into()),
        (Kind::CLASS, b"second".into()),
        (Kind::SESSION_TIMEOUT, 3600.into()),
        (Kind::ACCT_INTERIM_INTERVAL, 300.into()),
        (Kind::FRAMED_MTU, 1492.into()),
        (Kind::REPLY_MESSAGE, "Hello, ".into()),
        (Kind::REPLY_MESSAGE, "Alice".into()),
        (Kind::IDLE_TIMEOUT, 60.into()),
        (Kind::FRAMED_ROUTE, "192.0.2.0/29 0.0.0.0 1".into()),
        (Kind::FRAMED_ROUTE, "198.51.100.77/28".into()),
        (Kind::FRAMED_ROUTE, "192.0.2.0".into()),
        (Kind::FRAMED_IPV6_ROUTE, "2001:db8:77::/48 :: 7 8 9".into()),
        (Kind::standard(200), b"not known".into()),
    ]);
    let Outcome::Accept(accept) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(accept.framed_ip, Some([100, 64, 0, 7].into()));
    assert_eq!(accept.framed_ipv6_prefixes, [prefix]);
    assert_eq!(accept.framed_interface_id, Some(7));
    let routes = [
        "192.0.2.0/29 0.0.0.0 1",
        "198.51.100.64/28",
        "192.0.2.0/24",
        "2001:db8:77::/48 :: 7",
    ];
    assert_eq!(
        accept.framed_routes,
        routes.map(|route| route.parse().unwrap())
    );
    assert_eq!(accept.framed_pool.as_deref(), Some("homes"));
    assert_eq!(accept.framed_ipv6_pool.as_deref(), Some("homes6"));
    assert_eq!(accept.class, [b"gold".to_vec(), b"second".to_vec()]);
    assert_eq!(accept.session_timeout, Some(Duration::from_secs(3600)));
    assert_eq!(accept.acct_interim, Some(Duration::from_secs(300)));
    assert_eq!(accept.framed_mtu, Some(1492));
    assert_eq!(accept.reply_message, b"Hello, Alice");
}

#[test]
fn values_that_leave_the_choice_to_us_are_no_values() {
    for last in [254, 255] {
        let outcome = accept(&[
            (
                Kind::FRAMED_IP_ADDRESS,
                Value::Ipv4([255, 255, 255, last].into()),
            ),
            (Kind::SESSION_TIMEOUT, 0.into()),
            (Kind::ACCT_INTERIM_INTERVAL, 0.into()),
        ]);
        assert_eq!(outcome, Outcome::Accept(Box::default()));
    }
    let Outcome::Accept(accept) = accept(&[(Kind::ACCT_INTERIM_INTERVAL, 5.into())]) else {
        panic!("refused")
    };
    assert_eq!(
        accept.acct_interim,
        Some(Duration::from_secs(60)),
        "RFC 2869 §5.16"
    );
}

#[test]
fn what_cannot_be_used_of_an_accept_is_ignored_by_name() {
    let odd: [(&str, Vec<(Kind, Value)>); 13] = [
        ("Framed-Route", vec![(Kind::FRAMED_ROUTE, "home".into())]),
        (
            "Framed-Route",
            vec![(Kind::FRAMED_ROUTE, "0.0.0.0/0".into())],
        ),
        (
            "Framed-Route",
            vec![(Kind::FRAMED_ROUTE, "224.0.0.9".into())],
        ),
        (
            "Framed-IPv6-Route",
            vec![(Kind::FRAMED_IPV6_ROUTE, "::/0".into())],
        ),
        (
            "Session-Timeout",
            vec![(Kind::SESSION_TIMEOUT, Value::Invalid(vec![1, 2]))],
        ),
        (
            "Framed-IP-Address",
            vec![(Kind::FRAMED_IP_ADDRESS, Value::Invalid(vec![1, 2, 3]))],
        ),
        (
            "Framed-IP-Address",
            vec![(Kind::FRAMED_IP_ADDRESS, Value::Ipv4([0, 0, 0, 0].into()))],
        ),
        (
            "Framed-IP-Address",
            vec![(Kind::FRAMED_IP_ADDRESS, Value::Ipv4([224, 0, 0, 1].into()))],
        ),
        (
            "Framed-IPv6-Prefix",
            vec![(Kind::FRAMED_IPV6_PREFIX, Value::Invalid(vec![0, 129]))],
        ),
        (
            "Idle-Timeout",
            vec![(Kind::IDLE_TIMEOUT, Value::Invalid(vec![9]))],
        ),
        (
            "Vendor-Specific",
            vec![(Kind::VENDOR_SPECIFIC, Value::Invalid(vec![0, 0]))],
        ),
        (
            "Framed-Pool",
            vec![(Kind::FRAMED_POOL, Value::Invalid(vec![0xff]))],
        ),
        (
            "Session-Timeout",
            vec![
                (Kind::SESSION_TIMEOUT, 60.into()),
                (Kind::SESSION_TIMEOUT, 90.into()),
            ],
        ),
    ];
    for (name, attributes) in odd {
        let Outcome::Accept(accept) = accept(&attributes) else {
            panic!("{name} refuses")
        };
        let timeout = (attributes.len() > 1).then(|| Duration::from_secs(60));
        let expected = AccessAccept {
            session_timeout: timeout, // the first of two
            ignored: vec![name.to_owned()],
            ..AccessAccept::default()
        };
        assert_eq!(*accept, expected);
    }
}

#[test]
fn of_several_names_the_first_is_used_and_of_the_prefixes_all_for_which_there_is_room() {
    let prefix = |n: u16| ipnet::Ipv6Net::new_assert([0x2001, 0xdb8, n, 0, 0, 0, 0, 0].into(), 64);
    let prefixes = [3, 1, 2, 1].into_iter().chain(4..10).map(|n| {
        let prefix = Value::Ipv6Prefix(prefix(n));
        (Kind::FRAMED_IPV6_PREFIX, prefix)
    });
    let others = [
        (Kind::FILTER_ID, "gold".into()),
        (Kind::FILTER_ID, "silver".into()),
        (Kind::FILTER_ID, "bronze".into()),
        (Kind::FRAMED_ROUTE, "home".into()),
        (Kind::FRAMED_ROUTE, "192.0.2.0/29".into()),
        (Kind::FRAMED_ROUTE, "192.0.2.8/29 0.0.0.0 far".into()),
    ];
    let outcome = accept(&prefixes.chain(others).collect::<Vec<_>>());
    let Outcome::Accept(accept) = outcome else {
        panic!("{outcome:?}")
    };
    let first = [3, 1, 2, 4, 5, 6, 7, 8].map(prefix);
    assert_eq!(accept.framed_ipv6_prefixes, first);
    assert_eq!(accept.filter_id.as_deref(), Some("gold"));
    let routes = ["192.0.2.0/29", "192.0.2.8/29"];
    assert_eq!(accept.framed_routes, routes.map(|net| net.parse().unwrap()));
    let ignored = [
        "Filter-Id",
        "Filter-Id",
        "Framed-IPv6-Prefix", // the same again, and the ninth
        "Framed-IPv6-Prefix",
        "Framed-Route", // no network
        "Framed-Route", // no metric
    ];
    assert_eq!(accept.ignored, ignored);
}

#[test]
fn the_end_of_a_filter_id_is_a_direction_and_each_direction_has_one_policy() {
    let filters = |names: &[&str]| {
        let filters = names.iter().map(|name| (Kind::FILTER_ID, (*name).into()));
        let outcome = accept(&filters.collect::<Vec<_>>());
        let Outcome::Accept(accept) = outcome else {
            panic!("{outcome:?}")
        };
        let unusable = accept.unusable.clone();
        let all = [accept.filter_id, accept.policy_up, accept.policy_down];
        (all.map(Option::unwrap_or_default), unusable)
    };
    let none = ["", "", ""].map(str::to_owned);
    assert_eq!(filters(&[]), (none, None));
    let all = ["gold", "base", "base.x"].map(str::to_owned);
    let (named, unusable) = filters(&["base.in", "gold", "base.x.out", "base.in"]);
    assert_eq!((named, unusable), (all, None));
    for both in [["a.in", "b.in"], ["a.out", "b.out"]] {
        let (_, unusable) = filters(&both);
        assert!(unusable.is_some_and(|why| why.ends_with("(Filter-Id)")));
    }
}

#[test]
fn delegated_prefixes_are_taken_once_each_and_as_far_as_there_is_room() {
    let prefix = |n: u16| ipnet::Ipv6Net::new_assert([0x2001, 0xdb8, n, 0, 0, 0, 0, 0].into(), 48);
    let again = ipnet::Ipv6Net::new_assert("2001:db8:1::9".parse().unwrap(), 48);
    let all = [prefix(0), prefix(1), again].into_iter();
    let all = all.chain((2..18).map(prefix));
    let all = all.map(|net| (Kind::DELEGATED_IPV6_PREFIX, Value::Ipv6Prefix(net)));
    let outcome = accept(&all.collect::<Vec<_>>());
    let Outcome::Accept(accept) = outcome else {
        panic!("{outcome:?}")
    };
    let first: Vec<_> = (0..16).map(prefix).collect();
    assert_eq!(accept.delegated_prefixes, first);
    assert_eq!(accept.ignored, ["Delegated-IPv6-Prefix"; 3]);
}

#[test]
fn an_accept_for_another_service_is_a_refusal() {
    let login = (Kind::SERVICE_TYPE, values::SERVICE_TYPE_LOGIN.into());
    assert_eq!(
        rejected(accept(&[login])),
        RejectReason::Unsupported("Service-Type")
    );
    let slip = (Kind::FRAMED_PROTOCOL, values::FRAMED_PROTOCOL_SLIP.into());
    assert_eq!(
        rejected(accept(&[slip])),
        RejectReason::Unsupported("Framed-Protocol")
    );
}

#[test]
fn a_reject_and_a_challenge_are_refusals() {
    let message = [(Kind::REPLY_MESSAGE, Value::Text("No.".into()))];
    let Outcome::Reject(reject) = outcome(Code::ACCESS_REJECT, &message) else {
        panic!("not refused")
    };
    assert_eq!(
        (reject.reason, &reject.reply_message[..]),
        (RejectReason::Refused, &b"No."[..])
    );
    assert_eq!(
        rejected(outcome(Code::ACCESS_CHALLENGE, &[])),
        RejectReason::Challenged
    );
}

/// Attributes that must be there once, with these values.
fn expect(packet: &Packet, expected: &[(Kind, Value)]) {
    for (kind, value) in expected {
        assert_eq!(packet.all(*kind).collect::<Vec<_>>(), [value], "{kind:?}");
    }
}

#[test]
fn a_stop_says_what_was_used() {
    let mut client = client(config(0, 1));
    let stop = AccountingKind::Stop(TerminateCause::LostCarrier);
    account(&mut client, stop, Delivery::UntilRecorded);
    let sent = one(&mut client);
    let packet = verify_accounting_request(&sent.bytes, SECRET).unwrap();
    let expected: [(Kind, Value); 22] = [
        (
            Kind::FRAMED_IPV6_ADDRESS,
            Value::Ipv6("2001:db8:0:7::2".parse().unwrap()),
        ),
        (Kind::ACCT_STATUS_TYPE, values::ACCT_STATUS_TYPE_STOP.into()),
        (Kind::FILTER_ID, "gold".into()),
        (Kind::FRAMED_ROUTE, "198.51.100.0/24 0.0.0.0 1".into()),
        (Kind::FRAMED_IPV6_ROUTE, "2001:db8:77::/48 :: 7".into()),
        (
            Kind::DELEGATED_IPV6_PREFIX,
            Value::Ipv6Prefix("2001:db8:100::/56".parse().unwrap()),
        ),
        (Kind::ACCT_SESSION_ID, "bng1-0001".into()),
        (Kind::USER_NAME, b"alice".into()),
        (Kind::FRAMED_IP_ADDRESS, Value::Ipv4([100, 64, 0, 7].into())),
        (
            Kind::FRAMED_IPV6_PREFIX,
            Value::Ipv6Prefix("2001:db8:0:7::/64".parse().unwrap()),
        ),
        (
            Kind::FRAMED_INTERFACE_ID,
            Value::InterfaceId(0x0200_0000_0000_0007),
        ),
        (Kind::ACCT_AUTHENTIC, values::ACCT_AUTHENTIC_RADIUS.into()),
        (Kind::EVENT_TIMESTAMP, Value::Time(1_700_000_000)),
        (Kind::ACCT_SESSION_TIME, 61.into()),
        (Kind::ACCT_INPUT_OCTETS, 17.into()),
        (Kind::ACCT_INPUT_GIGAWORDS, 3.into()),
        (Kind::ACCT_INPUT_PACKETS, 5.into()),
        (Kind::ACCT_OUTPUT_OCTETS, 18.into()),
        (Kind::ACCT_OUTPUT_GIGAWORDS, 4.into()),
        (Kind::ACCT_OUTPUT_PACKETS, 6.into()),
        (
            Kind::ACCT_TERMINATE_CAUSE,
            values::ACCT_TERMINATE_CAUSE_LOST_CARRIER.into(),
        ),
        (Kind::NAS_PORT_ID, "up1/access0:100.7".into()),
    ];
    expect(&packet, &expected);
    let class: Vec<_> = packet.all(Kind::CLASS).filter_map(Value::octets).collect();
    assert_eq!(class, [&b"gold"[..], b"second"]);
    assert_eq!(
        packet.get(Kind::ACCT_DELAY_TIME),
        None,
        "each time the same"
    );
}

#[test]
fn a_record_with_more_routes_than_a_packet_has_room_for_goes_without_them() {
    let mut client = client(config(0, 1));
    let mut record = record(AccountingKind::Start);
    let fits = client.accounting_attributes(&record).unwrap();
    let route = |n| format!("2001:db8:77:{n:x}::/64").parse().unwrap();
    record.framed_routes = (0..200).map(route).collect();
    let without = client.accounting_attributes(&record).unwrap();
    assert!(without.len() < fits.len());
    assert_eq!(client.counters().shortened, 1);
    record.framed_routes.truncate(60);
    let with = client.accounting_attributes(&record).unwrap();
    assert!(with.len() > fits.len());
    assert_eq!(client.counters().shortened, 1);
}

#[test]
fn a_start_says_nothing_of_usage_and_an_interim_nothing_of_an_end() {
    for (kind, status, usage) in [
        (AccountingKind::Start, values::ACCT_STATUS_TYPE_START, 0),
        (
            AccountingKind::Interim,
            values::ACCT_STATUS_TYPE_INTERIM_UPDATE,
            1,
        ),
    ] {
        let mut client = client(config(0, 1));
        account(&mut client, kind, Delivery::Once);
        let packet = verify_accounting_request(&one(&mut client).bytes, SECRET).unwrap();
        expect(&packet, &[(Kind::ACCT_STATUS_TYPE, status.into())]);
        assert_eq!(packet.all(Kind::ACCT_SESSION_TIME).count(), usage);
        assert_eq!(packet.all(Kind::ACCT_INPUT_GIGAWORDS).count(), usage);
        assert_eq!(packet.get(Kind::ACCT_TERMINATE_CAUSE), None);
    }
}

/// Whoever keeps books on requests asks for those that are open: until their outcome has been taken.
#[test]
fn a_question_is_open_until_its_outcome_is_taken() {
    let mut client = client(config(1, 0));
    let open = |client: &Client| client.open_tokens().collect::<Vec<_>>();
    assert_eq!(open(&client), []);
    client.authenticate(ZERO, 7, access("alice"));
    assert_eq!(open(&client), [7]);
    let sent = one(&mut client);
    assert_eq!(open(&client), [7]);
    let answer = reply(&sent, Code::ACCESS_ACCEPT, &[]);
    client.handle(ZERO, sent.socket, sent.to, &answer);
    assert_eq!((open(&client), client.open_requests()), (vec![7], 0));
    drain(&mut client);
    assert_eq!(open(&client), []);
}
