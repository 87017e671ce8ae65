//! Disks that are full, fail, or have changed what was written.

use super::*;
use std::process::Command;
use std::sync::mpsc::channel;

/// Says to the test below that it runs where no file may become larger than [`ROOM`].
const LIMITED: &str = "HISTORY_TEST_LIMITED";
/// In octets.
const ROOM: u64 = 16 << 10;

fn numbered(n: u64) -> Vec<u8> {
    let unix = n as u32;
    block(&[online(unix, n, addresses(Some(n as u8), Some(n as u8)))])
}

fn append(log: &mut Log, blocks: &[(u64, Vec<u8>)]) -> std::io::Result<()> {
    log.append(blocks.iter().map(|(n, block)| (*n, &block[..])))
}

fn first_segment(directory: &Path) -> PathBuf {
    segments(directory).remove(0)
}

/// Puts something in the place of a file that can neither be read nor removed as one.
fn make_unusable(path: &Path) {
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
    fs::write(path.join("something"), "else").unwrap();
}

/// Segments that are added to or closed.
fn known_segments(directory: &Path) -> usize {
    let all = segments(directory).into_iter();
    all.filter(|path| path.extension().is_some_and(|e| e == "events"))
        .count()
}

#[test]
fn what_is_on_the_disk_is_told_though_there_is_no_room_to_close_its_segment() {
    if std::env::var_os(LIMITED).is_some() {
        return fill_up();
    }
    let program = std::env::current_exe().unwrap();
    let this = "history::tests::disk::what_is_on_the_disk_is_told_though_there_is_no_room_to_close_its_segment";
    let limited = format!(
        "ulimit -f {} && trap '' XFSZ && exec \"$0\" --exact {this} --nocapture",
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
    // its blocks fit in a file, and what closes it does not
    let (mut log, _) = Log::open_with(directory.path(), FOREVER, ROOM - 300).unwrap();
    let blocks: Vec<(u64, Vec<u8>)> = (1..=200).map(|n| (n, numbered(n))).collect();
    append(&mut log, &blocks[..1]).unwrap();
    let full = append(&mut log, &blocks).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::FileTooLarge);
    let kept = log.reader().status().last;
    assert!((2..200).contains(&kept), "{kept}");
    let up_to = |last: u64| (1..=last as u32).collect::<Vec<u32>>();
    assert_eq!(times(&log.reader(), ""), up_to(kept));
    append(&mut log, &blocks).unwrap();
    assert_eq!(times(&log.reader(), ""), up_to(200));
    drop(log);
    let (log, opened) = Log::open(directory.path(), FOREVER).unwrap();
    assert_eq!((opened.last, log.reader().status().damaged), (200, 0));
    assert_eq!(times(&log.reader(), ""), up_to(200));
}

#[test]
fn a_segment_that_cannot_be_removed_costs_no_other_one() {
    fn late() -> u32 {
        5000
    }
    let directory = tempfile::tempdir().unwrap();
    let keep = Bounds {
        keep: 1000,
        octets: u64::MAX,
    };
    let (mut log, _) = Log::open(directory.path(), keep).unwrap();
    append(&mut log, &[(1, numbered(1))]).unwrap();
    log.tend(900).unwrap(); // closes it
    make_unusable(&first_segment(directory.path()));
    let (keeps, kept) = channel();
    let keep = move |last| keeps.send(last).unwrap_or_default();
    let thread = HistoryThread::start(log, late, keep).unwrap();
    for number in 2..=6 {
        let event = online(4990, number, addresses(Some(number as u8), None));
        thread.submit(number, block(&[event]));
        while kept.recv().unwrap() < number {}
    }
    assert!(thread.status().failing.is_some());
    drop(thread);
    assert_eq!(known_segments(directory.path()), 2);
}

#[test]
fn a_segment_that_cannot_be_read_costs_its_own_events() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path());
    let blocks: Vec<(u64, Vec<u8>)> = (1..=40).map(|n| (n, numbered(n))).collect();
    append(&mut log, &blocks).unwrap();
    drop(log);
    make_unusable(&first_segment(directory.path()));
    for _ in 0..2 {
        let (log, opened) = open(directory.path());
        assert_eq!(opened.last, 40);
        let there = times(&log.reader(), "");
        assert!((20..40).contains(&there.len()), "{there:?}");
        assert_eq!(there.last(), Some(&40));
    }
    // the last one too
    let last = segments(directory.path());
    let last = last.iter().rev().find(|path| path.is_file()).unwrap();
    make_unusable(last);
    let (mut log, opened) = open(directory.path());
    assert!(opened.last < 40 && log.reader().status().damaged == 1);
    append(&mut log, &blocks).unwrap();
    assert_eq!(times(&log.reader(), "").last(), Some(&40));
}

#[test]
fn blocks_behind_a_damaged_first_one_come_again_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let keep = Bounds {
        keep: 1000,
        octets: u64::MAX,
    };
    let event = |n: u64| block(&[online(4990, n, addresses(Some(n as u8), None))]);
    let blocks: Vec<(u64, Vec<u8>)> = (1..=3).map(|n| (n, event(n))).collect();
    let (mut log, _) = Log::open(directory.path(), keep).unwrap();
    append(&mut log, &blocks).unwrap();
    drop(log);
    let path = first_segment(directory.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[60] ^= 1; // in its first block
    fs::write(&path, bytes).unwrap();
    let (mut log, opened) = Log::open(directory.path(), keep).unwrap();
    assert_eq!((opened.last, log.reader().status().damaged), (0, 1));
    append(&mut log, &blocks).unwrap();
    log.tend(5000).unwrap();
    assert_eq!(times(&log.reader(), "").len(), 3);
    drop(log);
    let (log, opened) = Log::open(directory.path(), keep).unwrap();
    assert_eq!((opened.last, log.reader().status().damaged), (3, 0));
    assert_eq!(times(&log.reader(), "").len(), 3);
}

#[test]
fn a_crash_while_a_segment_is_closed_is_no_damage() {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let (mut log, _) = Log::open(&whole, FOREVER).unwrap();
    let blocks: Vec<(u64, Vec<u8>)> = (1..=4).map(|n| (n, numbered(n))).collect();
    append(&mut log, &blocks).unwrap();
    let path = first_segment(&whole);
    let end = fs::metadata(&path).unwrap().len() as usize;
    log.tend(1_000_000).unwrap(); // closes it
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > end + 80);
    for cut in end..=bytes.len() {
        let torn = place.path().join(format!("torn{cut}"));
        fs::create_dir(&torn).unwrap();
        fs::write(torn.join(path.file_name().unwrap()), &bytes[..cut]).unwrap();
        let (mut log, opened) = Log::open(&torn, FOREVER).unwrap();
        let damaged = log.reader().status().damaged;
        assert_eq!((opened.last, damaged), (4, 0), "cut at {cut}");
        append(&mut log, &[(5, numbered(5))]).unwrap();
        assert_eq!(times(&log.reader(), ""), [1, 2, 3, 4, 5], "cut at {cut}");
        drop(log);
        let (log, opened) = Log::open(&torn, FOREVER).unwrap();
        let damaged = log.reader().status().damaged;
        assert_eq!((opened.last, damaged), (5, 0), "cut at {cut}");
    }
}

#[test]
fn what_cannot_be_read_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path());
    let blocks: Vec<(u64, Vec<u8>)> = (1..=40).map(|n| (n, numbered(n))).collect();
    append(&mut log, &blocks).unwrap();
    make_unusable(&first_segment(directory.path()));
    for _ in 0..3 {
        let there = times(&log.reader(), "");
        assert!((20..40).contains(&there.len()), "{there:?}");
    }
    assert_eq!(log.reader().status().damaged, 1);
}
