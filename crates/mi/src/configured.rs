//! How a document comes into force: judged, written, applied, kept, in this order. Writing it is for another thread than the one that has
//! this: a document may have many megabytes.

use crate::{ApplyResponse, Document, DocumentFault, InForce, Keep, Kept, Response};
use northbound::Refusal;
use std::io;

/// What is in force, and whether a restart will find it.
#[derive(Debug)]
pub struct Configured<K: Keep = Kept> {
    kept: K,
    in_force: Option<InForce>,
    /// What is in force is on the disk.
    is_kept: bool,
    /// A change is under way.
    changing: bool,
}

/// What becomes of an order to put a document in force.
#[derive(Debug)]
pub enum Begun {
    /// It is in force already.
    Done(Response),
    /// It is to be written by [`Keep::begin`]: whoever does so goes on with [`Configured::written`].
    Write(Document),
}

/// What becomes of a document that was begun and written.
#[derive(Debug)]
pub enum Written {
    /// It is in force already.
    Done(Response),
    /// It is to be applied: whoever does so goes on with [`Configured::finish`] or [`Configured::give_up`].
    Apply,
}

impl<K: Keep> Configured<K> {
    /// Nothing is in force yet.
    pub fn new(kept: K) -> Self {
        Configured {
            kept,
            in_force: None,
            is_kept: false,
            changing: false,
        }
    }

    /// Where the last document is kept.
    pub fn kept(&self) -> &K {
        &self.kept
    }

    /// What is in force.
    pub fn in_force(&self) -> Option<&InForce> {
        self.in_force.as_ref()
    }

    /// The document that was kept has been applied, at the start; `now` in seconds since 1970.
    pub fn resumed(&mut self, document: &Document, now: u64) {
        self.in_force = Some(document.in_force(now));
        self.is_kept = true;
    }

    /// Begins to put a document in force.
    ///
    /// # Errors
    /// It is older than what is in force, or another change is under way.
    pub fn begin(&mut self, document: Document) -> Result<Begun, Refusal> {
        if self.changing {
            return Err(Refusal::Busy(
                "another document is being put in force: ask again when it is done".into(),
            ));
        }
        if self.has(&document)? && self.is_kept {
            return Ok(Begun::Done(self.applied()));
        }
        self.changing = true;
        Ok(Begun::Write(document))
    }

    /// The document that was begun is not written: there is no room for it now.
    pub fn abandon(&mut self) {
        self.changing = false;
    }

    /// The document that was begun has been written, or not.
    ///
    /// # Errors
    /// It cannot be written, or kept.
    pub fn written(
        &mut self,
        document: &Document,
        written: io::Result<()>,
    ) -> Result<Written, Refusal> {
        let known = written.map_err(not_kept).and_then(|()| self.has(document));
        match known {
            Ok(false) => Ok(Written::Apply),
            Ok(true) => {
                self.changing = false;
                self.keep()?;
                Ok(Written::Done(self.applied()))
            }
            Err(refusal) => {
                self.changing = false;
                Err(refusal)
            }
        }
    }

    /// Whether this document is in force.
    fn has(&self, document: &Document) -> Result<bool, Refusal> {
        let in_force = self.in_force.as_ref();
        in_force.map_or(Ok(false), |in_force| in_force.is(document))
    }

    /// The document that was begun has been applied; `now` in seconds since 1970.
    ///
    /// # Errors
    /// It cannot be kept: it is in force, but not after a restart. When it is sent again, that is tried again.
    pub fn finish(&mut self, document: &Document, now: u64) -> Result<Response, Refusal> {
        (self.changing, self.is_kept) = (false, false);
        self.in_force = Some(document.in_force(now));
        self.keep()?;
        Ok(self.applied())
    }

    /// The document that was begun cannot be applied; what was in force still is.
    pub fn give_up(&mut self, faults: Vec<DocumentFault>) -> Response {
        self.changing = false;
        if let Err(error) = self.kept.give_up() {
            tracing::debug!(%error, "a refused document is left until the next one");
        }
        Response::Applied(ApplyResponse {
            faults,
            in_force: self.in_force.clone(),
        })
    }

    fn keep(&mut self) -> Result<(), Refusal> {
        self.kept.finish().map_err(not_kept)?;
        self.is_kept = true;
        Ok(())
    }

    fn applied(&self) -> Response {
        Response::Applied(ApplyResponse {
            faults: Vec::new(),
            in_force: self.in_force.clone(),
        })
    }
}

fn not_kept(error: io::Error) -> Refusal {
    Refusal::Failed(format!(
        "the document cannot be kept for a restart: {error}. Free or replace the disk of `state`, and send it again"
    ))
}
