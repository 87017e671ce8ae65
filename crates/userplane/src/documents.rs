//! Reads and writes documents beside the control thread: one with a million rules takes seconds, in which sessions come and go.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use config::{Capabilities, UserPlaneDocument};
use mi::{Answer, Document, Keep, Kept};
use northbound::Refusal;
use tokio::sync::{mpsc, oneshot};

use crate::managed::{Reading, read};

/// Documents that wait to be read. Each control plane sends one at a time.
const WAITING: usize = 4;

/// What a document is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To find its faults.
    Validate,
    /// To put it in force. It is written to the disk, too.
    Apply,
}

/// A document that somebody asked for.
struct Job {
    purpose: Purpose,
    document: Document,
    reply: oneshot::Sender<Answer>,
}

/// A document that has been read.
pub(crate) struct Read {
    pub purpose: Purpose,
    pub document: Document,
    pub reading: Reading,
    /// Whether it is on the disk.
    pub written: io::Result<()>,
    /// For whoever asked.
    pub reply: oneshot::Sender<Answer>,
}

/// The thread that reads documents.
pub(crate) struct Documents {
    jobs: SyncSender<Job>,
    pub read: mpsc::UnboundedReceiver<Read>,
}

impl Documents {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut reader: DocumentReader, kept: Kept) -> io::Result<Self> {
        let (jobs, asked) = sync_channel::<Job>(WAITING);
        let (finished, read) = mpsc::unbounded_channel();
        let work = move || {
            for job in asked {
                let written = match job.purpose {
                    Purpose::Validate => Ok(()),
                    Purpose::Apply => kept.begin(&job.document),
                };
                let read = Read {
                    purpose: job.purpose,
                    reading: reader.read(&job.document),
                    document: job.document,
                    written,
                    reply: job.reply,
                };
                if finished.send(read).is_err() {
                    return; // the user plane has ended
                }
            }
        };
        let thread = std::thread::Builder::new().name("documents".to_owned());
        thread.spawn(work)?;
        Ok(Documents { jobs, read })
    }

    /// Has a document read; [`Documents::read`] tells it then.
    ///
    /// # Errors
    /// Too many wait: the way for the answer is given back, with the reason.
    pub fn ask(
        &self,
        purpose: Purpose,
        document: Document,
        reply: oneshot::Sender<Answer>,
    ) -> Result<(), (oneshot::Sender<Answer>, Refusal)> {
        let job = Job {
            purpose,
            document,
            reply,
        };
        self.jobs.try_send(job).map_err(|error| {
            let (TrySendError::Full(job) | TrySendError::Disconnected(job)) = error;
            let why = format!("{WAITING} documents wait to be read: ask again when they are");
            (job.reply, Refusal::Busy(why))
        })
    }
}

/// Reads documents and checks them in themselves.
pub struct DocumentReader {
    can: Capabilities,
    /// Hash of the last document that was right, and what it said. It is often the next one, too, and has most of the next one's ACLs.
    last: Option<(String, UserPlaneDocument)>,
}

impl DocumentReader {
    /// Creates a reader for a user plane with these capabilities.
    pub fn new(can: Capabilities) -> Self {
        DocumentReader { can, last: None }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// What is wrong with it, whatever the user plane's state is.
    pub fn read(&mut self, document: &Document) -> Reading {
        if let Some((hash, last)) = &self.last
            && *hash == document.hash
        {
            return Ok(last.clone());
        }
        let mut reading = read(document)?;
        let faults = self.can.check(&reading);
        if !faults.is_empty() {
            return Err(faults);
        }
        if let Some((_, last)) = &self.last {
            config::model::share_acls(&mut reading.acls, &last.acls);
        }
        self.last = Some((document.hash.clone(), reading.clone()));
        Ok(reading)
    }
}
