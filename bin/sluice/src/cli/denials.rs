//! What the policies of a session are at its user plane, and what they have done: rows of its page.

use super::units::{counted, octets, rate};
use northbound::word;
use northbound::{
    ClassCounts, CompiledPolicy, Denial, DenialReason, FILTER_RULES, MatchKind, PolicerKind,
    PolicerOwner, PolicySetting, QueueLimit, QueueState, RuleHits, RuleWatch, SessionPolicer,
    SessionPolicy,
};

/// The settings of a session's policy, each with the origin of its value.
pub(super) fn settings(settings: &[PolicySetting]) -> Vec<(String, String)> {
    let there = settings
        .iter()
        .filter(|setting| !setting.value.is_empty() || setting.wanted.is_some());
    let row = |setting: &PolicySetting| {
        let PolicySetting { value, origin, .. } = setting;
        let wanted = setting.wanted.as_deref().map(|wanted| match wanted {
            "" => ", none is wanted".to_owned(),
            wanted => format!(", {wanted} is wanted"),
        });
        let told = format!("{value} ({origin}{})", wanted.unwrap_or_default());
        (setting.label.clone(), told.trim_start().to_owned())
    };
    there.map(row).collect()
}

/// What the policies have done, a few rows for each direction.
pub(super) fn rows(policy: &SessionPolicy) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let worker = policy.worker.iter();
    rows.extend(worker.map(|worker| ("worker".to_owned(), worker.to_string())));
    for (way, _, did) in policy.directions() {
        let counted = |packets: u64| match packets {
            1 => "1 packet".to_owned(),
            packets => format!("{packets} packets"),
        };
        if !did.name.is_empty() {
            let state = word(&[], did.state());
            let drops = if did.drops_all {
                ": all packets are dropped"
            } else {
                ""
            };
            rows.push((
                format!("policy {way} state"),
                format!("{} ({state}{drops})", did.name),
            ));
            rows.extend(did.compiled.as_ref().map(|of| compiled_row(way, of)));
            let size = octets(did.denied_octets);
            let denied = format!("{}, {size}", counted(did.denied_packets));
            rows.push((format!("denied {way}"), denied));
        }
        if did.yellow_packets > 0 {
            let passed = format!(
                "{} above the committed rate, which passed",
                counted(did.yellow_packets)
            );
            rows.push((format!("yellow {way}"), passed));
        }
        rows.extend(did.policers.iter().map(|policer| policer_row(way, policer)));
        let of_home = match did.subscriber_exceeded_packets {
            0 => String::new(),
            packets => format!(", {packets} above the rate of the home"),
        };
        let above = format!("{}{of_home}", counted(did.exceeded_packets));
        rows.push((format!("above rate {way}"), above));
        rows.extend(did.classes.iter().map(|class| class_row(way, class)));
        rows.extend(did.queues.iter().map(queue_row));
        let last = did.last_denial.as_ref().map(last_denial);
        rows.extend(last.map(|last| (format!("last denial {way}"), last)));
        let watched = did.rule_watch.iter();
        rows.extend(watched.flat_map(|watch| hit_rows(way, watch)));
    }
    rows
}

/// What the workers have of a policy.
fn compiled_row(way: &str, of: &CompiledPolicy) -> (String, String) {
    let families = [("IPv4", of.ipv4), ("IPv6", of.ipv6)];
    let families = families.into_iter().filter_map(|(family, size)| {
        let size = size?;
        Some(format!(
            ", {family} {} in {}",
            counted(size.rules, "rule"),
            octets(size.octets)
        ))
    });
    let told = format!(
        "number {}, compilation {}, {} in {}{}",
        of.number,
        of.compilation,
        counted(of.rules, "rule"),
        octets(of.octets),
        families.collect::<String>()
    );
    (format!("compiled {way}"), told)
}

/// A policer with the rates and bursts that the worker keeps.
fn policer_row(way: &str, policer: &SessionPolicer) -> (String, String) {
    let name = match policer.owner() {
        PolicerOwner::Class => format!("policer {} {way}", policer.class),
        PolicerOwner::Subscriber => format!("policer of home {way}"),
        _ => format!("policer {way}"),
    };
    let bucket = |bits, burst| format!("{}, burst {}", rate(bits), octets(burst));
    let first = bucket(policer.committed_rate, policer.committed_burst);
    let (Some(bits), Some(burst)) = (policer.second_rate, policer.second_burst) else {
        return (name, first);
    };
    let second = match policer.kind() {
        PolicerKind::TwoRate => format!("peak {}", bucket(bits, burst)),
        PolicerKind::SingleRate => format!("excess burst {}", octets(burst)),
        _ => format!("excess {}", bucket(bits, burst)),
    };
    let kind = word(&[], policer.kind());
    (name, format!("{kind}: {first}; {second}"))
}

/// What happened to the packets of a class.
fn class_row(way: &str, class: &ClassCounts) -> (String, String) {
    let mut told = format!("{} passed", class.passed_packets);
    if class.yellow_packets > 0 {
        let yellow = format!(" ({} above its committed rate)", class.yellow_packets);
        told.push_str(&yellow);
    }
    told.push_str(&format!(", {} above its rate", class.exceeded_packets));
    (format!("class {} {way}", class.name), told)
}

/// What waits in a queue, and what was dropped there.
fn queue_row(queue: &QueueState) -> (String, String) {
    let waiting = octets(queue.waiting_octets);
    let most = octets(queue.most_octets);
    let mut told = format!("{waiting} wait (most {most}), {} left", queue.packets);
    if queue.full_drops > 0 {
        told.push_str(&format!(", {} found no room", queue.full_drops));
    }
    if queue.delay_drops > 0 {
        told.push_str(&format!(", {} dropped for the delay", queue.delay_drops));
    }
    if queue.marks > 0 {
        told.push_str(&format!(", {} marked for it", queue.marks));
    }
    if let (Some(half), Some(nearly_all)) = (queue.waited(50), queue.waited(99)) {
        told.push_str(&format!(
            "; of those that waited 50 % {half}, 99 % {nearly_all}"
        ));
    }
    if queue.limited_by() != QueueLimit::Unspecified {
        told.push_str(&format!(
            "; waits for its {}",
            word(&[], queue.limited_by())
        ));
    }
    (format!("queue {}", queue.name()), told)
}

/// A row for each rule that packets hit while the session is watched.
fn hit_rows(way: &str, watch: &RuleWatch) -> Vec<(String, String)> {
    let watched = format!("watched for {} s more", watch.seconds_left);
    let row = |hits: &RuleHits| {
        let what = match hits.kind() {
            MatchKind::Rule => rule(&hits.acl, hits.rule, &hits.text),
            MatchKind::Unmatched => "no rule matched".into(),
            MatchKind::UndeterminedTransport => "transport header not seen".into(),
            MatchKind::Unspecified => "not known".into(),
        };
        let told = format!("{}, {}: {what}", hits.packets, octets(hits.octets));
        (format!("hits {way}"), told)
    };
    let first = (format!("rules {way}"), watched);
    [first]
        .into_iter()
        .chain(watch.hits.iter().map(row))
        .collect()
}

/// A rule with its place.
fn rule(acl: &str, number: u32, text: &str) -> String {
    match acl {
        "" => format!("{FILTER_RULES} {number}: {text}"),
        acl => format!("acl {acl} rule {number}: {text}"),
    }
}

fn last_denial(denial: &Denial) -> String {
    match denial.reason() {
        DenialReason::Rule => rule(&denial.acl, denial.rule, &denial.text),
        DenialReason::Unmatched => "no rule matched".into(),
        DenialReason::Replaced => "a rule of an earlier version of the policy".into(),
        DenialReason::Unspecified => "not known".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::{CompiledFamily, DirectionPolicy, TrafficPolicyState};

    fn denied(packets: u64, reason: DenialReason) -> DirectionPolicy {
        DirectionPolicy {
            name: "home-up".into(),
            state: TrafficPolicyState::InForce.into(),
            denied_packets: packets,
            denied_octets: 64 * packets,
            last_denial: Some(Denial {
                reason: reason.into(),
                acl: "base".into(),
                rule: 20,
                text: "deny tcp from any to any 25".into(),
            }),
            ..DirectionPolicy::default()
        }
    }

    #[test]
    fn a_page_has_rows_for_each_direction() {
        let down = DirectionPolicy {
            exceeded_packets: 7,
            yellow_packets: 30,
            subscriber_exceeded_packets: 9,
            classes: vec![
                ClassCounts {
                    name: "video".into(),
                    ..ClassCounts::default()
                },
                ClassCounts {
                    name: "voice".into(),
                    passed_packets: 50,
                    yellow_packets: 20,
                    exceeded_packets: 3,
                },
            ],
            queues: vec![
                QueueState {
                    waiting_octets: 3_000,
                    most_octets: 6_000,
                    packets: 70,
                    marks: 2,
                    waits: vec![0, 3, 2, 0, 0, 0, 0, 1],
                    ..QueueState::default()
                },
                QueueState {
                    class: "video".into(),
                    full_drops: 4,
                    delay_drops: 5,
                    ..QueueState::default()
                },
            ],
            ..DirectionPolicy::default()
        };
        let hits = |kind: MatchKind, packets| RuleHits {
            kind: kind.into(),
            packets,
            octets: 64 * packets,
            ..RuleHits::default()
        };
        let of_rule = RuleHits {
            acl: "base".into(),
            rule: 20,
            text: "deny tcp from any to any 25".into(),
            ..hits(MatchKind::Rule, 1)
        };
        let watch = RuleWatch {
            seconds_left: 42,
            hits: vec![of_rule, hits(MatchKind::Unmatched, 8)],
        };
        let policy = SessionPolicy {
            up: Some(DirectionPolicy {
                rule_watch: Some(watch),
                ..denied(1, DenialReason::Rule)
            }),
            down: Some(down),
            worker: Some(1),
        };
        let rows = rows(&policy);
        let rows: Vec<(&str, &str)> = rows.iter().map(|(a, b)| (&**a, &**b)).collect();
        let expected = [
            ("worker", "1"),
            ("policy up state", "home-up (in force)"),
            ("denied up", "1 packet, 64 B"),
            ("above rate up", "0 packets"),
            (
                "last denial up",
                "acl base rule 20: deny tcp from any to any 25",
            ),
            ("rules up", "watched for 42 s more"),
            (
                "hits up",
                "1, 64 B: acl base rule 20: deny tcp from any to any 25",
            ),
            ("hits up", "8, 512 B: no rule matched"),
            (
                "yellow down",
                "30 packets above the committed rate, which passed",
            ),
            ("above rate down", "7 packets, 9 above the rate of the home"),
            ("class video down", "0 passed, 0 above its rate"),
            (
                "class voice down",
                "50 passed (20 above its committed rate), 3 above its rate",
            ),
            (
                "queue of no class",
                "3.0 kB wait (most 6.0 kB), 70 left, 2 marked for it; of those that waited 50 % < 2 ms, 99 % 100 ms or more",
            ),
            (
                "queue video",
                "0 B wait (most 0 B), 0 left, 4 found no room, 5 dropped for the delay",
            ),
        ];
        assert_eq!(rows, expected);
        let of_subscriber = last_denial(&Denial {
            reason: DenialReason::Rule.into(),
            rule: 2,
            text: "deny in ip from any to any".into(),
            ..Denial::default()
        });
        assert_eq!(
            of_subscriber,
            "NAS-Filter-Rule 2: deny in ip from any to any"
        );
    }

    #[test]
    fn the_compiled_form_of_a_policy_is_shown() {
        let size = |rules, octets| Some(CompiledFamily { rules, octets });
        let compiled = CompiledPolicy {
            number: 3,
            compilation: 17,
            rules: 4,
            octets: 48_000,
            ipv4: size(4, 24_000),
            ipv6: size(1, 23_900),
        };
        let policer =
            |owner: PolicerOwner, kind: PolicerKind, second: Option<u64>| SessionPolicer {
                owner: owner.into(),
                kind: kind.into(),
                committed_rate: 20_000_000,
                committed_burst: 250_000,
                second_rate: second,
                second_burst: second.map(|rate| rate / 80),
                ..SessionPolicer::default()
            };
        let of_class = SessionPolicer {
            class: "voice".into(),
            ..policer(
                PolicerOwner::Class,
                PolicerKind::SingleRate,
                Some(20_000_000),
            )
        };
        let two = policer(
            PolicerOwner::Policy,
            PolicerKind::TwoRate,
            Some(100_000_000),
        );
        let excess = SessionPolicer {
            kind: PolicerKind::TwoRateDifferentiated.into(),
            ..two.clone()
        };
        let bucket = |owner| policer(owner, PolicerKind::SingleBucket, None);
        let down = DirectionPolicy {
            name: "home-down".into(),
            compiled: Some(compiled),
            policers: vec![
                of_class,
                two,
                excess,
                bucket(PolicerOwner::Session),
                bucket(PolicerOwner::Subscriber),
            ],
            ..DirectionPolicy::default()
        };
        let rows = rows(&SessionPolicy {
            down: Some(down),
            ..SessionPolicy::default()
        });
        let rows: Vec<(&str, &str)> = rows.iter().map(|(a, b)| (&**a, &**b)).collect();
        let expected = [
            (
                "compiled down",
                "number 3, compilation 17, 4 rules in 48.0 kB, IPv4 4 rules in 24.0 kB, IPv6 1 rule in 23.9 kB",
            ),
            ("denied down", "0 packets, 0 B"),
            (
                "policer voice down",
                "single rate: 20.0 Mbit/s, burst 250.0 kB; excess burst 250.0 kB",
            ),
            (
                "policer down",
                "two rate: 20.0 Mbit/s, burst 250.0 kB; peak 100.0 Mbit/s, burst 1.2 MB",
            ),
            (
                "policer down",
                "two rate differentiated: 20.0 Mbit/s, burst 250.0 kB; excess 100.0 Mbit/s, burst 1.2 MB",
            ),
            ("policer down", "20.0 Mbit/s, burst 250.0 kB"),
            ("policer of home down", "20.0 Mbit/s, burst 250.0 kB"),
        ];
        assert_eq!(rows[1..8], expected);
    }

    #[test]
    fn settings_have_their_origins() {
        let setting = |value: &str, wanted: Option<&str>| PolicySetting {
            label: "policy up".into(),
            value: value.into(),
            origin: "profile".into(),
            wanted: wanted.map(str::to_owned),
            ..PolicySetting::default()
        };
        let all = [
            setting("home-up", None),
            setting("", None),
            setting("", Some("office-up")),
            setting("home-up", Some("")),
        ];
        let values: Vec<String> = settings(&all).into_iter().map(|(_, value)| value).collect();
        let expected = [
            "home-up (profile)",
            "(profile, office-up is wanted)",
            "home-up (profile, none is wanted)",
        ];
        assert_eq!(values, expected);
    }
}
