use super::*;
use cpe::{HomeConfig, Output};
use std::net::Ipv4Addr;
use wire::eth::{self, Frame, Header, MacAddr};
use wire::ppp::{self, Control};
use wire::pppoe::{self, Discovery, Packet, Tag};
use wire::{ipcp, lcp};

fn homes(count: u32) -> Homes {
    let config = |n: u32| HomeConfig {
        ipv6: false,
        ..HomeConfig::new([2, 0, 0, 0, 0, n as u8].into(), 100, n as u16 + 1, "x", "y")
    };
    Homes::new((0..count).map(config), 1)
}

fn dialling(at_once: u32, rate: Option<f64>) -> Dialling {
    Dialling {
        at_once,
        rate,
        redial: Duration::from_secs(1),
    }
}

#[test]
fn homes_dial_at_their_rate_and_not_too_many_at_once() {
    let mut homes = homes(50);
    let mut dialler = Dialler::new(50, dialling(20, Some(100.0)), None);
    let mut dialled = |ms| {
        dialler.run(Duration::from_millis(ms), &mut homes, 0);
        homes.at(State::Discovery)
    };
    assert_eq!(
        [0, 5, 10, 15, 20].map(&mut dialled),
        [1, 1, 2, 2, 3],
        "one in 10 ms"
    );
    assert_eq!((20..1000).map(dialled).max(), Some(20), "at once");
}

#[test]
fn a_home_that_was_refused_dials_again_after_a_while() {
    let mut homes = homes(1);
    let mut dialler = Dialler::new(1, dialling(1, None), None);
    dialler.run(Duration::ZERO, &mut homes, 0);
    homes.hang_up(0, Duration::ZERO);
    let ended = std::iter::from_fn(|| homes.poll_output());
    assert!(
        ended
            .into_iter()
            .any(|(_, o)| matches!(o, Output::Ended(_)))
    );
    dialler.ended(0, false, Duration::ZERO);
    assert_eq!(dialler.next_at(&homes), Some(Duration::from_secs(1)));
    dialler.run(Duration::from_millis(999), &mut homes, 0);
    assert_eq!(homes.at(State::Offline), 1);
    dialler.run(Duration::from_millis(1000), &mut homes, 0);
    assert_eq!(homes.at(State::Discovery), 1);
}

#[test]
fn who_hangs_up_for_good_dials_no_more() {
    let mut homes = homes(30);
    let mut dialler = Dialler::new(30, dialling(100, Some(1000.0)), None);
    for ms in 0..40 {
        dialler.run(Duration::from_millis(ms), &mut homes, 0);
    }
    assert_eq!(homes.at(State::Discovery), 30);
    dialler.hang_up(&homes);
    dialler.run(Duration::from_millis(40), &mut homes, 0);
    // the rate makes up for the last 20 ms
    assert!(homes.at(State::Discovery) >= 8, "not all at once");
    for ms in 41..100 {
        dialler.run(Duration::from_millis(ms), &mut homes, 0);
    }
    assert_eq!(homes.at(State::Offline), 30);
    dialler.ended(3, true, Duration::from_millis(100));
    assert_eq!(dialler.next_at(&homes), None);
}

#[test]
fn who_was_told_to_leave_does_not_dial_after_a_reboot() {
    let mut homes = homes(5);
    let mut dialler = Dialler::new(5, dialling(100, None), None);
    dialler.run(Duration::ZERO, &mut homes, 0);
    assert_eq!(homes.at(State::Discovery), 5);
    dialler.hang_up(&homes);
    (0..5).for_each(|home| homes.reboot(home, 1));
    dialler.all_rebooted();
    dialler.run(Duration::from_secs(1), &mut homes, 0);
    assert_eq!(homes.at(State::Offline), 5);
    assert_eq!(dialler.next_at(&homes), None);
}

/// Homes that all are online.
fn online(count: u32, dialler: &mut Dialler) -> Homes {
    let mut homes = homes(count);
    while homes.at(State::Online) < count {
        let before = homes.at(State::Online);
        dialler.run(Duration::ZERO, &mut homes, 0);
        serve(&mut homes, dialler);
        assert!(homes.at(State::Online) > before, "nobody comes online");
    }
    homes
}

#[test]
fn not_too_many_hang_up_at_once() {
    let mut dialler = Dialler::new(10, dialling(3, None), None);
    let mut homes = online(10, &mut dialler);
    dialler.hang_up(&homes);
    for left in [10, 7, 4, 1] {
        dialler.run(Duration::ZERO, &mut homes, 0);
        assert_eq!(homes.at(State::Closing), left.min(3));
        assert_eq!(dialler.next_at(&homes), None, "the gateway's turn");
        serve(&mut homes, &mut dialler);
    }
    assert_eq!(homes.at(State::Offline), 10);
}

#[test]
fn homes_under_way_hang_up_first_and_need_no_room() {
    let mut dialler = Dialler::new(4, dialling(2, None), None);
    let mut homes = online(4, &mut dialler);
    for home in [2, 3] {
        homes.reboot(home, 1);
        homes.dial(home, Duration::ZERO);
    }
    assert_eq!(homes.at(State::Discovery), 2, "there is no room");
    dialler.hang_up(&homes);
    dialler.run(Duration::ZERO, &mut homes, 0);
    assert_eq!((homes.at(State::Offline), homes.at(State::Closing)), (2, 2));
}

#[test]
fn not_too_many_leave_at_once_in_order_to_come_back() {
    let flapping = Flapping {
        rate: 1000.0,
        how: Some(Leaving::Terminate),
        off: Duration::from_secs(1),
    };
    let mut dialler = Dialler::new(10, dialling(3, None), Some(flapping));
    let mut homes = online(10, &mut dialler);
    dialler.start_flapping(Duration::ZERO);
    for ms in 0..=100 {
        dialler.run(Duration::from_millis(ms), &mut homes, 0);
    }
    let muted = (0..10).filter(|&home| dialler.is_muted(home)).count();
    assert_eq!((muted, dialler.flaps()), (10, 0), "each is chosen once");
    let now = Duration::from_millis(700);
    for (closing, flaps) in [(3, 3), (3, 6), (3, 9), (1, 10)] {
        dialler.run(now, &mut homes, 0);
        assert_eq!(
            (homes.at(State::Closing), dialler.flaps()),
            (closing, flaps)
        );
        let is_due = dialler.next_at(&homes).is_some_and(|at| at <= now);
        assert!(closing < 3 || !is_due, "who waits for room is not due");
        serve(&mut homes, &mut dialler);
    }
}

/// A gateway: answers what the homes have sent, until they have nothing to say.
fn serve(homes: &mut Homes, dialler: &mut Dialler) {
    while let Some((home, output)) = homes.poll_output() {
        match output {
            Output::Frame(bytes) => {
                for answer in answers(&bytes) {
                    homes.handle_frame(Duration::ZERO, &answer);
                }
            }
            Output::Online => dialler.came_online(home),
            Output::Ended(_) => dialler.ended(home, true, Duration::ZERO),
            Output::Up(_) | Output::Down(_) => {}
        }
    }
}

fn answers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let frame = Frame::parse(bytes).unwrap();
    let to = |ethertype, payload: &[u8]| {
        let mut bytes = Vec::new();
        Header {
            destination: frame.header.source,
            source: MacAddr([2, 0, 0, 0, 1, 1]),
            tags: frame.header.tags,
            ethertype,
        }
        .emit(&mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    };
    let number = frame.header.source.0[5];
    let session_id = u16::from(number) + 1;
    let control = |protocol, code, id, data: &[u8]| {
        let (mut payload, mut packet) = (Vec::new(), Vec::new());
        Control { code, id, data }.emit(protocol, &mut payload);
        Packet {
            code: pppoe::SESSION,
            session_id,
            payload: &payload,
        }
        .emit(&mut packet);
        to(eth::PPPOE_SESSION, &packet)
    };
    if frame.header.ethertype == eth::PPPOE_DISCOVERY {
        let asked = Discovery::parse(frame.payload).unwrap();
        let (code, session_id) = match asked.code {
            pppoe::PADI => (pppoe::PADO, 0),
            pppoe::PADR => (pppoe::PADS, session_id),
            _ => return Vec::new(),
        };
        let mut tags = vec![Tag::ServiceName(b""), Tag::AcName(b"test")];
        tags.extend(
            asked
                .tags
                .into_iter()
                .filter(|tag| matches!(tag, Tag::HostUniq(_))),
        );
        let (mut packet, mut options) = (Vec::new(), Vec::new());
        Discovery {
            code,
            session_id,
            tags,
        }
        .emit(&mut packet);
        let mut answers = vec![to(eth::PPPOE_DISCOVERY, &packet)];
        if code == pppoe::PADS {
            lcp::Opt::Magic(0x7079).emit(&mut options);
            answers.push(control(ppp::LCP, ppp::CONFIGURE_REQUEST, 1, &options));
        }
        return answers;
    }
    let packet = Packet::parse(frame.payload).unwrap();
    let ppp = ppp::Frame::parse(packet.payload).unwrap();
    let asked = Control::parse(ppp.payload).unwrap();
    let ack = |code| control(ppp.protocol, code, asked.id, asked.data);
    match (ppp.protocol, asked.code) {
        (ppp::LCP, ppp::CONFIGURE_REQUEST) => vec![ack(ppp::CONFIGURE_ACK)],
        (_, ppp::TERMINATE_REQUEST) => vec![control(ppp::LCP, ppp::TERMINATE_ACK, asked.id, &[])],
        (ppp::IPCP, ppp::CONFIGURE_REQUEST) => {
            let mut granted = Vec::new();
            ipcp::Opt::Address(Ipv4Addr::new(192, 0, 2, number)).emit(&mut granted);
            ipcp::Opt::PrimaryDns(Ipv4Addr::LOCALHOST).emit(&mut granted);
            ipcp::Opt::SecondaryDns(Ipv4Addr::LOCALHOST).emit(&mut granted);
            if asked.data != granted {
                return vec![control(ppp::IPCP, ppp::CONFIGURE_NAK, asked.id, &granted)];
            }
            let mut own = Vec::new();
            ipcp::Opt::Address(Ipv4Addr::new(192, 0, 2, 254)).emit(&mut own);
            let request = control(ppp::IPCP, ppp::CONFIGURE_REQUEST, 1, &own);
            vec![ack(ppp::CONFIGURE_ACK), request]
        }
        _ => Vec::new(),
    }
}
