use super::*;
use proptest::prelude::*;
use reference::{Reference, buckets};

#[path = "reference.rs"]
mod reference;

/// Ticks of which an octet takes a whole number of parts at [`exact_rate`]s.
const EXACT_HZ: u64 = 2_560_000_000;
const HZ: u64 = 2_599_999_999;
const COLOURS: [Colour; 3] = [Colour::Green, Colour::Yellow, Colour::Red];

/// A packet: how long after the last one it comes, in thousandths of its own time at the committed rate; octets; colour.
type Arrival = (u64, u32, Colour);

fn exact_rate() -> impl Strategy<Value = Rate> {
    (0..=19u32, 0..=4u32).prop_map(|(twos, fives)| Rate::kbps(2u64.pow(twos) * 5u64.pow(fives)))
}

fn any_rate() -> impl Strategy<Value = Rate> {
    (6..27u32).prop_flat_map(|bits| (1u64 << bits..1 << (bits + 1)).prop_map(clamped))
}

/// 64 kbit/s to 100 Gbit/s.
fn clamped(kbps: u64) -> Rate {
    Rate::kbps(kbps.clamp(64, 100_000_000))
}

fn burst() -> impl Strategy<Value = u32> {
    prop_oneof![9216..60_000u32, Just(9216), 9216..1_000_000_000u32]
}

fn settings_of<R: Strategy<Value = Rate>>(rate: fn() -> R) -> impl Strategy<Value = MeterSettings> {
    (0..3, rate(), rate(), burst(), burst()).prop_map(|(algorithm, cir, other, cbs, ebs)| {
        match algorithm {
            0 => MeterSettings::SingleRate { cir, cbs, ebs },
            1 => MeterSettings::TwoRate {
                pir: cir.max(other),
                pbs: ebs,
                cir: cir.min(other),
                cbs,
            },
            _ => MeterSettings::TwoRateDifferentiated {
                cir,
                cbs,
                eir: other,
                ebs,
            },
        }
    })
}

fn traffic() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![8 => 0..1500u64, 1 => 0..20_000u64, 4 => Just(0)];
    let octets = prop_oneof![40..=9216u32, Just(40), Just(9216)];
    let colour = prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2)];
    let colour = colour.prop_map(|colour| COLOURS[colour]);
    proptest::collection::vec((gap, octets, colour), 0..200)
}

/// When packets come, in ticks.
fn times(traffic: &[Arrival], settings: MeterSettings, hz: u64) -> Vec<u64> {
    let [(kbps, _), _] = buckets(settings);
    let mut now = u128::from(hz);
    let gaps = traffic.iter().map(|(thousandths, octets, _)| {
        u128::from(*thousandths) * u128::from(*octets) * 8 * u128::from(hz)
            / (u128::from(kbps) * 1_000_000)
    });
    gaps.map(|gap| {
        now += gap;
        now as u64
    })
    .collect()
}

/// Compares a meter with the text, packet by packet. Where they differ because of rounding, the text goes on with the meter's colour.
fn compare(settings: MeterSettings, traffic: &[Arrival], hz: u64, exact: bool) {
    let (mut meter, mut text) = (Meter::new(settings, hz), Reference::new(settings, hz));
    for (now, (_, octets, incoming)) in times(traffic, settings, hz).into_iter().zip(traffic) {
        text.advance(now);
        let wanted = text.colour(*octets, *incoming);
        let colour = meter.colour(*octets, *incoming, now);
        let is_near = !exact && text.is_close(*octets);
        assert!(
            colour == wanted || is_near,
            "{colour:?}, not {wanted:?}, of {octets} octets at {now}"
        );
        assert!(colour >= *incoming);
        text.take(*octets, colour);
    }
}

/// What may pass in a time: octets of green packets, and of green and yellow ones.
fn allowance(settings: MeterSettings, ticks: u64, hz: u64) -> [f64; 2] {
    let [(cir, cbs), (other, burst)] = buckets(settings);
    let in_time = |kbps: u64| kbps as f64 * 125.0 * ticks as f64 / hz as f64;
    let green = in_time(cir) + f64::from(cbs);
    let all = match settings {
        MeterSettings::SingleRate { .. } => green + f64::from(burst),
        MeterSettings::TwoRate { .. } => in_time(other) + f64::from(burst),
        MeterSettings::TwoRateDifferentiated { .. } => green + in_time(other) + f64::from(burst),
    };
    [green, all]
}

proptest! {
    #[test]
    fn colours_are_those_of_the_text_where_nothing_is_rounded(
        settings in settings_of(exact_rate), traffic in traffic()
    ) {
        // A burst at 1 kbit/s may be cut.
        let meter = Meter::new(settings, EXACT_HZ);
        if meter.rates.committed_burst.max(meter.rates.second_burst) < LONGEST_BURST {
            compare(settings, &traffic, EXACT_HZ, true);
        }
    }

    #[test]
    fn colours_are_those_of_the_text_within_rounding(
        settings in settings_of(any_rate), traffic in traffic()
    ) {
        compare(settings, &traffic, HZ, false);
    }

    #[test]
    fn what_is_kept_is_what_was_set_but_for_rounding(settings in settings_of(any_rate)) {
        let kept = MeterRates::new(settings, HZ).kept(HZ);
        for (kept, (kbps, burst)) in kept.into_iter().zip(buckets(settings)) {
            let wanted = kbps * 1000;
            prop_assert!(kept.bits_per_second.abs_diff(wanted) <= wanted / 1_000_000_000 + 1);
            prop_assert!(kept.burst.abs_diff(burst.into()) <= 1, "{:?}", kept);
        }
    }

    #[test]
    fn no_interval_has_more_than_its_rate_and_burst(
        settings in settings_of(any_rate), traffic in traffic()
    ) {
        let mut meter = Meter::new(settings, HZ);
        let times = times(&traffic, settings, HZ);
        let colours: Vec<_> = times
            .iter()
            .zip(&traffic)
            .map(|(now, (_, octets, incoming))| meter.colour(*octets, *incoming, *now))
            .collect();
        for first in 0..times.len() {
            let [mut green, mut all] = [0.0; 2];
            for last in first..times.len() {
                let octets = f64::from(traffic[last].1);
                green += if colours[last] == Colour::Green { octets } else { 0.0 };
                all += if colours[last] == Colour::Red { 0.0 } else { octets };
                let [most_green, most] = allowance(settings, times[last] - times[first], HZ);
                // An octet for each packet; and half of one in a burst of 1 GB.
                let rounding = (last - first + 2) as f64;
                prop_assert!(green <= most_green + rounding, "{green} {most_green}");
                prop_assert!(all <= most + rounding, "{all} {most}");
            }
        }
    }

    #[test]
    fn a_packet_without_tokens_takes_none(
        settings in settings_of(any_rate), traffic in traffic()
    ) {
        let mut meter = Meter::new(settings, HZ);
        for (now, (_, octets, incoming)) in times(&traffic, settings, HZ).into_iter().zip(&traffic) {
            let before = meter.rates.times(meter.tokens, parts(now));
            let colour = meter.colour(*octets, *incoming, now);
            let [committed, second] = meter.rates.times(meter.tokens, parts(now));
            prop_assert!(colour == Colour::Green || committed == before[0]);
            prop_assert!(colour != Colour::Red || second == before[1]);
        }
    }

    #[test]
    fn tokens_of_unknown_rates_are_no_burst(
        old in settings_of(any_rate), new in settings_of(any_rate), traffic in traffic()
    ) {
        let (before, now) = used(old, &traffic);
        let (same, rates) = (before.rates.adopted(before.tokens, now), MeterRates::new(new, HZ));
        let adopted = rates.adopted(before.tokens, now);
        let now = parts(now);
        prop_assert_eq!(before.rates.times(same, now), before.rates.times(before.tokens, now));
        // until the bucket is full as much time passes as before, but no more than its burst takes
        let until_full = before.tokens.committed.saturating_sub(now).min(rates.committed_burst);
        prop_assert_eq!(adopted.committed, now + until_full);
        let base = if rates.overflows { adopted.committed } else { now };
        prop_assert!((base..=base + rates.second_burst).contains(&adopted.second));
        prop_assert!(adopted.second >= before.tokens.second.min(base + rates.second_burst));
    }

    #[test]
    fn a_change_keeps_the_tokens(
        old in settings_of(any_rate), new in settings_of(any_rate), traffic in traffic()
    ) {
        let (before, now) = used(old, &traffic);
        let after = Meter::new(new, HZ).continuing(before, now);
        let [(_, cbs), (_, burst)] = buckets(new);
        let [committed, second] = octets_of(before, now);
        let is_peak = |settings| matches!(settings, MeterSettings::TwoRate { .. });
        let wanted = match (is_peak(old), is_peak(new)) {
            (true, false) => (second - committed).max(0.0),
            (false, true) => second + committed,
            _ => second,
        };
        let [found, found_second] = octets_of(after, now);
        prop_assert!((found - committed.min(f64::from(cbs))).abs() < 3.0);
        prop_assert!((found_second - wanted.min(f64::from(burst))).abs() < 3.0);
        prop_assert!(after.agrees(Meter::new(new, HZ)));
        // Nobody waits longer than a burst takes, or both where one fills after the other.
        let full = now + ((after.rates.committed_burst + after.rates.second_burst) >> PARTS) + 1;
        prop_assert_eq!(after.rates.times(after.tokens, parts(full)), [after.rates.committed_burst, after.rates.second_burst]);
    }
}

/// A meter that has seen traffic, and when the last packet of it was.
fn used(settings: MeterSettings, traffic: &[Arrival]) -> (Meter, u64) {
    let mut meter = Meter::new(settings, HZ);
    let mut now = HZ;
    for (at, (_, octets, incoming)) in times(traffic, settings, HZ).into_iter().zip(traffic) {
        meter.colour(*octets, *incoming, at);
        now = at;
    }
    (meter, now)
}

/// Tokens of both buckets in octets.
fn octets_of(meter: Meter, now: u64) -> [f64; 2] {
    let tokens = meter.rates.times(meter.tokens, parts(now));
    let times = meter
        .rates
        .octet_times()
        .map(|OctetTime { mantissa, shift }| {
            f64::from(mantissa) / (u64::from(shift) as f64).exp2()
        });
    [tokens[0] as f64 / times[0], tokens[1] as f64 / times[1]]
}

/// Checks that packets that come at twice the rates of all colours together get at least 99 % of what may pass, and at most 1 % more.
fn saturate(settings: MeterSettings, octets: u32, packets: u64) {
    let [(cir, _), (other, _)] = buckets(settings);
    let offered = 2 * (u128::from(cir) + u128::from(other)) * 1000;
    let time_of = |n: u64| u128::from(n) * u128::from(octets) * 8 * u128::from(HZ) / offered;
    let mut meter = Meter::new(settings, HZ);
    let [mut green, mut all] = [0; 2];
    for n in 0..packets {
        let colour = meter.colour(octets, Colour::Green, HZ + time_of(n) as u64);
        green += if colour == Colour::Green {
            octets as u64
        } else {
            0
        };
        all += if colour == Colour::Red {
            0
        } else {
            octets as u64
        };
    }
    let wanted = allowance(settings, time_of(packets) as u64, HZ);
    for (found, wanted) in [green, all].into_iter().zip(wanted) {
        let share = found as f64 / wanted;
        assert!(
            (0.99..1.01).contains(&share),
            "{settings:?}: {share} of {wanted}"
        );
    }
}

#[test]
fn saturating_traffic_gets_its_rates() {
    let packets = 400_000;
    for (kbps, octets) in [
        (64, 40),
        (64, 9216),
        (50_000, 1500),
        (10_000_000, 64),
        (100_000_000, 40),
        (100_000_000, 9216),
    ] {
        let (slow, fast) = (Rate::kbps(kbps), Rate::kbps(100_000_000.min(kbps * 3)));
        // Room for the packet that waits and for what comes meanwhile: a full bucket loses tokens.
        let (cbs, ebs) = (40_000, 20_000);
        saturate(
            MeterSettings::SingleRate {
                cir: slow,
                cbs,
                ebs,
            },
            octets,
            packets,
        );
        let (pir, pbs) = (fast, ebs);
        saturate(
            MeterSettings::TwoRate {
                pir,
                pbs,
                cir: slow,
                cbs,
            },
            octets,
            packets,
        );
        let settings = MeterSettings::TwoRateDifferentiated {
            cir: slow,
            cbs,
            eir: fast,
            ebs,
        };
        saturate(settings, octets, packets);
    }
}

/// RFC 2697 §3: E fills only with what C has no room for.
#[test]
fn the_excess_bucket_fills_after_the_committed_one() {
    let settings = MeterSettings::SingleRate {
        cir: Rate::kbps(8),
        cbs: 2000,
        ebs: 1000,
    };
    // An octet comes in a thousand ticks.
    let mut meter = Meter::new(settings, 1_000_000);
    let mut colours = |now| [(); 4].map(|()| meter.colour(1000, Colour::Green, now));
    use Colour::{Green, Red, Yellow};
    assert_eq!(colours(0), [Green, Green, Yellow, Red]);
    assert_eq!(colours(2_000_000), [Green, Green, Red, Red]);
    assert_eq!(colours(4_999_999), [Green, Green, Red, Red]);
    assert_eq!(colours(7_999_999), [Green, Green, Yellow, Red]);
}

#[test]
fn extremes_do_not_overflow() {
    let late = 1 << 58;
    for kbps in [1, 64, 100_000_000, 1_000_000_000] {
        let rate = Rate::kbps(kbps);
        let (cbs, ebs) = (1_000_000_000, 1_000_000_000);
        let settings = MeterSettings::SingleRate {
            cir: rate,
            cbs,
            ebs,
        };
        let mut meter = Meter::new(settings, 5_000_000_000);
        assert_eq!(meter.colour(cbs, Colour::Green, late), Colour::Green);
        assert_eq!(meter.colour(ebs, Colour::Green, late), Colour::Yellow);
        assert_eq!(meter.colour(u32::MAX, Colour::Green, late), Colour::Red);
    }
}

#[test]
fn without_a_limit_packets_keep_their_colours() {
    let mut meter = Meter::default();
    assert!(!meter.has_limit());
    for now in [7, 7, 9, 8] {
        assert!(
            COLOURS
                .iter()
                .all(|colour| meter.colour(65_535, *colour, now) == *colour)
        );
    }
    let settings = MeterSettings::SingleRate {
        cir: Rate::kbps(64),
        cbs: 9216,
        ebs: 0,
    };
    let limited = Meter::new(settings, HZ);
    assert_eq!(limited.continuing(meter, 9), limited);
    assert_eq!(meter.continuing(limited, 9), meter);
}
