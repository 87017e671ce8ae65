//! Where sessions ended and set-ups failed, hour by hour. It is counted as events are written, in the same transaction: so a question reads
//! a row for each hour and group of lines, however many events there are.

use super::event::{Event, Step, What};
use super::{Reader, Subscriber};
use northbound::{EventKind, Trouble, TroubleHour};
use rusqlite::{Connection, Transaction, params};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Seconds of an hour.
const HOUR: u32 = 3600;
/// Hours in an answer.
const HOURS: u32 = 24;
/// Maximum number of rows in an answer.
const MOST: usize = 64;
/// How long counts are kept, in seconds, if events are kept for as long: each of 4,094 VLANs may have a row for each hour.
const KEEP: u32 = 8 * 24 * HOUR;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS trouble (
        hour INTEGER NOT NULL,
        lines TEXT NOT NULL,
        ended INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        refused INTEGER NOT NULL,
        PRIMARY KEY (hour, lines)
    ) STRICT, WITHOUT ROWID;
";
/// Block up to which events are counted, and time of the first one that is. They stand where each transaction writes anyway.
const COLUMNS: &str = "
    ALTER TABLE progress ADD COLUMN counted INTEGER;
    ALTER TABLE progress ADD COLUMN counted_since INTEGER;
";

/// Makes the table if it is not there. An earlier version opens the database as well, and counts nothing: behind it, counting begins anew.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLE)?;
    let has_columns =
        "SELECT EXISTS (SELECT 1 FROM pragma_table_info('progress') WHERE name = 'counted')";
    if !transaction.query_row(has_columns, [], |row| row.get(0))? {
        transaction.execute_batch(COLUMNS)?;
    }
    let anew = "UPDATE progress SET counted = last, counted_since = NULL WHERE counted IS NOT last";
    if transaction.execute(anew, [])? > 0 {
        transaction.execute("DELETE FROM trouble", [])?;
    }
    transaction.commit()
}

/// Removes counts that are not kept any longer. `keep`: how long events are kept, in seconds.
pub(super) fn let_go(connection: &Connection, now: u32, keep: u32) -> rusqlite::Result<()> {
    let oldest = now.saturating_sub(keep.min(KEEP)) / HOUR;
    let mut old = connection.prepare_cached("DELETE FROM trouble WHERE hour < ?1")?;
    old.execute([oldest]).map(drop)
}

/// Ended, failed and refused ones.
type Counts = [u64; 3];

/// Counts of events that are written together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: HashMap<(u32, String), Counts>,
    since: Option<u32>,
}

impl Tally {
    pub fn add(&mut self, event: &Event<'_>) {
        self.since = Some(self.since.map_or(event.unix, |since| since.min(event.unix)));
        let What::Subscriber(who, step) = &event.what else {
            return;
        };
        let counted = match step {
            Step::Ended { .. } => 0,
            Step::Failed { .. } => 1,
            Step::Refused { .. } => 2,
            Step::Online { .. }
            | Step::Changed { .. }
            | Step::Authorized { .. }
            | Step::FellBack { .. }
            | Step::Counted { .. } => return,
        };
        let counts = self.counts.entry((event.unix / HOUR, lines_of(who)));
        counts.or_default()[counted] += 1;
    }

    /// Time of the first event.
    pub fn since(&self) -> Option<u32> {
        self.since
    }

    /// Adds them to those of the database.
    pub fn save(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut add = transaction.prepare_cached(
            "INSERT INTO trouble VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET ended = ended + excluded.ended,
             failed = failed + excluded.failed, refused = refused + excluded.refused",
        )?;
        for ((hour, lines), [ended, failed, refused]) in &self.counts {
            add.execute(params![hour, lines, ended, failed, refused])?;
        }
        Ok(())
    }
}

/// Lines of a subscriber's outer VLAN as a subject of events: `up1/access0.100.*`, or its own where that has no inner ones.
fn lines_of(who: &Subscriber<'_>) -> String {
    let [outer, inner] = who.vlans;
    let outer = Subscriber {
        vlans: [outer, None],
        ..*who
    };
    match inner {
        Some(_) => outer.place() + ".*",
        None => outer.place(),
    }
}

impl Reader {
    /// Counts of the 24 hours up to this time, those with most first. `kind`: only ended, failed or refused ones.
    pub fn trouble(&self, until: u32, kind: Option<EventKind>) -> Vec<Trouble> {
        self.try_trouble(until, kind).unwrap_or_else(|error| {
            self.cannot_read(&error);
            Vec::new()
        })
    }

    fn try_trouble(&self, until: u32, kind: Option<EventKind>) -> rusqlite::Result<Vec<Trouble>> {
        let last = until / HOUR;
        let first = last.saturating_sub(HOURS - 1);
        let connection = self.connect()?;
        let since = "SELECT counted_since FROM progress";
        let since: Option<u32> = connection.query_row(since, [], |row| row.get(0))?;
        let of_hour = "SELECT lines, ended, failed, refused FROM trouble WHERE hour = ?1";
        let mut of_hour = connection.prepare(of_hour)?;
        let mut found = Found::default();
        for hour in first..=last {
            let mut rows = of_hour.query([hour])?;
            while let Some(row) = rows.next()? {
                let counts = only(kind, [row.get(1)?, row.get(2)?, row.get(3)?]);
                found.add(row.get_ref(0)?.as_str()?, (hour - first) as usize, counts);
            }
        }
        let row = |(lines, hours): &(String, Hours)| trouble(lines.clone(), first, hours, since);
        Ok(found.worst().map(row).collect())
    }
}

/// Lines of an answer with their counts. There are 100,000 rows if each of 4,094 VLANs has some in each hour.
#[derive(Default)]
struct Found {
    places: HashMap<String, usize, foldhash::fast::RandomState>,
    lines: Vec<(String, Hours)>,
    totals: Vec<u64>,
    /// Place after the last one. Each hour has its lines in order, so the next row is often there.
    next: usize,
}

impl Found {
    fn add(&mut self, lines: &str, hour: usize, counts: Counts) {
        let total = counts.iter().sum::<u64>();
        let is_next = |(next, _): &&(String, Hours)| next == lines;
        let next = self.lines.get(self.next).filter(is_next);
        let next = next.map(|_| self.next);
        let place = match next.or_else(|| self.places.get(lines).copied()) {
            Some(place) => place,
            None if total == 0 => return,
            None => {
                let place = self.lines.len();
                self.places.insert(lines.to_owned(), place);
                self.lines.push((lines.to_owned(), Hours::default()));
                self.totals.push(0);
                place
            }
        };
        self.lines[place].1[hour] = counts;
        self.totals[place] += total;
        self.next = place + 1;
    }

    /// The [`MOST`] lines with most first.
    fn worst(&self) -> impl Iterator<Item = &(String, Hours)> {
        let mut places: Vec<usize> = (0..self.lines.len()).collect();
        places.sort_unstable_by_key(|place| (Reverse(self.totals[*place]), &self.lines[*place].0));
        places
            .into_iter()
            .take(MOST)
            .map(|place| &self.lines[place])
    }
}

/// Counts of each hour of an answer.
type Hours = [Counts; HOURS as usize];

fn only(kind: Option<EventKind>, [ended, failed, refused]: Counts) -> Counts {
    match kind {
        Some(EventKind::Ended) => [ended, 0, 0],
        Some(EventKind::Failed) => [0, failed, 0],
        Some(EventKind::Refused) => [0, 0, refused],
        _ => [ended, failed, refused],
    }
}

/// A row of an answer.
fn trouble(lines: String, first: u32, hours: &Hours, since: Option<u32>) -> Trouble {
    let sum = |counted: usize| hours.iter().map(|counts| counts[counted]).sum();
    let hour = |(hour, [ended, failed, refused]): (u32, &Counts)| TroubleHour {
        at: u64::from(hour * HOUR),
        ended: *ended,
        failed: *failed,
        refused: *refused,
    };
    Trouble {
        lines,
        ended: sum(0),
        failed: sum(1),
        refused: sum(2),
        hours: (first..).zip(hours).map(hour).collect(),
        counted_since: since.map(u64::from),
    }
}
