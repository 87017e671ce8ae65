//! Disk interface of the store, so that tests can use a disk that fails on demand.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{StoreError, io_error};
use config::folder;
use nix::fcntl::OFlag;

/// Directory for a store.
///
/// Nothing is durable before the matching sync: the content of a file needs [`DiskFile::sync`], its name (also after a rename)
/// needs [`sync_names`](Self::sync_names).
pub trait Disk {
    /// A file open for appending and for reading.
    type File: DiskFile;

    /// Reads a whole file; `None` if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Creates an empty file; truncates an existing one.
    fn create(&mut self, name: &str) -> io::Result<Self::File>;
    /// Opens an existing file for appending and for reading.
    fn open(&mut self, name: &str) -> io::Result<Self::File>;
    /// Renames a file and replaces the file with the new name, in one step.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Waits until the names are on the disk.
    fn sync_names(&mut self) -> io::Result<()>;
    /// Random number that nobody can guess.
    fn salt(&mut self) -> io::Result<u64>;
    /// Path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file of a [`Disk`].
pub trait DiskFile {
    /// Appends octets. After an error, some of them may be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Waits until everything written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates the file.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Reads octets from this place on, as many as there is room for. An error if the file has fewer.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// Directory of the file system, locked by this process.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Creates the directory if needed, and locks it for this process.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process holds the lock, or the system's error.
    pub fn lock(directory: &Path) -> Result<Self, StoreError> {
        folder::make(directory).map_err(io_error("create", directory))?;
        let path = directory.join("lock");
        let options = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = options.map_err(io_error("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                path: directory.to_owned(),
                _lock: file,
            }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked(directory.into())),
            Err(TryLockError::Error(error)) => Err(io_error("lock", &path)(error)),
        }
    }
}

impl Disk for Directory {
    type File = File;

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        read(&self.path.join(name))
    }

    fn create(&mut self, name: &str) -> io::Result<File> {
        create(&self.path.join(name))
    }

    fn open(&mut self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).open(self.path.join(name))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        folder::sync(&self.path)
    }

    fn salt(&mut self) -> io::Result<u64> {
        salt()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, at)
    }
}

pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates an empty file that only its owner can read: it says who is online where. What is written goes to its end, wherever the end is
/// after a truncation.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_APPEND.bits())
        .mode(0o600)
        .open(path)
}

pub(crate) fn salt() -> io::Result<u64> {
    use rand::TryRngCore;
    let drawn = rand::rngs::OsRng.try_next_u64();
    drawn.map_err(|error| io::Error::other(format!("no randomness from the system: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_after_a_failed_append_leaves_no_hole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut file = create(&path).unwrap();
        file.append(b"whole").unwrap();
        file.append(b"par").unwrap();
        DiskFile::truncate(&mut file, 5).unwrap();
        file.append(b"next").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"wholenext");
    }
}
