//! [`control::history`]: events that are found again after restarts and losses of power, databases that were damaged, and any octets in the
//! place of segments that earlier versions left.
use crate::{Step as Input, script, steps};
use control::history::{
    Bounds, Database, Event, Query, Reader, Step, Subject, Subscriber, What, parse_prefix,
};
use core::ops::ControlFlow;
use ipnet::IpNet;
use policy::{Binding, Bindings, Role};
use std::fs;
use std::path::PathBuf;

/// What a step does, by `op % 8`.
mod op {
    /// A block of events: a session for each octet.
    pub const APPEND: u8 = 0;
    /// A block of these octets.
    pub const BLOCK: u8 = 1;
    /// The history is opened anew.
    pub const REOPEN: u8 = 2;
    /// So many seconds have passed: what is old goes.
    pub const TEND: u8 = 3;
    /// The power is lost: of the octets of the log that are not promised so many are there, in parts of 256.
    pub const LOSE: u8 = 4;
    /// An octet of the database is another: place from the end, what it is xored with.
    pub const FLIP: u8 = 5;
    /// A segment of an earlier version is there: how many numbers it is ahead; its octets, behind a header and in a frame that are right if
    /// the second octet is odd.
    pub const SEGMENT: u8 = 6;
    /// Somebody asks about this.
    pub const ASK: u8 = 7;
}

/// Nothing goes before the end of all times, so what was written is there.
const FOREVER: Bounds = Bounds {
    keep: u32::MAX,
    octets: u64::MAX,
};
const USERS: u8 = 4;
/// Octets of a log that is not written into the database yet: a thousand pages.
const CHECKPOINT: u64 = 4_000_000;

struct World {
    directory: tempfile::TempDir,
    database: Option<Database>,
    /// Of the next block.
    next: u64,
    /// Of the last event: no two have the same time.
    now: u32,
    /// Times of the events of each block, and what the log had when it was promised.
    written: Vec<(Vec<u32>, u64)>,
    /// There are octets that the history did not write.
    foreign: bool,
}

/// Takes one input.
pub fn run(input: &[u8]) {
    let mut world = World {
        directory: directory(),
        database: None,
        next: 1,
        now: 0,
        written: Vec::new(),
        foreign: false,
    };
    for step in steps(input).take(64) {
        world.step(step);
    }
    world.reopen();
}

/// In memory, where nobody waits for a disk.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory.expect("a directory")
}

fn user(session: u8) -> String {
    format!("user{}", session % USERS)
}

fn emit(unix: u32, session: u8, block: &mut Vec<u8>) {
    let user = user(session);
    let network = IpNet::new([10, 0, session, 0].into(), 25).expect("a prefix");
    let route = Binding::new(Role::Route, network);
    let host = Bindings::of(Some([100, 64, 0, session].into()), None);
    let who = Subscriber {
        session: session.into(),
        user: user.as_bytes(),
        mac: [2, 0, 0, 0, 0, session],
        user_plane: "up1",
        port: "access0",
        vlans: [Some(100), None],
        line: [None, None],
    };
    let step = Step::Online {
        dialled: unix,
        servers: None,
        profile: None,
        instance: "default",
        bindings: host.with(route).expect("no contradiction"),
    };
    let what = What::Subscriber(who, step);
    Event { unix, what }.emit(block);
}

/// When what somebody asks about happened, forward and backward.
fn times(reader: &Reader, subject: Option<&str>) -> [Vec<u32>; 2] {
    let query = Query {
        subjects: subject.map(Subject::of_events).into_iter().collect(),
        ..Query::default()
    };
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    reader.forward(&query, |event| {
        forward.push(event.unix);
        ControlFlow::Continue(())
    });
    reader.backward(&query, |event| {
        backward.push(event.unix);
        ControlFlow::Continue(())
    });
    backward.reverse();
    [forward, backward]
}

impl World {
    fn step(&mut self, step: Input<'_>) {
        match step.op & 7 {
            op::APPEND => {
                let (mut block, before) = (Vec::new(), self.now);
                for session in step.data {
                    self.now += 1;
                    emit(self.now, *session, &mut block);
                }
                self.append(&block, (before + 1..=self.now).collect());
            }
            op::BLOCK => {
                self.foreign = true;
                self.append(step.data, Vec::new());
            }
            op::REOPEN => self.reopen(),
            op::TEND => {
                let now = self.now.saturating_add(step.number().into());
                // a damaged one may refuse
                let _ = self.database.as_mut().map(|database| database.tend(now));
            }
            op::LOSE => self.lose_power(step.octet(0)),
            op::FLIP => self.flip(step),
            op::SEGMENT => self.leave_segment(step),
            _ => self.ask(&String::from_utf8_lossy(step.data)),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn log_octets(&self) -> u64 {
        fs::metadata(self.path("events.db-wal")).map_or(0, |log| log.len())
    }

    fn append(&mut self, block: &[u8], times: Vec<u32>) {
        if self.database.is_none() {
            self.reopen();
        }
        let Some(database) = &mut self.database else {
            return;
        };
        let done = database.append([(self.next, block)]);
        assert!(done.is_ok() || self.foreign, "{done:?}");
        self.next = database.last() + 1;
        if done.is_ok() {
            let octets = self.log_octets();
            self.written.push((times, octets));
        }
    }

    fn reopen(&mut self) {
        self.database = None;
        // one of a later version is refused
        let Ok(database) = Database::open(self.directory.path(), FOREVER) else {
            assert!(self.foreign);
            return;
        };
        self.next = database.last() + 1;
        let reader = database.reader();
        let [told, backward] = times(&reader, None);
        if !self.foreign {
            let written: Vec<u32> = self.written.iter().flat_map(|b| b.0.clone()).collect();
            assert_eq!(told, written, "lost, made up, or told twice");
            assert_eq!(told, backward, "another answer the other way round");
            let named = (0..USERS).map(|n| times(&reader, Some(&user(n)))[0].len());
            assert_eq!(named.sum::<usize>(), told.len(), "not found by name");
            assert_eq!(reader.status().damaged, 0);
        }
        self.database = Some(database);
        // what was in the log is in the database
        self.written.iter_mut().for_each(|block| block.1 = 0);
    }

    /// The machine dies while the last block is written.
    fn lose_power(&mut self, part: u8) {
        let Some((_, end)) = self.written.last().filter(|_| self.database.is_some()) else {
            return;
        };
        // then the log has been written into the database, and begins anew
        if *end > CHECKPOINT {
            return;
        }
        let promised = self.written.iter().rev().nth(1).map_or(0, |block| block.1);
        let kept = promised + end.saturating_sub(promised) * u64::from(part) / 255;
        let after = directory();
        for name in ["events.db", "events.db-wal"] {
            let mut octets = fs::read(self.path(name)).unwrap_or_default();
            if name == "events.db-wal" {
                octets.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
            }
            fs::write(after.path().join(name), octets).expect("a copy");
        }
        self.database = None;
        self.directory = after;
        if kept < self.written.last().map_or(0, |block| block.1) {
            let lost = self.written.pop();
            self.now = lost
                .and_then(|lost| lost.0.first().copied())
                .map_or(self.now, |at| at - 1);
        }
        self.reopen();
    }

    fn flip(&mut self, step: Input<'_>) {
        self.database = None;
        self.foreign = true;
        let path = self.path("events.db");
        let mut octets = fs::read(&path).unwrap_or_default();
        let place = octets.len().checked_sub(1 + usize::from(step.number()));
        if let Some(octet) = place.and_then(|place| octets.get_mut(place)) {
            *octet ^= step.octet(2);
            fs::write(path, octets).expect("a database");
        }
    }

    fn leave_segment(&mut self, step: Input<'_>) {
        self.database = None;
        self.foreign = true;
        let first = self.next + u64::from(step.octet(0));
        let content = step.data.get(2..).unwrap_or_default();
        let octets = match step.octet(1) & 1 {
            0 => content.to_vec(),
            _ => [header(), frame(first, content)].concat(),
        };
        fs::write(self.path(&format!("{first:020}.events")), octets).expect("a segment");
    }

    fn ask(&self, text: &str) {
        let Some(database) = &self.database else {
            return;
        };
        let [forward, backward] = times(&database.reader(), Some(text));
        assert!(
            forward == backward || self.foreign,
            "{forward:?} {backward:?}"
        );
        if let Some(prefix) = parse_prefix(text) {
            let reader = database.reader();
            reader.who(prefix, self.now, 1, Vec::new(), self.now);
        }
    }
}

/// Header of a segment whose salt is 0.
fn header() -> Vec<u8> {
    let mut header = b"sluicehist\x01\0".to_vec();
    header.extend([0; 8]);
    header.extend(crc32c::crc32c(&header).to_le_bytes());
    header
}

fn frame(number: u64, payload: &[u8]) -> Vec<u8> {
    let checksum = |bytes: &[u8]| crc32c::crc32c_append(crc32c::crc32c(&[0; 8]), bytes);
    let mut frame = number.to_le_bytes().to_vec();
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(checksum(&frame).to_le_bytes());
    frame.extend(checksum(payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let written: [(u8, &[u8]); 5] = [
        (op::APPEND, &[1, 2, 3]),
        (op::APPEND, &[4]),
        (op::APPEND, &[5, 1]),
        (op::APPEND, &[6]),
        (op::ASK, b"user1"),
    ];
    let mut block = Vec::new();
    emit(9, 7, &mut block);
    let segment = [&[1, 1], &block[..]].concat();
    let afterwards: [&[(u8, &[u8])]; 8] = [
        &[],
        &[
            (op::REOPEN, b""),
            (op::ASK, b"100.64.0.1"),
            (op::APPEND, &[7]),
        ],
        &[(op::LOSE, &[100]), (op::APPEND, &[7])],
        &[(op::LOSE, &[255]), (op::APPEND, &[7])],
        &[(op::FLIP, &[0, 30, 1]), (op::APPEND, &[7])],
        &[(op::FLIP, &[30, 0, 1]), (op::ASK, b"user2")],
        &[
            (op::SEGMENT, &segment),
            (op::ASK, b"100.64.0.7"),
            (op::APPEND, &[7]),
        ],
        &[
            (op::BLOCK, b"\x05\0any octets"),
            (op::TEND, &[0, 9]),
            (op::ASK, b"2001:db8::/48"),
        ],
    ];
    let mut seeds = vec![script([
        (op::SEGMENT, &[0, 0, 1, 1][..]),
        (op::REOPEN, b""),
    ])];
    for damage in afterwards {
        seeds.push(script(written.iter().chain(damage).copied()));
    }
    seeds
}
