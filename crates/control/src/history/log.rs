//! Directory of the history: its segments, and how they are written and removed.

use super::segment::{self, Blocks, Closed, End, Gathered, Summary};
use crate::store::log::{HEADER, emit_frame};
use config::folder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Size in octets at which a segment is full. A query reads whole segments, so it must not be large.
const FULL: u64 = 4 << 20;
/// Suffix of a segment's name.
const SUFFIX: &str = ".events";
/// Age of its first event at which a segment is closed, in seconds, so that expired events can be removed in time.
const DAY: u32 = 86_400;

/// Limits of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long events are kept, in seconds.
    pub keep: u32,
    /// Maximum size in octets; one segment more is possible.
    pub octets: u64,
}

/// Status of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Blocks up to this one are on the disk.
    pub last: u64,
    /// Size in octets.
    pub octets: u64,
    /// Time of the oldest event, in seconds since 1970.
    pub oldest: Option<u32>,
    /// Segments that were removed early because of the size limit.
    pub displaced: u64,
    /// Time of the newest event in these segments.
    pub displaced_until: Option<u32>,
    /// How long events should be kept, in seconds.
    pub keep: u32,
    /// Number of damaged places.
    pub damaged: u64,
    /// Why nothing can be written at present.
    pub failing: Option<String>,
}

impl Status {
    /// Whether events were removed for lack of room that should still be kept at this time.
    pub fn is_cut_short(&self, unix: u32) -> bool {
        let until = self.displaced_until;
        until.is_some_and(|until| unix.saturating_sub(until) <= self.keep)
    }
}

/// Result of opening the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Number of the last block.
    pub last: u64,
    /// Octets of an incomplete block that were cut off.
    pub cut: u64,
}

/// The history, open for writing.
#[derive(Debug)]
pub struct Log {
    directory: PathBuf,
    bounds: Bounds,
    /// Size at which a segment is full, in octets.
    full: u64,
    last: u64,
    open: Option<Open>,
    /// Octets of the closed segments.
    closed_octets: u64,
    shared: Arc<Mutex<Shared>>,
}

/// State that readers see.
#[derive(Debug, Default)]
pub(super) struct Shared {
    closed: Vec<Arc<Closed>>,
    open: Option<OpenView>,
    pub status: Status,
}

/// The open segment, as far as it is on the disk.
#[derive(Clone, Debug)]
pub(super) struct OpenView {
    pub path: PathBuf,
    pub salt: u64,
    pub length: u64,
    pub summary: Summary,
}

/// The open segment, as far as it is on the disk.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    salt: u64,
    length: u64,
    gathered: Gathered,
}

/// Blocks that are written together.
#[derive(Default)]
struct Together<'a> {
    frames: Vec<u8>,
    blocks: Vec<(u64, &'a [u8])>,
}

impl Open {
    /// Whether a block goes into this segment, after those that are written together with it.
    fn takes(&self, number: u64, together: &Together<'_>, full: u64) -> bool {
        let before = self.gathered.summary.blocks[1] + together.blocks.len() as u64;
        self.length + (together.frames.len() as u64) < full && before + 1 == number
    }

    /// Continues after the complete blocks of a file, and cuts off the rest.
    fn resume(path: PathBuf, salt: u64, whole: u64, gathered: Gathered) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(&path)?;
        file.set_len(whole)?;
        file.sync_data()?;
        Ok(Open {
            path,
            file,
            salt,
            length: whole,
            gathered,
        })
    }

    /// Converts to a closed segment whose file has this length.
    fn closed(self, length: u64) -> Closed {
        Closed {
            path: self.path,
            salt: self.salt,
            end: self.length,
            length,
            summary: self.gathered.summary,
            damage_told: false.into(),
        }
    }
}

/// Reads the history while it is being written.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Mutex<Shared>>);

impl Reader {
    /// The closed segments, the oldest first, and the open one.
    pub(super) fn segments(&self) -> (Vec<Arc<Closed>>, Option<OpenView>) {
        let shared = lock(&self.0);
        (shared.closed.clone(), shared.open.clone())
    }

    /// Status of the history.
    pub fn status(&self) -> Status {
        lock(&self.0).status.clone()
    }

    /// Logs and counts damage.
    pub(super) fn damaged(&self, path: &Path, why: &io::Error) {
        tracing::error!(path = %path.display(), %why, "part of the history is damaged: its events cannot be shown");
        lock(&self.0).status.damaged += 1;
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // A panic leaves a number or a list, each complete.
    shared
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Log {
    /// Opens the history in a directory and cuts off what a crash left at its end. Creates the directory if needed. An unreadable
    /// segment costs only its own events: it is logged, and renamed to `.damaged`.
    ///
    /// # Errors
    /// The system's error, with the place.
    pub fn open(directory: &Path, bounds: Bounds) -> io::Result<(Self, Opened)> {
        Self::open_with(directory, bounds, FULL)
    }

    /// Opens the history with another segment size.
    pub(super) fn open_with(
        directory: &Path,
        bounds: Bounds,
        full: u64,
    ) -> io::Result<(Self, Opened)> {
        folder::make(directory)?;
        let mut log = Log {
            directory: directory.to_owned(),
            bounds,
            full,
            last: 0,
            open: None,
            closed_octets: 0,
            shared: Arc::default(),
        };
        let mut cut = 0;
        let names = segments_in(directory)?;
        for (n, first) in names.iter().enumerate() {
            match log.take(*first, n + 1 == names.len()) {
                Ok(octets) => cut += octets,
                Err(error) => log.set_aside(*first, &error),
            }
        }
        log.tell();
        let last = log.last;
        Ok((log, Opened { last, cut }))
    }

    /// Reader for queries.
    pub fn reader(&self) -> Reader {
        Reader(self.shared.clone())
    }

    fn path(&self, first: u64) -> PathBuf {
        self.directory.join(format!("{first:020}{SUFFIX}"))
    }

    fn take_closed(&mut self, closed: Closed) {
        self.last = self.last.max(closed.summary.blocks[1]);
        self.closed_octets += closed.length;
        let mut shared = lock(&self.shared);
        shared.closed.push(Arc::new(closed));
        shared.open = None; // it was this one, and nobody is to see it twice
    }

    /// Takes over an existing segment. Returns how many octets were cut off.
    fn take(&mut self, first: u64, is_last: bool) -> io::Result<u64> {
        let path = self.path(first);
        match Closed::open(&path, first)? {
            Some(closed) => self.take_closed(closed),
            None => return self.take_unclosed(path, first, is_last),
        }
        Ok(0)
    }

    /// Takes over the segment that was open last, or one whose end is damaged.
    fn take_unclosed(&mut self, path: PathBuf, first: u64, is_last: bool) -> io::Result<u64> {
        let bytes = fs::read(&path)?;
        let length = bytes.len() as u64;
        let salt = match segment::salt_of(&bytes) {
            Some(salt) => salt,
            None if is_last && bytes.len() <= HEADER => {
                fs::remove_file(&path)?; // it had just been begun
                return Ok(length);
            }
            None => return Err(damage("its header is damaged")),
        };
        let mut gathered = Gathered::new(first);
        let mut blocks = Blocks::new(&bytes, salt, first);
        blocks
            .by_ref()
            .for_each(|(number, block)| gathered.add(number, block));
        let (end, whole) = (blocks.end(), blocks.length);
        let goes_on = is_last && end != End::Damaged;
        if gathered.is_empty() && !goes_on {
            return Err(damage("its first block is damaged"));
        }
        if end == End::Damaged || end == End::Torn && !is_last {
            self.reader()
                .damaged(&path, &damage("a block in it is damaged"));
        }
        if goes_on {
            let open = Open::resume(path, salt, whole, gathered)?;
            self.last = self.last.max(open.gathered.summary.blocks[1]);
            self.open = Some(open);
            return Ok(if end == End::Torn { length - whole } else { 0 });
        }
        self.take_closed(Closed {
            path,
            salt,
            end: whole,
            length,
            summary: gathered.summary,
            damage_told: true.into(),
        });
        Ok(0)
    }

    /// Renames an unreadable segment, so that somebody can examine it. Blocks that the store still has are written again.
    fn set_aside(&mut self, first: u64, why: &io::Error) {
        let path = self.path(first);
        self.reader().damaged(&path, why);
        let had = match fs::rename(&path, path.with_extension("damaged")) {
            Ok(()) => first.saturating_sub(1),
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "cannot rename a file of the history: it stays as it is");
                first // so that no other one is written in its place
            }
        };
        self.last = self.last.max(had);
    }

    /// Replaces the limits.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Adds blocks with increasing numbers and waits until they are on the disk. Blocks that are already there are skipped. After
    /// an error, those up to [`Status::last`] are there, and repeated blocks go into a new segment.
    ///
    /// # Errors
    /// The system's error.
    pub fn append<'a>(
        &mut self,
        blocks: impl IntoIterator<Item = (u64, &'a [u8])>,
    ) -> io::Result<()> {
        let done = self.write(blocks);
        self.tell();
        done
    }

    fn write<'a>(&mut self, blocks: impl IntoIterator<Item = (u64, &'a [u8])>) -> io::Result<()> {
        let mut together = Together::default();
        let mut last = self.last;
        for (number, block) in blocks {
            if number <= last {
                continue;
            }
            let open = match self
                .open
                .as_ref()
                .filter(|open| open.takes(number, &together, self.full))
            {
                Some(open) => open,
                None => {
                    self.flush(&mut together)?;
                    self.close()?;
                    self.begin(number)?
                }
            };
            emit_frame(open.salt, number, block, &mut together.frames);
            together.blocks.push((number, block));
            last = number;
        }
        self.flush(&mut together)
    }

    /// Writes the blocks to the disk; none of them counts if that fails.
    fn flush(&mut self, together: &mut Together<'_>) -> io::Result<()> {
        let Some(open) = self.open.as_mut().filter(|_| !together.blocks.is_empty()) else {
            return Ok(());
        };
        let written = open.file.write_all(&together.frames);
        if let Err(error) = written.and_then(|()| open.file.sync_data()) {
            self.abandon();
            return Err(error);
        }
        open.length += together.frames.len() as u64;
        for (number, block) in together.blocks.drain(..) {
            open.gathered.add(number, block);
            self.last = number;
        }
        together.frames.clear();
        Ok(())
    }

    fn begin(&mut self, first: u64) -> io::Result<&Open> {
        let (path, salt) = (self.path(first), crate::store::salt()?);
        let mut file = crate::store::create(&path)?;
        let header = segment::header(salt);
        file.write_all(&header)?;
        folder::sync_name(&path)?;
        Ok(self.open.insert(Open {
            path,
            file,
            salt,
            length: header.len() as u64,
            gathered: Gathered::new(first),
        }))
    }

    /// Closes the open segment. Its events stay readable even if there is no room for the filter and trailer.
    fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.open.as_mut().filter(|open| !open.gathered.is_empty()) else {
            self.abandon();
            return Ok(());
        };
        let closing = segment::closing(open.salt, open.length, &open.gathered);
        let written = open.file.write_all(&closing);
        if let Err(error) = written.and_then(|()| open.file.sync_data()) {
            self.abandon();
            return Err(error);
        }
        if let Some(open) = self.open.take() {
            let length = open.length + closing.len() as u64;
            self.take_closed(open.closed(length));
        }
        Ok(())
    }

    /// Gives up a segment that could not be written. What is known to be in it stays readable.
    fn abandon(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        if open.gathered.is_empty() {
            return drop(fs::remove_file(&open.path));
        }
        let _ = open.file.set_len(open.length);
        let length = open.length;
        self.take_closed(open.closed(length));
    }

    /// Removes segments that have expired or do not fit any more. Closes the open segment in time for that.
    ///
    /// # Errors
    /// The system's error. Nothing of what was added is lost by it.
    pub fn tend(&mut self, now: u32) -> io::Result<()> {
        let done = self.let_go(now);
        self.tell();
        done
    }

    fn let_go(&mut self, now: u32) -> io::Result<()> {
        let most = (self.bounds.keep / 8).min(DAY);
        let old = |open: &Open| {
            open.gathered.summary.events > 0
                && now.saturating_sub(open.gathered.summary.times[0]) > most
        };
        if self.open.as_ref().is_some_and(old) {
            self.close()?;
        }
        while let Some((oldest, displaced)) = self.to_let_go(now) {
            match fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let path = oldest.path.display();
                    let why = format!("{path} is to go and cannot be removed: {error}");
                    return Err(io::Error::new(error.kind(), why));
                }
                _ => {}
            }
            self.closed_octets -= oldest.length;
            let mut shared = lock(&self.shared);
            shared.closed.remove(0);
            if displaced {
                shared.status.displaced += 1;
                shared.status.displaced_until = Some(oldest.summary.times[1]);
            }
        }
        Ok(())
    }

    /// The oldest segment if it has to be removed, and whether that is early.
    fn to_let_go(&self, now: u32) -> Option<(Arc<Closed>, bool)> {
        let oldest = lock(&self.shared).closed.first()?.clone();
        let over = now.saturating_sub(oldest.summary.times[1]) > self.bounds.keep;
        let too_much = self.octets() > self.bounds.octets;
        (over || too_much).then_some((oldest, !over))
    }

    fn octets(&self) -> u64 {
        self.closed_octets + self.open.as_ref().map_or(0, |open| open.length)
    }

    /// Shows readers what is on the disk now.
    fn tell(&self) {
        let open = self.open.as_ref().map(|open| OpenView {
            path: open.path.clone(),
            salt: open.salt,
            length: open.length,
            summary: open.gathered.summary,
        });
        let mut shared = lock(&self.shared);
        let closed = shared.closed.iter().map(|closed| &closed.summary);
        let mut all = closed.chain(open.as_ref().map(|open| &open.summary));
        let oldest = all.find(|summary| summary.events > 0);
        let oldest = oldest.map(|summary| summary.times[0]);
        shared.open = open;
        let status = &mut shared.status;
        (status.last, status.oldest) = (self.last, oldest);
        (status.keep, status.octets) = (self.bounds.keep, self.octets());
    }

    /// Sets or clears the reason why nothing can be written.
    pub(super) fn set_failing(&self, why: Option<String>) {
        lock(&self.shared).status.failing = why;
    }
}

fn damage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Numbers of the first blocks of a directory's segments, in order.
fn segments_in(directory: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        found.extend(
            number
                .filter(|n| n.len() == 20)
                .and_then(|n| n.parse::<u64>().ok()),
        );
    }
    found.sort_unstable();
    Ok(found)
}
