use super::gnmi;
use crate::background_lab::{BackgroundLab, Report};
use crate::fixture::Fixture;
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::Lab;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Homes of the lab whose link is opened.
const HOMES: u32 = 20;
/// So many are disconnected in the browser, one of them by a filter, and connect again.
pub const DISCONNECTED: u32 = 2;
/// What stands before the link.
const LINK: &str = "web manager, signed in once: ";
/// What stands before where programs ask.
const PROGRAMS: &str = "gNMI and REST for programs: ";
/// How long the browser may take for all pages and actions.
const LIMIT: Duration = Duration::from_secs(480);

pub fn run(fixture: &mut Fixture) -> Result<()> {
    in_lab(fixture.without_site()?, HOMES, &[])
}

/// The link that a lab of so many homes prints opens the web manager in Debian's Chromium.
pub fn in_lab(own: &Lab, homes: u32, options: &[&str]) -> Result<()> {
    let lab = BackgroundLab::start_with(own, homes, options)?;
    let said = lab.said()?;
    let link = said.lines().find_map(|line| Some(line.split_once(LINK)?.1));
    let link = link.with_context(|| format!("no link: {said}"))?;
    let (server, _) = link.split_once("/#").context("the link has no page")?;
    programs(&said)?;
    use_all(own, Command::new("node"), (server, link))?;
    let report: Report = lab.end()?;
    report.homes(homes, DISCONNECTED)
}

/// Each page and action is tried in Debian's Chromium, by this command of Node; what goes wrong there, what accessibility rules say, and what a page
/// asks of other hosts is a failure.
pub fn use_all(own: &Lab, mut node: Command, (server, link): (&str, &str)) -> Result<()> {
    let shown = own.dir().join("web-manager");
    fs::create_dir_all(&shown)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/tests/run.mjs");
    node.arg(script)
        .env("SLUICE_URL", server)
        .env("SLUICE_LINK", link)
        .env("OUT", &shown);
    let mut browser = Process::spawn(own.dir(), "web-manager", node)?;
    let status = browser.wait_end(LIMIT)?;
    ensure!(status.success(), "in the browser:\n{}", browser.tail());
    let report: Value = serde_json::from_slice(&fs::read(shown.join("web.json"))?)?;
    println!("        milliseconds: {}", report["timings"]);
    Ok(())
}

/// A program reads by gNMI and REST with the token of the command that the lab prints.
fn programs(said: &str) -> Result<()> {
    let line = said
        .lines()
        .find_map(|line| Some(line.split_once(PROGRAMS)?.1));
    let line = line.with_context(|| format!("nothing for programs: {said}"))?;
    let (places, makes_token) = line
        .split_once(", with the token of ")
        .context("no token")?;
    let (gnmi, rest) = places.split_once(" and ").context("no places")?;
    let made = Command::new("sh").args(["-c", makes_token]).output()?;
    ensure!(made.status.success(), "{makes_token}: {made:?}");
    let bearer = format!("Bearer {}", String::from_utf8(made.stdout)?.trim());
    let start_file = makes_token
        .split_whitespace()
        .find(|word| word.ends_with("web.yaml"));
    let start_file = Path::new(start_file.context("no start file")?);
    let certificate = start_file.with_file_name("web").join("certificate.pem");
    let call = json!([{"call": "get", "as": {"authorization": bearer}, "request": {"path": ["/state/session-counts"]}}]);
    let told = gnmi::peer(Command::new(gnmi::PYTHON), gnmi, &certificate, &call)?;
    ensure!(told[0][0]["update"].is_object(), "{told:?}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--cacert"])
        .arg(&certificate);
    curl.args(["--header", &format!("Authorization: {bearer}")]);
    let answer = curl.arg(format!("https://{rest}/api/v1/ports")).output()?;
    ensure!(answer.status.success(), "{answer:?}");
    Ok(())
}
