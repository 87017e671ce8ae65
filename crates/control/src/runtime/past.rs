//! Events and faults around the control plane: the history's thread, and the check of alarms.

use super::{Durable, Edge, unix_time};
use crate::alarms::{Condition, Fault};
use crate::history::{Database, Figures, HistoryThread, Kind, Status};
use crate::plane::{Input, Note, history_bounds};
use config::transactions::Transactions;
use core::time::Duration;
use std::time::Instant;
use tokio::sync::watch;

/// Time after which a batch that waits for the disk shows that the store is slow.
const SLOW: Duration = Duration::from_secs(1);

impl Edge {
    /// Records an event of the control plane itself.
    pub(super) fn note(&mut self, kind: Kind, text: &str) {
        let note = Note {
            kind,
            resource: String::new(),
            by: None,
            text: text.into(),
        };
        self.plane.handle(self.clock.now(), Input::Note(note));
    }

    /// Waits until all events are in the history and none in the store, so that an earlier version can read the store. Events
    /// that miss the deadline stay in the store, and go into the history at the next start.
    pub(super) async fn settle_history(&mut self) -> Result<(), String> {
        loop {
            self.plane.settle_history();
            self.carry_out().await?;
            if self.plane.is_history_settled() {
                return Ok(());
            }
            tokio::select! {
                Ok(()) = self.durable.changed() => self.on_durable(),
                Ok(()) = self.kept.changed() => self.on_kept(),
            }
        }
    }

    /// Passes the faults around the control plane to the check of alarms.
    pub(super) fn look(&mut self) {
        let now = self.clock.now();
        let mut wrong = self.wrong.borrow().clone();
        let waits = self.writing.front().map(Instant::elapsed);
        wrong.extend(store_condition(&self.durable.borrow(), waits));
        wrong.extend(history_conditions(&self.history.status(), now.unix));
        if let Some(ports) = self.radius.open_missing() {
            self.plane.handle(now, Input::RadiusPorts(ports));
        }
        wrong.extend(self.radius.conditions());
        self.dynamic.open_missing();
        wrong.extend(self.dynamic.conditions());
        self.plane.handle(now, Input::Look(wrong));
    }

    /// Handles the store's progress: every batch up to this number is on the disk.
    pub(super) fn durable_batches(&mut self, batch: u64) {
        let done = usize::try_from(batch - self.batches).unwrap_or_default();
        self.writing.drain(..done.min(self.writing.len()));
        self.batches = batch;
    }

    /// Handles the history's progress: more events are on its disk.
    pub(super) fn on_kept(&mut self) {
        let number = *self.kept.borrow_and_update();
        self.plane.handle(self.clock.now(), Input::Kept(number));
    }
}

/// Opens the history beside the store. Returns its thread, a watch of the last stored block, and the last stored block now.
pub(super) fn open_history(
    start: &config::start::ControlPlane,
    transactions: &Transactions,
) -> Result<(HistoryThread, watch::Receiver<u64>, u64), String> {
    let directory = start.state.join("history");
    let failed = |error| format!("the history in {}: {error}", directory.display());
    let bounds = history_bounds(&transactions.current().configuration);
    let database = Database::open(&directory, bounds).map_err(failed)?;
    let last = database.last();
    let (keeps, kept) = watch::channel(last);
    let figures = Figures::beside(&directory);
    let thread = HistoryThread::start(database, figures, unix_time, move |last| {
        let _ = keeps.send(last);
    });
    Ok((thread.map_err(failed)?, kept, last))
}

fn condition(fault: Fault, text: String) -> Condition {
    Condition {
        fault,
        resource: String::new(),
        text,
    }
}

/// Fault of the store, from its thread's status and the waiting time of the oldest batch.
fn store_condition(durable: &Durable, waits: Option<Duration>) -> Option<Condition> {
    if let Some(why) = &durable.failing {
        let text = format!(
            "cannot write the store ({why}): no new session comes online, everything else continues. Free or replace the \
                disk"
        );
        return Some(condition(Fault::StoreNotWritten, text));
    }
    let waits = waits.filter(|waits| *waits > SLOW)?;
    let text = format!(
        "the store has been writing for {} s: no session comes online meanwhile. Check whether its disk is busy or failing",
        waits.as_secs()
    );
    Some(condition(Fault::StoreSlow, text))
}

/// Faults of the history.
fn history_conditions(status: &Status, now: u32) -> Vec<Condition> {
    let mut wrong = Vec::new();
    if let Some(why) = &status.failing {
        let text = format!(
            "cannot write the history ({why}): events wait in the store. Free or replace the disk"
        );
        wrong.push(condition(Fault::HistoryNotWritten, text));
    }
    if status.is_cut_short(now) {
        let text = format!(
            "{} segments of the history were deleted early because `history size` is too small",
            status.displaced
        );
        wrong.push(condition(Fault::HistoryTooSmall, text));
    }
    if status.damaged > 0 {
        let text = format!(
            "{} places in the history are damaged: some events cannot be shown. Files with `damaged` in their names are what is left",
            status.damaged
        );
        wrong.push(condition(Fault::HistoryDamaged, text));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;
    use std::io;

    #[test]
    fn a_store_that_cannot_be_written_is_told_with_the_reason_until_it_can_be() {
        let mut durable = Durable::default();
        let fault = |durable: &Durable, seconds: Option<u64>| {
            let waits = seconds.map(Duration::from_secs);
            store_condition(durable, waits).map(|condition| (condition.fault, condition.text))
        };
        durable.take(Ok(7));
        assert_eq!((durable.batch, fault(&durable, Some(1))), (7, None));
        let (slow, text) = fault(&durable, Some(12)).unwrap();
        assert!(slow == Fault::StoreSlow && text.contains("12 s"), "{text}");
        durable.take(Err(StoreError::Io {
            action: "write",
            path: "/var/lib/sluice/sessions.log".into(),
            source: io::ErrorKind::StorageFull.into(),
        }));
        // What was durable before stays so, and is not reported twice.
        assert_eq!(durable.batch, 7);
        let (failing, text) = fault(&durable, Some(12)).unwrap();
        assert_eq!(failing, Fault::StoreNotWritten);
        assert!(
            text.contains("/var/lib/sluice/sessions.log: no storage space"),
            "{text}"
        );
        durable.take(Ok(9));
        assert_eq!((durable.batch, fault(&durable, None)), (9, None));
    }
}
