//! The thread that writes the history, so that nobody waits for its disk.

use super::{Bounds, Database, Figures, Reader, Sample, Status};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Blocks are written together up to about this size.
const FULL_WRITE: usize = 1 << 20;
/// Minimum time between the beginnings of two writes. A sync costs the same for one block as for many.
const PACE: Duration = Duration::from_millis(20);
/// How often what is old is looked for.
const TEND: Duration = Duration::from_secs(60);
/// How long after a failure it is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Command to the writer's thread.
enum WriterCommand {
    Block(u64, Vec<u8>),
    Figures(Sample),
    Bounds(Bounds),
}

/// The history in a thread of its own. What waits for it is bounded by whoever hands it blocks.
pub(crate) struct HistoryThread {
    queue: Option<Sender<WriterCommand>>,
    thread: Option<JoinHandle<()>>,
    reader: Reader,
}

impl HistoryThread {
    /// Starts the thread. It calls `kept` with the number of the last block that is on the disk, after each write, and again
    /// whenever something about its status has changed.
    pub fn start(
        database: Database,
        figures: Figures,
        unix: fn() -> u32,
        kept: impl FnMut(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, receiver) = channel();
        let reader = database.reader();
        let mut writer = Writer {
            database,
            figures,
            unix,
            kept,
            waiting: Vec::new(),
            failing: false,
        };
        let thread = thread::Builder::new()
            .name("history".into())
            .spawn(move || writer.run(&receiver))?;
        Ok(HistoryThread {
            queue: Some(queue),
            thread: Some(thread),
            reader,
        })
    }

    /// Hands it a block.
    pub fn submit(&self, number: u64, block: Vec<u8>) {
        self.send(WriterCommand::Block(number, block));
    }

    /// Hands it figures. They are lost if they cannot be written.
    pub fn submit_figures(&self, sample: Sample) {
        self.send(WriterCommand::Figures(sample));
    }

    /// The bounds are these from now on.
    pub fn set_bounds(&self, bounds: Bounds) {
        self.send(WriterCommand::Bounds(bounds));
    }

    fn send(&self, command: WriterCommand) {
        if let Some(queue) = &self.queue {
            let _ = queue.send(command); // a panic there has been reported, and what waits stays in the store
        }
    }

    /// For questions.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// How it is.
    pub fn status(&self) -> Status {
        self.reader.status()
    }
}

impl Drop for HistoryThread {
    /// Waits until what was handed over is on the disk, or cannot be written.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Writer<K> {
    database: Database,
    figures: Figures,
    unix: fn() -> u32,
    kept: K,
    /// Blocks that are not on the disk yet.
    waiting: Vec<(u64, Vec<u8>)>,
    failing: bool,
}

impl<K: FnMut(u64)> Writer<K> {
    fn run(&mut self, queue: &Receiver<WriterCommand>) {
        // Time at which the next write may begin.
        let mut turn = Instant::now();
        loop {
            let patience = match self.failing {
                true => AGAIN,
                false if self.database.has_more_to_tend() => PACE,
                false => TEND,
            };
            match queue.recv_timeout(patience) {
                Ok(command) => {
                    thread::sleep(turn.saturating_duration_since(Instant::now()));
                    self.take(command, queue);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.write(),
            }
            turn = Instant::now() + PACE;
            self.write();
        }
    }

    /// Takes what has queued up, as far as it is written together.
    fn take(&mut self, first: WriterCommand, queue: &Receiver<WriterCommand>) {
        let mut octets = 0;
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                WriterCommand::Block(number, block) => {
                    octets += block.len();
                    self.waiting.push((number, block));
                }
                WriterCommand::Figures(sample) => self.figures.add(&sample),
                WriterCommand::Bounds(bounds) => self.database.set_bounds(bounds),
            }
            next = (octets < FULL_WRITE)
                .then(|| queue.try_recv().ok())
                .flatten();
        }
    }

    fn write(&mut self) {
        let blocks = self.waiting.iter().map(|(n, block)| (*n, block.as_slice()));
        let written = self.database.append(blocks);
        let last = self.database.last();
        self.waiting.retain(|(number, _)| *number > last);
        match written.and_then(|()| self.database.tend((self.unix)())) {
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("writing the history works again");
                    self.database.set_failing(None);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!(%error, "cannot write the history: events wait in the store. Free or replace the disk");
                }
                self.database.set_failing(Some(error.to_string()));
            }
        }
        (self.kept)(last);
    }
}
