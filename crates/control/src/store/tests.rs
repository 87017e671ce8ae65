use std::sync::mpsc;

use super::*;

fn key(number: u32) -> Vec<u8> {
    format!("session/{number}").into_bytes()
}

fn open(directory: &Path) -> (Store, Opened) {
    Store::open(directory).unwrap()
}

fn file(directory: &Path) -> PathBuf {
    directory.join("sessions.log")
}

/// A log of five batches, and the length of the file after each of them.
fn five_batches(directory: &Path) -> Vec<u64> {
    let (mut store, _) = open(directory);
    let mut lengths = vec![store.len_on_disk()];
    for number in 0..5 {
        store.append(&Record::put(key(number), vec![number as u8; 20]));
        store.append(&Record::put("latest", number.to_le_bytes()));
        store.sync().unwrap();
        lengths.push(store.len_on_disk());
    }
    lengths
}

/// What is alive after so many of those batches.
fn expected(batches: usize) -> Live {
    let mut live: BTreeMap<_, _> = (0..batches as u32)
        .map(|number| (key(number), vec![number as u8; 20]))
        .collect();
    if batches > 0 {
        live.insert(
            b"latest".to_vec(),
            (batches as u32 - 1).to_le_bytes().to_vec(),
        );
    }
    live.into_iter().collect()
}

#[test]
fn keeps_what_was_synced_and_forgets_what_was_not() {
    let directory = tempfile::tempdir().unwrap();
    five_batches(directory.path());
    let (mut store, opened) = open(directory.path());
    assert_eq!(
        opened,
        Opened {
            live: expected(5),
            cut: 0
        }
    );
    store.append(&Record::put("never", "synced"));
    drop(store);
    assert_eq!(open(directory.path()).1.live, expected(5));
}

#[test]
fn a_crash_at_any_byte_leaves_whole_batches() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = five_batches(directory.path());
    let whole = fs::read(file(directory.path())).unwrap();
    for end in 0..=whole.len() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(file(directory.path()), &whole[..end]).unwrap();
        let batches = lengths
            .iter()
            .filter(|&&length| length <= end as u64)
            .count()
            .saturating_sub(1);
        let (mut store, opened) = open(directory.path());
        assert_eq!(opened.live, expected(batches), "cut at {end}");
        store.append(&Record::put("after", "the crash"));
        store.sync().unwrap();
        drop(store);
        let (_, opened) = open(directory.path());
        assert_eq!(
            (opened.live.len(), opened.cut),
            (expected(batches).len() + 1, 0),
            "cut at {end}"
        );
    }
}

#[test]
fn a_last_batch_of_any_bytes_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = five_batches(directory.path());
    let whole = fs::read(file(directory.path())).unwrap();
    for at in lengths[4] as usize..whole.len() {
        let directory = tempfile::tempdir().unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(file(directory.path()), &bytes).unwrap();
        assert_eq!(
            open(directory.path()).1,
            Opened {
                live: expected(4),
                cut: lengths[5] - lengths[4]
            }
        );
        // A file system may also have made the file longer before it wrote the data.
        bytes[lengths[4] as usize..].fill(0);
        fs::write(file(directory.path()), &bytes).unwrap();
        assert_eq!(open(directory.path()).1.live, expected(4));
    }
}

#[test]
fn damage_in_the_middle_is_refused_and_nothing_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = five_batches(directory.path());
    let whole = fs::read(file(directory.path())).unwrap();
    for at in HEADER..lengths[4] as usize {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x01;
        fs::write(file(directory.path()), &bytes).unwrap();
        let error = Store::open(directory.path()).unwrap_err();
        let begins = lengths.iter().rfind(|&&length| length <= at as u64);
        let StoreError::Damaged { offset, .. } = error else {
            panic!("at {at}: {error}")
        };
        assert_eq!(offset, *begins.unwrap_or(&(HEADER as u64)), "at {at}");
        assert_eq!(fs::read(file(directory.path())).unwrap(), bytes);
    }
}

#[test]
fn damage_in_a_rewritten_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    five_batches(directory.path());
    drop(open(directory.path()));
    let mut bytes = fs::read(file(directory.path())).unwrap();
    bytes[HEADER + FRAME_HEADER + 3] ^= 1;
    fs::write(file(directory.path()), &bytes).unwrap();
    assert!(matches!(
        Store::open(directory.path()),
        Err(StoreError::Damaged { offset: 16, .. })
    ));
}

#[test]
fn a_foreign_or_later_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for foreign in [&b"#!/bin/sh"[..], b"#!/bin/sh\necho a longer file\n"] {
        fs::write(file(directory.path()), foreign).unwrap();
        assert!(matches!(
            Store::open(directory.path()),
            Err(StoreError::NotAStore(_))
        ));
    }
    let mut later = header();
    later[10] = 2;
    let checksum = crc32c::crc32c(&later[..12]);
    later[12..].copy_from_slice(&checksum.to_le_bytes());
    fs::write(file(directory.path()), later).unwrap();
    assert!(matches!(
        Store::open(directory.path()),
        Err(StoreError::Version { found: 2, .. })
    ));
    later[10] = 3;
    fs::write(file(directory.path()), later).unwrap();
    assert!(matches!(
        Store::open(directory.path()),
        Err(StoreError::Damaged { offset: 0, .. })
    ));
}

#[test]
fn opening_rewrites_a_log_that_holds_dead_records() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = open(directory.path());
    for number in 0..1000 {
        store.append(&Record::put(key(number), [0; 100]));
        if number >= 2 {
            store.append(&Record::delete(key(number - 2)));
        }
        store.sync().unwrap();
    }
    let before = store.len_on_disk();
    drop(store);
    let (store, opened) = open(directory.path());
    assert_eq!(
        opened.live,
        [(key(998), vec![0; 100]), (key(999), vec![0; 100])]
    );
    assert!(
        store.len_on_disk() < 400,
        "{} octets, {before} before",
        store.len_on_disk()
    );
    let clean = fs::metadata(file(directory.path()))
        .unwrap()
        .modified()
        .unwrap();
    drop(store);
    drop(open(directory.path()));
    assert_eq!(
        fs::metadata(file(directory.path()))
            .unwrap()
            .modified()
            .unwrap(),
        clean
    );
}

#[test]
fn a_rewritten_log_of_many_frames_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = open(directory.path());
    for number in 0..300 {
        store.append(&Record::put(key(number), vec![1; 10_000]));
    }
    store.append(&Record::delete(key(0)));
    store.sync().unwrap();
    drop(store);
    for round in 0..3 {
        let (mut store, opened) = open(directory.path());
        assert_eq!(opened.live.len(), 299 + round);
        store.append(&Record::put(format!("round/{round}"), ""));
        store.sync().unwrap();
    }
}

#[test]
fn only_one_at_a_time_has_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(directory.path());
    assert!(matches!(
        Store::open(directory.path()),
        Err(StoreError::Locked(_))
    ));
    drop(store);
    open(directory.path());
}

#[test]
fn the_thread_acknowledges_in_order_what_is_on_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, receiver) = mpsc::channel();
    let (store, _) = open(directory.path());
    let path = file(directory.path());
    let acknowledge = move |done: Acknowledgement| {
        let bytes = fs::read(&path).unwrap();
        let live = Log::read(&path, &bytes).unwrap().live.len() as u64;
        sender.send((done.unwrap(), live)).unwrap();
    };
    let mut thread = StoreThread::start(store, 1000, acknowledge).unwrap();
    for number in 0..500 {
        assert_eq!(
            thread.submit(vec![Record::put(key(number), "x")]),
            Ok(u64::from(number) + 1)
        );
    }
    drop(thread);
    let acknowledged: Vec<(u64, u64)> = receiver.into_iter().collect();
    assert!(acknowledged.is_sorted());
    assert!(acknowledged.iter().all(|(number, live)| number == live));
    assert_eq!(acknowledged.last(), Some(&(500, 500)));
    assert_eq!(open(directory.path()).1.live.len(), 500);
}

#[test]
fn a_failed_disk_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = open(directory.path());
    // A descriptor that cannot be written to stands for a failing disk.
    store.file = File::open(file(directory.path())).unwrap();
    let (sender, receiver) = mpsc::channel();
    let (gate, wait) = mpsc::channel::<()>();
    let acknowledge = move |done: Acknowledgement| {
        sender.send(done.is_err()).unwrap();
        let _ = wait.recv();
    };
    let mut thread = StoreThread::start(store, 1, acknowledge).unwrap();
    thread.submit(vec![Record::put("a", "b")]).unwrap();
    assert!(receiver.recv().unwrap(), "the error is told");
    drop(gate);
    while thread.submit(vec![]) != Err(Failed) {
        std::thread::yield_now();
    }
}
