//! Copies of a history that is in use.

use super::super::backup::{Backup, Part, RESERVE};
use super::*;
use std::os::unix::fs::PermissionsExt;
use tokio::runtime::Builder;
use tokio::sync::mpsc;

fn append(database: &mut Database, numbers: std::ops::RangeInclusive<u64>) {
    let block_of = |n: u64| block(&[online(n as u32, n, addresses(Some(n as u8), None))]);
    let blocks: Vec<(u64, Vec<u8>)> = numbers.map(|n| (n, block_of(n))).collect();
    let all = blocks.iter().map(|(n, block)| (*n, &block[..]));
    database.append(all).unwrap();
}

fn back_up(database: &Database, parts: &mpsc::Sender<Part>) -> std::io::Result<String> {
    let backup = Backup::prepare(&database.reader(), RESERVE)?;
    let runtime = Builder::new_current_thread().enable_time().build();
    let made = runtime.unwrap().block_on(backup.run(parts))?;
    let path = made.path.unwrap();
    assert_eq!(made.octets, fs::metadata(&path).unwrap().len());
    Ok(path)
}

/// The copy as a history of its own, as it would be brought back.
fn restored(copy: &str) -> (tempfile::TempDir, Database) {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(copy, directory.path().join("events.db")).unwrap();
    let database = open(directory.path());
    (directory, database)
}

#[test]
fn a_backup_is_the_history_at_an_instant_and_takes_the_place_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let (parts, _listening) = mpsc::channel(4);
    append(&mut database, 1..=300);
    let first = back_up(&database, &parts).unwrap();
    let mode = fs::metadata(&first).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it says who was online where");
    append(&mut database, 301..=500);
    let (_directory, mut before) = restored(&first);
    assert_eq!(times(&before.reader(), "").len(), 300);
    assert_eq!(times(&before.reader(), "100.64.0.7"), [7, 263]);
    // it goes on where it was
    assert_eq!(before.last(), 300);
    append(&mut before, 301..=310);
    assert_eq!(times(&before.reader(), "").len(), 310);

    // one that a daemon left unfinished is in nobody's way
    fs::write(directory.path().join("backup.part"), "half").unwrap();
    let second = back_up(&database, &parts).unwrap();
    assert_eq!(second, first);
    let (_directory, after) = restored(&second);
    assert_eq!(times(&after.reader(), "").len(), 500);
    assert!(!directory.path().join("backup.part").exists());
}

#[test]
fn a_backup_that_nobody_waits_for_any_more_leaves_nothing_half() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    append(&mut database, 1..=5000);
    let (parts, listening) = mpsc::channel(4);
    drop(listening);
    // it may have been complete before it was told
    let whole = back_up(&database, &parts).ok();
    assert!(!directory.path().join("backup.part").exists());
    let copy = directory.path().join("backup.db");
    assert_eq!(copy.exists(), whole.is_some());
}

#[test]
fn a_backup_without_room_is_not_begun_and_says_how_much_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    append(&mut database, 1..=10);
    let refused = Backup::prepare(&database.reader(), u64::MAX / 2).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
    let said = refused.to_string();
    assert!(said.contains("MiB have to stay free"), "{said}");
    assert!(!directory.path().join("backup.part").exists());
}
