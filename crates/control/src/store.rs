//! Durable store of the control plane: an append-only log of keys and values.
//!
//! A batch of records is one frame of the file with its own checksum. It is written with one call and synced once, so a batch is
//! in the store as a whole or not at all. The next frame is written only when the previous one is on the disk, so a crash can
//! damage only the last frame. An incomplete last frame is cut off on opening. Any other damage is an error with its position:
//! then the disk or somebody has changed data that was durable.
//!
//! The size of the log stays in proportion to its live records. When the log has outgrown them ([`Limits`]), a snapshot is
//! written beside it, one slice after each batch. The snapshot has the live records, read from the log, and every batch that
//! arrives meanwhile. When it is complete and synced, one rename replaces the log. No acknowledgement waits for more than a
//! slice. For this the store keeps the place of each live record in memory: its key and about 50 octets.
//!
//! File `sessions.log` (`sessions.new` is an unfinished snapshot), numbers in little endian:
//!
//! ```text
//! header   "sluicelog\n" · version (u16) · salt (u64) · CRC32C of all that (u32)
//! frame    sequence number (u64) · payload length (u32) · CRC32C of these two (u32) · CRC32C of the payload (u32) · payload
//! payload  records: kind (u8: 1 put, 2 delete) · key length (u32) · value length (u32) · key · value
//! seal     a frame without payload
//! ```
//!
//! Frame numbers start at 1. The checksums begin with the salt, which is random for each file. So an old file's frame in a
//! recycled block cannot pass for a frame, nor can one that a subscriber put into a user name. A seal proves that everything
//! before it was on the disk. It ends every snapshot and backup, and a log that was idle for one second. Damage to the last batch
//! can then be distinguished from an interrupted write. A log gets its name as a complete snapshot, if only of nothing, so one
//! without any seal has lost a part of it, and is refused: what is left would be a state that never was.
//!
//! ```
//! use control::store::{Record, Store};
//!
//! let directory = tempfile::tempdir().unwrap();
//! let (mut store, opened) = Store::open(directory.path()).unwrap();
//! assert!(opened.live.is_empty());
//! store.append(&Record::put("session/1", "alice"));
//! store.append(&Record::put("session/2", "bob"));
//! store.append(&Record::delete("session/1"));
//! store.sync().unwrap(); // now, and not before, it may be relied on
//! store.tend().unwrap(); // a slice of whatever the store has to do besides
//! drop(store);
//!
//! let (_, opened) = Store::open(directory.path()).unwrap();
//! assert_eq!(opened.live, [(b"session/2".to_vec(), b"bob".to_vec())]);
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

mod backup;
mod disk;
pub(crate) mod log;
mod rotation;
mod thread;
mod writer;

pub use backup::{Backup, Checked, check, export, import};
pub use disk::{Directory, Disk, DiskFile};
pub use thread::{Ended, StoreThread};
pub use writer::{Acknowledgement, Writer};

use log::{Contents, LogFile};
use rotation::Rotation;

/// Name of the log in its directory.
const LOG: &str = "sessions.log";
/// Name of a snapshot until it is complete.
const NEW: &str = "sessions.new";
const MAX_BATCH: usize = 1 << 30;

/// Live records: keys and values in key order.
pub type Live = Vec<(Vec<u8>, Vec<u8>)>;

/// Change of one key.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

/// Without the value, which may be a secret.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, length) = (self.key.escape_ascii(), self.value.as_ref().map(Vec::len));
        write!(f, "Record {{ key: \"{key}\", octets: {length:?} }}")
    }
}

impl Record {
    /// Sets a key.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self {
            key: key.into(),
            value: Some(value.into()),
        }
    }

    /// Deletes a key.
    pub fn delete(key: impl Into<Vec<u8>>) -> Self {
        Self {
            key: key.into(),
            value: None,
        }
    }
}

/// When the log is rewritten, and in which steps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A log up to this size is not rewritten, in octets.
    pub least: u64,
    /// A larger log is rewritten when it exceeds this many times the octets of its live records.
    pub factor: u64,
    /// Size of a snapshot's slices, in octets. A slice is at least twice what arrived since the last one, so that the snapshot
    /// catches up.
    pub slice: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            least: 8 << 20,
            factor: 2,
            slice: 1 << 20,
        }
    }
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system returned an error.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has the store open.
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    /// The file is not a store of Sluice.
    #[error("{0} is not a store of sluice")]
    NotAStore(PathBuf),
    /// The log does not exist.
    #[error("no store: {0} does not exist")]
    Missing(PathBuf),
    /// The target of a backup exists already.
    #[error("{0} exists already; it is not overwritten")]
    Exists(PathBuf),
    /// The log has another format version.
    #[error(
        "{path} has format version {found}, this release supports {}",
        log::VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
    /// Bytes that were durable have changed.
    #[error(
        "{path} is damaged at byte {offset}: {what}. A crash during a write does not cause this, so nothing was changed. \
            Restore the file, or move it away to start with an empty store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset at which the damaged frame begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The end of a log or backup is missing, and with it some of the records that it was begun with.
    #[error(
        "{0} is not complete: its end is missing. A crash during a write does not cause this, so nothing was changed. \
            Restore the file, or move it away to start with an empty store"
    )]
    Incomplete(PathBuf),
}

/// Result of opening a store.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Live records.
    pub live: Live,
    /// Octets of an incomplete last batch that were cut off. The caller logs them if not zero.
    pub cut: u64,
}

/// The log, open for appending.
#[derive(Debug)]
pub struct Store<D: Disk = Directory> {
    disk: D,
    limits: Limits,
    log: LogFile<D::File>,
    pending: Vec<u8>,
    rotation: Option<Rotation<D::File>>,
    /// Size of the log at which a failed snapshot is tried again.
    rotate_again_at: u64,
    /// Whether an error left the state of the disk unknown. The log is then not continued but written again.
    failed: bool,
}

impl Store {
    /// Opens the store in a directory and reads its live records. Creates the directory if needed.
    pub fn open(directory: &Path) -> Result<(Self, Opened), StoreError> {
        Self::open_on(Directory::lock(directory)?, Limits::default())
    }
}

impl<D: Disk> Store<D> {
    /// Opens the store on a disk.
    pub fn open_on(mut disk: D, limits: Limits) -> Result<(Self, Opened), StoreError> {
        let path = disk.path(LOG);
        let found = disk.read(LOG).map_err(io_error("read", &path))?;
        let (log, opened) = match found {
            Some(bytes) => {
                let contents = Contents::read(&path, &bytes)?;
                let opened = Opened {
                    live: contents.live(&bytes),
                    cut: contents.cut,
                };
                (reopen(&mut disk, contents)?, opened)
            }
            None => (
                rotation::install(&mut disk, &Live::new())?,
                Opened::default(),
            ),
        };
        let store = Self {
            disk,
            limits,
            log,
            pending: Vec::new(),
            rotation: None,
            rotate_again_at: 0,
            failed: false,
        };
        Ok((store, opened))
    }

    /// Adds a record to the batch that the next [`sync`](Self::sync) makes durable.
    ///
    /// # Panics
    /// If the batch grows beyond 1 GiB.
    pub fn append(&mut self, record: &Record) {
        let size = record.key.len() + record.value.as_ref().map_or(0, Vec::len);
        assert!(
            self.pending.len() + size <= MAX_BATCH,
            "a batch of more than {MAX_BATCH} octets"
        );
        log::emit(&record.key, record.value.as_deref(), &mut self.pending);
    }

    /// Octets that wait for [`sync`](Self::sync).
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Size of the log in octets.
    pub fn len_on_disk(&self) -> u64 {
        self.log.length
    }

    /// Writes the batch and waits until it is on the disk. After an error the batch still waits and may grow; nothing of it is
    /// durable before a later call succeeds. If the state of the disk is unknown, that call first copies all live records into
    /// a new log.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.failed {
            self.write_anew()?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.pending);
        let written = self.write(&batch);
        self.pending = batch;
        written?;
        if let Some(rotation) = &mut self.rotation
            && let Err(error) = rotation.follow(&self.pending)
        {
            self.give_up_rotation(&error);
        }
        self.pending.clear();
        Ok(())
    }

    /// Replaces a failed log by a new one with all live records. What was durable in the old one can still be read.
    fn write_anew(&mut self) -> Result<(), StoreError> {
        self.rotation = None;
        self.log = rotation::rewrite(&mut self.disk, &self.log)?;
        (self.failed, self.rotate_again_at) = (false, 0);
        tracing::info!(
            octets = self.log.length,
            "the store's log was rewritten after an error"
        );
        Ok(())
    }

    /// Whether [`tend`](Self::tend) has work to do.
    pub fn wants_tending(&self) -> bool {
        self.rotation.is_some() || self.has_outgrown()
    }

    /// Writes a slice of a snapshot if one is due. A complete snapshot replaces the log.
    ///
    /// After an error it does nothing before [`sync`](Self::sync) has succeeded. A failed snapshot is no error: it is dropped and
    /// tried again later, because the present log stays valid.
    pub fn tend(&mut self) -> Result<(), StoreError> {
        self.refuse_if_failed()?;
        // A batch that is not on the disk yet must not get there with a snapshot.
        if !self.pending.is_empty() || !self.wants_tending() {
            return Ok(());
        }
        let copied = match &mut self.rotation {
            Some(rotation) => rotation.copy(&self.log),
            None => self.begin_rotation().map(|()| false),
        };
        match copied {
            Ok(false) => Ok(()),
            Ok(true) => self.replace_log(),
            Err(error) => {
                self.give_up_rotation(&error);
                Ok(())
            }
        }
    }

    fn begin_rotation(&mut self) -> io::Result<()> {
        let places = self.log.index.last_first();
        let rotation = Rotation::begin(&mut self.disk, self.limits.slice, places)?;
        self.rotation = Some(rotation);
        Ok(())
    }

    /// Whether a [`seal`](Self::seal) would add anything to the log.
    pub fn wants_seal(&self) -> bool {
        !self.failed && !self.log.sealed
    }

    /// Writes a seal. It proves to a later reader that every batch so far was on the disk.
    pub fn seal(&mut self) -> Result<(), StoreError> {
        self.refuse_if_failed()?;
        if self.log.sealed {
            return Ok(());
        }
        self.write(&[])
    }

    fn write(&mut self, payload: &[u8]) -> Result<(), StoreError> {
        self.log.write(payload).map_err(|unwritten| {
            self.failed = !unwritten.taken_back;
            io_error("write", &self.disk.path(LOG))(unwritten.error)
        })
    }

    fn has_outgrown(&self) -> bool {
        let most = self
            .limits
            .least
            .max(self.limits.factor * self.log.index.octets);
        self.log.length > most && self.log.length >= self.rotate_again_at
    }

    fn replace_log(&mut self) -> Result<(), StoreError> {
        let Some(rotation) = self.rotation.take() else {
            return Ok(());
        };
        // A failed rename leaves it unknown which log a restart will find: it may not be the open one.
        let replaced = rotation.finish(&mut self.disk);
        self.failed = replaced.is_err();
        let before = self.log.length;
        self.log = replaced?;
        self.rotate_again_at = 0;
        tracing::debug!(
            before,
            after = self.log.length,
            "the store's log was rewritten"
        );
        Ok(())
    }

    fn give_up_rotation(&mut self, error: &io::Error) {
        self.rotation = None;
        self.rotate_again_at = self.log.length + self.log.length / 2;
        // The next snapshot overwrites what is left of this one.
        let _ = self.disk.remove(NEW);
        tracing::warn!(
            path = %self.disk.path(NEW).display(), %error, log_octets = self.log.length,
            "cannot write a snapshot of the store; the log grows until the next attempt"
        );
    }

    fn refuse_if_failed(&self) -> Result<(), StoreError> {
        if self.failed {
            let error = io::Error::other("an earlier write failed");
            return Err(io_error("write", &self.disk.path(LOG))(error));
        }
        Ok(())
    }
}

/// Reopens a log that was read: cuts off an incomplete frame and syncs the file and its name. A process that was killed may have
/// left them only in the system's memory.
fn reopen<D: Disk>(disk: &mut D, contents: Contents) -> Result<LogFile<D::File>, StoreError> {
    // An unfinished snapshot is not part of the store.
    let _ = disk.remove(NEW);
    let mut open = || {
        let mut file = disk.open(LOG)?;
        if contents.cut > 0 {
            file.truncate(contents.length)?;
        }
        file.sync()?;
        disk.sync_names()?;
        Ok(file)
    };
    let file = open().map_err(io_error("open", &disk.path(LOG)))?;
    Ok(LogFile::resume(file, contents))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
pub(crate) mod tests;
