//! Status-Server: what servers that are considered dead are asked, and what their answer changes.

use super::accounting::{account, answer, drain_records};
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_secs(10);

/// The client's configuration with servers that are asked for their status.
fn probing(authentication: u8, accounting: u8) -> ClientConfig {
    let mut config = config(authentication, accounting);
    let servers = config.authentication.iter_mut();
    for server in servers.chain(&mut config.accounting) {
        server.status_interval = Some(INTERVAL);
    }
    config
}

/// A client whose first authentication server has died, and the time.
fn with_dead_server(config: ClientConfig) -> (Client, Duration) {
    let mut client = client(config);
    client.authenticate(ZERO, 1, access("alice"));
    let now = loop {
        let at = client.poll_at().unwrap();
        client.on_timeout(at);
        if client.counters().deaths == 1 {
            break at;
        }
    };
    let second = drain(&mut client).0.pop().unwrap();
    if second.to == address(2) {
        let accept = reply(&second, Code::ACCESS_ACCEPT, &[]);
        client.handle(now, second.socket, second.to, &accept);
        drain(&mut client);
    }
    (client, now)
}

/// Everything that is sent until `end`.
fn sent_until(client: &mut Client, end: Duration) -> Vec<(Duration, Sent)> {
    let mut all = Vec::new();
    while let Some(at) = client.poll_at().filter(|at| *at <= end) {
        client.on_timeout(at);
        all.extend(drain_records(client).0.into_iter().map(|sent| (at, sent)));
    }
    all
}

fn is_alive(client: &Client, now: Duration) -> bool {
    client.servers(now).next().unwrap().1
}

#[test]
fn a_dead_server_is_asked_now_and_then_and_used_again_as_soon_as_it_answers() {
    let (mut client, died) = with_dead_server(probing(2, 0));
    let sent = sent_until(&mut client, died + 45 * SECOND);
    assert!((3..=5).contains(&sent.len()), "{} packets", sent.len());
    let times: Vec<Duration> = [died].into_iter().chain(sent.iter().map(|s| s.0)).collect();
    let gaps = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64());
    gaps.for_each(|gap| assert!((9.0..=11.0).contains(&gap), "{gap}"));
    let mut authenticators = HashSet::new();
    for (_, sent) in &sent {
        assert_eq!(sent.to, address(1));
        let packet = verify_status_server(&sent.bytes, SECRET).unwrap();
        assert_eq!(packet.get(Kind::NAS_IDENTIFIER), Some(&"bng1".into()));
        authenticators.insert(packet.authenticator);
    }
    assert_eq!(authenticators.len(), sent.len());

    let now = died + 46 * SECOND;
    let status = client.authentication_servers(now).next().unwrap();
    assert!(!status.alive && status.probes.active);
    assert_eq!(status.probes.sent, sent.len() as u64);
    // an answer may have any attributes (RFC 5997 §3)
    let last = &sent.last().unwrap().1;
    let text = [(Kind::REPLY_MESSAGE, "up for 7 days".to_owned().into())];
    let accept = reply(last, Code::ACCESS_ACCEPT, &text);
    client.handle(now, last.socket, last.to, &accept);
    let status = client.authentication_servers(now).next().unwrap();
    assert!(status.alive && !status.probes.active);
    assert_eq!((status.probes.answered, status.answers), (1, 0));
    assert_eq!((status.last_answer, status.out_since), (Some(now), None));
    let servers = client.authentication_servers(now);
    assert!(servers.filter(|server| server.out_since.is_some()).count() == 0);
    assert_eq!(client.poll_at(), None, "it is asked no more");
    client.authenticate(now, 2, access("bob"));
    assert_eq!(one(&mut client).to, address(1));
    client.handle(now, last.socket, last.to, &accept);
    assert_eq!(client.counters().unexpected_replies, 1, "a repeated answer");
}

#[test]
fn without_the_setting_a_dead_server_gets_no_status_server() {
    let (client, died) = with_dead_server(config(2, 0));
    assert_eq!(client.poll_at(), None);
    assert!(
        !client
            .authentication_servers(died)
            .next()
            .unwrap()
            .probes
            .active
    );
}

#[test]
fn a_server_that_drops_status_server_is_tried_by_a_request_after_its_dead_time() {
    let (mut client, died) = with_dead_server(probing(2, 0));
    sent_until(&mut client, died + 61 * SECOND);
    let now = died + 61 * SECOND;
    assert!(is_alive(&client, now));
    client.authenticate(now, 2, access("bob"));
    assert_eq!(one(&mut client).to, address(1));
}

#[test]
fn a_server_that_has_answered_status_server_before_is_not_tried_until_it_answers_one() {
    let (mut client, died) = with_dead_server(probing(2, 0));
    let (at, sent) = sent_until(&mut client, died + 11 * SECOND).pop().unwrap();
    let accept = reply(&sent, Code::ACCESS_ACCEPT, &[]);
    client.handle(at, sent.socket, sent.to, &accept);

    let again = at + SECOND;
    client.authenticate(again, 2, access("bob"));
    while client.counters().deaths < 2 {
        client.on_timeout(client.poll_at().unwrap());
    }
    let second = drain(&mut client).0.pop().unwrap();
    let accept = reply(&second, Code::ACCESS_ACCEPT, &[]);
    client.handle(again + 20 * SECOND, second.socket, second.to, &accept);
    drain(&mut client);
    // it answered Status-Server alone: it is not used again, and not asked, within its dead time
    let quiet = sent_until(&mut client, again + 65 * SECOND);
    assert_eq!(quiet, []);
    let later = again + 600 * SECOND;
    let packets = sent_until(&mut client, later);
    assert!((40..70).contains(&packets.len()), "{}", packets.len());
    assert!(!is_alive(&client, later));
    client.authenticate(later, 3, access("carol"));
    let asked = one(&mut client);
    assert_eq!(asked.to, address(2));
    // the operator turns it off: a request tries the server
    client.reconfigure(later, config(2, 0));
    assert!(is_alive(&client, later));
}

#[test]
fn answers_that_prove_nothing_revive_nobody() {
    let (mut client, died) = with_dead_server(probing(2, 0));
    let (at, sent) = sent_until(&mut client, died + 11 * SECOND).pop().unwrap();
    let good = reply(&sent, Code::ACCESS_ACCEPT, &[]);
    for place in (0..good.len()).filter(|place| *place != 1) {
        let mut wrong = good.clone();
        wrong[place] ^= 1;
        client.handle(at, sent.socket, sent.to, &wrong);
    }
    assert_eq!(client.counters().unauthentic_replies, good.len() as u64 - 1);
    client.handle(at, sent.socket, address(2), &good);
    client.handle(at, sent.socket + 1, sent.to, &good);
    assert_eq!(client.counters().unexpected_replies, 2);
    let reject = reply(&sent, Code::ACCESS_REJECT, &[]);
    client.handle(at, sent.socket, sent.to, &reject);
    assert_eq!(client.counters().mismatched_replies, 1);
    assert!(!is_alive(&client, at));
    client.handle(at, sent.socket, sent.to, &good);
    assert!(is_alive(&client, at));
}

#[test]
fn when_an_accounting_server_is_back_its_records_come_one_after_the_other() {
    let mut client = client(probing(0, 1));
    let start = AccountingKind::Start;
    account(&mut client, start, Delivery::UntilRecorded);
    for token in 2..=200 {
        let attributes = client.accounting_attributes(&record(start)).unwrap();
        let slot = client.take_slot().unwrap();
        client.account(ZERO, token, slot, attributes, Delivery::UntilRecorded);
    }
    let sent = sent_until(&mut client, 26 * SECOND);
    let probe = sent.iter().rfind(|(_, sent)| sent.bytes[0] == 12);
    let probe = &probe.expect("a Status-Server").1;
    assert_eq!(probe.to, address(101));
    assert!(
        sent.iter()
            .all(|(_, s)| s.bytes[0] == 12
                || (s.socket, s.bytes[1]) != (probe.socket, probe.bytes[1])),
        "no record has its identifier"
    );
    let back = 27 * SECOND;
    answer(&mut client, back, probe);
    let mut recorded = Vec::new();
    while let Some(at) = client.poll_at() {
        client.on_timeout(at);
        for sent in drain_records(&mut client).0 {
            answer(&mut client, at, &sent);
            recorded.push(at);
        }
    }
    assert_eq!((recorded.len(), client.open_requests()), (200, 0));
    assert!(
        recorded[199] <= back + 30 * SECOND,
        "sooner than its dead time"
    );
    for begin in 27..57 {
        let second = (begin * SECOND)..((begin + 1) * SECOND);
        let count = recorded.iter().filter(|at| second.contains(at)).count();
        assert!(count <= 20, "{count} in the second {begin}");
    }
}

#[test]
fn without_a_free_identifier_the_dead_time_counts() {
    let mut bounded = probing(0, 1);
    bounded.max_sockets = 1;
    let mut client = client(bounded);
    account(&mut client, AccountingKind::Start, Delivery::UntilRecorded);
    while client.take_slot().is_some() {}
    let sent = sent_until(&mut client, 60 * SECOND);
    assert!(sent.iter().all(|(_, sent)| sent.bytes[0] == 4));
    assert!(client.counters().probes_unsent >= 3);
    let until = sent[2].0 + 80 * SECOND;
    assert!(is_alive(&client, until));
}

#[test]
fn a_server_that_goes_gives_its_identifier_back() {
    let mut bounded = probing(0, 1);
    bounded.max_sockets = 1;
    let mut client = client(bounded.clone());
    account(&mut client, AccountingKind::Interim, Delivery::Once);
    let now = 30 * SECOND;
    while let Some(at) = client.poll_at().filter(|at| *at <= now) {
        client.on_timeout(at);
    }
    let status = client.accounting_servers(now).next().unwrap();
    assert!(status.probes.active && status.probes.sent > 0);
    bounded.accounting.clear();
    client.reconfigure(now, bounded);
    assert_eq!(client.poll_at(), None);
    let slots = core::iter::from_fn(|| client.take_slot()).count();
    assert_eq!(slots, 256);
}
