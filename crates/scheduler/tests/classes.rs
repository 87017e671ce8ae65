//! Classes of a subscriber, from one to as many as there may be: those beyond the fourth are in another line, and nobody sees that.
mod common;
use common::*;
use policy::Rate;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use scheduler::*;

/// Shares of classes.
const WEIGHTS: [u8; CLASSES] = [3, 1, 10, 5, 2, 20, 7, 4];

/// A source for each of so many classes, with packets of other sizes.
fn sources(home: SubscriberIndex, classes: usize) -> Vec<Source> {
    let source = |class| Source {
        class,
        ..Source::new(home, 500 + 100 * class as u32)
    };
    (0..classes).map(source).collect()
}

fn weighted(classes: usize) -> QueueProfile {
    let mut profile = plain_of(classes);
    for (class, weight) in profile.classes.iter_mut().zip(WEIGHTS) {
        class.discipline = Discipline::Weighted(weight);
    }
    profile
}

/// A home that has a profile, and no rate but this one.
fn with_home(profile: &QueueProfile, kbps: Option<u64>) -> (Tree, ProfileIndex, SubscriberIndex) {
    let mut tree = tree(None);
    let index = tree.add_profile(profile);
    let home = tree.add(PORT, &home(index, kbps));
    (tree, index, home)
}

#[test]
fn weights_hold_whatever_the_number_of_classes() {
    for classes in 1..=CLASSES {
        let (mut tree, _, home) = with_home(&weighted(classes), Some(40_000));
        let sources = sources(home, classes);
        octets(&mut tree, &sources, (0, 100 * MS));
        let sent = octets(&mut tree, &sources, (100 * MS, 2_100 * MS));
        let all: u64 = WEIGHTS[..classes].iter().map(|w| u64::from(*w)).sum();
        for (sent, weight) in sent.iter().zip(WEIGHTS) {
            let wanted = at_rate(40_000, 2_000 * MS) * u64::from(weight) / all;
            assert!(
                is_near(*sent, wanted, 30),
                "{classes}: {sent} of {wanted} octets"
            );
        }
    }
}

#[test]
fn strict_classes_come_in_their_order_and_before_the_others() {
    for classes in 1..=CLASSES {
        for strict in 0..=classes {
            let mut settings = plain_of(classes);
            for class in &mut settings.classes[..strict] {
                class.discipline = Discipline::Strict;
            }
            let (mut tree, _, home) = with_home(&settings, Some(10_000));
            let from = 1_000 * MS;
            // the last one comes first
            for class in (0..classes).rev() {
                for _ in 0..3 {
                    let frame = Source {
                        class,
                        ..Source::new(home, 1250)
                    };
                    tree.enqueue(home, class, frame.frame(from), from).unwrap();
                }
            }
            let mut left = Vec::new();
            pass(&mut tree, &[], (from, from + 40 * MS), |_, frame| {
                left.push(frame.class);
            });
            let wanted: Vec<usize> = (0..strict).flat_map(|class| [class; 3]).collect();
            assert_eq!(left[..wanted.len()], wanted, "{strict} of {classes}");
            assert_eq!(left.len(), 3 * classes);
        }
    }
}

#[test]
fn each_class_keeps_its_rate_and_leaves_what_it_does_not_use() {
    for classes in 1..=CLASSES {
        let kbps = |class: usize| 500 * (1 + class as u64);
        let mut settings = plain_of(classes);
        for (at, class) in settings.classes.iter_mut().enumerate() {
            class.rate = Some(Rate::kbps(kbps(at)));
            if at % 2 == 1 {
                class.discipline = Discipline::Strict;
            }
        }
        let (mut tree, profile, home) = with_home(&settings, Some(100_000));
        let sources = sources(home, classes);
        octets(&mut tree, &sources, (0, 200 * MS));
        let sent = octets(&mut tree, &sources, (200 * MS, 2_200 * MS));
        for (at, sent) in sent.iter().enumerate() {
            let wanted = at_rate(kbps(at), 2_000 * MS);
            assert!(
                is_near(*sent, wanted, 10),
                "{at} of {classes}: {sent} of {wanted}"
            );
            let recent = (2_200 * MS, 5_000 * MS);
            assert_eq!(tree.limit(home, at, recent), Some(Limit::Class));
        }
        // the last one without a rate has the rest
        settings.classes[classes - 1] = plain().classes[0];
        tree.set_profile(profile, &settings);
        let sent = octets(&mut tree, &sources, (2_200 * MS, 3_200 * MS));
        let others: u64 = (0..classes - 1).map(kbps).sum();
        let wanted = at_rate(100_000 - others, 1_000 * MS);
        assert!(is_near(sent[classes - 1], wanted, 20), "{sent:?}");
    }
}

#[test]
fn a_packet_of_any_class_with_few_waits_for_one_of_each_other_at_most() {
    let (mut tree, _, home) = with_home(&plain(), Some(20_000));
    for few in 0..CLASSES {
        let mut many = sources(home, CLASSES);
        many.remove(few);
        let few = Source {
            class: few,
            ..Source::new(home, 100)
        };
        let (start, mut longest, mut left) = (few.class as u64 * 3_000 * MS, 0, 0);
        for n in 0..50 {
            let came = start + n * 50 * MS;
            tree.enqueue(home, few.class, few.frame(came), came)
                .unwrap();
            pass(&mut tree, &many, (came, came + 50 * MS), |now, frame| {
                if frame.class == few.class {
                    left += 1;
                    longest = longest.max(now - frame.came);
                }
            });
        }
        // the seven others are 7 kB at most, and one may have begun: 0.5 ms each
        assert!(
            left == 50 && longest < 4 * MS,
            "{}: {longest} ns",
            few.class
        );
        while let Some(at) = tree.deadline() {
            tree.dequeue(at, usize::MAX, &mut |_, _| (), &mut |_, _| ());
        }
    }
}

/// When packets of a class leave by a management, and which of them are dropped or marked.
fn story(management: Management, class: usize) -> (Vec<(u64, u64, Ecn)>, State) {
    let (mut tree, _, home) = with_home(&managed(management), Some(5_000));
    let mut random = SmallRng::seed_from_u64(7);
    let mut left = Vec::new();
    for now in (0..3_000 * MS).step_by(MS as usize) {
        for _ in 0..random.random_range(0..3) {
            let source = Source {
                class,
                ..Source::new(home, random.random_range(800..1500))
            };
            let frame = Frame {
                flow: random.random_range(0..9),
                ecn: Ecn::of(random.random_range(0..4)),
                ..source.frame(now)
            };
            // refused ones are counted
            if let Ok(Some(frame)) = tree.offer(home, class, frame, now) {
                left.push((now, frame.came, frame.ecn));
            }
        }
        let leave = &mut |_, frame: Frame| left.push((now, frame.came, frame.ecn));
        tree.dequeue(now, usize::MAX, leave, &mut |_, _| ());
    }
    (left, tree.state(home, class))
}

#[test]
fn queues_are_kept_short_in_the_last_class_as_in_the_first() {
    for management in [Management::TailDrop, CODEL, FQ_CODEL, DUAL_PI2] {
        let (mut first, mut last) = (story(management, 0), story(management, CLASSES - 1));
        let dropped = first.1.delay_drops + first.1.marks;
        assert!(dropped > 10 || management == Management::TailDrop);
        // the very first packet gets the line for the class, and so is taken before it leaves
        assert_eq!(first.0, last.0);
        // which makes it one that had to wait
        for state in [&mut first.1, &mut last.1] {
            state.waits = Default::default();
        }
        assert_eq!(first.1, last.1);
    }
}

/// From four classes to eight and back, while packets come in all classes that there are. What waits in one that goes is kept short as by
/// default, and leaves.
#[test]
fn nothing_is_lost_while_classes_come_and_go() {
    let (mut tree, profile, home) = with_home(&weighted(4), Some(40_000));
    let [mut came, mut left, mut dropped] = [[0; CLASSES]; 3];
    let mut from = 0;
    for classes in [4, 8, 4, 8, 1, 6, 4, 4, 4] {
        tree.set_profile(profile, &weighted(classes));
        tree.set(home, &common::home(profile, Some(40_000)));
        for now in (from..from + 100 * MS).step_by(ROUND as usize) {
            for source in sources(home, classes) {
                if tree.state(home, source.class).octets < 50_000 {
                    came[source.class] += 1;
                    (tree.enqueue(home, source.class, source.frame(now), now)).unwrap();
                }
            }
            let leave = &mut |_, frame: Frame| left[frame.class] += 1;
            tree.dequeue(now, usize::MAX, leave, &mut |why, frame| {
                assert!(frame.class >= classes && why == Dropped::Delay);
                dropped[frame.class] += 1;
            });
        }
        from += 100 * MS;
    }
    let gone = |class: usize| left[class] + dropped[class] == came[class];
    assert!((4..CLASSES).all(gone), "none has waited for ever");
    while let Some(at) = tree.deadline() {
        let leave = &mut |_, frame: Frame| left[frame.class] += 1;
        tree.dequeue(at, usize::MAX, leave, &mut |_, _| panic!("dropped"));
    }
    assert_eq!(left[0], came[0]);
    let all = |counts: [u64; CLASSES]| counts.iter().sum::<u64>();
    assert_eq!(all(left) + all(dropped), all(came));
    assert!(left[7] > 100 && all(dropped) < all(came) / 10);
}

/// What a subscriber does not need of its classes it gives back, and what it does not use it never had.
#[test]
fn a_home_takes_a_second_line_only_for_more_than_four_classes() {
    let (mut tree, profile, home) = with_home(&plain_of(4), Some(1_000));
    let put = |tree: &mut Tree, class| {
        let frame = Source::new(home, 1000).frame(0);
        tree.enqueue(home, class, frame, 0).map_err(|(why, _)| why)
    };
    (0..4).for_each(|class| put(&mut tree, class).unwrap());
    assert_eq!(put(&mut tree, 4), Err(Refused::Unknown));
    tree.set_profile(profile, &plain());
    tree.set(home, &common::home(profile, Some(1_000)));
    assert_eq!(tree.subscribers(), 1, "no packet has come for more");
    assert_eq!(tree.state(home, 7), State::default());
    (4..8).for_each(|class| put(&mut tree, class).unwrap());
    assert_eq!(tree.subscribers(), 2);
    assert_eq!(tree.parent(SubscriberIndex(1)), None, "it is no subscriber");
    // what waits in classes that are gone leaves, and the line with the last of it
    tree.set_profile(profile, &plain_of(4));
    tree.set(home, &common::home(profile, Some(1_000)));
    assert!(tree.holds(home, 7));
    let mut left = Vec::new();
    pass(&mut tree, &[], (0, 200 * MS), |_, _| left.push(()));
    assert_eq!(left.len(), 8);
    let other = tree.add(PORT, &common::home(profile, None));
    assert_eq!((other, tree.subscribers()), (SubscriberIndex(1), 2));
}

#[test]
fn a_home_that_goes_takes_what_waits_in_all_its_classes_with_it() {
    let mut settings = plain();
    settings.classes[6].rate = Some(Rate::kbps(8));
    let (mut tree, profile, home) = with_home(&settings, None);
    for class in (0..CLASSES).chain([6, 6]) {
        let frame = Source::new(home, 1000).frame(0);
        tree.enqueue(home, class, frame, 0).unwrap();
    }
    let mut left = 0;
    tree.dequeue(MS, 8, &mut |_, _| left += 1, &mut |_, _| ());
    let mut gone = 0;
    tree.remove(home, &mut |_| gone += 1);
    tree.remove(home, &mut |_| gone += 100);
    assert_eq!((left, gone, tree.waiting()), (8, 2, 0));
    // its second line waits for the rate of a class until it can be given again
    for (time, numbers) in [(2 * MS, 3), (5_000 * MS, 3)] {
        tree.dequeue(time, 8, &mut |_, _| (), &mut |_, _| ());
        tree.add(PORT, &common::home(profile, None));
        tree.add(PORT, &common::home(profile, None));
        assert!(tree.subscribers() <= numbers + 1, "{}", tree.subscribers());
    }
}
