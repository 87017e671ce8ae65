//! The control plane's disk: the real store on files in memory. A batch is safe some time after it was written; of one that
//! was under way when the control plane died, the file has a part, all, or nothing.

use control::store::{Disk as Files, DiskFile, Limits, Record, Store};
use core::time::Duration;
use rand::Rng;
use rand::rngs::StdRng;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// Small, so that a run sees many snapshots.
const LIMITS: Limits = Limits {
    least: 32 << 10,
    factor: 2,
    slice: 2 << 10,
};

/// What is alive: keys and values.
pub type Live = BTreeMap<Vec<u8>, Vec<u8>>;

/// A disk with what is on it, and what is on its way there.
#[derive(Default)]
pub struct Disk {
    machine: Machine,
    store: Option<Store<Machine>>,
    /// What was acknowledged.
    pub live: Live,
    /// Batches that are not acknowledged, in their order.
    pending: VecDeque<Vec<Record>>,
    /// How many of them the sync under way covers.
    syncing: usize,
    acknowledged: u64,
    /// It does not answer.
    pub stalled: bool,
}

fn apply(records: &[Record], live: &mut Live) {
    for Record { key, value } in records {
        match value {
            Some(value) => drop(live.insert(key.clone(), value.clone())),
            None => drop(live.remove(key)),
        }
    }
}

impl Disk {
    /// Opens the store for a control plane that starts, after the crash of the one before.
    ///
    /// # Errors
    /// The store says no, or has something else than what was acknowledged, and perhaps the batch that was under way.
    pub fn open(&mut self) -> Result<control::store::Live, String> {
        let opened = Store::open_on(self.machine.clone(), LIMITS);
        let (store, opened) = opened.map_err(|error| error.to_string())?;
        let found: Live = opened.live.iter().cloned().collect();
        let mut last = self.live.clone();
        (self.pending.drain(..).take(self.syncing)).for_each(|batch| apply(&batch, &mut last));
        if found != self.live && found != last {
            return Err("the store lost what it acknowledged, or has what nobody wrote".into());
        }
        (self.live, self.store) = (found, Some(store));
        (self.syncing, self.acknowledged) = (0, 0);
        Ok(opened.live)
    }

    /// Takes a batch.
    pub fn write(&mut self, records: Vec<Record>) {
        self.pending.push_back(records);
    }

    /// Begins a sync if there is something to sync and none under way; how long it takes.
    pub fn sync(&mut self, random: &mut StdRng) -> Option<Duration> {
        let idle = self.syncing == 0 && !self.pending.is_empty();
        if !idle || self.stalled || self.store.is_none() {
            return None;
        }
        self.syncing = self.pending.len();
        let micros = match random.random_range(0..100) {
            0 => random.random_range(10_000..500_000),
            _ => random.random_range(100..3_000),
        };
        Some(Duration::from_micros(micros))
    }

    /// The sync is over: the number of the last batch that is safe. `None` while the disk does not answer.
    ///
    /// # Errors
    /// The store failed, on a disk that did not.
    pub fn synced(&mut self) -> Result<Option<u64>, String> {
        let Some(store) = self.store.as_mut() else {
            return Ok(None);
        };
        let syncing = std::mem::take(&mut self.syncing);
        if self.stalled {
            return Ok(None);
        }
        for batch in self.pending.drain(..syncing) {
            batch.iter().for_each(|record| store.append(record));
            apply(&batch, &mut self.live);
            self.acknowledged += 1;
        }
        let done = store.sync().and_then(|()| store.tend());
        done.map_err(|error| error.to_string())?;
        Ok(Some(self.acknowledged))
    }

    /// The writer dies. What it wrote stays, also where that is the half of a batch, or of a snapshot.
    pub fn crash(&mut self, random: &mut StdRng) {
        let room = match random.random_range(0..4) {
            0 => 0,
            1 => usize::MAX,
            _ => random.random_range(0..3_000),
        };
        self.machine.0.borrow_mut().room = room;
        if let Some(mut store) = self.store.take() {
            let syncing = self.pending.iter().take(self.syncing).flatten();
            syncing.for_each(|record| store.append(record));
            // Dead writers hear no errors.
            let _ = store.sync().and_then(|()| store.tend());
        }
        self.machine.0.borrow_mut().room = usize::MAX;
    }
}

/// The files, which outlive whoever writes them.
#[derive(Clone, Default)]
struct Machine(Rc<RefCell<State>>);

struct State {
    names: BTreeMap<String, usize>,
    files: Vec<Vec<u8>>,
    /// How many octets are written before the writer is dead.
    room: usize,
    salt: u64,
}

impl Default for State {
    fn default() -> Self {
        State {
            names: BTreeMap::new(),
            files: Vec::new(),
            room: usize::MAX,
            salt: 0,
        }
    }
}

struct OpenFile(Machine, usize);

fn dead() -> io::Error {
    io::Error::other("the writer is dead")
}

fn missing() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Machine {
    /// Something that is done as a whole or not at all.
    fn step<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.borrow_mut();
        match state.room {
            0 => Err(dead()),
            _ => act(&mut state),
        }
    }
}

impl Files for Machine {
    type File = OpenFile;

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let state = self.0.borrow();
        Ok(state.names.get(name).map(|file| state.files[*file].clone()))
    }

    fn create(&mut self, name: &str) -> io::Result<OpenFile> {
        let file = self.step(|state| {
            state.files.push(Vec::new());
            let file = state.files.len() - 1;
            state.names.insert(name.to_owned(), file);
            Ok(file)
        })?;
        Ok(OpenFile(self.clone(), file))
    }

    fn open(&mut self, name: &str) -> io::Result<OpenFile> {
        let file = self.step(|state| state.names.get(name).copied().ok_or_else(missing))?;
        Ok(OpenFile(self.clone(), file))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.step(|state| {
            let file = state.names.remove(from).ok_or_else(missing)?;
            let old = state.names.insert(to.to_owned(), file);
            old.into_iter()
                .for_each(|old| state.files[old] = Vec::new());
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.step(|state| {
            let file = state.names.remove(name).ok_or_else(missing)?;
            state.files[file] = Vec::new();
            Ok(())
        })
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.step(|_| Ok(()))
    }

    fn salt(&mut self) -> io::Result<u64> {
        self.step(|state| {
            state.salt += 1;
            Ok(state.salt)
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

impl DiskFile for OpenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.0.borrow_mut();
        let written = bytes.len().min(state.room);
        state.files[self.1].extend_from_slice(&bytes[..written]);
        if state.room != usize::MAX {
            state.room -= written;
        }
        match written == bytes.len() {
            true => Ok(()),
            false => Err(dead()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.step(|_| Ok(()))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.step(|state| {
            state.files[self.1].truncate(length as usize);
            Ok(())
        })
    }
}
