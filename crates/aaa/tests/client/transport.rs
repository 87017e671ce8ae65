//! Retransmission, failover, identifiers, and replies that are not to be believed.

use super::*;

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
    let out = client
        .authentication_servers(died)
        .map(|server| server.out_since);
    assert!(matches!(out.collect::<Vec<_>>()[..], [Some(_), None]));
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
    let mut client = Client::new(config(0, 1), [7; 32]);
    client.authenticate(ZERO, 4, access("alice"));
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

#[test]
fn what_a_server_was_asked_and_how_it_did_is_told() {
    let mut client = client(config(2, 0));
    client.authenticate(ZERO, 1, access("alice"));
    let sent = one(&mut client);
    let at = Duration::from_millis(40);
    let accept = reply(&sent, Code::ACCESS_ACCEPT, &[]);
    client.handle(at, sent.socket, sent.to, &accept);
    drain(&mut client);
    let first = client.authentication_servers(at).next().unwrap();
    assert_eq!((first.address, first.alive), (address(1), true));
    assert_eq!((first.requests, first.retransmissions), (1, 0));
    assert_eq!((first.answers, first.timeouts), (1, 0));
    assert_eq!((first.round_trip, first.out_since), (Some(at), None));

    client.authenticate(Duration::from_secs(1), 2, access("bob"));
    run_dry(&mut client);
    let now = Duration::from_secs(60);
    let [first, second]: [_; 2] = client
        .authentication_servers(now)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let retries = config(2, 0).authentication[0].retries.into();
    assert_eq!((first.requests, first.retransmissions), (2, retries));
    assert_eq!((first.answers, first.timeouts), (1, 1));
    assert_eq!(first.round_trip, Some(at), "of the last that was answered");
    assert!(
        first
            .out_since
            .is_some_and(|since| since > at && since < now)
    );
    assert_eq!((second.requests, second.timeouts), (1, 1));
    assert_eq!(client.accounting_servers(now).count(), 0);
}

/// A server that answers too late is asked for less at a time; what was not sent yet can be withdrawn, and what waits goes out with each
/// answer.
#[test]
fn a_server_that_is_late_gets_fewer_requests_at_a_time() {
    let mut client = client(config(1, 0));
    (0..3000).for_each(|token| client.authenticate(ZERO, token, access("alice")));
    let (mut sent, _) = drain(&mut client);
    assert_eq!(sent.len(), 1024);
    // nothing is answered in time: half of it at the first repetitions
    let repeated = client.poll_at().unwrap();
    client.on_timeout(repeated);
    drain(&mut client);
    for request in sent.drain(..600) {
        let bytes = reply(&request, Code::ACCESS_ACCEPT, &[]);
        client.handle(repeated, request.socket, request.to, &bytes);
    }
    let (more, done) = drain(&mut client);
    assert_eq!(done.len(), 600);
    assert!((80..150).contains(&more.len()), "{}", more.len());
    let open = client.open_requests();
    assert!(!client.withdraw_authentication(700), "it was sent");
    assert!(
        !client.withdraw_authentication(2999),
        "the latest goes first"
    );
    assert!(client.withdraw_authentication(1024));
    assert!(!client.withdraw_authentication(1024), "once");
    assert!(!client.open_tokens().any(|token| token == 1024));
    assert_eq!(client.counters().withdrawn, 1);
    assert_eq!(client.open_requests(), open - 1, "it makes room at once");
}
