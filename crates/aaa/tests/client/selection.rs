//! Balanced servers: the load, its spread, and what is left of it when a server dies.

use super::*;

fn balanced(authentication: u8, accounting: u8) -> ClientConfig {
    ClientConfig {
        selection: Selection::Balanced,
        ..config(authentication, accounting)
    }
}

/// Sends so many authentications; what was sent.
fn authenticate(client: &mut Client, now: Duration, tokens: core::ops::Range<u64>) -> Vec<Sent> {
    for token in tokens {
        client.authenticate(now, token, access("alice"));
    }
    drain(client).0
}

/// Sends so many records; what was sent.
fn account(client: &mut Client, now: Duration, tokens: core::ops::Range<u64>) -> Vec<Sent> {
    let attributes = client.accounting_attributes(&record(AccountingKind::Start));
    let attributes = attributes.unwrap();
    for token in tokens {
        let slot = client.take_slot().unwrap();
        let delivery = Delivery::UntilRecorded;
        client.account(now, token, slot, attributes.clone(), delivery);
    }
    drain(client).0
}

/// How many of these went to each of the servers whose addresses end so.
fn counts<const N: usize>(sent: &[Sent], servers: [u8; N]) -> [usize; N] {
    servers.map(|last| sent.iter().filter(|s| s.to == address(last)).count())
}

fn answer(client: &mut Client, now: Duration, sent: &Sent, code: Code) {
    let reply = reply(sent, code, &[]);
    client.handle(now, sent.socket, sent.to, &reply);
}

#[test]
fn requests_that_are_answered_at_once_are_spread_evenly() {
    let mut client = client(balanced(3, 0));
    let mut all = Vec::new();
    for token in 0..30 {
        let sent = authenticate(&mut client, ZERO, token..token + 1);
        answer(&mut client, ZERO, &sent[0], Code::ACCESS_ACCEPT);
        drain(&mut client);
        all.extend(sent);
    }
    assert_eq!(counts(&all, [1, 2, 3]), [10, 10, 10]);
}

#[test]
fn a_slow_server_gets_fewer_requests() {
    let mut client = client(balanced(2, 0));
    for sent in authenticate(&mut client, ZERO, 0..20) {
        if sent.to == address(2) {
            answer(&mut client, ZERO, &sent, Code::ACCESS_ACCEPT);
        }
    }
    drain(&mut client);
    // ten are open at the first one
    let sent = authenticate(&mut client, ZERO, 20..30);
    assert_eq!(counts(&sent, [1, 2]), [0, 10]);
    let sent = authenticate(&mut client, ZERO, 30..40);
    assert_eq!(counts(&sent, [1, 2]), [5, 5]);
}

/// They were not sent to the first one.
#[test]
fn requests_that_wait_at_a_full_server_go_to_one_that_gets_room() {
    const WINDOW: u64 = 1024;
    let mut client = client(config(2, 0));
    let sent = authenticate(&mut client, ZERO, 0..2 * WINDOW + 50);
    assert_eq!(counts(&sent, [1, 2]), [WINDOW as usize; 2]);
    for sent in sent.iter().filter(|sent| sent.to == address(2)) {
        answer(&mut client, ZERO, sent, Code::ACCESS_ACCEPT);
    }
    let (more, _) = drain(&mut client);
    assert_eq!(counts(&more, [1, 2]), [0, 50]);
}

#[test]
fn a_dead_server_gets_nothing_and_its_requests_go_to_the_others() {
    let mut client = client(balanced(3, 0));
    let sent = authenticate(&mut client, ZERO, 0..30);
    assert_eq!(counts(&sent, [1, 2, 3]), [10, 10, 10]);
    for sent in sent.iter().filter(|sent| sent.to != address(1)) {
        answer(&mut client, ZERO, sent, Code::ACCESS_ACCEPT);
    }
    let (mut moved, mut now) = (Vec::new(), ZERO);
    while moved.len() < 10 {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
        for sent in drain(&mut client).0 {
            if sent.to != address(1) && !moved.contains(&sent) {
                moved.push(sent); // and not one that is sent again
            }
        }
    }
    assert_eq!(counts(&moved, [2, 3]), [5, 5]);
    let sent = authenticate(&mut client, now, 30..40);
    assert_eq!(counts(&sent, [1, 2, 3]), [0, 5, 5]);
}

#[test]
fn a_server_on_trial_gets_no_more_than_its_share() {
    let mut client = client(balanced(2, 0));
    authenticate(&mut client, ZERO, 0..1);
    let now = Duration::from_secs(100);
    run_dry(&mut client);
    // both have been dead, and one of them answers
    for round in 0..10 {
        for sent in authenticate(&mut client, now, round * 10..round * 10 + 10) {
            if sent.to == address(2) {
                answer(&mut client, now, &sent, Code::ACCESS_ACCEPT);
            }
        }
    }
    let open = client.open_requests();
    assert!(
        open <= 10,
        "{open} wait for the server that does not answer"
    );
}

#[test]
fn records_are_balanced_and_freed_load_counts() {
    let mut client = client(balanced(0, 2));
    let sent = account(&mut client, ZERO, 0..20);
    assert_eq!(counts(&sent, [101, 102]), [10, 10]);
    for sent in sent.iter().filter(|sent| sent.to == address(102)) {
        answer(&mut client, ZERO, sent, Code::ACCOUNTING_RESPONSE);
    }
    while client.poll_output().is_some() {}
    let sent = account(&mut client, ZERO, 20..30);
    assert_eq!(counts(&sent, [101, 102]), [0, 10]);
}

#[test]
fn a_record_that_is_given_up_is_no_load() {
    let mut client = client(balanced(0, 2));
    account(&mut client, ZERO, 0..2);
    let resting = Duration::from_secs(31);
    while client.poll_at().is_some_and(|at| at < resting) {
        client.on_timeout(client.poll_at().unwrap());
    }
    assert_eq!(client.counters().postponed, 2, "both rest");
    drain(&mut client);
    let mut fewer = balanced(0, 2);
    fewer.accounting.remove(0);
    client.reconfigure(resting, fewer);
    client.reconfigure(resting, balanced(0, 2));
    let later = Duration::from_secs(120);
    let sent = account(&mut client, later, 2..12);
    assert_eq!(counts(&sent, [101, 102]), [5, 5]);
}

#[test]
fn the_selection_may_change_while_requests_are_open() {
    let mut client = client(config(2, 0));
    let sent = authenticate(&mut client, ZERO, 0..10);
    assert_eq!(counts(&sent, [1, 2]), [10, 0]);
    client.reconfigure(ZERO, balanced(2, 0));
    let sent = authenticate(&mut client, ZERO, 10..20);
    assert_eq!(counts(&sent, [1, 2]), [0, 10]);
}
