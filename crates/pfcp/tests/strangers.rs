//! Datagrams of strangers: from addresses of their own, and in the name of peers. They change nothing, and are counted.
mod common;

use common::{CP, ELSEWHERE, UP, Weather, World, control_config, user_config, user_plane};
use core::net::SocketAddr;
use core::time::Duration;
use pfcp::{Config, Counters, Doubt, DownReason, Event, Node, Output};
use proptest::prelude::*;
use wire::pfcp::*;

const SECOND: Duration = Duration::from_secs(1);
const CP_STARTED: u32 = 3_900_000_000;
const UP_STARTED: u32 = 3_900_000_100;

fn unknown_peer() -> SocketAddr {
    "203.0.113.9:8805".parse().unwrap()
}

fn octets(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    bytes
}

fn setup(node_id: NodeId, recovery_time_stamp: u32) -> Packet {
    let request = AssociationSetupRequest {
        node_id,
        recovery_time_stamp,
        ..Default::default()
    };
    Packet::node(77, request)
}

fn heartbeat(recovery_time_stamp: u32) -> Packet {
    let request = HeartbeatRequest {
        recovery_time_stamp,
    };
    Packet::node(78, request)
}

fn release() -> Packet {
    let request = AssociationReleaseRequest {
        node_id: NodeId::from(CP.ip()),
    };
    Packet::node(79, request)
}

fn release_request() -> Packet {
    let request = AssociationUpdateRequest {
        node_id: NodeId::from(UP.ip()),
        release_request: Some(ReleaseRequest::RELEASE),
        ..Default::default()
    };
    Packet::node(80, request)
}

/// A user plane whose association the control plane has accepted, without a control plane.
fn associated_user_plane() -> Node {
    let mut up = user_plane(Duration::ZERO, user_config());
    up.on_timeout(Duration::ZERO);
    let Some(Output::Transmit { bytes, .. }) = up.poll_output() else {
        panic!("no setup")
    };
    let accepted = AssociationSetupResponse {
        node_id: NodeId::from(CP.ip()),
        cause: Cause::REQUEST_ACCEPTED,
        recovery_time_stamp: CP_STARTED,
        ..Default::default()
    };
    let asked = parse(&bytes).unwrap().packet;
    let answer = Packet::node(asked.sequence, accepted);
    up.handle_datagram(Duration::ZERO, CP, &octets(&answer));
    assert!(up.is_associated(CP));
    up
}

/// Somebody sends a datagram with this source address.
fn forge(world: &mut World, from: SocketAddr, to: SocketAddr, packet: &Packet) {
    let now = world.now;
    world.node(to).handle_datagram(now, from, &octets(packet));
    world.drain();
}

/// The association holds, and nobody was told otherwise.
fn assert_undisturbed(world: &mut World) {
    world.run(60 * SECOND);
    assert!(world.node(CP).is_associated(UP) && world.node(UP).is_associated(CP));
    for event in world
        .take_events(CP)
        .into_iter()
        .chain(world.take_events(UP))
    {
        assert!(matches!(event, Event::NotBelieved { .. }), "{event:?}");
    }
}

fn counters(world: &World, at: SocketAddr) -> Counters {
    world.nodes[&at].counters()
}

#[test]
fn a_stranger_gets_no_answer_whatever_it_sends() {
    let mut world = World::associated(1);
    let deletion = Packet::session(1, 3, SessionDeletionRequest {});
    let modification = Packet::session(1, 4, SessionModificationRequest::default());
    let taken = setup(NodeId::from(CP.ip()), CP_STARTED);
    let own = setup(NodeId::from(unknown_peer().ip()), CP_STARTED);
    let packets = [
        deletion,
        modification,
        release(),
        heartbeat(CP_STARTED),
        taken,
        own,
    ];
    world.sent.clear();
    for (n, packet) in (1..).zip(&packets) {
        for to in [CP, UP] {
            forge(&mut world, unknown_peer(), to, packet);
            assert_eq!(counters(&world, to).unknown_peer, n);
        }
    }
    let version_2 = [0x40, 1, 0, 4, 0, 0, 8, 0];
    for bytes in [&version_2[..], b"?"] {
        let now = world.now;
        world.node(UP).handle_datagram(now, unknown_peer(), bytes);
    }
    world.drain();
    assert!(world.sent.is_empty(), "{:?}", world.sent);
    assert_eq!(counters(&world, UP).unknown_peer, 8);
    assert_eq!(counters(&world, UP).malformed, 0);
    let reported = |times| Event::NotBelieved {
        from: unknown_peer(),
        doubt: Doubt::UnknownPeer,
        times,
    };
    assert_eq!(world.take_events(UP), [1, 2, 4, 8].map(reported));
    assert_eq!(world.node(UP).peers().count(), 1);
    world.events.clear();
    assert_undisturbed(&mut world);
}

/// TS 29.244 §6.8.2: a response comes from where its request was sent to.
#[test]
fn a_response_counts_only_from_the_port_that_was_asked() {
    let mut world = World::associated(1);
    world.nodes.remove(&UP); // nobody else answers
    let now = world.now;
    let request = SessionDeletionRequest {};
    world.node(CP).request(now, UP, 9, request, 1).unwrap();
    world.drain();
    let asked = parse(&world.sent.last().unwrap().3).unwrap().packet;
    let response = SessionDeletionResponse {
        cause: Cause::REQUEST_ACCEPTED,
        ..Default::default()
    };
    let answer = Packet::session(1, asked.sequence, response);
    let other_port = SocketAddr::new(UP.ip(), 4444);
    forge(&mut world, other_port, CP, &answer);
    assert_eq!(counters(&world, CP).misdirected, 1);
    let version = [0x40, 11, 0, 4, 0, 0, asked.sequence as u8, 0];
    world.node(CP).handle_datagram(now, other_port, &version);
    assert_eq!(counters(&world, CP).misdirected, 2);
    world.drain();
    world.events.clear();
    forge(&mut world, UP, CP, &answer);
    let events = world.take_events(CP);
    assert!(
        matches!(&events[..], [Event::Response { token: 1, .. }]),
        "{events:?}"
    );
}

#[test]
fn a_restart_that_the_peer_denies_changes_nothing() {
    for (claim, denied) in [
        (setup(NodeId::from(CP.ip()), CP_STARTED + 50), 1),
        (setup(NodeId::from(CP.ip()), CP_STARTED), 1),
        (heartbeat(CP_STARTED + 50), 1),
        (heartbeat(CP_STARTED), 0),
    ] {
        let mut world = World::associated(1);
        world.sent.clear();
        for _ in 0..5 {
            forge(&mut world, CP, UP, &claim);
        }
        let asked = world.sent.iter().filter(|(.., bytes)| is_request(bytes[1]));
        assert!(asked.count() <= 1, "one question at a time");
        assert_undisturbed(&mut world);
        assert_eq!(counters(&world, UP).denied, denied, "{claim:?}");
    }
}

#[test]
fn a_release_that_the_peer_denies_changes_nothing() {
    let mut world = World::associated(1);
    forge(&mut world, CP, UP, &release());
    assert_undisturbed(&mut world);
    assert_eq!(counters(&world, UP).denied, 1);
    forge(&mut world, UP, CP, &release_request());
    assert_undisturbed(&mut world);
    assert_eq!(counters(&world, CP).release_requests, 1);
}

/// The answer to the release may be overtaken by the question whether it is meant.
#[test]
fn whoever_releases_an_association_says_that_it_has_none() {
    let mut world = World::associated(1);
    let now = world.now;
    world.node(CP).release(now, UP);
    world.drain();
    let question = AssociationUpdateRequest {
        node_id: NodeId::from(UP.ip()),
        ..Default::default()
    };
    forge(&mut world, UP, CP, &Packet::node(81, question));
    let answer = parse(&world.sent.last().unwrap().3).unwrap().packet;
    let none = Some(Cause::NO_ESTABLISHED_ASSOCIATION);
    assert_eq!((answer.sequence, answer.message.cause()), (81, none));
}

/// The sessions of a peer that cannot be asked are held.
#[test]
fn a_release_that_nobody_confirms_is_a_lost_path() {
    let mut world = World::associated(1);
    world.nodes.remove(&CP);
    forge(&mut world, CP, UP, &release());
    world.run(30 * SECOND);
    let lost = Event::AssociationDown {
        peer: CP,
        reason: DownReason::PathLost,
    };
    assert_eq!(world.take_events(UP), [lost]);
}

/// Our answer to the release is lost at first: the control plane has an association as long as it repeats the request.
#[test]
fn a_release_that_takes_long_is_believed() {
    let mut world = World::associated(1);
    let now = world.now;
    world.node(CP).release(now, UP);
    world.drain();
    let (.., request) = world.sent.last().cloned().unwrap();
    world.nodes.remove(&CP);
    world.node(UP).handle_datagram(now, CP, &request);
    world.drain();
    // It answers as one that has the association, three times.
    for n in 0..3 {
        world.run(SECOND / 2);
        let asked = world.sent.iter().rfind(|(.., bytes)| bytes[1] == 7);
        let asked = parse(&asked.expect("a question").3).unwrap().packet;
        let response = AssociationUpdateResponse {
            node_id: NodeId::from(CP.ip()),
            cause: match n {
                2 => Cause::NO_ESTABLISHED_ASSOCIATION,
                _ => Cause::REQUEST_ACCEPTED,
            },
            ..Default::default()
        };
        forge(&mut world, CP, UP, &Packet::node(asked.sequence, response));
        assert_eq!(world.node(UP).is_associated(CP), n < 2);
        world.run(SECOND / 2);
    }
    let released = Event::AssociationDown {
        peer: CP,
        reason: DownReason::Released,
    };
    assert_eq!(world.take_events(UP), [released]);
}

/// A recorded setup of an earlier run, and one of a clock that is wrong.
#[test]
fn time_stamps_that_go_back_or_jump_are_rejected() {
    for stamp in [CP_STARTED - 1, CP_STARTED + 90_000 + 86_400, 1] {
        let mut world = World::associated(1);
        world.sent.clear();
        forge(&mut world, CP, UP, &setup(NodeId::from(CP.ip()), stamp));
        let answer = &world.sent[0].3;
        let answer = parse(answer).unwrap().packet.message;
        assert_eq!(answer.cause(), Some(Cause::REQUEST_REJECTED));
        forge(&mut world, CP, UP, &heartbeat(stamp));
        assert_eq!(counters(&world, UP).time_stamps, 2);
        assert_undisturbed(&mut world);
    }
}

/// Recovery Time Stamps wrap around in 2036, and the clock of a restarted peer may have been set back.
#[test]
fn a_peer_s_own_answer_counts_whatever_its_clock_says() {
    for started in [UP_STARTED - 3_000, UP_STARTED + 50, 7] {
        let mut world = World::associated(1);
        let restarted = Config {
            recovery_time_stamp: started,
            ..user_config()
        };
        world.nodes.insert(UP, Node::new(restarted));
        let now = world.now;
        world.node(UP).add_peer(now, CP);
        world.run(SECOND / 10);
        assert!(world.node(CP).is_associated(UP) && world.node(UP).is_associated(CP));
        let info = world.nodes[&CP].peer_info(UP).unwrap();
        assert_eq!(info.recovery_time_stamp, started);
    }
}

/// While the path is dead, nobody else brings the association back in the peer's name.
#[test]
fn a_dead_peer_is_not_brought_back_by_others() {
    let mut world = World::associated(1);
    let dead = world.nodes.remove(&CP);
    world.run(40 * SECOND);
    world.events.clear();
    for stamp in [CP_STARTED, CP_STARTED + 50] {
        for _ in 0..20 {
            let claim = setup(NodeId::from(CP.ip()), stamp);
            forge(&mut world, CP, UP, &claim);
            world.run(SECOND);
        }
    }
    // Nor is it moved to an address where nobody answers.
    let now = world.now;
    world.node(UP).add_peer(now, ELSEWHERE);
    let elsewhere = setup(NodeId::from(CP.ip()), CP_STARTED);
    forge(&mut world, ELSEWHERE, UP, &elsewhere);
    world.run(20 * SECOND);
    assert_eq!(world.take_events(UP), []);
    world.nodes.extend(dead.map(|dead| (CP, dead)));
    let now = world.now;
    world.node(UP).add_peer(now, CP);
    world.run(60 * SECOND);
    assert!(world.node(UP).is_associated(CP));
}

/// A control plane that was restarted knows from its store which run of the user plane has its sessions.
#[test]
fn nobody_else_associates_as_a_configured_peer() {
    let mut cp = Node::new(control_config());
    let now = SECOND;
    cp.add_peer(now, UP);
    cp.on_timeout(now);
    for stamp in [UP_STARTED, UP_STARTED + 50] {
        cp.handle_datagram(now, UP, &octets(&setup(NodeId::from(UP.ip()), stamp)));
    }
    for seconds in 2..100 {
        cp.on_timeout(seconds * SECOND);
    }
    let mut outputs = core::iter::from_fn(|| cp.poll_output());
    let is_event = |output: &Output| matches!(output, Output::Event(_));
    assert_eq!(outputs.find(is_event), None);
    assert!(!cp.is_associated(UP));
}

/// A request with its sequence number, as it was recorded.
fn recorded(world: &mut World, token: u64) -> Vec<u8> {
    let now = world.now;
    let request = SessionDeletionRequest {};
    world.node(CP).request(now, UP, 9, request, token).unwrap();
    world.drain();
    world.sent.last().unwrap().3.clone()
}

fn is_carried_out(world: &mut World, request: &[u8]) -> bool {
    world.drain();
    world.events.clear();
    let now = world.now;
    world.node(UP).handle_datagram(now, CP, request);
    let carried_out = |event: &Event| matches!(event, Event::Request { .. });
    world.drain();
    world.take_events(UP).iter().any(carried_out)
}

#[test]
fn a_recorded_request_is_carried_out_once_however_late_it_comes_again() {
    let mut world = World::associated(1);
    let bytes = recorded(&mut world, 1);
    let mut times = u32::from(is_carried_out(&mut world, &bytes));
    for _ in 0..200 {
        world.run(SECOND / 2);
        times += u32::from(is_carried_out(&mut world, &bytes));
    }
    world.run(86_400 * SECOND);
    times += u32::from(is_carried_out(&mut world, &bytes));
    assert_eq!(times, 1);
    assert!(counters(&world, UP).old_sequence > 100);
    // The control plane itself is served, also after a restart that it kept its time stamp over.
    let new = recorded(&mut world, 2);
    assert!(is_carried_out(&mut world, &new));
    let now = world.now;
    let restarted = Config {
        first_sequence: 0x70_0000,
        ..control_config()
    };
    world.nodes.insert(CP, Node::new(restarted));
    world.node(CP).add_peer(now, UP);
    world.run(SECOND);
    let new = recorded(&mut world, 3);
    assert!(is_carried_out(&mut world, &new));
    assert!(!is_carried_out(&mut world, &bytes));
}

/// Forged requests have whatever number: they must not shut the real peer out.
#[test]
fn forged_numbers_do_not_move_the_window() {
    let mut world = World::associated(1);
    world.run(20 * SECOND);
    for n in 0..1 << 12 {
        let forged = Packet::session(8, n << 12, SessionDeletionRequest {});
        forge(&mut world, CP, UP, &forged);
    }
    assert!(counters(&world, UP).old_sequence > 2_000);
    for _ in 0..100 {
        let bytes = recorded(&mut world, 1);
        assert!(is_carried_out(&mut world, &bytes));
        world.run(SECOND);
    }
}

/// Peers of other vendors, and of earlier versions, say nothing of their numbers, and may count as they like.
#[test]
fn a_peer_that_does_not_say_its_numbers_may_count_as_it_likes() {
    let mut up = associated_user_plane();
    for minute in 0..100u32 {
        let now = Duration::from_secs(60) * minute;
        while let Some(output) = up.poll_output() {
            let Output::Transmit { bytes, .. } = output else {
                continue;
            };
            let sent = parse(&bytes).unwrap().packet;
            if let Message::HeartbeatRequest(_) = sent.message {
                let answer = HeartbeatResponse {
                    recovery_time_stamp: CP_STARTED,
                    next_sequence: None,
                };
                up.handle_datagram(now, CP, &octets(&Packet::node(sent.sequence, answer)));
            }
        }
        // A counter for each session, and one far away.
        for (seid, sequence) in [(u64::from(minute), 1), (9, 0xf0_0000 - minute)] {
            let request = Packet::session(seid, sequence, SessionDeletionRequest {});
            up.handle_datagram(now, CP, &octets(&request));
            let mut outputs = core::iter::from_fn(|| up.poll_output());
            assert!(outputs.any(|o| matches!(o, Output::Event(Event::Request { .. }))));
        }
        up.on_timeout(now);
    }
    assert_eq!(up.counters().old_sequence, 0);
}

/// 30,000 requests a second, and every answer is lost once: nothing is carried out twice.
#[test]
fn nothing_is_carried_out_twice_at_thirty_thousand_requests_a_second() {
    const RATE: u32 = 30_000;
    const SECONDS: u32 = 6;
    let mut up = associated_user_plane();
    while up.poll_output().is_some() {}
    let request = |n: u32| octets(&Packet::session(n.into(), n, SessionDeletionRequest {}));
    let (mut carried_out, mut answered_again) = (0, 0);
    // Each comes again a second later, and once more as its sender gives it up.
    for n in 0..RATE * SECONDS {
        let now = SECOND * n / RATE;
        let before = [Some(n), n.checked_sub(RATE), n.checked_sub(RATE * 4)];
        for number in before.into_iter().flatten() {
            up.handle_datagram(now, CP, &request(number));
            while let Some(output) = up.poll_output() {
                match output {
                    Output::Event(Event::Request { id, seid, .. }) => {
                        assert_eq!(seid, u64::from(n), "carried out twice");
                        carried_out += 1;
                        let response = SessionDeletionResponse {
                            cause: Cause::REQUEST_ACCEPTED,
                            ..Default::default()
                        };
                        up.respond(id, 1, response);
                    }
                    Output::Transmit { .. } if number == n => {} // lost
                    Output::Transmit { .. } => answered_again += 1,
                    Output::Event(other) => panic!("{other:?}"),
                }
            }
        }
    }
    assert_eq!(carried_out, RATE * SECONDS);
    assert_eq!(answered_again, RATE * (SECONDS - 1) + RATE * (SECONDS - 4));
    assert_eq!(up.counters().overload, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is forged in both planes' names, in whatever weather, their association holds.
    #[test]
    fn forged_datagrams_do_not_end_an_association(
        seed in any::<u64>(),
        lost in 0u64..10,
        forged in prop::collection::vec((0usize..7, any::<u32>(), any::<bool>(), 0u64..2000), 1..60),
    ) {
        let mut world = World::associated(seed);
        world.weather = Weather { lost, doubled: 10, delayed: 0 };
        for (what, random, to_cp, millis) in forged {
            world.run(Duration::from_millis(millis));
            let (from, to, stamp) = match to_cp {
                true => (UP, CP, UP_STARTED),
                false => (CP, UP, CP_STARTED),
            };
            let node_id = NodeId::from(from.ip());
            let packet = match what {
                0 => setup(node_id, stamp),
                1 => setup(node_id, random),
                2 => heartbeat(stamp.wrapping_add(random % 100)),
                3 => heartbeat(random),
                4 if to_cp => release_request(),
                4 | 5 => release(),
                _ => Packet::node(random & SEQUENCE_MASK, HeartbeatResponse { recovery_time_stamp: random, next_sequence: Some(random) }),
            };
            forge(&mut world, from, to, &packet);
        }
        world.weather = Weather::default();
        world.run(60 * SECOND);
        prop_assert!(world.node(CP).is_associated(UP) && world.node(UP).is_associated(CP));
        for (_, event) in &world.events {
            // In bad weather five tries of a question may be lost.
            let in_bad_weather = lost > 0 && matches!(event, Event::AssociationDown { reason: DownReason::PathLost, .. } | Event::AssociationUp { .. });
            prop_assert!(matches!(event, Event::NotBelieved { .. }) || in_bad_weather, "{:?}", event);
        }
    }
}
