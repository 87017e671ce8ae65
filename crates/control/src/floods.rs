//! Alarm `line-flooding`: senders above a rate of `protection`, as the user planes report them.

use crate::alarms::{Condition, Fault};
use crate::topology::nas_port_id;
use northbound::Offender;

/// Maximum number of senders with an alarm of their own. The others share one.
const MOST: usize = 16;

/// Conditions of the senders that have flooded for longest, and one of all others. They are not sorted by dropped packets: of many senders,
/// another one is the worst each second, and the alarms would flap.
pub(crate) fn floods(offenders: impl Iterator<Item = Offender>) -> Vec<Condition> {
    let mut offenders: Vec<Offender> = offenders.collect();
    offenders.sort_by_key(|offender| std::cmp::Reverse(offender.since_seconds));
    let more = offenders.len().saturating_sub(MOST);
    let mut told: Vec<Condition> = offenders.iter().take(MOST).map(condition).collect();
    if more > 0 {
        told.push(Condition {
            fault: Fault::LineFlooding,
            resource: "others".into(),
            text: format!(
                "{more} more exceed a rate of `protection`: see `sluice show protection`"
            ),
        });
    }
    told
}

fn condition(offender: &Offender) -> Condition {
    let place = place(offender);
    let who = match offender.level.as_str() {
        "mac" => format!("{} at {place}", offender.mac),
        level => format!("{place} ({level}; last {})", offender.mac),
    };
    let hold = match offender.held_seconds {
        0 => String::new(),
        seconds => format!(" It is held down for {seconds} s more."),
    };
    Condition {
        fault: Fault::LineFlooding,
        resource: match offender.level.as_str() {
            "mac" => format!("{place} {} {}", offender.mac, offender.kind),
            _ => format!("{place} {}", offender.kind),
        },
        text: format!(
            "{who} sends more `{}` packets than `protection` permits: {} dropped in {} s.{hold} Look there for a loop, a faulty \
                router or an attack; others are not affected",
            offender.kind, offender.dropped, offender.since_seconds
        ),
    }
}

/// Port and VLANs, and the circuit: `up1/access0.100.7 "olt1 1/2"`.
fn place(offender: &Offender) -> String {
    let vids = [offender.s_tag, offender.c_tag];
    let place = nas_port_id(&offender.user_plane, &offender.port, vids);
    match offender.circuit_id.is_empty() {
        true => place,
        false => format!("{place} \"{}\"", offender.circuit_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offender(number: u32) -> Offender {
        Offender {
            user_plane: "up1".into(),
            port: "access0".into(),
            s_tag: Some(100),
            c_tag: Some(number),
            mac: "02:00:00:00:00:09".into(),
            kind: "discovery".into(),
            level: "mac".into(),
            dropped: 1000 + u64::from(number),
            since_seconds: 12,
            ..Offender::default()
        }
    }

    #[test]
    fn an_alarm_names_line_and_mac_address() {
        let held = Offender {
            circuit_id: "olt1 1/2".into(),
            held_seconds: 9,
            ..offender(7)
        };
        let told = floods([held].into_iter());
        assert_eq!(told.len(), 1);
        let place = "up1/access0.100.7 \"olt1 1/2\"";
        assert_eq!(
            told[0].resource,
            format!("{place} 02:00:00:00:00:09 discovery")
        );
        let text = format!(
            "02:00:00:00:00:09 at {place} sends more `discovery` packets than `protection` permits: 1007 dropped in 12 s. It is held down for 9 s more."
        );
        assert!(told[0].text.starts_with(&text), "{}", told[0].text);
        let vlan = Offender {
            level: "vlan".into(),
            c_tag: None,
            ..offender(7)
        };
        assert_eq!(
            floods([vlan].into_iter())[0].resource,
            "up1/access0.100 discovery"
        );
    }

    #[test]
    fn those_who_began_first_have_alarms_of_their_own_and_the_others_one() {
        let all = |second: u64| {
            let told = floods((0..100).map(|number| Offender {
                since_seconds: second + u64::from(number),
                dropped: u64::from(number) * second % 97,
                ..offender(number)
            }));
            told.into_iter().map(|told| (told.resource, told.text))
        };
        let (resources, texts): (Vec<_>, Vec<_>) = all(1).unzip();
        assert_eq!(resources.len(), MOST + 1);
        assert_eq!(
            resources[0],
            "up1/access0.100.99 02:00:00:00:00:09 discovery"
        );
        assert!(texts[MOST].starts_with("84 more"));
        // whoever is the worst meanwhile
        assert!(all(50).map(|(resource, _)| resource).eq(resources));
    }
}
