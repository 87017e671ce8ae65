//! Homes connect, talk, live through a user plane's death, and leave.

use super::commands;
use super::document::LINES;
use super::plane::{DAEMONS, Planes, Used};
use super::rows::{Rows, Target};
use super::tools::{Crowd, Tools, lost, per_second, worse};
use super::watch::Watch;
use crate::accounting::AccountingRecords;
use crate::fixture::Fixture;
use crate::guard::{self, PATIENCE};
use crate::load_tool::{INTERFACE, Report};
use crate::losses::Losses;
use crate::radius::ALONE;
use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::topology::{Lab, Place, UserPlane};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The user plane that is killed.
const KILLED: UserPlane = UserPlane::One;
/// How long traffic flows before and after that.
const CALM: Duration = Duration::from_secs(2);
/// Memory is looked at when the homes have been gone for so long: the planes keep answers to each other for half a minute.
const ANSWERS_KEPT: Duration = Duration::from_secs(35);
/// Set-ups a second that others have published: docs/performance.md says who.
const PUBLISHED: &str = "1,000; 800; 2,000; about 300";

/// Set-ups a second that a gateway for all homes is to reach.
const LEAST: f64 = 4_000.0;

/// How many homes, and how fast.
struct Size {
    part: &'static str,
    /// Homes at each user plane.
    homes: u32,
    /// Homes that begin to connect a second, at each user plane.
    rate: u32,
    /// Packets a second of the homes of each user plane.
    packets: u32,
    /// How long the homes have been gone when memory is looked at.
    rest: Duration,
}

/// As many as there may be.
const FULL: Size = Size {
    part: "homes",
    homes: 65_536,
    rate: 3_000,
    packets: 8_000,
    rest: ANSWERS_KEPT,
};
/// The case.
const SMALL: Size = Size {
    part: "scale",
    homes: 1_000,
    rate: 1_000,
    packets: 1_000,
    rest: Duration::ZERO,
};
/// As many as FreeRADIUS serves in its share of the time.
const FREERADIUS: Crowd = Crowd {
    interface: INTERFACE,
    lines: LINES,
    first: 1,
    homes: 10_000,
    rate: 3_000,
    words: "--pps 0",
};

pub fn full(fixture: &mut Fixture, rows: &mut Rows) -> Result<()> {
    run(fixture.without_site()?, rows, &FULL)
}

/// The case: a smaller form of it.
pub fn small(fixture: &mut Fixture) -> Result<()> {
    let mut rows = Rows::default();
    run(fixture.without_site()?, &mut rows, &SMALL)?;
    rows.print();
    Ok(())
}

/// Homes connect and leave while FreeRADIUS authenticates them and keeps their records.
pub fn freeradius(fixture: &mut Fixture, rows: &mut Rows) -> Result<()> {
    let mut planes = Planes::with_freeradius(fixture.without_site()?)?;
    let before = planes.used()?;
    let mut tools = Tools::start(planes.lab, &FREERADIUS)?;
    let connected = tools.connected(&planes, &before)?;
    let reports = tools.leave()?;
    planes.wait_empty(u64::from(2 * FREERADIUS.homes))?;
    set_ups(rows, "freeradius", &reports)?;
    cpu(
        rows,
        "freeradius",
        "set-up",
        &connected.used,
        2 * FREERADIUS.homes,
    );
    planes.nothing_left()?;
    let records = AccountingRecords::of(ALONE.records(planes.lab)?)?;
    records.check()?;
    ensure!(
        records.sessions() as u32 == 2 * FREERADIUS.homes,
        "FreeRADIUS knows {} sessions",
        records.sessions()
    );
    planes.stop()
}

fn run(lab: &Lab, rows: &mut Rows, size: &Size) -> Result<()> {
    let (part, all) = (size.part, 2 * size.homes);
    let mut planes = Planes::with_stub(lab)?;
    let (empty, before, losses) = (planes.held()?, planes.used()?, Losses::of(lab)?);
    let mut tools = Tools::start(
        lab,
        &Crowd {
            interface: INTERFACE,
            lines: LINES,
            first: 1,
            homes: size.homes,
            rate: size.rate,
            words: &format!("--pps {}", size.packets),
        },
    )?;
    let connected = tools.connected(&planes, &before)?;
    println!("        all homes are online");
    Losses::of(lab)?.print_since(&losses);
    let full = planes.held()?;
    tools.rounds(1)?;
    println!("        each home has received a packet in both families");
    guard::limit("a user plane's death");
    let outage = kill(&planes, &mut tools)?;
    guard::limit("commands beside very many homes");
    let others = commands::ask(lab, rows, part)?;
    guard::limit("very many homes that leave");
    let before = planes.used()?;
    let reports = tools.leave()?;
    planes.wait_empty(u64::from(all) + others)?;
    let left = planes.used()?.since(&before);
    planes.nothing_left()?;
    sleep(size.rest);
    let held = [empty, full, planes.held()?];
    planes.stop()?;

    set_ups(rows, part, &reports)?;
    cpu(rows, part, "set-up", &connected.used, all);
    let both = connected.used.with(&left);
    cpu(rows, part, "set-up and end", &both, all);
    let tools = connected.tools.as_micros() as f64 / f64::from(all);
    rows.add(part, "CPU a set-up, load tools", tools, "us");
    // Of a few homes it would be that of the daemons themselves.
    if !size.rest.is_zero() {
        memory(rows, size, held);
    }
    outage.add(rows, part, "");
    losses_of(rows, size, &reports)
}

/// How fast homes came online.
fn set_ups(rows: &mut Rows, part: &'static str, reports: &[Report; 2]) -> Result<()> {
    let rate = per_second(reports, "per_second_of_most")?;
    let what = "set-ups, until 99 % are online";
    match part == FULL.part {
        true => rows.aim(part, what, (rate, "/s"), Target::Least(LEAST)),
        false => rows.add(part, what, rate, "/s"),
    }
    rows.beside(PUBLISHED);
    let all = per_second(reports, "per_second")?;
    rows.add(part, "set-ups, until the last is online", all, "/s");
    for quantile in ["p50", "p99", "max"] {
        let pointer = format!("/set_ups/milliseconds/total/{quantile}");
        let time = worse(reports, &pointer)?;
        rows.add(part, format!("set-up, {quantile}"), time, "ms");
    }
    let failed = worse(reports, "/set_ups/attempts_failed")?;
    rows.add(part, "attempts that failed, at the worse plane", failed, "");
    Ok(())
}

fn cpu(rows: &mut Rows, part: &'static str, what: &str, used: &Used, sessions: u32) {
    let of = ["control plane", "user planes", "RADIUS server"];
    for (of, each) in of.iter().zip(used.each(sessions)) {
        rows.add(part, format!("CPU a {what}, {of}"), each, "us");
    }
}

/// What a session holds, and what stays of it.
fn memory(rows: &mut Rows, size: &Size, [empty, full, after]: [[u64; 3]; 3]) {
    for (place, daemon) in DAEMONS.iter().enumerate() {
        let sessions = match daemon {
            Daemon::ControlPlane => 2 * size.homes,
            Daemon::UserPlane(_) => size.homes,
        };
        let grown = full[place].saturating_sub(empty[place]) as f64;
        let stays = after[place].saturating_sub(empty[place]) as f64;
        let each = grown / f64::from(sessions);
        rows.add(
            size.part,
            format!("memory a session, {daemon}"),
            each,
            "octets",
        );
        let share = 100.0 * stays / grown.max(1.0);
        rows.add(size.part, format!("of it stays, {daemon}"), share, "%");
    }
}

/// How long a user plane's death lasted for its homes.
pub struct Outage {
    /// Until its process was started again.
    started: Duration,
    /// Until the gateway said that all sessions are back.
    ready: Duration,
    /// Until as many packets came to its homes as before.
    traffic: Duration,
}

/// Kills a user plane; all homes receive packets in both families afterwards.
pub fn kill(planes: &Planes, tools: &mut Tools) -> Result<Outage> {
    let access = planes.lab.netns(Place::Access(KILLED));
    let watch = Watch::start(access, INTERFACE);
    sleep(CALM);
    let fault = Instant::now();
    let killed = Daemon::UserPlane(KILLED);
    planes.gateway.kill(killed)?;
    let recovery = planes.gateway.wait_ready(killed, PATIENCE)?;
    println!("        {killed} is back after {:.2?}", recovery.ready);
    sleep(CALM);
    // The round of now may have begun before, and its packets are lost.
    tools.rounds(2)?;
    Ok(Outage {
        started: recovery.started,
        ready: recovery.ready,
        traffic: watch.back_after(fault)?,
    })
}

impl Outage {
    /// Adds rows; `with` says what the user plane had, if there is more to say.
    pub fn add(&self, rows: &mut Rows, part: &'static str, with: &str) {
        let killed = match with {
            "" => "user plane killed".to_owned(),
            with => format!("user plane killed, {with}"),
        };
        let started = self.started.as_secs_f64();
        rows.add(part, format!("{killed}: process started"), started, "s");
        for (what, took) in [
            ("all sessions are back", self.ready),
            ("traffic as before", self.traffic),
        ] {
            let what = format!("{killed}: {what}");
            rows.aim(part, what, (took.as_secs_f64(), "s"), Target::Most(3.0));
        }
    }
}

/// What homes lost over a user plane's death.
fn losses_of(rows: &mut Rows, size: &Size, reports: &[Report; 2]) -> Result<()> {
    let part = size.part;
    for up in UserPlane::ALL {
        let [sent, lost] = lost(&reports[up as usize])?;
        let seconds = lost as f64 / f64::from(size.packets);
        match up == KILLED {
            true => rows.add(part, "packets lost by its homes / their rate", seconds, "s"),
            false => rows.aim(
                part,
                format!("packets lost by the others' homes, of {sent}"),
                (lost as f64, ""),
                Target::Most(0.0),
            ),
        }
    }
    Ok(())
}
