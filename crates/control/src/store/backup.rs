//! What people do with a store: look whether it is sound, copy it while it is in use, put a copy back.
//!
//! A backup is a log like the store's own that holds what is alive and ends in a seal, which shows that it is whole.
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
use super::rotation::{Rotation, install};
use super::{Directory, Disk, LOG, Live, StoreError, io_error};
use config::folder;

/// A backup is synced after so many octets.
const SLICE: usize = 4 << 20;

/// What a log holds; everything in it is sound.
#[derive(Debug)]
pub struct Checked {
    /// The file that was read.
    pub path: PathBuf,
    /// Of its format.
    pub version: u16,
    /// Batches, seals among them.
    pub batches: u64,
    /// Records, also those that are overwritten or deleted.
    pub records: u64,
    /// Of the file.
    pub octets: u64,
    /// What of it is alive.
    pub live_octets: u64,
    /// Of a last batch that is not whole: it is being written now, or a crash cut it short and the next start cuts it off.
    pub half_written: u64,
    /// Nothing came after the log's last seal.
    pub sealed: bool,
    /// What is alive.
    pub live: Live,
}

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Keys with a value.
    pub records: usize,
    /// What they take in the file.
    pub octets: u64,
}

/// Reads a store, or a backup, from its first byte to its last. The store may be in use.
pub fn check(path: &Path) -> Result<Checked, StoreError> {
    let path = if path.is_dir() {
        path.join(LOG)
    } else {
        path.to_owned()
    };
    let contents = read_log(&path)?;
    Ok(Checked {
        version: VERSION,
        batches: contents.batches,
        records: contents.records,
        octets: contents.length + contents.cut,
        live_octets: contents.live_octets,
        half_written: contents.cut,
        sealed: contents.sealed,
        live: contents
            .live
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
        path,
    })
}

/// Copies what is alive in a store into a new file. The store may be in use: the copy holds every batch that was on the
/// disk when this began.
pub fn export(directory: &Path, file: &Path) -> Result<Backup, StoreError> {
    if file.exists() {
        return Err(StoreError::Exists(file.into()));
    }
    let contents = read_log(&directory.join(LOG))?;
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let copy = || {
        let log = LogFile::begin(create(&partial)?, salt()?)?;
        let mut copy = Rotation::new(log, SLICE);
        while !copy.copy(&contents.live)? {}
        fs::rename(&partial, file)?;
        folder::sync_name(file)
    };
    copy().map_err(|error| {
        let _ = fs::remove_file(&partial);
        io_error("write", file)(error)
    })?;
    Ok(summary(&contents))
}

/// Makes a store of a backup, in a directory that holds none.
pub fn import(file: &Path, directory: &Path) -> Result<Backup, StoreError> {
    let contents = read_log(file)?;
    if !contents.sealed || contents.cut > 0 {
        return Err(StoreError::Incomplete(file.into()));
    }
    let mut disk = Directory::lock(directory)?;
    if disk.path(LOG).exists() {
        return Err(StoreError::Exists(disk.path(LOG)));
    }
    install(&mut disk, &contents.live)?;
    Ok(summary(&contents))
}

fn summary(contents: &Contents) -> Backup {
    Backup {
        records: contents.live.len(),
        octets: contents.live_octets,
    }
}

fn read_log(path: &Path) -> Result<Contents, StoreError> {
    let once = || {
        let bytes = read(path).map_err(io_error("read", path))?;
        Contents::read(
            path,
            &bytes.ok_or_else(|| StoreError::Missing(path.into()))?,
        )
    };
    match once() {
        // A control plane that starts right now may have cut off half a batch and written another one there meanwhile.
        Err(StoreError::Damaged { .. }) => once(),
        done => done,
    }
}
