//! Classes of packets, each with a rate, a mark and counters.

use super::*;

const RULES: [&str; 2] = [
    "permit udp from any to any 81 class video",
    "permit ip from any to any",
];

fn with_classes(policy: &mut PolicyRules) {
    policy.classes = vec![
        class("video", &[], 500, None),
        class("voice", &[EF, 40], 100, Some(40)),
    ];
    policy.mark = Some(0);
    policy.policer = Some(PolicerSettings {
        is_colour_aware: false,
        yellow_mark: None,
        ..policer()
    });
}

#[test]
fn a_class_has_a_rate_and_a_mark_of_its_own_within_that_of_the_session() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    world.compile(&RULES, with_classes);
    let voice = outcomes(&mut world, INDEX, HZ, &kilobyte(80, EF << 2));
    assert!(voice.passed.abs_diff(115) <= 1, "{voice:?}");
    assert_eq!(voice.dscps, [(40, voice.passed)].into());
    assert_eq!(
        voice.dropped,
        [("class-exceeded-down", 2000 - voice.passed)].into()
    );
    // a rule's class takes precedence over that of the code point, and the policy's mark is for those without one
    let video = outcomes(&mut world, INDEX, 2 * HZ, &kilobyte(81, EF << 2));
    assert!(video.passed.abs_diff(515) <= 1, "{video:?}");
    assert_eq!(video.dscps, [(0, video.passed)].into());
    // what is in no class has the rest of the session's rate: a burst of 100, and 1,000 a second
    let other = outcomes(&mut world, INDEX, 3 * HZ, &kilobyte(80, 10 << 2));
    assert!(other.passed.abs_diff(1100) <= 2, "{other:?}");
    assert_eq!(other.dscps, [(0, other.passed)].into());
    assert_eq!(
        other.dropped,
        [("rate-exceeded-down", 2000 - other.passed)].into()
    );
    let down = world
        .sessions
        .policy_state(INDEX, Direction::Down, &world.policies);
    let counts = |outcomes: &Outcomes| ClassCounts {
        passed: outcomes.passed as u64,
        yellow: 0,
        exceeded: 2000 - outcomes.passed as u64,
    };
    let down = down.unwrap();
    let classes = down.classes.unwrap();
    assert_eq!(classes[..2], [counts(&video), counts(&voice)]);
    assert_eq!(classes[2..], [ClassCounts::default(); 5]);
    assert_eq!(down.exceeded_packets, 2000 - other.passed as u64);
    assert!(world.sessions.is_whole(INDEX));
}

#[test]
fn a_changed_policy_is_no_burst_of_a_class_and_what_was_counted_stays_with_its_name() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    world.compile(&RULES, with_classes);
    let voice = kilobyte(80, EF << 2);
    let before = outcomes(&mut world, INDEX, HZ, &voice);
    world.compile(&["permit ip from any to any"], with_classes);
    let after = outcomes(&mut world, INDEX, 2 * HZ, &voice);
    assert!(after.passed.abs_diff(100) <= 1, "{after:?}");
    let counts = |world: &World| {
        let down = world
            .sessions
            .policy_state(INDEX, Direction::Down, &world.policies);
        down.unwrap()
            .classes
            .map(|classes| classes.map(|class| class.passed))
    };
    let both = (before.passed + after.passed) as u64;
    assert_eq!(counts(&world), Some([0, both, 0, 0, 0, 0, 0]));
    world.compile(&RULES, |policy| {
        with_classes(policy);
        policy.classes[1] = class("games", &[EF], 0, None);
    });
    assert_eq!(counts(&world), None, "no packet has met these classes");
    let games = outcomes(&mut world, INDEX, 3 * HZ, &voice);
    let of_games = games.passed as u64;
    assert_eq!(counts(&world), Some([0, of_games, 0, 0, 0, 0, 0]));
    assert!(
        games.passed.abs_diff(1100) <= 2,
        "a class without a policer has the session's rate"
    );
}

#[test]
fn each_of_seven_classes_has_a_rate_a_mark_and_counters_of_its_own() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let by_rule = [
        "permit udp from any to any 81 class class7",
        "permit ip from any to any",
    ];
    world.compile(&by_rule, with_all_classes);
    let mut exceeded = [0; MOST_CLASSES];
    for n in 1..=MOST_CLASSES {
        let frame = kilobyte(80, (8 * n as u8) << 2);
        let of_class = outcomes(&mut world, INDEX, n as u64 * HZ, &frame);
        assert!(
            of_class.passed.abs_diff(15 + 50 * n) <= 1,
            "{n}: {of_class:?}"
        );
        assert_eq!(of_class.dscps, [(2 * n as u8, of_class.passed)].into());
        exceeded[n - 1] = of_class.dropped["class-exceeded-down"] as u64;
    }
    let counts = |world: &World| {
        let down = (world.sessions).policy_state(INDEX, Direction::Down, &world.policies);
        down.unwrap()
            .classes
            .map(|all| all.map(|class| class.exceeded))
    };
    assert_eq!(counts(&world), Some(exceeded));
    // the same classes in another compilation: no burst, and the rule's class
    world.compile(&by_rule, |policy| {
        with_all_classes(policy);
        policy.mark = Some(1);
    });
    let last = outcomes(&mut world, INDEX, 8 * HZ, &kilobyte(81, 0));
    assert!(last.passed.abs_diff(350) <= 1, "{last:?}");
    exceeded[6] += last.dropped["class-exceeded-down"] as u64;
    assert_eq!(counts(&world), Some(exceeded));
}

#[test]
fn a_session_has_a_further_line_only_while_its_last_policy_has_more_than_three_classes() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let classes = |n: usize| {
        move |policy: &mut PolicyRules| {
            with_all_classes(policy);
            policy.classes.truncate(n);
        }
    };
    let frame = kilobyte(80, 8 << 2);
    for (n, further) in [(3, 0), (4, 1), (7, 1), (3, 0), (5, 1)] {
        world.compile(&["permit ip from any to any"], classes(n));
        outcomes(&mut world, INDEX, n as u64 * HZ, &frame);
        assert_eq!(world.sessions.further_class_lines(), further, "{n} classes");
    }
    // a second session has a line of its own, and gives it back
    let mut second = entry(PacketSettings::with_mtu(1492), policies());
    (second.index, second.pppoe_session_id) = (SessionIndex(2), 8);
    world.sessions.set(second, Sources::default(), 0);
    outcomes(&mut world, SessionIndex(2), 9 * HZ, &frame);
    assert_eq!(world.sessions.further_class_lines(), 2);
    world.sessions.remove(SessionIndex(2)).unwrap();
    assert_eq!(world.sessions.further_class_lines(), 1);
    // without a policy it keeps the tokens of its last one
    world.set(PacketSettings::with_mtu(1492));
    assert_eq!(world.sessions.further_class_lines(), 1);
    world.sessions.remove(INDEX).unwrap();
    assert_eq!(world.sessions.further_class_lines(), 0);
}

#[test]
fn what_the_sessions_rate_drops_takes_no_tokens_of_the_class() {
    let mut world = World::new(PacketSettings::with_mtu(1492), policies());
    let narrow = |policy: &mut PolicyRules| {
        with_classes(policy);
        policy.classes = vec![class("voice", &[EF], 100, None)];
        policy.policer = Some(PolicerSettings {
            meter: MeterSettings::SingleRate {
                cir: Rate::kbps(80),
                cbs: 1000,
                ebs: 0,
            },
            ..policer()
        });
    };
    world.compile(&["permit ip from any to any"], narrow);
    let voice = outcomes(&mut world, INDEX, HZ, &kilobyte(80, EF << 2));
    // ten a second of the session, and the class, which has tokens for a hundred, drops none
    assert!(voice.passed.abs_diff(11) <= 1, "{voice:?}");
    assert_eq!(
        voice.dropped,
        [("rate-exceeded-down", 2000 - voice.passed)].into()
    );
}

/// Nothing that a subscriber sends waits, so what keeps the rate of a queue there is a policer.
#[test]
fn the_rate_of_a_queue_polices_what_the_subscriber_sends_and_a_policer_of_the_class_comes_first() {
    let both = Policies {
        up: Some(number()),
        down: Some(number()),
    };
    for (policer, overhead, wanted) in [
        (0, Overhead::IP, 115),
        (0, Overhead::octets(1000), 57),
        (50, Overhead::IP, 65),
    ] {
        let mut world = World::new(PacketSettings::with_mtu(1492), both);
        world.compile(&[], |policy| {
            policy.unmatched_pass = true;
            policy.classes = vec![class("bulk", &[0], policer, None)];
            let mut classes = vec![QueueSettings::default(); 2];
            classes[1].rate = Rate::new(800);
            policy.queues = Some(QueueRules {
                profile: QueueProfile { classes, overhead },
                weight: 1,
            });
        });
        let times = || (0..2000).map(|n| HZ + n * HZ / 2000);
        let passed = times().filter(|now| world.up(1000, *now).is_ok()).count();
        assert!(passed.abs_diff(wanted) <= 2, "{passed} of {wanted}");
        let state = (world.sessions).policy_state(INDEX, Direction::Up, &world.policies);
        let bulk = state.unwrap().classes.unwrap()[0];
        let counted = (bulk.passed, bulk.exceeded);
        assert_eq!(counted, (passed as u64, 2000 - passed as u64));
        let queued = times().filter(|now| world.down(1000, *now).is_ok()).count();
        let all = if policer == 0 { 2000 } else { wanted };
        assert!(queued.abs_diff(all) <= 2, "{queued} of {all}");
    }
}
