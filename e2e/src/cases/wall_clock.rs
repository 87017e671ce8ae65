use crate::access_network::AccessNetwork;
use crate::accounting::{AccountingRecords, is, text};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{ALONE, Entry};
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::topology::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

const HOMES: u16 = 20;
/// How far the clock is set, one after the other: an hour ahead, then an hour behind; and for how many seconds: of each of
/// the intervals some end, and of the longest one, the heartbeats', one in each hour.
const STEPS: [(i64, u64); 3] = [(0, 5), (3600, 11), (-3600, 11)];
/// How many times as long an interval may be as it is meant to be, and as short, on a busy machine. A timer that believes the
/// wall clock is off by an hour.
const MOST_TIMES: f64 = 10.0;
const LEAST_TIMES: f64 = 0.5;
/// Seconds by which times may be off on a busy machine, where an hour is what has to be seen.
const SLACK: i64 = 60;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let setup = Setup {
        echo_interval: 2,
        interim_interval: 4,
        clock: true,
        ..Setup::default()
    };
    fixture.without_site()?;
    let (lab, site) = fixture.site(&setup)?;
    let known = ALONE.records(lab)?.len();
    let capture = Capture::between_planes(lab, "wall-clock")?;
    let access = Capture::of(lab, Place::Access(UP), "access", "access", "")?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    network.hush(); // who sends is not asked
    let mut set = Vec::new();
    for (ahead, lasts) in STEPS {
        site.set_clock(ahead)?;
        set.push(seconds(SystemTime::now())?);
        sleep(Duration::from_secs(lasts));
    }
    let (homes, _) = network.hang_up(PATIENCE)?;
    ensure!(homes.ends.is_empty(), "sessions ended: {:?}", homes.ends);
    site.wait_empty(PATIENCE)?;
    site.wait_for("accounting", PATIENCE, |_| {
        Ok(
            AccountingRecords::of(ALONE.records(lab)?.split_off(known))?.with("Stop")
                == usize::from(HOMES),
        )
    })?;
    let file = capture.finish()?;

    let to_homes = "lcp && ppp.code == 9 && eth.dst[0:3] == 02:00:5e";
    let echoes = times(
        &access.finish()?,
        to_homes,
        "pppoe.session_id",
        "frame.number",
    )?;
    let homes = usize::from(HOMES);
    intervals("LCP echo requests", (2.0, homes), set[1], &echoes)?;
    let heartbeats = times(&file, "pfcp.msg_type == 1", "ip.src", "pfcp.seqno")?;
    intervals("PFCP heartbeats", (10.0, 2), set[1], &heartbeats)?;
    let records = ALONE.records(lab)?.split_off(known);
    intervals(
        "interim records",
        (4.0, homes),
        set[1],
        &interims(&records)?,
    )?;
    AccountingRecords::of(records.clone())?.check()?;
    session_times(&records)?;
    steps_were_seen(&records, site.up.log())
}

/// When each of several senders sent something.
type Times = BTreeMap<String, Vec<f64>>;

/// What a sender repeats has the same `number` and counts once.
fn times(capture: &Path, filter: &str, sender: &str, number: &str) -> Result<Times> {
    let (mut times, mut known) = (Times::new(), BTreeSet::new());
    for line in tshark(capture, filter, &["frame.time_epoch", sender, number])? {
        let (at, message) = line.split_once('\t').context("no time")?;
        let (sender, _) = message.split_once('\t').context("no sender")?;
        if known.insert(message.to_owned()) {
            let times = times.entry(sender.to_owned()).or_default();
            times.push(at.parse()?);
        }
    }
    Ok(times)
}

fn interims(records: &[Entry]) -> Result<Times> {
    let mut times = Times::new();
    for record in records.iter().filter(|record| is(record, "Interim-Update")) {
        let session = text(record, "Acct-Session-Id")?.to_owned();
        let at = text(record, "Timestamp")?.parse()?;
        times.entry(session).or_default().push(at);
    }
    Ok(times)
}

/// The intervals that end after the clock was set are as they are meant to be, more or less, and each of the senders went on
/// for as long as the case lasted.
fn intervals(what: &str, meant: (f64, usize), set: f64, times: &Times) -> Result<()> {
    let (meant, senders) = meant;
    ensure!(
        times.len() == senders,
        "{what} of {senders} senders are expected, not of {}",
        times.len()
    );
    let since: u64 = STEPS[1..].iter().map(|(_, lasts)| lasts).sum();
    for (sender, times) in times {
        let (count, least) = (
            times.iter().filter(|at| **at > set).count(),
            since as f64 / meant / 2.0,
        );
        ensure!(
            count as f64 >= least,
            "{what}: {count} of {sender} since the clock was set, at least {least:.0} are right"
        );
    }
    let (mut before, mut after) = (vec![meant], Vec::new());
    for times in times.values() {
        for pair in times.windows(2) {
            let interval = pair[1] - pair[0];
            match pair[1] < set {
                true => before.push(interval),
                false => after.push(interval),
            }
        }
    }
    let range = |all: &[f64]| {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        (least, all.iter().copied().fold(0.0, f64::max))
    };
    let ((least, most), (shortest, longest)) = (range(&before), range(&after));
    println!(
        "        {what}: {} intervals of {shortest:.2} to {longest:.2} s since the clock was set, {least:.2} to {most:.2} s before",
        after.len()
    );
    ensure!(
        after.len() >= 2 && shortest >= LEAST_TIMES * meant && longest <= MOST_TIMES * meant,
        "{what} came after {shortest:.2} to {longest:.2} s, and are meant to come after {meant} s"
    );
    Ok(())
}

/// Acct-Session-Time is what FreeRADIUS' own clock says.
fn session_times(records: &[Entry]) -> Result<()> {
    let mut started: BTreeMap<&str, i64> = BTreeMap::new();
    for record in records {
        let session = text(record, "Acct-Session-Id")?;
        let at: i64 = text(record, "Timestamp")?.parse()?;
        if is(record, "Start") {
            started.insert(session, at);
            continue;
        }
        let lasted = at - started.get(session).context("no Start before")?;
        let told: i64 = text(record, "Acct-Session-Time")?.parse()?;
        ensure!(
            (told - lasted).abs() <= SLACK,
            "Acct-Session-Time is {told} after {lasted} s: {record:#?}"
        );
    }
    Ok(())
}

/// Both daemons saw the clock behind at the end: or nothing was shown.
fn steps_were_seen(records: &[Entry], log: &Path) -> Result<()> {
    let (last, _) = STEPS[STEPS.len() - 1];
    let stop = records.iter().find(|record| is(record, "Stop"));
    let stop = stop.context("no Stop")?;
    let at: i64 = text(stop, "Timestamp")?.parse()?;
    let told = unix_time(text(stop, "Event-Timestamp")?)?;
    ensure!(
        (told - at - last).abs() <= SLACK,
        "sluice-cp's wall clock was not set: Event-Timestamp {told} at {at}"
    );
    let log = std::fs::read_to_string(log)?;
    let line = log.lines().rfind(|line| line.contains("withdrawn"));
    let told = line.and_then(|line| line.split_whitespace().next());
    let told = unix_time(told.context("sluice-up withdrew no net")?)?;
    ensure!(
        (told - at - last).abs() <= SLACK,
        "sluice-up's wall clock was not set: it says {told} at {at}"
    );
    Ok(())
}

/// Seconds since 1970 of a date in words.
fn unix_time(text: &str) -> Result<i64> {
    let done = Command::new("date")
        .args(["-u", "+%s", "-d", text])
        .output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    said.trim()
        .parse()
        .with_context(|| format!("{text} is not a date"))
}

fn seconds(at: SystemTime) -> Result<f64> {
    Ok(at.duration_since(SystemTime::UNIX_EPOCH)?.as_secs_f64())
}
