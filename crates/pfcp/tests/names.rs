//! A name belongs to one address at a time (TS 29.244 §6.2.6): who may use it, and who is refused.

mod common;

use common::{CP, ELSEWHERE, UP, World, control_config, user_config};
use core::net::SocketAddr;
use core::time::Duration;
use pfcp::{Config, Event, Node, PeerInfo};
use wire::pfcp::{Cause, NodeId};

const SECOND: Duration = Duration::from_secs(1);
/// Heartbeats, and all tries of one of them, are over.
const LOST: Duration = Duration::from_secs(40);

/// A second control plane at another address, which goes by the name of the first and started at another time. The user plane's
/// configuration has the address too.
fn with_impostor(world: &mut World) {
    insert_impostor(world);
    let now = world.now;
    world.node(UP).add_peer(now, ELSEWHERE);
}

fn insert_impostor(world: &mut World) {
    let impostor = Config {
        recovery_time_stamp: 3_900_009_999,
        ..control_config()
    };
    world.nodes.insert(ELSEWHERE, Node::new(impostor));
    let now = world.now;
    world.node(ELSEWHERE).add_peer(now, UP);
}

fn ups(events: Vec<Event>) -> Vec<(SocketAddr, PeerInfo)> {
    let up = |event| match event {
        Event::AssociationUp { peer, info } => Some((peer, info)),
        _ => None,
    };
    events.into_iter().filter_map(up).collect()
}

#[test]
fn while_its_path_lives_a_control_plane_s_name_is_refused_to_others() {
    let mut world = World::associated(1);
    with_impostor(&mut world);
    world.run(SECOND / 2);
    let taken = Event::NodeIdTaken {
        peer: ELSEWHERE,
        node_id: NodeId::from(CP.ip()),
        owner: CP,
    };
    // Both have called.
    assert_eq!(world.take_events(UP), [taken.clone(), taken]);
    let rejected = Event::AssociationRejected {
        peer: UP,
        cause: Cause::REQUEST_REJECTED,
    };
    assert!(world.take_events(ELSEWHERE).contains(&rejected));
    assert_eq!(world.node(UP).counters().node_id_taken, 2);
    // It calls on and on; the owner does not notice.
    world.run(200 * SECOND);
    assert!(world.node(UP).counters().node_id_taken > 5);
    assert!(world.node(UP).is_associated(CP) && !world.node(UP).is_associated(ELSEWHERE));
    assert!(world.take_events(CP).is_empty());
}

#[test]
fn a_control_plane_whose_path_is_dead_may_come_back_elsewhere() {
    let mut world = World::associated(1);
    world.nodes.remove(&CP);
    world.run(LOST);
    world.events.clear();
    with_impostor(&mut world);
    world.run(SECOND / 2);
    let ups = ups(world.take_events(UP));
    let [(peer, info)] = &ups[..] else {
        panic!("{ups:?}")
    };
    assert_eq!((*peer, info.moved_from), (ELSEWHERE, Some(CP)));
    assert!(
        !info.restarted,
        "only a peer's own address says that it started anew"
    );
    // The old one is the impostor now.
    world.nodes.insert(CP, Node::new(control_config()));
    let now = world.now;
    world.node(CP).add_peer(now, UP);
    world.run(SECOND / 2);
    assert!(!world.node(UP).is_associated(CP) && world.node(UP).is_associated(ELSEWHERE));
}

#[test]
fn a_node_id_is_free_as_soon_as_its_owner_does_not_answer() {
    let mut world = World::associated(1);
    world.nodes.remove(&CP);
    with_impostor(&mut world);
    world.run(7 * SECOND);
    let up = world.node(UP);
    assert!(!up.is_associated(CP), "it was asked at once");
    world.run(SECOND);
    assert!(world.node(UP).is_associated(ELSEWHERE));
}

#[test]
fn where_control_planes_are_named_no_other_address_is_let_in() {
    let mut world = World::associated(1);
    world.nodes.remove(&CP);
    world.run(LOST);
    insert_impostor(&mut world);
    world.sent.clear();
    world.run(SECOND / 2);
    assert!(!world.node(UP).is_associated(ELSEWHERE));
    assert_eq!(world.node(UP).counters().unknown_peer, 1);
    assert_eq!(world.node(UP).peers().count(), 1, "nothing is kept of it");
    assert!(world.sent.iter().all(|(_, from, ..)| *from == ELSEWHERE));
}

/// Two user planes under one control plane, which knows both by name and address; `second` is what the second one calls itself.
fn two_user_planes(second: NodeId) -> World {
    let mut world = World::associated(1);
    let user_plane = Config {
        node_id: second,
        ..user_config()
    };
    let now = world.now;
    (world.nodes).insert(ELSEWHERE, common::user_plane(now, user_plane));
    let cp = world.node(CP);
    cp.reserve(UP, NodeId::from(UP.ip()));
    cp.add_peer(now, ELSEWHERE);
    cp.reserve(ELSEWHERE, NodeId::from(ELSEWHERE.ip()));
    world.run(SECOND / 2);
    world
}

#[test]
fn a_user_plane_is_refused_the_name_of_another_even_while_that_one_is_away() {
    let mut world = two_user_planes(NodeId::from(UP.ip()));
    assert!(world.node(CP).is_associated(UP) && !world.node(CP).is_associated(ELSEWHERE));
    let taken = Event::NodeIdTaken {
        peer: ELSEWHERE,
        node_id: NodeId::from(UP.ip()),
        owner: UP,
    };
    assert!(world.take_events(CP).contains(&taken));
    // The configuration says whose name it is.
    world.nodes.remove(&UP);
    world.run(LOST + 60 * SECOND);
    assert!(!world.node(CP).is_associated(UP) && !world.node(CP).is_associated(ELSEWHERE));
    let mut world = two_user_planes(NodeId::from(ELSEWHERE.ip()));
    assert!(world.node(CP).is_associated(UP) && world.node(CP).is_associated(ELSEWHERE));
    assert_eq!(world.node(CP).counters().node_id_taken, 0);
}

#[test]
fn a_user_plane_that_started_anew_is_heard_of_at_once() {
    let mut world = World::associated(1);
    let restarted = Config {
        recovery_time_stamp: 3_900_000_777,
        ..user_config()
    };
    world.nodes.insert(UP, Node::new(restarted));
    let now = world.now;
    world.node(UP).add_peer(now, CP);
    world.run(Duration::from_millis(20));
    let ups = ups(world.take_events(CP));
    let [(UP, info)] = &ups[..] else {
        panic!("{ups:?}")
    };
    assert!(info.restarted && info.moved_from.is_none());
    assert!(world.node(UP).is_associated(CP));
}

#[test]
fn when_both_call_at_once_each_hears_of_one_association() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.node(CP).add_peer(Duration::ZERO, UP);
        world.node(UP).add_peer(Duration::ZERO, CP);
        world.run(5 * SECOND);
        for at in [CP, UP] {
            assert_eq!(ups(world.take_events(at)).len(), 1);
        }
    }
}

#[test]
fn a_user_plane_that_was_released_waits_to_be_asked() {
    let mut world = World::associated(1);
    let now = world.now;
    world.node(UP).add_peer(now, CP);
    world.node(CP).release(now, UP);
    world.run(100 * SECOND);
    assert!(!world.node(UP).is_associated(CP));
}
