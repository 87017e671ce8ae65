use super::*;
use proptest::prelude::*;

const RUN: u64 = 7;

fn packet(from: Party, to: Party, family: Family, sequence: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    Label {
        run: RUN,
        from,
        to,
        family,
        sequence,
        stamp: Stamp::default(),
    }
    .emit(64, &mut payload);
    payload
}

fn from_internet(home: u32, sequence: u64) -> Vec<u8> {
    packet(Party::Internet, Party::Home(home), Family::V4, sequence)
}

fn at(home: u32) -> Arrival {
    Arrival {
        at: Party::Home(home),
        from: Some(Party::Internet),
        family: Family::V4,
    }
}

#[test]
fn order_gaps_and_repetitions_are_told_apart() {
    let mut verifier = Verifier::new(RUN, 3);
    let mut check = |sequence| verifier.check(at(2), &from_internet(2, sequence));
    assert_eq!([0, 1, 4, 3, 4, 2, 2, 5].map(&mut check), {
        use Verdict::*;
        [
            InOrder, InOrder, InOrder, Late, Duplicate, Late, Duplicate, InOrder,
        ]
    });
    let counts = verifier.counts();
    assert_eq!(verifier.received(2, Family::V4), 6);
    assert_eq!(verifier.received(1, Family::V4), 0);
    assert_eq!(
        (
            counts.received,
            counts.late,
            counts.duplicated,
            counts.wrong()
        ),
        (6, 2, 2, 2)
    );
    assert_eq!(verifier.of(2, Family::V4), counts);
    assert_eq!(verifier.of(2, Family::V6), Counts::default());
}

#[test]
fn what_is_too_old_to_tell_is_not_counted_as_received() {
    let mut verifier = Verifier::new(RUN, 1);
    assert_eq!(
        verifier.check(at(0), &from_internet(0, 1000)),
        Verdict::InOrder
    );
    assert_eq!(
        verifier.check(at(0), &from_internet(0, 1000 - 128)),
        Verdict::Duplicate
    );
    assert_eq!(
        verifier.check(at(0), &from_internet(0, 1000 - 127)),
        Verdict::Late
    );
}

#[test]
fn the_last_number_of_all_is_a_number_like_others() {
    let last = u64::MAX;
    let mut verifier = Verifier::new(RUN, 2);
    let mut check = |home, sequence| verifier.check(at(home), &from_internet(home, sequence));
    assert_eq!(check(0, last), Verdict::InOrder);
    assert_eq!(
        [last, last - 1].map(|n| check(0, n)),
        [Verdict::Duplicate, Verdict::Late]
    );
    assert_eq!(
        [0, last, 0, last].map(|n| check(1, n)),
        [
            Verdict::InOrder,
            Verdict::InOrder,
            Verdict::Duplicate,
            Verdict::Duplicate
        ]
    );
}

#[test]
fn the_wrong_receiver_sender_or_family_is_misdelivery() {
    let mut verifier = Verifier::new(RUN, 3);
    let good = from_internet(1, 0);
    for arrival in [
        at(2),
        Arrival {
            from: Some(Party::Home(0)),
            ..at(1)
        },
        Arrival {
            from: None,
            ..at(1)
        },
        Arrival {
            family: Family::V6,
            ..at(1)
        },
    ] {
        assert_eq!(
            verifier.check(arrival, &good),
            Verdict::Misdelivered,
            "{arrival:?}"
        );
    }
    // A home that does not exist, and a packet of another home than its label says.
    assert_eq!(
        verifier.check(at(9), &from_internet(9, 0)),
        Verdict::Misdelivered
    );
    let sideways = packet(Party::Home(0), Party::Home(1), Family::V4, 0);
    assert_eq!(
        verifier.check(
            Arrival {
                from: Some(Party::Home(2)),
                ..at(1)
            },
            &sideways
        ),
        Verdict::Misdelivered
    );
    assert_eq!(verifier.check(at(1), &good), Verdict::InOrder);
    assert_eq!(verifier.counts().wrong(), 6);
}

#[test]
fn packets_from_home_to_home_are_of_the_receivers_stream() {
    let mut verifier = Verifier::new(RUN, 3);
    let arrival = Arrival {
        from: Some(Party::Home(0)),
        ..at(1)
    };
    for (sequence, verdict) in [(1, Verdict::InOrder), (0, Verdict::Late)] {
        let sideways = packet(Party::Home(0), Party::Home(1), Family::V4, sequence);
        assert_eq!(verifier.check(arrival, &sideways), verdict);
    }
    assert_eq!(verifier.received(1, Family::V4), 2);
    assert_eq!(verifier.received(0, Family::V4), 0);
}

#[test]
fn another_runs_packets_and_changed_ones_are_corrupt() {
    let mut verifier = Verifier::new(RUN + 1, 3);
    assert_eq!(
        verifier.check(at(1), &from_internet(1, 0)),
        Verdict::Corrupt
    );
    let mut verifier = Verifier::new(RUN, 3);
    for bit in 0..64 * 8 {
        let mut changed = from_internet(1, 0);
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            verifier.check(at(1), &changed),
            Verdict::Corrupt,
            "bit {bit}"
        );
    }
}

proptest! {
    #[test]
    fn labels_survive(
        run: u64,
        from: u32,
        to: u32,
        six: bool,
        sequence: u64,
        sent: u64,
        reflected: u32,
        size in 0usize..1500,
    ) {
        let family = if six { Family::V6 } else { Family::V4 };
        let stamp = Stamp { sent, reflected };
        let label = Label { run, from: Party::of(from), to: Party::of(to), family, sequence, stamp };
        let mut payload = Vec::new();
        label.emit(size, &mut payload);
        prop_assert_eq!(payload.len(), size.max(Label::MIN_SIZE));
        prop_assert_eq!(Label::parse(&payload), Some(label));
    }

    #[test]
    fn parse_never_panics(bytes: Vec<u8>) {
        let _ = Label::parse(&bytes);
    }

    #[test]
    fn each_number_is_received_once_whatever_the_order(mut order in Just((0..100u64).collect::<Vec<_>>()).prop_shuffle()) {
        let mut verifier = Verifier::new(RUN, 1);
        order.extend(order.clone());
        for &sequence in &order {
            verifier.check(at(0), &from_internet(0, sequence));
        }
        prop_assert_eq!(verifier.counts().received, 100);
        prop_assert_eq!(verifier.counts().duplicated, 100);
    }
}
