//! What becomes of sessions when the path to their control plane is lost, returns or changes.

use super::*;

const HOLD: u32 = 300;

fn bench(hold: Option<u32>) -> Bench {
    let mut bench = Bench::new();
    bench.engine.config.hold = hold.map(|seconds| Duration::from_secs(seconds.into()));
    bench
}

#[test]
fn sessions_are_held_for_as_long_as_the_configuration_says() {
    let mut bench = bench(Some(HOLD));
    bench.send(0, default_spec(&["100.64.0.0/24"]).establish().0);
    let seid = bench.established(&with_period(7, 60));
    bench.count(seid, 100);
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(HOLD - 1);
    assert_eq!(bench.engine.sessions(), 2);
    bench.pass(1);
    assert_eq!(bench.engine.sessions(), 0);
    assert!(bench.entries.is_empty());
    assert_eq!(
        bench.nets.last(),
        Some(&(false, net("100.64.0.0/24").into()))
    );
    let counters = bench.engine.counters;
    assert_eq!(
        (counters.hold_expired, counters.unreported_octets),
        (2, 300)
    );
    // When the path returns, the control plane's audit misses the session.
    bench.engine.peer_up(bench.now, cp());
    let default = bench.default_session(&[]);
    let result = bench.audit(default, true, &[(seid, spec(7).digest())]);
    assert_eq!(result.wrong, [0]);
    bench.established(&spec(7));
}

#[test]
fn a_path_that_returns_in_time_costs_nothing() {
    let mut bench = bench(Some(HOLD));
    bench.established(&spec(1));
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(HOLD - 1);
    bench.engine.peer_up(bench.now, cp());
    bench.pass(10 * HOLD);
    assert_eq!(bench.engine.sessions(), 1);
    // When the path is lost again, the hold time starts again.
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(HOLD - 1);
    assert_eq!(bench.engine.sessions(), 1);
}

/// The hold time at the loss of the path counts.
#[test]
fn another_time_to_hold_is_that_of_the_next_loss() {
    let mut bench = bench(Some(HOLD));
    bench.established(&spec(1));
    let seconds = |seconds: u32| Some(Duration::from_secs(seconds.into()));
    // Longer, then shorter while the path is lost: the first value applies.
    bench.engine.set_hold(seconds(2 * HOLD));
    bench.engine.peer_lost(bench.now, cp());
    bench.engine.set_hold(seconds(HOLD));
    bench.pass(2 * HOLD - 1);
    assert_eq!(bench.engine.sessions(), 1);
    bench.engine.peer_up(bench.now, cp());
    // Forever.
    bench.engine.set_hold(None);
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(10 * HOLD);
    assert_eq!(bench.engine.sessions(), 1);
    bench.engine.peer_up(bench.now, cp());
    // Shorter than at first.
    bench.engine.set_hold(seconds(HOLD / 2));
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(HOLD / 2 - 1);
    assert_eq!(bench.engine.sessions(), 1);
    bench.pass(1);
    assert_eq!(bench.engine.sessions(), 0);
}

#[test]
fn by_default_sessions_are_held_for_ever() {
    let mut bench = bench(None);
    bench.established(&spec(1));
    bench.engine.peer_lost(bench.now, cp());
    bench.pass(2); // its rules are packed by then
    assert_eq!(bench.engine.poll_at(), None);
    bench.pass(u32::MAX / 2);
    assert_eq!(bench.engine.sessions(), 1);
}

#[test]
fn the_path_to_another_control_plane_does_not_count() {
    let mut bench = bench(Some(HOLD));
    bench.established(&spec(1));
    bench
        .engine
        .peer_lost(bench.now, "192.0.2.66:8805".parse().unwrap());
    bench.pass(2 * HOLD);
    assert_eq!(bench.engine.sessions(), 1);
}

#[test]
fn sessions_go_along_with_a_control_plane_that_moves() {
    let mut bench = bench(Some(HOLD));
    let seid = bench.established(&spec(1));
    bench.engine.peer_lost(bench.now, cp());
    let elsewhere: SocketAddr = "192.0.2.66:8805".parse().unwrap();
    assert_eq!(bench.engine.move_peer(cp(), elsewhere), 1);
    bench.engine.peer_up(bench.now, elsewhere);
    bench.pass(2 * HOLD);
    bench
        .engine
        .request(bench.now, 99, elsewhere, seid, delete().into());
    bench.run();
    assert_eq!(bench.answer(99).cause(), Some(Cause::REQUEST_ACCEPTED));
}

#[test]
fn a_control_plane_that_lost_its_sessions_takes_them_along() {
    let mut bench = Bench::new();
    bench.send(0, default_spec(&["100.64.0.0/24"]).establish().0);
    bench.established(&spec(1));
    bench.established(&spec(2));
    bench.worker_runs = false;
    let under_way = bench.send(0, spec(3).establish_control());
    bench.engine.forget_peer(cp());
    bench.worker_runs = true;
    bench.run();
    assert!(bench.entries.is_empty());
    assert_eq!(bench.engine.sessions(), 0);
    assert_eq!(
        bench.nets.last(),
        Some(&(false, net("100.64.0.0/24").into()))
    );
    assert_eq!(
        bench.answer(under_way).cause(),
        Some(Cause::SESSION_CONTEXT_NOT_FOUND)
    );
    // The same sessions are established again at once.
    bench.established(&spec(1));
}

#[test]
fn a_session_belongs_to_its_control_plane() {
    let mut bench = Bench::new();
    let seid = bench.established(&spec(1));
    let unknown_peer: SocketAddr = "192.0.2.66:8805".parse().unwrap();
    bench
        .engine
        .request(bench.now, 99, unknown_peer, seid, delete().into());
    bench.run();
    assert_eq!(
        bench.answer(99).cause(),
        Some(Cause::SESSION_CONTEXT_NOT_FOUND)
    );
    assert_eq!(bench.entries.len(), 1);
}

#[test]
fn nothing_is_remembered_of_a_control_plane_without_sessions() {
    let mut bench = bench(Some(HOLD));
    assert_eq!(bench.engine.peer_lost(bench.now, cp()), 0);
    assert!(!bench.engine.is_peer(cp().ip()));
    assert_eq!(bench.engine.poll_at(), None, "there is nothing to hold");
    bench.engine.peer_up(bench.now, cp());
    bench.established(&spec(1));
    bench.pass(2); // its rules are packed by then
    assert_eq!(bench.engine.peer_lost(bench.now, cp()), 1);
    assert!(bench.engine.is_peer(cp().ip()));
    bench.engine.forget_peer(cp());
    assert_eq!(bench.engine.poll_at(), None, "it released the association");
}
