//! What the schedulers of several workers promise that share the rate of a port.
mod common;
use common::*;
use policy::Rate;
use proptest::prelude::*;
use scheduler::*;

/// A home without anything special at a worker, and its packets.
fn flow(trees: &mut [Tree], worker: usize, weight: u16, octets: u32) -> Flow {
    let tree = &mut trees[worker];
    let profile = tree.add_profile(&plain());
    let settings = SubscriberSettings {
        weight,
        ..home(profile, None)
    };
    (worker, Source::new(tree.add(PORT, &settings), octets))
}

/// Parts of a second of which the port makes up for one.
const SLACK: u64 = 5_000;

/// Whether packets leave no sooner than from one queue with a rate.
struct Meter {
    kbps: u64,
    /// When the next packet may leave.
    next: f64,
}

impl Meter {
    fn new(kbps: u64) -> Self {
        Meter { kbps, next: 0.0 }
    }

    fn take(&mut self, now: u64, octets: u32) {
        assert!(self.next < now as f64 + 2.0, "{now}: {}", self.next);
        let burst = now.saturating_sub(HZ / SLACK) as f64;
        // the time of an octet is a little short, so that the rate is kept to 0.005 %
        let time = f64::from(octets) * 8e6 / self.kbps as f64 * 0.9999;
        self.next = self.next.max(burst) + time;
    }
}

#[test]
fn all_together_keep_the_rate_and_are_never_above_it() {
    for n in 2..=4 {
        for kbps in [2_000, 50_000, 1_000_000] {
            for octets in [64, 1500, 9000] {
                let mut trees = workers(kbps, n);
                // the first one has three homes
                let homes = (0..usize::from(n)).chain([0, 0]);
                let flows: Vec<Flow> = homes.map(|at| flow(&mut trees, at, 1, octets)).collect();
                let (mut meter, mut tenths) = (Meter::new(kbps), [0; 21]);
                pass_all(&mut trees, &flows, (0, 2_100 * MS), |now, _, frame| {
                    meter.take(now, frame.octets + WIRE);
                    tenths[(now / MS / 100) as usize] += u64::from(frame.octets + WIRE);
                });
                let wanted = at_rate(kbps, 100 * MS);
                let what = format!("{n}, {kbps} kbit/s, {octets} octets: {tenths:?}");
                for seconds in tenths[1..].chunks(10) {
                    let found: u64 = seconds.iter().sum();
                    assert!(is_near(found, 10 * wanted, 10), "{what}");
                }
                for tenth in &tenths[1..] {
                    let most = wanted / 20 + u64::from(octets + WIRE);
                    assert!(tenth.abs_diff(wanted) <= most, "{what}");
                }
            }
        }
    }
}

/// Each home has a weight, whichever worker has it, however many others that worker has, and however large its packets are.
fn homes() -> impl Strategy<Value = Vec<(usize, u16, u32)>> {
    proptest::collection::vec((0usize..4, 1u16..20, 100u32..1500), 2..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn weights_divide_the_rate_among_the_homes_of_all(homes in homes(), n in 2u16..5, kbps in 50_000u64..1_000_000) {
        let mut trees = workers(kbps, n);
        let add = |(at, weight, octets)| flow(&mut trees, at % usize::from(n), weight, octets);
        let flows: Vec<Flow> = homes.iter().copied().map(add).collect();
        wire_of_all(&mut trees, &flows, (0, 100 * MS));
        let sent = wire_of_all(&mut trees, &flows, (100 * MS, 2_100 * MS));
        let weights: u64 = homes.iter().map(|(_, weight, _)| u64::from(*weight)).sum();
        for (sent, (_, weight, _)) in sent.iter().zip(&homes) {
            let wanted = at_rate(kbps, 2_000 * MS) * u64::from(*weight) / weights;
            prop_assert!(is_near(*sent, wanted, 30), "{weight}: {sent} of {wanted} octets, {homes:?}");
        }
    }
}

/// One of weight 1,000 beside one of weight 1.
#[test]
fn a_heavy_home_leaves_a_light_one_its_share() {
    let mut trees = workers(1_000_000, 2);
    let flows = [(0, 1000), (1, 1)].map(|(at, weight)| flow(&mut trees, at, weight, 1000));
    wire_of_all(&mut trees, &flows, (0, 500 * MS));
    let sent = wire_of_all(&mut trees, &flows, (500 * MS, 10_500 * MS));
    let wanted = at_rate(1_000_000, 10_000 * MS) / 1001;
    assert!(is_near(sent[1], wanted, 30), "{sent:?} of {wanted}");
}

/// The rate of each flow in each millisecond, in thousandths of the port's.
fn shares(trees: &mut [Tree], flows: &[Flow], (from, to): (u64, u64), kbps: u64) -> Vec<Vec<u64>> {
    let of_millisecond = |ms| {
        let sent = wire_of_all(trees, flows, (ms * MS, (ms + 1) * MS)).into_iter();
        sent.map(|sent| sent * 1000 / at_rate(kbps, MS)).collect()
    };
    (from..to).map(of_millisecond).collect()
}

#[test]
fn what_one_worker_does_not_use_the_others_have_within_ten_milliseconds() {
    const KBPS: u64 = 1_000_000;
    for n in 2..=4 {
        let mut trees = workers(KBPS, n);
        let flows: Vec<Flow> = (0..usize::from(n))
            .map(|at| flow(&mut trees, at, 1, 1000))
            .collect();
        let all = usize::from(n);
        let check = |shares: &[Vec<u64>], active: usize| {
            // the first ten milliseconds are those of the change
            for shares in &shares[10..] {
                for share in &shares[..active] {
                    let wanted = 1000 / active as u64;
                    assert!(share.abs_diff(wanted) <= 30, "{active} of {n}: {shares:?}");
                }
            }
            let sum: u64 = shares[10..].iter().flatten().sum();
            assert!(
                sum.abs_diff(1000 * (shares.len() as u64 - 10)) < 500,
                "{sum}"
            );
        };
        check(&shares(&mut trees, &flows, (0, 40), KBPS), all);
        check(
            &shares(&mut trees, &flows[..all - 1], (40, 80), KBPS),
            all - 1,
        );
        check(&shares(&mut trees, &flows[..1], (80, 120), KBPS), 1);
        // and those that come back have their shares, and no more for the time before
        check(&shares(&mut trees, &flows, (120, 160), KBPS), all);
    }
}

/// A worker whose thread does not run keeps nobody from sending, and what it could not send is no claim for later.
#[test]
fn a_worker_that_does_not_come_is_not_waited_for() {
    const KBPS: u64 = 100_000;
    let all = at_rate(KBPS, 1_000 * MS);
    let mut trees = workers(KBPS, 4);
    let flows = [(0, 1), (1, 3), (2, 2), (3, 2)];
    let flows = flows.map(|(at, weight)| flow(&mut trees, at, weight, 1000));
    wire_of_all(&mut trees, &flows, (0, 100 * MS));
    let (mut meter, mut sent) = (Meter::new(KBPS), [0; 3]);
    let times = (100 * MS, 1_100 * MS);
    pass_all(&mut trees[..3], &flows[..3], times, |now, flow, frame| {
        meter.take(now, frame.octets + WIRE);
        sent[flow] += u64::from(frame.octets + WIRE);
    });
    // the others share as before
    for (sent, weight) in sent.iter().zip([1, 3, 2]) {
        assert!(is_near(*sent, all * weight / 6, 30), "{sent} of {all}");
    }
    let sent = wire_of_all(&mut trees, &flows, (1_100 * MS, 1_200 * MS));
    for (sent, weight) in sent.iter().zip([1, 3, 2, 2]) {
        assert!(is_near(*sent, all * weight / 80, 30), "{sent} of {all}");
    }
}

/// As it happens to threads on a busy machine.
#[test]
fn a_worker_that_is_often_late_has_its_share() {
    const KBPS: u64 = 100_000;
    let mut trees = workers(KBPS, 2);
    let flows = [(0, 1), (1, 3)].map(|(at, weight)| flow(&mut trees, at, weight, 1000));
    let mut sent = [0; 2];
    for n in 0..100 {
        let (from, to) = (n * 20 * MS, (n + 1) * 20 * MS);
        // the first does not come for five of twenty milliseconds, and the second for one
        let [first, second] = [from + 5 * MS, from + 6 * MS];
        let second_alone = wire_of_all(&mut trees[1..], &[(0, flows[1].1)], (from, first));
        let first_alone = wire_of_all(&mut trees[..1], &flows[..1], (first, second));
        let both = wire_of_all(&mut trees, &flows, (second, to));
        sent[0] += first_alone[0] + both[0];
        sent[1] += second_alone[0] + both[1];
    }
    let all = at_rate(KBPS, 2_000 * MS);
    assert!(is_near(sent.iter().sum(), all, 10), "{sent:?} of {all}");
    assert!(is_near(sent[0], all / 4, 50), "{sent:?} of {all}");
}

/// Where a frame takes longer than a worker needs to be woken, the turn is not of whoever is woken first.
#[test]
fn workers_of_a_slow_port_have_their_shares_whoever_comes_first() {
    const KBPS: u64 = 1_000;
    let mut trees = workers(KBPS, 2);
    let flows = [(0, 1), (1, 3)].map(|(at, weight)| flow(&mut trees, at, weight, 1000));
    let mut sent = [0; 2];
    for n in 0..8_000 {
        let (worker, now) = (n as usize % 2, n * MS / 2);
        let own = [(0, flows[worker].1)];
        let alone = wire_of_all(&mut trees[worker..=worker], &own, (now, now + MS / 2));
        sent[worker] += alone[0];
    }
    let all = at_rate(KBPS, 4_000 * MS);
    assert!(is_near(sent.iter().sum(), all, 10), "{sent:?} of {all}");
    assert!(is_near(sent[0], all / 4, 50), "{sent:?} of {all}");
}

#[test]
fn a_worker_that_can_send_nothing_is_not_waited_for() {
    const KBPS: u64 = 100_000;
    let all = at_rate(KBPS, 100 * MS);
    let mut trees = workers(KBPS, 3);
    let flows = [0, 1, 2].map(|at| flow(&mut trees, at, 1, 1000));
    wire_of_all(&mut trees, &flows, (0, 100 * MS));
    // its device takes no packets
    trees[2].dequeue(100 * MS, 0, &mut |_, _| (), &mut |_, _| ());
    assert!(trees[2].waiting() > 0);
    let sent = shares(&mut trees[..2], &flows[..2], (100, 110), KBPS);
    let is_half = |share: &u64| share.abs_diff(500) < 100;
    assert!(sent.iter().flatten().all(is_half), "{sent:?}");
    // it has gone
    trees.truncate(1);
    let sent = wire_of_all(&mut trees, &flows[..1], (200 * MS, 300 * MS));
    assert!(is_near(sent[0], all, 10), "{sent:?}");
    // what it held is removed
    trees[0].remove(flows[0].1.to, &mut |_| ());
    assert!(trees[0].waiting() == 0 && !trees[0].is_idle());
    trees[0].dequeue(300 * MS, BURST, &mut |_, _| (), &mut |_, _| ());
    assert!(trees[0].is_idle());
}

/// A home that has had no more than its committed rate has no claim for what it could have had.
#[test]
fn what_a_worker_did_not_share_in_is_no_claim_for_later() {
    const KBPS: u64 = 100_000;
    let mut trees = workers(KBPS, 2);
    let profile = trees[0].add_profile(&plain());
    let settings = SubscriberSettings {
        committed: Some(Rate::kbps(20_000)),
        ..home(profile, None)
    };
    let quiet = Source::new(trees[0].add(PORT, &settings), 976);
    let flows = [(0, quiet), flow(&mut trees, 1, 1, 976)];
    // 16 Mbit/s of the 20
    for now in (0..1_000 * MS).step_by(MS as usize / 2) {
        let frame = quiet.frame(now);
        trees[0].enqueue(quiet.to, 0, frame, now).unwrap();
        pass_all(&mut trees, &flows[1..], (now, now + MS / 2), |_, _, _| ());
    }
    assert_eq!(trees[0].state(quiet.to, 0).sent, 2_000);
    let sent = wire_of_all(&mut trees, &flows, (1_000 * MS, 1_100 * MS));
    let rest = at_rate(KBPS, 100 * MS) - at_rate(20_000, 100 * MS) * 1000 / 976;
    assert!(is_near(sent[1], rest / 2, 60), "{sent:?}, {rest}");
}

#[test]
fn committed_rates_of_one_worker_are_kept_before_the_rest_of_another() {
    const KBPS: u64 = 100_000;
    let mut trees = workers(KBPS, 2);
    let profile = trees[0].add_profile(&plain());
    let committed = [60_000, 15_000, 5_000].map(|kbps| {
        let settings = SubscriberSettings {
            committed: Some(Rate::kbps(kbps)),
            ..home(profile, Some(80_000))
        };
        (0, Source::new(trees[0].add(PORT, &settings), 1200))
    });
    // ten times what there is
    let others = [(); 25].map(|()| flow(&mut trees, 1, 1, 1200));
    let flows = [&committed[..], &others[..]].concat();
    wire_of_all(&mut trees, &flows, (0, 200 * MS));
    let sent = wire_of_all(&mut trees, &flows, (200 * MS, 1_200 * MS));
    let kept = [60_000, 15_000, 5_000].map(|kbps| at_rate(kbps, 1_000 * MS) * 1224 / 1200);
    let rest = (at_rate(KBPS, 1_000 * MS) - kept.iter().sum::<u64>()) / 28;
    let wanted = kept.map(|kept| kept + rest).into_iter().chain([rest; 25]);
    for (sent, wanted) in sent.iter().zip(wanted) {
        assert!(is_near(*sent, wanted, 30), "{sent} of {wanted}");
    }
}

/// Behind a packet of each other worker at most, and what a worker's round takes.
#[test]
fn a_packet_of_a_strict_class_comes_before_all_of_the_other_workers() {
    const KBPS: u64 = 100_000;
    for n in 2..=4 {
        let mut trees = workers(KBPS, n);
        let mut settings = plain();
        settings.classes[0].discipline = Discipline::Strict;
        let profile = trees[0].add_profile(&settings);
        let voice = Source::new(trees[0].add(PORT, &home(profile, None)), 200);
        let download = Source {
            class: 3,
            octets: 1500,
            ..voice
        };
        let downloads = (0..200).map(|home| 1 + home % (usize::from(n) - 1));
        let mut flows: Vec<Flow> = downloads.map(|at| flow(&mut trees, at, 1, 1500)).collect();
        flows.push((0, download));
        let (mut came, mut longest) = (0, 0);
        for now in (0..300 * MS).step_by(ROUND as usize) {
            if now % MS == 0 {
                came = now;
                let frame = voice.frame(now);
                trees[0].enqueue(voice.to, 0, frame, now).unwrap();
            }
            if trees[0].state(voice.to, 0).octets > 0 {
                longest = longest.max(now - came);
            }
            pass_all(&mut trees, &flows, (now, now + ROUND), |_, _, _| ());
        }
        // a packet of 1,500 octets takes 122 microseconds
        let most = u64::from(n) * 122_000 + 3 * ROUND;
        assert!(longest > 0 && longest <= most, "{n} workers: {longest} ns");
    }
}

/// As if the system ran another thread for long while a worker sends.
#[test]
fn a_worker_that_is_interrupted_while_it_sends_lets_nobody_exceed_the_rate() {
    const KBPS: u64 = 8_000;
    const BEGIN: u64 = 100 * MS;
    for pause in [0, MS / 2, 5 * MS, 12 * MS, 50 * MS] {
        let mut trees = workers(KBPS, 2);
        let [first, second] = [0, 1].map(|at| flow(&mut trees, at, 1, 976).1);
        let (mut meter, mut sent) = (Meter::new(KBPS), 0);
        meter.take(BEGIN, first.octets + WIRE);
        let mut others = |trees: &mut [Tree], times| {
            pass_all(trees, &[(0, second)], times, |now, _, frame| {
                meter.take(now, frame.octets + WIRE);
                sent += 1;
            });
        };
        let (continues, end) = (BEGIN + pause, BEGIN + pause + 20 * MS);
        trees[0].open(BEGIN);
        let left = trees[0].offer(first.to, 0, first.frame(BEGIN), BEGIN);
        assert!(left.unwrap().is_some());
        others(&mut trees[1..], (BEGIN, continues));
        trees[0].close();
        others(&mut trees[1..], (continues, end));
        // but for what was kept for the first one's last packet
        let most = (pause + 20 * MS) / MS;
        assert!(
            sent <= most && sent + 12 >= most,
            "{pause}: {sent} of {most}"
        );
    }
}

/// Packets for which nobody waits leave at once, and are charged to the rate of all.
#[test]
fn what_leaves_at_once_is_charged_to_the_shared_rate() {
    const KBPS: u64 = 8_000;
    let mut trees = workers(KBPS, 2);
    let flows = [0, 1].map(|at| flow(&mut trees, at, 1, 976));
    let mut offer = |worker: usize, now| {
        let (tree, (_, source)) = (&mut trees[worker], flows[worker]);
        tree.open(now);
        let left = tree.offer(source.to, 0, source.frame(now), now);
        tree.close();
        tree.dequeue(
            now,
            BURST,
            &mut |_, _| panic!("nothing may leave"),
            &mut |_, _| (),
        );
        left.unwrap().is_some()
    };
    assert!(offer(0, 10 * MS));
    assert!(!offer(1, 10 * MS + 1), "the port has to wait");
    assert!(!offer(0, 10 * MS + 2));
    // without `open` nothing leaves at once
    let late = 100 * MS;
    trees.iter_mut().for_each(|tree| {
        tree.dequeue(late, BURST, &mut |_, _| (), &mut |_, _| ());
    });
    let (_, source) = flows[0];
    let left = trees[0].offer(source.to, 0, source.frame(2 * late), 2 * late);
    assert!(left.unwrap().is_none());
}

#[test]
fn each_worker_tells_what_its_homes_wait_for() {
    const KBPS: u64 = 100_000;
    let mut trees = workers(KBPS, 2);
    let profile = trees[0].add_profile(&plain());
    let slow = trees[0].add(PORT, &home(profile, Some(10_000)));
    let flows = [(0, Source::new(slow, 1000)), flow(&mut trees, 1, 1, 1000)];
    wire_of_all(&mut trees, &flows, (0, 1_000 * MS));
    let [of_slow, of_other] = [&trees[0], &trees[1]].map(|tree| tree.aggregate_state(PORT));
    let [class, subscriber, aggregate, port] = of_slow.limits;
    assert!(
        subscriber > 20 && [class, aggregate, port] == [0; 3],
        "{of_slow:?}"
    );
    let [class, subscriber, aggregate, port] = of_other.limits;
    assert!(
        port > 200 && [class, subscriber, aggregate] == [0; 3],
        "{of_other:?}"
    );
}
