//! Alarm `aggregate-split`: aggregates with a rate that several workers keep, each for its own sessions, as the user planes report them.

use crate::alarms::{Condition, Fault};
use northbound::{QueueAggregate, units};

/// A condition for each of them.
pub(crate) fn split(aggregates: &[QueueAggregate]) -> impl Iterator<Item = Condition> {
    aggregates.iter().map(|aggregate| {
        let (name, workers) = (aggregate.name(), aggregate.workers);
        let rate = aggregate.rate_bits_per_second.unwrap_or_default();
        let rate = units::bits_per_second(rate as f64 / 8.0);
        Condition {
            fault: Fault::AggregateSplit,
            text: format!(
                "{workers} workers have sessions of {name}, and each keeps its rate ({rate}) for its own: together they may have \
                 {workers} times as much. `sluice move aggregate {name} --worker N` brings them together at one, and later sessions follow"
            ),
            resource: name,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_what_to_do_are_told() {
        let aggregate = QueueAggregate {
            user_plane: "up1".into(),
            port: "access0".into(),
            segment: "olt1".into(),
            s_tag: Some(100),
            workers: 2,
            rate_bits_per_second: Some(50_000_000),
            ..QueueAggregate::default()
        };
        let told: Vec<Condition> = split(&[aggregate]).collect();
        let [Condition { resource, text, .. }] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(resource, "up1/access0/olt1.100");
        assert!(
            text.contains("50.0 Mbit/s") && text.contains("2 workers"),
            "{text}"
        );
        assert!(
            text.contains("move aggregate up1/access0/olt1.100"),
            "{text}"
        );
    }
}
