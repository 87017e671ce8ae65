//! [`control::history`]: segments that were written well and damaged afterwards, and any octets in their place.
use crate::{Step as Input, script, steps};
use control::history::{
    Bounds, Event, Log, Query, Reader, Step, Subject, Subscriber, What, parse_prefix,
};
use core::ops::ControlFlow;
use ipnet::IpNet;
use policy::{Binding, Bindings, Role};
use std::fs;
use std::path::{Path, PathBuf};

/// What a step does, by `op % 16`.
mod op {
    /// A block of events: a session for each octet.
    pub const APPEND: u8 = 0;
    /// A block of these octets.
    pub const BLOCK: u8 = 1;
    /// The history is opened anew.
    pub const REOPEN: u8 = 2;
    /// The segment that is added to is closed.
    pub const CLOSE: u8 = 3;
    /// A segment ends earlier: so many octets are missing, which segment.
    pub const CUT: u8 = 4;
    /// An octet of a segment is another: place from the end, which segment, what it is xored with.
    pub const FLIP: u8 = 5;
    /// Octets behind the last segment's end.
    pub const BEHIND: u8 = 6;
    /// The last segment is this.
    pub const REPLACE: u8 = 7;
    /// The last segment is this behind a header that is right.
    pub const CONTENTS: u8 = 8;
    /// A frame behind the last segment's end whose checksums are right: how many numbers it is ahead (255: it is a
    /// filter), its payload.
    pub const FRAME: u8 = 9;
    /// A trailer behind the last segment's end whose checksum is right.
    pub const TRAILER: u8 = 10;
    /// Somebody asks about this.
    pub const ASK: u8 = 11;
}

const FOREVER: Bounds = Bounds {
    keep: u32::MAX,
    octets: u64::MAX,
};
/// Octets of a segment's header, and where its salt is.
const HEADER: usize = 24;
const SALT: core::ops::Range<usize> = 12..20;
/// Octets of a trailer before its checksum.
const TRAILER: usize = 52;
const USERS: u8 = 4;

/// A block that was written: in which segment, up to where, and when its events happened.
struct Block {
    segment: PathBuf,
    end: u64,
    times: Vec<u32>,
    /// Nothing before its end was changed.
    sure: bool,
}

struct World {
    directory: tempfile::TempDir,
    log: Option<Log>,
    /// Of the next block.
    next: u64,
    /// Of the last event: no two have the same time.
    now: u32,
    written: Vec<Block>,
    /// There are octets that the history did not write.
    foreign: bool,
    /// Something was changed since the history was open last.
    damaged: bool,
    /// Places that were told to be damaged when it was.
    told_damaged: u64,
}

/// Takes one input.
pub fn run(input: &[u8]) {
    // in memory, where nobody waits for a disk
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let mut world = World {
        directory: directory.expect("a directory"),
        log: None,
        next: 1,
        now: 0,
        written: Vec::new(),
        foreign: false,
        damaged: false,
        told_damaged: 0,
    };
    for step in steps(input) {
        world.step(step);
    }
    world.reopen();
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

/// When what somebody asks about happened.
fn times(reader: &Reader, subject: Option<&str>) -> Vec<u32> {
    let query = Query {
        subject: subject.map(Subject::parse),
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
    assert_eq!(forward, backward, "another answer the other way round");
    forward
}

impl World {
    fn step(&mut self, step: Input<'_>) {
        match step.op & 15 {
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
            op::CLOSE => {
                let log = self.log.as_mut();
                let closed = log.map(|log| log.tend(self.now.saturating_add(200_000)));
                closed
                    .into_iter()
                    .for_each(|closed| closed.expect("a closed segment"));
            }
            op::ASK => self.ask(&String::from_utf8_lossy(step.data)),
            _ => self.damage(step),
        }
    }

    fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        let paths = entries.map(|entry| entry.expect("a name").path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|e| e == "events"))
            .collect();
        paths.sort();
        paths
    }

    fn append(&mut self, block: &[u8], times: Vec<u32>) {
        if self.log.is_none() {
            self.reopen();
        }
        let Some(log) = &mut self.log else { return };
        log.append([(self.next, block)]).expect("a block");
        self.next += 1;
        let segment = self.segments().pop().expect("a segment");
        let end = fs::metadata(&segment).expect("a segment").len();
        self.written.push(Block {
            segment,
            end,
            times,
            sure: true,
        });
    }

    fn reopen(&mut self) {
        self.log = None;
        let (log, opened) = Log::open(self.directory.path(), FOREVER).expect("a history");
        let reader = log.reader();
        let told = times(&reader, None);
        let has = |block: &Block| block.times.iter().all(|time| told.contains(time));
        let lost = self.written.iter().find(|b| b.sure && !has(b));
        assert!(lost.is_none(), "lost: {:?}", lost.map(|b| &b.times));
        if !self.foreign {
            assert!(told.is_sorted_by(|a, b| a < b), "told twice: {told:?}");
            let written: Vec<u32> = self.written.iter().flat_map(|b| b.times.clone()).collect();
            assert!(told.iter().all(|t| written.contains(t)), "made up");
            if !self.damaged {
                let found = (told.len(), opened.cut, reader.status().damaged);
                let expected = (written.len(), 0, self.told_damaged);
                assert_eq!(found, expected, "lost without damage");
            }
            let named: usize = (0..USERS)
                .map(|n| times(&reader, Some(&user(n))).len())
                .sum();
            assert_eq!(named, told.len(), "not found by name");
        }
        self.written.retain(has);
        self.written.iter_mut().for_each(|block| block.sure = true);
        drop(log);
        let (log, again) = Log::open(self.directory.path(), FOREVER).expect("a history");
        assert_eq!(times(&log.reader(), None), told, "another one");
        self.next = again.last + 1;
        self.told_damaged = log.reader().status().damaged;
        (self.log, self.damaged) = (Some(log), false);
    }

    fn ask(&self, text: &str) {
        let Some(log) = &self.log else { return };
        times(&log.reader(), Some(text));
        if let Some(prefix) = parse_prefix(text) {
            log.reader().who(prefix, self.now, 1, Vec::new(), self.now);
        }
    }

    fn damage(&mut self, step: Input<'_>) {
        self.log = None;
        let segments = self.segments();
        let place = match step.op & 15 {
            op::CUT | op::FLIP => usize::from(step.octet(2)) % segments.len().max(1),
            _ => segments.len().saturating_sub(1),
        };
        let Some(segment) = segments.get(place) else {
            return;
        };
        let mut octets = fs::read(segment).expect("a segment");
        let from_end = octets.len().saturating_sub(step.number().into());
        let changed = match step.op & 15 {
            op::CUT => {
                octets.truncate(from_end);
                from_end
            }
            op::FLIP => {
                let at = from_end.saturating_sub(1);
                octets
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|o| *o ^= step.octet(3));
                at
            }
            other => {
                self.foreign = true;
                forge(other, step, self.next, &mut octets)
            }
        };
        fs::write(segment, &octets).expect("a segment");
        self.doubt(segment, changed);
        self.damaged = true;
    }

    /// A segment is another from this place on.
    fn doubt(&mut self, segment: &Path, from: usize) {
        let theirs = self.written.iter_mut().filter(|b| b.segment == segment);
        theirs
            .filter(|block| block.end > from as u64)
            .for_each(|block| block.sure = false);
    }
}

/// Makes a segment another; from which place on what was written may be told otherwise.
fn forge(op: u8, step: Input<'_>, next: u64, octets: &mut Vec<u8>) -> usize {
    let end = octets.len();
    let salt = octets
        .get(SALT)
        .map_or([0; 8], |salt| salt.try_into().expect("eight octets"));
    let checksum = |bytes: &[u8]| crc32c::crc32c_append(crc32c::crc32c(&salt), bytes);
    match op {
        op::REPLACE => {
            *octets = step.data.to_vec();
            0
        }
        op::CONTENTS => {
            octets.truncate(HEADER);
            octets.extend(step.data);
            0
        }
        op::FRAME => {
            let ahead = step.octet(0);
            let number = match ahead {
                u8::MAX => u64::MAX,
                _ => next + u64::from(ahead),
            };
            let payload = step.data.get(1..).unwrap_or_default();
            let mut header = number.to_le_bytes().to_vec();
            header.extend((payload.len() as u32).to_le_bytes());
            header.extend(checksum(&header).to_le_bytes());
            header.extend(checksum(payload).to_le_bytes());
            octets.extend(header);
            octets.extend(payload);
            end
        }
        op::TRAILER => {
            let mut said = step.data.to_vec();
            said.resize(TRAILER, 0);
            octets.extend(&said);
            octets.extend(checksum(&said).to_le_bytes());
            0 // it says where the blocks end, and when they were
        }
        _ => {
            octets.extend(step.data);
            end
        }
    }
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let written: [(u8, &[u8]); 6] = [
        (op::APPEND, &[1, 2, 3]),
        (op::APPEND, &[4]),
        (op::CLOSE, b""),
        (op::APPEND, &[5, 1]),
        (op::APPEND, &[6]),
        (op::ASK, b"user1"),
    ];
    // behind the header, of one block: number 3, first and last time, events
    let trailer = [
        &24u64.to_le_bytes()[..],
        &[0, 0, 0, 0, 9, 0, 0, 0],
        &3u64.to_le_bytes(),
        &4u64.to_le_bytes(),
        &[3, 0, 0, 0],
    ]
    .concat();
    let afterwards: [&[(u8, &[u8])]; 14] = [
        &[],
        &[
            (op::REOPEN, b""),
            (op::ASK, b"100.64.0.1"),
            (op::APPEND, &[7]),
        ],
        &[(op::CUT, &[0, 3, 1]), (op::REOPEN, b""), (op::APPEND, &[7])],
        &[(op::CUT, &[0, 70, 0])],
        &[
            (op::CUT, &[0, 50, 0]),
            (op::REOPEN, b""),
            (op::APPEND, &[7]),
        ],
        &[(op::FLIP, &[0, 30, 1, 1])],
        &[(op::FLIP, &[1, 20, 0, 1]), (op::ASK, b"user2")],
        &[(op::FLIP, &[0, 100, 0, 1])],
        &[(op::BEHIND, b"half a block"), (op::APPEND, &[7])],
        &[(op::FRAME, b"\0\x03\0abc"), (op::REOPEN, b"")],
        &[(op::FRAME, b"\xffabc"), (op::REOPEN, b"")],
        &[(op::TRAILER, &trailer), (op::ASK, b"2001:db8::/48")],
        &[(op::CONTENTS, &[7; 80]), (op::APPEND, &[7])],
        &[(op::BLOCK, b"\x05\0any octets"), (op::CLOSE, b"")],
    ];
    let mut seeds = vec![script([(op::REPLACE, &[1; 90][..]), (op::REOPEN, b"")])];
    for damage in afterwards {
        seeds.push(script(written.iter().chain(damage).copied()));
    }
    seeds
}
