//! RADIUS: what the client takes by itself, and what the whole control plane takes for sessions, changes and their ends.
use crate::report::{Entry, Samples};
use aaa::{
    AccessRequest, Client, ClientConfig, Credentials, Delivery, Nas, NasPort, Output, Secret,
    ServerConfig,
};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use wire::radius::{Code, Kind, Missing, Packet, Value, values, verify_response};

/// Requests that are open at a time while the client is measured.
const OPEN: u64 = 256;
/// Times that so many are answered in a round.
const PASSES: u32 = 16;
/// Requests that are open while memory is measured.
const PENDING: u64 = 60_000;
const SECRET: &str = "testing123";

/// Measures everything, without a network.
pub fn measure(rounds: usize) -> Result<Vec<Entry>> {
    let pending = pending()?;
    let mut entries = vec![
        client("radius-authentications", "authentications", rounds, asked)?,
        client("radius-records", "accounting records", rounds, told)?,
    ];
    entries.extend(control_plane(rounds)?);
    entries.push(pending);
    Ok(entries)
}

fn server() -> SocketAddr {
    ([192, 0, 2, 9], 1812).into()
}

fn new_client() -> Client {
    let nas = Nas {
        identifier: "bng1".into(),
        ipv4: Some([192, 0, 2, 1].into()),
        ipv6: None,
    };
    let mut config = ClientConfig::new(nas);
    let server = ServerConfig::new(server(), Secret::new(SECRET));
    config.authentication.push(server.clone());
    config.accounting.push(server);
    Client::new(config, [7; 32])
}

fn access_request(number: u64) -> AccessRequest {
    AccessRequest {
        username: format!("home{number}@isp.example").into_bytes(),
        credentials: Credentials::Pap {
            password: Secret::new("wonderland"),
        },
        acct_session_id: format!("{number:016x}"),
        sent_name: None,
        state: Vec::new(),
        nas_port: NasPort {
            port_id: Some("up1/access0:100.7".into()),
            calling_station: Some("02:00:00:00:00:07".into()),
            ..NasPort::default()
        },
    }
}

/// Time that the client, and then the codec and the digests alone, take for the same requests.
type Pass = fn(&mut Client) -> Result<[Duration; 2]>;

/// How many of a kind the client does in a second, beside codec and digests alone.
fn client(id: &str, name: &str, rounds: usize, pass: Pass) -> Result<Entry> {
    let (mut own, mut codec) = (Samples::default(), Samples::default());
    let mut client = new_client();
    for _ in 0..rounds {
        let mut took = [Duration::ZERO; 2];
        for _ in 0..PASSES {
            let [more, alone] = pass(&mut client)?;
            took = [took[0] + more, took[1] + alone];
        }
        let all = f64::from(PASSES) * OPEN as f64;
        own.0.push(all / took[0].as_secs_f64());
        codec.0.push(all / took[1].as_secs_f64());
    }
    let name = format!("{name} of the client, beside codec and digests alone");
    let entry = Entry::new(id, name, "a second and core", &own);
    let peer = "wire::radius";
    Ok(entry.beside(peer, &codec, |own, codec| codec / own))
}

/// Access-Requests and their Accepts.
fn asked(client: &mut Client) -> Result<[Duration; 2]> {
    let requests: Vec<AccessRequest> = (0..OPEN).map(access_request).collect();
    let answers = |bytes: &[u8]| {
        let mut accept = Packet::new(Code::ACCESS_ACCEPT, bytes[1], [0; 16]);
        accept.push(Kind::CLASS, b"gold".to_vec());
        accept.push(
            Kind::FRAMED_IP_ADDRESS,
            Value::Ipv4([203, 0, 113, 7].into()),
        );
        accept.push(Kind::SESSION_TIMEOUT, 86_400);
        accept
    };
    let begin = Instant::now();
    for (token, request) in (0..).zip(requests) {
        client.authenticate(Duration::ZERO, token, request);
    }
    let sent = sent(client);
    let took = begin.elapsed();
    let (more, replies) = answered(client, &sent, answers)?;
    let alone = codec(&sent, &replies, |request| {
        request.emit_access_request(SECRET.as_bytes())
    })?;
    Ok([took + more, alone])
}

/// Accounting-Requests and their answers.
fn told(client: &mut Client) -> Result<[Duration; 2]> {
    let attributes = attributes()?;
    let begin = Instant::now();
    for token in 0..OPEN {
        let slot = client.take_slot().context("no slot is free")?;
        let attributes = attributes.clone();
        client.account(
            Duration::ZERO,
            token,
            slot,
            attributes,
            Delivery::UntilRecorded,
        );
    }
    let sent = sent(client);
    let took = begin.elapsed();
    let answers = |bytes: &[u8]| Packet::new(Code::ACCOUNTING_RESPONSE, bytes[1], [0; 16]);
    let (more, replies) = answered(client, &sent, answers)?;
    let alone = codec(&sent, &replies, |request| {
        request.emit_accounting_request(SECRET.as_bytes())
    })?;
    Ok([took + more, alone])
}

/// Attributes of a Stop.
fn attributes() -> Result<Box<[u8]>> {
    let mut packet = Packet::new(Code::ACCOUNTING_REQUEST, 0, [0; 16]);
    packet.push(Kind::ACCT_STATUS_TYPE, values::ACCT_STATUS_TYPE_STOP);
    packet.push(Kind::ACCT_SESSION_ID, "0000000000000007");
    packet.push(Kind::USER_NAME, "home7@isp.example");
    packet.push(Kind::NAS_IDENTIFIER, "bng1");
    packet.push(Kind::NAS_PORT_ID, "up1/access0:100.7");
    packet.push(Kind::CALLING_STATION_ID, "02:00:00:00:00:07");
    packet.push(
        Kind::FRAMED_IP_ADDRESS,
        Value::Ipv4([203, 0, 113, 7].into()),
    );
    for kind in [
        Kind::ACCT_INPUT_OCTETS,
        Kind::ACCT_OUTPUT_OCTETS,
        Kind::ACCT_INPUT_PACKETS,
        Kind::ACCT_OUTPUT_PACKETS,
        Kind::ACCT_SESSION_TIME,
    ] {
        packet.push(kind, 123_456);
    }
    let mut bytes = Vec::new();
    packet.emit(&mut bytes)?;
    Ok(bytes[20..].into())
}

/// What the client sends: its socket and the datagram.
fn sent(client: &mut Client) -> Vec<(u16, Vec<u8>)> {
    let outputs = std::iter::from_fn(|| client.poll_output());
    let sent = outputs.filter_map(|output| match output {
        Output::Transmit { socket, bytes, .. } => Some((socket, bytes)),
        _ => None,
    });
    sent.collect()
}

/// Answers everything. Returns the time that the client takes for the answers, and the answers.
fn answered(
    client: &mut Client,
    sent: &[(u16, Vec<u8>)],
    answer: impl Fn(&[u8]) -> Packet,
) -> Result<(Duration, Vec<Vec<u8>>)> {
    ensure!(sent.len() as u64 == OPEN, "{} datagrams", sent.len());
    let mut replies = Vec::new();
    for (_, bytes) in sent {
        let mut answer = answer(bytes);
        answer.push(Kind::MESSAGE_AUTHENTICATOR, vec![0; 16]);
        let authenticator = bytes[4..20].try_into()?;
        replies.push(answer.emit_response(&authenticator, SECRET.as_bytes())?);
    }
    let begin = Instant::now();
    for ((socket, _), reply) in sent.iter().zip(&replies) {
        client.handle(Duration::ZERO, *socket, server(), reply);
    }
    let done = std::iter::from_fn(|| client.poll_output()).count() as u64;
    let took = begin.elapsed();
    ensure!(done == OPEN, "{done} of {OPEN} requests are answered");
    Ok((took, replies))
}

/// Time to write and sign the same requests, and to verify and read the answers.
fn codec(
    sent: &[(u16, Vec<u8>)],
    replies: &[Vec<u8>],
    emit: impl Fn(&Packet) -> wire::Result<Vec<u8>>,
) -> Result<Duration> {
    let requests: Result<Vec<Packet>, _> =
        sent.iter().map(|(_, bytes)| Packet::parse(bytes)).collect();
    let requests = requests?;
    let begin = Instant::now();
    for (request, reply) in requests.iter().zip(replies) {
        std::hint::black_box(emit(request)?);
        let authenticator = &request.authenticator;
        let read = verify_response(reply, authenticator, SECRET.as_bytes(), Missing::Refuse)?;
        std::hint::black_box(read);
    }
    Ok(begin.elapsed())
}

/// What the control plane does for sessions, changes of authorization, and ends.
fn control_plane(rounds: usize) -> Result<[Entry; 3]> {
    let (mut setups, mut changes, mut ends) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..rounds {
        let rates = sim::cost::measure(round as u64).map_err(anyhow::Error::msg)?;
        setups.0.push(rates.setups);
        changes.0.push(rates.changes);
        ends.0.push(rates.ends);
    }
    let entry = |id, name, samples: &Samples, least| {
        let mut entry = Entry::new(id, name, "a second and core", samples).at_least(least);
        entry.sessions = Some(sim::cost::SESSIONS as u32);
        entry
    };
    Ok([
        entry(
            "radius-setups",
            "sessions set up by the control plane, each authenticated, with a Start",
            &setups,
            2_000.0,
        ),
        entry(
            "radius-changes",
            "changes of authorization by the control plane, CoA-Request to CoA-ACK",
            &changes,
            1_000.0,
        ),
        entry(
            "radius-ends",
            "sessions ended by the control plane, each with a Stop",
            &ends,
            2_000.0,
        ),
    ])
}

/// Memory of a request that waits for its server.
fn pending() -> Result<Entry> {
    let mut client = new_client();
    let before = resident()?;
    for number in 0..PENDING {
        client.authenticate(Duration::ZERO, number, access_request(number));
        sent(&mut client);
    }
    let open = client.open_requests() as u64;
    ensure!(open == PENDING, "{open} of {PENDING} requests are open");
    let each = (resident()? - before) as f64 / PENDING as f64;
    let name = "memory of a pending request";
    Ok(Entry::new("radius-memory", name, "octets", &Samples(vec![each])).at_most(2_048.0))
}

/// Octets of this process in memory.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
    Ok(kib.trim().parse::<u64>()? << 10)
}
