//! Usage in reports.
use super::*;

#[test]
fn reports_say_what_was_added() {
    let rule = UsageRule {
        urr_id: 1,
        volume: true,
        packets: true,
        duration: true,
        period: None,
    };
    let volume = |up_octets, down_octets| Volume {
        up_packets: up_octets / 100,
        up_octets,
        down_packets: 0,
        down_octets,
    };
    let at = |up: u64, down| Usage::of_families(volume(up - up / 5, down), volume(up / 5, 0));
    let mut meter = UsageMeter::new(rule, at(0, 0), 1000);
    let first = meter.report(at(500, 70), 1060, UsageReportTrigger::PERIODIC);
    let last = meter.report(at(700, 71), 1100, UsageReportTrigger::TERMINATION);
    assert_eq!((first.sequence, last.sequence), (0, 1));
    assert_eq!((first.duration, last.duration), (Some(60), Some(40)));
    assert_eq!(last.start_time, first.end_time);
    assert_eq!(
        Usage::of_report(&first).plus(Usage::of_report(&last)),
        at(700, 71)
    );
    assert_eq!(last.volume.unwrap().total_octets, Some(201));
    assert_eq!(last.ipv6_volume.unwrap().total_octets, Some(40));
    assert_eq!(
        at(700, 71).families(),
        Some([volume(560, 71), volume(140, 0)])
    );
}

/// A user plane of another make, or of an earlier version, does not tell of IPv6. What it counted is of no family.
#[test]
fn a_report_without_families_is_in_the_total_alone() {
    let old = |up_octets| UsageReport {
        volume: Some(VolumeMeasurement {
            uplink_octets: Some(up_octets),
            ..Default::default()
        }),
        ..Default::default()
    };
    let volume = |up_octets| Volume {
        up_octets,
        ..Volume::default()
    };
    let new = Usage::of_families(volume(5), volume(7));
    let sum = new.plus(Usage::of_report(&old(100)));
    assert_eq!((sum.total, sum.ipv6), (volume(112), volume(7)));
    assert_eq!(
        (new.families(), sum.families()),
        (Some([volume(5), volume(7)]), None)
    );
    // one that has nothing to tell hides nothing
    let idle = new.plus(Usage::of_report(&old(0)));
    assert_eq!(idle, new);
}

proptest::proptest! {
    /// Whatever rules come over the wire, they are read or refused.
    #[test]
    fn damaged_rules_are_read_or_refused(
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0u8..), 1..6),
        default in proptest::prelude::any::<bool>(),
    ) {
        let request = if default {
            default_spec(vec![net(0, "100.64.0.0/24"), net(1, "2001:db8::/56")]).establish().0
        } else {
            spec().establish()
        };
        let mut bytes = Vec::new();
        Packet::session(0, 1, request).emit(&mut bytes).unwrap();
        for (at, octet) in changes {
            let at = at.index(bytes.len());
            bytes[at] = octet;
        }
        if let Ok(Received { packet: Packet { message: Message::SessionEstablishmentRequest(request), .. }, .. }) = parse(&bytes) {
            let _ = RuleSet::establish(request).and_then(|rules| rules.decode());
        }
    }
}
