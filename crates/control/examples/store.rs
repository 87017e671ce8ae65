//! Figures of the store on this machine: `cargo run --release -p control --example store [DIRECTORY]`.
//!
//! It fills a store with as many sessions as one control plane has, changes them as fast as the disk takes it, so that
//! the log is rewritten meanwhile, opens what a crash would leave, and prints what that took.

use control::store::{Record, Store, StoreThread};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SESSIONS: u64 = 131_072;
/// Octets of a session's record.
const RECORD: usize = 400;
/// Sessions that are written together.
const TOGETHER: u64 = 16;

fn main() {
    let place = match std::env::args().nth(1) {
        Some(place) => tempfile::tempdir_in(place),
        None => tempfile::tempdir(),
    };
    let place = place.expect("a directory");
    let directory = place.path();
    change_all("first records", directory, 1);
    change_all("four changes of each", directory, 4);
    open("opened after it was closed", directory);
    let log = directory.join("sessions.log");
    let length = std::fs::metadata(&log).expect("a log").len();
    let file = std::fs::OpenOptions::new().write(true).open(&log);
    let file = file.expect("a log");
    // The seal and a part of the last batch.
    file.set_len(length - 120).expect("a shorter log");
    open("opened after a crash in a batch", directory);
}

fn session(number: u64, round: u64) -> Record {
    let mut value = vec![round as u8; RECORD];
    value[..8].copy_from_slice(&number.to_be_bytes());
    Record::put([b"session/", &number.to_be_bytes()[..]].concat(), value)
}

/// Writes every session so many times through the store's thread.
fn change_all(what: &str, directory: &Path, rounds: u64) {
    let (store, _) = Store::open(directory).expect("a store");
    let (sender, acknowledged) = mpsc::channel();
    let begun = Instant::now();
    let acknowledge = move |done: Result<u64, _>| {
        let _ = sender.send((Instant::now(), done.expect("an acknowledgement")));
    };
    let mut thread = StoreThread::start(store, 256, acknowledge).expect("a thread");
    let mut submitted = Vec::new();
    for round in 0..rounds {
        for first in (0..SESSIONS).step_by(TOGETHER as usize) {
            let batch = (first..first + TOGETHER).map(|number| session(number, round));
            let batch = batch.collect();
            submitted.push(Instant::now());
            thread.submit(batch).expect("a store that works");
        }
    }
    drop(thread);
    let took = begun.elapsed();
    let acknowledged: Vec<_> = acknowledged.into_iter().collect();
    let mut waits = Vec::new();
    let mut next = 0;
    for (at, number) in &acknowledged {
        waits.extend(
            submitted[next..*number as usize]
                .iter()
                .map(|from| *at - *from),
        );
        next = *number as usize;
    }
    waits.sort();
    println!(
        "{what}: {:.0} records/s, {:.0} syncs/s; a batch waited {:.1?} (median), {:.1?} (99.9 %), {:.1?} (worst)",
        (rounds * SESSIONS) as f64 / took.as_secs_f64(),
        acknowledged.len() as f64 / took.as_secs_f64(),
        waits[waits.len() / 2],
        waits[waits.len() - waits.len() / 1000 - 1],
        waits.last().copied().unwrap_or(Duration::ZERO),
    );
}

fn open(what: &str, directory: &Path) {
    let begun = Instant::now();
    let (store, opened) = Store::open(directory).expect("a store");
    let took = begun.elapsed();
    let length = store.len_on_disk();
    assert_eq!(opened.live.len() as u64, SESSIONS);
    println!(
        "{what}: {} sessions in {took:.1?} from a log of {:.1} MB ({:.0} octets for each), {} octets cut off; {} MB of memory at most",
        opened.live.len(),
        length as f64 / 1e6,
        length as f64 / SESSIONS as f64,
        opened.cut,
        peak_memory() / 1000,
    );
}

/// The process's largest resident size, in kB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
