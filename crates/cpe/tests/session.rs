//! A home against a scripted gateway: from dialling to hanging up.

mod line;

use core::time::Duration;
use cpe::{Auth, End, Family, HomeConfig, Output, Received, State};
use line::*;
use wire::eth::{Frame, MacAddr};
use wire::pppoe::{self, Discovery, Tag};
use wire::{chap, lcp, mschapv2, pap, ppp};

fn ended(end: End) -> Output {
    Output::Ended(end)
}

#[test]
fn padr_gives_back_what_the_offer_carried() {
    let mut line = Line::new(config());
    line.dial();
    let padi = line.one();
    let frame = Frame::parse(&padi).unwrap();
    assert_eq!(
        (frame.header.destination, frame.header.source),
        (MacAddr::BROADCAST, HOME)
    );
    assert_eq!(frame.header.tags.to_string(), "100.7");
    let uniq = host_uniq(&padi);

    // Not ours: another Host-Uniq. Not an offer: no AC-Name.
    line.discovery(pppoe::PADO, 0, &offer(b"another!"));
    line.discovery(
        pppoe::PADO,
        0,
        &[Tag::ServiceName(b""), Tag::HostUniq(&uniq)],
    );
    assert!(line.sent().is_empty());

    line.discovery(pppoe::PADO, 0, &offer(&uniq));
    let padr = line.one();
    let frame = Frame::parse(&padr).unwrap();
    assert_eq!(frame.header.destination, GATEWAY);
    let packet = Discovery::parse(frame.payload).unwrap();
    assert_eq!(packet.code, pppoe::PADR);
    for tag in [
        Tag::ServiceName(b""),
        Tag::AcCookie(b"cookie"),
        Tag::RelaySessionId(b"relay"),
        Tag::HostUniq(&uniq),
    ] {
        assert!(packet.tags.contains(&tag), "{tag:?}");
    }
    // A second offer changes nothing.
    line.discovery_from(MacAddr([2; 6]), pppoe::PADO, 0, &offer(&uniq));
    assert!(line.sent().is_empty());
}

#[test]
fn a_silent_network_is_asked_less_and_less_often_and_then_no_more() {
    let mut line = Line::new(config());
    line.dial();
    let mut pauses = Vec::new();
    while line.home.state() == State::Discovery {
        assert_eq!(line.sent().len(), 1);
        pauses.push(line.wait().as_secs());
    }
    assert_eq!(pauses, [3, 6, 12, 24, 30, 30, 30, 30]);
    line.sent();
    assert_eq!(line.events, [ended(End::Silence(State::Discovery))]);
    assert_eq!(line.home.poll_at(), None);
}

#[test]
fn a_refusal_in_pads_ends_the_attempt() {
    let mut line = Line::new(config());
    line.dial();
    let uniq = host_uniq(&line.one());
    line.discovery(pppoe::PADO, 0, &offer(&uniq));
    line.sent();
    line.discovery(
        pppoe::PADS,
        0,
        &[Tag::HostUniq(&uniq), Tag::AcSystemError(b"full")],
    );
    assert_eq!(line.events, [ended(End::Refused("full".into()))]);
    assert_eq!(line.home.state(), State::Offline);
}

#[test]
fn a_confirmation_without_session_or_service_is_none() {
    for (session, service) in [(0, true), (SESSION, false)] {
        let mut line = Line::new(config());
        line.dial();
        let uniq = host_uniq(&line.one());
        line.discovery(pppoe::PADO, 0, &offer(&uniq));
        line.sent();
        let tags = [Tag::HostUniq(&uniq), Tag::ServiceName(b"")];
        line.discovery(pppoe::PADS, session, &tags[..1 + usize::from(service)]);
        assert!(
            matches!(line.events[..], [Output::Ended(End::Refused(_))]),
            "{:?}",
            line.events
        );
    }
}

#[test]
fn chap_answers_with_the_hash_of_rfc_1994_and_every_challenge_again() {
    let mut line = Line::new(config());
    line.connect();
    line.open_link(Some(lcp::Auth::ChapMd5));
    assert_eq!(line.home.state(), State::Authentication);
    let challenge: Vec<u8> = (0..16).collect();
    for _ in 0..2 {
        let mut frame = Vec::new();
        chap::Packet::Challenge {
            id: 9,
            value: &challenge,
            name: b"bng",
        }
        .emit(&mut frame);
        line.ppp(&frame);
        let sent = ppp_of(&line.one());
        let response = chap::Packet::parse(&sent[2..]).unwrap();
        // md5sum of 09, "secret", 00 01 … 0f.
        let hash = [
            0x73, 0x23, 0x61, 0x62, 0x7b, 0x84, 0x7c, 0xe4, 0x3a, 0x59, 0x2a, 0x97, 0xb3, 0xc1,
            0x5b, 0x72,
        ];
        assert_eq!(
            response,
            chap::Packet::Response {
                id: 9,
                value: &hash,
                name: b"home7"
            }
        );
    }
    let mut frame = Vec::new();
    chap::Packet::Success {
        id: 9,
        message: b"welcome",
    }
    .emit(&mut frame);
    line.ppp(&frame);
    assert_eq!(line.home.state(), State::Network);
}

#[test]
fn a_rejected_password_hangs_up_in_good_order() {
    let mut line = Line::new(config());
    line.connect();
    line.open_link(Some(lcp::Auth::Pap));
    let sent = ppp_of(&line.one());
    let pap::Packet::Request {
        id,
        peer_id: b"home7",
        password: b"secret",
    } = pap::Packet::parse(&sent[2..]).unwrap()
    else {
        panic!("{sent:02x?}");
    };
    let mut frame = Vec::new();
    pap::Packet::Nak { id, message: b"no" }.emit(&mut frame);
    line.ppp(&frame);
    let terminate = line.controls().remove(0);
    assert_eq!(
        (terminate.protocol, terminate.code),
        (ppp::LCP, ppp::TERMINATE_REQUEST)
    );
    line.control(ppp::LCP, ppp::TERMINATE_ACK, terminate.id, &[]);
    assert_padt(&line.one());
    assert_eq!(line.events, [ended(End::AuthRejected("no".into()))]);
}

#[test]
fn pap_is_repeated_with_a_new_identifier_until_someone_answers() {
    let mut line = Line::new(config());
    line.connect();
    line.open_link(Some(lcp::Auth::Pap));
    let first = line.controls().remove(0);
    assert_eq!(line.wait(), Duration::from_secs(3));
    let second = line.controls().remove(0);
    assert_ne!(first.id, second.id);
    // The answer to the first is too late.
    let mut frame = Vec::new();
    pap::Packet::Ack {
        id: first.id,
        message: b"",
    }
    .emit(&mut frame);
    line.ppp(&frame);
    assert_eq!(line.home.state(), State::Authentication);
    let mut frame = Vec::new();
    pap::Packet::Ack {
        id: second.id,
        message: b"",
    }
    .emit(&mut frame);
    line.ppp(&frame);
    assert_eq!(line.home.state(), State::Network);
}

/// RFC 2759: the answer of a home, and whether it goes on after a Success with the right proof, or with another one.
#[test]
fn mschapv2_answers_and_hangs_up_on_a_gateway_without_the_password() {
    for is_right in [true, false] {
        let mut line = Line::new(HomeConfig {
            auth: Auth::MsChapV2,
            ..config()
        });
        line.connect();
        line.open_link(Some(lcp::Auth::MsChapV2));
        let mut frame = Vec::new();
        chap::Packet::Challenge {
            id: 9,
            value: &[7; 16],
            name: b"bng",
        }
        .emit(&mut frame);
        line.ppp(&frame);
        let sent = ppp_of(&line.one());
        let Ok(chap::Packet::Response { id: 9, value, name }) = chap::Packet::parse(&sent[2..])
        else {
            panic!("{sent:?}")
        };
        let response = mschapv2::Response::parse(value).unwrap();
        let exchange = mschapv2::Exchange {
            challenge: [7; 16],
            peer_challenge: response.peer_challenge,
            username: name,
        };
        let expected = exchange.nt_response(b"secret");
        assert_eq!((name, response.nt_response), (&b"home7"[..], expected));
        let knows: &[u8] = if is_right { b"secret" } else { b"another" };
        let proof = exchange.authenticator_response(knows, &response.nt_response);
        let message = b"welcome";
        let mut frame = Vec::new();
        chap::Packet::Success {
            id: 9,
            message: &mschapv2::Success { proof, message }.to_text(),
        }
        .emit(&mut frame);
        line.ppp(&frame);
        assert_eq!(line.home.state() == State::Network, is_right);
    }
}

#[test]
fn a_home_with_pap_alone_suggests_it() {
    let mut line = Line::new(HomeConfig {
        auth: Auth::Pap,
        ..config()
    });
    line.connect();
    line.sent();
    line.control(
        ppp::LCP,
        ppp::CONFIGURE_REQUEST,
        1,
        &link_options(Some(lcp::Auth::ChapMd5)),
    );
    let nak = line.controls().remove(0);
    assert_eq!(nak.code, ppp::CONFIGURE_NAK);
    assert_eq!(
        lcp::Opt::parse_all(&nak.data).unwrap(),
        [lcp::Opt::Auth(lcp::Auth::Pap)]
    );
}

#[test]
fn field_compression_is_refused_and_nothing_else() {
    let mut line = Line::new(config());
    line.connect();
    line.sent();
    let mut options = link_options(Some(lcp::Auth::ChapMd5));
    let compression = [7, 2, 8, 2];
    options.extend(compression);
    line.control(ppp::LCP, ppp::CONFIGURE_REQUEST, 1, &options);
    let reject = line.controls().remove(0);
    assert_eq!(
        (reject.code, &reject.data[..]),
        (ppp::CONFIGURE_REJECT, &compression[..])
    );
}

#[test]
fn lcp_repeats_its_request_and_gives_up_with_padt() {
    let mut line = Line::new(config());
    line.connect();
    let first = line.controls().remove(0);
    for _ in 1..10 {
        line.wait();
        assert_eq!(
            line.controls(),
            [Sent {
                data: first.data.clone(),
                ..first
            }]
        );
    }
    line.wait();
    assert_padt(&line.one());
    assert_eq!(line.events, [ended(End::Silence(State::Link))]);
}

#[test]
fn two_who_never_agree_stop() {
    let mut line = Line::new(config());
    line.connect();
    for _ in 0..30 {
        line.sent();
        if line.home.state() == State::Offline {
            break;
        }
        // An MRU below what IPv6 needs is answered with Nak each time.
        let mut options = Vec::new();
        lcp::Opt::Mru(100).emit(&mut options);
        line.control(ppp::LCP, ppp::CONFIGURE_REQUEST, 1, &options);
    }
    assert_eq!(line.events, [ended(End::NoAgreement(State::Link))]);
}

#[test]
fn echo_requests_are_answered_with_the_homes_own_magic_number() {
    let mut line = Line::new(config());
    line.connect();
    let request = line.controls().remove(0);
    let magic = lcp::Opt::parse_all(&request.data)
        .unwrap()
        .into_iter()
        .find_map(|option| match option {
            lcp::Opt::Magic(magic) => Some(magic.to_be_bytes()),
            _ => None,
        });
    let magic = magic.unwrap();
    let question = [&MAGIC.to_be_bytes()[..], b"data"].concat();
    line.control(ppp::LCP, lcp::ECHO_REQUEST, 5, &question);
    assert!(line.sent().is_empty(), "the link is not open yet");
    line.control(ppp::LCP, ppp::CONFIGURE_REQUEST, 1, &link_options(None));
    line.control(ppp::LCP, ppp::CONFIGURE_ACK, request.id, &request.data);
    line.sent();
    line.control(ppp::LCP, lcp::ECHO_REQUEST, 6, &question);
    let reply = line.controls().remove(0);
    assert_eq!((reply.code, reply.id), (lcp::ECHO_REPLY, 6));
    assert_eq!(reply.data, [&magic[..], b"data"].concat());
    // Our own magic number: a looped line. Too short: no echo.
    line.control(ppp::LCP, lcp::ECHO_REQUEST, 7, &magic);
    line.control(ppp::LCP, lcp::ECHO_REQUEST, 8, &[1, 2]);
    assert!(line.sent().is_empty());
}

#[test]
fn a_gateway_that_answers_no_echo_is_gone() {
    let mut line = Line::online();
    line.sent();
    line.events.clear();
    for _ in 0..4 {
        assert_eq!(line.wait(), Duration::from_secs(30));
        assert_eq!(line.controls().remove(0).code, lcp::ECHO_REQUEST);
    }
    line.wait();
    assert_padt(&line.one());
    assert_eq!(line.events.last(), Some(&ended(End::LinkLost)));
    assert!(
        line.events.contains(&Output::Down(Family::V4))
            && line.events.contains(&Output::Down(Family::V6))
    );
}

#[test]
fn an_answered_echo_keeps_the_session() {
    let mut line = Line::online();
    for _ in 0..20 {
        line.sent();
        line.wait();
        let echo = line.controls().remove(0);
        line.control(ppp::LCP, lcp::ECHO_REPLY, echo.id, &MAGIC.to_be_bytes());
    }
    assert_eq!(line.home.state(), State::Online);
}

#[test]
fn hanging_up_asks_waits_and_leaves_even_without_an_answer() {
    for answered in [true, false] {
        let mut line = Line::online();
        line.sent();
        line.events.clear();
        line.home.hang_up(line.now);
        let ask = line.controls().remove(0);
        assert_eq!((ask.protocol, ask.code), (ppp::LCP, ppp::TERMINATE_REQUEST));
        assert_eq!(
            line.events,
            [Output::Down(Family::V6), Output::Down(Family::V4)]
        );
        if answered {
            line.control(ppp::LCP, ppp::TERMINATE_ACK, ask.id, &[]);
        } else {
            line.wait();
            assert_eq!(line.controls().remove(0).code, ppp::TERMINATE_REQUEST);
            line.wait();
        }
        assert_padt(&line.one());
        assert_eq!(line.events.last(), Some(&ended(End::HungUp)));
        assert_eq!(line.home.poll_at(), None);
        // And it can dial again.
        line.connect();
    }
}

#[test]
fn the_gateways_own_padt_ends_the_session_at_once_a_strangers_does_not() {
    let mut line = Line::online();
    line.sent();
    line.discovery_from(MacAddr([2; 6]), pppoe::PADT, SESSION, &[]);
    line.discovery(pppoe::PADT, SESSION + 1, &[]);
    assert_eq!(line.home.state(), State::Online);
    line.discovery(pppoe::PADT, SESSION, &[]);
    assert_eq!(line.events.last(), Some(&ended(End::Terminated)));
    assert!(line.sent().is_empty());
    assert_eq!(
        (line.home.ipv4(), line.home.ipv6(), line.home.session_id()),
        (None, None, None)
    );
}

#[test]
fn a_terminate_request_of_the_gateway_is_acknowledged() {
    let mut line = Line::online();
    line.sent();
    line.control(ppp::LCP, ppp::TERMINATE_REQUEST, 33, b"bye");
    let ack = line.controls().remove(0);
    assert_eq!((ack.code, ack.id), (ppp::TERMINATE_ACK, 33));
    line.discovery(pppoe::PADT, SESSION, &[]);
    assert_eq!(line.events.last(), Some(&ended(End::Terminated)));
}

#[test]
fn a_link_that_the_gateway_has_left_is_negotiated_anew() {
    let mut line = Line::online();
    line.sent();
    line.control(ppp::LCP, ppp::TERMINATE_ACK, 1, &[]);
    assert_eq!(line.home.state(), State::Link);
    let request = line.controls().remove(0);
    assert_eq!(
        (request.protocol, request.code),
        (ppp::LCP, ppp::CONFIGURE_REQUEST)
    );
}

fn assert_padt(bytes: &[u8]) {
    let frame = Frame::parse(bytes).unwrap();
    let packet = Discovery::parse(frame.payload).unwrap();
    assert_eq!(
        (frame.header.destination, packet.code, packet.session_id),
        (GATEWAY, pppoe::PADT, SESSION)
    );
}

#[test]
fn every_step_of_a_set_up_has_its_time_and_a_new_attempt_begins_anew() {
    let mut line = Line::online();
    let steps = |line: &Line| {
        let progress = line.home.progress();
        [
            progress.dialled,
            progress.session,
            progress.link,
            progress.authenticated,
            progress.ipv4,
            progress.ipv6,
            progress.online,
        ]
    };
    assert!(steps(&line).is_sorted(), "{:?}", steps(&line));
    assert!(steps(&line)[0].is_some());
    line.home.hang_up(line.now);
    assert_eq!(steps(&line)[6], Some(line.now), "what it was stays known");
    line.home.leave_at_once();
    assert_eq!(line.home.state(), State::Offline);
    line.dial();
    assert_eq!(steps(&line)[1..], [None; 6]);
}

#[test]
fn who_leaves_at_once_says_so_with_a_padt_alone() {
    let mut line = Line::online();
    line.events.clear();
    line.home.leave_at_once();
    let padt = line.one();
    let frame = Frame::parse(&padt).unwrap();
    let packet = Discovery::parse(frame.payload).unwrap();
    assert_eq!(
        (frame.header.destination, packet.code),
        (GATEWAY, pppoe::PADT)
    );
    assert_eq!(packet.session_id, SESSION);
    assert!(line.events.contains(&ended(End::HungUp)));
    line.home.leave_at_once();
    assert!(line.sent().is_empty(), "it is offline");
}

#[test]
fn what_comes_for_the_session_before_a_loss_of_power_is_no_stray() {
    let mut line = Line::online();
    let echo = lcp_echo();
    line.home.reboot(99);
    assert_eq!(line.home.state(), State::Offline);
    assert!(line.sent().is_empty(), "the gateway is not told");
    line.connect_as(SESSION + 1);
    line.sent();
    let frame = session_frame(&echo);
    assert_eq!(line.home.handle_frame(line.now, &frame), Received::Quiet);
    assert!(line.home.poll_output().is_none(), "and no answer is due");
    // Nobody has ever had this one.
    let other = session_frame_of(SESSION + 2, &echo);
    let stray = line.home.handle_frame(line.now, &other);
    assert!(matches!(stray, Received::Stray(_)), "{stray:?}");
}

fn lcp_echo() -> Vec<u8> {
    let mut frame = Vec::new();
    ppp::Control {
        code: lcp::ECHO_REQUEST,
        id: 1,
        data: &[0; 4],
    }
    .emit(ppp::LCP, &mut frame);
    frame
}
