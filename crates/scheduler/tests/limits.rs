//! What packets wait for, as aggregates and subscribers tell it.
mod common;
use common::*;
use policy::Rate;
use scheduler::*;

/// So many ticks ago was in the last seconds.
const RECENT: u64 = 3_000 * MS;

fn counted(tree: &mut Tree, aggregate: AggregateIndex) -> AggregateState {
    let mut next = Some(0);
    while let Some(from) = next {
        next = tree.count_waiting(from, 3);
    }
    tree.aggregate_state(aggregate)
}

/// The limits that have been counted, from below, each only if it is more than one of twenty.
fn limits(state: &AggregateState) -> Vec<Limit> {
    let all: u64 = state.limits.iter().sum();
    let counts = Limit::ALL.into_iter().zip(state.limits);
    let seen = counts.filter(|(_, count)| count * 20 > all);
    seen.map(|(limit, _)| limit).collect()
}

/// Whichever level has the lowest rate is the one that is told, whatever the others have, by the home and by each level above it.
#[test]
fn the_lowest_rate_is_the_limit() {
    const RATES: [u64; 4] = [20_000, 24_000, 60_000, 300_000];
    for lowest in 0..4 {
        for turn in 0..3 {
            let mut others = RATES[1..].to_vec();
            others.rotate_left(turn);
            others.insert(lowest, RATES[0]);
            let mut tree = tree(Some(others[3]));
            let site = aggregate(&mut tree, PORT, Some(others[2]));
            let mut profile = managed(FQ_CODEL);
            profile.classes[0].rate = Some(Rate::kbps(others[0]));
            let profile = tree.add_profile(&profile);
            let home = tree.add(site, &home(profile, Some(others[1])));
            pass(
                &mut tree,
                &[Source::new(home, 1200)],
                (0, 1_000 * MS),
                |_, _| (),
            );
            let wanted = Limit::ALL[lowest];
            for at in [site, PORT] {
                let state = tree.aggregate_state(at);
                assert_eq!(limits(&state), [wanted], "{others:?}: {state:?}");
                assert!(state.limits[lowest] > 40, "{state:?}");
            }
            let now = 1_000 * MS;
            assert_eq!(tree.limit(home, 0, (now, RECENT)), Some(wanted));
            // it does not wait any more
            let later = now + 2 * RECENT;
            assert_eq!(tree.limit(home, 0, (later, RECENT)), None);
        }
    }
}

/// A home that has all of its own rate waits for that alone, however short its aggregate is for others.
#[test]
fn homes_of_one_aggregate_have_limits_of_their_own() {
    let mut tree = tree(Some(1_000_000));
    let site = aggregate(&mut tree, PORT, Some(100_000));
    let other = aggregate(&mut tree, PORT, Some(100_000));
    let profile = tree.add_profile(&managed(CODEL));
    let slow = tree.add(site, &home(profile, Some(10_000)));
    let fast: Vec<_> = (0..4)
        .map(|_| tree.add(site, &home(profile, Some(50_000))))
        .collect();
    let alone = tree.add(other, &home(profile, Some(50_000)));
    let mut sources: Vec<_> = fast.iter().map(|home| Source::new(*home, 1500)).collect();
    sources.extend([slow, alone].map(|home| Source::new(home, 700)));
    pass(&mut tree, &sources, (0, 1_000 * MS), |_, _| ());
    let of = |home| tree.limit(home, 0, (1_000 * MS, RECENT));
    assert_eq!([of(slow), of(alone)], [Some(Limit::Subscriber); 2]);
    assert!(fast.iter().all(|home| of(*home) == Some(Limit::Aggregate)));
    assert_eq!(
        limits(&tree.aggregate_state(site)),
        [Limit::Subscriber, Limit::Aggregate]
    );
    assert_eq!(limits(&tree.aggregate_state(other)), [Limit::Subscriber]);
    let port = counted(&mut tree, PORT);
    assert_eq!(port.limits[Limit::Port as usize], 0, "{port:?}");
    assert_eq!(port.waiting.subscribers, 6);
}

/// The caller takes less than the homes may have.
#[test]
fn a_device_that_does_not_take_more_is_the_port() {
    let mut tree = tree(None);
    let profile = tree.add_profile(&plain());
    let homes = [(); 4].map(|()| tree.add(PORT, &home(profile, Some(50_000))));
    let frame = |home| Source::new(home, 1000).frame(0);
    for now in (0..500 * MS).step_by(ROUND as usize) {
        for home in homes {
            while tree.state(home, 0).octets < 64_000 {
                tree.enqueue(home, 0, frame(home), now).unwrap();
            }
        }
        // 80 of 200 Mbit/s
        let most = usize::from(now % (10 * ROUND) == 0);
        tree.dequeue(now, most, &mut |_, _: Frame| (), &mut |_, _| ());
    }
    let state = tree.aggregate_state(PORT);
    assert_eq!(limits(&state), [Limit::Port], "{state:?}");
}

/// Homes that ask for half of what each level has wait now and then, and for nothing in particular.
#[test]
fn nobody_is_limited_where_there_is_enough() {
    let mut tree = tree(Some(200_000));
    let site = aggregate(&mut tree, PORT, Some(190_000));
    let profile = tree.add_profile(&managed(FQ_CODEL));
    let homes: Vec<_> = (0..20)
        .map(|_| tree.add(site, &home(profile, Some(10_000))))
        .collect();
    for now in (0..1_000 * MS).step_by(ROUND as usize) {
        for (number, home) in (0..).zip(&homes) {
            // 500 octets each 0.8 ms are 5 Mbit/s
            if now / ROUND % 80 == number * 4 {
                let frame = Source::new(*home, 500).frame(now);
                tree.enqueue(*home, 0, frame, now).unwrap();
            }
        }
        tree.dequeue(now, 64, &mut |_, _| (), &mut |_, _| ());
    }
    let state = counted(&mut tree, site);
    assert_eq!(state.limits, [0; 4], "{state:?}");
    assert_eq!(state.packets, 25_000);
    assert_eq!(state.octets, 25_000 * 524);
    assert_eq!((state.drops, state.waiting.waiting_subscribers), (0, 0));
    for home in homes {
        assert_eq!(tree.limit(home, 0, (1_000 * MS, RECENT)), None);
    }
}

/// What an aggregate tells is the sum of what its subscribers tell, also of packets that are refused, dropped and never sent.
#[test]
fn an_aggregate_is_the_sum_of_its_subscribers() {
    let mut tree = tree(Some(60_000));
    let site = aggregate(&mut tree, PORT, Some(50_000));
    let vlans = [(); 2].map(|()| aggregate(&mut tree, site, Some(40_000)));
    let profiles = [
        plain(),
        managed(CODEL),
        managed(FQ_CODEL),
        managed(DUAL_PI2),
    ];
    let profiles = profiles.map(|mut profile| {
        profile
            .classes
            .iter_mut()
            .for_each(|class| class.limit = 40_000);
        tree.add_profile(&profile)
    });
    let homes: Vec<_> = (0..8)
        .map(|number| {
            let parent = [vlans[0], vlans[1], site, PORT][number / 2];
            let profile = profiles[number % 4];
            tree.add(parent, &home(profile, Some(20_000)))
        })
        .collect();
    let mut number = 0u32;
    for now in (0..2_000 * MS).step_by(ROUND as usize) {
        for home in &homes {
            if now % (20 * ROUND) == 0 {
                number += 1;
                let mut frame = Source::new(*home, 1000).frame(now);
                frame.flow = number % 7;
                let _ = tree.enqueue(*home, (number % 3) as usize, frame, now);
            }
        }
        tree.dequeue(now, 64, &mut |_, _| (), &mut |_, _| ());
    }
    for (at, under) in [
        (vlans[0], 0..2),
        (vlans[1], 2..4),
        (site, 0..6),
        (PORT, 0..8),
    ] {
        let state = counted(&mut tree, at);
        let homes = &homes[under];
        let sum = |of: fn(State) -> u64| -> u64 {
            let classes = homes
                .iter()
                .flat_map(|home| (0..CLASSES).map(move |c| (*home, c)));
            classes
                .map(|(home, class)| of(tree.state(home, class)))
                .sum()
        };
        assert_eq!(state.packets, sum(|class| class.sent));
        let wire = sum(|class| class.sent_octets + 24 * class.sent);
        assert_eq!(state.octets, wire);
        assert_eq!(
            state.drops,
            sum(|class| class.tail_drops + class.delay_drops)
        );
        assert!(state.drops > 0, "{state:?}");
        assert_eq!(state.waiting.octets, sum(|class| class.octets.into()));
        assert_eq!(state.most_octets, state.waiting.octets);
        let asked = sum(|class| class.sent / ASK_AT);
        let waits = state.waits.iter().sum::<u64>();
        assert!(waits > 0 && waits <= asked, "{waits} of {asked}");
        assert_eq!(state.waiting.subscribers as usize, homes.len());
        assert_eq!(state.waiting.waiting_subscribers as usize, homes.len());
    }
}

/// An aggregate that nobody needs any more goes, with its number, and one that comes in its place begins from nothing.
#[test]
fn aggregates_come_and_go() {
    let mut tree = tree(Some(20_000));
    let profile = tree.add_profile(&plain());
    let mut now = 0;
    let mut numbers = std::collections::BTreeSet::new();
    for round in 0..50 {
        let site = aggregate(&mut tree, PORT, Some(10_000));
        let vlan = aggregate(&mut tree, site, Some(5_000));
        numbers.extend([site, vlan]);
        assert_eq!(tree.aggregate_state(site), AggregateState::default());
        let home = tree.add(vlan, &home(profile, Some(8_000)));
        assert_eq!(tree.parent(home), Some(vlan));
        let until = now + 20 * MS;
        let mut sent = 0;
        pass(
            &mut tree,
            &[Source::new(home, 1500)],
            (now, until),
            |_, _| {
                sent += 1;
            },
        );
        now = until;
        assert!(sent > 0, "round {round}");
        assert!(!tree.is_unused(vlan) && !tree.is_unused(site));
        // in every other round it goes while its packets wait, otherwise it is put elsewhere before
        if round % 2 == 0 {
            tree.place(home, PORT);
            assert_eq!(tree.remove_aggregate(vlan), site);
            pass(&mut tree, &[], (now, now + MS), |_, _| ());
        }
        tree.remove(home, &mut |_| ());
        assert_eq!(tree.parent(home), None);
        if round % 2 == 1 {
            assert_eq!(tree.remove_aggregate(vlan), site);
        }
        assert!(tree.is_unused(site));
        assert_eq!(tree.remove_aggregate(site), PORT);
        assert_eq!(counted(&mut tree, PORT).waiting, Waiting::default());
        // the next packet of anybody moves those on that stood there
        pass(&mut tree, &[], (now, now + 20 * MS), |_, _| ());
        now += 20 * MS;
    }
    assert!(numbers.len() < 10, "{numbers:?}");
}
