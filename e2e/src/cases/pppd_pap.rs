use crate::accounting::text;
use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::radius::ALONE;
use crate::site::Setup;
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let setup = Setup {
        authentication: "pap",
        ..Setup::default()
    };
    let stage = fixture.stage(&setup)?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    ensure!(
        home.log()?.contains("PAP authentication succeeded"),
        "not by PAP:\n{}",
        home.log()?
    );
    home.ping(&INTERNET_V4.to_string(), 3)?;
    home.hang_up()?;
    falls_asleep(stage)
}

/// RADIUS lets this subscriber be idle for 8 seconds (Idle-Timeout). As long as it sends, it stays.
fn falls_asleep(stage: Stage<'_>) -> Result<()> {
    let home = Home::build(stage.vm, 8)?;
    home.dial("dave", "sleeper")?;
    home.ping(&INTERNET_V4.to_string(), 50)?;
    home.wait_exit(PATIENCE)?;
    stage
        .site
        .wait_for("Acct-Terminate-Cause Idle-Timeout", PATIENCE, |_| {
            let entries = ALONE.accounting(stage.lab, "dave")?;
            let causes = entries
                .iter()
                .map(|entry| text(entry, "Acct-Terminate-Cause"));
            Ok(causes.flatten().any(|cause| cause == "Idle-Timeout"))
        })
}
