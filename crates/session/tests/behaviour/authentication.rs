//! Authentication by PAP, CHAP and MS-CHAPv2, once and again, by scripts.
use crate::support::*;
use session::*;
use std::time::Duration;

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
