//! Operator actions on a store: check it, copy it while it is in use, restore a copy.
//!
//! A backup is a log with the live records of a store. Its seal at the end shows that it is complete.
//!
//! ```
//! use control::store::{Record, Store, check, export, import};
//!
//! let place = tempfile::tempdir().unwrap();
//! let (directory, backup) = (place.path().join("cp"), place.path().join("monday"));
//! let (mut store, _) = Store::open(&directory).unwrap();
//! store.append(&Record::put("session/1", "alice"));
//! store.sync().unwrap();
//! export(&directory, &backup).unwrap(); // the store is in use meanwhile
//!
//! import(&backup, &place.path().join("new")).unwrap();
//! assert_eq!(check(&place.path().join("new")).unwrap().live, check(&directory).unwrap().live);
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::disk::{create, read, salt};
use super::log::{Contents, LogFile, VERSION};
use super::rotation::{fill, install};
use super::{Directory, Disk, LOG, Live, StoreError, io_error};
use config::folder;

/// Content of a log that was read without errors.
#[derive(Debug)]
pub struct Checked {
    /// The file.
    pub path: PathBuf,
    /// Version of its format.
    pub version: u16,
    /// Number of batches, seals included.
    pub batches: u64,
    /// Number of records, overwritten and deleted ones included.
    pub records: u64,
    /// Size of the file.
    pub octets: u64,
    /// Octets of the live records.
    pub live_octets: u64,
    /// Octets of an incomplete last batch. It is being written now, or a crash interrupted it and the next start cuts it off.
    pub half_written: u64,
    /// Whether the log ends in a seal.
    pub sealed: bool,
    /// Live records.
    pub live: Live,
}

/// Result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Number of live records.
    pub records: usize,
    /// Octets of these records in the file.
    pub octets: u64,
}

/// Reads a store or a backup completely. The store may be in use.
pub fn check(path: &Path) -> Result<Checked, StoreError> {
    let path = if path.is_dir() {
        path.join(LOG)
    } else {
        path.to_owned()
    };
    let (contents, bytes) = read_log(&path)?;
    Ok(Checked {
        version: VERSION,
        batches: contents.batches,
        records: contents.records,
        octets: contents.length + contents.cut,
        live_octets: contents.index.octets,
        half_written: contents.cut,
        sealed: contents.sealed,
        live: contents.live(&bytes),
        path,
    })
}

/// Copies the live records of a store into a new file. The store may be in use: the copy has every batch that was on the disk
/// when the call began.
pub fn export(directory: &Path, file: &Path) -> Result<Backup, StoreError> {
    if file.exists() {
        return Err(StoreError::Exists(file.into()));
    }
    let (contents, bytes) = read_log(&directory.join(LOG))?;
    let live = contents.live(&bytes);
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let copy = || {
        fill(LogFile::begin(create(&partial)?, salt()?)?, &live)?;
        fs::rename(&partial, file)?;
        folder::sync_name(file)
    };
    copy().map_err(|error| {
        let _ = fs::remove_file(&partial);
        io_error("write", file)(error)
    })?;
    Ok(summary(&contents, &live))
}

/// Creates a store from a backup, in a directory without a store.
pub fn import(file: &Path, directory: &Path) -> Result<Backup, StoreError> {
    let (contents, bytes) = read_log(file)?;
    if !contents.sealed || contents.cut > 0 {
        return Err(StoreError::Incomplete(file.into()));
    }
    let mut disk = Directory::lock(directory)?;
    if disk.path(LOG).exists() {
        return Err(StoreError::Exists(disk.path(LOG)));
    }
    let live = contents.live(&bytes);
    install(&mut disk, &live)?;
    Ok(summary(&contents, &live))
}

fn summary(contents: &Contents, live: &Live) -> Backup {
    Backup {
        records: live.len(),
        octets: contents.index.octets,
    }
}

/// A log and its octets.
fn read_log(path: &Path) -> Result<(Contents, Vec<u8>), StoreError> {
    let once = || {
        let bytes = read(path).map_err(io_error("read", path))?;
        let bytes = bytes.ok_or_else(|| StoreError::Missing(path.into()))?;
        Ok((Contents::read(path, &bytes)?, bytes))
    };
    match once() {
        // A control plane that starts at this moment may have cut off an incomplete batch and written another one in its place.
        Err(StoreError::Damaged { .. }) => once(),
        done => done,
    }
}
