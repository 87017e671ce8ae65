//! The configuration: its model, its documents, its changes and its versions, and the daemons' start files.
//!
//! [`model`] declares every setting once; [`schema`] is that as data, from which documents are checked ([`check`]), commands
//! completed ([`completion`]) and the reference manual made. [`edit`] changes and compares, [`transactions`] commits, [`history`] keeps
//! versions. [`start`] is what a daemon has to know before it can be told anything. Whatever is wrong is reported with line,
//! place and what was expected; an unknown or doubled name is an error, never ignored. Nothing here touches the network.
//!
//! ```
//! use config::{Edit, check};
//!
//! let before = check::read("ipv4-pools: {homes: {prefix: 100.64.0.0/16}}\nnetwork-instances: {default: {}}\n").unwrap();
//! let mut tree = before.tree.clone();
//! Edit::parse("set ipv4-pools homes net-length 26").unwrap().apply(&mut tree).unwrap();
//! assert_eq!(check::check(&tree).unwrap().configuration.ipv4_pools["homes"].net_length, 26);
//!
//! let faults = check::read("limits:\n  session: 5\n").unwrap_err();
//! assert!(faults[0].to_string().starts_with("line 2: limits session: `session` is not a setting here: did you mean `sessions`?"));
//! ```
#![forbid(unsafe_code)]

pub mod capabilities;
pub mod check;
pub mod completion;
pub mod edit;
pub mod folder;
pub mod history;
pub mod manual;
pub mod model;
pub mod password;
mod path;
pub mod prompt;
pub mod schema;
pub mod start;
mod template;
pub mod transactions;
pub mod tree;
mod values;
mod write;

pub use capabilities::Capabilities;
pub use check::Checked;
pub use edit::{Edit, Verb};
pub use model::{Configuration, UserPlaneDocument};
pub use path::{Path, quoted, words};
pub use template::{Template, TemplateValues};
pub use tree::MAX_DOCUMENT;
pub use values::{AddressRange, Addresses, CpuList, HoldSessions, MASK, Secret, SvlanSet, mac};
pub use write::{masked, write};

use serde::de::DeserializeOwned;
use std::path::Path as FilePath;

/// A document that can be checked as a whole after it was read.
pub trait Document: DeserializeOwned {
    /// Finds what no single value shows: references without a target, doubled names, overlaps.
    fn check(&self) -> Result<(), Fault>;
}

/// What is wrong and where in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, counted from 1; 0 when the fault has no single place, or was never written in a document.
    pub line: u64,
    /// The place.
    pub path: Path,
    /// What was found and what is expected.
    pub message: String,
}

impl Fault {
    /// A fault of the whole.
    pub fn of_document(message: impl Into<String>) -> Self {
        Fault {
            line: 0,
            path: Path::default(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.path.is_root() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file's name as it was given.
        file: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The text is not the document that is expected.
    #[error("{file}:{}{message}", if *line == 0 { " ".into() } else { format!("{line}: ") })]
    Invalid {
        /// The file's name as it was given.
        file: String,
        /// Line, counted from 1; 0 when it concerns the whole document.
        line: u64,
        /// What was found and what is expected.
        message: String,
    },
}

/// Reads and checks a file.
pub fn load<D: Document>(path: &FilePath) -> Result<D, Error> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, &file),
        Err(source) => Err(Error::Unreadable { file, source }),
    }
}

/// Reads and checks a text; `file` is its name for messages.
pub fn parse<D: Document>(text: &str, file: &str) -> Result<D, Error> {
    let invalid = |line, message: String| Error::Invalid {
        file: file.to_owned(),
        line,
        message,
    };
    let document: D = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map_or(0, |at| at.line());
        let message = error.to_string();
        invalid(line, plain(&message))
    })?;
    document
        .check()
        .map_err(|fault| invalid(fault.line, fault.message))?;
    Ok(document)
}

/// The parser's message without its own copy of the place and without advice for programmers.
fn plain(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let message = message
        .split(", set DuplicateKeyPolicy")
        .next()
        .unwrap_or(message);
    match message {
        "invalid IP address syntax" => "not an IP address or prefix: expected such as 192.0.2.1, \
             2001:db8::1 or, where a prefix is wanted, 192.0.2.0/24"
            .into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_good() {
        let examples = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples");
        load::<start::UserPlane>(&examples.join("up.yaml")).unwrap();
        load::<start::ControlPlane>(&examples.join("cp.yaml")).unwrap();
        load::<start::Web>(&examples.join("web.yaml")).unwrap();
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load::<start::UserPlane>(FilePath::new("/nowhere/up.yaml")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/nowhere/up.yaml: cannot be read: "),
            "{error}"
        );
    }
}
