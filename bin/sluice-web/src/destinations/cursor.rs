//! How far a destination has got: a file of the state folder, so that a restart goes on behind it.

use config::folder;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Where a destination is in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Number of the last event that it has got.
    pub last: u64,
    /// When it had got that, in seconds since 1970.
    pub at: u64,
}

/// The file of a cursor.
#[derive(Clone, Debug)]
pub struct CursorFile(PathBuf);

impl CursorFile {
    /// That of a destination.
    pub fn of(folder: &Path, name: &str) -> Self {
        CursorFile(folder.join(format!("{name}.json")))
    }

    /// Reads it; `None`: the destination is new.
    ///
    /// # Errors
    /// The file cannot be read; the text names it.
    pub fn read(&self) -> Result<Option<Cursor>, String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", self.0.display());
        match std::fs::read(&self.0) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|e| said(&e)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(said(&error)),
        }
    }

    /// Writes it. It is on the disk when this returns.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, cursor: Cursor) -> io::Result<()> {
        folder::replace(&self.0, &serde_json::to_vec(&cursor)?)
    }
}

/// Removes the files of destinations that are not configured any more: one that comes back is new.
///
/// # Errors
/// What the system says.
pub fn retain(folder: &Path, is_configured: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if !name.is_some_and(&is_configured) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_that_goes_and_comes_back_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let cursor = Cursor { last: 7, at: 9 };
        for name in ["noc", "crm"] {
            let file = CursorFile::of(folder.path(), name);
            assert_eq!(file.read().unwrap(), None);
            file.write(cursor).unwrap();
            assert_eq!(file.read().unwrap(), Some(cursor));
        }
        retain(folder.path(), |name| name == "noc").unwrap();
        let read = |name| CursorFile::of(folder.path(), name).read().unwrap();
        assert_eq!((read("noc"), read("crm")), (Some(cursor), None));
        std::fs::write(folder.path().join("noc.json"), "x").unwrap();
        let said = CursorFile::of(folder.path(), "noc").read().unwrap_err();
        assert!(said.contains("noc.json"), "{said}");
    }
}
