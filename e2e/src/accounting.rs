//! What RADIUS was told about sessions, held against what happened.

use crate::radius::Entry;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;

/// The records about one session, in the order in which they arrived.
pub type Records = Vec<Entry>;

/// Records of one or more servers by Acct-Session-Id.
#[derive(Debug, Default)]
pub struct AccountingRecords(BTreeMap<String, Records>);

impl AccountingRecords {
    /// Sorts records.
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Result<Self> {
        let mut records = AccountingRecords::default();
        for entry in entries {
            let id = text(&entry, "Acct-Session-Id")?.to_owned();
            records.0.entry(id).or_default().push(entry);
        }
        Ok(records)
    }

    /// These records without what others have as well.
    pub fn without(mut self, others: &AccountingRecords) -> Self {
        self.0.retain(|id, _| !others.0.contains_key(id));
        self
    }

    /// The Stops, one of each session that has one.
    pub fn stops(&self) -> impl Iterator<Item = &Entry> {
        let stop = |records: &'_ Vec<Entry>| records.iter().position(|entry| is(entry, "Stop"));
        let stops = self.0.values();
        stops.filter_map(move |records| stop(records).map(|at| &records[at]))
    }

    /// The records of each session.
    pub fn by_session(&self) -> impl Iterator<Item = &Records> {
        self.0.values()
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.0.len()
    }

    /// Is there a record about this session?
    pub fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// How many sessions have a record of this kind.
    pub fn with(&self, kind: &str) -> usize {
        let has = |records: &&Records| records.iter().any(|entry| is(entry, kind));
        self.0.values().filter(has).count()
    }

    /// What is not as it is when so many sessions have one Start and one Stop each.
    pub fn lack(&self, sessions: usize) -> Option<String> {
        let (starts, stops) = (self.with("Start"), self.with("Stop"));
        if (starts, stops) == (sessions, sessions) {
            return None;
        }
        let has = |records: &Records, kind| records.iter().any(|entry| is(entry, kind));
        let one = self
            .0
            .iter()
            .find(|(_, records)| has(records, "Start") != has(records, "Stop"));
        let one = one.map(|(id, records)| format!(", and of {id} alone {records:#?}"));
        Some(format!(
            "{starts} Starts and {stops} Stops of {sessions} sessions are on record{}",
            one.unwrap_or_default()
        ))
    }

    /// Every session has one Start, one Stop, and octets that never fall. A server that failed over may get a Stop
    /// before the Start that another one did not answer.
    pub fn check(&self) -> Result<()> {
        for (id, records) in &self.0 {
            let of = |kind| records.iter().filter(|entry| is(entry, kind)).count();
            let (starts, stops) = (of("Start"), of("Stop"));
            ensure!(
                starts == 1 && stops == 1,
                "session {id}: {starts} Starts and {stops} Stops: {records:#?}"
            );
            let mut usage: Vec<&Entry> = records.iter().filter(|e| !is(e, "Start")).collect();
            // Of the last second's records the Stop is the last.
            usage.sort_by_key(|entry| (session_time(entry), is(entry, "Stop")));
            for way in ["Acct-Input", "Acct-Output"] {
                let counted = usage.iter().map(|entry| octets(entry, way));
                let counted: Vec<u64> = counted.collect::<Result<_>>()?;
                ensure!(
                    counted.is_sorted() && is(usage[usage.len() - 1], "Stop"),
                    "session {id}: {way}-Octets fall or go on after the Stop: {counted:?}"
                );
            }
        }
        Ok(())
    }
}

/// Seconds that a session had lasted.
fn session_time(entry: &Entry) -> u64 {
    let seconds = entry.get("Acct-Session-Time");
    seconds.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Is it a record of this Acct-Status-Type?
pub fn is(entry: &Entry, kind: &str) -> bool {
    entry
        .get("Acct-Status-Type")
        .is_some_and(|status| status == kind)
}

/// An attribute of a record.
pub fn text<'a>(entry: &'a Entry, name: &str) -> Result<&'a str> {
    entry
        .get(name)
        .map(String::as_str)
        .with_context(|| format!("no {name} in {entry:#?}"))
}

/// Octets with their Gigawords (RFC 2869 section 5.1) of a counter, such as `Acct-Input` or `ERX-IPv6-Acct-Output`.
pub fn octets(entry: &Entry, counter: &str) -> Result<u64> {
    let low: u64 = text(entry, &format!("{counter}-Octets"))?.parse()?;
    let high: u64 = text(entry, &format!("{counter}-Gigawords"))
        .unwrap_or("0")
        .parse()?;
    Ok(high << 32 | low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: &str, at: u32, octets: u32) -> Entry {
        let pairs = [
            ("Acct-Session-Id", "cp-1".to_owned()),
            ("Acct-Status-Type", kind.to_owned()),
            ("Acct-Session-Time", at.to_string()),
            ("Acct-Input-Octets", octets.to_string()),
            ("Acct-Output-Octets", "0".to_owned()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    #[test]
    fn what_is_missing_twice_or_falling_is_found() {
        let (start, interim) = (record("Start", 0, 0), record("Interim-Update", 5, 7));
        let (stop, early) = (record("Stop", 5, 7), record("Stop", 4, 7));
        let check =
            |records: &[&Entry]| AccountingRecords::of(records.iter().copied().cloned())?.check();
        assert!(check(&[&start, &interim, &stop]).is_ok());
        assert!(check(&[&stop, &interim, &start]).is_ok());
        assert!(check(&[&start, &interim]).is_err());
        assert!(check(&[&start, &start, &stop]).is_err());
        assert!(check(&[&start, &stop, &stop]).is_err());
        assert!(check(&[&start, &interim, &record("Stop", 6, 6)]).is_err());
        assert!(check(&[&start, &early, &interim]).is_err());
    }
}
