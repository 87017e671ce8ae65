//! As many rules as a configuration may have: what homes and operators notice of them while they are read, compiled and changed, and how a
//! user plane comes back with them.

use super::document::{LINES, OTHER_LINES, document};
use super::plane::{DAEMONS, Planes};
use super::rows::{Rows, Target};
use super::tools::{Crowd, Tools, lost};
use crate::access_network::PASSWORD;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::{self, PATIENCE};
use crate::load_tool::{INTERFACE, LoadTool};
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, UserPlane};
use std::fmt::Write;
use std::path::Path;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const PART: &str = "rules";
/// ACLs, each with a policy of its own, and rules of each.
const ACLS: u32 = 256;
const RULES: u32 = 4_000;
/// The policy of the homes whose packets must not pass: none of its rules permits them.
const POLICY: &str = "p0";
/// How often a command is asked while the rules come into force.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest that it may take, its process included, in milliseconds.
const LONGEST: f64 = 50.0;
/// How long a commit, and then the compilation, may take, which only ends a hang.
const COMES: Duration = Duration::from_secs(300);

/// The homes without a policy.
const FREE: Crowd = Crowd {
    interface: INTERFACE,
    lines: LINES,
    first: 1,
    homes: 500,
    rate: 500,
    words: "--pps 2000",
};

pub fn run(fixture: &mut Fixture, rows: &mut Rows) -> Result<()> {
    let lab = fixture.without_site()?;
    let planes = Planes::with_stub(lab)?;
    let before = planes.used()?;
    let mut free = Tools::start(lab, &FREE)?;
    free.connected(&planes, &before)?;
    free.rounds(1)?;
    let outage = super::homes::kill(&planes, &mut free)?;
    outage.add(rows, PART, "without rules");

    guard::limit("a million rules come into force");
    let held = planes.held()?;
    let file = lab.dir().join("rules.yaml");
    std::fs::write(&file, with_rules(lab.dir())?)?;
    let beside = Beside::begin(lab)?;
    commits(lab, rows, &format!("load {}", file.display()), "all rules")?;
    in_force(lab, rows, "after the commit")?;
    for (daemon, (before, after)) in DAEMONS.iter().zip(held.iter().zip(planes.held()?)) {
        let grown = after.saturating_sub(*before) as f64 / f64::from(ACLS * RULES);
        rows.add(PART, format!("memory a rule, {daemon}"), grown, "octets");
    }
    commits(
        lab,
        rows,
        "set acls a7 rules 10 deny gre from any to any",
        "another rule",
    )?;
    in_force(lab, rows, "after another rule")?;
    beside.end(rows)?;

    guard::limit("homes whose policy permits nothing");
    let barred = start_barred(lab)?;
    let outage = super::homes::kill(&planes, &mut free)?;
    outage.add(rows, PART, "with all rules");
    in_force(lab, rows, "after the death")?;
    barred.interrupt()?;
    let (_, barred) = barred.finish()?;
    let [sent, missing] = lost(&barred)?;
    ensure!(
        sent > 100 && missing == sent,
        "{} of {sent} packets passed a policy that permits none",
        sent - missing
    );
    let reports = free.leave()?;
    for report in &reports {
        let [sent, lost] = lost(report)?;
        println!("        {lost} of {sent} packets of homes without a policy are lost");
    }
    planes.nothing_left()?;
    planes.stop()
}

/// The configuration with ACLs and policies.
fn with_rules(dir: &Path) -> Result<String> {
    let profile = format!("subscriber-profiles:\n  barred: {{policy-down: {POLICY}}}\n");
    let plain = document(dir);
    let mut text = plain.replacen("subscriber-profiles:\n", &profile, 1);
    ensure!(
        text != plain,
        "the configuration has no subscriber profiles"
    );
    text.push_str("acls:\n");
    for acl in 0..ACLS {
        writeln!(text, "  a{acl}:\n    rules:")?;
        for rule in 0..RULES {
            let (net, host) = (acl, rule / 250);
            let last = rule % 250;
            writeln!(
                text,
                "      {}0: deny tcp from any to 10.{net}.{host}.{last} {}-{}",
                rule + 1,
                rule + 1,
                rule + 100,
            )?;
        }
    }
    text.push_str("policies:\n");
    for acl in 0..ACLS {
        writeln!(text, "  p{acl}: {{acls: [a{acl}]}}")?;
    }
    Ok(text)
}

/// Commits an edit, while a command is asked again and again.
fn commits(lab: &Lab, rows: &mut Rows, edit: &str, what: &str) -> Result<()> {
    let sluice = Sluice::of(lab);
    let script = format!("configure\n{edit}\ncommit\n");
    let begun = Instant::now();
    let commit = thread::spawn(move || sluice.tell(&[], &script));
    let slowest = slowest(lab, &mut || Ok(commit.is_finished()))?;
    match commit.join() {
        Ok(said) => println!("        {}", said?.trim_end()),
        Err(panic) => std::panic::resume_unwind(panic),
    }
    let took = begun.elapsed().as_secs_f64();
    rows.add(PART, format!("{what}: committed"), took, "s");
    let what = format!("{what}: slowest `sluice show session-counts` meanwhile");
    rows.aim(PART, what, (slowest, "ms"), Target::Most(LONGEST));
    Ok(())
}

/// The slowest answer to a command until something is done, in milliseconds.
fn slowest(lab: &Lab, is_done: &mut dyn FnMut() -> Result<bool>) -> Result<f64> {
    let (sluice, begun, mut slowest) = (Sluice::of(lab), Instant::now(), Duration::ZERO);
    while !is_done()? {
        let asked = Instant::now();
        sluice.run(&["show", "session-counts"])?;
        slowest = asked.elapsed().max(slowest);
        ensure!(begun.elapsed() < COMES, "it is not done after {COMES:?}");
        sleep(PAUSE);
    }
    Ok(slowest.as_secs_f64() * 1000.0)
}

/// Waits until every policy is in force at both user planes.
fn in_force(lab: &Lab, rows: &mut Rows, when: &str) -> Result<()> {
    let (sluice, begun) = (Sluice::of(lab), Instant::now());
    loop {
        let policies = sluice.run(&["show", "policies", "--json"])?;
        let policies: Vec<serde_json::Value> = serde_json::from_str(&policies)?;
        let in_force = policies.iter().filter(|row| row["state"] == "in-force");
        if in_force.count() as u32 == ACLS * UserPlane::ALL.len() as u32 {
            break;
        }
        let last = policies.last().context("no policies")?;
        ensure!(begun.elapsed() < COMES, "not in force: {last}");
        sleep(5 * PAUSE);
    }
    let took = begun.elapsed().as_secs_f64();
    rows.add(PART, format!("all policies in force {when}"), took, "s");
    Ok(())
}

/// Homes whose policy permits nothing. They talk all the same.
fn start_barred(lab: &Lab) -> Result<LoadTool> {
    let edit = "set access-profiles barred subscriber-profile barred
set access-profiles barred authentication chap
set access-profiles barred server-group radius
set user-planes up1 ports access0 segments d s-vlans 121
set user-planes up1 ports access0 segments d access-profile barred";
    Sluice::of(lab).configure(edit)?;
    let words = format!(
        "--homes 20 --first 300001 --rate 20 --duration 3600 --pps 200 --vlan 121.1-4000 --password {PASSWORD}"
    );
    let mut barred = LoadTool::start_at(lab, UserPlane::One, "barred", &words)?;
    barred.wait_said_within("running ", PATIENCE)?;
    Ok(barred)
}

/// Homes that come and go while rules change.
struct Beside(LoadTool);

impl Beside {
    fn begin(lab: &Lab) -> Result<Self> {
        let words = format!(
            "--homes 100 --first 200001 --rate 100 --duration 3600 --pps 0 --vlan {OTHER_LINES} --password {PASSWORD} \
             --delegation --flap 20 --flap-off 1 --flap-how terminate"
        );
        let mut flapping = LoadTool::start_at(lab, UserPlane::Two, "flap", &words)?;
        flapping.wait_said_within("running ", PATIENCE)?;
        Ok(Beside(flapping))
    }

    fn end(self, rows: &mut Rows) -> Result<()> {
        self.0.interrupt()?;
        let (_, report) = self.0.finish()?;
        let count = report.number("/set_ups/count")?;
        for quantile in ["p50", "p99", "max"] {
            let time = report.float(&format!("/set_ups/milliseconds/total/{quantile}"))?;
            let what = format!("set-up meanwhile, {quantile} of {count}");
            rows.add(PART, what, time, "ms");
        }
        let failed = report.number("/set_ups/attempts_failed")?;
        let what = "attempts that failed meanwhile";
        rows.aim(PART, what, (failed as f64, ""), Target::Most(0.0));
        Ok(())
    }
}
