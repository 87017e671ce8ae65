//! Subscribers of MS-CHAPv2 (RFC 2759), by RADIUS (RFC 2548) and by local users.

use crate::users::refusals;
use crate::world::{Choice, World};
use core::time::Duration;
use wire::radius::{Kind, Value};

const SECOND: Duration = Duration::from_secs(1);

/// A world with one home, which is asked for MS-CHAPv2 alone.
fn world(choice: Choice) -> World {
    let mut w = World::new(1, choice);
    w.configure(&["set access-profiles pppoe authentication mschapv2"])
        .unwrap();
    w
}

fn has_heard(w: &World, text: &str) -> bool {
    let has = |frame: &Vec<u8>| {
        frame
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    w.heard.iter().any(has)
}

#[test]
fn a_server_s_answer_is_passed_on_with_its_proof() {
    let mut w = world(Choice::radius());
    w.radius.accept = vec![
        (Kind::SESSION_TIMEOUT, 600.into()),
        (Kind::TERMINATION_ACTION, 1.into()),
        (Kind::REPLY_MESSAGE, "hello".into()),
    ];
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    assert!(has_heard(&w, " M=hello"));
    let asked = w.radius.requests.last().unwrap().clone();
    let octets = |kind| asked.get(kind).and_then(Value::octets).map(<[u8]>::len);
    assert_eq!(octets(Kind::MS_CHAP_CHALLENGE), Some(16));
    assert_eq!(octets(Kind::MS_CHAP2_RESPONSE), Some(50));
    assert_eq!(octets(Kind::CHAP_PASSWORD), None);

    // the session time-out asks for a new proof, also after a restart (Termination-Action, RFC 2865 §5.29)
    w.restart_control_plane();
    w.run(610 * SECOND);
    assert_eq!((w.online(), w.radius.requests.len()), (1, 2));
    let again = w.radius.requests.last().unwrap();
    let response = Kind::MS_CHAP2_RESPONSE;
    assert!(again.get(response).is_some() && again.get(response) != asked.get(response));
    let challenge = Kind::MS_CHAP_CHALLENGE;
    assert_ne!(again.get(challenge), asked.get(challenge));
    assert!(w.plane.ledger().is_balanced());
}

#[test]
fn who_gets_no_proof_is_rejected() {
    let mut w = world(Choice::radius());
    w.radius.unproven = true;
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    assert!(has_heard(&w, "E=691 R=0 C="));
    let why = refusals(&w).remove(0);
    assert!(why.contains("has no valid MS-CHAP2-Success"), "{why}");
    assert!(w.plane.ledger().is_balanced());
}

#[test]
fn an_error_of_the_server_is_passed_on() {
    let mut w = world(Choice::radius());
    w.radius.rejects = true;
    let error = b"\x01E=648 R=1 C=0123456789abcdef0123456789abcdef V=3 M=expired";
    w.radius.reject = vec![(Kind::MS_CHAP_ERROR, Value::Octets(error.to_vec()))];
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    assert!(has_heard(&w, "E=648 R=0 C=") && has_heard(&w, " V=3 M=expired"));
}

#[test]
fn a_local_user_comes_in_by_the_right_password_alone() {
    let mut w = world(Choice::default());
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    w.hang_up(0);
    w.run(10 * SECOND);
    let mut config = w.homes[0].config().clone();
    config.password = "wrong".into();
    w.homes[0] = cpe::Home::new(config, 3);
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 0);
    assert!(has_heard(&w, "E=691 R=0 C="));
    let why = refusals(&w).pop().unwrap();
    assert_eq!(why, "no local user has this name and password");
}

#[test]
fn the_last_policy_has_no_proof() {
    let mut w = world(Choice::radius());
    w.configure(&["set access-profiles pppoe fallback last-policy"])
        .unwrap();
    w.dial(0);
    w.run(10 * SECOND);
    assert_eq!(w.online(), 1);
    w.hang_up(0);
    w.run(30 * SECOND);
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(w.online(), 0);
    let why = refusals(&w).pop().unwrap();
    assert!(
        why.contains("a proof that a last answer does not have"),
        "{why}"
    );
}
