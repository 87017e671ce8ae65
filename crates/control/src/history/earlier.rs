//! Segments that earlier versions left: files of blocks, each named by the number of its first block. They are taken over into the database, the
//! latest first.
//!
//! ```text
//! header   "sluicehist" · version (u16) · salt (u64) · CRC32C of all that (u32)
//! frame    block (u64) · payload length (u32) · CRC32C of these two (u32) · CRC32C of the payload (u32) · payload
//! payload  events, as in the database: length (u16) · record
//! filter   a frame of number 2^64-2 or 2^64-1, and a trailer behind it: not needed here
//! ```

use super::database::MOST_BLOCKS;
use crate::store::log::{FRAME_HEADER, HEADER, checksum, header_of, u32_at, u64_at};
use crate::store::log::{was_on_the_disk, whole_frame};
use config::folder;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 10] = b"sluicehist";
const VERSION: u16 = 1;
/// Numbers of a filter's frame.
const FILTERS: [u64; 2] = [u64::MAX - 1, u64::MAX];
/// Suffix of a segment's name.
const SUFFIX: &str = ".events";

/// Segments in the history's directory that are not taken over yet.
#[derive(Debug)]
pub(super) struct Earlier {
    directory: PathBuf,
    /// Numbers of their first blocks, in order.
    firsts: Vec<u64>,
    /// Number of the last block that has to be in them, or in the database.
    pub last: u64,
}

impl Earlier {
    pub fn find(directory: &Path) -> io::Result<Self> {
        let mut firsts = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            let number = number.filter(|number| number.len() == 20);
            let number = number.and_then(|number| number.parse::<u64>().ok());
            firsts.extend(number.filter(|number| *number < MOST_BLOCKS / 2)); // nobody wrote others
        }
        firsts.sort_unstable();
        Ok(Earlier {
            directory: directory.to_owned(),
            last: firsts.last().map_or(0, |first| first.saturating_sub(1)),
            firsts,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// The latest one: its file, and the number of its first block.
    pub fn latest(&self) -> Option<(PathBuf, u64)> {
        let first = *self.firsts.last()?;
        Some((self.path(first), first))
    }

    fn path(&self, first: u64) -> PathBuf {
        self.directory.join(format!("{first:020}{SUFFIX}"))
    }

    /// The latest one is in the database, as far as it can be read. A damaged one stays under another name, so that somebody can examine it.
    pub fn done(&mut self, is_damaged: bool) -> io::Result<()> {
        let Some((path, _)) = self.latest() else {
            return Ok(());
        };
        self.firsts.pop();
        match is_damaged {
            true => fs::rename(&path, path.with_extension("damaged")),
            false => fs::remove_file(&path),
        }
    }

    /// Leaves an empty segment behind the last block, from which an earlier version takes the number of its first one.
    pub fn leave(&self, last: u64) -> io::Result<()> {
        let path = self.path(last + 1);
        let mut file = fs::File::create(&path)?;
        file.write_all(&header(0))?;
        file.sync_data()?;
        folder::sync_name(&path)
    }
}

fn header(salt: u64) -> [u8; HEADER] {
    header_of(MAGIC, VERSION, salt)
}

/// Octets of a segment.
pub(super) struct Left {
    bytes: Vec<u8>,
    salt: u64,
    first: u64,
}

impl Left {
    /// Reads a segment.
    ///
    /// # Errors
    /// The system's error, or that the header is damaged.
    pub fn read(path: &Path, first: u64) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let salt = match bytes.get(..HEADER) {
            Some(found) => Some(u64_at(found, 12)).filter(|salt| found == header(*salt)),
            None => Some(0), // it had just been begun
        };
        let why = "its header is damaged";
        let salt = salt.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why))?;
        Ok(Left { bytes, salt, first })
    }

    pub fn blocks(&self) -> Blocks<'_> {
        Blocks {
            salt: self.salt,
            next: self.first,
            rest: self.bytes.get(HEADER..).unwrap_or_default(),
        }
    }
}

/// The blocks at the start of a segment.
pub(super) struct Blocks<'a> {
    salt: u64,
    next: u64,
    rest: &'a [u8],
}

impl Blocks<'_> {
    /// Whether what follows the last block that can be read was once a block, and not one that a crash cut short: the store has that one.
    pub fn end_is_damaged(&self) -> bool {
        !self.begins_filter() && was_on_the_disk(self.salt, self.next, self.rest)
    }

    /// Whether these are the first octets of the filter behind the blocks. A crash may have cut it short.
    fn begins_filter(&self) -> bool {
        self.rest.get(..FRAME_HEADER).is_some_and(|header| {
            FILTERS.contains(&u64_at(header, 0))
                && checksum(self.salt, &header[..12]) == u32_at(header, 12)
        })
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let block = whole_frame(self.salt, self.next, self.rest).ok()?;
        self.rest = &self.rest[FRAME_HEADER + block.len()..];
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        Some((number, block))
    }
}
