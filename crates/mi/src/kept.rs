//! What a user plane was last told, on its disk: for a restart while no control plane is there.
//!
//! One file. A new document is written beside it and synced, and takes its name when it is put in force. So a user plane
//! that dies at any moment finds either of them whole, and what it has acknowledged is there. The first line says what
//! follows: `sluice-document 1 GENERATION HASH SEAL`. The hash is that of the text; the seal that of the line before it.

use crate::Document;
use crate::document::digest;
use config::folder;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file's name in the folder of the user plane's state.
const NAME: &str = "document";
/// What is being written, or was when the user plane died.
const NEXT: &str = "document.next";
/// What the file is, and the version of how it is written.
const MARK: &str = "sluice-document 1";

/// Why the last document cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The system does not let us.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not as it was written.
    #[error("{}: {why}. It is left alone until the control plane sends the document again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: &'static str,
    },
}

/// Where the last document is kept for a restart.
pub trait Keep {
    /// Writes a document to the disk, where it waits to become the last one. Of two that were begun the second one counts.
    ///
    /// # Errors
    /// It cannot be written.
    fn begin(&self, document: &Document) -> io::Result<()>;

    /// Makes what was begun the last document.
    ///
    /// # Errors
    /// The system does not let us: either document may be there at the next start.
    fn finish(&self) -> io::Result<()>;

    /// Gives up what was begun.
    ///
    /// # Errors
    /// The system does not let us; the next start does it.
    fn give_up(&self) -> io::Result<()>;
}

/// The folder with the last document.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// In this folder, which is made if it is missing. What an earlier life did not finish is cleared away.
    ///
    /// # Errors
    /// The folder cannot be made, or written to.
    pub fn open(folder: &Path) -> io::Result<Self> {
        folder::make(folder)?;
        let kept = Kept {
            folder: folder.to_owned(),
        };
        match fs::remove_file(kept.next()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(kept),
        }
    }

    /// Whether there is a last document in this folder, readable or not.
    pub fn is_there(folder: &Path) -> bool {
        folder.join(NAME).exists()
    }

    /// The last document; `None` if there was none yet.
    ///
    /// # Errors
    /// It cannot be read, or is damaged: then the control plane has to send it again.
    pub fn document(&self) -> Result<Option<Document>, KeptError> {
        let path = self.path();
        let octets = match fs::read(&path) {
            Ok(octets) => octets,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(KeptError::Unreadable { path, source }),
        };
        // what was renamed and not synced before a death may yet go away: what is used from here on must not
        let synced = File::open(&path).and_then(|file| file.sync_all());
        if let Err(source) = synced.and_then(|()| folder::sync(&self.folder)) {
            return Err(KeptError::Unreadable { path, source });
        }
        match read(octets) {
            Ok(document) => Ok(Some(document)),
            Err(why) => Err(KeptError::Damaged { path, why }),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    fn next(&self) -> PathBuf {
        self.folder.join(NEXT)
    }
}

impl Keep for Kept {
    fn begin(&self, document: &Document) -> io::Result<()> {
        let mut file = File::create(self.next())?;
        file.write_all(header(document).as_bytes())?;
        file.write_all(document.text.as_bytes())?;
        file.sync_all()
    }

    fn finish(&self) -> io::Result<()> {
        fs::rename(self.next(), self.path())?;
        folder::sync(&self.folder)
    }

    fn give_up(&self) -> io::Result<()> {
        fs::remove_file(self.next())
    }
}

fn header(document: &Document) -> String {
    let facts = format!("{MARK} {} {}", document.generation, document.hash);
    let seal = digest(&facts);
    format!("{facts} {seal}\n")
}

fn read(octets: Vec<u8>) -> Result<Document, &'static str> {
    let text = String::from_utf8(octets).map_err(|_| "it is damaged")?;
    let (line, text) = text.split_once('\n').ok_or("its first line is damaged")?;
    let (facts, seal) = line.rsplit_once(' ').ok_or("its first line is damaged")?;
    if digest(facts) != seal {
        return Err("its first line is damaged");
    }
    let facts = facts.strip_prefix(MARK).map(str::trim_start);
    let facts = facts.ok_or("another version of sluice-up has written it")?;
    let (generation, hash) = facts.split_once(' ').ok_or("its first line is damaged")?;
    let document = Document {
        generation: generation
            .parse()
            .map_err(|_| "its first line is damaged")?,
        hash: hash.into(),
        text: text.into(),
    };
    document.verify().map_err(|_| "its text is damaged")?;
    Ok(document)
}
