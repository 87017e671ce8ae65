use crate::background_lab::{BackgroundLab, socket};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use anyhow::{Context, Result, ensure};
use northbound::{Change, CommitRequest, ConfigurationClient, Edit, Edits, change};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HOMES: u32 = 1000;
/// Packets a second, of all homes together: what a machine carries that is busy with other things.
const PACKETS: u32 = 4_000;
const READERS: usize = 100;
/// How often a second the configuration changes.
const RATE: u32 = 100;
const SECONDS: u32 = 10;
/// Commits before anybody reads.
const ALONE: u32 = 50;
/// How much longer a commit may take while everybody reads than while nobody does.
const MOST_TIMES: u32 = 10;
/// How long a reader thinks about what it has read.
const BETWEEN_READS: Duration = Duration::from_millis(500);

/// Changes that concern nobody touch nobody, however many they are and whoever reads meanwhile.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let lab = BackgroundLab::start_with(own, HOMES, &["--pps", &PACKETS.to_string()])?;
    let cp = socket(own);
    let (_, _, undisturbed) = write(&cp, 0..ALONE)?;
    println!("        a commit takes {undisturbed:.1?} while nobody reads");
    let (over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let (commits, seconds, each) = thread::scope(|scope| -> Result<(u32, f64, Duration)> {
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(|| read(&cp, &over, &reads)))
            .collect();
        let done = write(&cp, ALONE..ALONE + RATE * SECONDS);
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
            .is_some_and(|v| v.version == u64::from(ALONE + commits) + 1),
        "versions are missing"
    );
    ensure!(reads > READERS as u64, "the readers were kept waiting");
    let report = lab.end()?;
    println!("        {report:?}");
    report.homes(HOMES, 0)?;
    report.restarts([0; 3])?;
    report.losses()?;
    // A commit waits for no reader, of whom there is always one at work.
    ensure!(
        each < MOST_TIMES * undisturbed,
        "a commit takes {each:.1?} while {READERS} readers read, {undisturbed:.1?} while nobody does"
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

/// Makes these commits at the wanted rate, or as fast as it goes; how many, in how many seconds, and the mean time of one.
fn write(cp: &Path, numbers: Range<u32>) -> Result<(u32, f64, Duration)> {
    let mut client = client(cp)?;
    let mut spent = Duration::ZERO;
    let begun = Instant::now();
    let (first, commits) = (numbers.start, numbers.end - numbers.start);
    for n in numbers {
        let due = Duration::from_secs(1) * (n - first) / RATE;
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
