//! Queues of sessions, and of ports and their parts.

use super::listing::{Row, word};
use northbound::catalogue::LIMIT_WORDS;
use northbound::{PolicySetting, QueueAggregate, QueueLimit, SessionPolicy};

/// Label of the setting whose value is the rate of a session's queues.
const RATE: &str = "rate down";
/// Origin of a rate that the access node says of the access line.
const LINE: &str = "line";
/// Delays are known up to this one, in milliseconds.
const LONGEST: u64 = 100;

/// What the packets to a session have waited for in the last seconds, in a word; `None`: it has no queues.
pub(super) fn limited_by(
    settings: &[PolicySetting],
    policy: &SessionPolicy,
) -> Option<&'static str> {
    let queues = &policy.down.as_ref()?.queues;
    let limits = queues.iter().map(|q| (q.limited_by(), q.waiting_octets));
    let limited = limits.filter(|(limit, _)| *limit != QueueLimit::Unspecified);
    let most = limited.max_by_key(|(_, waiting)| *waiting);
    Some(match most.map(|(limit, _)| limit) {
        None | Some(QueueLimit::Unspecified) if queues.is_empty() => return None,
        None | Some(QueueLimit::Unspecified) => "nothing",
        Some(QueueLimit::Class) => "class",
        Some(QueueLimit::Subscriber) if rate(settings).is_some_and(|r| r.origin == LINE) => LINE,
        Some(QueueLimit::Subscriber) => "plan",
        Some(QueueLimit::Aggregate) => "aggregate",
        Some(QueueLimit::Port) => "port",
    })
}

/// The rate of a session.
fn rate(settings: &[PolicySetting]) -> Option<&PolicySetting> {
    settings.iter().find(|setting| setting.label == RATE)
}

/// The same for its page, with the rate if it is the session's own.
pub(super) fn limited_by_row(limit: &str, settings: &[PolicySetting]) -> (String, String) {
    let own = rate(settings).filter(|_| matches!(limit, LINE | "plan"));
    let rate = own.map(|rate| format!(" ({RATE} {})", rate.value));
    (
        "limited by".into(),
        limit.to_owned() + &rate.unwrap_or_default(),
    )
}

/// Time within which nearly all frames that waited were sent.
pub fn delay(row: &QueueAggregate) -> String {
    match row.delay_milliseconds {
        None => String::new(),
        Some(bound) if bound > LONGEST => format!("> {LONGEST} ms"),
        Some(bound) => format!("< {bound} ms"),
    }
}

/// What its frames wait for.
pub fn limit(row: &QueueAggregate) -> String {
    word(LIMIT_WORDS, row.limited_by())
}

/// Adds what a row shows beside what it has.
pub(super) fn derive(aggregate: &QueueAggregate, row: &mut Row) {
    row.insert("name".into(), aggregate.name().into());
    row.insert("delay".into(), delay(aggregate).into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::{DirectionPolicy, QueueState};

    #[test]
    fn the_rate_of_a_session_is_that_of_its_line_or_plan() {
        let setting = |label: &str, origin: &str| PolicySetting {
            label: label.into(),
            value: "50000 kbit/s".into(),
            origin: origin.into(),
            ..PolicySetting::default()
        };
        let queue = |limit: QueueLimit, waiting_octets| QueueState {
            limited_by: limit.into(),
            waiting_octets,
            ..QueueState::default()
        };
        let of = |origin, queues| {
            let down = Some(DirectionPolicy {
                queues,
                ..DirectionPolicy::default()
            });
            let settings = [setting("rate up", "aaa"), setting(RATE, origin)];
            let limit = limited_by(&settings, &SessionPolicy { up: None, down });
            limit.map(|limit| limited_by_row(limit, &settings).1)
        };
        let own = || queue(QueueLimit::Subscriber, 5);
        let of_line = of("line", vec![own()]);
        assert_eq!(of_line.as_deref(), Some("line (rate down 50000 kbit/s)"));
        let of_plan = of("profile", vec![queue(QueueLimit::Unspecified, 9), own()]);
        assert_eq!(of_plan.as_deref(), Some("plan (rate down 50000 kbit/s)"));
        let longest = of("line", vec![own(), queue(QueueLimit::Port, 9)]);
        assert_eq!(longest.as_deref(), Some("port"));
        let idle = of("line", vec![QueueState::default()]);
        assert_eq!(idle.as_deref(), Some("nothing"));
        assert_eq!(of("line", vec![]), None);
    }
}
