//! [`session::discovery`]: what a stateless server says to any packet from any circuit.
use crate::{Step, script, steps};
use core::time::Duration;
use session::Circuit;
use session::discovery::{Answer, Discovery, DiscoveryConfig, Refusal};
use wire::eth::{MacAddr, Tags};
use wire::pppoe::{self, Discovery as Packet, Tag};

const LIFETIME: Duration = Duration::from_secs(60);
/// The payload of a frame on an access port without jumbo frames.
const ETHERNET: usize = 1500;

/// A packet as it is, from circuit `op % 4`.
const RAW: u8 = 0;
/// A packet whose AC-Cookie is the one offered last, to whichever circuit.
const WITH_COOKIE: u8 = 1;
/// Seconds pass.
const WAIT: u8 = 2;

struct World {
    server: Discovery,
    now: Duration,
    /// The last cookie, to which circuit, and when.
    offered: Option<(Vec<u8>, u8, Duration)>,
}

fn server() -> Discovery {
    Discovery::new(DiscoveryConfig {
        ac_name: "bng1".into(),
        service_names: vec!["internet".into(), "voice".into()],
        accepts_any_service: false,
        cookie_key: [7; 32],
        cookie_lifetime: LIFETIME,
        trusts_access_line: true,
        max_payload: Some(1500),
    })
}

fn circuit(number: u8) -> Circuit {
    let tags = match number {
        0 => Tags::NONE,
        1 => Tags::single(100),
        _ => Tags::qinq(100, number.into()),
    };
    Circuit {
        logical_port: (*b"access0").into(),
        tags,
        mac: MacAddr([2, 0, 0, 0, 0, number]),
    }
}

/// Takes one input.
pub fn run(input: &[u8]) {
    let mut world = World {
        server: server(),
        now: Duration::from_secs(1000),
        offered: None,
    };
    for step in steps(input) {
        match step.op >> 2 & 3 {
            RAW => world.send(step.op & 3, step.data),
            WITH_COOKIE => world.send_with_cookie(step),
            _ => world.now += Duration::from_secs(step.number().into()),
        }
    }
}

impl World {
    fn send(&mut self, from: u8, payload: &[u8]) {
        let answer = self.server.on_frame(self.now, &circuit(from), payload);
        self.check(from, &answer);
    }

    fn send_with_cookie(&mut self, step: Step<'_>) {
        let Some((cookie, to, at)) = self.offered.clone() else {
            return;
        };
        let Some(payload) = with_cookie(step.data, &cookie) else {
            return;
        };
        let from = step.op & 3;
        let answer = self.server.on_frame(self.now, &circuit(from), &payload);
        if matches!(answer, Answer::Admit(_)) {
            assert_eq!(from, to, "a cookie was good for another circuit");
            assert!(self.now - at <= LIFETIME, "a cookie was good for ever");
        }
        self.check(from, &answer);
    }

    fn check(&mut self, from: u8, answer: &Answer) {
        match answer {
            Answer::Offer(bytes) | Answer::Reply(bytes) => {
                let reply = parse(bytes);
                match reply.code {
                    pppoe::PADO => {
                        let cookie = reply.tags.iter().find_map(|tag| match tag {
                            Tag::AcCookie(value) => Some(value.to_vec()),
                            _ => None,
                        });
                        let cookie = cookie.expect("an offer without a cookie");
                        self.offered = Some((cookie, from, self.now));
                    }
                    pppoe::PADS => assert_eq!(reply.session_id, 0),
                    code => panic!("a reply with code {code:#x}"),
                }
            }
            Answer::Admit(padr) => {
                assert_eq!(parse(&self.server.pads(padr, 7)).session_id, 7);
                for refusal in [
                    Refusal::ServiceName,
                    Refusal::System("no session id is left"),
                ] {
                    assert_eq!(parse(&self.server.refuse(padr, refusal)).session_id, 0);
                }
            }
            Answer::Terminate { session_id } => assert_ne!(*session_id, 0),
            Answer::Ignore(_) => {}
        }
    }
}

/// The packet with this cookie in place of its own.
fn with_cookie(bytes: &[u8], cookie: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Packet::parse(bytes).ok()?;
    packet.tags.retain(|tag| !matches!(tag, Tag::AcCookie(_)));
    packet.tags.push(Tag::AcCookie(cookie));
    let mut payload = Vec::new();
    packet.emit(&mut payload);
    Some(payload)
}

/// What we send can be read, and fits into a frame.
fn parse(bytes: &[u8]) -> Packet<'_> {
    assert!(bytes.len() <= ETHERNET, "{} octets", bytes.len());
    Packet::parse(bytes).expect("a packet of our own")
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let packet = |code, session_id, tags: Vec<Tag<'_>>| {
        let mut bytes = Vec::new();
        Packet {
            code,
            session_id,
            tags,
        }
        .emit(&mut bytes);
        bytes
    };
    let mut line = Vec::new();
    pppoe::AccessLine {
        circuit_id: Some(b"olt1 1/1:7"),
        remote_id: Some(b"home"),
        others: vec![],
    }
    .emit(&mut line);
    let padi = packet(
        pppoe::PADI,
        0,
        vec![
            Tag::ServiceName(b""),
            Tag::HostUniq(b"uniq"),
            Tag::MaxPayload(1500),
        ],
    );
    let padr = packet(
        pppoe::PADR,
        0,
        vec![
            Tag::ServiceName(b"internet"),
            Tag::HostUniq(b"uniq"),
            Tag::RelaySessionId(b"relay"),
            Tag::AcCookie(&[0; 16]),
            Tag::Vendor(pppoe::VENDOR_BBF, &line),
        ],
    );
    let padt = packet(pppoe::PADT, 9, vec![Tag::GenericError(b"bye")]);
    let wait = 30u16.to_be_bytes().to_vec();
    let asks = |circuit| {
        script([
            (RAW << 2 | circuit, padi.clone()),
            (WAIT << 2, wait.clone()),
            (WITH_COOKIE << 2 | circuit, padr.clone()),
            (WITH_COOKIE << 2, padr.clone()),
            (RAW << 2 | circuit, padt.clone()),
        ])
    };
    vec![
        asks(0),
        asks(1),
        asks(2),
        script([(0, padi.clone()), (1, padr.clone()), (2, padt.clone())]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_that_is_put_in_is_good() {
        let mut world = World {
            server: server(),
            now: Duration::from_secs(1000),
            offered: None,
        };
        let seed = &seeds()[2];
        steps(seed)
            .take(1)
            .for_each(|step| world.send(step.op & 3, step.data));
        let (cookie, to, _) = world.offered.clone().expect("an offer");
        let padr = steps(seed).nth(2).expect("a PADR");
        let payload = with_cookie(padr.data, &cookie).expect("a packet");
        let answer = world.server.on_frame(world.now, &circuit(to), &payload);
        assert!(matches!(answer, Answer::Admit(_)), "{answer:?}");
    }
}
