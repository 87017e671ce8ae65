//! The document that configures a user plane, and which of several is to be in force.

use crate::{Document, InForce};
use northbound::Refusal;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The largest document's text, in octets: as large as a configuration may be.
pub const MAX_TEXT: usize = config::MAX_DOCUMENT;

/// SHA-256 in hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |mut hex, octet| {
        let _ = write!(hex, "{octet:02x}"); // into a string
        hex
    })
}

impl Document {
    /// A document with its hash.
    pub fn new(generation: u64, text: String) -> Self {
        let hash = digest(&text);
        Document {
            generation,
            hash,
            text,
        }
    }

    /// Whether it is whole: a generation from 1 on, a text of a permitted size, and its hash.
    ///
    /// # Errors
    /// What is wrong, for a person.
    pub fn verify(&self) -> Result<(), String> {
        if self.generation == 0 {
            return Err("the document has generation 0: expected 1 or more".into());
        }
        if self.text.len() > MAX_TEXT {
            let octets = self.text.len();
            return Err(format!(
                "the document has {octets} octets: expected at most {MAX_TEXT}"
            ));
        }
        if self.hash != digest(&self.text) {
            return Err("the document's hash is not that of its text".into());
        }
        Ok(())
    }

    /// What is said of it while it is in force.
    pub fn in_force(&self, since: u64) -> InForce {
        InForce {
            generation: self.generation,
            hash: self.hash.clone(),
            since,
        }
    }
}

impl InForce {
    /// Whether it is this document that is in force already; otherwise it may be put in force.
    ///
    /// # Errors
    /// Something later is in force, or something else of the same generation.
    pub fn is(&self, document: &Document) -> Result<bool, Refusal> {
        let own = self.generation;
        if document.generation > own {
            return Ok(false);
        }
        if document.generation < own {
            return Err(Refusal::Outdated(format!(
                "generation {} is older than {own}, which is in force",
                document.generation
            )));
        }
        if document.hash == self.hash {
            return Ok(true);
        }
        Err(Refusal::Outdated(format!(
            "another document of generation {own} is in force: {}",
            self.hash
        )))
    }
}
