//! Figures over time: each ten seconds for a day, and each five minutes for a month.

use super::database::Reader;
use super::sqlite::{self, Format, is_damage, set_aside};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::{Path, PathBuf};

/// Time between two samples, in seconds.
pub(crate) const SAMPLE: u32 = 10;
/// Time that the mean and the highest of samples stand for in the long run, in seconds.
const LONG: u32 = 300;
/// How long samples are kept, in seconds; and how long what stands for several of them.
const SAMPLES_KEPT: u32 = 86_400;
const LONG_KEPT: u32 = 30 * 86_400;
/// Maximum number of rows for each series in an answer.
const MOST_ROWS: u32 = 720;
/// Lengths of time that a row may stand for, in seconds.
const STEPS: [u32; 9] = [SAMPLE, 30, 60, 120, LONG, 900, 1_800, 3_600, 7_200];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Measure {
    /// Name of the figure, such as `online`.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
}

/// What is measured, and of what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Series {
    /// The figure.
    pub measure: Measure,
    /// User plane, port, pool or aggregate; empty for the gateway as a whole.
    pub resource: String,
}

/// Figures of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time in seconds since 1970.
    pub unix: u32,
    /// Each series with its value.
    pub values: Vec<(Series, f64)>,
}

/// Selection of figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FigureQuery {
    /// Name of the figure; empty: one row for each series, which stands for the whole time.
    pub name: String,
    /// Of what; `None`: of everything.
    pub resource: Option<String>,
    /// Begin, in seconds since 1970.
    pub since: u32,
    /// End; what begins then does not count.
    pub until: u32,
}

/// A figure over some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Of what; empty for the gateway as a whole.
    pub resource: String,
    /// What it counts.
    pub unit: String,
    /// Begin of the time, in seconds since 1970.
    pub unix: u32,
    /// Length of the time in seconds.
    pub seconds: u32,
    /// Mean of the samples.
    pub mean: f64,
    /// Highest sample.
    pub most: f64,
    /// Time of the highest sample.
    pub most_at: u32,
}

/// Name of the database in the history's directory.
const NAME: &str = "figures.db";
/// Nobody was promised the last figures before a loss of power.
const FORMAT: Format = Format {
    version: 1,
    tables: TABLES,
    synchronous: "NORMAL",
};
const TABLES: &str = "
    CREATE TABLE series (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        resource TEXT NOT NULL,
        unit TEXT NOT NULL,
        UNIQUE (name, resource)
    ) STRICT;
    CREATE TABLE figure (
        step INTEGER NOT NULL,
        series INTEGER NOT NULL,
        at INTEGER NOT NULL,
        mean REAL NOT NULL,
        most REAL NOT NULL,
        PRIMARY KEY (step, series, at)
    ) STRICT, WITHOUT ROWID;
";

/// The database of figures, beside that of the events: neither takes the other's room, nor its faults.
#[derive(Debug)]
pub struct Figures {
    path: PathBuf,
    /// Opened with the first figures, and anew after a fault.
    connection: Option<Connection>,
    failing: bool,
}

impl Figures {
    /// The figures in the history's directory.
    pub fn beside(directory: &Path) -> Self {
        Figures {
            path: directory.join(NAME),
            connection: None,
            failing: false,
        }
    }

    /// Adds the figures of a moment. When five minutes are over, they are put together, and what is old is removed. What cannot be written is
    /// lost, which the log says once.
    pub fn add(&mut self, sample: &Sample) {
        let Err(error) = self.write(sample) else {
            self.failing = false;
            return;
        };
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(path = %self.path.display(), %error, "cannot write figures of the gateway: they are lost meanwhile");
        }
        self.connection = None;
        if is_damage(&error)
            && let Err(error) = set_aside(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot rename the damaged figures");
        }
    }

    fn write(&mut self, sample: &Sample) -> rusqlite::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(sqlite::open(&self.path, &FORMAT)?),
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before: Option<u32> = transaction.query_row(
            "SELECT max(at) FROM figure WHERE step = ?1 AND series = (SELECT min(series) FROM figure WHERE step = ?1)",
            [SAMPLE],
            |row| row.get(0),
        )?;
        add_samples(&transaction, sample)?;
        let (from, to) = (before.map(|at| at / LONG), sample.unix / LONG);
        if let Some(from) = from.filter(|from| *from < to) {
            condense(&transaction, from * LONG, to * LONG)?;
        }
        transaction.commit()
    }
}

fn add_samples(connection: &Connection, sample: &Sample) -> rusqlite::Result<()> {
    let mut known = connection.prepare_cached(
        "INSERT INTO series (name, resource, unit) VALUES (?1, ?2, ?3)
         ON CONFLICT (name, resource) DO UPDATE SET unit = ?3 RETURNING id",
    )?;
    let mut add =
        connection.prepare_cached("INSERT OR REPLACE INTO figure VALUES (?1, ?2, ?3, ?4, ?4)")?;
    for (Series { measure, resource }, value) in &sample.values {
        let series = params![measure.name, resource, measure.unit];
        let id: i64 = known.query_row(series, |row| row.get(0))?;
        add.execute(params![SAMPLE, id, sample.unix, value])?;
    }
    Ok(())
}

/// Puts samples of this time together, and removes what is old at its end.
fn condense(connection: &Connection, from: u32, to: u32) -> rusqlite::Result<()> {
    let mut all = connection.prepare_cached("SELECT id FROM series")?;
    let all: Vec<i64> = all
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut condense = connection.prepare_cached(
        "INSERT OR REPLACE INTO figure SELECT ?1, series, at / ?1 * ?1, avg(mean), max(most) FROM figure
         WHERE step = ?2 AND series = ?3 AND at >= ?4 AND at < ?5 GROUP BY at / ?1",
    )?;
    let mut remove = connection
        .prepare_cached("DELETE FROM figure WHERE step = ?1 AND series = ?2 AND at < ?3")?;
    for series in all {
        condense.execute(params![LONG, SAMPLE, series, from, to])?;
        remove.execute(params![SAMPLE, series, to.saturating_sub(SAMPLES_KEPT)])?;
        remove.execute(params![LONG, series, to.saturating_sub(LONG_KEPT)])?;
    }
    connection.execute(
        "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM figure WHERE step = ?1 AND series = id)
         AND NOT EXISTS (SELECT 1 FROM figure WHERE step = ?2 AND series = id)",
        [SAMPLE, LONG],
    )?;
    Ok(())
}

impl Reader {
    /// Selected figures, series by series, each in the order of time. `now`: seconds since 1970.
    pub fn figures(&self, query: &FigureQuery, now: u32) -> Vec<Figure> {
        let path = self.beside(NAME);
        if !path.exists() {
            return Vec::new(); // before the first sample
        }
        let found = sqlite::open_to_read(&path).and_then(|c| find(&c, query, now));
        found.unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "cannot read figures of the gateway");
            Vec::new()
        })
    }
}

fn find(connection: &Connection, query: &FigureQuery, now: u32) -> rusqlite::Result<Vec<Figure>> {
    let span = query.until.saturating_sub(query.since);
    let is_recent = now.saturating_sub(query.since) <= SAMPLES_KEPT;
    // Without a name one row stands for the whole time.
    let (origin, step) = match query.name.is_empty() {
        true => (query.since, span.max(1)),
        false => (0, step_of(span, is_recent)),
    };
    // What stands for several samples is less to read, but the latest of them are not put together yet.
    let source = match is_recent && (step < LONG || span <= 2 * LONG) {
        true => SAMPLE,
        false => LONG,
    };
    // SQLite takes `at` from the row with the highest value.
    let mut rows = connection.prepare_cached(
        "SELECT name, resource, unit, (at - ?8) / ?9 AS turn, sum(mean * step) / sum(step), max(most), at
         FROM series JOIN figure ON series.id = figure.series
         WHERE (?1 = '' OR name = ?1) AND (?2 IS NULL OR resource = ?2) AND at >= ?4 AND at < ?5
         AND (step = ?3 OR (step = ?6 AND at >= ?7))
         GROUP BY name, resource, turn ORDER BY name, resource, turn",
    )?;
    let selected = params![
        query.name,
        query.resource,
        source,
        query.since,
        query.until,
        SAMPLE,
        now / LONG * LONG,
        origin,
        step
    ];
    let rows = rows.query_map(selected, |row| {
        let turn: u32 = row.get(3)?;
        Ok(Figure {
            name: row.get(0)?,
            resource: row.get(1)?,
            unit: row.get(2)?,
            unix: origin + turn * step,
            seconds: step,
            mean: row.get(4)?,
            most: row.get(5)?,
            most_at: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// Seconds that a row stands for, so that there are not too many.
fn step_of(span: u32, is_recent: bool) -> u32 {
    let fits = |step: &u32| span / step <= MOST_ROWS && (is_recent || *step >= LONG);
    STEPS
        .into_iter()
        .find(fits)
        .unwrap_or(STEPS[STEPS.len() - 1])
}
