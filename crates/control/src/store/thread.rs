//! The thread that writes the store, so that nobody who has something else to do waits for the disk.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Record, Store, StoreError};

/// A batch grows to about this size before it is synced, if more waits.
const FULL_BATCH: usize = 1 << 20;

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
    pub fn start(
        store: Store,
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
    mut store: Store,
    queue: &Receiver<Vec<Record>>,
    mut acknowledge: impl FnMut(Acknowledgement),
) {
    let mut number = 0;
    while let Ok(mut records) = queue.recv() {
        loop {
            records.iter().for_each(|record| store.append(record));
            number += 1;
            if store.pending() >= FULL_BATCH {
                break;
            }
            match queue.try_recv() {
                Ok(more) => records = more,
                Err(_) => break,
            }
        }
        let result = store.sync();
        let failed = result.is_err();
        acknowledge(result.map(|()| number));
        if failed {
            return;
        }
    }
}
