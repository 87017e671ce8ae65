//! What packets of a home wait, and who gets how much, if its senders heed what the queue tells them.
mod common;
use common::senders::*;
use common::*;
use core::time::Duration;
use scheduler::*;

/// A home with a rate, alone in its tree.
fn home_with(management: Management, kbps: u64) -> (Tree, SubscriberIndex) {
    let mut tree = tree(None);
    let profile = tree.add_profile(&managed(management));
    let home = tree.add(PORT, &home(profile, Some(kbps)));
    (tree, home)
}

/// A call or a game: 200 octets each 20 ms.
fn call(to: SubscriberIndex) -> Sender {
    Sender::new(Kind::Constant(80), to, 20 * MS).of_octets(200)
}

const TIMES: (u64, u64) = (5_000 * MS, 25_000 * MS);
const TIME: u64 = TIMES.1 - TIMES.0;

#[test]
fn a_flow_with_few_packets_overtakes_others_where_flows_have_queues() {
    let beside_downloads = |management, kbps| {
        let (mut tree, home) = home_with(management, kbps);
        let mut senders = vec![call(home)];
        senders.extend((0..4).map(|_| Sender::new(Kind::Reno, home, 20 * MS)));
        let outcomes = send(&mut tree, &mut senders, TIMES, |_, _| ());
        let rest: u64 = outcomes[1..].iter().map(|outcome| outcome.kbps(TIME)).sum();
        assert!(rest > kbps * 85 / 100, "{management:?}: {rest} kbit/s");
        outcomes[0].clone()
    };
    for kbps in [20_000, 100_000] {
        let alone = beside_downloads(FQ_CODEL, kbps);
        let together = beside_downloads(CODEL, kbps);
        // behind the packet that is being sent, and one of each other flow at most
        let few = 5 * 1500 * MS / at_rate(kbps, MS);
        assert!(
            alone.percentile(100) <= few + ROUND,
            "{kbps}: {} ns",
            alone.percentile(100)
        );
        assert_eq!(alone.lost, 0);
        assert!(together.percentile(95) > 3 * alone.percentile(95), "{kbps}");
    }
}

#[test]
fn flows_of_a_class_get_the_same_whatever_they_send() {
    let (mut tree, home) = home_with(FQ_CODEL, 50_000);
    // a flood, packets of other sizes, and what asks for less than its share
    let mut senders = vec![
        Sender::new(Kind::Constant(200_000), home, 20 * MS),
        Sender::new(Kind::Constant(60_000), home, 20 * MS).of_octets(500),
        Sender::new(Kind::Reno, home, 20 * MS),
        Sender::new(Kind::Constant(5_000), home, 20 * MS),
    ];
    let outcomes = send(&mut tree, &mut senders, TIMES, |_, _| ());
    let kbps: Vec<u64> = outcomes.iter().map(|outcome| outcome.kbps(TIME)).collect();
    assert!(is_near(kbps[3], 5_000, 10), "{kbps:?}");
    assert_eq!(outcomes[3].lost, 0, "the flood loses its own packets");
    assert!(
        is_near(kbps[0], 15_000, 50) && is_near(kbps[1], 15_000, 50),
        "{kbps:?}"
    );
    // it halves its window now and then
    assert!(kbps[2] > 12_000, "{kbps:?}");
}

#[test]
fn one_flow_has_its_share_beside_a_thousand() {
    let (mut tree, home) = home_with(FQ_CODEL, 100_000);
    let mut profile = managed(FQ_CODEL);
    profile.classes[0].limit = 1 << 21;
    tree.set_profile(ProfileIndex(0), &profile);
    let mut senders = vec![Sender::new(Kind::Constant(90), home, 20 * MS).of_octets(100)];
    senders
        .extend((0..1000).map(|_| Sender::new(Kind::Constant(200), home, 20 * MS).of_octets(100)));
    let outcomes = send(&mut tree, &mut senders, (1_000 * MS, 4_000 * MS), |_, _| ());
    // what each may have is 99.9 kbit/s
    let own = outcomes[0].kbps(3_000 * MS);
    let others: Vec<u64> = outcomes[1..]
        .iter()
        .map(|outcome| outcome.kbps(3_000 * MS))
        .collect();
    let (least, most) = (others.iter().min().unwrap(), others.iter().max().unwrap());
    assert!(own >= 88, "{own} kbit/s, {} lost", outcomes[0].lost);
    assert!(*least > 85 && *most < 115, "{least} to {most}");
}

#[test]
fn senders_that_understand_marks_lose_nothing() {
    for management in [CODEL, FQ_CODEL, DUAL_PI2] {
        let (mut tree, home) = home_with(management, 20_000);
        // there is room for what comes before anybody has reacted
        let mut profile = managed(management);
        profile.classes[0].limit = 1 << 22;
        tree.set_profile(ProfileIndex(0), &profile);
        let mut senders = vec![Sender::new(Kind::RenoEcn, home, 20 * MS); 3];
        let outcomes = send(&mut tree, &mut senders, TIMES, |_, _| ());
        let lost: u64 = outcomes.iter().map(|outcome| outcome.lost).sum();
        let marked: u64 = outcomes.iter().map(|outcome| outcome.marked).sum();
        let state = tree.state(home, 0);
        assert_eq!(
            (lost, state.tail_drops, state.delay_drops),
            (0, 0, 0),
            "{management:?}"
        );
        assert!(
            marked > 20 && state.marks >= marked,
            "{management:?}: {marked} {state:?}"
        );
        let sent: u64 = outcomes.iter().map(|outcome| outcome.kbps(TIME)).sum();
        assert!(sent > 17_000, "{management:?}: {sent}");
    }
}

#[test]
fn l4s_has_hardly_any_delay_beside_downloads_that_get_as_much() {
    for kbps in [20_000, 100_000, 500_000] {
        let (mut tree, home) = home_with(DUAL_PI2, kbps);
        let kinds = [Kind::Scalable, Kind::Scalable, Kind::Reno, Kind::Reno];
        let mut senders = kinds.map(|kind| Sender::new(kind, home, 20 * MS));
        let outcomes = send(&mut tree, &mut senders, TIMES, |_, _| ());
        let sent: Vec<u64> = outcomes.iter().map(|outcome| outcome.kbps(TIME)).collect();
        let what = format!(
            "{kbps}: {sent:?}, p99 {:?}",
            outcomes
                .iter()
                .map(|o| o.percentile(99))
                .collect::<Vec<_>>()
        );
        println!(
            "{what} p50 {:?} marked {:?}",
            outcomes
                .iter()
                .map(|o| o.percentile(50))
                .collect::<Vec<_>>(),
            outcomes.iter().map(|o| o.marked).collect::<Vec<_>>()
        );
        assert!(outcomes[0].percentile(99) < 2 * MS, "{what}");
        assert!(outcomes[2].percentile(50) < 25 * MS, "{what}");
        assert!(sent.iter().sum::<u64>() > kbps * 85 / 100, "{what}");
        let [low, classic] = [sent[0] + sent[1], sent[2] + sent[3]];
        assert!(low < 3 * classic && classic < 3 * low, "{what}");
        assert_eq!(outcomes[0].lost, 0, "{what}");
    }
}

/// It is dropped as it would be elsewhere (RFC 9332 §4.2.3), and what is not of it gets the part that it asks for.
#[test]
fn a_flood_that_says_l4s_gets_nothing_by_that() {
    for ecn in [Ecn::L4s, Ecn::NotCapable] {
        let (mut tree, home) = home_with(DUAL_PI2, 20_000);
        let mut flood = Sender::new(Kind::Constant(60_000), home, 20 * MS);
        flood.ecn = Some(ecn);
        let mut senders = vec![
            flood,
            Sender::new(Kind::Constant(3_000), home, 20 * MS).of_octets(500),
        ];
        let outcomes = send(&mut tree, &mut senders, TIMES, |_, _| ());
        let sent = outcomes[1].kbps(TIME);
        println!(
            "{ecn:?} {sent} {:?}",
            outcomes
                .iter()
                .map(|o| o.percentile(50))
                .collect::<Vec<_>>()
        );
        assert!(sent > 800, "{ecn:?}: {sent} of 952 kbit/s");
        assert!(tree.state(home, 0).most_octets <= 256 << 10);
    }
}

#[test]
fn how_long_packets_wait_is_counted() {
    let (mut tree, home) = home_with(Management::TailDrop, 12_000);
    // 200 packets at once, of 1 ms each
    for n in 0..200 {
        tree.enqueue(home, 0, Source::new(home, 1250).frame(0), n)
            .unwrap();
    }
    let mut now = 0;
    while tree.waiting() > 0 {
        now += ROUND;
        tree.dequeue(now, 64, &mut |_, _| (), &mut |_, _| ());
    }
    let waits = tree.state(home, 0).waits;
    // 833 microseconds each, every eighth
    assert_eq!(waits.iter().sum::<u32>(), 25);
    assert!(waits[7] >= 9 && waits[6] >= 6 && waits[0] <= 1, "{waits:?}");
}

const EACH: [Management; 4] = [Management::TailDrop, CODEL, FQ_CODEL, DUAL_PI2];

/// A profile in whose first class nothing waits for longer than this.
fn not_longer_than(longest: u64, management: Management) -> QueueProfile {
    let mut profile = managed(management);
    profile.classes[0].longest_wait = Some(Duration::from_nanos(longest));
    profile
}

#[test]
fn what_has_waited_for_longer_than_it_may_is_dropped_and_the_rate_is_used() {
    for management in EACH {
        let mut tree = tree(None);
        let profile = tree.add_profile(&not_longer_than(8 * MS, management));
        let home = tree.add(PORT, &home(profile, Some(10_000)));
        let mut senders = [30_000, 500].map(|kbps| Sender::new(Kind::Constant(kbps), home, MS));
        let outcomes = send(&mut tree, &mut senders, (0, 2_000 * MS), |_, _| ());
        for outcome in &outcomes {
            let longest = outcome.percentile(100);
            assert!(longest <= 8 * MS + ROUND, "{management:?}: {longest} ns");
        }
        let sent: u64 = outcomes.iter().map(|sent| sent.kbps(2_000 * MS)).sum();
        assert!(is_near(sent, 10_000, 20), "{management:?}: {sent} kbit/s");
        let state = tree.state(home, 0);
        assert!(state.delay_drops > 1_000, "{management:?}: {state:?}");
        assert_eq!(state.tail_drops, 0, "{management:?}");
    }
}

#[test]
fn a_queue_in_which_all_have_waited_for_too_long_is_empty_and_takes_the_next() {
    for management in EACH {
        let mut tree = tree(None);
        let profile = tree.add_profile(&not_longer_than(8 * MS, management));
        let site = aggregate(&mut tree, PORT, Some(20_000));
        let home = tree.add(site, &home(profile, Some(10_000)));
        let source = Source::new(home, 1250);
        for now in (0..8).map(|n| n * MS) {
            tree.enqueue(home, 0, source.frame(now), now).unwrap();
        }
        // the last one has waited for 8 ms
        let (mut left, mut dropped) = (0, 0);
        let late = |tree: &mut Tree, now, left: &mut u32, dropped: &mut u32| {
            tree.dequeue(now, 64, &mut |_, _| *left += 1, &mut |why, _| {
                assert_eq!(why, Dropped::Delay);
                *dropped += 1;
            });
        };
        late(&mut tree, 15 * MS + 2 * ROUND, &mut left, &mut dropped);
        assert_eq!((left, dropped), (0, 8), "{management:?}");
        assert_eq!((tree.waiting(), tree.deadline()), (0, None));
        tree.enqueue(home, 0, source.frame(16 * MS), 16 * MS)
            .unwrap();
        late(&mut tree, 16 * MS, &mut left, &mut dropped);
        assert_eq!((left, dropped), (1, 8), "{management:?}");
    }
}
