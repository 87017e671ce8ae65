//! The store: what must survive the control plane, as an append-only log of keys and values.
//!
//! A batch of records is one frame of the file with its own checksum, written with one call and synced once; a batch is
//! in the store as a whole or not at all. The next frame is written only when the one before is on the disk, so a crash
//! can damage the last frame and nothing else: what is left of it is cut off on opening. Any other damage is refused,
//! with its place, because it means that the disk or somebody has changed what we had promised to keep.
//!
//! The log stays in proportion to what is alive. When it has outgrown that ([`Limits`]), a snapshot is written beside it,
//! a slice after each batch: first what was alive, in order of the keys, and behind it every batch that comes meanwhile.
//! When the snapshot is complete and synced it takes the log's place by one rename. No acknowledgement waits for more
//! than a slice. For this the store keeps what is alive in memory too: what a record holds and about 100 octets.
//!
//! File `sessions.log` (`sessions.new` is a snapshot in the making), numbers in little endian:
//!
//! ```text
//! header   "sluicelog\n" · version (u16) · salt (u64) · CRC32C of all that (u32)
//! frame    sequence number (u64) · payload length (u32) · CRC32C of these two (u32) · CRC32C of the payload (u32) · payload
//! payload  records: kind (u8: 1 put, 2 delete) · key length (u32) · value length (u32) · key · value
//! seal     a frame without payload
//! ```
//!
//! Frames count from 1. Their checksums begin with the salt, which is drawn anew for each file: neither an old file's frame
//! in a recycled block nor one that a subscriber put into a user name can pass for a frame. A seal proves that
//! everything before it was on the disk. It ends every snapshot and backup, and a log that has been left alone for a
//! second, so that damage to the last batch is then told from a write cut short.
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

use std::collections::BTreeMap;
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
pub(crate) use disk::{create, salt};
pub use thread::{Ended, StoreThread};
pub use writer::{Acknowledgement, Writer};

use log::{Contents, LogFile};
use rotation::Rotation;

/// The log's name in its directory.
const LOG: &str = "sessions.log";
/// The name of a snapshot until it is complete.
const NEW: &str = "sessions.new";
const MAX_BATCH: usize = 1 << 30;

/// What is alive in the log: keys and values in order of the keys.
pub type Live = Vec<(Vec<u8>, Vec<u8>)>;

type LiveMap = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The new value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
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
    /// A log of up to this size is left alone, in octets.
    pub least: u64,
    /// A larger one may hold this many times the octets that are alive.
    pub factor: u64,
    /// A snapshot is written in slices of this size, and at least twice what came since the last one, so that it catches up.
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
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another process has the store open.
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    /// Not a log of ours.
    #[error("{0} is not a store of sluice")]
    NotAStore(PathBuf),
    /// There is no log.
    #[error("no store: {0} does not exist")]
    Missing(PathBuf),
    /// Something is where a backup was to go.
    #[error("{0} exists already; it is not overwritten")]
    Exists(PathBuf),
    /// A log of another release.
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
    /// Bytes that were safely on the disk are not what was written.
    #[error(
        "{path} is damaged at byte {offset}: {what}. A crash during a write does not cause this, so nothing was changed. \
            Restore the file, or move it away to start with an empty store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged frame begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A backup that is not whole.
    #[error("{0} is not a complete backup: its end is missing")]
    Incomplete(PathBuf),
}

/// What was found on opening.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened {
    /// What is alive.
    pub live: Live,
    /// How many bytes of a half-written last batch were cut off; worth a line in the log if not zero.
    pub cut: u64,
}

/// The log, open for appending.
#[derive(Debug)]
pub struct Store<D: Disk = Directory> {
    disk: D,
    limits: Limits,
    log: LogFile<D::File>,
    live: LiveMap,
    /// What the records of `live` take in a log.
    live_octets: u64,
    pending: Vec<u8>,
    rotation: Option<Rotation<D::File>>,
    /// After a snapshot that failed, no other is tried before the log has this size.
    rotate_again_at: u64,
    /// After a failed sync nobody knows what is on the disk: the log is not gone on with, but written anew.
    failed: bool,
}

impl Store {
    /// Opens the store in a directory, which is made if it does not exist, and reads what is alive.
    pub fn open(directory: &Path) -> Result<(Self, Opened), StoreError> {
        Self::open_on(Directory::lock(directory)?, Limits::default())
    }
}

impl<D: Disk> Store<D> {
    /// Opens the store on a disk.
    pub fn open_on(mut disk: D, limits: Limits) -> Result<(Self, Opened), StoreError> {
        let path = disk.path(LOG);
        let found = disk.read(LOG).map_err(io_error("read", &path))?;
        let (contents, log) = match found {
            Some(bytes) => {
                let contents = Contents::read(&path, &bytes)?;
                let log = reopen(&mut disk, &contents)?;
                (contents, log)
            }
            None => (
                Contents::default(),
                rotation::install(&mut disk, &LiveMap::new())?,
            ),
        };
        let live = contents.live.iter();
        let opened = Opened {
            live: live
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect(),
            cut: contents.cut,
        };
        let store = Self {
            disk,
            limits,
            log,
            live: contents.live,
            live_octets: contents.live_octets,
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
        let (key, value) = (&record.key[..], record.value.as_deref());
        log::emit(key, value, &mut self.pending);
        log::apply(&mut self.live, &mut self.live_octets, key, value);
    }

    /// How large the batch is that waits for [`sync`](Self::sync).
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// How large the file is.
    pub fn len_on_disk(&self) -> u64 {
        self.log.length
    }

    /// Writes the batch and waits until it is on the disk. After an error the batch waits on, and may be added to; nothing
    /// of it is to be relied on before a later call succeeds. Where it is not known what is on the disk, that call
    /// writes everything that is alive into a new log.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.failed {
            return self.write_anew();
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

    /// Puts a new log, of everything that is alive and of the batch that waits, in the place of one that failed.
    fn write_anew(&mut self) -> Result<(), StoreError> {
        self.rotation = None;
        self.log = rotation::install(&mut self.disk, &self.live)?;
        (self.failed, self.rotate_again_at) = (false, 0);
        self.pending.clear();
        tracing::info!(
            octets = self.log.length,
            "the store's log was rewritten after an error"
        );
        Ok(())
    }

    /// Whether [`tend`](Self::tend) has something to do now.
    pub fn wants_tending(&self) -> bool {
        self.rotation.is_some() || self.has_outgrown()
    }

    /// Writes a slice of a snapshot, if one is due, and puts it in the log's place when it is complete.
    ///
    /// After an error nothing is done before [`sync`](Self::sync) has succeeded. A snapshot that cannot be written is no
    /// error: it is given up and tried again later, because the log as it is can be relied on.
    pub fn tend(&mut self) -> Result<(), StoreError> {
        self.refuse_if_failed()?;
        // A batch that is not on the disk yet must not get there by way of a snapshot.
        if !self.pending.is_empty() || !self.wants_tending() {
            return Ok(());
        }
        let copied = match &mut self.rotation {
            Some(rotation) => rotation.copy(&self.live),
            None => Rotation::begin(&mut self.disk, self.limits.slice).map(|rotation| {
                self.rotation = Some(rotation);
                false
            }),
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

    /// Whether a [`seal`](Self::seal) would say more than the log does.
    pub fn wants_seal(&self) -> bool {
        !self.failed && !self.log.sealed
    }

    /// Proves to a later reader that every batch until now was on the disk.
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
        let most = self.limits.least.max(self.limits.factor * self.live_octets);
        self.log.length > most && self.log.length >= self.rotate_again_at
    }

    fn replace_log(&mut self) -> Result<(), StoreError> {
        let Some(rotation) = self.rotation.take() else {
            return Ok(());
        };
        // Where the rename stopped is not known if it fails: the log that is open may not be the one that a restart finds.
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
        // What is left of it is overwritten by the next one.
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

/// Goes on with a log that was read: cuts off what is half-written, and waits until the disk has what was read. A process
/// that was killed may have left it, or the log's name, in the system's memory alone.
fn reopen<D: Disk>(disk: &mut D, contents: &Contents) -> Result<LogFile<D::File>, StoreError> {
    // A snapshot that was not finished is not part of the store.
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
mod tests;
