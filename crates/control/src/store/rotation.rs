//! The snapshot that takes the log's place: written in slices, so that nobody waits for the whole of it.

use std::io;
use std::ops::Bound;

use super::log::{LogFile, emit};
use super::{Disk, DiskFile, LOG, LiveMap, NEW, StoreError, io_error};

/// Frames of a snapshot have about this size.
const FULL_FRAME: usize = 256 << 10;

/// A snapshot in the making.
///
/// What is alive is copied in order of the keys while it changes, and every batch follows when it is in the log. A reader
/// ends up with what the log says, because a key's last record is then in both the same: a key that was copied before a
/// batch changed it has that batch behind it; one that was changed first is copied as changed, or not at all if deleted.
#[derive(Debug)]
pub(super) struct Rotation<F> {
    log: LogFile<F>,
    slice: usize,
    /// The last key that was copied.
    copied: Option<Box<[u8]>>,
    /// Octets of batches that followed since the last slice.
    followed: usize,
}

impl<F: DiskFile> Rotation<F> {
    pub fn begin<D: Disk<File = F>>(disk: &mut D, slice: usize) -> io::Result<Self> {
        let salt = disk.salt()?;
        let file = disk.create(NEW)?;
        Ok(Self::new(LogFile::begin(file, salt)?, slice))
    }

    /// Into a log that has nothing but its header.
    pub fn new(log: LogFile<F>, slice: usize) -> Self {
        Self {
            log,
            slice,
            copied: None,
            followed: 0,
        }
    }

    /// Takes a batch that is in the log.
    pub fn follow(&mut self, batch: &[u8]) -> io::Result<()> {
        self.followed += batch.len();
        self.log.append(batch)
    }

    /// Copies a slice of what is alive and waits until it is on the disk, so that the last sync does not have to wait
    /// for everything. Whether nothing is left.
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

    /// Puts the complete snapshot in the log's place.
    pub fn finish<D: Disk<File = F>>(self, disk: &mut D) -> Result<LogFile<F>, StoreError> {
        let path = disk.path(LOG);
        disk.rename(NEW, LOG)
            .and_then(|()| disk.sync_names())
            .map_err(io_error("replace", &path))?;
        Ok(self.log)
    }
}

/// About so many octets of records, and their last key; `None` when there are no more.
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

/// Makes a log of what is alive, at once.
pub(super) fn install<D: Disk>(
    disk: &mut D,
    live: &LiveMap,
) -> Result<LogFile<D::File>, StoreError> {
    let path = disk.path(NEW);
    let mut rotation = Rotation::begin(disk, FULL_FRAME).map_err(io_error("create", &path))?;
    while !rotation.copy(live).map_err(io_error("write", &path))? {}
    rotation.finish(disk)
}
