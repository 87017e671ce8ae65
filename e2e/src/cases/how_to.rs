use crate::guard::PATIENCE;
use crate::rig::Rig;
use crate::street_lab::{StreetLab, sluice};
use anyhow::{Context, Result, ensure};
use sluice::lab::topology::Lab;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u32 = 20;

pub fn run(rig: &mut Rig) -> Result<()> {
    let own = rig.without_site()?;
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/how-to/README.md");
    let text = std::fs::read_to_string(text)?;
    let blocks: Vec<&str> = text
        .split("```sluice\n")
        .skip(1)
        .filter_map(|b| b.split("```").next())
        .collect();
    ensure!(blocks.len() == 10, "{} blocks of ten jobs", blocks.len());
    let lab = StreetLab::start(own, HOMES)?;
    let sluice = |commands: &str| pipe(own, commands);
    let before = sluice("show configuration\n")?;
    for (job, block) in blocks.iter().enumerate() {
        let said = sluice(block).with_context(|| format!("job {}:\n{block}", job + 1))?;
        ensure!(
            !said.trim().is_empty(),
            "job {} says nothing:\n{block}",
            job + 1
        );
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
    // two of the jobs end sessions; whoever was ended dials in again
    let online = || -> Result<usize> {
        let sessions = sluice("show sessions --json\n")?.replace(' ', "");
        // online with both addresses
        let counts = ["\"state\":\"online\"", "\"ipv4\":\"", "\"ipv6_prefix\":\""]
            .map(|part| sessions.matches(part).count());
        Ok(counts.into_iter().min().unwrap_or(0))
    };
    let start = Instant::now();
    while online()? < HOMES as usize {
        ensure!(
            start.elapsed() < PATIENCE,
            "homes do not come back: {}",
            sluice("show sessions\n")?
        );
        sleep(Duration::from_millis(200));
    }
    sleep(Duration::from_secs(2)); // the lab looks at its homes once in a while
    let report = lab.end()?;
    println!("        {report:?}");
    ensure!(
        report.online == HOMES
            && report.packets_wrong == 0
            && report.restarts.values().all(|n| *n == 0),
        "{report:?}"
    );
    Ok(())
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
