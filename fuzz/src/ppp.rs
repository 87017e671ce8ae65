//! [`session::Link`]: any PPP frames and events, in any order, before and after a negotiation that went well.
use crate::{Step, script, steps};
use core::time::Duration;
use policy::{Access, Bindings};
use session::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::eth::{PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::ppp::{self, Control, Frame};
use wire::{chap, icmp, ipv6, pap, pppoe};

const SESSION_ID: u16 = 7;

const PROTOCOLS: [u16; 6] = [
    ppp::LCP,
    ppp::IPCP,
    ppp::IPV6CP,
    ppp::PAP,
    ppp::CHAP,
    ppp::CCP,
];
const CAUSES: [Cause; 4] = [
    Cause::AdminReset,
    Cause::SessionTimeout,
    Cause::NasRequest,
    Cause::PortError,
];
/// The most outputs of one input: a packet must not set off a storm.
const MOST_OUTPUTS: usize = 16;

/// What a step does, by `op % 16`.
mod op {
    /// A frame as it is.
    pub const RAW: u8 = 0;
    /// A control packet: protocol (by number), code, identifier, data.
    pub const CONTROL: u8 = 1;
    /// An answer to our last Configure-Request: protocol (by number), Ack, Nak or Reject, other options if not ours.
    pub const ANSWER: u8 = 2;
    /// A CHAP response to the present challenge: a hash of 16 octets, a name.
    pub const CHAP: u8 = 3;
    /// A PAP request: identifier, then name and password alike.
    pub const PAP: u8 = 4;
    /// The verdict: which families (0 refuses) and whether without proof, a text.
    pub const VERDICT: u8 = 5;
    /// The rules of a family, if they were asked for.
    pub const INSTALLED: u8 = 6;
    /// So many timers expire.
    pub const TIMERS: u8 = 7;
    /// So many tenths of a second pass.
    pub const WAIT: u8 = 8;
    /// The subscriber hangs up.
    pub const PADT: u8 = 9;
    /// We hang up.
    pub const TERMINATE: u8 = 10;
    /// The control plane starts anew.
    pub const RESTART: u8 = 11;
    /// Neighbour discovery: type, identifier of the sender, the rest.
    pub const NEIGHBOUR: u8 = 12;
    /// An MS-CHAPv2 response to the present challenge: a value of 49 octets, a name.
    pub const MSCHAPV2: u8 = 13;
}

struct World {
    config: Arc<SessionConfig>,
    link: Link,
    now: Duration,
    attempt: u8,
    challenge: u8,
    requests: BTreeMap<u16, (u8, Vec<u8>)>,
    /// How far the rules of a family are, as the owner of the link sees it.
    rules: [RulesState; 2],
    closed: bool,
}

/// Takes one input: an octet of configuration, then steps.
pub fn run(input: &[u8]) {
    let Some((&setup, script)) = input.split_first() else {
        return;
    };
    let mut world = World::new(setup);
    if setup & 0x10 != 0 {
        steps(&dial_in()).for_each(|step| world.step(step));
    }
    for step in steps(script) {
        world.step(step);
    }
    world.command(Command::Terminate(Cause::AdminReset));
    // Whatever happened before, a session that is to end does end.
    for _ in 0..64 {
        world.expire();
    }
    assert!(world.closed, "a session that does not end");
}

fn random() -> Random {
    Random {
        magic: 0x0102_0304,
        chap_challenge: [9; 16],
        chap_id: 1,
        interface_id: 0xabcd,
        seed: 42,
    }
}

impl World {
    fn new(setup: u8) -> Self {
        use AuthProtocol::{Chap, MsChapV2, Pap};
        let auth = match (setup & 0x20 != 0, setup & 3) {
            (false, 0) => vec![Chap, Pap],
            (false, 1) => vec![Pap, Chap],
            (false, 2) => vec![Chap],
            (false, _) => vec![Pap],
            (true, 0) => vec![MsChapV2, Chap, Pap],
            (true, _) => vec![MsChapV2],
        };
        let config = Arc::new(SessionConfig {
            auth,
            ..SessionConfig::default()
        });
        let max_payload = (setup & 4 != 0).then_some(1500);
        let now = Duration::from_secs(100);
        let access = Access::Pppoe(SESSION_ID);
        let link = Link::new(access, config.clone(), max_payload, random(), now);
        let mut world = World {
            config,
            link,
            now,
            attempt: 0,
            challenge: 0,
            requests: BTreeMap::new(),
            rules: [RulesState::Off; 2],
            closed: false,
        };
        world.drain();
        if setup & 8 == 0 {
            world.expire();
        }
        world
    }

    fn step(&mut self, step: Step<'_>) {
        match step.op & 15 {
            op::RAW => self.ppp(step.data),
            op::CONTROL => self.control(step),
            op::ANSWER => self.answer(step),
            op::CHAP | op::MSCHAPV2 => {
                let length = if step.op & 15 == op::CHAP { 16 } else { 49 };
                let mut value = step.data.get(..length).unwrap_or(step.data).to_vec();
                value.resize(length, 0);
                let name = step.data.get(length..length + 32).unwrap_or(b"alice");
                let id = self.challenge;
                self.frame(|f| {
                    chap::Packet::Response {
                        id,
                        value: &value,
                        name,
                    }
                    .emit(f)
                });
            }
            op::PAP => {
                let name = step
                    .data
                    .get(1..step.data.len().min(64))
                    .unwrap_or_default();
                self.frame(|f| {
                    pap::Packet::Request {
                        id: step.octet(0),
                        peer_id: name,
                        password: name,
                    }
                    .emit(f)
                });
            }
            op::VERDICT => self.verdict(step),
            op::INSTALLED => self.installed(step.octet(0)),
            op::TIMERS => (0..step.octet(0) % 16).for_each(|_| self.expire()),
            op::WAIT => {
                self.now += Duration::from_millis(100) * u32::from(step.number());
                self.link.on_timeout(self.now, Watch::Link);
                self.drain();
            }
            op::PADT => self.pppoe(PPPOE_DISCOVERY, pppoe::PADT, &[]),
            op::TERMINATE => {
                let cause = CAUSES[usize::from(step.octet(0) & 3)];
                self.command(Command::Terminate(cause));
            }
            op::RESTART => self.restart(),
            op::NEIGHBOUR => self.neighbour(step),
            _ => {}
        }
    }

    fn frame(&mut self, emit: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = Vec::new();
        emit(&mut frame);
        self.ppp(&frame);
    }

    fn ppp(&mut self, frame: &[u8]) {
        self.pppoe(PPPOE_SESSION, pppoe::SESSION, frame);
    }

    fn pppoe(&mut self, ethertype: u16, code: u8, payload: &[u8]) {
        let mut bytes = Vec::new();
        pppoe::Packet {
            code,
            session_id: SESSION_ID,
            payload: &payload[..payload.len().min(0xffff)],
        }
        .emit(&mut bytes);
        self.take(|link, now| link.on_frame(now, ethertype, &bytes));
    }

    fn command(&mut self, command: Command) {
        self.take(|link, now| link.command(now, command));
    }

    fn control(&mut self, step: Step<'_>) {
        let protocol = PROTOCOLS[usize::from(step.octet(0)) % PROTOCOLS.len()];
        let (code, id, data) = (
            step.octet(1),
            step.octet(2),
            step.data.get(3..).unwrap_or_default(),
        );
        self.frame(|f| Control { code, id, data }.emit(protocol, f));
    }

    fn answer(&mut self, step: Step<'_>) {
        let protocol = PROTOCOLS[usize::from(step.octet(0)) % 3];
        let Some((id, ours)) = self.requests.get(&protocol).cloned() else {
            return;
        };
        let code = ppp::CONFIGURE_ACK + step.octet(1) % 3;
        let data = step
            .data
            .get(2..)
            .filter(|data| !data.is_empty())
            .unwrap_or(&ours);
        self.frame(|f| Control { code, id, data }.emit(protocol, f));
    }

    fn verdict(&mut self, step: Step<'_>) {
        let families = step.octet(0);
        let message = step.data.get(1..).unwrap_or_default().to_vec();
        let ipv4 = Ipv4Grant {
            address: [100, 64, 0, 7].into(),
            gateway: [100, 64, 0, 1].into(),
            dns: [Some([192, 0, 2, 53].into()), None],
        };
        let ipv6 = Ipv6Grant {
            bindings: Bindings::of(None, Some("2001:db8:7::/64".parse().expect("a prefix"))),
            dns: ["2001:db8::53".parse().expect("an address")].into(),
            interface_id: (families & 4 != 0).then_some(0x1234),
        };
        let reply = match families & 3 {
            0 => AuthReply::Reject {
                message,
                error: (families & 8 != 0).then_some(648),
            },
            n => AuthReply::Accept {
                grant: Grant {
                    ipv4: (n & 1 != 0).then_some(ipv4),
                    ipv6: (n & 2 != 0).then_some(ipv6),
                },
                message,
                proof: (families & 8 == 0).then_some([7; 20]),
            },
        };
        self.command(Command::Auth {
            attempt: self.attempt,
            reply,
        });
    }

    fn installed(&mut self, family: u8) {
        let family = [Family::Ipv4, Family::Ipv6][usize::from(family & 1)];
        if self.rules[family as usize] == RulesState::Asked {
            self.rules[family as usize] = RulesState::Installed;
            self.command(Command::Installed(family));
        }
    }

    fn neighbour(&mut self, step: Step<'_>) {
        let from = format!("fe80::{:x}", step.octet(1))
            .parse()
            .expect("an address");
        let to = "ff02::2".parse().expect("an address");
        let payload = step.data.get(2..).unwrap_or_default();
        let mut message = Vec::new();
        icmp::Message {
            kind: 133 + step.octet(0) % 5,
            code: 0,
            rest: [0; 4],
            payload,
        }
        .emit_v6(from, to, &mut message);
        let header = ipv6::Header {
            hop_limit: 255,
            ..ipv6::Header::new(ipv6::ICMPV6, from, to)
        };
        let mut packet = Vec::new();
        ipv6::Packet {
            header,
            payload: &message,
        }
        .emit(&mut packet);
        self.frame(|f| {
            Frame {
                protocol: ppp::IPV6,
                payload: &packet,
            }
            .emit(f)
        });
    }

    fn take<E>(&mut self, input: impl FnOnce(&mut Link, Duration) -> Result<(), E>) {
        self.now += Duration::from_millis(1);
        let taken = input(&mut self.link, self.now);
        assert!(
            !self.closed || taken.is_err(),
            "a session goes on after its end"
        );
        self.drain();
    }

    /// The next timer expires.
    fn expire(&mut self) {
        let Some(at) = self.link.poll_at() else {
            return;
        };
        self.now = self.now.max(at);
        self.link.on_timeout(self.now, Watch::Link);
        assert!(
            self.link.poll_at().is_none_or(|next| next > self.now),
            "a timer that does not stop"
        );
        self.drain();
    }

    fn restart(&mut self) {
        let Some(snapshot) = self.link.snapshot() else {
            return;
        };
        let access = Access::Pppoe(SESSION_ID);
        self.link = Link::restore(access, self.config.clone(), snapshot.clone(), 43, self.now);
        for rules in &mut self.rules {
            if *rules != RulesState::Off {
                *rules = RulesState::Up;
            }
        }
        // A family that was not up yet is asked for anew, by a request with the next identifier.
        let but_for_requests = |snapshot| Snapshot {
            request_ids: [0; 3],
            ..snapshot
        };
        assert_eq!(
            self.link.snapshot().map(but_for_requests),
            Some(but_for_requests(snapshot)),
            "a restart changed the session"
        );
        self.drain();
    }

    fn drain(&mut self) {
        let mut outputs = 0;
        while let Some(output) = self.link.poll_output() {
            outputs += 1;
            assert!(outputs <= MOST_OUTPUTS, "a storm");
            assert!(!self.closed, "{output:?} after the end");
            match output {
                Output::Frame(frame) if frame.ethertype == PPPOE_SESSION => {
                    let packet = pppoe::Packet::parse(&frame.payload).expect("a frame of our own");
                    assert_eq!(packet.session_id, SESSION_ID);
                    self.sent(packet.payload);
                }
                Output::Frame(_) => {}
                Output::Authenticate(request) => self.attempt = request.attempt,
                Output::Install(family) => {
                    self.change(family, &[RulesState::Off], RulesState::Asked)
                }
                Output::Up(family) => self.change(family, &[RulesState::Installed], RulesState::Up),
                Output::Down(family) => {
                    self.change(
                        family,
                        &[RulesState::Asked, RulesState::Installed, RulesState::Up],
                        RulesState::Off,
                    );
                }
                Output::Closed(_) => {
                    assert_eq!(
                        self.rules,
                        [RulesState::Off; 2],
                        "rules that nobody takes back"
                    );
                    assert_eq!(self.link.poll_at(), None);
                    self.closed = true;
                }
            }
        }
        assert_eq!(self.link.status().rules, self.rules);
    }

    fn change(&mut self, family: Family, from: &[RulesState], to: RulesState) {
        let rules = &mut self.rules[family as usize];
        assert!(from.contains(rules), "{family}: from {rules:?} to {to:?}");
        *rules = to;
    }

    fn sent(&mut self, frame: &[u8]) {
        assert!(frame.len() <= 2 + 1500, "{} octets", frame.len());
        let frame = Frame::parse(frame).expect("a frame of our own");
        if frame.protocol == ppp::IPV6 {
            wire::nd::Packet::parse(frame.payload).expect("a router advertisement of our own");
            return;
        }
        let packet = Control::parse(frame.payload).expect("a packet of our own");
        assert_eq!(
            packet.data.len() + 4,
            frame.payload.len(),
            "a length that is not the packet's"
        );
        if frame.protocol == ppp::CHAP && packet.code == 1 {
            self.challenge = packet.id;
        } else if packet.code == ppp::CONFIGURE_REQUEST {
            self.requests
                .insert(frame.protocol, (packet.id, packet.data.to_vec()));
        }
    }
}

/// What a subscriber does that gets both families, as steps.
fn dial_in() -> Vec<u8> {
    script([
        (op::CONTROL, &[0, 1, 1, 1, 4, 5, 0xd4, 5, 6, 1, 2, 3, 5][..]),
        (op::ANSWER, &[0, 0]),
        (op::CHAP, b"0123456789abcdefalice"),
        (op::MSCHAPV2, b"0123456789abcdef"),
        (op::PAP, b"\x01alice"),
        (op::VERDICT, b"\x03welcome"),
        (
            op::CONTROL,
            &[1, 1, 1, 3, 6, 0, 0, 0, 0, 129, 6, 0, 0, 0, 0],
        ),
        (op::CONTROL, &[1, 1, 2, 3, 6, 100, 64, 0, 7]),
        (op::ANSWER, &[1, 0]),
        (op::INSTALLED, &[0]),
        (op::CONTROL, &[2, 1, 1, 1, 10, 0, 0, 0, 0, 0, 0, 0, 7]),
        (op::ANSWER, &[2, 0]),
        (op::INSTALLED, &[1]),
        (op::NEIGHBOUR, &[0, 7]),
    ])
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    const ONLINE: u8 = 0x10;
    let with =
        |setup: u8, steps: &[(u8, &[u8])]| [vec![setup], script(steps.iter().copied())].concat();
    let mut seeds: Vec<_> = (0..8)
        .chain([0x20, 0x21])
        .map(|setup| [vec![setup], dial_in()].concat())
        .collect();
    seeds.extend([
        with(
            ONLINE,
            &[(op::TIMERS, &[9]), (op::CONTROL, &[0, 9, 1, 1, 2, 3, 5])],
        ),
        with(ONLINE, &[(op::CONTROL, &[0, 5, 9])]),
        with(
            ONLINE,
            &[
                (op::CONTROL, &[1, 5, 9]),
                (op::CONTROL, &[1, 1, 9, 3, 6, 100, 64, 0, 7]),
            ],
        ),
        with(ONLINE, &[(op::CONTROL, &[2, 5, 9]), (op::TIMERS, &[3])]),
        with(
            ONLINE,
            &[
                (op::RESTART, &[]),
                (op::TIMERS, &[2]),
                (op::CONTROL, &[0, 1, 2, 5, 6, 1, 2, 3, 6]),
            ],
        ),
        with(
            ONLINE,
            &[
                (op::CONTROL, &[0, 8, 1, 0x80, 0x57, 1, 1, 0, 4]),
                (op::CONTROL, &[5, 1, 1]),
            ],
        ),
        with(
            ONLINE,
            &[(op::CONTROL, &[0, 10, 1, 1, 2, 3, 4]), (op::PADT, &[])],
        ),
        with(ONLINE, &[(op::WAIT, &[0xff, 0xff]), (op::TERMINATE, &[1])]),
        with(
            ONLINE,
            &[
                (op::NEIGHBOUR, &[2, 7, 0xfe, 0x80]),
                (op::RAW, &[0x00, 0x57, 0x60]),
            ],
        ),
        with(
            0,
            &[
                (op::ANSWER, &[0, 1, 3, 4, 0xc0, 0x23]),
                (op::ANSWER, &[0, 2, 1, 4, 5, 0xd4]),
            ],
        ),
    ]);
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripted_subscriber_gets_both_families() {
        for setup in (0..16).chain(0x20..0x30) {
            let mut world = World::new(setup);
            steps(&dial_in()).for_each(|step| world.step(step));
            assert_eq!(world.rules, [RulesState::Up; 2], "setup {setup}");
        }
    }
}
