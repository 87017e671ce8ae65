//! Snapshot that replaces the log. It is written in slices, so that nobody waits for all of it.

use std::io;

use super::log::{LogFile, Place, emit, key_of};
use super::{Disk, DiskFile, LOG, Live, NEW, StoreError, io_error};

/// Approximate size of a snapshot's frames, in octets.
const FULL_FRAME: usize = 256 << 10;
/// Records in a frame of a backup.
const FULL_BACKUP_FRAME: usize = 10_000;

/// Unfinished snapshot.
///
/// The live records of the log at the begin are copied while they change, and every batch follows once it is in the log. A reader
/// gets the same result as from the log, because each key's last record is the same in both. If a batch changes a key after its
/// copy, the batch follows the copy. If a batch changes or deletes it before, the old record is live no more and is not copied.
#[derive(Debug)]
pub(super) struct Rotation<F> {
    log: LogFile<F>,
    slice: usize,
    /// Places of the records that are not copied yet. The last one comes first in the log, and next.
    rest: Vec<Place>,
    /// Octets of batches since the last slice.
    followed: usize,
}

impl<F: DiskFile> Rotation<F> {
    pub fn begin<D: Disk<File = F>>(
        disk: &mut D,
        slice: usize,
        rest: Vec<Place>,
    ) -> io::Result<Self> {
        let salt = disk.salt()?;
        let file = disk.create(NEW)?;
        Ok(Self {
            log: LogFile::begin(file, salt)?,
            slice,
            rest,
            followed: 0,
        })
    }

    /// Appends a batch that is in the log.
    pub fn follow(&mut self, batch: &[u8]) -> io::Result<()> {
        self.followed += batch.len();
        self.log.append(batch)
    }

    /// Copies a slice of the old log's live records and syncs it, so that the last sync does not have to wait for everything.
    /// Returns whether nothing is left; then the snapshot is sealed.
    pub fn copy(&mut self, old: &LogFile<F>) -> io::Result<bool> {
        let goal = self.slice.max(2 * std::mem::take(&mut self.followed));
        let mut written = 0;
        while written < goal && !self.rest.is_empty() {
            let payload = self.next_payload(old, goal.min(FULL_FRAME))?;
            written += payload.len();
            if !payload.is_empty() {
                self.log.append(&payload)?;
            }
        }
        let is_complete = self.rest.is_empty();
        if is_complete {
            self.log.append(&[])?;
        }
        self.log.sync()?;
        Ok(is_complete)
    }

    /// About `size` octets of records that are still live.
    fn next_payload(&mut self, old: &LogFile<F>, size: usize) -> io::Result<Vec<u8>> {
        let mut payload = Vec::new();
        while payload.len() < size
            && let Some(place) = self.rest.pop()
        {
            match old.read(place)? {
                Some(record) if old.index.leads_to(key_of(&record), place) => {
                    payload.extend(record);
                }
                Some(_) => {}
                None => report_damage(old, place),
            }
        }
        Ok(payload)
    }

    /// Replaces the log by the complete snapshot.
    pub fn finish<D: Disk<File = F>>(self, disk: &mut D) -> Result<LogFile<F>, StoreError> {
        replace(disk)?;
        Ok(self.log)
    }
}

fn replace<D: Disk>(disk: &mut D) -> Result<(), StoreError> {
    let path = disk.path(LOG);
    disk.rename(NEW, LOG)
        .and_then(|()| disk.sync_names())
        .map_err(io_error("replace", &path))
}

/// Reports a record that the disk has changed, if it is still live. It cannot be copied. Whoever wrote it knows it, and writes it again
/// when it changes: a session does so with its next usage report.
fn report_damage<F>(old: &LogFile<F>, place: Place) {
    if let Some(key) = old.index.key_of(place) {
        tracing::error!(
            key = %key.escape_ascii(), offset = place.at,
            "a record of the store is damaged: the disk has changed what was durable. It is lost if the control plane ends before \
             it writes the record again"
        );
    }
}

/// Writes a log of the live records of another one and installs it.
pub(super) fn rewrite<D: Disk>(
    disk: &mut D,
    old: &LogFile<D::File>,
) -> Result<LogFile<D::File>, StoreError> {
    let path = disk.path(NEW);
    let rotation = Rotation::begin(disk, FULL_FRAME, old.index.last_first());
    let mut rotation = rotation.map_err(io_error("create", &path))?;
    while !rotation.copy(old).map_err(io_error("write", &path))? {}
    rotation.finish(disk)
}

/// Writes a log of these records and installs it.
pub(super) fn install<D: Disk>(disk: &mut D, live: &Live) -> Result<LogFile<D::File>, StoreError> {
    let path = disk.path(NEW);
    let mut write = || fill(LogFile::begin(disk.create(NEW)?, disk.salt()?)?, live);
    let log = write().map_err(io_error("write", &path))?;
    replace(disk)?;
    Ok(log)
}

/// Completes a log that has only its header with these records.
pub(super) fn fill<F: DiskFile>(mut log: LogFile<F>, live: &Live) -> io::Result<LogFile<F>> {
    for records in live.chunks(FULL_BACKUP_FRAME) {
        let mut payload = Vec::new();
        for (key, value) in records {
            emit(key, Some(value), &mut payload);
        }
        log.append(&payload)?;
        // the last sync does not have to wait for everything
        log.sync()?;
    }
    log.append(&[])?;
    log.sync()?;
    Ok(log)
}
