use crate::rig::Rig;
use crate::street_lab::StreetLab;
use anyhow::{Context, Result, ensure};
use northbound::{Change, CommitRequest, ConfigurationClient, Edit, Edits, change};
use sluice::lab::daemon::Daemon;
use sluice::lab::gateway::socket;
use sluice::lab::topology::directory;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HOMES: u32 = 1000;
const READERS: usize = 100;
/// How often a second the configuration changes.
const RATE: u32 = 100;
const SECONDS: u32 = 10;
/// How long a reader thinks about what it has read.
const BETWEEN_READS: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(20);

/// Changes that concern nobody touch nobody, however many they are and whoever reads meanwhile.
pub fn run(rig: &mut Rig) -> Result<()> {
    let dir = rig.without_site()?.dir().to_owned();
    let lab = StreetLab::start(&dir, HOMES)?;
    let cp = socket(&directory(""), Daemon::ControlPlane);
    let (over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let (commits, seconds, each) = thread::scope(|scope| -> Result<(u32, f64, Duration)> {
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(|| read(&cp, &over, &reads)))
            .collect();
        let done = write(&cp);
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader
                .join()
                .map_err(|_| anyhow::anyhow!("a reader panicked"))??;
        }
        done
    })?;
    let rate = f64::from(commits) / seconds;
    let reads = reads.into_inner();
    println!(
        "        {commits} commits in {seconds:.1} s, {rate:.0} a second, each {each:.1?}; {READERS} readers read {reads} times meanwhile"
    );
    let versions = client(&cp)?.versions()?;
    ensure!(
        versions
            .last()
            .is_some_and(|v| v.version == u64::from(commits) + 1),
        "versions are missing"
    );
    ensure!(reads > READERS as u64, "the readers were kept waiting");
    let report = lab.end()?;
    println!("        {report:?}");
    report.homes(HOMES, 0)?;
    report.restarts([0; 3])?;
    report.losses()?;
    // a machine under load may fall behind; half of the rate is another order of work for a commit
    ensure!(
        rate >= f64::from(RATE) / 2.0,
        "{rate:.0} commits a second, wanted {RATE}"
    );
    Ok(())
}

fn client(cp: &Path) -> Result<ConfigurationClient> {
    ConfigurationClient::connect(cp, PATIENCE).context("the configuration cannot be reached")
}

/// Reads what is in force, on a connection of its own each time.
fn read(cp: &Path, over: &AtomicBool, reads: &AtomicU64) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        let read = client(cp)?.get(None)?;
        ensure!(
            read.document.contains("user-planes"),
            "not a configuration: {}",
            read.document
        );
        reads.fetch_add(1, Ordering::Relaxed);
        thread::sleep(BETWEEN_READS);
    }
    Ok(())
}

/// Commits at the wanted rate, or as fast as it goes; how often, in how many seconds, and the mean time of a commit.
fn write(cp: &Path) -> Result<(u32, f64, Duration)> {
    let mut client = client(cp)?;
    let mut spent = Duration::ZERO;
    let begun = Instant::now();
    for n in 0..RATE * SECONDS {
        let due = Duration::from_secs(1) * n / RATE;
        thread::sleep(due.saturating_sub(begun.elapsed()));
        let secret = format!("secret {n}");
        let request = commit(
            u64::from(n) + 1,
            &[&["users", "nobody", "password", &secret]],
        );
        let asked = Instant::now();
        let done = client.commit(request)?;
        spent += asked.elapsed();
        ensure!(
            done.faults.is_empty(),
            "commit {n} was refused: {:?}",
            done.faults
        );
    }
    let commits = RATE * SECONDS;
    Ok((commits, begun.elapsed().as_secs_f64(), spent / commits))
}

/// A commit that sets these values in a version.
pub(super) fn commit(base: u64, settings: &[&[&str]]) -> CommitRequest {
    let set = |words: &&[&str]| Edit {
        delete: false,
        words: words.iter().copied().map(str::to_owned).collect(),
    };
    let edits = Edits {
        base,
        edits: settings.iter().map(set).collect(),
    };
    CommitRequest {
        change: Some(Change {
            change: Some(change::Change::Edits(edits)),
        }),
        ..CommitRequest::default()
    }
}
