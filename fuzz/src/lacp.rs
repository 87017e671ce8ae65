//! What comes by the links of a LAG ([`lacp`], [`wire::lacp`]), while time passes and links go up and down.
use crate::script;
use core::time::Duration;
use lacp::{Group, Mode, Settings};
use wire::eth::MacAddr;
use wire::lacp::{Lacpdu, Party, State, marker_response};

const MEMBERS: usize = 3;

/// LACPDUs of all members that are sent in a second at most.
const MOST: usize = 3 * MEMBERS;

/// Takes one input: payloads that members receive, and what happens in between.
pub fn run(input: &[u8]) {
    let mut group = Group::new(settings(0), MEMBERS);
    let (mut now, mut up) = (Duration::ZERO, 0u16);
    let mut sent: Vec<Duration> = Vec::new();
    for step in crate::steps(input) {
        let member = usize::from(step.op >> 4) % (MEMBERS + 1);
        match step.op & 3 {
            0 => receive(&mut group, now, member, step.data),
            1 => {
                let is_up = step.octet(0) & 1 != 0;
                group.set_link(now, member, is_up);
                if member < MEMBERS {
                    up = up & !(1 << member) | u16::from(is_up) << member;
                }
            }
            2 => now += Duration::from_millis(step.number().into()),
            _ => group.set(now, settings(step.octet(0))),
        }
        group.on_timeout(now);
        while group.poll_transmit(now).is_some() {
            sent.push(now);
        }
        let (receives, sends) = (group.receives(), group.sends());
        assert_eq!(receives & !up, 0, "a member whose link is down is used");
        assert_eq!(sends & !receives, 0, "a member sends and receives nothing");
        assert!(
            group.poll_at().is_none_or(|at| at > now),
            "it has something to do, and does not do it"
        );
        let many = sent
            .windows(MOST + 1)
            .find(|times| times[MOST] - times[0] < Duration::from_secs(1));
        assert_eq!(many, None, "a storm");
    }
}

fn settings(octet: u8) -> Settings {
    Settings {
        mode: [Mode::Active, Mode::Passive, Mode::Off, Mode::Active][usize::from(octet & 3)],
        fast: octet & 4 == 0,
        minimum: 1 + u16::from(octet >> 3 & 1),
        system: MacAddr([2, 0, 0, 0, 0, 1]),
        ..Settings::default()
    }
}

/// As it is; or, as no mutation guesses what a partner has to say, from one that knows this end.
fn receive(group: &mut Group, now: Duration, member: usize, data: &[u8]) {
    if let Ok(pdu) = Lacpdu::parse(data) {
        let mut written = Vec::new();
        pdu.emit(&mut written);
        assert_eq!(Lacpdu::parse(&written), Ok(pdu));
    }
    if let Some(answer) = group.receive(now, member, data) {
        assert_eq!(marker_response(data), Some(answer.clone()));
        assert_eq!(
            group.receive(now, member, &answer),
            None,
            "an answer to an answer"
        );
    }
    if let [system, key, state] = data {
        let (mut written, own) = (Vec::new(), settings(0));
        partner(*system, *key, State::from_bits_retain(*state), member, own).emit(&mut written);
        group.receive(now, member, &written);
    }
}

fn partner(system: u8, key: u8, state: State, member: usize, own: Settings) -> Lacpdu {
    let port = member as u16 + 1;
    let party = |settings: Settings, state| Party {
        system_priority: settings.system_priority,
        system: settings.system,
        key: settings.key,
        port_priority: 0x8000,
        port,
        state,
    };
    let other = Settings {
        system: MacAddr([2, 0, 0, 0, 0, system]),
        key: key.into(),
        ..own
    };
    Lacpdu {
        actor: party(other, state),
        partner: party(own, state),
        max_delay: 0,
    }
}

/// Links that come up and agree; and what both protocols have to say, as it is on the wire.
pub fn seeds() -> Vec<Vec<u8>> {
    let agreed = State::ACTIVITY | State::AGGREGATION | State::SYNCHRONIZATION | State::COLLECTING;
    let says = [2, 1, agreed.bits()];
    let mut pdu = Vec::new();
    partner(2, 1, agreed, 0, settings(0)).emit(&mut pdu);
    let mut marker = vec![2, 1, 1, 16, 0, 1, 2, 0, 0, 0, 0, 2, 0, 0, 0, 7];
    marker.resize(110, 0);
    vec![
        script([
            (0x01, &[1][..]),
            (0x11, &[1]),
            (0x00, &says),
            (0x10, &says),
            (2, &[0x10, 0]),
            (0x01, &[0]),
        ]),
        script([
            (0x01, &[1][..]),
            (0x00, &pdu),
            (0x00, &marker),
            (2, &[1, 0]),
            (3, &[4]),
        ]),
        script([
            (0x01, &[1][..]),
            (0x11, &[1]),
            (0x00, &says),
            (0x10, &[3, 1, agreed.bits()]),
            (3, &[8]),
        ]),
    ]
}
