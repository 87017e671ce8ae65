//! Servers that are changed while requests are open.

use super::accounting::{account, answer, drain_records};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The client's configuration with these servers for authentication and accounting.
fn with_servers(authentication: &[u8], accounting: &[u8]) -> ClientConfig {
    let server = |last: &u8| ServerConfig::new(address(*last), Secret::new(SECRET));
    ClientConfig {
        authentication: authentication.iter().map(server).collect(),
        accounting: accounting.iter().map(server).collect(),
        ..config(0, 0)
    }
}

fn accepted(client: &mut Client, now: Duration, sent: &Sent) -> Ended {
    let accept = reply(sent, Code::ACCESS_ACCEPT, &[]);
    client.handle(now, sent.socket, sent.to, &accept);
    drain(client).1
}

fn accept_of(token: u64) -> Ended {
    vec![(token, Outcome::Accept(Box::default()))]
}

#[test]
fn what_a_server_was_asked_that_goes_is_asked_the_next_one_at_once() {
    let mut client = client(with_servers(&[1, 2], &[]));
    client.authenticate(ZERO, 1, access("alice"));
    let first = one(&mut client);
    assert_eq!(first.to, address(1));
    client.reconfigure(SECOND, with_servers(&[2, 3], &[]));
    let second = one(&mut client);
    assert_eq!(second.to, address(2), "without waiting for a time-out");
    // the one that is gone answers nevertheless
    assert_eq!(accepted(&mut client, SECOND, &first), []);
    assert_eq!(client.counters().unexpected_replies, 1);
    assert_eq!(accepted(&mut client, SECOND, &second), accept_of(1));
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}

#[test]
fn what_a_server_was_asked_that_stays_is_neither_asked_again_nor_forgotten() {
    let mut client = client(with_servers(&[1, 2], &[]));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = one(&mut client);
    // it has another place now
    client.reconfigure(SECOND, with_servers(&[3, 2, 1], &[]));
    assert_eq!(drain(&mut client).0.len(), 0);
    let again = loop {
        client.on_timeout(client.poll_at().unwrap());
        let next = one(&mut client);
        if next.to != sent.to {
            break next;
        }
        assert_eq!(next.bytes, sent.bytes, "a repetition is the same datagram");
    };
    assert_eq!(again.to, address(3), "then the first that was not asked");
    let now = Duration::from_secs(20);
    assert_eq!(accepted(&mut client, now, &again), accept_of(1));
}

/// RFC 2865 §3: nothing that was sent under the old secret can be verified with the new one.
#[test]
fn a_server_with_another_secret_is_another_server() {
    let mut client = client(with_servers(&[1], &[]));
    client.authenticate(ZERO, 1, access("alice"));
    let old = one(&mut client);
    let mut changed = with_servers(&[1], &[]);
    changed.authentication[0].secret = Secret::new("another");
    client.reconfigure(SECOND, changed);
    let new = one(&mut client);
    assert_eq!(new.to, old.to);
    verify_access_request(&new.bytes, b"another").unwrap();
    assert_eq!(accepted(&mut client, SECOND, &old), []);
    assert_eq!(client.open_requests(), 1);
}

#[test]
fn without_any_server_left_the_subscriber_is_told_at_once() {
    let mut client = client(with_servers(&[1], &[]));
    client.authenticate(ZERO, 1, access("alice"));
    one(&mut client);
    client.reconfigure(SECOND, with_servers(&[], &[]));
    let nobody = Outcome::Unavailable(Unavailable::NoAnswer);
    assert_eq!(drain(&mut client), (vec![], vec![(1, nobody)]));
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}

/// A server has 256 identifiers on each socket; those who wait for one wait elsewhere when it goes.
#[test]
fn who_waits_for_an_identifier_of_a_server_that_goes_is_asked_elsewhere() {
    let bounded = |servers: &[u8]| ClientConfig {
        max_sockets: 1,
        ..with_servers(servers, &[])
    };
    let mut client = client(bounded(&[1]));
    for token in 0..257 {
        client.authenticate(ZERO, token, access("alice"));
    }
    assert_eq!(drain(&mut client).0.len(), 256);
    client.reconfigure(SECOND, bounded(&[2]));
    let (sent, ended) = drain(&mut client);
    assert_eq!(ended, []);
    assert_eq!(sent.len(), 256);
    assert!(sent.iter().all(|sent| sent.to == address(2)));
    let mut waited = Vec::new();
    for sent in &sent {
        let accept = reply(sent, Code::ACCESS_ACCEPT, &[]);
        client.handle(SECOND, sent.socket, sent.to, &accept);
        waited.extend(drain(&mut client).0);
    }
    let [last] = &waited[..] else {
        panic!("{waited:?}")
    };
    assert_eq!(last.to, address(2));
    assert_eq!(accepted(&mut client, SECOND, last).len(), 1);
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}

/// Whoever corrects the address of a server does not wait for its records for as long as they rest.
#[test]
fn a_record_that_nobody_answered_goes_to_a_new_server_at_once() {
    let mut client = client(with_servers(&[], &[101]));
    account(&mut client, AccountingKind::Start, Delivery::UntilRecorded);
    let mut now = ZERO;
    while client.counters().postponed == 0 {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
    }
    drain_records(&mut client);
    let rests = client.poll_at().unwrap() - now;
    assert!(rests > 20 * SECOND, "{rests:?}");

    client.reconfigure(now, with_servers(&[], &[101]));
    assert_eq!(client.poll_at(), Some(now + rests), "nothing is new");
    client.reconfigure(now, with_servers(&[], &[101, 102]));
    let again = client.poll_at().unwrap();
    assert!(again - now < SECOND, "{:?}", again - now);
    client.on_timeout(again);
    let (sent, _) = drain_records(&mut client);
    assert_eq!(sent[0].to, address(102));
}

#[test]
fn a_record_goes_to_the_next_server_when_its_server_goes() {
    let mut client = client(with_servers(&[], &[101, 102]));
    let start = AccountingKind::Start;
    account(&mut client, start, Delivery::UntilRecorded);
    let (first, _) = drain_records(&mut client);
    assert_eq!(first[0].to, address(101));
    client.reconfigure(SECOND, with_servers(&[], &[102]));
    let (second, _) = drain_records(&mut client);
    assert_eq!(second[0].to, address(102));
    assert_eq!(second[0].bytes, first[0].bytes, "the same record");
    answer(&mut client, SECOND, &first[0]);
    assert_eq!(drain_records(&mut client).1, [], "it is a stranger now");
    answer(&mut client, SECOND, &second[0]);
    assert_eq!(drain_records(&mut client).1, [(1, true)]);
}

#[test]
fn a_record_waits_for_a_server_while_there_is_none() {
    let mut client = client(with_servers(&[], &[101]));
    let stop = AccountingKind::Stop(TerminateCause::UserRequest);
    account(&mut client, stop, Delivery::UntilRecorded);
    drain_records(&mut client);
    client.reconfigure(SECOND, with_servers(&[], &[]));
    for _ in 0..5 {
        let at = client.poll_at().expect("it is not given up");
        client.on_timeout(at);
        assert_eq!(drain_records(&mut client), (vec![], vec![]));
    }
    let now = client.poll_at().unwrap();
    client.reconfigure(now, with_servers(&[], &[103]));
    client.on_timeout(client.poll_at().unwrap());
    let (sent, _) = drain_records(&mut client);
    assert_eq!(sent[0].to, address(103));
    answer(&mut client, now, &sent[0]);
    assert_eq!(drain_records(&mut client).1, [(1, true)]);
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}
