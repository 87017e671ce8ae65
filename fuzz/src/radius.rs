//! [`wire::radius`] and [`aaa::Client`]: any packets, and any replies that are signed as they should be.
use crate::{Step, script, steps};
use aaa::{
    AccessRequest, AccountingKind, AccountingRecord, Authentic, Client, ClientConfig, Connection,
    Credentials, Delivery, Nas, NasPort, Output, Secret, ServerConfig, TerminateCause, Traffic,
    Transport,
};
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use wire::radius::{
    Code, HEADER_LEN, Kind, MAX_LEN, Missing, Packet, reveal_password, verify_access_request,
    verify_accounting_request, verify_response, verify_status_server,
};

const SECRET: &[u8] = b"testing123";

/// What a step does, by `op % 8`.
mod op {
    /// A packet as it is, read by everybody and given to the client.
    pub const RAW: u8 = 0;
    /// A reply to the last request, signed: code, attributes.
    pub const REPLY: u8 = 1;
    /// Somebody dials in by PAP (name and password) ...
    pub const PAP: u8 = 2;
    /// ... or by CHAP.
    pub const CHAP: u8 = 3;
    /// An accounting record: kind, the rest becomes Class and the like.
    pub const ACCOUNT: u8 = 4;
    /// Timers expire.
    pub const TIMERS: u8 = 5;
    /// Attributes alone, read and written again.
    pub const ATTRIBUTES: u8 = 6;
    /// The connection of the last request ends.
    pub const CLOSE: u8 = 7;
}

/// How a request went out, and its answer comes back.
#[derive(Clone, Copy)]
enum Way {
    Datagram(u16, SocketAddr),
    Stream(Connection),
}

struct World {
    client: Client,
    now: Duration,
    last: Option<(Way, Vec<u8>)>,
    open: BTreeSet<u64>,
    next: u64,
}

fn config() -> ClientConfig {
    let server = |last| {
        ServerConfig::new(
            SocketAddr::from(([192, 0, 2, last], 1812)),
            Secret::new(SECRET),
        )
    };
    let mut config = ClientConfig::new(Nas {
        identifier: "bng1".into(),
        ..Nas::default()
    });
    let on_streams = |last| ServerConfig {
        transport: Transport::Stream { settings: 1 },
        ..server(last)
    };
    config.authentication = vec![server(1), on_streams(2)];
    config.accounting = vec![server(3), on_streams(4)];
    let probed = config
        .authentication
        .iter_mut()
        .chain(&mut config.accounting);
    probed.for_each(|server| server.status_interval = Some(Duration::from_secs(10)));
    (config.max_requests, config.max_sockets) = (16, 2);
    config
}

/// Takes one input.
pub fn run(input: &[u8]) {
    let mut world = World {
        client: Client::new(config(), [7; 32]),
        now: Duration::from_secs(100),
        last: None,
        open: BTreeSet::new(),
        next: 0,
    };
    for step in steps(input) {
        world.step(step);
    }
    // Every request ends, in an answer or without one.
    for _ in 0..4096 {
        world.expire();
    }
    assert!(
        world.open.is_empty() && world.client.open_requests() == 0,
        "a request that never ends"
    );
}

impl World {
    fn step(&mut self, step: Step<'_>) {
        match step.op & 7 {
            op::RAW => {
                read(step.data);
                let first = Way::Datagram(0, config().authentication[0].address);
                let way = self.last.as_ref().map_or(first, |last| last.0);
                self.hear(way, step.data);
            }
            op::REPLY => self.reply(step),
            op::PAP => {
                let password = Secret::new(step.data.get(8..).unwrap_or_default());
                self.dial_in(step, Credentials::Pap { password });
            }
            op::CHAP => {
                let credentials = Credentials::Chap {
                    id: step.octet(0),
                    challenge: vec![step.octet(1); 16],
                    response: [3; 16],
                };
                self.dial_in(step, credentials);
            }
            op::ACCOUNT => self.account(step),
            op::TIMERS => (0..step.octet(0) % 32).for_each(|_| self.expire()),
            op::CLOSE => {
                if let Some((Way::Stream(connection), _)) = self.last {
                    self.client.on_closed(self.now, connection, "it ended");
                    self.drain();
                }
            }
            _ => read(&packet(2, 1, &[9; 16], step.data)),
        }
    }

    fn hear(&mut self, way: Way, bytes: &[u8]) {
        match way {
            Way::Datagram(socket, from) => self.client.handle(self.now, socket, from, bytes),
            Way::Stream(connection) => self.client.receive(self.now, connection, bytes),
        }
        self.drain();
    }

    fn reply(&mut self, step: Step<'_>) {
        let Some((way, request)) = self.last.clone() else {
            return;
        };
        let Some((&code, attributes)) = step.data.split_first() else {
            return;
        };
        let bytes = packet(code, request[1], &[0; 16], attributes);
        let authenticator = request[4..HEADER_LEN].try_into().expect("sixteen octets");
        let Some(reply) = Packet::parse(&bytes)
            .ok()
            .and_then(|p| p.emit_response(&authenticator, SECRET).ok())
        else {
            return;
        };
        verify_response(&reply, &authenticator, SECRET, if_missing(code))
            .expect("a reply that we signed");
        self.hear(way, &reply);
    }

    fn dial_in(&mut self, step: Step<'_>, credentials: Credentials) {
        let username = step.data.get(..8).unwrap_or(step.data).to_vec();
        let request = AccessRequest {
            username,
            sent_name: None,
            credentials,
            acct_session_id: "bng1-1".into(),
            nas_port: nas_port(step.data),
            state: Vec::new(),
        };
        let token = self.token();
        self.client.authenticate(self.now, token, request);
        self.drain();
    }

    fn account(&mut self, step: Step<'_>) {
        let kinds = [
            AccountingKind::Start,
            AccountingKind::Interim,
            AccountingKind::Stop(TerminateCause::LostCarrier),
        ];
        let record = AccountingRecord {
            kind: kinds[usize::from(step.octet(0)) % kinds.len()],
            username: b"alice".to_vec(),
            acct_session_id: "bng1-1".into(),
            multi_session_id: None,
            nas_port: nas_port(step.data),
            class: step.data.chunks(32).map(<[u8]>::to_vec).collect(),
            framed_ip: Some([100, 64, 0, 7].into()),
            framed_ipv6_prefix: Some("2001:db8:0:7::/64".parse().expect("a prefix")),
            framed_ipv6_address: Some("2001:db8:5::7".parse().expect("an address")),
            framed_interface_id: Some(7),
            framed_routes: vec![
                "198.51.100.0/24".parse().expect("a prefix"),
                "2001:db8:77::/48".parse().expect("a prefix"),
            ],
            delegated_prefixes: vec!["2001:db8:100::/56".parse().expect("a prefix")],
            filter_id: Some("gold".into()),
            authentic: Authentic::Radius,
            event_time: 1_700_000_000,
            session_time: Duration::from_secs(step.number().into()),
            input: Traffic {
                octets: u64::from(step.octet(3)) << 30,
                packets: 5,
            },
            output: Traffic {
                octets: u64::MAX >> (step.octet(4) & 63),
                packets: u64::MAX,
            },
        };
        let Ok(attributes) = self.client.accounting_attributes(&record) else {
            return;
        };
        let Some(slot) = self.client.take_slot() else {
            return;
        };
        let token = self.token();
        self.client
            .account(self.now, token, slot, attributes, Delivery::Once);
        self.drain();
    }

    fn token(&mut self) -> u64 {
        self.next += 1;
        self.open.insert(self.next);
        self.next
    }

    fn expire(&mut self) {
        let Some(at) = self.client.poll_at() else {
            return;
        };
        self.now = self.now.max(at);
        self.client.on_timeout(self.now);
        assert!(
            self.client.poll_at().is_none_or(|next| next > self.now),
            "a timer that does not stop"
        );
        self.drain();
    }

    fn keep(&mut self, way: Way, bytes: Vec<u8>) {
        match Code(bytes[0]) {
            Code::ACCESS_REQUEST => verify_access_request(&bytes, SECRET),
            Code::STATUS_SERVER => verify_status_server(&bytes, SECRET),
            _ => verify_accounting_request(&bytes, SECRET),
        }
        .expect("a request of our own");
        self.last = Some((way, bytes));
    }

    fn drain(&mut self) {
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Transmit { socket, to, bytes } => {
                    self.keep(Way::Datagram(socket, to), bytes)
                }
                Output::Send { connection, bytes } => self.keep(Way::Stream(connection), bytes),
                Output::Close { .. } => {}
                Output::Done { token, .. } | Output::Accounted { token, .. } => assert!(
                    self.open.remove(&token),
                    "an answer to nothing, or a second one"
                ),
            }
        }
    }
}

/// Replies to an Access-Request must have a Message-Authenticator; `emit_response` gives it to those alone.
fn if_missing(code: u8) -> Missing {
    match Code(code) {
        Code::ACCESS_ACCEPT | Code::ACCESS_REJECT | Code::ACCESS_CHALLENGE => Missing::Refuse,
        _ => Missing::Allow,
    }
}

fn nas_port(text: &[u8]) -> NasPort {
    NasPort {
        port_id: Some("up1/access0:100.7".into()),
        circuit_id: Some(text.to_vec()),
        remote_id: Some(b"line 7".to_vec()),
        ..NasPort::default()
    }
}

fn packet(code: u8, identifier: u8, authenticator: &[u8; 16], attributes: &[u8]) -> Vec<u8> {
    let attributes = &attributes[..attributes.len().min(MAX_LEN - HEADER_LEN)];
    let length = ((HEADER_LEN + attributes.len()) as u16).to_be_bytes();
    [
        &[code, identifier, length[0], length[1]][..],
        authenticator,
        attributes,
    ]
    .concat()
}

/// A packet that can be read is the same after it was written.
fn read(bytes: &[u8]) {
    let _ = verify_access_request(bytes, SECRET);
    let _ = verify_accounting_request(bytes, SECRET);
    let _ = reveal_password(bytes, &[9; 16], SECRET);
    let Ok(packet) = Packet::parse(bytes) else {
        return;
    };
    let mut written = Vec::new();
    if packet.emit(&mut written).is_ok() {
        assert_eq!(Packet::parse(&written), Ok(packet));
    }
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let accept = |fill: fn(&mut Packet)| {
        let mut packet = Packet::new(Code::ACCESS_ACCEPT, 1, [0; 16]);
        fill(&mut packet);
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("a packet");
        [&[2], &bytes[HEADER_LEN..]].concat()
    };
    let full = accept(|p| {
        p.push(Kind::SESSION_TIMEOUT, 3600);
        p.push(Kind::ACCT_INTERIM_INTERVAL, 600);
        p.push(Kind::CLASS, b"gold".to_vec());
        p.push(
            Kind::FRAMED_IP_ADDRESS,
            core::net::Ipv4Addr::new(100, 64, 0, 7),
        );
        p.push(Kind::REPLY_MESSAGE, "welcome".to_owned());
    });
    vec![
        script([
            (op::PAP, b"alice\0\0\0wonderland".to_vec()),
            (op::REPLY, full.clone()),
            (op::ACCOUNT, vec![0, 9]),
            (op::REPLY, vec![5]),
        ]),
        script([
            (op::CHAP, b"alice".to_vec()),
            (op::REPLY, b"\x03\x12\x06nope".to_vec()),
        ]),
        script([
            (op::PAP, b"bob".to_vec()),
            (op::TIMERS, vec![9]),
            (op::REPLY, vec![11, 24, 4, 1, 2]),
        ]),
        script([
            (op::ATTRIBUTES, full[1..].to_vec()),
            (op::RAW, packet(2, 0, &[0; 16], &full[1..])),
        ]),
        script([(
            op::ATTRIBUTES,
            vec![
                26, 12, 0, 0, 0x0d, 0xe9, 1, 6, b'a', b'b', b'c', b'd', 97, 4, 0, 64,
            ],
        )]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seed_is_let_in_and_accounted_for() {
        let mut world = World {
            client: Client::new(config(), [7; 32]),
            now: Duration::from_secs(100),
            last: None,
            open: BTreeSet::new(),
            next: 0,
        };
        steps(&seeds()[0]).for_each(|step| world.step(step));
        let counters = world.client.counters();
        assert_eq!(
            (counters.accepts, counters.recorded),
            (1, 1),
            "{counters:?}"
        );
        assert!(world.open.is_empty());
    }
}
