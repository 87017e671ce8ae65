//! Delivery of accounting records: the same datagram until a server has it, over all servers and lives of the client.

use super::*;

const START: AccountingKind = AccountingKind::Start;

/// Hands over a record under token 1, in a slot of its own.
pub fn account(client: &mut Client, kind: AccountingKind, delivery: Delivery) -> Slot {
    let attributes = client.accounting_attributes(&record(kind)).unwrap();
    let slot = client.take_slot().unwrap();
    client.account(ZERO, 1, slot, attributes, delivery);
    slot
}

/// What the client sent, and the records of which the delivery has ended.
pub fn drain_records(client: &mut Client) -> (Vec<Sent>, Vec<(u64, bool)>) {
    let (mut sent, mut ended) = (Vec::new(), Vec::new());
    while let Some(output) = client.poll_output() {
        match output {
            Output::Transmit { socket, to, bytes } => sent.push(Sent { socket, to, bytes }),
            Output::Accounted { token, recorded } => ended.push((token, recorded)),
            other => panic!("{other:?}"),
        }
    }
    (sent, ended)
}

/// Everything that is sent until `end`.
fn run_until(client: &mut Client, end: Duration) -> Vec<(Duration, Sent)> {
    let mut all = Vec::new();
    let mut now = ZERO;
    loop {
        let (sent, ended) = drain_records(client);
        assert_eq!(ended, []);
        all.extend(sent.into_iter().map(|sent| (now, sent)));
        match client.poll_at().filter(|at| *at <= end) {
            Some(at) => now = at,
            None => return all,
        }
        client.on_timeout(now);
    }
}

pub fn answer(client: &mut Client, now: Duration, sent: &Sent) {
    let reply = reply(sent, Code::ACCOUNTING_RESPONSE, &[]);
    client.handle(now, sent.socket, sent.to, &reply);
}

#[test]
fn an_answer_to_another_question_is_none() {
    let mut client = client(config(0, 1));
    account(&mut client, START, Delivery::UntilRecorded);
    let sent = drain_records(&mut client).0.remove(0);
    let wrong = reply(&sent, Code::ACCESS_ACCEPT, &[]);
    client.handle(ZERO, sent.socket, sent.to, &wrong);
    assert_eq!(drain_records(&mut client).1, []);
    assert_eq!(client.counters().mismatched_replies, 1);
    answer(&mut client, ZERO, &sent);
    assert_eq!(drain_records(&mut client).1, [(1, true)]);
}

#[test]
fn a_record_is_the_same_datagram_until_a_server_has_it() {
    let minutes = Duration::from_secs(600);
    for answered in [0, 2, 8] {
        let mut client = client(config(0, 1));
        account(&mut client, START, Delivery::UntilRecorded);
        let sent = run_until(&mut client, minutes);
        assert!((12..30).contains(&sent.len()), "{} times", sent.len());
        assert!(sent.iter().all(|(_, s)| s.bytes == sent[0].1.bytes));
        verify_accounting_request(&sent[0].1.bytes, SECRET).unwrap();
        assert!(sent[3].0 - sent[2].0 >= Duration::from_secs(50), "it rests");
        assert!(client.counters().postponed >= 4);
        answer(&mut client, minutes, &sent[answered].1);
        assert_eq!(drain_records(&mut client).1, [(1, true)]);
        assert_eq!((client.poll_at(), client.open_requests()), (None, 0));
    }
}

#[test]
fn every_server_is_asked_and_a_late_answer_of_the_first_counts() {
    let mut config = config(0, 3);
    config.accounting[1].secret = Secret::new("another");
    let mut client = client(config);
    account(&mut client, START, Delivery::UntilRecorded);
    let sent = run_until(&mut client, Duration::from_secs(50));
    let servers: Vec<SocketAddr> = sent.iter().map(|(_, sent)| sent.to).collect();
    let thrice = |last| [address(last); 3];
    assert_eq!(
        servers,
        [thrice(101), thrice(102), thrice(103)].concat(),
        "in order"
    );
    let slots: HashSet<(u16, u8)> = sent.iter().map(|(_, s)| (s.socket, s.bytes[1])).collect();
    assert_eq!(slots.len(), 1);
    assert_eq!(sent[0].1.bytes, sent[6].1.bytes);
    assert_eq!(sent[0].1.bytes[20..], sent[3].1.bytes[20..]);
    verify_accounting_request(&sent[3].1.bytes, b"another").unwrap();
    let now = Duration::from_secs(51);
    let mut forged = sent[3].1.clone();
    forged.bytes[4] ^= 1;
    answer(&mut client, now, &forged);
    assert_eq!(client.counters().unauthentic_replies, 1);
    answer(&mut client, now, &sent[0].1);
    assert_eq!(drain_records(&mut client).1, [(1, true)]);
}

#[test]
fn nothing_is_sent_to_servers_that_are_thought_dead_and_the_first_to_live_again_gets_it() {
    let mut client = client(config(0, 2));
    account(&mut client, START, Delivery::UntilRecorded);
    run_until(&mut client, Duration::from_secs(40));
    let now = Duration::from_secs(40);
    assert!(client.servers(now).all(|(_, alive)| !alive));
    let stop = AccountingKind::Stop(TerminateCause::UserRequest);
    let attributes = client.accounting_attributes(&record(stop)).unwrap();
    let slot = client.take_slot().unwrap();
    client.account(now, 2, slot, attributes, Delivery::UntilRecorded);
    assert!(drain_records(&mut client).0.is_empty());
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let at = client.poll_at().expect("they are not given up");
        assert!(at >= Duration::from_secs(70) && at < Duration::from_secs(100));
        client.on_timeout(at);
        let (sent, _) = drain_records(&mut client);
        sent.iter().for_each(|sent| answer(&mut client, at, sent));
        ended.extend(drain_records(&mut client).1);
    }
    assert!(ended.iter().all(|(_, recorded)| *recorded));
}

#[test]
fn an_interim_record_is_offered_once_and_given_up() {
    let mut client = client(config(0, 2));
    account(&mut client, AccountingKind::Interim, Delivery::Once);
    let mut sent = Vec::new();
    let ended = loop {
        let (more, ended) = drain_records(&mut client);
        sent.extend(more);
        if !ended.is_empty() {
            break ended;
        }
        client.on_timeout(client.poll_at().unwrap());
    };
    assert_eq!((sent.len(), ended), (6, vec![(1, false)]));
    assert_eq!((client.poll_at(), client.open_requests()), (None, 0));
    assert_eq!(client.counters().unanswered, 1);
}

#[test]
fn a_record_that_is_withdrawn_is_sent_no_more() {
    let mut client = client(config(0, 1));
    let slot = account(&mut client, AccountingKind::Interim, Delivery::Once);
    let (sent, _) = drain_records(&mut client);
    client.withdraw(1, slot);
    assert_eq!((client.poll_at(), client.open_requests()), (None, 0));
    answer(&mut client, ZERO, &sent[0]);
    assert_eq!(drain_records(&mut client).1, []);
    assert_eq!(client.counters().unexpected_replies, 1);
}

#[test]
fn a_record_that_is_withdrawn_after_it_was_given_up_frees_its_slot_once() {
    let mut bounded = config(0, 1);
    bounded.max_sockets = 1;
    let mut client = client(bounded);
    let slot = account(&mut client, AccountingKind::Interim, Delivery::Once);
    while let Some(at) = client.poll_at() {
        client.on_timeout(at); // nobody has been told that it was given up
    }
    client.withdraw(1, slot);
    let slots: Vec<Slot> = core::iter::from_fn(|| client.take_slot()).collect();
    assert_eq!(slots.len(), 256);
    // another record has the slot by now
    let attributes = client.accounting_attributes(&record(START)).unwrap();
    client.account(ZERO, 2, slot, attributes, Delivery::UntilRecorded);
    client.withdraw(1, slot);
    assert_eq!(client.open_requests(), 1);
}

#[test]
fn another_life_of_the_client_goes_on_with_the_same_datagram() {
    let mut first = Client::new(config(0, 2), [1; 32]);
    let slot = account(&mut first, START, Delivery::UntilRecorded);
    let attributes = first.accounting_attributes(&record(START)).unwrap();
    let (sent, _) = drain_records(&mut first);
    for answered_before in [true, false] {
        let mut second = Client::new(config(0, 2), [2; 32]);
        assert!(second.claim_slot(slot));
        assert!(!second.claim_slot(slot), "it is taken");
        second.account(ZERO, 9, slot, attributes.clone(), Delivery::Resumed);
        assert!(
            drain_records(&mut second).0.is_empty(),
            "the answer may be on its way"
        );
        if !answered_before {
            second.on_timeout(second.poll_at().unwrap());
            let (again, _) = drain_records(&mut second);
            assert_eq!((again[0].socket, again[0].to), (sent[0].socket, sent[0].to));
            assert_eq!(again[0].bytes, sent[0].bytes);
        }
        answer(&mut second, ZERO, &sent[0]);
        assert_eq!(drain_records(&mut second).1, [(9, true)]);
    }
}

#[test]
fn slots_are_bounded_and_another_life_begins_with_others() {
    let take_all = |seed| {
        let mut bounded = config(0, 1);
        bounded.max_sockets = 2;
        let mut client = Client::new(bounded, seed);
        assert!(!client.claim_slot(Slot::new(2, 0)), "there is no such one");
        let slots: Vec<Slot> = core::iter::from_fn(|| client.take_slot()).collect();
        let ids: HashSet<(u16, u8)> = slots.iter().map(|s| (s.socket(), s.identifier())).collect();
        assert_eq!((slots.len(), ids.len()), (512, 512));
        slots
    };
    assert_ne!(take_all([1; 32])[0], take_all([2; 32])[0]);
}
