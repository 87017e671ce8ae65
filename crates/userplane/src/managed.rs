//! Applies documents of the management interface, without I/O. [`crate::run::UserPlane`] and the simulation both use it.

use config::{Fault, UserPlaneDocument};
use mi::{Begun, Configured, Document, DocumentFault, Keep, Response};
use northbound::Refusal;

/// Something that a document configures.
pub trait Managed {
    /// Store that keeps the document across a restart.
    type Kept: Keep;

    /// The document in force.
    fn configured(&mut self) -> &mut Configured<Self::Kept>;

    /// Faults of a document that can be found without applying it.
    fn check(&self, document: &UserPlaneDocument) -> Vec<Fault>;

    /// Applies a document: all of it or nothing.
    ///
    /// # Errors
    /// Faults with their places in the document.
    fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>>;

    /// Faults of a document, as the management interface reports them.
    fn validate(&self, document: &Document) -> Vec<DocumentFault> {
        match read(document) {
            Ok(document) => self.check(&document).into_iter().map(told).collect(),
            Err(fault) => vec![told(fault)],
        }
    }

    /// Applies a document and stores it durably before it returns; `now` in seconds since 1970.
    ///
    /// # Errors
    /// The document is older than the one in force, another change is under way, or it cannot be stored.
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

    /// Applies the stored document at the start; `now` in seconds since 1970.
    ///
    /// # Errors
    /// Why the document cannot be applied any more. The user plane then waits for its control plane.
    fn resume(&mut self, document: &Document, now: u64) -> Result<(), Vec<Fault>> {
        self.become_what_it_says(document)?;
        self.configured().resumed(document, now);
        Ok(())
    }

    /// Common part of [`Managed::apply`] and [`Managed::resume`].
    ///
    /// # Errors
    /// Faults of the document.
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
