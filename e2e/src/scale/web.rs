//! A full gateway seen through `sluice-web`: metrics, searches, pages of sessions, and the web manager in Debian's Chromium.

use super::commands::Restless;
use super::document::LINES;
use super::plane::Planes;
use super::rows::{Rows, Target};
use super::tools::{Crowd, Tools};
use crate::cases::web::{self, AT, Web, crowd};
use crate::cases::web_manager::{self, DISCONNECTED};
use crate::fixture::Fixture;
use crate::guard;
use crate::load_tool::INTERFACE;
use anyhow::{Context, Result, ensure};
use lab::daemon::Daemon;
use lab::process::Process;
use lab::topology::{Lab, Place};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const PART: &str = "web";
/// As many homes as there may be; half of them at each user plane.
const HOMES: Crowd = Crowd {
    interface: INTERFACE,
    lines: LINES,
    first: 1,
    homes: 65_536,
    rate: 3_000,
    words: "--pps 0",
};
/// Where a session is taken from, as an operator would look for one of any.
const AMONG: u32 = 100_000;
/// A prefix that the addresses of all homes are in.
const ALL: &str = "100.64.0.0/10";
/// How often each question is asked.
const TIMES: u32 = 10;
/// Between two: an address may ask 20 times a second.
const PAUSE: Duration = Duration::from_millis(60);
/// The longest that a scrape may take, in milliseconds, and its size in octets.
const SCRAPE: (f64, f64) = (50.0, 1_000_000.0);
/// The longest that a search may take, in milliseconds.
const SEARCH: f64 = 100.0;
/// The longest that the first view of the overview may take, in milliseconds.
const FIRST_VIEW: f64 = 1000.0;
/// How long the browser may take for all of its pages.
const BROWSER: Duration = Duration::from_secs(120);
/// Homes of a lab that the web manager shows, and their packets a second, as the browser needs the machine as well.
const IN_LAB: (u32, [&str; 2]) = (10_000, ["--pps", "2000"]);

pub fn run(fixture: &mut Fixture, rows: &mut Rows) -> Result<()> {
    let lab = fixture.without_site()?;
    let (mut planes, tools) = full(lab)?;
    guard::limit("very many homes seen by HTTPS");
    let mut web = Web::start(lab, "{}")?;
    let all = web.get("sessions?limit=1")?.right()?["total"].clone();
    ensure!(all == 2 * HOMES.homes, "{all} sessions");

    scrapes(&web, rows)?;
    let session = web
        .get(&format!("sessions?limit=1&cursor={AMONG}"))?
        .right()?;
    let session = &session["rows"][0];
    searches(&web, rows, session)?;
    pages(&web, rows, session)?;
    browse(lab, rows, session)?;
    guard::limit("very many homes and a crowd of readers");
    let others = waits(&planes, &web, rows)?;
    let most = most_memory(web.process.id())?;
    rows.add(PART, "most memory of sluice-web", most, "MB");
    web.process.stop()?;
    guard::limit("very many homes that leave");
    tools.leave()?;
    planes.wait_empty(u64::from(2 * HOMES.homes) + others)?;
    planes.nothing_left()?;
    planes.stop()
}

/// Each page and action of the web manager: of a lab with very many homes, and of a gateway with as many as there may be.
pub fn all_pages(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let (homes, options) = IN_LAB;
    guard::limit("the web manager of very many homes");
    web_manager::in_lab(lab, homes, &options)?;
    println!("        {homes} homes of a lab: no fault");
    let (mut planes, tools) = full(lab)?;
    guard::limit("the web manager of a full gateway");
    let mut web = Web::start(lab, "{}")?;
    let mut node = lab.netns(Place::ControlPlane).command("node");
    node.env("SILENT", "yes");
    let (server, link) = (format!("https://{AT}"), web::link(lab, "configure")?);
    web_manager::use_all(lab, node, (&server, &link))?;
    println!("        {} homes: no fault", 2 * HOMES.homes);
    web.process.stop()?;
    guard::limit("very many homes that leave");
    tools.leave_after(DISCONNECTED.into())?;
    planes.wait_empty(u64::from(2 * HOMES.homes + DISCONNECTED))?;
    planes.nothing_left()?;
    planes.stop()
}

/// A gateway with as many homes as there may be, all of them online.
fn full(lab: &Lab) -> Result<(Planes<'_>, Tools)> {
    let planes = Planes::with_stub(lab)?;
    let before = planes.used()?;
    let mut tools = Tools::start(lab, &HOMES)?;
    tools.connected(&planes, &before)?;
    println!("        {} homes are online", 2 * HOMES.homes);
    Ok((planes, tools))
}

/// How long frames of homes that come and go wait for the control plane, beside a crowd of readers and somebody who commits: first as the system
/// gives it its turns, and then when it runs before all others, so that it waits for nobody but itself. Returns how many sessions those had.
fn waits(planes: &Planes, web: &Web<'_>, rows: &mut Rows) -> Result<u64> {
    let restless = Restless::start(planes.lab)?;
    for (before_all, how) in [(false, ""), (true, ", which runs before all others")] {
        if before_all {
            let id = planes.gateway.id(Daemon::ControlPlane)?.to_string();
            let given = Command::new("chrt")
                .args(["--fifo", "--pid", "1", &id])
                .status()?;
            ensure!(given.success(), "chrt: {given}");
        }
        let told = crowd::run(web, || Ok(()))?;
        let asked = told.right + told.refused;
        let what = format!(
            "frames that waited above 5 ms for the control plane{how}, beside {asked} questions and {} commits",
            told.commits
        );
        let waited = told.long_waits as f64;
        match before_all {
            true => rows.aim(PART, what, (waited, ""), Target::Most(0.0)),
            false => rows.add(PART, what, waited, ""),
        }
    }
    restless.leave()
}

/// The most memory that a process has held at once, in MB.
fn most_memory(id: i32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("no VmHWM")?.parse::<f64>()? * 1024.0 / 1e6)
}

fn scrapes(web: &Web<'_>, rows: &mut Rows) -> Result<()> {
    // its path begins above the API's
    let told = asked(web, "../../metrics")?;
    ensure!(told.text.contains("sluice_scrape_complete"), "no metrics");
    let incomplete = told
        .text
        .lines()
        .find(|line| line.starts_with("sluice_scrape_complete{") && !line.ends_with(" 1"));
    ensure!(incomplete.is_none(), "{incomplete:?}");
    let (longest, most) = (Target::Most(SCRAPE.0), Target::Most(SCRAPE.1));
    told.add(rows, "scrape of /metrics", longest);
    let size = told.text.len() as f64;
    rows.aim(PART, "size of /metrics", (size, "octets"), most);
    Ok(())
}

/// By whatever a subscriber is known.
fn searches(web: &Web<'_>, rows: &mut Rows, session: &Value) -> Result<()> {
    for (what, field) in [
        ("user name", "user"),
        ("IPv4 address", "ipv4"),
        ("IPv6 prefix", "ipv6_prefix"),
        ("MAC address", "mac"),
        ("session id", "id"),
    ] {
        let value = session[field].as_str().context("a session without it")?;
        let told = asked(web, &format!("subscriber?subscriber={value}"))?;
        let found: Value = serde_json::from_str(&told.text)?;
        ensure!(found[0]["id"] == session["id"], "{value}: {found}");
        told.add(rows, &format!("search by {what}"), Target::Most(SEARCH));
    }
    let nobody = asked(web, "subscriber?subscriber=nobody")?;
    nobody.add(rows, "search that finds nobody", Target::Most(SEARCH));
    Ok(())
}

/// Pages of sessions and of what is put together of all sessions.
fn pages(web: &Web<'_>, rows: &mut Rows, session: &Value) -> Result<()> {
    let of = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
    let (user, mac, address) = (of("user"), of("mac"), of("ipv4"));
    for (what, path) in [
        ("first page of 100 sessions", "sessions".to_owned()),
        ("a page of 100 sessions", format!("sessions?cursor={AMONG}")),
        (
            "a page of 1,000 sessions",
            format!("sessions?limit=1000&cursor={AMONG}"),
        ),
        ("first page of one user", format!("sessions?user={user}")),
        (
            "first page of one MAC address",
            format!("sessions?mac={mac}"),
        ),
        (
            "first page of one address",
            format!("sessions?address={address}"),
        ),
        (
            "first page of an S-tag with 8,000 sessions",
            "sessions?s-tag=100".to_owned(),
        ),
        (
            "first page of all that are online",
            "sessions?state=online".to_owned(),
        ),
        ("first page of subscribers", "subscribers".to_owned()),
        ("first page of lines", "lines".to_owned()),
        (
            "who has a prefix that all are in",
            format!("who?address={ALL}"),
        ),
        ("sessions in it", format!("subscriber?subscriber={ALL}")),
        ("lines of it", format!("lines?line={ALL}")),
        (
            "events of it, counted",
            format!("events?subscriber={ALL}&last=100"),
        ),
    ] {
        let told = asked(web, &path)?;
        rows.add(PART, format!("{what}, median"), told.median, "ms");
    }
    Ok(())
}

/// The web manager in Debian's Chromium.
fn browse(lab: &Lab, rows: &mut Rows, session: &Value) -> Result<()> {
    let out = lab.dir().join("web-scale");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/tests/full.mjs");
    let netns = lab.netns(Place::ControlPlane);
    let mut command = netns.command("node");
    command
        .arg(script)
        .env("SLUICE_URL", format!("https://{AT}"))
        .env("SLUICE_LINK", web::link(lab, "operate")?)
        .env("SLUICE_USER", session["user"].as_str().unwrap_or_default())
        .env("OUT", &out);
    let mut browser = Process::spawn(lab.dir(), "web-scale", command)?;
    let status = browser.wait_end(BROWSER)?;
    ensure!(status.success(), "in the browser:\n{}", browser.tail());
    let told: Value = serde_json::from_slice(&fs::read(out.join("web.json"))?)?;
    for (what, name) in [
        ("first view of the overview in Chromium", "overview"),
        ("a search, until the session is shown", "search"),
        ("first page of sessions", "sessions"),
    ] {
        let times = told["timings"][name].as_array().context("no times")?;
        let times = times.iter().filter_map(Value::as_f64);
        let slowest = times.fold(0.0, f64::max);
        rows.aim(
            PART,
            format!("{what}, the slowest of 3"),
            (slowest, "ms"),
            Target::Most(FIRST_VIEW),
        );
    }
    Ok(())
}

/// What a question was answered, and how long that took, in milliseconds: from the end of the TLS handshake.
struct Told {
    text: String,
    median: f64,
    slowest: f64,
}

impl Told {
    /// Adds rows: the slowest one is held against the target.
    fn add(&self, rows: &mut Rows, what: &str, target: Target) {
        rows.add(PART, format!("{what}, median"), self.median, "ms");
        let slowest = format!("{what}, the slowest of {TIMES}");
        rows.aim(PART, slowest, (self.slowest, "ms"), target);
    }
}

fn asked(web: &Web<'_>, path: &str) -> Result<Told> {
    let (mut took, mut text) = (Vec::new(), String::new());
    for _ in 0..TIMES {
        sleep(PAUSE);
        let form = "\n%{http_code} %{time_pretransfer} %{time_total}";
        let (done, said) = web.curl(path, &["--write-out", form])?;
        ensure!(done.success(), "{path}: {done}");
        let (body, end) = said.rsplit_once('\n').context("no times")?;
        let (status, times) = end.split_once(' ').context("no status")?;
        ensure!(["200", "404"].contains(&status), "{path}: {status}: {body}");
        let times = times.split(' ').map(str::parse);
        let times: Vec<f64> = times.collect::<Result<_, _>>()?;
        took.push((times[1] - times[0]) * 1000.0);
        text = body.to_owned();
    }
    took.sort_by(f64::total_cmp);
    Ok(Told {
        text,
        median: took[took.len() / 2],
        slowest: took[took.len() - 1],
    })
}
