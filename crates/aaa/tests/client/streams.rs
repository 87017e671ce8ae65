//! Servers over TCP and TLS: identifiers of connections, connections that end or cannot be opened, packets that close them.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const REFUSED: &str = "connection refused";

/// What came out of the client.
#[derive(Default)]
struct Drained {
    sent: Vec<(Connection, Vec<u8>)>,
    closed: Vec<Connection>,
    done: Ended,
    accounted: Vec<(u64, bool)>,
}

fn drain(client: &mut Client) -> Drained {
    let mut all = Drained::default();
    while let Some(output) = client.poll_output() {
        match output {
            Output::Send { connection, bytes } => all.sent.push((connection, bytes)),
            Output::Close { connection } => all.closed.push(connection),
            Output::Done { token, outcome } => all.done.push((token, outcome)),
            Output::Accounted { token, recorded } => all.accounted.push((token, recorded)),
            Output::Transmit { .. } => panic!("a datagram"),
        }
    }
    all
}

fn streams(authentication: u8, accounting: u8) -> ClientConfig {
    let mut config = config(authentication, accounting);
    let servers = config
        .authentication
        .iter_mut()
        .chain(&mut config.accounting);
    servers.for_each(|server| server.transport = Transport::Stream { settings: 1 });
    config
}

fn connection(role: Role, last: u8, number: u16) -> Connection {
    Connection {
        role,
        server: address(last),
        number,
    }
}

fn auth(last: u8, number: u16) -> Connection {
    connection(Role::Authentication, last, number)
}

fn acct(last: u8, number: u16) -> Connection {
    connection(Role::Accounting, last, number)
}

fn answer(client: &mut Client, now: Duration, sent: &(Connection, Vec<u8>), code: Code) {
    let mut packet = Packet::new(code, sent.1[1], [0; 16]);
    if code == Code::ACCESS_ACCEPT {
        packet.push(Kind::SESSION_TIMEOUT, 60);
    }
    let authenticator = sent.1[4..20].try_into().unwrap();
    let reply = packet.emit_response(&authenticator, SECRET).unwrap();
    client.receive(now, sent.0, &reply);
}

fn account(client: &mut Client, now: Duration, token: u64, delivery: Delivery) {
    let attributes = client.accounting_attributes(&record(AccountingKind::Start));
    let slot = client.take_slot().unwrap();
    client.account(now, token, slot, attributes.unwrap(), delivery);
}

fn tokens(done: &Ended) -> Vec<u64> {
    let mut tokens: Vec<u64> = done.iter().map(|(token, _)| *token).collect();
    tokens.sort_unstable();
    tokens
}

#[test]
fn nothing_is_repeated_on_a_connection_and_the_server_has_as_long_as_over_udp() {
    let mut client = client(streams(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    assert_eq!(drain(&mut client).sent.len(), 1);
    let at = client.poll_at().unwrap();
    let (least, most) = (Duration::from_millis(12_600), Duration::from_millis(15_400));
    assert!((least..=most).contains(&at), "2, 4 and 8 seconds: {at:?}");
    client.on_timeout(at);
    let after = drain(&mut client);
    assert!(after.sent.is_empty());
    assert_eq!(after.closed, [auth(1, 0)], "a server that is dead");
    assert_eq!(
        after.done,
        [(1, Outcome::Unavailable(Unavailable::NoAnswer))]
    );
    assert_eq!(
        (client.counters().retransmissions, client.counters().deaths),
        (0, 1)
    );
}

#[test]
fn each_connection_has_256_identifiers_and_authentication_shares_none_with_accounting() {
    let mut config = streams(1, 0);
    // one port for both, as over TLS
    config.accounting = config.authentication.clone();
    let mut client = client(config);
    for token in 0..300 {
        client.authenticate(ZERO, token, access("alice"));
    }
    account(&mut client, ZERO, 1000, Delivery::UntilRecorded);
    let sent = drain(&mut client).sent;
    let on = |wanted: Connection| sent.iter().filter(move |(on, _)| *on == wanted);
    assert_eq!((on(auth(1, 0)).count(), on(auth(1, 1)).count()), (256, 44));
    let identifiers: HashSet<u8> = on(auth(1, 0)).map(|(_, bytes)| bytes[1]).collect();
    assert_eq!(identifiers.len(), 256);
    let record = sent.last().unwrap().clone();
    assert_eq!(record.0.role, Role::Accounting);

    for sent in &sent[..300] {
        answer(&mut client, ZERO, sent, Code::ACCESS_ACCEPT);
    }
    answer(&mut client, ZERO, &record, Code::ACCOUNTING_RESPONSE);
    let after = drain(&mut client);
    assert_eq!(tokens(&after.done), (0..300).collect::<Vec<_>>());
    assert_eq!(after.accounted, [(1000, true)]);
    assert_eq!(client.open_requests(), 0);
}

#[test]
fn requests_of_a_connection_that_ends_are_sent_again_on_another_one() {
    let mut client = client(streams(2, 1));
    client.authenticate(ZERO, 1, access("alice"));
    let first = drain(&mut client).sent.remove(0);
    answer(&mut client, ZERO, &first, Code::ACCESS_ACCEPT);
    client.authenticate(ZERO, 2, access("bob"));
    account(&mut client, ZERO, 10, Delivery::UntilRecorded);
    let sent = drain(&mut client).sent;
    answer(&mut client, ZERO, &sent[1], Code::ACCOUNTING_RESPONSE);
    account(&mut client, ZERO, 11, Delivery::Once);
    let record = drain(&mut client).sent.remove(0);

    client.on_closed(SECOND, sent[0].0, "the server closed the connection");
    client.on_closed(SECOND, record.0, "the server closed the connection");
    let again = drain(&mut client).sent;
    assert_eq!(again.len(), 2);
    assert_eq!(again[0].0, auth(1, 0), "the same server");
    assert_ne!(again[0].1[4..20], sent[0].1[4..20], "another authenticator");
    assert_eq!(again[1], record, "a record stays as it is");
    answer(&mut client, SECOND, &again[0], Code::ACCESS_ACCEPT);
    answer(&mut client, SECOND, &again[1], Code::ACCOUNTING_RESPONSE);
    let after = drain(&mut client);
    assert_eq!(
        (tokens(&after.done), after.accounted),
        (vec![2], vec![(11, true)])
    );
    assert_eq!(client.counters().deaths, 0);
    assert_eq!(client.counters().connection_failures, 0);
}

#[test]
fn a_request_that_ends_every_connection_goes_to_the_next_server_at_last() {
    let mut client = client(streams(2, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let first = drain(&mut client).sent.remove(0);
    client.authenticate(ZERO, 2, access("mallory"));
    let mut poison = drain(&mut client).sent.remove(0);
    answer(&mut client, ZERO, &first, Code::ACCESS_ACCEPT);
    let mut count = 0;
    while poison.0.server == address(1) {
        client.on_closed(ZERO, poison.0, "the server closed the connection");
        poison = drain(&mut client).sent.remove(0);
        // others are answered on each new connection
        client.authenticate(ZERO, 3, access("bob"));
        let other = drain(&mut client).sent.remove(0);
        answer(&mut client, ZERO, &other, Code::ACCESS_ACCEPT);
        drain(&mut client);
        count += 1;
    }
    assert_eq!(count, 3, "`retries` times again, and no more");
}

#[test]
fn a_server_that_cannot_be_connected_to_is_passed_over_and_the_reason_is_told() {
    let mut client = client(streams(2, 2));
    client.authenticate(ZERO, 1, access("alice"));
    account(&mut client, ZERO, 10, Delivery::UntilRecorded);
    let sent = drain(&mut client).sent;
    client.on_closed(ZERO, sent[0].0, REFUSED);
    client.on_closed(ZERO, sent[1].0, REFUSED);
    let next = drain(&mut client).sent;
    assert_eq!((next[0].0, next[1].0.server), (auth(2, 0), address(102)));
    let servers: Vec<_> = client.authentication_servers(ZERO).collect();
    assert_eq!(servers[0].trouble.as_deref(), Some(REFUSED));
    assert_eq!((servers[0].alive, &servers[1].trouble), (false, &None));
    let servers: Vec<_> = client.accounting_servers(ZERO).collect();
    assert_eq!(servers[0].trouble.as_deref(), Some(REFUSED));
    assert_eq!(client.counters().connection_failures, 2);

    let later = Duration::from_secs(61);
    client.authenticate(later, 2, access("bob"));
    let tried = drain(&mut client).sent.remove(0);
    assert_eq!(tried.0, auth(1, 0), "after its dead time");
    answer(&mut client, later, &tried, Code::ACCESS_ACCEPT);
    let first = client.authentication_servers(later).next().unwrap();
    assert_eq!((first.alive, first.trouble), (true, None));
}

#[test]
fn attempts_to_connect_are_ever_rarer_and_requests_wait_for_the_next_one() {
    let mut client = client(streams(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let mut attempts = vec![ZERO];
    let mut now = ZERO;
    let done = loop {
        let out = drain(&mut client);
        if !out.done.is_empty() {
            break out.done;
        }
        for (connection, _) in out.sent {
            attempts.push(now);
            client.on_closed(now, connection, REFUSED);
        }
        if let Some(at) = client.poll_at() {
            now = at;
            client.on_timeout(now);
        }
    };
    assert_eq!(done, [(1, Outcome::Unavailable(Unavailable::NoAnswer))]);
    assert!(now <= 14 * SECOND, "as long as for an answer: {now:?}");
    let gaps: Vec<f64> = attempts[1..]
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64())
        .collect();
    assert!((3..=5).contains(&gaps.len()), "{gaps:?}");
    for (gap, longest) in gaps.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]) {
        assert!((longest / 2.0..=longest).contains(gap), "{gaps:?}");
    }
    // and one that comes before the next attempt waits, too
    client.authenticate(now, 2, access("bob"));
    assert!(drain(&mut client).sent.is_empty());
}

#[test]
fn a_request_that_waited_is_answered_when_the_server_is_back() {
    let mut client = client(streams(1, 0));
    client.authenticate(ZERO, 1, access("alice"));
    client.on_closed(ZERO, auth(1, 0), REFUSED);
    let out = drain(&mut client);
    assert_eq!((out.sent.len(), out.done.len()), (1, 0));
    let now = client.poll_at().unwrap();
    client.on_timeout(now);
    let sent = drain(&mut client).sent.remove(0);
    answer(&mut client, now, &sent, Code::ACCESS_ACCEPT);
    assert_eq!(tokens(&drain(&mut client).done), [1]);
    assert_eq!(client.poll_at(), None);
}

#[test]
fn one_more_connection_that_is_refused_takes_nothing_from_those_that_work() {
    let mut client = client(streams(1, 0));
    for token in 0..300 {
        client.authenticate(ZERO, token, access("alice"));
    }
    let sent = drain(&mut client).sent;
    answer(&mut client, SECOND, &sent[0], Code::ACCESS_ACCEPT);
    client.on_closed(SECOND, auth(1, 1), "too many connections");
    assert!(client.servers(SECOND).all(|(_, alive)| alive));
    let out = drain(&mut client);
    assert!(out.closed.is_empty());
    client.authenticate(SECOND, 1000, access("bob"));
    assert_eq!(drain(&mut client).sent.len(), 1, "it is asked all the same");
}

#[test]
fn a_record_waits_for_ever_while_no_server_can_be_connected_to() {
    let mut client = client(streams(0, 1));
    account(&mut client, ZERO, 1, Delivery::UntilRecorded);
    let first = drain(&mut client).sent.remove(0);
    client.on_closed(ZERO, first.0, REFUSED);
    let mut attempts = 0;
    let mut now = ZERO;
    while now < 3600 * SECOND {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
        for (connection, bytes) in drain(&mut client).sent {
            assert_eq!(bytes, first.1);
            attempts += 1;
            client.on_closed(now, connection, REFUSED);
        }
    }
    assert!(
        (30..=60).contains(&attempts),
        "about once in its dead time: {attempts}"
    );
    let sent = loop {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
        if let Some(sent) = drain(&mut client).sent.pop() {
            break sent;
        }
    };
    answer(&mut client, now, &sent, Code::ACCOUNTING_RESPONSE);
    assert_eq!(drain(&mut client).accounted, [(1, true)]);
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}

#[test]
fn a_packet_that_is_not_authentic_or_malformed_closes_the_connection_and_a_late_one_does_not() {
    let mut client = client(streams(2, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = drain(&mut client).sent.remove(0);
    let (connection, bytes) = &sent;
    // an identifier that is not in use
    let mut late = Packet::new(Code::ACCESS_ACCEPT, bytes[1].wrapping_add(7), [0; 16]);
    late.push(Kind::SESSION_TIMEOUT, 60);
    let late = late.emit_response(&[1; 16], SECRET).unwrap();
    client.receive(ZERO, *connection, &late);
    assert!(drain(&mut client).closed.is_empty());
    assert_eq!(client.counters().unexpected_replies, 1);
    let mut wrong = Packet::new(Code::ACCESS_ACCEPT, bytes[1], [0; 16]);
    wrong.push(Kind::SESSION_TIMEOUT, 60);
    let authenticator = bytes[4..20].try_into().unwrap();
    let wrong = wrong.emit_response(&authenticator, b"other").unwrap();
    client.receive(ZERO, *connection, &wrong);
    let out = drain(&mut client);
    assert_eq!(out.closed, [*connection]);
    assert_eq!(out.sent[0].0, auth(2, 0), "and the next server is asked");
    let first = client.authentication_servers(ZERO).next().unwrap();
    assert!(first.trouble.unwrap().contains("`secret-key`"));
    // attributes that do not fill the packet
    let mut malformed = vec![2, 99, 0, 22];
    malformed.extend([0; 16]);
    malformed.extend([27, 9]);
    client.receive(ZERO, auth(2, 0), &malformed);
    assert_eq!(drain(&mut client).closed, [auth(2, 0)]);
}

#[test]
fn another_server_is_none_that_may_answer() {
    let mut client = client(streams(2, 1));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = drain(&mut client).sent.remove(0);
    for other in [auth(2, 0), auth(1, 1), acct(1, 0), acct(101, 0)] {
        answer(
            &mut client,
            ZERO,
            &(other, sent.1.clone()),
            Code::ACCESS_ACCEPT,
        );
        client.on_closed(ZERO, other, REFUSED);
    }
    let authenticator = sent.1[4..20].try_into().unwrap();
    let reply = Packet::new(Code::ACCESS_ACCEPT, sent.1[1], [0; 16]);
    let reply = reply.emit_response(&authenticator, SECRET).unwrap();
    client.handle(ZERO, 0, address(1), &reply);
    let out = drain(&mut client);
    assert!(out.done.is_empty() && out.sent.is_empty());
    assert_eq!(client.open_requests(), 1);
}

#[test]
fn servers_with_other_settings_are_other_servers() {
    let mut client = client(streams(1, 1));
    client.authenticate(ZERO, 1, access("alice"));
    account(&mut client, ZERO, 10, Delivery::UntilRecorded);
    let before = drain(&mut client).sent;
    client.reconfigure(ZERO, streams(1, 1));
    let same = drain(&mut client);
    assert!(same.closed.is_empty() && same.sent.is_empty());
    let mut other = streams(1, 1);
    let servers = other.authentication.iter_mut().chain(&mut other.accounting);
    servers.for_each(|server| server.transport = Transport::Stream { settings: 2 });
    client.reconfigure(ZERO, other);
    let out = drain(&mut client);
    assert_eq!(out.closed, [before[0].0, before[1].0]);
    let again: Vec<Connection> = out.sent.iter().map(|(on, _)| *on).collect();
    assert_eq!(again, [before[0].0, before[1].0], "at once");
}

#[test]
fn a_dead_server_is_probed_on_a_connection() {
    let mut config = streams(1, 1);
    config.authentication[0].status_interval = Some(10 * SECOND);
    config.authentication[0].dead_time = 3600 * SECOND;
    let mut client = client(config);
    client.authenticate(ZERO, 1, access("alice"));
    let (mut now, mut probes) = (ZERO, 0);
    let last = loop {
        let sent = drain(&mut client).sent;
        probes += sent.iter().filter(|(_, bytes)| bytes[0] == 12).count();
        if probes == 3 {
            break sent[0].clone();
        }
        for (connection, _) in sent {
            client.on_closed(now, connection, REFUSED);
        }
        now = client.poll_at().unwrap();
        client.on_timeout(now);
    };
    assert!(now < 40 * SECOND, "{now:?}");
    answer(&mut client, now, &last, Code::ACCESS_ACCEPT);
    let first = client.authentication_servers(now).next().unwrap();
    assert_eq!((first.alive, first.trouble), (true, None));
}
