//! Applies documents of the management interface, without I/O. [`crate::run::UserPlane`] and the simulation both use it.

use std::io;

use config::{Fault, UserPlaneDocument};
use mi::{Configured, Document, DocumentFault, Keep, Response, Written};
use northbound::Refusal;

/// What a document says, or what is wrong with it in itself.
pub type Reading = Result<UserPlaneDocument, Vec<Fault>>;

/// Something that a document configures.
pub trait Managed {
    /// Store that keeps the document across a restart.
    type Kept: Keep;

    /// The document in force.
    fn configured(&mut self) -> &mut Configured<Self::Kept>;

    /// Faults of a document, right in itself, that can be found without applying it.
    fn check(&self, document: &UserPlaneDocument) -> Vec<Fault>;

    /// Applies a document that is right in itself: all of it or nothing.
    ///
    /// # Errors
    /// Faults with their places in the document.
    fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>>;

    /// Faults of a document, as the management interface reports them.
    fn validate(&self, reading: Reading) -> Vec<DocumentFault> {
        let faults = reading.map_or_else(|faults| faults, |document| self.check(&document));
        faults.into_iter().map(told).collect()
    }

    /// Applies a document that was begun ([`Configured::begin`]) and written to the disk, if it could be. It is kept when this returns; `now`
    /// in seconds since 1970.
    ///
    /// # Errors
    /// It could not be written, or cannot be kept.
    fn apply(
        &mut self,
        document: &Document,
        written: io::Result<()>,
        reading: Reading,
        now: u64,
    ) -> Result<Response, Refusal> {
        if let Written::Done(response) = self.configured().written(document, written)? {
            return Ok(response);
        }
        match reading.and_then(|reading| self.reconfigure(&reading)) {
            Ok(()) => self.configured().finish(document, now),
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
    fn resume(
        &mut self,
        document: &Document,
        reading: Reading,
        now: u64,
    ) -> Result<(), Vec<Fault>> {
        self.reconfigure(&reading?)?;
        self.configured().resumed(document, now);
        Ok(())
    }
}

/// Reads a document.
///
/// # Errors
/// This version does not know something in it.
pub fn read(document: &Document) -> Reading {
    serde_json::from_str(&document.text).map_err(|error| {
        vec![Fault::of_document(format!(
            "this version does not support the document: {error}"
        ))]
    })
}

fn told(fault: Fault) -> DocumentFault {
    DocumentFault {
        path: fault.path.to_string(),
        message: fault.message,
    }
}
