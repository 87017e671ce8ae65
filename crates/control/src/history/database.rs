//! The database of the history: how it is opened and written, and how what is old leaves it. The history's page describes its tables.

use super::earlier::{Earlier, Left};
use super::event;
use super::keys::{Key, Lengths};
use super::sqlite::{self, Format, as_io, is_damage, set_aside};
use super::sums;
use super::trouble::{self, Tally};
use config::folder;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Name of the database in its directory.
const NAME: &str = "events.db";
/// Size at which a segment is full. Keys of one segment stand together, so this bounds what a second of events changes on the disk.
const FULL: Full = Full {
    events: 32_768,
    octets: 16 << 20,
    sum: 4_096,
};
/// Age of its first event at which a segment is full, in seconds, so that expired events can be removed in time.
const DAY: u32 = 86_400;
/// Free pages that are given back to the file system at once.
const PAGES_GIVEN_BACK: u32 = 2_048;
/// Largest number of a block: the identity of an event has 16 bits for its place in the block.
pub(super) const MOST_BLOCKS: u64 = 1 << 47;

/// What is told to be on the disk has to be there after a loss of power.
const FORMAT: Format = Format {
    version: 1,
    tables: TABLES,
    synchronous: "FULL",
};
const TABLES: &str = "
    CREATE TABLE progress (last INTEGER NOT NULL) STRICT;
    INSERT INTO progress VALUES (0);
    CREATE TABLE segment (
        first INTEGER PRIMARY KEY,
        last INTEGER NOT NULL,
        events INTEGER NOT NULL,
        octets INTEGER NOT NULL,
        earliest INTEGER NOT NULL,
        latest INTEGER NOT NULL,
        lengths BLOB NOT NULL
    ) STRICT;
    CREATE TABLE event (id INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT;
    CREATE TABLE key (
        segment INTEGER NOT NULL,
        key BLOB NOT NULL,
        event INTEGER NOT NULL,
        PRIMARY KEY (segment, key, event)
    ) STRICT, WITHOUT ROWID;
";

/// Limits of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long events are kept, in seconds.
    pub keep: u32,
    /// Maximum size in octets; one segment more is possible.
    pub octets: u64,
}

/// Status of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Blocks up to this one are on the disk.
    pub last: u64,
    /// Size in octets.
    pub octets: u64,
    /// Time of the oldest event, in seconds since 1970.
    pub oldest: Option<u32>,
    /// Segments that were removed early because of the size limit.
    pub displaced: u64,
    /// Time of the newest event in these segments.
    pub displaced_until: Option<u32>,
    /// How long events should be kept, in seconds.
    pub keep: u32,
    /// Number of damaged places.
    pub damaged: u64,
    /// Why nothing can be written at present.
    pub failing: Option<String>,
}

impl Status {
    /// Whether events were removed for lack of room that should still be kept at this time.
    pub fn is_cut_short(&self, unix: u32) -> bool {
        let until = self.displaced_until;
        until.is_some_and(|until| unix.saturating_sub(until) <= self.keep)
    }
}

/// Size at which a segment is full: events, or octets of their records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    pub events: u32,
    pub octets: u64,
    /// So many events are summed up together.
    pub sum: u32,
}

/// Blocks whose keys stand together, and which leave together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Numbers of its first and last block.
    pub first: u64,
    pub last: u64,
    pub events: u32,
    /// Octets of their records.
    octets: u64,
    /// Times of its first and last event, in seconds since 1970.
    pub earliest: u32,
    pub latest: u32,
    /// Lengths of the prefixes in its keys.
    pub lengths: Lengths,
    /// So many of its events were there when they were summed up last.
    summed: u32,
}

impl Segment {
    const ALL: &str =
        "SELECT first, last, events, octets, earliest, latest, lengths FROM segment ORDER BY first";

    fn new(first: u64) -> Self {
        Segment {
            first,
            last: first,
            events: 0,
            octets: 0,
            earliest: u32::MAX,
            latest: 0,
            lengths: Lengths::default(),
            summed: 0,
        }
    }

    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let lengths: Vec<u8> = row.get(6)?;
        Ok(Segment {
            first: row.get(0)?,
            last: row.get(1)?,
            events: row.get(2)?,
            octets: row.get(3)?,
            earliest: row.get(4)?,
            latest: row.get(5)?,
            lengths: Lengths::of(&lengths),
            summed: 0,
        })
    }

    /// Identities of its events.
    pub fn ids(&self) -> [u64; 2] {
        [id(self.first, 0), id(self.last + 1, 0)]
    }
}

/// Identity of the event at this place of a block.
pub(super) fn id(block: u64, place: usize) -> u64 {
    block << 16 | place as u64
}

/// Segments, the oldest or the latest first.
pub(super) fn segments(connection: &Connection, backward: bool) -> rusqlite::Result<Vec<Segment>> {
    let order = if backward { "DESC" } else { "ASC" };
    let mut all = connection.prepare_cached(&format!("{} {order}", Segment::ALL))?;
    all.query_map([], Segment::of)?.collect()
}

/// Reads the history while it is being written.
#[derive(Clone, Debug)]
pub struct Reader {
    path: PathBuf,
    status: Arc<Mutex<Status>>,
}

impl Reader {
    /// Connection for one question.
    pub(super) fn connect(&self) -> rusqlite::Result<Connection> {
        sqlite::open_to_read(&self.path)
    }

    /// Status of the history.
    pub fn status(&self) -> Status {
        lock(&self.status).clone()
    }

    /// The history's directory.
    pub(super) fn directory(&self) -> &Path {
        folder::above(&self.path)
    }

    /// Another file of the history's directory.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// Logs and counts damage.
    pub(super) fn damaged(&self, path: &Path, why: &dyn std::error::Error) {
        tracing::error!(path = %path.display(), %why, "part of the history is damaged: its events cannot be shown");
        lock(&self.status).damaged += 1;
    }

    /// Reports that a question could not be answered. Damage is told once.
    pub(super) fn cannot_read(&self, why: &rusqlite::Error) {
        match is_damage(why) && self.status().damaged == 0 {
            true => self.damaged(&self.path, why),
            false => {
                tracing::warn!(path = %self.path.display(), %why, "cannot read the history")
            }
        }
    }
}

fn lock(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    // A panic leaves numbers, each complete.
    status
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The history, open for writing.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    bounds: Bounds,
    /// Size at which a segment is full.
    full: Full,
    last: u64,
    /// The segment that blocks are added to.
    open: Option<Segment>,
    /// First blocks of others that are not summed up yet.
    unsummed: Vec<u64>,
    /// Segments of earlier versions that are not taken over yet.
    earlier: Earlier,
    reader: Reader,
}

impl Database {
    /// Opens the history in a directory. Creates the directory if needed. A database that cannot be read is logged, gets another name,
    /// and a new one takes its place. Of the segments of earlier versions the latest is taken over.
    ///
    /// # Errors
    /// The system's error, with the place.
    pub fn open(directory: &Path, bounds: Bounds) -> io::Result<Self> {
        Self::open_with(directory, bounds, FULL)
    }

    /// Opens the history with another segment size.
    pub(super) fn open_with(directory: &Path, bounds: Bounds, full: Full) -> io::Result<Self> {
        folder::make(directory)?;
        let reader = Reader {
            path: directory.join(NAME),
            status: Arc::default(),
        };
        let (connection, last) = prepare_or_replace(&reader)?;
        let mut database = Database {
            connection,
            bounds,
            full,
            last,
            open: None,
            unsummed: Vec::new(),
            earlier: Earlier::find(directory)?,
            reader,
        };
        database.last = database.last.max(database.earlier.last);
        if let Err(error) = database.take_over() {
            tracing::error!(%error, "a segment of the history of an earlier version cannot be taken over yet");
        }
        let resumed = database.resume();
        if database.settle(resumed).is_err() {
            let resumed = database.resume();
            database.settle(resumed)?;
        }
        Ok(database)
    }

    /// Number of the last block.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Reader for queries.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Replaces the limits.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Sets or clears the reason why nothing can be written.
    pub(super) fn set_failing(&self, why: Option<String>) {
        lock(&self.reader.status).failing = why;
    }

    /// Goes on with the last segment.
    fn resume(&mut self) -> rusqlite::Result<()> {
        let mut segments = segments(&self.connection, false)?;
        self.open = segments.pop();
        self.unsummed.clear();
        for segment in segments {
            if sums::last(&self.connection, segment.first)? < Some(segment.last) {
                self.unsummed.push(segment.first);
            }
        }
        self.tell()
    }

    /// Adds blocks with increasing numbers and waits until they are on the disk, all or none. Blocks that are already there are
    /// skipped.
    ///
    /// # Errors
    /// The system's error. A database that turned out to be damaged is replaced: the next try goes into the new one.
    pub fn append<'a>(
        &mut self,
        blocks: impl IntoIterator<Item = (u64, &'a [u8])>,
    ) -> io::Result<()> {
        let last = self.last;
        let new = blocks.into_iter().filter(|(number, _)| *number > last);
        let done = self.write(new);
        self.settle(done)
    }

    fn write<'a>(&mut self, blocks: impl Iterator<Item = (u64, &'a [u8])>) -> rusqlite::Result<()> {
        let mut blocks = blocks.peekable();
        if blocks.peek().is_none() {
            return Ok(());
        }
        let mut batch = Batch::begin(&mut self.connection, self.open.clone(), self.full)?;
        let mut last = self.last;
        for (number, block) in blocks {
            batch.add(number, block)?;
            last = number;
        }
        let (open, full) = batch.commit(last)?;
        (self.open, self.last) = (open, last);
        self.unsummed.extend(full);
        self.tell()
    }

    /// Removes segments that have expired or do not fit any more, takes over a segment of an earlier version, and sums up events.
    ///
    /// # Errors
    /// The system's error. Nothing of what was added is lost by it.
    pub fn tend(&mut self, now: u32) -> io::Result<()> {
        self.take_over()?;
        let done = self.let_go(now).and_then(|()| self.sum_up());
        let done = done.and_then(|()| self.tell());
        self.settle(done)
    }

    /// Whether segments of earlier versions are still to be taken over, or to be summed up.
    pub(super) fn has_more_to_tend(&self) -> bool {
        !self.earlier.is_empty() || !self.unsummed.is_empty()
    }

    /// Sums up the latest segment that is not, and what the open one has more.
    fn sum_up(&mut self) -> rusqlite::Result<()> {
        let sum = self.full.sum;
        if let Some(open) = &mut self.open
            && open.events - open.summed >= sum
        {
            let left = sums::add(&mut self.connection, open, sum as usize, false)?;
            open.summed = open.events.saturating_sub(left);
        }
        let Some(first) = self.unsummed.pop() else {
            return Ok(());
        };
        let segment = segments(&self.connection, false)?;
        match segment.iter().find(|segment| segment.first == first) {
            Some(segment) => sums::add(&mut self.connection, segment, sum as usize, true).map(drop),
            None => Ok(()),
        }
    }

    /// Takes over the latest segment of those that earlier versions left.
    fn take_over(&mut self) -> io::Result<()> {
        let Some((path, first)) = self.earlier.latest() else {
            return Ok(());
        };
        let is_damaged = match Left::read(&path, first) {
            Err(why) => {
                self.reader.damaged(&path, &why);
                true
            }
            Ok(left) => {
                let taken = self.take(first, &left);
                let is_damaged = *taken.as_ref().unwrap_or(&false);
                if is_damaged {
                    let why = io::Error::other("a block in it is damaged");
                    self.reader.damaged(&path, &why);
                }
                self.settle(taken.map(drop))?;
                is_damaged
            }
        };
        self.earlier.done(is_damaged)
    }

    /// Adds the blocks of a segment of an earlier version as a segment. Returns whether later ones cannot be read.
    fn take(&mut self, first: u64, left: &Left) -> rusqlite::Result<bool> {
        let segment = Some(Segment::new(first));
        let Some((last, _)) = left.blocks().last() else {
            return Ok(left.blocks().end_is_damaged());
        };
        self.last = self.last.max(last);
        let whole = Full {
            events: u32::MAX,
            octets: u64::MAX,
            ..self.full
        };
        let mut batch = Batch::begin(&mut self.connection, segment, whole)?;
        let mut blocks = left.blocks();
        for (number, block) in blocks.by_ref() {
            batch.add(number, block)?;
        }
        batch.commit(self.last)?;
        self.unsummed.push(first);
        Ok(blocks.end_is_damaged())
    }

    /// What an access to the database has led to.
    fn settle(&mut self, done: rusqlite::Result<()>) -> io::Result<()> {
        let Err(error) = done else {
            return Ok(());
        };
        if is_damage(&error) {
            let path = &self.reader.path;
            self.reader.damaged(path, &error);
            self.open = None;
            self.unsummed.clear();
            set_aside(path)?;
            (self.connection, _) = prepare(path, self.last).map_err(as_io)?;
        }
        Err(as_io(error))
    }

    fn let_go(&mut self, now: u32) -> rusqlite::Result<()> {
        let most = (self.bounds.keep / 8).min(DAY);
        let old = |open: &Segment| open.events > 0 && now.saturating_sub(open.earliest) > most;
        let over = self.open.take_if(|open| old(open));
        self.unsummed.extend(over.map(|over| over.first));
        while let Some((oldest, is_displaced)) = self.to_let_go(now)? {
            remove(&mut self.connection, &oldest)?;
            if is_displaced {
                let mut status = lock(&self.reader.status);
                status.displaced += 1;
                status.displaced_until = Some(oldest.latest);
            }
        }
        trouble::let_go(&self.connection, now, self.bounds.keep)?;
        self.give_back()
    }

    /// The oldest segment if it has to be removed, and whether that is early.
    fn to_let_go(&self, now: u32) -> rusqlite::Result<Option<(Segment, bool)>> {
        let oldest = format!("{} LIMIT 1", Segment::ALL);
        let mut oldest = self.connection.prepare_cached(&oldest)?;
        let oldest = oldest.query_map([], Segment::of)?.next().transpose()?;
        let open = self.open.as_ref().map(|open| open.first);
        let Some(oldest) = oldest.filter(|oldest| Some(oldest.first) != open) else {
            return Ok(None);
        };
        let over = now.saturating_sub(oldest.latest) > self.bounds.keep;
        let too_much = self.octets()? > self.bounds.octets;
        Ok((over || too_much).then_some((oldest, !over)))
    }

    /// Octets that the history uses.
    fn octets(&self) -> rusqlite::Result<u64> {
        let pages = self.pragma("page_count")? - self.pragma("freelist_count")?;
        Ok(pages * self.pragma("page_size")?)
    }

    fn pragma(&self, name: &str) -> rusqlite::Result<u64> {
        self.connection
            .pragma_query_value(None, name, |row| row.get(0))
    }

    /// Gives pages back to the file system if more than a quarter of them are free.
    fn give_back(&self) -> rusqlite::Result<()> {
        if self.pragma("freelist_count")? > self.pragma("page_count")? / 4 {
            let some = format!("PRAGMA incremental_vacuum({PAGES_GIVEN_BACK})");
            let mut some = self.connection.prepare_cached(&some)?;
            let mut pages = some.query([])?; // each step is one page
            while pages.next()?.is_some() {}
        }
        Ok(())
    }

    /// Shows readers what is on the disk now.
    fn tell(&self) -> rusqlite::Result<()> {
        let octets = self.octets()?;
        let oldest = "SELECT earliest FROM segment WHERE events > 0 ORDER BY first LIMIT 1";
        let mut oldest = self.connection.prepare_cached(oldest)?;
        let oldest = oldest.query_map([], |row| row.get(0))?.next().transpose()?;
        let mut status = lock(&self.reader.status);
        (status.last, status.oldest) = (self.last, oldest);
        (status.keep, status.octets) = (self.bounds.keep, octets);
        Ok(())
    }
}

impl Drop for Database {
    /// An earlier version goes on with the numbers of this one.
    fn drop(&mut self) {
        if let Err(error) = self.earlier.leave(self.last) {
            tracing::warn!(%error, "an earlier version of the control plane would number events from the beginning");
        }
    }
}

/// Blocks that are written together.
struct Batch<'a> {
    transaction: Transaction<'a>,
    segment: Option<Segment>,
    full: Full,
    /// First blocks of segments that became full.
    filled: Vec<u64>,
    /// Segment, key and event.
    keys: Vec<(u64, Vec<u8>, u64)>,
    tally: Tally,
}

impl<'a> Batch<'a> {
    fn begin(
        connection: &'a mut Connection,
        segment: Option<Segment>,
        full: Full,
    ) -> rusqlite::Result<Self> {
        Ok(Batch {
            transaction: connection.transaction_with_behavior(TransactionBehavior::Immediate)?,
            segment,
            full,
            filled: Vec::new(),
            keys: Vec::new(),
            tally: Tally::default(),
        })
    }

    fn add(&mut self, number: u64, block: &[u8]) -> rusqlite::Result<()> {
        if number >= MOST_BLOCKS {
            let why = format!("block {number}: there cannot be so many");
            return Err(rusqlite::Error::ToSqlConversionFailure(why.into()));
        }
        let is_full = |s: &Segment| s.events >= self.full.events || s.octets >= self.full.octets;
        if self.segment.as_ref().is_some_and(is_full) {
            self.save_segment()?;
            self.filled
                .extend(self.segment.take().map(|full| full.first));
        }
        let segment = self.segment.get_or_insert_with(|| Segment::new(number));
        segment.last = number;
        let mut insert = self
            .transaction
            .prepare_cached("INSERT OR IGNORE INTO event VALUES (?1, ?2)")?;
        for (place, record) in event::records(block).enumerate() {
            let id = id(number, place);
            let is_new = insert.execute(params![id, record])? > 0;
            segment.octets += record.len() as u64;
            let Some(event) = event::read(record) else {
                continue; // of a later version
            };
            segment.events += 1;
            segment.earliest = segment.earliest.min(event.unix);
            segment.latest = segment.latest.max(event.unix);
            if is_new {
                self.tally.add(&event);
            }
            event.keys(|key| {
                if let Key::Prefix(prefix) = &key {
                    segment.lengths.insert(*prefix);
                }
                self.keys.push((segment.first, key.octets(), id));
            });
        }
        Ok(())
    }

    fn save_segment(&self) -> rusqlite::Result<()> {
        let Some(segment) = &self.segment else {
            return Ok(());
        };
        let mut save = self
            .transaction
            .prepare_cached("INSERT OR REPLACE INTO segment VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        save.execute(params![
            segment.first,
            segment.last,
            segment.events,
            segment.octets,
            segment.earliest,
            segment.latest,
            segment.lengths.octets()
        ])?;
        Ok(())
    }

    /// Writes it to the disk. Returns the segment to go on with, and the first blocks of those that are full.
    fn commit(mut self, last: u64) -> rusqlite::Result<(Option<Segment>, Vec<u64>)> {
        // in the order of the disk
        self.keys.sort_unstable();
        let mut insert = self
            .transaction
            .prepare_cached("INSERT OR IGNORE INTO key VALUES (?1, ?2, ?3)")?;
        for (segment, key, event) in &self.keys {
            insert.execute(params![segment, key, event])?;
        }
        drop(insert);
        self.save_segment()?;
        self.tally.save(&self.transaction)?;
        self.transaction
            .prepare_cached(
                "UPDATE progress SET last = max(last, ?1), counted = max(last, ?1),
                 counted_since = coalesce(min(counted_since, ?2), counted_since, ?2)",
            )?
            .execute(params![last, self.tally.since()])?;
        self.transaction.commit()?;
        Ok((self.segment, self.filled))
    }
}

fn remove(connection: &mut Connection, segment: &Segment) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("DELETE FROM key WHERE segment = ?1", [segment.first])?;
    transaction.execute(
        "DELETE FROM event WHERE id >= ?1 AND id < ?2",
        segment.ids(),
    )?;
    transaction.execute("DELETE FROM segment WHERE first = ?1", [segment.first])?;
    transaction.commit()
}

/// Opens the database, and makes it if it is not there. Returns the number of its last block, which is `last` at least.
fn prepare(path: &Path, last: u64) -> rusqlite::Result<(Connection, u64)> {
    let mut connection = sqlite::open(path, &FORMAT)?;
    connection.execute("UPDATE progress SET last = max(last, ?1)", [last])?;
    let last = connection.query_row("SELECT last FROM progress", [], |row| row.get(0))?;
    trouble::prepare(&mut connection)?;
    Ok((connection, last))
}

/// As [`prepare`]. One that cannot be read gets another name.
fn prepare_or_replace(reader: &Reader) -> io::Result<(Connection, u64)> {
    let path = &reader.path;
    match prepare(path, 0) {
        Err(error) if is_damage(&error) => {
            reader.damaged(path, &error);
            set_aside(path)?;
            prepare(path, 0)
        }
        done => done,
    }
    .map_err(as_io)
}
