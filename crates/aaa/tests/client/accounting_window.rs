//! A server has a window of unanswered records. What has no room waits, and nothing of it is lost.

use super::accounting::{answer, drain_records};
use super::*;

const START: AccountingKind = AccountingKind::Start;
const WINDOW: usize = 1024;

/// Hands over so many records, under tokens from 0 on. Returns the slots.
fn hand_over(client: &mut Client, now: Duration, count: usize) -> Vec<Slot> {
    let attributes = client.accounting_attributes(&record(START)).unwrap();
    let slots = (0..count).map(|token| {
        let slot = client.take_slot().unwrap();
        let attributes = attributes.clone();
        client.account(now, token as u64, slot, attributes, Delivery::UntilRecorded);
        slot
    });
    slots.collect()
}

/// Window of each server, and records that wait at it.
fn windows(client: &Client) -> Vec<(usize, usize)> {
    let servers = client.accounting_servers(ZERO);
    servers
        .map(|server| (server.window, server.waiting))
        .collect()
}

/// Identifiers of the slots under which something was sent.
fn slots(sent: &[Sent]) -> Vec<Slot> {
    let slots = sent.iter();
    slots
        .map(|sent| Slot::new(sent.socket, sent.bytes[1]))
        .collect()
}

#[test]
fn what_has_no_room_waits_and_the_oldest_is_sent_first() {
    let mut client = client(config(0, 1));
    let handed = hand_over(&mut client, ZERO, WINDOW + 10);
    let (sent, _) = drain_records(&mut client);
    assert_eq!(slots(&sent), handed[..WINDOW]);
    assert_eq!(windows(&client), [(WINDOW, 10)]);
    // one place is free, and the window has grown by one
    answer(&mut client, ZERO, &sent[7]);
    let (more, ended) = drain_records(&mut client);
    assert_eq!(ended, [(7, true)]);
    assert_eq!(slots(&more), handed[WINDOW..WINDOW + 2]);
    assert_eq!(windows(&client), [(WINDOW + 1, 8)]);
}

#[test]
fn a_late_server_gets_fewer_records_and_all_of_them_in_the_end() {
    let mut client = client(config(0, 1));
    hand_over(&mut client, ZERO, 3000);
    // it serves a record in 20 ms, and none twice
    let (mut queue, mut free_at) = (std::collections::VecDeque::new(), ZERO);
    let (mut known, mut recorded) = (HashSet::new(), 0);
    let (mut now, mut most) = (ZERO, 0);
    loop {
        assert!(now < Duration::from_secs(120), "{recorded} are recorded");
        let (sent, ended) = drain_records(&mut client);
        recorded += ended.len();
        if recorded == 3000 {
            break;
        }
        for sent in sent {
            if known.insert((sent.socket, sent.bytes.clone())) {
                free_at = now.max(free_at) + Duration::from_millis(20);
                queue.push_back((free_at, sent));
            }
        }
        if now > Duration::from_secs(30) {
            most = most.max(queue.len());
        }
        let next = queue.front().map(|(at, _)| *at);
        let wake = client.poll_at().map(|at| at.max(now));
        now = next.into_iter().chain(wake).min().expect("they go on");
        if next == Some(now) {
            let (_, sent) = queue.pop_front().unwrap();
            answer(&mut client, now, &sent);
        } else {
            client.on_timeout(now);
        }
    }
    assert!(
        most < 250,
        "{most} wait there, which is more than it answers in time"
    );
    assert_eq!((client.open_requests(), client.poll_at()), (0, None));
}

#[test]
fn a_record_without_room_at_one_server_goes_to_another() {
    let mut client = client(config(0, 2));
    hand_over(&mut client, ZERO, 2 * WINDOW + 5);
    let (sent, _) = drain_records(&mut client);
    let second = sent.iter().filter(|sent| sent.to == address(102)).count();
    assert_eq!((sent.len(), second), (2 * WINDOW, WINDOW));
    assert_eq!(windows(&client), [(WINDOW, 3), (WINDOW, 2)]);
}

/// So that one that is full, or answers nothing, does not delay them.
#[test]
fn records_that_wait_at_a_full_server_go_to_one_that_gets_room() {
    let mut client = client(config(0, 2));
    hand_over(&mut client, ZERO, 2 * WINDOW + 50);
    let (sent, _) = drain_records(&mut client);
    assert_eq!(windows(&client), [(WINDOW, 25); 2]);
    let second = sent.iter().filter(|sent| sent.to == address(102));
    second.for_each(|sent| answer(&mut client, ZERO, sent));
    let (more, _) = drain_records(&mut client);
    assert_eq!(more.len(), 50);
    assert!(more.iter().all(|sent| sent.to == address(102)));
    assert!(windows(&client).iter().all(|(_, waiting)| *waiting == 0));
}

#[test]
fn records_do_not_wait_at_a_server_that_has_died() {
    let mut client = client(config(0, 2));
    hand_over(&mut client, ZERO, 4 * WINDOW);
    let (sent, _) = drain_records(&mut client);
    let is_second = |sent: &&Sent| sent.to == address(102);
    answer(&mut client, ZERO, sent.iter().find(is_second).unwrap());
    let (mut now, mut recorded) = (ZERO, drain_records(&mut client).1.len());
    while client.servers(now).next().unwrap().1 {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
    }
    let [first, second] = windows(&client)[..] else {
        panic!("of two servers")
    };
    assert!(first.1 == 0 && second.1 > WINDOW, "{first:?} {second:?}");
    while recorded < 4 * WINDOW {
        let (sent, ended) = drain_records(&mut client);
        recorded += ended.len();
        let second = sent.iter().filter(is_second);
        second.for_each(|sent| answer(&mut client, now, sent));
        if sent.is_empty() && ended.is_empty() {
            now = client.poll_at().expect("they are not given up").max(now);
            client.on_timeout(now);
        }
        assert!(now < Duration::from_secs(100), "{recorded} are recorded");
    }
    assert_eq!(client.open_requests(), 0);
}

#[test]
fn a_withdrawn_record_makes_room_and_one_that_waits_is_not_sent() {
    let mut client = client(config(0, 1));
    let handed = hand_over(&mut client, ZERO, WINDOW + 2);
    drain_records(&mut client);
    client.withdraw(WINDOW as u64, handed[WINDOW]);
    assert_eq!(windows(&client), [(WINDOW, 1)]);
    client.withdraw(3, handed[3]);
    let at = client.poll_at().unwrap();
    assert_eq!(at, ZERO, "the other one may be sent at once");
    client.on_timeout(at);
    let (sent, _) = drain_records(&mut client);
    assert_eq!(slots(&sent), handed[WINDOW + 1..]);
}

#[test]
fn a_late_answer_counts_for_a_record_that_waits() {
    let mut client = client(config(0, 1));
    hand_over(&mut client, ZERO, WINDOW + 2);
    let (sent, _) = drain_records(&mut client);
    // all rest, and go out again as far as the window allows it
    let mut now = ZERO;
    while windows(&client)[0].1 < 100 {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
        drain_records(&mut client);
    }
    sent.iter().for_each(|sent| answer(&mut client, now, sent));
    let (_, ended) = drain_records(&mut client);
    assert_eq!(ended.len(), WINDOW);
    assert!(windows(&client)[0].1 <= 2);
}

#[test]
fn records_that_wait_at_a_removed_server_go_to_another() {
    let mut client = client(config(0, 1));
    hand_over(&mut client, ZERO, WINDOW + 5);
    drain_records(&mut client);
    let mut other = config(0, 2);
    other.accounting.remove(0);
    client.reconfigure(ZERO, other);
    let (sent, _) = drain_records(&mut client);
    assert_eq!(sent.len(), WINDOW);
    assert_eq!(windows(&client), [(WINDOW, 5)]);
}
