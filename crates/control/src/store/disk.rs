//! What the store asks of the machine: a seam, so that a test can put a disk there that fails when it is told to.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{StoreError, io_error};
use config::folder;

/// A directory for a store.
///
/// Nothing of it is durable before the matching sync: a file's content before [`DiskFile::sync`], its name (also after
/// a rename) before [`sync_names`](Self::sync_names).
pub trait Disk {
    /// A file open for appending.
    type File: DiskFile;

    /// The whole of a file; `None` if there is none of this name.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// An empty file, also where one is of this name.
    fn create(&mut self, name: &str) -> io::Result<Self::File>;
    /// A file that exists.
    fn open(&mut self, name: &str) -> io::Result<Self::File>;
    /// Gives a file another name and drops the one that had it, in one step.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Drops a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Waits until the names are on the disk.
    fn sync_names(&mut self) -> io::Result<()>;
    /// A number that nobody can guess.
    fn salt(&mut self) -> io::Result<u64>;
    /// What people call a file of this name.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file of a [`Disk`].
pub trait DiskFile {
    /// Writes at the end; after an error some of it may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Waits until everything written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A directory of the file system, held by this process alone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes the directory if it does not exist, and takes it for this process.
    ///
    /// # Errors
    /// Among others, that another process holds it.
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
        OpenOptions::new().append(true).open(self.path.join(name))
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
}

pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// An empty file that is not everybody's to read: it says who is online where.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

pub(crate) fn salt() -> io::Result<u64> {
    use rand::TryRngCore;
    let drawn = rand::rngs::OsRng.try_next_u64();
    drawn.map_err(|error| io::Error::other(format!("no randomness from the system: {error}")))
}
