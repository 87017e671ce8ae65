//! LCP, authentication and the end of a session, by scripts.
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
fn pap_is_used_when_the_peer_wants_it_and_the_policy_allows() {
    let mut line = Line::new();
    let (id, _) = line.expect_kind(LCP, 1);
    line.send(LCP, 3, id, &[3, 4, 0xc0, 0x23]);
    let (id, options) = line.expect_kind(LCP, 1);
    assert_eq!(options[4..8], [3, 4, 0xc0, 0x23]);
    line.send(LCP, 2, id, &options);
    line.send(LCP, 1, 1, &home_lcp());
    line.expect_kind(LCP, 2);
    let request = packet(PAP, 1, 9, b"\x05alice\x06s3cret");
    line.send_frame(&request);
    let expected = AuthMethod::Pap {
        password: b"s3cret".to_vec(),
    };
    let Output::Authenticate(asked) = line.next() else {
        panic!()
    };
    assert_eq!(
        (asked.username, asked.method),
        (b"alice".to_vec(), expected)
    );
    // AAA takes its time; the peer repeats itself with a new identifier.
    line.send_discarded(&packet(PAP, 1, 10, b"\x05alice\x06s3cret"));
    line.command(Command::Auth {
        attempt: asked.attempt,
        reply: accept(grant()),
    });
    line.expect_packet(PAP, 2, 10, b"\x07welcome");
    line.take_outputs();
    line.send_frame(&packet(PAP, 1, 11, b"\x05alice\x06s3cret"));
    line.expect_packet(PAP, 2, 11, b"\x00");
}

#[test]
fn a_policy_without_pap_refuses_it() {
    let mut line = Line::with(SessionConfig {
        auth: vec![AuthProtocol::Chap],
        ..SessionConfig::default()
    });
    let (id, _) = line.expect_kind(LCP, 1);
    line.send(LCP, 3, id, &[3, 4, 0xc0, 0x23]);
    line.expect_kind(LCP, 5);
    line.send_padt().unwrap();
    line.expect(Output::Closed(Cause::AuthFailed));
}

#[test]
fn a_rejected_peer_is_told_and_hung_up_on() {
    let mut line = Line::new();
    line.open_lcp();
    let attempt = line.answer_challenge();
    line.command(Command::Auth {
        attempt,
        reply: AuthReply::Reject {
            message: b"wrong password".to_vec(),
            error: None,
        },
    });
    line.expect_packet(CHAP, 4, 1, b"wrong password");
    let (id, _) = line.expect_kind(LCP, 5);
    // The peer hangs up by itself, too, and repeats its response; neither disturbs the end.
    line.send(LCP, 5, 3, b"Authentication failed");
    line.expect_packet(LCP, 6, 3, &[]);
    line.send_discarded(&packet(
        CHAP,
        2,
        1,
        &[&[16][..], &[0x22; 16], b"alice"].concat(),
    ));
    line.send(LCP, 6, id, &[]);
    line.expect(padt("authentication failed"));
    line.expect(Output::Closed(Cause::AuthFailed));
}

#[test]
fn a_challenge_is_repeated_and_then_given_up() {
    let mut line = Line::with(SessionConfig {
        setup_timeout: Duration::from_secs(120),
        echo_interval: Duration::ZERO,
        ..SessionConfig::default()
    });
    line.open_lcp();
    line.pass(Duration::from_millis(29_999));
    let challenges = line.take_outputs();
    assert_eq!(challenges.len(), 10);
    assert!(challenges.iter().all(|c| *c == challenges[0]));
    line.pass(Duration::from_millis(1));
    line.expect_goodbyes("authentication failed", Cause::AuthFailed);
}

#[test]
fn chap_responses_are_checked_and_repeated_verdicts_given() {
    let mut line = Line::new();
    line.open_lcp();
    let (id, data) = line.expect_kind(CHAP, 1);
    assert_eq!(data, [&[16][..], &[0x11; 16], b"sluice"].concat());
    let response = |id, length: u8| {
        packet(
            CHAP,
            2,
            id,
            &[&[length][..], &vec![3; length.into()], b"alice"].concat(),
        )
    };
    line.send_discarded(&response(id + 1, 16));
    line.send_discarded(&response(id, 15));
    line.send_discarded(&packet(CHAP, 2, id, &[16, 1, 2]));
    line.send_discarded(&packet(PAP, 1, 9, b"\x05alice\x06s3cret"));
    line.send_frame(&response(id, 16));
    let Output::Authenticate(request) = line.next() else {
        panic!()
    };
    assert_eq!(
        request.method,
        AuthMethod::Chap {
            id,
            challenge: [0x11; 16],
            response: [3; 16]
        }
    );
    assert!(!format!("{request:?}").contains("3, 3"), "a proof in a log");
    line.send_discarded(&response(id, 16));
    line.command(Command::Auth {
        attempt: request.attempt,
        reply: accept(grant()),
    });
    line.expect_packet(CHAP, 3, id, b"welcome");
    line.take_outputs();
    line.send_frame(&response(id, 16));
    line.expect_packet(CHAP, 3, id, b"");
}

/// A peer that did not receive it discards all else, and many do not repeat their response.
#[test]
fn a_success_is_repeated_with_the_requests_until_the_peer_goes_on() {
    let successes = |line: &mut Line| {
        let outputs = line.take_outputs();
        let frames = outputs.iter().filter_map(ppp_of);
        let is_success = |frame: &&[u8]| frame[..3] == [0xc2, 0x23, 3];
        frames.filter(is_success).count()
    };
    let mut line = Line::new();
    line.authenticate(grant());
    line.take_outputs();
    line.pass(2 * SECOND);
    assert_eq!(successes(&mut line), 0);
    line.pass(SECOND);
    assert_eq!(successes(&mut line), 1, "both families ask again now");
    line.pass(3 * SECOND);
    assert_eq!(successes(&mut line), 1);
    line.send(IPCP, 1, 1, &home_ipcp());
    line.pass(9 * SECOND);
    assert_eq!(successes(&mut line), 0, "it goes on, so it has received it");
}

/// A line that asks for MS-CHAPv2 alone.
fn mschapv2_line() -> Line {
    Line::with(SessionConfig {
        auth: vec![AuthProtocol::MsChapV2],
        ..SessionConfig::default()
    })
}

/// The value of a Response (RFC 2759 §4): challenge of the peer, reserved, NT-Response, flags, and then the name.
fn mschapv2_response(octet: u8) -> Vec<u8> {
    let (challenge, response) = ([octet; 16], [octet + 1; 24]);
    [&[49], &challenge[..], &[0; 8], &response, &[0], b"alice"].concat()
}

/// Answers the challenge with that response, and returns the attempt.
fn answer_mschapv2(line: &mut Line, octet: u8) -> (u8, AuthRequest) {
    let (id, data) = line.expect_kind(CHAP, 1);
    assert_eq!(data[0], 16);
    line.send(CHAP, 2, id, &mschapv2_response(octet));
    match line.next() {
        Output::Authenticate(request) => (id, request),
        other => panic!("{other:?}"),
    }
}

fn proven(octet: u8) -> AuthReply {
    AuthReply::Accept {
        grant: grant(),
        message: b"welcome".to_vec(),
        proof: Some([octet; 20]),
    }
}

#[test]
fn mschapv2_responses_are_checked_and_repeated_successes_have_the_same_proof() {
    let mut line = mschapv2_line();
    let (id, options) = line.expect_kind(LCP, 1);
    assert!(
        options.windows(5).any(|o| o == [3, 5, 0xc2, 0x23, 0x81]),
        "{options:x?}"
    );
    line.send(LCP, 2, id, &options);
    line.send(LCP, 1, 1, &home_lcp());
    line.expect_packet(LCP, 2, 1, &home_lcp());
    let (id, data) = line.expect_kind(CHAP, 1);
    assert_eq!(data, [&[16][..], &[0x11; 16], b"sluice"].concat());
    let md5 = [&[16][..], &[3; 16], b"alice"].concat();
    line.send_discarded(&packet(CHAP, 2, id, &md5));
    let response = packet(CHAP, 2, id, &mschapv2_response(5));
    line.send_discarded(&packet(CHAP, 2, id.wrapping_add(1), &mschapv2_response(5)));
    line.send_discarded(&response[..response.len() - 20]);
    line.send_frame(&response);
    let Output::Authenticate(request) = line.next() else {
        panic!()
    };
    let AuthMethod::MsChapV2 {
        challenge,
        response: given,
        ..
    } = &request.method
    else {
        panic!()
    };
    assert_eq!(challenge, &[0x11; 16]);
    assert_eq!(
        (given.peer_challenge, given.nt_response),
        ([5; 16], [6; 24])
    );
    assert!(!format!("{request:?}").contains("6, 6"), "a proof in a log");
    line.send_discarded(&response);
    let (attempt, reply) = (request.attempt, proven(0xab));
    line.command(Command::Auth { attempt, reply });
    let proof = "AB".repeat(20);
    line.expect_packet(CHAP, 3, id, format!("S={proof} M=welcome").as_bytes());
    line.take_outputs();
    line.send_frame(&response);
    line.expect_packet(CHAP, 3, id, format!("S={proof} M=").as_bytes());
    line.take_outputs();
    // also after a restart
    let mut line = Line::around(restored(line.link.snapshot().unwrap(), line.now), line.now);
    line.take_outputs();
    line.send_frame(&response);
    line.expect_packet(CHAP, 3, id, format!("S={proof} M=").as_bytes());
}

#[test]
fn a_failure_of_mschapv2_says_that_there_is_no_retry() {
    let rejected = |error| AuthReply::Reject {
        message: b"no".to_vec(),
        error,
    };
    let unproven = AuthReply::Accept {
        grant: grant(),
        message: b"welcome".to_vec(),
        proof: None,
    };
    for (reply, code, text) in [
        (rejected(None), 691, "no"),
        (rejected(Some(648)), 648, "no"),
        (unproven, 691, ""),
    ] {
        let mut line = mschapv2_line();
        line.open_lcp();
        let (id, request) = answer_mschapv2(&mut line, 5);
        let attempt = request.attempt;
        line.command(Command::Auth { attempt, reply });
        let challenge = "11".repeat(16);
        let expected = format!("E={code} R=0 C={challenge} V=3 M={text}");
        line.expect_packet(CHAP, 4, id, expected.as_bytes());
        line.expect_kind(LCP, 5);
        line.pass(Duration::from_secs(6));
        let outputs = line.take_outputs();
        assert!(outputs.contains(&Output::Closed(Cause::AuthFailed)));
    }
}

#[test]
fn a_repeated_challenge_of_mschapv2_has_another_identifier() {
    let mut line = mschapv2_line();
    line.open_lcp();
    let (first, _) = line.expect_kind(CHAP, 1);
    line.pass(Duration::from_secs(3));
    let (second, _) = line.expect_kind(CHAP, 1);
    assert_ne!(first, second);
    // the answer to the first one is late, and the peer waits for the proof of its second one
    line.send_discarded(&packet(CHAP, 2, first, &mschapv2_response(5)));
    line.send(CHAP, 2, second, &mschapv2_response(7));
    let Output::Authenticate(request) = line.next() else {
        panic!()
    };
    let AuthMethod::MsChapV2 { response, .. } = request.method else {
        panic!()
    };
    assert_eq!(response.peer_challenge, [7; 16]);
}

#[test]
fn a_peer_chooses_mschapv2_by_a_nak() {
    let config = |auth: &[AuthProtocol]| SessionConfig {
        auth: auth.to_vec(),
        ..SessionConfig::default()
    };
    use AuthProtocol::{Chap, MsChapV2, Pap};
    let mut line = Line::with(config(&[Chap, Pap, MsChapV2]));
    let (id, _) = line.expect_kind(LCP, 1);
    line.send(LCP, 3, id, &[3, 5, 0xc2, 0x23, 0x81]);
    let (_, options) = line.expect_kind(LCP, 1);
    assert!(
        options.windows(5).any(|o| o == [3, 5, 0xc2, 0x23, 0x81]),
        "{options:x?}"
    );
    let mut line = Line::with(config(&[Chap]));
    let (id, _) = line.expect_kind(LCP, 1);
    line.send(LCP, 3, id, &[3, 5, 0xc2, 0x23, 0x81]);
    line.expect_kind(LCP, 5);
}

#[test]
fn an_open_session_is_authenticated_again_by_mschapv2_with_another_challenge() {
    let mut line = mschapv2_line();
    line.open_lcp();
    let (_, request) = answer_mschapv2(&mut line, 5);
    let (attempt, reply) = (request.attempt, proven(0xab));
    line.command(Command::Auth { attempt, reply });
    line.expect_kind(CHAP, 3);
    line.take_outputs();
    let mut line = Line::around(restored(line.link.snapshot().unwrap(), line.now), line.now);
    line.take_outputs();
    line.command(Command::Reauthenticate);
    let (id, request) = answer_mschapv2(&mut line, 7);
    let AuthMethod::MsChapV2 { challenge, .. } = request.method else {
        panic!()
    };
    assert!(challenge != [0x11; 16] && challenge != [0; 16]);
    let (attempt, reply) = (request.attempt, proven(0xcd));
    line.command(Command::Auth { attempt, reply });
    let expected = format!("S={} M=welcome", "CD".repeat(20));
    line.expect_packet(CHAP, 3, id, expected.as_bytes());
    line.take_outputs();
    // a response on its way at a restart gets no proof for another one, with which the peer would hang up
    line.command(Command::Reauthenticate);
    let (id, _) = line.expect_kind(CHAP, 1);
    let mut line = Line::around(restored(line.link.snapshot().unwrap(), line.now), line.now);
    line.take_outputs();
    line.send_discarded(&packet(CHAP, 2, id, &mschapv2_response(9)));
    line.command(Command::Reauthenticate);
    answer_mschapv2(&mut line, 11);
}

/// Answers the challenge that comes next, and returns the attempt.
fn answer_again(line: &mut Line) -> u8 {
    let (id, data) = line.expect_kind(CHAP, 1);
    assert_ne!(data[1..17], [0x11; 16], "a challenge is used once");
    let response = [&[16][..], &[5; 16], b"alice"].concat();
    line.send(CHAP, 2, id, &response);
    let Output::Authenticate(request) = line.next() else {
        panic!()
    };
    request.attempt
}

#[test]
fn an_open_session_is_authenticated_again_and_stays_open() {
    let mut line = Line::open();
    line.command(Command::Reauthenticate);
    let attempt = answer_again(&mut line);
    assert_eq!(attempt, 2);
    let reply = accept(Grant::default());
    line.command(Command::Auth { attempt, reply });
    line.expect_kind(CHAP, 3);
    line.expect_silence();
    assert!(line.is_up(Family::Ipv4) && line.is_up(Family::Ipv6));
    assert_eq!(line.link.snapshot().unwrap().grant, grant());
    line.command(Command::Reauthenticate);
    let attempt = answer_again(&mut line);
    let reply = AuthReply::Reject {
        message: Vec::new(),
        error: None,
    };
    line.command(Command::Auth { attempt, reply });
    line.expect_kind(CHAP, 4);
    line.pass(Duration::from_secs(6));
    let outputs = line.take_outputs();
    assert!(outputs.contains(&Output::Closed(Cause::AuthFailed)));
}

#[test]
fn a_peer_that_cannot_be_reached_has_not_failed_to_authenticate_again() {
    for watch in [Watch::Link, Watch::UserPlane, Watch::Nobody] {
        let mut line = Line::open();
        line.watch = watch;
        line.command(Command::Reauthenticate);
        line.pass(Duration::from_secs(300));
        let failed = Output::Closed(Cause::AuthFailed);
        let is_over = line.take_outputs().contains(&failed);
        assert_eq!(is_over, watch != Watch::Nobody);
    }
}

#[test]
fn a_peer_that_is_not_authenticated_by_chap_cannot_be_asked_again() {
    let again = |line: &mut Line| {
        let asked = line.link.command(line.now, Command::Reauthenticate);
        asked.unwrap_err().0
    };
    let mut line = Line::with(SessionConfig {
        auth: vec![AuthProtocol::Pap],
        ..SessionConfig::default()
    });
    assert_eq!(again(&mut line), "the peer is not authenticated yet");
    line.open_lcp();
    line.send(PAP, 1, 1, b"\x05alice\x06s3cret");
    let reply = accept(grant());
    line.command(Command::Auth { attempt: 1, reply });
    assert_eq!(again(&mut line), "a peer cannot be asked again for PAP");
    let mut line = Line::open();
    line.command(Command::Reauthenticate);
    assert_eq!(again(&mut line), "the peer is being authenticated");
}

#[test]
fn nothing_but_the_proof_counts_before_authentication() {
    let mut line = Line::new();
    line.open_lcp();
    line.take_outputs();
    for frame in [
        packet(IPCP, 1, 1, &home_ipcp()),
        packet(0x80fd, 1, 1, &[]),
        vec![0x00, 0x57, 0x60],
        vec![0, 0x21, 0x45],
    ] {
        line.send_discarded(&frame);
    }
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
