//! Requests of RADIUS servers that change and end sessions: read, remembered and answered (RFC 5176).

use crate::{Step, script, steps};
use aaa::{
    DynamicAuthorization, DynamicClient, DynamicConfig, DynamicOutcome, ErrorCause, Nas, Received,
    RequestKey, Secret,
};
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::radius::{
    Code, HEADER_LEN, Kind, Missing, Packet, Value, sign_accounting_request, verify_response,
};

const SECRET: &[u8] = b"coa-secret";
const EPOCH: u32 = 1_700_000_000;
/// For so long an answer is kept at least.
const KEPT: Duration = Duration::from_secs(60);
/// For so long a datagram is known again at least: twice the time window.
const KNOWN: Duration = Duration::from_secs(600);

/// Runs the target.
pub fn run(input: &[u8]) {
    let mut bench = Bench::new();
    for step in steps(input) {
        bench.step(&step);
    }
}

struct Bench {
    server: DynamicAuthorization,
    now: Duration,
    /// Requests that are to be answered, what was asked, and when.
    open: BTreeMap<RequestKey, (Vec<u8>, Duration)>,
    /// When each datagram was taken, unless nobody knows what came of it.
    taken: BTreeMap<Vec<u8>, Duration>,
    last: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let mut server = DynamicAuthorization::default();
        server.reconfigure(DynamicConfig {
            clients: vec![DynamicClient {
                address: from().ip(),
                secret: Secret::new(SECRET),
                require_message_authenticator: false,
            }],
            gateways: vec![Nas {
                identifier: "bng1".into(),
                ..Nas::default()
            }],
            time_window: Duration::from_secs(300),
            require_event_timestamp: false,
            ..DynamicConfig::default()
        });
        Bench {
            server,
            now: Duration::from_secs(1000),
            open: BTreeMap::new(),
            taken: BTreeMap::new(),
            last: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step<'_>) {
        match step.op % 7 {
            0 => self.handle(signed(Code::COA_REQUEST, step.data)),
            1 => self.handle(signed(Code::DISCONNECT_REQUEST, step.data)),
            2 => self.handle(step.data.to_vec()),
            3 => self.handle(self.last.clone()),
            4 => self.now += Duration::from_secs(step.octet(0).into()),
            5 => self.answer(DynamicOutcome::Done),
            _ => self.answer(match step.octet(0) % 2 {
                0 => DynamicOutcome::Rejected(ErrorCause::SessionContextNotFound),
                _ => DynamicOutcome::Unknown,
            }),
        }
    }

    fn handle(&mut self, bytes: Vec<u8>) {
        let unix = EPOCH + self.now.as_secs() as u32;
        match self.server.handle(self.now, unix, from(), &bytes) {
            Received::Request(key, _) => {
                let before = self.taken.insert(bytes.clone(), self.now);
                let is_old = before.is_none_or(|at| self.now - at > KNOWN);
                assert!(is_old, "a repetition is carried out again");
                let open = (bytes.clone(), self.now);
                assert_eq!(self.open.insert(key, open), None);
            }
            Received::Answer(answer) => check(&bytes, &answer),
            Received::Nothing => {}
        }
        self.last = bytes;
    }

    /// Says what came of the first request that is open.
    fn answer(&mut self, outcome: DynamicOutcome) {
        let Some((key, (bytes, at))) = self.open.pop_first() else {
            return;
        };
        match self.server.answer(key, outcome) {
            Some((to, answer)) => {
                assert_eq!(to, from());
                check(&bytes, &answer);
            }
            None if outcome == DynamicOutcome::Unknown => drop(self.taken.remove(&bytes)),
            None => {
                assert!(self.now - at > KEPT, "what was carried out is not answered");
            }
        }
    }
}

/// The server that asked can believe the answer.
fn check(request: &[u8], answer: &[u8]) {
    let authenticator = request[4..HEADER_LEN].try_into().expect("sixteen octets");
    let answer = verify_response(answer, &authenticator, SECRET, Missing::Refuse).unwrap();
    assert_eq!(answer.identifier, request[1]);
    let request = Packet::parse(request).unwrap();
    let codes = match request.code {
        Code::COA_REQUEST => [Code::COA_ACK, Code::COA_NAK],
        _ => [Code::DISCONNECT_ACK, Code::DISCONNECT_NAK],
    };
    assert!(codes.contains(&answer.code));
    let states = |packet: &Packet| {
        packet
            .all(Kind::PROXY_STATE)
            .cloned()
            .collect::<Vec<Value>>()
    };
    assert_eq!(states(&answer), states(&request));
}

/// A request with these octets as its identifier and attributes, as somebody who knows the secret sends it.
fn signed(code: Code, data: &[u8]) -> Vec<u8> {
    let (identifier, attributes) = data.split_first().unwrap_or((&0, &[]));
    let length = (HEADER_LEN + attributes.len()) as u16;
    let mut bytes = vec![code.0, *identifier];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend(attributes);
    sign_accounting_request(&mut bytes, SECRET);
    bytes
}

fn from() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 9], 40_000))
}

/// Requests that are carried out, rejected and repeated.
pub fn seeds() -> Vec<Vec<u8>> {
    let attributes = |list: &[(Kind, Value)]| {
        let mut packet = Packet::new(Code::COA_REQUEST, 0, [0; 16]);
        for (kind, value) in list {
            packet.push(*kind, value.clone());
        }
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("it is short");
        [&[7], &bytes[HEADER_LEN..]].concat()
    };
    let session = || (Kind::ACCT_SESSION_ID, Value::from("51"));
    let change = attributes(&[
        session(),
        (Kind::USER_NAME, Value::from("alice")),
        (Kind::NAS_IDENTIFIER, Value::from("bng1")),
        (Kind::FILTER_ID, Value::from("gold")),
        (Kind::SESSION_TIMEOUT, Value::from(3600)),
        (Kind::FRAMED_ROUTE, Value::from("198.18.0.0/24 0.0.0.0 1")),
        (Kind::PROXY_STATE, Value::from(&[1u8, 2][..])),
    ]);
    let end = attributes(&[
        session(),
        (Kind::EVENT_TIMESTAMP, Value::Time(EPOCH + 1000)),
    ]);
    vec![
        script([(0, &*change), (3, &[]), (5, &[]), (3, &[])]),
        script([
            (1, &*end),
            (6, &[1]),
            (3, &[]),
            (5, &[]),
            (4, &[200]),
            (3, &[]),
        ]),
        script([(1, &*change), (2, &[43, 1, 0, 20])]),
    ]
}
