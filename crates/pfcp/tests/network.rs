//! Two entities with a network between them: associations, lost and doubled datagrams, restarts, refusals.
mod common;

use common::{CP, UP, Weather, World, control_config, user_config};
use core::net::SocketAddr;
use core::time::Duration;
use pfcp::{Config, DownReason, Event, FailReason, Node, Output, RequestError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::pfcp::*;

const SECOND: Duration = Duration::from_secs(1);

fn unknown_peer() -> SocketAddr {
    "203.0.113.9:8805".parse().unwrap()
}

/// Request number n asks to delete session n; its answer names n again, as the type of an element.
fn answer_requests(world: &mut World, seen: &mut BTreeMap<u64, u32>) {
    for event in world.take_events(UP) {
        if let Event::Request {
            id,
            seid,
            message: Message::SessionDeletionRequest(_),
        } = event
        {
            *seen.entry(seid).or_default() += 1;
            let response = SessionDeletionResponse {
                cause: Cause::REQUEST_ACCEPTED,
                offending_ie: Some(seid as u16),
                ..Default::default()
            };
            world.node(UP).respond(id, seid, response);
        }
    }
}

fn request(world: &mut World, n: u64) -> Result<(), RequestError> {
    let now = world.now;
    world
        .node(CP)
        .request(now, UP, n, SessionDeletionRequest {}, n)
}

fn run_answering(world: &mut World, time: Duration, seen: &mut BTreeMap<u64, u32>) {
    let until = world.now + time;
    while world.step(until) {
        answer_requests(world, seen);
    }
    world.now = until;
}

#[test]
fn an_association_comes_up_and_stays() {
    let mut world = World::new(1);
    world.node(CP).add_peer(Duration::ZERO, UP);
    world.run(60 * SECOND);
    let [Event::AssociationUp { peer: UP, info }] = &world.take_events(CP)[..] else {
        panic!("not up, or not for long")
    };
    assert_eq!(info.node_id, NodeId::from(UP.ip()));
    assert_eq!(info.recovery_time_stamp, 3_900_000_100);
    assert!(info.features.default_cp_to_up_rule() && !info.restarted);
    assert_eq!(info.features.bbf, Some(BbfUpFeatures::PPPOE));
    let [Event::AssociationUp { peer: CP, info }] = &world.take_events(UP)[..] else {
        panic!("not up, or not for long")
    };
    assert!(info.features.cp.is_some() && !info.retain_sessions);
    let heartbeats = |from| {
        world
            .sent
            .iter()
            .filter(|(_, f, _, bytes)| *f == from && bytes[1] == 1)
            .count()
    };
    // each asked the other besides whether its setup was real
    assert_eq!((heartbeats(CP), heartbeats(UP)), (7, 7));
    assert_eq!(world.nodes[&CP].counters().retransmitted, 0);
}

/// Who keeps a request waiting until it is sent again does not answer, even if it is still thought to be there.
#[test]
fn a_peer_answers_unless_a_request_had_to_be_sent_again() {
    let mut world = World::associated(1);
    assert!(!world.node(CP).is_answering(unknown_peer()));
    assert_eq!(request(&mut world, 1), Ok(()));
    world.drain();
    assert!(world.node(CP).is_answering(UP), "sent once");
    world.weather.lost = 100;
    while world.node(CP).counters().retransmitted == 0 {
        let until = world.now + SECOND;
        world.step(until);
    }
    let node = world.node(CP);
    assert!(node.is_associated(UP) && !node.is_answering(UP));
}

#[test]
fn elements_that_nobody_knows_are_counted() {
    let mut world = World::associated(1);
    let recovery = [0, 96, 0, 4, 0xe8, 0x75, 0x47, 0];
    let unknown = [0x7f, 0xf0, 0, 1, 9];
    let mut heartbeat = vec![VERSION << 5, 1, 0, 0, 0, 0, 9, 0];
    heartbeat.extend([&recovery[..], &unknown, &unknown].concat());
    heartbeat[3] = (heartbeat.len() - 4) as u8;
    let now = world.now;
    world.node(UP).handle_datagram(now, CP, &heartbeat);
    world.drain();
    assert_eq!(world.node(UP).counters().ignored_elements, 2);
    let answer = world.sent.last().expect("an answer");
    assert_eq!(
        (answer.1, answer.3[1]),
        (UP, 2),
        "and the rest is understood"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the network does, a request is handled at most once, and ends in its own answer or in a failure.
    #[test]
    fn requests_are_handled_once_and_answered(seed in any::<u64>(), lost in 0u64..40, doubled in 0u64..40, delayed in 0u64..40) {
        let mut world = World::associated(seed);
        // The path is not given up in bad weather, as this is about requests.
        world.weather = Weather { lost, doubled, delayed };
        let mut seen = BTreeMap::new();
        for n in 1..=60 {
            prop_assert_eq!(request(&mut world, n), Ok(()));
            run_answering(&mut world, Duration::from_millis(20), &mut seen);
        }
        run_answering(&mut world, 8 * SECOND, &mut seen);
        prop_assert!(seen.values().all(|times| *times == 1), "handled twice: {:?}", seen);
        let mut ended: Vec<u64> = Vec::new();
        for event in world.take_events(CP) {
            match event {
                Event::Response { token, message: Message::SessionDeletionResponse(response), .. } => {
                    prop_assert_eq!(response.offending_ie, Some(token as u16));
                    ended.push(token);
                }
                Event::Failed { token, reason: FailReason::TimedOut, .. } => {
                    prop_assert!(lost > 0 || delayed > 0);
                    ended.push(token);
                }
                other => prop_assert!(false, "unexpected {:?}", other),
            }
        }
        ended.sort();
        prop_assert_eq!(ended, Vec::from_iter(1..=60));
        prop_assert_eq!(world.node(CP).pending(UP), 0);
    }

    /// Nothing that comes over the network makes an entity panic, whether it is PFCP or not.
    #[test]
    fn any_datagram_is_survived(
        datagrams in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), 0u8..60, any::<bool>()), 0..20),
    ) {
        let mut world = World::associated(1);
        for (mut bytes, kind, from_unknown_peer) in datagrams {
            if bytes.len() >= 4 {
                let length = (bytes.len() - 4) as u16;
                bytes[0] = VERSION << 5 | u8::from(is_about_session(kind));
                bytes[1] = kind;
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
            }
            let now = world.now;
            let from = |peer| if from_unknown_peer { unknown_peer() } else { peer };
            world.node(CP).handle_datagram(now, from(UP), &bytes);
            world.node(UP).handle_datagram(now, from(CP), &bytes);
        }
        world.run(30 * SECOND);
        prop_assert!(world.node(CP).is_associated(UP));
    }
}

/// Losing nothing but what is lost, associations outlast bad weather: they come up, and come back.
#[test]
fn associations_come_up_in_bad_weather() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.weather = Weather {
            lost: 30,
            doubled: 20,
            delayed: 20,
        };
        world.node(CP).add_peer(Duration::ZERO, UP);
        world.run(60 * SECOND);
        world.weather = Weather::default();
        world.run(60 * SECOND);
        assert!(
            world.node(CP).is_associated(UP) && world.node(UP).is_associated(CP),
            "seed {seed}"
        );
    }
}

#[test]
fn a_request_is_sent_again_unchanged_until_it_is_given_up() {
    let mut world = World::associated(1);
    world.weather.lost = 100;
    world.sent.clear();
    request(&mut world, 7).unwrap();
    let start = world.now;
    world.run(6 * SECOND);
    let tries: Vec<_> = world
        .sent
        .iter()
        .filter(|(.., bytes)| bytes[1] == 54)
        .collect();
    assert_eq!(tries.len(), 5, "once, and N1 = 4 times again");
    assert!(tries.iter().all(|(.., bytes)| *bytes == tries[0].3));
    let times: Vec<_> = tries
        .iter()
        .map(|(at, ..)| (*at - start).as_secs())
        .collect();
    assert_eq!(times, [0, 1, 2, 3, 4]);
    let failed = Event::Failed {
        peer: UP,
        token: 7,
        reason: FailReason::TimedOut,
    };
    assert_eq!(world.take_events(CP), [failed]);
    assert_eq!(world.node(CP).counters().timed_out, 1);
}

#[test]
fn a_request_that_comes_again_gets_the_same_octets() {
    let mut world = World::associated(1);
    let mut bytes = Vec::new();
    Packet::session(9, 500, SessionDeletionRequest {})
        .emit(&mut bytes)
        .unwrap();
    let now = world.now;
    let transmitted = |node: &mut Node| match node.poll_output() {
        Some(Output::Transmit { bytes, .. }) => Some(bytes),
        _ => None,
    };
    let up = world.node(UP);
    up.handle_datagram(now, CP, &bytes);
    let Some(Output::Event(Event::Request { id, .. })) = up.poll_output() else {
        panic!("no request")
    };
    up.handle_datagram(now, CP, &bytes);
    assert_eq!(up.poll_output(), None, "it is being handled");
    up.respond(
        id,
        1,
        SessionDeletionResponse {
            cause: Cause::REQUEST_ACCEPTED,
            ..Default::default()
        },
    );
    let first = transmitted(up).unwrap();
    up.handle_datagram(now + SECOND, CP, &bytes);
    assert_eq!(transmitted(up), Some(first));
    assert_eq!(up.counters().duplicates, 2);
}

#[test]
fn a_lost_path_is_noticed_and_found_again() {
    let mut world = World::associated(1);
    world.weather.lost = 100;
    request(&mut world, 1).unwrap();
    world.run(300 * SECOND);
    let down = Event::AssociationDown {
        peer: UP,
        reason: DownReason::PathLost,
    };
    let events = world.take_events(CP);
    assert!(events.contains(&down), "{events:?}");
    assert_eq!(
        world.take_events(UP),
        [Event::AssociationDown {
            peer: CP,
            reason: DownReason::PathLost
        }]
    );
    assert_eq!(request(&mut world, 2), Err(RequestError::NoAssociation));
    let last = world.sent.last().unwrap().0;
    assert!(
        last + 40 * SECOND > world.now,
        "the control plane has given up"
    );

    world.weather.lost = 0;
    world.run(40 * SECOND);
    let [Event::AssociationUp { info, .. }] = &world.take_events(CP)[..] else {
        panic!("not found again")
    };
    assert!(!info.restarted);
    let [Event::AssociationUp { info, .. }] = &world.take_events(UP)[..] else {
        panic!("not found again")
    };
    assert!(
        !info.restarted,
        "the control plane kept its time stamp: its sessions stay"
    );
}

/// A node that takes its predecessor's place and associates.
fn replace(world: &mut World, at: SocketAddr, config: Config) {
    world.drain();
    let mut node = Node::new(config);
    node.add_peer(world.now, if at == CP { UP } else { CP });
    world.nodes.insert(at, node);
}

#[test]
fn a_restarted_user_plane_is_noticed_by_its_time_stamp() {
    let mut world = World::associated(1);
    replace(
        &mut world,
        UP,
        Config {
            recovery_time_stamp: 3_900_000_999,
            ..user_config()
        },
    );
    world.run(SECOND);
    let events = world.take_events(CP);
    let [Event::AssociationUp { info, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(info.restarted);
    assert_eq!(info.recovery_time_stamp, 3_900_000_999);
}

/// Its setup is lost, or it waits to be asked.
#[test]
fn a_restart_is_noticed_by_a_heartbeat_too() {
    let mut world = World::associated(1);
    world.nodes.remove(&UP);
    world.sent.clear();
    world.run(11 * SECOND);
    let heartbeat = world.sent.last().expect("a heartbeat");
    let asked = parse(&heartbeat.3).unwrap().packet;
    let response = HeartbeatResponse {
        recovery_time_stamp: 3_900_000_999,
        next_sequence: None,
    };
    let mut answer = Vec::new();
    let response = Packet::node(asked.sequence, response);
    response.emit(&mut answer).unwrap();
    let now = world.now;
    world.node(CP).handle_datagram(now, UP, &answer);
    world.drain();
    let restarted = Event::AssociationDown {
        peer: UP,
        reason: DownReason::Restarted,
    };
    assert_eq!(world.take_events(CP), [restarted]);
    world.run(SECOND / 10);
    let (at, _, to, setup) = world.sent.last().expect("a setup");
    assert_eq!((*at, *to, setup[1]), (now, UP, 5));
}

#[test]
fn a_restarted_control_plane_is_noticed_by_its_time_stamp() {
    for (stamp, retain) in [(3_900_000_000, true), (3_900_000_500, false)] {
        let mut world = World::associated(1);
        let config = Config {
            recovery_time_stamp: stamp,
            retain_sessions: retain,
            first_sequence: 77,
            ..control_config()
        };
        replace(&mut world, CP, config);
        world.run(SECOND);
        let [Event::AssociationUp { info, .. }] = &world.take_events(UP)[..] else {
            panic!("no new association")
        };
        assert_eq!((info.restarted, info.retain_sessions), (!retain, retain));
    }
}

#[test]
fn a_user_plane_that_forgot_is_associated_with_again() {
    let mut world = World::associated(1);
    replace(&mut world, UP, user_config());
    request(&mut world, 5).unwrap();
    world.run(SECOND);
    let events = world.take_events(CP);
    let [
        Event::Failed {
            token: 5,
            reason: FailReason::AssociationDown,
            ..
        },
        Event::AssociationDown { reason, .. },
        Event::AssociationUp { .. },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(*reason, DownReason::Forgotten);
}

#[test]
fn wrong_requests_get_their_cause() {
    let mut world = World::associated(1);
    // A Session Establishment Request without anything in it.
    let bytes = [0x21, 50, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0];
    let now = world.now;
    let up = world.node(UP);
    up.handle_datagram(now, CP, &bytes);
    let Some(Output::Transmit { bytes, .. }) = up.poll_output() else {
        panic!("no answer")
    };
    let Message::SessionEstablishmentResponse(response) = parse(&bytes).unwrap().packet.message
    else {
        panic!("another answer")
    };
    assert_eq!(
        (response.cause, response.offending_ie),
        (Cause::MANDATORY_IE_MISSING, Some(60))
    );
    assert_eq!(up.counters().refused, 1);
}

#[test]
fn another_version_is_refused_and_reported() {
    let mut world = World::associated(1);
    let now = world.now;
    let up = world.node(UP);
    up.handle_datagram(now, CP, &[0x40, 1, 0, 4, 0, 0, 8, 0]);
    let mismatch = Event::VersionMismatch {
        peer: CP,
        version: 2,
    };
    assert_eq!(up.poll_output(), Some(Output::Event(mismatch)));
    let Some(Output::Transmit { to, bytes }) = up.poll_output() else {
        panic!("no answer")
    };
    assert_eq!((to, bytes), (CP, vec![0x20, 11, 0, 4, 0, 0, 8, 0]));
    assert_eq!(up.counters().other_version, 1);
    // A response of another version is not answered, or two entities would talk for ever.
    up.handle_datagram(now, CP, &[0x40, 2, 0, 4, 0, 0, 8, 0]);
    assert!(matches!(up.poll_output(), Some(Output::Event(_))));
    assert_eq!(up.poll_output(), None);
}

#[test]
fn a_peer_that_does_not_take_our_version_is_asked_again_later() {
    let mut cp = Node::new(control_config());
    cp.add_peer(Duration::ZERO, UP);
    cp.on_timeout(Duration::ZERO);
    let Some(Output::Transmit { bytes, .. }) = cp.poll_output() else {
        panic!("no setup")
    };
    // Version 2's way to say so.
    cp.handle_datagram(
        Duration::ZERO,
        UP,
        &[0x40, 11, 0, 4, bytes[4], bytes[5], bytes[6], 0],
    );
    let mismatch = Event::VersionMismatch {
        peer: UP,
        version: 2,
    };
    assert_eq!(cp.poll_output(), Some(Output::Event(mismatch)));
    assert_eq!(cp.poll_at(), Some(SECOND));
    cp.on_timeout(SECOND);
    assert!(matches!(cp.poll_output(), Some(Output::Transmit { bytes, .. }) if bytes[1] == 5));
}

#[test]
fn a_rejected_setup_is_tried_again_after_longer_and_longer() {
    let mut cp = Node::new(control_config());
    cp.add_peer(Duration::ZERO, UP);
    let (mut at, mut rejections) = (Vec::new(), 0);
    while let Some(now) = cp.poll_at().filter(|now| *now <= 100 * SECOND) {
        cp.on_timeout(now);
        while let Some(output) = cp.poll_output() {
            let Output::Transmit { bytes, .. } = output else {
                let rejected = Event::AssociationRejected {
                    peer: UP,
                    cause: Cause::REQUEST_REJECTED,
                };
                assert_eq!(output, Output::Event(rejected));
                rejections += 1;
                continue;
            };
            at.push(now.as_secs());
            let rejection = AssociationSetupResponse {
                node_id: NodeId::from(UP.ip()),
                cause: Cause::REQUEST_REJECTED,
                ..Default::default()
            };
            let setup = parse(&bytes).unwrap().packet;
            let mut answer = Vec::new();
            let rejection = Packet::node(setup.sequence, rejection);
            rejection.emit(&mut answer).unwrap();
            cp.handle_datagram(now, UP, &answer);
        }
    }
    assert_eq!(at, [0, 1, 3, 7, 15, 31, 61, 91]);
    assert_eq!(rejections, at.len());
}

#[test]
fn the_window_and_the_queue_have_bounds() {
    let mut world = World::new(1);
    world.nodes.insert(
        CP,
        Node::new(Config {
            window: 2,
            queue: 3,
            ..control_config()
        }),
    );
    world.node(CP).add_peer(Duration::ZERO, UP);
    world.run(SECOND);
    world.events.clear();
    world.sent.clear();
    for n in 1..=5 {
        request(&mut world, n).unwrap();
    }
    assert_eq!(request(&mut world, 6), Err(RequestError::QueueFull));
    assert_eq!(world.node(CP).pending(UP), 5);
    world.drain();
    assert_eq!(world.sent.len(), 2, "the window is 2");
    run_answering(&mut world, SECOND, &mut BTreeMap::new());
    let tokens: Vec<u64> = world
        .take_events(CP)
        .into_iter()
        .filter_map(|event| match event {
            Event::Response { token, .. } => Some(token),
            _ => None,
        })
        .collect();
    assert_eq!(tokens, [1, 2, 3, 4, 5]);
    assert_eq!(world.node(CP).counters().queue_full, 1);
}

#[test]
fn requests_that_wait_fail_with_the_association() {
    let mut world = World::new(1);
    world.nodes.insert(
        CP,
        Node::new(Config {
            window: 1,
            ..control_config()
        }),
    );
    world.node(CP).add_peer(Duration::ZERO, UP);
    world.run(SECOND);
    world.events.clear();
    request(&mut world, 1).unwrap();
    request(&mut world, 2).unwrap();
    let now = world.now;
    world.node(CP).release(now, UP);
    world.run(SECOND);
    let failed = |token| Event::Failed {
        peer: UP,
        token,
        reason: FailReason::AssociationDown,
    };
    let down = Event::AssociationDown {
        peer: UP,
        reason: DownReason::Released,
    };
    assert_eq!(world.take_events(CP), [down, failed(1), failed(2)]);
    let others: Vec<_> = world
        .take_events(UP)
        .into_iter()
        .filter(|event| !matches!(event, Event::Request { .. }))
        .collect();
    assert_eq!(
        others,
        [Event::AssociationDown {
            peer: CP,
            reason: DownReason::Released
        }]
    );
    world.run(100 * SECOND);
    assert!(
        !world.node(CP).is_associated(UP),
        "it was released for good"
    );
    assert_eq!(world.node(CP).poll_at(), None);
}

#[test]
fn requests_from_another_port_are_the_peers_own() {
    let mut world = World::associated(1);
    let elsewhere = SocketAddr::new(CP.ip(), 40_000);
    let mut bytes = Vec::new();
    Packet::session(9, 500, SessionDeletionRequest {})
        .emit(&mut bytes)
        .unwrap();
    let now = world.now;
    let up = world.node(UP);
    up.handle_datagram(now, elsewhere, &bytes);
    let Some(Output::Event(Event::Request { id, .. })) = up.poll_output() else {
        panic!("refused")
    };
    assert_eq!(id.peer, CP);
    up.respond(id, 1, SessionDeletionResponse::default());
    assert!(matches!(up.poll_output(), Some(Output::Transmit { to, .. }) if to == elsewhere));
}

#[test]
fn only_requests_about_sessions_are_made_by_hand() {
    let mut world = World::associated(1);
    let now = world.now;
    let heartbeat = HeartbeatRequest {
        recovery_time_stamp: 1,
    };
    assert_eq!(
        world.node(CP).request(now, UP, 0, heartbeat, 1),
        Err(RequestError::NotASessionRequest)
    );
    let net = CreatePdr {
        pdi: Pdi {
            framed_routes: vec!["x".repeat(60_000); 2],
            ..Default::default()
        },
        ..Default::default()
    };
    let request = SessionModificationRequest {
        create_pdrs: vec![net],
        ..Default::default()
    };
    assert_eq!(
        world.node(CP).request(now, UP, 1, request, 1),
        Err(RequestError::TooLong)
    );
}
