use crate::background_lab::{BackgroundLab, sluice};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::page::{self, Block};
use anyhow::{Context, Result, ensure};
use lab::topology::Lab;
use northbound::{Session, SessionState};
use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u32 = 20;
/// The home that the page asks about, and the address that it has there. Which user plane's homes are first to get addresses is
/// not always the same.
const FIRST: &str = "home0001";
const ADDRESS: &str = "100.64.0.2";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let blocks = page::of_how_to("README.md")?;
    ensure!(blocks.len() == 10, "{} blocks of ten jobs", blocks.len());
    let mut lab = BackgroundLab::start(own, HOMES)?;
    let sluice = |commands: &str| pipe(own, commands);
    let before = sluice("show configuration\n")?;
    let address = address_of(own, FIRST)?;
    for (job, block) in blocks.iter().enumerate() {
        let done = job_of(own, block, &address);
        done.with_context(|| format!("job {}:\n{}", job + 1, block.commands))?;
        // Two of the jobs end sessions; whoever was ended dials in again.
        wait_online(own)?;
    }
    ensure!(
        sluice("show configuration\n")? == before,
        "going back to version 1 did not go back"
    );
    let versions = sluice("show versions\n")?;
    ensure!(
        versions.contains("as it was at the beginning") && versions.contains("root"),
        "who and why is not told:\n{versions}"
    );
    lab.wait_said_again(&format!("{HOMES} of {HOMES} homes online"))?;
    let report = lab.end()?;
    println!("        {report:?}");
    // Jobs 5 and 8 end the sessions of the user plane that has half of the homes.
    report.homes(HOMES, HOMES)?;
    report.restarts([0; 3])
}

/// Does a job; what it shows is what the page says.
fn job_of(lab: &Lab, block: &Block, address: &str) -> Result<()> {
    let page = block.shows.as_deref();
    let page = page.context("the page does not say what it shows")?;
    let [commands, page] = [&*block.commands, page].map(|text| text.replace(ADDRESS, address));
    page::compare(&pipe(lab, &commands)?, &page)
}

fn sessions(lab: &Lab) -> Result<Vec<Session>> {
    Ok(serde_json::from_str(&pipe(lab, "show sessions --json\n")?)?)
}

fn address_of(lab: &Lab, user: &str) -> Result<String> {
    let sessions = sessions(lab)?;
    let session = sessions.into_iter().find(|session| session.user == user);
    let address = session.and_then(|session| session.ipv4);
    address.with_context(|| format!("{user} has no address"))
}

/// Waits until every home has both of its addresses.
fn wait_online(lab: &Lab) -> Result<()> {
    let online = |s: &&Session| {
        s.state() == SessionState::Online && s.ipv4.is_some() && s.ipv6_prefix.is_some()
    };
    let start = Instant::now();
    loop {
        let sessions = sessions(lab)?;
        if sessions.iter().filter(online).count() == HOMES as usize {
            return Ok(());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "homes do not come back: {sessions:#?}"
        );
        sleep(Duration::from_millis(200));
    }
}

/// Pipes commands into `sluice`; an error with what it says if it fails.
fn pipe(lab: &Lab, commands: &str) -> Result<String> {
    let mut child = sluice(lab)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child
        .stdin
        .take()
        .context("piped")?
        .write_all(commands.as_bytes())?;
    let done = child.wait_with_output()?;
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    ensure!(done.status.success(), "{out}{err}");
    Ok(out.into_owned())
}
