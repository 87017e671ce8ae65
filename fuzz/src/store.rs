//! [`control::store`]: any octets in place of its log, and a log that was written well and damaged afterwards.
use crate::{Step, script, steps};
use control::store::{Disk, DiskFile, Limits, Live, Record, Store};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// What a step does, by `op % 16`.
mod op {
    /// A record is set: key of `data[0] % 8`, value.
    pub const PUT: u8 = 0;
    /// A record is deleted.
    pub const DELETE: u8 = 1;
    /// What was set is made durable.
    pub const SYNC: u8 = 2;
    /// The store is opened anew.
    pub const REOPEN: u8 = 3;
    /// The log ends earlier: so many octets are missing.
    pub const CUT: u8 = 4;
    /// An octet of the log is another: place from the end, what it is xored with.
    pub const FLIP: u8 = 5;
    /// Octets behind the log's end.
    pub const APPEND: u8 = 6;
    /// The log is this.
    pub const REPLACE: u8 = 7;
    /// A frame behind the log's end whose checksums are right: how many numbers it is ahead, its payload.
    pub const FRAME: u8 = 8;
    /// A slice of a snapshot is written.
    pub const TEND: u8 = 9;
    /// The log is sealed.
    pub const SEAL: u8 = 10;
}

const LOG: &str = "sessions.log";
/// Files that are not secret from the fuzzer: it could not make a frame otherwise.
const SALT: u64 = 7;
/// Small ones, so that snapshots happen.
const LIMITS: Limits = Limits {
    least: 200,
    factor: 2,
    slice: 48,
};

/// A file's octets, whatever its name is meanwhile.
type Octets = Rc<RefCell<Vec<u8>>>;

/// A disk in memory.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<BTreeMap<String, Octets>>>);

struct MemoryFile(Octets);

impl Memory {
    fn file(&self, name: &str) -> Octets {
        self.0.borrow_mut().entry(name.into()).or_default().clone()
    }

    fn copy(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.0.borrow();
        let copies = files
            .iter()
            .map(|(name, octets)| (name.clone(), octets.borrow().clone()));
        copies.collect()
    }
}

impl Disk for Memory {
    type File = MemoryFile;

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.copy().remove(name))
    }

    fn create(&mut self, name: &str) -> io::Result<MemoryFile> {
        self.0.borrow_mut().remove(name);
        self.open(name)
    }

    fn open(&mut self, name: &str) -> io::Result<MemoryFile> {
        Ok(MemoryFile(self.file(name)))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.borrow_mut();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.into(), file);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let removed = self.0.borrow_mut().remove(name);
        removed.map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn salt(&mut self) -> io::Result<u64> {
        Ok(SALT)
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

impl DiskFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().truncate(length as usize);
        Ok(())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let octets = self.0.borrow();
        let octets = octets.get(at as usize..at as usize + into.len());
        into.copy_from_slice(octets.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

#[derive(Default)]
struct World {
    disk: Memory,
    store: Option<Store<Memory>>,
    live: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What was alive after every sync: what is found must be one of these.
    history: Vec<Live>,
    /// The log has octets that the store did not write.
    foreign: bool,
    /// The log was damaged since it was open last.
    damaged: bool,
}

/// Takes one input.
pub fn run(input: &[u8]) {
    let mut world = World {
        history: vec![Live::new()],
        ..World::default()
    };
    for step in steps(input) {
        world.step(step);
    }
    world.reopen();
}

impl World {
    fn step(&mut self, step: Step<'_>) {
        match step.op & 15 {
            op::PUT => {
                let value = step.data.get(1..).unwrap_or_default();
                self.append(Record::put([step.octet(0) & 7], value));
            }
            op::DELETE => self.append(Record::delete([step.octet(0) & 7])),
            op::SYNC => {
                let Some(store) = &mut self.store else { return };
                store.sync().expect("a sync");
                self.history.push(self.live.clone().into_iter().collect());
            }
            op::REOPEN => self.reopen(),
            op::TEND => {
                let tended = self.store.as_mut().map(Store::tend);
                tended
                    .into_iter()
                    .for_each(|tended| tended.expect("a slice"));
            }
            op::SEAL => {
                let store = self.store.as_mut().filter(|store| store.pending() == 0);
                store
                    .into_iter()
                    .for_each(|store| store.seal().expect("a seal"));
            }
            _ => self.damage(step),
        }
    }

    fn append(&mut self, record: Record) {
        if self.store.is_none() {
            self.reopen();
        }
        let Some(store) = &mut self.store else { return };
        store.append(&record);
        match record.value {
            Some(value) => self.live.insert(record.key, value),
            None => self.live.remove(&record.key),
        };
    }

    fn reopen(&mut self) {
        self.store = None;
        let before = self.disk.copy();
        match Store::open_on(self.disk.clone(), LIMITS) {
            Ok((store, opened)) => {
                let known = self.history.contains(&opened.live);
                assert!(
                    self.foreign || known,
                    "a state that never was: {:?}",
                    opened.live
                );
                if !self.damaged {
                    let last = self.history.last();
                    assert_eq!(
                        (Some(&opened.live), opened.cut),
                        (last, 0),
                        "lost without damage"
                    );
                }
                drop(store);
                let (store, again) =
                    Store::open_on(self.disk.clone(), LIMITS).expect("a store that was open");
                assert_eq!(
                    (&again.live, again.cut),
                    (&opened.live, 0),
                    "another store the second time"
                );
                self.live = again.live.iter().cloned().collect();
                self.history.push(again.live);
                self.store = Some(store);
                self.damaged = false;
            }
            Err(error) => {
                assert!(self.damaged, "refused without damage: {error}");
                assert_eq!(
                    self.disk.copy(),
                    before,
                    "a store that is refused is left alone"
                );
            }
        }
    }

    fn damage(&mut self, step: Step<'_>) {
        self.store = None;
        self.damaged = true;
        let log = self.disk.file(LOG);
        let log = &mut *log.borrow_mut();
        match step.op & 15 {
            op::CUT => log.truncate(log.len().saturating_sub(step.number().into())),
            op::FLIP => {
                let at = log.len().checked_sub(1 + usize::from(step.number()));
                if let Some(octet) = at.and_then(|at| log.get_mut(at)) {
                    *octet ^= step.octet(2);
                }
            }
            op::FRAME => {
                self.foreign = true;
                let sequence = 1 + batches(log) + u64::from(step.octet(0));
                frame(sequence, step.data.get(1..).unwrap_or_default(), log);
            }
            op::REPLACE => {
                self.foreign = true;
                *log = step.data.to_vec();
            }
            _ => {
                self.foreign = true;
                log.extend(step.data);
            }
        }
    }
}

/// How many frames there are in a log, if it is one.
fn batches(log: &[u8]) -> u64 {
    let (mut at, mut count) = (24, 0);
    while let Some(length) = log.get(at + 8..at + 12) {
        at += 20 + u32::from_le_bytes(length.try_into().expect("four octets")) as usize;
        count += 1;
    }
    count
}

/// A frame as the store's page describes it.
fn frame(sequence: u64, payload: &[u8], log: &mut Vec<u8>) {
    let checksum = |bytes: &[u8]| crc32c::crc32c_append(crc32c::crc32c(&SALT.to_le_bytes()), bytes);
    let mut header = sequence.to_le_bytes().to_vec();
    header.extend((payload.len() as u32).to_le_bytes());
    header.extend(checksum(&header).to_le_bytes());
    header.extend(checksum(payload).to_le_bytes());
    log.extend(header);
    log.extend(payload);
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut disk = Memory::default();
    let (mut store, _) = Store::open_on(disk.clone(), LIMITS).expect("a store");
    for record in [
        Record::put([1], "alice"),
        Record::put([2], "bob"),
        Record::delete([1]),
    ] {
        store.append(&record);
        store.sync().expect("a sync");
    }
    store.seal().expect("a seal");
    let log = disk.read(LOG).expect("a disk").expect("a log");
    let _ = disk.remove(LOG);
    let written: [(u8, &[u8]); 6] = [
        (op::PUT, b"\x01alice"),
        (op::SYNC, b""),
        (op::PUT, b"\x02bob"),
        (op::DELETE, b"\x01"),
        (op::SYNC, b""),
        (op::REOPEN, b""),
    ];
    // A record that is no record: a deletion with a value.
    let bad = [&[0, 2, 1, 0, 0, 0, 1, 0, 0, 0][..], b"kv"].concat();
    let good = [&[0, 1, 1, 0, 0, 0, 1, 0, 0, 0][..], b"kv"].concat();
    let large = [3; 120];
    // Three records, each in a frame of its own behind a rewriting; the last of them is lost.
    let others = [[4; 120], [5; 120]];
    let mut shortened: Vec<(u8, &[u8])> = Vec::new();
    for _ in 0..3 {
        shortened.extend([
            (op::PUT, &large[..]),
            (op::PUT, &others[0]),
            (op::PUT, &others[1]),
        ]);
        shortened.push((op::SYNC, b""));
    }
    shortened.extend([(op::TEND, &b""[..]); 4]);
    shortened.push((op::CUT, &[0, 60]));
    let afterwards: [&[(u8, &[u8])]; 11] = [
        &[],
        &[(op::CUT, &[0, 3])],
        &[
            (op::CUT, &[0, 40]),
            (op::REOPEN, b""),
            (op::PUT, b"\x03carol"),
            (op::SYNC, b""),
        ],
        &[(op::FLIP, &[0, 30, 1])],
        &[(op::SEAL, b""), (op::FLIP, &[0, 30, 1])],
        &[(op::APPEND, b"half a batch"), (op::REOPEN, b"")],
        &[(op::FRAME, &bad)],
        &[(op::FRAME, &good), (op::REOPEN, b"")],
        &[(op::FRAME, b"\x03")],
        &[
            (op::PUT, &large),
            (op::SYNC, b""),
            (op::PUT, &large),
            (op::SYNC, b""),
            (op::TEND, b""),
            (op::TEND, b""),
            (op::TEND, b""),
            (op::REOPEN, b""),
        ],
        &shortened,
    ];
    let mut seeds = vec![script([(op::REPLACE, log)])];
    for damage in afterwards {
        seeds.push(script(written.iter().chain(damage).copied()));
    }
    seeds
}
