//! How a destination does, as people and Prometheus see it.

use super::cursor::Cursor;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What its task has told so far.
#[derive(Debug)]
pub struct Standing {
    name: String,
    to: String,
    told: Mutex<Told>,
}

/// What changes.
#[derive(Debug, Default)]
pub struct Told {
    /// Number of the last event that it has got; `None`: it is new.
    pub last: Option<u64>,
    /// Events that were sent.
    pub sent: u64,
    /// Times that it did not take events.
    pub failures: u64,
    /// Events that were gone before they could be sent, at least.
    pub lost: u64,
    /// When the oldest event happened that it has not got, in seconds since 1970; `None`: none waits.
    pub waiting: Option<u64>,
    /// When it took events last, in seconds since 1970.
    pub sent_at: Option<u64>,
    /// Why it gets nothing now.
    pub error: Option<String>,
}

/// A row of the table.
#[derive(Serialize)]
pub struct Row {
    name: String,
    to: String,
    last: Option<u64>,
    behind_seconds: u64,
    sent: u64,
    failures: u64,
    lost: u64,
    sent_at: Option<u64>,
    error: String,
}

impl Standing {
    /// A destination that is about to begin.
    pub fn new(name: &str, to: String, cursor: Option<Cursor>) -> Self {
        let told = Told {
            last: cursor.map(|cursor| cursor.last),
            ..Told::default()
        };
        Standing {
            name: name.to_owned(),
            to,
            told: Mutex::new(told),
        }
    }

    /// What it has told.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        // a panic leaves numbers, each complete
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its row at this time.
    pub fn row(&self, now: u64) -> Row {
        let told = self.told();
        Row {
            name: self.name.clone(),
            to: self.to.clone(),
            last: told.last,
            behind_seconds: told.waiting.map_or(0, |at| now.saturating_sub(at)),
            sent: told.sent,
            failures: told.failures,
            lost: told.lost,
            sent_at: told.sent_at,
            error: told.error.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::catalogue::DESTINATIONS;

    #[test]
    fn a_row_has_the_columns_of_the_table() {
        let standing = Standing::new("noc", "syslog+udp://192.0.2.1:514".into(), None);
        standing.told().waiting = Some(90);
        let row = serde_json::to_value(standing.row(100)).unwrap();
        assert_eq!(row["behind_seconds"], 10);
        let mut columns: Vec<_> = DESTINATIONS.columns.iter().map(|c| c.field).collect();
        columns.sort_unstable();
        let fields: Vec<_> = row.as_object().unwrap().keys().collect();
        assert_eq!(fields, columns);
    }
}
