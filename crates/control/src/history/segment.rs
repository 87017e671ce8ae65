//! Files of the history. The history's page describes their format.

use super::event::{self, Key};
use super::filter::{self, Filter};
use crate::store::log::{
    FRAME_HEADER, HEADER, checksum, emit_frame, header_of, u32_at, u64_at, was_on_the_disk,
    whole_frame,
};
use ipnet::IpNet;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const MAGIC: &[u8; 10] = b"sluicehist";
const VERSION: u16 = 1;
/// Number of a filter's frame.
const FILTER: u64 = u64::MAX - 1;
/// Number of the frame of a filter of earlier versions. It does not have the access lines of events.
const FILTER_WITHOUT_LINES: u64 = u64::MAX;
pub(super) const TRAILER: usize = 56;

/// Summary of a segment's events, known without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// First and last time, in seconds since 1970.
    pub times: [u32; 2],
    /// First and last block.
    pub blocks: [u64; 2],
    pub events: u32,
    /// One bit for each length of IPv6 prefixes.
    pub prefix_lengths: u128,
}

/// Closed segment: nothing is added to it any more.
#[derive(Debug)]
pub(super) struct Closed {
    pub path: PathBuf,
    pub salt: u64,
    /// Offset at which its blocks end.
    pub end: u64,
    /// Size of the file.
    pub length: u64,
    pub summary: Summary,
    /// Whether its damage has been reported.
    pub damage_told: AtomicBool,
}

/// Content of a segment, collected while it is written or read.
#[derive(Debug)]
pub(super) struct Gathered {
    pub summary: Summary,
    hashes: HashSet<u64>,
}

impl Gathered {
    pub fn new(first: u64) -> Self {
        Gathered {
            summary: Summary {
                times: [u32::MAX, 0],
                blocks: [first, first.saturating_sub(1)],
                events: 0,
                prefix_lengths: 0,
            },
            hashes: HashSet::new(),
        }
    }

    /// Whether it has no blocks.
    pub fn is_empty(&self) -> bool {
        self.summary.blocks[1] < self.summary.blocks[0]
    }

    /// Adds the next block.
    pub fn add(&mut self, number: u64, block: &[u8]) {
        self.summary.blocks[1] = number;
        for event in event::events(block) {
            let [first, last] = &mut self.summary.times;
            (*first, *last) = ((*first).min(event.unix), (*last).max(event.unix));
            self.summary.events += 1;
            event.keys(|key| {
                if let Key::Prefix(IpNet::V6(net)) = key {
                    self.summary.prefix_lengths |= length_bit(net.prefix_len());
                }
                self.hashes.insert(key.hash());
            });
        }
    }

    fn filter(&self) -> Vec<u8> {
        filter::build(self.hashes.iter().copied())
    }
}

/// Bit for a length of IPv6 prefixes. Lengths 0 and 128 share one, and a query looks for both.
pub(super) fn length_bit(length: u8) -> u128 {
    1 << (length % 128)
}

pub(super) fn header(salt: u64) -> [u8; HEADER] {
    header_of(MAGIC, VERSION, salt)
}

/// Salt of a file, if it is a history file of this version.
pub(super) fn salt_of(bytes: &[u8]) -> Option<u64> {
    let found = bytes.get(..HEADER)?;
    let salt = u64_at(found, 12);
    (found == header(salt)).then_some(salt)
}

/// Filter and trailer after the blocks of a full segment; the blocks end at `end` octets.
pub(super) fn closing(salt: u64, end: u64, gathered: &Gathered) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit_frame(salt, FILTER, &gathered.filter(), &mut bytes);
    let begins = bytes.len();
    let summary = &gathered.summary;
    bytes.extend(end.to_le_bytes());
    summary
        .times
        .iter()
        .for_each(|t| bytes.extend(t.to_le_bytes()));
    summary
        .blocks
        .iter()
        .for_each(|b| bytes.extend(b.to_le_bytes()));
    bytes.extend(summary.events.to_le_bytes());
    bytes.extend(summary.prefix_lengths.to_le_bytes());
    let sum = checksum(salt, &bytes[begins..]);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// End of the blocks, and the summary in the trailer.
fn read_trailer(salt: u64, trailer: &[u8]) -> Option<(u64, Summary)> {
    let (said, sum) = trailer.split_at_checked(TRAILER - 4)?;
    if sum.len() != 4 || checksum(salt, said) != u32_at(sum, 0) {
        return None;
    }
    let summary = Summary {
        times: [u32_at(said, 8), u32_at(said, 12)],
        blocks: [u64_at(said, 16), u64_at(said, 24)],
        events: u32_at(said, 32),
        prefix_lengths: u128::from(u64_at(said, 36)) | u128::from(u64_at(said, 44)) << 64,
    };
    Some((u64_at(said, 0), summary))
}

impl Closed {
    /// Opens a closed segment; `None` if it was not closed, or is damaged at its end. `first`: the number of its first block.
    pub fn open(path: &Path, first: u64) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length < (HEADER + FRAME_HEADER + TRAILER) as u64 {
            return Ok(None);
        }
        let (mut header, mut trailer) = ([0; HEADER], [0; TRAILER]);
        file.read_exact(&mut header)?;
        file.seek(SeekFrom::End(-(TRAILER as i64)))?;
        file.read_exact(&mut trailer)?;
        let Some(salt) = salt_of(&header) else {
            return Ok(None);
        };
        let said = read_trailer(salt, &trailer);
        let said = said.filter(|(end, summary)| {
            let others = summary.blocks[1].checked_sub(first); // none is closed that has no block
            (HEADER as u64..length).contains(end)
                && summary.blocks[0] == first
                && others.is_some_and(|n| n < (end - HEADER as u64) / FRAME_HEADER as u64)
        });
        Ok(said.map(|(end, summary)| Closed {
            path: path.to_owned(),
            salt,
            end,
            length,
            summary,
            damage_told: AtomicBool::new(false),
        }))
    }

    /// Its filter; `None` if there is none, or it cannot be read. It is read each time: the operating system caches those in use,
    /// and all filters of a large history would take gigabytes.
    pub fn filter(&self) -> Option<Filter> {
        let frame = self.filter_frame().ok()?;
        let earlier = || whole_frame(self.salt, FILTER_WITHOUT_LINES, &frame).map(|f| (f, false));
        let filter = whole_frame(self.salt, FILTER, &frame).map(|filter| (filter, true));
        let (filter, has_lines) = filter.or_else(|_| earlier()).ok()?;
        Some(Filter {
            octets: filter.to_vec(),
            has_lines,
        })
    }

    /// Octets after the blocks.
    fn filter_frame(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.end < self.length {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.end))?;
            file.take(self.length - self.end).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }
}

/// The blocks at the start of a file's octets.
pub(super) struct Blocks<'a> {
    salt: u64,
    next: u64,
    rest: &'a [u8],
    /// Octets of the header and the complete blocks so far.
    pub length: u64,
}

/// Whether these are the first octets of the filter after the blocks. A crash may have cut it short.
fn begins_filter(salt: u64, bytes: &[u8]) -> bool {
    bytes.get(..FRAME_HEADER).is_some_and(|header| {
        [FILTER, FILTER_WITHOUT_LINES].contains(&u64_at(header, 0))
            && checksum(salt, &header[..12]) == u32_at(header, 12)
    })
}

/// State of the end of a file's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Complete.
    Whole,
    /// An incomplete block that was never complete.
    Torn,
    /// A damaged block that was once complete. Or the machine died while blocks were written together, and a later one reached
    /// the disk first: the store still has those.
    Damaged,
}

impl<'a> Blocks<'a> {
    /// `first`: the number of the first block.
    pub fn new(bytes: &'a [u8], salt: u64, first: u64) -> Self {
        Blocks {
            salt,
            next: first,
            rest: bytes.get(HEADER..).unwrap_or_default(),
            length: HEADER as u64,
        }
    }

    pub fn end(&self) -> End {
        match self.rest {
            [] => End::Whole,
            rest if begins_filter(self.salt, rest) => End::Whole,
            rest if was_on_the_disk(self.salt, self.next, rest) => End::Damaged,
            _ => End::Torn,
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let block = whole_frame(self.salt, self.next, self.rest).ok()?;
        let size = FRAME_HEADER + block.len();
        self.rest = &self.rest[size..];
        self.length += size as u64;
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        Some((number, block))
    }
}

/// Reads the first `length` octets of a file.
pub(super) fn read_to(path: &Path, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    File::open(path)?.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
