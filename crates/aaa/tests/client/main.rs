//! The client against servers of the test's own, on a clock of the test's own.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use aaa::{
    AccessRequest, AccountingKind, AccountingRecord, Authentic, Client, ClientConfig, Connection,
    Credentials, Delivery, Nas, NasPort, Outcome, Output, RejectReason, Role, Secret, Selection,
    ServerConfig, Slot, TerminateCause, Traffic, Transport, Unavailable,
};
use wire::radius::{
    Code, Kind, Packet, Value, reveal_password, values, verify_access_request,
    verify_accounting_request, verify_status_server,
};

mod accounting;
mod accounting_window;
mod mapping;
mod messages;
mod probe;
mod reconfigure;
mod selection;
mod streams;
mod transport;

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

fn nas_port() -> NasPort {
    NasPort {
        port_id: Some("up1/access0:100.7".into()),
        calling_station: Some("02:00:00:00:00:07".into()),
        called_station: Some("internet".into()),
        circuit_id: Some(b"olt1 eth 1/1:100.7".to_vec()),
        remote_id: Some(b"line 7".to_vec()),
        ..NasPort::default()
    }
}

fn access(username: &str) -> AccessRequest {
    AccessRequest {
        username: username.into(),
        sent_name: None,
        credentials: Credentials::Pap {
            password: Secret::new("wonderland"),
        },
        acct_session_id: "bng1-0001".into(),
        nas_port: nas_port(),
        state: Vec::new(),
    }
}

fn record(kind: AccountingKind) -> AccountingRecord {
    AccountingRecord {
        kind,
        username: b"alice".to_vec(),
        acct_session_id: "bng1-0001".into(),
        multi_session_id: None,
        nas_port: nas_port(),
        class: vec![b"gold".to_vec(), b"second".to_vec()],
        framed_ip: Some([100, 64, 0, 7].into()),
        framed_ipv6_prefixes: vec!["2001:db8:0:7::/64".parse().unwrap()],
        framed_ipv6_address: Some("2001:db8:0:7::2".parse().unwrap()),
        framed_interface_id: Some(0x0200_0000_0000_0007),
        framed_routes: vec![
            "198.51.100.0/24".parse().unwrap(),
            "2001:db8:77::/48 :: 7".parse().unwrap(),
        ],
        delegated_prefixes: vec!["2001:db8:100::/56".parse().unwrap()],
        filter_id: Some("gold".into()),
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
        families: None,
    }
}

/// Requests that have ended, and how.
type Ended = Vec<(u64, Outcome)>;

/// Something that the client sent.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    socket: u16,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// What came out of the client: what it sent, and what has ended.
fn drain(client: &mut Client) -> (Vec<Sent>, Ended) {
    let (mut sent, mut done) = (Vec::new(), Vec::new());
    while let Some(output) = client.poll_output() {
        match output {
            Output::Transmit { socket, to, bytes } => sent.push(Sent { socket, to, bytes }),
            Output::Done { token, outcome } => done.push((token, outcome)),
            other => panic!("{other:?}"),
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

/// Lets the time run until everything has ended; gives what was sent when, and the outcomes.
fn run_dry(client: &mut Client) -> (Vec<(Duration, Sent)>, Ended) {
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
