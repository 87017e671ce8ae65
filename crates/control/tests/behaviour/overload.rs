//! A gateway with too little time, or whose servers have: PADIs wait, and set-ups that have begun go on (decision 0037).

use crate::world::{Choice, World};
use control::Input;
use control::counters::Counter;
use core::time::Duration;

/// A control packet comes that has waited for so many milliseconds.
fn wait(w: &mut World, milliseconds: u64) {
    let waited = Duration::from_millis(milliseconds);
    w.plane.handle(w.moment(), Input::Waited(waited));
}

/// For so many seconds all control packets wait too long.
fn be_busy(w: &mut World, seconds: u32) {
    for _ in 0..seconds * 20 {
        wait(w, 101);
        w.run(Duration::from_millis(50));
    }
}

#[test]
fn while_control_packets_wait_for_long_padis_wait_and_begun_set_ups_go_on() {
    let mut w = World::new(40, Choice::radius());
    w.radius.dead = true;
    w.dial(0);
    w.run(Duration::from_secs(1));
    assert_eq!(w.plane.session_count(), 1, "it waits for its server");
    wait(&mut w, 101);
    w.radius.dead = false;
    (1..40).for_each(|n| w.dial(n));
    be_busy(&mut w, 5);
    assert_eq!((w.online(), w.plane.session_count()), (1, 1));
    // They get their answers one after the other, and need not ask again.
    wait(&mut w, 100);
    let online = [0, 600, 600, 1400].map(|milliseconds| {
        w.run(Duration::from_millis(milliseconds));
        w.online()
    });
    assert!(online[0] < 10 && online[1] < online[2], "{online:?}");
    assert_eq!((online[3], w.count(Counter::ControlPlaneBusy)), (40, 0));
}

#[test]
fn when_no_control_packet_comes_any_more_none_waits() {
    let mut w = World::new(1, Choice::radius());
    wait(&mut w, 500);
    w.dial(0);
    w.run(Duration::from_millis(3100));
    assert_eq!(w.online(), 1);
}

#[test]
fn who_has_given_up_while_control_packets_waited_for_long_is_not_answered() {
    let mut w = World::new(2, Choice::radius());
    wait(&mut w, 101);
    (0..2).for_each(|n| w.dial(n));
    be_busy(&mut w, 2);
    w.switch_off_and_on(1);
    // the other one repeats its PADI
    be_busy(&mut w, 20);
    w.run(Duration::from_secs(3));
    assert_eq!((w.online(), w.plane.session_count()), (1, 1));
    assert_eq!(w.count(Counter::ControlPlaneBusy), 1);
}

#[test]
fn while_too_many_wait_for_the_servers_no_padi_is_answered() {
    let mut w = World::new(
        1200,
        Choice {
            sessions: 2000,
            half_open: 2000,
            ..Choice::radius()
        },
    );
    w.radius.dead = true;
    (0..1200).for_each(|n| w.dial(n));
    w.run(Duration::from_secs(1));
    // a server's first window, those that may wait, and the one that was answered last
    assert_eq!(w.plane.session_count(), 1024 + 64 + 1);
    assert_eq!(w.count(Counter::AaaCongested), 0, "they wait");
    (1089..1200).for_each(|n| w.switch_off_and_on(n));
    w.run(Duration::from_secs(15));
    let gone = w.count(Counter::AaaCongested);
    assert!((105..=111).contains(&gone), "{gone}"); // a place became free meanwhile, and the servers were asked for one more
    w.radius.dead = false;
    for _ in 0..4 {
        w.run(Duration::from_secs(30));
        (0..1200).for_each(|n| w.dial(n));
    }
    w.run(Duration::from_secs(10));
    assert_eq!(w.online(), 1200);
    w.assert_balanced();
}
