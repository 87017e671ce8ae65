//! What daemons hold: everything has its owner, nothing grows, and when every home has left, nothing is left of them and
//! the books are right.

use crate::arena::{Arena, INTERIM, Outcome};
use crate::books::{Books, octets};
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::load::{FULL_RATE, HOMES, Measured};
use crate::radius::Entry;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use northbound::{Account, Ledger};
use serde::Deserialize;
use sluice::lab::topology::Lab;
use std::collections::BTreeSet;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often anything is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// What is held as long as the planes are connected, whether or not subscribers are there.
const STAYS: [&str; 8] = [
    "access port",
    "default session",
    "route",
    "resolved route",
    "next hop",
    "mirrored route",
    "mirrored neighbour",
    "device",
];
/// Octets of a verified packet on the average: the lab's sizes in turn.
const MEAN_SIZE: u64 = (96 + 128 + 576 + 1492) / 4;
/// Interim records are spread over a tenth more or less of their interval, and take a moment.
const LONGEST_INTERIM: u64 = INTERIM + INTERIM / 10 + 3;

/// Sockets that are opened when they are first needed: a further one of RADIUS, calls of the local API.
const FEW_DESCRIPTORS: usize = 4;
/// What an allocator may keep of the most that was held, as when a control plane that stood still catches up; in KiB.
const SOME_MEMORY: u64 = 16 << 10;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    /// Resident memory in KiB.
    pub memory: u64,
    /// Open file descriptors.
    pub descriptors: usize,
}

impl Footprint {
    /// Of a process that runs.
    pub fn of(id: i32) -> Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = line.and_then(|line| line.split_whitespace().next());
        Ok(Footprint {
            memory: memory.context("no VmRSS")?.parse()?,
            descriptors: std::fs::read_dir(format!("/proc/{id}/fd"))?.count(),
        })
    }
}

/// Nothing has grown between two looks at control plane and user planes, but for what allocators keep.
pub fn no_leak(before: &[Footprint; 3], after: &[Footprint; 3]) -> Result<()> {
    let names = ["sluice-cp", "up1", "up2"];
    let grown = |of: fn(&Footprint) -> u64| {
        let all = names.iter().zip(before.iter().zip(after));
        let one =
            all.map(|(name, (before, after))| format!("{name} {} to {}", of(before), of(after)));
        one.collect::<Vec<_>>().join(", ")
    };
    println!(
        "        held: MiB of memory: {}; descriptors: {}",
        grown(|f| f.memory >> 10),
        grown(|f| f.descriptors as u64)
    );
    for (name, (before, after)) in names.iter().zip(before.iter().zip(after)) {
        ensure!(
            after.descriptors <= before.descriptors + FEW_DESCRIPTORS,
            "{name} holds {} descriptors, {} before",
            after.descriptors,
            before.descriptors
        );
        ensure!(
            after.memory <= before.memory + before.memory / 10 + SOME_MEMORY,
            "{name} holds {} KiB, {} before",
            after.memory,
            before.memory
        );
    }
    Ok(())
}

/// Waits until everything that control plane and user planes hold has its owner; their ledger.
pub fn balanced(lab: &Lab) -> Result<Ledger> {
    let start = Instant::now();
    loop {
        match Sluice::of(lab).ledger() {
            Err(_) if start.elapsed() <= PATIENCE => sleep(LOOK),
            done => return done,
        }
    }
}

/// What a ledger has beyond what is held as long as the planes are connected.
pub fn left(ledger: &Ledger) -> Vec<&Account> {
    let held = ledger.accounts.iter().filter(|a| a.booked + a.owned > 0);
    held.filter(|a| !STAYS.contains(&&*a.kind)).collect()
}

/// Waits until sessions, pools, tables, kernel routes and the store are empty.
pub fn nothing_left(lab: &Lab, arena: &Arena) -> Result<()> {
    let kept = arena.gateway.wait_until_empty(lab, PATIENCE)?;
    ensure!(
        kept.is_empty(),
        "{} things are left {PATIENCE:?} after every home has left: {:?}",
        kept.len(),
        &kept[..kept.len().min(5)]
    );
    let start = Instant::now();
    loop {
        let (ledger, stored) = (balanced(lab)?, stored(lab)?);
        let booked = left(&ledger);
        if booked.is_empty() && stored == 0 {
            return Ok(());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "the store has {stored} sessions that do not exist any more, the ledger {booked:#?}"
        );
        sleep(LOOK);
    }
}

/// What `sluice store check --json` says.
#[derive(Deserialize)]
struct Stored {
    sessions: usize,
}

fn stored(lab: &Lab) -> Result<usize> {
    let mut command = Command::new(program("sluice")?);
    command
        .args(["store", "check", "--json"])
        .arg(lab.dir().join("store"));
    let done = command.output()?;
    ensure!(
        done.status.success(),
        "sluice store check: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(serde_json::from_slice::<Stored>(&done.stdout)?.sessions)
}

/// Octets on disk.
pub fn store_size(lab: &Lab) -> Result<u64> {
    let mut size = 0;
    for entry in std::fs::read_dir(lab.dir().join("store"))? {
        size += entry?.metadata()?.len();
    }
    Ok(size)
}

/// Waits until RADIUS has a Stop for every session; there is one Start and one Stop of each, and octets never fall.
pub fn whole_books(lab: &Lab, arena: &Arena) -> Result<Books> {
    let start = Instant::now();
    let books = loop {
        let books = arena.books(lab)?;
        if books.with("Stop") == books.sessions() || start.elapsed() > PATIENCE {
            break books;
        }
        sleep(LOOK);
    };
    println!(
        "        books: {} sessions, {} with a Start and {} with a Stop",
        books.sessions(),
        books.with("Start"),
        books.with("Stop")
    );
    books.check()?;
    Ok(books)
}

/// RADIUS has whole books, `sessions` among them, and the octets that were carried, but for what user planes that were
/// killed had not reported.
pub fn check_books(
    lab: &Lab,
    arena: &Arena,
    sessions: &BTreeSet<String>,
    outcome: &Outcome,
    blows: &[Measured],
) -> Result<()> {
    let books = whole_books(lab, arena)?;
    let unknown = sessions.iter().find(|id| !books.has(id));
    ensure!(unknown.is_none(), "no record about session {unknown:?}");
    let killed = blows.iter().filter(|m| m.blow.kills_user_plane()).count() as u64;
    let unreported = killed * LONGEST_INTERIM * u64::from(FULL_RATE) / 2 * MEAN_SIZE;
    let homes: u64 = outcome.streets.iter().map(|street| street.octets).sum();
    for (way, carried) in [("Input", outcome.internet.octets), ("Output", homes)] {
        let booked = sum(&books, way)?;
        println!(
            "        books: Acct-{way}-Octets {booked}, verified traffic {carried}: {} not reported, at most {unreported} for {killed} killed user planes",
            carried as i64 - booked as i64
        );
        ensure!(
            booked <= carried + lost_octets(blows) && carried <= booked + unreported,
            "Acct-{way}-Octets are {booked}, but {carried} octets were carried"
        );
    }
    Ok(())
}

/// What was forwarded and is not counted as traffic: packets that were lost behind a user plane.
fn lost_octets(blows: &[Measured]) -> u64 {
    let lost = blows.iter().flat_map(|m| m.lost).map(|(_, lost)| lost);
    lost.sum::<u64>() * 1492
}

/// The octets of all emulated homes.
fn sum(books: &Books, way: &str) -> Result<u64> {
    let of_homes = |stop: &&Entry| {
        let number = stop
            .get("User-Name")
            .and_then(|name| name.strip_prefix("home"));
        let number = number.and_then(|text| text.parse::<u32>().ok());
        number.is_some_and(|number| number <= HOMES.into())
    };
    books
        .stops()
        .filter(of_homes)
        .map(|stop| octets(stop, way))
        .sum()
}
