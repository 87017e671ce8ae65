//! The client against servers of the test's own, on a clock of the test's own.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use aaa::{
    AccessRequest, AccountingKind, AccountingRecord, Authentic, Client, ClientConfig, Credentials,
    Line, Nas, Outcome, Output, RejectReason, Secret, ServerConfig, TerminateCause, Traffic,
    Unavailable,
};
use wire::radius::{
    Code, Kind, Packet, Value, reveal_password, values, verify_access_request,
    verify_accounting_request,
};

const SECRET: &[u8] = b"testing123";
const ZERO: Duration = Duration::ZERO;

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 1812))
}

/// A client with so many servers for authentication (192.0.2.1…) and accounting (192.0.2.101…).
fn config(authentication: u8, accounting: u8) -> ClientConfig {
    let server = |last| ServerConfig::new(address(last), Secret::new(SECRET));
    let nas = Nas {
        identifier: "bng1".into(),
        ipv4: Some([192, 0, 2, 200].into()),
        ipv6: Some("2001:db8::200".parse().unwrap()),
    };
    let mut config = ClientConfig::new(nas);
    config.authentication = (1..=authentication).map(server).collect();
    config.accounting = (101..101 + accounting).map(server).collect();
    config
}

fn client(config: ClientConfig) -> Client {
    Client::new(config, [7; 32])
}

fn line() -> Line {
    Line {
        port: Some(0x0064_0007),
        port_id: Some("up1/access0:100.7".into()),
        calling_station: Some("02:00:00:00:00:07".into()),
        called_station: Some("internet".into()),
        circuit_id: Some(b"olt1 eth 1/1:100.7".to_vec()),
        remote_id: Some(b"line 7".to_vec()),
        ..Line::default()
    }
}

fn access(username: &str) -> AccessRequest {
    AccessRequest {
        username: username.into(),
        credentials: Credentials::Pap {
            password: Secret::new("wonderland"),
        },
        acct_session_id: "bng1-0001".into(),
        line: line(),
    }
}

fn record(kind: AccountingKind) -> AccountingRecord {
    AccountingRecord {
        kind,
        username: b"alice".to_vec(),
        acct_session_id: "bng1-0001".into(),
        line: line(),
        class: vec![b"gold".to_vec(), b"second".to_vec()],
        framed_ip: Some([100, 64, 0, 7].into()),
        framed_ipv6_prefix: Some("2001:db8:0:7::/64".parse().unwrap()),
        framed_interface_id: Some(0x0200_0000_0000_0007),
        authentic: Authentic::Radius,
        event_time: 1_700_000_000,
        session_time: Duration::from_secs(61),
        input: Traffic {
            octets: (3 << 32) + 17,
            packets: 5,
        },
        output: Traffic {
            octets: (4 << 32) + 18,
            packets: (1 << 32) + 6,
        },
    }
}

/// Something that the client sent.
#[derive(Clone, Debug)]
struct Sent {
    socket: u16,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// What came out of the client: what it sent, and what has ended.
fn drain(client: &mut Client) -> (Vec<Sent>, Vec<(u64, Outcome)>) {
    let (mut sent, mut done) = (Vec::new(), Vec::new());
    while let Some(output) = client.poll_output() {
        match output {
            Output::Transmit { socket, to, bytes } => sent.push(Sent { socket, to, bytes }),
            Output::Done { token, outcome } => done.push((token, outcome)),
        }
    }
    (sent, done)
}

fn one(client: &mut Client) -> Sent {
    let (mut sent, done) = drain(client);
    assert_eq!((sent.len(), done.len()), (1, 0), "{sent:?} {done:?}");
    sent.remove(0)
}

fn reply(sent: &Sent, code: Code, attributes: &[(Kind, Value)]) -> Vec<u8> {
    let mut packet = Packet::new(code, sent.bytes[1], [0; 16]);
    for (kind, value) in attributes {
        packet.push(*kind, value.clone());
    }
    let authenticator = sent.bytes[4..20].try_into().unwrap();
    packet.emit_response(&authenticator, SECRET).unwrap()
}

/// The outcome of an Access-Request that is answered by this.
fn outcome(code: Code, attributes: &[(Kind, Value)]) -> Outcome {
    let mut client = client(config(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = one(&mut client);
    client.handle(ZERO, sent.socket, sent.to, &reply(&sent, code, attributes));
    let (_, mut done) = drain(&mut client);
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
    done.remove(0).1
}

fn accept(attributes: &[(Kind, Value)]) -> Outcome {
    outcome(Code::ACCESS_ACCEPT, attributes)
}

fn rejected(outcome: Outcome) -> RejectReason {
    match outcome {
        Outcome::Reject(reject) => reject.reason,
        other => panic!("{other:?}"),
    }
}

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
    let expected: [(Kind, Value); 14] = [
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
        (Kind::NAS_PORT, 0x0064_0007.into()),
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
    assert_eq!(packet.attributes.len(), 14 + 2);
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
        (Kind::standard(200), b"not known".into()),
    ]);
    let Outcome::Accept(accept) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(accept.framed_ip, Some([100, 64, 0, 7].into()));
    assert_eq!(accept.framed_ipv6_prefix, Some(prefix));
    assert_eq!(accept.framed_interface_id, Some(7));
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
fn an_accept_that_cannot_be_honoured_as_a_whole_is_a_refusal() {
    let malformed: [(&str, Vec<(Kind, Value)>); 9] = [
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
    for (name, attributes) in malformed {
        assert_eq!(rejected(accept(&attributes)), RejectReason::Malformed(name));
    }
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
    let prefix = |text: &str| {
        (
            Kind::FRAMED_IPV6_PREFIX,
            Value::Ipv6Prefix(text.parse().unwrap()),
        )
    };
    let outcome = accept(&[prefix("2001:db8:1::/64"), prefix("2001:db8:2::/64")]);
    assert_eq!(
        rejected(outcome),
        RejectReason::Unsupported("second Framed-IPv6-Prefix")
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
    client.account(
        ZERO,
        1,
        record(AccountingKind::Stop(TerminateCause::LostCarrier)),
    );
    let sent = one(&mut client);
    let packet = verify_accounting_request(&sent.bytes, SECRET).unwrap();
    let expected: [(Kind, Value); 18] = [
        (Kind::ACCT_STATUS_TYPE, values::ACCT_STATUS_TYPE_STOP.into()),
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
        (Kind::ACCT_DELAY_TIME, 0.into()),
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
    client.handle(
        ZERO,
        sent.socket,
        sent.to,
        &reply(&sent, Code::ACCOUNTING_RESPONSE, &[]),
    );
    assert_eq!(drain(&mut client).1, [(1, Outcome::Recorded)]);
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
        client.account(ZERO, 1, record(kind));
        let packet = verify_accounting_request(&one(&mut client).bytes, SECRET).unwrap();
        expect(&packet, &[(Kind::ACCT_STATUS_TYPE, status.into())]);
        assert_eq!(packet.all(Kind::ACCT_SESSION_TIME).count(), usage);
        assert_eq!(packet.all(Kind::ACCT_INPUT_GIGAWORDS).count(), usage);
        assert_eq!(packet.get(Kind::ACCT_TERMINATE_CAUSE), None);
    }
}

/// Lets the time run until everything has ended; gives what was sent when, and the outcomes.
fn run_dry(client: &mut Client) -> (Vec<(Duration, Sent)>, Vec<(u64, Outcome)>) {
    let (sent, mut outcomes) = drain(client);
    let mut all: Vec<(Duration, Sent)> = sent.into_iter().map(|sent| (ZERO, sent)).collect();
    while let Some(now) = client.poll_at() {
        client.on_timeout(now);
        let (sent, done) = drain(client);
        all.extend(sent.into_iter().map(|sent| (now, sent)));
        outcomes.extend(done);
    }
    (all, outcomes)
}

#[test]
fn an_access_request_is_sent_again_unchanged_and_ever_slower() {
    let mut config = config(1, 0);
    config.authentication[0].retries = 5;
    let mut client = client(config);
    client.authenticate(ZERO, 1, access("alice"));
    let (sent, outcomes) = run_dry(&mut client);
    assert_eq!(outcomes, [(1, Outcome::Unavailable(Unavailable::NoAnswer))]);
    assert_eq!(sent.len(), 6);
    assert!(sent.iter().all(|(_, again)| again.bytes == sent[0].1.bytes));
    let gaps: Vec<f64> = sent
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64())
        .collect();
    assert!((1.8..=2.2).contains(&gaps[0]), "{gaps:?}");
    for pair in gaps[..3].windows(2) {
        assert!((1.9..=2.1).contains(&(pair[1] / pair[0])), "{gaps:?}");
    }
    assert!((14.4..=17.6).contains(&gaps[4]), "at most MRT: {gaps:?}");
    assert_eq!(client.counters().retransmissions, 5);
    assert_eq!(client.counters().unanswered, 1);
}

#[test]
fn a_record_sent_again_later_takes_a_new_identifier_and_any_answer_counts() {
    for answered in 0..3 {
        let mut client = client(config(0, 1));
        client.account(ZERO, 1, record(AccountingKind::Start));
        let mut sent = vec![one(&mut client)];
        for _ in 0..2 {
            client.on_timeout(client.poll_at().unwrap());
            sent.push(one(&mut client));
        }
        let identifiers: HashSet<u8> = sent.iter().map(|sent| sent.bytes[1]).collect();
        assert_eq!(identifiers.len(), 3);
        let delays = sent.iter().map(|sent| {
            let packet = verify_accounting_request(&sent.bytes, SECRET).unwrap();
            packet.get(Kind::ACCT_DELAY_TIME).cloned().unwrap()
        });
        let delays: Vec<Value> = delays.collect();
        assert_eq!(delays[0], 0.into());
        assert!(matches!(delays[1], Value::Integer(1..=2)), "{delays:?}");
        assert!(matches!(delays[2], Value::Integer(5..=6)), "{delays:?}");
        let chosen = &sent[answered];
        client.handle(
            ZERO,
            0,
            chosen.to,
            &reply(chosen, Code::ACCOUNTING_RESPONSE, &[]),
        );
        assert_eq!(drain(&mut client).1, [(1, Outcome::Recorded)]);
        assert_eq!(client.poll_at(), None);
    }
}

#[test]
fn a_record_sent_again_within_the_second_is_the_same() {
    let mut config = config(0, 1);
    config.accounting[0].timeout = Duration::from_millis(100);
    let mut client = client(config);
    client.account(ZERO, 1, record(AccountingKind::Start));
    let (sent, _) = run_dry(&mut client);
    assert_eq!(sent[0].1.bytes, sent[1].1.bytes);
}

#[test]
fn the_next_server_is_asked_anew_and_the_dead_one_passed_over_for_its_time() {
    let mut client = client(config(2, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let first = one(&mut client);
    assert_eq!(first.to, address(1));
    let second = loop {
        client.on_timeout(client.poll_at().unwrap());
        let sent = one(&mut client);
        if sent.to == address(2) {
            break sent;
        }
        assert_eq!(sent.bytes, first.bytes);
    };
    assert_ne!(
        first.bytes[4..20],
        second.bytes[4..20],
        "another authenticator"
    );
    let died = Duration::from_secs(14);
    client.handle(
        died,
        second.socket,
        second.to,
        &reply(&second, Code::ACCESS_ACCEPT, &[]),
    );
    assert_eq!(drain(&mut client).1, [(1, Outcome::Accept(Box::default()))]);
    assert_eq!(
        client
            .servers(died)
            .map(|(_, alive)| alive)
            .collect::<Vec<_>>(),
        [false, true]
    );
    client.authenticate(died, 2, access("bob"));
    assert_eq!(one(&mut client).to, address(2));
    client.authenticate(died + Duration::from_secs(61), 3, access("carol"));
    assert_eq!(one(&mut client).to, address(1));
    assert_eq!(
        (client.counters().deaths, client.counters().failovers),
        (1, 1)
    );
}

#[test]
fn when_all_are_dead_they_are_asked_all_the_same() {
    let mut client = client(config(2, 0));
    client.authenticate(ZERO, 1, access("alice"));
    run_dry(&mut client);
    let now = Duration::from_secs(30);
    assert!(client.servers(now).all(|(_, alive)| !alive));
    client.authenticate(now, 2, access("alice"));
    let sent = one(&mut client);
    client.handle(
        now,
        sent.socket,
        sent.to,
        &reply(&sent, Code::ACCESS_ACCEPT, &[]),
    );
    assert_eq!(drain(&mut client).1, [(2, Outcome::Accept(Box::default()))]);
    assert_eq!(
        client.servers(now).filter(|(_, alive)| *alive).count(),
        1,
        "it lives again"
    );
}

#[test]
fn a_server_that_answers_others_is_not_dead() {
    let mut client = client(config(1, 0));
    client.authenticate(ZERO, 1, access("ignored"));
    one(&mut client);
    client.authenticate(Duration::from_secs(1), 2, access("alice"));
    let sent = one(&mut client);
    client.handle(
        Duration::from_secs(1),
        0,
        sent.to,
        &reply(&sent, Code::ACCESS_ACCEPT, &[]),
    );
    run_dry(&mut client);
    assert_eq!(
        (client.counters().unanswered, client.counters().deaths),
        (1, 0)
    );
}

#[test]
fn replies_that_prove_nothing_are_counted_and_ignored() {
    let mut client = client(config(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = one(&mut client);
    let good = reply(&sent, Code::ACCESS_ACCEPT, &[(Kind::CLASS, b"gold".into())]);
    for at in (0..good.len()).filter(|&at| at != 1) {
        let mut wrong = good.clone();
        wrong[at] ^= 1;
        client.handle(ZERO, sent.socket, sent.to, &wrong);
    }
    for end in 2..good.len() {
        client.handle(ZERO, sent.socket, sent.to, &good[..end]);
    }
    assert_eq!(
        client.counters().unauthentic_replies,
        2 * good.len() as u64 - 3
    );
    client.handle(ZERO, sent.socket, address(9), &good);
    client.handle(ZERO, sent.socket + 1, sent.to, &good);
    let mut other_identifier = good.clone();
    other_identifier[1] ^= 1;
    client.handle(ZERO, sent.socket, sent.to, &other_identifier);
    assert_eq!(client.counters().unexpected_replies, 3);
    let mismatched = reply(&sent, Code::ACCOUNTING_RESPONSE, &[]);
    client.handle(ZERO, sent.socket, sent.to, &mismatched);
    assert_eq!(client.counters().mismatched_replies, 1);
    assert_eq!(drain(&mut client).1, []);
    client.handle(ZERO, sent.socket, sent.to, &good);
    assert_eq!(client.counters().accepts, 1);
    client.handle(ZERO, sent.socket, sent.to, &good);
    assert_eq!(client.counters().unexpected_replies, 4, "a repeated reply");
}

#[test]
fn a_reply_without_message_authenticator_is_for_old_servers_only() {
    for required in [true, false] {
        let mut config = config(1, 0);
        config.authentication[0].require_message_authenticator = required;
        let mut client = client(config);
        client.authenticate(ZERO, 1, access("alice"));
        let sent = one(&mut client);
        let mut old = vec![2, sent.bytes[1], 0, 20];
        use md5::{Digest, Md5};
        let digest = Md5::new()
            .chain_update(&old)
            .chain_update(&sent.bytes[4..20]);
        old.extend(digest.chain_update(SECRET).finalize());
        client.handle(ZERO, sent.socket, sent.to, &old);
        let accepted = drain(&mut client).1.len();
        assert_eq!(accepted == 1, !required);
        assert_eq!(client.counters().unauthentic_replies == 1, required);
    }
}

#[test]
fn one_secret_is_not_good_for_another_server() {
    let mut config = config(2, 0);
    config.authentication[1].secret = Secret::new("another");
    config.authentication[1].address = config.authentication[0].address;
    let mut client = client(config);
    client.authenticate(ZERO, 1, access("alice"));
    let first = one(&mut client);
    assert!(verify_access_request(&first.bytes, SECRET).is_ok());
    let second = loop {
        client.on_timeout(client.poll_at().unwrap());
        let sent = one(&mut client);
        if sent.bytes != first.bytes {
            break sent;
        }
    };
    assert!(verify_access_request(&second.bytes, b"another").is_ok());
    client.handle(
        ZERO,
        second.socket,
        second.to,
        &reply(&second, Code::ACCESS_ACCEPT, &[]),
    );
    assert_eq!(client.counters().unauthentic_replies, 1);
}

#[test]
fn further_sockets_give_further_identifiers_and_the_rest_waits() {
    let mut config = config(1, 0);
    config.max_sockets = 2;
    let mut client = client(config);
    for token in 0..600 {
        client.authenticate(ZERO, token, access("alice"));
    }
    let (sent, done) = drain(&mut client);
    assert!(done.is_empty());
    let identifiers: HashSet<(u16, u8)> = sent
        .iter()
        .map(|sent| (sent.socket, sent.bytes[1]))
        .collect();
    assert_eq!((sent.len(), identifiers.len()), (512, 512));
    assert!(sent.iter().all(|sent| sent.socket < 2));
    let mut answered = BTreeMap::new();
    let mut open = sent;
    while let Some(sent) = open.pop() {
        client.handle(
            ZERO,
            sent.socket,
            sent.to,
            &reply(&sent, Code::ACCESS_ACCEPT, &[]),
        );
        let (more, done) = drain(&mut client);
        open.extend(more);
        answered.extend(done);
    }
    assert_eq!(answered.len(), 600);
    assert!(
        answered
            .values()
            .all(|outcome| matches!(outcome, Outcome::Accept(_)))
    );
    assert_eq!(client.open_requests(), 0);
}

#[test]
fn those_who_wait_at_a_server_that_dies_go_to_the_next() {
    let mut config = config(2, 0);
    config.max_sockets = 1;
    let mut client = client(config);
    for token in 0..400 {
        client.authenticate(ZERO, token, access("alice"));
    }
    let mut answered = 0;
    let (_, _) = drain(&mut client);
    while let Some(now) = client.poll_at() {
        client.on_timeout(now);
        let (mut sent, _) = drain(&mut client);
        while let Some(next) = sent.pop() {
            if next.to == address(2) {
                client.handle(
                    now,
                    next.socket,
                    next.to,
                    &reply(&next, Code::ACCESS_ACCEPT, &[]),
                );
                let (more, done) = drain(&mut client);
                answered += done.len();
                sent.extend(more);
            }
        }
        assert!(
            now < Duration::from_secs(20),
            "nobody waits for a dead server"
        );
    }
    assert_eq!((answered, client.open_requests()), (400, 0));
}

#[test]
fn a_full_table_a_missing_server_and_what_does_not_fit_are_told_at_once() {
    let mut limited = config(1, 0);
    limited.max_requests = 2;
    let mut client = client(limited);
    for token in 0..3 {
        client.authenticate(ZERO, token, access("alice"));
    }
    let (sent, done) = drain(&mut client);
    assert_eq!(sent.len(), 2);
    assert_eq!(done, [(2, Outcome::Unavailable(Unavailable::QueueFull))]);
    assert_eq!(client.counters().queue_full, 1);
    client.account(ZERO, 4, record(AccountingKind::Start));
    assert_eq!(
        drain(&mut client).1,
        [(4, Outcome::Unavailable(Unavailable::NoServer))]
    );

    let mut client = Client::new(config(1, 0), [7; 32]);
    client.authenticate(ZERO, 5, access(&"a".repeat(254)));
    let (sent, done) = drain(&mut client);
    assert!(sent.is_empty());
    assert!(matches!(
        done[..],
        [(5, Outcome::Unavailable(Unavailable::Unsendable(_)))]
    ));
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}

#[test]
fn another_seed_gives_other_authenticators() {
    let authenticator = |seed| {
        let mut client = Client::new(config(1, 0), seed);
        client.authenticate(ZERO, 1, access("alice"));
        one(&mut client).bytes[4..20].to_vec()
    };
    assert_ne!(authenticator([1; 32]), authenticator([2; 32]));
}

#[test]
fn nothing_secret_is_shown() {
    let shown = format!("{:?} {:?}", access("alice"), config(1, 1));
    assert!(shown.contains("PppoeOverQinq"));
    assert!(!shown.contains("wonderland") && !shown.contains("testing123"));
}
