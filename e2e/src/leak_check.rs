//! What daemons hold: everything has its owner, nothing grows, and when every home has left, nothing is left of them and
//! the records are right.

use crate::accounting::AccountingRecords;
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::scenario::Scenario;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use lab::topology::Lab;
use northbound::{Account, Ledger};
use serde::Deserialize;
use std::ops::Range;
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
/// What daemons may hold beyond what they held before: control plane and user planes.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Memory in KiB: what allocators keep of the most that was held.
    pub memory: [u64; 3],
    /// Sockets that are opened when they are first needed.
    pub descriptors: usize,
}

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

/// Where DPDK maps its memory, which is packet buffers: from its default base on, for as much as daemons of the lab have.
const DPDK_MEMORY: Range<u64> = 0x1_0000_0000..0x2_0000_0000;

/// Resident packet buffers of a process, in KiB.
pub fn packet_buffers(id: i32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/smaps"))?;
    let mut is_theirs = false;
    let mut resident = 0;
    for line in text.lines() {
        let start = line.split_once('-').map(|(start, _)| start);
        if let Some(start) = start.and_then(|start| u64::from_str_radix(start, 16).ok()) {
            is_theirs = DPDK_MEMORY.contains(&start);
        } else if let Some(rss) = line.strip_prefix("Rss:").filter(|_| is_theirs) {
            let kib = rss.split_whitespace().next().context("no size")?;
            resident += kib.parse::<u64>()?;
        }
    }
    Ok(resident)
}

/// CPU time that a process has used.
pub fn cpu_time(id: i32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // Behind the name, which may contain anything: fields 14 and 15 are ticks in user mode and in the kernel (proc(5)).
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// Nothing has grown between two looks at control plane and user planes, but for what is allowed.
pub fn no_leak(before: &[Footprint; 3], after: &[Footprint; 3], allowed: Allowance) -> Result<()> {
    let names = ["sluice-cp", "up1", "up2"];
    let grown = |of: fn(&Footprint) -> u64| {
        let all = names.iter().zip(before.iter().zip(after));
        let one =
            all.map(|(name, (before, after))| format!("{name} {} to {}", of(before), of(after)));
        one.collect::<Vec<_>>().join(", ")
    };
    println!(
        "        held: KiB of memory: {}; descriptors: {}",
        grown(|f| f.memory),
        grown(|f| f.descriptors as u64)
    );
    let both = before.iter().zip(after).zip(allowed.memory);
    for (name, ((before, after), memory)) in names.iter().zip(both) {
        ensure!(
            after.descriptors <= before.descriptors + allowed.descriptors,
            "{name} holds {} descriptors, {} before",
            after.descriptors,
            before.descriptors
        );
        ensure!(
            after.memory <= before.memory + memory,
            "{name} holds {} KiB, {} before and {memory} more are right",
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
pub fn nothing_left(lab: &Lab, scenario: &Scenario) -> Result<()> {
    let kept = scenario.gateway.wait_until_empty(lab, PATIENCE)?;
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
pub fn complete_records(lab: &Lab, scenario: &Scenario) -> Result<AccountingRecords> {
    let start = Instant::now();
    let records = loop {
        let records = scenario.records(lab)?;
        if records.with("Stop") == records.sessions() || start.elapsed() > PATIENCE {
            break records;
        }
        sleep(LOOK);
    };
    println!(
        "        records: {} sessions, {} with a Start and {} with a Stop",
        records.sessions(),
        records.with("Start"),
        records.with("Stop")
    );
    records.check()?;
    Ok(records)
}
