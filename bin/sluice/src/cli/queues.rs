//! Queues of sessions, and of ports and their parts.

use super::listing::Row;
use super::word;
use northbound::catalogue::LIMIT_WORDS;
use northbound::{QueueAggregate, RATE_DOWN, SessionDetails};

/// Delays are known up to this one, in milliseconds.
const LONGEST: u64 = 100;

/// What limits a session, for its page, with the rate if it is the session's own.
pub(super) fn limited_by_row(details: &SessionDetails) -> Option<(String, String)> {
    let rate = details.limiting_rate();
    let rate = rate.map(|rate| format!(" ({RATE_DOWN} {})", rate.value));
    let said = details.limited_by?.to_owned() + &rate.unwrap_or_default();
    Some(("limited by".into(), said))
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
    row.insert("at".into(), aggregate.at().into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::PolicySetting;

    #[test]
    fn a_session_that_its_own_rate_limits_is_told_with_the_rate() {
        let rate = PolicySetting {
            label: RATE_DOWN.into(),
            value: "50000 kbit/s".into(),
            ..PolicySetting::default()
        };
        let said = |limited_by| {
            let details = SessionDetails {
                settings: vec![rate.clone()],
                limited_by,
                ..SessionDetails::default()
            };
            limited_by_row(&details).map(|(_, said)| said)
        };
        let with_rate = "line (rate down 50000 kbit/s)";
        assert_eq!(said(Some("line")).as_deref(), Some(with_rate));
        assert_eq!(said(Some("port")).as_deref(), Some("port"));
        assert_eq!(said(None), None);
    }
}
