//! Policers of sessions, and what their rates and tokens do when they change.

use super::*;

#[test]
fn a_policer_colours_marks_and_drops() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
    world.compile(&["permit ip from any to any"], with);
    // a burst of 100 packets and 1,000 a second; a burst of 15 and 125 a second are green
    let (passed, first) = second(&mut world, HZ, 0);
    assert!(passed.abs_diff(1100) <= 2, "{passed}");
    assert!((passed - first).abs_diff(140) <= 2, "{first} of {passed}");
    // what comes yellow (AF12) takes no green tokens, and what comes red (AF13) does not pass
    let (passed, yellow) = second(&mut world, 3 * HZ, 12 << 2);
    assert_eq!(passed, yellow);
    let yellow_packets = first + yellow;
    let (passed, _) = second(&mut world, 5 * HZ, 14 << 2);
    assert_eq!(passed, 0);
    let down = world
        .sessions
        .policy_state(INDEX, Direction::Down, &world.policies);
    let down = down.unwrap();
    assert_eq!(down.yellow_packets, yellow_packets as u64);
    assert!(down.exceeded_packets > 2000 && world.sessions.is_whole(INDEX));
}

#[test]
fn a_sessions_rate_takes_the_place_of_the_peak_rate_without_a_burst() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
    world.compile(&["permit ip from any to any"], with);
    second(&mut world, HZ, 0);
    let packets = PacketSettings {
        rate_down: Some(Rate::kbps(4_000)),
        ..PacketSettings::with_mtu(1492)
    };
    world
        .sessions
        .set(entry(packets, policies()), Sources::default(), 0);
    let (passed, _) = second(&mut world, 2 * HZ, 0);
    assert!(passed.abs_diff(500) <= 5, "{passed}");
    // the policy is swapped: again no burst
    world.compile(&["permit ip from any to any"], with);
    let (passed, _) = second(&mut world, 3 * HZ, 0);
    assert!(passed.abs_diff(500) <= 5, "{passed}");
}

#[test]
fn a_policer_in_place_of_a_sessions_rate_is_no_burst_and_the_other_way_round() {
    let packets = PacketSettings {
        rate_down: Some(Rate::kbps(8_000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut world = World::new(packets, Policies::default());
    let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
    world.compile(&["permit ip from any to any"], with);
    let (passed, _) = second(&mut world, HZ, 0);
    assert!(passed.abs_diff(1100) <= 2, "{passed}");
    for (from, policies) in [(2, policies()), (3, Policies::default()), (4, policies())] {
        // the rate goes with the policy as well
        let packets = match policies.down {
            Some(_) => PacketSettings::with_mtu(1492),
            None => packets,
        };
        world
            .sessions
            .set(entry(packets, policies), Sources::default(), 0);
        let (passed, _) = second(&mut world, from * HZ, 0);
        assert!(passed.abs_diff(1000) <= 2, "{passed} from {from} s on");
        assert!(world.sessions.is_whole(INDEX));
    }
}

#[test]
fn a_session_that_gets_its_policy_again_has_the_tokens_that_it_had() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let with = |policy: &mut PolicyRules| {
        with_all_classes(policy);
        policy.policer = Some(PolicerSettings {
            is_colour_aware: false,
            ..policer()
        });
    };
    world.compile(&["permit ip from any to any"], with);
    let again = |world: &mut World| {
        world.set(PacketSettings::with_mtu(1492));
        let entry = entry(PacketSettings::with_mtu(1492), policies());
        world.sessions.set(entry, Sources::default(), 0);
        assert!(world.sessions.is_whole(INDEX));
    };
    let last = kilobyte(80, 56 << 2);
    let other = kilobyte(80, 0);
    // of the policer 100 at once and 1,000 a second, of the last class 15 at once and 350 a second
    for (from, burst) in [(1, true), (3, false)] {
        let of_class = outcomes(&mut world, INDEX, from * HZ, &last);
        again(&mut world);
        let after = outcomes(&mut world, INDEX, (from + 1) * HZ, &last);
        let first = 350 + if burst { 15 } else { 0 };
        assert!(of_class.passed.abs_diff(first) <= 1, "{of_class:?}");
        assert!(after.passed.abs_diff(350) <= 1, "{after:?}");
        again(&mut world);
    }
    let all = outcomes(&mut world, INDEX, 9 * HZ, &other);
    assert!(
        all.passed.abs_diff(1100) <= 2,
        "time fills it as well: {all:?}"
    );
    again(&mut world);
    let all = outcomes(&mut world, INDEX, 10 * HZ, &other);
    assert!(all.passed.abs_diff(1000) <= 2, "{all:?}");
    // who comes after it on the same line has full buckets
    world.sessions.remove(INDEX).unwrap();
    let entry = entry(PacketSettings::with_mtu(1492), policies());
    world.sessions.set(entry, Sources::default(), 0);
    let all = outcomes(&mut world, INDEX, 11 * HZ, &other);
    assert!(all.passed.abs_diff(1100) <= 2, "{all:?}");
}

#[test]
fn a_policer_charges_what_a_packet_takes_on_the_line() {
    // cells of 53 octets for each 48 of 40 more than the packet has: 64 octets are three cells, 1,000 are 22
    let cells = |cells: u32| PolicerSettings {
        meter: MeterSettings::SingleRate {
            cir: Rate::kbps(8),
            cbs: cells * 53,
            ebs: 0,
        },
        overhead: Overhead::atm(32),
        is_colour_aware: false,
        yellow_mark: None,
    };
    let small = &kilobyte(80, EF << 2);
    for (octets, each) in [(64, 3), (1000, 22)] {
        for is_class in [false, true] {
            let mut world = World::new(PacketSettings::with_mtu(1492), policies());
            world.compile(&["permit ip from any to any"], |policy| {
                let policer = Some(cells(3 * each));
                match is_class {
                    false => policy.policer = policer,
                    true => {
                        policy.classes = vec![class("voice", &[EF], 0, None)];
                        policy.classes[0].policer = policer;
                    }
                }
            });
            let passed = (0..20).filter(|_| {
                world.w = Window::of(small);
                let packet = (Family::V4, octets, HZ);
                world.pass_down(INDEX, packet).is_ok()
            });
            assert_eq!(passed.count(), 3, "{octets} octets, class: {is_class}");
        }
    }
}

#[test]
fn a_sessions_committed_rate_says_how_many_are_green() {
    let packets = PacketSettings {
        committed_rate_down: Some(Rate::kbps(4_000)),
        ..PacketSettings::with_mtu(1492)
    };
    let mut world = World::new(packets, policies());
    let with = |policy: &mut PolicyRules| policy.policer = Some(policer());
    world.compile(&["permit ip from any to any"], with);
    // 500 a second instead of 125, after a burst of as much time: 60
    let (passed, yellow) = second(&mut world, HZ, 0);
    assert!(passed.abs_diff(1100) <= 2, "{passed}");
    assert!((passed - yellow).abs_diff(560) <= 2, "{yellow} of {passed}");
}
