use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use super::log::HEADER;
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

/// Writes a log of five batches. Returns the file's length after each of them.
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

/// Live records after this many of those batches.
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
    for end in lengths[0] as usize..=whole.len() {
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
        // A file system may also extend the file before it writes the data.
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
fn damage_to_several_batches_in_a_row_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = five_batches(directory.path());
    let mut bytes = fs::read(file(directory.path())).unwrap();
    bytes[lengths[1] as usize..lengths[4] as usize].fill(0);
    fs::write(file(directory.path()), &bytes).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(
        matches!(error, StoreError::Damaged { offset, .. } if offset == lengths[1]),
        "{error}"
    );
}

#[test]
fn damage_to_the_last_batch_of_a_sealed_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = five_batches(directory.path());
    let (mut store, _) = open(directory.path());
    store.seal().unwrap();
    let sealed = store.len_on_disk();
    store.seal().unwrap();
    assert_eq!(store.len_on_disk(), sealed, "one seal is enough");
    drop(store);
    let whole = fs::read(file(directory.path())).unwrap();
    for at in lengths[4] as usize..lengths[5] as usize {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(file(directory.path()), &bytes).unwrap();
        assert!(matches!(
            Store::open(directory.path()),
            Err(StoreError::Damaged { offset, .. }) if offset == lengths[4]
        ));
    }
}

#[test]
fn a_log_that_lost_records_it_was_begun_with_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = short(directory.path());
    for number in 0..60 {
        store.append(&Record::put(key(number % 20), [number as u8; 20]));
        store.sync().unwrap();
    }
    while store.wants_tending() {
        store.tend().unwrap();
    }
    let snapshot = store.len_on_disk() as usize;
    store.append(&Record::put("after", "the snapshot"));
    store.sync().unwrap();
    drop(store);
    let whole = fs::read(file(directory.path())).unwrap();
    for end in HEADER..snapshot {
        fs::write(file(directory.path()), &whole[..end]).unwrap();
        let error = Store::open(directory.path()).unwrap_err();
        assert!(
            matches!(error, StoreError::Incomplete(_)),
            "at {end}: {error}"
        );
        assert_eq!(fs::read(file(directory.path())).unwrap(), whole[..end]);
    }
    fs::write(file(directory.path()), &whole[..snapshot]).unwrap();
    assert_eq!(open(directory.path()).1.live.len(), 20);
}

#[test]
fn a_frame_of_another_log_is_none() {
    let place = tempfile::tempdir().unwrap();
    let (one, other) = (place.path().join("one"), place.path().join("other"));
    let lengths = five_batches(&one);
    five_batches(&other);
    // As in a recycled block: the next frame of the other log, at the place where it would be.
    let mut bytes = fs::read(file(&one)).unwrap();
    bytes.truncate(lengths[3] as usize);
    bytes.extend(&fs::read(file(&other)).unwrap()[lengths[3] as usize..]);
    fs::write(file(&one), &bytes).unwrap();
    let opened = open(&one).1;
    assert_eq!(
        (opened.live, opened.cut),
        (expected(3), lengths[5] - lengths[3])
    );
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
    let whole = log::header(7);
    let mut later = whole;
    later[10] += 1;
    fs::write(file(directory.path()), later).unwrap();
    assert!(matches!(
        Store::open(directory.path()),
        Err(StoreError::Version { found, .. }) if found == log::VERSION + 1
    ));
    let mut changed = whole;
    changed[12] ^= 1;
    fs::write(file(directory.path()), changed).unwrap();
    assert!(matches!(
        Store::open(directory.path()),
        Err(StoreError::Damaged { offset: 0, .. })
    ));
}

/// Store whose log is rewritten above 2,000 octets.
fn short(directory: &Path) -> Store {
    let limits = Limits {
        least: 2000,
        factor: 2,
        slice: 300,
    };
    let disk = Directory::lock(directory).unwrap();
    Store::open_on(disk, limits).unwrap().0
}

/// Writes 400 batches; only the last two records stay alive.
fn write_and_delete(store: &mut Store) {
    for number in 0..400 {
        store.append(&Record::put(key(number), [0; 100]));
        if number >= 2 {
            store.append(&Record::delete(key(number - 2)));
        }
        store.sync().unwrap();
        store.tend().unwrap();
    }
}

#[test]
fn the_log_is_rewritten_while_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = short(directory.path());
    write_and_delete(&mut store);
    assert!(store.len_on_disk() < 3000, "{} octets", store.len_on_disk());
    assert_eq!(
        store.len_on_disk(),
        fs::metadata(file(directory.path())).unwrap().len()
    );
    drop(store);
    assert_eq!(
        open(directory.path()).1.live,
        [(key(398), vec![0; 100]), (key(399), vec![0; 100])]
    );
}

#[test]
fn a_rewriting_leaves_out_a_damaged_record_and_no_other() {
    let limits = Limits {
        least: 350,
        factor: 1,
        slice: 100,
    };
    let mut lost = BTreeSet::new();
    for at in HEADER as u64.. {
        let directory = tempfile::tempdir().unwrap();
        let disk = Directory::lock(directory.path()).unwrap();
        let mut store = Store::open_on(disk, limits).unwrap().0;
        for number in 0..4 {
            store.append(&Record::put(key(number), [number as u8; 20]));
        }
        store.sync().unwrap();
        if at == store.len_on_disk() {
            break;
        }
        let path = file(directory.path());
        let mut octet = [0];
        let options = fs::OpenOptions::new().read(true).write(true).open(&path);
        let log = options.unwrap();
        log.read_exact_at(&mut octet, at).unwrap();
        log.write_all_at(&[octet[0] ^ 0x10], at).unwrap();
        let damaged = log.metadata().unwrap().ino();
        while fs::metadata(&path).unwrap().ino() == damaged {
            store.append(&Record::put(key(3), [3; 20]));
            store.sync().unwrap();
            store.tend().unwrap();
        }
        drop(store);
        let live = open(directory.path()).1.live;
        let gone: Vec<u32> = (0..4)
            .filter(|number| !live.contains(&(key(*number), vec![*number as u8; 20])))
            .collect();
        assert!(gone.len() <= 1, "{gone:?} at {at}");
        assert_eq!(live.len() + gone.len(), 4, "nothing else at {at}");
        lost.extend(gone);
    }
    assert_eq!(lost, BTreeSet::from([0, 1, 2]), "3 was written again");
}

#[test]
fn a_snapshot_that_cannot_be_written_is_tried_again_later() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = short(directory.path());
    let in_the_way = directory.path().join(NEW);
    fs::create_dir(&in_the_way).unwrap();
    write_and_delete(&mut store);
    assert!(store.len_on_disk() > 50_000, "nothing was rewritten");
    fs::remove_dir(&in_the_way).unwrap();
    for number in 0..500 {
        store.append(&Record::put("latest", vec![number as u8; 100]));
        store.sync().unwrap();
        store.tend().unwrap();
    }
    assert!(store.len_on_disk() < 3000);
    drop(store);
    assert_eq!(open(directory.path()).1.live.len(), 3);
}

#[test]
fn a_batch_that_is_not_synced_does_not_get_into_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = short(directory.path());
    while !store.wants_tending() {
        store.append(&Record::put("latest", [1; 100]));
        store.sync().unwrap();
    }
    store.append(&Record::put("never", "synced"));
    (0..100).for_each(|_| store.tend().unwrap());
    drop(store);
    assert!(
        open(directory.path())
            .1
            .live
            .iter()
            .all(|(key, _)| key != b"never")
    );
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
        let live = Contents::read(&path, &bytes).unwrap().live(&bytes).len() as u64;
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
fn the_thread_rewrites_and_seals_when_nothing_else_is_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits {
        least: 1000,
        factor: 2,
        slice: 100,
    };
    let disk = Directory::lock(directory.path()).unwrap();
    let (store, _) = Store::open_on(disk, limits).unwrap();
    let mut thread = StoreThread::start(store, 10, |done| assert!(done.is_ok())).unwrap();
    for number in 0..20 {
        thread
            .submit(vec![Record::put("same", vec![number; 500])])
            .unwrap();
    }
    let becomes = |state: &dyn Fn(&Checked) -> bool| {
        (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            state(&check(directory.path()).unwrap())
        })
    };
    assert!(becomes(&|now| now.sealed && now.octets < 1100));
    thread.submit(vec![Record::put("same", [20; 50])]).unwrap();
    assert!(becomes(&|now| now.sealed && now.live[0].1[0] == 20));
    drop(thread);
    assert_eq!(
        open(directory.path()).1.live,
        [(b"same".to_vec(), vec![20; 50])]
    );
}

#[test]
fn a_backup_of_a_store_in_use_is_a_state_that_was_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let (directory, backup) = (place.path().join("cp"), place.path().join("backup"));
    let mut store = short(&directory);
    let (sender, acknowledged) = mpsc::channel();
    // Two keys per batch reveal half a batch. There are enough batches to rewrite the log several times.
    let mut thread = {
        store.append(&Record::put("one", 0u32.to_le_bytes()));
        store.append(&Record::put("two", 0u32.to_le_bytes()));
        store.sync().unwrap();
        StoreThread::start(store, 4, move |done| sender.send(done.unwrap()).unwrap()).unwrap()
    };
    let writer = std::thread::spawn(move || {
        for number in 1..=1000u32 {
            let pair = ["one", "two"].map(|key| Record::put(key, number.to_le_bytes()));
            thread.submit(pair.into()).unwrap();
        }
    });
    let mut least = 0;
    while least < 1000 {
        least = acknowledged.try_iter().last().unwrap_or(least);
        export(&directory, &backup).unwrap();
        let live = check(&backup).unwrap().live;
        let [one, two] = [0, 1].map(|at: usize| u32_of(&live[at].1));
        assert!(one == two && u64::from(one) >= least, "{one} {two} {least}");
        fs::remove_file(&backup).unwrap();
    }
    writer.join().unwrap();
}

fn u32_of(value: &[u8]) -> u32 {
    u32::from_le_bytes(value.try_into().unwrap())
}

/// What is wrong with a disk.
#[derive(Clone, Copy)]
enum Trouble {
    Nothing,
    Full,
    /// Its driver ends the thread that writes.
    Panics,
}

/// A disk with a trouble that can be changed. It keeps nothing.
#[derive(Clone)]
struct Troubled(Arc<Mutex<Trouble>>);

impl Troubled {
    fn new(trouble: Trouble) -> Self {
        Troubled(Arc::new(Mutex::new(trouble)))
    }

    fn trouble(&self) -> Trouble {
        *self.0.lock().unwrap()
    }
}

impl Disk for Troubled {
    type File = Troubled;
    fn read(&self, _: &str) -> io::Result<Option<Vec<u8>>> {
        let mut empty = log::header(7).to_vec();
        log::emit_frame(7, 1, &[], &mut empty);
        Ok(Some(empty))
    }
    fn create(&mut self, _: &str) -> io::Result<Troubled> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn open(&mut self, _: &str) -> io::Result<Troubled> {
        Ok(self.clone())
    }
    fn rename(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn remove(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn sync_names(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn salt(&mut self) -> io::Result<u64> {
        Ok(7)
    }
    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

impl DiskFile for Troubled {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        match self.trouble() {
            Trouble::Nothing => Ok(()),
            Trouble::Full => Err(io::ErrorKind::StorageFull.into()),
            Trouble::Panics => panic!("the disk's driver panics"),
        }
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[test]
fn a_full_disk_is_told_and_what_waits_is_written_when_there_is_room() {
    let full = Troubled::new(Trouble::Full);
    let (store, _) = Store::open_on(full.clone(), Limits::default()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let acknowledge = move |done: Acknowledgement| {
        let _ = sender.send(done.ok());
    };
    let mut thread = StoreThread::start(store, 2, acknowledge).unwrap();
    thread.submit(vec![Record::put("a", "b")]).unwrap();
    assert_eq!(receiver.recv(), Ok(None), "the error is told");
    thread.submit(vec![Record::put("c", "d")]).unwrap();
    assert_eq!(receiver.recv(), Ok(None), "and told again");
    *full.0.lock().unwrap() = Trouble::Nothing;
    let done = receiver.into_iter().find(Option::is_some);
    assert_eq!(done, Some(Some(2)), "both, once there is room");
    drop(thread);
}

#[test]
fn a_thread_that_is_to_end_does_not_wait_for_a_full_disk() {
    let full = Troubled::new(Trouble::Full);
    let (store, _) = Store::open_on(full, Limits::default()).unwrap();
    let mut thread = StoreThread::start(store, 2, |done| assert!(done.is_err())).unwrap();
    thread.submit(vec![Record::put("a", "b")]).unwrap();
    drop(thread);
}

/// A thread that dies of the first batch.
pub(crate) fn mortal_thread() -> StoreThread {
    let disk = Troubled::new(Trouble::Panics);
    let (store, _) = Store::open_on(disk, Limits::default()).unwrap();
    StoreThread::start(store, 2, |done| panic!("{done:?}")).unwrap()
}

#[test]
fn after_its_thread_a_store_takes_nothing() {
    let mut thread = mortal_thread();
    // as much as fills a batch: the thread takes one and dies of it, instead of collecting more for as long as more come
    let batch = "b".repeat(1 << 20);
    let mut submit = || thread.submit(vec![Record::put("a", batch.as_str())]);
    // the one that the thread had taken when it died, and those that the queue holds
    let refused = (0..4).find_map(|_| submit().err());
    assert_eq!(refused, Some(Ended));
    assert_eq!(submit(), Err(Ended));
}
