//! LCP, echoes and the end of a session, by scripts.
use crate::support::*;
use session::*;
use std::time::Duration;

#[test]
fn a_silent_peer_is_asked_ten_times_in_thirty_seconds() {
    let mut line = Line::new();
    line.pass(Duration::from_millis(29_999));
    let outputs = line.take_outputs();
    assert_eq!(outputs.len(), 10);
    assert!(
        outputs.iter().all(|o| *o == outputs[0]),
        "a retransmission is the same packet"
    );
    line.pass(Duration::from_millis(1));
    line.expect(padt("PPP negotiation failed"));
    line.expect(Output::Closed(Cause::NegotiationFailed));
    assert_eq!(line.link.poll_at(), None);
    assert_eq!(
        line.send_padt(),
        Err(NotTaken::Discarded(Discarded("session is over")))
    );
}

#[test]
fn the_peer_is_left_to_speak_first_but_not_for_long() {
    let delay = Duration::from_millis(200);
    let patient = || {
        Line::with(SessionConfig {
            start_delay: delay,
            ..SessionConfig::default()
        })
    };
    let mut silent = patient();
    assert_eq!(silent.take_outputs(), []);
    silent.pass(delay);
    silent.expect_kind(LCP, 1);

    let mut speaking = patient();
    speaking.pass(Duration::from_millis(20));
    speaking.send(LCP, 1, 1, &[1, 4, 0x05, 0xd4]);
    speaking.expect_kind(LCP, 1);
    speaking.expect_packet(LCP, 2, 1, &[1, 4, 0x05, 0xd4]);
    speaking.pass(delay);
    assert_eq!(speaking.take_outputs(), [], "it was started once");

    let mut leaving = patient();
    leaving.send_padt().unwrap();
    leaving.expect(Output::Closed(Cause::UserRequest));
    assert_eq!(leaving.link.poll_at(), None);
}

#[test]
fn an_ack_for_another_request_or_other_options_is_discarded() {
    let mut line = Line::new();
    let (id, options) = line.expect_kind(LCP, 1);
    line.send_discarded(&packet(LCP, 2, id + 1, &options));
    line.send_discarded(&packet(LCP, 2, id, &options[4..]));
    line.send(LCP, 2, id, &options);
    line.send_discarded(&packet(LCP, 2, id, &options));
}

#[test]
fn the_mru_and_the_magic_number_are_negotiated() {
    let mut line = Line::new();
    let (id, _) = line.expect_kind(LCP, 1);
    // MRU 1500 is more than PPPoE carries.
    line.send(LCP, 1, 1, &[1, 4, 0x05, 0xdc]);
    line.expect_packet(LCP, 3, 1, &[1, 4, 0x05, 0xd4]);
    line.send(LCP, 1, 2, &[1, 4, 0x05, 0x78]);
    line.expect_packet(LCP, 2, 2, &[1, 4, 0x05, 0x78]);
    assert_eq!(line.link.status().mtu, 1400);
    // It rejects our magic number, and wants us to receive no more than 1480.
    line.send(
        LCP,
        4,
        id,
        &[&[5, 6][..], &OUR_MAGIC.to_be_bytes()].concat(),
    );
    let (id, options) = line.expect_kind(LCP, 1);
    assert_eq!(options, [1, 4, 0x05, 0xd4, 3, 5, 0xc2, 0x23, 5]);
    line.send(LCP, 3, id, &[1, 4, 0x05, 0xc8]);
    let (id, options) = line.expect_kind(LCP, 1);
    assert_eq!(options, [1, 4, 0x05, 0xc8, 3, 5, 0xc2, 0x23, 5]);
    line.send(LCP, 2, id, &options);
    line.expect_kind(CHAP, 1);
    // Without a magic number, echoes carry zero.
    line.send(LCP, 9, 5, &[0, 0, 0, 0, 1, 2]);
    line.expect_packet(LCP, 10, 5, &[0, 0, 0, 0, 1, 2]);
}

#[test]
fn naks_turn_into_rejects_and_in_the_end_the_session_is_given_up() {
    let mut line = Line::new();
    line.expect_kind(LCP, 1);
    let mru = [1, 4, 0x05, 0xdc];
    for id in 0..20 {
        line.send(LCP, 1, id, &mru);
        line.expect_packet(
            LCP,
            if id < 5 { 3 } else { 4 },
            id,
            if id < 5 { &[1, 4, 0x05, 0xd4] } else { &mru },
        );
    }
    line.send(LCP, 1, 20, &mru);
    line.expect_goodbyes("PPP negotiation failed", Cause::NegotiationFailed);
}

#[test]
fn a_peer_that_naks_for_ever_is_given_up() {
    let mut line = Line::new();
    for _ in 0..20 {
        let (id, _) = line.expect_kind(LCP, 1);
        line.send(LCP, 3, id, &[5, 6, 1, 2, 3, 4]);
    }
    let (id, _) = line.expect_kind(LCP, 1);
    line.send(LCP, 3, id, &[5, 6, 1, 2, 3, 4]);
    let (id, _) = line.expect_kind(LCP, 5);
    line.send(LCP, 6, id, &[]);
    line.expect(padt("PPP negotiation failed"));
    line.expect(Output::Closed(Cause::NegotiationFailed));
}

#[test]
fn a_looped_line_is_recognised() {
    let mut line = Line::new();
    let mut closed = None;
    for _ in 0..200 {
        let output = line.next();
        if let Output::Closed(cause) = output {
            closed = Some(cause);
            break;
        }
        let Some(frame) = ppp_of(&output) else {
            assert_eq!(output, padt("line is looped back"));
            continue;
        };
        let _ = line.pass_frame(frame);
        line.pass(Duration::ZERO);
        let mut more = Vec::new();
        while let Some(output) = line.link.poll_output() {
            more.push(output);
        }
        line.push(more);
    }
    assert_eq!(closed, Some(Cause::Loopback));
}

#[test]
fn a_session_that_never_gets_anywhere_is_ended() {
    let mut line = Line::new();
    line.authenticate(Grant::default());
    line.pass(Duration::from_secs(59));
    line.take_outputs();
    line.pass(SECOND);
    line.expect_goodbyes("PPP negotiation failed", Cause::NegotiationFailed);
}

#[test]
fn echoes_carry_our_own_magic_number() {
    let mut line = Line::open();
    line.send(LCP, 9, 77, &[&HOME_MAGIC[..], b"data"].concat());
    line.expect_packet(
        LCP,
        10,
        77,
        &[&OUR_MAGIC.to_be_bytes()[..], b"data"].concat(),
    );
    line.send_discarded(&packet(LCP, 9, 78, &OUR_MAGIC.to_be_bytes()));
    line.send_discarded(&packet(LCP, 9, 79, &[1, 2, 3]));
}

#[test]
fn three_missed_echoes_end_the_session() {
    let mut line = Line::new();
    line.authenticate(Grant {
        ipv6: None,
        ..grant()
    });
    line.open_ipcp();
    for _ in 0..5 {
        let before = line.now;
        line.pass_to_next();
        let interval = line.now - before;
        assert!(
            (27.0..=33.0).contains(&interval.as_secs_f64()),
            "{interval:?}"
        );
        let (id, data) = line.expect_kind(LCP, 9);
        assert_eq!(data, OUR_MAGIC.to_be_bytes());
        line.send(LCP, 10, id, &HOME_MAGIC);
    }
    for _ in 0..3 {
        line.pass_to_next();
        line.expect_kind(LCP, 9);
        // What a looped line gives back is no sign of life: our own request.
        line.send_discarded(&packet(LCP, 9, 1, &OUR_MAGIC.to_be_bytes()));
    }
    line.pass_to_next();
    line.expect(Output::Down(Family::Ipv4));
    line.expect(padt("no answer to LCP echoes"));
    line.expect(Output::Closed(Cause::LostCarrier));
}

/// Many home routers send the request back with another code, and with our magic number in it.
#[test]
fn an_echo_reply_with_our_magic_number_is_a_sign_of_life() {
    let mut line = Line::new();
    line.authenticate(Grant {
        ipv6: None,
        ..grant()
    });
    line.open_ipcp();
    for _ in 0..10 {
        line.pass_to_next();
        let (id, data) = line.expect_kind(LCP, 9);
        line.send(LCP, 10, id, &data);
    }
    assert_eq!(line.link.status().phase, Phase::Network);
}

/// Three echo requests in a second, which do not count as missed, also if the gateway sends none otherwise.
#[test]
fn a_peer_is_silent_until_it_gives_the_sign_of_life_that_it_was_asked_for() {
    let mut line = Line::with(SessionConfig {
        echo_interval: Duration::ZERO,
        echo_failures: 1,
        ..SessionConfig::default()
    });
    line.authenticate(Grant {
        ipv6: None,
        ..grant()
    });
    line.open_ipcp();
    assert!(!line.link.status().is_silent);
    for _ in 0..2 {
        line.command(Command::Probe);
        line.expect_kind(LCP, 9);
        for _ in 0..2 {
            line.pass(Duration::from_millis(300));
            line.expect_kind(LCP, 9);
        }
        line.pass(SECOND);
        assert_eq!(line.link.poll_at(), None);
        line.send_discarded(&packet(LCP, 9, 1, &OUR_MAGIC.to_be_bytes()));
        assert!(line.link.status().is_silent, "a looped line proves nothing");
    }
    line.command(Command::Probe);
    let (id, _) = line.expect_kind(LCP, 9);
    line.send(LCP, 10, id, &HOME_MAGIC);
    assert!(!line.link.status().is_silent);
    assert_eq!(line.link.poll_at(), None, "it is asked no more");
}

#[test]
fn a_padt_ends_it_at_once_and_is_not_answered() {
    let mut line = Line::open();
    line.send_padt().unwrap();
    line.expect(Output::Down(Family::Ipv4));
    line.expect(Output::Down(Family::Ipv6));
    line.expect(Output::Closed(Cause::UserRequest));
    line.expect_silence();
}

#[test]
fn the_peer_hangs_up() {
    let mut line = Line::open();
    line.send(LCP, 5, 9, b"User request");
    line.expect_packet(LCP, 6, 9, &[]);
    line.expect(Output::Down(Family::Ipv4));
    line.expect(Output::Down(Family::Ipv6));
    assert_eq!(line.link.status().phase, Phase::Terminate);
    // Its Terminate-Request may be repeated for one restart interval.
    line.send(LCP, 5, 9, b"User request");
    line.expect_packet(LCP, 6, 9, &[]);
    line.pass(3 * SECOND);
    line.expect(padt("user request"));
    line.expect(Output::Closed(Cause::UserRequest));
}

#[test]
fn a_peer_that_hangs_up_while_negotiating_is_not_asked_any_more() {
    let mut line = Line::new();
    line.expect_kind(LCP, 1);
    line.send(LCP, 5, 9, &[]);
    line.expect_packet(LCP, 6, 9, &[]);
    line.expect(padt("user request"));
    line.expect(Output::Closed(Cause::UserRequest));
}

#[test]
fn the_operator_hangs_up() {
    let mut line = Line::open();
    line.command(Command::Terminate(Cause::AdminReset));
    let outputs = line.take_outputs();
    let [
        request,
        Output::Down(Family::Ipv4),
        Output::Down(Family::Ipv6),
    ] = &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    line.send(LCP, 6, ppp_of(request).unwrap()[3], &[]);
    line.expect(padt("ended by the operator"));
    line.expect(Output::Closed(Cause::AdminReset));
}

#[test]
fn the_operator_hangs_up_on_a_dead_peer() {
    let mut line = Line::open();
    line.command(Command::Terminate(Cause::AdminReset));
    line.pass(Duration::from_millis(5_999));
    assert_eq!(
        line.take_outputs()
            .iter()
            .filter(|o| ppp_of(o).is_some())
            .count(),
        2
    );
    line.pass(Duration::from_millis(1));
    line.expect(padt("ended by the operator"));
    line.expect(Output::Closed(Cause::AdminReset));
}

#[test]
fn a_new_configure_request_restarts_ppp() {
    let mut line = Line::open();
    line.send(LCP, 1, 50, &home_lcp());
    let outputs = line.take_outputs();
    let downs: Vec<_> = outputs
        .iter()
        .filter(|o| matches!(o, Output::Down(_)))
        .collect();
    assert_eq!(
        downs,
        [&Output::Down(Family::Ipv4), &Output::Down(Family::Ipv6)]
    );
    let mut frames = outputs.iter().filter_map(ppp_of);
    let request = frames.find(|frame| frame[2] == 1).unwrap();
    assert!(outputs.contains(&ppp(&packet(LCP, 2, 50, &home_lcp()))));
    assert_eq!(line.link.status().phase, Phase::Establish);
    line.send(LCP, 2, request[3], &request[6..]);
    // A fresh challenge under a fresh identifier, and all the rest once more.
    let (id, data) = line.expect_kind(CHAP, 1);
    assert_eq!(id, 2);
    assert_ne!(data[1..17], [0x11; 16]);
    line.send(CHAP, 2, id, &[&[16][..], &[0x22; 16], b"alice"].concat());
    let Output::Authenticate(request) = line.next() else {
        panic!()
    };
    assert_eq!(request.attempt, 2);
    // The verdict on the first attempt is not the verdict on this one.
    let late = Command::Auth {
        attempt: 1,
        reply: accept(grant()),
    };
    assert!(line.link.command(line.now, late).is_err());
    line.command(Command::Auth {
        attempt: 2,
        reply: accept(Grant {
            ipv6: None,
            ..grant()
        }),
    });
    line.expect_kind(CHAP, 3);
    line.open_ipcp();
    assert!(line.is_up(Family::Ipv4) && !line.is_up(Family::Ipv6));
}

#[test]
fn unknown_codes_and_protocols_are_rejected() {
    let mut line = Line::open();
    line.send(LCP, 99, 3, b"what");
    line.expect_packet(LCP, 7, 3, &[&[99, 3, 0, 8][..], b"what"].concat());
    line.send(0x80fd, 1, 1, &[0x12, 6, 0, 0, 0, 0]);
    line.expect_packet(LCP, 8, 1, &[0x80, 0xfd, 1, 1, 0, 10, 0x12, 6, 0, 0, 0, 0]);
    line.send(LCP, 11, 1, &HOME_MAGIC);
    line.send(LCP, 12, 1, &HOME_MAGIC);
    line.expect_silence();
    // A long packet does not come back whole.
    line.send_frame(&[&[0x80, 0x29][..], &[7; 1400]].concat());
    let (_, data) = line.expect_kind(LCP, 8);
    assert!(data.len() < 100);
}

#[test]
fn a_code_reject_of_what_lcp_needs_is_fatal_and_of_echoes_is_not() {
    let mut line = Line::open();
    line.send(LCP, 7, 1, &[9, 1, 0, 8, 0, 0, 0, 0]);
    line.expect_silence();
    line.send(LCP, 7, 2, &[1, 1, 0, 4]);
    assert!(line.take_outputs().contains(&Output::Down(Family::Ipv4)));
    line.pass(6 * SECOND);
    assert!(
        line.take_outputs()
            .contains(&Output::Closed(Cause::NegotiationFailed))
    );
}

#[test]
fn ppp_frames_of_length_0_to_3_and_their_like_change_nothing() {
    let short: Vec<Vec<u8>> = vec![
        vec![],
        vec![0xc0],
        vec![0xc0, 0x21],
        vec![0xc0, 0x21, 1],
        vec![0xc0, 0x21, 1, 1],
        vec![0xc0, 0x21, 1, 1, 0, 3],
        vec![0xc0, 0x21, 1, 1, 0, 9, 1, 4],
        vec![0x80, 0x21, 1, 1, 0, 6, 3, 0],
        vec![0x80, 0x21, 1, 1, 0, 6, 3, 1],
        vec![0x80, 0x57, 1, 1, 0, 6, 1, 200],
        vec![0xc2, 0x23],
        vec![0xc2, 0x23, 2, 1, 0, 4],
        vec![0xc0, 0x23, 1, 1, 0, 5, 9],
        vec![0x00, 0x57],
        vec![0x00, 0x57, 0x60],
        vec![0x21],
    ];
    let mut lines = [Line::new(), Line::open()];
    lines[0].expect_kind(LCP, 1);
    for line in &mut lines {
        for frame in &short {
            line.send_discarded(frame);
        }
    }
    lines[1].send(LCP, 9, 1, &HOME_MAGIC);
    lines[1].expect_kind(LCP, 10);
}

#[test]
fn mru_1500_after_ppp_max_payload() {
    let now = Duration::from_secs(1000);
    let mut line = Line::around(link(SessionConfig::default(), Some(1500), now), now);
    let (_, options) = line.expect_kind(LCP, 1);
    assert_eq!(options[..4], [1, 4, 0x05, 0xdc]);
    line.send(LCP, 1, 1, &[1, 4, 0x05, 0xdc]);
    line.expect_packet(LCP, 2, 1, &[1, 4, 0x05, 0xdc]);
    assert_eq!(line.link.status().mtu, 1500);
}

/// What 100,000 sessions cost is this times 100,000, beside what they negotiated.
#[test]
fn a_session_is_small() {
    assert!(size_of::<Link>() <= 400, "{}", size_of::<Link>());
}

#[test]
fn frames_that_are_not_the_session_s_change_nothing() {
    let mut line = Line::new();
    line.expect_kind(LCP, 1);
    let request = pppoe(0, &packet(LCP, 1, 1, &home_lcp()));
    let mut foreign = request.clone();
    foreign[3] += 1;
    let bye = pppoe(PADT, &[]);
    for (ethertype, payload, why) in [
        (SESSION, &foreign[..], NotTaken::Foreign),
        (DISCOVERY, &request, NotTaken::Malformed),
        (0x0800, &request, NotTaken::Malformed),
        (SESSION, &request[..5], NotTaken::Malformed),
        (SESSION, &bye, NotTaken::Malformed),
    ] {
        let taken = line.link.on_frame(line.now, ethertype, payload);
        assert_eq!((taken, line.link.poll_output()), (Err(why), None));
    }
    line.send_padt().unwrap();
    line.expect(Output::Closed(Cause::UserRequest));
}
