//! Events of a segment that a question may select, found by keys and sums, and not by reading them.

use super::database::Segment;
use super::keys::{Key, exactly};
use super::search::Query;
use super::sums::{self, Group, Sum, sum_of};
use northbound::EventKind;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use std::ops::Range;

/// One in so many events of a segment are few: to look at each is sooner done than to find others.
const FEW: u32 = 32;
/// Of each subject one key in so many events is read in turn, until one has no more. In the first turn there are as many as sums: so many events
/// are sooner looked at than sums.
const TURNS: [u32; 3] = [4096, 256, FEW];
/// An event is read in the time of so many keys. Events of a subject that has more keys for each event in question are sooner read than found.
const EVENT: usize = 32;
/// More keys than a segment has.
const NO_END: usize = u32::MAX as usize;

/// Event that may be selected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub id: u64,
    /// It is selected, and need not be read for that.
    pub is_certain: bool,
}

/// Ranges of keys.
type Keys = Vec<Range<Vec<u8>>>;

impl Query {
    /// Keys of each of its subjects in a segment. Each finds the events about its subject, and no others.
    fn keys(&self, segment: &Segment) -> Vec<Keys> {
        let subjects = self.subjects.iter().map(|s| s.keys(&segment.lengths));
        let alarms = self.alarms.then(|| vec![exactly(&Key::Alarms)]);
        subjects.chain(alarms).collect()
    }

    /// What a sum says of an event of this group: that it is selected, that it is not, or neither (`None`).
    fn judge(&self, sum: &Sum, group: &Group) -> Option<bool> {
        let is_one = |kind: &EventKind| *kind as i32 == i32::from(group.kind);
        match self.kinds.is_empty() || self.kinds.iter().any(is_one) {
            _ if !group.is_known() => None,
            true => self.has_times(sum.earliest, sum.latest),
            false => Some(false),
        }
    }

    /// Groups of a sum that may be selected.
    fn left<'a>(&'a self, sum: &'a Sum) -> impl Iterator<Item = &'a Group> {
        let groups = sum.groups();
        groups.filter(|group| self.judge(sum, group) != Some(false))
    }
}

/// Finds what a question may select, segment by segment.
pub(super) struct Finder<'a> {
    connection: &'a Connection,
    query: &'a Query,
    /// The subject that had few events in the segment before. It is looked for first.
    rare: usize,
    /// Of each subject so many keys were not all that it has in a segment. So many are not read again.
    more_than: Vec<usize>,
    /// Keys that were read, and for each event that was read as many as take that time.
    effort: usize,
    find: CachedStatement<'a>,
    read: CachedStatement<'a>,
}

impl<'a> Finder<'a> {
    pub fn new(connection: &'a Connection, query: &'a Query) -> rusqlite::Result<Self> {
        let find = "SELECT event FROM key WHERE segment = ?1 AND key >= ?2 AND key < ?3 LIMIT ?4";
        let read = "SELECT record FROM event WHERE id = ?1";
        Ok(Finder {
            connection,
            query,
            rare: 0,
            more_than: vec![0; query.subjects.len() + usize::from(query.alarms)],
            effort: 0,
            find: connection.prepare_cached(find)?,
            read: connection.prepare_cached(read)?,
        })
    }

    /// The record of an event; empty if it has gone.
    pub fn read(&mut self, id: u64) -> rusqlite::Result<Vec<u8>> {
        self.effort += EVENT;
        let record = self.read.query_row([id], |row| row.get(0)).optional()?;
        Ok(record.unwrap_or_default())
    }

    /// Keys that were read until now, and for each event that was read as many as take that time.
    pub fn effort(&self) -> usize {
        self.effort
    }

    /// Events that may be selected, in order.
    pub fn candidates(&mut self, segment: &Segment) -> rusqlite::Result<Vec<Candidate>> {
        // it may leave meanwhile
        let _seen = self.connection.unchecked_transaction()?;
        let keys = self.query.keys(segment);
        if keys.is_empty() {
            return self.summed(segment, Sum::all(self.connection, segment.first)?);
        }
        let in_time = self.query.has_times(segment.earliest, segment.latest);
        if self.query.kinds.is_empty() && in_time == Some(true) {
            let (found, subject) = self.rarest(segment, &keys, &TURNS)?;
            let found = candidates(found, true);
            return self.narrowed(segment, &keys, Some(subject), found);
        }
        if let Some((found, _)) = self.fewest(segment, &keys, &TURNS[..1])? {
            return Ok(candidates(found, false));
        }
        let mut sums = Sum::all(self.connection, segment.first)?;
        if self.are_few(segment, &sums) {
            let found = self.summed(segment, sums)?;
            return self.narrowed(segment, &keys, None, found);
        }
        let (found, subject) = self.rarest(segment, &keys, &TURNS[1..])?;
        sums::fill(self.connection, segment.first, &mut sums)?;
        let found = self.judged(found, &sums);
        self.narrowed(segment, &keys, Some(subject), found)
    }

    /// Whether sums leave few events, with those that are not summed up.
    fn are_few(&self, segment: &Segment, sums: &[Sum]) -> bool {
        let summed: u64 = sums.iter().map(Sum::events).sum();
        let left = sums.iter().flat_map(|sum| self.query.left(sum));
        let left: u64 = left.map(|group| u64::from(group.events)).sum();
        let all = u64::from(segment.events);
        left + all.saturating_sub(summed) <= all / u64::from(FEW)
    }

    /// Events that sums leave, and those that are not summed up. Certain as far as sums say so.
    fn summed(&self, segment: &Segment, mut sums: Vec<Sum>) -> rusqlite::Result<Vec<Candidate>> {
        let [first, end] = segment.ids();
        let behind = sums.last().map_or(first, Sum::end);
        if sums.iter().any(|sum| self.query.left(sum).next().is_some()) {
            sums::fill(self.connection, segment.first, &mut sums)?;
        }
        let mut found = Vec::new();
        for sum in &sums {
            let said = |group: &Group| self.query.judge(sum, group);
            let is_left = |group: &Group| said(group) != Some(false);
            sum.visit(is_left, |id, group| {
                let is_certain = said(group) == Some(true);
                found.push(Candidate { id, is_certain });
            });
        }
        let mut rest = self
            .connection
            .prepare_cached("SELECT id FROM event WHERE id >= ?1 AND id < ?2 ORDER BY id")?;
        for id in rest.query_map([behind, end], |row| row.get(0))? {
            let (id, is_certain) = (id?, false);
            found.push(Candidate { id, is_certain });
        }
        Ok(found)
    }

    /// These events without those that sums rule out. Certain as far as sums say so.
    fn judged(&self, ids: Vec<u64>, sums: &[Sum]) -> Vec<Candidate> {
        let judge = |event: u64| {
            let sum = sum_of(sums, event)?;
            self.query.judge(sum, sum.group(event)?)
        };
        let judged = ids.into_iter().map(|id| (id, judge(id)));
        let left = judged.filter(|(_, said)| *said != Some(false));
        let left = left.map(|(id, said)| Candidate {
            id,
            is_certain: said == Some(true),
        });
        left.collect()
    }

    /// Those of these events that are about every subject. `known`: the subject that all of them are about. If a subject has so many keys that
    /// it is sooner read whom the events are about, none is certain.
    fn narrowed(
        &mut self,
        segment: &Segment,
        keys: &[Keys],
        known: Option<usize>,
        mut found: Vec<Candidate>,
    ) -> rusqlite::Result<Vec<Candidate>> {
        let mut is_certain = true;
        for subject in (0..keys.len()).filter(|subject| Some(*subject) != known) {
            let Some(others) = self.others(segment, keys, subject, found.len())? else {
                is_certain = false;
                continue;
            };
            let mut is_about = vec![false; found.len()];
            for id in others {
                if let Ok(place) = found.binary_search_by_key(&id, |candidate| candidate.id) {
                    is_about[place] = true;
                }
            }
            let mut is_about = is_about.into_iter();
            found.retain(|_| is_about.next() == Some(true));
        }
        for candidate in &mut found {
            candidate.is_certain &= is_certain;
        }
        Ok(found)
    }

    /// Events of a further subject, unless it is sooner done to read this many that were found.
    fn others(
        &mut self,
        segment: &Segment,
        keys: &[Keys],
        subject: usize,
        found: usize,
    ) -> rusqlite::Result<Option<Vec<u64>>> {
        let most = match found > (segment.events / FEW) as usize {
            true => NO_END,
            false => found * EVENT,
        };
        if most <= self.more_than[subject] {
            return Ok(None);
        }
        let others = self.find(segment, &keys[subject], most)?;
        if others.is_none() {
            self.more_than[subject] = most;
        }
        Ok(others)
    }

    /// Events of a subject that has few, or of the first one if each has many; which one that is.
    fn rarest(
        &mut self,
        segment: &Segment,
        keys: &[Keys],
        turns: &[u32],
    ) -> rusqlite::Result<(Vec<u64>, usize)> {
        if keys.len() > 1
            && let Some(found) = self.fewest(segment, keys, turns)?
        {
            return Ok(found);
        }
        let found = self.find(segment, &keys[0], NO_END)?;
        Ok((in_order(found.unwrap_or_default()), 0))
    }

    /// Events of the first subject that has few, in the first of these turns in which one has; which one that is.
    fn fewest(
        &mut self,
        segment: &Segment,
        keys: &[Keys],
        turns: &[u32],
    ) -> rusqlite::Result<Option<(Vec<u64>, usize)>> {
        let others = (0..keys.len()).filter(|subject| *subject != self.rare);
        let subjects: Vec<usize> = [self.rare].into_iter().chain(others).collect();
        for one_in in turns {
            for subject in &subjects {
                let most = (segment.events / one_in) as usize;
                if let Some(found) = self.find(segment, &keys[*subject], most)? {
                    self.rare = *subject;
                    return Ok(Some((in_order(found), *subject)));
                }
            }
        }
        Ok(None)
    }

    /// Events with some keys, in the order of keys; `None` if more than `most` keys are there.
    fn find(
        &mut self,
        segment: &Segment,
        keys: &Keys,
        most: usize,
    ) -> rusqlite::Result<Option<Vec<u64>>> {
        let [_, end] = segment.ids();
        let mut found = Vec::new();
        for range in keys {
            let before = found.len();
            let rest = most - before + 1;
            let range = params![segment.first, range.start, range.end, rest];
            for event in self.find.query_map(range, |row| row.get(0))? {
                found.push(event?);
            }
            self.effort += found.len() - before;
            if found.len() > most {
                return Ok(None);
            }
        }
        // what came since is not of the times that the segment had
        found.retain(|event| *event < end);
        Ok(Some(found))
    }
}

/// Each of these events once, in order.
fn in_order(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn candidates(ids: Vec<u64>, is_certain: bool) -> Vec<Candidate> {
    let ids = ids.into_iter();
    ids.map(|id| Candidate { id, is_certain }).collect()
}
