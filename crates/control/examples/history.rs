//! What the history costs: `cargo run --release -p control --example history [SESSIONS]`. Half a million sessions come and go, 2,000
//! each second, which are a million events; then it is asked who had an address, what befell a subscriber, for kinds of events, and for trouble by hours. It writes
//! about 500 MiB into the directory for temporary files, and syncs some thousand times.

use control::history::{
    Bounds, Database, EFFORT, Event, Extent, Query, Reader, Step, Subject, Subscriber, What,
};
use core::ops::ControlFlow;
use northbound::EventKind;
use policy::Bindings;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Sessions that come, unless another number is given.
const SESSIONS: u64 = 530_000;
/// Sessions whose events are in one block, as at 2,000 set-ups a second and a disk that syncs 100 times a second.
const IN_A_BLOCK: u64 = 20;
/// Blocks of the last so many sessions are written one by one, and the others this many together, as when the disk is
/// behind.
const ALONE: u64 = 100_000;
const TOGETHER: usize = 50;
const PER_SECOND: u64 = 2_000;
const BEGAN: u32 = 1_800_000_000;
/// How long each session lasts, in seconds.
const LASTS: u64 = 30;
const HOMES: u64 = 100_000;
/// Matching events that are told, and that are counted.
const EXTENT: Extent = Extent {
    told: 100,
    counted: 10_000,
    effort: EFFORT,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = std::env::args().nth(1).map(|n| n.parse()).transpose()?;
    let sessions: u64 = sessions.unwrap_or(SESSIONS).max(SESSIONS);
    let directory = tempfile::tempdir()?;
    let bounds = Bounds {
        keep: u32::MAX,
        octets: u64::MAX,
    };
    let mut database = Database::open(directory.path(), bounds)?;
    write(&mut database, 0..sessions - ALONE, TOGETHER)?;
    write(&mut database, sessions - ALONE..sessions, 1)?;
    let status = database.reader().status();
    println!(
        "{sessions} sessions, of which {} have ended: {} MiB, {} octets each that came and went",
        sessions - LASTS * PER_SECOND,
        status.octets >> 20,
        status.octets * 2 / events(sessions)
    );
    drop(database);
    // what a cold disk costs is another matter; when it was read once, some of it still came from the disk
    for _ in 0..2 {
        let mut all = std::fs::File::open(directory.path().join("events.db"))?;
        std::io::copy(&mut all, &mut std::io::sink())?;
    }
    let began = Instant::now();
    let database = Database::open(directory.path(), bounds)?;
    println!("opened in {:.1?}", began.elapsed());
    let reader = database.reader();
    for _ in 0..2 {
        for ago in [1_000, sessions / 2, sessions - 10_000] {
            let session = sessions - ago;
            let began = Instant::now();
            let asked = IpAddr::from(address(session)).into();
            let held = reader.who(asked, unix(session) + 1, 1, Vec::new(), u32::MAX);
            let took = began.elapsed();
            let then = held.iter().find(|held| held.session == id(session));
            assert!(
                then.is_some_and(|held| held.at(unix(session) + 1)),
                "{held:?}"
            );
            println!("who had an address {ago} sessions ago: {took:.1?}");
        }
    }
    questions(&reader, sessions);
    trouble(&reader, unix(sessions), "beside these events");
    let began = Instant::now();
    let mut found = 0;
    reader.forward(&Query::default(), |_| {
        found += 1;
        ControlFlow::Continue(())
    });
    println!("all {found} events in {:.1?}", began.elapsed());
    for vlans in [100, 1_000, 4_094] {
        let directory = tempfile::tempdir()?;
        let mut database = Database::open(directory.path(), bounds)?;
        fail_everywhere(&mut database, vlans)?;
        let until = BEGAN + 24 * 3600 - 1;
        let what = format!("in each hour of {vlans} VLANs");
        trouble(&database.reader(), until, &what);
    }
    Ok(())
}

/// What ended and failed, hour by hour: it costs what hours and VLANs there are, and not what events there are.
fn trouble(reader: &Reader, until: u32, what: &str) {
    for _ in 0..2 {
        let began = Instant::now();
        let rows = reader.trouble(until, None).len();
        println!("{rows} rows of trouble {what}, in {:.1?}", began.elapsed());
    }
}

/// A failure in each hour of a day on each of so many VLANs, a block for each hour.
fn fail_everywhere(database: &mut Database, vlans: u16) -> std::io::Result<()> {
    for hour in 0..24 {
        let mut block = Vec::new();
        let unix = BEGAN + hour * 3600;
        for vlan in 0..vlans {
            let step = Step::Failed {
                dialled: unix,
                cause: session::Cause::LostCarrier,
            };
            let who = Subscriber {
                vlans: [Some(vlan), Some(7)],
                ..who(0, b"", b"")
            };
            let what = What::Subscriber(who, step);
            Event { unix, what }.emit(&mut block);
        }
        database.append([(u64::from(hour) + 1, &block[..])])?;
    }
    Ok(())
}

/// What is asked: its name, subjects, kinds, and times.
type Asked = (
    &'static str,
    &'static [&'static str],
    &'static [EventKind],
    (Option<u32>, Option<u32>),
);

/// Events by subjects, kinds and times.
fn questions(reader: &Reader, sessions: u64) {
    const NONE: &[EventKind] = &[];
    const ENDED: &[EventKind] = &[EventKind::Ended];
    const REFUSED: &[EventKind] = &[EventKind::Refused];
    const ONE: &str = "home77777@sluice.example";
    const VLAN: &str = "up1/access0.100.*";
    const FEW: &str = "up1/access0.100.10*";
    let always = (None, None);
    let amid = (Some(unix(sessions / 3)), Some(unix(sessions / 2)));
    let asked: [Asked; 19] = [
        ("of one subscriber", &[ONE], NONE, always),
        ("ends of one subscriber", &[ONE], ENDED, always),
        ("of nobody", &["nobody"], NONE, always),
        ("of all", &[], NONE, always),
        ("ends", &[], ENDED, always),
        ("refusals", &[], REFUSED, always),
        ("ends of a part of the names", &["home777*"], ENDED, always),
        (
            "refusals of a part of the names",
            &["home777*"],
            REFUSED,
            always,
        ),
        ("ends of more names, amid", &["home77*"], ENDED, amid),
        ("of a VLAN, amid", &[VLAN], NONE, amid),
        ("ends of a VLAN", &[VLAN], ENDED, always),
        ("refusals of a VLAN", &[VLAN], REFUSED, always),
        ("of one subscriber in a VLAN", &[VLAN, ONE], NONE, always),
        (
            "ends of a part of the names in a VLAN",
            &[VLAN, "home777*"],
            ENDED,
            always,
        ),
        (
            "ends of more names in a VLAN, amid",
            &[VLAN, "home77*"],
            ENDED,
            amid,
        ),
        (
            "ends of a tenth of the names on a quarter of the lines",
            &["up1/access0.100.1*", "home7*"],
            ENDED,
            always,
        ),
        (
            "of a tenth of the names on few lines",
            &[FEW, "home7*"],
            NONE,
            always,
        ),
        (
            "ends of a tenth of the names on few lines",
            &[FEW, "home7*"],
            ENDED,
            always,
        ),
        (
            "of names of which no event has both",
            &["home2*", "home7*"],
            NONE,
            always,
        ),
    ];
    for (what, subjects, kinds, (since, until)) in asked {
        let subjects = subjects.iter().map(|text| Subject::of_events(text));
        let query = Query {
            subjects: subjects.collect(),
            kinds: kinds.to_vec(),
            since,
            until,
            ..Query::default()
        };
        find(reader, what, &query);
    }
}

/// The latest events of a query, told and counted as the local API does it: the first time, and again.
fn find(reader: &Reader, what: &str, query: &Query) {
    let ask = || {
        let began = Instant::now();
        let found = reader.latest(query, EXTENT, || true, |_, _| {});
        (found, began.elapsed())
    };
    let ((found, first), (_, again)) = (ask(), ask());
    println!("{found} events, {what}, in {first:.1?}, again in {again:.1?}");
}

/// How many there are when so many sessions have come.
fn events(sessions: u64) -> u64 {
    sessions + sessions.saturating_sub(LASTS * PER_SECOND)
}

/// Writes the events of these sessions, so many blocks at once.
fn write(database: &mut Database, sessions: Range<u64>, together: usize) -> std::io::Result<()> {
    let (mut making, mut writing) = (Duration::ZERO, Duration::ZERO);
    let numbers: Vec<u64> = (sessions.start / IN_A_BLOCK..sessions.end / IN_A_BLOCK).collect();
    for numbers in numbers.chunks(together) {
        let began = Instant::now();
        let blocks: Vec<(u64, Vec<u8>)> = numbers.iter().map(|n| (n + 1, block(*n))).collect();
        making += began.elapsed();
        let began = Instant::now();
        database.append(blocks.iter().map(|(n, block)| (*n, &block[..])))?;
        database.tend(BEGAN)?;
        writing += began.elapsed();
    }
    let a_second =
        |all: Duration| all.div_f64((sessions.end - sessions.start) as f64 / PER_SECOND as f64);
    println!(
        "each second of {PER_SECOND} set-ups and as many ends, blocks of {IN_A_BLOCK}, {together} at once: {:.1?} to put \
         them down, {:.1?} to write them",
        a_second(making),
        a_second(writing)
    );
    Ok(())
}

/// The block of this number: sessions that come, and those that end meanwhile.
fn block(number: u64) -> Vec<u8> {
    let mut block = Vec::new();
    let first = number * IN_A_BLOCK;
    for session in first..first + IN_A_BLOCK {
        online(session, &mut block);
        if let Some(over) = session.checked_sub(LASTS * PER_SECOND) {
            ended(over, &mut block);
        }
    }
    block
}

fn unix(session: u64) -> u32 {
    BEGAN + (session / PER_SECOND) as u32
}

fn id(session: u64) -> u64 {
    1_700_000_000_000 << 20 | session
}

fn address(session: u64) -> Ipv4Addr {
    Ipv4Addr::from(0x6440_0000 + (session % HOMES) as u32)
}

fn bindings(session: u64) -> Bindings {
    let prefix = (0x2001_0db8_0000_0000 + (session % HOMES)) as u128;
    let prefix = ipnet::Ipv6Net::new((prefix << 64).into(), 64).ok();
    Bindings::of(Some(address(session)), prefix)
}

fn online(session: u64, block: &mut Vec<u8>) {
    let step = Step::Online {
        dialled: unix(session),
        servers: Some("radius"),
        profile: Some("gold"),
        instance: "default",
        bindings: bindings(session),
    };
    emit(session, unix(session), step, block);
}

fn ended(session: u64, block: &mut Vec<u8>) {
    let step = Step::Ended {
        started: unix(session),
        cause: session::Cause::UserRequest,
        by: None,
        instance: "default",
        bindings: bindings(session),
    };
    emit(session, unix(session) + LASTS as u32, step, block);
}

fn emit(session: u64, unix: u32, step: Step<'_>, block: &mut Vec<u8>) {
    let home = session % HOMES;
    let user = format!("home{home}@sluice.example");
    let circuit = format!("olt1 eth 1/{}/{}", home / 64, home % 64);
    let what = What::Subscriber(who(session, user.as_bytes(), circuit.as_bytes()), step);
    Event { unix, what }.emit(block);
}

fn who<'a>(session: u64, user: &'a [u8], circuit: &'a [u8]) -> Subscriber<'a> {
    let home = session % HOMES;
    let [.., a, b, c] = home.to_be_bytes();
    Subscriber {
        session: id(session),
        user,
        mac: [2, 0, 0, a, b, c],
        user_plane: "up1",
        port: "access0",
        vlans: [Some(100), Some(home as u16 % 4000)],
        line: [Some(circuit), None],
    }
}
