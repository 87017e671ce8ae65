use crate::background_lab::{BackgroundLab, Report};
use crate::fixture::Fixture;
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Homes of the lab whose link is opened.
const HOMES: u32 = 20;
/// What stands before the link.
const LINK: &str = "web manager, signed in once: ";
/// How long the browser may take for all pages and actions.
const LIMIT: Duration = Duration::from_secs(300);

/// The link that the lab prints opens the web manager in Debian's Chromium. Each page and action is tried; what goes wrong there, what accessibility
/// rules say, and what a page asks of other hosts is a failure.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let lab = BackgroundLab::start(own, HOMES)?;
    let said = lab.said()?;
    let link = said.lines().find_map(|line| Some(line.split_once(LINK)?.1));
    let link = link.with_context(|| format!("no link: {said}"))?;
    let (server, _) = link.split_once("/#").context("the link has no page")?;
    let shown = own.dir().join("web-manager");
    fs::create_dir_all(&shown)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/tests/run.mjs");
    let mut command = Command::new("node");
    command
        .arg(script)
        .env("SLUICE_URL", server)
        .env("SLUICE_LINK", link)
        .env("OUT", &shown);
    let mut browser = Process::spawn(own.dir(), "web-manager", command)?;
    let status = browser.wait_end(LIMIT)?;
    ensure!(status.success(), "in the browser:\n{}", browser.tail());
    let report: Value = serde_json::from_slice(&fs::read(shown.join("web.json"))?)?;
    println!("        milliseconds: {}", report["timings"]);
    // two homes were disconnected in the browser, one of them by a filter, and connected again
    let report: Report = lab.end()?;
    report.homes(HOMES, 2)
}
