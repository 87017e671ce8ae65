//! Backlog of the store while its disk is slow, full or failing: records wait within limits, no new session begins, and everything
//! else continues (decision 0014).

use super::{Awaited, ControlPlane, Now, Waiting};
use crate::counters::Counter;
use crate::store::Record;
use core::time::Duration;
use std::collections::HashSet;

/// Maximum number of batches that the store has and has not synced. Further records are collected in one batch with each key once.
pub const MOST_BATCHES: u64 = 64;
/// Time without a synced batch after which the control plane takes no new sessions.
const PATIENCE: Duration = Duration::from_secs(1);
/// Number of collected records at which they are merged; then again whenever the number has doubled.
const TIDY: usize = 4096;

/// State of the backlog.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Last synced batch.
    durable: u64,
    /// Time since which the store has batches and has synced none.
    since: Option<Duration>,
    /// Number of collected records at which they are merged next.
    tidy_at: usize,
}

impl Backlog {
    /// Notes that every batch up to this one is synced.
    pub fn advance(&mut self, at: Duration, batch: u64) {
        self.durable = batch;
        self.since = self.since.map(|_| at);
    }
}

impl ControlPlane {
    /// Number of batches that the store has and has not synced.
    pub(super) fn waiting_batches(&self) -> u64 {
        self.batch - 1 - self.backlog.durable
    }

    /// Notes the time since which the store has something to write.
    pub(super) fn watch_store(&mut self, now: Now) {
        let since = self.backlog.since.unwrap_or(now.at);
        self.backlog.since = (self.waiting_batches() > 0).then_some(since);
    }

    /// Checks that new sessions can be stored. A session that cannot be stored cannot come online.
    pub(super) fn takes_sessions(&self, now: Now) -> Result<(), Counter> {
        let since = self.backlog.since;
        match since.is_some_and(|since| now.at.saturating_sub(since) >= PATIENCE) {
            true => Err(Counter::StoreBehind),
            false => Ok(()),
        }
    }

    /// Merges the records that wait while the store takes no more batches, so that their memory stays limited.
    pub(super) fn hold_back(&mut self) {
        if self.outbox.is_long() {
            self.store_events();
        }
        if self.records.len() + self.waiting.len() < self.backlog.tidy_at.max(TIDY) {
            return;
        }
        keep_last(&mut self.records);
        self.forget_waiting();
        self.backlog.tidy_at = 2 * (self.records.len() + self.waiting.len());
    }

    /// Removes waiting operations that a later one has replaced.
    fn forget_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let (mut families, mut reports) = (HashSet::new(), HashSet::new());
        let is_needed = |waiting: &Waiting| match &waiting.what {
            Awaited::Family {
                seid,
                family,
                asked,
            } => {
                let index = self.sessions.find(*seid);
                index.is_some_and(|index| {
                    let rules = &self.sessions[index].rules;
                    rules.asked[*family as usize] == *asked
                }) && families.insert((*seid, *family as usize))
            }
            Awaited::Record(token) => self.accounting.has(*token),
            Awaited::Block(..) => true,
            // a user plane that tells it again has given up the request before
            Awaited::Report { id, up_seid } => reports.insert((id.peer, *up_seid)),
        };
        // the latest of those that are about the same
        let mut needed: Vec<Waiting> = waiting.into_iter().rev().filter(is_needed).collect();
        needed.reverse();
        self.waiting = needed.into();
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
    use crate::history::Kind;
    use crate::plane::{Input, Note, PfcpCause};
    use crate::world::{Choice, World};

    #[test]
    fn what_waits_for_the_disk_takes_no_more_room_than_what_it_is_about() {
        let mut w = World::new(3, Choice::radius());
        w.radius.accept = vec![(wire::radius::Kind::ACCT_INTERIM_INTERVAL, 60.into())];
        w.dial_all();
        assert_eq!(w.online(), 3);
        let before = w.batches;
        w.stall_disk();
        let mut most = 0;
        for _ in 0..60 {
            (0..100).for_each(|_| w.user_plane_reports(1));
            w.run(Duration::from_secs(10)); // and it gives those up that nobody answers
            most = most.max(w.plane.records.len() + w.plane.waiting.len());
        }
        assert_eq!(w.batches - before, MOST_BATCHES);
        assert!((TIDY / 2..=TIDY).contains(&most), "{most} records wait");
        w.user_plane_reports(1);
        w.disk_recovers();
        assert_eq!((w.plane.waiting.len(), w.plane.waiting_batches()), (0, 0));
        assert_eq!(w.up.told, [PfcpCause::REQUEST_ACCEPTED; 3]);
    }

    fn note(w: &mut World, text: String) {
        let note = Note {
            kind: Kind::Started,
            resource: String::new(),
            by: None,
            text,
        };
        w.plane.handle(w.moment(), Input::Note(note));
        w.settle();
    }

    /// Checks for faults as the runtime does. Returns the raised alarms.
    fn look(w: &mut World) -> Vec<String> {
        w.plane.handle(w.moment(), Input::Look(Vec::new()));
        w.settle();
        let alarms = w.plane.alarm_rows().alarms.into_iter();
        alarms.map(|alarm| alarm.name).collect()
    }

    #[test]
    fn the_events_that_wait_are_cut_into_blocks() {
        let mut w = World::new(1, Choice::default());
        w.dial_all();
        w.stall_disk();
        (0..2000).for_each(|_| note(&mut w, "x".repeat(1000)));
        w.disk_recovers();
        let longest = w.history.iter().map(|(_, block)| block.len()).max();
        assert!(
            w.history
                .iter()
                .map(|(_, block)| block.len())
                .sum::<usize>()
                > 2_000_000
        );
        assert!(
            longest.is_some_and(|longest| longest < 300 << 10),
            "{longest:?}"
        );
    }

    #[test]
    fn events_beyond_64_mib_are_counted_and_raise_an_alarm_until_the_history_has_the_others() {
        let mut w = World::new(1, Choice::default());
        w.dial_all();
        w.stall_disk();
        assert_eq!(look(&mut w), [""; 0]);
        let (long, mut noted) = ("\u{1f4be}".repeat(1024), 0);
        while w.count(Counter::HistoryLost) == 0 {
            note(&mut w, long.clone());
            noted += long.len();
            assert!(noted <= 64 << 20);
        }
        assert_eq!(look(&mut w), ["history-not-written"]);

        w.disk_recovers();
        for _ in 0..60 {
            w.run(Duration::from_secs(1));
            look(&mut w);
        }
        assert_eq!(look(&mut w), [""; 0]);
        let kept: usize = w.history.iter().map(|(_, block)| block.len()).sum();
        assert!(kept >= 64 << 20, "{kept} octets are kept");
        let lost = w.count(Counter::HistoryLost);
        note(&mut w, "kept".into());
        assert_eq!(w.count(Counter::HistoryLost), lost);
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
