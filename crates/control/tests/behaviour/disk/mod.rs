//! A disk in memory that keeps no more than it must, and fails at the operation it is told to.

use control::store::{Disk, DiskFile};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// What a disk writes as a whole or not at all; small, so that small batches have several.
const SECTOR: usize = 16;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power goes. What was not synced reaches the disk as [`Remains`] says.
    PowerLoss(Remains),
    /// The process is killed after a part of the operation; what it wrote stays in the system's memory.
    Kill,
    /// The operation fails, the process goes on. A sync that fails has lost what it was to write, as Linux does.
    Error,
}

/// What reached the disk of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// Nothing.
    Nothing,
    /// All of it.
    All,
    /// Names, but no data: the renames before what they name.
    NamesAlone,
    /// Data, but no names.
    DataAlone,
    /// Changes in their order up to some point, the next one torn.
    Torn,
}

impl Remains {
    pub const EVERY: [Self; 5] = [
        Self::Nothing,
        Self::All,
        Self::NamesAlone,
        Self::DataAlone,
        Self::Torn,
    ];
}

/// The machine that the disk is in; clones are the same machine.
#[derive(Clone)]
pub struct Machine(Rc<RefCell<State>>);

struct State {
    random: StdRng,
    names: Names,
    durable_names: Names,
    files: BTreeMap<usize, Content>,
    operations: u64,
    fault: Option<(u64, Fault)>,
    /// What happens so many operations after that.
    then: Option<(u64, Fault)>,
    trouble: Trouble,
    /// The process is dead, or the power off: nothing is done any more.
    down: bool,
    renames: u32,
}

/// What is wrong with the disk for as long as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    #[default]
    Nothing,
    /// The files together have no room for more than so many octets.
    Full(usize),
    /// Nothing can be written.
    NoWrites,
    /// No sync succeeds; what it was to write is lost, as Linux does.
    NoSyncs,
}

/// Names that lead to files.
#[derive(Clone, Default)]
struct Names {
    now: BTreeMap<String, usize>,
    /// In `now`, and not on the disk yet.
    changes: Vec<NameChange>,
}

#[derive(Clone)]
enum NameChange {
    Set(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone, Default)]
struct Content {
    durable: Vec<u8>,
    /// What every reader sees.
    now: Vec<u8>,
    /// In `now`, and not on the disk yet.
    changes: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// How far an operation that was told to fail still went.
enum Went {
    Whole,
    PartThenFailed,
}

impl Machine {
    pub fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(State {
            random: StdRng::seed_from_u64(seed),
            names: Names::default(),
            durable_names: Names::default(),
            files: BTreeMap::new(),
            operations: 0,
            fault: None,
            then: None,
            trouble: Trouble::Nothing,
            down: false,
            renames: 0,
        })))
    }

    /// Lets a fault happen after so many more operations.
    pub fn fail_after(&self, operations: u64, fault: Fault) {
        let mut state = self.0.borrow_mut();
        state.fault = Some((state.operations + operations, fault));
    }

    /// Lets another fault happen so many operations after the one that was chosen.
    pub fn fail_again_after(&self, operations: u64, fault: Fault) {
        self.0.borrow_mut().then = Some((operations, fault));
    }

    /// From now on this is wrong with the disk.
    pub fn suffer(&self, trouble: Trouble) {
        self.0.borrow_mut().trouble = trouble;
    }

    /// Another machine with the same on its disk, whose chances are others.
    #[allow(dead_code)] // the simulation's
    pub fn copy(&self) -> Machine {
        let state = &mut *self.0.borrow_mut();
        let copy = Machine::new(state.random.random());
        let mut to = copy.0.borrow_mut();
        (to.names, to.durable_names) = (state.names.clone(), state.durable_names.clone());
        to.files.clone_from(&state.files);
        drop(to);
        copy
    }

    /// What the files take that have a name.
    pub fn octets(&self) -> usize {
        self.0.borrow().octets()
    }

    /// Flips a bit of a file, as a disk may: by chance where, in what was written a while ago.
    #[allow(dead_code)] // the simulation's
    pub fn flip(&self, name: &str) {
        let state = &mut *self.0.borrow_mut();
        let file = state.names.now.get(name);
        let content = file.and_then(|file| state.files.get_mut(file));
        if let Some(content) = content.filter(|content| !content.now.is_empty()) {
            let at = state.random.random_range(0..content.now.len());
            let bit = 1 << state.random.random_range(0..8);
            content.now[at] ^= bit;
            if let Some(octet) = content.durable.get_mut(at) {
                *octet ^= bit;
            }
        }
    }

    pub fn operations(&self) -> u64 {
        self.0.borrow().operations
    }

    pub fn renames(&self) -> u32 {
        self.0.borrow().renames
    }

    /// Whether the chosen fault has happened.
    pub fn has_failed(&self) -> bool {
        self.0.borrow().fault.is_none()
    }

    /// Starts the machine, or the process, again; without a fault in wait.
    pub fn restart(&self) {
        let mut state = self.0.borrow_mut();
        state.down = false;
        (state.fault, state.then) = (None, None);
        state.forget_files_without_a_name();
    }

    /// Pulls the plug.
    pub fn lose_power(&self, remains: Remains) {
        self.0.borrow_mut().lose_power(remains);
    }

    /// The bytes of a file, as the system sees them.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.0.borrow();
        let file = state.names.now.get(name)?;
        Some(state.files[file].now.clone())
    }
}

impl State {
    /// Counts an operation. An error if it is the one that fails and nothing of it is done.
    fn operate(&mut self) -> io::Result<Went> {
        if self.down {
            return Err(gone());
        }
        self.operations += 1;
        match self.fault {
            Some((at, _)) if self.operations > at => Ok(Went::PartThenFailed),
            _ => Ok(Went::Whole),
        }
    }

    fn octets(&self) -> usize {
        let files = self.names.now.values();
        files
            .filter_map(|file| Some(self.files.get(file)?.now.len()))
            .sum()
    }

    /// How much of a write there is room for.
    fn room(&self, wanted: usize) -> io::Result<usize> {
        match self.trouble {
            Trouble::Full(octets) => Ok(wanted.min(octets.saturating_sub(self.octets()))),
            Trouble::NoWrites => Err(io::Error::other("input/output error")),
            Trouble::Nothing | Trouble::NoSyncs => Ok(wanted),
        }
    }

    /// The consequences of the fault, once the operation went as far as it goes.
    fn fail(&mut self) -> io::Error {
        let Some((_, fault)) = self.fault.take() else {
            return gone();
        };
        let then = self.then.take();
        self.fault = then.map(|(after, fault)| (self.operations + after, fault));
        match fault {
            Fault::PowerLoss(remains) => self.lose_power(remains),
            Fault::Kill => {}
            Fault::Error => return io::Error::other("input/output error"),
        }
        self.down = true;
        gone()
    }

    fn lose_power(&mut self, remains: Remains) {
        self.down = true;
        let random = &mut self.random;
        let (names, data) = match remains {
            Remains::Nothing => (false, false),
            Remains::All => (true, true),
            Remains::NamesAlone => (true, false),
            Remains::DataAlone => (false, true),
            Remains::Torn => {
                for file in self.files.values_mut() {
                    file.tear(random);
                }
                let keep = random.random_range(0..=self.names.changes.len());
                self.names.changes.truncate(keep);
                (true, false)
            }
        };
        for file in self.files.values_mut() {
            if data {
                file.sync();
            }
            file.now.clone_from(&file.durable);
            file.changes.clear();
        }
        if names {
            let changes = std::mem::take(&mut self.names.changes);
            changes
                .iter()
                .for_each(|change| self.durable_names.apply(change));
        }
        self.names = self.durable_names.clone();
    }

    fn file(&mut self, file: usize) -> &mut Content {
        self.files.entry(file).or_default()
    }

    fn forget_files_without_a_name(&mut self) {
        let named = |file: &usize| {
            let mut names = self
                .names
                .now
                .values()
                .chain(self.durable_names.now.values());
            names.any(|named| named == file)
        };
        self.files.retain(|file, _| named(file));
    }

    fn change_name(&mut self, change: NameChange) {
        self.names.apply(&change);
        self.names.changes.push(change);
    }
}

impl Names {
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Set(name, file) => {
                self.now.insert(name.clone(), *file);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = self.now.remove(from) {
                    self.now.insert(to.clone(), file);
                }
            }
            NameChange::Remove(name) => {
                self.now.remove(name);
            }
        }
    }
}

impl Content {
    fn append(&mut self, bytes: &[u8]) {
        self.changes
            .push(Change::Write(self.now.len(), bytes.to_vec()));
        self.now.extend(bytes);
    }

    fn truncate(&mut self, length: usize) {
        self.changes.push(Change::Truncate(length));
        self.now.truncate(length);
    }

    /// Takes what was changed to the disk; what an earlier sync failed to is not there.
    fn sync(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            self.reach_disk(change);
        }
    }

    fn reach_disk(&mut self, change: Change) {
        match change {
            Change::Truncate(length) => self.durable.truncate(length),
            Change::Write(at, bytes) => {
                let end = at + bytes.len();
                self.durable.resize(end.max(self.durable.len()), 0);
                self.durable[at..end].copy_from_slice(&bytes);
            }
        }
    }

    /// Takes some of the changes to the disk, and the one after them in part.
    fn tear(&mut self, random: &mut StdRng) {
        let whole = random.random_range(0..=self.changes.len());
        let changes = std::mem::take(&mut self.changes);
        for (number, change) in changes.into_iter().take(whole + 1).enumerate() {
            match change {
                Change::Write(at, bytes) if number == whole => {
                    self.reach_disk(Change::Write(at, torn(bytes, random)));
                }
                change => self.reach_disk(change),
            }
        }
    }
}

/// A part of a write: its beginning, or the whole length with sectors that were not written.
fn torn(mut bytes: Vec<u8>, random: &mut StdRng) -> Vec<u8> {
    bytes.truncate(random.random_range(0..=bytes.len()));
    if random.random_bool(0.5) {
        for sector in bytes.chunks_mut(SECTOR) {
            if random.random_bool(0.5) {
                sector.fill(0);
            }
        }
    }
    bytes
}

fn gone() -> io::Error {
    io::Error::other("the machine is down")
}

/// A file that was opened.
pub struct Handle {
    machine: Machine,
    file: usize,
}

impl Disk for Machine {
    type File = Handle;

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.0.borrow_mut();
        if let Went::PartThenFailed = state.operate()? {
            return Err(state.fail());
        }
        drop(state);
        Ok(self.content(name))
    }

    fn create(&mut self, name: &str) -> io::Result<Handle> {
        let mut state = self.0.borrow_mut();
        let went = state.operate()?;
        let file = state.operations as usize;
        state.files.insert(file, Content::default());
        state.change_name(NameChange::Set(name.into(), file));
        match went {
            Went::PartThenFailed => Err(state.fail()),
            Went::Whole => Ok(Handle {
                machine: self.clone(),
                file,
            }),
        }
    }

    fn open(&mut self, name: &str) -> io::Result<Handle> {
        let mut state = self.0.borrow_mut();
        if let Went::PartThenFailed = state.operate()? {
            return Err(state.fail());
        }
        let file = state.names.now.get(name).copied();
        Ok(Handle {
            machine: self.clone(),
            file: file.ok_or(io::ErrorKind::NotFound)?,
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let went = state.operate()?;
        let done = matches!(went, Went::Whole) || state.random.random();
        if done {
            state.renames += 1;
            state.change_name(NameChange::Rename(from.into(), to.into()));
        }
        match went {
            Went::PartThenFailed => Err(state.fail()),
            Went::Whole => Ok(()),
        }
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let went = state.operate()?;
        if !state.names.now.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change_name(NameChange::Remove(name.into()));
        match went {
            Went::PartThenFailed => Err(state.fail()),
            Went::Whole => Ok(()),
        }
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        if let Went::PartThenFailed = state.operate()? {
            return Err(state.fail());
        }
        if state.trouble == Trouble::NoSyncs {
            return Err(io::Error::other("input/output error"));
        }
        state.names.changes.clear();
        state.durable_names = state.names.clone();
        state.forget_files_without_a_name();
        Ok(())
    }

    fn salt(&mut self) -> io::Result<u64> {
        let mut state = self.0.borrow_mut();
        match state.operate()? {
            Went::PartThenFailed => Err(state.fail()),
            Went::Whole => Ok(state.random.random()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }
}

impl DiskFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.machine.0.borrow_mut();
        match state.operate()? {
            Went::Whole => {
                let room = state.room(bytes.len())?;
                state.file(self.file).append(&bytes[..room]);
                match room == bytes.len() {
                    true => Ok(()),
                    false => Err(io::ErrorKind::StorageFull.into()),
                }
            }
            Went::PartThenFailed => {
                let end = state.random.random_range(0..=bytes.len());
                state.file(self.file).append(&bytes[..end]);
                Err(state.fail())
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.machine.0.borrow_mut();
        let went = state.operate()?;
        if let Went::PartThenFailed = went {
            if let Some((_, Fault::Error)) = state.fault {
                state.file(self.file).changes.clear();
            }
            return Err(state.fail());
        }
        if state.trouble == Trouble::NoSyncs {
            state.file(self.file).changes.clear();
            return Err(io::Error::other("input/output error"));
        }
        state.file(self.file).sync();
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.machine.0.borrow_mut();
        let went = state.operate()?;
        state.file(self.file).truncate(length as usize);
        match went {
            Went::PartThenFailed => Err(state.fail()),
            Went::Whole => Ok(()),
        }
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.machine.0.borrow_mut();
        if let Went::PartThenFailed = state.operate()? {
            return Err(state.fail());
        }
        let end = at as usize + into.len();
        let octets = state.file(self.file).now.get(at as usize..end);
        into.copy_from_slice(octets.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
