//! Documents of the management interface, put in force without I/O: [`crate::run::UserPlane`] and the simulation both go by it.

use config::{Fault, UserPlaneDocument};
use mi::{Begun, Configured, Document, DocumentFault, Keep, Response};
use northbound::Refusal;

/// Something that is what a document says.
pub trait Managed {
    /// Where the document waits for a restart.
    type Kept: Keep;

    /// What is in force.
    fn configured(&mut self) -> &mut Configured<Self::Kept>;

    /// What of a document cannot be done, as far as that shows without doing it.
    fn check(&self, document: &UserPlaneDocument) -> Vec<Fault>;

    /// Becomes what a document says; all of it or nothing.
    ///
    /// # Errors
    /// What cannot be done, and where in the document.
    fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>>;

    /// What is wrong with a document.
    fn validate(&self, document: &Document) -> Vec<DocumentFault> {
        match read(document) {
            Ok(document) => self.check(&document).into_iter().map(told).collect(),
            Err(fault) => vec![told(fault)],
        }
    }

    /// Puts a document in force that is durable by the time this returns; `now` in seconds since 1970.
    ///
    /// # Errors
    /// It is older than what is in force, another change is under way, or it cannot be kept.
    fn apply(&mut self, document: Document, now: u64) -> Result<Response, Refusal> {
        let document = match self.configured().begin(document)? {
            Begun::Done(response) => return Ok(response),
            Begun::Apply(document) => document,
        };
        match self.become_what_it_says(&document) {
            Ok(()) => self.configured().finish(&document, now),
            Err(faults) => {
                let faults = faults.into_iter().map(told).collect();
                Ok(self.configured().give_up(faults))
            }
        }
    }

    /// Goes on, at the start, with the document that was kept; `now` in seconds since 1970.
    ///
    /// # Errors
    /// Why it cannot be done any more; the user plane waits for its control plane then.
    fn resume(&mut self, document: &Document, now: u64) -> Result<(), Vec<Fault>> {
        self.become_what_it_says(document)?;
        self.configured().resumed(document, now);
        Ok(())
    }

    /// What [`Managed::apply`] and [`Managed::resume`] have in common.
    ///
    /// # Errors
    /// What cannot be done.
    fn become_what_it_says(&mut self, document: &Document) -> Result<(), Vec<Fault>> {
        let document = read(document).map_err(|fault| vec![fault])?;
        self.reconfigure(&document)
    }
}

fn read(document: &Document) -> Result<UserPlaneDocument, Fault> {
    let read = serde_json::from_str(&document.text);
    read.map_err(|error| {
        Fault::of_document(format!(
            "this version does not support the document: {error}"
        ))
    })
}

fn told(fault: Fault) -> DocumentFault {
    DocumentFault {
        path: fault.path.to_string(),
        message: fault.message,
    }
}
