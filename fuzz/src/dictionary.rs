//! [`aaa::dictionary`] and [`aaa::mapping`]: any text in place of dictionaries, any mappings of what they have, and any answers that
//! are read with them.
use crate::{Step, script, steps};
use aaa::dictionary::Dictionary;
use aaa::mapping::{AttributeMapping, Mappings, Setting, Unit};
use aaa::{
    AccessAccept, AccessRequest, Client, ClientConfig, Credentials, Nas, NasPort, Outcome, Output,
    Secret, ServerConfig,
};
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::radius::{Code, HEADER_LEN, Packet};

const SECRET: &[u8] = b"testing123";

/// What a step does, by `op % 4`.
mod op {
    /// A file: its name is an octet, the rest is its text. The first one is the one that is loaded.
    pub const FILE: u8 = 0;
    /// A mapping: setting, unit, and the attribute's name, behind a space its key.
    pub const MAP: u8 = 1;
    /// An answer with these attributes.
    pub const ANSWER: u8 = 2;
}

const SETTINGS: [Setting; 16] = [
    Setting::RateUp,
    Setting::RateDown,
    Setting::RateUpDown,
    Setting::RateDownUp,
    Setting::Dns,
    Setting::Profile,
    Setting::Ipv4Pool,
    Setting::Ipv6Pool,
    Setting::VlanPriority,
    Setting::PolicyUp,
    Setting::PolicyDown,
    Setting::Mtu,
    Setting::SessionTimeout,
    Setting::IdleTimeout,
    Setting::Route,
    Setting::Nothing,
];
const UNITS: [Option<Unit>; 6] = [
    None,
    Some(Unit::BitPerSecond),
    Some(Unit::KbitPerSecond),
    Some(Unit::MbitPerSecond),
    Some(Unit::Second),
    Some(Unit::Minute),
];

/// Takes one input.
///
/// # Panics
/// If an answer's settings are out of their ranges, or a mapping is refused beside others and not alone.
pub fn run(input: &[u8]) {
    let (mut files, mut first) = (BTreeMap::new(), None);
    let (mut mappings, mut answers) = (Vec::new(), Vec::new());
    for step in steps(input) {
        match step.op & 3 {
            op::FILE => {
                let name = PathBuf::from(char::from(step.octet(0)).to_string());
                let text = String::from_utf8_lossy(step.data.get(1..).unwrap_or_default());
                first.get_or_insert_with(|| name.clone());
                files.insert(name, text.into_owned());
            }
            op::MAP => mappings.push(mapping(step)),
            op::ANSWER => answers.push(step.data),
            _ => {}
        }
    }
    let read = |file: &Path| {
        let text = files.get(file).cloned();
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let loaded = Dictionary::shipped().load(first.as_slice(), read);
    let dictionary = loaded.map_or_else(|_| Dictionary::shipped(), Arc::new);
    if let Err(errors) = Mappings::new(dictionary.clone(), &mappings) {
        let wrong: Vec<usize> = errors.into_iter().map(|(position, _)| position).collect();
        let mut position = 0..;
        mappings.retain(|_| !position.next().is_some_and(|at| wrong.contains(&at)));
    }
    let mappings = Mappings::new(dictionary, &mappings).expect("the wrong ones are gone");
    let mappings = Arc::new(mappings);
    for attributes in answers {
        if let Some(accept) = answer(mappings.clone(), attributes) {
            check(&accept);
        }
    }
}

fn mapping(step: Step<'_>) -> AttributeMapping {
    let text = String::from_utf8_lossy(step.data.get(2..).unwrap_or_default()).into_owned();
    let (attribute, key) = match text.split_once(' ') {
        Some((attribute, key)) => (attribute.to_owned(), Some(key.to_owned())),
        None => (text, None),
    };
    AttributeMapping {
        attribute,
        key,
        setting: SETTINGS[usize::from(step.octet(0)) % SETTINGS.len()],
        unit: UNITS[usize::from(step.octet(1)) % UNITS.len()],
    }
}

/// What the client says of an Access-Accept with these attributes. `None`: they are no packet, or the answer is a refusal.
fn answer(mappings: Arc<Mappings>, attributes: &[u8]) -> Option<AccessAccept> {
    let server = SocketAddr::from(([192, 0, 2, 1], 1812));
    let mut config = ClientConfig::new(Nas::default());
    config.authentication = vec![ServerConfig::new(server, Secret::new(SECRET))];
    config.mappings = mappings;
    let mut client = Client::new(config, [7; 32]);
    let request = AccessRequest {
        username: b"alice".to_vec(),
        sent_name: None,
        credentials: Credentials::Pap {
            password: Secret::new("wonderland"),
        },
        acct_session_id: "1".into(),
        nas_port: NasPort::default(),
        state: Vec::new(),
    };
    client.authenticate(Duration::ZERO, 1, request);
    let Some(Output::Transmit { socket, bytes, .. }) = client.poll_output() else {
        panic!("nothing is sent");
    };
    let length = u16::try_from(HEADER_LEN + attributes.len()).ok()?;
    let head = [
        &[Code::ACCESS_ACCEPT.0, bytes[1]],
        &length.to_be_bytes()[..],
    ]
    .concat();
    let packet = Packet::parse(&[&head, &[0; 16][..], attributes].concat()).ok()?;
    let authenticator = bytes[4..HEADER_LEN].try_into().expect("sixteen octets");
    let reply = packet.emit_response(&authenticator, SECRET).ok()?;
    client.handle(Duration::ZERO, socket, server, &reply);
    match client.poll_output() {
        Some(Output::Done {
            outcome: Outcome::Accept(accept),
            ..
        }) => Some(*accept),
        _ => None,
    }
}

fn check(accept: &AccessAccept) {
    let rates = [
        accept.rate_up,
        accept.rate_down,
        accept.committed_rate_up,
        accept.committed_rate_down,
        accept.subscriber_rate_up,
        accept.subscriber_rate_down,
    ];
    for rate in rates.into_iter().flatten() {
        let kbps = rate.get();
        assert!((8..=400_000_000).contains(&kbps), "a rate of {kbps} kbit/s");
    }
    assert!(accept.vlan_priority.is_none_or(|priority| priority <= 7));
    assert!(accept.dns.len() <= 8, "{} DNS servers", accept.dns.len());
    let routes = &accept.framed_routes;
    assert!(routes.iter().all(|route| route.net.prefix_len() > 0));
}

/// Dictionaries, mappings and answers to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let acme = "aVENDOR Acme 32473 format=2,1,c\n$INCLUDE- b\n$INCLUDE c\nBEGIN-VENDOR Acme\nATTRIBUTE Acme-Down 1 integer \
        has_tag # kbit/s\nVALUE Acme-Down Slow 0x10\nBEGIN-TLV X\nATTRIBUTE Acme-Inner 1 string\nEND-TLV X\nEND-VENDOR Acme\n\
        ATTRIBUTE Acme-Key 3 string encrypt=2\nATTRIBUTE Acme-Part 241.1 byte\n";
    let text = |number: u8, vendor: u32, value: &[u8]| {
        let inner = [&[number, value.len() as u8 + 2], value].concat();
        let head = [26, inner.len() as u8 + 6];
        [&head, &vendor.to_be_bytes()[..], &inner].concat()
    };
    let answer = [
        text(8, 14988, b"5M/20M 10M/20M"),
        text(1, 9, b"ip:dns-servers=192.0.2.53 2001:db8::1"),
        text(1, 9, b"ip:route#1=192.0.2.0 255.255.255.0"),
        text(9, 6527, &[192, 0, 2, 53]),
        text(2, 2011, &20_000_000u32.to_be_bytes()),
        vec![11, 6, b'g', b'o', b'l', b'd'],
    ];
    let acme_down = [
        &[26, 14],
        &32473u32.to_be_bytes()[..],
        &[0, 1, 8, 0, 0, 0, 9, 9],
    ]
    .concat();
    let file = (op::FILE, acme.as_bytes().to_vec());
    vec![
        script([
            file.clone(),
            (op::FILE, b"cVENDOR Other 7 format=4,0\n".to_vec()),
            (op::MAP, [&[1, 2], &b"Acme-Down"[..]].concat()),
            (op::ANSWER, acme_down),
        ]),
        script([(op::ANSWER, answer.concat())]),
        script([
            (op::MAP, [&[3, 2], &b"Filter-Id"[..]].concat()),
            (op::MAP, [&[9, 0], &b"Cisco-AVPair mtu"[..]].concat()),
            (
                op::ANSWER,
                [&[11, 8][..], b"20/300", &text(1, 9, b"mtu=1400")].concat(),
            ),
        ]),
        script([file, (op::FILE, b"c$INCLUDE a".to_vec())]),
    ]
}
