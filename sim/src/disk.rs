//! The control plane's disk: the real store and its writer, on files in memory that keep no more than they must. A batch is
//! safe some time after it was handed over. The disk may be slow, full or failing, lose its power, and flip bits.

#[allow(dead_code)]
#[path = "../../crates/control/tests/behaviour/disk/mod.rs"]
mod machine;

use control::plane::MOST_BATCHES;
use control::store::{Limits, Record, Store, StoreError, Writer};
use core::time::Duration;
use machine::{Fault, Machine, Remains, Trouble};
use rand::Rng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};

/// Small, so that a run sees many snapshots.
const LIMITS: Limits = Limits {
    least: 32 << 10,
    factor: 2,
    slice: 2 << 10,
};
/// How long after a failure it is tried again, as the store's thread does.
const AGAIN: Duration = Duration::from_secs(1);
/// The store's file.
const LOG: &str = "sessions.log";
/// How many bits are tried when some flip.
const FLIPS: u32 = 8;

/// What is alive: keys and values.
pub type Live = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys, and what they were.
type Undo = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What may be wrong with a disk for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// It does not answer.
    Stalls,
    /// It takes seconds for everything.
    IsSlow,
    /// It has room for so many octets more.
    IsFull(usize),
    /// Nothing can be written.
    RefusesWrites,
    /// No sync succeeds.
    RefusesSyncs,
}

/// A disk with what is on it, and what is on its way there.
pub struct Disk {
    machine: Machine,
    writer: Option<Writer<Machine>>,
    /// What was acknowledged.
    pub live: Live,
    /// What the last batch changed, if that is known: its keys, and what they were before.
    undo: Option<Undo>,
    /// Batches that are not acknowledged, in their order.
    pending: VecDeque<Vec<Record>>,
    /// How many of them the writer has taken.
    taken: usize,
    /// A write is under way.
    writing: bool,
    /// The last write failed.
    failing: bool,
    /// More batches waited than may.
    overrun: bool,
    /// What is wrong, by the number of the fault.
    faults: BTreeMap<usize, DiskFault>,
    /// What is written is there.
    is_sound: bool,
    /// Blocks of events that the history's thread was handed and has not synced.
    pub history: VecDeque<(u64, Vec<u8>)>,
}

fn apply(records: &[Record], live: &mut Live, undo: &mut Undo) {
    for Record { key, value } in records {
        let before = match value {
            Some(value) => live.insert(key.clone(), value.clone()),
            None => live.remove(key),
        };
        undo.push((key.clone(), before));
    }
}

impl Disk {
    /// An empty one.
    pub fn new(seed: u64) -> Self {
        Disk {
            machine: Machine::new(seed),
            writer: None,
            live: Live::new(),
            undo: None,
            pending: VecDeque::new(),
            taken: 0,
            writing: false,
            failing: false,
            overrun: false,
            faults: BTreeMap::new(),
            is_sound: true,
            history: VecDeque::new(),
        }
    }

    /// Something is wrong with the disk from now on, or is not any more.
    pub fn suffer(&mut self, number: usize, fault: Option<DiskFault>) {
        match fault {
            Some(fault) => drop(self.faults.insert(number, fault)),
            None => drop(self.faults.remove(&number)),
        }
        let trouble = self.faults.values().find_map(|fault| match fault {
            DiskFault::IsFull(room) => Some(Trouble::Full(self.machine.octets() + room)),
            DiskFault::RefusesWrites => Some(Trouble::NoWrites),
            DiskFault::RefusesSyncs => Some(Trouble::NoSyncs),
            DiskFault::Stalls | DiskFault::IsSlow => None,
        });
        self.is_sound = trouble.is_none();
        self.machine.suffer(trouble.unwrap_or_default());
    }

    fn has(&self, fault: DiskFault) -> bool {
        self.faults.values().any(|one| *one == fault)
    }

    /// Whether a control plane could start: a store that cannot be opened now is tried again by the supervisor.
    pub fn can_be_opened(&self) -> bool {
        match Store::open_on(self.machine.clone(), LIMITS) {
            Err(StoreError::Io { .. }) => self.is_sound,
            _ => true, // what else may be wrong is told by `open`
        }
    }

    /// Opens the store for a control plane that starts, after the end of the one before.
    ///
    /// # Errors
    /// The store says no, or has something else than what was acknowledged, and perhaps batches that were under way.
    pub fn open(&mut self) -> Result<control::store::Live, String> {
        let opened = Store::open_on(self.machine.clone(), LIMITS);
        let (store, opened) = opened.map_err(|error| error.to_string())?;
        let found: Live = opened.live.iter().cloned().collect();
        let mut perhaps = self.live.clone();
        let mut is_it = found == perhaps;
        for batch in self.pending.drain(..).take(self.taken) {
            apply(&batch, &mut perhaps, &mut Undo::new());
            is_it |= found == perhaps;
        }
        if !is_it {
            return Err("the store lost what it acknowledged, or has what nobody wrote".into());
        }
        (self.live, self.writer) = (found, Some(Writer::new(store)));
        (self.taken, self.writing, self.failing) = (0, false, false);
        self.undo = None;
        Ok(opened.live)
    }

    /// Takes a batch.
    pub fn write(&mut self, records: Vec<Record>) {
        self.pending.push_back(records);
        self.overrun |= self.pending.len() as u64 > MOST_BATCHES;
    }

    /// Whether nothing waits for it.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Begins to write if there is something and nothing is under way; how long it takes.
    pub fn sync(&mut self, random: &mut StdRng) -> Option<Duration> {
        let stalled = self.has(DiskFault::Stalls);
        let writer = self.writer.as_mut().filter(|_| !self.writing && !stalled)?;
        while let Some(batch) = self.pending.get(self.taken).filter(|_| !writer.is_full()) {
            writer.take(batch);
            self.taken += 1;
        }
        if self.taken == 0 && !self.failing {
            return None;
        }
        self.writing = true;
        if self.failing {
            return Some(AGAIN);
        }
        let slow = self.has(DiskFault::IsSlow);
        let micros = match random.random_range(0..100) {
            _ if slow => random.random_range(100_000..4_000_000),
            0 => random.random_range(10_000..500_000),
            _ => random.random_range(100..3_000),
        };
        Some(Duration::from_micros(micros))
    }

    /// What was under way is written, or not: the number of the last batch that is safe, if that is known now.
    ///
    /// # Errors
    /// The store failed, on a disk that did not; or it was handed more than it is to have room for.
    pub fn synced(&mut self) -> Result<Option<u64>, String> {
        if self.overrun {
            return Err(format!(
                "more than {MOST_BATCHES} batches wait for the disk"
            ));
        }
        self.writing = false;
        let stalled = self.has(DiskFault::Stalls);
        let Some(writer) = self.writer.as_mut().filter(|_| !stalled) else {
            return Ok(None);
        };
        let written = writer.write();
        if written.is_ok() && self.taken > 0 {
            let mut undo = Undo::new();
            for batch in self.pending.drain(..self.taken) {
                apply(&batch, &mut self.live, &mut undo);
            }
            (self.taken, self.undo) = (0, Some(undo));
        }
        let tended = match &written {
            Ok(_) => writer.tend(),
            Err(_) => Ok(()),
        };
        self.failing = written.is_err() || tended.is_err();
        let failed = written.as_ref().err().or(tended.as_ref().err());
        if let Some(error) = failed.filter(|_| self.is_sound) {
            return Err(error.to_string());
        }
        Ok(written.ok())
    }

    /// The writer dies. What it wrote stays, also where that is the half of a batch, or of a snapshot.
    pub fn crash(&mut self, random: &mut StdRng) {
        self.end(Fault::Kill, random);
    }

    /// The power goes, and with it what was not synced, or a part of it.
    pub fn lose_power(&mut self, random: &mut StdRng) {
        let remains = Remains::EVERY[random.random_range(0..Remains::EVERY.len())];
        self.end(Fault::PowerLoss(remains), random);
        self.machine.lose_power(remains);
        self.machine.restart();
    }

    fn end(&mut self, fault: Fault, random: &mut StdRng) {
        let Some(mut writer) = self.writer.take() else {
            return; // nobody was there
        };
        if self.writing {
            self.machine.fail_after(random.random_range(0..8), fault);
            // The dead hear no errors.
            let _ = writer.write().and_then(|_| writer.tend());
        }
        drop(writer);
        self.machine.restart();
    }

    /// Bits flip in what was written, one at a time; somebody puts the file back each time.
    ///
    /// # Errors
    /// The store was opened as if nothing were wrong, and has something else than what was written.
    pub fn flip(&mut self) -> Result<(), String> {
        let Some(undo) = self.undo.as_ref().filter(|_| self.writer.is_some()) else {
            return Ok(());
        };
        let mut before = self.live.clone();
        for (key, value) in undo.iter().rev() {
            match value {
                Some(value) => drop(before.insert(key.clone(), value.clone())),
                None => drop(before.remove(key)),
            }
        }
        for _ in 0..FLIPS {
            let copy = self.machine.copy();
            copy.flip(LOG);
            let Ok((_, opened)) = Store::open_on(copy, LIMITS) else {
                continue; // it is told, and nobody acts on it
            };
            // The last batch may be taken for one that a crash cut short, as long as nothing is behind it.
            let found: Live = opened.live.into_iter().collect();
            if opened.cut == 0 || found != before && found != self.live {
                return Err("a bit flipped, and the store does not notice".into());
            }
        }
        Ok(())
    }
}
