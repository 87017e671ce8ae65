//! Format of the log, as described in [`crate::store`].

use std::collections::HashMap;
use std::io;
use std::path::Path;

use super::{DiskFile, Live, StoreError};

pub(super) const VERSION: u16 = 2;
const MAGIC: &[u8; 10] = b"sluicelog\n";
pub(crate) const HEADER: usize = 24;
pub(crate) const FRAME_HEADER: usize = 20;
const RECORD_HEADER: usize = 9;

/// Log open for writing, with the places of its live records.
#[derive(Debug)]
pub(super) struct LogFile<F> {
    file: F,
    pub index: Index,
    salt: u64,
    /// Number of the next frame.
    sequence: u64,
    /// Octets of header and complete frames.
    pub length: u64,
    /// Whether the last frame is a seal.
    pub sealed: bool,
    frame: Vec<u8>,
}

/// Error of a frame that was not written.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub error: io::Error,
    /// Whether the frame was removed and everything before it is intact, so that the log can be continued.
    pub taken_back: bool,
}

impl<F: DiskFile> LogFile<F> {
    /// Starts a log in an empty file.
    pub fn begin(mut file: F, salt: u64) -> io::Result<Self> {
        file.append(&header(salt))?;
        Ok(Self {
            file,
            index: Index::default(),
            salt,
            sequence: 1,
            length: HEADER as u64,
            sealed: false,
            frame: Vec::new(),
        })
    }

    /// Continues a log that was read.
    pub fn resume(file: F, contents: Contents) -> Self {
        Self {
            file,
            index: contents.index,
            salt: contents.salt,
            sequence: contents.batches + 1,
            length: contents.length,
            sealed: contents.sealed,
            frame: Vec::new(),
        }
    }

    /// Writes a frame. It is durable after [`sync`](Self::sync).
    pub fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        let at = self.append_frame(payload)?;
        self.index.note_own(payload, at);
        Ok(())
    }

    /// Writes a frame without an index of its records. Returns the place of its payload.
    fn append_frame(&mut self, payload: &[u8]) -> io::Result<u64> {
        self.frame.clear();
        emit_frame(self.salt, self.sequence, payload, &mut self.frame);
        self.file.append(&self.frame)?;
        let at = self.length + FRAME_HEADER as u64;
        self.sequence += 1;
        self.length += self.frame.len() as u64;
        self.sealed = payload.is_empty();
        Ok(at)
    }

    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    /// Writes a frame and waits until it is on the disk. After an error it tries to remove the frame. Otherwise the frame may
    /// stay in the system's memory, where the next opening would find it, and never reach the disk.
    pub fn write(&mut self, payload: &[u8]) -> Result<(), Unwritten> {
        let before = self.length;
        let at = match self.append_frame(payload) {
            Ok(at) => at,
            Err(error) => {
                let taken_back = self.file.truncate(before).is_ok();
                return Err(Unwritten { error, taken_back });
            }
        };
        if let Err(error) = self.sync() {
            let _ = self.file.truncate(before);
            // Data of a failed sync may be lost, and the next sync would not report that.
            let taken_back = false;
            return Err(Unwritten { error, taken_back });
        }
        self.index.note_own(payload, at);
        Ok(())
    }

    /// The record at a place, if it is still what was written there.
    pub fn read(&self, place: Place) -> io::Result<Option<Vec<u8>>> {
        let mut record = vec![0; place.length as usize];
        self.file.read_at(place.at, &mut record)?;
        Ok((crc32c::crc32c(&record) == place.checksum).then_some(record))
    }
}

/// Content of a log that was read.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub index: Index,
    pub salt: u64,
    /// Number of frames, seals included.
    pub batches: u64,
    pub records: u64,
    /// Octets of header and complete frames.
    pub length: u64,
    /// Octets after them: an incomplete frame that was never acknowledged.
    pub cut: u64,
    /// Whether the last frame is a seal.
    pub sealed: bool,
    /// Whether there is a seal anywhere: the records that the log was begun with are complete.
    begun: bool,
}

impl Contents {
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let mut contents = Self {
            salt: read_header(path, bytes)?,
            length: HEADER as u64,
            ..Self::default()
        };
        let mut rest = &bytes[HEADER..];
        while !rest.is_empty() {
            let offset = contents.length;
            let damaged = |what| StoreError::Damaged {
                path: path.into(),
                offset,
                what,
            };
            let (salt, sequence) = (contents.salt, contents.batches + 1);
            match whole_frame(salt, sequence, rest) {
                Ok(payload) => {
                    rest = &rest[FRAME_HEADER + payload.len()..];
                    let fits = contents.apply(payload);
                    fits.ok_or_else(|| damaged("a record that cannot be one"))?;
                }
                Err(what) if was_on_the_disk(salt, sequence, rest) => return Err(damaged(what)),
                Err(_) => {
                    contents.cut = rest.len() as u64;
                    break;
                }
            }
        }
        if !contents.begun {
            return Err(StoreError::Incomplete(path.into()));
        }
        Ok(contents)
    }

    /// Applies the records of a frame. Returns `None` at an invalid record; the caller then discards everything.
    fn apply(&mut self, payload: &[u8]) -> Option<()> {
        let at = self.length + FRAME_HEADER as u64;
        self.records += self.index.note(payload, at)?;
        self.batches += 1;
        self.length += (FRAME_HEADER + payload.len()) as u64;
        self.sealed = payload.is_empty();
        self.begun |= self.sealed;
        Some(())
    }

    /// Live records of the log of these octets.
    pub fn live(&self, bytes: &[u8]) -> Live {
        let places = self.index.places.iter();
        let records = places.map(|(key, place)| {
            let end = (place.at + u64::from(place.length)) as usize;
            let begin = end - place.length as usize + RECORD_HEADER + key.len();
            (key.to_vec(), bytes[begin..end].to_vec())
        });
        let mut live: Live = records.collect();
        live.sort_unstable();
        live
    }
}

/// Place of a record in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub at: u64,
    length: u32,
    /// Checksum of the record alone, as that of its frame says nothing about one record.
    checksum: u32,
}

/// Places of the live records of a log.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashMap<Box<[u8]>, Place, foldhash::fast::RandomState>,
    /// Octets of these records in the log.
    pub octets: u64,
}

impl Index {
    /// Takes the records of a payload at this place of the log. Returns their number, or `None` at an invalid record.
    fn note(&mut self, payload: &[u8], at: u64) -> Option<u64> {
        let (mut rest, mut records) = (payload, 0);
        while !rest.is_empty() {
            let (key, value, behind) = parse(rest)?;
            let (record, at) = (
                &rest[..rest.len() - behind.len()],
                at + (payload.len() - rest.len()) as u64,
            );
            let place = Place {
                at,
                length: record.len() as u32,
                checksum: crc32c::crc32c(record),
            };
            self.set(key, value.map(|_| place));
            records += 1;
            rest = behind;
        }
        Some(records)
    }

    /// The same for a payload of this program.
    fn note_own(&mut self, payload: &[u8], at: u64) {
        self.note(payload, at)
            .expect("a payload consists of records");
    }

    fn set(&mut self, key: &[u8], place: Option<Place>) {
        let before = match place {
            Some(place) => {
                self.octets += u64::from(place.length);
                self.places.insert(key.into(), place)
            }
            None => self.places.remove(key),
        };
        self.octets -= before.map_or(0, |before| u64::from(before.length));
    }

    /// Places of the live records, those at the end of the log first.
    pub fn last_first(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.places.values().copied().collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        places
    }

    /// Whether the live record of a key is at this place.
    pub fn leads_to(&self, key: &[u8], place: Place) -> bool {
        self.places.get(key) == Some(&place)
    }

    /// Key whose live record is at this place.
    pub fn key_of(&self, place: Place) -> Option<&[u8]> {
        let mut places = self.places.iter();
        places.find_map(|(key, at)| (*at == place).then_some(&**key))
    }
}

pub(super) fn emit(key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(if value.is_some() { 1 } else { 2 });
    let value = value.unwrap_or_default();
    out.extend((key.len() as u32).to_le_bytes());
    out.extend((value.len() as u32).to_le_bytes());
    out.extend(key);
    out.extend(value);
}

/// Key and value of a record, and the rest after it.
type Parsed<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

/// Key of a record that was written.
pub(super) fn key_of(record: &[u8]) -> &[u8] {
    &record[RECORD_HEADER..][..u32_at(record, 1) as usize]
}

/// First record of a payload; `None` if it is invalid.
fn parse(bytes: &[u8]) -> Option<Parsed<'_>> {
    let (header, rest) = bytes.split_at_checked(RECORD_HEADER)?;
    let (key, rest) = rest.split_at_checked(u32_at(header, 1) as usize)?;
    let (value, rest) = rest.split_at_checked(u32_at(header, 5) as usize)?;
    match header[0] {
        1 => Some((key, Some(value), rest)),
        2 if value.is_empty() => Some((key, None, rest)),
        _ => None,
    }
}

/// Salt of a log. A log gets its name only when its header is on the disk, so a crash excuses no error here.
fn read_header(path: &Path, bytes: &[u8]) -> Result<u64, StoreError> {
    let Some(header) = bytes
        .get(..HEADER)
        .filter(|header| header.starts_with(MAGIC))
    else {
        return Err(StoreError::NotAStore(path.into()));
    };
    match u16::from_le_bytes([header[10], header[11]]) {
        VERSION => {}
        found => {
            return Err(StoreError::Version {
                path: path.into(),
                found,
            });
        }
    }
    if crc32c::crc32c(&header[..20]) != u32_at(header, 20) {
        return Err(StoreError::Damaged {
            path: path.into(),
            offset: 0,
            what: "the checksum of the header is wrong",
        });
    }
    Ok(u64_at(header, 12))
}

/// Payload of the frame at the start of `bytes`, or its fault.
pub(crate) fn whole_frame(salt: u64, sequence: u64, bytes: &[u8]) -> Result<&[u8], &'static str> {
    let (found, length) = frame_header(salt, bytes)?;
    if found != sequence {
        return Err("a batch is out of order");
    }
    let payload = bytes
        .get(FRAME_HEADER..FRAME_HEADER + length)
        .ok_or("the file ends within a batch")?;
    if checksum(salt, payload) != u32_at(bytes, 16) {
        return Err("the checksum of a batch is wrong");
    }
    Ok(payload)
}

/// Sequence number and payload length of a frame's header, or its fault.
fn frame_header(salt: u64, bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let header = bytes
        .get(..FRAME_HEADER)
        .ok_or("the file ends within a batch")?;
    if checksum(salt, &header[..12]) != u32_at(header, 12) {
        return Err("the checksum of a batch's length is wrong");
    }
    Ok((u64_at(header, 0), u32_at(header, 8) as usize))
}

/// Whether the damaged frame at the start of `bytes` was once complete. It was if something follows it, because a frame is
/// written only after the sync of the previous one.
pub(crate) fn was_on_the_disk(salt: u64, sequence: u64, bytes: &[u8]) -> bool {
    if let Ok((found, length)) = frame_header(salt, bytes) {
        return found != sequence || bytes.len() > FRAME_HEADER + length;
    }
    // At most this many frames fit in, which avoids most checksums.
    let last = sequence + (bytes.len() / FRAME_HEADER) as u64;
    (1..bytes.len().saturating_sub(FRAME_HEADER - 1)).any(|at| {
        let found = u64_at(bytes, at);
        found > sequence && found <= last && frame_header(salt, &bytes[at..]).is_ok()
    })
}

pub(super) fn header(salt: u64) -> [u8; HEADER] {
    header_of(MAGIC, VERSION, salt)
}

/// Header of a file of frames.
pub(crate) fn header_of(magic: &[u8; 10], version: u16, salt: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..10].copy_from_slice(magic);
    header[10..12].copy_from_slice(&version.to_le_bytes());
    header[12..20].copy_from_slice(&salt.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..20]);
    header[20..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Appends a frame.
pub(crate) fn emit_frame(salt: u64, sequence: u64, payload: &[u8], out: &mut Vec<u8>) {
    let begins = out.len();
    out.extend(sequence.to_le_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend(checksum(salt, &out[begins..]).to_le_bytes());
    out.extend(checksum(salt, payload).to_le_bytes());
    out.extend(payload);
}

/// Checksum of some octets in a file with this salt.
pub(crate) fn checksum(salt: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four octets"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight octets"))
}
