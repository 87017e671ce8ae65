//! What a session says of itself to who asks, and what it follows from outside while it is open.
use crate::support::*;
use session::*;
use std::sync::Arc;

#[test]
fn interface_identifiers_are_those_that_were_agreed_on() {
    let line = Line::new();
    assert_eq!(
        line.link.status().peer_interface_id,
        None,
        "not negotiated yet"
    );
    let line = Line::open();
    assert_eq!(line.link.status().peer_interface_id, Some(9));
}

#[test]
fn a_verdict_is_waited_for_from_the_response_to_the_answer() {
    let mut line = Line::new();
    line.open_lcp();
    assert!(!line.link.status().waits_for_verdict);
    let attempt = line.answer_challenge();
    assert!(line.link.status().waits_for_verdict);
    let reply = accept(grant());
    line.command(Command::Auth { attempt, reply });
    assert!(!line.link.status().waits_for_verdict);
}

/// RFC 1661 §6.4: zero is no magic number, and is answered by another one.
#[test]
fn a_magic_number_of_zero_is_refused_with_a_better_one() {
    let mut line = Line::new();
    line.expect_kind(LCP, 1);
    line.send(LCP, 1, 1, &[5, 6, 0, 0, 0, 0]);
    let (id, options) = line.expect_kind(LCP, 3);
    assert_eq!((id, &options[..2]), (1, &[5, 6][..]));
    assert_ne!(options[2..], [0; 4]);
}

fn ipv4_only() -> Line {
    let mut line = Line::new();
    line.authenticate(Grant {
        ipv6: None,
        ..grant()
    });
    line.open_ipcp();
    line
}

#[test]
fn silence_that_is_excused_does_not_end_the_session() {
    let mut line = ipv4_only();
    for _ in 0..3 {
        line.pass_to_next();
        line.expect_kind(LCP, 9);
    }
    line.watch = Watch::Nobody;
    line.pass_to_next();
    line.expect_silence();
    line.watch = Watch::Link;
    // From here on it is counted anew: three more, then the end.
    for _ in 0..3 {
        line.pass_to_next();
        line.expect_kind(LCP, 9);
    }
    line.pass_to_next();
    assert!(!line.take_outputs().is_empty());
}

#[test]
fn a_peer_that_the_user_plane_watches_is_asked_only_for_a_sign_of_life_at_once() {
    let mut line = ipv4_only();
    line.watch = Watch::UserPlane;
    line.pass(600 * SECOND);
    line.expect_silence();
    line.command(Command::Probe);
    line.expect_kind(LCP, 9);
    line.pass(SECOND);
    for _ in 0..2 {
        line.expect_kind(LCP, 9);
    }
    line.pass(600 * SECOND);
    line.expect_silence();
    assert!(line.link.status().is_silent);
    // when the user plane does not watch any more, the link does
    line.watch = Watch::Link;
    line.pass(300 * SECOND);
    assert!(!line.take_outputs().is_empty());
}

#[test]
fn a_family_that_was_given_up_is_asked_for_again_also_while_the_user_plane_watches() {
    let mut line = Line::open();
    line.watch = Watch::UserPlane;
    // the peer begins anew, and none of our requests reaches it
    line.send(IPCP, 1, 9, &home_ipcp());
    line.pass(70 * SECOND);
    let codes = |line: &mut Line, protocol: u16| -> Vec<(u8, u8)> {
        let outputs = line.take_outputs();
        let frames = outputs.iter().filter_map(ppp_of);
        let frames = frames.filter(|frame| frame[..2] == protocol.to_be_bytes());
        frames.map(|frame| (frame[2], frame[3])).collect()
    };
    let echoes = codes(&mut line, LCP);
    let (code, id) = *echoes.last().expect("an echo request");
    assert_eq!(code, 9);
    line.send(LCP, 10, id, &[1, 2, 3, 4]);
    assert!(codes(&mut line, IPCP).iter().any(|(code, _)| *code == 1));
    line.pass(200 * SECOND);
    assert_eq!(codes(&mut line, LCP), [], "nothing is missing");
}

#[test]
fn echoes_follow_a_changed_configuration() {
    let mut line = Line::open();
    let shorter = SessionConfig {
        echo_interval: 5 * SECOND,
        ..SessionConfig::default()
    };
    line.command(Command::Configure(Arc::new(shorter)));
    line.pass(5 * SECOND);
    line.expect_kind(LCP, 9);
}
