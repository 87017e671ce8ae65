use crate::books::{Books, is, text};
use crate::radius::{ALONE, Entry};
use crate::rig::Rig;
use crate::site::Setup;
use crate::sniff::{Capture, tshark};
use crate::street::Street;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

const HOMES: u16 = 20;
/// How far the clock is set, one after the other: an hour ahead, then an hour behind.
const STEPS: [i64; 3] = [0, 3600, -3600];
/// How long each lasts: more than a heartbeat's interval, and several of the others.
const LASTS: Duration = Duration::from_secs(12);
/// By how much an interval may be longer or shorter than those before the clock was set.
const SLACK: f64 = 1.0;
/// Seconds by which records may be off, for they count in whole ones.
const ROUNDING: i64 = 2;

pub fn run(rig: &mut Rig) -> Result<()> {
    let setup = Setup {
        echo_interval: 2,
        interim_interval: 4,
        clock: true,
        ..Setup::default()
    };
    rig.without_site()?;
    let (lab, site) = rig.site(&setup)?;
    let known = ALONE.records(lab)?.len();
    let capture = Capture::between_planes(lab, "wall-clock")?;
    let street = Street::dial(lab, HOMES)?;
    street.wait_online(Duration::from_secs(10))?;
    let mut set = Vec::new();
    for ahead in STEPS {
        site.set_clock(ahead)?;
        set.push(seconds(SystemTime::now())?);
        sleep(LASTS);
    }
    let (homes, _) = street.hang_up(Duration::from_secs(10))?;
    ensure!(homes.ends.is_empty(), "sessions ended: {:?}", homes.ends);
    site.wait_empty(Duration::from_secs(10))?;
    site.wait_for("accounting", Duration::from_secs(10), |_| {
        Ok(Books::of(ALONE.records(lab)?.split_off(known))?.with("Stop") == usize::from(HOMES))
    })?;
    let file = capture.finish()?;

    let echoes = "ip.src == 192.0.2.1 && lcp && ppp.code == 9";
    let echoes = times(&file, echoes, "pppoe.session_id")?;
    let homes = usize::from(HOMES);
    intervals("LCP echo requests", (2.0, homes), set[1], &echoes)?;
    let heartbeats = times(&file, "pfcp.msg_type == 1", "ip.src")?;
    intervals("PFCP heartbeats", (10.0, 2), set[1], &heartbeats)?;
    let records = ALONE.records(lab)?.split_off(known);
    intervals(
        "interim records",
        (4.0, homes),
        set[1],
        &interims(&records)?,
    )?;
    Books::of(records.clone())?.check()?;
    session_times(&records)?;
    steps_were_seen(&records, site.up.log())
}

/// When each of several senders sent something.
type Times = BTreeMap<String, Vec<f64>>;

fn times(capture: &Path, filter: &str, sender: &str) -> Result<Times> {
    let mut times = Times::new();
    for line in tshark(capture, filter, &["frame.time_epoch", sender])? {
        let (at, sender) = line.split_once('\t').context("no time")?;
        times
            .entry(sender.to_owned())
            .or_default()
            .push(at.parse()?);
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

/// The intervals that end after the clock was set are as those before it, or as they are meant to be, and each of the senders
/// went on for as long as the case lasted.
fn intervals(what: &str, meant: (f64, usize), set: f64, times: &Times) -> Result<()> {
    let (meant, senders) = meant;
    ensure!(
        times.len() == senders,
        "{what} of {} senders, not {senders}",
        times.len()
    );
    let since = LASTS.as_secs_f64() * (STEPS.len() - 1) as f64;
    for (sender, times) in times {
        let (count, least) = (
            times.iter().filter(|at| **at > set).count(),
            since / meant / 2.0,
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
        after.len() >= 2 && shortest >= least - SLACK && longest <= most + SLACK,
        "{what} came after {shortest:.2} to {longest:.2} s, before after {least:.2} to {most:.2} s"
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
            (told - lasted).abs() <= ROUNDING,
            "Acct-Session-Time is {told} after {lasted} s: {record:#?}"
        );
    }
    Ok(())
}

/// Both daemons saw the clock behind at the end: or nothing was shown.
fn steps_were_seen(records: &[Entry], log: &Path) -> Result<()> {
    let last = STEPS[STEPS.len() - 1];
    let stop = records.iter().find(|record| is(record, "Stop"));
    let stop = stop.context("no Stop")?;
    let at: i64 = text(stop, "Timestamp")?.parse()?;
    let told = unix_time(text(stop, "Event-Timestamp")?)?;
    ensure!(
        (told - at - last).abs() <= ROUNDING,
        "sluice-cp's wall clock was not set: Event-Timestamp {told} at {at}"
    );
    let log = std::fs::read_to_string(log)?;
    let line = log.lines().rfind(|line| line.contains("withdrawn"));
    let told = line.and_then(|line| line.split_whitespace().next());
    let told = unix_time(told.context("sluice-up withdrew no net")?)?;
    ensure!(
        (told - at - last).abs() <= 10,
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
