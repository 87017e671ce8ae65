//! Rates of all sessions of a subscriber.

use super::*;

#[test]
fn what_the_homes_rate_drops_is_not_counted_as_yellow_and_takes_no_tokens() {
    let packets = PacketSettings {
        subscriber_rate_down: Some(Rate::kbps(4_000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut world = World::new(packets, policies());
    let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
    world.compile(&["permit ip from any to any"], with);
    let outcomes = outcomes(&mut world, INDEX, HZ, &kilobyte(80, 0));
    // the home's burst of 50 and 500 a second, while the session's meter would let 1,000 pass
    assert!(outcomes.passed.abs_diff(550) <= 2, "{outcomes:?}");
    let dropped = [("subscriber-exceeded-down", 2000 - outcomes.passed)];
    assert_eq!(outcomes.dropped, dropped.into());
    let state = world
        .sessions
        .policy_state(INDEX, Direction::Down, &world.policies);
    let yellow = outcomes.dscps.get(&12).copied().unwrap_or(0);
    assert_eq!(state.unwrap().yellow_packets, yellow as u64);
}

/// A second session, of a subscriber.
fn second_session(subscriber: u64, packets: PacketSettings) -> SessionEntry {
    SessionEntry {
        index: SessionIndex(2),
        pppoe_session_id: 8,
        subscriber,
        ..entry(packets, Policies::default())
    }
}

#[test]
fn sessions_of_a_subscriber_share_its_rate() {
    let of_home = PacketSettings {
        subscriber_rate_down: Some(Rate::kbps(4_000)),
        ..PacketSettings::with_mtu(1492)
    };
    let limited = PacketSettings {
        rate_down: Some(Rate::kbps(3_200)),
        ..of_home
    };
    let mut world = World::new(limited, Policies::default());
    let (sources, frame) = (Sources::default(), kilobyte(80, 0));
    world.sessions.set(second_session(0, of_home), sources, 0);
    // alone each has what it may: 400 a second of its own and a burst of 40, 500 a second of the home and a burst of 50
    let first = outcomes(&mut world, INDEX, HZ, &frame);
    assert!(first.passed.abs_diff(440) <= 1, "{first:?}");
    let other = outcomes(&mut world, SessionIndex(2), 3 * HZ, &frame);
    assert!(other.passed.abs_diff(550) <= 1, "{other:?}");
    let exceeded = [("subscriber-exceeded-down", 2000 - other.passed)];
    assert_eq!(other.dropped, exceeded.into());
    // in the same second both have the home's rate together
    let mut passed = 0;
    for n in 0..4000 {
        world.w = Window::of(&frame);
        let now = 5 * HZ + n * HZ / 4000;
        let index = SessionIndex(1 + n as u32 % 2);
        let done = world.pass_down(index, (Family::V4, 1000, now));
        passed += usize::from(done.is_ok());
    }
    assert!(passed.abs_diff(550) <= 2, "{passed}");
    // what the home's rate dropped took no tokens of the session's
    let down = world
        .sessions
        .policy_state(SessionIndex(2), Direction::Down, &world.policies);
    let down = down.unwrap();
    assert_eq!(down.exceeded_packets, 0);
    assert!(down.subscriber_exceeded_packets > 2000);
    assert!(world.sessions.is_whole(INDEX) && world.sessions.is_whole(SessionIndex(2)));
    // another home's session is not concerned
    world.sessions.set(
        second_session(9, PacketSettings::with_mtu(1492)),
        sources,
        0,
    );
    let other = outcomes(&mut world, SessionIndex(2), 5 * HZ, &frame);
    assert_eq!(other.passed, 2000);
    // all of it is released with the last session
    world.sessions.remove(INDEX).unwrap();
    assert!(!world.sessions.any_policed());
    world.sessions.set(second_session(0, of_home), sources, 0);
    let begins = outcomes(&mut world, SessionIndex(2), 5 * HZ, &frame);
    assert!(
        begins.passed.abs_diff(550) <= 1,
        "a new home has all tokens: {begins:?}"
    );
}

#[test]
fn every_session_may_have_a_home_of_its_own_and_change_it() {
    let packets = PacketSettings {
        subscriber_rate_up: Some(Rate::kbps(1000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut sessions = Sessions::with(2, &[0..=4095]);
    for round in 0..3 {
        for n in 0..2 {
            let entry = SessionEntry {
                index: SessionIndex(n),
                pppoe_session_id: 7 + n as u16,
                subscriber: u64::from(10 * round + n),
                ..entry(packets, Policies::default())
            };
            sessions.set(entry, Sources::default(), 0);
            assert!(sessions.is_whole(SessionIndex(n)));
        }
    }
}
