use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup {
        sessions: 1,
        ..Setup::default()
    })?;
    let (first, second) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    first.dial("alice", "wonderland")?;
    let before = stage.site.drops()?;
    second.start_pppd("bob", "builder")?;
    // Who cannot serve a PADI must not answer it (RFC 2516 section 5.2).
    stage.site.wait_for("pppd to give up", PATIENCE, |_| {
        Ok(second.log()?.contains("Timeout waiting for PADO"))
    })?;
    let grown = stage.site.drops()?;
    ensure!(
        grown.count("session-table-full")? > before.count("session-table-full")?,
        "not counted: {:?}",
        grown.since(&before)
    );
    ensure!(
        stage.site.sessions()?.len() == 1,
        "{:?}",
        stage.site.sessions()?
    );
    first.ping(&INTERNET_V4.to_string(), 3)?;
    first.hang_up()
}
