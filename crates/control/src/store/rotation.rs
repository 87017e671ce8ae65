//! Snapshot that replaces the log. It is written in slices, so that nobody waits for all of it.

use std::io;
use std::ops::Bound;

use super::log::{LogFile, emit};
use super::{Disk, DiskFile, LOG, LiveMap, NEW, StoreError, io_error};

/// Approximate size of a snapshot's frames, in octets.
const FULL_FRAME: usize = 256 << 10;

/// Unfinished snapshot.
///
/// The live records are copied in key order while they change, and every batch follows once it is in the log. A reader gets the
/// same result as from the log, because each key's last record is the same in both. If a batch changes a key after its copy, the
/// batch follows the copy. If a batch changes it before, the copy has the change, or nothing if the key was deleted.
#[derive(Debug)]
pub(super) struct Rotation<F> {
    log: LogFile<F>,
    slice: usize,
    /// Last copied key.
    copied: Option<Box<[u8]>>,
    /// Octets of batches since the last slice.
    followed: usize,
}

impl<F: DiskFile> Rotation<F> {
    pub fn begin<D: Disk<File = F>>(disk: &mut D, slice: usize) -> io::Result<Self> {
        let salt = disk.salt()?;
        let file = disk.create(NEW)?;
        Ok(Self::new(LogFile::begin(file, salt)?, slice))
    }

    /// Creates a snapshot in a log that has only its header.
    pub fn new(log: LogFile<F>, slice: usize) -> Self {
        Self {
            log,
            slice,
            copied: None,
            followed: 0,
        }
    }

    /// Appends a batch that is in the log.
    pub fn follow(&mut self, batch: &[u8]) -> io::Result<()> {
        self.followed += batch.len();
        self.log.append(batch)
    }

    /// Copies a slice of the live records and syncs it, so that the last sync does not have to wait for everything. Returns
    /// whether nothing is left.
    pub fn copy(&mut self, live: &LiveMap) -> io::Result<bool> {
        let goal = self.slice.max(2 * std::mem::take(&mut self.followed));
        let from = match self.copied.take() {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        let mut rest = live.range((from, Bound::Unbounded));
        let mut written = 0;
        while written < goal {
            let Some((payload, last)) = next_payload(&mut rest, goal.min(FULL_FRAME)) else {
                self.log.append(&[])?;
                self.log.sync()?;
                return Ok(true);
            };
            written += payload.len();
            self.copied = Some(last.into());
            self.log.append(&payload)?;
        }
        self.log.sync()?;
        Ok(false)
    }

    /// Replaces the log by the complete snapshot.
    pub fn finish<D: Disk<File = F>>(self, disk: &mut D) -> Result<LogFile<F>, StoreError> {
        let path = disk.path(LOG);
        disk.rename(NEW, LOG)
            .and_then(|()| disk.sync_names())
            .map_err(io_error("replace", &path))?;
        Ok(self.log)
    }
}

/// About `size` octets of records and their last key; `None` when no records are left.
fn next_payload<'a>(
    rest: &mut impl Iterator<Item = (&'a Box<[u8]>, &'a Box<[u8]>)>,
    size: usize,
) -> Option<(Vec<u8>, &'a [u8])> {
    let mut payload = Vec::new();
    let mut last = None;
    while payload.len() < size
        && let Some((key, value)) = rest.next()
    {
        emit(key, Some(value), &mut payload);
        last = Some(key);
    }
    Some((payload, &**last?))
}

/// Writes a complete log of the live records and installs it.
pub(super) fn install<D: Disk>(
    disk: &mut D,
    live: &LiveMap,
) -> Result<LogFile<D::File>, StoreError> {
    let path = disk.path(NEW);
    let mut rotation = Rotation::begin(disk, FULL_FRAME).map_err(io_error("create", &path))?;
    while !rotation.copy(live).map_err(io_error("write", &path))? {}
    rotation.finish(disk)
}
