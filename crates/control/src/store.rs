//! The store: what must survive the control plane, as an append-only log of keys and values.
//!
//! A batch of records is one frame of the file with its own checksum, written with one call and synced once; a batch is
//! in the store as a whole or not at all. On opening, the log is read into what is alive, and rewritten if something
//! in it is not. The next frame is written only when the one before is on the disk, so a crash can damage the last frame
//! and nothing else: a damaged frame with no whole one behind it is cut off, any other damage is refused, because
//! it means that the disk or somebody has changed what we had promised to keep.
//!
//! File `sessions.log`, numbers in little endian:
//!
//! ```text
//! header   "sluicelog\n" · version (u16) · CRC32C of both (u32)
//! frame    sequence number (u64) · payload length (u32) · CRC32C of these two (u32) · CRC32C of the payload (u32) · payload
//! payload  records: kind (u8: 1 put, 2 delete) · key length (u32) · value length (u32) · key · value
//! ```
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
//! drop(store);
//!
//! let (_, opened) = Store::open(directory.path()).unwrap();
//! assert_eq!(opened.live, [(b"session/2".to_vec(), b"bob".to_vec())]);
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

mod thread;

pub use thread::{Acknowledgement, Failed, StoreThread};

const MAGIC: &[u8; 10] = b"sluicelog\n";
const VERSION: u16 = 1;
const HEADER: usize = 16;
const FRAME_HEADER: usize = 20;
const RECORD_HEADER: usize = 9;
/// A rewritten log is cut into frames of about this size.
const FULL_FRAME: usize = 1 << 20;
const MAX_BATCH: usize = 1 << 30;

/// What is alive in the log: keys and values in order of the keys.
pub type Live = Vec<(Vec<u8>, Vec<u8>)>;

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

    fn emit(&self, out: &mut Vec<u8>) {
        let value = self.value.as_deref().unwrap_or_default();
        out.push(if self.value.is_some() { 1 } else { 2 });
        out.extend((self.key.len() as u32).to_le_bytes());
        out.extend((value.len() as u32).to_le_bytes());
        out.extend(&self.key);
        out.extend(value);
    }

    /// The first record of a payload and the rest; `None` if it cannot be one.
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = bytes.split_at_checked(RECORD_HEADER)?;
        let (key, rest) = rest.split_at_checked(u32_at(header, 1) as usize)?;
        let (value, rest) = rest.split_at_checked(u32_at(header, 5) as usize)?;
        let value = match header[0] {
            1 => Some(value.to_vec()),
            2 if value.is_empty() => None,
            _ => return None,
        };
        Some((
            Self {
                key: key.to_vec(),
                value,
            },
            rest,
        ))
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
    /// A log of a later release.
    #[error("{path} has format version {found}, this release knows {VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
    /// Bytes that were safely on the disk are not what was written.
    #[error(
        "{path} is damaged at byte {offset}: {what}. This is not the end of a write that a crash cut short, so nothing \
         was changed; restore the file, or move it away to start with an empty store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged frame begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
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
pub struct Store {
    path: PathBuf,
    file: File,
    sequence: u64,
    length: u64,
    pending: Vec<u8>,
    /// After a failed write nobody knows what is on the disk, so no further one is tried.
    failed: bool,
    _lock: File,
}

impl Store {
    /// Opens the store in a directory, which is made if it does not exist, and reads what is alive.
    pub fn open(directory: &Path) -> Result<(Self, Opened), StoreError> {
        fs::create_dir_all(directory).map_err(io_error("create", directory))?;
        let lock = lock(directory)?;
        let path = directory.join("sessions.log");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let log = Log::read(&path, &bytes)?;
        let sequence = if log.is_clean() {
            log.sequence
        } else {
            rewrite(&path, &log.live)?
        };
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(io_error("open", &path))?;
        let length = file.metadata().map_err(io_error("read", &path))?.len();
        let store = Self {
            path,
            file,
            sequence,
            length,
            pending: Vec::new(),
            failed: false,
            _lock: lock,
        };
        Ok((
            store,
            Opened {
                live: log.live.into_iter().collect(),
                cut: log.cut,
            },
        ))
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
        record.emit(&mut self.pending);
    }

    /// How large the batch is that waits for [`sync`](Self::sync).
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// How large the file is.
    pub fn len_on_disk(&self) -> u64 {
        self.length
    }

    /// Writes the batch and waits until it is on the disk. After an error the store stays closed to writes: what is on the
    /// disk is known again only when it is opened anew.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.failed {
            return Err(io_error("write", &self.path)(io::Error::other(
                "an earlier write failed",
            )));
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let frame = frame(self.sequence, &self.pending);
        let written = self
            .file
            .write_all(&frame)
            .and_then(|()| self.file.sync_data());
        self.failed = written.is_err();
        written.map_err(io_error("write", &self.path))?;
        self.sequence += 1;
        self.length += frame.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// A log as it was read.
struct Log {
    live: BTreeMap<Vec<u8>, Vec<u8>>,
    records: usize,
    /// Of the next frame.
    sequence: u64,
    has_header: bool,
    cut: u64,
}

impl Log {
    /// Whether everything in the file is alive.
    fn is_clean(&self) -> bool {
        self.has_header && self.cut == 0 && self.records == self.live.len()
    }

    fn read(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let mut log = Self {
            live: BTreeMap::new(),
            records: 0,
            sequence: 1,
            has_header: false,
            cut: 0,
        };
        if !check_header(path, bytes)? {
            log.cut = bytes.len() as u64;
            return Ok(log);
        }
        log.has_header = true;
        let mut at = HEADER;
        while at < bytes.len() {
            match whole_frame(&bytes[at..], log.sequence) {
                Ok(payload) => {
                    log.apply(payload)
                        .ok_or_else(|| damaged(path, at, "a record that cannot be one"))?;
                    at += FRAME_HEADER + payload.len();
                    log.sequence += 1;
                }
                Err(what) if is_followed_by_a_frame(&bytes[at..], log.sequence) => {
                    return Err(damaged(path, at, what));
                }
                Err(_) => {
                    log.cut = (bytes.len() - at) as u64;
                    break;
                }
            }
        }
        Ok(log)
    }

    fn apply(&mut self, mut payload: &[u8]) -> Option<()> {
        while !payload.is_empty() {
            let (record, rest) = Record::parse(payload)?;
            match record.value {
                Some(value) => self.live.insert(record.key, value),
                None => self.live.remove(&record.key),
            };
            self.records += 1;
            payload = rest;
        }
        Some(())
    }
}

/// Whether there is a header; a file that ends within it was never acknowledged to anyone.
fn check_header(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let Some(header) = bytes.get(..HEADER) else {
        return if header().starts_with(bytes) {
            Ok(false)
        } else {
            Err(StoreError::NotAStore(path.into()))
        };
    };
    if !header.starts_with(MAGIC) {
        return Err(StoreError::NotAStore(path.into()));
    }
    if crc32c::crc32c(&header[..12]) != u32_at(header, 12) {
        return Err(damaged(path, 0, "the header's checksum is wrong"));
    }
    match u16::from_le_bytes([header[10], header[11]]) {
        VERSION => Ok(true),
        found => Err(StoreError::Version {
            path: path.into(),
            found,
        }),
    }
}

/// The payload of the frame at the beginning of `bytes`, or what is wrong with it.
fn whole_frame(bytes: &[u8], sequence: u64) -> Result<&[u8], &'static str> {
    let length = frame_length(bytes, sequence)?;
    let payload = bytes
        .get(FRAME_HEADER..FRAME_HEADER + length)
        .ok_or("the file ends within a batch")?;
    if crc32c::crc32c(payload) != u32_at(bytes, 16) {
        return Err("the checksum of a batch is wrong");
    }
    Ok(payload)
}

/// The length of the frame's payload, if this is a frame's header.
fn frame_length(bytes: &[u8], sequence: u64) -> Result<usize, &'static str> {
    let header = bytes
        .get(..FRAME_HEADER)
        .ok_or("the file ends within a batch")?;
    if crc32c::crc32c(&header[..12]) != u32_at(header, 12) {
        return Err("the checksum of a batch's length is wrong");
    }
    if u64::from_le_bytes(header[..8].try_into().expect("eight octets")) != sequence {
        return Err("a batch is out of order");
    }
    Ok(u32_at(header, 8) as usize)
}

/// Whether a later frame begins somewhere behind the start of `bytes`: then what is there was once on the disk as a
/// whole, because a frame is only written after the sync of the one before.
fn is_followed_by_a_frame(bytes: &[u8], sequence: u64) -> bool {
    let next = (sequence + 1).to_le_bytes();
    let mut starts = bytes
        .windows(next.len())
        .enumerate()
        .skip(1)
        .filter(|(_, window)| *window == next);
    starts.any(|(at, _)| frame_length(&bytes[at..], sequence + 1).is_ok())
}

fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..10].copy_from_slice(MAGIC);
    header[10..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn frame(sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_HEADER + payload.len());
    frame.extend(sequence.to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(crc32c::crc32c(&frame).to_le_bytes());
    frame.extend(crc32c::crc32c(payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// Writes a new log of what is alive beside the old one, puts it in its place in one step, and says which frame is next.
fn rewrite(path: &Path, live: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<u64, StoreError> {
    let new = path.with_extension("new");
    let sequence = write_live(&new, live).map_err(io_error("write", &new))?;
    fs::rename(&new, path).map_err(io_error("replace", path))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(io_error("sync", directory))?;
    Ok(sequence)
}

fn write_live(new: &Path, live: &BTreeMap<Vec<u8>, Vec<u8>>) -> io::Result<u64> {
    let mut file = io::BufWriter::new(File::create(new)?);
    file.write_all(&header())?;
    let (mut payload, mut sequence) = (Vec::new(), 1);
    for (key, value) in live {
        Record::put(&key[..], &value[..]).emit(&mut payload);
        if payload.len() >= FULL_FRAME {
            file.write_all(&frame(sequence, &payload))?;
            sequence += 1;
            payload.clear();
        }
    }
    if !payload.is_empty() {
        file.write_all(&frame(sequence, &payload))?;
        sequence += 1;
    }
    // An empty frame behind it all: it proves that what comes before was complete, so that damage there is refused.
    file.write_all(&frame(sequence, &[]))?;
    file.into_inner()?.sync_all()?;
    Ok(sequence + 1)
}

fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("lock");
    let options = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = options.map_err(io_error("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked(directory.into())),
        Err(TryLockError::Error(error)) => Err(io_error("lock", &path)(error)),
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}

fn damaged(path: &Path, offset: usize, what: &'static str) -> StoreError {
    StoreError::Damaged {
        path: path.into(),
        offset: offset as u64,
        what,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
