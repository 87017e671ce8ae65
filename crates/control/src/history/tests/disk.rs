//! Disks that are full, lose their power, or have changed what was written.

use super::*;
use northbound::EventKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

/// Says to the test below that it runs where no file may become larger than [`ROOM`].
const LIMITED: &str = "HISTORY_TEST_LIMITED";
/// Octets of the database's header that have the version of its tables.
const VERSION: std::ops::Range<usize> = 60..64;
/// In octets.
const ROOM: u64 = 256 << 10;

fn numbered(n: u64) -> Vec<u8> {
    let unix = n as u32;
    block(&[online(unix, n, addresses(Some(n as u8), Some(n as u8)))])
}

fn append(database: &mut Database, numbers: impl IntoIterator<Item = u64>) -> std::io::Result<()> {
    let blocks: Vec<(u64, Vec<u8>)> = numbers.into_iter().map(|n| (n, numbered(n))).collect();
    database.append(blocks.iter().map(|(n, block)| (*n, &block[..])))
}

fn up_to(last: u64) -> Vec<u32> {
    (1..=last as u32).collect()
}

fn path(directory: &Path) -> PathBuf {
    directory.join("events.db")
}

fn damaged_files(directory: &Path) -> usize {
    let names = fs::read_dir(directory).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().contains("damaged"))
        .count()
}

#[test]
fn a_full_disk_loses_nothing_and_is_told_until_there_is_room() {
    if std::env::var_os(LIMITED).is_some() {
        return fill_up();
    }
    let program = std::env::current_exe().unwrap();
    let this = "history::tests::disk::a_full_disk_loses_nothing_and_is_told_until_there_is_room";
    let limited = format!(
        "ulimit -S -f {} && trap '' XFSZ && exec \"$0\" --exact {this} --nocapture",
        ROOM / 512 // POSIX counts in these
    );
    let ran = Command::new("sh")
        .args(["-c", &limited])
        .arg(program)
        .env(LIMITED, "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn fill_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let full = (1..10_000).find(|n| append(&mut database, [*n]).is_err());
    let kept = full.unwrap() - 1;
    assert!(kept > 10);
    assert!(append(&mut database, [kept + 1]).is_err(), "still full");
    assert_eq!(database.reader().status().last, kept);
    assert_eq!(times(&database.reader(), ""), up_to(kept));
    let own = std::process::id().to_string();
    let unlimited = ["--pid", &own, "--fsize=unlimited"];
    assert!(
        Command::new("prlimit")
            .args(unlimited)
            .status()
            .unwrap()
            .success()
    );
    append(&mut database, kept + 1..=kept + 50).unwrap();
    drop(database);
    let database = open(directory.path());
    assert_eq!(
        (database.last(), database.reader().status().damaged),
        (kept + 50, 0)
    );
    assert_eq!(times(&database.reader(), ""), up_to(kept + 50));
}

/// What is on the disk if the power is lost after so many octets of the log.
pub(super) fn lose_power(from: &Path, to: &Path, octets: usize) {
    fs::create_dir(to).unwrap();
    let wal = |directory: &Path| directory.join("events.db-wal");
    fs::copy(path(from), path(to)).unwrap();
    let log = fs::read(wal(from)).unwrap();
    fs::write(wal(to), &log[..octets.min(log.len())]).unwrap();
}

#[test]
fn a_loss_of_power_at_any_octet_leaves_whole_blocks() {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let mut database = open(&whole);
    let mut lengths = Vec::new();
    for n in 1..=4 {
        append(&mut database, [n]).unwrap();
        lengths.push(fs::metadata(whole.join("events.db-wal")).unwrap().len() as usize);
        database.tend(0).unwrap(); // sums up
    }
    // around every page, and each commit
    let ends = (0..=lengths[3])
        .filter(|end| end % 515 == 0 || lengths.iter().any(|l| l.abs_diff(*end) < 2));
    for end in ends {
        let torn = place.path().join(format!("torn{end}"));
        lose_power(&whole, &torn, end);
        let there = lengths.iter().filter(|length| **length <= end).count() as u64;
        let mut database = open(&torn);
        assert_eq!(database.last(), there, "cut at {end} of {lengths:?}");
        append(&mut database, there + 1..=9).unwrap();
        assert_eq!(times(&database.reader(), ""), up_to(9), "cut at {end}");
        let online = Query {
            kinds: vec![EventKind::Online],
            ..Query::default()
        };
        let count = database
            .reader()
            .latest(&online, exactly(0, 100), || true, |_, _| {});
        assert_eq!(count.events, 9, "cut at {end}");
        fs::remove_dir_all(torn).unwrap();
    }
}

#[test]
fn a_database_that_cannot_be_opened_makes_room_for_another_one() {
    let directory = tempfile::tempdir().unwrap();
    for round in 1..=2 {
        fs::write(path(directory.path()), [round; 5000]).unwrap();
        let mut database = open(directory.path());
        assert_eq!(database.reader().status().damaged, 1);
        let last = database.last();
        append(&mut database, last + 1..=last + 3).unwrap();
        assert_eq!(times(&database.reader(), "").len(), 3);
        drop(database);
        assert_eq!(damaged_files(directory.path()), usize::from(round));
    }
}

#[test]
fn a_database_that_is_found_damaged_while_it_is_written_makes_room_for_another_one() {
    let directory = tempfile::tempdir().unwrap();
    append(&mut open(directory.path()), 1..=400).unwrap();
    let mut database = open(directory.path());
    // What has not been read yet is another by now.
    let file = fs::OpenOptions::new()
        .write(true)
        .open(path(directory.path()))
        .unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in 8..pages {
        file.write_all_at(&[0xa5; 4096], page * 4096).unwrap();
    }
    assert!(append(&mut database, 401..=500).is_err());
    assert_eq!(database.last(), 400, "they come again");
    append(&mut database, 401..=500).unwrap();
    let there: Vec<u32> = (401..=500).collect();
    assert_eq!(times(&database.reader(), ""), there);
    assert_eq!(database.reader().status().damaged, 1);
    assert!(damaged_files(directory.path()) > 0);
    // The log of the one that was damaged went with it, and this one's own did not.
    let lost = directory.path().join("lost");
    lose_power(directory.path(), &lost, usize::MAX);
    assert_eq!(times(&open(&lost).reader(), ""), there);
}

#[test]
fn what_cannot_be_read_is_counted_once_and_the_rest_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    append(&mut database, 1..=400).unwrap();
    drop(database);
    let mut octets = fs::read(path(directory.path())).unwrap();
    let needle = b"2001:db8";
    assert!(octets.windows(8).all(|part| part != needle));
    // the page with the record of the 200th event
    let record = &numbered(200)[2..];
    let at = octets.windows(record.len()).position(|part| part == record);
    let page = at.unwrap() / 4096 * 4096;
    octets[page..page + 4096].fill(0xff);
    fs::write(path(directory.path()), &octets).unwrap();
    let database = open(directory.path());
    for _ in 0..3 {
        let reader = database.reader();
        times(&reader, "100.64.0.200");
        assert_eq!(reader.status().damaged, 1);
        assert_eq!(times(&reader, "02:00:00:00:00:07"), [7]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn octets_that_nobody_wrote_are_read_without_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        behind in prop::collection::vec(any::<u8>(), 0..80),
        noise in prop::collection::vec(any::<u8>(), 0..200),
        is_segment in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let changed = match is_segment {
            true => {
                super::bindings::leave_segments(directory.path());
                directory.path().join(format!("{:020}.events", 4))
            }
            false => {
                append(&mut open(directory.path()), 1..=40).unwrap();
                path(directory.path())
            }
        };
        let mut bytes = fs::read(&changed).unwrap();
        for (at, other) in &damage {
            let at = at.index(bytes.len());
            // a history of a later version is refused
            if !VERSION.contains(&at) {
                bytes[at] = *other;
            }
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        bytes.extend(&behind);
        fs::write(&changed, bytes).unwrap();
        fs::write(directory.path().join(format!("{:020}.events", 500)), &noise).unwrap();
        events(&noise).for_each(drop);
        let mut database = open(directory.path());
        let reader = database.reader();
        times_if_readable(&reader);
        reader.who(prefix("100.64.0.3"), 5, 1, Vec::new(), 100);
        let next = database.last() + 1;
        let event = online(77, 77, addresses(Some(77), None));
        let block = block(&[event]);
        // once more if it turned out to be damaged
        if database.append([(next, &block[..])]).is_err() {
            add(&mut database, next, &block);
        }
        while database.has_more_to_tend() {
            let _ = database.tend(78);
        }
    }
}

fn times_if_readable(reader: &Reader) {
    reader.forward(&Query::default(), |_| ControlFlow::Continue(()));
}
