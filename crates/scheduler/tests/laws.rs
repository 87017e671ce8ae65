//! What the scheduler promises, each promise alone.
mod common;
use common::*;
use policy::{Overhead, Rate};
use scheduler::*;

/// The rate of a subscriber, of an aggregate and of the port: within 1 % in a second, and within 5 % in each tenth of one.
#[test]
fn each_level_keeps_its_rate() {
    const WIRE: u64 = 24;
    for kbps in [2_000, 50_000, 1_000_000] {
        for octets in [64, 1500, 9000] {
            for level in 0..4 {
                let at = |of: u64| (level == of).then_some(kbps);
                let mut tree = tree(at(0));
                let site = aggregate(&mut tree, PORT, at(1));
                let vlan = aggregate(&mut tree, site, at(2));
                let profile = tree.add_profile(&QueueProfile {
                    classes: vec![QueueSettings {
                        limit: 1 << 24,
                        management: Management::TailDrop,
                        ..Default::default()
                    }],
                    ..plain()
                });
                let home = tree.add(vlan, &home(profile, at(3)));
                let sources = [Source::new(home, octets)];
                let mut sent = vec![0; 21];
                let mut now = 0;
                // packets for a tenth of a second at any time
                let least = (at_rate(kbps, MS) as u32).max(4 * octets);
                while now < 2_100 * MS {
                    while tree.state(home, 0).octets < least {
                        tree.enqueue(home, 0, sources[0].frame(now), now).unwrap();
                    }
                    tree.dequeue(
                        now,
                        usize::MAX,
                        &mut |_, _| sent[(now / MS / 100) as usize] += 1,
                        &mut |_, _| (),
                    );
                    now += ROUND;
                }
                let charged =
                    |packets: u64| packets * (u64::from(octets) + if level < 3 { WIRE } else { 0 });
                let wanted = at_rate(kbps, 1000 * MS);
                let second: u64 = sent[1..11].iter().sum();
                let what = format!("{kbps} kbit/s, {octets} octets, level {level}: {sent:?}");
                assert!(is_near(charged(second), wanted, 10), "{what}");
                for tenth in &sent[1..] {
                    let (found, wanted) = (charged(*tenth), wanted / 10);
                    let packet = u64::from(octets);
                    assert!(found.abs_diff(wanted) <= wanted / 20 + packet, "{what}");
                }
            }
        }
    }
}

#[test]
fn weights_divide_what_is_short_whatever_the_number_and_size_of_packets() {
    let mut tree = tree(Some(100_000));
    let profile = tree.add_profile(&plain());
    let weights = [1, 2, 5, 10, 20];
    let sources = weights.map(|weight| {
        let settings = SubscriberSettings {
            weight,
            ..home(profile, None)
        };
        // the heaviest has the smallest packets
        Source::new(tree.add(PORT, &settings), 1500 - 70 * u32::from(weight))
    });
    octets(&mut tree, &sources, (0, 100 * MS));
    let sent = octets(&mut tree, &sources, (100 * MS, 2_100 * MS));
    let wire: Vec<u64> = sent
        .iter()
        .zip(&sources)
        .map(|(sent, source)| sent / u64::from(source.octets) * u64::from(source.octets + 24))
        .collect();
    let all = at_rate(100_000, 2_000 * MS);
    for (sent, weight) in wire.iter().zip(weights) {
        let wanted = all * u64::from(weight) / 38;
        assert!(
            is_near(*sent, wanted, 30),
            "{weight}: {sent} of {wanted}, {wire:?}"
        );
    }
}

/// Homes by themselves, with their rates in the order of their numbers.
fn kbps_of(tree: &mut Tree, sources: &[Source], from: u64) -> Vec<u64> {
    octets(tree, sources, (from, from + 100 * MS));
    let sent = octets(tree, sources, (from + 100 * MS, from + 1_100 * MS));
    sent.iter().map(|sent| sent / 125).collect()
}

/// A home has its part of the port whether it is alone in its access node or VLAN, or one of many, also of what is guaranteed. It takes its
/// part along when it moves or changes, and leaves none when it goes.
#[test]
fn a_home_has_as_much_however_many_are_beside_it_in_its_aggregate() {
    for committed in [None, Some(Rate::kbps(50_000))] {
        for is_below in [false, true] {
            let mut tree = tree(Some(50_000));
            let parent = match is_below {
                true => aggregate(&mut tree, PORT, None),
                false => PORT,
            };
            let sites = [(); 2].map(|()| aggregate(&mut tree, parent, Some(45_000)));
            let profile = tree.add_profile(&plain());
            let settings = SubscriberSettings {
                committed,
                ..home(profile, None)
            };
            let homes = [0, 1, 1, 1, 1].map(|at| tree.add(sites[at], &settings));
            let mut sources = homes.map(|home| Source::new(home, 1000)).to_vec();
            let mut from = 0;
            let mut expect = |tree: &mut Tree, sources: &[Source], parts: &[u64]| {
                let sent = kbps_of(tree, sources, from);
                from += 1_100 * MS;
                let all = 50_000 * 1000 / 1024 / parts.iter().sum::<u64>();
                for (sent, part) in sent.iter().zip(parts) {
                    let what = format!("{committed:?} {is_below} {parts:?}: {sent}");
                    assert!(sent.abs_diff(all * part) <= all * part / 20, "{what}");
                }
            };
            expect(&mut tree, &sources, &[1, 1, 1, 1, 1]);
            tree.place(homes[4], sites[0]);
            expect(&mut tree, &sources, &[1, 1, 1, 1, 1]);
            let heavy = SubscriberSettings {
                weight: 3,
                ..settings
            };
            tree.set(homes[0], &heavy);
            expect(&mut tree, &sources, &[3, 1, 1, 1, 1]);
            tree.set(homes[0], &settings);
            tree.remove(sources.remove(1).to, &mut |_| ());
            expect(&mut tree, &sources, &[1, 1, 1, 1]);
        }
    }
}

/// Shares are exact also where the weights are hundreds of thousands, by packets of any size.
#[test]
fn an_aggregate_of_many_heavy_homes_has_its_share() {
    for octets in [60, 1500] {
        let mut tree = tree(Some(1_000_000));
        let profile = tree.add_profile(&plain());
        let heavy = SubscriberSettings {
            weight: 1000,
            ..home(profile, None)
        };
        let sites = [200, 300].map(|homes| {
            let site = aggregate(&mut tree, PORT, None);
            let first = tree.add(site, &heavy);
            (1..homes).for_each(|_| {
                tree.add(site, &heavy);
            });
            Source::new(first, octets)
        });
        let sent = kbps_of(&mut tree, &sites, 0);
        let (found, wanted) = (sent[0], (sent[0] + sent[1]) * 2 / 5);
        assert!(found.abs_diff(wanted) <= wanted / 20, "{octets}: {sent:?}");
    }
}

/// A home gets no more of what is short by having more flows, nor do its neighbours by being many.
#[test]
fn a_home_with_a_thousand_flows_has_as_much_as_each_of_64_with_one() {
    let mut tree = tree(None);
    let site = aggregate(&mut tree, PORT, Some(65_000));
    let profile = tree.add_profile(&managed(FQ_CODEL));
    let homes: Vec<Source> = (0..65)
        .map(|_| Source::new(tree.add(site, &home(profile, None)), 1000))
        .collect();
    let (mut flow, mut sent) = (0, [0u64; 65]);
    for now in (0..3_000 * MS).step_by(ROUND as usize) {
        for (at, source) in homes.iter().enumerate() {
            while tree.state(source.to, 0).octets < 64_000 {
                let mut frame = source.frame(now);
                if at == 0 {
                    (frame.flow, flow) = (flow, (flow + 1) % 1000);
                }
                tree.enqueue(source.to, 0, frame, now).unwrap();
            }
        }
        let leave = &mut |home: SubscriberIndex, frame: Frame| {
            let at = homes.iter().position(|source| source.to == home).unwrap();
            sent[at] += u64::from(frame.octets) * u64::from(now >= 1_000 * MS);
        };
        tree.dequeue(now, usize::MAX, leave, &mut |_, _| ());
    }
    let each = at_rate(1_000, 2_000 * MS) * 1000 / 1024;
    for sent in sent {
        assert!(sent.abs_diff(each) <= each / 20, "{sent} of {each}");
    }
}

/// As well as what a port has, although all have what they want until then.
#[test]
fn weights_divide_what_the_caller_takes() {
    let mut tree = tree(None);
    let profile = tree.add_profile(&plain());
    let homes = [1, 3].map(|weight| {
        let settings = SubscriberSettings {
            weight,
            ..home(profile, Some(5_000))
        };
        [(); 200].map(|()| tree.add(PORT, &settings))
    });
    let (mut sent, mut coming) = ([0; 2], homes.as_flattened().repeat(4));
    for now in (0..1_000 * MS).step_by(ROUND as usize) {
        for home in coming.drain(..) {
            let frame = Source::new(home, 1000).frame(now);
            tree.enqueue(home, 0, frame, now).unwrap();
        }
        // 800 of 2,000 Mbit/s
        let most = if now < 100 * MS { usize::MAX } else { 1 };
        let counts = u64::from(now >= 200 * MS);
        let mut leave = |home, frame: Frame| {
            coming.push(home);
            sent[usize::from(homes[1].contains(&home))] += counts * u64::from(frame.octets);
        };
        tree.dequeue(now, most, &mut leave, &mut |_, _| ());
    }
    assert!(is_near(sent[1], 3 * sent[0], 30), "{sent:?}");
}

#[test]
fn what_one_does_not_use_others_have() {
    let mut tree = tree(Some(100_000));
    let sites = [(); 2].map(|()| aggregate(&mut tree, PORT, Some(80_000)));
    let profile = tree.add_profile(&plain());
    let alone = Source::new(tree.add(sites[0], &home(profile, Some(10_000))), 1000);
    let greedy = [(); 3].map(|()| Source::new(tree.add(sites[1], &home(profile, None)), 1000));
    let sources = [alone, greedy[0], greedy[1], greedy[2]];
    octets(&mut tree, &sources, (0, 100 * MS));
    let sent = octets(&mut tree, &sources, (100 * MS, 1_100 * MS));
    // its own rate, and the others what is left below the rate of their site
    assert!(
        is_near(sent[0], at_rate(10_000, 1_000 * MS), 10),
        "{sent:?}"
    );
    for sent in &sent[1..] {
        assert!(
            is_near(*sent, at_rate(80_000, 1_000 * MS) * 1000 / 1024 / 3, 20),
            "{sent}"
        );
    }
    // and the whole of it once it is alone
    let sent = octets(&mut tree, &sources[1..2], (1_200 * MS, 2_200 * MS));
    assert!(
        is_near(sent[0], at_rate(80_000, 1_000 * MS) * 1000 / 1024, 20),
        "{sent:?}"
    );
}

#[test]
fn a_committed_rate_is_kept_when_ten_times_as_much_is_asked_for() {
    let mut tree = tree(Some(1_000_000));
    let site = aggregate(&mut tree, PORT, Some(100_000));
    let profile = tree.add_profile(&plain());
    let add = |tree: &mut Tree, committed: Option<u64>| {
        let committed = committed.map(Rate::kbps);
        let settings = SubscriberSettings {
            committed,
            ..home(profile, Some(40_000))
        };
        Source::new(tree.add(site, &settings), 1200)
    };
    let mut sources = vec![add(&mut tree, Some(20_000)), add(&mut tree, Some(5_000))];
    sources.extend((0..23).map(|_| add(&mut tree, None)));
    octets(&mut tree, &sources, (0, 200 * MS));
    let sent = octets(&mut tree, &sources, (200 * MS, 1_200 * MS));
    // 25 homes share what is left beside 25 Mbit/s
    let rest = (at_rate(100_000, 1_000 * MS) * 1200 / 1224 - at_rate(25_000, 1_000 * MS)) / 25;
    let committed = [20_000, 5_000].map(|kbps| at_rate(kbps, 1_000 * MS) + rest);
    for (sent, wanted) in sent.iter().zip(committed.into_iter().chain([rest; 23])) {
        assert!(is_near(*sent, wanted, 30), "{sent} of {wanted}");
    }
}

#[test]
fn classes_have_their_weights_and_strict_ones_come_first_up_to_their_rate() {
    let mut tree = tree(None);
    let mut settings = plain_of(4);
    settings.classes[0] = QueueSettings {
        discipline: Discipline::Strict,
        rate: Some(Rate::kbps(4_000)),
        ..settings.classes[0]
    };
    settings.classes[1].discipline = Discipline::Weighted(5);
    settings.classes[2].discipline = Discipline::Weighted(10);
    settings.classes[3] = QueueSettings {
        rate: Some(Rate::kbps(1_000)),
        ..settings.classes[3]
    };
    let profile = tree.add_profile(&settings);
    let home = tree.add(PORT, &home(profile, Some(20_000)));
    let sources: Vec<Source> = (0..4)
        .map(|class| Source {
            class,
            ..Source::new(home, 500 + 100 * class as u32)
        })
        .collect();
    octets(&mut tree, &sources, (0, 200 * MS));
    let sent = octets(&mut tree, &sources, (200 * MS, 2_200 * MS));
    // the last one cannot have its 1/16 of 16 Mbit/s, as its rate is 1 Mbit/s
    for (sent, kbps) in sent.iter().zip([4_000, 5_000, 10_000, 1_000]) {
        assert!(
            is_near(*sent, at_rate(kbps, 2_000 * MS), 30),
            "{kbps}: {sent:?}"
        );
    }
}

/// Behind one packet of the class that has it, and what a worker's round and a slot of the wheel take.
#[test]
fn a_packet_of_a_strict_class_waits_for_one_packet_of_the_others_at_most() {
    let mut tree = tree(Some(100_000));
    let site = aggregate(&mut tree, PORT, None);
    let mut settings = plain();
    settings.classes[0].discipline = Discipline::Strict;
    let profile = tree.add_profile(&settings);
    let homes: Vec<SubscriberIndex> = (0..200)
        .map(|_| tree.add(site, &home(profile, Some(20_000))))
        .collect();
    let sources: Vec<Source> = homes
        .iter()
        .map(|home| Source {
            class: 3,
            ..Source::new(*home, 1500)
        })
        .collect();
    let mut longest = 0;
    for n in 0..500u64 {
        let (from, to) = (n * MS, (n + 1) * MS);
        let voice = Source::new(homes[n as usize % 200], 200);
        tree.enqueue(voice.to, 0, voice.frame(from), from).unwrap();
        pass(&mut tree, &sources, (from, to), |now, frame| {
            if frame.class == 0 {
                longest = longest.max(now - frame.came);
            }
        });
    }
    // 1,500 octets are 123 microseconds at the port's rate, which may be 200 behind, and 610 at that of the home, which may have begun one
    assert!(longest > 0 && longest < 800_000, "{longest} ns");
    assert_eq!(tree.state(homes[0], 0).octets, 0);
}

#[test]
fn a_home_with_many_packets_takes_nothing_from_one_with_few() {
    let mut tree = tree(Some(10_000));
    let profile = tree.add_profile(&plain());
    let [flood, quiet] = [(); 2].map(|()| tree.add(PORT, &home(profile, None)));
    let (mut now, mut sent, mut waited) = (0, 0, 0);
    while now < 1_000 * MS {
        // a hundred times what the port can send, and 2 Mbit/s
        for _ in 0..10 {
            let _ = tree.enqueue(flood, 0, Source::new(flood, 1250).frame(now), now);
        }
        if now % (5 * MS) == 0 {
            tree.enqueue(quiet, 0, Source::new(quiet, 1250).frame(now), now)
                .unwrap();
        }
        tree.dequeue(
            now,
            usize::MAX,
            &mut |_, frame| {
                if frame.to == quiet {
                    sent += 1;
                    waited = waited.max(now - frame.came);
                }
            },
            &mut |_, _| (),
        );
        now += ROUND;
    }
    assert_eq!(sent, 200);
    assert!(waited < 3 * MS, "{waited}");
    let state = tree.state(flood, 0);
    assert!(state.tail_drops > 100_000 && state.most_octets <= 256 << 10);
}

#[test]
fn overhead_is_charged_to_the_subscriber_and_headers_are_not() {
    for (overhead, header, charged) in [
        (Overhead::IP, 0, 1000),
        (Overhead::IP, 30, 970),
        (Overhead::octets(38), 14, 1024),
        (Overhead::atm(10), 0, 22 * 53),
    ] {
        let mut tree = tree(None);
        let profile = tree.add_profile(&QueueProfile {
            overhead,
            ..plain()
        });
        let settings = SubscriberSettings {
            header,
            ..home(profile, Some(10_000))
        };
        let source = Source::new(tree.add(PORT, &settings), 1000);
        octets(&mut tree, &[source], (0, 100 * MS));
        let sent = octets(&mut tree, &[source], (100 * MS, 1_100 * MS))[0];
        let wanted = at_rate(10_000, 1_000 * MS) * 1000 / charged;
        assert!(is_near(sent, wanted, 10), "{charged}: {sent}");
    }
}

#[test]
fn a_new_rate_holds_at_once_and_drops_nothing() {
    let mut tree = tree(None);
    let site = aggregate(&mut tree, PORT, Some(50_000));
    let profile = tree.add_profile(&plain());
    let source = Source::new(tree.add(site, &home(profile, Some(10_000))), 1000);
    let sources = [source];
    octets(&mut tree, &sources, (0, 100 * MS));
    let mut from = 100 * MS;
    let mut expect = |tree: &mut Tree, kbps: u64| {
        let sent = octets(tree, &sources, (from, from + 500 * MS))[0];
        from += 500 * MS;
        assert!(is_near(sent, at_rate(kbps, 500 * MS), 15), "{kbps}: {sent}");
    };
    expect(&mut tree, 10_000);
    tree.set(source.to, &home(profile, Some(30_000)));
    expect(&mut tree, 30_000);
    tree.set(source.to, &home(profile, Some(3_000)));
    expect(&mut tree, 3_000);
    tree.set(source.to, &home(profile, None));
    expect(&mut tree, 50_000 * 1000 / 1024);
    tree.set_rate(site, Some(Rate::kbps(20_000)));
    expect(&mut tree, 20_000 * 1000 / 1024);
    assert_eq!(tree.state(source.to, 0).tail_drops, 0);
}

#[test]
fn a_faster_rate_does_not_wait_for_the_end_of_a_slow_packet() {
    let mut tree = tree(None);
    let profile = tree.add_profile(&plain());
    // a packet takes 1.5 s
    let source = Source::new(tree.add(PORT, &home(profile, Some(8))), 1500);
    octets(&mut tree, &[source], (0, 100 * MS));
    assert_eq!(octets(&mut tree, &[source], (100 * MS, 200 * MS)), [0]);
    tree.set(source.to, &home(profile, Some(12_000)));
    let sent = octets(&mut tree, &[source], (200 * MS, 1_200 * MS))[0];
    // the wheel looks again after 70 ms at the latest
    assert!(sent > at_rate(12_000, 900 * MS), "{sent}");
}

#[test]
fn codel_keeps_the_delay_near_its_target_and_a_limit_alone_does_not() {
    let longest = |management| {
        let mut tree = tree(None);
        let mut settings = plain();
        settings.classes[0].management = management;
        settings.classes[0].limit = 1 << 20;
        let profile = tree.add_profile(&settings);
        let home = tree.add(PORT, &home(profile, Some(20_000)));
        // A sender that sends less after each drop, and slowly more without one, as TCP does: packets a second.
        let (mut rate, mut now, mut due) = (1000.0f64, 0, 0.0);
        let (mut waited, mut left) = (Vec::new(), 0u64);
        while now < 20_000 * MS {
            due += rate * ROUND as f64 / 1e9;
            while due >= 1.0 {
                due -= 1.0;
                if tree
                    .enqueue(home, 0, Source::new(home, 1250).frame(now), now)
                    .is_err()
                {
                    rate *= 0.7;
                }
            }
            let mut dropped = 0;
            tree.dequeue(
                now,
                usize::MAX,
                &mut |_, frame| {
                    left += 1;
                    if now > 10_000 * MS {
                        waited.push(now - frame.came);
                    }
                },
                &mut |_, _| dropped += 1,
            );
            if dropped > 0 {
                rate *= 0.7;
            }
            rate += 10.0 * ROUND as f64 / MS as f64;
            now += ROUND;
        }
        waited.sort_unstable();
        (waited[waited.len() / 2] / MS, left)
    };
    let (with, left) = longest(CODEL);
    let (without, all) = longest(Management::TailDrop);
    assert!(
        with <= 25 && without >= 100,
        "{with} ms with CoDel, {without} ms without"
    );
    assert!(left > all * 8 / 10, "{left} of {all} packets");
}

#[test]
fn limits_and_unknown_subscribers_are_refused_and_counted() {
    let mut tree: Tree = Scheduler::new(Settings {
        hz: HZ,
        rate: Some(Rate::kbps(1)),
        most_packets: 6,
        key: 7,
    });
    let mut settings = plain();
    settings.classes[0].limit = 2000;
    let profile = tree.add_profile(&settings);
    let home = tree.add(PORT, &home(profile, None));
    let mut put = |class, octets| {
        tree.enqueue(home, class, Source::new(home, octets).frame(0), 0)
            .map_err(|(refused, _)| refused)
    };
    assert_eq!(put(0, 9000), Ok(()), "a single packet always may wait");
    assert_eq!(put(0, 100), Err(Refused::ClassFull));
    for _ in 0..2 {
        assert_eq!(put(1, 100), Ok(()));
    }
    assert_eq!(put(1, 100), Err(Refused::SubscriberFull));
    assert_eq!(put(CLASSES, 100), Err(Refused::Unknown));
    assert_eq!(tree.state(home, 0).tail_drops, 1);
    let stranger = SubscriberIndex(7);
    let frame = Source::new(stranger, 100).frame(0);
    assert!(matches!(
        tree.enqueue(stranger, 0, frame, 0),
        Err((Refused::Unknown, _))
    ));
    let mut gone = 0;
    tree.remove(home, &mut |_| gone += 1);
    assert_eq!((gone, tree.waiting()), (3, 0));
    assert!(matches!(
        tree.enqueue(home, 0, frame, 0),
        Err((Refused::Unknown, _))
    ));
}

#[test]
fn what_leaves_at_once_is_charged_to_each_rate_and_overtakes_nobody() {
    // the home alone, its site and the port: each of them may be what limits it
    for kbps in [
        [8_000, 100_000, 100_000],
        [100_000, 8_000, 100_000],
        [100_000, 100_000, 8_000],
    ] {
        let mut tree = tree(Some(kbps[2]));
        let profile = tree.add_profile(&QueueProfile::default());
        let site = aggregate(&mut tree, PORT, Some(kbps[1]));
        let source = Source::new(tree.add(site, &home(profile, Some(kbps[0]))), 976);
        let (mut at_once, mut later, mut last) = (0, 0, 0);
        for n in 0..4_800 {
            let now = n * MS / 2;
            let mut leave = |frame: Frame| {
                assert!(frame.came >= last, "{} after {last}", frame.came);
                last = frame.came;
            };
            tree.dequeue(
                now,
                64,
                &mut |_, frame| (later += 1, leave(frame)).0,
                &mut |_, _| (),
            );
            // twice the rate for a while, and then half of it
            if n < 200 || n % 4 == 0 {
                let left = tree.offer(source.to, 0, source.frame(now), now);
                if let Some(frame) = left.unwrap() {
                    assert_eq!(tree.waiting(), 0);
                    leave(frame);
                    at_once += 1;
                }
            }
            let most = 3 + now * kbps.iter().min().unwrap() / 8 / 976 / MS;
            assert!(at_once + later <= most, "{at_once} and {later} of {most}");
        }
        assert!(at_once > 900 && later > 190, "{at_once} and {later}");
        assert_eq!(tree.state(source.to, 0).sent, at_once + later);
    }
}

#[test]
fn a_packet_does_not_leave_at_once_if_another_home_waits_for_the_same() {
    let mut tree = tree(Some(8_000));
    let profile = tree.add_profile(&plain());
    let [one, other] = [0; 2].map(|_| Source::new(tree.add(PORT, &home(profile, None)), 976));
    let mut offer = |source: Source, now| {
        let left = tree.offer(source.to, 0, source.frame(now), now);
        left.unwrap().is_some()
    };
    assert!(offer(one, MS));
    assert!(!offer(one, MS + 1), "the port has to wait");
    assert!(!offer(other, 10 * MS), "one of the port's packets waits");
    assert_eq!(tree.waiting(), 2);
}

/// A class that has reached its rate, and what waits for it.
fn with_limited_voice(tree: &mut Tree, kbps: u64) -> ProfileIndex {
    let mut settings = plain();
    settings.classes[0] = QueueSettings {
        discipline: Discipline::Strict,
        rate: Some(Rate::kbps(kbps)),
        ..settings.classes[0]
    };
    tree.add_profile(&settings)
}

/// It waits for its rate and for its committed one, and both times come while the worker sleeps.
#[test]
fn a_home_that_has_waited_for_two_reasons_sends_once() {
    for sleeps in 200..220 {
        let mut tree = tree(None);
        let profile = tree.add_profile(&plain());
        // short, so there is a share to wait for
        let site = aggregate(&mut tree, PORT, Some(1_500));
        let committed = SubscriberSettings {
            committed: Some(Rate::kbps(200)),
            ..home(profile, Some(1_000))
        };
        let one = Source::new(tree.add(site, &committed), 1250);
        let other = Source::new(tree.add(site, &home(profile, None)), 1250);
        octets(&mut tree, &[one, other], (0, sleeps * MS));
        tree.remove(other.to, &mut |_| ());
        tree.set_rate(site, None);
        let mut left = 0;
        tree.dequeue(400 * MS, usize::MAX, &mut |_, _| left += 1, &mut |_, _| ());
        assert_eq!(left, 1, "10 ms each");
    }
}

#[test]
fn a_class_that_has_reached_its_rate_does_not_delay_the_others() {
    let mut tree = tree(None);
    let profile = with_limited_voice(&mut tree, 64);
    let home = tree.add(PORT, &home(profile, Some(10_000)));
    let voice = Source::new(home, 1250);
    let rest = Source { class: 3, ..voice };
    for _ in 0..4 {
        tree.enqueue(home, 0, voice.frame(0), 0).unwrap();
    }
    pass(&mut tree, &[], (0, 5 * MS), |_, _| ());
    assert_eq!(tree.state(home, 0).octets, 3 * 1250, "156 ms each");
    for _ in 0..20 {
        tree.enqueue(home, 3, rest.frame(5 * MS), 5 * MS).unwrap();
    }
    let mut last = 0;
    pass(&mut tree, &[], (5 * MS, 100 * MS), |now, frame| {
        assert_eq!(frame.class, 3);
        last = now;
    });
    // a packet is a millisecond
    assert!(last > 20 * MS && last < 26 * MS, "{last}");
}

/// Also if its time has come while the worker slept, and others wait for their turn already.
#[test]
fn a_strict_class_whose_time_has_come_is_before_all_that_wait() {
    let mut tree = tree(Some(1_000));
    let profile = with_limited_voice(&mut tree, 100);
    let [one, other] = [(); 2].map(|()| tree.add(PORT, &home(profile, None)));
    let many = Source::new(other, 1226);
    for _ in 0..6 {
        // 10 ms each, the first at its class's rate and the second at the port's
        tree.enqueue(one, 0, Source::new(one, 125).frame(0), 0)
            .unwrap();
        tree.enqueue(other, 3, many.frame(0), 0).unwrap();
    }
    let mut left = Vec::new();
    for now in (0..130 * MS).step_by(11 * MS as usize) {
        tree.dequeue(now, 1, &mut |home, _| left.push(home), &mut |_, _| ());
    }
    assert_eq!(left, [[one; 6], [other; 6]].as_flattened());
}

#[test]
fn a_strict_class_has_its_rate_though_its_home_waits_for_its_share() {
    let mut tree = tree(Some(10_000));
    let profile = with_limited_voice(&mut tree, 100);
    let homes: Vec<SubscriberIndex> = (0..100)
        .map(|_| tree.add(PORT, &home(profile, Some(5_000))))
        .collect();
    let rest = |home: &SubscriberIndex| Source {
        class: 3,
        ..Source::new(*home, 1226)
    };
    let mut sources: Vec<Source> = homes.iter().map(rest).collect();
    let voice = Source::new(homes[0], 125);
    sources.push(voice);
    octets(&mut tree, &sources, (0, 500 * MS));
    // its share alone is a hundredth of what it has with the other 99 homes
    let sent = octets(&mut tree, &sources, (500 * MS, 2_500 * MS));
    assert!(
        is_near(sent[100], at_rate(100, 2_000 * MS), 30),
        "{}",
        sent[100]
    );
}

/// Whatever its own rate is, which may be above that of the line.
#[test]
fn strict_classes_leave_the_others_a_ninth_and_use_it_where_there_are_none() {
    for (classes, strict) in [(2, 1), (4, 2), (CLASSES, 3)] {
        let mut tree = tree(None);
        let mut settings = plain_of(classes);
        for class in &mut settings.classes[..strict] {
            class.discipline = Discipline::Strict;
            class.rate = Some(Rate::kbps(50_000));
        }
        let profile = tree.add_profile(&settings);
        let home = tree.add(PORT, &home(profile, Some(9_000)));
        let of = |class| Source {
            class,
            ..Source::new(home, 1000)
        };
        let sources: Vec<Source> = (0..classes).map(of).collect();
        octets(&mut tree, &sources, (0, 2_000 * MS));
        let sent = octets(&mut tree, &sources, (2_000 * MS, 4_000 * MS));
        let (first, others) = (sent[0], sent[strict..].iter().sum());
        assert!(is_near(first, at_rate(8_000, 2_000 * MS), 30), "{sent:?}");
        assert!(is_near(others, at_rate(1_000, 2_000 * MS), 30), "{sent:?}");

        octets(&mut tree, &sources[..1], (4_000 * MS, 14_000 * MS));
        let sent = octets(&mut tree, &sources[..1], (14_000 * MS, 16_000 * MS));
        assert!(is_near(sent[0], at_rate(9_000, 2_000 * MS), 30), "{sent:?}");
    }
}

/// A burst that is no more than the line's rate in the long run is not mixed with other packets.
#[test]
fn a_burst_of_a_strict_class_comes_first_as_a_whole() {
    let mut tree = tree(None);
    let mut settings = plain();
    settings.classes[0].discipline = Discipline::Strict;
    settings.classes[0].rate = Some(Rate::kbps(50_000));
    let profile = tree.add_profile(&settings);
    let home = tree.add(PORT, &home(profile, Some(10_000)));
    let rest = Source {
        class: 3,
        ..Source::new(home, 1250)
    };
    let mut longest = 0;
    for n in 10..30 {
        let (from, to) = (n * 100 * MS, (n + 1) * 100 * MS);
        let voice = Source::new(home, 1250);
        for _ in 0..50 {
            tree.enqueue(home, 0, voice.frame(from), from).unwrap();
        }
        pass(&mut tree, &[rest], (from, to), |now, frame| {
            if frame.class == 0 {
                longest = longest.max(now - frame.came);
            }
        });
    }
    // each takes a millisecond; one other packet may have begun, and the line may be half a millisecond ahead
    assert!((49 * MS..52 * MS).contains(&longest), "{longest}");
}

/// A strict class that has had its part waits for its turn no longer than it has to, though its home waits for a share of the port.
#[test]
fn a_strict_class_that_left_something_to_others_is_guaranteed_again() {
    let mut tree = tree(Some(100_000));
    let mut settings = plain();
    settings.classes[0].discipline = Discipline::Strict;
    settings.classes[0].rate = Some(Rate::kbps(50_000));
    let profile = tree.add_profile(&settings);
    let homes: Vec<SubscriberIndex> = (0..100)
        .map(|_| tree.add(PORT, &home(profile, Some(9_000))))
        .collect();
    let of = |home: &SubscriberIndex, class| Source {
        class,
        ..Source::new(*home, 1000)
    };
    let mut sources: Vec<Source> = homes.iter().map(|home| of(home, 3)).collect();
    sources.push(of(&homes[0], 0));
    octets(&mut tree, &sources, (0, 2_000 * MS));
    let sent = octets(&mut tree, &sources, (2_000 * MS, 4_000 * MS));
    assert!(
        is_near(sent[100], at_rate(8_000, 2_000 * MS), 50),
        "{}",
        sent[100]
    );
}

#[test]
fn what_was_sent_in_a_strict_class_long_ago_costs_no_share_now() {
    let mut tree = tree(Some(20_000));
    let profile = with_limited_voice(&mut tree, 15_000);
    let [first, second] = [(); 2].map(|()| tree.add(PORT, &home(profile, None)));
    octets(&mut tree, &[Source::new(first, 1000)], (0, 5_000 * MS));
    let sources = [first, second].map(|home| Source {
        class: 3,
        ..Source::new(home, 1000)
    });
    let sent = octets(&mut tree, &sources, (5_000 * MS, 6_000 * MS));
    assert!(is_near(sent[0], sent[1], 50), "{sent:?}");
}

/// A year's: whatever has to be caught up with slot by slot would take for ever.
#[test]
fn a_long_time_without_packets_costs_nothing() {
    let mut tree = tree(None);
    let profile = tree.add_profile(&plain());
    let homes: Vec<SubscriberIndex> = (0..100)
        .map(|_| tree.add(PORT, &home(profile, Some(1_000))))
        .collect();
    let sources: Vec<Source> = homes.iter().map(|home| Source::new(*home, 1000)).collect();
    for year in 0..3 {
        let from = year * 365 * 86_400 * 1_000 * MS;
        // nobody has asked for packets in the meantime, as none waited
        for source in sources.iter().cycle().take(400) {
            tree.offer(source.to, 0, source.frame(from), from).unwrap();
        }
        let sent = octets(&mut tree, &sources, (from, from + 100 * MS));
        for sent in sent {
            assert!(is_near(sent, at_rate(1_000, 100 * MS), 30), "{sent}");
        }
        while let Some(at) = tree.deadline() {
            tree.dequeue(at, usize::MAX, &mut |_, _| (), &mut |_, _| ());
        }
    }
}

/// However much was sent in the others since its last one: packets that are far apart are not late, whenever they come.
#[test]
fn a_packet_of_a_class_with_few_waits_for_two_of_another_class_at_most() {
    let mut tree = tree(None);
    let profile = tree.add_profile(&plain());
    let home = tree.add(PORT, &home(profile, Some(20_000)));
    let many = Source::new(home, 1500);
    let few = Source {
        class: 1,
        ..Source::new(home, 100)
    };
    let (mut came, mut longest, mut left) = (0, 0, 0);
    for n in 1..200 {
        tree.enqueue(home, 1, few.frame(came), came).unwrap();
        let next = came + n * MS;
        pass(&mut tree, &[many], (came, next), |now, frame| {
            if frame.class == 1 {
                left += 1;
                longest = longest.max(now - frame.came);
            }
        });
        came = next;
    }
    // 600 microseconds each
    assert!(longest < 1_300_000, "{longest} ns");
    assert_eq!(left, 199);
}

/// What a class could not have because of its rate is no claim for later, neither its own nor of a class that comes.
#[test]
fn a_class_that_was_limited_has_its_share_and_no_more_when_it_is_not() {
    let limit = |rate: Option<Rate>| {
        let mut settings = plain();
        settings.classes[1].rate = rate;
        settings
    };
    for limited in [50 * MS, 5_000 * MS] {
        let mut tree = tree(None);
        let profile = tree.add_profile(&limit(Some(Rate::kbps(1_000))));
        let home = tree.add(PORT, &home(profile, Some(20_000)));
        let sources = [0, 1, 2].map(|class| Source {
            class,
            ..Source::new(home, 1000)
        });
        octets(&mut tree, &sources[..2], (0, limited));
        tree.set_profile(profile, &limit(None));
        let sent = octets(&mut tree, &sources, (limited, limited + 500 * MS));
        let third = at_rate(20_000, 500 * MS) / 3;
        for one in &sent {
            assert!(is_near(*one, third, 30), "{sent:?} of {third}");
        }
    }
}
