//! The thread that writes the store, so that nobody who has something else to do waits for the disk.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Disk, Record, Store, StoreError};

/// A batch grows to about this size before it is synced, if more waits.
const FULL_BATCH: usize = 1 << 20;
/// A log that is left alone for so long gets a seal.
const SEAL_AFTER: Duration = Duration::from_secs(1);

/// What the thread says: every batch up to and including this number is on the disk, or nothing further will be.
pub type Acknowledgement = Result<u64, StoreError>;

/// A batch was not taken: the thread has ended, because a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store has failed")]
pub struct Failed;

/// The store in a thread of its own, behind a bounded queue. What has queued up while the disk was busy is written as
/// one batch and synced once.
#[derive(Debug)]
pub struct StoreThread {
    queue: Option<SyncSender<Vec<Record>>>,
    thread: Option<JoinHandle<()>>,
    submitted: u64,
}

impl StoreThread {
    /// Starts the thread with a queue of so many batches. It calls `acknowledge` after every sync, and for the last
    /// time with the error after which it ends.
    pub fn start<D: Disk<File: Send> + Send + 'static>(
        store: Store<D>,
        queue: usize,
        acknowledge: impl FnMut(Acknowledgement) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(queue);
        let thread = thread::Builder::new()
            .name("store".into())
            .spawn(move || write(store, &receiver, acknowledge))?;
        Ok(Self {
            queue: Some(sender),
            thread: Some(thread),
            submitted: 0,
        })
    }

    /// Queues records that belong together and gives their number: 1, 2, 3… Waits while the queue is full: a control plane
    /// must not run ahead of its disk without bound.
    pub fn submit(&mut self, records: Vec<Record>) -> Result<u64, Failed> {
        let queue = self.queue.as_ref().ok_or(Failed)?;
        queue.send(records).map_err(|_| Failed)?;
        self.submitted += 1;
        Ok(self.submitted)
    }
}

impl Drop for StoreThread {
    /// Waits until everything queued is on the disk.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already by the panic hook.
            let _ = thread.join();
        }
    }
}

fn write(
    mut store: Store<impl Disk>,
    queue: &Receiver<Vec<Record>>,
    mut acknowledge: impl FnMut(Acknowledgement),
) {
    let mut number = 0;
    loop {
        let done = match next(&store, queue) {
            Ok(records) => {
                number += fill(&mut store, records, queue);
                let synced = store.sync();
                synced.map(|()| acknowledge(Ok(number)))
            }
            Err(RecvTimeoutError::Timeout) if store.wants_tending() => Ok(()),
            Err(RecvTimeoutError::Timeout) => store.seal(),
            Err(RecvTimeoutError::Disconnected) => {
                // Not needed by anyone who waits; a failure is told by the next opening.
                let _ = store.seal();
                return;
            }
        };
        // A slice of a snapshot comes after the acknowledgement, so that only the next batch waits for it.
        if let Err(error) = done.and_then(|()| store.tend()) {
            acknowledge(Err(error));
            return;
        }
    }
}

/// Waits for records, but not when the store has something else to do.
fn next(
    store: &Store<impl Disk>,
    queue: &Receiver<Vec<Record>>,
) -> Result<Vec<Record>, RecvTimeoutError> {
    if store.wants_tending() {
        queue.recv_timeout(Duration::ZERO)
    } else if store.wants_seal() {
        queue.recv_timeout(SEAL_AFTER)
    } else {
        queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}

/// Puts what has queued up into one batch, and says how many submissions that were.
fn fill(store: &mut Store<impl Disk>, first: Vec<Record>, queue: &Receiver<Vec<Record>>) -> u64 {
    let mut taken = 1;
    first.iter().for_each(|record| store.append(record));
    while store.pending() < FULL_BATCH
        && let Ok(more) = queue.try_recv()
    {
        more.iter().for_each(|record| store.append(record));
        taken += 1;
    }
    taken
}
