//! Records on their way to the store, and what waits until they are on disk (decisions 0004 and 0014).
//!
//! Records are collected in a batch. Batches are synced in order. While the store's disk is slow, full or failing, at most
//! [`MOST_BATCHES`] are pending; further records are collected in one batch with each key once, so that memory stays limited.

use crate::store::Record;
use crate::topology::Seid;
use aaa::RequestKey;
use core::time::Duration;
use pfcp::RequestId;
use session::Family;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// Maximum number of batches that the store has and has not synced: one that is being written, and the next one. Records that come
/// meanwhile make one batch, which costs less than several.
pub const MOST_BATCHES: u64 = 2;
/// Time without a synced batch after which the store is behind.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of collected records at which they are merged; then again whenever the number has doubled.
const TIDY: usize = 4096;

/// Operation that waits until a batch of records is on disk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Awaited {
    /// Packet that opens an address family of a session; `asked` is [`crate::entry::Rules::asked`] of the family.
    Family {
        seid: Seid,
        family: Family,
        asked: u8,
    },
    /// Accounting record, by its token.
    Record(u64),
    /// Block of events for the history.
    Block(u64, Vec<u8>),
    /// Answer to a RADIUS server whose request is done.
    Answer(RequestKey),
    /// Answer to a user plane's usage report.
    Report { id: RequestId, up_seid: u64 },
}

/// The current batch, and what waits for it and for those before it.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Records of the current batch.
    records: Vec<Record>,
    /// Number of the current batch.
    batch: u64,
    /// Last synced batch.
    durable: u64,
    /// What waits for a batch, in the order of batches.
    waiting: VecDeque<(u64, Awaited)>,
    /// Time since which the store has batches and has synced none.
    since: Option<Duration>,
    /// Number of collected records at which they are merged next.
    tidy_at: usize,
}

impl Journal {
    /// Creates a journal whose first batch begins with these records.
    pub fn new(records: Vec<Record>) -> Self {
        Journal {
            records,
            batch: 1,
            durable: 0,
            waiting: VecDeque::new(),
            since: None,
            tidy_at: TIDY,
        }
    }

    /// Adds a record to the current batch.
    pub fn add(&mut self, record: Record) {
        self.records.push(record);
    }

    /// Adds the differences between a table that the store has and its successor.
    pub fn add_changes<K: Ord>(
        &mut self,
        old: &BTreeMap<K, u16>,
        new: &BTreeMap<K, u16>,
        key: impl Fn(&K) -> Vec<u8>,
    ) {
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        self.extend(gone.map(|name| Record::delete(key(name))));
        let changed = new
            .iter()
            .filter(|(name, value)| old.get(*name) != Some(value));
        self.extend(changed.map(|(name, value)| Record::put(key(name), value.to_be_bytes())));
    }

    /// Lets something wait until the current batch is on disk.
    pub fn await_batch(&mut self, what: Awaited) {
        self.waiting.push_back((self.batch, what));
    }

    /// Number of collected records and of operations that wait.
    pub fn len(&self) -> usize {
        self.records.len() + self.waiting.len()
    }

    /// Whether the current batch has no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Number of batches that the store has and has not synced.
    pub fn pending_batches(&self) -> u64 {
        self.batch - 1 - self.durable
    }

    /// Whether the store takes no further batch now.
    pub fn is_full(&self) -> bool {
        self.pending_batches() >= MOST_BATCHES
    }

    /// Ends the current batch. Its records go to the store.
    pub fn take_batch(&mut self) -> Vec<Record> {
        self.batch += 1;
        std::mem::take(&mut self.records)
    }

    /// Notes that every batch up to this one is on disk. Then [`Journal::next_durable`] has what waited for it.
    pub fn on_durable(&mut self, at: Duration, batch: u64) {
        self.durable = batch;
        self.since = self.since.map(|_| at);
    }

    /// Next operation whose batch is on disk.
    pub fn next_durable(&mut self) -> Option<Awaited> {
        let next = self
            .waiting
            .pop_front_if(|(batch, _)| *batch <= self.durable);
        next.map(|(_, what)| what)
    }

    /// What waits for a batch that is written, or will be. Something that waits for an empty batch may wait for ever.
    pub fn awaited(&self) -> impl Iterator<Item = &Awaited> {
        let is_written = |batch: u64| batch < self.batch || !self.records.is_empty();
        let waiting = self.waiting.iter();
        waiting.filter_map(move |(batch, what)| is_written(*batch).then_some(what))
    }

    /// Notes the time since which the store has something to write.
    pub fn watch(&mut self, at: Duration) {
        let since = self.since.unwrap_or(at);
        self.since = (self.pending_batches() > 0).then_some(since);
    }

    /// Whether the store has synced nothing for a second although it has batches.
    pub fn is_behind(&self, at: Duration) -> bool {
        self.since
            .is_some_and(|since| at.saturating_sub(since) >= PATIENCE)
    }

    /// Whether so much is collected that [`Journal::tidy`] is worth its time.
    pub fn is_untidy(&self) -> bool {
        self.len() >= self.tidy_at
    }

    /// Keeps the last record of each key, and of the waiting operations those that are still needed. `is_needed` is asked about the
    /// last one first.
    pub fn tidy(&mut self, mut is_needed: impl FnMut(&Awaited) -> bool) {
        keep_last(&mut self.records);
        let waiting = std::mem::take(&mut self.waiting).into_iter().rev();
        self.waiting = waiting.filter(|(_, what)| is_needed(what)).collect();
        self.waiting.make_contiguous().reverse();
        self.tidy_at = TIDY.max(2 * self.len());
    }
}

#[cfg(test)]
impl Journal {
    /// Lets everything wait for the current batch, which has no records.
    pub fn mistake_batch(&mut self) {
        self.records.clear();
        self.waiting.iter_mut().for_each(|(of, _)| *of = self.batch);
    }
}

impl Extend<Record> for Journal {
    fn extend<T: IntoIterator<Item = Record>>(&mut self, records: T) {
        self.records.extend(records);
    }
}

/// Keeps the last record of each key.
fn keep_last(records: &mut Vec<Record>) {
    let mut seen = HashSet::with_capacity(records.len());
    let last: Vec<bool> = (records.iter().rev())
        .map(|record| seen.insert(&*record.key))
        .collect();
    let mut last = last.into_iter().rev();
    records.retain(|_| last.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(journal: &mut Journal) -> Vec<Awaited> {
        std::iter::from_fn(|| journal.next_durable()).collect()
    }

    #[test]
    fn what_waits_for_a_batch_waits_for_its_sync_and_no_other() {
        let mut journal = Journal::new(vec![Record::put("first", "1")]);
        journal.await_batch(Awaited::Record(1));
        assert_eq!(journal.take_batch(), [Record::put("first", "1")]);
        journal.add(Record::delete("first"));
        journal.await_batch(Awaited::Record(2));
        assert_eq!(durable(&mut journal), []);

        journal.on_durable(Duration::ZERO, 1);
        assert_eq!(durable(&mut journal), [Awaited::Record(1)]);
        assert_eq!(journal.take_batch(), [Record::delete("first")]);
        journal.on_durable(Duration::ZERO, 2);
        assert_eq!(durable(&mut journal), [Awaited::Record(2)]);
        assert_eq!((journal.len(), journal.pending_batches()), (0, 0));
    }

    #[test]
    fn only_what_waits_for_an_empty_batch_is_not_awaited() {
        let mut journal = Journal::new(Vec::new());
        journal.await_batch(Awaited::Record(1));
        assert_eq!(journal.awaited().count(), 0);
        journal.add(Record::delete("a"));
        assert_eq!(journal.awaited().count(), 1);
        journal.take_batch();
        journal.await_batch(Awaited::Record(2));
        assert_eq!(journal.awaited().collect::<Vec<_>>(), [&Awaited::Record(1)]);
    }

    #[test]
    fn the_store_is_behind_after_a_second_in_which_it_synced_nothing_of_what_it_has() {
        let ms = Duration::from_millis;
        let mut journal = Journal::new(Vec::new());
        journal.watch(ms(0));
        assert!(!journal.is_behind(ms(5000)), "it has nothing to write");
        (0..2).for_each(|_| drop(journal.take_batch()));
        journal.watch(ms(5000));
        assert!(!journal.is_behind(ms(5999)));
        assert!(journal.is_behind(ms(6000)));
        journal.on_durable(ms(6500), 1);
        assert!(!journal.is_behind(ms(7499)), "it has synced one of two");
        assert!(journal.is_behind(ms(7500)));
        journal.on_durable(ms(8000), 2);
        journal.watch(ms(8000));
        assert!(!journal.is_behind(ms(60_000)));
    }

    #[test]
    fn the_store_has_a_bounded_number_of_batches() {
        let mut journal = Journal::new(Vec::new());
        for _ in 0..MOST_BATCHES {
            assert!(!journal.is_full());
            journal.take_batch();
        }
        assert!(journal.is_full());
        journal.on_durable(Duration::ZERO, 1);
        assert!(!journal.is_full());
    }

    #[test]
    fn what_is_collected_is_merged_when_it_has_doubled() {
        let mut journal = Journal::new(Vec::new());
        let key = |n: usize| format!("key {}", n % 3000);
        (0..TIDY - 1).for_each(|n| journal.add(Record::put(key(n), "")));
        assert!(!journal.is_untidy());
        journal.await_batch(Awaited::Record(7));
        assert!(journal.is_untidy());
        journal.tidy(|what| *what != Awaited::Record(7));
        assert_eq!(journal.len(), 3000);
        (0..2999).for_each(|n| journal.add(Record::put(key(n), "")));
        assert!(!journal.is_untidy());
        journal.add(Record::put(key(0), ""));
        assert!(journal.is_untidy());
    }

    #[test]
    fn tidying_asks_about_the_last_one_first_and_keeps_the_order() {
        let mut journal = Journal::new(Vec::new());
        (0..4).for_each(|token| journal.await_batch(Awaited::Record(token)));
        let mut asked = Vec::new();
        journal.tidy(|what| {
            asked.push(what.clone());
            *what != Awaited::Record(1)
        });
        assert_eq!(asked, [3, 2, 1, 0].map(Awaited::Record));
        journal.take_batch();
        journal.on_durable(Duration::ZERO, 1);
        assert_eq!(durable(&mut journal), [0, 2, 3].map(Awaited::Record));
    }

    #[test]
    fn of_each_key_the_last_record_is_kept_in_the_order_of_the_last_ones() {
        let mut records = vec![
            Record::put("a", "1"),
            Record::put("b", "1"),
            Record::delete("a"),
            Record::put("c", "1"),
            Record::put("b", "2"),
        ];
        keep_last(&mut records);
        let expected = [
            Record::delete("a"),
            Record::put("c", "1"),
            Record::put("b", "2"),
        ];
        assert_eq!(records, expected);
    }
}
