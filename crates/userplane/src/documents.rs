//! Reads and writes documents beside the control thread: one with a million rules takes seconds, in which sessions come and go.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use config::model::{Acls, share_acls};
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
                let (written, reading) = match job.purpose {
                    Purpose::Validate => (Ok(()), reader.read(&job.document)),
                    Purpose::Apply => {
                        let written = kept.begin(&job.document);
                        (written, reader.read_to_apply(&job.document))
                    }
                };
                let read = Read {
                    purpose: job.purpose,
                    reading,
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
    /// Hash of the last document that was right, and what it said. It is often the next one, too.
    last: Option<(String, UserPlaneDocument)>,
    /// ACLs of the last document that was read to be put in force. The next one has most of them.
    in_force: Acls,
}

impl DocumentReader {
    /// Creates a reader for a user plane with these capabilities.
    pub fn new(can: Capabilities) -> Self {
        DocumentReader {
            can,
            last: None,
            in_force: Acls::new(),
        }
    }

    /// Reads a document that is to be put in force.
    ///
    /// # Errors
    /// As [`DocumentReader::read`].
    pub fn read_to_apply(&mut self, document: &Document) -> Reading {
        let reading = self.read(document)?;
        self.in_force.clone_from(&reading.acls);
        Ok(reading)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// What is wrong with it, whatever the user plane's state is.
    fn read(&mut self, document: &Document) -> Reading {
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
        share_acls(&mut reading.acls, &self.in_force);
        self.last = Some((document.hash.clone(), reading.clone()));
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn document(generation: u64, acls: &str) -> Document {
        Document::new(generation, format!("{{\"acls\": {{{acls}}}}}"))
    }

    const SMALL: &str = r#""a": {"rules": {"1": "deny ip from any to any"}}"#;

    #[test]
    fn acls_that_stay_are_those_of_the_document_that_was_read_to_be_put_in_force() {
        let mut reader = DocumentReader::new(crate::configure::capabilities(16));
        let first = reader.read_to_apply(&document(1, SMALL)).unwrap();
        // somebody looks what would happen without them, and gives it up
        assert!(reader.read(&document(2, "")).unwrap().acls.is_empty());
        let more = format!("{SMALL}, \"b\": {{}}");
        let next = reader.read_to_apply(&document(2, &more)).unwrap();
        assert!(Arc::ptr_eq(&first.acls["a"], &next.acls["a"]));
        let changed = SMALL.replace("deny", "permit");
        let changed = reader.read(&document(3, &changed)).unwrap();
        assert_ne!(first.acls["a"], changed.acls["a"]);
    }

    #[test]
    fn what_is_wrong_in_itself_is_found_and_not_taken_for_the_next_document() {
        let mut reader = DocumentReader::new(crate::configure::capabilities(16));
        let zero = document(1, r#""a": {"rules": {"0": "deny ip from any to any"}}"#);
        for _ in 0..2 {
            let faults = reader.read(&zero).unwrap_err();
            assert!(
                faults[0].message.contains("numbers from 1 on"),
                "{faults:?}"
            );
        }
        assert!(reader.read(&document(1, "\"a\": 7")).is_err());
        assert!(reader.read(&document(1, SMALL)).is_ok());
    }
}
