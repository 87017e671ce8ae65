//! Thread that writes the store, so that no other work waits for the disk.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::writer::{Acknowledgement, Writer};
use super::{Disk, Record, Store};

/// Time until a failed write is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Minimum time between the beginnings of two syncs. A sync costs the same for one record as for many, so under load records are
/// collected for so long.
const PACE: Duration = Duration::from_millis(4);
/// Idle time after which the log gets a seal.
const SEAL_AFTER: Duration = Duration::from_secs(1);

/// Error: the batch was not accepted because the thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store's thread has ended")]
pub struct Ended;

/// Store in its own thread, behind a bounded queue. Everything that queued up while the disk was busy is written as one batch and
/// synced once.
#[derive(Debug)]
pub struct StoreThread {
    queue: Option<SyncSender<Vec<Record>>>,
    thread: Option<JoinHandle<()>>,
    submitted: u64,
}

impl StoreThread {
    /// Starts the thread with a queue of `queue` batches. It calls `acknowledge` after every sync, and after every failed
    /// attempt.
    pub fn start<D: Disk<File: Send> + Send + 'static>(
        store: Store<D>,
        queue: usize,
        acknowledge: impl FnMut(Acknowledgement) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(queue);
        let thread = thread::Builder::new()
            .name("store".into())
            .spawn(move || write(Writer::new(store), &receiver, acknowledge))?;
        Ok(Self {
            queue: Some(sender),
            thread: Some(thread),
            submitted: 0,
        })
    }

    /// Queues records that belong together. Returns their number: 1, 2, 3… Waits while the queue is full, because a control plane
    /// must not run ahead of its disk without bound.
    pub fn submit(&mut self, records: Vec<Record>) -> Result<u64, Ended> {
        let queue = self.queue.as_ref().ok_or(Ended)?;
        queue.send(records).map_err(|_| Ended)?;
        self.submitted += 1;
        Ok(self.submitted)
    }
}

#[cfg(test)]
impl StoreThread {
    /// Whether the thread has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for StoreThread {
    /// Waits until everything queued is on the disk, or one more attempt has failed.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

fn write(
    mut writer: Writer<impl Disk>,
    queue: &Receiver<Vec<Record>>,
    mut acknowledge: impl FnMut(Acknowledgement),
) {
    // Time of the next attempt after a failure. Records that arrive before it only wait.
    let mut again: Option<Instant> = None;
    // Time at which the next write may begin.
    let mut turn = Instant::now();
    loop {
        let next = next(&writer, again, queue);
        let is_over = next == Err(RecvTimeoutError::Disconnected);
        let is_idle = next == Err(RecvTimeoutError::Timeout) && again.is_none();
        if let Ok(records) = next {
            thread::sleep(turn.saturating_duration_since(Instant::now()));
            writer.take(&records);
            while !writer.is_full()
                && let Ok(more) = queue.try_recv()
            {
                writer.take(&more);
            }
        }
        if !is_over && again.is_some_and(|at| Instant::now() < at) {
            continue;
        }
        turn = Instant::now() + PACE;
        let done = match is_idle {
            true => writer.idle(),
            false => writer.write().map(|number| acknowledge(Ok(number))),
        };
        // A slice of a snapshot comes after the acknowledgement, so that only the next batch waits for it.
        let done = done.and_then(|()| writer.tend());
        again = done.is_err().then(|| Instant::now() + AGAIN);
        if let Err(error) = done {
            acknowledge(Err(error));
        }
        if is_over {
            // Nobody waits for this seal. The next opening reports a failure.
            let _ = writer.idle();
            return;
        }
    }
}

/// Waits for records, but not while the store has other work.
fn next(
    writer: &Writer<impl Disk>,
    again: Option<Instant>,
    queue: &Receiver<Vec<Record>>,
) -> Result<Vec<Record>, RecvTimeoutError> {
    if let Some(at) = again {
        queue.recv_timeout(at.saturating_duration_since(Instant::now()))
    } else if writer.wants_tending() {
        queue.recv_timeout(Duration::ZERO)
    } else if writer.wants_seal() {
        queue.recv_timeout(SEAL_AFTER)
    } else {
        queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}
